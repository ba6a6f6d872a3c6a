"""Variance ratio of every stratification and allocation of Kumar & Raj, K = 2 … 10, on real predictions.

    python -m benchmarks.kumar_raj [--data DIR] [--budget 100]

Closed forms (their eq. 5, 7 and 8 without replacement): variance of the stratified mean over that of the
mean of a simple random sample, with the outcomes known. Optimal is Neyman's rule on the true S_h; at least
one draw per stratum. Below 1 is better, as the paper prints it. The paper's own populations and its
adaptive rules: `stratal reproduce kumar-raj`. Writes benchmarks/results/kumar_raj.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from benchmarks.circumstances import circumstances
from benchmarks.predictions import BINARY, DATA, load

import stratal
from stratal.strata import Strata

ROOT = Path(__file__).parent
RESULTS = ROOT / "results" / "kumar_raj.md"
METHODS = {
    "SQRT": "cum-sqrt-f", "CBRT": "cum-cbrt-f", "WTMN": "weighted-mean", "KM": "k-means",
    "GMM": "gaussian-mixture", "EQSZ": "equal-size", "EQWD": "equal-width",
}  # fmt: skip
ALLOCATIONS = ("proportional", "equal", "optimal")


def variance_ratio(strata: Strata, z: np.ndarray, allocation: str, budget: int) -> float:
    """Return the variance of the stratified mean over that of a simple random sample's."""
    codes = np.asarray(strata.codes)
    spread = np.array([z[codes == h].var(ddof=1) if np.sum(codes == h) > 1 else 0.0
                       for h in range(strata.n_strata)])  # fmt: skip
    if allocation == "optimal":
        n_h = stratal.strata.neyman(strata.sizes, np.sqrt(spread), budget, minimum=1)
    else:
        n_h = stratal.strata.allocate(strata, budget, allocation, minimum=1).n_h
    within = float(np.sum(strata.weights**2 * (1 - n_h / strata.sizes) * spread / n_h))
    return within / float((1 - budget / len(z)) * z.var(ddof=1) / budget)


def ratios(proxy: np.ndarray, z: np.ndarray, budget: int) -> dict[tuple[str, str], list[float]]:
    """Return the ratio for K = 2 … 10 of each stratification and allocation."""
    population = stratal.Population.from_arrays(proxy=proxy)
    found: dict[tuple[str, str], list[float]] = {}
    for name, method in METHODS.items():
        for k in range(2, 11):
            strata = stratal.strata.stratify(population, method, k)
            for allocation in ALLOCATIONS:
                value = variance_ratio(strata, z, allocation, budget)
                found.setdefault((name, allocation), []).append(value)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--budget", type=int, default=100)
    options = parser.parse_args()
    lines = [
        "## Kumar & Raj's stratifications and allocations on real predictions\n",
        f"`python -m benchmarks.kumar_raj --budget {options.budget}`, {circumstances()}\n",
        f"Variance over that of a simple random sample, n = {options.budget}, closed form, below 1 is "
        "better; cells are K = 2, 3, …, 10.\n",
    ]
    for name in sorted(BINARY):
        z, proxy = load(name, options.data)
        lines += [f"### {name}\n", "| strata | allocation | " + " | ".join(map(str, range(2, 11))) + " |"]
        lines.append("|---" * 11 + "|")
        for (method, allocation), values in ratios(proxy, z, options.budget).items():
            lines.append(f"| {method} | {allocation} | " + " | ".join(f"{v:.2f}" for v in values) + " |")
        lines.append("")
    RESULTS.write_text("\n".join(lines))
    print(RESULTS.read_text())


if __name__ == "__main__":
    main()
