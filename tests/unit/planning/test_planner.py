from __future__ import annotations

import json
import math

import numpy as np
import pytest
from tests.tiers import cells
from tests.work import calls

import stratal
from stratal.errors import BudgetError, InputError
from stratal.strata import strata as partitions


def test_a_search_for_a_budget_lists_the_ways_of_each_partition_once(monkeypatch):
    listed, scenarios = [], partitions.scenarios

    def noted(strata, expected_slope):
        listed.append(strata)
        return scenarios(strata, expected_slope)

    monkeypatch.setattr(partitions, "scenarios", noted)
    population = stratal.Population.from_arrays(proxy=np.random.default_rng(3).beta(3, 1, 2_000))

    assert stratal.plan(population, half_width=0.03).budget > 100
    # Of up to fifteen strata by robust cuts and ten by k-means, and of all units as one.
    assert 2 <= len(listed) <= 26


def test_larger_budgets_are_compared_together():
    """Nine numbers of strata at 45 budgets each: allocated one by one they took 373,000 calls."""
    population = stratal.Population.from_arrays(proxy=np.random.default_rng(1).beta(1, 1, 1_500))
    # Imports at the first plan are calls, too.
    stratal.plan(stratal.Population.from_arrays(proxy=np.linspace(0.0, 1.0, 200)), 100)

    plan, count = calls(lambda: stratal.plan(population, 100))
    assert plan.recommended.design == "stratified"
    assert count < 120_000


@pytest.mark.parametrize(
    ("factor", "columns", "method"),
    [
        (1.0, {}, "robust-neyman"),
        (5.0, {"bounds": (0.0, 5.0)}, "robust-neyman"),
        (1.0, {"scaled": False}, "k-means"),
        (5.0, {"scaled": True}, "k-means"),
    ],
)
def test_the_scale_of_the_proxy_decides_how_it_is_divided(factor, columns, method):
    proxy = factor * np.random.default_rng(3).beta(3, 1, 2_000)
    population = stratal.Population.from_arrays(proxy=proxy, **columns)

    assert stratal.plan(population, 100).strata.method == method
    assert stratal.plan(population, 60, method="equal-size").strata.method == "equal-size"


def test_robust_cuts_have_more_strata_from_200_labels_on():
    population = stratal.Population.from_arrays(proxy=np.random.default_rng(3).beta(3, 1, 5_000))

    assert stratal.plan(population, 199).strata.n_strata == 10
    assert stratal.plan(population, 400).strata.n_strata == 15
    assert stratal.plan(population, 400, method="k-means").strata.n_strata <= 10
    assert stratal.plan(population, 400, n_strata=10).strata.n_strata == 10


def test_a_plan_names_every_design_and_estimator(population):
    plan = stratal.plan(population, 100)

    assert [(row.design, row.estimator) for row in plan.designs] == [
        (design, estimator)
        for design in ("simple-random", "stratified")
        for estimator in ("horvitz-thompson", "difference", "ppi++")
    ]
    assert plan.recommended in plan.designs
    assert plan.allocation.n_h.sum() == 100


def test_the_simple_random_row_is_the_textbook_formula(population):
    plan = stratal.plan(population, 100)
    mean = np.random.default_rng(0).beta(3, 1, 500).mean()
    expected = math.sqrt((1 - 100 / 500) * mean * (1 - mean) * 500 / 499 / 100)

    assert plan.designs[0].expected_standard_error == pytest.approx(expected, rel=1e-12)
    assert plan.designs[0].relative_efficiency == pytest.approx(1)


def test_a_constant_proxy_recommends_simple_random_sampling_with_one_stratum():
    plan = stratal.plan(stratal.Population.from_arrays(proxy=[0.7] * 100), 20)

    assert plan.recommended.design == "simple-random"
    assert plan.strata.n_strata == 1
    assert plan.draw(seed=1).design.kind == "simple-random"


def test_no_proxy_recommends_simple_random_sampling():
    plan = stratal.plan(stratal.Population.from_arrays(ids=range(100)), 20)

    assert plan.recommended.estimator == "horvitz-thompson"
    assert plan.recommended.expected_standard_error is None
    assert plan.draw(seed=1).size == 20


def test_a_useless_proxy_is_said_to_be_useless():
    proxy = 0.5 + np.random.default_rng(0).normal(size=1000) * 0.01
    plan = stratal.plan(stratal.Population.from_arrays(proxy=proxy), 100)

    assert plan.recommended.design == "simple-random"
    assert any("hardly help" in note for note in plan.notes)


def test_a_judge_of_zeros_and_ones_promises_no_certainty():
    plan = stratal.plan(stratal.Population.from_arrays(proxy=[0.0] * 500 + [1.0] * 500), 100, n_strata=2)

    assert plan.strata.n_strata == 2
    assert plan.recommended.expected_standard_error > 0.01


@pytest.mark.parametrize("assume", ["conservative", "expected", "optimistic"])
def test_half_width_finds_the_smallest_budget_at_either_end_of_the_range(population, assume):
    plan = stratal.plan(population, half_width=0.06, assume=assume)

    assert plan.half_width_if(assume) <= 0.06
    assert stratal.plan(population, round(0.97 * plan.budget)).half_width_if(assume) > 0.06
    assert (plan.half_width, plan.assume, plan.pilot) == (0.06, assume, False)


def test_a_half_width_takes_the_cautious_end_unless_told_otherwise(population):
    budgets = [
        stratal.plan(population, half_width=0.06, assume=assume).budget
        for assume in ("optimistic", "expected", "conservative")
    ]

    assert budgets == sorted(budgets)
    assert budgets[0] < budgets[2]
    assert stratal.plan(population, half_width=0.06).budget == budgets[2]
    with pytest.raises(InputError, match="conservative"):
        stratal.plan(population, half_width=0.06, assume="careful")


def test_the_range_holds_the_expectation_and_is_in_the_dict(population):
    described = stratal.plan(population, 100).to_dict()

    low, high = described["half_width_range"]
    assert low <= described["expected_half_width"] <= high
    for row in described["designs"]:
        ends = [row[f"{end}_standard_error"] for end in ("optimistic", "expected", "conservative")]
        assert ends == sorted(ends)


def test_a_census_is_certain_in_every_scenario(population):
    plan = stratal.plan(population, 500)

    assert plan.half_width_range == (0, 0)


def test_a_pilot_is_the_first_step_to_a_half_width_with_any_proxy(population):
    pilot = stratal.plan(population, half_width=0.05, pilot=True)
    margin = stratal.Population.from_arrays(proxy=np.linspace(-3, 3, 500))
    certain = stratal.Population.from_arrays(proxy=[1.0] * 500)

    assert pilot.pilot
    assert pilot.half_width == 0.05
    assert pilot.budget <= stratal.plan(population, half_width=0.05, assume="optimistic").budget
    nothing = "no forecast is possible with the proxy"
    without = (stratal.Population.from_arrays(ids=range(500)), "there is no proxy")
    for other, why in ((margin, nothing), (certain, nothing), without):
        blind = stratal.plan(other, half_width=0.05, pilot=True)
        assert blind.draw(seed=1).size == 50
        assert (
            blind.notes[-1]
            == f"The pilot has 50 labels: fewer labels would provide too little information, and {why}."
        )
    narrow = stratal.plan(population, half_width=0.01, pilot=True)
    enough = stratal.plan(population, half_width=0.01, assume="optimistic").budget
    assert (
        f"{narrow.budget:,} labels: half of the {enough:,} that would suffice"
        in narrow.to_dict()["notes"][-1]
    )
    with pytest.raises(InputError, match="requires a target half-width"):
        stratal.plan(population, 50, pilot=True)


def test_the_residual_of_an_outcome_without_bounds_is_asked_for_and_said(population):
    """Outcome of sd 3, proxy = outcome + noise of 1.5: the standard error at 100 labels is .145."""
    generator = np.random.default_rng(5)
    z = generator.normal(size=5000) * 3
    unbounded = stratal.Population.from_arrays(proxy=z + 1.5 * generator.normal(size=5000), scaled=True)
    plan = stratal.plan(unbounded, 100)
    codes, n_h = plan.strata.codes, plan.allocation.n_h
    within = np.array([z[codes == h].var() for h in range(len(n_h))])
    true = math.sqrt(np.sum(plan.strata.weights**2 * within / n_h))

    chosen = plan.recommended
    assert chosen.optimistic_standard_error < true < chosen.conservative_standard_error
    assert any("residual_sd" in text for text in plan.assumptions)
    told = stratal.plan(unbounded, 100, residual_sd=1.35).recommended.expected_standard_error
    assert told == pytest.approx(true, rel=0.1)


@pytest.mark.parametrize(
    "given", [{}, {"bounds": (0, 5)}, {"scaled": False}], ids=["share", "bounds", "order"]
)
@pytest.mark.parametrize("goal", [{"budget": 50}, {"half_width": 0.5}], ids=["budget", "width"])
def test_a_residual_that_would_have_no_effect_is_refused(given, goal):
    population = stratal.Population.from_arrays(proxy=np.linspace(0, 1, 500), **given)

    with pytest.raises(InputError, match="residual_sd would have no effect"):
        stratal.plan(population, **goal, residual_sd=0.5)


def test_a_half_width_close_to_zero_needs_nearly_everything(population):
    assert stratal.plan(population, half_width=1e-4).budget > 490


@pytest.mark.parametrize("arguments", [{}, {"budget": 10, "half_width": 0.1}])
def test_exactly_one_of_budget_and_half_width(population, arguments):
    with pytest.raises(InputError, match="either a budget or a half-width"):
        stratal.plan(population, **arguments)


@pytest.mark.parametrize("half_width", [0, -1, math.nan, math.inf])
def test_a_half_width_must_be_positive(population, half_width):
    with pytest.raises(InputError, match="positive"):
        stratal.plan(population, half_width=half_width)


def test_budgets_outside_what_the_design_allows(population):
    with pytest.raises(BudgetError, match="larger than the population"):
        stratal.plan(population, 501)
    with pytest.raises(BudgetError, match="minimum=1"):
        stratal.plan(population, 15, n_strata=10)
    assert stratal.plan(population, 15, n_strata=10, minimum=1).allocation.n_h.min() >= 1


@pytest.mark.parametrize("budget", [1, 2, 3, 5, 9, 20, 499, 500])
def test_any_budget_from_one_to_all_can_be_planned_and_drawn(population, budget):
    assert stratal.plan(population, budget).draw(seed=1).size == budget


def test_by_a_group(population):
    plan = stratal.plan(population, 90, method="category", by="language")

    assert plan.strata.names == tuple(sorted(plan.strata.names))
    assert plan.strata.n_strata == 3


def test_the_dict_is_json(population):
    described = json.loads(json.dumps(stratal.plan(population, 100).to_dict(), allow_nan=False))

    assert {"population_size", "budget", "recommended", "designs", "strata"} <= set(described)
    assert set(described["strata"][0]) == {"name", "size", "n", "proxy_mean", "expected_standard_deviation"}


def test_another_design_of_the_same_plan(population):
    plan = stratal.plan(population, 100).using("simple-random")

    assert plan.draw(seed=1).design == stratal.designs.SimpleRandom(budget=100)
    with pytest.raises(InputError, match="no poisson design"):
        plan.using("poisson")


def test_categories_too_small_for_their_draws_are_pooled_and_the_plan_says_so():
    rng = np.random.default_rng(0)
    groups = np.where(rng.random(4000) < 0.5, "large", np.arange(4000).astype(str))
    many = stratal.Population.from_arrays(proxy=rng.beta(4, 1, 4000), groups={"g": groups})

    plan = stratal.plan(many, 100, by="g")

    assert plan.strata.n_strata == 18
    assert any("were pooled" in note for note in plan.notes)
    assert plan.draw(seed=1).size == 100
    assert stratal.plan(many, 2, by="g").draw(seed=1).size == 2


def test_strata_that_were_asked_for_in_number_are_not_pooled():
    rng = np.random.default_rng(0)
    units = stratal.Population.from_arrays(proxy=rng.random(300), groups={"g": np.arange(300) % 3})

    with pytest.raises(BudgetError, match="minimum=1"):
        stratal.plan(units, 40, by="g", n_strata=10)


@pytest.mark.parametrize("budget", [40, 50, 68, 90])
def test_the_expected_width_lies_between_the_ends_of_its_range(budget):
    score = np.random.default_rng(0).random(2000)
    group = [f"g{number % 16:02d}" for number in range(2000)]
    population = stratal.Population.from_arrays(proxy=score, groups={"group": group})

    found = stratal.plan(population, budget, by="group")

    optimistic, conservative = found.half_width_range
    assert optimistic <= found.expected_half_width <= conservative


def test_strata_that_cost_more_than_they_give_are_noted_beside_a_simple_random_sample():
    levels = np.repeat(np.arange(40), [161] + [1] * 39)
    population = stratal.Population.from_arrays(
        proxy=np.full(200, 0.5) + np.linspace(-0.01, 0.01, 200), groups={"kind": levels.astype(str)}
    )
    plan = stratal.plan(population, budget=45, by="kind", method="category")
    simple = min(row.expected_standard_error for row in plan.designs if row.design == "simple-random")

    assert plan.recommended.expected_standard_error > 1.01 * simple
    assert [note for note in plan.notes if f"standard error {simple:.4f}" in note and "none" in note]
    assert not [note for note in stratal.plan(population, budget=45).notes if "more precise" in note]


@pytest.mark.parametrize(
    ("shape", "seed", "budget", "slope", "largest"),
    [((0.3, 3), 2, 100, 2.0, 1.02), ((0.1, 1), 3, 50, 1.5, 1.02), ((0.05, 5), 1, 200, 1.0, 0.9)],
    ids=str,
)
def test_default_strata_are_about_as_precise_as_k_means_or_better(shape, seed, budget, slope, largest):
    """Robust cuts had up to 1.2 times the variance of k-means if positives are rarer than predicted."""
    a, b = shape
    proxy = np.clip(np.random.default_rng(seed).beta(a, b, 20_000), 1e-6, 1 - 1e-6)
    rates = 1 / (1 + np.exp(1.5 - slope * np.log(proxy / (1 - proxy))))
    population = stratal.Population.from_arrays(proxy=proxy)
    variances = []
    for method in (None, "k-means"):
        plan = stratal.plan(population, budget, method=method)
        means = np.bincount(plan.strata.codes, rates) / plan.strata.sizes
        variances.append(plan.strata.weights**2 @ (means * (1.0 - means) / plan.allocation.n_h))

    assert variances[0] <= largest * variances[1]


@pytest.mark.parametrize("shape", [(0.3, 30), (5, 0.05), (0.05, 5)], ids=str)
@pytest.mark.parametrize("size", cells([5_000, 20_000], fast=[5_000]))
@pytest.mark.parametrize("budget", cells([50, 100, 200], fast=[50, 200]))
def test_calibrated_scores_of_rare_and_of_near_certain_outcomes_keep_strata(shape, size, budget):
    """Robust cuts alone were up to 13 % wider than a random sample, which was planned without a note."""
    a, b = shape
    proxy = np.random.default_rng(1).beta(a, b, size)
    population = stratal.Population.from_arrays(proxy=proxy)

    plan = stratal.plan(population, budget)
    assert plan.recommended.design == "stratified"
    # From 200 labels on robust cuts may be 2.4 % wider than k-means strata, with less variance.
    for method, largest in {"none": 1.01, "k-means": 1.03}.items():
        other = stratal.plan(population, budget, method=method)
        assert plan.expected_half_width <= largest * other.expected_half_width
    rates = np.bincount(plan.strata.codes, proxy) / plan.strata.sizes
    variance = plan.strata.weights**2 @ (rates * (1.0 - rates) / plan.allocation.n_h)
    overall = proxy.mean()
    # With the outcomes that the score states. The finest strata have .25 to .60, and wider intervals.
    assert variance <= 0.8 * overall * (1.0 - overall) / budget
