"""The influence as a proxy: moments of all units, and strata made of them."""

from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.errors import InputError
from stratal.population.expressions import Agree, Cells, Constant, NumberColumn
from stratal.population.influence import Influence, population_means

P = NumberColumn(name="p")


@pytest.fixture
def population():
    rng = np.random.default_rng(1)
    return stratal.Population.from_arrays(
        proxy={"p": rng.random(300)},
        groups={"a": rng.choice(["x", "y"], 300), "b": rng.choice(["x", "y"], 300)},
    )


def test_averages_are_those_of_the_arrays(population):
    p = next(population.batches(("p",)))["p"]

    np.testing.assert_allclose(
        population_means(population, [P, P * P, Constant(value=2.0)]), [p.mean(), (p**2).mean(), 2]
    )


def test_a_second_moment_is_never_below_the_square_of_the_mean(population):
    influence = Influence(value=0.0, mean=P, square=0.0 * P, cells=Cells(names=("all",)))
    mean, square, _ = influence.moments(population)

    np.testing.assert_array_equal(square, mean**2)


def test_strata_know_which_of_them_need_no_label(population):
    same = Agree(names=("a", "b"))
    influence = Influence(
        value=0.0,
        mean=(1.0 - same) * (P - 0.5),
        square=(1.0 - same) * (P * 0.0 + 0.25),
        cells=Cells(names=("same", "different"), tests=(same,)),
        known_cells=("same",),
    )
    strata = stratal.strata.stratify(population, "neyman", 3, influence=influence)
    again = type(strata).from_dict(strata.to_dict())
    allocation = stratal.strata.allocate(strata, 40)

    assert strata.is_known.sum() == 1
    assert again == strata
    assert strata.known_influences[int(np.argmax(strata.is_known))] == same
    assert np.all(allocation.n_h[strata.is_known] == 0)
    assert np.all(allocation.n_h[~strata.is_known] >= 2)


def test_an_influence_is_divided_into_intervals_alone(population):
    influence = Influence(value=0.0, mean=P, square=P, cells=Cells(names=("all",)))
    with pytest.raises(InputError, match="divided into intervals"):
        stratal.strata.stratify(population, "features", 3, influence=influence)
