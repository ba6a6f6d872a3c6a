"""Write results by ragas and output items by OpenAI's client: `python make_records.py FOLDER`, offline."""

from __future__ import annotations

import os
import sys
from pathlib import Path

N_ITEMS = 30


def write_ragas(folder: Path) -> None:
    os.environ["RAGAS_DO_NOT_TRACK"] = "true"
    from ragas import EvaluationDataset, evaluate
    from ragas.metrics import ExactMatch

    samples = [
        {
            "user_input": f"question {number}",
            "response": f"answer {number}",
            "retrieved_contexts": [f"text {number}"],
            "reference": f"answer {number if number % 3 else 0}",
        }
        for number in range(N_ITEMS)
    ]
    dataset = EvaluationDataset.from_list(samples)
    scored = evaluate(dataset, metrics=[ExactMatch()], show_progress=False).to_pandas()
    scored.to_json(folder / "ragas.jsonl", orient="records", lines=True)
    scored.to_json(folder / "ragas.json", orient="records")


def write_openai(folder: Path) -> None:
    """Write what the client's own models accept: the service itself is not called."""
    from openai.types.evals.runs import OutputItemListResponse

    usage = {"cached_tokens": 0, "completion_tokens": 1, "prompt_tokens": 1, "total_tokens": 2}
    items = []
    for number in range(N_ITEMS):
        sample = {
            "error": {"code": "", "message": ""},
            "finish_reason": "stop",
            "input": [{"role": "user", "content": f"question {number}"}],
            "max_completion_tokens": 10,
            "model": "a model",
            "output": [{"role": "assistant", "content": f"answer {number}"}],
            "seed": 1,
            "temperature": 0.0,
            "top_p": 1.0,
            "usage": usage,
        }
        items.append(
            OutputItemListResponse(
                id=f"outputitem_{number}",
                created_at=1_772_409_600,
                datasource_item={"question": f"question {number}"},
                datasource_item_id=number,
                eval_id="eval_1",
                object="eval.run.output_item",
                results=[{"name": "grader", "passed": number % 3 > 0, "score": float(number % 3 > 0)}],
                run_id="run_1",
                sample=sample,
                status="completed",
            )
        )
    lines = [item.model_dump_json() + "\n" for item in items]
    (folder / "openai.jsonl").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    write_ragas(Path(sys.argv[1]))
    write_openai(Path(sys.argv[1]))
