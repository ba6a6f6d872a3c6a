"""Standard deviations per stratum from a few labels: the proxy recalibrated on them, then smoothed.

A stratum whose five labels are all correct has not shown that S_h = 0. The stratum's rate is therefore taken
from a posterior with three things unknown: an offset and a slope on the log-odds of the mean proxies, which
say how far the proxy is off, and a number of pseudo-labels, which says how closely strata keep to that line.
All three live on a small grid, so that nothing is iterated and equal labels always give equal numbers.
Counts and sums may have leading axes for replicates.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, gammaln, logit, ndtri

from stratal.arrays import FloatArray
from stratal.errors import InputError
from stratal.strata.allocation import one_per_stratum, whole_numbers
from stratal.strata.strata import MEAN_SHRINKAGE, Moments, of_sizes, shrunk_log_odds

# κ − 1 of a normal outcome; smaller estimates are raised to it.
_NORMAL = 2.0

# Squared relative distance of a stratum's variance from the line: 38%, so that the line counts for fourteen
# labels of a normal outcome. Tried were 1/2 to 1/16: larger ones lose more where strata are alike,
# smaller ones gain nothing more there.
_ABOUT_THE_LINE = 1.0 / 7.0

# Prior precision of the slope: the last stratum's variance lies within e^(±1.4) = 4 times the first's, two
# times in three.
_SLOPE_LABELS = 2.0

# Largest slope: S_h grows twentyfold from the first stratum to the last.
_STEEPEST = 3.0

# Steps of scoring; a fourth changes no allocation.
_LINE_STEPS = 3


def unbounded_deviations(
    counts: FloatArray,
    squares: FloatArray,
    shape: FloatArray,
    *,
    means: FloatArray | None = None,
    kurtoses: FloatArray | None = None,
    weights: FloatArray | None = None,
) -> FloatArray:
    """Return smoothed S_h (…, H) of an outcome without bounds.

    Parameters
    ----------
    counts : float (…, H)
        n_h.
    squares : float (…, H)
        Σ (z − z̄_h)² over each stratum's labels.
    shape : float (H,)
        What the strata's variances are proportional to by the proxy; ones where it does not say.
    means : float (H,), optional
        Mean proxies, of which the order counts: variances may grow or fall along it.
    kurtoses : float (…, H), optional
        n_h Σ (z − z̄_h)⁴ / (Σ (z − z̄_h)²)² of each stratum's labels; a normal outcome's if left out.
    weights : float (H,), optional
        W_h; equal if left out.

    Notes
    -----
    log S_h² = a + log shape_h + b t_h + e_h with t_h the stratum's place in the order from −1 to 1, b by
    scoring with a normal prior, a from the labels, and e_h shrunk with weight (κ − 1)/τ² labels. κ is pooled
    over strata, each relative to the line's variance, then to the one found: a stratum that shows no large
    value has a small kurtosis of its own.
    """
    if weights is None:
        weights = np.full(len(shape), 1.0 / len(shape))
    freedom = np.maximum(counts - 1.0, 0.0)
    flat = shape + MEAN_SHRINKAGE * (float(weights @ shape) - shape)
    level = _ratio(squares.sum(axis=-1), freedom @ flat)
    flat = np.where(level > 0, level, 1.0)[..., None] * flat  # labels all equal tell no level
    along = _along(means, len(shape))
    slope = np.zeros(level.shape)
    line = flat
    for _ in range(_LINE_STEPS):
        noise = _noise(freedom, squares, line, kurtoses)
        score = (squares / line - freedom) @ along / noise - _SLOPE_LABELS * slope
        slope = slope + np.clip(score / (freedom @ along**2 / noise + _SLOPE_LABELS), -2.0, 2.0)
        slope = np.clip(slope, -_STEEPEST, _STEEPEST)
        line = flat * np.exp(slope[..., None] * along)
        scale = _ratio((freedom * flat).sum(axis=-1), (freedom * line).sum(axis=-1))
        line = np.where(scale > 0, scale, 1.0)[..., None] * line
    variances = line
    for _ in range(2):  # then κ about what is found, or a stratum unlike the line would look like noise
        weight = _noise(freedom, squares, variances, kurtoses)[..., None] / _ABOUT_THE_LINE
        variances = (squares + weight * line) / (freedom + weight)
    return np.asarray(np.sqrt(variances))


def _noise(
    freedom: FloatArray, squares: FloatArray, variances: FloatArray, kurtoses: FloatArray | None
) -> FloatArray:
    """Return κ − 1 (…,): n_h times the squared relative error of a stratum's sample variance."""
    if kurtoses is None:
        return np.full(squares.shape[:-1], _NORMAL)
    labels = np.maximum(freedom + 1.0, 1.0)
    fourths = np.sum(kurtoses * (squares / variances) ** 2 / labels, axis=-1)
    return np.asarray(np.maximum(_ratio(fourths, freedom.sum(axis=-1)) - 1.0, _NORMAL))


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    """Return a quotient, 0 where there is nothing below."""
    return np.asarray(np.where(below > 0, above / np.where(below > 0, below, 1.0), 0.0))


def _along(means: FloatArray | None, n_strata: int) -> FloatArray:
    """Return each stratum's place in the order of the mean proxies, −1 to 1; 0 where there is no order."""
    if means is None or n_strata == 1:
        return np.zeros(n_strata)
    below = np.searchsorted(np.sort(means), means, "left")
    most = np.searchsorted(np.sort(means), means, "right") - 1
    return np.asarray((below + most) / (n_strata - 1) - 1.0)


# Offsets on the log-odds; a standard normal prior.
PRIOR_OFFSETS = np.linspace(-3.0, 3.0, 13)

# Factors on the log-odds, equally likely before any label.
PRIOR_SLOPES = np.array([0.0, 0.125, 0.25, 0.4, 0.6, 0.8, 1.0, 1.25, 1.6, 2.0, 2.5])

# Strengths of the prior of each stratum, equally likely.
PSEUDO_LABELS = (16.0, 64.0, 256.0)

# The same where there is no proxy to say which stratum is better.
UNKNOWN_PSEUDO_LABELS = (2.0, 4.0, 16.0, 64.0)

# A rate no nearer to 0 or 1 has a finite logit and quantile.
_EDGE = 1e-9

# Labels that the pooled spread counts for next to a stratum's own.
_SPREAD_WEIGHT = 2.0

# Fixed, so that equal labels give equal rates.
_SEED = 20_261_121

# Cases of a stratum's labels that are worked out at a time.
_TABLE = 4096

# As many are not looked through for cases that are alike: that takes as long as to work them out.
_FEW_CASES = 100


def smoothed_standard_deviations(
    strata: object,
    counts: object,
    sums: object,
    squares: object = None,
    *,
    kurtoses: object = None,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> FloatArray:
    """Return S_h of each stratum from the labels so far and the proxy, never zero for want of labels.

    Parameters
    ----------
    strata : Strata, or int (H,)
        Sizes, and what the proxy says of them; the sizes N_h alone where there is no proxy. Of a proxy that
        is not on the outcome's scale only the order of its means is used.
    counts : int (H,) or (…, H)
        Labels in each stratum; zeros are allowed.
    sums : float (…, H)
        Sum of the outcome over these labels.
    squares : float (…, H), optional
        Sum of the squared outcome; left out for an outcome that only takes the values of its bounds.
    kurtoses : float (…, H), optional
        n_h Σ (z − z̄_h)⁴ / (Σ (z − z̄_h)²)² of each stratum's labels, looked at where the outcome has no
        bounds; those of a normal outcome if left out.
    bounds : (float, float)
        The outcome's limits; infinite where it has none (then `squares` is needed).

    Returns
    -------
    float (…, H)
        In the outcome's units.

    Raises
    ------
    InputError
        If lengths differ, a count is negative, or `squares` is missing for an outcome without bounds.

    Notes
    -----
    Bounded outcomes: rates r_h ~ Beta(k μ_h, k (1 − μ_h)), logit μ_h = c + α + β (logit m_h − c), with c the
    log-odds of the overall mean proxy; the posterior mean of r(1 − r) is the variance of a binary outcome,
    others have the share of it that their labels show, smoothed over strata. Unbounded: sample variances,
    smoothed towards the plug-in ones rescaled and tilted to fit, the more the heavier the labels' tails.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.95] * 500 + [0.6] * 500)
    >>> strata = stratal.strata.stratify(population, n_strata=2)  # in the order of the proxy
    >>> smoothed_standard_deviations(strata, [5, 5], [3, 5]).round(2)
    array([0.46, 0.23])
    >>> smoothed_standard_deviations([500, 500], [5, 5], [3, 5]).round(2)
    array([0.43, 0.32])
    """
    if not isinstance(strata, Moments):
        strata = of_sizes(whole_numbers("strata", strata))
    counts, sums, second = _read(strata, counts, sums, squares, bounds)
    within = np.maximum(second - sums**2 / np.maximum(counts, 1.0), 0.0)  # Σ (z − z̄_h)²
    plug_in_variances = strata.plug_in_variances * strata.scaled
    width = bounds[1] - bounds[0]
    if not np.isfinite(width):
        if kurtoses is not None:
            kurtoses = one_per_stratum("kurtoses", kurtoses, strata.n_strata, axes=2)
        return unbounded_deviations(
            counts,
            within,
            plug_in_variances if plug_in_variances.any() else np.ones(strata.n_strata),
            means=strata.proxy_means if strata.has_proxy else None,
            kurtoses=kurtoses,
            weights=strata.weights,
        )
    centre, distance, strengths = _log_odds(strata, counts, sums, bounds)
    cases = np.stack(np.broadcast_arrays(centre, distance, counts, sums), axis=-1)
    binary = _posterior_variances(cases.reshape(-1, *cases.shape[-2:]), strengths).reshape(cases.shape[:-1])
    if squares is None:
        return np.asarray(width * np.sqrt(binary))
    prior = 1.0
    if strata.scaled and strata.has_proxy:
        share = (strata.proxy_means - bounds[0]) / width
        possible = float(strata.weights @ np.clip(share * (1 - share), 0.0, 0.25))
        prior = float(
            np.clip(strata.weights @ plug_in_variances / max(width**2 * possible, _EDGE), 0.05, 1.0)
        )
    # Each variance's share of r(1 − r): 1 for binary outcomes, less for others.
    largest = np.maximum(sums - sums**2 / np.maximum(counts, 1.0), 0.0)
    pooled = within.sum(axis=-1, keepdims=True) + _SPREAD_WEIGHT * prior
    pooled = pooled / (largest.sum(axis=-1, keepdims=True) + _SPREAD_WEIGHT)
    spread = np.minimum((within + _SPREAD_WEIGHT * pooled) / (largest + _SPREAD_WEIGHT), 1.0)
    return np.asarray(width * np.sqrt(binary * spread))


def _read(
    strata: Moments, counts: object, sums: object, squares: object, bounds: tuple[float, float]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return labels, sums and sums of squares, each (…, H), on the scale of 0 to 1 if there are bounds."""
    h, (low, high) = strata.n_strata, bounds
    n_labels = one_per_stratum("counts", counts, h, axes=2)
    totals = one_per_stratum("sums", sums, h, -np.inf, axes=2)
    if not np.isfinite(high - low):
        if squares is None:
            raise InputError(
                "an outcome without bounds requires the sums of squares", action="Give squares=."
            )
        low = 0.0
        high = 1.0
    # Sums of millions of labels in floating point may be off by a millionth.
    elif np.any(totals < low * n_labels - 1e-6) or np.any(totals > high * n_labels + 1e-6):
        raise InputError(
            "sums are outside the range that counts and bounds allow",
            given=totals.tolist(),
            allowed="sums of as many labels",
        )
    rescaled = (totals - low * n_labels) / (high - low)
    second = rescaled
    if squares is not None:
        raw = one_per_stratum("squares", squares, h, axes=2)
        second = (raw - 2 * low * totals + low**2 * n_labels) / (high - low) ** 2
    return np.broadcast_to(n_labels, rescaled.shape), rescaled, second


def _posterior_variances(cases: FloatArray, strengths: FloatArray) -> FloatArray:
    """Return the posterior mean of r(1 − r) (R, H) of cases (R, H, 4): centre, distance, n_h and successes.

    A stratum's likelihood depends on its own labels alone, so it is worked out once for every case that
    occurs and then looked up.
    """
    distinct_cases = cases.reshape(-1, 4)
    place = line = np.arange(len(distinct_cases))
    if several := len(distinct_cases) > _FEW_CASES:
        distinct_cases, place = np.unique(distinct_cases, axis=0, return_inverse=True)
    if len(distinct_cases) > _TABLE and len(cases) > 1:
        halves = np.array_split(cases, 2)
        return np.concatenate([_posterior_variances(half, strengths) for half in halves])
    lines = distinct_cases[:, :2]
    if several:
        lines, line = np.unique(lines, axis=0, return_inverse=True)
    a, b, prior = _line_priors(lines, strengths)
    line = line.ravel()
    more_a = a[line] + distinct_cases[:, 3:]
    more_b = b[line] + np.maximum(distinct_cases[:, 2:3] - distinct_cases[:, 3:], 0.0)
    total = more_a + more_b
    scores = _log_beta(more_a, more_b) - _log_beta(a, b)[line]
    variances = more_a * more_b / (total * (total + 1.0))
    columns = place.reshape(cases.shape[:2]).T
    score = prior + sum(scores[column] for column in columns)
    posterior = np.exp(score - score.max(axis=1, keepdims=True))
    posterior /= posterior.sum(axis=1, keepdims=True)
    return np.stack([np.einsum("rg,rg->r", posterior, variances[column]) for column in columns], axis=1)


def _log_beta(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return log B(a, b): a third of the time of SciPy's, whose last digits weights of a grid do not need."""
    return np.asarray(gammaln(a) + gammaln(b) - gammaln(a + b))


def _line_priors(lines: FloatArray, strengths: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return beta priors (L, G) of strata at centre and distance (L, 2), and the grid's log prior (G,)."""
    offset, slope = (grid.ravel() for grid in np.meshgrid(PRIOR_OFFSETS, PRIOR_SLOPES, indexing="ij"))
    rate = np.clip(expit(lines[:, :1] + offset + slope * lines[:, 1:]), _EDGE, 1.0 - _EDGE)
    a = (strengths[:, None] * rate[:, None, :]).reshape(len(lines), -1)
    b = (strengths[:, None] * (1.0 - rate)[:, None, :]).reshape(len(lines), -1)
    return a, b, np.tile(-0.5 * offset**2, len(strengths))


def likely_rates(
    strata: Moments,
    counts: object,
    sums: object,
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    number: int = 2_000,
) -> FloatArray:
    """Return sets of stratum rates as likely as the labels make them, of the posterior behind S_h.

    Parameters
    ----------
    strata : Moments
    counts : int (H,)
        Labels in each stratum.
    sums : float (H,)
        Sum of the outcome over these labels.
    bounds
        As in `smoothed_standard_deviations`.
    number : int
        How many sets.

    Returns
    -------
    float (number, H)
        On the scale of 0 to 1; the same numbers every time.
    """
    counts, sums, _ = _read(strata, counts, sums, None, bounds)
    centre, distance, strengths = _log_odds(strata, counts, sums, bounds)
    a, b, prior = _line_priors(np.stack(np.broadcast_arrays(centre, distance), axis=-1), strengths)
    more_a = a + sums[:, None]
    more_b = b + np.maximum(counts - sums, 0.0)[:, None]
    score = prior + np.sum(_log_beta(more_a, more_b) - _log_beta(a, b), axis=0)
    posterior = np.exp(score - score.max())
    random = np.random.Generator(np.random.PCG64(_SEED))
    chosen = random.choice(len(score), size=number, p=posterior / posterior.sum())
    return np.asarray(random.beta(more_a[:, chosen].T, more_b[:, chosen].T))


def _log_odds(
    strata: Moments, counts: FloatArray, sums: FloatArray, bounds: tuple[float, float]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the log-odds of the overall mean (…, 1), how far strata (H,) are from it, and pseudo-labels."""
    share = (strata.proxy_means - bounds[0]) / (bounds[1] - bounds[0])
    if strata.has_proxy and strata.scaled:
        middle, distance = shrunk_log_odds(strata.weights, share)
        centre = np.array([middle])
    else:
        labelled = (counts > 0) @ strata.weights
        rates = (sums / np.maximum(counts, 1.0)) @ strata.weights
        observed_rates = np.where(labelled > 0, rates / np.where(labelled > 0, labelled, 1.0), 0.5)
        n = counts.sum(axis=-1)
        centre = logit((n * np.clip(observed_rates, 0.0, 1.0) + 1.0) / (n + 2.0))[..., None]
        distance = np.zeros(len(share))
        if strata.has_proxy:  # that only orders: normal quantiles of the middle rank of each stratum's units
            order = np.argsort(share, kind="stable")
            weights = strata.weights
            distance[order] = np.cumsum(weights[order]) - 0.5 * weights[order]
            distance = ndtri(np.clip(distance, _EDGE, 1.0 - _EDGE))
    return centre, distance, np.array(PSEUDO_LABELS if distance.any() else UNKNOWN_PSEUDO_LABELS)
