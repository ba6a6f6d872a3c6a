"""Agreement with ppi-python (stored numbers) and statsmodels (run here)."""

import json
from pathlib import Path

import numpy as np
import pytest

from stratal.designs import StratifiedWeighting, WithReplacementWeighting
from stratal.regression.losses import ArrayUnlabelled
from stratal.regression.m_estimation import (
    linear_regression,
    logistic_regression,
    mean_vector,
    poisson_regression,
)
from stratal.regression.quantiles import quantile

MODELS = {"ols": linear_regression, "logistic": logistic_regression, "poisson": poisson_regression}
AS_PEER = {"target": "superpopulation", "hessian": "pooled", "correction": "none"}


@pytest.fixture(scope="module")
def peer():
    return json.loads(Path(__file__).with_name("ppi_regression.json").read_text())


def independent(n):
    return StratifiedWeighting(stratum=np.zeros(n, int), sizes=np.array([1]), with_replacement=True)


def independent_of(weights):
    return WithReplacementWeighting(design_weight=weights, size=float(np.sum(weights)))


def fit(peer, name, weighting=None, weights=None, **options):
    n = peer["n_labelled"]
    x = np.array(peer["x"])
    y, f = np.array(peer["outcomes"][name])
    units = ArrayUnlabelled(
        features=x[n:], proxy=f[n:], separate=True, weights=None if weights is None else weights[n:]
    )
    return MODELS[name](
        x[:n],
        y[:n],
        proxy=f[:n],
        unlabelled=units,
        weighting=weighting or independent(n),
        form="fits" if name == "ols" else "loss",
        **AS_PEER,
        **options,
    )


@pytest.mark.parametrize("lam", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("name", list(MODELS))
def test_regressions_agree_with_ppi_python(peer, name, lam):
    expected = peer["expected"][f"{name} {lam}"]

    result = fit(peer, name, lam=lam)
    low, high = result.confidence_interval(peer["confidence_level"], method="normal")

    assert result.values == pytest.approx(expected["point"], abs=1e-6)
    assert low == pytest.approx(expected["interval"][0], abs=1e-6)
    assert high == pytest.approx(expected["interval"][1], abs=1e-6)


@pytest.mark.parametrize("name", list(MODELS))
def test_a_lower_bound_agrees_with_ppi_python(peer, name):
    result = fit(peer, name, lam=0.4)
    low, high = result.confidence_interval(peer["confidence_level"], method="normal", alternative="greater")

    assert low == pytest.approx(peer["expected"][f"{name} greater"]["low"], abs=1e-6)
    assert np.all(np.isinf(high))


@pytest.mark.parametrize("name", list(MODELS))
def test_weighted_samples_agree_with_ppi_python(peer, name):
    weights, n = np.array(peer["weights"]), peer["n_labelled"]
    expected = peer["expected"][f"{name} weighted"]

    result = fit(peer, name, independent_of(weights[:n]), weights, lam=0.4)
    low, high = result.confidence_interval(peer["confidence_level"], method="normal")

    assert result.values == pytest.approx(expected["point"], abs=1e-6)
    assert low == pytest.approx(expected["interval"][0], abs=1e-6)
    assert high == pytest.approx(expected["interval"][1], abs=1e-6)


@pytest.mark.parametrize("lam", [0.4, 1.0])
def test_means_agree_with_ppi_python(peer, lam):
    n = peer["n_labelled"]
    y, f = np.array(peer["outcomes"]["quantile"])

    result = mean_vector(
        y[:n],
        proxy=f[:n],
        weighting=independent(n),
        lam=lam,
        unlabelled=ArrayUnlabelled(proxy=f[n:], separate=True),
        target="superpopulation",
    )

    assert result.values == pytest.approx(np.ravel(peer["expected"][f"mean {lam}"]["point"]), abs=1e-9)


@pytest.mark.parametrize("q", [0.25, 0.5, 0.75])
def test_quantiles_agree_with_ppi_python_up_to_its_grid(peer, q):
    """Its upper end is the last value that it accepts; the interval goes on to the next one.

    Its estimate is the value with F nearest to q; F is not monotone, so that may be another crossing
    than that of the least loss. Our test must accept it nearly as well as our own estimate.
    """
    n = peer["n_labelled"]
    y, f = np.array(peer["outcomes"]["quantile"])
    expected = peer["expected"][f"quantile {q}"]
    grid = np.sort(np.concatenate([y[:n], f]))

    result = quantile(
        y[:n],
        q,
        proxy=f[:n],
        weighting=independent(n),
        lam=1.0,
        unlabelled=ArrayUnlabelled(proxy=f[n:], separate=True),
        target="superpopulation",
        correction="none",
    )
    low, high = result.confidence_interval(peer["confidence_level"], method="normal")

    def steps(left, right):
        return abs(int(np.searchsorted(grid, left)) - int(np.searchsorted(grid, right)))

    assert steps(low, expected["interval"][0]) <= 1
    assert steps(high, expected["interval"][1]) <= 2
    assert result.p_value(expected["point"], method="normal") > 0.8


@pytest.mark.parametrize(
    ("name", "family"), [("ols", "Gaussian"), ("logistic", "Binomial"), ("poisson", "Poisson")]
)
def test_the_classical_estimate_is_that_of_statsmodels(peer, name, family):
    sm = pytest.importorskip("statsmodels.api")
    n = peer["n_labelled"]
    x, y = np.array(peer["x"])[:n], np.array(peer["outcomes"][name][0])[:n]
    theirs = sm.GLM(y, x, family=getattr(sm.families, family)()).fit(tol=1e-14, cov_type="HC0")

    ours = MODELS[name](x, y, weighting=independent(n), correction="none")

    assert ours.values == pytest.approx(theirs.params, abs=1e-8)
    assert ours.standard_errors == pytest.approx(theirs.bse * np.sqrt(n / (n - 1)), rel=1e-6)


def test_the_leverage_correction_is_hc3(peer):
    sm = pytest.importorskip("statsmodels.api")
    n = peer["n_labelled"]
    x, y = np.array(peer["x"])[:n], np.array(peer["outcomes"]["ols"][0])[:n]
    theirs = sm.OLS(y, x).fit()

    ours = linear_regression(x, y, weighting=independent(n))

    # HC3 is uncentred; a design's variance is centred, with n / (n - 1).
    assert ours.standard_errors == pytest.approx(theirs.HC3_se, rel=1.5 / n)


def test_sampling_weights_are_those_of_weighted_least_squares(peer):
    sm = pytest.importorskip("statsmodels.api")
    n = peer["n_labelled"]
    x, y = np.array(peer["x"])[:n], np.array(peer["outcomes"]["ols"][0])[:n]
    weights = np.array(peer["weights"])[:n]
    theirs = sm.WLS(y, x, weights=weights).fit(cov_type="HC0")

    ours = linear_regression(x, y, weighting=independent_of(weights), correction="none")

    assert ours.values == pytest.approx(theirs.params, abs=1e-10)
    assert ours.standard_errors == pytest.approx(theirs.bse * np.sqrt(n / (n - 1)), rel=1e-8)
