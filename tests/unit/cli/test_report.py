"""`stratal report`: the figures of `estimate --json`, files by their ending, studies, new versions."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.e2e.pasted import write

import stratal

JUDGED = ["report", "audit/sample.parquet", "judged.csv"]


@pytest.fixture
def audit(tmp_path, monkeypatch, run_command):
    """A drawn sample of 300 units with its labels, answers of two versions, and the true classes."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    true, ids = rng.choice(["cat", "dog"], 300), [f"unit-{k}" for k in range(300)]
    old, new = (np.where(rng.random(300) < share, true, "cow") for share in (0.8, 0.9))
    table = {
        "id": ids,
        "confidence": rng.beta(4, 1, 300),
        "answer": old,
        "language": rng.choice(["de", "en"], 300),
        "text": [f"<script>alert({k})</script>" for k in range(300)],
    }
    pyarrow.parquet.write_table(pa.table(table), "predictions.parquet")
    options = "--proxy confidence --predicted answer --groups language --show text --budget 80 --seed 7"
    run_command("draw", "predictions.parquet", *options.split(), "--output", "audit")
    sample = stratal.Sample.read("audit/sample.parquet")
    place = {name: k for k, name in enumerate(ids)}
    drawn = sample.ids.tolist()
    write("classes.csv", ["id", "label"], [[unit, true[place[unit]]] for unit in drawn])
    judged = [[unit, int(true[place[unit]] == old[place[unit]])] for unit in drawn]
    write("judged.csv", ["id", "label"], judged)
    write("new.csv", ["id", "answer"], zip(ids, new, strict=True))
    return sample


def figures(run_command, *words):
    done = run_command(*words, "--json")
    assert done.status == 0, done.message
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "options",
    [
        "classes.csv --predicted answer",
        "classes.csv --predicted answer --metric accuracy,f1 --by language",
        "judged.csv --estimator ppi++ --interval t --confidence-level 0.9",
        "judged.csv --target superpopulation",
    ],
)
def test_figures_are_those_of_estimate(audit, run_command, options):
    words = ["audit/sample.parquet", *options.split()]
    report = figures(run_command, "report", *words, "--output", "report.json")

    assert report["estimate"] == figures(run_command, "estimate", *words)
    with open("report.json") as stream:
        assert json.load(stream) == report


def test_every_figure_of_the_estimate_stands_in_the_page(audit, run_command, tmp_path):
    words = ["audit/sample.parquet", "classes.csv", "--predicted", "answer", "--by", "language"]
    found = figures(run_command, "estimate", *words)
    done = run_command("report", *words, "--output", "report.html")
    page = (tmp_path / "report.html").read_text()

    low, high = found["confidence_interval"]
    assert f"Accuracy {100 * found['estimate']:.1f}%, 95% interval {100 * low:.1f}–{100 * high:.1f}%" in page
    for row in [*found["domains"], *found["strata"]]:
        assert f"{row.get('mean', row.get('estimate')):.4f}" in page
    assert "Report: report.html" in done.stdout


def test_the_printed_commands_make_it_again(audit, run_command, tmp_path):
    words = ["audit/sample.parquet", "classes.csv", "--predicted", "answer", "--interval", "wilson"]
    first = figures(run_command, "report", *words, "--output", "report.json")
    estimate, again = first["provenance"]["commands"]

    assert (
        estimate == "stratal estimate audit/sample.parquet classes.csv --predicted answer --interval wilson"
    )
    run_command(*again.split()[1:])
    assert json.loads((tmp_path / "report.json").read_text())["estimate"] == first["estimate"]


def test_payload_is_there_only_when_asked_for(audit, run_command, tmp_path):
    words = ["report", "audit/sample.parquet", "judged.csv", "--output", "report.html"]
    run_command(*words)
    assert "alert(" not in (tmp_path / "report.html").read_text()
    run_command(*words, "--with-examples")
    page = (tmp_path / "report.html").read_text()
    assert "&lt;script&gt;alert(" in page
    assert "<script" not in page


def test_a_new_version(audit, run_command):
    words = [
        "report",
        "audit/sample.parquet",
        "judged.csv",
        "--against",
        "new.csv",
        "--output",
        "report.json",
    ]
    found = figures(run_command, *words)["new_version"]
    exact = figures(
        run_command,
        *["report", "audit/sample.parquet", "classes.csv", "--predicted", "answer", "--against", "new.csv"],
        *["--output", "report.json"],
    )["new_version"]

    assert not found["complete"]
    assert exact["complete"]
    assert found["new"]["lowest"] <= exact["new"]["estimate"] <= found["new"]["highest"]
    assert len(found["needs_labels"]) == found["changed"]


def test_labels_of_what_changed(audit, run_command):
    words = [
        "report",
        "audit/sample.parquet",
        "judged.csv",
        "--against",
        "new.csv",
        "--output",
        "report.json",
    ]
    missing = figures(run_command, *words)["new_version"]["needs_labels"]
    write("more.csv", ["id", "label"], [[unit, 1] for unit in missing])
    found = figures(run_command, *words, "--new-labels", "more.csv")["new_version"]

    assert found["complete"]
    assert found["difference"]["estimate"] > 0


@pytest.mark.parametrize("name", ["report.pdf", "predictions.parquet", "classes.csv"])
def test_nothing_else_is_written_over(audit, run_command, name):
    done = run_command("report", "audit/sample.parquet", "judged.csv", "--output", name)

    assert done.status != 0
    assert re.search("unknown kind of report|is not a report", done.message)


def test_a_file_that_is_no_report_stays(audit, run_command, tmp_path):
    (tmp_path / "notes.md").write_text("mine")
    done = run_command("report", "audit/sample.parquet", "judged.csv", "--output", "notes.md")

    assert "is not a report" in done.message
    assert (tmp_path / "notes.md").read_text() == "mine"


def test_options_of_a_new_version_need_one(audit, run_command):
    done = run_command("report", "audit/sample.parquet", "judged.csv", "--output", "r.md", "--answer", "x")

    assert "--answer would have no effect" in done.message


def test_a_study_brings_its_question_and_agreement(tmp_path, monkeypatch, run_command):
    from stratal.study import Question, create_study

    monkeypatch.chdir(tmp_path)
    proxy = np.random.default_rng(0).beta(3, 1, 200)
    population = stratal.Population.from_arrays(proxy=proxy, ids=[f"unit-{k}" for k in range(200)])
    question = Question.of_choices("Is it right?", ["Pass", "Fail"])
    sample = stratal.plan(population, 40).draw(seed=7)
    with create_study(tmp_path / "audit", sample, question, annotators=["ann", "bob"], overlap=0.5) as study:
        for name in ("ann", "bob"):
            while (item := study.next_item(name)) is not None:
                study.submit(name, item.id, "Pass" if int(item.id.split("-")[1]) % 4 else "Fail")
    found = figures(run_command, "report", "audit", "--output", "report.json")

    assert found["question"] == "Is it right?"
    assert found["quantity"] == "share of 'Pass'"
    assert found["agreement"]["alpha"] == 1.0
    assert found["agreement"]["pairs"][0]["kappa"] == 1.0
    assert found["estimate"] == figures(run_command, "estimate", "audit")
    assert run_command("report", "audit", "--output", "report.html").status == 0


def test_a_sample_drawn_elsewhere(tmp_path, monkeypatch, run_command):
    monkeypatch.chdir(tmp_path)
    rows = [[k, k % 2, "de" if k < 20 else "en"] for k in range(40)]
    write("labelled.csv", ["id", "label", "language"], rows)
    write("sizes.csv", ["stratum", "size"], [["de", 100], ["en", 300]])
    words = ["--labelled", "labelled.csv", "--stratum", "language", "--sizes", "sizes.csv"]
    found = figures(run_command, "report", *words, "--output", "report.json")

    assert found["estimate"] == figures(run_command, "estimate", *words)


def test_the_lines_of_the_pipeline_in_the_guide_work(audit, run_command, tmp_path):
    """docs/guide/machines.md: every `stratal` line of the GitHub Action, in its order."""
    page = Path(__file__).parents[3] / "docs" / "guide" / "machines.md"
    lines = re.findall(r"- run: (stratal [^&\n]+)", page.read_text())
    (tmp_path / "classes.csv").rename(tmp_path / "audit" / "labels.csv")
    (tmp_path / "new.csv").rename(tmp_path / "new_answers.csv")

    assert len(lines) == 3
    statuses = [run_command(*line.split()[1:]).status for line in lines]
    assert statuses[:2] == [0, 0]
    assert statuses[2] in (0, 4)


def test_ratings_of_two_people_are_a_scale_and_models_are_named(audit, run_command):
    ids = audit.ids.tolist()
    rated = [
        [unit, who, 1 + (k + (who == "bob")) % 4] for k, unit in enumerate(ids) for who in ("ann", "bob")
    ]
    write("rated.csv", ["id", "annotator", "label"], rated)
    write("models.csv", ["id", "one", "two"], [[unit, k % 2, 1] for k, unit in enumerate(ids)])

    ratings = figures(run_command, "report", "audit/sample.parquet", "rated.csv", "--output", "r.json")
    compared = figures(
        *(run_command, "report", "audit/sample.parquet", "models.csv", "--compare", "one,two"),
        *("--quantity", "pass rate", "--output", "c.json"),
    )
    said = run_command("estimate", "audit/sample.parquet", "rated.csv")

    assert ratings["agreement"]["level"] == "interval"
    assert "alpha (interval)" in said.stdout
    assert compared["quantity"] == "pass rate of one"
