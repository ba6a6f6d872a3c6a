"""`Population`: N units with ids, proxies, groups and features, in memory or in a table.

Its methods do all work on N units. Their results are small: bins, summaries per stratum, or drawn units.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Unpack

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray
from stratal.errors import InputError, keywords_from, suggest_names, type_text
from stratal.population.declaration import ArrayKeywords, FileKeywords, TableKeywords
from stratal.population.digest import DigestedColumns, PopulationDigest, exponent_of
from stratal.population.distribution import (
    Distribution,
    LevelBins,
    LevelDistributions,
    ProxyCounter,
    build_distribution,
)
from stratal.population.drawn_units import Candidates, DrawnUnits
from stratal.population.expressions import ArrayEvaluator, Expression, columns_read
from stratal.population.proxy_info import ProxyInfo
from stratal.population.rules import Rule
from stratal.population.size_measure import SizeMeasure, SizeProfile
from stratal.population.summary import StratumSummary
from stratal.question.question import Outcome
from stratal.question.roles import ColumnRoles
from stratal.question.scores import Score
from stratal.randomness import KeyArray, check_seed, rank_smallest, thresholds
from stratal.tables.source import ReadOptions

# Columns of numbers by name, as arrays or Ibis columns, each with its smallest and largest value.
NumberColumns = dict[str, tuple[Any, tuple[float, float]]]

# Number of units that `Population.batches` yields at once.
DEFAULT_BATCH_SIZE = 2**18

# Keywords in the line of code that an error message proposes.
_EXAMPLE_KEYWORDS = "id='ID', proxy='PROXY'"


# Name under which `Population.batches` yields the ids. No column has it, as names cannot contain NUL.
UNIT_ID = "\0id"


@dataclass(kw_only=True, eq=False, repr=False)
class Population(ABC):
    """N units with ids, one or more proxies, optional groups and features.

    Build one with `Population.read` (a file), `Population.from_arrays` or `Population.from_table` (any
    dataframe, or an Ibis table). Its rows are in memory or stay in a table; both have the same methods.

    Examples
    --------
    >>> population = Population.from_arrays(proxy=[0.9, 0.2, 0.6])
    >>> population.size, population.proxy_names
    (3, ('proxy',))
    """

    # Functions that build a population from arrays, a classifier, a file and a table. `building.py` registers
    # them, because it imports the implementations, which import this module.
    builders: ClassVar[dict[str, Callable[..., Population]]] = {}

    # Number of units, N.
    size: int

    # The proxies. Strata are intervals of the first one unless another is named.
    proxies: tuple[ProxyInfo, ...] = ()

    # Group columns: categories by which to stratify or to report results.
    group_names: tuple[str, ...] = ()

    # Columns that are shown to the annotators.
    shown_names: tuple[str, ...] = ()

    # Numeric columns for clustering and regression.
    feature_names: tuple[str, ...] = ()

    # Name of the id column.
    id_name: str = "id"

    # Columns with the model's answer, verdicts of judges and others. Those with categories are also groups;
    # samples store them, and annotators never see them.
    roles: ColumnRoles = field(default_factory=ColumnRoles)

    # Format of the sets of tags in the model's answers, if it was declared; see `Outcome.tag_format`.
    tags: str | None = None

    # Outcome of the labels, if their scale was declared separately from that of the proxies.
    label_outcome: Outcome = field(default_factory=Outcome)

    # The quantity that each proxy is declared to predict, by name; see `Score`. For other proxies, it is
    # inferred.
    predicts: Mapping[str, str] = field(default_factory=dict)

    # Notes from reading the units, such as omitted blank rows, a recognised softmax and missing proxies.
    notes: tuple[str, ...] = ()

    # Whether units in memory have no stored ids. Their ids are then the row numbers 0 … N − 1. Other units
    # have stored ids, which are also row numbers for a file without a column of ids.
    numbered_by_row: bool = False

    # The number of the first row if the ids are row numbers, stored or not; None for other ids.
    row_base: int | None = None

    # Name of the group whose level `missing` contains the units without a proxy; None if there are none.
    missing_proxy_group: str | None = None

    _distributions: dict[str, Distribution] = field(init=False, default_factory=dict)
    _level_distributions: dict[tuple[str, str], LevelDistributions] = field(init=False, default_factory=dict)
    _digests: dict[int, PopulationDigest] = field(init=False, default_factory=dict)

    # ---- columns

    @property
    def proxy_names(self) -> tuple[str, ...]:
        """Names of the proxies."""
        return tuple(info.name for info in self.proxies)

    def proxy_info(self, name: str | None = None) -> ProxyInfo:
        """Return the description of a proxy: the first one, or the one with this name."""
        if not self.proxies:
            action = "Name a proxy column, or draw a simple random sample."
            raise InputError("this population has no proxy", action=action)
        for info in self.proxies:
            if name in (None, info.name):
                return info
        raise InputError(f"no such proxy: {name!r}", allowed=suggest_names(str(name), self.proxy_names))

    @property
    def scores(self) -> tuple[Score, ...]:
        """The quantity that each proxy predicts, as declared or inferred from its scale."""
        scores = []
        for info in self.proxies:
            if info.name in self.predicts:
                score = Score(name=info.name, predicts=self.predicts[info.name], declared=True)
            else:
                score = info.score(self.roles.answer)
            scores.append(score)
        return tuple(scores)

    @property
    def label_bounds(self) -> tuple[float, float] | None:
        """Bounds of the labels, if they were declared separately from the scale of the proxies."""
        return self.label_outcome.limits

    def require_group(self, name: str) -> str:
        """Return `name` if it is a group column, else raise an `InputError` that lists the group columns."""
        if name not in self.group_names:
            if self.group_names:
                allowed = suggest_names(name, self.group_names)
            else:
                allowed = "none was named"
            raise InputError(
                f"no such group column: {name!r}", allowed=allowed, action="Name the column in groups=."
            )
        return name

    def __repr__(self) -> str:
        named = {"proxies": self.proxy_names, "groups": self.group_names, "features": self.feature_names}
        columns_text = "".join(f", {role}={list(names)}" for role, names in named.items() if names)
        return f"Population({self.size:,} units{columns_text})"

    # ---- distributions

    def distribution(self, proxy: str | None = None) -> Distribution:
        """Return the distribution of a proxy (default: the first)."""
        info = self.proxy_info(proxy)
        if info.name not in self._distributions:
            distribution = build_distribution(self._counter(info), scaled=info.scaled, bounds=info.bounds)
            self._distributions[info.name] = distribution
        return self._distributions[info.name]

    def distributions(self, by: str, proxy: str | None = None) -> LevelDistributions:
        """Return the distribution of a proxy within each level of a group column, by sorted level."""
        info = self.proxy_info(proxy)
        key = self.require_group(by), info.name
        if key not in self._level_distributions:
            self._level_distributions[key] = LevelDistributions(
                self._level_bins(by, info), scaled=info.scaled, bounds=info.bounds
            )
        return self._level_distributions[key]

    def with_row_base(self, base: int | None) -> Population:
        """Return the population with row numbers from `base`; unchanged if ids are not row numbers."""
        if base is None or self.row_base is None or self.row_base == base:
            return self
        return self._renumbered(base)

    @abstractmethod
    def _renumbered(self, base: int) -> Population:
        """Return the population with row numbers that start at `base`."""

    def digest_of_draw(self, seed: int) -> PopulationDigest | Callable[[], PopulationDigest]:
        """Return the digest for a sample that was just drawn, or a function that computes it when needed."""
        return self.digest(seed)

    # ---- operations on all rows, in memory or in a table

    @abstractmethod
    def _counter(self, info: ProxyInfo) -> ProxyCounter:
        """Return the object that counts the values of a proxy for its distribution."""

    @abstractmethod
    def extent(self, name: str) -> tuple[float, float]:
        """Return the smallest and the largest value of a proxy."""

    @abstractmethod
    def _level_bins(self, by: str, info: ProxyInfo) -> LevelBins:
        """Return the bins of a proxy's values within each level of a group column, levels sorted."""

    @abstractmethod
    def levels(self, group: str) -> dict[str, int]:
        """Return the number of units in each level of a group column, levels sorted as text."""

    def codes(self, rule: Rule) -> IntArray | None:
        """Return each unit's stratum (N,), or `None` if the rows are not in memory."""
        return None

    @abstractmethod
    def summarise(self, rule: Rule) -> StratumSummary:
        """Return sizes and proxy moments per stratum of `rule`."""

    def units_with_smallest_keys(self, rule: Rule, counts: IntArray, seed: int) -> DrawnUnits:
        """Return the `counts` (H,) units of each stratum with the smallest permanent random numbers."""
        seed = check_seed(seed)
        counts = np.asarray(counts, np.int64)
        sizes = self.summarise(rule).sizes
        for stratum in np.flatnonzero(counts > sizes)[:1].tolist():
            problem = f"stratum {stratum} has fewer units than are to be drawn"
            raise InputError(problem, given=int(counts[stratum]), allowed=f"up to {sizes[stratum]}")
        # The units below an expected limit are too few in rare cases. Each attempt doubles the margin, so
        # that the last one includes every unit.
        for widening in range(64):
            limits = thresholds(counts, np.maximum(sizes, 1), widening)
            candidates, strata, keys, ties = self._units_below_limits(rule, limits, counts, seed)
            if np.all(np.bincount(strata, minlength=len(counts)) >= counts):
                break
        rows = rank_smallest(strata, keys, ties, counts)
        return self._drawn_units(candidates.take(rows), seed, strata[rows])[0]

    @abstractmethod
    def _units_below_limits(
        self, rule: Rule, limits: KeyArray, counts: IntArray, seed: int
    ) -> tuple[Any, IntArray, KeyArray, AnyArray]:
        """Return the m units whose key is at most the limit of their stratum.

        Parameters
        ----------
        rule : Rule
        limits : uint64 (H,)
        counts : int (H,)
            Number of units to draw from each stratum. Strata with 0 may be left out.
        seed : int

        Returns
        -------
        rows : array or PyArrow table (m,)
        strata, keys : (m,)
        ties : (m,)
            Values that determine the order of units with equal keys.
        """

    @abstractmethod
    def _drawn_units(
        self, rows: Any, seed: int, stratum: IntArray | None = None
    ) -> tuple[DrawnUnits, IntArray]:
        """Return the units of rows (n,) in the order in which annotators see them, and this order (n,)."""

    def means_of(self, formulas: Sequence[Expression]) -> FloatArray:
        """Return the means (q,) of formulas over all units; at least one formula must use a column."""
        columns = columns_read(formulas)
        sums = np.zeros(len(formulas))
        units = 0
        for batch in self.batches(columns):
            size = len(next(iter(batch.values())))
            evaluator = ArrayEvaluator(batch, self.known_level_codes(columns, slice(units, units + size)))
            units += size
            sums += [np.broadcast_to(formula.evaluate(evaluator), (size,)).sum() for formula in formulas]
        return np.asarray(sums / units)

    def known_level_codes(self, columns: Iterable[str], rows: slice) -> dict[str, tuple[list[str], IntArray]]:
        """Return the levels of group columns and the level number of each unit of a batch, if stored."""
        return {}

    @abstractmethod
    def batches(
        self, columns: tuple[str, ...], size: int = DEFAULT_BATCH_SIZE
    ) -> Iterator[dict[str, AnyArray]]:
        """Yield the named proxy, group or feature columns, `size` units at a time, in a fixed order.

        The name `UNIT_ID` stands for the ids.
        """

    def digest(self, seed: int) -> PopulationDigest:
        """Return the digest by which samples with this seed recognise the population."""
        if seed not in self._digests:
            self._digests[seed] = self._digest(seed)
        return self._digests[seed]

    @abstractmethod
    def _digest(self, seed: int) -> PopulationDigest:
        """Return the digest from one query or one pass over the rows."""

    @cached_property
    def _digested_columns(self) -> DigestedColumns:
        """All proxies, their second moments, features and groups, as arrays or as columns of the table."""
        numbers, groups = self._digest_columns()
        # The digest divides a column by 2^exponent, so that its values become whole numbers with exact sums.
        columns_and_exponents = {
            name: (column, exponent_of(*extent)) for name, (column, extent) in numbers.items()
        }
        return DigestedColumns(numbers=columns_and_exponents, groups=groups)

    @abstractmethod
    def _digest_columns(self) -> tuple[NumberColumns, Mapping[str, Any]]:
        """Return the columns of numbers with their extents, and the columns of groups, for the digest."""

    # ---- selection for designs with unequal probabilities, an order or clusters

    def has_second_moments(self, proxy: str) -> bool:
        """Return whether E[z² | x] of a proxy is known: the mean squared outcome z, given features x."""
        return f"second:{proxy}" in self._digested_columns.numbers

    @abstractmethod
    def size_profile(self, size: SizeMeasure, count: int) -> SizeProfile:
        """Return the extent, the sum and the `count` largest values of a size measure."""

    @abstractmethod
    def units_below_size_limit(self, size: SizeMeasure, limit: float, seed: int) -> Candidates:
        """Return the units whose permanent random number u is less than `limit` times their size."""

    @abstractmethod
    def at_ranks(self, column: str, ranks: IntArray, seed: int) -> DrawnUnits:
        """Return the units at these ranks (n,), from 0, when sorted by a column; ties in random order."""

    @abstractmethod
    def units_of_levels(self, group: str, levels: tuple[str, ...], seed: int) -> DrawnUnits:
        """Return every unit of these levels of a group column."""

    @abstractmethod
    def units_with_ids(self, ids: Sequence[str]) -> DrawnUnits:
        """Return the units that have one of these ids (as text); ids without a unit are ignored."""

    # ---- constructors

    @staticmethod
    @keywords_from(ArrayKeywords, id_name="id")
    def from_arrays(**columns: Unpack[ArrayKeywords]) -> Population:
        """Build a population from arrays, each given by its name.

        Parameters
        ----------
        proxy : array-like (N,), `stratal.Proxy`, or mapping of name to either, optional
            Predictions of the outcome, one per unit. Values in [0, 1] are interpreted as probabilities. Other
            values only order the units, unless `bounds` (or `scaled=True`) states that they are on the
            outcome's scale.
        ids : array-like (N,), optional
            Unique text or integers. Default: the index of a pandas object among the columns, unless it only
            numbers the rows; otherwise the row numbers, from 0.
        groups : mapping of name to array-like (N,), optional
            Categories, compared as text.
        features : mapping of name to array-like (N,) or (N, d), or array (N, d), optional
            Numbers for clustering and regression. A matrix becomes the columns `name_0`, `name_1`, …
            (`feature_0`, … without a name).
        show : mapping of name to array-like (N,), optional
            Columns that are shown to the annotators.
        predicted : str, optional
            The group that contains the model's answer.
        judge : str or sequence of str, optional
            Groups with verdicts of judges, or proxies that are their scores.
        bounds : (float, float), optional
            Bounds of the outcome that the proxies predict.
        scaled : bool, optional
            Whether the proxies are on the outcome's scale. Default: inferred from the values.
        id_name : str
            Name of the id column in files.
        label : optional
            The scale of the labels, as in `Population.read`.
        predicts : str or mapping of proxy to str, optional
            The quantity that each proxy predicts, as in `Population.read`.
        tags : {"json", ";", "|", ",", "none"}, optional
            Format of answers that are sets of tags, as in `Population.read`.
        history : History, array (N, M) or mapping of model to array-like (N,), optional
            Earlier models' results on the same units, or a fitted history; as in `Population.read`.
        threads : int, optional
            Number of threads for counts and draws. Default: `OMP_NUM_THREADS`, else one for each 10⁷ units.
            The results are identical for any number.

        Raises
        ------
        InputError
            For a missing, duplicate or unusable id, a proxy that is missing, NaN or infinite, arrays of
            different lengths, and an empty population.

        Examples
        --------
        >>> Population.from_arrays(proxy=[0.9, 0.2], ids=["a", "b"]).size
        2
        """
        return Population.builders["arrays"](columns)

    @staticmethod
    @keywords_from(ArrayKeywords, without=("proxy", "predicted"), id_name="id")
    def from_estimator(model: object, X: object, **columns: Unpack[ArrayKeywords]) -> Population:
        """Build a population from a fitted scikit-learn classifier and the rows on which to evaluate it.

        The proxy is `confidence`, the probability of the model's answer. For a model that has only
        `decision_function`, it is `margin`, which only orders the units. The answer becomes the group
        `predicted_class`, which is compared with labels that are classes.

        Parameters
        ----------
        model : classifier
            A model or pipeline with `classes_`, and `predict_proba` or `decision_function`.
        X : array-like (N, d), or another input of the model
            The index of a pandas dataframe becomes the ids, as in `Population.from_arrays`.
        ids, groups, features, show, judge, bounds, scaled, id_name, label, predicts, history, tags, threads
            As in `Population.from_arrays`.

        Raises
        ------
        InputError
            For a model that is not a fitted classifier, or returns no confidence.

        Examples
        --------
        >>> from types import SimpleNamespace
        >>> model = SimpleNamespace(classes_=["cat", "dog"], predict_proba=lambda X: [[0.9, 0.1], [0.2, 0.8]])
        >>> population = Population.from_estimator(model, [[1.0], [2.0]], ids=["a", "b"])
        >>> population.proxy_names, population.levels("predicted_class")
        (('confidence',), {'cat': 1, 'dog': 1})
        """
        return Population.builders["estimator"](model, X, columns)

    @staticmethod
    @keywords_from(TableKeywords, ReadOptions, directory=False, remote=False, engine="duckdb")
    def read(path: str | os.PathLike[str], **columns: Unpack[FileKeywords]) -> Population:
        """Build a population from a file, which DuckDB or Spark reads; a large file need not fit in memory.

        Parameters
        ----------
        path : str or path
            Parquet (.parquet, .pq), CSV with a header (.csv, .tsv), JSON Lines (.jsonl, .ndjson), an array of
            JSON objects (.json), Feather (.feather, .arrow), a workbook (.xlsx); text may be compressed
            (.gz); the log of an evaluation tool (lm-evaluation-harness, Inspect, promptfoo, DeepEval, Hugging
            Face `evaluate`), whose first score is then the proxy unless another is named; a folder of
            `Dataset.save_to_disk`. Wildcards are not expanded. Columns are matched without regard to case if
            that is unambiguous. Nested columns have dotted names: `judge.score`.
        id : str, optional
            Column of unique ids. Default: `id` or `item_id`. In text files, ids are read as text. `row` is
            the row number, from 0, if no column has this name.
        proxy : str or sequence of str, optional
            Columns of predictions of the outcome, one number per unit. Values in [0, 1] are interpreted as
            probabilities. Other values only order the units, unless `bounds` (or `scaled=True`) states that
            they are on the outcome's scale.
        groups : str or sequence of str
            Columns of categories, compared as text.
        features : str or sequence of str
            Columns of numbers for clustering and regression.
        show : str or sequence of str
            Columns that are shown to the annotators.
        predicted : str, optional
            Column of the model's answer. It becomes a group and is never shown to annotators.
        judge : str or sequence of str, optional
            Columns with verdicts of judges, which become groups, or proxies that are the scores of judges.
            They are never shown to annotators. An estimate compares them with the labels.
        tags : {"json", ";", "|", ",", "none"}, optional
            Format of answers, and later of labels, that are sets of tags: `json` for lists and JSON lists
            such as `["a", "b"]`, or the separator of text such as `a;b`; `[]` is the empty set. Default:
            answers are sets if all of them are lists; `none` states that they are not sets.
        second_moment : str or mapping of proxy to column, optional
            Columns that contain E[z² | x], the mean squared outcome z, given features x.
        bounds : (float, float), optional
            Bounds of the outcome that the proxies predict.
        scaled : bool, optional
            Whether the proxies are on the outcome's scale. Default: inferred from the values.
        softmax : str or sequence of str, optional
            Columns of probabilities that add up to 1, or a pattern such as `p*`. The proxy is then
            `confidence`, the probability of the answer in `predicted`, or else of the most probable class,
            which becomes the group `predicted_class`. Several proxies that add up to 1 are treated in the
            same way.
        missing : {"refuse", "own-stratum"}, optional
            Treatment of units without a proxy. `refuse` (default) raises an error. With `own-stratum`, their
            proxy is the middle of the bounds, and a plan puts them into a separate stratum, in which the
            constant proxy has no effect on the estimate.
        label : {"pass/fail"} or (float, float), optional
            The scale of the labels: two values, or the bounds. A proxy on another scale only orders the
            units.
        predicts : str or mapping of proxy to str, optional
            The quantity that each proxy predicts; a single text refers to the only proxy. `right`: the
            probability that the model's answer is right. `class:NAME`: the probability of a class.
            `rating:LOW..HIGH`: a rating within these bounds. `outcome`: the outcome itself, on its scale.
            `order`: only an order. Default: inferred from the values, the bounds and whether there is a
            model's answer.
        answers : str or sequence of str, optional
            Columns of several models' answers to the same units, or a pattern such as `answer_*`; missing
            answers are ignored. From them, the proxy `peer_agreement` of the model in `predicted` is
            computed, and `peer_agreement_COLUMN` of another model if `proxy` names it
            (`stratal.proxy.peer_agreement`).
        history : path, dataframe or History, optional
            Earlier models' results by item: a column of ids and a column for each model (1 or 0, true or
            false, pass or fail, empty if there is no result), or, with a column called `model`, a row for
            each result. The proxy `history` and features for a calibration are computed from them
            (`stratal.proxy.fit_history`). A file of `History.write` is read without fitting again.
        delimiter : str, optional
            One character between the fields of a CSV file. Default: inferred from the header.
        format : {"parquet", "csv", "jsonl", "json", "feather", "xlsx", "eval"}, optional
            Format of the file; `eval` is a log of Inspect. Default: by the file's name.
        directory : bool
            Read all Parquet files of a directory.
        remote : bool
            Allow addresses: `https://…`, `s3://…`.
        engine : {"duckdb", "spark"}
            Engine that reads the file. Spark reads Parquet, CSV and JSON Lines on its workers, also from
            `hdfs://…` and `s3a://…`. Only counts and the drawn units are transferred.
        master : str, optional
            Address of Spark: `local[2]`, `spark://host:7077`. Default: the Spark session of this process,
            else a new one on this machine.
        threads : int, optional
            Number of threads of DuckDB. Default: all cores. The results are identical for any number.
        memory : str, optional
            Memory limit of DuckDB, beyond which it spills to disk, such as `2GB`.

        Raises
        ------
        InputError
            For a file that does not exist, is a directory, is truncated or unreadable; for a column that does
            not exist; for a missing or duplicate id; for a number that is missing, NaN, infinite or not a
            number (with its id and line); for a file without rows.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> folder = tempfile.TemporaryDirectory()
        >>> file = pathlib.Path(folder.name, "predictions.csv")
        >>> _ = file.write_text("id,proxy,language\\n007,0.9,de\\n008,0.2,en\\n")
        >>> Population.read(file, proxy="proxy", groups="language").levels("language")
        {'de': 1, 'en': 1}
        >>> folder.cleanup()
        """
        return Population.builders["file"](path, columns)

    @staticmethod
    @keywords_from(TableKeywords)
    def from_table(table: object, **columns: Unpack[TableKeywords]) -> Population:
        """Build a population from a dataframe or an Ibis table.

        Parameters
        ----------
        table : dataframe or Ibis table
            pandas, Polars, PyArrow, a Hugging Face `Dataset`, or another object with the Arrow interface; a
            stream is consumed. An Ibis table is queried through its own connection, which must support MD5
            (DuckDB, PostgreSQL, Spark) and needs only read permission. A Spark dataframe is queried in Spark.
            The index of a pandas dataframe is its id column (called `index` if it has no name), unless it
            only numbers the rows or `id` names a column. If there is also a column `id` or `item_id`, name
            one.
        id, proxy, groups, features, show, predicted, judge, second_moment, bounds, scaled, softmax : optional
        missing, label, predicts, answers, history, tags : optional
            As in `Population.read`.

        Raises
        ------
        InputError
            As in `Population.read`. NaN and null are distinguished, in pandas as well.

        Examples
        --------
        >>> import pyarrow as pa
        >>> table = pa.table({"item_id": [3, 4], "confidence": [0.9, 0.2]})
        >>> Population.from_table(table, proxy="confidence").size
        2
        """
        return Population.builders["table"](table, columns)


def require_population(value: object, function_name: str) -> Population:
    """Return a population unchanged, or raise an error that explains how to build one.

    Raises
    ------
    InputError
        For a path, a dataframe, an array, a mapping and other types, with the line of code to write.
    """
    if isinstance(value, Population):
        return value
    description = type_text(value)
    action = "Create a population with stratal.Population.read, from_table or from_arrays(proxy=…, ids=…)."
    if isinstance(value, str | os.PathLike):
        description = f"the path {os.fspath(value)!r}"
        action = f"Read the file first: stratal.Population.read({os.fspath(value)!r}, {_EXAMPLE_KEYWORDS})."
    raise InputError(f"{function_name} takes a Population", given=description, action=action)
