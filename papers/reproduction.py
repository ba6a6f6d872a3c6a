"""The papers by name: `reproduce`, and the command that runs it."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
import tempfile
from pathlib import Path

import click

from papers.page import Page
from papers.project_pages import store_quick, write_project_page
from stratal.errors import InputError, StratalError, suggest_names
from stratal.randomness import check_seed

PAPERS = ("fogliato", "kumar-raj", "stratppi", "open-questions")


def reproduce(
    paper: str,
    output: str | Path,
    *,
    data: str | Path | None = None,
    predictions: str | Path | None = None,
    quick: bool = False,
    seed: int = 0,
) -> Page:
    """Reproduce a paper: tables, figures, and a page that compares them with the print.

    Parameters
    ----------
    paper : {"fogliato", "kumar-raj", "stratppi", "open-questions"}
    output : path
        Directory; made if it does not exist. Files of the same names are replaced, all at the end or none.
    data : path, optional
        Directory of the paper's data, where there are any; see docs/papers.
    predictions : path, optional
        Directory of predictions by role, for "fogliato".
    quick : bool
        Few replicates, to see that it runs.
    seed : int

    Returns
    -------
    Page

    Raises
    ------
    InputError
        For an unknown paper, a data directory that does not exist or holds files that cannot be read, or an
        output that is no directory.
    MissingExtraError
        Without Matplotlib, or scikit-learn where classifiers are trained.

    Examples
    --------
    >>> reproduce("fogliatto", "out")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    stratal.errors.InputError: no such paper (given: 'fogliatto'; allowed: 'fogliato', ...).
    """
    if paper not in PAPERS:
        raise InputError("no such paper", given=repr(paper), allowed=suggest_names(paper, PAPERS))
    name = paper.replace("-", "_")
    module = importlib.import_module(f"papers.{name}")
    folders = {k: Path(v) for k, v in (("data", data), ("predictions", predictions)) if v is not None}
    for option, folder in folders.items():
        if not folder.is_dir():
            raise InputError(f"{folder} is no directory", action=f"Give --{option} a directory of files.")
    if predictions is not None and paper != "fogliato":
        raise InputError("--predictions is not an option of this paper", given=paper, allowed="fogliato")
    target = Path(output)
    above = next(place for place in (target, *target.absolute().parents) if place.exists())
    if not above.is_dir():
        raise InputError(f"{above}: is not a directory", action="Choose another --output.")
    run = getattr(module, f"reproduce_{name}")
    with tempfile.TemporaryDirectory(dir=above, prefix=".reproduce-") as partial:
        page: Page = run(Path(partial), **folders, quick=quick, seed=check_seed(seed))
        target.mkdir(parents=True, exist_ok=True)
        page.files = [Path(shutil.move(path, target / path.name)) for path in page.files]
    page.directory = target
    return page


FOLDER = click.Path(path_type=Path)


@click.command()
@click.argument("paper")
@click.option("--data", type=FOLDER, help="Directory of the paper's data; see docs/papers for the names.")
@click.option("--predictions", type=FOLDER, help="fogliato: TASK/evaluated.npz and TASK/surrogate.npz.")
@click.option("--output", type=FOLDER, help="Directory to write to.  [default: reproduced-PAPER]")
@click.option("--quick", is_flag=True, help="Few replicates, to see that it runs.")
@click.option("--seed", default=0, help="Same seed, same table.")
@click.option(
    "--docs",
    type=FOLDER,
    help="Directory of pages, docs/papers, for page and numbers (the quick run's alone with --quick).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def app(
    paper: str,
    data: Path | None,
    predictions: Path | None,
    output: Path | None,
    quick: bool,
    seed: int,
    docs: Path | None,
    as_json: bool,
) -> None:
    """Reproduce fogliato, kumar-raj, stratppi or open-questions: tables, figures, and a comparison."""
    try:
        target = output or Path(f"reproduced-{paper}")
        page = reproduce(paper, target, data=data, predictions=predictions, quick=quick, seed=seed)
        if docs is not None and predictions is not None:
            raise InputError(
                "--docs is for the project's own data", action="Leave --docs or --predictions out."
            )
        if docs is not None and quick:
            store_quick(page, paper, docs)
        elif docs is not None:
            with tempfile.TemporaryDirectory() as folder:
                short = reproduce(paper, folder, data=data, quick=True, seed=seed)
            write_project_page(page, short, paper, docs)
    except StratalError as error:
        print(f"Error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    if as_json:
        print(json.dumps(page.to_dict(), ensure_ascii=False, allow_nan=False))
        return
    print(page.title)
    for claim in page.claims:
        verdict = claim.verdict.strip("*")
        where = f"{claim.where} [{claim.data}]" if claim.data else claim.where
        print(
            f"{where}: the paper says {claim.says}; we get {claim.found}; agrees: {verdict} (off by "
            f"{claim.off})"
        )
    print(f"Wrote {page.directory / 'page.md'} and {len(page.files) - 1} more files.")
