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

# Ending of unfinished files and folders, by which they are recognised and cleared.
_PARTIAL = ".partial"

# Another run may clear a partial file before it is locked; five times in a row is not an accident.
_ATTEMPTS = 5


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path next to `path`, which replaces it when the block ends without an error.

    The file and its folder are on the disk when the block has ended. Files of killed runs are removed.

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
        # Windows does not rename a file that is open.
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
        raise InputError(f"{path} cannot be written ({error.strerror})", action=action) from None
    finally:
        if release is not None:
            release()
        partial.unlink(missing_ok=True)


def clear_leftovers(path: Path) -> None:
    """Remove the unfinished files of killed runs for `path`; those of running ones are locked, and stay."""
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
    # Windows cannot open a folder.
    if path.is_dir() and os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some file systems do not support it, such as those of networks.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EROFS):
            raise
    finally:
        os.close(handle)


def _held(
    place: Path, start: str, end: str, make: Callable[..., None]
) -> tuple[Path, Callable[[], None] | None]:
    """Make a partial file or folder and lock it; repeat if another run removed it before it was locked.

    Without a lock if the file system has none.
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
        # The folder was removed, and the lock created a file in its place.
        if release is not None:
            partial.unlink(missing_ok=True)
            release()
    return partial, None


@contextmanager
def partial_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder, next to `folder` or inside an existing one."""
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
