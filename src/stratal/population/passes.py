"""Passes over many rows in memory, a part at a time, on several threads.

A pass is cut into parts of `PART` rows however many threads there are, and what is found in them is put
together in the order of the rows: the answer is the same, to the bit, for any number of threads. NumPy lets
other threads run while it works on a part, whose temporaries stay in a processor's cache.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeVar

from stratal.arrays import checked_threads

Found = TypeVar("Found")

PART = 1 << 16
"""Rows of a part."""

_AHEAD = 2
"""Parts per thread that are begun before the first is asked for: what a pass holds does not grow with N."""


def threads_to_use(asked: int | None = None) -> int:
    """Return how many threads a pass takes: those asked for, else OMP_NUM_THREADS, else all that there are.

    `OMP_NUM_THREADS` is what joblib and clusters set for processes that share a machine.

    Raises
    ------
    InputError
        If fewer than one are asked for.

    Examples
    --------
    >>> threads_to_use(3)
    3
    """
    if asked is not None:
        return checked_threads(asked)
    given = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if given.isdecimal() and int(given) > 0:
        return int(given)
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def over(size: int, work: Callable[[slice], Found], threads: int | None = None) -> Iterator[Found]:
    """Yield what `work` finds in each part of `size` rows, in their order.

    Parameters
    ----------
    size : int
        N.
    work : callable
        Called with one part, a slice, on any thread; it may write into rows of its part alone.
    threads : int, optional
        As in `threads_to_use`.

    Examples
    --------
    >>> list(over(100_000, lambda part: part.stop - part.start, threads=2))
    [65536, 34464]
    """
    parts = [slice(start, min(start + PART, size)) for start in range(0, size, PART)]
    workers = min(threads_to_use(threads), len(parts)) if len(parts) > 1 else 1
    if workers < 2:
        yield from map(work, parts)
        return
    from concurrent.futures import ThreadPoolExecutor  # 3 ms, not needed by few rows

    with ThreadPoolExecutor(workers, thread_name_prefix="stratal") as pool:
        begun = deque(pool.submit(work, part) for part in parts[: _AHEAD * workers])
        for part in parts[_AHEAD * workers :]:
            yield begun.popleft().result()
            begun.append(pool.submit(work, part))
        while begun:
            yield begun.popleft().result()
