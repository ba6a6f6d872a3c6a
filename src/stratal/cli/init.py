"""`stratal init`: a folder in which annotators label what was drawn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import structs

from stratal.cli.command import command, option, part
from stratal.cli.draw import DRAW_NEEDS, SharedDrawOptions
from stratal.cli.options import Number, Reading, Text
from stratal.cli.output import Result
from stratal.cli.parsing import listed, text_of, whole_numbers
from stratal.errors import InputError

if TYPE_CHECKING:
    from stratal.designs.sample import Sample
    from stratal.study.question import Question
    from stratal.study.study import Study

KINDS = ("choices", "scale", "pair", "classes")


class InitOptions(SharedDrawOptions, frozen=True, kw_only=True):
    """The options of `init`: how to draw, what to ask, and whom.

    Parameters
    ----------
    study : DIR
        The study's folder; must be empty or not exist.
    question : str
        What annotators are asked about each item.
    annotators : NAME,…
        Who labels.
    choices : ANSWER,…
        Answers to choose from: Pass,Fail or Good=1,Partly=0.5,Bad=0.
    scale : str
        Answers on a scale of whole numbers: LOW,HIGH.
    pair : str
        Two of the shown columns to compare: A,B.
    classes : ANSWER,…
        Answers in the annotators' own words, with some to choose from.
    rubric : path
        File that says how to judge (Markdown).
    adjudicators : NAME,…
        Who decides disagreements.
    overlap : float
        Share of the items that several people label.
    copies : int
        How many people label each of those.
    pseudonyms : bool
        Keep names out of the journal, in a private file.
    until : float
        Stop when the half-width of the anytime-valid interval is as small as this; without --budget a pilot
        is drawn.
    journal : str
        SQLite's journal: auto, wal, or rollback for a network disk.

    Examples
    --------
    >>> InitOptions(file=Path("p.csv"), study=Path("s"), question="Good?", annotators="ada").copies
    2
    """

    study: Path
    question: str
    annotators: str
    choices: Text = None
    scale: Text = None
    pair: Text = None
    classes: Text = None
    rubric: Path | None = None
    adjudicators: Annotated[Text, option(shown="every annotator")] = None
    overlap: float = 0.0
    copies: Annotated[int, option(needs="with --overlap (the share that several label)")] = 2
    pseudonyms: bool = False
    until: Number = None
    journal: str = "auto"


@command(InitOptions, without="assume", needs=DRAW_NEEDS)
def init(asked: InitOptions) -> Result:
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
        annotators=listed(asked.annotators),
        adjudicators=listed(asked.adjudicators),
        overlap=asked.overlap,
        copies=asked.copies,
        pseudonyms=asked.pseudonyms,
        half_width=asked.until,
        reading=structs.asdict(part(Reading, asked)) | {"file": str(asked.file.resolve())},
        journal=asked.journal,
    ) as made:
        found = {"study": str(asked.study), **described(made)}
    return Result(found, study_page(found, compared=asked.predicted is not None), ("label", asked.study))


def _first_round(asked: InitOptions) -> Sample:
    """Draw the items to begin with: of `--until` without a budget a pilot, from which `extend` goes on."""
    if asked.until is None or asked.budget is not None or asked.half_width is not None:
        return asked.sample()
    return structs.replace(asked, half_width=asked.until).sample(pilot=True)


def described(study: Study) -> dict[str, Any]:
    """Return what is said of a study that was made."""
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
    names = listed(kinds[given[0]])
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
    return Question.of_scale(text, *whole_numbers("--scale", ",".join(names)), rubric=rubric)
