"""What the user says of columns."""

from __future__ import annotations

from typing import Any

import pytest

from stratal.errors import InputError
from stratal.population.declaration import declaration_of

NAMES = ["id", "proxy", "judge", "second", "language"]


def test_all_kinds_of_columns() -> None:
    declared = declaration_of(
        {
            "proxy": ["proxy", "judge", "proxy"],
            "groups": "language",
            "second_moment": {"judge": "second"},
            "show": ("id",),
            "predicted": "language",
        },
        NAMES,
        "rows.csv",
    )

    assert declared.id == "id"
    assert declared.proxies == ("proxy", "judge")
    assert declared.groups == ("language",)
    assert declared.numbers == ("proxy", "judge", "second")
    assert declared.used == ("id", "proxy", "judge", "second", "language")


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"proxy": "prox"}, "rows.csv: no such column: 'prox' (allowed: 'proxy')"),
        ({"id": "key"}, "no such column: 'key'"),
        ({"groups": ["languages"]}, "'language'"),
        ({"show": [3]}, "show must name columns"),
        ({"proxy": 3}, "proxy must name columns"),
        ({"id": 3}, "a column is named by text"),
        ({"second_moment": "second"}, "0 proxies"),
        ({"second_moment": {"judge": "second"}}, "not a proxy: no such column: 'judge'"),
        ({"proxy": "proxy", "second_moment": "third"}, "no such column: 'third'"),
    ],
)
def test_what_is_refused(keywords: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        declaration_of(keywords, NAMES, "rows.csv")
    assert words in str(caught.value)


def test_proxies_may_be_named_by_a_pattern():
    names = ["id", "model-0", "model-1", "other"]

    assert declaration_of({"proxy": "model-*"}, names, "the table").proxies == ("model-0", "model-1")
    assert declaration_of({"proxy": ["other", "model-?"]}, names, "the table").proxies == (
        "other",
        "model-0",
        "model-1",
    )
    with pytest.raises(InputError, match=r"no column fits proxy.*judge\*"):
        declaration_of({"proxy": "judge*"}, names, "the table")
