"""Declared columns of a table: the id, the proxies, groups, features and payload."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from stratal.errors import InputError, MissingColumnError, same_name, suggest_names
from stratal.population.summary import ProxyInfo, proxy_info_for
from stratal.proxy.agreement import NORMALISATIONS
from stratal.proxy.history import HISTORY, history_columns
from stratal.question.column_words import ID_NAMES
from stratal.question.question import Outcome
from stratal.question.roles import ColumnRoles, RoleKeywords, declared_columns, refuse_revealing_columns
from stratal.question.scores import Predictions
from stratal.question.tags import checked_format
from stratal.tables.logs.log import Log
from stratal.tables.row_index import refuse_two_ids, require_unique_index
from stratal.tables.source import FileReading

if TYPE_CHECKING:
    from stratal.proxy.history import History


# Name of the id column for row numbers, if the table has no column of this name.
ROW = "row"

# The number of the first row.
ROW_BASE = 0

# The number of the first row in sample files of versions that did not store it.
FORMER_ROW_BASE = 1

# Units whose proxy is missing are kept, as a stratum of their own.
OWN_STRATUM = "own-stratum"
# They are an error.
REFUSE = "refuse"

# The group of these units, whose levels are `known` and `missing`.
OWN_STRATUM_GROUP = "proxy_status"
MISSING_PROXY = "missing"

# Largest distance from 1 of the sum of proxies that are a softmax: files have rounded probabilities.
ROUNDED = 0.02

# Remedy in several messages on numbers that are written with a comma or a percent sign.
DECIMAL_POINT = (
    "Write them with a decimal point and without a percent sign, shares between 0 and 1: 0.976. A "
    "spreadsheet can change the column's format."
)

# The columns made of a softmax: the probability of the answer, and the most probable class.
CONFIDENCE = "confidence"
PREDICTED = "predicted_class"

# The column made of other models' answers; with `_COLUMN` behind it for a model that is not `predicted`.
PEER_AGREEMENT = "peer_agreement"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """The columns of a table by what they are.

    Parameters
    ----------
    id : str
        Column of unique ids.
    proxies, groups, features, shown : tuple of str
    second_moments : mapping of proxy to column
        Columns that hold E[z² | x].
    roles : ColumnRoles
        Their categories are groups.
    bounds : (float, float), optional
        Bounds of the outcome that the proxies predict.
    scaled : bool, optional
        Whether the proxies are on the outcome's scale; found out from the values if left out.
    softmax : tuple of str
        Columns of probabilities that become the proxy of the answer.
    missing : {"own-stratum", "refuse"}, optional
        Treatment of units whose proxy is missing. They are an error if it is left out, which then also
        mentions the other treatment.
    label : "pass/fail" or (float, float), optional
        The scale of the labels, if it is not that of the proxies.
    predicts : str or mapping of proxy to str, optional
        What proxies are declared to predict; see `Score`.
    answers : tuple of str
        Columns of several models' answers, of which agreements are made.
    agreements : mapping of proxy to column
        Proxies to be made of `answers`, and the evaluated model's column of each.
    alike : {"text", "number"}, optional
        How answers are written alike before they are compared; as they are if left out.
    history : History, optional
        Of earlier models' results, of which a proxy and features are made.
    tags : str, optional
        How cells of the model's answer hold sets of tags; see `Outcome.tag_format`.
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
    alike: str | None = None
    history: History | None = None
    tags: str | None = None

    @property
    def used(self) -> tuple[str, ...]:
        """Every column that is read, once."""
        named = (*self.proxies, *self.second_moments.values(), *self.groups, *self.features, *self.shown)
        return tuple(dict.fromkeys((self.id, *named, *self.softmax, *self.answer_columns)))

    @property
    def answer_columns(self) -> tuple[str, ...]:
        """Every column that is read for its answers, once."""
        return tuple(dict.fromkeys((*self.answers, *self.agreements.values())))

    def peers(self, model: str) -> tuple[str, ...]:
        """Return the column of a model's answers, followed by those of the other models."""
        return (model, *(name for name in self.answers if name != model))

    def among(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the columns that are read of a table with these; numbered rows need none for the id."""
        existing = set(names)
        return tuple(name for name in self.used if name in existing)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Every column that is read as a number, once."""
        return tuple(dict.fromkeys((*self.proxies, *self.second_moments.values(), *self.features)))

    @property
    def may_be_softmax(self) -> bool:
        """Whether there are several proxies, and nothing is declared of their scale."""
        on_scale = self.bounds is not None or self.scaled is not None or bool(self.second_moments)
        return len(self.proxies) > 1 and not on_scale

    def proxy_infos(self, extents: Mapping[str, tuple[float, float]]) -> tuple[ProxyInfo, ...]:
        """Return the description of each proxy, from the smallest and largest value of columns."""
        # A share of equal answers is on the scale of an outcome between 0 and 1, whatever else is declared.
        has_other_bounds = self.bounds not in (None, (0.0, 1.0))
        computed = {*self.agreements, *(self.proxies[:1] if history_columns(self.features) else ())}
        return tuple(
            proxy_info_for(
                name,
                *extents[name],
                None if name in computed else self.bounds,
                False if name in computed and has_other_bounds else self.scaled,
                self.second_moments.get(name),
                label_bounds(self.label),
            )
            for name in self.proxies
        )


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


class FileKeywords(TableKeywords, FileReading, total=False):
    """The keywords of `Population.read`."""


def declaration_of(
    keywords: TableKeywords, names: Iterable[str], label: str, index: object = None
) -> Declaration:
    """Return the declared columns of a table with columns `names`, which errors call `label`.

    `index` is the index of a pandas dataframe if it identifies rows; its name is the last of `names`.

    Raises
    ------
    InputError
        For a column that does not exist, or a name that the table has twice.
    """
    existing = list(names)
    missing = _missing_option(keywords.get("missing"))
    id_name = _id(keywords.get("id"), existing, label, index)
    softmax = columns_fitting("softmax", keywords.get("softmax"), existing, label)
    proxy = columns_fitting("proxy", keywords.get("proxy"), existing, label)
    history: Any = keywords.get("history")
    normalisation, answers = _answer_columns(keywords.get("answers"), existing, label, id_name)
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
        refuse_taken(history.names, existing, label)
        _refuse_revealing_history(history, answers, label)

    def read_columns(keyword: str, columns: str | Sequence[str] | None) -> tuple[str, ...]:
        """Return the columns of a keyword that the table has; those that will be computed are left out."""
        read = [name for name in listed(keyword, columns) if name not in computed]
        return tuple(dict.fromkeys(_require(name, existing, label) for name in read))

    def columns_of_role(keyword: str, columns: str | Sequence[str] | None) -> list[str]:
        """Return the columns of a role, which the table has or which will be computed."""
        named = listed(keyword, columns)
        return [name if name in computed else _require(name, existing, label) for name in named]

    proxies = read_columns("proxy", proxy)
    groups = read_columns("groups", keywords.get("groups"))
    if softmax and proxies:
        raise InputError(
            "softmax= and proxy= are mutually exclusive",
            given=f"softmax= and {proxies[0]!r}",
            action="Give one of them.",
        )
    softmax = tuple(_require(name, existing, label) for name in softmax)
    second_moments = _second_moment_columns(keywords.get("second_moment"), proxies, existing, label)
    roles = replace(ColumnRoles.of(declared_columns(keywords, columns_of_role)), other_answers=answers)
    shown = tuple(columns_of_role("show", keywords.get("show")))
    refuse_revealing_columns(shown, {*proxies, *softmax, *second_moments.values(), *computed}, roles)
    # The answer of a softmax is computed with its confidence, and is then the answer without a declaration.
    if roles.answer in computed:
        roles = replace(roles, answer=None)
    no_groups = {*computed, *proxies} - {roles.answer}
    groups = tuple(
        dict.fromkeys((*groups, *(name for name in roles.stored_columns if name not in no_groups)))
    )
    agreements = {name: agreement_columns[name] for name in proxy if name in agreement_columns}
    if answers and roles.answer is not None:
        agreements = {PEER_AGREEMENT: roles.answer, **agreements}
    _check_agreements(agreements, answers, existing, label)
    features = columns_fitting("features", keywords.get("features"), existing, label, (*proxies, id_name))
    return Declaration(
        id=id_name,
        proxies=proxies,
        second_moments=second_moments,
        groups=groups,
        features=read_columns("features", features),
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
        alike=normalisation,
        history=history,
        tags=checked_format(keywords.get("tags")),
    )


def _computed_columns(existing: Sequence[str], *, has_confidence: bool, has_own_stratum: bool) -> set[str]:
    """Return the columns that will be computed from others; an earlier sample may name them."""
    computed = set()
    if has_confidence:
        computed |= {CONFIDENCE, PREDICTED}
    if has_own_stratum:
        computed.add(OWN_STRATUM_GROUP)
    return computed - set(existing)


def _check_agreements(
    agreements: Mapping[str, str], answers: Sequence[str], existing: Sequence[str], label: str
) -> None:
    """Refuse a proxy of agreement whose name is taken, and one of a model with itself alone."""
    refuse_taken(agreements, existing, label)
    if any(set(answers) <= {model} for model in agreements.values()):
        raise InputError(
            f"{label}: answers= names only the evaluated model",
            given=", ".join(answers),
            allowed="columns of other models",
            action="Also name the columns of other models.",
        )


def _missing_option(missing: str | None) -> str | None:
    """Return the option for units without a proxy, which are refused if it is not stated."""
    if missing not in (None, REFUSE, OWN_STRATUM):
        problem = "missing= must state how to treat units without a proxy"
        raise InputError(problem, given=repr(missing), allowed=f"{REFUSE}, {OWN_STRATUM}")
    return missing


def _answer_columns(
    answers: str | Sequence[str] | None, existing: list[str], label: str, id_name: str
) -> tuple[str | None, tuple[str, ...]]:
    """Return the columns of other models' answers, and how texts are normalised, as in `case:answer_*`."""
    patterns = listed("answers", answers)
    normalisation = None
    if patterns:
        prefix, colon, first = patterns[0].partition(":")
        if colon and prefix in NORMALISATIONS:
            normalisation = prefix
            patterns = (first, *patterns[1:])
    columns = columns_fitting("answers", patterns, existing, label, (id_name,))
    return normalisation, tuple(_require(name, existing, label) for name in columns)


def _refuse_revealing_history(history: History, answers: Sequence[str], label: str) -> None:
    """Raise an error if a model has both answers and past results: together they reveal the true answers."""
    revealing = [name for name in answers if any(_names_model(name, model) for model in history.models)]
    if revealing:
        raise InputError(
            f"{label}: answers and past results of the same models reveal which answers are right",
            given=", ".join(revealing[:5]),
            action="If one of these models was right, its answer is the true one: compare the answer of the "
            "evaluated model with it, and label only the other items. Otherwise leave out history or these "
            "answers.",
        )


def _names_model(column: str, model: str) -> bool:
    """Return whether a column name ends with a model's name as a separate word, such as `answer_gpt`."""
    return column.endswith(model) and not column[: -len(model)][-1:].isalnum()


def _second_moment_columns(
    columns: str | Mapping[str, str] | None, proxies: tuple[str, ...], existing: list[str], label: str
) -> dict[str, str]:
    """Return the column of second moments of each proxy that has one; a single name is that of one proxy."""
    if isinstance(columns, str):
        if len(proxies) != 1:
            action = "Give a mapping of proxy to column."
            raise InputError(
                "second_moment must name one column", given=f"{len(proxies)} proxies", action=action
            )
        columns = {proxies[0]: columns}
    problem = "second_moment names a column that is not a proxy"
    by_proxy = {_require(name, list(proxies), problem): column for name, column in (columns or {}).items()}
    return {name: _require(column, existing, label) for name, column in by_proxy.items()}


def refuse_taken(names: Iterable[str], existing: Iterable[str], label: str) -> None:
    """Raise an error if the table has a column with the name of one that will be computed."""
    common = sorted(set(names) & set(existing))
    if common:
        problem = f"{label}: a column is already called {common[0]!r}, the name of a column that is computed"
        raise InputError(
            problem, action="Rename it, or name it as the proxy and leave out answers or history."
        )


def with_log(keywords: TableKeywords, log: Log) -> TableKeywords:
    """Return the keywords, with the columns of the log as defaults."""
    proxy = keywords.get("proxy")
    if proxy is None and keywords.get("softmax") is None:
        proxy = next(iter(log.proxies), None)
    first = next(iter(listed("proxy", proxy)), None)
    groups = listed("groups", keywords.get("groups"))
    if log.cluster is not None and log.cluster not in groups:
        groups = (*groups, log.cluster)
    return {
        **keywords,
        "proxy": proxy,
        "groups": groups,
        "show": listed("show", keywords.get("show")) or log.columns_to_show(first),
    }


def listed(keyword: str, names: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return one name or several as a tuple, each once."""
    if names is None:
        return ()
    if isinstance(names, str):
        return (names,)
    if not isinstance(names, Iterable) or not all(isinstance(name, str) for name in names):
        raise InputError(
            f"{keyword} must name columns", given=repr(names), allowed="a name, or several names"
        )
    return tuple(dict.fromkeys(names))


def _id(id_column: str | None, existing: list[str], label: str, index: object) -> str:
    """Return the column of ids: the declared one, the index of a dataframe, or one with the name of an id."""
    if id_column is not None:
        if id_column == ROW and ROW not in existing:
            return id_column
        return _require(id_column, existing, label)
    if index is not None:
        require_unique_index(index, label)
        refuse_two_ids(existing[-1], id_columns(existing[:-1]), label)
        return existing[-1]
    likely_id = next(iter(id_columns(existing)), None)
    if likely_id is not None:
        return _require(likely_id, existing, label)
    by_name = "Name the column of unique ids: id=…, --id COLUMN."
    action = _other_delimiter(existing) or f"{by_name} Without one, number the rows: id='row', --id row."
    problem = f"{label}: no column is called 'id'"
    raise MissingColumnError(problem, column="id", given=suggest_names("id", existing), action=action)


def stored_row_base(stored: int | None, id_name: str | None) -> int | None:
    """Return the number of the first row as stored in a file; None if ids are not row numbers."""
    if stored is None and id_name == ROW:
        return FORMER_ROW_BASE
    return stored


def id_columns(existing: Iterable[str]) -> list[str]:
    """Return the columns that are called like ids, the most likely one first."""
    names = list(existing)
    matches = (same_name(name, names) for name in ID_NAMES)
    return [name for name in matches if name is not None]


def _other_delimiter(existing: list[str]) -> str | None:
    """Return what to do if all columns look like one, because they are delimited by another character."""
    delimiters = [mark for mark in (";", "\t", "|") if len(existing) == 1 and mark in existing[0]]
    if delimiters:
        return f"State the delimiter of the columns: delimiter={delimiters[0]!r}, --delimiter."
    return None


# The kind of labels whose scale has only two values; others are stated by their bounds.
PASS_FAIL = "pass/fail"


def label_bounds(label: str | tuple[float, float] | None) -> tuple[float, float] | None:
    """Return the bounds of the labels; those of `pass/fail` are 0 and 1."""
    if label is None:
        return None
    if label == PASS_FAIL:
        return (0.0, 1.0)
    with suppress(TypeError, ValueError):
        low, high = (float(part) for part in (label.split(",") if isinstance(label, str) else label))
        if low < high:
            return (low, high)
    allowed = f"{PASS_FAIL}, or LOW,HIGH such as 1,5"
    raise InputError("label= states the kind of labels", given=repr(label), allowed=allowed)


def label_outcome(label: str | tuple[float, float] | None) -> Outcome:
    """Return the outcome of the labels, as far as `label` determines it."""
    bounds = label_bounds(label)
    if bounds is None:
        return Outcome()
    if label == PASS_FAIL:
        return Outcome(scale="binary")
    return Outcome(scale="bounded", bounds=bounds)


def fitting(patterns: Iterable[str], existing: Iterable[str]) -> tuple[str, ...]:
    """Return the names that are one of the patterns or fit one, such as `judge_*`."""
    names = list(existing)
    matches = [
        name for pattern in patterns for name in names if pattern == name or fnmatchcase(name, pattern)
    ]
    return tuple(dict.fromkeys(matches))


def columns_fitting(
    keyword: str,
    names_or_patterns: str | Sequence[str] | None,
    existing: list[str],
    label: str,
    excluded: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """Return columns by name, with patterns such as `p*` replaced by the columns that match them.

    Patterns do not match the excluded columns.
    """
    columns: list[str] = []
    for name in listed(keyword, names_or_patterns):
        is_pattern = name not in existing and any(mark in name for mark in "*?[")
        names = [name]
        if is_pattern:
            names = [column for column in fitting([name], existing) if column not in excluded]
        if not names:
            allowed = suggest_names(name, existing)
            raise InputError(f"{label}: no column matches {keyword}", given=repr(name), allowed=allowed)
        columns.extend(names)
    return tuple(dict.fromkeys(columns))


def _require(name: str, existing: list[str], label: str) -> str:
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
                "It is computed from other models' answers: name their columns with answers=… "
                "(--answers COL,…)."
            )
        if name == HISTORY:
            action = (
                "It is computed from earlier models' results: name their file with history=… "
                "(--history FILE)."
            )
        allowed = suggest_names(name, existing)
        raise InputError(f"{label}: no such column: {name!r}", allowed=allowed, action=action)
    if existing.count(column) > 1:
        problem = f"{label}: {existing.count(column)} columns are called {name!r}"
        raise InputError(problem, allowed="one", action="Rename or drop the others.")
    return column


def middle(bounds: tuple[float, float] | None, low: float | None, high: float | None) -> float:
    """Return the middle of the outcome's range, where its variance can be largest.

    Parameters
    ----------
    bounds : (float, float), optional
        Of the outcome.
    low, high : float, optional
        Smallest and largest known proxy.
    """
    if bounds is None:
        if low is None or high is None or (low >= 0 and high <= 1):
            return 0.5
        bounds = (low, high)
    return (bounds[0] + bounds[1]) / 2


def is_softmax(totals: Mapping[str, Any], rounded: float = ROUNDED) -> bool:
    """Return whether rows (`n`, their `least` value, how far `off` from adding up to 1) are a softmax."""
    return bool(totals["n"] and totals["least"] >= 0 and totals["off"] <= rounded)


def class_names(columns: Sequence[str]) -> list[str]:
    """Return the classes in the names of columns of probabilities, without their common prefix.

    The prefix ends with a character that is neither a letter nor a digit, or the classes are numbers.
    """
    # In sorted order, the first and the last name share only the prefix of all.
    pairs = zip(min(columns), max(columns), strict=False)
    prefix = "".join(first for first, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    letters = prefix.rstrip("0123456789")
    if letters and all(name[len(letters) :].isdigit() for name in columns):
        return [name[len(letters) :] for name in columns]
    # A prefix of letters may belong to the classes, as in `cat` and `car`.
    end = max((place + 1 for place, mark in enumerate(prefix) if not mark.isalnum()), default=0)
    names = [name[end:] for name in columns]
    if all(names):
        return names
    return list(columns)
