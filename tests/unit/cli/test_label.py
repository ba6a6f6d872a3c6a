"""`stratal study label`: links are printed, the page answers, Ctrl-C ends it; mistakes are one message."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request

import pytest

import stratal
from stratal.study import StudyQuestion, create_study

pytest.importorskip("starlette")

COMMAND = [sys.executable, "-c", "from stratal.cli import main; main()", "study", "label"]


@pytest.fixture
def study(tmp_path):
    population = stratal.Population.from_arrays(proxy=[0.1, 0.5, 0.9], ids=["a", "b", "c"])
    sample = stratal.designs.SimpleRandom(budget=3).draw(population, seed=7)
    question = StudyQuestion.of_choices("Is it correct?", ["Pass", "Fail"])
    folder = tmp_path / "study"
    create_study(folder, sample, question, annotators=["ann", "bob"]).close()
    return folder


def started(*words):
    """Start the command with its output in a pipe that Python buffers, as it does unless told otherwise."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    line = [*COMMAND, *map(str, words)]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=kept)


def test_links_are_printed_and_open_the_page(study):
    server = started(study, "--port", 0)
    lines = [server.stdout.readline() for _ in range(6)]
    links = {line.split()[0]: line.split()[1] for line in lines if "http://" in line}
    page = urllib.request.urlopen(links["ann"], timeout=10).read()
    state = json.loads(urllib.request.urlopen(f"{links['bob']}api/state", timeout=10).read())
    server.send_signal(signal.SIGINT)
    output, errors = server.communicate(timeout=20)

    assert b"annotate" not in page
    assert b"page.js" in page
    assert state["annotator"] == "bob"
    assert (server.returncode, output, errors) == (130, "", "Stopped.\n")


def test_json_and_pseudonyms(tmp_path, study):
    server = started(study, "--port", 0, "--json")
    text = "".join(server.stdout.readline() for _ in range(9))
    server.send_signal(signal.SIGTERM)
    server.communicate(timeout=20)

    assert set(json.loads(text)["links"]) == {"ann", "bob"}


def test_a_second_server_is_told_of_the_first(run_command, study):
    server = started(study, "--port", 0)
    server.stdout.readline()
    second = run_command("study", "label", study, "--port", 0)
    server.terminate()
    server.communicate(timeout=20)

    assert "another server is already serving this study" in second.message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--format", "answer"], "COL=FORMAT"),
        (["--format", "answer=pdf"], "unknown format"),
        (["--port", "0.0.0.0:0"], "--address"),
        (["--media", "/nowhere"], "does not exist"),
        (["--port", "99999"], "invalid port"),
        (["--port", "web"], "PORT or HOST:PORT"),
    ],
)
def test_mistakes_are_one_message(run_command, study, words, message):
    done = run_command("study", "label", study, *words)

    assert done.status != 0
    assert message in done.message


def test_an_open_page_is_warned_of(study):
    server = started(study, "--port", "0.0.0.0:0", "--address", "http://192.0.2.1:8000")
    warning = server.stdout.readline()
    lines = [server.stdout.readline()]
    while lines[-1] and "/a/" not in lines[-1]:
        lines.append(server.stdout.readline())
    server.terminate()
    server.communicate(timeout=20)

    assert "not encrypted" in warning
    assert "http://192.0.2.1:8000/a/" in lines[-1]
