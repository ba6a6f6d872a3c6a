"""Inspect: `.eval` logs by Inspect's own reader (extra `inspect`), `.json` logs as they are (as of 0.3.285).

A unit is one epoch of a sample; the epochs of a sample are one cluster. Scores are numbers as Inspect itself
makes them: C, I, P and N are 1, 0, ½ and 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stratal.errors import InputError, MissingExtraError
from stratal.tables.logs.log import NTH, Log, Row, as_written, make_log, number_or_none, require_keys, text_of

TOOL = "Inspect"
_LETTERS = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_HEAVY = {"events", "store"}
"""What Inspect's reader leaves out of the samples, since nothing here needs it."""


def recognises(found: Any) -> bool:
    """Return whether a JSON document is one of this tool's.

    Examples
    --------
    >>> recognises({"version": 2, "eval": {}, "plan": {}, "samples": []}), recognises([{"id": 0}])
    (True, False)
    """
    return isinstance(found, Mapping) and {"eval", "plan", "version"} <= set(found)


def read_packed(path: Path) -> Log:
    """Return a log of an `.eval` file.

    Raises
    ------
    MissingExtraError
        If Inspect is not installed.
    InputError
        For a file that its reader cannot read.
    """
    try:
        from inspect_ai.log import read_eval_log
    except ImportError:
        raise MissingExtraError("inspect_ai", extra="inspect") from None
    try:
        log = read_eval_log(str(path), resolve_attachments="core", exclude_fields=_HEAVY)
        left_out: Any = {"plan": True, "stats": True, "samples": {"__all__": _HEAVY}}
        found = log.model_dump(mode="json", exclude=left_out)
    except Exception as error:
        raise InputError(
            f"{path}: Inspect's own reader cannot read it",
            given=f"{type(error).__name__}: {error}"[:200],
            action="Check that the log is whole, or read it where a newer version of Inspect is installed.",
        ) from None
    with as_written(str(path), TOOL):
        return read(found, str(path))


def read(found: Mapping[str, Any], source: str) -> Log:
    """Return a log of the document.

    Raises
    ------
    InputError
        For a log without samples, and for a sample that lacks what every one has.

    Examples
    --------
    >>> sample = {"id": "q7", "epoch": 1, "input": "2 + 2?", "target": "4",
    ...           "output": {"completion": "4"}, "scores": {"match": {"value": "C"}}}
    >>> read({"version": 2, "eval": {}, "plan": {}, "samples": [sample]}, "log.json").columns["match"]
    [1.0]
    """
    samples = found.get("samples")
    if not isinstance(samples, list) or not samples:
        raise InputError(
            f"{source}: holds no samples", action="Run the evaluation with its samples logged (log_samples)."
        )
    for number, sample in enumerate(samples, start=1):
        _refuse_incomplete(sample, f"{source}, sample {number}")
    repeated = len({str(sample["id"]) for sample in samples}) < len(samples)
    names = list(dict.fromkeys(name for sample in samples for name in sample.get("scores") or {}))
    rows = [_row(sample, names, repeated) for sample in samples]
    rows.sort(key=lambda row: row.shared["epoch"])
    status = found.get("status")
    said = [] if status in (None, "success") else [f"{source}: the evaluation did not finish ({status})"]
    return make_log(TOOL, rows, cluster="sample", notes=said)


def _refuse_incomplete(sample: Any, place: str) -> None:
    require_keys(sample, place, TOOL, ("id", "epoch", "input"))
    scores = sample.get("scores")
    if scores is not None and not (
        isinstance(scores, Mapping) and all(isinstance(score, Mapping) for score in scores.values())
    ):
        raise InputError(f"{place}: its scores have an unexpected type", allowed="an object of scorers")


def _row(sample: Mapping[str, Any], names: Sequence[str], repeated: bool) -> Row:
    unit = str(sample["id"])
    target = sample.get("target")
    shared = {"sample": unit, "epoch": sample["epoch"], "input": _words(sample["input"])}
    shared["target"] = target[0] if isinstance(target, list) and len(target) == 1 else target
    shared |= {f"metadata.{name}": value for name, value in (sample.get("metadata") or {}).items()}
    scores: dict[str, float | None] = {}
    for name in names:
        value = ((sample.get("scores") or {}).get(name) or {}).get("value")
        parts = value if isinstance(value, Mapping) else {"": value}
        scores |= {f"{name}.{part}" if part else name: _number(each) for part, each in parts.items()}
    return Row(
        unit=f"{unit}{NTH}{sample['epoch']}" if repeated else unit,
        shared=shared,
        own={"answer": _completion(sample.get("output"))},
        scores=scores,
    )


def _number(value: Any) -> float | None:
    """Return a score as Inspect counts it, None where it is no number and no letter."""
    if isinstance(value, str) and value not in _LETTERS:
        value = value.lower()
    return _LETTERS[value] if isinstance(value, str) and value in _LETTERS else number_or_none(value)


def _words(content: Any) -> Any:
    """Return an input as text; a list of messages as turns."""
    if not isinstance(content, list):
        return text_of(content)
    return [
        {"role": message.get("role"), "content": _content(message.get("content"))}
        for message in content
        if isinstance(message, Mapping)
    ]


def _completion(output: Any) -> str | None:
    if not isinstance(output, Mapping):
        return None
    if isinstance(output.get("completion"), str):
        return str(output["completion"])
    choices = output.get("choices") or [{}]
    message = choices[0].get("message") if isinstance(choices[0], Mapping) else None
    return None if not isinstance(message, Mapping) else _content(message.get("content"))


def _content(content: Any) -> str:
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, Mapping)]
        return "\n".join(text for text in texts if isinstance(text, str))
    return "" if content is None else text_of(content)
