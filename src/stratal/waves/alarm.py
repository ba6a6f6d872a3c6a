"""`Alarm`: whether a level was missed, or fell, in any wave, with a bound on false alarms over all waves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray, code_count, unit_scale
from stratal.errors import InputError
from stratal.estimation.requirement import Requirement
from stratal.labels.joined_labels import join_labels
from stratal.protocols import JsonDict, Keywords
from stratal.randomness import id_texts
from stratal.report.text import json_dict
from stratal.report.verdicts import ALARM, NO_ALARM, UNDECIDED
from stratal.waves.changes import have_same_items
from stratal.waves.e_process import (
    EFFECTS,
    centred_rates,
    expected_variances,
    log_e_process,
    log_e_values,
    smoothed_rates,
)
from stratal.waves.wave import Wave

# Requirements that limit a fall below, or a rise above, the level of the reference waves.
FELL = "fell"
ROSE = "rose"

# Distance of the possible levels of the reference, as a share of the outcome's range. For a level between two
# of them, a bet against the larger one and a bet against the smaller one are combined: see `fall_process`.
_LEVEL_STEP = 0.002

# With fewer labels of earlier waves, the slope of the outcome on the score is 0.
_MIN_LABELS_FOR_SLOPE = 20

# Smallest ratio of the predicted variance to that of outcomes 0 and 1. If earlier labels happen to be nearly
# equal, a smaller ratio would make the stakes too large.
_MIN_VARIANCE_RATIO = 0.1

# An e-value that equals the threshold except for rounding raises the alarm.
_THRESHOLD_TOLERANCE = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """The verdict on a requirement of all waves.

    Parameters
    ----------
    requirement : str
    verdict : {"ALARM", "NO ALARM", "UNDECIDED"}
        UNDECIDED while no wave is tested.
    wave : str, optional
        The wave in which the alarm began.
    reference : tuple of str
        Waves from which a fall or rise is measured; empty for a level.
    waves : tuple of str
        Waves that were tested.
    e_values : tuple of float
        The e-process after each of these waves.
    threshold : float
        The alarm begins when it is reached.
    error : float
        Largest probability of a false alarm in any number of waves.
    exact : bool
        Whether that bound is proved for the designs of all waves.
    """

    requirement: str
    verdict: str
    wave: str | None
    reference: tuple[str, ...]
    waves: tuple[str, ...]
    e_values: tuple[float, ...]
    threshold: float
    error: float
    exact: bool

    def to_dict(self) -> JsonDict:
        """Return a JSON-ready dict."""
        return json_dict(asdict(self))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WaveOutcomes:
    """The labels of a wave on a scale from 0, the worst outcome, to 1.

    Parameters
    ----------
    name : str
    outcomes : float (n,)
    weights : float (n,)
        Design weights, which include 1/N.
    stratum : int (n,)
    shares : float (H,)
        W_h.
    draw : int (n,)
        Index of the independent draw of each unit: one per unit, or one per cluster.
    scores : float (n,), optional
        The first proxy.
    score_means : float (H,), optional
        Its means over the population of each stratum.
    score_range : (float, float, float), optional
        Its lowest possible value, its mean over the population, and its highest possible value; None if the
        proxy has no bounds.
    exact : bool
        Whether the bound on false alarms is proved for the design.
    groups : (n,), optional
        The group of each unit.
    group_shares : mapping of str to float
        Share of the population in each group; groups of unknown size are left out.
    effect : float
        Factor of `EFFECTS`, the falls for which the bets grow fastest: the share of the group, because a fall
        in a group changes the mean of all units by this share of it.
    """

    name: str
    outcomes: FloatArray
    weights: FloatArray
    stratum: IntArray
    shares: FloatArray
    draw: IntArray
    scores: FloatArray | None
    score_means: FloatArray | None
    score_range: tuple[float, float, float] | None
    exact: bool
    groups: AnyArray | None = None
    group_shares: Mapping[str, float] = field(default_factory=dict)
    effect: float = 1.0

    def of_group(self, group: str, level: float) -> WaveOutcomes:
        """Return the wave with the level as outcome of all units outside a group.

        The mean of these outcomes is below the level exactly if the mean of the group is. The e-value is
        therefore exact for any strata, even if the size of the group in each stratum is unknown.
        """
        if self.groups is None:
            members: BoolArray = np.zeros(len(self.outcomes), dtype=bool)
        else:
            members = self.groups == group
        return replace(
            self,
            outcomes=np.where(members, self.outcomes, level),
            scores=None,
            score_means=None,
            score_range=None,
            effect=self.group_shares.get(group, 1.0),
        )

    @property
    def mirrored(self) -> WaveOutcomes:
        """The wave with the outcomes 1 − z, in which an upper limit of the level is a lower limit."""
        changes: Keywords = {"outcomes": 1.0 - self.outcomes}
        if self.scores is not None and self.score_means is not None:
            changes |= {"scores": -self.scores, "score_means": -self.score_means}
        if self.score_range is not None:
            low, mean, high = self.score_range
            changes["score_range"] = (-high, -mean, -low)
        return replace(self, **changes)

    def by_draw(self, values: FloatArray) -> FloatArray:
        """Return sums of values (…, n) over independent draws (…, J)."""
        draws = code_count(self.draw)
        if draws == len(self.draw):
            return values
        return values @ np.eye(draws)[self.draw]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prediction:
    """Prediction of the outcomes of a wave from earlier waves.

    Parameters
    ----------
    rates : float (H,)
        Expected outcome of each stratum.
    slope : float
        Expected change of the outcome with the score within a stratum; 0 unless there is one stratum.
    variance_ratio : float
        Variance around the prediction, divided by the variance of outcomes 0 and 1 with the same means.
    """

    rates: FloatArray
    slope: float
    variance_ratio: float


def predict_outcomes(earlier: Sequence[WaveOutcomes], wave: WaveOutcomes) -> Prediction:
    """Return the prediction of a wave's outcomes from earlier waves; for the first wave, from its score.

    The prediction uses no label of the wave, and only population means of its scores: the e-value is exact
    only if the prediction does not depend on the units that were drawn.
    """
    n_strata = len(wave.shares)
    totals: FloatArray = np.zeros(n_strata)
    n_labels: FloatArray = np.zeros(n_strata)
    if not earlier:
        prior = np.full(n_strata, 0.5)
        if wave.score_means is not None and wave.score_range is not None:
            low, _, high = wave.score_range
            prior = unit_scale(wave.score_means, (low, high))
        return Prediction(rates=smoothed_rates(totals, n_labels, prior), slope=0.0, variance_ratio=1.0)
    outcomes = np.concatenate([earlier_wave.outcomes for earlier_wave in earlier])
    mean = float(outcomes.mean())
    prior = np.full(n_strata, mean)
    scores = [earlier_wave.scores for earlier_wave in earlier if earlier_wave.scores is not None]
    slope = 0.0
    if wave.score_means is not None and len(scores) == len(earlier):
        earlier_scores = np.concatenate(scores)
        slope = _fit_slope(earlier_scores, outcomes)
        prior = np.clip(mean + slope * (wave.score_means - earlier_scores.mean()), 0.0, 1.0)
        # Strata differ from wave to wave: an earlier label counts for the stratum whose mean score is nearest
        # to the score of its unit.
        nearest = np.argmin(np.abs(earlier_scores[:, None] - wave.score_means), axis=1)
        is_nearest = np.equal.outer(nearest, np.arange(n_strata)).astype(np.float64)
        totals = outcomes @ is_nearest
        n_labels = is_nearest.sum(axis=0)
    elif n_strata == 1:
        totals = np.array([outcomes.sum()])
        n_labels = np.array([float(len(outcomes))])
    # Strata use the differences of the score already, and without bounds the largest loss is unknown.
    if n_strata > 1 or wave.score_range is None:
        slope = 0.0
    rates = smoothed_rates(totals, n_labels, prior)
    return Prediction(rates=rates, slope=slope, variance_ratio=_variance_ratio(outcomes, mean))


def _fit_slope(scores: FloatArray, outcomes: FloatArray) -> float:
    """Return the least-squares slope of outcomes on scores (m,); 0 with few labels."""
    score_variance = float(scores.var())
    if score_variance <= 0 or len(scores) < _MIN_LABELS_FOR_SLOPE:
        return 0.0
    return float(np.mean((scores - scores.mean()) * (outcomes - outcomes.mean())) / score_variance)


def _variance_ratio(outcomes: FloatArray, mean: float) -> float:
    """Return the variance of earlier outcomes divided by that of outcomes 0 and 1 with the same mean."""
    binary_variance = mean * (1.0 - mean)
    if binary_variance <= 0:
        return 1.0
    # One further label with the variance of outcomes 0 and 1 keeps the ratio of few labels near 1.
    squared_deviations = outcomes.var() * len(outcomes) + binary_variance
    ratio = squared_deviations / (binary_variance * (len(outcomes) + 1))
    return float(np.clip(ratio, _MIN_VARIANCE_RATIO, 1.0))


def wave_log_e_values(wave: WaveOutcomes, prediction: Prediction, levels: FloatArray) -> FloatArray:
    """Return log e-values (R, D) of a wave against "the mean is at least the level", for levels (R,).

    D is the number of `EFFECTS`.
    """
    rates = centred_rates(
        np.broadcast_to(prediction.rates, (len(levels), len(wave.shares))), wave.shares, levels
    )
    expected = rates[:, wave.stratum]
    lowest_expected = expected
    if prediction.slope and wave.score_range is not None and wave.scores is not None:
        low, mean, high = wave.score_range
        expected = expected + prediction.slope * (wave.scores - mean)
        lowest_change = min(prediction.slope * (low - mean), prediction.slope * (high - mean))
        lowest_expected = lowest_expected + lowest_change
    variances = expected_variances(rates, prediction.variance_ratio)[:, wave.stratum]
    weights = wave.by_draw(wave.weights)
    return log_e_values(
        outcomes=wave.by_draw(wave.weights * wave.outcomes),
        expected=wave.by_draw(wave.weights * expected),
        lowest=wave.by_draw(wave.weights * lowest_expected),
        weights=weights,
        variances=wave.by_draw(wave.weights * variances) / weights,
        labels=len(wave.outcomes),
        effects=EFFECTS * wave.effect,
    )


def level_process(waves: Sequence[WaveOutcomes], level: float) -> FloatArray:
    """Return the e-process (T,) against "every wave has at least the level"."""
    return np.asarray(np.exp(_log_process(waves, waves, np.array([level]))[0]))


def fall_process(waves: Sequence[WaveOutcomes], reference: int, fall: float) -> FloatArray:
    """Return the e-process of the waves after the reference against "no wave fell by more than `fall`".

    The reference is the highest level r among the first waves. The e-value against a reference of at most r
    and the e-process against later waves of at least r − fall are multiplied, and the result is the minimum
    over r. For r between two grid points, the first factor is that of the larger one, and the second that of
    the smaller one.

    Parameters
    ----------
    waves : sequence of WaveOutcomes (T,)
    reference : int
        Number of waves of the reference.
    fall : float
        As a share of the outcome's range.
    """
    grid = np.linspace(fall, 1.0, max(round((1.0 - fall) / _LEVEL_STEP), 1) + 1)
    reference_waves = [wave.mirrored for wave in waves[:reference]]
    log_capital = np.zeros((len(grid), 1))
    for index, wave in enumerate(reference_waves):
        prediction = predict_outcomes(reference_waves[:index], wave)
        log_capital = log_capital + wave_log_e_values(wave, prediction, 1.0 - grid)
    # An equal part of the capital is not staked, because bets that the reference is above 1 lose almost all.
    with_reserve = np.concatenate([log_capital, np.zeros((len(grid), 1))], axis=1)
    reference_log_e_values = np.logaddexp.reduce(with_reserve, axis=1) - np.log(with_reserve.shape[1])
    later_waves = waves[reference:]
    later_process = _log_process(waves, later_waves, grid[:-1] - fall)
    log_process = np.min(reference_log_e_values[1:, None] + later_process, axis=0)
    # If the reference is at most `fall`, no later wave can be lower by more than `fall`: only evidence
    # against such a reference counts.
    return np.asarray(np.exp(np.minimum(log_process, reference_log_e_values[0])))


def _log_process(
    waves: Sequence[WaveOutcomes], tested: Sequence[WaveOutcomes], levels: FloatArray
) -> FloatArray:
    """Return the log e-process (R, T) of the T waves `tested`, the last ones, for levels (R,).

    Each of them is predicted from all waves before it.
    """
    start = len(waves) - len(tested)
    values = [
        wave_log_e_values(wave, predict_outcomes(waves[: start + index], wave), levels)
        for index, wave in enumerate(tested)
    ]
    return log_e_process(np.stack(values, axis=1))


def raise_alarms(
    waves: Sequence[Wave], requirements: Sequence[str], reference: int, confidence_level: float
) -> tuple[Alarm, ...]:
    """Return the verdict on each requirement.

    Parameters
    ----------
    waves : sequence of Wave
    requirements : sequence of str
        Such as `>=.9`, `<=.05`, `value@de>=.9` for a group, `fell<=.03` and `rose<=.03`. Several requirements
        share the error equally (Bonferroni).
    reference : int
        Number of first waves with labels from which a fall or rise is measured.
    confidence_level : float

    Raises
    ------
    InputError
        For another requirement, an estimand that is not a mean, outcomes without bounds, and waves that share
        drawn items although their draws are not known to be independent.
    """
    labelled = [wave for wave in waves if wave.evaluation is not None]
    _require_independent_draws(labelled)
    error = (1.0 - confidence_level) / len(requirements)
    bounds = _common_bounds(labelled)
    outcomes = [_wave_outcomes(wave, bounds) for wave in labelled]
    groups = {str(group) for wave in outcomes if wave.groups is not None for group in wave.groups.tolist()}
    parsed = [_parse_requirement(text, bounds, groups) for text in requirements]
    return tuple(
        _requirement_alarm(outcomes, requirement, bounds, reference, error) for requirement in parsed
    )


def _require_independent_draws(waves: Sequence[Wave]) -> None:
    """Raise an error for waves with the same drawn items, unless the draws of the waves are independent.

    Given the earlier waves, the expectation of an e-value is at most 1 only if a wave is drawn independently
    of them. In a panel, where every wave has the same sampling error, 10% to 33% of series had a false alarm.
    """
    ids = [set(id_texts(wave.evaluation.sample.ids)) for wave in waves if wave.evaluation is not None]
    for later_index, later in enumerate(waves):
        for earlier_index, earlier in enumerate(waves[:later_index]):
            common = ids[later_index] & ids[earlier_index]
            if common and not _are_independent(later, earlier) and have_same_items(later, earlier):
                raise InputError(
                    "an alarm requires newly drawn items in each wave",
                    given=f"{len(common):,} items are in {earlier.name} and in {later.name}",
                    action="Draw each wave with its own seed (--seed). If the items are different, give "
                    "them different ids, such as the week and a number. Otherwise, leave the requirement "
                    "out (require=, --require): the estimated changes account for shared items.",
                )


def _are_independent(later: Wave, earlier: Wave) -> bool:
    """Return whether two samples were drawn with different seeds; False if that is unknown."""
    samples = [wave.sample for wave in (later, earlier) if wave.sample is not None]
    # Only samples that were drawn here have a digest, and a seed that selected their items.
    is_drawn = all(sample.digest is not None for sample in samples)
    return is_drawn and samples[0].seed != samples[1].seed


def _parse_requirement(text: str, bounds: tuple[float, float], groups: Collection[str]) -> Requirement:
    """Return the requirement; raise an error if it cannot raise an alarm for these bounds and groups."""
    requirement = Requirement.parse(text)
    is_change = requirement.name in (FELL, ROSE)
    is_possible = 0 <= requirement.limit < bounds[1] - bounds[0]
    quantity, _, group = requirement.name.partition("@")
    if quantity == "value":
        requirement.check(bounds)
        if group and group not in groups:
            raise InputError(
                "no wave has this group",
                given=repr(text),
                allowed=", ".join(sorted(groups)) or "none",
                action="Name the column of groups: by= (--by).",
            )
    elif not is_change or requirement.sign != "<=" or not is_possible:
        raise InputError(
            "this requirement cannot raise an alarm",
            given=repr(text),
            allowed="a level ('>=.9', '<=.05', for a group 'value@de>=.9'), or a change since the first "
            "waves ('fell<=.03', 'rose<=.03')",
        )
    return requirement


def _requirement_alarm(
    waves: Sequence[WaveOutcomes],
    requirement: Requirement,
    bounds: tuple[float, float],
    reference: int,
    error: float,
) -> Alarm:
    """Return the verdict on one requirement."""
    low, high = bounds
    is_change = requirement.name in (FELL, ROSE)
    is_upper = requirement.name == ROSE or (not is_change and requirement.sign == "<=")
    group = requirement.name.partition("@")[2]
    if group:
        waves = [wave.of_group(group, unit_scale(requirement.limit, bounds)) for wave in waves]
    if is_upper:
        oriented_waves = [wave.mirrored for wave in waves]
    else:
        oriented_waves = list(waves)
    if is_change:
        n_reference = min(reference, len(waves))
    else:
        n_reference = 0
    if is_change and n_reference < len(waves):
        # In mirrored waves, a rise is a fall.
        process = fall_process(oriented_waves, n_reference, requirement.limit / (high - low))
    elif is_change:
        process = np.empty(0)
    else:
        level = unit_scale(requirement.limit, bounds)
        process = level_process(oriented_waves, 1.0 - level if is_upper else level)
    threshold = 1.0 / error
    reached = np.flatnonzero(process >= threshold * (1.0 - _THRESHOLD_TOLERANCE))
    names = [wave.name for wave in waves]
    first_wave = None
    if len(reached):
        verdict = ALARM
        first_wave = names[n_reference + int(reached[0])]
    elif len(process):
        verdict = NO_ALARM
    else:
        verdict = UNDECIDED
    return Alarm(
        requirement=str(requirement),
        verdict=verdict,
        wave=first_wave,
        reference=tuple(names[:n_reference]),
        waves=tuple(names[n_reference:]),
        e_values=tuple(process.tolist()),
        threshold=threshold,
        error=error,
        exact=all(wave.exact for wave in waves),
    )


def _common_bounds(waves: Sequence[Wave]) -> tuple[float, float]:
    """Return the bounds of the outcome in all waves; raise an error for other estimands or no bounds."""
    bounds: set[tuple[float, float] | None] = set()
    for wave in waves:
        overall_rows = [label for label in wave.rows if "domain" not in dict(label)]
        if len(overall_rows) != 1 or _outcomes_of_mean(wave) is None:
            raise InputError(
                "an alarm can only be set for the mean outcome of all items",
                given=f"other estimands in wave {wave.name}",
                action="Leave out the requirement (require=, --require), or the estimand, metric or judge.",
            )
        bounds.add(next(iter(wave.rows.values())).bounds)
    if len(bounds) != 1 or None in bounds:
        texts = ["none" if pair is None else f"{pair[0]:g} to {pair[1]:g}" for pair in bounds]
        raise InputError(
            "an alarm requires an outcome with the same bounds in every wave",
            given=", ".join(texts),
            action="State the bounds: bounds=(lowest, highest) (--bounds LOW,HIGH).",
        )
    return next(pair for pair in bounds if pair is not None)


def _outcomes_of_mean(wave: Wave) -> AnyArray | None:
    """Return the outcomes (n,) if the estimate is their mean."""
    return next(iter(wave.rows.values())).outcomes


def _wave_outcomes(wave: Wave, bounds: tuple[float, float]) -> WaveOutcomes:
    """Return the labels of a wave on the scale from 0 to 1, with the weights of its design."""
    assert wave.evaluation is not None
    evidence = next(iter(wave.rows.values())).evidence
    weighting = evidence.weighting
    sample = wave.evaluation.sample
    n = len(evidence.z)
    draw = np.arange(n)
    if weighting.unit_clusters is not None:
        draw = np.unique(weighting.unit_clusters, return_inverse=True)[1]
    shares = np.ones(1)
    if weighting.random_within_strata:
        shares = weighting.shares
    labelled = join_labels(sample, wave.evaluation.labels).labelled
    # Labels that are no outcome of this estimand are not in its evidence: the arrays of the sample then have
    # other units than the outcomes.
    has_same_units = int(labelled.sum()) == n
    by = wave.evaluation.request.by or ""
    groups: AnyArray | None = None
    if by in sample.groups and has_same_units:
        groups = sample.groups[by][labelled]
    group_sizes = sample.totals.get(by, {})
    # Proxy means of each stratum (H, k), or of all units (1, k).
    means = sample.summary.overall_means[None, :]
    if len(shares) > 1:
        means = sample.summary.proxy_means
    scores = None
    score_means = None
    score_range = None
    if sample.proxy_info and has_same_units and len(means) == len(shares):
        info = sample.proxy_info[0]
        scores = sample.proxies[labelled, 0]
        score_means = means[:, 0]
        if info.scaled and info.bounds is not None:
            score_range = (info.bounds[0], float(sample.summary.overall_means[0]), info.bounds[1])
    return WaveOutcomes(
        name=wave.name,
        outcomes=unit_scale(evidence.z, bounds),
        weights=weighting.weights,
        stratum=weighting.stratum,
        shares=shares,
        draw=draw,
        scores=scores,
        score_means=score_means,
        score_range=score_range,
        exact=weighting.random_within_strata and not weighting.has_adaptive_allocation,
        groups=groups,
        group_shares={group: size / sample.population_size for group, size in group_sizes.items()},
    )
