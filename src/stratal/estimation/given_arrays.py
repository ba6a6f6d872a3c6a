"""`estimate_from`: prediction-powered inference in one call, from three arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from stratal.arrays import finite_vector, same_length
from stratal.errors import InputError, names_mistyped
from stratal.estimation.estimate import Estimate
from stratal.estimation.evaluation import estimate
from stratal.sampling.other_units import other_units
from stratal.sampling.sample import Sample


@names_mistyped
def estimate_from(
    labels: Any,
    proxy_labelled: Any,
    proxy_population: Any,
    *,
    stratum_labelled: Any = None,
    stratum_population: Any = None,
    includes_labelled: bool = False,
    estimator: str = "auto",
    target: str = "population",
    outcome: str | None = None,
    bounds: tuple[float, float] | None = None,
    lam: Any = None,
) -> Estimate:
    """Estimate the mean outcome from labels of a random sample and predictions of all others.

    The labelled units must be a simple random sample, of each stratum where strata are given. The sample
    design of `stratal.plan` needs none of this: use `stratal.estimate`.

    Parameters
    ----------
    labels : array-like (n,)
        Numbers, or words such as pass and fail.
    proxy_labelled : array-like (n,)
        Predictions of the labelled units' outcomes.
    proxy_population : array-like (m,)
        Predictions of the other units' outcomes; of all units if `includes_labelled`.
    stratum_labelled, stratum_population : array-like (n,), (m,), optional
        Strata of both.
    includes_labelled : bool
        Whether the labelled units are among those of `proxy_population`.
    estimator, target, outcome, bounds, lam
        See `stratal.estimate`. What PPI calls θ is the mean of the `superpopulation`; the mean over the units
        at hand, `population`, is known better.

    Returns
    -------
    Estimate

    Raises
    ------
    InputError
        For arrays of different lengths, values that are no numbers, strata on one side alone, and strata
        without a labelled unit.

    Notes
    -----
    Angelopoulos, Duchi & Zrnic (2023), PPI++; with strata Fisch et al. (2024).

    Examples
    --------
    >>> result = estimate_from([1, 0, 1, 1], [0.9, 0.4, 0.8, 0.7], [0.9, 0.8, 0.3, 0.6, 0.7, 0.2])
    >>> result.n, result.population_size
    (4, 10)
    """
    if (stratum_labelled is None) != (stratum_population is None):
        raise InputError(
            "strata are given of one side alone", action="Give stratum_labelled= and stratum_population=."
        )
    by = None if stratum_labelled is None else "stratum"
    answers = np.asarray(labels, dtype=object)
    columns: dict[str, Any] = {"label": answers, "proxy": finite_vector("proxy_labelled", proxy_labelled)}
    rest: dict[str, Any] = {"proxy": finite_vector("proxy_population", proxy_population)}
    if by is not None:
        columns[by], rest[by] = np.asarray(stratum_labelled), np.asarray(stratum_population)
    same_length(**columns)
    same_length(**rest)
    others = other_units(rest, None, proxy="proxy", stratum=by)
    if includes_labelled:
        own = {name: values for name, values in columns.items() if name != "label"}
        others = others.without(other_units(own, None, proxy="proxy", stratum=by))
    sample, found = Sample.from_labelled(
        columns,
        value="label",
        stratum=by,
        proxy="proxy",
        proxy_moments=others.moments(),
        bounds=None if others.proxy is None else others.proxy.bounds,
    )
    return estimate(
        sample, found, estimator=estimator, target=target, outcome=outcome, bounds=bounds, lam=lam
    )
