"""Conditions under which an option of a command has an effect, as plain data next to the option."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

# The values of a command's options by field, defaults included.
Values = Mapping[str, Any]


@dataclass(frozen=True)
class OptionCondition:
    """Whether any of several options is given, or none of them.

    Options that a command does not have are ignored; if it has none of them, the condition holds.

    Parameters
    ----------
    options : mapping of field to values
        The values that satisfy the condition; an empty tuple means any value.
    present : bool
        Whether one of the options must be given (True), or none of them may be (False).
    reason : str
        Explanation that errors add.
    """

    options: Mapping[str, tuple[str, ...]]
    present: bool
    reason: str = ""

    def holds(self, values: Values, is_given: Callable[[str], bool]) -> bool:
        """Return whether the condition holds for the values of all options of a command."""
        options = {field: allowed for field, allowed in self.options.items() if field in values}
        if not options:
            return True

        def is_satisfied(field: str) -> bool:
            allowed = options[field]
            if allowed:
                return str(values[field]) in allowed
            return is_given(field)

        return any(map(is_satisfied, options)) == self.present

    def text(self, names: Mapping[str, str]) -> str:
        """Return the condition in words, such as `with --proxy or --by`; `names` are those of the options."""
        alternatives = []
        for field, allowed in self.options.items():
            if field not in names:
                continue
            if allowed:
                # The name precedes only the first value: `--design auto, stratified`.
                alternatives += [f"{names[field]} {allowed[0]}", *allowed[1:]]
            else:
                alternatives.append(names[field])
        listing = alternatives[-1]
        if len(alternatives) > 1:
            listing = f"{', '.join(alternatives[:-1])} or {listing}"
        reason = f" ({self.reason})" if self.reason else ""
        preposition = "with" if self.present else "without"
        return f"{preposition} {listing}{reason}"


@dataclass(frozen=True)
class ValueCondition:
    """A condition on the values of several options.

    Parameters
    ----------
    description : str
        The condition in words.
    function : callable
        Returns whether it holds for the values of all options of a command.
    """

    description: str
    function: Callable[[Values], bool]

    def holds(self, values: Values, is_given: Callable[[str], bool]) -> bool:
        """Return whether the condition holds for the values of all options of a command."""
        return self.function(values)

    def text(self, names: Mapping[str, str]) -> str:
        """Return the condition in words."""
        return self.description


Condition = OptionCondition | ValueCondition


def with_any(*fields: str, reason: str = "", **values: tuple[str, ...]) -> OptionCondition:
    """Return the condition that an option is given, or that one has one of these values.

    Examples
    --------
    >>> with_any("half_width", design=("auto", "stratified")).options
    {'design': ('auto', 'stratified'), 'half_width': ()}
    """
    return OptionCondition({**values, **dict.fromkeys(fields, ())}, present=True, reason=reason)


def without_all(*fields: str, reason: str = "", **values: tuple[str, ...]) -> OptionCondition:
    """Return the condition that none of these options is given, and that none has one of these values."""
    return OptionCondition({**values, **dict.fromkeys(fields, ())}, present=False, reason=reason)
