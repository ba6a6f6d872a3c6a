"""Whole numbers of labels are optimal in exact arithmetic, for each of several replicates by itself."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stratal.strata.integer_allocation import AllocationBounds, nearest_integers, optimal_integers


@st.composite
def problems(draw):
    """Return importance (R, H) whose rows differ in scale, sizes, lower bounds and a budget between them."""
    strata = draw(st.integers(1, 5))
    row = st.lists(st.sampled_from([0, 0, 1, 2, 3, 5, 8, 13, 30]), min_size=strata, max_size=strata)
    rows = draw(st.lists(st.tuples(row, st.sampled_from([2.0**-800, 1.0, 2.0**60])), min_size=1, max_size=4))
    sizes = draw(st.lists(st.integers(1, 9), min_size=strata, max_size=strata))
    lower = [min(size, draw(st.integers(0, 3))) for size in sizes]
    budget = draw(st.integers(sum(lower), sum(sizes)) | st.just(max(sum(lower), sum(sizes) - 1)))
    return np.array([np.array(a) * scale for a, scale in rows]), sizes, lower, budget


def settled(worth, n_h, lower, upper):
    """Whether no unit that is left out is worth more, by `worth(h, n)` of unit n + 1, than one taken."""
    strata = range(len(n_h))
    left = [worth(h, n_h[h]) for h in strata if n_h[h] < upper[h]]
    taken = [worth(h, n_h[h] - 1) for h in strata if n_h[h] > lower[h]]
    return not left or not taken or max(left) <= min(taken)


def by_wright(a):
    """Order the first units, which are worth infinitely much, by a_h; then a_h² / (n (n + 1))."""
    return lambda h, n: (1, Fraction(a[h])) if n == 0 else (0, Fraction(a[h]) ** 2 / (n * (n + 1)))


def by_webster(a):
    return lambda h, n: Fraction(a[h]) / (2 * n + 1)


def in_two_steps(rule, a, n_h, lower, sizes):
    """Check the strata that matter, then that the others get by their sizes what those cannot hold."""
    matters = [value > 0 for value in a]
    upper = [size if kept else least for size, kept, least in zip(sizes, matters, lower, strict=True)]
    first = np.minimum(n_h, upper)
    assert settled(rule(a), first.tolist(), lower, upper)
    if np.any(n_h > first):
        assert first.tolist() == upper
        assert settled(rule([float(size) for size in sizes]), n_h.tolist(), first.tolist(), sizes)


@given(problems())
def test_no_unit_is_worth_more_than_one_that_was_taken(problem):
    importance, sizes, lower, budget = problem
    found = optimal_integers(importance, AllocationBounds.read(sizes, minimum=lower), budget)

    assert found.sum(axis=-1).tolist() == [budget] * len(importance)
    for a, n_h in zip(importance, found, strict=True):
        assert np.all((n_h >= lower) & (n_h <= sizes))
        in_two_steps(by_wright, a, n_h, lower, sizes)


@given(problems())
def test_the_nearest_whole_numbers_are_websters(problem):
    importance, sizes, _, budget = problem
    found = nearest_integers(importance, np.array(sizes), budget)

    assert found.sum(axis=-1).tolist() == [budget] * len(importance)
    for a, n_h in zip(importance, found, strict=True):
        assert np.all((n_h >= 0) & (n_h <= sizes))
        shares = a if a.max() > 0 else np.array(sizes, float)
        in_two_steps(by_webster, shares, n_h, [0] * len(sizes), sizes)
