"""Inclusion probabilities proportional to size that add up to the budget, none above one: a closed form.

π_i = min(1, c x_i) with Σ π_i = n. With the sizes in decreasing order and S_k the sum of the k largest, unit
k + 1 stays below one when (n − k) x_(k+1) ≤ T − S_k; the smallest such k counts the certainty units, and c =
(n − k) / (T − S_k) (Särndal, Swensson & Wretman 1992, 3.6.2, without its iteration). At most n sizes and the
total are needed, so that a table answers with two small queries.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stratal.arrays import BoolArray, FloatArray, finite_vector
from stratal.designs.asked import require_column_name
from stratal.designs.poisson_weighting import PoissonWeighting
from stratal.designs.sample import Sample
from stratal.errors import BudgetError, InputError
from stratal.population.population import Population
from stratal.population.size_measures import Size, SizeProfile


def inclusion_probabilities(sizes: Any, budget: int) -> FloatArray:
    """Return π (N,) ∝ size with Σ π = budget; units too large for that are certain.

    Parameters
    ----------
    sizes : float (N,)
        Positive.
    budget : int
        From 1 to N.

    Raises
    ------
    InputError
        If a size is zero, negative, NaN or infinite.
    BudgetError
        If the budget is above N.

    Examples
    --------
    >>> inclusion_probabilities([1.0, 1.0, 2.0, 16.0], 2)
    array([0.25, 0.25, 0.5 , 1.  ])
    """
    x = finite_vector("sizes", sizes)
    if len(x) == 0:
        raise InputError("there are no sizes", allowed="at least one unit")
    profile = SizeProfile.of(x, min(budget, len(x)))
    return np.minimum(1.0, inclusion_scale(profile, budget) * x)


def inclusion_scale(profile: SizeProfile, budget: int, name: str = "the size measure") -> float:
    """Return c, so that π = min(1, c x) adds up to the budget.

    Parameters
    ----------
    profile : SizeProfile
        With exactly the `budget` largest sizes.
    budget : int
    name : str
        What the sizes are called in errors.

    Examples
    --------
    >>> inclusion_scale(SizeProfile.of(np.array([1.0, 1.0, 2.0, 16.0]), 2), 2)
    0.25
    """
    if budget > profile.units:
        raise BudgetError(
            "the budget is larger than the population", given=budget, allowed=f"1 to {profile.units}"
        )
    refuse_nonpositive(profile, name)
    if budget == profile.units:
        return float(np.nextafter(1.0 / profile.low, np.inf))
    largest, left = profile.largest, budget - np.arange(budget)
    others = profile.rest + np.cumsum(largest[::-1])[::-1]
    k = int(np.argmax(left * largest <= others))
    return float(left[k] / others[k])


def refuse_nonpositive(profile: SizeProfile, name: str) -> None:
    """Raise an `InputError` where a unit could never be drawn.

    Examples
    --------
    >>> refuse_nonpositive(SizeProfile.of(np.array([0.0, 1.0]), 1), "column 'length'")
    Traceback (most recent call last):
    stratal.errors.InputError: column 'length' holds a size that is not positive (given: 0; allowed: above
    0)...
    """
    if profile.low <= 0 or not np.isfinite(profile.high):
        raise InputError(
            f"{name} holds a size that is not positive",
            given=f"{profile.low:g}",
            allowed="above 0",
            action="A unit that can never be drawn biases the estimate: give it a small size.",
        )


def measure(population: Population, size: str, proxy: str | None = None) -> Size:
    """Return the size measure that a design names.

    Parameters
    ----------
    population : Population
    size : str
        `equal`, `sqrt-variance` (of a proxy that is on the outcome's scale), or the name of a proxy or
        feature column of positive numbers.
    proxy : str, optional
        The proxy of `sqrt-variance`; the first unless named.

    Raises
    ------
    InputError
        If the proxy says nothing of the variance.

    Examples
    --------
    >>> from stratal.population import Population
    >>> measure(Population.from_arrays(proxy=[0.2, 0.6]), "sqrt-variance").centre
    0.4
    """
    if require_column_name(size, "size") == "equal":
        return Size(kind="equal")
    if size != "sqrt-variance":
        return Size(kind="column", column=size)
    info = population.proxy_info(proxy)
    second = info.second_moment is not None or population.has_second_moments(info.name)
    if not info.scaled or (info.bounds is None and not second):
        raise InputError(
            f"proxy '{info.name}' says nothing of the outcome's variance",
            allowed="a proxy on the outcome's scale, with bounds or second moments",
            action="Name a column of sizes, or give the proxy's bounds.",
        )
    picture = population.distribution(info.name)
    if second:
        spread = picture.conditional_variances
        centre = float(picture.counts @ spread / picture.size)
        if centre <= 0:
            return Size(kind="equal")
        return Size(kind="sqrt-variance", column=info.name, second=True, centre=centre)
    assert info.bounds is not None
    low, high = info.bounds
    if not low < picture.mean < high:
        return Size(kind="equal")
    return Size(kind="sqrt-variance", column=info.name, centre=picture.mean, low=low, high=high)


def responding(sample: Sample, labelled: BoolArray, *, fixed_size: bool) -> PoissonWeighting:
    """Return the weights of the labelled units; nonresponse is taken to be at random.

    Each labelled unit's π is multiplied by the response rate Σ_labelled 1/π / Σ_drawn 1/π, as if answering
    were a second, independent draw.
    """
    probabilities = sample.inclusion_probability
    weights = 1.0 / probabilities
    rate = float(weights[labelled].sum() / weights.sum()) if len(weights) else 1.0
    return PoissonWeighting(
        inclusion_probability=np.asarray(probabilities[labelled] * min(rate, 1.0)),
        size=sample.population_size,
        fixed_size=fixed_size,
    )
