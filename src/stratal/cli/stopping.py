"""End a command early: after Ctrl-C or SIGTERM with status 130, or if memory is exhausted.

Python's `KeyboardInterrupt` is not sufficient: a query of an engine converts it to another error, and a
callback prints it and continues. Therefore the request to stop is stored, and the command ends because of it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType
from typing import NoReturn

# Exit status of a command that was stopped.
INTERRUPTED = 130

# Seconds that a stopped command has for removing temporary files.
STOPPING_SECONDS = 2.0

_requested = threading.Event()


def listen() -> None:
    """Install the handlers of Ctrl-C and SIGTERM."""
    signal.signal(signal.SIGINT, _stop)
    signal.signal(signal.SIGTERM, _stop)
    default_hook = sys.unraisablehook

    def hook(unraisable: sys.UnraisableHookArgs) -> None:
        # Errors of callbacks that were interrupted are not the user's.
        if not _requested.is_set():
            default_hook(unraisable)

    sys.unraisablehook = hook


def requested() -> bool:
    """Return whether the user has asked to stop."""
    return _requested.is_set()


def finish() -> None:
    """Ignore further signals, because the command has finished."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _stop(_number: int, _frame: FrameType | None) -> None:
    """Request to stop; a second signal, or too much time, ends the process at once."""
    if _requested.is_set():
        leave()
    _requested.set()
    timer = threading.Timer(STOPPING_SECONDS, leave)
    timer.daemon = True
    timer.start()
    raise KeyboardInterrupt


def leave() -> NoReturn:
    """End the process at once and remove temporary folders; unfinished files still have temporary names."""
    spilling = sys.modules.get("stratal.tables.spilling")  # a module that is not loaded has no folders
    if spilling is not None:
        spilling.remove_all()
    os.write(2, b"Stopped.\n")
    os._exit(INTERRUPTED)


# Words in the errors of loaders, engines and Python if memory is exhausted. The last two are errors of C code
# that could not allocate the message.
MEMORY_ERROR_WORDS = (
    *("failed to map segment", "cannot allocate memory", "bad_alloc", "out of memory", "outofmemory"),
    *("null without setting an exception", "error return without exception set"),
)

# Replaces the texts of these errors, which do not name the cause.
MESSAGE = "there is not enough memory. Close other programs, read fewer columns, or use a larger machine."


def out_of_memory(error: BaseException) -> bool:
    """Return whether an error, or one of its causes, is that memory was exhausted."""
    visited: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in visited:
        text = f"{type(link).__name__}: {link}".lower()
        if isinstance(link, MemoryError) or any(word in text for word in MEMORY_ERROR_WORDS):
            return True
        visited.append(link)
        link = link.__cause__ or link.__context__
    return False
