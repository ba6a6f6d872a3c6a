"""The strata table of an estimate: sizes, labels, and mean and spread of the outcome in each stratum."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray, plain_fields
from stratal.designs.stratum_moments import stratum_counts, stratum_covariances, stratum_means
from stratal.protocols import JsonDict


@dataclass(frozen=True, slots=True, kw_only=True)
class StratumRow:
    """One row of the strata table of an estimate.

    `mean` and `standard_deviation` are None if there are too few labels.
    """

    name: str
    size: int
    n: int
    mean: float | None
    standard_deviation: float | None
    weight: float
    lam: tuple[float, ...]

    def to_dict(self) -> JsonDict:
        """Return a plain dict."""
        return plain_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class StratumTable:
    """The data of an estimate's table of strata, which is computed when it is read.

    Parameters
    ----------
    names : tuple of str (H,), optional
        Default: numbers.
    sizes : int (H,) or float (1,)
        N_h; only N for an estimator that uses no strata.
    stratum : int (n,)
        Stratum of each labelled unit.
    lam : float (H, k) or (1, k)
    z : float (n,), optional
        The outcomes whose mean and standard deviation are shown.
    """

    names: tuple[str, ...] | None = None
    sizes: AnyArray
    stratum: IntArray
    lam: FloatArray = field(default_factory=lambda: np.zeros((1, 0)))
    z: FloatArray | None = None

    def rows(self) -> tuple[StratumRow, ...]:
        """Return one row per stratum, with the mean and standard deviation of its labels."""
        n_strata = len(self.sizes)
        # With N alone, the numbers and names of the strata of the design do not apply.
        if n_strata > 1:
            stratum = self.stratum
        else:
            stratum = np.zeros(len(self.stratum), dtype=np.int64)
        moments = np.full((2, n_strata), np.nan)
        if self.z is not None:
            moments[0] = stratum_means(self.z[:, None], stratum, n_strata)[:, 0]
            moments[1] = np.sqrt(stratum_covariances(self.z[:, None], stratum, n_strata)[:, 0, 0])
        means_and_deviations = moments.astype(object)
        means_and_deviations[~np.isfinite(moments)] = None
        columns = (
            self.sizes,
            stratum_counts(stratum, n_strata),
            *means_and_deviations,
            self.sizes / np.sum(self.sizes),
            np.broadcast_to(self.lam, (n_strata, self.lam.shape[1])),
        )
        return tuple(
            StratumRow(
                name=name,
                size=round(size),
                n=n,
                mean=mean,
                standard_deviation=standard_deviation,
                weight=weight,
                lam=tuple(lam),
            )
            for name, size, n, mean, standard_deviation, weight, lam in zip(
                self._stratum_names(n_strata), *(column.tolist() for column in columns), strict=True
            )
        )

    def _stratum_names(self, n_strata: int) -> tuple[str, ...]:
        """Return the name of each stratum; numbers if there are no names for these strata."""
        if self.names is not None and len(self.names) == n_strata:
            return self.names
        if n_strata == 1:
            return ("all",)
        return tuple(map(str, range(n_strata)))
