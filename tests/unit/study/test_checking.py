"""What is found wrong with a study is wrong with it, and not with the machine."""

from __future__ import annotations

import pyarrow as pa
import pytest

from stratal.errors import InputError
from stratal.study import check_study


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
