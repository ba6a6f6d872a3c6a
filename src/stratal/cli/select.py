"""`stratal select`: which model is best, with labels only where they disagree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import structs

import stratal
from stratal.cli.command import Option, argument, command, given, part
from stratal.cli.draw import PlanFile, SharedDrawOptions, file_unknown, population_again
from stratal.cli.options import ConfidenceLevel, Reading, Seed, Text, Whole
from stratal.cli.output import Result, progress
from stratal.cli.parsing import joined, mapping, place
from stratal.errors import InputError

if TYPE_CHECKING:
    from stratal import Selection


_FIRST = "answers budget confidence_level indifference estimand positive seed show"
"""Options of a first round, which a sample carries itself."""


class SelectOptions(Reading, frozen=True, kw_only=True):
    """The options of `select`: which models, when to stop, where to write, and how to go on.

    Parameters
    ----------
    output : DIR
        Directory for the units to label; must be empty or not exist. With --extend, only look without it.
    answers : COL,… or PATTERN
        The models' answers: 'answer_*'.
    budget : int
        Labels at most.
    indifference : float
        How much worse than the best the winner may be.
    estimand : str, default accuracy
        What the best is best in: accuracy, preference (labels name the column of the preferred model, or say
        tie), or a metric of classes such as f1, balanced_accuracy or mcc.
    extend : DIR
        The folder of the last round, or its sample, to go on from.
    labels : paths
        Labels of all rounds so far, for --extend; may be repeated.
    value : str, default label
        Column of the label, for --extend.
    positive : LABEL
        The class of a metric; else the average over classes.
    map : LABEL=NUMBER,…
        What labels count as: a class (kitty=cat), or no answer (unsure=).
    additional : int, default 50, then a quarter of those drawn
        Units of the next round.

    Examples
    --------
    >>> SelectOptions(file=Path("p.csv"), answers="answer_*").indifference
    0.01
    """

    file: Annotated[Path, argument("FILE", "The models' answers; none with --extend.", parser=place)] = None  # type: ignore[assignment]
    answers: Text = None
    output: Path | None = None
    budget: Whole = None
    confidence_level: ConfidenceLevel = 0.95
    indifference: float = 0.01
    estimand: Text = None
    positive: Text = None
    seed: Seed = 0
    extend: Path | None = None
    labels: Annotated[list[Path] | None, Option(needs="with --extend")] = None
    value: Annotated[Text, Option(needs="with --extend")] = None
    map: Annotated[Text, Option(needs="with --extend")] = None
    additional: Whole = None


def answers_as_groups(requested: Reading) -> Reading:
    """Return how to read a file with the columns of the models' answers as groups, and nothing else."""
    from stratal.population.declaration import columns_fitting
    from stratal.tables.readers import open_table

    if requested.file is None or requested.answers is None:
        ways = "FILE --answers 'answer_*', or --extend DIR --labels FILE"
        raise InputError("there is nothing to select from", allowed=ways)
    reading: Any = requested.of_file
    existing = list(open_table(requested.file, reading).names)
    file, own = str(requested.file), (requested.id or "",)
    names = columns_fitting("answers", requested.answers, existing, file, own)
    return structs.replace(
        part(Reading, requested), groups=joined(*names), answers=None, predicted=None, proxy=None
    )


@command(
    SelectOptions,
    without="proxy groups by features predicted bounds margin softmax missing label history",
    needs={_FIRST: "without --extend (in a first round)"},
)
def select(requested: SelectOptions) -> Result:
    """Find the best of several models, with labels only for units on which their answers differ.

    Writes a first round as `draw` does: sample.parquet, and to_label.csv, whose column `label` takes the
    right answers. With --extend and --labels it says which models can still be the best and writes the next
    round, until the winner is known: however often one looks, it is further than the indifference below the
    best with probability 1 − confidence at most.
    """
    from stratal.designs.handover import empty_folder, write_handover

    output = requested.output
    if output is not None:
        empty_folder(output)
    elif requested.extend is None:
        raise InputError("--output is missing", action="Say where the units to label go: --output round1/.")
    if requested.extend is None:
        reading = answers_as_groups(requested)
        with progress("reading and drawing"):
            selection = stratal.select(
                reading.population(),
                reading.group_names,
                criterion=requested.estimand or "accuracy",
                confidence=requested.confidence_level,
                **given(requested, "indifference", "budget", "positive", "additional", "seed"),
            )
    else:
        reading, selection = _next(requested, requested.extend)
    found, page = selection.to_dict(), selection._page()
    if selection.done or output is None:
        return Result(found, page)
    options = SharedDrawOptions(**structs.asdict(reading), seed=selection.sample.seed)
    written = write_handover(selection.sample, output, PlanFile.of(options, None).text(output))
    found |= {"sample": str(written.sample), "to_label": str(written.to_label), "new": written.new}
    labels = [word for path in (*(requested.labels or []), written.to_label) for word in ("--labels", path)]
    folder = str(output).rstrip("/")
    stem = folder.rstrip("0123456789")
    following = f"{stem}{int(folder[len(stem) :]) + 1}" if stem != folder else f"{folder}-2"
    line = f"To label: {written.to_label}  ({written.new} units: fill in the column `label`)"
    return Result(found, page, line, ("select", "--extend", output, *labels, "--output", f"{following}/"))


def _next(requested: SelectOptions, extend: Path) -> tuple[Reading, Selection]:
    """Return how the answers were read, and the selection with the labels so far."""
    from stratal.designs.handover import SAMPLE_NAME

    if not requested.labels:
        raise InputError("--extend needs the labels so far", allowed="--extend DIR --labels FILE")
    place = extend / SAMPLE_NAME if extend.is_dir() else extend
    earlier, plan = stratal.Sample.read(place), PlanFile.beside(place)
    reading = part(Reading, requested)
    if requested.file is None:
        if plan is None:
            raise file_unknown(extend)
        reading = part(Reading, plan.options)
    meant = mapping("--map", requested.map)
    given = stratal.read_labels(
        *requested.labels, id_name=earlier.id_name, value=requested.value, mapping=meant
    )
    with progress("reading and drawing"):
        selection = stratal.Selection.resume(earlier, population_again(reading, earlier))
        return reading, selection.update(given, requested.additional)
