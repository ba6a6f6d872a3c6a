import itertools
import json

import numpy as np
import pytest

import stratal
from stratal.errors import BudgetError, InputError
from stratal.estimation.estimand import as_estimand
from stratal.planning.joint_plan import influence_deviations
from stratal.planning.planner import Planner
from stratal.strata import allocate_several, neyman

SIZES = np.array([40, 25, 12])
DEVIATIONS = np.array([[0.3, 0.5, 0.1], [0.1, 0.2, 0.9]])


def variances(sizes, deviations, n_h, correction=True):
    sizes, n_h = np.asarray(sizes, dtype=float), np.asarray(n_h, dtype=float)
    weights = (sizes / sizes.sum() * np.asarray(deviations)) ** 2
    return (weights * (1 / np.maximum(n_h, 1) - correction / sizes) * (n_h > 0)).sum(axis=1)


def every_allocation(lower, upper):
    ranges = [range(low, high + 1) for low, high in zip(lower, upper, strict=True)]
    return np.array(list(itertools.product(*ranges)))


def small_case(seed):
    """Three or four small strata, two or three estimands, wanted standard errors that can be reached."""
    rng = np.random.default_rng(seed)
    n_strata, count = rng.integers(2, 5), rng.integers(2, 4)
    sizes = rng.integers(2, 14 if n_strata == 4 else 25, n_strata)
    deviations = rng.uniform(0.05, 1, (count, n_strata)) * (rng.random((count, n_strata)) < 0.8)
    deviations[:, 0] = np.maximum(deviations[:, 0], 0.05)
    wanted = np.sqrt(variances(sizes, deviations, np.maximum(sizes * rng.uniform(0.2, 0.8), 1)))
    return rng, sizes, deviations, np.maximum(wanted, 0.01)


class TestPublishedNumbers:
    def given(self, shared):
        vector = json.loads((shared / "vectors" / "bethel.json").read_text())
        sizes = np.array(vector["N_h"])
        means = np.array(vector["means"]).T @ (sizes / sizes.sum())
        return vector, sizes, np.array(vector["standard_deviations"]).T, np.array(vector["cv"]) * means

    def test_the_real_optimum_is_better_than_the_peers_to_the_digits_it_stops_at(self, shared):
        vector, sizes, deviations, wanted = self.given(shared)

        found = allocate_several(sizes, deviations, standard_errors=wanted)

        assert found.real_n_h == pytest.approx(vector["real"], abs=1e-5)
        assert found.real_n_h.sum() <= vector["real_total"] + 1e-9
        assert np.all(np.sqrt(variances(sizes, deviations, found.real_n_h)) <= wanted * (1 + 1e-9))

    def test_162_labels_where_the_peers_rounding_takes_168(self, shared):
        vector, sizes, deviations, wanted = self.given(shared)

        found = allocate_several(sizes, deviations, standard_errors=wanted)

        assert sum(vector["integer_by_the_peer"]) == 168
        assert found.budget == 162 == found.bound
        assert found.gap == 0
        assert np.all(found.standard_errors <= wanted)


@pytest.mark.parametrize("seed", range(12))
class TestBruteForce:
    def test_at_most_one_label_more_than_any_whole_allocation_needs(self, seed):
        _, sizes, deviations, wanted = small_case(seed)

        found = allocate_several(sizes, deviations, standard_errors=wanted, minimum=1)

        each = every_allocation(np.ones_like(sizes), sizes)
        fits = [np.all(variances(sizes, deviations, n) <= wanted**2 * (1 + 1e-9)) for n in each]
        fewest = each[fits].sum(axis=1).min()
        assert found.bound <= fewest <= found.budget <= fewest + 1
        assert np.all(variances(sizes, deviations, found.n_h) <= wanted**2 * (1 + 1e-9))

    def test_no_whole_allocation_of_the_budget_has_a_smaller_largest_ratio(self, seed):
        rng, sizes, deviations, wanted = small_case(seed)
        budget = int(rng.integers(len(sizes), sizes.sum() + 1))

        found = allocate_several(sizes, deviations, budget, standard_errors=wanted, minimum=1)

        each = every_allocation(np.ones_like(sizes), sizes)
        ratios = [
            np.sqrt(np.maximum(variances(sizes, deviations, n), 0) / wanted**2).max()
            for n in each[each.sum(axis=1) == budget]
        ]
        assert found.budget == budget
        assert found.value == pytest.approx(min(ratios), rel=1e-7, abs=1e-7)
        assert found.bound <= min(ratios) * (1 + 1e-9) + 1e-9


class TestSpecialCases:
    def test_one_estimand_with_a_precision_is_neymans_rule(self):
        found = allocate_several(SIZES, DEVIATIONS[:1], 30, standard_errors=[0.01])

        assert found.n_h.tolist() == neyman(SIZES, DEVIATIONS[0], 30).tolist()

    def test_an_estimand_said_twice_changes_nothing(self):
        once = allocate_several(SIZES, DEVIATIONS, standard_errors=[0.05, 0.04])
        twice = allocate_several(SIZES, DEVIATIONS[[0, 1, 0]], standard_errors=[0.05, 0.04, 0.05])

        assert once.budget == twice.budget
        assert twice.real_n_h == pytest.approx(once.real_n_h, rel=1e-6)

    def test_what_is_known_gets_no_label_and_what_is_believed_its_minimum(self):
        deviations = np.array([[0.0, 0.0, 0.5], [0.0, 0.0, 0.4]])

        found = allocate_several(
            [50, 60, 70], deviations, 30, standard_errors=[0.1, 0.1], known_strata=[True, False, False]
        )

        assert found.n_h.tolist() == [0, 2, 28]

    def test_a_census_of_the_unknown_knows_it(self):
        found = allocate_several([9, 6], [[0.0, 0.5]], 6, standard_errors=[0.1], known_strata=[True, False])

        assert found.n_h.tolist() == [0, 6]
        assert found.standard_errors.tolist() == [0]

    def test_without_the_correction_more_labels_are_needed(self):
        given = SIZES, DEVIATIONS
        wanted = [0.05, 0.04]

        finite = allocate_several(*given, standard_errors=wanted)
        infinite = allocate_several(
            SIZES * 100, DEVIATIONS, standard_errors=wanted, finite_population_correction=False
        )

        assert finite.budget < infinite.budget
        assert np.sqrt(variances(SIZES * 100, DEVIATIONS, infinite.n_h, correction=False)) == pytest.approx(
            infinite.standard_errors
        )

    def test_what_one_estimand_cannot_use_serves_the_others(self):
        deviations = np.array([[0.9, 0.0, 0.0], [0.0, 0.4, 0.0], [0.0, 0.0, 0.3]])

        found = allocate_several(
            [50, 50, 50], deviations, 40, standard_errors=[0.01] * 3, maximum=[4, 50, 50]
        )

        assert found.n_h[0] == 4
        assert found.ratios[1] == pytest.approx(found.ratios[2], rel=0.1)
        assert found.budget == 40

    def test_slack_estimands_have_no_share(self):
        found = allocate_several(SIZES, DEVIATIONS, standard_errors=[0.05, 0.9])

        assert found.shares.tolist() == [1, 0]

    def test_ten_slices_of_very_unequal_size_are_equally_near_their_wish(self):
        sizes = np.array([20000, 9000, 4000, 2000, 1000, 600, 400, 300, 250, 200])
        deviations = np.diag(0.4 * sizes.sum() / sizes)

        found = allocate_several(sizes, deviations, 1000, standard_errors=[0.04] * 10)

        assert found.ratios.max() <= found.ratios.min() * 1.02
        assert found.standard_errors == pytest.approx(0.4 * np.sqrt(1 / found.n_h - 1 / sizes), rel=1e-12)


class TestRecord:
    def test_is_an_allocation_for_a_design(self):
        found = allocate_several(SIZES, DEVIATIONS, 30, standard_errors=[0.05, 0.04])

        assert found.allocation.n_h.tolist() == found.n_h.tolist()
        assert found.allocation.budget == 30


class TestErrors:
    def refused(self, match, **changes):
        given = {"sizes": SIZES, "standard_deviations": DEVIATIONS, "standard_errors": [0.05, 0.04]}
        with pytest.raises(InputError, match=match):
            allocate_several(**{**given, **changes})

    def test_of_shapes(self):
        self.refused("one entry per estimand", standard_errors=[0.1])

    def test_of_values(self):
        self.refused("must be positive", standard_errors=[0.1, 0.0])
        self.refused("must not be negative", standard_deviations=-DEVIATIONS)
        self.refused("varies, but is declared known.*known_strata=", known_strata=[True, False, False])
        self.refused("varies, but may have no label", minimum=0, maximum=[0, 5, 5])

    def test_of_tasks_that_are_none(self):
        self.refused("standard_errors holds a missing value", standard_errors=None)

    def test_a_precision_beyond_the_bounds_names_the_estimand_and_the_best(self):
        with pytest.raises(BudgetError, match=r"recall.*at least 0\.0") as caught:
            allocate_several(
                SIZES, DEVIATIONS, standard_errors=[0.2, 0.001], maximum=5, names=["F1", "recall"]
            )

        best = float(caught.value.allowed.removeprefix("at least "))
        found = allocate_several(SIZES, DEVIATIONS, standard_errors=[0.2, best * 1.00001], maximum=5)
        assert found.n_h.tolist()[2] == 5

    def test_a_budget_below_the_minima(self):
        with pytest.raises(BudgetError, match="below the sum of the strata's minima"):
            allocate_several(SIZES, DEVIATIONS, 5, standard_errors=[0.1, 0.1])

    def test_a_budget_above_what_is_not_known(self):
        with pytest.raises(BudgetError, match="above the sum of the strata's maxima"):
            allocate_several([9, 6], [[0.0, 0.5]], 7, standard_errors=[0.1], known_strata=[True, False])


@pytest.mark.parametrize("levels", [2, 4, 6])
def test_plans_of_few_levels_are_proved_to_be_near_the_best(levels):
    rng = np.random.default_rng(levels)
    shares = 1.0 / np.arange(1, levels + 1)
    groups = rng.choice([f"level {k}" for k in range(levels)], 3000, p=shares / shares.sum())
    population = stratal.Population.from_arrays(proxy=rng.beta(2, 1, 3000), groups={"g": groups})
    planner = Planner(population=population, estimand=as_estimand("mean@g"))
    strata = planner.anticipated.strata(100)
    deviations, _, _ = influence_deviations(population, strata, list(planner.estimand.influences(population)))
    found = allocate_several(strata.sizes, deviations, 100, standard_errors=np.ones(levels))

    assert found.n_h.sum() == 100
    assert 0 <= found.gap < 0.02


def test_many_strata_that_matter_to_several_are_proved_to_be_near_the_best():
    rng = np.random.default_rng(3)
    deviations = rng.uniform(0.2, 1.0, (6, 90))
    sizes = rng.integers(20, 200, 90)
    found = allocate_several(sizes, deviations, 450, standard_errors=np.ones(6))

    assert found.n_h.sum() == 450
    assert 0 <= found.gap < 0.005
