"""Kernels of `select`: the outcome of each drawn unit for each model, and the elimination of models."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray
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
from stratal.metrics.class_functions import SIGNED, Metric, Shares, metric_function

# Criterion of labels that name the preferred model.
PREFERENCE = "preference"

# The outcomes (n, k) of drawn units for each model, whose mean is the criterion and which are NaN without a
# label, and the largest possible difference between the outcomes of two models for one unit.
Outcomes = tuple[FloatArray, float]


def outcomes_of(
    criterion: str,
    class_code: int | None,
    codes: IntArray,
    rows: IntArray,
    truth: IntArray,
    weights: FloatArray,
) -> Outcomes | None:
    """Return the outcomes of drawn units; None if the labels do not define the criterion yet.

    The outcomes of accuracy are 0 and 1. A metric of classes is linearised at its current estimate.

    Parameters
    ----------
    criterion : str
    class_code : int, optional
        The class of a metric; by default the average over classes.
    codes : int (N, k)
        The answers of k models to all units, as numbers of K classes.
    rows, truth : int (n,)
        The drawn units, and their true classes; −1 without a label.
    weights : float (n,)
        Weights of the drawn units, such as 1/π.
    """
    answers = codes[rows]
    is_labelled = truth >= 0
    if criterion in ("accuracy", PREFERENCE):
        return np.where(is_labelled[:, None], answers == truth[:, None], np.nan), 1.0
    if not np.any(is_labelled):
        return None
    n_classes = int(max(codes.max(), truth.max())) + 1
    is_average = class_code is None and criterion not in ("accuracy", "balanced_accuracy", *SIGNED)
    metric = metric_function(criterion, "macro" if is_average else class_code, n_classes)
    shares = weights[is_labelled] / weights[is_labelled].sum()
    tables = []
    for j in range(codes.shape[1]):
        labelled_shares = Shares.of(truth[is_labelled], answers[is_labelled, j], shares, n_classes)
        # The share of each answer is known for all units.
        answer_shares = np.bincount(codes[:, j], minlength=n_classes) / len(codes)
        hits = np.minimum(labelled_shares.hits, answer_shares)
        table = _contributions(metric, replace(labelled_shares, predicted=answer_shares, hits=hits))
        if table is None:
            return None
        tables.append(table)
    contributions = np.stack(tables)  # (k, K, K): model, true class, answer
    ranges = contributions.max(axis=(0, 2)) - contributions.min(axis=(0, 2))
    values = contributions[np.arange(codes.shape[1]), truth[:, None], answers]
    return np.where(is_labelled[:, None], values, np.nan), float(ranges.max())


def _contributions(metric: Metric, shares: Shares) -> FloatArray | None:
    """Return the outcome of a unit by its true class and its answer (K, K), for a linearised metric.

    The mean outcome is the value of the metric at `shares`. None if the metric is undefined there.
    """
    value, slopes, _ = metric(shares)
    if not np.isfinite(value):
        return None
    mean_slope = slopes.hits @ shares.hits + slopes.predicted @ shares.predicted + slopes.true @ shares.true
    constant = value - float(mean_slope)
    return np.asarray(slopes.true[:, None] + slopes.predicted + np.diag(slopes.hits) + constant)


class SelectionState(NamedTuple):
    """Which models can still be the best, given the current labels, as numbers from 0.

    Parameters
    ----------
    leader : int
        The model with the best estimate.
    survivors : tuple of int
        The leader, and the models that are not shown to be worse.
    rivals : tuple of int
        Models that may be better than the leader by more than the indifference margin. Without rivals, the
        leader is the winner.
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
    """Return the state after more labels.

    A model is eliminated if the bounds show that it is worse than the leader. The error probability is
    divided among the models with other answers than the best. So the best model is eliminated with a
    probability of at most 1 − confidence, and the winner is worse by at most the indifference margin.

    `differences_from` returns the units on which other models differ from a model. `n_distinct` is the number
    of models, with models of equal answers counted once. `correct_probabilities` are probabilities of right
    answers according to the agreement of the models.
    """
    values, max_difference = outcomes
    survivors = np.array(state.survivors)
    is_labelled = ~np.isnan(values[:, 0])
    leader = state.leader
    if np.any(is_labelled):
        leader = _choose_leader(draws, values, is_labelled, survivors, correct_probabilities)
    others = survivors[survivors != leader]
    differences = differences_from(leader)
    drawn_differs = differences.of_units(draws.rows)[:, others]
    gains = values[:, others] - values[:, [leader]]
    # The most unfavourable outcome is assumed for a drawn unit without a label.
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


def _choose_leader(
    draws: SuccessiveDraws,
    values: FloatArray,
    is_labelled: BoolArray,
    survivors: IntArray,
    correct_probabilities: CorrectProbabilities | None,
) -> int:
    """Return the surviving model with the largest estimated total of its outcomes `values` (n, k).

    No bound depends on this choice, so the probabilities of correct answers may improve it (difference
    estimator).
    """
    likely_totals = np.zeros(values.shape[1])
    residuals = values
    if correct_probabilities is not None:
        likely_totals = correct_probabilities.totals
        residuals = values - correct_probabilities.of_units(draws.rows)
    corrections = residuals[is_labelled][:, survivors] / draws.probability[is_labelled, None]
    totals = likely_totals[survivors] + corrections.sum(axis=0)
    return int(survivors[np.argmax(totals)])


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
    """Return about how many labels are needed for a decision.

    With each label, the log capital of a bet against a model grows by half of the squared gap over the
    variance of a draw. This variance decreases as fewer units remain.

    Parameters
    ----------
    codes : int (N, k)
        The answers of k models to all units, as numbers of classes.
    leader : int
    gaps : float (k,)
        Criterion of the leader minus that of each model.
    confidence, indifference : float
        See `select`.
    counts_agreements : bool
        Whether units on which a model agrees with the leader also affect the difference of their criteria.
    hardest_only : bool
        Assume that all rivals but the closest one are eliminated at once.
    """
    models = np.arange(codes.shape[1])
    others = models[models != leader]
    is_relevant = (codes[:, others] != codes[:, [leader]]) | counts_agreements
    if hardest_only:
        n_units = np.maximum(is_relevant.sum(axis=0), 1)
        draw_variance = n_units**2 / len(codes) ** 2
    else:
        sizes = unit_sizes(codes, leader, models, others, counts_agreements=counts_agreements)
        inverse_sizes = np.divide(1.0, sizes, out=np.zeros(len(sizes)), where=sizes > 0)
        n_units = np.maximum(np.sum(sizes > 0), 1)
        draw_variance = sizes.sum() * (inverse_sizes @ is_relevant) / len(codes) ** 2
    log_capital = math.log(len(others) / (1.0 - confidence)) + math.log(N_GAMBLERS)
    distance = np.maximum(gaps[others], 0.0) + max(indifference, MIN_EXPECTED_DISTANCE)
    labels_needed = n_units * -np.expm1(-2.0 * log_capital * draw_variance / distance**2 / n_units)
    return float(np.max(labels_needed[is_relevant.any(axis=0)], initial=0.0))
