"""A list of estimands on the same labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from stratal.designs.sample import Sample
from stratal.errors import InputError
from stratal.estimation.estimand import Estimand, Several
from stratal.estimation.estimate import Estimate
from stratal.estimation.estimates import Estimates, title_of
from stratal.estimation.request import PLAIN, Request
from stratal.population.population import Population


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

    def label_columns(self, sample: Sample) -> tuple[str, ...]:
        """Return the columns that all of them take."""
        each = [entry.label_columns(sample) for entry in self.estimands]
        return each[0] if all(own == each[0] for own in each) else ()

    def compares(self, predicted: str | bool, kept: str | None) -> bool:
        """Return whether all of them compare labels with this column of answers."""
        return all(entry.compares(predicted, kept) for entry in self.estimands)

    def estimate(self, sample: Sample, labels: Any, request: Request = PLAIN) -> Estimates:
        """Return an estimate of each, labelled by its text and, of several, by the label of each."""
        rows: list[Estimate] = []
        remarks: list[str] = []
        request = Request(target=request.target, population=request.population)
        for entry in self.estimands:
            found = entry.estimate(sample, labels, request)
            remarks += found.remarks if isinstance(found, Estimates) else ()
            each = found if isinstance(found, Estimates) else [found]
            rows += [replace(row, label={"estimand": entry.text} | dict(row.label)) for row in each]
        return Estimates(
            estimates=tuple(rows),
            kind="estimands",
            title=title_of(sample, max(row.labels for row in rows), request.target),
            remarks=tuple(dict.fromkeys(remarks)),
        )
