"""The private temporary folder of a process, for data that does not fit in memory.

It is removed with the process. If the process was killed, the next start finds the folder unlocked and
removes it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from stratal.errors import InputError

# Beginning of the names of the folders, and the file in each that its process locks while it runs.
_PREFIX = "stratal-spill-"
_LOCK = "lock"
# Programs that this process starts must not inherit a lock; Windows has no such flag, and needs none.
_CLOSE_ON_EXEC = os.O_CLOEXEC if sys.platform != "win32" else 0


def lock_file(path: Path) -> Callable[[], None] | None:
    """Lock a file, which is created if necessary; return None if another process has the lock.

    The lock ends when the process ends or when the returned function is called. An existing folder can be
    locked too, except on Windows.
    """
    if path.is_dir():
        mode = os.O_RDONLY
    else:
        mode = os.O_RDWR | os.O_CREAT
    handle = os.open(path, mode | _CLOSE_ON_EXEC, 0o600)
    try:
        _acquire(handle)
        if not os.path.samestat(os.fstat(handle), os.stat(path)):
            raise FileNotFoundError(path)  # the previous owner removed it
    except OSError:
        os.close(handle)
        return None
    return lambda: os.close(handle)


# Position of the byte that Windows locks: beyond the data, since a lock prevents reading and writing.
_LOCK_OFFSET = 2**40


def _acquire(handle: int) -> None:
    """Lock an open file without waiting; an OSError means that it is locked."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        os.lseek(handle, _LOCK_OFFSET, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        return
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def private_folder() -> Path:
    """Return the temporary folder of this process, which other users cannot read.

    Raises an `InputError` if the temporary folder cannot be written to.
    """
    return _make_folder(os.getpid(), tempfile.gettempdir())


@cache
def _make_folder(process: int, parent: str) -> Path:
    """Return a new private folder below `parent`; a forked `process` has its own folder."""
    _remove_abandoned(Path(parent))
    try:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        release = lock_file(folder / _LOCK)
    except OSError as error:
        raise InputError(
            f"{parent}: cannot write here ({error.strerror})",
            action="Set TMPDIR to a folder with free space.",
        ) from None

    _private_folders.append((process, folder, release))
    return folder


# Process, folder and release function of each private folder.
_private_folders: list[tuple[int, Path, Callable[[], None] | None]] = []

# Attempts to remove a folder while threads of a stopped query write to it.
_MAX_REMOVAL_TRIES = 20


@atexit.register
def remove_all() -> None:
    """Remove the private folders of this process: at its exit, or before `os._exit` (`cli.interruption`)."""
    with contextlib.suppress(OSError):
        for process, folder, release in _private_folders:
            if os.getpid() == process:
                if release is not None:
                    release()
                for _ in range(_MAX_REMOVAL_TRIES):  # the threads of a stopped query may still be writing
                    shutil.rmtree(folder, ignore_errors=True)
                    if not folder.exists():
                        break
        _private_folders.clear()


def _remove_abandoned(parent: Path) -> None:
    """Remove the folders of killed processes of this user."""
    for folder in parent.glob(_PREFIX + "*"):
        with contextlib.suppress(OSError):
            if sys.platform != "win32" and folder.lstat().st_uid != os.getuid():
                continue
            if folder.is_symlink() or not (folder / _LOCK).is_file():
                continue
            release = lock_file(folder / _LOCK)
            if release is not None:
                release()
                shutil.rmtree(folder, ignore_errors=True)


def private_file(suffix: str) -> Path:
    """Return a new file in the private folder."""
    handle, name = tempfile.mkstemp(dir=private_folder(), suffix=suffix)
    os.close(handle)
    return Path(name)
