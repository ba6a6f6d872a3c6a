"""The columns that mean something in any table of labels: ids, who answered, whether it was skipped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from stratal.errors import InputError, LabelError
from stratal.labels.labels import SKIPPED, SUBMITTED
from stratal.labels.meanings import class_text, stand_for_numbers
from stratal.tables.logs.log import ID_NAMES
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


def id_column(table: SmallTable, id_name: str) -> str:
    """Return the column of ids: the sample's own name for it, `item_id` or `id`.

    Examples
    --------
    >>> id_column(SmallTable.of({"item_id": ["a"]}, "labels"), "id")
    'item_id'
    """
    known = tuple(dict.fromkeys((id_name, *reversed(ID_NAMES))))
    found = table.find(*known)
    if found is None:
        raise InputError(
            f"{table.label}: no id column",
            given=", ".join(table.lists),
            allowed=" or ".join(known),
            action="Name it: --id COLUMN; --id row where rows are in the order of to_label.csv.",
        )
    return found


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
    texts : frozenset of str
        The answers of the column `name`, as text.
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
    texts: frozenset[str] = frozenset()
    predicted: str | None = None

    @classmethod
    def of(cls, table: SmallTable) -> Self:
        """Return what is known of the answers of a table."""
        name = table.find(*ANSWER_NAMES)
        given = {
            column: [value for value in values if not is_missing(value)]
            for column, values in table.lists.items()
        }
        few = (
            column
            for column, values in given.items()
            if column != name and 0 < len(set(map(plain_text, values))) <= _FEW
        )
        others = tuple(column for column in few if _stand_for_numbers(given[column]))
        human = _of_people(table, given, others) if name is None else name
        classes = _classes_beside(table, given)
        human, predicted = (human, None) if classes is None else classes
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
            texts=frozenset(text for text in map(plain_text, answered) if text is not None),
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


def skipped(place: str, status: Any) -> bool:
    """Return whether a status says that an item was skipped.

    Examples
    --------
    >>> skipped("line 2", "Skipped"), skipped("line 2", None)
    (True, False)
    """
    given = str(status or SUBMITTED).strip().lower()
    if given not in (SUBMITTED, SKIPPED):
        raise LabelError(f"{place}: unknown status", given=repr(given), allowed=f"{SUBMITTED} or {SKIPPED}")
    return given == SKIPPED
