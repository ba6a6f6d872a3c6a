"""`EstimateTable`: several estimates at one confidence level, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stratal.report import Intervals, Page, Plotted, Printed, estimates_table, leaderboard_table, noted

if TYPE_CHECKING:
    from stratal.sampling.sample import Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateTable(Printed, Plotted):
    """A table of estimates.

    Parameters
    ----------
    kind : str
        What the rows are called in `to_dict`: `metrics`, `comparisons`, `domains`, …
    title : str
    rows : tuple of dict
        Plain numbers and text; None where something is undefined.
    confidence_level : float
    notes : tuple of str
    leaderboard : tuple of dict
        Of a comparison: models from the best, with `rank`, `model`, `mean`, `confidence_interval`, and their
        difference `to_best` with its interval.

    Examples
    --------
    >>> row = {"metric": "recall", "class": "cat", "estimate": 0.8, "standard_error": 0.1,
    ...        "confidence_interval": [0.55, 0.95], "n": 20}
    >>> print(EstimateTable(kind="metrics", title="Metrics", rows=(row,), confidence_level=0.95))
    Metrics
    metric  class  estimate  standard error      95% interval   n
    recall  cat      0.8000          0.1000  0.5500 to 0.9500  20
    """

    kind: str
    title: str
    rows: tuple[dict[str, Any], ...]
    confidence_level: float
    notes: tuple[str, ...] = ()
    leaderboard: tuple[dict[str, Any], ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def row(self, **wanted: Any) -> dict[str, Any]:
        """Return the one row whose entries are as given: `table.row(metric="recall", **{"class": "cat"})`.

        Raises
        ------
        KeyError
            If there is not exactly one.
        """
        found = [row for row in self.rows if all(row.get(name) == value for name, value in wanted.items())]
        if len(found) != 1:
            raise KeyError(f"{len(found)} rows have {wanted}")
        return found[0]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON twin."""
        return {
            self.kind: [dict(row) for row in self.rows],
            "confidence_level": self.confidence_level,
            "notes": list(self.notes),
        } | ({"leaderboard": [dict(row) for row in self.leaderboard]} if self.leaderboard else {})

    def _page(self) -> Page:
        table = estimates_table(self.title, self.rows, self.confidence_level)
        first = [leaderboard_table(self.leaderboard, self.confidence_level)] if self.leaderboard else []
        return Page(tables=[*first, table], notes=noted(self.notes))

    def _plot(self) -> Intervals:
        """Draw the models of a comparison from the best; else a row for each estimate or difference."""
        if self.leaderboard:
            rows = [(row["model"], row["mean"], row["confidence_interval"]) for row in self.leaderboard]
            return self._intervals(rows, "mean outcome")
        differences = any("difference" in row for row in self.rows)
        value = "difference" if differences else "estimate"
        return self._intervals(
            [(_name_of(row), row.get(value), row.get("confidence_interval")) for row in self.rows],
            value,
            0.0 if differences else None,
        )

    def _intervals(self, rows: list[Any], x_label: str, level: float | None = None) -> Intervals:
        return Intervals(
            title=self.title,
            x_label=x_label,
            rows=rows,
            confidence_level=self.confidence_level,
            level=level,
        )


def _name_of(row: dict[str, Any]) -> str:
    """Return what a row is called: the texts that come before its figures."""
    names = [str(value) for value in row.values() if isinstance(value, str)]
    return (" − " if "difference" in row else " ").join(names)


def with_tables(
    described: dict[str, Any], tables: Sequence[EstimateTable], remarks: Sequence[str] = ()
) -> dict[str, Any]:
    """Return an estimate's dict with the rows and notes of tables, and with other remarks.

    Examples
    --------
    >>> table = EstimateTable(kind="domains", title="", rows=({"domain": "a"},), confidence_level=0.9)
    >>> with_tables({"notes": ["few"]}, [table], ["new"])
    {'notes': ['few', 'new'], 'domains': [{'domain': 'a'}]}
    """
    found = dict(described)
    for table in tables:
        given = table.to_dict()
        found |= {name: given[name] for name in (table.kind, "leaderboard") if name in given}
    notes = [*found["notes"], *(note for table in tables for note in table.notes)]
    return found | {"notes": [*dict.fromkeys(notes), *remarks]}


def title_of(sample: Sample, n: int, target: str, about: str = "", how: str = "") -> str:
    """Return what a table of estimates from n labels of a sample is called.

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.SimpleRandom(budget=1).draw(stratal.Population.from_arrays(proxy=[0.1, 0.5]), seed=7)
    >>> title_of(sample, 1, "population")
    '1 labels of 2 units, simple-random sample, target: population'
    """
    size = f"{n:,} labels of {sample.population_size:,} units"
    return f"{size}{about}, {sample.design.kind} sample{how}, target: {target}"
