"""Do plans keep their word? Half-widths that are asked for, on real predictions and on generated proxies.

    python -m benchmarks.promises [--runs 1000] [--only "NAME;…"] [--one-by-one]

Each run draws the pilot, then as many rounds as `labels_needed` says, four at most with the pilot: with
`--one-by-one` by `next_round` itself, otherwise by Neyman's rule for thousands of studies at once. Next to
the labels it took stand those of a planner that knows every stratum's true rate before the first label: the
same strata and interval, the smallest budget whose expected half-width is the one asked for. Its shares are
Neyman's of the true S_h, none taken for less than a part of the largest, whichever part is cheapest: the
interval does not know that a stratum has no error, and two labels in a large one would keep it wide.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from benchmarks.counts import CountsSoFar, furthers
from benchmarks.helpers import BINARY, circumstances, load
from scipy.special import expit

import stratal
from stratal.arrays import AnyArray, FloatArray, IntArray
from stratal.planning.budget_search import smallest_budget
from stratal.planning.interim_widths import expected_half_width_of_counts, interval_of_counts
from stratal.planning.plan import Plan
from stratal.strata import neyman

RESULTS = Path(__file__).parent / "results" / "promises.md"
ASKED = (0.05, 0.03, 0.02, 0.01)
SEED = 20261121
MOST_ROUNDS = 4
GENERATED = 10_000
PARTS = (0.0, 0.05, 0.1, 0.2, 0.4)
"""Of the largest S_h, below which the planner that knows takes none."""

COLUMNS = (
    "population", "asked", "pilot", "labels, mean", "of a planner that knows", "ratio",
    "at most 1.05 × asked", "coverage", "bias / error", "rounds",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Studies:
    """What came of R studies, each (R,): labels, rounds, limits and value."""

    labels: AnyArray
    rounds: AnyArray
    low: FloatArray
    high: FloatArray
    value: FloatArray


def stopped(plan: Plan, z: FloatArray, half_width: float, *, studies: int, seed: int) -> Studies:
    """Return studies that go on until they are narrow enough; they end after four rounds anyhow.

    `z` (N,) are outcomes of 0 and 1 in the order of the units.
    """
    strata, level, random = plan.strata, plan.confidence_level, np.random.default_rng(seed)
    good = np.bincount(np.asarray(strata.codes), z, minlength=strata.n_strata).astype(np.int64)
    bad = strata.sizes - good
    n_h = np.tile(plan.allocation.n_h, (studies, 1))
    ones = random.hypergeometric(good, bad, n_h)
    rounds, open_ = np.ones(studies, dtype=np.int64), np.arange(studies)
    low, high = np.zeros(studies), np.ones(studies)
    for number in range(1, MOST_ROUNDS + 1):
        label_based = number > 1
        low[open_], high[open_] = interval_of_counts(
            strata.sizes, n_h[open_], ones[open_], level, label_based=label_based
        )
        wide = (high - low)[open_] / 2.0 > half_width
        open_ = open_[wide & (n_h[open_].sum(axis=1) < strata.size)]
        if len(open_) == 0 or number == MOST_ROUNDS:
            break
        seen = CountsSoFar.of(strata, n_h[open_], ones[open_])
        larger = _larger(seen, (high - low)[open_] / 2.0, half_width, level, label_based)
        more = larger - n_h[open_]
        ones[open_] += random.hypergeometric(good - ones[open_], bad - (n_h - ones)[open_], more)
        n_h[open_] = larger
        rounds[open_] += 1
    value = ones / n_h @ strata.weights
    return Studies(labels=n_h.sum(axis=1), rounds=rounds, low=low, high=high, value=value)


def one_by_one(plan: Plan, z: FloatArray, half_width: float, *, studies: int, seed: int) -> Studies:
    """Return the same studies as the library makes them, each with the units that its seed draws."""
    rows = []
    for own in range(seed, seed + studies):
        sample = plan.draw(own)
        for number in range(1, MOST_ROUNDS + 1):
            labels = z[sample.ids]
            if number == MOST_ROUNDS:
                break
            larger = stratal.next_round(sample, labels, half_width=half_width)
            if larger.size == sample.size:
                break
            sample = larger
        found = stratal.estimate(sample, labels)
        rows.append((sample.size, number, *found.confidence_interval(plan.confidence_level), found.value))
    labels, rounds, low, high, value = np.array(rows).T
    return Studies(labels=labels, rounds=rounds, low=low, high=high, value=value)


def _larger(seen: CountsSoFar, now: FloatArray, wanted: float, level: float, label_based: bool) -> IntArray:
    """Return n_h (R, H) after the next round."""

    def width(total: IntArray, rows: IntArray) -> FloatArray:
        some = seen.part(rows)
        return some.half_width(some.allocation(total), level)

    drawn = seen.counts.sum(axis=1)
    extra, _ = furthers(width, now, wanted, drawn, int(seen.sizes.sum()), label_based=label_based)
    return seen.allocation(drawn + extra)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One population: its outcomes, and a proxy of them."""

    name: str
    z: FloatArray
    proxy: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What came of one half-width on one population."""

    name: str
    requested: float
    pilot: int
    labels: float
    enough: int
    kept: float
    coverage: float
    bias: float
    rounds: float

    @property
    def ratio(self) -> float:
        """Labels over those of the planner that knows."""
        return self.labels / self.enough

    def missed(self, runs: int) -> str:
        """Say which promises the cell misses, beyond what chance explains."""
        error = (0.95 * 0.05 / runs) ** 0.5
        found = [
            f"kept {self.kept:.2f}" if self.kept < 0.9 else "",
            f"coverage {self.coverage:.3f}" if self.coverage < 0.94 - 3.1 * error else "",
            f"labels × {self.ratio:.2f}" if self.ratio > 1.25 else "",
        ]
        return ", ".join(filter(None, found))

    def __str__(self) -> str:
        return (
            f"| {self.name} | {self.requested} | {self.pilot} | {self.labels:.0f} | {self.enough} | "
            f"{self.ratio:.2f} | {self.kept:.3f} | {self.coverage:.3f} | {self.bias:+.2f} | "
            f"{self.rounds:.1f} |"
        )


def real() -> Iterator[Case]:
    """Yield the binary files."""
    for name in BINARY:
        z, proxy = load(name)
        yield Case(name=name, z=z, proxy=proxy)


def generated() -> Iterator[Case]:
    """Yield seven overconfident, seven underconfident and six useless proxies."""
    rng = np.random.default_rng(SEED)
    for kind, stretch, shift in (("overconfident", 2.0, 1.0), ("underconfident", 0.4, -0.5)):
        for centre in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0):
            odds = centre + 1.5 * rng.normal(size=GENERATED)
            z = (rng.random(GENERATED) < expit(odds)).astype(np.float64)
            yield Case(name=f"{kind}, p = {z.mean():.2f}", z=z, proxy=expit(stretch * odds + shift))
    for centre in (0.0, 0.5, 1.0, 2.0, 3.0, 4.0):
        z = (rng.random(GENERATED) < expit(centre)).astype(np.float64)
        proxy = rng.beta(4.0, 1.0, GENERATED)
        yield Case(name=f"useless, p = {z.mean():.2f}", z=z, proxy=proxy)


def known(plan: Plan, z: FloatArray, asked: float) -> int:
    """Return the labels of a planner that knows the true rates of ten strata."""
    assert plan.population is not None
    strata = stratal.strata.stratify(plan.population, n_strata=10)
    codes = np.asarray(strata.codes)
    rates = np.bincount(codes, z, minlength=strata.n_strata) / strata.sizes
    spread = rates * (1 - rates)

    def width(budget: int, part: float) -> float:
        deviations = np.sqrt(spread)
        n_h = neyman(strata.sizes, np.maximum(deviations, part * deviations.max()), budget)
        return float(expected_half_width_of_counts(strata.sizes, n_h, rates, 0.95))

    least = 2 * strata.n_strata
    return min(smallest_budget(partial(width, part=part), asked, 200, least, len(z)) for part in PARTS)


def measured(case: Case, runs: int, made: Callable[..., Studies]) -> Iterator[Cell]:
    """Yield each half-width's cell."""
    population = stratal.Population.from_arrays(proxy=case.proxy)
    for number, asked in enumerate(ASKED):
        plan = stratal.plan(population, half_width=asked, pilot=True)
        found = made(plan, case.z, asked, studies=runs, seed=SEED + number)
        truth = float(case.z.mean())
        yield Cell(
            name=case.name,
            requested=asked,
            pilot=plan.budget,
            labels=float(found.labels.mean()),
            enough=known(plan, case.z, asked),
            kept=float(np.mean((found.high - found.low) / 2.0 <= 1.05 * asked)),
            coverage=float(np.mean((found.low <= truth) & (truth <= found.high))),
            bias=float((found.value.mean() - truth) / max(found.value.std(), 1e-12)),
            rounds=float(found.rounds.mean()),
        )


def page(cells: list[Cell], options: str, every: int, runs: int) -> str:
    """Return the page of results; it says so when not all cells are in."""
    kept, held, ratio, bias = (
        np.array([getattr(cell, name) for cell in cells]) for name in ("kept", "coverage", "ratio", "bias")
    )
    error = (0.95 * 0.05 / runs) ** 0.5
    missing = "" if len(cells) == every else f" ({every - len(cells)} more cells were not run)"
    missed = [f"{cell.name} ± {cell.requested} ({cell.missed(runs)})" for cell in cells if cell.missed(runs)]
    verdict = (
        f"{len(missed)} of {len(cells)} cells miss: {'; '.join(missed)}." if missed else "No cell misses."
    )
    summary = (
        f"{runs} runs of each of {len(cells)} cells{missing}; Monte Carlo error of a cell's coverage "
        f"{error:.4f}. Labels are {ratio.mean():.2f} × those of the planner that knows, on average "
        f"({ratio.max():.2f} at most). The final half-width is at most 1.05 × the asked one in "
        f"{kept.mean():.3f} of all runs (worst cell {kept.min():.3f}). Coverage {held.mean():.4f}, lowest "
        f"cell {held.min():.3f}, {int(np.sum(held < 0.94))} cells below .94. The value's bias is "
        f"{np.mean(np.abs(bias)):.2f} standard errors on average, {np.max(np.abs(bias)):.2f} at most. A cell "
        "misses where fewer than .90 of the runs keep the half-width, where coverage is below .94 by more "
        f"than 3.1 Monte Carlo errors, or where labels exceed 1.25 times the planner's. {verdict}"
    )
    command = f"`OMP_NUM_THREADS=1 python -m benchmarks.promises {options}`, {circumstances()}"
    header = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    return "\n".join(["# Promises", "", command, "", summary, "", *header, *map(str, cells), ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--only", help="populations, separated by semicolons, or 'real' for the files")
    parser.add_argument("--one-by-one", action="store_true", help="by next_round itself")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    cells: list[Cell] = []
    every = [*real(), *generated()]
    for case in every:
        if options.only and case.name not in options.only.replace("real", ";".join(BINARY)).split(";"):
            continue
        for cell in measured(case, options.runs, one_by_one if options.one_by_one else stopped):
            print(cell, flush=True)
            cells.append(cell)
            command = f"--runs {options.runs}" + (f' --only "{options.only}"' if options.only else "")
            command += " --one-by-one" if options.one_by_one else ""
            options.output.write_text(page(cells, command, len(ASKED) * len(every), options.runs), "utf-8")


if __name__ == "__main__":
    main()
