"""Many estimands on one allocation: time, gap to the bound, and labels saved.

    python benchmarks/several.py [--data DIR]

Generated strata: sizes lognormal, and standard deviations of three kinds: all alike (every estimand varies
everywhere), heavy (lognormal), and sparse (each estimand varies in a few strata, as the levels of a category
do). The rounding heuristic rounds the real optimum up. SciPy's solver is SLSQP on the same problem.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

from stratal.arrays import FloatArray, IntArray
from stratal.strata import allocate_several, neyman, proportional

RESULTS = Path(__file__).parent / "results" / "several.md"
SHARED = Path(__file__).resolve().parents[2] / "shared"
SHAPES = ((2, 10), (5, 100), (10, 1000), (50, 10_000))
KINDS = ("alike", "heavy", "sparse")


def generated(seed: int, count: int, n_strata: int, kind: str) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return N_h (H,), S_jh (J, H) and wanted standard errors (J,)."""
    rng = np.random.default_rng(seed)
    sizes = np.round(rng.lognormal(5, 1.5, n_strata)).astype(np.int64) + 2
    if kind == "alike":
        deviations = rng.uniform(0.1, 1, (count, n_strata))
    elif kind == "heavy":
        deviations = rng.lognormal(-1, 1.5, (count, n_strata))
    else:
        deviations = rng.uniform(0.1, 0.6, (count, n_strata)) * (rng.random((count, n_strata)) < 2 / count)
        deviations[0] = 0.3
    spread = (sizes / sizes.sum() * deviations) ** 2
    wanted = np.sqrt((spread / np.minimum(sizes, 5)).sum(axis=1)) * rng.uniform(0.2, 1, count)
    return sizes, deviations, wanted


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Return a result and the least of three times in milliseconds."""
    times = []
    for _ in range(3):
        start = time.process_time()
        result = call()
        times.append((time.process_time() - start) * 1000)
    return result, min(times)


def by_slsqp(
    sizes: IntArray, deviations: FloatArray, wanted: FloatArray, given: IntArray
) -> tuple[float, float]:
    """Return Σ n_h of SciPy's SLSQP and by how much it breaks a constraint."""
    spread = (sizes / sizes.sum() * deviations) ** 2
    allowed = wanted**2 + (spread / sizes).sum(axis=1)
    found = minimize(
        lambda x: np.exp(x).sum(),
        np.log(given),
        jac=np.exp,
        bounds=[(np.log(min(2, n)), np.log(n)) for n in sizes],
        constraints={
            "type": "ineq",
            "fun": lambda x: 1 - spread @ np.exp(-x) / allowed,
            "jac": lambda x: spread * np.exp(-x) / allowed[:, None],
        },
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    return float(np.exp(found.x).sum()), float((spread @ np.exp(-found.x) / allowed).max() - 1)


def speed() -> list[str]:
    """Return a row per shape and kind."""
    rows = []
    for count, n_strata in SHAPES:
        for kind in KINDS:
            sizes, deviations, wanted = generated(0, count, n_strata, kind)
            fewest, t1 = timed(partial(allocate_several, sizes, deviations, standard_errors=wanted))
            budget = int(np.minimum(sizes, 2).sum() * 1.7)
            near, t2 = timed(partial(allocate_several, sizes, deviations, budget, standard_errors=wanted))
            real = fewest.real_n_h
            up = int(np.ceil(real - 1e-9).sum())
            solver = "—"
            if n_strata <= 100:
                start = time.process_time()
                total, broken = by_slsqp(sizes, deviations, wanted, fewest.n_h)
                spent = (time.process_time() - start) * 1000
                solver = f"{total / real.sum() - 1:+.1e}, {broken:+.1e} ({spent:.0f} ms)"
            binding = int((fewest.shares > 0).sum())
            cells = [
                f"{count} × {n_strata:,}", kind, binding, f"{t1:.0f}", f"{real.sum():,.1f}",
                f"{fewest.budget:,}", f"{fewest.bound:,.0f}", f"{up:,}", solver,
                f"{t2:.0f}", f"{near.gap:.1e}",
            ]  # fmt: skip
            rows.append("| " + " | ".join(map(str, cells)) + " |")
    return rows


def published(shared: Path) -> list[str]:
    """Return what R's `SamplingStrata::bethel` finds on its own example, and what is found here."""
    path = shared / "vectors" / "bethel.json"
    if not path.exists():
        return ["(The published example is not here.)"]
    given = json.loads(path.read_text())
    sizes, deviations = np.array(given["N_h"]), np.array(given["standard_deviations"]).T
    wanted = np.array(given["cv"]) * (np.array(given["means"]).T @ (sizes / sizes.sum()))
    found = allocate_several(sizes, deviations, standard_errors=wanted)
    away, peers = np.abs(found.real_n_h - given["real"]).max(), sum(given["integer_by_the_peer"])
    return [
        f"Real optimum: {found.real_n_h.sum():.5f} (the peer's {given['real_total']:.5f}; at most {away:.1e}",
        "apart in a stratum).",
        f"Whole labels: {found.budget}, proved to be the fewest; the peer's rounding takes {peers}.",
    ]


def slices() -> list[str]:
    """Return labels for ten levels of very unequal size, each with its own half-width of .08 at 95 %."""
    sizes = np.array([20000, 9000, 4000, 2000, 1000, 600, 400, 300, 250, 200])
    outcome = np.array([0.30, 0.35, 0.40, 0.45, 0.50, 0.40, 0.30, 0.35, 0.45, 0.50])
    deviations, wanted = np.diag(outcome * sizes.sum() / sizes), np.full(10, 0.08 / 1.959964)
    found = allocate_several(sizes, deviations, standard_errors=wanted)

    def reached(n_h: IntArray) -> bool:
        variance = outcome**2 * (1 / np.maximum(n_h, 1) - 1 / sizes)
        return bool(np.all(variance <= wanted**2 * (1 + 1e-9)))

    rows = []
    rules: dict[str, Callable[[int], IntArray]] = {
        "proportional": partial(proportional, sizes),
        "Neyman, for the overall mean": partial(neyman, sizes, outcome),
    }
    for name, rule in rules.items():
        low, high = 20, int(sizes.sum())
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if reached(rule(middle)) else (middle + 1, high)
        rows.append(f"| {name} | {low:,} |")
    rows.append(f"| shared, for the ten levels | {found.budget:,} |")
    both = allocate_several(
        sizes, np.vstack([deviations, outcome]), standard_errors=np.append(wanted, 0.02 / 1.959964)
    )
    alone = allocate_several(sizes, outcome[None, :], standard_errors=[0.02 / 1.959964]).budget
    rows.append(
        f"| one plan for the levels and another for the overall mean ± .02 | {found.budget + alone:,} |"
    )
    rows.append(f"| shared, for the ten levels and the overall mean ± .02 | {both.budget:,} |")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=SHARED)
    options = parser.parse_args()
    head = [
        "estimands × strata",
        "S_jh",
        "binding",
        "fewest labels: ms",
        "real optimum",
        "whole",
        "proved bound",
    ]
    head += ["rounded up", "SLSQP", "with a budget: ms", "gap"]
    lines = [
        "# Many estimands on one allocation",
        "",
        "`python benchmarks/several.py`. Times are the least of three, of the processor, one thread.",
        '"Binding" counts the estimands with a price; "rounded up" is the real optimum rounded up.',
        "SciPy's SLSQP solves the same real problem, started from the whole solution: its labels over the",
        "optimum's, less 1, and by how much it breaks a constraint. With a budget the gap is that of",
        "the largest ratio.",
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
        *speed(),
        "",
        "The example of R's `SamplingStrata`:",
        *published(options.data),
        "",
        "Ten levels of 20,000 to 200 units, the outcome's standard deviation .3 to .5, each ± .08 at 95 %:",
        "",
        "| allocation | labels |",
        "|---|---|",
        *slices(),
    ]
    RESULTS.write_text("\n".join(lines) + "\n")
    print(RESULTS.read_text())


if __name__ == "__main__":
    main()
