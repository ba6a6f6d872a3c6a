from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.tiers import sized

import stratal
from stratal.designs.labelling_files import create_folder, write_labelling_folder, write_table_to_label
from stratal.errors import InputError
from stratal.question import Question
from stratal.tables.small_table import SmallTable


def drawn(**columns):
    population = stratal.Population.from_arrays(proxy=[0.1, 0.5, 0.9], ids=["a", "b", "c"], show=columns)
    return stratal.designs.SimpleRandom(budget=3).draw(population, seed=1)


def test_id_shown_columns_and_an_empty_label_last(tmp_path):
    written = write_labelling_folder(drawn(text=["x", 'say "y"', None], more=[1, 2, 3]), tmp_path / "audit")

    rows = list(csv.DictReader(written.to_label.read_text().splitlines()))
    assert list(rows[0]) == ["id", "text", "more", "label"]
    assert {row["id"]: row["text"] for row in rows} == {"a": "x", "b": 'say "y"', "c": ""}
    assert {row["label"] for row in rows} == {""}
    assert stratal.Sample.read(written.sample) == drawn(text=["x", 'say "y"', None], more=[1, 2, 3])


def test_a_shown_column_called_label_is_refused(tmp_path):
    with pytest.raises(InputError, match="label"):
        write_labelling_folder(drawn(label=[1, 2, 3]), tmp_path / "audit")
    assert not (tmp_path / "audit").exists()


def test_an_empty_folder_is_used_and_a_full_one_is_refused(tmp_path):
    write_labelling_folder(drawn(), tmp_path)
    with pytest.raises(InputError, match="not empty"):
        write_labelling_folder(drawn(), tmp_path)


def test_nothing_is_half_written(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("stratal.designs.labelling_files.write_table_to_label", fail)
    with pytest.raises(InputError, match="disk full"):
        write_labelling_folder(drawn(), tmp_path / "audit")
    assert list(tmp_path.iterdir()) == []


DRAWS = """
import sys, stratal
from pathlib import Path
from stratal.tables.small_table import SmallTable
from stratal.designs.labelling_files import write_labelling_folder
units = range(200)
population = stratal.Population.from_arrays(proxy=[k / 200 for k in units], ids=[f"u{k}" for k in units])
sample = stratal.designs.SimpleRandom(budget=50).draw(population, seed=int(sys.argv[2]))
print("ready", flush=True)
input()
try:
    write_labelling_folder(sample, Path(sys.argv[1]))
except stratal.StratalError as error:
    sys.exit(str(error))
"""


def both_drawn(folder):
    """Draw twice into a folder at once; the exit status of each."""
    command = [sys.executable, "-c", DRAWS, str(folder)]
    draws = [
        subprocess.Popen([*command, str(seed)], stdin=-1, stdout=-1, stderr=-1, text=True) for seed in (1, 2)
    ]
    for process in draws:
        process.stdout.readline()
    for process in draws:
        process.stdin.write("\n")
        process.stdin.flush()
    return [(process.communicate()[1], process.returncode)[1] for process in draws]


@pytest.mark.parametrize("there", [False, True], ids=["new", "empty"])
def test_of_two_draws_into_one_folder_one_is_refused(tmp_path, there):
    for number in range(sized(1, 3)):
        folder = tmp_path / f"audit{number}"
        if there:
            folder.mkdir()
        ends = both_drawn(folder)
        sample = stratal.Sample.read(folder / "sample.parquet")
        ids = [row["id"] for row in csv.DictReader((folder / "to_label.csv").read_text().splitlines())]

        assert ends.count(0) == 1
        assert sample.seed == ends.index(0) + 1
        assert ids == sample.ids.tolist()
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".")] == []


def test_a_folder_that_appears_meanwhile_is_not_overwritten(tmp_path, monkeypatch):
    folder = tmp_path / "audit"

    def write():
        with create_folder(folder, "mine.txt") as partial:
            (partial / "mine.txt").write_text("mine")
            folder.mkdir()
            (folder / "theirs.txt").write_text("theirs")
            monkeypatch.setattr(Path, "is_dir", lambda path: path != folder and os.path.isdir(path))

    with pytest.raises(InputError, match="is not empty"):
        write()
    assert [entry.name for entry in tmp_path.iterdir()] == ["audit"]
    assert [entry.name for entry in folder.iterdir()] == ["theirs.txt"]


def unfinished(folder, answer=""):
    """Make a folder as a draw leaves it that is killed between its two files."""
    partial = folder / f".{folder.name}.0123456789abcdef.partial"
    partial.mkdir(parents=True)
    (partial / "sample.parquet").write_text("half")
    (folder / "to_label.csv").write_text(f"id,label\na,{answer}\n")
    return folder


def test_what_a_killed_draw_left_is_cleared(tmp_path):
    write_labelling_folder(drawn(), unfinished(tmp_path / "audit"))

    assert sorted(entry.name for entry in (tmp_path / "audit").iterdir()) == [
        "sample.parquet",
        "to_label.csv",
    ]


def test_an_answer_is_never_cleared(tmp_path):
    with pytest.raises(InputError, match="not empty"):
        write_labelling_folder(drawn(), unfinished(tmp_path / "audit", answer="1"))

    assert (tmp_path / "audit" / "to_label.csv").read_text() == "id,label\na,1\n"


def test_a_table_without_its_sample_is_not_taken_for_a_killed_draw(tmp_path):
    write_labelling_folder(drawn(), tmp_path / "audit").sample.unlink()
    with pytest.raises(InputError, match="not empty"):
        write_labelling_folder(drawn(), tmp_path / "audit")


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "'=1", "''@", "'tis", "", "a=1", "x" * 200_000]


def test_no_spreadsheet_runs_a_cell_and_every_cell_is_read_back(tmp_path):
    numbers = range(len(FORMULAS))
    population = stratal.Population.from_arrays(
        proxy=[0.5] * len(FORMULAS), ids=[f"=id{k}" for k in numbers], show={"@text": FORMULAS}
    )
    sample = stratal.designs.SimpleRandom(budget=len(FORMULAS)).draw(population, seed=1)
    written = write_labelling_folder(sample, tmp_path / "audit")
    with written.to_label.open(newline="", encoding="utf-8") as stream:
        cells = [entry for row in csv.reader(stream) for entry in row]
    table = SmallTable.of(written.to_label, "labels")

    assert not [entry for entry in cells if entry[:1] in set("=+-@\t\r")]
    assert table.columns["id"] == sample.ids.tolist()
    # An empty cell of a text file is not a value.
    assert table.columns["@text"] == [text or None for text in sample.shown["@text"].tolist()]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="the system does not name open files")
def test_a_hand_over_is_brought_to_the_disk(population, tmp_path, monkeypatch):
    brought, usual = [], os.fsync

    def noted(handle):
        brought.append(Path(os.readlink(f"/proc/self/fd/{handle}")))
        usual(handle)

    monkeypatch.setattr(os, "fsync", noted)
    write_labelling_folder(
        stratal.designs.SimpleRandom(budget=5).draw(population, seed=7), tmp_path / "audit"
    )
    names = [path.name for path in brought]

    assert names[-1] == tmp_path.name  # the folder's own name, last
    assert names[-2].endswith(".partial")
    assert any(name.startswith(".sample.") for name in names[:-2])
    assert "to_label.csv" in names[:-2]


def test_the_newest_round_is_looked_for_once_and_not_per_unit(tmp_path):
    class Reads(SimpleNamespace):
        count = 0

        @property
        def round(self):
            Reads.count += 1
            return np.repeat([1, 2], 500)

    sample = Reads(ids=np.arange(1_000), question=Question(id="id"), shown={})

    assert write_table_to_label(sample, tmp_path / "to_label.csv") == 500
    assert Reads.count <= 2
