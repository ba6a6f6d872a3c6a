"""Progress of scans of tables, for those who watch: how many rows, how far, since when."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from stratal.arrays import Record


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scan(Record):
    """A query that is running, or has ended.

    Parameters
    ----------
    label : str
        What is scanned.
    rows : int, optional
        How many it has, where that is known already.
    share : callable
        What part of them is done, or None where the engine does not tell.
    begun : float
        `time.monotonic()` when it began.

    Examples
    --------
    >>> scan = Scan(label="rows.parquet", rows=1000, share=lambda: 0.5, begun=0.0)
    >>> scan.rate(now=2.0)
    250.0
    """

    label: str
    rows: int | None
    share: Callable[[], float | None]
    begun: float

    def rate(self, now: float | None = None) -> float | None:
        """Return rows per second so far, or None where that cannot be known."""
        share = self.share()
        took = (time.monotonic() if now is None else now) - self.begun
        return None if self.rows is None or not share or took <= 0 else self.rows * share / took


class Watch:
    """What a watcher sees: the scan that is running, and each that has ended.

    Parameters
    ----------
    ended : callable, optional
        Called with every scan at its end, and the seconds it took.

    Examples
    --------
    >>> Watch().running is None
    True
    """

    def __init__(self, ended: Callable[[Scan, float], None] = lambda scan, seconds: None) -> None:
        self.running: Scan | None = None
        self.ended = ended


_watches: list[Watch] = []


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """Let a watch see the scans of this block.

    Examples
    --------
    >>> seen = []
    >>> with watching(Watch(lambda scan, seconds: seen.append(scan.label))):
    ...     with scanning("rows.parquet", 10, lambda: None):
    ...         pass
    >>> seen
    ['rows.parquet']
    """
    _watches.append(watch)
    try:
        yield
    finally:
        _watches.remove(watch)


def watched() -> bool:
    """Return whether anybody watches.

    Examples
    --------
    >>> watched()
    False
    """
    return bool(_watches)


@contextmanager
def scanning(label: str, rows: int | None, share: Callable[[], float | None]) -> Iterator[None]:
    """Show the watchers the scan that this block is; see `Scan`.

    Examples
    --------
    >>> with scanning("rows.parquet", None, lambda: None):
    ...     pass
    """
    if not _watches:
        yield
        return
    scan = Scan(label=label, rows=rows, share=share, begun=time.monotonic())
    watches = list(_watches)
    for watch in watches:
        watch.running = scan
    try:
        yield
    finally:
        for watch in watches:
            watch.running = None
            watch.ended(scan, time.monotonic() - scan.begun)
