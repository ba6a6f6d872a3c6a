"""`stratal export`: items for an annotation tool, a spreadsheet, or a page without a server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from stratal.cli import options as o
from stratal.cli.evidence import require_present
from stratal.cli.init import KINDS, made_question
from stratal.cli.output import print_json, print_next, print_text
from stratal.cli.records import takes
from stratal.errors import InputError, MissingExtraError

HTML = "html"
TO = f"{HTML} (a page in one file), label-studio, argilla, potato, prodigy, excel, csv or jsonl."
_PAGES = (".html", ".htm")
_COMES_BACK = {"label-studio": "export.json", "argilla": "records.json", "prodigy": "answers.jsonl"}
"""What the file that a tool gives back may be called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """The options of `export`.

    Examples
    --------
    >>> ExportOptions(study=Path("audit"), output=Path("items.csv"), to="csv").annotator is None
    True
    """

    study: Annotated[
        Path, typer.Argument(metavar="STUDY", help="The folder that `init` made, or a sample that was drawn.")
    ]
    output: Annotated[Path, typer.Option(help="File or folder to write; must not exist.")]
    to: Annotated[str | None, typer.Option(help=TO, show_default="what the file's name says, or html")] = None
    annotator: Annotated[
        str | None,
        typer.Option(help="Whom the items are for, and kept for.", show_default="whoever uses the tool"),
    ] = None
    items: Annotated[
        int | None, typer.Option(help="At most so many items.", show_default="all that are free")
    ] = None
    question: Annotated[str | None, typer.Option(help="Of a sample: what annotators are asked.")] = None
    choices: Annotated[
        str | None, typer.Option(metavar="ANSWER,…", help="Of a sample: answers to choose from, Pass,Fail.")
    ] = None
    scale: Annotated[str | None, typer.Option(help="Of a sample: answers on a scale, LOW,HIGH.")] = None
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="ANSWER,…", help="Of a sample: answers in the annotators' own words, some known."
        ),
    ] = None
    json: o.Json = False


@takes(ExportOptions)
def export(asked: ExportOptions) -> None:
    """Write the items that still need an answer for another tool; `stratal import` takes the answers back.

    A study's items that are written for one annotator are kept for that one. Nothing of proxy, prediction or
    stratum goes out. A sample that was drawn can be written as well; its labels go to `stratal estimate`.
    """
    from stratal.labels.exchange.tools import TOOLS, named_for, write_tasks

    require_present(asked.study)
    to = asked.to or named_for(asked.output) or HTML
    if to == HTML:
        _page(asked)
        return
    if to not in TOOLS:
        raise InputError("--to is not understood", given=repr(to), allowed=", ".join((HTML, *TOOLS)))
    tool = TOOLS[to]
    _refuse_taken(asked.output)
    tasks, question = _of_study(asked) if asked.study.is_dir() else _of_sample(asked)
    advice = write_tasks(tool, tasks, question, asked.output)
    if asked.json:
        print_json(
            {"study": str(asked.study), "to": tool.name, "file": str(asked.output), "items": len(tasks)}
            | ({"annotator": asked.annotator} if asked.annotator else {})
        )
        return
    print_text(f"{asked.output}: {len(tasks):,} items for {tool.title}.", advice)
    comes_back = asked.output / "annotation_output" if tool.name == "potato" else asked.output
    back = _COMES_BACK.get(tool.name, str(comes_back))
    if asked.study.is_dir():
        named = ["--annotator", asked.annotator] if asked.annotator else []
        if not named and tool.name in _NAMELESS:
            named = whose(asked.study)
        print_next("import", asked.study, back, *named, "--dry-run")
    else:
        print_next("estimate", asked.study, back)


_NAMELESS = ("csv", "excel", "jsonl")
"""Files that do not say who answered."""


def whose(study: Path) -> list[str]:
    """Return the option that says who answered in a file without names, and print who that may be."""
    from stratal.study.finding import people_of

    people = people_of(study)
    if len(people) < 2:
        return []
    print_text(f"Name whoever filled it in: --annotator {', '.join(people)}.")
    return ["--annotator", people[0]]


def _refuse_taken(path: Path) -> None:
    """Refuse a path before items are kept for anybody."""
    if path.exists() or path.is_symlink():
        raise InputError(f"{path}: already exists", action="Give the name of a new file or folder.")


def _of_study(asked: ExportOptions) -> tuple[Any, Any]:
    """Return a study's items, and its question."""
    from stratal.study.exchange import asked_of
    from stratal.study.opening import open_study

    given = [name for name in ("question", *KINDS) if getattr(asked, name, None) is not None]
    if given:
        raise InputError(
            f"--{given[0]} belongs to a sample", action="A study has its own question; leave it out."
        )
    with open_study(asked.study) as opened:
        tasks = opened.tasks(annotator=asked.annotator, items=asked.items)
        return tasks, asked_of(opened.question)


def _of_sample(asked: ExportOptions) -> tuple[Any, Any]:
    """Return a sample's items, and the question that the options ask."""
    from stratal.designs import Sample
    from stratal.study.exchange import asked_of, sample_tasks
    from stratal.study.question import Question

    if asked.annotator is not None:
        raise InputError("--annotator belongs to a study", action="Leave it out, or make one: stratal init.")
    kinds = {name: getattr(asked, name, None) for name in KINDS}
    if asked.question is None and not any(kinds.values()):
        question = Question.of_classes("What is right?")
    else:
        question = made_question(asked.question or "What is right?", kinds)
    tasks = sample_tasks(Sample.read(asked.study), question)
    return tasks[: asked.items], asked_of(question)


def _page(asked: ExportOptions) -> None:
    """Write a page in one file, on which one annotator labels without a server or a network."""
    try:
        from stratal.study.web.one_file import downloaded_as, write_page
    except ImportError as error:
        raise MissingExtraError(error.name or "starlette", extra="web") from None
    from stratal.study.opening import open_study

    if not asked.study.is_dir():
        raise InputError(
            f"{asked.study}: a page needs a study",
            action="Make one: stratal init. Items of a sample go to another tool: --to TOOL.",
        )
    if asked.annotator is None:
        raise InputError(
            "a page is for one annotator",
            action="Say whom: --annotator NAME; or which other tool the items are for: --to TOOL.",
        )
    if asked.output.suffix.lower() not in _PAGES:
        raise InputError(
            f"{asked.output}: a page needs another name",
            allowed=f"a file {' or '.join(_PAGES)}",
            action="For another tool say which: --to TOOL.",
        )
    with open_study(asked.study) as opened:
        size = write_page(opened, asked.output, asked.annotator, items=asked.items)
    output = str(asked.output)
    if asked.json:
        print_json({"study": str(asked.study), "annotator": asked.annotator, "file": output, "bytes": size})
        return
    print_text(
        f"{output}: a page for {asked.annotator}, {size:,} bytes. It needs a browser and nothing else."
    )
    print_next("import", asked.study, downloaded_as(asked.annotator))
