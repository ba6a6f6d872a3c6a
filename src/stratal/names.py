"""Lists of names as users type them."""

from __future__ import annotations


def split_names(text: str | None) -> tuple[str, ...]:
    """Return the names in a comma-separated list.

    Examples
    --------
    >>> split_names("score, judge,")
    ('score', 'judge')
    """
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())
