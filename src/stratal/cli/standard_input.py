"""`-` for a file: standard input, stored in a file of the command, because tables are read more than once."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stratal.errors import InputError

# The usual name of standard input in commands.
STANDARD_INPUT = "-"

# Commands that read their file again later cannot read standard input: a plan and a sample store its path.
READING_COMMANDS = ("doctor", "estimate", "report", "threshold")

# First bytes of Parquet files and of zip archives, which workbooks are.
_SUFFIXES = {b"PAR1": ".parquet", b"PK\x03\x04": ".xlsx"}
_HEAD_BYTES = 2**16

# The file of the current command, at most one. Messages print `-` instead of its path.
STORED_FILES: list[Path] = []


def replace_standard_input(value: Any, command: str) -> Any:
    """Return the paths of an argument, with the stored file instead of `-`.

    Raises
    ------
    InputError
        For a command that reads its file again later, for `-` twice, and if nobody writes to standard input.
    """
    paths = value if isinstance(value, list) else [value]
    names = [str(path) for path in paths]
    if STANDARD_INPUT not in names:
        return value
    if command not in READING_COMMANDS:
        allowed = f"a path; - only with {', '.join(READING_COMMANDS)}"
        raise InputError(f"{command} cannot read standard input", allowed=allowed, action="Use a file.")
    if names.count(STANDARD_INPUT) > 1:
        action = "Store the other tables in files."
        raise InputError("standard input can be read only once", given="several -", action=action)
    if sys.stdin is None or sys.stdin.isatty():
        action = "Pipe a table into the command: cat labels.csv | stratal …"
        raise InputError("standard input is a terminal", action=action)
    stored = store_standard_input()
    if not isinstance(value, list):
        return stored
    return [stored if name == STANDARD_INPUT else path for name, path in zip(names, paths, strict=True)]


def store_standard_input() -> Path:
    """Return a file with the content of standard input, whose suffix is that of its format."""
    from stratal.tables.spilling import private_file

    path = private_file("-input")
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    stored = path.rename(path.with_suffix(find_suffix(head)))
    STORED_FILES[:] = [stored]
    return stored


def find_suffix(head: bytes) -> str:
    """Return the suffix of a table by its first bytes; text that is no JSON is CSV."""
    for magic, suffix in _SUFFIXES.items():
        if head.startswith(magic):
            return suffix
    text = head.lstrip()
    if text.startswith(b"["):
        return ".json"
    if not text.startswith(b"{"):
        return ".csv"
    try:
        json.loads(text.splitlines()[0])
    except ValueError:
        # An object over several lines is one document, not one of JSON Lines.
        return ".json"
    return ".jsonl"


def hide_stored_path(text: str) -> str:
    """Return a text with `-` instead of the path of the stored file."""
    for path in STORED_FILES:
        text = text.replace(str(path), STANDARD_INPUT)
    return text


def reads_standard_input(command: Sequence[Any]) -> bool:
    """Return whether a command needs the content of standard input, which has been read."""
    words = set(map(str, command))
    return any(str(path) in words for path in STORED_FILES)
