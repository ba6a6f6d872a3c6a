"""k-means on feature columns or embeddings: the rule of nearest centres, and its fit in batches."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray, equal_values, frozen
from stratal.errors import InputError, MissingExtraError
from stratal.strata.rule import Rule, in_chunks

Batches = Callable[[], Iterator[dict[str, AnyArray]]]
"""Starts a pass over the population: columns by name, some units at a time."""

PASSES = 3
"""Passes of mini-batch k-means over a population that does not fit into one batch."""

_SORT_KEYS = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NearestCentre(Rule):
    """The stratum of the nearest centre, by Euclidean distance of scaled columns.

    Parameters
    ----------
    names : tuple of str (d,)
        Numeric columns.
    centres : float (K, d)
        In the columns' own units.
    scale : float (d,)
        What each column is divided by before distances are taken; positive.

    Examples
    --------
    >>> rule = NearestCentre(names=("a", "b"), centres=np.array([[0.0, 0.0], [1.0, 1.0]]), scale=np.ones(2))
    >>> rule.assign({"a": np.array([0.9, 0.2]), "b": np.array([0.4, 0.1])})
    array([1, 0])
    >>> Rule.from_dict(rule.to_dict()) == rule
    True
    """

    kind: ClassVar[str] = "nearest-centre"
    names: tuple[str, ...]
    centres: FloatArray
    scale: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "centres", frozen(self.centres, np.float64))
        object.__setattr__(self, "scale", frozen(self.scale, np.float64))
        shapes = (self.centres.ndim, self.centres.shape[-1:], self.scale.shape)
        if shapes != (2, (len(self.names),), (len(self.names),)) or not np.all(self.scale > 0):
            raise InputError("centres need one coordinate per column, and scales must be positive")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NearestCentre):
            return NotImplemented
        return all(equal_values(getattr(self, name), getattr(other, name)) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    @property
    def columns(self) -> tuple[str, ...]:
        """The feature columns."""
        return self.names

    @property
    def n_strata(self) -> int:
        """One per centre."""
        return len(self.centres)

    def assign(self, columns: Mapping[str, AnyArray]) -> IntArray:
        """Return the number of the nearest centre (n,), the first of equally near ones."""
        middle = self.centres.mean(axis=0)
        centres = (self.centres - middle) / self.scale
        half = 0.5 * np.sum(centres**2, axis=1)

        def codes_of(part: slice) -> AnyArray:
            scaled = (_matrix(columns, self.names, part) - middle) / self.scale
            return np.asarray(np.argmax(scaled @ centres.T - half, axis=1))

        return in_chunks(codes_of, len(columns[self.names[0]]), self.n_strata)

    def to_dict(self) -> dict[str, Any]:
        """Return columns, centres and scale."""
        return {
            "kind": self.kind,
            "names": list(self.names),
            "centres": self.centres.tolist(),
            "scale": self.scale.tolist(),
        }

    @classmethod
    def parse(cls, fields: dict[str, Any]) -> Rule:
        """Return the rule."""
        return cls(
            names=tuple(fields["names"]), centres=np.array(fields["centres"]), scale=np.array(fields["scale"])
        )


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
        centres = _in_one_piece(_matrix(first, names) / scale, n_strata, seed)
    else:
        scale = _column_scales(batches, names, standardise)
        centres = _by_batches(batches, names, scale, n_strata, seed)
    return NearestCentre(names=names, centres=np.unique(centres, axis=0) * scale, scale=scale)


def _in_one_order(columns: Mapping[str, AnyArray], names: tuple[str, ...]) -> dict[str, AnyArray]:
    """Return the columns with their rows sorted, so that the order of the population's rows is irrelevant."""
    order = np.lexsort([np.asarray(columns[name]) for name in reversed(names[:_SORT_KEYS])])
    return {name: np.asarray(columns[name])[order] for name in names}


def _matrix(columns: Mapping[str, AnyArray], names: tuple[str, ...], part: slice = slice(None)) -> FloatArray:
    return np.stack([np.asarray(columns[name][part], np.float64) for name in names], axis=1)


def _column_scales(batches: Batches, names: tuple[str, ...], standardise: bool) -> FloatArray:
    """Return the standard deviation of each column (d,), ones where zero or not wanted; one pass, centred."""
    count, shift = 0, None
    firsts = squares = np.zeros(len(names))
    for batch in batches():
        matrix = _matrix(batch, names)
        if not np.isfinite(matrix).all():
            bad = names[int(np.flatnonzero(~np.isfinite(matrix).all(axis=0))[0])]
            raise InputError(f"feature column '{bad}' holds values that are not finite numbers")
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
                matrix = _matrix(batch, names) / scale
                if len(matrix) >= n_strata:
                    model.partial_fit(matrix)
    return np.asarray(model.cluster_centers_)


def _clusterer(name: str) -> Any:
    try:
        import sklearn.cluster
    except ImportError:
        raise MissingExtraError("scikit-learn", extra="learn") from None
    return getattr(sklearn.cluster, name)
