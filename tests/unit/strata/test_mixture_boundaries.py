from __future__ import annotations

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

from stratal.population.distribution import Distribution
from stratal.strata.mixture_boundaries import fit_mixture, log_densities, mixture_boundaries


def picture(values, counts=None):
    values = np.asarray(values, float)
    counts = np.ones(len(values), int) if counts is None else np.asarray(counts)
    return Distribution(values=values, counts=counts, cuts=values[1:])


def two_groups():
    rng = np.random.default_rng(3)
    return np.sort(np.concatenate([rng.normal(0, 1, 600), rng.normal(6, 0.5, 300)]))


def test_agrees_with_scikit_learn_on_clear_groups():
    values = two_groups()
    peer = GaussianMixture(2, random_state=0, tol=1e-8, max_iter=1000).fit(values[:, None])
    order = np.argsort(peer.means_.ravel())

    mixture = fit_mixture(picture(values), 2)

    assert mixture[1] == pytest.approx(peer.means_.ravel()[order], abs=1e-3)
    assert mixture[0] == pytest.approx(peer.weights_[order], abs=1e-3)
    assert mixture[2] == pytest.approx(np.sqrt(peer.covariances_.ravel()[order]), abs=2e-3)


def test_cuts_where_the_likelier_component_changes():
    values = two_groups()
    mixture = fit_mixture(picture(values), 2)

    (boundary,) = mixture_boundaries(picture(values), 2)

    likelier = log_densities(values[[boundary - 1, boundary]], mixture).argmax(axis=1)
    assert likelier.tolist() == [0, 1]


def test_weights_stand_for_repeated_units():
    values, counts = np.unique(np.round(two_groups(), 1), return_counts=True)
    heavy = fit_mixture(picture(values, counts), 2)
    heavier = fit_mixture(picture(values, counts * 1000), 2)

    assert heavy[1] == pytest.approx(heavier[1], rel=1e-9)


@pytest.mark.parametrize(
    ("values", "counts"),
    [
        ([0.4], [9]),
        ([0.0, 1.0], [5, 5]),
        ([0.0, 0.1, 0.2, 1e12], [10, 10, 10, 1]),
        ([0.0, 0.5, 1.0], [1, 10**9, 1]),
        ([1e8, 1e8 + 1, 1e8 + 2], [3, 4, 5]),
        (list(range(3000)), None),
    ],
)
@pytest.mark.parametrize("n_strata", [1, 2, 10])
def test_degenerate_inputs_give_increasing_inner_boundaries(values, counts, n_strata):
    boundaries = mixture_boundaries(picture(values, counts), n_strata)

    assert np.all(np.diff(np.concatenate([[0], boundaries, [len(values)]])) > 0)
    assert len(boundaries) < n_strata
