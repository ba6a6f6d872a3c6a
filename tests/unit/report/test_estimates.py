"""One wording of an estimate, for terminal, notebook and command."""

import re

import numpy as np
import pytest

import stratal
from stratal.report.estimates import answer_page, details_page, estimates_table, groups_sentence
from stratal.report.notes import UNLABELLED, Note
from stratal.report.text import MAX_ROWS, Page, page_text

FOUND = {
    "quantity": "accuracy",
    "share": True,
    "estimate": 0.949,
    "standard_error": 0.01383,
    "confidence_interval": [0.9095, 0.9741],
    "confidence_level": 0.95,
    "interval_method": "t",
    "n": 100,
    "population_size": 1497,
    "design": "stratified",
    "estimator": "ppi++",
    "outcome": "binary",
    "target": "population",
    "effective_sample_size": 219.4,
    "effective_sample_size_interval": [150.2, 310.0],
    "random_labels_of_equal_width": None,
    "nonresponse": {"drawn": 100, "labelled": 100, "rate": 0.0},
    "lam": [],
    "strata": [],
    "notes": [],
}


def strata(number):
    row = {"size": 10, "n": 2, "mean": 0.5, "standard_deviation": None}
    return [{"name": f"s{h}", **row} for h in range(number)]


ANSWER = "Accuracy 94.9% (95% interval 91.0% to 97.4%), 100 labels"


def test_details_follow_the_answer():
    answer = [ANSWER, "As precise as about 219 random labels (150 to 310)"]

    assert page_text(answer_page(FOUND)).splitlines() == answer
    assert page_text(details_page(FOUND)).splitlines() == [
        *answer,
        "Standard error 1.4 points; 100 labels of 1,497 units; stratified sample, ppi++ estimator, "
        "t interval, binary outcome, target: population",
    ]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"n": 1, "nonresponse": {"drawn": 1, "labelled": 1, "rate": 0.0}}, "97.4%), 1 label\n"),
        ({"n": 40}, "97.4%), 40 of 100 labels\n"),
        ({"random_labels_of_equal_width": 120.0}, "As precise as about 120 random labels\n"),
        ({"lam": [0.5, 1.0]}, "λ = 0.5, 1"),
        (
            {"nonresponse": {"drawn": 25, "labelled": 22, "rate": 0.12}},
            "3 of 25 drawn units have no label (12.0%)",
        ),
        (
            {"nonresponse": {"drawn": 25, "labelled": 22, "rate": 0.12, "worst_bounds": [0.8, 0.92]}},
            "missing at random within strata. If all units without a label had the lowest possible outcome, "
            "the estimate without a proxy would be 80.0%; with the highest possible outcome, 92.0%.",
        ),
        ({"confidence_interval": [None, 0.5]}, "(95% interval −∞ to 0.5)"),
        (
            {"confidence_interval": None, "no_interval": "all agree"},
            "Accuracy 94.9%, 100 labels; no interval: all agree",
        ),
        ({"estimate": None}, "Accuracy is undefined (95% interval 91.0% to 97.4%)"),
        ({"probability": 0.5, "share": False}, "0.5 quantile: 0.949 (95% interval 0.9095 to 0.9741)"),
        ({"estimate": 0.9997}, "Accuracy 99.97% (95%"),
        (
            {"estimate": -0.031, "bounds": [-1.0, 1.0], "confidence_interval": [-0.07, 0.01]},
            "Accuracy −3.1 points (95% interval −7.0 to 1.0 points)",
        ),
        ({"notes": ["few labels", "A sentence."]}, "Note: few labels.\nNote: A sentence."),
    ],
)
def test_what_is_said_where_it_matters(change, line):
    assert line in page_text(details_page(FOUND | change))


def test_an_unknown_number_of_equivalent_labels_is_not_mentioned():
    assert "random labels" not in page_text(details_page(FOUND | {"effective_sample_size": None}))


def test_strata_are_details():
    found = FOUND | {"strata": strata(15)}

    assert len(details_page(found).tables[0].rows) == 15
    assert not answer_page(found).tables


@pytest.mark.parametrize("name", ["strata", "domains"])
def test_of_thousands_of_rows_the_first_are_printed_and_the_page_says_where_all_are(name):
    rows = {"strata": strata, "domains": domains}[name]
    text = page_text(details_page(FOUND | {name: rows(5_000)}))

    assert f"… and {5_000 - MAX_ROWS:,} more: see --json or to_dict()" in text
    assert "more" not in page_text(details_page(FOUND | {name: rows(MAX_ROWS)}))


def test_rows_with_different_entries_share_a_table():
    table = estimates_table("Metrics", [{"a": 1, "more": {"b": 2}}, {"a": 2, "p_value": 0.5}], 0.9)

    assert (table.header, table.rows) == (["a", "p"], [[1, None], [2, 0.5]])


def test_an_estimate_without_an_interval_still_prints():
    population = stratal.Population.from_arrays(proxy=np.linspace(0, 1, 50))
    sample = stratal.designs.SimpleRandom(budget=5).draw(population, seed=1)
    estimate = stratal.estimate(sample, [2.0] * 5, outcome="unbounded")

    assert re.match(r"Mean outcome 2, 5 labels; no interval: .+", str(estimate))
    assert "no interval" in estimate._repr_html_()


def test_an_empty_page_is_empty_text():
    assert page_text(Page()) == ""


def lines_of(page):
    """Count what a terminal shows: lines, a blank line, title and header for each table, notes below one."""
    tables = sum(3 + len(table.rows) for table in page.tables)
    return len(page.lines) + tables + (1 + len(page.notes) if page.notes else 0)


def domains(number):
    row = {"standard_error": 0.1, "confidence_interval": [0.1, 0.9], "n": 5}
    return [{"domain": f"g{k}", "estimate": 0.9 - k / 100, **row} for k in range(number)]


@pytest.mark.parametrize("notes", [0, 1, 30])
@pytest.mark.parametrize("groups", [0, 2, 12])
@pytest.mark.parametrize("others", [0, 40])
def test_an_answer_has_at_most_13_lines_and_the_next_command_unless_tables_are_requested(
    notes, groups, others
):
    found = FOUND | {
        "strata": strata(15),
        "notes": [f"n{k}" for k in range(notes)],
        "n": 22,
        "nonresponse": {"drawn": 25, "labelled": 22, "rate": 0.12},
        "requirements": [{"required": "value>=0.9", "verdict": "PASS", "more_labels": None}],
        "more_labels": [{"labels": 100, "half_width": 0.03}, {"labels": 200, "half_width": 0.02}],
    }
    if groups:
        found["domains"] = domains(groups)
    if others:
        found["metrics"] = domains(others)
    page = answer_page(found)

    assert [len(table.rows) for table in page.tables] == [min(n, 12) for n in (others, groups) if n]
    assert lines_of(page) <= (13 if not others and groups < 12 else 13 + 2 * 15)
    assert page.lines[0] == ANSWER.replace("100 labels", "22 labels")
    assert "Required value>=0.9: PASS." in page.lines
    assert not any("Standard error" in line for line in page.lines)
    if groups == 12 and not others:
        table = page.tables[0]
        assert [row[0] for row in table.rows][:3] == ["g11", "g10", "g9"]
    if notes == 30:
        assert "--details" in page.notes[-1]
    if notes == 1:
        assert page.notes == ["Note: n0."]


@pytest.mark.parametrize(
    ("row", "line"),
    [
        (
            {"estimate": 0.03, "confidence_interval": [-0.01, 0.07], "more_labels": 350},
            "a and b: undecided; about 350 more labels may be enough to decide. "
            "a − b: 3.0 points (95% interval −1.0 to 7.0 points)",
        ),
        ({"estimate": 0.03, "confidence_interval": [0.01, 0.07]}, "a is above b. a − b: 3.0 points (95%"),
        ({"estimate": -0.03, "confidence_interval": [-0.07, -0.01]}, "b is above a. a − b: −3.0 points (95%"),
        ({"estimate": 0.0, "confidence_interval": None}, "a and b: undecided (no interval)."),
    ],
)
def test_two_models_take_one_line(row, line):
    page = answer_page(
        FOUND | {"outcome": "binary", "comparisons": [{"a": "a", "b": "b", "share": True, **row}]}
    )

    assert line in page.lines[-1]
    assert not page.tables


def test_an_answer_says_once_what_is_not_labelled():
    missing = {"nonresponse": {"drawn": 25, "labelled": 22, "rate": 0.12}}
    repeated = Note(UNLABELLED, "3 of 25 drawn units have no label (12.0%)")
    notes = [repeated, "another note"]
    text = page_text(answer_page(FOUND | missing | {"notes": notes}))
    assert text.count("drawn units have no label") == 1
    assert "Note: another note." in text


def test_the_forecast_with_labels_of_all_units_is_exact():
    more_labels = [{"labels": 100, "half_width": 0.046}, {"labels": 200, "half_width": 0.025}]
    all_units = {"labels": 400, "half_width": 0.0}

    text = page_text(answer_page(FOUND | {"more_labels": [*more_labels, all_units]}))

    assert "With 200 labels: interval about 5 points wide; with all 400: exact" in text


def groups_with(*lam_of_groups):
    names = {"estimate": 0.9, "standard_error": 0.1, "confidence_interval": [0.8, 1.0], "share": True, "n": 9}
    return [
        {"domain": f"g{k}", **names, "estimator": "ppi++" if lam else "linearised", "lam": lam}
        for k, lam in enumerate(lam_of_groups)
    ]


@pytest.mark.parametrize(
    ("of_all", "of_groups", "sentence"),
    [
        ([], ([1.007], [1.007]), "Groups: corrected by the proxy (λ = 1.007); "),
        ([], ([0.5, 0.0], [1.25, 0.0], []), "Groups: corrected by the proxy (λ = 0.5 to 1.25); "),
        ([0.9], ([], []), "Groups: from the weighted labels alone, without the proxy"),
        ([0.9], ([0.7], [0.7]), None),
        ([], ([], []), None),
    ],
)
def test_a_sentence_says_where_groups_have_another_estimator_than_all_units(of_all, of_groups, sentence):
    result = FOUND | {"lam": of_all, "domains": groups_with(*of_groups)}
    stated = groups_sentence(result)

    assert (stated is None) == (sentence is None)
    for page in (answer_page(result), details_page(result)):
        lines = [line for line in page.lines if line.startswith("Groups")]
        assert lines == [] if stated is None else lines == [stated] and stated.startswith(sentence)
        header = page.tables[-1].printed().header
        assert list(header) == ["group", "estimate", "standard error", "95% interval", "n"]
