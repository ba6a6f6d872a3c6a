"""Columns that annotators need to see: texts and images, recognised by their names."""

from __future__ import annotations

from collections.abc import Collection, Iterable

# Names of columns with the content of an item. In data of language models, `output`, `response` and
# `completion` are judged. Names of a classifier's answer, which could influence annotators, are in
# `_ANSWER_NAMES`.
_CONTENT_NAMES = frozenset(
    (
        *("text", "prompt", "question", "input", "output", "response", "completion", "content", "message"),
        *("document", "image", "image_url", "url", "summary", "title", "comment", "review", "sentence"),
        *("query", "context", "instruction", "instructions", "passage", "article", "body", "conversation"),
        *("messages", "transcript", "snippet", "code"),
    )
)


# Names of content that identifies an item, such as the path of an image.
_IDENTIFYING_NAMES = frozenset(("image", "image_url", "url", "document", "code"))


def is_content_text(name: str) -> bool:
    """Return whether a column has the name of an item's text, which is no id even if all texts differ."""
    return name.strip().casefold() in _CONTENT_NAMES - _IDENTIFYING_NAMES


# Names of a model's answer, which annotators see if they judge whether it is right.
_ANSWER_NAMES = frozenset(("answer", "prediction", "predicted", "model_answer", "model_output"))


def is_answer_name(name: str) -> bool:
    """Return whether a column is named like a model's answer."""
    return name.casefold() in _ANSWER_NAMES


def content_columns(
    names: Iterable[str], excluded: Collection[str] = (), *, with_answers: bool = False
) -> list[str]:
    """Return the columns with the content of items, without the `excluded` ones.

    Parameters
    ----------
    names : iterable of str
        All columns.
    excluded : collection of str
        Columns that have another role, such as the id.
    with_answers : bool
        Whether to include the model's answers, which annotators must see if they judge them.
    """
    content = _CONTENT_NAMES | _ANSWER_NAMES if with_answers else _CONTENT_NAMES
    return [name for name in names if name.casefold() in content and name not in excluded]
