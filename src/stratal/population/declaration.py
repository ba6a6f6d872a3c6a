"""Declared columns of a table: the id, the proxies, groups, features and columns to show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from stratal.errors import InputError, MissingColumnError, same_name, suggest_names
from stratal.population.proxy_info import ProxyInfo, infer_proxy_info
from stratal.population.softmax import CONFIDENCE, PREDICTED_CLASS
from stratal.proxy.agreement import NORMALISATIONS
from stratal.proxy.history import HISTORY, history_columns
from stratal.question.column_words import ID_NAMES
from stratal.question.question import Outcome
from stratal.question.roles import ColumnRoles, RoleKeywords, declared_columns, refuse_revealing_columns
from stratal.question.scores import Predictions
from stratal.question.tags import checked_format
from stratal.tables.logs.log import Log
from stratal.tables.row_index import refuse_two_ids, require_unique_index
from stratal.tables.source import ReadOptions

if TYPE_CHECKING:
    from stratal.proxy.history import History


# Name of the id column for row numbers, if the table has no column of this name.
ROW = "row"

# The number of the first row.
ROW_BASE = 0

# The number of the first row in sample files of versions that did not store it.
_FORMER_ROW_BASE = 1

# Values of `missing`: units without a proxy are a separate stratum, or an error.
OWN_STRATUM = "own-stratum"
REFUSE = "refuse"

# The group column that marks the units of the separate stratum, and its two levels.
OWN_STRATUM_GROUP = "proxy_status"
KNOWN_PROXY = "known"
MISSING_PROXY = "missing"

# Remedy in error messages on numbers that are written with a comma or a percent sign.
DECIMAL_POINT_REMEDY = (
    "Write the numbers with a decimal point and without a percent sign; write shares as numbers between 0 "
    "and 1, such as 0.976. You can change the column's format in a spreadsheet program."
)

# Name of the proxy computed from other models' answers. For a model other than the evaluated one, the name of
# its column is appended: `peer_agreement_COLUMN`.
PEER_AGREEMENT = "peer_agreement"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """The columns of a table with their roles, from the keywords of `Population.read`.

    Parameters
    ----------
    id : str
        Column of unique ids.
    proxies, groups, features, shown : tuple of str
    second_moments : mapping of proxy to column
        Columns that contain E[z² | x].
    roles : ColumnRoles
        Columns with the model's answer, verdicts and others; those with categories are also groups.
    bounds : (float, float), optional
        Bounds of the outcome that the proxies predict.
    scaled : bool, optional
        Whether the proxies are on the scale of the outcome. Default: inferred from the values.
    softmax : tuple of str
        Columns of probabilities from which the proxy, the probability of the answer, is computed.
    missing : {"own-stratum", "refuse"}, optional
        Treatment of units whose proxy is missing. Default: an error, which also mentions `own-stratum`.
    label : "pass/fail" or (float, float), optional
        The scale of the labels. Default: the scale of the proxies.
    predicts : str or mapping of proxy to str, optional
        The quantity that each proxy is declared to predict; see `Score`.
    answers : tuple of str
        Columns of several models' answers, from which agreements are computed.
    agreements : mapping of proxy to column
        For each proxy that is computed from `answers`, the column of the model whose answer is compared with
        those of the others.
    normalisation : {"text", "number"}, optional
        How answers are normalised before they are compared. Default: not at all.
    history : History, optional
        Earlier models' results, from which a proxy and features are computed.
    tags : str, optional
        Format of the sets of tags in the model's answers; see `Outcome.tag_format`.
    """

    id: str
    proxies: tuple[str, ...] = ()
    second_moments: Mapping[str, str] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    roles: ColumnRoles = field(default_factory=ColumnRoles)
    bounds: tuple[float, float] | None = None
    scaled: bool | None = None
    softmax: tuple[str, ...] = ()
    missing: str | None = None
    label: str | tuple[float, float] | None = None
    predicts: Predictions | None = None
    answers: tuple[str, ...] = ()
    agreements: Mapping[str, str] = field(default_factory=dict)
    normalisation: str | None = None
    history: History | None = None
    tags: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns to read, each once."""
        named = (*self.proxies, *self.second_moments.values(), *self.groups, *self.features, *self.shown)
        return tuple(dict.fromkeys((self.id, *named, *self.softmax, *self.answer_columns)))

    @property
    def answer_columns(self) -> tuple[str, ...]:
        """Names of all columns with models' answers, each once."""
        return tuple(dict.fromkeys((*self.answers, *self.agreements.values())))

    def own_and_peer_columns(self, model: str) -> tuple[str, ...]:
        """Return the column of a model's answers, followed by those of the other models."""
        return (model, *(name for name in self.answers if name != model))

    def select_from(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the columns to read among the names of a table's columns.

        The id is not among them if it is the row number.
        """
        existing = set(names)
        return tuple(name for name in self.columns if name in existing)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of all columns to read as numbers, each once."""
        return tuple(dict.fromkeys((*self.proxies, *self.second_moments.values(), *self.features)))

    @property
    def may_be_softmax(self) -> bool:
        """Whether there are several proxies without a declared scale or meaning."""
        is_scale_declared = self.bounds is not None or self.scaled is not None or bool(self.second_moments)
        has_meaning_by_column = isinstance(self.predicts, Mapping)
        return len(self.proxies) > 1 and not is_scale_declared and not has_meaning_by_column

    def proxy_infos(self, extents: Mapping[str, tuple[float, float]]) -> tuple[ProxyInfo, ...]:
        """Return the description of each proxy, from the smallest and largest value of each column."""
        # Proxies computed from answers or past results are between 0 and 1. They are on the scale of the
        # outcome only if its declared bounds are 0 and 1.
        computed = {*self.agreements, *(self.proxies[:1] if history_columns(self.features) else ())}
        has_other_bounds = self.bounds not in (None, (0.0, 1.0))
        infos = []
        for name in self.proxies:
            bounds = self.bounds
            scaled = self.scaled
            if name in computed:
                bounds = None
                if has_other_bounds:
                    scaled = False
            low, high = extents[name]
            second_moment = self.second_moments.get(name)
            info = infer_proxy_info(name, low, high, bounds, scaled, second_moment, label_bounds(self.label))
            infos.append(info)
        return tuple(infos)


class ArrayKeywords(RoleKeywords, total=False):
    """The keywords of `Population.from_arrays`."""

    proxy: Any
    ids: Any
    groups: Mapping[str, Any] | None
    features: Any
    show: Mapping[str, Any] | None
    bounds: tuple[float, float] | None
    scaled: bool | None
    id_name: str
    label: str | tuple[float, float] | None
    predicts: str | Mapping[str, str] | None
    history: Any
    threads: int | None
    tags: str | None


class TableKeywords(RoleKeywords, total=False):
    """The keywords that `Population.read` and `Population.from_table` share."""

    id: str | None
    proxy: str | Sequence[str] | None
    groups: str | Sequence[str]
    features: str | Sequence[str]
    show: str | Sequence[str]
    second_moment: str | Mapping[str, str] | None
    bounds: tuple[float, float] | None
    scaled: bool | None
    softmax: str | Sequence[str] | None
    missing: str | None
    label: str | tuple[float, float] | None
    predicts: str | Mapping[str, str] | None
    answers: str | Sequence[str] | None
    history: Any
    tags: str | None


class FileKeywords(TableKeywords, ReadOptions, total=False):
    """The keywords of `Population.read`."""


def declare_columns(
    keywords: TableKeywords, names: Iterable[str], table_name: str, index: object = None
) -> Declaration:
    """Return the declaration of the columns that the keywords name.

    Parameters
    ----------
    keywords : TableKeywords
    names : iterable of str
        Names of the table's columns.
    table_name : str
        Name of the table in error messages.
    index : pandas Index, optional
        Index of a dataframe, if it identifies rows; its name is the last of `names`.

    Raises
    ------
    InputError
        For a column that does not exist, and for a name with several columns.
    """
    existing = list(names)
    missing = keywords.get("missing")
    _check_missing_option(missing)
    id_name = _id_column(keywords.get("id"), existing, table_name, index)
    softmax = match_columns("softmax", keywords.get("softmax"), existing, table_name)
    proxy = match_columns("proxy", keywords.get("proxy"), existing, table_name)
    history: Any = keywords.get("history")
    normalisation, answers = _answer_columns(keywords.get("answers"), existing, table_name, id_name)
    agreement_columns = {f"{PEER_AGREEMENT}_{name}": name for name in answers}
    computed = _computed_columns(
        existing,
        has_confidence=keywords.get("softmax") is not None or len(proxy) > 1,
        has_own_stratum=missing == OWN_STRATUM,
    )
    if answers:
        computed |= {PEER_AGREEMENT, *agreement_columns}
    if history is not None:
        computed |= set(history.names)
        refuse_existing_names(history.names, existing, table_name)
        _refuse_revealing_history(history, answers, table_name)

    def columns_to_read(keyword: str, columns: str | Sequence[str] | None) -> tuple[str, ...]:
        """Return the columns of a keyword that the table must have, without computed ones."""
        names_to_read = [name for name in name_tuple(keyword, columns) if name not in computed]
        return tuple(dict.fromkeys(_require_column(name, existing, table_name) for name in names_to_read))

    def columns_of_role(keyword: str, columns: str | Sequence[str] | None) -> list[str]:
        """Return all columns of a keyword, existing and computed ones."""
        return [
            name if name in computed else _require_column(name, existing, table_name)
            for name in name_tuple(keyword, columns)
        ]

    proxies = columns_to_read("proxy", proxy)
    groups = columns_to_read("groups", keywords.get("groups"))
    if softmax and proxies:
        raise InputError(
            "softmax= and proxy= are mutually exclusive",
            given=f"softmax= and {proxies[0]!r}",
            action="Give one of them.",
        )
    softmax = tuple(_require_column(name, existing, table_name) for name in softmax)
    second_moments = _second_moment_columns(keywords.get("second_moment"), proxies, existing, table_name)
    roles = replace(ColumnRoles.of(declared_columns(keywords, columns_of_role)), other_answers=answers)
    shown = tuple(columns_of_role("show", keywords.get("show")))
    refuse_revealing_columns(shown, {*proxies, *softmax, *second_moments.values(), *computed}, roles)
    # The computed answer of a softmax is declared later, when it is computed.
    if roles.answer in computed:
        roles = replace(roles, answer=None)
    # Columns with roles are groups, except computed columns and proxies that are not also the answer.
    not_groups = {*computed, *proxies} - {roles.answer}
    role_groups = [name for name in roles.stored_columns if name not in not_groups]
    agreements = {name: agreement_columns[name] for name in proxy if name in agreement_columns}
    if answers and roles.answer is not None:
        agreements = {PEER_AGREEMENT: roles.answer, **agreements}
    _check_agreements(agreements, answers, existing, table_name)
    features = match_columns("features", keywords.get("features"), existing, table_name, (*proxies, id_name))
    return Declaration(
        id=id_name,
        proxies=proxies,
        second_moments=second_moments,
        groups=tuple(dict.fromkeys((*groups, *role_groups))),
        features=columns_to_read("features", features),
        shown=tuple(dict.fromkeys(shown)),
        roles=roles,
        bounds=keywords.get("bounds"),
        scaled=keywords.get("scaled"),
        softmax=softmax,
        missing=missing,
        label=keywords.get("label"),
        predicts=keywords.get("predicts"),
        answers=answers,
        agreements=agreements,
        normalisation=normalisation,
        history=history,
        tags=checked_format(keywords.get("tags")),
    )


def _computed_columns(existing: Sequence[str], *, has_confidence: bool, has_own_stratum: bool) -> set[str]:
    """Return the names of columns that will be computed, unless the table already has them."""
    computed = set()
    if has_confidence:
        computed |= {CONFIDENCE, PREDICTED_CLASS}
    if has_own_stratum:
        computed.add(OWN_STRATUM_GROUP)
    return computed - set(existing)


def _check_agreements(
    agreements: Mapping[str, str], answers: Sequence[str], existing: Sequence[str], table_name: str
) -> None:
    """Raise an error if the table has a column with the name of an agreement, or without other models."""
    refuse_existing_names(agreements, existing, table_name)
    if any(set(answers) <= {model} for model in agreements.values()):
        raise InputError(
            f"{table_name}: answers= names only the evaluated model",
            given=", ".join(answers),
            allowed="columns of other models",
            action="Also name the columns of other models.",
        )


def _check_missing_option(missing: str | None) -> None:
    """Raise an error if `missing` does not state how to treat units without a proxy."""
    if missing not in (None, REFUSE, OWN_STRATUM):
        problem = "missing= must state how to treat units without a proxy"
        raise InputError(problem, given=repr(missing), allowed=f"{REFUSE}, {OWN_STRATUM}")


def _answer_columns(
    answers: str | Sequence[str] | None, existing: list[str], table_name: str, id_name: str
) -> tuple[str | None, tuple[str, ...]]:
    """Return the normalisation of the answers and the columns of other models' answers.

    The first pattern may begin with the normalisation, as in `text:answer_*`.
    """
    patterns = name_tuple("answers", answers)
    normalisation = None
    if patterns:
        prefix, colon, first = patterns[0].partition(":")
        if colon and prefix in NORMALISATIONS:
            normalisation = prefix
            patterns = (first, *patterns[1:])
    columns = match_columns("answers", patterns, existing, table_name, (id_name,))
    return normalisation, tuple(_require_column(name, existing, table_name) for name in columns)


def _refuse_revealing_history(history: History, answers: Sequence[str], table_name: str) -> None:
    """Raise an error if a model has both answers and past results: together they reveal the true answers."""
    revealing = [name for name in answers if any(_names_model(name, model) for model in history.models)]
    if revealing:
        raise InputError(
            f"{table_name}: answers and past results of the same models reveal which answers are right",
            given=", ".join(revealing[:5]),
            action="If one of these models was right, its answer is the true one: compare the answer of the "
            "evaluated model with the true answer, and label only the other items. Otherwise leave out "
            "history or these answers.",
        )


def _names_model(column: str, model: str) -> bool:
    """Return whether a column name ends with a model's name as a separate word, such as `answer_gpt`."""
    return column.endswith(model) and not column[: -len(model)][-1:].isalnum()


def _second_moment_columns(
    columns: str | Mapping[str, str] | None, proxies: tuple[str, ...], existing: list[str], table_name: str
) -> dict[str, str]:
    """Return the column of second moments of each proxy that has one.

    A single name of a column is allowed if there is one proxy.
    """
    if isinstance(columns, str):
        if len(proxies) != 1:
            action = "Give a mapping from proxies to columns."
            raise InputError(
                "second_moment must name one column", given=f"{len(proxies)} proxies", action=action
            )
        columns = {proxies[0]: columns}
    problem = "second_moment names a column that is not a proxy"
    by_proxy = {
        _require_column(name, list(proxies), problem): column for name, column in (columns or {}).items()
    }
    return {name: _require_column(column, existing, table_name) for name, column in by_proxy.items()}


def refuse_existing_names(names: Iterable[str], existing: Iterable[str], table_name: str) -> None:
    """Raise an error if one of the names of computed columns is the name of an existing column."""
    common = sorted(set(names) & set(existing))
    if common:
        problem = (
            f"{table_name}: a column is already called {common[0]!r}, the name of a column that is computed"
        )
        raise InputError(
            problem, action="Rename the column, or name it as the proxy and leave out answers or history."
        )


def with_log_defaults(keywords: TableKeywords, log: Log) -> TableKeywords:
    """Return the keywords, with the columns of the log as defaults."""
    proxy = keywords.get("proxy")
    if proxy is None and keywords.get("softmax") is None:
        proxy = next(iter(log.proxies), None)
    first_proxy = next(iter(name_tuple("proxy", proxy)), None)
    groups = name_tuple("groups", keywords.get("groups"))
    if log.cluster is not None and log.cluster not in groups:
        groups = (*groups, log.cluster)
    return {
        **keywords,
        "proxy": proxy,
        "groups": groups,
        "show": name_tuple("show", keywords.get("show")) or log.columns_to_show(first_proxy),
    }


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


def _id_column(id_column: str | None, existing: list[str], table_name: str, index: object) -> str:
    """Return the column of ids: the declared one, the index of a dataframe, or one with the name of an id."""
    if id_column is not None:
        if id_column == ROW and ROW not in existing:
            return id_column
        return _require_column(id_column, existing, table_name)
    if index is not None:
        require_unique_index(index, table_name)
        refuse_two_ids(existing[-1], id_columns(existing[:-1]), table_name)
        return existing[-1]
    likely_id = next(iter(id_columns(existing)), None)
    if likely_id is not None:
        return _require_column(likely_id, existing, table_name)
    by_name = "Name the column of unique ids: id=… (--id COLUMN)."
    action = (
        _other_delimiter(existing) or f"{by_name} If there is none, number the rows: id='row' (--id row)."
    )
    problem = f"{table_name}: no column is called 'id'"
    raise MissingColumnError(problem, column="id", given=suggest_names("id", existing), action=action)


def stored_row_base(row_base: int | None, id_name: str | None) -> int | None:
    """Return the number of the first row, given the one in a sample file; None if ids are not row numbers."""
    if row_base is None and id_name == ROW:
        return _FORMER_ROW_BASE
    return row_base


def id_columns(existing: Iterable[str]) -> list[str]:
    """Return the columns with a usual name of ids, in order of preference."""
    names = list(existing)
    matches = (same_name(name, names) for name in ID_NAMES)
    return [name for name in matches if name is not None]


def _other_delimiter(existing: list[str]) -> str | None:
    """Return the action for a file that seems to have one column because of its delimiter, else None."""
    delimiters = [mark for mark in (";", "\t", "|", "^", "~") if len(existing) == 1 and mark in existing[0]]
    if delimiters:
        return f"State the delimiter of the columns: delimiter={delimiters[0]!r} (--delimiter)."
    return None


# Value of `label` for labels with two values; other labels are declared by their bounds.
PASS_FAIL = "pass/fail"


def label_bounds(label: str | tuple[float, float] | None) -> tuple[float, float] | None:
    """Return the bounds of the labels; those of `pass/fail` are 0 and 1."""
    if label is None:
        return None
    if label == PASS_FAIL:
        return (0.0, 1.0)
    with suppress(TypeError, ValueError):
        low, high = map(float, label.split(",") if isinstance(label, str) else label)
        if low < high:
            return (low, high)
    allowed = f"{PASS_FAIL}, or LOW,HIGH such as 1,5"
    raise InputError("label= must state the kind of labels", given=repr(label), allowed=allowed)


def label_outcome(label: str | tuple[float, float] | None) -> Outcome:
    """Return the outcome of the labels, as far as `label` determines it."""
    bounds = label_bounds(label)
    if bounds is None:
        return Outcome()
    if label == PASS_FAIL:
        return Outcome(scale="binary")
    return Outcome(scale="bounded", bounds=bounds)


def match_patterns(patterns: Iterable[str], existing: Iterable[str]) -> tuple[str, ...]:
    """Return the existing names that equal or match one of the patterns, such as `judge_*`."""
    names = list(existing)
    matches = [
        name for pattern in patterns for name in names if pattern == name or fnmatchcase(name, pattern)
    ]
    return tuple(dict.fromkeys(matches))


def match_columns(
    keyword: str,
    names_or_patterns: str | Sequence[str] | None,
    existing: list[str],
    table_name: str,
    excluded: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """Return columns by name, with patterns such as `p*` replaced by the columns that match them.

    Patterns do not match the excluded columns.
    """
    columns: list[str] = []
    for name in name_tuple(keyword, names_or_patterns):
        is_pattern = name not in existing and any(mark in name for mark in "*?[")
        names = [name]
        if is_pattern:
            names = [column for column in match_patterns([name], existing) if column not in excluded]
        if not names:
            allowed = suggest_names(name, existing)
            raise InputError(f"{table_name}: no column matches {keyword}", given=repr(name), allowed=allowed)
        columns.extend(names)
    return tuple(dict.fromkeys(columns))


def _require_column(name: str, existing: list[str], table_name: str) -> str:
    """Return the column of this name, without regard to case where that is unique."""
    if not isinstance(name, str):
        raise InputError(
            "the name of a column must be text", given=repr(name), allowed=suggest_names("", existing)
        )
    column = same_name(name, existing)
    if column is None:
        action = _other_delimiter(existing)
        if name.startswith(PEER_AGREEMENT):
            action = (
                "This proxy is computed from other models' answers: name their columns with answers=… "
                "(--answers COL,…)."
            )
        if name == HISTORY:
            action = (
                "This proxy is computed from earlier models' results: name their file with history=… "
                "(--history FILE)."
            )
        allowed = suggest_names(name, existing)
        if action is None and allowed.count("'") < 2 * len(existing):
            action = "`stratal doctor FILE` shows all columns."
        raise InputError(f"{table_name}: no such column: {name!r}", allowed=allowed, action=action)
    if existing.count(column) > 1:
        problem = f"{table_name}: {existing.count(column)} columns are called {name!r}"
        raise InputError(problem, allowed="one", action="Rename or drop the others.")
    return column
