"""What an application and reviewers do in Phoenix: `phoenix_project.py seed N`, `annotate`, `count`."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

from phoenix.client import Client

PROJECT = "support"
CLIENT = Client()


def seed(n: int) -> None:
    """Log root spans with a span below each, and the score of a judge, which is right in eight of ten."""
    spans: list[Any] = []
    annotations: list[Any] = []
    for number in range(n):
        start = datetime(2026, 3, 2, tzinfo=UTC) + timedelta(seconds=number // 2)
        root = {
            "name": "answer",
            "context": {"trace_id": f"{number + 1:032x}", "span_id": f"{number + 1:016x}"},
            "span_kind": "CHAIN",
            "start_time": start.isoformat(),
            "end_time": (start + timedelta(seconds=1)).isoformat(),
            "status_code": "OK",
            "attributes": {"input.value": f"question {number}", "output.value": f"answer {number}"},
        }
        below = root | {
            "name": "search",
            "context": {"trace_id": f"{number + 1:032x}", "span_id": f"{number + 100_001:016x}"},
            "parent_id": f"{number + 1:016x}",
        }
        spans += [root, below]
        annotations.append(
            {
                "span_id": f"{number + 1:016x}",
                "name": "judge",
                "annotator_kind": "LLM",
                "result": {"score": 0.9 if number % 5 else 0.2},
            }
        )
    CLIENT.spans.log_spans(project_identifier=PROJECT, spans=spans)
    while len(units()) < n:
        pass
    CLIENT.spans.log_span_annotations(span_annotations=annotations, sync=True)


def units() -> list[str]:
    try:
        spans = CLIENT.spans.get_spans(project_identifier=PROJECT, parent_id="null", limit=10_000)
    except Exception:  # before the first span there is no project
        return []
    return [span["context"]["span_id"] for span in spans]


def annotations_of(kind: str) -> list[Any]:
    annotations = []
    ids = units()
    for start in range(0, len(ids), 50):
        annotations += CLIENT.spans.get_span_annotations(
            span_ids=ids[start : start + 50], project_identifier=PROJECT
        )
    return [entry for entry in annotations if entry["annotator_kind"] == kind]


def annotate() -> None:
    """Answer as ann: every seventh span is skipped, every tenth fails."""
    answers: list[Any] = []
    for number, entry in enumerate(sorted(annotations_of("CODE"), key=lambda entry: entry["span_id"])):
        result = {"explanation": "skipped"}
        if number % 7:
            result = {"label": "Fail" if number % 10 == 0 else "Pass", "explanation": "clear"}
        answer = {"span_id": entry["span_id"], "name": entry["name"], "annotator_kind": "HUMAN"}
        answers.append(answer | {"identifier": "ann", "result": result})
    CLIENT.spans.log_span_annotations(span_annotations=answers, sync=True)


def count() -> None:
    """Print what the server has."""
    queues: dict[str, list[str]] = {}
    for entry in annotations_of("CODE"):
        queues.setdefault(entry["name"], []).append(entry["span_id"])
    answers = annotations_of("HUMAN")
    labels = [[entry["span_id"], entry["name"], entry["result"].get("label")] for entry in answers]
    feedback = [entry for entry in labels if entry[2] is not None]
    metadata = {tuple(sorted(entry["metadata"].items())) for entry in answers if entry.get("metadata")}
    figures = [dict(entries) for entries in metadata]
    print(json.dumps({"units": units(), "queues": queues, "feedback": feedback, "figures": figures}))


command, *arguments = sys.argv[1:]
{"seed": seed, "annotate": annotate, "count": count}[command](*map(int, arguments))
