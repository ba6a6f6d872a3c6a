"""Means of domains: the whole design is kept, and the outcome is zeroed outside.

The mean of a domain is the ratio of two means over the whole population, of d·z and of d, since the number
of its units in the sample is chance too (Särndal, Swensson & Wretman 1992, section 10.3; Lohr, section 4.3).
"""

from __future__ import annotations

import numpy as np

from stratal.arrays import BoolArray, FloatArray
from stratal.estimation.linearisation import Linearised, ratio_of_means
from stratal.estimation.quantity import Parts, Quantity
from stratal.estimation.smoothing import smoothed
from stratal.weighting import Weighting


def domain_mean(
    z: FloatArray,
    member: BoolArray,
    weighting: Weighting,
    *,
    bounds: tuple[float, float] | None = None,
    target: str = "population",
) -> tuple[Quantity, Linearised]:
    """Return the mean of z over the units of one domain.

    Parameters
    ----------
    z : float (n,)
    member : bool (n,)
    weighting : Weighting
        Of all labelled units.
    bounds : (float, float), optional
        Of z; the interval is then Clopper–Pearson's on the effective number of trials, which no agreement
        of a few labels can make infinite. Without bounds it is Student's t with at most one degree of
        freedom less than the domain has labels.
    target : {"population", "superpopulation"}

    Examples
    --------
    >>> from stratal.weighting import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(4, dtype=int), sizes=np.array([40]))
    >>> member = np.array([True, True, True, False])
    >>> quantity, _ = domain_mean(np.array([1.0, 1.0, 1.0, 0.0]), member, weighting, bounds=(0, 1))
    >>> quantity.value, quantity.n, round(quantity.confidence_interval().low, 2)
    (1.0, 3, 0.33)
    """
    inside = member.astype(np.float64)
    n = int(member.sum())
    result = ratio_of_means(inside * z, inside, weighting, target)
    if n == 0:
        nothing = Quantity.undefined(0, bounds, "no labelled unit")
        return nothing, result
    lost = n / (n - 1) if n > 1 else np.inf
    variance = result.design_variance
    if bounds is None:
        wider = variance * lost + result.population_variance if variance > 0 else result.variance
        freedom = max(min(result.degrees_of_freedom, n - 1.0), 1.0)
        error = float(np.sqrt(wider)) if n > 1 else np.nan
        trials = None
    else:
        binary = bool(np.all(np.isin(z[member], bounds)))
        trials = _trials(z, inside, weighting, bounds, variance if binary else variance * lost)
        error, freedom = None, max(min(result.degrees_of_freedom, float(n)), 1.0)
        if target == "superpopulation" and np.isfinite(trials):
            trials = min(trials, trials / (1.0 + result.population_variance / max(variance, 1e-300)))
    known = variance if np.isfinite(variance) else np.nan
    quantity = Quantity(
        value=float(result.value if bounds is None else np.clip(result.value, *bounds)),
        standard_error=float(np.sqrt(max(known + result.population_variance, 0.0))),
        degrees_of_freedom=freedom,
        n=n,
        bounds=bounds,
        trials=trials,
        interval_error=error,
        labels=len(z),
    )
    return quantity, result


def domain_difference(
    first: tuple[Quantity, Linearised], second: tuple[Quantity, Linearised], weighting: Weighting
) -> Quantity:
    """Return the difference of two domains' means, its interval made of theirs.

    Examples
    --------
    >>> from stratal.weighting import StratifiedWeighting
    >>> weighting = StratifiedWeighting(stratum=np.zeros(6, dtype=int), sizes=np.array([60]))
    >>> z, a = np.array([1.0, 1, 0, 0, 1, 0]), np.array([True, True, True, False, False, False])
    >>> means = [domain_mean(z, member, weighting, bounds=(0, 1)) for member in (a, ~a)]
    >>> round(domain_difference(*means, weighting).value, 3)
    0.333
    """
    quantities = (first[0], second[0])
    defined = all(quantity.defined for quantity in quantities)
    bounds = first[0].bounds
    span = None if bounds is None else (bounds[0] - bounds[1], bounds[1] - bounds[0])
    n = sum(quantity.n for quantity in quantities)
    if not defined:
        return Quantity.undefined(n, span)
    joint = weighting.covariance(np.column_stack([first[1].variable, second[1].variable]))
    extra = sum(result.population_variance for _, result in (first, second))
    variance = float(joint[0, 0] + joint[1, 1] - 2.0 * joint[0, 1]) + extra
    spread = float(np.sqrt(joint[0, 0]) * np.sqrt(joint[1, 1]))
    shared = float(np.clip(joint[0, 1] / spread, -1.0, 1.0)) if spread > 0 else 0.0
    return Quantity(
        value=quantities[0].value - quantities[1].value,
        standard_error=float(np.sqrt(max(variance, 0.0))),
        degrees_of_freedom=min(quantity.degrees_of_freedom for quantity in quantities),
        n=n,
        bounds=span,
        parts=Parts(
            terms=quantities,
            coefficients=np.array([1.0, -1.0]),
            correlation=np.array([[1.0, shared], [shared, 1.0]]),
        ),
    )


def _trials(
    z: FloatArray, inside: FloatArray, weighting: Weighting, bounds: tuple[float, float], variance: float
) -> float:
    """Return the number of independent trials as informative as the domain's labels."""
    whole = weighting.whole_strata(inside > 0)
    if whole is not None:
        member = inside > 0
        z, inside, weighting = z[member], np.ones(int(member.sum())), whole
        variance = variance if np.isfinite(variance) else 0.0
    weights = weighting.weights * inside
    label = float(np.sum(weights**2) / np.sum(weights))
    smoothing = smoothed(weighting, np.full(2, label / 2), inside)
    unit = (z - bounds[0]) / (bounds[1] - bounds[0])
    units, pseudo = smoothing.unit_weights * inside, smoothing.pseudo_weights
    below = float(units.sum() + pseudo.sum())
    value = float(units @ unit + pseudo @ np.array([0.0, 1.0])) / below
    hidden = smoothing.variance(inside * (unit - value) / below, (np.array([0.0, 1.0]) - value) / below)
    # Borrowed labels must not make the domain look larger than it was found to be.
    hidden *= max(below / float(np.sum(weights)), 1.0) ** 2
    own = variance / (bounds[1] - bounds[0]) ** 2
    largest = max(hidden, own if np.isfinite(own) else 0.0)
    return value * (1.0 - value) / largest if largest > 0 else np.inf
