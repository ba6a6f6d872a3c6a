"""`Sample.from_labelled`: the fields of an external sample, which was drawn and labelled elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray, as_matrix, select_rows
from stratal.designs.external_columns import (
    LABEL_TABLE,
    columns_of_units,
    holds_sets,
    id_column,
    ids_of,
    labelled_rows,
    labels_from,
)
from stratal.designs.external_designs import (
    cluster_design,
    stratified_design,
    stratified_fields,
    weighted_fields,
)
from stratal.designs.external_options import ExternalOptions
from stratal.designs.other_units import OtherUnits, level_means_of, other_units, stated_moments
from stratal.errors import InputError, LabelError
from stratal.labels.annotator_columns import join_annotators, names_of_labels
from stratal.labels.label_values import refuse_no_answer_words
from stratal.labels.labels import Labels
from stratal.population.population import Population
from stratal.population.proxy_info import ProxyInfo
from stratal.population.rules import MAX_STORED_LEVELS, Categories, Everything, Rule
from stratal.question import Outcome, Question
from stratal.question.scores import Score
from stratal.randomness import id_texts
from stratal.report.notes import RANDOM_ROWS, Note
from stratal.tables.row_groups import labelled_groups
from stratal.tables.small_table import SmallTable


def fields_of_labelled(table: object, options: ExternalOptions) -> tuple[dict[str, Any], Labels]:
    """Return the fields of an external sample, with the design as a dict, and its labels."""
    number_columns = (*options.proxies, options.weight, options.inclusion_probability)
    rows = SmallTable.of(table, LABEL_TABLE, names_of_labels(options.value)).with_shares(number_columns)
    columns = join_annotators(rows, options.value)
    if options.population is None and options.proxy_moments is None and not options.states_sampling:
        labelled = labelled_rows(columns, options)
        if not labelled:
            problem = f"{columns.table_name}: no row of column {options.value!r} has a label"
            raise LabelError(
                problem, action="Fill in labels, or name the label column: value= (--value COL)."
            )
        is_partial = len(labelled) < len(columns)
        if is_partial and options.cluster is not None:
            _require_complete_clusters(columns, options, labelled)
        if is_partial or options.has_all_units:
            return _fields_of_complete_table(columns, options, labelled)
        # Every row seems to have a label, but some may be words such as NA for labels that are missing.
        distinct_labels = dict.fromkeys(map(str, columns.values(options.value)))
        refuse_no_answer_words(list(distinct_labels))
    if len(options.proxies) > 1:
        problem = "several proxies require a table of all units, including those without a label"
        raise InputError(problem, given=", ".join(options.proxies), allowed="one proxy")
    return _fields_of_stated_sampling(columns, options)


def _fields_of_stated_sampling(
    columns: SmallTable, options: ExternalOptions
) -> tuple[dict[str, Any], Labels]:
    """Return the fields and the labels of a sample whose sizes, weights or other units are stated."""
    n_rows = len(columns)
    row_numbers = labelled_rows(columns, options)
    columns, others = _labelled_and_others(columns, options)
    id_name = id_column(columns, options.id)
    if id_name is not None:
        ids = ids_of(columns, options.id)
    elif len(columns) == n_rows:
        ids = np.arange(n_rows)
    else:
        # Rows without a label were removed, and the others keep their numbers.
        ids = np.array(row_numbers)
    if options.cluster is not None and options.proxies:
        raise InputError(
            "a proxy cannot be used for clusters if every row has a label, or if weights or sizes are stated",
            given=", ".join(options.proxies),
            action="Leave the proxy out.",
        )
    has_weights = options.weight is not None or options.inclusion_probability is not None
    if has_weights or options.cluster is not None:
        design_fields = weighted_fields(columns, options, others)
    else:
        design_fields = stratified_fields(columns, options, others)
    answer = options.roles.answer
    sets = holds_sets(columns, answer, options.tags)
    proxy_info, proxies = _proxy_of_labelled_rows(columns, options, others)
    question = _question_of_columns(options, id_name, scores=tuple(info.score(answer) for info in proxy_info))
    # Mean proxies over all units, labelled and others, of each level of the groups.
    level_means = level_means_of(
        columns,
        options,
        others,
        design_kind=design_fields["design"]["kind"],
        stratum_means=design_fields["summary"].proxy_means,
    )
    fields = design_fields | {
        "ids": ids,
        "proxies": proxies,
        "proxy_info": proxy_info,
        "seed": 0,
        "groups": _group_columns(columns, options, sets=sets),
        "level_means": level_means,
        "question": replace(question, weight=options.weight),
    }
    labels = labels_from(ids, columns, options.value, sets=sets)
    if others is not None:
        labels = replace(labels, notes=(*labels.notes, *others.notes))
    return fields, labels


def _proxy_of_labelled_rows(
    columns: SmallTable, options: ExternalOptions, others: OtherUnits | None
) -> tuple[tuple[ProxyInfo, ...], FloatArray]:
    """Return the description of the first proxy and its values (n, 1); without a proxy, () and (n, 0)."""
    if not options.first_proxy:
        return (), np.zeros((len(columns), 0))
    bounds = options.bounds
    # (0, 1) is the default: bounds that the population has are used instead.
    if others is not None and others.proxy is not None and bounds == (0.0, 1.0):
        bounds = others.proxy.bounds
    info = ProxyInfo(name=options.first_proxy, scaled=options.scaled, bounds=bounds)
    return (info,), columns.numbers(options.first_proxy)[:, None]


def _group_columns(columns: SmallTable, options: ExternalOptions, *, sets: bool) -> dict[str, AnyArray]:
    """Return the columns (n,) that the sample stores as groups; with `sets`, answers are texts of sets."""
    answer = options.roles.answer
    return {name: columns.texts(name, sets=sets and name == answer) for name in options.group_columns}


def _question_of_columns(
    options: ExternalOptions, id_name: str | None, scores: tuple[Score, ...]
) -> Question:
    """Return the question of these columns. Without a column of ids, rows have the numbers from 0."""
    if id_name is None:
        row_base = 0
    else:
        row_base = None
    return Question(
        id=id_name or "id",
        row_base=row_base,
        scores=scores,
        **options.roles.fields,
        outcome=Outcome(tag_format=options.tags),
        groups=options.group_columns,
        stratum=options.stratum,
        cluster=options.cluster,
    )


def _require_complete_clusters(
    columns: SmallTable, options: ExternalOptions, labelled: Sequence[int]
) -> None:
    """Raise an error if only some rows of clusters have labels: it is then unknown which rows were drawn.

    `labelled` are the numbers of the rows with a label.
    """
    assert options.cluster is not None
    if options.stratum is not None:
        raise InputError(
            "clusters within strata require the number of clusters in each stratum",
            given=f"cluster={options.cluster!r} and strata in {options.stratum!r}",
            allowed="weight= (--weight COL) or sizes= (--sizes FILE)",
        )
    is_labelled = np.isin(np.arange(len(columns)), labelled)
    groups = labelled_groups(columns, options.cluster, is_labelled)
    if groups.are_labelled_enough_for_clusters:
        return
    raise InputError(
        f"{columns.table_name}: some rows of the labelled clusters have no label",
        given=f"labels in {groups.n_labelled:,} of {len(groups.sizes):,} clusters ({options.cluster!r}), and "
        f"in {groups.labelled_share:.0%} of the rows of these clusters",
        allowed="labels in all rows of the clusters that were drawn; or weight= (--weight COL), sizes= "
        "(--sizes FILE) or population_size= (--population-size N)",
        action="Label the other rows of these clusters, or state how many units each labelled unit "
        "represents. If single rows were labelled at random, leave cluster= (--cluster) out.",
    )


def _fields_of_complete_table(
    columns: SmallTable, options: ExternalOptions, labelled: list[int]
) -> tuple[dict[str, Any], Labels]:
    """Return the fields and the labels of the sample of a table that has all units.

    The rows with a label, `labelled` (n,), are a simple random sample of all rows, of each stratum, or of
    the clusters.
    """
    id_name = id_column(columns, options.id)
    ids = ids_of(columns, options.id)
    sets = holds_sets(columns, options.roles.answer, options.tags)
    groups = _group_columns(columns, options, sets=sets)
    proxies = {name: columns.numbers(name) for name in options.proxies}
    population = _population_of_table(options, ids, groups, proxies)
    rows = np.array(labelled)
    drawn_clusters = np.empty(0, dtype=object)
    if options.cluster is not None:
        # Rows without a label of a drawn cluster were drawn too: their labels are missing.
        drawn_clusters = np.unique(groups[options.cluster][rows])
        rows = np.flatnonzero(np.isin(groups[options.cluster], drawn_clusters))
    drawn_groups = select_rows(groups, rows)
    rule: Rule = Everything()
    if options.stratum is not None:
        rule = Categories.of_levels(options.stratum, population.levels(options.stratum))
    # A single stratum needs a column for the number of rows.
    codes = rule.assign({"": rows, **drawn_groups})
    summary = population.summarise(rule)
    counts = np.bincount(codes, minlength=len(summary.sizes))
    _require_labelled_strata(columns.table_name, rule, counts)
    level_sizes = {name: population.levels(name) for name in groups}
    totals = {name: sizes for name, sizes in level_sizes.items() if len(sizes) <= MAX_STORED_LEVELS}
    inclusion_probability = (counts / summary.sizes)[codes]
    if options.cluster is not None:
        cluster_sizes = level_sizes[options.cluster]
        design = cluster_design(options.cluster, cluster_sizes, drawn_clusters)
        inclusion_probability = np.full(len(rows), len(drawn_clusters) / len(cluster_sizes))
    elif isinstance(rule, Categories):
        design = stratified_design(rule.column, list(rule.levels), counts, summary)
    else:
        design = {"kind": "simple-random", "budget": len(rows)}
    fields = {
        "ids": ids[rows],
        "stratum": codes,
        "inclusion_probability": inclusion_probability,
        "proxies": as_matrix([values[rows] for values in proxies.values()], len(rows)),
        "proxy_info": population.proxies,
        "summary": summary,
        "design": design,
        "seed": 0,
        "groups": drawn_groups,
        "totals": totals,
        "population": population,
        # Only declared by the user: `estimate` tests it.
        "declared_random": True,
        "question": _question_of_columns(options, id_name, scores=population.scores),
    }
    labels = labels_from(ids[labelled], columns.only(labelled), options.value, sets=sets)
    if len(labelled) == len(columns):
        return fields, labels
    note = Note(RANDOM_ROWS, _selection_text(options, len(labelled), len(columns), len(drawn_clusters)))
    return fields, replace(labels, notes=(*labels.notes, note))


def _require_labelled_strata(table_name: str, rule: Rule, counts: IntArray) -> None:
    """Raise an error for a stratum of a rule without a labelled unit, from the labels per stratum (H,)."""
    if np.any(counts == 0) and isinstance(rule, Categories):
        level = rule.levels[int(np.argmin(counts))]
        problem = f"{table_name}: stratum {level!r} has no labelled unit"
        raise InputError(problem, action="Merge this stratum with another one in the table.")


def _population_of_table(
    options: ExternalOptions,
    ids: AnyArray,
    groups: Mapping[str, AnyArray],
    proxies: Mapping[str, FloatArray],
) -> Population:
    """Return the population of all rows (N,) of a table, with these columns (N,)."""
    bounds = None
    scaled = None
    if proxies:
        scaled = options.scaled
        # The default (0, 1) is not a statement of the user: the population derives bounds from the proxy.
        if options.bounds != (0.0, 1.0):
            bounds = options.bounds
    return Population.from_arrays(
        proxy=dict(proxies) or None,
        ids=ids,
        groups=groups,
        tags=options.tags,
        bounds=bounds,
        scaled=scaled,
        **options.roles.keywords,
    )


def _selection_text(options: ExternalOptions, n_labelled: int, n_rows: int, n_clusters: int) -> str:
    """Return the note on the assumed selection of the labelled rows of a table."""
    if options.cluster is not None:
        return (
            f"the {n_clusters:,} clusters ({options.cluster!r}) with labels are taken as a random sample of "
            "all clusters"
        )
    if options.stratum is None:
        within = ""
    else:
        within = f", within each level of {options.stratum!r}"
    if n_labelled == 1:
        rows = "the 1 row with a label is"
    else:
        rows = f"the {n_labelled:,} rows with a label are"
    return f"{rows} taken as a random sample of all {n_rows:,} rows{within}"


def _labelled_and_others(
    columns: SmallTable, options: ExternalOptions
) -> tuple[SmallTable, OtherUnits | None]:
    """Return the labelled rows, and the other units of the population if they are known."""
    if options.proxy_moments is not None:
        return columns, stated_moments(options)
    if options.population is None and options.first_proxy is None:
        return columns, None
    rows = labelled_rows(columns, options)
    if rows:
        unlabelled_rows = sorted({*range(len(columns))} - {*rows})
        labelled = columns.only(rows)
    else:
        unlabelled_rows = []
        labelled = columns
    if options.population is None:
        if not unlabelled_rows:
            allowed = "rows with an empty label, population= (--population FILE), or proxy_moments="
            raise InputError(
                f"{columns.table_name}: a proxy requires the units that have no label", allowed=allowed
            )
        others = other_units(columns_of_units(columns.only(unlabelled_rows), options), options)
        note = f"{len(unlabelled_rows):,} rows without a label are the other units of the population"
        return labelled, replace(others, notes=(note,))
    name = id_column(columns, options.id)
    if name is None:
        ids = None
    else:
        ids = id_texts(ids_of(labelled, options.id))
    unit_columns = columns_of_units(labelled, options)
    # The population may have another name for its ids, unless the user names the column.
    id_name = name if options.id else None
    others = other_units(options.population, options, ids, unit_columns, id_name)
    notes = list(others.notes)
    if unlabelled_rows:
        notes.append(f"{len(unlabelled_rows):,} rows without a label were left out")
    return labelled, replace(others, notes=tuple(notes))
