"""Draws of thousands of replicates at once, nested: every replicate's larger sample contains its smaller one.

Two ways, the same distribution. Where outcomes are 0 or 1 and only counts are needed, an urn per stratum is
emptied by hypergeometric numbers: no unit is ever named. Otherwise each replicate gets the first units of a
random order of the stratum, and running sums along it; any sample size is then a look-up.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from scipy.special import gammaln

from stratal.arrays import FloatArray, IntArray
from stratal.simulation.sums import StratumSums
from stratal.simulation.truth import Truth

_SUMS = ("z", "zz", "p", "pp", "zp")
_THIRDS = ("zzz", "zzp", "zpp", "ppp")
_FOURTHS = ("zzz", "zzzz")
_WHOLE_ORDER = 0.34
"""Above this sampling fraction the whole stratum is put in random order."""


class Draws(ABC):
    """R replicates of a nested draw from every stratum.

    Examples
    --------
    >>> truth = Truth.of(np.array([0.0, 1.0, 1.0, 1.0]), None, np.zeros(4, dtype=int), 1)
    >>> urns = Urns(truth, 3, np.random.default_rng(1))
    >>> urns.sums(np.array([4])).means[:, 0] + truth.centre
    array([0.75, 0.75, 0.75])
    """

    @abstractmethod
    def sums(self, counts: IntArray) -> StratumSums:
        """Return the sums at n_h labels per stratum, `counts` being (H,) or (R, H)."""

    @abstractmethod
    def branch(self) -> Draws:
        """Return draws that go on from the labels so far, and leave these as they are."""


class Urns(Draws):
    """Binary outcomes by hypergeometric numbers; counts may only grow from call to call.

    Parameters
    ----------
    truth : Truth
    replicates : int
        R.
    rng : numpy.random.Generator
    with_replacement : bool
        Binomial instead of hypergeometric numbers, as Kumar & Raj assume.

    Examples
    --------
    >>> truth = Truth.of(np.array([0.0, 1.0]), None, np.zeros(2, dtype=int), 1)
    >>> Urns(truth, 2, np.random.default_rng(1)).sums(np.array([2])).counts
    array([[2.]])
    """

    def __init__(
        self, truth: Truth, replicates: int, rng: np.random.Generator, *, with_replacement: bool = False
    ) -> None:
        self._truth, self._rng, self._replacing = truth, rng, with_replacement
        self._drawn: IntArray = np.zeros((1, len(truth.sizes)), dtype=np.int64)
        self._good: IntArray = np.zeros((replicates, len(truth.sizes)), dtype=np.int64)

    def branch(self) -> Urns:
        """Return a copy of the urns as they stand."""
        copy = Urns(self._truth, 0, self._rng, with_replacement=self._replacing)
        copy._drawn, copy._good = self._drawn, self._good.copy()
        return copy

    def sums(self, counts: IntArray) -> StratumSums:
        """Draw up to n_h and return the sums."""
        wanted = np.atleast_2d(counts)
        more = wanted - self._drawn
        for h in np.flatnonzero(np.any(more > 0, axis=0)):
            self._good[:, h] += self._more(int(h), more[:, h])
        self._drawn = np.asarray(wanted)
        size, centre = wanted.astype(np.float64), self._truth.centre
        good = self._good.astype(np.float64)
        z = good - centre * size
        return StratumSums(counts=size, z=z, zz=z * (1.0 - 2.0 * centre) + size * (centre - centre**2))

    def _more(self, h: int, more: IntArray) -> IntArray:
        truth, rows = self._truth, len(self._good)
        if self._replacing:
            return self._rng.binomial(more, truth.means[h], size=rows)
        good = truth.successes[h] - self._good[:, h]
        bad = truth.sizes[h] - self._drawn[:, h] - good
        if len(more) == 1 and not self._drawn[:, h].any():  # the same full urn for all: one table serves
            return self._from_table(int(truth.successes[h]), int(truth.sizes[h]), int(more[0]))
        return self._rng.hypergeometric(good, bad, more)

    def _from_table(self, good: int, size: int, n: int) -> IntArray:
        """Return hypergeometric numbers by looking uniform ones up in their distribution function."""
        least, most = max(0, n - (size - good)), min(n, good)
        x = np.arange(least, most + 1)
        log_chance = -(gammaln(x + 1) + gammaln(good - x + 1) + gammaln(n - x + 1))
        log_chance -= gammaln(size - good - n + x + 1)
        below = np.cumsum(np.exp(log_chance - log_chance.max()))
        uniform = self._rng.random(len(self._good))
        return np.asarray(least + np.searchsorted(below[:-1] / below[-1], uniform, side="right"))


class OrderedUnits(Draws):
    """Any outcome, with or without a proxy: the first units of a random order, and sums along it.

    Parameters
    ----------
    truth : Truth
        With its units.
    limits : int (H,)
        The largest n_h that will be asked for.
    replicates : int
        R.
    rng : numpy.random.Generator
    with_replacement : bool
    thirds, fourths : bool
        Whether third powers, and third and fourth powers of the outcome, are summed too.

    Examples
    --------
    >>> truth = Truth.of(np.array([1.0, 2.0, 6.0]), None, np.zeros(3, dtype=int), 1)
    >>> draws = OrderedUnits(truth, np.array([3]), 2, np.random.default_rng(1))
    >>> draws.sums(np.array([3])).means + truth.centre
    array([[3.],
           [3.]])
    """

    def __init__(
        self,
        truth: Truth,
        limits: IntArray,
        replicates: int,
        rng: np.random.Generator,
        *,
        with_replacement: bool = False,
        thirds: bool = False,
        fourths: bool = False,
    ) -> None:
        self._tables: list[list[FloatArray]] = []
        self._names = _SUMS[: (5 if truth.proxies else 2)]
        self._names += _THIRDS[: (4 if truth.proxies else 1)] if thirds else ()
        self._names += tuple(name for name in _FOURTHS if fourths and name not in self._names)
        for h, z in enumerate(truth.outcomes):
            order = ordered_units(len(z), int(limits[h]), replicates, rng, with_replacement=with_replacement)
            units = {"z": z[order]}
            if truth.proxies:
                units["p"] = truth.proxies[h][order]
            products = (np.prod([units[letter] for letter in name], axis=0) for name in self._names)
            self._tables.append([_running(product) for product in products])

    def branch(self) -> OrderedUnits:
        """Return itself: looking sums up changes nothing."""
        return self

    def sums(self, counts: IntArray) -> StratumSums:
        """Look the sums up at n_h."""
        wanted = np.atleast_2d(counts)
        columns = []
        for h, tables in enumerate(self._tables):
            at = wanted[:, h]
            if len(at) == 1:
                columns.append([table[:, at[0]] for table in tables])
            else:
                rows = np.arange(len(at))
                columns.append([table[rows, at] for table in tables])
        stacked = [np.stack(parts, axis=1) for parts in zip(*columns, strict=True)]
        return StratumSums(counts=wanted.astype(np.float64), **dict(zip(self._names, stacked, strict=True)))


def _running(variable: FloatArray) -> FloatArray:
    """Return running sums along each row, with a zero in front, (R, n + 1)."""
    result = np.zeros((variable.shape[0], variable.shape[1] + 1))
    np.cumsum(variable, axis=1, out=result[:, 1:])
    return result


def ordered_units(
    size: int, n: int, replicates: int, rng: np.random.Generator, *, with_replacement: bool = False
) -> IntArray:
    """Return the first n units of a random order of `size`, for each replicate: int (R, n).

    Independent draws, each unit kept where it first comes up, are the head of a random order; so are the
    first n of all units sorted by random keys, which is used where n is a large part of them.

    Examples
    --------
    >>> sorted(ordered_units(5, 5, 1, np.random.default_rng(1))[0].tolist())
    [0, 1, 2, 3, 4]
    """
    if with_replacement:
        return rng.integers(0, size, size=(replicates, n))
    if n > _WHOLE_ORDER * size:
        keys = rng.random((replicates, size))
        return np.argsort(keys, axis=1)[:, :n]
    width = math.ceil(-size * math.log1p(-n / size) + 4.0 * n / math.sqrt(size) + 2.0)
    return (
        np.concatenate(
            [
                _distinct(size, n, width, min(1 << 14, replicates - start), rng)
                for start in range(0, replicates, 1 << 14)
            ]
        )
        if replicates
        else np.zeros((0, n), dtype=np.int64)
    )


def _distinct(size: int, n: int, width: int, replicates: int, rng: np.random.Generator) -> IntArray:
    """Return the first n distinct entries of rows of independent draws, short rows drawn anew.

    How often a row repeats itself says nothing of which units it holds, so that drawing short rows anew
    favours none.
    """
    drawn = rng.integers(0, size, size=(replicates, width))
    marked = np.sort(drawn * width + np.arange(width), axis=1)
    again = np.zeros_like(drawn, dtype=bool)
    row, place = np.nonzero(marked[:, 1:] // width == marked[:, :-1] // width)
    again[row, marked[row, place + 1] % width] = True
    rows = np.flatnonzero(again[:, :n].any(axis=1))
    if len(rows):
        order = np.argsort(again[rows], axis=1, kind="stable")
        drawn[rows] = np.take_along_axis(drawn[rows], order, axis=1)
    short = np.flatnonzero(width - again.sum(axis=1) < n)
    if len(short):
        drawn[short, :n] = _distinct(size, n, 2 * width, len(short), rng)
    return drawn[:, :n]
