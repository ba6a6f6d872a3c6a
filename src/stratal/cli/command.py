"""A command's options are declared once: what is typed, help, checks and pages come from the declaration."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin

import click
from msgspec import NODEFAULT, Struct, structs

from stratal.cli.output import Result
from stratal.errors import InputError, no_effect, utf8_path

Body = TypeVar("Body", bound=Callable[..., Result | None])
Chosen = TypeVar("Chosen", bound=Struct)

# What makes each command that has been imported.
COMMANDS: dict[str, Callable[[], Command]] = {}

# Options that `--help` shows; of more, those that most people need.
MOST_SHOWN = 20

# Where an option stands in a help, and in which order; those that are not named come first, as declared.
GROUPS = {
    "Columns": "id proxy predicted tags judge groups by show features chosen",
    "Design": """half_width require score estimand design seed extend labels additional looks look strata
        stratify allocation estimator replicates""",
    "Advanced": """value calibrate_by confidence_level interval positive map pair classes adjudicators
        pseudonyms until
        answers new_labels minimum cluster outcome bounds target assume residual_sd combine calibration
        predicts population model sizes weight population_size rate detect
        equal_answers power disagreements softmax missing label margin
        history margins post_stratify cross_fit winsorise workers resume
        figures delimiter remote engine threads memory""",
}

# The values of a command's options by name, defaults included.
Given = Mapping[str, Any]


class Needs:
    """When an option has an effect, in words: `with` or `without` options, perhaps with some of their values.

    Parameters
    ----------
    words : str
    holds : function, optional
        The condition on the values of all options, if it is not what the words say.
    """

    def __init__(self, words: str, holds: Callable[[Given], Any] | None = None) -> None:
        self.words = words
        self.holds = holds
        sentence, bracket, reason = words.partition(" (")
        self._reason = bracket + reason
        self._kind = sentence.partition(" ")[0]
        named = () if holds else re.findall(r"(--[a-z-]+|[A-Z]+)((?:,? [a-z0-9][a-z0-9-]*)*)", sentence)
        self._wanted = {token: re.findall(r"\b(?!or\b)[a-z0-9][a-z0-9-]*", values) for token, values in named}

    def _known(self, given: Given) -> dict[str, tuple[str, list[str]]]:
        """Return name and values of each option that the words name and the command has."""
        names = {token: token.lower().strip("-").replace("-", "_") for token in self._wanted}
        return {
            token: (names[token], values) for token, values in self._wanted.items() if names[token] in given
        }

    def hold(self, given: Given, typed: Callable[[str], bool]) -> bool:
        """Return whether the condition holds; one on options that the command lacks always does."""
        if self.holds is not None:
            return bool(self.holds(given))
        known = self._known(given).values()
        found = any(str(given[name]) in values if values else typed(name) for name, values in known)
        return not known or found == (self._kind == "with")

    def of(self, given: Given) -> str:
        """Return the words without options that the command lacks."""
        known = [f"{token} {' or '.join(rest)}".rstrip() for token, (_, rest) in self._known(given).items()]
        if self.holds is not None or len(known) == len(self._wanted):
            return self.words
        return f"{self._kind} {' or '.join(known)}{self._reason}"


@dataclass(frozen=True)
class Option:
    """An option or argument of a command, declared beside the type of a record's field.

    Parameters
    ----------
    about : str
        Its help. This, the placeholder and the words for the default may stand in the record's docstring
        instead, as `name : COL,…, default the words`.
    metavar : str, optional
        The placeholder of its value.
    shown : str, optional
        The words for its default.
    place : bool
        Whether it is an argument, which is given by its place.
    needs
        When it has an effect: `Needs`, their words, or a tuple of them.
    parser : callable, optional
        What makes its value of the text.
    field, kind, default
        Of the record's field.
    """

    about: str = ""
    metavar: str | None = None
    shown: str | None = None
    place: bool = False
    needs: Any = ()
    parser: Any = None
    field: str = ""
    kind: Any = None
    default: Any = NODEFAULT

    @property
    def name(self) -> str:
        """The name by which an option is typed."""
        return "--" + self.field.rstrip("_").replace("_", "-")

    def parameter(self) -> click.Parameter:
        """Return what Click reads from the words that are typed."""
        parts = get_args(self.kind)
        kind = parts[0] if type(None) in parts else self.kind
        several = get_origin(kind) is list
        kind = get_args(kind)[0] if several else kind
        reads, placeholder = _READS.get(kind, (None, "TEXT"))
        shared: dict[str, Any] = {"type": self.parser or reads, "required": self.default is NODEFAULT}
        shared["metavar"] = self.metavar or (None if kind is bool else placeholder)
        if self.default not in (NODEFAULT, None):
            shared["default"] = self.default
        if self.place:
            return click.Argument([self.field], nargs=-1 if several else 1, **shared)
        return click.Option(
            [self.field, self.name],
            help=self.about,
            is_flag=kind is bool or None,
            multiple=several,
            show_default=self.shown or True,
            **shared,
        )


def argument(metavar: str, about: str, **more: Any) -> Option:
    """Declare an argument, which is given by its place."""
    return Option(about=about, metavar=metavar, place=True, **more)


# What reads a value of each type, and the placeholder for it.
_READS: dict[Any, tuple[Any, str]] = {
    int: (click.INT, "N"),
    float: (click.FLOAT, "NUMBER"),
    bool: (None, ""),
    Path: (click.Path(path_type=Path), "PATH"),
}

# The option that every command has.
JSON = Option(field="json", kind=bool, about="Print one JSON object and nothing else.", default=False)


def command(
    record: type[Struct],
    *,
    name: str | None = None,
    without: str = "",
    needs: Mapping[str, str | Needs] | None = None,
) -> Callable[[Body], Body]:
    """Return a decorator that makes a command of a function, which stays as it is.

    Parameters
    ----------
    record
        The options, which the function takes as one argument.
    name
        Of the command; the function's if left out.
    without
        Fields that are no options of this command; they keep their defaults.
    needs
        What options of this command need, by their names, besides what their declarations say.
    """

    def decorate(body: Body) -> Body:
        called = name or body.__name__
        COMMANDS[called] = cache(lambda: Command(called, body, record, without.split(), needs or {}))
        return body

    return decorate


def _declared(record: type[Struct]) -> Iterator[Option]:
    """Yield the options of a record."""
    pattern = r"^(\w+) : (.+?)(?:, default (.+))?\n((?:    .+\n?)+)"
    documented = [inspect.cleandoc(kind.__doc__ or "") for kind in record.__mro__[::-1]]
    found_in = [each for text in documented for each in re.findall(pattern, text, re.MULTILINE)]
    described = {name: rest for name, *rest in found_in}
    for entry in structs.fields(record):
        annotated = get_origin(entry.type) is Annotated
        if annotated:
            kind, found = get_args(entry.type)
        else:
            kind, found = (entry.type, Option())
        if not found.about:
            word, shown, text = described.get(entry.name, ("", "", ""))
            placeholder = word if word != word.lower() else None
            about = " ".join(text.split())
            words_shown = shown or found.shown
            found = replace(found, metavar=placeholder, shown=words_shown, about=about)
        yield replace(found, field=entry.name, kind=kind, default=entry.default)


def part(kind: type[Chosen], record: Struct) -> Chosen:
    """Return that part of a command's options that a record it inherits from has fields for."""
    return kind(**given(record, *kind.__struct_fields__))


def given(record: Struct, *names: str) -> dict[str, Any]:
    """Return some of a record's options by name, as keywords of a function that calls them so."""
    return {name: getattr(record, name) for name in names}


def words(record: Struct) -> list[str]:
    """Return a record's arguments, and its options that differ from their defaults, to be typed again."""
    arguments = list[str]()
    options = list[str]()
    for entry in _declared(type(record)):
        value = getattr(record, entry.field)
        if value is None or value == entry.default:
            continue
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, float) and "e-" in str(one):
                text = f"{one:.15f}".rstrip("0")
            else:
                text = str(one)
            if entry.place:
                arguments.append(text)
            else:
                options += [entry.name] if one is True else [entry.name, text]
    return [*arguments, *options]


class Command(click.Command):
    """A command that refuses, before it does anything, options without effect and options given twice."""

    def __init__(
        self,
        name: str,
        body: Callable[..., Result | None],
        record: type[Struct],
        without: list[str],
        needs: Mapping[str, str | Needs],
    ) -> None:
        self.body = body
        self.record = record
        order = {field: n for n, field in enumerate(" ".join(GROUPS.values()).split())}
        self.declared = sorted(
            (entry for entry in _declared(record) if entry.field not in without),
            key=lambda entry: (entry.default is not NODEFAULT, order.get(entry.field, -1)),
        )
        rules = [(field, rule) for names, rule in needs.items() for field in names.split()]
        rules += [(entry.field, rule) for entry in self.declared for rule in _several(entry.needs)]
        self.checks = [(field, Needs(rule) if isinstance(rule, str) else rule) for field, rule in rules]
        shown: dict[str, Any] = {"is_flag": True, "expose_value": False, "is_eager": True}
        show_all = click.Option(["--help-all"], callback=_show_all, help="Show every option.", **shown)
        super().__init__(
            name,
            help=inspect.cleandoc(body.__doc__ or ""),
            params=[*(entry.parameter() for entry in (*self.declared, JSON)), show_all],
            context_settings={"help_option_names": ["-h", "--help"]},
        )

    def make_parser(self, ctx: click.Context) -> Any:
        """Return the parser, which notices an option that is given again."""
        parser: Any = super().make_parser(ctx)
        # The parser keeps only the last value of a repeated option, so each option has to watch itself; there
        # is no public hook between its words and that value.
        for entry in {**parser._long_opt, **parser._short_opt}.values():
            if entry.action == "store":
                entry.process = partial(_process_once, entry)
        return parser

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words that were typed; an error about a number says how to write it."""
        typed = list(args)
        for word in args:
            utf8_path(word)
        try:
            return super().parse_args(ctx, args)
        except click.BadParameter as error:
            if error.param is not None and re.search("valid (number|integer|float)", error.message):
                message = error.message.rstrip(".") + number_advice(typed, error.param.opts)
                raise click.BadParameter(message, ctx, error.param) from None
            raise

    def invoke(self, ctx: click.Context) -> None:
        """Run the command if every option that was given has an effect."""
        self._refuse_unused(ctx)
        values = dict(ctx.params)
        for entry in self.params:
            if entry.multiple or entry.nargs < 0:
                values[str(entry.name)] = list(values[str(entry.name)]) or None
        json = values.pop("json")
        result = self.body(self.record(**values))
        if result is not None:
            result.show(as_json=json)

    def _refuse_unused(self, ctx: click.Context) -> None:
        """Refuse the first option that was given and would have no effect."""
        known = {str(entry.name): entry for entry in self.params}

        def differs(name: str) -> bool:
            value = ctx.params.get(name)
            return value not in (None, False, ()) and value != known[name].default

        for name, needs in self.checks:
            typed = ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
            if typed and ctx.params.get(name) not in (None, ()) and not needs.hold(ctx.params, differs):
                shown = known[name].opts[0]
                shown = shown if shown.startswith("-") else shown.upper()
                raise no_effect(shown, needs.of(ctx.params))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write arguments and options in groups, and of many the first."""
        arguments = [(str(entry.metavar), entry.about) for entry in self.declared if entry.place]
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(arguments)
        options = [entry for entry in self.get_params(ctx) if isinstance(entry, click.Option)]
        always = [entry for entry in options if {"--json", "--help-all", "--help"} & set(entry.opts)]
        others = [entry for entry in options if entry not in always]
        if len(others) <= MOST_SHOWN - 2:
            always = [entry for entry in always if entry.name != "help_all"]
        if ctx.meta.get("help_all"):
            shown = others
        else:
            shown = others[: MOST_SHOWN - len(always)]
        titles = {name: title for title, names in GROUPS.items() for name in names.split()}
        titles |= {str(entry.name): "Options" for entry in shown if entry.required}
        for title in ("Options", *GROUPS):
            rows = [entry for entry in shown if titles.get(str(entry.name), "Options") == title]
            if title == "Options":
                rows += always
            records = [record for entry in rows if (record := entry.get_help_record(ctx))]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
        if len(shown) < len(others):
            formatter.write_paragraph()
            formatter.write_text(f"{len(others) - len(shown)} more options: --help-all.")


def _several(rules: Any) -> list[Any]:
    if isinstance(rules, str | Needs):
        return [rules]
    return list(rules)


def _show_all(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        ctx.meta["help_all"] = True
        click.echo(ctx.get_help())
        ctx.exit()


def _process_once(option: Any, value: Any, state: Any) -> None:
    """Store an option's value; a second one joins a list, repeats the first, or is refused."""
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
    """
    if first == second:
        return first
    # An option's metavar declares whether its value is a list.
    listed = "," if ",…" in str(option.metavar) else None
    between = ";" if option.name in ("estimand", "require") else listed
    if between is not None:
        return f"{first}{between}{second}"
    given = f"{first!r} and {second!r}"
    raise InputError(f"{option.opts[0]} is given twice", given=given, allowed="one value")


def number_advice(typed: Sequence[str], options: Sequence[str]) -> str:
    """Return what to type for a number that was written as a share, with a comma, or as 1e3; else nothing."""
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
