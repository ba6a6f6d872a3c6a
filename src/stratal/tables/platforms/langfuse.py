"""Langfuse: traces of a project, annotation queues and scores.

Environment variables contain the address of the server and the keys, which belong to one project. A trace is
read as its root observation. The question of an annotation queue is a score configuration.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from stratal.errors import InputError, optional_import
from stratal.tables.platforms.platform import (
    PER_PAGE,
    QUEUE_PREFIX,
    PlatformAnswer,
    Unit,
    check_project,
    datetime_of,
    milliseconds_of,
    split_pages,
    text_of,
    unknown_queue_error,
)

with optional_import("langfuse", extra="langfuse"):
    import httpx
    from langfuse.api import ConfigCategory, CreateScoreBatchResults, CreateScoreRequest, LangfuseAPI
    from langfuse.api.core import ApiError

# Exceptions of the client if the server cannot be reached or refuses a request.
ERRORS = (ApiError, httpx.HTTPError)
SETTINGS = "LANGFUSE_BASE_URL, LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY"
DEFAULT_URL = "https://cloud.langfuse.com"

# Selects scores of judges and of code, which may be proxies. Not selected are scores of people (source
# ANNOTATION), corrections and free text.
_JUDGE_SCORES = {"source": "API,EVAL", "data_type": "NUMERIC,BOOLEAN,CATEGORICAL"}


class _ResultScore(NamedTuple):
    """A score to write: a label of a trace, or a figure of the session that represents the sample."""

    # `trace_id` or `session_id`, and the id of this trace or session.
    subject_field: str
    subject: str
    name: str
    value: Any

    @property
    def data_type(self) -> str:
        """Type of the score in Langfuse."""
        return "CATEGORICAL" if self.subject_field == "trace_id" else "NUMERIC"


@dataclass(frozen=True, slots=True)
class Project:
    """A project of a Langfuse server."""

    # The package is optional.
    api: Any

    def read_units(self, since: int, until: int | None) -> Iterator[list[Unit]]:
        """Yield the finished traces of one time window after the other.

        The server determines the order of its pages. Therefore the times of all traces are read first.
        """
        read_roots = partial(_read_with_cursor, self.api.observations.get_many, is_root_observation=True)
        all_roots = read_roots(
            fields="core", from_start_time=datetime_of(since), to_start_time=datetime_of(until)
        )
        times = sorted(milliseconds_of(root.start_time) for root in all_roots)
        # Each window has the traces of one page. A window excludes its end: the last one ends 1 ms after the
        # last trace.
        limits = sorted({*times[::PER_PAGE], *(time + 1 for time in times[-1:])})
        for start, end in pairwise(map(datetime_of, limits)):
            roots = read_roots(fields="core,io", from_start_time=start, to_start_time=end)
            yield self._units([root for root in roots if root.end_time is not None])

    def queue_units(self, name: str, ids: Sequence[str], question: str, choices: Sequence[str]) -> int:
        """Create the score configuration and the queue if they do not exist, and add the traces."""
        queues = self.api.annotation_queues
        queue = _find_by_name(name, queues.list_queues)
        if queue is None:
            config = _find_by_name(name, self.api.score_configs.get)
            if config is None:
                categories = [ConfigCategory(value=value, label=label) for value, label in enumerate(choices)]
                config = self.api.score_configs.create(
                    name=name, data_type="CATEGORICAL", categories=categories, description=question
                )
            queue = queues.create_queue(name=name, score_config_ids=[config.id], description=question)
        queued = {item.object_id for item in _read_with_page_numbers(queues.list_queue_items, queue.id)}
        missing = [unit for unit in ids if unit not in queued]
        for unit in missing:
            queues.create_queue_item(queue.id, object_id=unit, object_type="TRACE")
        return len(missing)

    def read_answers(self, name: str, ids: Sequence[str]) -> list[PlatformAnswer]:
        """Return the last score of a person for each completed trace; a trace without a score is skipped."""
        queues = self.api.annotation_queues
        queue = _find_by_name(name, queues.list_queues)
        if queue is None:
            raise unknown_queue_error(name)
        scores = {score.subject.id: score for score in self._scores(name=name, source="ANNOTATION")}
        items = _read_with_page_numbers(queues.list_queue_items, queue.id)
        return [_answer(item, scores.get(item.object_id)) for item in items if item.status == "COMPLETED"]

    def write_results(self, name: str, labels: Mapping[str, Any], figures: Mapping[str, float]) -> int:
        """Write each label as a score of its trace, and the figures as scores of a session of the sample.

        Langfuse replaces a score with the same id and timestamp. The timestamp of a new score is the start of
        the day: a call may be repeated before the scores of an interrupted call can be read.
        """
        stored_scores = [*self._scores(name=name), *self._scores(session_id=name)]
        stored_values = {(score.subject.id, score.name): score.value for score in stored_scores}
        timestamps = {score.id: score.timestamp for score in stored_scores}
        today = datetime.combine(datetime.now(UTC), time(), UTC)
        scores = [_ResultScore("trace_id", trace_id, name, label) for trace_id, label in labels.items()]
        scores += [_ResultScore("session_id", name, figure, value) for figure, value in figures.items()]
        new_scores = [
            score for score in scores if stored_values.get((score.subject, score.name)) != score.value
        ]
        for page in split_pages(new_scores):
            requests = []
            for score in page:
                score_id = f"{score.subject}-{score.name}"
                request = CreateScoreRequest(
                    id=score_id,
                    timestamp=timestamps.get(score_id, today),
                    name=score.name,
                    value=score.value,
                    data_type=score.data_type,
                    **{score.subject_field: score.subject},
                )
                requests.append(request)
            response = self.api.scores.create(request=requests)
            if isinstance(response, CreateScoreBatchResults) and response.rejected:
                raise InputError(f"Langfuse rejected {response.rejected} scores", action="Check the labels.")
        return sum(score.subject_field == "trace_id" for score in new_scores)

    def _units(self, roots: Sequence[Any]) -> list[Unit]:
        """Return traces from their root observations, with the scores of the trace and of the root."""
        scores: dict[str, dict[str, Any]] = {}
        for score in self._scores(trace_id=",".join(root.trace_id for root in roots), **_JUDGE_SCORES):
            if not score.name.startswith(QUEUE_PREFIX):
                scores.setdefault(score.subject.id, {})[score.name] = score.value
        units = []
        for root in sorted(roots, key=lambda root: (root.start_time, root.trace_id)):
            unit_scores = scores.get(root.id, {}) | scores.get(root.trace_id, {})
            time_of_start = milliseconds_of(root.start_time)
            units.append(
                Unit(root.trace_id, time_of_start, text_of(root.input), text_of(root.output), unit_scores)
            )
        return units

    def _scores(self, **options: str) -> list[Any]:
        """Return scores in the order of their last updates."""
        scores = _read_with_cursor(self.api.scores.get_many, fields="details,subject,annotation", **options)
        return sorted(scores, key=lambda score: score.updated_at)


def open_project(project: str) -> Project:
    """Return the project to which the keys belong; it must have this name."""
    api = LangfuseAPI(
        base_url=os.environ.get("LANGFUSE_BASE_URL", DEFAULT_URL),
        username=os.environ.get("LANGFUSE_PUBLIC_KEY", ""),
        password=os.environ.get("LANGFUSE_SECRET_KEY", ""),
    )
    check_project(project, [entry.name for entry in api.projects.get().data], SETTINGS)
    return Project(api)


def _read_with_cursor(function: Callable[..., Any], **options: Any) -> Iterator[Any]:
    """Yield all entries of a list whose pages are linked by a cursor."""
    page = function(**options, limit=PER_PAGE)
    yield from page.data
    while page.meta.cursor:
        page = function(**options, limit=PER_PAGE, cursor=page.meta.cursor)
        yield from page.data


def _read_with_page_numbers(function: Callable[..., Any], *arguments: str) -> Iterator[Any]:
    """Yield all entries of a list with numbered pages."""
    page = function(*arguments, limit=PER_PAGE)
    yield from page.data
    for number in range(2, page.meta.total_pages + 1):
        yield from function(*arguments, limit=PER_PAGE, page=number).data


def _find_by_name(name: str, function: Callable[..., Any]) -> Any:
    """Return the entry of a list that has this name; None if there is none."""
    return next((entry for entry in _read_with_page_numbers(function) if entry.name == name), None)


def _answer(item: Any, score: Any) -> PlatformAnswer:
    """Return the answer to an item of a queue, given its score; None for a skipped item."""
    if score is None:
        return PlatformAnswer(item.object_id, None, "", milliseconds_of(item.updated_at))
    updated = milliseconds_of(score.updated_at)
    return PlatformAnswer(
        item.object_id, str(score.value), score.author_user_id or "", updated, score.comment or ""
    )
