"""Coverage and width of the `auto` interval of every estimand under every design, against random samples.

    OMP_NUM_THREADS=1 python -m benchmarks.widths [--replicates 200] [--cells PART,…] [--output FILE]

Cells are population / design / labels / estimand, such as `rare class/default plan/300/auc`; `--cells` keeps
those that contain all parts separated by "+", or any of several separated by commas. Designs: simple random,
the default plan for the mean, two rounds of it with half of the labels each, and clusters of five units with
similar scores. All estimands of a cell are estimated from the same labels.

"Width" is the mean width over 3.92 root mean squared errors. "Relative" is this over that of a simple random
sample of as many labels: the widths at equal error. Slices and class metrics depend on fewer labels than were
drawn: "labels" is their mean number. Writes benchmarks/results/widths.md.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.helpers import DATA, circumstances, load

import stratal
from stratal.arrays import AnyArray, FloatArray
from stratal.designs import SimpleRandom
from stratal.designs.clusters import ClusterSample
from stratal.designs.sample import Sample
from stratal.estimation.estimate import Estimate

RESULTS = Path(__file__).with_name("results") / "widths.md"
SIZES = (50, 100, 300, 1000)
UNITS = 10_000
CLUSTER_SIZE = 5
GROUPS = 4

MIN_COVERAGE = 0.94
MAX_WIDTH = 1.2
MAX_RELATIVE_WIDTH = 1.05
# With fewer labels an interval may be wider.
MIN_LABELS = 100
# An estimand whose error is rounding, such as kappa if there is one answer, has no figures either.
ROUNDING = 1e-9
# An estimand without an interval in more draws than this has no figures.
MIN_DEFINED = 0.9

FILES = ("galaxies", "cifar10_vgg", "nq301_llmjudge", "frank_factuality")
SIMPLE = "simple random"
PLANNED = "default plan"
ROUNDS = "two rounds"
CLUSTERS = "clusters"

CLASS_METRICS = ("f1", "precision", "recall")
COMMON = ("mean", "slice mean", "difference of groups", "pearson")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A population with known outcomes.

    Parameters
    ----------
    name : str
    outcome, proxy : float (N,)
    bounds : (float, float)
    is_binary : bool
    """

    name: str
    outcome: FloatArray
    proxy: FloatArray
    bounds: tuple[float, float] = (0.0, 1.0)
    is_binary: bool = True

    @property
    def estimands(self) -> tuple[str, ...]:
        """The names of the estimands."""
        if self.is_binary:
            return (*COMMON, *CLASS_METRICS, "kappa", "accuracy", "auc", "average_precision")
        return (*COMMON, "mae")

    def population(self) -> stratal.Population:
        """Return it with random groups of unequal size, and clusters of units whose scores are similar."""
        rng = np.random.default_rng(7)
        size = len(self.outcome)
        group = rng.choice(GROUPS, size, p=[0.4, 0.3, 0.2, 0.1])
        order = np.argsort(self.proxy + rng.normal(0.0, np.std(self.proxy), size), kind="stable")
        cluster = np.empty(size, dtype=np.int64)
        cluster[order] = np.arange(size) // CLUSTER_SIZE
        answer = self.proxy > np.mean(self.bounds)
        return stratal.Population.from_arrays(
            proxy={"score": self.proxy},
            groups={
                "group": np.char.add("group ", group.astype(str)),
                "cluster": np.char.add("c", cluster.astype(str)),
                "answer": np.where(answer, "1", "0"),
            },
            bounds=self.bounds,
        )


def generated() -> Iterator[Pool]:
    """Yield the generated populations."""
    rng = np.random.default_rng(2_026)
    rate = rng.beta(3.0, 1.0, UNITS)
    coins = rng.random(UNITS)
    yield Pool(name="calibrated", outcome=(coins < rate).astype(float), proxy=rate)
    yield Pool(name="overconfident", outcome=(coins < 0.45 + 0.5 * rate).astype(float), proxy=rate**0.2)
    yield Pool(name="useless", outcome=(coins < 0.7).astype(float), proxy=rate)
    rare = rng.beta(0.3, 5.7, UNITS)
    yield Pool(name="rare class", outcome=(coins < rare).astype(float), proxy=rare)
    level = rng.normal(0.0, 1.0, UNITS)
    noise = rng.normal(0.0, 1.0, UNITS)
    for name, rho in (("ratings", 0.7), ("ratings, close judge", 0.96)):
        ratings = [
            1.0 + np.digitize(part, [-1.5, -0.8, -0.2, 0.6]).astype(np.float64)
            for part in (level, rho * level + np.sqrt(1.0 - rho**2) * noise)
        ]
        yield Pool(name=name, outcome=ratings[1], proxy=ratings[0], bounds=(1.0, 5.0), is_binary=False)
    for name, rho in (("numbers", 0.73), ("numbers, close judge", 0.96)):
        values = np.clip(0.5 + 0.18 * (rho * level + np.sqrt(1.0 - rho**2) * noise), 0.0, 1.0)
        proxy = np.clip(0.5 + 0.18 * level, 0.0, 1.0)
        yield Pool(name=name, outcome=values, proxy=proxy, is_binary=False)


def pools() -> Iterator[Pool]:
    """Yield all populations; files only where they are present."""
    yield from generated()
    for name in FILES:
        if (DATA / f"{name}.parquet").exists():
            outcome, proxy = load(name)
            is_binary = bool(np.all((outcome == 0) | (outcome == 1)))
            yield Pool(name=name, outcome=outcome, proxy=np.clip(proxy, 0.0, 1.0), is_binary=is_binary)


Draw = Callable[[int], Sample]


def draws_of(pool: Pool, population: stratal.Population, n: int, designs: Iterable[str]) -> dict[str, Draw]:
    """Return what draws a sample of each design from a seed."""
    by_design: dict[str, Draw] = {}
    if SIMPLE in designs:
        by_design[SIMPLE] = lambda seed: SimpleRandom(budget=n).draw(population, seed=seed)
    if PLANNED in designs:
        plan = stratal.plan(population, budget=n)
        by_design[PLANNED] = plan.draw
    if ROUNDS in designs:
        first = stratal.plan(population, budget=n // 2)

        def both(seed: int) -> Sample:
            pilot = first.draw(seed)
            labels = pool.outcome[pilot.ids]
            return stratal.next_round(
                pilot,
                labels,
                additional=n - pilot.size,
                population=population,
                bounds=pool.bounds,
                predicted=False,
            )

        by_design[ROUNDS] = both
    if CLUSTERS in designs:
        design = ClusterSample(cluster="cluster", n_clusters=n // CLUSTER_SIZE)
        by_design[CLUSTERS] = lambda seed: design.draw(population, seed=seed)
    return by_design


def estimates(pool: Pool, sample: Sample, names: Iterable[str]) -> Iterator[tuple[str, Estimate]]:
    """Yield the estimates of these estimands from the labels of a sample."""
    outcome = pool.outcome[sample.ids]
    classes: AnyArray = np.where(outcome > 0.5, "1", "0")
    options: dict[str, Any] = {"predicted": False, "bounds": pool.bounds}
    names = set(names)
    if "mean" in names:
        yield "mean", stratal.estimate(sample, outcome, **options)
    if names & {"slice mean", "difference of groups"}:
        slices = stratal.estimate(sample, outcome, by="group", **options)
        if "slice mean" in names:
            yield "slice mean", slices.of(domain="group 1")
        if "difference of groups" in names:
            pairs = slices.differences(simultaneous=False)
            yield "difference of groups", pairs[0]
    for metric in (*CLASS_METRICS, "auc", "average_precision"):
        if metric in names:
            of = "score=score" if metric in ("auc", "average_precision") else "predicted=answer"
            yield metric, stratal.estimate(sample, classes, estimand=f"{metric}:1,{of}")
    if "kappa" in names:
        yield "kappa", stratal.estimate(sample, classes, estimand="kappa:answer")
    if "accuracy" in names:
        right = (classes == sample.groups["answer"]).astype(np.float64)
        yield "accuracy", stratal.estimate(sample, right, predicted=False)
    if "pearson" in names:
        yield "pearson", stratal.estimate(sample, outcome, estimand="pearson:score")
    if "mae" in names:
        width = pool.bounds[1] - pool.bounds[0]
        errors = np.abs(outcome - pool.proxy[sample.ids])
        yield "mae", stratal.estimate(sample, errors, predicted=False, bounds=(0.0, width))


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What was measured of one cell.

    Parameters
    ----------
    population, design, estimand : str
    n : int
        Drawn labels.
    labels : float
        Labels that determine the estimand, on average.
    defined : float
        Share of the draws with an interval.
    coverage, width, error : float
        Of the intervals; mean width and root mean squared error.
    """

    population: str
    design: str
    estimand: str
    n: int
    labels: float
    defined: float
    coverage: float
    width: float
    error: float

    @property
    def cell(self) -> tuple[str, int, str]:
        """Population, labels and estimand, without the design."""
        return self.population, self.n, self.estimand

    @property
    def ratio(self) -> float:
        """Mean width over 3.92 root mean squared errors."""
        return self.width / (3.92 * self.error)


def measure(
    pool: Pool, n: int, designs: Iterable[str], names: Iterable[str], replicates: int
) -> Iterator[Figures]:
    """Yield the figures of all cells of a population and a number of labels."""
    population = pool.population()
    everyone = SimpleRandom(budget=population.size).draw(population, seed=1)
    truth = {name: estimate.value for name, estimate in estimates(pool, everyone, names)}
    for design, draw in draws_of(pool, population, n, designs).items():
        rows: dict[str, list[tuple[float, ...]]] = defaultdict(list)
        for seed in range(replicates):
            for name, estimate in estimates(pool, draw(seed), names):
                if not np.isfinite(estimate.value):
                    continue
                low, high = estimate.confidence_interval()
                is_held = low - 1e-9 <= truth[name] <= high + 1e-9
                rows[name].append((is_held, high - low, (estimate.value - truth[name]) ** 2, estimate.n))
        for name, values in rows.items():
            held, width, square, labels = np.mean(values, axis=0).tolist()
            yield Figures(
                population=pool.name,
                design=design,
                estimand=name,
                n=n,
                labels=labels,
                defined=len(values) / replicates,
                coverage=held,
                width=width,
                error=float(np.sqrt(square)),
            )


def is_selected(cell: str, selection: str) -> bool:
    """Return whether a cell's name holds all parts of one of the selected patterns."""
    return any(all(part in cell for part in pattern.split("+")) for pattern in selection.split(","))


def run(selection: str, replicates: int) -> Iterator[Figures]:
    """Yield the figures of the selected cells, with those of their simple random samples."""
    for pool in pools():
        for n in SIZES:
            if 2 * n > len(pool.outcome):
                continue
            cells = [
                (design, name)
                for design in (SIMPLE, PLANNED, ROUNDS, CLUSTERS)
                for name in pool.estimands
                if is_selected(f"{pool.name}/{design}/{n}/{name}", selection)
            ]
            if not cells:
                continue
            designs = {SIMPLE, *(design for design, _ in cells)}
            names = {name for _, name in cells}
            yield from measure(pool, n, designs, names, replicates)


HEADER = "| {} | population | design | n | labels | coverage | width | relative |"


def page(figures: list[Figures], replicates: int, selection: str) -> str:
    """Return the page: cells outside the limits, then all of them."""
    used = [row for row in figures if row.defined >= MIN_DEFINED and row.error > ROUNDING]
    simple = {row.cell: row.ratio for row in used if row.design == SIMPLE}
    used = [row for row in used if row.cell in simple]

    def relative(row: Figures) -> float:
        return row.ratio / simple[row.cell]

    def lines(rows: Iterable[Figures]) -> list[str]:
        return [
            f"| {row.estimand} | {row.population} | {row.design} | {row.n} | {row.labels:.0f} "
            f"| {row.coverage:.3f} | {row.ratio:.2f} | {relative(row):.2f} |"
            for row in rows
        ]

    determined = [row for row in used if row.labels >= MIN_LABELS]
    simulation_error = np.sqrt(0.95 * 0.05 / replicates)
    limit = MIN_COVERAGE - 2.0 * simulation_error
    limits = {
        f"Coverage below {MIN_COVERAGE} by more than two standard errors": [
            row for row in used if row.coverage < limit
        ],
        f"Wider than {MAX_WIDTH}, with {MIN_LABELS} labels and more": [
            row for row in determined if row.ratio > MAX_WIDTH
        ],
        f"Wider than {MAX_RELATIVE_WIDTH} of a simple random sample's, with {MIN_LABELS} labels and more": [
            row for row in determined if relative(row) > MAX_RELATIVE_WIDTH
        ],
    }
    header = [HEADER.format("estimand"), "|---" * 8 + "|"]
    command = f"    python -m benchmarks.widths --replicates {replicates}"
    if selection:
        command += f" --cells '{selection}'"
    text = ["# Widths of intervals", "", command, "", circumstances(), ""]
    text += [
        f"{len(used)} cells of {replicates} draws (standard error of a coverage of .95: "
        f"{simulation_error:.3f}; of a width {1 / np.sqrt(2 * replicates):.0%}). Width: mean width over "
        "3.92 root mean squared errors. Relative: this over that of a simple random sample with as many "
        "labels. Labels: how many the estimand depends on.",
        "",
        "| estimand | design | cells | lowest coverage | mean width | largest | mean relative | largest |",
        "|---" * 8 + "|",
    ]
    for estimand, design in dict.fromkeys((row.estimand, row.design) for row in determined):
        rows = [row for row in determined if (row.estimand, row.design) == (estimand, design)]
        ratios = np.array([row.ratio for row in rows])
        relatives = np.array([relative(row) for row in rows])
        text.append(
            f"| {estimand} | {design} | {len(rows)} | {min(row.coverage for row in rows):.3f} "
            f"| {ratios.mean():.2f} | {ratios.max():.2f} | {relatives.mean():.2f} | {relatives.max():.2f} |"
        )
    for title, rows in limits.items():
        text += ["", f"## {title}", "", f"{len(rows)} cells.", "", *header, *lines(rows)]
    text += ["", "## All cells", "", *header, *lines(used)]
    return "\n".join(text) + "\n"


def main() -> None:
    """Run the benchmark and write its page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--cells", default="", help="PART+PART,…: only these cells")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    figures = list(run(options.cells, options.replicates))
    options.output.write_text(page(figures, options.replicates, options.cells), encoding="utf-8")


if __name__ == "__main__":
    main()
