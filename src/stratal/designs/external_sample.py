"""`Sample.from_labelled`: the parts of an external sample, which was drawn and labelled elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray, field_values, same_value
from stratal.errors import InputError, LabelError, MissingColumnError, suggest_names
from stratal.labels.label_values import refuse_no_answer_words
from stratal.labels.labels import Labels, UnitRows, normalize_id
from stratal.population.declaration import ROW, id_columns
from stratal.population.population import Population
from stratal.population.rules import MAX_STORED_LEVELS, Categories, Everything, Rule
from stratal.population.summary import Drawn, ProxyInfo, StratumSummary
from stratal.question import Outcome, Question
from stratal.question.column_words import ID_NAMES
from stratal.question.roles import DeclaredRoles
from stratal.question.scores import ORDER, Predictions, declared_scores
from stratal.question.tags import NO_SETS, read_set
from stratal.randomness import id_array, id_texts
from stratal.report.notes import RANDOM_ROWS, Note
from stratal.strata import Allocation
from stratal.strata.strata import Strata
from stratal.tables.row_groups import labelled_groups
from stratal.tables.row_index import refuse_two_ids, require_unique_index
from stratal.tables.small_table import SmallTable, is_missing


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExternalSample(DeclaredRoles):
    """The keywords of `Sample.from_labelled`: the columns of a labelled table and its sampling mechanism."""

    value: str
    id: str | None = None
    stratum: str | None = None
    sizes: Any = None
    cluster: str | None = None
    weight: str | None = None
    inclusion_probability: str | None = None
    mechanism: str = "with-replacement"
    population_size: int | None = None
    proxy: str | Sequence[str] | None = None
    proxy_moments: Any = None
    population: Any = None
    scaled: bool = True
    bounds: tuple[float, float] | None = (0.0, 1.0)
    groups: Sequence[str] = ()
    placeholders: Sequence[str] = ()
    tags: str | None = None
    predicts: Predictions | None = None
    has_all_units: bool = False

    @property
    def categories(self) -> tuple[str, ...]:
        """Columns that the sample keeps as groups: groups, strata and roles, but no proxies."""
        roles = self.roles
        role_columns = [
            name for name in roles.stored_columns if name not in self.proxies or name == roles.answer
        ]
        columns = (*self.groups, self.stratum, self.cluster, *role_columns)
        return tuple(dict.fromkeys(name for name in columns if name))

    @property
    def proxies(self) -> tuple[str, ...]:
        """The columns of proxies; means and strata use the first."""
        if self.proxy is None:
            return ()
        if isinstance(self.proxy, str):
            return (self.proxy,)
        return tuple(self.proxy)

    @property
    def first_proxy(self) -> str | None:
        """The column of the first proxy."""
        return next(iter(self.proxies), None)

    @property
    def states_sampling(self) -> bool:
        """Whether sizes, weights or a population size state the sampling of the rows."""
        declared = (self.sizes, self.weight, self.inclusion_probability, self.population_size)
        return any(value is not None for value in declared)

    def __post_init__(self) -> None:
        size = self.population_size
        has_size = size is not None
        is_positive_integer = isinstance(size, int | np.integer) and size > 0
        has_population = self.population is not None
        has_moments = self.proxy_moments is not None
        has_clusters = bool(self.cluster)
        sources = ("sizes", "weight", "inclusion_probability")
        sources_named = [name for name, value in field_values(self, sources).items() if value is not None]
        has_weights = any(name != "sizes" for name in sources_named)
        is_poisson = self.mechanism == "poisson"
        has_strata_or_clusters = has_clusters or (has_weights and bool(self.stratum))
        states_sizes = bool(sources_named) or has_size
        contradictions = {
            f"give one of {', '.join(sources)}: each states what a labelled unit represents": (
                len(sources_named) > 1
            ),
            "sizes and population_size are mutually exclusive": self.sizes is not None and has_size,
            "population_size must be a whole number above 0": has_size and not is_positive_integer,
            "proxy_moments can only be given with a proxy": has_moments and self.proxy is None,
            "proxy_moments and population are mutually exclusive": has_moments and has_population,
            "population and population_size are mutually exclusive": has_population and has_size,
            "a proxy can only be used with strata and their sizes": bool(self.proxy) and has_weights,
            "a Poisson sample cannot have strata or clusters": is_poisson and has_strata_or_clusters,
            "a proxy cannot be used for clusters of a table with sizes or weights": bool(self.proxy)
            and has_clusters
            and states_sizes,
            "clusters and strata must be in different columns": has_clusters and self.cluster == self.stratum,
        }
        for what, is_contradictory in contradictions.items():
            if is_contradictory:
                names = " and ".join(sources_named) or None
                raise InputError(what, given=names, action="Leave one of them out.")
        scores = declared_scores(self.predicts, self.proxies).values()
        if not self.scaled and any(score.predicts != ORDER for score in scores):
            what = "scaled=False declares that the proxy only orders units, which contradicts predicts="
            raise InputError(what, given=f"predicts={self.predicts!r}", action="Leave one of them out.")


def id_column(columns: SmallTable, name: str | None) -> str | None:
    """Return the column of ids, None if rows are only numbered."""
    if name == ROW and columns.find(ROW) is None:
        return None
    if name is not None:
        return name
    if columns.index is None:
        return columns.find(*ID_NAMES)
    require_unique_index(columns.index, columns.label)
    *others, index_name = columns.lists
    refuse_two_ids(index_name, id_columns(others), columns.label)
    return index_name


def ids_of(columns: SmallTable, name: str | None) -> AnyArray:
    """Return the ids (n,) of a table's rows; row numbers if it has no column of ids.

    Raises
    ------
    InputError
        For ids that are missing or duplicate.
    """
    name = id_column(columns, name)
    if name is None:
        return np.arange(len(columns))
    if any(is_missing(entry) for entry in columns.values(name)):
        action = "Fill it in, or number the rows: id='row', --id row."
        raise InputError(f"{columns.label}: an id is missing in column {name!r}", action=action)
    ids = id_array(np.array(columns.values(name), dtype=object))
    most_frequent, times = Counter(id_texts(ids)).most_common(1)[0]
    if times > 1:
        action = "Average several answers of one unit first, or join them as Labels."
        raise LabelError(f"{columns.label}: id {most_frequent!r} occurs twice", action=action)
    return ids


# Names of the column of stratum sizes, in the order of the search.
SIZE_NAMES = ("size", "sizes", "N_h", "N", "count", "population_size")


def stratum_sizes(sizes: object, stratum: str | None) -> dict[str, int] | None:
    """Return sizes by stratum from a mapping or a table, in which a stratum may occur in several rows."""
    if sizes is None:
        return None
    # A mapping of columns is a table; a mapping of numbers has the strata as keys.
    if isinstance(sizes, Mapping) and not all(isinstance(v, list | np.ndarray) for v in sizes.values()):
        sizes = {"stratum": list(sizes), "size": list(sizes.values())}
    columns = SmallTable.of(sizes, "sizes")
    size_column = columns.find(*SIZE_NAMES) or SIZE_NAMES[0]
    numbers = columns.numbers(size_column, positive=True, whole_numbers=True)
    stratum_column = columns.find("stratum", stratum or "stratum") or "stratum"
    names = columns.texts(stratum_column).tolist()
    size_by_stratum = dict(zip(names, numbers.astype(np.int64).tolist(), strict=True))
    for name, number in zip(names, numbers.tolist(), strict=True):
        if size_by_stratum[name] != number:
            what = f"{columns.label}: a stratum occurs twice, with different sizes"
            raise InputError(what, given=repr(name), action="Keep the size of the whole population.")
    return size_by_stratum


# Name of the stratum of all units, if there is no column of strata.
SINGLE_STRATUM = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherUnits:
    """Units of a population other than the labelled ones, by stratum.

    Parameters
    ----------
    strata : mapping of name to (float, float, int)
        Mean and variance (divisor count − 1) of the proxy, 0 without a proxy, and number of units.
    proxy : ProxyInfo, optional
    notes : tuple of str
        Notes on how they were distinguished from the labelled units.
    level_means : mapping of group to mapping of level to (float, int)
        Mean proxy of the other units in each level of the groups that the population has, and their number.
    """

    strata: Mapping[str, tuple[float, float, int]]
    proxy: ProxyInfo | None = None
    notes: tuple[str, ...] = ()
    level_means: Mapping[str, Mapping[str, tuple[float, int]]] = field(default_factory=dict)


def other_units(
    source: object,
    options: ExternalSample,
    labelled: Sequence[str] | None = None,
    columns: Mapping[str, AnyArray] | None = None,
    id_name: str | None = None,
) -> OtherUnits:
    """Return the sizes and proxy moments of the units of a population other than the labelled ones.

    Parameters
    ----------
    source : path, dataframe, mapping of columns, or Population
    options : ExternalSample
        Names the columns of proxies and strata.
    labelled : sequence of str, optional
        Ids of the labelled units, which are removed from the population. If the labelled units or the
        population have no ids, all rows are other units.
    columns : mapping of str to (n,) array, optional
        The same columns of the labelled units; the population must have equal values.
    id_name : str, optional
        Column of ids of the population.

    Raises
    ------
    InputError
        If only some ids of the labelled units are in the population, if they have another spelling there (007
        and 7), and if a unit has another proxy or stratum there.
    """
    proxy = options.first_proxy
    stratum = options.stratum
    population, has_ids, group_notes = _population_of_source(source, options, id_name)
    matched = None
    if labelled and has_ids:
        labelled_ids = list(labelled)
        matched = population.find(labelled_ids)
        _require_matching_units(population, labelled_ids, matched, columns or {})
    rule: Rule = Everything()
    if stratum is not None:
        levels = tuple(sorted(population.levels(stratum)))
        column = population.require_group(stratum)
        rule = Categories(column=column, levels=levels, codes=np.arange(len(levels)))
    if proxy is None:
        k = None
    else:
        k = population.proxy_names.index(population.proxy_info(proxy).name)
    summary = population.summarise(rule)
    counts = summary.sizes
    means = np.zeros(len(summary.sizes))
    squares = np.zeros(len(summary.sizes))
    if k is not None:
        means = summary.proxy_means[:, k]
        squares = summary.proxy_covariances[:, k, k] * counts
    n_matched = 0 if matched is None else len(matched.ids)
    if matched is not None and n_matched:
        if stratum is None:
            codes = np.zeros(n_matched, np.int64)
        else:
            codes = rule.assign(matched.groups)
        if k is None:
            values = np.zeros(n_matched)
        else:
            values = matched.proxies[:, k]
        counts, means, squares = _without_labelled(counts, means, squares, codes, values)
    if not counts.any():
        raise InputError("every unit of the population is labelled", action="Leave the population out.")
    if isinstance(rule, Categories):
        names = rule.levels
    else:
        names = (SINGLE_STRATUM,)
    variances = squares / np.maximum(counts - 1, 1)
    rows = zip(means.tolist(), variances.tolist(), counts.tolist(), strict=True)
    level_means = {}
    for name in options.groups:
        if k is not None and name in population.group_names:
            level_means[name] = _level_means_of_others(population, name, k, matched)
    overlap_note = _overlap_note(population.size, n_matched, has_ids=has_ids and labelled is not None)
    return OtherUnits(
        strata=dict(zip(names, rows, strict=True)),
        proxy=None if k is None else population.proxies[k],
        notes=(*population.notes, overlap_note, *group_notes),
        level_means=level_means,
    )


def _without_labelled(
    counts: IntArray, means: FloatArray, squares: FloatArray, codes: IntArray, values: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return counts, proxy means and sums of squared deviations (H,) of the strata without some units.

    The units (m,) have a stratum, `codes`, and a proxy, `values`. The sum of squared deviations of two groups
    is the sum of their own ones and a term for the difference of their means (Chan, Golub & LeVeque 1983).
    Here it is solved for one of the groups.
    """
    n_strata = len(counts)
    n = np.bincount(codes, minlength=n_strata)
    labelled_means = np.bincount(codes, values, minlength=n_strata) / np.maximum(n, 1)
    n_others = counts - n
    other_means = (counts * means - n * labelled_means) / np.maximum(n_others, 1)
    squares = squares - np.bincount(codes, (values - labelled_means[codes]) ** 2, minlength=n_strata)
    between = n * n_others / np.maximum(counts, 1) * (labelled_means - other_means) ** 2
    return n_others, other_means, np.maximum(squares - between, 0.0)


def _overlap_note(size: int, n_matched: int, *, has_ids: bool) -> str:
    """Return the note on the rows of the population that are labelled units."""
    size_text = f"the population has {size:,} rows"
    if not has_ids:
        return f"{size_text}, taken not to include the labelled ones, since there are no ids to compare"
    if n_matched == 0:
        return f"{size_text}, none of which has the id of a labelled unit: the labelled ones are added"
    return f"{size_text}, the {n_matched:,} labelled units among them"


def _level_means_of_others(
    population: Population, group: str, proxy: int, labelled: Drawn | None
) -> dict[str, tuple[float, int]]:
    """Return mean proxy and number of the unlabelled units of each level."""
    levels = tuple(sorted(population.levels(group)))
    rule = Categories(column=group, levels=levels, codes=np.arange(len(levels)))
    summary = population.summarise(rule)
    counts = summary.sizes.astype(np.float64)
    sums = counts * summary.proxy_means[:, proxy]
    if labelled is not None and len(labelled.ids):
        codes = rule.assign(labelled.groups)
        counts = counts - np.bincount(codes, minlength=len(levels))
        sums = sums - np.bincount(codes, labelled.proxies[:, proxy], minlength=len(levels))
    means = np.where(counts > 0, sums / np.maximum(counts, 1.0), 0.0)
    rows = zip(means.tolist(), counts.astype(np.int64).tolist(), strict=True)
    return dict(zip(levels, rows, strict=True))


def level_means_of(
    columns: SmallTable, options: ExternalSample, others: OtherUnits | None, parts: Mapping[str, Any]
) -> dict[str, dict[str, list[float]]]:
    """Return the mean proxy over all units, labelled and others, of each level of the groups: (1,) each.

    `parts` has the design and the summary. The result is empty if the unlabelled units are a separate sample,
    which has no sizes of levels.
    """
    means_by_group: dict[str, dict[str, list[float]]] = {}
    if others is None or options.first_proxy is None or parts["design"]["kind"] == "separate-samples":
        return means_by_group
    if options.stratum is not None:
        names = np.unique(columns.texts(options.stratum)).tolist()
        means_by_group[options.stratum] = dict(zip(names, parts["summary"].proxy_means.tolist(), strict=True))
    values = columns.numbers(options.first_proxy)
    for group, means in others.level_means.items():
        names = columns.texts(group)
        levels = {}
        for level in sorted({*means, *names.tolist()}):
            level_values = values[names == level]
            mean, count = means.get(level, (0.0, 0))
            total = level_values.sum() + mean * count
            size = len(level_values) + count
            levels[level] = [float(total / max(size, 1))]
        means_by_group[group] = levels
    return means_by_group


def _population_of_source(
    source: object, options: ExternalSample, id_name: str | None
) -> tuple[Population, bool, tuple[str, ...]]:
    """Return the population, whether its units have ids, and a note if it lacks columns of the groups."""
    if isinstance(source, Population):
        return source, not source.numbered_by_row and source.id_name != ROW, ()
    strata = () if options.stratum is None else (options.stratum,)
    groups = tuple(dict.fromkeys((*strata, *options.groups)))
    if options.first_proxy is not None and len(groups) > len(strata):
        try:
            return *_read_population(source, options.first_proxy, groups, id_name), ()
        except InputError:
            # The population may lack a group. The second attempt raises any other error again.
            pass
    population, has_ids = _read_population(source, options.first_proxy, strata, id_name)
    note = "the population lacks a column of the groups, so means of groups do not use a proxy"
    lacks_groups = options.first_proxy is not None and len(groups) > len(strata)
    return population, has_ids, (note,) if lacks_groups else ()


def _read_population(
    source: Any, proxy: str | None, groups: tuple[str, ...], id_name: str | None
) -> tuple[Population, bool]:
    """Return the population, and whether its units have ids."""
    columns: dict[str, Any] = {"id": id_name, "proxy": proxy, "groups": groups}
    if isinstance(source, Mapping):
        import pyarrow as pa

        source = pa.table({name: pa.array(np.asarray(values)) for name, values in source.items()})
    read = Population.read if isinstance(source, str | Path) else Population.from_table
    try:
        return read(source, **columns), True
    except MissingColumnError as error:
        if id_name is not None or error.column != "id":
            raise
    return read(source, **{**columns, "id": ROW}), False


def _require_matching_units(
    population: Population, labelled: list[str], matched: Drawn, columns: Mapping[str, AnyArray]
) -> None:
    """Raise an error if only some ids match, or if a unit has other values in the population."""
    row_by_id = {text: row for row, text in enumerate(id_texts(matched.ids))}
    absent = [text for text in labelled if text not in row_by_id]
    other_spellings = {}
    if absent:
        other_spellings = _find_other_spellings(population, absent[:_MAX_IDS_TRIED])
    if other_spellings or (row_by_id and absent):
        example = next((text for text in absent if text in other_spellings), absent[0])
        given_text = (
            f"{len(labelled) - len(absent):,} of {len(labelled):,} labelled units, but not {example!r}"
        )
        if other_spellings:
            given_text += f", which it has as {other_spellings[example]!r}"
        raise InputError(
            "the ids of the labelled units match the population's only in part",
            given=given_text,
            allowed="all labelled units among the population's, or none",
            action="Write ids alike in both files; give the whole population, or one without labelled units.",
        )
    proxies = {name: matched.proxies[:, k] for k, name in enumerate(population.proxy_names)}
    # The two files may differ in the case of their column names.
    labelled_columns = {name.casefold(): values.tolist() for name, values in columns.items()}
    for name, values in {**matched.groups, **proxies}.items():
        for text, labelled_value in zip(labelled, labelled_columns.get(name.casefold(), ()), strict=False):
            if text not in row_by_id:
                continue
            population_value = values[row_by_id[text]].item()
            if not same_value(labelled_value, population_value):
                raise InputError(
                    f"column {name!r} of unit {text!r} is not the same in both files",
                    given=f"{labelled_value!r} among the labelled units, "
                    f"{population_value!r} in the population",
                    action="Give the unchanged population from which the labelled units come.",
                )


# Number of ids that are searched for in another spelling. A file has one spelling, so that a few are enough.
_MAX_IDS_TRIED = 50


def _find_other_spellings(population: Population, ids: Sequence[str]) -> dict[str, str]:
    """Return the population's spelling of ids that it lacks: with leading zeros, with .0 or without them."""
    id_by_spelling: dict[str, str] = {}
    for text in ids:
        bare = normalize_id(text)
        spellings = [bare, f"{bare}.0", *("0" * zeros + bare for zeros in range(1, 9))]
        id_by_spelling |= {spelling: text for spelling in spellings if spelling != text}
    existing = id_texts(population.find(list(id_by_spelling)).ids)
    return {id_by_spelling[spelling]: spelling for spelling in existing}


_LABEL = "the table of labels"

_VALUE_ACTION = "Name the label column: value= (--value COL)."


def parts_of_labelled(table: object, options: ExternalSample) -> tuple[dict[str, Any], Labels]:
    """Return the fields of an external sample, with the design as a dict, and its labels."""
    columns = SmallTable.of(table, _LABEL, (options.value,))
    if options.population is None and options.proxy_moments is None and not options.states_sampling:
        labelled = _labelled_rows(columns, options)
        if not labelled:
            what = f"{columns.label}: no row of column {options.value!r} has a label"
            raise LabelError(what, action="Fill in labels, or name the label column: value= (--value COL).")
        is_partial = len(labelled) < len(columns)
        if is_partial and options.cluster is not None:
            _require_complete_clusters(columns, options, labelled)
        if is_partial or options.has_all_units:
            return _parts_of_complete_table(columns, options, labelled)
        # Every row seems to have a label, but some may be words such as NA for labels that are missing.
        distinct_labels = dict.fromkeys(map(str, columns.values(options.value)))
        refuse_no_answer_words(list(distinct_labels))
    if len(options.proxies) > 1:
        what = "several proxies need a table that has all units, those without a label too"
        raise InputError(what, given=", ".join(options.proxies), allowed="one proxy")
    id_name = id_column(columns, options.id)
    row_numbers = np.arange(len(columns))
    labelled = _labelled_rows(columns, options)
    columns, others = _labelled_and_others(columns, options)
    if id_name is not None:
        ids = ids_of(columns, options.id)
    elif len(columns) == len(row_numbers):
        ids = row_numbers
    else:
        # Rows without a label were removed, and the others keep their numbers.
        ids = row_numbers[labelled]
    if options.cluster is not None and options.proxies:
        raise InputError(
            "a proxy cannot be used for clusters if every row has a label, or if weights or sizes are stated",
            given=", ".join(options.proxies),
            action="Leave the proxy out.",
        )
    has_weights = options.weight is not None or options.inclusion_probability is not None
    if has_weights or options.cluster is not None:
        design_parts = _weighted_parts(columns, options, others)
    else:
        design_parts = _stratified_parts(columns, options, others)
    bounds = options.bounds
    if others is not None and others.proxy is not None and bounds == (0.0, 1.0):
        bounds = others.proxy.bounds
    group_names = options.categories
    answer = options.roles.answer
    sets = _holds_sets(columns, answer, options.tags)
    if options.first_proxy:
        info = ProxyInfo(name=options.first_proxy, scaled=options.scaled, bounds=bounds)
        proxy_info: tuple[ProxyInfo, ...] = (info,)
        proxies = columns.numbers(options.first_proxy)[:, None]
    else:
        proxy_info = ()
        proxies = np.zeros((len(ids), 0))
    if id_name is None:
        row_base = 0
    else:
        row_base = None
    parts = design_parts | {
        "ids": ids,
        "proxies": proxies,
        "proxy_info": proxy_info,
        "seed": 0,
        "groups": {name: columns.texts(name, sets=sets and name == answer) for name in group_names},
        "level_means": level_means_of(columns, options, others, design_parts),
        "question": Question(
            id=id_name or "id",
            row_base=row_base,
            scores=tuple(info.score(answer) for info in proxy_info),
            **options.roles.fields,
            outcome=Outcome(tag_format=options.tags),
            groups=group_names,
            stratum=options.stratum,
            cluster=options.cluster,
            weight=options.weight,
        ),
    }
    labels = _labels(ids, columns, options.value, sets=sets)
    if others is not None:
        labels = replace(labels, notes=(*labels.notes, *others.notes))
    return parts, labels


def _require_complete_clusters(columns: SmallTable, options: ExternalSample, labelled: Sequence[int]) -> None:
    """Raise an error if only some rows of clusters have labels: it is then unknown which rows were drawn."""
    assert options.cluster is not None
    if options.stratum is not None:
        raise InputError(
            "clusters within strata need the number of clusters of each stratum",
            given=f"cluster={options.cluster!r} and strata in {options.stratum!r}",
            allowed="weight= (--weight COL) or sizes= (--sizes FILE)",
        )
    is_labelled = np.isin(np.arange(len(columns)), labelled)
    groups = labelled_groups(columns, options.cluster, is_labelled)
    if groups.are_labelled_enough_for_clusters:
        return
    raise InputError(
        f"{columns.label}: some rows of the labelled clusters have no label",
        given=f"labels in {groups.labelled:,} of {len(groups.sizes):,} {options.cluster!r}, and in "
        f"{groups.labelled_share:.0%} of the rows of these",
        allowed="labels in all rows of the clusters that were drawn; or weight= (--weight COL), sizes= "
        "(--sizes FILE) or population_size= (--population-size N)",
        action="Label the other rows of these clusters, or state how many units each labelled one represents."
        " If single rows were labelled at random, leave cluster= (--cluster) out.",
    )


def _labelled_rows(columns: SmallTable, options: ExternalSample) -> list[int]:
    """Return the numbers of the rows that have a label."""
    sets = _holds_sets(columns, options.roles.answer, options.tags)
    if sets:
        entries = columns.answers(options.value, _VALUE_ACTION)
    else:
        entries = columns.values(options.value, _VALUE_ACTION)
    empty = {word.casefold() for word in options.placeholders}
    return [
        row
        for row, entry in enumerate(entries)
        if not is_missing(entry) and not (isinstance(entry, str) and entry.strip().casefold() in empty)
    ]


def _parts_of_complete_table(
    columns: SmallTable, options: ExternalSample, labelled: list[int]
) -> tuple[dict[str, Any], Labels]:
    """Return the fields and the labels of the sample of a table that has all units.

    The rows with a label, `labelled` (n,), are a simple random sample of all rows, or of each stratum.
    """
    id_name = id_column(columns, options.id)
    ids = ids_of(columns, options.id)
    roles = options.roles
    sets = _holds_sets(columns, roles.answer, options.tags)
    groups = {name: columns.texts(name, sets=sets and name == roles.answer) for name in options.categories}
    proxies = {name: columns.numbers(name) for name in options.proxies}
    bounds = None
    scaled = None
    if proxies:
        scaled = options.scaled
        # The default (0, 1) is not a statement of the user: the population derives bounds from the proxy.
        if options.bounds != (0.0, 1.0):
            bounds = options.bounds
    population = Population.from_arrays(
        proxy=proxies or None,
        ids=ids,
        groups=groups,
        tags=options.tags,
        bounds=bounds,
        scaled=scaled,
        **roles.keywords,
    )
    rows = np.array(labelled)
    drawn_clusters = np.empty(0, dtype=object)
    if options.cluster is not None:
        # Rows without a label of a drawn cluster were drawn too: their labels are missing.
        drawn_clusters = np.unique(groups[options.cluster][rows])
        rows = np.flatnonzero(np.isin(groups[options.cluster], drawn_clusters))
    rule: Rule = Everything()
    codes = np.zeros(len(rows), np.int64)
    if options.stratum is not None:
        levels = tuple(sorted(population.levels(options.stratum)))
        rule = Categories(column=options.stratum, levels=levels, codes=np.arange(len(levels)))
        codes = np.searchsorted(np.array(levels), groups[options.stratum][rows])
    summary = population.summarise(rule)
    counts = np.bincount(codes, minlength=len(summary.sizes))
    if np.any(counts == 0) and isinstance(rule, Categories):
        what = f"{columns.label}: stratum {rule.levels[int(np.argmin(counts))]!r} has no labelled unit"
        raise InputError(what, action="Merge it with another stratum in the table.")
    design: dict[str, Any] = {"kind": "simple-random", "budget": len(rows)}
    if isinstance(rule, Categories):
        design = _stratified_design(rule.column, list(rule.levels), counts, summary)
    sizes = {name: population.levels(name) for name in groups}
    inclusion_probability = (counts / summary.sizes)[codes]
    if options.cluster is not None:
        design = _cluster_design(options.cluster, sizes[options.cluster], drawn_clusters)
        inclusion_probability = np.full(len(rows), len(drawn_clusters) / len(sizes[options.cluster]))
    if id_name is None:
        row_base = 0
    else:
        row_base = None
    drawn_proxies = np.zeros((len(rows), len(proxies)))
    for k, values in enumerate(proxies.values()):
        drawn_proxies[:, k] = values[rows]
    parts = {
        "ids": ids[rows],
        "stratum": codes,
        "inclusion_probability": inclusion_probability,
        "proxies": drawn_proxies,
        "proxy_info": population.proxies,
        "summary": summary,
        "design": design,
        "seed": 0,
        "groups": {name: values[rows] for name, values in groups.items()},
        "totals": {name: levels for name, levels in sizes.items() if len(levels) <= MAX_STORED_LEVELS},
        "population": population,
        "declared_random": True,
        "question": Question(
            id=id_name or "id",
            row_base=row_base,
            scores=population.scores,
            **roles.fields,
            outcome=Outcome(tag_format=options.tags),
            groups=tuple(groups),
            stratum=options.stratum,
            cluster=options.cluster,
        ),
    }
    labels = _labels(ids[labelled], columns.only(labelled), options.value, sets=sets)
    if len(labelled) == len(columns):
        return parts, labels
    note = Note(RANDOM_ROWS, _selection_text(options, len(labelled), len(columns), len(drawn_clusters)))
    return parts, replace(labels, notes=(*labels.notes, note))


def _selection_text(options: ExternalSample, n_labelled: int, n_rows: int, n_clusters: int) -> str:
    """Return the note on the assumed selection of the labelled rows of a table."""
    if options.cluster is not None:
        return f"the {n_clusters:,} {options.cluster!r} with labels are taken as a random sample of all"
    if options.stratum is None:
        within = ""
    else:
        within = f" of each {options.stratum}"
    if n_labelled == 1:
        rows = "the 1 row with a label is"
    else:
        rows = f"the {n_labelled:,} rows with a label are"
    return f"{rows} taken as a random sample{within} of all {n_rows:,} rows"


def _cluster_design(cluster: str, sizes: Mapping[str, int], drawn: AnyArray) -> dict[str, Any]:
    """Return the design of a simple random sample of whole clusters; `sizes` are the rows of each."""
    return {
        "kind": "clusters",
        "cluster": cluster,
        "n_clusters": len(drawn),
        "budget": None,
        "clusters": len(sizes),
        "squared_sizes": sum(int(size) ** 2 for size in sizes.values()),
    }


def labels_of(sample: UnitRows, table: object, value: str) -> Labels:
    """Return another column of the table of an external sample as labels."""
    columns = SmallTable.of(table, _LABEL, (value,))
    # The table may have rows that are not in the sample: units without a label.
    if len(columns) != sample.size:
        if sample.question.row_base is None:
            name = sample.question.id
        else:
            name = ROW
        position = {text: row for row, text in enumerate(id_texts(ids_of(columns, name)))}
        columns = columns.only([position[text] for text in id_texts(sample.ids)])
    return _labels(sample.ids, columns, value, sets=sample.question.outcome.holds_sets)


def _holds_sets(columns: SmallTable, predicted: str | None, tags: str | None) -> bool:
    """Return whether the model's answers are sets of tags, if declared or if every answer is a list."""
    if predicted is None or tags == NO_SETS:
        return False
    return tags is not None or all(read_set(cell) is not None for cell in columns.answers(predicted))


def _labels(ids: AnyArray, columns: SmallTable, value: str, *, sets: bool = False) -> Labels:
    if sets:
        entries = columns.answers(value, _VALUE_ACTION)
    else:
        entries = columns.values(value, _VALUE_ACTION)
    values = tuple(None if is_missing(entry) else entry for entry in entries)
    return Labels(ids=tuple(id_texts(ids)), values=values, source=columns.label, notes=columns.notes)


def _labelled_and_others(
    columns: SmallTable, options: ExternalSample
) -> tuple[SmallTable, OtherUnits | None]:
    """Return the labelled rows, and the other units of the population if they are known."""
    if options.proxy_moments is not None:
        return columns, _stated_moments(options)
    if options.population is None and options.first_proxy is None:
        return columns, None
    rows = _labelled_rows(columns, options)
    if rows:
        empty = sorted({*range(len(columns))} - {*rows})
        labelled = columns.only(rows)
    else:
        empty = []
        labelled = columns
    if options.population is None:
        if not empty:
            allowed = "rows with an empty label, population= (--population FILE), or proxy_moments="
            raise InputError(f"{columns.label}: a proxy needs the units that have no label", allowed=allowed)
        others = other_units(_unit_columns(columns.only(empty), options), options)
        note = f"{len(empty):,} rows without a label are the population's other units"
        return labelled, replace(others, notes=(note,))
    name = id_column(columns, options.id)
    if name is None:
        ids = None
    else:
        ids = id_texts(ids_of(labelled, options.id))
    unit_columns = _unit_columns(labelled, options)
    # The population may have another name for its ids, unless the user names the column.
    id_name = name if options.id else None
    others = other_units(options.population, options, ids, unit_columns, id_name)
    left_out_notes = (f"{len(empty):,} rows without a label were left out",) if empty else ()
    return labelled, replace(others, notes=(*others.notes, *left_out_notes))


def _unit_columns(columns: SmallTable, options: ExternalSample) -> dict[str, AnyArray]:
    """Return the columns of strata, groups and the proxy, by their names in the table."""
    unit_columns = {}
    if options.stratum is not None:
        unit_columns[columns.find(options.stratum) or options.stratum] = columns.texts(options.stratum)
    proxy = options.first_proxy
    if proxy is None:
        return unit_columns
    for name in options.groups:
        unit_columns[columns.find(name) or name] = columns.texts(name)
    proxy_column = columns.find(proxy)
    if proxy_column:
        unit_columns[proxy_column] = columns.numbers(proxy)
    return unit_columns


# ---- strata of known size


def _stratified_parts(
    columns: SmallTable, options: ExternalSample, others: OtherUnits | None
) -> dict[str, Any]:
    """Return strata, design and summary of a simple random sample of each stratum, or of all units."""
    if options.stratum:
        labelled = columns.texts(options.stratum)
    else:
        labelled = np.full(len(columns), SINGLE_STRATUM)
    sizes: Mapping[str, object] | None
    if options.stratum is None and options.population_size is not None:
        sizes = {SINGLE_STRATUM: options.population_size}
    else:
        sizes = stratum_sizes(options.sizes, options.stratum)
    unlabelled: Mapping[str, tuple[float, float, int]] = {}
    if others is not None:
        unlabelled = others.strata
    names = sorted({*labelled.tolist(), *(sizes or {}), *unlabelled})
    codes = np.searchsorted(np.array(names), labelled)
    counts = np.bincount(codes, minlength=len(names))
    for name in names:
        if options.proxy_moments is not None and name not in unlabelled:
            allowed = ", ".join(list(unlabelled)[:8])
            raise InputError(f"proxy_moments has no row for stratum {name!r}", allowed=allowed)
    moments = np.array([unlabelled.get(name, (0.0, 0.0, 0)) for name in names])
    unlabelled_counts = None if others is None else moments[:, 2]
    n_total = _stratum_sizes_checked(names, counts, unlabelled_counts, sizes, columns.label)
    summary = StratumSummary.without_proxies(n_total)
    is_separate = False
    if others is not None and options.first_proxy:
        # Moments of the proxy over the n labelled and the m other units together (Chan, Golub & LeVeque
        # 1983).
        values = columns.numbers(options.first_proxy)
        n = counts
        mean, variance, m = moments.T
        labelled_means = np.bincount(codes, values, minlength=len(n)) / n
        labelled_squares = np.bincount(codes, (values - labelled_means[codes]) ** 2, minlength=len(n))
        other_squares = variance * np.maximum(m - 1, 0)
        between = n * m / (n + m) * (labelled_means - mean) ** 2
        joint_means = (n * labelled_means + m * mean) / (n + m)
        joint_variances = (labelled_squares + other_squares + between) / (n + m)
        summary = StratumSummary(
            sizes=n_total,
            proxy_means=joint_means[:, None],
            proxy_covariances=joint_variances[:, None, None],
        )
        is_separate = bool(np.any(m != n_total - counts))
    if is_separate:
        design: dict[str, Any] = {
            "kind": "separate-samples",
            "names": names,
            "shares": n_total / n_total.sum(),
            "means": moments[:, 0],
            "variances": moments[:, 1],
            "counts": moments[:, 2],
        }
    elif options.stratum is None:
        design = {"kind": "simple-random", "budget": int(counts[0])}
    else:
        design = _stratified_design(options.stratum, names, counts, summary)
    return {
        "stratum": codes,
        "inclusion_probability": np.minimum(counts / n_total, 1.0)[codes],
        "summary": summary,
        "design": design,
    }


def _stratum_sizes_checked(
    names: list[str],
    counts: IntArray,
    unlabelled: FloatArray | None,
    sizes_by_stratum: Mapping[str, object] | None,
    label: str,
) -> IntArray:
    """Return N_h (H,); raise an error for sizes that contradict the labelled units."""
    if sizes_by_stratum is None and unlabelled is None:
        raise InputError(
            "the table does not say what the labels are a sample of",
            allowed="population= (--population FILE), sizes= of the strata (--sizes FILE), weight= "
            "(--weight COL), inclusion_probability= or population_size= (--population-size N)",
            action="Labels chosen by hand or by outcome are not a random sample: nothing can be estimated.",
        )
    for name in names:
        if sizes_by_stratum is not None and name not in sizes_by_stratum:
            raise InputError(
                f"{label}: stratum {name!r} has no size", allowed=suggest_names(name, sizes_by_stratum)
            )
    if np.any(counts == 0):
        what = f"{label}: stratum {names[int(np.argmin(counts))]!r} has no labelled unit"
        raise InputError(what, action="Merge it with another stratum, in the table and in the sizes.")
    if sizes_by_stratum is None:
        assert unlabelled is not None
        return counts + unlabelled.astype(np.int64)
    sizes = np.array([sizes_by_stratum[name] for name in names], np.int64)
    # With a separate unlabelled sample, sizes may be shares.
    if unlabelled is None and np.any(counts > sizes):
        h = int(np.argmax(counts > sizes))
        what = f"{label}: stratum {names[h]!r} has more labelled units than its size"
        raise InputError(
            what, given=f"{counts[h]} of {sizes[h]}", action="A size must count all units, labelled or not."
        )
    return sizes


def _stratified_design(
    stratum: str, names: list[str], counts: IntArray, summary: StratumSummary
) -> dict[str, Any]:
    """Return the stratified design of these strata and counts as a dict."""
    sizes = summary.sizes
    unknown = np.full(len(sizes), np.nan)
    proxy_means = unknown
    proxy_variances = unknown
    if summary.proxy_means.shape[1] > 0:
        proxy_means = summary.proxy_means[:, 0]
        proxy_variances = summary.proxy_covariances[:, 0, 0]
    strata = Strata(
        rule=Categories(column=stratum, levels=tuple(names), codes=np.arange(len(sizes))),
        names=tuple(names),
        sizes=sizes,
        proxy_means=proxy_means,
        proxy_variances=proxy_variances,
        conditional_variances=unknown,
        method="given",
    )
    allocation = Allocation(
        n_h=counts, method="given", budget=int(counts.sum()), minimum=np.zeros_like(counts), maximum=sizes
    )
    return {"kind": "stratified", "strata": strata.to_dict(), "allocation": allocation.to_dict()}


def _stated_moments(options: ExternalSample) -> OtherUnits:
    """Return mean, variance and count of the proxy over the unlabelled units of each stratum."""
    columns = SmallTable.of(options.proxy_moments, "proxy_moments")
    if options.stratum is not None or "stratum" in columns.lists:
        names = columns.texts("stratum").tolist()
    else:
        names = [SINGLE_STRATUM]
    variances = columns.numbers("variance")
    counts = columns.numbers("count", positive=True, whole_numbers=True)
    if np.any(variances < 0) or len(set(names)) < len(names) or len(names) != len(columns):
        what = f"{columns.label}: there must be one row per stratum, and no negative variance"
        raise InputError(what, action="Without strata, give a single row.")
    means = columns.numbers("mean")
    counts = counts.astype(np.int64)
    rows = zip(means.tolist(), variances.tolist(), counts.tolist(), strict=True)
    return OtherUnits(strata=dict(zip(names, rows, strict=True)))


# ---- weights


# Weights with a sum of at most the number of units, up to this share of rounding, are relative.
_WEIGHT_TOLERANCE = 1e-9


def _weighted_parts(
    columns: SmallTable, options: ExternalSample, others: OtherUnits | None
) -> dict[str, Any]:
    """Return design and summary of a sample with weights, inclusion probabilities or clusters."""
    size = options.population_size
    scale = 1.0
    n = len(columns)
    if others is not None:
        size = n + sum(count for _, _, count in others.strata.values())
    weights_from_sizes = options.weight is None and options.inclusion_probability is None
    if options.inclusion_probability is not None:
        probabilities = columns.numbers(options.inclusion_probability, positive=True)
        if np.any(probabilities > 1):
            what = f"{columns.label}: column {options.inclusion_probability!r} contains a probability above 1"
            raise InputError(what, action="If these are weights, give weight= instead.")
        total = float(np.sum(1.0 / probabilities))
    else:
        if weights_from_sizes:
            # Clusters without weights: all units of a stratum have the weight N_h / n_h.
            weights = 1.0 / _stratified_parts(columns, options, others)["inclusion_probability"]
        else:
            weights = columns.numbers(options.weight or "", positive=True)
        total = float(weights.sum())
        # Relative weights may be below 1: the scale keeps the stored probabilities at most 1.
        scale = min(float(weights.min()), 1.0)
        probabilities = scale / weights
        if size is None and total < len(weights) * (1 + _WEIGHT_TOLERANCE):
            what = f"{columns.label}: the weights sum to no more than the number of labelled units"
            raise InputError(what, action="They are relative: give population_size= too.")
        if size is not None:
            scale *= size / total
    if size is not None and size < n and options.mechanism == "poisson":
        raise InputError(
            "more units were drawn than there are", given=f"{n} of {size}", action="Correct population_size=."
        )
    if size is None:
        size_estimate = round(total)
    else:
        size_estimate = size
    sizes = np.array([max(size_estimate, 1)])
    return {
        "stratum": np.zeros(n, np.int64),
        "inclusion_probability": probabilities,
        "summary": StratumSummary.without_proxies(sizes),
        "design": {
            "kind": "given-weights",
            "scale": scale,
            "mechanism": options.mechanism,
            "known_size": size is not None or weights_from_sizes,
            "stratum": options.stratum,
            "cluster": options.cluster,
            "sizes_known": weights_from_sizes and options.stratum is not None,
        },
    }
