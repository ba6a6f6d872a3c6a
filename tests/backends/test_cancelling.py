"""A program that is stopped while an engine works for it leaves no query running."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

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


@pytest.mark.xdist_group("postgres")
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
