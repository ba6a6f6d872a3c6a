"""Coverage and width of metrics of a rare class where the strata are crossed with the model's answers.

Run: python -m benchmarks.known_answers --replicates 1000
Writes benchmarks/results/known_answers.md. Before: the same labels, what the strata know of the answers left
out. Plans for F1, and for the accuracy in strata of the answers, each with strata of the score.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.wrong_scores import limits

import stratal
from stratal import estimands
from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.designs import StratifiedWeighting
from stratal.estimation.mover import directions, limits_on_ellipsoid, move_limits_outwards
from stratal.metrics.class_functions import metric_function, two_class_metric
from stratal.metrics.confusion import Confusion

PAGE = Path(__file__).parent / "results" / "known_answers.md"
METRICS = ("precision", "recall", "f1")
SCORES = ("hidden", "good", "overconfident")
PLANS = ("f1", "accuracy")
BEFORE = 50
"""Draws whose intervals are also made without what is known."""

CHECKED = 2
"""Draws whose intervals are also made by the library one by one, and must be the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One population with one plan."""

    size: int
    share: float
    spread: float
    scores: str
    plan: str
    budget: int


def cells() -> Iterator[Cell]:
    for size, share, spread in ((60_000, 0.008, 8.0), (60_000, 0.02, 20.0), (20_000, 0.03, 3.2)):
        for scores in SCORES:
            for plan in PLANS:
                for budget in (200, 1000):
                    yield Cell(size=size, share=share, spread=spread, scores=scores, plan=plan, budget=budget)


def population(cell: Cell) -> tuple[FloatArray, IntArray, IntArray]:
    """Return scores, answers and truth.

    Overconfident scores say too little of what was missed; of hidden misses, a quarter of a percent of all
    units, they say nothing.
    """
    rng = np.random.default_rng(17)
    centre = float(np.log(cell.share / (1.0 - cell.share)))
    logit = centre - 3.0 + cell.spread * rng.standard_normal(cell.size)
    for _ in range(40):  # so that the share of positives is as it should be
        logit -= np.log(np.mean(1.0 / (1.0 + np.exp(-logit))) / cell.share)
    true = (rng.random(cell.size) < 1.0 / (1.0 + np.exp(-logit))).astype(np.int64)
    if cell.scores == "hidden":
        others = np.flatnonzero(logit <= 0)
        true[rng.choice(others, cell.size // 400, replace=False)] = 1
    said = 2.0 * logit if cell.scores == "overconfident" else logit
    score = 1.0 / (1.0 + np.exp(-np.clip(said, -12, 12)))
    return score, (logit > 0).astype(np.int64), true


def drawn(cell: Cell, score: FloatArray, answer: IntArray) -> stratal.Sample:
    """Return one sample of the plan; its strata and counts serve for all draws."""
    words = np.array(["other", "match"])[answer]
    right = np.where(answer == 1, score, 1.0 - score)
    units = stratal.Population.from_arrays(
        proxy={"right": right, "score": score}, groups={"answer": words}, predicted="answer"
    )
    if cell.plan == "f1":
        asked = estimands.F1("match", probability="score")
        return stratal.plan(units, budget=cell.budget, estimand=asked).draw(seed=1)
    return stratal.plan(units, budget=cell.budget, by="answer").draw(seed=1)


def simulated(job: tuple[Cell, int]) -> str:
    """Return the line of a cell: coverage, and mean width before and after."""
    os.nice(2)
    cell, replicates = job
    score, answer, true = population(cell)
    sample = drawn(cell, score, answer)
    design = sample.design
    assert isinstance(design, stratal.designs.Stratified)
    words = np.array(["other", "match"])[answer]
    right = np.where(answer == 1, score, 1.0 - score)
    stratum = design.strata.rule.assign({"right": right, "score": score, "answer": words})
    sizes, counts = sample.summary.sizes, sample.n_h
    members = np.bincount(stratum, true, minlength=len(sizes)).astype(np.int64)
    answered = np.bincount(stratum, answer, minlength=len(sizes)) > 0
    seen = np.random.default_rng(5).hypergeometric(members, sizes - members, counts, (replicates, len(sizes)))
    found = intervals(seen, answered, counts, sizes)
    before = np.full((BEFORE, 3, 2), np.nan)
    for draw in range(BEFORE):
        labels = np.concatenate([np.arange(n) < k for n, k in zip(counts, seen[draw], strict=True)])
        weighting = StratifiedWeighting(stratum=np.repeat(np.arange(len(sizes)), counts), sizes=sizes)
        predicted = answered[weighting.stratum].astype(np.int64)
        plain = Confusion(true=labels.astype(np.int64), predicted=predicted, n_classes=2, weighting=weighting)
        possible = np.stack([~answered, answered, ~answered], axis=1)
        for k, name in enumerate(METRICS):
            estimate = plain.metric(name, 1)
            if np.isfinite(estimate.value):
                before[draw, k] = tuple(estimate.confidence_interval())
                if draw < CHECKED:
                    known = replace(plain, possible=possible).metric(name, 1).confidence_interval()
                    assert np.allclose((known.low, known.high), found[draw, k], atol=2e-3)
    hits, said, truths = float(np.sum(true & answer)), float(answer.sum()), float(true.sum())
    return line(cell, before, found, (hits / said, hits / truths, 2.0 * hits / (said + truths)))


def intervals(seen: IntArray, answered: BoolArray, counts: IntArray, sizes: IntArray) -> FloatArray:
    """Return the library's intervals (R, 3, 2) of many draws at once, from the positives seen (R, H)."""
    share = float(sizes[answered].sum() / sizes.sum())
    spread = np.broadcast_to(counts, seen.shape)
    sides = [limits(seen[:, side], spread[:, side], sizes[side], False) for side in (answered, ~answered)]
    value, low, high = np.stack(sides, axis=1)
    units = np.array([[sizes[side].sum()] for side in (answered, ~answered)])
    wider, around = move_limits_outwards(value, low, high, units), directions(np.eye(2))
    ends = []
    for name in METRICS:
        of_two = two_class_metric(metric_function(name, 1, 2), 2)
        assert of_two is not None

        def function(rates: FloatArray, of_two: Any = of_two) -> FloatArray:
            return np.asarray(of_two(share * rates[0], (1.0 - share) * rates[1], share))

        own = (low, high) if name == "precision" else wider
        ends.append(np.stack(limits_on_ellipsoid(function, value, own[0], own[1], around), axis=-1))
    return np.stack(ends, axis=1)


def line(cell: Cell, before: FloatArray, found: FloatArray, targets: tuple[float, ...]) -> str:
    """Return the line of a cell from the bounds (draws, metric, 2) before and after."""
    parts = []
    for k, target in enumerate(targets):
        once, wide = _covered(before[:, k], target)
        covered, narrow = _covered(found[:, k], target)
        parts.append(f"{target:.3f} | {once:.2f} → {covered:.3f} | {wide:.3f} → {narrow:.3f}")
    named = f"{cell.size:,} | {cell.share:.1%} | {cell.scores} | {cell.plan} | {cell.budget}"
    return f"| {named} | " + " | ".join(parts) + " |"


def _covered(bounds: FloatArray, target: float) -> tuple[float, float]:
    bounds = bounds[np.isfinite(bounds[:, 0])]
    inside = (bounds[:, 0] <= target + 1e-9) & (target <= bounds[:, 1] + 1e-9)
    return float(inside.mean()), float(np.mean(bounds[:, 1] - bounds[:, 0]))


def written(lines: list[str], replicates: int) -> None:
    heads = " | ".join(f"{name} | covered | width" for name in METRICS)
    PAGE.write_text(
        "# Metrics of a rare class in strata of the answers\n\n"
        "Metrics of a class, 95 % intervals: as they were when a stratum did not know its answers "
        f"({BEFORE} draws) → as they are ({replicates} draws a cell).\n\n"
        "With hidden misses the intervals of recall and F1 were too short before; among the 2 % with good "
        "scores they are longer now. `wrong_scores.md` has more cells.\n\n"
        "Written by `python -m benchmarks.known_answers`.\n\n"
        f"| units | positives | scores | plan | labels | {heads} |\n|---|---|---|---|---|{'---|' * 9}\n"
        + "\n".join(lines)
        + "\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    options = parser.parse_args()
    jobs = [(cell, options.replicates) for cell in cells()]
    lines: list[str] = []
    with multiprocessing.Pool(options.workers) as pool:
        for entry in pool.imap(simulated, jobs, chunksize=1):
            lines.append(entry)
            written(lines, options.replicates)


if __name__ == "__main__":
    main()
