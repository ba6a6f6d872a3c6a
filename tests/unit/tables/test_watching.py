"""Scans tell those who watch how many rows, how far and how fast; nothing is counted for nobody."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stratal
from stratal.tables.engine import connect, share_done
from stratal.tables.source import Scan, Watch, scanning, watched, watching


def test_every_scan_of_a_population_is_seen_with_its_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("stratal.tables.rows.MOST_ROWS", 0)
    pq.write_table(pa.table({"id": range(500), "proxy": np.linspace(0, 1, 500)}), tmp_path / "p.parquet")
    seen = []
    with watching(Watch(lambda scan, seconds: seen.append((scan.rows, seconds)))):
        population = stratal.Population.read(tmp_path / "p.parquet", proxy="proxy")
        stratal.plan(population, 20).draw(seed=7)

    assert len(seen) >= 5
    assert {rows for rows, _ in seen[1:]} == {500}  # the first one counted them
    assert all(seconds >= 0 for _, seconds in seen)
    assert not watched()


def test_nothing_is_counted_where_nobody_watches(tmp_path, monkeypatch):
    pq.write_table(pa.table({"id": range(9), "proxy": np.linspace(0, 1, 9)}), tmp_path / "p.parquet")
    monkeypatch.setattr("stratal.tables.rows.MOST_ROWS", 0)
    monkeypatch.setattr("stratal.tables.source.share_done", lambda _: pytest.fail("asked"))

    assert stratal.Population.read(tmp_path / "p.parquet", proxy="proxy").size == 9


@pytest.mark.parametrize(("rows", "share", "rate"), [(1000, 0.5, 250.0), (None, 0.5, None), (9, None, None)])
def test_a_rate_needs_rows_and_a_share(rows, share, rate):
    assert Scan(label="t", rows=rows, share=lambda: share, begun=0.0).rate(now=2.0) == rate


def test_a_scan_that_fails_has_ended():
    seen, watch = [], Watch()
    watch.ended = lambda scan, seconds: seen.append(scan.label)

    def fail():
        with watching(watch), scanning("t", 1, lambda: None):
            assert watch.running.label == "t"
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()

    assert (watch.running, seen) == (None, ["t"])


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
