"""What annotators will answer, declared apart from any proxy; and plans that leave nothing open."""

import numpy as np
import pyarrow as pa
import pytest

import stratal
from stratal.planning.entry_points import plan_for_rate
from stratal.planning.planner import EVERY_UNIT


@pytest.mark.parametrize("columns", [{"ids": range(50)}, {"proxy": np.linspace(0.01, 0.99, 50)}])
def test_bounds_of_labels_are_kept_where_no_proxy_is_on_their_scale(columns):
    population = stratal.Population.from_arrays(**columns, label=(0, 100))

    plan = stratal.plan(population, 10)
    outcome = plan.draw(seed=1).question.outcome

    assert (outcome.scale, outcome.bounds) == ("bounded", (0.0, 100.0))
    simple = 50 * np.sqrt((1 / 10 - 1 / 50) * 50 / 49)
    assert plan.designs[0].worst_standard_error == pytest.approx(simple)


def test_pass_and_fail_without_a_proxy_are_binary():
    population = stratal.Population.from_arrays(ids=range(50), label="pass/fail")

    plan = stratal.plan(population, 10)

    assert plan.draw(seed=1).question.outcome.scale == "binary"
    assert plan.recommended.worst_standard_error < 0.5


def test_bounds_of_labels_are_kept_from_a_table():
    table = pa.table({"id": list(range(20)), "language": ["de"] * 20})
    population = stratal.Population.from_table(table, id="id", label="0,100")

    assert stratal.plan(population, 5).draw(seed=1).question.outcome.bounds == (0.0, 100.0)


def test_a_plan_of_every_unit_says_that_it_is_exact():
    population = stratal.Population.from_arrays(proxy=[0.2, 0.7, 0.9])

    for plan in (stratal.plan(population, 3), plan_for_rate(3, budget=3)):
        assert EVERY_UNIT in plan.notes
        assert "±" not in str(plan)
        assert plan.expected_half_width == 0.0
    assert EVERY_UNIT not in stratal.plan(population, 2).notes


def test_rounding_is_not_a_standard_error():
    population = stratal.Population.from_arrays(proxy=np.repeat([0.1, 0.3, 0.7], 20) * 10, scaled=True)

    plan = stratal.plan(population, 59, residual_sd=1e-30, n_strata=3)

    assert plan.recommended.expected_standard_error == 0.0
    assert plan.expected_half_width == 0.0
