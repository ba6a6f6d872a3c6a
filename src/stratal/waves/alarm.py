"""`Alarm`: whether a level was missed, or fell, in any wave, with a bound on false alarms over all waves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray
from stratal.errors import InputError
from stratal.estimation.requirement import Requirement
from stratal.labels.labels import join_labels
from stratal.protocols import JsonDict, Keywords
from stratal.randomness import id_texts
from stratal.report.text import json_dict
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

ALARM = "ALARM"
NO_ALARM = "NO ALARM"
# All waves are part of the reference, so that none was tested.
UNDECIDED = "UNDECIDED"
# Requirements of a change since the reference: at most so much below it, or above it.
FELL = "fell"
ROSE = "rose"

# Distance of the possible levels of the reference, as a share of the outcome's range. Between two of them the
# bets against the larger and against the smaller one are combined, so that no level is left out.
_STEP = 0.002

# Labels of earlier waves from which the slope of the outcome on the score is fitted.
_LABELS_OF_SLOPE = 20


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
        Waves that a fall is measured from; none for a level.
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
        Which independent draw each unit is from: its own, or its cluster's.
    scores : float (n,), optional
        The first proxy.
    score_means : float (H,), optional
        Its means over the population of each stratum.
    score_range : (float, float, float), optional
        Its lowest possible value, its mean over the population, and its highest possible value, of a proxy
        with bounds.
    exact : bool
    groups : (n,), optional
        The group of each unit.
    group_shares : mapping of str to float
        Share of the population in each group, as far as it is known.
    effect : float
        Fall of the mean as a share of the fall that the bets are for.
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

        Its mean is below the level if that of the group is. The e-value is therefore exact for any strata,
        also if the size of the group in each of them is unknown.
        """
        members = np.zeros(len(self.outcomes), dtype=bool) if self.groups is None else self.groups == group
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
        """The wave with outcomes that are good where they were bad, for levels that must not be exceeded."""
        changes: Keywords = {"outcomes": 1.0 - self.outcomes}
        if self.scores is not None and self.score_means is not None:
            changes |= {"scores": -self.scores, "score_means": -self.score_means}
        if self.score_range is not None:
            low, mean, high = self.score_range
            changes["score_range"] = (-high, -mean, -low)
        return replace(self, **changes)

    def by_draw(self, values: FloatArray) -> FloatArray:
        """Return sums of values (…, n) over independent draws (…, J)."""
        draws = int(self.draw.max()) + 1
        if draws == len(self.draw):
            return values
        return values @ np.eye(draws)[self.draw]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prediction:
    """What earlier waves show about the outcomes of a wave.

    Parameters
    ----------
    rates : float (H,)
        Expected outcome of each stratum.
    slope : float
        Expected change of the outcome with the score within a stratum; 0 unless there is one stratum.
    ratio : float
        Variance around the prediction over that of outcomes 0 and 1 with the same means.
    """

    rates: FloatArray
    slope: float
    ratio: float


def predict(earlier: Sequence[WaveOutcomes], wave: WaveOutcomes) -> Prediction:
    """Return the prediction of a wave's outcomes from earlier waves, and from its score before any.

    It reads no label of the wave, and of its scores only what holds for the whole population: the e-value
    would not be exact otherwise.
    """
    strata = len(wave.shares)
    totals: FloatArray = np.zeros(strata)
    labels: FloatArray = np.zeros(strata)
    if not earlier:
        prior = np.full(strata, 0.5)
        if wave.score_means is not None and wave.score_range is not None:
            low, _, high = wave.score_range
            prior = (wave.score_means - low) / (high - low)
        return Prediction(rates=smoothed_rates(totals, labels, prior), slope=0.0, ratio=1.0)
    outcomes = np.concatenate([one.outcomes for one in earlier])
    mean = float(outcomes.mean())
    prior = np.full(strata, mean)
    scores = [one.scores for one in earlier if one.scores is not None]
    slope = 0.0
    if wave.score_means is not None and len(scores) == len(earlier):
        earlier_scores = np.concatenate(scores)
        slope = _slope(earlier_scores, outcomes)
        prior = np.clip(mean + slope * (wave.score_means - earlier_scores.mean()), 0.0, 1.0)
        # Strata differ from wave to wave: an earlier label counts for the stratum whose mean is nearest.
        nearest = np.argmin(np.abs(earlier_scores[:, None] - wave.score_means), axis=1)
        belongs = np.equal.outer(nearest, np.arange(strata)).astype(np.float64)
        totals = outcomes @ belongs
        labels = belongs.sum(axis=0)
    elif strata == 1:
        totals = np.array([outcomes.sum()])
        labels = np.array([float(len(outcomes))])
    if strata > 1 or wave.score_range is None:
        slope = 0.0
    rates = smoothed_rates(totals, labels, prior)
    return Prediction(rates=rates, slope=slope, ratio=_variance_ratio(outcomes, mean))


def _slope(scores: FloatArray, outcomes: FloatArray) -> float:
    """Return the slope of the outcome on the score (m,); 0 with few labels."""
    spread = float(scores.var())
    if spread <= 0 or len(scores) < _LABELS_OF_SLOPE:
        return 0.0
    return float(np.mean((scores - scores.mean()) * (outcomes - outcomes.mean())) / spread)


def _variance_ratio(outcomes: FloatArray, mean: float) -> float:
    """Return the variance of earlier outcomes over that of 0 and 1 with the same mean, at least .1."""
    binary = mean * (1.0 - mean)
    if binary <= 0:
        return 1.0
    return float(
        np.clip((outcomes.var() * len(outcomes) + binary) / (binary * (len(outcomes) + 1)), 0.1, 1.0)
    )


def wave_log_e_values(wave: WaveOutcomes, prediction: Prediction, levels: FloatArray) -> FloatArray:
    """Return log e-values (R, D) of a wave against "the mean is at least the level", for levels (R,)."""
    rates = centred_rates(
        np.broadcast_to(prediction.rates, (len(levels), len(wave.shares))), wave.shares, levels
    )
    expected = rates[:, wave.stratum]
    lowest = expected
    if prediction.slope and wave.score_range is not None and wave.scores is not None:
        low, mean, high = wave.score_range
        expected = expected + prediction.slope * (wave.scores - mean)
        lowest = lowest + min(prediction.slope * (low - mean), prediction.slope * (high - mean))
    variances = expected_variances(rates, prediction.ratio)[:, wave.stratum]
    weights = wave.by_draw(wave.weights)
    return log_e_values(
        wave.by_draw(wave.weights * wave.outcomes),
        wave.by_draw(wave.weights * expected),
        wave.by_draw(wave.weights * lowest),
        weights,
        wave.by_draw(wave.weights * variances) / weights,
        len(wave.outcomes),
        EFFECTS * wave.effect,
    )


def level_process(waves: Sequence[WaveOutcomes], level: float) -> FloatArray:
    """Return the e-process (T,) against "every wave has at least the level"."""
    return np.asarray(np.exp(_log_process(waves, waves, np.array([level]))[0]))


def fall_process(waves: Sequence[WaveOutcomes], reference: int, fall: float) -> FloatArray:
    """Return the e-process of the waves after the reference against "no wave fell by more than `fall`".

    The reference is the highest level r among the first waves. The evidence that it is above r and the
    evidence that a wave is below r − fall are multiplied, and the least favourable r counts. For r between
    two grid points the first factor is taken at the larger one, and the second at the smaller one.

    Parameters
    ----------
    waves : sequence of WaveOutcomes (T,)
    reference : int
        Number of waves of the reference.
    fall : float
        As a share of the outcome's range.
    """
    grid = np.linspace(fall, 1.0, max(round((1.0 - fall) / _STEP), 1) + 1)
    first = [wave.mirrored for wave in waves[:reference]]
    log_of_reference = np.zeros((len(grid), 1))
    for place, wave in enumerate(first):
        log_of_reference = log_of_reference + wave_log_e_values(
            wave, predict(first[:place], wave), 1.0 - grid
        )
    # Part of the capital is not staked: bets that the reference is above 1 lose almost all of it.
    with_reserve = np.concatenate([log_of_reference, np.zeros((len(grid), 1))], axis=1)
    reference_evidence = np.logaddexp.reduce(with_reserve, axis=1) - np.log(with_reserve.shape[1])
    # A reference of at most `fall` cannot fall by more.
    least = reference_evidence[0]
    later = waves[reference:]
    process = _log_process(waves, later, grid[:-1] - fall)
    combined = np.minimum(np.min(reference_evidence[1:, None] + process, axis=0), least)
    return np.asarray(np.exp(combined))


def _log_process(
    waves: Sequence[WaveOutcomes], tested: Sequence[WaveOutcomes], levels: FloatArray
) -> FloatArray:
    """Return the log e-process (R, T) of the last waves, which are predicted from all earlier ones."""
    start = len(waves) - len(tested)
    values = [
        wave_log_e_values(wave, predict(waves[: start + place], wave), levels)
        for place, wave in enumerate(tested)
    ]
    return log_e_process(np.stack(values, axis=1))


# ---- from waves


def raise_alarms(
    waves: Sequence[Wave], requirements: Sequence[str], reference: int, confidence_level: float
) -> tuple[Alarm, ...]:
    """Return the verdict on each requirement.

    Parameters
    ----------
    waves : sequence of Wave
    requirements : sequence of str
        Such as `>=.9`, `<=.05`, `value@de>=.9` for a group, `fell<=.03` and `rose<=.03`; of several, each has
        its part of the error.
    reference : int
        Number of first waves with labels that a fall or rise is measured from.
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
    parsed = [_parse(text, bounds, groups) for text in requirements]
    return tuple(_alarm(outcomes, requirement, bounds, reference, error) for requirement in parsed)


def _require_independent_draws(waves: Sequence[Wave]) -> None:
    """Refuse waves with the same drawn items, unless independent draws selected these by chance.

    Given the earlier waves, the expectation of an e-value is at most 1 only if a wave is drawn independently
    of them. In a panel, whose error is the same in every wave, 10% to 33% of series had a false alarm.
    """
    ids = [set(id_texts(wave.evaluation.sample.ids)) for wave in waves if wave.evaluation is not None]
    for place, later in enumerate(waves):
        for other, earlier in enumerate(waves[:place]):
            common = ids[place] & ids[other]
            if common and not _are_independent(later, earlier) and have_same_items(later, earlier):
                raise InputError(
                    "an alarm needs newly drawn items in each wave",
                    given=f"{len(common):,} items are in {earlier.name} and in {later.name}",
                    action="Draw each wave with its own seed (--seed). If the items are different, give them "
                    "different ids, such as the week and a number. Otherwise leave the requirement out "
                    "(require=, --require): the changes account for the same items.",
                )


def _are_independent(later: Wave, earlier: Wave) -> bool:
    """Return whether two samples were drawn with different seeds; False if that is unknown."""
    samples = [wave.sample for wave in (later, earlier) if wave.sample is not None]
    # Only samples that were drawn here have a digest, and a seed that selected their items.
    is_drawn = all(sample.digest is not None for sample in samples)
    return is_drawn and samples[0].seed != samples[1].seed


def _parse(text: str, bounds: tuple[float, float], groups: Collection[str]) -> Requirement:
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


def _alarm(
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
        waves = [wave.of_group(group, (requirement.limit - low) / (high - low)) for wave in waves]
    oriented = [wave.mirrored for wave in waves] if is_upper else list(waves)
    n_reference = min(reference, len(waves)) if is_change else 0
    if is_change and n_reference < len(waves):
        process = fall_process(oriented, n_reference, requirement.limit / (high - low))
    elif is_change:
        process = np.empty(0)
    else:
        level = (requirement.limit - low) / (high - low)
        process = level_process(oriented, 1.0 - level if is_upper else level)
    threshold = 1.0 / error
    reached = np.flatnonzero(process >= threshold * (1.0 - 1e-12))
    names = [wave.name for wave in waves]
    verdict = NO_ALARM if len(process) else UNDECIDED
    if len(reached):
        verdict = ALARM
    return Alarm(
        requirement=str(requirement),
        verdict=verdict,
        wave=names[n_reference + int(reached[0])] if len(reached) else None,
        reference=tuple(names[:n_reference]),
        waves=tuple(names[n_reference:]),
        e_values=tuple(process.tolist()),
        threshold=threshold,
        error=error,
        exact=all(wave.exact for wave in waves),
    )


def _common_bounds(waves: Sequence[Wave]) -> tuple[float, float]:
    """Return the bounds of the outcome in all waves, refusing what is not a mean of a bounded outcome."""
    bounds: set[tuple[float, float] | None] = set()
    for wave in waves:
        if (
            len([label for label in wave.rows if "domain" not in dict(label)]) != 1
            or _outcomes_of_mean(wave) is None
        ):
            raise InputError(
                "an alarm is for the mean outcome of all items",
                given=f"other estimands in wave {wave.name}",
                action="Leave out the requirement (require=, --require), or the estimand, metric or judge.",
            )
        bounds.add(next(iter(wave.rows.values())).bounds)
    if len(bounds) != 1 or None in bounds:
        given = ", ".join("none" if b is None else f"{b[0]:g} to {b[1]:g}" for b in bounds)
        raise InputError(
            "an alarm needs an outcome with the same bounds in every wave",
            given=given,
            action="State them: bounds=(lowest, highest) (--bounds LOW,HIGH).",
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
    count = len(evidence.z)
    groups = weighting.groups
    scores = None
    score_means = None
    score_range = None
    labelled = join_labels(sample, wave.evaluation.labels).labelled
    by = wave.evaluation.request.by or ""
    groups_of_units = sample.groups.get(by)
    has_groups = groups_of_units is not None and int(labelled.sum()) == count
    totals = sample.totals.get(by, {})
    shares = weighting.shares if weighting.random_within_strata else np.ones(1)
    means = sample.summary.proxy_means if len(shares) > 1 else sample.summary.overall_means[None, :]
    if sample.proxy_info and int(labelled.sum()) == count and len(means) == len(shares):
        info = sample.proxy_info[0]
        scores = sample.proxies[labelled, 0]
        score_means = means[:, 0]
        if info.scaled and info.bounds is not None:
            score_range = (info.bounds[0], float(sample.summary.overall_means[0]), info.bounds[1])
    return WaveOutcomes(
        name=wave.name,
        outcomes=(evidence.z - bounds[0]) / (bounds[1] - bounds[0]),
        weights=weighting.weights,
        stratum=weighting.stratum,
        shares=shares,
        draw=np.arange(count) if groups is None else np.unique(groups, return_inverse=True)[1],
        scores=scores,
        score_means=score_means,
        score_range=score_range,
        exact=weighting.random_within_strata and not weighting.has_adaptive_allocation,
        groups=groups_of_units[labelled] if has_groups and groups_of_units is not None else None,
        group_shares={level: size / sample.population_size for level, size in totals.items()},
    )
