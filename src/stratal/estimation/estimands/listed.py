"""A list of estimands on the same labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from stratal.errors import InputError
from stratal.estimation.estimand import Estimand, Several
from stratal.estimation.estimate_table import EstimateTable, title_of
from stratal.population.population import Population
from stratal.report import plain
from stratal.sampling.sample import Sample


@dataclass(frozen=True, slots=True)
class Listed(Several):
    """Several estimands of any kinds, planned for and estimated on the same labels.

    Parameters
    ----------
    estimands : tuple of Estimand
        Labels must be what each of them takes, as true classes are for F1 and for recall.

    Examples
    --------
    >>> from stratal.estimation.estimand import as_estimand
    >>> as_estimand(["f1:match", "recall:match"]).text
    'f1:match;recall:match'
    """

    kind: ClassVar[str] = "list"
    estimands: tuple[Estimand, ...]

    def __post_init__(self) -> None:
        self._set(estimands=tuple(self.estimands))
        if not self.estimands or not all(isinstance(entry, Estimand) for entry in self.estimands):
            raise InputError(
                "every entry of a list of estimands must be one",
                given=repr(self.estimands),
                action="Give estimands of stratal.estimands, or their texts, such as 'f1:match'.",
            )

    @property
    def text(self) -> str:
        """The text forms, with semicolons between them."""
        return ";".join(entry.text for entry in self.estimands)

    @classmethod
    def parse(cls, fields: dict[str, Any]) -> Self:
        """Return the list from the fields of `to_dict` but `kind`."""
        return cls(tuple(Estimand.from_dict(entry) for entry in fields["estimands"]))

    @property
    def groups(self) -> tuple[str, ...]:
        """The group columns that are needed."""
        return tuple(dict.fromkeys(name for entry in self.estimands for name in entry.groups))

    @property
    def numbers(self) -> tuple[str, ...]:
        """The numeric columns that are needed."""
        return tuple(dict.fromkeys(name for entry in self.estimands for name in entry.numbers))

    @property
    def proxy_names(self) -> tuple[str, ...]:
        """The proxies that are named."""
        return tuple(dict.fromkeys(name for entry in self.estimands for name in entry.proxy_names))

    @property
    def reads_population(self) -> bool:
        """Whether one of them reads columns of the population that a sample does not hold."""
        return any(entry.reads_population for entry in self.estimands)

    def parts_in(self, population: Population) -> tuple[Estimand, ...]:
        """Return the estimands."""
        return self.estimands

    def parts_of(self, sample: Sample) -> tuple[Estimand, ...]:
        """Return the estimands."""
        return self.estimands

    def estimate(
        self, sample: Sample, labels: Any, target: str = "population", confidence_level: float = 0.95
    ) -> EstimateTable:
        """Return a row for each estimand, and those of each that has several."""
        rows: list[dict[str, Any]] = []
        notes: list[str] = []
        n = 0
        for entry in self.estimands:
            level = {"confidence_level": confidence_level} if isinstance(entry, Several) else {}
            found = entry.estimate(sample, labels, target, **level)
            if isinstance(found, EstimateTable):
                rows += [{"estimand": entry.text, **row} for row in found.rows]
                notes += found.notes
                continue
            low, high = found.confidence_interval(confidence_level)
            n = max(n, getattr(found, "labels", None) or found.n)
            rows.append(
                {
                    "estimand": entry.text,
                    "estimate": plain(found.value),
                    "standard_error": plain(found.standard_error),
                    "confidence_interval": plain([low, high]) if np.isfinite([low, high]).any() else None,
                    "n": found.n,
                }
            )
            notes += found.notes
        return EstimateTable(
            kind="estimands",
            title=title_of(sample, n or sample.size, target),
            rows=tuple(rows),
            confidence_level=confidence_level,
            notes=tuple(dict.fromkeys(notes)),
        )
