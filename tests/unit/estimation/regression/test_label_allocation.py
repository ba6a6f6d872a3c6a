"""Allocation for coefficients: eq. 18 in closed form, better than proportional, heuristics from proxies."""

import numpy as np
import pytest

from stratal.designs import StratifiedWeighting
from stratal.errors import InputError
from stratal.estimation.regression.losses import (
    ArrayUnlabelled,
    LinearLoss,
    LogisticLoss,
    MeanLoss,
    PoissonLoss,
)
from stratal.estimation.regression.m_estimation import (
    heuristic_spreads,
    influence_spreads,
    linear_regression,
    logistic_regression,
    mean_vector,
)
from stratal.strata import neyman


def population(seed=0, size=4_000):
    """Two strata: quiet and noisy."""
    random = np.random.default_rng(seed)
    stratum = np.repeat([0, 1], size // 2)
    x = np.column_stack([np.ones(size), random.normal(size=size)])
    y = x @ [1.0, 2.0] + np.where(stratum == 0, 0.2, 2.0) * random.normal(size=size)
    return x, y, stratum


def census(x, y, stratum):
    return linear_regression(x, y, weighting=StratifiedWeighting(stratum=stratum, sizes=np.bincount(stratum)))


def test_for_a_mean_the_spread_is_the_residual_s_standard_deviation():
    _, y, stratum = population()
    f = 0.5 * y
    weighting = StratifiedWeighting(stratum=stratum, sizes=np.array([2_000, 2_000]))
    pilot = mean_vector(
        y, weighting=weighting, proxy=f, unlabelled=ArrayUnlabelled(proxy=f, stratum=stratum), lam=[0.0, 1.0]
    )

    expected = [np.std(y[stratum == 0], ddof=1), np.std(0.5 * y[stratum == 1], ddof=1)]
    assert influence_spreads(pilot) == pytest.approx(expected)
    assert influence_spreads(pilot, side="unlabelled") == pytest.approx([0.0, expected[1]])


def test_the_rule_minimises_the_variance_of_the_coefficient():
    """No split of 100 labels has less variance than that of eq. 18, by closed form over all splits."""
    x, y, stratum = population()
    pilot = census(x, y, stratum)
    for target in ("trace", 1):
        spreads = influence_spreads(pilot, target)
        chosen = neyman(np.array([2_000, 2_000]), spreads, 100)

        variances = {n: np.sum(0.25 * spreads**2 / np.array([n, 100 - n])) for n in range(2, 99)}
        best = min(variances, key=variances.get)
        assert abs(chosen[0] - best) <= 1
        assert chosen.sum() == 100


def test_noise_gets_the_labels():
    spreads = influence_spreads(census(*population()), "x1")

    assert spreads[1] > 5 * spreads[0]


def test_a_pilot_is_extended_not_undone():
    n_h = neyman(np.array([50, 50]), np.array([0.0, 1.0]), 30, minimum=np.array([10, 10]))
    assert np.all(n_h >= 10)


def test_an_unseen_stratum_takes_the_largest_spread():
    weighting = StratifiedWeighting(stratum=np.array([0, 0, 0, 1]), sizes=np.array([50, 50]))
    pilot = mean_vector([0.0, 1.0, 2.0, 5.0], weighting=weighting)

    assert influence_spreads(pilot) == pytest.approx([1.0, 1.0])


def test_the_heuristic_of_a_calibrated_proxy_is_the_truth():
    """Bernoulli outcomes with known probability: the proxies alone give the spread of the residuals."""
    random = np.random.default_rng(2)
    size = 40_000
    stratum = np.repeat([0, 1], size // 2)
    x = np.column_stack([np.ones(size), random.normal(size=size)])
    probability = np.where(stratum == 0, 0.5 + 0.1 * np.tanh(x[:, 1]), 0.95)
    y = (random.uniform(size=size) < probability).astype(float)
    units = ArrayUnlabelled(features=x, proxy=probability, stratum=stratum)

    guessed = heuristic_spreads(LogisticLoss(), units)
    pilot = logistic_regression(
        x,
        y,
        weighting=StratifiedWeighting(stratum=stratum, sizes=np.bincount(stratum)),
        proxy=probability,
        unlabelled=units,
        lam=1.0,
    )

    assert guessed == pytest.approx(influence_spreads(pilot), rel=0.03)


@pytest.mark.parametrize("lam", [0.0, 0.5])
def test_the_heuristic_knows_λ(lam):
    random = np.random.default_rng(3)
    f = random.normal(size=20_000)
    y = f + random.normal(size=20_000)
    units = ArrayUnlabelled(proxy=f)

    guessed = heuristic_spreads(MeanLoss(), units, lam=lam)

    assert guessed[0] == pytest.approx(np.std(y - lam * f), rel=0.02)


@pytest.mark.parametrize("loss", [LogisticLoss(), PoissonLoss(), LinearLoss()])
def test_every_regression_has_a_heuristic(loss):
    random = np.random.default_rng(4)
    x = np.column_stack([np.ones(300), random.normal(size=300)])
    units = ArrayUnlabelled(features=x, proxy=random.uniform(size=300), stratum=np.repeat([0, 1, 2], 100))

    for target in ("trace", 0):
        spreads = heuristic_spreads(loss, units, minimise=target)
        assert spreads.shape == (3,)
        assert np.all(spreads > 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda pilot: influence_spreads(pilot, side="both"), "no such side"),
        (lambda pilot: influence_spreads(pilot, "slope"), "no such coefficient"),
        (lambda pilot: influence_spreads(pilot, 5), "no such coefficient"),
        (lambda pilot: influence_spreads(pilot, [1.0]), "no such coefficient"),
        (
            lambda pilot: heuristic_spreads(MeanLoss(), ArrayUnlabelled(proxy=[0.5, 1.0]), minimise="x"),
            "no such coefficient",
        ),
    ],
)
def test_bad_arguments_are_told(call, message):
    with pytest.raises(InputError, match=message):
        call(census(*population(size=40)))


def test_a_weighted_sample_s_heuristic_is_weighted():
    f, repeats = np.linspace(0.1, 0.9, 30), np.arange(30) % 2 + 1
    weighted = ArrayUnlabelled(proxy=f, weights=repeats, separate=True)

    assert heuristic_spreads(MeanLoss(), weighted) == pytest.approx(
        heuristic_spreads(MeanLoss(), ArrayUnlabelled(proxy=np.repeat(f, repeats), separate=True))
    )


def test_proxies_that_separate_have_no_heuristic():
    units = ArrayUnlabelled(features=np.ones((3, 1)), proxy=np.zeros(3))

    with pytest.raises(InputError, match="no minimum"):
        heuristic_spreads(PoissonLoss(), units)


def test_the_scale_of_a_proxy_that_is_stretched_does_not_matter():
    """The stretch was counted twice: half the scale gave twice the spread of unlabelled units."""
    random = np.random.default_rng(7)
    x = np.column_stack([np.ones(1500), random.normal(size=1500)])
    y = x @ [1.0, 0.5] + random.normal(size=1500)
    judge = y + 0.5 * random.normal(size=1500)
    weighting = StratifiedWeighting(stratum=np.zeros(200, int), sizes=np.array([1500]))
    spreads = []
    for scale in (0.4, 0.2):
        units = ArrayUnlabelled(features=x, proxy=scale * judge)
        pilot = linear_regression(
            x[:200], y[:200], weighting=weighting, proxy=scale * judge[:200], unlabelled=units
        )
        spreads.append(influence_spreads(pilot, side="unlabelled")[0])

    assert spreads[0] == pytest.approx(spreads[1])
