"""`stratal reproduce`: a paper's tables and figures, and a page that sets them beside the print."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stratal.cli import options as o
from stratal.cli.output import print_json, print_table, print_text, progress


def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help="fogliato, kumar-raj or stratppi.")],
    data: Annotated[
        Path | None, typer.Option(help="Directory of the paper's data; see docs/papers for the names.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Directory to write to.", show_default="reproduced-PAPER")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few replicates, to see that it runs.")] = False,
    seed: o.Seed = 0,
    json: o.Json = False,
) -> None:
    """Reproduce a paper: tables, figures, and a page that compares them with the print."""
    from stratal.reproduce import reproduce as run

    with progress(f"reproducing {paper}"):
        page = run(paper, output or Path(f"reproduced-{paper}"), data=data, quick=quick, seed=seed)
    found = page.to_dict()
    if json:
        print_json(found)
        return
    print_text(page.title)
    rows = [(claim.where, claim.says, claim.found, claim.verdict.strip("*")) for claim in page.claims]
    print_table("The paper says, we get", ["where", "the paper says", "we get", "agrees"], rows)
    print_text("", f"Wrote {page.directory / 'page.md'} and {len(page.files) - 1} more files.")
