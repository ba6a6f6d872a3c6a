"""`Sample`: the drawn units with their `Design` and the summary of the population that estimates use."""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from stratal import __version__
from stratal.arrays import (
    AnyArray,
    BoolArray,
    Described,
    FloatArray,
    IntArray,
    Record,
    as_matrix,
    field_values,
    frozen,
    plain_fields,
    select_rows,
    without_none,
)
from stratal.designs.external_options import ExternalOptions
from stratal.designs.weighting import Weighting
from stratal.errors import InputError, keywords_from, type_text
from stratal.population.answer_sets import mixed_answers_error, population_tags
from stratal.population.digest import PopulationDigest
from stratal.population.drawn_units import DrawnUnits
from stratal.population.population import Population, require_population
from stratal.population.predictions import with_declared_scale, with_predictions
from stratal.population.proxy_info import ProxyInfo
from stratal.population.rules import MAX_STORED_LEVELS, Categories, Everything, Rule
from stratal.population.summary import StratumSummary
from stratal.protocols import JsonDict, JsonMapping, Keywords, WithDraw
from stratal.question import Outcome, Question
from stratal.question.roles import refuse_unusable_roles
from stratal.question.scores import Predictions, declared_scores
from stratal.question.tags import JSON_LISTS, NO_SETS, read_sets, tags_of_sets
from stratal.randomness import check_seed, id_texts
from stratal.report.text import TableDisplay
from stratal.strata.allocation import Allocation
from stratal.strata.strata import Strata

if TYPE_CHECKING:
    from stratal.labels.labels import Labels


class Design(Described, ABC):
    """The random mechanism that selects units: inclusion probabilities, and variances of weighted means.

    The `Sample` stores its design, which has no array of length N. A subclass defines a `kind` (its name in
    sample files, in the command and in the output), its `report_description`, the selection of units, and its
    `weighting`. Other code uses only these methods and never checks the class of a design.

    Examples
    --------
    >>> from stratal.designs import SimpleRandom
    >>> Design.from_dict(SimpleRandom(budget=5).to_dict())
    SimpleRandom(budget=5)
    """

    __slots__ = ()
    noun: ClassVar[str] = "design"
    registry: ClassVar[JsonDict] = {}
    # The description of the draw in a report, followed by its sources: keys of `sources` in
    # `report/methods.toml`, or citations.
    report_description: ClassVar[tuple[str, ...]] = ()
    # An assumption of the design that a report states.
    assumption: ClassVar[str] = ""
    # Whether the units are one simple random sample, so that groups of known sizes can post-stratify them.
    is_simple_random_sample: ClassVar[bool] = False
    # Whether labels may determine the next round: only if the units of a stratum are a simple random sample.
    allows_label_based_rounds: ClassVar[bool] = False
    # With fewer drawn units per proxy, the Hájek estimator is the default; 0 if Σ w is the same in every
    # draw.
    hajek_below: ClassVar[int] = 0

    @classmethod
    def class_of_kind(cls, kind: Any) -> Any:
        """Return the design class of a kind, or None. Modules of designs are imported until one defines it.

        The kind may come from an untrusted file: no other modules are imported.
        """
        if kind not in cls.registry:
            cls._import_module_of(kind)
        return cls.registry.get(kind)

    @classmethod
    def _import_module_of(cls, kind: Any) -> None:
        """Import the modules of designs one by one, until one defines the kind."""
        package = import_module("stratal.designs")
        # The first is the module with the name of the kind; `stratified` has the most frequent kinds.
        first = (str(kind).replace("-", "_"), "stratified")
        names = [module.name for module in iter_modules(package.__path__)]
        for name in sorted(names, key=lambda name: name not in first):
            import_module(f"stratal.designs.{name}")
            if kind in cls.registry:
                break

    def draw(self, population: Population, seed: int) -> Sample:
        """Draw a sample; the same seed and ids give the same units on every engine."""
        population = require_population(population, "draw")
        seed = check_seed(seed)
        realised, drawn, probabilities, summary = self.select(population, seed)
        return make_sample(realised, population, seed, drawn, probabilities, summary)

    def select(
        self, population: Population, seed: int
    ) -> tuple[Design, DrawnUnits, FloatArray, StratumSummary | None]:
        """Return the design as drawn, the drawn units (n,), their π (n,), and the summary of the strata.

        The design as drawn has the numbers that follow from the population, such as its number of clusters.
        The summary is None if all units are one stratum.
        """
        raise InputError(
            f"a design '{self.kind}' only describes a sample that was drawn elsewhere, or before",
            action="Draw with stratal.plan(population, …).draw(seed=…), or with another design.",
        )

    @abstractmethod
    def weighting(self, sample: Sample, labelled: BoolArray) -> Weighting:
        """Return the weights of the labelled units (n,); unlabelled units are nonresponse."""

    @classmethod
    def from_options(cls, budget: int, size: str, cluster: str | None, proxy: str | None = None) -> Self:
        """Return the design with this budget. Options that a design does not have are ignored."""
        raise InputError(
            f"design '{cls.kind}' cannot be drawn from a budget alone", action="Use stratal.plan."
        )

    def larger_design(self, sample: Sample, additional: int) -> Design:
        """Return the design that draws the units of the sample and `additional` new ones."""
        action = "If the design is nested, give a larger design: next_round(sample, design=…)."
        raise InputError(f"a sample of design '{self.kind}' cannot be extended", action=action)

    def next_round_design(self, sample: Sample, additional: int, outcomes: object) -> Design:
        """Return the design of the next round of a sample without strata.

        `outcomes` has the outcomes `z` (m,) of the labels and the mask `labelled` (n,); it is None for an
        estimand that is not the mean of one outcome.
        """
        return self.larger_design(sample, additional)

    @property
    def unlabelled(self) -> Any:
        """Moments of a separate unlabelled sample; None if the unlabelled units belong to the population."""
        return None

    @property
    def strata(self) -> Strata | None:
        """The strata of the draw; None if all units are one stratum."""
        return None

    @property
    def allocation(self) -> Allocation | None:
        """The allocation of the labels to the strata."""
        return None

    @property
    def stratum_names(self) -> tuple[str, ...]:
        """Names of the strata (H,)."""
        if self.strata is None:
            return ("all",)
        return self.strata.names

    @property
    def counts(self) -> IntArray | None:
        """Number of drawn units of each stratum (H,), if they are simple random samples; otherwise None."""
        if self.allocation is None:
            return None
        return self.allocation.n_h

    @property
    def rule(self) -> Rule | None:
        """The rule that assigns units to strata; None if all units are one stratum."""
        if self.strata is None:
            return None
        return self.strata.rule


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample(Record, TableDisplay):
    """The drawn units with their design: an estimate is a function of (sample, labels) alone.

    Parameters
    ----------
    ids : (n,)
        In the random order of the draw, which mixes the strata; int64, or text.
    stratum : int (n,)
        Stratum of each unit, 0 … H − 1.
    inclusion_probability : float (n,)
        π of each unit, in (0, 1].
    proxies : float (n, k)
    proxy_info : tuple of ProxyInfo (k,)
    summary : StratumSummary
        N_h, proxy means and covariances per stratum of the whole population.
    design : Design
    seed : int
    groups, shown : mapping of name to (n,) array
        Group columns (text), and columns that are shown to annotators.
    question : Question
        The roles of the columns, how a label becomes a number, and the estimand, as declared or derived
        before there are labels.
    totals : mapping of group name to mapping of level to int
        Population units in each level, for groups with few levels.
    level_means : mapping of group name to mapping of level to (k,) list, optional
        The means of the proxies over the units of each of these levels, if the sample was read from a file;
        see `means_of_levels`.
    round : int (n,), optional
        The round in which each unit was drawn, from 1; by default all are in the first.
    half_width : float, optional
        Target half-width of the interval, if labels of earlier rounds determined the number of units.
    looks : str, optional
        The planned interim analyses, such as `pocock:4` (`stratal.plan`).
    version : str
        Version of the software that drew the sample.
    population : Population, optional
        The population of the draw, if it is still in memory; not written to files and not part of equality.
    declared_random : bool
        For an external table: whether the user declares that its labelled rows are a random sample of
        `population`. An estimate tests this.
    digest : PopulationDigest or callable, optional
        Digest of the population of the draw, or the function that computes it: see `population_digest`.
        External samples, and files of version 0.1.0 from before digests were introduced, have none.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5, 0.9], ids=["a", "b", "c"])
    >>> sample = stratal.designs.SimpleRandom(budget=2).draw(population, seed=7)
    >>> sample.size, sample.population_size, sample.design.kind
    (2, 3, 'simple-random')
    """

    ids: AnyArray = field(compare=False)
    stratum: IntArray
    inclusion_probability: FloatArray
    proxies: FloatArray
    proxy_info: tuple[ProxyInfo, ...]
    summary: StratumSummary
    design: Design
    seed: int
    groups: Mapping[str, AnyArray] = field(default_factory=dict)
    shown: Mapping[str, AnyArray] = field(default_factory=dict)
    question: Question = field(default_factory=Question)
    totals: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    level_means: Mapping[str, Mapping[str, list[float]]] | None = field(
        default=None, repr=False, compare=False
    )
    round: IntArray = field(default_factory=lambda: np.empty(0, np.int64))
    half_width: float | None = None
    looks: str | None = None
    version: str = __version__
    population: Population | None = field(default=None, repr=False, compare=False)
    declared_random: bool = field(default=False, repr=False, compare=False)
    digest: PopulationDigest | Callable[[], PopulationDigest] | None = field(
        default=None, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        size = len(self.ids)
        if len(self.round) == 0:
            self._set(round=np.ones(size, np.int64))
        self._freeze()
        for name, arrays in field_values(self, ("groups", "shown")).items():
            self._set(**{name: {column: frozen(values) for column, values in arrays.items()}})
        stratum = self.stratum
        probabilities = self.inclusion_probability
        columns = [stratum, probabilities, *self.groups.values(), *self.shown.values()]
        lengths = {len(column) for column in columns}
        have_strata = np.isin(stratum, range(len(self.summary.sizes)))
        are_probabilities = (probabilities > 0) & (probabilities <= 1)
        conditions = {
            "proxies must be (n, k)": self.proxies.shape == (size, len(self.proxy_info)),
            "every column of a sample must have one entry per unit": lengths == {size},
            "a unit is in a nonexistent stratum": np.all(have_strata),
            "a proxy of a drawn unit is not finite": np.all(np.isfinite(self.proxies)),
            "inclusion probabilities must lie in (0, 1]": np.all(are_probabilities),
        }
        for problem, is_satisfied in conditions.items():
            if not is_satisfied:
                raise InputError(problem)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sample):
            return NotImplemented
        return id_texts(self.ids) == id_texts(other.ids) and Record.__eq__(self, other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        details = f"design={self.design.kind!r}, strata={len(self.summary.sizes)}, seed={self.seed}"
        return f"Sample({self.size:,} of {self.population_size:,} units, {details})"

    @property
    def is_external(self) -> bool:
        """Whether the units were drawn elsewhere, or are the labelled rows of a table without a draw.

        Only samples that stratal draws have a digest of their population, and nearly all have a seed.
        """
        return self.digest is None and self.seed == 0

    @property
    def size(self) -> int:
        """Number of drawn units."""
        return len(self.ids)

    @property
    def population_size(self) -> int:
        """N."""
        return int(self.summary.sizes.sum())

    @property
    def n_h(self) -> IntArray:
        """Number of drawn units in each stratum (H,)."""
        return np.bincount(self.stratum, minlength=len(self.summary.sizes)).astype(np.int64)

    @property
    def proxy_names(self) -> tuple[str, ...]:
        """Names of the proxies (k,)."""
        return tuple(info.name for info in self.proxy_info)

    def population_digest(self) -> PopulationDigest | None:
        """Return the digest of the population of the draw; None if it is not known.

        Examples
        --------
        >>> import stratal
        >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5, 0.9])
        >>> stratal.designs.SimpleRandom(budget=2).draw(population, seed=7).population_digest().size
        3
        """
        if callable(self.digest):
            self._set(digest=self.digest())
        return self.digest  # type: ignore[return-value]

    def with_outcome(self, outcome: str, bounds: tuple[float, float] | None = None) -> Sample:
        """Return the sample with a declared kind of outcome, which is then not inferred from labels.

        Parameters
        ----------
        outcome : {"binary", "bounded", "unbounded"}
        bounds : (float, float), optional
            Bounds of a bounded outcome.

        Examples
        --------
        >>> import stratal
        >>> population = stratal.Population.from_arrays(ids=range(10))
        >>> sample = stratal.designs.SimpleRandom(budget=2).draw(population, seed=7)
        >>> sample.with_outcome("unbounded").question.outcome.scale
        'unbounded'
        """
        return replace(self, question=self.question.with_outcome(scale=outcome, bounds=bounds))

    def of_rows(self, rows: IntArray, **changes: object) -> Sample:
        """Return the sample of the units at these positions (m,), with changes of other fields."""
        columns: Keywords = {
            "ids": self.ids[rows],
            "stratum": self.stratum[rows],
            "inclusion_probability": self.inclusion_probability[rows],
            "proxies": self.proxies[rows],
            "round": self.round[rows],
            "groups": select_rows(self.groups, rows),
            "shown": select_rows(self.shown, rows),
        }
        return replace(self, **{**columns, **changes})

    def weighting(self, labelled: BoolArray | None = None) -> Weighting:
        """Return the weights of the labelled units; `labelled` is a mask (n,), by default all units."""
        if labelled is None:
            labelled = np.ones(self.size, dtype=bool)
        return self.design.weighting(self, labelled)

    @property
    def means_of_levels(self) -> Mapping[str, Mapping[str, list[float]]]:
        """Mean proxies over all units of each level, for the groups in `totals`: group, level, (k,).

        They are computed on first use from the population if it is in memory; otherwise empty.
        """
        if self.level_means is None:
            population = self.population
            means_of_columns = {}
            if population is not None and population.proxies:
                for name, counts in self.totals.items():
                    rule = Categories.of_levels(name, counts)
                    means = population.summarise(rule).proxy_means.tolist()
                    means_of_columns[name] = dict(zip(rule.levels, means, strict=True))
            self._set(level_means=means_of_columns)
        assert self.level_means is not None
        return self.level_means

    def write(self, path: str | Path) -> Path:
        """Write the sample to one self-describing file: Parquet, or CSV with a JSON file next to it.

        The extension is `.parquet` or `.csv`. The file is written under a temporary name and then renamed, so
        that it is never incomplete.

        Examples
        --------
        >>> import stratal, tempfile
        >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5, 0.9])
        >>> sample = stratal.designs.SimpleRandom(budget=2).draw(population, seed=7)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     stratal.Sample.read(sample.write(folder + "/sample.parquet")) == sample
        True
        """
        # Files are read with PyArrow, which samples in memory do not need.
        from stratal.designs.sample_file import write_parts

        return write_parts(Path(path), self._columns(), self._description())

    @staticmethod
    def read(path: str | Path) -> Sample:
        """Read a sample that `write` wrote.

        Raises
        ------
        InputError
            If the file does not exist, is damaged, or is not a sample file.

        Examples
        --------
        >>> Sample.read("nowhere.parquet")
        Traceback (most recent call last):
        stratal.errors.InputError: nowhere.parquet: no such file...
        """
        # Files are read with PyArrow, which samples in memory do not need.
        from stratal.designs.sample_file import check_drawn_units, damaged, read_parts

        if not isinstance(path, str | os.PathLike):
            action = "Write the sample to a file first, or pass the sample itself."
            raise InputError("Sample.read takes a path", given=type_text(path), action=action)
        columns, description = read_parts(Path(path))
        try:
            arguments = sample_arguments(columns, description)
            sample = with_tag_sets(_sample_from_arguments(arguments), lenient=True)
            units = (sample.ids, sample.inclusion_probability, sample.stratum)
            check_drawn_units(*units, sample.summary.sizes, sample.design.counts)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
            raise damaged(path, repr(error)) from None
        return sample

    def _columns(self) -> dict[str, AnyArray]:
        """Return the columns of a sample file: arrays (n,) by name."""
        common = field_values(self, ("stratum", "inclusion_probability", "round"))
        proxies = {f"proxy.{name}": self.proxies[:, k] for k, name in enumerate(self.proxy_names)}
        groups = {f"group.{name}": values for name, values in self.groups.items()}
        shown = {f"show.{name}": values for name, values in self.shown.items()}
        return {"id": self.ids} | common | proxies | groups | shown

    def _description(self) -> JsonDict:
        """Return the metadata of a sample file, which JSON can represent."""
        digest = self.population_digest()
        id_type = "integer" if self.ids.dtype.kind in "iu" else "text"
        optional_fields = without_none(field_values(self, _OPTIONAL_FIELDS))
        description = {
            **plain_fields(self, _REQUIRED_FIELDS),
            "ids": id_type,
            "totals": {name: dict(levels) for name, levels in self.totals.items()},
            **optional_fields,
            "proxies": [field_values(info) for info in self.proxy_info],
            "groups": list(self.groups),
            "shown": list(self.shown),
            "question": self.question.to_dict(),
            "summary": plain_fields(self.summary),
            "design": self.design.to_dict(),
        }
        if self.means_of_levels:
            description["level_means"] = self.means_of_levels
        if digest is not None:
            description["population_digest"] = digest.to_dict()
        return description

    @staticmethod
    @keywords_from(ExternalOptions)
    def from_labelled(table: Any, **keywords: Any) -> tuple[Sample, Labels]:
        """Return a sample that was drawn and labelled elsewhere, and its labels.

        It must be a probability sample. Units that were chosen by hand, by their outcome or to balance it
        (half right, half wrong) are not a probability sample, and weights cannot correct this.

        Parameters
        ----------
        table : path, mapping of columns, or dataframe
            One row per drawn unit.
        value : str or sequence of str
            Column of the label, or the columns of several annotators; empty for units without a label.
        id : str, optional
            Column of ids; by default `id`, `item_id` or the row numbers.
        stratum : str, optional
            Column of strata.
        sizes : mapping of stratum to N_h, path or table with columns `stratum` and `size`, optional
            Population units in each stratum, or their shares of the population if there is a separate
            unlabelled sample.
        cluster : str, optional
            Column of the groups that were drawn together, within strata if there are strata.
        weight : str, optional
            Column of weights: the number of units that each unit represents. `stratum` and `cluster` are
            those of the survey.
        inclusion_probability : str, optional
            Column of probabilities, instead of weights.
        mechanism : {"with-replacement", "poisson"}
            Mechanism that the variance of a weighted sample assumes.
        population_size : int, optional
            N of a simple random sample; for a weighted sample, the sum of all weights.
        proxy : str or sequence of str, optional
            Column of the proxy; several columns are allowed only if the table has all units.
        proxy_moments : path or table, optional
            Columns `stratum`, `mean`, `variance` (divisor count − 1) and `count` of the proxy over the
            unlabelled units. If a count is not N_h minus the labelled units, they are a separate sample, and
            the target is the superpopulation.
        population : path, table or Population, optional
            The population of the labelled units, or other units from the same source. It replaces
            `proxy_moments`, or without a proxy the sizes. Rows with the id of a labelled unit are this unit;
            without ids, all rows are other units. If none of sizes, weights and population is given, the
            table has all units: rows with a label are a random sample of its rows, or of each stratum.
        has_all_units : bool
            Whether the table has all units, although each row has a label.
        scaled, bounds
            Whether the proxy is on the outcome's scale, and the bounds of that scale.
        predicts : str or mapping of proxy to str, optional
            Quantity that the proxy predicts, as in `Population.read`.
        groups : sequence of str
            Columns to store for results by domain.
        predicted : str, optional
            Column of the model's answers.
        judge : str or sequence of str
            Columns with verdicts of judges, or proxies that are their scores.
        tags : {"json", ";", "|", ",", "none"}, optional
            Format of sets of tags in answers and labels, as in `Population.read`.

        Returns
        -------
        (Sample, Labels)
            Arguments of `stratal.estimate(sample, labels)` and of the other functions.

        Raises
        ------
        InputError
            If the population of the labelled units is not stated, and for contradictions: more labelled units
            than units, strata without a size, weights that are not positive.

        Examples
        --------
        >>> import stratal
        >>> table = {"right": [1, 0, 1, 1], "language": ["de", "de", "en", "en"]}
        >>> sample, labels = stratal.Sample.from_labelled(
        ...     table, value="right", stratum="language", sizes={"de": 10, "en": 30})
        >>> stratal.estimate(sample, labels).value
        0.875
        """
        from stratal.designs.external_sample import fields_of_labelled

        options = ExternalOptions(**keywords)
        sample_fields, labels = fields_of_labelled(table, options)
        sample = with_tag_sets(_sample_from_arguments(sample_fields))
        return with_declared_scores(sample, options.predicts), labels


# Fields that the description of a sample file stores unchanged; the optional ones only if they are not None.
_REQUIRED_FIELDS = ("version", "seed")
_OPTIONAL_FIELDS = ("half_width", "looks")


def sample_arguments(columns: Mapping[str, AnyArray], description: JsonMapping) -> JsonDict:
    """Return the arguments of `Sample` from the contents of its file; the design is still a dict."""
    proxies = tuple(
        ProxyInfo(**{**entry, "bounds": entry["bounds"] and tuple(entry["bounds"])})
        for entry in description["proxies"]
    )
    summary = description["summary"]
    n_strata = len(summary["sizes"])
    k = len(proxies)
    digest = description.get("population_digest")
    if digest is not None:
        digest = PopulationDigest(**digest)
    ids = columns["id"]
    arguments = {
        "ids": ids,
        "proxies": as_matrix([columns[f"proxy.{info.name}"] for info in proxies], len(ids)),
        "proxy_info": proxies,
        "groups": {name: columns[f"group.{name}"] for name in description["groups"]},
        "shown": {name: columns[f"show.{name}"] for name in description["shown"]},
        "totals": description.get("totals", {}),
        "level_means": description.get("level_means", {}),
        "digest": digest,
        "question": stored_question(description, proxies),
        "design": description["design"],
    }
    arguments |= {name: columns[name] for name in ("stratum", "inclusion_probability", "round")}
    arguments |= {name: description.get(name) for name in (*_REQUIRED_FIELDS, *_OPTIONAL_FIELDS)}
    # JSON does not store the shape of empty arrays.
    arguments["summary"] = StratumSummary(
        sizes=summary["sizes"],
        proxy_means=np.reshape(summary["proxy_means"], (n_strata, k)),
        proxy_covariances=np.reshape(summary["proxy_covariances"], (n_strata, k, k)),
    )
    return arguments


def stored_question(description: JsonMapping, proxies: tuple[ProxyInfo, ...]) -> Question:
    """Return the question of a sample file; for a file without one, derive it from the stored fields."""
    if "question" in description:
        return Question.from_dict(description["question"])
    label_meanings = description.get("counted") or {}
    bounds = description.get("bounds")
    if bounds is not None:
        bounds = tuple(bounds)
    answer = description.get("predicted")
    outcome = Outcome(
        scale=description.get("outcome"),
        bounds=bounds,
        positive=label_meanings.get("positive"),
        mapping=label_meanings.get("mapping"),
    )
    return Question(
        id=description.get("id_name") or "id",
        scores=tuple(info.score(answer) for info in proxies),
        answer=answer,
        groups=tuple(description["groups"]),
        shown=tuple(description["shown"]),
        outcome=outcome,
        estimand=description.get("estimand"),
    )


def _sample_from_arguments(arguments: Keywords) -> Sample:
    """Return the sample with these arguments; the design is still a dict."""
    return Sample(**{**arguments, "design": Design.from_dict(arguments["design"])})


def make_sample(
    design: Design,
    population: Population,
    seed: int,
    drawn: DrawnUnits,
    probabilities: FloatArray,
    summary: StratumSummary | None = None,
    *,
    has_digest: bool = True,
) -> Sample:
    """Return the sample of drawn units (n,) with these inclusion probabilities (n,).

    Without a summary, all units are one stratum.
    """
    # The levels of the population are counted only for groups with few levels among the drawn units, because
    # the count is slow for a column with many.
    totals = {}
    for name, column in drawn.groups.items():
        if len(set(column.tolist())) <= MAX_STORED_LEVELS:
            levels = population.levels(name)
            if len(levels) <= MAX_STORED_LEVELS:
                totals[name] = levels
    question = derive_question(population, tuple(drawn.groups), tuple(drawn.shown))
    token = None
    if population.row_base is not None:
        token = row_token(population.size, drawn)
    if summary is None:
        summary = population.summarise(Everything())
    digest = None
    if has_digest:
        digest = population.digest_of_draw(seed)
    sample = Sample(
        ids=drawn.ids,
        stratum=drawn.stratum,
        inclusion_probability=probabilities,
        proxies=drawn.proxies,
        proxy_info=population.proxies,
        groups=drawn.groups,
        shown=drawn.shown,
        question=replace(question, sample_token=token),
        totals=totals,
        summary=summary,
        design=design,
        seed=seed,
        population=population,
        digest=digest,
    )
    refuse_unusable_roles(sample.question, sample.groups)
    return with_tag_sets(sample)


def with_tag_sets(sample: Sample, *, lenient: bool = False) -> Sample:
    """Return the sample with answers that are sets of tags as normalised texts of sets.

    Answers are sets if this was declared, or if every answer is a list. Without a column of the model's
    answers, columns of lists are answers of several models. With `lenient`, a sample in which some answers
    are not sets has no sets, and no error is raised.

    Raises
    ------
    InputError
        For an answer that is not a set of tags if other answers are.
    """
    outcome = sample.question.outcome
    answer = sample.question.answer
    declared = outcome.tag_format
    if declared == NO_SETS or (outcome.holds_sets and outcome.tags):
        return sample
    columns: dict[str, AnyArray] = {}
    for name, cells in sample.groups.items():
        is_answer = name == answer
        # Without a column of the model's answers, columns with the declared separator are answers of several
        # models.
        has_separator = answer is None and any(str(declared) in cell for cell in set(cells.tolist()))
        tag_format = declared if is_answer or has_separator else None
        texts, first_other_row = read_sets(cells.tolist(), tag_format)
        if texts is not None:
            columns[name] = np.array(texts, dtype=np.str_)
        elif is_answer and first_other_row is not None and not lenient:
            unit = f"id {str(sample.ids[first_other_row])!r}"
            raise mixed_answers_error(name, cells[first_other_row], unit, declared)
    if answer is not None and answer not in columns:
        return sample
    if not columns:
        return sample
    tags = {tag for texts in columns.values() for tag in tags_of_sets(texts.tolist())}
    if sample.population is not None and answer is not None:
        tags |= {*population_tags(sample.population, answer)}
    question = sample.question.with_outcome(tag_format=declared or JSON_LISTS, tags=tuple(sorted(tags)))
    # The texts of the population differ from those of its sets.
    totals = {name: levels for name, levels in sample.totals.items() if name not in columns}
    return replace(sample, question=question, groups={**sample.groups, **columns}, totals=totals)


def with_declared_scores(sample: Sample, predicts: Predictions | None) -> Sample:
    """Return the sample with the declared meaning of its proxies; see `Score`.

    Raises
    ------
    InputError
        For a declaration that contradicts the values, the classes of the model's answers, or the declaration
        at the draw.
    """
    scores = declared_scores(predicts, sample.proxy_names)
    if not scores:
        return sample
    question = sample.question.refine(scores=scores.values())
    infos = []
    for proxy_index, info in enumerate(sample.proxy_info):
        score = scores.get(info.name)
        if score is not None:
            values = sample.proxies[:, proxy_index]
            score.refuse_values_outside(float(values.min()), float(values.max()))
            if question.answer is not None:
                score.refuse_unknown_class(_answered_classes(sample), f"the answers in {question.answer!r}")
            # If a proxy is on the scale of the outcome, the bounds of the outcome are those of the proxy, and
            # no independent declaration.
            declared_bounds = None if info.scaled else question.outcome.limits
            has_answer = question.answer is not None
            info = with_declared_scale(info, score, declared_bounds, has_answer=has_answer)
        infos.append(info)
    population = sample.population
    if population is not None:
        population = with_predictions(population, {name: score.predicts for name, score in scores.items()})
    return replace(sample, question=question, proxy_info=tuple(infos), population=population)


def _answered_classes(sample: Sample) -> set[str]:
    """Return the classes among the model's answers that the sample stores."""
    question = sample.question
    answer = str(question.answer)
    classes = {*question.outcome.classes, *question.outcome.tags, *sample.totals.get(answer, ())}
    if answer in sample.groups:
        classes |= set(sample.groups[answer].tolist())
    return classes


def derive_question(population: Population, groups: tuple[str, ...], shown: tuple[str, ...]) -> Question:
    """Return the question implied by the columns of a population: the roles, and the scale of the outcome.

    `groups` and `shown` are the names of the columns that the sample stores.
    """
    scaled = [info for info in population.proxies if info.scaled]
    bounds = next((info.bounds for info in scaled if info.bounds is not None), None)
    outcome = population.label_outcome
    if scaled and bounds is None:
        outcome = Outcome(scale="unbounded")
    elif scaled:
        outcome = Outcome(scale="bounded", bounds=bounds)
    elif outcome.scale is None and population.roles.answer is not None:
        outcome = Outcome(scale="binary")
    return Question(
        id=population.id_name,
        row_base=population.row_base,
        scores=population.scores,
        **population.roles.fields,
        groups=groups,
        shown=shown,
        outcome=replace(outcome, tag_format=population.tags),
    )


# Hexadecimal digits of a token: two samples have the same token with probability 2⁻⁴⁰.
_TOKEN_DIGITS = 10


def row_token(size: int, drawn: DrawnUnits) -> str:
    """Return a short text that identifies drawn rows, out of N (`size`), and detects labels of other rows.

    Samples of different tables have different tokens, even if the row numbers are equal. The token begins
    with a word, so that spreadsheets do not convert it to a number.
    """
    digest = hashlib.sha256(f"{size}:{json.dumps(drawn.ids.tolist())}".encode())
    digest.update(np.ascontiguousarray(drawn.proxies, dtype="<f8").tobytes())
    for columns in (drawn.groups, drawn.shown):
        for name, values in columns.items():
            digest.update(json.dumps([name, values.tolist()], default=str).encode())
    return f"rows-{digest.hexdigest()[:_TOKEN_DIGITS]}"


def require_sample(value: object, verb: str) -> Sample:
    """Return the value if it is a sample; otherwise raise an error with the code that creates one.

    `verb` is the name of the calling function, for the error.
    """
    if isinstance(value, Sample):
        return value
    given_kind = type_text(value)
    if isinstance(value, Population):
        action = "Draw a sample from the population first: stratal.plan(population, budget=…).draw(seed=…)."
    elif isinstance(value, str | os.PathLike):
        given_kind = f"the path {os.fspath(value)!r}"
        action = f"Read the file first: stratal.Sample.read({os.fspath(value)!r})."
    elif isinstance(value, WithDraw):
        action = "Draw a sample from the plan first: .draw(seed=…)."
    else:
        action = (
            "The sample comes first, then the labels. For units drawn and labelled elsewhere, create a "
            "sample with stratal.Sample.from_labelled(table, value=…, population_size=…)."
        )
    raise InputError(f"{verb} takes a Sample", given=given_kind, action=action)


def require_column_name(value: object, keyword: str) -> str:
    """Return the name of a column; raise an error for values, which belong to the population."""
    if isinstance(value, str):
        return value
    action = f"Give the values to the population, as features={{'x': values}}, and {keyword}='x' here."
    raise InputError(f"{keyword} must be the name of a column", given=type_text(value), action=action)
