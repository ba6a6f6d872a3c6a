"""The bounds that eliminate models: over all orders of the draw of tiny populations, for all truths."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from tests.tiers import sized

from stratal.intervals.difference_betting import DrawSteps, difference_capital

LIMITS = (0.5, 0.2, 0.05)


@pytest.mark.parametrize("sizes", [(1.0, 1.0, 1.0, 1.0), (1.0, 2.0, 0.5, 3.0)])
@pytest.mark.parametrize("outside", [0, 2])
def test_a_true_difference_is_refuted_no_more_often_than_the_error(
    sizes: tuple[float, ...], outside: int
) -> None:
    """Ville's inequality, at every look: units on which the models differ, and others that have no turn."""
    x, size = np.array(sizes), len(sizes) + outside
    orders = list(permutations(range(len(x))))
    truths = list(product((-1.0, 0.0, 1.0), repeat=len(x)))[:: sized(3, 1)]
    refuted = np.zeros((len(truths), len(LIMITS)))
    total = 0.0
    for order in map(list, orders):
        left = x[order][::-1].cumsum()[::-1]
        chance = float(np.prod(x[order] / left))
        total += chance
        gain = np.array(truths)[:, order].T
        smallest = np.minimum.accumulate(x[order][::-1])[::-1]
        draw_steps = DrawSteps(
            inverse_probability=left / x[order], largest_inverse=left / smallest, size=size
        )
        inverse = (1.0 / x[order])[::-1].cumsum()[::-1] * left
        spread = np.broadcast_to(inverse[:, None], gain.shape)
        # The true mean is the null that is hardest to keep; it differs between truths.
        for m in np.unique(gain.sum(axis=0)) / size:
            own = np.isclose(gain.sum(axis=0), m * size)
            log = difference_capital(gain[:, own], spread[:, own], draw_steps, m, min_distance=0.1)
            refuted[own] += chance * (log[:, None] >= -np.log(LIMITS) + 1e-12)
    assert total == pytest.approx(1.0)
    assert np.all(refuted <= np.array(LIMITS) + 1e-9)
    assert refuted[:, 0].max() > 0  # the bet is a real one


def test_what_the_units_left_make_certain_needs_no_bet() -> None:
    draw_steps = DrawSteps(inverse_probability=np.array([3.0]), largest_inverse=np.array([3.0]), size=3)
    found = difference_capital(
        np.array([[-1.0]]),
        np.array([[9.0]]),
        draw_steps,
        0.5,
        min_distance=0.1,
        undrawn_total=np.array([2.0]),
    )
    assert found[0] == np.inf
    found = difference_capital(
        np.array([[-1.0]]),
        np.array([[9.0]]),
        draw_steps,
        0.3,
        min_distance=0.1,
        undrawn_total=np.array([2.0]),
    )
    assert np.isfinite(found[0])
