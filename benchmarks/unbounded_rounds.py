"""Rounds on outcomes without bounds: the squared error of rules that look at labels, over that of one round.

    OMP_NUM_THREADS=1 python -m benchmarks.unbounded_rounds [--replicates 4000]

Writes benchmarks/results/unbounded_rounds.md. One round is proportional in the same k-means strata. A useless
proxy, which is independent of the outcome, leaves nothing to gain: whatever is above 1 was lost by believing
the labels. A helpful proxy is the outcome's order with noise, as in heavy_tails.py.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from benchmarks.heavy_tails import SEED, SIZE, populations, with_noise
from benchmarks.rounds import Pool, rounds

from stratal import Population
from stratal.arrays import FloatArray, IntArray
from stratal.simulation.draws import OrderedUnits, Truth
from stratal.strata import proportional, stratify
from stratal.strata.integer_allocation import AllocationBounds, optimal_integers

RESULTS = Path(__file__).with_name("results") / "unbounded_rounds.md"
BUDGETS = (100, 400)
STRATA = (5, 10)
STEP = 20
INITIAL = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell(Pool):
    """A population in strata, and draws of it."""

    draws: OrderedUnits

    def error(self, n_h: IntArray) -> tuple[float, float]:
        """Return the mean squared error at n_h, and the bias over its root."""
        off = self.draws.sums(n_h).means @ self.truth.weights
        return float(np.mean(off**2)), float(off.mean() / np.sqrt(np.mean(off**2)))


RULES = {
    "two rounds": ("half", "recalibrated"),
    "steps of 20": ("few", "recalibrated"),
    "two rounds, raw S_h": ("half", "raw"),
    "steps of 20, raw S_h": ("few", "raw"),
}


def cells(z: FloatArray, helpful: bool, n_strata: int, replicates: int) -> Cell:
    random = np.random.default_rng([SEED, n_strata])
    proxy = with_noise(z, random) if helpful else random.normal(size=len(z))
    strata = stratify(Population.from_arrays(proxy=proxy, bounds=None, scaled=False), "k-means", n_strata)
    truth = Truth.of(z, None, np.asarray(strata.codes), strata.n_strata)
    most = np.minimum(strata.sizes, max(BUDGETS))
    draws = OrderedUnits(truth, most, replicates, random, fourth_powers=True)
    return Cell(strata=strata, truth=truth, draws=draws)


def row(cell: Cell, budget: int) -> list[str]:
    sizes = cell.strata.sizes
    share = partial(proportional, sizes, minimum=2)
    one, _ = cell.error(share(budget))
    known = cell.truth.weights * np.sqrt(cell.truth.variances)
    best, _ = cell.error(
        optimal_integers(
            known, AllocationBounds(sizes=sizes, lower=np.full(len(sizes), 2), upper=sizes), budget
        )
    )
    found = [f"{best / one:.2f}"]
    for pilot, deviations in RULES.values():
        first = budget // 2 if pilot == "half" else min(INITIAL * len(sizes), budget // 2)
        step = budget if pilot == "half" else STEP
        error, bias = cell.error(rounds(cell, cell.draws, share(first), budget, step, deviations))
        found.append(f"{error / one:.2f} ({bias:+.2f})")
    return found


def table(replicates: int) -> Iterator[str]:
    """Yield the lines of the result page."""
    yield "# Rounds on outcomes without bounds"
    yield ""
    yield f"`python -m benchmarks.unbounded_rounds --replicates {replicates}`, N = {SIZE:,}."
    yield ""
    yield (
        "Mean squared error over that of one proportional round, in brackets the bias over the root mean "
        "squared error. Known S_h: Neyman's rule in one round. Two rounds have half the budget in the pilot; "
        f"steps of {STEP} start with {INITIAL} labels a stratum, half the budget at most (`opt_a2`). One "
        f"standard error of a ratio is {2 / np.sqrt(replicates):.2f} at most where errors are near normal."
    )
    yield ""
    yield "| outcome | proxy | strata | n | known S_h | " + " | ".join(RULES) + " |"
    yield "|---|---|---|---|---|" + "---|" * len(RULES)
    for name, z in populations():
        for helpful in (False, True):
            for n_strata in STRATA:
                cell = cells(z, helpful, n_strata, replicates)
                for budget in BUDGETS:
                    told = "helpful" if helpful else "useless"
                    found = " | ".join(row(cell, budget))
                    yield f"| {name} | {told} | {n_strata} | {budget} | {found} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=4000)
    lines = []
    for line in table(parser.parse_args().replicates):
        print(line, flush=True)
        lines.append(line)
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
