"""`stratal init`: a folder in which annotators label what was drawn."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stratal.cli import options as o
from stratal.cli.draw import SharedDrawOptions
from stratal.cli.output import print_json, print_next, print_page
from stratal.cli.records import takes
from stratal.errors import InputError

if TYPE_CHECKING:
    from stratal.designs.sample import Sample
    from stratal.study.question import Question
    from stratal.study.study import Study

KINDS = ("choices", "scale", "pair", "classes")


@dataclass(frozen=True, slots=True, kw_only=True)
class InitOptions(SharedDrawOptions):
    """The options of `init`: how to draw, what to ask, and whom.

    Examples
    --------
    >>> InitOptions(file=Path("p.csv"), study=Path("s"), question="Good?", annotators="ada").copies
    2
    """

    study: Annotated[
        Path, typer.Option(metavar="DIR", help="The study's folder; must be empty or not exist.")
    ]
    question: Annotated[str, typer.Option(help="What annotators are asked about each item.")]
    annotators: Annotated[str, typer.Option(metavar="NAME,…", help="Who labels.")]
    choices: Annotated[
        str | None,
        typer.Option(
            metavar="ANSWER,…", help="Answers to choose from: Pass,Fail or Good=1,Partly=0.5,Bad=0."
        ),
    ] = None
    scale: Annotated[str | None, typer.Option(help="Answers on a scale of whole numbers: LOW,HIGH.")] = None
    pair: Annotated[str | None, typer.Option(help="Two of the shown columns to compare: A,B.")] = None
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="ANSWER,…", help="Answers in the annotators' own words, with some to choose from."
        ),
    ] = None
    rubric: Annotated[Path | None, typer.Option(help="File that says how to judge (Markdown).")] = None
    adjudicators: Annotated[
        str | None,
        typer.Option(metavar="NAME,…", help="Who decides disagreements.", show_default="every annotator"),
    ] = None
    overlap: Annotated[float, typer.Option(help="Share of the items that several people label.")] = 0.0
    copies: Annotated[int, typer.Option(help="How many people label each of those.")] = 2
    pseudonyms: Annotated[
        bool, typer.Option("--pseudonyms", help="Keep names out of the journal, in a private file.")
    ] = False
    until: Annotated[
        float | None,
        typer.Option(
            help="Stop when the half-width of the anytime-valid interval is as small as this; without "
            "--budget a pilot is drawn."
        ),
    ] = None
    journal: Annotated[
        str, typer.Option(help="SQLite's journal: auto, wal, or rollback for a network disk.")
    ] = "auto"
    json: o.Json = False


@takes(InitOptions, without=("assume",), order=o.DRAWING_ORDER)
def init(asked: InitOptions) -> None:
    """Draw the units to label, and make the folder in which people label them.

    The folder holds the sample, the question and a database of all that annotators ever say. Then
    `stratal label` shows them the items, `stratal status` says how far they are, and `stratal estimate`
    takes the labels.
    """
    from stratal.designs.handover import empty_folder
    from stratal.report import study_page
    from stratal.study.opening import create_study

    empty_folder(asked.study)
    kinds = {name: getattr(asked, name) for name in KINDS}
    question = made_question(asked.question, kinds, "" if asked.rubric is None else text_of(asked.rubric))
    sample = asked.with_outcome(_first_round(asked))
    with create_study(
        asked.study,
        sample,
        question,
        annotators=o.listed(asked.annotators),
        adjudicators=o.listed(asked.adjudicators),
        overlap=asked.overlap,
        copies=asked.copies,
        pseudonyms=asked.pseudonyms,
        half_width=asked.until,
        reading=asdict(o.part(o.Reading, asked)) | {"file": str(asked.file.resolve())},
        journal=asked.journal,
    ) as made:
        found = {"study": str(asked.study), **described(made)}
    if asked.json:
        print_json(found)
        return
    print_page(study_page(found, compared=asked.predicted is not None))
    print_next("label", asked.study)


def _first_round(asked: InitOptions) -> Sample:
    """Draw the items to begin with: of `--until` without a budget a pilot, from which `extend` goes on."""
    if asked.until is None or asked.budget is not None or asked.half_width is not None:
        return asked.sample()
    return replace(asked, half_width=asked.until).sample(pilot=True)


def described(study: Study) -> dict[str, Any]:
    """Return what is said of a study that was made.

    Examples
    --------
    >>> described.__name__
    'described'
    """
    sample = study.sample()
    return {
        "n": sample.size,
        "population_size": sample.population_size,
        "design": sample.design.kind,
        "seed": sample.seed,
        "question": study.question.to_dict(),
        "annotators": list(study.annotators),
        "answers": study.progress(study.annotators[0]).total,
        "shown": list(sample.shown),
    }


def made_question(text: str, kinds: dict[str, str | None], rubric: str = "") -> Question:
    """Return the question that a command's options ask for: of one kind.

    Examples
    --------
    >>> made_question("How good?", {"choices": None, "scale": "1,5", "pair": None, "classes": None}).kind
    'scale'
    """
    from stratal.study.question import Question

    given = [kind for kind in KINDS if kinds[kind] is not None]
    if len(given) != 1:
        raise InputError(
            "a question needs one kind of answers",
            given=", ".join(f"--{kind}" for kind in given) or "none",
            allowed="one of --choices, --scale, --pair, --classes",
        )
    names = o.listed(kinds[given[0]])
    if given[0] == "choices":
        return Question.of_choices(text, names, rubric=rubric)
    if given[0] == "classes":
        return Question.of_classes(text, names, rubric=rubric)
    if len(names) != 2:
        raise InputError(
            f"--{given[0]} takes two entries",
            given=repr(kinds[given[0]]),
            allowed="two, with a comma between them, such as --scale 1,5 or --pair answer_a,answer_b",
        )
    if given[0] == "pair":
        return Question.of_pair(text, *names, rubric=rubric)
    return Question.of_scale(text, *o.whole_numbers("--scale", ",".join(names)), rubric=rubric)


def text_of(path: Path, most: int = 2**20) -> str:
    """Return what stands in a text file of at most so many characters.

    Examples
    --------
    >>> text_of(Path("nowhere.md"))
    Traceback (most recent call last):
    stratal.errors.InputError: nowhere.md: cannot be read...
    """
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(most + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: cannot be read ({error})", action="Give the path of a text file in UTF-8."
        ) from None
    if len(text) > most:
        raise InputError(f"{path}: is too large", allowed=f"up to {most:,} characters")
    return text
