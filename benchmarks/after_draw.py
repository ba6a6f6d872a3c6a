"""Time of everything that is done with a sample, and how it grows with labels, strata, estimands and models.

    OMP_NUM_THREADS=1 python -m benchmarks.after_draw [--repeats 5]

Times are of the processor, one thread, in milliseconds: minimum, median and maximum of several calls after
one that is not counted. Slopes are those of a straight line through the logarithms of the least times. Writes
benchmarks/results/after_draw.md.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.helpers import circumstances

import stratal
from stratal import estimands
from stratal.designs import Sample, Stratified
from stratal.strata import allocate, stratify

RESULTS = Path(__file__).parent / "results" / "after_draw.md"
SIZE = 100_000
CLASSES = ("match", "other", "none")
KINDS = (estimands.F1, estimands.Recall, estimands.Precision, estimands.Specificity, estimands.Jaccard)

Row = tuple[str, str, Callable[[], Any]]


def population(models: int = 8) -> tuple[stratal.Population, np.ndarray[Any, Any]]:
    """Return 10⁵ units with the answers of several models, and the true classes."""
    random = np.random.default_rng(35)
    truth = random.choice(CLASSES, SIZE, p=(0.7, 0.2, 0.1))
    answers = {
        f"model{number}": np.where(
            random.random(SIZE) < 0.7 + 0.02 * number, truth, random.choice(CLASSES, SIZE)
        )
        for number in range(models)
    }
    right = answers["model0"] == truth
    proxy = np.where(right, random.beta(6, 1, SIZE), random.beta(2, 2, SIZE))
    return stratal.Population.from_arrays(proxy=proxy, groups=answers, predicted="model0"), truth


def drawn(units: stratal.Population, n: int, n_strata: int) -> Sample:
    """Return a sample of n units, Neyman-allocated to k-means strata."""
    strata = stratify(units, method="k-means", n_strata=n_strata)
    allocation = allocate(strata, budget=n, method="neyman")
    return Stratified(strata=strata, allocation=allocation).draw(units, seed=1)


def outcomes(sample: Sample, truth: np.ndarray[Any, Any], models: int) -> dict[str, Any]:
    """Return of each model whether it was right (n,)."""
    names = [f"model{number}" for number in range(models)]
    return {name: (sample.groups[name] == truth[sample.ids]).astype(np.float64) for name in names}


def list_of(count: int) -> list[Any]:
    """Return several estimands, metrics of classes."""
    kinds = [kind(name) for kind in KINDS for name in CLASSES]
    betas = [estimands.FBeta(name, beta=0.1 + 0.1 * number) for number in range(count) for name in CLASSES]
    return [*kinds, *betas][:count]


def required() -> Iterator[Row]:
    """Yield what has a limit, the limit, and the call."""
    units, truth = population()
    sample = drawn(units, 1_000, 10)
    right, labels = outcomes(sample, truth, 8), truth[sample.ids]
    z = right["model0"]
    f1 = estimands.F1("match")
    planned = stratal.plan(units, 1_000).draw(seed=1)
    seen = outcomes(planned, truth, 1)["model0"]
    asked = stratal.plan(units, 1_000, estimand=f1).draw(seed=1)
    answers = truth[asked.ids]
    yield "`estimate` with its interval", "1", lambda: stratal.estimate(sample, z).confidence_interval()
    yield (
        "`estimate`, `stratppi`",
        "",
        lambda: stratal.estimate(sample, z, estimator="stratppi").confidence_interval(),
    )
    yield (
        "`next_round` of a mean",
        "8",
        lambda: stratal.next_round(planned, seen, additional=200, population=units),
    )
    yield (
        "`next_round` of F1",
        "30",
        lambda: stratal.next_round(asked, answers, additional=200, population=units),
    )
    yield "100 estimands", "150", lambda: stratal.estimate(sample, labels, estimand=list_of(100))
    yield "all differences of eight models", "150", lambda: stratal.compare(sample, right)
    yield "`plan(half_width=)`, N = 10⁵", "60", lambda: stratal.plan(units, half_width=0.03)


def growth() -> Iterator[tuple[str, list[int], Callable[[int], Callable[[], Any]]]]:
    """Yield what grows, its sizes, and the call at each."""
    units, truth = population()
    wide, classes = population(16)
    base = drawn(units, 1_000, 10)

    def interval(sample: Sample) -> Callable[[], Any]:
        z = outcomes(sample, truth, 1)["model0"]
        return lambda: stratal.estimate(sample, z).confidence_interval()

    def several(count: int) -> Callable[[], Any]:
        asked = list_of(count)
        return lambda: stratal.estimate(base, truth[base.ids], estimand=asked)

    def compared(count: int) -> Callable[[], Any]:
        sample = drawn(wide, 1_000, 10)
        right = outcomes(sample, classes, count)
        return lambda: stratal.compare(sample, right)

    yield (
        "n, `estimate` with interval, H = 10",
        [100, 1_000, 10_000, 50_000],
        lambda n: interval(drawn(units, n, 10)),
    )
    yield (
        "H, `estimate` with interval, n = 2,000",
        [2, 10, 50, 200],
        lambda h: interval(drawn(units, 2_000, h)),
    )
    yield "estimands, n = 1,000", [1, 10, 100], several
    yield "models, all differences, n = 1,000", [2, 4, 8, 16], compared


def measured(call: Callable[[], Any], repeats: int) -> list[float]:
    """Return sorted milliseconds of the processor of later calls."""
    call()
    found = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        found.append(1e3 * (time.process_time() - start))
    return sorted(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    rows, lines = [], []
    for what, limit, call in required():
        least, *_, most = times = measured(call, options.repeats)
        rows.append(f"| {what} | {least:.1f} | {statistics.median(times):.1f} | {most:.1f} | {limit} |")
        print(rows[-1], flush=True)
    for what, sizes, make in growth():
        least_of = [measured(make(size), options.repeats)[0] for size in sizes]
        slope = np.polyfit(np.log(sizes), np.log(least_of), 1)[0]
        at = ", ".join(f"{size:,}: {time:.1f}" for size, time in zip(sizes, least_of, strict=True))
        lines.append(f"| {what} | {at} | {slope:.2f} |")
        print(lines[-1], flush=True)
    RESULTS.write_text(
        "\n".join(
            [
                "# After the draw",
                "",
                f"`OMP_NUM_THREADS=1 python -m benchmarks.after_draw --repeats {options.repeats}`, "
                f"{circumstances()}",
                "",
                "Milliseconds of the processor, one thread; N = 10⁵, n = 1,000 and H = 10 unless said.",
                "",
                "| what | minimum | median | maximum | required |",
                "|---|---|---|---|---|",
                *rows,
                "",
                "Growth: the least time at each size, and the slope of a line through their logarithms.",
                "",
                "| what grows | ms at each size | slope |",
                "|---|---|---|",
                *lines,
                "",
            ]
        )
    )


if __name__ == "__main__":
    main()
