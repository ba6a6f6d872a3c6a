"""What a plan took for granted, held against the labels: a note where they refute all of its ways.

A plan promises a width on the proxy's word, over ways in which the proxy may be off
(`stratal.strata.moments`). The sample's file carries the strata that they follow from, so that its labels
can be held against them: whether outcomes vary more than in the most cautious of the ways, whether their mean
lies beyond those of all of them, and whether they fall where the proxy rises.
"""

from __future__ import annotations

import math

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.errors import InputError
from stratal.estimation.estimand import as_estimand
from stratal.estimation.estimate import Estimate
from stratal.intervals.simultaneous import upper_tail
from stratal.sampling import SimpleRandom, Stratified
from stratal.sampling.sample import Sample
from stratal.strata import Everything, Strata
from stratal.strata.moments import CALIBRATION_SLOPE, Scenario, expected_variance, scenarios

ALARM = 0.02
"""Chance of each note where the plan is just right, at most; that of any is under 5 % (measured)."""

WIDER = 1.1
"""Times the promised standard error that is not worth a note."""

REFUTED = "the labels refute the plan"
"""What each note begins with."""

LEAST = 10
"""Labels below which nothing is said."""


def promise_notes(sample: Sample, labelled: BoolArray, found: Estimate) -> tuple[str, ...]:
    """Return what the labels refute of the plan; nothing for samples that no plan foretold.

    Parameters
    ----------
    sample : Sample
    labelled : bool (n,)
        The drawn units that the estimate used.
    found : Estimate

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.01] * 500 + [0.99] * 500)
    >>> sample = stratal.plan(population, budget=60, n_strata=2).draw(seed=7)
    >>> found = stratal.estimate(sample, [float(p < 0.5) for p in sample.proxies[:, 0]])
    >>> [note.split(":")[0] for note in promise_notes(sample, np.ones(60, dtype=bool), found)]
    ['the labels refute the plan']
    """
    strata, z = planned_strata(sample), found.evidence.z
    if strata is None or len(z) < LEAST or len(z) != int(labelled.sum()):
        return ()
    if strata.bounds != (found.bounds or (-math.inf, math.inf)):
        return ()
    stratum, ways = sample.stratum[labelled], scenarios(strata)
    proxy = sample.proxies[labelled, 0] if strata.n_strata == 1 else strata.proxy_means[stratum]
    said = (
        _mean_note(strata, ways, found),
        _spread_note(strata, ways, z, stratum),
        _direction_note(strata, z, stratum, proxy),
    )
    return tuple(f"{REFUTED}: {note}" for note in said if note is not None)


def planned_strata(sample: Sample) -> Strata | None:
    """Return the strata whose proxy foretold the outcome; None where none did, or where it is no mean.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5, 0.9])
    >>> planned_strata(stratal.SimpleRandom(budget=2).draw(population, seed=7)).proxy_means
    array([0.7])
    """
    asked = as_estimand(sample.estimand)
    if asked is not None and not asked.of_one_outcome:
        return None
    if isinstance(sample.design, Stratified):
        strata = sample.design.strata
        return strata if strata.scaled and np.all(np.isfinite(strata.proxy_means)) else None
    info = sample.proxy_info[0] if sample.proxy_info else None
    if not isinstance(sample.design, SimpleRandom) or info is None or not info.scaled or info.bounds is None:
        return None
    mean, variance = sample.summary.proxy_means[:, 0], sample.summary.proxy_covariances[:, 0, 0]
    low, high = info.bounds
    return Strata(
        rule=Everything(),
        names=("all",),
        sizes=sample.summary.sizes,
        proxy_means=mean,
        proxy_variances=variance,
        conditional_variances=np.maximum((mean - low) * (high - mean) - variance, 0.0),
        bounds=info.bounds,
    )


def _mean_note(strata: Strata, ways: Scenario, found: Estimate) -> str | None:
    """Return what is to be said of a mean beyond those of all ways; of outcomes with bounds alone."""
    if found.bounds is None:
        return None
    means = ways.means @ strata.weights
    low, high = float(means.min()), float(means.max())
    if low <= found.value <= high:
        return None
    try:
        interval = found.confidence_interval(1 - ALARM)
    except InputError:
        return None
    if interval.high >= low and interval.low <= high:
        return None
    return (
        f"the mean is {found.value:.3g}, where the plan expected {means[0]:.3g}, "
        f"and {low:.3g} to {high:.3g} in all the ways in which the proxy may be off. {_GO_ON}"
    )


def _spread_note(strata: Strata, ways: Scenario, z: FloatArray, stratum: IntArray) -> str | None:
    """Return what is to be said of outcomes that vary more than in the most cautious of the ways."""
    counts = np.bincount(stratum, minlength=strata.n_strata)
    told = counts >= 2
    n_h = np.where(told, counts, strata.sizes)  # a stratum that tells nothing has no part on either side
    promised = float(expected_variance(strata.sizes, n_h, ways.variances).max())
    squares, spread = _spreads(z, stratum, np.maximum(counts, 2))
    factors = strata.weights**2 * (1 - n_h / strata.sizes) / n_h
    seen, error = float(factors @ squares), math.sqrt(float(factors**2 @ spread))
    beyond = seen - WIDER**2 * promised
    if beyond <= 0 or error == 0:
        return None
    freedom = seen**2 / float((factors * squares) ** 2 @ (1 / (np.maximum(counts, 2) - 1)))
    if _tail(beyond / error, freedom) > ALARM:
        return None
    if math.isfinite(strata.bounds[1] - strata.bounds[0]):
        return (
            f"outcomes vary more, a standard error of {math.sqrt(seen):.3g} where at most "
            f"{math.sqrt(promised):.3g} was allowed for. {_GO_ON}"
        )
    wanted = math.sqrt(float(np.average(squares - strata.proxy_variances, weights=factors)))
    taken = math.sqrt(float(np.average(strata.conditional_variances, weights=factors)))
    return (
        f"outcomes vary by {wanted:.3g} about the proxy, where {taken:.3g} was taken, twice that at most. "
        f"Plan with residual_sd={wanted:.3g} (--residual-sd {wanted:.3g}). {_GO_ON}"
    )


def _spreads(z: FloatArray, stratum: IntArray, counts: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return s_h² (H,) and the variance of each, from its fourth moment; counts are at least 2."""
    size = len(counts)
    centred = z - (np.bincount(stratum, z, minlength=size) / counts)[stratum]
    second, fourth = (np.bincount(stratum, centred**power, minlength=size) / counts for power in (2, 4))
    spread = np.maximum(fourth - second**2 * (counts - 3) / (counts - 1), 0.0) / counts
    return second * counts / (counts - 1), spread


def _direction_note(strata: Strata, z: FloatArray, stratum: IntArray, proxy: FloatArray) -> str | None:
    """Return what is to be said of outcomes that fall where the proxy rises.

    Were there no slope, labels could be exchanged among units: that is the variance taken.
    """
    counts = np.bincount(stratum, minlength=strata.n_strata)
    weights = (strata.weights / np.maximum(counts, 1))[stratum]
    centred = weights * (proxy - np.average(proxy, weights=weights))
    square = float(centred @ (proxy - np.average(proxy, weights=weights)))
    error = float(np.std(z, ddof=1) * np.sqrt(np.sum((centred - centred.mean()) ** 2)))
    total = float(centred @ z) - float(centred.sum()) * float(z.mean())
    if square <= 0 or error == 0 or total >= 0:
        return None
    if _tail(-total / error, len(z) - 2.0) > ALARM / 4:
        return None
    return (
        f"outcomes fall where the proxy rises, with a slope of {total / square:.2g}, not "
        f"{CALIBRATION_SLOPE:g}. If it is the score of the opposite, turn it round (one minus it) and draw "
        "anew, or draw without strata (--stratify none)."
    )


def _tail(statistic: float, freedom: float) -> float:
    return float(upper_tail(np.array(statistic), np.array(freedom)))


_GO_ON = (
    "The estimate stands, the promised width does not: the labels say how many more are needed "
    "(next_round(…, half_width=), draw --extend … --half-width, extend)."
)
