"""The mean of an outcome kept within limits, for heavy tails: what it estimates, and what it leaves out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from stratal.arrays import FloatArray
from stratal.errors import names_mistyped, not_bounds
from stratal.estimation.estimate import Estimate
from stratal.estimation.evaluation import estimate
from stratal.estimation.respondents import outcomes
from stratal.intervals.unseen import unseen_share
from stratal.labels.labels import Labels, as_labels, join
from stratal.sampling.asked import require_sample
from stratal.sampling.sample import Sample

_RISK = 0.05


@names_mistyped
def winsorised(
    sample: Sample, labels: Any, limits: tuple[float, float], *, estimator: str = "auto"
) -> Estimate:
    """Estimate the mean of an outcome whose values beyond limits count as the limits.

    An outcome without bounds and with a heavy tail has a mean that no number of labels settles while the tail
    is not in them. Its mean within limits has an interval that holds. The two differ by what lies beyond: the
    notes say by how much among the labels, which is the bias against the mean without limits as far as they
    show it, and how many units may lie there that no label showed.

    Parameters
    ----------
    sample : Sample
    labels : see `stratal.estimate`
    limits : (float, float)
        The lowest and the highest value that counts. Choose them before the labels are seen: limits that
        follow the labels are not those of the interval.
    estimator : str
        As in `stratal.estimate`.

    Returns
    -------
    Estimate
        Of the mean within the limits; a bounded outcome.

    Raises
    ------
    InputError
        For limits that are not two finite numbers, the lower first.
    LabelError
        As `stratal.estimate`.

    Notes
    -----
    Winsorising at limits fixed beforehand: Chambers (1986), "Outlier robust finite population estimation".

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(ids=range(2000))
    >>> sample = stratal.SimpleRandom(budget=40).draw(population, seed=7)
    >>> found = stratal.winsorised(sample, [1.0, 3.0] * 19 + [2.0, 90.0], limits=(0.0, 10.0))
    >>> found.value, found.notes[0].split(":")[0]
    (2.2, 'values beyond 0 to 10 count as the limit')
    """
    require_sample(sample, "winsorised")
    kept = within_limits(sample, labels, limits)
    found = estimate(sample, kept, estimator=estimator, outcome="bounded", bounds=limits)
    return replace(
        found, remarks=(_note(found, outcomes(sample, join(sample, labels)), limits), *found.remarks)
    )


def within_limits(sample: Sample, labels: Any, limits: tuple[float, float]) -> Labels:
    """Return the labels, those beyond the limits at the limits; several of one unit as their mean.

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=2).draw(stratal.Population.from_arrays(ids=["a", "b"]), seed=7)
    >>> within_limits(sample, {"a": 5.0, "b": 50.0}, (0.0, 10.0)).values
    (10.0, 5.0)
    """
    if not (len(limits) == 2 and np.all(np.isfinite(limits)) and limits[0] < limits[1]):
        raise not_bounds(limits, "limits")
    joined = join(sample, labels)
    within = np.clip(outcomes(sample, joined), *limits).tolist()
    return as_labels(dict(zip(sample.ids[joined.labelled].tolist(), within, strict=True)), sample)


def _note(found: Estimate, z: FloatArray, limits: tuple[float, float]) -> str:
    """Return what lies beyond the limits, and what that takes off the mean."""
    low, high = limits
    beyond = int(np.sum((z < low) | (z > high)))
    weighting = found.evidence.weighting
    moved = float(weighting.weights @ (np.clip(z, low, high) - z)) / weighting.total
    head = f"values beyond {low:g} to {high:g} count as the limit"
    if beyond:
        return (
            f"{head}: {beyond} of {len(z)} labels, which moves the mean by {moved:+.4g} as far as they show; "
            "the mean without limits is that much off, and more if its tail was missed"
        )
    unseen = float(unseen_share(weighting.effective_draws, len(z) / weighting.population_size, _RISK))
    return (
        f"{head}: no label is, so that the mean without limits differs by what up to {unseen:.1%} of the "
        "units may hold that no label was like"
    )
