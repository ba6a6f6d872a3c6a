"""Simulated figures against closed forms; tolerances from the number of replicates."""

import numpy as np
import pytest
from tests.tiers import sized

import stratal
from papers import formulas
from stratal.simulation.draws import Truth

REPLICATES = sized(4000, 8000)
DESIGNS = [
    "simple-random",
    "k-means:6:proportional",
    "k-means:6:equal",
    "k-means:6:oracle",
    "equal-size:4:robust",
]


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(5)
    proxy = rng.beta(3, 1, 3000)
    z = (rng.random(3000) < proxy**1.3).astype(float)
    return stratal.Population.from_arrays(proxy=proxy), z


@pytest.mark.parametrize("estimators", [["horvitz-thompson"], ["horvitz-thompson", "difference"]])
@pytest.mark.parametrize("with_replacement", [False, True])
def test_mean_squared_error_is_the_closed_form(case, estimators, with_replacement):
    table = stratal.simulate(
        *case, designs=DESIGNS, estimators=estimators, budgets=[60, 300], replicates=REPLICATES,
        seed=1, with_replacement=with_replacement, intervals=[],
    )  # fmt: skip
    errors = (table["mse"] - table["closed_form_mse"]) / table["mse_se"]
    biases = table["bias"] / table["bias_se"]

    assert np.all(np.abs(errors) < 4)
    assert np.all(np.abs(biases) < 4)
    assert np.abs(errors).max() > 0


def test_estimated_variances_are_unbiased(case):
    table = stratal.simulate(*case, designs=DESIGNS, budgets=[60], replicates=REPLICATES, intervals=[])
    expected = table["closed_form_mse"]
    error = table["estimated_variance"] * table["mvr_se"] / table["mvr"]

    assert np.all(np.abs(table["estimated_variance"] - expected) < 4 * error + 1e-12)


def test_fogliato_equations_beside_the_simulated(case):
    population, z = case
    strata = stratal.strata.stratify(population, "equal-size", 4)
    truth = Truth.of(z, None, strata.codes, 4)
    table = stratal.simulate(
        population, z, designs=["simple-random", "equal-size:4:proportional", "equal-size:4:oracle"],
        budgets=[300], replicates=REPLICATES, intervals=[],
    )  # fmt: skip
    printed = [
        formulas.simple_random(truth.population_variance, 300, 3000),
        formulas.proportional(truth.sizes, truth.variances, 300),
        formulas.neyman(truth.sizes, truth.variances, 300),
    ]

    assert np.all(np.abs(table["mse"] - printed) < 4 * table["mse_se"] + 1e-3 * np.array(printed))


def test_default_interval_covers(case):
    table = stratal.simulate(
        *case, designs=["simple-random", "k-means:6:robust", "k-means:6:two-round"], budgets=[60, 300],
        replicates=REPLICATES,
    )  # fmt: skip

    assert np.all(table["coverage"] > 0.94 - 3 * table["coverage_se"])


def test_fitting_lam_pays_as_the_closed_form_says(case):
    population, z = case
    table = stratal.simulate(
        population, z, designs=["simple-random"], estimators=["ppi++"], budgets=[600], replicates=REPLICATES,
        intervals=[],
    )  # fmt: skip
    proxy = np.concatenate([part["proxy"] for part in population.batches(("proxy",))])
    correlation = np.corrcoef(z, proxy)[0, 1]

    assert table["relative_efficiency"][0] == pytest.approx(1 / (1 - correlation**2), rel=0.06)


def test_second_round_beats_one_round_with_an_overconfident_proxy():
    rng = np.random.default_rng(8)
    margin = rng.normal(2.0, 1.2, 6000)
    z = (rng.random(6000) < 1 / (1 + np.exp(-margin))).astype(float)
    population = stratal.Population.from_arrays(proxy=1 / (1 + np.exp(-4 * margin)))
    table = stratal.simulate(
        population, z, designs=["k-means:8:neyman", "k-means:8:proportional", "k-means:8:two-round"],
        budgets=[300], replicates=4000, intervals=[],
    )  # fmt: skip
    plug_in, even, two = table["relative_efficiency"]

    assert plug_in < even < two
