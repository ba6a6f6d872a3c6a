"""Size measures of units, to which inclusion probabilities are proportional."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stratal.arrays import FloatArray, IntArray, Record
from stratal.population.expressions import ArrayEvaluator, Expression

# Share by which a proxy is shrunk towards the overall mean before it determines the variance of the outcome.
# A proxy of 0 or 1 may be wrong, and a unit of size 0 would never be drawn.
MEAN_SHRINKAGE = 0.2

# Number of steps into which the largest size in a sum is divided. All sizes are rounded to whole steps, so
# that their sums are exact integers.
SIZE_STEPS = 2.0**32


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeMeasure:
    """The definition of the size measure x of a unit.

    Parameters
    ----------
    kind : {"equal", "column", "sqrt-variance"}
        `equal`: 1. `column`: the value of a column. `sqrt-variance`: the square root of the plug-in variance
        of the outcome, with the proxy shrunk by `MEAN_SHRINKAGE`.
    column : str, optional
        A proxy or a feature; for `sqrt-variance`, the proxy.
    formula : Expression, optional
        A prediction of the outcome, instead of a proxy.
    uses_second_moments : bool
        Whether the variance is computed from the proxy's second moments instead of the outcome's bounds.
    centre : float
        Overall mean of the proxy (with second moments: of the variance), towards which it is shrunk.
    low, high : float
        Bounds of the outcome.
    """

    kind: str
    column: str | None = None
    formula: Expression | None = None
    uses_second_moments: bool = False
    centre: float = 0.0
    low: float = 0.0
    high: float = 1.0

    def evaluate(self, values: FloatArray, second_moments: FloatArray | None = None) -> FloatArray:
        """Return x (n,) from the column's values (n,) and, if they are used, its second moments (n,)."""
        return np.asarray(self.evaluate_with(ArrayEvaluator({}), values, second_moments))

    def evaluate_with(self, evaluator: ArrayEvaluator, values: Any, second_moments: Any) -> Any:
        """Return x computed from arrays or from columns of a table, with the operations of the evaluator."""
        if self.kind == "column":
            return values
        factor = evaluator.constant(1.0 - MEAN_SHRINKAGE)
        offset = evaluator.constant(MEAN_SHRINKAGE * self.centre)
        if self.uses_second_moments:
            variances = evaluator.at_least(second_moments - values * values, 0.0)
            return evaluator.apply("sqrt", variances * factor + offset)
        low = evaluator.constant(self.low)
        high = evaluator.constant(self.high)
        shrunk = values * factor + offset
        return evaluator.apply("sqrt", evaluator.at_least((shrunk - low) * (high - shrunk), 0.0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SizeProfile(Record):
    """Summary of the size measure of N units, from which inclusion probabilities are computed.

    Parameters
    ----------
    units : int
        Number of units, N.
    low : float
        Smallest size.
    largest : float (m,)
        The m largest sizes, in decreasing order.
    rest : float
        Sum of all other sizes; 0 if a size is not positive: the designs raise an error in this case.
    """

    units: int
    low: float
    largest: FloatArray
    rest: float

    @classmethod
    def of(cls, sizes: FloatArray, count: int) -> SizeProfile:
        """Return the profile of sizes (N,), with the `count` largest sizes in `largest`."""
        if count < len(sizes):
            top = np.partition(sizes, len(sizes) - count)[len(sizes) - count :]
        else:
            top = sizes
        largest = np.sort(top)[::-1]
        low = float(sizes.min())
        cap = float(largest[-1])
        # See `sum_of_other_sizes` for the limit.
        if low > 0:
            total = int(_round_to_steps(np.minimum(sizes, cap), cap).sum())
        else:
            total = 0
        return cls(units=len(sizes), low=low, largest=largest, rest=sum_of_other_sizes(total, cap, count))

    @property
    def high(self) -> float:
        """Largest size."""
        return float(self.largest[0])


def _round_to_steps(sizes: FloatArray, cap: float) -> IntArray:
    """Return sizes (n,) in steps of `cap / SIZE_STEPS`, rounded to the nearest integer."""
    return np.floor(sizes * (SIZE_STEPS / cap) + 0.5).astype(np.int64)


def sum_of_other_sizes(total: int, cap: float, count: int) -> float:
    """Return the sum of all sizes except the `count` largest, from exact integers.

    Parameters
    ----------
    total : int
        Sum of all sizes in steps, each limited to `cap`. The limit keeps the steps fine if some sizes are
        huge.
    cap : float
        The smallest of the `count` largest sizes.
    count : int
    """
    return max(int(total) - count * int(SIZE_STEPS), 0) * (cap / SIZE_STEPS)
