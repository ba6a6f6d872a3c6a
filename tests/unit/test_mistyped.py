"""Arguments of the wrong type, and paths that are no text, are one error that names them."""

from __future__ import annotations

import os

import numpy as np
import pytest

import stratal
from stratal.errors import InputError

UNITS = stratal.Population.from_arrays(proxy=np.linspace(0.1, 0.9, 100), groups={"kind": ["a", "b"] * 50})
SAMPLE = stratal.designs.SimpleRandom(budget=20).draw(UNITS, seed=1)
LABELS = np.arange(20) % 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stratal.estimate(SAMPLE, LABELS, bounds=(0, None)), r"bounds= cannot be this tuple"),
        (
            lambda: stratal.designs.post_stratify(SAMPLE, stratal.strata.stratify(UNITS)),
            r"by= cannot be this Strata",
        ),
        (lambda: stratal.Population.read(os.fsdecode(b"no\xff.csv"), proxy="p"), r"is not UTF-8"),
    ],
)
def test_each_ended_in_a_traceback(call, message):
    with pytest.raises(InputError, match=message):
        call()
