import numpy as np
import pytest
from tests.reference.real_optimum import real_optimum

import stratal
from stratal import strata as allocation
from stratal.errors import BudgetError, InputError
from stratal.strata import Allocation, allocate
from stratal.strata.allocation import allocate_budgets
from stratal.strata.integer_allocation import AllocationBounds, optimal_integers
from stratal.strata.strata import Moments, expected_deviations, moments_of_sizes

SIZES = [600, 300, 100]
DEVIATIONS = [0.1, 0.4, 0.5]


def strata(**changes):
    fields = {
        "sizes": np.array(SIZES),
        "proxy_means": np.array([0.99, 0.7, 0.5]),
        "proxy_variances": np.array([0.0, 0.01, 0.02]),
        "conditional_variances": np.array([0.0099, 0.2, 0.23]),
        "scaled": True,
        "bounds": (0.0, 1.0),
    }
    return Moments(**{**fields, **changes})


def of_arrays(sizes, means, between, within, bounds=(0.0, 1.0)):
    return Moments(
        sizes=sizes, proxy_means=means, proxy_variances=between, conditional_variances=within, bounds=bounds
    )


def robust(sizes, means, between, within, budget, bounds=(0.0, 1.0)):
    return allocate(of_arrays(sizes, means, between, within, bounds), budget).n_h


def cost_optimal(sizes, deviations, costs, money, minimum=2):
    options = {"standard_deviations": deviations, "costs": costs, "cost_budget": money}
    return allocate(moments_of_sizes(np.array(sizes)), None, "cost-optimal", minimum, **options).n_h


class TestPeersDefects:
    def test_the_budget_is_kept_where_independent_rounding_overshoots(self):
        sizes, deviations = [400] * 10, [0.3] * 10

        n_h = allocation.neyman(sizes, deviations, 15, minimum=1)

        assert n_h.sum() == 15
        assert set(n_h.tolist()) == {1, 2}

    def test_no_stratum_is_empty_where_a_minimum_of_one_is_feasible(self):
        n_h = allocation.neyman([1000, 10, 10], [1.0, 0.001, 0.001], 10, minimum=1)

        assert n_h.tolist() == [8, 1, 1]

    def test_leftovers_go_where_they_help_most_and_not_to_random_strata(self):
        results = {tuple(allocation.neyman([50, 50, 50], [0.5, 0.4, 0.1], 31)) for _ in range(5)}

        assert results == {(16, 12, 3)}

    def test_a_tight_stratum_is_capped_instead_of_raising(self):
        assert allocation.neyman([3, 100], [1.0, 0.01], 20).tolist() == [3, 17]

    def test_a_census_is_allowed(self):
        assert allocation.neyman(SIZES, DEVIATIONS, 1000).tolist() == SIZES


class TestZeroVariance:
    def test_keeps_its_minimum_while_others_have_room(self):
        assert allocation.neyman([10, 10, 10], [0.0, 1.0, 0.0], 12).tolist() == [2, 8, 2]

    def test_what_is_left_is_spread_in_proportion_to_size(self):
        assert allocation.neyman([40, 4, 20], [0.0, 1.0, 0.0], 22).tolist() == [12, 4, 6]

    def test_all_zero_is_proportional(self):
        expected = allocation.proportional(SIZES, 37)

        assert np.array_equal(allocation.neyman(SIZES, [0.0] * 3, 37), expected)

    def test_equal_deviations_are_proportional(self):
        expected = allocation.proportional(SIZES, 37)

        assert np.array_equal(allocation.neyman(SIZES, [0.3] * 3, 37), expected)


class TestErrors:
    def test_a_budget_below_the_minima_names_minimum_one(self):
        with pytest.raises(BudgetError, match="minimum=1"):
            allocation.neyman(SIZES, DEVIATIONS, 5)

    def test_a_budget_below_the_number_of_strata_names_how_many_fit(self):
        with pytest.raises(BudgetError, match="use fewer strata"):
            allocation.proportional(SIZES, 2, minimum=1)

    def test_a_budget_above_the_population(self):
        with pytest.raises(BudgetError, match="above the population"):
            allocation.equal(SIZES, 1001)

    def test_a_budget_above_the_maxima(self):
        with pytest.raises(BudgetError, match="maxima"):
            allocation.equal(SIZES, 40, maximum=10)

    def test_a_maximum_below_the_minimum(self):
        with pytest.raises(InputError, match="maximum of stratum 1"):
            allocation.equal(SIZES, 10, minimum=[1, 3, 1], maximum=[5, 2, 5])

    @pytest.mark.parametrize("sizes", [[-1, 5], [1.5, 5], [float("nan"), 5], [], ["a", "b"], [[1, 2]]])
    def test_bad_sizes(self, sizes):
        with pytest.raises(InputError):
            allocation.proportional(sizes, 4)

    @pytest.mark.parametrize("deviations", [[-1, 1, 1], [1, 1], [float("nan"), 1, 1], [float("inf"), 1, 1]])
    def test_bad_deviations(self, deviations):
        with pytest.raises(InputError):
            allocation.neyman(SIZES, deviations, 20)

    @pytest.mark.parametrize("budget", [10.5, -3, float("nan"), float("inf"), True, "ten", None, [10]])
    def test_bad_budgets(self, budget):
        with pytest.raises(InputError):
            allocation.neyman(SIZES, DEVIATIONS, budget)

    @pytest.mark.parametrize("minimum", [-1, 1.5, [1, 2], float("nan")])
    def test_bad_minima(self, minimum):
        with pytest.raises(InputError):
            allocation.neyman(SIZES, DEVIATIONS, 50, minimum=minimum)


class TestExtremes:
    def test_huge_and_tiny_deviations_keep_their_ratio(self):
        expected = allocation.neyman(SIZES, DEVIATIONS, 60)

        for scale in (1e300, 1e-300):
            assert np.array_equal(allocation.neyman(SIZES, np.array(DEVIATIONS) * scale, 60), expected)

    def test_a_vanishing_deviation_counts_as_zero(self):
        assert allocation.neyman([10, 10], [1.0, 1e-310], 12).tolist() == [10, 2]

    def test_minimum_zero_goes_first_to_the_largest(self):
        assert allocation.neyman([10, 10, 10], [1.0, 3.0, 2.0], 2, minimum=0).tolist() == [0, 1, 1]

    def test_an_empty_stratum_gets_nothing(self):
        assert allocation.equal([0, 10], 5).tolist() == [0, 5]

    def test_ties_go_to_the_lowest_index(self):
        assert allocation.equal([9, 9, 9], 8).tolist() == [3, 3, 2]

    def test_many_strata(self):
        rng = np.random.default_rng(1)
        sizes, deviations = rng.integers(50, 1000, 10_000), rng.random(10_000)

        n_h = allocation.neyman(sizes, deviations, 100_000)

        assert n_h.sum() == 100_000

    def test_a_large_budget(self):

        deviations = np.arange(1, 11) / 10

        n_h = allocation.neyman([20_000_000] * 10, deviations, 10_000_000)

        assert n_h.sum() == 10_000_000
        assert n_h == pytest.approx(10_000_000 * deviations / deviations.sum(), abs=1)


class TestOptimalIntegers:
    @pytest.mark.parametrize("budget", range(6, 41))
    def test_the_start_below_the_optimum_ends_where_pure_greedy_does(self, budget):
        bounds = AllocationBounds.read([9, 30, 14], minimum=2)
        importance = np.array([2.0, 3.0, 2.5])
        n_h = bounds.lower.copy()
        for _ in range(budget - 6):
            value = np.where(n_h < bounds.upper, importance / np.sqrt(n_h * (n_h + 1)), -1.0)
            n_h[np.argmax(value)] += 1

        assert np.array_equal(optimal_integers(importance, bounds, budget), n_h)


class TestPower:
    def test_power_is_between_the_whole_and_each_stratum(self):
        found = allocate(strata(), 90, "power", standard_deviations=DEVIATIONS).n_h
        expected = allocation.neyman(SIZES, np.array(DEVIATIONS) / np.sqrt(SIZES), 90)

        assert np.array_equal(found, expected)


class TestResidual:
    def test_lambda_zero_is_neyman_on_the_plug_in(self):
        within, between = np.array([0.05, 0.2, 0.24]), np.array([0.01, 0.02, 0.0])
        expected = allocation.neyman(SIZES, np.sqrt(within + between), 90)
        made = of_arrays(SIZES, [0.5] * 3, between, within)

        assert np.array_equal(allocate(made, 90, "stratppi", lam=0.0).n_h, expected)

    @pytest.mark.parametrize("lam", [0.0, 0.4, 1.0])
    def test_deviations_are_the_double_sum_of_the_paper(self, lam):
        proxies = np.array([[0.1, 0.4, 0.9], [0.5, 0.6, 0.7]])
        residual = np.stack([0.0 - lam * proxies, 1.0 - lam * proxies])
        probability = np.stack([1 - proxies, proxies])
        mean = (probability * residual).sum(axis=(0, 2), keepdims=True) / 3
        variances = (probability * (residual - mean) ** 2).sum(axis=(0, 2)) / 3
        within = (proxies * (1 - proxies)).mean(axis=1)
        made = of_arrays([9000, 9000], proxies.mean(axis=1), proxies.var(axis=1), within)

        found = allocate(made, 9000, "stratppi", lam=lam).n_h

        assert found[0] / found[1] == pytest.approx(np.sqrt(variances[0] / variances[1]), abs=1e-3)

    def test_refuses_a_wrong_number_of_lambdas(self):
        with pytest.raises(InputError, match="lam"):
            allocate(strata(), 90, "stratppi", lam=[1.0, 0.5])


class TestCostOptimal:
    def test_equal_costs_are_neyman(self):
        expected = allocation.neyman(SIZES, DEVIATIONS, 77)

        assert np.array_equal(cost_optimal(SIZES, DEVIATIONS, [2.0] * 3, 154.5), expected)

    def test_decimal_costs_are_not_lost_to_rounding(self):
        assert cost_optimal([9, 9], [1.0, 1.0], [0.1, 0.1], 0.6).sum() == 6

    def test_money_beyond_a_census_is_left(self):
        assert cost_optimal([3, 4], [1.0, 1.0], [1.0, 5.0], 1e6).tolist() == [3, 4]

    def test_minima_that_cost_too_much(self):
        with pytest.raises(BudgetError, match="below the total cost of the strata"):
            cost_optimal([9, 9], [1.0, 1.0], [10.0, 1.0], 20.0)

    @pytest.mark.parametrize("costs", [[0.0, 1.0], [-1.0, 1.0], [1.0], [float("nan"), 1.0]])
    def test_bad_costs(self, costs):
        with pytest.raises(InputError):
            cost_optimal([9, 9], [1.0, 1.0], costs, 20.0)

    @pytest.mark.parametrize("money", [float("nan"), float("inf"), -1.0, [20.0]])
    def test_bad_money(self, money):
        with pytest.raises(InputError):
            cost_optimal([9, 9], [1.0, 1.0], [1.0, 1.0], money)

    def test_zero_variances_and_a_minimum_of_zero(self):
        n_h = cost_optimal([9, 9, 9], [1.0, 0.0, 1.0], [1.0, 1.0, 3.0], 12.0, minimum=0)

        assert n_h @ [1.0, 1.0, 3.0] <= 12.0
        assert n_h[0] >= 1
        assert n_h[2] >= 1


class TestRobust:
    def test_a_judge_of_flat_zeros_and_ones_gets_a_proportional_share(self):
        n_h = robust([700, 300], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0], 100)

        assert n_h.min() >= 25

    def test_a_sure_stratum_keeps_labels_that_neyman_takes(self):
        means = np.array([0.9995, 0.7])
        within = means * (1 - means)

        found = robust([9000, 1000], means, [0.0, 0.0], within, 200)
        neyman = allocation.neyman([9000, 1000], np.sqrt(within), 200)

        assert found[0] > neyman[0]

    def test_one_proxy_value_is_proportional(self):
        expected = allocation.proportional(SIZES, 50)

        assert np.array_equal(robust(SIZES, [0.8] * 3, [0.0] * 3, [0.16] * 3, 50), expected)

    def test_all_proxies_one_is_proportional(self):
        expected = allocation.proportional(SIZES, 50)

        assert np.array_equal(robust(SIZES, [1.0] * 3, [0.0] * 3, [0.0] * 3, 50), expected)

    def test_rescaled_outcome_gives_the_same_allocation(self):
        means, between, within = (
            np.array([0.9, 0.6, 0.2]),
            np.array([0.01, 0.01, 0.01]),
            np.array([0.05, 0.2, 0.1]),
        )
        expected = robust(SIZES, means, between, within, 80)

        found = robust(SIZES, 1 + 4 * means, 16 * between, 16 * within, 80, bounds=(1.0, 5.0))

        assert np.array_equal(found, expected)

    def test_flipped_outcome_gives_the_same_allocation(self):
        means = np.array([0.95, 0.6, 0.2])
        within = means * (1 - means)

        found = robust(SIZES, 1 - means, [0.0] * 3, within, 80)

        assert np.array_equal(found, robust(SIZES, means, [0.0] * 3, within, 80))

    def test_without_bounds_the_variances_are_shrunk(self):
        bounds = (-np.inf, np.inf)

        found = expected_deviations(of_arrays([50, 50], [0.0, 9.0], [0.0, 0.0], [0.0, 1.0], bounds))

        assert found**2 == pytest.approx([0.1, 0.9])


class TestAllocate:
    @pytest.mark.parametrize("method", ["proportional", "equal", "neyman", "robust", "power", "stratppi"])
    def test_every_method_spends_the_budget(self, method):
        result = allocate(strata(), 100, method=method)

        assert result.n_h.sum() == result.budget == 100
        assert result.method == method

    def test_the_default_is_robust(self):
        assert allocate(strata(), 100).method == "robust"

    def test_cost_optimal_spends_money_and_says_it_is_a_knapsack(self):
        result = allocate(strata(), method="cost-optimal", costs=[1.0, 2.0, 3.0], cost_budget=150.0)

        assert result.n_h @ [1.0, 2.0, 3.0] <= 150.0
        assert result.budget == result.n_h.sum()
        assert "knapsack" in result.notes[0]

    @pytest.mark.parametrize("method", ["robust", "neyman", "stratppi"])
    def test_a_proxy_that_only_orders_is_proportional_and_says_so(self, method):
        result = allocate(strata(scaled=False), 100, method=method)

        assert np.array_equal(result.n_h, allocation.proportional(SIZES, 100))
        assert "only orders" in result.notes[0]

    def test_given_deviations_are_used(self):
        result = allocate(strata(scaled=False), 100, method="neyman", standard_deviations=DEVIATIONS)

        assert np.array_equal(result.n_h, allocation.neyman(SIZES, DEVIATIONS, 100))
        assert result.notes == ()

    def test_an_unknown_method_lists_those_that_exist(self):
        with pytest.raises(InputError, match="allowed: 'neyman'"):
            allocate(strata(), 100, method="neymann")

    @pytest.mark.parametrize(
        ("method", "option"),
        [
            ("robust", {"standard_deviations": DEVIATIONS}),
            ("neyman", {"costs": [1, 1, 1]}),
            ("neyman", {"lam": 1.0}),
            ("equal", {"cost_budget": 10.0}),
        ],
    )
    def test_an_option_that_would_be_ignored_is_refused(self, method, option):
        with pytest.raises(InputError, match=f"takes no {next(iter(option))}"):
            allocate(strata(), 100, method=method, **option)

    def test_missing_or_double_budgets(self):
        with pytest.raises(InputError, match="budget is missing"):
            allocate(strata())
        with pytest.raises(InputError, match="cost_budget"):
            allocate(strata(), method="cost-optimal")
        with pytest.raises(InputError, match="money"):
            allocate(strata(), 50, method="cost-optimal", costs=[1, 1, 1], cost_budget=50.0)


class TestAllocationType:
    def test_equality_is_by_value_and_survives_a_round_trip(self):
        one = allocate(strata(), 100)

        assert Allocation.from_dict(one.to_dict()) == one
        assert one == allocate(strata(), 100)
        assert one != allocate(strata(), 101)
        assert one != allocate(strata(), 100, maximum=90)
        assert one != "allocation"

    def test_arrays_are_read_only(self):
        with pytest.raises(ValueError, match="read-only"):
            allocate(strata(), 100).n_h[0] = 7

    def test_the_given_array_is_not_aliased(self):
        n_h = np.array([3, 2])
        made = Allocation(
            n_h=n_h, method="given", budget=5, minimum=np.array([1, 1]), maximum=np.array([9, 9])
        )
        n_h[0] = 4

        assert made.n_h.tolist() == [3, 2]

    @pytest.mark.parametrize(
        "changes",
        [{"budget": 6}, {"minimum": [4, 1]}, {"maximum": [2, 9]}],
    )
    def test_refuses_what_does_not_add_up(self, changes):
        fields = {"n_h": [3, 2], "method": "given", "budget": 5, "minimum": [1, 1], "maximum": [9, 9]}
        with pytest.raises(InputError):
            Allocation(**{**fields, **changes})


class TestRealOptimum:
    def test_unbounded_is_the_textbook_formula(self):
        importance = np.array(SIZES) * np.array(DEVIATIONS)

        found = real_optimum(SIZES, DEVIATIONS, 61.5, minimum=0)

        assert found == pytest.approx(61.5 * importance / importance.sum())

    def test_zero_variances_take_what_the_others_cannot(self):
        found = real_optimum([40, 4, 20], [0.0, 1.0, 0.0], 22.0)

        assert found == pytest.approx([12.0, 4.0, 6.0])

    def test_census(self):
        assert real_optimum(SIZES, DEVIATIONS, 1000).tolist() == SIZES


@pytest.mark.parametrize("method", ["robust", "neyman", "proportional", "equal"])
@pytest.mark.parametrize("minimum", [1, 2])
def test_budgets_are_shared_together_as_one_by_one(method, minimum):
    scores = np.random.default_rng(4).beta(5, 1.5, 300)
    population = stratal.Population.from_arrays(proxy=scores)
    strata = allocation.stratify(population, n_strata=7)
    budgets = np.array([14, 15, 40, 41, 150, 299, 300])
    together = allocate_budgets(strata, budgets, method, minimum)

    for budget, n_h in zip(budgets.tolist(), together, strict=True):
        np.testing.assert_array_equal(n_h, allocate(strata, budget, method, minimum).n_h)


def test_each_of_several_budgets_must_fit():
    strata = allocation.stratify(stratal.Population.from_arrays(proxy=np.linspace(0, 1, 30)), n_strata=3)
    for budget in (5, 31):
        with pytest.raises(BudgetError):
            allocate_budgets(strata, np.array([10, budget]), "robust")
