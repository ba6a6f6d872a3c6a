"""The rule of formulas finds the same strata after a trip through a sample file."""

from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.estimation.estimands import F1
from stratal.population.rules import Derived


@pytest.fixture
def population():
    rng = np.random.default_rng(3)
    score = rng.beta(0.3, 2, 800)
    answer = np.where(score > 0.5, "match", "other")
    return stratal.Population.from_arrays(
        proxy={"score": score}, groups={"answer": answer}, predicted="answer"
    )


def test_the_rule_assigns_what_the_strata_were_made_of(population, tmp_path):
    influence = F1("match", probability="score").influence(population)
    strata = stratal.stratify(population, "neyman", 4, influence=influence)
    design = stratal.Stratified(strata=strata, allocation=stratal.allocate(strata, 60))

    sample = stratal.Sample.read(design.draw(population, seed=5).write(tmp_path / "sample.parquet"))
    again = sample.design.strata.rule

    assert isinstance(again, Derived)
    assert set(again.columns) == {"score", "answer"}
    np.testing.assert_array_equal(population.codes(again), strata.codes)
    np.testing.assert_array_equal(np.bincount(population.codes(again)), strata.sizes)


def test_a_sample_from_a_file_is_extended_in_the_same_strata(population, tmp_path):
    influence = F1("match", probability="score").influence(population)
    strata = stratal.stratify(population, "neyman", 4, influence=influence)
    small, large = (
        stratal.Stratified(strata=strata, allocation=stratal.allocate(strata, n)) for n in (40, 90)
    )
    sample = stratal.Sample.read(small.draw(population, seed=5).write(tmp_path / "sample.parquet"))

    larger = stratal.extend(sample, large, population)

    assert larger.size == 90
    assert larger.ids[:40].tolist() == sample.ids.tolist()
