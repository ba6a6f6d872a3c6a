import numpy as np
import pytest
from tests.unit.strata.plain_rates import smoothed_standard_deviations, strata_of

import stratal
from stratal.errors import InputError
from stratal.strata.standard_deviations import posterior_rates
from stratal.strata.strata import moments_of_sizes

SIZES = [400, 400, 200]
MEANS = [0.95, 0.8, 0.4]


class TestBinary:
    def test_five_of_five_correct_is_not_zero(self):
        found = smoothed_standard_deviations(SIZES, [5, 5, 5], [5, 5, 5], proxy_means=MEANS)

        assert np.all(found > 0.1)

    def test_many_labels_win_over_the_proxy(self):
        counts = np.array([20_000, 20_000, 20_000])
        rates = np.array([0.3, 0.9, 0.55])

        found = smoothed_standard_deviations(counts, counts, counts * rates, proxy_means=MEANS)

        assert found == pytest.approx(np.sqrt(rates * (1 - rates)), rel=0.01)

    def test_without_labels_the_proxy_decides(self):
        found = smoothed_standard_deviations(SIZES, [0, 0, 0], [0, 0, 0], proxy_means=MEANS)

        assert found[0] < found[1] < found[2]

    def test_an_overconfident_proxy_is_corrected_in_strata_without_labels_too(self):
        means = [0.999, 0.998, 0.5]
        before = smoothed_standard_deviations(SIZES, [0, 0, 0], [0, 0, 0], proxy_means=means)

        after = smoothed_standard_deviations(SIZES, [60, 0, 20], [45, 0, 8], proxy_means=means)

        assert after[1] > before[1]

    def test_flat_zeros_and_ones_have_finite_log_odds(self):
        found = smoothed_standard_deviations(SIZES, [5, 5, 5], [1, 4, 5], proxy_means=[0.0, 1.0, 1.0])

        assert np.all(np.isfinite(found))
        assert np.all(found > 0)

    def test_without_a_proxy_strata_are_still_smoothed(self):
        found = smoothed_standard_deviations(SIZES, [5, 5, 5], [5, 2, 5])
        missing = smoothed_standard_deviations(SIZES, [5, 5, 5], [5, 2, 5], proxy_means=[np.nan] * 3)

        assert found[1] > found[0] == pytest.approx(found[2])
        assert found[0] > 0.1
        assert np.array_equal(found, missing)

    def test_of_a_proxy_that_only_orders_the_order_alone_counts(self):
        first = smoothed_standard_deviations(SIZES, [9] * 3, [9, 8, 4], proxy_means=[7, 2, -9], scaled=False)
        second = smoothed_standard_deviations(SIZES, [9] * 3, [9, 8, 4], proxy_means=[3, 2, 1], scaled=False)

        assert np.array_equal(first, second)

    def test_squares_of_a_binary_outcome_change_nothing(self):
        counts, sums = [9, 9, 9], [9, 8, 4]
        expected = smoothed_standard_deviations(SIZES, counts, sums, proxy_means=MEANS)

        found = smoothed_standard_deviations(SIZES, counts, sums, sums, proxy_means=MEANS)

        assert found == pytest.approx(expected, rel=1e-12)

    def test_flipping_the_outcome_changes_nothing(self):
        expected = smoothed_standard_deviations(SIZES, [9] * 3, [9, 8, 4], proxy_means=MEANS)

        found = smoothed_standard_deviations(SIZES, [9] * 3, [0, 1, 5], proxy_means=1 - np.array(MEANS))

        assert found == pytest.approx(expected, rel=1e-9)


class TestOtherOutcomes:
    def test_a_rating_is_the_rescaled_unit_outcome(self):
        counts, sums, squares = np.array([9, 9, 9]), np.array([7.0, 5.0, 3.0]), np.array([6.0, 3.5, 1.5])
        means = np.array(MEANS)
        expected = smoothed_standard_deviations(SIZES, counts, sums, squares, proxy_means=means)

        found = smoothed_standard_deviations(
            SIZES,
            counts,
            counts + 4 * sums,
            counts + 8 * sums + 16 * squares,
            proxy_means=1 + 4 * means,
            bounds=(1.0, 5.0),
        )

        assert found == pytest.approx(4 * expected)

    def test_many_ratings_win_over_the_proxy(self):
        counts = np.array([50_000, 50_000])
        means, deviations = np.array([3.0, 4.0]), np.array([1.0, 0.4])
        squares = counts * (means**2 + deviations**2)

        found = smoothed_standard_deviations(
            counts, counts, counts * means, squares, proxy_means=[2.0, 4.5], bounds=(1.0, 5.0)
        )

        assert found == pytest.approx(deviations, rel=0.01)

    def test_equal_labels_are_not_zero(self):
        found = smoothed_standard_deviations(SIZES, [5] * 3, [2.5] * 3, [1.25] * 3, proxy_means=MEANS)

        assert np.all(found > 0)

    def test_unbounded_outcomes_keep_their_own_variance(self):
        counts = np.array([1000, 1000])
        squares = counts * np.array([4.0, 25.0])

        found = smoothed_standard_deviations(
            [9000, 9000], counts, [0.0, 0.0], squares, bounds=(-np.inf, np.inf)
        )

        assert found == pytest.approx([2.0, 5.0], rel=0.02)

    def test_unbounded_and_all_labels_equal_falls_back_to_the_proxy(self):
        found = smoothed_standard_deviations(
            [90, 90],
            [5, 5],
            [10.0, 10.0],
            [20.0, 20.0],
            proxy_means=[2.0, 2.0],
            proxy_variances=[1.0, 4.0],
            conditional_variances=[0.0, 0.0],
            bounds=(-np.inf, np.inf),
        )

        assert 0 < found[0] < found[1]


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "options"),
        [
            (([10, 10], [5], [3, 3]), {}),
            (([10, 10], [5, -1], [3, 0]), {}),
            (([10, 10], [5, 5], [6, 3]), {}),
            (([10, 10], [5, 5], [-1, 3]), {}),
            (([10, 10], [5, 5], [float("nan"), 3]), {}),
            (([10, 10], [5, 5], [3, 3], [3]), {}),
            (([10, 10], [5, 5], [3, 3]), {"bounds": (1.0, 0.0)}),
            (([10, 10], [5, 5], [3, 3]), {"bounds": (-np.inf, np.inf)}),
        ],
    )
    def test_refuses(self, arguments, options):
        with pytest.raises(InputError):
            smoothed_standard_deviations(*arguments, **options)


def test_posterior_rates_have_the_variances_of_the_deviations():
    sizes, counts, ones = [500, 300, 200], [20, 5, 40], [19, 3, 10]
    told = {"proxy_means": [0.95, 0.6, 0.2]}
    rates = posterior_rates(strata_of(sizes, **told), counts, ones, n_draws=40_000)
    deviations = smoothed_standard_deviations(sizes, counts, ones, **told)

    # A mean of 40,000 values that lie between 0 and 1/4.
    assert np.allclose(np.mean(rates * (1 - rates), axis=0), deviations**2, atol=5 * 0.125 / 200)


@pytest.mark.parametrize("as_given", [list, tuple, np.array])
def test_sizes_alone_stand_for_strata_without_a_proxy(as_given):
    sizes, counts, sums = [500, 300, 200], [5, 9, 3], [5, 4, 0]
    found = stratal.strata.smoothed_standard_deviations(as_given(sizes), as_given(counts), as_given(sums))

    assert (
        found.tolist()
        == stratal.strata.smoothed_standard_deviations(
            moments_of_sizes(np.array(sizes)), counts, sums
        ).tolist()
    )
    with pytest.raises(InputError, match="strata must be whole numbers"):
        stratal.strata.smoothed_standard_deviations([0.5, 10.5], [5, 5], [1, 2])


def test_strata_of_a_population_are_taken_as_they_are():
    population = stratal.Population.from_arrays(proxy=[0.95] * 500 + [0.6] * 500)
    strata = stratal.strata.stratify(population, n_strata=2)

    assert stratal.strata.smoothed_standard_deviations(strata, [5, 5], [3, 5])[0] > 0.4
