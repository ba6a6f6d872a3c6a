"""Scans tell how many rows they have, how far and how fast they are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stratal
from stratal.tables.engine import answer, connect, share_done
from stratal.tables.source import Scan, running_scan, scanning


def test_the_scans_of_a_population_are_seen_with_its_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("stratal.tables.rows.MOST_ROWS", 0)
    pq.write_table(pa.table({"id": range(500), "proxy": np.linspace(0, 1, 500)}), tmp_path / "p.parquet")
    seen = []

    def seen_answer(*query):
        seen.append(rows())
        return answer(*query)

    monkeypatch.setattr("stratal.tables.source.answer", seen_answer)
    population = stratal.Population.read(tmp_path / "p.parquet", proxy="proxy")
    checked = len(seen)
    stratal.plan(population, 20).draw(seed=7)

    assert checked < len(seen)
    assert set(seen[checked:]) == {500}
    assert running_scan() is None


def rows() -> int | None:
    scan = running_scan()
    return None if scan is None else scan.rows


@pytest.mark.parametrize(("rows", "share", "rate"), [(1000, 0.5, 250.0), (None, 0.5, None), (9, None, None)])
def test_a_rate_needs_rows_and_a_share(rows, share, rate):
    assert Scan(label="t", rows=rows, share=lambda: share, begun=0.0).rate(now=2.0) == rate


def test_a_scan_that_fails_has_ended():
    def fail():
        with scanning("t", 1, lambda: None):
            assert running_scan().label == "t"
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()

    assert running_scan() is None


def test_duckdb_tells_how_far_a_query_is():
    import threading

    backend, seen = connect(1), []
    if not hasattr(backend.con, "query_progress"):
        pytest.skip("this DuckDB does not tell")
    backend.raw_sql("CREATE TABLE t AS SELECT md5(i::VARCHAR) AS m FROM range(200_000) AS r(i)")
    query = "SELECT count(*) FROM t WHERE md5(md5(md5(md5(m)))) < '8'"
    thread = threading.Thread(target=lambda: backend.con.execute(query).fetchall())
    thread.start()
    while thread.is_alive():
        seen.append(share_done(backend))
    shares = [share for share in seen if share is not None]

    assert shares == sorted(shares)
    assert shares[-1] > 0
