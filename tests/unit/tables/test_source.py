"""What engines say of a file, of memory and of the disk is one message with what to do."""

from __future__ import annotations

import os
import subprocess
import sys

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stratal.errors import InputError
from stratal.tables.source import translate_engine_errors

FULL = (
    "failed to offload data block of size 192.0 KiB (7.1 MiB/7.1 MiB used).\nThis limit was set by the "
    "'max_temp_directory_size' setting."
)


def raised(error):
    with pytest.raises(Exception, match=r".") as caught, translate_engine_errors("rows.parquet"):
        raise error
    return caught.value


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (duckdb.OutOfMemoryException(FULL), "the disk has no room"),
        (
            duckdb.IOException('Could not write file "/t/duckdb_temp_storage_S160K-0.tmp": No space left'),
            "the disk has no room",
        ),
        (
            duckdb.OutOfMemoryException("could not allocate block of size 256 KiB (14.0 MiB/14.3 MiB used)"),
            "Allow more memory, such as memory='2GB'",
        ),
        (duckdb.IOException("No magic bytes found at end of file"), "Check that the file is complete"),
    ],
)
def test_each_is_one_error_that_says_what_to_do(error, words):
    found = raised(error)

    assert isinstance(found, InputError)
    assert words in str(found)
    assert "\n" not in str(found)


def test_memory_that_the_machine_lacks_stays_what_it_is():
    error = duckdb.OutOfMemoryException("Allocation failure")

    assert raised(error) is error


LIMITED = """
import resource, sys, stratal
resource.setrlimit(resource.RLIMIT_FSIZE, (10**6, 10**6))
try:
    stratal.Population.read(sys.argv[1], proxy="proxy", threads=1, memory=sys.argv[2])
except stratal.InputError as error:
    print(error)
"""


@pytest.mark.parametrize(("memory", "words"), [("30MB", "the disk has no room"), ("2GB", "")])
def test_a_full_disk_while_spilling_is_one_error_and_leaves_nothing(tmp_path, memory, words):
    path, place = tmp_path / "rows.parquet", tmp_path / "temporary"
    place.mkdir()
    ids = np.random.default_rng(1).permutation(1_500_000) * 7919
    pq.write_table(pa.table({"id": ids, "proxy": np.full(len(ids), 0.5)}), path)
    environment = {**os.environ, "TMPDIR": str(place)}
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path), memory], env=environment, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    assert words in done.stdout
    assert done.stdout.count("\n") == bool(words)
    assert os.listdir(place) == []
