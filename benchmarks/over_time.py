"""Weeks over time: coverage of levels and changes, false alarms in long series, and the delay of an alarm.

    OMP_NUM_THREADS=1 python -m benchmarks.over_time [--series 5000] [--draws 20000] [--glide PYTHON]

Each wave has 5,000 new items. The outcome follows the score with a slope of .8 on the logit scale, and the
share of right answers of the 5,000 is exactly the stated one.

- **Coverage**: "level" is the wave's own 95 % interval, with the strata and the allocation of `stratal.plan`.
  The other columns are simultaneous for three rows, as `stratal.trend` prints them for the latest of three
  waves or more: the changes since the previous and since the first wave, and "together", that these and the
  level hold all three. The level is constant, jumps from .93 to .85 in wave 7, falls by .01 each wave, or is
  seasonal; with the drifting judge the slope goes from .8 to −.4, with the reversed judge to −.8, and the
  level stays. Intervals come from the kernels of `stratal.estimate`, for all samples at once.
- **False alarms**: the share of series of 200 waves with an alarm for `>=.9`. In the first rows the share
  of right answers is exactly .9 in every wave. Samples are stratified in equal strata of the score (5 with
  25 labels, else 10), or clusters of 5 items. The drifting score is reversed in wave 200. The seasonal level
  is never below .9, and in "falls to the limit" it is .95 in the first 50 waves. With nonresponse 30 % of the
  labels are missing; with late labels they are missing in the run of their own week only, and an alarm in any
  of the weekly runs counts.
- **Delay**: waves from the change (1: the first changed wave) to the alarm, median over the series without
  an earlier alarm, ">60" if more than half have none 60 waves later. The share of right answers is .93
  before. The control charts are calibrated to 5 % false alarms in 200 waves at .9, with the true variance,
  which in practice is unknown: the largest weekly deviation (a weekly test with a corrected level), an EWMA
  with weight .2, and a CUSUM with allowance .5. Simple random samples are compared with the exact binomial
  test of each wave, with Bonferroni's correction for 200 waves, and with the monitor of glide-py, which tests
  the running mean.

Predictions of the alarm come from earlier waves' labels, by stratum, through `stratal.waves.e_process`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.helpers import circumstances
from scipy.special import expit, logit, ndtri
from scipy.stats import binom

import stratal
from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.planning.plan import Plan
from stratal.simulation.draws import BinaryDraws, Truth
from stratal.simulation.replicates import Settings, replicate_intervals, replicate_means
from stratal.waves.e_process import (
    change_point_weight,
    expected_variances,
    log_e_process,
    log_e_values,
    smoothed_rates,
)

RESULTS = Path(__file__).resolve().parent / "results" / "over_time.md"

UNITS = 5_000
LABELS = (25, 50, 100, 200)
WAVES = 12
SLOPE = 0.8
LIMIT = 0.9
BEFORE = 0.93
HORIZON = 200
CHANGES = (5, 50, 150)
AFTER = 60
TARGETS = (0.88, 0.85, 0.80)
THRESHOLD = 20.0
CLUSTER_SIZE = 5
# Standard deviation of the common shift of a cluster on the logit scale.
CLUSTER_SHIFT = 1.5
NONRESPONSE = 0.3
CHARTS = ("largest", "EWMA", "CUSUM")
COVERAGE = "## Coverage"
LEVEL_ALONE = 0.95
# Of three rows that hold together (Šidák).
ROW_LEVEL = LEVEL_ALONE ** (1 / 3)
SCENARIOS = ("no drift", "jump", "slide", "drifting judge", "reversed judge", "seasonal")
CONDITIONS = ("nonresponse", "late labels", "clusters")
DESIGNS = (
    "stratified",
    "drifting score",
    "better than required",
    "seasonal",
    "falls to the limit",
    *CONDITIONS,
)
# Loss of the slope on the score until the last wave.
FINAL_LOSS = {"drifting judge": 1.2, "reversed judge": 2 * SLOPE}
WITH_CHARTS = ("stratified", "drifting score")
# The monitor of a peer gets simple random samples, with some of the unlabelled items.
PEER_LABELS = 100
PEER_UNLABELLED = 500
PEER_TARGETS = (0.85, 0.80)


# ---- populations


@cache
def scores() -> FloatArray:
    """Return the sorted scores (N,) of every wave."""
    quantiles = (np.arange(UNITS) + 0.5) / UNITS
    return np.asarray(expit(2.4 + 1.2 * ndtri(quantiles)))


@cache
def right_rates(level: float, slope: float = SLOPE) -> FloatArray:
    """Return the probability (N,) that an answer is right, with this mean."""
    log_odds = slope * logit(scores())
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        if expit(middle + log_odds).mean() < level:
            low = middle
        else:
            high = middle
    return np.asarray(expit(low + log_odds))


def outcomes_of(rng: np.random.Generator, level: float, slope: float = SLOPE) -> FloatArray:
    """Return outcomes (N,) of which exactly the share `level` is 1, drawn by systematic sampling."""
    order = rng.permutation(UNITS)
    cumulative = np.cumsum(right_rates(level, slope)[order])
    marks = np.floor(cumulative + rng.random()) - np.floor(np.r_[0.0, cumulative[:-1]] + rng.random())
    outcome = np.zeros(UNITS)
    outcome[order] = np.clip(marks, 0, 1)
    difference = round(level * UNITS) - int(outcome.sum())
    changed = rng.permutation(np.flatnonzero(outcome == (difference < 0)))[: abs(difference)]
    outcome[changed] = float(difference > 0)
    return outcome


# ---- coverage


def level_and_slope(scenario: str, wave: int) -> tuple[float, float]:
    """Return the share of right answers and the slope on the score in a wave from 1 to 12."""
    levels = {
        "jump": 0.93 if wave < 7 else 0.85,
        "slide": 0.94 - 0.01 * (wave - 1),
        "seasonal": 0.9 + 0.04 * np.sin(2 * np.pi * wave / 6),
    }
    slope = SLOPE - FINAL_LOSS.get(scenario, 0.0) * (wave - 1) / (WAVES - 1)
    return round(float(levels.get(scenario, 0.93)), 4), slope


@cache
def plan_for(n: int) -> Plan:
    """Return the plan of a wave; the scores of all waves are the same."""
    population = stratal.Population.from_arrays(proxy={"score": scores()})
    return stratal.plan(population, budget=n)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replicated:
    """A wave drawn many times: estimates (R,), and the ends (R,) of its interval by confidence level."""

    truth: float
    values: FloatArray
    ends: dict[float, tuple[FloatArray, FloatArray]]

    def holds(self, level: float) -> BoolArray:
        """Return whether the interval of each replicate contains the level of the wave."""
        low, high = self.ends[level]
        return _contain(low, self.truth, high)


def replicated_wave(
    plan: Plan, outcomes: FloatArray, ones: IntArray | None, replicates: int, seed: int
) -> Replicated:
    """Return intervals of a wave's samples, by the kernels of `stratal.estimate`.

    Parameters
    ----------
    plan : Plan
        With strata.
    outcomes : float (N,)
    ones : int (R, H), optional
        Right answers in the strata of given samples; drawn unless given.
    replicates : int
    seed : int
    """
    assert plan.strata.codes is not None
    truth = Truth.of(outcomes, None, plan.strata.codes, plan.strata.n_strata, units=False)
    n_h = plan.allocation.n_h
    draws = BinaryDraws(truth, replicates, np.random.default_rng(seed))
    sums = draws.sums(n_h)
    if ones is not None:
        centred = ones - truth.centre * n_h
        sums = replace(sums, z=centred, zz=ones * (1 - 2 * truth.centre) + n_h * truth.centre**2)
    ends = {}
    for level in (LEVEL_ALONE, ROW_LEVEL):
        settings = Settings(
            budgets=(plan.budget,),
            estimators=("horvitz-thompson",),
            intervals=("auto",),
            replicates=replicates,
            seed=seed,
            confidence_level=level,
            bounds=(0.0, 1.0),
        )
        means = replicate_means(sums, truth, settings, "horvitz-thompson")
        ends[level] = replicate_intervals(means)["auto"]
    return Replicated(truth=float(outcomes.mean()), values=means.value, ends=ends)


def change_ends(later: Replicated, earlier: Replicated) -> tuple[FloatArray, FloatArray]:
    """Return the ends (R,) of the simultaneous interval of a change (Zou & Donner 2008)."""
    low, high = later.ends[ROW_LEVEL]
    earlier_low, earlier_high = earlier.ends[ROW_LEVEL]
    difference = later.values - earlier.values
    below = np.hypot(later.values - low, earlier_high - earlier.values)
    above = np.hypot(high - later.values, earlier.values - earlier_low)
    return difference - below, difference + above


def _contain(low: FloatArray, value: float, high: FloatArray) -> BoolArray:
    return (low <= value + 1e-9) & (value <= high + 1e-9)


def coverage(scenario: str, n: int, replicates: int) -> dict[str, float]:
    """Return how often intervals hold: of a wave alone, of both changes, and of level and changes together.

    Each is the mean over the waves and the lowest of them; changes and families from the third wave on.
    """
    waves = []
    for place in range(WAVES):
        seed = 1000 * n + 20 * SCENARIOS.index(scenario) + place
        outcomes = outcomes_of(np.random.default_rng(seed), *level_and_slope(scenario, place + 1))
        waves.append(replicated_wave(plan_for(n), outcomes, None, replicates, seed))
    alone = [wave.holds(LEVEL_ALONE).mean() for wave in waves]
    previous, first, together = [], [], []
    for place in range(2, WAVES):
        latest = waves[place]
        holds = [latest.holds(ROW_LEVEL)]
        for reference in (waves[place - 1], waves[0]):
            low, high = change_ends(latest, reference)
            holds.append(_contain(low, latest.truth - reference.truth, high))
        previous.append(holds[1].mean())
        first.append(holds[2].mean())
        together.append(np.all(holds, axis=0).mean())
    columns = {"level": alone, "since previous": previous, "since first": first, "together": together}
    return {
        key: float(value)
        for name, shares in columns.items()
        for key, value in ((name, np.mean(shares)), (f"lowest {name}", np.min(shares)))
    }


def trend_coverage(scenario: str, n: int, draws: int, seed: int = 0) -> dict[str, float]:
    """Return how often the intervals of two changes, and all three, hold in runs of `stratal.trend`."""
    rng = np.random.default_rng((seed, n, SCENARIOS.index(scenario)))
    truths = [level_and_slope(scenario, wave) for wave in range(1, WAVES + 1)]
    outcomes = [outcomes_of(rng, *truth) for truth in truths]
    holds = np.zeros((draws, 3), dtype=bool)
    for draw in range(draws):
        latest = int(rng.integers(2, WAVES))
        chosen = (0, latest - 1, latest)
        pairs = []
        for wave in chosen:
            sample = plan_for(n).draw(seed=int(rng.integers(2**31)))
            rows = sample.ids.astype(np.int64)
            question = replace(sample.question, row_base=None)
            # Items are new in each wave.
            ids = np.array([f"{wave}-{row}" for row in rows.tolist()])
            pairs.append((replace(sample, ids=ids, question=question, population=None), outcomes[wave][rows]))
        result = stratal.trend(pairs, outcome="binary")
        means = [float(outcomes[wave].mean()) for wave in chosen]
        truth = [means[2], means[2] - means[1], means[2] - means[0]]
        within = [
            contains(row.confidence_interval, value) for row, value in zip(result.rows, truth, strict=True)
        ]
        holds[draw] = (within[1], within[2], all(within))
    previous, first, together = holds.mean(axis=0).tolist()
    return {"previous": previous, "first": first, "together": together}


def contains(ends: list[float | None] | None, value: float) -> bool:
    """Return whether an interval, whose open ends are None, contains a value."""
    low, high = ends or (None, None)
    return (low is None or low <= value) and (high is None or value <= high)


# ---- long series


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Labels of one wave of many series by independent sample.

    Parameters
    ----------
    labelled, correct : float (S, H)
        Number of labels and of right answers in each stratum.
    """

    labelled: FloatArray
    correct: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Strata:
    """Equal strata of the score with proportional numbers of labels."""

    count: int
    labels: int

    @property
    def shares(self) -> FloatArray:
        """W_h (H,)."""
        return np.full(self.count, 1.0 / self.count)

    @property
    def each(self) -> int:
        """Number of labels of each stratum."""
        return self.labels // self.count

    def correct(self, level: float, slope: float = SLOPE) -> IntArray:
        """Return the right answers of each stratum (H,), which add up to exactly the level."""
        rates = right_rates(level, slope).reshape(self.count, -1).sum(axis=1)
        correct = np.floor(rates).astype(np.int64)
        missing = round(level * UNITS) - int(correct.sum())
        correct[np.argsort(correct - rates)[:missing]] += 1
        return np.asarray(correct)

    def draw(self, rng: np.random.Generator, series: int, level: float, slope: float = SLOPE) -> Counts:
        """Return the labels of a simple random sample of each stratum."""
        size = UNITS // self.count
        correct = self.correct(level, slope)
        totals = rng.hypergeometric(correct, size - correct, self.each, (series, self.count))
        return Counts(labelled=np.full(totals.shape, float(self.each)), correct=totals.astype(np.float64))

    def only_some(self, rng: np.random.Generator, counts: Counts) -> Counts:
        """Return the labels that are left if `NONRESPONSE` of them are missing at random."""
        correct = rng.binomial(counts.correct.astype(np.int64), 1.0 - NONRESPONSE)
        wrong = rng.binomial((counts.labelled - counts.correct).astype(np.int64), 1.0 - NONRESPONSE)
        return Counts(labelled=(correct + wrong).astype(np.float64), correct=correct.astype(np.float64))


def strata_for(labels: int) -> Strata:
    """Return 5 strata for 25 labels, otherwise 10."""
    return Strata(count=5 if labels == 25 else 10, labels=labels)


@dataclass
class Watch:
    """The e-values of many series, wave by wave, from their labels so far."""

    strata: Strata
    series: int

    def __post_init__(self) -> None:
        self.totals = np.zeros((self.series, self.strata.count))
        self.counts = np.zeros((self.series, self.strata.count))

    def log_e_values(self, labels: Counts) -> FloatArray:
        """Return log e-values (S, D) of the next wave."""
        n_h = labels.labelled
        # Strata without a label are left out, as far as there are any.
        is_labelled = n_h > 0
        shares = is_labelled / is_labelled.sum(axis=1, keepdims=True)
        weights = shares / np.maximum(n_h, 1.0)
        rates = self.rates()
        centred = rates + (LIMIT - np.sum(rates * shares, axis=1))[:, None]
        # Right answers of all strata, then wrong ones.
        both = np.concatenate([weights, weights], axis=1)
        expected = np.concatenate([weights * centred, weights * centred], axis=1)
        variances = expected_variances(centred)
        return log_e_values(
            np.concatenate([weights, np.zeros_like(weights)], axis=1),
            expected,
            expected,
            both,
            np.concatenate([variances, variances], axis=1),
            n_h.sum(axis=1),
            copies=np.concatenate([labels.correct, n_h - labels.correct], axis=1),
        )

    def add(self, labels: Counts) -> None:
        """Count the labels of a wave for the predictions of later ones."""
        self.totals += labels.correct
        self.counts += labels.labelled

    def rates(self) -> FloatArray:
        """Return the predicted rates (S, H)."""
        means = scores().reshape(self.strata.count, -1).mean(axis=1)
        if not self.counts.any():
            prior = np.broadcast_to(means, self.totals.shape)
            return smoothed_rates(self.totals, self.counts, prior)
        labels = self.counts.sum(axis=1, keepdims=True)
        mean = self.totals.sum(axis=1, keepdims=True) / labels
        centre = (self.counts @ means)[:, None] / labels
        spread = np.sum(self.counts * (means - centre) ** 2, axis=1, keepdims=True)
        products = np.sum((means - centre) * self.totals, axis=1, keepdims=True)
        slope = np.divide(products, spread, out=np.zeros_like(spread), where=spread > 0)
        return smoothed_rates(self.totals, self.counts, np.clip(mean + slope * (means - centre), 0.0, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Many series: the alarm's e-process and the estimates of the charts.

    Parameters
    ----------
    process : float (S, T)
        Logarithm of the e-process after each weekly run.
    estimates : float (S, T)
        Share of right answers among the labels.
    """

    process: FloatArray
    estimates: FloatArray


def run_series(
    rng: np.random.Generator,
    design: str,
    strata: Strata,
    series: int,
    levels: Sequence[tuple[float, float]],
) -> Series:
    """Draw and watch many series, whose waves have these levels and slopes of the outcome on the score.

    With late labels, the run of a week has the part of its labels that is there, and the complete labels of
    all earlier weeks.
    """
    if design == "clusters":
        return _cluster_series(rng, strata.labels, series, [level for level, _ in levels])
    watch = Watch(strata, series)
    log_capital = np.full((series, 2), -np.inf)
    remaining = 1.0
    process = np.empty((series, len(levels)))
    estimates = np.empty((series, len(levels)))
    for wave, (level, slope) in enumerate(levels):
        labels = strata.draw(rng, series, level, slope)
        if design == "nonresponse":
            labels = strata.only_some(rng, labels)
        weight = change_point_weight(wave + 1)
        remaining -= weight
        with_weight = np.logaddexp(log_capital, np.log(weight))
        complete = watch.log_e_values(labels) + with_weight
        present = complete
        if design == "late labels":
            present = watch.log_e_values(strata.only_some(rng, labels)) + with_weight
        log_capital = complete
        mean = np.logaddexp.reduce(present, axis=1) - np.log(present.shape[1])
        process[:, wave] = np.logaddexp(mean, np.log(max(remaining, np.finfo(float).tiny)))
        watch.add(labels)
        estimates[:, wave] = labels.correct.sum(axis=1) / labels.labelled.sum(axis=1)
    return Series(process=process, estimates=estimates)


def levels_of(design: str) -> list[tuple[float, float]]:
    """Return level and slope of each of the waves of a series without a violation."""
    waves = np.arange(HORIZON)
    levels = np.full(HORIZON, LIMIT)
    slopes = np.full(HORIZON, SLOPE)
    if design == "drifting score":
        slopes = np.round(SLOPE - 2 * SLOPE * waves / (HORIZON - 1), 3)
    if design == "better than required":
        levels[:] = BEFORE
    if design == "seasonal":
        levels = np.round(LIMIT + 0.02 * (1 + np.sin(2 * np.pi * waves / 6)), 4)
    if design == "falls to the limit":
        levels[: HORIZON // 4] = 0.95
    return list(zip(levels.tolist(), slopes.tolist(), strict=True))


def false_alarms(design: str, n: int, series: int, seed: int = 0) -> tuple[float, dict[str, float]]:
    """Return the share of series with a false alarm, of the e-process and of each chart."""
    rng = np.random.default_rng((seed, n, DESIGNS.index(design)))
    watched = run_series(rng, design, strata_for(n), series, levels_of(design))
    alarms = watched.process.max(axis=1) >= np.log(THRESHOLD)
    charts = {}
    if design in WITH_CHARTS:
        limits = chart_limits(n)
        deviations = standardised(n, watched.estimates)
        charts = {name: float(np.mean(chart(name, deviations).max(axis=1) > limits[name])) for name in CHARTS}
    return float(alarms.mean()), charts


@cache
def cluster_totals(level: float) -> IntArray:
    """Return the right answers of each cluster; clusters differ, and the share is exactly the level."""
    rng = np.random.default_rng(11)
    clusters = UNITS // CLUSTER_SIZE
    shift = rng.normal(0.0, CLUSTER_SHIFT, clusters)
    correct = rng.binomial(CLUSTER_SIZE, expit(logit(level) + 0.9 + shift))
    while correct.sum() != round(level * UNITS):
        place = rng.integers(clusters)
        step = np.sign(round(level * UNITS) - correct.sum())
        correct[place] = np.clip(correct[place] + step, 0, CLUSTER_SIZE)
    return np.asarray(correct)


def _cluster_series(rng: np.random.Generator, n: int, series: int, levels: Sequence[float]) -> Series:
    """Return series of samples of clusters: the number of drawn clusters by their right answers."""
    drawn = n // CLUSTER_SIZE
    shares = np.arange(CLUSTER_SIZE + 1) / CLUSTER_SIZE
    weights = np.full(shares.shape, 1.0 / drawn)
    variances = np.full(shares.shape, LIMIT * (1 - LIMIT))
    logs = []
    estimates = []
    for level in levels:
        kinds = np.bincount(cluster_totals(level), minlength=CLUSTER_SIZE + 1)
        copies = rng.multivariate_hypergeometric(kinds, drawn, size=series).astype(np.float64)
        logs.append(
            log_e_values(
                weights * shares,
                weights * LIMIT,
                weights * LIMIT,
                weights,
                variances,
                n,
                copies=copies,
            )
        )
        estimates.append(copies @ shares / drawn)
    return Series(process=log_e_process(np.stack(logs, axis=1)), estimates=np.stack(estimates, axis=1))


# ---- control charts with the true variance


@cache
def true_error(n: int) -> float:
    """Return the standard error of the stratified mean at the limit."""
    strata = strata_for(n)
    size = UNITS // strata.count
    rates = strata.correct(LIMIT) / size
    per_stratum = n // strata.count
    variances = rates * (1 - rates) * size / (size - 1) * (1 - per_stratum / size) / per_stratum
    return float(np.sqrt(variances.sum()) / strata.count)


def standardised(n: int, estimates: FloatArray) -> FloatArray:
    """Return how far estimates (S, T) lie below the limit, in standard errors."""
    return (LIMIT - estimates) / true_error(n)


def chart(name: str, deviations: FloatArray) -> FloatArray:
    """Return the statistic of a control chart (S, T)."""
    if name == "largest":
        return deviations
    values = np.zeros(len(deviations))
    path = np.empty(deviations.shape)
    for wave in range(deviations.shape[1]):
        if name == "EWMA":
            values = 0.8 * values + 0.2 * deviations[:, wave]
        else:
            values = np.maximum(values + deviations[:, wave] - 0.5, 0.0)
        path[:, wave] = values
    return path


@cache
def chart_limits(n: int, series: int = 4_000) -> dict[str, float]:
    """Return the limit of each chart that 5 % of the series at the limit exceed in 200 waves."""
    rng = np.random.default_rng((7, n))
    strata = strata_for(n)
    totals = [strata.draw(rng, series, LIMIT).correct.sum(axis=1) for _ in range(HORIZON)]
    deviations = standardised(n, np.stack(totals, axis=1) / n)
    return {name: float(np.quantile(chart(name, deviations).max(axis=1), 0.95)) for name in CHARTS}


def changed_levels(change: int, target: float) -> list[tuple[float, float]]:
    """Return level and slope of each wave until `AFTER` waves after a fall."""
    return [(BEFORE if wave < change else target, SLOPE) for wave in range(1, change + AFTER)]


def delays(
    n: int, target: float, change: int, series: int, design: str = "stratified", seed: int = 1
) -> dict[str, float]:
    """Return the median delay of the e-process, and of each chart with stratified samples."""
    rng = np.random.default_rng((seed, n, change, round(100 * target), DESIGNS.index(design)))
    watched = run_series(rng, design, strata_for(n), series, changed_levels(change, target))
    result = {"e-process": _median_delay(watched.process >= np.log(THRESHOLD), change)}
    if design == "stratified":
        deviations = standardised(n, watched.estimates)
        for name, limit in chart_limits(n).items():
            result[name] = _median_delay(chart(name, deviations) > limit, change)
    return result


def _median_delay(alarms: BoolArray, change: int) -> float:
    """Return the median number of waves from the change to the first alarm; infinite beyond `AFTER`."""
    remaining = alarms[~alarms[:, : change - 1].any(axis=1), change - 1 :]
    first = np.where(remaining.any(axis=1), remaining.argmax(axis=1) + 1.0, np.inf)
    return float(np.median(first))


# ---- simple random samples: the exact weekly test, and the monitor of glide-py

PEER = """
import json, platform, sys
from importlib.metadata import version
import numpy as np
from glide.confidence_sequences.asymptotic import _compute_asymptotic_bounds
from glide.monitors import AsymptoticPPRM

data = np.load(sys.argv[1])
engine = AsymptoticPPRM._engine
rng = np.random.default_rng(5)


def batches(outcomes):
    # The loop of AsymptoticRM._detect, once for all confidence levels.
    means, errors, labels, scores, others = [], [], [], [], []
    for outcome in outcomes:
        rows = rng.permutation(len(outcome))[: data["labels"] + data["unlabelled"]]
        drawn, rest = rows[: data["labels"]], rows[data["labels"] :]
        labels.append(1.0 - outcome[drawn])
        scores.append(1.0 - data["scores"][drawn])
        others.append(1.0 - data["scores"][rest])
        past = tuple(np.concatenate(part[:-1] or part) for part in (labels, scores, others))
        lam = engine.fit_tuning_parameter(past, power_tuning=len(labels) > 1)
        mean, error = engine.compute_mean_and_std((labels[-1], scores[-1], others[-1]), lam)
        means.append(mean)
        errors.append(error)
    return np.array(means), np.array(errors)


def first_alarms(series, confidence_level):
    result = []
    for means, errors in series:
        bounds = _compute_asymptotic_bounds(means, errors, 1.0 - confidence_level, 10)[1]
        reached = np.flatnonzero(bounds > 1.0 - data["limit"])
        result.append(int(reached[0]) + 1 if len(reached) else 0)
    return result


def draw(name):
    levels = data[name]
    return [batches([data[f"outcomes{level}"][rng.integers(20)] for level in levels])
            for _ in range(int(data["series"]))]


null = draw("null")
confidence_levels = 1.0 - np.geomspace(0.001, 0.49, 60)
shares = np.array([np.mean(np.array(first_alarms(null, level)) > 0) for level in confidence_levels])
calibrated = float(confidence_levels[np.flatnonzero(shares <= 0.05)[-1]])
nominal = float(np.mean(np.array(first_alarms(null, 0.95)) > 0))
found = {"version": version("glide-py"), "python": platform.python_version(), "first": {}}
found |= {"calibrated": calibrated, "false alarms": nominal}
for name in data["names"]:
    series = draw(str(name))
    found["first"][str(name)] = [first_alarms(series, level) for level in (0.95, calibrated)]
print(json.dumps(found))
"""


def glide_alarms(python: str, series: int) -> dict[str, Any]:
    """Return the version of glide-py, its calibrated level, and its first alarm in each series (0: none)."""
    rng = np.random.default_rng(13)
    levels = (LIMIT, BEFORE, *PEER_TARGETS)
    outcomes = {
        f"outcomes{place}": [outcomes_of(rng, level) for _ in range(20)] for place, level in enumerate(levels)
    }
    names = {
        f"{target} {change}": np.array([levels.index(level) for level, _ in changed_levels(change, target)])
        for target in PEER_TARGETS
        for change in CHANGES
    }
    data: dict[str, Any] = {
        "scores": scores(),
        "labels": PEER_LABELS,
        "unlabelled": PEER_UNLABELLED,
        "limit": LIMIT,
        "series": series,
        "null": np.zeros(HORIZON, dtype=np.int64),
        "names": np.array(list(names)),
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "series.npz"
        np.savez(file, **data, **outcomes, **names)  # type: ignore[arg-type]
        output = subprocess.run([python, "-c", PEER, str(file)], capture_output=True, check=True, text=True)
    return dict(json.loads(output.stdout))


def peer_table(python: str, series: int, peer_series: int) -> str:
    """Return the table of simple random samples with the exact weekly test and with glide-py."""
    found = glide_alarms(python, peer_series)
    strata = Strata(count=1, labels=PEER_LABELS)
    # Bonferroni's correction of 5 % over 200 weekly tests; a test rejects up to this number of right answers.
    most = int(binom.ppf(0.05 / HORIZON, PEER_LABELS, LIMIT)) - 1
    rows = [
        f"| fall to | change in wave | e-process | weekly exact test | glide-py, level .95 | glide-py, level "
        f"{found['calibrated']:.2f} |",
        "|---" * 6 + "|",
    ]
    for target in PEER_TARGETS:
        for change in CHANGES:
            rng = np.random.default_rng((17, change, round(100 * target)))
            watched = run_series(rng, "stratified", strata, series, changed_levels(change, target))
            weekly = watched.estimates <= (most + 0.5) / PEER_LABELS
            own = [_median_delay(watched.process >= np.log(THRESHOLD), change), _median_delay(weekly, change)]
            peer = [
                _delay_of_first(np.array(first), change) for first in found["first"][f"{target} {change}"]
            ]
            rows.append(f"| {target} | {change} | {' | '.join(_waves(delay) for delay in own + peer)} |")
    head = (
        f"## Simple random samples of {PEER_LABELS} labels: median delay\n\n{series} series per entry, "
        f"{peer_series} of glide-py {found['version']} in Python {found['python']} (`AsymptoticPPRM`, with "
        f"{PEER_UNLABELLED} unlabelled items a wave). At .9, {found['false alarms']:.3f} of its series of "
        f"200 waves had a false alarm with a level of .95; with "
        f"{found['calibrated']:.2f} at most 5 % had one."
    )
    return f"{head}\n\n" + "\n".join(rows)


def _delay_of_first(first: IntArray, change: int) -> float:
    """Return the median delay from the waves of the first alarms (S,), 0 for none."""
    remaining = first[(first == 0) | (first >= change)]
    return float(np.median(np.where(remaining == 0, np.inf, remaining - change + 1.0)))


# ---- the page


def alarm_part(
    series: int, labels: tuple[int, ...] = LABELS, glide: str | None = None, peer_series: int = 200
) -> str:
    """Measure false alarms and delays, and return their part of the page."""
    command = f"python -m benchmarks.over_time --only alarms --series {series}"
    tables = [
        partial(table, series, labels) for table in (_false_alarm_table, _delay_table, _condition_table)
    ]
    if glide is not None:
        command += f" --glide PYTHON --peer-series {peer_series}"
        tables.append(partial(peer_table, glide, series, peer_series))
    texts = []
    for table in tables:
        texts.append(table())
        print(texts[-1], flush=True)
    heading = f"# Weeks over time\n\nFalse alarms and delays: `{command}`, {circumstances()}"
    description = (__doc__ or "").split("\n\n", 2)[2].strip()
    return "\n\n".join([heading, description, *texts]) + "\n"


def coverage_part(draws: int, labels: tuple[int, ...] = LABELS) -> str:
    """Measure coverage, and return its part of the page."""
    table = _coverage_table(draws, labels)
    command = f"python -m benchmarks.over_time --only coverage --draws {draws}"
    return f"{COVERAGE}\n\n`{command}`, {circumstances()}\n\n{table}\n"


def _coverage_table(replicates: int, labels: tuple[int, ...]) -> str:
    columns = ("level", "since previous", "since first", "together")
    rows = [f"| scenario | labels | {' | '.join(columns)} |", "|---" * (2 + len(columns)) + "|"]
    for scenario in SCENARIOS:
        for n in labels:
            shares = coverage(scenario, n, replicates)
            cells = (f"{shares[name]:.3f} ({shares[f'lowest {name}']:.3f})" for name in columns)
            rows.append(f"| {scenario} | {n} | {' | '.join(cells)} |")
    text = f"{replicates} samples of each wave; mean over the waves, and in brackets the lowest of them."
    return f"{text}\n\n" + "\n".join(rows)


def _false_alarm_table(series: int, labels: tuple[int, ...]) -> str:
    names = " | ".join(f"{name} chart" for name in CHARTS)
    rows = [f"| waves | labels | e-process | {names} |", "|---" * (3 + len(CHARTS)) + "|"]
    for design in DESIGNS:
        for n in labels:
            share, charts = false_alarms(design, n, series)
            values = " | ".join(f"{charts[name]:.3f}" if name in charts else "–" for name in CHARTS)
            rows.append(f"| {design} | {n} | {share:.4f} | {values} |")
    return f"## False alarms in {HORIZON} waves\n\n{series} series per row.\n\n" + "\n".join(rows)


def _delay_table(series: int, labels: tuple[int, ...]) -> str:
    names = ("e-process", *CHARTS)
    rows = [f"| labels | fall to | {' | '.join(names)} |", "|---" * (2 + len(names)) + "|"]
    for n in labels:
        for target in TARGETS:
            found = [delays(n, target, change, series) for change in CHANGES]
            cells = (" / ".join(_waves(each[name]) for each in found) for name in names)
            rows.append(f"| {n} | {target} | {' | '.join(cells)} |")
    changes = ", ".join(map(str, CHANGES))
    return f"## Median delay, change in wave {changes}\n\n{series} series per entry.\n\n" + "\n".join(rows)


def _condition_table(series: int, labels: tuple[int, ...]) -> str:
    rows = [f"| waves | {' | '.join(f'{n} labels' for n in LABELS)} |", "|---" * (1 + len(LABELS)) + "|"]
    for design in ("stratified", *CONDITIONS):
        cells = []
        for n in LABELS:
            each = [delays(n, 0.85, change, series, design) for change in CHANGES if n in labels]
            cells.append(" / ".join(_waves(delay["e-process"]) for delay in each))
        rows.append(f"| {design} | {' | '.join(cells)} |")
    changes = ", ".join(map(str, CHANGES))
    title = f"## Median delay of a fall to .85 in wave {changes}, other conditions"
    return f"{title}\n\n{series} series per entry.\n\n" + "\n".join(rows)


def _waves(delay: float) -> str:
    return f">{AFTER}" if np.isinf(delay) else f"{delay:.0f}"


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--series", type=int, default=5_000)
    parser.add_argument("--draws", type=int, default=20_000)
    parser.add_argument("--glide", help="a Python with glide-py, for the comparison with its monitor")
    parser.add_argument("--peer-series", type=int, default=200)
    parser.add_argument("--only", choices=("alarms", "coverage"), help="the rest of the page stays")
    options = parser.parse_args()
    alarms, _, stored = RESULTS.read_text(encoding="utf-8").partition(COVERAGE)
    coverages = COVERAGE + stored
    if options.only != "coverage":
        alarms = alarm_part(options.series, glide=options.glide, peer_series=options.peer_series)
    if options.only != "alarms":
        coverages = coverage_part(options.draws)
    RESULTS.write_text(f"{alarms.strip()}\n\n{coverages.strip()}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
