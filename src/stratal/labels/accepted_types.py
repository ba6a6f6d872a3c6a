"""Conversion of the accepted types of labels to `Labels`: mappings, Series and arrays."""

from __future__ import annotations

from collections.abc import KeysView, Mapping
from dataclasses import replace
from os import PathLike, fspath
from typing import Any, TypeGuard

import numpy as np

from stratal.arrays import without_mask
from stratal.errors import LabelError
from stratal.labels.labels import Labels, SampleLike
from stratal.labels.spreadsheet_ids import restore_spreadsheet_ids
from stratal.protocols import WithColumns, WithIndex
from stratal.randomness import id_texts


def as_labels(labels: object, sample: SampleLike, array_name: str = "an array of labels") -> Labels:
    """Convert labels of any accepted type to `Labels`.

    Parameters
    ----------
    labels : Labels, mapping of id to value, pandas-like Series indexed by id, or array (n,)
        An array is in the order of `sample.ids`. NaN and None mean that there is no label.
    sample : Sample
    array_name : str
        Name of an array in error messages.

    Raises
    ------
    LabelError
        For an array without exactly one entry per drawn unit, a dataframe and a path.
    """
    if isinstance(labels, Labels):
        return labels
    if isinstance(labels, Mapping):
        return Labels(ids=tuple(labels), values=tuple(labels.values()))
    if isinstance(labels, WithColumns):
        allowed = (
            "a mapping from ids to labels, a Series indexed by id, or an array in the order of sample.ids"
        )
        action = "Give dict(zip(frame['id'], frame['label']))."
        raise LabelError("labels cannot be a dataframe", allowed=allowed, action=action)
    if is_indexed(labels):
        return Labels(ids=tuple(labels.index), values=tuple(labels.to_numpy().tolist()))
    if isinstance(labels, str | PathLike):
        path = repr(fspath(labels))
        raise LabelError(
            "labels cannot be a path", given=path, action=f"Read the file first: stratal.read_labels({path})."
        )
    shape = array_shape(labels)
    if shape != (sample.size,):
        problem = f"{array_name} must have one entry per drawn unit, in the order of sample.ids"
        action = "Give a mapping from ids to labels instead."
        if len(shape) > 1:
            action = (
                "Give one column of the array: labels[:, 0]; for columns of several models, use "
                "stratal.compare."
            )
        raise LabelError(problem, given=f"shape {shape}", allowed=f"({sample.size},)", action=action)
    return Labels(ids=tuple(id_texts(sample.ids)), values=tuple(without_mask(labels).tolist()))


def is_indexed(labels: object) -> TypeGuard[WithIndex]:
    """Return whether labels are indexed like a Series. The `index` of a list is a method instead."""
    return isinstance(labels, WithIndex) and not callable(labels.index)


def array_shape(values: Any) -> tuple[int, ...]:
    """Return the shape of an array; a list whose rows have different lengths has the shape (n, -1)."""
    try:
        return np.shape(values)
    except ValueError:
        return (len(values), -1)


def labels_with_sample_ids(
    sample: SampleLike,
    labels: object,
    array_name: str = "an array of labels",
    sample_ids: KeysView[str] | None = None,
) -> Labels:
    """Convert labels to `Labels` with the sample's declarations, and restore ids that a spreadsheet changed.

    `sample_ids` are the ids of the sample as texts, in its order, if the caller has converted them.
    """
    unit_labels = as_labels(labels, sample, array_name)
    outcome = sample.question.outcome
    if unit_labels.positive is None and unit_labels.mapping is None:
        unit_labels = replace(unit_labels, positive=outcome.positive, mapping=outcome.mapping)
    if sample_ids is None:
        sample_ids = dict.fromkeys(id_texts(sample.ids)).keys()
    if are_in_sample_order(unit_labels, sample_ids) or sample_ids >= set(unit_labels.ids):
        return unit_labels
    ids, notes = restore_spreadsheet_ids(unit_labels.ids, unit_labels.annotators, sample_ids)
    if notes:
        return replace(unit_labels, ids=ids, notes=(*unit_labels.notes, *notes))
    return unit_labels


def are_in_sample_order(labels: Labels, sample_ids: KeysView[str]) -> bool:
    """Return whether there is one label for each drawn unit, in the order of the sample, as in most files."""
    return labels.annotators is None and labels.ids == tuple(sample_ids)
