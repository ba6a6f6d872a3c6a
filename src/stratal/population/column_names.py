"""Names of columns: names of computed columns, and the columns that names and patterns of users select."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from stratal.errors import InputError, MissingColumnError, same_name, suggest_names
from stratal.proxy.history import HISTORY
from stratal.question.column_words import ID_NAMES
from stratal.tables.row_index import refuse_two_ids, require_unique_index

# Value of `id` that numbers the rows, if the table has no column of this name.
ROW_NUMBER_ID = "row"

# The number of the first row.
ROW_BASE = 0

# The number of the first row in files of samples and plans of versions that did not store it.
_FORMER_ROW_BASE = 1

# The group column that marks the units in the separate stratum of `missing="own-stratum"`. It has two levels.
OWN_STRATUM_GROUP = "proxy_status"
KNOWN_PROXY = "known"
MISSING_PROXY = "missing"

# Name of the proxy computed from other models' answers. For a model other than the evaluated one, the name of
# its column is appended: `peer_agreement_COLUMN`.
PEER_AGREEMENT = "peer_agreement"

# Delimiters, apart from the comma, that explain why a file seems to have one column.
_OTHER_DELIMITERS = (";", "\t", "|", "^", "~")


def name_tuple(keyword: str, names: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the value of a keyword, one name or several, as a tuple without duplicates."""
    if names is None:
        return ()
    if isinstance(names, str):
        return (names,)
    if not isinstance(names, Iterable) or not all(isinstance(name, str) for name in names):
        raise InputError(
            f"{keyword} must name columns", given=repr(names), allowed="a name, or several names"
        )
    return tuple(dict.fromkeys(names))


def match_patterns(patterns: Iterable[str], table_columns: Iterable[str]) -> tuple[str, ...]:
    """Return the columns of a table that equal or match one of the patterns, such as `judge_*`."""
    names = list(table_columns)
    matches = [
        name for pattern in patterns for name in names if pattern == name or fnmatchcase(name, pattern)
    ]
    return tuple(dict.fromkeys(matches))


def match_columns(
    keyword: str,
    names_or_patterns: str | Sequence[str] | None,
    table_columns: list[str],
    table_name: str,
    excluded: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """Return columns by name, with patterns such as `p*` replaced by the columns that match them.

    Patterns do not match the excluded columns. A name that is no pattern is returned unchecked.
    """
    columns: list[str] = []
    for name in name_tuple(keyword, names_or_patterns):
        is_pattern = name not in table_columns and any(mark in name for mark in "*?[")
        names = [name]
        if is_pattern:
            names = [column for column in match_patterns([name], table_columns) if column not in excluded]
        if not names:
            allowed = suggest_names(name, table_columns)
            raise InputError(f"{table_name}: no column matches {keyword}", given=repr(name), allowed=allowed)
        columns.extend(names)
    return tuple(dict.fromkeys(columns))


def require_column(name: str, table_columns: list[str], table_name: str) -> str:
    """Return the table's column of this name; upper and lower case need not match if the name is unique.

    Raises an `InputError` for a column that does not exist, and for a name with several columns.
    """
    if not isinstance(name, str):
        raise InputError(
            "the name of a column must be text", given=repr(name), allowed=suggest_names("", table_columns)
        )
    column = same_name(name, table_columns)
    if column is None:
        raise InputError(
            f"{table_name}: no such column: {name!r}",
            allowed=suggest_names(name, table_columns),
            action=_missing_column_action(name, table_columns),
        )
    n_columns = table_columns.count(column)
    if n_columns > 1:
        problem = f"{table_name}: {n_columns} columns are called {name!r}"
        raise InputError(problem, allowed="one", action="Rename or drop the others.")
    return column


def _missing_column_action(name: str, table_columns: list[str]) -> str | None:
    """Return the next step for a name that is no column; None if the error already lists all columns."""
    if name == HISTORY:
        return (
            "This proxy is computed from earlier models' results: name their file with history=… "
            "(--history FILE)."
        )
    if name.startswith(PEER_AGREEMENT):
        return (
            "This proxy is computed from other models' answers: name their columns with answers=… "
            "(--answers COL,…)."
        )
    delimiter_action = _delimiter_action(table_columns)
    if delimiter_action is not None:
        return delimiter_action
    # Each name in the list of the error has two quotes.
    if suggest_names(name, table_columns).count("'") < 2 * len(table_columns):
        return "`stratal doctor FILE` shows all columns."
    return None


def _delimiter_action(table_columns: list[str]) -> str | None:
    """Return the next step for a file that seems to have one column because of its delimiter, else None."""
    if len(table_columns) > 1:
        return None
    for delimiter in _OTHER_DELIMITERS:
        if delimiter in "".join(table_columns):
            return f"State the delimiter of the columns: delimiter={delimiter!r} (--delimiter)."
    return None


def id_columns(table_columns: Iterable[str]) -> list[str]:
    """Return the columns with a usual name of ids, in order of preference."""
    names = list(table_columns)
    matches = (same_name(name, names) for name in ID_NAMES)
    return [name for name in matches if name is not None]


def find_id_column(id_column: str | None, table_columns: list[str], table_name: str, index: object) -> str:
    """Return the column of ids: the declared one, the index of a dataframe, or one with a usual name.

    If a dataframe has an `index` that identifies rows, its name is the last of `table_columns`.
    """
    if id_column is not None:
        if id_column == ROW_NUMBER_ID and ROW_NUMBER_ID not in table_columns:
            return id_column
        return require_column(id_column, table_columns, table_name)
    if index is not None:
        *columns, index_column = table_columns
        require_unique_index(index, table_name)
        refuse_two_ids(index_column, id_columns(columns), table_name)
        return index_column
    likely_ids = id_columns(table_columns)
    if likely_ids:
        return require_column(likely_ids[0], table_columns, table_name)
    raise MissingColumnError(
        f"{table_name}: no column is called 'id'",
        column="id",
        given=suggest_names("id", table_columns),
        action=_delimiter_action(table_columns)
        or "Name the column of unique ids: id=… (--id COLUMN). If there is none, number the rows: id='row' "
        "(--id row).",
    )


def stored_row_base(row_base: int | None, id_name: str | None) -> int | None:
    """Return the number of the first row that the ids of a sample or plan file count from.

    Parameters
    ----------
    row_base : int, optional
        The number in the file, which older versions did not store.
    id_name : str, optional
        The id column.

    Returns
    -------
    int or None
        None if ids are not row numbers.
    """
    if row_base is None and id_name == ROW_NUMBER_ID:
        return _FORMER_ROW_BASE
    return row_base


def refuse_existing_names(computed: Iterable[str], table_columns: Iterable[str], table_name: str) -> None:
    """Raise an error if the name of a column to compute is the name of a column of the table."""
    common = sorted(set(computed) & set(table_columns))
    if common:
        problem = (
            f"{table_name}: a column is already called {common[0]!r}, the name of a column that is computed"
        )
        raise InputError(
            problem, action="Rename the column, or name it as the proxy and leave out answers or history."
        )
