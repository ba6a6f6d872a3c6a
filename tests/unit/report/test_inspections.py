"""What was drawn, in words: what is shown of thousands of strata."""

from stratal.report.pages import draw_page
from stratal.report.text import MAX_ROWS, page_text

DRAWN = {
    "n": 25_000,
    "population_size": 50_000,
    "design": "stratified",
    "seed": 7,
    "round": 1,
    "new": 25_000,
    "sample": "audit/sample.parquet",
    "to_label": "audit/to_label.csv",
    "columns_to_fill": ["label"],
}


def strata(count):
    return [[f"s{number}", 10, 5] for number in range(count)]


def test_of_thousands_of_strata_the_first_are_shown_and_the_page_says_where_all_are():
    text = page_text(draw_page(DRAWN, strata(5_000)))

    assert f"s{MAX_ROWS - 1} " in text
    assert f"s{MAX_ROWS} " not in text
    assert f"… and {5_000 - MAX_ROWS:,} more: see --json or to_dict()" in text
