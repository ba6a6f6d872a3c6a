"""Smoothed standard deviations of strata from few labels and a recalibrated proxy.

If all five labels of a stratum are correct, S_h is not necessarily 0. The mean outcome of a stratum therefore
has a posterior distribution with three parameters: an offset and a slope on the log-odds of the mean proxies,
which recalibrate the proxy, and a number of pseudo-labels, which determines how closely the strata follow the
recalibrated proxy. The parameters have a small grid of values, so that the result needs no iterations and is
reproducible. Counts and sums may have leading axes of replicates.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, gammaln, logit, ndtri

from stratal.arrays import FloatArray, unit_scale
from stratal.errors import InputError
from stratal.strata.arguments import one_per_stratum, whole_numbers_per_stratum
from stratal.strata.strata import MEAN_SHRINKAGE, Moments, moments_of_sizes, shrunk_log_odds

# κ − 1 of a normal outcome (κ: kurtosis, see `unbounded_deviations`); smaller estimates are raised to it.
_NORMAL_KURTOSIS_LESS_ONE = 2.0

# τ²: variance of log S_h² around its trend over the strata (a relative standard deviation of 38%). The trend
# then counts for fourteen labels of a normal outcome. Values from 1/2 to 1/16 were tried: larger ones lose
# more if strata are similar, and smaller ones gain nothing more.
_VARIANCE_AROUND_TREND = 1.0 / 7.0

# Prior precision of the slope: the last stratum's variance lies within e^(±1.4) = 4 times the first's, two
# times in three.
_SLOPE_PRECISION = 2.0

# Largest slope: S_h grows twentyfold from the first stratum to the last. A step changes the slope by at most
# two thirds of it, which prevents divergence.
_MAX_SLOPE = 3.0
_MAX_SLOPE_STEP = 2.0

# Steps of scoring that fit the trend; a fourth changes no allocation.
_TREND_STEPS = 3


def unbounded_deviations(
    counts: FloatArray,
    squared_deviations: FloatArray,
    relative_variances: FloatArray,
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
    squared_deviations : float (…, H)
        Σ (z − z̄_h)² over each stratum's labels.
    relative_variances : float (H,)
        v_h: variances of the strata that the proxy implies, up to a factor; ones if it does not predict them.
    means : float (H,), optional
        Mean proxies. Only their order counts: variances may increase or decrease along it.
    kurtoses : float (…, H), optional
        n_h Σ (z − z̄_h)⁴ / (Σ (z − z̄_h)²)² of each stratum's labels; a normal outcome's if left out.
    weights : float (H,), optional
        W_h; equal if left out.

    Notes
    -----
    log S_h² = a + log v_h + b t_h + e_h, with t_h the stratum's position in the order from −1 to 1. The
    first three terms are the trend: a is from the labels, and b is fitted by scoring with a normal prior. e_h
    is shrunk with a weight of (κ − 1)/τ² labels. The kurtosis κ is pooled over strata, because a stratum
    whose labels include no large value has a small kurtosis of its own. It is estimated around the trend's
    variances, then around the smoothed ones.
    """
    if weights is None:
        weights = np.full(len(relative_variances), 1.0 / len(relative_variances))
    degrees_of_freedom = np.maximum(counts - 1.0, 0.0)
    # Variances are shrunk to their mean with the same weight as mean proxies. Only their ratios matter: their
    # scale is fitted.
    mean_variance = float(weights @ relative_variances)
    expected_variances = relative_variances + MEAN_SHRINKAGE * (mean_variance - relative_variances)
    scale = _ratio(squared_deviations.sum(axis=-1), degrees_of_freedom @ expected_variances)
    scale = np.where(scale > 0, scale, 1.0)  # equal labels do not determine the scale
    expected_variances = scale[..., None] * expected_variances
    positions = _positions(means, len(relative_variances))
    slope = np.zeros(scale.shape)
    trend = expected_variances
    for _ in range(_TREND_STEPS):
        noise = _kurtosis_less_one(degrees_of_freedom, squared_deviations, trend, kurtoses)
        excess = (squared_deviations / trend - degrees_of_freedom) @ positions
        score = excess / noise - _SLOPE_PRECISION * slope
        information = degrees_of_freedom @ positions**2 / noise + _SLOPE_PRECISION
        slope = slope + np.clip(score / information, -_MAX_SLOPE_STEP, _MAX_SLOPE_STEP)
        slope = np.clip(slope, -_MAX_SLOPE, _MAX_SLOPE)
        trend = expected_variances * np.exp(slope[..., None] * positions)
        rescaling = _ratio(
            (degrees_of_freedom * expected_variances).sum(axis=-1), (degrees_of_freedom * trend).sum(axis=-1)
        )
        trend = np.where(rescaling > 0, rescaling, 1.0)[..., None] * trend
    variances = trend
    # κ is estimated again around the smoothed variances: around the trend, a deviating stratum increases it.
    for _ in range(2):
        noise = _kurtosis_less_one(degrees_of_freedom, squared_deviations, variances, kurtoses)
        trend_labels = noise[..., None] / _VARIANCE_AROUND_TREND
        variances = (squared_deviations + trend_labels * trend) / (degrees_of_freedom + trend_labels)
    return np.asarray(np.sqrt(variances))


def _kurtosis_less_one(
    degrees_of_freedom: FloatArray,
    squared_deviations: FloatArray,
    variances: FloatArray,
    kurtoses: FloatArray | None,
) -> FloatArray:
    """Return κ − 1 (…,): n_h times the squared relative error of a stratum's sample variance."""
    if kurtoses is None:
        return np.full(squared_deviations.shape[:-1], _NORMAL_KURTOSIS_LESS_ONE)
    n_labels = np.maximum(degrees_of_freedom + 1.0, 1.0)
    fourth_powers = np.sum(kurtoses * (squared_deviations / variances) ** 2 / n_labels, axis=-1)
    pooled_kurtosis = _ratio(fourth_powers, degrees_of_freedom.sum(axis=-1))
    return np.asarray(np.maximum(pooled_kurtosis - 1.0, _NORMAL_KURTOSIS_LESS_ONE))


def _ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Return numerator / denominator, 0 where the denominator is 0."""
    is_positive = denominator > 0
    return np.asarray(np.where(is_positive, numerator / np.where(is_positive, denominator, 1.0), 0.0))


def _positions(means: FloatArray | None, n_strata: int) -> FloatArray:
    """Return each stratum's position in the order of the mean proxies, −1 to 1; 0 if there is no order."""
    if means is None or n_strata == 1:
        return np.zeros(n_strata)
    # Equal means have the mean of their ranks.
    lowest_rank = np.searchsorted(np.sort(means), means, "left")
    highest_rank = np.searchsorted(np.sort(means), means, "right") - 1
    return np.asarray((lowest_rank + highest_rank) / (n_strata - 1) - 1.0)


# Offsets of the log-odds, with a standard normal prior.
PRIOR_OFFSETS = np.linspace(-3.0, 3.0, 13)

# Slopes on the log-odds, with equal prior probabilities.
PRIOR_SLOPES = np.array([0.0, 0.125, 0.25, 0.4, 0.6, 0.8, 1.0, 1.25, 1.6, 2.0, 2.5])

# Numbers of pseudo-labels in the prior of each stratum, with equal prior probabilities.
PSEUDO_LABELS = (16.0, 64.0, 256.0)

# The same without a proxy that predicts differences between strata.
PSEUDO_LABELS_WITHOUT_PROXY = (2.0, 4.0, 16.0, 64.0)

# Rates are kept this far from 0 and 1, so that logits and normal quantiles are finite.
_MIN_RATE = 1e-9

# A prior of a variance ratio counts as much as labels whose sum of r(1 − r) is 2. The prior of a stratum is
# the pooled ratio, whose prior is that of the proxy.
_POOLED_RATIO_WEIGHT = 2.0

# Smallest prior variance ratio.
_MIN_VARIANCE_RATIO = 0.05

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
    """Return smoothed S_h from the current labels and the proxy. They are positive even with few labels.

    Parameters
    ----------
    strata : Strata, or int (H,)
        Strata with the moments of the proxy, or only the sizes N_h without a proxy. If the proxy is not on
        the outcome's scale, only the order of its means is used.
    counts : int (H,) or (…, H)
        Labels in each stratum; zeros are allowed.
    sums : float (…, H)
        Sum of the outcome over these labels.
    squares : float (…, H), optional
        Sum of the squared outcome. It is not needed if all outcomes are equal to one of the bounds.
    kurtoses : float (…, H), optional
        n_h Σ (z − z̄_h)⁴ / (Σ (z − z̄_h)²)² of the labels of each stratum, used for outcomes without bounds.
        Default: the kurtosis of a normal outcome.
    bounds : (float, float)
        Bounds of the outcome; infinite if it has none (`squares` is then required).

    Returns
    -------
    float (…, H)
        S_h in the outcome's units.

    Raises
    ------
    InputError
        If lengths differ, if a count is negative, and if `squares` is missing for an outcome without bounds.

    Notes
    -----
    Bounded outcomes on the 0–1 scale: the means are r_h ~ Beta(k μ_h, k (1 − μ_h)) with k pseudo-labels and
    logit μ_h = c + α + β (logit m_h − c), where m_h is the mean proxy and c the log-odds of the overall mean
    proxy. The variance of a binary outcome is the posterior mean of r(1 − r). For other outcomes it is
    multiplied by the ratio of the variance of the labels to that of a binary outcome, smoothed over strata.
    Unbounded outcomes: see `unbounded_deviations`.

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
    counts, sums, second_moments = _checked_sums(strata, counts, sums, squares, bounds)
    # Σ (z − z̄_h)²
    squared_deviations = np.maximum(second_moments - sums**2 / np.maximum(counts, 1.0), 0.0)
    # Variances that the proxy implies: within bins and between them.
    plug_in_variances = strata.plug_in_variances * strata.scaled
    width = bounds[1] - bounds[0]
    if not np.isfinite(width):
        if kurtoses is not None:
            kurtoses = one_per_stratum("kurtoses", kurtoses, strata.n_strata, max_axes=2)
        relative_variances = plug_in_variances
        if not plug_in_variances.any():
            relative_variances = np.ones(strata.n_strata)
        return unbounded_deviations(
            counts,
            squared_deviations,
            relative_variances,
            means=strata.proxy_means if strata.has_proxy else None,
            kurtoses=kurtoses,
            weights=strata.weights,
        )
    centre, distance, pseudo_labels = _log_odds(strata, counts, sums, bounds)
    cases = np.stack(np.broadcast_arrays(centre, distance, counts, sums), axis=-1)
    binary_variances = _posterior_variances(cases.reshape(-1, *cases.shape[-2:]), pseudo_labels)
    binary_variances = binary_variances.reshape(cases.shape[:-1])
    if squares is None:
        return np.asarray(width * np.sqrt(binary_variances))
    max_squared_deviations = np.maximum(sums - sums**2 / np.maximum(counts, 1.0), 0.0)
    prior_ratio = _prior_variance_ratio(strata, bounds)
    ratios = _variance_ratios(squared_deviations, max_squared_deviations, prior_ratio)
    return np.asarray(width * np.sqrt(binary_variances * ratios))


def _prior_variance_ratio(strata: Moments, bounds: tuple[float, float]) -> float:
    """Return the ratio of the plug-in variance to that of a binary outcome; 1 if the proxy implies none."""
    if not (strata.scaled and strata.has_proxy):
        return 1.0
    width = bounds[1] - bounds[0]
    rates = (strata.proxy_means - bounds[0]) / width
    # A proxy outside the bounds would have a negative variance.
    mean_max_variance = width**2 * float(strata.weights @ np.clip(rates * (1 - rates), 0.0, 0.25))
    ratio = strata.weights @ strata.plug_in_variances / max(mean_max_variance, _MIN_RATE)
    return float(np.clip(ratio, _MIN_VARIANCE_RATIO, 1.0))


def _variance_ratios(
    squared_deviations: FloatArray, max_squared_deviations: FloatArray, prior_ratio: float
) -> FloatArray:
    """Return the ratios (…, H) of the variance to r(1 − r): 1 for binary outcomes, smaller for others.

    The deviations (…, H) are those of the labels of each stratum, and of binary outcomes with the same means.
    The ratio of a stratum is shrunk to that of all strata, which is shrunk to the prior ratio.
    """
    pooled_numerator = squared_deviations.sum(axis=-1, keepdims=True) + _POOLED_RATIO_WEIGHT * prior_ratio
    pooled_denominator = max_squared_deviations.sum(axis=-1, keepdims=True) + _POOLED_RATIO_WEIGHT
    pooled_ratio = pooled_numerator / pooled_denominator
    numerators = squared_deviations + _POOLED_RATIO_WEIGHT * pooled_ratio
    ratios = numerators / (max_squared_deviations + _POOLED_RATIO_WEIGHT)
    return np.asarray(np.minimum(ratios, 1.0))


def _checked_sums(
    strata: Moments, counts: object, sums: object, squares: object, bounds: tuple[float, float]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return counts, sums and sums of squares, each (…, H), on the 0–1 scale if there are bounds."""
    n_strata = strata.n_strata
    low, high = bounds
    n_labels = one_per_stratum("counts", counts, n_strata, max_axes=2)
    totals = one_per_stratum("sums", sums, n_strata, -np.inf, max_axes=2)
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
            allowed="sums that are possible for these counts and bounds",
        )
    rescaled = (totals - low * n_labels) / (high - low)
    rescaled_squares = rescaled
    if squares is not None:
        sums_of_squares = one_per_stratum("squares", squares, n_strata, max_axes=2)
        rescaled_squares = (sums_of_squares - 2 * low * totals + low**2 * n_labels) / (high - low) ** 2
    return np.broadcast_to(n_labels, rescaled.shape), rescaled, rescaled_squares


def _posterior_variances(cases: FloatArray, pseudo_labels: FloatArray) -> FloatArray:
    """Return the posterior mean of r(1 − r) (R, H) of cases (R, H, 4), for these numbers of pseudo-labels.

    A case has the centre and the distance of `_log_odds`, n_h, and the number of successes. The likelihood of
    a stratum depends only on its own labels, so that it is computed once for each distinct case.
    """
    distinct_cases = cases.reshape(-1, 4)
    case_of_row = np.arange(len(distinct_cases))
    prior_of_case = case_of_row
    remove_duplicates = len(distinct_cases) > _MAX_CASES_WITH_DUPLICATES
    if remove_duplicates:
        distinct_cases, case_of_row = np.unique(distinct_cases, axis=0, return_inverse=True)
    if len(distinct_cases) > _MAX_CASES_AT_ONCE and len(cases) > 1:
        halves = np.array_split(cases, 2)
        return np.concatenate([_posterior_variances(half, pseudo_labels) for half in halves])
    distinct_priors = distinct_cases[:, :2]
    if remove_duplicates:
        distinct_priors, prior_of_case = np.unique(distinct_priors, axis=0, return_inverse=True)
    a, b, prior = _beta_priors(distinct_priors, pseudo_labels)
    prior_of_case = prior_of_case.ravel()
    posterior_a = a[prior_of_case] + distinct_cases[:, 3:]
    posterior_b = b[prior_of_case] + np.maximum(distinct_cases[:, 2:3] - distinct_cases[:, 3:], 0.0)
    total = posterior_a + posterior_b
    log_likelihoods = _log_beta(posterior_a, posterior_b) - _log_beta(a, b)[prior_of_case]
    variances = posterior_a * posterior_b / (total * (total + 1.0))
    cases_of_strata = case_of_row.reshape(cases.shape[:2]).T
    log_posterior = prior + sum(log_likelihoods[stratum_cases] for stratum_cases in cases_of_strata)
    posterior = np.exp(log_posterior - log_posterior.max(axis=1, keepdims=True))
    posterior /= posterior.sum(axis=1, keepdims=True)
    posterior_means = [
        np.einsum("rg,rg->r", posterior, variances[stratum_cases]) for stratum_cases in cases_of_strata
    ]
    return np.stack(posterior_means, axis=1)


def _log_beta(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return log B(a, b), in a third of the time of SciPy's function, but with less precise last digits."""
    return np.asarray(gammaln(a) + gammaln(b) - gammaln(a + b))


def _beta_priors(
    centres_and_distances: FloatArray, pseudo_labels: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the beta priors a and b (L, G), and the log prior of the grid (G,).

    The grid has all combinations of pseudo-labels, offsets and slopes. A row of the beta priors belongs to a
    stratum with this centre and distance (L, 2).
    """
    offset, slope = (grid.ravel() for grid in np.meshgrid(PRIOR_OFFSETS, PRIOR_SLOPES, indexing="ij"))
    log_odds = centres_and_distances[:, :1] + offset + slope * centres_and_distances[:, 1:]
    rate = np.clip(expit(log_odds), _MIN_RATE, 1.0 - _MIN_RATE)
    a = (pseudo_labels[:, None] * rate[:, None, :]).reshape(len(centres_and_distances), -1)
    b = (pseudo_labels[:, None] * (1.0 - rate)[:, None, :]).reshape(len(centres_and_distances), -1)
    return a, b, np.tile(-0.5 * offset**2, len(pseudo_labels))


def posterior_rates(
    strata: Moments,
    counts: object,
    sums: object,
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    n_draws: int = 2_000,
) -> FloatArray:
    """Return draws from the posterior distribution of the mean outcomes of the strata.

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
        Mean outcomes on the 0–1 scale. Calls with equal arguments return equal numbers.
    """
    counts, sums, _ = _checked_sums(strata, counts, sums, None, bounds)
    centre, distance, pseudo_labels = _log_odds(strata, counts, sums, bounds)
    a, b, prior = _beta_priors(np.stack(np.broadcast_arrays(centre, distance), axis=-1), pseudo_labels)
    posterior_a = a + sums[:, None]
    posterior_b = b + np.maximum(counts - sums, 0.0)[:, None]
    log_likelihoods = _log_beta(posterior_a, posterior_b) - _log_beta(a, b)
    log_posterior = prior + np.sum(log_likelihoods, axis=0)
    posterior = np.exp(log_posterior - log_posterior.max())
    rng = np.random.Generator(np.random.PCG64(_SEED))
    grid_points = rng.choice(len(posterior), size=n_draws, p=posterior / posterior.sum())
    return np.asarray(rng.beta(posterior_a[:, grid_points].T, posterior_b[:, grid_points].T))


def _log_odds(
    strata: Moments, counts: FloatArray, sums: FloatArray, bounds: tuple[float, float]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the log-odds of the overall mean (…, 1), distances of the strata (H,), and pseudo-labels.

    A distance is the difference between the log-odds of a stratum's mean proxy and those of the overall mean.
    Without a proxy, the overall mean is that of the labels, and the distances are 0. For a proxy that is not
    on the outcome's scale, the distances are normal quantiles of its ranks.
    """
    unit_means = unit_scale(strata.proxy_means, bounds)
    if strata.has_proxy and strata.scaled:
        overall_log_odds, distance = shrunk_log_odds(strata.weights, unit_means)
        centre = np.array([overall_log_odds])
    else:
        labelled_share = (counts > 0) @ strata.weights
        weighted_sum = (sums / np.maximum(counts, 1.0)) @ strata.weights
        has_labels = labelled_share > 0
        mean_outcome = np.where(has_labels, weighted_sum / np.where(has_labels, labelled_share, 1.0), 0.5)
        n = counts.sum(axis=-1)
        # One success and one failure more keep the log-odds finite.
        centre = logit((n * np.clip(mean_outcome, 0.0, 1.0) + 1.0) / (n + 2.0))[..., None]
        distance = np.zeros(len(unit_means))
        if strata.has_proxy:
            order = np.argsort(unit_means, kind="stable")
            weights = strata.weights
            relative_ranks = np.empty(len(unit_means))
            relative_ranks[order] = np.cumsum(weights[order]) - 0.5 * weights[order]
            distance = ndtri(np.clip(relative_ranks, _MIN_RATE, 1.0 - _MIN_RATE))
    pseudo_labels = PSEUDO_LABELS if distance.any() else PSEUDO_LABELS_WITHOUT_PROXY
    return centre, distance, np.array(pseudo_labels)
