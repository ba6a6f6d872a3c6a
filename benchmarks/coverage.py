"""Coverage and width of the `auto` interval, cell by cell, through the same functions that a user calls.

    python -m benchmarks.coverage [--draws 10000] [--only GROUP]

Every cell is a population with a known truth; the table says how often the 95 % interval held it, the
interval's mean width, and the mean width of the Clopper–Pearson interval of a simple random sample of the
same size beside it (for a bounded outcome, Student's t).
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from benchmarks.helpers import BINARY, DATA, GRADED, circumstances, load

import stratal
from stratal.arrays import FloatArray, IntArray
from stratal.designs import StratifiedWeighting
from stratal.estimation.outcome_means import estimate_mean
from stratal.intervals.methods import INTERVAL_METHODS
from stratal.intervals.proportion import clopper_pearson, student_quantile
from stratal.population.summary import StratumSummary

BOUNDED = tuple(name for name, kind in INTERVAL_METHODS.items() if not kind.reads_skewness)
RESULTS = Path(__file__).parent / "results" / "coverage.md"
BOUNDED = tuple(name for name, kind in INTERVAL_METHODS.items() if not kind.reads_skewness)
FEWER_DRAWS = ("binary data, simple random, one λ", "bounded data, simple random, one λ")
METHODS = "Every method, λ = 0, binary"
SEED = 20261120


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One population with one way of sampling and estimating it."""

    group: str
    name: str
    z: FloatArray
    proxy: FloatArray
    stratum: IntArray
    n_h: IntArray
    estimator: str
    design: str
    bounds: tuple[float, float]


def simple_random_cells() -> Iterator[Cell]:
    for n in (20, 30, 50, 100):
        for p in (0.5, 0.85, 0.9, 0.97, 0.99):
            z = (np.arange(20_000) < round(20_000 * p)).astype(float)
            yield _cell("simple random, binary, λ = 0", f"p = {p:g}", z, z * 0, z * 0, n, "horvitz-thompson")


def judge_cells() -> Iterator[Cell]:
    """Simple random samples with a judge that is right 85 % of the time: where other packages fail."""
    for n, p in ((20, 0.9), (30, 0.97), (100, 0.97), (50, 0.75), (400, 0.9)):
        z, judge, _ = judged([1000], [p])
        yield _cell("simple random, judge 85 %, one λ", f"N = 1000, p = {p:g}", z, judge, z * 0, n, "ppi++")


def stratified_cells() -> Iterator[Cell]:
    z, judge, stratum = judged([200] * 5, [0.5, 0.6, 0.75, 0.85, 0.95])
    for estimator in ("horvitz-thompson", "difference", "ppi++", "stratppi"):
        for n_h in (2, 5, 10, 20, 50):
            group = f"five strata of 200, judge 85 %, {estimator}"
            yield _cell(group, f"n_h = {n_h}", z, judge, stratum, [n_h] * 5, estimator)


def data_cells(names: tuple[str, ...], group: str) -> Iterator[Cell]:
    for name in names:
        z, proxy = load(name)
        population = stratal.Population.from_arrays(proxy=proxy)
        for budget in (50, 100, 400):
            plan = stratal.plan(population, budget=budget)
            codes = plan.strata.codes
            stratum = z * 0 if codes is None or len(plan.strata.sizes) == 1 else codes
            yield _cell(f"{group}, default plan", name, z, proxy, stratum, plan.allocation.n_h, "auto")
            strata = stratal.strata.stratify(population, method="k-means", n_strata=10)
            n_h = stratal.strata.allocate(strata, budget=budget).n_h
            assert strata.codes is not None
            if len(plan.strata.sizes) == 1:
                yield _cell(f"{group}, k-means strata", name, z, proxy, strata.codes, n_h, "horvitz-thompson")
            if names == BINARY:
                yield _cell(f"{group}, k-means strata, one λ", name, z, proxy, strata.codes, n_h, "ppi++")
            yield _cell(f"{group}, simple random, one λ", name, z, proxy, z * 0, budget, "ppi++")


def judged(sizes: list[int], rates: list[float]) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return outcomes, a judge that is right for 85 % of either kind, and the strata."""
    z, judge = [], []
    for size, rate in zip(sizes, rates, strict=True):
        for outcome, units in ((1.0, round(size * rate)), (0.0, size - round(size * rate))):
            right = round(0.85 * units)
            z.append(np.full(units, outcome))
            judge.append(np.r_[np.full(right, outcome), np.full(units - right, 1.0 - outcome)])
    return np.concatenate(z), np.concatenate(judge), np.repeat(np.arange(len(sizes)), sizes)


def _cell(
    group: str,
    name: str,
    z: FloatArray,
    proxy: FloatArray,
    stratum: FloatArray | IntArray,
    n_h: IntArray | list[int] | int,
    estimator: str,
) -> Cell:
    codes = np.asarray(stratum, dtype=np.int64)
    order = np.argsort(codes, kind="stable")
    return Cell(
        group=group,
        name=name,
        z=z[order],
        proxy=proxy[order],
        stratum=codes[order],
        n_h=np.atleast_1d(np.asarray(n_h, dtype=np.int64)),
        estimator=estimator,
        design="stratified" if codes.any() else "simple-random",
        bounds=(0.0, 1.0),
    )


def draw(cell: Cell, draws: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """Yield the drawn units, stratum by stratum, of many independent samples."""
    sizes = np.bincount(cell.stratum)
    first = np.r_[0, np.cumsum(sizes)[:-1]]
    batch = max(1, 4_000_000 // len(cell.z))
    for start in range(0, draws, batch):
        count = min(batch, draws - start)
        parts = []
        for size, offset, n in zip(sizes, first, cell.n_h, strict=True):
            keys = rng.random((count, size), dtype=np.float32)
            parts.append(offset + np.argpartition(keys, n - 1, axis=1)[:, :n])
        yield from np.concatenate(parts, axis=1)


def measure(cell: Cell, draws: int, rng: np.random.Generator) -> tuple[float, float, float]:
    """Return coverage, mean width, and the mean width of the plain interval of a simple random sample."""
    sizes = np.bincount(cell.stratum)
    means = np.bincount(cell.stratum, cell.proxy) / sizes
    squares = np.bincount(cell.stratum, (cell.proxy - means[cell.stratum]) ** 2) / sizes
    summary = StratumSummary(
        sizes=sizes, proxy_means=means[:, None], proxy_covariances=squares[:, None, None]
    )
    stratum = np.repeat(np.arange(len(sizes)), cell.n_h)
    weighting = StratifiedWeighting(stratum=stratum, sizes=sizes)
    truth = float(cell.z.mean())
    held = np.empty(draws, dtype=bool)
    widths = np.empty(draws)
    known: dict[bytes, tuple[float, float]] = {}
    for replicate, units in enumerate(draw(cell, draws, rng)):
        z = cell.z[units]
        proxies = cell.proxy[units][:, None]
        # A binary outcome alone enters through its count per stratum: the same counts give the same interval.
        key = np.bincount(stratum, z).tobytes() if cell.estimator == "horvitz-thompson" else None
        if key is None or key not in known:
            estimate = estimate_mean(
                z,
                proxies,
                weighting,
                summary,
                stratum=stratum,
                estimator=cell.estimator,
                bounds=cell.bounds,
                design=cell.design,
            )
            low, high = estimate.confidence_interval()
        else:
            low, high = known[key]
        if key is not None and np.all((z == 0) | (z == 1)):
            known[key] = low, high
        held[replicate] = low - 1e-12 <= truth <= high + 1e-12
        widths[replicate] = high - low
    return float(held.mean()), float(widths.mean()), plain_width(cell, draws, rng)


def plain_width(cell: Cell, draws: int, rng: np.random.Generator) -> float:
    n, size = int(cell.n_h.sum()), len(cell.z)
    if np.all((cell.z == 0) | (cell.z == 1)):
        ones = int(cell.z.sum())
        low, high = clopper_pearson(rng.hypergeometric(ones, size - ones, n, draws) / n, float(n))
        return float(np.mean(high - low))
    spread = cell.z.std() * np.sqrt((1 - n / size) / n)
    return float(2 * student_quantile(0.975, n - 1) * spread)


def table(cells: list[Cell], draws: int, only: str = "") -> list[str]:
    lines: list[str] = []
    # Draws from the largest sets cost most and decide nothing: a fifth of them is enough there.
    seeds = np.random.SeedSequence(SEED).spawn(len(cells))
    group = ""
    for cell, seed in zip(cells, seeds, strict=True):
        if only not in cell.group:
            continue
        if cell.group != group:
            group = cell.group
            count = draws // 5 if group in FEWER_DRAWS else draws
            lines += [
                "",
                f"### {group[0].upper()}{group[1:]} ({count:,} draws, {time.strftime('%Y-%m-%d')})",
                "",
                "| cell | n | coverage | width | plain |",
            ]
            lines.append("|---|---|---|---|---|")
        coverage, width, plain = measure(cell, count, np.random.default_rng(seed))
        lines.append(f"| {cell.name} | {cell.n_h.sum()} | {coverage:.4f} | {width:.4f} | {plain:.4f} |")
        print(cell.group, lines[-1], flush=True)
    return lines


def methods_table(draws: int) -> list[str]:
    """Return each method's worst coverage and width against Clopper–Pearson's, in small binary cells."""
    cells = [c for c in simple_random_cells() if c.n_h.sum() in (20, 50)]
    cells += [c for c in stratified_cells() if c.estimator == "horvitz-thompson" and c.n_h[0] in (2, 5, 20)]
    told = f"({draws:,} draws, {time.strftime('%Y-%m-%d')})"
    lines = ["", f"### {METHODS}: worst coverage of the cells, mean width over `auto`'s {told}", ""]
    lines += ["| method | simple random | width | five strata | width |", "|---|---|---|---|---|"]
    found: dict[tuple[str, str], list[tuple[float, float]]] = {
        (cell.group, name): [] for cell in cells for name in BOUNDED
    }
    for number, cell in enumerate(cells):
        for name, numbers in measure_methods(cell, draws, np.random.default_rng([SEED, number])).items():
            found[cell.group, name].append(numbers)
    groups = list(dict.fromkeys(cell.group for cell in cells))
    for name in BOUNDED:
        row = []
        for group in groups:
            coverage, ratio = np.array(found[group, name]).T
            row += [f"{coverage.min():.3f}", f"{ratio.mean():.2f}"]
        lines.append(f"| {name} | {' | '.join(row)} |")
        print(lines[-1], flush=True)
    return lines


def measure_methods(cell: Cell, draws: int, rng: np.random.Generator) -> dict[str, tuple[float, float]]:
    sizes = np.bincount(cell.stratum)
    stratum = np.repeat(np.arange(len(sizes)), cell.n_h)
    weighting = StratifiedWeighting(stratum=stratum, sizes=sizes)
    truth = float(cell.z.mean())
    counts = [tuple(np.bincount(stratum, cell.z[units]).astype(int)) for units in draw(cell, draws, rng)]
    exact = [name for name in BOUNDED if not name.startswith("betting")]
    found = {count: every_interval(cell, count, ["auto", *exact], weighting, None) for count in set(counts)}
    usual = -np.mean([np.subtract(*found[count]["auto"]) for count in counts])
    rows = {name: [found[count][name] for count in counts] for name in exact}
    # Betting depends on the order of the labels: a new shuffle for every draw, and fewer draws.
    betting = [name for name in BOUNDED if name.startswith("betting")]
    for name in betting:
        rows[name] = [every_interval(cell, c, [name], weighting, rng)[name] for c in counts[: draws // 4]]
    result = {}
    for name, bounds in rows.items():
        low, high = np.array(bounds).T
        held = (low <= truth + 1e-12) & (truth - 1e-12 <= high)
        result[name] = float(held.mean()), float(np.mean(high - low) / usual)
    return result


def every_interval(
    cell: Cell,
    count: tuple[int, ...],
    names: list[str],
    weighting: StratifiedWeighting,
    rng: np.random.Generator | None,
) -> dict[str, tuple[float, float]]:
    """Return the intervals by name for so many ones in each stratum, shuffled if `rng` is given."""
    parts = [(np.arange(n) < ones).astype(float) for n, ones in zip(cell.n_h, count, strict=True)]
    z = np.concatenate(parts if rng is None else [rng.permutation(part) for part in parts])
    nothing = np.zeros((len(z), 0))
    estimate = estimate_mean(z, nothing, weighting, None, stratum=weighting.stratum, design=cell.design)
    intervals = {name: estimate.confidence_interval(method=name) for name in names}
    return {name: (interval.low, interval.high) for name, interval in intervals.items()}


def sections(text: str) -> dict[str, str]:
    """Return the sections of a page by the beginning of their headings."""
    parts = re.split(r"(?m)^(?=### )", text)
    return {re.split(r": worst| \(", part, maxsplit=1)[0]: part.strip() + "\n" for part in parts[1:]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--only", default="", help="groups that hold this text; the rest of the page stays")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    cells = [*simple_random_cells(), *judge_cells(), *stratified_cells()]
    generated = any(arguments.only in group for group in [METHODS, *(cell.group for cell in cells)])
    if DATA.exists() and not (arguments.only and generated):
        cells += [*data_cells(BINARY, "binary data"), *data_cells(GRADED, "bounded data")]
    groups = list(dict.fromkeys(cell.group for cell in cells))
    cells.sort(key=lambda cell: groups.index(cell.group))
    lines = table(cells, arguments.draws, arguments.only)
    if arguments.only in METHODS:
        lines += methods_table(min(arguments.draws, 2000))
    before = sections(arguments.output.read_text()) if arguments.only and arguments.output.exists() else {}
    found = {**before, **sections("\n".join(lines))}
    dated = [re.search(r"\d{4}-\d\d-\d\d", part.partition("\n")[0]) for part in found.values()]
    old = "*Sections without a date are older than the present interval, and are to be measured again.*"
    head = [
        "## Coverage of the `auto` interval at 95 %",
        "",
        *([] if all(dated) else [old, ""]),
        "`python -m benchmarks.coverage --draws DRAWS --only GROUP` for each section; the last: "
        f"{circumstances()}",
        "",
        f"Seed {SEED}; one standard error of a coverage of .95 is .22 over the root of the draws. 'plain' is "
        "the mean width of the Clopper–Pearson interval of a simple random sample of that n (Student's t for "
        "bounded outcomes).",
        "",
    ]
    arguments.output.parent.mkdir(exist_ok=True)
    text = "\n".join([*head, *found.values()])
    arguments.output.write_text(f"{text.rstrip()}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
