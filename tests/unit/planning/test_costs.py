"""The cheapest pair of samples, against all pairs, and against simulated power."""

import numpy as np
import pytest

import stratal
from stratal.errors import InputError
from stratal.planning.power import cheapest_samples
from stratal.population.expressions import NumberColumn

WANTED = {"variance": 0.16, "correlation": 0.8, "label_cost": 1.0, "prediction_cost": 0.05}


@pytest.mark.parametrize("correlation", [0.3, 0.6, 0.95])
@pytest.mark.parametrize("price", [0.002, 0.05, 0.4])
def test_no_pair_is_cheaper(correlation, price):
    variance, error = 0.2, 0.04
    found = cheapest_samples(
        variance=variance,
        correlation=correlation,
        label_cost=1.0,
        prediction_cost=price,
        standard_error=error,
    )
    n = np.arange(2, 126)[:, None]
    total = np.arange(2, 6000)[None, :]
    explained = correlation**2
    good = variance * ((1 - explained) / n + explained / total) <= error**2 + 1e-12
    with_proxy = np.where(good & (total >= n), n + price * total, np.inf).min()
    alone = np.ceil(variance / error**2 - 1e-9)

    assert found.cost == pytest.approx(min(with_proxy, alone), abs=0.5 * price + 1e-9)
    assert found.standard_error <= error + 1e-12


def test_a_proxy_that_explains_nothing_is_not_bought():
    found = cheapest_samples(**{**WANTED, "correlation": 0.0}, standard_error=0.02)

    assert (found.labels, found.predictions, found.cost) == (400, 400, 400.0)


def test_the_power_asked_for_is_had():
    found = cheapest_samples(**WANTED, difference=0.1, power=0.9)
    rng = np.random.default_rng(1)
    z = 0.1 + found.standard_error * rng.standard_normal(40_000)
    power = np.mean(np.abs(z) > 1.959964 * found.standard_error)

    assert 0.9 - 4 * np.sqrt(0.09 / 40_000) <= power <= 0.92


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "either a standard error or a difference"),
        ({"standard_error": 0.1, "difference": 0.1}, "either a standard error or a difference"),
        ({"standard_error": -0.1}, "must be a positive number"),
        ({"standard_error": 0.1, "variance": 0.0}, "variance must be a positive number"),
        ({"standard_error": 0.1, "correlation": 1.0}, "either a standard error or a difference"),
        ({"difference": 0.1, "power": 1.0}, "either a standard error or a difference"),
    ],
)
def test_what_cannot_be_planned_is_refused(change, message):
    with pytest.raises(InputError, match=message):
        cheapest_samples(**{**WANTED, **change})


def priced(size=4000, seed=0):
    """Return units of which a fifth cost ten times as much to label."""
    rng = np.random.default_rng(seed)
    dear = rng.random(size) < 0.2
    proxy = rng.beta(4, 2, size)
    groups, costs = {"kind": np.where(dear, "scan", "text")}, {"minutes": np.where(dear, 10.0, 1.0)}
    return stratal.Population.from_arrays(proxy=proxy, groups=groups, features=costs)


def test_a_column_of_costs_makes_the_budget_money_and_dear_units_rarer():
    population = priced()
    plan = stratal.plan(population, 600, by="kind", allocation="cost-optimal:minutes")
    spent = sum(row["n"] * (10.0 if "scan" in row["name"] else 1.0) for row in plan.to_dict()["strata"])
    same = stratal.plan(population, plan.budget, by="kind", allocation="neyman")
    rarer = [
        sum(row["n"] for row in one.to_dict()["strata"] if "scan" in row["name"]) for one in (plan, same)
    ]

    assert 590 <= spent <= 600
    assert plan.allocation.method == "cost-optimal"
    random = int(600 / population.means_of([NumberColumn(name="minutes")])[0])
    assert any(f"buys about {random} labels" in note for note in plan.notes)
    assert plan.budget > 1.3 * random
    assert 2 * rarer[0] < rarer[1]
    assert plan.draw(seed=1).size == plan.budget
    # What the same money buys by shares that know no costs is less exact.
    blind = stratal.plan(population, random, by="kind", allocation="neyman")
    assert plan.recommended.expected_standard_error < 0.95 * blind.recommended.expected_standard_error


def test_costs_need_a_column_and_money():
    population = priced(200)
    for rule, message in (
        ("cost-optimal", "requires a column with the costs"),
        ("cost-optimal:hours", r"allowed: .*minutes"),
    ):
        with pytest.raises(InputError, match=message):
            stratal.plan(population, 60, by="kind", allocation=rule)
    with pytest.raises(InputError, match="requires a budget in units of cost"):
        stratal.plan(population, half_width=0.1, by="kind", allocation="cost-optimal:minutes")


def test_a_plan_compares_allocations_of_one_budget():
    population = priced()
    rows = stratal.plan(population, 200).to_dict()["allocations"]
    by_rule = {row["allocation"]: row for row in rows}

    assert list(by_rule) == ["robust", "proportional", "neyman"]
    asked = stratal.plan(population, 200, allocation="neyman")
    error = asked.recommended.expected_standard_error
    assert by_rule["neyman"]["expected_standard_error"] == pytest.approx(error)
    assert asked.to_dict()["allocations"][0]["relative_efficiency"] == asked.recommended.relative_efficiency
    assert (
        by_rule["neyman"]["conservative_standard_error"]
        > by_rule["proportional"]["conservative_standard_error"]
    )
    assert "Allocations" in str(asked.summary())
    assert stratal.plan(population, 200, method="none").to_dict()["allocations"] == []
