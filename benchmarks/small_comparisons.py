"""Coverage of differences, ratios and win rates of two models, and of ratios of counts, with few labels.

Samples of a large population, simple random and in two or five strata. Pairs of right and wrong, ratings, and
scores where one model rarely fails. Beside them what was usual: Student's t on the logarithm of the ratio,
and the means of 0, ½ and 1 and of −1, 0 and 1 as a win rate and a difference.

    python benchmarks/small_comparisons.py [--draws 1000] [--sizes 10,20,50,100]

Writes benchmarks/results/small_comparisons.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import stratal
from stratal.arrays import FloatArray
from stratal.estimation.linearised import ratio_of_means
from stratal.estimation.outcome_means import estimate_mean
from stratal.estimation.respondents import Respondents
from stratal.intervals.interval_types import StudentInterval
from stratal.metrics.comparison import ModelOutcomes

RESULTS = Path(__file__).with_name("results") / "small_comparisons.md"
SIZES = (10, 20, 50, 100)
RIGHT = (
    *((0.9, 0.85, 0.5), (0.97, 0.95, 0.5), (0.97, 0.95, 0.0), (0.995, 0.9, 0.0), (0.9, 0.5, 0.2)),
    *((0.5, 0.5, 0.0), (0.6, 0.2, 0.3), (0.5, 0.45, 0.9), (0.9, 0.88, 0.9), (0.05, 0.02, 0.3)),
    *((0.05, 0.05, 0.0), (0.2, 0.1, 0.5), (0.3, 0.02, 0.0)),
)
Pool = tuple[FloatArray, FloatArray, FloatArray]
"""The outcomes of both models that there can be, and how often they are."""
Stratum = tuple[Pool, float, float]
"""A pool, its share of the population and its share of the labels."""
SIZE = 10**6
NAMES = (
    *("ratio", "ratio, t on the logarithm", "win rate", "win rate as a mean"),
    *("difference", "difference as a mean"),
)


def right(first: float, second: float, alike: float) -> Pool:
    """Return two models that are right this often, with this correlation as far as it can be."""
    both = first * second + alike * np.sqrt(first * (1 - first) * second * (1 - second))
    both = min(both, first, second)
    chances = np.array([both, first - both, second - both, 1 - first - second + both])
    return np.array([1.0, 1, 0, 0]), np.array([1.0, 0, 1, 0]), np.maximum(chances, 0)


def in_strata() -> Iterator[tuple[str, list[Stratum]]]:
    """Two strata of all weights and allocations, and five from easy to hard."""
    for easy, hard in (((0.97, 0.95, 0.5), (0.7, 0.5, 0.3)), ((0.99, 0.97, 0.3), (0.6, 0.6, 0.0))):
        for share in (0.5, 0.8, 0.95):
            for labels in sorted({share, 0.5, 1 - share}):
                name = f"strata of {share:g} ({easy[0]:g}, {easy[1]:g}) and {1 - share:.2g} ({hard[0]:g}, "
                name += f"{hard[1]:g}), labels {labels:.2g} and {1 - labels:.2g}"
                yield name, [(right(*easy), share, labels), (right(*hard), 1 - share, 1 - labels)]
    for alike in (0.2, 0.8):
        steps = [right(rate, rate - 0.05, alike) for rate in (0.99, 0.95, 0.9, 0.8, 0.6)]
        yield f"five strata, correlation {alike:g}", [(pool, 0.2, 0.2) for pool in steps]


def pools() -> Iterator[tuple[str, Pool]]:
    for first, second, alike in RIGHT:
        yield f"right {first:g} and {second:g}, correlation {alike:g}", right(first, second, alike)
    rating, chance = np.array([0, 0.25, 0.5, 0.75, 1]), np.array([0.02, 0.03, 0.05, 0.2, 0.7])
    for worse in ((0.9, 0.05, 0.03, 0.02), (0.97, 0.01, 0.01, 0.01)):
        less = np.array([0, 0.25, 0.5, 1])
        high = np.repeat(rating, 4)
        low, rates = np.clip(high - np.tile(less, 5), 0, 1), np.repeat(chance, 4) * np.tile(worse, 5)
        yield f"ratings, {worse[0]:g} of them equal", (high, low, rates)
    grid = np.linspace(0.7, 0.9, 20)
    fails = np.concatenate([np.full(20, 0.96 / 20), np.full(20, 0.04 / 20)])
    yield "mostly better, fails in 4 %", (np.tile(grid, 2), np.r_[grid + 0.05, np.zeros(20)], fails)


def sample_of(strata: list[Stratum], counts: list[int]) -> stratal.Sample:
    table = {"right": np.zeros(sum(counts)), "stratum": np.repeat(np.arange(len(strata)), counts).astype(str)}
    known: dict[str, Any] = {"population_size": SIZE}
    if len(strata) > 1:
        sizes = {str(h): round(SIZE * share) for h, (_, share, _) in enumerate(strata)}
        known = {"stratum": "stratum", "sizes": sizes}
    return stratal.Sample.from_labelled(table, value="right", **known)[0]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OnLogarithm(StudentInterval):
    """Student's t on the logarithm of a ratio."""

    def ends(self, confidence_level: float, alternative: str) -> tuple[float, float]:
        error, freedom = self.standard_error / self.value, self.degrees_of_freedom
        logarithm = StudentInterval(
            value=np.log(self.value), standard_error=error, degrees_of_freedom=freedom
        )
        with np.errstate(over="ignore"):
            low, high = np.exp(logarithm.ends(confidence_level, alternative))
        return float(low), float(high)


def intervals(first: FloatArray, second: FloatArray, sample: stratal.Sample) -> dict[str, Any]:
    labelled = np.ones(len(first), dtype=bool)
    respondents = Respondents.of(sample, labelled)
    plain = ratio_of_means(first, second, respondents.weighting)
    usual = OnLogarithm(
        value=plain.value, standard_error=plain.standard_error, degrees_of_freedom=plain.degrees_of_freedom
    )
    nothing = np.zeros((len(first), 0))
    sign, size = np.sign(first - second), respondents.weighting
    win = estimate_mean(
        0.5 + 0.5 * sign, nothing, size, None, stratum=respondents.stratum, bounds=(0, 1), outcome="bounded"
    )
    gap = estimate_mean(
        first - second, nothing, size, None, stratum=respondents.stratum, bounds=(-1, 1), outcome="bounded"
    )
    there = np.isfinite(plain.value) and plain.value > 0 and plain.variance > 0
    z, models = np.column_stack([first, second]), ("first", "second")
    pair = ModelOutcomes(
        sample=sample, respondents=respondents, labelled=labelled, z=z, models=models, bounds=(0.0, 1.0)
    )
    made = (
        pair.ratio(),
        usual if there else None,
        pair.win_rate(),
        win,
        pair.difference(),
        gap,
    )
    return dict(zip(NAMES, made, strict=True))


def truths(strata: list[Stratum]) -> dict[str, float]:
    ends = np.zeros(3)
    for (first, second, chances), share, _ in strata:
        values = np.array([first, second, np.sign(first - second)])
        ends += share * (values @ chances) / chances.sum()
    return {"ratio": ends[0] / ends[1], "win rate": 0.5 + ends[2] / 2, "difference": ends[0] - ends[1]}


def drawn(strata: list[Stratum], n: int, draws: int) -> tuple[list[int], Any, Any]:
    """Return the labels of each stratum, the different samples that came up, and how often they did."""
    counts = [max(round(n * labels), 2) for _, _, labels in strata]
    rng = np.random.default_rng([n, 7])
    found = [
        rng.multinomial(count, pool[2] / pool[2].sum(), draws)
        for count, (pool, _, _) in zip(counts, strata, strict=True)
    ]
    return counts, *np.unique(np.column_stack(found), axis=0, return_counts=True)


def coverages(strata: list[Stratum], n: int, draws: int) -> dict[str, tuple[float, float, float]]:
    """Return coverage, median width (of a ratio on its logarithm) and how often there is an interval."""
    counts, samples, times = drawn(strata, n, draws)
    whole, truth = sample_of(strata, counts), truths(strata)
    outcomes = [np.concatenate([pool[side] for pool, _, _ in strata]) for side in (0, 1)]
    rows: dict[str, list[tuple[float, float, float]]] = {name: [] for name in NAMES}
    for sample, weight in zip(samples, times, strict=True):
        first, second = (np.repeat(values, sample) for values in outcomes)
        for name, found in intervals(first, second, whole).items():
            if found is None or not np.isfinite(found.value):
                continue
            low, high = found.confidence_interval()
            kind = name.split(",")[0].split(" as")[0]
            width = np.log(high / max(low, 1e-12)) if kind == "ratio" else high - low
            rows[name].append((low <= truth[kind] <= high, width, weight))
    return {name: summary(cells, draws) for name, cells in rows.items()}


def summary(cells: list[tuple[float, float, float]], draws: int) -> tuple[float, float, float]:
    inside, width, weight = np.array(cells, dtype=np.float64).T if cells else np.zeros((3, 1))
    share = float(np.sum(weight)) / draws
    middle = float(np.median(np.repeat(width, weight.astype(int)))) if share else np.nan
    return float(inside @ weight / max(np.sum(weight), 1)), middle, share


def section(n: int, draws: int) -> str:
    """Return the part of the page for n labels."""
    worst, lines = dict.fromkeys(NAMES, 1.0), []
    simple = ((name, [(pool, 1.0, 1.0)]) for name, pool in pools())
    for case, strata in (*simple, *in_strata()):
        found = coverages(strata, n, draws)
        worst |= {name: min(worst[name], found[name][0]) for name in NAMES if found[name][2] > 0.5}
        cells = [f"{covered:.3f} ({width:.3f})" for covered, width, _ in found.values()]
        lines.append(f"| {case} | " + " | ".join(cells) + f" | {found['ratio'][2]:.2f} |")
    text = [
        f"{n} labels",
        "",
        f"`python benchmarks/small_comparisons.py --draws {draws} --sizes {n}`, {date.today()}. Worst cell",
        "of those defined in half the draws: " + ", ".join(f"{k} {v:.3f}" for k, v in worst.items()) + ".",
        "",
        "| models | " + " | ".join(NAMES) + " | ratio defined |",
        "|---" * (len(NAMES) + 2) + "|",
        *lines,
    ]
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    options = parser.parse_args()
    before = RESULTS.read_text(encoding="utf-8").split("\n\n## ")[1:] if RESULTS.exists() else []
    parts = {int(part.split()[0]): part.strip() for part in before}
    parts |= {n: section(n, options.draws) for n in map(int, options.sizes.split(","))}
    head = (
        "# Two models with few labels: ratio, win rate and difference\n\n"
        "Coverage of 95 % intervals and their median width (of a ratio on its logarithm). Draws in which a\n"
        "model is never right have no ratio; the share that has one is the last column. A run writes the\n"
        "part of its number of labels."
    )
    text = "\n\n## ".join([head, *(parts[n] for n in sorted(parts))])
    RESULTS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
