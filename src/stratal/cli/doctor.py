"""`stratal doctor`: what a file seems to be, and the exact commands to go on with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stratal.cli import options as o
from stratal.cli.export import whose
from stratal.cli.inspect import inspect
from stratal.cli.output import print_json, print_next, print_text
from stratal.errors import InputError

if TYPE_CHECKING:
    from stratal.labels.exchange.exchange import Answers


def doctor(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Any file of predictions, of a log, or of labels.")
    ],
    json: o.Json = False,
) -> None:
    """Say what a file seems to be, and which command to type next.

    Predictions and logs of evaluation tools are shown as by `inspect`. Answers from an annotation tool are
    counted, and the study or the sample that they belong to is looked for here and beside the file.
    """
    from stratal.study.finding import homes_of

    if file.is_dir() and _say_logs(file, json=json):
        return
    found = _answers(file)
    homes = [] if found is None else homes_of({said.id for said in found.said}, (Path(), file.parent))
    if found is None or (found.tool in _TABLES and not homes):
        inspect(file=file, json=json)
        return
    _say(file, found, homes, json=json)


_TABLES = ("csv", "excel", "jsonl")
"""Files that may be predictions as well, unless their ids are those of a study or a sample."""


_LARGEST = 100_000_000
"""Bytes; a file of labels is smaller, and reading one of predictions whole takes its time."""


def _answers(file: Path) -> Answers | None:
    """Return the answers in a file, None for a file that holds none."""
    from stratal.labels.exchange.tools import read_answers, tool_of

    if not file.exists() or (file.is_dir() and tool_of(file) is None):
        return None
    if file.is_file() and file.stat().st_size > _LARGEST:
        return None
    own = file.suffix.lower() in (".json", ".jsonl", ".ndjson") and tool_of(file) is not None
    try:
        return read_answers(file)
    except InputError:
        if own or file.is_dir():
            raise
        return None


def _say_logs(folder: Path, *, json: bool) -> bool:
    """Say which logs of evaluation tools a folder holds; False if none, or if it is itself a data set."""
    from stratal.population.logs.hugging_face import STATE
    from stratal.population.logs.reading import logs_below

    found = {} if (folder / STATE).exists() else logs_below(folder)
    if not found:
        return False
    if json:
        print_json({"folder": str(folder), "logs": {str(path): tool for path, tool in found.items()}})
        return True
    print_text(f"{folder}: {len(found):,} logs of evaluation tools.")
    print_text(*(f"  {path}  ({tool})" for path, tool in found.items()))
    print_next("doctor", next(iter(found)))
    return True


def _say(file: Path, found: Answers, homes: list[Path], *, json: bool) -> None:
    """Say how many answers there are, and where they go."""
    from stratal.labels.exchange.tools import TOOLS

    people = list(dict.fromkeys(said.annotator for said in found.said if said.annotator))
    items = len({said.id for said in found.said})
    skipped = sum(said.value is None for said in found.said)
    if json:
        described = {"tool": found.tool, "answers": len(found.said), "items": items, "skipped": skipped}
        print_json(
            {"file": str(file), **described, "annotators": people, "belongs_to": list(map(str, homes))}
        )
        return
    by = f" by {', '.join(people[:5])}{' …' if len(people) > 5 else ''}" if people else ""
    print_text(
        f"{file}: {TOOLS[found.tool].title}, {len(found.said):,} answers of {items:,} items{by}, "
        f"{skipped:,} of them skips.",
        *(f"Note: {note}." for note in found.notes),
    )
    for home in homes:
        if home.is_dir():
            print_next("import", home, file, *([] if people else whose(home)), "--dry-run")
        else:
            print_next("estimate", home, file)
    if not homes:
        print_text(
            "Its study or sample is not in this folder: go where it is, and ask again, or type "
            "`stratal import STUDY FILE --dry-run` or `stratal estimate SAMPLE FILE`."
        )
