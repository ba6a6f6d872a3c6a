"""Sums over the population: weighted, in any order, in batches; moments merged exactly."""

import gc
import weakref

import numpy as np
import pytest

from stratal.errors import InputError
from stratal.regression.losses import ArrayUnlabelled, Block, LinearLoss, LogisticLoss, Unlabelled


def arrays(seed=0, size=500):
    random = np.random.default_rng(seed)
    stratum = random.integers(0, 3, size)
    return random.normal(size=(size, 2)), random.uniform(size=size), stratum, random.uniform(1, 2, size)


def test_sums_are_those_of_the_definition():
    x, f, stratum, weights = arrays()
    units = ArrayUnlabelled(features=x, proxy=f, stratum=stratum, weights=weights, separate=True)
    theta, factors = np.array([0.3, -0.2]), np.array([0.5, 0.0, 2.0])

    found = units.summed(LogisticLoss(), theta, factors)

    per_unit = factors[stratum] * weights / np.bincount(stratum, weights)[stratum]
    assert found.gradient == pytest.approx(per_unit @ LogisticLoss().gradients(theta, x, f))


@pytest.mark.parametrize("pieces", [1, 9])
def test_moments_are_those_of_numpy(pieces):
    x, f, stratum, _ = arrays()

    def batches():
        for rows in np.array_split(np.arange(500), pieces):
            yield Block(features=x[rows], proxy=f[rows], stratum=stratum[rows])

    theta = np.array([0.3, -0.2])
    gradients = LinearLoss().gradients(theta, x, f)
    for units in (
        Unlabelled(batches, n_strata=3),
        ArrayUnlabelled(features=x, proxy=f, stratum=stratum),
    ):
        found = units.covariances(LinearLoss(), theta)
        for h in range(3):
            part = gradients[stratum == h]
            assert found[h] == pytest.approx(np.cov(part.T))


def test_weighted_gradients_have_weighted_moments():
    x, f, _, weights = arrays()
    units = ArrayUnlabelled(features=x, proxy=f, weights=weights, separate=True)

    found = units.covariances(LinearLoss(), np.zeros(2))

    scaled = LinearLoss().gradients(np.zeros(2), x, f) * (weights / weights.mean())[:, None]
    assert found[0] == pytest.approx(np.cov(scaled.T))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": np.ones((3, 1))}, "features and proxy must have one entry per unit"),
        ({"stratum": [0, 1]}, "stratum and proxy"),
        ({"weights": [1.0]}, "weights and proxy"),
        ({"proxy": []}, "there is no unlabelled unit"),
        ({"proxy": [[[1.0]]]}, "vector or a matrix"),
        ({"proxy": [1.0, np.nan, 2.0, 1.0]}, "NaN"),
        ({"stratum": [0, 2, 2, 2]}, "stratum 1 has no unlabelled unit"),
        ({"stratum": [-1, 0, 0, 0]}, "out of range"),
    ],
)
def test_bad_units_are_told(change, message):
    with pytest.raises(InputError, match=message):
        ArrayUnlabelled(**{"proxy": np.ones(4), **change})


def test_bad_batches_are_told():
    def batches():
        yield Block(features=np.ones((2, 1)), proxy=np.array([1.0, np.inf]), stratum=np.zeros(2, int))

    with pytest.raises(InputError, match="infinite"):
        Unlabelled(batches, n_strata=1)


def test_a_proxy_is_corrected_equally_in_memory_and_in_batches():
    random = np.random.default_rng(4)
    x, f = random.normal(size=(40, 2)), random.normal(size=40)
    units, shift = ArrayUnlabelled(features=x, proxy=f), np.array([0.5, -2.0])
    batches = Unlabelled(units.blocks, n_strata=1)
    found, expected = (
        np.concatenate([block.proxy for block in given.with_corrected_proxy(1.5, shift).blocks()])
        for given in (units, batches)
    )
    assert found == pytest.approx(expected, abs=1e-12)
    assert np.concatenate([block.proxy for block in units.blocks()]).tolist() == f.tolist()


def test_an_error_names_the_position_of_a_number_that_is_not_finite():
    f = np.zeros(60_000)
    f[51_234] = np.nan
    with pytest.raises(InputError, match=r"proxy holds 1 value that is NaN .first at position 51234;"):
        ArrayUnlabelled(proxy=f)


def test_units_in_memory_are_let_go_with_their_last_name():
    """They do not wait for the collector of cycles, with all that they hold."""
    units = ArrayUnlabelled(proxy=np.zeros(4))
    moved, gone = units.with_corrected_proxy(2.0, np.zeros(0)), weakref.ref(units)
    gc.disable()
    try:
        del units, moved
        assert gone() is None
    finally:
        gc.enable()
