"""All samples of tiny populations: given λ, value and variance estimate are exactly unbiased."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from stratal.designs import PoissonWeighting, StratifiedWeighting
from stratal.designs.stratum_moments import population_covariance_parts, stratum_covariances, stratum_means
from stratal.estimation.lam import LabelledProxies
from stratal.estimation.outcome_means import linearised_mean
from stratal.population.summary import StratumSummary

Z = np.array([0.0, 1, 1, 0, 1, 2.5, 0.5, 1])
PROXY = np.array([0.1, 0.7, 0.9, 0.4, 0.3, 1.9, 0.6, 1.2])
STRATUM = np.array([0, 0, 0, 0, 1, 1, 1, 1])
LAMS = [0.0, 1.0, 0.6, -0.4]


def moments(units: np.ndarray, stratum: np.ndarray) -> LabelledProxies:
    sizes = np.bincount(stratum)
    means = np.bincount(stratum, PROXY) / sizes
    spread = np.bincount(stratum, (PROXY - means[stratum]) ** 2) / sizes
    return LabelledProxies(
        values=PROXY[units, None],
        stratum=stratum[units],
        summary=StratumSummary(
            sizes=sizes, proxy_means=means[:, None], proxy_covariances=spread[:, None, None]
        ),
    )


def stratified_samples(stratum: np.ndarray, n_h: tuple[int, ...]) -> Iterator[np.ndarray]:
    parts = [itertools.combinations(np.flatnonzero(stratum == h), n) for h, n in enumerate(n_h)]
    for chosen in itertools.product(*[list(part) for part in parts]):
        yield np.concatenate([np.array(part) for part in chosen])


@pytest.mark.parametrize("lam", LAMS)
@pytest.mark.parametrize(
    ("stratum", "n_h"), [(np.zeros(8, dtype=int), (3,)), (STRATUM, (2, 3)), (STRATUM, (4, 2))]
)
def test_stratified(stratum, n_h, lam):
    results = [
        linearised_mean(
            Z[units], moments(units, stratum), lam=lam,
            weighting=StratifiedWeighting(stratum=stratum[units], sizes=np.bincount(stratum)),
        )
        for units in stratified_samples(stratum, n_h)
    ]  # fmt: skip
    values = np.array([result.value for result in results])

    assert Z.mean() == pytest.approx(values.mean(), abs=1e-12)
    assert values.var() == pytest.approx(np.mean([result.variance for result in results]), abs=1e-12)


@pytest.mark.parametrize("lam", LAMS)
def test_poisson(lam):
    probability = np.array([0.3, 0.6, 0.9, 0.5, 1.0, 0.8, 0.4, 0.7])
    stratum = np.zeros(8, dtype=int)
    value = variance_mean = second = total = 0.0
    for drawn in itertools.product([False, True], repeat=8):
        units = np.flatnonzero(drawn)
        chance = float(np.prod(np.where(drawn, probability, 1 - probability)))
        if chance == 0:
            continue
        result = linearised_mean(
            Z[units], moments(units, stratum), lam=lam,
            weighting=PoissonWeighting(inclusion_probability=probability[units], size=8),
        )  # fmt: skip
        total += chance
        value += chance * result.value
        second += chance * result.value**2
        variance_mean += chance * result.variance

    assert total == pytest.approx(1.0)
    assert Z.mean() == pytest.approx(value, abs=1e-12)
    assert second - value**2 == pytest.approx(variance_mean, abs=1e-12)


def test_with_replacement():
    """Kumar & Raj 2016, eq. 6: independent draws within strata."""
    sizes = np.array([4, 4])
    parts = [list(itertools.product(np.flatnonzero(h == STRATUM), repeat=2)) for h in (0, 1)]
    results = []
    for first, second in itertools.product(*parts):
        units = np.array([*first, *second])
        weighting = StratifiedWeighting(stratum=STRATUM[units], sizes=sizes, with_replacement=True)
        results.append(linearised_mean(Z[units], weighting=weighting))
    values = np.array([result.value for result in results])

    assert Z.mean() == pytest.approx(values.mean(), abs=1e-12)
    # s_h² is unbiased for the variance with divisor N_h, that of one independent draw.
    assert values.var() == pytest.approx(np.mean([result.variance for result in results]), abs=1e-12)


def test_population_spread_is_unbiased():
    """S² of the whole population from a stratified sample: what the superpopulation target adds."""
    sizes = np.array([4, 4])
    parts = []
    for units in stratified_samples(STRATUM, (2, 3)):
        h, counts = STRATUM[units], np.array([2, 3])
        means = stratum_means(Z[units, None], h, 2)
        within = stratum_covariances(Z[units, None], h, 2)
        own, between = population_covariance_parts(means, within, counts, sizes)
        parts.append(float((own + between)[0, 0]))

    assert Z.var(ddof=1) == pytest.approx(np.mean(parts), abs=1e-12)


def test_superpopulation_of_a_simple_random_sample_is_the_textbook_variance():
    units = np.array([0, 2, 5])
    weighting = StratifiedWeighting(stratum=np.zeros(3, dtype=int), sizes=np.array([8]))
    result = linearised_mean(Z[units], weighting=weighting, target="superpopulation")

    assert Z[units].var(ddof=1) / 3 == pytest.approx(result.variance, rel=1e-12)


def test_post_stratification_given_the_sizes():
    """Within the samples of equal realised n_h, post-stratification is a stratified sample."""
    sizes = np.array([4, 4])
    for n_h in ((1, 2), (2, 2)):
        values = [
            linearised_mean(
                Z[units], weighting=StratifiedWeighting(stratum=STRATUM[units], sizes=sizes),
                estimator="post-stratified",
            ).value
            for units in stratified_samples(STRATUM, n_h)
        ]  # fmt: skip
        assert Z.mean() == pytest.approx(np.mean(values), abs=1e-12)
