"""A separate unlabelled sample: special cases, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from stratal.designs.external_weights import SeparateSamples
from stratal.errors import InputError
from stratal.estimation.outcome_means import EstimateOptions, separate_mean

STRATUM = np.repeat([0, 1], 10)


def separate(proxy, stratum, shares) -> SeparateSamples:
    """The design of an unlabelled sample's proxy (m,) in strata (m,) of known shares."""
    parts = [proxy[stratum == h] for h in range(len(shares))]
    return SeparateSamples(
        names=[str(h) for h in range(len(shares))],
        shares=shares,
        counts=[len(part) for part in parts],
        means=[part.mean() if len(part) else 0.0 for part in parts],
        variances=[part.var(ddof=1) if len(part) > 1 else 0.0 for part in parts],
    )


def sample(shares):
    rng = np.random.default_rng(1)
    proxy = rng.normal(size=(20, 1)) + STRATUM[:, None]
    others = rng.normal(size=(100, 1)) + np.repeat([0, 1], 50)[:, None]
    z = proxy[:, 0] + 0.3 * rng.normal(size=20)
    return z, proxy[:, 0], STRATUM, separate(others[:, 0], np.repeat([0, 1], 50), shares)


def test_lam_0_ignores_the_unlabelled():
    z, proxy, stratum, design = sample([0.3, 0.7])
    result = separate_mean(z, proxy, stratum, design, EstimateOptions(estimator="horvitz-thompson"))

    assert 0.3 * z[:10].mean() + 0.7 * z[10:].mean() == pytest.approx(result.value)
    expected = 0.09 * z[:10].var(ddof=1) / 10 + 0.49 * z[10:].var(ddof=1) / 10
    assert expected == pytest.approx(result.variance)


@pytest.mark.parametrize("estimator", ["ppi++", "stratppi"])
def test_a_good_proxy_helps(estimator):
    z, proxy, stratum, design = sample([0.5, 0.5])
    plain, tuned = (
        separate_mean(z, proxy, stratum, design, EstimateOptions(estimator=name))
        for name in ("horvitz-thompson", estimator)
    )

    assert tuned.variance < 0.75 * plain.variance
    assert tuned.degrees_of_freedom > 5


def test_refusals():
    z, proxy, _, design = sample([0.5, 0.5])
    tuned = EstimateOptions(estimator="stratppi")
    with pytest.raises(InputError, match="no such estimator"):
        separate_mean(z, proxy, STRATUM, design, EstimateOptions(estimator="hajek"))
    with pytest.raises(InputError, match="no label"):
        separate_mean(z, proxy, STRATUM * 0, design, tuned)
    with pytest.raises(InputError, match="no unlabelled unit"):
        separate_mean(z, proxy, STRATUM, separate(proxy, STRATUM * 0, [0.5, 0.5]), tuned)
