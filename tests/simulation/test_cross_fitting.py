"""Cross-fitting over many draws: no bias, an honest standard error, coverage, and what calibration gains."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.tiers import cells, sized

import stratal

DRAWS = sized(60, 400)
ERRORS = 4.0
"""Monte Carlo standard errors that a mean may be off."""

CASES = {
    "λ": {"estimator": "ppi++", "cross_fit": 5},
    "λ in two folds": {"estimator": "ppi++", "cross_fit": 2},
    "isotonic": {"calibration": "isotonic"},
    "logistic": {"calibration": "logistic"},
}


def world(size=2000):
    """A judge that is far too sure of itself, and far too strict."""
    rng = np.random.default_rng(11)
    logit = rng.normal(0.5, 1.5, size)
    z = (rng.random(size) < 1 / (1 + np.exp(-logit))).astype(float)
    return stratal.Population.from_arrays(proxy=1 / (1 + np.exp(4 - 4 * logit))), z


def repeat(population, z, design, replicates, **options):
    """Return errors, variance estimates and whether the truth was covered (replicates,)."""
    rows = []
    for seed in range(replicates):
        sample = design.draw(population, seed)
        found = stratal.estimate(sample, z[sample.ids], **options)
        low, high = found.confidence_interval()
        rows.append((found.value - z.mean(), found.standard_error**2, low <= z.mean() <= high))
    errors, variances, hits = np.array(rows).T
    return errors, variances, hits


def check(errors, variances, hits, nominal=0.94):
    count = len(errors)
    assert abs(errors.mean()) < ERRORS * errors.std() / np.sqrt(count)
    # The relative error of a variance estimate from `count` draws is about √(2 / count).
    assert variances.mean() / errors.var() == pytest.approx(1, abs=ERRORS * np.sqrt(2 / count))
    assert hits.mean() >= nominal - ERRORS * np.sqrt(0.05 * 0.95 / count)


@pytest.mark.parametrize("name", cells(CASES, fast=("λ", "isotonic")))
def test_simple_random(name):
    population, z = world()
    check(*repeat(population, z, stratal.designs.SimpleRandom(budget=80), DRAWS, **CASES[name]))


@pytest.mark.parametrize(
    "options",
    [{"estimator": "stratppi", "cross_fit": 5}, {"calibration": "logistic", "cross_fit": 4}],
    ids=["stratppi", "logistic"],
)
def test_stratified(options):
    population, z = world()
    strata = stratal.strata.stratify(population, "k-means", 4)
    design = stratal.designs.Stratified(strata=strata, allocation=stratal.strata.allocate(strata, 80))
    check(*repeat(population, z, design, DRAWS, **options))


def test_poisson():
    population, z = world()
    errors, variances, hits = repeat(
        population, z, stratal.designs.Poisson(budget=100), DRAWS, estimator="ppi++", cross_fit=5
    )
    check(errors, variances, hits)


def test_calibration_is_worth_labels_where_the_proxy_is_off():
    population, z = world()
    design = stratal.designs.SimpleRandom(budget=80)
    plain = repeat(population, z, design, DRAWS, estimator="difference")[0]
    calibrated = repeat(population, z, design, DRAWS, calibration="logistic")[0]

    assert np.mean(calibrated**2) < 0.85 * np.mean(plain**2)


@pytest.mark.slow
@pytest.mark.parametrize("size", [100, 400])
@pytest.mark.parametrize("data", ["gsm8k_models", "cifar10_vgg"])
@pytest.mark.parametrize("name", CASES)
def test_real_predictions(shared, data, size, name):
    table = pq.read_table(shared / "data" / f"{data}.parquet", columns=["proxy", "z"])
    population = stratal.Population.from_arrays(proxy=np.asarray(table["proxy"], float))
    z = np.asarray(table["z"], float)
    check(*repeat(population, z, stratal.designs.SimpleRandom(budget=size), 1000, **CASES[name]))
