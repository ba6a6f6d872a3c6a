"""A command leaves nothing in the temporary folder."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from tests.tiers import cells

import stratal

SOURCE = str(Path(stratal.__file__).parents[1])
UNITS = "--proxy proxy --budget 20"
LINES = [
    "doctor rows.json --proxy proxy",
    "doctor marked.jsonl.gz",
    "doctor rows.csv",
    f"plan rows.json {UNITS}",
    f"draw rows.csv {UNITS} --output audit; estimate audit/sample.parquet labels.csv --id row; "
    "report audit/sample.parquet labels.csv --id row --output report.html",
    "simulate rows.csv --outcome z --proxy proxy --budget 25 --replicates 20 --workers 2",
    f"draw rows.csv {UNITS} --output a; "
    "study new a --output st --question Right? --choices 1,0 --annotators ann; "
    "study export st --annotator ann --output page.html; "
    "study export st --to label-studio --output tasks.json; "
    "study check st; study backup st --output copy; study extend st --additional 2 --without-labels",
    "demo --budget 60",
]


@pytest.fixture
def folder(tmp_path):
    """Files of units in several formats, and an empty temporary folder."""
    random = np.random.default_rng(0)
    rows = [
        {"id": f"u{k}", "proxy": p, "z": float(p > 0.4)} for k, p in enumerate(random.random(60).tolist())
    ]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    text = "\n".join(map(json.dumps, rows))
    (tmp_path / "marked.jsonl.gz").write_bytes(gzip.compress(text.encode("utf-8-sig")))
    lines = [f"{row['id']},{row['proxy']},{row['z']}" for row in rows]
    (tmp_path / "rows.csv").write_text("\n".join(["id,proxy,z", *lines]) + "\n")
    (tmp_path / "labels.csv").write_text("\n".join(["label", *"10101" * 4]) + "\n")
    (tmp_path / "temporary").mkdir()
    return tmp_path


@pytest.mark.parametrize("line", cells(LINES, fast=[LINES[1], LINES[5]]))
def test_nothing_is_left_in_the_temporary_folder(folder, line):
    for words in line.split("; "):
        done = subprocess.run(
            [sys.executable, "-m", "stratal", *words.split()],
            cwd=folder,
            env=os.environ | {"TMPDIR": str(folder / "temporary"), "PYTHONPATH": SOURCE},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert list((folder / "temporary").iterdir()) == []


def test_what_tests_and_examples_leave_goes_with_them():
    place = Path(tempfile.gettempdir())

    assert place.name.startswith("stratal-tests-")
    assert Path(os.environ["TMPDIR"]) == place
