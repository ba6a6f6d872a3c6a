"""A report's file: escaped, without anything that asks the network, small; Markdown and LaTeX of the same."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import stratal
from stratal.report.document import report_html, report_markdown, table_latex, table_markdown
from stratal.report.sections import report_sections
from stratal.report.text import ReportTable

EVIL = "</td><script>alert(1)</script><img src=x onerror=alert(2)> & \" ' `x` [a](http://b) $x$ \\input"


@pytest.fixture
def found(population, truth):
    sample = stratal.plan(population, budget=60).draw(seed=7)
    labels = {unit: truth[unit] for unit in sample.ids.tolist()}
    return stratal.findings(
        sample,
        labels,
        title=EVIL,
        question=EVIL,
        quantity=EVIL,
        tables=[stratal.estimate(sample, labels, by="language")],
        commands=["stratal report sample.parquet labels.csv --output report.html"],
    ).to_dict()


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found, self.attributes, self.open = [], [], []

    def handle_starttag(self, tag, attrs):
        self.found.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parsed(page):
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    return tags


def test_text_of_the_data_stays_text(found):
    found["strata"][0]["name"] = EVIL
    found["estimate"]["domains"][0]["domain"] = EVIL
    found["estimate"]["notes"].append(EVIL)
    found["examples"] = [{"id": "1", EVIL: EVIL}]

    tags = parsed(report_html(found))

    assert not {"script", "img", "link", "iframe", "object", "a", "input"} & set(tags.found)
    assert not [name for name, _ in tags.attributes if name.startswith("on") or name in ("src", "href")]


def test_nothing_is_asked_of_the_network_and_the_file_is_small(found):
    page = report_html(found | {"title": None, "question": "Right?", "quantity": "accuracy"})

    assert "default-src 'none'" in page
    assert not re.search(r"https?://|url\(|@import", page)
    assert len(page.encode()) < 100_000


def test_every_drawing_has_words_and_ids_are_unique(found):
    page = report_html(found)
    ids = re.findall(r' id="([^"]+)"', page)

    assert len(ids) == len(set(ids))
    drawings = [drawing for section in report_sections(found) for drawing in section.drawings]
    assert len(drawings) >= 4
    assert all(drawing.title and drawing.description for drawing in drawings)


def test_markdown_has_the_same_tables(found):
    text = report_markdown(found)

    assert "<script>" not in text
    for section in report_sections(found):
        for table in section.tables:
            assert table_markdown(table) in text


def test_latex_escapes_and_balances():
    text = table_latex(ReportTable(header=["\\input{x}"], rows=[["a"]], title="\\input{y}"))

    assert "\\input" not in text
    assert text.count("\\begin{") == text.count("\\end{")
    table = ReportTable(header=["50 %"], rows=[["a_b & c"]])
    assert "50 \\%" in table_latex(table)
    assert "a\\_b \\& c" in table_latex(table)


@pytest.mark.parametrize("ending", ["html", "md", "json"])
def test_files_by_their_ending(found, tmp_path, ending):
    from stratal.planning.findings import Findings

    path = Findings(content=found).write(tmp_path / f"report.{ending}")

    assert path.read_text(encoding="utf-8").strip()


def test_another_ending_is_refused(found, tmp_path):
    from stratal.planning.findings import Findings

    with pytest.raises(stratal.InputError, match=r"allowed: \.htm, \.html, \.json, \.md"):
        Findings(content=found).write(tmp_path / "report.pdf")


def test_a_notebook_shows_the_page_in_a_frame_that_runs_nothing(found):
    from stratal.planning.findings import Findings

    shown = Findings(content=found)._repr_html_()

    assert shown.startswith("<iframe")
    assert 'sandbox=""' in shown
    assert "<script>" not in shown


def test_open_intervals_and_undefined_values_are_drawn(found):
    found["estimate"]["domains"] = [
        {"domain": "a", "n": 1, "estimate": 0.5, "standard_error": None, "confidence_interval": [None, 0.9]},
        {"domain": "b", "n": 0, "estimate": None, "standard_error": None, "confidence_interval": None},
    ]

    assert not re.search(r"\bnan\b", report_html(found).lower())
    assert np.isfinite(len(report_markdown(found)))


def test_a_rounding_error_below_zero_is_printed_as_zero():
    """The mean proxy of a stratum of zeros was printed as -0.0000."""
    table = ReportTable(header=("mean",), rows=[[-1e-17], [-0.0], [-0.25]])

    assert [row[0] for row in table.cells()] == ["0.0000", "0.0000", "-0.2500"]
