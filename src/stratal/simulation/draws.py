"""True moments of a population in strata, and sums over nested samples of R replicates at once.

The larger sample of a replicate contains its smaller samples. Two classes draw from the same distribution:

- `BinaryDraws` draws the number of ones per stratum from the hypergeometric distribution. It is used if
  outcomes are 0 or 1 and only counts are needed.
- `OrderedUnits` puts the units of each stratum in random order and stores running sums along it. The sums of
  any sample size are then read from the running sums.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.special import gammaln

from stratal.arrays import AnyArray, FloatArray, IntArray, are_binary
from stratal.designs.stratum_moments import StratumMoments, sample_kurtoses


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Truth:
    """True moments of outcome and proxy in each stratum, and the values of the units.

    Parameters
    ----------
    sizes : int (H,)
        N_h.
    means : float (H,)
        True mean outcome.
    variances : float (H,)
        True S_h², divisor N_h − 1 (0 for a single unit).
    proxy_means, proxy_variances, covariances : float (H,)
        Moments of the proxy, and covariance of proxy and outcome; divisor N_h − 1. Zeros without a proxy.
    binary : bool
        Whether every outcome is 0 or 1.
    centre : float
        The population mean. It is subtracted from the outcomes before they are squared, which loses fewer
        digits.
    outcomes, proxies : tuple of (N_h,) arrays
        z − centre and p − p̄_h of the units of each stratum. Empty for binary outcomes if counts suffice.
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
        """Return the moments of units (N,) in strata `codes` (N,), with their values if `units`."""
        sizes = np.bincount(codes, minlength=n_strata).astype(np.int64)
        divisor = np.maximum(sizes - 1, 1)
        binary = are_binary(z)
        centre = float(z.mean())

        def stratum_totals(values: FloatArray) -> FloatArray:
            return np.asarray(np.bincount(codes, values, minlength=n_strata), dtype=np.float64)

        shifts = stratum_totals(z - centre) / sizes
        variances = np.maximum(stratum_totals((z - centre) ** 2) - sizes * shifts**2, 0.0) / divisor
        # Exact for 0 and 1; otherwise the centred sums lose fewer digits.
        means = stratum_totals(z) / sizes if binary else shifts + centre
        column = np.zeros(len(z)) if proxy is None else proxy
        proxy_means = stratum_totals(column) / sizes
        centred = column - proxy_means[codes]

        def split_by_stratum(values: FloatArray) -> tuple[FloatArray, ...]:
            return tuple(np.split(values[np.argsort(codes, kind="stable")], np.cumsum(sizes)[:-1]))

        return cls(
            sizes=sizes,
            means=means,
            variances=variances,
            proxy_means=proxy_means,
            proxy_variances=stratum_totals(centred**2) / divisor,
            covariances=stratum_totals(centred * (z - centre)) / divisor,
            binary=binary,
            centre=centre,
            outcomes=split_by_stratum(z - centre) if units else (),
            proxies=split_by_stratum(centred) if units and proxy is not None else (),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StratumSums:
    """Sums over the labelled units of each stratum, for R replicates.

    The estimators of a mean with one proxy, their variances and intervals are functions of these sums.

    Parameters
    ----------
    counts : float (R, H) or (1, H)
        n_h; one row if all replicates have the same allocation.
    z, zz : float (R, H)
        Σ z and Σ z².
    p, pp, zp : float (R, H), optional
        Σ p, Σ p² and Σ z p of the proxy p, centred at its mean over the stratum's N_h units.
    zzz, zzp, zpp, ppp : float (R, H), optional
        Sums of third powers, for intervals that use the skewness.
    zzzz : float (R, H), optional
        Σ z⁴, for the uncertainty of a stratum variance in adaptive designs.
    """

    counts: FloatArray
    z: FloatArray
    zz: FloatArray
    # `Any`, not `FloatArray | None`: formulas for the proxy run only where the sums exist.
    p: Any = None
    pp: Any = None
    zp: Any = None
    zzz: Any = None
    zzp: Any = None
    zpp: Any = None
    ppp: Any = None
    zzzz: Any = None

    @classmethod
    def of_ones(cls, ones: IntArray, counts: IntArray, centre: float) -> StratumSums:
        """Return the sums of binary outcomes from the number of ones (R, H) among n_h, (1, H) or (R, H)."""
        size = counts.astype(np.float64)
        z = ones.astype(np.float64) - centre * size
        return cls(counts=size, z=z, zz=z * (1.0 - 2.0 * centre) + size * (centre - centre**2))

    @property
    def means(self) -> FloatArray:
        """Mean outcome of each stratum (R, H)."""
        return self.z / self.counts

    @property
    def kurtoses(self) -> FloatArray | None:
        """n_h Σ (z − z̄_h)⁴ / (Σ (z − z̄_h)²)² (R, H), or None without fourth powers."""
        if self.zzzz is None:
            return None
        mean = self.means
        second_moments = np.maximum(self.zz - mean * self.z, 0.0)
        fourth_moments = self.zzzz - 4.0 * mean * self.zzz + 6.0 * mean**2 * self.zz - 3.0 * mean**3 * self.z
        return sample_kurtoses(self.counts, second_moments, fourth_moments)

    def moments(self, centre: float) -> StratumMoments:
        """Return the moments of outcome and proxy; `centre` was subtracted from the outcomes."""
        degrees_of_freedom = np.maximum(self.counts - 1.0, 1.0)
        cross_products = self.zp - self.z * self.p / self.counts
        # The covariance of a single label is 0.
        cross_covariances = cross_products / degrees_of_freedom * (self.counts > 1)
        proxy_variances = sample_variance(self.counts, self.p, self.pp)
        return StratumMoments(
            counts=self.counts.astype(np.int64),
            outcome_means=self.means + centre,
            proxy_means=(self.p / self.counts)[..., None],
            outcome_variances=np.nan_to_num(sample_variance(self.counts, self.z, self.zz)),
            cross_covariances=cross_covariances[..., None],
            proxy_covariances=np.nan_to_num(proxy_variances)[..., None, None],
        )

    def residual(self, lam: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Σ r and Σ r² (R, H) of r = z − λ_h p; λ is (H,) or (R, H)."""
        if self.p is None or not np.any(lam):
            return self.z, self.zz
        return self.z - lam * self.p, self.zz - 2.0 * lam * self.zp + lam**2 * self.pp

    def centred_thirds(self, lam: FloatArray) -> FloatArray:
        """Return Σ (r − r̄_h)³ (R, H) of r = z − λ_h p."""
        sums, square_sums = self.residual(lam)
        cube_sums = self.zzz
        if self.ppp is not None and np.any(lam):
            cube_sums = cube_sums - 3.0 * lam * self.zzp + 3.0 * lam**2 * self.zpp - lam**3 * self.ppp
        mean = sums / self.counts
        return np.asarray(cube_sums - 3.0 * mean * square_sums + 2.0 * mean**2 * sums)


def sample_variance(counts: FloatArray, sums: FloatArray, square_sums: FloatArray) -> FloatArray:
    """Return s_h² with divisor n_h − 1, from Σ y and Σ y²; NaN where n_h < 2."""
    with np.errstate(invalid="ignore", divide="ignore"):
        squared_deviations = np.maximum(square_sums - sums * sums / counts, 0.0)
        return np.asarray(squared_deviations / np.where(counts > 1, counts - 1.0, np.nan))


# Fields of `StratumSums` by power, one letter per factor (z outcome, p proxy), those without p first.
_SECOND_POWERS = ("z", "zz", "p", "pp", "zp")
_THIRD_POWERS = ("zzz", "zzp", "zpp", "ppp")
_FOURTH_POWERS = ("zzz", "zzzz")

# Above this sampling fraction, sorting all units is faster than discarding repeated draws.
_SORTING_FRACTION = 0.34

# Number of replicates that are drawn at once, which limits the memory.
_DRAW_BATCH = 1 << 14


class BinaryDraws:
    """Sums of nested samples of binary outcomes. Each call of `sums` extends the samples.

    Parameters
    ----------
    truth : Truth
    replicates : int
        R.
    rng : numpy.random.Generator
    with_replacement : bool
        Binomial instead of hypergeometric distribution, as Kumar & Raj assume.
    """

    def __init__(
        self, truth: Truth, replicates: int, rng: np.random.Generator, *, with_replacement: bool = False
    ) -> None:
        self._truth = truth
        self._rng = rng
        self._with_replacement = with_replacement
        self._counts: IntArray = np.zeros((1, len(truth.sizes)), dtype=np.int64)
        self._ones: IntArray = np.zeros((replicates, len(truth.sizes)), dtype=np.int64)

    def branch(self) -> BinaryDraws:
        """Return a copy in the current state. It continues with the same random number generator."""
        copy = BinaryDraws(self._truth, 0, self._rng, with_replacement=self._with_replacement)
        copy._counts = self._counts
        copy._ones = self._ones.copy()
        return copy

    def sums(self, counts: IntArray) -> StratumSums:
        """Extend the samples to n_h, (H,) or (R, H), and return their sums."""
        total_counts = np.atleast_2d(counts)
        additional = total_counts - self._counts
        for h in np.flatnonzero(np.any(additional > 0, axis=0)):
            self._ones[:, h] += self._draw_ones(int(h), additional[:, h])
        self._counts = np.asarray(total_counts)
        return StratumSums.of_ones(self._ones, total_counts, self._truth.centre)

    def _draw_ones(self, h: int, additional: IntArray) -> IntArray:
        """Return the number of ones (R,) among `additional` units, (1,) or (R,), of stratum h."""
        truth = self._truth
        replicates = len(self._ones)
        if self._with_replacement:
            return self._rng.binomial(additional, truth.means[h], size=replicates)
        # In a first draw of equal size, all replicates have the same distribution: one table is faster.
        if len(additional) == 1 and not self._counts[:, h].any():
            return self._draw_from_table(int(truth.successes[h]), int(truth.sizes[h]), int(additional[0]))
        remaining_ones = truth.successes[h] - self._ones[:, h]
        remaining_zeros = truth.sizes[h] - self._counts[:, h] - remaining_ones
        return self._rng.hypergeometric(remaining_ones, remaining_zeros, additional)

    def _draw_from_table(self, ones: int, size: int, n: int) -> IntArray:
        """Return hypergeometric numbers (R,) by inversion of the distribution function."""
        lowest = max(0, n - (size - ones))
        highest = min(n, ones)
        x = np.arange(lowest, highest + 1)
        log_probabilities = -(gammaln(x + 1) + gammaln(ones - x + 1) + gammaln(n - x + 1))
        log_probabilities -= gammaln(size - ones - n + x + 1)
        # The largest term is 1, so that no exponential underflows to an empty table.
        cumulative = np.cumsum(np.exp(log_probabilities - log_probabilities.max()))
        uniform = self._rng.random(len(self._ones))
        return np.asarray(lowest + np.searchsorted(cumulative[:-1] / cumulative[-1], uniform, side="right"))


class OrderedUnits:
    """Sums of nested samples of any outcome, with or without a proxy, along a random order of the units.

    Parameters
    ----------
    truth : Truth
        Including the values of the units.
    max_counts : int (H,)
        Largest n_h that is drawn.
    replicates : int
        R.
    rng : numpy.random.Generator
    with_replacement : bool
    third_powers, fourth_powers : bool
        Whether third powers, and fourth powers of the outcome, are also summed.
    """

    def __init__(
        self,
        truth: Truth,
        max_counts: IntArray,
        replicates: int,
        rng: np.random.Generator,
        *,
        with_replacement: bool = False,
        third_powers: bool = False,
        fourth_powers: bool = False,
    ) -> None:
        self._tables: list[list[FloatArray]] = []
        has_proxy = bool(truth.proxies)
        self._names: tuple[str, ...] = _SECOND_POWERS if has_proxy else _SECOND_POWERS[:2]
        if third_powers:
            self._names += _THIRD_POWERS if has_proxy else _THIRD_POWERS[:1]
        if fourth_powers:
            self._names += tuple(name for name in _FOURTH_POWERS if name not in self._names)
        for h, z in enumerate(truth.outcomes):
            n = int(max_counts[h])
            order = ordered_units(len(z), n, replicates, rng, with_replacement=with_replacement)
            units = {"z": z[order]}
            if truth.proxies:
                units["p"] = truth.proxies[h][order]
            products = (np.prod([units[letter] for letter in name], axis=0) for name in self._names)
            # Running sums along each row (R, n + 1). Column n_h is the sum of n_h units, column 0 is zero.
            self._tables.append([np.cumsum(np.pad(values, ((0, 0), (1, 0))), axis=1) for values in products])

    def branch(self) -> OrderedUnits:
        """Return the object itself, since `sums` does not change it."""
        return self

    def sums(self, counts: IntArray) -> StratumSums:
        """Return the sums of the first n_h units; counts are (H,) or (R, H)."""
        total_counts = np.atleast_2d(counts)
        rows: slice | IntArray = slice(None)
        stratum_counts = total_counts[0]
        if len(total_counts) > 1:
            rows = np.arange(len(total_counts))
            stratum_counts = total_counts.T
        sums_by_stratum = [
            [table[rows, count] for table in tables]
            for tables, count in zip(self._tables, stratum_counts, strict=True)
        ]
        sums = [np.stack(columns, axis=1) for columns in zip(*sums_by_stratum, strict=True)]
        return StratumSums(
            counts=total_counts.astype(np.float64), **dict(zip(self._names, sums, strict=True))
        )


# Nested samples of R replicates from every stratum; a `branch` continues from the current state.
Draws: TypeAlias = BinaryDraws | OrderedUnits


def ordered_units(
    size: int, n: int, replicates: int, rng: np.random.Generator, *, with_replacement: bool = False
) -> IntArray:
    """Return the first n units of a random order of `size` units for each replicate: int (R, n)."""
    if with_replacement:
        return rng.integers(0, size, size=(replicates, n))
    if n > _SORTING_FRACTION * size:
        return np.argsort(rng.random((replicates, size)), axis=1)[:, :n]
    # Expected number of draws until n units are distinct, plus about four standard deviations.
    width = math.ceil(-size * math.log1p(-n / size) + 4.0 * n / math.sqrt(size) + 2.0)
    starts = range(0, replicates, _DRAW_BATCH)
    batches = [_distinct_draws(size, n, width, min(_DRAW_BATCH, replicates - start), rng) for start in starts]
    return np.concatenate(batches)


def _distinct_draws(size: int, n: int, width: int, replicates: int, rng: np.random.Generator) -> IntArray:
    """Return the first n distinct units of rows of `width` independent draws: int (R, n).

    Independent draws without the repetitions are the beginning of a random order. Rows with fewer than n
    distinct units are drawn again. This introduces no bias, since the number of repetitions in a row is
    independent of the units that it contains.
    """
    units = rng.integers(0, size, size=(replicates, width))
    # Sorted keys of unit and position: equal units are adjacent, the first position comes first.
    keys = np.sort(units * width + np.arange(width), axis=1)
    is_repeated = np.zeros_like(units, dtype=bool)
    row, position = np.nonzero(keys[:, 1:] // width == keys[:, :-1] // width)
    is_repeated[row, keys[row, position + 1] % width] = True
    rows = np.flatnonzero(is_repeated[:, :n].any(axis=1))
    if len(rows):
        order = np.argsort(is_repeated[rows], axis=1, kind="stable")
        units[rows] = np.take_along_axis(units[rows], order, axis=1)
    short_rows = np.flatnonzero(width - is_repeated.sum(axis=1) < n)
    if len(short_rows):
        units[short_rows, :n] = _distinct_draws(size, n, 2 * width, len(short_rows), rng)
    return units[:, :n]
