"""Functions of a few shares of the population: the metrics that have an interval of shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from stratal.arrays import FloatArray, Number


class MetricOfShares(Protocol):
    """A metric of one class as a function of three shares of the units."""

    def __call__(self, hits: FloatArray, misses: FloatArray, answered: Number) -> FloatArray:
        """Return the metric at shares (…,) of hits, of misses, and of answers with the class."""

    def slopes(self, hits: Number, misses: Number, answered: Number) -> tuple[FloatArray, FloatArray]:
        """Return its slopes (…,) with respect to the hits and to the misses."""


@dataclass(frozen=True, slots=True)
class FirstShare:
    """The first share."""

    def __call__(self, shares: FloatArray) -> FloatArray:
        """Return the first of shares (1, …)."""
        return np.asarray(shares[0])[()]


@dataclass(frozen=True, slots=True)
class FirstOfTwo:
    """The first of two shares over their sum."""

    def __call__(self, shares: FloatArray) -> FloatArray:
        """Return the first of shares (2, …) divided by their sum; NaN if both are 0."""
        total = shares[0] + shares[1]
        return np.asarray(np.where(total > 0, shares[0] / np.where(total > 0, total, 1.0), np.nan))


def split_rates(rates: FloatArray, needs: tuple[bool, bool]) -> list[FloatArray]:
    """Return the rates (…,) of hits and of misses from rates (d, …); 0 for a rate that the metric lacks."""
    remaining_rates = iter(rates)
    return [next(remaining_rates) if is_needed else np.zeros(rates.shape[1:]) for is_needed in needs]


@dataclass(frozen=True, slots=True, kw_only=True)
class RatesOfClass:
    """A metric of a class as a function of the rates of this class among two kinds of units.

    The first rate is that among units answered with the class (hits), and the second that among other units
    (misses).

    Parameters
    ----------
    metric : MetricOfShares
    needs : (bool, bool)
        Whether the metric depends on hits and on misses. The arguments are only the rates that it needs.
    answered : float
        The share of units that are answered with the class. An additional last argument replaces it.
    """

    metric: MetricOfShares
    needs: tuple[bool, bool]
    answered: float

    def __call__(self, rates: FloatArray) -> FloatArray:
        """Return the metric at rates (d, …)."""
        hit, missed = split_rates(rates, self.needs)
        if len(rates) > sum(self.needs):
            answered = rates[-1]
        else:
            answered = np.full(rates.shape[1:], self.answered)
        return self.metric(hit * answered, missed * (1.0 - answered), answered)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellsOfClass:
    """A metric of two classes as a function of the three smaller cells of the confusion matrix.

    Parameters
    ----------
    metric : MetricOfShares
    largest : int
        The position of the largest cell in (hits, misses, false alarms, correct rejections).
    """

    metric: MetricOfShares
    largest: int

    def __call__(self, shares: FloatArray) -> FloatArray:
        """Return the metric at shares (3, …)."""
        largest_share = np.maximum(1.0 - shares.sum(axis=0), 0.0)
        # Limits of the shares may add up to more than 1.
        cells = np.insert(shares, self.largest, largest_share, axis=0) / (shares.sum(axis=0) + largest_share)
        return self.metric(cells[0], cells[1], cells[0] + cells[2])


# A function of shares (d, …) with values (…), NaN where it is undefined. Each kind is a record, so that an
# interval can be stored and compared.
ShareFunction = FirstShare | FirstOfTwo | RatesOfClass | CellsOfClass
