"""`stratal plan`: what a budget will buy."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import structs

import stratal
from stratal.cli.command import Option, argument, command, given, part, words
from stratal.cli.draw import PlanFile, SharedDrawOptions
from stratal.cli.options import Number, Planning, Reading, Text, Whole
from stratal.cli.output import Result
from stratal.cli.parsing import listed, place
from stratal.errors import InputError

if TYPE_CHECKING:
    from stratal.planning.plan import Plan


ALONE = "population_size rate equal_answers"
EITHER = "file detect power budget half_width confidence_level details value calibrate_by indifference"

NOT_SELECTING = """proxy groups by features predicted margin softmax missing label history
    half_width detect labels looks strata stratify allocation minimum assume outcome bounds output"""


class PlanOptions(Planning, frozen=True, kw_only=True):
    """The options of `plan`: with a file, or with the number of units alone.

    Parameters
    ----------
    population_size : int
        Plan without a file: units in all.
    rate : float
        Without a file: the share that is expected to be right.
    detect : float
        The difference that is to show, of two models (--estimand difference:A,B with a file), of two versions
        or of a kappa.
    equal_answers : float, default as if they erred independently
        With --detect, without a file: share of items on which both answer alike.
    power : float
        With --detect: the chance that it shows.
    labels : paths
        Labels to promise by, of an earlier sample of FILE or, with the proxy's column, of other units; may be
        repeated.
    value : str, default label
        Column of the label, in --labels.
    calibrate_by : COL
        Learn from --labels what the proxy is worth in each category of this column by itself.
    output : FILE
        Write the plan, which `draw` takes: plan.json.
    details : bool
        Print the designs, the strata and all notes, after the answer.
    select : bool
        How many labels `stratal select` will need to find the best of the models in --answers.
    indifference : float
        How much worse than the best the winner may be.

    Examples
    --------
    >>> PlanOptions(population_size=1000).assume
    'conservative'
    """

    file: Annotated[Path, argument("FILE", "Predictions; none with --population-size.", parser=place)] = None  # type: ignore[assignment]
    population_size: Whole = None
    rate: float = 0.5
    detect: Annotated[Number, Option(needs="without --budget or --half-width")] = None
    equal_answers: Annotated[Number, Option(needs="with --detect")] = None
    power: Annotated[float, Option(needs="with --detect")] = 0.8
    labels: list[Path] | None = None
    value: Annotated[Text, Option(needs="with --labels")] = None
    calibrate_by: Annotated[Text, Option(needs="with --labels")] = None
    output: Path | None = None
    details: bool = False
    select: Annotated[bool, Option(needs="with --answers")] = False
    indifference: Annotated[float, Option(needs="with --select")] = 0.01


OF_A_FILE = " ".join(
    name for name in PlanOptions.__struct_fields__ if name not in f"{ALONE} {EITHER}".split()
)


@command(
    PlanOptions,
    without="show",
    needs={OF_A_FILE: "with FILE", ALONE: "without FILE", NOT_SELECTING: "without --select"},
)
def plan(requested: PlanOptions) -> Result:
    """Say what a budget will buy, before any label is bought.

    Compares designs and estimators by their expected standard error, recommends one, and shows how many
    units of each stratum would be labelled. With --half-width it finds the budget instead: one that will do
    even if the proxy is off (--assume). To draw a pilot first is cheaper, and it is what `stratal draw
    --half-width` does.

    With --labels, of an earlier sample or a pilot, what is expected follows from what they show of the proxy
    instead of its own word.
    """
    from stratal.planning.detecting import plan_to_detect, width_to_detect
    from stratal.planning.planner import plan_for_rate
    from stratal.report.pages import detection_page, plan_page

    page, shows = partial(plan_page, details=requested.details), None
    if requested.file is None and requested.detect is not None:
        known = given(requested, *ALONE.split(), "power", "confidence_level")
        return Result(plan_to_detect(requested.detect, **known), detection_page)
    if requested.file is None:
        size = requested.population_size
        if size is None:
            ways = "FILE --budget N, --population-size N --rate R --budget N, or --detect D --rate R"
            raise InputError("there is nothing to plan for", allowed=ways)
        known = given(requested, "budget", "half_width", "confidence_level")
        return Result(plan_for_rate(size, requested.rate, **known).to_dict(), page)
    if requested.select:
        return _selection(requested)
    if requested.detect is not None:
        width = width_to_detect(requested.detect, requested.power, requested.confidence_level)
        width = float(f"{width:.4g}")  # as one types it
        chance = f"with a chance of {requested.power:g} at ± {width:.3g}"
        shows = f"A difference of {requested.detect:g} shows {chance}."
        requested = structs.replace(requested, half_width=width)
    requested = structs.replace(requested, by=requested.by or requested.calibrate_by)
    made = requested.plan(**_learned(requested))
    # A half-width is drawn for by a pilot, unless there are labels already; these may also recommend another
    # design than the proxy alone.
    wanted: dict[str, Any] = structs.asdict(part(Planning, requested)) | {"assume": "conservative"}
    if requested.half_width is None or requested.labels:
        # A budget of money is more than the number of labels.
        budget = requested.budget if made.allocation.method == "cost-optimal" else made.budget
        wanted |= {"budget": budget, "half_width": None}
    design = made.recommended.design if requested.labels else "auto"
    options = SharedDrawOptions(**wanted, design=design)
    drawing = words(options)
    if requested.output is not None:
        _write(requested.output, options, made)
        drawing = [str(requested.output)]
    drawing += ["--seed", "7", "--output", new_folder("audit")]
    every = made.half_width is not None and made.budget == made.population_size
    about = "No sample short of all units reaches this half-width." if every else None
    return Result(made.to_dict(), shows, page, about, ("draw", *drawing))


def _learned(requested: PlanOptions) -> dict[str, Any]:
    """Return the earlier labels, and their units where the file holds the proxy's column too."""
    from stratal.tables.small_table import SmallTable

    if not requested.labels:
        return {}
    reading, units = requested.for_planning, None
    columns = {*listed(reading.proxy), *reading.group_names} if reading.proxy else {None}
    others = [path for path in requested.labels if columns <= set(SmallTable.of(path, str(path)).lists)]
    if others:
        same = given(reading, "id", "proxy", "groups", "by", "bounds", "margin")
        units = Reading(file=others[0], **same).population()
    name = requested.id or "id" if units is None else units.id_name
    labels = stratal.read_labels(*requested.labels, id_name=name, value=requested.value, **requested.counted)
    return {"labels": labels, "labelled_units": units, "calibrate_by": requested.calibrate_by}


def _selection(requested: PlanOptions) -> Result:
    """Say how many labels it takes to find the best of several models."""
    from stratal.cli.draw import SelectOptions, answers_as_groups
    from stratal.planning.selection import expected_labels
    from stratal.report.text import Page

    reading = answers_as_groups(requested)
    found = expected_labels(
        reading.population(),
        reading.group_names,
        requested.confidence_level,
        requested.indifference,
        criterion=requested.estimand or "accuracy",
    )
    few, many, most = (f"{found[name]:,}" for name in ("optimistic", "conservative", "most"))
    lines = [
        f"The best of {found['models']} models within {requested.indifference:g}: about {few} labels if "
        f"others are clearly worse, {many} if all are equally good, {most} at most, "
        f"of {found['population_size']:,} units."
    ]
    read_by = "file id answers delimiter remote engine threads memory"
    shared = f"{read_by} budget confidence_level indifference estimand positive"
    following = SelectOptions(**given(requested, *shared.split()))
    typed = (*words(following), "--output", new_folder("round1"))
    return Result(found, Page(lines=lines), ("select", *typed))


def _write(path: Path, options: SharedDrawOptions, made: Plan) -> None:
    """Write a plan, over an earlier one at most."""
    from stratal.designs.files import replacing

    if path.suffix.lower() != ".json":
        raise InputError("--output is a JSON file", given=path, allowed="such as plan.json")
    if path.exists() and PlanFile.read(path) is None:
        raise InputError(f"{path}: exists and is not a plan", action="Choose another --output.")
    text = PlanFile.of(options, made.population).text(path.parent)
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")


def new_folder(name: str) -> str:
    """Return the name of a folder that does not exist or is empty: `audit`, `audit-2`, …

    Examples
    --------
    >>> new_folder("nowhere-at-all")
    'nowhere-at-all/'
    """
    number, chosen = 1, name
    while Path(chosen).exists() and not (Path(chosen).is_dir() and not any(Path(chosen).iterdir())):
        number += 1
        chosen = f"{name}-{number}"
    return f"{chosen}/"
