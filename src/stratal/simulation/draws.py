"""A population's true moments in strata; draws of thousands of replicates at once, nested, and their sums.

Every replicate's larger sample contains its smaller one. Two ways, the same distribution: where outcomes are
0 or 1 and only counts are needed, an urn per stratum is emptied by hypergeometric numbers: no unit is ever
named. Otherwise each replicate gets the first units of a random order of the stratum, and running sums along
it; any sample size is then a look-up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.special import gammaln

from stratal.arrays import AnyArray, FloatArray, IntArray
from stratal.designs.stratum_moments import StratumMoments, kurtoses_of


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Truth:
    """The true moments of outcome and proxy in each stratum, and the units themselves.

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    means : float (H,)
        True mean outcome.
    variances : float (H,)
        True S_h², divisor N_h − 1 (0 for a single unit).
    proxy_means, proxy_variances, covariances : float (H,)
        Of the proxy, and of proxy and outcome; divisor N_h − 1. Zeros where there is no proxy.
    binary : bool
        Whether every outcome is 0 or 1.
    centre : float
        The population mean, taken off every outcome before it is squared.
    outcomes, proxies : tuple of (N_h,) arrays
        z − centre and p − p̄_h of the units, stratum by stratum; empty for a binary outcome that only needs
        counts.

    Examples
    --------
    >>> truth = Truth.of(np.array([0.0, 1.0, 1.0]), None, np.array([0, 1, 1]), 2)
    >>> truth.means, truth.value
    (array([0., 1.]), 0.6666666666666666)
    """

    sizes: IntArray
    means: FloatArray
    variances: FloatArray
    proxy_means: FloatArray
    proxy_variances: FloatArray
    covariances: FloatArray
    binary: bool
    centre: float
    outcomes: tuple[FloatArray, ...] = ()
    proxies: tuple[FloatArray, ...] = ()

    @property
    def value(self) -> float:
        """The population mean."""
        return float(self.sizes @ self.means / self.sizes.sum())

    @property
    def size(self) -> int:
        """N."""
        return int(self.sizes.sum())

    @property
    def weights(self) -> FloatArray:
        """W_h (H,)."""
        return np.asarray(self.sizes / self.sizes.sum())

    @property
    def successes(self) -> IntArray:
        """Units with outcome 1 (H,); binary outcomes only."""
        return np.rint(self.means * self.sizes).astype(np.int64)

    @property
    def population_variance(self) -> float:
        """S², divisor N − 1."""
        within = np.maximum(self.sizes - 1, 0) @ self.variances
        between = self.sizes @ (self.means - self.value) ** 2
        return float((within + between) / max(self.size - 1, 1))

    @classmethod
    def of(
        cls, z: FloatArray, proxy: FloatArray | None, codes: AnyArray, n_strata: int, *, units: bool = True
    ) -> Truth:
        """Return the truth of units (N,) in strata `codes` (N,); `units=False` keeps counts only."""
        sizes = np.bincount(codes, minlength=n_strata).astype(np.int64)
        divisor = np.maximum(sizes - 1, 1)
        binary = bool(np.all((z == 0) | (z == 1)))
        centre = float(z.mean())

        def total(values: FloatArray) -> FloatArray:
            return np.asarray(np.bincount(codes, values, minlength=n_strata), dtype=np.float64)

        shifts = total(z - centre) / sizes
        variances = np.maximum(total((z - centre) ** 2) - sizes * shifts**2, 0.0) / divisor
        column = np.zeros(len(z)) if proxy is None else proxy
        proxy_means = total(column) / sizes
        centred = column - proxy_means[codes]

        def by_stratum(values: FloatArray) -> tuple[FloatArray, ...]:
            return tuple(np.split(values[np.argsort(codes, kind="stable")], np.cumsum(sizes)[:-1]))

        return cls(
            sizes=sizes,
            means=total(z) / sizes if binary else shifts + centre,
            variances=variances,
            proxy_means=proxy_means,
            proxy_variances=total(centred**2) / divisor,
            covariances=total(centred * (z - centre)) / divisor,
            binary=binary,
            centre=centre,
            outcomes=by_stratum(z - centre) if units else (),
            proxies=by_stratum(centred) if units and proxy is not None else (),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StratumSums:
    """Sums over the labelled units of each stratum, R replicates at once.

    Every estimator of a mean with one proxy, its variance and its interval are functions of these.

    Parameters
    ----------
    counts : float (R, H) or (1, H)
        n_h; one row where all replicates share the allocation.
    z, zz : float (R, H)
        Σ z and Σ z².
    p, pp, zp : float (R, H), optional
        Σ p, Σ p² and Σ z p of the proxy p, centred at its mean over the stratum's N_h units.
    zzz, zzp, zpp, ppp : float (R, H), optional
        Third powers, where an interval reads skewness.
    zzzz : float (R, H), optional
        Σ z⁴, where the next round depends on how uncertain a variance is.

    Examples
    --------
    >>> sums = StratumSums(counts=np.array([[4.0]]), z=np.array([[3.0]]), zz=np.array([[3.0]]))
    >>> sums.means
    array([[0.75]])
    """

    counts: FloatArray
    z: FloatArray
    zz: FloatArray
    p: Any = None
    pp: Any = None
    zp: Any = None
    zzz: Any = None
    zzp: Any = None
    zpp: Any = None
    ppp: Any = None
    zzzz: Any = None

    @property
    def means(self) -> FloatArray:
        """Mean outcome of each stratum (R, H)."""
        return self.z / self.counts

    @property
    def kurtoses(self) -> FloatArray | None:
        """n_h Σ (z − z̄_h)⁴ / (Σ (z − z̄_h)²)² (R, H), where fourth powers were summed."""
        if self.zzzz is None:
            return None
        mean = self.means
        second = np.maximum(self.zz - mean * self.z, 0.0)
        fourth = self.zzzz - 4.0 * mean * self.zzz + 6.0 * mean**2 * self.zz - 3.0 * mean**3 * self.z
        return kurtoses_of(self.counts, second, fourth)

    def moments(self, centre: float) -> StratumMoments:
        """Return the moments of outcome and proxy, `centre` having been taken off the outcome."""
        free = np.maximum(self.counts - 1.0, 1.0)
        cross = (self.zp - self.z * self.p / self.counts) / free * (self.counts > 1)
        own = spread(self.counts, self.p, self.pp)
        return StratumMoments(
            counts=self.counts.astype(np.int64),
            outcome_means=self.means + centre,
            proxy_means=(self.p / self.counts)[..., None],
            outcome_variances=np.nan_to_num(spread(self.counts, self.z, self.zz)),
            cross_covariances=cross[..., None],
            proxy_covariances=np.nan_to_num(own)[..., None, None],
        )

    def residual(self, lam: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Σ r and Σ r² (R, H) of r = z − λ_h p; λ is (H,) or (R, H)."""
        if self.p is None or not np.any(lam):
            return self.z, self.zz
        return self.z - lam * self.p, self.zz - 2.0 * lam * self.zp + lam**2 * self.pp

    def centred_thirds(self, lam: FloatArray) -> FloatArray:
        """Return Σ (r − r̄_h)³ (R, H) of r = z − λ_h p."""
        first, second = self.residual(lam)
        third = self.zzz
        if self.ppp is not None and np.any(lam):
            third = third - 3.0 * lam * self.zzp + 3.0 * lam**2 * self.zpp - lam**3 * self.ppp
        mean = first / self.counts
        return np.asarray(third - 3.0 * mean * second + 2.0 * mean**2 * first)


def spread(counts: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    """Return s_h² with divisor n_h − 1, from Σ y and Σ y²; NaN where n_h < 2.

    Examples
    --------
    >>> spread(np.array([2.0, 1.0]), np.array([4.0, 5.0]), np.array([10.0, 25.0]))
    array([ 2., nan])
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        squares = np.maximum(second - first * first / counts, 0.0)
        return np.asarray(squares / np.where(counts > 1, counts - 1.0, np.nan))


_SUMS = ("z", "zz", "p", "pp", "zp")
_THIRDS = ("zzz", "zzp", "zpp", "ppp")
_FOURTHS = ("zzz", "zzzz")
# Above this sampling fraction the whole stratum is put in random order.
_WHOLE_ORDER = 0.34


class Urns:
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
        self._truth = truth
        self._rng = rng
        self._replacing = with_replacement
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
        size = wanted.astype(np.float64)
        centre = self._truth.centre
        z = self._good.astype(np.float64) - centre * size
        return StratumSums(counts=size, z=z, zz=z * (1.0 - 2.0 * centre) + size * (centre - centre**2))

    def _more(self, h: int, more: IntArray) -> IntArray:
        truth = self._truth
        rows = len(self._good)
        if self._replacing:
            return self._rng.binomial(more, truth.means[h], size=rows)
        good = truth.successes[h] - self._good[:, h]
        bad = truth.sizes[h] - self._drawn[:, h] - good
        if len(more) == 1 and not self._drawn[:, h].any():  # the same full urn for all: one table serves
            return self._from_table(int(truth.successes[h]), int(truth.sizes[h]), int(more[0]))
        return self._rng.hypergeometric(good, bad, more)

    def _from_table(self, good: int, size: int, n: int) -> IntArray:
        """Return hypergeometric numbers by looking uniform ones up in their distribution function."""
        least = max(0, n - (size - good))
        most = min(n, good)
        x = np.arange(least, most + 1)
        log_chance = -(gammaln(x + 1) + gammaln(good - x + 1) + gammaln(n - x + 1))
        log_chance -= gammaln(size - good - n + x + 1)
        below = np.cumsum(np.exp(log_chance - log_chance.max()))
        uniform = self._rng.random(len(self._good))
        return np.asarray(least + np.searchsorted(below[:-1] / below[-1], uniform, side="right"))


class OrderedUnits:
    """Any outcome, with or without a proxy: the first units of a random order, and sums along it.

    Parameters
    ----------
    truth : Truth
        With its units.
    limits : int (H,)
        The largest n_h that will be drawn.
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
            # Running sums along each row, with a zero in front (R, n + 1).
            self._tables.append([np.cumsum(np.pad(part, ((0, 0), (1, 0))), axis=1) for part in products])

    def branch(self) -> OrderedUnits:
        """Return itself: looking sums up changes nothing."""
        return self

    def sums(self, counts: IntArray) -> StratumSums:
        """Look the sums up at n_h."""
        wanted = np.atleast_2d(counts)
        rows: Any = slice(None)
        places = wanted[0]
        if len(wanted) > 1:
            rows = np.arange(len(wanted))
            places = wanted.T
        columns = [
            [table[rows, at] for table in tables] for tables, at in zip(self._tables, places, strict=True)
        ]
        stacked = [np.stack(parts, axis=1) for parts in zip(*columns, strict=True)]
        return StratumSums(counts=wanted.astype(np.float64), **dict(zip(self._names, stacked, strict=True)))


# R replicates of a nested draw from every stratum; a `branch` goes on from the labels so far.
Draws: TypeAlias = Urns | OrderedUnits


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
        return np.argsort(rng.random((replicates, size)), axis=1)[:, :n]
    width = math.ceil(-size * math.log1p(-n / size) + 4.0 * n / math.sqrt(size) + 2.0)
    starts = range(0, replicates, 1 << 14)
    batches = [_distinct(size, n, width, min(1 << 14, replicates - start), rng) for start in starts]
    return np.concatenate(batches)


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
