"""Plans for F1, recall, prevalence and mean in one round and in two, for two models and slices, beside OASIS.

    OMP_NUM_THREADS=1 python -m benchmarks.estimands [--replicates 500] [--oasis PYTHON] [--oasis-runs 500]
        [--samplers OASIS,Druck,Passive] [--keep FOLDER] [--parts rounds,models,slices] [--data FOLDER]
        [--pools pairs,galaxies] [--quantities f1,recall] [--budgets 200,500] [--ways "one round,oracle"]
        [--output FILE]

Part 1 draws pools of 5,000 to 60,000 units, whose scores are calibrated, of a model of balanced classes,
weak, or crowded near 0 and 1, and files of real predictions, as they are called in `--data` (the class is z
≥ ½, the answer proxy > ½): one simple random sample, the default plan, one round and two, and the oracle,
which knows every S_h in one round's strata. Equal seeds draw with equal permanent random numbers in every
way. `--oasis` names a Python in which `oasis` 0.1.3 is installed (NumPy 1.23; names that SciPy dropped are
put back): its samplers on the same pools, until as many distinct labels. What was made with `--keep` is not
made again. Part 2 trains two models on scikit-learn's digits and compares their accuracy. Part 3 asks for
the mean of ten slices of very unequal size, each to a half-width.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.helpers import DATA, load

import stratal
from stratal.arrays import AnyArray, BoolArray, FloatArray
from stratal.designs import Stratified
from stratal.estimands import F1, Difference, LevelMeans, Recall
from stratal.strata.integer_allocation import AllocationBounds, optimal_integers

OUTPUT = Path(__file__).resolve().parent / "results" / "estimands.md"
BUDGETS = (200, 500, 1000)
POOLS = "calibrated,balanced-trained,weak,pairs,galaxies,forest,balanced"
PEERS = {
    "OASIS": "OASIS 0.1.3",
    "Druck": "Druck's stratified, of oasis 0.1.3",
    "Passive": "passive, of oasis 0.1.3",
}

# The weight of precision in the F-measure that OASIS samples for; it knows no prevalence and no mean.
ALPHAS = {"f1": 0.5, "recall": 0.0}

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
    sampler = kind(float(sys.argv[6]), *given, lambda i: truth[i], max_iter=200_000, **more)
    row = []
    for n in budgets:
        sampler.sample_distinct(n - int(np.sum(~np.isnan(sampler.cached_labels_))))
        row.append(sampler.estimate_[-1])
    found.append(row)
np.save(sys.argv[3], np.array(found, dtype=float))
"""


def pool(name: str, data: Path) -> tuple[BoolArray, FloatArray, BoolArray]:
    """Return truth, score and answer (N,) of a generated pool, or of a file of real predictions."""
    rng, size = np.random.default_rng(1), 20_000
    if name == "pairs":
        truth = rng.random(60_000) < 0.008
        odds = np.where(truth, rng.normal(2.2, 2.6, 60_000), rng.normal(-9.0, 2.6, 60_000))
        score = 1.0 / (1.0 + np.exp(-odds))
    elif name == "balanced":
        score = rng.beta(0.6, 0.6, 5000)
        truth = rng.random(5000) < score
    elif name in ("calibrated", "balanced-trained", "weak"):
        # 2.5 %, 3 % and 5 % positives.
        middle, spread = {"calibrated": (-6.3, 2.6), "balanced-trained": (-4.9, 1.9), "weak": (-3.3, 0.9)}[
            name
        ]
        odds = rng.normal(middle, spread, size)
        truth = rng.random(size) < 1.0 / (1.0 + np.exp(-odds))
        odds += np.log((1 - truth.mean()) / truth.mean()) if name == "balanced-trained" else 0.0
        score = 1.0 / (1.0 + np.exp(-odds))
        if name == "weak":  # few scores are above ½: the answer is the highest twentieth
            return truth, score, score > np.quantile(score, 0.95)
    else:
        z, score = load(name, data)
        truth = z >= 0.5
    return truth, score, score > 0.5


class Pool:
    """A pool as a population for one quantity: its truth, and what one labels."""

    def __init__(self, name: str, quantity: str, data: Path) -> None:
        self.truth, self.score, self.answer = pool(name, data)
        both, right = self.truth & self.answer, self.truth == self.answer
        proxy, self.estimand, self.labels = self.score, None, self.truth * 1.0
        self.influence = self.truth * 1.0  # less a constant
        if quantity == "mean":
            proxy, self.labels = np.where(self.answer, self.score, 1.0 - self.score), right * 1.0
            self.influence = self.labels
        elif quantity != "prevalence":
            self.estimand = {"f1": F1, "recall": Recall}[quantity]("match", probability="score")
            self.labels = np.where(self.truth, "match", "other")
            below = self.truth if quantity == "recall" else (self.truth * 1.0 + self.answer) / 2.0
            self.influence = both - both.sum() / below.sum() * below
        self.value = float(self.labels.mean()) if self.estimand is None else both.sum() / below.sum()
        self.population = stratal.Population.from_arrays(
            proxy={"score": proxy},
            groups={"answer": np.where(self.answer, "match", "other")},
            predicted="answer",
        )

    def plan(self, budget: int, **options: Any) -> Any:
        """Return the plan for the quantity."""
        return stratal.plan(self.population, budget, estimand=self.estimand, **options)


Draw = Callable[[int], Any]


def one_round(units: Pool, budget: int) -> Draw:
    """Return what draws a sample planned for the quantity."""
    drawn: Draw = units.plan(budget).draw
    return drawn


def two_rounds(units: Pool, budget: int) -> Draw:
    """Return what draws half of the labels first, and the rest where these say."""
    plan = units.plan(budget // 2)

    def draw(seed: int) -> Any:
        pilot = plan.draw(seed)
        return stratal.next_round(pilot, units.labels[pilot.ids], additional=budget - budget // 2)

    return draw


def default(units: Pool, budget: int) -> Draw:
    """Return what draws for the accuracy, as without an estimand."""
    right = np.where(units.answer, units.score, 1.0 - units.score)
    groups = {"answer": np.where(units.answer, "match", "other")}
    population = stratal.Population.from_arrays(proxy={"right": right}, groups=groups, predicted="answer")
    return stratal.plan(population, budget).draw


def simple(units: Pool, budget: int) -> Draw:
    """Return what draws a simple random sample."""
    design = stratal.designs.SimpleRandom(budget=budget)
    return lambda seed: design.draw(units.population, seed)


def oracle(units: Pool, budget: int) -> Draw:
    """Return what draws by the true S_h in the strata of one round; two labels each, as the plan."""
    plan = units.plan(budget).using("stratified")
    strata = plan.strata
    stratum, sizes = np.asarray(strata.codes), strata.sizes
    first, second = (np.bincount(stratum, units.influence**k, minlength=len(sizes)) / sizes for k in (1, 2))
    spread = np.where(strata.is_known, 0.0, np.sqrt(np.maximum(second - first**2, 0.0)))
    least = np.where(strata.is_known, 0, np.minimum(sizes, 2))
    n_h = optimal_integers(sizes * spread, AllocationBounds(sizes=sizes, lower=least, upper=sizes), budget)
    allocation = replace(plan.allocation, n_h=n_h, budget=budget)
    design = Stratified(strata=strata, allocation=allocation)

    def drawn(seed: int) -> stratal.Sample:
        sample = design.draw(units.population, seed)
        return replace(sample, question=replace(sample.question, estimand=plan.estimand))

    return drawn


WAYS = {
    "simple random": simple,
    "default plan": default,
    "one round": one_round,
    "two rounds": two_rounds,
    "oracle": oracle,
}


def runs(units: Pool, way: str, budget: int, replicates: int) -> FloatArray:
    """Return error, hit and width (runs, 3)."""
    draw, rows = WAYS[way](units, budget), []
    for seed in range(replicates):
        sample = draw(seed)
        estimand = {} if units.estimand is None else {"estimand": units.estimand}
        if way in ("simple random", "default plan"):  # drawn for something else
            sample = replace(sample, population=units.population)
        found = stratal.estimate(sample, units.labels[sample.ids], **estimand)
        low, high = found.confidence_interval()
        value = found.value if np.isfinite(found.value) else 0.0
        rows.append((value - units.value, not (units.value < low or units.value > high), high - low))
    return np.array(rows, dtype=np.float64)


def kept(folder: Path | None, name: str, made: Callable[[], FloatArray]) -> FloatArray:
    """Return what is made, or was made before and lies in the folder."""
    if folder is None:
        return made()
    file = folder / f"{name}.npy"
    if not file.exists():
        np.save(file, made())
    return np.asarray(np.load(file))


def by_oasis(quantity: str, units: Pool, sampler: str, args: argparse.Namespace) -> FloatArray:
    """Return a sampler's errors (runs, budgets) at the numbers of distinct labels."""
    with tempfile.TemporaryDirectory() as folder:
        given, made = Path(folder, "pool.npz"), Path(folder, "found.npy")
        np.savez(given, truth=units.truth, score=units.score, answer=units.answer)
        command = [args.oasis, "-c", OASIS, str(given), str(args.oasis_runs), str(made), sampler]
        command += [args.budgets, str(ALPHAS[quantity])]
        subprocess.run(command, check=True, capture_output=True)
        return np.asarray(np.nan_to_num(np.load(made)) - units.value)


def least_ratio(own: FloatArray, others: FloatArray) -> float:
    """Return the lower 95 % limit of the ratio of mean squared errors, by bootstrap of the runs."""
    rng, draws = np.random.default_rng(1), 2000
    squares = (
        np.array([np.mean(rng.choice(errors**2, len(errors))) for _ in range(draws)])
        for errors in (own, others)
    )
    above, below = squares
    return float(np.quantile(above / below, 0.025))


def rounds(args: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of part 1."""
    yield "| pool | quantity | labels | way | runs | root mean squared error | bias | coverage | mean width |"
    yield "|---|---|---|---|---|---|---|---|---|"
    budgets, summary = [int(n) for n in args.budgets.split(",")], Summary()
    for name, quantity in ((name, q) for name in args.pools.split(",") for q in args.quantities.split(",")):
        units = Pool(name, quantity, args.data)
        peers = args.samplers.split(",") if args.oasis is not None and quantity in ALPHAS else []
        others = {
            kind: kept(
                args.keep,
                f"{kind} {name} {quantity} {args.budgets} {args.oasis_runs}",
                partial(by_oasis, quantity, units, kind, args),
            )
            for kind in peers
        }
        start = f"| {name} | {quantity} {units.value:.3f} |"
        for b, budget in enumerate(budgets):
            found = {}
            for way in filter(None, args.ways.split(",")):
                cell = f"{way} {name} {quantity} {budget} {args.replicates}"
                make = partial(runs, units, way, budget, args.replicates)
                found[way] = rows = kept(args.keep, cell, make)
                error, held, width = rows.T
                yield (
                    f"{start} {budget} | {way} | {len(rows)} | {np.sqrt(np.mean(error**2)):.4f} "
                    f"| {error.mean():+.4f} | {held.mean():.3f} | {np.nanmean(width):.3f} |"
                )
            for kind, errors in others.items():
                error = errors[:, b]
                yield (
                    f"{start} {budget} | {PEERS[kind]} | {len(error)} | {np.sqrt(np.mean(error**2)):.4f} "
                    f"| {error.mean():+.4f} | — | — |"
                )
            summary.add(f"{name}, {quantity}, {budget}", found, others.get("OASIS", np.empty((0, 3)))[:, b])
    yield ""
    yield from summary.lines()


class Summary:
    """What is asked of the cells: beside the oracle, beside one round, beside OASIS."""

    def __init__(self) -> None:
        self.ratios: dict[str, dict[str, float]] = {}

    def add(self, cell: str, found: dict[str, FloatArray], peer: FloatArray) -> None:
        """Compare the ways of one cell."""
        squared = {way: float(np.mean(rows[:, 0] ** 2)) for way, rows in found.items()}
        for way in ("one round", "two rounds"):
            if way in found and "oracle" in found:
                self._note(f"{way}, error over the oracle's", cell, np.sqrt(squared[way] / squared["oracle"]))
            if way in found:
                self._note(f"{way}, coverage", cell, float(found[way][:, 1].mean()))
                if len(peer):
                    ratio = squared[way] / np.mean(peer**2)
                    self._note(f"{way}, squared error over OASIS's", cell, float(ratio))
                    least = least_ratio(found[way][:, 0], peer)
                    self._note(f"{way}, lower limit of that ratio", cell, least)
        if {"one round", "two rounds"} <= set(found):
            error = np.sqrt(squared["two rounds"] / squared["one round"])
            self._note("two rounds, error over one round's", cell, float(error))
            width = np.nanmean(found["two rounds"][:, 2]) / np.nanmean(found["one round"][:, 2])
            self._note("two rounds, width over one round's", cell, float(width))

    def _note(self, what: str, cell: str, value: float) -> None:
        self.ratios.setdefault(what, {})[cell] = value

    def lines(self) -> Iterator[str]:
        """Yield mean, least and largest of each ratio, and where these are."""
        yield "| of the cells | mean | least | | largest | |"
        yield "|---|---|---|---|---|---|"
        for what, of in self.ratios.items():
            low, high = min(of, key=lambda cell: of[cell]), max(of, key=lambda cell: of[cell])
            mean = np.mean(list(of.values()))
            yield f"| {what} | {mean:.3f} | {of[low]:.3f} | {low} | {of[high]:.3f} | {high} |"


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
    parser.add_argument("--replicates", type=int, default=500)
    parser.add_argument("--pools", default=POOLS)
    parser.add_argument("--quantities", default="f1,recall,prevalence,mean")
    parser.add_argument("--budgets", default=",".join(map(str, BUDGETS)))
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--oasis", default=None)
    parser.add_argument("--oasis-runs", type=int, default=500)
    parser.add_argument("--samplers", default="OASIS")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of real predictions")
    parser.add_argument("--keep", type=Path, default=None, help="folder for OASIS's estimates")
    parser.add_argument("--parts", default="rounds,models")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    args = parser.parse_args()
    start = time.time()
    parts = {
        "rounds": ("One round, two rounds and the oracle", rounds),
        "models": ("Two models", models),
        "slices": ("Ten slices", slices),
    }
    given = {
        "replicates": args.replicates,
        "pools": args.pools,
        "quantities": args.quantities,
        "budgets": args.budgets,
        "ways": args.ways,
        "parts": args.parts,
        "oasis": bool(args.oasis),
    }
    text = ["# Plans for an estimand", "", f"`python -m benchmarks.estimands`, {json.dumps(given)}.", ""]
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
