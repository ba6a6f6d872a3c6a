"""Commands that write to one study at once, and while another process holds its lock.

Afterwards `study check` finds nothing, every command ended with success or one message, and what the commands
print is what the journal says, recomputed here from its lines alone.
"""

from __future__ import annotations

import itertools
import shutil
import sqlite3
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from tests.attack.damage import Findings
from tests.attack.nursery import Nursery, Run

import stratal
from stratal.study import open_study, study_status

WRITERS = {
    "extend": "study extend {study} --additional 5 --without-labels",
    "until": "study extend {study} --until 0.2",
    "import": "study import {study} {place}/answers.csv --annotator ann",
    "import again": "study import {study} {place}/other.csv --annotator ann",
    "add": "study team {study} --add carol",
    "set aside": "study team {study} --set-aside bob --reason r",
    "take back": "study team {study} --take-back bob",
    "rubric": "study team {study} --rubric {place}/rubric.md",
    "export page": "study export {study} --annotator bob --items 3 --output {study}-{number}.html",
    "export table": "study export {study} --to csv --annotator bob --items 3 --output {study}-{number}.csv",
    "backup": "study backup {study} --output {study}-{number}-copy",
}
"""Every command that writes to a study, or copies it while others write."""


def writing_together(tries: int, seed: int) -> Findings:
    """Run every pair of writing commands at once, each also while another process holds the lock."""
    found, every = Findings(), list(itertools.combinations_with_replacement(WRITERS, 2))
    chosen = [(every[(seed + k) % len(every)], bool((seed + k) // len(every) % 2)) for k in range(tries)]
    with tempfile.TemporaryDirectory() as folder, Nursery() as nursery:
        place = Path(folder)
        _prepare(nursery, place)
        for number, (pair, is_locked) in enumerate(chosen):
            study = place / f"study-{number}"
            shutil.copytree(place / "study", study)
            words = [
                WRITERS[name].format(study=study, place=place, number=turn).split()
                for turn, name in enumerate(pair)
            ]
            ran = _run_locked(nursery, study, words) if is_locked else nursery.run(*words)
            found.tries += 1
            wrong = _wrong(study, pair, ran, is_locked)
            if wrong:
                found.wrong.append(f"{pair}{' locked' if is_locked else ''}: {wrong}"[:600])
            for path in place.glob(f"study-{number}*"):
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()
    return found


def _prepare(nursery: Nursery, place: Path) -> None:
    """Write units, a study of two people with answers and a disagreement, and answers to import."""
    rows = [f"u{k},{(k * 7 % 200) / 200:.3f}" for k in range(200)]
    (place / "p.csv").write_text("\n".join(["id,p", *rows]))
    made = nursery.run(
        f"study new {place}/p.csv --proxy p --budget 20 --output {place}/study --question Right? "
        "--choices Pass,Fail --annotators ann,bob --overlap 0.5".split()
    )
    assert made.statuses == [0], made.said
    (place / "rubric.md").write_text("Be strict.")
    ids = stratal.Sample.read(place / "study/sample-1.parquet").ids.tolist()
    for name, values in (("answers", ("Pass", "Fail")), ("other", ("Fail", "Pass"))):
        lines = [f"{one},{values[k % 2]}" for k, one in enumerate(ids[:8])]
        (place / f"{name}.csv").write_text("\n".join(["id,label", *lines]))
    with open_study(place / "study") as study:
        for who, value in (("ann", "Pass"), ("bob", "Fail")):
            for _ in range(4):
                item = study.next_item(who)
                assert item is not None
                study.submit(who, item.id, value)


def _run_locked(nursery: Nursery, study: Path, words: list[list[str]]) -> Run:
    """Run commands while this process holds the lock of the study's database for longer than they wait."""
    lock = sqlite3.connect(study / "study.sqlite", isolation_level=None)
    try:
        lock.execute("BEGIN IMMEDIATE")
        return nursery.run(*words)
    finally:
        lock.rollback()
        lock.close()


def _wrong(study: Path, names: tuple[str, str], ran: Run, is_locked: bool) -> str:
    """Return what is wrong after two commands: how they ended, what a check finds, other numbers."""
    if any("Traceback" in said for said in ran.said) or not {*ran.statuses} <= {0, 2}:
        return f"ended with {ran.statuses}: {ran.said}"
    for status, said in zip(ran.statuses, ran.said, strict=True):
        if status == 2 and not said.startswith("Error: "):
            return f"no message: {said}"
    if is_locked and any(s == 0 for s, name in zip(ran.statuses, names, strict=True) if name != "backup"):
        return f"succeeded while another process held the lock: {ran.statuses}"
    with open_study(study) as opened:
        problems = stratal.study.check_study(opened).problems
        if problems:
            return f"the check finds {problems}"
        printed = study_status(opened)
        sample = opened.sample()
    return _differing(study, printed, sample)


def _differing(study: Path, printed: dict[str, Any], sample: stratal.Sample) -> str:
    """Return what of a status is not what the journal says."""
    expected = recomputed(study)
    submitted = {row["annotator"]: row["submitted"] for row in printed["annotators"]}
    pairs = {
        "answers of each": (submitted, {who: expected["submitted"].get(who, 0) for who in submitted}),
        "set aside": ({r["annotator"] for r in printed["annotators"] if r["set_aside"]}, expected["aside"]),
        "labelled": (printed["nonresponse"]["labelled"], expected["labelled"]),
        "items": (sample.size, expected["items"]),
        "rubric": (printed["rubric_version"], expected["rubric"]),
        "rounds": (len(printed["rounds"]), expected["rounds"]),
    }
    return "; ".join(f"{name}: {now}, not {then}" for name, (now, then) in pairs.items() if now != then)


def recomputed(study: Path) -> dict[str, Any]:
    """Return what the lines of a study's journal say, by replaying them one after the other."""
    with sqlite3.connect(f"file:{study / 'study.sqlite'}?mode=ro", uri=True) as connection:
        connection.row_factory = sqlite3.Row
        lines = connection.execute(
            "SELECT seq, journal.annotator, action, item.id AS id, value, target, journal.rubric "
            "FROM journal LEFT JOIN item USING (item) ORDER BY seq"
        ).fetchall()
        (items,) = connection.execute("SELECT count(*) FROM item").fetchone()
    history: dict[tuple[str, str], list[tuple[int, str, str | None]]] = {}
    decided: dict[str, str | None] = {}
    aside: set[str] = set()
    rounds, rubric = 0, 1
    for line in lines:
        key = (line["annotator"], line["id"])
        action = line["action"]
        if action in ("submit", "change", "skip"):
            history.setdefault(key, []).append((line["seq"], action, line["value"]))
        elif action == "undo":
            history[key] = [entry for entry in history[key] if entry[0] != line["target"]]
        elif action == "adjudicate":
            decided[line["id"]] = line["value"]
        elif action == "set-aside":
            aside.add(line["annotator"])
        elif action == "take-back":
            aside.discard(line["annotator"])
        elif action == "round":
            rounds += 1
        elif action == "rubric":
            rubric = int(line["value"])
    present = {key: entries[-1] for key, entries in history.items() if entries}
    answered = {key for key, (_, action, _) in present.items() if action != "skip"}
    labelled = {item for who, item in answered if who not in aside}
    labelled |= {item for item, value in decided.items() if value is not None}
    return {
        "submitted": Counter(who for who, _ in answered),
        "aside": aside,
        "labelled": len(labelled),
        "items": items,
        "rounds": rounds,
        "rubric": rubric,
    }
