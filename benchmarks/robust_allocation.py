"""The robust allocation on real predictions: its variance beside proportional's and oracle Neyman's.

One round, in closed form: Σ W_h² (1 − f_h) S_h² / n_h with the true S_h and whole numbers n_h ≥ 2.
Two rounds: half the budget in a proportional pilot, drawn many times, and the rest by Neyman on
`smoothed_standard_deviations`.

    python benchmarks/robust_allocation.py [--data DIR] [--strata k-means|neyman] [--replicates 200]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from stratal.allocation import neyman, proportional, robust
from stratal.allocation.rates import smoothed_standard_deviations
from stratal.arrays import FloatArray, IntArray
from stratal.population import Population
from stratal.strata import Strata, stratify

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SETS = (
    "cifar10_vgg", "birds_resnet50", "galaxies", "forest", "nq301_llmjudge", "gsm8k_models",
    "imagenet_golden_crowd",
)  # fmt: skip
BUDGETS = (50, 100, 200, 400)
EVERY_BUDGET = range(50, 401)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One data set in strata: plug-in moments, true deviations, and units with z = 1 per stratum."""

    name: str
    strata: Strata
    deviations: FloatArray
    good: IntArray

    def variance(self, n_h: IntArray) -> float:
        """Return the variance of the stratified mean."""
        sizes, weights = self.strata.sizes, self.strata.weights
        return float((weights**2 * (1 - n_h / sizes) * self.deviations**2 / n_h).sum())

    def robust(self, budget: int) -> IntArray:
        """Return the default's n_h."""
        s = self.strata
        return robust(s.sizes, s.proxy_means, s.proxy_variances, s.conditional_variances, budget)


def cases(directory: Path, method: str) -> Iterator[Case]:
    """Yield each data set in ten strata."""
    for name in SETS:
        table = pq.read_table(directory / f"{name}.parquet", columns=["z", "proxy"])
        z = table["z"].to_numpy().astype(np.float64)
        strata = stratify(Population.from_arrays(proxy=table["proxy"].to_numpy()), method, 10)
        codes = np.asarray(strata.codes)
        good = np.bincount(codes, z, minlength=strata.n_strata)
        rates = good / strata.sizes
        variances = rates * (1 - rates) * strata.sizes / np.maximum(strata.sizes - 1, 1)
        yield Case(name=name, strata=strata, deviations=np.sqrt(variances), good=good.astype(np.int64))


def one_round(case: Case, budget: int) -> tuple[float, float, float, float]:
    """Return variances over proportional's (plug-in Neyman, robust), efficiencies (proportional, robust)."""
    sizes = case.strata.sizes
    even = case.variance(proportional(sizes, budget))
    plug_in = case.variance(neyman(sizes, case.strata.standard_deviations, budget))
    oracle = case.variance(neyman(sizes, case.deviations, budget))
    default = case.variance(case.robust(budget))
    return plug_in / even, default / even, oracle / even, oracle / default


def two_rounds(case: Case, budget: int, replicates: int, seed: int = 0) -> tuple[float, float, float]:
    """Return efficiency, Var / Var(proportional), and bias in standard errors, over drawn pilots."""
    rng = np.random.default_rng(seed)
    sizes, means = case.strata.sizes, case.strata.proxy_means
    pilot = proportional(sizes, budget // 2)
    variances, estimates = np.empty(replicates), np.empty(replicates)
    for i in range(replicates):
        right = rng.hypergeometric(case.good, sizes - case.good, pilot)
        deviations = smoothed_standard_deviations(sizes, pilot, right, proxy_means=means)
        n_h = neyman(sizes, deviations, budget, minimum=pilot)
        left, wrong_left = case.good - right, sizes - case.good - (pilot - right)
        more = rng.hypergeometric(left, wrong_left, n_h - pilot)
        variances[i] = case.variance(n_h)
        estimates[i] = float(case.strata.weights @ ((right + more) / n_h))
    truth = float(case.good.sum() / sizes.sum())
    oracle = case.variance(neyman(sizes, case.deviations, budget))
    even = case.variance(proportional(sizes, budget))
    bias = (estimates.mean() - truth) / estimates.std()
    return float(oracle / variances.mean()), float(variances.mean() / even), float(bias)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--strata", choices=("k-means", "neyman"), default="k-means")
    parser.add_argument("--replicates", type=int, default=200)
    options = parser.parse_args()
    every = list(cases(options.data, options.strata))
    print(
        f"# Robust allocation\n\nOne round, {options.strata} strata: variance over proportional's, "
        "efficiency beside oracle Neyman."
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
    rounds = []
    for case in every:
        for n in BUDGETS:
            rounds.append(two_rounds(case, n, options.replicates))
            print(f"| {case.name} | {n} | " + " | ".join(f"{value:.3f}" for value in rounds[-1]) + " |")
    print(f"\nmean efficiency {np.mean([row[0] for row in rounds]):.3f} (required: 0.95)")


if __name__ == "__main__":
    main()
