"""Ctrl-C and SIGTERM: one word and exit status 130, whatever the command is doing.

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

INTERRUPTED = 130
"""Exit status of a command that was stopped."""

GRACE = 2.0
"""Seconds in which a stopped command may tidy up."""

_asked = threading.Event()


def listen() -> None:
    """Answer Ctrl-C and SIGTERM from now on.

    Examples
    --------
    >>> callable(listen)
    True
    """
    signal.signal(signal.SIGINT, _stop)
    signal.signal(signal.SIGTERM, _stop)
    usual = sys.unraisablehook
    sys.unraisablehook = lambda what: None if _asked.is_set() else usual(what)


def asked() -> bool:
    """Return whether the user has asked to stop.

    Examples
    --------
    >>> asked()
    False
    """
    return _asked.is_set()


def finish() -> None:
    """Leave signals aside: the work is done, and what is left is to end.

    Examples
    --------
    >>> callable(finish)
    True
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _stop(_number: int, _frame: FrameType | None) -> None:
    if _asked.is_set():  # asked twice
        leave()
    _asked.set()
    watch = threading.Timer(GRACE, leave)
    watch.daemon = True
    watch.start()
    raise KeyboardInterrupt


def leave() -> NoReturn:
    """End at once, without the temporary folders; files that were being written have other names still.

    Examples
    --------
    >>> callable(leave)
    True
    """
    spilling = sys.modules.get("stratal.tables.spilling")  # nothing is loaded at the end
    if spilling is not None:
        spilling.remove_all()
    os.write(2, b"Stopped.\n")
    os._exit(INTERRUPTED)
