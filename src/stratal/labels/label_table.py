"""A table of labels: the columns of ids, answers, annotators and what was skipped, and one row per answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any, Self

from stratal.errors import InputError, LabelError
from stratal.labels.labels import SKIPPED, SUBMITTED, Labels
from stratal.labels.meanings import class_text, stand_for_numbers
from stratal.population.declaration import ROW
from stratal.randomness import id_text
from stratal.tables.logs import ID_NAMES
from stratal.tables.small_table import SmallTable, is_missing, plain_text

ANNOTATOR_NAMES = ("annotator", "annotator_id", "rater", "labeler", "labeller")
"""Columns that say who answered, the first that is there."""

_FEW = 3
"""Different answers of a column that is taken for one of answers, though it is not called so."""

_PREDICTED = "pred"
"""In the name of a column of the model's answers."""

ANSWER_NAMES = ("label", "verdict")
"""Columns of answers, the first that is there."""


HUMAN_NAMES = ("human", "human_label", "human_score", "gold", "gold_label", "ground_truth", "truth", "winner")
"""Columns of what people said, in files that were not made for labelling, the first that is there."""


def label_rows(
    table: SmallTable, value: str | None = None, id_name: str = "id", order: Sequence[Any] | None = None
) -> tuple[Labels, list[bool]]:
    """Return the labels of a table, and which rows (m,) were skipped.

    The answers are in the column `value`, or in the first of `ANSWER_NAMES`, if there is but one such. Rows
    without ids are in the order of the sample's ids (n,).

    Examples
    --------
    >>> label_rows(SmallTable.of({"item_id": ["a"], "Label": [" Pass "]}, "labels"))[0].values
    ('Pass',)
    """
    several = ", or several models': --compare A,B" if value is None else ""
    if value is None:
        value = table.find(*ANSWER_NAMES) or ANSWER_NAMES[0]
        alike = [name for name in table.lists if name.strip().casefold() == value.strip().casefold()]
        if len(alike) > 1:
            named = " or ".join(f"value={name!r} (--value {quote(name)})" for name in alike)
            raise InputError(
                f"{table.label}: several columns may be that of the labels",
                given=", ".join(map(repr, alike)),
                action=f"Rename or drop all but one, or name it: {named}.",
            )
    entries = table.values(value, action=f"Name it: value= (--value COL){several}.")
    if id_name == ROW and table.find(ROW) is None and order is not None:
        ids, notes = _ids_by_order(table, order)
    else:
        ids, notes = _ids(table, id_name), ()
    who, status = table.find(*ANNOTATOR_NAMES), table.find("status")
    statuses = [None] * len(table) if status is None else table.values(status)
    places = [f"{table.label}, {at}" for at in table.places]
    skipped = list(map(_skipped, places, statuses))
    labels = Labels(
        ids=ids,
        values=tuple(None if out else entry for out, entry in zip(skipped, entries, strict=True)),
        annotators=None if who is None else tuple(plain_text(name) or "" for name in table.values(who)),
        places=table.places,
        source=table.label,
        notes=(*table.notes, *notes),
    )
    return labels, skipped


def _ids(table: SmallTable, id_name: str) -> tuple[str, ...]:
    """Return the ids (m,) in the sample's own column, or in `item_id` or `id`."""
    known = tuple(dict.fromkeys((id_name, *reversed(ID_NAMES))))
    found = table.find(*known)
    if found is None:
        raise InputError(
            f"{table.label}: no id column",
            given=", ".join(table.lists),
            allowed=" or ".join(known),
            action="Name it: --id COLUMN; --id row where rows are in the order of to_label.csv.",
        )
    ids = table.values(found)
    for row, entry in enumerate(ids):
        if entry == "" or (is_missing(entry) and not isinstance(entry, str)):
            what = f"{table.label}, {table.places[row]}: the id is missing"
            action = "Fill it in from the file that was handed out; an answer without one matches no unit."
            raise LabelError(what, action=action)
    return tuple(map(id_text, ids))


def _ids_by_order(table: SmallTable, order: Sequence[Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if len(table) != len(order):
        raise LabelError(
            f"{table.label}: without ids there must be a row for each drawn unit, in to_label.csv's order",
            given=f"{len(table)} rows",
            allowed=f"{len(order)}",
        )
    note = f"{table.label}: has no ids; its rows are taken in the order of the sample"
    return tuple(map(id_text, order)), (note,)


def _skipped(place: str, status: Any) -> bool:
    """Return whether a status says that an item was skipped."""
    given = str(status or SUBMITTED).strip().lower()
    if given not in (SUBMITTED, SKIPPED):
        raise LabelError(f"{place}: unknown status", given=repr(given), allowed=f"{SUBMITTED} or {SKIPPED}")
    return given == SKIPPED


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerColumn:
    """The column of answers of a table, and how far it is filled in.

    Parameters
    ----------
    name : str, optional
        None where no column is called so.
    rows, filled : int
    counted : bool
        Whether every answer is a number, or a word that stands for one.
    others : tuple of str
        Columns that hold answers too: two values or three, which stand for numbers.
    model : str, optional
        Column of the model that was judged, in long tables.
    human : str, optional
        Column of what people said of some units: called so, or one of few values and empty in most rows.
    predicted : str, optional
        Column of the model's answers, where what people said in the column `human` is of the same classes.

    Examples
    --------
    >>> table = SmallTable.of({"id": ["a", "b"], "label": ["Pass", ""]}, "labels")
    >>> AnswerColumn.of(table).filled
    1
    """

    name: str | None
    rows: int
    filled: int = 0
    counted: bool = False
    others: tuple[str, ...] = ()
    model: str | None = None
    human: str | None = None
    predicted: str | None = None

    @classmethod
    def of(cls, table: SmallTable) -> Self:
        """Return what is known of the answers of a table."""
        name = table.find(*ANSWER_NAMES)
        given = {
            column: [value for value in values if not is_missing(value)]
            for column, values in table.lists.items()
        }
        others = tuple(
            column
            for column, values in given.items()
            if column != name and len(set(map(plain_text, values))) <= _FEW and _stand_for_numbers(values)
        )
        human = _of_people(table, given, others) if name is None else name
        human, predicted = _classes_beside(table, given) or (human, None)
        answered = given.get(name or human or "", [])
        return cls(
            name=name,
            rows=len(table),
            filled=len(answered),
            counted=name is not None and _stand_for_numbers(answered),
            others=others,
            model=table.find("model"),
            human=human,
            predicted=predicted,
        )


def _of_people(table: SmallTable, given: dict[str, list[Any]], few: tuple[str, ...]) -> str | None:
    """Return the column of what people said: called so, else of few values and filled in for some units."""
    called = table.find(*HUMAN_NAMES)
    if called is not None and _stand_for_numbers(given[called]):
        return called
    return next((name for name in few if 2 * len(given[name]) < len(table)), None)


def _classes_beside(table: SmallTable, given: dict[str, list[Any]]) -> tuple[str, str] | None:
    """Return a column of what people said and one of the model's answers, if both are of the same classes.

    Classes that are numbers are taken for classes where the model's column is called so.
    """
    called = table.find(*ANSWER_NAMES)
    sparse = (name for name, values in given.items() if 2 * len(values) < len(table))
    candidates = [table.find(*HUMAN_NAMES), *sparse] if called is None else [called]
    full = {
        name: set(map(plain_text, values))
        for name, values in given.items()
        if len(values) == len(table) and not any(isinstance(value, (dict, list)) for value in values[:1])
    }
    for human in filter(None, candidates):
        said = set(map(plain_text, given[human]))
        numbers = _stand_for_numbers(given[human])
        for name, classes in full.items():
            likely = name != human and (not numbers or _PREDICTED in name.lower())
            if likely and 1 < len(classes) <= len(table) / 2 and 2 * len(said & classes) > len(said):
                return human, name
    return None


def _stand_for_numbers(values: list[Any]) -> bool:
    """Return whether there are values, and all are numbers or words that stand for numbers."""
    return not any(isinstance(value, dict | list) for value in values) and stand_for_numbers(
        map(class_text, filter(None, map(plain_text, values)))
    )
