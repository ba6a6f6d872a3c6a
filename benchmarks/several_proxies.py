"""Coverage and error with three proxies where few answers are wrong.

    OMP_NUM_THREADS=1 python -m benchmarks.several_proxies [--draws 1000]

Samples of 20,000 right and wrong answers and three scores: probabilities of models that see the same latent
quality with noise of their own, calibrated or twice too sure. `auto` fits one λ per score, in simple random
samples and in the strata of the default plan, which are built on the first score.
Writes benchmarks/results/several_proxies.md.
"""

from __future__ import annotations

import argparse
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from benchmarks.helpers import circumstances
from scipy.special import expit, logit

import stratal
from stratal.arrays import FloatArray
from stratal.designs import StratifiedWeighting
from stratal.estimation.outcome_means import estimate_mean
from stratal.population.summary import StratumSummary

RESULTS = Path(__file__).with_name("results") / "several_proxies.md"
SIZE = 20_000
SEED = 20_261_128
SCORES = 3
RATES = (0.9, 0.94, 0.97)
BUDGETS = (150,)
PLANNED_RATES = (0.5, 0.9, 0.97)
PLANNED_BUDGETS = (75, 150, 400)
SURENESS = (1.0, 2.0)
NOISE = (0.7, 1.0, 1.5)


def population(rate: float, sureness: float) -> tuple[FloatArray, FloatArray]:
    """Return outcomes (N,) and scores (N, 3) whose log-odds are `sureness` times too far from the mean."""
    rng = np.random.default_rng([SEED, round(100 * rate), round(10 * sureness)])
    centre = float(logit(rate)) + 0.8  # the spread of the log-odds pulls the mean towards one half
    quality = centre + 1.5 * rng.normal(size=SIZE)
    z = (rng.random(SIZE) < expit(quality)).astype(np.float64)
    seen = quality[:, None] + np.array(NOISE) * rng.normal(size=(SIZE, SCORES))
    return z, expit(centre + sureness * (seen - centre))


def measured(rate: float, sureness: float, n: int, draws: int) -> tuple[float, float, float, float, float]:
    """Return the true rate, coverage, error over the labels' own, and width and standard error over it."""
    z, scores = population(rate, sureness)
    rng = np.random.default_rng([SEED, n])
    summary = StratumSummary(
        sizes=np.array([SIZE]),
        proxy_means=scores.mean(axis=0)[None],
        proxy_covariances=np.cov(scores.T, ddof=0)[None],
    )
    stratum, truth = np.zeros(n, dtype=np.int64), float(z.mean())
    weighting = StratifiedWeighting(stratum=stratum, sizes=summary.sizes)
    rows = np.empty((draws, 5))
    for row in rows:
        units = rng.choice(SIZE, n, replace=False)
        found = estimate_mean(
            z[units], scores[units], weighting, summary, stratum=stratum, estimator="ppi++", outcome="binary"
        )
        low, high = found.confidence_interval()
        row[:] = low <= truth <= high, found.value, z[units].mean(), high - low, found.standard_error
    error, alone = (float(np.sqrt(np.mean((rows[:, j] - truth) ** 2))) for j in (1, 2))
    width, reported = float(rows[:, 3].mean()), float(rows[:, 4].mean())
    return truth, float(rows[:, 0].mean()), error / alone, width / (3.92 * error), reported / error


def measured_in_plan(rate: float, sureness: float, n: int, draws: int) -> tuple[float, float, float, float]:
    """Return coverage of `auto` and of the labels alone, and its squared error and width over theirs."""
    z, scores = population(rate, sureness)
    proxies = {f"score{number + 1}": scores[:, number] for number in range(SCORES)}
    plan = stratal.plan(stratal.Population.from_arrays(proxy=proxies, bounds=(0, 1)), budget=n)
    truth = float(z.mean())
    rows = np.empty((draws, 2, 3))
    for seed in range(draws):
        sample = plan.draw(seed=seed)
        for number, estimator in enumerate(("auto", "horvitz-thompson")):
            estimate = stratal.estimate(sample, z[sample.ids], estimator=estimator)
            low, high = estimate.confidence_interval()
            rows[seed, number] = low <= truth <= high, (estimate.value - truth) ** 2, high - low
    means = rows.mean(axis=0)
    return means[0, 0], means[1, 0], means[0, 1] / means[1, 1], means[0, 2] / means[1, 2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = []
    for rate, sureness, n in product(RATES, SURENESS, BUDGETS):
        truth, coverage, error, width, reported = measured(rate, sureness, n, options.draws)
        lines.append(
            f"| {rate:g} | {sureness:g} | {n} | {truth:.3f} | {coverage:.3f} | {error:.3f} | {width:.3f} "
            f"| {reported:.3f} |"
        )
        print(lines[-1], flush=True)
    planned_lines = []
    for rate, sureness, n in product(PLANNED_RATES, SURENESS, PLANNED_BUDGETS):
        coverage, alone, error, width = measured_in_plan(rate, sureness, n, options.draws)
        planned_lines.append(
            f"| {rate:g} | {sureness:g} | {n} | {coverage:.3f} | {alone:.3f} | {error:.3f} | {width:.3f} |"
        )
        print(planned_lines[-1], flush=True)
    page = [
        "# Three proxies and few errors",
        "",
        f"    python -m benchmarks.several_proxies --draws {options.draws}",
        "",
        circumstances(),
        "",
        "Simple random samples, one λ per score (`auto`), 95 % intervals. Error is over that of the labels "
        "alone, width over 3.92 root mean squared errors, the reported standard error over the root mean "
        f"squared error. One standard error of a coverage of .95 is {np.sqrt(0.0475 / options.draws):.4f}.",
        "",
        "| rate | times too sure | labels | true rate | coverage | error | width | standard error |",
        "|---" * 8 + "|",
        *lines,
        "",
        "Default plans, strata of the first score, one λ per score (`auto`) against the labels alone. Error "
        "is the mean squared error over theirs.",
        "",
        "| rate | times too sure | labels | coverage | of the labels alone | error | width |",
        "|---" * 7 + "|",
        *planned_lines,
    ]
    options.output.write_text("\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
