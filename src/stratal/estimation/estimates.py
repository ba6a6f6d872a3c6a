"""`Estimates`: several estimates from the same labels, with tables and simultaneous intervals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Self, TypeVar, overload

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.designs.sample import Sample
from stratal.errors import InputError, optional_import
from stratal.estimation.estimate import Estimate, difference_of, warnings_entry
from stratal.intervals.methods import check_method_applies
from stratal.intervals.simultaneous import SimultaneousLevel
from stratal.labels.joined_labels import JoinedLabels
from stratal.labels.label_interpretation import LabelInterpretation, interpretation_notes
from stratal.labels.label_values import LabelValue, describe_label_values
from stratal.protocols import JsonDict
from stratal.report.estimates import estimates_table
from stratal.report.figures import Intervals, PlotDisplay
from stratal.report.notes import Note, as_notes
from stratal.report.text import Page, PageDisplay, ReportTable, format_notes, json_value


class ComputedRows(Sequence[Estimate], ABC):
    """Estimates that are computed when they are read, because there may be too many to store."""

    __slots__ = ()

    @property
    @abstractmethod
    def values(self) -> FloatArray:
        """The estimates (m,), without their errors."""

    @property
    @abstractmethod
    def counts(self) -> IntArray:
        """The numbers of labels of the estimates (m,)."""

    @abstractmethod
    def label(self, index: int) -> dict[str, str]:
        """Return the label of an estimate."""

    @abstractmethod
    def with_own_notes(self) -> Iterator[Estimate]:
        """Yield the estimates that may have notes, in addition to those of the table."""

    def lowest_rows(
        self, n_lowest: int, confidence_level: float, method: str, read: LabelInterpretation | None
    ) -> list[JsonDict]:
        """Return a JSON-ready dict for each; only the lowest have a standard error and an interval."""
        values = self.values
        lowest_indices = np.argsort(values, kind="stable")[:n_lowest].tolist()
        lowest = {index: self[index].row(confidence_level, read, method) for index in lowest_indices}
        is_share = any(row["share"] for row in lowest.values())
        rows: list[JsonDict] = []
        for index, (value, count) in enumerate(zip(values.tolist(), self.counts.tolist(), strict=True)):
            row = lowest.get(index)
            if row is None:
                row = {
                    **self.label(index),
                    "share": is_share,
                    "estimate": None,
                    "standard_error": None,
                    "confidence_interval": None,
                    "n": count,
                }
            # The value of the complete row may differ in the last digit, and rows would then be out of order.
            rows.append(row | {"estimate": json_value(value)})
        return rows


# Kinds of tables that compare judges with annotators. Some are added without a request of the user.
_JUDGE_KINDS = ("judge", "judge_groups")


def with_intervals(tables: Iterable[Estimates], method: str) -> list[Estimates]:
    """Return tables with intervals by this method, except comparisons of judges, which keep their own.

    Raises
    ------
    InputError
        If it is not a method of the estimates of a table.
    """
    return [table if table.kind in _JUDGE_KINDS else table.with_interval(method) for table in tables]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Estimates(Sequence[Estimate], PageDisplay, PlotDisplay):
    """Several estimates from the same labels: for estimands, classes, groups or pairs of models.

    Parameters
    ----------
    estimates : sequence of Estimate
        Each has a `label`, such as `{"metric": "recall", "class": "cat"}`.
    kind : str
        Kind of the rows: `estimands`, `metrics`, `domains`, `outcomes` or `comparisons`.
    title : str
    remarks : tuple of str
        Notes on all estimates.
    joint : float (m, m), optional
        Covariance of the estimates, if it is not that of their influences.
    read : LabelInterpretation, optional
        The interpretation of the labels.
    interval : str
        Method of the intervals in tables and dicts; see `with_interval`.

    Examples
    --------
    >>> import stratal
    >>> sample = stratal.designs.SimpleRandom(budget=20).draw(
    ...     stratal.Population.from_arrays(groups={"language": ["de", "en"] * 50}), seed=1)
    >>> estimates = stratal.estimate(sample, [1, 0] * 10, by="language")
    >>> [row.label["domain"] for row in estimates], estimates.of(domain="de") is estimates[0]
    (['de', 'en'], True)
    """

    estimates: Sequence[Estimate]
    kind: str
    title: str
    remarks: tuple[str, ...] = ()
    joint: FloatArray | None = field(default=None, repr=False, compare=False)
    read: LabelInterpretation | None = field(default=None, repr=False, compare=False)
    interval: str = "auto"

    @classmethod
    def from_rows(
        cls,
        sample: Sample,
        rows: Sequence[Estimate],
        kind: str,
        remarks: Sequence[str] = (),
        subject: str = "",
        **more: Any,
    ) -> Self:
        """Return estimates of a sample, with their title and without duplicate remarks."""
        first = rows[0]
        # Computed rows have the same labels; reading each one for its number would compute all.
        if isinstance(rows, ComputedRows):
            labels = first.labels
        else:
            labels = max(row.labels for row in rows)
            rows = tuple(rows)
        size = f"{labels:,} labels of {sample.population_size:,} units"
        title = f"{size}{subject}, {sample.design.kind} sample, target: {first.target}"
        return cls(estimates=rows, kind=kind, title=title, remarks=tuple(dict.fromkeys(remarks)), **more)

    @overload
    def __getitem__(self, index: int) -> Estimate: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Estimate]: ...
    def __getitem__(self, index: int | slice) -> Estimate | Sequence[Estimate]:
        return self.estimates[index]

    def __len__(self) -> int:
        return len(self.estimates)

    def of(self, **label: str | None) -> Estimate:
        """Return the only estimate whose label contains all entries of `label`.

        Raises
        ------
        InputError
            If no estimate, or several, have these entries.
        """
        rows = self.estimates
        labels: list[Mapping[str, str | None]]
        if isinstance(rows, ComputedRows):
            labels = [rows.label(index) for index in range(len(rows))]
        else:
            labels = [row.label for row in rows]
        matches = [
            index
            for index, row_label in enumerate(labels)
            if all(row_label.get(name) == value for name, value in label.items())
        ]
        if len(matches) != 1:
            subject = "no estimate has"
            if matches:
                subject = f"{len(matches)} estimates have"
            label_text = ", ".join(f"{name}={value!r}" for name, value in label.items())
            allowed = "; ".join(_row_name(row) for row in self.estimates[:5])
            raise InputError(f"{subject} this label", given=label_text, allowed=allowed)
        return rows[matches[0]]

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on all estimates, then notes on single estimates with their names."""
        rows: dict[Note, list[str]] = {}
        noted_rows = self.estimates
        if isinstance(noted_rows, ComputedRows):
            noted_rows = list(noted_rows.with_own_notes())
        for row in noted_rows:
            for note in dict.fromkeys(row.general_notes):
                rows.setdefault(note, []).append(_row_name(row))
        of_all = interpretation_notes(self.read, self.remarks)
        row_notes = [
            Note(note.code, f"{_joined_names(names)}: {note}")
            for note, names in rows.items()
            if note not in of_all
        ]
        return as_notes([*of_all, *row_notes])

    @property
    def label_values(self) -> tuple[LabelValue, ...]:
        """The number for each distinct raw value of the labels, and how many labels have it."""
        if self.read is None:
            return ()
        return self.read.table

    def differences(self, *, simultaneous: bool = True, seed: int = 0) -> Estimates:
        """Return the differences between all pairs, by default with simultaneous intervals.

        By default, each interval is computed from those of the two estimates (Zou & Donner 2008). A method of
        `with_interval` is kept if differences support it, and otherwise named in a remark. The simultaneous
        level is based on the distribution of the largest of the correlated differences.
        """
        differences = []
        for pair in combinations(range(len(self)), 2):
            first = self[pair[0]]
            second = self[pair[1]]
            joint = None
            if self.joint is not None:
                joint = self.joint[np.ix_(pair, pair)]
            difference = difference_of(first, second, joint)
            label = {"a": _row_name(first), "b": _row_name(second)}
            differences.append(replace(difference, label=label, design=first.design))
        comparisons = Estimates(
            estimates=tuple(differences), kind="comparisons", title=self.title, remarks=self.remarks
        )
        try:
            comparisons = comparisons.with_interval(self.interval)
        except InputError:
            remark = (
                f"the interval method {self.interval!r} is not available for differences, which use 'auto'"
            )
            comparisons = replace(comparisons, remarks=(*self.remarks, remark))
        if simultaneous:
            return comparisons.simultaneous(seed=seed)
        return comparisons

    def with_interval(self, method: str) -> Self:
        """Return the estimates with intervals by this method in their tables and dicts.

        Raises
        ------
        InputError
            If these estimates do not support the method.
        """
        rows = self.estimates
        # Computed rows are all of one kind; reading each one would compute all.
        if isinstance(rows, ComputedRows):
            rows = rows[:1]
        for row in rows:
            check_method_applies(row.evidence, method)
        return replace(self, interval=method)

    def simultaneous(self, seed: int = 0) -> Self:
        """Return the estimates with simultaneous intervals and p-values.

        Parameters
        ----------
        seed : int
            Seed of the simulated distribution of the largest correlated statistic.
        """
        is_defined = np.isfinite(self.values)
        # One interval needs no correction for others.
        if is_defined.sum() < 2:
            return self
        dfs = [self[k].degrees_of_freedom for k in np.flatnonzero(is_defined).tolist()]
        shared_level = SimultaneousLevel.of(self.covariance[np.ix_(is_defined, is_defined)], dfs, seed)
        shared_df = shared_level.degrees_of_freedom
        rows = list(self)
        for k in np.flatnonzero(is_defined).tolist():
            evidence = rows[k].evidence
            # The simultaneous level is that of the smallest df, which each interval therefore uses.
            interval = None
            if evidence.interval is not None:
                interval = evidence.interval.with_df(min(rows[k].degrees_of_freedom, shared_df))
            evidence = replace(
                evidence,
                interval=interval,
                degrees_of_freedom=min(evidence.degrees_of_freedom, shared_df),
                simultaneous=shared_level,
            )
            rows[k] = replace(rows[k], evidence=evidence)
        return replace(self, estimates=tuple(rows), title=f"{self.title}, simultaneous")

    @property
    def values(self) -> FloatArray:
        """The estimates (m,)."""
        if isinstance(self.estimates, ComputedRows):
            return self.estimates.values
        return np.array([row.value for row in self])

    @property
    def standard_errors(self) -> FloatArray:
        """The standard errors (m,)."""
        return np.array([row.standard_error for row in self])

    @property
    def covariance(self) -> FloatArray:
        """The covariance matrix (m, m) of the estimates, which use the same labels."""
        if self.joint is not None:
            return self.joint
        weighting = self[0].evidence.weighting
        counts = {row.evidence.n for row in self}
        if len(counts) > 1:
            counts_text = ", ".join(f"{count} labels" for count in sorted(counts))
            action = "Combine only estimates that use all labels, or the same labels."
            raise InputError(
                "these estimates do not use the same labelled units", given=counts_text, action=action
            )
        covariance = weighting.covariance(np.column_stack([row.evidence.residuals for row in self]))
        # With too few labels, the covariance is NaN, and a finite term does not change this.
        if self[0].target == "superpopulation" and np.all(np.isfinite(covariance)):
            outcomes = np.column_stack([row.evidence.z for row in self])
            covariance = covariance + weighting.superpopulation_covariance(outcomes)
        return covariance

    def confidence_interval(
        self, confidence_level: float = 0.95, method: str | None = None, alternative: str = "two-sided"
    ) -> tuple[FloatArray, FloatArray]:
        """Return the lower and the upper limits, (m,) each; by default with the method of `with_interval`."""
        method = method or self.interval
        ends = [row.confidence_interval(confidence_level, method, alternative) for row in self]
        return np.array([end.low for end in ends]), np.array([end.high for end in ends])

    def p_values(
        self, null: object = 0.0, method: str | None = None, alternative: str = "two-sided"
    ) -> FloatArray:
        """Return the p-values (m,) of the hypotheses that the values are `null`, one number or (m,).

        By default they are those of the method of `with_interval`.
        """
        method = method or self.interval
        nulls = np.asarray(null, dtype=np.float64)
        if nulls.shape not in ((), (len(self),)):
            allowed = f"({len(self)},)"
            raise InputError(
                "null must be one number or one per estimate", given=nulls.shape, allowed=allowed
            )
        pairs = zip(self, np.broadcast_to(nulls, len(self)).tolist(), strict=True)
        return np.array([row.p_value(row_null, method, alternative) for row, row_null in pairs])

    def rows(self, confidence_level: float = 0.95) -> list[JsonDict]:
        """Return a plain dict for each: label, estimate, standard error, interval, number of labels."""
        return [row.row(confidence_level, self.read, self.interval) for row in self]

    def to_dict(self, confidence_level: float = 0.95) -> JsonDict:
        """Return a JSON-ready dict."""
        return self._described(self.rows(confidence_level), confidence_level)

    def lowest_to_dict(self, n_lowest: int, confidence_level: float = 0.95) -> JsonDict:
        """Return `to_dict`; of very many rows, only the lowest have standard errors and intervals."""
        if not isinstance(self.estimates, ComputedRows):
            return self.to_dict(confidence_level)
        rows = self.estimates.lowest_rows(n_lowest, confidence_level, self.interval, self.read)
        return self._described(rows, confidence_level)

    def _described(self, rows: list[JsonDict], confidence_level: float) -> JsonDict:
        """Return the JSON-ready dict with these rows."""
        return {
            self.kind: rows,
            "confidence_level": confidence_level,
            **describe_label_values(self.label_values),
            "notes": list(self.notes),
            **warnings_entry(self.notes),
        }

    def to_pandas(self, confidence_level: float = 0.95) -> Any:
        """Return a pandas dataframe with a row for each estimate, and the interval in two columns.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        """
        with optional_import("pandas", extra="pandas"):
            import pandas
        rows = self.rows(confidence_level)
        ends = [row.pop("confidence_interval") or (np.nan, np.nan) for row in rows]
        return pandas.DataFrame(
            [{**row, "low": low, "high": high} for row, (low, high) in zip(rows, ends, strict=True)]
        )

    def to_markdown(self, confidence_level: float = 0.95) -> str:
        """Return a table in Markdown."""
        # Rendering is imported only when a table is written.
        from stratal.report.document import table_markdown

        return table_markdown(self.table(confidence_level))

    def to_latex(self, confidence_level: float = 0.95) -> str:
        """Return a table in LaTeX, with the rules of booktabs."""
        # Rendering is imported only when a table is written.
        from stratal.report.document import table_latex

        return table_latex(self.table(confidence_level))

    def table(self, confidence_level: float = 0.95) -> ReportTable:
        """Return the table that is printed."""
        return estimates_table(self.title, self.rows(confidence_level), confidence_level)

    def page(self, confidence_level: float = 0.95) -> Page:
        """Return the page to print."""
        return Page(tables=[self.table(confidence_level)], notes=format_notes(self.notes))

    def __repr__(self) -> str:
        return f"<Estimates: {self.title or self.kind}, {len(self):,} rows>"

    def _page(self) -> Page:
        return self.page()

    def _plot(self) -> Intervals:
        are_compared = any(row.null is not None for row in self)
        rows = [(_row_name(row), row.value, row.limits(method=self.interval)) for row in self]
        return Intervals(
            title=self.title,
            x_label="difference" if are_compared else "estimate",
            rows=rows,
            confidence_level=0.95,
            reference=0.0 if are_compared else None,
        )


def _joined_names(names: Sequence[str]) -> str:
    """Return names as a phrase, with at most two of them."""
    if len(names) < 3:
        return " and ".join(names)
    return f"{names[0]}, {names[1]} and {len(names) - 2} more"


def _row_name(row: Estimate) -> str:
    """Return the name of a row: the values of its label."""
    between = " − " if row.null is not None else " "
    return between.join(str(value) for value in row.label.values() if value is not None)


EstimateType = TypeVar("EstimateType", bound=Estimate | Estimates)


def with_label_values(
    result: EstimateType,
    columns: Mapping[str, object],
    answers: set[str] | None = None,
    *,
    classes: bool = False,
    is_right: bool = False,
) -> EstimateType:
    """Return an estimate with the interpretation of its labels.

    `columns` are joined labels by the name of their column, which is "" for a single column.
    """
    joined = {name: labels for name, labels in columns.items() if isinstance(labels, JoinedLabels)}
    read = LabelInterpretation(columns=joined, answers=answers, classes=classes, is_right=is_right)
    if classes:
        # Raises an error for an unknown word when the labels are read, not when the table is displayed.
        read.table  # noqa: B018
    return replace(result, read=read)


def with_tables(
    described: JsonDict,
    tables: Sequence[Estimates],
    confidence_level: float = 0.95,
    remarks: Sequence[str] = (),
    lowest: int | None = None,
) -> JsonDict:
    """Return an estimate's dict with the rows and notes of tables from the same labels, and then remarks.

    `lowest` is the number of rows with standard errors and intervals if there are very many rows.
    """
    if lowest is None:
        described_tables = [table.to_dict(confidence_level) for table in tables]
    else:
        described_tables = [table.lowest_to_dict(lowest, confidence_level) for table in tables]
    notes = [note for each in [*described_tables, described] for note in each["notes"]]
    # The confidence level is already an entry of the estimate's dict.
    rows = {
        name: value for each in described_tables for name, value in each.items() if name != "confidence_level"
    }
    # A judge that is worse in a group is a warning, not only a note.
    warned = [note for table in tables if table.kind == "judge_groups" for note in table.remarks]
    combined = described | rows | {"notes": [*dict.fromkeys(notes), *remarks]}
    return combined | warnings_entry(notes, warned)
