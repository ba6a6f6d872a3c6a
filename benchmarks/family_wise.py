"""Family-wise error of six equal models, and coverage of one pair: target superpopulation.

    OMP_NUM_THREADS=1 python -m benchmarks.family_wise [--draws 400]

The population is drawn anew in each replicate: all, half or 1 % of its units are labelled, or all, half
or 1 % of its clusters of 10 units, within which the models' errors resemble each other.
Writes benchmarks/results/family_wise.md.
"""

from __future__ import annotations

import argparse
from itertools import combinations
from pathlib import Path

import numpy as np
from benchmarks.helpers import circumstances

import stratal
from stratal.arrays import FloatArray
from stratal.estimation.estimates import Estimates
from stratal.metrics.comparison import ModelOutcomes

RESULTS = Path(__file__).with_name("results") / "family_wise.md"
MODELS = 6
CLUSTER_SIZE = 10
SCREEN = 1.5
SHARED, WITHIN_CLUSTER, THRESHOLD = 0.5, 0.7, 0.6
CELLS = (
    ("all units", 200, 200, False),
    ("half of the units", 200, 100, False),
    ("1 % of the units", 20_000, 200, False),
    ("all clusters", 400, 40, True),
    ("half of the clusters", 400, 20, True),
    ("1 % of the clusters", 40_000, 40, True),
)


def drawn(size: int, count: int, clusters: bool) -> stratal.Sample:
    """Return a sample of `count` units, or clusters, of a population of `size` units."""
    groups = {"cluster": (np.arange(size) // CLUSTER_SIZE).astype(str)} if clusters else None
    population = stratal.Population.from_arrays(ids=np.arange(size), groups=groups)
    if clusters:
        return stratal.designs.ClusterSample(cluster="cluster", n_clusters=count).draw(population, seed=1)
    return stratal.designs.SimpleRandom(budget=count).draw(population, seed=1)


def outcomes(sample: stratal.Sample, rng: np.random.Generator) -> FloatArray:
    """Return right and wrong answers (n, 6) of equal models; some units are hard for all of them."""
    n = sample.size
    score = SHARED * rng.normal(size=(n, 1)) + rng.normal(size=(n, MODELS))
    if "cluster" in sample.groups:
        _, cluster = np.unique(sample.groups["cluster"], return_inverse=True)
        score += WITHIN_CLUSTER * rng.normal(size=(int(cluster.max()) + 1, MODELS))[cluster]
    return (score < THRESHOLD).astype(np.float64)


def rates(sample: stratal.Sample, draws: int, seed: int = 20_261_128) -> tuple[float, float, float]:
    """Return the family-wise error, the coverage of one pair, and its mean width over the ideal width."""
    rng = np.random.default_rng(seed)
    everyone = np.ones(sample.size, dtype=bool)
    names = tuple(f"model {k}" for k in range(MODELS))
    wrong, covered, widths, values = 0, 0, [], []
    for _ in range(draws):
        z = outcomes(sample, rng)
        models = ModelOutcomes.of(sample, z, everyone, names, bounds=(0.0, 1.0), target="superpopulation")
        rows = [models.pair(*places).difference() for places in combinations(range(MODELS), 2)]
        alone = rows[0].confidence_interval()
        together = Estimates.from_rows(sample, rows, "comparisons").simultaneous()
        # Together the intervals reach 2.8 standard errors to each side, so that all other rows contain 0.
        extreme = [row for row in together if abs(row.value) > SCREEN * row.standard_error]
        wrong += any(0.0 not in row.confidence_interval() for row in extreme)
        covered += 0.0 in alone
        widths.append(alone.width)
        values.append(rows[0].value)
    ideal = 2 * 1.96 * float(np.sqrt(np.mean(np.square(values))))
    return wrong / draws, covered / draws, float(np.mean(widths)) / ideal


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    rows = []
    for name, size, count, clusters in CELLS:
        sample = drawn(size, count, clusters)
        error, coverage, sharpness = rates(sample, options.draws)
        rows.append(f"| {name} | {size} | {sample.size} | {error:.4f} | {coverage:.4f} | {sharpness:.3f} |")
        print(rows[-1], flush=True)
    lines = [
        "# Six equal models together",
        "",
        f"    python -m benchmarks.family_wise --draws {options.draws}",
        "",
        circumstances(),
        "",
        f"All pairs of {MODELS} models, 95 % intervals together; an error is a draw in which any of them "
        f"excludes 0. One standard error of a share of .05 is {np.sqrt(0.0475 / options.draws):.4f}.",
        "",
        "| labelled | units | labels | family-wise error | coverage of a pair | width / (3.92 RMSE) |",
        "|---|---|---|---|---|---|",
        *rows,
    ]
    options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
