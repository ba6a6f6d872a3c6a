"""What the user says of a table's columns: the id, the proxies, groups, features and payload."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, TypedDict

import numpy as np

from stratal.arrays import FloatArray, checked_threads
from stratal.errors import InputError, near_names, same_name
from stratal.tables.logs.log import ID_NAMES, Log

ROW = "row"
"""Asked for as the id where no column is called so: the number of the row, from 1."""

OWN_STRATUM = "own-stratum"
"""Units whose proxy is missing are kept, as a stratum of their own."""

OWN_STRATUM_GROUP = "proxy_status"
"""The group that tells them: `known` and `missing`."""

ROUNDED = 0.02
"""How far from 1 several proxies may add up and be taken as a softmax: probabilities are written rounded."""

POINT = (
    "Write them with a decimal point and without a percent sign, shares between 0 and 1: 0.976. A "
    "spreadsheet can change the column's format."
)

CONFIDENCE, PREDICTED = "confidence", "predicted_class"
"""The columns made of a softmax: the probability of the answer, and the most probable class."""


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
    predicted : str, optional
        The group that holds the model's answer.
    bounds : (float, float), optional
        Bounds of the outcome that the proxies predict.
    scaled : bool, optional
        Whether the proxies are on the outcome's scale; found out from the values if left out.
    softmax : tuple of str
        Columns of probabilities that become the proxy of the answer.
    missing : {"own-stratum"}, optional
        What is done with units whose proxy is missing; they are refused if left out.
    label : (float, float), optional
        Bounds of what annotators will say, where that is not the proxies' scale.

    Examples
    --------
    >>> Declaration(id="id", proxies=("proxy",), groups=("proxy", "language")).used
    ('id', 'proxy', 'language')
    """

    id: str
    proxies: tuple[str, ...] = ()
    second_moments: Mapping[str, str] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    predicted: str | None = None
    bounds: tuple[float, float] | None = None
    scaled: bool | None = None
    softmax: tuple[str, ...] = ()
    missing: str | None = None
    label: tuple[float, float] | None = None

    @property
    def used(self) -> tuple[str, ...]:
        """Every column that is read, once."""
        named = (*self.proxies, *self.second_moments.values(), *self.groups, *self.features, *self.shown)
        return tuple(dict.fromkeys((self.id, *named, *self.softmax)))

    def among(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the columns that are read of a table with these; numbered rows need none for the id."""
        existing = set(names)
        return tuple(name for name in self.used if name in existing)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Every column that is read as a number, once."""
        return tuple(dict.fromkeys((*self.proxies, *self.second_moments.values(), *self.features)))


class ArrayKeywords(TypedDict, total=False):
    """The keywords of `Population.from_arrays`."""

    proxy: Any
    ids: Any
    groups: Mapping[str, Any] | None
    features: Any
    show: Mapping[str, Any] | None
    predicted: str | None
    bounds: tuple[float, float] | None
    scaled: bool | None
    id_name: str
    missing: str | None
    label: str | tuple[float, float] | None
    threads: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayRequest:
    """The keywords of `Population.from_arrays`, with what is taken where one is left out."""

    proxy: Any = None
    ids: Any = None
    groups: Mapping[str, Any] | None = None
    features: Any = None
    show: Mapping[str, Any] | None = None
    predicted: str | None = None
    bounds: tuple[float, float] | None = None
    scaled: bool | None = None
    id_name: str = "id"
    missing: str | None = None
    label: str | tuple[float, float] | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        _checked_missing(self.missing)
        if self.threads is not None:
            checked_threads(self.threads)


class TableKeywords(TypedDict, total=False):
    """The keywords that `Population.read` and `Population.from_table` share."""

    id: str | None
    proxy: str | Sequence[str] | None
    groups: str | Sequence[str]
    features: str | Sequence[str]
    show: str | Sequence[str]
    predicted: str | None
    second_moment: str | Mapping[str, str] | None
    bounds: tuple[float, float] | None
    scaled: bool | None
    softmax: str | Sequence[str] | None
    missing: str | None
    label: str | tuple[float, float] | None


class FileKeywords(TableKeywords, total=False):
    """The keywords of `Population.read` that a dataframe has no use for."""

    engine: str
    master: str | None
    threads: int | None
    memory: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """The keywords of `Population.read` and `Population.from_table`, before the table's columns are known."""

    id: str | None = None
    proxy: str | Sequence[str] | None = None
    groups: str | Sequence[str] = ()
    features: str | Sequence[str] = ()
    show: str | Sequence[str] = ()
    predicted: str | None = None
    second_moment: str | Mapping[str, str] | None = None
    bounds: tuple[float, float] | None = None
    scaled: bool | None = None
    softmax: str | Sequence[str] | None = None
    missing: str | None = None
    label: str | tuple[float, float] | None = None

    def __post_init__(self) -> None:
        _checked_missing(self.missing)

    def among(self, names: Iterable[str], label: str) -> Declaration:
        """Return the declaration for a table with columns `names`, called `label` in errors.

        Raises
        ------
        InputError
            For a column that does not exist, or a name that the table has twice.

        Examples
        --------
        >>> Declared(proxy="proxy").among(["item_id", "proxy"], "the table").id
        'item_id'
        """
        existing = list(names)
        id_name = _id(self.id, existing, label)
        softmax = _spelt_out("softmax", self.softmax, existing, label)
        softmax = tuple(_require(name, existing, label) for name in softmax)
        proxy = _spelt_out("proxy", self.proxy, existing, label)
        made = self._made(existing, proxy)

        def found(what: str, names: str | Sequence[str] | None) -> tuple[str, ...]:
            wanted = [name for name in listed(what, names) if name not in made]
            return tuple(dict.fromkeys(_require(name, existing, label) for name in wanted))

        proxies, groups = found("proxy", proxy), found("groups", self.groups)
        if softmax and proxies:
            raise InputError("softmax is the proxy", given=f"{proxies[0]!r} too", action="Give one of them.")
        predicted = next(iter(found("predicted", self.predicted)), None)
        if predicted is not None and predicted not in groups:
            groups = (*groups, predicted)
        moments = _second_moments(self.second_moment, proxies)
        return Declaration(
            id=id_name,
            proxies=proxies,
            second_moments={name: _require(column, existing, label) for name, column in moments.items()},
            groups=groups,
            features=found(
                "features", _spelt_out("features", self.features, existing, label, (*proxies, id_name))
            ),
            shown=found("show", self.show),
            predicted=predicted,
            bounds=self.bounds,
            label=label_bounds(self.label),
            scaled=self.scaled,
            softmax=softmax,
            missing=self.missing if self.missing == OWN_STRATUM else None,
        )

    def of_log(self, log: Log) -> Declared:
        """Return the request with what the log is used with, wherever it says nothing itself."""
        proxy = self.proxy
        if proxy is None and self.softmax is None:
            proxy = log.proxies[0]
        first = next(iter(listed("proxy", proxy)), None)
        groups = listed("groups", self.groups)
        if log.cluster is not None and log.cluster not in groups:
            groups = (*groups, log.cluster)
        return replace(
            self, proxy=proxy, show=listed("show", self.show) or log.shown_with(first), groups=groups
        )

    def _made(self, existing: list[str], proxy: tuple[str, ...]) -> set[str]:
        """Return the columns that will be made of others, which an earlier sample may name."""
        several = self.softmax is not None or len(proxy) > 1
        made = {CONFIDENCE, PREDICTED} if several else set()
        made |= {OWN_STRATUM_GROUP} if self.missing == OWN_STRATUM else set()
        return made - set(existing)


def listed(what: str, names: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return one name or several as a tuple, each once.

    Examples
    --------
    >>> listed("groups", "language")
    ('language',)
    """
    if names is None:
        return ()
    if isinstance(names, str):
        return (names,)
    if not isinstance(names, Iterable) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{what} must name columns", given=repr(names), allowed="text, or several of them")
    return tuple(dict.fromkeys(names))


def _id(given: str | None, existing: list[str], label: str) -> str:
    if given is not None:
        return given if given == ROW and ROW not in existing else _require(given, existing, label)
    for name in ID_NAMES:
        found = same_name(name, existing)
        if found is not None:
            return _require(found, existing, label)
    raise InputError(
        f"{label}: no column is called 'id'",
        given=near_names("id", existing),
        action=_other_delimiter(existing)
        or "Name the column of unique ids: id=…, --id COLUMN. "
        "Without one, number the rows: id='row', --id row.",
    )


def _other_delimiter(existing: list[str]) -> str | None:
    """Return what to do if all columns look like one, because they are delimited by another character."""
    found = [mark for mark in (";", "\t", "|") if len(existing) == 1 and mark in existing[0]]
    return f"Say what delimits the columns: delimiter={found[0]!r}, --delimiter." if found else None


def _checked_missing(missing: str | None) -> None:
    if missing not in (None, "refuse", OWN_STRATUM):
        raise InputError(
            "missing says what becomes of units without a proxy",
            given=repr(missing),
            allowed=f"refuse, {OWN_STRATUM}",
        )


PASS_FAIL = "pass/fail"


def label_bounds(given: str | tuple[float, float] | None) -> tuple[float, float] | None:
    """Return the bounds of what annotators will say: `pass/fail` is 0 to 1.

    Examples
    --------
    >>> label_bounds("pass/fail"), label_bounds("1,5"), label_bounds((1, 5))
    ((0.0, 1.0), (1.0, 5.0), (1.0, 5.0))
    """
    if given is None:
        return None
    if given == PASS_FAIL:
        return (0.0, 1.0)
    try:
        low, high = (float(part) for part in (given.split(",") if isinstance(given, str) else given))
        if low < high:
            return (low, high)
    except (TypeError, ValueError):
        pass
    raise InputError(
        "label says what annotators will answer",
        given=repr(given),
        allowed=f"{PASS_FAIL}, or LOW,HIGH such as 1,5",
    )


def fitting(patterns: Iterable[str], existing: Iterable[str]) -> tuple[str, ...]:
    """Return the names that are one of the patterns or fit one, such as `judge_*`.

    Examples
    --------
    >>> fitting(["judge_*", "f1"], ["f1", "judge_a", "judge_b"])
    ('judge_a', 'judge_b', 'f1')
    """
    names = list(existing)
    found = [name for pattern in patterns for name in names if pattern == name or fnmatchcase(name, pattern)]
    return tuple(dict.fromkeys(found))


def _spelt_out(
    what: str,
    given: str | Sequence[str] | None,
    existing: list[str],
    label: str,
    taken: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """Return columns by name, patterns such as `p*` spelt out, without those that are taken."""
    found: list[str] = []
    for name in listed(what, given):
        plain = name in existing or not any(mark in name for mark in "*?[")
        names = [name] if plain else [fits for fits in fitting([name], existing) if fits not in taken]
        if not names:
            allowed = near_names(name, existing)
            raise InputError(f"{label}: no column fits {what}", given=repr(name), allowed=allowed)
        found.extend(names)
    return tuple(dict.fromkeys(found))


def _second_moments(given: str | Mapping[str, str] | None, proxies: tuple[str, ...]) -> dict[str, str]:
    if given is None:
        return {}
    if isinstance(given, str):
        if len(proxies) != 1:
            raise InputError(
                "second_moment names one column",
                given=f"{len(proxies)} proxies",
                action="Give a mapping of proxy to column.",
            )
        return {proxies[0]: given}
    known = {proxy: same_name(proxy, proxies) for proxy in given}
    for proxy in (proxy for proxy, name in known.items() if name is None):
        raise InputError(
            f"second_moment names no proxy: {proxy!r}", allowed=near_names(proxy, proxies) or "none"
        )
    return {known[proxy] or proxy: column for proxy, column in given.items()}


def _require(name: str, existing: list[str], label: str) -> str:
    """Return the column of this name, without regard to case where that is unique."""
    if not isinstance(name, str):
        raise InputError("a column is named by text", given=repr(name), allowed=near_names("", existing))
    found = same_name(name, existing)
    if found is None:
        raise InputError(
            f"{label}: no such column: {name!r}",
            allowed=near_names(name, existing),
            action=_other_delimiter(existing),
        )
    count = existing.count(found)
    if count > 1:
        raise InputError(
            f"{label}: {count} columns are called {name!r}",
            allowed="one",
            action="Rename or drop the others.",
        )
    return found


def own_stratum_note(count: int) -> str:
    """Return what is said of units without a proxy that were kept."""
    return f"{count:,} units without a proxy are a stratum of their own"


def middle(bounds: tuple[float, float] | None, low: float | None, high: float | None) -> float:
    """Return the middle of the outcome's range, where its variance can be largest.

    Parameters
    ----------
    bounds : (float, float), optional
        Of the outcome.
    low, high : float, optional
        Least and largest proxy that is known.

    Examples
    --------
    >>> middle(None, 0.2, 0.9), middle((1, 5), 2.0, 4.0), middle(None, -3.0, 5.0)
    (0.5, 3.0, 1.0)
    """
    if bounds is None:
        if low is None or high is None or (low >= 0 and high <= 1):
            return 0.5
        bounds = (low, high)
    return (bounds[0] + bounds[1]) / 2


def is_softmax_of(columns: Sequence[FloatArray]) -> bool:
    """Return whether columns (N,) hold probabilities that add up to 1 in each row that has them all.

    Examples
    --------
    >>> is_softmax_of([np.array([0.2, 0.5]), np.array([0.8, 0.49])])
    True
    """
    total = np.sum(columns, axis=0)
    whole = total[~np.isnan(total)]
    least = min((float(column[~np.isnan(total)].min(initial=0.0)) for column in columns), default=0.0)
    return bool(len(whole) and least >= 0 and np.abs(whole - 1.0).max() <= ROUNDED)


def class_names(columns: Sequence[str]) -> list[str]:
    """Return the classes that columns of probabilities are named after: without what all names begin with.

    What is cut ends with a sign that is no letter, or stands before numbers.

    Examples
    --------
    >>> class_names(["p_cat", "p_car"]), class_names(["p0", "p1", "p10"]), class_names(["cat", "car"])
    (['cat', 'car'], ['0', '1', '10'], ['cat', 'car'])
    """
    first, last = min(columns), max(columns)
    length = next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    shared = first[:length]
    letters = shared.rstrip("0123456789")
    if letters and all(name[len(letters) :].isdigit() for name in columns):
        return [name[len(letters) :] for name in columns]
    end = max((place + 1 for place, sign in enumerate(shared) if not sign.isalnum()), default=0)
    names = [name[end:] for name in columns]
    return names if all(names) else list(columns)
