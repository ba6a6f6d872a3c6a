"""Earlier models' results, item by item: a low-rank logistic factor model, and what it predicts of a new one.

Model i is right on item j with log-odds b_j + a_i + u_i·v_j. Items' difficulties b_j and factors v_j are
fitted once; a new model's ability and factors are learned from its labels, with the earlier models' as prior.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, FloatArray, IntArray, Record, array_of, same_length
from stratal.errors import InputError
from stratal.randomness import KeyArray, id_array, id_texts, keys_of_ids, keys_of_rows

# The proxy, the learner, and what the columns of factors begin with.
HISTORY = "history"


def history_columns(features: Sequence[str]) -> tuple[str, ...]:
    """Return those of a population's features that hold a history, log-odds first.

    Examples
    --------
    >>> history_columns(["length", "history_0", "history_1"])
    ('history_0', 'history_1')
    """
    return tuple(name for name in features if name.startswith(f"{HISTORY}_"))


# Items from which models' weights and a history's factors are estimated: a rate of agreement is then known to
# .008 or better.
MOST_ITEMS = 4_096

# Makes the random numbers that choose these items independent of every draw's.
PURPOSE = "answers:"

# Numbers of factors that are compared; with 0 items differ in difficulty alone.
RANKS = (0, 1, 2, 3, 5, 8, 12, 20)

# Of fewer nothing can be left out to choose a rank by.
FEWEST_MODELS = 4
FEWEST_ITEMS = 20

# Items by which the rank is chosen, in half a minute at most for hundreds of models.
CHOOSING = 2_048

# Ranks in a row that lose more than the best so far end the choice: more factors then fit noise.
WORSE = 3

# Labels of a left-out model from which its other results are predicted, half of the items at most.
LABELS = 100

# The prior's variance over that of the earlier models: a new one may be better than all of them.
WIDER = 1.5

# Of the fit, each of which goes up by a bound on the curvature (Böhning & Lindsay 1988).
_STEPS = 60

# Steps for one item's factors, or one model's, from where all are alike: a logistic regression.
_NEWTON = 8

# Of a factor: machines that add up in another order find the same numbers.
_DIGITS = 4

# Of the prior on items' factors, which sets their scale, and on difficulties (standard deviation 1.8).
_ITEM_PRECISION = 1.0
_CENTRE_PRECISION = 0.3

# Results (items × models) that are computed with at once: a core's cache holds them.
_AT_ONCE = 2**17

# Steps shorter than this leave an error far below a digit.
_SHORT = 1e-7


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class History(Record):
    """What earlier models' results say of each item, ready for a new model.

    Parameters
    ----------
    ids : (K,)
        Ids of the items, as text.
    values : float (K, 2 + r)
        The predicted accuracy of a new model before any label; its log-odds at the earlier models' mean; and
        factors, of which a new model's weights are standard normal beforehand.
    models : tuple of str (M,)
        Names of the earlier models.
    losses : mapping of int to float
        Log loss of left-out models' results by the number of factors; the rank has the smallest.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> hard = rng.normal(size=300)
    >>> past = rng.random((300, 20)) < 1 / (1 + np.exp(hard[:, None] - rng.normal(size=20)))
    >>> found = fit_history(past)
    >>> bool(np.corrcoef(found.values[:, 0], -hard)[0, 1] > 0.8)
    True
    """

    ids: AnyArray
    values: FloatArray
    models: tuple[str, ...]
    losses: Mapping[int, float]

    @property
    def rank(self) -> int:
        """Number of factors besides difficulty and ability."""
        return int(self.values.shape[1]) - 3

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of `values`: the proxy and the features."""
        return (HISTORY, *(f"{HISTORY}_{at}" for at in range(self.values.shape[1] - 1)))

    @property
    def unknown(self) -> FloatArray:
        """What is known (2 + r,) of an item without past results: the mean, and the ability alone."""
        centre = np.append(self.values[:, :3].mean(axis=0), np.zeros(self.rank))
        return np.asarray(centre.round(_DIGITS))

    def of(self, ids: Any) -> FloatArray:
        """Return the values (N, 2 + r) of items by their ids (N,)."""
        place = {text: row for row, text in enumerate(self.ids.tolist())}
        rows = np.array([place.get(text, -1) for text in id_texts(id_array(ids))], np.int64)
        return np.where(rows[:, None] < 0, self.unknown, self.values[rows])

    def known(self, ids: Any) -> int:
        """Return how many of some ids (N,) are those of items with past results."""
        return len(set(self.ids.tolist()) & set(id_texts(id_array(ids))))

    def note(self, known: int, size: int) -> str:
        """Return what it is, and how many of the population's items it knows; refuse one of other items."""
        if not known:
            raise InputError(
                "none of these items has past results",
                given=f"results of '{self.ids[0]}', …",
                allowed="results of the same items, joined by id",
                action="Write ids alike in both files; another column of ids: id= (--id).",
            )
        if known < size:
            lacking = f"; {size - known:,} of {size:,} items have none"
        else:
            lacking = ""
        return (
            f"{HISTORY!r} is the accuracy predicted from results of {len(self.models)} earlier models "
            f"({self.rank} factor{'s' * (self.rank != 1)}, chosen by leaving models out){lacking}"
        )

    def write(self, path: str | Path) -> Path:
        """Write to a Parquet file, which `history=` and `--history` take instead of the results."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = {"id": pa.array(self.ids.tolist(), pa.string())}
        columns |= dict(zip(self.names, self.values.T, strict=True))
        losses = {str(rank): loss for rank, loss in self.losses.items()}
        about = {"models": list(self.models), "losses": losses}
        table = pa.table(columns).replace_schema_metadata({"stratal-history": json.dumps(about)})
        pq.write_table(table, str(path))
        return Path(path)

    @classmethod
    def read(cls, path: str | Path) -> History | None:
        """Return what `write` wrote; None for any other file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not Path(path).is_file() or Path(path).suffix.lower() != ".parquet":
            return None
        try:
            about = (pq.read_schema(str(path)).metadata or {}).get(b"stratal-history")
        except (OSError, pa.ArrowException):  # the reader of past results says what is wrong
            return None
        if about is None:
            return None
        table = pq.read_table(str(path))
        known = json.loads(about)
        return cls(
            ids=np.array(table["id"].to_pylist(), dtype=np.str_),
            values=np.column_stack([column.to_numpy() for column in table.columns[1:]]),
            models=tuple(known["models"]),
            losses={int(rank): float(loss) for rank, loss in known["losses"].items()},
        )


def chosen_items(size: int, ids: Any = None) -> IntArray:
    """Return the rows (n,) that weights come from: those with the smallest permanent random numbers.

    Examples
    --------
    >>> chosen_items(2, ["a", "b"]).tolist() in ([0, 1], [1, 0])
    True
    """
    keys: KeyArray
    if ids is None:
        keys = keys_of_rows(slice(0, size), 0)
    else:
        keys = keys_of_ids(id_texts(id_array(ids)), 0, PURPOSE)
    same_length(answers=np.empty(size), ids=keys)
    return np.argsort(keys, kind="stable")[:MOST_ITEMS]


def fit_history(
    past: Any, *, ids: Any = None, rank: int | None = None, names: Sequence[str] | None = None
) -> History:
    """Fit the factor model to earlier models' results.

    Parameters
    ----------
    past : mapping of model to array-like (N,), or array (N, M)
        1 or true where a model was right on an item, 0 or false where it was wrong, NaN, None or −1 where
        there is no result.
    ids : array-like (N,), optional
        Of the items; row numbers if left out.
    rank : int, optional
        Number of factors; chosen by leaving models out unless given.
    names : sequence of str (M,), optional
        Of the models, where `past` is an array; numbers if left out.

    Raises
    ------
    InputError
        For results that are neither right nor wrong, and fewer than four models or twenty items.

    Notes
    -----
    A logistic factor model as in item response theory (Reckase 2009), fitted by penalised likelihood on the
    4,096 items with the smallest random numbers, every item's factors then from its own results.

    Examples
    --------
    >>> past = np.random.default_rng(0).random((50, 8)) < 0.7
    >>> fit_history(past, rank=1).values.shape
    (50, 4)
    """
    if isinstance(past, Mapping):
        columns = {str(name): _results(array_of(column)[..., None]) for name, column in past.items()}
        same_length(**columns)
        past = np.column_stack(list(columns.values()))
        names = list(columns)
    right = _results(past)
    size, models = right.shape
    if models < FEWEST_MODELS or size < FEWEST_ITEMS:
        given = f"{models} models on {size} items"
        allowed = f"{FEWEST_MODELS} models, {FEWEST_ITEMS} items"
        raise InputError("there are too few past results", given=given, allowed=f"at least {allowed}")
    texts = np.array(id_texts(np.arange(size) if ids is None else id_array(ids)), dtype=np.str_)
    same_length(past=right[:, 0], ids=texts)
    chosen = right[chosen_items(size, None if ids is None else texts)]
    if names is None:
        names = [str(at) for at in range(models)]
    losses: dict[int, float] = {}
    if rank is None:
        losses = left_out_losses(chosen[:CHOOSING], RANKS)
        rank = min(losses, key=lambda one: losses[one])
    values = _values_of(right, *_fitted(chosen, rank))
    return History(ids=texts, values=values.round(_DIGITS), models=tuple(names), losses=losses)


def _results(past: Any) -> IntArray:
    """Return results (N, M): 1 right, 0 wrong, −1 where there is none."""
    given = np.asarray(past)
    if given.ndim != 2:
        raise InputError("past results must be a table", given=f"shape {given.shape}", allowed="(N, M)")
    if given.dtype == np.bool_:
        return np.asarray(given.astype(np.int8))
    if given.dtype == np.int8:  # which is what a file was read to
        found = given
    else:
        found = np.empty(given.shape, np.int8)
        for rows in _batches(given):
            found[rows] = _whole(given[rows])
    if found.size and (found.min() < -1 or found.max() > 1):
        allowed = "1 or 0, true or false; nothing where it is unknown"
        raise InputError("a past result is neither right nor wrong", allowed=allowed)
    return found


def _whole(given: AnyArray) -> IntArray:
    """Return results as integers, −1 where there is none, 2 for what is neither right nor wrong."""
    try:
        numbers = np.where(given == None, np.nan, given).astype(np.float64)  # noqa: E711
    except (TypeError, ValueError):
        return np.full(given.shape, 2, np.int8)
    numbers = np.where(np.isnan(numbers), -1.0, numbers)
    return np.where(np.isin(numbers, (-1.0, 0.0, 1.0)), numbers, 2.0).astype(np.int8)


def _batches(right: AnyArray) -> Iterator[slice]:
    """Yield the rows of results (n, M) that are computed with at once."""
    rows = max(1, _AT_ONCE // max(right.shape[1], 1))
    return (slice(start, start + rows) for start in range(0, len(right), rows))


def _values_of(right: IntArray, models: FloatArray, centre: float) -> FloatArray:
    """Return the values (n, 2 + r) of items from their results (n, M)."""
    k = models.shape[1]
    matrix = np.column_stack([np.ones(len(models)), models[:, 1:]])
    precision = np.append(_CENTRE_PRECISION, np.full(k - 1, _ITEM_PRECISION))
    prior = np.append(centre, np.zeros(k - 1))
    upper, lower = np.triu_indices(k)
    # Single precision suffices for a step's length; where steps end depends on the slope alone.
    products = (matrix[:, upper] * matrix[:, lower]).astype(np.float32)
    # In units in which a new model's ability and factors are standard normal.
    mean = models.mean(axis=0)
    root = np.linalg.cholesky(np.cov(models.T).reshape(k, k) * WIDER + 1e-3 * np.eye(k))
    values = np.empty((len(right), 2 + k))
    for rows in _batches(right):
        results = right[rows].astype(np.float64)
        known = (right[rows] >= 0).astype(np.float64)
        found = np.tile(prior, (len(results), 1))
        curvature = np.empty((len(results), k, k))
        for _ in range(_NEWTON):
            likely = sigmoid(found @ matrix.T + models[:, 0])
            slope = ((results - likely) * known) @ matrix - (found - prior) * precision
            likely *= (1.0 - likely) * known
            curvature[:, upper, lower] = curvature[:, lower, upper] = likely.astype(np.float32) @ products
            step = np.linalg.solve(curvature + np.diag(precision), slope[:, :, None])[:, :, 0]
            found += np.clip(step, -2.0, 2.0)
            if np.abs(step).max() < _SHORT:
                break
        loadings = np.column_stack([np.ones(len(found)), found[:, 1:]])
        offset = found[:, 0] + loadings @ mean
        factors = loadings @ root
        first = attenuated(offset, np.sum(factors**2, axis=1))
        values[rows] = np.column_stack([first, offset, factors])
    return values


def _fitted(right: IntArray, rank: int) -> tuple[FloatArray, float]:
    """Return models' abilities and factors (M, 1 + r) and the mean difficulty, from results (n, M)."""
    known = (right >= 0).astype(np.float64)
    results = right * known
    share = (results.sum(axis=1) + 1.0) / (known.sum(axis=1) + 2.0)
    items = np.zeros((len(right), 1 + rank))
    items[:, 0] = np.log(share / (1.0 - share))
    residuals = (results - share[:, None]) * known
    leading = np.linalg.eigh(residuals.T @ residuals)[1][:, ::-1][:, :rank]
    leading = leading * np.where(np.sum(leading**3, axis=0) < 0, -1.0, 1.0)  # eigenvectors have no sign
    models = np.column_stack([np.zeros(right.shape[1]), leading * np.sqrt(right.shape[1])])

    def left(rows: slice) -> FloatArray:
        log_odds = items[rows, :1] + models[:, 0] + items[rows, 1:] @ models[:, 1:].T
        return np.asarray((results[rows] - sigmoid(log_odds)) * known[rows])

    for _ in range(_STEPS):
        matrix = np.column_stack([np.ones(len(models)), models[:, 1:]])
        centre = np.append(items[:, 0].mean(), np.zeros(rank))
        precision = np.append(_CENTRE_PRECISION, np.full(rank, _ITEM_PRECISION))
        slope = np.vstack([left(rows) @ matrix for rows in _batches(right)]) - (items - centre) * precision
        items = items + slope @ np.linalg.inv(matrix.T @ matrix / 4.0 + np.diag(precision))
        matrix = np.column_stack([np.ones(len(items)), items[:, 1:]])
        slope = sum(left(rows).T @ matrix[rows] for rows in _batches(right)) - models
        models = models + slope @ np.linalg.inv(matrix.T @ matrix / 4.0 + np.eye(1 + rank))
    return models, float(items[:, 0].mean())


def left_out_losses(right: IntArray, ranks: Sequence[int]) -> dict[int, float]:
    """Return the mean log loss of models that were left out, by the number of factors.

    Parameters
    ----------
    right : int (n, M)
        Items in random order: those first are a left-out model's labels, the others are predicted.
    ranks : sequence of int

    Examples
    --------
    >>> right = (np.random.default_rng(0).random((80, 10)) < 0.7).astype(np.int8)
    >>> list(left_out_losses(right, (0, 1)))
    [0, 1]
    """
    models = right.shape[1]
    labels = min(LABELS, len(right) // 2)
    order = np.argsort(-np.where(right >= 0, right, 0).mean(axis=0), kind="stable")
    # Few models are left out in five parts, of many a tenth once: models of every accuracy are in each.
    if models < 60:
        parts = [order[at::5] for at in range(5)]
    else:
        parts = [order[::10]]
    losses: dict[int, float] = {}
    for rank in ranks:
        if losses:
            behind = len(losses) - 1 - list(losses.values()).index(min(losses.values()))
        else:
            behind = 0
        if behind >= WORSE or rank > (models - max(map(len, parts))) // 3:
            break
        found = []
        for part in parts:
            kept = np.delete(right, part, axis=1)
            values = _values_of(kept, *_fitted(kept, rank))
            for z in right[:, part].T:
                seen = z[:labels] >= 0
                rest = np.flatnonzero(z[labels:] >= 0) + labels
                own = FactorPosterior.of(values[:labels, 1:][seen], z[:labels][seen].astype(np.float64))
                likely = np.clip(own.predict(values[rest, 1:]), 1e-4, 1.0 - 1e-4)
                found.append(-np.log(np.where(z[rest] == 1, likely, 1.0 - likely)))
        losses[rank] = float(np.mean(np.concatenate(found)))
    return losses


def sigmoid(log_odds: FloatArray) -> FloatArray:
    """Return 1 / (1 + exp(−x)).

    Examples
    --------
    >>> sigmoid(np.array([0.0, -800.0]))
    array([0.5, 0. ])
    """
    with np.errstate(over="ignore"):
        return np.asarray(1.0 / (1.0 + np.exp(-log_odds)))


def attenuated(log_odds: FloatArray, variance: FloatArray) -> FloatArray:
    """Return the mean of 1 / (1 + exp(−x)) for normal x of this mean and variance (MacKay 1992).

    Examples
    --------
    >>> attenuated(np.array([2.0, 2.0]), np.array([0.0, 9.0])).round(3)
    array([0.881, 0.719])
    """
    return sigmoid(log_odds / np.sqrt(1.0 + np.pi / 8.0 * variance))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FactorPosterior(Record):
    """A new model's ability and factors after some labels.

    Parameters
    ----------
    mean : float (1 + r,)
    covariance : float (1 + r, 1 + r)
        Laplace's approximation.

    Examples
    --------
    >>> x = np.column_stack([np.zeros(40), np.ones(40)])
    >>> FactorPosterior.of(x, np.ones(40)).predict(x[:1]) > 0.9
    array([ True])
    """

    mean: FloatArray
    covariance: FloatArray

    @classmethod
    def of(cls, values: FloatArray, outcomes: FloatArray) -> FactorPosterior:
        """Return it from columns (n, 2 + r), log-odds first, and outcomes (n,) between 0 and 1."""
        offset = values[:, 0]
        matrix = values[:, 1:]
        mean = np.zeros(matrix.shape[1])
        curvature = np.eye(len(mean))
        for _ in range(4 * _NEWTON):
            likely = sigmoid(offset + matrix @ mean)
            curvature = (matrix * (likely * (1.0 - likely))[:, None]).T @ matrix + np.eye(len(mean))
            step = np.linalg.solve(curvature, matrix.T @ (outcomes - likely) - mean)
            largest = float(np.abs(step).max(initial=0.0))
            mean = mean + step * min(1.0, 2.0 / max(largest, 1e-300))
            if largest < 1e-8:
                break
        return cls(mean=mean, covariance=np.asarray(np.linalg.inv(curvature)))

    def variances(self, values: FloatArray) -> FloatArray:
        """Return how uncertain the log-odds (n,) of items still are."""
        return np.asarray(np.einsum("ij,jk,ik->i", values[:, 1:], self.covariance, values[:, 1:]))

    def predict(self, values: FloatArray) -> FloatArray:
        """Return the probability (n,) of being right, the uncertainty of the factors included."""
        return attenuated(values[:, 0] + values[:, 1:] @ self.mean, self.variances(values))
