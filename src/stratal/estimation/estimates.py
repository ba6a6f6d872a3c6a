"""`Estimates`: several estimates from the same labels, a sequence of `Estimate` with a label each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from stratal.errors import InputError, MissingExtraError
from stratal.estimation.estimate import Estimate
from stratal.estimation.linearisation import difference_of
from stratal.intervals.simultaneous import Together
from stratal.labels.meanings import Meaning, values_described
from stratal.report import Intervals, Page, Plotted, Printed, estimates_table, noted
from stratal.report.document import table_latex, table_markdown
from stratal.report.text import Table

if TYPE_CHECKING:
    from stratal.designs.sample import Sample


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimates(Sequence[Estimate], Printed, Plotted):
    """Several estimates from the same labels: of estimands, classes, groups or pairs of models.

    Parameters
    ----------
    estimates : tuple of Estimate
        Each with its `label`, such as `{"metric": "recall", "class": "cat"}`.
    kind : str
        What the rows are: `estimands`, `metrics`, `domains`, `outcomes` or `comparisons`.
    title : str
    remarks : tuple of str
        What concerns all of them.
    label_values : tuple of Meaning
        What each distinct raw value of the labels counts as, and how many have it.

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=20).draw(
    ...     stratal.Population.from_arrays(groups={"language": ["de", "en"] * 50}), seed=1)
    >>> found = stratal.estimate(sample, [1, 0] * 10, by="language")
    >>> [row.label["domain"] for row in found], found.of(domain="de") is found[0]
    (['de', 'en'], True)
    """

    estimates: tuple[Estimate, ...]
    kind: str
    title: str
    remarks: tuple[str, ...] = ()
    label_values: tuple[Meaning, ...] = field(default=(), repr=False, compare=False)

    @overload
    def __getitem__(self, place: int) -> Estimate: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Estimate, ...]: ...
    def __getitem__(self, place: int | slice) -> Estimate | tuple[Estimate, ...]:
        return self.estimates[place]

    def __len__(self) -> int:
        return len(self.estimates)

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.estimates)

    def of(self, **label: str | None) -> Estimate:
        """Return the one estimate whose label holds all of `label`.

        Raises
        ------
        InputError
            If none does, or several do.
        """
        found = [row for row in self if all(row.label.get(name) == value for name, value in label.items())]
        if len(found) != 1:
            raise InputError(
                f"{len(found) or 'no'} estimate{'s have' if len(found) > 1 else ' has'} this label",
                given=", ".join(f"{name}={value!r}" for name, value in label.items()),
                allowed="; ".join(_named(row) for row in self.estimates[:5]),
            )
        return found[0]

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know of all, and then of each by its name."""
        own = [f"{_named(row)}: {note}" for row in self for note in row.remarks if note not in self.remarks]
        return tuple(dict.fromkeys([*self.remarks, *own]))

    def differences(self, *, simultaneous: bool = True, seed: int = 0) -> Estimates:
        """Return the differences of all pairs, with intervals that hold together unless told otherwise.

        Each interval is made of the two estimates' own (Zou & Donner 2008), its level of the largest of the
        correlated differences.
        """
        pairs = [(a, b) for a, b in combinations(self.estimates, 2)]
        found = [
            replace(difference_of(a, b), label={"a": _named(a), "b": _named(b)}, design=a.design)
            for a, b in pairs
        ]
        return replace(
            self,
            estimates=in_family(found, seed) if simultaneous else tuple(found),
            kind="comparisons",
            title=self.title + (", simultaneous" if simultaneous and len(found) > 1 else ""),
        )

    def rows(self, confidence_level: float = 0.95) -> list[dict[str, Any]]:
        """Return a plain dict for each: label, estimate, standard error, interval, number of labels."""
        return [row.row(confidence_level) for row in self]

    def to_dict(self, confidence_level: float = 0.95) -> dict[str, Any]:
        """Return a JSON-ready dict."""
        return {
            self.kind: self.rows(confidence_level),
            "confidence_level": confidence_level,
            **values_described(self.label_values),
            "notes": list(self.notes),
        }

    def to_pandas(self, confidence_level: float = 0.95) -> Any:
        """Return a pandas dataframe, a row for each, the interval in two columns.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise MissingExtraError("pandas", extra="pandas") from None
        rows = self.rows(confidence_level)
        ends = [row.pop("confidence_interval") or (np.nan, np.nan) for row in rows]
        return pandas.DataFrame(
            [{**row, "low": low, "high": high} for row, (low, high) in zip(rows, ends, strict=True)]
        )

    def to_markdown(self, confidence_level: float = 0.95) -> str:
        """Return a table in Markdown."""
        return table_markdown(self.table(confidence_level))

    def to_latex(self, confidence_level: float = 0.95) -> str:
        """Return a table in LaTeX, with the rules of booktabs."""
        return table_latex(self.table(confidence_level))

    def table(self, confidence_level: float = 0.95) -> Table:
        """Return the table that is printed."""
        return estimates_table(self.title, self.rows(confidence_level), confidence_level)

    def page(self, confidence_level: float = 0.95) -> Page:
        """Return what is printed."""
        return Page(tables=[self.table(confidence_level)], notes=noted(self.notes))

    def _page(self) -> Page:
        return self.page()

    def _plot(self) -> Intervals:
        tested = any(row.null is not None for row in self)
        rows = [(_named(row), row.value, row.limits()) for row in self]
        return Intervals(
            title=self.title,
            x_label="difference" if tested else "estimate",
            rows=rows,
            confidence_level=0.95,
            level=0.0 if tested else None,
        )


def in_family(found: Sequence[Estimate], seed: int = 0) -> tuple[Estimate, ...]:
    """Return estimates whose intervals and p-values hold together."""
    known = [row for row in found if row.evidence.own is not None and np.isfinite(row.value)]
    if len(known) < 2:
        return tuple(found)
    weighting = known[0].evidence.weighting
    covariance = weighting.covariance(np.column_stack([row.evidence.residuals for row in known]))
    if known[0].target == "superpopulation":
        covariance += weighting.population_covariance(np.column_stack([row.evidence.z for row in known]))
    together = Together.of(covariance, [row.degrees_of_freedom for row in known], seed)
    return tuple(_member(row, together) if np.isfinite(row.value) else row for row in found)


def _member(row: Estimate, together: Together) -> Estimate:
    own = row.evidence.own
    assert own is not None
    return replace(row, evidence=replace(row.evidence, own=together.member(own)))


def _named(row: Estimate) -> str:
    """Return a row's name: its label's words."""
    between = " − " if row.null is not None else " "
    return between.join(str(value) for value in row.label.values() if value is not None)


def with_tables(
    described: dict[str, Any],
    tables: Sequence[Estimates],
    confidence_level: float = 0.95,
    remarks: Sequence[str] = (),
) -> dict[str, Any]:
    """Return an estimate's dict with the rows and notes of tables from the same labels, and then remarks."""
    given = [table.to_dict(confidence_level) for table in tables]
    rows = {
        name: value
        for each in given
        for name, value in each.items()
        if name not in ("confidence_level", "notes")
    }
    notes = [*described["notes"], *(note for each in given for note in each["notes"])]
    return described | rows | {"notes": [*dict.fromkeys(notes), *remarks]}


def title_of(sample: Sample, n: int, target: str, about: str = "", how: str = "") -> str:
    """Return a table's heading: labels and units, what was asked for, the design and the target."""
    size = f"{n:,} labels of {sample.population_size:,} units"
    return f"{size}{about}, {sample.design.kind} sample{how}, target: {target}"
