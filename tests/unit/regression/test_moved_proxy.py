from __future__ import annotations

import numpy as np
import pytest

from stratal.designs import StratifiedWeighting
from stratal.regression.losses import ArrayUnlabelled
from stratal.regression.m_estimation import linear_regression

N = 1500


def world(shift=0.0, slope=0.0, scale=1.0):
    rng = np.random.default_rng(7)
    x = np.column_stack([np.ones(N), rng.normal(size=(N, 2))])
    y = x @ [1, 0.5, -0.5] + rng.normal(size=N)
    return x, y, scale * (y + 0.5 * rng.normal(size=N)) + shift + slope * x[:, 1]


def errors(world, n, forms=("auto", "loss"), draws=80, **options):
    x, y, f = world
    truth = np.linalg.lstsq(x, y, rcond=None)[0]
    units = ArrayUnlabelled(features=x, proxy=f)
    weighting = StratifiedWeighting(stratum=np.zeros(n, int), sizes=np.array([N]))
    rng = np.random.default_rng(1)
    found, inside = dict.fromkeys(forms, 0.0), 0.0
    for _ in range(draws):
        rows = rng.choice(N, n, replace=False)
        for form in forms:
            fit = linear_regression(
                x[rows], y[rows], proxy=f[rows], unlabelled=units, weighting=weighting, form=form, **options
            )
            found[form] += float(np.mean((fit.values - truth) ** 2)) / draws
            if form == "auto":
                low, high = fit.confidence_interval()
                inside += float(np.mean((low <= truth) & (truth <= high))) / draws
    return found, inside


@pytest.mark.parametrize(
    "known", [{"shift": 2.0}, {"slope": 1.5}, {"scale": 0.4, "shift": -1.0}], ids=["bias", "slope", "scale"]
)
def test_a_biased_proxy_costs_nothing(known):
    """The rectified loss alone had 2.7 and more times the mean squared error."""
    found, inside = errors(world(**known), 40)
    assert found["auto"] < 0.5 * found["loss"]
    assert inside > 0.95 - 3 * np.sqrt(0.0475 / 80)


def test_an_unbiased_proxy_is_used_as_it_is():
    found, _ = errors(world(), 40)
    assert found["auto"] < 1.1 * found["loss"]


def test_only_a_fitted_λ_of_least_squares_moves_its_proxy():
    data = world(shift=2.0)
    given, _ = errors(data, 40, draws=3, lam=0.7)
    assert given["auto"] == given["loss"]


def test_a_proxy_that_is_a_line_of_the_features_is_not_stretched():
    x, y, _ = world()
    fit = linear_regression(
        x[:60],
        y[:60],
        proxy=3 * x[:60, 1],
        unlabelled=ArrayUnlabelled(features=x, proxy=3 * x[:, 1]),
        weighting=StratifiedWeighting(stratum=np.zeros(60, int), sizes=np.array([N])),
    )
    assert np.all(np.isfinite(fit.standard_errors))
    assert "of the proxy's bias" in " ".join(fit.notes)


def test_units_with_a_corrected_proxy_have_the_same_blocks():
    units = ArrayUnlabelled(features=np.eye(2), proxy=np.array([1.0, 2.0]))
    moved = units.with_corrected_proxy(2.0, np.array([10.0, 20.0]))
    assert np.concatenate([block.proxy for block in moved.blocks()]).tolist() == [12.0, 24.0]
    assert moved.size == 2
