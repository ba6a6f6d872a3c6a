"""What every log becomes: one row per unit, however many answers of it the tool has kept."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from stratal.arrays import Record
from stratal.errors import InputError

ID_NAMES = ("id", "item_id")
"""Columns that are taken as the id when none is named."""

AT = "@"
"""Stands between a column and the filter or model that it is of, where a log has several: `score@large`."""

NTH = "#"
"""Stands between what repeats (an epoch's sample, a talk) and the number of the time: `q7#2`."""


_SHOWN = ("input", "turns", "target", "answer")
"""What a person needs to judge a unit, in this order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a log: what one filter or model said of one unit.

    Parameters
    ----------
    unit : str
        Id of the unit.
    shared : mapping
        What holds of the unit whoever answers: input, target, epoch.
    own : mapping
        What this filter or model said, `scores` apart.
    scores : mapping of str to float or None
        None where there is no score.
    variant : str
        The filter or model.

    Examples
    --------
    >>> Row(unit="q7", scores={"exact_match": 1.0}).variant
    ''
    """

    unit: str
    shared: Mapping[str, Any] = field(default_factory=dict)
    own: Mapping[str, Any] = field(default_factory=dict)
    scores: Mapping[str, float | None] = field(default_factory=dict)
    variant: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Log(Record):
    """A log as columns.

    Parameters
    ----------
    tool : str
    columns : mapping of str to list (N,)
        `id` among them.
    proxies : tuple of str
        Columns of scores; the first is the likeliest proxy.
    shown : tuple of str
        What a person needs to judge a unit.
    cluster : str, optional
        Column of what several rows belong to: a sample with epochs, a talk with turns.
    notes : tuple of str

    Examples
    --------
    >>> make_log("a tool", [Row(unit="q7", own={"answer": "Lima"}, scores={"exact_match": 1.0})]).proxies
    ('exact_match',)
    """

    tool: str
    columns: Mapping[str, list[Any]]
    proxies: tuple[str, ...]
    shown: tuple[str, ...] = ()
    cluster: str | None = None
    notes: tuple[str, ...] = ()

    def columns_to_show(self, proxy: str | None) -> tuple[str, ...]:
        """Return the columns to show beside a proxy: those of no filter or model, and those of its own."""
        variant = (proxy or self.proxies[0]).partition(AT)[2]
        return tuple(name for name in self.shown if name.partition(AT)[2] in ("", variant))


def make_log(
    tool: str,
    rows: Sequence[Row],
    *,
    variants: str = "variants",
    cluster: str | None = None,
    notes: Sequence[str] = (),
) -> Log:
    """Return rows as a log: one row per unit; with several filters or models, a column of each.

    Parameters
    ----------
    tool : str
    rows : sequence of Row
    variants : str
        What the variants are called, in words.
    cluster : str, optional
        Column of `shared` that tells what several units belong to; left out where none has two.
    notes : sequence of str

    Raises
    ------
    InputError
        For a log without rows or scores, and for two answers of one variant about one unit.

    Examples
    --------
    >>> two = [Row(unit="q7", scores={"score": s}, variant=v) for v, s in (("large", 1.0), ("small", 0.0))]
    >>> make_log("a tool", two).columns
    {'id': ['q7'], 'score@large': [1.0], 'score@small': [0.0]}
    """
    names = list(dict.fromkeys(row.variant for row in rows))
    several = len(names) > 1
    units: dict[str, dict[str, Any]] = {}
    seen: set[tuple[str, str]] = set()
    scored: dict[str, None] = {}
    for row in rows:
        if (row.unit, row.variant) in seen:
            raise InputError(
                f"{tool}: two answers of unit {row.unit!r}",
                given=row.variant or None,
                allowed="one of each filter or model",
                action="Read one run of the evaluation at a time.",
            )
        seen.add((row.unit, row.variant))
        tail = f"{AT}{row.variant}".replace(",", ";") if several else ""  # options list columns by commas
        found = units.setdefault(row.unit, {})
        found |= dict(row.shared)
        found |= {f"{name}{tail}": value for name, value in (*row.own.items(), *row.scores.items())}
        scored |= dict.fromkeys(f"{name}{tail}" for name in row.scores)
    if not scored:
        raise InputError(f"{tool}: no unit has a score", action="Run the evaluation with a metric.")
    keys = dict.fromkeys(name for found in units.values() for name in found if name not in scored)
    columns: dict[str, list[Any]] = {"id": list(units)}
    for name in (*keys, *scored):
        if name != "id":
            columns[name] = one_kind([found.get(name) for found in units.values()])
    kept = cluster if cluster and len(set(columns[cluster])) < len(units) else None
    usual = [name for kind in _SHOWN for name in columns if name.partition(AT)[0] == kind]
    said = [f"{tool}: {len(units):,} units", *_variant_notes(variants, names, next(iter(scored)))]
    return Log(
        tool=tool,
        columns=columns,
        proxies=tuple(scored),
        shown=tuple(usual),
        cluster=kept,
        notes=("; ".join(said), *notes),
    )


def _variant_notes(what: str, names: Sequence[str], example: str) -> list[str]:
    if len(names) < 2:
        return []
    return [f"{len(names)} {what} ({', '.join(names)}), a column of each, such as {example}"]


def one_kind(values: Sequence[Any]) -> list[Any]:
    """Return a column of one kind: numbers where all are, else text, what is nested as JSON.

    Examples
    --------
    >>> one_kind([1, 2.5, None]), one_kind(["a", 1, {"b": 2}])
    ([1.0, 2.5, None], ['a', '1', '{"b": 2}'])
    """
    present = [value for value in values if value is not None]
    if all(isinstance(value, int) and abs(value) < 2**53 for value in present):
        return [None if value is None else int(value) for value in values]
    if all(isinstance(value, int | float) for value in present):
        return [None if value is None else float(value) for value in values]
    return [None if value is None else text_of(value) for value in values]


def text_of(value: Any) -> str:
    """Return a value as text, what is nested as JSON.

    Examples
    --------
    >>> text_of("Lima"), text_of(["a"])
    ('Lima', '["a"]')
    """
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def number_or_none(value: Any) -> float | None:
    """Return a score as a number; None where it is not finite, or no number.

    Examples
    --------
    >>> number_or_none(True), number_or_none("0.5"), number_or_none(float("nan")), number_or_none([1])
    (1.0, 0.5, None, None)
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


@contextmanager
def as_written(source: str, tool: str) -> Iterator[None]:
    """Turn whatever goes wrong in a document that a tool cannot have written into one `InputError`.

    Examples
    --------
    >>> with as_written("log.json", "a tool"):
    ...     {}["scores"]
    Traceback (most recent call last):
    stratal.errors.InputError: log.json: is not as a tool writes it (given: KeyError: 'scores')...
    """
    try:
        yield
    except InputError:
        raise
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(
            f"{source}: is not as {tool} writes it",
            given=f"{type(error).__name__}: {error}"[:200],
            action="Write it again.",
        ) from error


def require_keys(found: Any, place: str, tool: str, needed: Iterable[str]) -> None:
    """Refuse what is no object, or lacks what each of a tool's has.

    Examples
    --------
    >>> require_keys({"id": 1}, "log.json, sample 1", "Inspect", ["epoch"])
    Traceback (most recent call last):
    stratal.errors.InputError: log.json, sample 1: has no 'epoch' (allowed: what Inspect writes)...
    """
    action = f"Take the file as {tool} wrote it."
    if not isinstance(found, Mapping):
        raise InputError(f"{place}: is not an object", action=action)
    for name in needed:
        if name not in found:
            raise InputError(f"{place}: has no {name!r}", allowed=f"what {tool} writes", action=action)


def distinguished(keys: Iterable[str]) -> list[str]:
    """Return keys made unique: the second `a` becomes `a#2`, wherever no other is called so.

    Examples
    --------
    >>> distinguished(["a", "b", "a", "a#2", "a"])
    ['a', 'b', 'a#3', 'a#2', 'a#4']
    """
    given = list(keys)
    taken, count, found = set(given), dict.fromkeys(given, 1), []
    seen: set[str] = set()
    for key in given:
        name = key
        while name in seen or (name != key and name in taken):
            count[key] += 1
            name = f"{key}{NTH}{count[key]}"
        seen.add(name)
        found.append(name)
    return found
