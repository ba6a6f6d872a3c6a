"""`stratal threshold`: which items can be accepted by their score, with a guarantee."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import stratal
from stratal.cli.command import Option, command, selected_fields
from stratal.cli.estimate import STATUSES, EvidenceOptions, read_population
from stratal.cli.options import Text
from stratal.cli.output import Result, progress
from stratal.cli.parsing import listed, mapping, meanings
from stratal.errors import InputError

# Keywords of `stratal.threshold` whose values are passed on as they are.
_SAME = (
    *("value", "id", "positive", "combine", "predicted", "confidence_level", "by", "target", "population"),
    *("chosen", "sizes", "cluster", "weight", "population_size", "tags"),
)


class ThresholdOptions(EvidenceOptions, frozen=True, kw_only=True):
    """The options of `threshold`.

    Parameters
    ----------
    require : METRIC>=LIMIT
        What the accepted items must satisfy: error<=.05, precision>=.9, recall>=.8 or
        false_positive_rate<=.01; of a class precision:spam>=.9.
    score : COL or COL,COL, default the proxy
        The score; of two, accepted items reach a threshold of each.
    by : COL
        A threshold for each level of this group; the guarantee is for all of them together.
    target : str
        Whether the guarantee is for these items (population) or for future ones (superpopulation).
    population : FILE, default the file of the plan
        All items, where the sample was not drawn by a plan.
    output : DIR
        Write the ids on each side (accepted.csv, review.csv) and a report; must be empty or not exist.
    details : bool
        Print the candidate sets and the curve.
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
    """Find the items that can be accepted by their score, with a guarantee.

    Returns the largest set of items with the highest scores for which the requirement holds with 95 %
    confidence, whatever the score is worth; for recall the smallest set. Without such a set it says how many
    labels would be needed. It takes the files of `estimate`.

    The exit status is 0 if a set is accepted (PASS), 4 if every candidate violates the requirement (FAIL),
    and 5 if labels do not decide (UNDECIDED).
    """
    if requested.require is None:
        allowed = "--require 'error<=.05', 'precision>=.9', 'recall>=.8' or 'false_positive_rate<=.01'"
        raise InputError("--require is missing", allowed=allowed)
    reader = None
    if requested.source is not None:
        reader = partial(read_population, requested.source, is_needed=True)
    with progress("testing thresholds"):
        result = stratal.threshold(
            requested.source,
            requested.other_files,
            requested.require,
            score=listed(requested.score) or None,
            proxy=listed(requested.proxy),
            read_population=reader,
            mapping=mapping("--map", requested.map),
            predicts=meanings(requested.predicts),
            **selected_fields(requested, *_SAME),
        )
        described = result.to_dict()
    line = None
    if requested.output is not None:
        counts = result.write(requested.output)
        described["files"] = counts
        line = f"Written to {requested.output}: " + ", ".join(
            f"{name} ({count:,} items)" for name, count in counts.items()
        )
    page = partial(_page, details=requested.details)
    return Result(described, page, line, status=STATUSES[result.verdict])


def _page(described: dict[str, Any], *, details: bool) -> Any:
    from stratal.report.thresholds import threshold_page

    return threshold_page(described, details=details)
