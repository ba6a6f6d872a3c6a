"""Studies, plans and returned files that somebody else wrote to do harm.

Each scene builds one and returns commands to run on it. Afterwards a file outside is as it was, its secret
is in no file that the commands wrote, nothing was connected to, and no command ended in a traceback.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.attack.damage import Findings
from tests.attack.nursery import Nursery

SECRET = "the-secret-of-another-file"
READING = ("study extend {study} --additional 3 --without-labels", "study status {study}")
ALL = (
    "study check {study}", "study status {study}", "study backup {study} --output {out}/copy",
    "study team {study} --rubric {place}/rubric.md", "study extend {study} --additional 3 --without-labels",
    "study export {study} --annotator ann --output {out}/page.html", "estimate {study}", "doctor {study}",
    "study import {study} {place}/answers.csv --annotator ann",
)  # fmt: skip


def _settings(study: Path, query: str, *values: str) -> None:
    with sqlite3.connect(study / "study.sqlite") as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(query, values)


def _names_file(name: str) -> Callable[[Path, Path, str], tuple[str, ...]]:
    def build(study: Path, outside: Path, _: str) -> tuple[str, ...]:
        shutil.copy(study / "sample-1.parquet", study.parent / "other.parquet")
        _settings(study, "UPDATE round SET file = ?", name.format(outside=outside))
        return ALL

    return build


def _link(name: str, to_folder: bool = False) -> Callable[[Path, Path, str], tuple[str, ...]]:
    def build(study: Path, outside: Path, _: str) -> tuple[str, ...]:
        path = study / name
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(outside.parent if to_folder else outside)
        return ALL

    return build


def _reading(**changes: object) -> Callable[[Path, Path, str], tuple[str, ...]]:
    def build(study: Path, _: Path, address: str) -> tuple[str, ...]:
        with sqlite3.connect(study / "study.sqlite") as connection:
            (stored,) = connection.execute("SELECT value FROM setting WHERE name = 'reading'").fetchone()
        changed = {name: str(value).format(address=address) for name, value in changes.items()}
        reading = {**json.loads(stored), **changed, "remote": True}
        _settings(study, "UPDATE setting SET value = ? WHERE name = 'reading'", json.dumps(reading))
        return (*READING, "estimate {study}")

    return build


def _plan(**changes: object) -> Callable[[Path, Path, str], tuple[str, ...]]:
    def build(study: Path, _: Path, address: str) -> tuple[str, ...]:
        plan = json.loads((study.parent / "plan.json").read_text())
        plan["options"] |= {name: str(value).format(address=address) for name, value in changes.items()}
        plan["options"]["remote"] = True
        folder = study.parent / "audit"
        (study / "hostile.json").write_text(json.dumps(plan))
        (folder / "plan.json").write_text(json.dumps(plan))
        labels = "--labels {place}/answers.csv --map Pass=1,Fail=0"
        return (
            "draw {study}/hostile.json --output {out}/drawn",
            f"draw --extend {folder}/sample.parquet {labels} --additional 3 --output {{out}}/more",
            f"estimate {folder}/sample.parquet {{place}}/answers.csv --map Pass=1,Fail=0",
        )

    return build


def _returned(**changes: str) -> Callable[[Path, Path, str], tuple[str, ...]]:
    def build(study: Path, _: Path, __: str) -> tuple[str, ...]:
        from stratal.study import open_study

        with open_study(study) as opened:
            item = opened.history("bob")[0].item
            file = {
                "format": "stratal-actions", "version": 1, "study": opened.id, "annotator": "ann",
                "key": opened.page_key("ann"),
                "actions": [{"action": "submit", "request": "r", "item": item, "value": "Pass"}],
            }  # fmt: skip
        (study.parent / "labels-ann.json").write_text(json.dumps({**file, **changes}))
        return ("study import {study} {study}/../labels-ann.json", "study status {study}")

    return build


ELSEWHERE = "http://{address}/p.csv"
SCENES: dict[str, Callable[[Path, Path, str], tuple[str, ...]]] = {
    "a round's file outside": _names_file("../other.parquet"),
    "a round's file by its whole path": _names_file("{outside}"),
    "a round's file behind a folder": _names_file("media/../../other.parquet"),
    "a round's file that is a link": _link("sample-1.parquet"),
    "a picture that is a link": _link("media/cat.png"),
    "media that is a link": _link("media", to_folder=True),
    "a folder of media that is a link": _link("media/cats", to_folder=True),
    "the journal's head is a link": _link("journal.head"),
    "the names are a link": _link("annotators.json"),
    "the server's lock is a link": _link("server.lock"),
    "a study reads an address": _reading(file=ELSEWHERE),
    "a study reads S3": _reading(file="s3://{address}/p.csv"),
    "a study reads by another Spark": _reading(engine="spark=spark://{address}"),
    "a study's history is an address": _reading(history=ELSEWHERE),
    "a plan reads an address": _plan(file=ELSEWHERE),
    "a plan reads by another Spark": _plan(engine="spark=spark://{address}"),
    "a plan's history is an address": _plan(history=ELSEWHERE),
    "a file that claims to be another's": _returned(annotator="bob"),
    "a file without a key": _returned(annotator="bob", key=""),
    "a file with an invented key": _returned(annotator="bob", key="0" * 64),
}
"""What is received → what builds it in a study's folder, and gives the commands to run on it."""


def received(tries: int, seed: int) -> Findings:
    """Run commands on hostile studies, plans and files: each scene in turn."""
    found, names = Findings(), list(SCENES)
    with tempfile.TemporaryDirectory() as folder, Nursery() as nursery, socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        listening.setblocking(False)
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        place = Path(folder)
        _prepare(nursery, place)
        for number in range(tries):
            name = names[(seed + number) % len(names)]
            found.tries += 1
            here, out = place / f"try{number}", place / f"try{number}" / "out"
            shutil.copytree(place / "made", here)
            out.mkdir()
            outside = here / "outside" / "private.txt"
            outside.parent.mkdir()
            outside.write_text(SECRET)
            words = SCENES[name](here / "study", outside, address)
            lines = [line.format(study=here / "study", place=place, out=out).split() for line in words]
            answers = _answers(here / "study")
            for line in lines:
                ran = nursery.run(line)
                found.refused += ran.statuses != [0]
                if any("Traceback" in said for said in ran.said) or ran.statuses[0] not in (0, 2, 3):
                    found.tracebacks.append(f"{name}: {line[:3]}: {ran.statuses} {ran.said}"[:600])
            wrong = _harm(outside, out, listening)
            if name.startswith("a file ") and _answers(here / "study") != answers:
                wrong = "another's answers were changed"
            if wrong:
                found.wrong.append(f"{name}: {wrong}")
            shutil.rmtree(here)
    return found


def _harm(outside: Path, out: Path, listening: socket.socket) -> str:
    """Return what was done to a file outside, to its secret, or on the network."""
    if outside.read_text() != SECRET or os.listdir(outside.parent) != [outside.name]:
        return f"written outside: {os.listdir(outside.parent)}"
    for path in out.rglob("*"):
        if path.is_file() and SECRET.encode() in path.read_bytes():
            return f"the secret was copied to {path.name}"
    try:
        listening.accept()
    except BlockingIOError:
        return ""
    return "a connection was opened"


def _answers(study: Path) -> list[tuple[str, str]]:
    """Return bob's answers."""
    with sqlite3.connect(f"file:{study / 'study.sqlite'}?mode=ro", uri=True) as connection:
        return connection.execute("SELECT item, value FROM answer WHERE annotator = 'bob'").fetchall()


def _prepare(nursery: Nursery, place: Path) -> None:
    """Make what the scenes change: units, a plan, a draw, a study with answers, and answers to import."""
    import stratal
    from stratal.study import open_study

    made = place / "made"
    made.mkdir()
    rows = [f"u{k},{(k * 7 % 200) / 200:.3f}" for k in range(200)]
    (place / "p.csv").write_text("\n".join(["id,p", *rows]))
    (place / "rubric.md").write_text("Be strict.")
    for line in (
        f"plan {place}/p.csv --proxy p --budget 20 --output {made}/plan.json",
        f"draw {made}/plan.json --output {made}/audit",
        f"study new {made}/audit --output {made}/study --question Right? --choices Pass,Fail "
        "--annotators ann,bob",
    ):
        ran = nursery.run(line.split())
        assert ran.statuses == [0], ran.said
    plan = json.loads((made / "plan.json").read_text())
    plan["options"]["file"] = str(place / "p.csv")
    (made / "plan.json").write_text(json.dumps(plan))
    ids = stratal.Sample.read(made / "audit/sample.parquet").ids.tolist()
    lines = [f"{one},{('Pass', 'Fail')[k % 2]}" for k, one in enumerate(ids)]
    (place / "answers.csv").write_text("\n".join(["id,label", *lines]))
    with open_study(made / "study") as study:
        for _ in range(6):
            item = study.next_item("bob")
            assert item is not None
            study.submit("bob", item.id, "Fail")
