"""`stratal threshold`: which items can be accepted by their score, with a guarantee."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

from stratal.cli.command import Option, command
from stratal.cli.estimate import STATUSES, EvidenceOptions
from stratal.cli.options import Text
from stratal.cli.output import Result, show_progress
from stratal.errors import InputError
from stratal.names import split_names
from stratal.protocols import JsonDict


class ThresholdOptions(EvidenceOptions, frozen=True, kw_only=True):
    """The options of `threshold`.

    Parameters
    ----------
    require : METRIC>=LIMIT
        Requirement for the accepted items: error<=.05, precision>=.9, recall>=.8 or false_positive_rate<=.01;
        for one class, precision:spam>=.9.
    score : COL or COL,COL, default the proxy
        Column of the score. With two scores, accepted items reach a threshold on each score.
    by : COL
        Find a threshold for each level of this group; the guarantee holds for all levels together.
    target : str
        Target of the guarantee: population (these items) or superpopulation (future items).
    population : FILE, default the file of the plan
        File of all items, if the sample was not drawn by a plan.
    output : DIR
        Directory for accepted.csv, review.csv and a report; it must be empty or must not exist yet.
    details : bool
        Also print the candidate sets and the curve.
    """

    require: Text = None
    score: Text = None
    by: Text = None
    output: Annotated[Path | None, Option()] = None
    details: bool = False


@command(
    ThresholdOptions,
    without="""estimand estimator post_stratify margins cross_fit calibration features outcome bounds
    winsorise look interval metric class_ compare model judge failed_answers against answers new_labels
    same_rows""",
)
def threshold(requested: ThresholdOptions) -> Result:
    """Find the items that can be accepted without review.

    Prints the largest set of items with the highest scores that satisfies the requirement with 95%
    confidence, however good or bad the score is. For recall, it prints the smallest such set. If there is no
    such set, it prints how many labels would be required. The files are the same as for `estimate`.

    The exit status is 0 if a set is accepted (PASS), 4 if every set violates the requirement (FAIL),
    and 5 if the labels do not decide (UNDECIDED).
    """
    if requested.require is None:
        allowed = "--require 'error<=.05', 'precision>=.9', 'recall>=.8' or 'false_positive_rate<=.01'"
        raise InputError("--require is missing", allowed=allowed)
    with show_progress("testing thresholds"):
        result = requested.accept(requested.require, split_names(requested.score))
        described = result.to_dict()
    line = None
    if requested.output is not None:
        item_counts = result.write(requested.output)
        described["files"] = item_counts
        files = ", ".join(f"{name} ({count:,} items)" for name, count in item_counts.items())
        line = f"Written to {requested.output}: {files}"
    page = partial(_page, details=requested.details)
    return Result(described, page, line, status=STATUSES[result.verdict])


def _page(described: JsonDict, *, details: bool) -> Any:
    """Return the page of the result; its module is imported only if the result is printed as text."""
    from stratal.report.thresholds import threshold_page

    return threshold_page(described, details=details)
