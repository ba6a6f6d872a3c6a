"""Rows that were labelled in groups."""

import numpy as np
import pytest

from stratal.question.labelled_groups import LabelledGroups


def groups_of(column, codes, is_labelled, strata=None):
    codes = np.asarray(codes)
    if strata is None:
        strata = np.zeros(len(codes), dtype=np.int64)
    return LabelledGroups(column=column, codes=codes, is_labelled=np.asarray(is_labelled), strata=strata)


QUESTIONS = np.repeat(np.arange(300), 5)
ROW = np.arange(1500)


def test_whole_groups_are_concentrated():
    groups = groups_of("question", QUESTIONS, ROW < 300)

    assert (len(groups.sizes), groups.n_labelled, groups.labelled_share) == (300, 60, 1.0)
    assert groups.expected_labelled == pytest.approx(300 * (1 - 0.8**5))
    assert groups.are_concentrated
    assert groups.are_fully_labelled
    assert groups.are_sampling_units


def test_many_whole_groups_are_concentrated():
    """If 280 of 300 groups have labels, only whole groups show that groups were drawn."""
    groups = groups_of("question", QUESTIONS, QUESTIONS < 280)

    assert groups.are_concentrated
    assert groups.are_fully_labelled


def test_some_rows_of_some_groups_are_not_whole():
    groups = groups_of("question", QUESTIONS, (ROW < 300) & (ROW % 5 < 2))

    assert groups.are_concentrated
    assert groups.are_sampling_units
    assert not groups.are_fully_labelled
    assert not groups.are_labelled_enough_for_clusters


def test_few_levels_are_no_sampling_units():
    groups = groups_of("week", np.repeat(np.arange(10), 100), np.arange(1000) < 300)

    assert groups.are_concentrated
    assert groups.are_fully_labelled
    assert not groups.are_sampling_units


@pytest.mark.parametrize("n_strata", [1, 4])
@pytest.mark.parametrize("size", [2, 5, 50])
@pytest.mark.parametrize("labelled", [12, 60, 540])
def test_rows_at_random_are_not_groups(size, labelled, n_strata):
    """The bound holds: no false alarm in 300 tables of each kind, and a mean that no table comes near."""
    rng = np.random.default_rng(size * labelled)
    codes = np.repeat(np.arange(600 // size), size)
    strata = np.repeat(np.arange(n_strata), 600 // n_strata)
    probabilities = []
    for _ in range(300):
        is_labelled = np.zeros(600, dtype=bool)
        for stratum in range(n_strata):
            rows = np.flatnonzero(strata == stratum)
            is_labelled[rng.choice(rows, labelled // n_strata, replace=False)] = True
        groups = groups_of("question", codes, is_labelled, strata)
        assert not groups.are_concentrated
        probabilities.append(groups.p_value_bound)
    assert np.mean(np.array(probabilities) < 0.05) <= 0.05


def test_rates_that_differ_between_strata_do_not_concentrate():
    """All rows of one stratum and a tenth of the other have labels: groups lie within strata."""
    rng = np.random.default_rng(4)
    strata = (QUESTIONS >= 100).astype(np.int64)
    is_labelled = (strata == 0) | (rng.random(1500) < 0.1)

    assert groups_of("question", QUESTIONS, is_labelled).are_concentrated
    assert not groups_of("question", QUESTIONS, is_labelled, strata).are_concentrated


def test_clusters_in_coarser_groups():
    """Conversations of 5 rows in users of 6 conversations; with labels of users, and of conversations."""
    users = QUESTIONS // 6
    rng = np.random.default_rng(5)
    of_users = np.isin(users, rng.choice(50, 10, replace=False))
    of_conversations = np.isin(QUESTIONS, rng.choice(300, 60, replace=False))
    for is_labelled, are_users in ((of_users, True), (of_conversations, False)):
        conversation = groups_of("conversation", QUESTIONS, is_labelled)
        user = groups_of("user", users, is_labelled)
        assert conversation.is_nested_in(user)
        assert not user.is_nested_in(conversation)
        assert conversation.are_concentrated
        assert user.with_clusters_as_rows(conversation).are_concentrated == are_users


def test_sizes_of_labelled_groups():
    rng = np.random.default_rng(6)
    sizes = rng.integers(1, 30, 100)
    codes = np.repeat(np.arange(100), sizes)
    large = np.isin(codes, np.argsort(-sizes)[:20])
    at_random = np.isin(codes, rng.choice(100, 20, replace=False))

    assert groups_of("user", codes, large).differ_in_size
    assert not groups_of("user", codes, at_random).differ_in_size
    assert not groups_of("question", QUESTIONS, ROW < 300).differ_in_size


def test_sizes_of_groups_at_random_rarely_differ():
    rng = np.random.default_rng(7)
    alarms = 0
    for _ in range(2000):
        sizes = np.floor(rng.lognormal(1.5, 1.0, 40)).astype(int) + 1
        codes = np.repeat(np.arange(40), sizes)
        is_labelled = np.isin(codes, rng.choice(40, 8, replace=False))
        alarms += groups_of("user", codes, is_labelled).differ_in_size
    # The level is .001.
    assert alarms <= 6


def test_adjacent_groups():
    days = np.repeat(np.arange(60), 20)
    order = days.astype(np.float64)
    first = groups_of("day", days, days < 20)
    spread = groups_of("day", days, days % 3 == 0)
    few = groups_of("day", days, days < 1)

    assert first.are_consecutive(order)
    assert first.are_consecutive(-order)
    assert not spread.are_consecutive(order)
    assert not few.are_consecutive(order)
