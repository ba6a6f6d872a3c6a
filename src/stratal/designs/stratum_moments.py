"""Moments of labelled units per stratum, from which every stratified variance is made.

Letters are Cochran's: N_h stratum sizes, n_h labels per stratum, W_h = N_h / N, f_h = n_h / N_h.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray, Record

_TINY = float(np.finfo(np.float64).tiny)


def stratum_counts(stratum: IntArray, n_strata: int) -> IntArray:
    """Return n_h, the number of units in each stratum."""
    return np.bincount(stratum, minlength=n_strata).astype(np.int64, copy=False)


def _stratum_products(variables: FloatArray, stratum: IntArray, n_strata: int) -> FloatArray:
    """Return the sums of products of the variables (n, q) with each other in each stratum (H, q, q)."""
    if n_strata == 1:
        return (variables.T @ variables)[None]
    q = variables.shape[1]
    found = np.empty((n_strata, q, q))
    for a in range(q):
        for b in range(a, q):
            product = variables[:, a] * variables[:, b]
            found[:, a, b] = found[:, b, a] = np.bincount(stratum, product, minlength=n_strata)
    return found


def stratum_sums(variables: FloatArray, stratum: IntArray, n_strata: int) -> FloatArray:
    """Return the sums of variables (n,) or (n, q) over each stratum (H,) or (H, q)."""
    if n_strata == 1:
        return np.asarray(variables.sum(axis=0, keepdims=True))
    columns = np.ascontiguousarray(variables.T).reshape(-1, len(variables))
    sums = np.array([np.bincount(stratum, column, minlength=n_strata) for column in columns])
    return np.asarray(sums[0] if variables.ndim == 1 else sums.T)


def stratum_means(variables: FloatArray, stratum: IntArray, n_strata: int) -> FloatArray:
    """Return the unweighted mean of each variable in each stratum (H, q); NaN where one is empty."""
    counts = stratum_counts(stratum, n_strata)
    if variables.shape[1] == 1:
        sums = np.bincount(stratum, variables[:, 0], minlength=n_strata)[:, None]
    else:
        columns = np.ascontiguousarray(variables.T)
        sums = np.array([np.bincount(stratum, column, minlength=n_strata) for column in columns]).T
    with np.errstate(invalid="ignore"):
        return np.asarray(sums / counts[:, None])


def centred(variables: FloatArray, stratum: IntArray, n_strata: int) -> FloatArray:
    """Return the deviations (n, q) of each variable from its stratum's mean."""
    if n_strata == 1:
        return variables - np.full(len(variables), 1.0 / max(len(variables), 1)) @ variables
    return variables - stratum_means(variables, stratum, n_strata)[stratum]


def stratum_covariances(variables: FloatArray, stratum: IntArray, n_strata: int) -> FloatArray:
    """Return the within-stratum sample covariances s_h² with divisor n_h − 1, shape (H, q, q).

    A stratum with fewer than two units gets NaN: its variance cannot be estimated from itself.
    """
    free = stratum_counts(stratum, n_strata) - 1.0
    products = _stratum_products(centred(variables, stratum, n_strata), stratum, n_strata)
    return products / np.where(free > 0, free, np.nan)[:, None, None]


def stratum_kurtoses(z: FloatArray, stratum: IntArray, n_strata: int) -> FloatArray:
    """Return n_h Σ (z − z̄_h)⁴ / (Σ (z − z̄_h)²)² of each stratum (H,), 1 to n_h; 1 where labels agree."""
    off = z - stratum_means(z[:, None], stratum, n_strata)[:, 0][stratum]
    squares = (off / max(float(np.abs(off).max(initial=0.0)), _TINY)) ** 2
    second, fourth = (np.bincount(stratum, part, minlength=n_strata) for part in (squares, squares**2))
    return kurtoses_of(stratum_counts(stratum, n_strata), second, fourth)


def kurtoses_of(counts: AnyArray, second: AnyArray, fourth: AnyArray) -> FloatArray:
    """Return n Σ y⁴ / (Σ y²)² within what n numbers can have, 1 to n; 1 where they do not vary."""
    varies = second > 0
    found = counts * fourth / np.where(varies, second, 1.0) ** 2
    return np.asarray(np.clip(np.where(varies, found, 1.0), 1.0, np.maximum(counts, 1.0)))


# Labels that the population's proxy variance counts for in the denominator of λ.
PRIOR_LABELS = 2.0

# Informative labels that no λ counts for in an interval.
LABELS_AGAINST_LAM = 5.0

# Informative labels at which a fitted λ and a calibrated proxy's count alike.
_LABELS_FOR_A_CALIBRATED_LAM = 20.0

# Informative labels that one label of a rare class is; with it the classes' λ has half a say.
_INFORMATION_OF_ONE = 4.0

# Informative labels at which half of what the labels say against a proxy counts. With fewer, the labels that
# say nothing of a proxy are mostly those of a class that has no label yet (docs/decisions/0008).
_LABELS_AGAINST_A_PROXY = 10.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StratumMoments(Record):
    """First and second moments of outcome and proxies within each stratum's labelled units.

    Parameters
    ----------
    counts : (…, H)
        n_h.
    outcome_means : float (…, H)
    proxy_means : float (…, H, k)
    outcome_variances : float (…, H)
    cross_covariances : float (…, H, k)
        Of outcome and proxies; divisor n_h − 1, 0 where n_h < 2.
    proxy_covariances : float (…, H, k, k)
    """

    counts: IntArray
    outcome_means: FloatArray
    proxy_means: FloatArray
    outcome_variances: FloatArray
    cross_covariances: FloatArray
    proxy_covariances: FloatArray


def stratum_moments(z: FloatArray, proxies: FloatArray, stratum: IntArray, n_strata: int) -> StratumMoments:
    """Return the labelled units' moments per stratum, summed over the outcomes where there are several.

    Parameters
    ----------
    z : float (n,) or (n, q)
    proxies : float (n, k) or (n, q, k)
        Of each outcome.
    stratum : int (n,)
    n_strata : int
        H.
    """
    joint = np.concatenate([z[..., None], proxies], axis=-1)
    counts, (n, k) = stratum_counts(stratum, n_strata), (len(z), joint.shape[-1])
    means = stratum_means(joint if z.ndim == 1 else np.einsum("nqk->nk", joint), stratum, n_strata)
    whole = np.where(counts[:, None] > 0, means, 0.0)
    each = centred(joint.reshape(n, -1), stratum, n_strata).reshape(-1, k)
    if n_strata == 1:
        of = stratum
    else:
        of = np.repeat(stratum, len(each) // max(n, 1))
    products = _stratum_products(each, of, n_strata) / np.maximum(counts - 1.0, 1.0)[:, None, None]
    return StratumMoments(
        counts=counts,
        outcome_means=whole[:, 0],
        proxy_means=whole[:, 1:],
        outcome_variances=products[:, 0, 0],
        cross_covariances=products[:, 0, 1:],
        proxy_covariances=products[:, 1:, 1:],
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelledSpread:
    """What the labelled units say of the spread of outcome and proxies, and how much they can say.

    Parameters
    ----------
    proxies : float (…, H, k, k)
        s_h² of the proxies.
    outcome : float (…, H)
        s_h² of the outcome.
    information : float (…,), optional
        4 Σ n_h p_h (1 − p_h) for an outcome on the 0–1 scale: labels, counted less where they (nearly) agree.
        Without it the fitted λ is trusted.
    least : float (…,)
        Variance of an outcome of which half a label more is right and half a label more is wrong.
    of_classes : float (…,), optional
        λ that the classes' mean proxies give, for one stratum (`lam_of_classes`).
    missed : float (…, 1, 1)
        Covariance of outcome and proxy that units unlike the labelled ones are taken to add, for one stratum.
    labels : float (…,)
        Σ n_h.
    """

    proxies: FloatArray
    outcome: FloatArray
    information: FloatArray | None = None
    least: FloatArray | float = 0.0
    of_classes: FloatArray | None = None
    missed: FloatArray | float = 0.0
    labels: FloatArray | float = np.inf

    @classmethod
    def of(
        cls,
        proxies: FloatArray,
        outcome: FloatArray,
        means: FloatArray,
        counts: AnyArray,
        bounds: tuple[float, float] | None = (0.0, 1.0),
    ) -> LabelledSpread:
        """Return the spread of labels with these means (…, H); without bounds every label is informative."""
        labels = np.sum(counts, axis=-1)
        if bounds is None:
            return cls(
                proxies=proxies, outcome=outcome, information=labels, least=0.0 * labels, labels=labels
            )
        scale = bounds[1] - bounds[0]
        unit = (means - bounds[0]) / scale
        share = (np.sum(counts * unit, axis=-1) + 0.5) / (labels + 1.0)
        return cls(
            proxies=proxies,
            outcome=outcome,
            information=4.0 * np.sum(counts * np.maximum(unit * (1.0 - unit), 0.0), axis=-1),
            least=share * (1.0 - share) * scale**2,
            labels=labels,
        )

    def blended(self, population: FloatArray, labels: FloatArray) -> FloatArray:
        """Return the proxies' covariances (…, H, k, k), the population's counting for two labels."""
        share = (labels / (labels + PRIOR_LABELS))[..., None, None]
        return np.asarray(population + share * (self.proxies - population))

    def shrunk(self, lam: FloatArray, population: FloatArray, factors: FloatArray) -> FloatArray:
        """Return λ (…, H, k), drawn to that of calibrated proxies where labels say little.

        A calibrated proxy has Cov(z, ẑ) = Var ẑ, so λ = 1; no proxy that varies more than the outcome is
        calibrated, and Var z / Var ẑ bounds what it deserves. Of several proxies the plain mean is taken to
        be calibrated, and each has an equal part of its λ. k proxies need k times the informative labels of
        one. Where the classes' mean proxies are known the λ that they give comes in its place as soon as
        there is a label of either class. The pull is limited by what the fitted λ explains.
        """
        varies = np.einsum("...ii->...i", population) > 0
        if self.information is None:
            return np.where(varies, lam, 0.0)
        own = np.sum(factors * self.outcome, axis=-1)
        least = self.least * np.sum(factors, axis=-1)
        parts = varies / np.maximum(np.sum(varies, axis=-1, keepdims=True), 1)
        of_mean = np.einsum("...hi,...hij,...hj->...h", parts, population, parts)
        proxy = np.sum(factors * of_mean, axis=-1)
        deserved = np.minimum(np.maximum(own, least), proxy)  # no quotient that overflows
        calibrated = np.where(proxy > 0, deserved / np.where(proxy > 0, proxy, 1.0), 0.0)
        needed = _LABELS_FOR_A_CALIBRATED_LAM * lam.shape[-1]
        few = needed**2 / (self.information**2 + needed**2)
        if self.of_classes is not None:
            share = few * self.information / (self.information + _INFORMATION_OF_ONE)
            calibrated = calibrated + share * (self.of_classes - calibrated)
        own_lam = np.where(varies, lam, 0.0)
        pull = few[..., None, None] * (calibrated[..., None, None] * parts - own_lam)
        # A proxy that the labels show to explain nothing must not widen the interval: the variance that the
        # pull adds is at most the one that the fitted λ removes. For one proxy λ is then at most doubled.
        removed, added = (explained_variance(part, population, factors) for part in (own_lam, pull))
        excess = added > removed
        scale = np.where(excess, np.sqrt(removed / np.where(excess, added, 1.0)), 1.0)
        return np.asarray(np.where(varies, own_lam + scale[..., None, None] * pull, 0.0))

    def evidence_of_gain(self, lam: FloatArray, cross: FloatArray, factors: FloatArray) -> FloatArray:
        """Return the share (…,) of λ (…, H, k) that the labels support: 1 where a gain is certain.

        F = i r² / (1 − r²), with i the informative labels and r the correlation, within strata, of the
        outcome and the proxies weighted by λ, is about k for proxies that say nothing. λ loses the share
        (k/F)², at most 1, as far as there are informative labels: a smooth form of dropping proxies
        below a threshold, which costs strong ones less than 1 − k/F would (James & Stein 1961). `cross`
        (…, H, k) is the covariance of outcome and proxies.
        """
        labels = np.asarray(self.labels if self.information is None else self.information)
        known = np.isfinite(labels)
        labels = np.where(known, labels, 0.0)
        own = np.sum(factors * self.outcome, axis=-1)
        of_proxies = explained_variance(lam, self.proxies, factors)
        joint = np.maximum(np.sum(factors * np.sum(lam * cross, axis=-1), axis=-1), 0.0)
        varies = (own > 0) & (of_proxies > 0)
        # A product of the two variances could overflow.
        slopes = (joint / np.where(varies, variance, 1.0) for variance in (own, of_proxies))
        explained = np.where(varies, np.minimum(math.prod(slopes), 1.0), 0.0)
        by_chance = lam.shape[-1] * (1.0 - explained)
        seen = labels * explained
        against = np.where(seen > by_chance, by_chance / np.where(seen > 0, seen, 1.0), 1.0) ** 2
        counted = labels**4 / (labels**4 + _LABELS_AGAINST_A_PROXY**4)
        return np.asarray(np.where(known, 1.0 - counted * against, 1.0))


def explained_variance(lam: FloatArray, covariances: FloatArray, factors: FloatArray) -> FloatArray:
    """Return Σ_h a_h λ_h'V_hλ_h (…,) of λ (…, H, k), V_h (…, H, k, k) and factors a_h (…, H)."""
    return np.asarray(np.sum(factors * np.einsum("...hi,...hij,...hj->...h", lam, covariances, lam), axis=-1))


def collapse_singletons(counts: IntArray, sizes: IntArray) -> IntArray:
    """Return, for each stratum, the group that it lends its variance from: itself, or itself and neighbours.

    A stratum with one label out of several units has no variance of its own. It is grouped with the nearest
    stratum that has labels, which can only overstate its variance (Cochran, 5A.12; "collapsed strata").

    Parameters
    ----------
    counts : int (H,)
        n_h, labels per stratum; strata without labels are left out of every group.
    sizes : int (H,)
        N_h.

    Returns
    -------
    int (H,)
        Group numbers; strata with the same number are pooled.
    """
    group = np.arange(len(counts))
    labelled = np.flatnonzero(counts > 0)
    for h in labelled:
        if counts[h] > 1 or sizes[h] == 1 or len(labelled) == 1:
            continue
        if np.sum(counts[group == group[h]]) > 1:
            continue
        others = labelled[labelled != h]
        nearest = others[np.argmin(np.abs(others - h))]
        group[group == group[h]] = group[nearest]
    return group


def pooled_stratum_covariances(
    variables: FloatArray, stratum: IntArray, counts: IntArray, sizes: IntArray
) -> FloatArray:
    """Return s_h² (H, q, q), a single-label stratum taking that of its collapsed group.

    Strata that are labelled whole, or not at all, get 0 where nothing can be estimated. One label in all
    gives NaN.
    """
    n_strata = len(sizes)
    own = stratum_covariances(variables, stratum, n_strata)
    if n_strata > 1 and (counts == 1).any():
        group = collapse_singletons(counts, sizes)
        if not np.array_equal(group, np.arange(n_strata)):
            joint = stratum_covariances(variables, group[stratum], n_strata)[group]
            own = np.where(np.isnan(own), joint, own)
    unknown = np.isnan(own[:, 0, 0])
    if unknown.any():
        own[unknown & ((counts >= sizes) | (counts == 0))] = 0.0
    return own


def population_spread(
    means: FloatArray, within: FloatArray, counts: AnyArray, sizes: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return the within- and between-strata parts of S², the population's covariance with divisor N − 1.

    Their sum is exactly unbiased: (N − 1) S² = Σ (N_h − 1) S_h² + Σ N_h (Ȳ_h − Ȳ)², from whose plug-in the
    part that only the sampling of the means adds, Σ N_h (1 − W_h) (1 − f_h) s_h² / n_h, is taken off
    (Cochran, 5A.11).

    Parameters
    ----------
    means : float (…, H, q)
    within : float (…, H, q, q)
        s_h².
    counts : (…, H)
        n_h; strata without labels are left out.
    sizes : int (H,)
        N_h.
    """
    labelled = counts > 0
    size = np.where(labelled, sizes, 0).astype(np.float64)
    total = size.sum(axis=-1, keepdims=True)
    share = size / total
    divisor = np.maximum(total - 1.0, 1.0)
    own = _weighted(np.maximum(size - 1.0, 0.0) / divisor, within)
    filled = np.where(labelled[..., None], means, 0.0)
    centred = filled - np.sum(share[..., None] * filled, axis=-2, keepdims=True)
    fractions = np.where(labelled, np.minimum(counts / sizes, 1.0), 1.0)
    noise = size * (1.0 - share) * (1.0 - fractions) / np.maximum(counts, 1)
    products = centred[..., :, None] * centred[..., None, :]
    return own, _weighted(size / divisor, products) - _weighted(noise / divisor, within)


def _weighted(weights: FloatArray, matrices: FloatArray) -> FloatArray:
    """Return Σ a_h M_h (…, q, q)."""
    return np.asarray(np.einsum("...h,...hij->...ij", weights, matrices))


def satterthwaite(contributions: FloatArray, degrees_of_freedom: FloatArray) -> FloatArray:
    """Return Satterthwaite's degrees of freedom (…,) of a sum of independent variance estimates (…, H).

    (Σ a)² / Σ a² / ν (Satterthwaite 1946; Cochran, eq. 5.16). Zero contributions do not count; if all are
    zero, the degrees of freedom add up.
    """
    used = degrees_of_freedom > 0
    kept = np.where(used, contributions, 0.0)
    total = kept.sum(axis=-1, keepdims=True)
    usable = np.isfinite(total) & (total > 0)
    shares = kept / np.where(usable, total, 1.0)
    below = (shares**2 / np.where(used, degrees_of_freedom, 1.0)).sum(axis=-1)
    whole = np.where(used, degrees_of_freedom, 0.0).sum(axis=-1)
    usable = usable[..., 0]
    return np.asarray(np.where(usable, 1.0 / np.where(usable, below, 1.0), whole))


# Labels of either class that a calibrated proxy counts for: one in all, as half a label more of either.
_LABELS_A_CLASS = 0.5

# Covariance, summed over labels of 0 to 1, that a calibrated proxy's word counts for: half a positive.
_CALIBRATED_WORD = 0.5

# A mean that the proxy corrects is believed up to so many times the positives, and so many more.
_TIMES = 2.0
_MORE = 1.5

# Steps from λ to the mean and back; they shrink by the labels' share of the variance each time.
_STEPS = 4

# A mean proxy at 0 or 1 would divide by 0 below.
_EDGE = 1e-9


def lam_of_classes(
    counts: AnyArray,
    means: FloatArray,
    off: FloatArray,
    cross: FloatArray,
    *,
    proxy_mean: float,
    proxy_variance: float,
) -> FloatArray:
    """Return λ (…,) between −1 and 1 of outcome and proxy on the 0–1 scale.

    Parameters
    ----------
    counts : (…,)
        n.
    means : float (…,)
        Mean outcome of the labels; graded outcomes count as so much of a positive.
    off : float (…,)
        Mean proxy of the labelled units less that of all units.
    cross : float (…,)
        Covariance of outcome and proxy among the labels, divisor n − 1.
    proxy_mean, proxy_variance : float
        Over all units.

    Notes
    -----
    A calibrated proxy of mean m and variance V has mean m + V/m among positives and m − V/(1 − m) among the
    others.
    """
    if proxy_variance <= 0:
        return np.zeros(np.shape(means))
    m = min(max(proxy_mean, _EDGE), 1.0 - _EDGE)
    positives = counts * means
    more = _LABELS_A_CLASS
    among = (counts - 1.0) * cross + positives * off
    above = (among + more * proxy_variance / m) / (positives + more)
    below = (counts * off - among - more * proxy_variance / (1.0 - m)) / (counts - positives + more)
    least = 0.5 / (counts + 1.0)
    theta = (positives + 0.5) / (counts + 1.0)
    lam = np.zeros(np.shape(means))
    for _ in range(_STEPS):
        lam = np.clip(theta * (1.0 - theta) * (above - below) / proxy_variance, -1.0, 1.0)
        theta = np.clip(means - lam * off, least, 1.0 - least)
    return np.asarray(lam)


def unseen(
    counts: AnyArray,
    means: FloatArray,
    off: FloatArray,
    cross: FloatArray,
    spread: FloatArray,
    *,
    proxy_variance: float,
) -> tuple[FloatArray, FloatArray]:
    """Return the covariance that the labelled units miss, and the outcome's likely mean, (…,) each.

    Where the labelled units' proxies vary less than all, the units with the others are unlike them: of a rare
    outcome those with high scores, of which a small sample has none. They are taken to follow the proxy by
    the slope that the labels leave likely, which a calibrated proxy's 1 is mixed into.

    Parameters
    ----------
    counts, means, off, cross, proxy_variance
        See `lam_of_classes`.
    spread : float (…,)
        Variance of the proxy among the labels, divisor n − 1.
    """
    seen, labels = np.stack(np.broadcast_arrays(cross, spread)) * (counts - 1.0) + _CALIBRATED_WORD
    slope = np.clip(seen / labels, 0.0, 1.0)
    most, least = ((_TIMES * ones + _MORE) / counts for ones in (counts * means, counts * (1.0 - means)))
    likely = np.clip(means - slope * off, np.maximum(1.0 - least, 0.0), np.minimum(most, 1.0))
    return np.maximum(proxy_variance - spread, 0.0) * slope, likely
