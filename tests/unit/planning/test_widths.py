from __future__ import annotations

from functools import partial

import numpy as np

from stratal.planning.widths import smallest_budget, smallest_budgets


def alone_width(scale: float, budget: int) -> float:
    return float(scale * budget**-0.5)


def test_budgets_of_many_replicates_are_those_of_each_alone():
    scales = np.array([0.5, 1.0, 2.0, 9.0])

    def width(n, rows):
        return scales[rows] / np.sqrt(n)

    at = [np.full(4, number) for number in (50, 2, 5_000)]
    found = smallest_budgets(width, 0.05, *at)
    alone = [smallest_budget(partial(alone_width, scale), 0.05, 50, 2, 5_000) for scale in scales]

    assert found.tolist() == alone
    assert found[:3].tolist() == [100, 400, 1600]
    assert found[3] == 5_000  # nothing less will do


def test_a_budget_is_found_to_a_hundredth_where_widths_move_in_steps():
    def width(n, _):
        return 1.0 / np.sqrt(n - n % 7)

    found = int(smallest_budgets(width, 0.03, *[np.array([number]) for number in (40, 10, 9_000)])[0])

    assert width(np.array(found), None) <= 0.03
    assert 1_111 <= found <= 1_111 * 1.01 + 7


def test_a_width_that_is_not_known_yet_is_taken_for_too_wide():
    assert smallest_budget(lambda n: np.inf if n < 30 else 1 / n, 0.02, 5, 2, 1_000) == 50
