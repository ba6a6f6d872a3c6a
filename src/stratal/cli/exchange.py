"""`stratal export` and `stratal import`: items for other tools, and answers back into the study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from msgspec import Struct, structs

from stratal.cli.command import argument, command, option, words
from stratal.cli.estimate import require_present
from stratal.cli.init import KINDS, made_question
from stratal.cli.options import Study, Text, Whole
from stratal.cli.output import Result
from stratal.cli.parsing import mapping, text_of
from stratal.errors import InputError, MissingExtraError

HTML = "html"
PAGE = "page"
_PAGES = (".html", ".htm")
_COMES_BACK = {"label-studio": "export.json", "argilla": "records.json", "prodigy": "answers.jsonl"}
"""What the file that a tool gives back may be called."""

_NAMELESS = ("csv", "excel", "jsonl")
"""Files that do not say who answered."""


class ExportOptions(Struct, frozen=True, kw_only=True):
    """The options of `export`.

    Parameters
    ----------
    output : path
        File or folder to write; must not exist.
    to : str
        html (a page in one file), label-studio, argilla, potato, prodigy, excel, csv or jsonl.
    annotator : str
        Whom the items are for, and kept for.
    items : int
        At most so many items.
    question : str
        Of a sample: what annotators are asked.
    choices : ANSWER,…
        Of a sample: answers to choose from, Pass,Fail.
    scale : str
        Of a sample: answers on a scale, LOW,HIGH.
    classes : ANSWER,…
        Of a sample: answers in the annotators' own words, some known.

    Examples
    --------
    >>> ExportOptions(study=Path("audit"), output=Path("items.csv"), to="csv").annotator is None
    True
    """

    study: Annotated[Path, argument("STUDY", "The folder that `init` made, or a sample that was drawn.")]
    output: Path
    to: Annotated[Text, option(shown="what the file's name says, or html")] = None
    annotator: Annotated[Text, option(shown="whoever uses the tool")] = None
    items: Annotated[Whole, option(shown="all that are free")] = None
    question: Text = None
    choices: Text = None
    scale: Text = None
    classes: Text = None


@command(ExportOptions)
def export(asked: ExportOptions) -> Result:
    """Write the items that still need an answer for another tool; `stratal import` takes the answers back.

    A study's items that are written for one annotator are kept for that one. Nothing of proxy, prediction or
    stratum goes out. A sample that was drawn can be written as well; its labels go to `stratal estimate`.
    """
    from stratal.labels.exchange.tools import TOOLS, named_for, write_tasks

    require_present(asked.study)
    to = asked.to or named_for(asked.output) or HTML
    if to == HTML:
        return _page(asked)
    if to not in TOOLS:
        raise InputError("--to is not understood", given=repr(to), allowed=", ".join((HTML, *TOOLS)))
    tool = TOOLS[to]
    if asked.output.exists() or asked.output.is_symlink():  # before items are kept for anybody
        raise InputError(f"{asked.output}: already exists", action="Give the name of a new file or folder.")
    of_study = asked.study.is_dir()
    tasks, question = _of_study(asked) if of_study else _of_sample(asked)
    advice = write_tasks(tool, tasks, question, asked.output)
    found = {"study": str(asked.study), "to": tool.name, "file": str(asked.output), "items": len(tasks)}
    comes_back = asked.output / "annotation_output" if tool.name == "potato" else asked.output
    back = _COMES_BACK.get(tool.name, str(comes_back))
    then: list[Any] = [("estimate", asked.study, back)]
    if asked.annotator is not None:
        found["annotator"] = asked.annotator
    if of_study:
        named = ["--annotator", asked.annotator] if asked.annotator else []
        who, said = whose(asked.study) if not named and tool.name in _NAMELESS else (named, [])
        then = [*said, ("import", asked.study, back, *who, "--dry-run")]
    return Result(found, f"{asked.output}: {len(tasks):,} items for {tool.title}.", advice, then)


def whose(study: Path) -> tuple[list[str], list[str]]:
    """Return the option that says who answered in a file without names, and a line about who that may be."""
    from stratal.study.opening import people_of

    people = people_of(study)
    if len(people) < 2:
        return [], []
    return ["--annotator", people[0]], [f"Name whoever filled it in: --annotator {', '.join(people)}."]


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


def _page(asked: ExportOptions) -> Result:
    """Write a page in one file, on which one annotator labels without a server or a network."""
    try:
        from stratal.study.web.notebook import downloaded_as, write_page
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
    return Result(
        {"study": str(asked.study), "annotator": asked.annotator, "file": str(asked.output), "bytes": size},
        f"{asked.output}: a page for {asked.annotator}, {size:,} bytes. It needs a browser and nothing else.",
        ("import", asked.study, downloaded_as(asked.annotator)),
    )


class ImportOptions(Struct, frozen=True, kw_only=True):
    """The options of `import`.

    Parameters
    ----------
    from_ : str
        page, label-studio, argilla, potato, prodigy, excel, csv or jsonl.
    annotator : str
        Whose answers these are: NAME, or THEIRS=NAME with commas between several
    id : str
        Column of ids in a table.
    map : LABEL=ANSWER,…
        What else is written there stands for: n/a= is no answer, OK=Pass an answer of the question.
    dry_run : bool
        Say what would be taken in, and save nothing.

    Examples
    --------
    >>> ImportOptions(study=Path("audit"), file=Path("export.json")).dry_run
    False
    """

    study: Study
    file: Annotated[Path, argument("FILE", "What the tool gave back, or Potato's folder.")]
    from_: Annotated[Text, option(shown="found out")] = None
    annotator: Annotated[Text, option(shown="as the file says")] = None
    id: Annotated[Text, option(shown="the sample's")] = None
    map: Text = None
    dry_run: bool = False


@command(ImportOptions, name="import")
def take_in(asked: ImportOptions) -> Result:
    """Take what annotators said in another tool into the study: all of it or nothing.

    With --dry-run it is shown first: what matches, what does not, what changes, what was skipped. The same
    file may be taken in again, and a later one with more labels too: nothing is saved twice, and what was
    changed in the study since stays as it is there.
    """
    from stratal.labels.exchange.tools import read_answers
    from stratal.report import taken_page
    from stratal.study.exchange import LARGEST
    from stratal.study.opening import open_study

    found: dict[str, Any] = {"study": str(asked.study), "file": str(asked.file)}
    if asked.dry_run:
        then = ("import", asked.study, asked.file, *words(structs.replace(asked, dry_run=False)))
    else:
        then = ("status", asked.study)
    if asked.from_ == PAGE or (asked.from_ is None and _is_of_page(asked.file)):
        for name in ("annotator", "map"):
            if getattr(asked, name) is not None:
                raise InputError("a page says itself whose labels it holds", action=f"Leave out --{name}.")
        text = text_of(asked.file, LARGEST)
        with open_study(asked.study) as opened:
            found |= opened.take_in(text, source=str(asked.file), dry_run=asked.dry_run)
        saved, done = found["saved"], "would be saved" if asked.dry_run else "saved"
        actions = "1 action" if saved == 1 else f"{saved:,} actions"
        line = f"{asked.file}: {actions} {done}, {found['repeated']:,} had been saved before."
        return Result(found | {"applied": not asked.dry_run}, line, then)
    with open_study(asked.study) as opened:
        answers = read_answers(asked.file, asked.from_, asked.id or opened.sample().id_name)
        answers = answers.mapped(mapping("--map", asked.map))
        taken = opened.take_in_answers(answers, annotator=_people(asked.annotator), dry_run=asked.dry_run)
    return Result(found | taken.to_dict(), taken_page, then)


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
    from stratal.study.exchange import BACK
    from stratal.tables.files import json_document

    if file.suffix.lower() != ".json" or not file.is_file():
        return False
    try:
        found = json_document(file)
    except (InputError, UnicodeDecodeError):
        return True  # which then says what is wrong with it
    return isinstance(found, dict) and found.get("format") == BACK
