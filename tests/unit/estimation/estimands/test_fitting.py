"""How λ is found is an option of every estimand that is a mean, and refused by name of the others."""

import numpy as np
import pytest

import stratal
from stratal.errors import InputError
from stratal.estimands import F1, Difference, Quantile, WinRate


@pytest.fixture(scope="module")
def compared():
    rng = np.random.default_rng(1)
    population = stratal.Population.from_arrays(
        proxy={"a": rng.uniform(size=3000), "b": rng.uniform(size=3000)}
    )
    sample = stratal.SimpleRandom(budget=200).draw(population, seed=2)
    outcomes = {
        name: (rng.random(200) < column).astype(float)
        for name, column in zip(("m", "k"), sample.proxies.T, strict=True)
    }
    return sample, outcomes


def test_a_given_lam_of_one_is_the_difference_estimator(compared):
    sample, outcomes = compared
    asked = Difference(("m", "k"), ("a", "b"))
    given = stratal.estimate(sample, outcomes, estimand=asked, lam=1.0)

    contrast = outcomes["m"] - outcomes["k"]
    whole = sample.summary.overall_means
    expected = whole[0] - whole[1] + np.mean(contrast - (sample.proxies[:, 0] - sample.proxies[:, 1]))

    assert given.value == pytest.approx(expected, abs=1e-12)
    assert stratal.estimate(sample, outcomes, estimand=asked, estimator="difference").value == given.value


def test_lam_of_a_win_rate_is_clipped_and_cross_fitted(compared):
    sample, outcomes = compared
    asked = WinRate(("m", "k"), ("a", "b"))
    fitted = stratal.estimate(sample, outcomes, estimand=asked)
    clipped = stratal.estimate(sample, outcomes, estimand=asked, clip=True)

    assert fitted.lam[0] > 1.0
    assert clipped.lam == (1.0,)
    folded = stratal.estimate(sample, outcomes, estimand=asked, cross_fit=5)
    assert "λ was cross-fitted in 5 folds" in folded.notes


@pytest.mark.parametrize(
    ("asked", "option"),
    [
        (Difference(("m", "k")), {"lam": 1.0}),
        (Difference(("m", "k"), ("a", "b")), {"calibration": "isotonic"}),
        (F1("x"), {"lam": 1.0}),
        (Quantile(0.5), {"clip": True}),
    ],
)
def test_options_that_mean_nothing_are_refused_by_the_estimand(compared, asked, option):
    sample, outcomes = compared
    with pytest.raises(InputError, match=next(iter(option))):
        stratal.estimate(sample, outcomes, estimand=asked, **option)
