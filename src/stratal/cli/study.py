"""Commands on a study: made of a draw, its page, progress, people, rounds, soundness, exchange with tools."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Struct, structs

from stratal.cli.command import Needs, argument, command, option, part, words
from stratal.cli.draw import DRAW_NEEDS, PlanFile, SharedDrawOptions
from stratal.cli.estimate import STATUSES, require_present
from stratal.cli.options import ConfidenceLevel, Number, Output, Reading, Study, Text, Whole
from stratal.cli.output import Result, print_json, print_text, progress
from stratal.cli.parsing import (
    finite_number,
    joined,
    listed,
    mapping,
    place,
    text_of,
    whole_number,
    whole_numbers,
)
from stratal.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    import stratal.study.study as studies
    from stratal.study.question import Form, Question
    from stratal.study.web.server import Place


OPEN = """Warning: other computers can reach this page, and what they send is not encrypted: whoever listens
on the network can read labels and links. Better give a port alone, put a proxy with TLS before the page
(caddy reverse-proxy --from labels.example.org --to 127.0.0.1:{port}), and say where it is
(--address https://labels.example.org)."""

UNSOUND = 3
"""Exit status for a study or a copy with problems; 1 is a reader that left, 2 a mistake."""


HTML = "html"
PAGE = "page"
_PAGES = (".html", ".htm")
_COMES_BACK = {"label-studio": "export.json", "argilla": "records.json", "prodigy": "answers.jsonl"}
"""What the file that a tool gives back may be called."""

_NAMELESS = ("csv", "excel", "jsonl")
"""Files that do not say who answered."""


KINDS = ("choices", "scale", "pair", "classes")


def _draws(given: Mapping[str, Any]) -> bool:
    return given["budget"] is not None or given["half_width"] is not None


_OF_A_DRAW = " ".join(
    {*SharedDrawOptions.__struct_fields__} - {"file", "budget", "half_width", "confidence_level"}
)
"""Options that mean something where predictions are given, from which the sample is drawn at once."""


class NewOptions(SharedDrawOptions, frozen=True, kw_only=True):
    """The options of `study new`: what to ask, and whom; of predictions also those of `draw`.

    Parameters
    ----------
    output : DIR
        The study's folder; must be empty or not exist.
    question : TEXT or NAME=TEXT
        What annotators are asked about each item; once for each question, or a TOML file with all of them.
    annotators : NAME,…
        Who labels.
    choices : ANSWER,…
        One of four kinds of answers is required: choices, such as Pass,Fail or Good=1,Partly=0.5,Bad=0;
        Unsure= counts as no answer.
    scale : LOW,HIGH
        Or a scale of whole numbers, 1,5 or with what its ends mean: 1=rude,5=polite.
    pair : A,B
        Or which of two shown columns is better.
    classes : ANSWER,…
        Or answers in the annotators' own words, with some to choose from.
    rubric : path
        File that says how to judge (Markdown).
    adjudicators : NAME,…
        Who decides disagreements.
    overlap : SHARE or SHARE,PEOPLE
        Share of the items that several people label, and how many people.
    pseudonyms : bool
        Keep names out of the journal, in a private file.
    until : float
        Stop when the half-width of the anytime-valid interval is as small as this.
    submit_on_choice : bool
        Submit as soon as every question has its choice; annotators may choose otherwise.

    Examples
    --------
    >>> NewOptions(file=Path("audit"), output=Path("s"), question=["Good?"], annotators="ada").pseudonyms
    False
    """

    file: Annotated[
        Path,
        argument(
            "DRAWN", "The folder that `draw` wrote, a sample, or predictions with --budget.", parser=place
        ),
    ]
    output: Path
    question: list[str]
    annotators: str
    choices: Text = None
    scale: Text = None
    pair: Text = None
    classes: Text = None
    rubric: Path | None = None
    adjudicators: Annotated[Text, option(shown="every annotator")] = None
    overlap: Text = None
    pseudonyms: bool = False
    until: Annotated[Number, option(shown="the half-width that was drawn for")] = None
    submit_on_choice: bool = False


@command(
    NewOptions,
    name="study new",
    without="assume",
    needs={_OF_A_DRAW: Needs("with --budget or --half-width, of predictions", _draws), **DRAW_NEEDS},
)
def new(requested: NewOptions) -> Result:
    """Make the folder in which people label what was drawn, or is drawn now from predictions.

    The folder holds the sample, the question and a database of all that annotators ever say. Then
    `stratal study label` shows them the items, `stratal study status` says how far they are, and
    `stratal estimate` takes the labels.
    """
    from stratal.designs.handover import PLAN_NAME, SAMPLE_NAME, empty_folder
    from stratal.designs.sample import Sample
    from stratal.report.pages import study_page
    from stratal.study.database import DATABASE
    from stratal.study.opening import create_study

    for folder in (requested.file, requested.output):
        if (folder / DATABASE).is_file():
            action = f"Go on with it: stratal study label {quote(str(folder))}."
            raise InputError(f"{folder}: is a study already", action=action)
    empty_folder(requested.output)
    kinds = {name: getattr(requested, name) for name in KINDS}
    form = made_form(requested.question, kinds, "" if requested.rubric is None else text_of(requested.rubric))
    options: SharedDrawOptions | None = requested
    if requested.budget is None and requested.half_width is None:
        require_present(requested.file)
        drawn = requested.file / SAMPLE_NAME if requested.file.is_dir() else requested.file
        sample, plan = Sample.read(drawn), PlanFile.read(drawn.parent / PLAN_NAME)
        options = None if plan is None else plan.options
    else:
        if (requested.file / SAMPLE_NAME).is_file():
            action = "Leave out --budget and --half-width."
            raise InputError(f"{requested.file}: is drawn already", action=action)
        sample = requested.declared(requested.sample(pilot=requested.half_width is not None))
    reading = None if options is None else part(Reading, options)
    places = {} if reading is None else {"file": str(reading.file.resolve()), "history": reading.history}
    if reading is not None and reading.history is not None:
        places["history"] = str(Path(reading.history).resolve())
    wanted = requested.until or (None if options is None else options.half_width)
    share, _, people = (requested.overlap or "0").partition(",")
    try:
        overlap, copies = finite_number(share), whole_number(people or "2")
    except ValueError:
        raise InputError(
            "--overlap takes a share",
            given=repr(requested.overlap),
            allowed="such as 0.2, or 0.2,3 for three people",
        ) from None
    with create_study(
        requested.output,
        sample,
        form,
        annotators=listed(requested.annotators),
        adjudicators=listed(requested.adjudicators),
        overlap=overlap,
        copies=copies,
        pseudonyms=requested.pseudonyms,
        half_width=min(wanted) if isinstance(wanted, tuple) else wanted,
        reading=None if reading is None else structs.asdict(reading) | places,
    ) as made:
        if requested.submit_on_choice:
            made.keep("page_submit_on_choice", "yes")
        found = {
            "study": str(requested.output),
            "n": sample.size,
            "population_size": sample.population_size,
            "design": sample.design.kind,
            "seed": sample.seed,
            "question": made.question.to_dict(),
            "questions": [entry.to_dict() for entry in made.form.questions],
            "annotators": list(made.annotators),
            "answers": made.progress(made.annotators[0]).total,
            "shown": list(sample.shown),
            "pictures": pictures(sample.shown, made.media),
        }
    page = study_page(found, compared=sample.predicted is not None)
    return Result(found, page, ("study", "label", requested.output))


def pictures(shown: Mapping[str, Any], media: Path) -> dict[str, str]:
    """Return what has to be done for columns that name pictures or sounds, so that they are seen.

    Examples
    --------
    >>> pictures({"photo": ["https://example.org/cat.png"]}, Path("audit/media"))
    {'photo': 'serve them with --allow-images https'}
    """
    endings = (
        ".png",
        ".jpg",
        ".jpeg",
        ".gif",
        ".webp",
        ".avif",
        ".bmp",
        ".svg",
        ".mp3",
        ".wav",
        ".ogg",
        ".flac",
    )
    found = {}
    for name, values in shown.items():
        texts = [value.partition("?")[0].lower() for value in values if isinstance(value, str)]
        files = [text for text in texts if text.endswith(endings) and " " not in text]
        if files and all(text.startswith("https://") for text in files):
            found[name] = "serve them with --allow-images https"
        elif len(files) > len(texts) / 2:
            found[name] = f"put the files into {media}, or name their folder with --media"
    return found


def made_form(questions: list[str], kinds: dict[str, str | None], rubric: str) -> Form:
    """Return the questions that a command's options ask, which share one kind of answers, or those of a file.

    Examples
    --------
    >>> kinds = {"choices": "Pass,Fail", "scale": None, "pair": None, "classes": None}
    >>> [entry.name for entry in made_form(["right=Is it right?", "kind=Is it kind?"], kinds, "").questions]
    ['right', 'kind']
    """
    from stratal.study.question import Form

    files = [text for text in questions if text.endswith(".toml")]
    if files:
        given = [f"--{kind}" for kind in KINDS if kinds[kind] is not None] + questions[1:]
        if given:
            raise InputError(
                "a file of questions has all of them, and their answers",
                given=", ".join(given),
                action="Give the file alone, or the options.",
            )
        return Form.from_toml(text_of(Path(files[0])), rubric)
    if len(questions) == 1:
        return Form.of(parse_question(questions[0], kinds, rubric))
    named = [text.partition("=") for text in questions]
    if not all(mark and name.strip().isidentifier() for name, mark, _ in named):
        raise InputError(
            "each of several questions needs a name",
            given=", ".join(map(repr, questions)),
            allowed="--question 'correct=Is it correct?' --question 'polite=Is it polite?'",
        )
    made = (replace(parse_question(text, kinds, rubric), name=name.strip()) for name, _, text in named)
    return Form.of(made)


def parse_question(text: str, kinds: dict[str, str | None], rubric: str = "") -> Question:
    """Return the question that a command's options ask for: of one kind.

    Examples
    --------
    >>> parse_question("How good?", {"choices": None, "scale": "1,5", "pair": None, "classes": None}).kind
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
    low, high = (name.partition("=") for name in names)
    numbers = whole_numbers("--scale", f"{low[0]},{high[0]}")
    ends = (low[2].strip(), high[2].strip()) if low[1] or high[1] else None
    return Question.of_scale(text, *numbers, rubric=rubric, ends=ends)


@command(name="study label")
def label(
    study: Study,
    port: Annotated[
        str,
        option(
            "Port to listen at; 0 takes a free one. HOST:PORT listens at another address of this computer, "
            "which lets others in.",
            "PORT",
        ),
    ] = "8000",
    address: Annotated[
        Text,
        option(
            "Where annotators reach the page, if that is another: https://labels.example.org of a proxy "
            "with TLS, http://192.168.1.5:8000 in a network.",
            "URL",
        ),
    ] = None,
    format: Annotated[  # noqa: A002
        Text,
        option(
            "How columns are shown: text, markdown, html, json, chat, image or audio; remembered.",
            "COL=FORMAT,…",
            shown="text; images, audio, chats and JSON where there are such",
        ),
    ] = None,
    media: Annotated[
        Path | None,
        option("Folder of images and audio; kept in the study.", shown="media in the study"),
    ] = None,
    allow_images: Annotated[
        Text,
        option(
            "Show pictures at https addresses too, whose servers then see who looks: https; or study for "
            "those of the folder alone; remembered.",
            "https",
            shown="study",
        ),
    ] = None,
    new_links: Annotated[bool, option("Make all earlier links invalid.")] = False,
    output: Annotated[Path | None, option("Also write the links as a CSV, to send them.", "FILE")] = None,
    json: bool = False,
) -> None:
    """Serve the page on which annotators label, until Ctrl-C; prints one secret link for each of them.

    Whoever has a link labels as that annotator. Links stay the same when the page is served again, unless
    --new-links is given. Every answer is on disk before the next item is shown; while the server cannot be
    reached answers wait in the browser. A link of its own shows the figures of `study status`, live.
    """
    try:
        from stratal.study.web.content import keep_look
        from stratal.study.web.server import Place, serve
    except ImportError as error:
        raise MissingExtraError(error.name or "starlette", extra="web") from None
    from stratal.study import open_study

    host, _, number = port.rpartition(":")
    if not number.isdecimal():
        raise InputError("--port takes a number", given=repr(port), allowed="PORT or HOST:PORT")
    served = Place(host=host.strip("[]") or "127.0.0.1", port=int(number), address=address)
    with open_study(study) as opened:
        keep_look(opened, _formats(format), media, allow_images)
        names = opened.names

        def ready(reached: str, links: dict[str, str], owner: str) -> None:
            named = {f"{who} ({names[who]})" if who in names else who: link for who, link in links.items()}
            if output is not None:
                _write_links(output, {names.get(who, who): link for who, link in links.items()})
            if json:
                print_json({"study": str(study), "address": reached, "owner": owner, "links": named})
            else:
                _print_links(study, served, named, owner)
            sys.stdout.flush()

        serve(opened, served, fresh=new_links, ready=ready)


def _formats(text: str | None) -> dict[str, str]:
    """Return column → format of `COL=FORMAT,…`."""
    found = {}
    for entry in listed(text):
        column, mark, kind = entry.rpartition("=")
        if not mark:
            raise InputError("--format cannot be read", given=repr(entry), allowed="COL=FORMAT,…")
        found[column] = kind
    return found


def _write_links(path: Path, links: dict[str, str]) -> None:
    """Write annotator and link as a CSV that its owner alone can read."""
    import csv

    try:
        with path.open("x", newline="", encoding="utf-8") as file:
            path.chmod(0o600)
            csv.writer(file).writerows([("annotator", "link"), *links.items()])
    except FileExistsError:
        raise InputError(f"{path}: already exists", action="Give the name of a new file.") from None


def _print_links(study: Path, place: Place, links: dict[str, str], owner: str) -> None:
    width = max(map(len, links), default=0)
    if place.is_open:
        print_text(" ".join(OPEN.split()).format(port=place.port), "")
    print_text(f"{study}: one link for each annotator. Whoever has a link labels under that name.", "")
    print_text(*(f"  {name:<{width}}  {link}" for name, link in links.items()))
    print_text("", f"To watch, for the person who runs the study: {owner}")
    print_text("", "Ctrl-C stops the page; nothing is lost.")


@command(name="study status")
def status(
    study: Study,
    confidence_level: ConfidenceLevel = 0.95,
    require: Annotated[
        Text, option("What that interval must satisfy: value>=.9; exit status 0, 4 or 5.", "'value>=X'")
    ] = None,
) -> Result:
    """Show a study's progress, agreement, times, nonresponse and interim estimate.

    The anytime-valid interval holds at every moment at once: one may look at it again and again and stop when
    it is narrow enough, or when it satisfies what is required (PASS, 0), or cannot (FAIL, 4; undecided: 5).
    """
    from stratal.designs import Disagreements
    from stratal.estimation.requirement import UNDECIDED, status_of
    from stratal.report.pages import status_page
    from stratal.study.opening import open_study
    from stratal.study.status import study_status

    with progress("counting"), open_study(study, reading=True) as opened:
        wanted = require.split(";") if require else ()
        found = study_status(opened, confidence_level=confidence_level, require=wanted)
        selecting = isinstance(opened.sample().design, Disagreements)
    stop, items = found["stop"], found["nonresponse"]
    if stop["enough"]:
        then = ["estimate"]
    elif items["open"] or not items["labelled"]:
        then = ["study", "label"]
    else:
        then = ["study", "extend"] if stop["half_width"] or selecting else ["estimate"]
    decided = status_of(found["requirements"]) if "requirements" in found else UNDECIDED
    return Result(found, status_page, (*then, study), status=STATUSES[decided] if require else 0)


@command(name="study extend")
def extend(
    study: Study,
    additional: Annotated[
        Whole, option("Units to add.", shown="as many as the study's --until needs")
    ] = None,
    until: Annotated[
        Number,
        option("Stop when the anytime-valid interval's half-width is as small as this; 0: never."),
    ] = None,
    without_labels: Annotated[bool, option("Only a larger budget: look at no label.")] = False,
    population: Annotated[
        Path | None, option("Where the predictions are now.", "FILE", shown="where they were")
    ] = None,
) -> Result:
    """Draw more items for a study, and give them to its annotators, whether or not a server is running.

    Every item that was drawn stays drawn. The labels so far say where new ones help most. With --until the
    study stops giving out items once the interval is narrow enough; a study that was made so is extended by
    as many items as the labels say are needed.
    """
    from stratal.study.opening import open_study
    from stratal.study.rounds import grow, selection_so_far, units_needed
    from stratal.study.study import until as stop_at

    with open_study(study) as opened:
        before = opened.sample().size
        selection = None
        wanted = units_needed(opened) if additional is None and until is None else additional
        if wanted is not None and (wanted or additional is not None):
            reading = read_again(opened, population)
            with progress("reading and drawing"):
                by_labels = False if without_labels else None
                units = reading.population()
                selection = selection_so_far(opened, units)
                grow(opened, wanted, population=units, by_labels=by_labels)
        enough = opened.setting("enough") == "yes" if until is None else stop_at(opened, until or None)
        larger = opened.sample()
    found = {
        "study": str(study),
        "n": larger.size,
        "new": larger.size - before,
        "round": int(larger.round.max()),
        "enough": enough,
    }
    return Result(
        found if selection is None else found | {"selection": selection.to_dict()},
        None if selection is None else selection._page(),
        f"Round {found['round']}: {found['new']:,} more items, {found['n']:,} in all.",
        "The interval is as narrow as was asked for: labelling may stop." if enough else None,
        ("study", "status", study),
    )


def read_again(study: studies.Study, file: Path | None) -> Reading:
    """Return how the predictions of a study were read, perhaps from where they are now."""
    import json

    from stratal.population.declaration import fitting

    known: dict[str, Any] = json.loads(study.setting("reading") or "{}")
    if not known and file is None:
        raise InputError(
            "this study does not know its file of predictions", action="Name it with --population."
        )
    sample = study.sample()
    own = {"id": sample.id_name, "proxy": joined(*sample.proxy_names), "predicted": sample.predicted}
    known = {**own, **known}
    # What the sample holds is compared, and so must be read; a pattern may name it already.
    for name, held in (("groups", sample.groups), ("show", sample.shown)):
        given = listed(known.get(name))
        lacking = [column for column in held if column not in fitting(given, tuple(held))]
        known[name] = joined(*given, *lacking) or None
    reading = Reading(**{**known, "file": place(known.get("file", "."))}).with_columns_of(sample.estimand)
    return reading if file is None else structs.replace(reading, file=file)


@command(name="study team")
def team(
    study: Study,
    add: Annotated[Text, option("Let these people label too.", "NAME,…")] = None,
    set_aside: Annotated[Text, option("Leave this annotator's labels out; none is deleted.")] = None,
    take_back: Annotated[Text, option("Take labels that were set aside back in.")] = None,
    reason: Annotated[str, option("Why, for the journal.")] = "",
    rubric: Annotated[Path | None, option("File with a new version of how to judge (Markdown).")] = None,
) -> Result:
    """Show who labels a study; add people, set an annotator's labels aside or take them back."""
    from stratal.study.creating import checked_name, known, refuse_double
    from stratal.study.opening import open_study

    text, names = None if rubric is None else text_of(rubric), listed(add)
    with open_study(study) as opened:
        # All is checked before anything is written.
        taken = {*opened.annotators, *opened.adjudicators, *opened.names.values()}
        for name in names:
            refuse_double(checked_name(name), name in taken or names.count(name) > 1)
        with opened.database.read() as rows:
            for name in filter(None, (set_aside, take_back)):
                known(rows, name)
        for name in names:
            opened.add_annotator(name)
        if set_aside is not None:
            opened.set_aside(set_aside, reason=reason)
        if take_back is not None:
            opened.take_back(take_back, reason=reason)
        if text is not None:
            opened.set_rubric(text)
        people, aside = list(opened.annotators), opened.aside()
        found = {
            "study": str(study),
            "annotators": people,
            "adjudicators": list(opened.adjudicators),
            "set_aside": aside,
            "rubric_version": opened.question.rubric_version,
        }
    return Result(found, [f"{name} (set aside)" if name in aside else name for name in people])


@command(name="study check")
def check(
    study: Study,
    head: Annotated[
        Text, option("Hash that an earlier check printed; it must still be in the journal.")
    ] = None,
) -> Result:
    """Check a study: the journal's chain of hashes, its ids against the sample, its counts.

    Exit status 3 if anything is wrong. Write the last hash down elsewhere: it proves later that nothing
    before it was changed.
    """
    from stratal.study.opening import check_study, open_study

    with progress("checking"), open_study(study, reading=True) as opened:
        return _checked(study, check_study(opened, known_head=head))


@command(name="study backup")
def backup(study: Study, output: Output) -> Result:
    """Copy a study while people go on labelling, and check the copy. The copy is a study itself.

    Exit status 3 if anything is wrong with it. The annotators' links are not copied: `stratal study label`
    makes new ones for the copy.
    """
    from stratal.study.opening import backup_study, open_study

    with progress("copying"), open_study(study) as opened:
        return _checked(output, backup_study(opened, output))


def _checked(study: Path, found: Any) -> Result:
    from stratal.report.pages import check_page

    described = {"study": str(study), "sound": found.sound, **found.to_dict()}
    return Result(described, check_page, status=0 if found.sound else UNSOUND)


class ExportOptions(Struct, frozen=True, kw_only=True):
    """The options of `study export`.

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

    Examples
    --------
    >>> ExportOptions(study=Path("audit"), output=Path("items.csv"), to="csv").annotator is None
    True
    """

    study: Annotated[Path, argument("STUDY", "The folder that `study new` made.")]
    output: Path
    to: Annotated[Text, option(shown="what the file's name says, or html")] = None
    annotator: Annotated[Text, option(shown="whoever uses the tool")] = None
    items: Annotated[Whole, option(shown="all that are free")] = None


@command(ExportOptions, name="study export")
def export(requested: ExportOptions) -> Result:
    """Write the items that still need an answer for another tool; `study import` takes the answers back.

    A study's items that are written for one annotator are kept for that one. Nothing of proxy, prediction or
    stratum goes out.
    """
    from stratal.labels.exchange import TOOLS, named_for, write_tasks
    from stratal.study.exchange import tool_question
    from stratal.study.opening import open_study

    require_present(requested.study)
    to = requested.to or named_for(requested.output) or HTML
    if to == HTML:
        return _page(requested)
    if to not in TOOLS:
        raise InputError("--to cannot be read", given=repr(to), allowed=", ".join((HTML, *TOOLS)))
    tool = TOOLS[to]
    if requested.output.exists() or requested.output.is_symlink():  # before items are kept for anybody
        raise InputError(
            f"{requested.output}: already exists", action="Give the name of a new file or folder."
        )
    with open_study(requested.study) as opened:
        tasks = opened.tasks(annotator=requested.annotator, items=requested.items)
        advice = write_tasks(tool, tasks, tool_question(opened.question), requested.output)
    found = {
        "study": str(requested.study),
        "to": tool.name,
        "file": str(requested.output),
        "items": len(tasks),
    }
    comes_back = requested.output / "annotation_output" if tool.name == "potato" else requested.output
    back = _COMES_BACK.get(tool.name, str(comes_back))
    if requested.annotator is not None:
        found["annotator"] = requested.annotator
    named = ["--annotator", requested.annotator] if requested.annotator else []
    who, said = whose(requested.study) if not named and tool.name in _NAMELESS else (named, [])
    then = [*said, ("study", "import", requested.study, back, *who, "--dry-run")]
    return Result(found, f"{requested.output}: {len(tasks):,} items for {tool.title}.", advice, then)


def whose(study: Path) -> tuple[list[str], list[str]]:
    """Return the option that says who answered in a file without names, and a line about who that may be."""
    from stratal.study.opening import open_study

    with open_study(study, reading=True) as opened:
        people = opened.annotators
    if len(people) < 2:
        return [], []
    return ["--annotator", people[0]], [f"Name whoever filled it in: --annotator {', '.join(people)}."]


def _page(requested: ExportOptions) -> Result:
    """Write a page in one file, on which one annotator labels without a server or a network."""
    try:
        from stratal.study.web.notebook import downloaded_as, write_page
    except ImportError as error:
        raise MissingExtraError(error.name or "starlette", extra="web") from None
    from stratal.study.opening import open_study

    if requested.annotator is None:
        raise InputError(
            "a page is for one annotator",
            action="Say whom: --annotator NAME; or which other tool the items are for: --to TOOL.",
        )
    if requested.output.suffix.lower() not in _PAGES:
        raise InputError(
            f"{requested.output}: a page needs another name",
            allowed=f"a file {' or '.join(_PAGES)}",
            action="For another tool say which: --to TOOL.",
        )
    with open_study(requested.study) as opened:
        size = write_page(opened, requested.output, requested.annotator, items=requested.items)
    return Result(
        {
            "study": str(requested.study),
            "annotator": requested.annotator,
            "file": str(requested.output),
            "bytes": size,
        },
        f"{requested.output}: a page for {requested.annotator}, {size:,} bytes. "
        "It needs a browser and nothing else.",
        ("study", "import", requested.study, downloaded_as(requested.annotator)),
    )


class ImportOptions(Struct, frozen=True, kw_only=True):
    """The options of `study import`.

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


@command(ImportOptions, name="study import")
def take_in(requested: ImportOptions) -> Result:
    """Import the answers that annotators gave in another tool: all of them, or none.

    With --dry-run it is shown first: what matches, what does not, what changes, what was skipped. The same
    file may be imported again, and so may a later one with more labels: nothing is saved twice, and answers
    that were changed in the study since are kept.
    """
    from stratal.labels.exchange import read_answers
    from stratal.report.pages import import_page
    from stratal.study.exchange import LARGEST
    from stratal.study.opening import open_study

    found: dict[str, Any] = {"study": str(requested.study), "file": str(requested.file)}
    if requested.dry_run:
        then = (
            "study",
            "import",
            requested.study,
            requested.file,
            *words(structs.replace(requested, dry_run=False)),
        )
    else:
        then = ("study", "status", requested.study)
    if requested.from_ == PAGE or (requested.from_ is None and _is_of_page(requested.file)):
        for name in ("annotator", "map"):
            if getattr(requested, name) is not None:
                raise InputError("a page says itself whose labels it holds", action=f"Leave out --{name}.")
        text = text_of(requested.file, LARGEST)
        with open_study(requested.study) as opened:
            found |= opened.take_in(text, source=str(requested.file), dry_run=requested.dry_run)
        saved, done = found["saved"], "would be saved" if requested.dry_run else "saved"
        actions = "1 action" if saved == 1 else f"{saved:,} actions"
        line = f"{requested.file}: {actions} {done}, {found['repeated']:,} had been saved before."
        return Result(found | {"applied": not requested.dry_run}, line, then)
    with open_study(requested.study) as opened:
        answers = read_answers(requested.file, requested.from_, requested.id or opened.sample().id_name)
        answers = answers.mapped(mapping("--map", requested.map))
        taken = opened.take_in_answers(
            answers, annotator=_people(requested.annotator), dry_run=requested.dry_run
        )
    return Result(found | taken.to_dict(), import_page, then)


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
