from __future__ import annotations

import numpy as np
import pytest
from tests.work import calls

from stratal import Population
from stratal.errors import InputError
from stratal.population.distribution import (
    BIN_COUNT,
    EXACT_LIMIT,
    OFFSET_COUNT,
    Grid,
    LevelDistributions,
    build_distribution,
)
from stratal.population.in_memory import ArrayCounter, count_levels
from stratal.strata.strata import join_moments, moments_of_bins, moments_of_levels

LARGE = EXACT_LIMIT + 10_000


def distribution(values, second=None, **options):
    return build_distribution(ArrayCounter(np.asarray(values, float), second), **options)


def assert_bins_partition(picture, values):
    codes = np.searchsorted(picture.cuts, values, side="right")
    assert np.bincount(codes, minlength=len(picture.counts)).tolist() == picture.counts.tolist()


def test_small_populations_are_exact():
    values = np.random.default_rng(0).random(1000).round(2)
    picture = distribution(values)

    assert picture.exact
    assert picture.values.tolist() == np.unique(values).tolist()
    assert_bins_partition(picture, values)


def test_large_populations_are_a_histogram_whose_cuts_give_its_counts():
    values = np.random.default_rng(0).beta(5, 1, LARGE)
    picture = distribution(values)

    assert not picture.exact
    assert len(picture.values) <= BIN_COUNT
    assert picture.mean == pytest.approx(values.mean(), abs=1e-9)
    assert_bins_partition(picture, values)


def test_few_distinct_values_stay_exact_however_many_units():
    values = np.random.default_rng(0).integers(0, 5, LARGE) / 4
    picture = distribution(values)

    assert picture.exact
    assert picture.values.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert_bins_partition(picture, values)


@pytest.mark.parametrize("far", [1e3, 1e6, 1e12])
def test_one_unit_far_away_does_not_hide_the_others(far):
    values = np.append(np.random.default_rng(0).random(LARGE), far)
    picture = distribution(values, scaled=False)

    assert len(picture.values) > 1000
    assert_bins_partition(picture, values)


def test_an_offset_changes_nothing_but_the_values():
    values = np.random.default_rng(0).random(LARGE)
    near, off = distribution(values, scaled=False), distribution(values + 1e8, scaled=False)

    assert off.mean - 1e8 == pytest.approx(near.mean, abs=1e-6)
    assert_bins_partition(off, values + 1e8)


@pytest.mark.parametrize("size", [50, LARGE])
def test_row_order_is_irrelevant_to_the_last_bit(size):
    generator = np.random.default_rng(0)
    values = generator.beta(2, 1, size)
    second = values * (1 - values)
    order = generator.permutation(size)

    assert distribution(values, second) == distribution(values[order], second[order])


@pytest.mark.parametrize("size", [50, LARGE])
def test_second_moments_are_averaged_within_bins(size):
    values = np.random.default_rng(0).random(size)
    picture = distribution(values, values**2 + 0.1)

    assert picture.counts @ picture.second_moments / size == pytest.approx(np.mean(values**2 + 0.1), abs=1e-8)
    assert picture.conditional_variances == pytest.approx(np.full(len(picture.values), 0.1), abs=1e-4)


def test_a_bounded_outcome_is_taken_as_spread_as_it_can_be():
    picture = distribution([1.0, 3.0, 5.0], bounds=(1.0, 5.0))

    assert picture.conditional_variances == pytest.approx([0, 4, 0])


@pytest.mark.parametrize("values", [[0.5], [0.5] * 10, [0.0, 5e-324], [-1e300, 1e300], [0.0, -0.0]])
def test_degenerate_values(values):
    picture = distribution(values, scaled=False)

    assert picture.size == len(values)
    assert_bins_partition(picture, np.array(values))


@pytest.mark.parametrize("extent", [(0.1, 0.7), (-1.0, 1.0), (-3.0, 5.0), (1e-300, 1e300), (1e6, 1e6 + 1)])
def test_the_smallest_double_of_every_bin_is_found(extent):
    grid = Grid.over(*extent)
    numbers = np.arange(1, BIN_COUNT)
    cuts = grid.cuts(numbers)

    assert np.all((cuts - grid.low) * grid.scale >= numbers * OFFSET_COUNT)
    assert np.all((np.nextafter(cuts, -np.inf) - grid.low) * grid.scale < numbers * OFFSET_COUNT)


def test_a_margin_whose_bins_meet_at_zero_is_binned():
    values = np.linspace(-1.0, 1.0, LARGE)

    assert_bins_partition(distribution(values, scaled=False), values)


def test_finding_all_cuts_is_not_work_per_bin():
    grid = Grid.over(0.1, 0.7)

    assert calls(grid.cuts, np.arange(1, BIN_COUNT))[1] < 1_000


def test_an_empty_population_is_refused():
    with pytest.raises(InputError, match="empty"):
        distribution([])


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

    pictures = LevelDistributions(count_levels(tuple(names.tolist()), number, counter))

    for name in names.tolist():
        rows = group == name
        alone = ArrayCounter(values[rows], second[rows] if with_second else None)
        assert pictures[name] == build_distribution(alone)
    assert pictures.sizes == {name: int(np.sum(group == name)) for name in names.tolist()}


def test_moments_of_all_levels_are_those_of_each():
    group, values, _ = three_levels(EXACT_LIMIT + 500)
    pictures = Population.from_arrays(proxy=values, groups={"g": group}).distributions("g")
    whole = np.empty(0, np.int64)

    assert moments_of_levels(pictures) == join_moments(
        [moments_of_bins(picture, whole) for picture in pictures.values()]
    )


def test_more_levels_cost_no_more_calls():
    def pictured(levels):
        proxy, group = np.arange(4_000) / 4_000, np.arange(4_000) % levels
        population = Population.from_arrays(proxy=proxy, groups={"g": group})
        return calls(lambda: moments_of_levels(population.distributions("g")))[1]

    pictured(10)
    few, many = pictured(10), pictured(1_000)

    assert many < few + 2 * 1_000


def test_signed_zeros_are_one_value_within_a_level():
    counter = ArrayCounter(np.array([-0.0, 0.0, 0.5, -0.0]))

    found = count_levels(("a", "b"), np.array([0, 0, 1, 1]), counter)

    assert found.values.tolist() == [0.0, 0.0, 0.5]
    assert not np.signbit(found.values).any()
    assert found.counts.tolist() == [2, 1, 1]
    assert found.level.tolist() == [0, 1, 1]
