"""Least squares with a proxy that is unbiased, biased, of another slope or scale: which form loses what.

    python benchmarks/least_squares.py [--draws 250] [--kinds unbiased,biased] [--cells 20x3,40x6,100x3]

Writes benchmarks/results/least_squares.md.
"""

from __future__ import annotations

import argparse
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from stratal.arrays import FloatArray
from stratal.designs import StratifiedWeighting
from stratal.errors import InputError
from stratal.regression.losses import ArrayUnlabelled
from stratal.regression.m_estimation import linear_regression

RESULTS = Path(__file__).with_name("results") / "least_squares.md"
SIZE = 3000
FORMS = ("auto", "loss", "fits")
KINDS = ("unbiased", "biased", "another slope", "another scale", "useless", "right or wrong")


def world(kind: str, d: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    rng = np.random.default_rng(7)
    x = np.column_stack([np.ones(SIZE), rng.normal(size=(SIZE, d - 1))])
    y = x @ np.r_[1, 0.5, -0.5, np.zeros(d - 3)] + rng.normal(size=SIZE)
    f = y + 0.5 * rng.normal(size=SIZE)
    if kind == "biased":
        f = f + 2
    elif kind == "another slope":
        f = f + 1.5 * x[:, 1]
    elif kind == "another scale":
        f = 0.4 * f - 1
    elif kind == "useless":
        f = rng.normal(size=SIZE)
    elif kind == "right or wrong":
        y = (y > 1) * 1.0
        f = 0.1 + 0.8 * np.where(rng.random(SIZE) < 0.85, y, 1 - y)
    return x, y, f


def cell(kind: str, n: int, d: int, draws: int) -> dict[str, Any]:
    x, y, f = world(kind, d)
    truth = np.linalg.lstsq(x, y, rcond=None)[0]
    units = ArrayUnlabelled(features=x, proxy=f)
    weighting = StratifiedWeighting(stratum=np.zeros(n, int), sizes=np.array([SIZE]))
    rng = np.random.default_rng([n, d])
    found: dict[str, list[Any]] = {form: [] for form in FORMS}
    for _ in range(draws):
        rows = rng.choice(SIZE, n, replace=False)
        for form in FORMS:
            try:
                fit = linear_regression(
                    x[rows], y[rows], proxy=f[rows], unlabelled=units, weighting=weighting, form=form
                )
            except InputError:
                continue
            low, high = fit.confidence_interval()
            row = ((fit.values - truth) ** 2, (low <= truth) & (truth <= high), high - low)
            found[form].append(row)
    return {
        form: (
            float(np.mean([row[0] for row in rows])),
            float(np.mean([row[1] for row in rows], axis=0).min()),
            float(np.mean([row[2] for row in rows])),
        )
        for form, rows in found.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=250)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--cells", default="20x3,40x6,100x3", help="labels x coefficients")
    options = parser.parse_args()
    draws = options.draws
    cells = [tuple(map(int, cell.split("x"))) for cell in options.cells.split(",")]
    command = f"--draws {draws} --kinds '{options.kinds}' --cells {options.cells}"
    lines = [
        "# Least squares with biased proxies",
        "",
        f"`python benchmarks/least_squares.py {command}`, {date.today()}",
        "",
        f"Mean squared error over that of the best form, worst coverage of d coefficients (95 %; {draws}",
        f"draws know it to ± {np.sqrt(0.0475 / draws):.3f}), mean width over that of `auto`.",
        "",
        "| proxy | n | d | auto | loss | fits | coverage: auto | loss | fits | width: loss | fits |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for kind in options.kinds.split(","):
        for n, d in cells:
            found = cell(kind, n, d, draws)
            best = min(part[0] for part in found.values())
            errors = " | ".join(f"{found[form][0] / best:.2f}" for form in FORMS)
            covered = " | ".join(f"{found[form][1]:.3f}" for form in FORMS)
            widths = " | ".join(f"{found[form][2] / found['auto'][2]:.2f}" for form in FORMS[1:])
            lines.append(f"| {kind} | {n} | {d} | {errors} | {covered} | {widths} |")
            RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
