"""Columns that annotators need to see: texts and images, recognised by their names."""

from __future__ import annotations

from collections.abc import Collection, Iterable

# Names of the content of an item. A model's answer is not among them, since it can influence annotators.
_CONTENT_NAMES = frozenset(
    (
        *("text", "prompt", "question", "input", "output", "response", "completion", "content", "message"),
        *("document", "image", "image_url", "url", "summary", "title", "comment", "review", "sentence"),
        *("query", "context", "instruction", "instructions", "passage", "article", "body", "conversation"),
        *("messages", "transcript", "snippet", "code"),
    )
)


def content_columns(names: Iterable[str], used: Collection[str] = ()) -> list[str]:
    """Return the columns with the content of items, without those that are `used` in another role.

    Parameters
    ----------
    names : iterable of str
        All columns.
    used : collection of str
        Columns that have a role, such as the id.
    """
    return [name for name in names if name.casefold() in _CONTENT_NAMES and name not in used]
