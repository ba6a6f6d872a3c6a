"""The annotation tools that items go to and answers come from; each in a file of its own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

from stratal.errors import InputError, LabelError
from stratal.labels.exchange import argilla, label_studio, potato, prodigy, sheets
from stratal.labels.exchange.exchange import Answers, Asked, Task, Tool
from stratal.tables.files import existing_file, json_document, json_records, opened
from stratal.tables.limits import MOST_BYTES
from stratal.tables.logs.log import as_written

TOOLS = {
    tool.name: tool
    for tool in (
        *(label_studio.TOOL, argilla.TOOL, potato.TOOL, prodigy.TOOL),
        *(sheets.EXCEL, sheets.CSV, sheets.JSON_LINES),
    )
}
_SUFFIXES = {"excel": (".xlsx",), "csv": (".csv",), "jsonl": (".jsonl", ".ndjson"), "prodigy": (".jsonl",)}


def tool_called(name: str) -> Tool:
    """Return a tool by its name.

    Examples
    --------
    >>> tool_called("argilla").title
    'Argilla'
    """
    if name not in TOOLS:
        raise InputError("there is no such tool", given=repr(name), allowed=", ".join(TOOLS))
    return TOOLS[name]


def named_for(path: Path) -> str | None:
    """Return the name of the tool whose files end as this one does, the plainest of several.

    Examples
    --------
    >>> named_for(Path("items.csv")), named_for(Path("items.jsonl")), named_for(Path("page.html"))
    ('csv', 'jsonl', None)
    """
    return next((name for name, ends in _SUFFIXES.items() if path.suffix.lower() in ends), None)


def write_tasks(tool: Tool, tasks: Sequence[Task], asked: Asked, path: Path) -> str:
    """Write items for a tool, whole or not at all; return what to do with them there.

    Parameters
    ----------
    tool : Tool
    tasks : sequence of Task
    asked : Asked
    path : Path
        A new file, or a new folder for tools that need several files.

    Raises
    ------
    InputError
        If `path` exists, has a name of another kind, or cannot be written; and for no items.

    Examples
    --------
    >>> asked = Asked(text="OK?", choices=("Pass", "Fail"))
    >>> path = Path(tempfile.mkdtemp()) / "items.csv"
    >>> write_tasks(TOOLS["csv"], [Task(id="q7", payload={"q": "?"})], asked, path)[:27]
    "Fill in the column 'label' "
    """
    allowed = _SUFFIXES.get(tool.name, ())
    if allowed and path.suffix.lower() not in allowed:
        raise InputError(f"{path}: {tool.title} needs another name", allowed=f"a file {' or '.join(allowed)}")
    if path.exists() or path.is_symlink():
        raise InputError(f"{path}: already exists", action="Give the name of a new file or folder.")
    if not tasks:
        raise InputError("there is nothing left to label", action="Ask `stratal status` who said what.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".export.") as beside:
            partial = Path(beside, path.name)
            if tool.folder:
                partial.mkdir()
            advice = tool.write(tasks, asked, partial)
            shutil.move(partial, path)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written ({error.strerror or error})", action="Choose another folder."
        ) from None
    return advice.replace(str(partial), str(path))


def read_answers(path: Path, tool: str | None = None, id_name: str = "id") -> Answers:
    """Return the answers of a tool's file; which tool it is of is found out unless it is said.

    Parameters
    ----------
    path : Path
        A file, or Potato's folder.
    tool : str, optional
    id_name : str
        What the sample calls its id column, for tables.

    Raises
    ------
    LabelError
        For a file that cannot be read, is of another tool, or holds no answer.

    Examples
    --------
    >>> path = Path(tempfile.mkdtemp()) / "labels.csv"
    >>> _ = path.write_text("item_id,label\\n007,Pass\\n008,\\n")
    >>> [(said.id, said.value) for said in read_answers(path).said]
    [('007', 'Pass')]
    """
    wanted = None if tool is None else tool_called(tool)
    found = answers_of_tool(path)
    if wanted is not None and wanted.read is not None and (found is None or found.tool != wanted.name):
        other = "" if found is None else f"; it looks like {TOOLS[found.tool].title}"
        raise LabelError(f"{path}: is no export of {wanted.title}{other}", action="Leave out --from.")
    if found is None:
        found = sheets.read_table(path, id_name)
    if not found.said:
        raise LabelError(
            f"{path}: holds no answer",
            action="Check that the answers were saved, or that it is the file that came back.",
        )
    return found


def answers_of_tool(path: Path) -> Answers | None:
    """Return the answers in a tool's own kind of file, None for a table or anything else.

    Examples
    --------
    >>> answers_of_tool(Path("labels.csv"))
    """
    if path.is_dir():
        return potato.read_folder(path)
    tool = tool_of(path)
    if tool is None or tool.read is None:
        return None
    with as_written(str(path), tool.title):
        return tool.read(_document(path), str(path))


def tool_of(path: Path) -> Tool | None:
    """Return the tool that a JSON file or folder is of, None for any other.

    Examples
    --------
    >>> tool_of(Path("labels.csv"))
    """
    if path.is_dir():
        return potato.TOOL if any(path.glob(f"*/{potato.STATE}")) else None
    start = _document(path, most=1)
    return next((tool for tool in TOOLS.values() if start is not None and tool.recognises(start)), None)


def _document(path: Path, most: int | None = None) -> Any:
    """Return a JSON document, or the first objects of JSON Lines; None for other files."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    last = suffixes[-1] if suffixes else ""
    if last == ".json":
        return json_document(existing_file(path), MOST_BYTES, "for a table of labels")
    if last not in (".jsonl", ".ndjson"):
        return None
    with closing(opened(existing_file(path))) as text:
        return [record for _, record in islice(json_records(text, path), most)]
