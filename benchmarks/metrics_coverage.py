"""Coverage of every metric's interval on real predictions, under simple random and default stratified draws.

Run: python -m benchmarks.metrics_coverage --replicates 2000
Writes benchmarks/results/metrics_coverage.md. Needs the folder of real predictions (../shared/data).
"""

from __future__ import annotations

import argparse
import multiprocessing
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from benchmarks.helpers import DATA, circumstances

import stratal
from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray
from stratal.designs import StratifiedWeighting
from stratal.estimation.domain_means import domain_mean
from stratal.estimation.estimate import Estimate, difference_of
from stratal.estimation.outcome_means import estimate_mean
from stratal.metrics.comparison import contrast_interval
from stratal.metrics.confusion import Confusion
from stratal.metrics.ranking import area_under_curve, average_precision, ranking_metric
from stratal.regression.quantiles import weighted_quantile_estimate

RESULTS = Path(__file__).with_name("results") / "metrics_coverage.md"
SIZES = (50, 100, 200, 500)

Found = tuple[str, float, tuple[float, float] | None]
"""Metric, value, and interval (None where undefined)."""

Kernel = Callable[[IntArray, StratifiedWeighting], Iterator[Found]]


def found(name: str, estimate: Estimate) -> Found:
    if not np.isfinite(estimate.value):
        return name, np.nan, None
    try:
        low, high = estimate.confidence_interval()
    except stratal.InputError:  # all labels of an unbounded outcome agree: refused, not short
        return name, estimate.value, None
    return name, estimate.value, (low, high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One data set with the kernel that computes its metrics from the rows drawn."""

    name: str
    proxy: FloatArray
    kernel: Kernel


def columns(name: str) -> dict[str, Any]:
    table = pq.read_table(DATA / f"{name}.parquet")
    return {column: np.asarray(table[column].to_pylist()) for column in table.column_names}


def binary_kernel(true: IntArray, predicted: IntArray) -> Kernel:
    def kernel(rows: IntArray, weighting: StratifiedWeighting) -> Iterator[Found]:
        confusion = Confusion(true=true[rows], predicted=predicted[rows], n_classes=2, weighting=weighting)
        for metric in ("precision", "recall", "f1", "specificity", "prevalence"):
            yield found(metric, confusion.metric(metric, 1))
        for metric in ("accuracy", "balanced_accuracy", "mcc"):
            yield found(metric, confusion.metric(metric))
        yield found("f1 macro", confusion.metric("f1", "macro"))

    return kernel


def many_classes_kernel(true: IntArray, predicted: IntArray, n_classes: int) -> Kernel:
    def kernel(rows: IntArray, weighting: StratifiedWeighting) -> Iterator[Found]:
        confusion = Confusion(
            true=true[rows], predicted=predicted[rows], n_classes=n_classes, weighting=weighting
        )
        for metric in ("precision", "recall", "f1"):
            if n_classes > 3:
                yield found(f"{metric} of 3", confusion.metric(metric, 3))
            yield found(f"{metric} macro", confusion.metric(metric, "macro"))
        yield found("f1 micro", confusion.metric("f1", "micro"))
        yield found("mcc", confusion.metric("mcc"))

    return kernel


def ranking_kernel(score: FloatArray, positive: BoolArray) -> Kernel:
    def kernel(rows: IntArray, weighting: StratifiedWeighting) -> Iterator[Found]:
        for metric, statistic in (("auc", area_under_curve), ("average_precision", average_precision)):
            yield found(metric, ranking_metric(statistic, score[rows], positive[rows], weighting))

    return kernel


def domain_kernel(z: FloatArray, group: IntArray, bounds: tuple[float, float] | None) -> Kernel:
    """The smallest and the largest group, and their difference."""
    order = np.argsort(np.bincount(group))
    ends = {"smallest": int(order[0]), "largest": int(order[-1])}

    def kernel(rows: IntArray, weighting: StratifiedWeighting) -> Iterator[Found]:
        means = {
            name: domain_mean(z[rows], group[rows] == level, weighting, bounds=bounds)
            for name, level in ends.items()
        }
        for name, mean in means.items():
            yield found(f"mean of the {name} group", mean)
        yield found("difference of groups", difference_of(means["smallest"], means["largest"]))

    return kernel


def comparison_kernel(first: FloatArray, second: FloatArray) -> Kernel:
    def kernel(rows: IntArray, weighting: StratifiedWeighting) -> Iterator[Found]:
        mean = estimate_mean(
            (first - second)[rows],
            np.zeros((len(rows), 0)),
            weighting,
            None,
            stratum=weighting.stratum,
            bounds=(-1, 1),
            outcome="bounded",
        )
        low, high = contrast_interval(mean).confidence_interval()
        yield "paired difference", mean.value, (low, high)

    return kernel


def quantile_kernel(z: FloatArray) -> Kernel:
    def kernel(rows: IntArray, weighting: StratifiedWeighting) -> Iterator[Found]:
        for probability in (0.25, 0.5, 0.75):
            estimate = weighted_quantile_estimate(z[rows], probability, weighting, bounds=(0.0, 1.0))
            yield found(f"quantile {probability}", estimate)

    return kernel


def together(*kernels: Kernel) -> Kernel:
    def kernel(rows: IntArray, weighting: StratifiedWeighting) -> Iterator[Found]:
        for part in kernels:
            yield from part(rows, weighting)

    return kernel


def cases() -> Iterator[Case]:
    for name in ("galaxies", "forest", "nq301_llmjudge", "imagenet_golden_crowd"):
        data = columns(name)
        proxy, positive = data["proxy"].astype(np.float64), data["z"] > 0.5
        kernels = [binary_kernel(positive.astype(np.int64), (proxy > 0.5).astype(np.int64))]
        kernels.append(ranking_kernel(proxy, positive))
        if name == "nq301_llmjudge":
            agreement = [(data[judge] == data["z"]).astype(np.float64) for judge in ("proxy", "davinci")]
            kernels.append(comparison_kernel(*agreement))
            kernels.append(domain_kernel(positive.astype(np.float64), codes(data["group"]), (0.0, 1.0)))
        yield Case(name=name, proxy=proxy, kernel=together(*kernels))
    data = columns("cifar10_vgg")
    proxy, right = data["proxy"].astype(np.float64), data["z"] > 0.5
    kernel = together(
        many_classes_kernel(data["label"].astype(np.int64), data["pred"].astype(np.int64), 10),
        ranking_kernel(proxy, right),
        domain_kernel(right.astype(np.float64), codes(data["group"]), (0.0, 1.0)),
    )
    yield Case(name="cifar10_vgg", proxy=proxy, kernel=kernel)
    data = columns("birds_resnet50")
    proxy, right = data["proxy"].astype(np.float64), data["z"] > 0.5
    yield Case(name="birds_resnet50", proxy=proxy, kernel=ranking_kernel(proxy, right))
    data = columns("pandalm_pairwise")
    levels = [np.searchsorted([0, 0.5, 1], data[c]).astype(np.int64) for c in ("z", "gpt35", "pandalm7b")]
    agreement = [(entry == levels[0]).astype(np.float64) for entry in levels[1:]]
    kernel = together(
        many_classes_kernel(levels[0], levels[1], 3),
        comparison_kernel(*agreement),
        domain_kernel(data["z"].astype(np.float64), codes(data["group"]), (0.0, 1.0)),
    )
    yield Case(name="pandalm_pairwise", proxy=data["proxy"].astype(np.float64), kernel=kernel)
    data = columns("frank_factuality")
    z = data["z"].astype(np.float64)
    close = [np.clip(1 - np.abs(data[c] - z), 0, 1).astype(np.float64) for c in ("proxy", "factcc")]
    kernel = together(
        quantile_kernel(z), domain_kernel(z, codes(data["group"]), (0.0, 1.0)), comparison_kernel(*close)
    )
    yield Case(name="frank_factuality", proxy=data["proxy"].astype(np.float64), kernel=kernel)
    data = columns("gsm8k_models")
    kernel = domain_kernel(data["z"].astype(np.float64), codes(data["group"]), (0.0, 1.0))
    yield Case(name="gsm8k_models", proxy=data["proxy"].astype(np.float64), kernel=kernel)


def codes(values: AnyArray) -> IntArray:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def designs(case: Case, budget: int) -> Iterator[tuple[str, IntArray, IntArray, IntArray]]:
    """Yield the name of a design with stratum codes (N,), sizes and n_h (H,)."""
    size = len(case.proxy)
    yield "simple random", np.zeros(size, np.int64), np.array([size]), np.array([budget])
    population = stratal.Population.from_arrays(proxy=case.proxy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        design = stratal.plan(population, budget=budget).draw(seed=1).design
    if isinstance(design, stratal.designs.Stratified):
        assigned = design.strata.rule.assign({"proxy": case.proxy})
        yield "default plan", assigned, design.strata.sizes, design.allocation.n_h


def run(case: Case, budget: int, replicates: int) -> Iterator[dict[str, Any]]:
    size = len(case.proxy)
    everyone = StratifiedWeighting(stratum=np.zeros(size, np.int64), sizes=np.array([size]))
    truth = {name: value for name, value, _ in case.kernel(np.arange(size), everyone)}
    for design, assigned, sizes, n_h in designs(case, budget):
        rng = np.random.default_rng(20_240)
        members = [np.flatnonzero(assigned == h) for h in range(len(sizes))]
        stratum = np.repeat(np.arange(len(sizes)), n_h)
        weighting = StratifiedWeighting(stratum=stratum, sizes=sizes)
        tally: dict[str, list[float]] = {name: [] for name in truth}
        widths: dict[str, list[float]] = {name: [] for name in truth}
        for _ in range(replicates):
            rows = np.concatenate(
                [rng.choice(m, n, replace=False) for m, n in zip(members, n_h, strict=True) if n]
            )
            for name, _, interval in case.kernel(rows, weighting):
                if interval is None:
                    continue
                low, high = interval
                tally[name].append(low - 1e-12 <= truth[name] <= high + 1e-12)
                widths[name].append(high - low)
        for name in truth:
            yield {
                "data": case.name, "n": budget, "design": design, "metric": name, "truth": truth[name],
                "coverage": float(np.mean(tally[name])) if tally[name] else np.nan,
                "width": float(np.mean(widths[name])) if tally[name] else np.nan,
                "defined": len(tally[name]) / replicates,
            }  # fmt: skip


def written(rows: list[dict[str, Any]], replicates: int) -> str:
    """Return the report: a summary, the worst cells, and every cell."""
    cells = [row for row in rows if np.isfinite(row["coverage"])]
    short = [row for row in cells if row["coverage"] < 0.94]
    error = np.sqrt(0.95 * 0.05 / replicates)
    far = [row for row in cells if row["coverage"] < 0.95 - 3 * error]
    lines = [
        "# Coverage of every metric on real predictions",
        "",
        f"Nominal 95 %, {replicates:,} seeded draws per cell (one standard error: {error:.4f}), "
        "undefined metrics left out of their cell.",
        "",
        f"`python -m benchmarks.metrics_coverage --replicates {replicates}`, {circumstances()}",
        "",
        f"{len(cells)} cells; {len(cells) - len(short)} cover at least 94 %, {len(far)} less than "
        "95 % by more than three standard errors. Those below 94 %:",
        "",
        *table(short),
        "",
        "## Every cell",
        "",
        *table(cells),
        "",
    ]
    return "\n".join(lines)


def table(rows: list[dict[str, Any]]) -> list[str]:
    header = ["data", "design", "metric", "n", "truth", "coverage", "mean width", "defined"]
    keys = ["data", "design", "metric", "n", "truth", "coverage", "width", "defined"]
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    for row in sorted(rows, key=lambda row: (row["data"], row["design"], row["metric"], row["n"])):
        cells = [f"{row[key]:.4f}" if isinstance(row[key], float) else str(row[key]) for key in keys]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=2000)
    parser.add_argument("--data", default="", help="only these sets, separated by commas")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    wanted = options.data.split(",") if options.data else [case.name for case in cases()]
    tasks = [(name, int(n), options.replicates) for name in wanted for n in options.sizes.split(",")]
    with multiprocessing.Pool(options.processes) as pool:
        rows = [row for part in pool.imap(_task, tasks, chunksize=1) for row in part]
    options.output.write_text(written(rows, options.replicates), encoding="utf-8")
    print(f"{options.output}: {len(rows)} cells, {sum(row['coverage'] < 0.94 for row in rows)} below 94 %")


def _task(task: tuple[str, int, int]) -> list[dict[str, Any]]:
    name, budget, replicates = task
    case = next(case for case in cases() if case.name == name)
    return list(run(case, budget, replicates))


if __name__ == "__main__":
    main()
