"""How λ is found is an option of every estimand that is a mean, and refused by name of the others."""

import numpy as np
import pytest

import stratal
from stratal.errors import InputError
from stratal.estimands import F1, ClassReport, Difference, Quantile, Ratio, WinRate


@pytest.fixture(scope="module")
def compared():
    rng = np.random.default_rng(1)
    population = stratal.Population.from_arrays(
        proxy={"a": rng.uniform(size=3000), "b": rng.uniform(size=3000)}
    )
    sample = stratal.designs.SimpleRandom(budget=200).draw(population, seed=2)
    outcomes = {
        name: (rng.random(200) < column).astype(float)
        for name, column in zip(("m", "k"), sample.proxies.T, strict=True)
    }
    return sample, outcomes


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


def test_bounds_of_models_outcomes_are_those_of_the_outcomes_themselves(compared):
    """Given bounds are the interval's, and outcomes beyond them are refused."""
    sample, outcomes = compared
    ratings = {name: np.clip(1.0 + 9.0 * values, 2.0, 8.0) for name, values in outcomes.items()}
    for asked in (Difference(("m", "k")), WinRate(("m", "k")), Ratio(("m", "k"))):
        estimate = stratal.estimate(sample, ratings, estimand=asked, bounds=(2, 8))
        assert np.isfinite(estimate.confidence_interval().low)
    with pytest.raises(InputError, match="outside"):
        stratal.estimate(sample, ratings, estimand=Difference(("m", "k")), bounds=(3, 8))


def test_groups_take_limits(compared):
    sample, outcomes = compared
    ratings, groups = 1.0 + 9.0 * outcomes["m"], ["x", "y"] * 100
    estimate = stratal.estimate(sample, ratings, by=groups, limits=(2, 8))
    same = stratal.estimate(sample, np.clip(ratings, 2, 8), by=groups, bounds=(2, 8))
    assert [row.value for row in estimate] == [row.value for row in same]
    assert estimate[0].confidence_interval() == same[0].confidence_interval()


def test_a_list_hands_options_to_each_and_refuses_what_one_does_not_take(compared):
    sample, outcomes = compared
    pairs = [Difference(("m", "k"), ("a", "b")), WinRate(("m", "k"), ("a", "b"))]
    estimate = stratal.estimate(sample, outcomes, estimand=pairs, bounds=(0.0, 1.0))
    for row, one in zip(estimate, pairs, strict=True):
        assert row.value == stratal.estimate(sample, outcomes, estimand=one, bounds=(0.0, 1.0)).value
    with pytest.raises(InputError, match="'difference' takes no lam="):
        stratal.estimate(sample, outcomes, estimand=pairs, lam=1.0)


def test_metrics_hold_together_too(compared):
    sample, outcomes = compared
    true, answers = (np.where(outcomes[name] == 1, "yes", "no") for name in ("m", "k"))
    asked = ClassReport(["precision", "recall", "f1"])
    estimate = stratal.estimate(sample, {"label": true, "predicted": answers}, estimand=asked)
    alone, of_all = (estimate.confidence_interval(1 - 0.05 / part) for part in (1, len(estimate)))
    low, high = estimate.simultaneous().confidence_interval(0.95)
    assert np.all((low < alone[0]) & (alone[1] < high))
    assert np.all(high - low < of_all[1] - of_all[0])


def test_labels_of_all_units_need_no_proxy_and_no_note_about_it():
    rng = np.random.default_rng(3)
    population = stratal.Population.from_arrays(proxy=rng.uniform(size=200))
    sample = stratal.designs.SimpleRandom(budget=200).draw(population, seed=2)
    outcomes = (rng.random(200) < sample.proxies[:, 0]).astype(float)
    estimate = stratal.estimate(sample, outcomes, target="superpopulation")

    assert estimate.value == pytest.approx(outcomes.mean())
    assert not [note for note in estimate.notes if "proxy is not used" in str(note)]
