"""`stratal demo`: the whole trip on real data, with the truth beside the estimate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stratal.cli import options as o
from stratal.cli.output import print_json, print_next, print_page, print_text, progress


def demo(
    budget: Annotated[int, typer.Option(help="Labels that can be bought.")] = 100,
    seed: o.Seed = 7,
    output: Annotated[
        Path | None, typer.Option(help="Leave predictions.parquet and labels.csv in this directory.")
    ] = None,
    json: o.Json = False,
) -> None:
    """Train a classifier on handwritten digits, then find out how good it is from a few labels."""
    from stratal.report import estimate_page, plan_page
    from stratal.simulation.demonstration import run, write_data

    with progress("training, planning, drawing, labelling"):
        shown = run(budget=budget, seed=seed)
    written = write_data(shown.data, output) if output is not None else None
    if json:
        print_json(shown.to_dict() | ({"output": str(output)} if written else {}))
        return
    print_text(*shown.opening(), "")
    print_page(plan_page(shown.plan.to_dict()))
    print_text("")
    print_page(estimate_page(shown.estimate.to_dict()))
    print_text("", *shown.closing())
    if written is not None:
        print_text(
            "",
            f"Wrote {written[0]} and {written[1]} (the truth, apart).",
        )
        print_next("plan", written[0], "--proxy", "confidence", "--budget", budget)
