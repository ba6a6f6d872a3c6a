"""A coefficient as an estimand: the regression's own allocation before labels, `regress` after them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

import stratal
from stratal.designs.stratum_moments import stratum_covariances
from stratal.errors import InputError
from stratal.estimands import Coefficient
from stratal.estimation.estimand import as_estimand
from stratal.population.influence import population_means
from stratal.regression import LinearLoss, LogisticLoss, PoissonLoss, quantile
from stratal.regression.features import NumericFeatures
from stratal.regression.from_sample import unlabelled_of_population
from stratal.regression.m_estimation import fit_to_proxies

FEATURES = ("length", "age")
LOSSES: dict[str, type[LinearLoss | LogisticLoss | PoissonLoss]] = {
    "linear": LinearLoss,
    "logistic": LogisticLoss,
    "poisson": PoissonLoss,
}


@pytest.fixture(scope="module")
def units():
    """Two features, one of them skewed; outcomes of which the proxy knows the chance, not quite."""
    rng = np.random.default_rng(3)
    length, age = rng.gamma(2.0, 1.0, 4000), rng.normal(size=4000)
    chance = 1.0 / (1.0 + np.exp(-(0.5 + 0.6 * length - age)))
    told = np.clip(chance + rng.normal(0, 0.05, 4000), 0.01, 0.99)
    return {"length": length, "age": age, "told": told, "y": (rng.random(4000) < chance) * 1.0}


@pytest.fixture(scope="module")
def population(units):
    features = {name: units[name] for name in FEATURES}
    return stratal.Population.from_arrays(proxy={"told": units["told"]}, features=features)


@pytest.mark.parametrize("family", ["logistic", "poisson"])
def test_before_labels_it_varies_as_the_regression_s_allocation_has_it(population, family):
    influence = Coefficient("age", FEATURES, family).influence(population)
    all_units = unlabelled_of_population(population, population.proxy_names[0], NumericFeatures(FEATURES))
    fit, units = fit_to_proxies(LOSSES[family](), all_units), next(all_units.blocks())
    weight = units.features @ np.linalg.inv(fit.hessian)[2]
    mean, f = LOSSES[family]().mean(units.features @ fit.theta), units.proxy
    noise = f * (1 - f) if family == "logistic" else f
    expected = np.mean(weight**2 * noise) + np.var(weight * (mean - f))  # Fisch et al. (2024), eq. 20-21

    assert population_means(population, [influence.square]) == pytest.approx(expected, rel=2e-3)
    assert influence.value == pytest.approx(fit.theta[2], rel=1e-8)


@pytest.mark.parametrize("family", ["linear", "logistic", "poisson"])
def test_the_estimate_is_that_of_regress_at_any_level(population, units, family):
    sample = stratal.plan(population, 200, estimand=Coefficient("length", FEATURES, family)).draw(seed=1)
    y = units["y"][sample.ids]
    estimate = stratal.estimate(sample, y)
    fitted: Any = stratal.regress(sample, y, family=family, features=FEATURES)

    assert (estimate.value, estimate.standard_error) == (fitted.values[1], fitted.standard_errors[1])
    for level in (0.8, 0.95):
        low, high = fitted.confidence_interval(level)
        assert [*estimate.confidence_interval(level)] == pytest.approx([low[1], high[1]], rel=1e-12)
    assert estimate.p_value(0.0) == pytest.approx(float(np.asarray(fitted.p_values())[1]), rel=1e-4)


def test_the_plan_s_labels_tell_more_than_a_simple_random_sample_s(population, units):
    """By the design's own variance, with all labels known: no draw, no luck."""
    plan = stratal.plan(population, 200, estimand=Coefficient("length", FEATURES))
    x = np.column_stack([np.ones(4000), units["length"], units["age"]])
    theta = np.linalg.lstsq(x, units["y"], rcond=None)[0]
    u = (x @ np.linalg.inv(x.T @ x / 4000)[1]) * (units["y"] - x @ theta)
    codes, n_h, sizes = plan.strata.codes, plan.allocation.n_h, plan.strata.sizes
    spread = stratum_covariances(u[:, None], codes, len(sizes))[:, 0, 0]
    stratified = np.sum((sizes / 4000) ** 2 * (1 / n_h - 1 / sizes) * spread)
    random = (1 / 200 - 1 / 4000) * u.var(ddof=1)

    assert random / stratified > 1.25
    assert random / stratified == pytest.approx(plan.recommended.relative_efficiency, rel=0.25)


def test_rounds_read_the_population_argument(population, units, tmp_path):
    drawn = stratal.plan(population, 100, estimand="coefficient:length,features=length+age").draw(seed=1)
    sample = stratal.Sample.read(drawn.write(tmp_path / "sample.parquet"))
    y = units["y"][sample.ids]

    assert stratal.next_round(sample, y, additional=40, population=population).size == 140
    needed = stratal.labels_needed(sample, y, half_width=0.02, population=population)
    assert 0.02 < needed.half_width < 0.2
    assert needed.additional > 0
    assert stratal.estimate(sample, y, population=population).value == stratal.estimate(drawn, y).value


def test_without_a_population_the_design_s_weights_are_left(population, units, tmp_path):
    shown = {name: units[name] for name in FEATURES}
    known = stratal.Population.from_arrays(proxy={"told": units["told"]}, features=shown, show=shown)
    sample = stratal.plan(known, 100, estimand=Coefficient("length", FEATURES)).draw(seed=1)
    alone = stratal.Sample.read(sample.write(tmp_path / "sample.parquet"))
    y = units["y"][sample.ids]
    fitted = stratal.regress(sample, y, features=FEATURES, estimator="classical")

    assert stratal.estimate(alone, y).value == fitted.values[1]
    blind = stratal.plan(population, 100, estimand=Coefficient("length", FEATURES)).draw(seed=1)
    with pytest.raises(InputError, match=r"the drawn units have no column 'length'.*population="):
        stratal.estimate(stratal.Sample.read(blind.write(tmp_path / "blind.parquet")), y)


def test_a_table_gives_the_sample_that_arrays_give(units, tmp_path):
    ids = [f"u{k}" for k in range(4000)]
    frame = pd.DataFrame({"id": ids, **{name: units[name] for name in (*FEATURES, "told")}})
    path = tmp_path / "units.parquet"
    frame.to_parquet(path)
    table = stratal.Population.read(path, id="id", proxy="told", features=FEATURES)
    arrays = stratal.Population.from_arrays(
        ids=ids, proxy={"told": units["told"]}, features={name: units[name] for name in FEATURES}
    )
    for family in LOSSES:
        asked = Coefficient("length", FEATURES, family)
        one, other = (stratal.plan(entry, 60, estimand=asked).draw(seed=2) for entry in (table, arrays))
        assert sorted(one.ids.tolist()) == sorted(other.ids.tolist())


def test_several_coefficients_are_planned_for_together(population, units):
    asked = ["coefficient:length,features=length+age", "coefficient:age,features=length+age"]
    plan = stratal.plan(population, 150, estimand=asked)
    sample = plan.draw(seed=4)
    table: Any = stratal.estimate(sample, units["y"][sample.ids])

    assert [part.estimand for part in plan.parts] == asked
    assert [row["estimand"] for row in table.rows()] == asked
    assert as_estimand(asked).reads_population


def test_simulate_shows_what_a_plan_for_it_would_have_saved(population, units):
    table = stratal.simulate(
        population, units["y"], designs=["simple-random", "planned"], budgets=[100], replicates=20,
        estimand="coefficient:age,features=length+age",
    )  # fmt: skip
    x = np.column_stack([np.ones(4000), units["length"], units["age"]])

    assert table["truth"][0] == pytest.approx(np.linalg.lstsq(x, units["y"], rcond=None)[0][2])
    assert table["width"][1] < table["width"][0]


def test_what_a_coefficient_lacks_is_said(population):
    with pytest.raises(InputError, match="no column of numbers 'weight'"):
        stratal.plan(population, 50, estimand="coefficient:weight")
    bare = stratal.Population.from_arrays(
        features={"length": np.arange(9.0)}, groups={"g": list("abcabcabc")}
    )
    with pytest.raises(InputError, match="requires a proxy on the outcome's scale"):
        stratal.plan(bare, 5, estimand="coefficient:length")


def test_a_sample_s_file_is_enough_to_know_it():
    """In a process that has imported nothing of regressions."""
    code = (
        "from stratal.estimation.estimand import as_estimand; import sys;"
        "assert 'stratal.regression' not in sys.modules;"
        "print(as_estimand({'kind': 'coefficient', 'of': 'x', 'features': ['x', 'y']}).text)"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert output.stdout == "coefficient:x,features=x+y\n"


def test_features_that_are_listed_like_models_are_told_how_to_be_written():
    population = stratal.Population.from_arrays(
        proxy=[0.2, 0.5, 0.9], features={"length": [1.0, 2.0, 4.0], "age": [3.0, 1.0, 2.0]}
    )
    with pytest.raises(stratal.InputError, match=r"coefficient:length,features=length\+age"):
        stratal.plan(population, budget=2, estimand="coefficient:length,age")


def test_it_takes_the_options_of_a_fit_and_refuses_others(population, units):
    sample = stratal.plan(population, 200).draw(seed=1)
    y = units["y"][sample.ids]
    asked = {"estimand": Coefficient("length", FEATURES)}
    for given, same in (
        ({"estimator": "stratppi"}, {"estimator": "stratppi"}),
        ({"estimator": "horvitz-thompson"}, {"estimator": "classical"}),
        ({"estimator": "difference"}, {"lam": 1.0}),
        ({"lam": 0.5, "target": "superpopulation"}, {"lam": 0.5, "target": "superpopulation"}),
    ):
        estimate = stratal.estimate(sample, y, **asked, **given)
        fitted = stratal.regress(sample, y, features=FEATURES, **same)
        assert (estimate.value, estimate.standard_error) == (fitted.values[1], fitted.standard_errors[1])
        assert estimate.target == fitted[1].target
    for refused in ({"clip": True}, {"cross_fit": 5}, {"calibration": "isotonic"}, {"limits": (0, 1)}):
        with pytest.raises(InputError, match="takes no"):
            stratal.estimate(sample, y, **asked, **refused)


def test_a_quantile_takes_them_too(population, units):
    sample = stratal.plan(population, 200).draw(seed=1)
    y = (units["told"] + units["y"] / 10)[sample.ids]
    estimate = stratal.estimate(
        sample, y, estimand="quantile:.3", estimator="ppi++", target="superpopulation"
    )
    same = quantile(
        y,
        0.3,
        weighting=sample.weighting(),
        proxy=sample.proxies[:, 0],
        unlabelled=unlabelled_of_population(
            population, population.proxy_names[0], NumericFeatures(), sample.design.rule
        ),
        target="superpopulation",
    )
    assert estimate.value == same.value
    assert estimate.confidence_interval() == same.confidence_interval()
    assert estimate.standard_error > 0
    assert estimate.population_size == 4000
    plain = stratal.estimate(sample, y, estimand="quantile:.3", estimator="horvitz-thompson")
    assert (
        plain.confidence_interval()
        == stratal.estimate(sample, y, estimand="quantile:.3").confidence_interval()
    )
