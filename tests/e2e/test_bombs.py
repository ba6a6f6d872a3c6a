"""Small files that stand for much: one message, within the memory that docs/guarantees.md states."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.tiers import cells

import stratal

MOST = 600
"""MiB of memory that a command may take."""

SOURCE = str(Path(stratal.__file__).parents[1])


def line_of_six_gigabytes(path):
    member = gzip.compress(b"a" * 2**26, 9)
    path.write_bytes(gzip.compress(b"id,label\n") + member * 96)


def nested(path):
    path.write_bytes(b"[" * 10_000_000)


def digits(path):
    path.write_text('[{"id": "a", "label": %s}]' % ("9" * 5_000))


def values(path):
    path.write_bytes(gzip.compress(b'[{"a":1}' + b',{"a":1}' * 2**24 + b"]", 1))


def nested_objects(path):
    path.write_bytes(b'{"id": "a", "label": ' + b'{"a": ' * 2_000_000 + b"1" + b"}" * 2_000_000 + b"}")


def one_text_a_hundred_thousand_times(path):
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int32()), pa.array(["x" * 1_000_000]))
    pq.write_table(pa.table({"id": texts, "label": [1.0] * 100_000}), path, compression="zstd")


BOMBS = {
    "line.csv.gz": line_of_six_gigabytes,
    "nested.json": nested,
    "digits.json": digits,
    "values.json.gz": values,
    "objects.jsonl": nested_objects,
    "texts.parquet": one_text_a_hundred_thousand_times,
}


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    path = tmp_path_factory.mktemp("bombs") / "sample.parquet"
    population = stratal.Population.from_arrays(proxy=[0.1, 0.5, 0.9], ids=["a", "b", "c"])
    return stratal.designs.SimpleRandom(budget=2).draw(population, seed=1).write(path)


MEASURED = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
sys.stderr.buffer.write(done.stderr)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(done.returncode)
"""
"""A small program between: Linux counts with a program what its process held before it was loaded."""


def ended(words):
    """Run a command; its status, what it complained of, and its largest memory in MiB."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, sys.executable, "-m", "stratal", *map(str, words)],
        env=os.environ | {"COLUMNS": "200", "OMP_NUM_THREADS": "1", "PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr, int(done.stdout) / 1024


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in other units there")
@pytest.mark.parametrize("name", cells(BOMBS, fast=("objects.jsonl", "texts.parquet")))
def test_a_file_that_explodes_is_one_message_within_the_stated_memory(tmp_path, sample, name):
    path = tmp_path / name
    BOMBS[name](path)
    kinds = [["estimate", sample, path], ["plan", path, "--budget", "2", "--proxy", "label"]]
    if name.endswith(".parquet"):
        kinds[-1] = ["doctor", path]  # which reads every column
    for words in kinds:
        status, said, most = ended(words)
        assert status == 2
        assert said.startswith("Error: ")
        assert said.count("\n") == 1
        assert most < MOST
