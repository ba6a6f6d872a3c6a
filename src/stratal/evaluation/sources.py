"""The form of the source of an evaluation: a sample, a study, a table, logs or a count."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any

from stratal.designs.labelling_files import SAMPLE_NAME, sample_file
from stratal.designs.sample import Sample
from stratal.designs.sample_file import is_sample_file
from stratal.errors import InputError, type_text
from stratal.evaluation.request import EvaluationRequest
from stratal.names import option_of
from stratal.protocols import ArrowStream, HuggingFaceDataset, JsonDict
from stratal.question.chosen_rows import ALL
from stratal.question.label_recognition import passing_metric
from stratal.question.question import SUPERPOPULATION
from stratal.randomness import id_text
from stratal.tables.files import existing_file
from stratal.tables.frames import conversion_action
from stratal.tables.logs.reading import find_log_tool, find_logs
from stratal.tables.small_table import SmallTable

# The allowed sources, for error messages.
SOURCE_FORMS = (
    "SAMPLE LABELS…; STUDY; one table with labels in some rows; logs of one evaluation tool, one for each "
    "model; or a count such as 47/50"
)

# Numbers of right answers and of all answers, such as 47/50.
_COUNT = re.compile(r"(\d+)/(\d+)")
# Largest total of a count: each unit becomes a row of a table in memory, and nobody labels more units.
_MAX_COUNT = 1_000_000


class SourceForm(Enum):
    """The form of the sample and the labels of an evaluation."""

    SAMPLE = "sample"
    STUDY = "study"
    TABLE = "table"
    LOGS = "logs"
    COUNT = "count"


def is_sample(path: Path) -> bool:
    """Return whether a path is the file of a sample, or a folder that `stratal draw` wrote."""
    return is_sample_file(sample_file(path))


def require_present(path: Path) -> None:
    """Raise an error if there is no file or folder at the path of a study or of a sample."""
    if path.suffix and not path.is_dir():
        existing_file(path)  # its error names the files that are there
    elif not path.exists():
        allowed = "the folder that `stratal study new` created, or the file that `stratal draw` wrote"
        raise InputError(f"{path} is neither a study nor a sample", allowed=allowed)


def form_of(source: Any, labels: Any = None) -> SourceForm:
    """Return the form of the source.

    Parameters
    ----------
    source, labels
        As `stratal.evaluate` takes them.

    Raises
    ------
    InputError
        If nothing is given, and for several files of which the first is neither a sample nor a study, unless
        all are logs of one evaluation tool.
    """
    if source is None:
        raise InputError("nothing to estimate from", allowed=SOURCE_FORMS)
    action = conversion_action(source)
    if action is not None:
        raise InputError("the table cannot be read", given=type_text(source), action=action)
    if isinstance(source, list | tuple):
        if not source or not all(isinstance(path, str | Path) for path in source):
            raise InputError("a list must contain paths", given=str(source)[:60], allowed=SOURCE_FORMS)
        if labels is not None and labels != []:
            problem = "a list of logs already contains its labels: labels= has no effect"
            raise InputError(problem, allowed=SOURCE_FORMS, action="Leave labels= out.")
        return _form_of_files(list(map(Path, source)))
    if isinstance(source, str | Path):
        paths = [Path(source), *_label_paths(labels)]
        return _form_of_files(paths, labels)
    if isinstance(source, Sample):
        return SourceForm.SAMPLE
    from stratal.study import Study  # loaded only where there may be one

    if isinstance(source, Study):
        return SourceForm.STUDY
    if not isinstance(source, ArrowStream | HuggingFaceDataset | dict | SmallTable):
        return SourceForm.SAMPLE
    if labels is not None:
        problem = "a table already contains its labels: labels= has no effect"
        action = "Leave out labels=, or give the sample instead."
        raise InputError(problem, allowed=SOURCE_FORMS, action=action)
    return SourceForm.TABLE


def _label_paths(labels: Any) -> list[Path]:
    """Return the files of labels; none for labels in memory."""
    if isinstance(labels, str | Path):
        return [Path(labels)]
    if isinstance(labels, list | tuple) and all(isinstance(label, str | Path) for label in labels):
        return list(map(Path, labels))
    return []


def _form_of_files(paths: Sequence[Path], labels: Any = None) -> SourceForm:
    """Return the form of files and folders, the first of which may be a sample; labels may be in memory."""
    first = paths[0]
    if first.is_dir() and not (first / SAMPLE_NAME).is_file():
        # The modules of studies are imported only for folders, which may be studies.
        from stratal.study.database import DATABASE

        if (first / DATABASE).is_file() or not find_logs(first):
            return SourceForm.STUDY
    elif is_sample(first):
        return SourceForm.SAMPLE
    elif len(paths) == 1 and not first.exists() and _COUNT.fullmatch(first.as_posix()):
        return SourceForm.COUNT
    require_present(first)
    if len(paths) == 1:
        # Labels in memory belong to a sample. If the file is not a sample, reading it raises an error.
        if labels is None or labels == []:
            return SourceForm.TABLE
        return SourceForm.SAMPLE
    tools = {path: _tool_of(path) for path in paths}
    if None not in tools.values() and len(set(tools.values())) == 1:
        return SourceForm.LOGS
    for path in paths:
        if not path.is_dir():
            existing_file(path)  # its error names the files that are there
    raise InputError(
        f"several files are given, but the first, {first}, is neither a sample nor a study",
        given=", ".join(f"{path} ({tool or 'no log'})" for path, tool in tools.items()),
        allowed=SOURCE_FORMS,
        action="The sample comes first, then its labels. For a table, the labels must be one of its "
        "columns: join them by id.",
    )


def _tool_of(path: Path) -> str | None:
    """Return the evaluation tool that wrote a log, or the logs in a folder."""
    if path.is_dir():
        return next(iter(find_logs(path).values()), None)
    if path.is_file():
        return find_log_tool(path)
    return None


def table_and_request(
    form: SourceForm, source: Any, labels: Any, request: EvaluationRequest
) -> tuple[Any, EvaluationRequest]:
    """Return the table of a source that is not a sample or a study, and the request for it."""
    if form == SourceForm.COUNT:
        return _table_of_count(str(source if isinstance(source, str | Path) else source[0]), request)
    if isinstance(source, list | tuple):
        paths = [Path(path) for path in source]
    else:
        paths = []
    if form == SourceForm.LOGS:
        return _table_of_logs(paths or [Path(source), *_label_paths(labels)], request)
    table = paths[0] if paths else source
    if isinstance(table, str | Path) and Path(table).is_dir():
        table = _only_log(Path(table))
    if isinstance(table, str | Path) and request.chosen is None:
        _refuse_labels_of_sample(Path(table))
    return table, request


def _refuse_labels_of_sample(path: Path) -> None:
    """Raise an error if the table contains the labels of a drawn sample in the same folder.

    The labelled rows are then not a simple random sample, and the estimate requires the design.
    """
    # The modules of studies are imported only for tables of labels.
    from stratal.study.find_study import MAX_ROWS_PER_ITEM, folders_with_ids

    sample = path.parent / SAMPLE_NAME
    if path == sample or not is_sample_file(sample):
        return
    rows = SmallTable.of(path, str(path))
    if sample in folders_with_ids(rows.distinct_texts(MAX_ROWS_PER_ITEM), (path.parent,)):
        raise InputError(
            f"{path} contains labels of the drawn sample {sample}, whose design the estimate requires",
            action=f"Give the sample first: stratal estimate {sample} {path}. If the rows were chosen in "
            "another way, state how: chosen= (--chosen).",
        )


def _only_log(folder: Path) -> Path:
    """Return the only log in a folder."""
    logs = find_logs(folder)
    if len(logs) != 1:
        raise InputError(
            f"{folder} contains {len(logs):,} logs",
            given=", ".join(str(path.relative_to(folder)) for path in list(logs)[:6]),
            action=f"Give the log of one model, or one log for each model. Forms: {SOURCE_FORMS}.",
        )
    return next(iter(logs))


def _table_of_count(text: str, request: EvaluationRequest) -> tuple[JsonDict, EvaluationRequest]:
    """Return a table with a label for each unit of a count such as 47/50."""
    successes, total = map(int, text.split("/"))
    if not 0 <= successes <= total or not 0 < total <= _MAX_COUNT:
        raise InputError(
            "invalid count of successes",
            given=text,
            allowed=f"K/N with 0 ≤ K ≤ N, and N from 1 to {_MAX_COUNT:,}",
        )
    table = {"label": ["success"] * successes + ["failure"] * (total - successes)}
    if request.population_size is None and request.chosen is None:
        request = replace(request, chosen=ALL)
    return table, replace(request, value="label", positive="success")


# ---- logs of several models


def _table_of_logs(
    paths: Sequence[Path], request: EvaluationRequest
) -> tuple[dict[str, list[Any]], EvaluationRequest]:
    """Return logs of several models as one table, with a row per unit and a column of scores per model."""
    files = [_only_log(path) if path.is_dir() else path for path in paths]
    logs = [SmallTable.of(path, str(path)) for path in files]
    names = _model_names(paths)
    _require_common_units(logs)
    score = request.value or _common_score(logs)
    units: dict[str, int] = {}
    for log in logs:
        for unit in map(id_text, log.columns["id"]):
            units.setdefault(unit, len(units))
    columns: dict[str, list[Any]] = {"id": list(units)}
    first_log = logs[0].log
    cluster = None if first_log is None else first_log.cluster
    for name in filter(None, (cluster, request.by)):
        columns[name] = _entries_by_unit(logs, name, units)
    for name, log in zip(names, logs, strict=True):
        columns[name] = _entries_by_unit([log], score, units)
    request = replace(request, value=None, compare=names, id="id")
    if request.population_size is None and request.chosen is None:
        # Units without a score in one of the logs count as missing.
        target = request.target or SUPERPOPULATION
        request = replace(request, population_size=len(units), target=target)
    return columns, request


def _require_common_units(logs: Sequence[SmallTable]) -> None:
    """Raise an error if a log has no unit in common with the first one."""
    first_units = set(map(id_text, logs[0].columns["id"]))
    for log in logs[1:]:
        if first_units.isdisjoint(map(id_text, log.columns["id"])):
            raise InputError(
                "the logs have no unit in common",
                given=f"{logs[0].table_name}, {log.table_name}",
                action="Give logs of one task, one for each model.",
            )


def _entries_by_unit(logs: Sequence[SmallTable], column: str, units: dict[str, int]) -> list[Any]:
    """Return the entry of a column for each unit; None if no log has one."""
    entries: list[Any] = [None] * len(units)
    for log in logs:
        for unit, entry in zip(map(id_text, log.columns["id"]), log.values(column), strict=True):
            entries[units[unit]] = entry
    return entries


def _common_score(logs: Sequence[SmallTable]) -> str:
    """Return the only score that all logs have, or the one that states whether an answer passed."""
    scores = [log.log.proxies for log in logs if log.log is not None]
    common_scores = [name for name in scores[0] if all(name in names for names in scores)]
    if len(common_scores) == 1:
        return common_scores[0]
    passing_score = passing_metric(common_scores)
    if passing_score is not None:
        return passing_score
    if common_scores:
        names = " or ".join(option_of("value", name) for name in common_scores)
        raise InputError(
            "the logs have several scores", given=", ".join(common_scores), action=f"Name one: {names}."
        )
    raise InputError(
        "the logs have no score in common",
        given="; ".join(", ".join(names) for names in scores),
        action="Give logs of one task.",
    )


def _model_names(paths: Sequence[Path]) -> tuple[str, ...]:
    """Return a different name for each log: that of its file, with as many parent folders as necessary."""
    max_depth = max(len(path.parts) for path in paths)
    for depth in range(1, max_depth + 1):
        names = ["/".join((*path.parts[-depth:-1], path.stem)) for path in paths]
        if len(set(names)) == len(names):
            return tuple(names)
    raise InputError("a log is given twice", given=", ".join(map(str, paths)), action="Give each log once.")
