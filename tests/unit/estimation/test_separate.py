"""A separate unlabelled sample: special cases, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from stratal.errors import InputError
from stratal.estimation.outcome_means import EstimateOptions, UnlabelledMoments, separate_mean

STRATUM = np.repeat([0, 1], 10)


def sample(seed: int = 1):
    rng = np.random.default_rng(seed)
    proxy = rng.normal(size=(20, 1)) + STRATUM[:, None]
    others = rng.normal(size=(100, 1)) + np.repeat([0, 1], 50)[:, None]
    return (
        proxy[:, 0] + 0.3 * rng.normal(size=20),
        proxy,
        UnlabelledMoments.of(others, np.repeat([0, 1], 50), 2),
    )


def test_lam_0_ignores_the_unlabelled():
    z, proxy, unlabelled = sample()
    result = separate_mean(
        z,
        proxy,
        STRATUM,
        shares=np.array([0.3, 0.7]),
        unlabelled=unlabelled,
        options=EstimateOptions(estimator="horvitz-thompson"),
    )

    assert 0.3 * z[:10].mean() + 0.7 * z[10:].mean() == pytest.approx(result.value)
    expected = 0.09 * z[:10].var(ddof=1) / 10 + 0.49 * z[10:].var(ddof=1) / 10
    assert expected == pytest.approx(result.variance)


@pytest.mark.parametrize("estimator", ["ppi++", "stratppi"])
def test_a_good_proxy_helps(estimator):
    z, proxy, unlabelled = sample()
    shares = np.array([0.5, 0.5])
    plain, tuned = (
        separate_mean(
            z, proxy, STRATUM, shares=shares, unlabelled=unlabelled, options=EstimateOptions(estimator=name)
        )
        for name in ("horvitz-thompson", estimator)
    )

    assert tuned.variance < 0.75 * plain.variance
    assert tuned.degrees_of_freedom > 5


def test_refusals():
    z, proxy, unlabelled = sample()
    shares = np.array([0.5, 0.5])
    with pytest.raises(InputError, match="sum to 1"):
        separate_mean(z, proxy, STRATUM, shares=np.array([0.5, 0.6]), unlabelled=unlabelled)
    with pytest.raises(InputError, match="no such estimator"):
        separate_mean(
            z,
            proxy,
            STRATUM,
            shares=shares,
            unlabelled=unlabelled,
            options=EstimateOptions(estimator="hajek"),
        )
    with pytest.raises(InputError, match="no such divisor"):
        separate_mean(z, proxy, STRATUM, shares=shares, unlabelled=unlabelled, divisor="n-2")
    with pytest.raises(InputError, match="no label"):
        separate_mean(z, proxy, STRATUM * 0, shares=shares, unlabelled=unlabelled)
    with pytest.raises(InputError, match="no unlabelled unit"):
        UnlabelledMoments.of(proxy, STRATUM * 0, 2)
