"""`stratal backup`: a copy of a study as it is at one moment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stratal.cli import options as o
from stratal.cli.output import print_json, print_page, progress


def backup(
    study: o.Study,
    output: Annotated[Path, typer.Option(help="Directory to write to; must be empty or not exist.")],
    json: o.Json = False,
) -> None:
    """Copy a study while people go on labelling, and check the copy. The copy is a study itself.

    Exit status 3 if anything is wrong with it. The annotators' links are not copied: `stratal label` makes
    new ones for the copy.
    """
    from stratal.cli.check import UNSOUND
    from stratal.report import check_page
    from stratal.study.opening import backup_study, open_study

    with progress("copying"), open_study(study) as opened:
        found = backup_study(opened, output)
    described = {"study": str(output), "sound": found.sound, **found.to_dict()}
    if json:
        print_json(described)
    else:
        print_page(check_page(described))
    if not found.sound:
        raise typer.Exit(UNSOUND)
