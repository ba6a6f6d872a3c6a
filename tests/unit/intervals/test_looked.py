from __future__ import annotations

import numpy as np
import pytest

from stratal.intervals.label_based_sizes import shrink_to_half


def test_the_bias_of_a_total_that_follows_the_variance_is_taken_back():
    """Labels of rate .1 until p̂(1 − p̂)/n is 2e-4: the rate is too low by (1 − 2p)/n, drawn back it is not."""
    rng = np.random.default_rng(1)
    first = rng.binomial(200, 0.1, 40_000)
    rate = np.clip(first / 200, 0.01, 0.99)
    n = np.maximum(np.round(rate * (1 - rate) / 2e-4), 200.0)
    rates = (first + rng.binomial((n - 200).astype(int), 0.1)) / n
    back = shrink_to_half(rates[:, None], n[:, None], np.ones(1), np.ones((40_000, 1)), np.ones(40_000))[:, 0]
    error = rates.std() / 200

    assert rates.mean() < 0.1 - 8 * error
    assert abs(back.mean() - 0.1) < abs(rates.mean() - 0.1) / 3


def test_what_is_labelled_whole_stays_and_graded_labels_move_less():
    n_h, parts = np.array([100.0, 100.0]), np.array([0.0, 1e-4])
    rates = np.array([0.9, 0.9])
    found = shrink_to_half(rates, n_h, np.array([0.0, 1.0]), parts, np.ones(()))
    graded = shrink_to_half(rates, n_h, np.array([0.0, 1.0]), parts, np.array(4.0))

    assert found[0] == graded[0] == 0.9
    assert 0.9 - graded[1] == pytest.approx((0.9 - found[1]) / 4, rel=0.02)
