"""Cross-fitted λ and cross-fitted calibration on real, miscalibrated predictions, simple random samples.

Run: python -m benchmarks.cross_fitting --replicates 2000
Writes benchmarks/results/cross_fitting.md. Needs the folder of real predictions (../shared/data).
"""

from __future__ import annotations

import argparse
import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.helpers import DATA, circumstances, load

import stratal
from stratal.arrays import FloatArray

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "benchmarks" / "results" / "cross_fitting.md"
SETS = ("gsm8k_models", "cifar10_vgg")
SIZES = (100, 400)
FIRST_SEED = 10_000

METHODS: dict[str, dict[str, Any]] = {
    "horvitz-thompson": {"estimator": "horvitz-thompson"},
    "difference": {"estimator": "difference"},
    "ppi++": {"estimator": "ppi++"},
    "ppi++, λ cross-fitted": {"estimator": "ppi++", "cross_fit": 5},
    "difference, isotonic": {"estimator": "difference", "calibration": "isotonic"},
    "difference, logistic": {"estimator": "difference", "calibration": "logistic"},
    "ppi++, isotonic": {"estimator": "ppi++", "calibration": "isotonic"},
    "ppi++, logistic": {"estimator": "ppi++", "calibration": "logistic"},
}
"""What is tried, with the options of `stratal.estimate`."""


def measured(job: tuple[Path, str, int, int]) -> FloatArray:
    """Return value, variance, whether covered by `auto` and by t, and width (replicates, methods, 5)."""
    directory, name, size, replicates = job
    z, proxy = load(name, directory)
    population, truth = stratal.Population.from_arrays(proxy=proxy), float(z.mean())
    rows = np.empty((replicates, len(METHODS), 5))
    for number in range(replicates):
        sample = stratal.designs.SimpleRandom(budget=size).draw(population, seed=FIRST_SEED + number)
        labels = z[sample.ids]
        for m, options in enumerate(METHODS.values()):
            found = stratal.estimate(sample, labels, **options)
            low, high = found.confidence_interval()
            student = found.confidence_interval(method="t")
            rows[number, m] = (
                found.value, found.standard_error**2, low <= truth <= high,
                student.low <= truth <= student.high, high - low,
            )  # fmt: skip
    rows[:, :, 0] -= truth
    return rows


def table(rows: FloatArray) -> Iterator[str]:
    """Yield one line per method."""
    errors = rows[:, :, 0]
    mse = np.mean(errors**2, axis=0)
    for m, name in enumerate(METHODS):
        bias = errors[:, m].mean()
        noise = errors[:, m].std() / np.sqrt(len(errors))
        numbers = (
            f"{mse[0] / mse[m]:.2f}",
            f"{mse[1] / mse[m]:.2f}",
            f"{bias:+.5f} ± {noise:.5f}",
            f"{rows[:, m, 1].mean() / errors[:, m].var():.2f}",
            f"{rows[:, m, 2].mean():.3f}",
            f"{rows[:, m, 3].mean():.3f}",
            f"{rows[:, m, 4].mean():.4f}",
        )
        yield f"| {name} | " + " | ".join(numbers) + " |"


def report(directory: Path, replicates: int, processes: int) -> Iterator[str]:
    """Yield the lines of the result file."""
    jobs = [(directory, name, size, replicates) for name in SETS for size in SIZES]
    with multiprocessing.Pool(processes) as pool:
        for (_, name, size, _), rows in zip(jobs, pool.imap(measured, jobs), strict=True):
            yield f"## {name}, {size} labels"
            yield ""
            yield (
                "| estimator | efficiency | against difference | bias ± its error | estimated / true "
                "variance | coverage | coverage of t | width |"
            )
            yield "|---|---|---|---|---|---|---|---|"
            yield from table(rows)
            yield ""


def main() -> None:
    """Print the tables and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--replicates", type=int, default=2000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    found = list(report(options.data, options.replicates, options.processes))
    lines = [
        "# Cross-fitting",
        "",
        f"`python -m benchmarks.cross_fitting --replicates {options.replicates}`, {circumstances()}",
        "",
        "Efficiency: mean squared error of the plain mean (`horvitz-thompson`) over that of the method; then "
        "the same against the plain difference estimator. Five folds. Width: of the automatic interval.",
        "",
        *found,
    ]
    options.output.write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
