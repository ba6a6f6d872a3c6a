"""Columns that annotators need to see: texts and images, recognised by their names."""

from __future__ import annotations

from collections.abc import Collection, Iterable

# Names of the content of an item. In data of language models `output`, `response` and `completion` are
# what is judged; names of a classifier's answer, which could influence annotators, are apart.
_CONTENT_NAMES = frozenset(
    (
        *("text", "prompt", "question", "input", "output", "response", "completion", "content", "message"),
        *("document", "image", "image_url", "url", "summary", "title", "comment", "review", "sentence"),
        *("query", "context", "instruction", "instructions", "passage", "article", "body", "conversation"),
        *("messages", "transcript", "snippet", "code"),
    )
)


# Content by which an item is identified, such as the path of a picture.
_IDENTIFYING_NAMES = frozenset(("image", "image_url", "url", "document", "code"))


def is_content_text(name: str) -> bool:
    """Return whether a column is named like the text of an item: it may differ in each row, and is no id."""
    return name.strip().casefold() in _CONTENT_NAMES - _IDENTIFYING_NAMES


# Names of a model's answer, which annotators see if they judge whether it is right.
_ANSWER_NAMES = frozenset(("answer", "prediction", "predicted", "model_answer", "model_output"))


def is_answer_name(name: str) -> bool:
    """Return whether a column is named like a model's answer."""
    return name.casefold() in _ANSWER_NAMES


def content_columns(
    names: Iterable[str], used: Collection[str] = (), *, with_answers: bool = False
) -> list[str]:
    """Return the columns with the content of items, without those that are `used` in another role.

    Parameters
    ----------
    names : iterable of str
        All columns.
    used : collection of str
        Columns that have a role, such as the id.
    with_answers : bool
        Whether annotators judge the model's answer, and so must see it.
    """
    content = _CONTENT_NAMES | _ANSWER_NAMES if with_answers else _CONTENT_NAMES
    return [name for name in names if name.casefold() in content and name not in used]
