"""Arguments of the wrong type that users confuse, and paths that are not text, are one error."""

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
        (lambda: stratal.estimate(SAMPLE, LABELS, bounds=(0, None)), r"bounds must be two finite numbers"),
        (lambda: stratal.estimate(SAMPLE, LABELS, bounds="01"), r"bounds must be two finite numbers"),
        (lambda: stratal.estimate(SAMPLE, LABELS, limits=("0", "1")), r"limits must be two finite numbers"),
        (
            lambda: stratal.strata.allocate(stratal.strata.stratify(UNITS), 20, method=LABELS),
            r"no such alloc",
        ),
        (lambda: stratal.estimate(SAMPLE, LABELS, population={"id": [1]}), r"takes a Population"),
        (lambda: stratal.estimate(SAMPLE, LABELS, predicts=2), r"predicts= cannot be read"),
        (lambda: stratal.estimate(SAMPLE, LABELS).confidence_interval((0.9,)), r"confidence_level is out"),
        (lambda: stratal.strata.allocate(SAMPLE, 20), r"allocate takes Strata"),
        (lambda: stratal.Sample.read(SAMPLE), r"Sample.read takes a path"),
        (lambda: stratal.Population.read(os.fsdecode(b"no\xff.csv"), proxy="p"), r"is not valid UTF-8"),
    ],
)
def test_each_ended_in_a_traceback(call, message):
    with pytest.raises(InputError, match=message):
        call()
