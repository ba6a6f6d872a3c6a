"""`stratal team`: who labels a study, and whose labels are set aside."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stratal.cli import options as o
from stratal.cli.output import print_json, print_text


def team(
    study: o.Study,
    add: Annotated[str | None, typer.Option(metavar="NAME,…", help="Let these people label too.")] = None,
    set_aside: Annotated[
        str | None, typer.Option(help="Leave this annotator's labels out; none is deleted.")
    ] = None,
    take_back: Annotated[str | None, typer.Option(help="Take labels that were set aside back in.")] = None,
    reason: Annotated[str, typer.Option(help="Why, for the journal.")] = "",
    rubric: Annotated[
        Path | None, typer.Option(help="File with a new version of how to judge (Markdown).")
    ] = None,
    json: o.Json = False,
) -> None:
    """Show who labels a study; add people, set an annotator's labels aside or take them back."""
    from stratal.cli.init import text_of
    from stratal.study.opening import open_study

    with open_study(study) as opened:
        for name in o.listed(add):
            opened.add_annotator(name)
        if set_aside is not None:
            opened.set_aside(set_aside, reason=reason)
        if take_back is not None:
            opened.take_back(take_back, reason=reason)
        if rubric is not None:
            opened.set_rubric(text_of(rubric))
        found = {
            "study": str(study),
            "annotators": list(opened.annotators),
            "adjudicators": list(opened.adjudicators),
            "set_aside": opened.aside(),
            "rubric_version": opened.question.rubric_version,
        }
    if json:
        print_json(found)
        return
    for name in opened_names(found):
        print_text(name)


def opened_names(found: dict[str, object]) -> list[str]:
    """Return a line for each annotator.

    Examples
    --------
    >>> opened_names({"annotators": ["ann", "bob"], "set_aside": ["bob"]})
    ['ann', 'bob (set aside)']
    """
    people, aside = found["annotators"], found["set_aside"]
    assert isinstance(people, list)
    assert isinstance(aside, list)
    return [f"{name} (set aside)" if name in aside else name for name in people]
