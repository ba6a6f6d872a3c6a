"""Losses of class probabilities: what is expected of them, what labels say, and what cannot be."""

import numpy as np
import pytest

import stratal
from stratal.errors import InputError, LabelError
from stratal.estimands import CrossEntropy, Estimand, SquaredError
from stratal.proxy import cross_entropy, squared_error

CLASSES = np.array(["cat", "cow", "dog"])


def probabilities(rng, size):
    f = rng.dirichlet([0.4, 0.6, 0.9], size)
    f[:3] = np.eye(3)
    return f


def population_of(f, ids=None):
    columns = {f"p_{name}": column for name, column in zip(CLASSES, f.T, strict=True)}
    return stratal.Population.from_arrays(ids=ids, features=columns)


@pytest.mark.parametrize(
    ("kind", "proxy"), [("squared_error", squared_error), ("cross_entropy", cross_entropy)]
)
def test_what_is_expected_is_the_proxy_of_the_same_loss(kind, proxy):
    rng = np.random.default_rng(1)
    f = probabilities(rng, 40)
    expected, population = proxy(f), population_of(f)
    influence = Estimand.parse_text(f"{kind}:p_*").influence(population)
    batch = next(iter(population.batches(tuple(influence.mean.columns))))
    value, mean = expected.values.mean(), expected.values
    second = expected.second_moments - 2 * value * mean + value**2

    assert influence.value == pytest.approx(value)
    assert influence.mean.evaluate(batch) == pytest.approx(mean - value)
    assert influence.square.evaluate(batch) == pytest.approx(second)


@pytest.mark.parametrize("kind", [SquaredError, CrossEntropy])
def test_a_census_gives_the_mean_loss_and_a_sample_is_unbiased(kind):
    rng = np.random.default_rng(2)
    f = probabilities(rng, 400)
    classes = np.array([rng.choice(3, p=row) for row in 0.8 * f + 0.2 / 3])
    ids = np.array([f"u{k}" for k in range(400)])
    population = population_of(f, ids=ids)
    truth = kind.loss(f[np.arange(400), classes])
    labels = dict(zip(ids, CLASSES[classes], strict=True))

    plan = stratal.plan(population, 60, estimand=kind(("p_*",)))

    def drawn(seed):
        sample = plan.draw(seed)
        return stratal.estimate(sample, {name: labels[name] for name in sample.ids.tolist()})

    whole = stratal.designs.SimpleRandom(budget=400).draw(population, seed=1)
    estimate = stratal.estimate(whole, labels, estimand=kind(("p_*",)), target="population")
    assert (estimate.value, estimate.standard_error) == (pytest.approx(truth.mean()), 0.0)
    values = np.array([drawn(seed).value for seed in range(80)])
    assert abs(values.mean() - truth.mean()) < 4 * values.std(ddof=1) / np.sqrt(80)
    assert kind.kind.replace("_", " ") in str(drawn(1)).casefold()


def test_what_cannot_be_is_named():
    rng = np.random.default_rng(3)
    f = probabilities(rng, 50)
    population = population_of(f)
    with pytest.raises(InputError, match=r"not probabilities.*add up to 1"):
        stratal.plan(population_of(2 * f), 20, estimand="squared_error:p_*")
    with pytest.raises(InputError, match="probability of each class"):
        stratal.plan(population, 20, estimand="squared_error:p_cat")
    sample = stratal.plan(population, 20, estimand="cross_entropy:p_*").draw(seed=1)
    with pytest.raises(LabelError, match=r"class 'horse'.*Map the label"):
        stratal.estimate(sample, ["horse"] * 20)


def test_a_loss_that_an_earlier_version_planned_by_a_surrogate_is_read():
    old = {"kind": "squared_error", "probabilities": ["p_*"], "surrogate": []}

    assert Estimand.from_dict(old) == SquaredError(("p_*",))
