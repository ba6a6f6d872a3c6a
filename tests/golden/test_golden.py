"""What every version has written, read by this one: samples, estimates, simulations, studies."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.golden.make import population, samples

import stratal
from stratal.simulation.simulation_table import CellStore, SimulationTable
from stratal.study import check_study, estimate_study, open_study

VERSIONS = sorted(path for path in Path(__file__).parent.iterdir() if (path / "estimates.json").exists())
CASES = [
    (folder, name) for folder in VERSIONS for name in json.loads((folder / "estimates.json").read_text())
]


def test_there_is_a_first_version():
    assert VERSIONS[0].name == "0.1.0"


@pytest.mark.parametrize(("folder", "name"), CASES, ids=lambda value: getattr(value, "name", value))
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_sample_gives_the_estimate_that_it_gave(folder, name, suffix):
    told = json.loads((folder / "estimates.json").read_text(encoding="utf-8"))[name]
    sample = stratal.Sample.read(folder / f"{name}.{suffix}")
    result = stratal.estimate(sample, told["labels"], estimator="horvitz-thompson", outcome="binary")

    assert sample.ids.tolist() == told["ids"]
    assert result.value == pytest.approx(told["value"], rel=1e-12)
    assert result.standard_error == pytest.approx(told["standard_error"], rel=1e-12)


@pytest.mark.parametrize(("folder", "name"), CASES, ids=lambda value: getattr(value, "name", value))
def test_the_same_seed_draws_the_units_that_it_drew(folder, name):
    assert samples()[name].ids.tolist() == stratal.Sample.read(folder / f"{name}.parquet").ids.tolist()


def test_a_sample_of_numbered_rows_keeps_its_row_base(tmp_path):
    """Rows counted from 1 when it was written."""
    sample = stratal.Sample.read(VERSIONS[0] / "numbered-rows.csv")
    rows = [f"{n * 7 % 40 / 40},{'cat' if n % 3 else 'dog'}" for n in range(40)]
    file = tmp_path / "units.csv"
    file.write_text("\n".join(["score,answer", *rows]))
    columns = {"id": "row", "proxy": "score", "groups": "answer"}
    frame = pd.read_csv(file)

    for units in (
        stratal.Population.read(file, **columns),
        stratal.Population.read(file, missing="own-stratum", **columns),  # kept as a table
        stratal.Population.from_table(frame, **columns),
    ):
        larger = stratal.next_round(sample, additional=4, population=units)

        assert larger.ids.tolist()[:8] == sample.ids.tolist() == [30, 7, 23, 20, 17, 11, 39, 3]
        scores = frame["score"].to_numpy()[larger.ids - 1]
        assert larger.proxies[:, 0].tolist() == scores.tolist()
    assert sorted(units.units_with_ids(["0", "40"]).ids.tolist()) == [0]


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
def test_a_plan_says_what_it_said(folder):
    told = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    found = stratal.plan(population(), budget=20).to_dict()

    assert found["budget"] == told["budget"]
    assert found["population_size"] == told["population_size"]
    assert set(told) <= set(found)


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
def test_simulations_are_read(folder, tmp_path):
    path = Path(shutil.copy(folder / "cells.parquet", tmp_path))
    table = SimulationTable.from_parquet(folder / "simulation.parquet")

    with CellStore.open(path) as store:
        assert len(store.cells) == 2
    assert np.unique(table["budget"]).tolist() == [20, 40]


@pytest.mark.parametrize("folder", VERSIONS, ids=lambda folder: folder.name)
def test_a_study_goes_on_from_where_it_was(folder, tmp_path):
    (place := Path(shutil.copytree(folder / "study", tmp_path / "study"))).chmod(0o700)
    for reading in (True, False, True):  # read as it is, sealed when it is opened to write, and read again
        with open_study(place, read_only=reading) as study:
            assert check_study(study).problems == ()
            assert study.labels().answered == 25
            assert estimate_study(study).value == pytest.approx(0.85)
    with open_study(place) as study:
        study.submit("ann", study.history("ann")[0].item, "Fail")
        with study.database.write() as connection:
            connection.execute("UPDATE item SET stratum = stratum + 1 WHERE item = 3")
        assert check_study(study).problems
