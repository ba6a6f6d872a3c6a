"""End a command after Ctrl-C or SIGTERM, with the exit status 130.

Python's `KeyboardInterrupt` is not sufficient: the query of an engine may convert it to another error, and in
a callback it is printed and then ignored. Therefore the signal is also stored, and the command checks at its
end whether there was one.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType
from typing import NoReturn

# Exit status of an interrupted command.
INTERRUPTED_STATUS = 130

# Seconds for the usual end of an interrupted command. Then the process exits at once.
_MAX_SECONDS_TO_END = 2.0

_interrupted = threading.Event()


def handle_signals() -> None:
    """Install the handlers of Ctrl-C and SIGTERM."""
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _interrupt)
    default_hook = sys.unraisablehook

    def hook(unraisable: sys.UnraisableHookArgs) -> None:
        # After a signal, the interruption causes errors in callbacks, which are not printed.
        if not _interrupted.is_set():
            default_hook(unraisable)

    sys.unraisablehook = hook


def is_interrupted() -> bool:
    """Return whether the process has received a signal to end."""
    return _interrupted.is_set()


def ignore_signals() -> None:
    """Ignore further signals, because the command has finished."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """Interrupt the command. A second signal, or `_MAX_SECONDS_TO_END`, ends the process at once."""
    if _interrupted.is_set():
        exit_at_once()
    _interrupted.set()
    timer = threading.Timer(_MAX_SECONDS_TO_END, exit_at_once)
    timer.daemon = True
    timer.start()
    raise KeyboardInterrupt


def exit_at_once() -> NoReturn:
    """Remove temporary folders and exit.

    Output files need no removal: until they are complete, they have temporary names.
    """
    spilling = sys.modules.get("stratal.tables.spilling")  # a module that is not loaded has no folders
    if spilling is not None:
        spilling.remove_all()
    os.write(2, b"Stopped.\n")
    os._exit(INTERRUPTED_STATUS)
