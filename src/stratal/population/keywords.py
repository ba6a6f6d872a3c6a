"""Functions whose keywords are the fields of a record show them with defaults, in `help()` and editors."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from stratal.errors import near_names

Function = TypeVar("Function", bound=Callable[..., Any])


def of_caller(error: TypeError, record: type, called: str) -> TypeError:
    """Return Python's error about the keywords of a record as one about what the user called.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(kw_only=True)
    ... class Wanted:
    ...     size: int = 3
    >>> try:
    ...     Wanted(sise=4)
    ... except TypeError as error:
    ...     of_caller(error, Wanted, "draw")
    TypeError("draw() got an unexpected keyword argument 'sise'; it takes size")
    """
    said = str(error).partition(". Did you mean")[0]  # which Python 3.13 adds
    said = said.replace(f"{record.__name__}.__init__()", f"{called}()")
    return TypeError(f"{said}; it takes {', '.join(inspect.signature(record).parameters)}")


def refuse_unlisted(given: Iterable[str], function: Callable[..., Any]) -> None:
    """Refuse keywords that a function does not show, with Python's error about them.

    Examples
    --------
    >>> def draw(path, *, size=3, **others): ...
    >>> refuse_unlisted({"size": 4}, draw)
    >>> refuse_unlisted({"sise": 4}, draw)
    Traceback (most recent call last):
    TypeError: draw() got an unexpected keyword argument 'sise'; it takes 'size'
    """
    shown = inspect.signature(function).parameters
    for name in given:
        if name not in shown:
            taken = near_names(name, [own for own, one in shown.items() if one.kind is one.KEYWORD_ONLY])
            called = f"{function.__name__}() got an unexpected keyword argument {name!r}"
            raise TypeError(f"{called}; it takes {taken}")


def listing(*records: Callable[..., Any], without: tuple[str, ...] = ()) -> Callable[[Function], Function]:
    """Return a decorator that shows the fields of records, or keywords of functions, for a `**keywords`.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(kw_only=True)
    ... class Wanted:
    ...     size: int = 3
    >>> @listing(Wanted)
    ... def draw(path: str, **wanted: object) -> None: ...
    >>> inspect.signature(draw)
    <Signature (path: 'str', *, size: 'int' = 3) -> 'None'>
    """

    def listed(function: Function) -> Function:
        shown = inspect.signature(function)
        own = {name: one for name, one in shown.parameters.items() if one.kind is not one.VAR_KEYWORD}
        fields = {
            name: one
            for record in records
            for name, one in inspect.signature(record).parameters.items()
            if name not in own and name not in without
        }
        vars(function)["records"] = records  # in whose modules the annotations mean something
        vars(function)["__signature__"] = shown.replace(parameters=[*own.values(), *fields.values()])
        return function

    return listed
