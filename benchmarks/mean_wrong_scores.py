"""Coverage of the mean under the default plan where scores are wrong, in one round and in two.

    OMP_NUM_THREADS=1 python -m benchmarks.mean_wrong_scores [--draws 4000] [--pools 2]

20,000 units whose outcome is 1 at rates from .2 to 50 %. Scores are calibrated, inverted (1 − p), inflated
(those of a model trained on balanced classes), deflated, crowded near a half, constant, or unrelated to the
outcome. Each pool is planned and drawn as `stratal.plan` does; in two rounds half of the labels decide where
the other half goes. Writes benchmarks/results/mean_wrong_scores.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
from benchmarks.counts import CountsSoFar
from benchmarks.interval_cells import SEED
from scipy.special import expit, logit

import stratal
from stratal.arrays import FloatArray, IntArray
from stratal.planning.interim_widths import interval_of_counts
from stratal.strata import Strata

RESULTS = Path(__file__).with_name("results") / "mean_wrong_scores.md"
SIZE = 20_000
RATES = (0.002, 0.01, 0.03, 0.1, 0.5)
BUDGETS = (100, 300, 1000)
Z = 1.959963984540054
SCORES: dict[str, Callable[[FloatArray, float], FloatArray]] = {
    "calibrated": lambda p, rate: p,
    "inverted": lambda p, rate: 1 - p,
    "inflated": lambda p, rate: expit(logit(p) - logit(rate)),
    "deflated": lambda p, rate: expit(logit(p) - 2),
    "crowded": lambda p, rate: 0.5 + 0.02 * (p - rate),
    "constant": lambda p, rate: np.full(len(p), 0.9),
    "unrelated": lambda p, rate: np.random.default_rng(SEED).permutation(p),
}


def pool(rate: float, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return calibrated probabilities (N,) with a mean near the rate, and outcomes."""
    rng = np.random.default_rng([SEED, seed, int(1e4 * rate)])
    p = expit(rng.normal(logit(rate) - (1.0 if rate < 0.5 else 0.0), 1.5, SIZE))
    p = np.clip(p * rate / p.mean(), 1e-6, 1 - 1e-6)
    return p, (rng.random(SIZE) < p).astype(np.float64)


def covered(
    strata: Strata | None,
    ones: IntArray,
    sizes: IntArray,
    pilot: IntArray,
    budget: int,
    draws: int,
    seed: int,
) -> tuple[float, float, float, float]:
    """Return coverage and mean width over 2 × 1.96 × the estimates' deviation.

    Then the coverage without the allowance for sizes that follow labels, and the width over that one's.
    """
    rng = np.random.default_rng([SEED, seed])
    drawn = np.broadcast_to(pilot, (draws, len(sizes)))
    found = rng.hypergeometric(ones, sizes - ones, drawn)
    two_rounds = int(pilot.sum()) < budget
    if two_rounds:
        assert strata is not None
        seen = CountsSoFar.of(strata, drawn, found)
        total = seen.allocation(np.full(draws, budget))
        more = total - drawn
        found = found + rng.hypergeometric(ones - found, sizes - drawn - (ones - found), more)
        drawn = total
    truth, value = ones.sum() / sizes.sum(), (found / drawn) @ (sizes / sizes.sum())
    held, widths = [], []
    for label_based in (two_rounds and len(sizes) > 1, False):
        low, high = interval_of_counts(sizes, drawn, found, 0.95, label_based=label_based)
        held.append(float(np.mean((low <= truth + 1e-9) & (truth <= high + 1e-9))))
        widths.append(float(np.mean(high - low)))
    return held[0], widths[0] / (2 * Z * max(value.std(), 1e-12)), held[1], widths[0] / widths[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--pools", type=int, default=2)
    options = parser.parse_args()
    rows: list[tuple[str, str, float, int, float, float, float, float]] = []
    for (name, score), rate, budget, seed in product(SCORES.items(), RATES, BUDGETS, range(options.pools)):
        p, z = pool(rate, seed)
        population = stratal.Population.from_arrays(proxy=np.clip(score(p, rate), 0.0, 1.0))
        for rounds, first in (("one", budget), ("two", budget // 2)):
            plan = stratal.plan(population, budget=first)
            codes = plan.strata.codes if plan.strata.codes is not None else np.zeros(SIZE, dtype=np.int64)
            sizes = np.bincount(codes)
            ones = np.bincount(codes, z, minlength=len(sizes)).astype(np.int64)
            if rounds == "two" and len(sizes) == 1:
                continue
            found = covered(plan.strata, ones, sizes, plan.allocation.n_h, budget, options.draws, seed)
            rows.append((name, rounds, rate, budget, *found))
            print(rows[-1], flush=True)
    lines = [
        "# The mean where scores are wrong",
        "",
        f"    python -m benchmarks.mean_wrong_scores --draws {options.draws} --pools {options.pools}",
        "",
        f"Coverage at 95 % of the default plan's mean, {SIZE:,} units, {len(RATES)} rates × n = "
        f"{', '.join(map(str, BUDGETS))} × {options.pools} pools in each line. One standard error of a "
        f"coverage of .95 is {np.sqrt(0.95 * 0.05 / options.draws):.4f}. Width: over 2 × 1.96 × the "
        "estimates' deviation, the median. The shift is the allowance for sizes that follow labels.",
        "",
        "| scores | rounds | cells | least coverage | at | below .94 | median width "
        "| least without the shift | mean width over that |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, rounds in product(SCORES, ("one", "two")):
        some = [row for row in rows if row[:2] == (name, rounds)]
        if some:
            least = min(some, key=lambda row: row[4])
            lines.append(
                f"| {name} | {rounds} | {len(some)} | {least[4]:.4f} | rate {least[2]:g}, n = {least[3]} "
                f"| {sum(row[4] < 0.94 for row in some)} | {np.median([row[5] for row in some]):.2f} "
                f"| {min(row[6] for row in some):.4f} | {np.mean([row[7] for row in some]):.3f} |"
            )
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
