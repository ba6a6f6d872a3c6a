"""`Population`: what N units answer, wherever their rows are.

Population-sized work happens behind these methods. Everything that they return is small: bins, per-stratum
summaries, or the units that were drawn.
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
from stratal.errors import InputError, listing, suggest_names, type_text
from stratal.population.declaration import ArrayKeywords, FileKeywords, TableKeywords
from stratal.population.digest import DigestedColumns, PopulationDigest, exponent_of
from stratal.population.distribution import (
    Counter,
    Distribution,
    LevelBins,
    LevelDistributions,
    build_distribution,
)
from stratal.population.expressions import Expression, OnArrays
from stratal.population.rules import Rule
from stratal.population.summary import Candidates, Drawn, ProxyInfo, Size, SizeProfile, StratumSummary
from stratal.question.question import Outcome
from stratal.question.roles import ColumnRoles
from stratal.question.scores import Score
from stratal.randomness import KeyArray, check_seed, rank_smallest, thresholds
from stratal.tables.source import FileReading

Columns = dict[str, tuple[Any, tuple[float, float]]]

# Keywords in the line of code that an error proposes.
_READING = "id='ID', proxy='PROXY'"


# Name by which `Population.batches` yields the ids; no column can be called so.
UNIT_ID = "\0id"


@dataclass(kw_only=True, eq=False, repr=False)
class Population(ABC):
    """N units with ids, one or more proxies, optional groups and features.

    Build one with `Population.read` (a file), `Population.from_arrays` or `Population.from_table` (any
    dataframe, or an Ibis table). It is either held in memory or stays a table; both answer the same
    questions.

    Examples
    --------
    >>> population = Population.from_arrays(proxy=[0.9, 0.2, 0.6])
    >>> population.size, population.proxy_names
    (3, ('proxy',))
    """

    # What builds a population from arrays, a file and a table; the implementations enter themselves.
    makers: ClassVar[dict[str, Callable[..., Population]]] = {}

    # N.
    size: int

    # The proxies; the first is the one that strata are cut on unless another is named.
    proxies: tuple[ProxyInfo, ...] = ()

    # Group columns: categories to stratify by or to report on.
    group_names: tuple[str, ...] = ()

    # Payload columns that ride along to the annotators.
    shown_names: tuple[str, ...] = ()

    # Numeric columns to cluster on or to regress on.
    feature_names: tuple[str, ...] = ()

    # Name of the id column.
    id_name: str = "id"

    # Columns with a meaning of their own; their categories are groups, kept in the sample and never shown.
    roles: ColumnRoles = field(default_factory=ColumnRoles)

    # How cells of that answer hold sets of tags, if it was declared; see `Outcome.tag_format`.
    tags: str | None = None

    # What annotators will answer, where that was declared apart from the proxies' scale.
    label_outcome: Outcome = field(default_factory=Outcome)

    # What proxies are declared to predict, by name; see `Score`. Of others it is inferred.
    predicts: Mapping[str, str] = field(default_factory=dict)

    # What was done to read the units: blank rows left out, a softmax found, proxies missing.
    notes: tuple[str, ...] = ()

    # Whether the ids are row numbers, 0 … N − 1, because none were given.
    numbered_by_row: bool = False

    # The number of the first row, where ids are row numbers; None of other ids.
    row_base: int | None = None

    # Group whose level `missing` holds the units without a proxy, where they were kept.
    own_stratum: str | None = None

    _distributions: dict[str, Distribution] = field(init=False, default_factory=dict)
    _level_distributions: dict[tuple[str, str], LevelDistributions] = field(init=False, default_factory=dict)
    _digests: dict[int, PopulationDigest] = field(init=False, default_factory=dict)

    # ---- what it is

    @property
    def proxy_names(self) -> tuple[str, ...]:
        """Names of the proxies."""
        return tuple(info.name for info in self.proxies)

    def proxy_info(self, name: str | None = None) -> ProxyInfo:
        """Return what is known of a proxy: the first, or the one named."""
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
        inferred = (info.score(self.roles.answer) for info in self.proxies)
        return tuple(
            Score(name=score.name, predicts=self.predicts[score.name], declared=True)
            if score.name in self.predicts
            else score
            for score in inferred
        )

    @property
    def label_bounds(self) -> tuple[float, float] | None:
        """Bounds of the labels, where they were declared apart from the proxies' scale."""
        return self.label_outcome.limits

    def require_group(self, name: str) -> str:
        """Return `name` if it is a group column, else raise an `InputError` that lists those that are."""
        if name not in self.group_names:
            if self.group_names:
                allowed = suggest_names(name, self.group_names)
            else:
                allowed = "none was named"
            raise InputError(f"no such group column: {name!r}", allowed=allowed, action="Name it in groups=.")
        return name

    def __repr__(self) -> str:
        named = {"proxies": self.proxy_names, "groups": self.group_names, "features": self.feature_names}
        parts = "".join(f", {role}={list(names)}" for role, names in named.items() if names)
        return f"Population({self.size:,} units{parts})"

    # ---- what it answers

    def distribution(self, proxy: str | None = None) -> Distribution:
        """Return the distribution of one proxy (the first unless named)."""
        info = self.proxy_info(proxy)
        if info.name not in self._distributions:
            distribution = build_distribution(self._counter(info), scaled=info.scaled, bounds=info.bounds)
            self._distributions[info.name] = distribution
        return self._distributions[info.name]

    def distributions(self, by: str, proxy: str | None = None) -> LevelDistributions:
        """Return the distribution of one proxy within each level of a group column, by level, sorted."""
        info = self.proxy_info(proxy)
        key = self.require_group(by), info.name
        if key not in self._level_distributions:
            self._level_distributions[key] = LevelDistributions(
                self._level_bins(by, info), scaled=info.scaled, bounds=info.bounds
            )
        return self._level_distributions[key]

    def numbered_from(self, base: int | None) -> Population:
        """Return the population with row numbers that count from `base`; itself where its ids are others."""
        if base is None or self.row_base is None or self.row_base == base:
            return self
        return self._renumbered(base)

    @abstractmethod
    def _renumbered(self, base: int) -> Population:
        """Return the population with row numbers that count from `base`."""

    def digest_of_draw(self, seed: int) -> PopulationDigest | Callable[[], PopulationDigest]:
        """Return the digest for a sample that was just drawn, or what makes it once it is needed."""
        return self.digest(seed)

    # ---- what its rows answer, in memory or in a table

    @abstractmethod
    def _counter(self, info: ProxyInfo) -> Counter:
        """Return what counts a proxy."""

    @abstractmethod
    def extent(self, name: str) -> tuple[float, float]:
        """Return the smallest and the largest value of a proxy."""

    @abstractmethod
    def _level_bins(self, by: str, info: ProxyInfo) -> LevelBins:
        """Return what a proxy's values are within each level of a group column, levels sorted."""

    @abstractmethod
    def levels(self, group: str) -> dict[str, int]:
        """Return the number of units in each level of a group column, levels sorted as text."""

    def codes(self, rule: Rule) -> IntArray | None:
        """Return each unit's stratum (N,), or `None` where the rows are not in memory."""
        return None

    @abstractmethod
    def summarise(self, rule: Rule) -> StratumSummary:
        """Return sizes and proxy moments per stratum of `rule`."""

    def smallest(self, rule: Rule, counts: IntArray, seed: int) -> Drawn:
        """Return, of each stratum, the `counts` (H,) units with the smallest permanent random numbers."""
        seed = check_seed(seed)
        counts = np.asarray(counts, np.int64)
        sizes = self.summarise(rule).sizes
        for stratum in np.flatnonzero(counts > sizes)[:1].tolist():
            problem = f"stratum {stratum} has fewer units than are to be drawn"
            raise InputError(problem, given=int(counts[stratum]), allowed=f"up to {sizes[stratum]}")
        # Each attempt doubles the margin, so that the last one has every unit.
        for widening in range(64):
            limits = thresholds(counts, np.maximum(sizes, 1), widening)
            candidates, strata, keys, ties = self._under(rule, limits, counts, seed)
            if np.all(np.bincount(strata, minlength=len(counts)) >= counts):
                break
        rows = rank_smallest(strata, keys, ties, counts)
        return self._drawn_units(candidates.take(rows), seed, strata[rows])[0]

    @abstractmethod
    def _under(
        self, rule: Rule, limits: KeyArray, counts: IntArray, seed: int
    ) -> tuple[Any, IntArray, KeyArray, AnyArray]:
        """Return the units whose key is at most their stratum's limit (H,): rows, strata, keys, ties (m,)."""

    @abstractmethod
    def _drawn_units(self, rows: Any, seed: int, stratum: IntArray | None = None) -> tuple[Drawn, IntArray]:
        """Return found rows (n,) in the order in which they are shown, and that order (n,)."""

    def means_of(self, formulas: Sequence[Expression]) -> FloatArray:
        """Return the means (q,) of formulas over all units; one of them at least reads a column."""
        columns = tuple(dict.fromkeys(name for formula in formulas for name in formula.columns))
        sums = np.zeros(len(formulas))
        units = 0
        for batch in self.batches(columns):
            size = len(next(iter(batch.values())))
            engine = OnArrays(batch, self.known_levels(columns, slice(units, units + size)))
            units += size
            sums += [np.broadcast_to(formula.of(engine), (size,)).sum() for formula in formulas]
        return np.asarray(sums / units)

    def known_levels(self, columns: Iterable[str], part: slice) -> dict[str, tuple[list[str], IntArray]]:
        """Return the levels of group columns, and which each unit of a batch has, where that is known."""
        return {}

    @abstractmethod
    def batches(self, columns: tuple[str, ...], size: int = 262_144) -> Iterator[dict[str, AnyArray]]:
        """Yield the named proxy, group or feature columns, `size` units at a time, in a fixed order.

        The name `UNIT_ID` stands for the ids.
        """

    def digest(self, seed: int) -> PopulationDigest:
        """Return the sums by which samples of this seed recognise the population."""
        if seed not in self._digests:
            self._digests[seed] = self._digest(seed)
        return self._digests[seed]

    @abstractmethod
    def _digest(self, seed: int) -> PopulationDigest:
        """Return the sums: one query, or one pass."""

    @cached_property
    def _digested_columns(self) -> DigestedColumns:
        """All proxies, their second moments, features and groups, as the engine has them."""
        numbers, groups = self._digest_columns()
        exponents = {name: (column, exponent_of(*ends)) for name, (column, ends) in numbers.items()}
        return DigestedColumns(numbers=exponents, groups=groups)

    @abstractmethod
    def _digest_columns(self) -> tuple[Columns, Mapping[str, Any]]:
        """Return numbers with their smallest and largest value, and what group keys are multiplied by."""

    # ---- what designs with unequal probabilities, an order or groups ask

    def has_second_moments(self, proxy: str) -> bool:
        """Return whether E[z² | x] of a proxy is known."""
        return f"second:{proxy}" in self._digested_columns.numbers

    @abstractmethod
    def size_profile(self, size: Size, count: int) -> SizeProfile:
        """Return the extent, the sum and the `count` largest values of a size measure."""

    @abstractmethod
    def below(self, size: Size, limit: float, seed: int) -> Candidates:
        """Return the units whose permanent random number u is below `limit` times their size."""

    @abstractmethod
    def at_ranks(self, column: str, ranks: IntArray, seed: int) -> Drawn:
        """Return the units at these ranks (n,), from 0, when sorted by a column; ties in random order."""

    @abstractmethod
    def members(self, group: str, levels: tuple[str, ...], seed: int) -> Drawn:
        """Return every unit of these levels of a group column."""

    @abstractmethod
    def find(self, ids: Sequence[str]) -> Drawn:
        """Return the units that have one of these ids, as text; those of no unit are left out."""

    # ---- how it is made

    @staticmethod
    @listing(ArrayKeywords, id_name="id")
    def from_arrays(**columns: Unpack[ArrayKeywords]) -> Population:
        """Build a population from arrays, each given by its name.

        Parameters
        ----------
        proxy : array-like (N,), `stratal.Proxy`, or mapping of name to either, optional
            Predictions of the outcome, one per unit. Values in [0, 1] are taken as probabilities; other
            values only order, unless `bounds` (or `scaled=True`) says that they are on the outcome's scale.
        ids : array-like (N,), optional
            Unique text or integers. If left out, the index of the pandas objects among the columns, unless it
            only numbers the rows; without one the row numbers, from 0.
        groups : mapping of name to array-like (N,), optional
            Categories, compared as text.
        features : mapping of name to array-like (N,) or (N, d), or array (N, d), optional
            Numbers to cluster on or to regress on. A matrix becomes the columns `name_0`, `name_1`, …
            (`feature_0`, … without a name).
        show : mapping of name to array-like (N,), optional
            Payload for the annotators.
        predicted : str, optional
            The group that holds the model's answer.
        judge : str or sequence of str, optional
            Groups with verdicts of judges, or proxies that are their scores.
        bounds : (float, float), optional
            Bounds of the outcome that the proxies predict.
        scaled : bool, optional
            Whether the proxies are on the outcome's scale; found out from the values if left out.
        id_name : str
            What the id column is called in files.
        label : optional
            What annotators will say, as in `Population.read`.
        predicts : str or mapping of proxy to str, optional
            What proxies predict, as in `Population.read`.
        tags : {"json", ";", "|", ",", "none"}, optional
            How answers hold sets of tags, as in `Population.read`.
        history : History, array (N, M) or mapping of model to array-like (N,), optional
            Earlier models' results on the same units, or what was fitted to them; as in `Population.read`.
        threads : int, optional
            Threads that count and draw; `OMP_NUM_THREADS` if left out, else one for each 10⁷ units. The
            answers are the same, to the bit, for any number.

        Raises
        ------
        InputError
            For a missing, duplicated or unusable id, a proxy that is missing, NaN or infinite, arrays of
            different lengths, an empty population.

        Examples
        --------
        >>> Population.from_arrays(proxy=[0.9, 0.2], ids=["a", "b"]).size
        2
        """
        return Population.makers["arrays"](columns)

    @staticmethod
    @listing(ArrayKeywords, without=("proxy", "predicted"), id_name="id")
    def from_estimator(model: object, X: object, **columns: Unpack[ArrayKeywords]) -> Population:
        """Build a population from a fitted scikit-learn classifier and the rows to judge it on.

        The proxy is `confidence`, the probability of the model's answer, or `margin`, which only orders,
        where the model has `decision_function` alone. The answer is kept as `predicted_class`, with which
        labels that are classes are compared.

        Parameters
        ----------
        model : classifier
            With `classes_`, and `predict_proba` or `decision_function`: a pipeline as well.
        X : array-like (N, d), or whatever the model takes
            The index of a pandas dataframe becomes the ids, as in `Population.from_arrays`.
        ids, groups, features, show, judge, bounds, scaled, id_name, label, predicts, history, tags, threads
            As in `Population.from_arrays`.

        Raises
        ------
        InputError
            For a model that is not a fitted classifier, or gives no confidence.

        Examples
        --------
        >>> from types import SimpleNamespace
        >>> model = SimpleNamespace(classes_=["cat", "dog"], predict_proba=lambda X: [[0.9, 0.1], [0.2, 0.8]])
        >>> population = Population.from_estimator(model, [[1.0], [2.0]], ids=["a", "b"])
        >>> population.proxy_names, population.levels("predicted_class")
        (('confidence',), {'cat': 1, 'dog': 1})
        """
        return Population.makers["estimator"](model, X, columns)

    @staticmethod
    @listing(TableKeywords, FileReading, directory=False, remote=False, engine="duckdb")
    def read(path: str | os.PathLike[str], **columns: Unpack[FileKeywords]) -> Population:
        """Build a population from a file, which DuckDB or Spark reads; a large one is never whole in memory.

        Parameters
        ----------
        path : str or path
            Parquet (.parquet, .pq), CSV with a header (.csv, .tsv), JSON Lines (.jsonl, .ndjson), an array of
            JSON objects (.json), Feather (.feather, .arrow), a workbook (.xlsx); text may be compressed
            (.gz); the log of an evaluation tool (lm-evaluation-harness, Inspect, promptfoo, DeepEval,
            `evaluate`), whose first score is then the proxy unless another is named; a folder of
            `Dataset.save_to_disk`. Every character stands for itself: no wildcards. Columns are found without
            regard to case where that is unique; what is nested has dotted names: `judge.score`.
        id : str, optional
            Column of unique ids; `id` or `item_id` if left out. Read as text from text files. `row` is the
            number of the row, from 0, where no column is called so.
        proxy : str or sequence of str, optional
            Columns of predictions of the outcome, one number per unit. Values in [0, 1] are taken as
            probabilities; other values only order, unless `bounds` (or `scaled=True`) says that they are on
            the outcome's scale.
        groups : str or sequence of str
            Columns of categories, compared as text.
        features : str or sequence of str
            Columns of numbers to cluster on or to regress on.
        show : str or sequence of str
            Columns that ride along to the annotators.
        predicted : str, optional
            Column that holds the model's answer; kept as a group, never shown.
        judge : str or sequence of str, optional
            Columns with verdicts of judges, kept as groups and never shown, or proxies that are their scores.
            An estimate compares them with the labels.
        tags : {"json", ";", "|", ",", "none"}, optional
            How answers, and later labels, hold sets of tags: `json` for lists and JSON lists such as
            `["a", "b"]`, or the separator of text such as `a;b`; `[]` is the set without tags. If left out,
            they are sets if every answer is a list; `none` states that they are not.
        second_moment : str or mapping of proxy to column, optional
            Columns that hold E[z² | x].
        bounds : (float, float), optional
            Bounds of the outcome that the proxies predict.
        scaled : bool, optional
            Whether the proxies are on the outcome's scale; found out from the values if left out.
        softmax : str or sequence of str, optional
            Columns of probabilities that add up to 1, or a pattern such as `p*`. The proxy is then
            `confidence`, the probability of the answer in `predicted`, or of the most probable class,
            kept as `predicted_class`. Several proxies that add up to 1 are taken so too.
        missing : {"refuse", "own-stratum"}, optional
            What becomes of units without a proxy: refused if left out, or kept. They then get the middle of
            the bounds as their proxy, and a plan makes them a stratum of their own, in which a proxy that is
            the same for all changes no estimate.
        label : {"pass/fail"} or (float, float), optional
            What annotators will say, where a proxy is on another scale: it then only orders units.
        predicts : str or mapping of proxy to str, optional
            What each proxy predicts; one text for the only proxy. `right`: the probability that the model's
            answer is right. `class:NAME`: the probability of a class. `rating:LOW..HIGH`: a rating within
            these bounds. `outcome`: the outcome itself, on its scale. `order`: only an order. If left out, it
            is inferred from the values, the bounds and whether there is a model's answer.
        answers : str or sequence of str, optional
            Columns of several models' answers to the same units, or a pattern such as `answer_*`; a missing
            one counts for nothing. They become the proxy `peer_agreement` of the model in `predicted`, and
            `peer_agreement_COLUMN` of any other one of them that `proxy` names so
            (`stratal.proxy.peer_agreement`).
        history : path, dataframe or History, optional
            Earlier models' results by item: an id and a column for each model (1 or 0, true or false, pass or
            fail, nothing where there is no result), or, with a column called `model`, a row for each result.
            They become the proxy `history` and features from which a new model's labels are learned
            (`stratal.proxy.fit_history`). Once fitted and written, `History.write`'s file does as well.
        delimiter : str, optional
            One character between the fields of a CSV file; found in the header if left out.
        format : {"parquet", "csv", "jsonl", "json", "feather", "xlsx", "eval"}, optional
            Needed only where the file's name does not tell.
        directory : bool
            Read all Parquet parts of a directory.
        remote : bool
            Allow addresses: `https://…`, `s3://…`.
        engine : {"duckdb", "spark"}
            What reads the file. Spark reads Parquet, CSV and JSON Lines where its workers are, at `hdfs://…`,
            `s3a://…` too; only counts and the units that were drawn come back.
        master : str, optional
            Where Spark runs: `local[2]`, `spark://host:7077`; if left out, the Spark that this process
            already uses, else one on this machine.
        threads : int, optional
            How many DuckDB may use; all cores if left out. The answers are the same for any number.
        memory : str, optional
            How much DuckDB may hold before it spills to disk, such as `2GB`.

        Raises
        ------
        InputError
            For a file that does not exist, is a directory, is truncated or unreadable; for a column that does
            not exist; for a missing or duplicated id; for a number that is missing, NaN, infinite or not a
            number (named by its id and line); for a file without rows.

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
        return Population.makers["file"](path, columns)

    @staticmethod
    @listing(TableKeywords)
    def from_table(table: object, **columns: Unpack[TableKeywords]) -> Population:
        """Build a population from a dataframe, or from an Ibis table where it is.

        Parameters
        ----------
        table : dataframe or Ibis table
            pandas, Polars, PyArrow, a Hugging Face `Dataset`, or whatever else has the Arrow interface; a
            stream is consumed. An Ibis table stays on its own connection, which must know MD5 (DuckDB,
            PostgreSQL, Spark), and the right to read is enough; a Spark dataframe stays in Spark. The index
            of a pandas dataframe is its id column, called `index` where it has no name, unless it only
            numbers the rows or `id` names a column. If a column `id` or `item_id` is there too, name one.
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
        return Population.makers["table"](table, columns)


def require_population(value: object, verb: str) -> Population:
    """Return a population, or say how to make one from what was given.

    Raises
    ------
    InputError
        For a path, a dataframe, an array, a mapping or anything else; it names the line to write.
    """
    if isinstance(value, Population):
        return value
    description = type_text(value)
    action = "Make one with stratal.Population.read, from_table or from_arrays(proxy=…, ids=…)."
    if isinstance(value, str | os.PathLike):
        description = f"the path {os.fspath(value)!r}"
        action = f"Read it first: stratal.Population.read({os.fspath(value)!r}, {_READING})."
    raise InputError(f"{verb} takes a Population", given=description, action=action)
