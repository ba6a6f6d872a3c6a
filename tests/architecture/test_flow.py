"""One real call of each verb passes few files and few functions: the way of the data has no zigzag."""

from __future__ import annotations

import pytest
from tests.architecture.house import HERE, passed

MOST = {
    "plan": (15, 68),
    "draw": (13, 44),
    "estimate": (11, 79),
    "confidence_interval": (11, 59),
}
"""Files and functions. Where a change needs more, look first for a way that was taken twice."""


@pytest.fixture(scope="module")
def counts() -> dict[str, tuple[int, int]]:
    found = {}
    for name, text in passed(HERE).items():
        words = text.split()
        found[name.split("`")[1]] = int(words[0]), int(words[2])
    return found


@pytest.mark.parametrize("verb", MOST)
def test_a_call_passes_no_more_than_it_did(counts: dict[str, tuple[int, int]], verb: str) -> None:
    files, functions = counts[verb]

    assert files <= MOST[verb][0]
    assert functions <= MOST[verb][1]
