"""Labels of earlier waves in a plan, and the pooled level: errors relative to those without earlier waves.

    OMP_NUM_THREADS=1 python -m benchmarks.earlier_waves [--series 20000] [--plans 40]

Each wave has 5,000 new items, and the outcome follows the score with a slope of .8 on the logit scale.

- **Plans**: `stratal.plan(…, previous=…)` with four earlier waves of 100 labels, drawn by the default plan.
  The items have four topics, whose log-odds differ from what the score shows by −1.5, −.5, .5 and 1.5
  ("stable"), or by a third more ("larger differences"). In the planned wave these differences vanish or
  reverse, the level falls from .9 to .75, the score is reversed, or differences and score are. With the
  slow reversal the differences turn from wave to wave, and with "no differences" there are none. "Error" is
  the standard error of the planned sample over that of the plan without earlier waves, expected over the
  outcomes: the root mean square over the repetitions, and the largest of them. "Saved" is the share of the
  labels that could be left out at the error of that plan. "Coverage" is that of the 95 % interval of the
  planned sample.
- **Pooled level**: twelve waves with stratified samples. "Limited" is the root mean squared error of the
  limited level of the latest wave over that of the wave's own estimate. "Interval" is the coverage of the
  pooled interval with a stated largest change of .01 between two waves, and "width" its mean width over
  that of the normal interval of the wave alone. Only the first four scenarios satisfy the stated change.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.helpers import circumstances
from benchmarks.over_time import LABELS, LEVEL_ALONE, UNITS, replicated_wave, strata_for
from scipy.special import expit, logit

import stratal
from stratal.arrays import FloatArray
from stratal.planning.plan import Plan
from stratal.strata.strata import expected_variance
from stratal.waves.pooled import bounded_level, limited_level

RESULTS = Path(__file__).resolve().parent / "results" / "earlier_waves.md"

TOPICS = np.array(["a", "b", "c", "d"])
BIAS = np.array([-1.5, -0.5, 0.5, 1.5])
LARGER = 4 / 3
EARLIER_WAVES = 4
EARLIER_LABELS = 100
LEVEL = 0.9
SLOPE = 0.8
WAVES = 12
SAMPLES = 2_000
MAX_CHANGE = 0.01
PLANS = (
    "stable",
    "larger differences",
    "differences vanish",
    "differences reverse",
    "slow reversal",
    "level falls",
    "score reversed",
    "both reversed",
    "no differences",
)
SERIES = (
    "no drift",
    "slide by .01",
    "rise by .01",
    "reversed judge",
    "seasonal",
    "jump by −.05",
    "jump by −.10",
    "jump by +.05",
    "jump by +.10",
)


# ---- plans


def wave(
    rng: np.random.Generator, name: str, bias: FloatArray, slope: float = SLOPE, level: float = LEVEL
) -> tuple[stratal.Population, FloatArray]:
    """Return the items of a wave, and the probability that each answer is right."""
    score = np.round(expit(2.4 + 1.2 * rng.standard_normal(UNITS)), 3)
    topic = rng.integers(0, len(TOPICS), UNITS)
    log_odds = slope * logit(score) + bias[topic]
    low, high = -20.0, 20.0
    for _ in range(50):
        middle = (low + high) / 2
        if expit(middle + log_odds).mean() < level:
            low = middle
        else:
            high = middle
    population = stratal.Population.from_arrays(
        proxy={"score": score},
        groups={"topic": TOPICS[topic]},
        ids=[f"{name}-{item}" for item in range(UNITS)],
    )
    return population, np.asarray(expit(low + log_odds))


def standard_error(plan: Plan, rates: FloatArray) -> float:
    """Return the standard error of a plan's stratified mean, expected over the outcomes."""
    codes = np.zeros(len(rates), dtype=np.int64)
    if plan.strata.codes is not None and plan.strata.n_strata > 1:
        codes = plan.strata.codes
    means = np.bincount(codes, rates) / np.bincount(codes)
    return float(np.sqrt(expected_variance(plan.strata.sizes, plan.allocation.n_h, means * (1 - means))))


def plan_ratios(scenario: str, labels: Sequence[int], seed: int) -> list[tuple[float, float]]:
    """Return results for each number of labels.

    They are the standard error with earlier waves over the one without, and the coverage of the interval.
    """
    rng = np.random.default_rng((seed, PLANS.index(scenario)))
    pairs: list[tuple[Any, FloatArray]] = []
    for place in range(EARLIER_WAVES):
        turn = 1 - 2 * place / EARLIER_WAVES if scenario == "slow reversal" else 1.0
        size = {"no differences": 0.0, "larger differences": LARGER}.get(scenario, 1.0)
        bias = turn * size * BIAS
        population, rates = wave(rng, f"w{place}", bias)
        sample = stratal.plan(population, EARLIER_LABELS).draw(seed=place)
        rows = np.array([int(unit.split("-")[1]) for unit in sample.ids])
        pairs.append((sample, (rng.random(len(rows)) < rates[rows]).astype(np.float64)))
    factor = {
        "larger differences": LARGER,
        "differences vanish": 0.0,
        "differences reverse": -1.0,
        "slow reversal": -1.0,
        "both reversed": -1.0,
        "no differences": 0.0,
    }
    slope = -SLOPE if scenario in ("score reversed", "both reversed") else SLOPE
    level = 0.75 if scenario == "level falls" else LEVEL
    population, rates = wave(rng, "now", factor.get(scenario, 1.0) * BIAS, slope, level)
    outcomes = (rng.random(UNITS) < rates).astype(np.float64)
    results = []
    for n in labels:
        plan = stratal.plan(population, n, previous=pairs)
        ratio = standard_error(plan, rates) / standard_error(stratal.plan(population, n), rates)
        covered = np.nan
        if plan.strata.n_strata > 1:
            covered = replicated_wave(plan, outcomes, None, SAMPLES, seed).holds(LEVEL_ALONE).mean()
        results.append((ratio, float(covered)))
    return results


# ---- pooled levels


def levels_of(scenario: str) -> list[FloatArray]:
    """Return the levels (T,) of the waves; of seasonal waves for each week of the season."""
    waves = np.arange(WAVES)
    if scenario == "seasonal":
        return [LEVEL + 0.04 * np.sin(2 * np.pi * (waves + shift) / 6) for shift in range(6)]
    levels = np.full(WAVES, LEVEL)
    if scenario == "slide by .01":
        levels = 0.96 - 0.01 * waves
    if scenario == "rise by .01":
        levels = 0.86 + 0.01 * waves
    if scenario.startswith("jump"):
        step = float(scenario.split()[-1].replace("−", "-"))
        if step > 0:
            levels[:] = 0.87
        levels[-1] += step
    return [levels]


def pooled_cell(scenario: str, n: int, series: int) -> tuple[float, float, float]:
    """Return the largest error of the limited level, and the lowest coverage and mean width of intervals."""
    rng = np.random.default_rng((n, SERIES.index(scenario)))
    strata = strata_for(n)
    cells = []
    for levels in levels_of(scenario):
        estimates, errors = [], []
        for place, level in enumerate(levels):
            slope = SLOPE - 2 * SLOPE * place / (WAVES - 1) if scenario == "reversed judge" else SLOPE
            labels = strata.draw(rng, series, round(float(level), 4), round(slope, 3))
            rates = labels.correct / labels.labelled
            unlabelled = 1 - strata.each * strata.count / UNITS
            variances = rates * (1 - rates) / (strata.each - 1) * unlabelled
            estimates.append(rates.mean(axis=1))
            errors.append(np.sqrt(variances.mean(axis=1) / strata.count))
        values, standard_errors = np.stack(estimates, axis=1), np.stack(errors, axis=1)
        counts = np.full(WAVES, float(n))
        truth = round(float(levels[-1]), 4)
        own = np.sqrt(np.mean((values[:, -1] - truth) ** 2))
        limited = limited_level(values, standard_errors, counts, (0.0, 1.0))
        mean, half_width = bounded_level(values, standard_errors, counts, MAX_CHANGE, 0.95, (0.0, 1.0))
        cells.append(
            (
                float(np.sqrt(np.mean((limited - truth) ** 2)) / own),
                float(np.mean(np.abs(mean - truth) <= half_width)),
                float(np.mean(half_width) / (1.96 * own)),
            )
        )
    ratios, coverages, widths = zip(*cells, strict=True)
    return max(ratios), min(coverages), float(np.mean(widths))


# ---- the page


def page(series: int, plans: int, labels: tuple[int, ...] = LABELS) -> str:
    """Measure everything and return the page."""
    command = f"`python -m benchmarks.earlier_waves --series {series} --plans {plans}`, "
    parts = [(__doc__ or "").split("\n\n", 2)[2].strip()]
    for table, runs in ((_plan_table, plans), (_pooled_table, series)):
        parts.append(table(runs, labels))
        print(parts[-1], flush=True)
    return "\n\n".join([f"# Labels of earlier waves\n\n{command}" + circumstances(), *parts]) + "\n"


def _plan_table(repetitions: int, labels: tuple[int, ...]) -> str:
    rows = ["| planned wave | labels | error | largest error | saved | coverage |", "|---" * 6 + "|"]
    for scenario in PLANS:
        results = np.array([plan_ratios(scenario, labels, seed) for seed in range(repetitions)])
        for place, n in enumerate(labels):
            ratios, coverages = results[:, place].T
            square = float(np.mean(ratios**2))
            rows.append(
                f"| {scenario} | {n} | {np.sqrt(square):.3f} | {ratios.max():.3f} | {1 - square:.1%} | "
                f"{np.nanmean(coverages):.3f} |"
            )
    text = f"{repetitions} repetitions per row, and {SAMPLES:,} samples of each plan for the coverage."
    return f"## Plans\n\n{text}\n\n" + "\n".join(rows)


def _pooled_table(series: int, labels: tuple[int, ...]) -> str:
    rows = ["| waves | labels | limited | interval | width |", "|---" * 5 + "|"]
    for scenario in SERIES:
        for n in labels:
            ratio, coverage, width = pooled_cell(scenario, n, series)
            rows.append(f"| {scenario} | {n} | {ratio:.3f} | {coverage:.3f} | {width:.2f} |")
    text = f"{series} series per row; of seasonal waves the worst of six weeks."
    return f"## Pooled level\n\n{text}\n\n" + "\n".join(rows)


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--series", type=int, default=20_000)
    parser.add_argument("--plans", type=int, default=40)
    options = parser.parse_args()
    RESULTS.write_text(page(options.series, options.plans), encoding="utf-8")


if __name__ == "__main__":
    main()
