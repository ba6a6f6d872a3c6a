"""Valid command lines about a study and about what was drawn: what they print is what the library answers."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tests.attack.damage import Findings

import stratal
from stratal.study import open_study

ToolAnswer = Callable[[list[str], Findings], Any]
"""Runs a command line with --json, and gives what it printed, None where it refused."""

OPTIONS = {
    "draw": ([], ["--strata", "4"], ["--stratify", "none"], ["--show", "text"], ["--groups", "group"]),
    "export": (["--to", "csv"], ["--to", "jsonl"], ["--to", "label-studio"], ["--to", "html"]),
    "report": ([], ["--confidence-level", "0.8"], ["--estimator", "difference"], ["--interval", "t"]),
    "simulate": (["--estimator", "difference"], ["--design", "simple-random"], ["--interval", "t"]),
}
ENDINGS = {"csv": "csv", "jsonl": "jsonl", "label-studio": "json", "html": "html"}


def study_round(
    units: list[str], folder: Path, rng: np.random.Generator, found: Findings, said: ToolAnswer
) -> None:
    """Make a study, label it through a file, and ask for its state, its estimate, a report and more items."""
    study, picked = str(folder / "study"), _picked(rng)
    drawn = str(folder / "drawn")
    if said(["draw", *units, "--budget", "20", *picked["draw"], "--output", drawn], found) is None:
        return
    asked = ["--output", study, "--question", "Right?", "--choices", "Pass,Fail", "--annotators", "ann"]
    made = said(["study", "new", drawn, *asked], found)
    if made is None:
        return
    same(found, "study new", [made["n"], made["population_size"]], [20, len(_rows(units))])
    out = folder / f"out.{ENDINGS[picked['export'][1]]}"
    whose = ["--annotator", "ann"]
    given = said(["study", "export", study, *picked["export"], "--output", str(out), *whose], found)
    if given is not None and "items" in given:
        same(found, f"export {picked['export']}", given["items"], made["answers"])
    values = _labelled(folder / "back.csv", study, rng)
    back = ["study", "import", study, str(folder / "back.csv"), *whose]
    said([*back, "--dry-run"], found)
    same(found, "import --dry-run", _labels(study), {})
    said(back, found)
    same(found, "import", _labels(study), values)
    _answers(study, values, folder, picked["report"], found, said)
    more = said(["study", "extend", study, "--additional", "3"], found)
    with open_study(study) as opened:
        same(found, "extend", [opened.sample().size, more is None], [23, False])


def _answers(
    study: str, values: dict[str, float], folder: Path, option: list[str], found: Findings, said: ToolAnswer
) -> None:
    """Compare the estimate of a study and of its report with the library's, and its state with the labels."""
    with open_study(study) as opened:
        estimate = stratal.estimate(opened.sample(), values)
    state = said(["study", "status", study], found)
    same(found, "status", [state["nonresponse"]["labelled"], state["estimate"]["estimate"]],
         [len(values), estimate.value])  # fmt: skip
    page = folder / "report.html"
    said(["report", study, "--output", str(page), *option], found)
    if not option:
        same(found, "report", f"{estimate.value:.4g}" in page.read_text(encoding="utf-8"), True)
    checked = said(["study", "check", study], found)
    same(found, "check", checked["sound"], True)
    said(["study", "backup", study, "--output", str(folder / "copy")], found)
    same(found, "backup", _labels(str(folder / "copy")), values)


def table_round(
    units: list[str], made: Path, rng: np.random.Generator, found: Findings, said: ToolAnswer
) -> None:
    """Ask what files are, and simulate one."""
    told = said(["doctor", units[0]], found)
    same(found, "doctor FILE", told["rows"], len(_rows(units)))
    told = said(["doctor", str(next(made.glob("to_label*.csv")))], found)
    same(found, "doctor to_label.csv", told["answers"], 0)
    option = _picked(rng)["simulate"]
    words = [*units, "--outcome", "z", "--budget", "25", "--replicates", "30", "--seed", "5", *option]
    first, again = said(["simulate", *words], found), said(["simulate", *words], found)
    same(found, f"simulate {option}", first, again)
    same(found, f"simulate {option}", first is None or not first["rows"], False)


def same(found: Findings, what: str, answer: Any, expected: Any) -> None:
    """Note an answer that is not the expected one."""
    if answer != expected:
        found.wrong.append(f"{what}: {answer!r}, not {expected!r}"[:300])


def _picked(rng: np.random.Generator) -> dict[str, list[str]]:
    return {name: list(options[int(rng.integers(len(options)))]) for name, options in OPTIONS.items()}


def _rows(units: list[str]) -> list[str]:
    return Path(units[0]).read_text(encoding="utf-8").splitlines()


def _labelled(path: Path, study: str, rng: np.random.Generator) -> dict[str, float]:
    """Write labels of a study's items, some left out, and return what they count as."""
    with open_study(study) as opened:
        ids = opened.sample().ids.tolist()
    kept = {unit: float(rng.random() < 0.7) for unit in ids if rng.random() < 0.9}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerows([["id", "label"], *([unit, "Pass" if kept[unit] else "Fail"] for unit in kept)])
    return kept


def _labels(study: str) -> dict[str, float]:
    with open_study(study) as opened:
        labels = opened.labels()
    return {
        str(unit): value for unit, value in zip(labels.ids, labels.values, strict=True) if value is not None
    }
