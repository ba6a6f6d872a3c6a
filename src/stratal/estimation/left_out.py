"""Strata that a sample left without labels because the estimand is known there."""

from __future__ import annotations

import numpy as np

from stratal.arrays import BoolArray
from stratal.errors import InputError
from stratal.population.expressions import Expression
from stratal.population.level_tests import implies
from stratal.sampling.sample import Sample
from stratal.strata import Strata


class CannotTellError(InputError):
    """A sample left units without a label since what it was drawn for is known there; something else is not.

    Parameters
    ----------
    reason : str
    given : str

    Examples
    --------
    >>> CannotTellError("'b' got no label", given="2%").reason
    "'b' got no label"
    """

    def __init__(self, reason: str, *, given: str) -> None:
        self.reason = reason
        action = "Estimate what the sample was drawn for, or draw a sample for this."
        super().__init__(f"this sample cannot tell that: {reason}", given=given, action=action)


def left_out(sample: Sample, strata: Strata, needless: Expression | None) -> BoolArray:
    """Return which strata (H,) were left without labels, all of which the caller must know.

    Parameters
    ----------
    sample : Sample
    strata : Strata
        Of its design.
    needless : Expression, optional
        1 for the units that the caller knows without a label.

    Raises
    ------
    InputError
        If some of these strata matter to the caller.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5, 0.9])
    >>> sample = stratal.plan(population, budget=2, by=None).draw(seed=7)
    >>> left_out(sample, stratal.stratify(population, "none"), None)
    array([False])
    """
    without: BoolArray = strata.is_known & (sample.n_h == 0)
    for h in np.flatnonzero(without).tolist():
        known = strata.known[h]
        if known is None or not implies(known, needless):
            share = float(strata.weights[without].sum())
            asked = sample.estimand or {}
            raise CannotTellError(
                f"the stratum '{strata.names[h]}' got no label, as nothing of "
                f"{asked.get('kind', 'what it was drawn for')!r} is left open there",
                given=f"{share:.1%} of the units in such strata",
            )
    return without
