"""Compare a plan's assumptions with the labels: a note where the labels contradict all of its scenarios.

A plan promises a width on the proxy's word, over ways in which the proxy may be off
(`stratal.strata.strata`). The sample's file carries the strata that they follow from, so that its labels
can be held against them: whether outcomes vary more than in the most conservative of the ways, whether their
mean lies beyond those of all of them, and whether they fall where the proxy rises.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from shlex import quote
from typing import Protocol

import numpy as np
from scipy.special import stdtr

from stratal.arrays import BoolArray, FloatArray, IntArray, Record
from stratal.designs.sample import Sample
from stratal.designs.stratum_moments import stratum_covariances
from stratal.errors import InputError
from stratal.estimation.stratum_table import StratumRow
from stratal.intervals.evidence import Evidence
from stratal.intervals.interval import ConfidenceInterval, unseen_share
from stratal.population.summary import StratumSummary
from stratal.report.notes import Note
from stratal.strata import Strata
from stratal.strata.strata import CALIBRATION_SLOPE, Moments, Scenario, expected_variance

# Skewness of an estimate from which Student's t misses one side twice as often as it says (exponential
# outcomes, 100 labels).
_SKEWED = 0.2
_MISSED = 1.5
_LARGEST = 0.25
_RISK = 0.05
# Correlation of clusters' residuals with sizes from which the outcome counts as going with them.
_TOGETHER = 0.3
# Standard errors by which unequal clusters move a mean before that is worth a note.
_SHIFTED = 0.25
_MOST = 1000.0


class EstimatedMean(Protocol):
    """The attributes of an `Estimate` that notes need."""

    @property
    def value(self) -> float:
        """The estimated mean."""

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The bounds of the outcome."""

    @property
    def evidence(self) -> Evidence:
        """Arrays of the labelled units."""

    @property
    def strata(self) -> tuple[StratumRow, ...]:
        """The strata table."""

    def confidence_interval(self, confidence_level: float = 0.95) -> ConfidenceInterval:
        """Return the interval."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlannedOutcome(Record):
    """A plan's expectations of the outcome, with the labelled units that it can be compared with.

    Parameters
    ----------
    strata : Strata
        Whose proxy foretold the outcome.
    stratum : int (m,)
        Of the labelled units.
    proxy : float (m,)
        That strata are ordered by: the units' own where there is one stratum, else their stratum's mean.
    name : str
        Of the proxy.
    drawn : bool
        Whether the units were drawn by a plan, which promised a width.
    """

    strata: Strata
    stratum: IntArray
    proxy: FloatArray
    name: str
    drawn: bool

    @classmethod
    def of(cls, sample: Sample, labelled: BoolArray) -> PlannedOutcome | None:
        """Return the plan of a sample's mean, and which of its units (n,) are labelled; None without one."""
        strata = planned_strata(sample)
        stratum = sample.stratum[labelled]
        if strata is None:
            return None
        by_unit = strata.n_strata == 1
        if by_unit:
            proxy = sample.proxies[labelled, 0]
        else:
            proxy = strata.proxy_means[stratum]
        return cls(
            strata=strata,
            stratum=stratum,
            proxy=proxy,
            name=sample.proxy_names[0],
            drawn=not sample.declared_random,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoteInputs(Record):
    """The data from which the notes of a mean are computed when they are read: arrays of units and strata.

    Parameters
    ----------
    stratum : int (m,)
        Of the labelled units.
    proxies : float (m, k)
    summary : StratumSummary, optional
        None where there is no proxy.
    planned : PlannedOutcome, optional
    """

    stratum: IntArray
    proxies: FloatArray
    summary: StratumSummary | None = None
    planned: PlannedOutcome | None = None

    def of_outcome(self, estimate: EstimatedMean) -> tuple[Note, ...]:
        """Return what is to be said of a mean of outcomes: its strata, tails and clusters."""
        evidence = estimate.evidence
        of_tails = tuple[str, ...]()
        if evidence.bounds is None:
            of_tails = tail_notes(evidence, self)
        coded = {
            "empty-strata": empty_strata_notes(estimate.strata),
            "tails": of_tails,
            "cluster-sizes": size_notes(evidence),
        }
        return tuple(Note(code, text) for code, texts in coded.items() for text in texts)

    def of_plan(self, estimate: EstimatedMean) -> tuple[Note, ...]:
        """Return what the labels refute of the plan."""
        if self.planned is None:
            return ()
        return promise_notes(self.planned, estimate)


def empty_strata_notes(rows: tuple[StratumRow, ...]) -> tuple[str, ...]:
    """Return a note where strata have no labels."""
    empty = [row for row in rows if row.n == 0]
    if not empty:
        return ()
    share = sum(row.weight for row in empty)
    named = ", ".join(repr(row.name) for row in empty[:3])
    return (
        f"{len(empty)} strata without labels ({named}; {share:.1%} of the units) are assumed to be like "
        "the others",
    )


def tail_notes(evidence: Evidence, inputs: NoteInputs) -> tuple[str, ...]:
    """Return what is to be said of the tails of an outcome without bounds.

    Always how many units may be unlike any labelled one; where they show it, that one label decides the
    variance, that the labels are skewed, and that the sample missed the tail that the proxy has.
    """
    if evidence.bounds is not None or evidence.census or not evidence.varies:
        return ()
    weighting = evidence.weighting
    # Of a superpopulation no part is labelled, however many of its units are at hand.
    if evidence.superpopulation:
        labelled_share = 0.0
    else:
        labelled_share = evidence.n / weighting.population_size
    unseen = unseen_share(weighting.effective_draws, labelled_share, _RISK)
    notes = [
        f"no bounds are known: up to {float(unseen):.1%} of the units may be unlike any labelled one, and no "
        "interval can show how far off they are; bounds=(lowest, highest) would limit this"
    ]
    weights = weighting.weights
    squares = (weights * (evidence.residuals - weights @ evidence.residuals / weights.sum())) ** 2
    if squares.max() > _LARGEST * squares.sum():
        notes.append(
            f"one label accounts for {squares.max() / squares.sum():.0%} of the variance: the standard error "
            "depends on it, and would be smaller in samples without such a unit"
        )
    if abs(evidence.skewness) > _SKEWED:
        if evidence.skewness > 0:
            side = "upwards"
        else:
            side = "downwards"
        notes.append(
            f"the labels are skewed: the interval therefore extends further {side}, and covers the true "
            "value less often than stated if the tail is longer than the labels show"
        )
    missed = _missed_tail(evidence, inputs)
    if missed > _MISSED:
        notes.append(
            f"the proxy's variance is {missed:.1f} times as large among all units as among the labelled "
            "ones: its tail was not drawn, and the tail of the outcome may also be missing"
        )
    return tuple(notes)


def size_notes(evidence: Evidence) -> tuple[str, ...]:
    """Return what to say where the outcome goes with the size of its cluster, and the drawn sizes are off."""
    weighting = evidence.weighting
    if weighting.groups is None or weighting.draws < 3 or not np.isfinite(evidence.variance):
        return ()
    off = evidence.z - weighting.weights @ evidence.z / weighting.total
    joint = weighting.covariance(np.column_stack([off, np.ones(evidence.n)]))
    # Two standard errors of a correlation of 0, so that chance is not taken for a trend.
    least = max(_TOGETHER**2, 4.0 / weighting.draws)
    reach = max(evidence.mean_size_correction, evidence.large_cluster_correction[0], key=abs)
    moved = abs(reach) > _SHIFTED * np.sqrt(max(evidence.variance, 0.0))
    unknown = weighting.lacks_cluster_sizes and not evidence.census
    if not joint[0, 1] ** 2 > least * joint[0, 0] * joint[1, 1] or not (moved or unknown):
        return ()
    side = "up" if reach > 0 else "down"
    consequences = []
    if moved:
        consequences.append(f"therefore reaches {abs(reach):.2g} further {side}")
    if unknown:
        consequences.append("covers less often than stated if the population has far larger clusters")
    return (f"the outcome varies with the size of its cluster: the interval {', and '.join(consequences)}",)


def _missed_tail(evidence: Evidence, inputs: NoteInputs) -> float:
    """Return the variance of the mean proxy by its known spread, over that by the labelled units' own."""
    summary = inputs.summary
    if summary is None or inputs.proxies.shape[1] == 0 or not evidence.weighting.random_within_strata:
        return 0.0
    factors: FloatArray = evidence.weighting.variance_factors
    if len(factors) != len(summary.sizes):
        return 0.0
    labelled_covariances = stratum_covariances(inputs.proxies, inputs.stratum, len(factors))
    usable = np.isfinite(labelled_covariances[:, 0, 0])
    ratios = [0.0]
    for k in range(inputs.proxies.shape[1]):
        labelled_variance, population_variance = (
            float(factors[usable] @ covariances[usable, k, k])
            for covariances in (labelled_covariances, summary.unbiased_covariances)
        )
        if population_variance > 0:
            if labelled_variance > 0:
                ratio = population_variance / labelled_variance
            else:
                ratio = _MOST
            ratios.append(min(ratio, _MOST))
    return max(ratios)


# Chance of each note where the plan is just right, at most; that of any is under 5% (measured).
NOTE_PROBABILITY = 0.02

# Times the promised standard error that is not worth a note.
WIDER = 1.1

# What each note begins with.
REFUTED = "the labels contradict the plan"

# Labels below which nothing is said.
MIN_LABELS_OF_A_NOTE = 10


def promise_notes(planned: PlannedOutcome, estimate: EstimatedMean) -> tuple[Note, ...]:
    """Return what the labels refute of the plan; nothing where these are not the labels that it is of."""
    strata = planned.strata
    stratum = planned.stratum
    z = estimate.evidence.z
    if len(z) < MIN_LABELS_OF_A_NOTE or len(z) != len(stratum):
        return ()
    if strata.bounds != (estimate.bounds or (-math.inf, math.inf)):
        return ()
    scenarios = strata.scenarios
    refuted = [_slope_note(planned, z)]
    if planned.drawn:
        mean_note = _mean_note(strata, scenarios, estimate)
        spread_note = _spread_note(strata, scenarios, z, stratum)
        refuted = [mean_note, spread_note, *refuted]
    if planned.drawn:
        code = "plan-refuted"
        beginning = REFUTED
    else:
        code = "score-refuted"
        beginning = "the labels contradict a score"
    return tuple(Note(code, f"{beginning}: {note}") for note in refuted if note is not None)


def planned_strata(sample: Sample) -> Strata | None:
    """Return the strata whose proxy predicted the outcome, in a sample planned for a mean; else None."""
    strata = sample.design.strata
    if strata is not None:
        if strata.scaled and np.all(np.isfinite(strata.proxy_means)):
            return strata
        return None
    info = sample.proxy_info[0] if sample.proxy_info else None
    if not sample.design.rounds_by_labels or info is None or not info.scaled or info.bounds is None:
        return None
    mean = sample.summary.proxy_means[:, 0]
    variance = sample.summary.proxy_covariances[:, 0, 0]
    low, high = info.bounds
    moments = Moments(
        sizes=sample.summary.sizes,
        proxy_means=mean,
        proxy_variances=variance,
        conditional_variances=np.maximum((mean - low) * (high - mean) - variance, 0.0),
    )
    return Strata.of(moments, bounds=info.bounds)


def _mean_note(strata: Strata, scenarios: Scenario, estimate: EstimatedMean) -> str | None:
    """Return what is to be said of a mean beyond those of all ways; of outcomes with bounds alone."""
    if estimate.bounds is None:
        return None
    means = scenarios.means @ strata.weights
    low = float(means.min())
    high = float(means.max())
    if low <= estimate.value <= high:
        return None
    try:
        interval = estimate.confidence_interval(1 - NOTE_PROBABILITY)
    except InputError:
        return None
    if interval.high >= low and interval.low <= high:
        return None
    return (
        f"the mean is {estimate.value:.3g}, but the plan expected {means[0]:.3g}, and between {low:.3g} and "
        f"{high:.3g} even for a poor proxy. {_GO_ON}"
    )


def _spread_note(strata: Strata, scenarios: Scenario, z: FloatArray, stratum: IntArray) -> str | None:
    """Return what to say about outcomes that vary more than in the most conservative of the ways."""
    counts = np.bincount(stratum, minlength=strata.n_strata)
    observed = counts >= 2
    n_h = np.where(observed, counts, strata.sizes)  # a stratum that tells nothing has no part on either side
    promised = float(expected_variance(strata.sizes, n_h, scenarios.variances).max())
    labels = np.maximum(counts, 2)
    size = strata.n_strata
    centred = z - (np.bincount(stratum, z, minlength=size) / labels)[stratum]
    second, fourth = (np.bincount(stratum, centred**power, minlength=size) / labels for power in (2, 4))
    # s_h² (H,) and the variance of each, from its fourth moment.
    squares = second * labels / (labels - 1)
    spread = np.maximum(fourth - second**2 * (labels - 3) / (labels - 1), 0.0) / labels
    factors = strata.weights**2 * (1 - n_h / strata.sizes) / n_h
    variance = float(factors @ squares)
    error = math.sqrt(float(factors**2 @ spread))
    beyond = variance - WIDER**2 * promised
    if beyond <= 0 or error == 0:
        return None
    freedom = variance**2 / float((factors * squares) ** 2 @ (1 / (labels - 1)))
    if stdtr(freedom, -beyond / error) > NOTE_PROBABILITY:
        return None
    if math.isfinite(strata.bounds[1] - strata.bounds[0]):
        return (
            f"outcomes vary more than planned: the standard error is {math.sqrt(variance):.3g}, but the "
            f"plan allowed for at most {math.sqrt(promised):.3g}. {_GO_ON}"
        )
    residual_sd = math.sqrt(float(np.average(squares - strata.proxy_variances, weights=factors)))
    planned_sd = math.sqrt(float(np.average(strata.conditional_variances, weights=factors)))
    return (
        f"the standard deviation of outcomes about the proxy is {residual_sd:.3g}, but {planned_sd:.3g} was "
        "assumed, and at most twice as much. "
        f"Plan with residual_sd={residual_sd:.3g} (--residual-sd {residual_sd:.3g}). {_GO_ON}"
    )


def _slope_note(planned: PlannedOutcome, z: FloatArray) -> str | None:
    """Return what to say about outcomes that fall where the proxy rises."""
    strata = planned.strata
    counts = np.bincount(planned.stratum, minlength=strata.n_strata)
    weights = (strata.weights / np.maximum(counts, 1))[planned.stratum]
    slope = falling_slope(weights, z, planned.proxy)
    if slope is None:
        return None
    if strata.n_strata > 1:
        return (
            f"outcomes fall as the proxy rises, with a slope of {slope:.2g}, not "
            f"{CALIBRATION_SLOPE:g}. If the proxy scores the opposite outcome, reverse it (one minus the "
            "proxy) and draw again, or draw without strata (--stratify none)."
        )
    return (
        f"the outcome falls as {planned.name!r} rises (slope {slope:.2g}). Check that this is not the "
        "score of the opposite outcome (then use one minus the score), of a class (then predicts= "
        f"(--predicts {quote(planned.name)}=class:CLASS)) or of other units"
    )


def falling_slope(weights: FloatArray, z: FloatArray, proxy: FloatArray) -> float | None:
    """Return the slope of outcomes on a proxy where it is below 0 by more than chance, else None.

    Weights, outcomes and proxy (m,) are of the labelled units. If there were no slope, labels could be
    exchanged among units: that is the variance taken.
    """
    distances = proxy - np.average(proxy, weights=weights)
    centred = weights * distances
    square = float(centred @ distances)
    error = float(np.std(z, ddof=1) * np.sqrt(np.sum((centred - centred.mean()) ** 2)))
    total = float(centred @ z) - float(centred.sum()) * float(z.mean())
    if square <= 0 or error == 0 or total >= 0:
        return None
    if stdtr(len(z) - 2.0, total / error) > NOTE_PROBABILITY / 4:
        return None
    return total / square


_GO_ON = (
    "The estimate is still valid, but the promised width no longer applies. Use the labels to compute how "
    "many more are needed (next_round(…, half_width=), draw --extend … --half-width, extend)."
)
