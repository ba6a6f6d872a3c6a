"""Coverage of metrics whose sample was planned with scores that are wrong, and what their intervals cost.

Run: python -m benchmarks.wrong_scores --replicates 400 --more 10000
Appends each cell to build/wrong_scores.jsonl and goes on from there; writes the page of its name in results.

Ten metrics of one class on the same draws of a plan for one of them. A draw in which a metric is undefined
counts as all possible values, and its share is reported apart. Cells that cover less than `AGAIN` are run
once more, with more draws of another seed. Labels matter only through the positives of each stratum, so that
the intervals of all draws are made at once, with the kernels of `estimate`. Those of a few draws are also
made by `stratal.estimate`, and must be the same.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit, logit

import stratal
from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.designs.stratified import stratified_factors
from stratal.estimands import ClassReport
from stratal.estimation.estimand import as_estimand
from stratal.estimation.mover import directions, limits_on_ellipsoid, move_limits_outwards
from stratal.intervals.guards import UnitMoments, Variances, stratum_rates
from stratal.intervals.proportion import clopper_pearson
from stratal.intervals.stratified import stratified_clopper_pearson
from stratal.metrics.class_functions import metric_function, two_class_metric
from stratal.planning.interim_analysis import PLANNED_SHARE
from stratal.planning.next_allocation import next_allocation
from stratal.planning.stratum_minimums import cell_share_minimums
from stratal.population.influence import stratum_averages
from stratal.population.rules import cells_of
from stratal.strata import smoothed_standard_deviations
from stratal.strata.strata import moments_of_sizes

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "benchmarks" / "results" / "wrong_scores.md"
STORE = ROOT / "build" / "wrong_scores.jsonl"

UNITS = 20_000
RATES = (0.002, 0.01, 0.03, 0.1, 0.5)
SIZES = (100, 300, 1000)
KINDS = ("calibrated", "inflated", "deflated", "inverted", "constant", "crowded", "smoothed")
METRICS = (
    *("accuracy", "prevalence", "precision", "recall", "specificity"),
    *("f1", "f0.5", "f2", "balanced_accuracy", "mcc"),
)
AGAIN = 0.955
"""Coverage below which a cell is run again."""

CHECKED = 2
"""Draws of each cell whose intervals are also made by `estimate`."""

BATCH = 1000

AFTER_ONE = 4
"""Second rounds drawn after each first one where draws are many: allocating takes longest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A kind of score, a share of positives, labels, rounds, and what the sample is planned for."""

    kind: str
    rate: float
    labels: int
    rounds: int
    plan: str


def cells(plans: list[str]) -> Iterator[Cell]:
    for plan in plans:
        for kind in KINDS:
            for rate in RATES:
                for labels in SIZES:
                    for rounds in (1, 2):
                        yield Cell(kind=kind, rate=rate, labels=labels, rounds=rounds, plan=plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Units: what the plan sees, and the truth."""

    score: FloatArray
    answer: BoolArray
    true: BoolArray

    @classmethod
    def of(cls, kind: str, rate: float) -> Pool:
        """Return a pool whose answers find most positives; only the scores differ between kinds."""
        rng = np.random.default_rng(int(1e6 * rate))
        spread = 3.0 * rng.standard_normal(UNITS)
        low, high = -30.0, 30.0
        for _ in range(60):
            middle = (low + high) / 2.0
            low, high = (middle, high) if expit(middle + spread).mean() < rate else (low, middle)
        chance = expit(low + spread)
        true = rng.random(UNITS) < chance
        answer = chance > np.quantile(chance, 1.0 - rate)
        return cls(score=wrong(kind, chance, rate), answer=answer, true=true)

    @property
    def population(self) -> stratal.Population:
        """What is planned for."""
        answers = np.where(self.answer, "match", "other")
        return stratal.Population.from_arrays(
            proxy={"score": self.score}, groups={"answer": answers}, predicted="answer"
        )


def wrong(kind: str, chance: FloatArray, rate: float) -> FloatArray:
    """Return the scores of a kind."""
    odds = logit(np.clip(chance, 1e-12, 1.0 - 1e-12))
    scores: dict[str, FloatArray] = {
        "calibrated": chance,
        # Of a model trained on as many positives as negatives; where these are as many, of one too sure.
        "inflated": expit(odds - logit(rate)) if rate < 0.5 else expit(odds + 2.0),
        "deflated": expit(odds - 2.0),
        "inverted": 1.0 - chance,
        "constant": np.full(UNITS, rate),
        "crowded": 0.5 + 0.1 * (chance - 0.5),
        "smoothed": 0.1 + 0.8 * chance,
    }
    return scores[kind]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Many draws: labels and positives of each stratum (R, H)."""

    counts: IntArray
    seen: IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A cell's strata: N_h, positives, which are answered with the class, and what a plan says of them."""

    cell: Cell
    pool: Pool
    population: stratal.Population
    plan: Any
    stratum: IntArray
    members: IntArray
    answered: BoolArray

    @classmethod
    def of(cls, cell: Cell) -> Stage:
        pool = Pool.of(cell.kind, cell.rate)
        population = pool.population
        first = cell.labels if cell.rounds == 1 else cell.labels // 2
        plan = stratal.plan(population, budget=first, estimand=f"{cell.plan}:match,probability=score")
        words = np.where(pool.answer, "match", "other")
        stratum = plan.strata.rule.assign({"score": pool.score, "answer": words})
        n_strata = plan.strata.n_strata
        return cls(
            cell=cell,
            pool=pool,
            population=population,
            plan=plan,
            stratum=stratum,
            members=np.bincount(stratum, pool.true, minlength=n_strata).astype(np.int64),
            answered=np.bincount(stratum, pool.answer, minlength=n_strata) > 0,
        )

    @property
    def sizes(self) -> IntArray:
        return np.asarray(self.plan.strata.sizes)

    def draws(self, number: int, rng: np.random.Generator) -> Drawn:
        """Return draws of one round or of two."""
        n_h, sizes, members = self.plan.allocation.n_h, self.sizes, self.members
        if self.cell.rounds == 1:
            shape = (number, len(sizes))
            seen = rng.hypergeometric(members, sizes - members, n_h, shape)
            return Drawn(counts=np.broadcast_to(n_h, shape), seen=seen)
        firsts = -(-number // AFTER_ONE) if number >= BATCH else number
        seen = rng.hypergeometric(members, sizes - members, n_h, (firsts, len(sizes)))
        extra = self.cell.labels - int(n_h.sum())
        counts = np.repeat(self.next_counts(seen, extra), -(-number // firsts), axis=0)[:number]
        seen = np.repeat(seen, -(-number // firsts), axis=0)[:number]
        more = rng.hypergeometric(members - seen, sizes - members - (n_h - seen), counts - n_h)
        return Drawn(counts=counts, seen=seen + more)

    def next_counts(self, seen: IntArray, extra: int) -> IntArray:
        """Return n_h (R, H) after the second round, as `next_round` has it."""
        strata, n_h = self.plan.strata, self.plan.allocation.n_h
        tables, place = np.unique(seen, axis=0, return_inverse=True)
        asked: Any = as_estimand(self.plan.estimand)
        chance = stratum_averages(self.population, strata.rule, [asked.chance(self.population)])[:, 0]
        moments = replace(moments_of_sizes(strata.sizes), proxy_means=np.clip(chance, 0.0, 1.0))
        learned = smoothed_standard_deviations(moments, n_h, tables.astype(float)) * self.gaps(tables)
        planned = strata.standard_deviations
        relative = [each / (each @ strata.weights)[..., None] for each in (planned, learned)]
        deviations = np.sqrt(PLANNED_SHARE * relative[0] ** 2 + (1.0 - PLANNED_SHARE) * relative[1] ** 2)
        cells, known = cells_of(strata.rule), strata.is_known
        assert cells is not None
        found = np.empty_like(tables)
        for row, own in enumerate(deviations):
            plain = next_allocation(strata.sizes, n_h, own, extra)
            least = cell_share_minimums(strata.sizes, cells, plain, n_h, known)
            found[row] = next_allocation(strata.sizes, n_h, own, extra, minimums=least)
        return np.asarray(found[place.ravel()])

    def gaps(self, tables: IntArray) -> FloatArray:
        """Return what a positive changes of the metric's influence (R, H); see `labelled_rates`."""
        n_h, weights = self.plan.allocation.n_h, self.plan.strata.weights
        hits = np.sum((tables / n_h * weights)[:, self.answered], axis=1)
        true = np.sum(tables / n_h * weights, axis=1)
        pseudo = 1.0 / n_h.sum()
        whole = 1.0 + pseudo
        # Half a label right, a quarter missed, a quarter a false alarm.
        hits, true = (hits + pseudo / 2.0) / whole, (true + 0.75 * pseudo) / whole
        called = (float(weights[self.answered].sum()) + 0.75 * pseudo) / whole
        form: Any = metric_function(self.cell.plan, 1, 2)
        above = (
            form.numerator[0] * hits
            + form.numerator[1] * called
            + form.numerator[2] * true
            + form.numerator[3]
        )
        below = (
            form.denominator[0] * hits
            + form.denominator[1] * called
            + form.denominator[2] * true
            + form.denominator[3]
        )
        slope_hits, slope_true = (
            (form.numerator[j] - above / below * form.denominator[j]) / below for j in (0, 2)
        )
        return np.asarray(
            np.abs(np.where(self.answered, (slope_hits + slope_true)[:, None], slope_true[:, None]))
        )

    def labels_of(self, table: IntArray, counts: IntArray) -> tuple[stratal.Sample, dict[int, str]]:
        """Return a sample with these counts, drawn by the library, and labels with so many positives.

        Which units of a stratum are positive does not matter.
        """
        allocation = replace(self.plan.allocation, n_h=counts, budget=int(counts.sum()))
        drawn = replace(self.plan, allocation=allocation).draw(seed=1)
        rank = np.zeros(drawn.size, dtype=np.int64)
        for h in range(len(counts)):
            rank[drawn.stratum == h] = np.arange(int(np.sum(drawn.stratum == h)))
        positive = rank < table[drawn.stratum]
        return drawn, dict(
            zip(drawn.ids.tolist(), np.where(positive, "match", "other").tolist(), strict=True)
        )


def limits(seen: IntArray, counts: IntArray, sizes: IntArray, label_based: bool) -> FloatArray:
    """Return value and limits (3, R) of a share over some strata, from the positives seen (R, H)."""
    shares = sizes / sizes.sum()
    means = seen / counts
    kish = 1.0 / np.sum(shares**2 / counts, axis=-1)
    moments = UnitMoments(
        means=means,
        squares=means,
        counts=counts.astype(np.float64),
        shares=shares,
        factors=stratified_factors(counts, sizes),
        draws=kish,
        label_based=label_based,
        units=float(sizes.sum()),
        binary=True,
    )
    value = means @ shares
    found = stratum_rates(value, moments, Variances())
    return np.stack([value, *stratified_clopper_pearson(found, 0.025, 0.025)])


def intervals(stage: Stage, drawn: Drawn) -> tuple[FloatArray, FloatArray]:
    """Return values (M, R), NaN where undefined, and intervals (M, 2, R)."""
    sizes, answered = stage.sizes, stage.answered
    two = stage.cell.rounds == 2
    share = float(sizes[answered].sum() / sizes.sum())
    hits = limits(drawn.seen[:, answered], drawn.counts[:, answered], sizes[answered], two)
    misses = limits(drawn.seen[:, ~answered], drawn.counts[:, ~answered], sizes[~answered], two)
    both = np.stack([hits, misses], axis=1)
    units = np.array([[sizes[answered].sum()], [sizes[~answered].sum()]])
    wider = move_limits_outwards(both[0], both[1], both[2], units)
    around = directions(np.eye(2))
    values, found = [], []
    for name in METRICS:
        if name in ("accuracy", "prevalence"):
            good = np.where(answered | (name == "prevalence"), drawn.seen, drawn.counts - drawn.seen)
            value, low, high = limits(good, drawn.counts, sizes, two)
        else:
            which = None if name in ("mcc", "balanced_accuracy") else 1
            of_two = two_class_metric(metric_function(name, which, 2), 2)
            assert of_two is not None

            def function(rates: FloatArray, of_two: Any = of_two) -> FloatArray:
                return np.asarray(of_two(share * rates[0], (1.0 - share) * rates[1], share))

            value = function(both[0])
            ends = (both[1], both[2]) if name == "precision" else wider  # one share's own limits, or several
            low, high = limits_on_ellipsoid(function, both[0], ends[0], ends[1], around)
            low, high = np.fmin(low, value), np.fmax(high, value)
            least = -1.0 if name == "mcc" else 0.0
            low = np.where(np.isfinite(value), np.maximum(low, least), least)
            high = np.where(np.isfinite(value), np.minimum(high, 1.0), 1.0)
        values.append(value)
        found.append(np.stack([low, high]))
    return np.array(values), np.array(found)


def truths(stage: Stage) -> FloatArray:
    """Return the metrics (M,) of the population."""
    everything = Drawn(counts=stage.sizes[None], seen=stage.members[None])
    share = float(stage.sizes[stage.answered].sum() / stage.sizes.sum())
    rates = [np.sum((everything.seen[0])[side]) / UNITS for side in (stage.answered, ~stage.answered)]
    found = []
    for name in METRICS:
        if name == "accuracy":
            found.append(rates[0] + (1.0 - share) - rates[1])
        else:
            which = None if name in ("mcc", "balanced_accuracy") else 1
            of_two = two_class_metric(metric_function(name, which, 2), 2)
            assert of_two is not None
            found.append(float(of_two(np.array(rates[0]), np.array(rates[1]), share)))
    return np.array(found)


def as_before(stage: Stage, drawn: Drawn, value: FloatArray) -> FloatArray:
    """Return the intervals (2, R) of the planned metric as they were while they took the plan's word.

    Variances of strata are drawn to the plan's with the weight of 24 labels, at the level that all labels
    show, at least half; Clopper–Pearson's interval on as many trials.
    """
    counts, sizes = drawn.counts, stage.sizes
    weights, shares = stage.plan.strata.weights, drawn.seen / drawn.counts
    hits, true = (np.sum((shares * weights)[:, side], axis=1) for side in (stage.answered, slice(None)))
    called = float(weights[stage.answered].sum())
    form: Any = metric_function(stage.cell.plan, 1, 2)
    below = (
        form.denominator[0] * hits
        + form.denominator[1] * called
        + form.denominator[2] * true
        + form.denominator[3]
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = [(form.numerator[j] - value * form.denominator[j]) / below for j in (0, 2)]
    gap = np.where(stage.answered, (slopes[0] + slopes[1])[:, None], slopes[1][:, None])
    squares = counts * shares * (1.0 - shares) * gap**2
    planned = stage.plan.strata.standard_deviations**2
    free = np.maximum(counts - 1.0, 0.0)
    level = np.maximum(squares.sum(axis=1) / (free @ planned), 0.5)
    smooth = (squares + 24.0 * level[:, None] * planned) / (free + 24.0)
    factors = weights**2 * (1.0 - counts / sizes) / counts
    own = np.sum(factors * np.where(free > 0, squares / np.maximum(free, 1.0), smooth), axis=1)
    variance = np.maximum(own, np.sum(factors * smooth, axis=1))
    dice = stage.cell.plan == "f1"
    point = value / (2.0 - value) if dice else value
    slope = 2.0 / (2.0 - value) ** 2 if dice else 1.0
    n = np.sum(np.where(stage.answered, counts, drawn.seen), axis=1)
    edge = 0.5 / np.maximum(n if dice else drawn.seen.sum(axis=1), 1)
    unit = np.clip(point, edge, 1.0 - edge)
    with np.errstate(divide="ignore", invalid="ignore"):
        trials = unit * (1.0 - unit) / (variance * slope**2)
    low, high = clopper_pearson(np.nan_to_num(point), np.nan_to_num(trials, nan=1.0))
    if dice:
        low, high = 2.0 * low / (1.0 + low), 2.0 * high / (1.0 + high)
    return np.where(np.isfinite(value), np.stack([low, high]), np.array([[0.0], [1.0]]))


def measured(cell: Cell, replicates: int, seed: int) -> dict[str, Any]:
    """Return a cell's record: for each metric coverage, share undefined, and widths."""
    stage = Stage.of(cell)
    rng = np.random.default_rng(seed)
    parts = []
    before = []
    for start in range(0, replicates, BATCH):
        drawn = stage.draws(min(BATCH, replicates - start), rng)
        values, ends = intervals(stage, drawn)
        if start == 0:
            checked(stage, drawn, ends)
        own = METRICS.index(cell.plan)
        before.append(as_before(stage, drawn, values[own]))
        parts.append((values, ends))
    values, ends = (np.concatenate([part[j] for part in parts], axis=-1) for j in range(2))
    old = np.concatenate(before, axis=-1)
    target = truths(stage)
    inside = (ends[:, 0] <= target[:, None] + 1e-9) & (target[:, None] <= ends[:, 1] + 1e-9)
    defined = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        spread = np.array(
            [row[keep].std() if keep.any() else np.nan for row, keep in zip(values, defined, strict=True)]
        )
    own = METRICS.index(cell.plan)
    rows = {
        name: {
            "truth": float(target[k]),
            "coverage": float(inside[k].mean()),
            "undefined": float(1.0 - defined[k].mean()),
            "width": float(np.mean(ends[k, 1] - ends[k, 0])),
            "knowing": float(2.0 * 1.959964 * spread[k]),
        }
        for k, name in enumerate(METRICS)
    }
    rows[cell.plan]["before"] = float(np.mean((old[0] <= target[own]) & (target[own] <= old[1])))
    rows[cell.plan]["width before"] = float(np.mean(old[1] - old[0]))
    return {**asdict(cell), "replicates": replicates, "metrics": rows}


def checked(stage: Stage, drawn: Drawn, ends: FloatArray) -> None:
    """Compare the first draws of one round with what `estimate` says of them."""
    if stage.cell.rounds > 1:
        return
    for row in range(CHECKED):
        sample, labels = stage.labels_of(drawn.seen[row], drawn.counts[row])
        table = stratal.estimate(sample, labels, estimand=ClassReport(METRICS, ["match"]))
        for k, name in enumerate(METRICS):
            of = None if name in ("balanced_accuracy", "mcc", "accuracy") else "match"
            found = [*table.of(metric=name, **{"class": of}).confidence_interval()]
            if not np.allclose(found, ends[k, :, row], atol=2e-3):
                raise AssertionError(f"{stage.cell} {name}: {found} is not {ends[k, :, row]}")


def stored(store: Path) -> dict[Cell, dict[str, Any]]:
    """Return the records so far, the last of each cell."""
    names = Cell.__dataclass_fields__
    lines = store.read_text().splitlines() if store.exists() else []
    records = [json.loads(line) for line in lines]
    return {Cell(**{name: record[name] for name in names}): record for record in records}


def lowest(record: dict[str, Any] | None) -> float:
    """Return the least coverage of a cell's metrics; 1 of a cell that was not run."""
    return 1.0 if record is None else min(row["coverage"] for row in record["metrics"].values())


def run(options: argparse.Namespace) -> None:
    """Run the cells that are not stored, then those that cover too little once more, the worst first."""
    store = Path(options.store)
    store.parent.mkdir(parents=True, exist_ok=True)
    todo = [cell for cell in cells(options.plans) if options.only in f"{cell}"]
    for again, more in ((False, options.replicates), (True, options.more)):
        known = stored(store)
        order = sorted(range(len(todo)), key=lambda place: lowest(known.get(todo[place])))
        for place in order:
            cell = todo[place]
            old = known.get(cell)
            least = lowest(old)
            done = 0 if old is None else old["replicates"]
            if done >= more or (again and least >= AGAIN):
                continue
            record = measured(cell, more, seed=1_000_000 * again + place)
            with store.open("a") as file:
                file.write(json.dumps(record) + "\n")


def written(options: argparse.Namespace) -> None:
    """Write the page from the records."""
    records = [record for cell, record in stored(Path(options.store)).items() if cell.plan in options.plans]
    done = sum(record["replicates"] >= options.more for record in records)
    left = sum(record["replicates"] < options.more and lowest(record) < AGAIN for record in records)
    lines = [
        "# Metrics planned with wrong scores",
        "",
        f"95 % intervals of ten metrics of one class among {UNITS:,} units, on the same draws: seven kinds "
        f"of score × five rates × labels × one and two rounds, {'; '.join(planned_for(records))}. At least "
        f"{options.replicates:,} draws a cell, {options.more:,} of another seed where a metric covered less "
        f"than {AGAIN} ({done} of {done + left} such cells so far, the lowest first). A draw in which a "
        "metric is undefined counts as all possible values; the column says in how many of all draws.",
        "",
        "`knowing` is the interval of someone who knows the truth: 2 × 1.96 standard deviations of the "
        "estimates themselves. `before` is the interval that took the plan's word for how labels vary, of "
        "the metric that the sample was planned for, on the same draws.",
        "",
        f"Written by `python -m benchmarks.wrong_scores --replicates {options.replicates} --more "
        f"{options.more} --plans {' '.join(options.plans)}`.",
        "",
    ]
    for rounds in (1, 2):
        lines += [f"## {('One round', 'Two rounds')[rounds - 1]}", "", *summary(records, rounds), ""]
    lines += ["## Of the planned metric, before and now", "", *comparison(records), ""]
    lines += ["## Every cell: coverage", "", *every(records)]
    PAGE.write_text("\n".join(lines) + "\n")


def planned_for(records: list[dict[str, Any]]) -> Iterator[str]:
    """Yield how many cells there are of each plan, and of which numbers of labels."""
    for plan in dict.fromkeys(record["plan"] for record in records):
        own = [record["labels"] for record in records if record["plan"] == plan]
        yield f"{len(own)} cells planned for {plan} ({', '.join(map(str, sorted(set(own))))} labels)"


def summary(records: list[dict[str, Any]], rounds: int) -> Iterator[str]:
    yield "| metric | lowest coverage | its cell | mean coverage | width over knowing, median | undefined |"
    yield "|---|---|---|---|---|---|"
    some = [record for record in records if record["rounds"] == rounds]
    for name in METRICS:
        rows = [(record["metrics"][name], record) for record in some]
        if not rows:
            continue
        least, where = min(rows, key=lambda row: row[0]["coverage"])
        ratios = [row["width"] / row["knowing"] for row, _ in rows if row["knowing"] > 0]
        place = f"{where['kind']}, {where['rate']:.1%}, {where['labels']}, {where['plan']}"
        mean = np.mean([row["coverage"] for row, _ in rows])
        undefined = np.mean([row["undefined"] for row, _ in rows])
        yield (
            f"| {name} | {least['coverage']:.4f} | {place} ({where['replicates']:,}) | {mean:.3f} | "
            f"{np.median(ratios):.2f} | {undefined:.1%} |"
        )


def comparison(records: list[dict[str, Any]]) -> Iterator[str]:
    yield "| scores | planned for | coverage before | coverage now | width over before, mean |"
    yield "|---|---|---|---|---|"
    for kind in KINDS:
        for plan in dict.fromkeys(record["plan"] for record in records):
            rows = [r["metrics"][plan] for r in records if r["kind"] == kind and r["plan"] == plan]
            if not rows:
                continue
            old, new = ([row[name] for row in rows] for name in ("before", "coverage"))
            ratio = np.mean([row["width"] / row["width before"] for row in rows])
            yield (
                f"| {kind} | {plan} | {min(old):.3f}–{max(old):.3f} | {min(new):.3f}–{max(new):.3f} | "
                f"{ratio:.2f} |"
            )


def every(records: list[dict[str, Any]]) -> Iterator[str]:
    yield "| plan | scores | rate | labels | rounds | draws | " + " | ".join(METRICS) + " |"
    yield "|" + "---|" * (6 + len(METRICS))
    for record in records:
        named = f"{record['plan']} | {record['kind']} | {record['rate']:.1%} | {record['labels']}"
        found = " | ".join(f"{record['metrics'][name]['coverage']:.3f}" for name in METRICS)
        yield f"| {named} | {record['rounds']} | {record['replicates']:,} | {found} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=400)
    parser.add_argument("--more", type=int, default=10_000)
    parser.add_argument("--plans", nargs="+", default=["f1", "recall"])
    parser.add_argument("--only", default="", help="cells whose text has this")
    parser.add_argument("--store", default=str(STORE))
    parser.add_argument("--page-only", action="store_true")
    options = parser.parse_args()
    os.nice(2)
    if not options.page_only:
        run(options)
    written(options)


if __name__ == "__main__":
    main()
