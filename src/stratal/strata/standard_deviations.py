"""Standard deviations per stratum from a few labels: the proxy recalibrated on them, then smoothed.

A stratum whose five labels are all correct has not shown that S_h = 0. The stratum's rate is therefore taken
from a posterior with three things unknown: an offset and a slope on the log-odds of the mean proxies, which
correct the proxy, and a number of pseudo-labels, which determines how closely the strata follow that line.
All three live on a small grid, so that nothing is iterated and equal labels always give equal numbers.
Counts and sums may have leading axes for replicates.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, gammaln, logit, ndtri

from stratal.arrays import FloatArray, unit_scale
from stratal.errors import InputError
from stratal.strata.allocation import one_per_stratum, whole_numbers_per_stratum
from stratal.strata.strata import MEAN_SHRINKAGE, Moments, moments_of_sizes, shrunk_log_odds

# κ − 1 of a normal outcome (κ: kurtosis, see `unbounded_deviations`); smaller estimates are raised to it.
_NORMAL_EXCESS = 2.0

# τ²: variance of log S_h² around its trend over the strata (a relative standard deviation of 38%). The trend
# then counts for fourteen labels of a normal outcome. Values from 1/2 to 1/16 were tried: larger ones lose
# more if strata are similar, and smaller ones gain nothing more.
_VARIANCE_AROUND_TREND = 1.0 / 7.0

# Prior precision of the slope: the last stratum's variance lies within e^(±1.4) = 4 times the first's, two
# times in three.
_SLOPE_PRECISION = 2.0

# Largest slope: S_h grows twentyfold from the first stratum to the last.
_MAX_SLOPE = 3.0

# Steps of scoring that fit the trend; a fourth changes no allocation.
_TREND_STEPS = 3


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
        Variances of the strata by the proxy, up to a factor; ones if the proxy does not predict them.
    means : float (H,), optional
        Mean proxies. Only their order counts: variances may increase or decrease along it.
    kurtoses : float (…, H), optional
        n_h Σ (z − z̄_h)⁴ / (Σ (z − z̄_h)²)² of each stratum's labels; a normal outcome's if left out.
    weights : float (H,), optional
        W_h; equal if left out.

    Notes
    -----
    log S_h² = a + log shape_h + b t_h + e_h, with t_h the stratum's position in the order from −1 to 1. The
    first three terms are the trend: a is from the labels, and b is fitted by scoring with a normal prior. e_h
    is shrunk with a weight of (κ − 1)/τ² labels. The kurtosis κ is pooled over strata, because a stratum
    whose labels include no large value has a small kurtosis of its own. It is estimated around the trend's
    variances, then around the smoothed ones.
    """
    if weights is None:
        weights = np.full(len(shape), 1.0 / len(shape))
    degrees_of_freedom = np.maximum(counts - 1.0, 0.0)
    expected_variances = shape + MEAN_SHRINKAGE * (float(weights @ shape) - shape)
    scale = _ratio(squares.sum(axis=-1), degrees_of_freedom @ expected_variances)
    scale = np.where(scale > 0, scale, 1.0)  # equal labels do not determine the scale
    expected_variances = scale[..., None] * expected_variances
    positions = _positions(means, len(shape))
    slope = np.zeros(scale.shape)
    trend = expected_variances
    for _ in range(_TREND_STEPS):
        noise = _noise(degrees_of_freedom, squares, trend, kurtoses)
        score = (squares / trend - degrees_of_freedom) @ positions / noise - _SLOPE_PRECISION * slope
        slope = slope + np.clip(
            score / (degrees_of_freedom @ positions**2 / noise + _SLOPE_PRECISION), -2.0, 2.0
        )
        slope = np.clip(slope, -_MAX_SLOPE, _MAX_SLOPE)
        trend = expected_variances * np.exp(slope[..., None] * positions)
        rescaling = _ratio(
            (degrees_of_freedom * expected_variances).sum(axis=-1), (degrees_of_freedom * trend).sum(axis=-1)
        )
        trend = np.where(rescaling > 0, rescaling, 1.0)[..., None] * trend
    variances = trend
    # κ is estimated again around the smoothed variances: around the trend, a deviating stratum increases it.
    for _ in range(2):
        weight = _noise(degrees_of_freedom, squares, variances, kurtoses)[..., None] / _VARIANCE_AROUND_TREND
        variances = (squares + weight * trend) / (degrees_of_freedom + weight)
    return np.asarray(np.sqrt(variances))


def _noise(
    degrees_of_freedom: FloatArray, squares: FloatArray, variances: FloatArray, kurtoses: FloatArray | None
) -> FloatArray:
    """Return κ − 1 (…,): n_h times the squared relative error of a stratum's sample variance."""
    if kurtoses is None:
        return np.full(squares.shape[:-1], _NORMAL_EXCESS)
    labels = np.maximum(degrees_of_freedom + 1.0, 1.0)
    fourths = np.sum(kurtoses * (squares / variances) ** 2 / labels, axis=-1)
    return np.asarray(np.maximum(_ratio(fourths, degrees_of_freedom.sum(axis=-1)) - 1.0, _NORMAL_EXCESS))


def _ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Return numerator / denominator, 0 where the denominator is 0."""
    is_positive = denominator > 0
    return np.asarray(np.where(is_positive, numerator / np.where(is_positive, denominator, 1.0), 0.0))


def _positions(means: FloatArray | None, n_strata: int) -> FloatArray:
    """Return each stratum's position in the order of the mean proxies, −1 to 1; 0 if there is no order."""
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

# Largest number of cases that are computed at once. A case is a combination of centre, distance, labels and
# successes of a stratum.
_MAX_CASES_AT_ONCE = 4096

# Up to this many cases, duplicates are not removed, because that takes as long as computing them.
_MAX_CASES_WITH_DUPLICATES = 100


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
        strata = moments_of_sizes(whole_numbers_per_stratum("strata", strata))
    counts, sums, second = _checked_sums(strata, counts, sums, squares, bounds)
    within = np.maximum(second - sums**2 / np.maximum(counts, 1.0), 0.0)  # Σ (z − z̄_h)²
    plug_in_variances = strata.plug_in_variances * strata.scaled
    width = bounds[1] - bounds[0]
    if not np.isfinite(width):
        if kurtoses is not None:
            kurtoses = one_per_stratum("kurtoses", kurtoses, strata.n_strata, max_axes=2)
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
        # A proxy outside the bounds would have a negative variance.
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


def _checked_sums(
    strata: Moments, counts: object, sums: object, squares: object, bounds: tuple[float, float]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return labels, sums and sums of squares, each (…, H), on the scale of 0 to 1 if there are bounds."""
    h, (low, high) = strata.n_strata, bounds
    n_labels = one_per_stratum("counts", counts, h, max_axes=2)
    totals = one_per_stratum("sums", sums, h, -np.inf, max_axes=2)
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
        raw = one_per_stratum("squares", squares, h, max_axes=2)
        second = (raw - 2 * low * totals + low**2 * n_labels) / (high - low) ** 2
    return np.broadcast_to(n_labels, rescaled.shape), rescaled, second


def _posterior_variances(cases: FloatArray, strengths: FloatArray) -> FloatArray:
    """Return the posterior mean of r(1 − r) (R, H) of cases (R, H, 4): centre, distance, n_h and successes.

    The likelihood of a stratum depends only on its own labels, so it is computed once for each distinct case.
    """
    distinct_cases = cases.reshape(-1, 4)
    case_of_row = np.arange(len(distinct_cases))
    prior_of_case = case_of_row
    remove_duplicates = len(distinct_cases) > _MAX_CASES_WITH_DUPLICATES
    if remove_duplicates:
        distinct_cases, case_of_row = np.unique(distinct_cases, axis=0, return_inverse=True)
    if len(distinct_cases) > _MAX_CASES_AT_ONCE and len(cases) > 1:
        halves = np.array_split(cases, 2)
        return np.concatenate([_posterior_variances(half, strengths) for half in halves])
    distinct_priors = distinct_cases[:, :2]
    if remove_duplicates:
        distinct_priors, prior_of_case = np.unique(distinct_priors, axis=0, return_inverse=True)
    a, b, prior = _beta_priors(distinct_priors, strengths)
    prior_of_case = prior_of_case.ravel()
    more_a = a[prior_of_case] + distinct_cases[:, 3:]
    more_b = b[prior_of_case] + np.maximum(distinct_cases[:, 2:3] - distinct_cases[:, 3:], 0.0)
    total = more_a + more_b
    scores = _log_beta(more_a, more_b) - _log_beta(a, b)[prior_of_case]
    variances = more_a * more_b / (total * (total + 1.0))
    columns = case_of_row.reshape(cases.shape[:2]).T
    score = prior + sum(scores[column] for column in columns)
    posterior = np.exp(score - score.max(axis=1, keepdims=True))
    posterior /= posterior.sum(axis=1, keepdims=True)
    return np.stack([np.einsum("rg,rg->r", posterior, variances[column]) for column in columns], axis=1)


def _log_beta(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return log B(a, b): a third of the time of SciPy's, whose last digits weights of a grid do not need."""
    return np.asarray(gammaln(a) + gammaln(b) - gammaln(a + b))


def _beta_priors(
    centres_and_distances: FloatArray, strengths: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return beta priors (L, G) of strata with these centres and distances (L, 2), and the log prior (G,)."""
    offset, slope = (grid.ravel() for grid in np.meshgrid(PRIOR_OFFSETS, PRIOR_SLOPES, indexing="ij"))
    rate = np.clip(
        expit(centres_and_distances[:, :1] + offset + slope * centres_and_distances[:, 1:]),
        _EDGE,
        1.0 - _EDGE,
    )
    a = (strengths[:, None] * rate[:, None, :]).reshape(len(centres_and_distances), -1)
    b = (strengths[:, None] * (1.0 - rate)[:, None, :]).reshape(len(centres_and_distances), -1)
    return a, b, np.tile(-0.5 * offset**2, len(strengths))


def posterior_rates(
    strata: Moments,
    counts: object,
    sums: object,
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    n_draws: int = 2_000,
) -> FloatArray:
    """Return draws from the posterior of the stratum rates, from which S_h is computed.

    Parameters
    ----------
    strata : Moments
    counts : int (H,)
        Labels in each stratum.
    sums : float (H,)
        Sum of the outcome over these labels.
    bounds
        As in `smoothed_standard_deviations`.
    n_draws : int
        Number of draws.

    Returns
    -------
    float (n_draws, H)
        On the scale of 0 to 1; the same numbers in each call.
    """
    counts, sums, _ = _checked_sums(strata, counts, sums, None, bounds)
    centre, distance, strengths = _log_odds(strata, counts, sums, bounds)
    a, b, prior = _beta_priors(np.stack(np.broadcast_arrays(centre, distance), axis=-1), strengths)
    more_a = a + sums[:, None]
    more_b = b + np.maximum(counts - sums, 0.0)[:, None]
    score = prior + np.sum(_log_beta(more_a, more_b) - _log_beta(a, b), axis=0)
    posterior = np.exp(score - score.max())
    random = np.random.Generator(np.random.PCG64(_SEED))
    chosen = random.choice(len(score), size=n_draws, p=posterior / posterior.sum())
    return np.asarray(random.beta(more_a[:, chosen].T, more_b[:, chosen].T))


def _log_odds(
    strata: Moments, counts: FloatArray, sums: FloatArray, bounds: tuple[float, float]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the log-odds of the overall mean (…, 1), how far strata (H,) are from it, and pseudo-labels."""
    share = unit_scale(strata.proxy_means, bounds)
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
