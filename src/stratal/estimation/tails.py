"""Notes on tails: without bounds an interval speaks only of values like those that were labelled."""

from __future__ import annotations

import numpy as np

from stratal.arrays import FloatArray
from stratal.estimation.lam import ProxyMoments
from stratal.intervals.evidence import Evidence
from stratal.intervals.unseen import unseen_share
from stratal.weighting import ClusterWeighting
from stratal.weighting.stratum_moments import stratum_covariances

_SKEWED = 0.2
"""Skewness of an estimate from which Student's t misses one side twice as often as it says (exponential
outcomes, 100 labels)."""
_MISSED = 1.5
_LARGEST = 0.25
_RISK = 0.05
_TOGETHER = 0.3
"""Correlation of clusters' residuals with sizes from which the outcome counts as going with them."""
_SHIFTED = 0.25
"""Standard errors by which unequal clusters move a mean before that is worth a note."""
_MOST = 1000.0


def tail_notes(evidence: Evidence, proxy: ProxyMoments | None) -> tuple[str, ...]:
    """Return what is to be said of the tails of an outcome without bounds.

    Always how many units may be unlike any labelled one; where they show it, that one label decides the
    standard error, that the labels are skewed, and that the sample missed the tail that the proxy has.

    Examples
    --------
    >>> from stratal.weighting import StratifiedWeighting
    >>> z = np.array([0.0, 1.0, 0.0, 30.0])
    >>> weighting = StratifiedWeighting(stratum=np.zeros(4, dtype=int), sizes=np.array([100]))
    >>> evidence = Evidence(value=7.75, variance=55.0, population_part=0.0, degrees_of_freedom=3.0,
    ...     outcome="unbounded", bounds=None, z=z, residuals=z, known=0.0, weighting=weighting, tuned=False)
    >>> [note.split(":")[0] for note in tail_notes(evidence, None)]
    ['no bounds are known', 'one label makes up 75% of the variance', 'the labels are skewed']
    """
    if evidence.bounds is not None or evidence.census or not evidence.varies:
        return ()
    unseen = float(
        unseen_share(
            evidence.weighting.effective_draws, evidence.n / evidence.weighting.population_size, _RISK
        )
    )
    notes = [
        f"no bounds are known: up to {unseen:.1%} of the units may be unlike any labelled one, and no "
        "interval tells how far off they are; bounds=(lowest, highest) would"
    ]
    largest = _largest_share(evidence)
    if largest > _LARGEST:
        notes.append(
            f"one label makes up {largest:.0%} of the variance: the standard error is that label's, and "
            "samples without such a unit would show a smaller one"
        )
    if abs(evidence.skewness) > _SKEWED:
        side = "upwards" if evidence.skewness > 0 else "downwards"
        notes.append(
            f"the labels are skewed: the interval reaches further {side} for it, and covers less often than "
            "it says where the tail is longer than the labels show"
        )
    missed = _missed_tail(evidence, proxy)
    if missed > _MISSED:
        notes.append(
            f"the proxy's variance is {missed:.1f} times as large among all units as among the labelled "
            "ones: its tail was not drawn, and the outcome's may not have been either"
        )
    return tuple(notes)


def size_notes(evidence: Evidence) -> tuple[str, ...]:
    """Return what to say where the outcome goes with the size of its cluster, and the drawn sizes are off.

    Examples
    --------
    >>> from stratal.weighting import ClusterWeighting
    >>> drawn = np.repeat([1, 2, 4], 5)
    >>> z = np.repeat([0.0, 0.5, 1.0], [5, 10, 20])
    >>> cluster = np.repeat(np.arange(15), drawn)
    >>> weighting = ClusterWeighting(cluster=cluster, drawn=drawn, clusters=40, size=120)
    >>> evidence = Evidence(value=0.75, variance=0.02, population_part=0.0, degrees_of_freedom=2.0,
    ...     outcome="bounded", bounds=(0.0, 1.0), z=z, residuals=(z - 0.75) / weighting.total, known=0.75,
    ...     weighting=weighting, tuned=False)
    >>> size_notes(evidence)[0].split(":")[0]
    'the outcome goes with the size of its cluster, and the drawn clusters are smaller than all are (78%)'
    """
    weighting = evidence.weighting
    if weighting.groups is None or weighting.draws < 3 or not np.isfinite(evidence.variance):
        return ()
    notes = _trend(evidence)
    if not isinstance(weighting, ClusterWeighting) or weighting.squared_sizes is not None:
        return notes
    return (*notes, _NO_SQUARES) if np.ptp(weighting.drawn) > 0 and not evidence.census else notes


_NO_SQUARES = (
    "the sample does not hold the squared sizes of all clusters: if the outcome goes with the size, and the "
    "largest were not drawn, the interval covers less often than it says; a new draw with the same seed has "
    "them"
)


def _trend(evidence: Evidence) -> tuple[str, ...]:
    weighting, shift, further = evidence.weighting, evidence.size_shift, evidence.size_reach[0]
    off = evidence.z - weighting.weights @ evidence.z / weighting.total
    joint = weighting.covariance(np.column_stack([off, np.ones(evidence.n)]))
    # Two standard errors of a correlation of 0, so that chance is not taken for a trend.
    least = max(_TOGETHER**2, 4.0 / weighting.draws)
    if not joint[0, 1] ** 2 > least * joint[0, 0] * joint[1, 1]:
        return ()
    found = "the outcome goes with the size of its cluster, and "
    known = isinstance(weighting, ClusterWeighting) and weighting.squared_sizes is not None
    if max(abs(shift), abs(further)) <= _SHIFTED * np.sqrt(max(evidence.variance, 0.0)):
        if known or weighting.effective_draws > weighting.draws / 2:
            return ()
        return (
            f"{found}sizes differ so much that {weighting.draws} "
            f"clusters count for {weighting.effective_draws:.0f}: where the population has far larger ones, "
            "the interval covers less often than it says",
        )
    reach = further if abs(further) > abs(shift) else shift
    side = "up" if reach > 0 else "down"
    if isinstance(weighting, ClusterWeighting) and reach == further:
        drawn, every = weighting.seen_sizes
        return (
            f"{found}units are in clusters of {every:.3g} on average, those drawn in ones of {drawn:.3g}: "
            f"the interval reaches at least {abs(reach):.2g} further {side} for it",
        )
    total = weighting.total
    than = "smaller" if total < 1 else "larger"
    return (
        f"{found}the drawn clusters are {than} than all are ({total:.0%}): "
        f"the interval reaches {abs(reach):.2g} further {side} for it",
    )


def _largest_share(evidence: Evidence) -> float:
    weights = evidence.weighting.weights
    centred = evidence.residuals - weights @ evidence.residuals / weights.sum()
    squares = (weights * centred) ** 2
    return float(squares.max() / squares.sum()) if squares.sum() > 0 else 0.0


def _missed_tail(evidence: Evidence, proxy: ProxyMoments | None) -> float:
    """Return the variance of the mean proxy by its known spread, over that by the labelled units' own."""
    if proxy is None or proxy.means.shape[1] == 0 or not evidence.weighting.random_within_strata:
        return 0.0
    factors: FloatArray = evidence.weighting.variance_factors
    if len(factors) != len(proxy.sizes):
        return 0.0
    own = stratum_covariances(proxy.values, proxy.stratum, len(factors))
    usable, known = np.isfinite(own[:, 0, 0]), proxy.unbiased_covariances
    ratios = [0.0]
    for k in range(proxy.means.shape[1]):
        shown, whole = (float(factors[usable] @ part[usable, k, k]) for part in (own, known))
        if whole > 0:
            ratios.append(min(whole / shown, _MOST) if shown > 0 else _MOST)
    return max(ratios)
