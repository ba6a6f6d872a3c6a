"""Bias and coverage of `estimate` as it comes, under designs other than simple random and stratified."""

import numpy as np
import pytest
from tests.tiers import sized

import stratal

SIZE = 3000


def population(seed=0, clusters=300):
    """A judge that is overconfident, and documents whose items resemble each other."""
    rng = np.random.default_rng(seed)
    document = np.sort(rng.integers(0, clusters, SIZE))
    logit = 2.0 + 1.2 * rng.normal(size=SIZE) + 1.0 * rng.normal(size=clusters)[document]
    truth = 1 / (1 + np.exp(-logit))
    judge = 1 / (1 + np.exp(-1.7 * logit))
    z = (rng.random(SIZE) < truth).astype(float)
    units = stratal.Population.from_arrays(
        proxy=judge, groups={"document": document.astype(str)}, features={"size": rng.lognormal(0, 0.7, SIZE)}
    )
    return units, z


def repeat(design, replicates, **options):
    units, z = population()
    rows = []
    for seed in range(1000, 1000 + replicates):
        sample = design.draw(units, seed)
        found = stratal.estimate(sample, z[sample.ids], **options)
        low, high = found.confidence_interval()
        rows.append((found.value, found.standard_error**2, low <= z.mean() <= high))
    values, variances, hits = np.array(rows).T
    return values - z.mean(), variances, hits


DESIGNS = [
    stratal.designs.Poisson(budget=100, size="size"),
    stratal.designs.Poisson(budget=100, size="sqrt-variance"),
    stratal.designs.ProportionalToSize(budget=100),
    stratal.designs.ProportionalToSize(budget=40, size="size"),
    stratal.designs.Systematic(budget=100),
    stratal.designs.ClusterSample(cluster="document", n_clusters=8),
    stratal.designs.ClusterSample(cluster="document", n_clusters=40),
]


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS, ids=repr)
def test_intervals_cover(design):
    replicates = 800
    errors, variances, hits = repeat(design, replicates)

    assert hits.mean() >= 0.94 - 3 * np.sqrt(0.94 * 0.06 / replicates)
    assert abs(errors.mean()) < 0.1 * errors.std() + 4 * errors.std() / np.sqrt(replicates)
    # A systematic sample is one of N/n = 30, so that this population's own error is a matter of luck.
    tolerance = 0.6 if design.kind == "systematic" else 0.25
    assert variances.mean() == pytest.approx(np.mean(errors**2), rel=tolerance)


@pytest.mark.parametrize("estimator", ["horvitz-thompson", "difference"])
def test_plain_estimators_are_unbiased_with_unbiased_variances(estimator):
    replicates = sized(200, 400)
    design = stratal.designs.Poisson(budget=60, size="size")
    errors, variances, _ = repeat(design, replicates, estimator=estimator, outcome="unbounded")

    assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(replicates)
    noise = np.sqrt(2 / replicates) + variances.std() / variances.mean() / np.sqrt(replicates)
    assert variances.mean() == pytest.approx(np.mean(errors**2), rel=4 * noise)


def test_an_intercept_keeps_a_shifted_proxy_useful():
    """Without it, a proxy that is 0.3 too low everywhere loses what it knows under Poisson sampling."""
    units, z = population()
    judge = next(iter(units.batches(("proxy",))))["proxy"]
    low = stratal.Population.from_arrays(
        proxy=judge - 0.9, bounds=(-1.0, 1.0), features={"size": np.ones(SIZE)}
    )
    errors = {"ppi++": [], "difference": []}
    for seed in range(200):
        sample = stratal.designs.Poisson(budget=100, size="size").draw(low, seed)
        for name, found in errors.items():
            value = stratal.estimate(sample, z[sample.ids], estimator=name, bounds=(0, 1)).value
            found.append(value - z.mean())

    assert np.std(errors["ppi++"]) < 0.6 * np.std(errors["difference"])


@pytest.mark.parametrize(
    "design",
    [
        stratal.designs.Poisson(budget=60, size="size"),
        stratal.designs.ClusterSample(cluster="document", n_clusters=35),
    ],
)
def test_a_fitted_lam_does_not_care_where_zero_lies(design):
    units, z = population()
    sample = design.draw(units, 3)

    one = stratal.estimate(sample, z[sample.ids], estimator="ppi++", outcome="unbounded")
    moved = stratal.estimate(sample, z[sample.ids] + 100, estimator="ppi++", outcome="unbounded")

    assert moved.value == pytest.approx(one.value + 100)
    assert moved.standard_error == pytest.approx(one.standard_error, rel=1e-6)
