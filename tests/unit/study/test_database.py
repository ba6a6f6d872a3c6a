"""Nothing that was acknowledged is lost: killed servers, full disks, locks, clocks, other users' folders."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from tests.tiers import sized
from tests.unit.study.conftest import answer_all, population_of

import stratal
from stratal.errors import InputError
from stratal.study import StudyError, StudyQuestion, check_study, create_study, items, open_study
from stratal.study.database import DATABASE
from stratal.study.status import study_status

PEOPLE = ("ann", "bob", "carol", "dan")

SERVER = """
import sys, threading
from stratal.study import open_study

study = open_study(sys.argv[1])
out = threading.Lock()

def serve(line):
    who, item, request = line.rstrip("\\n").split("\\t")
    if item == "next":
        given = study.next_item(who)
        answer = f"{who}\\tgive\\t{'' if given is None else given.id}"
    else:
        study.submit(who, item, "Pass", request=request)
        answer = f"{who}\\tsaved\\t{request}"
    with out:
        print(answer, flush=True)

threads = {}
for line in sys.stdin:
    threading.Thread(target=serve, args=(line,), daemon=True).start()
"""


class Server:
    """A process that four clients talk to over a pipe, as they would to a page."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
            env={**os.environ, "PYTHONPATH": str(Path(stratal.__file__).parents[1])},
        )  # fmt: skip
        self.answers: dict[str, list[list[str]]] = {who: [] for who in PEOPLE}
        self.arrived = threading.Condition()
        self.alive, self.writing = True, threading.Lock()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        for line in self.process.stdout:
            if not line.endswith("\n"):
                break
            who, *rest = line.rstrip("\n").split("\t")
            with self.arrived:
                self.answers[who].append(rest)
                self.arrived.notify_all()
        with self.arrived:
            self.alive = False
            self.arrived.notify_all()

    def ask(self, who: str, item: str, request: str = "") -> list[str] | None:
        """Return the server's answer, None if it died before it gave one."""
        try:
            with self.writing:
                self.process.stdin.write(f"{who}\t{item}\t{request}\n")
                self.process.stdin.flush()
        except (OSError, ValueError):  # the pipe broke, or was closed already after the server was killed
            return None
        with self.arrived:
            while not self.answers[who] and self.alive:
                self.arrived.wait()
            return self.answers[who].pop(0) if self.answers[who] else None

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.reader.join()
        with contextlib.suppress(BrokenPipeError):  # what was being written when it died
            self.process.stdin.close()
        self.process.stdout.close()


def submit_all(
    server: Server, who: str, acknowledged: list[tuple[str, str]], retry: dict[str, tuple[str, str]]
):
    """Label until nothing is left or the server dies; keep what was acknowledged, and what was not."""
    if who in retry:
        item, request = retry[who]
        if server.ask(who, item, request) is None:
            return
        acknowledged.append((who, item))
        del retry[who]
    while True:
        given = server.ask(who, "next")
        if given is None or not given[1]:
            return
        request = f"{who}-{given[1]}"
        retry[who] = (given[1], request)
        if server.ask(who, given[1], request) is None:
            return
        acknowledged.append((who, given[1]))
        del retry[who]


def test_a_server_that_is_killed_again_and_again_loses_no_submission_and_doubles_none(tmp_path):
    size, most_kills = sized(120, 1000), sized(2, 20)
    population = stratal.Population.from_arrays(
        proxy=np.linspace(0, 1, size), ids=[f"unit-{number}" for number in range(size)]
    )
    sample = stratal.designs.SimpleRandom(budget=size).draw(population, seed=1)
    folder = tmp_path / "study"
    create_study(
        folder, sample, StudyQuestion.of_choices("Right?", ["Pass", "Fail"]), annotators=PEOPLE
    ).close()
    acknowledged, retry = [], {}
    random = np.random.default_rng(11)
    kills = 0
    while True:
        server = Server(folder)
        before = len(acknowledged)
        people = [
            threading.Thread(target=submit_all, args=(server, who, acknowledged, retry)) for who in PEOPLE
        ]
        for person in people:
            person.start()
        if kills < most_kills:
            # At a random moment of this server's share of the work.
            while len(acknowledged) - before < random.integers(5, 45) and any(p.is_alive() for p in people):
                time.sleep(0.0005)
            server.kill()
            kills += 1
        for person in people:
            person.join()
        if kills == most_kills and server.alive:
            server.kill()
            break

    with open_study(folder) as study:
        with study.database.read() as connection:
            rows = connection.execute(
                "SELECT annotator, item.id, count(*) FROM journal JOIN item USING (item) "
                "WHERE action <> 'round' GROUP BY annotator, item.id"
            ).fetchall()
        check = check_study(study)
        assert check.sound, check.problems
        assert kills == most_kills
        assert not retry
        assert len(acknowledged) == len(set(acknowledged)) == size
        assert {(row[0], row[1]) for row in rows} == set(acknowledged)
        assert {row[2] for row in rows} == {1}


def submit_until_it_fails(study):
    for _ in range(200):
        study.submit("ann", study.next_item("ann").id, "Pass", note="x" * 5000)


def test_a_full_disk_raises_an_error_and_loses_nothing(make_study, clock):
    study = make_study(annotators=["ann"])
    study.submit("ann", study.next_item("ann").id, "Pass")
    before = study.labels()
    with study.database.read() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]

    with open_study(study.folder, clock=clock, pragmas=(f"max_page_count={pages}",)) as full:
        with pytest.raises(StudyError, match="disk is full") as caught:
            submit_until_it_fails(full)
        assert caught.value.kind == "disk-full"
        held = full.next_item("ann")
        saved = full.history("ann", limit=1000)

    assert set(before.ids) <= {answer.item for answer in saved}
    assert check_study(study).sound
    # With space again, the answer that could not be saved is saved.
    assert study.submit("ann", held.id, "Pass", note="x" * 5000).action == "submit"


def test_a_locked_database_is_said_so_after_a_while(make_study, clock):
    study = make_study(annotators=["ann"])
    item = study.next_item("ann")
    other = sqlite3.connect(study.folder / DATABASE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with open_study(study.folder, clock=clock, timeout=0.1) as waiting:
        with pytest.raises(StudyError, match="another program is writing") as caught:
            waiting.submit("ann", item.id, "Pass", request="r1")
        assert caught.value.kind == "locked"
        assert waiting.next_item("ann").id == item.id
        other.execute("ROLLBACK")
        assert not waiting.submit("ann", item.id, "Pass", request="r1").repeated
    other.close()


@pytest.mark.parametrize("way", ["read", "write"])
def test_a_connection_in_which_a_mistake_was_made_is_closed(make_study, way):
    """Python 3.13 warns of connections that nobody closed."""
    database = make_study(annotators=["ann"]).database
    with pytest.raises(InputError), getattr(database, way)() as connection:
        raise InputError("unknown annotator")

    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")
    with database.read() as another:
        assert another is not connection


def test_a_clock_that_is_set_back_changes_no_order_and_is_mentioned(make_study, clock):
    study = make_study(annotators=["ann"])
    first = study.next_item("ann").id
    study.submit("ann", first, "Pass")
    clock.now -= 7200
    second = study.next_item("ann").id
    study.submit("ann", second, "Fail")

    assert [answer.item for answer in study.history("ann")] == [second, first]
    assert "clock is 2.0 h behind" in study.progress("ann").message
    assert any("clock went back 1 times" in note for note in check_study(study).notes)
    assert check_study(study).sound
    assert study.undo("ann").item == second


def test_a_clock_behind_the_last_label_is_mentioned_on_the_page(make_study, clock):
    study = make_study(annotators=["ann"])
    study.submit("ann", study.next_item("ann").id, "Pass")

    clock.now -= 7200

    assert "clock is 2.0 h behind" in study.progress("ann").message


def test_the_mention_of_the_clock_stays_until_it_is_right(make_study, clock):
    study = make_study(annotators=["ann"])
    study.submit("ann", study.next_item("ann").id, "Pass")
    clock.now -= 7200
    study.submit("ann", study.next_item("ann").id, "Pass")

    assert "behind" in study.progress("ann").message
    assert any("behind" in note for note in study_status(study)["notes"])
    clock.now += 7200
    assert study.progress("ann").message == ""


def test_a_label_from_the_future_is_not_mentioned_for_ever(make_study, clock):
    study = make_study(annotators=["ann"])
    clock.now += 1e8
    item = study.next_item("ann").id
    study.submit("ann", item, "Pass")
    clock.now -= 1e8

    for turn in range(50):
        assert "behind" in study.progress("ann").message
        study.flag("ann", item, on=turn % 2 == 0)

    assert study.progress("ann").message == ""


def test_items_left_lying_before_the_clock_went_back_are_not_lost(make_study, clock):
    study = make_study()
    left = study.next_item("ann")
    clock.now -= 86_400

    assert left.id in answer_all(study, "bob")


UNPRIVILEGED = """
import os, sys
import pandas, stratal.designs.sample_file
from stratal.study import StudyError, check_study, open_study
with open_study(sys.argv[1], read_only=True) as study:  # imports what it needs while that can be read
    check_study(study), study.labels()
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    study = open_study(sys.argv[1])
    study.submit("ann", sys.argv[2], "Pass")
except StudyError as error:
    print(error.kind, error)
with open_study(sys.argv[1], read_only=True) as study:
    print(check_study(study).sound, study.labels().answered)
"""


def test_a_folder_that_may_only_be_read_is_said_so_and_can_still_be_read(make_study):
    study = make_study(annotators=["ann"])
    study.submit("ann", study.next_item("ann").id, "Pass")
    item = study.next_item("ann")
    study.close()

    # pytest's own folders are closed to other users, and closed again whenever another run starts; the
    # package's may be, too.
    with tempfile.TemporaryDirectory() as open_to_all:
        os.chmod(open_to_all, 0o755)
        shutil.copytree(Path(stratal.__file__).parent, Path(open_to_all) / "stratal")
        env = {**os.environ, "PYTHONPATH": open_to_all}
        folder = Path(shutil.copytree(study.folder, Path(open_to_all) / "study"))
        for place in [*folder.iterdir(), folder]:
            place.chmod(0o555 if place.is_dir() else 0o444)
        done = subprocess.run(
            [sys.executable, "-c", UNPRIVILEGED, str(folder), item.id],
            capture_output=True, text=True, env=env, cwd="/", check=False,
        )  # fmt: skip
        folder.chmod(0o755)

    assert done.stdout.startswith("read-only"), done.stderr
    assert "cannot be written to" in done.stdout
    assert done.stdout.splitlines()[1] == "True 1", done.stderr


def test_many_threads_share_one_study(make_study):
    study = make_study(annotators=PEOPLE, overlap=0.5)
    faults = []

    def work(who):
        try:
            answer_all(study, who)
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=work, args=(who,)) for who in PEOPLE for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    # Two tabs of one person may both answer the last item that the person was given: that is a change.
    assert [fault for fault in faults if not isinstance(fault, StudyError)] == []
    assert study.progress("ann").done == study.progress("ann").total == 60
    assert check_study(study).sound


@pytest.mark.parametrize("journal", ["auto", "rollback"])
def test_both_journals_work(make_study, journal):
    study = make_study(annotators=["ann"], journal=journal)

    assert len(answer_all(study, "ann")) == 40
    with study.database.read() as connection:
        kept = connection.execute("PRAGMA journal_mode").fetchone()[0]
    assert kept == {"auto": "wal", "rollback": "delete"}[journal]


def test_items_that_were_assigned_while_one_waited_for_the_database_is_not_taken_away_again(
    make_study, clock
):
    # The time was read before the wait: what somebody got meanwhile lay in the future.
    study = make_study(sample=stratal.designs.SimpleRandom(budget=1).draw(population_of(9), seed=7))
    found = []
    waiting = threading.Thread(target=lambda: found.append(study.next_item("ann")))
    with study.database.write() as connection:
        waiting.start()
        time.sleep(0.3)
        clock.now += 10
        connection.now = clock()
        items.assign(connection, "bob", 1)
    waiting.join()

    assert found == [None]
    assert study.next_item("bob") is not None
