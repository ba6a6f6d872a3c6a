"""Write the logs of this folder anew, by the tools themselves: `make_logs.py FOLDER [NAME…]`, offline.

Needs lm-eval, inspect_ai, deepeval, evaluate and datasets, in an environment of their own; promptfoo comes
from npm (see README.md).
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

QUESTIONS = [
    ("007", "Capital of France?", "Paris"),
    ('a"b', "Two\nlines: capital of Ghana?", "Accra"),
    ("köln", "Capital of Japan?", "東京"),
    ("0x1", "Capital of Peru?", "Lima"),
]
ANSWERS = {"France": " Paris", "Ghana": " It is Accra", "Japan": "東京", "Peru": "Quito"}
EPOCHS = ["Paris", "Accra", "It is Paris", "Lagos", "東京", "東京", "Quito", "Lima"]
CHOICES = [
    {"question": "2 + 2?", "choices": ["3", "4", "five"], "gold": 1},
    {"question": "3 + 3?", "choices": ["6", "7", "eight"], "gold": 0},
]
STRICT = {
    "name": "strict-match",
    "filter": [{"function": "regex", "regex_pattern": r"^(\w+)"}, {"function": "take_first"}],
}
FLEXIBLE = {
    "name": "flexible-extract",
    "filter": [
        {"function": "regex", "group_select": -1, "regex_pattern": r"(\w+)"},
        {"function": "take_first"},
    ],
}


def lm_eval_dummy_log(folder: Path) -> None:
    """Evaluate the tool's own dummy model, whose answers are random."""
    lm_eval_log(folder, "dummy")


def lm_eval_log(folder: Path, model: str | None = None) -> None:
    import lm_eval
    from lm_eval.api.model import LM
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.tasks import TaskManager

    class Mock(LM):
        def loglikelihood(self, requests: Any, **_: Any) -> Any:
            digits = [int(hashlib.md5(repr(each.args).encode()).hexdigest(), 16) for each in requests]
            return [(-1.0 - digit % 7 / 2, False) for digit in digits]

        def loglikelihood_rolling(self, requests: Any, **_: Any) -> Any:
            raise NotImplementedError

        def generate_until(self, requests: Any, **_: Any) -> Any:
            return [next(text for name, text in ANSWERS.items() if name in each.args[0]) for each in requests]

    def task(name: str, rows: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        path = folder / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        return {
            "task": name, "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(path)}},
            "test_split": "test", **more,
        }  # fmt: skip

    def metric(name: str) -> dict[str, Any]:
        return {"metric": name, "aggregation": "mean", "higher_is_better": True}

    capitals = task(
        "capitals", [{"question": question, "answer": answer} for _, question, answer in QUESTIONS],
        output_type="generate_until", doc_to_text="Question: {{question}}\nAnswer:",
        doc_to_target="{{answer}}", generation_kwargs={"until": ["\n"], "do_sample": False},
        filter_list=[STRICT, FLEXIBLE], metric_list=[metric("exact_match")],
    )  # fmt: skip
    choose = task(
        "choose", CHOICES, output_type="multiple_choice", doc_to_text="{{question}}",
        doc_to_choice="{{choices}}", doc_to_target="{{gold}}",
        metric_list=[metric("acc"), metric("acc_norm")],
    )  # fmt: skip
    tracker = EvaluationTracker(output_path=str(folder))
    found = lm_eval.simple_evaluate(
        model=model or Mock(), tasks=[capitals, choose], task_manager=TaskManager(include_defaults=False),
        log_samples=True, evaluation_tracker=tracker, bootstrap_iters=0,
    )  # fmt: skip
    samples = found.pop("samples")
    tracker.save_results_aggregated(results=found, samples=samples)
    for name, rows in samples.items():
        tracker.save_results_samples(task_name=name, samples=rows)


def inspect_log(folder: Path) -> None:
    import tiktoken

    class Words:
        def encode(self, text: str, **_: Any) -> list[str]:
            return text.split()

    tiktoken.get_encoding = lambda _: Words()  # it would be downloaded
    import inspect_ai
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, get_model
    from inspect_ai.scorer import includes, match
    from inspect_ai.solver import generate

    task = inspect_ai.Task(
        dataset=[Sample(id=name, input=question, target=answer) for name, question, answer in QUESTIONS],
        solver=generate(), scorer=[match(), includes()], epochs=2, name="capitals",
    )  # fmt: skip
    for kind in ("eval", "json"):
        outputs = [ModelOutput.from_content("mockllm/model", answer) for answer in EPOCHS]
        model = get_model("mockllm/model", custom_outputs=outputs)
        inspect_ai.eval(
            task, model=model, log_dir=str(folder), log_format=kind, display="none", max_samples=1
        )


def deepeval_log(folder: Path) -> None:
    os.environ |= {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "DEEPEVAL_RESULTS_FOLDER": str(folder)}
    from deepeval import evaluate
    from deepeval.metrics import BaseConversationalMetric, ExactMatchMetric
    from deepeval.test_case import ConversationalTestCase, LLMTestCase, Turn

    class Polite(BaseConversationalMetric):
        __name__ = "Polite"  # type: ignore[assignment]
        threshold, async_mode, evaluation_model, strict_mode = 0.5, False, "mock", False
        error, evaluation_cost, include_reason, verbose_logs = None, 0, True, None

        def measure(self, *_: Any, **__: Any) -> float:
            self.score, self.success, self.reason = 0.75, True, "fine"
            return self.score

        async def a_measure(self, *_: Any, **__: Any) -> float:
            return self.measure()

        def is_successful(self) -> bool:
            return True

    answers = ["Paris", "Lagos", "東京", "Lima"]
    cases = [
        LLMTestCase(name=name, input=question, expected_output=target, actual_output=answer)
        for (name, question, target), answer in zip(QUESTIONS, answers, strict=True)
    ]
    evaluate(cases, [ExactMatchMetric()])
    turns = [Turn(role="user", content="Hi"), Turn(role="assistant", content="Hello")]
    evaluate([ConversationalTestCase(name="talk", turns=turns)], [Polite()])


def inspect_odd_log(folder: Path) -> None:
    """A good answer, one whose scorer fails, a solver that fails, and an answer without text."""
    import tiktoken

    class Words:
        def encode(self, text: str, **_: Any) -> list[str]:
            return text.split()

    tiktoken.get_encoding = lambda _: Words()  # it would be downloaded
    import inspect_ai
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, get_model
    from inspect_ai.scorer import Score, accuracy, scorer
    from inspect_ai.solver import generate, solver

    @scorer(metrics=[accuracy()])
    def graded() -> Any:
        async def score(state: Any, target: Any) -> Any:
            if state.sample_id == "metric":
                raise RuntimeError("grader broke")
            return Score(value="C" if state.output.completion else "I")

        return score

    @solver
    def crash() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            if state.sample_id == "crash":
                raise RuntimeError("application broke")
            return state

        return solve

    names = ("good", "metric", "crash", "empty")
    task = inspect_ai.Task(
        dataset=[Sample(id=name, input=name, target="x") for name in names],
        solver=[crash(), generate()], scorer=graded(), name="odd",
    )  # fmt: skip
    outputs = [ModelOutput.from_content("mockllm/model", answer) for answer in ("a", "b", "")]
    model = get_model("mockllm/model", custom_outputs=outputs)
    inspect_ai.eval(
        task, model=model, log_dir=str(folder), log_format="json", display="none", max_samples=1,
        fail_on_error=False,
    )  # fmt: skip


def deepeval_odd_log(folder: Path) -> None:
    """A good answer, one whose metric fails, a wrong one, and one without text."""
    os.environ |= {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "DEEPEVAL_RESULTS_FOLDER": str(folder)}
    from deepeval import evaluate
    from deepeval.evaluate import ErrorConfig
    from deepeval.metrics import ExactMatchMetric
    from deepeval.test_case import LLMTestCase

    class Broken(ExactMatchMetric):  # type: ignore[misc]
        def measure(self, case: Any, *options: Any, **more: Any) -> float:
            if case.name == "metric":
                raise RuntimeError("metric broke")
            return float(super().measure(case, *options, **more))

        async def a_measure(self, case: Any, *_: Any, **__: Any) -> float:
            return self.measure(case)

    answers = {"good": "a", "metric": "a", "bad": "b", "empty": ""}
    cases = [
        LLMTestCase(name=name, input="q", actual_output=answer, expected_output="a")
        for name, answer in answers.items()
    ]
    evaluate(cases, [Broken()], error_config=ErrorConfig(ignore_errors=True))


def hugging_face_logs(folder: Path) -> None:
    import datasets
    import evaluate

    evaluate.save(
        folder / "evaluate.json", exact_match=[1.0, 0.0, 1.0], predictions=["Paris", "Lagos", "東京"],
        task="capitals",
    )  # fmt: skip
    columns = {"id": ["007", 'a"b', "köln"], "score": [0.9, 0.2, 0.7], "text": ["x", "two\nlines", "z"]}
    datasets.DatasetDict({"test": datasets.Dataset.from_dict(columns)}).save_to_disk(folder / "datasets")


WRITERS = (
    lm_eval_log,
    lm_eval_dummy_log,
    inspect_log,
    inspect_odd_log,
    deepeval_log,
    deepeval_odd_log,
    hugging_face_logs,
)

if __name__ == "__main__":
    place = Path(sys.argv[1])
    names = sys.argv[2:] or [write.__name__ for write in WRITERS]
    for write in WRITERS:
        if write.__name__ in names:
            (place / write.__name__).mkdir(parents=True)
            write(place / write.__name__)
