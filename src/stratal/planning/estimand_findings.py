"""What a report says of an estimand other than the mean: its value and how the labels were shared."""

from __future__ import annotations

from typing import Any

import numpy as np

from stratal.arrays import BoolArray
from stratal.estimation.estimand import Estimand
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimate_table import EstimateTable, with_tables
from stratal.estimation.quantity import Quantity
from stratal.planning.needs import more_labels
from stratal.report import plain_dict
from stratal.sampling.sample import Sample

ESTIMATOR = "metric"
"""The estimator's name: what `stratal.report.method` describes."""


def estimand_contents(
    sample: Sample,
    labels: Any,
    labelled: BoolArray,
    estimand: Estimand,
    made: Estimate | Quantity | EstimateTable,
    *,
    confidence_level: float,
    target: str,
) -> dict[str, Any]:
    """Return the parts of a report (of `Findings.to_dict`) that depend on what was estimated.

    Parameters
    ----------
    sample : Sample
    labels : see `stratal.estimate`
    labelled : bool (n,)
        Which of the drawn units have a label.
    estimand : Estimand
    made : Estimate, Quantity or EstimateTable
        Its estimate; a table where there are several.
    confidence_level : float
    target : str

    Returns
    -------
    dict

    Examples
    --------
    >>> import stratal
    >>> from stratal.estimation.estimands import Recall
    >>> population = stratal.Population.from_arrays(
    ...     proxy=[0.2, 0.9] * 20, groups={"answer": ["no", "yes"] * 20}, predicted="answer")
    >>> sample = stratal.SimpleRandom(budget=20).draw(population, seed=7)
    >>> labels = ["no", "yes"] * 10
    >>> recall = stratal.estimate(sample, labels, estimand=Recall("yes"))
    >>> evidence, options = (sample, labels, np.full(20, True)), {"confidence_level": 0.95}
    >>> parts = estimand_contents(*evidence, Recall("yes"), recall, target="population", **options)
    >>> parts["quantity"], parts["estimate"]["n"] == recall.n
    ('recall of yes', True)
    """
    rows = [made] if isinstance(made, EstimateTable) else []
    described = _first_row(made) if isinstance(made, EstimateTable) else made.to_dict(confidence_level)
    missing = sample.size - int(labelled.sum())
    described |= {"estimator": ESTIMATOR, "outcome": None, "effective_sample_size": None} | described
    described |= {
        "estimand": estimand.text,
        "confidence_level": confidence_level,
        "design": sample.design.kind,
        "population_size": sample.population_size,
        "target": target,
        "nonresponse": {
            "drawn": sample.size,
            "labelled": sample.size - missing,
            "rate": missing / sample.size if sample.size else 0.0,
        },
    }
    bounds = described.get("bounds")
    return plain_dict(
        {
            "quantity": _named(estimand, made),
            "share": bounds is not None and list(bounds) == [0.0, 1.0],
            "estimate": with_tables(described, rows),
            "side_by_side": [],
            "strata": _strata(sample, labelled),
            "calibration": None,
            "more_labels": more_labels(
                estimand, sample, labels, labelled, made, confidence_level=confidence_level, target=target
            ),
        }
    )


def _named(estimand: Estimand, made: Estimate | Quantity | EstimateTable) -> str:
    """Return what the answer names: the first of several estimates."""
    if not isinstance(made, EstimateTable) or not made.rows:
        return estimand.title
    texts = [str(value) for name, value in made.rows[0].items() if isinstance(value, str)]
    if made.kind == "estimands":
        return Estimand.parse_text(texts[0]).title
    return f"{estimand.title}: {' − '.join(texts)}"


def _first_row(table: EstimateTable) -> dict[str, Any]:
    """Return the first of several estimates, which the answer names; the table below has all."""
    row = dict(table.rows[0]) if table.rows else {}
    return {
        "estimate": row.get("estimate", row.get("difference", row.get("mean"))),
        "standard_error": row.get("standard_error"),
        "confidence_interval": row.get("confidence_interval"),
        "n": row.get("n", 0),
        "interval_method": None,
        "notes": [],
    }


def _strata(sample: Sample, labelled: BoolArray) -> list[dict[str, Any]]:
    """Return the units, drawn units and labels of each stratum; none where the sample has no strata."""
    sizes = sample.summary.sizes
    if len(sizes) < 2 or not hasattr(sample.design, "strata"):
        return []
    drawn = np.bincount(sample.stratum, minlength=len(sizes))
    found = np.bincount(sample.stratum[labelled], minlength=len(sizes))
    return [
        {
            "name": name,
            "size": int(sizes[h]),
            "drawn": int(drawn[h]),
            "n": int(found[h]),
            "proxy_mean": None,
            "mean": None,
            "standard_deviation": None,
        }
        for h, name in enumerate(sample.design.strata.names)
    ]
