"""`stratal doctor`: what a file seems to be, and the exact commands to go on with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stratal.cli import options as o
from stratal.cli.inspect import inspect


def doctor(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Any file of predictions.")],
    json: o.Json = False,
) -> None:
    """Say what the columns of a file seem to be, and which command to type next.

    It is `inspect` without options.
    """
    inspect(file=file, json=json)
