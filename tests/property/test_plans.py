"""Plans of categories in order: a larger budget is not planned to give less."""

from __future__ import annotations

import numpy as np
import pytest
from tests.tiers import sized

import stratal

# A plan may be less precise than one of fewer labels, or than a simple random sample, by these factors.
ROUNDING = 1.002
LESS_PRECISE = 1.01

GROUPS = ("equal", "geometric", "tiny")


def groups_of(kind: str, size: int, random: np.random.Generator) -> np.ndarray:
    if kind == "equal":
        return np.arange(size) % int(random.integers(2, 40))
    if kind == "geometric":
        return np.minimum(random.geometric(random.uniform(0.1, 0.5), size), 60)
    few = min(int(random.integers(5, 120)), size // 2)
    names = 1000 + random.integers(0, int(random.integers(1, 15)), size)
    names[:few] = np.arange(few) // int(random.integers(1, 4))
    return names


def test_more_labels_are_never_planned_to_give_less():
    for number in range(sized(60, 2_000)):
        random = np.random.default_rng((20_261_128, number))
        size = int(np.exp(random.uniform(np.log(30), np.log(3_000))))
        groups = groups_of(GROUPS[number % len(GROUPS)], size, random).astype(str)
        population = stratal.Population.from_arrays(groups={"group": groups})
        first = int(np.exp(random.uniform(np.log(4), np.log(min(size / 2, 300)))))
        steps = (0, 1, 2, int(random.integers(3, 30)), first)
        smallest = np.inf
        for budget in sorted({min(first + step, size) for step in steps}):
            plan = stratal.plan(population, budget, by="group")
            error = plan.recommended.worst_standard_error
            where = f"population {number}, budget {budget}"
            assert error <= ROUNDING * smallest + 1e-12, where
            assert error <= LESS_PRECISE * plan.designs[0].worst_standard_error + 1e-12, where
            assert plan.draw(seed=1).n_h.tolist() == plan.allocation.n_h.tolist(), where
            smallest = min(smallest, error)


def languages() -> stratal.Population:
    """Return units of 60 languages, of which 48 have at most three units."""
    sizes = [1, 2, 3] * 16 + [50] * 11 + [38]
    names = np.repeat([f"L{number:02d}" for number in range(60)], sizes)
    return stratal.Population.from_arrays(groups={"lang": names})


@pytest.mark.parametrize("budgets", [range(60, 141, 4), (103, 104, 105)])
def test_a_minimum_for_each_of_many_small_categories_takes_no_labels_from_the_others(budgets):
    population = languages()

    plans = [stratal.plan(population, budget, by="lang") for budget in budgets]

    errors = np.array([plan.recommended.worst_standard_error for plan in plans])
    simple = np.array([plan.designs[0].worst_standard_error for plan in plans])
    assert np.all(np.diff(errors) < 0)
    assert np.all(errors <= LESS_PRECISE * simple)


def test_a_note_says_why_categories_are_not_planned_and_how_to_keep_them():
    population = languages()

    plan = stratal.plan(population, 110, by="lang")
    kept = stratal.plan(population, 110, by="lang", method="category")

    assert plan.recommended.design == "simple-random"
    assert any("--stratify category" in note for note in plan.notes)
    assert kept.strata.n_strata == 60
