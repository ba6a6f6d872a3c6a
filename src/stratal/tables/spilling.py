"""Where a process may put what does not fit in memory: a private folder, gone with the process.

A folder whose process was killed is removed at the next start, which its lock tells.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from stratal.errors import InputError

_PREFIX = "stratal-spill-"
_LOCK = "lock"


def locked(path: Path) -> Callable[[], None] | None:
    """Take the lock of a file that is made where it does not exist; `None` if another process holds it.

    The lock ends with the process, however that ends, or when the returned function is called. A folder that
    exists can be locked too, but not on Windows.

    Examples
    --------
    >>> path = Path(tempfile.mkdtemp()) / "lock"
    >>> release, again = locked(path), locked(path)
    >>> again is None
    True
    >>> release()
    """
    how = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    handle = os.open(path, how | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        _take(handle)
        if not os.path.samestat(os.fstat(handle), os.stat(path)):
            raise FileNotFoundError(path)  # removed by who held it before
    except OSError:
        os.close(handle)
        return None
    return lambda: os.close(handle)


# Where Windows locks a byte: locks there forbid to read and write, and nothing is so far.
_FAR = 2**40


def _take(handle: int) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        os.lseek(handle, _FAR, os.SEEK_SET)
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        return
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def private_folder() -> Path:
    """Return this process's own folder for temporary files, readable by nobody else.

    Raises
    ------
    InputError
        If the temporary folder cannot be written to.

    Examples
    --------
    >>> private_folder().is_dir()
    True
    """
    return _folder_of(os.getpid(), tempfile.gettempdir())


@cache
def _folder_of(process: int, place: str) -> Path:
    _clear(Path(place))
    try:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
        release = locked(folder / _LOCK)
    except OSError as error:
        raise InputError(
            f"{place}: cannot write here ({error.strerror})", action="Set TMPDIR to a folder with room."
        ) from None

    _held.append((process, folder, release))
    return folder


# The private folders, the process that each is of, and what releases its lock.
_held: list[tuple[int, Path, Callable[[], None] | None]] = []

_TRIES = 20


@atexit.register
def remove_all() -> None:
    """Remove this process's private folders; called at its exit, and where it ends without one."""
    with contextlib.suppress(OSError):
        for process, folder, release in _held:
            if os.getpid() == process:
                if release is not None:
                    release()
                for _ in range(_TRIES):  # the threads of a stopped query may still be writing
                    shutil.rmtree(folder, ignore_errors=True)
                    if not folder.exists():
                        break
        _held.clear()


def _clear(place: Path) -> None:
    """Remove what killed processes of this user have left."""
    for folder in place.glob(_PREFIX + "*"):
        with contextlib.suppress(OSError):
            if hasattr(os, "getuid") and folder.lstat().st_uid != os.getuid():
                continue
            if folder.is_symlink() or not (folder / _LOCK).is_file():
                continue
            release = locked(folder / _LOCK)
            if release is not None:
                release()
                shutil.rmtree(folder, ignore_errors=True)


def private_file(suffix: str) -> Path:
    """Return a new file in the private folder.

    Examples
    --------
    >>> private_file(".csv").suffix
    '.csv'
    """
    handle, name = tempfile.mkstemp(dir=private_folder(), suffix=suffix)
    os.close(handle)
    return Path(name)
