"""The exceptions of stratal: each states the problem, the given and the allowed values, and the next step."""

from __future__ import annotations

import inspect
import itertools
import math
import re
import sys
import typing
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from numbers import Real
from os import PathLike, fspath
from typing import Any, TypeVar

__all__ = [
    "BudgetError",
    "InputError",
    "LabelError",
    "MissingColumnError",
    "MissingExtraError",
    "RequirementError",
    "StratalError",
    "StratalWarning",
]

# A text in quotes, as `repr` writes what users gave: it is never rewritten. Its first quote follows no
# letter, and without a second one it reaches to the end, so that no text is looked at twice.
QUOTED = r"""(?<!\w)(?:'(?:[^'\\]|\\(?:.|\Z))*+(?:'|\Z)|"(?:[^"\\]|\\(?:.|\Z))*+(?:"|\Z))"""

# The options of the command in a message, in brackets behind the keyword of Python: `id='row' (--id row)`, or
# after a comma: `id=, --id`. A text in quotes matches first, so that it does not change.
_OPTIONS = re.compile(rf"{QUOTED}| \(--[^()]*+\)|(?<==), --[^()]*+(?P<end>\)?)", re.DOTALL)


def without_options(text: str) -> str:
    """Return a message for Python, without the options of the command."""

    def replacement(match: re.Match[str]) -> str:
        if match[0].startswith(" ("):
            return ""
        if match[0].startswith(",") and match["end"]:
            return ")"
        return match[0]

    return _OPTIONS.sub(replacement, text)


class StratalError(Exception):
    """Base class of every error that stratal raises on purpose.

    Parameters
    ----------
    what : str
        The problem, with the file, column, row or id.
    given : object, optional
        The given value.
    allowed : str, optional
        The allowed values.
    action : str, optional
        The next step for the user.

    Examples
    --------
    >>> print(StratalError("budget is too small", given=3, allowed="at least 10", action="Give minimum=1."))
    budget is too small (given: 3; allowed: at least 10). Give minimum=1.
    """

    # `given` is named as the message names the value: "(given: 3)".
    def __init__(
        self, what: str, *, given: object = None, allowed: str | None = None, action: str | None = None
    ) -> None:
        self.what = what
        self.given = given
        self.allowed = allowed
        self.action = action
        # Whether the command line has replaced the Python keywords of the message in `args` by its options.
        self.is_command_message = False
        super().__init__(self.message(str))

    def message(self, rewrite: Callable[[str], str]) -> str:
        """Return the complete message, with `rewrite` applied to the words of the library.

        The given value and the text before the first colon (a file, a column) come from the user and are not
        changed.
        """
        start = self.what.find(": ") + 1
        text = self.what[:start] + rewrite(self.what[start:])
        # A value is the user's; keywords with their options are the library's.
        value_text = None if self.given is None else str(self.given)
        if value_text is not None and " (--" in value_text:
            value_text = rewrite(value_text)
        details = {
            "given": value_text,
            "allowed": None if self.allowed is None else rewrite(self.allowed),
        }
        shown = "; ".join(f"{name}: {value}" for name, value in details.items() if value is not None)
        text = f"{text} ({shown})" if shown else text
        text += "" if text.endswith((".", "!", "?")) else "."
        if self.action:
            return f"{text} {rewrite(self.action)}"
        return text

    def __str__(self) -> str:
        """Return the message. Options in brackets, such as `(--id COLUMN)`, are only shown in commands."""
        if self.is_command_message:
            return str(self.args[0])
        return self.message(without_options)


class InputError(StratalError, ValueError):
    """An argument, a file, a column or a row that cannot be used.

    Examples
    --------
    >>> raise InputError("confidence_level is out of range", given=95, allowed="between 0 and 1")
    Traceback (most recent call last):
    stratal.errors.InputError: confidence_level is out of range (given: 95; allowed: between 0 and 1).
    """


class MissingColumnError(InputError):
    """A column that is missing in a table, a file of labels or a study.

    Parameters
    ----------
    what, given, allowed, action
        As for `StratalError`.
    column : str
        The column's name.

    Examples
    --------
    >>> MissingColumnError("labels.csv: no column 'verdict'", column="verdict").column
    'verdict'
    """

    def __init__(
        self,
        what: str,
        *,
        column: str,
        given: object = None,
        allowed: str | None = None,
        action: str | None = None,
    ) -> None:
        super().__init__(what, given=given, allowed=allowed, action=action)
        self.column = column

    def with_action(self, action: str) -> MissingColumnError:
        """Return the error with another next step, for a column with another role."""
        return MissingColumnError(
            self.what, column=self.column, given=self.given, allowed=self.allowed, action=action
        )


class BudgetError(InputError):
    """A budget that the design cannot meet: below the lower bounds, or above the population.

    Examples
    --------
    >>> print(BudgetError("the budget is below two units per stratum", given=7, allowed="10 to 500"))
    the budget is below two units per stratum (given: 7; allowed: 10 to 500).
    """


class LabelError(InputError):
    """Labels that do not belong to the sample or lie outside the outcome's bounds.

    Examples
    --------
    >>> print(LabelError("3 ids are not in this sample (first: 'img_0412')"))
    3 ids are not in this sample (first: 'img_0412').
    """


class MissingExtraError(StratalError, ImportError):
    """An optional dependency that is not installed.

    Examples
    --------
    >>> print(MissingExtraError("scikit-learn", extra="learn"))
    scikit-learn is not installed. Run: pip install 'stratal[learn]'
    """

    def __init__(self, package: str, *, extra: str) -> None:
        super().__init__(f"{package} is not installed", action=f"Run: pip install 'stratal[{extra}]'")


@contextmanager
def optional_import(package: str, *, extra: str) -> Iterator[None]:
    """Say which extra provides a package if importing it in the block fails."""
    try:
        yield
    except ImportError:
        raise MissingExtraError(package, extra=extra) from None


class RequirementError(StratalError, AssertionError):
    """A requirement that the interval of an estimate does not satisfy; it makes a test fail.

    Examples
    --------
    >>> issubclass(RequirementError, AssertionError)
    True
    """


class StratalWarning(UserWarning):
    """A warning about a valid result: nonresponse, merged strata, or a weak proxy.

    Examples
    --------
    >>> issubclass(StratalWarning, UserWarning)
    True
    """


def invalid_bounds_error(bounds: object, name: str = "bounds") -> InputError:
    """Return the error for bounds that are not two finite numbers, the lower first; `name` is the keyword."""
    action = f"Give {name}=(lowest, highest), in the outcome's units."
    return InputError(
        f"{name} must be two finite numbers, the lower first", given=repr(bounds), action=action
    )


def finite_bounds(bounds: Any, name: str = "bounds") -> tuple[float, float]:
    """Return bounds as two floats; refuse other values than two finite numbers, the lower first."""
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise invalid_bounds_error(bounds, name) from None
    # `float` would read texts, and the characters of one text, as numbers.
    if not (isinstance(low, Real) and isinstance(high, Real)):
        raise invalid_bounds_error(bounds, name)
    low = float(low)
    high = float(high)
    if not -math.inf < low < high < math.inf:
        raise invalid_bounds_error(bounds, name)
    return low, high


def not_positive_error(name: str, value: object) -> InputError:
    """Return the error for a number that must be above 0; `name` is its keyword or option."""
    allowed = "above 0, in the units of what is estimated"
    return InputError(f"{name} must be a positive number", given=repr(value), allowed=allowed)


def lone_surrogate_error(holder: str, text: str) -> InputError:
    """Return the error for a text that UTF-8 cannot encode, such as `"\\ud83d"` in JSON: half of an emoji.

    `holder` is the name of the file or the argument that contains it.
    """
    # Terminals cannot print the surrogate itself.
    shown = ascii(text if len(text) <= 60 else text[:59] + "…")
    action = 'Replace it, for example with text.encode(errors="replace").decode().'
    what = f"{holder} contains a lone surrogate, which cannot be stored in a file"
    return InputError(what, given=shown, allowed="Unicode text", action=action)


def duplicate_ids_error(where: str, count: int, first: object) -> InputError:
    """Return the error for ids that occur more than once; `where` begins the sentence and may be empty."""
    what = f"{where}{'1 id is' if count == 1 else f'{count} ids are'} duplicated (first: {first!r})"
    action = "Remove the duplicates, or create an id that distinguishes the units."
    return InputError(what, allowed="one unit per id", action=action)


def unreadable_file_error(file: object, error: Exception) -> InputError:
    """Return the error for an incomplete file or one of another format, with the error of its reader."""
    first_line = next(iter(str(error).splitlines()), type(error).__name__)
    action = "Check that the file is complete and that its extension matches its format."
    if isinstance(error, UnicodeError):
        action = "Save it as UTF-8 text (in Excel: CSV UTF-8)."
    return InputError(f"{file} cannot be read", given=first_line, action=action)


def type_text(value: object) -> str:
    """Return the type of a value with its article, such as `a list`, for an error."""
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def invalid_confidence_level_error(level: object) -> InputError:
    """Return the error of a confidence level that is not between 0 and 1, such as a percentage."""
    action = None
    if isinstance(level, int | float) and 1 < level < 100:
        action = f"For {level:g}% write {level / 100:g}."
    allowed = "between 0 and 1, as in 0.95"
    return InputError("confidence_level is out of range", given=level, allowed=allowed, action=action)


# Largest number of names that an error lists.
_MAX_NAMES_SHOWN = 20


def suggest_names(name: str, names: Iterable[str], *, synonyms: Iterable[str] = ()) -> str:
    """Return the existing names as a list in quotes, those that are similar to `name` first.

    If there are more than `_MAX_NAMES_SHOWN` names, only the similar ones are listed. `synonyms` are other
    names, which are listed only if they are similar.
    """
    existing = [str(entry) for entry in names]
    shown = similar_names(name, [*existing, *synonyms])
    if not shown or len(existing) <= _MAX_NAMES_SHOWN:
        shown = list(dict.fromkeys([*shown, *existing]))
    text = ", ".join(map(repr, shown[:_MAX_NAMES_SHOWN]))
    if len(shown) > _MAX_NAMES_SHOWN:
        return f"{text}, …"
    return text


def similar_names(name: str, names: Iterable[str]) -> list[str]:
    """Return up to three names that are similar to `name`, the most similar one first."""
    import difflib  # only errors need this module

    return difflib.get_close_matches(str(name), list(names), n=3)


def list_first(texts: Iterable[str], most: int) -> str:
    """Return up to `most` texts as a list, with the number of the others.

    Examples
    --------
    >>> list_first(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    entries = list(texts)
    shown = ", ".join(entries[:most])
    if len(entries) > most:
        return f"{shown} and {len(entries) - most:,} more"
    return shown


def no_effect_error(option: str, allowed: str) -> InputError:
    """Return the error that an option would have no effect."""
    action = f"Leave out {option}, or change the other options."
    return InputError(f"{option} would have no effect", allowed=f"{option} {allowed}", action=action)


def check_choice(what: str, name: object, names: Iterable[str]) -> None:
    """Raise an `InputError` unless `name` is one of `names`; `what` is the noun for these in the message."""
    allowed_names = list(names)
    # Arrays and missing values cannot be compared with a name.
    is_comparable = name is None or isinstance(name, str | int | float | tuple)
    if not is_comparable or name not in allowed_names:
        similar = similar_names(str(name), map(str, allowed_names))
        raise InputError(
            f"no such {what}",
            given=repr(name),
            allowed=suggest_names(str(name), allowed_names),
            action=f"Did you mean {similar[0]!r}?" if similar else None,
        )


def same_name(name: str, names: Iterable[str]) -> str | None:
    """Return the entry of `names` that equals `name`, or the only one that differs by case or outer spaces.

    None if there is no such entry, or if there are several.
    """
    existing = list(names)
    if name in existing:
        return name
    folded_name = str(name).strip().casefold()
    matches = [entry for entry in existing if str(entry).strip().casefold() == folded_name]
    if len(matches) == 1:
        return matches[0]
    return None


def utf8_path(path: str | PathLike[str]) -> str:
    """Return a path as text; refuse one that is not valid UTF-8, which engines and pages cannot process."""
    text = fspath(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        action = "Rename the file, its folder or the column."
        raise InputError("a path or name is not valid UTF-8", given=ascii(text), action=action) from None
    return text


def warn_caller(message: str) -> None:
    """Emit a `StratalWarning` at the line of the user's code that called stratal."""
    frame = sys._getframe(1)
    level = 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).split(".")[0] == "stratal":
        frame = frame.f_back
        level = level + 1
    warnings.warn(message, StratalWarning, stacklevel=level)


Function = TypeVar("Function", bound=Callable[..., Any])
_KEYWORD_ONLY = inspect.Parameter.KEYWORD_ONLY


def keywords_from(
    *records: Callable[..., Any], without: tuple[str, ...] = (), **defaults: object
) -> Callable[[Function], Function]:
    """Return a decorator that declares and checks the keywords which a function accepts as `**keywords`.

    The signature of the decorated function lists them. An unknown or missing keyword is a `TypeError` that
    lists similar ones.

    Parameters
    ----------
    *records : class or callable
        Typed dicts, dataclasses or functions. Their fields or parameters are the keywords.
    without : tuple of str
        Fields that the function does not accept.
    **defaults
        Defaults in the signature for fields of typed dicts, which have none. Other fields have None.
    """

    def decorate(function: Function) -> Function:
        declared = inspect.signature(function)
        parameters = {
            name: parameter
            for name, parameter in declared.parameters.items()
            if parameter.kind is not parameter.VAR_KEYWORD
        }
        for parameter in itertools.chain.from_iterable(
            _parameters_of(record, defaults) for record in records
        ):
            if parameter.name not in without:
                parameters.setdefault(parameter.name, parameter)
        signature = declared.replace(parameters=list(parameters.values()))
        positional_names = [
            name
            for name, parameter in parameters.items()
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        ]
        required_names = {
            name for name, parameter in parameters.items() if parameter.default is parameter.empty
        }

        @wraps(function)
        def call(*args: object, **keywords: object) -> Any:
            given_names = positional_names[: len(args)]
            # `bind` takes as long as a small sum, so that it is called only if there is an error.
            if (
                keywords.keys() <= parameters.keys()
                and required_names.issubset((*given_names, *keywords))
                and len(given_names) == len(args)
            ):
                return function(*args, **keywords)
            try:
                # An unknown keyword is reported before a missing one.
                signature.bind_partial(*args, **keywords)
                signature.bind(*args, **keywords)
            except TypeError as error:
                unknown = [name for name in keywords if name not in parameters]
                missing_names = required_names.difference(given_names, keywords)
                missing = [name for name in parameters if name in missing_names]
                allowed = [name for name, parameter in parameters.items() if parameter.kind is _KEYWORD_ONLY]
                names_text = suggest_names(next(iter([*unknown, *missing]), ""), allowed)
                raise TypeError(f"{function.__qualname__}() {error}; it takes {names_text}") from None
            return function(*args, **keywords)

        vars(call)["__signature__"] = signature
        return typing.cast(Function, call)

    return decorate


def _parameters_of(record: Any, defaults: Mapping[str, object]) -> Iterable[inspect.Parameter]:
    """Return the parameters of a callable, or one for each field of a typed dict (default: None)."""
    if not typing.is_typeddict(record):
        return inspect.signature(record).parameters.values()
    hints = {
        name: hint.__forward_arg__ if isinstance(hint, typing.ForwardRef) else hint
        for name, hint in record.__annotations__.items()
    }
    return [
        inspect.Parameter(name, _KEYWORD_ONLY, default=defaults.get(name), annotation=hint)
        for name, hint in hints.items()
    ]
