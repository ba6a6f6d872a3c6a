"""`select` where it is hardest: all rivals the same small step below the best."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from benchmarks.selection import INDIFFERENCE, run, tied
from tests.tiers import sized


@pytest.mark.parametrize(
    ("k", "gap", "criterion"),
    [(2, 0.0125, "accuracy"), (6, 0.0125, "accuracy"), (3, 0.0125, "balanced_accuracy")],
)
def test_the_winner_is_rarely_further_below_the_best_than_the_indifference(
    k: int, gap: float, criterion: str
) -> None:
    runs, errors, saved = sized(25, 400), 0, []
    for seed in range(runs):
        codes, truth = tied(np.random.default_rng([2, seed]), sized(1200, 2000), k, gap)
        uniform = np.random.default_rng(seed).random(len(codes))
        labels, standing, _ = run(codes, truth, uniform, criterion=criterion)
        value: Any = (codes == truth[:, None]).mean(axis=0)
        if criterion == "balanced_accuracy":
            hits = [(codes[truth == level] == level).mean(axis=0) for level in np.unique(truth)]
            value = np.mean(hits, axis=0)
        errors += value.max() - value[standing.leader] > INDIFFERENCE + 1e-12
        saved.append(labels / len(codes))
    assert errors / runs <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs)
    if criterion == "accuracy":
        assert np.mean(saved) < 0.75
