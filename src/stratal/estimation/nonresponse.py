"""What is said of drawn units without a label, and where a stratum has none at all."""

from __future__ import annotations

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.errors import warn_caller
from stratal.sampling.sample import Sample

_MUCH_NONRESPONSE = 0.1
_FEW = 4
"""So many missing labels say nothing yet of how many there are."""

_STRATA_NAMED = 3


def by_stratum(sample: Sample, labelled: BoolArray) -> tuple[str, ...]:
    """Return how many units have no label in the strata where most lack one; nothing for one stratum.

    Examples
    --------
    >>> import stratal
    >>> groups = {"kind": ["a", "a", "b", "b"]}
    >>> population = stratal.Population.from_arrays(ids=range(4), groups=groups)
    >>> sample = stratal.plan(population, budget=4, by="kind").draw(seed=7)
    >>> by_stratum(sample, np.array([True, False, True, True]))
    ('units without a label, by stratum: kind = b: 1 of 2',)
    """
    names = sample.design.stratum_names
    drawn = np.bincount(sample.stratum, minlength=len(names))
    lacking = np.bincount(sample.stratum[~labelled], minlength=len(names))
    if len(names) == 1 or not np.any(lacking):
        return ()
    worst = np.argsort(-lacking / np.maximum(drawn, 1), kind="stable")[:_STRATA_NAMED]
    shown = ", ".join(f"{names[h]}: {lacking[h]} of {drawn[h]}" for h in worst if lacking[h])
    return (f"units without a label, by stratum: {shown}",)


def warn_of_nonresponse(sample: Sample, labelled: BoolArray) -> tuple[str, ...]:
    """Warn where more than 10 % of the drawn units have no label; return the same as a note.

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=9).draw(stratal.Population.from_arrays(proxy=[0.5] * 9), seed=7)
    >>> warn_of_nonresponse(sample, np.ones(9, dtype=bool))
    ()
    """
    missing = sample.size - int(labelled.sum())
    if missing <= max(_MUCH_NONRESPONSE * sample.size, _FEW):
        return ()
    note = (
        f"{missing:,} of {sample.size:,} drawn units have no label ({missing / sample.size:.1%}); those "
        "labelled stand for them, which is right only if labels are missing at random within strata"
    )
    warn_caller(note)
    return (note,)


def worst_bounds(
    sample: Sample, labelled: BoolArray, z: FloatArray, bounds: tuple[float, float] | None
) -> tuple[float, float] | None:
    """Return the weighted mean if every missing label is at the lower bound, and if at the upper.

    None where none is missing, or the outcome has no bounds. Worst-case bounds (Manski 1989): neither the
    proxy nor any assumption of why labels are missing has a part in them.

    Parameters
    ----------
    sample : Sample
    labelled : bool (n,)
    z : float (m,)
        Outcomes of the labelled units.
    bounds : (float, float), optional

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=4).draw(stratal.Population.from_arrays(proxy=[0.5] * 9), seed=7)
    >>> worst_bounds(sample, np.array([True, True, True, False]), np.array([1.0, 1.0, 0.0]), (0.0, 1.0))
    (0.5, 0.75)
    """
    if bounds is None or np.all(labelled):
        return None
    weighting = sample.weighting(np.ones(sample.size, dtype=bool))
    found = []
    for bound in bounds:
        filled = np.full(sample.size, bound)
        filled[labelled] = z
        weights = weighting.weights
        found.append(float(weights @ filled / weights.sum()))
    return found[0], found[1]


def stopping_notes(sample: Sample) -> tuple[str, ...]:
    """Return what is to be said of a sample that grew until its interval was narrow enough.

    The bias was measured: .1 to .4 standard errors in eight cells, .55 at worst (docs/methods/adaptive.md).

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.5] * 9)
    >>> stopping_notes(stratal.SimpleRandom(budget=4).draw(population, seed=7))
    ()
    """
    if sample.half_width is None:
        return ()
    return (
        f"labels decided how many more were drawn, until the interval was ± {sample.half_width:g}: such a "
        "value is biased towards agreement, by up to half a standard error (most where the proxy is "
        "overconfident)",
    )


def strata_without_answer(names: tuple[str, ...], sizes: IntArray, counts: IntArray, codes: IntArray) -> str:
    """Return which strata have no label, and what an estimate that merges them takes for granted.

    Parameters
    ----------
    names : tuple of str (H,)
    sizes, counts : int (H,)
        N_h, and labels of each stratum.
    codes : int (H,)
        New stratum of each, see `merge_empty`.

    Examples
    --------
    >>> names, sizes, counts = ("low", "high"), np.array([20, 80]), np.array([0, 9])
    >>> strata_without_answer(names, sizes, counts, merge_empty(counts))[:78]
    '1 stratum has no label (20.0% of the units): low was merged with its neighbour'
    """
    empty = np.flatnonzero(counts == 0)
    part = float(np.sum(sizes[empty]) / np.sum(sizes))
    taken = []
    for h in empty[:_STRATA_NAMED]:
        neighbours = [names[k] for k in np.flatnonzero((codes == codes[h]) & (counts > 0))]
        taken.append(f"{names[h]} was merged with its neighbour {' and '.join(neighbours)}")
    if len(empty) > _STRATA_NAMED:
        taken.append(f"and {len(empty) - _STRATA_NAMED} more so")
    whole = "1 stratum has no label" if len(empty) == 1 else f"{len(empty)} strata have no label"
    return (
        f"{whole} ({part:.1%} of the units): {', '.join(taken)}. The estimate takes units without labels to "
        "be like those beside them, and the interval does not know whether they are"
    )


def merge_empty(counts: IntArray) -> IntArray:
    """Return new codes (H,): each stratum without labels takes that of the nearest one with labels.

    Examples
    --------
    >>> merge_empty(np.array([5, 0, 3]))
    array([0, 0, 1])
    """
    filled = np.flatnonzero(counts > 0)
    nearest = [int(filled[np.argmin(np.abs(filled - h))]) for h in range(len(counts))]
    return np.unique(nearest, return_inverse=True)[1].astype(np.int64)
