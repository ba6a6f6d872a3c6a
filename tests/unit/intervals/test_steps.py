"""The steps of a sum over very many strata: as for few, in time and memory in proportion to them."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from stratal.intervals import steps as module
from stratal.intervals.steps import Steps
from stratal.intervals.stratified import StratumRates, stratified_clopper_pearson


def by_the_formula(sizes, pull, apart, share):
    """Return max over h of s_h · share_h · e^(−Σ_k c_k a_k (1 − cos 2π s_k/s_h)), one by one."""
    left = [
        sum(
            c * a * (1 - np.cos(2 * np.pi * other / own))
            for c, a, other in zip(pull, apart, sizes, strict=True)
        )
        for own in sizes
    ]
    return max(s * part * np.exp(-lost) for s, part, lost in zip(sizes, share, left, strict=True))


def drawn(n_strata, different):
    random = np.random.default_rng(n_strata)
    sizes = random.choice(random.random(different) + 0.01, n_strata)
    pull, apart = random.random(n_strata) + 1, 0.02 * random.random((2, n_strata))
    return sizes, pull, apart, random.random((2, n_strata))


@pytest.mark.parametrize(("n_strata", "different"), [(3, 3), (99, 5), (100, 5), (150, 150), (200, 1)])
def test_grouped_or_not_the_formula_holds(n_strata, different):
    sizes, pull, apart, share = drawn(n_strata, different)
    expected = [by_the_formula(sizes, pull, apart[row], share[row]) for row in range(2)]

    found = Steps.of(sizes[:, None], pull[:, None]).largest(apart.T, share.T.copy())

    assert found == pytest.approx(expected, rel=1e-12)


def test_a_stratum_that_does_not_move_has_no_step():
    sizes = np.concatenate([np.zeros(60), np.full(60, 0.01)])[:, None]

    found = Steps.of(sizes, np.ones((120, 1))).largest(np.full((120, 1), 0.2), np.ones((120, 1)))

    assert found == pytest.approx([0.01])


def test_of_too_many_steps_the_largest_are_looked_at(monkeypatch):
    sizes, pull, apart, share = drawn(200, 200)
    whole = Steps.of(sizes[:, None], pull[:, None])
    monkeypatch.setattr(module, "_MOST_CELLS", 60 * len(whole.starts))
    some = Steps.of(sizes[:, None], pull[:, None])

    assert some.blur.shape == (60, len(whole.starts))
    assert some.sizes == pytest.approx(whole.sizes[:60])
    assert np.all(some.largest(apart.T, share.T.copy()) <= whole.largest(apart.T, share.T.copy()))


def strata(random, n_strata):
    sizes = random.integers(20, 100 * n_strata, n_strata)  # steps almost all different
    labels = random.integers(2, 8, n_strata).astype(float)
    ones = random.binomial(labels.astype(int), 0.9)
    shares = sizes / sizes.sum()
    return StratumRates(
        value=np.sum(shares * ones / labels), rates=ones / labels, counts=labels,
        trials=labels / (1 - labels / sizes), shares=shares,
    )  # fmt: skip


def test_the_largest_steps_give_the_limits_of_all(monkeypatch):
    found = strata(np.random.default_rng(0), 1500)
    whole = stratified_clopper_pearson(found, 0.025, 0.025)
    monkeypatch.setattr(module, "_MOST_CELLS", 100_000)

    assert np.ravel(stratified_clopper_pearson(found, 0.025, 0.025)) == pytest.approx(
        np.ravel(whole), abs=1e-12
    )


def test_memory_grows_with_the_strata_not_their_square():
    found = strata(np.random.default_rng(0), 20_000)
    tracemalloc.start()
    low, high = stratified_clopper_pearson(found, 0.025, 0.025)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert low < found.value < high
    assert peak < 150e6  # a matrix of all pairs: 3.2 GB
