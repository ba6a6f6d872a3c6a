"""The robust allocation on real predictions: its variance beside proportional's and oracle Neyman's.

One round, in closed form: Σ W_h² (1 − f_h) S_h² / n_h with the true S_h and whole numbers n_h ≥ 2.
Two rounds: half the budget in a proportional pilot, drawn many times, and the rest by the default's rule.

    python -m benchmarks.robust_allocation [--data DIR] [--strata k-means|neyman] [--replicates 200]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from benchmarks.adaptive import Case, cases
from benchmarks.helpers import DATA, circumstances
from benchmarks.rounds import rounds

from stratal.simulation.draws import BinaryDraws
from stratal.strata import allocate, neyman, proportional

BUDGETS = (50, 100, 200, 400)
EVERY_BUDGET = range(50, 401)


def one_round(case: Case, budget: int) -> tuple[float, float, float, float]:
    """Return variances over proportional's (plug-in Neyman, robust), efficiencies (proportional, robust)."""
    s = case.strata
    default = allocate(s, budget).n_h
    even, plug_in, oracle, found = (
        float(case.variance(n_h))
        for n_h in (
            proportional(s.sizes, budget),
            neyman(s.sizes, s.standard_deviations, budget),
            neyman(s.sizes, case.deviations, budget),
            default,
        )
    )
    return plug_in / even, found / even, oracle / even, oracle / found


def two_rounds(case: Case, budget: int, replicates: int, seed: int = 0) -> tuple[float, float, float]:
    """Return efficiency, Var / Var(proportional), and bias in standard errors, over drawn pilots."""
    draws, sizes = BinaryDraws(case.truth, replicates, np.random.default_rng(seed)), case.sizes
    n_h = rounds(case, draws, proportional(sizes, budget // 2), budget, budget, "recalibrated")
    off = draws.sums(n_h).means @ case.truth.weights
    variance = float(case.variance(n_h).mean())
    oracle = float(case.variance(neyman(sizes, case.deviations, budget)))
    even = float(case.variance(proportional(sizes, budget)))
    return oracle / variance, variance / even, float(off.mean() / off.std())


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--strata", choices=("k-means", "neyman"), default="k-means")
    parser.add_argument("--replicates", type=int, default=200)
    options = parser.parse_args()
    every = list(cases(options.data, options.strata))
    print("# Robust allocation\n")
    print(f"`python -m benchmarks.robust_allocation --replicates {options.replicates}`\n")
    print(
        f"One round, {options.strata} strata: variance over proportional's, efficiency over oracle Neyman's."
    )
    print("\n| data | n | plug-in Neyman / prop. | robust / prop. | eff. prop. | eff. robust |")
    print("|---|---|---|---|---|---|")
    rows = []
    for case in every:
        for n in BUDGETS:
            rows.append(one_round(case, n))
            print(f"| {case.name} | {n} | " + " | ".join(f"{value:.3f}" for value in rows[-1]) + " |")
    means, worst = np.mean(rows, axis=0), np.max(rows, axis=0)
    print(f"\nworst ratio to proportional: plug-in {worst[0]:.2f}, robust {worst[1]:.3f} (required: 1.031)")
    print(f"mean efficiency: proportional {means[2]:.3f}, robust {means[3]:.3f} (required: 0.92)")
    dense = np.array([one_round(case, n) for case in every for n in EVERY_BUDGET])
    print(f"every n, 50 to 400: worst ratio {dense[:, 1].max():.3f}, efficiency {dense[:, 3].mean():.3f}")
    print(f"\nTwo rounds, {options.replicates} pilots each.\n")
    print("| data | n | efficiency | variance / prop. | bias in standard errors |\n|---|---|---|---|---|")
    later = []
    for case in every:
        for n in BUDGETS:
            later.append(two_rounds(case, n, options.replicates))
            print(f"| {case.name} | {n} | " + " | ".join(f"{value:.3f}" for value in later[-1]) + " |")
    print(f"\nmean efficiency {np.mean([row[0] for row in later]):.3f} (required: 0.95)")
    print(f"\n{circumstances()}")


if __name__ == "__main__":
    main()
