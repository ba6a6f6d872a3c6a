"""`Strata`: a partition of the population; `stratify`: one verb for every way of dividing it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray, Record
from stratal.errors import InputError, names_mistyped, near_names
from stratal.population.expressions import Expression
from stratal.population.influence import Influence
from stratal.population.population import require_population
from stratal.population.rules import (
    CELL,
    INFLUENCE,
    Categories,
    Crossed,
    Derived,
    Everything,
    Rule,
    cut_between,
)
from stratal.report import Bars, Plotted, Tabular
from stratal.strata.categories import category_draft, crossed_draft
from stratal.strata.clusters import Clustering, cluster_draft, feature_columns
from stratal.strata.moments import Moments, of_bins, of_sizes
from stratal.strata.proxy_intervals import (
    INTERVAL_METHODS,
    StratificationDraft,
    StratificationRequest,
    interval_draft,
)

if TYPE_CHECKING:
    from stratal.population.population import Population


METHODS = (*INTERVAL_METHODS, "category", "features", "none")
"""Every method that `stratify` knows."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Strata(Record, Tabular, Plotted):
    """A partition of the population into H strata.

    Parameters
    ----------
    rule : Rule
        Puts a unit into its stratum; kept in the sample file, so that a later round finds the same strata.
    names : tuple of str (H,)
        Readable names, such as `proxy in [0.5, 0.9)`.
    sizes : int (H,)
        N_h.
    proxy_means : float (H,)
        Mean proxy of each stratum; NaN where the population has no proxy.
    proxy_variances : float (H,)
        Variance of the proxy within each stratum, divisor N_h.
    conditional_variances : float (H,)
        Mean plug-in Var(z | x) of each stratum.
    scaled : bool
        Whether the proxy predicts the outcome on its own scale; if not, S_h is unknown and taken as equal.
    bounds : (float, float)
        Bounds of the outcome; infinite where it has none.
    method : str
        How the strata were made.
    notes : tuple of str
        What the user should know: fewer strata than asked for, merged ones.
    known : tuple of Expression or None (H,)
        For a stratum in which the estimand's influence is known by construction, and which therefore gets no
        label, the formula that is 1 for its units; empty where there is no such stratum.
    codes : int (N,), optional
        Stratum of every unit, for populations in memory. Not part of equality, and not kept in a sample.

    Examples
    --------
    >>> from stratal.population import Population
    >>> from stratal.strata import stratify
    >>> strata = stratify(Population.from_arrays(proxy=[0.1, 0.2, 0.8, 0.9]), n_strata=2)
    >>> strata.sizes, strata.codes
    (array([2, 2]), array([0, 0, 1, 1]))
    """

    rule: Rule
    names: tuple[str, ...]
    sizes: IntArray
    proxy_means: FloatArray
    proxy_variances: FloatArray
    conditional_variances: FloatArray
    scaled: bool = True
    bounds: tuple[float, float] = (0.0, 1.0)
    method: str = "k-means"
    notes: tuple[str, ...] = ()
    known: tuple[Expression | None, ...] = ()
    codes: AnyArray | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        self._freeze()
        if self.known and len(self.known) != len(self.sizes):
            raise InputError("known must have one entry per stratum", given=len(self.known))
        lengths = {len(self.names), len(self.sizes), len(self.proxy_means), self.rule.n_strata}
        if len(lengths) != 1 or np.any(self.sizes <= 0):
            raise InputError(
                "strata must have one name, size and moment each, and no stratum may be empty",
                action="Make strata by stratal.stratify(population).",
            )

    @classmethod
    def of(
        cls, moments: Moments, rule: Rule | None = None, names: tuple[str, ...] = ("all",), **more: Any
    ) -> Strata:
        """Return the strata with these moments; all units as one unless there is a rule."""
        values = {entry.name: getattr(moments, entry.name) for entry in fields(moments)}
        return cls(rule=Everything() if rule is None else rule, names=names, **values, **more)

    @property
    def n_strata(self) -> int:
        """H."""
        return len(self.sizes)

    @property
    def size(self) -> int:
        """N."""
        return int(self.sizes.sum())

    @property
    def weights(self) -> FloatArray:
        """W_h = N_h / N (H,)."""
        return np.asarray(self.sizes / self.sizes.sum())

    @property
    def is_known(self) -> BoolArray:
        """Which strata need no label, as the influence is known there by construction (H,)."""
        known = self.known or (None,) * self.n_strata
        return np.array([entry is not None for entry in known], dtype=bool)

    @property
    def standard_deviations(self) -> FloatArray:
        """Plug-in S_h (H,): √(mean Var(z | x) + Var(E[z | x])) within the stratum; ones where unknown."""
        if not self.scaled:
            return np.ones(self.n_strata)
        return np.asarray(np.sqrt(np.maximum(self.conditional_variances + self.proxy_variances, 0.0)))

    def _columns(self) -> dict[str, Any]:
        return {
            "stratum": self.names,
            "units": self.sizes,
            "mean_proxy": self.proxy_means,
            "standard_deviation": self.standard_deviations,
        }

    def _plot(self) -> Bars:
        """Draw each stratum's share of the units, and of what outcomes are expected to vary."""
        spread = self.sizes * self.standard_deviations
        shares = spread / spread.sum() if spread.sum() > 0 else self.weights
        return Bars(
            title=f"{self.n_strata} strata of {self.size:,} units ({self.method})",
            x_label="share",
            names=self.names,
            series={"of the units": self.weights.tolist(), "of N_h S_h (Neyman)": shares.tolist()},
        )

    def without_codes(self) -> Strata:
        """Return the same strata without anything of length N."""
        return replace(self, codes=None)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready description (without codes)."""
        return {
            "rule": self.rule.to_dict(),
            "names": list(self.names),
            "sizes": self.sizes.tolist(),
            **{name: _nullable(getattr(self, name)) for name in _MOMENTS},
            "scaled": self.scaled,
            "bounds": [bound if np.isfinite(bound) else None for bound in self.bounds],
            "method": self.method,
            "notes": list(self.notes),
            **({"known": [entry and entry.to_dict() for entry in self.known]} if self.known else {}),
        }

    @staticmethod
    def from_dict(described: dict[str, Any]) -> Strata:
        """Return the strata that `to_dict` described."""
        low, high = described["bounds"]
        known = tuple(entry and Expression.from_dict(entry) for entry in described.get("known", ()))
        bounds = (-np.inf if low is None else low, np.inf if high is None else high)
        texts = {name: tuple(described[name]) for name in ("names", "notes")}
        rule = Rule.from_dict(described["rule"])
        return Strata(**{**described, **texts, "rule": rule, "bounds": bounds, "known": known})


_MOMENTS = ("proxy_means", "proxy_variances", "conditional_variances")


def _nullable(values: FloatArray) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


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
    min_size: int = 1,
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
        k-means; it brings its own number of clusters. It is fitted on 50,000 to 100,000 evenly spaced rows
        where there are more, and each unit joins the cluster whose mean is nearest.
    budget : int, optional
        Labels that can be bought; needed for `"auto"`. With `by`, categories whose share of it is too small
        for `minimum` draws are pooled into one, and each has no more strata than its share bears.
    minimum : int
        Draws that each stratum keeps when their number is chosen, or categories are pooled.
    min_size : int
        Strata with fewer units join a neighbour; small categories are pooled.
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
        return _by_influence(population, influence, method, n_strata, budget, minimum, min_size)
    info = population.proxy_info(proxy) if population.proxies else None
    bounds = (-math.inf, math.inf) if info is None or info.bounds is None else info.bounds
    request = _checked_request(method, n_strata, budget, minimum, min_size, bounds)
    if method == "category" and by is None:
        raise InputError("method='category' needs a group column", action="Give by= (--by COL).")
    if method == "none" and by is not None:
        raise InputError(
            "method='none' makes one stratum and cannot be combined with by=",
            given=f"by={by!r}",
            action="Use method='category' to divide by the column alone.",
        )
    if by is not None:
        population.require_group(by)
    if clusterer is not None and method != "features":
        raise InputError("a clusterer divides by features", given=f"method={method!r}", allowed="'features'")
    if method == "features":
        names = feature_columns(population, features)
        how = Clustering(names=names, seed=seed, standardise=standardise, clusterer=clusterer)
        draft = cluster_draft(population, by, how, proxy, request)
    else:
        draft = _divided(population, by, proxy, request)
    return Strata.of(
        draft.moments,
        draft.rule,
        draft.names,
        scaled=info is not None and info.scaled,
        bounds=bounds,
        method=method if by is None or method == "category" else f"{method} by {by}",
        notes=draft.notes,
        codes=population.codes(draft.rule),
    )


def _by_influence(
    population: Population,
    influence: Influence,
    method: str,
    n_strata: int | Literal["auto"],
    budget: int | None,
    minimum: int,
    min_size: int,
) -> Strata:
    """Return the strata of the population as the influence sees it, with a rule of the columns that exist."""
    if method not in (*INTERVAL_METHODS, "none"):
        raise InputError(
            "an influence is divided into intervals",
            given=f"method={method!r}",
            allowed=", ".join((*INTERVAL_METHODS, "none")),
        )
    view = influence.seen_in(population)
    several = len(view.levels(CELL)) > 1 and method != "none"
    found = stratify(
        view,
        method,
        n_strata,
        by=CELL if several else None,
        proxy=INFLUENCE,
        budget=budget,
        minimum=minimum,
        min_size=min_size,
    )
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


def _divided(
    population: Population, by: str | None, proxy: str | None, request: StratificationRequest
) -> StratificationDraft:
    """Return the strata of a category, of intervals of a proxy, or of everything as one."""
    if request.method == "none":
        if population.proxies:
            moments = of_bins(population.distribution(proxy), np.empty(0, np.int64))
        else:
            moments = of_sizes(np.array([population.size]))
        return StratificationDraft(rule=Everything(), names=("all",), moments=moments)
    if request.method == "category" and by is not None:
        return category_draft(population, by, proxy, request)
    column = population.proxy_info(proxy).name
    if by is not None:
        return crossed_draft(population, by, column, request)
    return interval_draft(population.distribution(column), column, request)


def _checked_request(
    method: str,
    n_strata: int | str,
    budget: int | None,
    minimum: int,
    min_size: int,
    bounds: tuple[float, float],
) -> StratificationRequest:
    if method not in METHODS:
        raise InputError("no such stratification", given=repr(method), allowed=near_names(method, METHODS))
    if n_strata == "auto":
        if budget is None and method not in ("none", "category"):
            raise InputError("n_strata='auto' needs a budget", action="Give budget=, or a number of strata.")
        number = None
    elif isinstance(n_strata, (int, np.integer)) and not isinstance(n_strata, bool) and n_strata >= 1:
        number = int(n_strata)
    else:
        raise InputError("n_strata is not usable", given=repr(n_strata), allowed="1, 2, … or 'auto'")
    for name, value, least in (("budget", budget, 1), ("minimum", minimum, 1), ("min_size", min_size, 1)):
        if value is not None and value < least:
            raise InputError(f"{name} is too small", given=value, allowed=f"{least} or more")
    return StratificationRequest(
        method=method, n_strata=number, budget=budget, minimum=minimum, min_size=min_size, bounds=bounds
    )
