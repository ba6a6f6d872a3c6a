"""`stratal plan`: what a budget will buy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from stratal.cli import options as o
from stratal.cli.output import print_json, print_next, print_page
from stratal.cli.records import takes
from stratal.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions(o.Planning):
    """The options of `plan`: with a file, or with the number of units alone.

    Examples
    --------
    >>> PlanOptions(population_size=1000).assume
    'cautious'
    """

    file: Annotated[
        Path, typer.Argument(metavar="FILE", parser=o.place, help="Predictions; none with --population-size.")
    ] = None  # type: ignore[assignment]
    population_size: Annotated[int | None, typer.Option(help="Plan without a file: units in all.")] = None
    rate: Annotated[
        float | None,
        typer.Option(
            help="With --population-size: the share that is expected to be right.", show_default="0.5"
        ),
    ] = None
    labels: Annotated[
        list[Path] | None,
        typer.Option(help="Labels of an earlier sample of FILE, to promise by; may be repeated."),
    ] = None
    value: Annotated[str, typer.Option(help="Column of the label, in --labels.")] = "label"
    positive: o.Positive = None
    json: o.Json = False


@takes(PlanOptions, without=("show",), order=o.DRAWING_ORDER)
def plan(asked: PlanOptions) -> None:
    """Say what a budget will buy, before any label is bought.

    Compares designs and estimators by their expected standard error, recommends one, and shows how many
    units of each stratum would be labelled. With --half-width it finds the budget instead: one that will do
    even if the proxy is off (--assume). To draw a pilot first is cheaper, and it is what `stratal draw
    --half-width` does.

    With --labels, of an earlier sample or a pilot, what is expected follows from what they show of the proxy
    instead of its own word.
    """
    from stratal.report import plan_page

    without_file = asked.file is None
    found = _without_file(asked) if without_file else _with_file(asked)
    if asked.json:
        print_json(found)
        return
    print_page(plan_page(found))
    if without_file:
        return
    wanted = replace(o.part(o.Planning, asked), assume="cautious")
    if wanted.half_width is None or asked.labels:
        wanted = replace(wanted, budget=found["budget"], half_width=None)
    words = [*o.words(wanted), *(_design(found) if asked.labels else ())]
    print_next("draw", asked.file, *words, "--seed", 7, "--output", new_folder("audit"))


def _design(found: dict[str, Any]) -> list[str]:
    """Return the option that draws what labels recommend, where the proxy alone may say otherwise."""
    return ["--design", found["recommended"]["design"]]


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
