"""`estimate_domains`: the mean outcome of each group, and differences between groups."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from stratal.errors import LabelError, names_mistyped
from stratal.estimation.columns import class_column
from stratal.estimation.domain_means import domain_difference, domain_mean
from stratal.estimation.estimate_table import EstimateTable, title_of
from stratal.estimation.linearisation import Linearised
from stratal.estimation.quantity import Quantity
from stratal.estimation.respondents import Respondents, combined, known_outcome, outcomes, said
from stratal.intervals.evidence import infer_outcome
from stratal.labels.labels import Joined, join
from stratal.sampling.asked import require_sample
from stratal.sampling.sample import Sample


@names_mistyped
def estimate_domains(
    sample: Sample,
    labels: Any,
    by: Any,
    *,
    outcome: str | None = None,
    bounds: tuple[float, float] | None = None,
    predicted: bool | str = False,
    target: str = "population",
    combine: str = "mean",
    confidence_level: float = 0.95,
) -> EstimateTable:
    """Estimate the mean outcome of each domain, such as a language or a customer, from one sample.

    The whole design is kept; each row is a ratio estimate that rests on the domain's own labels only, so a
    domain with few of them has a wide interval.

    Parameters
    ----------
    sample : Sample
    labels, outcome, bounds, predicted, target, combine
        See `stratal.estimate`.
    by : str, or mapping of id to group, array in the order of `sample.ids`, Series
        A text is one of the sample's group columns.
    confidence_level : float

    Returns
    -------
    EstimateTable
        Rows with `domain`, `n`, `estimate`, `standard_error`, `confidence_interval`; None where a domain
        has no label.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 6, groups={"language": list("aabbbb")})
    >>> sample = stratal.SimpleRandom(budget=5).draw(population, seed=7)
    >>> table = stratal.estimate_domains(sample, [1, 1, 0, 1, 0], by="language")
    >>> [row["domain"] for row in table], sum(row["n"] for row in table)
    (['a', 'b'], 5)
    """
    require_sample(sample, "estimate_domains")
    joined, _ = combined(said(join(sample, labels), predicted), combine)
    frame, names, means = _domains(sample, joined, by, outcome, bounds, predicted, target)
    rows = tuple(
        {"domain": name, "n": quantity.n, **quantity.row(confidence_level)}
        for name, (quantity, _) in zip(names, means, strict=True)
    )
    empty = [f"{name}: {note}" for name, (entry, _) in zip(names, means, strict=True) for note in entry.notes]
    return EstimateTable(
        kind="domains",
        title=_title(sample, frame, by, target),
        rows=rows,
        confidence_level=confidence_level,
        notes=(*frame.notes, *empty),
    )


@names_mistyped
def group_differences(
    sample: Sample,
    labels: Any,
    by: Any,
    *,
    outcome: str | None = None,
    bounds: tuple[float, float] | None = None,
    predicted: bool | str = False,
    simultaneous: bool = True,
    alternative: str = "two-sided",
    target: str = "population",
    confidence_level: float = 0.95,
) -> EstimateTable:
    """Estimate the differences between all pairs of groups.

    Parameters
    ----------
    sample, labels, by, outcome, bounds, predicted, target, confidence_level
        See `estimate_domains`.
    simultaneous : bool
        Whether intervals and p-values are adjusted (Šidák 1967), so that all hold together.
    alternative : {"two-sided", "less", "greater"}

    Returns
    -------
    EstimateTable
        Rows with `a`, `b`, `difference`, `standard_error`, `confidence_interval`, `p_value`, `n`.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 60, groups={"language": list("ab") * 30})
    >>> sample = stratal.SimpleRandom(budget=20).draw(population, seed=7)
    >>> row = stratal.group_differences(sample, [1, 0] * 10, by="language").rows[0]
    >>> row["a"], row["b"], 0 < row["p_value"] <= 1
    ('a', 'b', True)
    """
    require_sample(sample, "group_differences")
    joined = said(join(sample, labels), predicted)
    frame, names, means = _domains(sample, joined, by, outcome, bounds, predicted, target)
    pairs = list(combinations(range(len(names)), 2))
    count = len(pairs) if simultaneous else 1
    rows = []
    for a, b in pairs:
        quantity = domain_difference(means[a], means[b], frame.weighting)
        row = quantity.row(confidence_level ** (1.0 / count), alternative)
        p_value = quantity.p_value(0.0, alternative)
        rows.append(
            {
                "a": names[a],
                "b": names[b],
                "difference": row["estimate"],
                "standard_error": row["standard_error"],
                "confidence_interval": row["confidence_interval"],
                "p_value": _sidak(p_value, count),
                "n": quantity.n,
            }
        )
    return EstimateTable(
        kind="comparisons",
        title=_title(sample, frame, by, target) + (", simultaneous" if count > 1 else ""),
        rows=tuple(rows),
        confidence_level=confidence_level,
        notes=frame.notes,
    )


def _sidak(p_value: float, count: int) -> float | None:
    """Return 1 − (1 − p)^count."""
    if np.isnan(p_value):
        return None
    return float(-np.expm1(count * np.log1p(-p_value))) if p_value < 1.0 else 1.0


def _domains(
    sample: Sample,
    joined: Joined,
    by: Any,
    outcome: Any,
    bounds: tuple[float, float] | None,
    predicted: bool | str,
    target: str,
) -> tuple[Respondents, list[str], list[tuple[Quantity, Linearised]]]:
    z = outcomes(sample, joined, predicted)
    frame = Respondents.of(sample, joined.labelled)
    kind, ends, _ = known_outcome(sample, z, outcome, bounds, joined)
    _, limits = infer_outcome(z, kind, ends)
    group = class_column(sample, by, "by")
    names = sorted({str(entry) for entry in group if entry is not None})
    member = group[joined.labelled]
    if not names:
        raise LabelError("no drawn unit has a group", allowed="a group for each labelled unit")
    means = [domain_mean(z, member == name, frame.weighting, bounds=limits, target=target) for name in names]
    return frame, names, means


def _title(sample: Sample, frame: Respondents, by: Any, target: str) -> str:
    return title_of(sample, len(frame.stratum), target, f" by {by}" if isinstance(by, str) else "")
