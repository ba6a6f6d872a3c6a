"""How wide intervals of graded outcomes must be with two strata of five labels.

    OMP_NUM_THREADS=1 python -m benchmarks.graded_widths [--draws 4000]

The populations of `benchmarks.graded`. `auto` is compared with Student's t (Satterthwaite's degrees of
freedom, cut at the bounds), and with the same t multiplied by the one factor, unknown to a user, that makes
it cover .95 of the draws. No factor does where in more than a twentieth of the samples all labels of each
stratum agree.

`auto` allows for units unlike any label, at the error probability of its side. A second table has the exact
coverage and the widths if this error were larger, over all populations of three values with shares in
twentieths. Writes benchmarks/results/graded_widths.md.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.graded import (
    CLOSE,
    REQUIRED,
    SEED,
    STRATUM,
    WIDEST,
    compositions,
    intervals,
    log_binomial,
    populations,
    replicates_of,
    strata_coverage,
    units_of,
)
from benchmarks.helpers import circumstances
from scipy import stats

from stratal.arrays import FloatArray, IntArray
from stratal.designs.stratum_moments import satterthwaite
from stratal.simulation.draws import Truth
from stratal.simulation.replicates import Replicates, replicate_intervals

RESULTS = Path(__file__).with_name("results") / "graded_widths.md"
STRATA, LABELS = 2, 5
LEVEL = 0.95
# Middle values of the enumerated populations, the parts that a share is a multiple of, and the error factors.
MIDDLES = (0.25, 0.5, 0.9)
PARTS = 20
ERROR_FACTORS = (1.0, 1.5, 2.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class LooseReplicates(Replicates):
    """Replicates whose share of units unlike any label is taken at a larger error probability."""

    error_factor: float

    def max_unseen_share(self, error: float) -> Any:
        """Return the share of units that, but for this error times the factor, no label was like."""
        return super().max_unseen_share(min(self.error_factor * error, 0.5))

    @classmethod
    def of(cls, found: Replicates, error_factor: float) -> LooseReplicates:
        """Return replicates with another error probability."""
        copied = {field.name: getattr(found, field.name) for field in fields(Replicates)}
        return cls(**copied, error_factor=error_factor)


def loose_intervals(
    counts: IntArray, values: FloatArray, truth: Truth, bounds: tuple[float, float], error_factor: float
) -> tuple[FloatArray, FloatArray]:
    """Return the limits (R,) with another error probability, from labels of each value (R, H, K)."""
    found = replicates_of(counts, values, truth, bounds)
    return replicate_intervals(LooseReplicates.of(found, error_factor))["auto"]


def exact_coverages(values: FloatArray, parts: int, error_factor: float) -> FloatArray:
    """Return the coverage (M,) of every pair of strata with shares that are multiples of 1/parts."""
    samples = compositions(LABELS, len(values))
    units = compositions(parts, len(values)) * (STRATUM // parts)
    first, second = np.indices((len(samples), len(samples))).reshape(2, -1)
    # The kernels take of the truth only its sizes, and that not every outcome is 0 or 1.
    outcome = np.append(np.full(STRATA * STRATUM - 1, values[0]), values[1])
    truth = Truth.of(outcome, None, np.repeat(np.arange(STRATA), STRATUM), STRATA)
    counts = np.stack([samples[first], samples[second]], axis=1)
    low, high = (
        ends.reshape(len(samples), len(samples))
        for ends in loose_intervals(counts, values, truth, (0.0, 1.0), error_factor)
    )
    ways = log_binomial(units[:, None], samples[None]).sum(axis=-1)
    probability = np.exp(ways - log_binomial(np.array(STRATUM), np.array(LABELS)))
    means = units @ values / STRATUM
    coverages = []
    for own, mean in zip(probability, means, strict=True):
        for other, other_mean in zip(probability, means, strict=True):
            value = (mean + other_mean) / STRATA
            held = (low <= value + CLOSE) & (value <= high + CLOSE)
            coverages.append(own @ held @ other)
    return np.array(coverages)


def looser_lines(draws: int, parts: int) -> list[str]:
    """Return the table of error factors."""
    lines = [
        "| error of the guard | populations | least coverage | below .94 | mean width | cells above 1.25 |",
        "|---" * 6 + "|",
    ]
    for factor in ERROR_FACTORS:
        held = np.concatenate(
            [exact_coverages(np.array([0.0, middle, 1.0]), parts, factor) for middle in MIDDLES]
        )
        widths = np.array(
            [
                strata_coverage(
                    probabilities, values, LABELS, draws, SEED, partial(loose_intervals, error_factor=factor)
                )[1]
                for _, probabilities, values in populations(STRATA)
            ]
        )
        below = int(np.sum(held < REQUIRED))
        lines.append(
            f"| {factor:g} × that of the side | {len(held)} | {held.min():.4f} | {below} "
            f"| {widths.mean():.3f} | {np.sum(widths > WIDEST)} |"
        )
    return lines


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
    parser.add_argument("--parts", type=int, default=PARTS)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    found = {}
    for number, (name, probabilities, values) in enumerate(populations(STRATA)):
        seed = SEED + 10_000 * STRATA + 100 * LABELS + number
        found[name] = cell(probabilities, values, options.draws, seed)
    looser = looser_lines(options.draws, options.parts)
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
        f"    python -m benchmarks.graded_widths --draws {options.draws} --parts {options.parts}",
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
        "",
        "## Whether the guard could be looser",
        "",
        "`auto` also allows for units at a bound that no label was like, at the error probability of its "
        "side (.025). With a larger error, intervals are narrower on average, but about as many cells are "
        f"wider than {WIDEST}, and the coverage of some populations falls below {REQUIRED}. Coverage is "
        "exact, over all populations of 0, 1 and one of "
        f"{', '.join(map(str, MIDDLES))} whose shares in each stratum are multiples of 1/{options.parts}.",
        "",
        *looser,
    ]
    options.output.write_text("\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
