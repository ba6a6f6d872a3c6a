"""Prediction-powered inference in one call: the numbers of the longer ways."""

from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.errors import InputError, LabelError


@pytest.fixture
def arrays():
    rng = np.random.default_rng(5)
    proxy = rng.beta(3, 1, 500)
    labels = (rng.random(500) < proxy).astype(float)
    return labels[:100], proxy[:100], proxy[100:], rng.choice(["a", "b"], 500)


@pytest.mark.parametrize("estimator", ["auto", "difference", "ppi++", "horvitz-thompson"])
@pytest.mark.parametrize("target", ["population", "superpopulation"])
def test_it_is_the_estimate_with_moments_made_by_hand(arrays, estimator, target):
    labels, own, others, _ = arrays
    moments = {"mean": [others.mean()], "variance": [others.var(ddof=1)], "count": [len(others)]}
    sample, given = stratal.Sample.from_labelled(
        {"y": labels, "f": own}, value="y", proxy="f", proxy_moments=moments
    )
    expected = stratal.estimate(sample, given, estimator=estimator, target=target)

    found = stratal.estimate_from(labels, own, others, estimator=estimator, target=target)

    assert found.value == pytest.approx(expected.value, abs=1e-12)
    assert found.standard_error == pytest.approx(expected.standard_error, rel=1e-9)


def test_ppi_by_hand(arrays):
    labels, own, others, _ = arrays
    everything = np.concatenate([own, others])

    found = stratal.estimate_from(labels, own, others, estimator="difference")

    assert found.value == pytest.approx(everything.mean() + (labels - own).mean())


def test_words_are_understood(arrays):
    labels, own, others, _ = arrays
    words = np.where(labels == 1, "Pass", "Fail")

    found = stratal.estimate_from(words, own, others)

    assert found.value == stratal.estimate_from(labels, own, others).value
    assert any("Pass" in note and "→ 1" in note for note in found.notes)


def test_ratings_are_prediction_powered_too():
    rng = np.random.default_rng(6)
    truth = rng.normal(50, 10, 2000)
    predicted = truth + rng.normal(0, 3, 2000)

    found = stratal.estimate_from(truth[:200], predicted[:200], predicted[200:])
    alone = stratal.estimate_from(truth[:200], predicted[:200], predicted[200:], estimator="horvitz-thompson")

    assert found.standard_error < 0.5 * alone.standard_error


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"proxy_labelled": [0.1, 0.2]}, "one entry per unit"),
        ({"proxy_unlabelled": [0.1, float("nan")]}, "proxy_unlabelled"),
        ({"stratum_labelled": ["a", "a", "b"]}, "strata are given for only one of the two sets"),
        ({"labels": ["cat", "dog", "cat"]}, "is not a finite number"),
    ],
)
def test_mistakes_are_named(change, message):
    given = {"labels": [1, 0, 1], "proxy_labelled": [0.1, 0.2, 0.3], "proxy_unlabelled": [0.5] * 9, **change}

    with pytest.raises((InputError, LabelError), match=message):
        stratal.estimate_from(**given)


def test_a_unit_whose_label_is_missing_stays_one_of_the_population():
    rng = np.random.default_rng(0)
    proxy = rng.beta(3, 1, 110)
    labels = (rng.random(100) < proxy[:100]).astype(object)
    labels[:50] = np.nan
    found = stratal.estimate_from(labels, proxy[:100], proxy[100:])
    known = stratal.estimate_from(labels[50:], proxy[50:100], np.concatenate([proxy[:50], proxy[100:]]))

    assert (found.n, found.population_size) == (50, 110)
    assert found.confidence_interval() == known.confidence_interval()


def test_what_regressions_find_themselves_and_quantiles_lack_is_refused():
    population = stratal.Population.from_arrays(
        proxy=np.linspace(0, 1, 50), features={"x": np.linspace(0, 1, 50)}
    )
    sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=1)
    with pytest.raises(stratal.InputError, match="determines weighting= itself"):
        stratal.regress(sample, np.arange(20.0), features=("x",), weighting=sample.weighting())
    with pytest.raises(stratal.InputError, match="a quantile has no hessian="):
        stratal.regression.quantile(np.arange(20.0), 0.5, weighting=sample.weighting(), hessian="pooled")


def test_a_matrix_where_one_number_per_stratum_is_wanted_is_refused():
    population = stratal.Population.from_arrays(proxy=np.linspace(0, 1, 90))
    strata = stratal.strata.stratify(population, n_strata=3)
    with pytest.raises(stratal.InputError, match="lam must have one entry per stratum"):
        stratal.strata.allocate(strata, 30, method="stratppi", lam=np.ones((2, 3)))


@pytest.mark.parametrize(
    "options",
    [
        {"by": "site"},
        {"judge": "verdict"},
        {"judge": "verdict", "by": "site"},
        {"calibration": "isotonic"},
        {"cross_fit": 5},
        {"limits": (0.1, 0.9)},
    ],
)
def test_arrays_take_the_options_of_a_drawn_sample(options):
    rng = np.random.default_rng(8)
    proxy = rng.random(300).round(3)
    right = (rng.random(300) < proxy).astype(float)
    groups = {
        "site": rng.choice(["north", "south"], 300),
        "verdict": np.where(rng.random(300) < 0.85, right, 1 - right).astype(int).astype(str),
    }
    n = 80
    table = {"label": np.where(np.arange(300) < n, right, np.nan), "proxy": proxy, **groups}
    sample, labels = stratal.Sample.from_labelled(table, value="label", proxy="proxy", groups=tuple(groups))

    found = stratal.estimate_from(
        right[:n],
        proxy[:n],
        proxy[n:],
        groups_labelled={name: values[:n] for name, values in groups.items()},
        groups_unlabelled={name: values[n:] for name, values in groups.items()},
        **options,
    )

    expected = stratal.estimate(sample, labels, **options)
    assert repr(found) == repr(expected)


def test_groups_of_one_side_alone_are_refused():
    with pytest.raises(InputError, match="only one of the two sets"):
        stratal.estimate_from([1, 0], [0.5, 0.6], [0.1], groups_labelled={"site": ["a", "b"]})
