"""`stratal schema`: what a command prints with `--json`, as a JSON Schema."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct

from stratal.cli.command import argument, command
from stratal.cli.output import print_json


class SchemaOptions(Struct, frozen=True, kw_only=True):
    """The options of `schema`."""

    of: Annotated[
        list[str],
        argument("COMMAND…", "Such as estimate, study status, or plan-file for what `plan --output` writes."),
    ]


@command(SchemaOptions)
def schema(requested: SchemaOptions) -> None:
    """Print the JSON Schema of what a command prints with --json.

    Objects may gain names in later versions, and never lose any. The output is JSON with or without --json.
    """
    from stratal.cli.printed import command_schema

    print_json(command_schema(" ".join(requested.of)))
