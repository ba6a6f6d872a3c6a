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
from stratal.cli.output import Result, keywords_to_options, new_folder_name, show_progress
from stratal.cli.parsing import join_names, parse_meanings
from stratal.cli.plan_file import PlanFile
from stratal.cli.study import annotator_option
from stratal.errors import InputError, StratalError
from stratal.protocols import JsonDict

if TYPE_CHECKING:
    from stratal.labels.annotation_tools import ToolAnswers
    from stratal.tables.small_table import SmallTable


# Largest file that is read completely, in bytes and, because Parquet is compressed, in cells. Files of labels
# are smaller, and larger files of predictions take too long.
_MAX_LABEL_FILE_BYTES = 20_000_000
_MAX_LABEL_FILE_CELLS = 1_000_000


# Maximum number of columns that are described. The time of DuckDB grows with the square of their number:
# seconds for some thousand, and an hour for 60,000.
_MAX_COLUMNS = 4_096

# A part of a `Result`: a line of text, a tuple with the words of the next command, or a list of such parts.
Part = Any


def _refuse_many_columns(file: Path) -> None:
    """Refuse a file that has too many columns to describe them all in some seconds."""
    from stratal.tables.files import READ_ERRORS, csv_header, format_of
    from stratal.tables.parquet import parquet_columns

    n_columns = 0
    try:
        kind = format_of(file)
        if kind == "csv":
            _, _, column_names = csv_header(file)
            n_columns = len(column_names or ())
        elif kind == "parquet":
            n_columns = parquet_columns(file)
    except (InputError, *READ_ERRORS):
        # The reader of the file reports the error.
        return
    if n_columns > _MAX_COLUMNS:
        action = "Name the columns yourself: stratal plan FILE --id COL --proxy COL --budget N."
        problem = f"{file} has too many columns to describe"
        allowed = f"up to {_MAX_COLUMNS:,}"
        raise InputError(problem, given=f"{n_columns:,}", allowed=allowed, action=action)


def _inspect_predictions(requested: Reading) -> Result:
    """Return the columns of a file, and with proxies the population, and suggest the next command."""
    from stratal.population.inspection import (
        describe_columns,
        describe_proxies,
        predicted_option,
        suggested_options,
        suggested_score,
    )
    from stratal.report.pages import inspection_page

    meanings = parse_meanings(requested.predicts)
    # --predicts names the proxies, too.
    if isinstance(meanings, dict) and requested.proxy is None and requested.softmax is None:
        requested = structs.replace(requested, proxy=join_names(*meanings))
    with show_progress("reading"):
        columns = describe_columns(requested.file, **requested.source_keywords)
        stated_columns = (requested.proxy, requested.groups, requested.softmax, requested.answers)
        proxies: JsonDict = {}
        if any(column is not None for column in stated_columns):
            proxies = describe_proxies(requested.population())
    id_and_proxy_words = suggested_options(columns, requested.id, requested.proxy, requested.softmax)
    described = {"file": str(requested.file), **columns, **proxies}
    if not proxies:
        predicted_words = predicted_option(columns, id_and_proxy_words) if columns.get("log") is None else []
        # The words are `--predicted COLUMN`.
        predicted = requested.predicted or next(iter(predicted_words[1:]), None)
        score = suggested_score(columns, id_and_proxy_words, predicted)
        if score is not None:
            described["suggested_proxy"] = score
    advice = _advice_before_plan(requested, columns, id_and_proxy_words)
    if advice:
        return Result(described, inspection_page, "", *advice)
    next_step = _plan_or_draw(requested, columns, id_and_proxy_words)
    return Result(described, inspection_page, next_step)


def _advice_before_plan(
    requested: Reading, columns: JsonDict, id_and_proxy_words: Sequence[str]
) -> list[str]:
    """Return what to do before the file can be planned for; empty if nothing is necessary.

    `columns` is the result of `describe_columns`.
    """
    from stratal.question.recognition import duplicates_text
    from stratal.report.notes import NUMBERS_AS_TEXT, has_code

    if columns["rows"] == 0:
        return ["The file has a header but no rows: no plan is possible."]
    if "--proxy" not in id_and_proxy_words and has_code(columns["notes"], NUMBERS_AS_TEXT):
        return [f"Once these columns contain numbers, run: stratal doctor {requested.file}"]
    # With --id, the other problems are errors of the plan.
    if requested.id is not None:
        return []
    models = columns["models"]
    if models is not None:
        draw_advice = "Save the rows of one model in a separate file, and draw the units from it."
        option = f"stratal estimate … --model {shlex.quote(models['column'])}"
        label_advice = (
            "To compare the models, label the answers of all models for the drawn units, with one row per "
            "answer, and name the column of the models"
        )
        return [draw_advice, f"{label_advice}: {option}."]
    # The first words are `--id COLUMN`.
    id_name = id_and_proxy_words[1]
    distinct_counts = {row["name"]: row["distinct"] for row in columns["columns"]}
    n_duplicates = columns["rows"] - distinct_counts.get(id_name, columns["rows"])
    if n_duplicates:
        problem = duplicates_text(id_name, n_duplicates)
        return [f"{problem}. Remove them, or number the rows: --id row."]
    return []


def _plan_or_draw(requested: Reading, columns: JsonDict, id_and_proxy_words: Sequence[str]) -> list[Part]:
    """Return the command that plans for the file, or for clusters draws from it, or why it fails."""
    from stratal.population.inspection import answer_options, likely_group_columns, predicted_option

    words = list(id_and_proxy_words)
    # `--predicted` is the column of the evaluated model's answers, and `--answers` those of other models.
    if requested.answers is None:
        words += answer_options(columns, requested.predicted)
    if requested.predicted is None and "--predicted" not in words and columns.get("log") is None:
        words += predicted_option(columns, words)
    other_words = command_words(structs.replace(requested, id=None, proxy=None, softmax=None))[1:]
    plan_words: list[object] = [requested.file, *words, *other_words]
    cluster = columns.get("log", {}).get("cluster")
    if cluster is not None:
        plan_words += ["--budget", _first_budget(columns["rows"])]
        plan_words += ["--design", "clusters", "--cluster", cluster, "--seed", 7]
        with TemporaryDirectory() as folder:
            problem = _find_problem("draw", [*plan_words, "--output", str(Path(folder) / "audit")])
        if problem:
            return ["", f"No draw is possible: {problem}"]
        return [("draw", *plan_words, "--output", new_folder_name("audit"))]
    groups: Sequence[str] = ()
    if requested.groups is None:
        groups = likely_group_columns(columns, [str(word) for word in plan_words[1:]])
    return [_group_hint(groups), _plan_command(plan_words, columns["rows"])]


def _group_hint(groups: Sequence[str]) -> list[str]:
    """Return the line on columns for results by group, if there are any."""
    if not groups:
        return []
    names = ",".join(groups)
    return ["", f"For results by group later (estimate --by), add --groups {shlex.quote(names)} to the plan."]


# Limits of the budget of a first plan, which is a quarter of the rows between these limits.
_MAX_FIRST_BUDGET = 300
_MIN_FIRST_BUDGET = 50


def _first_budget(rows: int) -> int:
    """Return a budget for a first plan: at most half of the rows, so that something is left to estimate."""
    lower_limit = min(_MIN_FIRST_BUDGET, rows // 2)
    budget = min(_MAX_FIRST_BUDGET, max(rows // 4, lower_limit))
    return max(budget, 1)


def _plan_command(plan_words: Sequence[object], rows: int) -> Part:
    """Return the first `plan` that runs, or the reason why none does.

    A few rows may be too few for two labels in each stratum.
    """
    budget = ["--budget", _first_budget(rows)]
    attempts = [
        [*plan_words, *budget],
        [*plan_words, *budget, "--minimum", 1],
        [*plan_words, "--budget", rows],
    ]
    problem = ""
    for attempt in attempts:
        problem = _find_problem("plan", attempt)
        if not problem:
            return ("plan", *attempt)
    return ["", f"No plan is possible: {problem}"]


def _find_problem(name: str, options: Sequence[object]) -> str:
    """Return why a command fails; empty if it succeeds, or if the file is too large to try."""
    problem, _ = _run_command(name, options)
    return problem


def _run_command(name: str, options: Sequence[object]) -> tuple[str, str]:
    """Return why a command fails, and its output; both are empty for a file that is too large to try."""
    from stratal.cli.application import app

    file = Path(str(options[0]))
    if file.is_file() and _is_too_large(file):
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
        return keywords_to_options(error.args[0]), ""
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
        return _inspect_plan(file, plan)
    if file.is_file():
        _refuse_many_columns(file)
    if requested != Reading(file=file):
        return _inspect_predictions(requested)
    if file.is_dir():
        folder_result = _inspect_folder(file)
        if folder_result is not None:
            return folder_result
    answers = None
    # Some annotation tools write a folder.
    if file.is_dir() or (file.is_file() and not _is_too_large(file)):
        answers = read_tool_answers(file)
    if answers is None:
        return _inspect_label_table(file) or _inspect_predictions(requested)
    require_answers(answers, str(file))
    return _inspect_answers(file, answers)


def _inspect_plan(file: Path, plan: PlanFile) -> Result:
    """Return the result for a plan: its file and size, and the command that draws the sample."""
    options = plan.options
    if options.budget is None:
        size = f"a half-width of {options.half_width}"
    else:
        size = f"{options.budget:,} labels"
    line = f"{file}: a plan to draw a sample from {options.file}, for {size}."
    described = {"file": str(file), "kind": "plan", "population": str(options.file)}
    content = options.content_columns
    show_words = ("--show", ",".join(content)) if content else ()
    output_words = ("--seed", 7, "--output", new_folder_name("audit"))
    return Result(described, line, ("draw", file, *show_words, *output_words))


def _inspect_folder(folder: Path) -> Result | None:
    """Return the result for a study, a sample or a folder of logs; None for other folders and data sets."""
    from stratal.designs.labelling_files import SAMPLE_NAME, find_table_to_label
    from stratal.labels.labels import TO_LABEL_NAME
    from stratal.study.database import DATABASE
    from stratal.tables.logs.hugging_face import DATASET_STATE
    from stratal.tables.logs.reading import find_logs

    table = find_table_to_label(folder) or folder / TO_LABEL_NAME
    for name, kind, next_command in (
        (DATABASE, "study", ("study", "status", folder)),
        (SAMPLE_NAME, "sample", ("doctor", table)),
    ):
        if (folder / name).is_file():
            described = {"folder": str(folder), "kind": kind}
            return Result(described, f"{folder}: the folder of a {kind}.", next_command)
    # A data set of Hugging Face has no logs.
    logs = {} if (folder / DATASET_STATE).exists() else find_logs(folder)
    if not logs:
        return None
    return Result(
        {"folder": str(folder), "logs": {str(path): tool for path, tool in logs.items()}},
        f"{folder}: {len(logs):,} logs of evaluation tools.",
        [f"  {path}  ({tool})" for path, tool in logs.items()],
        ("doctor", next(iter(logs))),
    )


def _is_too_large(file: Path) -> bool:
    """Return whether a file is too large to be read completely, and larger than files of labels."""
    from stratal.tables.parquet import parquet_cells

    return file.stat().st_size > _MAX_LABEL_FILE_BYTES or parquet_cells(file) > _MAX_LABEL_FILE_CELLS


def _inspect_label_table(file: Path) -> Result | None:
    """Return the result for a table of labels, with or without a sample nearby; None for other tables."""
    from stratal.labels.label_files import find_label_column
    from stratal.study.find_study import MAX_ROWS_PER_ITEM, folders_with_ids
    from stratal.tables.small_table import SmallTable, is_missing

    if not file.is_file() or _is_too_large(file):
        return None
    try:
        table = SmallTable.of(file, str(file))
    except InputError:
        # A file that is no table of labels is inspected as another kind of file.
        return None
    is_sample = {"stratum", "inclusion_probability", "round"} <= set(table.columns)
    if table.log is not None or is_sample:
        return None
    label_column = find_label_column(table)
    entries = () if label_column is None else table.columns[label_column]
    n_labels = sum(not is_missing(entry) for entry in entries)
    # A column with more rows for a text, such as a class, has no ids.
    folders = _prefer_same_folder(
        file, folders_with_ids(table.distinct_texts(MAX_ROWS_PER_ITEM), (Path(), file.parent))
    )
    if folders:
        described = {
            "file": str(file),
            "rows": len(table),
            "answers": n_labels,
            "belongs_to": list(map(str, folders)),
            "id": next(iter(folders.values())),
        }
        parts = [
            _label_lines(file, table, label_column, n_labels, source, id_column)
            for source, id_column in folders.items()
        ]
        return Result(described, parts)
    inspection = _inspect_predictions(Reading(file=file))
    estimate_lines = _estimate_lines(file, table)
    problems: list[str] = []
    # The entries of columns with a repeated name are not read.
    if table.repeated and not estimate_lines:
        problems = [f"{file}: {note}." for note in table.notes_on_repeated]
    elif label_column is not None and not n_labels and label_column not in table.repeated:
        problems = [f"{file}: nothing is filled in yet: {label_column!r} is empty in every row."]
    return Result(inspection.described, *problems, *(estimate_lines or inspection.parts))


def _prefer_same_folder(file: Path, folders: dict[Path, str]) -> dict[Path, str]:
    """Return the studies and samples in the folder of the file; if there are none, return all.

    `folders` has the folder of each study, or the file of each sample, with the column of ids.
    """
    in_same_folder = {
        path: id_column
        for path, id_column in folders.items()
        if (path if path.is_dir() else path.parent).resolve() == file.parent.resolve()
    }
    return in_same_folder or folders


def _estimate_command(sample: Path, labels: Path, **options: Any) -> Part:
    """Return the words of the command that estimates with these options, or a line on why it fails."""
    requested = EvidenceOptions(files=[sample, labels], **options)
    try:
        with warnings.catch_warnings(action="ignore"):
            requested.evaluate()
    except StratalError as error:
        return f"No estimate is possible: {error.args[0]}"
    return ("estimate", *command_words(requested))


def _label_lines(
    file: Path, table: SmallTable, label_column: str | None, n_labels: int, source: Path, id_column: str
) -> list[Part]:
    """Return lines on a table of labels for a study or a sample, `source`, and the command that reads it.

    Without labels, a line states what is missing.
    """
    from stratal.labels.label_files import ANNOTATOR_NAMES
    from stratal.question.column_words import ID_NAMES

    is_study = source.is_dir()
    matched = f"matched to items of {source} by the column {id_column!r}"
    lines: list[Part] = [f"{file}: {len(table):,} rows, {matched}."]
    # The usual names of ids are recognised without the option.
    id_name = None if id_column in ID_NAMES else id_column
    command_name = ["study", "import"] if is_study else ["estimate"]
    next_command = [*command_name, str(source), str(file)]
    if id_name is not None:
        next_command += ["--id", id_name]
    if label_column is None:
        verdict_columns = _verdict_columns(table, source, id_column)
        if is_study or len(verdict_columns) < 2:
            rename = "rename the column that contains the answers, or specify it: estimate … --value COL."
            return [*lines, f"No column is called 'label': {rename}"]
        by_annotators = shlex.join(["stratal", *next_command, "--value", ",".join(verdict_columns)])
        lines += [f"If the columns hold the answers of several annotators: {by_annotators}"]
        next_command += ["--compare", ",".join(verdict_columns)]
    elif not n_labels:
        empty = f"Nothing is filled in yet: {label_column!r} is empty in every row."
        empty += " Once the column is filled in:"
        return [*lines, empty, f"  {shlex.join(['stratal', *next_command])}"]
    elif is_study:
        if table.find(*ANNOTATOR_NAMES) is None:
            annotator_words, advice = annotator_option(source)
            lines += advice
            next_command += annotator_words
        next_command += ["--dry-run"]
    else:
        return [*lines, _estimate_command(source, file, id=id_name, model=table.find("model"))]
    problem = _find_problem(next_command[0], next_command[1:])
    if problem:
        return [*lines, f"`{shlex.join(['stratal', *next_command])}` fails: {problem}"]
    return [*lines, tuple(next_command)]


def _verdict_columns(table: SmallTable, source: Path, id_column: str) -> list[str]:
    """Return the columns of a table with verdicts that may be those of annotators or models."""
    from stratal.tables.column_facts import facts_of_table

    excluded_columns = {id_column}
    if not source.is_dir():
        sample = stratal.Sample.read(source)
        # The file to label has columns of the sample, which annotators do not fill in.
        excluded_columns |= {*sample.shown, *sample.groups, *sample.proxy_names}
    return [
        facts.name
        for facts in facts_of_table(table)
        if facts.verdicts is not None and facts.name not in excluded_columns
    ]


def _estimate_lines(file: Path, table: SmallTable) -> list[Part] | None:
    """Return lines on how to estimate from a table with labels; None for a table without labels."""
    from stratal.population.inspection import describe_columns
    from stratal.question.recognition import recognise
    from stratal.report.pages import inspection_page
    from stratal.tables.column_facts import facts_of_table
    from stratal.tables.list_columns import label_list_columns

    recognition = recognise(facts_of_table(table))
    columns = recognition.columns
    description = describe_columns(file)
    lines: list[Part] = [inspection_page({"file": str(file), **description}), ""]
    lists = label_list_columns(table)
    if lists and recognition.value in (None, *lists):
        lines.append(
            f"`{lists[0]}` has a list of labels in each row. A list can count as one number (--lists mean, "
            "--lists precision@5 or --lists hit@5), or each entry can count as a row (--lists rows)."
        )
        words = [str(file), "--lists", "mean"]
        problem = _find_problem("estimate", words)
        if problem:
            return [*lines, f"No estimate is possible: {problem}"]
        return [*lines, ("estimate", *words)]
    # The user must state which column has a role if several may have it. A table without labels has no column
    # that could have their role, so that this question has no answer.
    open_questions = [question for question in recognition.questions if question.is_answerable(columns)]
    if open_questions:
        return [*lines, keywords_to_options(open_questions[0].error(str(file)).args[0])]
    if recognition.value is None and not recognition.models:
        return _possible_label_lines(file, recognition.possible_labels)
    command = ["estimate", file, *recognition.options]
    if recognition.positive_class is not None:
        command += ["--positive", recognition.positive_class]
    problem, output = _run_command(str(command[0]), [*command[1:], "--json"])
    roles: JsonDict = {"sentence": recognition.sentence(), "notes": recognition.notes}
    result = {} if problem else json.loads(output)
    roles = result.get("roles", roles)
    lines += [f"{roles['sentence'][:1].upper()}{roles['sentence'][1:]}."]
    if recognition.groups:
        lines.append(f"Groups: {', '.join(recognition.groups)} (--by).")
    lines += [f"{warning[:1].upper()}{warning[1:]}." for warning in result.get("warnings", ())]
    lines += [
        f"Note: {keywords_to_options(note)}." for note in roles["notes"] if note not in description["notes"]
    ]
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


def _possible_label_lines(file: Path, names: Sequence[str]) -> list[Part] | None:
    """Return the inspection of a table, and the command for each column that may have labels.

    None if no such command works.
    """
    commands = [["estimate", str(file), "--value", name] for name in names]
    lines = [
        f"If people wrote {command[-1]!r}: {shlex.join(['stratal', *command])}"
        for command in commands
        if not _find_problem(command[0], command[1:])
    ]
    if not lines:
        return None
    return [*_inspect_predictions(Reading(file=file)).parts, *lines]


# Largest number of annotators that are listed.
_MAX_ANNOTATORS_LISTED = 5


def _inspect_answers(file: Path, tool_answers: ToolAnswers) -> Result:
    """Return the result for answers from an annotation tool: their number, and the command to read them."""
    from stratal.labels.label_files import TOOLS
    from stratal.study.find_study import folders_with_ids

    annotators = list(dict.fromkeys(answer.annotator for answer in tool_answers.answers if answer.annotator))
    ids = {answer.id for answer in tool_answers.answers}
    n_skipped = sum(answer.value is None for answer in tool_answers.answers)
    # The only column is that of the ids.
    folders = list(_prefer_same_folder(file, folders_with_ids({"": ids}, (Path(), file.parent))))
    described = {
        "file": str(file),
        "tool": tool_answers.tool,
        "answers": len(tool_answers.answers),
        "items": len(ids),
        "skipped": n_skipped,
        "annotators": annotators,
        "belongs_to": list(map(str, folders)),
    }
    by = f" by {', '.join(annotators[:_MAX_ANNOTATORS_LISTED])}" if annotators else ""
    if len(annotators) > _MAX_ANNOTATORS_LISTED:
        by += " …"
    next_steps: list[Part] = []
    for source in folders:
        if not source.is_dir():
            next_steps.append(_estimate_command(source, file))
            continue
        annotator_words: list[str] = []
        if not annotators:
            annotator_words, advice = annotator_option(source)
            next_steps += advice
        next_steps.append(("study", "import", source, file, *annotator_words, "--dry-run"))
    not_found = (
        "No matching study or sample was found here. Run the command again in its folder, or type "
        "`stratal study import STUDY FILE --dry-run` or `stratal estimate SAMPLE FILE`."
    )
    counts = f"{len(tool_answers.answers):,} answers to {len(ids):,} items{by} ({n_skipped:,} skipped)"
    line = f"{file}: {TOOLS[tool_answers.tool].title}, {counts}."
    notes = [f"Note: {note}." for note in tool_answers.notes]
    return Result(described, line, notes, next_steps or not_found)
