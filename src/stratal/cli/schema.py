"""`stratal schema`: what a command prints with `--json`, as a JSON Schema."""

from __future__ import annotations

from typing import Annotated

import typer

from stratal.cli import options as o
from stratal.cli.output import print_json


def schema(
    command: Annotated[str, typer.Argument(metavar="COMMAND", help="Such as estimate.")],
    json: o.Json = False,
) -> None:
    """Print the JSON Schema of what a command prints with --json.

    Objects may gain names in later versions; those that are there stay. It is JSON with and without --json.
    """
    from stratal.report import command_schema

    print_json(command_schema(command))
