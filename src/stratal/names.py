"""Names of columns as users write them: comma-separated lists, and a keyword or option with a name."""

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
    """Return the keyword of Python and the option of the command that give a column its role.

    Examples
    --------
    >>> option_of("value", "my label")
    "value='my label' (--value 'my label')"
    """
    return f"{role}={name!r} (--{role} {quote(name)})"
