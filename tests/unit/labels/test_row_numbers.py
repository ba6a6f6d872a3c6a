"""Labels of row numbers: a token states of which rows they are."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import stratal
from stratal.designs.labelling_files import write_labelling_folder
from stratal.errors import LabelError
from stratal.labels.labels import SAMPLE_TOKEN

WEEKS = (1, 2)


def drawn(week, ids=None):
    """A sample of one week's 60 rows; two weeks' samples have the same row numbers."""
    draws = np.random.default_rng(week)
    population = stratal.Population.from_arrays(
        proxy=draws.random(60), groups={"answer": draws.choice(["a", "b"], 60)}, ids=ids
    )
    return stratal.designs.SimpleRandom(budget=20).draw(population, seed=3)


def filled(source, target, label="1", without=(), change=None):
    """Fill in a table to label; leave columns out."""
    with open(source, encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    names = [name for name in rows[0] if name not in without]
    with open(target, "w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows({**row, "label": label, **(change or {})} for row in rows)
    return target


@pytest.fixture
def weeks(tmp_path):
    """The folders of two weeks' samples, with their labels."""
    for week in WEEKS:
        folder = tmp_path / f"week{week}"
        write_labelling_folder(drawn(week), folder)
        filled(folder / "to_label.csv", folder / "labels.csv")
        filled(folder / "to_label.csv", folder / "bare.csv", without=(SAMPLE_TOKEN,))
    return tmp_path


def test_labels_of_another_weeks_rows_are_refused(weeks):
    first, second = (stratal.Sample.read(weeks / f"week{week}" / "sample.parquet") for week in WEEKS)
    assert sorted(first.ids.tolist()) == sorted(second.ids.tolist())
    own = stratal.read_labels(weeks / "week1" / "labels.csv", id_name="row")
    assert stratal.estimate(first, own).value == 1
    with pytest.raises(LabelError) as refused:
        stratal.estimate(second, own)
    text = str(refused.value)
    assert first.question.sample_token in text
    assert second.question.sample_token in text
    assert "line 2" in text


def test_labels_without_a_token_need_same_rows(weeks):
    sample = stratal.Sample.read(weeks / "week1" / "sample.parquet")
    path = weeks / "week1" / "bare.csv"
    with pytest.raises(LabelError, match=r"does not state to which sample.*same_rows=True"):
        stratal.estimate(sample, stratal.read_labels(path, id_name="row"))
    stated = stratal.read_labels(path, id_name="row", same_rows=True)
    assert stratal.estimate(sample, stated).value == 1
    with pytest.raises(LabelError, match="does not state to which sample"):
        stratal.evaluate(sample, path)
    assert stratal.evaluate(sample, path, same_rows=True).estimate.value == 1


def test_a_file_of_two_weeks_is_refused(weeks):
    sample = stratal.Sample.read(weeks / "week1" / "sample.parquet")
    paths = [weeks / f"week{week}" / "labels.csv" for week in WEEKS]
    with pytest.raises(LabelError, match="the label was given to a row of another sample"):
        stratal.estimate(sample, stratal.read_labels(*paths, id_name="row"))


def test_other_ids_have_no_token(tmp_path):
    sample = drawn(1, ids=[f"u{row}" for row in range(60)])
    write_labelling_folder(sample, tmp_path / "out")
    header = (tmp_path / "out" / "to_label.csv").read_text().splitlines()[0]
    assert header == "id,label"
    labels = filled(tmp_path / "out" / "to_label.csv", tmp_path / "labels.csv")
    assert stratal.estimate(sample, stratal.read_labels(labels)).value == 1


def test_labels_in_memory_are_the_programs_own(weeks):
    sample = stratal.Sample.read(weeks / "week1" / "sample.parquet")
    assert stratal.estimate(sample, dict.fromkeys(sample.ids.tolist(), 1)).value == 1


def test_the_token_stays_through_rounds(weeks):
    sample = stratal.Sample.read(weeks / "week1" / "sample.parquet")
    labels = stratal.read_labels(weeks / "week1" / "labels.csv", id_name="row")
    more = stratal.next_round(
        sample,
        labels,
        additional=10,
        population=stratal.Population.from_arrays(
            proxy=np.random.default_rng(1).random(60),
            groups={"answer": _answers(1)},
        ),
    )
    assert more.question.sample_token == sample.question.sample_token
    with pytest.warns(stratal.errors.StratalWarning, match="10 of 30 drawn units have no label"):
        assert stratal.estimate(more, labels).n == 20


def _answers(week):
    draws = np.random.default_rng(week)
    draws.random(60)
    return draws.choice(["a", "b"], 60)


def test_the_token_survives_a_spreadsheet(weeks):
    openpyxl = pytest.importorskip("openpyxl")
    sample = stratal.Sample.read(weeks / "week1" / "sample.parquet")
    book = openpyxl.Workbook()
    with open(weeks / "week1" / "labels.csv", encoding="utf-8", newline="") as stream:
        for row in csv.reader(stream):
            book.active.append([int(cell) if cell.isdigit() else cell for cell in row])
    book.save(weeks / "labels.xlsx")
    assert stratal.estimate(sample, stratal.read_labels(weeks / "labels.xlsx", id_name="row")).value == 1
    # Semicolons and a byte order mark, as a spreadsheet of another language saves it.
    text = (weeks / "week1" / "labels.csv").read_text().replace(",", ";")
    (weeks / "saved.csv").write_text(text, encoding="utf-8-sig")
    assert stratal.estimate(sample, stratal.read_labels(weeks / "saved.csv", id_name="row")).value == 1


def test_the_command_refuses_and_takes_same_rows(weeks, run_command):
    sample = weeks / "week1" / "sample.parquet"
    assert not run_command("estimate", sample, weeks / "week1" / "labels.csv").status
    refused = run_command("estimate", sample, weeks / "week2" / "labels.csv")
    assert refused.status
    assert "--same-rows" in refused.message
    assert run_command("estimate", sample, weeks / "week1" / "bare.csv").status
    assert not run_command("estimate", sample, weeks / "week1" / "bare.csv", "--same-rows").status


def test_a_second_look_carries_the_token(weeks):
    from stratal.metrics.disagreement_review import write_disagreements

    sample = stratal.Sample.read(weeks / "week1" / "sample.parquet")
    file = filled(weeks / "week1" / "to_label.csv", weeks / "classes.csv", label="a")
    labels = stratal.read_labels(file, id_name="row")
    again = weeks / "again.csv"
    count = write_disagreements(sample, labels, ["answer"], again)
    look = filled(again, weeks / "looked.csv", label="a")
    looked = stratal.read_labels(file, look, id_name="row")
    assert count > 0
    assert stratal.estimate(sample, looked, predicted="answer").n == 20


def test_a_study_imports_its_own_rows_alone(weeks, run_command):
    for week in WEEKS:
        made = run_command(
            "study", "new", weeks / f"week{week}" / "sample.parquet", "--output", weeks / f"study{week}",
            "--question", "Right?", "--choices", "yes,no", "--annotators", "ann",
        )  # fmt: skip
        assert not made.status, made.message
        export = run_command(
            "study", "export", weeks / f"study{week}", "--output", weeks / f"items{week}.csv"
        )
        assert not export.status, export.message
        filled(weeks / f"items{week}.csv", weeks / f"answers{week}.csv", label="yes")
    own = ("study", "import", weeks / "study1", weeks / "answers1.csv", "--annotator", "ann")
    other = ("study", "import", weeks / "study1", weeks / "answers2.csv", "--annotator", "ann")
    assert run_command(*other).status
    assert not run_command(*other, "--same-rows", "--dry-run").status
    assert not run_command(*own).status
