"""p-values of any interval."""

from __future__ import annotations

import numpy as np
import pytest

from stratal.errors import InputError
from stratal.intervals.interval import p_value_by_inversion, two_sided_level


def test_a_p_value_is_one_minus_the_smallest_level_that_holds_the_null():
    for null in (1e-9, 0.3, 0.999):
        assert p_value_by_inversion(null, lambda level: (-level, level)) == pytest.approx(1 - null, rel=1e-9)


def test_open_and_far_ends_do_not_matter():
    assert p_value_by_inversion(-5.0, lambda level: (-np.inf, level)) == 1.0
    assert p_value_by_inversion(
        0.25, lambda level: (-np.inf, np.inf if level > 0.75 else -1.0)
    ) == pytest.approx(0.25)


@pytest.mark.parametrize("null", [float("nan"), "x", [0.1, 0.2], None])
def test_what_is_no_number_is_refused(null):
    with pytest.raises(InputError, match="hypothetical value is not a number"):
        p_value_by_inversion(null, lambda level: (-level, level))


def test_a_level_has_the_error_on_both_sides_and_is_never_0():
    assert two_sided_level(0.025) == pytest.approx(0.95)
    assert 0.0 < two_sided_level(0.5) < 1e-9
