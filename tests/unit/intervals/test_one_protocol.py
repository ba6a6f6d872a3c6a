"""Every interval method is an `Interval`: data that can be pickled, whose p-value agrees with its ends."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from stratal.designs import StratifiedWeighting
from stratal.estimation.outcome_means import estimate_mean
from stratal.intervals.interval import Interval
from stratal.intervals.methods import INTERVAL_METHODS, find_interval


def evidence_of(method: str):
    """40 labels in two strata, binary if the method needs bounds."""
    stratum = np.repeat([0, 1], 20)
    weighting = StratifiedWeighting(stratum=stratum, sizes=np.array([300, 200]))
    z = (np.arange(40) % 5 > 0).astype(float)
    bounds = (0.0, 1.0)
    if not INTERVAL_METHODS[method].needs_bounds:
        z = z + np.arange(40) / 100.0
        bounds = None
    none = np.zeros((40, 0))
    return estimate_mean(z, none, weighting, None, stratum=stratum, bounds=bounds).evidence


@pytest.mark.parametrize("method", INTERVAL_METHODS)
def test_every_method_is_an_interval_whose_p_value_agrees_with_its_ends(method):
    interval = find_interval(evidence_of(method), method)

    assert isinstance(interval, Interval)
    assert interval.method == method
    low, high = interval.ends(0.9, "two-sided")
    assert low < interval.value < high
    for end in (low, high):
        inside = end + 1e-4 * (interval.value - end)
        outside = end - 1e-4 * (interval.value - end)
        assert interval.p_value(inside) >= 0.1 - 1e-6 >= interval.p_value(outside) - 2e-6


@pytest.mark.parametrize("method", INTERVAL_METHODS)
def test_an_interval_is_data(method):
    interval = find_interval(evidence_of(method), method)
    copy = pickle.loads(pickle.dumps(interval))

    assert copy.ends(0.95, "two-sided") == pytest.approx(interval.ends(0.95, "two-sided"))
