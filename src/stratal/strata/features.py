"""Clusters of feature columns or embeddings: k-means in batches, or any clusterer on some of the rows."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, FloatArray
from stratal.errors import InputError, MissingExtraError
from stratal.population.rules.centres import NearestCentre, feature_rows

Batches = Callable[[], Iterator[dict[str, AnyArray]]]
"""Starts a pass over the population: columns by name, some units at a time."""

PASSES = 3
"""Passes of mini-batch k-means over a population that does not fit into one batch."""

ROWS = 50_000
"""Rows that a clusterer of the user's own is fitted on, at most twice as many."""

_SORT_KEYS = 8


def fit_centres(
    batches: Batches, names: tuple[str, ...], n_strata: int, *, seed: int = 0, standardise: bool = True
) -> NearestCentre:
    """Fit k-means to feature columns, in one piece where the population is one batch, else by mini-batches.

    In one piece the order of the rows is irrelevant; mini-batches depend on it.

    Parameters
    ----------
    batches : callable
        Starts a pass over the population.
    names : tuple of str (d,)
        Numeric columns without missing values.
    n_strata : int
        Most centres; there are fewer where fewer units differ.
    seed : int
        Of the starting centres.
    standardise : bool
        Whether each column is divided by its standard deviation first. Turn it off for embeddings.

    Raises
    ------
    MissingExtraError
        If scikit-learn is not installed.

    Examples
    --------
    >>> columns = {"a": np.array([0.0, 0.1, 9.0, 9.1])}
    >>> fit_centres(lambda: iter([columns]), ("a",), 2).n_strata
    2
    """
    pieces = batches()
    first = next(pieces)
    if next(pieces, None) is None:
        first = _in_one_order(first, names)
        scale = _column_scales(lambda: iter([first]), names, standardise)
        centres = _in_one_piece(feature_rows(first, names) / scale, n_strata, seed)
    else:
        scale = _column_scales(batches, names, standardise)
        centres = _by_batches(batches, names, scale, n_strata, seed)
    return NearestCentre(names=names, centres=np.unique(centres, axis=0) * scale, scale=scale)


def fit_clusterer(
    batches: Batches, names: tuple[str, ...], clusterer: Any, *, standardise: bool = True
) -> NearestCentre:
    """Fit a clusterer to evenly spaced rows; every unit then belongs to the cluster with the nearest mean.

    So any clusterer gives a rule that a table can follow. k-means keeps its clusters as they are; others keep
    them where they are about round and of one size. Rows that it calls noise (−1) make no cluster.

    Parameters
    ----------
    batches : callable
        Starts a pass over the population.
    names : tuple of str (d,)
        Numeric columns without missing values.
    clusterer : object
        With scikit-learn's `fit_predict`, or `fit` and `predict`. It is copied, not changed.
    standardise : bool
        As in `fit_centres`.

    Raises
    ------
    InputError
        If the clusterer has neither, or finds no cluster.

    Examples
    --------
    >>> class Halves:
    ...     def fit_predict(self, rows):
    ...         return (rows[:, 0] > rows[:, 0].mean()).astype(int)
    >>> columns = {"a": np.array([0.0, 0.2, 9.0, 9.2])}
    >>> fit_clusterer(lambda: iter([columns]), ("a",), Halves()).centres.round(1).tolist()
    [[0.1], [9.1]]
    """
    scale = _column_scales(batches, names, standardise)
    rows = _spaced_rows(batches, names) / scale
    model = copy.deepcopy(clusterer)
    if hasattr(model, "fit_predict"):
        labels = model.fit_predict(rows)
    elif hasattr(model, "fit") and hasattr(model, "predict"):
        labels = model.fit(rows).predict(rows)
    else:
        raise InputError(
            "this clusterer cannot be fitted",
            given=type(clusterer).__name__,
            allowed="scikit-learn's fit_predict, or fit and predict",
        )
    labels = np.asarray(labels)
    found = [label for label in np.unique(labels) if label >= 0]
    if labels.shape != (len(rows),) or not found:
        raise InputError("the clusterer found no cluster", action="Change its settings.")
    centres = np.stack([rows[labels == label].mean(axis=0) for label in found])
    return NearestCentre(names=names, centres=np.unique(centres, axis=0) * scale, scale=scale)


def _spaced_rows(batches: Batches, names: tuple[str, ...]) -> FloatArray:
    """Return at most 2 `ROWS` evenly spaced rows; those of a single batch in an order of their own."""
    pieces = batches()
    first = next(pieces)
    second = next(pieces, None)
    if second is None:
        first = _in_one_order(first, names)
    held, stride, seen = np.empty((0, len(names))), 1, 0
    for batch in (first, *(() if second is None else (second,)), *pieces):
        matrix = feature_rows(batch, names)
        held = np.concatenate([held, matrix[-seen % stride :: stride]])
        seen += len(matrix)
        while len(held) > 2 * ROWS:
            held, stride = held[::2], 2 * stride
    return held


def _in_one_order(columns: Mapping[str, AnyArray], names: tuple[str, ...]) -> dict[str, AnyArray]:
    """Return the columns with their rows sorted, so that the order of the population's rows is irrelevant."""
    order = np.lexsort([np.asarray(columns[name]) for name in reversed(names[:_SORT_KEYS])])
    return {name: np.asarray(columns[name])[order] for name in names}


def _column_scales(batches: Batches, names: tuple[str, ...], standardise: bool) -> FloatArray:
    """Return the standard deviation of each column (d,), ones where zero or not wanted; one pass, centred."""
    count, shift = 0, None
    firsts = squares = np.zeros(len(names))
    for batch in batches():
        matrix = feature_rows(batch, names)
        if not np.isfinite(matrix).all():
            bad = names[int(np.flatnonzero(~np.isfinite(matrix).all(axis=0))[0])]
            raise InputError(
                f"feature column '{bad}' holds values that are not finite numbers",
                action="Fill the gaps in, or leave the column out of features=.",
            )
        shift = matrix[0] if shift is None else shift
        matrix -= shift
        count += len(matrix)
        firsts = firsts + matrix.sum(axis=0)
        squares = squares + np.einsum("nd,nd->d", matrix, matrix)
    if not standardise:
        return np.ones(len(names))
    variances = np.maximum(squares / count - (firsts / count) ** 2, 0.0)
    tiny = variances <= 1e-24 * np.maximum(squares / count, 1e-300)
    return np.asarray(np.where(tiny, 1.0, np.sqrt(variances)))


def _in_one_piece(matrix: FloatArray, n_strata: int, seed: int) -> FloatArray:
    distinct = len(np.unique(matrix, axis=0)) if len(matrix) <= 4096 else n_strata
    model = _clusterer("KMeans")(n_clusters=min(n_strata, distinct, len(matrix)), n_init=4, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # fewer distinct points than centres: duplicates are dropped by the caller
        return np.asarray(model.fit(matrix).cluster_centers_)


def _by_batches(
    batches: Batches, names: tuple[str, ...], scale: FloatArray, n_strata: int, seed: int
) -> FloatArray:
    model = _clusterer("MiniBatchKMeans")(n_clusters=n_strata, n_init=4, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(PASSES):
            for batch in batches():
                matrix = feature_rows(batch, names) / scale
                if len(matrix) >= n_strata:
                    model.partial_fit(matrix)
    return np.asarray(model.cluster_centers_)


def _clusterer(name: str) -> Any:
    try:
        import sklearn.cluster
    except ImportError:
        raise MissingExtraError("scikit-learn", extra="learn") from None
    return getattr(sklearn.cluster, name)
