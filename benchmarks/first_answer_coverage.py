"""Coverage and width of the first answer, by five tools on the same tables.

    python -m benchmarks.first_answer_coverage [--tables 300]

Needs ppi-python 0.2.3, truescore 0.7.4, evalstats 0.3.3 and glide-py 0.10.0 beside stratal. glide-py declares
Python 3.12; `pip install --no-deps --ignore-requires-python` installs it on 3.11.

Each table has 5,000 answers, the verdict of a judge on each, and that of a person on some drawn at random.
Wanted is the mean of the person's verdicts over all answers, as each tool gives it by default, with a 95 %
interval. Writes benchmarks/results/first_answer_coverage.md.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TypeAlias

import numpy as np
from benchmarks.helpers import circumstances

import stratal
from stratal.arrays import FloatArray

RESULTS = Path(__file__).with_name("results") / "first_answer_coverage.md"
SIZE = 5_000
SEED = 20_261_129
RATES = (0.73, 0.95)
BUDGETS = (50, 100, 300)

Limits: TypeAlias = tuple[float, float]
# Verdicts of the judge (N,), and of the person (N,), NaN where there is none, to limits.
Tool: TypeAlias = Callable[[FloatArray, FloatArray], Limits]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """How often a judge says 1 of right and of wrong answers."""

    name: str
    of_right: float
    of_wrong: float


JUDGES = (
    Judge(name="right on 85 %", of_right=0.85, of_wrong=0.15),
    Judge(name="lenient", of_right=0.98, of_wrong=0.5),
    Judge(name="useless", of_right=0.6, of_wrong=0.6),
)


def by_stratal(judge: FloatArray, label: FloatArray) -> Limits:
    """Return the limits of `stratal.evaluate`."""
    estimate = stratal.evaluate({"judge": judge, "label": label}, proxy="judge").estimate
    assert isinstance(estimate, stratal.Estimate)
    low, high = estimate.confidence_interval()
    return low, high


def by_ppi_python(judge: FloatArray, label: FloatArray) -> Limits:
    """Return the limits of `ppi_mean_ci`."""
    from ppi_py import ppi_mean_ci

    is_labelled = ~np.isnan(label)
    low, high = ppi_mean_ci(label[is_labelled], judge[is_labelled], judge[~is_labelled], alpha=0.05)
    return float(low[0]), float(high[0])


def by_truescore(judge: FloatArray, label: FloatArray) -> Limits:
    """Return the limits of `ppi_estimate`, which `truescore audit` reports."""
    from truescore.correct import ppi_estimate

    rows = np.flatnonzero(~np.isnan(label))
    estimate = ppi_estimate(judge.astype(int), label[rows].astype(int), rows)
    return float(estimate.low), float(estimate.high)


def by_evalstats(judge: FloatArray, label: FloatArray) -> Limits:
    """Return the limits of `judge_debias_mean_ci`."""
    from evalstats import judge_debias_mean_ci

    result = judge_debias_mean_ci(judge, label, rng=np.random.default_rng(0))
    return float(result.ci_low), float(result.ci_high)


def by_glide(judge: FloatArray, label: FloatArray) -> Limits:
    """Return the limits of `PPIMeanEstimator`."""
    from glide.estimators import PPIMeanEstimator

    interval = PPIMeanEstimator().estimate(label, judge).confidence_interval
    return float(interval.lower_bound), float(interval.upper_bound)


TOOLS: dict[str, Tool] = {
    "stratal": by_stratal,
    "ppi-python": by_ppi_python,
    "truescore": by_truescore,
    "evalstats": by_evalstats,
    "glide-py": by_glide,
}


def measured(rate: float, judge: Judge, n: int, tables: int) -> dict[str, tuple[float, float]]:
    """Return coverage and mean width by tool; a tool that fails on a table, or returns NaN, misses it."""
    covered = dict.fromkeys(TOOLS, 0)
    widths: dict[str, list[float]] = {name: [] for name in TOOLS}
    for number in range(tables):
        rng = np.random.default_rng([SEED, round(100 * rate), round(100 * judge.of_right), n, number])
        truth = (rng.random(SIZE) < rate).astype(np.float64)
        verdict = (rng.random(SIZE) < np.where(truth == 1, judge.of_right, judge.of_wrong)).astype(np.float64)
        label = np.full(SIZE, np.nan)
        rows = rng.choice(SIZE, n, replace=False)
        label[rows] = truth[rows]
        for name, tool in TOOLS.items():
            try:
                low, high = tool(verdict, label)
            except ValueError:
                # glide-py refuses labels that all agree.
                low, high = np.nan, np.nan
            covered[name] += low <= truth.mean() <= high
            widths[name].append(high - low)
    return {name: (covered[name] / tables, float(np.nanmean(widths[name]))) for name in TOOLS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tables", type=int, default=300)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = []
    least = dict.fromkeys(TOOLS, 1.0)
    for rate, judge, n in product(RATES, JUDGES, BUDGETS):
        cell = measured(rate, judge, n, options.tables)
        least = {name: min(least[name], cell[name][0]) for name in TOOLS}
        entries = " | ".join(f"{coverage:.3f}, {width:.3f}" for coverage, width in cell.values())
        lines.append(f"| {rate:g} | {judge.name} | {n} | {entries} |")
        print(lines[-1], flush=True)
    page = [
        "# Coverage and width of the first answer",
        "",
        f"    python -m benchmarks.first_answer_coverage --tables {options.tables}",
        "",
        circumstances(),
        "",
        "Tables of 5,000 answers with a judge's verdict on each and a person's on a random part. Coverage of "
        "the mean of the person's verdicts by the default 95 % interval of each tool, and its mean width. "
        f"One standard error of a coverage of .95 is {np.sqrt(0.0475 / options.tables):.4f}.",
        "",
        f"| rate | judge | labels | {' | '.join(TOOLS)} |",
        "|---" * (3 + len(TOOLS)) + "|",
        *lines,
        f"| least coverage | | | {' | '.join(f'{coverage:.3f}' for coverage in least.values())} |",
    ]
    options.output.write_text("\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
