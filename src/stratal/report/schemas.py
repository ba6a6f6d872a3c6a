"""JSON Schemas of what every command prints with `--json`; objects may gain names later and lose none."""

from __future__ import annotations

from typing import Any

from stratal.errors import InputError, near_names
from stratal.report.printed_kinds import COMMANDS
from stratal.report.printed_parts import ANY, PARTS

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_PLAIN = {"text": "string", "number": "number", "integer": "integer", "boolean": "boolean"}


def command_schema(command: str, *, closed: bool = False) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of what a command prints with `--json`.

    Parameters
    ----------
    command : str
    closed : bool
        Whether objects may have no other names than those given: for tests.

    Raises
    ------
    InputError
        For a command that there is not.

    Examples
    --------
    >>> command_schema("extend")["properties"]["enough"]
    {'type': 'boolean'}
    """
    if command not in COMMANDS:
        raise InputError(f"no such command: {command!r}", allowed=near_names(command, COMMANDS))
    maker = _Maker(closed)
    made = maker.schema(COMMANDS[command])
    return {
        "$schema": DIALECT,
        "$id": f"stratal-{command}.schema.json",
        "title": f"stratal {command} --json",
        **made,
        **({"$defs": maker.definitions()} if maker.used else {}),
    }


class _Maker:
    """Turns the notation into schemas, and remembers which parts it needed."""

    def __init__(self, closed: bool) -> None:
        self.closed = closed
        self.used: dict[str, None] = {}

    def definitions(self) -> dict[str, Any]:
        """Return the schemas of the parts that were needed, and of those that these need."""
        found: dict[str, Any] = {}
        while set(self.used) - set(found):
            for name in list(self.used):
                if name not in found:
                    found[name] = self.schema(PARTS[name])
        return found

    def schema(self, kind: Any) -> dict[str, Any]:
        """Return the schema of a kind."""
        if isinstance(kind, list):
            return {"type": "array", "items": self.schema(kind[0])}
        if isinstance(kind, dict):
            return self._object(kind)
        if isinstance(kind, tuple):
            return {"anyOf": [self.schema(one) for one in kind]}
        name, null = kind.removesuffix("?"), kind.endswith("?")
        if name == ANY:
            return {}
        if name in _PLAIN:
            return {"type": [_PLAIN[name], "null"] if null else _PLAIN[name]}
        self.used[name] = None
        reference = {"$ref": f"#/$defs/{name}"}
        return {"anyOf": [reference, {"type": "null"}]} if null else reference

    def _object(self, names: dict[str, Any]) -> dict[str, Any]:
        given = {name: kind for name, kind in names.items() if name != "*"}
        made: dict[str, Any] = {"type": "object"}
        if given:
            made["properties"] = {name.removesuffix("?"): self.schema(kind) for name, kind in given.items()}
            made["required"] = [name for name in given if not name.endswith("?")]
        if "*" in names:
            made["additionalProperties"] = self.schema(names["*"])
        elif self.closed:
            made["additionalProperties"] = False
        return made
