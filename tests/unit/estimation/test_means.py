"""Means of levels, of several outcomes, and of everything."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import stratal
from stratal.errors import InputError
from stratal.estimands import Estimand, LevelMeans, Mean, Means
from stratal.estimation.crossed_cells import combined_influence


@pytest.fixture
def population():
    rng = np.random.default_rng(6)
    return stratal.Population.from_arrays(
        proxy={"fluency": rng.random(400), "adequacy": rng.random(400)},
        groups={"language": rng.choice(["de", "en", "fr"], 400, p=(0.7, 0.2, 0.1))},
    )


def test_a_mean_is_estimated_as_without_an_estimand(population):
    sample = stratal.plan(population, budget=40, proxy="fluency").draw(seed=2)
    labels = (np.arange(40) % 3 > 0).astype(float)

    estimate = stratal.estimate(sample, labels, estimand=Mean())
    assert estimate == stratal.estimate(sample, labels)
    assert Mean().estimate(sample, labels) == estimate


def test_the_influence_of_a_mean_is_the_proxy_less_its_mean(population):
    influence = Mean("adequacy").influence(population)
    mean, square, _ = influence.moments(population)
    p = next(population.batches(("adequacy",)))["adequacy"]

    np.testing.assert_allclose(mean, p - p.mean(), atol=1e-8)
    np.testing.assert_allclose(square, (p - p.mean()) ** 2 + p * (1 - p), atol=1e-8)


def test_levels_are_the_rows_of_their_category(population):
    sample = stratal.designs.SimpleRandom(budget=90).draw(population, seed=2)
    labels = (np.arange(90) % 4 > 0).astype(float)
    expected = stratal.estimate(sample, labels, by="language")

    table = stratal.estimate(sample, labels, estimand="mean@language")

    assert [row.label["domain"] for row in table] == ["de", "en", "fr"]
    assert table.rows() == expected.rows()


def test_levels_that_are_not_asked_about_are_not_drawn(population):
    estimand = LevelMeans("language", ("fr", "en"))
    strata = stratal.strata.stratify(population, "neyman", 2, influence=estimand.influence(population))
    sample = stratal.designs.Stratified(strata=strata, allocation=stratal.strata.allocate(strata, 50)).draw(
        population, 1
    )

    assert set(sample.groups["language"]) == {"en", "fr"}
    rows = stratal.estimate(sample, np.ones(50), estimand=estimand)
    assert [row.label["domain"] for row in rows] == ["fr", "en"]
    with pytest.raises(InputError, match="this sample cannot be used for this estimate"):
        stratal.estimate(sample, np.ones(50), estimand="mean@language")


def test_the_influence_of_a_level_has_the_variance_of_its_ratio(population):
    part = LevelMeans("language").parts_in(population)[2]
    sample = replace(stratal.designs.SimpleRandom(budget=120).draw(population, seed=2), level_means={})
    labels = (np.arange(120) % 4 > 0).astype(float)
    found = part.labelled_influence(sample, labels)

    error = np.sqrt((1 - 120 / 400) / 120 * np.var(found.u, ddof=1))
    assert error == pytest.approx(part.estimate(sample, labels).standard_error, rel=1e-9)


def test_a_level_that_nobody_has_is_named(population):
    with pytest.raises(InputError, match="no unit has language = 'dk'"):
        LevelMeans("language", ("dk",)).influence(population)


def test_several_outcomes_are_rows(population):
    estimand = Means(("fluency", "adequacy"))
    strata = stratal.strata.stratify(population, "neyman", 4, influence=estimand.influence(population))
    sample = stratal.designs.Stratified(strata=strata, allocation=stratal.strata.allocate(strata, 60)).draw(
        population, 1
    )
    rng = np.random.default_rng(3)
    labels = {name: rng.integers(0, 2, 60).astype(float) for name in estimand.names}

    table = stratal.estimate(sample, labels, estimand=estimand)
    found = estimand.labelled_influence(sample, labels)

    for row in table:
        alone = stratal.estimate(sample, labels[row.label["outcome"]], estimator="horvitz-thompson")
        assert row.value == pytest.approx(alone.value)
    assert found.u.shape == (60,)
    with pytest.raises(InputError, match="map each outcome"):
        stratal.estimate(sample, labels["fluency"], estimand=estimand)


@pytest.mark.parametrize("text", ["mean", "mean@language", "means:fluency,adequacy"])
def test_the_mean_influence_of_everything_is_nothing(population, text):
    mean, square, _ = Estimand.parse_text(text).influence(population).moments(population)

    assert abs(mean.mean()) < 1e-6
    assert np.all(square >= mean**2 - 1e-12)


def test_the_influence_of_all_levels_is_that_of_the_parts_together(population):
    estimand = LevelMeans("language")
    parts = [part.influence(population) for part in estimand.parts_in(population)]

    found, expected = estimand.influence(population), combined_influence(parts, population)

    for own, other in zip(found.moments(population)[:2], expected.moments(population)[:2], strict=True):
        assert own == pytest.approx(other, rel=1e-6, abs=1e-7)  # values rounded to nine digits


def test_a_level_of_which_nearly_all_units_are_labelled_has_a_narrow_interval():
    """Strata of one unit made the interval of such a level reach from 0 to 1."""
    rng = np.random.default_rng(11)
    level = np.repeat(["large", "small"], [4000, 30])
    proxy = np.where(level == "large", rng.beta(6, 2, 4030), rng.beta(3, 3, 4030))
    z = (rng.random(4030) < proxy) * 1.0
    population = stratal.Population.from_arrays(proxy=proxy, groups={"g": level})
    plan = stratal.plan(population, half_width=0.06, estimand="mean@g")
    sample = plan.draw(seed=1)
    found = stratal.estimate(sample, z[sample.ids]).of(domain="small")
    low, high = found.confidence_interval()

    assert np.any(plan.strata.sizes[plan.allocation.n_h == 1] == 1)
    assert 26 <= found.n < 30
    assert (high - low) / 2 < 0.09
    assert low <= z[level == "small"].mean() <= high
