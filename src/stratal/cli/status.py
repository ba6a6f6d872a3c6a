"""`stratal status`: how far a study is, how its annotators agree, and what the labels say so far."""

from __future__ import annotations

from typing import Any

from stratal.cli import options as o
from stratal.cli.output import print_json, print_next, print_page, progress


def status(study: o.Study, confidence_level: o.ConfidenceLevel = 0.95, json: o.Json = False) -> None:
    """Show a study's progress, agreement, times, nonresponse and interim estimate.

    The anytime-valid interval holds at every moment at once: one may look at it again and again and stop when
    it is narrow enough.
    """
    from stratal.report import status_page
    from stratal.study.opening import open_study
    from stratal.study.status import study_status

    with progress("counting"), open_study(study, reading=True) as opened:
        found = study_status(opened, confidence_level=confidence_level)
    if json:
        print_json(found)
        return
    print_page(status_page(found))
    print_next(_next(found), study)


def _next(found: dict[str, Any]) -> str:
    """Return the command that comes next: more labels, more items, or the estimate."""
    stop, items = found["stop"], found["nonresponse"]
    if stop["enough"]:
        return "estimate"
    if items["open"] or not items["labelled"]:
        return "label"
    return "extend" if stop["half_width"] else "estimate"
