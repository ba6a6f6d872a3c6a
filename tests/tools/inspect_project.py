"""Run an evaluation by Inspect with its mock model, offline: `inspect_project.py N_SAMPLES N_EPOCHS`."""

from __future__ import annotations

import sys
from typing import Any

import tiktoken


class Words:
    def encode(self, text: str, **_: Any) -> list[str]:
        return text.split()


tiktoken.get_encoding = lambda _: Words()  # it would be downloaded
import inspect_ai  # noqa: E402
from inspect_ai.dataset import Sample  # noqa: E402
from inspect_ai.model import ModelOutput, get_model  # noqa: E402
from inspect_ai.scorer import match  # noqa: E402
from inspect_ai.solver import generate  # noqa: E402

n_samples, n_epochs = map(int, sys.argv[1:])
dataset = [Sample(id=f"q{number}", input=f"question {number}", target="a") for number in range(n_samples)]
answers = ["a" if number % 5 else "b" for number in range(n_samples * n_epochs)]
outputs = [ModelOutput.from_content("mockllm/model", answer) for answer in answers]
inspect_ai.eval(
    inspect_ai.Task(dataset=dataset, solver=generate(), scorer=match(), name="support"),
    model=get_model("mockllm/model", custom_outputs=outputs),
    epochs=n_epochs,
    log_dir="logs",
    display="none",
    max_samples=1,
)
