"""Coverage, error and width of M-estimates, and what the two choices in fitting λ are worth.

    python -m benchmarks.regression_coverage [--replicates 2000]

Writes benchmarks/results/regression_coverage.md. All draws are seeded.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.helpers import circumstances

from stratal.designs import StratifiedWeighting
from stratal.errors import InputError
from stratal.regression.losses import ArrayUnlabelled
from stratal.regression.m_estimation import (
    Coefficients,
    linear_regression,
    logistic_regression,
    mean_vector,
)

RESULTS = Path(__file__).with_name("results") / "regression_coverage.md"
VARIANTS: dict[str, dict[str, Any]] = {
    "classical": {"estimator": "classical"},
    "ppi++": {},
    "ppi++, the papers'": {"shrinkage": 0},
    "stratppi": {"estimator": "stratppi"},
    "stratppi, the papers'": {"estimator": "stratppi", "shrinkage": 0},
}
SCENARIOS: dict[str, tuple[tuple[float, float], tuple[float, float]]] = {
    "homogeneous": ((0.0, 0.0), (0.5, 0.5)),
    "different bias": ((-1.0, 1.0), (0.3, 0.3)),
    "different noise": ((0.0, 0.0), (0.1, 1.5)),
    "homogeneous, good proxy": ((0.0, 0.0), (0.2, 0.2)),
}
Fit = Callable[[dict[str, Any]], Coefficients]


def papers_draws(name: str, n: int, replicates: int) -> Iterator[tuple[Fit, Any]]:
    """[S] section 5.1: two strata of equal mass, N = 10,000 unlabelled, Y ~ N(0, 1), known weights."""
    bias, noise = (np.array(part) for part in SCENARIOS[name])
    random = np.random.default_rng([n, 51])
    stratum, whole = np.repeat([0, 1], n // 2), np.repeat([0, 1], 5_000)
    weighting = StratifiedWeighting(stratum=stratum, sizes=np.array([1, 1]), with_replacement=True)
    for _ in range(replicates):
        y = random.normal(size=n)
        f = y + bias[stratum] + noise[stratum] * random.normal(size=n)
        u = random.normal(size=10_000) + bias[whole] + noise[whole] * random.normal(size=10_000)
        units = ArrayUnlabelled(proxy=u, stratum=whole, separate=True)

        def fit(options: dict[str, Any], y: Any = y, f: Any = f, units: Any = units) -> Coefficients:
            return mean_vector(
                y, proxy=f, unlabelled=units, weighting=weighting, target="superpopulation", **options
            )

        yield fit, np.zeros(1)


def many_strata_draws(name: str, n_h: int, replicates: int) -> Iterator[tuple[Fit, Any]]:
    """Ten strata of 200 units, n_h labels in each, the population's own mean."""
    random = np.random.default_rng([n_h, 52])
    stratum = np.repeat(np.arange(10), 200)
    noise = {"equal": np.full(10, 0.6), "different": np.linspace(0.1, 2.0, 10)}
    weighting = StratifiedWeighting(stratum=np.repeat(np.arange(10), n_h), sizes=np.full(10, 200))
    for _ in range(replicates):
        if name == "judge":
            y = (random.uniform(size=2_000) < np.linspace(0.5, 0.9, 10)[stratum]).astype(float)
            f = np.where(random.uniform(size=2_000) < 0.85, y, 1.0 - y)
        else:
            y = random.normal(size=2_000) + stratum / 3
            f = y + noise[name][stratum] * random.normal(size=2_000)
        rows = np.concatenate([h * 200 + random.permutation(200)[:n_h] for h in range(10)])
        units = ArrayUnlabelled(proxy=f, stratum=stratum)

        def fit(
            options: dict[str, Any], y: Any = y, f: Any = f, rows: Any = rows, units: Any = units
        ) -> Coefficients:
            return mean_vector(y[rows], proxy=f[rows], unlabelled=units, weighting=weighting, **options)

        yield fit, np.array([y.mean()])


def regression_draws(kind: str, n: int, replicates: int) -> Iterator[tuple[Fit, Any]]:
    """Four strata cut on a feature, equal allocation, N = 5,000, skewed features, uneven noise."""
    random = np.random.default_rng(53)
    size = 5_000
    x = np.column_stack([np.ones(size), random.normal(size=size), random.exponential(size=size) - 1])
    eta = x @ [0.3, 0.6, -0.4] + 0.3 * np.sin(3 * x[:, 1])
    if kind == "linear":
        y = eta + (0.5 + np.abs(x[:, 1])) * random.normal(size=size)
        f = 0.2 + 0.8 * y + 0.6 * random.normal(size=size)
    else:
        y = (random.uniform(size=size) < 1 / (1 + np.exp(-eta))).astype(float)
        f = 0.1 + 0.8 * np.where(random.uniform(size=size) < 0.85, y, 1 - y)
    stratum = np.searchsorted(np.quantile(x[:, 1], [0.25, 0.6, 0.85]), x[:, 1])
    order = np.argsort(stratum, kind="stable")
    x, y, f, stratum = x[order], y[order], f[order], stratum[order]
    model = linear_regression if kind == "linear" else logistic_regression
    sizes = np.bincount(stratum)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    truth = model(x, y, weighting=StratifiedWeighting(stratum=stratum, sizes=sizes)).values
    units = ArrayUnlabelled(features=x, proxy=f, stratum=stratum)
    weighting = StratifiedWeighting(stratum=np.repeat(np.arange(4), n // 4), sizes=sizes)
    for _ in range(replicates):
        rows = np.concatenate(
            [
                start + random.permutation(size_h)[: n // 4]
                for start, size_h in zip(starts, sizes, strict=True)
            ]
        )

        def fit(options: dict[str, Any], rows: Any = rows) -> Coefficients:
            return model(x[rows], y[rows], proxy=f[rows], unlabelled=units, weighting=weighting, **options)

        yield fit, truth


def measure(draws: Iterator[tuple[Fit, Any]], variants: list[str]) -> dict[str, list[float]]:
    """Root mean squared error, coverage at 90 % and 95 %, width at 95 %, over the coefficients."""
    found: dict[str, list[list[Any]]] = {name: [] for name in variants}
    for fit, truth in draws:
        for name in variants:
            try:
                result = fit(VARIANTS[name])
            except InputError:
                continue
            row = [(result.values - truth) ** 2]
            for level in (0.9, 0.95):
                low, high = result.confidence_interval(level)
                row.append((low <= truth) & (truth <= high))
            found[name].append([*row, high - low])
    table = {}
    for name, rows in found.items():
        error, at_90, at_95, width = (np.array([row[k] for row in rows], float) for k in range(4))
        table[name] = [
            float(np.sqrt(error.mean(axis=0)).mean()),
            float(at_90.mean(axis=0).min()),
            float(at_95.mean(axis=0).min()),
            float(np.median(width, axis=0).mean()),
        ]
    return table


def section(title: str, cases: dict[str, Iterator[tuple[Fit, Any]]], variants: list[str]) -> list[str]:
    lines = [
        f"## {title}",
        "",
        "| case | estimator | error | 90 % | 95 % | width |",
        "|---|---|---|---|---|---|",
    ]
    for case, draws in cases.items():
        for name, (error, at_90, at_95, width) in measure(draws, variants).items():
            lines.append(f"| {case} | {name} | {error:.4f} | {at_90:.3f} | {at_95:.3f} | {width:.3f} |")
    return [*lines, ""]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--replicates", type=int, default=2_000)
    replicates = parser.parse_args().replicates
    every, three = list(VARIANTS), ["classical", "ppi++", "stratppi"]
    lines = []
    papers = {
        f"{name}, n = {n}": papers_draws(name, n, replicates)
        for name in SCENARIOS
        for n in (20, 100, 300, 1_000)
    }
    lines += section("The scenarios of Fisch et al. (2024), section 5.1", papers, every)
    many = {
        f"{name}, n_h = {n_h}": many_strata_draws(name, n_h, replicates)
        for name in ("equal", "different", "judge")
        for n_h in (3, 5, 10, 20)
    }
    lines += section("Ten strata, few labels each", many, every)
    coefficients = {
        f"{kind}, n = {n}": regression_draws(kind, n, replicates)
        for kind in ("linear", "logistic")
        for n in (40, 80, 200, 600)
    }
    lines += section("Regression coefficients under a stratified design", coefficients, three)
    head = [
        "# Coverage of M-estimates",
        "",
        f"`python -m benchmarks.regression_coverage --replicates {replicates}`, {circumstances()}",
        "",
        "Error: root mean squared error. Several coefficients: error and width are means over them, coverage "
        f"is the worst of them. One standard error of a coverage of .95: {np.sqrt(0.0475 / replicates):.4f}.",
        "",
    ]
    text = "\n".join([*head, *lines])
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
