"""`ExternalOptions`: the keywords of `Sample.from_labelled`, and which of them contradict each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stratal.arrays import field_values
from stratal.errors import InputError
from stratal.question.roles import DeclaredRoles
from stratal.question.scores import ORDER, Predictions, declared_scores


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExternalOptions(DeclaredRoles):
    """The keywords of `Sample.from_labelled`: the columns of a labelled table and its sampling mechanism."""

    # The names of the columns of several annotators are joined to one text.
    value: str
    id: str | None = None
    stratum: str | None = None
    sizes: Any = None
    cluster: str | None = None
    weight: str | None = None
    inclusion_probability: str | None = None
    mechanism: str = "with-replacement"
    population_size: int | None = None
    proxy: str | Sequence[str] | None = None
    proxy_moments: Any = None
    population: Any = None
    scaled: bool = True
    bounds: tuple[float, float] | None = (0.0, 1.0)
    groups: Sequence[str] = ()
    tags: str | None = None
    predicts: Predictions | None = None
    # Whether the table has all units of the population, although each row has a label.
    has_all_units: bool = False

    @property
    def group_columns(self) -> tuple[str, ...]:
        """Columns that the sample stores as groups: groups, strata, clusters and roles."""
        # The sample stores proxies separately. Labels are compared with answers in a group, even of a proxy.
        roles = self.roles
        role_columns = [
            name for name in roles.stored_columns if name not in self.proxies or name == roles.answer
        ]
        columns = (*self.groups, self.stratum, self.cluster, *role_columns)
        return tuple(dict.fromkeys(name for name in columns if name))

    @property
    def proxies(self) -> tuple[str, ...]:
        """The columns of proxies; means and the moments of strata use only the first."""
        if self.proxy is None:
            return ()
        if isinstance(self.proxy, str):
            return (self.proxy,)
        return tuple(self.proxy)

    @property
    def first_proxy(self) -> str | None:
        """The column of the first proxy."""
        return next(iter(self.proxies), None)

    @property
    def states_sampling(self) -> bool:
        """Whether sizes, weights or a population size state the sampling of the rows."""
        declared = (self.sizes, self.weight, self.inclusion_probability, self.population_size)
        return any(value is not None for value in declared)

    def __post_init__(self) -> None:
        from stratal.labels.annotator_columns import join_column_names

        self._set(value=join_column_names(self.value))
        size = self.population_size
        has_size = size is not None
        if has_size and not (isinstance(size, int | np.integer) and size > 0):
            raise InputError(
                "population_size= (--population-size) must be a whole number above 0",
                given=repr(size),
                allowed="the number of units of the population, such as 10000",
            )
        has_population = self.population is not None
        has_moments = self.proxy_moments is not None
        has_clusters = bool(self.cluster)
        sources = ("sizes", "weight", "inclusion_probability")
        sources_named = [name for name, value in field_values(self, sources).items() if value is not None]
        has_weights = any(name != "sizes" for name in sources_named)
        is_poisson = self.mechanism == "poisson"
        has_strata_or_clusters = has_clusters or (has_weights and bool(self.stratum))
        is_proxy_of_clusters = bool(self.proxy) and has_clusters and self.states_sampling
        contradictions = {
            f"only one of {', '.join(sources)} can be given, because each states what a labelled unit "
            "represents": (len(sources_named) > 1),
            "sizes and population_size are mutually exclusive": self.sizes is not None and has_size,
            "proxy_moments can only be given with a proxy": has_moments and self.proxy is None,
            "proxy_moments and population are mutually exclusive": has_moments and has_population,
            "population and population_size are mutually exclusive": has_population and has_size,
            "a proxy can only be used with strata and their sizes": bool(self.proxy) and has_weights,
            "a Poisson sample cannot have strata or clusters": is_poisson and has_strata_or_clusters,
            "a proxy cannot be used for clusters of a table with sizes or weights": is_proxy_of_clusters,
            "clusters and strata must be in different columns": has_clusters and self.cluster == self.stratum,
        }
        for problem, is_contradictory in contradictions.items():
            if is_contradictory:
                names = " and ".join(sources_named) or None
                raise InputError(problem, given=names, action="Leave one of them out.")
        scores = declared_scores(self.predicts, self.proxies).values()
        if not self.scaled and any(score.predicts != ORDER for score in scores):
            problem = "scaled=False declares that the proxy only orders units, which contradicts predicts="
            raise InputError(problem, given=f"predicts={self.predicts!r}", action="Leave one of them out.")
