"""`stratify`: one verb for every way of dividing a population."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from stratal.errors import InputError, names_mistyped, refuse_unknown
from stratal.population.expressions import Expression
from stratal.population.influence import Influence
from stratal.population.population import require_population
from stratal.population.rules import CELL, INFLUENCE, Categories, Crossed, Derived, Everything, cut_between
from stratal.strata.clusters import cluster_strata, feature_columns, fit_centres
from stratal.strata.proxy_intervals import (
    INTERVAL_METHODS,
    StratificationRequest,
    category_strata,
    crossed_strata,
    interval_strata,
)
from stratal.strata.strata import Strata, of_bins, of_sizes

if TYPE_CHECKING:
    from stratal.population.population import Population


# Every method that `stratify` knows.
METHODS = (*INTERVAL_METHODS, "category", "features", "none")


@names_mistyped
def stratify(
    population: Population,
    method: str = "k-means",
    n_strata: int | Literal["auto"] = 10,
    *,
    by: str | None = None,
    proxy: str | None = None,
    features: Sequence[str] | None = None,
    clusterer: Any = None,
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
        Intervals of the proxy: `"k-means"` (exact; best for proportional allocation), `"neyman"` (exact; best
        for Neyman allocation), `"equal-size"`, `"equal-width"`, `"cum-sqrt-f"`, `"cum-cbrt-f"`,
        `"weighted-mean"`, `"gaussian-mixture"`. Otherwise `"features"` (k-means on feature columns),
        `"category"` (the levels of `by`), or `"none"` (one stratum).
    n_strata : int or "auto"
        Strata wanted (within each category, if crossed), or `"auto"` for the number with the shortest
        expected interval at `budget`.
    by : str, optional
        A group column. With any method but `"category"`, each of its levels is divided on its own.
    proxy : str, optional
        The proxy to divide by; the population's first unless named.
    features : sequence of str, optional
        Feature columns for `method="features"`; all of them unless named.
    clusterer : object, optional
        For `method="features"`: a scikit-learn clusterer, or anything with its `fit_predict`, instead of
        k-means; it brings its own number of clusters, and each unit joins the cluster whose mean is nearest.
    budget : int, optional
        Labels that can be bought; needed for `"auto"`. With `by`, categories whose share of it is too small
        for `minimum` draws are pooled into one, and each has no more strata than its share bears.
    minimum : int
        Draws that each stratum keeps when their number is chosen, or categories are pooled.
    standardise : bool
        Whether features are divided by their standard deviations. Turn it off for embeddings.
    seed : int
        Of k-means on features; the other methods use no randomness.
    influence : Influence, optional
        Divide by the influence of an estimand, `estimand.influence(population)`, instead of a proxy: strata
        are intervals of E[u | x] within its cells. Those in which u is known need no label (`known`).

    Returns
    -------
    Strata
        Fewer than asked for where fewer distinct values exist; its `notes` say so.

    Raises
    ------
    InputError
        For an unknown method or column, a missing proxy, or Neyman cuts of a proxy that only orders.
    BudgetError
        If the budget gives not even one stratum its minimum.

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
        how = {"method": method, "n_strata": n_strata, "budget": budget, "minimum": minimum}
        return _by_influence(population, influence, how)
    info = population.proxy_info(proxy) if population.proxies else None
    bounds = (-math.inf, math.inf) if info is None or info.bounds is None else info.bounds
    request = StratificationRequest(
        method=method,
        n_strata=_checked_number(method, n_strata, budget),
        budget=budget,
        minimum=minimum,
        scaled=info is not None and info.scaled,
        bounds=bounds,
    )
    if (method == "category" and by is None) or (method == "none" and by is not None):
        raise InputError(f"method={method!r} with by={by!r}", action="Give by= (--by COL) for 'category'.")
    if by is not None:
        population.require_group(by)
    if clusterer is not None and method != "features":
        raise InputError("a clusterer divides by features", given=f"method={method!r}", allowed="'features'")
    if method == "features":
        names = feature_columns(population, features)
        fit = partial(fit_centres, clusterer=clusterer, seed=seed, standardise=standardise)
        if clusterer is not None and by is None:  # it brings its own number of clusters
            request = replace(request, n_strata=1)
        found = cluster_strata(population, by, names, fit, proxy, request)
    elif method == "none" and not population.proxies:
        found = Strata.of(of_sizes(np.array([population.size])))
    elif method == "none":
        found = Strata.of(of_bins(population.distribution(proxy), np.empty(0, np.int64)))
    elif method == "category":
        found = category_strata(population, by or "", proxy, request)
    else:
        column = population.proxy_info(proxy).name
        if by is None:
            found = interval_strata(population.distribution(column), column, request)
        else:
            found = crossed_strata(population, by, column, request)
    return replace(
        found,
        scaled=request.scaled,
        bounds=bounds,
        method=method if by is None or method == "category" else f"{method} by {by}",
        codes=population.codes(found.rule),
    )


def _by_influence(population: Population, influence: Influence, how: dict[str, Any]) -> Strata:
    """Return the strata of the population as the influence sees it, with a rule of the columns that exist."""
    method = how["method"]
    if method not in (*INTERVAL_METHODS, "none"):
        raise InputError(
            "an influence is divided into intervals",
            given=f"method={method!r}",
            allowed="methods of intervals",
        )
    view = influence.seen_in(population)
    several = len(view.levels(CELL)) > 1 and method != "none"
    found = stratify(view, by=CELL if several else None, proxy=INFLUENCE, **how)
    known: tuple[Expression | None, ...] = ()
    if influence.known and method != "none":
        cells = list(view.levels(CELL)) * found.n_strata
        if isinstance(found.rule, Categories):
            cells = list(found.rule.levels)
        if isinstance(found.rule, Crossed):
            counts = [part.n_strata for part in found.rule.inner]
            cells = np.repeat(found.rule.categories.levels, counts).tolist()
        known = tuple(influence.cells.test_of(c) if c in influence.known else None for c in cells)
    (values,) = (batch[INFLUENCE] for batch in view.batches((INFLUENCE,), view.size))
    inner = cut_between(found.rule, np.unique(values))
    rule = Derived(inner=inner, cells=influence.cells, influence=influence.mean)
    in_memory = population.codes(Everything()) is not None
    return replace(
        found,
        rule=rule if found.n_strata > 1 else Everything(),
        names=tuple(name.removeprefix(f"{CELL} = ") for name in found.names),
        known=known,
        codes=found.codes if in_memory else None,
    )


def _checked_number(method: str, n_strata: int | str, budget: int | None) -> int | None:
    """Return the number of strata asked for, None to choose it from the budget."""
    refuse_unknown("stratification", method, METHODS)
    if n_strata == "auto":
        if budget is None and method not in ("none", "category"):
            raise InputError("n_strata='auto' needs a budget", action="Give budget=, or a number of strata.")
        return None
    if isinstance(n_strata, (int, np.integer)) and not isinstance(n_strata, bool) and n_strata >= 1:
        return int(n_strata)
    raise InputError("n_strata is not usable", given=repr(n_strata), allowed="1, 2, … or 'auto'")
