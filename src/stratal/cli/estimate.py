"""`stratal estimate`: from the sample and its labels to an estimate with its interval."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from stratal.cli import options as o
from stratal.cli.output import print_json, print_table, print_text, progress


def estimate(
    sample: Annotated[Path, typer.Argument(metavar="SAMPLE", help="The sample file that `draw` wrote.")],
    labels: Annotated[
        list[Path],
        typer.Argument(metavar="LABELS…", help="Labels, joined by id: CSV, JSON Lines or Parquet."),
    ],
    value: Annotated[str, typer.Option(help="Column of the label.")] = "label",
    predicted: Annotated[
        str | None,
        typer.Option(help="Labels are classes: compare with this column of the model's answers (see draw)."),
    ] = None,
    estimator: Annotated[
        str, typer.Option(help="auto, horvitz-thompson, difference, ppi++ or stratppi.")
    ] = "auto",
    lam: Annotated[float | None, typer.Option(help="λ given instead of fitted.")] = None,
    target: Annotated[str, typer.Option(help="population or superpopulation.")] = "population",
    outcome: Annotated[
        str | None, typer.Option(help="binary, bounded or unbounded; inferred where that is safe.")
    ] = None,
    bounds: Annotated[str | None, typer.Option(help="Bounds of the outcome: LOW,HIGH.")] = None,
    confidence_level: o.ConfidenceLevel = 0.95,
    interval: Annotated[str, typer.Option(help="auto, or a method of the documentation's table.")] = "auto",
    json: o.Json = False,
) -> None:
    """Estimate how good the model is, with an interval.

    Labels are joined to the sample by id. Units without a label are nonresponse: handled within strata, and
    counted.
    """
    from stratal.evaluation import estimate as estimated
    from stratal.label_file import read_labels
    from stratal.sample import Sample

    drawn = Sample.read(sample)
    given = read_labels(*labels, id_name=drawn.id_name, value=value)
    with progress("estimating"):
        result = estimated(
            drawn,
            given,
            estimator=estimator,
            target=target,
            outcome=outcome,
            bounds=o.pair("--bounds", bounds),
            lam=lam,
            predicted=predicted if predicted is not None else False,
        )
        described: dict[str, Any] = result.to_dict(confidence_level, interval)
    if json:
        print_json(described)
        return
    print_estimate(described)


def print_estimate(described: dict[str, Any]) -> None:
    """Print an estimate (`Estimate.to_dict`) as text and a table of its strata.

    Examples
    --------
    >>> print_estimate.__name__
    'print_estimate'
    """
    from stratal.report.text import ESTIMATE_HEADER, estimate_headline, estimate_rows

    print_text(*estimate_headline(described))
    if len(described["strata"]) > 1:
        print_table("Strata", ESTIMATE_HEADER, estimate_rows(described))
    print_text(*(f"Note: {line}" for line in described["notes"]))
