"""Coverage of the `auto` interval where labels weigh differently, and of coefficients that few units decide.

    OMP_NUM_THREADS=1 python -m benchmarks.unequal_weights [--replicates 2000] [--output FILE]

Writes benchmarks/results/unequal_weights.md. Populations are made here: log-normal sizes of deviation σ (of
units or of clusters), an outcome whose log-odds depend on the size by `link`, a score that is calibrated,
inverted, inflated, constant or noise. Estimates are those of `stratal.estimate`, from arrays. Korn and
Graubard's interval of the same estimates stands next to `auto`.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from benchmarks.helpers import circumstances
from scipy.optimize import brentq
from scipy.special import expit

from stratal.arrays import FloatArray, IntArray
from stratal.designs import (
    ClusterWeighting,
    PoissonWeighting,
    StratifiedWeighting,
    Weighting,
    inclusion_probabilities,
)
from stratal.designs.margins import CalibratedWeighting, fitted_ratios
from stratal.estimation.outcome_means import EstimateOptions, estimate_mean
from stratal.population.summary import StratumSummary
from stratal.regression.losses import PoissonLoss
from stratal.regression.m_estimation import m_estimate

OUTPUT = Path(__file__).resolve().parent / "results" / "unequal_weights.md"
UNITS, CLUSTERS, MEAN_SIZE = 8000, 400, 12.0
METHODS = ("auto", "korn-graubard")
SCORES: dict[str, Callable[[FloatArray, np.random.Generator], FloatArray]] = {
    "calibrated": lambda p, rng: p,
    "inverted": lambda p, rng: 1.0 - p,
    "inflated": lambda p, rng: np.sqrt(p),
    "constant": lambda p, rng: np.full(len(p), 0.5),
    "noise": lambda p, rng: rng.random(len(p)),
}


@dataclass(frozen=True)
class Cell:
    """One population and one design: n labels, or clusters."""

    design: str
    rate: float
    n: int
    sigma: float
    link: float
    score: str

    def __str__(self) -> str:
        return f"{self.design} | {self.rate:g} | {self.n} | {self.sigma:g} | {self.link:+g} | {self.score}"


CELLS = [
    *(Cell("proportional-to-size", *row) for row in (
        (0.005, 400, 1.0, 0.0, "calibrated"), (0.02, 200, 1.0, 0.0, "inverted"),
        (0.1, 50, 0.5, 0.5, "inflated"), (0.1, 200, 1.5, -0.5, "calibrated"),
        (0.3, 50, 1.0, -1.0, "constant"), (0.3, 200, 2.0, 0.0, "noise"), (0.5, 100, 1.5, 0.0, "inverted"),
        (0.5, 400, 1.0, 1.0, "inflated"), (0.8, 200, 1.5, 0.5, "calibrated"),
        (0.98, 400, 0.5, 0.0, "inverted"),
    )),
    *(Cell("poisson", *row) for row in (
        (0.005, 400, 0.5, 0.0, "inverted"), (0.02, 200, 1.5, 0.5, "calibrated"),
        (0.1, 100, 1.0, -0.5, "noise"), (0.3, 200, 1.5, 1.0, "inverted"), (0.3, 50, 2.0, 0.0, "inflated"),
        (0.5, 50, 1.5, 0.0, "constant"), (0.5, 200, 1.0, -1.0, "calibrated"),
        (0.8, 400, 1.5, -0.5, "inflated"),
        (0.9, 100, 1.0, 1.0, "inverted"), (0.98, 200, 1.0, 0.0, "calibrated"),
    )),
    *(Cell("margins", *row) for row in (
        (0.02, 200, 1.0, 0.0, "calibrated"), (0.1, 50, 1.0, 0.5, "inverted"),
        (0.5, 100, 1.0, 0.5, "inflated"),
        (0.5, 400, 1.0, 0.0, "constant"), (0.9, 50, 1.0, -0.5, "noise"), (0.98, 400, 1.0, 0.0, "inverted"),
    )),
    *(Cell("clusters", *row) for row in (
        (0.02, 40, 0.5, 0.5, "calibrated"), (0.1, 6, 1.0, -1.0, "noise"), (0.1, 20, 0.7, 1.0, "inverted"),
        (0.1, 40, 1.0, -1.0, "constant"), (0.1, 40, 1.0, 1.0, "noise"), (0.3, 12, 1.0, 1.0, "constant"),
        (0.5, 6, 0.7, 1.0, "calibrated"), (0.5, 12, 1.2, 1.0, "inflated"), (0.5, 20, 1.0, -1.0, "calibrated"),
        (0.5, 40, 1.2, -1.0, "inverted"), (0.5, 80, 1.0, 1.0, "constant"), (0.9, 20, 0.7, 1.0, "noise"),
        (0.95, 12, 0.5, 0.0, "inflated"), (0.05, 30, 0.9, 1.0, "calibrated"),
        (0.05, 60, 1.2, 1.5, "noise"), (0.1, 80, 1.3, 1.5, "constant"), (0.2, 25, 1.1, 1.2, "inverted"),
        (0.3, 40, 1.3, 1.5, "inflated"), (0.5, 15, 0.5, 1.5, "noise"), (0.5, 60, 1.3, -1.0, "calibrated"),
        (0.7, 20, 1.3, -1.0, "constant"), (0.9, 40, 1.1, -1.0, "noise"), (0.95, 15, 0.8, -0.5, "inverted"),
    )),
]  # fmt: skip


@dataclass(frozen=True)
class Units:
    """A population: outcome, score, size measure or cluster of each unit."""

    z: FloatArray
    score: FloatArray
    size: FloatArray
    cluster: IntArray | None

    @property
    def summary(self) -> StratumSummary:
        """What an estimator knows of the score."""
        return StratumSummary(
            sizes=np.array([len(self.z)]),
            proxy_means=np.array([[self.score.mean()]]),
            proxy_covariances=np.array([[[self.score.var()]]]),
        )


def population(cell: Cell, seed: int) -> Units:
    """Return a population with exactly the cell's rate in expectation."""
    rng = np.random.default_rng(seed)
    cluster = None
    if cell.design == "clusters":
        normal = rng.normal(size=CLUSTERS)
        sizes = np.exp(np.log(MEAN_SIZE) - cell.sigma**2 / 2 + cell.sigma * normal)
        cluster = np.repeat(np.arange(CLUSTERS), np.maximum(np.round(sizes), 1).astype(np.int64))
        line = cell.link * normal[cluster] + 0.8 * rng.normal(size=CLUSTERS)[cluster]
        line = line + 0.8 * rng.normal(size=len(cluster))
        size = np.ones(len(cluster))
    else:
        normal = rng.normal(size=UNITS)
        line, size = cell.link * normal + 1.5 * rng.normal(size=UNITS), np.exp(cell.sigma * normal)
    shift = brentq(lambda c: float(expit(line + c).mean()) - cell.rate, -40, 40)
    p = expit(line + shift)
    return Units((rng.random(len(p)) < p) * 1.0, SCORES[cell.score](p, rng), size, cluster)


def draws(cell: Cell, units: Units, replicates: int, seed: int) -> Iterator[tuple[IntArray, Weighting]]:
    """Yield the rows of each sample, and its weighting."""
    rng, size = np.random.default_rng(seed), len(units.z)
    if units.cluster is not None:
        sizes = np.bincount(units.cluster)
        starts = np.r_[0, np.cumsum(sizes)]
        for _ in range(replicates):
            chosen = np.sort(rng.choice(CLUSTERS, cell.n, replace=False))
            rows = np.concatenate([np.arange(starts[c], starts[c + 1]) for c in chosen])
            number = np.repeat(np.arange(cell.n), sizes[chosen])
            yield (
                rows,
                ClusterWeighting(
                    cluster=number,
                    drawn=sizes[chosen],
                    clusters=CLUSTERS,
                    size=size,
                    squared_sizes=int(sizes @ sizes),
                ),
            )
    elif cell.design == "margins":
        known = np.array([1.0, units.score.mean()])
        for _ in range(replicates):
            rows = rng.choice(size, cell.n, replace=False)
            base = StratifiedWeighting(stratum=np.zeros(cell.n, dtype=np.int64), sizes=np.array([size]))
            x = np.column_stack([np.ones(cell.n), units.score[rows]])
            ratio = fitted_ratios(base.weights, x, known, "raking")
            yield rows, CalibratedWeighting(base=base, auxiliary=x, ratio=ratio)
    else:
        chance, fixed = inclusion_probabilities(units.size, cell.n), cell.design != "poisson"
        for _ in range(replicates):
            u = rng.random(size)
            rows = np.argpartition(u / chance, cell.n - 1)[: cell.n] if fixed else np.flatnonzero(u < chance)
            yield rows, PoissonWeighting(inclusion_probability=chance[rows], size=size, fixed_size=fixed)


@dataclass(frozen=True)
class Measured:
    """Of one cell: coverage and mean width by method, bias and error of the value."""

    coverage: dict[str, float]
    width: dict[str, float]
    bias: float
    error: float


def measure(cell: Cell, replicates: int, seed: int = 0, methods: tuple[str, ...] = METHODS) -> Measured:
    """Return what the intervals of a cell do; a sample without an interval is a miss of width 1."""
    units = population(cell, seed)
    truth, summary, values = float(units.z.mean()), units.summary, []
    hits: dict[str, list[tuple[bool, float]]] = {method: [] for method in methods}
    options = EstimateOptions(design=cell.design, outcome="binary", bounds=(0.0, 1.0))
    for rows, weighting in draws(cell, units, replicates, seed + 1):
        found = estimate_mean(
            units.z[rows],
            units.score[rows][:, None],
            weighting,
            summary,
            stratum=np.zeros(len(rows), dtype=np.int64),
            options=options,
        )
        values.append(found.value)
        for method in methods:
            low, high = found.confidence_interval(method=method)
            hits[method].append((low <= truth <= high, high - low))
    off = np.array(values) - truth
    error = float(np.sqrt(np.mean(off**2)))
    means = {method: np.mean(np.array(rows, dtype=np.float64), axis=0) for method, rows in hits.items()}
    return Measured(
        coverage={method: float(mean[0]) for method, mean in means.items()},
        width={method: float(mean[1]) for method, mean in means.items()},
        bias=float(off.mean()) / error,
        error=error,
    )


def table(replicates: int) -> Iterator[str]:
    """Yield the rows of all cells."""
    names = "design | rate | n | σ | link | score | coverage | KG's | width | KG's | error | bias / error"
    yield f"| {names} |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    for cell in CELLS:
        found = measure(cell, replicates)
        numbers = [f"{found.coverage[m]:.4f}" for m in METHODS] + [f"{found.width[m]:.3f}" for m in METHODS]
        yield f"| {cell} | " + " | ".join([*numbers, f"{found.error:.4f}", f"{found.bias:+.2f}"]) + " |"


def slopes(replicates: int) -> Iterator[str]:
    """Yield coverage of a Poisson slope of a log-normal feature, and how often a note says why not."""
    yield "| σ of the feature | n | coverage | noted | missed without a note |"
    yield "|---|---|---|---|---|"
    for sigma in (0.5, 1.0, 1.5):
        for n in (50, 100, 300):
            rng, size = np.random.default_rng(0), 10_000
            x = np.exp(sigma * rng.normal(size=size))
            y = rng.poisson(np.exp(np.minimum(0.3 * x - 0.5, 5.0))).astype(np.float64)
            features = np.column_stack([np.ones(size), x])

            def fit(rows: IntArray, units: int, y: FloatArray = y, features: FloatArray = features):  # type: ignore[no-untyped-def]
                weighting = StratifiedWeighting(
                    stratum=np.zeros(len(rows), dtype=np.int64), sizes=np.array([units])
                )
                return m_estimate(PoissonLoss(), y[rows], features=features[rows], weighting=weighting)

            truth = float(fit(np.arange(size), 10**9).values[1])
            rows = []
            for _ in range(replicates):
                found = fit(rng.choice(size, n, replace=False), size)
                low, high = found.confidence_interval()
                rows.append((low[1] <= truth <= high[1], bool(found.notes)))
            inside, noted = np.array(rows).T
            shares = (inside.mean(), noted.mean(), np.mean(~inside & ~noted))
            yield f"| {sigma:g} | {n} | " + " | ".join(f"{share:.3f}" for share in shares) + " |"


def main() -> None:
    """Print the tables and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=2000)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    command = f"`python -m benchmarks.unequal_weights --replicates {options.replicates}`"
    few = max(options.replicates // 5, 50)
    found = [*table(options.replicates), "", "## Poisson slopes of a log-normal feature", "", *slopes(few)]
    words = "KG's: Korn and Graubard's interval. n: labels, or clusters of 12 units on average."
    lines = ["# Unequal weights", "", f"{command}, {circumstances()}", "", words, "", *found]
    options.output.parent.mkdir(exist_ok=True)
    options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
