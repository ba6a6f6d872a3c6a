"""`stratal doctor`: what a file seems to be, and the exact commands to go on with."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stratal.cli import options as o
from stratal.cli.evidence import LABEL
from stratal.cli.export import whose
from stratal.cli.inspect import inspect
from stratal.cli.output import print_json, print_next, print_page, print_text
from stratal.errors import InputError

if TYPE_CHECKING:
    from stratal.labels.exchange.exchange import Answers
    from stratal.labels.label_table import AnswerColumn
    from stratal.tables.small_table import SmallTable


def doctor(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Any file of predictions, of a log, or of labels.")
    ],
    json: o.Json = False,
) -> None:
    """Say what a file seems to be, and which command to type next.

    Predictions and logs of evaluation tools are shown as by `inspect`. Answers from an annotation tool are
    counted, and the study or the sample that they belong to is looked for here and beside the file.
    """
    from stratal.study.finding import homes_of

    if file.is_dir() and (_say_folder(file, json=json) or _say_logs(file, json=json)):
        return
    found = _answers(file)
    homes = [] if found is None else homes_of({said.id for said in found.said}, (Path(), file.parent))
    if found is not None and (homes or found.tool not in _TABLES):
        _say(file, found, homes, json=json)
    elif not _say_table(file, json=json):
        inspect(file=file, json=json)


_TABLES = ("csv", "excel", "jsonl")
"""Files that may be predictions as well, unless their ids are those of a study or a sample."""


_MODELS = 10
"""Rows of one item at most, for each of the models that were judged."""

_LARGEST = 20_000_000
"""Bytes; a file of labels is smaller, and reading one of predictions whole takes its time."""


def _answers(file: Path) -> Answers | None:
    """Return the answers in a file, None for a file that holds none."""
    from stratal.labels.exchange.tools import read_answers, tool_of

    if not file.exists() or (file.is_dir() and tool_of(file) is None):
        return None
    if file.is_file() and file.stat().st_size > _LARGEST:
        return None
    own = file.suffix.lower() in (".json", ".jsonl", ".ndjson") and tool_of(file) is not None
    try:
        return read_answers(file)
    except InputError:
        if own or file.is_dir():
            raise
        return None


def _say_folder(folder: Path, *, json: bool) -> bool:
    """Say what a study's folder or a drawn sample's is, and what comes next; False for any other folder."""
    from stratal.designs.handover import SAMPLE_NAME, TO_LABEL_NAME
    from stratal.study.database import DATABASE

    if (folder / DATABASE).is_file():
        kind, words = "a study", ("status", folder)
    elif (folder / SAMPLE_NAME).is_file():
        kind, words = "a sample", ("doctor", folder / TO_LABEL_NAME)
    else:
        return False
    if json:
        print_json({"folder": str(folder), "kind": kind.split()[1]})
        return True
    print_text(f"{folder}: the folder of {kind}.")
    print_next(*words)
    return True


def _say_logs(folder: Path, *, json: bool) -> bool:
    """Say which logs of evaluation tools a folder holds; False if none, or if it is itself a data set."""
    from stratal.tables.logs.hugging_face import STATE
    from stratal.tables.logs.reading import logs_below

    found = {} if (folder / STATE).exists() else logs_below(folder)
    if not found:
        return False
    if json:
        print_json({"folder": str(folder), "logs": {str(path): tool for path, tool in found.items()}})
        return True
    print_text(f"{folder}: {len(found):,} logs of evaluation tools.")
    print_text(*(f"  {path}  ({tool})" for path, tool in found.items()))
    print_next("doctor", next(iter(found)))
    return True


def _table(file: Path) -> SmallTable | None:
    """Return a small table, None for anything else, a sample and an evaluation tool's log too."""
    from stratal.tables.small_table import SmallTable

    if not file.is_file() or file.stat().st_size > _LARGEST:
        return None
    try:
        table = SmallTable.of(file, str(file))
    except InputError:
        return None
    is_sample = {"stratum", "inclusion_probability", "round"} <= set(table.lists)
    return None if is_sample or table.log is not None else table


def _say_table(file: Path, *, json: bool) -> bool:
    """Say what to do with a table of labels, of a sample nearby or from elsewhere; False for other tables."""
    from stratal.labels.label_table import AnswerColumn
    from stratal.study.finding import homes_by_values

    table = _table(file)
    if table is None:
        return False
    answers = AnswerColumn.of(table)
    homes = homes_by_values(table.distinct_texts(_MODELS), (Path(), file.parent))
    if homes:
        _say_homes(file, answers, homes, json=json)
        return True
    if answers.name is not None and not answers.filled and not json:
        print_text(f"{file}: nothing is filled in yet, {answers.name!r} is empty in every row.")
    if json:
        return False
    own = answers.counted and answers.name == LABEL
    unnamed = answers.human is not None and (answers.name is None or answers.predicted is not None)
    return ((own or unnamed) and answers.model is None and _say_labelled(file, answers)) or _say_strata(
        file, table
    )


def _say_homes(file: Path, answers: AnswerColumn, homes: dict[Path, str], *, json: bool) -> None:
    """Say whose items a table holds, each home with its column of ids, and what is to be done with it."""
    if json:
        described = {"rows": answers.rows, "answers": answers.filled, "belongs_to": list(map(str, homes))}
        print_json({"file": str(file), **described, "id": next(iter(homes.values()))})
        return
    for home, ids in homes.items():
        print_text(f"{file}: {answers.rows:,} rows, items of {home} by the column {ids!r}.")
        _go_on(file, answers, home, ids)


def _go_on(file: Path, answers: AnswerColumn, home: Path, ids: str) -> None:
    """Print the command that takes a table of labels, or what is missing before."""
    from stratal.tables.logs.log import ID_NAMES

    named = [] if ids in ID_NAMES else ["--id", ids]
    words = [str(word) for word in ("import" if home.is_dir() else "estimate", home, file, *named)]
    others = [name for name in answers.others if name != ids]
    if answers.name is None and len(others) > 1 and not home.is_dir():
        print_next(*words, "--compare", ",".join(others))
    elif answers.name is None:
        print_text(
            "No column is called 'label': rename that of the answers, or name it: estimate … --value COL."
        )
    elif not answers.filled:
        print_text(f"Nothing is filled in yet: {answers.name!r} is empty in every row. Once it is filled in:")
        print_text(f"  {shlex.join(['stratal', *words])}")
    elif home.is_dir():
        print_next(*words, *whose(home), "--dry-run")
    else:
        print_next(*words, *_model(answers.model), *_classes(answers, home))


def _classes(answers: AnswerColumn, sample: Path) -> list[str]:
    """Return the option that compares labels with the model's answers, where both are of the same classes."""
    from stratal.designs.sample import Sample

    drawn = Sample.read(sample)
    if drawn.predicted is None or answers.texts.isdisjoint(drawn.groups[drawn.predicted].tolist()):
        return []
    return ["--predicted", drawn.predicted]


def _model(column: str | None) -> list[str]:
    """Return the option that names the column of the models in a long table."""
    return [] if column is None else ["--model", column]


def _say_labelled(file: Path, answers: AnswerColumn) -> bool:
    """Say how to estimate from a table whose labels are of no sample that is known; False if it cannot be."""
    from stratal.population.inspection import describe_columns, suggestion
    from stratal.report import inspection_page

    found = describe_columns(file)
    others = [row for row in found["columns"] if row["name"] not in (answers.human, answers.predicted)]
    known = suggestion({**found, "columns": others}, None, None)
    whole = answers.filled == answers.rows
    if not whole and "--proxy" not in known:
        return False
    print_page(inspection_page({"file": str(file), **found}))
    print_text(
        "",
        f"{answers.filled:,} of {answers.rows:,} rows are labelled. To draw other units to label anyway:",
        f"  {shlex.join(['stratal', 'plan', str(file), *known])} --budget N",
    )
    words = ["estimate", "--labelled", str(file)]
    words += [] if answers.human == LABEL else ["--value", str(answers.human)]
    words += [] if answers.predicted is None else ["--predicted", answers.predicted]
    if whole and "--proxy" in known:
        print_text(
            "If the labelled ones were drawn at random from a file with the proxy of all units:",
            f"  {shlex.join(['stratal', *words, *known[:4]])} --population FILE",
        )
    print_text("If the labelled ones were drawn at random:")
    size = ["--population-size", answers.rows, "--target", "superpopulation"]
    print_next(*words, *(size if whole else known[:4]))
    return True


def _say_strata(file: Path, table: SmallTable) -> bool:
    """Say how to estimate from a sample by strata whose sizes stand in each row; False for other tables."""
    from stratal.designs.strata_sizes import sized_strata

    found = sized_strata(table)
    if found is None:
        return False
    stratum, sizes, measured = found
    print_text(
        f"{file}: {len(table):,} rows in strata by {stratum!r}, whose sizes are in {sizes!r}. If units were "
        "drawn at random in each stratum:",
    )
    if len(measured) > 1:
        print_text(f"The estimate is of {measured[0]!r}; others: --value {' or '.join(measured[1:])}.")
    print_next("estimate", "--labelled", file, "--value", measured[0], "--stratum", stratum, "--sizes", file)
    return True


def _say(file: Path, found: Answers, homes: list[Path], *, json: bool) -> None:
    """Say how many answers there are, and where they go."""
    from stratal.labels.exchange.tools import TOOLS

    people = list(dict.fromkeys(said.annotator for said in found.said if said.annotator))
    items = len({said.id for said in found.said})
    skipped = sum(said.value is None for said in found.said)
    if json:
        described = {"tool": found.tool, "answers": len(found.said), "items": items, "skipped": skipped}
        print_json(
            {"file": str(file), **described, "annotators": people, "belongs_to": list(map(str, homes))}
        )
        return
    by = f" by {', '.join(people[:5])}{' …' if len(people) > 5 else ''}" if people else ""
    print_text(
        f"{file}: {TOOLS[found.tool].title}, {len(found.said):,} answers of {items:,} items{by}, "
        f"{skipped:,} of them skips.",
        *(f"Note: {note}." for note in found.notes),
    )
    for home in homes:
        if home.is_dir():
            print_next("import", home, file, *([] if people else whose(home)), "--dry-run")
        else:
            table = _table(file) if found.tool in _TABLES else None
            print_next("estimate", home, file, *_model(None if table is None else table.find("model")))
    if not homes:
        print_text(
            "Its study or sample is not in this folder. Run this again in the folder that holds it, or type "
            "`stratal import STUDY FILE --dry-run` or `stratal estimate SAMPLE FILE`."
        )
