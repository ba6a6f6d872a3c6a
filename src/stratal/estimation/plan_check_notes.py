"""Notes on a mean: strata without labels, tails, clusters, and contradicted assumptions of the plan.

A plan states an expected width under several scenarios of the error of the proxy (`stratal.strata.strata`).
The file of the sample stores the strata from which the scenarios follow. The labels contradict them if
outcomes vary more than in the most conservative scenario, if their mean lies beyond the means of all
scenarios, or if outcomes decrease as the proxy increases.
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
from stratal.intervals.interval import UNSEEN_PROBABILITY, ConfidenceInterval, max_unseen_share
from stratal.intervals.methods import find_interval
from stratal.population.summary import StratumSummary
from stratal.report.notes import UNLIKE_CLUSTERS, Note
from stratal.strata import Strata
from stratal.strata.strata import CALIBRATION_SLOPE, Moments, Scenario, expected_variance

# Minimum skewness of an estimate for a note. The error of Student's t on one side is then twice the stated
# error (exponential outcomes, 100 labels).
_MIN_SKEWNESS = 0.2
# Minimum ratio of the variances of the proxy among all and among labelled units for a note. Intervals are
# then 18% too narrow if the outcome has the same tail.
_MIN_TAIL_RATIO = 1.5
# Maximum share of the variance that is due to one label without a note.
_MAX_SHARE_OF_LABEL = 0.25
# Minimum correlation of the residuals of clusters with their sizes for a note.
_MIN_SIZE_CORRELATION = 0.3
# Minimum number of standard errors by which cluster sizes move an end of the interval for a note.
_MIN_SHIFT = 0.25
# A larger ratio is infinite: the proxy is constant among the labelled units, apart from rounding errors.
_MAX_TAIL_RATIO = 1000.0

# Relative error of a proxy, whose moments are sums of rounded numbers.
_ROUNDING_ERROR = 1e-9


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
        The strata, whose proxy predicted the outcome.
    stratum : int (m,)
        Stratum of each labelled unit.
    proxy : float (m,)
        The proxy of each unit if there is one stratum, otherwise the mean proxy of its stratum.
    name : str
        Name of the proxy.
    drawn : bool
        Whether the units were drawn by a plan, which stated an expected width.
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
    """The data from which the notes of a mean are computed when they are read.

    Parameters
    ----------
    stratum : int (m,)
        Stratum of each labelled unit.
    proxies : float (m, k)
    summary : StratumSummary, optional
        None without a proxy.
    planned : PlannedOutcome, optional
    """

    stratum: IntArray
    proxies: FloatArray
    summary: StratumSummary | None = None
    planned: PlannedOutcome | None = None

    def of_outcome(self, estimate: EstimatedMean) -> tuple[Note, ...]:
        """Return the notes on a mean of outcomes: on its strata, tails and clusters."""
        evidence = estimate.evidence
        coded = {
            "empty-strata": empty_strata_notes(estimate.strata),
            "tails": tail_notes(evidence, self),
            "cluster-sizes": size_notes(evidence),
            UNLIKE_CLUSTERS: unlike_cluster_notes(evidence),
        }
        return tuple(Note(code, text) for code, texts in coded.items() for text in texts)

    def of_plan(self, estimate: EstimatedMean) -> tuple[Note, ...]:
        """Return the notes on assumptions of the plan that the labels contradict."""
        if self.planned is None:
            return ()
        return promise_notes(self.planned, estimate)


def empty_strata_notes(rows: tuple[StratumRow, ...]) -> tuple[str, ...]:
    """Return a note if strata have no labels."""
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
    """Return notes on the tails of an outcome without bounds; none for other outcomes.

    The first states how many units may be unlike any labelled one. Others follow if one label determines the
    variance, if the labels are skewed, and if the sample missed the tail of the proxy.
    """
    if evidence.bounds is not None or evidence.census or not evidence.varies:
        return ()
    weighting = evidence.weighting
    # A superpopulation is infinite, so that the labelled share is 0.
    if evidence.superpopulation:
        labelled_share = 0.0
    else:
        labelled_share = evidence.n / weighting.population_size
    unseen = max_unseen_share(weighting.effective_draws, labelled_share, UNSEEN_PROBABILITY)
    notes = [
        f"no bounds are known: up to {float(unseen):.1%} of the units may be unlike any labelled one, and no "
        "interval can allow for how different they are; if the outcome has bounds, state them: "
        "bounds=(lowest, highest)"
    ]
    weights = weighting.weights
    squares = (weights * (evidence.residuals - weights @ evidence.residuals / weights.sum())) ** 2
    if squares.max() > _MAX_SHARE_OF_LABEL * squares.sum():
        notes.append(
            f"one label accounts for {squares.max() / squares.sum():.0%} of the variance: the standard error "
            "depends on it, and would be smaller in samples without such a unit"
        )
    if abs(evidence.skewness) > _MIN_SKEWNESS:
        if evidence.skewness > 0:
            side = "upwards"
        else:
            side = "downwards"
        notes.append(
            f"the labels are skewed: the interval therefore extends further {side}, and it covers the true "
            "value less often than stated if the tail is longer than it seems from the labels"
        )
    tail_ratio = _tail_ratio(evidence, inputs)
    if tail_ratio > _MIN_TAIL_RATIO:
        notes.append(
            f"{_tail_text(tail_ratio)}: its tail was not drawn, and the tail of the outcome may also be "
            "missing"
        )
    return tuple(notes)


def size_notes(evidence: Evidence) -> tuple[str, ...]:
    """Return a note if the outcome varies with the size of its cluster, and this affects the interval."""
    weighting = evidence.weighting
    if weighting.unit_clusters is None or weighting.draws < 3 or not np.isfinite(evidence.variance):
        return ()
    deviations = evidence.z - weighting.weights @ evidence.z / weighting.total
    joint = weighting.covariance(np.column_stack([deviations, np.ones(evidence.n)]))
    # At least two standard errors of a correlation of 0, so that the correlation is not due to chance.
    min_squared_correlation = max(_MIN_SIZE_CORRELATION**2, 4.0 / weighting.draws)
    varies_with_size = joint[0, 1] ** 2 > min_squared_correlation * joint[0, 0] * joint[1, 1]
    shift = max(evidence.mean_size_correction, evidence.large_cluster_correction[0], key=abs)
    is_shifted = abs(shift) > _MIN_SHIFT * np.sqrt(max(evidence.variance, 0.0))
    has_unknown_sizes = weighting.lacks_cluster_sizes and not evidence.census
    if not varies_with_size or not (is_shifted or has_unknown_sizes):
        return ()
    side = "up" if shift > 0 else "down"
    consequences = []
    if is_shifted:
        consequences.append(f"therefore reaches {abs(shift):.2g} further {side}")
    if has_unknown_sizes:
        consequences.append(
            "covers the true value less often than stated if the population has far larger clusters"
        )
    return (f"the outcome varies with the size of its cluster: the interval {', and '.join(consequences)}",)


# Level of the intervals that are compared.
_COMPARED_LEVEL = 0.95

# Minimum ratio of widths for a note. With many clusters, the default interval is a little wider than t.
_MIN_WIDENING = 1.1


def unlike_cluster_notes(evidence: Evidence) -> tuple[str, ...]:
    """Return a note if the default interval is wider because other clusters may be unlike the drawn ones."""
    if evidence.weighting.unit_clusters is None or evidence.bounds is None or evidence.linearised:
        return ()
    # With fewer than two clusters, Student's t is not available for comparison.
    if evidence.census or not evidence.varies or evidence.weighting.draws < 2:
        return ()
    default_width = _interval_width(evidence, "auto")
    width_of_two_errors = 4.0 * np.sqrt(evidence.variance)
    if not default_width > _MIN_WIDENING * max(_interval_width(evidence, "t"), width_of_two_errors):
        return ()
    return (
        "the interval 'auto' allows for clusters unlike all that were drawn, and is therefore wider than ± 2 "
        "standard errors; 'survey' does not allow for them",
    )


def _interval_width(evidence: Evidence, method: str) -> float:
    """Return the width of the two-sided interval by a method, at the compared level."""
    low, high = find_interval(evidence, method).ends(_COMPARED_LEVEL, "two-sided")
    return float(high - low)


def _tail_text(ratio: float) -> str:
    """Return the text on the ratio of the variances of the proxy among all and among labelled units."""
    if np.isinf(ratio):
        return "the proxy hardly varies among the labelled units of a stratum, but it does among all units"
    return f"the proxy's variance is {ratio:,.1f} times as large among all units as among the labelled units"


def _tail_ratio(evidence: Evidence, inputs: NoteInputs) -> float:
    """Return the largest ratio of the variances of a proxy among all and among labelled units.

    The ratio is 0 without a proxy, and infinite from `_MAX_TAIL_RATIO` on.
    """
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
        labelled_variance = float(factors[usable] @ labelled_covariances[usable, k, k])
        population_variance = float(factors[usable] @ summary.unbiased_covariances[usable, k, k])
        rounding_error = _ROUNDING_ERROR * float(np.max(np.abs(inputs.proxies[:, k])))
        if population_variance <= float(factors[usable].sum()) * rounding_error**2:
            continue
        ratio = np.inf
        if population_variance < _MAX_TAIL_RATIO * labelled_variance:
            ratio = population_variance / labelled_variance
        ratios.append(ratio)
    return max(ratios)


# Maximum probability of each note if an assumption of the plan is exactly correct. The measured probability
# of any note is then below 5%.
NOTE_PROBABILITY = 0.02

# Maximum ratio of the standard error to the expected one without a note: a slightly larger one is usual.
MAX_ERROR_RATIO = 1.1

# Beginning of each note on a plan.
REFUTED = "the labels contradict the plan"

# Minimum number of labels for a note: the fourth moments of fewer are mostly noise.
MIN_LABELS_OF_A_NOTE = 10


def promise_notes(planned: PlannedOutcome, estimate: EstimatedMean) -> tuple[Note, ...]:
    """Return notes on contradicted assumptions of the plan; none if the labels have other bounds or units."""
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
    """Return the strata of a sample that was planned for a mean, with the moments of its proxy, or None."""
    strata = sample.design.strata
    if strata is not None:
        if strata.scaled and np.all(np.isfinite(strata.proxy_means)):
            return strata
        return None
    info = sample.proxy_info[0] if sample.proxy_info else None
    if not sample.design.allows_label_based_rounds or info is None or not info.scaled or info.bounds is None:
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
    return Strata.from_moments(moments, bounds=info.bounds)


def _mean_note(strata: Strata, scenarios: Scenario, estimate: EstimatedMean) -> str | None:
    """Return a note on a mean beyond those of all scenarios, for an outcome with bounds."""
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
        # Without an interval, nothing contradicts the plan.
        return None
    if interval.high >= low and interval.low <= high:
        return None
    return (
        f"the mean is {estimate.value:.3g}, but the plan expected {means[0]:.3g}, and between {low:.3g} and "
        f"{high:.3g} even for a poor proxy. {_NEXT_STEP}"
    )


def _spread_note(strata: Strata, scenarios: Scenario, z: FloatArray, stratum: IntArray) -> str | None:
    """Return a note on outcomes that vary more than in the most conservative scenario."""
    counts = np.bincount(stratum, minlength=strata.n_strata)
    # A stratum with fewer than two labels has no variance. With n_h = N_h, its contribution to both is 0.
    n_h = np.where(counts >= 2, counts, strata.sizes)
    planned_variance = float(expected_variance(strata.sizes, n_h, scenarios.variances).max())
    labels = np.maximum(counts, 2)
    size = strata.n_strata
    centred = z - (np.bincount(stratum, z, minlength=size) / labels)[stratum]
    second = np.bincount(stratum, centred**2, minlength=size) / labels
    fourth = np.bincount(stratum, centred**4, minlength=size) / labels
    # s_h² (H,), and the variance of each s_h² from its fourth moment.
    stratum_variances = second * labels / (labels - 1)
    squared_errors = np.maximum(fourth - second**2 * (labels - 3) / (labels - 1), 0.0) / labels
    factors = strata.weights**2 * (1 - n_h / strata.sizes) / n_h
    variance = float(factors @ stratum_variances)
    error = math.sqrt(float(factors**2 @ squared_errors))
    excess = variance - MAX_ERROR_RATIO**2 * planned_variance
    if excess <= 0 or error == 0:
        return None
    df = variance**2 / float((factors * stratum_variances) ** 2 @ (1 / (labels - 1)))
    if stdtr(df, -excess / error) > NOTE_PROBABILITY:
        return None
    if math.isfinite(strata.bounds[1] - strata.bounds[0]):
        return (
            f"outcomes vary more than planned: the standard error is {math.sqrt(variance):.3g}, but the "
            f"plan allowed for at most {math.sqrt(planned_variance):.3g}. {_NEXT_STEP}"
        )
    residual_sd = math.sqrt(float(np.average(stratum_variances - strata.proxy_variances, weights=factors)))
    planned_sd = math.sqrt(float(np.average(strata.conditional_variances, weights=factors)))
    return (
        f"the standard deviation of outcomes about the proxy is {residual_sd:.3g}, but the plan assumed "
        f"{planned_sd:.3g}, and at most twice this value. Plan with residual_sd={residual_sd:.3g} "
        f"(--residual-sd {residual_sd:.3g}). {_NEXT_STEP}"
    )


def _slope_note(planned: PlannedOutcome, z: FloatArray) -> str | None:
    """Return a note on outcomes that decrease as the proxy increases."""
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
        f"the outcome falls as {planned.name!r} rises (slope {slope:.2g}). Check what the score is for. If "
        "it is for the opposite outcome, use one minus the score. If it is for a class, use predicts= "
        f"(--predicts {quote(planned.name)}=class:CLASS). It is also possible that the scores belong to "
        "other units"
    )


def falling_slope(weights: FloatArray, z: FloatArray, proxy: FloatArray) -> float | None:
    """Return the slope of outcomes on a proxy if it is significantly below 0, otherwise None.

    Weights, outcomes and proxy (m,) are those of the labelled units. The variance is that of random exchanges
    of labels among units, which are equally likely if the slope is 0.
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


_NEXT_STEP = (
    "The estimate is still valid, but the promised width no longer applies. Use the labels to compute how "
    "many more are needed (next_round(…, half_width=), draw --extend … --half-width, extend)."
)
