"""A program that is stopped while an engine works for it leaves no query running."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import engines

ON_POSTGRES = """
import sys, ibis, stratal
place = dict(host="127.0.0.1", port=int(sys.argv[1]), user=sys.argv[2], database="postgres")
stratal.Population.from_table(ibis.postgres.connect(**place).table("slow_units"), id="id", proxy="proxy")
"""

SLOW_UNITS = """
CREATE OR REPLACE VIEW slow_units AS
SELECT g AS id, CASE WHEN pg_sleep(0.05) IS NULL THEN 0.0 ELSE 0.5 END AS proxy
FROM generate_series(1, 100000) g
"""


def becomes(true: Callable[[], Any], patience: float = 60.0) -> bool:
    until = time.monotonic() + patience
    while not true():
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


def test_ctrl_c_ends_the_query_on_postgresql(postgres: Any) -> None:
    import psycopg

    address = f"host=127.0.0.1 port={postgres.port} user=postgres dbname=postgres"
    with psycopg.connect(address, autocommit=True) as owner:
        owner.execute(SLOW_UNITS)

        def running() -> bool:
            asked = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND usename = %s"
            found = owner.execute(asked, [postgres.reader]).fetchone()
            return found is not None and found[0] > 0

        words = [sys.executable, "-c", ON_POSTGRES, str(postgres.port), postgres.reader]
        with subprocess.Popen(words, stderr=subprocess.DEVNULL) as reading:
            try:
                assert becomes(running)
                time.sleep(0.5)
                assert running()
                reading.send_signal(signal.SIGINT)
                assert reading.wait(30) != 0
            finally:
                reading.kill()
        assert becomes(lambda: not running(), 10.0)


def executors(cluster: engines.Cluster) -> list[int]:
    """Return the process numbers of a Spark cluster's executors."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile, or is somebody else's
            here = os.readlink(place / "cwd").startswith(str(cluster.folder))
            if here and b"CoarseGrainedExecutorBackend" in (place / "cmdline").read_bytes():
                found.append(int(place.name))
    return found


@pytest.mark.slow
def test_a_stopped_command_leaves_no_executor_on_a_spark_cluster(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    size = 3_000_000
    table = pa.table({"id": np.arange(size), "proxy": np.random.default_rng(1).random(size)})
    pq.write_table(table, tmp_path / "rows.parquet")
    words = ["draw", "rows.parquet", "--id", "id", "--proxy", "proxy", "--budget", "50", "--output", "audit"]
    with engines.spark_cluster(workers=1) as cluster:
        words = [sys.executable, "-m", "stratal", *words, "--engine", f"spark={cluster.master}"]
        with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.DEVNULL) as draw:
            try:
                assert becomes(lambda: executors(cluster) or draw.poll() is not None, 120.0)
                time.sleep(1.0)
                assert draw.poll() is None
                draw.send_signal(signal.SIGTERM)
                assert draw.wait(60) == 130
            finally:
                draw.kill()
        assert becomes(lambda: not executors(cluster))
    assert not (tmp_path / "audit").exists() or not any((tmp_path / "audit").iterdir())
