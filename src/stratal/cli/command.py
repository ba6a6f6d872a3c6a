"""Commands whose options are declared once: parsing, help, checks and pages follow from the declaration."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin

import click
from msgspec import NODEFAULT, Struct, structs

from stratal.cli.conditions import Condition
from stratal.cli.output import Result
from stratal.cli.standard_input import replace_standard_input
from stratal.errors import InputError, no_effect_error, utf8_path
from stratal.protocols import Keywords

CommandFunction = TypeVar("CommandFunction", bound=Callable[..., Result | None])
# A record of options.
Options = TypeVar("Options", bound=Struct)

# The function that creates each command that has been imported.
COMMANDS: dict[str, Callable[[], Command]] = {}

# Maximum number of options in `--help`: those that most users need. `--help-all` shows all.
MAX_OPTIONS_SHOWN = 20

# Section and order of the options in a help text; other options come first, in the order of declaration. The
# short help shows the first ones, so that options for special cases are at the end.
OPTION_GROUPS = {
    "Columns": "wave id proxy predicts predicted value judge groups by show",
    "Design": """half_width require score seed extend additional labels estimand chosen interval
        confidence_level design previous estimator replicates strata stratify allocation looks look""",
    "Advanced": """positive compare model map answers target tags lists features against new_labels same_rows
        for_ select indifference sensitivity specificity failed_answers
        question quantity items calibrate_by pair classes adjudicators pseudonyms until
        minimum cluster outcome bounds assume residual_sd combine calibration
        population sizes weight population_size rate detect
        equal_answers power disagreements softmax missing label margin
        history max_change margins post_stratify cross_fit winsorise workers resume
        figures delimiter remote engine threads memory""",
}


@dataclass(frozen=True)
class Option:
    """An option or argument of a command, declared next to the type of a record's field.

    Parameters
    ----------
    help_text : str
        Help text. The docstring of the record may contain it instead, together with the placeholder and the
        text of the default, as `name : COL,…, default TEXT`.
    metavar : str, optional
        Placeholder of the value.
    default_text : str, optional
        Text of the default in the help.
    is_positional : bool
        Whether it is a positional argument.
    several : bool
        Whether all words up to the next option are its values, as a shell writes the folders of week*/.
    needs : tuple of Condition
        Conditions under which it has an effect.
    parser : callable, optional
        Converts the text to the value.
    field, kind, default
        Name, type and default of the record's field.
    """

    help_text: str = ""
    metavar: str | None = None
    default_text: str | None = None
    is_positional: bool = False
    several: bool = False
    needs: tuple[Condition, ...] = ()
    parser: Any = None
    field: str = ""
    kind: Any = None
    default: Any = NODEFAULT

    @property
    def name(self) -> str:
        """The name of the option on the command line."""
        return "--" + self.field.rstrip("_").replace("_", "-")

    def parameter(self) -> click.Parameter:
        """Return the parameter for Click."""
        kind = self.kind
        # The type without None, and the type of the entries of a list.
        alternatives = get_args(kind)
        if type(None) in alternatives:
            kind = alternatives[0]
        is_list = get_origin(kind) is list
        if is_list:
            kind = get_args(kind)[0]
        click_type, placeholder = _CLICK_TYPES.get(kind, (None, "TEXT"))
        # Keywords that arguments and options of Click share.
        keywords: Keywords = {"type": self.parser or click_type, "required": self.default is NODEFAULT}
        keywords["metavar"] = self.metavar or (None if kind is bool else placeholder)
        if self.default not in (NODEFAULT, None):
            keywords["default"] = self.default
        if self.is_positional:
            return click.Argument([self.field], nargs=-1 if is_list else 1, **keywords)
        return click.Option(
            [self.field, self.name],
            help=self.help_text,
            is_flag=kind is bool or None,
            multiple=is_list,
            show_default=self.default_text or True,
            **keywords,
        )


def argument(metavar: str, help_text: str, **more: Any) -> Option:
    """Declare a positional argument; `more` are other fields of `Option`."""
    return Option(help_text=help_text, metavar=metavar, is_positional=True, **more)


# Click's type and the placeholder for each type of a field.
_CLICK_TYPES: dict[Any, tuple[Any, str]] = {
    int: (click.INT, "N"),
    float: (click.FLOAT, "NUMBER"),
    bool: (None, ""),
    Path: (click.Path(path_type=Path), "PATH"),
}

# The option that every command has.
JSON = Option(field="json", kind=bool, help_text="Print only a JSON object.", default=False)


def command(
    record: type[Struct],
    *,
    name: str | None = None,
    without: str = "",
    needs: Mapping[str, Condition] | None = None,
) -> Callable[[CommandFunction], CommandFunction]:
    """Return a decorator that registers a command for a function, which it returns unchanged.

    Parameters
    ----------
    record : type
        The options; an instance is the function's only argument.
    name : str, optional
        Name of the command; by default the name of the function.
    without : str
        Fields that are not options of this command; they keep their defaults.
    needs : mapping of fields to Condition, optional
        Further conditions for this command; a key lists fields separated by blanks.
    """

    def decorate(function: CommandFunction) -> CommandFunction:
        command_name = name or function.__name__
        COMMANDS[command_name] = cache(
            lambda: Command(command_name, function, record, without.split(), needs or {})
        )
        return function

    return decorate


def _declared_options(record: type[Struct]) -> Iterator[Option]:
    """Yield the options of a record, with the texts in its docstring and in those of its base classes."""
    # An entry such as `id : COL, default id or item_id`, and the indented lines of its text.
    pattern = r"^(\w+) : (.+?)(?:, default (.+))?\n((?:    .+\n?)+)"
    docstrings = [inspect.cleandoc(kind.__doc__ or "") for kind in record.__mro__[::-1]]
    entries = [entry for text in docstrings for entry in re.findall(pattern, text, re.MULTILINE)]
    # By name: the type or placeholder, the default and the help text.
    texts_by_name = {name: texts for name, *texts in entries}
    for field in structs.fields(record):
        if get_origin(field.type) is Annotated:
            kind, option = get_args(field.type)
        else:
            kind = field.type
            option = Option()
        if not option.help_text:
            type_text, default_text, text = texts_by_name.get(field.name, ("", "", ""))
            # A type in lower case, such as `str`, is not a placeholder.
            metavar = type_text if type_text != type_text.lower() else None
            option = replace(
                option,
                metavar=metavar,
                default_text=default_text or option.default_text,
                help_text=" ".join(text.split()),
            )
        yield replace(option, field=field.name, kind=kind, default=field.default)


def options_of(kind: type[Options], record: Struct) -> Options:
    """Return the options of a command as the record `kind`, which has only some of them."""
    return kind(**selected_fields(record, *kind.__struct_fields__))


def selected_fields(record: Struct, *names: str) -> Keywords:
    """Return some options of a record by name, as keywords of a function with the same names."""
    return {name: getattr(record, name) for name in names}


def command_words(record: Struct) -> list[str]:
    """Return the command line of a record: its arguments, and its options that differ from their defaults."""
    arguments = list[str]()
    options = list[str]()
    for entry in _declared_options(type(record)):
        (value,) = selected_fields(record, entry.field).values()
        if value is None or value == entry.default:
            continue
        for item in value if isinstance(value, list) else [value]:
            text = str(item)
            # A small number without an exponent, such as 0.00005 instead of 5e-05.
            if isinstance(item, float) and "e-" in text:
                text = f"{item:.15f}".rstrip("0")
            if entry.is_positional:
                arguments.append(text)
            else:
                options += [entry.name] if item is True else [entry.name, text]
    return [*arguments, *options]


# Minimum similarity of an option that is suggested for an unknown one.
_MIN_SIMILARITY = 0.7


class Command(click.Command):
    """A command that refuses options without effect, and options that are given twice, before it runs."""

    def __init__(
        self,
        name: str,
        function: Callable[..., Result | None],
        record: type[Struct],
        without: list[str],
        needs: Mapping[str, Condition],
    ) -> None:
        self.function = function
        self.record = record
        fields_in_order = " ".join(OPTION_GROUPS.values()).split()
        rank = {field: position for position, field in enumerate(fields_in_order)}
        # Required options first, then those without a group.
        self.options = sorted(
            (entry for entry in _declared_options(record) if entry.field not in without),
            key=lambda entry: (entry.default is not NODEFAULT, rank.get(entry.field, -1)),
        )
        self.conditions = [
            *((field, condition) for fields, condition in needs.items() for field in fields.split()),
            *((entry.field, condition) for entry in self.options for condition in entry.needs),
        ]
        show_all = click.Option(
            ["--help-all"],
            callback=_show_all,
            help="Show every option.",
            is_flag=True,
            expose_value=False,
            is_eager=True,
        )
        super().__init__(
            name,
            help=inspect.cleandoc(function.__doc__ or ""),
            params=[*(entry.parameter() for entry in (*self.options, JSON)), show_all],
            context_settings={"help_option_names": ["-h", "--help"]},
        )

    def make_parser(self, ctx: click.Context) -> Any:
        """Return the parser, which detects repeated options."""
        parser: Any = super().make_parser(ctx)
        # Click's parser keeps only the last value of a repeated option and has no public hook for the others.
        for entry in {**parser._long_opt, **parser._short_opt}.values():
            if entry.action == "store":
                entry.process = partial(_process_once, entry)
        return parser

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line; an error about a number states how to write it."""
        # The parser removes words from `args`.
        words = list(args)
        for word in words:
            utf8_path(word)
        list_options = [option.name for option in self.options if option.several]
        try:
            return super().parse_args(ctx, repeat_options(args, list_options))
        except click.NoSuchOption as error:
            # Click also suggests options that have little in common.
            similar = get_close_matches(error.option_name, error.possibilities or (), cutoff=_MIN_SIMILARITY)
            raise click.NoSuchOption(error.option_name, possibilities=similar, ctx=ctx) from None
        except click.BadParameter as error:
            if error.param is not None and re.search("valid (number|integer|float)", error.message):
                message = error.message.rstrip(".") + number_advice(words, error.param.opts)
                raise click.BadParameter(message, ctx, error.param) from None
            raise

    def invoke(self, ctx: click.Context) -> None:
        """Run the command if every given option has an effect."""
        self._refuse_unused(ctx)
        values = dict(ctx.params)
        # A record has a list or None, where Click has a tuple that may be empty.
        for entry in self.params:
            if entry.multiple or entry.nargs < 0:
                values[str(entry.name)] = list(values[str(entry.name)]) or None
        for option in self.options:
            if option.is_positional:
                values[option.field] = replace_standard_input(values[option.field], str(self.name))
        as_json = values.pop("json")
        result = self.function(self.record(**values))
        if result is not None:
            result.show(as_json=as_json)

    def _refuse_unused(self, ctx: click.Context) -> None:
        """Raise an error for the first given option that would have no effect."""
        parameters = {str(entry.name): entry for entry in self.params}

        def is_given(field: str) -> bool:
            value = ctx.params.get(field)
            return value not in (None, False, ()) and value != parameters[field].default

        names = {field: _display_name(parameter) for field, parameter in parameters.items()}
        for field, condition in self.conditions:
            is_typed = ctx.get_parameter_source(field) is click.core.ParameterSource.COMMANDLINE
            # A command line without arguments has an empty list of them.
            has_value = ctx.params.get(field) not in (None, ())
            if is_typed and has_value and not condition.holds(ctx.params, is_given):
                raise no_effect_error(names[field], condition.text(names))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write arguments and options by section; of many options, only the first ones."""
        arguments = [(str(entry.metavar), entry.help_text) for entry in self.options if entry.is_positional]
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(arguments)
        options = [entry for entry in self.get_params(ctx) if isinstance(entry, click.Option)]
        common_options = [entry for entry in options if {"--json", "--help-all", "--help"} & set(entry.opts)]
        specific_options = [entry for entry in options if entry not in common_options]
        # Without `--help-all`, two common options are left.
        if len(specific_options) <= MAX_OPTIONS_SHOWN - 2:
            common_options = [entry for entry in common_options if entry.name != "help_all"]
        shown_options = specific_options
        if not ctx.meta.get("help_all"):
            shown_options = specific_options[: MAX_OPTIONS_SHOWN - len(common_options)]
        titles = {name: title for title, names in OPTION_GROUPS.items() for name in names.split()}
        titles |= {str(entry.name): "Options" for entry in shown_options if entry.required}
        for title in ("Options", *OPTION_GROUPS):
            section = [entry for entry in shown_options if titles.get(str(entry.name), "Options") == title]
            if title == "Options":
                section += common_options
            records = [record for entry in section if (record := entry.get_help_record(ctx))]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
        n_hidden = len(specific_options) - len(shown_options)
        if n_hidden:
            formatter.write_paragraph()
            formatter.write_text(f"{n_hidden} more options: --help-all.")


def _display_name(parameter: click.Parameter) -> str:
    """Return the name of an option or argument in messages: `--proxy` or `FILE`."""
    name = parameter.opts[0]
    if name.startswith("-"):
        return name
    return name.upper()


def _show_all(ctx: click.Context, _: click.Parameter, is_given: bool) -> None:
    """Print the complete help and exit."""
    if is_given:
        ctx.meta["help_all"] = True
        click.echo(ctx.get_help())
        ctx.exit()


def repeat_options(words: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the words of a command line with the name of an option before each of its values.

    Examples
    --------
    >>> repeat_options(["x.csv", "--previous", "a", "b", "--budget", "9"], ["--previous"])
    ['x.csv', '--previous', 'a', '--previous', 'b', '--budget', '9']
    """
    result = list[str]()
    current = ""
    for word in words:
        if word.startswith("-"):
            current = word
        elif current in names and result[-1] != current:
            result.append(current)
        result.append(word)
    return result


def _process_once(option: Any, value: Any, state: Any) -> None:
    """Store the value of an option, as Click's parser does; see `merge_repeated` for a second value."""
    if option.dest in state.opts:
        value = merge_repeated(option.obj, state.opts[option.dest], value)
    state.opts[option.dest] = value
    state.order.append(option.obj)


def merge_repeated(option: Any, first: Any, second: Any) -> Any:
    """Return the value of an option that is given twice: equal values count once, lists are joined.

    Raises
    ------
    InputError
        If the option accepts only one value; it names the option and both values.
    """
    if first == second:
        return first
    # Lists of these are separated by semicolons, because their entries may contain commas.
    if option.name in ("estimand", "require"):
        return f"{first};{second}"
    # The placeholder of a list, such as `COL,…`.
    if ",…" in str(option.metavar):
        return f"{first},{second}"
    values = f"{first!r} and {second!r}"
    raise InputError(f"{option.opts[0]} is given twice", given=values, allowed="one value")


def number_advice(words: Sequence[str], options: Sequence[str]) -> str:
    """Return how to write the number of an option that was written as 95%, with a comma or as 1e3.

    `words` are those of the command line, and `options` the names of the option.
    """
    from stratal.arrays import number_of_text  # NumPy is not loaded for help

    # Both forms: `--budget=1e3` and `--budget 1e3`.
    names_and_values = [word.partition("=")[::2] for word in words if "=" in word] + list(pairwise(words))
    value = next((value for name, value in names_and_values if name in options), None)
    if value is None:
        return ""
    text = value.replace("%", "").strip()
    number = number_of_text(text.replace(",", "."))
    if value != text and math.isfinite(number):
        advice = f" Write {number / 100:g}."
    elif re.fullmatch(r"[1-9]\d{0,2},\d{3}", text):
        advice = f" Write {text.replace(',', '')} or {text.replace(',', '.')}, depending on what you mean."
    elif math.isfinite(number) and "," in text:
        advice = f" Write {text.replace(',', '.')}."
    elif number.is_integer():
        advice = f" Write {number:.0f}."
    else:
        advice = ""
    return f". Given: {value!r}.{advice}"
