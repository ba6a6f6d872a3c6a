"""When a page was measured, with what, and beside what other work."""

from __future__ import annotations

import os
import platform
import time

import numpy as np
import scipy

_START = time.time(), os.getloadavg()[0]


def circumstances() -> str:
    """Return date, versions, time taken since the program began, and load, for the head of a page."""
    began, before = _START
    return (
        f"{time.strftime('%Y-%m-%d')}, Python {platform.python_version()}, NumPy {np.__version__}, SciPy "
        f"{scipy.__version__}, {os.cpu_count()} cores; {time.time() - began:.0f} s, load of the machine "
        f"{before:.1f} before and {os.getloadavg()[0]:.1f} after."
    )
