"""Coverage of intervals of outcomes without bounds: skewed, zero-inflated, with outliers.

    python benchmarks/heavy_tails.py [--draws 4000]

Simple random samples, five strata of a proxy that is the outcome with noise, and the same in two rounds.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import stratal
from stratal.arrays import FloatArray

RESULTS = Path(__file__).parent / "results" / "heavy_tails.md"
SEED = 20261121
SIZE = 20_000
BUDGETS = (30, 100, 400)
METHODS = ("auto", "t", "normal")
DESIGNS = {
    "simple random": "simple-random",
    "five strata": "k-means:5:robust",
    "two rounds": "k-means:5:two-round",
}


def populations() -> Iterator[tuple[str, FloatArray]]:
    """Yield outcomes by name."""
    random = np.random.default_rng(SEED)
    yield "normal", random.normal(size=SIZE)
    yield "t, 3 degrees of freedom", random.standard_t(3, SIZE)
    yield "exponential", random.exponential(size=SIZE)
    yield "lognormal, σ = 1", random.lognormal(0, 1, SIZE)
    yield "lognormal, σ = 2", random.lognormal(0, 2, SIZE)
    yield "counts, 8 % not zero", np.where(random.random(SIZE) < 0.08, 1.0 + random.poisson(3, SIZE), 0.0)
    yield "counts, 20 % not zero", np.where(random.random(SIZE) < 0.2, random.geometric(0.3, SIZE), 0.0)
    yield "normal, 1 % outliers of + 50", random.normal(size=SIZE) + 50.0 * (random.random(SIZE) < 0.01)


def with_noise(z: FloatArray, random: np.random.Generator) -> FloatArray:
    """Return a proxy: the outcome, its ranks kept roughly, with noise of half its spread on the log scale."""
    scale = np.median(np.abs(z - np.median(z))) or 1.0
    squeezed = np.arcsinh((z - np.median(z)) / scale)
    return np.asarray(squeezed + 0.5 * squeezed.std() * random.normal(size=len(z)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=4000)
    draws = parser.parse_args().draws
    lines = [
        "## Outcomes without bounds",
        "",
        f"`python benchmarks/heavy_tails.py --draws {draws}`, seed {SEED}, N = {SIZE:,}; one standard error "
        f"of a coverage of .95 is {np.sqrt(0.95 * 0.05 / draws):.4f}. Horvitz–Thompson. In brackets the mean "
        "width over 2 × 1.96 × the true standard error; RMSE over that of a simple random sample.",
        "",
        "| outcome | design | n | `auto` | `t` | `normal` | RMSE |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, z in populations():
        proxy = with_noise(z, np.random.default_rng(SEED))
        units = stratal.Population.from_arrays(proxy=proxy, bounds=None, scaled=False)
        table = stratal.simulate(
            units, z, designs=list(DESIGNS.values()), estimators=("horvitz-thompson",), intervals=METHODS,
            budgets=BUDGETS, replicates=draws, seed=SEED,
        )  # fmt: skip
        rows = {(row["design"], row["budget"], row["interval"]): row for row in table.rows()}
        for label, design in DESIGNS.items():
            for budget in BUDGETS:
                cells = [rows[design, budget, method] for method in METHODS]
                error = 2 * 1.96 * np.sqrt(cells[0]["mse"])
                found = [f"{cell['coverage']:.3f} ({cell['width'] / error:.2f})" for cell in cells]
                relative = cells[0]["relative_efficiency"] ** -0.5
                lines.append(f"| {name} | {label} | {budget} | {' | '.join(found)} | {relative:.2f} |")
                print(lines[-1], flush=True)
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
