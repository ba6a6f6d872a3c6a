"""`help()` of a function whose keywords are a record's fields lists them all."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

import stratal
from stratal.errors import keywords_from

LISTED = [
    stratal.Population.from_arrays,
    stratal.Population.from_estimator,
    stratal.Population.from_table,
    stratal.Population.read,
    stratal.Sample.from_labelled,
]


@pytest.mark.parametrize("function", LISTED, ids=lambda function: function.__qualname__)
def test_every_keyword_is_shown_and_explained(function):
    shown = inspect.signature(function).parameters
    parameters = inspect.getdoc(function).split("Parameters\n")[1].split("\nRaises")[0]

    assert not [name for name, one in shown.items() if one.kind is one.VAR_KEYWORD]
    assert len(shown) > 7
    for name in shown:
        assert re.search(rf"^(\w+, )*{name}(, \w+)*( :|$)", parameters, re.MULTILINE), name


def test_what_the_function_names_itself_is_not_shown_twice():
    class Wanted:
        def __init__(self, *, size: int = 3, path: str = "", seed: int = 0) -> None: ...

    @keywords_from(Wanted, without=("seed",))
    def draw(path: str, **wanted: object) -> None: ...

    assert list(inspect.signature(draw).parameters) == ["path", "size"]


def test_a_keyword_that_does_not_exist_is_refused():
    make: Any = stratal.Population.from_arrays
    with pytest.raises(TypeError, match=r"Population.from_arrays\(\) got .*'proxies'; it takes 'proxy'"):
        make(proxies=[0.1, 0.9])
    table: Any = stratal.Population.from_table
    with pytest.raises(TypeError, match=r"Population.from_table\(\) got .*'proxies'; it takes 'proxy'"):
        table({"id": [1]}, proxies="p")
    read: Any = stratal.Population.read
    with pytest.raises(TypeError, match=r"Population.read\(\) got .*'proxies'; it takes 'proxy'"):
        read("p.csv", proxies="p")


def test_a_missing_keyword_is_listed_first():
    @keywords_from()
    def draw(path: str, *, seed: int = 0, budget: int) -> None: ...

    untyped: Any = draw
    with pytest.raises(TypeError, match=r"draw\(\) missing .*'budget'; it takes 'budget', 'seed'$"):
        untyped("p.csv")
