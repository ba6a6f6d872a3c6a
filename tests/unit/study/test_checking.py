"""What is found wrong with a study is wrong with it, and not with the machine."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest

import stratal
from stratal.errors import InputError
from stratal.study import check_study
from stratal.study.rounds import add_round, larger_design


def test_exhausted_memory_is_no_damage_of_the_study(make_study, monkeypatch):
    study = make_study()

    def read(path):
        raise MemoryError

    monkeypatch.setattr("stratal.sampling.sample_file._read_parquet", read)
    with pytest.raises(InputError, match="not a sample file") as raised:
        check_study(study)
    assert isinstance(raised.value.__context__, MemoryError)


def test_a_thread_for_which_there_is_no_memory_is_no_damage(make_study, monkeypatch):
    study = make_study()

    def read(path):
        raise pa.ArrowException("Unknown error: Failed to launch worker thread: Resource unavailable")

    monkeypatch.setattr("stratal.sampling.sample_file._read_parquet", read)
    with pytest.raises(MemoryError, match="worker thread"):
        check_study(study)


def test_a_sample_that_cannot_be_read_is_damage_of_the_study(make_study, monkeypatch):
    study = make_study()

    def read(path):
        raise ValueError("no rows")

    monkeypatch.setattr("stratal.sampling.sample_file._read_parquet", read)

    assert any("not a sample file (no rows)" in problem for problem in check_study(study).problems)


def test_what_an_annotator_sees_is_what_the_sample_says(make_study):
    units = stratal.Population.from_arrays(ids=["a", "b", "c"], show={"text": ["one", None, "three"]})
    study = make_study(sample=stratal.SimpleRandom(budget=2).draw(units, seed=7))
    assert check_study(study).sound
    with study.database.write() as connection:
        row = connection.execute("SELECT id, payload FROM item LIMIT 1").fetchone()
        payload = dict.fromkeys(json.loads(row["payload"]), "another text")
        connection.execute("UPDATE item SET payload = ? WHERE id = ?", (json.dumps(payload), row["id"]))

    assert any(f"of item {row['id']!r} is not shown as" in problem for problem in check_study(study).problems)


def test_a_round_of_another_population_is_found(make_study, drawn, monkeypatch):
    study = make_study()
    larger = stratal.extend(drawn, larger_design(drawn, 5))
    other = replace(larger, proxies=larger.proxies[::-1])
    with pytest.raises(InputError, match="not the population that the sample was drawn from"):
        add_round(study, other)
    monkeypatch.setattr("stratal.study.rounds.require_same_draw", lambda *_: None)  # as 0.1.0 did
    add_round(study, other)

    found = check_study(study).problems
    assert any(problem.startswith("round 2: this is not the population") for problem in found)
