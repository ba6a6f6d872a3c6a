"""Which sets are accepted: step-down max-t, fixed sequences, and the sets themselves."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from stratal.metrics.threshold_goal import SetRequirement
from stratal.thresholds.decision import decide
from stratal.thresholds.evidence import set_evidence
from stratal.thresholds.limits import WeightedTotals
from stratal.thresholds.sets import LabelledScores, candidate_sets, cell_weights, region_weights
from stratal.thresholds.step_down import set_correlations, step_down


def simple_labels(outcomes, scores, groups=1):
    count = len(outcomes)
    return LabelledScores(
        outcomes=np.asarray(outcomes, float),
        scores=np.asarray(scores, float)[:, None],
        group=np.arange(count) % groups,
        stratum=np.zeros(count, int),
        weights=np.full(count, 1.0 / count),
    )


def test_nested_sets_of_equal_weights_have_the_correlations_of_their_sizes():
    weights = np.array([[1.0, 0.5], [0.0, 0.5]])

    assert set_correlations(weights)[0, 1] == pytest.approx(np.sqrt(0.5))


def test_one_hypothesis_has_the_whole_error_and_independent_ones_share_it():
    assert step_down(np.array([0.5]), np.eye(1), 0.05)[1][0] == pytest.approx(0.05, abs=0.003)
    local_levels = step_down(np.full(20, 0.5), np.eye(20), 0.05)[1]
    assert local_levels[0] == pytest.approx(1 - 0.95 ** (1 / 20), abs=0.0005)


def test_a_rejected_hypothesis_leaves_more_error_to_the_others():
    rejected, local_levels = step_down(np.array([1e-6, 0.03]), np.eye(2), 0.05)

    assert rejected.tolist() == [True, True]
    assert local_levels[1] > local_levels[0]


def test_equal_scores_stay_together_and_the_last_set_has_every_unit():
    scores = np.repeat([0.9, 0.5, 0.1], 40)
    sets = candidate_sets(scores[:, None], np.zeros(120, int), ("",))

    assert sets.thresholds[:, 0].tolist() == [0.9, 0.5, -np.inf]
    assert sets.members(scores[:, None], np.zeros(120, int)).sum(axis=0).tolist() == [40, 80, 120]


def test_a_constant_score_has_one_set():
    assert candidate_sets(np.full((50, 1), 0.9), np.zeros(50, int), ("",)).thresholds.tolist() == [[-np.inf]]


def test_two_scores_have_a_grid_of_thresholds():
    rng = np.random.default_rng(1)
    sets = candidate_sets(rng.random((300, 2)), np.zeros(300, int), ("",))

    assert sets.thresholds.shape == (36, 2)


def test_labels_of_a_stratum_count_by_its_part_of_the_set():
    members = np.array([[True], [True], [False], [True]])
    stratum = np.array([0, 0, 1, 1])
    weighted = region_weights(
        members, stratum, np.array([[60], [20], [20]]), np.array([[100], [100], [100]]), is_finite=True
    )

    assert weighted.weights[:, 0] == pytest.approx([0.3, 0.3, 0.0, 0.2])
    assert weighted.unlabelled[0] == pytest.approx(0.2)
    assert weighted.variance_reduction[0] == 0.0
    assert weighted.share[0] == pytest.approx(1 / 3)


def test_limits_of_tiny_strata_hold():
    """One fault in each of 50 strata of six units, of which three are labelled: the labels have a half."""
    sizes = np.full((50, 1), 6)
    cells = cell_weights(np.full((50, 1), 3), sizes, sizes, is_finite=True)
    faults = np.arange(51)
    weight = cells.weights[0, 0]
    limits = WeightedTotals(
        total=faults * weight,
        square=faults * weight**2,
        largest_weight=np.full(51, weight),
        unlabelled=np.zeros(51),
        variance_reduction=np.full(51, cells.variance_reduction[0]),
    ).upper(0.05)

    assert binom(50, 0.5).pmf(faults) @ (limits < 1 / 6) <= 0.05


@pytest.mark.parametrize("metric", ["error", "false_positive_rate"])
def test_the_largest_set_is_accepted_and_for_recall_the_smallest(metric):
    scores = np.linspace(1, 0, 400)
    outcomes = scores > 0.5
    labels = simple_labels(outcomes, scores)
    sets = candidate_sets(labels.scores, labels.group, ("",))
    requirement = SetRequirement(metric=metric, limit=0.1)
    accepted = decide(requirement, set_evidence(metric, labels, sets), sets, 0.05).accepted
    recall = SetRequirement(metric="recall", limit=0.8)
    recalled = decide(recall, set_evidence("recall", labels, sets), sets, 0.05).accepted

    assert sets.thresholds[np.flatnonzero(accepted)[-1], 0] == pytest.approx(0.5, abs=0.06)
    assert recalled[-1]
    assert sets.thresholds[np.flatnonzero(recalled)[0], 0] == pytest.approx(0.55, abs=0.06)


def test_groups_share_the_error():
    rng = np.random.default_rng(5)
    scores = rng.random(600)
    labels = simple_labels(rng.random(600) < 0.99, scores, groups=6)
    names = tuple("abcdef")
    sets = candidate_sets(labels.scores, labels.group, names)
    evidence = set_evidence("recall", labels, sets)
    local_levels = decide(SetRequirement(metric="recall", limit=0.5), evidence, sets, 0.05).local_levels

    assert local_levels == pytest.approx(np.full(len(sets.group), 0.05 / 6))


def test_sets_that_can_never_pass_take_no_error_from_the_others():
    labels = simple_labels(np.ones(70), np.linspace(1, 0, 70))
    sets = candidate_sets(labels.scores, labels.group, ("",))
    requirement = SetRequirement(metric="error", limit=0.05)
    evidence = set_evidence("error", labels, sets)
    tested = decide(requirement, evidence, sets, 0.05)

    assert 0 < evidence.can_pass(0.05, 0.05).sum() < len(sets.group)
    assert tested.local_levels[-1] > step_down(np.ones(20), set_correlations(evidence.weights), 0.05)[1][0]
    assert tested.accepted[-1]


def test_replicates_of_cells_have_the_weights_of_each_alone():
    rng = np.random.default_rng(3)
    sizes = rng.integers(5, 50, (4, 3, 2))
    counts = rng.integers(0, 5, (4, 3, 2))
    group_sizes = sizes + 7
    together = cell_weights(counts, sizes, group_sizes, is_finite=True)

    for run in range(4):
        alone = cell_weights(counts[run], sizes[run], group_sizes[run], is_finite=True)
        assert np.array_equal(together.weights[run], alone.weights)
        assert np.array_equal(together.unlabelled[run], alone.unlabelled)
        assert np.array_equal(together.variance_reduction[run], alone.variance_reduction)
        assert np.array_equal(together.share[run], alone.share)


def test_each_step_takes_the_largest_statistic_of_the_sets_that_remain():
    rng = np.random.default_rng(3)
    p_values = np.array([0.3, 1e-5, 0.012, 0.02, 0.009, 0.5])
    root = np.linalg.cholesky(np.full((6, 6), 0.6) + 0.4 * np.eye(6))
    rejected, local_levels = step_down(p_values, root @ root.T, 0.05)
    first = ndtr(-np.quantile((root @ rng.standard_normal((6, 200_000))).max(axis=0), 0.95))

    assert local_levels[1] == pytest.approx(first, rel=0.05)
    assert rejected.tolist() == (p_values <= local_levels).tolist()
    remaining = (root @ rng.standard_normal((6, 200_000)))[~rejected].max(axis=0)
    assert local_levels[~rejected] == pytest.approx(ndtr(-np.quantile(remaining, 0.95)), rel=0.05)
