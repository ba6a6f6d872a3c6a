"""The protocol of a platform, and the records that are exchanged with it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any, Protocol, TypeVar

from stratal.errors import InputError, check_choice
from stratal.question.vocabulary import SKIPPED, SUBMITTED

# Module of each platform.
PLATFORMS = {
    "langfuse": "stratal.tables.platforms.langfuse",
    "mlflow": "stratal.tables.platforms.mlflow",
    "phoenix": "stratal.tables.platforms.phoenix",
}

# Beginning of the names of queues. A score with such a name is the label of a person, not a prediction.
QUEUE_PREFIX = "stratal-"

# Largest number of entries in one request.
PER_PAGE = 100

# Origin of the times of all three platforms, in milliseconds.
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Entry = TypeVar("Entry")


def parse_milliseconds(text: str) -> int:
    """Return an ISO date or time as milliseconds since 1970; without a time zone it is in UTC."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return milliseconds_of(moment)


def milliseconds_of(moment: datetime) -> int:
    """Return a time as milliseconds since 1970, rounded down."""
    return (moment - EPOCH) // timedelta(milliseconds=1)


def datetime_of(time: int | None) -> datetime | None:
    """Return the time of milliseconds since 1970; None if there is no limit."""
    return None if time is None else EPOCH + timedelta(milliseconds=time)


def split_pages(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """Yield the entries in lists of at most `PER_PAGE`, for one request each."""
    for start in range(0, len(entries), PER_PAGE):
        yield list(entries[start : start + PER_PAGE])


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of a platform: a trace, a run or a span.

    Parameters
    ----------
    id : str
    time : int
        Milliseconds since 1970, at which it started.
    input, answer : str
        Input and output of the model.
    scores : mapping of str to value
        Scores of judges and of code by name; none of people.
    """

    id: str
    time: int
    input: str
    answer: str
    scores: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the row of a table."""
        row = {"id": self.id, "time": self.time, "input": self.input, "answer": self.answer}
        return row | {f"score_{name}" if name in row else name: value for name, value in self.scores.items()}


@dataclass(frozen=True, slots=True)
class PlatformAnswer:
    """The answer of a person on a platform.

    Parameters
    ----------
    id : str
        The unit.
    label : str, optional
        None for a skipped unit.
    annotator : str
    time : int
        Milliseconds since 1970, at which it was last changed.
    note : str
    """

    id: str
    label: str | None
    annotator: str
    time: int
    note: str = ""

    @property
    def status(self) -> str:
        """Status of the answer in a file of labels."""
        return SKIPPED if self.label is None else SUBMITTED


class Platform(Protocol):
    """A project of a platform, such as an experiment. A repeated call does not write anything twice."""

    def read_units(self, since: int, until: int | None) -> Iterator[list[Unit]]:
        """Yield the units that started from `since` on and before `until` (milliseconds), oldest first."""
        ...

    def queue_units(self, name: str, ids: Sequence[str], question: str, choices: Sequence[str]) -> int:
        """Add units to the queue for review with this name; return how many were not yet in it.

        A new queue has the question, with the choices as its possible answers.
        """
        ...

    def read_answers(self, name: str, ids: Sequence[str]) -> list[PlatformAnswer]:
        """Return the answers to the question of a queue, whose units are `ids`."""
        ...

    def write_results(self, name: str, labels: Mapping[str, Any], figures: Mapping[str, float]) -> int:
        """Write labels by unit and figures of the estimate; return how many labels are new or changed."""
        ...


@contextmanager
def open_platform(source: str) -> Iterator[Platform]:
    """Open a project by its source, such as `mlflow:EXPERIMENT`.

    Raises an `InputError` for a source of another form, for an unknown platform or project, and for an error
    of the server in the block. The message contains neither the request nor the answer, which may contain
    secrets.
    """
    platform, colon, project = source.partition(":")
    if not colon or not project:
        raise InputError(
            "the source must be a platform and a project",
            given=repr(source),
            allowed=", ".join(f"{name}:PROJECT" for name in PLATFORMS),
        )
    check_choice("platform", platform, PLATFORMS)
    module = import_module(PLATFORMS[platform])
    try:
        yield module.open_project(project)
    except module.ERRORS as error:
        # The server's error code or the type of the error, never its text, which may contain secrets.
        code = getattr(error, "error_code", type(error).__name__)
        raise InputError(
            f"the server of {platform} returned an error", given=code, action=f"Check {module.SETTINGS}."
        ) from None


def check_project(project: str, names: Iterable[str], settings: str) -> None:
    """Raise an `InputError` for a project that the server does not have."""
    existing = list(names)
    if project not in existing:
        allowed = ", ".join(existing) or "none"
        raise InputError(f"unknown project {project!r}", allowed=allowed, action=f"Check {settings}.")


def unknown_queue_error(name: str) -> InputError:
    """Return the error of a sample that was not queued."""
    return InputError(f"unknown queue {name!r}", action="Queue the sample first.")


def text_of(value: Any) -> str:
    """Return an input or an output of a model as text.

    A text may be stored as JSON. Other values are returned in JSON.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    try:
        decoded = json.loads(value)
    except ValueError:
        # Most texts are no JSON.
        return value
    return decoded if isinstance(decoded, str) else value
