"""Whole files or none: written under another name, brought to the disk, then renamed."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from stratal.errors import InputError, utf8_path
from stratal.tables.spilling import lock_file

_PARTIAL = ".partial"
# Another run may clear a partial file before it is locked; five times in a row is not an accident.
_ATTEMPTS = 5


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path` that takes its place when the block ends without an error.

    The file and its folder are on the disk when the block has ended. What a killed run left is cleared.

    Raises
    ------
    InputError
        If the folder does not exist or cannot be written to.
    """
    utf8_path(path)
    clear_leftovers(path)
    try:
        partial, release = _held(path.parent, f".{path.stem}.", path.suffix, Path.touch)
    except OSError as error:
        folder_exists = path.parent.is_dir()
        if folder_exists:
            action = "Choose another folder."
        else:
            action = f"Create the folder {path.parent} first."
        raise InputError(f"{path}: cannot write here ({error.strerror})", action=action) from None
    try:
        yield partial
        on_disk(partial)
        if os.name == "nt" and release is not None:
            release()
            release = None
        partial.replace(path)
        on_disk(path.parent)
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        # The system names no file where a write fails, such as on a full disk.
        action = "Free some space, or choose another folder."
        raise InputError(f"{path}: cannot be written ({error.strerror})", action=action) from None
    finally:
        if release is not None:
            release()
        partial.unlink(missing_ok=True)


def clear_leftovers(path: Path) -> None:
    """Remove what killed runs left of `path` beside it; what a living run is writing stays."""
    start = f".{path.stem}."
    end = f"{_PARTIAL}{path.suffix}"
    with contextlib.suppress(OSError):
        for entry in os.scandir(path.parent):
            token = entry.name.removeprefix(start).removesuffix(end)
            if entry.name == f"{start}{token}{end}" and len(token) == 16:
                partial = Path(entry.path)
                release = lock_file(partial)
                if release is None:
                    continue
                if partial.is_dir():
                    shutil.rmtree(partial, ignore_errors=True)
                else:
                    partial.unlink(missing_ok=True)
                release()


def on_disk(path: Path) -> None:
    """Bring a file, or a folder's entries, to the disk, so that they outlive a loss of power."""
    if path.is_dir() and os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EROFS):
            raise
    finally:
        os.close(handle)


def _held(
    place: Path, start: str, end: str, make: Callable[..., None]
) -> tuple[Path, Callable[[], None] | None]:
    """Make a partial file or folder and lock it; another one where a run that clears was quicker.

    Unlocked where the file system has no locks.
    """
    for attempt in range(_ATTEMPTS):
        partial = place / f"{start}{secrets.token_hex(8)}{_PARTIAL}{end}"
        make(partial, exist_ok=False)
        folder = make is Path.mkdir
        if folder and os.name == "nt":
            break
        release = lock_file(partial)
        if release is not None and partial.is_dir() == folder:
            return partial, release
        if release is None and partial.exists() and attempt == _ATTEMPTS - 1:
            break
        if release is not None:  # a file, made by the lock in place of the folder that was cleared
            partial.unlink(missing_ok=True)
            release()
    return partial, None


@contextmanager
def partial_folder(folder: Path) -> Iterator[Path]:
    """Yield a new folder, beside `folder` or inside one that exists, that is gone when the block ends."""
    place = folder if folder.is_dir() else folder.parent
    name = folder.resolve().name
    clear_leftovers(place / name)
    partial, release = _held(place, f".{name}.", "", Path.mkdir)
    try:
        yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if release is not None:
            release()
