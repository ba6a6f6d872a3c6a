"""From a project of a platform to labels and back, against its own local server; killed in between."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest
from tests.environments import python_with, run_script

TOOLS = Path(__file__).parents[1] / "tools"
N_UNITS = 150

# Loading the client of a platform takes a second or more.
FIRST_KILL_SECONDS = 1.5
KILL_FACTOR = 1.5


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


@contextlib.contextmanager
def served(command, address, folder, **variables):
    """Run a server until the block ends; its output is in server.log."""
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            [*map(str, command)], cwd=folder, env=os.environ | variables, stdout=log, stderr=log
        )
        try:
            for _ in range(240):
                with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=5):
                    break
                assert server.poll() is None, (folder / "server.log").read_text()[-3000:]
                time.sleep(0.5)
            yield
        finally:
            server.terminate()
            server.wait(30)


class Client:
    """The commands in the environment of a platform."""

    def __init__(self, python, folder, script, **variables):
        self.python = python
        self.folder = folder
        self.script = TOOLS / script
        self.variables = variables

    def project(self, *words):
        return run_script(self.python, self.script, *words, cwd=self.folder, **self.variables)

    def count(self):
        return json.loads(self.project("count").splitlines()[-1])

    def stratal(self, *words):
        text = run_script(self.python, "-m", "stratal", *words, "--json", cwd=self.folder, **self.variables)
        return json.loads(text)

    def killed_later_and_later(self, *words):
        """Start a command and kill it, each time later, until it ends by itself."""
        seconds = FIRST_KILL_SECONDS
        while self.killed(seconds, *words):
            seconds *= KILL_FACTOR

    def killed(self, seconds, *words):
        """Start a command and kill it; return whether it was still running."""
        command = [str(self.python), "-m", "stratal", *map(str, words)]
        environment = os.environ | self.variables
        process = subprocess.Popen(command, cwd=self.folder, env=environment, stdout=subprocess.DEVNULL)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return True
        return False


@pytest.fixture
def mlflow(tmp_path):
    python = python_with("mlflow>=3.14")
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    server = [python, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", port, "--workers", 1]
    server += ["--backend-store-uri", f"sqlite:///{tmp_path}/mlflow.db"]
    server += ["--artifacts-destination", tmp_path / "artifacts"]
    with served(server, f"{address}/health", tmp_path):
        yield Client(python, tmp_path, "mlflow_project.py", MLFLOW_TRACKING_URI=address), "mlflow:support"


@pytest.fixture
def phoenix(tmp_path):
    python = python_with("arize-phoenix")
    address = f"http://127.0.0.1:{free_port()}"
    settings = {
        "PHOENIX_WORKING_DIR": str(tmp_path / "phoenix"),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": address.rpartition(":")[2],
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    with served([python, "-m", "phoenix.server.main", "serve"], address, tmp_path, **settings):
        yield Client(python, tmp_path, "phoenix_project.py", PHOENIX_BASE_URL=address), "phoenix:support"


@pytest.fixture
def langfuse(tmp_path):
    """A server that stands in for Langfuse, which has no server for Python; each request takes a moment."""
    python = python_with("langfuse")
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    variables = {
        "LANGFUSE_BASE_URL": address,
        "LANGFUSE_PUBLIC_KEY": "pk-test",
        "LANGFUSE_SECRET_KEY": "sk-test",
    }
    with served([python, TOOLS / "langfuse_server.py", port, 0.05], address, tmp_path):
        yield Client(python, tmp_path, "langfuse_project.py", **variables), "langfuse:support"


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["langfuse", "mlflow", "phoenix"])
def test_from_a_project_to_labels_and_back(platform, request, tmp_path):
    client, source = request.getfixturevalue(platform)
    client.project("seed", N_UNITS)
    read = ("platform", "read", source, "--output", "units.jsonl")
    client.killed_later_and_later(*read)
    assert client.stratal(*read)["units"] == N_UNITS
    assert client.stratal(*read)["new"] == 0
    units = [json.loads(line) for line in (tmp_path / "units.jsonl").read_text().splitlines()]
    assert sorted(unit["id"] for unit in units) == sorted(client.count()["units"])
    assert {unit["judge"] for unit in units} == {0.2, 0.9}
    assert {unit["input"] for unit in units} == {f"question {number}" for number in range(N_UNITS)}

    draw = ("draw", "units.jsonl", "--id", "id", "--proxy", "judge", "--show", "input,answer")
    client.stratal(*draw, "--budget", 60, "--seed", 1, "--output", "audit")
    queue = ("platform", "queue", source, "audit/sample.parquet", "--choices", "Pass,Fail")
    client.killed_later_and_later(*queue)
    queued = [client.stratal(*queue) for _ in range(2)]
    assert queued[1]["new"] == 0
    [items] = client.count()["queues"].values()
    assert len(items) == len(set(items)) == 60

    client.project("annotate")
    labels = ("platform", "labels", source, "audit/sample.parquet", "--output", "labels.csv")
    read_back = client.stratal(*labels)
    content = (tmp_path / "labels.csv").read_text()
    assert read_back["labels"] + read_back["skipped"] == 60
    assert read_back["skipped"] == 9
    assert client.stratal(*labels) == read_back
    assert (tmp_path / "labels.csv").read_text() == content
    assert content.count(",ann,submitted,") == 51
    estimate = client.stratal("estimate", "audit/sample.parquet", "labels.csv", "--map", "Pass=1,Fail=0")

    write = ("platform", "write", source, "audit/sample.parquet", "labels.csv", "--map", "Pass=1,Fail=0")
    client.killed_later_and_later(*write)
    assert [client.stratal(*write)["new"] for _ in range(2)] == [0, 0]
    result = client.count()
    assert len(result["feedback"]) == 51
    if platform != "phoenix":
        # Phoenix has no place for figures without a label that is written.
        [figures] = result["figures"]
        assert figures["estimate"] == pytest.approx(estimate["estimate"])

    # Labels that people wrote elsewhere: each is written once.
    client.stratal(*draw, "--budget", 40, "--seed", 2, "--output", "second")
    table = (tmp_path / "second" / "to_label.csv").read_text(encoding="utf-8").splitlines()
    rows = [f"{row.split(',')[0]},{'Pass' if number % 3 else 'Fail'}" for number, row in enumerate(table[1:])]
    (tmp_path / "elsewhere.csv").write_text("\n".join(["id,label", *rows]) + "\n")
    files = ("second/sample.parquet", "elsewhere.csv")
    elsewhere = ("platform", "write", source, *files, "--map", "Pass=1,Fail=0")
    client.killed_later_and_later(*elsewhere)
    assert client.stratal(*elsewhere)["new"] == 0
    result = client.count()
    assert len(result["feedback"]) == 51 + 40
    assert len({tuple(entry[:2]) for entry in result["feedback"]}) == 91
    assert len(result["figures"]) == {"langfuse": 2, "mlflow": 2, "phoenix": 1}[platform]
