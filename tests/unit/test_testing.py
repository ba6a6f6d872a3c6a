"""The checks of what others add hold for what is here, and see what is wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import stratal
from stratal import designs, testing
from stratal.designs import PoissonWeighting

UNITS = np.random.default_rng(3)
PROXY = UNITS.beta(3, 1, 60).round(3)
OUTCOMES = (UNITS.random(60) < PROXY).astype(float)
POPULATION = stratal.Population.from_arrays(proxy=PROXY, groups={"part": np.repeat(list("abcdef"), 10)})
STRATA = stratal.strata.stratify(POPULATION, n_strata=3)


@pytest.mark.parametrize(
    ("design", "variance_error"),
    [
        (designs.SimpleRandom(budget=15), 0.0),
        (designs.Stratified(strata=STRATA, allocation=stratal.strata.allocate(STRATA, 18)), 0.0),
        (designs.Poisson(budget=20, size="sqrt-variance"), 0.0),
        (designs.ClusterSample(cluster="part", n_clusters=3), 0.0),
        (designs.ProportionalToSize(budget=15), 0.25),  # Hájek's variance of a sequential Poisson sample
    ],
)
def test_designs_keep_what_every_design_promises(design, variance_error):
    testing.check_design(design, POPULATION, OUTCOMES, draws=200, variance_error=variance_error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubled(designs.Poisson):
    """Poisson sampling that takes its probabilities for twice what they are."""

    kind = "doubled"

    def weighting(self, sample, labelled):
        right = super(Doubled, self).weighting(sample, labelled)
        assert isinstance(right, PoissonWeighting)
        return replace(right, inclusion_probability=np.minimum(2 * right.inclusion_probability, 1.0))


def test_a_wrong_weight_is_seen():
    with pytest.raises(AssertionError, match="the mean is off by -"):
        testing.check_design(Doubled(probability=0.3), POPULATION, OUTCOMES, draws=60)
    designs.Design.registry.pop("doubled")


def test_estimands_are_their_texts_and_their_intervals_are_nested():
    sample = designs.SimpleRandom(budget=30).draw(POPULATION, seed=1)
    labels = {unit: float(OUTCOMES[unit]) for unit in sample.ids.tolist()}

    for text in ("mean", "quantile:.5"):
        testing.check_estimand(stratal.estimands.Estimand.parse_text(text), sample, labels)


def test_an_engine_that_answers_otherwise_is_seen():
    other = stratal.Population.from_arrays(proxy=PROXY[::-1], groups={"part": np.repeat(list("abcdef"), 10)})

    testing.check_engine(POPULATION, POPULATION, [stratal.strata.Everything()])
    with pytest.raises(AssertionError):
        testing.check_engine(other, POPULATION, [stratal.strata.Everything()])
