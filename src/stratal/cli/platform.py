"""`stratal platform …`: read units of a tracing platform, queue drawn units, read answers, write results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Struct

import stratal
from stratal.cli.command import Option, argument, command
from stratal.cli.options import Text
from stratal.cli.output import Result, show_progress
from stratal.errors import InputError
from stratal.names import split_names

if TYPE_CHECKING:
    from stratal import Sample

Source = Annotated[
    str,
    argument(
        "PLATFORM:PROJECT",
        "Platform and name of the project, such as mlflow:EXPERIMENT, phoenix:PROJECT or langfuse:PROJECT.",
    ),
]
SampleFile = Annotated[Path, argument("SAMPLE", "The sample.parquet that `draw` wrote.")]
OutputFile = Annotated[Path, Option("File to write to.", "FILE")]


class ReadOptions(Struct, frozen=True, kw_only=True):
    """The options of `platform read`.

    Parameters
    ----------
    since : DATE, default the first
        Read units from this date onwards (UTC), such as 2026-03-02 or 2026-03-02T12:00.
    until : DATE, default the last
        Read units before this date (UTC).
    """

    source: Source
    output: OutputFile
    since: Text = None
    until: Text = None


@command(ReadOptions, name="platform read")
def read(requested: ReadOptions) -> Result:
    """Read units with their scores into a JSON Lines file.

    Each page of results is saved as soon as it is read. If the command is repeated, even after an
    interruption, it appends the units that are not in the file. Answers from people on the platform are not
    read.
    """
    from stratal.tables.files import json_line
    from stratal.tables.platforms.platform import open_platform

    path = requested.output
    if path.suffix != ".jsonl":
        raise InputError(
            "the output must be a JSON Lines file", given=str(path), allowed="a name that ends in .jsonl"
        )
    since = parse_date(requested.since, "--since") or 0
    until = parse_date(requested.until, "--until")
    saved = read_saved_units(path)
    ids = {unit["id"] for unit in saved}
    n_saved_before = len(ids)
    # A further call continues after the last saved unit. Units of its moment are read again.
    if saved:
        since = max(since, max(unit["time"] for unit in saved))
    with (
        show_progress("reading"),
        open_platform(requested.source) as project,
        path.open("a", encoding="utf-8") as file,
    ):
        for page in project.read_units(since, until):
            new_units = {unit.id: unit.to_dict() for unit in page if unit.id not in ids}
            file.writelines(map(json_line, new_units.values()))
            # An interrupted call keeps all complete pages.
            file.flush()
            ids |= set(new_units)
    n_new = len(ids) - n_saved_before
    described = {"file": str(path), "units": len(ids), "new": n_new}
    return Result(described, f"{path}: {len(ids):,} units, {n_new:,} new.", ("doctor", path))


def read_saved_units(path: Path) -> list[dict[str, Any]]:
    """Return the units that an earlier call saved, and remove an incomplete last line from the file."""
    if not path.exists():
        return []
    content = path.read_bytes()
    complete = content[: content.rfind(b"\n") + 1]
    try:
        units = [json.loads(line) for line in complete.splitlines()]
    except ValueError:
        raise InputError(f"{path} is not a file of units", action="Choose another --output.") from None
    if not all(isinstance(unit, dict) and {"id", "time"} <= set(unit) for unit in units):
        raise InputError(f"{path} is not a file of units", action="Choose another --output.")
    # A call that was killed may have left half a line.
    if len(complete) < len(content):
        with path.open("r+b") as file:
            file.truncate(len(complete))
    return units


def parse_date(text: str | None, option: str) -> int | None:
    """Return a date as milliseconds since 1970."""
    from stratal.tables.platforms.platform import parse_milliseconds

    if text is None:
        return None
    try:
        return parse_milliseconds(text)
    except ValueError:
        raise InputError(f"{option} is not a date", given=repr(text), allowed="such as 2026-03-02") from None


def queue_name(sample: Sample) -> str:
    """Return the name of the queue of a sample: the same for all of its rounds, and for no other sample."""
    from stratal.tables.platforms.platform import QUEUE_PREFIX

    # Rounds add units, so that only the first one identifies the sample.
    first_round = sorted(map(str, sample.ids[sample.round == sample.round.min()].tolist()))
    return f"{QUEUE_PREFIX}{hashlib.sha256(json.dumps(first_round).encode()).hexdigest()[:12]}"


class QueueOptions(Struct, frozen=True, kw_only=True):
    """The options of `platform queue`.

    Parameters
    ----------
    choices : ANSWER,…
        Answers, such as Pass,Fail.
    question : str, default Is the answer correct?
        Question about each unit.
    """

    source: Source
    sample: SampleFile
    choices: str
    question: Text = None


@command(QueueOptions, name="platform queue")
def queue(requested: QueueOptions) -> Result:
    """Put the drawn units into a review queue on the platform.

    The queue contains the units in random order, without strata or scores. A unit is queued once, however
    often the command is repeated; a further round is added to the same queue.
    """
    from stratal.study.question import DEFAULT_QUESTION
    from stratal.tables.platforms.platform import open_platform

    sample = stratal.Sample.read(requested.sample)
    name = queue_name(sample)
    ids = [str(unit) for unit in sample.ids.tolist()]
    question = requested.question or DEFAULT_QUESTION
    with show_progress("queueing"), open_platform(requested.source) as project:
        n_new = project.queue_units(name, ids, question, split_names(requested.choices))
    next_command = ("platform", "labels", requested.source, requested.sample, "--output", "labels.csv")
    line = f"Queue {name}: {len(ids):,} units, {n_new:,} new."
    return Result({"queue": name, "n": len(ids), "new": n_new}, line, next_command)


class LabelsOptions(Struct, frozen=True, kw_only=True):
    """The options of `platform labels`."""

    source: Source
    sample: SampleFile
    output: OutputFile


@command(LabelsOptions, name="platform labels")
def labels(requested: LabelsOptions) -> Result:
    """Read the answers of the queue into a CSV file.

    The file states who answered, when, and what was skipped. It is overwritten each time.
    """
    from stratal.designs.files import replacing
    from stratal.tables.files import csv_line
    from stratal.tables.platforms.platform import open_platform

    sample = stratal.Sample.read(requested.sample)
    drawn_ids = [str(unit) for unit in sample.ids.tolist()]
    with show_progress("reading"), open_platform(requested.source) as project:
        answers = project.read_answers(queue_name(sample), drawn_ids)
    # In the order of the sample; the last answer to a unit counts.
    answers_by_id = {answer.id: answer for answer in answers}
    answers = [answers_by_id[unit] for unit in drawn_ids if unit in answers_by_id]
    rows: list[list[Any]] = [[sample.question.id, "label", "annotator", "status", "timestamp", "note"]]
    for answer in answers:
        timestamp = datetime.fromtimestamp(answer.time / 1000, UTC).isoformat()
        rows.append([answer.id, answer.label, answer.annotator, answer.status, timestamp, answer.note])
    with replacing(requested.output) as partial_file:
        partial_file.write_text("".join(map(csv_line, rows)), encoding="utf-8", newline="")
    skipped = sum(answer.label is None for answer in answers)
    labelled = len(answers) - skipped
    line = f"{requested.output}: {labelled:,} labels, {skipped:,} skipped, of {len(drawn_ids):,} units."
    described = {"file": str(requested.output), "labels": labelled, "skipped": skipped}
    return Result(described, line, ("estimate", requested.sample, requested.output))


class WriteOptions(Struct, frozen=True, kw_only=True):
    """The options of `platform write`.

    Parameters
    ----------
    map : LABEL=NUMBER,…
        Values of labels, as for `estimate`.
    confidence_level : float
        Confidence level, between 0 and 1.
    """

    source: Source
    sample: SampleFile
    labels: Annotated[Path, argument("LABELS", "File of the labels.")]
    map: Text = None
    confidence_level: float = 0.95


def _means_no_answer(label: object, mapping: Mapping[str, object] | None) -> bool:
    """Return whether the mapping of `--map` declares that a label means no answer."""
    from stratal.arrays import text_of_value

    text = text_of_value(label)
    return mapping is not None and text in mapping and mapping[text] is None


@command(WriteOptions, name="platform write")
def write(requested: WriteOptions) -> Result:
    """Write labels and the estimate to the platform.

    Each label is written as feedback on its unit, and the estimate is written as metrics. Labels and metrics
    that the platform already contains are not written again.
    """
    from stratal.cli.parsing import parse_mapping
    from stratal.evaluation import metrics_to_log
    from stratal.tables.platforms.platform import open_platform

    sample = stratal.Sample.read(requested.sample)
    labels_of_file = stratal.read_labels(requested.labels, id_name=sample.question.id)
    mapping = parse_mapping("--map", requested.map)
    evaluation = stratal.evaluate(
        requested.sample,
        [requested.labels],
        mapping=mapping,
        confidence_level=requested.confidence_level,
    )
    metrics = metrics_to_log(evaluation.estimate.to_dict(requested.confidence_level))
    labels_by_id = {}
    for unit, label in zip(labels_of_file.ids, labels_of_file.values, strict=True):
        if label is not None and not _means_no_answer(label, mapping):
            labels_by_id[str(unit)] = str(label)
    name = queue_name(sample)
    with show_progress("writing"), open_platform(requested.source) as project:
        n_new = project.write_results(name, labels_by_id, metrics)
    line = f"{name}: {len(labels_by_id):,} labels, {n_new:,} new."
    return Result({"queue": name, "labels": len(labels_by_id), "new": n_new}, line)
