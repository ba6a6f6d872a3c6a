"""Plans in order: neither a larger budget nor strata are planned to give less than their alternative."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.plan_order import MOST_WIDER, ROUNDING, orders_of_plans, planning_task
from scipy.special import betaincinv
from tests.tiers import sized

import stratal
from stratal.planning.expected_widths import planned_half_width
from stratal.planning.interim_widths import interval_of_counts
from stratal.strata.integer_allocation import AllocationBounds, optimal_integers


def require_order(number: int, **options: object) -> None:
    task = planning_task(number)
    for order in orders_of_plans(task, **options):
        assert order.wider_than_fewer <= ROUNDING, (number, order)
        assert order.in_order, (number, order)
        # Other estimands than the mean keep strata within the answers.
        if task.proxy != "f1":
            assert order.error_above_simple <= MOST_WIDER, (number, order)
            assert order.wider_than_simple <= MOST_WIDER, (number, order)


def test_more_labels_are_never_planned_to_give_less():
    for number in range(sized(20, 2_000)):
        require_order(number)


@pytest.mark.parametrize("options", [{"minimum": 3}, {"method": "neyman"}])
def test_more_labels_are_never_planned_to_give_less_with_other_options(options):
    for number in range(sized(2, 400)):
        if planning_task(number).proxy in ("calibrated", "confident", "two values", "rare", "rating"):
            require_order(number, **options)


def test_the_strata_that_are_planned_are_drawn():
    task = planning_task(16)
    plan = stratal.plan(task.population, task.budgets[-1])

    sample = plan.draw(seed=1)

    assert plan.strata.n_strata > 1
    assert sample.n_h.tolist() == plan.allocation.n_h.tolist()


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (1.0, 5.0), (-np.inf, np.inf)])
def test_the_expected_width_of_the_same_strata_falls_with_every_label(bounds):
    """The width that drawn counts give rises by up to 2 % with one label more."""
    random = np.random.default_rng(4)
    low, high = (0.0, 1.0) if np.isinf(bounds[0]) else bounds
    for _ in range(sized(4, 300)):
        sizes = random.integers(20, 300, random.integers(1, 12))
        rates = random.random(len(sizes))
        variances = (high - low) ** 2 * rates * (1 - rates)
        limits = AllocationBounds.read(sizes, minimum=2)
        first = int(random.integers(limits.lower.sum(), sizes.sum() // 2))
        widths = [
            planned_half_width(
                sizes,
                optimal_integers(sizes * np.sqrt(variances), limits, labels),
                low + (high - low) * rates,
                variances,
                bounds=bounds,
                confidence_level=0.95,
            )
            for labels in range(first, first + 10)
        ]
        assert np.all(np.diff(widths) <= 1e-6 * widths[0])


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.5])
def test_many_labels_of_one_stratum_have_clopper_and_pearsons_interval(rate):
    labels = 2_000
    rates = np.array([rate])
    ones = labels * rate
    low = betaincinv(ones, labels - ones + 1, 0.025)
    high = betaincinv(ones + 1, labels - ones, 0.975)

    width = planned_half_width(
        np.array([10**7]),
        np.array([labels]),
        rates,
        rates * (1 - rates),
        bounds=(0.0, 1.0),
        confidence_level=0.95,
    )

    assert width == pytest.approx((high - low) / 2, rel=5e-3)


@pytest.mark.parametrize(("rates", "labels"), [((0.05, 0.95), 20), ((0.05, 0.95), 100), ((0.2, 0.7), 60)])
def test_strata_whose_labels_nearly_agree_have_the_interval_of_few_errors(rates, labels):
    """The standard error alone would make the interval of 10 + 10 labels half as wide as it is."""
    random = np.random.default_rng(1)
    sizes = np.array([5_000, 5_000])
    n_h = np.full(2, labels // 2)
    ones = random.binomial(n_h, rates, (sized(400, 4_000), 2))
    low, high = interval_of_counts(sizes, n_h, ones, 0.95)
    means = np.array(rates)

    width = planned_half_width(
        sizes, n_h, means, means * (1 - means), bounds=(0.0, 1.0), confidence_level=0.95
    )

    assert width == pytest.approx(float(np.mean(high - low)) / 2, rel=0.09)


def languages() -> stratal.Population:
    """Return units of 60 languages, of which 48 have at most three units."""
    sizes = [1, 2, 3] * 16 + [50] * 11 + [38]
    names = np.repeat([f"L{number:02d}" for number in range(60)], sizes)
    return stratal.Population.from_arrays(groups={"lang": names})


@pytest.mark.parametrize("budgets", [range(60, 141, 4), (103, 104, 105)])
def test_a_minimum_for_each_of_many_small_categories_takes_no_labels_from_the_others(budgets):
    population = languages()

    plans = [stratal.plan(population, budget, by="lang") for budget in budgets]

    errors = np.array([plan.recommended.worst_standard_error for plan in plans])
    simple = np.array([plan.designs[0].worst_standard_error for plan in plans])
    assert np.all(np.diff(errors) < 0)
    assert np.all(errors <= (1.0 + MOST_WIDER) * simple)


def test_a_note_says_why_categories_are_not_planned_and_how_to_keep_them():
    population = languages()

    plan = stratal.plan(population, 110, by="lang")
    kept = stratal.plan(population, 110, by="lang", method="category")

    assert plan.recommended.design == "simple-random"
    assert any("--stratify category" in note for note in plan.notes)
    assert kept.strata.n_strata == 60
