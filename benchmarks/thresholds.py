"""Thresholds with a guarantee: how often it is violated, how much is accepted, and how bands cover.

    OMP_NUM_THREADS=1 python -m benchmarks.thresholds [--draws 2000] [--bands 400] [--jobs 2] [--store FILE]

Pools of 5,000 units have scores that are calibrated, inflated, inverted, constant, tied at ten values, or
noise, and new outcomes in every run. Labels are a simple random sample, the default plan of `stratal.plan` on
the score, two rounds (a quarter of the labels at random, then equal rates in the planned region) or whole
clusters of five units with correlated outcomes; there, "gathered" errors fill a tenth of the clusters. Random
labels also have sets in each of four groups, and sets of two scores. Sets, evidence and decision are those of
`stratal.threshold`.

- **Violations**: the share of runs in which the accepted set violates the requirement; of groups and two
  scores, in which any accepted set does. The limit is the error of all units divided by 1.02, so that sets of
  a worthless score violate it by little; recall of at least .8 and a false positive rate of at most .05 where
  units of a class are looked for. "Future error" is that of future units with these scores.
- **Accepted**: the mean share of accepted units, those of runs without a set included, over the mean largest
  share that satisfies the requirement, for an error of at most .05. "Split sample" chooses a threshold on
  half of the labels, and tests it alone on the other half by Clopper and Pearson's limit, with 95 %
  confidence, as split-sample conformal risk control does with such a limit; the number is the part of the
  limit that its choice aims at.
- **Rare class**: the same for a precision of at least .9 in a population of 500,000 units, of which .3 % (or
  5 %) are of the class; two normal scores at a distance of 4 (or 3) give the probability, and an
  overconfident score doubles its log-odds. Two rounds label only the highest scores, twice as many units as
  the class has by the score.
- **Single limits**: how often the upper limit of one set at .95 lies below its mean, for seven allocations to
  ten strata and five profiles of errors over them.
- **Bands**: the share of runs in which the simultaneous bands of precision, recall, F1 and false positive
  rate hold at all ten thresholds.
- **Calibration**: the share of runs in which the intervals of `calibration:SCORE` hold, the outcomes of all
  bins together.

A run that was stopped goes on from the finished cells in `--store`.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from unittest import mock

import numpy as np
from benchmarks.helpers import circumstances
from scipy.special import betainc, expit, logit

import stratal
from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.designs import StratifiedWeighting, Weighting
from stratal.designs.clusters import ClusterWeighting
from stratal.intervals import simultaneous
from stratal.metrics.calibration import ScoreBins, calibration_rows
from stratal.metrics.threshold_goal import ERROR, SetRequirement
from stratal.strata.region import PILOT_SHARE, PilotCells, planned_region, total_labels
from stratal.thresholds.curves import CURVES, curve_of
from stratal.thresholds.decision import decide
from stratal.thresholds.evidence import set_evidence
from stratal.thresholds.limits import WeightedTotals
from stratal.thresholds.sets import N_SETS, CandidateSets, LabelledScores, candidate_sets, cell_weights
from stratal.thresholds.step_down import correlations_of, step_down

RESULTS = Path(__file__).resolve().parent / "results" / "thresholds.md"

UNITS = 5_000
RATES = (0.005, 0.05, 0.3)
LABELS = (100, 400, 1_000)
BAND_LABELS = (400, 100)
SCORES = ("calibrated", "inflated", "inverted", "constant", "ties", "noise")
# Of clusters only: a tenth have all five units at the high score, all wrong; the others have one, right.
GATHERED = "gathered"
BAD_CLUSTERS = 0.1
RANDOM = "random"
PLANNED = "planned"
TWO_ROUNDS = "two rounds"
CLUSTERS = "clusters"
GROUPS = "four groups"
TWO_SCORES = "two scores"
DESIGNS = (RANDOM, PLANNED, TWO_ROUNDS, CLUSTERS, GROUPS, TWO_SCORES)
FUTURE = "future error"
METRICS = (ERROR, FUTURE, "recall", "false_positive_rate")
LIMITS = {"recall": 0.8, "false_positive_rate": 0.05}
DESIGNS_OF = {
    ERROR: DESIGNS,
    FUTURE: (RANDOM, PLANNED, TWO_ROUNDS),
    "recall": DESIGNS[:4],
    "false_positive_rate": DESIGNS[:4],
}
EFFICIENCY = "efficiency"
EFFICIENCY_LABELS = (200, 400, 1_000)
EFFICIENCY_RATES = (0.06, 0.1, 0.15, 0.2, 0.3)
EFFICIENCY_SCORES = ("calibrated", "inflated", "deflated", "ties")
EFFICIENCY_LIMIT = 0.05
SPLIT = "split sample"
RARE = "rare class"
# Distance of the normal scores of the class and the others, by the share of the class.
RARE_DISTANCES = {0.003: 4.0, 0.05: 3.0}
RARE_SCORES = ("calibrated", "overconfident")
RARE_LABELS = (60, 100, 200, 400, 1_000)
RARE_LIMIT = 0.1
RARE_UNITS = 500_000
BANDS = "bands"
# Largest share of others in the set that two rounds are planned for, where bands are measured.
BAND_LIMIT = 0.2
LIMIT = "single limits"
CALIBRATION = "calibration"
CALIBRATED_QUANTITIES = (
    *("brier", "squared_calibration_error", "resolution", "uncertainty"),
    *("expected_calibration_error", "outcome"),
)
N_GROUPS = 4
CLUSTER_SIZE = 5
# Correlation of the outcomes of a cluster, as the standard deviation of their common shift of the logit.
CLUSTER_SHIFT = 1.0
# Draws of the largest statistic; 50,000 in the package.
STATISTICS = 5_000
TOLERATED = 0.05
# Intervals of calibration take 200 times as long as a set.
SHARE_OF_CALIBRATION = 0.25
# Draws of other metrics than an error, and of sets of groups and of two scores, which take longest.
SHARE_OF_OTHERS = 0.25
LIMIT_DRAWS = 50_000
# Replicates that are drawn at once.
BATCH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What is simulated: a metric, or one of the other sections of the page."""

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
    if score == GATHERED:  # clusters have these scores
        score = "constant"
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
        "noise": rng.random(UNITS),
    }
    if score == "constant" or score == "noise":
        probability = np.full(UNITS, 1.0 - rate)
    return Pool(score=scores[score], probability=probability)


@cache
def rare_pool(score: str, rate: float) -> Pool:
    """Return the units that two rounds label: twice as many as the class has by the score, from the highest.

    The probability is that of the class, which counts as right.
    """
    rng = np.random.default_rng(11)
    distance = RARE_DISTANCES[rate]
    signal = rng.normal(0.0, 1.0, RARE_UNITS) + distance * (rng.random(RARE_UNITS) < rate)
    logits = logit(rate) + distance * signal - 0.5 * distance**2
    stated = expit(2.0 * logits if score == "overconfident" else logits)
    top = np.argsort(-stated, kind="stable")[: math.ceil(2.0 * stated.sum())]
    return Pool(score=stated[top], probability=expit(logits[top]))


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
    keys = strata.codes + rng.random(len(strata.codes))
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
    """Sets fixed before the labels, the labels with their weighting, and the outcomes of all units (N,).

    `members` (N, J) are the units of each set.
    """

    sets: CandidateSets
    labels: LabelledScores
    weighting: Weighting
    outcomes: FloatArray
    members: BoolArray


def oriented_pool(cell: Cell, *, is_of_class: bool) -> Pool:
    """Return the pool of a cell; of a class, the units that are wrong, with the score of that."""
    if cell.metric == RARE:
        return rare_pool(cell.score, cell.rate)
    units = pool(cell.score, cell.rate)
    if not is_of_class:
        return units
    return Pool(score=1.0 - units.score, probability=1.0 - units.probability)


def draw(rng: np.random.Generator, cell: Cell, faults: float, *, is_of_class: bool = False) -> Draw:
    """Draw outcomes and labels of a design; `faults` is the limit that two rounds are planned for."""
    units = oriented_pool(cell, is_of_class=is_of_class)
    score = units.score
    if cell.design == CLUSTERS:
        return cluster_draw(rng, cell, score, units.probability)
    outcomes = (rng.random(len(score)) < units.probability).astype(np.float64)
    if cell.design == TWO_ROUNDS:
        return two_round_draw(rng, cell, score, outcomes, faults, is_of_class=is_of_class)
    strata = Strata(codes=np.zeros(len(score), np.int64), counts=np.array([cell.labels]))
    if cell.design == PLANNED:
        strata = planned_strata(cell.score, cell.rate, cell.labels)
    chosen = drawn_units(rng, strata)
    if cell.design in (GROUPS, TWO_SCORES):
        return draw_of_several(cell, chosen, outcomes)
    sets = candidate_sets(score[chosen, None], np.zeros(len(chosen), np.int64), ("",))
    labels, weighting = stratified_labels(chosen, strata.codes, score, outcomes, sets)
    members = score[:, None] >= sets.thresholds[:, 0]
    return Draw(sets=sets, labels=labels, weighting=weighting, outcomes=outcomes, members=members)


@cache
def second_score(score: str, rate: float) -> FloatArray:
    """Return another score (N,) of the units of a pool: the probability with noise."""
    logits = logit(np.clip(pool(score, rate).probability, 1e-9, 1 - 1e-9))
    return np.asarray(expit(logits + np.random.default_rng(12).normal(0.0, 1.0, UNITS)))


def draw_of_several(cell: Cell, chosen: IntArray, outcomes: FloatArray) -> Draw:
    """Return a simple random sample (n,) with sets in each of four groups, or of two scores."""
    units = pool(cell.score, cell.rate)
    scores = units.score[:, None]
    group = np.zeros(UNITS, np.int64)
    groups: tuple[str, ...] = ("",)
    if cell.design == GROUPS:
        group = np.arange(UNITS) % N_GROUPS
        groups = tuple("abcd")
    else:
        scores = np.column_stack([units.score, second_score(cell.score, cell.rate)])
    sets = candidate_sets(scores[chosen], group[chosen], groups)
    members = sets.members(scores, group)
    weights = np.full(len(chosen), 1.0 / len(chosen))
    stratum = np.zeros(len(chosen), np.int64)
    labels = LabelledScores(
        outcomes=outcomes[chosen],
        scores=scores[chosen],
        group=group[chosen],
        stratum=stratum,
        weights=weights,
        sizes=members.sum(axis=0)[None],
        group_sizes=np.bincount(group)[None],
    )
    weighting = StratifiedWeighting(stratum=stratum, sizes=np.array([UNITS]))
    return Draw(sets=sets, labels=labels, weighting=weighting, outcomes=outcomes, members=members)


def cluster_draw(rng: np.random.Generator, cell: Cell, score: FloatArray, probability: FloatArray) -> Draw:
    """Draw whole clusters of five units, which are neighbours of no kind, with a common shift."""
    order = rng.permutation(UNITS)
    cluster = np.empty(UNITS, np.int64)
    cluster[order] = np.arange(UNITS) // CLUSTER_SIZE
    n_clusters = UNITS // CLUSTER_SIZE
    if cell.score == GATHERED:
        is_bad = rng.random(n_clusters) < BAD_CLUSTERS
        is_high = np.empty(UNITS, dtype=bool)
        is_high[order] = is_bad[cluster[order]] | (np.arange(UNITS) % CLUSTER_SIZE == 0)
        score = np.where(is_high, 0.9, 0.1)
        probability = np.where(is_high & ~is_bad[cluster], 1.0, 0.0)
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
    weighting = ClusterWeighting(
        cluster=codes,
        drawn=np.full(len(chosen_clusters), CLUSTER_SIZE),
        clusters=n_clusters,
        size=UNITS,
        squared_sizes=n_clusters * CLUSTER_SIZE**2,
    )
    members = score[:, None] >= sets.thresholds[:, 0]
    return Draw(sets=sets, labels=labels, weighting=weighting, outcomes=outcomes, members=members)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoreCells:
    """The sets of a pool, which its scores alone determine, their members, and the cell of each unit (N,)."""

    sets: CandidateSets
    codes: IntArray
    members: BoolArray


@cache
def cells_of_score(metric: str, score: str, rate: float, is_of_class: bool) -> ScoreCells:
    """Return the cells of a pool."""
    cell = Cell(metric=metric, score=score, rate=rate, labels=0, design=TWO_ROUNDS)
    units = oriented_pool(cell, is_of_class=is_of_class)
    sets = candidate_sets(units.score[:, None], np.zeros(len(units.score), np.int64), ("",))
    members = units.score[:, None] >= sets.thresholds[:, 0]
    return ScoreCells(sets=sets, codes=smallest_sets(sets, units.score), members=members)


def two_round_draw(
    rng: np.random.Generator,
    cell: Cell,
    score: FloatArray,
    outcomes: FloatArray,
    faults: float,
    *,
    is_of_class: bool,
) -> Draw:
    """Draw a quarter of the labels in proportion to 20 cells, then equal rates in the planned region."""
    score_cells = cells_of_score(RARE if cell.metric == RARE else ERROR, cell.score, cell.rate, is_of_class)
    sets = score_cells.sets
    codes = score_cells.codes
    sizes = np.bincount(codes, minlength=len(sets.group))
    keys = rng.random(len(score))
    order = np.argsort(codes + keys)
    starts = np.cumsum(sizes) - sizes
    pilot = largest_remainders(sizes, int(PILOT_SHARE * cell.labels))
    rank = np.empty(len(score), np.int64)
    rank[order] = np.arange(len(score)) - starts[codes[order]]
    first = rank < pilot[codes]
    cells = PilotCells(
        sizes=sizes,
        scores=np.bincount(codes, score) / sizes,
        counts=pilot,
        correct_labels=np.asarray(
            np.bincount(codes[first], outcomes[first], minlength=len(sizes)), np.float64
        ),
    )
    region = planned_region(cells, cell.labels, faults)
    totals = total_labels(sizes, pilot, region, cell.labels)
    chosen = np.flatnonzero(rank < totals[codes])
    labels, weighting = stratified_labels(chosen, codes, score, outcomes, sets)
    return Draw(sets=sets, labels=labels, weighting=weighting, outcomes=outcomes, members=score_cells.members)


def largest_remainders(sizes: IntArray | FloatArray, labels: int) -> IntArray:
    """Return a proportional allocation (H,)."""
    exact = labels * sizes / sizes.sum()
    counts = np.floor(exact).astype(np.int64)
    counts[np.argsort(-(exact - counts), kind="stable")[: labels - int(counts.sum())]] += 1
    return np.asarray(counts)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """Replicates of labels that are random within strata, as numbers of units in J nested sets.

    Parameters
    ----------
    sizes, counts, faults : int (R, H, J)
        Units, labels, and faults among the labels, of each stratum in each set.
    wrong : bool (R, N)
        Outcomes of all units, from the highest score down.
    """

    sizes: IntArray
    counts: IntArray
    faults: IntArray
    wrong: BoolArray

    @property
    def set_sizes(self) -> IntArray:
        """Units of each set (R, J)."""
        return np.asarray(self.sizes.sum(axis=1))

    def true_faults(self, rates: FloatArray | None = None) -> FloatArray:
        """Return the rates of faults of the sets (R, J); of future units from `rates` (N,) of faults."""
        faults = np.cumsum(self.wrong if rates is None else rates[None], axis=1)
        faults = np.broadcast_to(faults, self.wrong.shape)
        sizes = np.maximum(self.set_sizes, 1)
        return np.asarray(np.take_along_axis(faults, sizes - 1, axis=1) / sizes)

    def accepted(self, limit: float, *, is_finite: bool) -> IntArray:
        """Return the index of the set of each replicate (R,) that is accepted; −1 if there is none."""
        cells = cell_weights(self.counts, self.sizes, self.sizes[..., -1:], is_finite=is_finite)
        totals = WeightedTotals(
            total=np.sum(cells.weights * self.faults, axis=1),
            square=np.sum(cells.weights**2 * self.faults, axis=1),
            largest_weight=cells.weights.max(axis=1),
            unlabelled=cells.unlabelled,
            variance_reduction=cells.variance_reduction,
        )
        p_values = totals.p_values(limit)
        zeros = np.zeros_like(totals.total)
        can_pass = replace(totals, total=zeros, square=zeros).p_values(limit) <= TOLERATED
        places = np.arange(p_values.shape[1])
        # A local level is between that of Bonferroni and the whole: most are decided without simulation.
        last = np.where(p_values <= TOLERATED, places, -1).max(axis=1)
        is_open = (last >= 0) & (p_values[np.arange(len(last)), last] > TOLERATED / len(places))
        for run in np.flatnonzero(is_open):
            tested = np.flatnonzero(can_pass[run])
            weights = cells.weights[run][:, tested]
            products = (self.counts[run][:, tested] * weights).T @ weights
            # Sets are nested: the labels of two are those of the smaller one.
            products = np.triu(products) + np.triu(products, 1).T
            rejected = step_down(p_values[run, tested], correlations_of(products), TOLERATED, STATISTICS)[0]
            last[run] = tested[rejected].max(initial=-1)
        return np.asarray(last)


def batch(rng: np.random.Generator, cell: Cell, runs: int, limit: float) -> Batch:
    """Draw outcomes and labels of a design of random labels within strata, for a limit of the error."""
    units = oriented_pool(cell, is_of_class=False)
    order = np.argsort(-units.score, kind="stable")
    wrong = rng.random((runs, len(order)), dtype=np.float32) >= units.probability[order]
    if cell.design == TWO_ROUNDS:
        return two_round_batch(rng, cell, wrong, limit)
    score = units.score[order]
    strata = Strata(codes=np.zeros(len(score), np.int64), counts=np.array([cell.labels]))
    if cell.design == PLANNED:
        planned = planned_strata(cell.score, cell.rate, cell.labels)
        strata = replace(planned, codes=planned.codes[order])
    members = [np.flatnonzero(strata.codes == code) for code in range(len(strata.counts))]
    chosen = [
        np.argpartition(rng.random((runs, len(rows)), dtype=np.float32), min(count, len(rows)) - 1)[:, :count]
        for rows, count in zip(members, strata.counts, strict=True)
    ]
    places = [rows[columns] for rows, columns in zip(members, chosen, strict=True)]
    cuts = cuts_of(score[np.concatenate(places, axis=1)])
    sizes = [len(rows) - np.searchsorted(np.sort(score[rows]), cuts) for rows in members]
    inside = [score[rows][..., None] >= cuts[:, None] for rows in places]
    return Batch(
        sizes=np.stack(sizes, axis=1),
        counts=np.stack([block.sum(axis=1) for block in inside], axis=1),
        faults=np.stack(
            [
                np.sum(block & np.take_along_axis(wrong, rows, axis=1)[..., None], axis=1)
                for block, rows in zip(inside, places, strict=True)
            ],
            axis=1,
        ),
        wrong=wrong,
    )


def cuts_of(scores: FloatArray) -> FloatArray:
    """Return the thresholds (R, J) of drawn scores (R, n), as `candidate_sets`; equal ones occur twice."""
    descending = -np.sort(-scores, axis=1)
    ranks = np.ceil(np.arange(1, N_SETS) * scores.shape[1] / N_SETS).astype(np.int64)
    cuts = descending[:, ranks - 1]
    cuts = np.where(cuts > descending[:, -1:], cuts, -np.inf)
    return np.column_stack([cuts, np.full(len(cuts), -np.inf)])


def two_round_batch(rng: np.random.Generator, cell: Cell, wrong: BoolArray, limit: float) -> Batch:
    """Draw the faults of both rounds in 20 cells: hypergeometric, given those of each cell."""
    score_cells = cells_of_score(RARE if cell.metric == RARE else ERROR, cell.score, cell.rate, False)
    units = oriented_pool(cell, is_of_class=False)
    sizes = np.bincount(score_cells.codes)
    scores = np.bincount(score_cells.codes, units.score) / sizes
    # Units are in the order of their scores, and so of their cells.
    in_cells = np.add.reduceat(wrong, np.cumsum(sizes) - sizes, axis=1, dtype=np.int64)
    pilot = largest_remainders(sizes, int(PILOT_SHARE * cell.labels))
    faults = rng.hypergeometric(in_cells, sizes - in_cells, pilot)
    totals = np.empty_like(in_cells)
    for run, first in enumerate(faults):
        cells = PilotCells(
            sizes=sizes, scores=scores, counts=pilot, correct_labels=(pilot - first).astype(np.float64)
        )
        region = planned_region(cells, cell.labels, limit)
        totals[run] = total_labels(sizes, pilot, region, cell.labels)
    others = in_cells - faults
    faults = faults + rng.hypergeometric(others, sizes - pilot - others, totals - pilot)
    # A cell is in its own set and all larger ones.
    contains = np.triu(np.ones((len(sizes), len(sizes)), dtype=np.int64))
    return Batch(
        sizes=np.broadcast_to(sizes[:, None] * contains, (len(wrong), *contains.shape)),
        counts=totals[:, :, None] * contains,
        faults=faults[:, :, None] * contains,
        wrong=wrong,
    )


def true_faults(metric: str, members: BoolArray, outcomes: FloatArray) -> FloatArray:
    """Return the rates of faults (J,) of sets of the population (N, J)."""
    if metric == ERROR:
        return np.asarray((1.0 - outcomes) @ members / np.maximum(members.sum(axis=0), 1))
    domain = outcomes if metric == "recall" else 1.0 - outcomes
    share = domain @ members / max(domain.sum(), 1.0)
    return np.asarray(1.0 - share if metric == "recall" else share)


def batch_sizes(draws: int) -> Iterator[int]:
    """Yield the sizes of batches of replicates."""
    for start in range(0, draws, BATCH):
        yield min(BATCH, draws - start)


def is_in_batches(cell: Cell) -> bool:
    """Return whether the replicates of a cell are drawn as numbers, without one label at a time."""
    return cell.metric in (ERROR, FUTURE, EFFICIENCY, RARE) and cell.design in (RANDOM, PLANNED, TWO_ROUNDS)


def error_violations(cell: Cell, draws: int, seed: int) -> dict[str, float]:
    """Return the shares of runs with a violation, and with an accepted set, of nested sets of an error."""
    rng = np.random.default_rng(seed)
    limit = cell.rate / 1.02
    rates = None
    if cell.metric == FUTURE:
        units = oriented_pool(cell, is_of_class=False)
        rates = 1.0 - units.probability[np.argsort(-units.score, kind="stable")]
    violated = 0
    accepting = 0
    for runs in batch_sizes(draws):
        replicates = batch(rng, cell, runs, limit)
        places = replicates.accepted(limit, is_finite=cell.metric != FUTURE)
        faults = replicates.true_faults(rates)[np.arange(runs), places]
        violated += int(np.sum((places >= 0) & (faults > limit)))
        accepting += int(np.sum(places >= 0))
    return {"violations": violated / draws, "accepting": accepting / draws}


def violations(cell: Cell, draws: int, seed: int) -> dict[str, float]:
    """Return the share of runs in which the accepted set violates the requirement, and of runs with a set."""
    if is_in_batches(cell):
        return error_violations(cell, draws, seed)
    rng = np.random.default_rng(seed)
    limit = LIMITS.get(cell.metric, cell.rate / 1.02)
    requirement = SetRequirement(metric=cell.metric, limit=limit)
    is_of_class = cell.metric != ERROR
    violated = 0
    accepting = 0
    for _ in range(draws):
        drawn = draw(rng, cell, requirement.max_fault_rate, is_of_class=is_of_class)
        places = accepted_places(requirement, drawn, is_family=cell.design in (GROUPS, TWO_SCORES))
        if len(places) == 0:
            continue
        accepting += 1
        faults = true_faults(cell.metric, drawn.members[:, places], drawn.outcomes)
        violated += bool(np.any(faults > requirement.max_fault_rate))
    return {"violations": float(violated / draws), "accepting": accepting / draws}


def accepted_places(requirement: SetRequirement, drawn: Draw, *, is_family: bool) -> IntArray:
    """Return the index of the set that is accepted, or those of all accepted sets of a family."""
    if is_family:
        evidence = set_evidence(requirement.metric, drawn.labels, drawn.sets)
        decision = decide(requirement, evidence, drawn.sets, TOLERATED, draws=STATISTICS)
        return np.flatnonzero(decision.accepted)
    place = accepted_place(requirement, drawn)
    return np.array([] if place is None else [place], dtype=np.int64)


def accepted_place(requirement: SetRequirement, drawn: Draw) -> int | None:
    """Return the index of the set that is accepted; None if there is none."""
    evidence = set_evidence(requirement.metric, drawn.labels, drawn.sets)
    if evidence.totals is not None and not requirement.is_monotone:
        # A local level is between that of Bonferroni and the whole: most runs are decided without simulation.
        p_values = evidence.totals.p_values(requirement.max_fault_rate)
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
    limit = RARE_LIMIT if cell.metric == RARE else EFFICIENCY_LIMIT
    score = -np.sort(-oriented_pool(cell, is_of_class=False).score)
    n_units = len(score)
    ends = np.flatnonzero(np.append(np.diff(score) != 0, True))
    accepted = 0.0
    largest = 0.0
    violated = 0
    for runs in batch_sizes(draws):
        if is_in_batches(cell):
            replicates = batch(rng, cell, runs, limit)
            places = replicates.accepted(limit, is_finite=True)
            wrong = replicates.wrong
            sizes = np.where(places >= 0, replicates.set_sizes[np.arange(runs), places], 0)
        else:
            wrong, sizes = split_batch(rng, cell, runs)
        errors = np.cumsum(wrong, axis=1)
        is_valid = errors[:, ends] <= limit * (ends + 1)
        largest += float(np.max(np.where(is_valid, ends + 1, 0), axis=1).sum())
        accepted += float(sizes.sum())
        faults = np.take_along_axis(errors, np.maximum(sizes - 1, 0)[:, None], axis=1)[:, 0]
        violated += int(np.sum(faults * (sizes > 0) > limit * sizes))
    total = draws * n_units
    return {"accepted": accepted / total, "largest": largest / total, "violations": violated / draws}


def split_batch(rng: np.random.Generator, cell: Cell, runs: int) -> tuple[BoolArray, IntArray]:
    """Return outcomes (R, N) from the highest score down, and the units (R,) that a split sample accepts."""
    score = oriented_pool(cell, is_of_class=False).score
    order = np.argsort(-score, kind="stable")
    aim = float(cell.design.split()[-1])
    wrong = np.empty((runs, len(score)), dtype=bool)
    sizes = np.zeros(runs, dtype=np.int64)
    for run in range(runs):
        drawn = draw(rng, replace(cell, design=RANDOM), EFFICIENCY_LIMIT)
        wrong[run] = drawn.outcomes[order] == 0.0
        cut = split_threshold(rng, drawn.labels, aim)
        sizes[run] = 0 if cut is None else np.sum(score >= cut)
    return wrong, sizes


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
    rng = np.random.default_rng(seed)
    units = pool(cell.score, cell.rate)
    covered = dict.fromkeys(CURVES, 0)
    for _ in range(draws):
        drawn = draw(rng, cell, BAND_LIMIT, is_of_class=True)
        with mock.patch.object(simultaneous, "_DRAWS", STATISTICS):
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


def calibration(cell: Cell, draws: int, seed: int) -> dict[str, float]:
    """Return the coverage of the intervals of each quantity of calibration."""
    rng = np.random.default_rng(seed)
    covered = dict.fromkeys(CALIBRATED_QUANTITIES, 0)
    units = pool(cell.score, cell.rate)
    for _ in range(draws):
        drawn = draw(rng, cell, EFFICIENCY_LIMIT)
        labels = drawn.labels
        bins = ScoreBins.of(labels.scores[:, 0], labels.outcomes, labels.weights)
        codes = np.clip(np.searchsorted(bins.edges, units.score, side="right") - 1, 0, len(bins.shares) - 1)
        true = true_calibration(codes, units.score, drawn.outcomes)
        holds = dict.fromkeys(CALIBRATED_QUANTITIES, True)
        place = 0
        for name, _, estimate in calibration_rows(
            labels.scores[:, 0], labels.outcomes, drawn.weighting, "population"
        ):
            interval = estimate.confidence_interval(0.95)
            value = true[name][place]
            holds[name] &= bool(interval.low - 1e-9 <= value <= interval.high + 1e-9)
            place += name == "outcome"
        for name in covered:
            covered[name] += holds[name]
    return {name: count / draws for name, count in covered.items()}


def true_calibration(codes: IntArray, score: FloatArray, outcomes: FloatArray) -> dict[str, FloatArray]:
    """Return the quantities of all units (N,) in bins; the outcomes of the bins (K,)."""
    counts = np.bincount(codes)
    shares = counts / len(codes)
    means = np.bincount(codes, outcomes) / np.maximum(counts, 1)
    gaps = means - np.bincount(codes, score) / np.maximum(counts, 1)
    mean = outcomes.mean()
    single = {
        "brier": np.mean((score - outcomes) ** 2),
        "squared_calibration_error": shares @ gaps**2,
        "resolution": shares @ (means - mean) ** 2,
        "uncertainty": mean * (1.0 - mean),
        "expected_calibration_error": shares @ np.abs(gaps),
    }
    return {**{name: np.array([value]) for name, value in single.items()}, "outcome": means}


N_STRATA = 10
# Units of the strata, from 100 to 1,000.
STRATUM_SIZES = np.arange(1, N_STRATA + 1) * 100
_SIZES = STRATUM_SIZES.astype(np.float64)
_STEPS = np.linspace(0.0, 1.0, N_STRATA)
PROFILES = {
    "flat": np.full(N_STRATA, 0.05),
    "rising": 0.2 * _STEPS**2,
    "falling": 0.2 * (1.0 - _STEPS) ** 2,
    "one stratum": np.where(np.arange(N_STRATA) == 3, 0.5, 0.0),
    "rare": np.full(N_STRATA, 0.01),
}
# Labels of the strata: their shares are in proportion to these numbers.
ALLOCATIONS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "proportional": lambda rates: _SIZES,
    "equal": lambda rates: np.ones(N_STRATA),
    "Neyman": lambda rates: np.sqrt(rates * (1.0 - rates) + 0.002) * _SIZES,
    "against Neyman": lambda rates: _SIZES / np.sqrt(rates * (1.0 - rates) + 0.002),
    "first strata": lambda rates: np.exp(-3.0 * _STEPS),
    "last strata": lambda rates: np.exp(3.0 * _STEPS),
    "half of them twice": lambda rates: _SIZES * np.tile([1.0, 2.0], N_STRATA // 2),
}


def single_limits(cell: Cell, draws: int, seed: int) -> dict[str, float]:
    """Return how often the upper limit of a mean over strata lies below it; all replicates are one array."""
    rng = np.random.default_rng(seed)
    faults = np.round(PROFILES[cell.score] * STRATUM_SIZES).astype(np.int64)
    exact = ALLOCATIONS[cell.design](PROFILES[cell.score])
    counts = np.clip(largest_remainders(exact, cell.labels), 1, STRATUM_SIZES)
    sizes = STRATUM_SIZES[:, None]
    cells = cell_weights(counts[:, None], sizes, sizes, is_finite=True)
    weights = cells.weights[:, 0]
    found = rng.hypergeometric(faults, STRATUM_SIZES - faults, counts, size=(draws, N_STRATA))
    total = found @ weights
    totals = WeightedTotals(
        total=total,
        square=found @ weights**2,
        largest_weight=np.full_like(total, weights.max()),
        unlabelled=np.zeros_like(total),
        variance_reduction=np.full_like(total, cells.variance_reduction[0]),
    )
    mean = faults.sum() / STRATUM_SIZES.sum()
    return {"misses": float(np.mean(totals.upper(TOLERATED) < mean - 1e-12))}


def guarantee_cells() -> Iterator[Cell]:
    """Yield the cells of the guarantee."""
    for metric in METRICS:
        # Noise is difficult where many sets are tested, not for a fixed sequence.
        scores = SCORES if metric in (ERROR, FUTURE) else SCORES[:-1]
        for score, rate, labels, design in product(scores, RATES, LABELS, DESIGNS_OF[metric]):
            yield Cell(metric=metric, score=score, rate=rate, labels=labels, design=design)
    for labels in LABELS:
        yield Cell(metric=ERROR, score=GATHERED, rate=RATES[-1], labels=labels, design=CLUSTERS)


def efficiency_cells() -> Iterator[Cell]:
    """Yield the cells of the efficiency, of all units and of a rare class."""
    rules = (RANDOM, PLANNED, TWO_ROUNDS, *(f"{SPLIT} {aim}" for aim in (0.25, 0.5, 0.75)))
    for labels, design, score, rate in product(EFFICIENCY_LABELS, rules, EFFICIENCY_SCORES, EFFICIENCY_RATES):
        yield Cell(metric=EFFICIENCY, score=score, rate=rate, labels=labels, design=design)
    for score, rate, labels in product(RARE_SCORES, RARE_DISTANCES, RARE_LABELS):
        yield Cell(metric=RARE, score=score, rate=rate, labels=labels, design=TWO_ROUNDS)


def interval_cells() -> Iterator[Cell]:
    """Yield the cells of the single limits, the bands and the calibration."""
    for labels, score, design in product(LABELS, PROFILES, ALLOCATIONS):
        yield Cell(metric=LIMIT, score=score, rate=0.0, labels=labels, design=design)
    for labels, score, rate, design in product(
        BAND_LABELS, SCORES[:3], RATES[1:], (RANDOM, PLANNED, TWO_ROUNDS, CLUSTERS)
    ):
        yield Cell(metric=BANDS, score=score, rate=rate, labels=labels, design=design)
    for labels, score, design in product(BAND_LABELS, SCORES[:3], (RANDOM, PLANNED)):
        yield Cell(metric=CALIBRATION, score=score, rate=0.3, labels=labels, design=design)


MEASURES = {
    EFFICIENCY: efficiency, RARE: efficiency, BANDS: bands, CALIBRATION: calibration, LIMIT: single_limits
}  # fmt: skip


def all_cells() -> list[Cell]:
    """Return all cells, those with the most draws first."""
    guarantee = list(guarantee_cells())
    first = [cell for cell in guarantee if draws_of(cell, 1.0, 0.0) == 1.0]
    others = [cell for cell in guarantee if cell not in first]
    return [*first, *efficiency_cells(), *interval_cells(), *others]


def measure(cell: Cell, draws: int, seed: int) -> dict[str, float]:
    """Return the figures of a cell."""
    return MEASURES.get(cell.metric, violations)(cell, draws, seed)


def draws_of(cell: Cell, draws: float, bands: float) -> float:
    """Return the draws of a cell: `draws` or a part of them for the guarantee, `bands` elsewhere."""
    if cell.metric == LIMIT:
        return LIMIT_DRAWS
    if cell.metric == CALIBRATION:
        return SHARE_OF_CALIBRATION * bands
    if cell.metric not in METRICS:
        return bands
    if cell.metric == ERROR and cell.design not in (GROUPS, TWO_SCORES):
        return draws
    return SHARE_OF_OTHERS * draws


def main(arguments: list[str] | None = None) -> None:
    """Measure all cells and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=2_000)
    parser.add_argument("--bands", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--finished", action="store_true", help="write the page of the finished cells")
    options = parser.parse_args(arguments)
    stored: dict[str, dict[str, float]] = {}
    if options.store is not None and options.store.exists():
        stored = json.loads(options.store.read_text())
    drawn = {cell: max(round(draws_of(cell, options.draws, options.bands)), 1) for cell in all_cells()}
    keys = {cell: json.dumps([*asdict(cell).values(), draws]) for cell, draws in drawn.items()}
    with ProcessPoolExecutor(options.jobs) as executor:
        futures = {
            executor.submit(measure, cell, drawn[cell], place): keys[cell]
            for place, cell in enumerate(drawn)
            if keys[cell] not in stored and not options.finished
        }
        for future in as_completed(futures):
            stored[futures[future]] = future.result()
            if options.store is not None:
                options.store.write_text(json.dumps(stored))
    figures = {cell: stored[key] for cell, key in keys.items() if key in stored}
    RESULTS.write_text(page(figures, options.draws, options.bands))


def page(figures: dict[Cell, dict[str, float]], draws: int, band_draws: int) -> str:
    """Return the page of figures."""
    lines = [
        "# Thresholds with a guarantee",
        "",
        f"`python -m benchmarks.thresholds --draws {draws} --bands {band_draws}`, {circumstances()}",
        "",
        (__doc__ or "").split("\n\n", 2)[2].rpartition("\n\n")[0].strip(),
        "",
        f"Cells: {len(figures):,} of {len(all_cells()):,}. Draws of each: {draws:,} (error), "
        f"{SHARE_OF_OTHERS * draws:,.0f} (other metrics, groups, two scores), {band_draws:,} (accepted, rare "
        f"class, bands), {SHARE_OF_CALIBRATION * band_draws:,.0f} "
        f"(calibration), {LIMIT_DRAWS:,} (single limits).",
        "",
        *guarantee_tables(figures),
        *efficiency_tables(figures),
        *rare_table(figures),
        *limit_table(figures),
        *coverage_tables(figures),
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
        for design in DESIGNS_OF[metric]:
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
    rows = {cell: row for cell, row in figures.items() if cell.metric == EFFICIENCY}
    if not rows:
        return []
    lines = ["## Accepted", "", "Over the largest valid share, and largest share of violations.", ""]
    header = " | ".join(f"n = {labels:,}" for labels in EFFICIENCY_LABELS)
    lines += [f"| rule | {header} | violations |", "|---|---:|---:|---:|---:|"]
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


def rare_table(figures: dict[Cell, dict[str, float]]) -> list[str]:
    """Return the table of accepted shares of a rare class."""
    rows = {cell: row for cell, row in figures.items() if cell.metric == RARE}
    lines = [
        "## Rare class",
        "",
        "Precision of at least .9: over the largest valid share, and violations.",
        "",
    ]
    header = " | ".join(f"n = {labels:,}" for labels in RARE_LABELS)
    lines += [f"| rate | score | {header} | violations |", f"|---|---|{'---:|' * (len(RARE_LABELS) + 1)}"]
    for rate, score in product(RARE_DISTANCES, RARE_SCORES):
        chosen = [row for cell, row in rows.items() if (cell.rate, cell.score) == (rate, score)]
        entries = [f"{row['accepted'] / row['largest']:.3f}" for row in chosen]
        if entries:
            worst = max(row["violations"] for row in chosen)
            lines.append(f"| {rate:g} | {score} | {' | '.join(entries)} | {worst:.4f} |")
    return [*lines, ""]


def limit_table(figures: dict[Cell, dict[str, float]]) -> list[str]:
    """Return the table of the largest shares of single limits that do not hold, over numbers of labels."""
    rows = {cell: row for cell, row in figures.items() if cell.metric == LIMIT}
    lines = ["## Single limits", "", "Largest share below the mean, over 100, 400 and 1,000 labels.", ""]
    lines += [f"| allocation | {' | '.join(PROFILES)} |", f"|---|{'---:|' * len(PROFILES)}"]
    for design in ALLOCATIONS:
        entries = []
        for profile in PROFILES:
            misses = [
                row["misses"] for cell, row in rows.items() if (cell.design, cell.score) == (design, profile)
            ]
            entries.append(f"{max(misses):.4f}" if misses else "–")
        lines.append(f"| {design} | {' | '.join(entries)} |")
    return [*lines, ""]


def coverage_tables(figures: dict[Cell, dict[str, float]]) -> list[str]:
    """Return the tables of the least coverages of the bands, and of the intervals of calibration."""
    lines = []
    for metric, title, names in (
        (BANDS, "simultaneous coverage at ten thresholds, over scores and rates", CURVES),
        (CALIBRATION, "coverage over scores", CALIBRATED_QUANTITIES),
    ):
        rows = {cell: row for cell, row in figures.items() if cell.metric == metric}
        lines += [f"## {metric.capitalize()}", "", f"Least {title}.", ""]
        lines += [
            f"| design | n | {' | '.join(name.replace('_', ' ') for name in names)} |",
            f"|---|---:|{'---:|' * len(names)}",
        ]
        for design, labels in product(DESIGNS, BAND_LABELS):
            chosen = [row for cell, row in rows.items() if (cell.design, cell.labels) == (design, labels)]
            if chosen:
                entries = [f"{min(row[name] for row in chosen):.3f}" for name in names]
                lines.append(f"| {design} | {labels:,} | {' | '.join(entries)} |")
        lines.append("")
    return lines


if __name__ == "__main__":
    main()
