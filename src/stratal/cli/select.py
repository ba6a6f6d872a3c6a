"""`stratal select`: which model is best, with labels only where they disagree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import structs

from stratal.cli.command import argument, command, option, part
from stratal.cli.draw import PlanFile, SharedDrawOptions, population_again
from stratal.cli.options import ConfidenceLevel, Reading, Seed, Text, Whole
from stratal.cli.output import Result, progress
from stratal.cli.parsing import joined, mapping, place
from stratal.errors import InputError

if TYPE_CHECKING:
    from stratal.planning.selection import Selection

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
    estimand : str
        What the best is best in: accuracy, preference (labels name the column of the preferred model, or say
        tie), or a metric of classes such as f1, balanced_accuracy or mcc.
    extend : DIR
        The folder of the last round, or its sample, to go on from.
    labels : paths
        Labels of all rounds so far, for --extend; may be repeated.
    value : str
        Column of the label, for --extend.
    map : LABEL=NUMBER,…
        What labels count as: a class (kitty=cat), or no answer (unsure=).
    additional : int
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
    estimand: Annotated[Text, option(shown="accuracy")] = None
    positive: Annotated[Text, option("The class of a metric; else the average over classes.", "LABEL")] = None
    seed: Seed = 0
    extend: Path | None = None
    labels: Annotated[list[Path] | None, option(needs="with --extend")] = None
    value: Annotated[Text, option(needs="with --extend", shown="label")] = None
    map: Annotated[Text, option(needs="with --extend")] = None
    additional: Annotated[Whole, option(shown="50, then a quarter of those drawn")] = None


def answers_as_groups(requested: Reading) -> Reading:
    """Return how to read a file with the columns of the models' answers as groups, and nothing else."""
    from stratal.population.declaration import columns_fitting
    from stratal.population.inspection import column_names

    if requested.file is None or requested.answers is None:
        raise InputError(
            "there is nothing to select from",
            allowed="FILE --answers 'answer_*', or --extend DIR --labels FILE",
        )
    existing = list(column_names(requested.file, **requested.of_file))
    names = columns_fitting(
        "answers", requested.answers, existing, str(requested.file), (requested.id or "",)
    )
    return structs.replace(
        part(Reading, requested), groups=joined(*names), answers=None, predicted=None, proxy=None
    )


@command(
    SelectOptions,
    without="proxy groups by features predicted bounds second_moment margin softmax missing label history",
    needs={_FIRST: "without --extend (in a first round)"},
)
def select(requested: SelectOptions) -> Result:
    """Find the best of several models, with labels only for units on which their answers differ.

    Writes a first round as `draw` does: sample.parquet, and to_label.csv, whose column `label` takes the
    right answers. With --extend and --labels it says which models can still be the best and writes the next
    round, until the winner is known: however often one looks, it is further than the indifference below the
    best with probability 1 − confidence at most.
    """
    from stratal.designs.handover import PLAN_NAME, SAMPLE_NAME, empty_folder, write_handover
    from stratal.designs.sample import Sample
    from stratal.labels.label_file import read_labels
    from stratal.planning.selection import Selection
    from stratal.planning.selection import select as begin

    if requested.output is not None:
        empty_folder(requested.output)
    if requested.extend is None:
        if requested.output is None:
            action = "Say where the units to label go: --output round1/."
            raise InputError("--output is missing", action=action)
        reading = answers_as_groups(requested)
        with progress("reading and drawing"):
            selection = begin(
                reading.population(),
                reading.group_names,
                requested.confidence_level,
                requested.indifference,
                requested.budget,
                criterion=requested.estimand or "accuracy",
                positive=requested.positive,
                additional=requested.additional,
                seed=requested.seed,
            )
    else:
        if not requested.labels:
            raise InputError("--extend needs the labels so far", allowed="--extend DIR --labels FILE")
        place = requested.extend / SAMPLE_NAME if requested.extend.is_dir() else requested.extend
        earlier, plan = Sample.read(place), PlanFile.read(place.parent / PLAN_NAME)
        reading = part(Reading, requested)
        if requested.file is None:
            if plan is None:
                raise InputError(
                    f"{requested.extend}: has no {PLAN_NAME}, which says where the answers are",
                    action="Give their file: stratal select FILE --extend DIR ….",
                )
            reading = part(Reading, plan.options)
        given = read_labels(
            *requested.labels,
            id_name=earlier.id_name,
            value=requested.value,
            mapping=mapping("--map", requested.map),
        )
        with progress("reading and drawing"):
            selection = Selection.resume(earlier, population_again(reading, earlier))
            selection = selection.update(given, requested.additional)
    if selection.done or requested.output is None:
        return _shown(requested, selection, None)
    options = SharedDrawOptions(**structs.asdict(reading), seed=selection.sample.seed)
    return _shown(
        requested,
        selection,
        write_handover(selection.sample, requested.output, PlanFile.of(options, None).text(requested.output)),
    )


def _shown(requested: SelectOptions, selection: Selection, written: Any) -> Result:
    """Return how the models stand, what was written, and what to type next."""
    found = selection.to_dict()
    if written is None:
        return Result(found, selection._page())
    found |= {"sample": str(written.sample), "to_label": str(written.to_label), "new": written.new}
    labels = [word for path in (*(requested.labels or []), written.to_label) for word in ("--labels", path)]
    folder = str(requested.output).rstrip("/")
    stem = folder.rstrip("0123456789")
    following = f"{stem}{int(folder[len(stem) :]) + 1}" if stem != folder else f"{folder}-2"
    return Result(
        found,
        selection._page(),
        f"To label: {written.to_label}  ({written.new} units: fill in the column `label`)",
        ("select", "--extend", requested.output, *labels, "--output", f"{following}/"),
    )
