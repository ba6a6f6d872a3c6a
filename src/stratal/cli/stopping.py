"""How a command ends early: Ctrl-C and SIGTERM with one word and status 130, or memory that ran out.

Python's own answer depends on the moment: an engine's query turns it into an error of its own, a callback
prints it and goes on. So it is noted that the user asked, and the command ends for that reason.
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

# Seconds in which a stopped command may tidy up.
STOPPING_SECONDS = 2.0

_requested = threading.Event()


def listen() -> None:
    """Answer Ctrl-C and SIGTERM from now on."""
    signal.signal(signal.SIGINT, _stop)
    signal.signal(signal.SIGTERM, _stop)
    usual = sys.unraisablehook
    sys.unraisablehook = lambda what: None if _requested.is_set() else usual(what)


def requested() -> bool:
    """Return whether the user has asked to stop."""
    return _requested.is_set()


def finish() -> None:
    """Leave signals aside: the work is done, and what is left is to end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _stop(_number: int, _frame: FrameType | None) -> None:
    if _requested.is_set():  # asked twice
        leave()
    _requested.set()
    watch = threading.Timer(STOPPING_SECONDS, leave)
    watch.daemon = True
    watch.start()
    raise KeyboardInterrupt


def leave() -> NoReturn:
    """End at once, without the temporary folders; files that were being written have other names still."""
    spilling = sys.modules.get("stratal.tables.spilling")  # nothing is loaded at the end
    if spilling is not None:
        spilling.remove_all()
    os.write(2, b"Stopped.\n")
    os._exit(INTERRUPTED)


# What loaders, engines and Python itself say of it; the last two are calls that could not even say so.
WORDS = (
    *("failed to map segment", "cannot allocate memory", "bad_alloc", "out of memory", "outofmemory"),
    *("null without setting an exception", "error return without exception set"),
)

MESSAGE = "there is not enough memory. Close other programs, read fewer columns, or use a larger machine."


def out_of_memory(error: BaseException) -> bool:
    """Return whether an error, or one that led to it, is that memory ran out."""
    visited: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in visited:
        words = f"{type(link).__name__}: {link}".lower()
        if isinstance(link, MemoryError) or any(word in words for word in WORDS):
            return True
        visited.append(link)
        link = link.__cause__ or link.__context__
    return False
