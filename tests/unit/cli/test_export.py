"""`stratal study export` and `stratal study import`: a page goes out, its labels come back."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import stratal
from stratal.cli.application import app
from stratal.study import StudyQuestion, create_study, open_study

pytest.importorskip("starlette")


@pytest.fixture
def study(tmp_path):
    population = stratal.Population.from_arrays(proxy=[0.1, 0.5, 0.9], ids=["a", "b", "c"])
    sample = stratal.designs.SimpleRandom(budget=3).draw(population, seed=7)
    question = StudyQuestion.of_choices("Is it correct?", ["Pass", "Fail"])
    create_study(tmp_path / "study", sample, question, annotators=["ann"]).close()
    return tmp_path / "study"


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_the_command_after_a_file_without_names_says_whose_answers_they_are(tmp_path, study):
    population = stratal.Population.from_arrays(proxy=[0.1, 0.5, 0.9], ids=["a", "b", "c"])
    sample = stratal.designs.SimpleRandom(budget=3).draw(population, seed=7)
    two, question = tmp_path / "two", StudyQuestion.of_choices("Is it correct?", ["Pass", "Fail"])
    create_study(two, sample, question, annotators=["ann", "bob"]).close()
    file = tmp_path / "items.csv"

    out = run("study", "export", two, "--to", "csv", "--output", file).output
    assert "Name the person who filled in the file: --annotator ann, bob." in out
    assert out.strip().endswith("--annotator ann --dry-run")
    file.write_text("id,label\na,Pass\nb,Fail\nc,Pass\n")
    advised = run("doctor", file).output
    assert advised.strip().endswith("--annotator ann --dry-run")
    assert run("study", "import", two, file, "--annotator", "ann", "--dry-run").exit_code == 0

    alone = run("study", "export", study, "--to", "csv", "--output", tmp_path / "alone.csv").output
    assert "--annotator" not in alone


def test_a_page_goes_out_and_its_labels_come_back(study, tmp_path):
    page, labels = tmp_path / "ann.html", tmp_path / "labels.json"
    out = run("study", "export", study, "--to", "html", "--annotator", "ann", "--output", page, "--items", 2)
    assert "labels-ann.json" in out.output
    assert '"labels-ann.json"' in page.read_text()
    text = page.read_text()
    data = json.loads(text.split('id="study">')[1].split("</script>")[0])
    actions = [
        {"request": f"r{place}", "action": "submit", "item": item["id"], "value": "Pass"}
        for place, item in enumerate(data["items"])
    ]
    file = {"format": "stratal-actions", "version": 1, "study": data["study"], "annotator": "ann"}
    file["key"] = data["key"]
    labels.write_text(json.dumps({**file, "actions": actions}))
    said = [json.loads(run("study", "import", study, labels, "--json").output) for _ in range(2)]

    assert [entry["saved"] for entry in said] == [2, 0]
    assert "2 had been saved before" in run("study", "import", study, labels).output
    with open_study(study) as opened:
        assert opened.progress("ann").submitted == 2


def test_mistakes_are_errors(study, tmp_path):
    page = tmp_path / "ann.html"
    wrong = run("study", "export", study, "--to", "pdf", "--annotator", "ann", "--output", page)
    stranger = run("study", "export", study, "--annotator", "eve", "--output", page, "--json")
    nothing = run("study", "import", study, tmp_path / "none.json")
    other = run("study", "import", study, tmp_path / "none.json", "--from", "pdf")

    assert "unknown annotation tool (given: 'pdf'; allowed: html, label-studio, " in str(wrong.exception)
    assert "unknown annotation tool (given: 'pdf'; allowed: page, label-studio, " in str(other.exception)
    assert "unknown annotator" in str(stranger.exception)
    assert "no such file" in str(nothing.exception)
    assert not page.exists()


@pytest.mark.parametrize(
    ("name", "starts"), [("e.csv", b"item_id"), ("e.JSONL", b"{"), ("e.xlsx", b"PK"), ("e.html", b"<!")]
)
def test_what_is_written_is_what_the_name_says(study, tmp_path, name, starts):
    out = run("study", "export", study, "--annotator", "ann", "--output", tmp_path / name)

    assert out.exit_code == 0, out.exception
    assert (tmp_path / name).read_bytes().lower().startswith(starts.lower())


@pytest.mark.parametrize(("name", "to"), [("e.csv", ("--to", "html")), ("e.txt", ()), ("folder", ())])
def test_a_page_goes_into_no_file_of_another_name(study, tmp_path, name, to):
    out = run("study", "export", study, "--annotator", "ann", *to, "--output", tmp_path / name)

    assert "a page requires a different file name" in str(out.exception)
    assert not (tmp_path / name).exists()


def answered(path, *rows):
    path.write_text("item_id,label,annotator\n" + "".join(",".join(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("to", "name"),
    [
        ("label-studio", "out"),
        ("argilla", "out"),
        ("potato", "out"),
        ("prodigy", "out.jsonl"),
        ("excel", "out.xlsx"),
        ("csv", "out.csv"),
        ("jsonl", "out.jsonl"),
    ],
)
def test_items_go_out_to_every_tool_and_the_next_line_is_said(study, tmp_path, to, name):
    out = run("study", "export", study, "--to", to, "--output", tmp_path / name)

    assert out.exit_code == 0, out.exception
    assert "3 items for" in out.output
    assert f"Next: stratal study import {study}" in out.output.replace("\n", "")
    assert (tmp_path / name).exists()


def test_a_table_goes_out_and_comes_back_as_the_printed_lines_say(study, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("study", "export", study, "--to", "csv", "--output", "items.csv")
    filled = (tmp_path / "items.csv").read_text().replace(",,", ",Pass,")
    (tmp_path / "items.csv").write_text(filled)

    preview = run("study", "import", study, "items.csv", "--dry-run")
    assert "would save 3 answers from ann; nothing has been saved yet" in preview.output
    done = run("study", "import", study, "items.csv")
    again = json.loads(run("study", "import", study, "items.csv", "--json").output)

    assert "saved 3 answers from ann" in done.output
    assert f"Next: stratal study status {study}" in done.output
    assert (again["new"], again["same"], again["applied"]) == (0, 3, True)


def test_annotators_of_a_tool_are_given_their_names(study, tmp_path):
    file = answered(tmp_path / "labels.csv", ("a", "Pass", "1"), ("b", "Fail", "1"))

    unknown = run("study", "import", study, file)
    odd = run("study", "import", study, file, "--annotator", "1=")
    done = run("study", "import", study, file, "--annotator", "1=ann", "--from", "csv", "--dry-run")

    assert "has no such annotator" in str(unknown.exception)
    assert "--annotator cannot be read" in str(odd.exception)
    assert "--from csv --annotator 1=ann" in done.output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--to", "html"), "a page requires one annotator"),
        (("--to", "csv", "--items", "0"), "items must be a whole number"),
        (("--to", "csv", "--annotator", "eve"), "unknown annotator"),
        (("--to", "excel"), "Excel requires a different file name"),
    ],
)
def test_options_that_do_not_fit_are_errors(study, tmp_path, options, said):
    out = run("study", "export", study, *options, "--output", tmp_path / "items.csv")

    assert said in str(out.exception)
    assert not (tmp_path / "items.csv").exists()


def test_a_pages_labels_can_be_looked_at_first(study, tmp_path):
    page, labels = tmp_path / "ann.html", tmp_path / "labels.json"
    run("study", "export", study, "--annotator", "ann", "--output", page)
    data = json.loads(page.read_text().split('id="study">')[1].split("</script>")[0])
    action = {"request": "r1", "action": "submit", "item": "a", "value": "Pass"}
    file = {"format": "stratal-actions", "version": 1, "study": data["study"], "annotator": "ann"}
    file["key"] = data["key"]
    labels.write_text(json.dumps({**file, "actions": [action]}))

    preview = run("study", "import", study, labels, "--dry-run")
    mapped = run("study", "import", study, labels, "--map", "n/a=")

    assert "1 action would be saved" in preview.output
    assert f"Next: stratal study import {study}" in preview.output.replace("\n", "")
    assert "a file from the labelling page already contains answers to the question" in str(mapped.exception)
    assert "new answers: ann 1" in preview.output
    with open_study(study) as opened:
        assert opened.progress("ann").submitted == 0
