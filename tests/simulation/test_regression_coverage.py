"""Seeded coverage of M-estimates: the scenarios of Fisch et al. (2024), and regression coefficients.

Tolerances are four standard deviations of a share of that many replicates, and for regression coefficients
(whose intervals are asymptotic) a hundredth more.
"""

import numpy as np
import pytest
from tests.tiers import cells, sized

from stratal.designs import StratifiedWeighting
from stratal.regression.losses import ArrayUnlabelled
from stratal.regression.m_estimation import linear_regression, logistic_regression, mean_vector
from stratal.regression.quantiles import quantile
from stratal.strata import neyman

LEVELS = (0.9, 0.95)
SCENARIOS = {
    "homogeneous": ((0.0, 0.0), (0.5, 0.5)),
    "different bias": ((-1.0, 1.0), (0.3, 0.3)),
    "different noise": ((0.0, 0.0), (0.1, 1.5)),
}


def tolerance(level, replicates):
    return 4 * np.sqrt(level * (1 - level) / replicates)


def papers_scenario(name, n, replicates, **options):
    """Errors and coverage (R, 1 + levels): N = 10,000 unlabelled, two strata of equal mass, Y ~ N(0, 1)."""
    bias, noise = (np.array(part) for part in SCENARIOS[name])
    random = np.random.default_rng([n, len(name)])
    stratum, whole = np.repeat([0, 1], n // 2), np.repeat([0, 1], 5_000)
    weighting = StratifiedWeighting(stratum=stratum, sizes=np.array([1, 1]), with_replacement=True)
    rows = []
    for _ in range(replicates):
        y = random.normal(size=n)
        f = y + bias[stratum] + noise[stratum] * random.normal(size=n)
        u = random.normal(size=10_000) + bias[whole] + noise[whole] * random.normal(size=10_000)
        units = ArrayUnlabelled(proxy=u, stratum=whole, separate=True)
        result = mean_vector(
            y, proxy=f, unlabelled=units, weighting=weighting, target="superpopulation", **options
        )
        rows.append([result.values[0], *covered(result, np.zeros(1))])
    return np.array(rows)


def covered(result, truth):
    inside = []
    for level in LEVELS:
        low, high = result.confidence_interval(level)
        inside.append(float(np.mean((low <= truth) & (truth <= high))))
    return inside


def assert_covers(shares, replicates, slack=0.0):
    for level, share in zip(LEVELS, shares, strict=True):
        assert share >= level - slack - tolerance(level, replicates)
        assert share <= level + 0.01 + tolerance(level, replicates)


@pytest.mark.parametrize("estimator", ["ppi++", "stratppi"])
@pytest.mark.parametrize("name", list(SCENARIOS))
def test_means_cover_in_the_paper_s_scenarios(name, estimator):
    replicates = sized(60, 250)
    rows = papers_scenario(name, 100, replicates, estimator=estimator)

    assert_covers(rows[:, 1:].mean(axis=0), replicates)


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 200, 500, 1_000])
@pytest.mark.parametrize("estimator", ["classical", "ppi++", "stratppi"])
@pytest.mark.parametrize("name", list(SCENARIOS))
def test_means_cover_in_the_paper_s_scenarios_at_length(name, estimator, n):
    rows = papers_scenario(name, n, 2_000, estimator=estimator)

    assert_covers(rows[:, 1:].mean(axis=0), 2_000)


@pytest.mark.slow
def test_λ_per_stratum_pays_where_noise_differs_and_costs_nothing_where_it_does_not():
    errors = {
        (name, estimator): np.std(papers_scenario(name, 100, 1_000, estimator=estimator)[:, 0])
        for name in ("homogeneous", "different noise")
        for estimator in ("ppi++", "stratppi")
    }

    assert errors["different noise", "stratppi"] < 0.9 * errors["different noise", "ppi++"]
    assert errors["homogeneous", "stratppi"] < 1.01 * errors["homogeneous", "ppi++"]


def regression_population(kind, size=4_000):
    random = np.random.default_rng(12)
    x = np.column_stack([np.ones(size), random.normal(size=size), random.exponential(size=size) - 1])
    eta = x @ [0.3, 0.6, -0.4] + 0.3 * np.sin(3 * x[:, 1])
    if kind == "linear":
        y = eta + (0.5 + np.abs(x[:, 1])) * random.normal(size=size)
        f = 0.2 + 0.8 * y + 0.6 * random.normal(size=size)
    else:
        y = (random.uniform(size=size) < 1 / (1 + np.exp(-eta))).astype(float)
        f = 0.1 + 0.8 * np.where(random.uniform(size=size) < 0.85, y, 1 - y)
    stratum = np.searchsorted(np.quantile(x[:, 1], [0.25, 0.6, 0.85]), x[:, 1])
    order = np.argsort(stratum, kind="stable")
    return x[order], y[order], f[order], stratum[order]


def coefficient_coverage(kind, estimator, n, replicates):
    """Coverage of the population's own coefficients, four strata, equal allocation, without replacement."""
    x, y, f, stratum = regression_population(kind)
    model = linear_regression if kind == "linear" else logistic_regression
    sizes = np.bincount(stratum)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    truth = model(x, y, weighting=StratifiedWeighting(stratum=stratum, sizes=sizes)).values
    units = ArrayUnlabelled(features=x, proxy=f, stratum=stratum)
    weighting = StratifiedWeighting(stratum=np.repeat(np.arange(4), n // 4), sizes=sizes)
    random = np.random.default_rng([n, 5])
    shares = []
    for _ in range(replicates):
        rows = np.concatenate(
            [start + random.permutation(size)[: n // 4] for start, size in zip(starts, sizes, strict=True)]
        )
        result = model(
            x[rows], y[rows], proxy=f[rows], unlabelled=units, weighting=weighting, estimator=estimator
        )
        shares.append(covered(result, truth))
    return np.mean(shares, axis=0)


@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_coefficients_cover_under_a_stratified_design(kind):
    replicates = sized(60, 200)
    assert_covers(coefficient_coverage(kind, "ppi++", 120, replicates), replicates, slack=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("n", [80, 200, 600])
@pytest.mark.parametrize("estimator", ["classical", "ppi++", "stratppi"])
@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_coefficients_cover_under_a_stratified_design_at_length(kind, estimator, n):
    assert_covers(coefficient_coverage(kind, estimator, n, 1_000), 1_000, slack=0.01)


@pytest.mark.parametrize("q", cells([0.5, 0.9], fast=(0.9,)))
def test_quantiles_cover(q):
    random = np.random.default_rng(9)
    y = random.gamma(2.0, size=3_000)
    f = 0.8 * y + 0.4 * random.normal(size=3_000)
    stratum = (f > np.median(f)).astype(np.int64)
    truth = np.sort(y)[int(np.ceil(q * 3_000)) - 1]
    units = ArrayUnlabelled(proxy=f, stratum=stratum)
    sizes = np.bincount(stratum)
    weighting = StratifiedWeighting(stratum=np.repeat([0, 1], 50), sizes=sizes)
    pools = [np.flatnonzero(stratum == h) for h in range(2)]
    shares = []
    for _ in range(120):
        rows = np.concatenate([random.permutation(pool)[:50] for pool in pools])
        result = quantile(y[rows], q, proxy=f[rows], unlabelled=units, weighting=weighting)
        shares.append(covered(result, truth))

    for level, share in zip(LEVELS, np.mean(shares, axis=0), strict=True):
        assert share >= level - 0.01 - tolerance(level, 120)


def gaps(seed):
    """Variance of PPI++ less that of StratPPI at one given λ, natural rates, by closed form."""
    random = np.random.default_rng(seed)
    stratum = np.repeat([0, 1, 2], [3_000, 5_000, 2_000])
    y = random.normal(size=10_000) + random.normal(size=3)[stratum]
    f = random.normal() * y + random.normal(size=3)[stratum] + random.normal(size=10_000)
    weighting = {
        "strata": StratifiedWeighting(stratum=stratum, sizes=np.bincount(stratum), with_replacement=True),
        "none": StratifiedWeighting(
            stratum=np.zeros(10_000, int), sizes=np.array([10_000]), with_replacement=True
        ),
    }
    units = {
        "strata": ArrayUnlabelled(proxy=f, stratum=stratum, separate=True),
        "none": ArrayUnlabelled(proxy=f, separate=True),
    }
    variances = {}
    for name in ("strata", "none"):
        result = mean_vector(
            y,
            proxy=f,
            weighting=weighting[name],
            unlabelled=units[name],
            lam=random.uniform(-1, 1) if name == "strata" else variances["λ"],
            target="superpopulation",
        )
        variances["λ"] = float(result.lam[0])
        variances[name] = float(result.covariance[0, 0])
    return variances["none"] - variances["strata"], stratum, y, f, variances["λ"]


@pytest.mark.parametrize("seed", range(sized(3, 20)))
def test_proposition_1_in_closed_form(seed):
    """The gain is the variance between strata of E[Y - λf] and λE[f], which is never negative."""
    gap, stratum, y, f, λ = gaps(seed)
    shares = np.bincount(stratum) / len(y)

    def between(values):
        means = np.bincount(stratum, values) / np.bincount(stratum)
        return shares @ (means - shares @ means) ** 2

    expected = (between(y - λ * f) + λ**2 * between(f)) / len(y)
    assert gap == pytest.approx(expected, rel=0.01, abs=2e-7)
    assert gap > -1e-7


def test_proposition_1_by_simulation():
    """The same λ, natural rates: a stratified sample's error is smaller where the strata's means differ."""
    random = np.random.default_rng(4)
    shifts, n, replicates = np.array([-1.0, 1.0]), 60, 400
    squared = {"strata": 0.0, "none": 0.0}
    for _ in range(replicates):
        whole = np.repeat([0, 1], 500)
        u = random.normal(size=1_000) + shifts[whole] + random.normal(size=1_000)
        for name in squared:
            stratum = np.repeat([0, 1], n // 2) if name == "strata" else random.integers(0, 2, n)
            y = random.normal(size=n) + shifts[stratum]
            f = y + random.normal(size=n)
            keep = stratum if name == "strata" else np.zeros(n, int)
            weighting = StratifiedWeighting(
                stratum=keep, sizes=np.array([1, 1] if name == "strata" else [1]), with_replacement=True
            )
            units = ArrayUnlabelled(proxy=u, stratum=whole if name == "strata" else None, separate=True)
            result = mean_vector(
                y, proxy=f, weighting=weighting, unlabelled=units, lam=0.3, target="superpopulation"
            )
            squared[name] += result.values[0] ** 2 / replicates

    assert squared["strata"] < 0.8 * squared["none"]


def test_the_optimal_split_beats_the_proportional_one():
    """Eq. 18: less variance at the same budget where one stratum is noisy."""
    bias, noise = (np.array(part) for part in SCENARIOS["different noise"])
    λ = 1 / (1 + noise**2)
    spreads = np.sqrt((1 - λ) ** 2 + (λ * noise) ** 2)
    split = neyman(np.array([5_000, 5_000]), spreads, 200)
    random = np.random.default_rng(3)
    errors = {"optimal": [], "proportional": []}
    whole = np.repeat([0, 1], 5_000)
    for _ in range(400):
        u = random.normal(size=10_000) + noise[whole] * random.normal(size=10_000)
        units = ArrayUnlabelled(proxy=u, stratum=whole, separate=True)
        for name, counts in (("optimal", split), ("proportional", [100, 100])):
            stratum = np.repeat([0, 1], counts)
            y = random.normal(size=200)
            f = y + bias[stratum] + noise[stratum] * random.normal(size=200)
            weighting = StratifiedWeighting(stratum=stratum, sizes=np.array([1, 1]), with_replacement=True)
            result = mean_vector(
                y, proxy=f, weighting=weighting, unlabelled=units, lam=λ, target="superpopulation"
            )
            errors[name].append(result.values[0])

    assert np.var(errors["optimal"]) < 0.9 * np.var(errors["proportional"])
