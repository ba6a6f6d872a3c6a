"""Kernels of a selection: the criterion of each model on drawn units, and the elimination of models."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.designs.disagreements import (
    CorrectProbabilities,
    DifferingUnits,
    Disagreements,
    SuccessiveDraws,
    unit_sizes,
)
from stratal.intervals.difference_betting import (
    MIN_EXPECTED_DISTANCE,
    N_GAMBLERS,
    DrawSteps,
    difference_capital,
)
from stratal.metrics.class_functions import SIGNED, Shares, metric_function

# Criterion of labels that name the preferred model.
PREFERENCE = "preference"

# The outcome (n, k) of each unit for each model, whose mean is the criterion, NaN without a label; and the
# largest difference between two outcomes of one unit.
Outcomes = tuple[FloatArray, float]


def outcomes_of(
    criterion: str, which: int | None, codes: IntArray, rows: IntArray, truth: IntArray, weights: FloatArray
) -> Outcomes | None:
    """Return the outcomes of drawn units; None if the labels do not define the criterion yet.

    Accuracy is a mean of 0 and 1. A metric of classes is linearised at its current estimate: the slopes
    (k, K, K) are the contribution of a unit by true class and answer.

    Parameters
    ----------
    criterion : str
    which : int, optional
        The class of a metric; by default the average over classes.
    codes : int (N, k)
        All answers.
    rows, truth : int (n,)
        The drawn units, and their true classes; −1 without a label.
    weights : float (n,)
    """
    answers = codes[rows]
    is_labelled = truth >= 0
    if criterion in ("accuracy", PREFERENCE):
        return np.where(is_labelled[:, None], answers == truth[:, None], np.nan), 1.0
    if not np.any(is_labelled):
        return None
    levels = int(max(codes.max(), truth.max())) + 1
    macro = which is None and criterion not in ("accuracy", "balanced_accuracy", *SIGNED)
    function = metric_function(criterion, "macro" if macro else which, levels)
    share = weights[is_labelled] / weights[is_labelled].sum()
    tables = []
    for j in range(codes.shape[1]):
        labelled_shares = Shares.of(truth[is_labelled], answers[is_labelled, j], share, levels)
        # The share of each answer is known for all units.
        answer_shares = np.bincount(codes[:, j], minlength=levels) / len(codes)
        hits = np.minimum(labelled_shares.hits, answer_shares)
        point = replace(labelled_shares, predicted=answer_shares, hits=hits)
        value, slopes, _ = function(point)
        if not np.isfinite(value):
            return None
        level = slopes.hits @ point.hits + slopes.predicted @ answer_shares + slopes.true @ point.true
        table = slopes.true[:, None] + slopes.predicted + np.diag(slopes.hits) + (value - float(level))
        tables.append(table)
    contributions = np.stack(tables)  # (k, K, K): model, true class, answer
    ranges = contributions.max(axis=(0, 2)) - contributions.min(axis=(0, 2))
    values = contributions[np.arange(codes.shape[1]), truth[:, None], answers]
    return np.where(is_labelled[:, None], values, np.nan), float(ranges.max())


class SelectionState(NamedTuple):
    """Which models can still be the best, given the current labels.

    Parameters
    ----------
    leader : int
    survivors, rivals : tuple of int
        Models that can still be the best, and those that may be better than the leader by more than the
        indifference. If there are no rivals, the leader is the winner.
    """

    leader: int
    survivors: tuple[int, ...]
    rivals: tuple[int, ...]


def update_state(
    draws: SuccessiveDraws,
    differences_from: Callable[[int], DifferingUnits],
    outcomes: Outcomes,
    state: SelectionState,
    design: Disagreements,
    n_distinct: int,
    correct_probabilities: CorrectProbabilities | None,
) -> SelectionState:
    """Return the state after more labels for models of which `n_distinct` have different answers.

    `differences_from` gives the differences from a model, and `correct_probabilities` the
    probabilities that answers are correct, if the criterion uses them.

    A model is eliminated if the bounds show that it is worse than the leader. The error probability is
    divided among the models that differ from the best, with copies counted once. So the best model is
    eliminated with probability 1 − confidence at most, and no winner is further below it than the
    indifference.
    """
    values, max_difference = outcomes
    survivors = np.array(state.survivors)
    is_labelled = ~np.isnan(values[:, 0])
    leader = state.leader
    if np.any(is_labelled):
        # The leader determines which models are compared, but no bound depends on it. So a guess that is
        # improved by the agreement is allowed.
        likely_totals = np.zeros(values.shape[1])
        residuals = values
        if correct_probabilities is not None:
            likely_totals = correct_probabilities.totals
            residuals = values - correct_probabilities.of_units(draws.rows)
        corrections = residuals[is_labelled][:, survivors] / draws.probability[is_labelled, None]
        scores = likely_totals[survivors] + corrections.sum(axis=0)
        leader = int(survivors[np.argmax(scores)])
    others = survivors[survivors != leader]
    differences = differences_from(leader)
    drawn_differs = differences.of_units(draws.rows)[:, others]
    gains = values[:, others] - values[:, [leader]]
    # A drawn unit without a label counts against every elimination.
    gains = np.where(is_labelled[:, None], gains, drawn_differs * max_difference)
    remaining = max_difference * (differences.counts[others] - np.count_nonzero(drawn_differs, axis=0))
    spread = draws.inverse_probability_sums(differences, others)
    capital = partial(
        difference_capital,
        gains,
        spread,
        DrawSteps(
            inverse_probability=draws.inverse_probability,
            largest_inverse=draws.max_inverse_probability,
            size=differences.size,
        ),
        min_distance=max(design.indifference, MIN_EXPECTED_DISTANCE),
        largest_gain=max_difference,
        undrawn_total=remaining,
    )
    limit = math.log(max(n_distinct - 1, 1) / (1.0 - design.confidence))
    is_no_rival = capital(design.indifference) >= limit
    # With an indifference of 0, no bound shows that a copy of the leader is worse, but it is not better.
    is_no_rival |= gains.sum(axis=0) + remaining <= design.indifference * differences.size
    is_eliminated = is_no_rival & (capital(0.0) >= limit)
    return SelectionState(
        leader=leader,
        survivors=tuple(sorted([leader, *others[~is_eliminated].tolist()])),
        rivals=tuple(others[~is_no_rival].tolist()),
    )


def labels_to_decide(
    codes: IntArray,
    leader: int,
    gaps: FloatArray,
    confidence: float,
    indifference: float,
    *,
    counts_agreements: bool,
    hardest_only: bool = False,
) -> float:
    """Return about how many labels decide, if the leader is ahead of each model by gaps (k,).

    The log capital of a bet grows by half of the squared distance over the variance of a draw, and draws
    become more precise as fewer units remain. With `hardest_only`, all rivals but the hardest are eliminated
    at once.
    """
    models = np.arange(codes.shape[1])
    others = models[models != leader]
    counts = (codes[:, others] != codes[:, [leader]]) | counts_agreements
    if hardest_only:
        n_units = np.maximum(counts.sum(axis=0), 1)
        draw_variance = n_units**2 / len(codes) ** 2
    else:
        sizes = unit_sizes(codes, leader, models, others, counts_agreements=counts_agreements)
        inverse = np.divide(1.0, sizes, out=np.zeros(len(sizes)), where=sizes > 0)
        n_units = np.maximum(np.sum(sizes > 0), 1)
        draw_variance = sizes.sum() * (inverse @ counts) / len(codes) ** 2
    log_capital = math.log(len(others) / (1.0 - confidence)) + math.log(N_GAMBLERS)
    distance = np.maximum(gaps[others], 0.0) + max(indifference, MIN_EXPECTED_DISTANCE)
    labels_needed = n_units * -np.expm1(-2.0 * log_capital * draw_variance / distance**2 / n_units)
    return float(np.max(labels_needed[counts.any(axis=0)], initial=0.0))
