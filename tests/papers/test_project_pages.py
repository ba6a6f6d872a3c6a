"""Pages that the reproductions write into the docs, the numbers that are stored, and the print."""

import json
from pathlib import Path

import numpy as np
import pytest
from papers.claims import Claim, Number
from papers.classifiers import DIGITS, trained_tasks
from papers.page import Page, digest, libraries, markdown_table
from papers.printed import COLUMNS, printed_rows
from papers.project_pages import MARK, STORED, TABLES, differences, write_project_page
from tests.tiers import SLOW, cells

from papers import PAPERS, reproduce


def stored_numbers(path):
    return json.loads(path.read_text(encoding="utf-8"))


DOCS = Path(__file__).resolve().parents[2] / "docs" / "papers"


def test_the_ranges_are_those_of_all_34_printed_rows(shared):
    rows = printed_rows(shared / "data")

    assert len(rows) == 34
    for column, ends in COLUMNS.items():
        values = [row[column] for row in rows.values()]
        assert (min(values), max(values)) == ends
    assert COLUMNS["SRS DF", "f*"] == (0.27, 1.82)
    assert rows["SmallNorb (Azimuth)"]["SRS DF", "f*c"] == 1.06
    assert rows["SmallNorb (Azimuth)"]["SSRS proportional HT", "f*c"] == 1.05


def test_no_rows_are_printed_where_the_file_is_not_there(tmp_path):
    assert printed_rows(tmp_path) == {}


def small_page(folder):
    page = Page(title="A paper", directory=folder, opening=["What was run."], seed=5)
    page.claim(where="§1", says="a", found="b", numbers=[Number(value=1.0, low=0.0)])
    page.add_table("Table 1, ours", ["n"], [[1]])
    page.add_table("Another", ["n"], [[2]])
    (folder / "figure_1.png").write_bytes(b"a picture")
    page.add_figure("Figure 1", folder / "figure_1.png", "Bands.")
    page.write()
    return page


def test_what_follows_the_mark_is_written_anew_and_the_rest_is_kept(tmp_path):
    output, docs = tmp_path / "out", tmp_path / "docs"
    output.mkdir()
    docs.mkdir()
    (docs / "fogliato.md").write_text(f"# Title\n\nBy hand.\n\n{MARK}\n\nOld results.\n")
    page = small_page(output)
    first = write_project_page(page, page, "fogliato", docs).read_text()
    again = write_project_page(page, page, "fogliato", docs).read_text()

    assert first == again
    assert f"seed 5. Numbers: `{digest(stored_numbers(docs / STORED / 'fogliato.json'))}`" in first
    assert first.startswith("# Title\n\nBy hand.\n")
    assert "Old results" not in first
    assert "## Table 1, ours" in first
    assert "Another" not in first
    assert "![Figure 1](figures/fogliato-figure_1.png)\n\nBands." in first
    assert (docs / "figures" / "fogliato-figure_1.png").read_bytes() == b"a picture"


@pytest.mark.parametrize("paper", PAPERS)
def test_every_paper_has_its_page_with_results_and_pictures(paper):
    text = (DOCS / f"{paper}.md").read_text(encoding="utf-8")
    pictures = [line.split("](")[1].rstrip(")") for line in text.splitlines() if line.startswith("![")]

    assert MARK in text
    assert pictures
    assert all((DOCS / picture).is_file() for picture in pictures)
    assert paper in TABLES


def test_no_row_is_without_verdict_deviation_error_and_allowance():
    for paper in PAPERS[:3]:
        rows = [
            [cell.strip() for cell in line.strip("|").replace("\\|", "/").split("|")]
            for line in (DOCS / f"{paper}.md").read_text(encoding="utf-8").splitlines()
            if line.startswith(("| Fig", "| §", "| eq.", "| Prop", "| Cor", "| App", "| Table"))
        ]
        assert len(rows) > 12, paper
        for row in rows:
            assert len(row) == 8
            assert all(row[-4:]), row


@pytest.mark.parametrize("paper", PAPERS)
def test_a_page_is_that_of_its_stored_numbers(paper):
    text = (DOCS / f"{paper}.md").read_text(encoding="utf-8")
    whole, quick = (stored_numbers(DOCS / STORED / f"{paper}{ending}.json") for ending in ("", "-quick"))

    assert digest(whole) in text
    assert digest({key: quick[key] for key in whole}) in text
    assert all(
        markdown_table([], [[c["where"], c["paper_says"]]]).splitlines()[-1][:-2] in text
        for c in whole["claims"]
    )


def run_quickly(paper, folder, data):
    """Run a paper as its stored numbers were made."""
    figure = pytest.importorskip("matplotlib.figure")
    pytest.importorskip("sklearn")
    with pytest.MonkeyPatch.context() as patch:
        if not SLOW:  # pictures are most of a run
            patch.setattr(figure.Figure, "savefig", lambda _, path: path.write_bytes(b"-"))
        return reproduce(paper, folder, data=data, quick=True, seed=0)


@pytest.mark.parametrize("paper", cells(PAPERS, fast=["stratppi"]))
def test_a_quick_run_gives_the_numbers_that_are_stored(paper, shared, tmp_path):
    """Where page and code part, `make papers` writes both again: look at what changed before it is kept."""
    stored = stored_numbers(DOCS / STORED / f"{paper}-quick.json")
    if stored["libraries"] != libraries():
        pytest.skip("other versions train other classifiers: stored with " + str(stored["libraries"]))
    page = run_quickly(paper, tmp_path, shared / "data")

    assert stored["seed"] == page.seed
    assert differences(stored, page.numbers()) == []
    assert all(path.exists() for path in page.files)
    assert page.stamp() in (page.directory / "page.md").read_text()
    assert len([path for path in page.files if path.suffix == ".png"]) >= 5


def test_every_experiment_has_a_row():
    stored = {paper: stored_numbers(DOCS / STORED / f"{paper}-quick.json")["claims"] for paper in PAPERS}
    where = {paper: {claim["where"] for claim in claims} for paper, claims in stored.items()}

    assert where["fogliato"] >= {f"Fig. {n}" for n in (1, 4, 5, 6, 7)} | {"Table 1", "Fig. 1, abstract"}
    assert where["kumar-raj"] >= {"abstract", "eq. 14", "Fig. 9"}
    assert where["stratppi"] >= {"App. B, eq. 63", "Fig. 2, Seahorse", "Fig. 2, AttributedQA", "Fig. 3"}


def test_a_claim_on_tasks_needs_five():
    sets = {"where": "§1", "says": "", "found": "", "numbers": [Number(value=1.0, low=0.0)]}
    few = Claim(**sets, sets=4)
    assert Claim(**sets, sets=5).verdict == "yes"
    assert (few.verdict, few.holds) == ("open: 4 sets are too few", None)
    none = Claim(where="§1", says="", found="", numbers=())
    assert (none.verdict, none.holds) == ("not run: no data", None)


@pytest.mark.slow
def test_a_kernel_that_is_one_per_cent_off_parts_from_the_stored_numbers(shared, tmp_path, monkeypatch):
    """The stratified variance times 1.01, as a slip would have it."""
    from stratal.simulation import engine

    stored = stored_numbers(DOCS / STORED / "fogliato-quick.json")
    exact = engine.exact_variance

    def off(sizes, *columns, **options):
        return (1.01 if len(sizes) > 1 else 1.0) * exact(sizes, *columns, **options)

    monkeypatch.setattr(engine, "exact_variance", off)
    page = run_quickly("fogliato", tmp_path, shared / "data")

    assert len(differences(stored, page.numbers())) >= 5


def test_probabilities_are_rounded_so_that_versions_do_not_move_the_draws():
    pytest.importorskip("sklearn")
    for model in trained_tasks(quick=True, seed=3)[0].models.values():
        assert np.array_equal(model.population, np.round(model.population, DIGITS))
