"""Ids, labels, stratum sizes and unit columns of the table of an external sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from stratal.arrays import AnyArray
from stratal.designs.external_options import ExternalOptions
from stratal.errors import InputError, LabelError
from stratal.labels.annotator_columns import columns_of_annotators, labels_of_annotators
from stratal.labels.labels import Labels, SampleLike
from stratal.population.column_names import ROW_NUMBER_ID, id_columns
from stratal.question.column_words import ID_NAMES
from stratal.question.tags import NO_SETS, read_set
from stratal.randomness import id_array, id_texts
from stratal.tables.row_index import refuse_two_ids, require_unique_index
from stratal.tables.small_table import SmallTable, is_missing

# Name of the table in errors.
LABEL_TABLE = "the table of labels"

# Next step in the error for a table without the column of labels.
VALUE_ACTION = "Name the label column: value= (--value COL)."


def id_column(columns: SmallTable, name: str | None) -> str | None:
    """Return the column of ids: `name`, or one that is usual for ids; None if rows are only numbered."""
    if name == ROW_NUMBER_ID and columns.find(ROW_NUMBER_ID) is None:
        return None
    if name is not None:
        return name
    if columns.index is None:
        return columns.find(*ID_NAMES)
    require_unique_index(columns.index, columns.table_name)
    # A dataframe's index is the last column of the table.
    *others, index_name = columns.columns
    refuse_two_ids(index_name, id_columns(others), columns.table_name)
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
        action = "Fill in the missing ids, or number the rows: id='row' (--id row)."
        raise InputError(f"{columns.table_name}: an id is missing in column {name!r}", action=action)
    ids = id_array(np.array(columns.values(name), dtype=object))
    most_frequent, times = Counter(id_texts(ids)).most_common(1)[0]
    if times > 1:
        action = (
            "Remove duplicate rows, or number the rows: id='row' (--id row). If they are the answers of "
            "several annotators, give each of them a column instead of a row: value='A,B' (--value A,B)."
        )
        raise LabelError(f"{columns.table_name}: id {most_frequent!r} occurs twice", action=action)
    return ids


# Names of the column of stratum sizes, in the order of the search.
SIZE_NAMES = ("size", "sizes", "N_h", "N", "count", "population_size")


def stratum_sizes(sizes: object, stratum: str | None) -> dict[str, int] | None:
    """Return sizes by stratum from a mapping or a table, in which a stratum may occur in several rows."""
    if sizes is None:
        return None
    # A mapping of names to lists is a table; a mapping of names to numbers has the strata as keys.
    if isinstance(sizes, Mapping):
        are_columns = all(isinstance(entry, list | np.ndarray) for entry in sizes.values())
        if not are_columns:
            sizes = {"stratum": list(sizes), "size": list(sizes.values())}
    columns = SmallTable.of(sizes, "sizes")
    size_column = columns.find(*SIZE_NAMES) or SIZE_NAMES[0]
    numbers = columns.numbers(size_column, positive=True, whole_numbers=True)
    stratum_column = columns.find("stratum", stratum or "stratum") or "stratum"
    if stratum is None and columns.find(stratum_column) is None:
        raise InputError(
            f"{columns.table_name}: no column 'stratum'",
            given=", ".join(map(repr, columns.names)),
            action="Name the column of the strata: stratum=, or chosen='random-within:COLUMN' (--chosen "
            "random-within:COLUMN).",
        )
    names = columns.texts(stratum_column).tolist()
    size_by_stratum = dict(zip(names, numbers.astype(np.int64).tolist(), strict=True))
    for name, size in zip(names, numbers.tolist(), strict=True):
        if size_by_stratum[name] != size:
            problem = f"{columns.table_name}: a stratum occurs twice, with different sizes"
            raise InputError(problem, given=repr(name), action="Keep the size of the whole population.")
    return size_by_stratum


def labelled_rows(columns: SmallTable, options: ExternalOptions) -> list[int]:
    """Return the numbers of the rows that have a label."""
    sets = holds_sets(columns, options.roles.answer, options.tags)
    if sets:
        entries = columns.answers(options.value, VALUE_ACTION)
    else:
        entries = columns.values(options.value, VALUE_ACTION)
    return [row for row, entry in enumerate(entries) if not is_missing(entry)]


def labels_from(ids: AnyArray, columns: SmallTable, value: str, *, sets: bool = False) -> Labels:
    """Return the column `value` of labels as `Labels` of these ids (n,).

    With `sets`, each label is a set of tags. The column may contain the joined labels of several annotators.
    """
    annotators = columns_of_annotators(columns, value)
    if annotators:
        return labels_of_annotators({name: labels_from(ids, columns, name, sets=sets) for name in annotators})
    if sets:
        entries = columns.answers(value, VALUE_ACTION)
    else:
        entries = columns.values(value, VALUE_ACTION)
    values = tuple(None if is_missing(entry) else entry for entry in entries)
    return Labels(ids=tuple(id_texts(ids)), values=values, source=columns.table_name, notes=columns.notes)


def labels_of(sample: SampleLike, table: object, value: str) -> Labels:
    """Return the column `value` as labels, from the table from which an external sample was made."""
    columns = SmallTable.of(table, LABEL_TABLE, (value,))
    # The table may have rows that are not in the sample: units without a label.
    if len(columns) != sample.size:
        if sample.question.row_base is None:
            name = sample.question.id
        else:
            name = ROW_NUMBER_ID
        position = {text: row for row, text in enumerate(id_texts(ids_of(columns, name)))}
        columns = columns.only([position[text] for text in id_texts(sample.ids)])
    return labels_from(sample.ids, columns, value, sets=sample.question.outcome.holds_sets)


def holds_sets(columns: SmallTable, predicted: str | None, tags: str | None) -> bool:
    """Return whether the model's answers are sets of tags.

    They are if `tags` declares a format of sets, or if every entry of the column `predicted` is a list.
    """
    if predicted is None or tags == NO_SETS:
        return False
    return tags is not None or all(read_set(cell) is not None for cell in columns.answers(predicted))


def columns_of_units(columns: SmallTable, options: ExternalOptions) -> dict[str, AnyArray]:
    """Return the columns (n,) of strata, groups and the proxy, by their names in the table.

    The groups are included only if there is a proxy, because only means of proxies depend on them.
    """
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
