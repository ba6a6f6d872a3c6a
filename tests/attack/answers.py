"""Valid command lines: what is printed with --json is what the library answers."""

from __future__ import annotations

import itertools
import json
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
from click.testing import CliRunner
from tests.attack.damage import Findings
from tests.attack.studies import same, study_round, table_round

import stratal
from stratal.cli.application import app

CHOICES = {
    "plan": (["--strata", "2"], ["--allocation", "equal"], ["--minimum", "3"], ["--confidence-level", "0.9"],
             ["--stratify", "none"], ["--stratify", "equal-size"]),
    "draw": (["--strata", "2"], ["--allocation", "equal"], ["--design", "systematic"],
             ["--design", "simple-random"], ["--groups", "group"], ["--show", "text"]),
    "estimate": (["--estimator", "difference"], ["--estimator", "horvitz-thompson"], ["--interval", "t"],
                 ["--confidence-level", "0.8"]),
}  # fmt: skip


def valid_commands(tries: int, seed: int) -> Findings:
    """Go through every command on small files with one valid option each, and compare what is said."""
    rng, found = np.random.default_rng(seed), Findings()
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in itertools.count():
            if found.tries >= tries:
                break
            folder = Path(place, str(number))
            folder.mkdir()
            _one_round(folder, rng, found)
    return found


def _one_round(folder: Path, rng: np.random.Generator, found: Findings) -> None:
    size, budget = int(rng.integers(30, 90)), str(int(rng.integers(16, 25)))
    path = folder / "rows.jsonl"
    rows = [
        {"id": f"u{k}", "proxy": float(rng.random()), "group": "ab"[k % 2], "text": "x", "z": k % 3 % 2}
        for k in range(size)
    ]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    picked = {name: list(options[int(rng.integers(len(options)))]) for name, options in CHOICES.items()}
    units = [str(path), "--proxy", "proxy"]

    said = _answer(["doctor", *units], found)
    _same(found, "doctor", said, lambda it: it["rows"], size)
    said = _answer(["plan", *units, "--budget", budget, *picked["plan"]], found)
    _same(found, f"plan {picked['plan']}", said, lambda it: it["budget"], int(budget))
    made = folder / "made"
    if _answer(["draw", *units, "--budget", budget, *picked["draw"], "--output", str(made)], found) is None:
        return
    table_round(units, made, rng, found, _answer)
    study_round(units, folder, rng, found, _answer)
    sample = stratal.Sample.read(next(made.glob("sample*.parquet")))
    if sample.size != int(budget):
        found.wrong.append(f"draw {picked['draw']}: {sample.size} units for a budget of {budget}")
    values = dict(zip(sample.ids.tolist(), (rng.random(sample.size) < 0.6).astype(float), strict=True))
    labels = folder / "labels.csv"
    labels.write_text("id,label\n" + "".join(f"{unit},{value}\n" for unit, value in values.items()))
    file = str(next(made.glob("sample*.parquet")))
    _estimated(sample, values, [file, str(labels)], picked["estimate"], found)


def _estimated(
    sample: stratal.Sample, values: dict[str, float], files: list[str], option: list[str], found: Findings
) -> None:
    said = _answer(["estimate", *files, *option], found)
    if said is None:
        return
    name, text = option[0].removeprefix("--"), option[1]
    level = float(text) if name == "confidence-level" else 0.95
    asked: dict[str, Any] = {"estimator": text} if name == "estimator" else {}
    method: dict[str, Any] = {"method": text} if name == "interval" else {}
    answer = stratal.estimate(sample, values, **asked)
    interval = list(answer.confidence_interval(level, **method))
    expected = [answer.value, answer.standard_error, interval]
    what = ("estimate", "standard_error", "confidence_interval")
    _same(found, f"estimate {option}", said, lambda it: [it[part] for part in what], expected)


def _answer(words: list[str], found: Findings) -> Any:
    """Return what a command prints with --json, as its schema has it; None where it refuses or fails."""
    found.tries += 1
    result = CliRunner().invoke(app, [*words, "--json"])
    if result.exit_code == 0:
        said = json.loads(result.stdout)
        name = " ".join(words[: 1 + (words[0] == "study")])
        found.wrong += [f"{name}: {error.message}"[:300] for error in _schema(name).iter_errors(said)]
        return said
    if isinstance(result.exception, stratal.errors.StratalError):
        found.refused += 1
    else:
        found.tracebacks.append(f"{' '.join(words)[:200]}: {result.exception!r}"[:300])
    return None


@cache
def _schema(command: str) -> Any:
    return jsonschema.Draft202012Validator(
        json.loads(CliRunner().invoke(app, ["schema", *command.split()]).stdout)
    )


def _same(found: Findings, what: str, said: Any, part: Any, expected: Any) -> None:
    if said is not None:
        same(found, what, part(said), expected)
