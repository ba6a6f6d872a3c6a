"""How wide intervals of graded outcomes must be with two strata of five labels.

    OMP_NUM_THREADS=1 python -m benchmarks.graded_widths [--draws 4000]

The populations of `benchmarks.graded`. `auto` is compared with Student's t (Satterthwaite's degrees of
freedom, cut at the bounds), and with the same t multiplied by the one factor, unknown to a user, that makes
it cover .95 of the draws. No factor does where in more than a twentieth of the samples all labels of each
stratum agree. Writes benchmarks/results/graded_widths.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from benchmarks.graded import CLOSE, SEED, STRATUM, WIDEST, intervals, populations, units_of
from benchmarks.helpers import circumstances
from scipy import stats

from stratal.arrays import FloatArray
from stratal.designs.stratum_moments import satterthwaite
from stratal.simulation.draws import Truth

RESULTS = Path(__file__).with_name("results") / "graded_widths.md"
STRATA, LABELS = 2, 5
LEVEL = 0.95


def cell(probabilities: FloatArray, values: FloatArray, draws: int, seed: int) -> tuple[float, ...]:
    """Return coverage and width of `auto`, of t, and the factor of t that covers .95, with its width.

    Widths are over 3.92 true standard errors; factor and width are infinite where no factor covers.
    """
    units, rng = units_of(probabilities, STRATUM), np.random.default_rng(seed)
    outcome = np.concatenate([np.repeat(values, row) for row in units])
    truth = Truth.of(outcome, None, np.repeat(np.arange(STRATA), STRATUM), STRATA)
    drawn = [rng.multivariate_hypergeometric(row, LABELS, size=draws, method="marginals") for row in units]
    counts = np.stack(drawn, axis=1)
    bounds = (float(values[0]), float(values[-1]))
    means = counts @ values / LABELS
    squares = np.maximum(counts @ values**2 - LABELS * means**2, 0.0) / (LABELS - 1)
    factor = (1.0 - LABELS / STRATUM) / LABELS / STRATA**2
    error = np.sqrt(factor * squares.sum(axis=1))
    freedom = satterthwaite(factor * squares, np.full(STRATA, LABELS - 1.0))
    half, value = stats.t.ppf(0.5 + LEVEL / 2.0, freedom) * error, means.mean(axis=1)
    scale = 3.92 * float(np.sqrt(factor * truth.variances.sum()))

    def summary(low: FloatArray, high: FloatArray) -> tuple[float, float]:
        held = (low <= truth.value + CLOSE) & (truth.value <= high + CLOSE)
        return float(held.mean()), float((high - low).mean()) / scale

    def student(times: float) -> tuple[float, float]:
        return summary(
            np.maximum(value - times * half, bounds[0]), np.minimum(value + times * half, bounds[1])
        )

    miss = np.abs(value - truth.value)
    needed = np.where(miss <= CLOSE, 0.0, miss / np.where(half > 0, half, 1e-300))
    stretch = float(np.quantile(needed, LEVEL, method="inverted_cdf"))
    possible = stretch < 1e100
    stretched = student(stretch)[1] if possible else np.inf
    return *summary(*intervals(counts, values, truth, bounds)), *student(1.0), stretched


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    found = {}
    for number, (name, probabilities, values) in enumerate(populations(STRATA)):
        seed = SEED + 10_000 * STRATA + 100 * LABELS + number
        found[name] = cell(probabilities, values, options.draws, seed)
    wide = [row for row in found.values() if row[1] > WIDEST]
    most = [row[4] for row in found.values()]
    lines = [
        f"| {name} | {own:.4f} | {width:.3f} | {covered:.4f} | {student:.3f} "
        f"| {'none covers' if np.isinf(stretched) else f'{stretched:.3f}'} |"
        for name, (own, width, covered, student, stretched) in found.items()
    ]
    page = [
        "# Graded outcomes in two strata of five labels: how wide intervals must be",
        "",
        f"    python -m benchmarks.graded_widths --draws {options.draws}",
        "",
        circumstances(),
        "",
        "Widths are over 2 × 1.96 × the true standard error. The last column is Student's t times the one "
        "factor, unknown to a user, that makes it cover .95: with ten labels, no interval of the form value "
        f"± factor · standard error is narrower. It is above {WIDEST}, or does not exist, in "
        f"{sum(width > WIDEST for width in most)} of {len(found)} cells; `auto` is in {len(wide)}.",
        "",
        "| population | coverage of `auto` | width of `auto` | coverage of t | width of t | t that covers |",
        "|---" * 6 + "|",
        *lines,
    ]
    options.output.write_text("\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
