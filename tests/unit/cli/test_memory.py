"""A full disk and exhausted memory end every command in one message, never in a traceback."""

from __future__ import annotations

import csv
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import stratal
from stratal.cli.memory_errors import OUT_OF_MEMORY_MESSAGE, is_memory_error

COMMANDS = {
    "doctor": "doctor p.csv --proxy p",
    "plan": "plan p.csv --proxy p --budget 20",
    "draw": "draw p.csv --proxy p --budget 20 --output out",
    "simulate": "simulate p.csv --outcome z --proxy p --replicates 50 --output r.parquet",
    "demo": "demo --output demo",
    "new": "study new drawn --output study --question Right? --choices Pass,Fail --annotators a",
    "status": "study status made",
    "extend": "study extend made --additional 5 --without-labels",
    "team": "study team made",
    "check": "study check made",
    "backup": "study backup made --output copy",
    "export": "study export made --to csv --output e.csv --annotator a",
    "estimate": "estimate drawn/sample.parquet labels.csv",
    "report": "report drawn/sample.parquet labels.csv --output report.html",
}


SOURCE = str(Path(stratal.__file__).parents[1])

NATIVE = ("OpenBLAS", "bad_alloc", "ABORT")
"""What such libraries say."""


@pytest.fixture
def place(tmp_path):
    rng = np.random.default_rng(0)
    with (tmp_path / "p.csv").open("w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(["id", "p", "z"])
        rows.writerows([f"u{k}", round(float(rng.random()), 4), k % 2] for k in range(400))
    return tmp_path


def run(place, line, limits=()):
    def narrow():
        for limit, most in limits:
            resource.setrlimit(limit, (most, most))

    return subprocess.run(
        [sys.executable, "-m", "stratal", *line.split()],
        cwd=place,
        env=os.environ | {"COLUMNS": "200", "OMP_NUM_THREADS": "1", "PYTHONPATH": SOURCE},
        preexec_fn=narrow,
        capture_output=True,
        text=True,
        check=False,
    )


def made(place, line):
    """Make the study, or the sample and its labels, that a command reads."""
    before = []
    if "made" in line.split() or "drawn" in line:
        before = [COMMANDS["draw"].replace("--output out", "--output drawn")]
    if "made" in line.split():
        before.append(COMMANDS["new"].replace("--output study", "--output made"))
    for words in before:
        done = run(place, words)
        assert done.returncode == 0, done.stderr
    if "drawn/sample.parquet" in line:
        ids = stratal.Sample.read(place / "drawn" / "sample.parquet").ids
        (place / "labels.csv").write_text(
            "id,label\n" + "".join(f"{unit},{number % 2}\n" for number, unit in enumerate(ids))
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_disk_that_takes_no_byte_is_one_message(place, name):
    made(place, COMMANDS[name])
    before = sorted(path.name for path in place.iterdir())
    done = run(place, COMMANDS[name], [(resource.RLIMIT_FSIZE, 0)])

    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 2)
    assert done.stderr.count("Error:") == (done.returncode == 2)
    assert [path for path in sorted(place.iterdir()) if path.is_file() and path.name not in before] == []


@pytest.mark.slow
@pytest.mark.parametrize("megabytes", [350, 600])
@pytest.mark.parametrize("name", COMMANDS)
def test_exhausted_memory_is_one_message(place, name, megabytes):
    """Where a library written in C or C++ gets no memory it may end the process itself, with its own line."""
    made(place, COMMANDS[name])
    done = run(place, COMMANDS[name], [(resource.RLIMIT_AS, megabytes * 2**20)])

    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 2) or any(word in done.stderr for word in NATIVE)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        ImportError("libparquet.so: failed to map segment from shared object"),
        RuntimeError("Out of Memory Error: could not allocate block"),
        SystemError("<function f> returned NULL without setting an exception"),
    ],
)
def test_memory_is_recognised_however_it_is_said_and_wherever_it_began(error):
    later = ValueError("something else")
    later.__context__ = error

    assert is_memory_error(error)
    assert is_memory_error(later)


def test_other_errors_are_not_of_memory():
    assert not is_memory_error(KeyError("memory"))
    assert OUT_OF_MEMORY_MESSAGE.endswith(".")
