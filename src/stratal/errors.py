"""The few exceptions of the project; each says what is wrong, what was given, what is allowed, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class StratalError(Exception):
    """Base of every error that stratal raises on purpose.

    Parameters
    ----------
    what : str
        What is wrong, naming the file, column, row or id.
    given : object, optional
        What was given.
    allowed : str, optional
        What would have been accepted.
    action : str, optional
        What to do next.

    Examples
    --------
    >>> print(StratalError("budget is too small", given=3, allowed="at least 10", action="Give minimum=1."))
    budget is too small (given: 3; allowed: at least 10). Give minimum=1.
    """

    def __init__(
        self, what: str, *, given: object = None, allowed: str | None = None, action: str | None = None
    ) -> None:
        self.what = what
        self.given = given
        self.allowed = allowed
        self.action = action
        super().__init__(self._message())

    def _message(self) -> str:
        details = []
        if self.given is not None:
            details.append(f"given: {self.given}")
        if self.allowed is not None:
            details.append(f"allowed: {self.allowed}")
        text = self.what + (f" ({'; '.join(details)})" if details else "")
        if not text.endswith((".", "!", "?")):
            text += "."
        return f"{text} {self.action}" if self.action else text


class InputError(StratalError, ValueError):
    """An argument, a file, a column or a row that cannot be used.

    Examples
    --------
    >>> raise InputError("confidence_level is out of range", given=95, allowed="between 0 and 1")
    Traceback (most recent call last):
    stratal.errors.InputError: confidence_level is out of range (given: 95; allowed: between 0 and 1).
    """


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


class RequirementError(StratalError, AssertionError):
    """An interval that does not lie where it must: no mistake of the user's, but a test that fails.

    Examples
    --------
    >>> issubclass(RequirementError, AssertionError)
    True
    """


class StratalWarning(UserWarning):
    """Something the user should know, though the result is sound: nonresponse, merged strata, a weak proxy.

    Examples
    --------
    >>> issubclass(StratalWarning, UserWarning)
    True
    """


def not_bounds(given: object, name: str = "bounds") -> InputError:
    """Return the error for bounds that are not two finite numbers, the lower first.

    Parameters
    ----------
    given : object
        What was given in their place.
    name : str
        The keyword that they were given by.

    Examples
    --------
    >>> print(not_bounds((5, 1)))
    bounds must be two finite numbers, the lower first (given: (5, 1)). Give bounds=(lowest, highest), ...
    """
    return InputError(
        f"{name} must be two finite numbers, the lower first",
        given=repr(given),
        action=f"Give {name}=(lowest, highest), in the outcome's units.",
    )


def not_positive(name: str, given: object) -> InputError:
    """Return the error for what must be a number above 0, in the units of what is estimated.

    Parameters
    ----------
    name : str
        The keyword or option that it was given by.
    given : object
        What was given.

    Examples
    --------
    >>> print(not_positive("half_width", 0))
    half_width must be a positive number (given: 0; allowed: above 0, in the units of what is estimated).
    """
    allowed = "above 0, in the units of what is estimated"
    return InputError(f"{name} must be a positive number", given=repr(given), allowed=allowed)


def half_a_character(holder: str, text: str) -> InputError:
    """Return the error for a text that UTF-8 cannot hold, as JSON with half of an emoji gives it.

    Examples
    --------
    >>> print(half_a_character("an id", chr(0xD83D)))
    an id holds half a character, which no file can (given: '\\ud83d'; allowed: Unicode text). Replace it, \
such as by text.encode(errors="replace").decode().
    """
    return InputError(
        f"{holder} holds half a character, which no file can",
        given=ascii(text if len(text) <= 60 else text[:59] + "…"),
        allowed="Unicode text",
        action='Replace it, such as by text.encode(errors="replace").decode().',
    )


def kind_of(given: object) -> str:
    """Return what kind of thing was given, with its article, for an error.

    Examples
    --------
    >>> kind_of([0.1]), kind_of(7)
    ('a list', 'an int')
    """
    name = type(given).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def no_level(given: object) -> InputError:
    """Return the error of a confidence level that is not between 0 and 1, such as percent.

    Examples
    --------
    >>> print(no_level(95))
    confidence_level is out of range (given: 95; allowed: between 0 and 1, as in 0.95). For 95 % write 0.95.
    """
    action = None
    if isinstance(given, int | float) and 1 < given < 100:
        action = f"For {given:g} % write {given / 100:g}."
    return InputError(
        "confidence_level is out of range",
        given=given,
        allowed="between 0 and 1, as in 0.95",
        action=action,
    )


def near_names(name: str, names: Iterable[str]) -> str:
    """Return the names most like `name`, or all of them, as a readable list.

    Parameters
    ----------
    name : str
        What was asked for.
    names : iterable of str
        What exists.

    Examples
    --------
    >>> near_names("prxy", ["id", "proxy", "group"])
    "'proxy'"
    >>> near_names("zzz", ["id", "proxy"])
    "'id', 'proxy'"
    """
    existing = list(names)
    near = list(map(repr, difflib.get_close_matches(str(name), existing, n=3) or existing[:20]))
    return ", ".join([*near, "…"] if len(near) == 20 < len(existing) else near)


def same_name(name: str, names: Iterable[str]) -> str | None:
    """Return the one of `names` that is `name`, or is it but for case and spaces around where only one is.

    Parameters
    ----------
    name : str
        What was asked for.
    names : iterable of str
        What exists.

    Examples
    --------
    >>> same_name("label", ["ID", "Label"]), same_name("label", ["LABEL", "Label"])
    ('Label', None)
    """
    existing = list(names)
    if name in existing:
        return name
    alike = [entry for entry in existing if entry.strip().casefold() == name.strip().casefold()]
    return alike[0] if len(alike) == 1 else None
