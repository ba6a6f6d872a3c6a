from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from stratal.errors import BudgetError
from stratal.population import Population
from stratal.population.distribution import Distribution
from stratal.strata import stratify
from stratal.strata.level_groups import level_name, pool_small_levels
from stratal.strata.number_of_strata import choose_candidate, expected_squared_half_width
from stratal.strata.proxy_intervals import interval_names
from stratal.strata.strata import (
    Moments,
    expected_deviations,
    join_moments,
    moments_of_bins,
    moments_of_sizes,
)


def moments(sizes, means, variances, **more):
    sizes = np.array(sizes)
    return Moments(
        sizes=sizes,
        proxy_means=np.array(means, float),
        proxy_variances=np.zeros(len(sizes)),
        conditional_variances=np.array(variances, float),
        **more,
    )


class TestNumber:
    def test_is_t_squared_times_the_proportional_variance(self):
        found = expected_squared_half_width(moments([60, 40], [0.2, 0.7], [0.16, 0.21]), 20)

        low, high = expected_deviations(moments([60, 40], [0.2, 0.7], [0.16, 0.21]))
        variance = 0.6**2 * (1 / 12 - 1 / 60) * low**2 + 0.4**2 * (1 / 8 - 1 / 40) * high**2
        assert found == pytest.approx(stats.t.ppf(0.975, 18) ** 2 * variance)

    def test_small_strata_keep_their_minimum(self):
        found = expected_squared_half_width(moments([990, 10], [0.2, 0.7], [0.16, 0.21]), 20)

        low, high = expected_deviations(moments([990, 10], [0.2, 0.7], [0.16, 0.21]))
        variance = 0.99**2 * (1 / 18 - 1 / 990) * low**2 + 0.01**2 * (1 / 2 - 1 / 10) * high**2
        assert found == pytest.approx(stats.t.ppf(0.975, 18) ** 2 * variance)

    def test_a_census_has_no_width(self):
        assert expected_squared_half_width(moments([3, 4], [0.2, 0.7], [0.1, 0.1]), 7) == pytest.approx(0.0)

    def test_budget_below_the_minimum_is_never_chosen(self):
        one, two = moments([10], [0.5], [0.25]), moments([5, 5], [0.2, 0.8], [0.01, 0.01])

        assert choose_candidate([one, two], 3) == 0
        with pytest.raises(BudgetError, match="2 to 10"):
            choose_candidate([one], 1)

    def test_an_overconfident_proxy_is_not_taken_at_its_word(self):
        confidence = 1 - np.logspace(-9, -0.5, 2000)

        strata = stratify(Population.from_arrays(proxy=confidence), n_strata="auto", budget=100)

        assert strata.n_strata <= 25

    def test_useless_strata_are_not_added(self):
        one = moments([1000], [0.5], [0.25])
        ten = moments([100] * 10, [0.5] * 10, [0.25] * 10)

        assert choose_candidate([one, ten], 50) == 0

    def test_a_margin_is_taken_to_explain_a_quarter(self):
        values = np.linspace(-1, 1, 100)
        whole = Moments(
            sizes=np.array([100]),
            proxy_means=np.array([0.0]),
            proxy_variances=np.array([values.var()]),
            conditional_variances=np.array([0.0]),
            scaled=False,
        )
        split = moments([50, 50], [values[:50].mean(), values[50:].mean()], [0, 0], scaled=False)

        ratio = expected_squared_half_width(split, 40) / expected_squared_half_width(whole, 40)
        assert 0.75 < ratio < 0.85


class TestPooling:
    def test_pool_takes_another_level_until_it_is_large_enough(self):
        assert pool_small_levels(np.array([100, 3, 8]), 111, 5).tolist() == [0, 1, 1]

    def test_a_pool_of_everything_is_one_stratum(self):
        assert pool_small_levels(np.array([1, 1]), 2, 5).tolist() == [0, 0]

    @pytest.mark.parametrize("budget", [2, 10, 400, 5000])
    def test_ten_thousand_levels_fit_any_budget(self, budget):
        sizes = np.random.default_rng(0).geometric(0.02, 10_000)

        codes = pool_small_levels(sizes, budget, 2)

        n_strata = codes.max() + 1
        assert n_strata * 2 <= budget
        assert np.all(np.bincount(codes, sizes) * budget >= 2 * sizes.sum())


class TestMoments:
    def test_pooling_is_the_law_of_total_variance(self):
        rng = np.random.default_rng(1)
        values = rng.normal(1e6, 1, 30)
        parts = [values[:4], values[4:19], values[19:]]
        fine = Moments(
            sizes=np.array([4, 15, 11]),
            proxy_means=np.array([part.mean() for part in parts]),
            proxy_variances=np.array([part.var() for part in parts]),
            conditional_variances=np.array([1.0, 2.0, 3.0]),
        )

        pooled = fine.pool(np.array([1, 0, 1]))

        both = np.concatenate([parts[0], parts[2]])
        assert pooled.sizes.tolist() == [15, 15]
        assert pooled.proxy_variances == pytest.approx([parts[1].var(), both.var()])
        assert pooled.conditional_variances == pytest.approx([2.0, (4 + 33) / 15])

    def test_joined_keeps_the_order(self):
        assert join_moments(
            [moments_of_sizes(np.array([2, 1])), moments_of_sizes(np.array([7]))]
        ).sizes.tolist() == [2, 1, 7]

    def test_an_offset_costs_no_digits(self):
        values = 1e8 + np.array([0.0, 0.5, 1.0, 1.5])
        picture = Distribution(values=values, counts=np.array([1, 1, 1, 1]), cuts=values[1:])

        assert moments_of_bins(picture, np.array([2])).proxy_variances.tolist() == [0.0625, 0.0625]


class TestNames:
    def test_digits_grow_until_cuts_differ(self):
        assert interval_names("p", np.array([0.99999, 0.999991]))[1] == "p in [0.99999, 0.999991)"

    def test_no_cut(self):
        assert interval_names("p", np.array([])) == ("all p",)

    def test_levels(self):
        assert level_name("g", ["a", "b"]) == "g in {a, b}"
