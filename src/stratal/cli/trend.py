"""`stratal trend`: how good the model is from week to week, what changed, and an alarm."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import stratal
from stratal.cli.command import Option, argument, command
from stratal.cli.conditions import ValueCondition
from stratal.cli.estimate import NEEDS, EvidenceOptions
from stratal.cli.options import Number, Text
from stratal.cli.output import Result, show_progress
from stratal.errors import InputError
from stratal.protocols import JsonDict
from stratal.report.verdicts import ALARM, NO_ALARM, UNDECIDED

# Exit statuses of the verdicts, with the same numbers as for `estimate --require`.
TREND_STATUSES = {None: 0, NO_ALARM: 0, ALARM: 4, UNDECIDED: 5}

# Only requirements for changes use the reference.
_WITH_CHANGE = ValueCondition(
    "with --require 'fell<=X' or 'rose<=X'",
    lambda values: any(name in (values["require"] or "") for name in ("fell", "rose")),
)

# Options of `estimate` that have a meaning only for a single sample.
_SINGLE_SAMPLE_FIELDS = ("against", "answers", "new_labels", "look", "population", "calibration", "features")


class TrendOptions(EvidenceOptions, frozen=True, kw_only=True):
    """The options of `trend`.

    Parameters
    ----------
    wave : COL
        For one table with labels: column of the wave, such as 2026-03-02, 2026-W09 or a number; waves with
        other names keep the order of the rows.
    require : LEVEL or CHANGE
        Raise an alarm unless every wave meets this requirement: a level ('>=.9', '<=.05', 'value@de>=.9' for
        a group of --by) or a change since the reference ('fell<=.03', 'rose<=.03'); separate several with
        semicolons.
    reference : int
        Number of initial waves from which 'fell' and 'rose' are measured.
    max_change : float
        Largest assumed change in the level between two waves. If given, the pooled level has an interval.
    output : FILE
        Write the report to this new .html file.
    details : bool
        Print all waves.
    """

    files: Annotated[
        list[Path] | None,
        argument(
            "WAVE…",
            "In chronological order: folders that `draw` wrote, with the labels in their to_label.csv or as "
            "FOLDER=FILE,…; studies; or one table with --wave.",
        ),
    ] = None
    wave: Text = None
    require: Text = None
    reference: Annotated[int, Option(needs=(_WITH_CHANGE,))] = 4
    max_change: Number = None
    output: Annotated[Path | None, Option()] = None
    details: bool = False


@command(TrendOptions, without=" ".join(_SINGLE_SAMPLE_FIELDS), needs=NEEDS)
def trend(requested: TrendOptions) -> Result:
    """Compare weeks: level, change, and an alarm.

    Prints the level of each wave, and the change since the previous wave and since the first wave. The
    intervals of the latest level, its changes and the groups of --by hold simultaneously; earlier waves keep
    their own intervals. A wave without labels counts only towards the drift of the score.

    With --require, the exit status is 4 if any wave violates it (ALARM), 5 if no wave has been tested yet
    because all are part of the reference (UNDECIDED), and 0 otherwise (NO ALARM). The probability that a
    false alarm ever occurs is at most 5% (1 − --confidence-level).
    """
    if not requested.files:
        raise InputError(
            "no waves are given",
            allowed="stratal trend week1/ week2/, or stratal trend labels.csv --wave week",
        )
    keywords = {
        name: value for name, value in requested.keywords.items() if name not in _SINGLE_SAMPLE_FIELDS
    }
    waves: Any = requested.files
    if requested.wave is not None and len(requested.files) > 1:
        raise InputError(
            "--wave must be a column of one table",
            given=f"{len(requested.files)} files",
            allowed="one file with all waves",
        )
    with show_progress("comparing waves"):
        result = stratal.trend(
            waves,
            wave=requested.wave,
            reference=requested.reference,
            max_change=requested.max_change,
            **keywords,
        )
        described = result.to_dict()
        line = None
        if requested.output is not None:
            line = f"Report: {result.write(requested.output)}"
    page = partial(_page, details=requested.details)
    return Result(described, page, line, status=TREND_STATUSES[result.verdict])


def _page(described: JsonDict, *, details: bool) -> Any:
    """Return the page of the result; its module is imported only if the result is printed as text."""
    from stratal.report.trends import trend_page

    return trend_page(described, details=details)
