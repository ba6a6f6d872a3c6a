"""`Section`: one section of a report, whatever it will be written as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stratal.report.drawings import Drawing
from stratal.report.text import Table

Findings = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One section of a report.

    Parameters
    ----------
    title : str
    name : str
        Its address within the page.
    lines : sequence of str
        Paragraphs.
    drawings : sequence of Drawing
    tables : sequence of Table
    points : sequence of str
        A list below them.
    commands : sequence of str
        Lines to type.

    Examples
    --------
    >>> Section(title="Method", name="method").lines
    ()
    """

    title: str
    name: str
    lines: Sequence[str] = ()
    drawings: Sequence[Drawing] = ()
    tables: Sequence[Table] = ()
    points: Sequence[str] = ()
    commands: Sequence[str] = ()
