import itertools

import numpy as np
import pytest

from stratal.allocation.several_dual import Demands
from stratal.allocation.several_search import Choices, Program, branched


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

    found = branched(
        program, choices, choices.first + 2, lambda taken: choices.counted(np.ceil(taken - 1e-9)), value, step
    )

    each = [choices.first + np.array(n) for n in itertools.product((0, 1, 2), repeat=6)]
    assert found.value == pytest.approx(min(map(value, each)))
    assert found.bound == pytest.approx(found.value)
