"""A file of finished cells belongs to one run at a time, and is checked when it is read."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest

import stratal
from stratal.errors import InputError
from stratal.simulation.simulation_table import CellStore

RUN = """
import sys, numpy, stratal
units = stratal.Population.from_arrays(proxy=numpy.linspace(0, 1, 300))
z = (numpy.arange(300) % 3 > 0).astype(float)
designs = ["simple-random", *(f"k-means:{number}:proportional" for number in range(2, 6))]
try:
    stratal.simulate(units, z, designs=designs, budgets=[20], replicates=3000, store=sys.argv[1])
except stratal.StratalError as error:
    sys.exit(str(error))
"""


def run(store):
    units = stratal.Population.from_arrays(proxy=np.linspace(0, 1, 100))
    z = (np.arange(100) % 3 > 0).astype(float)
    stratal.simulate(units, z, designs=["simple-random"], budgets=[20], replicates=20, store=store)
    return store


def test_of_runs_at_once_one_goes_on_and_the_others_are_told(tmp_path):
    command = [sys.executable, "-c", RUN, str(tmp_path / "cells.parquet")]
    runs = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    ends = [(process.communicate()[1], process.returncode) for process in runs]
    told = [message for message, code in ends if code]

    assert len(told) < 3
    assert all("another run is writing" in message for message in told)
    with CellStore.open(tmp_path / "cells.parquet") as store:
        assert len(store.cells) == 5


def test_a_second_run_is_refused_while_the_first_holds_the_file(tmp_path):
    with (
        CellStore.open(tmp_path / "cells.parquet"),
        pytest.raises(InputError, match="another run is writing"),
    ):
        run(tmp_path / "cells.parquet")
    run(tmp_path / "cells.parquet")

    assert [entry.name for entry in tmp_path.iterdir()] == ["cells.parquet"]


@pytest.mark.parametrize("name", ["cell", "mse", "design"])
def test_a_file_without_a_column_is_no_store(tmp_path, name):
    table = pq.read_table(run(tmp_path / "cells.parquet")).drop_columns([name])
    pq.write_table(table, tmp_path / "cells.parquet")

    with pytest.raises(InputError, match="cells of a simulation"):
        run(tmp_path / "cells.parquet")
