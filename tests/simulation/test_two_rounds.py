"""Half the budget as a pilot, the rest by Neyman on smoothed deviations: efficiency on real predictions."""

from pathlib import Path

import numpy as np
import pytest
from tests.tiers import cells

import stratal
from stratal.strata import neyman, proportional
from stratal.strata.standard_deviations import smoothed_standard_deviations

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
BINARY_SETS = [
    "cifar10_vgg",
    "birds_resnet50",
    "galaxies",
    "forest",
    "nq301_llmjudge",
    "gsm8k_models",
    "imagenet_golden_crowd",
]
REPLICATES = 40


def efficiencies(name, budget):
    """Return Var(oracle Neyman) / Var(two rounds) for each pilot drawn."""
    pq = pytest.importorskip("pyarrow.parquet")
    path = DATA / f"{name}.parquet"
    if not path.exists():
        pytest.skip("real predictions are not here")
    from stratal.population import Population
    from stratal.strata import stratify

    table = pq.read_table(path, columns=["z", "proxy"])
    strata = stratify(Population.from_arrays(proxy=table["proxy"].to_numpy()), "k-means", 10)
    sizes = strata.sizes
    good = np.bincount(strata.codes, table["z"].to_numpy().astype(float), minlength=len(sizes)).astype(int)
    rates = good / sizes
    variances = rates * (1 - rates) * sizes / np.maximum(sizes - 1, 1)

    def variance(n_h):
        return float((strata.weights**2 * (1 - n_h / sizes) * variances / n_h).sum())

    rng = np.random.default_rng(7)
    pilot, oracle = proportional(sizes, budget // 2), variance(neyman(sizes, np.sqrt(variances), budget))
    found = []
    for _ in range(REPLICATES):
        right = rng.hypergeometric(good, sizes - good, pilot)
        deviations = smoothed_standard_deviations(strata, pilot, right)
        found.append(oracle / variance(neyman(sizes, deviations, budget, minimum=pilot)))
    return np.array(found)


def test_two_rounds_are_near_oracle_neyman():
    cells = [efficiencies(name, budget) for name in BINARY_SETS for budget in (50, 100, 200, 400)]
    mean = np.mean([cell.mean() for cell in cells])
    standard_error = np.sqrt(np.mean([cell.var(ddof=1) for cell in cells]) / REPLICATES / len(cells))

    assert mean >= 0.95 + 2 * standard_error


def unbounded_outcomes():
    random = np.random.default_rng(20_261_122)
    size = 20_000
    rare = random.random(size) < 0.08
    return {
        "counts, 8 % not zero": np.where(rare, 1.0 + random.poisson(3.0, size), 0.0),
        "lognormal": random.lognormal(0.0, 1.0, size),
        "outliers": random.normal(size=size) + 50.0 * (random.random(size) < 0.01),
    }


@pytest.mark.parametrize("name", cells(list(unbounded_outcomes()), fast=["lognormal"]))
def test_two_rounds_on_unbounded_outcomes_are_not_worse_than_one(name):
    """Of a proxy that says nothing there is nothing to gain; believing the labels lost 1.6 times."""
    z = unbounded_outcomes()[name]
    proxy = np.random.default_rng(1).normal(size=len(z))
    units = stratal.Population.from_arrays(proxy=proxy, bounds=None, scaled=False)
    rounds = ("proportional", "two-round")
    table = stratal.simulate(
        units,
        z,
        designs=[f"k-means:10:{allocation}" for allocation in rounds],
        estimators=("horvitz-thompson",),
        intervals=(),
        budgets=(400,),
        replicates=2000,
        seed=20_261_122,
    )
    one, two = (row["mse"] for row in table.rows())

    # A ratio of two mean squares of 2,000 nearly normal errors has a standard error of 4.5 % at most.
    assert two / one <= 1.05 + 2 * 0.045
