"""The designs side by side on real predictions: efficiency, bias and coverage of `estimate` as it comes.

Efficiency is Var(simple random mean) / MSE with the same number of labels, above 1 is better.

    OMP_NUM_THREADS=1 python -m benchmarks.designs [--data DIR] [--replicates 400] [--output FILE]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from benchmarks.helpers import BINARY, DATA, circumstances

import stratal
from stratal.arrays import FloatArray
from stratal.designs import Design, inclusion_probabilities

OUTPUT = Path(__file__).resolve().parent / "results" / "designs.md"
SETS = BINARY[:6]
CLUSTERS = {"nq301_llmjudge": "question", "gsm8k_models": "item"}
BUDGET = 100


def load(directory: Path, name: str) -> tuple[stratal.Population, FloatArray]:
    """Return a population, its clusters as a group, and the truth."""
    table = pq.read_table(directory / f"{name}.parquet")
    groups = {}
    if name in CLUSTERS:
        groups["cluster"] = [str(value) for value in table[CLUSTERS[name]].to_pylist()]
    proxy = table["proxy"].to_numpy().astype(np.float64)
    population = stratal.Population.from_arrays(proxy=proxy, groups=groups)
    return population, table["z"].to_numpy().astype(np.float64)


def designs(population: stratal.Population) -> Iterator[tuple[str, Design]]:
    """Yield the designs that are compared."""
    strata = stratal.strata.stratify(population, n_strata=10)
    allocation = stratal.strata.allocate(strata, BUDGET)
    yield "simple random", stratal.designs.SimpleRandom(budget=BUDGET)
    yield "stratified (default)", stratal.designs.Stratified(strata=strata, allocation=allocation)
    yield "proportional to size", stratal.designs.ProportionalToSize(budget=BUDGET)
    yield "Poisson", stratal.designs.Poisson(budget=BUDGET, size="sqrt-variance")
    yield "systematic", stratal.designs.Systematic(budget=BUDGET)
    for clusters in (10, 20, 50):
        if population.group_names:
            yield (
                f"{clusters} clusters",
                stratal.designs.ClusterSample(cluster=population.group_names[0], n_clusters=clusters),
            )


def row(population: stratal.Population, z: FloatArray, name: str, design: Design, replicates: int) -> str:
    """Return one line: labels, estimator, efficiency, bias, variance ratio, coverage, width."""
    truth, size = float(z.mean()), len(z)
    found = []
    for seed in range(replicates):
        sample = design.draw(population, seed)
        estimate = stratal.estimate(sample, z[sample.ids])
        low, high = estimate.confidence_interval()
        hit = low <= truth <= high
        found.append((estimate.value, estimate.standard_error**2, hit, high - low, estimate.n))
    values, variances, hits, widths, labels = np.array(found).T
    error = np.mean((values - truth) ** 2)
    random = (1 - labels.mean() / size) * z.var(ddof=1) / labels.mean()
    numbers = [
        f"{labels.mean():.0f}",
        estimate.estimator,
        f"{random / error:.2f}",
        f"{(values.mean() - truth) / np.sqrt(error):+.2f}",
        f"{variances.mean() / error:.2f}",
        f"{hits.mean():.3f}",
        f"{widths.mean():.3f}",
    ]
    return f"| {name} | " + " | ".join(numbers) + " |"


def certainty(sizes: int = 1_000_000, budget: int = 100_000) -> str:
    """Return how long the closed form takes."""
    x = np.random.default_rng(0).pareto(0.7, sizes) + 0.1
    start = time.perf_counter()
    chance = inclusion_probabilities(x, budget)
    seconds = time.perf_counter() - start
    return (
        f"Inclusion probabilities of {sizes:,} units, {int((chance == 1).sum()):,} of them certain: "
        f"{seconds:.2f} s."
    )


def report(directory: Path, replicates: int) -> Iterator[str]:
    """Yield the lines of the result file."""
    names = "design, labels, estimator, efficiency, bias / SE, estimated variance / MSE, coverage, width"
    head = "| " + names.replace(", ", " | ") + " |"
    for name in SETS:
        population, z = load(directory, name)
        yield f"## {name}"
        yield ""
        yield head
        yield "|---|---|---|---|---|---|---|---|"
        for label, design in designs(population):
            yield row(population, z, label, design, replicates)
        yield ""
    yield certainty()


def main() -> None:
    """Print the tables and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--replicates", type=int, default=1000)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    found = list(report(options.data, options.replicates))
    command = f"`python -m benchmarks.designs --replicates {options.replicates}`"
    lines = ["# Designs", "", f"{command}, {circumstances()}", "", *found]
    options.output.parent.mkdir(exist_ok=True)
    options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
