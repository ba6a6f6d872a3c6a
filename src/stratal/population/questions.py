"""What every population answers, wherever its rows are: in memory or in a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray
from stratal.population.digest import PopulationDigest
from stratal.population.distribution import Counter
from stratal.population.expressions import Expression, OnArrays
from stratal.population.pictures import LevelBins
from stratal.population.rules.rule import Rule
from stratal.population.size_measures import Candidates, Size, SizeProfile
from stratal.population.summary import Drawn, ProxyInfo, StratumSummary


class Questions(ABC):
    """The questions that an implementation of `Population` answers, each with something small.

    Examples
    --------
    >>> "smallest" in Questions.__abstractmethods__
    True
    """

    @abstractmethod
    def _counter(self, info: ProxyInfo) -> Counter:
        """Return what counts a proxy."""

    @abstractmethod
    def _level_bins(self, by: str, info: ProxyInfo) -> LevelBins:
        """Return what a proxy's values are within each level of a group column, levels sorted."""

    @abstractmethod
    def levels(self, group: str) -> dict[str, int]:
        """Return the number of units in each level of a group column, levels sorted as text."""

    @abstractmethod
    def codes(self, rule: Rule) -> IntArray | None:
        """Return each unit's stratum (N,), or `None` where the rows are not in memory."""

    @abstractmethod
    def summarise(self, rule: Rule, codes: IntArray | None = None) -> StratumSummary:
        """Return sizes and proxy moments per stratum of `rule`."""

    @abstractmethod
    def smallest(self, rule: Rule, counts: IntArray, seed: int, codes: IntArray | None = None) -> Drawn:
        """Return, of each stratum, the `counts` (H,) units with the smallest permanent random numbers."""

    def means_of(self, formulas: Sequence[Expression]) -> FloatArray:
        """Return the means (q,) of formulas over all units; one of them at least reads a column."""
        columns = tuple(dict.fromkeys(name for formula in formulas for name in formula.columns))
        sums, units = np.zeros(len(formulas)), 0
        for batch in self.batches(columns):
            size = len(next(iter(batch.values())))
            units += size
            engine = OnArrays(batch)
            sums += [np.broadcast_to(formula.of(engine), (size,)).sum() for formula in formulas]
        return np.asarray(sums / units)

    @abstractmethod
    def batches(self, columns: tuple[str, ...], size: int = 262_144) -> Iterator[dict[str, AnyArray]]:
        """Yield the named proxy, group or feature columns, `size` units at a time, in a fixed order."""

    @abstractmethod
    def digest(self, seed: int) -> PopulationDigest:
        """Return the sums by which samples of this seed know the population again."""

    # ---- what designs with unequal probabilities, an order or groups ask

    @abstractmethod
    def has_second_moments(self, proxy: str) -> bool:
        """Return whether E[z² | x] is known beside a proxy."""

    @abstractmethod
    def size_profile(self, size: Size, count: int) -> SizeProfile:
        """Return the extent, the sum and the `count` largest values of a size measure."""

    @abstractmethod
    def below(self, size: Size, limit: float, seed: int) -> Candidates:
        """Return the units whose permanent random number u is below `limit` times their size."""

    @abstractmethod
    def at_ranks(self, column: str, ranks: IntArray, seed: int) -> Drawn:
        """Return the units at these ranks (n,), from 0, when sorted by a column; ties in random order."""

    @abstractmethod
    def members(self, group: str, levels: tuple[str, ...], seed: int) -> Drawn:
        """Return every unit of these levels of a group column."""

    @abstractmethod
    def find(self, ids: Sequence[str]) -> Drawn:
        """Return the units that have one of these ids, as text; those of no unit are left out."""
