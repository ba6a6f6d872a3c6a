"""Thresholds with a guarantee: how often it is violated, how much is accepted, and how bands cover.

    OMP_NUM_THREADS=1 python -m benchmarks.thresholds [--draws 2000] [--bands 400] [--store FILE]

Pools of 5,000 units have scores that are calibrated, inflated, inverted, constant, or tied at ten values, and
new outcomes in every run. Labels are a simple random sample, the default plan of `stratal.plan` on the
score, two rounds (a quarter of the labels at random, then equal rates in the planned region) or whole
clusters of five units with correlated outcomes. Sets, evidence and decision are those of `stratal.threshold`.

- **Violations**: the share of runs in which the accepted set violates the requirement. The limit is the error
  of all units divided by 1.02, so that sets of a worthless score violate it by little; recall of at least .8
  and a false positive rate of at most .05 where units of a class are looked for.
- **Accepted**: the mean share of accepted units, those of runs without a set included, over the mean largest
  share that satisfies the requirement, for an error of at most .05. "Split sample" chooses a threshold on
  half of the labels, and tests it alone on the other half by Clopper and Pearson's limit, with 95 %
  confidence; the number is the part of the limit that its choice aims at.
- **Bands**: the share of runs in which the simultaneous bands of precision, recall, F1 and false positive
  rate hold at all ten thresholds.

Every cell has a tenth of the draws first, and then all of them, cells with the most violations first. A run
that was stopped goes on from the finished cells in `--store`.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from benchmarks.helpers import circumstances
from scipy.special import betainc, expit, logit

import stratal
from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.designs import StratifiedWeighting, Weighting
from stratal.intervals import simultaneous
from stratal.metrics.threshold_goal import ERROR, SetRequirement
from stratal.strata.region import PILOT_SHARE, PilotCells, planned_region, total_labels
from stratal.thresholds.curves import CURVES, curve_of
from stratal.thresholds.decision import decide
from stratal.thresholds.evidence import set_evidence
from stratal.thresholds.sets import CandidateSets, LabelledScores, candidate_sets

RESULTS = Path(__file__).resolve().parent / "results" / "thresholds.md"

UNITS = 5_000
RATES = (0.005, 0.05, 0.3)
LABELS = (100, 400, 1_000)
BAND_LABELS = (400, 100)
SCORES = ("calibrated", "inflated", "inverted", "constant", "ties")
RANDOM = "random"
PLANNED = "planned"
TWO_ROUNDS = "two rounds"
CLUSTERS = "clusters"
DESIGNS = (RANDOM, PLANNED, TWO_ROUNDS, CLUSTERS)
METRICS = (ERROR, "recall", "false_positive_rate")
LIMITS = {"recall": 0.8, "false_positive_rate": 0.05}
EFFICIENCY_LABELS = (400, 1_000, 200)
EFFICIENCY_RATES = (0.06, 0.1, 0.15, 0.2, 0.3)
EFFICIENCY_SCORES = ("calibrated", "inflated", "deflated", "ties")
EFFICIENCY_LIMIT = 0.05
SPLIT = "split sample"
CLUSTER_SIZE = 5
# Correlation of the outcomes of a cluster, as the standard deviation of their common shift of the logit.
CLUSTER_SHIFT = 1.0
# Draws of the largest statistic; 50,000 in the package.
STATISTICS = 5_000
TOLERATED = 0.05
FIRST_SHARE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What is simulated: a metric, or `efficiency`, or `bands`."""

    metric: str
    score: str
    rate: float
    labels: int
    design: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pool:
    """Scores (N,) of units with probabilities (N,) of a right answer, or of the class."""

    score: FloatArray
    probability: FloatArray


@cache
def pool(score: str, rate: float) -> Pool:
    """Return a pool whose mean probability of a wrong answer (of an error) is `rate`."""
    rng = np.random.default_rng(11)
    spread = rng.normal(0.0, 1.8, UNITS)
    low, high = -15.0, 15.0
    for _ in range(60):
        shift = 0.5 * (low + high)
        if np.mean(expit(spread + shift)) < 1.0 - rate:
            low = shift
        else:
            high = shift
    probability = expit(spread + shift)
    logits = logit(np.clip(probability, 1e-9, 1 - 1e-9))
    scores = {
        "calibrated": probability,
        "inflated": expit(2.0 * logits + 1.0),
        "deflated": expit(0.5 * logits),
        "inverted": 1.0 - probability,
        "constant": np.full(UNITS, 0.9),
        "ties": np.round(probability, 1),
    }
    if score == "constant":
        probability = np.full(UNITS, 1.0 - rate)
    return Pool(score=scores[score], probability=probability)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Strata:
    """Strata (N,) with labels n_h (H,)."""

    codes: IntArray
    counts: IntArray


@cache
def planned_strata(score: str, rate: float, labels: int) -> Strata:
    """Return the strata of the default plan; one stratum where the score is constant."""
    population = stratal.Population.from_arrays(proxy={"score": pool(score, rate).score})
    plan = stratal.plan(population, labels)
    sample = plan.draw(seed=1)
    rule = sample.design.rule
    counts = sample.design.counts
    assert counts is not None
    codes = np.zeros(UNITS, np.int64) if rule is None else population.codes(rule)
    assert codes is not None
    return Strata(codes=np.asarray(codes, dtype=np.int64), counts=np.asarray(counts))


def drawn_units(rng: np.random.Generator, strata: Strata) -> IntArray:
    """Return the units of a stratified sample (n,)."""
    keys = strata.codes + rng.random(UNITS)
    order = np.argsort(keys)
    sizes = np.bincount(strata.codes, minlength=len(strata.counts))
    starts = np.cumsum(sizes) - sizes
    places = [order[start : start + count] for start, count in zip(starts, strata.counts, strict=True)]
    return np.concatenate(places)


def smallest_sets(sets: CandidateSets, scores: FloatArray) -> IntArray:
    """Return the index of the smallest of nested sets that has each unit (N,)."""
    return np.searchsorted(-sets.thresholds[:, 0], -scores)


def stratified_labels(
    units: IntArray, codes: IntArray, scores: FloatArray, outcomes: FloatArray, sets: CandidateSets
) -> tuple[LabelledScores, Weighting]:
    """Return the labels of units (n,) from strata (N,)."""
    n_strata = int(codes.max()) + 1
    group_sizes = np.bincount(codes, minlength=n_strata)
    # Sets are nested: units by stratum and smallest set, summed from the smallest set on.
    n_sets = len(sets.group)
    smallest = smallest_sets(sets, scores)
    table = np.bincount(codes * n_sets + smallest, minlength=n_strata * n_sets)
    sizes = np.cumsum(table.reshape(n_strata, -1), axis=1)
    weighting = StratifiedWeighting(stratum=codes[units], sizes=group_sizes)
    labels = LabelledScores(
        outcomes=outcomes[units],
        scores=scores[units, None],
        group=np.zeros(len(units), np.int64),
        stratum=codes[units],
        weights=weighting.weights / weighting.weights.sum(),
        sizes=sizes,
        group_sizes=group_sizes[:, None],
    )
    return labels, weighting


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draw:
    """Sets fixed before the labels, the labels with their weighting, and the outcomes of all units (N,)."""

    sets: CandidateSets
    labels: LabelledScores
    weighting: Weighting
    outcomes: FloatArray


def draw(rng: np.random.Generator, cell: Cell, faults: float, *, is_of_class: bool = False) -> Draw:
    """Draw outcomes and labels of a design; `faults` is the limit that two rounds are planned for."""
    units = pool(cell.score, cell.rate)
    probability = 1.0 - units.probability if is_of_class else units.probability
    score = 1.0 - units.score if is_of_class else units.score
    if cell.design == CLUSTERS:
        return cluster_draw(rng, cell, score, probability)
    outcomes = (rng.random(UNITS) < probability).astype(np.float64)
    if cell.design == TWO_ROUNDS:
        return two_round_draw(rng, cell, score, outcomes, faults)
    strata = Strata(codes=np.zeros(UNITS, np.int64), counts=np.array([cell.labels]))
    if cell.design == PLANNED:
        strata = planned_strata(cell.score, cell.rate, cell.labels)
    chosen = drawn_units(rng, strata)
    sets = candidate_sets(score[chosen, None], np.zeros(len(chosen), np.int64), ("",))
    labels, weighting = stratified_labels(chosen, strata.codes, score, outcomes, sets)
    return Draw(sets=sets, labels=labels, weighting=weighting, outcomes=outcomes)


def cluster_draw(rng: np.random.Generator, cell: Cell, score: FloatArray, probability: FloatArray) -> Draw:
    """Draw whole clusters of five units, which are neighbours of no kind, with a common shift."""
    order = rng.permutation(UNITS)
    cluster = np.empty(UNITS, np.int64)
    cluster[order] = np.arange(UNITS) // CLUSTER_SIZE
    n_clusters = UNITS // CLUSTER_SIZE
    shift = rng.normal(0.0, CLUSTER_SHIFT, n_clusters)[cluster]
    logits = logit(np.clip(probability, 1e-9, 1 - 1e-9))
    outcomes = (rng.random(UNITS) < expit(logits + shift)).astype(np.float64)
    chosen_clusters = rng.choice(n_clusters, cell.labels // CLUSTER_SIZE, replace=False)
    chosen = np.flatnonzero(np.isin(cluster, chosen_clusters))
    codes = np.unique(cluster[chosen], return_inverse=True)[1]
    sets = candidate_sets(score[chosen, None], np.zeros(len(chosen), np.int64), ("",))
    labels = LabelledScores(
        outcomes=outcomes[chosen],
        scores=score[chosen, None],
        group=np.zeros(len(chosen), np.int64),
        stratum=np.zeros(len(chosen), np.int64),
        weights=np.full(len(chosen), 1.0 / len(chosen)),
        cluster=codes,
        is_random_in_strata=False,
    )
    weighting = StratifiedWeighting(stratum=np.zeros(len(chosen), np.int64), sizes=np.array([UNITS]))
    return Draw(sets=sets, labels=labels, weighting=weighting, outcomes=outcomes)


_CELLS: dict[tuple[str, float], tuple[CandidateSets, IntArray]] = {}


def cells_of_score(cell: Cell, score: FloatArray) -> tuple[CandidateSets, IntArray]:
    """Return the sets of a pool, which its scores alone determine, and the cell of each unit (N,)."""
    key = cell.score, cell.rate
    if key not in _CELLS:
        sets = candidate_sets(score[:, None], np.zeros(UNITS, np.int64), ("",))
        _CELLS[key] = sets, smallest_sets(sets, score)
    return _CELLS[key]


def two_round_draw(
    rng: np.random.Generator, cell: Cell, score: FloatArray, outcomes: FloatArray, faults: float
) -> Draw:
    """Draw a quarter of the labels in proportion to 20 cells, then equal rates in the planned region."""
    sets, codes = cells_of_score(cell, score)
    sizes = np.bincount(codes, minlength=len(sets.group))
    keys = rng.random(UNITS)
    order = np.argsort(codes + keys)
    starts = np.cumsum(sizes) - sizes
    pilot = largest_remainders(sizes, int(PILOT_SHARE * cell.labels))
    rank = np.empty(UNITS, np.int64)
    rank[order] = np.arange(UNITS) - starts[codes[order]]
    first = rank < pilot[codes]
    cells = PilotCells(
        sizes=sizes,
        scores=np.bincount(codes, score) / sizes,
        counts=pilot,
        rights=np.asarray(np.bincount(codes[first], outcomes[first], minlength=len(sizes)), np.float64),
    )
    region = planned_region(cells, cell.labels, faults)
    totals = total_labels(sizes, pilot, region, cell.labels)
    chosen = np.flatnonzero(rank < totals[codes])
    labels, weighting = stratified_labels(chosen, codes, score, outcomes, sets)
    return Draw(sets=sets, labels=labels, weighting=weighting, outcomes=outcomes)


def largest_remainders(sizes: IntArray, labels: int) -> IntArray:
    """Return a proportional allocation (H,)."""
    exact = labels * sizes / sizes.sum()
    counts = np.floor(exact).astype(np.int64)
    counts[np.argsort(-(exact - counts), kind="stable")[: labels - int(counts.sum())]] += 1
    return np.asarray(counts)


def true_faults(metric: str, members: BoolArray, outcomes: FloatArray) -> FloatArray:
    """Return the rates of faults (J,) of sets of the population (N, J)."""
    if metric == ERROR:
        return np.asarray((1.0 - outcomes) @ members / np.maximum(members.sum(axis=0), 1))
    domain = outcomes if metric == "recall" else 1.0 - outcomes
    share = domain @ members / max(domain.sum(), 1.0)
    return np.asarray(1.0 - share if metric == "recall" else share)


def violations(cell: Cell, draws: int, seed: int) -> dict[str, float]:
    """Return the share of runs in which the accepted set violates the requirement, and of runs with a set."""
    rng = np.random.default_rng(seed)
    limit = LIMITS.get(cell.metric, cell.rate / 1.02)
    requirement = SetRequirement(metric=cell.metric, limit=limit)
    violated = 0
    accepting = 0
    for _ in range(draws):
        drawn = draw(rng, cell, requirement.faults, is_of_class=cell.metric != ERROR)
        place = accepted_place(requirement, drawn)
        if place is None:
            continue
        accepting += 1
        units = pool(cell.score, cell.rate)
        score = units.score if cell.metric == ERROR else 1.0 - units.score
        members = score[:, None] >= drawn.sets.thresholds[place]
        faults = true_faults(cell.metric, members, drawn.outcomes)[0]
        violated += bool(faults > requirement.faults)
    return {"violations": float(violated / draws), "accepting": accepting / draws}


def accepted_place(requirement: SetRequirement, drawn: Draw) -> int | None:
    """Return the index of the set that is accepted; None if there is none."""
    evidence = set_evidence(requirement.metric, drawn.labels, drawn.sets)
    if evidence.faults is not None and not requirement.is_monotone:
        # A local error is between that of Bonferroni and the whole: most runs are decided without simulation.
        p_values = evidence.faults.p_values(requirement.faults)
        passing = np.flatnonzero(p_values <= TOLERATED)
        if len(passing) == 0:
            return None
        if p_values[passing[-1]] <= TOLERATED / len(p_values):
            return int(passing[-1])
    decision = decide(requirement, evidence, drawn.sets, TOLERATED, draws=STATISTICS)
    places = np.flatnonzero(decision.accepted)
    if len(places) == 0:
        return None
    return int(places[0] if requirement.seeks_smallest_set else places[-1])


def efficiency(cell: Cell, draws: int, seed: int) -> dict[str, float]:
    """Return the mean accepted share and the mean largest valid share, and the share of violations."""
    rng = np.random.default_rng(seed)
    requirement = SetRequirement(metric=ERROR, limit=EFFICIENCY_LIMIT)
    score = pool(cell.score, cell.rate).score
    order = np.argsort(-score, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(score[order]) != 0, True))
    shares = []
    largest = []
    violated = 0
    source = RANDOM if cell.design.startswith(SPLIT) else cell.design
    for _ in range(draws):
        drawn = draw(rng, Cell(**{**asdict(cell), "design": source}), EFFICIENCY_LIMIT)
        errors = np.cumsum(1.0 - drawn.outcomes[order])[ends] / (ends + 1)
        valid = ends[errors <= EFFICIENCY_LIMIT]
        largest.append((valid[-1] + 1) / UNITS if len(valid) else 0.0)
        if source == cell.design:
            place = accepted_place(requirement, drawn)
            cut = None if place is None else float(drawn.sets.thresholds[place, 0])
        else:
            cut = split_threshold(rng, drawn.labels, float(cell.design.split()[-1]))
        members = np.zeros(UNITS, dtype=bool) if cut is None else score >= cut
        shares.append(members.mean())
        violated += cut is not None and bool(np.mean(1.0 - drawn.outcomes[members]) > EFFICIENCY_LIMIT)
    return {
        "accepted": float(np.mean(shares)),
        "largest": float(np.mean(largest)),
        "violations": float(violated / draws),
    }


def split_threshold(rng: np.random.Generator, labels: LabelledScores, aim: float) -> float | None:
    """Return the threshold chosen on half of the labels, if the other half shows that its error is small.

    The choice is the largest set whose error in the first half is at most `aim` of the limit.
    """
    order = rng.permutation(len(labels.outcomes))
    half = len(order) // 2
    score = labels.scores[:, 0]
    first = order[:half][np.argsort(-score[order[:half]], kind="stable")]
    errors = np.cumsum(1.0 - labels.outcomes[first]) / np.arange(1, half + 1)
    places = np.flatnonzero(errors <= aim * EFFICIENCY_LIMIT)
    if len(places) == 0:
        return None
    threshold = float(score[first[places[-1]]])
    second = order[half:][score[order[half:]] >= threshold]
    faults = float(np.sum(1.0 - labels.outcomes[second]))
    rest = len(second) - faults
    passes = rest > 0 and 1.0 - betainc(faults + 1.0, rest, EFFICIENCY_LIMIT) <= TOLERATED
    return threshold if passes else None


def bands(cell: Cell, draws: int, seed: int) -> dict[str, float]:
    """Return the coverage of the simultaneous bands of each metric."""
    simultaneous._DRAWS = STATISTICS
    rng = np.random.default_rng(seed)
    units = pool(cell.score, cell.rate)
    covered = dict.fromkeys(CURVES, 0)
    for _ in range(draws):
        drawn = draw(rng, cell, EFFICIENCY_LIMIT, is_of_class=True)
        curve = curve_of(drawn.labels, drawn.sets, drawn.weighting, "population", 0.95)
        cuts = np.array([-np.inf if p.threshold is None else p.threshold for p in curve.points])
        members = (1.0 - units.score)[:, None] >= cuts
        positives = drawn.outcomes.sum()
        hits = drawn.outcomes @ members
        sizes = members.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            true = {
                "precision": hits / sizes,
                "recall": hits / positives,
                "f1": 2.0 * hits / (sizes + positives),
                "false_positive_rate": (sizes - hits) / (UNITS - positives),
            }
        for metric in CURVES:
            ends = np.array([point.metrics[metric].simultaneous for point in curve.points])
            inside = (ends[:, 0] <= true[metric] + 1e-9) & (true[metric] <= ends[:, 1] + 1e-9)
            covered[metric] += bool(np.all(inside | np.isnan(true[metric])))
    return {metric: count / draws for metric, count in covered.items()}


def guarantee_cells() -> Iterator[Cell]:
    """Yield the cells of the guarantee."""
    for metric, score, rate, labels, design in product(METRICS, SCORES, RATES, LABELS, DESIGNS):
        if metric != ERROR and design == TWO_ROUNDS:
            continue  # the region is planned for an error
        yield Cell(metric=metric, score=score, rate=rate, labels=labels, design=design)


def efficiency_cells() -> Iterator[Cell]:
    """Yield the cells of the efficiency."""
    rules = (RANDOM, PLANNED, TWO_ROUNDS, *(f"{SPLIT} {aim}" for aim in (0.25, 0.5, 0.75)))
    for labels, design, score, rate in product(EFFICIENCY_LABELS, rules, EFFICIENCY_SCORES, EFFICIENCY_RATES):
        yield Cell(metric="efficiency", score=score, rate=rate, labels=labels, design=design)


def band_cells() -> Iterator[Cell]:
    """Yield the cells of the bands."""
    for labels, score, rate, design in product(BAND_LABELS, SCORES[:3], RATES[1:], (RANDOM, PLANNED)):
        yield Cell(metric="bands", score=score, rate=rate, labels=labels, design=design)


def all_cells() -> list[Cell]:
    """Return all cells, those of an error first."""
    guarantee = list(guarantee_cells())
    of_error = [cell for cell in guarantee if cell.metric == ERROR]
    others = [cell for cell in guarantee if cell.metric != ERROR]
    return [*of_error, *efficiency_cells(), *band_cells(), *others]


def is_secondary(cell: Cell) -> bool:
    """Return whether a cell is of the efficiency at a number of labels for which nothing is required."""
    return cell.metric == "efficiency" and cell.labels == EFFICIENCY_LABELS[-1]


def measure(cell: Cell, draws: int, seed: int) -> dict[str, float]:
    """Return the figures of a cell."""
    if cell.metric == "efficiency":
        return efficiency(cell, draws, seed)
    if cell.metric == "bands":
        return bands(cell, draws, seed)
    return violations(cell, draws, seed)


def main(arguments: list[str] | None = None) -> None:
    """Measure all cells and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=2_000)
    parser.add_argument("--bands", type=int, default=400)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--stored", action="store_true", help="write the page of the finished cells")
    options = parser.parse_args(arguments)
    stored: dict[str, dict[str, float]] = {}
    if options.store is not None and options.store.exists():
        stored = json.loads(options.store.read_text())
    figures: dict[Cell, dict[str, float]] = {}
    drawn = {}
    # A tenth of the draws of every cell first, so that a run that is stopped has figures of all.
    order = sorted(enumerate(all_cells()), key=lambda entry: is_secondary(entry[1]))
    for share in (FIRST_SHARE, 1.0):
        if figures:
            order.sort(key=lambda entry: -figures.get(entry[1], {}).get("violations", 0.0))
        for place, cell in order:
            full = options.draws if cell.metric in METRICS else options.bands
            draws = max(round(share * full), 1)
            key = json.dumps([*asdict(cell).values(), draws])
            if key not in stored and options.stored:
                continue
            if key not in stored:
                stored[key] = measure(cell, draws, place)
                if options.store is not None:
                    options.store.write_text(json.dumps(stored))
            figures[cell] = stored[key]
            drawn[cell] = draws
    RESULTS.write_text(page(figures, drawn, options.draws, options.bands))


def page(figures: dict[Cell, dict[str, float]], drawn: dict[Cell, int], draws: int, band_draws: int) -> str:
    """Return the page of figures with so many draws (`drawn`), of those that were asked for."""
    counts = Counter((cell.metric, number) for cell, number in drawn.items())
    finished = [
        f"- {metric}: {count:,} cells with {number:,} draws" for (metric, number), count in counts.items()
    ]
    lines = [
        "# Thresholds with a guarantee",
        "",
        f"`python -m benchmarks.thresholds --draws {draws} --bands {band_draws}`, {circumstances()}",
        "",
        (__doc__ or "").split("\n\n", 2)[2].strip(),
        "",
        f"Finished: {len(figures):,} of {len(all_cells()):,} cells.",
        "",
        *finished,
        "",
        *guarantee_tables(figures),
        *efficiency_tables(figures),
        *band_tables(figures),
    ]
    return "\n".join(lines) + "\n"


def guarantee_tables(figures: dict[Cell, dict[str, float]]) -> list[str]:
    """Return the tables of violations: the largest over scores, rates and numbers of labels."""
    lines = ["## Violations", ""]
    lines += [
        "Largest share over scores; in brackets the share of runs with an accepted set.",
        "",
    ]
    for metric in METRICS:
        header = [f"{rate:g}, n = {labels:,}" for rate, labels in product(RATES, LABELS)]
        lines += [f"### {metric}", "", f"| design | {' | '.join(header)} |", f"|---|{'---:|' * len(header)}"]
        for design in DESIGNS:
            entries = []
            for rate, labels in product(RATES, LABELS):
                rows = [
                    row
                    for cell, row in figures.items()
                    if (cell.metric, cell.rate, cell.labels, cell.design) == (metric, rate, labels, design)
                ]
                if rows:
                    worst = max(rows, key=lambda row: row["violations"])
                    entries.append(f"{worst['violations']:.4f} ({worst['accepting']:.2f})")
                else:
                    entries.append("–")
            lines.append(f"| {design} | {' | '.join(entries)} |")
        lines.append("")
    return lines


def efficiency_tables(figures: dict[Cell, dict[str, float]]) -> list[str]:
    """Return the table of accepted shares relative to the largest valid ones, and the two ratios."""
    rows = {cell: row for cell, row in figures.items() if cell.metric == "efficiency"}
    if not rows:
        return []
    lines = ["## Accepted", "", "Over the largest valid share, and largest share of violations.", ""]
    lines += ["| rule | n = 400 | n = 1,000 | n = 200 | violations |", "|---|---:|---:|---:|---:|"]
    rules = list(dict.fromkeys(cell.design for cell in rows))
    for rule in rules:
        entries = [relative_share(rows, rule, labels) for labels in EFFICIENCY_LABELS]
        worst = max(row["violations"] for cell, row in rows.items() if cell.design == rule)
        lines.append(f"| {rule} | {' | '.join(entries)} | {worst:.3f} |")
    at_400 = {cell: row for cell, row in rows.items() if cell.labels == 400}
    weak = {
        (cell.score, cell.rate)
        for cell, row in at_400.items()
        if cell.design == RANDOM and row["accepted"] < 0.5 * row["largest"]
    }
    hard = {cell: row for cell, row in at_400.items() if (cell.score, cell.rate) in weak}
    lines += ["", "Ratio of the mean accepted shares of two rounds and of random labels, n = 400:", ""]
    lines.append(f"- all {len(EFFICIENCY_SCORES) * len(EFFICIENCY_RATES)} pools: {share_ratio(at_400):.2f}")
    if hard:
        text = (
            f"- the {len(weak)} pools where random labels certify less than half of the largest valid share"
        )
        lines.append(f"{text}: {share_ratio(hard):.2f}")
    return [*lines, ""]


def relative_share(rows: dict[Cell, dict[str, float]], rule: str, labels: int) -> str:
    """Return the sum of accepted shares over that of the largest valid ones; – if pools are missing."""
    chosen = [row for cell, row in rows.items() if cell.design == rule and cell.labels == labels]
    if len(chosen) < len(EFFICIENCY_SCORES) * len(EFFICIENCY_RATES):
        return "–"
    return f"{sum(row['accepted'] for row in chosen) / sum(row['largest'] for row in chosen):.3f}"


def share_ratio(rows: dict[Cell, dict[str, float]]) -> float:
    """Return the accepted share of two rounds over that of random labels."""
    sums = {
        design: sum(row["accepted"] for cell, row in rows.items() if cell.design == design)
        for design in (TWO_ROUNDS, RANDOM)
    }
    return sums[TWO_ROUNDS] / max(sums[RANDOM], 1e-12)


def band_tables(figures: dict[Cell, dict[str, float]]) -> list[str]:
    """Return the table of the least coverages of the bands."""
    rows = {cell: row for cell, row in figures.items() if cell.metric == "bands"}
    if not rows:
        return []
    lines = ["## Bands", "", "Least simultaneous coverage at ten thresholds, over scores and rates.", ""]
    lines += [f"| design | n | {' | '.join(CURVES)} |", f"|---|---:|{'---:|' * len(CURVES)}"]
    for design, labels in product((RANDOM, PLANNED), BAND_LABELS):
        chosen = [row for cell, row in rows.items() if (cell.design, cell.labels) == (design, labels)]
        if chosen:
            entries = [f"{min(row[metric] for row in chosen):.3f}" for metric in CURVES]
            lines.append(f"| {design} | {labels:,} | {' | '.join(entries)} |")
    return [*lines, ""]


if __name__ == "__main__":
    main()
