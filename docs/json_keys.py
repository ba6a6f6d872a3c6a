"""The page of JSON keys: what every command prints with `--json`, read from the published schemas."""

from __future__ import annotations

import json
from typing import Any

import make_pages


def kind(schema: dict[str, Any]) -> str:
    """Return in words what a value may be."""
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(kind(part) for part in schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    types = schema.get("type", "anything")
    words = " or ".join(types) if isinstance(types, list) else types
    if "prefixItems" in schema:
        return "array of " + " and ".join(dict.fromkeys(map(kind, schema["prefixItems"])))
    if words == "array":
        return "array of " + kind(schema.get("items", {}))
    if schema.get("additionalProperties"):
        return "by name: " + kind(schema["additionalProperties"])
    return words


def rows(schema: dict[str, Any], above: str = "") -> list[tuple[str, str]]:
    """Return key and kind of every property of an object, those of objects inside it with a dotted name."""
    found: list[tuple[str, str]] = []
    for one in schema.get("anyOf", []):
        found += [row for row in rows(one, above) if row not in found]
    for name, part in schema.get("properties", {}).items():
        found.append((above + name, kind(part)))
        inner = part.get("items", part) if isinstance(part.get("items", part), dict) else {}
        found += rows(inner, f"{above}{name}.")
    return found


def page() -> str:
    """Return the page: one section for each command, then one for each kind of object that they share."""
    schemas = make_pages.schemas()
    shared: dict[str, dict[str, Any]] = {}
    sections = []
    for file_name, text in schemas.items():
        schema = json.loads(text)
        shared |= schema.get("$defs", {})
        name = file_name.removesuffix(".json").replace("study-", "study ")
        ways = schema.get("anyOf", [schema] if "$ref" in schema else [])
        goals = [kind(way) for way in ways if "$ref" in way]
        goals += ["one with some of the keys below"] if goals and len(goals) < len(ways) else []
        said = f" One object: {' or '.join(goals)}." if goals else " One object, with some of these keys." if ways else ""
        title = name if name == "plan-file" else f"stratal {name}"
        head = f"## {title}\n\n[The schema](../schemas/{file_name}); `stratal schema {name}` prints it."
        sections.append(head + said + table(rows(schema)))
    parts = [f"## {name}\n{table(rows(schema))}" for name, schema in sorted(shared.items()) if rows(schema)]
    plain = [f"## {name}\n\n{kind(schema)}\n" for name, schema in sorted(shared.items()) if not rows(schema)]
    return "# JSON keys\n\nWhat the commands print with `--json`, and what `to_dict()` returns in Python.\n\n" + "\n\n".join(
        [*sections, *parts, *plain]
    )


def table(found: list[tuple[str, str]]) -> str:
    """Return rows as a table of Markdown."""
    if not found:
        return "\n"
    lines = [f"| `{name}` | {what.replace('|', chr(92) + '|')} |" for name, what in found]
    return "\n\n| key | value |\n|---|---|\n" + "\n".join(lines) + "\n"
