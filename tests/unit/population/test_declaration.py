"""What the user says of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stratal
from stratal.errors import InputError
from stratal.population.declaration import declare_columns
from stratal.population.proxy_info import infer_proxy_info

NAMES = ["id", "proxy", "judge", "second", "language"]


def test_all_kinds_of_columns() -> None:
    declared = declare_columns(
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
    assert declared.number_columns == ("proxy", "judge", "second")
    assert declared.columns == ("id", "proxy", "judge", "second", "language")


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"proxy": "prox"}, "rows.csv: no such column: 'prox' (allowed: 'proxy', "),
        ({"id": "key"}, "no such column: 'key'"),
        ({"groups": ["languages"]}, "'language'"),
        ({"show": [3]}, "show must name columns"),
        ({"proxy": 3}, "proxy must name columns"),
        ({"id": 3}, "the name of a column must be text"),
        ({"second_moment": "second"}, "0 proxies"),
        ({"second_moment": {"judge": "second"}}, "not a proxy: no such column: 'judge'"),
        ({"proxy": "proxy", "second_moment": "third"}, "no such column: 'third'"),
    ],
)
def test_what_is_refused(keywords: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        declare_columns(keywords, NAMES, "rows.csv")
    assert words in str(caught.value)


def test_proxies_may_be_named_by_a_pattern():
    names = ["id", "model-0", "model-1", "other"]

    assert declare_columns({"proxy": "model-*"}, names, "the table").proxies == ("model-0", "model-1")
    assert declare_columns({"proxy": ["other", "model-?"]}, names, "the table").proxies == (
        "other",
        "model-0",
        "model-1",
    )
    with pytest.raises(InputError, match=r"no column matches proxy.*judge\*"):
        declare_columns({"proxy": "judge*"}, names, "the table")


@pytest.mark.parametrize(
    ("extent", "label", "scaled"),
    [
        ((0.02, 0.98), (0.0, 100.0), False),
        ((0.0, 1.0), (0.0, 5.0), False),
        ((0.0, 9.0), (0.0, 100.0), False),
        ((1.0, 1.3), (1.0, 5.0), False),
        ((0.0, 1.0), (0.0, 1.0), True),
        ((0.001, 0.04), (0.0, 1.0), True),
        ((3.0, 96.0), (0.0, 100.0), True),
        ((1.0, 5.0), (1.0, 5.0), True),
    ],
)
def test_a_proxy_on_another_scale_than_the_labels_only_orders_units(extent, label, scaled):
    low, high = extent
    by_label = infer_proxy_info("score", low, high, None, None, label_bounds=label)
    by_bounds = infer_proxy_info("score", low, high, label, None)

    assert (by_label.scaled, by_bounds.scaled) == (scaled, scaled)
    assert by_label.bounds == by_bounds.bounds == label


def test_a_plan_with_a_proxy_on_another_scale_expects_nothing_of_it():
    score = np.random.default_rng(3).random(400)
    plan = stratal.plan(stratal.Population.from_arrays(proxy={"score": score}, label=(0, 100)), 60)

    assert plan.expected_half_width is None
    assert 4.0 < plan.recommended.worst_standard_error < 7.0
