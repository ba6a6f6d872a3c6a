"""The page's server killed while four clients submit: what was acknowledged is there, once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from http.client import HTTPException
from urllib.parse import urlsplit

import numpy as np
import pytest

import stratal
from stratal.study import StudyQuestion, check_study, create_study, open_study

pytest.importorskip("starlette")

PEOPLE = ("ann", "bob", "carol", "dan")
COMMAND = [sys.executable, "-c", "from stratal.cli import main; main()", "study", "label", "--json", "--port"]


def start(folder, port):
    server = subprocess.Popen([*COMMAND, str(port), str(folder)], stdout=subprocess.PIPE, text=True)
    text = ""
    while server.poll() is None and not text.endswith("}\n}\n"):
        text += server.stdout.readline()
    server.stdout.close()
    return server, json.loads(text)["links"]


def ask(link, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    sent = urllib.request.Request(link + path, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(sent, timeout=10) as answer:
        return json.loads(answer.read())


def label(link, stop, acknowledged, wanted):
    """Label as the page does: the same request again until it is acknowledged."""
    random_number = random.Random(link)
    body = None
    while not stop.is_set() and len(acknowledged) < wanted:
        try:
            item = ask(link, "api/state")["item"] if body is None else None
            if body is None and item is None:
                return
            if body is None:
                request = f"{random_number.getrandbits(64):x}"
                value = random_number.choice(["Pass", "Fail"])
                body = {"action": "submit", "request": request, "item": item["id"], "value": value}
            ask(link, "api/act", body)
            acknowledged.append(body)
            body = None
        except (OSError, HTTPException):
            time.sleep(0.05)


@pytest.mark.slow
def test_forty_kills_lose_and_double_nothing(tmp_path):
    lost_nothing(tmp_path, kills=40, wanted=2000)


def test_two_kills_lose_and_double_nothing(tmp_path):
    lost_nothing(tmp_path, kills=2, wanted=60)


def lost_nothing(tmp_path, kills, wanted):
    size = wanted + 100
    population = stratal.Population.from_arrays(
        proxy=np.linspace(0.1, 0.9, size), ids=[f"u{number}" for number in range(size)]
    )
    sample = stratal.designs.SimpleRandom(budget=size).draw(population, seed=7)
    folder = tmp_path / "study"
    create_study(folder, sample, StudyQuestion.of_choices("?", ["Pass", "Fail"]), annotators=PEOPLE).close()
    server, links = start(folder, 0)
    port = urlsplit(links["ann"]).port
    acknowledged = {who: [] for who in PEOPLE}
    stop = threading.Event()
    threads = [
        threading.Thread(target=label, args=(links[who], stop, acknowledged[who], wanted // len(PEOPLE)))
        for who in PEOPLE
    ]
    for thread in threads:
        thread.start()
    killed = 0
    generator = random.Random(7)
    while any(thread.is_alive() for thread in threads):
        done = sum(map(len, acknowledged.values()))
        if killed < kills and done >= wanted * killed / (kills + 1):
            time.sleep(generator.uniform(0.0, 0.1))
            os.kill(server.pid, signal.SIGKILL)
            server.wait()
            killed += 1
            server, _ = start(folder, port)
        time.sleep(0.005)
    stop.set()
    server.terminate()
    server.wait()

    assert killed == kills
    with open_study(folder) as study:
        assert check_study(study).problems == ()
        for who in PEOPLE:
            saved = {answer.item: answer.value for answer in study.history(who, limit=1000)}
            said = {body["item"]: body["value"] for body in acknowledged[who]}
            assert len(said) == len(acknowledged[who]) == wanted // len(PEOPLE)
            assert saved == said
            assert study.progress(who).submitted == len(said)
