"""Labels that are missing more often where a proxy is low or high: a warning, and none by chance."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from tests.tiers import sized

import stratal
from stratal.errors import StratalWarning
from stratal.estimation.missing_labels import FALSE_ALARM_RATE, missing_pattern

N = 4000
SCORE = np.random.default_rng(1).uniform(size=N)


def draw(design: str) -> stratal.Sample:
    groups = {"language": np.where(SCORE + np.random.default_rng(2).normal(size=N) > 0.5, "de", "en")}
    population = stratal.Population.from_arrays(proxy={"score": SCORE}, groups=groups)
    if design == "simple random":
        return stratal.designs.SimpleRandom(budget=200).draw(population, seed=3)
    by = "language" if design == "by language" else None
    return stratal.plan(population, budget=200, by=by).draw(seed=3)


def codes(sample: stratal.Sample, labelled: Any) -> set[str]:
    z = np.where(labelled, np.random.default_rng(4).integers(0, 2, sample.size), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StratalWarning)
        return {note.code for note in stratal.estimate(sample, z).notes}


@pytest.mark.parametrize("design", ["simple random", "plan"])
def test_labels_missing_by_the_proxy_are_warned_of(design: str) -> None:
    sample = draw(design)
    score = sample.proxies[:, 0]
    chance = np.random.default_rng(5).uniform(size=sample.size)
    patterns = {"low": score < 0.3, "high": score > 0.7, "middle": np.abs(score - 0.5) < 0.15}
    for name, where in patterns.items():
        assert "missing-by-proxy" in codes(sample, ~(where & (chance < 0.6))), name
    z = np.where(patterns["low"] & (chance < 0.6), np.nan, 1.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        stratal.estimate(sample, z)
    assert any("missing more often where 'score' is low" in str(entry.message) for entry in caught)


def test_labels_missing_at_random_are_not() -> None:
    """The chance of a warning is 1 % over all proxies, whichever they are."""
    tries = sized(150, 3000)
    generator = np.random.default_rng(6)
    proxies = np.column_stack([generator.uniform(size=120), generator.integers(0, 2, 120)])
    block = np.repeat([0, 1], 60)
    warned = sum(
        missing_pattern(proxies, generator.uniform(size=120) < 0.15, block, seed) is not None
        for seed in range(tries)
    )
    assert warned <= FALSE_ALARM_RATE * tries + 3.5 * np.sqrt(FALSE_ALARM_RATE * tries)


def test_strata_and_rounds_may_differ() -> None:
    """Strata that were not made of the proxy are weighted; a later round is not labelled yet."""
    generator = np.random.default_rng(7)
    block = np.repeat([0, 1], 200)
    proxies = np.where(block == 0, generator.uniform(0, 0.5, 400), generator.uniform(0.5, 1, 400))[:, None]
    missing = generator.uniform(size=400) < np.where(block == 0, 0.5, 0.1)
    assert missing_pattern(proxies, missing, block) is None
    assert missing_pattern(proxies, missing, np.zeros(400, dtype=int)) is not None


def test_what_is_labelled_whole_or_nearly_is_left_alone() -> None:
    sample = draw("plan")
    lowest = np.argsort(sample.proxies[:, 0])
    labelled = np.ones(sample.size, dtype=bool)
    assert "missing-by-proxy" not in codes(sample, labelled)
    labelled[lowest[:3]] = False
    assert "missing-by-proxy" not in codes(sample, labelled)
    labelled[lowest[:12]] = False
    assert "missing-by-proxy" in codes(sample, labelled)
