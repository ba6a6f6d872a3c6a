"""A small test set with everything that an estimand may ask for, drawn by every design."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

import stratal
from stratal.estimation.estimates import Estimates

CLASSES = ("cat", "dog", "eel")
LANGUAGES = ("de", "en", "fr")


@dataclass(frozen=True)
class World:
    """N units: ids, two proxies, categories, the answers of two models, and what every label would be."""

    ids: np.ndarray
    proxy: np.ndarray
    other: np.ndarray
    language: np.ndarray
    answer: np.ndarray
    rival: np.ndarray
    truth: np.ndarray
    rating: np.ndarray
    cluster: np.ndarray
    size: np.ndarray

    @staticmethod
    def of(seed: int, size: int = 240) -> World:
        rng = np.random.default_rng(seed)
        truth = rng.choice(CLASSES, size, p=[0.6, 0.3, 0.1])
        proxy = np.clip(rng.beta(4, 1.3, size), 0.02, 0.98)
        other = np.clip(rng.beta(3, 1.5, size), 0.02, 0.98)
        wrong = rng.choice(CLASSES, size)
        return World(
            ids=np.array([f"u{number}" for number in rng.permutation(size)]),
            proxy=proxy,
            other=other,
            language=rng.choice(LANGUAGES, size, p=[0.5, 0.3, 0.2]),
            answer=np.where(rng.random(size) < proxy, truth, wrong),
            rival=np.where(rng.random(size) < other, truth, wrong),
            truth=truth,
            rating=1.0 + 4.0 * np.clip(proxy + rng.normal(0, 0.2, size), 0, 1),
            cluster=np.array([f"c{number}" for number in np.arange(size) // 5]),
            size=rng.lognormal(0, 0.5, size),
        )

    @property
    def right(self) -> np.ndarray:
        return np.asarray(self.answer == self.truth, float)

    @property
    def rival_right(self) -> np.ndarray:
        return np.asarray(self.rival == self.truth, float)

    def reordered(self, order: np.ndarray) -> World:
        return World(**{entry.name: getattr(self, entry.name)[order] for entry in fields(self)})

    def changed(self, **columns: Any) -> World:
        return replace(self, **columns)

    def population(self, **options: Any) -> stratal.Population:
        return stratal.Population.from_arrays(
            ids=self.ids,
            proxy=options.pop("proxy", {"proxy": self.proxy, "other": self.other}),
            groups={
                "language": self.language,
                "answer": self.answer,
                "rival": self.rival,
                "cluster": self.cluster,
            },
            features={"size": self.size},
            predicted="answer",
            **options,
        )

    def labels(self, sample: stratal.Sample, column: Any, answered: float = 1.0) -> dict[str, Any]:
        """Return the column's values of the drawn units by id, some left out by their ids alone."""
        values = dict(zip(self.ids.tolist(), np.asarray(column).tolist(), strict=True))
        return {
            unit: values[unit]
            for unit in sample.ids.tolist()
            if answered == 1.0 or int(unit[1:]) % 100 < 100 * answered
        }


def by_language(population: stratal.Population, budget: int = 90) -> stratal.designs.Stratified:
    strata = stratal.strata.stratify(population, "category", by="language")
    return stratal.designs.Stratified(
        strata=strata, allocation=stratal.strata.allocate(strata, budget, "proportional")
    )


Draw = Callable[[stratal.Population, int], stratal.Sample]

DESIGNS: Mapping[str, Draw] = {
    "simple random": lambda units, seed: stratal.designs.SimpleRandom(budget=90).draw(units, seed),
    "strata": lambda units, seed: by_language(units).draw(units, seed),
    "planned": lambda units, seed: stratal.plan(units, budget=90, proxy="proxy").draw(seed=seed),
    "poisson": lambda units, seed: stratal.designs.Poisson(probability=0.35).draw(units, seed),
    "proportional to size": lambda units, seed: stratal.designs.ProportionalToSize(
        budget=90, size="size"
    ).draw(units, seed),
    "clusters": lambda units, seed: stratal.designs.ClusterSample(budget=90, cluster="cluster").draw(
        units, seed
    ),
}
"""Every design that does not need an order of the rows."""

NO_CLUSTERS = tuple(name for name in DESIGNS if name != "clusters")


def numbers(found: Any, level: float = 0.95) -> list[float]:
    """Return value, standard error and interval of an estimate, or of several, one after another."""
    if isinstance(found, Estimates):
        return [number for row in found for number in numbers(row, level)]
    return [found.value, found.standard_error, *found.confidence_interval(level)]


def same(first: Any, second: Any, tolerance: float = 1e-9) -> None:
    """Check that two results have the same numbers, up to rounding."""
    one = numbers(first) if not isinstance(first, list) else first
    two = numbers(second) if not isinstance(second, list) else second
    np.testing.assert_allclose(
        np.array(one, float), np.array(two, float), rtol=tolerance, atol=tolerance, equal_nan=True
    )
