"""Student's t with the skewness taken out: Hall's transformation, and where it matters."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from stratal.designs import StratifiedWeighting
from stratal.errors import InputError
from stratal.estimation.outcome_means import estimate_mean
from stratal.intervals.proportion import mean_skewness, student_t


def of_labels(z, size=10**9, **options):
    z, stratum = np.asarray(z, dtype=float), np.zeros(len(z), dtype=int)
    weighting = StratifiedWeighting(stratum=stratum, sizes=np.array([size]))
    return estimate_mean(z, np.zeros((len(z), 0)), weighting, None, stratum=stratum, **options)


@pytest.mark.parametrize("g", [-0.8, -0.1, 0.2, 0.9])
def test_the_limit_solves_halls_equation(g):
    """g(T) = T + γT²/3 + γ²T³/27 + γ/6 at the limit is Student's quantile, on the side that it moves."""
    low, high = student_t(0.0, 1.0, skewness=g, degrees_of_freedom=20)
    moved, quantile = (-high, -stats.t(20).ppf(0.975)) if g > 0 else (-low, stats.t(20).ppf(0.975))
    t = float(moved)

    assert t + g * t**2 / 3 + g**2 * t**3 / 27 + g / 6 == pytest.approx(quantile, abs=1e-9)


def test_without_skewness_it_is_students():
    expected = student_t(3.0, 0.5, degrees_of_freedom=9)

    assert np.array(student_t(3.0, 0.5, skewness=0.0, degrees_of_freedom=9)) == pytest.approx(
        np.array(expected), abs=1e-12
    )


def test_it_turns_with_the_outcome_and_holds_students():
    low, high = student_t(3.0, 0.5, skewness=0.4, degrees_of_freedom=9)
    turned_low, turned_high = student_t(-3.0, 0.5, skewness=-0.4, degrees_of_freedom=9)
    t_low, t_high = student_t(3.0, 0.5, degrees_of_freedom=9)

    assert (float(low), float(high)) == pytest.approx((-float(turned_high), -float(turned_low)))
    assert low <= t_low
    assert high > t_high


def test_the_skewness_is_the_outcomes_over_the_root_of_n():
    z = np.random.default_rng(2).gamma(0.5, size=40)
    evidence = of_labels(z).evidence

    assert evidence.skewness == pytest.approx(stats.skew(z, bias=False) / np.sqrt(40), rel=1e-6)


def test_strata_of_two_labels_add_nothing():
    counts, factors = np.array([2.0, 30.0]), np.array([0.1, 0.2])
    both = mean_skewness(counts, factors, np.array([0.0, 2.0]), np.array([5.0, 9.0]))

    assert both == pytest.approx(mean_skewness(counts[1:], factors[1:], np.array([2.0]), np.array([9.0])))


def test_far_out_the_limits_keep_their_ratio_to_students():
    """The transformation has a plateau: t = 11.9 with 47 degrees of freedom had p = 2.9e-4 for 8e-16."""
    at = {}
    for level in (0.95, 0.99, 0.9999, 1 - 1e-9):
        _, high = student_t(0.0, 1.0, skewness=0.3, degrees_of_freedom=47, confidence_level=level)
        at[level] = float(high) / float(student_t(0.0, 1.0, degrees_of_freedom=47, confidence_level=level)[1])
    assert 1 < at[0.95] < at[0.99]
    assert at[0.9999] == pytest.approx(at[0.99]) == pytest.approx(at[1 - 1e-9])


def test_test_and_interval_agree():
    estimate = of_labels([0, 0, 0, 3, 0, 1, 0, 0, 9, 0, 0, 2.0])
    low, _ = estimate.confidence_interval(0.9)

    assert estimate.p_value(low) == pytest.approx(0.1, abs=1e-6)


def test_an_outcome_with_bounds_has_better():
    with pytest.raises(InputError, match="without bounds"):
        of_labels([0, 1, 1]).confidence_interval(method="skewness-corrected")


def test_skewed_outcomes_are_covered_better():
    """Lognormal, σ = 1, 30 labels: Student's t covers .89."""
    random = np.random.default_rng(7)
    z = random.lognormal(size=(4000, 30))
    error = z.std(axis=1, ddof=1) / np.sqrt(30)
    thirds = ((z - z.mean(axis=1, keepdims=True)) ** 3).sum(axis=1)
    counts, factors = np.array([[30.0]]), np.array([[1 / 30]])
    skewness = mean_skewness(counts, factors, z.var(axis=1, ddof=1)[:, None], thirds[:, None])
    truth, covered = np.exp(0.5), {}
    for name, (low, high) in {
        "t": student_t(z.mean(axis=1), error, degrees_of_freedom=29),
        "corrected": student_t(z.mean(axis=1), error, skewness=skewness, degrees_of_freedom=29),
    }.items():
        covered[name] = np.mean((low <= truth) & (truth <= high))

    assert covered["t"] < 0.90
    assert covered["corrected"] > 0.92
