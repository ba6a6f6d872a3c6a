"""Evidence from a table that has labels in some or all rows, drawn and labelled elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from shlex import quote
from typing import Any

import numpy as np

from stratal.arrays import BoolArray, same_value, without_none
from stratal.designs.sample import Sample
from stratal.errors import InputError, LabelError, suggest_names
from stratal.estimation.estimand import as_estimand
from stratal.evaluation.margins import StatedMargins
from stratal.evaluation.request import BRIER, EvaluationRequest
from stratal.evaluation.softmax_answers import most_probable_class_as_stated, with_most_probable_class
from stratal.labels.annotator_columns import columns_of_annotators, join_annotators, names_of_labels
from stratal.labels.label_values import LabelMapping, comparison_key
from stratal.labels.missing_codes import refuse_missing_code
from stratal.population.column_names import ROW_NUMBER_ID
from stratal.population.softmax import PREDICTED_CLASS
from stratal.protocols import JsonDict, Keywords
from stratal.question.chosen_rows import (
    ALL,
    MIN_RESPONSE_RATE,
    PROBABILITY,
    RANDOM,
    RANDOM_WITHIN,
    UNKNOWN,
    RowSelection,
)
from stratal.question.code_numbers import is_missing_code
from stratal.question.column_kinds import are_answers
from stratal.question.column_words import ID_NAMES, NO_COLUMN
from stratal.question.facts import ColumnFacts
from stratal.question.labelled_groups import LabelledGroups
from stratal.question.recognised_roles import Recognition, StatedRoles
from stratal.question.recognition import recognise
from stratal.question.vocabulary import reversed_verdicts, reverses_success
from stratal.report.notes import RANDOM_ROWS, ROWS_WITHOUT_LABEL, Note, without_code
from stratal.tables.column_facts import facts_of_table
from stratal.tables.list_columns import (
    ENTRY,
    LIST_RULES,
    ListRule,
    explode_lists,
    has_binary_lists,
    label_list_columns,
    reduce_lists,
)
from stratal.tables.list_columns import ROWS as LIST_ROWS
from stratal.tables.no_answer import NO_VERDICT, is_placeholder
from stratal.tables.repeated_runs import RepeatedRuns, numbers_of_repeats, repeated_runs
from stratal.tables.row_groups import (
    ClusterFindings,
    candidate_groups,
    detect_clusters,
    labelled_groups,
    with_missing_groups,
)
from stratal.tables.small_table import SmallTable, is_missing, plain_text
from stratal.tables.verdict_columns import (
    are_all_words,
    is_verdict_column,
    usable_proxies,
    verdict_numbers_of_column,
    vocabulary_numbers,
    with_verdict_numbers,
)

# Maximum distance of the number of labelled rows from its expectation, in standard deviations. A larger one
# is not due to chance.
_MAX_STANDARD_DEVIATIONS = 6.0

# If a larger share of the rows have a label and nothing is stated, the others were probably to be labelled.
_MAX_SHARE_OF_RANDOM_ROWS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledTable:
    """A table with the roles of its columns, and the request with the columns that have them.

    Parameters
    ----------
    rows : SmallTable
        The table, with a column of numbers for each proxy that is written in words.
    request : EvaluationRequest
        The request, with the recognised columns.
    recognition : Recognition
    selection : RowSelection
        How the labelled rows were chosen, stated or by default.
    proxies : tuple of str
    score : str, optional
        The recognised score, which is not in `proxies` if the estimate of a mean does not need it.
    clusters : LabelledGroups, optional
        The groups whose rows have labels as a whole or not at all.
    warnings : tuple of Note
        Warnings that the labelled rows were not chosen as stated.
    numeric_names : mapping of str to str
        The column of numbers of each proxy that is written in words.
    runs : RepeatedRuns, optional
        The questions that have several rows each in a fully labelled table.
    empty_values : tuple of str
        Labels, such as NA and -1, that are stated to mean an empty cell, and were removed from the rows.
    """

    rows: SmallTable
    request: EvaluationRequest
    recognition: Recognition
    selection: RowSelection
    proxies: tuple[str, ...]
    score: str | None
    clusters: LabelledGroups | None
    warnings: tuple[Note, ...]
    numeric_names: Mapping[str, str]
    runs: RepeatedRuns | None = None
    empty_values: tuple[str, ...] = ()

    @property
    def unanswered(self) -> int:
        """Number of rows with a label that is stated to mean no answer; 0 for several models."""
        mapping = self.request.mapping or {}
        texts = {comparison_key(text) for text, value in mapping.items() if value is None}
        if not texts or self.request.compare:
            return 0
        entries = map(plain_text, self.rows.values(self.request.label_column))
        return sum(text is not None and comparison_key(text) in texts for text in entries)


def read_labelled_table(table: Any, request: EvaluationRequest) -> LabelledTable:
    """Return a table with the roles of its columns.

    Raises
    ------
    InputError
        For a needed role that is not clear, with the options to type; and for a statement of how rows were
        chosen that contradicts the table.
    """
    source = with_joined_annotators(_read_rows(table, request), request)
    rows, request, unit_of_lists = _with_lists(source, request)
    are_population = request.population_size == len(rows)
    if are_population:
        # The rows are not a sample of this population, but the population itself.
        request = replace(request, population_size=None)
    rows, request = _with_outcomes_of_answers(rows, request)
    stated = None if request.chosen is None else RowSelection.parse(request.chosen)
    empty_values = _empty_values(request)
    rows, request, recognition = _with_recognised_roles(rows, request, stated, empty_values)
    rows, request, runs = _with_row_for_each_unit(rows, request, stated)
    request = _with_bounds_of_lists(source, request)
    request = _with_population_of_margins(rows, request)
    selection = stated or _default_selection(rows, request, are_population=are_population)
    is_complete = bool(np.all(_is_labelled(rows, request)))
    if selection.kind == ALL and is_complete and request.cluster is None:
        runs = runs or repeated_runs(rows, recognition.columns.values())
    if runs is not None:
        # Runs of one question are not independent units, and its id does not identify a row.
        request = replace(request, id=ROW_NUMBER_ID, cluster=request.cluster or runs.column)
    findings = _detected_clusters(rows, request, recognition, selection, unit_of_lists)
    if findings.clusters is not None and findings.clusters.column != request.cluster:
        rows = with_missing_groups(rows, findings.clusters.column)
        request = replace(request, cluster=findings.clusters.column)
    if findings.clusters is not None and stated is None:
        # The groups without labels were not drawn, so that their labels are not missing.
        selection = RowSelection(kind=RANDOM)
    # Other clusters, or labels in only some rows, are not repeated runs.
    if runs is not None and (selection.kind != ALL or request.cluster != runs.column):
        runs = None
    return _with_proxies(
        rows,
        request,
        recognition,
        selection=selection,
        clusters=findings.clusters,
        warnings=findings.warnings,
        runs=runs,
        empty_values=empty_values,
    )


def _with_recognised_roles(
    rows: SmallTable,
    request: EvaluationRequest,
    stated: RowSelection | None,
    empty_values: Sequence[str],
) -> tuple[SmallTable, EvaluationRequest, Recognition]:
    """Return the table without `empty_values`, the request with the recognised columns, and their roles."""
    facts = facts_of_table(rows)
    if request.predicted == PREDICTED_CLASS and rows.find(PREDICTED_CLASS) is None:
        rows = most_probable_class_as_stated(rows, facts)
        facts = facts_of_table(rows)
    recognition = recognise(facts, _stated_roles(request, stated, rows))
    label_columns = (recognition.value, *recognition.models, *request.compare)
    if empty_values:
        rows = _without_values(rows, [name for name in label_columns if name], empty_values)
        mapping = {text: value for text, value in (request.mapping or {}).items() if text not in empty_values}
        request = replace(request, mapping=mapping or None)
        recognition = recognise(facts_of_table(rows), _stated_roles(request, stated, rows))
    rows_with_answers = _with_answers_of_softmax(rows, request, recognition)
    if rows_with_answers is not None:
        rows = rows_with_answers
        request = replace(request, predicted=PREDICTED_CLASS)
        recognition = recognise(facts_of_table(rows), _stated_roles(request, stated, rows))
    _require_list_rule(rows, request, recognition)
    _refuse_code_before_question(rows, request, recognition)
    # A question asks the user for a role that the table leaves open.
    if recognition.questions:
        # One of the columns with the same name may have this role.
        rows.refuse_repeated(*rows.repeated)
    recognition.require_answered(rows.table_name)
    notes = (*recognition.notes, *rows.notes_on_repeated, *_notes_on_summary_row(rows, recognition.id))
    recognition = replace(recognition, notes=notes)
    return rows, _with_roles(_without_none_keyword(request), recognition, rows), recognition


def _with_answers_of_softmax(
    rows: SmallTable, request: EvaluationRequest, recognition: Recognition
) -> SmallTable | None:
    """Return the table with the most probable class as the model's answer; see `with_most_probable_class`.

    None if a column to compare labels with is stated, or if their meaning is.
    """
    columns = (*request.compare, *request.proxy, *request.judge)
    roles = (request.predicted, request.model, request.lists, request.estimand)
    if columns or any(roles) or BRIER in request.metric or request.counts_as_number:
        return None
    return with_most_probable_class(rows, request, recognition)


# Ids of a last row that summarises the other rows, as in spreadsheets.
_SUMMARY_IDS = frozenset(("total", "grand total", "sum", "mean", "average", "avg", "median"))


def _notes_on_summary_row(rows: SmallTable, id_column: str | None) -> tuple[str, ...]:
    """Return the note that the last row may be the total or the mean of the others; empty for none."""
    if id_column is None or rows.find(id_column) is None:
        return ()
    last_id = str(rows.values(id_column)[-1])
    if last_id.strip().rstrip(":").casefold() not in _SUMMARY_IDS:
        return ()
    return (
        f"the last row, with the id {last_id!r}, counts as a unit; if it summarises the other rows, "
        "remove it",
    )


def _read_rows(table: Any, request: EvaluationRequest) -> SmallTable:
    """Return the rows of a table, which has the columns that the request names for labels."""
    label_columns = [*names_of_labels(request.value), request.model, *request.compare]
    if request.lists is not None:
        # The names may be fields of objects in the lists.
        label_columns = []
    return SmallTable.of(table, "the table of labels", [name for name in label_columns if name])


def with_joined_annotators(rows: SmallTable, request: EvaluationRequest) -> SmallTable:
    """Return the table with the column of labels of several annotators, if the request names their columns.

    Labels that the request states to mean an empty cell are removed from these columns, because rows without
    an answer of one annotator may have one of another.
    """
    names = columns_of_annotators(rows, request.value)
    for judge in request.judge:
        if rows.find(judge) in names:
            raise InputError(
                f"{rows.table_name}: column {judge!r} cannot be both an annotator's and a judge's",
                given=request.value,
                action="Leave it out of value= (--value), or of judge= (--judge).",
            )
    empty_values = _empty_values(request)
    if names and empty_values and request.value not in rows.joined:
        rows = _without_values(rows, names, empty_values)
    return join_annotators(rows, request.value, request.mapping)


def _with_row_for_each_unit(
    rows: SmallTable, request: EvaluationRequest, stated: RowSelection | None
) -> tuple[SmallTable, EvaluationRequest, RepeatedRuns | None]:
    """Return a table with a row per unit and model as one with a row per unit; others as they are."""
    if request.model is None:
        return rows, request, None
    unit_columns = [request.by, request.post_stratify, request.answer_column, *request.judge, *request.proxy]
    unit_columns += [request.cluster, request.weight]
    if stated is not None:
        unit_columns.append(stated.column)
    columns, models, runs = _one_row_for_each_unit(rows, request, [name for name in unit_columns if name])
    request = replace(request, model=None, value=models[0], compare=models)
    return SmallTable.of(columns, rows.table_name), request, runs


def _with_proxies(
    rows: SmallTable, request: EvaluationRequest, recognition: Recognition, **other_fields: Any
) -> LabelledTable:
    """Return the table with its proxies as numbers; `other_fields` are those of the result."""
    decode = partial(_verdict_numbers, request)
    candidates = _proxies(request, recognition, rows)
    proxies, notes = usable_proxies(
        rows, _is_labelled(rows, request), candidates, named_by_user=request.proxy, decode=decode
    )
    notes = (*recognition.notes, *notes)
    if request.lists is not None:
        notes = (f"each list counts as {ListRule.parse(request.lists).description}", *notes)
    rows, numeric_names = with_verdict_numbers(rows, proxies, decode)
    return LabelledTable(
        rows=_with_missing_verdicts(rows, request),
        request=_without_verdicts_in_mapping(request, rows, list(numeric_names)),
        recognition=replace(recognition, proxy=next(iter(proxies), None), notes=notes),
        proxies=tuple(numeric_names.get(proxy, proxy) for proxy in proxies),
        score=recognition.proxy,
        numeric_names=numeric_names,
        **other_fields,
    )


def _without_verdicts_in_mapping(
    request: EvaluationRequest, rows: SmallTable, proxies: Sequence[str]
) -> EvaluationRequest:
    """Return the request without the values in its mapping that only verdicts have, which are numbers now.

    The verdicts of judges that are compared with the labels still need them.
    """
    if not request.mapping:
        return request
    annotators = columns_of_annotators(rows, request.value) or (request.label_column,)
    other_columns = (*annotators, *request.compare, *request.judge)
    verdicts = _values_of_columns(rows, proxies) - _values_of_columns(rows, other_columns)
    mapping = {text: value for text, value in request.mapping.items() if comparison_key(text) not in verdicts}
    return replace(request, mapping=mapping or None)


def _values_of_columns(rows: SmallTable, names: Iterable[str]) -> set[str]:
    """Return the comparison keys of the distinct entries in those of some columns that exist."""
    existing = [name for name in names if rows.find(name) is not None]
    texts = {plain_text(entry) for name in existing for entry in rows.values(name)}
    return {comparison_key(text) for text in texts if text is not None}


def sample_of_table(table: LabelledTable, groups: Sequence[str]) -> tuple[Sample, Any]:
    """Return the labelled rows as a sample, and their labels.

    `groups` are columns for results by group.
    """
    request = table.request
    rows = table.rows
    selection = table.selection
    options = request.keywords("sizes", "cluster", "weight", "population_size", "population", "tags")
    is_labelled = _is_labelled(rows, request)
    if selection.kind == RANDOM_WITHIN:
        options["stratum"] = selection.column
    if selection.kind == PROBABILITY:
        _require_expected_count(rows, is_labelled, str(selection.column))
        rows = rows.only(np.flatnonzero(is_labelled).tolist())
        options |= {"inclusion_probability": selection.column, "mechanism": "poisson"}
    if selection.kind == ALL:
        _require_nearly_all_labelled(rows, is_labelled)
        # Rows without a label imply that the table has all units; a complete table must state it.
        options["has_all_units"] = bool(np.all(is_labelled))
    # A file of sizes with a column of variances also holds the proxy's moments.
    has_sizes_and_proxy = request.sizes is not None and request.population is None and bool(table.proxies)
    if has_sizes_and_proxy and SmallTable.of(request.sizes, "the sizes").find("variance") is not None:
        options["proxy_moments"] = request.sizes
    group_names = tuple(name for name in groups if name not in (*table.proxies, selection.column))
    sample, labels = Sample.from_labelled(
        rows,
        value=request.label_column,
        groups=group_names,
        id=request.id,
        proxy=table.proxies or None,
        **request.roles.keywords | {"predicted": request.answer_column or table.recognition.answer},
        **without_none(options),
    )
    question = replace(sample.question, chosen=str(selection))
    notes = [*labels.notes, *table.warnings]
    if selection.kind in (UNKNOWN, ALL):
        notes = without_code(notes, RANDOM_ROWS)
    if _may_lack_labels(is_labelled, selection, request):
        notes = [_missing_labels_note(is_labelled, table.proxies, request), *notes]
    return replace(sample, question=question), replace(labels, notes=tuple(notes))


def _may_lack_labels(is_labelled: BoolArray, selection: RowSelection, request: EvaluationRequest) -> bool:
    """Return whether rows (m,) without a label were probably to be labelled, too.

    They were if all rows were chosen, or if nothing is stated and most rows have a label, because random
    samples are rarely so large.
    """
    if np.all(is_labelled):
        return False
    is_unstated = request.chosen is None and not request.states_design
    is_mostly_labelled = (
        selection.kind == RANDOM and is_unstated and np.mean(is_labelled) > _MAX_SHARE_OF_RANDOM_ROWS
    )
    return selection.kind == ALL or bool(is_mostly_labelled)


def _missing_labels_note(is_labelled: BoolArray, proxies: Sequence[str], request: EvaluationRequest) -> Note:
    """Return the warning on rows (m,) without a label, with the assumption and the error if it fails."""
    missing = int(np.sum(~is_labelled))
    condition = f" given {', '.join(f'`{name}`' for name in proxies)}" if proxies else ""
    rows = "1 row has no label, which is" if missing == 1 else f"{missing:,} rows have no label. They are"
    share = missing / len(is_labelled)
    action = "label these rows"
    if request.chosen is None:
        action += ", or state how the labelled rows were chosen: chosen= (--chosen)"
    return Note(
        ROWS_WITHOUT_LABEL,
        f"{rows} assumed to be missing at random{condition}: if whether a label is missing depends on its "
        f"value, the estimate may be off by up to {100 * share:.2g}% of the outcome's range, and the "
        f"interval does not account for this error; {action}",
    )


# ---- roles


def _stated_roles(
    request: EvaluationRequest, selection: RowSelection | None, rows: SmallTable
) -> StatedRoles:
    """Return the roles that the request states, by the names of the table."""

    def name(column: str | None) -> str | None:
        if column is None:
            return None
        return rows.find(column) or column

    def names(columns: Iterable[str | None]) -> tuple[str, ...]:
        return tuple(rows.find(column) or column for column in columns if column)

    selection_column = None if selection is None else selection.column
    for column in (request.value, selection_column):
        if column not in (None, NO_COLUMN):
            rows.values(str(column))  # raises the error for an unknown column
    is_compared = None
    if isinstance(request.predicted, bool) or request.predicted == NO_COLUMN:
        is_compared = request.predicted is True
    if request.counts_as_number:
        is_compared = False
    annotators = columns_of_annotators(rows, request.value)
    stated = _without_none_keyword(request)
    judges = None
    if request.judge or not _may_recognise_judge(request):
        judges = names(stated.judge)
    proxies = None
    if request.proxy or not _may_recognise_proxy(request, selection):
        proxies = names(stated.proxy)
    return StatedRoles(
        id=name(request.id),
        value=name(request.value),
        answer=name(request.answer_column),
        is_compared=is_compared,
        judges=judges,
        no_judge=request.states_no_judge,
        proxies=proxies,
        model=name(request.model),
        models=names(request.compare) if request.model is None else (),
        groups=names(_stated_groups(request)),
        others=names((request.cluster, request.weight, selection_column, *annotators)),
    )


def _stated_groups(request: EvaluationRequest) -> tuple[str | None, ...]:
    """Return the columns by which the request reports or weights the rows."""
    margins: tuple[str, ...] = ()
    if request.margins is not None:
        stated = StatedMargins.of(request.margins)
        # Without totals, a margin may be the mean of a proxy.
        margins = () if stated.totals is None else stated.columns
    return (request.by, request.post_stratify, *margins)


def _with_lists(
    rows: SmallTable, request: EvaluationRequest
) -> tuple[SmallTable, EvaluationRequest, str | None]:
    """Return the table with rows or numbers in place of lists, as requested; other tables as they are.

    The column of the units whose lists became rows is returned, too, if no clusters are stated.
    """
    if request.lists is None:
        return rows, request, None
    rule = ListRule.parse(request.lists)
    labels = label_list_columns(rows, includes_words=True)
    if request.value is None and len(labels) == 1:
        # Means of lists are no longer recognised as labels by their values.
        request = replace(request, value=labels[0])
    if rule.kind != LIST_ROWS:
        return reduce_lists(rows, rule), request, None
    unit = request.id or rows.find(*ID_NAMES)
    if unit is None:
        unit = next((column.name for column in facts_of_table(rows) if _may_be_units(column)), None)
    rows, unit = explode_lists(rows, unit)
    if request.cluster is not None:
        return rows, replace(request, id=ENTRY), None
    return rows, replace(request, id=ENTRY, cluster=unit), unit


def _with_bounds_of_lists(source: SmallTable, request: EvaluationRequest) -> EvaluationRequest:
    """Return the request with the bounds of numbers that lists of 0 and 1 count as."""
    if request.lists is None:
        return request
    rule = ListRule.parse(request.lists)
    is_bounded = has_binary_lists(source, request.label_column, rule)
    if rule.kind == LIST_ROWS or not is_bounded or request.bounds is not None or request.outcome is not None:
        return request
    return replace(request, bounds=(0.0, 1.0))


def _with_population_of_margins(rows: SmallTable, request: EvaluationRequest) -> EvaluationRequest:
    """Return the request with the size of the population that totals of margins state.

    If every row has a label, the rows are a sample of it.
    """
    if request.margins is None or request.population_size is not None or request.population is not None:
        return request
    size = StatedMargins.of(request.margins).population_size
    if size is None or size == len(rows):
        return request
    if size > len(rows) and np.all(_is_labelled(rows, request)):
        return replace(request, population_size=size)
    labelled = int(np.sum(_is_labelled(rows, request)))
    raise InputError(
        f"{rows.table_name}: the totals in margins= (--margins) are the totals of a different population",
        given=f"totals for {size:,} units, but {len(rows):,} rows, {labelled:,} of them with a label",
        allowed="totals that add up to the number of rows in the table; or a table that contains only "
        "labelled rows, which are then a sample of the units",
    )


def _require_list_rule(rows: SmallTable, request: EvaluationRequest, recognition: Recognition) -> None:
    """Refuse lists as labels if it is not stated what a list counts as."""
    if request.lists is not None or request.tags is not None:
        return
    names = label_list_columns(rows)
    if not names or recognition.value not in (None, *names):
        return
    raise InputError(
        f"{rows.table_name}: {names[0]!r} has a list in each row",
        allowed=f"lists= (--lists) {LIST_RULES}",
        action="State what a list counts as. To count each entry as a row, with the units as clusters: "
        "lists='rows' (--lists rows). For one number per unit: lists='mean' (--lists mean), "
        "lists='precision@5' (--lists precision@5) or lists='hit@5' (--lists hit@5). If a list is a set of "
        "tags: tags='json' (--tags json).",
    )


def _may_be_units(column: ColumnFacts) -> bool:
    """Return whether a column can hold the ids of units with a list each."""
    return column.n_distinct == column.n_rows and not column.is_nested and not column.is_measurement


def _with_outcomes_of_answers(
    rows: SmallTable, request: EvaluationRequest
) -> tuple[SmallTable, EvaluationRequest]:
    """Return answers of several models as outcomes: 1 where they equal the label, which is a class, else 0.

    Columns that hold outcomes already, or labels of each model, are returned as they are.
    """
    if len(request.compare) < 2 or request.model is not None or request.counts_as_number:
        return rows, request
    models = tuple(rows.find(model) or model for model in request.compare)
    facts = {column.name: column for column in facts_of_table(rows)}
    label_column = request.value
    if label_column is None:
        other_roles = StatedRoles(judges=(), proxies=(), is_compared=False, others=models)
        label_column = recognise([*facts.values()], other_roles).value
    labels = facts.get(label_column or "")
    if labels is None or not labels.are_classes or labels.verdicts is not None or label_column in models:
        return rows, request
    if not all(model in facts and are_answers(labels, facts[model]) for model in models):
        return rows, request
    columns: JsonDict = {name: rows.values(name) for name in facts if name != label_column}
    answers = {model: [plain_text(answer) for answer in columns[model]] for model in models}
    label_texts = [plain_text(label) for label in rows.values(labels.name)]
    counts = Counter(text for text in label_texts if text is not None)
    vocabulary = {str(answer) for column in answers.values() for answer in column}
    class_of = LabelMapping.of(counts, None, request.mapping).classes(counts, vocabulary)
    for model in models:
        # A label that is mapped to no answer has no class.
        columns[model] = [
            int(class_of[text] == answer) if text in class_of else None
            for text, answer in zip(label_texts, answers[model], strict=True)
        ]
    return rows.with_columns(columns), replace(request, value=None, predicted=None, mapping=None)


def _without_none_keyword(request: EvaluationRequest) -> EvaluationRequest:
    """Return the request without the word that states that no column is a judge or a proxy."""
    judge = () if request.states_no_judge else request.judge
    proxy = () if request.states_no_proxy else request.proxy
    return replace(request, judge=judge, proxy=proxy)


def _may_recognise_judge(request: EvaluationRequest) -> bool:
    """Return whether a recognised judge may be added to what the request asks for."""
    return request.estimand is None and not request.metric and not request.compare and not request.model


def _may_recognise_proxy(request: EvaluationRequest, selection: RowSelection | None) -> bool:
    """Return whether the design that is stated can use a proxy of the rows without a label."""
    is_probability = selection is not None and selection.kind == PROBABILITY
    return not request.states_design and not is_probability


def _with_roles(request: EvaluationRequest, recognition: Recognition, rows: SmallTable) -> EvaluationRequest:
    """Return the request with the recognised columns."""
    changes: Keywords = {"model": recognition.model}
    ids = recognition.columns.get(recognition.id or "")
    is_unique = ids is not None and ids.n_distinct == ids.n_rows
    # A recognised column is no id if the index has the ids, or if ids must match those of a population.
    is_only_id = is_unique and rows.index is None and request.population is None
    if request.id is None and (recognition.model is not None or is_only_id):
        changes["id"] = recognition.id
    if not request.compare:
        changes["compare"] = recognition.models
    if request.value is None and recognition.value is not None:
        changes["value"] = recognition.value
    if recognition.answer is not None and request.predicted in (None, True) and _takes_answer(request):
        changes["predicted"] = recognition.answer
    if not request.judge:
        changes["judge"] = recognition.judges
    return replace(request, **changes)


def _takes_answer(request: EvaluationRequest) -> bool:
    """Return whether the estimand accepts the column of answers; otherwise only the sample stores it."""
    if request.estimand is None or request.predicted is True:
        return True
    estimand = as_estimand(request.estimand)
    return "predicted" in estimand.takes or estimand.compares(predicted=True, sample_answer=None)


def _proxies(request: EvaluationRequest, recognition: Recognition, rows: SmallTable) -> tuple[str, ...]:
    """Return the columns of proxies: the stated ones, or the recognised one if some rows have no label."""
    if request.proxy or recognition.proxy is None:
        return request.proxy
    judges = [judge for judge in recognition.judges if not is_verdict_column(rows, judge)]
    for judge in judges:
        missing = sum(is_missing(entry) for entry in rows.values(judge))
        if missing:
            raise InputError(
                f"{rows.table_name}: the judge {judge!r} has no score in {missing:,} of {len(rows):,} rows",
                allowed="a score in every row",
                action="Add the missing scores, or leave the judge out: judge='none' (--judge none).",
            )
    # If every row has a label, a proxy does not improve a mean; estimands such as an AUC need a score.
    is_needed = request.estimand is not None or recognition.proxy in judges or BRIER in request.metric
    is_needed = is_needed and request.cluster is None
    if np.all(_is_labelled(rows, request)) and not is_needed:
        return ()
    proxies = dict.fromkeys((recognition.proxy, *judges))
    verdict_judges = [name for name in recognition.judges if name not in judges]
    decode = partial(_verdict_numbers, request)
    # A judge whose words do not represent numbers is compared with the labels, but is not a proxy.
    return tuple(
        name
        for name in proxies
        if name not in verdict_judges or verdict_numbers_of_column(rows, name, decode) is not None
    )


def _verdict_numbers(request: EvaluationRequest, verdicts: Sequence[str]) -> dict[str, float] | None:
    """Return the number of each verdict of a judge: as declared for labels, or by a vocabulary.

    None if the verdicts are scores, or words without numbers.
    """
    if not request.counts_as_number or not are_all_words(verdicts):
        return vocabulary_numbers(verdicts)
    declared = dict(request.mapping or {})
    if request.positive is not None:
        declared[request.positive] = 1.0
    if {*map(comparison_key, verdicts)}.isdisjoint(map(comparison_key, declared)):
        # The judge uses other words than the labels. If failure counts as 1 for labels, it does for verdicts.
        usual_numbers = vocabulary_numbers(verdicts)
        numbers_of_words = {
            str(word): float(value) for word, value in declared.items() if isinstance(value, float | int)
        }
        if usual_numbers is not None and reverses_success(numbers_of_words):
            return reversed_verdicts(usual_numbers)
        return usual_numbers
    mapping = LabelMapping.of(verdicts, request.positive, request.mapping, is_partial=True)
    numbers = mapping.numbers(text for text in verdicts if mapping.meanings.get(text, text) is not None)
    if any(np.isnan(number) for number in numbers.values()):
        return None
    return numbers


def _with_missing_verdicts(rows: SmallTable, request: EvaluationRequest) -> SmallTable:
    """Return the table with a word in place of missing verdicts."""
    columns = dict(rows.columns)
    for judge in request.judge:
        if is_verdict_column(rows, judge):
            columns[judge] = [NO_VERDICT if is_missing(entry) else entry for entry in rows.values(judge)]
    return replace(rows, columns=columns)


# ---- which rows have a label


def _empty_values(request: EvaluationRequest) -> tuple[str, ...]:
    """Return the labels that the request maps to no label and that files have in place of an empty cell.

    These are words such as NA and codes such as -1. Rows with other words, such as `unsure`, were labelled.
    """
    mapping = request.mapping or {}
    empty_texts = [text for text, value in mapping.items() if value is None]
    return tuple(text for text in empty_texts if is_placeholder(str(text)) or is_missing_code(str(text)))


def _refuse_code_before_question(
    rows: SmallTable, request: EvaluationRequest, recognition: Recognition
) -> None:
    """Refuse codes of missing labels before the user is asked what the labels are compared with.

    The role may only be open because the code is one more value.
    """
    question = next((question for question in recognition.questions if question.role == "predicted"), None)
    is_declared = request.has_words_as_labels or request.outcome == "binary"
    if question is None or recognition.value is None or is_declared:
        return
    declared = {comparison_key(text) for text in request.mapping or {}}
    texts = [plain_text(entry) for entry in rows.values(recognition.value)]
    counts = Counter(text for text in texts if text is not None and comparison_key(text) not in declared)
    columns = [name for name in question.candidates if name != recognition.value]
    classes = {text for name in columns for text in map(plain_text, rows.values(name)) if text is not None}
    refuse_missing_code(
        counts,
        rows.table_name,
        recognition.value,
        bounds=request.bounds,
        classes=classes if columns else None,
    )


def _without_values(rows: SmallTable, names: Sequence[str], values: Sequence[str]) -> SmallTable:
    """Return the table with empty cells in place of `values` in some columns; 1 and 1.0 are one value."""
    keys = {comparison_key(value) for value in values}
    columns = dict(rows.columns)
    for name in names:
        columns[name] = [None if comparison_key(entry) in keys else entry for entry in rows.values(name)]
    return replace(rows, columns=columns)


def _require_expected_count(rows: SmallTable, is_labelled: BoolArray, column: str) -> None:
    """Refuse inclusion probabilities that expect far more or far fewer labelled rows than there are."""
    probabilities = rows.with_shares([column]).numbers_or_nan(column)
    # Rows without a label need no probability, and then the expected number is unknown.
    if not np.all((probabilities > 0) & (probabilities <= 1)):
        return
    expected = float(probabilities.sum())
    deviation = float(np.sqrt(np.sum(probabilities * (1.0 - probabilities))))
    labelled = int(is_labelled.sum())
    if abs(labelled - expected) > _MAX_STANDARD_DEVIATIONS * deviation + 1.0:
        raise InputError(
            f"{rows.table_name}: {column!r} does not contain the inclusion probabilities of the "
            "labelled rows",
            given=f"{labelled:,} labelled rows, but the probabilities imply {expected:,.0f}",
            allowed="independent draws with these probabilities",
        )


def _is_labelled(rows: SmallTable, request: EvaluationRequest) -> BoolArray:
    """Return which rows (m,) have a label, of any model if several are compared."""
    names = request.compare or (request.label_column,)
    columns = [rows.values(name, "Name the label column: value= (--value COL).") for name in names]
    return np.array(
        [any(not is_missing(entry) for entry in entries) for entries in zip(*columns, strict=True)],
        dtype=bool,
    )


def _default_selection(rows: SmallTable, request: EvaluationRequest, *, are_population: bool) -> RowSelection:
    """Return how rows were chosen if nothing states it: at random, or (nearly) all of them.

    `are_population` states whether the user declared that the rows are the whole population.
    """
    if request.states_design:
        return RowSelection(kind=RANDOM)
    share = float(np.mean(_is_labelled(rows, request)))
    if share == 1.0 or (share >= MIN_RESPONSE_RATE and not are_population):
        return RowSelection(kind=ALL)
    return RowSelection(kind=RANDOM)


def _detected_clusters(
    rows: SmallTable,
    request: EvaluationRequest,
    recognition: Recognition,
    selection: RowSelection,
    unit_of_lists: str | None,
) -> ClusterFindings:
    """Return the groups of rows that were drawn as a whole: stated, recognised or the units of lists."""
    is_labelled = _is_labelled(rows, request)
    may_be_grouped = selection.kind in (RANDOM, RANDOM_WITHIN, UNKNOWN, ALL) and not np.all(is_labelled)
    if not may_be_grouped or request.states_design:
        return ClusterFindings()
    roles = {request.id, request.label_column, request.answer_column, request.model, *request.compare}
    roles |= {*request.judge, *request.proxy, recognition.proxy, recognition.id, selection.column}
    groups = candidate_groups(rows, recognition.columns.values(), is_labelled, roles, selection.column)
    clusters = None
    if request.cluster is not None:
        clusters = labelled_groups(rows, request.cluster, is_labelled, selection.column)
        if not clusters.are_labelled_enough_for_clusters:
            # `Sample.from_labelled` raises the error for them.
            return ClusterFindings(clusters=clusters)
    states_clusters = request.cluster != unit_of_lists
    states_single_rows = request.chosen not in (None, UNKNOWN)
    return detect_clusters(
        rows,
        groups,
        clusters,
        is_stated=states_clusters or states_single_rows,
        allows_second_stage=selection.kind == UNKNOWN,
        override_hint=(
            "; if individual rows were chosen at random after all: chosen='random' (--chosen random)"
        ),
    )


def _require_nearly_all_labelled(rows: SmallTable, is_labelled: BoolArray) -> None:
    """Refuse a table of which too many labels are missing for all rows to be chosen."""
    missing = int(np.sum(~is_labelled))
    if np.mean(is_labelled) < MIN_RESPONSE_RATE:
        raise InputError(
            f"{rows.table_name}: {missing:,} of {len(rows):,} rows have no label",
            given=f"chosen={ALL!r} (--chosen {ALL})",
            allowed=f"chosen={RANDOM!r} (--chosen {RANDOM}), or {UNKNOWN} if rows were not chosen at random",
        )


# ---- tables with a row for each unit and model


def _one_row_for_each_unit(
    rows: SmallTable, request: EvaluationRequest, needed: Sequence[Any]
) -> tuple[JsonDict, tuple[str, ...], RepeatedRuns | None]:
    """Return the columns of a table with a row per unit and a column of labels per model, and the models.

    Repeated runs have a row per unit and run, and are returned, too. Other columns are kept if they have one
    value for each unit; those in `needed` (names, or tuples of names) must have one.
    """
    assert request.model is not None
    models = rows.texts(request.model).tolist()
    id_name = request.id or rows.find(*ID_NAMES)
    if id_name is None:
        action = "Name the column: id= (--id COL)."
        raise InputError(
            f"{rows.table_name}: a table with a row per unit and model must have a column of ids",
            action=action,
        )
    ids = rows.texts(id_name).tolist()
    names = tuple(request.compare) or tuple(dict.fromkeys(models))
    for name in names:
        if name not in models:
            allowed = suggest_names(name, dict.fromkeys(models))
            raise InputError(f"{rows.table_name}: unknown model {name!r}", allowed=allowed)
    labels = rows.values(request.value_or_default)
    repeats = numbers_of_repeats(ids, models)
    keys = ids
    # Runs of one unit are compared between models by their number.
    if np.any(repeats > 0):
        _require_runs(rows, request.model, ids, models)
        keys = [f"{unit}, run {repeat + 1}" for unit, repeat in zip(ids, repeats.tolist(), strict=True)]
    units = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    labels_by_model: dict[str, list[Any]] = {name: [None] * len(units) for name in names}
    for key, model, label in zip(keys, models, labels, strict=True):
        if model in labels_by_model:
            labels_by_model[model][units[key]] = label
    unit_columns = _columns_of_units(rows, keys, {request.model, request.value_or_default, id_name}, needed)
    ambiguous_name = next((name for name in names if name in (*unit_columns, id_name)), None)
    if ambiguous_name is not None:
        what = f"{rows.table_name}: {ambiguous_name!r} is both a column and the name of a model"
        raise InputError(what, action="Rename the column or the model.")
    unit_of_key = dict(zip(keys, ids, strict=True))
    columns = {id_name: [unit_of_key[key] for key in units], **unit_columns, **labels_by_model}
    runs = RepeatedRuns.of(id_name, columns[id_name]) if np.any(repeats > 0) else None
    return columns, names, runs


def _require_runs(rows: SmallTable, model_column: str, ids: Sequence[str], models: Sequence[str]) -> None:
    """Refuse several rows of a unit and a model that are not repeated runs, such as duplicates.

    Repeated runs are numbered in a column, or every unit and model has the same number of them.
    """
    pairs = Counter(zip(ids, models, strict=True))
    runs = [facts.name for facts in facts_of_table(rows) if facts.may_number_runs and facts.is_complete]
    is_numbered = any(
        len(set(zip(ids, models, rows.texts(run).tolist(), strict=True))) == len(ids) for run in runs
    )
    if is_numbered or len(set(pairs.values())) == 1:
        return
    unit, model = next(pair for pair, count in pairs.items() if count > 1)
    raise LabelError(
        f"{rows.table_name}: unit {unit!r} has {pairs[unit, model]:,} rows of model {model!r}",
        allowed="one row for each unit and model; or repeated runs, the same number for each or numbered in "
        "a column",
        action=f"To report each model without comparing the models on the same units: by={model_column!r} "
        f"(--by {quote(model_column)}).",
    )


def _columns_of_units(
    rows: SmallTable, ids: Sequence[str], excluded: set[str], needed: Sequence[Any]
) -> dict[str, list[Any]]:
    """Return the columns that have one value for each unit, with an entry per unit, except `excluded` ones.

    `ids` (m,) are the units of the rows. A `needed` column with several values for a unit raises an error.
    """
    required = {name for entry in needed for name in ((entry,) if isinstance(entry, str) else entry)}
    columns = {}
    for name, entries in rows.columns.items():
        if name in excluded:
            continue
        first_entries: dict[str, Any] = {}
        differing_unit = None
        for unit, entry in zip(ids, entries, strict=True):
            if not same_value(first_entries.setdefault(unit, entry), entry):
                differing_unit = unit
                break
        if differing_unit is None:
            columns[name] = list(first_entries.values())
        elif name in required:
            what = f"{rows.table_name}: column {name!r} differs between the rows of unit {differing_unit!r}"
            action = "Give a column with one value for each unit, or only the rows of one model."
            raise InputError(what, action=action)
    return columns
