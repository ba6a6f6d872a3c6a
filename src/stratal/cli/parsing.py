"""Convert the text of options to values: lists, pairs, numbers, and mappings of labels."""

from __future__ import annotations

import math
import re
from pathlib import Path

import click

from stratal.errors import InputError
from stratal.names import split_names


def join_names(*names: str) -> str:
    """Return names as a comma-separated list, each once."""
    return ",".join(dict.fromkeys(names))


def parse_pair(option: str, text: str | None) -> tuple[float, float] | None:
    """Return two numbers given as `LOW,HIGH`."""
    if text is None:
        return None
    try:
        low, high = (parse_finite_number(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"{option} takes two numbers", given=repr(text), allowed="LOW,HIGH") from None
    return low, high


def parse_finite_number(text: str) -> float:
    """Return a text as a finite number; other texts raise a `ValueError`."""
    from stratal.arrays import number_of_text

    number = number_of_text(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def parse_mapping(option: str, text: str | None) -> dict[str, float | str | None] | None:
    """Return the value of each label from `LABEL=NUMBER,…` or `LABEL=CLASS,…`; `LABEL=` means no answer."""
    from stratal.arrays import number_of_text

    if text is None:
        return None
    allowed = "LABEL=NUMBER,…, such as Pass=1,Fail=0; LABEL=CLASS, and LABEL= for no answer"
    values: dict[str, float | str | None] = {}
    for label, value in parse_pairs(option, text, allowed, allow_empty=True).items():
        number = number_of_text(value)
        if math.isnan(number):
            values[label] = value or None
        else:
            values[label] = number
    return values


def parse_pairs(option: str, text: str | None, allowed: str, *, allow_empty: bool = False) -> dict[str, str]:
    """Return the value by name from `NAME=VALUE,…`; empty values are an error unless `allow_empty`.

    `allowed` describes the format in the error.
    """
    values: dict[str, str] = {}
    for entry in text.split(",") if text else ():
        name, _, value = (part.strip() for part in entry.rpartition("="))
        if not name or name in values or not (value or allow_empty):
            problem = f"{option} cannot be read"
            if allow_empty:
                problem = f"{option} must list each label once, with the value that the label counts as"
            raise InputError(problem, given=repr(text), allowed=allowed)
        values[name] = value
    return values


def parse_meanings(text: str | None) -> str | dict[str, str] | None:
    """Return the meaning of the only proxy, or the meanings of proxies from `COL=MEANING,…`."""
    if text is None or (text and "=" not in text):
        return text
    return parse_pairs("--predicts", text, "COL=MEANING,…, such as p_spam=class:spam,judge=rating:1..5")


def parse_whole_numbers(option: str, text: str) -> list[int]:
    """Return the whole numbers in a comma-separated list."""
    try:
        return [int(part) for part in split_names(text)]
    except ValueError:
        raise InputError(f"{option} takes whole numbers", given=repr(text), allowed="N,…") from None


class Widths(tuple[float, ...]):
    """Half-widths, one for each of several estimands, printed as they are typed."""

    __slots__ = ()

    def __str__(self) -> str:
        return ",".join(f"{width:g}" for width in self)


def parse_widths(text: str) -> float | Widths:
    """Return a half-width, or several with commas between them.

    Raises
    ------
    BadParameter
        For texts that are not numbers, and decimal commas.
    """
    # `Command.parse_args` appends how to write the number.
    error = click.BadParameter(f"{text!r} is not a valid number")
    try:
        half_widths = Widths(parse_finite_number(part) for part in text.split(","))
    except ValueError:
        raise error from None
    if len(half_widths) == 1:
        return half_widths[0]
    # A decimal comma: 0,05 is not the half-widths 0 and 5.
    if min(half_widths) <= 0:
        raise error
    return half_widths


# An address such as s3://, which is no path of this machine.
_SCHEME = re.compile(r"\A([a-z][a-z0-9+.-]++):/+")


class _Address(type(Path())):  # type: ignore[misc]
    """An address as a path, which keeps both slashes after the colon and is not resolved on this machine."""

    def __str__(self) -> str:
        return _SCHEME.sub(r"\1://", super().__str__(), count=1)

    def __fspath__(self) -> str:
        return str(self)

    def resolve(self, strict: bool = False) -> Path:
        """Return the address itself."""
        return self


def parse_path(text: str) -> Path:
    """Return a path; an address such as `hdfs://namenode/p.parquet` keeps both slashes."""
    if _SCHEME.match(text) and "://" in text:
        return _Address(text)
    return Path(text)


def read_text_file(path: Path, max_length: int = 2**20) -> str:
    """Return the content of a text file with a limited number of characters."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(max_length + 1)
    except (OSError, UnicodeDecodeError) as error:
        action = "Give the path of a text file in UTF-8."
        raise InputError(f"{path} cannot be read ({error})", action=action) from None
    if len(text) > max_length:
        raise InputError(f"{path} is too large", allowed=f"up to {max_length:,} characters")
    return text
