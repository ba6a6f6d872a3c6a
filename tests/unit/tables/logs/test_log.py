"""What every log becomes."""

from __future__ import annotations

import pytest

from stratal.errors import InputError
from stratal.tables.logs.log import LogRow, make_log, unify_column


def test_several_variants_become_columns_and_units_do_not_double():
    rows = [
        LogRow(
            unit=unit,
            variant_columns={"answer": f"{unit}-{variant}"},
            scores={"score": score},
            variant=variant,
        )
        for unit, score in (("a", 1.0), ("b", 0.0))
        for variant in ("large", "small, old")
    ]

    log = make_log("a tool", rows, variants="models")

    assert log.columns["id"] == ["a", "b"]
    assert log.proxies == ("score@large", "score@small; old")
    assert log.columns["answer@large"] == ["a-large", "b-large"]
    assert log.columns_to_show("score@small; old") == ("answer@small; old",)
    assert "2 models (large, small, old)" in log.notes[0]


def test_a_unit_that_one_variant_left_out_lacks_its_score():
    rows = [LogRow(unit="a", scores={"s": 1.0}, variant=v) for v in ("x", "y")]
    rows.append(LogRow(unit="b", scores={"s": 0.0}, variant="x"))

    assert make_log("a tool", rows).columns["s@y"] == [1.0, None]


def test_two_answers_of_one_variant_about_one_unit_are_refused():
    rows = [LogRow(unit="a", scores={"s": 1.0}), LogRow(unit="a", scores={"s": 0.0})]

    with pytest.raises(InputError, match="unit 'a' has two answers"):
        make_log("a tool", rows)


def test_a_log_without_scores_is_refused():
    with pytest.raises(InputError, match="no unit has a score"):
        make_log("a tool", [LogRow(unit="a", variant_columns={"answer": "x"})])


def test_a_cluster_counts_only_where_several_units_share_one():
    alone = [LogRow(unit=u, unit_columns={"sample": u}, scores={"s": 1.0}) for u in "ab"]
    shared = [LogRow(unit=u, unit_columns={"sample": "x"}, scores={"s": 1.0}) for u in "ab"]

    assert make_log("a tool", alone, cluster="sample").cluster is None
    assert make_log("a tool", shared, cluster="sample").cluster == "sample"


def test_columns_are_of_one_kind():
    assert unify_column([True, False]) == [1, 0]
    assert unify_column([2**60, 1]) == [float(2**60), 1.0]
    assert unify_column([None, None]) == [None, None]
    assert unify_column(["007", 7, None]) == ["007", "7", None]
