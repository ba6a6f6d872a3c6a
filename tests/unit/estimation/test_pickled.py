"""An estimate is data of the labelled units: it holds no population, no sample and no local function."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import stratal
from stratal.population.population import Population

N = 200_000
LARGEST = 50_000  # bytes, for 100 labels


class DataPickler(pickle.Pickler):
    """Refuses what an estimate must not keep."""

    def reducer_override(self, given: Any) -> Any:
        assert not isinstance(given, Population | stratal.Sample), type(given)
        return NotImplemented


@cache
def sample(design: str) -> stratal.Sample:
    generator = np.random.default_rng(1)
    score = generator.uniform(size=N)
    groups = {"answer": np.where(score > 0.5, "yes", "no"), "language": generator.choice(["de", "en"], N)}
    population = Population.from_arrays(proxy={"score": score}, groups=groups, predicted="answer")
    if design == "plan":
        return stratal.plan(population, budget=100).draw(seed=3)
    return stratal.designs.SimpleRandom(budget=100).draw(population, seed=3)


def outcome(drawn: stratal.Sample) -> Any:
    chance = np.random.default_rng(2).uniform(size=drawn.size)
    return (chance < drawn.proxies[:, 0]).astype(float)


def classes(drawn: stratal.Sample) -> list[str]:
    return ["yes" if right else "no" for right in outcome(drawn) == 1]


ESTIMATES: dict[str, Callable[[stratal.Sample], Any]] = {
    "mean": lambda drawn: stratal.estimate(drawn, outcome(drawn)),
    "numbers": lambda drawn: stratal.estimate(drawn, 4 * outcome(drawn), outcome="unbounded"),
    "accuracy": lambda drawn: stratal.estimate(drawn, classes(drawn), estimand="accuracy"),
    "recall": lambda drawn: stratal.estimate(drawn, classes(drawn), estimand="recall:yes"),
    "prevalence": lambda drawn: stratal.estimate(drawn, classes(drawn), estimand="prevalence:yes"),
    "mcc": lambda drawn: stratal.estimate(drawn, classes(drawn), estimand="mcc"),
    "groups": lambda drawn: stratal.estimate(drawn, outcome(drawn), by="language"),
    "metric of groups": lambda drawn: stratal.estimate(
        drawn, classes(drawn), estimand="f1:yes", by="language"
    ),
    "models": lambda drawn: stratal.compare(drawn, {"a": outcome(drawn), "b": 1 - outcome(drawn)}),
}


@pytest.mark.parametrize("design", ["plan", "simple random"])
@pytest.mark.parametrize("name", ESTIMATES)
def test_a_pickled_estimate_is_small_and_gives_the_same(name: str, design: str) -> None:
    found = ESTIMATES[name](sample(design))
    stored = io.BytesIO()
    DataPickler(stored).dump(found)
    rows = found if isinstance(found, stratal.Estimates) else [found]
    assert len(stored.getvalue()) <= LARGEST * len(rows)
    again = pickle.loads(stored.getvalue())
    assert again.to_dict() == found.to_dict()
    assert again.notes == found.notes


def test_notes_keep_their_codes() -> None:
    drawn = sample("plan")
    estimate = stratal.estimate(drawn, 1 - (drawn.proxies[:, 0] > 0.5))
    again = pickle.loads(pickle.dumps(estimate))
    assert "plan-refuted" in {note.code for note in again.notes}
    assert all(note.code == "plan-refuted" for note in again.refuted)
