"""A study by the command line: made, looked at, extended, checked, copied, estimated from."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner
from tests.unit.study.conftest import answer_all

import stratal
from stratal.cli.application import app, commands
from stratal.cli.draw import DrawOptions, SharedDrawOptions
from stratal.cli.init import text_of
from stratal.errors import InputError, StratalError
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
def audit(predictions, tmp_path):
    folder = tmp_path / "audit"
    run(
        "init", predictions, "--study", folder, "--question", "Is the answer correct?", "--choices",
        "Pass,Fail", "--annotators", "ann,bob", "--proxy", "confidence", "--show", "text", "--budget", 40,
        "--seed", 7, "--overlap", 0.2,
    )  # fmt: skip
    return folder


def label_all(folder):
    with open_study(folder) as study:
        for who in ("ann", "bob"):
            answer_all(study, who, lambda item: "Pass" if hash(item.position) % 5 else "Fail")


def test_a_study_draws_what_draw_draws(audit, predictions, tmp_path):
    run(
        "draw", predictions, "--output", tmp_path / "drawn", "--proxy", "confidence", "--show", "text",
        "--budget", 40, "--seed", 7,
    )  # fmt: skip

    with open_study(audit) as study:
        assert study.sample() == stratal.Sample.read(tmp_path / "drawn" / "sample.parquet")
        assert set(study.next_item("ann").payload) == {"text"}


def test_init_takes_every_option_of_draw_with_its_default():
    alone = set(DrawOptions.__struct_fields__) - set(SharedDrawOptions.__struct_fields__)
    made = commands("draw", "init")
    theirs = {entry.name: entry for entry in made["draw"].params if entry.name not in alone}
    own = {entry.name: entry for entry in made["init"].params}

    assert set(theirs) <= set(own)
    assert all(own[name].default == theirs[name].default for name in theirs)


def test_what_is_known_of_the_labels_is_kept_in_a_study(predictions, tmp_path):
    run(
        "init", predictions, "--study", tmp_path / "s", "--question", "How good?", "--scale", "0,4",
        "--annotators", "ann", "--budget", 20, "--bounds", "0,4",
    )  # fmt: skip

    with open_study(tmp_path / "s") as study:
        assert study.sample().bounds == (0, 4)


def test_estimate_of_a_study_equals_estimate_of_its_sample_and_labels(audit):
    label_all(audit)

    found = json.loads(run("estimate", audit, "--json"))

    with open_study(audit) as study:
        expected = stratal.estimate(study.sample(), study.labels()).to_dict()
    assert found["estimate"] == expected["estimate"]
    assert found["confidence_interval"] == expected["confidence_interval"]
    assert json.loads(run("status", audit, "--json"))["estimate"]["estimate"] == expected["estimate"]


def test_estimate_of_a_study_takes_no_files_and_no_other_column(audit, tmp_path):
    label_all(audit)

    with pytest.raises(StratalError, match="labels in itself"):
        run("estimate", audit, tmp_path / "labels.csv")
    with pytest.raises(StratalError, match="one column of labels"):
        run("estimate", audit, "--value", "correct")


def test_classes_are_compared_with_the_models_answers(predictions, tmp_path):
    folder = tmp_path / "classes"
    run(
        "init", predictions, "--study", folder, "--question", "What is it?", "--classes", "cat,dog",
        "--annotators", "ann", "--predicted", "answer", "--show", "text", "--budget", 20,
    )  # fmt: skip
    with open_study(folder) as study:
        answer_all(study, "ann", lambda item: "cat" if item.position > 5 else "dog")

    assert json.loads(run("estimate", folder, "--json"))["estimate"] == pytest.approx(0.75)


def test_choices_that_stand_for_no_number_are_said_to_be_classes(predictions, tmp_path):
    words = ["init", predictions, "--question", "Richtig?", "--annotators", "ann", "--proxy", "confidence"]
    words += ["--budget", 20, "--show", "text"]
    said = run(*words, "--choices", "ja,nein", "--study", tmp_path / "1")
    compared = run(*words, "--choices", "ja,nein", "--predicted", "answer", "--study", tmp_path / "2")
    counted = run(*words, "--choices", "ja=1,nein=0", "--study", tmp_path / "3")

    assert "such as --choices ja=1,nein=0." in " ".join(said.split())
    assert "count as classes" not in compared + counted


def test_status_says_what_is_so_in_words(audit):
    assert "0 of 48 answers" in run("status", audit)
    assert "no item is labelled yet" in run("status", audit)
    label_all(audit)

    text = run("status", audit)

    assert "48 of 48 answers" in text
    assert "Krippendorff" in text
    assert "ann \\ bob" in text
    assert "holds at every moment" in text


def test_a_sound_study_and_one_that_was_changed(audit):
    found = json.loads(run("check", audit, "--json"))
    assert found["sound"]
    assert "sound" in run("check", audit, "--head", found["head"])
    (audit / "sample-1.parquet").unlink()

    assert "is missing" in run("check", audit, status=3)


def test_backup_is_a_study(audit, tmp_path):
    label_all(audit)
    run("backup", audit, "--output", tmp_path / "copy")

    of_copy = run("estimate", tmp_path / "copy").replace(str(tmp_path / "copy"), str(audit))
    assert of_copy == run("estimate", audit)


def test_extend_reads_the_predictions_again_from_where_they_were(audit, predictions, tmp_path):
    label_all(audit)
    run("extend", audit, "--additional", 10)
    moved = predictions.rename(tmp_path / "moved.csv")
    with pytest.raises(StratalError, match="no such file"):
        run("extend", audit, "--additional", 10)

    found = json.loads(
        run("extend", audit, "--additional", 10, "--file", moved, "--without-labels", "--json")
    )

    assert (found["round"], found["n"]) == (3, 60)
    assert "sound" in run("check", audit)


def test_until_it_is_narrow_enough(audit):
    label_all(audit)

    assert not json.loads(run("extend", audit, "--until", 0.01, "--json"))["enough"]
    assert "labelling may stop" in run("extend", audit, "--until", 0.45)
    assert json.loads(run("status", audit, "--json"))["stop"] == {"half_width": 0.45, "enough": True}
    with open_study(audit) as study:
        assert study.next_item("ann") is None
    assert json.loads(run("extend", audit, "--until", 0, "--json"))["enough"] is False
    with pytest.raises(StratalError, match="no half-width to extend it to"):
        run("extend", audit)


def test_team(audit, tmp_path):
    (tmp_path / "rubric.md").write_text("Judge *meaning*.")
    run("team", audit, "--add", "carol,dan")

    found = json.loads(
        run(
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
    )

    assert found["annotators"] == ["ann", "bob", "carol", "dan"]
    assert found["set_aside"] == ["bob"]
    assert found["rubric_version"] == 2
    assert "bob (set aside)" in run("team", audit)
    assert "bob (set aside)" not in run("team", audit, "--take-back", "bob")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "one kind of answers"),
        (["--choices", "a,b", "--scale", "1,5"], "one kind of answers"),
        (["--scale", "1"], "--scale takes two entries"),
        (["--scale", "1,x"], "whole numbers"),
        (["--pair", "text,other"], "column 'other' is not shown"),
        (["--choices", "a,b", "--annotators", "ann,ann"], "same name"),
        (["--choices", "a,b", "--overlap", "0.5", "--annotators", "ann"], "2 people cannot label"),
        (["--choices", "a,b", "--overlap", "2"], "share of the items"),
        (["--choices", "a,b", "--rubric", "nowhere.md"], "nowhere.md: cannot be read"),
        (["--choices", "a,b", "--until", "-1"], "half_width"),
        (["--choices", "a,b", "--show", "confidence"], "would lead the annotators"),
    ],
)
def test_mistakes_are_said_before_anything_is_written(predictions, tmp_path, words, problem):
    people = [] if "--annotators" in words else ["--annotators", "ann,bob"]
    given = [*people, "--show", "text", *words]
    with pytest.raises(StratalError, match=problem):
        run(
            "init", predictions, "--study", tmp_path / "audit", "--question", "Right?", "--proxy",
            "confidence", "--budget", 20, *given,
        )  # fmt: skip
    assert not (tmp_path / "audit").exists()


def test_a_study_is_never_made_over_another(audit, predictions):
    with pytest.raises(StratalError, match="is not empty"):
        run(
            "init", predictions, "--study", audit, "--question", "q", "--choices", "a,b", "--annotators",
            "ann", "--budget", 10,
        )  # fmt: skip


def test_a_rubric_without_end_is_refused_before_it_is_held(tmp_path):
    rubric = tmp_path / "rubric.md"
    rubric.write_text("é" * 2**20)
    assert len(text_of(rubric)) == 2**20

    with rubric.open("a") as file:
        file.write("!")
    with pytest.raises(InputError, match=r"rubric.md: is too large .*up to 1,048,576 characters"):
        text_of(rubric)
