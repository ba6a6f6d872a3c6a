"""What the user says of a table's columns: the id, the proxies, groups, features and payload."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from stratal.errors import InputError, MissingColumnError, near_names, same_name
from stratal.population.summary import ProxyInfo, proxy_info_for
from stratal.proxy.agreement import NORMALISATIONS
from stratal.proxy.history import HISTORY, history_columns
from stratal.question.question import Outcome
from stratal.question.recognition import ID_NAMES
from stratal.question.roles import ColumnRoles, RoleKeywords, declared_columns
from stratal.question.scores import Predictions
from stratal.question.tags import checked_format
from stratal.tables.logs import Log
from stratal.tables.row_index import refuse_two_ids, require_unique_index
from stratal.tables.source import FileReading

if TYPE_CHECKING:
    from stratal.proxy.history import History


# Asked for as the id where no column is called so: the number of the row.
ROW = "row"
# The number of the first row, and what it was in files of samples that do not say it.
ROW_BASE = 0
FORMER_ROW_BASE = 1

# Units whose proxy is missing are kept, as a stratum of their own.
OWN_STRATUM = "own-stratum"

# The group that tells them: `known` and `missing`.
OWN_STRATUM_GROUP = "proxy_status"
MISSING_PROXY = "missing"

# How far from 1 several proxies may add up and be taken as a softmax: probabilities are written rounded.
ROUNDED = 0.02

POINT = (
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
    missing : {"own-stratum"}, optional
        What is done with units whose proxy is missing; they are refused if left out.
    label : "pass/fail" or (float, float), optional
        What annotators will say, where that is not the proxies' scale.
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

    def peers(self, own: str) -> tuple[str, ...]:
        """Return the columns of answers of a model and, behind it, of the others."""
        return (own, *(name for name in self.answers if name != own))

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
        """Return what is known of each proxy, from the smallest and largest value of columns."""
        # A share of equal answers is on the scale of an outcome between 0 and 1, whatever else is declared.
        other = self.bounds not in (None, (0.0, 1.0))
        made = {*self.agreements, *(self.proxies[:1] if history_columns(self.features) else ())}
        return tuple(
            proxy_info_for(
                name,
                *extents[name],
                None if name in made else self.bounds,
                False if name in made and other else self.scaled,
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


def declaration_of(given: TableKeywords, names: Iterable[str], label: str, index: Any = None) -> Declaration:
    """Return the columns that are named of a table with columns `names`, called `label` in errors.

    `index` is the index of a pandas dataframe, where it identifies rows; its name is the last of `names`.

    Raises
    ------
    InputError
        For a column that does not exist, or a name that the table has twice.
    """
    existing = list(names)
    missing = given.get("missing")
    if missing not in (None, "refuse", OWN_STRATUM):
        what = "missing says what becomes of units without a proxy"
        raise InputError(what, given=repr(missing), allowed=f"refuse, {OWN_STRATUM}")
    missing = missing if missing == OWN_STRATUM else None
    id_name = _id(given.get("id"), existing, label, index)
    softmax = columns_fitting("softmax", given.get("softmax"), existing, label)
    proxy = columns_fitting("proxy", given.get("proxy"), existing, label)
    history: Any = given.get("history")
    # Columns that will be made of others, which an earlier sample may name.
    if given.get("softmax") is not None or len(proxy) > 1:
        made = {CONFIDENCE, PREDICTED}
    else:
        made = set()
    made = (made | ({OWN_STRATUM_GROUP} if missing else set())) - set(existing)
    answers = listed("answers", given.get("answers"))
    if answers:
        kind, colon, first = answers[0].partition(":")
    else:
        kind, colon, first = ("", "", "")
    alike = kind if colon and kind in NORMALISATIONS else None
    answers = columns_fitting(
        "answers", (first, *answers[1:]) if alike else answers, existing, label, (id_name,)
    )
    answers = tuple(_require(name, existing, label) for name in answers)
    agreeing = {f"{PEER_AGREEMENT}_{name}": name for name in answers}
    made |= {PEER_AGREEMENT, *agreeing} if answers else set()
    if history is not None:
        made |= set(history.names)
        refuse_taken(history.names, existing, label)
        # Where one of these models was right, its answer is the truth.
        both = [
            name
            for name in answers
            if any(name.endswith(one) and not name[: -len(one)][-1:].isalnum() for one in history.models)
        ]
        if both:
            raise InputError(
                f"{label}: answers and past results of the same models reveal what is right",
                given=", ".join(both[:5]),
                action="Where one of them was right, its answer is the true one: compare the evaluated "
                "model's with it, and label the other items alone. Else leave history or these answers out.",
            )

    def found(what: str, named: str | Sequence[str] | None) -> tuple[str, ...]:
        wanted = [name for name in listed(what, named) if name not in made]
        return tuple(dict.fromkeys(_require(name, existing, label) for name in wanted))

    proxies = found("proxy", proxy)
    groups = found("groups", given.get("groups"))
    if softmax and proxies:
        raise InputError("softmax is the proxy", given=f"{proxies[0]!r} too", action="Give one of them.")

    def columns_of_role(keyword: str, named: str | Sequence[str] | None) -> list[str]:
        names = listed(keyword, named)
        return [name if name in made else _require(name, existing, label) for name in names]

    roles = replace(ColumnRoles.of(declared_columns(given, columns_of_role)), other_answers=answers)
    if roles.answer in made:
        roles = replace(roles, answer=None)
    without = {*made, *proxies} - {roles.answer}
    categories = (name for name in roles.kept if name not in without)
    groups = tuple(dict.fromkeys((*groups, *categories)))
    if answers and roles.answer is not None:
        agreements = {PEER_AGREEMENT: roles.answer}
    else:
        agreements = {}
    agreements |= {name: agreeing[name] for name in proxy if name in agreeing}
    refuse_taken(agreements, existing, label)
    if any(set(answers) <= {own} for own in agreements.values()):
        what = f"{label}: answers name no model but the evaluated one"
        given_names = ", ".join(answers)
        raise InputError(what, given=given_names, allowed="other models' columns", action="Name those too.")
    moments = given.get("second_moment")
    if isinstance(moments, str):
        if len(proxies) != 1:
            what = "second_moment names one column"
            action = "Give a mapping of proxy to column."
            raise InputError(what, given=f"{len(proxies)} proxies", action=action)
        moments = {proxies[0]: moments}
    unknown = "second_moment names what is not a proxy"
    moments = {_require(name, list(proxies), unknown): column for name, column in (moments or {}).items()}
    features = columns_fitting("features", given.get("features"), existing, label, (*proxies, id_name))
    return Declaration(
        id=id_name,
        proxies=proxies,
        second_moments={name: _require(column, existing, label) for name, column in moments.items()},
        groups=groups,
        features=found("features", features),
        shown=found("show", given.get("show")),
        roles=roles,
        bounds=given.get("bounds"),
        scaled=given.get("scaled"),
        softmax=tuple(_require(name, existing, label) for name in softmax),
        missing=missing,
        label=given.get("label"),
        predicts=given.get("predicts"),
        answers=answers,
        agreements=agreements,
        alike=alike,
        history=history,
        tags=checked_format(given.get("tags")),
    )


def refuse_taken(names: Iterable[str], existing: Iterable[str], label: str) -> None:
    """Refuse columns that are there already, where such are to be made."""
    taken = sorted(set(names) & set(existing))
    if taken:
        what = f"{label}: a column is called {taken[0]!r} already, and is needed for what is computed from it"
        raise InputError(what, action="Rename it, or name it as the proxy and leave answers or history out.")


def with_log(given: TableKeywords, log: Log) -> TableKeywords:
    """Return the keywords with what the log is used with, wherever they do not name it themselves."""
    proxy = given.get("proxy")
    if proxy is None and given.get("softmax") is None:
        proxy = next(iter(log.proxies), None)
    first = next(iter(listed("proxy", proxy)), None)
    groups = listed("groups", given.get("groups"))
    if log.cluster is not None and log.cluster not in groups:
        groups = (*groups, log.cluster)
    return {
        **given,
        "proxy": proxy,
        "groups": groups,
        "show": listed("show", given.get("show")) or log.columns_to_show(first),
    }


def listed(what: str, names: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return one name or several as a tuple, each once."""
    if names is None:
        return ()
    if isinstance(names, str):
        return (names,)
    if not isinstance(names, Iterable) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{what} must name columns", given=repr(names), allowed="text, or several of them")
    return tuple(dict.fromkeys(names))


def _id(given: str | None, existing: list[str], label: str, index: Any) -> str:
    if given is not None:
        if given == ROW and ROW not in existing:
            return given
        return _require(given, existing, label)
    if index is not None:
        require_unique_index(index, label)
        refuse_two_ids(existing[-1], id_columns(existing[:-1]), label)
        return existing[-1]
    found = next(iter(id_columns(existing)), None)
    if found is not None:
        return _require(found, existing, label)
    action = (
        "Name the column of unique ids: id=…, --id COLUMN. Without one, number the rows: id='row', --id row."
    )
    given = near_names("id", existing)
    action = _other_delimiter(existing) or action
    what = f"{label}: no column is called 'id'"
    raise MissingColumnError(what, column="id", given=given, action=action)


def stored_row_base(stored: int | None, id_name: str | None) -> int | None:
    """Return the number of the first row by what a file stored of it; None where ids are no row numbers."""
    if stored is None and id_name == ROW:
        return FORMER_ROW_BASE
    return stored


def id_columns(existing: Iterable[str]) -> list[str]:
    """Return the columns that are called like ids, the most likely one first."""
    names = list(existing)
    found = (same_name(name, names) for name in ID_NAMES)
    return [name for name in found if name is not None]


def _other_delimiter(existing: list[str]) -> str | None:
    """Return what to do if all columns look like one, because they are delimited by another character."""
    found = [mark for mark in (";", "\t", "|") if len(existing) == 1 and mark in existing[0]]
    if found:
        return f"Say what delimits the columns: delimiter={found[0]!r}, --delimiter."
    return None


PASS_FAIL = "pass/fail"


def label_bounds(given: str | tuple[float, float] | None) -> tuple[float, float] | None:
    """Return the bounds of what annotators will say: `pass/fail` is 0 to 1."""
    if given is None:
        return None
    if given == PASS_FAIL:
        return (0.0, 1.0)
    with suppress(TypeError, ValueError):
        low, high = (float(part) for part in (given.split(",") if isinstance(given, str) else given))
        if low < high:
            return (low, high)
    allowed = f"{PASS_FAIL}, or LOW,HIGH such as 1,5"
    raise InputError("label says what annotators will answer", given=repr(given), allowed=allowed)


def label_outcome(given: str | tuple[float, float] | None) -> Outcome:
    """Return the outcome that annotators will answer with, as far as `label` tells."""
    bounds = label_bounds(given)
    if bounds is None:
        return Outcome()
    if given == PASS_FAIL:
        return Outcome(scale="binary")
    return Outcome(scale="bounded", bounds=bounds)


def fitting(patterns: Iterable[str], existing: Iterable[str]) -> tuple[str, ...]:
    """Return the names that are one of the patterns or fit one, such as `judge_*`."""
    names = list(existing)
    found = [name for pattern in patterns for name in names if pattern == name or fnmatchcase(name, pattern)]
    return tuple(dict.fromkeys(found))


def columns_fitting(
    what: str, given: str | Sequence[str] | None, existing: list[str], label: str, taken: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Return columns by name, patterns such as `p*` spelt out, without those that are taken."""
    found: list[str] = []
    for name in listed(what, given):
        plain = name in existing or not any(mark in name for mark in "*?[")
        if plain:
            names = [name]
        else:
            names = [fits for fits in fitting([name], existing) if fits not in taken]
        if not names:
            allowed = near_names(name, existing)
            raise InputError(f"{label}: no column fits {what}", given=repr(name), allowed=allowed)
        found.extend(names)
    return tuple(dict.fromkeys(found))


def _require(name: str, existing: list[str], label: str) -> str:
    """Return the column of this name, without regard to case where that is unique."""
    if not isinstance(name, str):
        raise InputError("a column is named by text", given=repr(name), allowed=near_names("", existing))
    found = same_name(name, existing)
    if found is None:
        action = _other_delimiter(existing)
        if name.startswith(PEER_AGREEMENT):
            action = "It is made of other models' answers: name their columns, answers=…, --answers COL,…."
        if name == HISTORY:
            action = "It is made of earlier models' results: name their file, history=…, --history FILE."
        allowed = near_names(name, existing)
        raise InputError(f"{label}: no such column: {name!r}", allowed=allowed, action=action)
    if existing.count(found) > 1:
        what = f"{label}: {existing.count(found)} columns are called {name!r}"
        raise InputError(what, allowed="one", action="Rename or drop the others.")
    return found


def middle(bounds: tuple[float, float] | None, low: float | None, high: float | None) -> float:
    """Return the middle of the outcome's range, where its variance can be largest.

    Parameters
    ----------
    bounds : (float, float), optional
        Of the outcome.
    low, high : float, optional
        Least and largest proxy that is known.
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
    """Return the classes that columns of probabilities are named after: without what all names begin with.

    What is cut ends with a sign that is no letter, or stands before numbers.
    """
    first = min(columns)
    last = max(columns)
    length = next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    shared = first[:length]
    letters = shared.rstrip("0123456789")
    if letters and all(name[len(letters) :].isdigit() for name in columns):
        return [name[len(letters) :] for name in columns]
    end = max((place + 1 for place, sign in enumerate(shared) if not sign.isalnum()), default=0)
    names = [name[end:] for name in columns]
    return names if all(names) else list(columns)
