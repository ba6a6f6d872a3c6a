import itertools

import numpy as np
import pytest

import stratal
from stratal.estimation.estimand import as_estimand
from stratal.planning.planner import Planner, influence_spreads
from stratal.strata.several_solver import Choices, Demands, Program, searched


def cover(seed):
    """A covering problem: twelve labels in six strata, three constraints, prices that are whole."""
    rng = np.random.default_rng(seed)
    given = Demands(
        spread=rng.uniform(0.2, 3, (3, 6)),
        slack=np.zeros(3),
        prices=rng.integers(1, 4, 6).astype(float),
        lower=np.full(6, 2.0),
        upper=np.full(6, 4.0),
    )
    choices = Choices.between(given, given.lower, given.upper)
    short = given.used(given.lower) - given.used(given.upper)
    limits = -short * rng.uniform(0.3, 0.8, 3)
    program = Program(
        objective=given.prices[choices.stratum], rows=-choices.gains, limits=limits, constant=0.0
    )
    return choices, program


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("step", [0.0, 1.0])
def test_finds_the_best_of_all_subsets_and_proves_it(seed, step):
    choices, program = cover(seed)

    def kept(n_h):
        taken = np.arange(12) % 2 < np.repeat(n_h - choices.first, 2)
        return np.all(program.rows @ taken <= program.limits + 1e-12)

    def value(n_h):
        return float(program.objective[::2] @ (n_h - choices.first)) if kept(n_h) else np.inf

    found = searched(
        program, choices, choices.first + 2, lambda taken: choices.counted(np.ceil(taken - 1e-9)), value, step
    )

    each = [choices.first + np.array(n) for n in itertools.product((0, 1, 2), repeat=6)]
    assert found.value == pytest.approx(min(map(value, each)))
    assert found.bound == pytest.approx(found.value)


@pytest.mark.parametrize("levels", [2, 4, 6])
def test_plans_of_few_levels_are_proved_to_be_the_best(levels):
    """The search that these took ended after a second with a gap of up to 3 %."""
    rng = np.random.default_rng(levels)
    shares = 1.0 / np.arange(1, levels + 1)
    groups = rng.choice([f"level {k}" for k in range(levels)], 3000, p=shares / shares.sum())
    population = stratal.Population.from_arrays(proxy=rng.beta(2, 1, 3000), groups={"g": groups})
    planner = Planner(population=population, estimand=as_estimand("mean@g"))
    strata = planner.anticipated.strata(100)
    deviations, _, _ = influence_spreads(population, strata, list(planner.estimand.influences(population)))
    found = stratal.strata.allocate_several(strata.sizes, deviations, 100, standard_errors=np.ones(levels))

    assert found.n_h.sum() == 100
    assert found.gap == pytest.approx(0.0, abs=1e-9)


def test_many_choices_that_matter_to_several_are_bounded_by_real_numbers():
    """Whole numbers would take seconds; the bound of the real ones is close enough."""
    rng = np.random.default_rng(3)
    deviations = rng.uniform(0.2, 1.0, (6, 90))
    sizes = rng.integers(20, 200, 90)
    found = stratal.strata.allocate_several(sizes, deviations, 450, standard_errors=np.ones(6))

    assert found.n_h.sum() == 450
    assert 0 <= found.gap < 0.005
