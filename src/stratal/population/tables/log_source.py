"""An evaluation tool's log as a source, with the proxy, shown columns and cluster that it is used with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from stratal.population.logs.log import Log
from stratal.population.tables.declaration import Declaration, Declared, listed
from stratal.population.tables.frames import arrow_source
from stratal.population.tables.source import Source


def log_source(log: Log, request: Declared, label: str) -> tuple[Source, Declaration]:
    """Return a log as a source, and its columns as the user declared them, or as it is used where nothing is.

    Parameters
    ----------
    log : Log
    request : Declared
        Where it names no proxy the log's first score is taken; where it shows nothing, what a person needs
        to judge an answer.
    label : str
        What the log is called in errors.

    Examples
    --------
    >>> from stratal.population.logs.log import Row, log_of
    >>> log = log_of("a tool", [Row(unit="q7", own={"answer": "4"}, scores={"match": 1.0})])
    >>> source, declared = log_source(log, Declared(), "log.json")
    >>> declared.proxies, declared.shown
    (('match',), ('answer',))
    """
    names = list(log.columns)
    declared = as_used(log, request).among(names, label)
    columns = {name: _column(log.columns[name]) for name in declared.among(names)}
    return replace(arrow_source(columns, label), notes=log.notes, log=log), declared


def as_used(log: Log, request: Declared) -> Declared:
    """Return a request with what the log is used with, wherever it says nothing itself."""
    proxy = request.proxy
    if proxy is None and request.softmax is None:
        proxy = log.proxies[0]
    first = next(iter(listed("proxy", proxy)), None)
    groups = listed("groups", request.groups)
    if log.cluster is not None and log.cluster not in groups:
        groups = (*groups, log.cluster)
    return replace(
        request, proxy=proxy, show=listed("show", request.show) or log.shown_with(first), groups=groups
    )


def _column(values: Sequence[Any]) -> Any:
    """Return a column for Arrow: what is missing throughout is text, and half a character is none."""
    import pyarrow as pa

    texts = any(isinstance(value, str) for value in values) or all(value is None for value in values)
    if not texts:
        return pa.chunked_array([pa.array(values)])
    whole = [None if value is None else value.encode("utf-8", "replace").decode() for value in values]
    return pa.chunked_array([pa.array(whole, pa.string())])
