"""`Sample.from_labelled`: the parts of a sample that was drawn and labelled elsewhere."""

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
from stratal.population.rules import MOST_LEVELS, Categories, Everything, Rule
from stratal.population.summary import Drawn, ProxyInfo, StratumSummary
from stratal.question import Outcome, Question
from stratal.question.recognition import ID_NAMES
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
        of_roles = (name for name in roles.stored_columns if name not in self.proxies or name == roles.answer)
        columns = (*self.groups, self.stratum, self.cluster, *of_roles)
        return tuple(dict.fromkeys(name for name in columns if name))

    @property
    def proxies(self) -> tuple[str, ...]:
        """The columns of proxies; the first is the one that means and strata use."""
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
    def says_what_rows_are(self) -> bool:
        """Whether sizes or weights say what the rows of the table are a sample of."""
        declared = (self.sizes, self.weight, self.inclusion_probability, self.population_size)
        return any(value is not None for value in declared)

    def __post_init__(self) -> None:
        size = self.population_size
        column = self.cluster
        sources = ("sizes", "weight", "inclusion_probability")
        sources_named = [name for name, value in field_values(self, sources).items() if value is not None]
        weighted = [name for name in sources_named if name != "sizes"]
        moments = self.proxy_moments is not None
        wrong = {
            f"give one of {', '.join(sources)}: each says what a unit stands for": len(sources_named) > 1,
            "sizes and population_size are mutually exclusive": self.sizes is not None and size is not None,
            "population_size must be a whole number above 0": size is not None
            and not (isinstance(size, int | np.integer) and size > 0),
            "proxy_moments are those of a proxy": moments and self.proxy is None,
            "proxy_moments take the place of a population": moments and self.population is not None,
            "the population has a size of its own": self.population is not None and size is not None,
            "a proxy can only be used with strata and their sizes": bool(self.proxy and weighted),
            "a Poisson sample has neither strata nor clusters": self.mechanism == "poisson"
            and bool(column or (weighted and self.stratum)),
            "clusters of a table with sizes or weights have no proxy": bool(self.proxy and column)
            and bool(sources_named or size is not None),
            "clusters lie within strata, in a column of their own": bool(column) and column == self.stratum,
        }
        for what in [text for text, is_contradiction in wrong.items() if is_contradiction][:1]:
            raise InputError(what, given=" and ".join(sources_named) or None, action="Leave one of them out.")
        scores = declared_scores(self.predicts, self.proxies).values()
        if not self.scaled and any(score.predicts != ORDER for score in scores):
            what = "scaled=False is only an order, and contradicts what the proxy predicts"
            raise InputError(what, given=f"predicts={self.predicts!r}", action="Leave one of them out.")


def id_column(columns: SmallTable, name: str | None) -> str | None:
    """Return the column of ids, None where rows are only numbered."""
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
    """Return the ids (n,) of a table's rows, row numbers where there are none.

    Raises
    ------
    InputError
        For ids that are missing, or occur twice.
    """
    name = id_column(columns, name)
    if name is None:
        return np.arange(len(columns))
    if any(is_missing(entry) for entry in columns.values(name)):
        action = "Fill it in, or number the rows: id='row', --id row."
        raise InputError(f"{columns.label}: an id is missing in column {name!r}", action=action)
    ids = id_array(np.array(columns.values(name), dtype=object))
    again, times = Counter(id_texts(ids)).most_common(1)[0]
    if times > 1:
        action = "Average several answers of one unit first, or join them as Labels."
        raise LabelError(f"{columns.label}: id {again!r} occurs twice", action=action)
    return ids


# Columns that hold the sizes of strata, the first that is there.
SIZE_NAMES = ("size", "sizes", "N_h", "N", "count", "population_size")


def stratum_sizes(sizes: object, stratum: str | None) -> dict[str, int] | None:
    """Return sizes by stratum from a mapping or a table, in which a stratum may stand in several rows."""
    if sizes is None:
        return None
    if isinstance(sizes, Mapping) and not all(isinstance(v, list | np.ndarray) for v in sizes.values()):
        sizes = {"stratum": list(sizes), "size": list(sizes.values())}
    columns = SmallTable.of(sizes, "sizes")
    numbers = columns.numbers(columns.find(*SIZE_NAMES) or SIZE_NAMES[0], positive=True, whole_numbers=True)
    names = columns.texts(columns.find("stratum", stratum or "stratum") or "stratum").tolist()
    size_by_stratum = dict(zip(names, numbers.astype(np.int64).tolist(), strict=True))
    wrong = [
        name for name, number in zip(names, numbers.tolist(), strict=True) if size_by_stratum[name] != number
    ]
    if wrong:
        what = f"{columns.label}: a stratum occurs twice, with different sizes"
        raise InputError(what, given=repr(wrong[0]), action="Keep the size of the whole population.")
    return size_by_stratum


# What the one stratum is called where there are none.
WHOLE = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherUnits:
    """Units of a population other than the labelled ones, by stratum.

    Parameters
    ----------
    strata : mapping of name to (float, float, int)
        Mean and variance (divisor count − 1) of the proxy, 0 without one, and how many units they are.
    proxy : ProxyInfo, optional
    notes : tuple of str
        How they were told from the labelled ones.
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
    """Return what is known of the units of a population that are not the labelled ones.

    Parameters
    ----------
    source : path, dataframe, mapping of columns, or Population
    given : ExternalSampleOptions
        Names its columns of proxies and strata.
    labelled : sequence of str, optional
        Ids of the labelled units. Those that are in the population are taken out; without ids on either
        side, its rows are taken as other units.
    columns : mapping of str to (n,) array, optional
        The same columns of the labelled units, which those with their ids must have.
    id_name : str, optional
        Its column of ids.

    Raises
    ------
    InputError
        If some ids of the labelled units are in the population and others are not, or only in another
        spelling (007 and 7), and if a unit has another proxy or stratum there.
    """
    proxy = options.first_proxy
    stratum = options.stratum
    population, has_ids, missing = _population(source, options, id_name)
    if labelled is not None and has_ids:
        labelled_ids = list(labelled)
    else:
        labelled_ids = []
    if labelled_ids:
        matched = population.find(labelled_ids)
    else:
        matched = None
    if matched is not None:
        _refuse_other_labelled(population, labelled_ids, matched, {} if columns is None else columns)
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
        names = (WHOLE,)
    rows = zip(means.tolist(), (squares / np.maximum(counts - 1, 1)).tolist(), counts.tolist(), strict=True)
    level_means = {}
    for name in options.groups:
        if k is not None and name in population.group_names:
            level_means[name] = _other_means(population, name, k, matched)
    overlap_note = _overlap_note(population.size, n_matched, has_ids=has_ids and labelled is not None)
    return OtherUnits(
        strata=dict(zip(names, rows, strict=True)),
        proxy=None if k is None else population.proxies[k],
        notes=(*population.notes, overlap_note, *missing),
        level_means=level_means,
    )


def _without_labelled(
    counts: IntArray, means: FloatArray, squares: FloatArray, codes: IntArray, values: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return counts, proxy means and sums of squared deviations (H,) of the strata without some units.

    The units (m,) have a stratum, `codes`, and a proxy, `values`. A sum of squared deviations is that of two
    groups and of the gap of their means (Chan, Golub & LeVeque, 1983), solved for one of the groups.
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
    """Return the note on which rows of the population are taken as the labelled units."""
    size_text = f"the population has {size:,} rows"
    if not has_ids:
        return f"{size_text}, taken as units other than the labelled ones, since ids do not tell"
    if n_matched == 0:
        return f"{size_text}, none of which has the id of a labelled unit: the labelled ones come on top"
    return f"{size_text}, the {n_matched:,} labelled units among them"


def _other_means(
    population: Population, group: str, proxy: int, labelled: Drawn | None
) -> dict[str, tuple[float, int]]:
    """Return mean proxy and number of the units of each level that are not the labelled ones."""
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

    `known` has the design and the summary. Nothing is known of units that are a sample of their own.
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
            levels[level] = [float((level_values.sum() + mean * count) / max(len(level_values) + count, 1))]
        means_by_group[group] = levels
    return means_by_group


def _population(
    source: object, options: ExternalSample, id_name: str | None
) -> tuple[Population, bool, tuple[str, ...]]:
    """Return the population, whether its units have ids, and a note of groups that it does not have."""
    if isinstance(source, Population):
        return source, not source.numbered_by_row and source.id_name != ROW, ()
    strata = () if options.stratum is None else (options.stratum,)
    groups = tuple(dict.fromkeys((*strata, *options.groups)))
    if options.first_proxy is not None and len(groups) > len(strata):
        try:
            return *_read_population(source, options.first_proxy, groups, id_name), ()
        except InputError:  # a group that the population lacks; any other fault is found again below
            pass
    population, has_ids = _read_population(source, options.first_proxy, strata, id_name)
    note = "the population lacks a column of the groups, so that means of groups use no proxy"
    lacking = options.first_proxy is not None and len(groups) > len(strata)
    return population, has_ids, (note,) if lacking else ()


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


def _refuse_other_labelled(
    population: Population, labelled: list[str], matched: Drawn, columns: Mapping[str, AnyArray]
) -> None:
    """Refuse ids that match only in part, and units that are not as they are among the labelled ones."""
    place = {text: row for row, text in enumerate(id_texts(matched.ids))}
    absent = [text for text in labelled if text not in place]
    if not absent:
        spelt = {}
    else:
        spelt = _other_spelling(population, absent[:_TRIED])
    if spelt or (place and absent):
        example = next((text for text in absent if text in spelt), absent[0])
        count = f"{len(labelled) - len(absent):,} of {len(labelled):,} labelled units, but not {example!r}"
        raise InputError(
            "the ids of the labelled units match the population's only in part",
            given=count + (f", which it has as {spelt[example]!r}" if spelt else ""),
            allowed="all labelled units among the population's, or none",
            action="Write ids alike in both files; give the whole population, or one without labelled units.",
        )
    proxies = {name: matched.proxies[:, k] for k, name in enumerate(population.proxy_names)}
    labelled_columns = {
        name.casefold(): values.tolist() for name, values in columns.items()
    }  # found so in either file
    for name, values in {**matched.groups, **proxies}.items():
        for text, labelled_value in zip(labelled, labelled_columns.get(name.casefold(), ()), strict=False):
            if text in place:
                population_value = values[place[text]].item()
            else:
                population_value = labelled_value
            if not same_value(labelled_value, population_value):
                raise InputError(
                    f"column {name!r} of unit {text!r} is not the same in both files",
                    given=f"{labelled_value!r} among the labelled units, "
                    f"{population_value!r} in the population",
                    action="Give the population that the labelled units are from, unchanged.",
                )


# Labelled units whose ids are looked for in another spelling: files are spelt alike throughout.
_TRIED = 50


def _other_spelling(population: Population, ids: Sequence[str]) -> dict[str, str]:
    """Return how the population spells ids that it does not have: with zeros in front, with .0 or without."""
    tried: dict[str, str] = {}
    for text in ids:
        bare = normalize_id(text)
        forms = [bare, f"{bare}.0", *("0" * zeros + bare for zeros in range(1, 9))]
        tried |= {form: text for form in forms if form != text}
    return {tried[spelling]: spelling for spelling in id_texts(population.find(list(tried)).ids)}


_LABEL = "the table of labels"

_NAME_IT = "Name the column of labels: value= (--value COL)."


def parts_of_labelled(table: object, options: ExternalSample) -> tuple[dict[str, Any], Labels]:
    """Return the fields of a sample that was drawn elsewhere, its design as a description, and its labels."""
    columns = SmallTable.of(table, _LABEL, (options.value,))
    if options.population is None and options.proxy_moments is None and not options.says_what_rows_are:
        labelled = _labelled_rows(columns, options)
        if not labelled:
            what = f"{columns.label}: no row of column {options.value!r} has a label"
            raise LabelError(
                what, action="Fill in labels, or name the column of labels: value= (--value COL)."
            )
        is_partial = len(labelled) < len(columns)
        if is_partial and options.cluster is not None:
            _require_whole_clusters(columns, options, labelled)
        if is_partial or options.has_all_units:
            return _parts_of_whole_table(columns, options, labelled)
        # Placeholders such as NA for labels that are not there yet.
        refuse_no_answer_words(
            [str(entry) for entry in dict.fromkeys(map(str, columns.values(options.value)))]
        )
    if len(options.proxies) > 1:
        what = "several proxies need a table that has all units, those without a label too"
        raise InputError(what, given=", ".join(options.proxies), allowed="one proxy")
    id_name = id_column(columns, options.id)
    row_numbers = np.arange(len(columns))
    labelled = _labelled_rows(columns, options)
    columns, others = _labelled_and_others(columns, options)
    if id_name is None:
        # Rows keep their numbers if those without a label were taken out.
        if len(columns) == len(row_numbers):
            ids = row_numbers
        else:
            ids = row_numbers[labelled]
    else:
        ids = ids_of(columns, options.id)
    if options.cluster is not None and options.proxies:
        raise InputError(
            "clusters have no proxy if every row has a label, or weights or sizes are stated",
            given=", ".join(options.proxies),
            action="Leave the proxy out.",
        )
    surveyed = (options.weight, options.inclusion_probability, options.cluster) != (None, None, None)
    design_parts = (_by_weight if surveyed else _by_stratum)(columns, options, others)
    bounds = options.bounds
    if others is not None and others.proxy is not None and bounds == (0.0, 1.0):
        bounds = others.proxy.bounds
    group_names = options.categories
    answer = options.roles.answer
    sets = _holds_sets(columns, answer, options.tags)
    info = ProxyInfo(name=options.first_proxy or "", scaled=options.scaled, bounds=bounds)
    parts = design_parts | {
        "ids": ids,
        "proxies": columns.numbers(options.first_proxy)[:, None]
        if options.first_proxy
        else np.zeros((len(ids), 0)),
        "proxy_info": (info,) if options.first_proxy else (),
        "seed": 0,
        "groups": {name: columns.texts(name, sets=sets and name == answer) for name in group_names},
        "level_means": level_means_of(columns, options, others, design_parts),
        "question": Question(
            id=id_name or "id",
            row_base=0 if id_name is None else None,
            scores=(info.score(answer),) if options.first_proxy else (),
            **options.roles.fields,
            outcome=Outcome(tag_format=options.tags),
            groups=group_names,
            stratum=options.stratum,
            cluster=options.cluster,
            weight=options.weight,
        ),
    }
    labels = _labels(ids, columns, options.value, sets=sets)
    return parts, labels if others is None else replace(labels, notes=(*labels.notes, *others.notes))


def _require_whole_clusters(columns: SmallTable, options: ExternalSample, labelled: Sequence[int]) -> None:
    """Refuse clusters of which only some rows have labels: which rows were drawn is then unknown."""
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
        f"{columns.label}: only some rows of the clusters with labels have one",
        given=f"labels in {groups.labelled:,} of {len(groups.sizes):,} {options.cluster!r}, and in "
        f"{groups.labelled_share:.0%} of the rows of these",
        allowed="labels in all rows of the clusters that were drawn; or weight= (--weight COL), sizes= "
        "(--sizes FILE) or population_size= (--population-size N)",
        action="Label the other rows of these clusters, or state what each labelled unit stands for. If "
        "single rows were labelled at random, leave cluster= (--cluster) out.",
    )


def _labelled_rows(columns: SmallTable, options: ExternalSample) -> list[int]:
    """Return the numbers of the rows that have a label."""
    sets = _holds_sets(columns, options.roles.answer, options.tags)
    if sets:
        entries = columns.answers(options.value, _NAME_IT)
    else:
        entries = columns.values(options.value, _NAME_IT)
    empty = {word.casefold() for word in options.placeholders}
    return [
        row
        for row, entry in enumerate(entries)
        if not is_missing(entry) and not (isinstance(entry, str) and entry.strip().casefold() in empty)
    ]


def _parts_of_whole_table(
    columns: SmallTable, options: ExternalSample, labelled: list[int]
) -> tuple[dict[str, Any], Labels]:
    """Return the fields of a sample, and its labels, of a table that has all units.

    The rows with a label (their numbers, n of them) are a simple random sample of all rows, or of each
    stratum.
    """
    id_name = id_column(columns, options.id)
    ids = ids_of(columns, options.id)
    roles = options.roles
    sets = _holds_sets(columns, roles.answer, options.tags)
    groups = {name: columns.texts(name, sets=sets and name == roles.answer) for name in options.categories}
    proxies = {name: columns.numbers(name) for name in options.proxies}
    population = Population.from_arrays(
        proxy=proxies or None,
        ids=ids,
        groups=groups,
        tags=options.tags,
        bounds=None if options.bounds == (0.0, 1.0) or not proxies else options.bounds,
        scaled=options.scaled if proxies else None,
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
        design = _stratified(rule.column, list(rule.levels), counts, summary)
    sizes = {name: population.levels(name) for name in groups}
    inclusion_probability = (counts / summary.sizes)[codes]
    if options.cluster is not None:
        design = _of_whole_clusters(options.cluster, sizes[options.cluster], drawn_clusters)
        inclusion_probability = np.full(len(rows), len(drawn_clusters) / len(sizes[options.cluster]))
    parts = {
        "ids": ids[rows],
        "stratum": codes,
        "inclusion_probability": inclusion_probability,
        "proxies": np.stack([values[rows] for values in proxies.values()], axis=1)
        if proxies
        else np.zeros((len(rows), 0)),
        "proxy_info": population.proxies,
        "summary": summary,
        "design": design,
        "seed": 0,
        "groups": {name: values[rows] for name, values in groups.items()},
        "totals": {name: levels for name, levels in sizes.items() if len(levels) <= MOST_LEVELS},
        "population": population,
        "declared_random": True,
        "question": Question(
            id=id_name or "id",
            row_base=0 if id_name is None else None,
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
    """Return how the labelled rows of a table are taken as chosen."""
    if options.cluster is not None:
        return f"the {n_clusters:,} {options.cluster!r} with labels are taken as a random sample of all"
    within = "" if options.stratum is None else f" of each {options.stratum}"
    rows = "the 1 row with a label is" if n_labelled == 1 else f"the {n_labelled:,} rows with a label are"
    return f"{rows} taken as a random sample{within} of all {n_rows:,} rows"


def _of_whole_clusters(cluster: str, sizes: Mapping[str, int], drawn: AnyArray) -> dict[str, Any]:
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
    """Return another column of the table that `sample` was made of, as labels."""
    columns = SmallTable.of(table, _LABEL, (value,))
    if len(columns) != sample.size:  # rows without a label were taken as the population's
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
        entries = columns.answers(value, _NAME_IT)
    else:
        entries = columns.values(value, _NAME_IT)
    values = tuple(None if is_missing(entry) else entry for entry in entries)
    return Labels(ids=tuple(id_texts(ids)), values=values, source=columns.label, notes=columns.notes)


def _labelled_and_others(
    columns: SmallTable, options: ExternalSample
) -> tuple[SmallTable, OtherUnits | None]:
    """Return the labelled rows, and what is known of the population's other units, if anything."""
    if options.proxy_moments is not None:
        return columns, _given_moments(options)
    if options.population is None and options.first_proxy is None:
        return columns, None
    rows = _labelled_rows(columns, options)
    if rows:
        empty = sorted({*range(len(columns))} - {*rows})
    else:
        empty = []
    labelled = columns.only(rows) if rows else columns
    if options.population is None:
        if not empty:
            allowed = "rows with an empty label, population= (--population FILE), or proxy_moments="
            raise InputError(f"{columns.label}: a proxy needs the units that have no label", allowed=allowed)
        others = other_units(_units_of(columns.only(empty), options), options)
        note = f"{len(empty):,} rows without a label are the population's other units"
        return labelled, replace(others, notes=(note,))
    name = id_column(columns, options.id)
    if name is None:
        ids = None
    else:
        ids = id_texts(ids_of(labelled, options.id))
    unit_columns = _units_of(labelled, options)
    others = other_units(options.population, options, ids, unit_columns, name if options.id else None)
    left_out_notes = (f"{len(empty):,} rows without a label were left out",) if empty else ()
    return labelled, replace(others, notes=(*others.notes, *left_out_notes))


def _units_of(columns: SmallTable, options: ExternalSample) -> dict[str, AnyArray]:
    """Return what a table has of its units' stratum and proxy."""
    unit_columns = {}
    if options.stratum is not None:
        unit_columns[columns.find(options.stratum) or options.stratum] = columns.texts(options.stratum)
    for name in options.groups if options.first_proxy is not None else ():
        unit_columns[columns.find(name) or name] = columns.texts(name)
    if options.first_proxy is not None and columns.find(options.first_proxy):
        unit_columns[columns.find(options.first_proxy) or options.first_proxy] = columns.numbers(
            options.first_proxy
        )
    return unit_columns


# ---- strata of known size


def _by_stratum(columns: SmallTable, options: ExternalSample, others: OtherUnits | None) -> dict[str, Any]:
    """Return strata, design and summary of a sample that was drawn at random within strata, or in one."""
    if options.stratum:
        labelled = columns.texts(options.stratum)
    else:
        labelled = np.full(len(columns), WHOLE)
    is_one_stratum = options.stratum is None and options.population_size is not None
    sizes = (
        {WHOLE: options.population_size} if is_one_stratum else stratum_sizes(options.sizes, options.stratum)
    )
    unlabelled = {} if others is None else others.strata
    names = sorted({*labelled.tolist(), *(sizes or {}), *unlabelled})
    codes = np.searchsorted(np.array(names), labelled)
    counts = np.bincount(codes, minlength=len(names))
    for name in names if options.proxy_moments is not None else ():
        if name not in unlabelled:
            allowed = ", ".join(list(unlabelled)[:8])
            raise InputError(f"proxy_moments has no row for stratum {name!r}", allowed=allowed)
    moments = np.array([unlabelled.get(name, (0.0, 0.0, 0)) for name in names])
    others_known = None if others is None else moments[:, 2]
    n_total = _checked_sizes(names, counts, others_known, sizes, columns.label)
    summary = StratumSummary.without_proxies(n_total)
    separate = False
    if others is not None and options.first_proxy:
        # Moments of the proxy over labelled units and others together.
        values, n, (mean, variance, m) = columns.numbers(options.first_proxy), counts, moments.T
        labelled_means = np.bincount(codes, values, minlength=len(n)) / n
        squares = np.bincount(codes, (values - labelled_means[codes]) ** 2, minlength=len(n))
        joint = (n * labelled_means + m * mean) / (n + m)
        spread = squares + variance * np.maximum(m - 1, 0) + n * m / (n + m) * (labelled_means - mean) ** 2
        summary = StratumSummary(
            sizes=n_total, proxy_means=joint[:, None], proxy_covariances=(spread / (n + m))[:, None, None]
        )
        separate = bool(np.any(moments[:, 2] != n_total - counts))
    if separate:
        moment_columns = dict(zip(("means", "variances", "counts"), moments.T, strict=True))
        shares = n_total / n_total.sum()
        design: dict[str, Any] = {
            "kind": "separate-samples",
            "names": names,
            "shares": shares,
            **moment_columns,
        }
    elif options.stratum is None:
        design = {"kind": "simple-random", "budget": int(counts[0])}
    else:
        design = _stratified(options.stratum, names, counts, summary)
    return {
        "stratum": codes,
        "inclusion_probability": np.minimum(counts / n_total, 1.0)[codes],
        "summary": summary,
        "design": design,
    }


def _checked_sizes(
    names: list[str],
    counts: IntArray,
    unlabelled: FloatArray | None,
    sizes_by_stratum: Mapping[str, object] | None,
    label: str,
) -> IntArray:
    """Return N_h (H,), refusing sizes that contradict the labelled units."""
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
    for h in np.flatnonzero(counts > sizes)[:1].tolist() if unlabelled is None else ():
        what = f"{label}: stratum {names[h]!r} has more labelled units than units"
        raise InputError(what, given=f"{counts[h]} of {sizes[h]}", action="Sizes count all units.")
    return sizes


def _stratified(stratum: str, names: list[str], counts: IntArray, summary: StratumSummary) -> dict[str, Any]:
    """Return the description of the stratified design that strata and counts amount to."""
    sizes = summary.sizes
    nothing = np.full(len(sizes), np.nan)
    with_proxy = summary.proxy_means.shape[1] > 0
    strata = Strata(
        rule=Categories(column=stratum, levels=tuple(names), codes=np.arange(len(sizes))),
        names=tuple(names),
        sizes=sizes,
        proxy_means=summary.proxy_means[:, 0] if with_proxy else nothing,
        proxy_variances=summary.proxy_covariances[:, 0, 0] if with_proxy else nothing,
        conditional_variances=nothing,
        method="given",
    )
    allocation = Allocation(
        n_h=counts, method="given", budget=int(counts.sum()), minimum=np.zeros_like(counts), maximum=sizes
    )
    return {"kind": "stratified", "strata": strata.to_dict(), "allocation": allocation.to_dict()}


def _given_moments(options: ExternalSample) -> OtherUnits:
    """Return mean, variance and count of the proxy over the unlabelled units of each stratum."""
    columns = SmallTable.of(options.proxy_moments, "proxy_moments")
    stratified = options.stratum is not None or "stratum" in columns.lists
    if stratified:
        names = columns.texts("stratum").tolist()
    else:
        names = [WHOLE]
    variances = columns.numbers("variance")
    counts = columns.numbers("count", positive=True, whole_numbers=True)
    if np.any(variances < 0) or len(set(names)) < len(names) or len(names) != len(columns):
        what = f"{columns.label}: there must be one row per stratum, and no negative variance"
        raise InputError(what, action="Without strata there is one row in all.")
    means = columns.numbers("mean")
    counts = counts.astype(np.int64)
    rows = zip(means.tolist(), variances.tolist(), counts.tolist(), strict=True)
    return OtherUnits(strata=dict(zip(names, rows, strict=True)))


# ---- weights


def _by_weight(columns: SmallTable, options: ExternalSample, others: OtherUnits | None) -> dict[str, Any]:
    """Return design and summary of units that came with weights or inclusion probabilities."""
    size = options.population_size
    scale = 1.0
    n = len(columns)
    if others is not None:
        size = n + sum(count for _, _, count in others.strata.values())
    sized = options.weight is None and options.inclusion_probability is None
    if options.inclusion_probability is not None:
        probabilities = columns.numbers(options.inclusion_probability, positive=True)
        if np.any(probabilities > 1):
            what = f"{columns.label}: column {options.inclusion_probability!r} holds a probability above 1"
            raise InputError(what, action="If these are weights, give weight= instead.")
        total = float(np.sum(1.0 / probabilities))
    else:
        if sized:  # clusters whose units came without weights: N_h / n_h
            weights = 1.0 / _by_stratum(columns, options, others)["inclusion_probability"]
        else:
            weights = columns.numbers(options.weight or "", positive=True)
        total = float(weights.sum())
        scale = min(float(weights.min()), 1.0)
        probabilities = scale / weights
        if size is None and total < len(weights) * (1 + 1e-9):
            what = f"{columns.label}: the weights sum to no more than the number of labelled units"
            raise InputError(what, action="They are relative: give population_size= too.")
        scale *= 1.0 if size is None else size / total
    if size is not None and size < n and options.mechanism == "poisson":
        raise InputError(
            "more units were drawn than there are", given=f"{n} of {size}", action="Correct population_size=."
        )
    sizes = np.array([max(round(total) if size is None else size, 1)])
    return {
        "stratum": np.zeros(n, np.int64),
        "inclusion_probability": probabilities,
        "summary": StratumSummary.without_proxies(sizes),
        "design": {
            "kind": "given-weights",
            "scale": scale,
            "mechanism": options.mechanism,
            "known_size": size is not None or sized,
            "stratum": options.stratum,
            "cluster": options.cluster,
            "sizes_known": sized and options.stratum is not None,
        },
    }
