"""Columns that are made of others before a table becomes a population.

Row numbers as ids, a softmax as the probability of the answer, and what stands for a missing proxy. All are
lazy Ibis expressions, beside a few numbers that one query each asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add, or_
from typing import Any

import ibis

from stratal.errors import InputError
from stratal.population.declaration import (
    CONFIDENCE,
    OWN_STRATUM,
    OWN_STRATUM_GROUP,
    PREDICTED,
    ROUNDED,
    ROW,
    Declaration,
    class_names,
    middle,
    own_stratum_note,
)
from stratal.population.queries.units import absent, category, number
from stratal.tables.engine import stored
from stratal.tables.source import Source, readable

DECLARED = 0.05
"""The same where they were said to be one."""

MISSING_WORDS = ("", "na", "n/a", "nan", "null", "none")
"""What text files write for a number that is missing."""


def prepared(source: Source, declared: Declaration) -> tuple[Source, Declaration]:
    """Return the source with the columns that the declaration asks to be made, and what they are."""
    if declared.id == ROW and ROW not in source.columns:
        source = _numbered(source)
    columns = declared.softmax or _unsaid_softmax(source, declared)
    if columns:
        source, declared = _with_softmax(source, declared, columns)
    if declared.missing == OWN_STRATUM:
        source, declared = _with_own_stratum(source, declared)
    return source, declared


def _with_columns(source: Source, notes: Sequence[str] = (), **columns: Any) -> Source:
    """Return the source with more columns, under the user's names."""
    internal = {name: f"derived_{name}" for name in columns}
    table = source.table.mutate(**{internal[name]: column for name, column in columns.items()})
    return replace(source, table=table, columns={**source.columns, **internal}, notes=(*source.notes, *notes))


def _numbered(source: Source) -> Source:
    """Return the source with the number of each row, from 1, stored once."""
    if not source.ordered:
        raise InputError(
            f"{source.label}: rows on a connection have no order, and so no number",
            action="Name a column of unique ids: id=….",
        )
    numbered = _with_columns(source, **{ROW: ibis.row_number() + 1})
    with readable(source.label):
        return replace(numbered, table=stored(source.backend, numbered.table))


# ---- a softmax


def _unsaid_softmax(source: Source, declared: Declaration) -> tuple[str, ...]:
    """Return the proxies if they are probabilities that add up to 1 in every row."""
    told = declared.bounds is not None or declared.scaled is not None or declared.second_moments
    if len(declared.proxies) < 2 or told:
        return ()
    return declared.proxies if is_softmax(source, declared.proxies) else ()


def is_softmax(source: Source, columns: Sequence[str]) -> bool:
    """Return whether columns hold probabilities that add up to 1 in each row that has them all."""
    found = totals(source, columns)
    return bool(found["n"] and found["least"] >= 0 and found["off"] <= ROUNDED)


def totals(source: Source, columns: Sequence[str]) -> dict[str, Any]:
    """Return how far rows add up from 1, their least value, and the number of rows that have all values."""
    values = [number(source, name) for name in columns]
    total = reduce(add, values)
    whole = total.notnull() & ~total.isnan()
    table = source.table.mutate(total=total, least=ibis.least(*values)).filter(whole)
    return source.first(
        table.aggregate(n=table.count(), least=table.least.min(), off=(table.total - 1.0).abs().max())
    )


def _with_softmax(
    source: Source, declared: Declaration, columns: tuple[str, ...]
) -> tuple[Source, Declaration]:
    """Return the source with the probability of the answer, and the most probable class if none is named."""
    found = totals(source, columns)
    if len(columns) < 2 or not found["n"] or found["least"] < 0 or found["off"] > DECLARED:
        raise InputError(
            f"{source.label}: the columns {_listed(columns)} are not a softmax",
            given=f"rows add up to 1 ± {found['off']:.3g}" if found["n"] else "no row with all values",
            allowed="two or more columns of probabilities that add up to 1 in each row",
            action="Logits must go through a softmax first.",
        )
    values = dict(zip(class_names(columns), (number(source, name) for name in columns), strict=True))
    whole = reduce(add, values.values())
    largest = ibis.ifelse(whole.isnull() | whole.isnan(), whole, ibis.greatest(*values.values()))
    answer = declared.predicted and category(source.column(declared.predicted), declared.predicted)
    if answer is None:
        most = ibis.cases(*((value == largest, name) for name, value in values.items()), else_="none")
        made, what = (
            {CONFIDENCE: largest, PREDICTED: most},
            "the most probable class, kept as " + repr(PREDICTED),
        )
    elif _levels(source, answer) <= set(values):
        told = ibis.cases(*((answer == name, value) for name, value in values.items()))
        made, what = {CONFIDENCE: told}, f"the answer in {declared.predicted!r}"
    else:
        made, what = {CONFIDENCE: largest}, f"the most probable class ({declared.predicted!r} names others)"
    note = f"{len(columns)} columns that add up to 1 ({_listed(columns)}) are a softmax; the proxy is the "
    groups = (*declared.groups, PREDICTED) if PREDICTED in made else declared.groups
    predicted = PREDICTED if PREDICTED in made else declared.predicted
    return _with_columns(source, (f"{note}probability of {what}",), **made), replace(
        declared, proxies=(CONFIDENCE,), softmax=(), groups=groups, predicted=predicted
    )


def _levels(source: Source, answer: Any) -> set[str]:
    """Return up to a thousand different answers."""
    found = source.run(source.table.select(answer=answer).distinct().limit(1000))
    return {row["answer"] for row in found.to_pylist()}


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(columns) if len(columns) <= 4 else f"{columns[0]} … {columns[-1]}"


# ---- missing proxies


def _with_own_stratum(source: Source, declared: Declaration) -> tuple[Source, Declaration]:
    """Return the source with missing proxies filled with one number, and a group that tells them."""
    if not declared.proxies:
        raise InputError("missing='own-stratum' needs a proxy", action="Name one: proxy=…, --proxy COLUMN.")
    names = (*declared.proxies, *declared.second_moments.values())
    values = {name: number(source, name) for name in names}
    gone = reduce(
        or_, (absent(source.column(name), MISSING_WORDS if source.is_text(name) else ()) for name in names)
    )
    counted = source.table.mutate(absent=gone, **{f"v{at}": v for at, v in enumerate(values.values())})
    facts = {"n": counted.absent.sum()}
    for at in range(len(names)):
        known = ibis.ifelse(counted.absent | counted[f"v{at}"].isnan(), None, counted[f"v{at}"])
        facts |= {f"low{at}": known.min(), f"high{at}": known.max()}
    found = source.first(counted.aggregate(**facts))
    count = int(found["n"] or 0)
    if not count:
        return source, replace(declared, missing=None)
    made: dict[str, Any] = {OWN_STRATUM_GROUP: ibis.ifelse(gone, "missing", "known")}
    for at, (name, value) in enumerate(values.items()):
        fill = middle(declared.bounds, found[f"low{at}"], found[f"high{at}"])
        text = source.is_text(name)  # stays text, so that what is no number is still named as it is written
        made[name] = ibis.ifelse(
            gone, ibis.literal(repr(fill) if text else fill), source.column(name) if text else value
        )
    groups = (*declared.groups, OWN_STRATUM_GROUP)
    return _with_columns(source, (own_stratum_note(count),), **made), replace(declared, groups=groups)
