"""Poisson, sequential Poisson and their inclusion probabilities."""

import numpy as np
import pytest
from tests.tiers import cells
from tests.work import calls

import stratal
from stratal.designs import Design, inclusion_probabilities
from stratal.designs.poisson import size_measure
from stratal.errors import BudgetError, InputError
from stratal.proxy import Proxy


def population(size=400, seed=0, **extra):
    rng = np.random.default_rng(seed)
    proxy = np.round(rng.beta(4, 1, size), 3)
    return stratal.Population.from_arrays(
        proxy=proxy,
        ids=[f"u{i}" for i in range(size)],
        features={"length": rng.lognormal(0, 1, size), **extra},
        groups={"topic": rng.integers(0, 5, size).astype(str)},
    )


def by_iteration(sizes, n):
    """Return π by taking out certain units again and again, the textbook's way."""
    certain = np.zeros(len(sizes), bool)
    while True:
        pi = (n - certain.sum()) * sizes / sizes[~certain].sum()
        pi[certain] = 1.0
        if np.all(pi <= 1):
            return pi
        certain |= pi > 1


@pytest.mark.parametrize("n", [1, 3, 10, 39, 40])
def test_probabilities_match_the_iterative_method(n):
    sizes = np.random.default_rng(n).lognormal(0, 2, 40)

    pi = inclusion_probabilities(sizes, n)

    np.testing.assert_allclose(pi, by_iteration(sizes, n), atol=1e-7)
    assert pi.sum() == pytest.approx(n, rel=1e-8)


def test_probabilities_of_a_million_units_take_a_few_passes():
    sizes = np.random.default_rng(0).pareto(0.7, 1_000_000) + 0.1

    pi, work = calls(inclusion_probabilities, sizes, 100_000)

    assert work < 200
    assert pi.sum() == pytest.approx(100_000)
    assert (pi == 1).sum() > 1000


@pytest.mark.parametrize("bad", [[1.0, 0.0], [1.0, -2.0], [1.0, np.nan], []])
def test_sizes_must_be_positive(bad):
    with pytest.raises(InputError):
        inclusion_probabilities(bad, 1)


def test_a_budget_above_the_population_is_refused():
    with pytest.raises(BudgetError, match="larger than the population"):
        inclusion_probabilities(np.ones(3), 4)


def test_a_census_takes_every_unit_for_certain():
    sample = stratal.designs.ProportionalToSize(budget=400, size="length").draw(population(), seed=1)

    assert sample.size == 400
    assert np.all(sample.inclusion_probability == 1)
    result = stratal.estimate(sample, np.arange(400) % 2, estimator="horvitz-thompson", target="population")
    assert result.value == pytest.approx(0.5)
    assert result.standard_error == 0


def test_flat_verdicts_keep_a_chance():
    judge = stratal.Population.from_arrays(proxy=[0.0] * 50 + [1.0] * 50)

    sample = stratal.designs.ProportionalToSize(budget=20).draw(judge, seed=3)

    assert sample.size == 20
    np.testing.assert_allclose(sample.inclusion_probability, 0.2)


def test_a_constant_certain_proxy_gives_equal_sizes():
    sure = stratal.Population.from_arrays(proxy=np.ones(30))

    sample = stratal.designs.ProportionalToSize(budget=6).draw(sure, seed=3)

    np.testing.assert_allclose(sample.inclusion_probability, 0.2)


def test_sizes_come_from_second_moments_where_there_are_any():
    proxy = Proxy(values=np.array([1.0, 2.0, 3.0]), second_moments=np.array([2.0, 4.0, 9.0]), bounds=None)
    result = size_measure(stratal.Population.from_arrays(proxy=proxy), "sqrt-variance")

    assert result.uses_second_moments
    assert result.centre == pytest.approx(1 / 3)
    np.testing.assert_allclose(
        result.evaluate(proxy.values, proxy.second_moments) ** 2, [0.8 + 1 / 15, 1 / 15, 1 / 15]
    )


def test_a_margin_says_nothing_of_the_variance():
    margins = stratal.Population.from_arrays(proxy=[-2.0, 3.0, 1.0])

    with pytest.raises(InputError, match="contains no information about the outcome's variance"):
        stratal.designs.ProportionalToSize(budget=2).draw(margins, seed=1)
    with pytest.raises(InputError, match="not positive"):
        stratal.designs.ProportionalToSize(budget=2, size="proxy").draw(margins, seed=1)


def test_a_category_is_no_size():
    with pytest.raises(InputError, match="contains categories"):
        stratal.designs.Poisson(budget=5, size="topic").draw(population(), seed=1)


def test_an_unknown_column_is_named():
    with pytest.raises(InputError, match="lenght"):
        stratal.designs.Poisson(budget=5, size="lenght").draw(population(), seed=1)


class TestPoisson:
    def test_draws_a_unit_when_its_number_is_below_its_probability(self):
        units = population(chance=np.linspace(0.01, 1.0, 400))

        sample = stratal.designs.Poisson(probability="chance").draw(units, seed=5)

        chance = np.linspace(0.01, 1.0, 400)[[int(text[1:]) for text in sample.ids]]
        np.testing.assert_array_equal(sample.inclusion_probability, chance)
        assert "u399" in sample.ids  # π = 1
        assert abs(sample.size - 202) < 4 * np.sqrt(67)

    def test_one_probability_for_all(self):
        sample = stratal.designs.Poisson(probability=0.25).draw(population(), seed=5)

        assert set(sample.inclusion_probability) == {0.25}

    def test_is_nested_in_the_probability(self):
        units = population()
        smaller = stratal.designs.Poisson(budget=20, size="length").draw(units, seed=5)
        larger = stratal.designs.Poisson(budget=60, size="length").draw(units, seed=5)

        assert set(smaller.ids) <= set(larger.ids)

    def test_probabilities_above_one_are_refused_by_name(self):
        """There ssepy 0.1.1 crashes inside NumPy."""
        with pytest.raises(InputError, match="column 'length' contains a probability above 1"):
            stratal.designs.Poisson(probability="length").draw(population(), seed=5)

    def test_sizes_above_one_become_certain_units(self):
        units = population(weight=np.r_[np.full(5, 1e6), np.ones(395)])
        sample = stratal.designs.Poisson(budget=10, size="weight").draw(units, seed=5)

        assert {f"u{i}" for i in range(5)} <= set(sample.ids)
        assert sorted(set(sample.inclusion_probability)) == pytest.approx([5 / 395, 1.0])

    def test_horvitz_thompson_variance_is_one_number(self):
        """In ssepy 0.1.1 it is broadcast against probabilities; the difference estimator's is missing."""
        sample = stratal.designs.Poisson(budget=50, size="length").draw(population(), seed=5)
        z = np.arange(sample.size) % 3 / 2

        plain = stratal.estimate(sample, z, estimator="horvitz-thompson")
        residual = stratal.estimate(sample, z, estimator="difference")

        pi, proxy = sample.inclusion_probability, sample.proxies[:, 0]
        assert plain.value == pytest.approx(min(np.sum(z / pi) / 400, 1))
        assert plain.standard_error == pytest.approx(np.sqrt(np.sum((1 - pi) * (z / pi) ** 2)) / 400)
        expected = np.sqrt(np.sum((1 - pi) * ((z - proxy) / pi) ** 2)) / 400
        assert residual.standard_error == pytest.approx(expected)

    @pytest.mark.parametrize("options", [{}, {"probability": 0.1, "budget": 5}])
    def test_needs_either_probabilities_or_a_budget(self, options):
        with pytest.raises(InputError, match="either probabilities or a budget"):
            stratal.designs.Poisson(**options)

    @pytest.mark.parametrize("bad", [0, -0.1, 1.5])
    def test_probability_out_of_range(self, bad):
        with pytest.raises(InputError, match="out of range"):
            stratal.designs.Poisson(probability=bad)

    def test_an_empty_draw_is_a_sample_of_nothing(self):
        sample = stratal.designs.Poisson(probability=1e-9).draw(population(), seed=5)

        assert sample.size == 0
        with pytest.raises(InputError, match="no unit is labelled"):
            stratal.estimate(sample, {})


class TestProportionalToSize:
    def test_draws_exactly_the_budget(self):
        for n in (1, 7, 100, 399):
            assert (
                stratal.designs.ProportionalToSize(budget=n, size="length").draw(population(), seed=2).size
                == n
            )

    def test_certain_units_are_always_drawn(self):
        units = population(weight=np.r_[np.full(3, 1e6), np.linspace(1, 2, 397)])
        for seed in range(20):
            sample = stratal.designs.ProportionalToSize(budget=8, size="weight").draw(units, seed=seed)
            assert {"u0", "u1", "u2"} <= set(sample.ids)
            assert sample.size == 8

    def test_takes_the_smallest_of_number_over_size(self):
        units = population()
        sample = stratal.designs.ProportionalToSize(budget=30, size="length").draw(units, seed=2)
        larger = stratal.designs.ProportionalToSize(budget=60, size="length").draw(units, seed=2)

        assert set(sample.ids) <= set(larger.ids)

    def test_nonresponse_scales_the_weights(self):
        sample = stratal.designs.ProportionalToSize(budget=60).draw(population(), seed=2)
        labelled = np.arange(60) % 3 > 0

        whole, part = sample.weighting(), sample.weighting(labelled)

        assert part.weights.sum() == pytest.approx(whole.weights.sum())

    def test_survives_the_trip_through_a_file(self, tmp_path):
        sample = stratal.designs.ProportionalToSize(budget=60).draw(population(), seed=2)

        assert stratal.Sample.read(sample.write(tmp_path / "s.parquet")) == sample
        assert stratal.Sample.read(sample.write(tmp_path / "s.csv")) == sample


DESIGNS = [
    stratal.designs.Poisson(probability=0.2),
    stratal.designs.Poisson(budget=9, size="length"),
    stratal.designs.ProportionalToSize(budget=9, proxy="proxy"),
    stratal.designs.Systematic(budget=9),
    stratal.designs.ClusterSample(cluster="topic", n_clusters=3),
    stratal.designs.ClusterSample(cluster="topic", budget=300),
]


@pytest.mark.parametrize("design", DESIGNS, ids=repr)
def test_designs_survive_the_trip_through_a_dict(design):
    assert Design.from_dict(design.to_dict()) == design


@pytest.mark.parametrize("design", DESIGNS, ids=repr)
@pytest.mark.parametrize("labels", cells([np.zeros, np.ones, lambda n: np.arange(n) % 2], fast=(np.ones,)))
@pytest.mark.parametrize("estimator", ["auto", "horvitz-thompson", "hajek", "difference", "ppi++"])
@pytest.mark.parametrize("target", ["population", "superpopulation"])
def test_intervals_are_finite_inside_the_bounds_and_have_a_width(design, labels, estimator, target):
    sample = design.draw(population(), seed=4)
    z = dict(zip(sample.ids.tolist(), labels(sample.size), strict=True))
    del z[sample.ids.tolist()[0]]  # nonresponse

    result = stratal.estimate(sample, z, estimator=estimator, target=target)
    low, high = result.confidence_interval()

    assert 0 <= low <= result.value <= high <= 1
    assert low < high
    assert result.effective_sample_size is None or 0 < result.effective_sample_size <= 400
    assert str(result)


def test_an_array_of_probabilities_is_sent_into_the_population():
    with pytest.raises(InputError, match=r"features=\{'x': values\}, and probability='x'"):
        stratal.designs.Poisson(probability=np.full(4, 0.5))


def test_probabilities_of_ones_own_are_a_column():
    """What ssepy calls a probability array: π of every unit, as it is."""
    pi = np.linspace(0.05, 0.9, 400)
    population = stratal.Population.from_arrays(proxy=pi, features={"pi": pi})
    sample = stratal.designs.Poisson(probability="pi").draw(population, seed=4)

    assert sample.inclusion_probability == pytest.approx(pi[sample.ids])
    assert len(sample.ids) == pytest.approx(pi.sum(), abs=4 * np.sqrt((pi * (1 - pi)).sum()))
