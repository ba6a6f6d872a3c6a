"""The same labels in a dozen spellings and seven kinds of files are one number, or one refusal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from tests.relations.world import DESIGNS, World, same
from tests.tiers import SLOW

import stratal
from stratal.cli.application import app

pytestmark = pytest.mark.filterwarnings("ignore::stratal.StratalWarning")

WORLD = World.of(11)
SAMPLE = DESIGNS["planned"](WORLD.population(), 3)
RIGHT = WORLD.labels(SAMPLE, WORLD.right, 0.85)
TRUTH = WORLD.labels(SAMPLE, WORLD.truth, 0.85)

SPELLINGS: dict[str, tuple[tuple[Any, Any], dict[str, Any]]] = {
    "whole numbers": ((1, 0), {}),
    "numbers with a point": ((1.0, 0.0), {}),
    "texts of numbers": (("1.0", "0"), {}),
    "truth values": ((True, False), {}),
    "words of truth": (("TRUE", "false"), {}),
    "pass and fail": (("Pass", "fail"), {}),
    "yes and no": ((" YES", "No "), {}),
    "grades": (("C", "I"), {}),
    "wins": (("Win", "loss"), {}),
    "a positive label": (("Good", "poor"), {"positive": "good"}),
    "a mapping": (("great", "meh"), {"mapping": {"Great": 1, "meh": 0}}),
    "words mapped to a class": (("fine", "meh"), {"positive": "ok", "mapping": {"fine": "ok"}}),
    "an apostrophe": (("'=1", "0"), {"mapping": {"=1": 1, "0": 0}}),
}
"""What stands for 1 and for 0, and what the user says of it."""


def _lines(frame: pd.DataFrame, path: Path) -> None:
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _document(frame: pd.DataFrame, path: Path) -> None:
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    path.write_text(json.dumps(rows))


FORMATS: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "labels.csv": lambda frame, path: frame.to_csv(path, index=False),
    "semicolons.csv": lambda frame, path: frame.to_csv(path, index=False, sep=";"),
    "labels.jsonl": _lines,
    "labels.json": _document,
    "labels.xlsx": lambda frame, path: frame.to_excel(path, index=False),
    "labels.parquet": lambda frame, path: frame.to_parquet(path),
    "labels.feather": lambda frame, path: frame.to_feather(path),
}


def written(values: dict[str, Any], folder: Path, turn: int | None = None) -> list[Path]:
    """Return files of every kind with the labels; in the fast tier two of them, where a turn is given.

    Turn after turn each kind has its turn, so that every spelling and every kind of file is there.
    """
    kinds = set(map(type, values.values()))
    frame = pd.DataFrame({"id": list(values), "label": list(values.values())})
    if len(kinds) > 1:
        frame["label"] = frame["label"].astype(object)
    names = list(FORMATS)
    if turn is not None and not SLOW:
        names = [names[(2 * turn + more) % len(names)] for more in range(2)]
    for name in names:
        FORMATS[name](frame, folder / name)
    return [folder / name for name in names]


def spelt(one: Any, zero: Any) -> dict[str, Any]:
    return {unit: one if value else zero for unit, value in RIGHT.items()}


def options(declared: dict[str, Any]) -> list[str]:
    """Return what is declared as options of the command."""
    found = ["--positive", declared["positive"]] if "positive" in declared else []
    given = declared.get("mapping", {})
    mapped = ",".join(f"{label}={'' if value is None else value}" for label, value in given.items())
    return found + (["--map", mapped] if mapped else [])


def by_command(sample: Path, labels: Path, *words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["estimate", str(sample), str(labels), *words, "--json"])
    return result.exit_code, result.stdout or str(result.exception)


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    path = tmp_path_factory.mktemp("sample") / "sample.parquet"
    SAMPLE.write(path)
    return path


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_labels_in_any_spelling_and_file_are_one_number(spelling, tmp_path, sample):
    expected = stratal.estimate(SAMPLE, RIGHT)
    words, declared = SPELLINGS[spelling]
    given = spelt(*words)
    same(
        stratal.estimate(SAMPLE, stratal.Labels(ids=list(given), values=list(given.values()), **declared)),
        expected,
    )
    if not declared:
        in_order = np.array([given.get(unit) for unit in SAMPLE.ids.tolist()], dtype=object)
        for labels in (given, pd.Series(given), in_order, in_order.tolist()):
            same(stratal.estimate(SAMPLE, labels), expected)
    for path in written(given, tmp_path, list(SPELLINGS).index(spelling)):
        found = stratal.estimate(SAMPLE, stratal.read_labels(path, **declared))
        same(found, expected)
        assert sum(row.count for row in found.label_values) == len(RIGHT)
        status, output = by_command(sample, path, *options(declared))
        assert status == 0, output
        told = json.loads(output)
        assert told["estimate"] == pytest.approx(expected.value, abs=1e-12), path.name
        assert [row["meaning"] for row in told["label_values"]] == [1.0, 0.0]


@pytest.mark.parametrize(("turn", "spelling"), list(enumerate(["cat", " cat ", "kitty"])))
def test_classes_in_any_spelling_and_file_are_one_number(turn, spelling, tmp_path, sample):
    expected = stratal.estimate(SAMPLE, TRUTH, predicted=True)
    given = {unit: spelling if name == "cat" else name for unit, name in TRUTH.items()}
    declared = {"mapping": {"Kitty": "cat"}} if spelling == "kitty" else {}
    for path in written(given, tmp_path, turn):
        same(stratal.estimate(SAMPLE, stratal.read_labels(path, **declared), predicted=True), expected)
        status, output = by_command(sample, path, "--predicted", "answer", *options(declared))
        assert status == 0, output
        assert json.loads(output)["estimate"] == pytest.approx(expected.value, abs=1e-12)


@pytest.mark.parametrize(("answers", "labels"), [("1", 1.0), ("1.0", 1), ("1", "1.0"), ("1", 1)])
def test_classes_that_are_numbers_are_one_however_they_are_written(answers, labels):
    population = stratal.Population.from_arrays(
        proxy=[0.5] * 40, groups={"digit": [answers, "2"] * 20}, predicted="digit"
    )
    drawn = stratal.designs.SimpleRandom(budget=20).draw(population, seed=2)

    found = stratal.estimate(drawn, dict.fromkeys(drawn.ids.tolist(), labels), predicted=True)

    assert found.value == np.mean(drawn.groups["digit"] == answers)


NO_ANSWERS = ("n/a", "#DIV/0!")


@pytest.mark.parametrize(("turn", "word"), [(0, NO_ANSWERS[0]), (3, NO_ANSWERS[1])])
def test_a_word_for_no_answer_is_refused_until_it_is_mapped(turn, word, tmp_path, sample):
    """In every file: among words, among numbers and among classes."""
    first, *_ = RIGHT
    known = {unit: value for unit, value in RIGHT.items() if unit != first}
    for number, (given, classes) in enumerate(
        [(spelt("Pass", "Fail"), False), (spelt("1", "0"), False), (TRUTH, True)]
    ):
        right = {unit: TRUTH[unit] for unit in known} if classes else known
        expected = stratal.estimate(SAMPLE, right, predicted=classes)
        (folder := tmp_path / str(number)).mkdir()
        predicted = ["--predicted", "answer"] if classes else []
        for path in written({**given, first: word}, folder, turn + number):
            with pytest.raises(stratal.LabelError, match="indicates that there is no answer"):
                stratal.estimate(SAMPLE, stratal.read_labels(path), predicted=classes)
            status, output = by_command(sample, path, *predicted)
            assert (status > 0, "indicates that there is no answer" in output) == (True, True), output
            labels = stratal.read_labels(path, mapping={word: None})
            same(stratal.estimate(SAMPLE, labels, predicted=classes), expected)
            status, output = by_command(sample, path, *predicted, "--map", f"{word}=")
            assert status == 0, output
            told = json.loads(output)
            assert told["estimate"] == pytest.approx(expected.value, abs=1e-12)
            assert told["label_values"][-1] == {"value": word, "count": 1, "meaning": None}


def test_a_class_that_the_model_never_gives_counts_and_is_shown(tmp_path, sample):
    first, *_ = TRUTH
    given = {**TRUTH, first: "gnu"}
    expected = stratal.estimate(SAMPLE, given, predicted=True)
    assert expected.notes[0].startswith("labels: ")
    assert "gnu 1 → gnu" in expected.notes[0]
    for path in written(given, tmp_path):
        same(stratal.estimate(SAMPLE, stratal.read_labels(path), predicted=True), expected)
        result = CliRunner().invoke(app, ["estimate", str(sample), str(path), "--predicted", "answer"])
        assert "gnu 1 → gnu" in result.output


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["Pass", "Fail", "so-so"], "'so-so' of id .* is not a finite number"),
        (["Pass", "Fail", "p"], None),
        (["cat", "Dog", "eel"], "labels contain 'Dog', but the answers contain 'dog'"),
    ],
)
def test_other_labels_are_one_number_or_one_refusal_in_every_file(given, message, tmp_path, sample):
    values = {unit: given[number % 3] for number, unit in enumerate(RIGHT)}
    found = []
    for path in written(values, tmp_path):
        status, output = by_command(sample, path)
        if message is None:
            found.append(json.loads(output)["estimate"])
            continue
        with pytest.raises(stratal.LabelError, match=message) as error:
            stratal.estimate(SAMPLE, stratal.read_labels(path))
        found.append(str(error.value))
        assert status > 0
    assert len(set(found)) == 1


def test_a_cell_that_holds_an_object_is_refused(tmp_path):
    values: dict[str, Any] = {name: {"a": 1} for name in RIGHT}
    frame = pd.DataFrame({"id": list(values), "label": list(values.values())})
    for name in ("labels.jsonl", "labels.json", "labels.parquet", "labels.feather"):
        FORMATS[name](frame, tmp_path / name)
        with pytest.raises(stratal.LabelError, match=r"the label of id '.*' is a"):
            stratal.read_labels(tmp_path / name)
    with pytest.raises(stratal.LabelError, match=r"the annotator of id 'a' is a tuple"):
        stratal.Labels(ids=["a"], values=[1], annotators=[("ann", "bob")])
