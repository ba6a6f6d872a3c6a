from __future__ import annotations

import numpy as np
import pytest
from tests.work import calls

from stratal import Population
from stratal.population.distribution import EXACT_LIMIT, Pictures, build_distribution
from stratal.population.in_memory import ArrayCounter, bins_of_levels
from stratal.strata.moments import joined, of_bins, of_pictures


def three_levels(large: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    group = np.repeat(["few", "large", "one"], [500, large, EXACT_LIMIT + 1])
    values = random.beta(4, 1, len(group)).round(2)
    values[group == "large"] = random.random(large)
    values[group == "one"] = 0.25
    order = random.permutation(len(group))
    second = values * random.random(len(group))
    return group[order], values[order], second[order]


@pytest.mark.parametrize("large", [900, EXACT_LIMIT + 500])
@pytest.mark.parametrize("with_second", [False, True])
def test_each_level_is_pictured_as_if_it_were_a_population(large, with_second):
    group, values, second = three_levels(large)
    counter = ArrayCounter(values, second if with_second else None)
    names, number = np.unique(group, return_inverse=True)

    pictures = Pictures(bins_of_levels(tuple(names.tolist()), number, counter))

    for name in names.tolist():
        rows = group == name
        alone = ArrayCounter(values[rows], second[rows] if with_second else None)
        assert pictures[name] == build_distribution(alone)
    assert pictures.sizes == {name: int(np.sum(group == name)) for name in names.tolist()}


def test_moments_of_all_levels_are_those_of_each():
    group, values, _ = three_levels(EXACT_LIMIT + 500)
    pictures = Population.from_arrays(proxy=values, groups={"g": group}).distributions("g")
    whole = np.empty(0, np.int64)

    assert of_pictures(pictures) == joined([of_bins(picture, whole) for picture in pictures.values()])


def test_more_levels_cost_no_more_calls():
    def pictured(levels):
        proxy, group = np.arange(4_000) / 4_000, np.arange(4_000) % levels
        population = Population.from_arrays(proxy=proxy, groups={"g": group})
        return calls(lambda: of_pictures(population.distributions("g")))[1]

    pictured(10)
    few, many = pictured(10), pictured(1_000)

    assert many < few + 2 * 1_000


def test_signed_zeros_are_one_value_within_a_level():
    counter = ArrayCounter(np.array([-0.0, 0.0, 0.5, -0.0]))

    found = bins_of_levels(("a", "b"), np.array([0, 0, 1, 1]), counter)

    assert found.values.tolist() == [0.0, 0.0, 0.5]
    assert not np.signbit(found.values).any()
    assert found.counts.tolist() == [2, 1, 1]
    assert found.level.tolist() == [0, 1, 1]
