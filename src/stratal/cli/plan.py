"""`stratal plan`: what a budget will buy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from msgspec import structs

from stratal.cli.command import argument, command, option, part, words
from stratal.cli.options import Number, Planning, Positive, Text, Whole
from stratal.cli.output import Result
from stratal.cli.parsing import place
from stratal.errors import InputError

OF_A_FILE = """id proxy groups by features predicted proxy_bounds second_moment margin delimiter directory
    softmax missing label remote engine master threads memory progress strata stratify allocation minimum
    assume residual_sd estimand labels"""


class PlanOptions(Planning, frozen=True, kw_only=True):
    """The options of `plan`: with a file, or with the number of units alone.

    Parameters
    ----------
    population_size : int
        Plan without a file: units in all.
    rate : float
        With --population-size: the share that is expected to be right.
    labels : paths
        Labels of an earlier sample of FILE, to promise by; may be repeated.
    value : str
        Column of the label, in --labels.

    Examples
    --------
    >>> PlanOptions(population_size=1000).assume
    'cautious'
    """

    file: Annotated[Path, argument("FILE", "Predictions; none with --population-size.", parser=place)] = None  # type: ignore[assignment]
    population_size: Whole = None
    rate: Annotated[Number, option(shown="0.5")] = None
    labels: list[Path] | None = None
    value: Annotated[Text, option(shown="label")] = None
    positive: Positive = None


@command(
    PlanOptions,
    without="show",
    needs={OF_A_FILE: "with FILE", "value positive": "with --labels"},
)
def plan(asked: PlanOptions) -> Result:
    """Say what a budget will buy, before any label is bought.

    Compares designs and estimators by their expected standard error, recommends one, and shows how many
    units of each stratum would be labelled. With --half-width it finds the budget instead: one that will do
    even if the proxy is off (--assume). To draw a pilot first is cheaper, and it is what `stratal draw
    --half-width` does.

    With --labels, of an earlier sample or a pilot, what is expected follows from what they show of the proxy
    instead of its own word.
    """
    from stratal.report import plan_page

    if asked.file is None:
        return Result(_without_file(asked), plan_page)
    found = _with_file(asked)
    wanted = structs.replace(part(Planning, asked), assume="cautious")
    if wanted.half_width is None or asked.labels:
        wanted = structs.replace(wanted, budget=found["budget"], half_width=None)
    # Labels may recommend another design than the proxy alone.
    design = ["--design", found["recommended"]["design"]] if asked.labels else []
    drawing = ("draw", asked.file, *words(wanted), *design, "--seed", 7, "--output", new_folder("audit"))
    return Result(found, plan_page, drawing)


def _with_file(asked: PlanOptions) -> dict[str, Any]:
    """Plan for the units of a file."""
    if asked.population_size is not None or asked.rate is not None:
        raise InputError(
            "--population-size and --rate are for plans without a file",
            given=asked.file,
            action="Leave FILE out.",
        )
    return asked.plan(earlier=(asked.labels, asked.value, asked.positive) if asked.labels else None).to_dict()


def _without_file(asked: PlanOptions) -> dict[str, Any]:
    """Plan from a number of units and a guessed rate."""
    from stratal.planning.plan import WORST_RATE, plan_for_rate

    if asked.population_size is None:
        raise InputError(
            "there is nothing to plan for",
            allowed="FILE --budget N, or --population-size N --rate R --budget N",
        )
    return plan_for_rate(
        asked.population_size,
        WORST_RATE if asked.rate is None else asked.rate,
        budget=asked.budget,
        half_width=asked.half_width,
        confidence_level=asked.confidence_level,
    ).to_dict()


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
