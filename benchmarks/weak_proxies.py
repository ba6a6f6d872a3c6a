"""Error, width and coverage with a proxy that says little, over those of the labels alone.

    OMP_NUM_THREADS=1 python -m benchmarks.weak_proxies [--draws 2000]

Simple random samples of 20,000 right and wrong answers, whose `auto` fits λ. The correlation of proxy and
outcome is 0, .1 or .2, or .7 and .9 to show what strong proxies keep. A proxy is a judge with the outcome's
rate, a judge with rate one half (whose correlation with a rare outcome is less than is asked for), a score
with normal noise, or a rating of five levels. Writes benchmarks/results/weak_proxies.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
from benchmarks.helpers import circumstances

import stratal
from stratal.arrays import FloatArray

RESULTS = Path(__file__).with_name("results") / "weak_proxies.md"
SIZE = 20_000
SEED = 20_261_128
RATES = (0.5, 0.8, 0.95)
CORRELATIONS = (0.0, 0.1, 0.2, 0.7, 0.9)
BUDGETS = (50, 100, 200, 400)
PROXIES = ("judge", "judge of rate .5", "score", "rating")
ESTIMATORS = ("horvitz-thompson", "ppi++")
MOST = 1.01


def proxy_of(kind: str, z: FloatArray, correlation: float, rng: np.random.Generator) -> FloatArray:
    """Return a proxy (N,) of outcomes (N,), with about this correlation."""
    rate = float(z.mean())
    if kind == "judge":
        return np.asarray(rng.random(len(z)) < rate + correlation * (z - rate), dtype=np.float64)
    if kind == "judge of rate .5":
        slope = min(correlation * np.sqrt(0.25 / (rate * (1.0 - rate))), 0.5 / max(rate, 1.0 - rate))
        return np.asarray(rng.random(len(z)) < 0.5 + slope * (z - rate), dtype=np.float64)
    standard = (z - rate) / np.sqrt(rate * (1.0 - rate))
    noisy = correlation * standard + np.sqrt(1.0 - correlation**2) * rng.normal(size=len(z))
    if kind == "score":
        return np.asarray(np.clip(0.5 + 0.15 * noisy, 0.0, 1.0))
    return np.asarray(np.clip(np.round(4.0 * (0.6 + 0.2 * noisy)) / 4.0, 0.0, 1.0))


def cells() -> Iterator[tuple[float, float, str]]:
    """Yield rate, correlation and kind of proxy."""
    yield from product(RATES, CORRELATIONS, PROXIES)


def ratios(rate: float, correlation: float, kind: str, draws: int) -> list[tuple[float, float, float]]:
    """Return error and width over those of the labels alone, and coverage, by budget."""
    rng = np.random.default_rng([SEED, round(100 * rate), round(100 * correlation), PROXIES.index(kind)])
    z = (np.arange(SIZE) < rate * SIZE).astype(np.float64)
    table = stratal.simulate(
        stratal.Population.from_arrays(proxy=proxy_of(kind, z, correlation, rng)),
        z,
        designs=["simple-random"],
        estimators=ESTIMATORS,
        intervals=("auto",),
        budgets=BUDGETS,
        replicates=draws,
        seed=SEED,
        bounds=(0.0, 1.0),
    )
    rows = {(row["estimator"], row["budget"]): row for row in table.rows()}
    found = []
    for n in BUDGETS:
        plain, fitted = (rows[name, n] for name in ESTIMATORS)
        error = float(np.sqrt(fitted["mse"] / plain["mse"]))
        found.append((error, fitted["width"] / plain["width"], fitted["coverage"]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    found = {cell: ratios(*cell, options.draws) for cell in cells()}
    lines = [
        "| rate | correlation | labels | error, by proxy | width, by proxy | coverage |",
        "|---" * 6 + "|",
    ]
    for rate, correlation in product(RATES, CORRELATIONS):
        for place, n in enumerate(BUDGETS):
            each = np.array([found[rate, correlation, kind][place] for kind in PROXIES])
            errors, widths = (", ".join(f"{value:.3f}" for value in each[:, j]) for j in (0, 1))
            lines.append(
                f"| {rate:g} | {correlation:g} | {n} | {errors} | {widths} | {each[:, 2].min():.3f} |"
            )
    weak = np.array([row for cell, row in found.items() if cell[1] <= 0.2])
    page = [
        "# Weak proxies",
        "",
        f"    python -m benchmarks.weak_proxies --draws {options.draws}",
        "",
        circumstances(),
        "",
        "Simple random samples: root mean squared error and mean width of the 95 % interval of `ppi++`, "
        "which is `auto` there, over those of the labels alone, with "
        f"{', '.join(PROXIES)}; the lowest coverage of the four. Correlations up to .2: error "
        f"{weak[..., 0].max():.3f} at most, above {MOST} in {int(np.sum(weak[..., 0] > MOST))} of "
        f"{weak[..., 0].size} cells; width {weak[..., 1].max():.3f} at "
        f"most, above {MOST} in {int(np.sum(weak[..., 1] > MOST))}. One standard error of an error's ratio "
        f"is about {np.sqrt(0.02 / options.draws):.3f} or less.",
        "",
        *lines,
    ]
    options.output.write_text("\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
