"""All stratified samples of a tiny population: linear targets and their variances are exactly unbiased."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from stratal.designs import StratifiedWeighting
from stratal.estimation.domain_means import domain_mean
from stratal.estimation.linearised import of_variable, smooth_mean_function
from stratal.estimation.outcome_means import estimate_mean

SIZES, COUNTS = np.array([5, 4]), (3, 2)
RNG = np.random.default_rng(11)
A, B = RNG.integers(0, 2, 9).astype(float), RNG.uniform(size=9)
MEMBER = np.array([True, False, True, True, False, True, False, True, True])


def samples():
    stratum = np.repeat([0, 1], COUNTS)
    weighting = StratifiedWeighting(stratum=stratum, sizes=SIZES)
    for first, second in product(combinations(range(5), COUNTS[0]), combinations(range(5, 9), COUNTS[1])):
        yield np.array([*first, *second]), weighting


def test_paired_differences_and_their_variances_are_unbiased():
    nothing = np.zeros((sum(COUNTS), 0))
    found = [
        estimate_mean((A - B)[rows], nothing, weighting, None, stratum=weighting.stratum, outcome="unbounded")
        for rows, weighting in samples()
    ]
    values = np.array([entry.value for entry in found])
    variances = np.array([entry.standard_error**2 for entry in found])

    assert np.mean(A - B) == pytest.approx(values.mean())
    assert values.var() == pytest.approx(variances.mean())


def test_totals_of_a_domain_are_unbiased_with_the_whole_design_kept():
    zeroed = MEMBER * B
    found = [
        of_variable(float(weighting.weights @ zeroed[rows]), zeroed[rows], weighting)
        for rows, weighting in samples()
    ]

    assert zeroed.mean() == pytest.approx(np.mean([entry.value for entry in found]))
    assert np.var([entry.value for entry in found]) == pytest.approx(
        np.mean([entry.design_variance for entry in found])
    )


def test_domain_means_are_nearly_unbiased_and_exact_in_a_census():
    values = [domain_mean(B[rows], MEMBER[rows], weighting).value for rows, weighting in samples()]
    whole = StratifiedWeighting(stratum=np.repeat([0, 1], SIZES), sizes=SIZES)
    exact = domain_mean(B, MEMBER, whole, bounds=(0.0, 1.0))

    assert B[MEMBER].mean() == pytest.approx(exact.value)
    assert exact.standard_error == pytest.approx(0)
    assert abs(np.mean(values) - exact.value) < 0.25 * np.std(values)


def test_a_linear_function_is_the_mean_itself():
    for rows, weighting in samples():
        both = np.column_stack([A, B])[rows]
        result = smooth_mean_function(both, lambda m: 2 * m[0] - m[1], weighting)
        direct = of_variable(float(weighting.weights @ (2 * A - B)[rows]), (2 * A - B)[rows], weighting)

        assert direct.value == pytest.approx(result.value)
        assert direct.standard_error == pytest.approx(result.standard_error, abs=1e-9)
