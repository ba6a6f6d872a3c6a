"""Phoenix: root spans of a project and their annotations. The server is `PHOENIX_BASE_URL`.

Phoenix has no queues for review. Instead, drawn spans have a tag, an annotation of kind CODE with the name of
the sample. The answers are annotations of people with the same name. Phoenix stores one annotation for each
span, name and identifier, so that a repeated call changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from stratal.errors import optional_import
from stratal.tables.platforms.platform import (
    PlatformAnswer,
    Unit,
    check_project,
    datetime_of,
    parse_milliseconds,
    split_pages,
    text_of,
)

with optional_import("arize-phoenix-client", extra="phoenix"):
    import httpx
    from phoenix.client import Client

# Exceptions of the client if the server cannot be reached or refuses a request.
ERRORS = (httpx.HTTPError,)
SETTINGS = "PHOENIX_BASE_URL and PHOENIX_API_KEY"

# The client reads pages of 100 spans until it has this number. It is far above the size of a project.
MAX_SPANS = 10_000_000
# Kinds of annotators in Phoenix.
HUMAN = "HUMAN"
CODE = "CODE"
# Label of the annotation that marks a span for review.
TAG = "to review"


@dataclass(frozen=True, slots=True)
class Project:
    """A project of a Phoenix server."""

    # The client's type is not exported, and the package is optional.
    spans: Any
    name: str

    def read_units(self, since: int, until: int | None) -> Iterator[list[Unit]]:
        """Yield pages of root spans, oldest first."""
        spans = self.spans.get_spans(
            project_identifier=self.name,
            start_time=datetime_of(since),
            end_time=datetime_of(until),
            parent_id="null",
            limit=MAX_SPANS,
        )
        for page in split_pages(sorted(spans, key=lambda span: parse_milliseconds(span["start_time"]))):
            scores: dict[str, dict[str, Any]] = {}
            for annotation in self._annotations([span["context"]["span_id"] for span in page]):
                result = annotation.get("result") or {}
                value = result.get("score")
                if value is None:
                    value = result.get("label")
                if annotation["annotator_kind"] != HUMAN and value not in (None, TAG):
                    scores.setdefault(annotation["span_id"], {})[annotation["name"]] = value
            yield [_unit(span, scores.get(span["context"]["span_id"], {})) for span in page]

    def queue_units(self, name: str, ids: Sequence[str], question: str, choices: Sequence[str]) -> int:
        """Tag the spans; the explanation of the tag is the question with its choices."""
        tagged = {entry["span_id"] for entry in self._annotations(ids, name) if _label(entry) == TAG}
        missing = [unit for unit in ids if unit not in tagged]
        explanation = f"{question} ({', '.join(choices)})"
        self._annotate(name, dict.fromkeys(missing, TAG), CODE, explanation=explanation)
        return len(missing)

    def read_answers(self, name: str, ids: Sequence[str]) -> list[PlatformAnswer]:
        """Return the last annotation of a person on each span; without a label, the span is skipped."""
        answers = {}
        for entry in self._human_annotations(name, ids):
            note = (entry.get("result") or {}).get("explanation") or ""
            person = entry["user_id"] or entry["identifier"]
            time = parse_milliseconds(entry["updated_at"])
            answers[entry["span_id"]] = PlatformAnswer(entry["span_id"], _label(entry), person, time, note)
        return list(answers.values())

    def write_results(self, name: str, labels: Mapping[str, Any], figures: Mapping[str, float]) -> int:
        """Write each label as an annotation of its span; the figures are its metadata."""
        annotations = self._human_annotations(name, list(labels))
        stored_labels = {entry["span_id"]: _label(entry) for entry in annotations}
        new_labels = {unit: label for unit, label in labels.items() if stored_labels.get(unit) != label}
        self._annotate(name, new_labels, HUMAN, metadata=figures)
        return len(new_labels)

    def _human_annotations(self, name: str, ids: Sequence[str]) -> list[Any]:
        """Return the annotations of people with this name, the oldest first."""
        entries = [entry for entry in self._annotations(ids, name) if entry["annotator_kind"] == HUMAN]
        return sorted(entries, key=lambda entry: parse_milliseconds(entry["updated_at"]))

    def _annotations(self, ids: Sequence[str], name: str | None = None) -> list[Any]:
        """Return the annotations of spans with this name, or all annotations of the spans."""
        annotations = []
        for page in split_pages(ids):
            annotations += self.spans.get_span_annotations(
                span_ids=page,
                project_identifier=self.name,
                include_annotation_names=None if name is None else [name],
            )
        return annotations

    def _annotate(
        self,
        name: str,
        labels: Mapping[str, str],
        annotator_kind: str,
        *,
        explanation: str | None = None,
        metadata: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        """Write an annotation with a label for each span."""
        shared_fields = {
            "name": name,
            "annotator_kind": annotator_kind,
            "identifier": f"stratal-{annotator_kind.lower()}",
            "metadata": dict(metadata),
        }
        entries = []
        for unit, label in labels.items():
            result = {"label": label, "explanation": explanation}
            entries.append({"span_id": unit, "result": result, **shared_fields})
        for page in split_pages(entries):
            self.spans.log_span_annotations(span_annotations=page, sync=True)


def open_project(project: str) -> Project:
    """Return a project by its name."""
    client = Client()
    check_project(project, [entry["name"] for entry in client.projects.list()], SETTINGS)
    return Project(client.spans, project)


def _label(annotation: Mapping[str, Any]) -> str | None:
    """Return the label of an annotation."""
    return (annotation.get("result") or {}).get("label")


def _unit(span: Mapping[str, Any], scores: Mapping[str, Any]) -> Unit:
    """Return a root span with its scores."""
    attributes = span.get("attributes") or {}
    return Unit(
        span["context"]["span_id"],
        parse_milliseconds(span["start_time"]),
        text_of(attributes.get("input.value")),
        text_of(attributes.get("output.value")),
        scores,
    )
