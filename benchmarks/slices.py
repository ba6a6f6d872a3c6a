"""Means of slices with one λ over all of them, against none: labels saved, and coverage of every slice.

    OMP_NUM_THREADS=1 python -m benchmarks.slices [--runs 200] [--output FILE]

Real predictions with their groups (or with four slices made of ids where they have none), and generated
populations of ten slices of 15 to 5,000 units with calibrated, inflated and useless proxies, and with one
that is good in half of the slices and inverted in the others. Default plans of 100 and 400 labels for the
mean (a plan for the slices, `mean@group`, makes each one strata of its proxy, which leave λ nothing to do).
Both estimates are of the same labels. "Labels saved"
is one less the ratio of mean squared errors, on average over slices (those of 20 labels and more: the truth
of smaller ones is noise); "width" the ratio of mean widths. Coverage is of 95 % intervals: the mean over
slices, and the lowest of slices with 5 labels and more on average.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from benchmarks.helpers import DATA, load

import stratal
from stratal.arrays import AnyArray, FloatArray

OUTPUT = Path(__file__).resolve().parent / "results" / "slices.md"
FILES = {
    "gsm8k_models": "model",
    "frank_factuality": "group",
    "nq301_llmjudge": "group",
    "galaxies": None,
    "imagenet_golden_crowd": None,
    "birds_resnet50": None,
}
SIZES = np.array([15, 30, 60, 120, 250, 500, 1000, 2000, 3500, 5000])
GENERATED = ("calibrated", "inflated", "useless", "half inverted")


def of_file(name: str, column: str | None) -> tuple[FloatArray, FloatArray, AnyArray]:
    """Return outcome, proxy and slice (N,) of real predictions."""
    table = pq.read_table(DATA / f"{name}.parquet")
    z, proxy = load(name)
    if column is not None and column in table.column_names:
        return z, proxy, np.array([str(value) for value in table[column].to_pylist()])
    return z, proxy, np.array([f"slice {k}" for k in np.random.default_rng(1).integers(4, size=len(z))])


def generated(kind: str) -> tuple[FloatArray, FloatArray, AnyArray]:
    """Return outcome, proxy and slice (N,) of ten slices of unequal size."""
    rng = np.random.default_rng(5)
    code = np.repeat(np.arange(10), SIZES)
    level = rng.normal(0.8, 0.7, 10)[code]
    rate = 1.0 / (1.0 + np.exp(-(level + rng.normal(0.0, 1.5, len(code)))))
    z = (rng.random(len(code)) < rate).astype(np.float64)
    proxy = {
        "calibrated": rate,
        "inflated": rate**0.3,
        "useless": rng.random(len(code)),
        "half inverted": np.where(code % 2 == 0, rate, 1.0 - rate),
    }[kind]
    return z, np.asarray(proxy, np.float64), np.array([f"slice {k}" for k in code])


def rows(z: FloatArray, proxy: FloatArray, code: AnyArray, plan: str, runs: int) -> str:
    """Return what is printed of one population and plan."""
    population = stratal.Population.from_arrays(proxy={"p": proxy}, groups={"g": code})
    budget = int(plan.split()[0])
    planned = stratal.plan(population, budget)
    names = sorted(set(code.tolist()))
    truth = np.array([z[code == name].mean() for name in names])
    found = np.full((2, runs, len(names), 4), np.nan)
    for seed in range(runs):
        sample = planned.draw(seed)
        for way, estimator in enumerate(("auto", "horvitz-thompson")):
            made = stratal.estimate(sample, z[sample.ids], estimand="mean", by="g", estimator=estimator)
            for row in made:
                low, high = row.confidence_interval()
                place = names.index(str(row.label["domain"]))
                found[way, seed, place] = row.value, low, high, row.n
    value, low, high, n = np.moveaxis(found, 3, 0)
    held = np.where(np.isnan(low), np.nan, (low - 1e-9 <= truth) & (high + 1e-9 >= truth))
    error, width, labels = (
        np.nanmean(part, axis=1) for part in ((value - truth) ** 2, high - low, np.nan_to_num(n))
    )
    large, seen = labels[0] >= 20, labels[0] >= 5
    with np.errstate(invalid="ignore", divide="ignore"):
        saved = np.mean(1.0 - error[0, large] / error[1, large])
    cover = np.nanmean(held, axis=1)
    return (
        f"{len(names)} | {plan} | {saved:.0%} | {np.nanmean(width[0, seen] / width[1, seen]):.3f} "
        f"| {np.nanmean(cover[0]):.3f}, {cover[0, seen].min():.3f} "
        f"| {np.nanmean(cover[1]):.3f}, {cover[1, seen].min():.3f} |"
    )


def populations() -> Iterator[tuple[str, tuple[FloatArray, FloatArray, AnyArray]]]:
    """Yield the name of each population with its arrays."""
    for name, column in FILES.items():
        yield name, of_file(name, column)
    for kind in GENERATED:
        yield kind, generated(kind)


def main() -> None:
    """Run the benchmark and write its page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    start = time.time()
    text = ["# Slices", "", f"`python -m benchmarks.slices --runs {args.runs}`", ""]
    text += ["| population | slices | plan | labels saved | width | coverage (mean, lowest) | without λ |"]
    text += ["|---|---|---|---|---|---|---|"]
    for name, (z, proxy, code) in populations():
        for plan in ("100 labels", "400 labels"):
            text.append(f"| {name} | {rows(z, proxy, code, plan, args.runs)}")
            print(text[-1], flush=True)
    error = np.sqrt(0.95 * 0.05 / args.runs)
    text += ["", f"Monte Carlo error of a slice's coverage: {error:.3f}. {time.time() - start:.0f} s in all."]
    args.output.write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
