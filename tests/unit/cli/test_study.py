"""A study by the command line: made, looked at, extended, checked, copied, estimated from."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner
from tests.unit.study.conftest import answer_all

import stratal
from stratal.cli.application import app
from stratal.errors import StratalError
from stratal.study import open_study


@pytest.fixture
def predictions(tmp_path):
    generator = np.random.default_rng(0)
    path = tmp_path / "predictions.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "confidence", "text", "answer"])
        for number in range(300):
            writer.writerow([f"unit-{number}", generator.beta(4, 1), f"text {number}", "cat"])
    return path


def run(*words, status=0):
    done = CliRunner().invoke(app, [str(word) for word in words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == status, done.output
    return done.output


@pytest.fixture
def drawn(predictions, tmp_path):
    words = ["--proxy", "confidence", "--show", "text", "--budget", 40, "--seed", 7]
    run("draw", predictions, "--output", tmp_path / "drawn", *words)
    return tmp_path / "drawn"


@pytest.fixture
def audit(drawn, tmp_path):
    folder = tmp_path / "audit"
    run(
        "study", "new", drawn, "--output", folder, "--question", "Is the answer correct?", "--choices",
        "Pass,Fail", "--annotators", "ann,bob", "--overlap", 0.2,
    )  # fmt: skip
    return folder


ASKED = ("--question", "Is the answer correct?", "--choices", "Pass,Fail", "--annotators", "ann,bob")


def test_a_study_is_made_of_predictions_in_one_step(predictions, drawn, tmp_path):
    options = ("--proxy", "confidence", "--show", "text", "--budget", 40, "--seed", 7)
    run("study", "new", predictions, *options, "--output", tmp_path / "at-once", *ASKED)
    run("study", "new", drawn, "--output", tmp_path / "in-two", *ASKED)

    with open_study(tmp_path / "at-once") as one, open_study(tmp_path / "in-two") as two:
        assert one.sample() == two.sample()
        assert one.setting("reading") == two.setting("reading")
    assert "10 more items" in run("study", "extend", tmp_path / "at-once", "--additional", 10)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--seed", 7), "--seed would have no effect"),
        (("--budget", 7), "is already a sample"),
    ],
)
def test_a_draw_is_not_drawn_again(drawn, tmp_path, given, message):
    with pytest.raises(StratalError, match=message):
        run("study", "new", drawn, *given, "--output", tmp_path / "audit", *ASKED)


def test_a_study_is_named_where_a_draw_or_an_empty_folder_is_wanted(drawn, audit, tmp_path):
    for source, target in ((audit, tmp_path / "more"), (drawn, audit)):
        with pytest.raises(StratalError, match=r"is already a study.*stratal study label"):
            run("study", "new", source, "--output", target, *ASKED)


def label_all(folder):
    with open_study(folder) as study:
        for who in ("ann", "bob"):
            answer_all(study, who, lambda item: "Pass" if hash(item.position) % 5 else "Fail")


def test_a_study_has_the_sample_that_was_drawn(audit, drawn):
    with open_study(audit) as study:
        assert study.sample() == stratal.Sample.read(drawn / "sample.parquet")
        assert set(study.next_item("ann").payload) == {"text"}


def test_a_study_is_made_of_a_sample_without_its_plan_too(drawn, tmp_path):
    (drawn / "plan.json").unlink()
    words = ["--question", "q", "--choices", "a,b", "--annotators", "ann", "--output", tmp_path / "s"]
    run("study", "new", drawn / "sample.parquet", *words)

    with pytest.raises(StratalError, match=r"file of predictions of this study is unknown.*--population"):
        run("study", "extend", tmp_path / "s", "--additional", 5, "--without-labels")


@pytest.mark.parametrize(("overlap", "answers"), [("0.2", 48), ("0.5,3", 80), ("0,2", 40)])
def test_overlap_is_a_share_and_the_people(drawn, tmp_path, overlap, answers):
    words = ["--question", "q", "--choices", "a,b", "--annotators", "a,b,c", "--output", tmp_path / "s"]
    found = json.loads(run("study", "new", drawn, *words, "--overlap", overlap, "--json"))

    assert found["answers"] == answers


def test_what_is_known_of_the_labels_is_kept_in_a_study(predictions, tmp_path):
    run("draw", predictions, "--output", tmp_path / "d", "--budget", 20, "--bounds", "0,4")
    words = ["--question", "How good?", "--scale", "0,4", "--annotators", "ann"]
    run("study", "new", tmp_path / "d", "--output", tmp_path / "s", *words)

    with open_study(tmp_path / "s") as study:
        assert study.sample().question.outcome.bounds == (0, 4)


def test_estimate_of_a_study_equals_estimate_of_its_sample_and_labels(audit):
    label_all(audit)

    found = json.loads(run("estimate", audit, "--json"))

    with open_study(audit) as study:
        expected = stratal.estimate(study.sample(), study.labels()).to_dict()
    assert found["estimate"] == expected["estimate"]
    assert found["confidence_interval"] == expected["confidence_interval"]
    assert json.loads(run("study", "status", audit, "--json"))["estimate"]["estimate"] == expected["estimate"]


def test_estimate_of_a_study_takes_no_files_and_no_other_column(audit, tmp_path):
    label_all(audit)

    with pytest.raises(StratalError, match="already contains its labels"):
        run("estimate", audit, tmp_path / "labels.csv")
    with pytest.raises(StratalError, match="has no such question"):
        run("estimate", audit, "--value", "correct")


def test_classes_are_compared_with_the_models_answers(predictions, tmp_path):
    folder = tmp_path / "classes"
    words = ["--predicted", "answer", "--show", "text", "--budget", 20]
    run("draw", predictions, "--output", tmp_path / "d", *words)
    words = ["--question", "What is it?", "--classes", "cat,dog", "--annotators", "ann"]
    run("study", "new", tmp_path / "d", "--output", folder, *words)
    with open_study(folder) as study:
        answer_all(study, "ann", lambda item: "cat" if item.position > 5 else "dog")

    assert json.loads(run("estimate", folder, "--json"))["estimate"] == pytest.approx(0.75)


def test_choices_that_stand_for_no_number_are_said_to_be_classes(predictions, tmp_path):
    words = ["--proxy", "confidence", "--budget", 20, "--show", "text"]
    run("draw", predictions, *words, "--output", tmp_path / "a")
    run("draw", predictions, *words, "--predicted", "answer", "--output", tmp_path / "b")
    asked = ["--question", "Richtig?", "--annotators", "ann", "--output"]
    said = run("study", "new", tmp_path / "a", *asked, tmp_path / "1", "--choices", "ja,nein")
    compared = run("study", "new", tmp_path / "b", *asked, tmp_path / "2", "--choices", "ja,nein")
    counted = run("study", "new", tmp_path / "a", *asked, tmp_path / "3", "--choices", "ja=1,nein=0")

    assert "such as --choices ja=1,nein=0." in " ".join(said.split())
    assert "count as classes" not in compared + counted


def test_status_says_what_is_so_in_words(audit):
    assert "0 of 48 answers" in run("study", "status", audit)
    assert "no item is labelled yet" in run("study", "status", audit)
    label_all(audit)

    text = run("study", "status", audit)

    assert "48 of 48 answers" in text
    assert "Krippendorff" in text
    assert "ann \\ bob" in text
    assert "valid at any time" in text


def test_a_sound_study_and_one_that_was_changed(audit):
    found = json.loads(run("study", "check", audit, "--json"))
    assert found["sound"]
    assert "sound" in run("study", "check", audit, "--head", found["head"])
    (audit / "sample-1.parquet").unlink()

    assert "is missing" in run("study", "check", audit, status=3)


def test_backup_is_a_study(audit, tmp_path):
    label_all(audit)
    run("study", "backup", audit, "--output", tmp_path / "copy")

    of_copy = run("estimate", tmp_path / "copy").replace(str(tmp_path / "copy"), str(audit))
    assert of_copy == run("estimate", audit)


def test_extend_reads_the_predictions_again_from_where_they_were(audit, predictions, tmp_path):
    label_all(audit)
    run("study", "extend", audit, "--additional", 10)
    moved = predictions.rename(tmp_path / "moved.csv")
    with pytest.raises(StratalError, match="no such file"):
        run("study", "extend", audit, "--additional", 10)

    found = json.loads(
        run("study", "extend", audit, "--additional", 10, "--population", moved, "--without-labels", "--json")
    )

    assert (found["round"], found["n"]) == (3, 60)
    assert "sound" in run("study", "check", audit)


def test_until_it_is_narrow_enough(audit):
    label_all(audit)

    assert not json.loads(run("study", "extend", audit, "--until", 0.01, "--json"))["enough"]
    assert "labelling can stop" in run("study", "extend", audit, "--until", 0.45)
    stop = json.loads(run("study", "status", audit, "--json"))["stop"]
    assert (stop["half_width"], stop["enough"], stop["more_labels"]) == (0.45, True, 0)
    with open_study(audit) as study:
        assert study.next_item("ann") is None
    assert json.loads(run("study", "extend", audit, "--until", 0, "--json"))["enough"] is False
    with pytest.raises(StratalError, match="no target half-width"):
        run("study", "extend", audit)


def test_team(audit, tmp_path):
    (tmp_path / "rubric.md").write_text("Judge *meaning*.")
    run("study", "team", audit, "--add", "carol,dan")

    found = json.loads(
        run(
            "study",
            "team",
            audit,
            "--set-aside",
            "bob",
            "--reason",
            "left",
            "--rubric",
            tmp_path / "rubric.md",
            "--json",
        )
    )  # fmt: skip

    assert found["annotators"] == ["ann", "bob", "carol", "dan"]
    assert found["set_aside"] == ["bob"]
    assert found["rubric_version"] == 2
    assert "bob (set aside)" in run("study", "team", audit)
    assert "bob (set aside)" not in run("study", "team", audit, "--take-back", "bob")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "exactly one kind of answer"),
        (["--choices", "a,b", "--scale", "1,5"], "exactly one kind of answer"),
        (["--scale", "1"], "cannot be read"),
        (["--scale", "1,x"], "whole numbers"),
        (["--pair", "text,other"], "column 'other' is not shown"),
        (["--choices", "a,b", "--annotators", "ann,ann"], "same name"),
        (
            ["--choices", "a,b", "--overlap", "0.5", "--annotators", "ann"],
            "too few annotators for 2 labels per item",
        ),
        (["--choices", "a,b", "--overlap", "2"], "share of the items"),
        (["--choices", "a,b", "--rubric", "nowhere.md"], "nowhere.md cannot be read"),
        (["--choices", "a,b", "--until", "-1"], "half_width"),
        (["--choices", "a,b", "--overlap", "many"], "--overlap takes a share"),
    ],
)
def test_mistakes_are_said_before_anything_is_written(drawn, tmp_path, words, problem):
    people = [] if "--annotators" in words else ["--annotators", "ann,bob"]
    with pytest.raises(StratalError, match=problem):
        run("study", "new", drawn, "--output", tmp_path / "audit", "--question", "Right?", *people, *words)
    assert not (tmp_path / "audit").exists()


def test_a_study_is_never_made_over_another(audit, drawn):
    words = ["--output", audit, "--question", "q", "--choices", "a,b", "--annotators", "ann"]
    with pytest.raises(StratalError, match="is already a study"):
        run("study", "new", drawn, *words)
