"""Draws of units on which models disagree: rounds that continue, and sums over all units."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stratal
from stratal.designs import Disagreements
from stratal.designs.disagreements import DifferingUnits, SuccessiveDraws, units_and_answers

SIZE = 10_000  # more units than are added at the same time
MODELS = ("a", "b", "c")


def population(levels: int = 3) -> stratal.Population:
    random = np.random.default_rng(3)
    columns: dict[str, Any] = {name: random.integers(0, levels, SIZE).astype(str) for name in MODELS}
    return stratal.Population.from_arrays(groups=columns)


def design_of(*units: int) -> Disagreements:
    """Return a design in which a model is eliminated after the second round."""
    rivals = [(1, 2), (1, 2), (2,)][: len(units)]
    survivors = tuple((0, *models) for models in rivals)
    return Disagreements(
        answers=MODELS, units=units, leaders=(0,) * len(units), survivors=survivors, rivals=tuple(rivals)
    )


def test_a_longer_design_continues_the_draw_of_the_shorter_one() -> None:
    units = units_and_answers(population(), MODELS, seed=1)
    shorter = units.draws(design_of(50, 20))
    rows = shorter.rows.tolist()
    probability = shorter.probability.tolist()
    longer = units.draws(design_of(50, 20, 30))
    at_once = units_and_answers(population(), MODELS, seed=1).draws(design_of(50, 20, 30))
    np.testing.assert_array_equal(longer.rows, at_once.rows)
    np.testing.assert_array_equal(longer.probability, at_once.probability)
    assert longer.rows[:70].tolist() == rows
    # The shorter draw has not changed, and neither draw is repeated.
    assert (shorter.rows.tolist(), shorter.probability.tolist()) == (rows, probability)
    assert units.draws(design_of(50, 20, 30)) is longer
    assert units.draws(design_of(50, 20, 30), -1) is shorter


@pytest.mark.parametrize("counts_agreements", [False, True])
def test_sums_over_the_remaining_units_are_those_of_the_definition(counts_agreements: bool) -> None:
    codes = units_and_answers(population(), MODELS, seed=1).codes
    differences = DifferingUnits(codes, 0, counts_agreements=counts_agreements)
    differs = (codes != codes[:, :1]) | counts_agreements
    sizes = np.random.default_rng(4).uniform(0.5, 1.0, SIZE)
    draws = SuccessiveDraws(np.random.default_rng(5).random(SIZE))
    draws.draw(sizes, 3)
    draws.draw(sizes, 4)
    expected = []
    remaining = np.ones(SIZE, dtype=bool)
    for row in draws.rows.tolist():
        expected.append(sizes[remaining].sum() * (differs[remaining] / sizes[remaining, None]).sum(axis=0))
        remaining[row] = False
    np.testing.assert_allclose(
        draws.inverse_probability_sums(differences, np.arange(3)), expected, rtol=1e-11
    )
    np.testing.assert_array_equal(differences.counts, differs.sum(axis=0))


@pytest.mark.parametrize(("levels", "bytes_of_code"), [(3, 1), (120, 1), (130, 2)])
def test_an_answer_takes_as_few_bytes_as_the_number_of_answers_allows(
    levels: int, bytes_of_code: int
) -> None:
    units = units_and_answers(population(levels), MODELS, seed=1)
    assert units.codes.dtype.itemsize == bytes_of_code
    np.testing.assert_allclose(
        units.correct_probabilities.totals, units.correct_probabilities.of_units(np.arange(SIZE)).sum(axis=0)
    )
