"""Every formula of the three papers, written out in their notation, equals ours to 1e-9 on random inputs."""

import ast
from pathlib import Path

import numpy as np
import pytest
from tests.reference import literal_fogliato as F  # noqa: N812
from tests.reference import literal_kumar_raj as K  # noqa: N812
from tests.reference import literal_stratppi as S  # noqa: N812
from tests.unit.estimation.test_separate import separate

import stratal
from papers import formulas
from stratal.designs import StratifiedWeighting
from stratal.estimation.lam import LabelledProxies
from stratal.estimation.outcome_means import EstimateOptions, linearised_mean, separate_mean
from stratal.population.summary import StratumSummary
from stratal.regression.losses import ArrayUnlabelled
from stratal.regression.m_estimation import linear_regression
from stratal.simulation.draws import Truth

HERE = Path(__file__).parent
SEEDS = range(5)


def close(value):
    return pytest.approx(value, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", ["fogliato", "kumar_raj", "stratppi"])
def test_the_literal_formulas_are_short_and_know_nothing_of_ours(name):
    text = (HERE / f"literal_{name}.py").read_text(encoding="utf-8")
    imported = {
        alias.name.split(".")[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in (node.names if isinstance(node, ast.Import) else [ast.alias(node.module)])
    }

    assert imported <= {"numpy", "itertools"}
    assert len(text.splitlines()) < 100


@pytest.fixture(params=SEEDS)
def world(request):
    """A population in three strata, and a stratified sample of it."""
    rng = np.random.default_rng(request.param)
    h = rng.integers(0, 3, 120)
    proxy = np.clip(0.2 + 0.25 * h + 0.2 * rng.normal(size=120), 0.01, 0.99)
    Z = (rng.random(120) < proxy).astype(float)
    chosen = np.concatenate([rng.choice(np.flatnonzero(h == k), 8 + k, replace=False) for k in range(3)])
    return Z, proxy, h, chosen


def weighting_of(h, chosen):
    return StratifiedWeighting(stratum=h[chosen], sizes=np.bincount(h))


def moments_of(proxy, h, chosen):
    sizes = np.bincount(h)
    means = np.bincount(h, proxy) / sizes
    squares = np.bincount(h, (proxy - means[h]) ** 2) / (sizes - 1)
    return LabelledProxies(
        values=proxy[chosen, None],
        stratum=h[chosen],
        summary=StratumSummary(
            sizes=sizes, proxy_means=means[:, None], proxy_covariances=squares[:, None, None]
        ),
    )


def test_fogliato_mean_squared_errors(world):
    Z, proxy, h, _ = world
    truth, residual = Truth.of(Z, proxy, h, 3), Truth.of(Z - proxy, None, h, 3)

    assert formulas.simple_random(truth.population_variance, 30, 120) == close(F.mse_srs_ht(Z, 30))
    assert formulas.proportional(truth.sizes, truth.variances, 30) == close(F.mse_ssrs_p_ht(Z, h, 30))
    assert formulas.neyman(truth.sizes, truth.variances, 30) == close(F.mse_ssrs_n_ht(Z, h, 30))
    exact = formulas.simple_random(residual.population_variance, 30, 120)
    assert exact * 119 / 120 == close(F.mse_srs_df(Z, proxy, 30))
    assert formulas.difference(Z, proxy, 30) == close(exact * 119 / 120)


@pytest.mark.parametrize("lam", [0.0, 1.0])
def test_fogliato_estimates_and_their_variance(world, lam):
    Z, proxy, h, chosen = world
    sizes = np.bincount(h)
    pi = (np.bincount(h[chosen]) / sizes)[h[chosen]]
    found = linearised_mean(
        Z[chosen], moments_of(proxy, h, chosen), weighting=weighting_of(h, chosen), lam=lam
    )
    expected = F.theta_df(Z[chosen], proxy[chosen], pi, proxy) if lam else F.theta_ht(Z[chosen], pi, 120)

    assert found.value == close(expected)
    assert found.variance == close(F.var_ssrs(Z[chosen] - lam * proxy[chosen], h[chosen], sizes))


def test_fogliato_simple_random_sample_through_the_public_door(world):
    Z, proxy, _, _ = world
    population = stratal.Population.from_arrays(proxy=proxy)
    sample = stratal.designs.SimpleRandom(budget=25).draw(population, seed=3)
    found = stratal.estimate(sample, Z[sample.ids], estimator="horvitz-thompson")

    assert found.value == close(F.theta_ht(Z[sample.ids], np.full(25, 25 / 120), 120))
    assert found.standard_error**2 == close(F.var_srs_ht(Z[sample.ids], 120))


def test_fogliato_neyman_before_it_is_rounded(world):
    Z, proxy, h, _ = world
    truth = Truth.of(Z, None, h, 3)
    whole = stratal.strata.neyman(truth.sizes, np.sqrt(truth.variances), 30, minimum=1)
    population = stratal.Population.from_arrays(proxy=proxy, groups={"h": h.astype(str)})
    strata = stratal.strata.stratify(population, "category", by="h")
    order = np.argsort([int(name.rsplit("=")[-1]) for name in strata.names])

    assert np.abs(whole - F.neyman(Z, h, 30)).max() < 1
    assert np.sqrt(strata.proxy_means * (1 - strata.proxy_means))[order] == close(F.plug_in(proxy, h))


@pytest.mark.parametrize("seed", SEEDS)
def test_fogliato_proposition_2_strata(seed):
    proxy = np.random.default_rng(seed).random(14)
    strata = stratal.strata.stratify(stratal.Population.from_arrays(proxy=proxy), "k-means", 4)

    assert F.kmeans_cost(proxy, strata.codes) == close(F.best_kmeans(proxy, 4))


@pytest.mark.parametrize("seed", SEEDS)
def test_kumar_raj_variances(seed):
    rng = np.random.default_rng(seed)
    N_k = rng.integers(20, 60, 4)
    A_k = rng.integers(1, N_k) / N_k
    right = np.rint(A_k * N_k).astype(int)
    a = np.concatenate([np.repeat([1.0, 0.0], [r, N - r]) for r, N in zip(right, N_k, strict=True)])
    truth = Truth.of(a, None, np.repeat(np.arange(4), N_k), 4)
    n_k = np.array([5, 7, 9, 11])
    drawn = formulas.stratified(truth.sizes, truth.variances * N_k / (N_k - 1), n_k, with_replacement=True)
    neyman = K.n_opt(A_k, N_k, 32)
    plain = {"correction": False}

    assert truth.variances == close(K.S2(A_k, N_k))
    assert truth.population_variance / 32 == close(K.V_random(truth.value, N_k.sum(), 32))
    assert drawn == close(K.V_stratified(A_k, N_k, n_k))
    assert formulas.proportional(N_k, truth.variances, 32, **plain) == close(K.V_pro(A_k, N_k, 32))
    assert formulas.neyman(N_k, truth.variances, 32, **plain) == close(K.V_opt(A_k, N_k, 32))
    assert formulas.neyman_counts(N_k, truth.variances, 32) == close(neyman)
    assert K.V_stratified(A_k, N_k, neyman) == close(K.V_opt(A_k, N_k, 32))
    assert K.V_stratified(A_k, N_k, np.full(4, 8)) == close(K.V_equ(A_k, N_k, 32))
    assert K.V_pro(A_k, N_k, 32) - K.V_opt(A_k, N_k, 32) == close(K.gain_opt(A_k, N_k, 32))


def test_kumar_raj_estimates(world):
    Z, proxy, h, chosen = world
    big = np.bincount(h) * 10**12
    found = linearised_mean(
        Z[chosen],
        moments_of(proxy, h, chosen),
        weighting=StratifiedWeighting(stratum=h[chosen], sizes=big),
        lam=0.0,
    )

    assert found.value == close(K.A_stratified(Z[chosen], h[chosen], np.bincount(h)))
    assert found.variance == close(K.V_hat(Z[chosen], h[chosen], np.bincount(h)))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("method", "literal"), [("equal-size", K.equal_size), ("equal-width", K.equal_width)]
)
def test_kumar_raj_strata(seed, method, literal):
    z = np.random.default_rng(seed).beta(4, 2, 60)
    strata = stratal.strata.stratify(stratal.Population.from_arrays(proxy=z), method, 5)

    assert np.array_equal(strata.codes, literal(z, 5))


def test_kumar_raj_gain_of_proportional_where_strata_are_large():
    A_k, N_k = np.array([0.6, 0.9, 0.97]), np.array([10**12, 2 * 10**12, 3 * 10**12])
    A = (N_k / N_k.sum()) @ A_k

    assert K.V_random(A, N_k.sum(), 50) - K.V_pro(A_k, N_k, 50) == close(K.gain_pro(A_k, N_k, 50))


@pytest.fixture(params=SEEDS)
def apart(request):
    """Separate labelled and unlabelled samples in two strata."""
    rng = np.random.default_rng(request.param)
    k, k_tilde = np.repeat([0, 1], [20, 30]), np.repeat([0, 1], [150, 90])
    f, f_tilde = rng.random(50) + k, rng.random(240) + k_tilde
    return f + 0.3 * rng.normal(size=50), f, k, f_tilde, k_tilde, np.array([0.35, 0.65])


def lams(y, f, k, f_tilde, k_tilde):
    return np.array([S.lambda_k(y[k == j], f[k == j], f_tilde[k_tilde == j]) for j in (0, 1)])


def test_stratppi_mean_lambda_and_interval(apart):
    y, f, k, f_tilde, k_tilde, w = apart
    lam = lams(y, f, k, f_tilde, k_tilde)
    design = separate(f_tilde, k_tilde, w)
    found = separate_mean(y, f, k, design, EstimateOptions(estimator="stratppi", lam=lam[:, None]))
    theta = S.theta_spp(y, f, k, f_tilde, k_tilde, w, lam)
    variance = S.variance_spp(y, f, k, f_tilde, k_tilde, w, lam)

    assert found.value == close(theta)
    assert found.variance == close(variance)
    low, high = S.interval_spp(theta, variance, 1.96)
    assert (low + high) / 2 == close(found.value)


def test_stratppi_allocation(apart):
    _, _, _, f_tilde, k_tilde, _ = apart
    f = f_tilde - k_tilde
    sigma = np.array([S.sigma_hat(f[k_tilde == j], 0.4) for j in (0, 1)])
    population = stratal.Population.from_arrays(proxy=f, groups={"k": k_tilde.astype(str)})
    strata = stratal.strata.stratify(population, "category", by="k")
    ours = stratal.strata.allocate(strata, 60, "stratppi", lam=0.4)
    rho = S.rho(np.bincount(k_tilde) / 240, sigma)
    order = np.argsort([int(name.rsplit("=")[-1]) for name in strata.names])

    assert np.abs(np.asarray(ours.n_h)[order] - 60 * rho).max() < 1


def test_stratppi_linear_regression(apart):
    y, f, k, f_tilde, k_tilde, _ = apart
    rng = np.random.default_rng(9)
    X, X_tilde = rng.normal(size=(50, 2)), rng.normal(size=(240, 2))
    lam = np.array([0.3, 0.7])
    sizes = np.bincount(k_tilde)
    found = linear_regression(
        X,
        y,
        proxy=f,
        weighting=StratifiedWeighting(stratum=k, sizes=sizes),
        unlabelled=ArrayUnlabelled(features=X_tilde, proxy=f_tilde, stratum=k_tilde, separate=True),
        lam=lam,
        target="superpopulation",
    )
    expected = S.linear_spp(X, y, f, k, X_tilde, f_tilde, k_tilde, sizes / sizes.sum(), lam)

    assert found.values == close(expected)
