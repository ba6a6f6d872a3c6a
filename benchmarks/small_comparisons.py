"""Coverage of differences, ratios and win rates of two models, and of ratios of counts, with few labels.

Simple random samples of a large population. Pairs of right and wrong, ratings, and scores where one model
rarely fails; counts by words. Beside them what was usual: Student's t on the logarithm of the ratio, and the
mean of 0, ½ and 1 as a win rate.

    python benchmarks/small_comparisons.py [--draws 2000] [--sizes 10,20,50,100]

Writes benchmarks/results/small_comparisons.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import stratal
from stratal.arrays import FloatArray
from stratal.estimation.evaluation import estimate_mean
from stratal.estimation.linearisation import ratio_of_means
from stratal.estimation.model_pairs import ratio_of_models, win_rate
from stratal.estimation.quantity import Quantity
from stratal.estimation.respondents import Respondents

RESULTS = Path(__file__).with_name("results") / "small_comparisons.md"
SIZES = (10, 20, 50, 100)
RIGHT = (
    *((0.9, 0.85, 0.5), (0.97, 0.95, 0.5), (0.97, 0.95, 0.0), (0.995, 0.9, 0.0), (0.9, 0.5, 0.2)),
    *((0.5, 0.5, 0.0), (0.6, 0.2, 0.3), (0.5, 0.45, 0.9), (0.9, 0.88, 0.9), (0.05, 0.02, 0.3)),
    *((0.05, 0.05, 0.0), (0.2, 0.1, 0.5), (0.3, 0.02, 0.0)),
)
Pool = tuple[FloatArray, FloatArray, FloatArray]
"""The outcomes of both models that there can be, and how often they are."""


def pools() -> Iterator[tuple[str, Pool]]:
    for first, second, alike in RIGHT:
        both = first * second + alike * np.sqrt(first * (1 - first) * second * (1 - second))
        both = min(both, first, second)
        chances = np.array([both, first - both, second - both, 1 - first - second + both])
        name = f"right {first:g} and {second:g}, correlation {alike:g}"
        yield name, (np.array([1.0, 1, 0, 0]), np.array([1.0, 0, 1, 0]), np.maximum(chances, 0))
    rating, chance = np.array([0, 0.25, 0.5, 0.75, 1]), np.array([0.02, 0.03, 0.05, 0.2, 0.7])
    for worse in ((0.9, 0.05, 0.03, 0.02), (0.97, 0.01, 0.01, 0.01)):
        less = np.array([0, 0.25, 0.5, 1])
        high = np.repeat(rating, 4)
        low, rates = np.clip(high - np.tile(less, 5), 0, 1), np.repeat(chance, 4) * np.tile(worse, 5)
        yield f"ratings, {worse[0]:g} of them equal", (high, low, rates)
    grid = np.linspace(0.7, 0.9, 20)
    fails = np.concatenate([np.full(20, 0.96 / 20), np.full(20, 0.04 / 20)])
    yield "mostly better, fails in 4 %", (np.tile(grid, 2), np.r_[grid + 0.05, np.zeros(20)], fails)


def frame_of(n: int) -> Respondents:
    population = stratal.Population.from_arrays(ids=np.arange(10**6))
    return Respondents.of(stratal.SimpleRandom(budget=n).draw(population, seed=1), np.ones(n, dtype=bool))


def intervals(first: FloatArray, second: FloatArray, frame: Respondents) -> dict[str, Any]:
    plain = ratio_of_means(first, second, frame.weighting)
    usual = Quantity(
        value=plain.value,
        standard_error=plain.standard_error,
        degrees_of_freedom=plain.degrees_of_freedom,
        n=len(first),
        scale="log",
    )
    half = (first > second) + 0.5 * (first == second)
    mean = estimate_mean(
        half, np.zeros((len(half), 0)), frame.weighting, None, stratum=frame.stratum, bounds=(0.0, 1.0)
    )
    there = np.isfinite(plain.value) and plain.value > 0 and plain.variance > 0
    return {
        "ratio": ratio_of_models(first, second, frame, bounds=(0.0, 1.0)),
        "ratio, t on the logarithm": usual if there else None,
        "win rate": win_rate(first, second, frame, "simple-random"),
        "win rate as a mean": mean,
    }


def coverages(pool: Pool, n: int, draws: int) -> dict[str, tuple[float, float, float]]:
    """Return coverage, median width (of a ratio on its logarithm) and how often there is an interval."""
    first, second, chances = pool
    frame, rng = frame_of(n), np.random.default_rng([n, 7])
    drawn, times = np.unique(rng.multinomial(n, chances / chances.sum(), draws), axis=0, return_counts=True)
    win = float(chances @ ((first > second) + 0.5 * (first == second)))
    truth = {"ratio": float(chances @ first / (chances @ second)), "win rate": win}
    rows: dict[str, list[tuple[float, float, float]]] = {}
    for counts, weight in zip(drawn, times, strict=True):
        units = np.repeat(np.arange(len(counts)), counts)
        for name, found in intervals(first[units], second[units], frame).items():
            rows.setdefault(name, [])
            if found is None or not np.isfinite(found.value):
                continue
            low, high = found.confidence_interval()
            is_ratio = name.startswith("ratio")
            value = truth["ratio" if is_ratio else "win rate"]
            width = np.log(high / max(low, 1e-12)) if is_ratio else high - low
            rows[name].append((low <= value <= high, width, weight))
    found_all = {}
    for name, cells in rows.items():
        inside, width, weight = np.array(cells, dtype=np.float64).T if cells else np.zeros((3, 1))
        share = float(np.sum(weight)) / draws
        middle = float(np.median(np.repeat(width, weight.astype(int)))) if share else np.nan
        found_all[name] = float(inside @ weight / max(np.sum(weight), 1)), middle, share
    return found_all


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    options = parser.parse_args()
    draws = options.draws
    names = ("ratio", "ratio, t on the logarithm", "win rate", "win rate as a mean")
    worst = dict.fromkeys(names, 1.0)
    lines = []
    for case, pool in pools():
        for n in map(int, options.sizes.split(",")):
            found = coverages(pool, n, draws)
            cells = []
            for name in names:
                covered, width, share = found[name]
                if share > 0.5:
                    worst[name] = min(worst[name], covered)
                cells.append(f"{covered:.3f} ({width:.3f})")
            lines.append(f"| {case} | {n} | " + " | ".join(cells) + f" | {found['ratio'][2]:.2f} |")
    text = [
        "# Ratios and win rates of two models with few labels",
        "",
        f"`python benchmarks/small_comparisons.py --draws {draws} --sizes {options.sizes}`, {date.today()}",
        "",
        f"Coverage of 95 % intervals and their median width (of a ratio on its logarithm), {draws:,} draws a",
        "cell; draws in which a model is never right have no ratio, their share is the last column. Worst",
        "cell of those defined in half the draws: " + ", ".join(f"{k} {v:.3f}" for k, v in worst.items()),
        "",
        "| models | n | " + " | ".join(names) + " | ratio defined |",
        "|---|---|" + "---|" * (len(names) + 1),
        *lines,
        "",
    ]
    RESULTS.write_text("\n".join(text), encoding="utf-8")
    print("\n".join(text[:7]))


if __name__ == "__main__":
    main()
