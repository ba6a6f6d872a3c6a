"""Vectorised whole numbers and deviations against the ones the library gives one at a time."""

import numpy as np
import pytest

from stratal import Population
from stratal.designs.stratum_moments import stratum_kurtoses
from stratal.errors import BudgetError, InputError
from stratal.simulation.adaptive_allocation import recalibrated_deviations
from stratal.simulation.draws import StratumSums
from stratal.strata import standard_deviations, stratify
from stratal.strata.arguments import check_budget, one_per_stratum, whole_number, whole_numbers_per_stratum
from stratal.strata.integer_allocation import AllocationBounds, nearest_integers, optimal_integers


@pytest.mark.parametrize("seed", range(30))
def test_counts_are_as_good_as_the_exact_ones(seed):
    rng = np.random.default_rng(seed)
    n_strata = int(rng.integers(1, 12))
    upper = rng.integers(2, 60, n_strata)
    lower = np.minimum(rng.integers(1, 5, n_strata), upper)
    importance = rng.random((5, n_strata)) * upper
    if seed % 5 == 0:
        importance[:, : n_strata // 2] = 0
    budget = int(rng.integers(lower.sum(), upper.sum() + 1))
    found = optimal_integers(importance, AllocationBounds.read(upper, lower), budget)

    assert np.all(found.sum(axis=1) == budget)
    assert np.all((found >= lower) & (found <= upper))
    for a, n_h in zip(importance, found, strict=True):
        exact = optimal_integers(a, AllocationBounds.read(upper, lower), budget)
        assert np.sum(a**2 / n_h) <= np.sum(a**2 / exact) * (1 + 1e-12)


def test_nearest_integers_are_near_the_real_ones_and_monotone():
    rng = np.random.default_rng(1)
    importance, upper = rng.random((50, 7)), np.full(7, 10**6)
    before = np.zeros((50, 7), dtype=np.int64)
    for budget in range(1, 60):
        found = nearest_integers(importance, upper, budget)
        share = budget * importance / importance.sum(axis=1, keepdims=True)
        assert np.all(found.sum(axis=1) == budget)
        assert np.all(np.abs(found - share) < 1.5)
        assert np.all(found >= before)
        before = found


def test_no_deviation_anywhere_means_shares_by_size():
    assert nearest_integers(np.zeros((1, 2)), np.array([300, 100]), 8).tolist() == [[6, 2]]


def strata_for(values, bounds=None, scaled=None):
    return stratify(Population.from_arrays(proxy=values, bounds=bounds, scaled=scaled), "k-means", 5)


CASES = {
    "binary": ({}, True),
    "graded": ({}, False),
    "only orders": ({"scaled": False, "bounds": (0.0, 1.0)}, True),
    "rating": ({"bounds": (-1.0, 3.0)}, False),
    "without bounds": ({"bounds": None, "scaled": False}, False),
}


@pytest.mark.parametrize("name", CASES)
def test_recalibrated_deviations_are_the_librarys(name):
    options, binary = CASES[name]
    rng = np.random.default_rng(4)
    strata = strata_for(rng.beta(5, 1, 2000), **options)
    n_h = np.array([6.0, 3.0, 4.0, 9.0, 5.0])
    for centre in (0.0, 0.7):
        y = [rng.random((8, int(n))) for n in n_h]
        if binary:
            y = [np.round(values) for values in y]
        first, second = (np.stack([(v**power).sum(axis=1) for v in y], axis=1) for power in (1, 2))
        third, fourth = (np.stack([((v - centre) ** p).sum(axis=1) for v in y], axis=1) for p in (3, 4))
        sums = StratumSums(
            counts=n_h[None],
            z=first - centre * n_h,
            zz=second - 2 * centre * first + centre**2 * n_h,
            zzz=third,
            zzzz=fourth,
        )
        found = recalibrated_deviations(sums, centre, strata, binary=binary)
        for r in range(8):
            expected = standard_deviations.smoothed_standard_deviations(
                strata,
                n_h,
                first[r],
                None if binary else second[r],
                bounds=strata.bounds,
                kurtoses=stratum_kurtoses(
                    np.concatenate([v[r] for v in y]), np.repeat(np.arange(5), n_h.astype(int)), 5
                ),
            )
            assert found[r] == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda: whole_numbers_per_stratum("sizes", [3, 2.5, 1]), "2.5 in stratum 1"),
        (lambda: whole_numbers_per_stratum("sizes", [3, 2, -1]), "given: -1"),
        (lambda: whole_number("budget", "7"), "given: '7'; allowed: 0, 1, 2"),
        (
            lambda: one_per_stratum("S_h", [0.1, -0.5], 2),
            "negative .given: -0.5",
        ),
        (
            lambda: one_per_stratum("S_h", [0.1], 2),
            "one entry per stratum .given: 1 for 2",
        ),
        (
            lambda: AllocationBounds.read([5, 5, 5], [1, 3, 3], [2, 2, 3]),
            "of stratum 1 .*maximum 2, minimum 3",
        ),
        (
            lambda: AllocationBounds.read([5, 5]).check(11),
            "above the population .given: 11; allowed: 4 to 10",
        ),
        (
            lambda: AllocationBounds.read([5, 5], maximum=3).check(7),
            "above the sum of the strata.s maxima .*given: 7; allowed: 4 to 6",
        ),
        (
            lambda: AllocationBounds.read([5, 5]).check(3),
            "given: 3 for 2 strata; allowed: 4 to 10.* minimum=1",
        ),
        (lambda: AllocationBounds.read([5, 5, 5]).check(3), "use fewer strata, or give minimum=1"),
        (lambda: AllocationBounds.read([5, 5, 5]).check(2), "use fewer strata"),
        (lambda: AllocationBounds.read([5, 5], minimum=0.5), "minimum must be a whole number .given: 0.5"),
        (
            lambda: AllocationBounds.read([5, 5], maximum=[3, 2.5]),
            "maximum must be whole .* 2.5 in stratum 1",
        ),
        (lambda: check_budget(0), "given: 0; allowed: 1 to N"),
        (lambda: check_budget(True), "given: True; allowed: 1 to N"),
        (lambda: check_budget(2.5), "given: 2.5; allowed: 1 to N"),
        (lambda: check_budget(11, 10), "larger than the population .given: 11; allowed: 1 to 10"),
    ],
)
def test_a_mistake_names_its_stratum_and_its_limits(mistake, message):
    with pytest.raises((InputError, BudgetError), match=message):
        mistake()


def test_an_empty_stratum_of_more_importance_goes_first():
    bounds = AllocationBounds(sizes=np.full(3, 5), lower=np.array([0, 0, 1]), upper=np.full(3, 5))

    assert optimal_integers(np.array([0.1, 0.2, 9.0]), bounds, 2).tolist() == [0, 1, 1]


def test_the_limits_themselves_are_allowed():
    bounds = AllocationBounds.read([5, 5], minimum=[5, 2], maximum=[5, 2])

    assert (bounds.check(7), whole_number("budget", 0), AllocationBounds.read([5, 5]).check(10)) == (7, 0, 10)
    check_budget(1)
    check_budget(10, 10)
