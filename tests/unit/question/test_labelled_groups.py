"""Rows that were labelled in groups."""

import numpy as np
import pytest

from stratal.question.labelled_groups import LabelledGroups


def groups_of(questions, size):
    return np.repeat([f"q{question}" for question in range(questions)], size).tolist()


def test_whole_groups_are_clusters():
    is_labelled = np.arange(1500) < 300
    groups = LabelledGroups.of("question", groups_of(300, 5), is_labelled)

    assert (groups.groups, groups.labelled, groups.labelled_share) == (300, 60, 1.0)
    assert groups.expected == pytest.approx(300 * (1 - 0.8**5))
    assert groups.are_clusters


def test_some_rows_of_some_groups_are_two_stages():
    row = np.arange(1500)
    groups = LabelledGroups.of("question", groups_of(300, 5), (row < 300) & (row % 5 < 2))

    assert groups.are_chosen
    assert groups.are_many
    assert not groups.are_whole
    assert not groups.are_clusters


def test_few_levels_are_no_clusters():
    groups = LabelledGroups.of("week", groups_of(10, 100), np.arange(1000) < 300)

    assert groups.are_chosen
    assert groups.are_whole
    assert not groups.are_clusters


@pytest.mark.parametrize("size", [2, 5, 50])
@pytest.mark.parametrize("labelled", [3, 60, 550])
def test_rows_at_random_are_not_groups(size, labelled):
    """The bound holds: no false alarm in 300 tables of each kind, and a mean that no table comes near."""
    rng = np.random.default_rng(size * labelled)
    levels = groups_of(600 // size, size)
    probabilities = []
    for _ in range(300):
        is_labelled = np.zeros(600, dtype=bool)
        is_labelled[rng.choice(600, labelled, replace=False)] = True
        groups = LabelledGroups.of("question", levels, is_labelled)
        assert not groups.are_chosen
        probabilities.append(groups.probability)
    assert np.mean(np.array(probabilities) < 0.05) <= 0.05
