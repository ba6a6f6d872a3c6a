"""Checks of names in untrusted files and folders: only files in the same folder, no network.

A study, a plan, a sample and a returned file are data that anybody may have written. Every name, link,
address or engine in them passes one of these functions before something is opened.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from stratal.errors import InputError
from stratal.protocols import Foreign

# `scheme://…`, also with one slash or more, as a path may have lost some. One letter is a drive of Windows.
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,30}:/")

# The engine that reads local files in this process.
LOCAL_ENGINE = "duckdb"


def is_address(text: str | os.PathLike[str]) -> bool:
    """Return whether a text names a place on a network, or what some engine might take for one."""
    path = os.fspath(text)
    return _ADDRESS.match(path) is not None or path.startswith("\\\\")  # a share of Windows


def find_connections(options: Mapping[str, Foreign]) -> dict[str, str]:
    """Return option → value of those by which reading would open a connection or start another program.

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
    """Return the path of a file directly in a folder, by a name that a file from elsewhere states.

    Raises
    ------
    InputError
        For a name with a folder in it, and for a link that leaves the folder.
    """
    if not name or name in (".", "..") or "/" in name or "\\" in name or "\0" in name:
        problem = f"{folder}: the name of a file must not contain a folder"
        action = "Do not use this folder."
        raise InputError(problem, given=repr(name)[:100], action=action)
    path = folder / name
    refuse_leaving_link(folder, path)
    return path


def refuse_leaving_link(folder: Path, path: Path) -> None:
    """Refuse a path below a folder that a symbolic link leads out of it."""
    try:
        leaves = not path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError):  # a link to itself
        leaves = True
    if leaves:
        action = "If you trust the file, replace the link with the file itself."
        raise InputError(f"{path} is a link that points outside the folder {folder}", action=action)


def refuse_leaving_links(folder: Path, subfolder: Path) -> None:
    """Refuse links that leave a folder, anywhere below one of its folders."""
    if subfolder.is_symlink():
        refuse_leaving_link(folder, subfolder)
    for path in _symbolic_links(subfolder):
        refuse_leaving_link(folder, path)


def _symbolic_links(folder: Path) -> Iterator[Path]:
    """Yield the symbolic links below a folder, following none."""
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place) / name
            if path.is_symlink():
                yield path
