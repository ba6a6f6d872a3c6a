"""Odd command lines and odd files: one answer or one message, never a traceback."""

from __future__ import annotations

import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner
from tests.attack.damage import Findings

from stratal.cli.application import app
from stratal.errors import StratalError

VALUES = [
    *(
        "",
        " ",
        "0",
        "-1",
        "1",
        "2",
        "1_0",
        "1e400",
        "nan",
        "inf",
        "0.5",
        "9" * 30,
        "λ",
        "[/INST]",
        ":x:",
        "a,b",
        ",,",
    ),
    *(
        "id",
        "proxy",
        "group",
        "text",
        "--",
        "=1+1",
        "\x1b[2J",
        "none",
        "category",
        "k-means",
        "features",
        "poisson",
    ),
    *(
        "stratified",
        "equal",
        "robust",
        "0,1",
        "1,0",
        "binary",
        "t",
        "/nowhere",
        "x" * 300,
        "%s",
        "{0}",
        "'",
        '"',
    ),
]
OPTIONS = {
    "doctor": ("id", "proxy", "groups", "bounds", "delimiter"),
    "plan": ("id", "proxy", "budget", "half-width", "groups", "strata", "stratify", "by", "allocation",
             "minimum", "confidence-level", "features", "bounds", "delimiter"),
    "draw": ("id", "proxy", "budget", "seed", "groups", "show", "predicted", "strata", "stratify", "by",
             "design", "cluster", "additional", "value", "minimum", "confidence-level",
             "half-width"),
    "simulate": ("outcome", "proxy", "budget", "design", "estimator", "interval", "seed", "bounds",
                 "target"),
}  # fmt: skip
ROWS: list[list[Any]] = [
    [{"id": f"u{k}", "proxy": k / 30, "group": "ab"[k % 2], "text": "x", "z": k % 2} for k in range(30)],
    [{"id": k, "proxy": None, "group": None} for k in range(3)],
    [{"id": "a", "proxy": "x"}, {"id": "a", "proxy": 1}],
    [{"id": [1], "proxy": {"a": 1}}],
    [],
]


def _files(folder: Path) -> list[Path]:
    """Write files that are well and files that are not."""
    written = []
    for number, rows in enumerate(ROWS):
        path = folder / f"rows{number}.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        written.append(path)
    texts = {
        "bare.csv": "id\n",
        "quote.csv": 'id,proxy\n"a,1\n',
        "latin.csv": b"id,proxy\n\xe9,1\n",
        "nul.csv": "id\0",
    }
    for name, text in texts.items():
        path = folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        written.append(path)
    return [*written, folder, folder / "nowhere.csv"]


def odd_commands(tries: int, seed: int) -> Findings:
    """Run commands with random options on random files."""
    rng, found = np.random.default_rng(seed), Findings()
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        files = _files(Path(place))
        for number in range(tries):
            command = str(rng.choice(list(OPTIONS)))
            words = [command, str(files[0] if rng.random() < 0.7 else rng.choice(files))]
            if command == "draw":
                words += ["--output", f"{place}/out{number}"]
            for option in rng.choice(OPTIONS[command], int(rng.integers(1, 5)), replace=False):
                usual = {"proxy": "proxy", "budget": "10", "outcome": "z", "budgets": "10"}.get(str(option))
                words += [f"--{option}", usual if usual and rng.random() < 0.7 else str(rng.choice(VALUES))]
            if command == "simulate":
                words += ["--replicates", "20"]
            found.tries += 1
            result = CliRunner().invoke(app, words)
            if isinstance(result.exception, StratalError | OSError) or result.exit_code == 2:
                found.refused += 1
            elif result.exception is not None and not isinstance(result.exception, SystemExit):
                found.tracebacks.append(f"{' '.join(words)[:150]!r}: {result.exception!r}"[:300])
    return found
