"""Aligned tables, and the same page as HTML."""

import json

import numpy as np

import stratal
from stratal.report.text import (
    Page,
    ReportTable,
    format_number,
    interval_text,
    json_value,
    page_html,
    page_text,
    value_text,
)

TABLE = ReportTable(
    title="Letters",
    header=("letter", "kind", "count", "share"),
    rows=[("a", "vowel", 1200, 0.5), ("b<", "other", 7, None)],
)


def test_numbers_stand_to_the_right_and_text_to_the_left():
    assert page_text(Page(lines=["Two:"], tables=[TABLE], notes=["Note: few."])).splitlines() == [
        "Two:",
        "",
        "Letters",
        "letter  kind   count   share",
        "a       vowel  1,200  0.5000",
        "b<      other      7       –",
        "",
        "Note: few.",
    ]


def test_wide_letters_take_two_places():
    table = ReportTable(header=["name", "kind", "n"], rows=[["漢字漢", "x", 1], ["abc", "y", 2]])

    assert page_text(Page(tables=[table])).splitlines()[1:] == ["漢字漢  x     1", "abc     y     2"]


def test_a_table_without_rows_keeps_its_header():
    assert page_text(Page(tables=[ReportTable(header=("a", "b"), rows=[])])) == "a  b"


def test_html_escapes_what_is_shown():
    shown = page_html(Page(lines=["1 < 2"], tables=[TABLE]))

    assert "<p>1 &lt; 2</p>" in shown
    assert "<td>b&lt;</td>" in shown


def test_plain_values_are_json():
    values = {"a": np.array([1.0, np.nan]), "b": (np.int64(3), -np.inf), "c": {"d": np.float64(0.5)}}

    assert json.loads(json.dumps(json_value(values))) == {"a": [1.0, None], "b": [3, None], "c": {"d": 0.5}}


def test_the_repr_of_a_result_is_one_line():
    population = stratal.Population.from_arrays(
        proxy=np.linspace(0.01, 0.99, 400), groups={"part": np.array(["a", "b"])[np.arange(400) % 2]}
    )
    plan = stratal.plan(population, 60)
    sample = plan.draw(seed=1)
    labels = (sample.ids % 3 > 0).astype(float)
    results = [
        plan,
        plan.strata,
        sample,
        stratal.estimate(sample, labels),
        stratal.estimate(sample, labels, by="part"),
        stratal.evaluate(sample, labels),
        stratal.findings(sample, labels),
        stratal.threshold(sample, labels, require="error<=.9"),
    ]

    for result in results:
        assert "\n" not in repr(result)
        assert len(repr(result)) < 240
        assert type(result).__name__ in repr(result)


def test_rounding_errors_are_not_printed():
    """A mean proxy was 1.4e-14, and a share of 1 was 99.99999999999999%."""
    assert format_number(1.4e-14) == "0"
    assert format_number(-1.4e-14) == "0"
    assert format_number(1.4e-9) == "1.4e-09"
    assert value_text(1.0 - 1e-16, is_share=True) == "100.0%"
    assert value_text(1e-17, is_share=True) == "0.0%"
    assert value_text(0.99997, is_share=True) == "99.997%"
    assert interval_text((1.0 - 2e-16, 1.0), is_share=True) == "100.0% to 100.0%"
