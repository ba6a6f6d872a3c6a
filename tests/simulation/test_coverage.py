"""Seeded coverage of `auto` at 95 %: at least .94 in every cell, within the error of the number of draws.

The whole table, with 10,000 draws per cell, is made by benchmarks/coverage.py.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.tiers import cells, sized

from stratal.designs import PoissonWeighting, StratifiedWeighting
from stratal.estimation.outcome_means import estimate_mean
from stratal.intervals.proportion import clopper_pearson
from stratal.population.summary import StratumSummary

REQUIRED = 0.94
DRAWS = sized(100, 400)
RATES = (0.5, 0.6, 0.75, 0.85, 0.95)


def judged(sizes: list[int], rates: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return outcomes, a judge that is right for 85 % of either kind, and the strata."""
    stratum = np.repeat(np.arange(len(sizes)), sizes)
    z = np.concatenate([np.arange(n) < round(n * p) for n, p in zip(sizes, rates, strict=True)]).astype(float)
    wrong = np.concatenate(
        [np.arange((z[stratum == h] == v).sum()) < 0.15 * (z[stratum == h] == v).sum()
         for h in range(len(sizes)) for v in (1.0, 0.0)]
    )  # fmt: skip
    return z, np.where(wrong, 1 - z, z), stratum


def coverage(z, proxy, stratum, n_h, *, estimator, draws, seed, target="population") -> tuple[float, float]:
    rng = np.random.default_rng(seed)
    sizes = np.bincount(stratum)
    means = np.bincount(stratum, proxy) / sizes
    spread = np.bincount(stratum, (proxy - means[stratum]) ** 2) / sizes
    summary = StratumSummary(sizes=sizes, proxy_means=means[:, None], proxy_covariances=spread[:, None, None])
    held, widths = np.empty(draws, dtype=bool), np.empty(draws)
    members = [np.flatnonzero(stratum == h) for h in range(len(sizes))]
    drawn = np.repeat(np.arange(len(sizes)), n_h)
    weighting = StratifiedWeighting(stratum=drawn, sizes=sizes)
    for i in range(draws):
        units = np.concatenate([rng.choice(m, n, replace=False) for m, n in zip(members, n_h, strict=True)])
        low, high = estimate_mean(
            z[units],
            proxy[units, None],
            weighting,
            summary,
            stratum=drawn,
            estimator=estimator,
            target=target,
        ).confidence_interval()
        held[i], widths[i] = low - 1e-12 <= z.mean() <= high + 1e-12, high - low
    return float(held.mean()), float(widths.mean())


def enough(covered: float, draws: int) -> bool:
    """Whether a coverage is compatible with the required one: three standard errors of `draws`."""
    return bool(covered >= REQUIRED - 3 * np.sqrt(REQUIRED * (1 - REQUIRED) / draws))


def plain_width(z: np.ndarray, n: int, seed: int) -> float:
    counts = np.random.default_rng(seed).hypergeometric(int(z.sum()), int((1 - z).sum()), n, 4000)
    low, high = clopper_pearson(counts / n, n)
    return float(np.mean(high - low))


@pytest.mark.parametrize(("n", "p"), cells([(20, 0.9), (30, 0.97), (50, 0.5), (100, 0.99)], fast=(30, 100)))
def test_simple_random(n, p):
    """Peers: at n = 30, p = .97 a rival covers .585."""
    z = (np.arange(2000) < round(2000 * p)).astype(float)
    covered, width = coverage(
        z, z * 0, np.zeros(2000, dtype=int), [n], estimator="horvitz-thompson", draws=DRAWS, seed=1
    )

    assert enough(covered, DRAWS)
    assert width <= 1.05 * plain_width(z, n, 2) * (1 + 0.03)


@pytest.mark.parametrize("estimator", ["horvitz-thompson", "ppi++", "stratppi"])
@pytest.mark.parametrize("n_h", cells([2, 5, 20], fast=(2, 5)))
def test_five_strata(n_h, estimator):
    """Peers: at n_h = 5 a rival covers .762."""
    z, judge, stratum = judged([200] * 5, RATES)
    covered, width = coverage(z, judge, stratum, [n_h] * 5, estimator=estimator, draws=DRAWS, seed=3)

    assert enough(covered, DRAWS)
    assert width <= plain_width(z, 5 * n_h, 4) * 1.01


def test_the_tolerance_would_catch_the_normal_interval():
    """The check can fail: the textbook z interval at n_h = 2 does not pass it."""
    z, _, stratum = judged([200] * 5, RATES)
    rng, held = np.random.default_rng(5), []
    for _ in range(DRAWS):
        units = np.concatenate([rng.choice(np.flatnonzero(stratum == h), 2, replace=False) for h in range(5)])
        drawn = np.repeat(np.arange(5), 2)
        weighting = StratifiedWeighting(stratum=drawn, sizes=np.full(5, 200))
        error = np.sqrt(weighting.covariance(z[units, None])[0, 0])
        held.append(abs(z[units].mean() - z.mean()) <= 1.96 * error)

    assert not enough(float(np.mean(held)), DRAWS)


def test_poisson_sampling():
    rng = np.random.default_rng(6)
    score = rng.beta(4, 1, 2000)
    z = (rng.random(2000) < score).astype(float)
    chance = 100 * np.sqrt(score * (1 - score) + 0.05)
    chance *= 100 / chance.sum()
    held = []
    for _ in range(DRAWS):
        units = np.flatnonzero(rng.random(2000) < chance)
        weighting = PoissonWeighting(inclusion_probability=chance[units], size=2000.0)
        stratum = np.zeros(len(units), dtype=np.int64)
        estimate = estimate_mean(
            z[units], np.zeros((len(units), 0)), weighting, None, stratum=stratum, estimator="hajek",
            design="poisson",
        )  # fmt: skip
        held.append(z.mean() in estimate.confidence_interval())

    assert enough(float(np.mean(held)), DRAWS)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["horvitz-thompson", "difference", "ppi++", "stratppi"])
@pytest.mark.parametrize("n_h", [2, 5, 10, 20, 50])
def test_the_whole_stratified_grid(n_h, estimator):
    z, judge, stratum = judged([200] * 5, RATES)
    covered, width = coverage(z, judge, stratum, [n_h] * 5, estimator=estimator, draws=4000, seed=7)

    assert enough(covered, 4000)
    assert width <= plain_width(z, 5 * n_h, 8) * 1.01


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 30, 50, 100])
@pytest.mark.parametrize("p", [0.5, 0.85, 0.9, 0.97, 0.99])
def test_the_whole_simple_random_grid(n, p):
    z = (np.arange(20_000) < round(20_000 * p)).astype(float)
    covered, width = coverage(
        z, z * 0, np.zeros(20_000, dtype=int), [n], estimator="horvitz-thompson", draws=4000, seed=9
    )

    assert enough(covered, 4000)
    assert width <= 1.05 * plain_width(z, n, 10) * 1.01
