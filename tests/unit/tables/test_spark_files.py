"""What is refused before any Spark runs."""

from __future__ import annotations

import sys

import pytest

from stratal.errors import InputError, MissingExtraError
from stratal.population import Population
from stratal.tables.spark_files import session_at


def test_without_pyspark_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(MissingExtraError, match=r"stratal\[spark\]"):
        session_at(None)


def test_without_java_it_is_said_how_to_get_it(monkeypatch):
    sql = pytest.importorskip("pyspark.sql")
    monkeypatch.setattr(sql.SparkSession, "getActiveSession", lambda: None)

    def fail(builder):
        raise RuntimeError("JAVA_GATEWAY_EXITED")

    monkeypatch.setattr(sql.SparkSession.Builder, "getOrCreate", fail)
    with pytest.raises(InputError, match=r"did not start.*Install Java 17 or 21"):
        session_at("local[1]")


@pytest.mark.parametrize("name", ["rows.xlsx", "rows.json", "rows.feather"])
def test_other_formats_are_refused_with_a_way_out(tmp_path, name):
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(InputError, match=r"Spark cannot read this format.*parquet, csv, jsonl"):
        Population.read(tmp_path / name, engine="spark")


def test_a_sample_is_no_file_of_predictions_on_spark_either(tmp_path, population):
    import stratal

    stratal.designs.SimpleRandom(budget=5).draw(population, seed=7).write(tmp_path / "sample.parquet")
    with pytest.raises(InputError, match="is a drawn sample"):
        Population.read(tmp_path / "sample.parquet", engine="spark")
