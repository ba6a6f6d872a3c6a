"""Difference, ratio and win rate of two models' outcomes on the same units, honest where few labels differ.

Two models that mostly tie leave little to see: a few wins, a loss or none. The win rate is ½ + ½ (share of
wins − share of losses), and its interval is made of those of the two shares ("MOVER", Zou & Donner 2008;
Newcombe 1998 for paired proportions), so that a loss which no label showed still counts. The ratio's interval
is Student's t on the logarithm, its variance with one unseen unit for either model, as Bonett & Price (2012)
add to a difference; `paired_differences` makes the difference.
"""

from __future__ import annotations

import numpy as np

from stratal.arrays import BoolArray, FloatArray
from stratal.estimation.evaluation import estimate_mean
from stratal.estimation.linearisation import of_variable, ratio_of_means
from stratal.estimation.paired import paired_differences, unseen_pair
from stratal.estimation.quantity import Parts, Quantity
from stratal.estimation.respondents import Respondents
from stratal.sampling.sample import Sample


def difference_of_models(
    first: FloatArray,
    second: FloatArray,
    frame: Respondents,
    target: str = "population",
    bounds: tuple[float, float] | None = None,
) -> Quantity:
    """Return the difference of two models' mean outcomes (n,) over the whole population.

    Parameters
    ----------
    first, second : float (n,)
    frame : Respondents
        The units that have both; in the units outside it the models do not differ.
    target : {"population", "superpopulation"}
    bounds : (float, float), optional
        What the outcomes cannot leave; without them nothing is known of a unit that was not seen.

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=8).draw(stratal.Population.from_arrays(proxy=[0.5] * 99), seed=7)
    >>> frame = Respondents.of(sample, np.ones(8, dtype=bool))
    >>> new, old = np.array([1.0, 1, 1, 1, 0, 1, 1, 1]), np.array([1.0, 1, 1, 0, 0, 1, 1, 1])
    >>> found = difference_of_models(new, old, frame, bounds=(0, 1))
    >>> found.value, [round(end, 2) for end in found.confidence_interval()]
    (0.125, [-0.34, 0.59])
    """
    most = None if bounds is None else frame.share * float(bounds[1] - bounds[0])
    contrast = frame.share * (first - second)
    found = paired_differences(contrast[:, None], frame.weighting, bound=most, target=target)
    return Quantity(
        value=float(found.values[0]),
        standard_error=float(found.standard_errors[0]),
        interval_error=float(found.interval_errors[0]),
        degrees_of_freedom=np.inf if found.census else float(found.degrees_of_freedom[0]),
        n=len(first),
        bounds=None if most is None else (-most, most),
        notes=frame.notes,
    )


def ratio_of_models(
    first: FloatArray,
    second: FloatArray,
    frame: Respondents,
    target: str = "population",
    bounds: tuple[float, float] | None = None,
) -> Quantity:
    """Return the ratio of two models' mean outcomes (n,); undefined where a mean is not positive.

    Parameters
    ----------
    first, second : float (n,)
    frame : Respondents
        The units that have both.
    target : {"population", "superpopulation"}
    bounds : (float, float), optional
        What the outcomes cannot leave; without them nothing is known of a unit that was not seen.

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=5).draw(stratal.Population.from_arrays(proxy=[0.5] * 99), seed=7)
    >>> frame = Respondents.of(sample, np.ones(5, dtype=bool))
    >>> new, old = np.array([1.0, 1, 1, 1, 0]), np.array([1.0, 1, 1, 0, 0])
    >>> [round(end, 2) for end in ratio_of_models(new, old, frame, bounds=(0, 1)).confidence_interval()]
    [0.35, 5.06]
    """
    weighting = frame.weighting
    result = ratio_of_means(first, second, weighting, target)
    if not (np.isfinite(result.value) and result.value > 0):
        return Quantity.undefined(len(first), None, "the mean outcome of a model is 0")
    hidden = 0.0
    if bounds is not None:
        low, high = bounds
        ends = np.array([high - result.value * low, low - result.value * high])
        hidden = unseen_pair(first - second, weighting, ends / float(weighting.mean(second[:, None])[0]))
    freedom = np.inf if weighting.census else max(result.degrees_of_freedom, 1.0)
    return Quantity(
        value=result.value,
        standard_error=result.standard_error,
        interval_error=float(np.sqrt(max(result.variance, 0.0) + hidden)),
        degrees_of_freedom=freedom,
        n=len(first),
        scale="log",
        notes=frame.notes,
    )


def win_rate(
    first: FloatArray, second: FloatArray, frame: Respondents, design: str, target: str = "population"
) -> Quantity:
    """Return the share of units on which the first outcome (n,) is larger, ties counting one half.

    Parameters
    ----------
    first, second : float (n,)
    frame : Respondents
        The units that have both; in the units outside it the models tie.
    design : str
        Kind of the design.
    target : {"population", "superpopulation"}

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=8).draw(stratal.Population.from_arrays(proxy=[0.5] * 99), seed=7)
    >>> frame = Respondents.of(sample, np.ones(8, dtype=bool))
    >>> new, old = np.array([1.0, 1, 1, 1, 0, 1, 1, 1]), np.array([1.0, 1, 1, 0, 0, 1, 1, 1])
    >>> found = win_rate(new, old, frame, "simple-random")
    >>> found.value, [round(end, 2) for end in found.confidence_interval()]
    (0.5625, [0.38, 0.75])
    """
    sides: tuple[BoolArray, BoolArray] = (first > second, first < second)
    wins, losses = (
        estimate_mean(
            side.astype(np.float64),
            np.zeros((len(side), 0)),
            frame.weighting,
            None,
            stratum=frame.stratum,
            target=target,
            outcome="binary",
            design=design,
        )
        for side in sides
    )
    half = 0.5 * frame.share
    value = 0.5 + half * (wins.value - losses.value)
    whole = of_variable(value, half * (sides[0] - 1.0 * sides[1]), frame.weighting, target)
    covariance = frame.weighting.covariance(np.column_stack(sides).astype(np.float64))
    own = np.diag(covariance)
    together = covariance[0, 1] / np.sqrt(own[0] * own[1]) if np.all(own > 0) else 0.0
    return Quantity(
        value=value,
        standard_error=whole.standard_error,
        degrees_of_freedom=max(whole.degrees_of_freedom, 1.0),
        n=len(first),
        bounds=(0.5 - half, 0.5 + half),
        parts=Parts(
            terms=(wins, losses),
            coefficients=np.array([half, -half]),
            correlation=np.array([[1.0, together], [together, 1.0]]),
        ),
        notes=frame.notes,
    )


def bounds_of_outcomes(sample: Sample, z: FloatArray) -> tuple[float, float] | None:
    """Return what the sample knows of the outcomes (n, k), if no label denies it; else 0 and 1 if all fit.

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=2).draw(stratal.Population.from_arrays(ids=range(9)), seed=7)
    >>> bounds_of_outcomes(sample, np.array([[0.0, 1.0], [0.5, 1.0]]))
    (0.0, 1.0)
    """
    known = sample.bounds
    if known is not None and np.all((z >= known[0]) & (z <= known[1])):
        return known
    halves = bool(np.all(np.isin(z, (0.0, 0.5, 1.0))))
    return (0.0, 1.0) if halves and sample.outcome != "unbounded" else None
