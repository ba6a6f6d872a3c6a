"""Options that would have no effect are mistakes: for each command, which option needs what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import typer
from typer.core import TyperCommand

from stratal.errors import InputError

LEARNERS = ("gradient-boosting", "logistic-regression", "ridge")
"""Calibrations that learn from several columns; `stratal.proxy.learners` has the same."""

Given = Mapping[str, Any]
"""The values of a command's options by name, defaults included."""


@dataclass(frozen=True, slots=True)
class Needs:
    """Options that have an effect only where `holds` says so of the others; `words` says when that is.

    Examples
    --------
    >>> Needs(("size",), lambda given: given["design"] == "poisson", "with --design poisson").words
    'with --design poisson'
    """

    options: tuple[str, ...]
    holds: Callable[[Given], Any]
    words: str


_UNEQUAL = ("poisson", "proportional-to-size")
_PLANNED = ("auto", "stratified", "simple-random")
_PLANNING = ("strata", "stratify", "by", "allocation", "minimum")


def _text_table(given: Given) -> bool:
    suffixes = [suffix.lower() for suffix in given["file"].suffixes if suffix.lower() != ".gz"]
    return not given["directory"] and not bool(
        suffixes and suffixes[-1] in (".parquet", ".pq", ".jsonl", ".ndjson")
    )


def _divided(given: Given) -> bool:
    return bool(given["stratify"] != "none")


_READING = (
    Needs(("delimiter",), _text_table, "for a CSV file"),
    Needs(("proxy_bounds", "margin"), lambda given: given["proxy"], "with --proxy"),
    Needs(("master",), lambda given: given["engine"] == "spark", "with --engine spark"),
    Needs(("threads", "memory"), lambda given: given["engine"] == "duckdb", "with --engine duckdb"),
)
_DIVIDING = (
    Needs(("second_moment",), lambda given: given["proxy"], "with --proxy"),
    Needs(
        ("strata", "allocation", "minimum", "stratify"),
        lambda given: given["proxy"] or given["by"] or given["features"],
        "with --proxy, --by or --features",
    ),
    Needs(("strata",), lambda given: given["proxy"] or given["features"], "with --proxy or --features"),
    Needs(
        ("features",),
        lambda given: given["stratify"] == "features" or given.get("learner"),
        "with --stratify features",
    ),
    Needs(("allocation", "minimum"), _divided, "with strata, so not with --stratify none"),
    Needs(
        ("strata",),
        lambda given: _divided(given) and given["stratify"] != "category",
        "with --stratify other than none and category",
    ),
    Needs(
        ("minimum",),
        lambda given: given["budget"] is None or 2 * given["minimum"] <= given["budget"],
        "up to half of --budget, for at least two strata",
    ),
)
_FIRST_ROUND = ("budget", "seed", "design", "size", "cluster", *_PLANNING)
_DRAWING = (
    Needs(
        ("half_width",),
        lambda given: given["design"] in _PLANNED,
        "with --design stratified or simple-random",
    ),
    Needs(_PLANNING, lambda given: given["design"] in _PLANNED[:2], "with --design stratified"),
    Needs(
        ("size",),
        lambda given: given["design"] in _UNEQUAL,
        "with --design poisson, proportional-to-size",
    ),
    Needs(("cluster",), lambda given: given["design"] == "clusters", "with --design clusters"),
    Needs(("confidence_level",), lambda given: given["half_width"] is not None, "with --half-width"),
    Needs(
        ("bounds",),
        lambda given: given["outcome"] not in ("binary", "unbounded"),
        "with --outcome bounded, or without --outcome",
    ),
    *_READING,
    *_DIVIDING,
)

NEEDS: dict[str, tuple[Needs, ...]] = {
    "inspect": _READING,
    "plan": (
        Needs(("value", "positive"), lambda given: given["labels"], "with --labels"),
        Needs(("labels",), lambda given: given["file"] is not None, "with FILE"),
        *_READING,
        *_DIVIDING,
    ),
    "draw": (
        Needs(
            _FIRST_ROUND,
            lambda given: given["extend"] is None,
            "in a first round, so not with --extend",
        ),
        Needs(("labels", "value", "additional"), lambda given: given["extend"] is not None, "with --extend"),
        Needs(
            ("learner",),
            lambda given: given["extend"] is not None and given["additional"] is not None,
            "with --extend and --additional",
        ),
        *_DRAWING,
    ),
    "init": (
        *_DRAWING,
        Needs(
            ("copies",), lambda given: given["overlap"] > 0, "with --overlap, the share that several label"
        ),
    ),
    "estimate": (
        Needs(
            ("sample", "labels", "post_stratify", "margins"),
            lambda given: given["labelled"] is None,
            "without --labelled",
        ),
        Needs(("margins_by",), lambda given: given["margins"], "with --margins"),
        Needs(("post_stratify",), lambda given: not given["margins"], "without --margins, which has it"),
        Needs(
            ("stratum", "sizes", "cluster", "weight", "population_size", "proxy", "proxy_moments"),
            lambda given: given["labelled"] is not None,
            "with --labelled",
        ),
        Needs(("class_",), lambda given: given["metric"], "with --metric"),
        Needs(
            ("population",),
            lambda given: given["calibration"] or given["labelled"],
            "with --calibration or --labelled",
        ),
        Needs(
            ("features",),
            lambda given: given["calibration"] in LEARNERS,
            f"with --calibration {', '.join(LEARNERS)}",
        ),
        Needs(
            ("bounds",),
            lambda given: given["outcome"] not in ("binary", "unbounded"),
            "with --outcome bounded, or without --outcome",
        ),
    ),
    "simulate": (
        Needs(("predicted",), lambda given: given["estimand"] is not None, "with --estimand"),
        Needs(
            (
                "estimators",
                "intervals",
                "bounds",
                "target",
                "margin",
                "with_replacement",
                "workers",
                "resume",
            ),
            lambda given: given["estimand"] is None,
            "without --estimand",
        ),
        Needs(("workers",), lambda given: given["engine"] == "duckdb", "with --engine duckdb"),
        *_READING,
    ),
}
"""What options of each command need to have an effect."""

NEEDS["report"] = (
    *NEEDS["estimate"],
    Needs(
        ("answer", "old_answer", "new_labels"),
        lambda given: given["against"] is not None,
        "with --against",
    ),
)


class CheckedCommand(TyperCommand):
    """A command that refuses, before it does anything, options that would have no effect."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command if every option that was given has an effect."""
        refuse_idle(ctx)
        return super().invoke(ctx)


def refuse_idle(ctx: typer.Context) -> None:
    """Refuse the first option that was given and would have no effect.

    Raises
    ------
    InputError
        Naming the option, and what it needs.

    Examples
    --------
    >>> refuse_idle(typer.Context(TyperCommand("demo")))
    """
    words = {parameter.name: parameter.opts[0] for parameter in ctx.command.params}
    for needs in NEEDS.get(str(ctx.command.name), ()):
        for name in needs.options:
            source = ctx.get_parameter_source(name)
            given = source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT")
            if given and name in words and ctx.params.get(name) is not None and not needs.holds(ctx.params):
                option = words[name] if words[name].startswith("-") else words[name].upper()
                raise InputError(
                    f"{option} would have no effect",
                    allowed=f"{option} {needs.words}",
                    action="Leave it out, or change the other option.",
                )
