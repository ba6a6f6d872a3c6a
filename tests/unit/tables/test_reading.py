"""How a file is to be read."""

from __future__ import annotations

import pytest

from stratal.errors import InputError
from stratal.tables.source import check_read_options


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"engine": "presto"}, "no such engine"),
        ({"master": "local[2]"}, "engine='spark'"),
        ({"engine": "spark", "threads": 2}, "threads .* engine=.duckdb"),
        ({"engine": "spark", "memory": "2GB"}, "memory .* engine=.duckdb"),
        ({"threads": 0}, "threads must be a whole number above 0"),
        ({"threads": True}, "threads must be a whole number above 0"),
        ({"memory": "2"}, "with a unit"),
    ],
)
def test_what_cannot_be_is_refused(given, words):
    with pytest.raises(InputError, match=words):
        check_read_options(given)
