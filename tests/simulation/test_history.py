"""Rounds by a history cover the truth, whether its factors are right, useless or the wrong way round."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from tests.tiers import cells, sized

import stratal
from stratal.designs.extending import extend_sample
from stratal.proxy.history import History, attenuated, sigmoid

SIZE = 600
DRAWS = sized(40, 1000)
NOMINAL = 0.94
"""What every cell must cover; three standard errors of so many draws are allowed for."""


def population(kind: str) -> tuple[stratal.Population, np.ndarray]:
    """Return units with factors that are true, unrelated or inverted, and the new model's results (N,)."""
    rng = np.random.default_rng(4)
    factors = rng.normal(size=(SIZE, 2))
    offset = 1.0 + rng.normal(size=SIZE)
    z = (rng.random(SIZE) < sigmoid(offset + 1.0 + factors @ [1.0, -1.0])).astype(float)
    if kind == "unrelated":
        offset, factors = rng.normal(size=SIZE), rng.normal(size=(SIZE, 2))
    if kind == "inverted":
        offset = -2.0 * offset
    loadings = np.column_stack([np.ones(SIZE), factors])
    prior = attenuated(offset, np.sum(loadings**2, axis=1))
    ids = np.array([str(row) for row in range(SIZE)])
    values = np.column_stack([prior, offset, loadings])
    history = History(ids=ids, values=values, models=("a",), losses={})
    return stratal.Population.from_arrays(history=history), z


@pytest.mark.parametrize("n", cells([50, 100], fast=[50]))
@pytest.mark.parametrize("kind", cells(["true", "unrelated", "inverted"], fast=["inverted"]))
def test_the_interval_covers_whatever_the_factors_say(kind, n):
    units, z = population(kind)
    hits, values = [], []
    for seed in range(DRAWS):
        sample = stratal.plan(units, n // 2).draw(seed=seed)
        assert sample.design.kind == "successive"
        known = SimpleNamespace(z=z[sample.ids], labelled=np.ones(sample.size, bool))
        sample = extend_sample(sample, sample.design.next_round_design(sample, n // 2, known), units)
        found = stratal.estimate(sample, z[sample.ids])
        low, high = found.confidence_interval()
        hits.append(low <= z.mean() <= high)
        values.append(found.value)
    assert np.mean(hits) >= NOMINAL - 3.0 * np.sqrt(0.06 / DRAWS)
    error = np.std(values) / np.sqrt(DRAWS)
    assert abs(np.mean(values) - z.mean()) < 4.0 * error
