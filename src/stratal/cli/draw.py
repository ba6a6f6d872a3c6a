"""`stratal draw`: which units to label, as files for the annotators and for the estimate."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from stratal.cli import options as o
from stratal.cli.output import print_json, print_table, print_text, progress
from stratal.cli.plan import make_plan
from stratal.errors import InputError


def draw(
    file: o.File,
    output: Annotated[Path, typer.Option(help="Directory to write to; must be empty or not exist.")],
    id: o.Id = None,  # noqa: A002
    proxy: o.Proxy = None,
    budget: o.Budget = None,
    half_width: o.HalfWidth = None,
    seed: o.Seed = 0,
    groups: o.Groups = None,
    show: o.Show = None,
    predicted: o.Predicted = None,
    strata: o.StrataCount = None,
    stratify: o.Stratify = "k-means",
    by: o.By = None,
    allocation: o.AllocationRule = "robust",
    minimum: o.Minimum = 2,
    design: Annotated[str, typer.Option(help="auto (as recommended), simple-random or stratified.")] = "auto",
    confidence_level: o.ConfidenceLevel = 0.95,
    features: o.Features = None,
    proxy_bounds: o.ProxyBounds = None,
    second_moment: o.SecondMoment = None,
    margin: o.Margin = False,
    delimiter: o.Delimiter = None,
    directory: o.Directory = False,
    json: o.Json = False,
) -> None:
    """Draw the units to label.

    Writes sample.parquet, which the estimate needs, and to_label.csv: ids, the columns of --show and an
    empty column `label`, in random order, without anything that would lead the annotators.
    """
    from stratal.handover import empty_folder, write_handover

    empty_folder(output)
    reading = o.Reading(
        file=file, id=id, proxy=proxy, groups=groups, by=by, show=show, features=features,
        predicted=predicted, proxy_bounds=proxy_bounds, second_moment=second_moment, margin=margin,
        delimiter=delimiter, directory=directory,
    )  # fmt: skip
    made = make_plan(reading, budget, half_width, strata, stratify, by, allocation, minimum, confidence_level)
    with progress("drawing"):
        sample = made.using(_design_name(design)).draw(seed)
    written = write_handover(sample, output)
    if json:
        print_json({
            "sample": str(written.sample), "to_label": str(written.to_label), "n": sample.size, "seed": seed,
            "design": sample.design.kind, "population_size": sample.population_size,
        })  # fmt: skip
        return
    print_text(
        f"Drew {sample.size:,} of {sample.population_size:,} units ({sample.design.kind}, seed {seed})."
    )
    rows = zip(sample.design.stratum_names, sample.summary.sizes.tolist(), sample.n_h.tolist(), strict=True)
    print_table("Strata", ("stratum", "units", "to label"), [list(row) for row in rows])
    print_text(
        "",
        f"To label: {written.to_label}  (fill in the column `label`)",
        f"Sample:   {written.sample}  (keep it: the estimate needs it)",
        "",
        "Next: " + shlex.join(["stratal", "estimate", str(written.sample), str(written.to_label)]),
    )


def _design_name(name: str) -> str | None:
    if name not in ("auto", "simple-random", "stratified"):
        raise InputError("no such design", given=repr(name), allowed="auto, simple-random or stratified")
    return None if name == "auto" else name
