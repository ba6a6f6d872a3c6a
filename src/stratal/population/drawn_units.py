"""Units that were drawn from a population, or may be drawn, with their columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stratal.arrays import AnyArray, FloatArray, IntArray, select_rows


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DrawnUnits:
    """Selected units in the random order in which annotators see them.

    Parameters
    ----------
    ids : (n,)
        int64 if the ids are integers or row numbers, else text.
    stratum : int (n,)
        Number of the stratum of each unit.
    proxies : float (n, k)
        Each of the k proxies of the population.
    groups, shown, features : mapping of column name to (n,) array
        Group columns (text), columns that annotators see, and columns of numbers.

    Examples
    --------
    >>> import numpy as np
    >>> DrawnUnits(ids=np.array([4]), stratum=np.array([0]), proxies=np.array([[0.5]])).ids
    array([4])
    """

    ids: AnyArray
    stratum: IntArray
    proxies: FloatArray
    groups: Mapping[str, AnyArray] = field(default_factory=dict)
    shown: Mapping[str, AnyArray] = field(default_factory=dict)
    features: Mapping[str, FloatArray] = field(default_factory=dict)

    def only(self, rows: IntArray) -> DrawnUnits:
        """Return the units at the positions `rows` (m,), in this order."""
        return DrawnUnits(
            ids=self.ids[rows],
            stratum=self.stratum[rows],
            proxies=self.proxies[rows],
            groups=select_rows(self.groups, rows),
            shown=select_rows(self.shown, rows),
            features=select_rows(self.features, rows),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidates:
    """Units that a design with unequal probabilities may draw: u is below a limit times their size.

    Parameters
    ----------
    drawn : DrawnUnits
        The units, in the order in which annotators see them.
    uniform, size : float (n,)
        Permanent random number u in [0, 1) of each unit, and its size measure.
    """

    drawn: DrawnUnits
    uniform: FloatArray
    size: FloatArray
