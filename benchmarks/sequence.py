"""How wide the intervals are that hold at every moment, with ten strata and a calibrated proxy.

`python benchmarks/sequence.py [draws]` writes benchmarks/results/sequence.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import stratal
from stratal.intervals.betting import (
    betting_interval,
    random_order,
    sequence_interval,
    stratified_betting_interval,
)

RESULT = Path(__file__).parent / "results" / "sequence.md"
SIZE = 5_000
BUDGETS = (50, 100, 200, 400)
ALLOCATIONS = ("robust", "proportional")


def widths(allocation: str, budget: int, draw: int) -> tuple[list[float], bool]:
    """Return the widths of the three intervals on one draw, and whether the first misses the truth."""
    generator = np.random.default_rng([draw, budget])
    proxy = generator.beta(4, 1, SIZE)
    z = (generator.random(SIZE) < proxy).astype(float)
    population = stratal.Population.from_arrays(proxy=proxy)
    sample = stratal.plan(population, budget, n_strata=10, allocation=allocation).draw(seed=draw)
    unit, stratum, sizes = z[sample.ids], sample.stratum, sample.summary.sizes
    order = random_order(stratum, np.ones(budget, bool), sizes, sample.n_h)
    found = [
        sequence_interval(unit, order, 0.025, 0.025),
        stratified_betting_interval(unit, stratum, sizes, 0.025, 0.025, anytime=True),
        betting_interval(generator.permutation(z)[:budget], SIZE, 0.025, 0.025, anytime=True),
    ]
    low, high = found[0]
    return [above - below for below, above in found], not low <= z.mean() <= high


def main(draws: int = 100) -> None:
    """Draw, and write the mean widths down."""
    rows = [
        "| allocation | labels | one bet for all | strata one by one | simple random | the first misses |",
        "|---|---|---|---|---|---|",
    ]
    for allocation in ALLOCATIONS:
        for budget in BUDGETS:
            drawn = [widths(allocation, budget, draw) for draw in range(draws)]
            means = np.mean([entry for entry, _ in drawn], axis=0)
            missed = float(np.mean([wrong for _, wrong in drawn]))
            cells = " | ".join(f"{mean:.3f}" for mean in means)
            rows.append(f"| {allocation} | {budget} | {cells} | {missed:.3f} |")
    head = (
        "# Intervals that hold at every moment\n\n"
        f"`python benchmarks/sequence.py {draws}`: mean widths at 95 % over {draws} draws, N = {SIZE:,}, a "
        "proxy from Beta(4, 1) that is calibrated, a binary outcome, ten strata. A miss is a truth that the "
        "interval has left at any moment up to then.\n\n"
    )
    RESULT.write_text(head + "\n".join(rows) + "\n")
    print(RESULT.read_text())


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
