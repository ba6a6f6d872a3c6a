"""Runs that are killed, at a random moment or at a system call: whole, or as if they had never begun."""

from __future__ import annotations

import csv
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tests.attack.damage import Findings
from tests.attack.nursery import Nursery, traces

import stratal
from stratal.designs.labelling_files import require_empty_folder
from stratal.errors import StratalError
from stratal.study import open_study


@dataclass
class Scene:
    """A run to kill: its words, what must stand there before, and what is wrong afterwards."""

    words: str
    judge: Callable[[Nursery, Path, list[str]], str]
    before: Callable[[Path, Path], object] = lambda place, folder: folder.mkdir()

    def run(self, place: Path, folder: Path) -> list[str]:
        """Return the words for a folder of this try, made ready."""
        self.before(place, folder)
        return self.words.format(place=place, folder=folder).split()


def _drawn(nursery: Nursery, folder: Path, words: list[str]) -> str:
    """Return what is wrong with what a killed draw left: neither whole nor cleared by the next one."""
    audit, sample = folder / "audit", folder / "audit/sample.parquet"
    try:
        if sample.exists():
            rows = (audit / "to_label.csv").read_text().splitlines()
            return "" if stratal.Sample.read(sample).size == len(rows) - 1 else "the two files do not fit"
        require_empty_folder(audit)
    except (StratalError, OSError) as error:
        return str(error)
    again = nursery.run(words)
    if {*os.listdir(audit)} - {"plan.json"} != {"sample.parquet", "to_label.csv"}:
        return f"{os.listdir(audit)} after the next draw: {again.said}"
    return ""


def _sound(nursery: Nursery, folder: Path, words: list[str]) -> str:
    """Return what is wrong with a study after a killed command that changes it, and after the same again."""
    first = nursery.run(["study", "check", f"{folder}/study"])
    again = nursery.run(words)
    last = nursery.run(["study", "check", f"{folder}/study"])
    ends = [*first.statuses, *last.statuses]
    return "" if ends == [0, 0] and again.statuses != [1] else f"{first.said} {again.said} {last.said}"


def _saved(nursery: Nursery, folder: Path, words: list[str]) -> str:
    """Return what is wrong after a killed import: answers are all there after the next one, each once."""
    wrong = _sound(nursery, folder, words)
    with open_study(folder / "study") as study:
        answers = [answer.item for answer in study.history("ann")]
    return wrong or ("" if len(set(answers)) == len(answers) == 20 else f"{answers}")


def _made(nursery: Nursery, folder: Path, words: list[str]) -> str:
    """Return what is wrong with a study that a killed command was making; the next one makes it whole."""
    made = folder / ("copy" if words[:2] == ["study", "backup"] else "study")
    again = nursery.run(words)
    checked = nursery.run(["study", "check", str(made)])
    whole = again.statuses == [0] or "is not empty" in again.said[0] or "already" in again.said[0]
    return "" if whole and checked.statuses == [0] else f"{os.listdir(folder)} {again.said} {checked.said}"


def _written(nursery: Nursery, folder: Path, words: list[str]) -> str:
    """Return what is wrong with a file that a killed run was writing: there and whole, or not there."""
    path = Path(words[-1])
    before = path.read_bytes() if path.exists() else None
    if before is not None:
        path.unlink()
    again = nursery.run(words)
    if again.statuses != [0]:
        return f"{again.said}"
    if before is not None and before != path.read_bytes():
        return f"{path.name}: {len(before)} bytes of {path.stat().st_size}"
    return "" if os.listdir(folder) == [path.name] else f"{os.listdir(folder)}"


def _resumed(nursery: Nursery, folder: Path, words: list[str]) -> str:
    """Return what is wrong with a simulation that goes on after it was killed: its table is another one."""
    again = nursery.run([*words, "--output", f"{folder}/table.parquet"])
    if again.statuses != [0] or sorted(os.listdir(folder)) != ["cells.parquet", "table.parquet"]:
        return f"{os.listdir(folder)} {again.said}"
    whole = folder.parent / "table.parquet"
    return "" if (folder / "table.parquet").read_bytes() == whole.read_bytes() else "another table"


def _with_study(place: Path, folder: Path) -> None:
    shutil.copytree(place / "study", folder / "study")


SCENES = {
    "handover": Scene("handover {folder}/audit 7", _drawn),
    "handover, empty folder": Scene(
        "handover {folder}/audit 7", _drawn, lambda _, folder: (folder / "audit").mkdir(parents=True)
    ),
    "draw": Scene("draw {place}/p.csv --proxy p --budget 20 --output {folder}/audit", _drawn),
    "simulate": Scene(
        "simulate {place}/p.csv --outcome z --proxy p --replicates 20 --budget 40,60 "
        "--resume {folder}/cells.parquet",
        _resumed,
    ),
    "report": Scene(
        "report {place}/audit/sample.parquet {place}/labels.csv --output {folder}/page.html", _written
    ),
    "init": Scene(
        "study new {place}/audit/sample.parquet --output {folder}/study --question Right? "
        "--choices Pass,Fail --annotators ann",
        _made,
    ),
    "backup": Scene("study backup {folder}/study --output {folder}/copy", _made, _with_study),
    "extend": Scene("study extend {folder}/study --additional 5 --without-labels", _sound, _with_study),
    "import": Scene("study import {folder}/study {place}/answers.csv --annotator ann", _saved, _with_study),
}  # fmt: skip


def prepare(nursery: Nursery, place: Path) -> None:
    """Write what the scenes read: units, a sample with its labels, a study and answers for it."""
    with (place / "p.csv").open("w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(["id", "p", "z"])
        rows.writerows([f"u{k}", round((k * 7 % 400) / 400, 4), k % 2] for k in range(400))
    nursery.run(SCENES["draw"].words.format(place=place, folder=place).split())
    made = nursery.run(SCENES["init"].words.format(place=place, folder=place).split())
    assert made.statuses == [0], made.said
    for name, sample, column, values in (
        ("labels.csv", "audit/sample.parquet", "label", "01"),
        ("answers.csv", "study/sample-1.parquet", "label", ("Pass", "Fail")),
    ):
        ids = stratal.Sample.read(place / sample).ids.tolist()
        lines = [f"{one},{values[k % 2]}" for k, one in enumerate(ids)]
        (place / name).write_text("\n".join([f"id,{column}", *lines]))
    words = SCENES["simulate"].words.format(place=place, folder=place).split()
    assert nursery.run([*words, "--output", f"{place}/table.parquet"]).statuses == [0]


def kills(tries: int, seed: int) -> Findings:
    """Kill every scene in turn: at each of Python's calls, at each of the kernel's, and at random moments.

    Of fewer tries than scenes each has a scene of its own.
    """
    rng, found, traced = np.random.default_rng(seed), Findings(), traces()
    with tempfile.TemporaryDirectory() as folder, Nursery() as nursery:
        place = Path(folder)
        prepare(nursery, place)
        scenes = list(SCENES.items())[:: max(1, len(SCENES) // tries)]
        whole = {name: _measured(nursery, scene, place, traced) for name, scene in scenes}
        for number in range(tries):
            name, scene = scenes[number % len(scenes)]
            here = place / f"try{number}"
            words = scene.run(place, here)
            turn = number // len(scenes)
            kind = ("call", "kernel", "moment")[turn % 3]
            turn = turn // 3 + 17 * seed
            if kind == "kernel" and not traced:
                kind = "call"
            calls, kernels, seconds = whole[name]
            if kind == "moment":
                what = float(rng.uniform(0, seconds))
                nursery.run(words, after=what)
            else:
                what = 1 + turn % (calls if kind == "call" else kernels)
                nursery.run(words, call=int(what), traced=kind == "kernel")
            found.tries += 1
            wrong = scene.judge(nursery, here, words)
            if wrong:
                found.wrong.append(f"{name}, {kind} {what}: {wrong}"[:400])
            shutil.rmtree(here)
    return found


def _measured(nursery: Nursery, scene: Scene, place: Path, traced: bool) -> tuple[int, int, float]:
    """Return how many calls a run makes that is not killed, Python's and the kernel's, and its seconds."""
    here, numbers, seconds = place / "whole", [0, 0, 0], 0.0
    for one in range(3):  # the first imports what the second and third need not
        words = scene.run(place, here)
        start = time.monotonic()
        ran = nursery.run(words, traced=traced and one == 2)
        assert ran.statuses == [0], (words, ran.said)
        numbers[one], seconds = ran.calls, seconds if one == 2 else time.monotonic() - start
        shutil.rmtree(here)
    return numbers[1], numbers[2], seconds


def _fits(folder: Path) -> bool:
    """Return whether a folder holds a sample, the table to label that belongs to it, and nothing else."""
    if sorted(os.listdir(folder)) != ["sample.parquet", "to_label.csv"]:
        return False
    rows = (folder / "to_label.csv").read_text().splitlines()[1:]
    ids = stratal.Sample.read(folder / "sample.parquet").ids.tolist()
    return bool([row.split(",")[0] for row in rows] == ids)


def pairs(tries: int, seed: int) -> Findings:
    """Draw twice into one folder at once: one draw is there, whole, and the other was told."""
    found = Findings()
    with tempfile.TemporaryDirectory() as place, Nursery() as nursery:
        for number in range(tries):
            found.tries += 1
            folder = Path(place) / f"audit{number}"
            if number % 2:
                folder.mkdir()
            ran = nursery.run(*(["handover", str(folder), str(2 * (seed + number) + one)] for one in (0, 1)))
            if sorted(ran.statuses) != [0, 2] or not _fits(folder):
                found.wrong.append(f"pair {number}: {json.dumps(vars(ran))} {os.listdir(folder)}"[:400])
    return found
