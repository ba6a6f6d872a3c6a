"""`reproduce`: the papers by name."""

from __future__ import annotations

import importlib
from pathlib import Path

from stratal.errors import InputError, near_names
from stratal.reproduce.page import Page

PAPERS = ("fogliato", "kumar-raj", "stratppi")


def reproduce(
    paper: str, output: str | Path, *, data: str | Path | None = None, quick: bool = False, seed: int = 0
) -> Page:
    """Reproduce a paper: tables, figures, and a page that compares them with the print.

    Parameters
    ----------
    paper : {"fogliato", "kumar-raj", "stratppi"}
    output : path
        Directory; made if it does not exist.
    data : path, optional
        Directory of the paper's data, where there are any; see docs/papers.
    quick : bool
        Few replicates, to see that it runs.
    seed : int

    Returns
    -------
    Page

    Raises
    ------
    InputError
        For an unknown paper or a data directory that does not exist.
    MissingExtraError
        Without Matplotlib, or scikit-learn where classifiers are trained.

    Examples
    --------
    >>> reproduce("fogliatto", "out")
    Traceback (most recent call last):
    stratal.errors.InputError: no such paper (given: 'fogliatto'; allowed: 'fogliato').
    """
    if paper not in PAPERS:
        raise InputError("no such paper", given=repr(paper), allowed=near_names(paper, PAPERS))
    name = paper.replace("-", "_")
    module = importlib.import_module(f"stratal.reproduce.{name}")
    folder = None if data is None else Path(data)
    if folder is not None and not folder.is_dir():
        raise InputError(f"{folder} is no directory", action="Give --data a directory of data files.")
    page: Page = getattr(module, f"reproduce_{name}")(Path(output), data=folder, quick=quick, seed=seed)
    return page
