"""Rounds that look at labels: how much bias, what coverage, how near to the allocation that knows all."""

from pathlib import Path

import numpy as np
import pytest

from stratal.adaptive import next_allocation, raw_deviations
from stratal.allocation import equal, neyman, proportional
from stratal.estimators.estimate import estimate_mean
from stratal.population import Population
from stratal.rates import smoothed_standard_deviations
from stratal.strata import stratify
from stratal.weighting import StratifiedWeighting

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
REPLICATES = 400


class Case:
    """A binary data set in ten strata."""

    def __init__(self, name):
        pq = pytest.importorskip("pyarrow.parquet")
        if not (DATA / f"{name}.parquet").exists():
            pytest.skip("real predictions are not here")
        table = pq.read_table(DATA / f"{name}.parquet", columns=["z", "proxy"])
        strata = stratify(Population.from_arrays(proxy=table["proxy"].to_numpy()), "k-means", 10)
        z = table["z"].to_numpy().astype(float)
        self.sizes, self.means, self.weights = strata.sizes, strata.proxy_means, strata.weights
        self.good = np.bincount(strata.codes, z, minlength=len(self.sizes)).astype(int)
        self.truth = z.mean()

    @property
    def deviations(self):
        rates = self.good / self.sizes
        return np.sqrt(rates * (1 - rates) * self.sizes / (self.sizes - 1))

    def variance(self, n_h):
        return float((self.weights**2 * (1 - n_h / self.sizes) * self.deviations**2 / n_h).sum())

    def labels(self, n_h, right):
        z = [np.repeat([1.0, 0.0], [k, n - k]) for n, k in zip(n_h, right, strict=True)]
        return np.concatenate(z), np.repeat(np.arange(len(n_h)), n_h)

    def two_rounds(self, rng, budget, *, deviations, pilot, allocation_of):
        """Return n_h and the labels that are 1, half the budget in the pilot."""
        n_h = (equal if pilot == "equal" else proportional)(self.sizes, budget // 2)
        right = rng.hypergeometric(self.good, self.sizes - self.good, n_h)
        if deviations == "raw":
            found = raw_deviations(*self.labels(n_h, right), len(n_h))
        else:
            found = smoothed_standard_deviations(self.sizes, n_h, right, proxy_means=self.means)
        larger = next_allocation(self.sizes, n_h, found, budget - n_h.sum(), allocation_of=allocation_of)
        bad = self.sizes - self.good - (n_h - right)
        return larger, right + rng.hypergeometric(self.good - right, bad, larger - n_h)

    def estimates(self, budget, replicates=REPLICATES, **rule):
        rng = np.random.default_rng(11)
        runs = [self.two_rounds(rng, budget, **rule) for _ in range(replicates)]
        values = np.array([self.weights @ (right / n_h) for n_h, right in runs])
        return values, runs


DEFAULT = {"deviations": "recalibrated", "pilot": "proportional", "allocation_of": "total"}
LITERAL = {"deviations": "raw", "pilot": "equal", "allocation_of": "remainder"}


@pytest.mark.parametrize("name", ["cifar10_vgg", "forest", "galaxies"])
def test_the_default_s_bias_is_harmless(name):
    case = Case(name)
    values, _ = case.estimates(100, **DEFAULT)

    bias = abs(values.mean() - case.truth) / values.std()
    assert bias < 0.25 + 3 / np.sqrt(REPLICATES)


@pytest.mark.parametrize("name", ["cifar10_vgg", "forest"])
def test_the_literal_rule_s_bias_is_not(name):
    case = Case(name)
    values, _ = case.estimates(100, **LITERAL)

    bias = abs(values.mean() - case.truth) / values.std()
    assert bias > 0.8 - 3 / np.sqrt(REPLICATES)


def test_the_default_is_near_the_allocation_that_knows_all_and_the_literal_rule_is_not():
    ratios = {"default": [], "literal": []}
    for name in ("cifar10_vgg", "birds_resnet50", "galaxies", "gsm8k_models"):
        case = Case(name)
        oracle = case.variance(neyman(case.sizes, case.deviations, 200))
        for label, rule in (("default", DEFAULT), ("literal", LITERAL)):
            _, runs = case.estimates(200, 60, **rule)
            ratios[label].append(oracle / np.mean([case.variance(n_h) for n_h, _ in runs]))

    assert np.mean(ratios["default"]) > 0.95
    assert np.mean(ratios["literal"]) < 0.9


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cifar10_vgg", "birds_resnet50", "galaxies", "forest", "gsm8k_models"])
@pytest.mark.parametrize("budget", [50, 100, 400])
def test_default_intervals_cover(name, budget):
    case, replicates = Case(name), 800
    _, runs = case.estimates(budget, replicates, **DEFAULT)
    hits = 0
    for n_h, right in runs:
        z, stratum = case.labels(n_h, right)
        estimate = estimate_mean(
            z, np.zeros((len(z), 0)), StratifiedWeighting(stratum=stratum, sizes=case.sizes), None,
            stratum=stratum, estimator="horvitz-thompson", outcome="binary",
        )  # fmt: skip
        low, high = estimate.confidence_interval()
        hits += low <= case.truth <= high

    assert hits / replicates >= 0.94 - 3 * np.sqrt(0.94 * 0.06 / replicates)
