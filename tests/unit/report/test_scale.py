"""Ticks are round, within the scale, and few."""

from hypothesis import given
from hypothesis import strategies as st

from stratal.report.drawings import Scale, ticks


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_lie_within(low, width):
    found = ticks(low, low + width)

    assert len(found) <= 6
    assert all(low - 1e-6 * width <= tick <= low + width * (1 + 1e-6) for tick in found)
    assert found == sorted(set(found))


def test_a_scale_always_has_width():
    scale = Scale.of([0.5, None, 0.5], 0, 10)

    assert scale(0.5) == 5
    assert Scale.of([None], 0, 1).high == 1
