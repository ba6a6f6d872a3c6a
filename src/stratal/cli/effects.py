"""Options that would have no effect are mistakes: for each command, which option needs what."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import typer
from typer.core import TyperCommand

from stratal.cli.memory import refuse_few_addresses
from stratal.errors import InputError, utf8_path

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
_OF_A_FILE = (
    *("id", "proxy", "groups", "by", "features", "predicted", "proxy_bounds", "second_moment", "margin"),
    *("delimiter", "directory", "softmax", "missing", "label", "remote", "engine", "master", "threads"),
    *("memory", "progress", "strata", "stratify", "allocation", "minimum", "assume", "residual_sd"),
    *("estimand", "labels"),
)


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
_FIRST_ROUND = ("budget", "seed", "design", "size", "cluster", "estimand", "residual_sd", *_PLANNING)
_DRAWING = (
    Needs(
        ("half_width",),
        lambda given: given["design"] in _PLANNED,
        "with --design stratified or simple-random",
    ),
    Needs(_PLANNING, lambda given: given["design"] in _PLANNED[:2], "with --design stratified"),
    Needs(
        ("residual_sd",),
        lambda given: given["design"] in _PLANNED[:2] or given["half_width"] is not None,
        "with --design stratified, or with --half-width",
    ),
    Needs(
        ("stratify",),
        lambda given: given["estimand"] in (None, "mean") or given["stratify"] != "k-means",
        "other than k-means with --estimand, whose strata are cut by neyman",
    ),
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

_NO_PLAIN_MEAN = (
    *("estimand", "predicted", "lam", "cross_fit", "calibration", "outcome", "bounds", "metric", "compare"),
    *("model", "by", "against"),
)


def _plain_mean(given: Given) -> bool:
    usual = given["target"] == "population" and given["combine"] == "mean"
    return usual and not any(given.get(name) for name in _NO_PLAIN_MEAN)


NEEDS: dict[str, tuple[Needs, ...]] = {
    "inspect": _READING,
    "plan": (
        Needs(_OF_A_FILE, lambda given: given["file"] is not None, "with FILE"),
        Needs(("value", "positive"), lambda given: given["labels"], "with --labels"),
        Needs(("assume",), lambda given: given["half_width"] is not None, "with --half-width"),
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
            ("features",),
            lambda given: given["calibration"] in LEARNERS,
            f"with --calibration {', '.join(LEARNERS)}",
        ),
        Needs(
            ("bounds",),
            lambda given: given["outcome"] not in ("binary", "unbounded"),
            "with --outcome bounded, or without --outcome",
        ),
        Needs(
            ("winsorise",),
            _plain_mean,
            "for the mean of numbers: without "
            + ", ".join(f"--{name.replace('_', '-')}" for name in (*_NO_PLAIN_MEAN, "target", "combine")),
        ),
    ),
    "simulate": (
        Needs(("predicted",), lambda given: given["estimand"] is not None, "with --estimand"),
        Needs(
            ("estimators", "intervals", "bounds", "margin", "with_replacement"),
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
    """A command that refuses, before it does anything, options without effect and options given twice."""

    def make_parser(self, ctx: Any) -> Any:
        """Return the parser, which notices an option that is given again."""
        parser = super().make_parser(ctx)
        # The parser keeps only the last value of a repeated option, so each option has to watch itself; there
        # is no public hook between its words and that value.
        for option in {**parser._long_opt, **parser._short_opt}.values():
            if option.action in ("store", "store_const"):
                option.process = partial(_process_once, option)  # type: ignore[method-assign]
        return parser

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words that were typed; an error about a number says how to write it."""
        typed = list(args)
        for word in args:
            utf8_path(word)
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            if error.param is not None and re.search("valid (number|integer|float)", error.message):
                error.message = error.message.rstrip(".") + number_advice(typed, error.param.opts)
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run the command if every option that was given has an effect."""
        refuse_idle(ctx)
        if ctx.command.name != "schema":  # which loads no library
            refuse_few_addresses()
        return super().invoke(ctx)


def _process_once(option: Any, value: Any, state: Any) -> None:
    """Store an option's value; a second one joins a list, repeats the first, or is refused."""
    value = value if option.action == "store" else option.const
    if option.dest in state.opts:
        value = repeated(option.obj, state.opts[option.dest], value)
    state.opts[option.dest] = value
    state.order.append(option.obj)


def repeated(option: Any, first: Any, second: Any) -> Any:
    """Return the value of an option that was given twice: equal values are one, those of a list are joined.

    Raises
    ------
    InputError
        Naming the option and both values, if it takes one.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> repeated(SimpleNamespace(name="show", opts=["--show"], metavar="COL,…"), "question", "answer")
    'question,answer'
    >>> repeated(SimpleNamespace(name="seed", opts=["--seed"], metavar=None), "1", "2")
    Traceback (most recent call last):
    stratal.errors.InputError: --seed is given twice (given: '1' and '2'; allowed: one value)...
    """
    if first == second:
        return first
    # An option's metavar declares whether its value is a list.
    between = ";" if option.name == "estimand" else "," if ",…" in (option.metavar or "") else None
    if between is not None:
        return f"{first}{between}{second}"
    name, given = option.opts[0], f"{first!r} and {second!r}"
    if isinstance(first, bool):  # a flag with an opposite, such as --notes and --no-notes
        name, given = "/".join([*option.opts, *option.secondary_opts]), "both"
    raise InputError(f"{name} is given twice", given=given, allowed="one value", action="Keep one of them.")


def number_advice(typed: Sequence[str], options: Sequence[str]) -> str:
    """Return what to type for a number that was written as a share, with a comma, or as 1e3; else nothing.

    Examples
    --------
    >>> number_advice(["--rate", "90%"], ["--rate"]), number_advice(["--budget=1,500"], ["--budget"])
    (". Given: '90%'. Write 0.9.", ". Given: '1,500'. Write 1500 or 1.500, whichever is meant.")
    """
    from stratal.arrays import number_of_text  # NumPy is not loaded for help

    pairs = [word.partition("=")[::2] for word in typed if "=" in word] + list(pairwise(typed))
    given = next((value for name, value in pairs if name in options), None)
    if given is None:
        return ""
    text = given.replace("%", "").strip()
    number = number_of_text(text.replace(",", "."))
    if given != text and math.isfinite(number):
        advice = f" Write {number / 100:g}."
    elif re.fullmatch(r"[1-9]\d{0,2},\d{3}", text):
        advice = f" Write {text.replace(',', '')} or {text.replace(',', '.')}, whichever is meant."
    elif math.isfinite(number) and "," in text:
        advice = f" Write {text.replace(',', '.')}."
    else:
        advice = f" Write {number:.0f}." if number.is_integer() else ""
    return f". Given: {given!r}.{advice}"


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
            # Typer 0.26 gives an empty list for words that were left out, as if it had been typed.
            given = given and ctx.params.get(name) not in (None, [], ())
            if given and name in words and not needs.holds(ctx.params):
                option = words[name] if words[name].startswith("-") else words[name].upper()
                raise InputError(
                    f"{option} would have no effect",
                    allowed=f"{option} {needs.words}",
                    action="Leave it out, or change the other option.",
                )
