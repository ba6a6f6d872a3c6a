"""Names of columns as users type them: lists of names, and options with a name."""

from __future__ import annotations

from shlex import quote


def split_names(text: str | None) -> tuple[str, ...]:
    """Return the names in a comma-separated list.

    Examples
    --------
    >>> split_names("score, judge,")
    ('score', 'judge')
    """
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def option_of(role: str, name: str) -> str:
    """Return what states the role of a column, in Python and in the command.

    Examples
    --------
    >>> option_of("value", "my label")
    "value='my label' (--value 'my label')"
    """
    return f"{role}={name!r} (--{role} {quote(name)})"
