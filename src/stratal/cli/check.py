"""`stratal check`: whether everything that was saved in a study is there, unchanged."""

from __future__ import annotations

from typing import Annotated

import typer

from stratal.cli import options as o
from stratal.cli.output import print_json, print_page, progress

UNSOUND = 3
"""Exit status for a study or a copy with problems; 1 is a reader that left, 2 a mistake."""


def check(
    study: o.Study,
    head: Annotated[
        str | None, typer.Option(help="Hash that an earlier check printed; it must still be in the journal.")
    ] = None,
    json: o.Json = False,
) -> None:
    """Check a study: the journal's chain of hashes, its ids against the sample, its counts.

    Exit status 3 if anything is wrong. Write the last hash down elsewhere: it proves later that nothing
    before it was changed.
    """
    from stratal.report import check_page
    from stratal.study.opening import check_study, open_study

    with progress("checking"), open_study(study, reading=True) as opened:
        found = check_study(opened, known_head=head)
    described = {"study": str(study), "sound": found.sound, **found.to_dict()}
    if json:
        print_json(described)
    else:
        print_page(check_page(described))
    if not found.sound:
        raise typer.Exit(UNSOUND)
