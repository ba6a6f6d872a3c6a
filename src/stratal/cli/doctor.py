"""`stratal doctor`: what a file seems to be, and the exact commands to go on with."""

from __future__ import annotations

import shlex
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from stratal.cli.command import command, words
from stratal.cli.estimate import LABEL
from stratal.cli.options import Reading
from stratal.cli.output import Result, progress
from stratal.cli.plan import new_folder
from stratal.cli.study import whose
from stratal.errors import InputError, same_name

if TYPE_CHECKING:
    from stratal.labels.exchange import Answers
    from stratal.labels.label_table import AnswerColumn
    from stratal.tables.small_table import SmallTable


_TABLES = ("csv", "excel", "jsonl")
"""Files that may be predictions as well, unless their ids are those of a study or a sample."""

_MODELS = 10
"""Rows of one item at most, for each of the models that were judged."""

_LARGEST, _MOST_CELLS = 20_000_000, 1_000_000
"""Bytes, and cells of Parquet, which packs them; a file of labels is smaller, and reading one of predictions
whole takes its time."""


def _inspected(requested: Reading) -> Result:
    """Show the columns of a file; of what is named as a proxy, what it is as a population."""
    from stratal.population.declaration import POINT
    from stratal.population.inspection import answer_options, describe_columns, describe_proxies, suggestion
    from stratal.report.pages import inspection_page

    with progress("reading"):
        columns = describe_columns(requested.file, **requested.of_file)
        named = requested.proxy is not None or requested.groups is not None or requested.softmax is not None
        named = named or requested.answers is not None
        proxies = describe_proxies(requested.population()) if named else {}
    found = {"file": str(requested.file), **columns, **proxies}
    if columns["rows"] == 0:
        return Result(found, inspection_page, "", "There is a header and no row: nothing can be planned yet.")
    doubt = _doubt(requested, columns)
    if doubt is not None:
        return Result(found, inspection_page, "", doubt)
    suggested = suggestion(columns, requested.id, requested.proxy, requested.softmax)
    if "--proxy" not in suggested and any(POINT in note for note in columns["notes"]):
        return Result(found, inspection_page, "", f"Once these are numbers: stratal doctor {requested.file}")
    others = words(structs.replace(requested, id=None, proxy=None, softmax=None))
    models = None if requested.id is not None else columns["models"]
    file, rows, about = requested.file, columns["rows"], list[str]()
    if models is not None:
        file, about = _of_one_model(requested.file, models)
        rows //= models["count"]
    if models is None and requested.answers is None:
        suggested += answer_options(columns, requested.predicted)
    known = [file, *suggested, *others, "--budget", min(300, rows)]
    cluster = columns.get("log", {}).get("cluster")
    if cluster is None:
        return Result(found, inspection_page, about, ("plan", *known))
    together = ["--design", "clusters", "--cluster", cluster, "--seed", 7, "--output", new_folder("audit")]
    return Result(found, inspection_page, about, ("draw", *known, *together))


def _doubt(requested: Reading, columns: dict[str, Any]) -> str | None:
    """Return what is wrong with a column that is called like an id, and is nearly one; None if nothing is."""
    from stratal.tables.logs import ID_NAMES

    names = [row["name"] for row in columns["columns"] if row["distinct"] and row["name"]]
    name = next((found for one in ID_NAMES if (found := same_name(one, names)) is not None), None)
    if requested.id is not None or name is None or columns["models"] is not None or "log" in columns:
        return None
    distinct = next(row["distinct"] for row in columns["columns"] if row["name"] == name)
    if not columns["rows"] / 2 < distinct < columns["rows"]:
        return None
    try:
        structs.replace(requested, id=name, proxy=None, softmax=None).population()
    except InputError as error:
        return f"{error}"
    return None


def _of_one_model(file: Path, models: dict[str, Any]) -> tuple[Path, list[str]]:
    """Return the file with the rows of one model of a long table, and how to write it."""
    from stratal.tables.readers import COPIED, copy_of_rows

    kept = Path("one_model.parquet" if file.suffix == ".parquet" else "one_model.csv")
    about = [
        "",
        "Units to label are drawn by the rows of one model: keep those in a file of its own. To compare the",
        "models, have the answers of all of them to the drawn units labelled, one row for each answer;",
        f"`stratal estimate` distinguishes them by --model {shlex.quote(models['column'])}.",
    ]
    if COPIED & set(file.suffixes) and file.is_file():
        copied = copy_of_rows(str(file), models["column"], models["first"], str(kept))
        about += ["In Python:", f"  import duckdb; duckdb.sql({copied!r})"]
    return kept, about


@command(Reading, without="by show features second_moment")
def doctor(requested: Reading) -> Result:
    """Say what a file seems to be, and which command to type next.

    Of predictions and logs of evaluation tools the columns are shown; with --proxy they are checked as a
    population, with the proxy's quantiles. Answers from an annotation tool are counted, and the study or the
    sample that they belong to is looked for here and beside the file.
    """
    from stratal.study.opening import homes_of

    file = requested.file
    if requested != Reading(file=file):
        return _inspected(requested)
    folder = (_of_folder(file) or _of_logs(file)) if file.is_dir() else None
    if folder is not None:
        return folder
    found = _answers(file)
    ids = {} if found is None else {"": {said.id for said in found.said}}
    homes = [*_nearest(file, homes_of(ids, (Path(), file.parent)))] if ids else []
    if found is not None and (homes or found.tool not in _TABLES):
        return _of_answers(file, found, homes)
    return _of_table(file) or _inspected(requested)


def _answers(file: Path) -> Answers | None:
    """Return the answers in a file, None for a file that holds none."""
    from stratal.labels.exchange import read_answers, tool_of

    if not file.exists() or (file.is_dir() and tool_of(file) is None):
        return None
    if file.is_file() and _too_large(file):
        return None
    own = file.suffix.lower() in (".json", ".jsonl", ".ndjson") and tool_of(file) is not None
    try:
        return read_answers(file)
    except InputError:
        if own or file.is_dir():
            raise
        return None


def _too_large(file: Path) -> bool:
    """Return whether a file is too large for labels."""
    from stratal.tables.parquet import parquet_cells

    return file.stat().st_size > _LARGEST or parquet_cells(file) > _MOST_CELLS


def _of_folder(folder: Path) -> Result | None:
    """Say what a study's folder or a drawn sample's is, and what comes next; None for any other folder."""
    from stratal.designs.handover import SAMPLE_NAME, TO_LABEL_NAME
    from stratal.study.database import DATABASE

    if (folder / DATABASE).is_file():
        kind, then = "study", ["study", "status", folder]
    elif (folder / SAMPLE_NAME).is_file():
        kind, then = "sample", ["doctor", folder / TO_LABEL_NAME]
    else:
        return None
    return Result({"folder": str(folder), "kind": kind}, f"{folder}: the folder of a {kind}.", tuple(then))


def _of_logs(folder: Path) -> Result | None:
    """Say which logs of evaluation tools a folder holds; None if none, or if it is itself a data set."""
    from stratal.tables.logs import STATE, logs_below

    found = {} if (folder / STATE).exists() else logs_below(folder)
    if not found:
        return None
    return Result(
        {"folder": str(folder), "logs": {str(path): tool for path, tool in found.items()}},
        f"{folder}: {len(found):,} logs of evaluation tools.",
        [f"  {path}  ({tool})" for path, tool in found.items()],
        ("doctor", next(iter(found))),
    )


def _table(file: Path) -> SmallTable | None:
    """Return a small table, None for anything else, a sample and an evaluation tool's log too."""
    from stratal.tables.small_table import SmallTable

    if not file.is_file() or _too_large(file):
        return None
    try:
        table = SmallTable.of(file, str(file))
    except InputError:
        return None
    is_sample = {"stratum", "inclusion_probability", "round"} <= set(table.lists)
    return None if is_sample or table.log is not None else table


def _of_table(file: Path) -> Result | None:
    """Say what to do with a table of labels, of a sample nearby or from elsewhere; None for other tables."""
    from stratal.labels.label_table import AnswerColumn
    from stratal.study.opening import homes_of

    table = _table(file)
    if table is None:
        return None
    answers = AnswerColumn.of(table)
    homes = _nearest(file, homes_of(table.distinct_texts(_MODELS), (Path(), file.parent)))
    if homes:
        described = {"rows": answers.rows, "answers": answers.filled, "belongs_to": list(map(str, homes))}
        return Result(
            {"file": str(file), **described, "id": next(iter(homes.values()))},
            lambda _: [part for home, ids in homes.items() for part in _of_home(file, answers, home, ids)],
        )
    looked_at = _inspected(Reading(file=file))
    about: list[Any] = []
    if answers.name is not None and not answers.filled:
        about = [f"{file}: nothing is filled in yet, {answers.name!r} is empty in every row."]
    own = answers.counted and answers.name == LABEL
    unnamed = answers.human is not None and (answers.name is None or answers.predicted is not None)
    labelled = _labelled(file, answers) if (own or unnamed) and answers.model is None else None
    return Result(looked_at.found, *about, *(labelled or looked_at.parts))


def _nearest(file: Path, homes: dict[Path, str]) -> dict[Path, str]:
    """Return the studies and samples in the file's own folder, or all if there are none."""
    own = {
        home: ids
        for home, ids in homes.items()
        if (home if home.is_dir() else home.parent).resolve() == file.parent.resolve()
    }
    return own or homes


def _estimated(sample: Path, labels: Path, *, id: str | None = None, model: str | None = None) -> list[Any]:  # noqa: A002
    """Return the command that estimates, or what it would say is wrong."""
    from stratal.cli.estimate import EvidenceOptions, made
    from stratal.errors import StratalError

    requested = EvidenceOptions(sample=sample, labels=[labels], id=id, model=model)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made(requested)
    except StratalError as error:
        return [f"As it is, it gives no estimate: {error.args[0]}"]
    return [("estimate", sample, labels, *words(requested))]


def _of_home(file: Path, answers: AnswerColumn, home: Path, ids: str) -> list[Any]:
    """Return whose items a table of labels holds, and the command that takes it, or what is missing."""
    from stratal.tables.logs import ID_NAMES

    about: list[Any] = [f"{file}: {answers.rows:,} rows, items of {home} by the column {ids!r}."]
    named = [] if ids in ID_NAMES else ["--id", ids]
    then = (*(["study", "import"] if home.is_dir() else ["estimate"]), str(home), str(file), *named)
    others = [name for name in answers.others if name != ids]
    if answers.name is None and len(others) > 1 and not home.is_dir():
        return [*about, (*then, "--compare", ",".join(others))]
    if answers.name is None:
        rename = (
            "No column is called 'label': rename that of the answers, or name it: estimate … --value COL."
        )
        return [*about, rename]
    if not answers.filled:
        empty = f"Nothing is filled in yet: {answers.name!r} is empty in every row. Once it is filled in:"
        return [*about, empty, f"  {shlex.join(['stratal', *then])}"]
    if home.is_dir():
        who, said = whose(home)
        return [*about, *said, (*then, *who, "--dry-run")]
    return [*about, *_estimated(home, file, id=ids if named else None, model=answers.model)]


def _labelled(file: Path, answers: AnswerColumn) -> list[Any] | None:
    """Return how to estimate from labels of no sample that is known; None if it cannot be."""
    from stratal.population.inspection import describe_columns, suggestion
    from stratal.report.pages import inspection_page

    found = describe_columns(file)
    others = [row for row in found["columns"] if row["name"] not in (answers.human, answers.predicted)]
    known = suggestion({**found, "columns": others}, None, None)
    whole = answers.filled == answers.rows
    if not whole and "--proxy" not in known:
        return None
    about = [
        inspection_page({"file": str(file), **found}),
        "",
        f"{answers.filled:,} of {answers.rows:,} rows are labelled. To draw other units to label anyway:",
        f"  {shlex.join(['stratal', 'plan', str(file), *known])} --budget N",
    ]
    then = ["estimate", "--labelled", str(file)]
    then += [] if answers.human == LABEL else ["--value", str(answers.human)]
    then += [] if answers.predicted is None else ["--predicted", answers.predicted]
    if whole and "--proxy" in known:
        about += [
            "If the labelled ones were drawn at random from a file with the proxy of all units:",
            f"  {shlex.join(['stratal', *then, *known[:4]])} --population FILE",
        ]
    size = ["--population-size", answers.rows, "--target", "superpopulation"]
    return [*about, "If the labelled ones were drawn at random:", (*then, *(size if whole else known[:4]))]


def _of_answers(file: Path, found: Answers, homes: list[Path]) -> Result:
    """Say how many answers of an annotation tool there are, and where they go."""
    from stratal.labels.exchange import TOOLS

    people = list(dict.fromkeys(said.annotator for said in found.said if said.annotator))
    items = len({said.id for said in found.said})
    skipped = sum(said.value is None for said in found.said)
    described = {"tool": found.tool, "answers": len(found.said), "items": items, "skipped": skipped}
    by = f" by {', '.join(people[:5])}{' …' if len(people) > 5 else ''}" if people else ""

    def then(_: Any) -> list[Any]:
        parts: list[Any] = []
        for home in homes:
            if home.is_dir():
                who, said = ([], []) if people else whose(home)
                parts += [*said, ("study", "import", home, file, *who, "--dry-run")]
            else:
                table = _table(file) if found.tool in _TABLES else None
                model = None if table is None else table.find("model")
                parts += _estimated(home, file, model=model)
        return parts or [
            "Its study or sample is not in this folder. Run this again in the folder that holds it, or type "
            "`stratal study import STUDY FILE --dry-run` or `stratal estimate SAMPLE FILE`."
        ]

    return Result(
        {"file": str(file), **described, "annotators": people, "belongs_to": list(map(str, homes))},
        f"{file}: {TOOLS[found.tool].title}, {len(found.said):,} answers of {items:,} items{by}, "
        f"{skipped:,} of them skips.",
        [f"Note: {note}." for note in found.notes],
        then,
    )
