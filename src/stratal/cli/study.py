"""The commands `stratal study`: creation, labelling, status, annotators, rounds, integrity and exchange."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import click
from msgspec import Struct, structs

import stratal
from stratal.cli.command import Option, argument, command, command_words, options_of, selected_fields
from stratal.cli.conditions import ValueCondition
from stratal.cli.draw_options import DRAW_NEEDS, SharedDrawOptions
from stratal.cli.estimate import STATUSES
from stratal.cli.options import ConfidenceLevel, Number, Output, Reading, Text, Whole
from stratal.cli.output import Result, print_json, print_text, show_progress
from stratal.cli.parsing import (
    parse_finite_number,
    parse_mapping,
    parse_pairs,
    parse_path,
    parse_whole_numbers,
    read_text_file,
)
from stratal.cli.plan_file import PlanFile
from stratal.cli.reading_again import connection_words, read_population_again, stored_reading_options
from stratal.errors import InputError, MissingExtraError, no_effect_error
from stratal.names import split_names
from stratal.protocols import JsonDict, JsonMapping
from stratal.report.verdicts import UNDECIDED

if TYPE_CHECKING:
    from stratal.population import Population
    from stratal.study import Form, Study, StudyQuestion
    from stratal.study.opening import Check


OPEN_PAGE_WARNING = """\
Warning: other computers can reach this page, and the connection is not encrypted. Anyone who listens on the
network can read labels and links. It is safer to give only a port, put a proxy with TLS in front of the page
(caddy reverse-proxy --from labels.example.org --to 127.0.0.1:{port}), and give its address (--address
https://labels.example.org)."""

# Exit status for a study or a copy with problems. 1 means a closed pipe, and 2 an error of the user.
PROBLEMS_STATUS = 3

# Suffixes of files that the page shows as pictures or plays as audio.
_MEDIA = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".bmp", ".svg", ".mp3", ".wav", ".ogg", ".flac")

ANSWER_KINDS = ("choices", "scale", "pair", "classes")


def _draws_sample(values: Mapping[str, object]) -> bool:
    """Return whether the command draws the sample, instead of reading one."""
    return values["budget"] is not None or values["half_width"] is not None


# Options that have an effect only if the command draws the sample from predictions. The budget and the
# half-width decide that it does, and the confidence level needs a half-width (`DRAW_NEEDS`).
_DRAW_FIELDS = " ".join(
    {*SharedDrawOptions.__struct_fields__} - {"file", "budget", "half_width", "confidence_level"}
)


class NewOptions(SharedDrawOptions, frozen=True, kw_only=True):
    """The options of `study new`: questions and annotators, and for predictions the options of `draw`.

    Parameters
    ----------
    output : DIR
        Folder of the study; it must be empty or must not exist yet.
    question : TEXT or NAME=TEXT
        Question about each item. Repeat the option for several questions; a TOML file may contain all of
        them.
    annotators : NAME,…
        Names of the annotators.
    choices : ANSWER,…
        Choices, such as Pass,Fail or Good=1,Partly=0.5,Bad=0; Unsure= counts as no answer. One of --choices,
        --scale, --pair and --classes is required.
    scale : LOW,HIGH
        Scale of whole numbers, such as 1,5; or with the meaning of its ends, such as 1=rude,5=polite.
    pair : A,B
        Two of the shown columns; annotators choose the better one.
    classes : ANSWER,…
        Answers as free text, with these suggestions.
    rubric : path
        File with the labelling instructions (Markdown).
    adjudicators : NAME,…, default every annotator
        Annotators who decide disagreements.
    overlap : SHARE or SHARE,PEOPLE
        Share of the items that several annotators label, and the number of annotators for each, such as
        0.2,3.
    pseudonyms : bool
        Store pseudonyms in the journal, and the names in a private file.
    until : float, default the half-width of the draw
        Stop when the half-width of the anytime-valid interval has reached this value.
    submit_on_choice : bool
        Submit an item as soon as all questions are answered; each annotator can change this setting.
    """

    file: Annotated[
        Path,
        argument(
            "DRAWN",
            "Folder that `draw` wrote, a sample, or predictions with --budget.",
            parser=parse_path,
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
    adjudicators: Text = None
    overlap: Text = None
    pseudonyms: bool = False
    until: Number = None
    submit_on_choice: bool = False


@command(
    NewOptions,
    name="study new",
    # `assume` has an effect only on plans: with --half-width, the commands that draw take a pilot.
    without="assume",
    needs={
        _DRAW_FIELDS: ValueCondition("with --budget or --half-width, of predictions", _draws_sample),
        **DRAW_NEEDS,
    },
)
def new(requested: NewOptions) -> Result:
    """Create a study from drawn items and a question.

    A study is a folder with the sample, the question and a database of answers. The items are those that
    `draw` wrote, or they are drawn from predictions when the study is created. `stratal study label` shows
    the items to annotators, `stratal study status` prints the progress, and `stratal estimate` reads the
    labels.
    """
    from stratal.designs.labelling_files import require_empty_folder
    from stratal.report.pages import study_page
    from stratal.study.database import DATABASE

    for folder in (requested.file, requested.output):
        if (folder / DATABASE).is_file():
            action = f"Continue the study: stratal study label {quote(str(folder))}."
            raise InputError(f"{folder} is already a study", action=action)
    require_empty_folder(requested.output)
    answer_options = selected_fields(requested, *ANSWER_KINDS)
    rubric = "" if requested.rubric is None else read_text_file(requested.rubric)
    form = form_of_options(requested.question, answer_options, rubric)
    sample, draw_options = _sample_and_options(requested)
    # The options that read the population; a later round reads it in the same way.
    reading = None
    if draw_options is not None:
        reading = structs.asdict(options_of(Reading, draw_options))
        # The study may be opened from another folder.
        reading |= {name: str(Path(reading[name]).resolve()) for name in ("file", "history") if reading[name]}
    half_width: float | tuple[float, ...] | None = requested.until
    if not half_width and draw_options is not None:
        half_width = draw_options.half_width
    # A study stops at the smallest of several targets.
    if isinstance(half_width, tuple):
        half_width = min(half_width)
    overlap, copies = _overlap(requested.overlap or "0")
    with stratal.study.create_study(
        requested.output,
        sample,
        form,
        annotators=split_names(requested.annotators),
        adjudicators=split_names(requested.adjudicators),
        overlap=overlap,
        copies=copies,
        pseudonyms=requested.pseudonyms,
        half_width=half_width,
        reading=reading,
    ) as study:
        if requested.submit_on_choice:
            study.save_settings(page_submit_on_choice="yes")
        described = {
            "study": str(requested.output),
            "n": sample.size,
            "population_size": sample.population_size,
            "design": sample.design.kind,
            "seed": sample.seed,
            "question": study.question.to_dict(),
            "questions": [entry.to_dict() for entry in study.form.questions],
            "annotators": list(study.annotators),
            "answers": study.progress(study.annotators[0]).total,
            "shown": list(sample.shown),
            "pictures": pictures(sample.shown, study.media),
        }
    page = study_page(described, has_answers=sample.question.answer is not None)
    return Result(described, page, ("study", "label", requested.output))


def _sample_and_options(requested: NewOptions) -> tuple[stratal.Sample, SharedDrawOptions | None]:
    """Return the sample of a study, which is drawn or read, and the options of its draw (None: unknown)."""
    from stratal.designs.labelling_files import SAMPLE_NAME
    from stratal.evaluation import require_present

    if _draws_sample(structs.asdict(requested)):
        if (requested.file / SAMPLE_NAME).is_file():
            action = "Leave out --budget and --half-width."
            raise InputError(f"{requested.file} is already a sample", action=action)
        sample, _ = requested.sample()
        return replace(sample, question=requested.with_declarations(sample.question)), requested
    require_present(requested.file)
    path = requested.file
    # A folder that `draw` wrote, instead of the file in it.
    if path.is_dir():
        path = path / SAMPLE_NAME
    sample = stratal.Sample.read(path)
    plan = PlanFile.next_to(path)
    return sample, None if plan is None else plan.options


def _overlap(text: str) -> tuple[float, int]:
    """Return the share of items that several annotators label, and the number of annotators."""
    share, _, copies_text = text.partition(",")
    try:
        return parse_finite_number(share), int(copies_text or "2")
    except ValueError:
        allowed = "such as 0.2, or 0.2,3 for three people"
        raise InputError("--overlap takes a share", given=repr(text), allowed=allowed) from None


def pictures(shown: JsonMapping, media: Path) -> dict[str, str]:
    """Return how to make pictures or audio available to annotators, by shown column with such files."""
    instructions = {}
    for name, values in shown.items():
        texts = [value.partition("?")[0].lower() for value in values if isinstance(value, str)]
        files = [text for text in texts if text.endswith(_MEDIA) and " " not in text]
        # The page shows pictures of other servers only if it was told to, because these see each request.
        if files and all(text.startswith("https://") for text in files):
            instructions[name] = "serve them with --allow-images https"
        # In the other items, the picture may be missing.
        elif len(files) > len(texts) / 2:
            instructions[name] = f"put the files in {media}, or name their folder with --media"
    return instructions


def form_of_options(questions: list[str], answer_options: dict[str, str | None], rubric: str) -> Form:
    """Return the form of the texts of --question (all with the same kind of answers) or of a TOML file.

    `answer_options` are the texts of --choices, --scale, --pair and --classes.
    """
    form = stratal.study.Form
    files = [text for text in questions if text.endswith(".toml")]
    if files:
        unused_options = [f"--{kind}" for kind in ANSWER_KINDS if answer_options[kind] is not None]
        unused_options += questions[1:]
        if unused_options:
            raise no_effect_error(unused_options[0], "without a question file")
        return form.from_toml(read_text_file(Path(files[0])), rubric)
    if len(questions) == 1:
        return form.of(parse_question(questions[0], answer_options, rubric))
    names_and_texts = [text.partition("=") for text in questions]
    if not all(equals_sign and name.strip().isidentifier() for name, equals_sign, _ in names_and_texts):
        allowed = "--question 'correct=Is it correct?' --question 'polite=Is it polite?'"
        texts = ", ".join(map(repr, questions))
        raise InputError(
            "if there are several questions, each must have a name", given=texts, allowed=allowed
        )
    return form.of(
        parse_question(text, answer_options, rubric, name=name.strip()) for name, _, text in names_and_texts
    )


def parse_question(
    text: str, answer_options: dict[str, str | None], rubric: str = "", **fields: Any
) -> StudyQuestion:
    """Return the question of a command's options, which must have exactly one kind of answers."""
    # The question as in a TOML file.
    table: JsonDict = {
        kind: split_names(value) for kind, value in answer_options.items() if value is not None
    }
    table |= fields
    if len(table.keys() & {*ANSWER_KINDS}) != 1:
        kinds_given = ", ".join(f"--{kind}" for kind in table if kind in ANSWER_KINDS) or "none"
        allowed = ", ".join(ANSWER_KINDS)
        raise InputError(
            "a question must have exactly one kind of answer", given=kinds_given, allowed=f"one of {allowed}"
        )
    if "scale" in table:
        numbers, equals_signs, ends = zip(*(entry.partition("=") for entry in table["scale"]), strict=True)
        table["scale"] = parse_whole_numbers("--scale", ",".join(numbers))
        if any(equals_signs):
            table |= {"ends": [end.strip() for end in ends]}
    return stratal.study.StudyQuestion.from_table({"text": text, **table}, rubric=rubric)


class StudyFolderOptions(Struct, frozen=True, kw_only=True):
    """Options of every command for studies."""

    study: Annotated[Path, argument("STUDY", "Folder of the study.")]


class LabelOptions(StudyFolderOptions, frozen=True, kw_only=True):
    """The options of `study label`: the address of the page, and how items are displayed.

    Parameters
    ----------
    port : PORT
        Port of the server; 0 chooses a free one. HOST:PORT also makes the page reachable from other
        computers.
    address : URL
        Address at which annotators reach the page, if it differs from the server's, such as
        https://labels.example.org behind a proxy with TLS.
    format : COL=FORMAT,…, default text; images, audio, chats and JSON are recognised
        Format of columns: text, markdown, html, json, chat, image or audio. It is stored in the study.
    media : path, default media in the study
        Folder of images and audio. Its name is stored in the study.
    allow_images : https, default study
        https also shows images from https addresses (their servers see each request); study shows only images
        in the folder. It is stored in the study.
    new_links : bool
        Create new links; earlier ones become invalid.
    output : FILE
        Also write the links to this CSV file.
    """

    port: str = "8000"
    address: Text = None
    format: Text = None
    media: Path | None = None
    allow_images: Text = None
    new_links: bool = False
    output: Path | None = None


@command(LabelOptions, name="study label")
def label(requested: LabelOptions) -> None:
    """Serve the labelling page until Ctrl-C.

    Prints a secret link for each annotator. Anyone who has a link can label as that annotator. Links remain
    valid when the page is served again, unless --new-links is given. Every answer is saved before the next
    item is shown; if the server cannot be reached, answers wait in the browser. Another link shows the
    figures of `study status`.
    """
    try:
        from stratal.study.web.content import save_display
        from stratal.study.web.server import PageAddress, serve
    except ImportError as error:
        raise MissingExtraError(error.name or "starlette", extra="web") from None

    host, _, number = requested.port.rpartition(":")
    if not number.isdecimal():
        raise InputError("--port takes a number", given=repr(requested.port), allowed="PORT or HOST:PORT")
    page_address = PageAddress(
        host=host.strip("[]") or "127.0.0.1", port=int(number), address=requested.address
    )
    as_json = click.get_current_context().params["json"]
    formats = parse_pairs("--format", requested.format, "COL=FORMAT,…")
    with stratal.study.open_study(requested.study) as opened:
        save_display(opened, formats, requested.media, requested.allow_images)
        # Empty unless the journal has pseudonyms.
        names = opened.names

        # Called by the server with its address and the links.
        def ready(url: str, links: dict[str, str], owner_link: str) -> None:
            if requested.output is not None:
                names_and_links = [
                    (names.get(annotator, annotator), link) for annotator, link in links.items()
                ]
                _write_links(requested.output, names_and_links)
            study = str(requested.study)
            links_by_name = {
                f"{annotator} ({names[annotator]})" if annotator in names else annotator: link
                for annotator, link in links.items()
            }
            if as_json:
                print_json({"study": study, "address": url, "owner": owner_link, "links": links_by_name})
            else:
                if page_address.is_open:
                    print_text(" ".join(OPEN_PAGE_WARNING.split()).format(port=page_address.port), "")
                _print_links(study, links_by_name, owner_link)
            sys.stdout.flush()

        serve(opened, page_address, new_links=requested.new_links, ready=ready)


def _write_links(path: Path, names_and_links: list[tuple[str, str]]) -> None:
    """Write a new CSV file with the link of each annotator, which only its owner can read."""
    from stratal.tables.files import csv_line

    try:
        with path.open("x", newline="", encoding="utf-8") as file:
            path.chmod(0o600)
            file.writelines(map(csv_line, [("annotator", "link"), *names_and_links]))
    except FileExistsError:
        raise InputError(f"{path}: already exists", action="Give the name of a new file.") from None


def _print_links(study: str, links_by_name: dict[str, str], owner_link: str) -> None:
    """Print the link of each annotator, and that of the person who runs the study."""
    width = max(map(len, links_by_name), default=0)
    print_text(
        f"{study}: one link for each annotator. Anyone who has a link can label under that annotator's name.",
        "",
    )
    print_text(*(f"  {name:<{width}}  {link}" for name, link in links_by_name.items()), "")
    owner_line = f"Progress page for the person who runs the study: {owner_link}"
    print_text(owner_line, "", "Ctrl-C stops the server; nothing is lost.")


class StatusOptions(StudyFolderOptions, frozen=True, kw_only=True):
    """The options of `study status`.

    Parameters
    ----------
    require : 'value>=X'
        Requirement for the anytime-valid interval, such as value>=.9; exit status 0, 4 or 5.
    """

    confidence_level: ConfidenceLevel = 0.95
    require: Text = None


@command(StatusOptions, name="study status")
def status(requested: StatusOptions) -> Result:
    """Show the progress and the interim estimate of a study.

    Also shows agreement, times and nonresponse.

    The anytime-valid interval remains valid however often it is computed, so labelling may stop as soon as
    the interval is narrow enough or decides a requirement. With --require, the exit status is 0 (PASS), 4
    (FAIL) or 5 (UNDECIDED).
    """
    from stratal.evaluation import joint_verdict
    from stratal.report.pages import status_page

    with show_progress("counting"), stratal.study.open_study(requested.study, read_only=True) as opened:
        requirements = requested.require.split(";") if requested.require else ()
        level = requested.confidence_level
        described = stratal.study.study_status(opened, confidence_level=level, require=requirements)
        selects_model = isinstance(opened.sample().design, stratal.designs.Disagreements)
        reading = stored_reading_options(opened)
    stop = described["stop"]
    items = described["nonresponse"]
    next_command = ["estimate"]
    if not stop["enough"] and (items["open"] or not items["labelled"]):
        next_command = ["study", "label"]
    elif not stop["enough"] and (stop["half_width"] or selects_model):
        next_command = ["study", "extend"]
    if "requirements" in described:
        verdict = joint_verdict(described["requirements"])
    else:
        verdict = UNDECIDED
    if next_command[-1] == "extend" and reading:
        next_command += connection_words(Reading(**reading))
    exit_status = STATUSES[verdict] if requirements else 0
    return Result(described, status_page, (*next_command, requested.study), status=exit_status)


class ExtendOptions(StudyFolderOptions, frozen=True, kw_only=True):
    """The options of `study extend`.

    Parameters
    ----------
    additional : int, default the number that --until requires
        Number of units to add.
    until : float
        Stop when the half-width of the anytime-valid interval has reached this value; 0 never stops.
    without_labels : bool
        Increase the budget without using the labels.
    population : FILE, default the former file
        File of the predictions, if it was moved.
    remote : bool
        Allow the file of the predictions to be an address (https://… or s3://…).
    engine : str
        Engine that reads the predictions, if it is Spark: spark, or spark=URL.
    """

    additional: Whole = None
    until: Number = None
    without_labels: bool = False
    population: Annotated[Path | None, Option(parser=parse_path)] = None
    remote: bool = False
    engine: str = "duckdb"


@command(ExtendOptions, name="study extend")
def extend(requested: ExtendOptions) -> Result:
    """Draw more items for a study.

    The new items are assigned to the annotators of the study, even while a server is running. They are
    allocated on the basis of the existing labels; items that were drawn earlier remain in the sample. With
    --until, no items are assigned once the interval is narrow enough. With neither --until nor --additional,
    the study is extended by the number of items that are still needed according to the labels.
    """
    from stratal.study.interim import current_selection, units_needed

    additional = requested.additional
    until = requested.until
    with stratal.study.open_study(requested.study) as opened:
        size_before = opened.sample().size
        # The comparison of models in a study that selects one of them.
        model_selection = None
        # --until alone only changes the stopping rule.
        n_new = units_needed(opened) if additional is None and until is None else additional
        # `--additional 0` is an error of the draw; no need for more units is not.
        if n_new is not None and (n_new or additional is not None):
            with show_progress("reading and drawing"):
                population = _population_of_study(opened, requested)
                model_selection = current_selection(opened, population)
                # None: the labels are used if the design allows it.
                by_labels = False if requested.without_labels else None
                stratal.study.extend_study(opened, n_new, population=population, by_labels=by_labels)
        is_narrow_enough = opened.setting("enough") == "yes"
        if until is not None:
            is_narrow_enough = stratal.study.set_half_width(opened, until or None)
        sample = opened.sample()
    described = {
        "study": str(requested.study),
        "n": sample.size,
        "new": sample.size - size_before,
        "round": int(sample.round.max()),
        "enough": is_narrow_enough,
    }
    page = None
    if model_selection is not None:
        described["selection"] = model_selection.to_dict()
        page = model_selection._page()
    lines = [f"Round {described['round']}: {described['new']:,} more items, {described['n']:,} in all."]
    if is_narrow_enough:
        lines.append("The interval is as narrow as requested: labelling can stop.")
    return Result(described, page, lines, ("study", "status", requested.study))


def _population_of_study(study: Study, requested: ExtendOptions) -> Population:
    """Read the population of a study again: the stored file, or that of --population."""
    options = stored_reading_options(study)
    if requested.population is not None:
        options |= {"file": requested.population}
    if not options:
        action = "Name it with --population."
        raise InputError("the file of predictions of this study is unknown", action=action)
    reading = Reading(**options)
    if requested.population is not None:
        reading = structs.replace(reading, remote=requested.remote)
    # The connections that the command line permits. A study may come from somebody else.
    permitted = Reading(file=Path(), remote=requested.remote, engine=requested.engine)
    return read_population_again(reading, study.sample(), permitted)


class TeamOptions(StudyFolderOptions, frozen=True, kw_only=True):
    """The options of `study team`.

    Parameters
    ----------
    add : NAME,…
        Add these annotators.
    set_aside : str
        Exclude the labels of this annotator; no label is deleted.
    take_back : str
        Include the labels of this annotator again.
    reason : str
        Reason, for the journal.
    rubric : path
        File with a new version of the labelling instructions (Markdown).
    """

    add: Text = None
    set_aside: Text = None
    take_back: Text = None
    reason: str = ""
    rubric: Path | None = None


@command(TeamOptions, name="study team")
def team(requested: TeamOptions) -> Result:
    """Show or add annotators; exclude or include their labels."""
    from stratal.study.creating import duplicate_name_error, require_person, validated_name

    rubric = None if requested.rubric is None else read_text_file(requested.rubric)
    names = split_names(requested.add)
    with stratal.study.open_study(requested.study) as opened:
        # All is checked before anything is written.
        existing_names = {*opened.people, *opened.names.values()}
        for name in names:
            if validated_name(name) in existing_names or names.count(name) > 1:
                raise duplicate_name_error(name)
        with opened.database.read() as connection:
            for name in filter(None, (requested.set_aside, requested.take_back)):
                require_person(connection, name)
        for name in names:
            opened.add_annotator(name)
        if requested.set_aside is not None:
            opened.set_aside(requested.set_aside, reason=requested.reason)
        if requested.take_back is not None:
            opened.take_back(requested.take_back, reason=requested.reason)
        if rubric is not None:
            opened.set_rubric(rubric)
        annotators = list(opened.annotators)
        excluded = opened.excluded_annotators()
        described = {
            "study": str(requested.study),
            "annotators": annotators,
            "adjudicators": list(opened.adjudicators),
            "set_aside": excluded,
            "rubric_version": opened.question.rubric_version,
        }
    return Result(described, [f"{name} (set aside)" if name in excluded else name for name in annotators])


class CheckOptions(StudyFolderOptions, frozen=True, kw_only=True):
    """The options of `study check`.

    Parameters
    ----------
    head : str
        Hash that an earlier check printed; it must still be in the journal.
    """

    head: Text = None


@command(CheckOptions, name="study check")
def check(requested: CheckOptions) -> Result:
    """Check the integrity of a study.

    Checks the hash chain of the journal, the ids and the counts. The exit status is 3 if an error is found.
    Keep the last hash elsewhere: it proves later that no earlier entry was changed.
    """
    with show_progress("checking"), stratal.study.open_study(requested.study, read_only=True) as opened:
        return _check_result(requested.study, stratal.study.check_study(opened, known_head=requested.head))


class BackupOptions(StudyFolderOptions, frozen=True, kw_only=True):
    """The options of `study backup`."""

    output: Output


@command(BackupOptions, name="study backup")
def backup(requested: BackupOptions) -> Result:
    """Copy a study, even while people are labelling, and check the copy.

    The exit status is 3 if the copy has an error. Links of annotators are not copied: `stratal study label`
    creates new ones for the copy.
    """
    with show_progress("copying"), stratal.study.open_study(requested.study) as opened:
        return _check_result(requested.output, stratal.study.backup_study(opened, requested.output))


def _check_result(study: Path, integrity: Check) -> Result:
    """Return the result of the check of a study or of its copy."""
    from stratal.report.pages import check_page

    described = {"study": str(study), "sound": integrity.sound, **integrity.to_dict()}
    return Result(described, check_page, status=0 if integrity.sound else PROBLEMS_STATUS)


class ExportOptions(StudyFolderOptions, frozen=True, kw_only=True):
    """The options of `study export`.

    Parameters
    ----------
    output : path
        File or folder to write; it must not exist.
    to : str, default the extension of the file, or html
        Format: html (a page in one file), label-studio, argilla, potato, prodigy, excel, csv or jsonl.
    annotator : str, default any
        Annotator to whom the items are assigned.
    items : int, default all unassigned items
        Maximum number of items.
    """

    output: Path
    to: Text = None
    annotator: Text = None
    items: Whole = None


@command(ExportOptions, name="study export")
def export(requested: ExportOptions) -> Result:
    """Write the items that have no answer yet to a file for another tool.

    `study import` reads the answers. Items that are written for one annotator are reserved for that
    annotator. Proxies, predictions and strata are not written.
    """
    from stratal.evaluation import require_present
    from stratal.labels.label_files import find_tool, tool_name_for, write_tasks
    from stratal.study.import_export import tool_question

    study = requested.study
    output = requested.output
    annotator = requested.annotator
    require_present(study)
    tool_name = requested.to or tool_name_for(output) or "html"
    if tool_name == "html":
        return _export_page(requested)
    tool = find_tool(tool_name, "html")
    # Checked before items are reserved.
    if output.exists() or output.is_symlink():
        raise InputError(f"{output}: already exists", action="Give the name of a new file or folder.")
    with stratal.study.open_study(study) as opened:
        question = tool_question(opened.question)
        # What to do with the file; empty until it is written.
        advice = []
        try:
            tasks = opened.tasks(
                annotator=annotator,
                items=requested.items,
                write=lambda tasks: advice.append(write_tasks(tool, tasks, question, output)),
            )
        except BaseException:
            # The file was written, but its items could not be reserved.
            if advice:
                remove_path(output)
            raise
    described = {"study": str(study), "to": tool.name, "file": str(output), "items": len(tasks)}
    if annotator is not None:
        described["annotator"] = annotator
    annotator_words = ["--annotator", annotator] if annotator else []
    lines: list[str] = []
    if not annotator and not tool.names_annotators:
        annotator_words, lines = annotator_option(study)
    next_command = ("study", "import", study, tool.answers_path(output), *annotator_words, "--dry-run")
    summary = f"{output}: {len(tasks):,} items for {tool.title}."
    return Result(described, summary, *advice, [*lines, next_command])


def remove_path(path: Path) -> None:
    """Remove a file or a folder."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def annotator_option(study: Path) -> tuple[list[str], list[str]]:
    """Return the words of the option for the annotator of a file without names, and a line to print.

    Both are empty if the study has only one annotator. Otherwise, the first one is an example.
    """
    from stratal.study.opening import open_study

    with open_study(study, read_only=True) as opened:
        people = opened.annotators
    if len(people) < 2:
        return [], []
    line = f"Name the person who filled in the file: --annotator {', '.join(people)}."
    return ["--annotator", people[0]], [line]


def _export_page(requested: ExportOptions) -> Result:
    """Write a page in one file, on which one annotator labels without a server or a network."""
    try:
        from stratal.study.web.page_file import download_name, write_page
    except ImportError as error:
        raise MissingExtraError(error.name or "starlette", extra="web") from None

    study = requested.study
    output = requested.output
    annotator = requested.annotator
    if annotator is None:
        action = "Name the annotator (--annotator NAME), or another tool to export the items for (--to TOOL)."
        raise InputError("a page requires one annotator", action=action)
    if output.suffix.lower() not in (".html", ".htm"):
        action = f"Call it {output.stem}.html, or name another tool to export the items for: --to TOOL."
        raise InputError(f"{output}: a page requires a different file name", action=action)
    with stratal.study.open_study(study) as opened:
        size = write_page(opened, output, annotator, items=requested.items)
    return Result(
        {"study": str(study), "annotator": annotator, "file": str(output), "bytes": size},
        f"{output}: a page for {annotator}, {size:,} bytes. It requires only a browser.",
        ("study", "import", study, download_name(annotator)),
    )


class ImportOptions(StudyFolderOptions, frozen=True, kw_only=True):
    """The options of `study import`.

    Parameters
    ----------
    from_ : str, default recognised
        Format: page, label-studio, argilla, potato, prodigy, excel, csv or jsonl.
    annotator : str, default stated in the file
        Annotator of the answers: NAME, or several NAME_IN_FILE=NAME separated by commas. Required for a
        file from the labelling page that contains no key.
    id : str, default the sample's
        Column of ids in a table.
    map : LABEL=ANSWER,…
        Meaning of other values in the file: n/a= for no answer, OK=Pass for one of the question's answers.
    same_rows : bool
        Accept row numbers as ids even if the file has no column sample_token.
    dry_run : bool
        Print what would be imported, and save nothing.
    """

    file: Annotated[Path, argument("FILE", "File that the tool exported, or Potato's folder.")]
    from_: Text = None
    annotator: Text = None
    id: Text = None
    map: Text = None
    same_rows: bool = False
    dry_run: bool = False


@command(ImportOptions, name="study import")
def import_command(requested: ImportOptions) -> Result:
    """Import answers from another tool: either all of them or none.

    --dry-run shows what matches, what does not, what would change and what was skipped. The same file, or a
    later one with more labels, may be imported again: nothing is saved twice, and answers that were changed
    in the study are kept.
    """
    from stratal.labels.label_files import find_tool, read_answers
    from stratal.report.pages import import_page

    study = requested.study
    file = requested.file
    dry_run = requested.dry_run
    described: JsonDict = {"study": str(study), "file": str(file)}
    next_command: tuple[Any, ...] = ("study", "status", study)
    if dry_run:
        next_command = ("study", "import", *command_words(structs.replace(requested, dry_run=False)))
    if requested.from_ == "page" or (requested.from_ is None and _is_labels_file(file)):
        return _import_page_file(requested, described, next_command)
    if requested.from_ is not None:
        find_tool(requested.from_, "page")
    # A name, or a mapping of the names in the file to those of the study.
    annotator: Any = requested.annotator
    if annotator is not None and "=" in annotator:
        annotator = parse_pairs("--annotator", annotator, "NAME, or THEIRS=NAME,…")
    with stratal.study.open_study(study) as opened:
        answers = read_answers(file, requested.from_, requested.id or opened.sample().question.id)
        answers = answers.apply_mapping(parse_mapping("--map", requested.map))
        same_rows = requested.same_rows
        result = opened.import_answers(answers, annotator=annotator, same_rows=same_rows, dry_run=dry_run)
    return Result(described | result.to_dict(), import_page, next_command)


def _import_page_file(requested: ImportOptions, described: JsonDict, next_command: tuple[Any, ...]) -> Result:
    """Import the actions in the file that a page in one file has saved."""
    from stratal.report.pages import change_lines
    from stratal.study.import_export import MAX_LABELS_FILE_BYTES

    file = requested.file
    dry_run = requested.dry_run
    if requested.map is not None:
        raise InputError(
            "a file from the labelling page already contains answers to the question",
            action="Leave out --map.",
        )
    text = read_text_file(file, MAX_LABELS_FILE_BYTES)
    with stratal.study.open_study(requested.study) as opened:
        described |= opened.import_actions(
            text, source=str(file), annotator=requested.annotator, dry_run=dry_run
        )
    saved = described["saved"]
    actions = "1 action" if saved == 1 else f"{saved:,} actions"
    verb = "would be saved" if dry_run else "saved"
    line = f"{file}: {actions} {verb}; {described['repeated']:,} had been saved before."
    return Result(described | {"applied": not dry_run}, line, change_lines(described), next_command)


def _is_labels_file(file: Path) -> bool:
    """Return whether a file was saved by a page in one file."""
    from stratal.study.import_export import ACTIONS_FORMAT

    if file.suffix.lower() != ".json" or not file.is_file():
        return False
    with file.open("rb") as stream:
        return ACTIONS_FORMAT.encode() in stream.read(200)
