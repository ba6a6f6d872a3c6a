"""Commands whose options are the fields of one frozen record."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import wraps
from typing import Any, TypeVar, get_type_hints

Options = TypeVar("Options")

LAST = "json"
"""The option that every help ends with."""


def takes(
    record: type[Options], *, without: tuple[str, ...] = (), order: tuple[str, ...] = ()
) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Return a decorator that makes a command of a function of one record: its fields become the options.

    Parameters
    ----------
    record
        A frozen dataclass whose fields are annotated as Typer wants them. Records may inherit fields.
    without
        Fields that are no options of this command; they keep their defaults.
    order
        Fields in the order of the help. Those that are not named stand before them, in the record's order.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Greeting:
    ...     name: str
    ...     loud: bool = False
    >>> @takes(Greeting)
    ... def greet(asked: Greeting) -> None:
    ...     print(asked.name.upper() if asked.loud else asked.name)
    >>> inspect.signature(greet)
    <Signature (*, name: str, loud: bool = False) -> None>
    >>> greet(name="Ada", loud=True)
    ADA
    """
    hints = get_type_hints(record, include_extras=True)
    place = {name: 1 + number for number, name in enumerate((*order, LAST))}
    entries = [entry for entry in fields(record) if entry.name not in without]  # type: ignore[arg-type]
    parameters = [
        inspect.Parameter(
            entry.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if entry.default is MISSING else entry.default,
            annotation=hints[entry.name],
        )
        for entry in sorted(entries, key=lambda entry: place.get(entry.name, 0))
    ]

    def decorate(body: Callable[[Options], None]) -> Callable[..., None]:
        @wraps(body)
        def command(**options: Any) -> None:
            body(record(**options))

        command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            parameters, return_annotation=None
        )
        command.__annotations__ = {entry.name: entry.annotation for entry in parameters}
        return command

    return decorate
