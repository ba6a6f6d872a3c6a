"""How narrow an interval can be that holds, beside the default's, in cells with a strong proxy and in rounds.

    OMP_NUM_THREADS=1 python -m benchmarks.narrowest [--runs 120] [--only CELL]

Writes benchmarks/results/narrowest.md. The mean length of an interval under a truth P is the integral over t
of the chance that it holds t (Pratt 1961). If it also holds t in 97.5 % of the samples of another truth Q
whose value is t, that chance is not below one minus the power of the most powerful test of Q at 2.5 %
under P (Neyman & Pearson). The integral of these, below and above the value, is a length that no interval
with equal tails is shorter than, whatever it is made from. Each Q is one truth that must be allowed for;
others could only raise the bound. Populations are taken to be endless there, at the mean n_h of the runs.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.wrong_scores import Pool
from scipy.optimize import brentq
from scipy.stats import norm

import stratal
from stratal.arrays import FloatArray
from stratal.estimands import F1
from stratal.metrics.ranking import area_under_curve

RESULTS = Path(__file__).with_name("results") / "narrowest.md"
ERROR = 0.025
UNITS = 20_000
DRAWS = 4000
STEPS = 60


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What is drawn and estimated: a seed's (value, low, high, n_h), and from n_h the bound."""

    name: str
    truth: float
    run: Callable[[int], tuple[float, float, float, FloatArray | None]]
    narrowest: Callable[[FloatArray | None], float]


def unlike(chance: float, n: int) -> float:
    """Return ∫ (1 − .025 / (1 − chance q)^n) dq, over the shares q of which n draws can miss all.

    Q is P but for a share q of those units of which one in 1 / chance is drawn. A sample without any is P's.
    """
    most = min(-np.expm1(np.log(ERROR) / n) / chance, 1.0)
    q = (np.arange(2000) + 0.5) / 2000 * most
    return float(np.mean(1.0 - ERROR * (1.0 - chance * q) ** -n) * most)


def projected(counts: FloatArray, rates: FloatArray, form: FloatArray, wanted: float) -> FloatArray | None:
    """Return the rates with Σ form · rate = wanted that are hardest to tell from `rates`."""

    def found(price: float) -> FloatArray:
        step = np.where(np.abs(price * form) < 1e-9, 1e-9, price * form)
        whole = counts + step
        root = np.sqrt(np.maximum(whole**2 - 4.0 * step * counts * rates, 0.0))
        return np.asarray(np.clip((whole - root) / (2.0 * step), 1e-12, 1.0 - 1e-12))

    def miss(price: float) -> float:
        return float(form @ found(price)) - wanted

    if miss(-1e6) * miss(1e6) > 0:
        return None
    return found(brentq(miss, -1e6, 1e6, xtol=1e-9))


def of_counts(
    counts: FloatArray, rates: FloatArray, value: float, form: Callable[[float], tuple[FloatArray, float]]
) -> float:
    """Return the bound for strata of 0 and 1, of which Q is the likeliest with that value.

    `form` gives for a value the coefficients and the sum that the rates must have.
    """
    rng, rates = np.random.default_rng(0), np.clip(rates, 1e-12, 1 - 1e-12)
    labels: Any = np.maximum(np.round(counts), 1).astype(np.int64)
    under_p = rng.binomial(labels, rates, (DRAWS, len(rates)))
    total = 0.0
    for side in (-1.0, 1.0):
        step = (
            6.0
            * float(np.sqrt(np.sum(form(value)[0] ** 2 * (rates * (1 - rates) + 1 / labels) / labels)))
            / STEPS
        )
        if value > 0.1 and form(value)[1] != value:  # a ratio, whose form is not in its units
            step = 0.6 * min(value, 1 - value) / STEPS
        for k in range(STEPS):
            at = value + side * (k + 0.5) * step
            q = projected(labels, rates, *form(at)) if 0 < at < 1 else None
            if q is None:
                break
            score = np.stack([np.log(q / rates), np.log((1 - q) / (1 - rates))])
            ratio = [
                drawn @ score[0] + (labels - drawn) @ score[1]
                for drawn in (under_p, rng.binomial(labels, q, under_p.shape))
            ]
            total += step * float(np.mean(ratio[0] >= np.quantile(ratio[1], ERROR)))
    return total


def strata_of(plan: Any) -> FloatArray:
    """Return the stratum of every unit (N,)."""
    codes: FloatArray = plan.population.codes(plan.strata.rule)
    return codes


def planned(
    name: str, population: Any, labels: Any, truth: float, form: Any, *, n: int, rounds: int = 1, **asked: Any
) -> Cell:
    """Return a cell of a planned sample of 0 and 1, in one round or two."""
    plan = stratal.plan(population, n // rounds, **asked)
    stratum = strata_of(plan)
    sizes = np.bincount(stratum)
    rates, weights = np.bincount(stratum, labels) / sizes, sizes / sizes.sum()
    words: Any = np.where(labels, "match", "other") if asked else labels.astype(float)

    def run(seed: int) -> tuple[float, float, float, FloatArray | None]:
        sample = plan.draw(seed)
        if rounds == 2:
            known = dict(zip(sample.ids.tolist(), words[sample.ids].tolist(), strict=True))
            sample = stratal.next_round(sample, known, additional=n // 2)
        found = stratal.estimate(sample, words[sample.ids], **asked)
        return (
            found.value,
            *found.confidence_interval(),
            np.bincount(sample.stratum, minlength=len(sizes)).astype(float),
        )

    def bound(counts: FloatArray | None) -> float:
        assert counts is not None
        return of_counts(counts, rates, truth, lambda t: form(t, stratum, weights))

    return Cell(name=name, truth=truth, run=run, narrowest=bound)


def mean_form(t: float, stratum: Any, weights: FloatArray) -> tuple[FloatArray, float]:
    return weights, t


def simple(name: str, x: FloatArray, y: FloatArray, n: int, truth: float, bound: float, **asked: Any) -> Cell:
    """Return a cell of a simple random sample."""
    population = stratal.Population.from_arrays(proxy=x)
    design = stratal.designs.SimpleRandom(budget=n)

    def run(seed: int) -> tuple[float, float, float, FloatArray | None]:
        sample = design.draw(population, seed=seed)
        found = stratal.estimate(sample, y[sample.ids], **asked)
        return found.value, *found.confidence_interval(), None

    return Cell(name=name, truth=truth, run=run, narrowest=lambda counts: bound)


def cells() -> Iterator[Cell]:
    for noise in (0.03, 0.1):
        rng = np.random.default_rng(11)
        x = rng.beta(4, 2, UNITS)
        y = np.clip(x + noise * rng.standard_normal(UNITS), 0.0, 1.0)
        for n in (50, 100, 400):
            name = f"graded, proxy with noise of {noise}, simple random, {n}"
            seen = 3.92 * float(np.std(y - x)) * np.sqrt(1 / n - 1 / UNITS)
            yield simple(name, x, y, n, float(y.mean()), max(unlike(1.0, n), seen), bounds=(0.0, 1.0))
    for rate, wrong in ((0.9, 0.01), (0.9, 0.03), (0.5, 0.02)):
        rng = np.random.default_rng(11)
        right = rng.random(UNITS) < rate
        x = np.where(rng.random(UNITS) < wrong, ~right, right).astype(float)
        population = stratal.Population.from_arrays(proxy=x)
        for n in (50, 100, 400):
            name = f"{rate:.0%} right, two-valued proxy wrong on {wrong:.0%}, planned, {n}"
            yield planned(name, population, right, float(right.mean()), mean_form, n=n)
    for rate, area in ((0.3, 0.98), (0.3, 0.995), (0.3, 0.999), (0.05, 0.99)):
        rng = np.random.default_rng(11)
        positive = rng.random(UNITS) < rate
        x = norm.cdf(rng.standard_normal(UNITS) + np.sqrt(2.0) * norm.ppf(area) * (positive - 0.5))
        truth = area_under_curve(x, positive, np.full(UNITS, 1 / UNITS))[0]
        for n in (100, 300):
            name = f"AUC {area}, {rate:.0%} positives, simple random, {n}"
            yield simple(name, x, positive.astype(int), n, truth, truth * unlike(rate, n), estimand="auc")
    for kind in ("calibrated", "inflated"):
        pool = Pool.of(kind, 0.025)
        both = float(np.sum(pool.true & pool.answer))
        value = 2 * both / float(pool.true.sum() + pool.answer.sum())

        def f1_form(
            t: float, stratum: Any, weights: FloatArray, pool: Pool = pool
        ) -> tuple[FloatArray, float]:
            named = np.bincount(stratum, pool.answer) / np.bincount(stratum) > 0.5
            return np.where(named, 2 - t, -t) * weights, t * float(weights[named].sum())

        scores = stratal.Population.from_arrays(proxy=pool.score)
        for n in (400, 1000):
            for rounds in (1, 2):
                name = f"{kind} scores, 2.5% positives, {n}, rounds: {rounds}"
                truth = float(pool.true.mean())
                yield planned(f"mean, {name}", scores, pool.true, truth, mean_form, n=n, rounds=rounds)
                asked = {"estimand": F1("match", probability="score")}
                yield planned(
                    f"F1, {name}", pool.population, pool.true, value, f1_form, n=n, rounds=rounds, **asked
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=120)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = [
        "# How narrow an interval can be",
        "",
        f"`python -m benchmarks.narrowest --runs {args.runs}`. `ideal` is 2 × 1.96 standard errors of the",
        "estimates. `possible` is the mean width that no 95 % interval with equal tails can go below if it",
        "is also to hold for other truths (Pratt 1961): a share of units at a bound (graded), a share of",
        "positives below all others (AUC), other rates of the strata (0 and 1). For these, populations are",
        "taken to be endless and n_h to be what they are on average, so that widths of .96 of it occur.",
        "",
        "| cell | coverage | mean width | over the ideal | possible, over the ideal | width over possible |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for cell in cells():
        if args.only not in cell.name:
            continue
        rows = [cell.run(seed) for seed in range(args.runs)]
        value, low, high = np.array([row[:3] for row in rows]).T
        counts = None if rows[0][3] is None else np.mean(np.array([row[3] for row in rows]), axis=0)
        known = np.isfinite(value)
        width, ideal = (
            float(np.mean(high - low)),
            3.92 * float(np.sqrt(np.mean((value - cell.truth)[known] ** 2))),
        )
        possible, held = cell.narrowest(counts), float(np.mean((low <= cell.truth) & (cell.truth <= high)))
        ratios = f"{width / ideal:.2f} | {possible / ideal:.2f} | {width / possible:.2f}"
        lines.append(f"| {cell.name} | {held:.3f} | {width:.4f} | {ratios} |")
        print(lines[-1], flush=True)
        if not args.only:
            RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
