"""A randomisation test of whether labels are missing more often for low, high or medium values of a proxy.

If labels are missing at random, every choice of as many unlabelled units within a block is equally likely.
The statistics are the sums of the unlabelled units' ranks by the proxy, and of the distances of these ranks
from the middle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray, mid_ranks, sums_by_code
from stratal.designs.clusters import ClusterSample
from stratal.designs.margins import PostStratified
from stratal.designs.sample import Sample
from stratal.intervals.hypergeometric import hypergeometric_upper_tail
from stratal.population.in_memory import ArrayPopulation
from stratal.population.rules import Crossed, Rule
from stratal.report.notes import LABELS_BY_ANSWER, LABELS_BY_PROXY, Note

# Probability of any warning, over all proxies and both statistics, if labels are missing at random.
FALSE_ALARM_RATE = 0.01

# A smaller standardised statistic is never significant, so that no random choices are needed.
_MIN_STATISTIC = 2.0

# Number of random choices for each of k proxies. At the significance level FALSE_ALARM_RATE / 2k, about 20 of
# the 4,000 k choices are as extreme as the observed one: the relative error of the p-value is then 22%.
_PERMUTATIONS_PER_PROXY = 4000

# Random numbers that are drawn at once: 2 MB.
_BATCH_SIZE = 2**18

# Maximum number of answers whose shares are compared: each answer is a further test.
_MAX_ANSWERS = 20

# Minimum number of labelled and of unlabelled units for the test: with fewer, it has no power.
_MIN_UNITS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingPattern:
    """The part of a proxy's range in which labels are missing more often.

    Parameters
    ----------
    column : int
        Index of the proxy.
    where : {"low", "high", "in the middle", "low or high"}
    p_value : float
    """

    column: int
    where: str
    p_value: float


def missing_pattern(
    proxies: FloatArray, missing: BoolArray, block: IntArray, seed: int = 0
) -> MissingPattern | None:
    """Return the proxy values for which labels are missing more often; None if it may be due to chance.

    Parameters
    ----------
    proxies : float (n, k)
        Proxies of the drawn units.
    missing : bool (n,)
    block : int (n,)
        Units are exchanged only within blocks, whose shares of missing labels may differ.
    seed : int
        Seed of the random choices.
    """
    n, k = proxies.shape
    if k == 0 or min(int(missing.sum()), int(n - missing.sum())) < _MIN_UNITS:
        return None
    # Ranks from −½ to ½, so that their absolute values are distances from the middle.
    ranks = np.column_stack([mid_ranks(column) / n - 0.5 for column in proxies.T])
    scores = np.concatenate([ranks, np.abs(ranks)], axis=1)
    size = np.bincount(block).astype(np.float64)
    means = sums_by_code(scores, block) / np.maximum(size, 1)[:, None]
    centred = scores - means[block]
    observed = missing @ centred
    counts = np.bincount(block, missing, minlength=len(size))
    sums_of_squares = sums_by_code(centred**2, block)
    share = counts * (size - counts) / np.maximum(size * (size - 1), 1)
    standard_deviations = np.sqrt(share @ sums_of_squares)
    standardised = np.abs(observed) / np.where(standard_deviations > 0, standard_deviations, np.inf)
    if np.max(standardised) < _MIN_STATISTIC:
        return None
    choices = _PERMUTATIONS_PER_PROXY * k
    # The observed choice counts as one of them, which makes the test exact (Phipson & Smyth 2010).
    exceedances = 1.0 + _count_exceedances(centred, np.abs(observed), counts, block, choices, seed)
    p_values = np.where(standard_deviations > 0, exceedances / (choices + 1.0), 1.0)
    smallest = int(np.argmin(p_values))
    if p_values[smallest] > FALSE_ALARM_RATE / (2 * k):
        return None
    is_positive = observed[smallest] > 0
    # The first k statistics are those of ranks, the others those of distances from the middle.
    if smallest < k:
        where = "high" if is_positive else "low"
    else:
        where = "low or high" if is_positive else "in the middle"
    return MissingPattern(column=smallest % k, where=where, p_value=float(p_values[smallest]))


def _count_exceedances(
    centred: FloatArray, observed: FloatArray, counts: IntArray, block: IntArray, choices: int, seed: int
) -> FloatArray:
    """Return how many random choices have sums (q,) of scores (n, q) as extreme as those observed.

    Each choice has `counts` units of every block (n,).
    """
    n, n_scores = centred.shape
    exceedances = np.zeros(n_scores)
    generator = np.random.default_rng(seed)
    order = np.argsort(block, kind="stable")
    size = np.bincount(block)
    # Within each block, the units with the smallest random numbers are those without a label.
    block_start = np.repeat(np.cumsum(size) - size, size)
    is_chosen = np.arange(n) - block_start < counts[block[order]]
    batch_size = max(_BATCH_SIZE // n, 1)
    for start in range(0, choices, batch_size):
        random_numbers = generator.random((min(batch_size, choices - start), n))
        random_order = np.argsort(block + random_numbers, axis=1)
        sums = centred[random_order[:, is_chosen]].sum(axis=1)
        # The tolerance allows for rounding errors of sums of the same ranks in another order.
        exceedances += np.sum(np.abs(sums) >= observed * (1.0 - 1e-12), axis=0)
    return exceedances


def exchangeable_blocks(rule: Rule | None, stratum: IntArray, proxy_names: tuple[str, ...]) -> IntArray:
    """Return the blocks (n,) of exchangeable units: the strata, without their division by a proxy."""
    if rule is None:
        return stratum
    if isinstance(rule, Crossed) and rule.categories.column not in proxy_names:
        return np.searchsorted(rule.offsets, stratum, side="right") - 1
    if {*rule.columns} & {*proxy_names}:
        return np.zeros_like(stratum)
    return stratum


def missing_label_notes(sample: Sample, labelled: BoolArray) -> tuple[Note, ...]:
    """Return a warning if labels of the drawn units (n,) are missing more often for some proxy values."""
    strata = sample.design.strata
    rule = None if strata is None else strata.rule
    block = exchangeable_blocks(rule, sample.stratum, sample.proxy_names)
    # Units of a later round may not be labelled yet, and their allocation was based on the earlier labels.
    block = np.unique(np.column_stack([block, sample.round]), axis=0, return_inverse=True)[1].ravel()
    missing = ~labelled
    pattern = missing_pattern(sample.proxies, missing, block, seed=sample.seed)
    if pattern is None:
        return ()
    values = sample.proxies[:, pattern.column]
    name = sample.proxy_names[pattern.column]
    middle = np.median(values)
    # If at least half of the values are equal to the smallest one, they are the lower half.
    if np.any(values < middle):
        below = values < middle
    else:
        below = values <= middle
    shares = [f"{int(missing[half].sum()):,} of {int(half.sum()):,}" for half in (below, ~below)]
    halves = f"{shares[0]} in the lower half of its values, {shares[1]} in the upper half"
    text = (
        f"labels are missing more often where {name!r} is {pattern.where} (randomisation test, "
        f"{_p_value_text(pattern)}; units without a label: {halves}), so they are not missing at random: "
        "find out why, and label these units. The estimate corrects for different shares of missing labels "
        "between strata only, not within them"
    )
    return (Note("missing-by-proxy", text),)


# Smaller p-values are printed as p < 0.001, because their digits depend on the random choices.
_MIN_PRINTED_P = 0.001


def unrepresentative_notes(sample: Sample) -> tuple[Note, ...]:
    """Return a warning if the labelled rows of an external table seem to be selected by proxy or answer.

    Labelled rows are compared with all rows of the table, within the strata in which they are declared a
    random sample. For clusters, the means of the clusters are compared. The absence of a warning does not
    prove that the rows are a random sample.
    """
    population = sample.population
    if not sample.declared_random or not isinstance(population, ArrayPopulation):
        return ()
    block = _blocks_of_table(sample, population)
    if block is None:
        return ()
    if population.ids is None:
        ids = np.arange(population.size)
    else:
        ids = population.ids
    labelled = np.isin(ids, sample.ids)
    if isinstance(sample.design, ClusterSample):
        return _cluster_notes(sample, population, sample.design.cluster, labelled)
    notes = _proxy_notes(sample, population, labelled, block)
    answer = sample.question.answer
    # The test of answers assumes one random sample of all rows, without strata.
    if notes or np.any(block) or answer is None or answer not in population.groups:
        return notes
    return _answer_notes(answer, population, labelled)


def _proxy_notes(
    sample: Sample, population: ArrayPopulation, labelled: BoolArray, block: IntArray
) -> tuple[Note, ...]:
    """Return a warning if rows got labels more or less often for some values of a proxy."""
    if not sample.proxy_names:
        return ()
    values = np.column_stack([population.values[name] for name in sample.proxy_names])
    rows = _subsample_rows(labelled, sample.seed)
    pattern = missing_pattern(values[rows], ~labelled[rows], block[rows], seed=sample.seed)
    if pattern is None:
        return ()
    name = sample.proxy_names[pattern.column]
    remedy = (
        f". If rows were chosen by {name!r}, weight by its strata: post_stratify={name!r} "
        f"(--post-stratify {name}); this corrects only for choices that depend on it"
    )
    return (_proxy_warning(name, pattern, values[:, pattern.column], labelled, remedy),)


def _cluster_notes(
    sample: Sample, population: ArrayPopulation, cluster: str, labelled: BoolArray
) -> tuple[Note, ...]:
    """Return a warning if clusters got labels more or less often by their proxies' means or answers."""
    values = [population.values[name] for name in sample.proxy_names]
    answer = sample.question.answer
    levels: list[str] = []
    if answer is not None and answer in population.groups:
        answers = population.groups[answer].astype(np.str_)
        names, counts = np.unique(answers, return_counts=True)
        levels = names[np.argsort(-counts, kind="stable")[:_MAX_ANSWERS]].tolist()
        values += [(answers == level).astype(np.float64) for level in levels]
    if not values:
        return ()
    means, drawn = _cluster_means(population.groups[cluster], np.column_stack(values), labelled)
    rows = _subsample_rows(drawn, sample.seed)
    one_block = np.zeros(len(rows), dtype=np.int64)
    pattern = missing_pattern(means[rows], ~drawn[rows], one_block, seed=sample.seed)
    if pattern is None:
        return ()
    column = values[pattern.column]
    proxies = len(sample.proxy_names)
    if pattern.column < proxies:
        return (_proxy_warning(sample.proxy_names[pattern.column], pattern, column, labelled),)
    level = levels[pattern.column - proxies]
    shares = (float(column[labelled].mean()), float(column.mean()))
    return (_answer_warning(str(answer), level, shares, f"randomisation test, {_p_value_text(pattern)}"),)


def _proxy_warning(
    name: str, pattern: MissingPattern, values: FloatArray, labelled: BoolArray, remedy: str = ""
) -> Note:
    """Return the warning that labels depend on a proxy with these values (N,)."""
    means = f"mean {values[labelled].mean():.3g} of labelled rows, {values.mean():.3g} of all"
    text = (
        "the labelled rows are not a random sample of the table: they are more often rows where "
        f"{name!r} is {_OPPOSITE[pattern.where]} (randomisation test, {_p_value_text(pattern)}; {means}), "
        f"and the interval may miss the value of all rows{remedy}"
    )
    return Note(LABELS_BY_PROXY, text)


def _answer_warning(
    answer: str, level: str, shares: tuple[float, float], test: str, remedy: str = ""
) -> Note:
    """Return the warning that labels depend on the answer; `shares` are of labelled rows and of all."""
    text = (
        f"the labelled rows are not a random sample of the table: {answer!r} is {level!r} in "
        f"{shares[0]:.1%} of labelled rows, {shares[1]:.1%} of all ({test}), and the interval may miss the "
        f"value of all rows{remedy}"
    )
    return Note(LABELS_BY_ANSWER, text)


def _answer_notes(answer: str, population: ArrayPopulation, labelled: BoolArray) -> tuple[Note, ...]:
    """Return a warning if rows of one of the model's answers got labels more or less often than others.

    The number of labelled rows of an answer is hypergeometric if they were chosen at random.
    """
    levels, codes = np.unique(population.groups[answer].astype(np.str_), return_inverse=True)
    totals = np.bincount(codes, minlength=len(levels))
    counts = np.bincount(codes[labelled], minlength=len(levels))
    size = len(codes)
    n = int(labelled.sum())
    drawn = np.full(len(levels), n)
    at_least = hypergeometric_upper_tail(counts, drawn, size, totals)
    at_most = hypergeometric_upper_tail(drawn - counts, drawn, size, size - totals)
    p_values = np.minimum(2.0 * np.minimum(at_least, at_most) * len(levels), 1.0)
    most_extreme = int(np.argmin(p_values))
    if p_values[most_extreme] > FALSE_ALARM_RATE:
        return ()
    shares = (float(counts[most_extreme] / n), float(totals[most_extreme] / size))
    remedy = (
        f". If rows were chosen by {answer!r}, weight by it: post_stratify={answer!r} "
        f"(--post-stratify {answer}); this corrects only for choices that depend on it"
    )
    test = f"hypergeometric test, p = {p_values[most_extreme]:.1g}"
    return (_answer_warning(answer, str(levels[most_extreme]), shares, test, remedy),)


def _cluster_means(
    clusters: AnyArray, values: FloatArray, labelled: BoolArray
) -> tuple[FloatArray, BoolArray]:
    """Return the means (M, k) of values (N, k) in each of M clusters, and whether it was drawn (M,)."""
    _, codes, sizes = np.unique(clusters.astype(np.str_), return_inverse=True, return_counts=True)
    means = sums_by_code(values, codes) / sizes[:, None]
    return means, np.bincount(codes, labelled) > 0


# Values for which labels are more frequent, by the values for which they are missing more often.
_OPPOSITE = {"low": "high", "high": "low", "in the middle": "low or high", "low or high": "in the middle"}

# Maximum number of rows that the test compares, which limits its time.
_MAX_ROWS = 1_500


def _subsample_rows(labelled: BoolArray, seed: int) -> IntArray:
    """Return the labelled rows, and a random subset of at least as many unlabelled rows.

    The test stays exact: if labels are missing at random, each selected row is equally likely to have one.
    """
    unlabelled = np.flatnonzero(~labelled)
    n_labels = len(labelled) - len(unlabelled)
    n_selected = max(_MAX_ROWS - n_labels, n_labels)
    if n_selected < len(unlabelled):
        unlabelled = np.random.default_rng([seed, 1]).choice(unlabelled, n_selected, replace=False)
    return np.sort(np.concatenate([np.flatnonzero(labelled), unlabelled]))


def _blocks_of_table(sample: Sample, population: ArrayPopulation) -> IntArray | None:
    """Return the stratum (N,) of each row of a table; None for post-strata that are not a column of it."""
    design = sample.design
    if isinstance(design, PostStratified):
        if design.group not in population.groups:
            return None
        return np.unique(population.groups[design.group], return_inverse=True)[1].astype(np.int64)
    if design.strata is None:
        return np.zeros(population.size, dtype=np.int64)
    return exchangeable_blocks(design.strata.rule, population.codes(design.strata.rule), sample.proxy_names)


def _p_value_text(pattern: MissingPattern) -> str:
    """Return the p-value as text."""
    if pattern.p_value > _MIN_PRINTED_P:
        return f"p = {pattern.p_value:.1g}"
    return f"p < {_MIN_PRINTED_P}"
