"""`stratal extend`: more items for a study, of the same draw."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stratal.cli import options as o
from stratal.cli.output import print_json, print_next, print_text, progress
from stratal.cli.parsing import joined, listed
from stratal.errors import InputError

if TYPE_CHECKING:
    from stratal.study.study import Study


def extend(
    study: o.Study,
    additional: Annotated[
        int | None,
        typer.Option(help="Units to add.", show_default="as many as the study's --until needs"),
    ] = None,
    until: Annotated[
        float | None,
        typer.Option(help="Stop when the anytime-valid interval's half-width is as small as this; 0: never."),
    ] = None,
    without_labels: Annotated[
        bool, typer.Option("--without-labels", help="Only a larger budget: look at no label.")
    ] = False,
    file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where the predictions are now.", show_default="where they were"),
    ] = None,
    json: o.Json = False,
) -> None:
    """Draw more items for a study, and give them to its annotators, whether or not a server is running.

    Every item that was drawn stays drawn. The labels so far say where new ones help most. With --until the
    study stops giving out items once the interval is narrow enough; a study that was made so is extended by
    as many items as the labels say are needed.
    """
    from stratal.study.interim import until as stop_at
    from stratal.study.opening import open_study
    from stratal.study.rounds import grow, units_needed

    with open_study(study) as opened:
        before = opened.sample().size
        wanted = units_needed(opened) if additional is None and until is None else additional
        if wanted is not None and (wanted or additional is not None):
            reading = read_again(opened, file)
            with progress("reading and drawing"):
                by_labels = False if without_labels else None
                grow(opened, wanted, population=reading.population(), by_labels=by_labels)
        enough = opened.setting("enough") == "yes" if until is None else stop_at(opened, until or None)
        larger = opened.sample()
    found = {
        "study": str(study),
        "n": larger.size,
        "new": larger.size - before,
        "round": int(larger.round.max()),
        "enough": enough,
    }
    if json:
        print_json(found)
        return
    print_text(f"Round {found['round']}: {found['new']:,} more items, {found['n']:,} in all.")
    if enough:
        print_text("The interval is as narrow as was asked for: labelling may stop.")
    print_next("status", study)


def read_again(study: Study, file: Path | None) -> o.Reading:
    """Return how the predictions of a study were read, perhaps from where they are now.

    Examples
    --------
    >>> read_again.__name__
    'read_again'
    """
    import json

    from stratal.population.declaration import fitting

    known: dict[str, Any] = json.loads(study.setting("reading") or "{}")
    if not known and file is None:
        raise InputError("this study does not know its file of predictions", action="Name it with --file.")
    sample = study.sample()
    own = {"id": sample.id_name, "proxy": joined(*sample.proxy_names), "predicted": sample.predicted}
    known = {**own, **known}
    # What the sample holds is compared, and so must be read; a pattern may name it already.
    for name, held in (("groups", sample.groups), ("show", sample.shown)):
        given = listed(known.get(name))
        lacking = [column for column in held if column not in fitting(given, tuple(held))]
        known[name] = joined(*given, *lacking) or None
    reading = o.Reading(**{**known, "file": o.place(known.get("file", "."))})
    reading = o.with_columns_of(reading, sample.estimand)
    return reading if file is None else replace(reading, file=file)
