from __future__ import annotations

import numpy as np
import pytest

from stratal.intervals.proportion import student_quantile


@pytest.mark.parametrize("freedom", [1.0, 2.0, 5.5, 19.0, 190.0, 1e6, np.inf])
def test_the_quantiles_of_certainty_are_infinite_on_their_own_side(freedom):
    ends = student_quantile(np.array([0.0, 1.0]), freedom)

    assert ends.tolist() == [-np.inf, np.inf]
