"""Published allocations, and the row of the design on real predictions."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.reference.real_optimum import real_optimum

from stratal import strata as allocation

SHARED = Path(__file__).resolve().parents[3] / "shared"
VECTORS = SHARED / "vectors" / "allocation.json"
BINARY_SETS = [
    "cifar10_vgg",
    "birds_resnet50",
    "galaxies",
    "forest",
    "nq301_llmjudge",
    "gsm8k_models",
    "imagenet_golden_crowd",
]
BUDGETS = (50, 100, 200, 400)

needs_vectors = pytest.mark.skipif(not VECTORS.exists(), reason="published numbers are not here")


def vectors():
    return json.loads(VECTORS.read_text()) if VECTORS.exists() else []


def arguments(vector):
    given = vector["input"]
    return given["N_h"], given["S_h"], given["budget"], given["lower"], given.get("upper")


@needs_vectors
def test_there_are_four_vectors():
    assert len(vectors()) == 4


@pytest.mark.parametrize("vector", vectors(), ids=lambda vector: vector["source"])
def test_integers(vector):
    assert allocation.neyman(*arguments(vector)).tolist() == vector["expected"]["integer"]


@pytest.mark.parametrize(
    "vector", [each for each in vectors() if "real" in each["expected"]], ids=lambda vector: vector["source"]
)
def test_real_numbers(vector):
    found = real_optimum(*arguments(vector))

    assert found == pytest.approx(vector["expected"]["real"], abs=vector["tolerance"]["real"])


@needs_vectors
def test_variance_of_the_total():
    vector = vectors()[0]
    sizes, deviations = (np.array(vector["input"][name], dtype=float) for name in ("N_h", "S_h"))

    def variance(n_h):
        return float((sizes**2 * (1 - n_h / sizes) * deviations**2 / n_h).sum())

    expected, tolerance = vector["expected"], vector["tolerance"]["variance"]
    whole, real = allocation.neyman(*arguments(vector)), real_optimum(*arguments(vector))
    assert variance(whole) == pytest.approx(expected["variance_of_total_integer"], abs=tolerance)
    assert variance(real) == pytest.approx(expected["variance_of_total_real"], abs=tolerance)


def real_case(name):
    pq = pytest.importorskip("pyarrow.parquet")
    path = SHARED / "data" / f"{name}.parquet"
    if not path.exists():
        pytest.skip("real predictions are not here")
    from stratal.population import Population
    from stratal.strata import stratify

    table = pq.read_table(path, columns=["z", "proxy"])
    z = table["z"].to_numpy().astype(float)
    strata = stratify(Population.from_arrays(proxy=table["proxy"].to_numpy()), "k-means", 10)
    rates = np.bincount(strata.codes, z, minlength=strata.n_strata) / strata.sizes
    return strata, np.sqrt(rates * (1 - rates) * strata.sizes / np.maximum(strata.sizes - 1, 1))


def variance_of_mean(strata, deviations, n_h):
    return float((strata.weights**2 * (1 - n_h / strata.sizes) * deviations**2 / n_h).sum())


def robust_variance(strata, deviations, budget):
    return variance_of_mean(strata, deviations, allocation.allocate(strata, budget).n_h)


@pytest.mark.parametrize("name", BINARY_SETS)
def test_the_default_is_never_worse_than_proportional(name):
    strata, deviations = real_case(name)
    for budget in range(50, 401, 7):
        proportional = variance_of_mean(strata, deviations, allocation.proportional(strata.sizes, budget))

        assert robust_variance(strata, deviations, budget) <= proportional / 0.97


def test_the_default_is_near_oracle_neyman():
    efficiencies = []
    for name in BINARY_SETS:
        strata, deviations = real_case(name)
        for budget in BUDGETS:
            oracle = variance_of_mean(strata, deviations, allocation.neyman(strata.sizes, deviations, budget))
            efficiencies.append(oracle / robust_variance(strata, deviations, budget))

    assert np.mean(efficiencies) >= 0.92
