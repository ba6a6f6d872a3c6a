"""What a plan for several estimands is expected to give for each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from stratal.arrays import FloatArray
from stratal.intervals.proportion import student_quantile
from stratal.report import plain_dict
from stratal.strata import Strata
from stratal.strata.moments import expected_variance


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPart:
    """One of several estimands, and what the labels of a plan are expected to say of it.

    Parameters
    ----------
    estimand : str
    labels : int
        Those of strata in which its influence varies.
    expected_standard_error : float
    expected_half_width : float
        Of the interval at the plan's level, by the normal.
    wanted_half_width : float or None
    relative_efficiency : float
        Variance of as many labels of a simple random sample over the plan's.

    Examples
    --------
    >>> part = PlannedPart(estimand="mean@lang:de", labels=40, expected_standard_error=0.05,
    ...                    expected_half_width=0.1, wanted_half_width=None, relative_efficiency=1.4)
    >>> part.to_dict()["labels"]
    40
    """

    estimand: str
    labels: int
    expected_standard_error: float
    expected_half_width: float
    wanted_half_width: float | None
    relative_efficiency: float

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON twin; what is not finite is None."""
        return plain_dict(asdict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class InfluenceMoments:
    """Mean and mean square of J influences in H strata, each (J, H).

    Examples
    --------
    >>> InfluenceMoments(means=np.array([[1.0]]), squares=np.array([[5.0]])).deviations
    array([[2.]])
    """

    means: FloatArray
    squares: FloatArray

    @property
    def deviations(self) -> FloatArray:
        """The standard deviations (J, H)."""
        return np.asarray(np.sqrt(np.maximum(self.squares - self.means**2, 0.0)))

    def spreads(self, strata: Strata) -> FloatArray:
        """Return S_h of each influence (J, H), whose divisor is N_h − 1."""
        sizes = strata.sizes
        return np.asarray(self.deviations * np.sqrt(sizes / np.maximum(sizes - 1, 1)))

    def overall(self, strata: Strata) -> FloatArray:
        """Return the variance of each influence over all units (J,)."""
        shares = strata.weights
        return np.asarray(np.maximum(self.squares @ shares - (self.means @ shares) ** 2, 0.0))


def planned_parts(
    names: Sequence[str],
    moments: InfluenceMoments,
    strata: Strata,
    n_h: Any,
    wanted: FloatArray | None,
    confidence_level: float,
) -> tuple[PlannedPart, ...]:
    """Return a row for each of J estimands.

    Parameters
    ----------
    names : sequence of str (J,)
    moments : InfluenceMoments
    strata : Strata
    n_h : int (H,)
    wanted : float (J,), optional
    confidence_level : float

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 100)
    >>> strata = stratal.stratify(population, "none")
    >>> moments = InfluenceMoments(means=np.zeros((1, 1)), squares=np.ones((1, 1)))
    >>> part = planned_parts(["mean"], moments, strata, np.array([25]), None, 0.95)[0]
    >>> round(part.expected_standard_error, 4), round(part.relative_efficiency, 4), part.labels
    (0.1741, 1.0, 25)
    """
    normal = -float(student_quantile((1.0 - confidence_level) / 2.0, np.inf))
    left = 1.0 / int(np.sum(n_h)) - 1.0 / strata.size
    rows = []
    overall, every = moments.overall(strata), np.where(strata.is_known, 0.0, moments.deviations)
    for j, (name, deviations) in enumerate(zip(names, every, strict=True)):
        error = float(np.sqrt(expected_variance(strata.sizes, n_h, deviations**2)))
        random = float(overall[j]) * left * strata.size / max(strata.size - 1, 1)
        rows.append(
            PlannedPart(
                estimand=name,
                labels=int(n_h[deviations > 0].sum()),
                expected_standard_error=error,
                expected_half_width=normal * error,
                wanted_half_width=None if wanted is None else float(wanted[j]),
                relative_efficiency=random / error**2 if error > 0 else np.inf,
            )
        )
    return tuple(rows)
