"""Cluster sampling: whole groups are drawn, such as all answers to a question, and every unit is labelled."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stratal.arrays import BoolArray
from stratal.designs.cluster_weighting import ClusterWeighting
from stratal.designs.drawing import sample_of
from stratal.designs.sample import Design, Sample
from stratal.errors import BudgetError, InputError
from stratal.population.population import Population, require_population
from stratal.randomness import check_seed, keys_of_ids
from stratal.strata.integers import whole_number


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSample(Design):
    """A simple random sample of groups (documents, patients, questions); all units of a drawn one count.

    Each group has a permanent random number from (seed, its name); the smallest are drawn, so that a larger
    draw with the same seed contains the smaller one. Units of a group resemble each other, so a label is
    worth less than under simple random sampling: the variance is that between clusters.

    Parameters
    ----------
    cluster : str
        A group column.
    n_clusters : int, optional
        Clusters to draw, at least 2.
    budget : int, optional
        Labels instead: as many clusters as are expected to hold no more. The clusters drawn may hold more or
        fewer; a cap on the labels drawn would favour small clusters.
    clusters : int, optional
        Clusters in the population; set by the draw.
    squared_sizes : int, optional
        Σ N_c² over the population's clusters, which says how large those are that were not drawn; set by the
        draw. Samples that were drawn without it have intervals that know the mean size alone.

    Notes
    -----
    Cochran, chapter 9A; Lohr, chapter 5. `estimate` takes the ratio to the labelled units (Hájek), since
    totals vary with the clusters' sizes.

    Examples
    --------
    >>> import stratal
    >>> groups = {"document": ["a", "a", "b"]}
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5, 0.9], groups=groups)
    >>> ClusterSample(cluster="document", n_clusters=2).draw(population, seed=7).size
    3
    """

    kind: ClassVar[str] = "clusters"
    cluster: str
    n_clusters: int | None = None
    budget: int | None = None
    clusters: int | None = None
    squared_sizes: int | None = None

    def __post_init__(self) -> None:
        if (self.n_clusters is None) == (self.budget is None):
            raise InputError(
                "give either n_clusters or a budget",
                given=f"n_clusters={self.n_clusters}, budget={self.budget}",
                action="Give the number of clusters, or the number of labels.",
            )

    def draw(self, population: Population, seed: int) -> Sample:
        """Draw clusters, and every unit of each."""
        population, seed = require_population(population, "draw"), check_seed(seed)
        levels = population.levels(self.cluster)
        count = self._count(len(levels), population.size)
        names = np.array(list(levels))
        keys = keys_of_ids(names.tolist(), seed, "cluster:")
        chosen = names[np.lexsort((names, keys))[:count]]
        drawn = population.members(self.cluster, tuple(chosen.tolist()), seed)
        realised = ClusterSample(
            cluster=self.cluster,
            n_clusters=count,
            clusters=len(levels),
            squared_sizes=sum(int(size) ** 2 for size in levels.values()),
        )
        probabilities = np.full(len(drawn.ids), count / len(levels))
        return sample_of(realised, population, seed, drawn, probabilities)

    def _count(self, clusters: int, size: int) -> int:
        """Return m, at least 2 and at most M."""
        fewest = min(2, clusters)
        if self.n_clusters is not None:
            count = whole_number("n_clusters", self.n_clusters)
            given: object = count
        else:
            assert self.budget is not None
            count = min(math.floor(whole_number("budget", self.budget) * clusters / size), clusters)
            given = f"budget {self.budget}, {size / clusters:.1f} units per cluster"
        if not fewest <= count <= clusters:
            raise BudgetError(
                f"{count} clusters of '{self.cluster}' cannot be drawn",
                given=given,
                allowed=f"{fewest} to {clusters}",
                action="One cluster has no variance: draw at least two." if count < fewest else None,
            )
        return count

    def weighting(self, sample: Sample, labelled: BoolArray) -> ClusterWeighting:
        """Return M / (m N), nonresponse taken to be at random within clusters, then among clusters."""
        names = sample.groups[self.cluster]
        every, sizes = np.unique(names, return_counts=True)
        answered, codes = np.unique(names[labelled], return_inverse=True)
        drawn = sizes[np.searchsorted(every, answered)].astype(np.int64)
        assert self.clusters is not None
        return ClusterWeighting(
            cluster=codes.astype(np.int64),
            drawn=drawn,
            clusters=self.clusters,
            size=sample.population_size,
            squared_sizes=self.squared_sizes,
        )
