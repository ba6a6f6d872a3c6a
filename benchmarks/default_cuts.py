"""Variance of plans with the default strata, relative to plans with strata of k-means.

    OMP_NUM_THREADS=1 python -m benchmarks.default_cuts [--units 20000]

Outcomes are 0 and 1. The variances of a stratified mean are exact: those of the generated scores for outcomes
whose log-odds are `slope` times the log-odds of the score, plus `shift`; those of public files for the
recorded outcomes. Writes benchmarks/results/default_cuts.md.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from benchmarks.helpers import BINARY, circumstances, load

import stratal
from stratal.arrays import FloatArray
from stratal.planning.plan import Plan
from stratal.strata.strata import expected_variance

RESULTS = Path(__file__).with_name("results") / "default_cuts.md"
SEED = 1
BUDGETS = (50, 100, 200)
BUDGETS_OF_FILES = (50, 100, 200, 300, 400, 1000)
BETAS = (
    (0.05, 5), (0.1, 1), (0.3, 3), (2, 8), (0.2, 0.2), (0.5, 0.5), (1, 1), (2, 2), (5, 1.5), (5, 0.5),
    (8, 0.3), (20, 2),
)  # fmt: skip
"""Parameters of the beta distributions of the scores."""

SLOPES = (0.25, 0.5, 0.8, 1.0, 1.5, 2.0)
SHIFTS = (-1.5, 0.0, 1.5)
RARER_LABELS = (1, 2, 5)


@dataclass(frozen=True)
class Cell:
    """One population and number of labels."""

    n_labels: int
    expected_rarer: float
    ratio: float


def plan_variance(plan: Plan, rates: FloatArray) -> float:
    """Return the variance of the stratified mean of outcomes 0 and 1 with these rates (N,)."""
    strata = plan.strata
    assert strata.codes is not None
    assert plan.allocation is not None
    stratum_rates = np.bincount(strata.codes, rates, strata.n_strata) / strata.sizes
    return float(expected_variance(strata.sizes, plan.allocation.n_h, stratum_rates * (1 - stratum_rates)))


def generated_cells(units: int) -> Iterator[Cell]:
    """Yield the cells of generated scores."""
    rng = np.random.default_rng(SEED)
    for a, b in BETAS:
        score = np.clip(rng.beta(a, b, units), 1e-6, 1 - 1e-6)
        log_odds = np.log(score / (1 - score))
        population = stratal.Population.from_arrays(proxy=score)
        for n_labels in BUDGETS:
            default = stratal.plan(population, n_labels)
            k_means = stratal.plan(population, n_labels, method="k-means")
            for slope, shift in itertools.product(SLOPES, SHIFTS):
                rates = 1 / (1 + np.exp(-slope * log_odds - shift))
                ratio = plan_variance(default, rates) / plan_variance(k_means, rates)
                rarer = n_labels * min(rates.mean(), 1 - rates.mean())
                yield Cell(n_labels=n_labels, expected_rarer=rarer, ratio=ratio)


def generated_rows(cells: list[Cell]) -> Iterator[str]:
    """Yield a row for each number of labels and limit of the expected labels of the rarer value."""
    for n_labels, limit in itertools.product(BUDGETS, RARER_LABELS):
        kept = [cell for cell in cells if cell.n_labels == n_labels and cell.expected_rarer >= limit]
        ratios = np.array([cell.ratio for cell in kept])
        above = np.mean(ratios > 1.02)
        yield (
            f"| {n_labels} | {limit} | {len(kept)} | {ratios.mean():.3f} | {ratios.min():.3f} | "
            f"{ratios.max():.3f} | {above:.1%} |"
        )


def file_rows() -> Iterator[str]:
    """Yield a row for each public file."""
    for name in BINARY:
        outcomes, proxy = load(name)
        population = stratal.Population.from_arrays(proxy=proxy)
        ratios = []
        for n_labels in BUDGETS_OF_FILES:
            default = stratal.plan(population, n_labels)
            k_means = stratal.plan(population, n_labels, method="k-means")
            ratios.append(plan_variance(default, outcomes) / plan_variance(k_means, outcomes))
        yield f"| {name} | " + " | ".join(f"{ratio:.3f}" for ratio in ratios) + " |"


def main() -> None:
    """Measure all cells and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--units", type=int, default=20_000)
    units = parser.parse_args().units
    cells = list(generated_cells(units))
    budgets = " | ".join(map(str, BUDGETS_OF_FILES))
    RESULTS.write_text(
        "# Default strata and strata of k-means\n\n"
        f"{circumstances()}\n\n"
        "Variance of a plan with the default strata, divided by that of a plan with strata of k-means "
        f"(`python -m benchmarks.default_cuts --units {units}`).\n\n"
        f"## Generated scores\n\n{len(BETAS)} beta distributions of the score. The log-odds of the outcomes "
        f"have {len(SLOPES)} slopes from {SLOPES[0]:g} to {SLOPES[-1]:g} on those of the score, and the "
        f"shifts {SHIFTS[0]:g}, 0 and {SHIFTS[-1]:g}. The second column is the smallest number of labels of "
        "the rarer value that a random sample is expected to have.\n\n"
        "| labels | labels of the rarer value | cells | mean | smallest | largest | above 1.02 |\n"
        "|---|---|---|---|---|---|---|\n" + "\n".join(generated_rows(cells)) + "\n\n"
        f"## Public files\n\n| file | {budgets} |\n|---|" + "---|" * len(BUDGETS_OF_FILES) + "\n"
        "" + "\n".join(file_rows()) + "\n"
    )


if __name__ == "__main__":
    main()
