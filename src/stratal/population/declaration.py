"""`Declaration`: the columns of a table that a population needs, from the keywords of `Population.read`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stratal.errors import InputError
from stratal.population.column_names import (
    OWN_STRATUM_GROUP,
    PEER_AGREEMENT,
    ROW_NUMBER_ID,
    find_id_column,
    match_columns,
    name_tuple,
    refuse_existing_names,
    require_column,
)
from stratal.population.proxy_info import ProxyInfo, infer_proxy_info
from stratal.population.softmax import CONFIDENCE, PREDICTED_CLASS
from stratal.proxy.history import history_columns
from stratal.question.question import Outcome
from stratal.question.roles import ColumnRoles, RoleKeywords, declared_columns, refuse_revealing_columns
from stratal.question.scores import Predictions
from stratal.question.tags import checked_format
from stratal.tables.logs.log import Log
from stratal.tables.source import ReadOptions

if TYPE_CHECKING:
    from stratal.proxy.history import History


# Values of `missing`: units without a proxy are a separate stratum, or an error.
OWN_STRATUM = "own-stratum"
REFUSE = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """The columns of a table with their roles, from the keywords of `Population.read`.

    Parameters
    ----------
    id : str
        Column of unique ids.
    proxies, groups, features, shown : tuple of str
        Columns of predictions, of categories, of other numbers, and columns that annotators see.
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

    def model_and_peer_columns(self, model: str) -> tuple[str, ...]:
        """Return the column of a model's answers, `model`, followed by those of the other models."""
        return (model, *(name for name in self.answers if name != model))

    def existing_columns(self, table_columns: Iterable[str]) -> tuple[str, ...]:
        """Return the columns to read that a table has; an id that is the row number is not among them."""
        existing = set(table_columns)
        return tuple(name for name in self.columns if name in existing)

    def is_numbered_by_row(self, table_columns: Iterable[str]) -> bool:
        """Return whether the ids are row numbers, because the table has no column `row`."""
        return self.id == ROW_NUMBER_ID and ROW_NUMBER_ID not in table_columns

    @property
    def number_columns(self) -> tuple[str, ...]:
        """Names of all columns to read as numbers, each once."""
        return tuple(dict.fromkeys((*self.proxies, *self.second_moments.values(), *self.features)))

    @property
    def may_be_softmax(self) -> bool:
        """Whether the proxies may be class probabilities: several, without a declared scale or meaning."""
        is_scale_declared = self.bounds is not None or self.scaled is not None or bool(self.second_moments)
        has_meaning_by_column = isinstance(self.predicts, Mapping)
        return len(self.proxies) > 1 and not is_scale_declared and not has_meaning_by_column

    def proxy_infos(self, extents: Mapping[str, tuple[float, float]]) -> tuple[ProxyInfo, ...]:
        """Return the description of each proxy, from the smallest and largest value of each column."""
        computed = set(self.agreements)
        # The proxy of a history is inserted before all others, together with its features.
        if history_columns(self.features):
            computed.add(self.proxies[0])
        infos = []
        for name in self.proxies:
            bounds = self.bounds
            scaled = self.scaled
            # Proxies computed from answers or past results are between 0 and 1. They are on the scale of the
            # outcome only if its declared bounds are 0 and 1.
            if name in computed:
                bounds = None
                if self.bounds not in (None, (0.0, 1.0)):
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


@dataclass(frozen=True, slots=True)
class _ColumnLookup:
    """The columns of a table, and the names of columns that will be computed; `table_name` is for errors."""

    table_name: str
    table_columns: list[str]
    computed: set[str]

    def require(self, name: str) -> str:
        """Return the table's column of this name, or raise an error."""
        return require_column(name, self.table_columns, self.table_name)

    def columns_to_read(self, keyword: str, names: str | Sequence[str] | None) -> tuple[str, ...]:
        """Return the columns that a keyword names, without those that will be computed."""
        names_to_read = [name for name in name_tuple(keyword, names) if name not in self.computed]
        return tuple(dict.fromkeys(map(self.require, names_to_read)))

    def all_columns(self, keyword: str, names: str | Sequence[str] | None) -> list[str]:
        """Return the columns that a keyword names, including those that will be computed."""
        return [name if name in self.computed else self.require(name) for name in name_tuple(keyword, names)]


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

    Raises an `InputError` for a column that does not exist, and for a name with several columns.
    """
    table_columns = list(names)
    missing = keywords.get("missing")
    _check_missing_option(missing)
    id_name = find_id_column(keywords.get("id"), table_columns, table_name, index)
    softmax = match_columns("softmax", keywords.get("softmax"), table_columns, table_name)
    proxy = match_columns("proxy", keywords.get("proxy"), table_columns, table_name)
    normalisation, answers = _answer_columns(keywords.get("answers"), table_columns, table_name, id_name)
    agreement_columns = {f"{PEER_AGREEMENT}_{name}": name for name in answers}
    history: History | None = keywords.get("history")
    if history is not None:
        refuse_existing_names(history.names, table_columns, table_name)
        _refuse_revealing_history(history, answers, table_name)
    computed = _computed_columns(keywords, proxy, agreement_columns, table_columns)
    lookup = _ColumnLookup(table_name, table_columns, computed)
    proxies = lookup.columns_to_read("proxy", proxy)
    groups = lookup.columns_to_read("groups", keywords.get("groups"))
    if softmax and proxies:
        raise InputError(
            "softmax= and proxy= are mutually exclusive",
            given=f"softmax= and {proxies[0]!r}",
            action="Give one of them.",
        )
    softmax = tuple(map(lookup.require, softmax))
    second_moments = _second_moment_columns(keywords.get("second_moment"), proxies, lookup)
    roles = replace(ColumnRoles.of(declared_columns(keywords, lookup.all_columns)), other_answers=answers)
    shown = tuple(lookup.all_columns("show", keywords.get("show")))
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
    _check_agreements(agreements, answers, table_columns, table_name)
    features = match_columns(
        "features", keywords.get("features"), table_columns, table_name, (*proxies, id_name)
    )
    return Declaration(
        id=id_name,
        proxies=proxies,
        second_moments=second_moments,
        groups=tuple(dict.fromkeys((*groups, *role_groups))),
        features=lookup.columns_to_read("features", features),
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


def _computed_columns(
    keywords: TableKeywords,
    proxy: tuple[str, ...],
    agreement_columns: Mapping[str, str],
    table_columns: Sequence[str],
) -> set[str]:
    """Return the names of the columns that may be computed from the declared ones.

    `proxy` has the names in the keyword. `agreement_columns` has the column of answers of each agreement.
    """
    computed = set()
    # Several proxies may be a softmax.
    if keywords.get("softmax") is not None or len(proxy) > 1:
        computed |= {CONFIDENCE, PREDICTED_CLASS}
    if keywords.get("missing") == OWN_STRATUM:
        computed.add(OWN_STRATUM_GROUP)
    # A column of the table with one of these names is read instead.
    computed -= set(table_columns)
    if agreement_columns:
        computed |= {PEER_AGREEMENT, *agreement_columns}
    if keywords.get("history") is not None:
        computed |= set(keywords["history"].names)
    return computed


def _check_agreements(
    agreements: Mapping[str, str], answers: Sequence[str], table_columns: Sequence[str], table_name: str
) -> None:
    """Raise an error if an agreement has the name of a column, or if `answers` names no other models."""
    refuse_existing_names(agreements, table_columns, table_name)
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
    answers: str | Sequence[str] | None, table_columns: list[str], table_name: str, id_name: str
) -> tuple[str | None, tuple[str, ...]]:
    """Return the normalisation of the answers and the columns of other models' answers.

    The first pattern may begin with the normalisation, as in `text:answer_*`.
    """
    patterns = name_tuple("answers", answers)
    normalisation = None
    if patterns:
        from stratal.proxy.agreement import NORMALISATIONS

        prefix, colon, first = patterns[0].partition(":")
        if colon and prefix in NORMALISATIONS:
            normalisation = prefix
            patterns = (first, *patterns[1:])
    columns = match_columns("answers", patterns, table_columns, table_name, (id_name,))
    return normalisation, tuple(require_column(name, table_columns, table_name) for name in columns)


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
    columns: str | Mapping[str, str] | None, proxies: tuple[str, ...], lookup: _ColumnLookup
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
    column_of_proxy = {
        require_column(name, list(proxies), problem): column for name, column in (columns or {}).items()
    }
    return {name: lookup.require(column) for name, column in column_of_proxy.items()}


def with_log_defaults(keywords: TableKeywords, log: Log) -> TableKeywords:
    """Return the keywords, with the columns of an evaluation tool's log as defaults."""
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


# Value of `label` for labels with two values; the value for other labels is their bounds.
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
