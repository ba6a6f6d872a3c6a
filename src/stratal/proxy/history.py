"""Factor model of earlier models' results by item, and its predictions for a new model.

Model i is correct on item j with log-odds b_j + a_i + u_i·v_j. The difficulties b_j and factors v_j of the
items are fitted once. The ability a and factors u of a new model are estimated from its labels; their prior
is the distribution of the earlier models.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stratal.arrays import NO_DIVISOR, AnyArray, FloatArray, IntArray, Record, array_of, same_length
from stratal.errors import InputError
from stratal.randomness import KeyArray, id_array, id_texts, keys_of_ids, keys_of_rows

# Name of the proxy and of the learner, and prefix of the columns of factors.
HISTORY = "history"


def history_columns(features: Sequence[str]) -> tuple[str, ...]:
    """Return the features of a population that are columns of a history; log-odds are first."""
    return tuple(name for name in features if name.startswith(f"{HISTORY}_"))


# Number of items from which the weights of models and the factors of a history are estimated. The standard
# error of a rate of agreement is then at most .008.
MAX_ITEMS = 4_096

# Separates the random numbers that select these items from those of draws.
KEY_PURPOSE = "answers:"

# Numbers of factors that are compared. With 0 factors, items differ only in difficulty.
RANKS = (0, 1, 2, 3, 5, 8, 12, 20)

# Smaller tables leave too few results for the choice of the rank by left-out models.
MIN_MODELS = 4
MIN_ITEMS = 20

# Number of items for the choice of the rank, which then takes at most half a minute for hundreds of models.
RANK_CHOICE_ITEMS = 2_048

# The choice stops after this number of consecutive ranks with a larger loss: more factors fit only noise.
MAX_WORSE_RANKS = 3

# Number of labels of a left-out model from which its other results are predicted, at most half of the items.
LEFT_OUT_LABELS = 100

# With fewer models than this, each model is left out once, in five groups; otherwise a tenth of the models is
# left out once.
MIN_MODELS_FOR_STRIDE = 60
N_GROUPS = 5
LEFT_OUT_STRIDE = 10

# Factors per model of the fit: at most one third, so that the factors are determined.
MODELS_PER_FACTOR = 3

# Variance of the prior relative to that of the earlier models, since a new model may be better than all of
# them.
PRIOR_VARIANCE_RATIO = 1.5

# Predicted probabilities of results are limited, so that one wrong certain prediction does not decide a rank.
MIN_PROBABILITY = 1e-4

# Number of steps of the fit. A step replaces the curvature of the likelihood by its upper bound, so that the
# likelihood increases (Böhning & Lindsay 1988).
_FIT_STEPS = 60

# Newton steps for the factors of one item, a logistic regression that starts at the prior mean.
_NEWTON_STEPS = 8

# Newton steps for the ability and factors of a new model.
_POSTERIOR_STEPS = 32

# Largest change in one Newton step, which prevents divergence.
_MAX_STEP = 2.0

# Decimal digits of factors; equal on machines that add numbers in a different order.
_DIGITS = 4

# Precision of the prior of the factors of items, which determines their scale, and precision of the prior of
# difficulties (standard deviation 1.8).
_ITEM_PRECISION = 1.0
_DIFFICULTY_PRECISION = 0.3

# Number of results (items × models) per batch, which fits in the cache of a processor core.
_BATCH_RESULTS = 2**17

# Newton's method stops at smaller steps, which change no digit that is stored.
_MIN_ITEM_STEP = 1e-7
_MIN_POSTERIOR_STEP = 1e-8

# Added to the variance of each factor, since earlier models may have equal factors.
_VARIANCE_FLOOR = 1e-3

# Code of an entry that is neither a result nor missing.
_INVALID = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class History(Record):
    """Predictions and factors of items from earlier models' results.

    Parameters
    ----------
    ids : (K,)
        Ids of the items as text.
    values : float (K, 2 + r)
        Columns: predicted accuracy of a new model without labels; log-odds at the mean of the earlier models;
        factors, for which the prior weights of a new model are standard normal.
    models : tuple of str (M,)
        Names of the earlier models.
    losses : mapping of int to float
        Log loss of the results of left-out models by number of factors. The rank has the smallest loss.
    """

    ids: AnyArray
    values: FloatArray
    models: tuple[str, ...]
    losses: Mapping[int, float]

    @property
    def rank(self) -> int:
        """Number of factors in addition to difficulty and ability."""
        return int(self.values.shape[1]) - 3

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of `values`: the proxy and the features."""
        return (HISTORY, *(f"{HISTORY}_{index}" for index in range(self.values.shape[1] - 1)))

    @property
    def values_of_unknown_item(self) -> FloatArray:
        """Values (2 + r,) of an item without past results: the mean of the items, without factors."""
        centre = np.append(self.values[:, :3].mean(axis=0), np.zeros(self.rank))
        return np.asarray(centre.round(_DIGITS))

    def values_of(self, ids: object) -> FloatArray:
        """Return the values (N, 2 + r) of items by their ids (N,)."""
        row_by_id = {text: row for row, text in enumerate(self.ids.tolist())}
        rows = np.array([row_by_id.get(text, -1) for text in id_texts(id_array(ids))], np.int64)
        return np.where(rows[:, None] < 0, self.values_of_unknown_item, self.values[rows])

    def count_items(self, ids: object) -> int:
        """Return the number of ids (N,) that have past results."""
        return len(set(self.ids.tolist()) & set(id_texts(id_array(ids))))

    def note(self, n_items: int, size: int) -> str:
        """Return the note on a population of `size` items, of which `n_items` (not 0) have past results."""
        if not n_items:
            raise InputError(
                "no item of the population has past results",
                given=f"results of '{self.ids[0]}', …",
                allowed="results of the same items, joined by id",
                action="Write ids in the same way in both files, or name another column of ids: id= (--id).",
            )
        missing = ""
        if n_items < size:
            missing = f"; {size - n_items:,} of {size:,} items have no results"
        return (
            f"{HISTORY!r} is the accuracy predicted from results of {len(self.models)} earlier models "
            f"({self.rank} factor{'s' * (self.rank != 1)}, chosen by cross-validation over models){missing}"
        )

    def write(self, path: str | Path) -> Path:
        """Write a Parquet file, which `history=` and `--history` accept instead of the results."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = {"id": pa.array(self.ids.tolist(), pa.string())}
        columns |= dict(zip(self.names, self.values.T, strict=True))
        losses = {str(rank): loss for rank, loss in self.losses.items()}
        metadata = {"models": list(self.models), "losses": losses}
        table = pa.table(columns).replace_schema_metadata({"stratal-history": json.dumps(metadata)})
        pq.write_table(table, str(path))
        return Path(path)

    @classmethod
    def read(cls, path: str | Path) -> History | None:
        """Read a file that `write` wrote; return None for any other file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not Path(path).is_file() or Path(path).suffix.lower() != ".parquet":
            return None
        try:
            metadata_text = (pq.read_schema(str(path)).metadata or {}).get(b"stratal-history")
        except (OSError, pa.ArrowException):
            # The reader of past results, which is tried next, raises the error.
            return None
        if metadata_text is None:
            return None
        table = pq.read_table(str(path))
        metadata = json.loads(metadata_text)
        return cls(
            ids=np.array(table["id"].to_pylist(), dtype=np.str_),
            values=np.column_stack([column.to_numpy() for column in table.columns[1:]]),
            models=tuple(metadata["models"]),
            losses={int(rank): float(loss) for rank, loss in metadata["losses"].items()},
        )


def items_for_fit(size: int, ids: object = None) -> IntArray:
    """Return the rows of the `MAX_ITEMS` items with the smallest permanent random numbers."""
    keys: KeyArray
    if ids is None:
        keys = keys_of_rows(slice(0, size), 0)
    else:
        keys = keys_of_ids(id_texts(id_array(ids)), 0, KEY_PURPOSE)
    same_length(answers=np.empty(size), ids=keys)
    return np.argsort(keys, kind="stable")[:MAX_ITEMS]


def fit_history(
    past: object, *, ids: object = None, rank: int | None = None, names: Sequence[str] | None = None
) -> History:
    """Fit the factor model to earlier models' results.

    Parameters
    ----------
    past : mapping of model to array-like (N,), or array (N, M)
        1 or true for correct, 0 or false for wrong, NaN, None or −1 for no result.
    ids : array-like (N,), optional
        Ids of the items. Default: row numbers.
    rank : int, optional
        Number r of factors. Default: the number with the smallest loss for left-out models.
    names : sequence of str (M,), optional
        Names of the models if `past` is an array. Default: numbers.

    Raises
    ------
    InputError
        If results are neither correct nor wrong, and for fewer than four models or twenty items.

    Notes
    -----
    A logistic factor model as in item response theory (Reckase 2009). It is fitted by penalised likelihood on
    the 4,096 items with the smallest random numbers. The factors of every item are then fitted to its
    results.

    Examples
    --------
    >>> past = np.random.default_rng(0).random((50, 8)) < 0.7
    >>> fit_history(past, rank=1).values.shape
    (50, 4)
    """
    if isinstance(past, Mapping):
        columns = {str(name): _checked_results(array_of(column)[..., None]) for name, column in past.items()}
        same_length(**columns)
        past = np.column_stack(list(columns.values()))
        names = list(columns)
    results = _checked_results(past)
    size, n_models = results.shape
    if n_models < MIN_MODELS or size < MIN_ITEMS:
        raise InputError(
            "there are too few past results",
            given=f"{n_models} models on {size} items",
            allowed=f"at least {MIN_MODELS} models, {MIN_ITEMS} items",
        )
    texts = np.array(id_texts(np.arange(size) if ids is None else id_array(ids)), dtype=np.str_)
    same_length(past=results[:, 0], ids=texts)
    fitted_results = results[items_for_fit(size, None if ids is None else texts)]
    if names is None:
        names = [str(model) for model in range(n_models)]
    losses: dict[int, float] = {}
    if rank is None:
        losses = left_out_losses(fitted_results[:RANK_CHOICE_ITEMS], RANKS)
        rank = min(losses, key=lambda candidate: losses[candidate])
    values = _item_values(results, *_fit_models(fitted_results, rank))
    return History(ids=texts, values=values.round(_DIGITS), models=tuple(names), losses=losses)


def _checked_results(past: object) -> IntArray:
    """Return results (N, M): 1 correct, 0 wrong, −1 missing."""
    table = np.asarray(past)
    if table.ndim != 2:
        raise InputError("past results must be a table", given=f"shape {table.shape}", allowed="(N, M)")
    if table.dtype == np.bool_:
        return np.asarray(table.astype(np.int8))
    if table.dtype == np.int8:
        # Results that were read from a file have this type.
        results = table
    else:
        results = np.empty(table.shape, np.int8)
        for rows in _batches(table):
            results[rows] = _integer_results(table[rows])
    if results.size and (results.min() < -1 or results.max() > 1):
        raise InputError(
            "a past result is neither correct nor wrong",
            allowed="1 or 0, true or false; empty if unknown",
        )
    return results


def _integer_results(table: AnyArray) -> IntArray:
    """Return results as integers: −1 if missing, `_INVALID` for other values."""
    try:
        numbers = np.where(table == None, np.nan, table).astype(np.float64)  # noqa: E711
    except (TypeError, ValueError):
        return np.full(table.shape, _INVALID, np.int8)
    numbers = np.where(np.isnan(numbers), -1.0, numbers)
    is_valid = np.isin(numbers, (-1.0, 0.0, 1.0))
    return np.where(is_valid, numbers, float(_INVALID)).astype(np.int8)


def _batches(results: AnyArray) -> Iterator[slice]:
    """Yield the rows of the batches of results (n, M)."""
    rows = max(1, _BATCH_RESULTS // max(results.shape[1], 1))
    return (slice(start, start + rows) for start in range(0, len(results), rows))


def _item_values(results: IntArray, models: FloatArray, difficulty: float) -> FloatArray:
    """Return the values (n, 2 + r) of items, the columns of `History.values`, from their results (n, M).

    `models` (M, 1 + r) and the mean `difficulty` are the fit of `_fit_models`.
    """
    n_parameters = models.shape[1]
    # The ability and factors of a new model are mean + root @ x, where x is standard normal.
    mean = models.mean(axis=0)
    covariance = np.cov(models.T).reshape(n_parameters, n_parameters) * PRIOR_VARIANCE_RATIO
    root = np.linalg.cholesky(covariance + _VARIANCE_FLOOR * np.eye(n_parameters))
    values = np.empty((len(results), 2 + n_parameters))
    for rows in _batches(results):
        items = _fit_items(results[rows], models, difficulty)
        loadings = np.column_stack([np.ones(len(items)), items[:, 1:]])
        log_odds = items[:, 0] + loadings @ mean
        factors = loadings @ root
        accuracy = attenuated(log_odds, np.sum(factors**2, axis=1))
        values[rows] = np.column_stack([accuracy, log_odds, factors])
    return values


def _fit_items(results: IntArray, models: FloatArray, difficulty: float) -> FloatArray:
    """Return the difficulty and factors (n, 1 + r) of items with results (n, M), by Newton's method.

    `models` (M, 1 + r) are the ability and factors of the models; `difficulty` is the mean of the prior.
    """
    n_parameters = models.shape[1]
    matrix = np.column_stack([np.ones(len(models)), models[:, 1:]])
    precision = np.append(_DIFFICULTY_PRECISION, np.full(n_parameters - 1, _ITEM_PRECISION))
    prior = np.append(difficulty, np.zeros(n_parameters - 1))
    upper, lower = np.triu_indices(n_parameters)
    # Single precision is sufficient for the curvature, which determines the length of a step. The gradient
    # determines where the steps end.
    products = (matrix[:, upper] * matrix[:, lower]).astype(np.float32)
    correct = results.astype(np.float64)
    has_result = (results >= 0).astype(np.float64)
    items = np.tile(prior, (len(results), 1))
    curvature = np.empty((len(results), n_parameters, n_parameters))
    for _ in range(_NEWTON_STEPS):
        probabilities = sigmoid(items @ matrix.T + models[:, 0])
        gradient = ((correct - probabilities) * has_result) @ matrix - (items - prior) * precision
        variances = probabilities * (1.0 - probabilities) * has_result
        curvature_terms = variances.astype(np.float32) @ products
        curvature[:, upper, lower] = curvature_terms
        curvature[:, lower, upper] = curvature_terms
        step = np.linalg.solve(curvature + np.diag(precision), gradient[:, :, None])[:, :, 0]
        items += np.clip(step, -_MAX_STEP, _MAX_STEP)
        if np.abs(step).max() < _MIN_ITEM_STEP:
            break
    return items


def _fit_models(results: IntArray, rank: int) -> tuple[FloatArray, float]:
    """Return the ability and factors of models (M, 1 + r) and the mean difficulty, from results (n, M)."""
    has_result = (results >= 0).astype(np.float64)
    correct = results * has_result
    # One correct and one wrong result are added, so that the log-odds are finite.
    rates = (correct.sum(axis=1) + 1.0) / (has_result.sum(axis=1) + 2.0)
    items = np.zeros((len(results), 1 + rank))
    items[:, 0] = np.log(rates / (1.0 - rates))
    centred_results = (correct - rates[:, None]) * has_result
    eigenvectors = np.linalg.eigh(centred_results.T @ centred_results)[1][:, ::-1][:, :rank]
    # The sign of an eigenvector is arbitrary; this one is the same on all machines.
    eigenvectors = eigenvectors * np.where(np.sum(eigenvectors**3, axis=0) < 0, -1.0, 1.0)
    models = np.column_stack([np.zeros(results.shape[1]), eigenvectors * np.sqrt(results.shape[1])])
    precision = np.append(_DIFFICULTY_PRECISION, np.full(rank, _ITEM_PRECISION))

    def residuals(rows: slice) -> FloatArray:
        log_odds = items[rows, :1] + models[:, 0] + items[rows, 1:] @ models[:, 1:].T
        return np.asarray((correct[rows] - sigmoid(log_odds)) * has_result[rows])

    # The upper bound of the curvature is a quarter of that of least squares.
    for _ in range(_FIT_STEPS):
        matrix = np.column_stack([np.ones(len(models)), models[:, 1:]])
        prior = np.append(items[:, 0].mean(), np.zeros(rank))
        gradient = np.vstack([residuals(rows) @ matrix for rows in _batches(results)])
        gradient = gradient - (items - prior) * precision
        items = items + gradient @ np.linalg.inv(matrix.T @ matrix / 4.0 + np.diag(precision))
        matrix = np.column_stack([np.ones(len(items)), items[:, 1:]])
        gradient = sum(residuals(rows).T @ matrix[rows] for rows in _batches(results)) - models
        models = models + gradient @ np.linalg.inv(matrix.T @ matrix / 4.0 + np.eye(1 + rank))
    return models, float(items[:, 0].mean())


def left_out_losses(results: IntArray, ranks: Sequence[int]) -> dict[int, float]:
    """Return the mean log loss of left-out models by number of factors.

    The results (n, M) are in random order: the first items are the labels of a left-out model, and its
    results on the other items are predicted.
    """
    n_models = results.shape[1]
    accuracy_order = np.argsort(-np.where(results >= 0, results, 0).mean(axis=0), kind="stable")
    # Every group of left-out models contains models of all accuracies.
    if n_models < MIN_MODELS_FOR_STRIDE:
        groups = [accuracy_order[start::N_GROUPS] for start in range(N_GROUPS)]
    else:
        groups = [accuracy_order[::LEFT_OUT_STRIDE]]
    max_rank = (n_models - max(map(len, groups))) // MODELS_PER_FACTOR
    losses: dict[int, float] = {}
    for rank in ranks:
        if rank > max_rank or _ranks_since_best(losses) >= MAX_WORSE_RANKS:
            break
        group_losses = [_prediction_losses(results, group, rank) for group in groups]
        losses[rank] = float(np.mean(np.concatenate(group_losses)))
    return losses


def _ranks_since_best(losses: Mapping[int, float]) -> int:
    """Return the number of ranks after the one with the smallest loss."""
    if not losses:
        return 0
    values = list(losses.values())
    return len(values) - 1 - values.index(min(values))


def _prediction_losses(results: IntArray, left_out: IntArray, rank: int) -> FloatArray:
    """Return the log losses of the results of the left-out models, predicted from the fit to the others."""
    others = np.delete(results, left_out, axis=1)
    values = _item_values(others, *_fit_models(others, rank))
    n_labels = min(LEFT_OUT_LABELS, len(results) // 2)
    losses = []
    for model_results in results[:, left_out].T:
        has_label = model_results[:n_labels] >= 0
        predicted_items = np.flatnonzero(model_results[n_labels:] >= 0) + n_labels
        labels = model_results[:n_labels][has_label].astype(np.float64)
        posterior = FactorPosterior.of(values[:n_labels, 1:][has_label], labels)
        probabilities = posterior.predict(values[predicted_items, 1:])
        probabilities = np.clip(probabilities, MIN_PROBABILITY, 1.0 - MIN_PROBABILITY)
        is_correct = model_results[predicted_items] == 1
        losses.append(-np.log(np.where(is_correct, probabilities, 1.0 - probabilities)))
    return np.concatenate(losses)


def sigmoid(log_odds: FloatArray) -> FloatArray:
    """Return 1 / (1 + exp(−x))."""
    with np.errstate(over="ignore"):
        return np.asarray(1.0 / (1.0 + np.exp(-log_odds)))


def attenuated(log_odds: FloatArray, variance: FloatArray) -> FloatArray:
    """Return the mean of 1 / (1 + exp(−x)) for normal x of this mean and variance (MacKay 1992)."""
    return sigmoid(log_odds / np.sqrt(1.0 + np.pi / 8.0 * variance))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FactorPosterior(Record):
    """Posterior distribution of the ability and factors of a new model.

    Parameters
    ----------
    mean : float (1 + r,)
    covariance : float (1 + r, 1 + r)
        Laplace approximation.
    """

    mean: FloatArray
    covariance: FloatArray

    @classmethod
    def of(cls, values: FloatArray, outcomes: FloatArray) -> FactorPosterior:
        """Return the posterior from columns (n, 2 + r), log-odds first, and outcomes (n,) between 0 and 1."""
        offset = values[:, 0]
        matrix = values[:, 1:]
        mean = np.zeros(matrix.shape[1])
        curvature = np.eye(len(mean))
        for _ in range(_POSTERIOR_STEPS):
            probabilities = sigmoid(offset + matrix @ mean)
            variances = probabilities * (1.0 - probabilities)
            curvature = (matrix * variances[:, None]).T @ matrix + np.eye(len(mean))
            step = np.linalg.solve(curvature, matrix.T @ (outcomes - probabilities) - mean)
            largest = float(np.abs(step).max(initial=0.0))
            mean = mean + step * min(1.0, _MAX_STEP / max(largest, NO_DIVISOR))
            if largest < _MIN_POSTERIOR_STEP:
                break
        return cls(mean=mean, covariance=np.asarray(np.linalg.inv(curvature)))

    def variances(self, values: FloatArray) -> FloatArray:
        """Return the posterior variances of the log-odds (n,) of items."""
        return np.asarray(np.einsum("ij,jk,ik->i", values[:, 1:], self.covariance, values[:, 1:]))

    def predict(self, values: FloatArray) -> FloatArray:
        """Return the probabilities (n,) of correct results, averaged over the posterior of the factors."""
        return attenuated(values[:, 0] + values[:, 1:] @ self.mean, self.variances(values))
