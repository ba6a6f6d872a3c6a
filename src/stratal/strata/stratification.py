"""`stratify`: division of a population into strata, by any method.

Strata are intervals of a proxy, categories, a category crossed with intervals, clusters by k-means on feature
columns, or intervals of the expected influence of an estimand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from stratal.errors import InputError, check_choice
from stratal.population import rules
from stratal.population.expressions import Expression
from stratal.population.influence import Influence
from stratal.population.population import Population, require_population
from stratal.protocols import Keywords
from stratal.strata.feature_clusters import cluster_columns, cluster_strata, fit_centres
from stratal.strata.level_groups import category_strata
from stratal.strata.number_of_strata import DEFAULT_STRATA, StratificationRequest
from stratal.strata.proxy_intervals import CUT_METHODS, NO_BOUNDARIES, crossed_strata, interval_strata
from stratal.strata.strata import Strata, moments_of_bins, moments_of_sizes

# Values of `method` in `stratify`.
STRATIFICATION_METHODS = (*CUT_METHODS, "category", "features", "none")


def stratify(
    population: Population,
    method: str = "k-means",
    n_strata: int | Literal["auto"] = DEFAULT_STRATA,
    *,
    by: str | None = None,
    proxy: str | None = None,
    features: Sequence[str] | None = None,
    clusterer: object = None,
    budget: int | None = None,
    minimum: int = 2,
    standardise: bool = True,
    seed: int = 0,
    influence: Influence | None = None,
) -> Strata:
    """Divide a population into strata.

    Parameters
    ----------
    population : Population
        N units.
    method : str
        Intervals of the proxy: `"k-means"` (exact; optimal for proportional allocation), `"neyman"` (exact;
        optimal for Neyman allocation), `"robust-neyman"` (for Neyman allocation with a proxy that may be
        miscalibrated), `"equal-size"`, `"equal-width"`, `"cum-sqrt-f"`, `"cum-cbrt-f"`,
        `"weighted-mean"`, `"gaussian-mixture"`. Otherwise `"features"` (k-means on feature columns),
        `"category"` (the levels of `by`), or `"none"` (one stratum).
    n_strata : int or "auto"
        Number of strata (within each level, if crossed), or `"auto"` for the number with the shortest
        expected interval for `budget`.
    by : str, optional
        A group column. With any method but `"category"`, each of its levels is divided separately.
    proxy : str, optional
        Name of the proxy. Default: the first proxy of the population.
    features : sequence of str, optional
        Feature columns for `method="features"`. Default: all.
    clusterer : object, optional
        For `method="features"`: a scikit-learn clusterer, or an object with its `fit_predict`, instead of
        k-means. It determines the number of clusters, and each unit is assigned to the nearest cluster mean.
    budget : int, optional
        Labelling budget (number of labels); required for `"auto"`. With `by`, levels whose proportional share
        of it is below `minimum` are pooled into one, and the share limits the number of strata of a level.
    minimum : int
        Minimum number of labels per stratum, for the choice of the number of strata and for pooling.
    standardise : bool
        Whether features are divided by their standard deviations. Set it to False for embeddings.
    seed : int
        Seed of k-means on features. The other methods use no random numbers.
    influence : Influence, optional
        Divide by the influence of an estimand, `estimand.influence(population)`, instead of a proxy. Strata
        are intervals of E[u | x] within its cells. Strata in which u is known need no label.

    Returns
    -------
    Strata
        There are fewer than requested if there are fewer distinct values; `notes` then contains a note.

    Raises
    ------
    InputError
        For an unknown method or column, a missing proxy, or Neyman boundaries of a proxy that is not on the
        outcome's scale.
    BudgetError
        If the budget is below the minimum of a single stratum.

    Examples
    --------
    >>> from stratal.population import Population
    >>> population = Population.from_arrays(proxy=[0.1, 0.2, 0.8, 0.9])
    >>> strata = stratify(population, "k-means", 2)
    >>> strata.names, strata.sizes
    (('proxy < 0.8', 'proxy >= 0.8'), array([2, 2]))
    """
    population = require_population(population, "stratify")
    if influence is not None:
        options = {"method": method, "n_strata": n_strata, "budget": budget, "minimum": minimum}
        return _stratify_by_influence(population, influence, options)
    request = _checked_request(population, method, n_strata, budget, minimum, proxy)
    _check_columns(population, method, by, clusterer)
    if method == "features":
        names = cluster_columns(population, features)
        fit = partial(fit_centres, clusterer=clusterer, seed=seed, standardise=standardise)
        if clusterer is not None and by is None:
            # The clusterer determines the number of clusters.
            request = replace(request, n_strata=1)
        strata = cluster_strata(population, by, names, fit, proxy, request)
    elif method == "none" and not population.proxies:
        strata = Strata.from_moments(moments_of_sizes(np.array([population.size])))
    elif method == "none":
        strata = Strata.from_moments(moments_of_bins(population.distribution(proxy), NO_BOUNDARIES))
    elif method == "category":
        if population.proxies:
            distributions = population.distributions(by or "", proxy)
        else:
            distributions = None
        strata = category_strata(population, by or "", request, distributions)
    else:
        column = population.proxy_info(proxy).name
        if by is None:
            strata = interval_strata(population.distribution(column), column, request)
        else:
            strata = crossed_strata(population, by, column, request)
    return replace(
        strata,
        scaled=request.scaled,
        bounds=request.bounds,
        method=method if by is None or method == "category" else f"{method} by {by}",
        population=population,
    )


def _checked_request(
    population: Population,
    method: str,
    n_strata: object,
    budget: int | None,
    minimum: int,
    proxy: str | None,
) -> StratificationRequest:
    """Return the validated method, number of strata, budget and minimum, with the scale of the proxy."""
    info = None
    # Without a proxy, only a declaration of the labels determines the bounds.
    bounds = population.label_outcome.bounds
    if population.proxies:
        info = population.proxy_info(proxy)
        bounds = info.bounds
    check_choice("stratification", method, STRATIFICATION_METHODS)
    number = None
    if isinstance(n_strata, int | np.integer) and not isinstance(n_strata, bool) and n_strata >= 1:
        number = int(n_strata)
    elif n_strata != "auto":
        raise InputError("n_strata is invalid", given=repr(n_strata), allowed="1, 2, … or 'auto'")
    elif budget is None and method not in ("none", "category"):
        raise InputError("n_strata='auto' requires a budget", action="Give budget=, or a number of strata.")
    for name, value in (("budget", budget), ("minimum", minimum)):
        if value is not None and value < 1:
            raise InputError(f"{name} is too small", given=value, allowed="1 or more")
    return StratificationRequest(
        method=method,
        n_strata=number,
        budget=budget,
        minimum=minimum,
        scaled=info is not None and info.scaled,
        bounds=bounds or (-math.inf, math.inf),
    )


def _check_columns(population: Population, method: str, by: str | None, clusterer: object) -> None:
    """Raise an error if the method cannot be combined with `by` or with a clusterer."""
    if method == "category" and by is None:
        raise InputError(
            "method='category' requires a group column", action="Name the column: by= (--by COL)."
        )
    if method == "none" and by is not None:
        raise InputError(
            "method='none' forms one stratum, without a group column",
            given=f"by={by!r}",
            action="Leave by= (--by) out, or use method='category'.",
        )
    if by is not None:
        population.require_group(by)
    if clusterer is not None and method != "features":
        problem = "a clusterer can only be used with method='features'"
        raise InputError(problem, given=f"method={method!r}", action="Leave clusterer= out.")


def _stratify_by_influence(population: Population, influence: Influence, options: Keywords) -> Strata:
    """Return strata that are intervals of the expected influence within its cells.

    The rule of the strata is a formula of the columns of the population.
    """
    method = options["method"]
    if method not in (*CUT_METHODS, "none"):
        problem = "an influence can only be divided into intervals"
        raise InputError(problem, given=f"method={method!r}", allowed="an interval method")
    influence_population = influence.to_population(population)
    cells = influence_population.levels(rules.CELL)
    by = rules.CELL if len(cells) > 1 and method != "none" else None
    strata = stratify(influence_population, by=by, proxy=rules.INFLUENCE, **options)
    known_influences: tuple[Expression | None, ...] = ()
    if influence.known_cells and method != "none":
        known_influences = tuple(
            influence.cells.test_of(cell) if cell in influence.known_cells else None
            for cell in _cell_of_each_stratum(strata, tuple(cells))
        )
    rule: rules.Rule = rules.Everything()
    if strata.n_strata > 1:
        # A single batch of all units.
        (batch,) = influence_population.batches((rules.INFLUENCE,), influence_population.size)
        inner = rules.cut_between(strata.rule, np.unique(batch[rules.INFLUENCE]))
        rule = rules.Derived(inner=inner, cells=influence.cells, influence=influence.mean)
    return replace(
        strata,
        rule=rule,
        names=tuple(name.removeprefix(f"{rules.CELL} = ") for name in strata.names),
        known_influences=known_influences,
        population=population,
    )


def _cell_of_each_stratum(strata: Strata, cells: tuple[str, ...]) -> list[str]:
    """Return the cell of each stratum (H,) of an influence; without such a division, the only cell."""
    if isinstance(strata.rule, rules.Categories):
        return list(strata.rule.levels)
    if isinstance(strata.rule, rules.Crossed):
        counts = [cell_rule.n_strata for cell_rule in strata.rule.inner]
        return [str(cell) for cell in np.repeat(strata.rule.categories.levels, counts)]
    return list(cells) * strata.n_strata
