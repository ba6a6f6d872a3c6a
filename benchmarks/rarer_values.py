"""Coverage and width of correlations with labels of two values, few of which have the rarer one.

    OMP_NUM_THREADS=1 python -m benchmarks.rarer_values [--replicates 400]

Simple random samples of 12 populations of 10,000 units. "Before" is the interval without the extension of
stratal.metrics.rarer_value, of the same labels. Width: mean width over 3.92 root mean squared errors. Draws
whose labels are all equal have no estimate and do not count. Writes benchmarks/results/rarer_values.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from benchmarks.helpers import DATA, circumstances, load

from stratal.arrays import AnyArray, FloatArray
from stratal.designs import StratifiedWeighting
from stratal.intervals.interval import Interval
from stratal.metrics import associations
from stratal.metrics.rarer_value import RarerValueInterval

RESULTS = Path(__file__).with_name("results") / "rarer_values.md"
UNITS = 10_000
SIZES = (30, 50, 100, 300)
FILE = "cifar10_vgg"
STATISTICS = {"pearson": associations.pearson, "icc": associations.intraclass}


@dataclass(frozen=True, slots=True)
class ScoredLabels:
    """A population of scores and labels, 0 or 1."""

    name: str
    scores: FloatArray
    labels: FloatArray


def populations() -> Iterator[ScoredLabels]:
    """Yield the populations; that of a file only if it is present."""
    rng = np.random.default_rng(11)

    def rare(share: float) -> FloatArray:
        return (rng.random(UNITS) < share).astype(np.float64)

    def normal(scale: float) -> FloatArray:
        return scale * rng.normal(size=UNITS)

    chance = rng.beta(0.3, 5.7, UNITS)
    yield ScoredLabels("calibrated, 5%", chance, (rng.random(UNITS) < chance).astype(np.float64))
    chance = rng.beta(0.5, 4.5, UNITS)
    yield ScoredLabels("calibrated, 10%", chance, (rng.random(UNITS) < chance).astype(np.float64))
    label = rare(0.02)
    yield ScoredLabels("sharp, 2%", 1.0 / (1.0 + np.exp(-(normal(1.0) + 4.0 * (label - 0.5)))), label)
    yield ScoredLabels("useless, 4%", rng.random(UNITS), rare(0.04))
    label = rare(0.06)
    overconfident = np.where(label == 1.0, rng.beta(2.0, 0.5, UNITS), rng.beta(5.0, 0.1, UNITS))
    yield ScoredLabels("overconfident, 6% wrong", overconfident, 1.0 - label)
    label = rare(0.06)
    yield ScoredLabels("log-normal, 6%", 0.2 * np.exp(normal(0.8) + label), label)
    label = rare(0.06)
    yield ScoredLabels("t, 3 df, 6%", 0.3 * rng.standard_t(3, UNITS) + 0.6 * label, label)
    label = rare(0.06)
    yield ScoredLabels("reversed, 6%", np.clip(0.7 - 0.4 * label + normal(0.2), 0.0, 1.0), label)
    label = rare(0.05)
    is_high = (label == 1.0) & (rng.random(UNITS) < 0.5)
    two_kinds = np.where(is_high, rng.beta(8, 2, UNITS), rng.beta(1, 8, UNITS))
    yield ScoredLabels("two kinds, 5%", two_kinds, label)
    label = rare(0.08)
    five = np.clip(np.floor(2.0 + 1.5 * label + normal(1.0)), 0.0, 4.0) / 4.0
    yield ScoredLabels("five levels, 8%", five, label)
    label = rare(0.15)
    yield ScoredLabels("normal, 15%", np.clip(0.3 + 0.3 * label + normal(0.2), 0.0, 1.0), label)
    label = rare(0.3)
    yield ScoredLabels("normal, 30%", np.clip(0.3 + 0.3 * label + normal(0.2), 0.0, 1.0), label)
    if (DATA / f"{FILE}.parquet").exists():
        outcome, proxy = load(FILE)
        yield ScoredLabels(f"{FILE}, 6% wrong", np.clip(proxy, 0.0, 1.0), outcome)


def both_limits(interval: Interval) -> list[tuple[float, float]]:
    """Return the limits without the extension, and with it."""
    inner = interval
    while isinstance(inner, RarerValueInterval):
        inner = inner.inner
    return [inner.ends(0.95, "two-sided"), interval.ends(0.95, "two-sided")]


def measure(population: ScoredLabels, name: str, n: int, replicates: int) -> str:
    """Return the row of a cell."""
    scores, labels = population.scores, population.labels
    size = len(labels)
    statistic = STATISTICS[name]
    truth = statistic(scores, labels, np.full(size, 1.0 / size))[0]
    weighting = StratifiedWeighting(stratum=np.zeros(n, dtype=np.int64), sizes=np.array([size]))
    errors = []
    limits = []
    rarer = []
    for seed in range(replicates):
        units = np.random.default_rng([seed, n]).choice(size, n, replace=False)
        if np.ptp(labels[units]) == 0 or np.ptp(scores[units]) == 0:
            continue
        estimate = associations.association(statistic, scores[units], labels[units], weighting)
        interval = estimate.evidence.interval
        assert interval is not None
        errors.append(estimate.value - truth)
        limits.append(both_limits(interval))
        rarer.append(min(labels[units].sum(), n - labels[units].sum()))
    low, high = np.moveaxis(np.array(limits), -1, 0)
    coverage = np.mean((low <= truth) & (truth <= high), axis=0)
    width: AnyArray = np.mean(high - low, axis=0) / (3.92 * np.sqrt(np.mean(np.square(errors))))
    return (
        f"| {name} | {population.name} | {truth:.2f} | {n} | {np.mean(rarer):.1f} | {coverage[0]:.3f} | "
        f"{coverage[1]:.3f} | {width[0]:.2f} | {width[1]:.2f} | {len(errors)} |"
    )


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=400)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    rows = [
        measure(population, name, n, options.replicates)
        for population in populations()
        for name in STATISTICS
        for n in SIZES
    ]
    page = [
        "# Correlations with few labels of the rarer of two values",
        "",
        f"    python -m benchmarks.rarer_values --replicates {options.replicates}",
        "",
        circumstances(),
        "",
        "95 % intervals of simple random samples. Rarer: mean number of labels with the rarer value. Before: "
        "without the extension for few such labels. Width: mean width over 3.92 root mean squared errors. "
        f"The standard error of a coverage of .95 is {np.sqrt(0.95 * 0.05 / options.replicates):.3f}.",
        "",
        "| estimand | population | value | labels | rarer | coverage before | coverage | width before "
        "| width | draws |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *rows,
    ]
    options.output.write_text("\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
