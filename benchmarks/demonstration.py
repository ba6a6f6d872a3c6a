"""The gain on the bundled demonstration: 100 labels chosen by the model's confidence, against random labels.

    python -m benchmarks.demonstration [--draws 1500]

Draws the default plan for 100 labels and simple random samples of as many again and again, with the true
labels, and compares the errors of the two estimates. Writes benchmarks/results/demonstration.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np

import stratal
from stratal.arrays import FloatArray
from stratal.designs import Sample
from stratal.simulation.demonstration import make_data

RESULTS = Path(__file__).parent / "results" / "demonstration.md"
BUDGET = 100

PAGE = """# The demonstration: 100 chosen labels against random ones

{size:,} images of handwritten digits, a classifier that is right on {accuracy:.1f}% of them, and
its confidence as the proxy. The default plan for {budget} labels and a simple random sample of {budget},
{draws:,} draws of each. Coverage is of the 95% interval. The last column is the number of random labels that
have the same error, from the formula of a simple random sample.

| labels | root mean squared error, points | coverage | mean width, points | as precise as |
|---|---|---|---|---|
{rows}

`python -m benchmarks.demonstration --draws {draws}`, {day}
"""


def measure(
    draw: Callable[[int], Sample], estimator: str, right: FloatArray, place: dict[str, int], draws: int
) -> tuple[float, float, float]:
    """Return the root mean squared error, the coverage and the mean width of the estimates of many draws."""
    truth = right.mean()
    errors = np.empty(draws)
    covered = np.empty(draws, dtype=bool)
    widths = np.empty(draws)
    for seed in range(draws):
        sample = draw(seed)
        labels = right[[place[unit] for unit in sample.ids.tolist()]]
        estimate = stratal.estimate(sample, labels, estimator=estimator)
        interval = estimate.confidence_interval()
        errors[seed] = estimate.value - truth
        covered[seed] = interval.low <= truth <= interval.high
        widths[seed] = interval.high - interval.low
    return float(np.sqrt(np.mean(errors**2))), float(covered.mean()), float(widths.mean())


def equal_random_labels(error: float, right: FloatArray) -> float:
    """Return the size of the simple random sample with this error: S² (1/n − 1/N) = error²."""
    return float(1.0 / (error**2 / np.var(right, ddof=1) + 1.0 / len(right)))


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1500)
    draws = parser.parse_args().draws
    data = make_data()
    right = data.outcomes.astype(np.float64)
    place = {unit: row for row, unit in enumerate(data.ids.tolist())}
    population = stratal.Population.from_arrays(proxy={"confidence": data.confidence}, ids=data.ids)
    plan = stratal.plan(population, BUDGET)
    random_design = stratal.designs.SimpleRandom(budget=BUDGET)
    rows = []

    def draw_at_random(seed: int) -> Sample:
        return random_design.draw(population, seed)

    for name, draw, estimator in (
        ("chosen by confidence", plan.draw, "auto"),
        ("random, averaged", draw_at_random, "horvitz-thompson"),
        ("random, with the confidence in the estimate", draw_at_random, "auto"),
    ):
        error, coverage, width = measure(draw, estimator, right, place, draws)
        equal = equal_random_labels(error, right)
        cells = (name, f"{100 * error:.2f}", f"{coverage:.3f}", f"{100 * width:.1f}", f"{equal:.0f}")
        rows.append("| " + " | ".join(cells) + " |")
    page = PAGE.format(
        size=len(right),
        accuracy=100 * right.mean(),
        budget=BUDGET,
        draws=draws,
        rows="\n".join(rows),
        day=date.today().isoformat(),
    )
    RESULTS.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
