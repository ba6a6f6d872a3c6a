"""The units of a population other than the labelled ones: their number and the moments of their proxy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray, means_of_sums, same_value
from stratal.designs.external_options import ExternalOptions
from stratal.errors import InputError, MissingColumnError
from stratal.labels.spreadsheet_ids import normalize_id
from stratal.population.column_names import ROW_NUMBER_ID
from stratal.population.drawn_units import DrawnUnits
from stratal.population.population import Population
from stratal.population.proxy_info import ProxyInfo
from stratal.population.rules import Categories, Everything, Rule
from stratal.randomness import id_texts
from stratal.tables.small_table import SmallTable

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
    options: ExternalOptions,
    labelled: Sequence[str] | None = None,
    columns: Mapping[str, AnyArray] | None = None,
    id_name: str | None = None,
) -> OtherUnits:
    """Return the sizes and proxy moments of the units of a population other than the labelled ones.

    Parameters
    ----------
    source : path, dataframe, mapping of columns, or Population
    options : ExternalOptions
        Names the columns of proxies and strata.
    labelled : sequence of str, optional
        Ids of the labelled units, which are removed from the population. If the labelled units or the
        population have no ids, all rows are other units.
    columns : mapping of str to (n,) array, optional
        Columns of the labelled units; the population must have the same values.
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
    # Without ids on both sides, labelled units cannot be recognised among the others.
    if labelled and has_ids:
        labelled_ids = list(labelled)
        matched = population.units_with_ids(labelled_ids)
        _require_matching_units(population, labelled_ids, matched, columns or {})
    rule: Rule = Everything()
    if stratum is not None:
        levels = population.levels(stratum)
        rule = Categories.of_levels(population.require_group(stratum), levels)
    # Index of the proxy in the population.
    k = None
    if proxy is not None:
        k = population.proxy_names.index(population.proxy_info(proxy).name)
    n_matched = 0 if matched is None else len(matched.ids)
    means, variances, counts = _moments_of_others(population, rule, k, matched)
    if not counts.any():
        raise InputError("every unit of the population is labelled", action="Leave the population out.")
    if isinstance(rule, Categories):
        names = rule.levels
    else:
        names = (SINGLE_STRATUM,)
    moments = zip(means.tolist(), variances.tolist(), counts.tolist(), strict=True)
    level_means = {}
    for name in options.groups:
        if k is not None and name in population.group_names:
            level_means[name] = _level_means_of_others(population, name, k, matched)
    overlap_note = _overlap_note(population.size, n_matched, has_ids=has_ids and labelled is not None)
    return OtherUnits(
        strata=dict(zip(names, moments, strict=True)),
        proxy=None if k is None else population.proxies[k],
        notes=(*population.notes, overlap_note, *group_notes),
        level_means=level_means,
    )


def _moments_of_others(
    population: Population, rule: Rule, proxy: int | None, labelled: DrawnUnits | None
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return mean and variance of a proxy, and numbers of units (H,), without the labelled units.

    `proxy` is the index of the proxy; without one, mean and variance are 0.
    """
    summary = population.summarise(rule)
    counts = summary.sizes
    means = np.zeros(len(counts))
    squared_deviations = np.zeros(len(counts))
    if proxy is not None:
        means = summary.proxy_means[:, proxy]
        # The population's variances have the divisor N_h.
        squared_deviations = summary.proxy_covariances[:, proxy, proxy] * counts
    if labelled is not None and len(labelled.ids):
        codes = np.zeros(len(labelled.ids), np.int64)
        if isinstance(rule, Categories):
            codes = rule.assign(labelled.groups)
        values = np.zeros(len(labelled.ids))
        if proxy is not None:
            values = labelled.proxies[:, proxy]
        counts, means, squared_deviations = _without_labelled(
            counts, means, squared_deviations, codes, values
        )
    return means, squared_deviations / np.maximum(counts - 1, 1), counts


def _without_labelled(
    counts: IntArray, means: FloatArray, squared_deviations: FloatArray, codes: IntArray, values: FloatArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return counts, proxy means and sums of squared deviations (H,) of the strata without some units.

    The units (m,) have a stratum, `codes`, and a proxy, `values`. The sum of squared deviations of two groups
    together is the sum of those of each group, plus a term for the difference of their means (Chan, Golub &
    LeVeque 1983). Here this equation is solved for one of the groups.
    """
    n_strata = len(counts)
    n = np.bincount(codes, minlength=n_strata)
    labelled_means = np.bincount(codes, values, minlength=n_strata) / np.maximum(n, 1)
    n_others = counts - n
    other_means = (counts * means - n * labelled_means) / np.maximum(n_others, 1)
    squared_deviations = squared_deviations - np.bincount(
        codes, (values - labelled_means[codes]) ** 2, minlength=n_strata
    )
    between = n * n_others / np.maximum(counts, 1) * (labelled_means - other_means) ** 2
    # Rounding may leave a negative sum of squares where all other units are equal.
    return n_others, other_means, np.maximum(squared_deviations - between, 0.0)


def _overlap_note(size: int, n_matched: int, *, has_ids: bool) -> str:
    """Return the note on the rows of the population that are labelled units."""
    size_text = f"the population has {size:,} rows"
    if not has_ids:
        return (
            f"{size_text}, which are assumed not to include the labelled units, because there are no ids to "
            "compare"
        )
    if n_matched == 0:
        return f"{size_text}; no row has the id of a labelled unit, so the labelled units are added"
    return f"{size_text}, including the {n_matched:,} labelled units"


def _level_means_of_others(
    population: Population, group: str, proxy: int, labelled: DrawnUnits | None
) -> dict[str, tuple[float, int]]:
    """Return the mean of the proxy with this index, and the number, of the other units of each level.

    `labelled` are the labelled units of the population.
    """
    rule = Categories.of_levels(group, population.levels(group))
    summary = population.summarise(rule)
    counts = summary.sizes.astype(np.float64)
    sums = counts * summary.proxy_means[:, proxy]
    if labelled is not None and len(labelled.ids):
        codes = rule.assign(labelled.groups)
        counts = counts - np.bincount(codes, minlength=rule.n_strata)
        sums = sums - np.bincount(codes, labelled.proxies[:, proxy], minlength=rule.n_strata)
    means = means_of_sums(sums, counts)
    means_and_counts = zip(means.tolist(), counts.astype(np.int64).tolist(), strict=True)
    return dict(zip(rule.levels, means_and_counts, strict=True))


def level_means_of(
    columns: SmallTable,
    options: ExternalOptions,
    others: OtherUnits | None,
    *,
    design_kind: str,
    stratum_means: FloatArray,
) -> dict[str, dict[str, list[float]]]:
    """Return the mean proxy over all units, labelled and others, of each level of the groups.

    Each mean is a list with one number, that of the first proxy. `stratum_means` (H, 1) are the mean proxies
    of the strata. The result is empty if the other units are unknown, or a separate sample, in which the
    sizes of levels are unknown.
    """
    means_by_group: dict[str, dict[str, list[float]]] = {}
    if others is None or options.first_proxy is None or design_kind == "separate-samples":
        return means_by_group
    if options.stratum is not None:
        names = np.unique(columns.texts(options.stratum)).tolist()
        means_by_group[options.stratum] = dict(zip(names, stratum_means.tolist(), strict=True))
    values = columns.numbers(options.first_proxy)
    for group, means in others.level_means.items():
        names = columns.texts(group)
        levels = {}
        # A level may occur only among the labelled units, or only among the others.
        for level in sorted({*means, *names.tolist()}):
            level_values = values[names == level]
            mean, count = means.get(level, (0.0, 0))
            total = level_values.sum() + mean * count
            size = len(level_values) + count
            levels[level] = [float(total / max(size, 1))]
        means_by_group[group] = levels
    return means_by_group


def _population_of_source(
    source: object, options: ExternalOptions, id_name: str | None
) -> tuple[Population, bool, tuple[str, ...]]:
    """Return the population, whether its units have ids, and a note if it lacks columns of the groups."""
    if isinstance(source, Population):
        return source, not source.numbered_by_row and source.id_name != ROW_NUMBER_ID, ()
    strata = () if options.stratum is None else (options.stratum,)
    groups = tuple(dict.fromkeys((*strata, *options.groups)))
    if options.first_proxy is not None and len(groups) > len(strata):
        try:
            return *_read_population(source, options.first_proxy, groups, id_name), ()
        except InputError:
            # The population may lack a group. The second attempt raises any other error again.
            pass
    population, has_ids = _read_population(source, options.first_proxy, strata, id_name)
    note = "the population lacks a group column, so means of groups do not use a proxy"
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
    return read(source, **{**columns, "id": ROW_NUMBER_ID}), False


def _require_matching_units(
    population: Population, labelled: list[str], matched: DrawnUnits, columns: Mapping[str, AnyArray]
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
            given_text += f", which the population contains as {other_spellings[example]!r}"
        raise InputError(
            "not all ids of the labelled units occur in the population",
            given=given_text,
            allowed="all labelled units in the population, or none of them",
            action="Write ids in the same way in both files, and give either the whole population or only "
            "its unlabelled units.",
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
    existing = id_texts(population.units_with_ids(list(id_by_spelling)).ids)
    return {id_by_spelling[spelling]: spelling for spelling in existing}


def stated_moments(options: ExternalOptions) -> OtherUnits:
    """Return mean, variance and count of the proxy over the unlabelled units of each stratum."""
    columns = SmallTable.of(options.proxy_moments, "proxy_moments")
    if options.stratum is not None or "stratum" in columns.columns:
        names = columns.texts("stratum").tolist()
    else:
        names = [SINGLE_STRATUM]
    variances = columns.numbers("variance")
    counts = columns.numbers("count", positive=True, whole_numbers=True)
    # More rows than names: without a column of strata there must be one row.
    if np.any(variances < 0) or len(set(names)) < len(names) or len(names) != len(columns):
        problem = f"{columns.table_name}: there must be one row per stratum, and no negative variance"
        raise InputError(problem, action="Without strata, give a single row.")
    means = columns.numbers("mean")
    counts = counts.astype(np.int64)
    rows = zip(means.tolist(), variances.tolist(), counts.tolist(), strict=True)
    return OtherUnits(strata=dict(zip(names, rows, strict=True)))
