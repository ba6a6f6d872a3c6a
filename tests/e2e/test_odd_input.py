"""What a first-time user gives by mistake, or by bad luck: one clear message, nothing half-written."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner

import stratal
from stratal.cli.application import app
from stratal.designs.labelling_files import write_labelling_folder
from stratal.errors import InputError, LabelError
from stratal.labels.label_files import read_labels

COMMAND = [sys.executable, "-c", "from stratal.cli import main; main()"]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "predictions.csv"
    rows = "".join(f"u{number},{number / 100}\n" for number in range(100))
    path.write_text("id,proxy\n" + rows)
    return path


@pytest.fixture
def sample():
    population = stratal.Population.from_arrays(
        proxy=[number / 60 for number in range(60)], ids=[f"u{number}" for number in range(60)]
    )
    return stratal.plan(population, budget=20).draw(seed=7)


def piped(words, *, reads):
    """Run the command with a reader that takes `reads` lines and leaves."""
    process = subprocess.Popen(
        [*COMMAND, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for _ in range(reads):
        process.stdout.readline()
    process.stdout.close()
    message = process.stderr.read()
    process.stderr.close()
    return process.wait(), message


@pytest.mark.parametrize("words", [["--json"], []], ids=["json", "tables"])
def test_a_reader_that_leaves_early_is_no_mistake(file, words):
    assert piped(["plan", file, "--proxy", "proxy", "--budget", 20, *words], reads=0) == (0, "")


def test_a_full_disk_is_one_message(file):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [*COMMAND, "plan", str(file), "--proxy", "proxy", "--budget", "20", "--json"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip

    assert result.returncode == 2
    assert "No space left" in result.stderr
    assert "Traceback" not in result.stderr


def test_ctrl_c_ends_quietly(tmp_path):
    program = (
        "import stratal.cli.application as application, stratal.planning.entry_points as planning, time\n"
        "def forever(*_, **__):\n"
        "    print('started', flush=True)\n"
        "    time.sleep(60)\n"
        "planning.plan = forever\n"
        "application.main()\n"
    )
    path = tmp_path / "predictions.csv"
    path.write_text("id,proxy\na,0.5\nb,0.6\n")
    words = ["plan", str(path), "--proxy", "proxy", "--budget", "2"]
    process = subprocess.Popen(
        [sys.executable, "-c", program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    process.stdout.readline()
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=60)

    assert process.returncode == 130
    assert message.startswith("Stopped.\n")
    assert "Traceback" not in message


def test_the_current_folder_takes_the_files_if_it_is_empty(sample, tmp_path, monkeypatch):
    folder = tmp_path / "here"
    folder.mkdir()
    before = folder.stat().st_ino
    monkeypatch.chdir(folder)

    write_labelling_folder(sample, type(tmp_path)("."))

    assert sorted(os.listdir()) == ["sample.parquet", "to_label.csv"]
    assert folder.stat().st_ino == before


def test_a_dangling_link_is_no_folder(sample, tmp_path):
    (tmp_path / "link").symlink_to("nowhere")

    with pytest.raises(InputError, match="is not a directory"):
        write_labelling_folder(sample, tmp_path / "link")

    assert os.listdir(tmp_path) == ["link"]


def test_nothing_stays_when_the_second_file_cannot_be_put_in_place(sample, tmp_path, monkeypatch):
    folder = tmp_path / "audit"
    folder.mkdir()
    path_type = type(tmp_path)
    rename = path_type.rename

    def failing(self, target):
        if self.name == "sample.parquet":
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(path_type, "rename", failing)
    with pytest.raises(InputError, match="No space left"):
        write_labelling_folder(sample, folder)

    assert os.listdir(folder) == []


def test_a_label_that_is_no_number_is_named_by_its_unit(sample):
    first = sample.ids[3]

    with pytest.raises(LabelError, match=f"label 'cat' of id '{first}' is not a finite number"):
        stratal.estimate(sample, {**dict.fromkeys(sample.ids.tolist(), 1), first: "cat"})


@pytest.mark.parametrize(
    ("options", "allowed"), [({"bounds": (0, 1)}, "0 to 1"), ({"outcome": "binary"}, "0 or 1")]
)
def test_a_label_outside_the_outcome_is_named_by_its_unit(sample, options, allowed):
    first = sample.ids[3]
    labels = {**dict.fromkeys(sample.ids.tolist(), 1), first: 2}

    with pytest.raises(LabelError, match=rf"1 label lies outside .*2 of id '{first}'.*{allowed}"):
        stratal.estimate(sample, labels, **options)


def test_an_outcome_that_leaves_the_proxys_bounds_is_said_to(sample):
    labels = [1 + row % 5 for row in range(sample.size)]

    plain = stratal.estimate(sample, labels)
    bounded = stratal.estimate(sample, labels, bounds=(1, 5))

    assert plain.outcome == "unbounded"
    assert any("--bounds" in note for note in plain.notes)
    assert not any("--bounds" in note for note in bounded.notes)


def test_labels_that_all_agree_are_not_said_to_be_worth_the_whole_population(sample, tmp_path):
    sample.write(tmp_path / "sample.parquet")
    (tmp_path / "labels.csv").write_text("id,label\n" + "".join(f"{unit},1\n" for unit in sample.ids))

    shown = (
        CliRunner()
        .invoke(app, ["estimate", str(tmp_path / "sample.parquet"), str(tmp_path / "labels.csv")])
        .stdout
    )

    assert "worth 60 random" not in shown
    assert "As precise as about 16 random labels" in shown  # limits are whole units
    assert "Standard error 0;" not in shown


@pytest.mark.parametrize("mark", [";", "\t"])
def test_another_delimiter_is_found(tmp_path, mark):
    path = tmp_path / "predictions.csv"
    path.write_text(f"id{mark}proxy\na{mark}0.5\n")

    assert stratal.Population.read(path, proxy="proxy").size == 1


def test_a_delimiter_that_cannot_be_found_is_asked_for(tmp_path):
    path = tmp_path / "predictions.csv"
    path.write_text("id^proxy\na^0.5\n")

    with pytest.raises(InputError, match=r"delimiter='\^'"):
        stratal.Population.read(path, proxy="proxy")


def test_the_next_command_repeats_how_the_file_is_read(tmp_path):
    path = tmp_path / "predictions.csv"
    path.write_text("id;proxy;g\n" + "".join(f"u{n};{n};{n % 2}\n" for n in range(60)))
    given = ["--proxy", "proxy", "--groups", "g", "--minimum", "1", "--delimiter", ";", "--margin"]

    planned = CliRunner().invoke(app, ["plan", str(path), *given, "--budget", "20"]).stdout
    following = shlex.split(planned.strip().splitlines()[-1].removeprefix("Next: stratal"))
    drawn = CliRunner().invoke(app, [*following[:-1], str(tmp_path / "audit")])

    assert set(given) <= set(following)
    assert drawn.exit_code == 0
    assert (tmp_path / "audit" / "to_label.csv").exists()


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_proxy_that_calls_everything_certain_promises_no_precision(value):
    population = stratal.Population.from_arrays(proxy=[value] * 60)
    planned = stratal.plan(population, budget=10)

    assert planned.recommended.expected_standard_error is None
    assert "certain" in planned.assumptions[0]
    assert stratal.plan(population, budget=60).recommended.expected_standard_error == 0
    assert stratal.plan(population, half_width=0.2).worst_half_width <= 0.2


def test_the_default_number_of_strata_leaves_draws_for_every_category():
    population = stratal.Population.from_arrays(
        proxy=[number / 400 for number in range(400)], groups={"g": [number // 50 for number in range(400)]}
    )

    planned = stratal.plan(population, budget=50, by="g")

    assert planned.strata.n_strata == 8
    assert planned.allocation.n_h.min() >= 2


@pytest.mark.parametrize("bounds", [(0,), "01", (1, 0), (0, float("inf"))])
def test_bounds_that_are_none_are_refused(sample, bounds):
    with pytest.raises(InputError, match="two finite numbers"):
        stratal.estimate(sample, [1] * 20, bounds=bounds)


@pytest.mark.parametrize("half_width", ["0.1", float("nan"), 0])
def test_a_half_width_that_is_none_is_refused(half_width):
    with pytest.raises(InputError, match="positive number"):
        stratal.plan(stratal.Population.from_arrays(proxy=[0.5, 0.6, 0.7]), half_width=half_width)


def test_arrow_arrays_are_arrays(sample):
    arrow = pytest.importorskip("pyarrow")
    names, values = [f"u{number}" for number in range(60)], [number / 60 for number in range(60)]

    population = stratal.Population.from_arrays(proxy=arrow.array(values), ids=arrow.array(names))
    again = stratal.plan(population, budget=20).draw(seed=7)

    assert again.ids.tolist() == sample.ids.tolist()
    assert stratal.estimate(sample, arrow.array([1, 0] * 10)).n == 20


def test_a_dataframe_of_labels_is_a_file_of_labels(sample):
    pandas = pytest.importorskip("pandas")

    estimate = stratal.estimate(sample, pandas.DataFrame({"id": sample.ids, "label": 1}))

    assert (estimate.value, estimate.n) == (1.0, sample.size)


def test_a_missing_category_of_pandas_is_refused():
    pandas = pytest.importorskip("pandas")

    with pytest.raises(InputError, match="missing"):
        stratal.Population.from_arrays(
            proxy=[0.1, 0.2], groups={"g": pandas.array([None, "a"], dtype="string")}
        )


@pytest.mark.parametrize(
    ("name", "text", "half"),
    [
        ("semicolons.csv", "id;label\r\na;1\r\nb;0,5\r\n", "0.5"),
        ("tabs.csv", "id\tlabel\na\t1\nb\t0,5\n", "0.5"),
        ("CAPITALS.CSV", 'id,label\na,1\nb,"0,5"\n', "0,5"),
        (
            "mark.jsonl",
            '\ufeff{"id": "a", "label": 1, "t": "\u2028"}\n{"id": "b", "label": "0,5"}\n',
            "0,5",
        ),
    ],
)
def test_label_files_as_spreadsheets_write_them(tmp_path, name, text, half):
    (tmp_path / name).write_bytes(text.encode())

    labels = read_labels(tmp_path / name)

    assert labels.ids == ("a", "b")
    assert [str(value) for value in labels.values] == ["1", half]


@pytest.mark.parametrize("name", ["label", "annotator", "status"])
def test_shown_columns_that_mean_something_in_a_label_file_are_refused(tmp_path, name):
    population = stratal.Population.from_arrays(proxy=[0.1, 0.5], show={name: ["x", "y"]})

    with pytest.raises(InputError, match=f"called '{name}'"):
        write_labelling_folder(
            stratal.designs.SimpleRandom(budget=1).draw(population, seed=7), tmp_path / "audit"
        )

    assert list(tmp_path.iterdir()) == []


def test_an_id_that_is_shown_too_stands_there_once(file, tmp_path):
    words = ["draw", file, "--proxy", "proxy", "--budget", 9, "--show", "id", "--output", tmp_path / "audit"]
    drawn = CliRunner().invoke(app, [str(word) for word in words])

    assert drawn.exit_code == 0
    assert (tmp_path / "audit" / "to_label.csv").read_text().splitlines()[0] == "id,label"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_sample_with_any_payload_is_read_back_equal(tmp_path, kind):
    payload = {"a, b": ["x\ny", "", "1"], "number": [1.5, 2.5, 3.5], "list": [[1, 2], [], [3]]}
    payload["missing"] = [None, "x", ""]
    objects = {name: np.empty(3, dtype=object) for name in payload}
    for name, values in payload.items():
        objects[name][:] = values
    population = stratal.Population.from_arrays(
        proxy={"a, proxy": [0.1, 0.5, 0.9]}, groups={"g, h": ["x", "", "z"]}, show=objects
    )
    sample = stratal.designs.SimpleRandom(budget=3).draw(population, seed=7)

    assert stratal.Sample.read(sample.write(tmp_path / f"sample.{kind}")) == sample


def test_two_columns_of_labels_are_refused(tmp_path):
    (tmp_path / "labels.csv").write_text("id,label,label\na,1,0\n")

    with pytest.raises(InputError, match="2 columns are called 'label'"):
        read_labels(tmp_path / "labels.csv")
