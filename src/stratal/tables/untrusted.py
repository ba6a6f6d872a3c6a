"""Checks of names in untrusted files and folders: only files in the same folder, no network.

A study, a plan, a sample or a returned file may come from another person. Every name, link, address or engine
in it is checked by one of these functions before a file or a connection is opened.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from stratal.errors import InputError
from stratal.protocols import Foreign

# `scheme:/…` with any number of slashes, because `Path` removes some. A scheme of one letter is a drive of
# Windows.
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,30}:/")

# The engine that reads local files in this process.
LOCAL_ENGINE = "duckdb"


def is_address(text: str | os.PathLike[str]) -> bool:
    """Return whether an engine may open a connection for a path: an address, or a share of Windows."""
    path = os.fspath(text)
    return _ADDRESS.match(path) is not None or path.startswith("\\\\")  # a share of Windows


def find_connections(options: Mapping[str, Foreign]) -> dict[str, str]:
    """Return the options, with their values, that open a connection or start another program.

    Parameters
    ----------
    options : mapping
        Options of reading a file, such as a plan stores them: `file`, `history`, `remote`, `engine`.
    """
    connections = {}
    for name in ("file", "history"):
        value = options.get(name)
        if value is not None and is_address(value):
            connections[name] = str(value)
    engine = options.get("engine") or LOCAL_ENGINE
    if engine != LOCAL_ENGINE:
        connections["engine"] = str(engine)
    return connections


def file_inside(folder: Path, name: str) -> Path:
    """Return the path of a file directly in a folder, given a name from an untrusted file.

    Raises an `InputError` for a name with a folder in it, and for a link that leaves the folder.
    """
    if not name or name in (".", "..") or "/" in name or "\\" in name or "\0" in name:
        problem = f"{folder}: the name of a file must not contain a folder"
        action = "Do not use this folder."
        raise InputError(problem, given=repr(name)[:100], action=action)
    path = folder / name
    refuse_leaving_link(folder, path)
    return path


def refuse_leaving_link(folder: Path, path: Path) -> None:
    """Raise an error if a path below a folder is a symbolic link to a place outside the folder."""
    try:
        leaves = not path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # a link to itself
        leaves = True
    if leaves:
        action = "If you trust the file, replace the link with the file itself."
        raise InputError(f"{path} is a link that points outside the folder {folder}", action=action)


def refuse_leaving_links(folder: Path, subfolder: Path) -> None:
    """Raise an error for a symbolic link below `subfolder` that points outside `folder`."""
    if subfolder.is_symlink():
        refuse_leaving_link(folder, subfolder)
    for path in _symbolic_links(subfolder):
        refuse_leaving_link(folder, path)


def _symbolic_links(folder: Path) -> Iterator[Path]:
    """Yield the symbolic links below a folder; linked folders are not searched."""
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(parent) / name
            if path.is_symlink():
                yield path
