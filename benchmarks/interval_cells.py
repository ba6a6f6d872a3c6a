"""Coverage and sharpness of the stratified interval, by the kernel that `estimate` runs.

    python benchmarks/interval_cells.py                    # 10,000 draws per cell

Cells: weights × allocations × rates × strata; a dominant stratum with few labels; the default plan on the
binary sets and on thirty generated populations. 'sharpness' is the mean width over 2 × 1.96 × the true
standard error.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from benchmarks.helpers import BINARY, DATA, load

import stratal
from stratal.arrays import FloatArray, IntArray
from stratal.planning.interim_widths import interval_of_counts

RESULTS = Path(__file__).parent / "results" / "interval_cells.md"
SEED = 20261121
REQUIRED = 0.94
RATES = ((0.97, 0.9), (0.99, 0.7), (0.995, 0.5), (0.9, 0.6), (0.5, 0.9), (0.97, 0.995), (0.995, 0.97))
DOMINANT = (
    ((18_000, 2_000), (0.97, 0.9), (60, 60)),
    ((19_000, 1_000), (0.97, 0.7), (50, 50)),
    ((16_000, 4_000), (0.97, 0.9), (30, 90)),
    ((4_000,) * 5, (0.9, 0.92, 0.94, 0.96, 0.98), (60,) * 5),
    ((19_600, 400), (0.99, 0.7), (2, 98)),
    ((19_600, 400), (0.9, 0.6), (5, 95)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Strata with their sizes, ones and labels."""

    group: str
    name: str
    sizes: IntArray
    ones: IntArray
    n_h: IntArray


def cell(group: str, name: str, sizes, rates, n_h) -> Cell:  # type: ignore[no-untyped-def]
    sizes = np.asarray(sizes, dtype=np.int64)
    ones = np.round(sizes * np.asarray(rates)).astype(np.int64)
    n_h = np.minimum(np.asarray(n_h, dtype=np.int64), sizes)
    return Cell(group=group, name=name, sizes=sizes, ones=ones, n_h=n_h)


def grid() -> Iterator[Cell]:
    for n_strata in (2, 5, 10, 20):
        for first in (0.5, 0.8, 0.9, 0.95, 0.98):
            weights = np.r_[first, np.full(n_strata - 1, (1 - first) / (n_strata - 1))]
            if first == 0.5:
                weights = np.full(n_strata, 1 / n_strata)
            shares = {"proportional": weights, "equal": np.ones(n_strata), "inverted": 1 / weights}
            for allocation, share in shares.items():
                n_h = np.maximum(np.round(100 * share / share.sum()), 2)
                for one, other in RATES:
                    rates = np.where(np.arange(n_strata) % 2, other, one)
                    if first > 0.5:
                        rates = np.r_[one, np.full(n_strata - 1, other)]
                    name = f"H = {n_strata}, first {first:g}, {allocation}, {one:g} and {other:g}"
                    yield cell("weights × allocations × rates", name, np.round(20_000 * weights), rates, n_h)


def dominant() -> Iterator[Cell]:
    for sizes, rates, n_h in DOMINANT:
        yield cell("a dominant stratum with few labels", f"{sizes}, {rates}, {n_h}", sizes, rates, n_h)


def planned(group: str, name: str, z: FloatArray, proxy: FloatArray, budget: int) -> Iterator[Cell]:
    plan = stratal.plan(stratal.Population.from_arrays(proxy=proxy), budget=budget)
    codes = plan.strata.codes
    if codes is None or len(plan.strata.sizes) < 2:
        return
    sizes = np.bincount(codes)
    yield cell(group, f"{name}, n = {budget}", sizes, np.bincount(codes, z) / sizes, plan.allocation.n_h)


def files() -> Iterator[Cell]:
    for budget in (50, 100, 400, 1000, 2000):
        for name in BINARY:
            z, proxy = load(name)
            if budget < 0.9 * len(z):
                yield from planned(f"default plan, n = {budget}", name, z, proxy, budget)


def generated() -> Iterator[Cell]:
    rng = np.random.default_rng(SEED)
    for number in range(30):
        kind = ("rare", "near-certain", "clumped")[number % 3]
        size = int(rng.choice([2_000, 20_000]))
        a, b = {"rare": (0.1, 6.0), "near-certain": (8.0, 0.3), "clumped": (0.2, 0.2)}[kind]
        score = np.clip(rng.beta(a, b, size), 0.001, 0.999)
        bend = rng.choice([0.5, 1.0, 2.0])
        z = (rng.random(size) < score**bend).astype(float)
        if 0 < z.sum() < size:
            for budget in (50, 100, 400):
                yield from planned("generated populations", f"{kind} {number}", z, score, budget)


def measure(one: Cell, draws: int, rng: np.random.Generator) -> tuple[float, float, float]:
    """Return coverage, sharpness, and the coverage of value ± 1.96 standard errors."""
    sizes, n_h = one.sizes, one.n_h
    ones = rng.hypergeometric(one.ones, sizes - one.ones, n_h, (draws, len(sizes))).astype(np.float64)
    counts, back = np.unique(ones, axis=0, return_inverse=True)
    left, shares, rates = 1 - n_h / sizes, sizes / sizes.sum(), counts / n_h
    value = np.clip(rates @ shares, 0, 1)
    low, high = interval_of_counts(sizes, n_h, counts, 0.95)
    factors = shares**2 * left / n_h
    half = 1.96 * np.sqrt(rates * (1 - rates) * n_h / np.maximum(n_h - 1, 1) @ factors)
    p = one.ones / sizes
    truth = float(shares @ p)
    error = np.sqrt(factors @ (p * (1 - p) * sizes / np.maximum(sizes - 1, 1)))
    back = back.ravel()
    held = ((low <= truth + 1e-12) & (truth - 1e-12 <= high))[back].mean()
    normal = (np.abs(value - truth) <= half)[back].mean()
    return float(held), float((high - low)[back].mean() / (2 * 1.96 * error)), float(normal)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10_000)
    draws = parser.parse_args().draws
    cells = [*dominant(), *generated(), *grid()]
    if DATA.exists():
        cells = [*files(), *cells]
    lowest = REQUIRED - 3.09 * np.sqrt(REQUIRED * (1 - REQUIRED) / draws)
    lines = [
        "## Coverage and sharpness of the stratified interval at 95 %",
        "",
        f"`python benchmarks/interval_cells.py --draws {draws}`, seed {SEED}. A cell fails where its upper "
        f"99.9 % Monte Carlo limit is below {REQUIRED}: below {lowest:.4f}.",
    ]
    rows: dict[str, list[tuple[str, tuple[float, float, float]]]] = {}
    for number, one in enumerate(cells):
        found = measure(one, draws, np.random.default_rng([SEED, number]))
        rows.setdefault(one.group, []).append((one.name, found))
    lines += [
        "",
        "| group | cells | failed | lowest coverage | mean sharpness | largest | lowest of ± 1.96 SE |",
    ]
    lines += ["|---|---|---|---|---|---|---|"]
    for group, members in rows.items():
        held, width, normal = np.array([found for _, found in members]).T
        lines.append(
            f"| {group} | {len(held)} | {np.sum(held < lowest)} | {held.min():.4f} | {width.mean():.3f} "
            f"| {width.max():.3f} | {normal.min():.4f} |"
        )
    for group, members in rows.items():
        lines += ["", f"### {group[0].upper()}{group[1:]}", "", "| cell | coverage | sharpness | ± 1.96 SE |"]
        lines += ["|---|---|---|---|"]
        lines += [f"| {name} | {a:.4f} | {b:.3f} | {c:.4f} |" for name, (a, b, c) in members]
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
