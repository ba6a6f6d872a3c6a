"""Engines for tests: a Spark cluster of three processes, and a PostgreSQL server in a temporary directory.

They listen on the loopback interface and are always stopped at the end. `STRATAL_ENGINES` controls the tests
that need them. By default they are skipped if an engine is not installed; `required` (`.ci/run`) lets them
fail instead; `skip` (the fast job of the workflow) always skips them.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import stratal

PATIENCE = 300.0
NOBODY = "nobody"
READER = "reader"


def refuse(reason: str) -> None:
    """Skip the test, or let it fail if engines are required."""
    act = pytest.fail if os.environ.get("STRATAL_ENGINES") == "required" else pytest.skip
    act(reason)


def skip_on_request() -> None:
    """Skip the test if `STRATAL_ENGINES=skip`."""
    if os.environ.get("STRATAL_ENGINES") == "skip":
        pytest.skip("tests of engines are switched off (STRATAL_ENGINES=skip)")


def _end_with_parent() -> None:
    """Let Linux end this process when the tests end, even if they are killed."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


@contextmanager
def process(*words: object, stop: int = signal.SIGTERM, **how: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is stopped at the end, by this signal."""
    started = subprocess.Popen([str(word) for word in words], preexec_fn=_end_with_parent, **how)
    try:
        yield started
    finally:
        started.send_signal(stop)
        try:
            started.wait(10)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()


# ---- Spark


def require_spark() -> Path:
    """Return where PySpark is installed; skip or fail without it or without Java."""
    skip_on_request()
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        refuse("Spark needs Java (apt-get install openjdk-17-jre-headless)")
    try:
        import pyspark
    except ImportError:
        refuse("PySpark is not installed (pip install 'stratal[spark]')")
    return Path(pyspark.__file__).parent


@dataclass
class Cluster:
    """A standalone Spark: where its master is, and the processes of its workers."""

    folder: Path
    stack: contextlib.ExitStack
    master: str = ""
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, name: str, kind: str, *words: object) -> tuple[subprocess.Popen[bytes], Path]:
        """Start a master or a worker; return its process and its log."""
        home = require_spark()
        own = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(home), "SPARK_DAEMON_MEMORY": "256m"}
        own |= {"PYTHONPATH": str(Path(stratal.__file__).absolute().parent.parent)}  # workers' Python has it
        log = self.folder / f"{name}.log"
        with log.open("wb") as said:
            words = (home / "bin" / "spark-class", f"org.apache.spark.deploy.{kind}", *words)
            words = (*words, "--host", "127.0.0.1", "--webui-port", "0")
            started = process(*words, env={**os.environ, **own}, stderr=said, stdout=said)
            return self.stack.enter_context(started), log

    def start_workers(self, count: int) -> None:
        """Start workers of one core each, and wait until the master knows them."""
        logs = []
        for _ in range(count):
            name = f"worker{len(self.workers)}"
            work = ["--cores", 1, "--memory", "1g", "--work-dir", self.folder / name, self.master]
            worker, log = self.start(name, "worker.Worker", *work)
            self.workers.append(worker)
            logs.append(log)
        for log in logs:
            awaited(log, "Successfully registered with master")


@contextmanager
def spark_cluster(workers: int = 2) -> Iterator[Cluster]:
    """A master and workers as processes of their own."""
    require_spark()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, contextlib.ExitStack() as stack:
        cluster = Cluster(Path(folder), stack)
        _, log = cluster.start("master", "master.Master", "--port", 0)
        cluster.master = awaited(log, r"spark://127\.0\.0\.1:\d+")
        cluster.start_workers(workers)
        yield cluster


def awaited(log: Path, pattern: str) -> str:
    """Return what a log says in words that fit a pattern, once it does."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found[0]
        time.sleep(0.05)
    raise TimeoutError(f"{log.name} never said {pattern}: {log.read_text(errors='replace')[-2000:]}")


@contextmanager
def spark_session(master: str) -> Iterator[Any]:
    """A session on a Spark master, small enough for tests."""
    require_spark()
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("tests")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
        "spark.executor.memory": "600m",
        # Queries on a few hundred rows: less time goes into compiling them.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.wholeStage": "false",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


# ---- PostgreSQL


@dataclass(frozen=True)
class Server:
    """A PostgreSQL: its port on the loopback interface, and a role that may read and nothing else."""

    port: int
    reader: str = READER

    def connect(self, user: str = "postgres") -> Any:
        """Return an Ibis connection."""
        import ibis

        return ibis.postgres.connect(host="127.0.0.1", port=self.port, user=user, database="postgres")


def postgres_programs() -> Path:
    """Return the folder of PostgreSQL's programs; skip or fail without one."""
    skip_on_request()
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    found = shutil.which("initdb")
    if not folders and found is None:
        refuse("PostgreSQL is not installed (apt-get install postgresql)")
    return folders[-1] if folders else Path(str(found)).parent


@contextmanager
def postgres_server() -> Iterator[Server]:
    """A PostgreSQL server under an unprivileged user, which orders text by a locale and not by bytes."""
    pytest.importorskip("psycopg")
    programs = postgres_programs()
    how: dict[str, Any] = {"stdout": subprocess.DEVNULL}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True, dir="/tmp") as folder:
        if os.getuid() == 0:  # PostgreSQL refuses to run as root
            user = pwd.getpwnam(NOBODY)
            os.chown(folder, user.pw_uid, user.pw_gid)
            how |= {"user": user.pw_uid, "group": user.pw_gid, "cwd": folder}
        data = Path(folder, "data")
        words = [programs / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8"]
        locale = ["--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en"]
        subprocess.run([str(word) for word in (*words, *locale)], check=True, **how)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        settings = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": folder}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        how |= {"stderr": subprocess.DEVNULL, "stop": signal.SIGINT}  # without waiting for connections
        with process(programs / "postgres", "-D", data, "-F", *options, **how):
            yield _ready(Server(port))


def _ready(server: Server) -> Server:
    """Return the server once it answers, with its role that may only read."""
    import psycopg

    until = time.monotonic() + PATIENCE
    while True:
        try:
            address = f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres"
            with psycopg.connect(address, autocommit=True) as connection:
                for statement in (
                    f"CREATE ROLE {READER} LOGIN",
                    "REVOKE ALL ON DATABASE postgres FROM PUBLIC",
                    "REVOKE ALL ON SCHEMA public FROM PUBLIC",
                    f"GRANT CONNECT ON DATABASE postgres TO {READER}",
                    f"GRANT USAGE ON SCHEMA public TO {READER}",
                    f"ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO {READER}",
                    f"ALTER ROLE {READER} SET default_transaction_read_only = on",
                ):
                    connection.execute(statement)
            return server
        except psycopg.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
