"""Coverage and width of the intervals of coefficients: corrected for skewness, beside Student's t alone.

    python -m benchmarks.coefficient_intervals [--replicates 1000]

Writes benchmarks/results/coefficient_intervals.md. The draws are those of regression_coverage.py: four strata
cut on a feature, equal allocation, a second feature that is skewed, λ fitted.
"""

from __future__ import annotations

import argparse
from datetime import date
from pathlib import Path

import numpy as np
from benchmarks.regression_coverage import regression_draws

from stratal.errors import InputError

RESULTS = Path(__file__).with_name("results") / "coefficient_intervals.md"
CELLS = (("linear", 40), ("logistic", 80), ("logistic", 200))
METHODS = ("t", "skewness-corrected")


def measure(kind: str, n: int, replicates: int) -> list[str]:
    found: dict[str, list[list[np.ndarray]]] = {method: [] for method in METHODS}
    for fit, truth in regression_draws(kind, n, replicates):
        try:
            result = fit({})
        except InputError:
            continue
        for method in METHODS:
            low, high = result.confidence_interval(method=method)
            found[method].append([(low <= truth) & (truth <= high), high - low])
    lines = []
    for method, rows in found.items():
        covered, width = (np.array([row[k] for row in rows], dtype=np.float64) for k in (0, 1))
        shown = [", ".join(f"{v:.3f}" for v in part) for part in (covered.mean(0), np.median(width, 0))]
        lines.append(f"| {kind}, n = {n} | {len(rows):,} | {method} | {shown[0]} | {shown[1]} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=1000)
    replicates = parser.parse_args().replicates
    lines = [line for kind, n in CELLS for line in measure(kind, n, replicates)]
    text = [
        "# Intervals of coefficients",
        "",
        f"`python -m benchmarks.coefficient_intervals --replicates {replicates}`, {date.today()}",
        "",
        "Coverage of 95 % intervals and their median width: intercept, a normal feature, a skewed feature.",
        "",
        "| draws | fitted | interval | coverage | width |",
        "|---|---|---|---|---|",
        *lines,
        "",
    ]
    RESULTS.write_text("\n".join(text), encoding="utf-8")
    print("\n".join(text))


if __name__ == "__main__":
    main()
