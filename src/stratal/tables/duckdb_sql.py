"""SQL of DuckDB that reads files: table functions, columns, quoted names, and paths."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from stratal.tables.spilling import private_file


def function_sql(function: str, path: str, **options: str) -> str:
    """Return the SQL of a table function such as `read_csv`; the path and the options are SQL, too."""
    return f"{function}({', '.join([path, *(f'{name} = {value}' for name, value in options.items())])})"


def columns_sql(names: Iterable[str], type_name: str) -> str:
    """Return the SQL of columns with one type, as an option of `read_csv` and `read_json`."""
    return "{" + ", ".join(f"{quote_text(name)}: '{type_name}'" for name in names) + "}"


def literal_path(path: str) -> str:
    """Return a path with escaped wildcards, which DuckDB would expand."""
    literal = "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)
    if "://" in path or os.path.isabs(path):
        return literal
    # DuckDB interprets the text before a colon as a drive or a scheme.
    if ":" in path:
        return f"./{literal}"
    return literal


def duckdb_path(path: Path | str) -> str:
    """Return a local path under which DuckDB opens the same file as Python.

    DuckDB interprets a backslash as a slash, and ~ at the beginning as the home folder. The path of such a
    file is a new symbolic link to it.
    """
    text = str(path)
    if not needs_link(text):
        return literal_path(text)
    link = private_file("".join(Path(text).suffixes[-2:]).replace("\\", ""))
    link.unlink()
    link.symlink_to(Path(text).resolve())
    return literal_path(str(link))


def needs_link(path: str) -> bool:
    """Return whether DuckDB would open another file under this path; see `duckdb_path`."""
    return "\\" in path or path.startswith("~")


def quote_name(name: str) -> str:
    """Return the name of a column in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(value: str) -> str:
    """Return the SQL literal of a text."""
    return "'" + value.replace("'", "''") + "'"
