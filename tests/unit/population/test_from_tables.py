"""A file as a population: the same in memory and where it is, for several threads, and without pandas."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stratal
from stratal.population import Population
from stratal.population.in_memory import ArrayPopulation
from stratal.strata import Everything


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(0)
    columns = {"id": [f"u{n}" for n in range(3000)], "p": rng.random(3000), "g": rng.integers(0, 5, 3000)}
    pq.write_table(pa.table(columns), tmp_path / "p.parquet")
    return tmp_path / "p.parquet"


@pytest.mark.parametrize("most", [500_000, 0])
def test_several_threads_draw_from_one_population(path, monkeypatch, most):
    monkeypatch.setattr("stratal.tables.source.MAX_MEMORY_ROWS", most)
    population = Population.read(path, proxy="p", groups="g")
    assert isinstance(population, ArrayPopulation) == bool(most)
    plan = stratal.plan(population, 60)
    seeds = [*range(6)] * 3

    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda seed: plan.draw(seed=seed).ids.tolist(), seeds))

    alone = Population.read(path, proxy="p", groups="g")
    expected = {seed: stratal.plan(alone, 60).draw(seed=seed).ids.tolist() for seed in set(seeds)}
    assert found == [expected[seed] for seed in seeds]


def test_more_rows_than_fit_stay_where_they_are(path, monkeypatch):
    monkeypatch.setattr("stratal.tables.source.MAX_MEMORY_ROWS", 2999)
    here = Population.read(path, proxy="p")
    monkeypatch.setattr("stratal.tables.source.MAX_MEMORY_ROWS", 3000)
    held = Population.read(path, proxy="p")

    assert [isinstance(population, ArrayPopulation) for population in (here, held)] == [False, True]
    rows = [
        population.units_with_smallest_keys(Everything(), np.array([50]), 1).ids.tolist()
        for population in (here, held)
    ]
    assert rows[0] == rows[1]


def test_a_long_text_beside_short_ones_is_not_padded_in_memory(tmp_path):
    groups = ["a"] * 2999 + ["b" * 2**17]
    pq.write_table(pa.table({"id": range(3000), "g": groups}), tmp_path / "p.parquet")

    population = Population.read(tmp_path / "p.parquet", groups="g")

    assert not isinstance(population, ArrayPopulation)
    assert population.levels("g")["a"] == 2999


WITHOUT_PANDAS = """
import sys
class Gone:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "pandas":
            raise ModuleNotFoundError(name, name="pandas")
sys.meta_path.insert(0, Gone())
import stratal
from stratal.tables import source as rows
for rows.MAX_MEMORY_ROWS in (500_000, 0):
    population = stratal.Population.read(sys.argv[1], proxy="p", groups="g")
    sample = stratal.plan(population, 60).draw(seed=3)
    print(type(population).__name__, sample.ids.tolist()[:5], population.levels("g"))
    print([len(batch["p"]) for batch in population.batches(("p",), 2000)])
"""


def test_a_table_is_queried_where_pandas_is_not_installed(path):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PANDAS, str(path)], capture_output=True, text=True, check=False
    )

    # stderr is not compared: under coverage, DuckDB reports at its end what the tracer still holds.
    assert done.returncode == 0, done.stderr
    held, batches, queried, queried_batches = done.stdout.splitlines()
    assert held.startswith("ArrayPopulation")
    assert queried.startswith("TablePopulation")
    assert held.partition(" ")[2] == queried.partition(" ")[2]
    assert batches == queried_batches == "[2000, 1000]"


def both_ways(path: Path, monkeypatch: pytest.MonkeyPatch, **columns: Any) -> tuple[Population, Population]:
    held = Population.read(path, **columns)
    with monkeypatch.context() as patched:
        patched.setattr("stratal.tables.source.MAX_MEMORY_ROWS", 0)
        queried = Population.read(path, **columns)
    assert isinstance(held, ArrayPopulation)
    assert not isinstance(queried, ArrayPopulation)
    return held, queried


def test_a_proxy_may_be_a_group_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory its order was refused, as that of categories."""
    path = tmp_path / "rows.csv"
    path.write_text("id,p\na,1\nb,0\nc,1\nd,0.5\n")
    held, queried = both_ways(path, monkeypatch, proxy="p", groups="p")

    ranks = np.array([0, 1])
    assert held.at_ranks("p", ranks, 3).ids.tolist() == queried.at_ranks("p", ranks, 3).ids.tolist()


@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_nan_in_parquet_is_missing_though_the_extents_of_its_columns_have_none(tmp_path, monkeypatch, kind):
    """DuckDB 2 takes the extents' word: `isnan` and `x != x` are false, a stratum was called nan."""
    monkeypatch.setattr("stratal.tables.source.MAX_MEMORY_ROWS", 0)
    score = np.random.default_rng(1).random(200).astype(kind)
    score[[5, 70]] = np.nan
    columns = {"id": np.arange(200), "score": score, "other": 1 - score}
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")

    apart = Population.read(tmp_path / "rows.parquet", proxy="score", missing="own-stratum")

    assert list(stratal.plan(apart, 40).strata.sizes)[-1] == 2
    for told in ({"proxy": "score"}, {"softmax": ["score", "other"]}):
        with pytest.raises(stratal.InputError, match=r"2 values that are NaN \(first: nan, id '?5'?, row 6"):
            Population.read(tmp_path / "rows.parquet", **told)
    with pytest.raises(stratal.InputError, match="group column 'score' holds 2 missing values"):
        Population.read(tmp_path / "rows.parquet", groups="score")
