"""The default stratified interval beside others of its kind, in a few cells: coverage and width.

    OMP_NUM_THREADS=1 python -m benchmarks.stratified_intervals [--draws 1000]

Writes benchmarks/results/stratified_intervals.md. Stratified Wilson is that of Yan & Su (2010); the bootstrap
and Korn & Graubard's are the library's own, on a third of the draws.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from benchmarks.interval_cells import SEED, Cell, cell, dominant, files

from stratal.arrays import FloatArray
from stratal.designs import StratifiedWeighting
from stratal.estimation.outcome_means import estimate_mean
from stratal.planning.interim_widths import interval_of_counts

RESULTS = Path(__file__).with_name("results") / "stratified_intervals.md"
Z = 1.959963984540054
STEPS = 5
NAMED = ("korn-graubard", "normal")
BUDGETS = ("n = 100", "n = 400")
FILES = ("cifar10_vgg", "forest", "nq301_llmjudge")


def small() -> Iterator[Cell]:
    """Yield ten strata that mostly agree, and five of the grid, with few labels each."""
    for n_h in (2, 5, 20):
        rates = (0.5, 0.6, 0.75, 0.85, 0.95)
        yield cell(
            "few labels a stratum", f"five strata of 200, {n_h} labels each", (200,) * 5, rates, (n_h,) * 5
        )
        sure = (0.98,) * 8 + (0.6, 0.8)
        yield cell(
            "few labels a stratum",
            f"ten strata, most .98 right, {n_h} labels each",
            (1000,) * 10,
            sure,
            (n_h,) * 10,
        )


def stratified_wilson(one: Cell, ones: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return Yan & Su's interval (R,): each stratum's Wilson limits at z √(Σ W² v) / Σ W √v, iterated."""
    weights, n, p = one.sizes / one.sizes.sum(), one.n_h.astype(np.float64), ones / one.n_h
    left = 1.0 - one.n_h / one.sizes
    n = n / np.maximum(left, 1e-9)
    level = np.full((len(p), 1), Z)
    low = high = p
    for _ in range(STEPS):
        middle = (p + level**2 / (2 * n)) / (1 + level**2 / n)
        half = level * np.sqrt(p * (1 - p) / n + level**2 / (4 * n**2)) / (1 + level**2 / n)
        low, high = middle - half, middle + half
        spread = (half / level) ** 2
        level = Z * np.sqrt(spread @ weights**2)[:, None] / (np.sqrt(spread) @ weights)[:, None]
    return low @ weights, high @ weights


def named(one: Cell, ones: FloatArray, method: str) -> tuple[FloatArray, FloatArray]:
    """Return an interval of `stratal` (R,) that is asked for by name."""
    stratum = np.repeat(np.arange(len(one.sizes)), one.n_h)
    weighting = StratifiedWeighting(stratum=stratum, sizes=one.sizes)
    seen, back = np.unique(ones, axis=0, return_inverse=True)
    found = []
    for row in seen:
        z = np.concatenate([np.arange(n) < k for n, k in zip(one.n_h, row, strict=True)]).astype(np.float64)
        estimate = estimate_mean(z, np.zeros((len(z), 0)), weighting, None, stratum=stratum)
        found.append(tuple(estimate.confidence_interval(method=method)))
    low, high = np.array(found)[back.ravel()].T
    return low, high


def row(one: Cell, draws: int, rng: np.random.Generator) -> list[str]:
    sizes, n_h = one.sizes, one.n_h
    ones = rng.hypergeometric(one.ones, sizes - one.ones, n_h, (draws, len(sizes))).astype(np.float64)
    rates, shares = one.ones / sizes, sizes / sizes.sum()
    truth = float(rates @ shares)
    variance = rates * (1 - rates) * sizes / np.maximum(sizes - 1, 1)
    ideal = 2 * Z * np.sqrt(shares**2 * (1 - n_h / sizes) / n_h @ variance)
    intervals = [interval_of_counts(sizes, n_h, ones, 0.95), stratified_wilson(one, ones)]
    intervals += [named(one, ones[: draws // 3], method) for method in NAMED]
    return [
        f"{np.mean((low <= truth + 1e-12) & (truth - 1e-12 <= high)):.3f} ({np.mean(high - low) / ideal:.2f})"
        for low, high in intervals
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    draws = parser.parse_args().draws
    of_files = [one for one in files() if one.name.endswith(BUDGETS) and one.name.startswith(FILES)]
    glide = "not run, though installed" if find_spec("glide") else "not installed"
    columns = ("`auto`", "stratified Wilson", *(f"`{method}`" for method in NAMED))
    lines = [
        "# Stratified intervals beside each other",
        "",
        f"    OMP_NUM_THREADS=1 python -m benchmarks.stratified_intervals --draws {draws}",
        "",
        "Coverage at 95 %, in brackets the mean width over 2 × 1.96 × the true standard error. One standard "
        f"error of a coverage of .95 is {np.sqrt(0.95 * 0.05 / draws):.3f}, and "
        f"{np.sqrt(0.95 * 0.05 / (draws // 3)):.3f} in the last two columns. glide: {glide}.",
        "",
        f"| cell | {' | '.join(columns)} |",
        "|---" * (1 + len(columns)) + "|",
    ]
    for number, one in enumerate([*of_files, *dominant(), *small()]):
        found = row(one, draws, np.random.default_rng([SEED, number]))
        lines.append(f"| {one.name} | {' | '.join(found)} |")
        print(lines[-1], flush=True)
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
