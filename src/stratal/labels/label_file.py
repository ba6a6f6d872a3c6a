"""Reading labels from files as people have them: one row per answer, of one annotator or several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from stratal.errors import InputError, LabelError, names_mistyped, near_names
from stratal.labels.annotation_tools import VERDICT, Answers
from stratal.labels.exchange import LABEL, answers_of_tool, refuse_empty
from stratal.labels.label_table import ANSWER_NAMES, label_rows
from stratal.labels.labels import ADJUDICATED, Labels
from stratal.labels.meanings import class_text
from stratal.randomness import id_text
from stratal.tables.small_table import SmallTable

FIRST, DIFFERS_FROM = "first_", "differs_from"
"""What the column of first labels is called before their own name, and that of the judges who differ: a file
with the latter is a second look."""


@names_mistyped
def read_labels(
    *paths: str | Path,
    id_name: str = "id",
    value: str | None = None,
    positive: str | None = None,
    mapping: Mapping[Any, float | str | None] | None = None,
    order: Sequence[Any] | None = None,
) -> Labels:
    """Read labels from one file or several: of several rounds, or of several annotators.

    Parameters
    ----------
    *paths : str or Path
        `.csv`, `.tsv`, `.xlsx`, `.jsonl`, `.json`, `.parquet` or `.feather`, one row per answer: an id column
        (`id_name`, `item_id` or `id`), the label, and optionally `annotator` and `status` (`submitted` or
        `skipped`). Columns are found without regard to case; blank rows are left out. Where files answer for
        the same units and nobody is named, each file's name is its annotator.
    id_name : str
        What the sample calls its id column; `row` for files without ids, whose rows are in the order of
        `order`. Of a file for a second look (`write_disagreements`) the answers replace the first ones, which
        stay in `Labels.replaced`.
    value : str, optional
        Column of the label; `label` or `verdict` unless given.
    positive : str, optional
        The label that counts as 1, and every other as 0; case does not matter.
    mapping : mapping of label to float, str or None, optional
        What labels count as: a number, the name of a class, or None for no answer.
    order : sequence (n,), optional
        The sample's ids, for rows without ids.

    Returns
    -------
    Labels
        Empty and skipped ones with value None.

    Raises
    ------
    InputError
        For no file, one that cannot be read, and for missing columns (naming near ones).

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "labels.csv"
    >>> _ = path.write_text("id,label\\na,Pass\\nb,\\n")
    >>> read_labels(path).values
    ('Pass', None)
    """
    if not paths:
        raise InputError("no file of labels is given", action="Give its path: read_labels('labels.csv').")
    read = [_read_one(Path(path), id_name, value, order) for path in paths]
    parts = [part for part in read if part is not None and part.replaced is None]
    if not parts:
        raise InputError(
            f"{paths[0]}: is a second look at labels, which are not given",
            action="Give the files of the first labels too, before it.",
        )
    labels = parts[0] if len(parts) == 1 else _together(parts)
    for part in read:
        if part is not None and part.replaced is not None:
            labels = _looked_again(labels, part, part.replaced)
    return replace(labels, positive=positive, mapping=mapping)


def _looked_again(labels: Labels, look: Labels, first: Labels) -> Labels:
    """Return labels of which those of a second look are replaced; `first` is what these were."""
    said: dict[str, list[str]] = {}
    for unit, answer in zip(labels.ids, labels.values, strict=True):
        if answer is not None:
            said.setdefault(unit, []).append(class_text(answer))
    changed = 0
    for row, (unit, before, after) in enumerate(zip(look.ids, first.values, look.values, strict=True)):
        if class_text(before) not in said.get(unit, ()):
            raise LabelError(
                f"{look.place(row)}: the first label of {unit!r} is not that of the labels",
                given=f"{before!r}, and {', '.join(map(repr, said.get(unit, ()))) or 'none'}",
                action="Give the labels from which the file was written.",
            )
        changed += class_text(before).casefold() != class_text(after).casefold()
    again = set(look.ids)
    gone = labels.only([row for row, unit in enumerate(labels.ids) if unit in again])
    kept = labels.only([row for row, unit in enumerate(labels.ids) if unit not in again])
    earlier = () if labels.replaced is None else (labels.replaced,)
    note = (
        f"in {changed} of {len(look.ids)} the first label was wrong; only items on which a judge and people "
        "differed were looked at again, which can only bring them closer"
    )
    note = f"second look ({look.source}): {note if look.ids else 'nothing is filled in yet'}"
    look = replace(look, annotators=kept.annotators and (ADJUDICATED,) * len(look.ids))
    return replace(
        _joined([kept, look]), notes=(*labels.notes, *look.notes, note), replaced=_joined([*earlier, gone])
    )


def _together(parts: Sequence[Labels]) -> Labels:
    """Return several files' labels as one, with their names as annotators where they answer for one unit."""
    said: tuple[str, ...] = ()
    answered = (
        {unit for unit, answer in zip(part.ids, part.values, strict=True) if answer is not None}
        for part in parts
    )
    overlap = max(Counter(chain.from_iterable(answered)).values(), default=0) > 1
    if overlap and not all(part.annotators for part in parts):
        names = [Path(part.source).name.split(".")[0] for part in parts]
        if len(set(names)) < len(names):
            names = [part.source for part in parts]
        parts = [
            part if part.annotators else replace(part, annotators=(name,) * len(part.ids))
            for part, name in zip(parts, names, strict=True)
        ]
        said = (f"annotators are taken from the files' names: {', '.join(names)}",)
    whole = _joined(parts)
    return replace(whole, notes=(*whole.notes, *said))


def _joined(parts: Sequence[Labels]) -> Labels:
    """Return the rows of some labels as one; who is not named where others are is nobody."""
    named = any(part.annotators for part in parts)
    people = (who for part in parts for who in part.annotators or ("",) * len(part.ids))
    return Labels(
        ids=tuple(unit for part in parts for unit in part.ids),
        values=tuple(answer for part in parts for answer in part.values),
        annotators=tuple(people) if named else None,
        places=tuple(part.place(row) for part in parts for row in range(len(part.ids))),
        notes=tuple(note for part in parts for note in part.notes),
    )


def _read_one(path: Path, id_name: str, value: str | None, order: Sequence[Any] | None) -> Labels | None:
    """Return the labels of a file; None of a second look at another column than this."""
    found = answers_of_tool(path) if value in (None, LABEL, VERDICT) else None
    if found is not None:
        return _of_tool(found, str(path))
    table = _of_drawn(SmallTable.of(path, str(path), (value or LABEL,)), order)
    if table.find(DIFFERS_FROM) is None:
        return label_rows(table, value, id_name, order)[0]
    name = value or table.find(*ANSWER_NAMES) or LABEL
    first = table.find(FIRST + name)
    if first is None:
        return None
    given = label_rows(table, name, id_name)[0]
    rows = [row for row, answer in enumerate(given.values) if answer is not None]
    before = replace(given, values=tuple(table.values(first))).only(rows)
    return replace(given.only(rows), replaced=before)


def _of_tool(found: Answers, source: str) -> Labels:
    """Return what annotators said in a tool, those who are not named as nobody."""
    refuse_empty(found, source)
    named = any(entry.annotator for entry in found.said)
    return Labels(
        ids=tuple(entry.id for entry in found.said),
        values=tuple(entry.value for entry in found.said),
        annotators=tuple(entry.annotator for entry in found.said) if named else None,
        places=tuple(entry.place.removeprefix(f"{source}, ") for entry in found.said),
        source=source,
        notes=found.notes,
    )


def _of_drawn(table: SmallTable, order: Sequence[Any] | None) -> SmallTable:
    """Return an evaluation tool's log without the units that were not drawn; any other table as it is."""
    if table.log is None or order is None:
        return table
    drawn = {id_text(entry) for entry in order}
    rows = [row for row, unit in enumerate(table.lists["id"]) if unit in drawn]
    if not rows:
        raise LabelError(
            f"{table.label}: none of its units was drawn",
            given=f"{table.lists['id'][0]!r}, …",
            allowed=f"ids of the sample: {order[0]!r}, …",
        )
    left = len(table) - len(rows)
    note = f"{table.label}: {left:,} units that were not drawn are left out"
    return replace(table.only(rows), notes=(*table.notes, *((note,) if left else ())))


def by_model(models: Labels, outcomes: Labels, wanted: tuple[str, ...] = ()) -> dict[str, Labels]:
    """Return the outcomes of each model, in the order in which the models first appear.

    Parameters
    ----------
    models : Labels
        The column of the models' names.
    outcomes : Labels
        The column of their outcomes, of the same rows.
    wanted : tuple of str
        The models to keep, in this order; all of them if empty.

    Raises
    ------
    LabelError
        For a model that is not there.

    Examples
    --------
    >>> models = Labels(ids=("1", "1", "2"), values=("new", "old", "new"))
    >>> found = by_model(models, Labels(ids=("1", "1", "2"), values=(1, 0, 1)))
    >>> {name: labels.values for name, labels in found.items()}
    {'new': (1, 1), 'old': (0,)}
    """
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(models.values):
        if name is not None:
            rows.setdefault(str(name), []).append(row)
    for name in wanted:
        if name not in rows:
            raise LabelError(f"{models.source}: no model is called {name!r}", allowed=near_names(name, rows))
    return {name: outcomes.only(rows[name]) for name in wanted or rows}
