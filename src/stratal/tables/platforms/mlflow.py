"""MLflow: traces of an experiment, review queues and feedback. `MLFLOW_TRACKING_URI` is the tracking server.

A queue for review is a custom queue of MLflow's open-source server, whose question is a label schema. If a
trace is added to a queue again, the server ignores it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stratal.errors import optional_import
from stratal.tables.platforms.platform import (
    PER_PAGE,
    PlatformAnswer,
    Unit,
    check_project,
    split_pages,
    text_of,
    unknown_queue_error,
)

with optional_import("mlflow-skinny", extra="mlflow"):
    import mlflow
    from mlflow import MlflowClient
    from mlflow.entities import AssessmentSource
    from mlflow.exceptions import MlflowException
    from mlflow.genai import label_schemas, review_queues

# Exceptions of the client if the server cannot be reached or refuses a request.
ERRORS = (MlflowException,)
SETTINGS = "MLFLOW_TRACKING_URI and your access to the experiment"

# Source types of assessments. Those of judges and of code are scores, and those of people are answers.
SCORE_SOURCES = ("LLM_JUDGE", "CODE")
HUMAN = "HUMAN"
# Tag of the run of a sample, because an experiment may have runs of several samples.
SAMPLE_TAG = "stratal.sample"


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment of an MLflow tracking server."""

    # The package is optional, and has types only in part.
    client: Any
    id: str

    def read_units(self, since: int, until: int | None) -> Iterator[list[Unit]]:
        """Yield pages of finished traces, oldest first."""
        condition = f"timestamp_ms >= {since}"
        if until is not None:
            condition += f" AND timestamp_ms < {until}"
        for page in read_pages(
            self.client.search_traces,
            locations=[self.id],
            filter_string=condition,
            order_by=["timestamp_ms ASC"],
            max_results=PER_PAGE,
        ):
            yield [_unit(trace) for trace in page if trace.info.state != "IN_PROGRESS"]

    def queue_units(self, name: str, ids: Sequence[str], question: str, choices: Sequence[str]) -> int:
        """Create the question and the queue if they do not exist, and attach the traces."""
        queue = self._find_queue(name)
        if queue is None:
            schema_id = self._schema_id(name, question, choices)
            queue = review_queues.create_review_queue(
                name, queue_type="custom", schema_ids=[schema_id], experiment_id=self.id
            )
        queued = {item.item_id for item in _items(queue)}
        missing = [unit for unit in ids if unit not in queued]
        for page in split_pages(missing):
            review_queues.add_items_to_review_queue(queue.queue_id, item_ids=page)
        return len(missing)

    def read_answers(self, name: str, ids: Sequence[str]) -> list[PlatformAnswer]:
        """Return the last feedback of a person on each completed trace; declined traces are skipped."""
        queue = self._find_queue(name)
        if queue is None:
            raise unknown_queue_error(name)
        return [self._answer(name, item) for item in _items(queue) if item.status != "pending"]

    def write_results(self, name: str, labels: Mapping[str, Any], figures: Mapping[str, float]) -> int:
        """Write each label as feedback of its trace, and the figures as metrics of one run of the sample."""
        n_written = 0
        source = AssessmentSource(source_type=HUMAN, source_id="stratal")
        for trace_id, label in labels.items():
            feedback = self._last_feedback(trace_id, name)
            if feedback is None or feedback.value != label:
                mlflow.log_feedback(trace_id=trace_id, name=name, value=label, source=source)
                n_written += 1
        runs = self.client.search_runs([self.id], filter_string=f"tags.`{SAMPLE_TAG}` = '{name}'")
        if not runs:
            runs = [self.client.create_run(self.id, tags={SAMPLE_TAG: name}, run_name=name)]
        for key, value in figures.items():
            if runs[0].data.metrics.get(key) != value:
                self.client.log_metric(runs[0].info.run_id, key, value)
        return n_written

    def _schema_id(self, name: str, question: str, choices: Sequence[str]) -> str:
        """Return the id of the question, which is created if it does not exist."""
        for schema in label_schemas.list_label_schemas(experiment_id=self.id):
            if schema.name == name:
                return str(schema.schema_id)
        schema = label_schemas.create_label_schema(
            name,
            type="feedback",
            input=label_schemas.InputCategorical(options=list(choices)),
            instruction=question,
            enable_comment=True,
            experiment_id=self.id,
        )
        return str(schema.schema_id)

    def _find_queue(self, name: str) -> Any:
        """Return the review queue with this name; None if there is none."""
        for page in read_pages(review_queues.list_review_queues, experiment_id=self.id):
            for queue in page:
                if queue.name == name:
                    return queue
        return None

    def _answer(self, name: str, item: Any) -> PlatformAnswer:
        """Return the answer to an item of a review queue."""
        feedback = self._last_feedback(item.item_id, name)
        if item.status == "declined" or feedback is None:
            return PlatformAnswer(item.item_id, None, item.completed_by or "", item.last_update_time_ms)
        person = feedback.source.source_id or item.completed_by
        time = feedback.last_update_time_ms
        return PlatformAnswer(item.item_id, str(feedback.value), person, time, feedback.rationale or "")

    def _last_feedback(self, trace_id: str, name: str) -> Any:
        """Return the last valid feedback with this name from a person; None if there is none."""
        answers = [
            assessment
            for assessment in self.client.get_trace(trace_id).info.assessments
            if assessment.name == name and assessment.source.source_type == HUMAN and assessment.valid
        ]
        return max(answers, key=lambda answer: answer.last_update_time_ms, default=None)


def open_project(project: str) -> Experiment:
    """Return an experiment by its name."""
    client = MlflowClient()
    experiment = client.get_experiment_by_name(project)
    if experiment is None:
        names = [entry.name for entry in client.search_experiments(max_results=PER_PAGE)]
        check_project(project, names, SETTINGS)
    return Experiment(client, experiment.experiment_id)


def read_pages(function: Callable[..., Any], *arguments: Any, **options: Any) -> Iterator[Any]:
    """Yield the pages of a list."""
    page = function(*arguments, **options)
    yield page
    while page.token:
        page = function(*arguments, **options, page_token=page.token)
        yield page


def _items(queue: Any) -> list[Any]:
    """Return the items of a review queue."""
    pages = read_pages(review_queues.list_review_queue_items, queue.queue_id, max_results=PER_PAGE)
    return [item for page in pages for item in page]


def _unit(trace: Any) -> Unit:
    """Return a trace with its scores."""
    info = trace.info
    scores = {
        assessment.name: assessment.value
        for assessment in info.assessments
        if assessment.source.source_type in SCORE_SOURCES and assessment.valid and not assessment.error
    }
    answer = text_of(trace.data.response)
    return Unit(info.trace_id, info.request_time, text_of(trace.data.request), answer, scores)
