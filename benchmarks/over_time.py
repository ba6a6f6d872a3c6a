"""Weeks over time: coverage of levels and changes, false alarms in long series, and the delay of an alarm.

    OMP_NUM_THREADS=1 python -m benchmarks.over_time [--series 1000] [--draws 200]

Each wave has 5,000 new items. The outcome follows the score with a slope of .8 on the logit scale, and the
share of right answers of the 5,000 is exactly the stated one.

- **Coverage**: "level" is the coverage of a wave's own 95 % interval, the mean over the twelve waves, and
  "lowest wave" that of the worst one, by `stratal.simulate` with the strata and the allocation of
  `stratal.plan`. The other columns are of waves 1, t − 1 and t, t drawn at random, that `stratal.trend`
  compares: "change" is the interval of the change at the level for three rows together, "together" the share
  of runs in which all three simultaneous intervals hold. The level is constant, jumps from .93 to .85 in wave
  7, falls by .01 each wave, or is seasonal; with the drifting judge the slope goes from .8 to −.4 while the
  level stays.
- **False alarms**: the share of series of 200 waves with an alarm for `>=.9`. In the first rows the share
  of right answers is exactly .9 in every wave. Samples are stratified in equal strata of the score (5 with
  25 labels, else 10), or clusters of 5 items. With late labels 30 % of the labels of a wave are missing in
  the run of its own week; an alarm in any of the weekly runs counts.
- **Delay**: waves from the change (1: the first changed wave) to the alarm, median over the series without
  an earlier alarm, ">60" if more than half have none 60 waves later. The share of right answers is .93
  before. The control charts are calibrated to 5 % false alarms in 200 waves at .9, with the true variance,
  which in practice is unknown: the largest weekly deviation (a weekly test with a corrected level), an EWMA
  with weight .2, and a CUSUM with allowance .5.

Predictions of the alarm come from earlier waves' labels, by stratum, through `stratal.waves.e_process`.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from benchmarks.helpers import circumstances
from scipy.special import expit, logit, ndtri

import stratal
from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.planning.plan import Plan
from stratal.waves.e_process import (
    centred_rates,
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
# Simulated samples of a level for each run of three waves, which takes as long as hundreds of samples.
LEVELS_PER_DRAW = 40
SCENARIOS = ("no drift", "jump", "slide", "drifting judge", "seasonal")
DESIGNS = ("stratified", "drifting score", "better than required", "nonresponse", "late labels", "clusters")


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
    slope = SLOPE - 1.2 * (wave - 1) / (WAVES - 1) if scenario == "drifting judge" else SLOPE
    return round(float(levels.get(scenario, 0.93)), 4), slope


@cache
def plan_for(n: int) -> Plan:
    """Return the plan of a wave; the scores of all waves are the same."""
    population = stratal.Population.from_arrays(proxy={"score": scores()})
    return stratal.plan(population, budget=n)


def level_coverage(scenario: str, n: int, replicates: int) -> dict[str, float]:
    """Return the coverage of the wave's own interval: the mean over twelve waves, and the lowest."""
    plan = plan_for(n)
    population = stratal.Population.from_arrays(proxy={"score": scores()})
    design = f"{plan.strata.method}:{plan.strata.n_strata}:{plan.allocation.method}"
    truths = [level_and_slope(scenario, wave) for wave in range(1, WAVES + 1)]
    of_truth = {}
    for place, truth in enumerate(dict.fromkeys(truths)):
        rng = np.random.default_rng((3, n, SCENARIOS.index(scenario), place))
        table = stratal.simulate(
            population,
            outcomes_of(rng, *truth),
            designs=design,
            estimators="auto",
            budgets=[n],
            replicates=replicates,
            seed=place,
        )
        of_truth[truth] = float(table.rows()[0]["coverage"])
    waves = [of_truth[truth] for truth in truths]
    return {"level": float(np.mean(waves)), "lowest": min(waves)}


def coverage(scenario: str, n: int, draws: int, seed: int = 0) -> dict[str, float]:
    """Return how often the simultaneous intervals of two changes, and all three intervals, hold."""
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
class Strata:
    """Equal strata of the score with proportional numbers of labels."""

    count: int
    labels: int

    @property
    def shares(self) -> FloatArray:
        """W_h (H,)."""
        return np.full(self.count, 1.0 / self.count)

    @property
    def stratum(self) -> IntArray:
        """Stratum of each label (n,)."""
        return np.repeat(np.arange(self.count), self.labels // self.count)

    def correct(self, level: float, slope: float = SLOPE) -> IntArray:
        """Return the right answers of each stratum (H,), which add up to exactly the level."""
        rates = right_rates(level, slope).reshape(self.count, -1).sum(axis=1)
        correct = np.floor(rates).astype(np.int64)
        missing = round(level * UNITS) - int(correct.sum())
        correct[np.argsort(correct - rates)[:missing]] += 1
        return np.asarray(correct)

    def draw(self, rng: np.random.Generator, series: int, level: float, slope: float = SLOPE) -> FloatArray:
        """Return the outcomes (S, n) of a simple random sample of each stratum."""
        size = UNITS // self.count
        per_stratum = self.labels // self.count
        correct = self.correct(level, slope)
        totals = rng.hypergeometric(correct, size - correct, per_stratum, (series, self.count))
        places = np.tile(np.arange(per_stratum), self.count)
        outcomes: BoolArray = places < totals[:, self.stratum]
        return outcomes.astype(np.float64)


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

    def log_e_values(self, outcomes: FloatArray, labelled: BoolArray) -> FloatArray:
        """Return log e-values (S, D) of the next wave; `labelled` (S, n) are the units with a label."""
        strata = self.strata
        n_h = self.by_stratum(labelled.astype(np.float64))
        weights = (1.0 / (strata.count * np.maximum(n_h, 1.0)))[:, strata.stratum] * labelled
        # Strata without a label are left out, as far as there are any.
        weights /= weights.sum(axis=1, keepdims=True)
        rates = self.rates()
        shares = (n_h > 0) / (n_h > 0).sum(axis=1, keepdims=True)
        centred = rates + (LIMIT - np.sum(rates * shares, axis=1))[:, None]
        if np.all(n_h > 0):
            centred = centred_rates(rates, strata.shares, np.full(self.series, LIMIT))
        expected = centred[:, strata.stratum]
        return log_e_values(
            weights * outcomes,
            weights * expected,
            weights * expected,
            weights,
            expected_variances(centred)[:, strata.stratum],
            labelled.sum(axis=1),
        )

    def add(self, outcomes: FloatArray, labelled: BoolArray) -> None:
        """Count the labels of a wave for the predictions of later ones."""
        self.totals += self.by_stratum(outcomes * labelled)
        self.counts += self.by_stratum(labelled.astype(np.float64))

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
        slope = np.sum((means - centre) * self.totals, axis=1, keepdims=True) / spread
        return smoothed_rates(self.totals, self.counts, np.clip(mean + slope * (means - centre), 0.0, 1.0))

    def by_stratum(self, values: FloatArray) -> FloatArray:
        """Return sums over the strata (S, H)."""
        return np.asarray(values.reshape(self.series, self.strata.count, -1).sum(axis=2))


def false_alarms(design: str, n: int, series: int, seed: int = 0) -> tuple[float, dict[str, float]]:
    """Return the share of series with a false alarm, of the e-process and of each chart."""
    rng = np.random.default_rng((seed, n, DESIGNS.index(design)))
    if design == "clusters":
        return float(np.mean(_cluster_series(rng, n, series) >= np.log(THRESHOLD))), {}
    strata = strata_for(n)
    level = BEFORE if design == "better than required" else LIMIT
    watch = Watch(strata, series)
    complete, estimates, early = [], [], []
    log_capital = np.full((series, 2), -np.inf)
    remaining = 1.0
    for wave in range(1, HORIZON + 1):
        slope = SLOPE - 2 * SLOPE * (wave - 1) / (HORIZON - 1) if design == "drifting score" else SLOPE
        outcomes = strata.draw(rng, series, level, round(slope, 3))
        labelled = np.ones(outcomes.shape, dtype=bool)
        if design == "nonresponse":
            labelled = rng.random(outcomes.shape) >= NONRESPONSE
        remaining -= change_point_weight(wave)
        if design == "late labels":
            present = rng.random(outcomes.shape) >= NONRESPONSE
            with_weight = np.logaddexp(log_capital, np.log(change_point_weight(wave)))
            partial = watch.log_e_values(outcomes, present) + with_weight
            early.append(np.logaddexp(np.logaddexp.reduce(partial, axis=1) - np.log(2), np.log(remaining)))
            log_capital = watch.log_e_values(outcomes, labelled) + with_weight
        complete.append(watch.log_e_values(outcomes, labelled))
        watch.add(outcomes, labelled)
        estimates.append(outcomes.mean(axis=1))
    process = log_e_process(np.stack(complete, axis=1))
    alarms = process.max(axis=1) >= np.log(THRESHOLD)
    if early:
        alarms |= np.max(early, axis=0) >= np.log(THRESHOLD)
    charts = {}
    if design in ("stratified", "drifting score"):
        limits = chart_limits(n)
        deviations = standardised(n, np.stack(estimates, axis=1))
        charts = {name: float(np.mean(chart(name, deviations).max(axis=1) > limits[name])) for name in CHARTS}
    return float(alarms.mean()), charts


def _cluster_series(rng: np.random.Generator, n: int, series: int) -> FloatArray:
    """Return the largest log e-process (S,) of series of samples of clusters."""
    clusters = UNITS // CLUSTER_SIZE
    drawn = n // CLUSTER_SIZE
    shift = rng.normal(0.0, CLUSTER_SHIFT, clusters)
    rates = expit(np.log(9.0) + 0.9 + shift)
    correct = rng.binomial(CLUSTER_SIZE, rates)
    while correct.sum() != round(LIMIT * UNITS):
        place = rng.integers(clusters)
        step = np.sign(round(LIMIT * UNITS) - correct.sum())
        correct[place] = np.clip(correct[place] + step, 0, CLUSTER_SIZE)
    weights = np.full((series, drawn), 1.0 / drawn)
    expected = np.full((series, drawn), LIMIT)
    logs = []
    for _ in range(HORIZON):
        places = np.argpartition(rng.random((series, clusters)), drawn, axis=1)[:, :drawn]
        outcomes = correct[places] / CLUSTER_SIZE
        variances = np.full((series, drawn), LIMIT * (1 - LIMIT))
        logs.append(
            log_e_values(weights * outcomes, weights * expected, weights * expected, weights, variances, n)
        )
    return np.asarray(log_e_process(np.stack(logs, axis=1)).max(axis=1))


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
    estimates = [strata.draw(rng, series, LIMIT).mean(axis=1) for _ in range(HORIZON)]
    deviations = standardised(n, np.stack(estimates, axis=1))
    return {name: float(np.quantile(chart(name, deviations).max(axis=1), 0.95)) for name in CHARTS}


def delays(n: int, target: float, change: int, series: int, seed: int = 1) -> dict[str, float]:
    """Return the median delay of the e-process and of each chart; infinite beyond `AFTER` waves."""
    rng = np.random.default_rng((seed, n, change, round(100 * target)))
    strata = strata_for(n)
    watch = Watch(strata, series)
    everyone = np.ones((series, n), dtype=bool)
    logs, estimates = [], []
    for wave in range(1, change + AFTER):
        outcomes = strata.draw(rng, series, BEFORE if wave < change else target)
        logs.append(watch.log_e_values(outcomes, everyone))
        watch.add(outcomes, everyone)
        estimates.append(outcomes.mean(axis=1))
    result = {"e-process": _median_delay(log_e_process(np.stack(logs, axis=1)) >= np.log(THRESHOLD), change)}
    deviations = standardised(n, np.stack(estimates, axis=1))
    for name, limit in chart_limits(n).items():
        result[name] = _median_delay(chart(name, deviations) > limit, change)
    return result


def _median_delay(alarms: BoolArray, change: int) -> float:
    """Return the median number of waves from the change to the first alarm."""
    remaining = alarms[~alarms[:, : change - 1].any(axis=1), change - 1 :]
    first = np.where(remaining.any(axis=1), remaining.argmax(axis=1) + 1.0, np.inf)
    return float(np.median(first))


# ---- the page


def page(series: int, draws: int, labels: tuple[int, ...] = LABELS) -> str:
    """Measure everything and return the page."""
    heading = f"# Weeks over time\n\n`python -m benchmarks.over_time --series {series} --draws {draws}`, "
    parts = [(__doc__ or "").split("\n\n", 2)[2].strip()]
    tables = ((_false_alarm_table, series), (_delay_table, series), (_coverage_table, draws))
    for table, runs in tables:
        parts.append(table(runs, labels))
        print(parts[-1], flush=True)
    return "\n\n".join([heading + circumstances(), *parts]) + "\n"


def _coverage_table(draws: int, labels: tuple[int, ...]) -> str:
    rows = [
        "| scenario | labels | level | lowest wave | change since previous | change since first | together |",
        "|---" * 7 + "|",
    ]
    replicates = LEVELS_PER_DRAW * draws
    for scenario in SCENARIOS:
        for n in labels:
            row = level_coverage(scenario, n, replicates) | coverage(scenario, n, draws)
            values = " | ".join(f"{value:.3f}" for value in row.values())
            rows.append(f"| {scenario} | {n} | {values} |")
    runs = f"{replicates} samples for each level, {draws} runs for the other columns of a row."
    return f"## Coverage\n\n{runs}\n\n" + "\n".join(rows)


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


def _waves(delay: float) -> str:
    return f">{AFTER}" if np.isinf(delay) else f"{delay:.0f}"


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--series", type=int, default=1_000)
    parser.add_argument("--draws", type=int, default=200)
    options = parser.parse_args()
    RESULTS.write_text(page(options.series, options.draws), encoding="utf-8")


if __name__ == "__main__":
    main()
