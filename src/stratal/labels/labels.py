"""`Labels`: what the annotators said, joined to the sample by id."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass, field, replace
from decimal import Decimal
from os import PathLike, fspath
from typing import Any, Protocol

import numpy as np

from stratal.arrays import AnyArray, BoolArray, Record, without_mask
from stratal.errors import LabelError, kind_of, names_mistyped
from stratal.labels.damaged_ids import matched
from stratal.labels.vocabulary import declared_meanings, never_given, spoken
from stratal.randomness import id_array, id_text, id_texts
from stratal.tables.small_table import is_missing, plain_text


class UnitRows(Protocol):
    """What labels are joined to: drawn units, in order; a `Sample` is one."""

    @property
    def ids(self) -> AnyArray:
        """Ids (n,)."""

    @property
    def size(self) -> int:
        """Units drawn, n."""

    @property
    def seed(self) -> int:
        """Seed of the draw, for error messages."""

    @property
    def id_name(self) -> str:
        """Name of the id column."""


SKIPPED = "skipped"
SUBMITTED = "submitted"
ADJUDICATED = "adjudicated"
"""The annotator of a label that was decided where people disagreed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Labels(Record):
    """One row per answer: which unit, what was said, by whom.

    Parameters
    ----------
    ids : tuple of str (m,)
        Ids as text; several answers of one unit need different annotators.
    values : tuple (m,)
        Numbers or text; None (or NaN, pandas' NA, a masked scalar, a blank) where the unit was skipped or is
        not labelled yet. A `Decimal` is a number.
    annotators : tuple of str (m,), optional
    places : tuple of str (m,), optional
        Where each answer was read from, for error messages: `line 7`.
    source : str
        Where the labels came from, for error messages.
    notes : tuple of str
        What was done to read them, to be said beside the estimate.
    bounds : (float, float), optional
        What no answer can leave, where words were mapped to numbers.
    replaced : Labels, optional
        What annotators had answered where a decision replaced it (rows of annotator `adjudicated`): no
        evidence of the outcome any more, but of how far people agree.

    Raises
    ------
    LabelError
        If there are not as many ids, values and annotators, and for a value that is a list, a dict or another
        container.

    Examples
    --------
    >>> Labels(ids=("a", "b"), values=(1.0, None)).answered
    1
    """

    ids: tuple[str, ...]
    values: tuple[Any, ...]
    annotators: tuple[str, ...] | None = None
    places: tuple[str, ...] | None = field(default=None, compare=False)
    source: str = field(default="labels", compare=False)
    notes: tuple[str, ...] = field(default=(), compare=False)
    bounds: tuple[float, float] | None = None
    replaced: Labels | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for name in ("ids", "values", "annotators"):
            given = getattr(self, name)
            if not isinstance(given, Sized) and (name, given) != ("annotators", None):
                raise LabelError(
                    f"{name} of labels must be a list",
                    given=kind_of(given),
                    action="Give one entry for each answer.",
                )
        self._set(ids=tuple(map(id_text, self.ids)))
        columns = (self.values, self.ids if self.annotators is None else self.annotators)
        lengths = [len(self.ids), *map(len, columns)]
        if len(set(lengths)) > 1:
            raise LabelError(
                "ids, values and annotators of labels must be as many",
                given=", ".join(map(str, lengths if self.annotators is not None else lengths[:2])),
                action="Give one id, one value and one annotator for each answer.",
            )
        self._set(values=tuple(self._value(row, entry) for row, entry in enumerate(self.values)))

    def _value(self, row: int, entry: Any) -> Any:
        """Return a value as plain Python has it, None where it is missing."""
        if isinstance(entry, str):
            return entry if entry.strip() else None
        if is_missing(entry):
            return None
        if isinstance(entry, np.generic) or (isinstance(entry, np.ndarray) and entry.ndim == 0):
            entry = entry.item()
        if isinstance(entry, Decimal):
            return float(entry)
        if isinstance(entry, Iterable | Sized) and not isinstance(entry, str | bytes):
            raise LabelError(
                f"{self.place(row)}: the label of id {self.ids[row]!r} is {kind_of(entry)}",
                given=reprlib.repr(entry),
                allowed="one number or text",
                action="Give one value for each answer; several annotators have a row each.",
            )
        return entry

    @property
    def answered(self) -> int:
        """Rows with a value."""
        return sum(value is not None for value in self.values)

    @names_mistyped
    def counted_as(
        self, *, positive: str | None = None, mapping: Mapping[str, float | None] | None = None
    ) -> Labels:
        """Return the labels as the numbers that the user says they stand for.

        Parameters
        ----------
        positive : str, optional
            The label that counts as 1, and every other as 0.
        mapping : mapping of label to float or None, optional
            What each label counts as; None is no label.

        Raises
        ------
        LabelError
            For a label that the mapping leaves out, if both or neither are given, and for a positive of
            another kind than the labels that are there.

        Examples
        --------
        >>> Labels(ids=("a", "b"), values=("good", "meh")).counted_as(positive="good").values
        (1.0, 0.0)
        """
        before = () if self.replaced is None else self.replaced.values
        texts = [plain_text(value) for value in (*self.values, *before)]
        numbers = declared_meanings([text for text in texts if text is not None], positive, mapping)
        if positive is not None and 1.0 not in numbers.values():
            said = never_given(positive, numbers)
        else:
            said = spoken(numbers)
        whole = [0.0, 1.0] if mapping is None else [n for n in mapping.values() if n is not None]
        values = tuple(None if text is None else numbers[text] for text in texts)
        count = len(self.values)
        return replace(
            self,
            values=values[:count],
            replaced=None if self.replaced is None else replace(self.replaced, values=values[count:]),
            notes=(*self.notes, said),
            bounds=(min(whole), max(whole)) if len(set(whole)) > 1 else None,
        )

    def place(self, row: int) -> str:
        """Return where an answer stands, for an error message."""
        return f"{self.source}, {self.places[row]}" if self.places else self.source


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Joined(Record):
    """Labels in the order of the sample.

    Parameters
    ----------
    values : (n,)
        The value of each unit, None (or NaN among numbers) where there is none. Several answers are a tuple.
    labelled : bool (n,)
    annotators : (n,)
        Who answered, as tuples; empty where nobody is named.
    notes : tuple of str
        What was done to read and to join them.
    bounds : (float, float), optional
        What no answer can leave, where that is known.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5])
    >>> sample = stratal.SimpleRandom(budget=2).draw(population, seed=7)
    >>> int(join(sample, {0: 1, 1: None}).labelled.sum())
    1
    """

    values: AnyArray
    labelled: BoolArray
    annotators: AnyArray
    notes: tuple[str, ...] = ()
    bounds: tuple[float, float] | None = None


def as_labels(labels: Any, sample: UnitRows) -> Labels:
    """Return labels of any accepted kind as `Labels`.

    Parameters
    ----------
    labels : Labels, mapping of id to value, pandas-like Series indexed by id, or array (n,)
        An array is in the order of `sample.ids`. NaN and None mean that there is no label.
    sample : Sample

    Raises
    ------
    LabelError
        If an array has not one entry per drawn unit.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5])
    >>> sample = stratal.SimpleRandom(budget=2).draw(population, seed=7)
    >>> as_labels({1: 0.0, 0: 1.0}, sample).ids
    ('1', '0')
    """
    if isinstance(labels, Labels):
        return labels
    if isinstance(labels, Mapping):
        return Labels(ids=_texts(list(labels)), values=tuple(labels.values()))
    if hasattr(labels, "columns"):
        raise LabelError(
            "labels cannot be a dataframe",
            allowed="a mapping of id to label, a Series indexed by id, an array in the order of sample.ids",
            action="Give dict(zip(frame['id'], frame['label'])).",
        )
    if hasattr(labels, "index") and not callable(labels.index) and hasattr(labels, "to_numpy"):
        return Labels(ids=_texts(list(labels.index)), values=tuple(labels.to_numpy().tolist()))
    if isinstance(labels, str | PathLike):
        path = fspath(labels)
        raise LabelError(
            "labels cannot be a path", given=repr(path), action=f"Read them: stratal.read_labels({path!r})."
        )
    shape = shape_of(labels)
    if shape != (sample.size,):
        raise LabelError(
            "an array of labels must have one entry per drawn unit, in the order of sample.ids",
            given=f"shape {shape}",
            allowed=f"({sample.size},)",
            action="Give one column of it: labels[:, 0]; columns of several models go to stratal.compare."
            if len(shape) > 1
            else "Give a mapping of id to label instead.",
        )
    return Labels(ids=tuple(id_texts(sample.ids)), values=tuple(without_mask(labels).tolist()))


def shape_of(given: Any) -> tuple[int, ...]:
    """Return the shape of an array, or that of a list whose rows are of different lengths: (n, -1).

    Examples
    --------
    >>> shape_of([[1, 0], [1, 1]]), shape_of([[1, 0], [1]])
    ((2, 2), (2, -1))
    """
    try:
        return np.shape(given)
    except ValueError:
        return (len(given), -1)


def with_ids_of(sample: UnitRows, labels: Any) -> Labels:
    """Return labels of any accepted kind with the sample's ids, where a spreadsheet changed them.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5], ids=["007", "x"])
    >>> sample = stratal.SimpleRandom(budget=2).draw(population, seed=7)
    >>> with_ids_of(sample, {"7": 1.0}).ids
    ('007',)
    """
    given = as_labels(labels, sample)
    ids, notes = matched(given.ids, given.annotators, set(id_texts(sample.ids)))
    return replace(given, ids=ids, notes=(*given.notes, *notes)) if notes else given


def join(sample: UnitRows, labels: Any) -> Joined:
    """Join labels to a sample by id.

    Parameters
    ----------
    sample : Sample
    labels : see `as_labels`
        Joined ones stay as they are.

    Raises
    ------
    LabelError
        For ids that are not in the sample, and for two answers of one unit by the same annotator (or by
        nobody named).

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5])
    >>> sample = stratal.SimpleRandom(budget=2).draw(population, seed=7)
    >>> join(sample, {5: 1.0})
    Traceback (most recent call last):
    stratal.errors.LabelError: labels: 1 id is not in this sample (first: '5')...
    """
    if isinstance(labels, Joined):
        return labels
    nobody = np.full(sample.size, None, object)
    if (
        isinstance(labels, np.ndarray)
        and not np.ma.is_masked(labels)
        and labels.dtype.kind in "biuf"
        and labels.shape == (sample.size,)
    ):
        numbers = labels.astype(np.float64)
        return Joined(values=numbers, labelled=~np.isnan(numbers), annotators=nobody)
    given = with_ids_of(sample, labels)
    position = {text: row for row, text in enumerate(id_texts(sample.ids))}
    _refuse_strangers(given, position, sample)
    _refuse_duplicates(given)
    values, annotators = nobody.copy(), nobody
    for row, (text, value) in enumerate(zip(given.ids, given.values, strict=True)):
        if value is None:
            continue
        unit = position[text]
        several = given.annotators is not None
        values[unit] = (*(values[unit] or ()), value) if several else value
        annotators[unit] = (*(annotators[unit] or ()), given.annotators[row]) if given.annotators else ()
    labelled = np.array([value is not None for value in values], dtype=bool)
    if given.annotators is not None and all(len(entry) == 1 for entry in values[labelled]):
        values[labelled] = [entry[0] for entry in values[labelled]]
    return Joined(
        values=values, labelled=labelled, annotators=annotators, notes=given.notes, bounds=given.bounds
    )


def _refuse_strangers(labels: Labels, position: Mapping[str, int], sample: UnitRows) -> None:
    strangers = [row for row, text in enumerate(labels.ids) if text not in position]
    if not strangers:
        return
    count = f"{len(strangers)} ids are" if len(strangers) > 1 else "1 id is"
    raise LabelError(
        f"{labels.place(strangers[0]) if labels.places else labels.source}: {count} not in this sample "
        f"(first: {labels.ids[strangers[0]]!r})",
        allowed=f"the {sample.size} drawn ids",
        action=f"Labels can only be joined to drawn units; check that they belong to this sample "
        f"(seed {sample.seed}). Where a spreadsheet changed the ids, format their column as text.",
    )


def _refuse_duplicates(labels: Labels) -> None:
    seen: set[tuple[str, str]] = set()
    for row, text in enumerate(labels.ids):
        who = labels.annotators[row] if labels.annotators else ""
        if (text, who) in seen:
            by = f" by annotator {who!r}" if who else ""
            raise LabelError(
                f"{labels.place(row)}: id {text!r} has two labels{by}",
                allowed="one label per unit and annotator",
                action="Keep one of them, or name the annotators in a column `annotator`; of several "
                "models name the column of theirs: --model COL.",
            )
        seen.add((text, who))


def _texts(ids: list[Any]) -> tuple[str, ...]:
    return tuple(id_texts(id_array(np.array(ids, dtype=object))) if ids else ())
