"""Which tool a JSON document or its first line is of."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from stratal.errors import InputError
from stratal.tables.logs import deepeval, hugging_face, inspect_ai, lm_eval, promptfoo
from stratal.tables.logs.log import Log, as_written

LARGEST, MOST = 100_000_000, 2000
"""Bytes of a file, and files of a folder, that are looked at to tell what they are."""

_DOCUMENTS = (
    (promptfoo.TOOL, promptfoo.recognises, promptfoo.read),
    (deepeval.TOOL, deepeval.recognises, deepeval.read),
    (inspect_ai.TOOL, inspect_ai.recognises, inspect_ai.read),
    (hugging_face.TOOL, hugging_face.recognises, hugging_face.read),
)


def log_of_document(found: Any, source: str) -> Log | None:
    """Return a JSON document as a log, None where it is none.

    Raises
    ------
    InputError
        For a log that is not whole, and for one that holds results of all units together.

    Examples
    --------
    >>> log_of_document([{"id": 0}], "rows.json")
    """
    if isinstance(found, Mapping) and {"results", "configs", "versions"} <= set(found):
        raise InputError(
            f"{source}: holds results of all documents together",
            allowed=f"samples_….jsonl of {lm_eval.TOOL}",
            action="Run it with --log_samples; the samples are then written next to this file.",
        )
    for tool, recognises, read in _DOCUMENTS:
        if recognises(found):
            with as_written(source, tool):
                return read(found, source)
    return None


def log_of_lines(records: Iterable[Mapping[str, Any]], source: str) -> Log | None:
    """Return the objects of JSON Lines as a log, None where the first is of no log.

    Examples
    --------
    >>> log_of_lines([{"id": 0}], "rows.jsonl")
    """
    remaining = iter(records)
    first = next(remaining, None)
    if first is None or not lm_eval.recognises(first):
        return None
    with as_written(source, lm_eval.TOOL):
        return lm_eval.read([first, *remaining], source)


def tool_that_wrote(path: Path) -> str | None:
    """Return the evaluation tool whose log a file is, None for any other file.

    Examples
    --------
    >>> tool_that_wrote(Path("log.eval"))
    'Inspect'
    """
    if path.suffix == ".eval":
        return inspect_ai.TOOL
    if path.suffix not in (".json", ".jsonl") or path.stat().st_size > LARGEST:
        return None
    try:
        with path.open(encoding="utf-8") as text:
            found = json.loads(text.readline()) if path.suffix == ".jsonl" else json.load(text)
    except (OSError, ValueError, RecursionError):
        return None
    if path.suffix == ".jsonl":
        return lm_eval.TOOL if isinstance(found, Mapping) and lm_eval.recognises(found) else None
    return next((tool for tool, recognises, _ in _DOCUMENTS if recognises(found)), None)


def logs_below(folder: Path) -> dict[Path, str]:
    """Return the logs in a folder and those below it, by path, with the tool that wrote each.

    Examples
    --------
    >>> logs_below(Path("nowhere"))
    {}
    """
    paths = [path for path in islice(folder.rglob("*"), MOST) if path.is_file()]
    tools = {path: tool_that_wrote(path) for path in sorted(paths)}
    return {path: tool for path, tool in tools.items() if tool is not None}
