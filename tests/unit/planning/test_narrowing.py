import numpy as np

from stratal.planning.needs import further, taken_now


def shrink(n, _):
    return n**-0.5


def test_later_rounds_bring_a_little_more_than_is_expected_to_be_enough():
    first = further(shrink, np.array([0.12]), 0.1, np.array([70]), 1000)
    later = further(shrink, np.array([0.12]), 0.1, np.array([70]), 1000, looked=True)

    assert [int(part[0]) for part in first] == [30, 100]
    assert [int(part[0]) for part in later] == [36, 106]


def test_no_more_than_there_is():
    extra, total = further(shrink, np.array([0.12]), 0.1, np.array([70]), 101, looked=True)

    assert (int(extra[0]), int(total[0])) == (31, 101)


def test_a_round_that_goes_far_is_careful_all_the_same():
    assert taken_now(np.array([100]), np.array([500]), looked=True).tolist() == [300]
