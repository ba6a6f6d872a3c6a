"""Write the results of an experiment by LangSmith's client, offline: `make_langsmith.py FOLDER`."""

from __future__ import annotations

import os
import sys
import uuid
from pathlib import Path
from typing import Any

os.environ["LANGSMITH_TRACING"] = "false"
from langsmith import Client
from langsmith.evaluation import evaluate
from langsmith.schemas import Example

N_EXAMPLES = 30
BROKEN = 7


def identifier(name: object) -> uuid.UUID:
    return uuid.uuid5(uuid.NAMESPACE_URL, str(name))


def correct(outputs: dict[str, Any], reference_outputs: dict[str, Any]) -> bool:
    return outputs.get("answer") == reference_outputs["answer"]


def similarity(outputs: dict[str, Any]) -> dict[str, Any]:
    return {"key": "similarity", "score": 0.5}


def application(wrong: int) -> Any:
    """Return an application that answers every third question wrong, and fails once."""

    def answer(inputs: dict[str, Any]) -> dict[str, Any]:
        number = int(inputs["question"].split()[1])
        if number == BROKEN:
            raise ValueError("timeout")
        return {"answer": f"answer {number if number % 3 != wrong else -1}"}

    return answer


folder = Path(sys.argv[1])
client = Client(api_key="none", api_url="http://127.0.0.1:9", info={})
examples = [
    Example(
        id=identifier(number),
        inputs={"question": f"question {number}"},
        outputs={"answer": f"answer {number}"},
        dataset_id=identifier("a data set"),
        created_at="2026-03-02T00:00:00Z",
    )
    for number in range(N_EXAMPLES)
]
for wrong in range(2):
    results = evaluate(
        application(wrong),
        data=examples,
        evaluators=[correct, similarity],
        upload_results=False,
        client=client,
    )
    table = results.to_pandas()
    table.to_csv(folder / f"model{wrong}.csv", index=False)
    table.to_json(folder / f"model{wrong}.jsonl", orient="records", lines=True, default_handler=str)
