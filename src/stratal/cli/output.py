"""What subcommands print: tables by rich, one JSON object, a progress bar for what takes over a second."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

PATIENCE = 1.0
"""Seconds before a progress bar is shown."""


def print_json(result: dict[str, Any]) -> None:
    """Print one JSON object.

    Examples
    --------
    >>> print_json({"n": 3})
    {
      "n": 3
    }
    """
    print(json.dumps(result, indent=2, ensure_ascii=False, allow_nan=False))


def console() -> Console:
    """Return the console for standard output; 100 columns wide where that is not a terminal.

    Examples
    --------
    >>> console().width >= 20
    True
    """
    if sys.stdout.isatty():
        return Console(highlight=False)
    return Console(highlight=False, width=100)


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table: the first column to the left, the others to the right.

    Examples
    --------
    >>> print_table("Strata", ["stratum", "units"], [["low", 12]])
    <BLANKLINE>
    Strata
     stratum  units
     low         12
    """
    table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 1))
    for number, name in enumerate(header):
        table.add_column(name, justify="right" if number else "left", header_style="dim", overflow="fold")
    for row in rows:
        table.add_row(*(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row))
    out = console()
    out.print()
    out.print(table)


def print_text(*lines: str) -> None:
    """Print lines as they are.

    Examples
    --------
    >>> print_text("done")
    done
    """
    out = console()
    for line in lines:
        out.print(line, markup=False, soft_wrap=True)


@contextmanager
def progress(what: str) -> Iterator[None]:
    """Show a bar on standard error, if that is a terminal, once the block has taken over a second.

    Examples
    --------
    >>> with progress("reading"):
    ...     pass
    """
    errors = Console(stderr=True)
    if not errors.is_terminal:
        yield
        return
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=errors, transient=True
    )
    bar.add_task(what, total=None)
    timer = threading.Timer(PATIENCE, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        bar.stop()
