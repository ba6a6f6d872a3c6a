"""`stratal import`: labels that were given elsewhere, back into the study."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from stratal.cli import options as o
from stratal.cli.output import print_json, print_next, print_page, print_text
from stratal.cli.records import takes
from stratal.errors import InputError

PAGE = "page"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """The options of `import`.

    Examples
    --------
    >>> ImportOptions(study=Path("audit"), file=Path("export.json")).dry_run
    False
    """

    study: o.Study
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What the tool gave back, or Potato's folder.")]
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="page, label-studio, argilla, potato, prodigy, excel, csv or jsonl.",
            show_default="found out",
        ),
    ] = None
    annotator: Annotated[
        str | None,
        typer.Option(
            help="Whose answers these are: NAME, or THEIRS=NAME with commas between several",
            show_default="as the file says",
        ),
    ] = None
    id: Annotated[
        str | None, typer.Option("--id", help="Column of ids in a table.", show_default="the sample's")
    ] = None
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be taken in, and save nothing.")
    ] = False
    json: o.Json = False


@takes(ImportOptions)
def take_in(asked: ImportOptions) -> None:
    """Take what annotators said in another tool into the study: all of it or nothing.

    With --dry-run it is shown first: what matches, what does not, what changes, what was skipped. The same
    file may be taken in again, and a later one with more labels too: nothing is saved twice, and what was
    changed in the study since stays as it is there.
    """
    from stratal.labels.exchange.tools import read_answers
    from stratal.report import taken_page
    from stratal.study.opening import open_study

    if asked.from_ == PAGE or (asked.from_ is None and _is_of_page(asked.file)):
        _take_in_page(asked)
        return
    with open_study(asked.study) as opened:
        answers = read_answers(asked.file, asked.from_, asked.id or opened.sample().id_name)
        taken = opened.take_in_answers(answers, annotator=_people(asked.annotator), dry_run=asked.dry_run)
    found: dict[str, Any] = {"study": str(asked.study), "file": str(asked.file), **taken.to_dict()}
    if asked.json:
        print_json(found)
        return
    print_page(taken_page(found))
    _go_on(asked)


def _go_on(asked: ImportOptions) -> None:
    """Print the same command without `--dry-run`, or how to see how far the study is."""
    if not asked.dry_run:
        print_next("status", asked.study)
        return
    print_next("import", asked.study, asked.file, *o.words(replace(asked, dry_run=False, json=False)))


def _people(text: str | None) -> dict[str, str] | str | None:
    """Return whose answers these are: one name, or the study's name for each of the tool's."""
    if text is None or "=" not in text:
        return text
    pairs = [part.rpartition("=") for part in text.split(",")]
    if not all(theirs.strip() and ours.strip() for theirs, _, ours in pairs):
        raise InputError("--annotator takes names", given=repr(text), allowed="NAME, or THEIRS=NAME,…")
    return {theirs.strip(): ours.strip() for theirs, _, ours in pairs}


def _is_of_page(file: Path) -> bool:
    """Return whether a file is what the button of an offline page downloaded."""
    from stratal.study.offline import BACK
    from stratal.tables.files import json_document

    if file.suffix.lower() != ".json" or not file.is_file():
        return False
    try:
        found = json_document(file)
    except (InputError, UnicodeDecodeError):
        return True  # which then says what is wrong with it
    return isinstance(found, dict) and found.get("format") == BACK


def _take_in_page(asked: ImportOptions) -> None:
    from stratal.cli.init import text_of
    from stratal.study.offline import LARGEST
    from stratal.study.opening import open_study

    if asked.annotator is not None:
        raise InputError("a page says itself whose labels it holds", action="Leave out --annotator.")
    text = text_of(asked.file, LARGEST)
    with open_study(asked.study) as opened:
        found = opened.take_in(text, source=str(asked.file), dry_run=asked.dry_run)
    if asked.json:
        print_json(
            {"study": str(asked.study), "file": str(asked.file), **found, "applied": not asked.dry_run}
        )
        return
    done = "would be saved" if asked.dry_run else "saved"
    saved, before = found["saved"], found["repeated"]
    actions = "1 action" if saved == 1 else f"{saved:,} actions"
    print_text(f"{asked.file}: {actions} {done}, {before:,} had been saved before.")
    _go_on(asked)
