"""Allocations for several estimands over generated strata: bounds, constraints, certificates, order."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tiers import sized

from stratal.strata import allocate_several


@st.composite
def problems(draw, most_strata=6, most_estimands=4):
    n_strata, count = draw(st.integers(1, most_strata)), draw(st.integers(1, most_estimands))

    def per_stratum(elements):
        return np.array(draw(st.lists(elements, min_size=n_strata, max_size=n_strata)))

    sizes = per_stratum(st.integers(1, 60))
    deviations = np.array([per_stratum(st.sampled_from([0.0, 0.1, 0.3, 0.5, 7.0])) for _ in range(count)])
    known = per_stratum(st.booleans()) & ~np.any(deviations > 0, axis=0)
    least = np.where(known, 0, 1)
    share = draw(st.floats(0.05, 1.0))
    labels = np.maximum(np.floor(share * sizes), 1) * (1 - known)
    return sizes, deviations, known, least, labels


def variances(sizes, deviations, n_h):
    weights = (sizes / sizes.sum() * deviations) ** 2
    return (weights * (1 / np.maximum(n_h, 1) - 1 / sizes)).sum(axis=1)


@settings(max_examples=sized(8, 200))
@given(problem=problems())
def test_what_is_wanted_is_reached_with_no_more_labels_than_a_way_that_is_known(problem):
    sizes, deviations, known, least, labels = problem
    wanted = np.sqrt(np.maximum(variances(sizes, deviations, labels), 1e-9))

    found = allocate_several(sizes, deviations, standard_errors=wanted, minimum=1, known_strata=known)

    assert np.all(found.n_h >= least)
    assert np.all(found.n_h <= sizes)
    assert np.all(found.n_h[known] == 0)
    assert np.all(found.standard_errors <= wanted * (1 + 1e-9))
    assert found.bound <= found.value <= max(labels.sum(), least.sum())
    assert found.real_n_h.sum() <= found.budget * (1 + 1e-9)


@settings(max_examples=sized(8, 200))
@given(problem=problems())
def test_a_budget_is_spent_within_bounds_and_a_larger_one_is_never_worse(problem):
    sizes, deviations, known, least, labels = problem
    wanted = np.full(len(deviations), 0.1)
    most = int(sizes[~known].sum())
    budget = int(np.clip(labels.sum(), least.sum(), most))

    options = {"standard_errors": wanted, "minimum": 1, "known_strata": known}
    found = allocate_several(sizes, deviations, budget, **options)
    more = allocate_several(sizes, deviations, min(budget + 3, most), **options)

    assert found.budget == budget
    assert np.all((found.n_h >= least) & (found.n_h <= sizes * ~known))
    assert found.bound <= found.value * (1 + 1e-12)
    assert more.value <= found.value * (1 + 1e-9)


@settings(max_examples=sized(10, 200))
@given(problem=problems(), seed=st.integers(0, 99))
def test_the_order_of_strata_and_estimands_does_not_matter(problem, seed):
    sizes, deviations, known, _, labels = problem
    wanted = np.sqrt(np.maximum(variances(sizes, deviations, labels), 1e-9))
    rng = np.random.default_rng(seed)
    strata, rows = rng.permutation(len(sizes)), rng.permutation(len(deviations))

    one = allocate_several(sizes, deviations, standard_errors=wanted, minimum=1, known_strata=known)
    other = allocate_several(
        sizes[strata],
        deviations[rows][:, strata],
        standard_errors=wanted[rows],
        minimum=1,
        known_strata=known[strata],
    )

    assert one.budget == other.budget


@settings(max_examples=sized(10, 200))
@given(problem=problems(), factor=st.sampled_from([1e-6, 0.1, 1000.0]))
def test_units_do_not_matter(problem, factor):
    sizes, deviations, known, _, labels = problem
    wanted = np.sqrt(np.maximum(variances(sizes, deviations, labels), 1e-9))

    one = allocate_several(sizes, deviations, standard_errors=wanted, minimum=1, known_strata=known)
    other = allocate_several(
        sizes, deviations * factor, standard_errors=wanted * factor, minimum=1, known_strata=known
    )

    assert one.budget == other.budget
