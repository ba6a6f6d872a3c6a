"""A plan before there is a file: the same as that of a population of a constant proxy."""

from __future__ import annotations

import numpy as np
import pytest
from tests.tiers import sized

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


@pytest.mark.parametrize(
    ("size", "rate", "sensitivity", "specificity", "budget"),
    [(4000, 0.8, 0.95, 0.9, 200), (5000, 0.9, 0.95, 0.9, 200), (20_000, 0.7, 0.99, 0.95, 300)],
)
def test_the_forecast_with_a_judge_is_the_error_of_draws_at_its_rates(
    size, rate, sensitivity, specificity, budget
):
    """A slope of .8, for scores that are too sure, made the forecast 1.3 to 1.8 times the true error."""
    plan = plan_for_rate(size, rate, budget=budget, sensitivity=sensitivity, specificity=specificity)
    ones = round(rate * size)
    cells = np.array(
        [ones * sensitivity, ones * (1 - sensitivity), (size - ones) * (1 - specificity)], dtype=float
    )
    right_positive, right_negative, wrong_positive = np.round(cells).astype(int)
    wrong_negative = size - right_positive - right_negative - wrong_positive
    share = (right_positive + wrong_positive) / size
    rng = np.random.default_rng(0)
    draws = sized(4000, 40_000)
    if plan.recommended.design == "stratified":
        by_rate = np.argsort(-plan.strata.proxy_means)
        n_positive, n_negative = plan.allocation.n_h[by_rate]
        hits_positive = rng.hypergeometric(right_positive, wrong_positive, n_positive, draws)
        hits_negative = rng.hypergeometric(right_negative, wrong_negative, n_negative, draws)
    else:
        counts = rng.multivariate_hypergeometric(
            [right_positive, wrong_positive, right_negative, wrong_negative], budget, draws
        )
        hits_positive, hits_negative = counts[:, 0], counts[:, 2]
        n_positive = counts[:, :2].sum(axis=1)
        n_negative = counts[:, 2:].sum(axis=1)
    estimates = share * hits_positive / n_positive + (1 - share) * hits_negative / n_negative

    assert plan.recommended.expected_standard_error == pytest.approx(np.std(estimates), rel=0.05)


def test_a_judge_with_error_rates_saves_labels_and_is_not_drawn_from():
    judged = plan_for_rate(4000, 0.8, budget=200, sensitivity=0.95, specificity=0.9)

    assert judged.expected_half_width < plan_for_rate(4000, 0.8, budget=200).expected_half_width
    assert any("slope 1 " in text for text in judged.assumptions)
    half_width = plan_for_rate(4000, 0.8, half_width=0.03, sensitivity=0.95, specificity=0.9)
    assert half_width.expected_half_width <= 0.03
    with pytest.raises(stratal.InputError, match="does not contain its population"):
        judged.draw(seed=1)
    with pytest.raises(stratal.InputError, match="specificity="):
        plan_for_rate(4000, 0.8, budget=200, sensitivity=0.95)
