"""Plans for F1, for the difference of two models and for slices, against today's plan, random and OASIS.

    OMP_NUM_THREADS=1 python -m benchmarks.estimands [--replicates 2000] [--oasis PYTHON] [--oasis-runs 400]
        [--samplers OASIS,Druck,Passive] [--keep FOLDER] [--parts rounds,models,slices] [--data FOLDER]
        [--pools balanced,galaxies] [--budgets 200,500,1000] [--ways "one round,two rounds"] [--output FILE]

Part 1 draws generated pools of 60,000 units with matches of 0.7 to 1 % and scores crowded near 0 and 1: plans
for F1 in one round and in two, and one simple random sample, at 200, 500 and 1000 labels: root mean squared
error, bias, coverage and width of the 95 % interval. Other pools are files of real predictions, as they are
called in `--data`: the class is z ≥ ½, the answer proxy > ½. `--oasis` names a Python in which `oasis` 0.1.3
is installed (NumPy 1.23; names that SciPy dropped are put back): its samplers on the same pools, until as
many distinct labels. Part 2 trains two models on scikit-learn's digits and compares their accuracy. Part 3
asks for the mean of ten slices of very unequal size, each to a half-width.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.predictions import DATA, load

import stratal
from stratal.arrays import AnyArray, BoolArray, FloatArray
from stratal.estimands import F1, Difference, LevelMeans

OUTPUT = Path(__file__).resolve().parent / "results" / "estimands.md"
BUDGETS = (200, 500, 1000)
GENERATED = ("calibrated", "too sure", "balanced")
PEERS = {
    "OASIS": "OASIS 0.1.3",
    "Druck": "Druck's stratified, of oasis 0.1.3",
    "Passive": "passive, of oasis 0.1.3",
}

OASIS = """
import sys, warnings
import numpy as np, scipy
warnings.filterwarnings("ignore")
for name in dir(np):
    if not hasattr(scipy, name):
        setattr(scipy, name, getattr(np, name))
import oasis
data = np.load(sys.argv[1])
truth, score, answer = data["truth"].astype(int), data["score"], data["answer"].astype(int)
kind = getattr(oasis, sys.argv[4] + "Sampler")
given = [answer] if sys.argv[4] == "Passive" else [answer, score]
more = {} if sys.argv[4] == "Passive" else {"proba": True}
if sys.argv[4] == "Druck":  # begins with two labels of each stratum, of which it would make 1,191
    more["stratification_n_strata"] = 30
budgets = [int(n) for n in sys.argv[5].split(",")]
found = []
for run in range(int(sys.argv[2])):
    np.random.seed(run)
    sampler = kind(0.5, *given, lambda i: truth[i], max_iter=200_000, **more)
    row = []
    for n in budgets:
        sampler.sample_distinct(n - int(np.sum(~np.isnan(sampler.cached_labels_))))
        row.append(sampler.estimate_[-1])
    found.append(row)
np.save(sys.argv[3], np.array(found, dtype=float))
"""


def pool(name: str, data: Path) -> tuple[BoolArray, FloatArray, BoolArray]:
    """Return truth, score and answer (N,) of a generated pool, or of a file of real predictions."""
    if name not in GENERATED:
        z, proxy = load(name, data)
        return z >= 0.5, proxy, proxy > 0.5
    rng, size = np.random.default_rng(1), 60_000
    if name == "calibrated":
        truth = rng.random(size) < 0.008
        odds = np.where(truth, rng.normal(2.2, 2.6, size), rng.normal(-9.0, 2.6, size))
        steep = 1.0
    elif name == "too sure":
        truth = rng.random(size) < 0.01
        odds = np.where(truth, rng.normal(1.6, 2.2, size), rng.normal(-6.0, 1.8, size))
        steep = 2.0
    else:
        size = 5000
        score = rng.beta(0.6, 0.6, size)
        return rng.random(size) < score, score, score > 0.5
    score = 1.0 / (1.0 + np.exp(-steep * odds))
    return truth, score, score > 0.5


class Pool:
    """A pool as a population, with its truth."""

    def __init__(self, name: str, data: Path) -> None:
        self.truth, self.score, self.answer = pool(name, data)
        self.labels = np.where(self.truth, "match", "other")
        self.population = stratal.Population.from_arrays(
            proxy={"score": self.score},
            groups={"answer": np.where(self.answer, "match", "other")},
            predicted="answer",
        )
        both = int(np.sum(self.truth & self.answer))
        self.value = 2 * both / int(self.truth.sum() + self.answer.sum())

    def of(self, sample: Any) -> dict[int, str]:
        """Return the true classes of the drawn units."""
        return dict(zip(sample.ids.tolist(), self.labels[sample.ids].tolist(), strict=True))


Row = tuple[float, bool, float]


def one_round(units: Pool, budget: int) -> Callable[[int], Any]:
    """Return what draws a sample planned for F1."""
    plan = stratal.plan(units.population, budget, estimand=F1("match", probability="score"))
    return plan.draw


def two_rounds(units: Pool, budget: int) -> Callable[[int], Any]:
    """Return what draws half of the labels first, and the rest where these say."""
    plan = stratal.plan(units.population, budget // 2, estimand=F1("match", probability="score"))

    def draw(seed: int) -> Any:
        pilot = plan.draw(seed)
        return stratal.next_round(pilot, units.of(pilot), additional=budget - budget // 2)

    return draw


def for_accuracy(units: Pool, budget: int) -> Callable[[int], Any]:
    """Return what draws a sample planned for the accuracy, as without an estimand."""
    right = np.where(units.answer, units.score, 1.0 - units.score)
    groups = {"answer": np.where(units.answer, "match", "other")}
    population = stratal.Population.from_arrays(proxy={"right": right}, groups=groups, predicted="answer")
    return stratal.plan(population, budget).draw


WAYS = {"plan for accuracy": for_accuracy, "one round": one_round, "two rounds": two_rounds}


def runs(units: Pool, way: str, budget: int, replicates: int) -> list[Row]:
    """Return error, hit and width of each run."""
    draw, rows = WAYS[way](units, budget), []
    for seed in range(replicates):
        sample = draw(seed)
        found = stratal.estimate(sample, units.of(sample), estimand=F1("match", probability="score"))
        low, high = found.confidence_interval()
        value = found.value if np.isfinite(found.value) else 0.0
        rows.append((value - units.value, not (units.value < low or units.value > high), high - low))
    return rows


def by_oasis(name: str, units: Pool, sampler: str, args: argparse.Namespace) -> FloatArray:
    """Return a sampler's estimates (runs, budgets) at the numbers of distinct labels, kept if asked for."""
    keep = args.keep
    kept = None if keep is None else keep / f"{sampler} {name} {args.budgets}.npy"
    if kept is not None and kept.exists():
        return np.asarray(np.load(kept))
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder, "pool.npz"), Path(folder, "found.npy")
        np.savez(given, truth=units.truth, score=units.score, answer=units.answer)
        command = [args.oasis, "-c", OASIS, str(given), str(args.oasis_runs), str(made), sampler]
        command.append(args.budgets)
        subprocess.run(command, check=True, capture_output=True)
        estimates = np.asarray(np.load(made))
    if kept is not None:
        np.save(kept, estimates)
    return estimates


def rounds(args: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of part 1."""
    yield "| pool | labels | way | runs | root mean squared error | bias | coverage | mean width |"
    yield "|---|---|---|---|---|---|---|---|"
    for name in args.pools.split(","):
        units = Pool(name, args.data)
        others = {}
        if args.oasis is not None:
            others = {kind: by_oasis(name, units, kind, args) for kind in args.samplers.split(",")}
        budgets = args.budgets.split(",")
        for budget in map(int, args.budgets.split(",")):
            for way in filter(None, args.ways.split(",")):
                rows = np.array(runs(units, way, budget, args.replicates), dtype=np.float64)
                errors = rows[:, 0]
                yield (
                    f"| {name} (F1 {units.value:.3f}) | {budget} | {way} | {len(rows)} "
                    f"| {np.sqrt(np.mean(errors**2)):.4f} | {errors.mean():+.4f} | {rows[:, 1].mean():.3f} "
                    f"| {np.nanmean(rows[:, 2]):.3f} |"
                )
            for kind, estimates in others.items():
                values = np.nan_to_num(estimates[:, budgets.index(str(budget))])
                errors = values - units.value
                yield (
                    f"| {name} | {budget} | {PEERS[kind]} | {len(errors)} "
                    f"| {np.sqrt(np.mean(errors**2)):.4f} | {np.mean(errors):+.4f} | — | — |"
                )


def digits() -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return the truth and the answers of a logistic regression and of a forest, on 1,497 test digits."""
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    data = load_digits()
    x, y = data.data, data.target
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:300], order[300:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = LogisticRegression(max_iter=200).fit(x[train], y[train])
    second = RandomForestClassifier(200, random_state=0).fit(x[train], y[train])
    return y[test].astype(str), first.predict(x[test]).astype(str), second.predict(x[test]).astype(str)


def models(args: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of part 2."""
    truth, new, old = digits()
    population = stratal.Population.from_arrays(groups={"new": new, "old": old}, predicted="new")
    value = float(np.mean(new == truth) - np.mean(old == truth))
    agree = float(np.mean(new == old))
    yield f"Two models on {len(truth):,} digits: the same answer on {agree:.1%}, difference {value:+.4f}."
    yield ""
    yield "| labels | way | root mean squared error | coverage | mean half-width |"
    yield "|---|---|---|---|---|"
    estimand = Difference(("new", "old"))
    for budget in (25, 50, 100):
        plans: dict[str, Callable[..., Any]] = {
            "plan for the difference": stratal.plan(population, budget, estimand=estimand).draw,
            "simple random sample": stratal.designs.SimpleRandom(budget=budget).draw,
        }
        for way, draw in plans.items():
            rows = []
            for seed in range(args.replicates):
                sample = draw(population, seed) if way.startswith("simple") else draw(seed)
                labels = dict(zip(sample.ids.tolist(), truth[sample.ids].tolist(), strict=True))
                found = stratal.estimate(sample, labels, estimand=estimand)
                low, high = found.confidence_interval()
                rows.append((found.value - value, low - 1e-12 <= value <= high + 1e-12, (high - low) / 2))
            made = np.array(rows, dtype=np.float64)
            yield (
                f"| {budget} | {way} | {np.sqrt(np.mean(made[:, 0] ** 2)):.4f} | {made[:, 1].mean():.3f} "
                f"| {made[:, 2].mean():.4f} |"
            )


SLICES = LevelMeans("slice")
SHARES = 0.5 ** np.arange(10)
"""Slices from half of all units down to a thousandth."""


def slices(args: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of part 3: labels for a half-width of each slice, as planned and as reached."""
    rng, size = np.random.default_rng(11), 30_000
    slice_of = rng.choice(10, size, p=SHARES / SHARES.sum())
    proxy = np.clip(rng.beta(6, 2, size) - 0.03 * slice_of, 0.02, 0.98)
    z = (rng.random(size) < proxy).astype(np.float64)
    groups = {"slice": np.array([f"slice {k}" for k in range(10)])[slice_of]}
    population = stratal.Population.from_arrays(proxy={"proxy": proxy}, groups=groups)
    counts = np.bincount(slice_of, minlength=10)
    means = np.bincount(slice_of, z) / counts
    wanted = 0.05
    plan = stratal.plan(population, half_width=wanted, estimand=SLICES)
    alone = [_alone(proxy[slice_of == k], wanted) for k in range(10)]
    share = np.array(alone) / counts
    labels = {
        "one plan for all slices": plan.budget,
        "one plan for each slice, added up": sum(alone),
        "proportional to size, until the last slice is as narrow": int(np.ceil(share.max() * size)),
    }
    sizes = f"{counts.max():,} down to {counts.min()} units"
    yield f"{size:,} units in ten slices of {sizes}; of each a half-width of {wanted} is wanted."
    yield ""
    yield "| way | labels |"
    yield "|---|---|"
    for way, number in labels.items():
        yield f"| {way} | {number:,} |"
    found = np.array(list(_reached(plan, z, means, args.replicates)))
    yield ""
    yield "| slice | units | half-width, mean | coverage |"
    yield "|---|---|---|---|"
    for k in range(10):
        yield f"| {k} | {counts[k]:,} | {found[:, k, 0].mean():.4f} | {found[:, k, 1].mean():.3f} |"


def _alone(proxy: FloatArray, wanted: float) -> int:
    """Return the labels of a plan for one slice by itself."""
    return stratal.plan(
        stratal.Population.from_arrays(proxy=proxy), half_width=wanted, assume="expected"
    ).budget


def _reached(plan: Any, z: FloatArray, means: FloatArray, replicates: int) -> Iterator[FloatArray]:
    """Yield half-width and hit (10, 2) of each slice, of each sample."""
    for seed in range(replicates):
        sample = plan.draw(seed)
        found = stratal.estimate(sample, z[sample.ids], estimand=SLICES)
        ends = np.array([[*found.of(domain=f"slice {k}").confidence_interval()] for k in range(10)])
        hits = (ends[:, 0] <= means + 1e-12) & (means - 1e-12 <= ends[:, 1])
        yield np.column_stack([(ends[:, 1] - ends[:, 0]) / 2, hits])


def main() -> None:
    """Run what is asked for and write it down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--replicates", type=int, default=2000)
    parser.add_argument("--pools", default="calibrated,too sure,balanced")
    parser.add_argument("--budgets", default=",".join(map(str, BUDGETS)))
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--oasis", default=None)
    parser.add_argument("--oasis-runs", type=int, default=400)
    parser.add_argument("--samplers", default=",".join(PEERS))
    parser.add_argument("--data", type=Path, default=DATA, help="folder of real predictions")
    parser.add_argument("--keep", type=Path, default=None, help="folder for OASIS's estimates")
    parser.add_argument("--parts", default="rounds,models")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    args = parser.parse_args()
    start = time.time()
    parts = {
        "rounds": ("F1 of a rare class", rounds),
        "models": ("Two models", models),
        "slices": ("Ten slices", slices),
    }
    given = {
        "replicates": args.replicates,
        "pools": args.pools,
        "budgets": args.budgets,
        "ways": args.ways,
        "parts": args.parts,
        "oasis": bool(args.oasis),
    }
    text = ["# Plans for an estimand", "", f"`python benchmarks/estimands.py`, {json.dumps(given)}.", ""]
    for name in args.parts.split(","):
        title, lines = parts[name]
        text += [f"## {title}", ""]
        for line in lines(args):
            text.append(line)
            print(line, flush=True)
        text.append("")
    text.append(f"{time.time() - start:.0f} s in all.")
    args.output.write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
