"""What an application and reviewers do in MLflow: `mlflow_project.py seed N`, `annotate`, `count`."""

from __future__ import annotations

import json
import sys

import mlflow
from mlflow.entities import AssessmentSource
from mlflow.genai import review_queues

EXPERIMENT = "support"


def seed(n: int) -> None:
    """Log traces with the score of a judge, which is right in eight of ten."""
    mlflow.set_experiment(EXPERIMENT)
    traces = []
    for number in range(n):
        with mlflow.start_span(name="answer") as span:
            span.set_inputs(f"question {number}")
            span.set_outputs(f"answer {number}")
        traces.append(span.trace_id)
    mlflow.flush_trace_async_logging()
    source = AssessmentSource(source_type="LLM_JUDGE", source_id="judge")
    for number, trace_id in enumerate(traces):
        score = 0.9 if number % 5 else 0.2
        mlflow.log_feedback(trace_id=trace_id, name="judge", value=score, source=source)


def queues() -> list[review_queues.ReviewQueue]:
    experiment = mlflow.get_experiment_by_name(EXPERIMENT)
    return list(review_queues.list_review_queues(experiment_id=experiment.experiment_id))


def items(queue: review_queues.ReviewQueue) -> list[review_queues.ReviewQueueItem]:
    return list(review_queues.list_review_queue_items(queue.queue_id, max_results=100))


def annotate() -> None:
    """Answer as ann: every seventh item is declined, every tenth fails."""
    [queue] = queues()
    source = AssessmentSource(source_type="HUMAN", source_id="ann")
    for number, item in enumerate(sorted(items(queue), key=lambda item: item.item_id)):
        status = "declined"
        if number % 7:
            status = "complete"
            answer = "Fail" if number % 10 == 0 else "Pass"
            mlflow.log_feedback(
                trace_id=item.item_id, name=queue.name, value=answer, source=source, rationale="clear"
            )
        review_queues.set_review_queue_item_status(
            queue.queue_id, item_id=item.item_id, status=status, completed_by="ann"
        )


def count() -> None:
    """Print what the server has."""
    experiment = mlflow.get_experiment_by_name(EXPERIMENT)
    traces = mlflow.search_traces(locations=[experiment.experiment_id], return_type="list")
    feedback = [
        [trace.info.trace_id, assessment.name, assessment.value]
        for trace in traces
        for assessment in trace.info.assessments
        if assessment.source.source_type == "HUMAN" and assessment.valid
    ]
    runs = mlflow.search_runs([experiment.experiment_id], output_format="list")
    result = {
        "units": [trace.info.trace_id for trace in traces],
        "queues": {queue.name: [item.item_id for item in items(queue)] for queue in queues()},
        "feedback": feedback,
        "figures": [run.data.metrics for run in runs],
    }
    print(json.dumps(result))


command, *arguments = sys.argv[1:]
{"seed": seed, "annotate": annotate, "count": count}[command](*map(int, arguments))
