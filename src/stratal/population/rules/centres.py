"""The rule of nearest centres: strata by k-means on feature columns or embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray
from stratal.errors import InputError
from stratal.population.rules.rule import Rule, in_chunks


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
        self._freeze()
        self._set(names=tuple(self.names))
        shapes = (self.centres.ndim, self.centres.shape[-1:], self.scale.shape)
        if shapes != (2, (len(self.names),), (len(self.names),)) or not np.all(self.scale > 0):
            raise InputError(
                "centres need one coordinate per column, and scales must be positive",
                action="Make such strata by stratal.stratify(population, 'features').",
            )

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
            scaled = (feature_rows(columns, self.names, part) - middle) / self.scale
            return np.asarray(np.argmax(scaled @ centres.T - half, axis=1))

        return in_chunks(codes_of, len(columns[self.names[0]]), self.n_strata)


def feature_rows(
    columns: Mapping[str, AnyArray], names: tuple[str, ...], part: slice = slice(None)
) -> FloatArray:
    """Return the named columns of a slice of the units as a matrix (n, d)."""
    return np.stack([np.asarray(columns[name][part], np.float64) for name in names], axis=1)
