"""Which tool a JSON document or its first line is of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stratal.errors import InputError
from stratal.population.logs import deepeval, hugging_face, inspect_ai, lm_eval, promptfoo
from stratal.population.logs.log import Log, as_written

_DOCUMENTS = (
    (promptfoo.TOOL, promptfoo.recognises, promptfoo.read),
    (deepeval.TOOL, deepeval.recognises, deepeval.read),
    (inspect_ai.TOOL, inspect_ai.recognises, inspect_ai.read),
    (hugging_face.TOOL, hugging_face.recognises, hugging_face.read),
)


def log_of_document(found: Any, source: str) -> Log | None:
    """Return a JSON document as a log, None where it is none.

    Raises
    ------
    InputError
        For a log that is not whole, and for one that holds results of all units together.

    Examples
    --------
    >>> log_of_document([{"id": 0}], "rows.json")
    """
    if isinstance(found, Mapping) and {"results", "configs", "versions"} <= set(found):
        raise InputError(
            f"{source}: holds results of all documents together",
            allowed=f"samples_….jsonl of {lm_eval.TOOL}",
            action="Run it with --log_samples; the samples stand beside this file.",
        )
    for tool, recognises, read in _DOCUMENTS:
        if recognises(found):
            with as_written(source, tool):
                return read(found, source)
    return None


def log_of_lines(records: Iterable[Mapping[str, Any]], source: str) -> Log | None:
    """Return the objects of JSON Lines as a log, None where the first is of no log.

    Examples
    --------
    >>> log_of_lines([{"id": 0}], "rows.jsonl")
    """
    remaining = iter(records)
    first = next(remaining, None)
    if first is None or not lm_eval.recognises(first):
        return None
    with as_written(source, lm_eval.TOOL):
        return lm_eval.read([first, *remaining], source)
