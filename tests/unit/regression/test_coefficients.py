"""The result: intervals and p-values agree, tables print, JSON holds."""

import json

import numpy as np
import pytest

from stratal.designs import StratifiedWeighting
from stratal.errors import InputError
from stratal.intervals.proportion import skewness_of
from stratal.intervals.simultaneous import largest_statistics
from stratal.regression.losses import with_intercept
from stratal.regression.m_estimation import linear_regression


@pytest.fixture(scope="module")
def result():
    random = np.random.default_rng(6)
    x = np.column_stack([np.ones(60), random.normal(size=(60, 2))])
    y = x @ [0.0, 0.35, -0.3] + random.normal(size=60)
    weighting = StratifiedWeighting(stratum=np.repeat([0, 1], 30), sizes=np.array([400, 600]))
    return linear_regression(x, y, weighting=weighting, names=["intercept", "length", "<b>"])


@pytest.mark.parametrize("simultaneous", [False, True])
@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
@pytest.mark.parametrize("method", ["auto", "t", "normal"])
def test_p_values_agree_with_intervals(result, method, alternative, simultaneous):
    options = {"method": method, "alternative": alternative}
    result = result.simultaneous() if simultaneous else result
    for level in (0.5, 0.95):
        low, high = result.confidence_interval(level, **options)
        for shift in np.linspace(-3, 3, 11):
            null = result.values + shift * result.standard_errors
            outside = (null < low) | (null > high)

            assert np.array_equal(result.p_values(null, **options) < 1 - level - 1e-9, outside)


def test_a_slope_beyond_doubt_has_the_p_value_of_one():
    """T = 11.9 with 47 degrees of freedom; Student's p is 8e-16, the plateau's was 2.9e-4."""
    random = np.random.default_rng(12)
    x = random.gamma(1.0, size=50)
    y = 0.75 * x + random.standard_t(4, 50) * 0.35
    weighting = StratifiedWeighting(stratum=np.zeros(50, int), sizes=np.array([5000]))
    found = linear_regression(np.column_stack([np.ones(50), x]), y, weighting=weighting)
    assert found.values[1] / found.standard_errors[1] > 8
    assert abs(found[1].evidence.interval.skewness) > 0.2
    p, plain = found.p_values()[1], found.p_values(method="t")[1]
    assert plain < p < 1e-6
    for level in (0.999, 1 - 1e-6):
        low, _ = found.confidence_interval(level)
        assert found.p_values(low[1])[1] == pytest.approx(1 - level, rel=1e-6)


@pytest.fixture(scope="module")
def skewed():
    """A group of 20 among 80 whose outcomes have a long tail upwards."""
    random = np.random.default_rng(8)
    far = np.repeat([1.0, 0.0], [20, 60])
    y = np.where(far == 1, random.exponential(size=80), 0.2 * random.normal(size=80))
    weighting = StratifiedWeighting(stratum=np.zeros(80, int), sizes=np.array([10**6]))
    return linear_regression(np.column_stack([np.ones(80), far]), y, weighting=weighting, names=["1", "far"])


def test_a_skewed_coefficient_reaches_further_than_t(skewed):
    low, high = skewed.confidence_interval()
    t_low, t_high = skewed.confidence_interval(method="t")

    assert skewed[1].confidence_interval().method == "skewness-corrected"
    assert skewed[1].evidence.interval.skewness > 0.1
    assert high[1] > t_high[1] + 0.1 * skewed.standard_errors[1]
    assert np.all(low <= t_low + 1e-12)
    assert low + high == pytest.approx(2 * skewed.values)


def test_skewness_is_that_of_what_each_label_adds():
    z = np.random.default_rng(3).exponential(size=50)
    weighting = StratifiedWeighting(stratum=np.zeros(50, int), sizes=np.array([10**6]))
    mean = linear_regression(np.ones((50, 1)), z, weighting=weighting)

    turned = linear_regression(np.ones((50, 1)), -z, weighting=weighting)

    assert mean[0].evidence.interval.skewness == pytest.approx(skewness_of(z, weighting), rel=1e-9)
    assert turned[0].evidence.interval.skewness == pytest.approx(-mean[0].evidence.interval.skewness)


def test_max_t_is_narrower_than_a_part_of_the_error_each_and_wider_than_one_at_a_time(result):
    found = (result.confidence_interval(0.95), result.simultaneous().confidence_interval(0.95))
    alone, together, each = (
        (high - low)[1] for low, high in (*found, result.confidence_interval(1 - 0.05 / 3))
    )

    assert alone < together < each


def test_max_t_covers_all_coefficients_together():
    correlation = 0.9 * np.ones((4, 4)) + 0.1 * np.eye(4)
    critical = np.quantile(largest_statistics(correlation, np.inf, "two-sided", seed=1), 0.95)

    draws = np.random.default_rng(2).multivariate_normal(np.zeros(4), correlation, size=20_000)
    covered = np.mean(np.abs(draws).max(axis=1) <= critical)
    assert covered == pytest.approx(0.95, abs=4 * np.sqrt(0.05 * 0.95 / 20_000))


def test_the_seed_decides(result):
    first, second, other = (result.simultaneous(seed=seed).confidence_interval()[0] for seed in (3, 3, 4))

    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_it_prints_as_a_table(result):
    text = str(result)

    assert (
        text.splitlines()[0] == "linear regression, classical, 60 labels of 1,000 units, target: population"
    )
    assert "standard error" in text
    assert "length" in text


def test_html_is_escaped(result):
    page = result._repr_html_()

    assert "&lt;b&gt;" in page
    assert "<b>" not in page


def test_the_dictionary_is_json(result):
    description = json.loads(json.dumps(result.to_dict(0.9), allow_nan=False))

    assert description["coefficients"][1]["coefficient"] == "length"
    assert description["coefficients"][1]["confidence_interval"][0] == pytest.approx(
        result.confidence_interval(0.9)[0][1]
    )
    assert np.array(description["covariance"]).shape == (3, 3)


def test_json_gives_each_coefficient_s_degrees_of_freedom_and_method(result):
    for fit, ending in ((result, "skewness-corrected"), (result.simultaneous(), "simultaneous")):
        rows = fit.to_dict()["coefficients"]

        assert [row["degrees_of_freedom"] for row in rows] == [row.degrees_of_freedom for row in fit]
        assert all(row["interval_method"].endswith(ending) for row in rows)


def test_a_perfect_fit_has_no_interval_rather_than_one_of_rounding():
    """Its limits lay 1e-14 apart, as if nothing were left to chance with 960 units unlabelled."""
    x = np.random.default_rng(1).normal(size=40)
    weighting = StratifiedWeighting(stratum=np.zeros(40, int), sizes=np.array([1000]))
    for outcome in (3.0 + 2.0 * x, 1e-6 * (3.0 + 2.0 * x), 0.0 * x):
        found = linear_regression(with_intercept(x[:, None]), outcome, weighting=weighting)

        assert np.array_equal(found.standard_errors, [0.0, 0.0])
        with pytest.raises(InputError, match="all labels agree, or equal the fitted values"):
            found.confidence_interval()
        assert [row["interval_method"] for row in found.to_dict()["coefficients"]] == [None, None]


def test_a_tiny_p_value_is_not_printed_as_zero(result):
    x = np.arange(40.0)
    weighting = StratifiedWeighting(stratum=np.zeros(40, int), sizes=np.array([1000]))
    noise = np.random.default_rng(2).normal(size=40)
    far = linear_regression(with_intercept(x[:, None]), 50 * x + noise, weighting=weighting)

    assert 0 < far.p_values()[1] < 1e-20
    assert f"{far.p_values()[1]:.2e}" in str(far)


def test_without_error_there_is_no_statistic():
    everyone = StratifiedWeighting(stratum=np.zeros(4, int), sizes=np.array([4]))
    census = linear_regression([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 5.0, 9.0], weighting=everyone)

    low, high = census.confidence_interval()
    assert np.array_equal(low, census.values)
    assert np.array_equal(high, census.values)
    assert census.p_values() == pytest.approx([0.0])
    assert census.p_values(census.values) == pytest.approx([1.0])


def test_arrays_are_read_only(result):
    with pytest.raises(ValueError, match="read-only"):
        result.lam[0] = 1.0


def test_coefficients_that_hold_together_say_so(result):
    """Each by itself, and by other methods too."""
    for method in ("auto", "t", "normal"):
        assert result.simultaneous()[1].confidence_interval(method=method).method.endswith(", simultaneous")
    plain, together = result[1].p_value(0.0, "normal"), result.simultaneous()[1]
    assert plain < together.p_value(0.0, "normal") < 3 * plain + 0.01


def test_differences_of_coefficients_are_estimates(result):
    pairs = result.differences(simultaneous=False)
    c = np.array([0, 1, -1])

    assert pairs[2].label == {"a": "length", "b": "<b>"}
    assert pairs[2].value == pytest.approx(c @ result.values)
    assert pairs[2].standard_error ** 2 == pytest.approx(c @ result.covariance @ c)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.confidence_interval(95), "confidence_level is out of range"),
        (lambda r: r.confidence_interval(0.9, "wald"), "unknown kind of interval"),
        (lambda r: r.confidence_interval(0.9, alternative="larger"), "no such alternative"),
        (lambda r: r.of(coefficient="lenght"), "coefficient='lenght'"),
    ],
)
def test_bad_arguments_are_told(result, call, message):
    with pytest.raises(InputError, match=message):
        call(result)


def test_coefficients_have_names_and_positions(result):
    assert result.of(coefficient="length") is result[1]


def test_a_null_of_the_wrong_length_is_told(result):
    with pytest.raises(InputError, match="one number or one per estimate"):
        result.p_values([0.0, 0.0])
