"""Columns of the drawn units, in the order of `sample.ids`: kept ones by name, others joined by id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray
from stratal.errors import InputError, LabelError, near_names
from stratal.estimation.classes import answers_of, class_text
from stratal.labels.annotators import combine_answers
from stratal.labels.labels import Joined, Labels, join, shape_of
from stratal.labels.numbers import averaged
from stratal.sampling.asked import require_sample
from stratal.sampling.sample import Sample


def class_column(sample: Sample, given: Any, what: str) -> AnyArray:
    """Return a class for each drawn unit (n,) as text, None where there is none.

    Several answers of one unit give their majority; where there is a tie, none.

    Parameters
    ----------
    sample : Sample
    given : None, str, array (n,), mapping of id to class, Series, or Labels
        None is the sample's column of the model's answers, a text one of its group columns.
    what : str
        What the column is called in an error.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5], groups={"answer": ["cat", "dog"]})
    >>> sample = stratal.SimpleRandom(budget=2).draw(population, seed=7)
    >>> sorted(class_column(sample, "answer", "y_pred").tolist())
    ['cat', 'dog']
    >>> class_column(sample, {0: 1.0, 1: None}, "y_true")[sample.ids == 0].tolist()
    ['1']
    """
    require_sample(sample, "an estimate")
    if given is None:
        return np.array(answers_of(sample, True), dtype=object)
    if isinstance(given, str):
        return np.array(group_column(sample, given), dtype=object)
    _refuse_shapes(sample, given, what)
    joined = join(sample, given)
    pairs = zip(joined.values, joined.labelled, strict=True)
    return np.array([_majority(value) if labelled else None for value, labelled in pairs], dtype=object)


def group_column(sample: Sample, name: str) -> AnyArray:
    """Return a group column of the drawn units (n,).

    Raises
    ------
    InputError
        If the sample has no such column, naming near ones.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1], groups={"language": ["de"]})
    >>> group_column(stratal.SimpleRandom(budget=1).draw(population, seed=7), "language").tolist()
    ['de']
    """
    if name not in sample.groups:
        raise InputError(
            f"this sample has no group column {name!r}",
            allowed=near_names(name, sample.groups) or "none was kept",
            action="Draw with groups= (--groups COL), so that the column is kept.",
        )
    return np.asarray(sample.groups[name])


def with_group(sample: Sample, name: str, values: Any) -> Sample:
    """Return the sample with another group column; units without a value have the empty text.

    Parameters
    ----------
    sample : Sample
    name : str
        What the column is called.
    values : array (n,), mapping of id to class, Series, or Labels

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5])
    >>> sample = stratal.SimpleRandom(budget=2).draw(population, seed=7)
    >>> sorted(with_group(sample, "answer", {0: "cat", 1: "dog"}).groups["answer"].tolist())
    ['cat', 'dog']
    """
    column = class_column(sample, values, name)
    texts = np.array(["" if value is None else value for value in column], dtype=np.str_)
    return replace(sample, groups={**sample.groups, name: texts})


GIVEN = "answers given with the labels"
"""Name of the group column of answers that came with the labels."""


def split_answers(labels: Any) -> tuple[Any, Any]:
    """Return labels, and the model's answers where both were given: `{"label": …, "predicted": …}`."""
    if isinstance(labels, Mapping) and set(labels) == {"label", "predicted"}:
        return labels["label"], labels["predicted"]
    return labels, None


def number_column(sample: Sample, given: Any, what: str) -> FloatArray:
    """Return a number for each drawn unit (n,), NaN where there is none; several answers are averaged.

    Parameters
    ----------
    sample : Sample
    given : str, array (n,), mapping of id to number, Series, or Labels
        A text is the name of a proxy.
    what : str
        What the column is called in an error.

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=1).draw(stratal.Population.from_arrays(proxy=[0.25]), seed=7)
    >>> number_column(sample, "proxy", "score").tolist(), number_column(sample, [True], "z").tolist()
    ([0.25], [1.0])
    """
    require_sample(sample, "an estimate")
    if isinstance(given, str):
        if given not in sample.proxy_names:
            raise InputError(f"no such proxy: {given!r}", allowed=near_names(given, sample.proxy_names))
        return np.asarray(sample.proxies[:, sample.proxy_names.index(given)])
    _refuse_shapes(sample, given, what)
    joined = join(sample, given)
    numbers = np.full(sample.size, np.nan)
    numbers[joined.labelled] = averaged(joined.values[joined.labelled], what)
    return numbers


def number_columns(
    sample: Sample,
    variables: Mapping[str, Any],
    nobody: str = "no unit is labelled yet",
    allowed: str = "label",
) -> tuple[FloatArray, BoolArray]:
    """Return the variables (m, q) of the units that have all of them, and which those are (n,).

    Raises
    ------
    LabelError
        Where there is no such unit; `nobody` says so.

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=1).draw(stratal.Population.from_arrays(proxy=[0.25]), seed=7)
    >>> number_columns(sample, {"score": "proxy", "z": [1]})[0].tolist()
    [[0.25, 1.0]]
    """
    columns = np.column_stack([number_column(sample, given, name) for name, given in variables.items()])
    labelled = np.all(np.isfinite(columns), axis=1)
    if not np.any(labelled):
        raise LabelError(nobody, allowed=f"at least one {allowed}")
    return columns[labelled], labelled


def _refuse_shapes(sample: Sample, given: Any, what: str) -> None:
    if isinstance(given, Joined | Labels | Mapping) or hasattr(given, "index"):
        return
    shape = shape_of(given)
    if shape != (sample.size,):
        raise InputError(
            f"{what} must have one entry per drawn unit, in the order of sample.ids",
            given=f"shape {shape}",
            allowed=f"({sample.size},)",
            action="Give a mapping of id to value instead.",
        )


def _majority(value: Any) -> str | None:
    if not isinstance(value, tuple):
        return class_text(value)
    return combine_answers([class_text(entry) for entry in value])
