"""A plan before there is a file: the same as that of a population of a constant proxy."""

from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.planning.entry_points import plan_for_rate


@pytest.mark.parametrize("rate", [0.5, 0.9, 0.99])
def test_it_is_the_plan_of_a_constant_proxy(rate):
    population = stratal.Population.from_arrays(proxy=np.full(3000, rate))
    there, here = stratal.plan(population, 200), plan_for_rate(3000, rate, budget=200)

    assert here.recommended.expected_standard_error == pytest.approx(
        there.recommended.expected_standard_error
    )
    assert here.expected_half_width == pytest.approx(there.expected_half_width)


def test_its_half_width_is_kept_and_one_label_fewer_would_not_do():
    plan = plan_for_rate(5000, 0.9, half_width=0.03)

    assert plan.expected_half_width <= 0.03
    assert plan_for_rate(5000, 0.9, budget=plan.budget - 1).expected_half_width > 0.03


def test_it_says_that_there_is_nothing_to_draw_from():
    with pytest.raises(stratal.InputError, match="does not contain its population"):
        plan_for_rate(5000, 0.9, budget=100).draw(seed=1)


def test_error_rates_of_a_judge_are_the_plan_of_its_calibrated_verdicts():
    judged = plan_for_rate(4000, 0.8, budget=200, sensitivity=0.95, specificity=0.9)
    # 78 % are called 1: .8 × .95 + .2 × .1.
    proxy = np.repeat([0.76 / 0.78, 0.04 / 0.22], [3120, 880])
    there = stratal.plan(stratal.Population.from_arrays(proxy=proxy), 200)

    assert judged.recommended.expected_standard_error == pytest.approx(
        there.recommended.expected_standard_error
    )
    assert judged.expected_half_width < plan_for_rate(4000, 0.8, budget=200).expected_half_width
    with pytest.raises(stratal.InputError, match="does not contain its population"):
        judged.draw(seed=1)
    with pytest.raises(stratal.InputError, match="specificity="):
        plan_for_rate(4000, 0.8, budget=200, sensitivity=0.95)
