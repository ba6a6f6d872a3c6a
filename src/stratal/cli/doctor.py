"""`stratal doctor`: inspect a file, and suggest the next command."""

from __future__ import annotations

import io
import json
import shlex
import warnings
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click
from msgspec import structs

import stratal
from stratal.cli.command import command, command_words
from stratal.cli.estimate import EvidenceOptions
from stratal.cli.options import Reading
from stratal.cli.output import Result, in_options, new_folder_name, show_progress
from stratal.cli.parsing import join_names, meanings
from stratal.cli.plan_file import PlanFile
from stratal.cli.study import annotator_option
from stratal.errors import InputError, StratalError
from stratal.protocols import JsonDict

if TYPE_CHECKING:
    from stratal.labels.annotation_tools import ToolAnswers
    from stratal.tables.small_table import SmallTable


# Maximum bytes, and cells of Parquet, which is compressed, of a file that is read completely. Files of labels
# are smaller, and larger files of predictions take too long.
_MAX_BYTES = 20_000_000
_MAX_CELLS = 1_000_000


# Maximum number of columns that are described. The time of DuckDB grows with the square of their number:
# seconds for some thousand, and an hour for 60,000.
_MAX_COLUMNS = 4_096


def _refuse_many_columns(file: Path) -> None:
    """Refuse a file that has too many columns to describe them all in some seconds."""
    from stratal.tables.files import READ_ERRORS, csv_header, format_of
    from stratal.tables.parquet import parquet_columns

    columns = 0
    try:
        kind = format_of(file)
        if kind == "csv":
            columns = len(csv_header(file)[2] or ())
        elif kind == "parquet":
            columns = parquet_columns(file)
    except (InputError, *READ_ERRORS):  # the reader reports the error
        return
    if columns > _MAX_COLUMNS:
        action = "Name the columns yourself: stratal plan FILE --id COL --proxy COL --budget N."
        problem = f"{file} has too many columns to describe"
        allowed = f"up to {_MAX_COLUMNS:,}"
        raise InputError(problem, given=f"{columns:,}", allowed=allowed, action=action)


def _inspected(requested: Reading) -> Result:
    """Return the columns of a file, and with proxies the population, and suggest the next command."""
    from stratal.population.inspection import (
        answer_options,
        describe_columns,
        describe_proxies,
        group_columns,
        model_answer,
        suggested_score,
        suggestion,
    )
    from stratal.question.recognition import duplicates_text
    from stratal.report.notes import NUMBERS_AS_TEXT, has_code
    from stratal.report.pages import inspection_page

    declared = meanings(requested.predicts)
    if isinstance(declared, dict) and requested.proxy is None and requested.softmax is None:
        requested = structs.replace(requested, proxy=join_names(*declared))
    with show_progress("reading"):
        columns = describe_columns(requested.file, **requested.of_file)
        stated_columns = (requested.proxy, requested.groups, requested.softmax, requested.answers)
        proxies: JsonDict = {}
        if any(column is not None for column in stated_columns):
            proxies = describe_proxies(requested.population())
    suggested = suggestion(columns, requested.id, requested.proxy, requested.softmax)
    described = {"file": str(requested.file), **columns, **proxies}
    score = None
    if not proxies:
        answers = model_answer(columns, suggested) if columns.get("log") is None else []
        score = suggested_score(columns, suggested, requested.predicted or next(iter(answers[1:]), None))
    if score is not None:
        described["suggested_proxy"] = score
    if columns["rows"] == 0:
        return Result(
            described, inspection_page, "", "The file has a header but no rows: no plan is possible."
        )
    if "--proxy" not in suggested and has_code(columns["notes"], NUMBERS_AS_TEXT):
        return Result(
            described,
            inspection_page,
            "",
            f"Once these columns contain numbers, run: stratal doctor {requested.file}",
        )
    others = command_words(structs.replace(requested, id=None, proxy=None, softmax=None))[1:]
    models = columns["models"] if requested.id is None else None
    if models is not None:
        draw_advice = "Save the rows of one model in a separate file, and draw the units from it."
        option = f"stratal estimate … --model {shlex.quote(models['column'])}"
        label_advice = (
            "To compare the models, label the answers of all models for the drawn units, with one row per "
            "answer, and name the column of the models"
        )
        return Result(described, inspection_page, "", draw_advice, f"{label_advice}: {option}.")
    distinct = {row["name"]: row["distinct"] for row in columns["columns"]}
    duplicates = columns["rows"] - distinct.get(suggested[1], columns["rows"])
    if requested.id is None and duplicates:
        problem = duplicates_text(suggested[1], duplicates)
        advice = f"{problem}. Remove them, or number the rows: --id row."
        return Result(described, inspection_page, "", advice)
    if requested.answers is None:
        suggested += answer_options(columns, requested.predicted)
    if requested.predicted is None and "--predicted" not in suggested and columns.get("log") is None:
        suggested += model_answer(columns, suggested)
    plan_words = [requested.file, *suggested, *others]
    cluster = columns.get("log", {}).get("cluster")
    if cluster is not None:
        plan_words += ["--budget", _budget(columns["rows"])]
        plan_words += ["--design", "clusters", "--cluster", cluster, "--seed", 7]
        with TemporaryDirectory() as folder:
            problem = _problem_of("draw", [*plan_words, "--output", str(Path(folder) / "audit")])
        if problem:
            return Result(described, inspection_page, "", f"No draw is possible: {problem}")
        return Result(described, inspection_page, ("draw", *plan_words, "--output", new_folder_name("audit")))
    groups = (
        group_columns(columns, [str(word) for word in plan_words[1:]]) if requested.groups is None else []
    )
    return Result(described, inspection_page, _group_hint(groups), _plan_command(plan_words, columns["rows"]))


def _group_hint(groups: Sequence[str]) -> list[str]:
    """Return the line on columns for results by group, if there are any."""
    if not groups:
        return []
    names = ",".join(groups)
    return ["", f"For results by group later (estimate --by), add --groups {shlex.quote(names)} to the plan."]


# Budget of a first plan for a large file. With fewer rows it is a quarter of them, or 50, but at most half of
# them.
_BUDGET = 300
_MIN_BUDGET = 50


def _budget(rows: int) -> int:
    """Return a budget for a first plan: at most half of the rows, so that something is left to estimate."""
    return max(min(_BUDGET, max(rows // 4, min(_MIN_BUDGET, rows // 2))), 1)


def _plan_command(plan_words: Sequence[object], rows: int) -> Any:
    """Return the first `plan` that runs, or the reason why none does.

    A few rows may be too few for two labels in each stratum.
    """
    budget = ["--budget", _budget(rows)]
    attempts = [
        [*plan_words, *budget],
        [*plan_words, *budget, "--minimum", 1],
        [*plan_words, "--budget", rows],
    ]
    problem = ""
    for attempt in attempts:
        problem = _problem_of("plan", attempt)
        if not problem:
            return ("plan", *attempt)
    return ["", f"No plan is possible: {problem}"]


def _problem_of(name: str, options: Sequence[object]) -> str:
    """Return why a command fails; empty if it succeeds, or if the file is too large to try."""
    return _run(name, options)[0]


def _run(name: str, options: Sequence[object]) -> tuple[str, str]:
    """Return why a command fails, and its output; both are empty for a file that is too large to try."""
    from stratal.cli.application import app

    file = Path(str(options[0]))
    if file.is_file() and _too_large(file):
        return "", ""
    arguments = [name, *map(str, options)]
    output = io.StringIO()
    try:
        with (
            warnings.catch_warnings(action="ignore"),
            redirect_stdout(output),
            redirect_stderr(io.StringIO()),
        ):
            app.main(args=arguments, standalone_mode=False)
    except StratalError as error:
        # The message is shown as the reason why the suggested command would fail.
        return in_options(error.args[0]), ""
    except click.ClickException as error:
        return error.format_message(), ""
    return "", output.getvalue()


@command(Reading, without="by show features")
def doctor(requested: Reading) -> Result:
    """Inspect a file and suggest the next command.

    Shows the columns of predictions and of logs of evaluation tools. With --proxy, the file is checked as a
    population, and the quantiles of the proxy are shown. Answers from annotation tools are counted, and their
    study or sample is searched for in the current directory and in the directory of the file.
    """
    from stratal.labels.label_files import read_tool_answers, require_answers

    file = requested.file
    plan = PlanFile.read(file)
    if plan is not None:
        return _of_plan(file, plan)
    if file.is_file():
        _refuse_many_columns(file)
    if requested != Reading(file=file):
        return _inspected(requested)
    folder = _of_folder(file) if file.is_dir() else None
    if folder is not None:
        return folder
    is_small = file.is_dir() or (file.is_file() and not _too_large(file))
    answers = read_tool_answers(file) if is_small else None
    if answers is None:
        return _of_table(file) or _inspected(requested)
    require_answers(answers, str(file))
    return _of_answers(file, answers)


def _of_plan(file: Path, plan: PlanFile) -> Result:
    """Return the result for a plan: what it draws, and the command that draws it."""
    options = plan.options
    if options.budget is None:
        size = f"a half-width of {options.half_width}"
    else:
        size = f"{options.budget:,} labels"
    line = f"{file}: a plan to draw a sample from {options.file}, for {size}."
    described = {"file": str(file), "kind": "plan", "population": str(options.file)}
    content = options.content_columns
    shown = ("--show", ",".join(content)) if content else ()
    return Result(described, line, ("draw", file, *shown, "--seed", 7, "--output", new_folder_name("audit")))


def _of_folder(folder: Path) -> Result | None:
    """Return the result for a study, a sample or a folder of logs; None for other folders and data sets."""
    from stratal.designs.labelling_files import SAMPLE_NAME, find_table_to_label
    from stratal.labels.labels import TO_LABEL_NAME
    from stratal.study.database import DATABASE
    from stratal.tables.logs.hugging_face import DATASET_STATE
    from stratal.tables.logs.reading import find_logs

    for name, kind, next_command in (
        (DATABASE, "study", ("study", "status", folder)),
        (SAMPLE_NAME, "sample", ("doctor", find_table_to_label(folder) or folder / TO_LABEL_NAME)),
    ):
        if (folder / name).is_file():
            return Result(
                {"folder": str(folder), "kind": kind}, f"{folder}: the folder of a {kind}.", next_command
            )
    logs = {} if (folder / DATASET_STATE).exists() else find_logs(folder)
    if not logs:
        return None
    return Result(
        {"folder": str(folder), "logs": {str(path): tool for path, tool in logs.items()}},
        f"{folder}: {len(logs):,} logs of evaluation tools.",
        [f"  {path}  ({tool})" for path, tool in logs.items()],
        ("doctor", next(iter(logs))),
    )


def _too_large(file: Path) -> bool:
    """Return whether a file is too large for labels."""
    from stratal.tables.parquet import parquet_cells

    return file.stat().st_size > _MAX_BYTES or parquet_cells(file) > _MAX_CELLS


def _of_table(file: Path) -> Result | None:
    """Return the result for a table of labels, of a sample nearby or without one; None for other tables."""
    from stratal.labels.label_files import find_label_column
    from stratal.study.find_study import MAX_ROWS_PER_ITEM, folders_with_ids
    from stratal.tables.small_table import SmallTable, is_missing

    if not file.is_file() or _too_large(file):
        return None
    try:
        table = SmallTable.of(file, str(file))
    except InputError:
        # A file that is no table of labels is inspected as another kind of file.
        return None
    if table.log is not None or {"stratum", "inclusion_probability", "round"} <= set(table.columns):
        return None  # an evaluation tool's log, a sample
    name = find_label_column(table)
    entries = () if name is None else table.columns[name]
    filled = sum(not is_missing(entry) for entry in entries)
    folders = _nearest(file, folders_with_ids(table.distinct_texts(MAX_ROWS_PER_ITEM), (Path(), file.parent)))
    if folders:
        described = {"rows": len(table), "answers": filled, "belongs_to": list(map(str, folders))}
        return Result(
            {"file": str(file), **described, "id": next(iter(folders.values()))},
            [_of_home(file, table, name, filled, home, ids) for home, ids in folders.items()],
        )
    inspected = _inspected(Reading(file=file))
    labelled = _of_labelled_table(file, table)
    problems: list[str] = []
    if table.repeated and not labelled:
        problems = [f"{file}: {note}." for note in table.notes_on_repeated]
    elif name is not None and not filled and name not in table.repeated:
        problems = [f"{file}: nothing is filled in yet: {name!r} is empty in every row."]
    return Result(inspected.described, *problems, *(labelled or inspected.parts))


def _nearest(file: Path, folders: dict[Path, str]) -> dict[Path, str]:
    """Return the studies and samples in the file's own folder, or all if there are none."""
    in_same_folder = {
        folder: ids
        for folder, ids in folders.items()
        if (folder if folder.is_dir() else folder.parent).resolve() == file.parent.resolve()
    }
    return in_same_folder or folders


def _estimated(sample: Path, labels: Path, **more: Any) -> Any:
    """Return the command that estimates, or the reason why it fails."""
    requested = EvidenceOptions(files=[sample, labels], **more)
    try:
        with warnings.catch_warnings(action="ignore"):
            requested.evaluate()
    except StratalError as error:
        return f"No estimate is possible: {error.args[0]}"
    return ("estimate", *command_words(requested))


def _of_home(file: Path, table: SmallTable, name: str | None, filled: int, home: Path, ids: str) -> list[Any]:
    """Return the study or sample of a table of labels, and the command that reads it, or what is missing."""
    from stratal.labels.label_files import ANNOTATOR_NAMES
    from stratal.question.column_words import ID_NAMES
    from stratal.tables.column_facts import facts_of_table

    lines: list[Any] = [f"{file}: {len(table):,} rows, matched to items of {home} by the column {ids!r}."]
    next_command = [*(["study", "import"] if home.is_dir() else ["estimate"]), str(home), str(file)]
    next_command += [] if ids in ID_NAMES else ["--id", ids]
    excluded = {ids, name}
    if not home.is_dir():
        sample = stratal.Sample.read(home)
        # The file to label has columns of the sample, which annotators do not fill in.
        excluded |= {*sample.shown, *sample.groups, *sample.proxy_names}
    others = [
        facts.name
        for facts in facts_of_table(table)
        if facts.verdicts is not None and facts.name not in excluded
    ]
    if name is None:
        if home.is_dir() or len(others) < 2:
            rename = "rename the column that contains the answers, or specify it: estimate … --value COL."
            return [*lines, f"No column is called 'label': {rename}"]
        by_annotators = shlex.join(["stratal", *next_command, "--value", ",".join(others)])
        lines += [f"If the columns hold the answers of several annotators: {by_annotators}"]
        next_command += ["--compare", ",".join(others)]
    elif not filled:
        empty = f"Nothing is filled in yet: {name!r} is empty in every row. Once the column is filled in:"
        return [*lines, empty, f"  {shlex.join(['stratal', *next_command])}"]
    elif home.is_dir():
        if table.find(*ANNOTATOR_NAMES) is None:
            annotator_words, advice = annotator_option(home)
        else:
            annotator_words, advice = ([], [])
        lines = [*lines, *advice]
        next_command = [*next_command, *annotator_words, "--dry-run"]
    else:
        return [
            *lines,
            _estimated(home, file, id=None if ids in ID_NAMES else ids, model=table.find("model")),
        ]
    problem = _problem_of(next_command[0], next_command[1:])
    if problem:
        return [*lines, f"`{shlex.join(['stratal', *next_command])}` fails: {problem}"]
    return [*lines, tuple(next_command)]


def _of_labelled_table(file: Path, table: SmallTable) -> list[Any] | None:
    """Return how to estimate from a table with labels; None for a table without labels."""
    from stratal.population.inspection import describe_columns
    from stratal.question.recognition import recognise
    from stratal.report.pages import inspection_page
    from stratal.tables.column_facts import facts_of_table
    from stratal.tables.list_columns import label_list_columns

    recognition = recognise(facts_of_table(table))
    columns = recognition.columns
    description = describe_columns(file)
    lines: list[Any] = [inspection_page({"file": str(file), **description}), ""]
    lists = label_list_columns(table)
    if lists and recognition.value in (None, *lists):
        lines.append(
            f"`{lists[0]}` has a list of labels in each row. A list can count as one number (--lists mean, "
            "--lists precision@5 or --lists hit@5), or each entry can count as a row (--lists rows)."
        )
        words = [str(file), "--lists", "mean"]
        problem = _problem_of("estimate", words)
        return [*lines, f"No estimate is possible: {problem}" if problem else ("estimate", *words)]
    open_questions = [question for question in recognition.questions if question.is_about_labels(columns)]
    if open_questions:
        return [*lines, in_options(open_questions[0].error(str(file)).args[0])]
    if recognition.value is None and not recognition.models:
        return _with_possible_labels(file, recognition.possible_labels)
    command = ["estimate", file, *recognition.options]
    if recognition.positive_class is not None:
        command += ["--positive", recognition.positive_class]
    problem, output = _run(str(command[0]), [*command[1:], "--json"])
    roles: JsonDict = {"sentence": recognition.sentence(), "notes": recognition.notes}
    result = {} if problem else json.loads(output)
    roles = result.get("roles", roles)
    lines += [f"{roles['sentence'][:1].upper()}{roles['sentence'][1:]}."]
    lines += [f"Groups: {', '.join(recognition.groups)} (--by)."] if recognition.groups else []
    lines += [f"{warning[:1].upper()}{warning[1:]}." for warning in result.get("warnings", ())]
    lines += [f"Note: {in_options(note)}." for note in roles["notes"] if note not in description["notes"]]
    if problem:
        return [*lines, f"No estimate is possible: {problem}"]
    labels = columns.get(recognition.value or "")
    if labels is not None and labels.is_partial:
        lines += [
            "If the labelled rows were not chosen at random, state how they were chosen: --chosen.",
            _how_to_label_more(file, recognition.groups),
        ]
    return [*lines, tuple(command)]


def _how_to_label_more(file: Path, groups: Sequence[str]) -> str:
    """Return the line on the command that draws further rows of a table with labels in some rows."""
    options = ["--groups", ",".join(groups)] if groups else []
    command = ["stratal", "draw", "--extend", str(file), "--additional", "N", *options, "--output", "DIR"]
    return f"To label N more rows: {shlex.join(command)}"


def _with_possible_labels(file: Path, names: Sequence[str]) -> list[Any] | None:
    """Return the inspection of a table, and how to estimate if a column holds labels; None if none may."""
    commands = [["estimate", str(file), "--value", name] for name in names]
    lines = [
        f"If people wrote {command[-1]!r}: {shlex.join(['stratal', *command])}"
        for command in commands
        if not _problem_of(command[0], command[1:])
    ]
    if not lines:
        return None
    return [*_inspected(Reading(file=file)).parts, *lines]


def _of_answers(file: Path, tool_answers: ToolAnswers) -> Result:
    """Say how many answers of an annotation tool there are, and where they go."""
    from stratal.labels.label_files import TOOLS
    from stratal.study.find_study import folders_with_ids

    people = list(dict.fromkeys(answer.annotator for answer in tool_answers.answers if answer.annotator))
    ids = {answer.id for answer in tool_answers.answers}
    skipped = sum(answer.value is None for answer in tool_answers.answers)
    folders = list(_nearest(file, folders_with_ids({"": ids}, (Path(), file.parent))))
    described = {
        "tool": tool_answers.tool,
        "answers": len(tool_answers.answers),
        "items": len(ids),
        "skipped": skipped,
    }
    if people:
        by = f" by {', '.join(people[:5])}{' …' if len(people) > 5 else ''}"
    else:
        by = ""
    next_steps: list[Any] = []
    for home in folders:
        if home.is_dir() and not people:
            annotator_words, advice = annotator_option(home)
        else:
            annotator_words, advice = ([], [])
        take = ("study", "import", home, file, *annotator_words, "--dry-run")
        next_steps += [*advice, take if home.is_dir() else _estimated(home, file)]
    nowhere = (
        "No matching study or sample was found here. Run the command again in its folder, or type "
        "`stratal study import STUDY FILE --dry-run` or `stratal estimate SAMPLE FILE`."
    )
    return Result(
        {"file": str(file), **described, "annotators": people, "belongs_to": list(map(str, folders))},
        f"{file}: {TOOLS[tool_answers.tool].title}, {len(tool_answers.answers):,} answers "
        f"to {len(ids):,} items{by} ({skipped:,} skipped).",
        [f"Note: {note}." for note in tool_answers.notes],
        next_steps or nowhere,
    )
