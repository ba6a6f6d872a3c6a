"""A plan in words: what is shown of thousands of strata."""

from stratal.report.pages import plan_page
from stratal.report.text import MAX_ROWS, page_text

PLAN = {
    "budget": 20,
    "confidence_level": 0.95,
    "population_size": 100_000,
    "recommended": {
        "design": "stratified",
        "estimator": "horvitz-thompson",
        "expected_standard_error": None,
        "relative_efficiency": None,
    },
    "designs": [],
    "assumptions": [],
    "notes": [],
}


def strata(count):
    facts = {"size": 10, "n": 5, "proxy_mean": 0.5, "expected_standard_deviation": None}
    return [{"name": f"s{number}", **facts} for number in range(count)]


def test_of_thousands_of_strata_the_first_are_shown_and_the_plan_says_where_all_are():
    text = page_text(plan_page(PLAN | {"strata": strata(5_000)}))

    assert f"s{MAX_ROWS - 1} " in text
    assert f"s{MAX_ROWS} " not in text
    assert f"… and {5_000 - MAX_ROWS:,} more: see --json or to_dict()" in text
