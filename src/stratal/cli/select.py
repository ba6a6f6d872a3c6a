"""`stratal select`: find the best of several models with few labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import structs

import stratal
from stratal.cli.command import Option, argument, command, options_of, selected_fields
from stratal.cli.conditions import with_any, without_all
from stratal.cli.draw_options import SharedDrawOptions
from stratal.cli.options import ConfidenceLevel, Reading, Seed, Text, Whole
from stratal.cli.output import Result, show_progress
from stratal.cli.parsing import join_names, parse_mapping, parse_path
from stratal.cli.plan_file import PlanFile
from stratal.cli.reading_again import connection_words, read_population_again, unknown_file_error, value_words
from stratal.errors import InputError

if TYPE_CHECKING:
    from stratal import Selection


# Options of a first round, which the sample stores.
_FIRST_ROUND = "answers budget confidence_level indifference estimand positive seed show"


class SelectOptions(Reading, frozen=True, kw_only=True):
    """The options of `select`.

    Parameters
    ----------
    output : DIR
        Directory for the units to label; it must be empty or must not exist yet. Without it, --extend only
        prints the result.
    answers : COL,… or PATTERN
        Columns of the models' answers, such as 'answer_*'.
    budget : int
        Maximum number of labels.
    indifference : float
        Largest accepted difference between the selected model and the best one.
    estimand : str, default accuracy
        Criterion: accuracy, preference (labels name the column of the preferred model, or tie), or a metric
        of classes such as f1, balanced_accuracy or mcc.
    extend : DIR
        Folder or sample of the last round.
    labels : paths
        Labels of all earlier rounds, for --extend; may be repeated.
    value : str, default label, or one column for each model
        Column of the label, for --extend. Instead of labels, the file may have one column per model,
        named after the model, with 1 (right) or 0 (wrong).
    positive : LABEL
        Class of the metric; without it, the average over classes.
    map : LABEL=NUMBER,…
        Values of labels: a class (kitty=cat) or no answer (unsure=).
    same_rows : bool
        Accept labels that have row numbers as ids and no column sample_token.
    additional : int, default 50, then a quarter of those drawn
        Number of units of the next round.
    """

    file: Annotated[
        Path, argument("FILE", "File of the models' answers; leave it out with --extend.", parser=parse_path)
    ] = None  # type: ignore[assignment]
    answers: Text = None
    output: Path | None = None
    budget: Whole = None
    confidence_level: ConfidenceLevel = 0.95
    indifference: float = 0.01
    estimand: Text = None
    positive: Text = None
    seed: Seed = 0
    extend: Path | None = None
    labels: Annotated[list[Path] | None, Option(needs=(with_any("extend"),))] = None
    value: Annotated[Text, Option(needs=(with_any("extend"),))] = None
    map: Annotated[Text, Option(needs=(with_any("extend"),))] = None
    same_rows: Annotated[bool, Option(needs=(with_any("extend"),))] = False
    additional: Whole = None


def answers_as_groups(requested: Reading) -> Reading:
    """Return the options to read a file with the models' answers as groups, without other columns."""
    from stratal.population.column_names import match_columns
    from stratal.tables.readers import open_table

    if requested.file is None or requested.answers is None:
        usage = "FILE --answers 'answer_*', or --extend DIR --labels FILE"
        raise InputError("the file of the models' answers is missing", allowed=usage)
    source_keywords: Any = requested.source_keywords
    existing = list(open_table(requested.file, source_keywords).names)
    file = str(requested.file)
    id_columns = (requested.id or "",)
    names = match_columns("answers", requested.answers, existing, file, id_columns)
    reading = options_of(Reading, requested)
    return structs.replace(reading, groups=join_names(*names), answers=None, predicted=None, proxy=None)


@command(
    SelectOptions,
    without="proxy predicts groups by features predicted bounds margin softmax missing label history",
    needs={_FIRST_ROUND: without_all("extend", reason="in a first round")},
)
def select(requested: SelectOptions) -> Result:
    """Find the best of several models with few labels.

    Only units on which the answers differ are labelled.

    Writes a first round like `draw`: sample.parquet, and to_label.csv for the correct answers. With --extend
    and --labels it prints which models may still be the best, and writes the next round, until one model is
    left. With the stated confidence, the selected model is at most --indifference worse than the best,
    whatever the number of rounds.
    """
    from stratal.designs.labelling_files import require_empty_folder, write_labelling_folder

    output = requested.output
    if output is not None:
        require_empty_folder(output)
    elif requested.extend is None:
        raise InputError(
            "--output is missing", action="Name a directory for the units to label: --output round1/."
        )
    if requested.extend is None:
        reading = answers_as_groups(requested)
        with show_progress("reading and drawing"):
            selection = stratal.select(
                reading.population(),
                reading.group_names,
                criterion=requested.estimand or "accuracy",
                confidence=requested.confidence_level,
                **selected_fields(requested, "indifference", "budget", "positive", "additional", "seed"),
            )
    else:
        reading, selection = _resume(requested, requested.extend)
    described = selection.to_dict()
    page = selection._page()
    if selection.done or output is None:
        return Result(described, page)
    options = SharedDrawOptions(**structs.asdict(reading), seed=selection.sample.seed)
    written = write_labelling_folder(selection.sample, output, PlanFile.of(options, None).text(output))
    described |= {"sample": str(written.sample), "to_label": str(written.to_label), "new": written.n_to_label}
    label_files = [*(requested.labels or []), written.to_label]
    label_words = [word for path in label_files for word in ("--labels", path)]
    label_format = selection.sample.question.outcome.label_format
    instruction = "fill in the column `label`"
    if label_format is not None:
        instruction += f" with {label_format}"
    line = f"To label: {written.to_label}  ({written.n_to_label} units: {instruction})"
    label_words += value_words(requested.value)
    output_words = (*connection_words(reading), "--output", f"{_next_folder(output)}/")
    return Result(described, page, line, ("select", "--extend", output, *label_words, *output_words))


def _next_folder(output: Path) -> str:
    """Return the folder of the next round: `round2` after `round1`, and `audit-2` after `audit`."""
    folder = str(output).rstrip("/")
    stem = folder.rstrip("0123456789")
    if stem == folder:
        return f"{folder}-2"
    return f"{stem}{int(folder[len(stem) :]) + 1}"


def _resume(requested: SelectOptions, extend: Path) -> tuple[Reading, Selection]:
    """Return the options with which the models' answers were read, and the selection with the new labels."""
    from stratal.designs.labelling_files import SAMPLE_NAME
    from stratal.labels.label_files import read_labels_or_verdicts

    if not requested.labels:
        raise InputError("--extend requires the existing labels", allowed="--extend DIR --labels FILE")
    path = extend / SAMPLE_NAME if extend.is_dir() else extend
    sample = stratal.Sample.read(path)
    plan = PlanFile.next_to(path)
    reading = options_of(Reading, requested)
    if requested.file is None:
        if plan is None:
            raise unknown_file_error(extend)
        reading = options_of(Reading, plan.options)
    options: Any = {
        "id_name": sample.question.id,
        "mapping": parse_mapping("--map", requested.map),
        "same_rows": requested.same_rows,
    }
    with show_progress("reading and drawing"):
        population = read_population_again(reading, sample, options_of(Reading, requested))
        selection = stratal.Selection.resume(sample, population)
        if requested.value is None:
            labels = read_labels_or_verdicts(*requested.labels, models=selection.models, **options)
        else:
            labels = stratal.read_labels(*requested.labels, value=requested.value, **options)
        return reading, selection.update(labels, requested.additional)
