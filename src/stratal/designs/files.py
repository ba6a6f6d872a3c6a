"""Atomic writes: files are written under a temporary name, flushed to the disk, and then renamed."""

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

# Part of the names of unfinished files and folders, by which they are recognised and removed.
_PARTIAL = ".partial"

# Maximum number of attempts to create a locked partial file. Another run may remove one before it is locked,
# but not several in succession by chance.
_MAX_ATTEMPTS = 5


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path next to `path`, which replaces it when the block ends without an error.

    The file and its folder are flushed to the disk at the end of the block. Files of killed runs are removed.

    Raises
    ------
    InputError
        If the folder does not exist or cannot be written to.
    """
    utf8_path(path)
    clear_leftovers(path)
    try:
        partial, release = _create_locked(path.parent, f".{path.stem}.", path.suffix, Path.touch)
    except OSError as error:
        if path.parent.is_dir():
            action = "Choose another folder."
        else:
            action = f"Create the folder {path.parent} first."
        raise InputError(f"{path}: cannot write here ({error.strerror})", action=action) from None
    try:
        yield partial
        flush_to_disk(partial)
        # Windows does not rename a file that is open.
        if os.name == "nt" and release is not None:
            release()
            release = None
        partial.replace(path)
        flush_to_disk(path.parent)
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        # Without the name of a file in the error, a write failed, for example because the disk is full.
        action = "Free some space, or choose another folder."
        raise InputError(f"{path} cannot be written ({error.strerror})", action=action) from None
    finally:
        if release is not None:
            release()
        partial.unlink(missing_ok=True)


def clear_leftovers(path: Path) -> None:
    """Remove the unfinished files of killed runs for `path`. Those of running processes are locked."""
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
                _remove(partial)
                release()


def _remove(partial: Path) -> None:
    """Remove a partial file or folder, if it exists."""
    if partial.is_dir():
        shutil.rmtree(partial, ignore_errors=True)
    else:
        partial.unlink(missing_ok=True)


def flush_to_disk(path: Path) -> None:
    """Flush a file, or the entries of a folder, to the disk, so that they survive a power failure."""
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


def _create_locked(
    parent: Path, start: str, end: str, create: Callable[..., None]
) -> tuple[Path, Callable[[], None] | None]:
    """Create and lock a partial file or folder; return its path and the function that releases the lock.

    It is created again if another run removed it before it was locked. The function is None if the file
    system has no locks.
    """
    is_folder = create is Path.mkdir
    for attempt in range(_MAX_ATTEMPTS):
        partial = parent / f"{start}{secrets.token_hex(8)}{_PARTIAL}{end}"
        create(partial, exist_ok=False)
        # Windows cannot lock a folder.
        if is_folder and os.name == "nt":
            break
        release = lock_file(partial)
        if release is not None and partial.is_dir() == is_folder:
            return partial, release
        if release is not None:
            # The folder was removed, and the lock created a file in its place.
            _remove(partial)
            release()
        elif attempt < _MAX_ATTEMPTS - 1:
            # Without locks, it still exists. The last one is used, unlocked.
            _remove(partial)
    return partial, None


@contextmanager
def partial_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder from which the caller moves files to `folder`; remove it at the end.

    It is next to `folder`, or inside it if that exists.
    """
    parent = folder if folder.is_dir() else folder.parent
    name = folder.resolve().name
    clear_leftovers(parent / name)
    partial, release = _create_locked(parent, f".{name}.", "", Path.mkdir)
    try:
        yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if release is not None:
            release()
