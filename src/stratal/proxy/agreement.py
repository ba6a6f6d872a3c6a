"""Peer agreement: a proxy of a model's accuracy from other models' answers, without labels.

The weight of a model increases with its chance-corrected agreement with the others (Cohen's kappa, pooled
over the other models). Models that are more similar than their accuracies explain are treated as copies,
which share the weight of one model.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from stratal.arrays import NO_DIVISOR, AnyArray, FloatArray, IntArray, Record, array_of, is_null, same_length
from stratal.errors import InputError, check_choice
from stratal.proxy.history import MAX_ITEMS, items_for_fit
from stratal.proxy.proxy import Proxy

# Parts of short texts that the comparison ignores, as in SQuAD (Rajpurkar et al. 2016).
PUNCTUATION = r"[!-/:-@\[-`{-~]"
BLANKS = r"\s+"
ARTICLES = ("a", "an", "the")

# Normalisations of answers before the comparison (`alike=`).
NORMALISATIONS = ("text", "number")

# The last number of an answer, as in evaluations of GSM8K, after commas between thousands were removed.
LAST_NUMBER = r"(-?[0-9]+(?:\.[0-9]+)?)[^0-9]*$"

# The largest weight. Weights are integers because their sums are then equal on every engine.
MAX_WEIGHT = 1_000

# Largest assumed number of plausible answers to an item. Free texts have more different answers in total, but
# the wrong answers to one item coincide on a few.
MAX_CLASSES = 10

# Agreement of two models, corrected for uniform guessing. Up to the first value they are not near, from the
# second value they are, which is a condition for copies. Clones with 4% random answers have .92.
NEARNESS_RANGE = (0.88, 0.91)

# A model is constant if two of its answers, drawn at random, are equal with at least this probability.
CONSTANT_AGREEMENT = 0.99

# Two accurate models agree as often as copies. They are copies only if their kappa exceeds the product of
# their qualities: partly from the first value on, completely from the second. With (0, .1) and (.05, .15),
# models that were fitted to the items would count as copies of each other.
EXCESS_RANGE = (0.1, 0.2)

# Exponent of the quality (the pooled kappa) in the weight: 3 is worse if some models are excellent, 6 on
# imbalanced classes.
WEIGHT_EXPONENT = 4

# A few models can agree by chance and make the same errors, so that a share of 0 or 1 is not certain.
# Therefore 6/(J K) models with the mean share are added to the J models. The number decreases with the number
# of classes K, since wrong answers coincide less often. Measured efficiency relative to a random sample, for
# two models of two classes and clones: .97 with 6, .96 with 4.
PRIOR_STRENGTH = 6

# A model has a weight only if its quality exceeds this multiple of an upper bound of its standard error.
_MIN_STANDARD_ERRORS = 2.0

# Upper limit of estimated accuracies, so that no answer is certain.
_MAX_ACCURACY = 0.999

# Above this probability of agreement by chance, kappa is a quotient of rounding errors.
_MAX_CHANCE = 1.0 - 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PeerWeights(Record):
    """Weights of the agreement of other models.

    Parameters
    ----------
    weights : int (J,)
        From 0 to `MAX_WEIGHT`.
    prior : (int, int)
        Numbers that are added to the numerator and denominator of the share of each row, so that no share is
        0 or 1. The numerator is `MAX_WEIGHT` times the weight of the models that agree, and the denominator
        `MAX_WEIGHT` times the weight of all.
    copies : int
        Number of models that agree with another model more than the accuracies of both explain.
    guessing : int
        Number of models that agree with the others no more than by chance.
    """

    weights: IntArray
    prior: tuple[int, int]
    copies: int
    guessing: int

    def shares(self, codes: IntArray) -> FloatArray:
        """Return the weighted share (N,) of models that agree with the first column of codes (N, 1 + J).

        A row without an answer of a model with positive weight gets the mean share.
        """
        agreeing_weight = (codes[:, 1:] == codes[:, :1]) @ self.weights
        answering_weight = (codes[:, 1:] >= 0) @ self.weights
        numerator = MAX_WEIGHT * agreeing_weight + self.prior[0]
        return np.asarray(numerator / (MAX_WEIGHT * answering_weight + self.prior[1]))

    def note(self, name: str, predicted: str) -> str:
        """Return the note that states how many models have a positive weight."""
        n_used = int(np.count_nonzero(self.weights))
        if not n_used:
            return f"no other model agrees with {predicted!r} more than by chance: {name!r} is not computed"
        reasons = []
        if self.copies:
            reasons.append(f"{self.copies} near copies")
        if self.guessing:
            reasons.append(f"{self.guessing} agree no more than by chance")
        unused = f" ({', '.join(reasons)})" if reasons else ""
        return (
            f"{name!r} is the weighted share of other models that give the same answer as {predicted!r}: "
            f"{n_used} of {len(self.weights)} have a positive weight{unused}"
        )


def peer_agreement(
    predicted: object,
    answers: object,
    *,
    ids: object = None,
    name: str = "peer_agreement",
    alike: str | None = None,
) -> Proxy:
    """Return a proxy of accuracy from other models' answers: the weighted share of equal answers.

    The weight of a model is the fourth power of its chance-corrected agreement with the others. Copies share
    the weight of one model. Models that guess have weight 0. Labels are not used.

    Parameters
    ----------
    predicted : array-like (N,)
        Answers of the evaluated model.
    answers : mapping of name to array-like (N,), or array (N, J)
        Answers of other models to the same items; None or NaN if missing.
    ids : array-like (N,), optional
        Ids of the items. They determine from which items the weights are estimated. Default: row numbers.
    name : str
        Name of the proxy.
    alike : {"text", "number"}, optional
        Compare free texts without case, punctuation, articles and additional blanks, or by their last number.

    Raises
    ------
    InputError
        If the lengths differ, if an answer of the evaluated model is missing, and if no other model agrees
        with the rest more than by chance.

    Examples
    --------
    >>> truth = np.arange(300) % 3
    >>> rng = np.random.default_rng(1)
    >>> peers = {name: np.where(rng.random(300) < 0.8, truth, rng.integers(0, 3, 300)) for name in "abc"}
    >>> predicted = np.where(rng.random(300) < 0.7, truth, rng.integers(0, 3, 300))
    >>> proxy = peer_agreement(predicted, peers)
    >>> bool(proxy.values[predicted == truth].mean() > proxy.values[predicted != truth].mean() + 0.5)
    True
    """
    if isinstance(answers, Mapping):
        columns = list(answers.values())
    else:
        columns = list(np.asarray(answers).T)
    answer_columns = [predicted, *columns]
    if alike is not None:
        check_choice("alike= value", alike, NORMALISATIONS)
        answer_columns = [
            [normalise_answer(answer, alike) for answer in array_of(column).tolist()]
            for column in answer_columns
        ]
    codes = answer_codes(answer_columns)
    is_missing = codes[:, 0] < 0
    if np.any(is_missing):
        position = int(np.argmax(is_missing))
        raise InputError(
            f"an answer of the evaluated model is missing (at position {position})",
            allowed="one answer per item",
        )
    peers = peer_weights(codes[items_for_fit(len(codes), ids)])
    if not np.any(peers.weights):
        raise InputError(
            "no other model agrees with the rest more than by chance",
            given=f"{len(columns)} models",
            allowed="at least one model whose answers agree with correct answers of the others",
            action="Check that equal answers are written in the same way (alike=), or use another proxy.",
        )
    return Proxy(values=peers.shares(codes), name=name)


def normalise_answer(answer: object, normalisation: str) -> Any:
    """Return an answer without the ignored parts of a text (`text`), or its last number (`number`)."""
    if not isinstance(answer, str):
        return answer
    if normalisation == "number":
        match = re.search(LAST_NUMBER, answer.replace(",", ""))
        if match:
            return float(match[1])
        return None
    words = re.sub(BLANKS, " ", re.sub(PUNCTUATION, "", answer.lower())).split(" ")
    return " ".join(word for word in words if word not in (*ARTICLES, ""))


def answer_codes(columns: Iterable[object]) -> IntArray:
    """Return answers (N, J) as integers: equal codes for equal answers, −1 for missing answers."""
    return coded_answers(columns)[0]


def coded_answers(columns: Iterable[object]) -> tuple[IntArray, dict[Any, int]]:
    """Return the codes of `answer_codes`, and the code of each answer that is not missing."""
    code_by_answer: dict[Any, int] = {}
    answers = {f"answers[{index}]": array_of(column).tolist() for index, column in enumerate(columns)}
    same_length(**{name: np.empty(len(entries)) for name, entries in answers.items()})
    codes = []
    for entries in answers.values():
        # Answers are few, and units many: each distinct answer is examined once.
        code_in_column = {}
        for answer in dict.fromkeys(entries):
            # NaN differs from itself.
            if is_null(answer) or answer != answer:
                code_in_column[answer] = -1
            else:
                code_in_column[answer] = code_by_answer.setdefault(answer, len(code_by_answer))
        codes.append(np.fromiter(map(code_in_column.__getitem__, entries), np.int64, len(entries)))
    return np.array(codes, dtype=np.int64).T, code_by_answer


def peer_weights(codes: IntArray) -> PeerWeights:
    """Return the weights of other models from codes (n, 1 + J), with the evaluated model first."""
    if codes.shape[1] < 2:
        raise InputError("there are no other models", action="Name the columns of their answers: answers=….")
    consensus = _consensus(_renumber(codes))
    relative_weights = consensus.weights[1:] * (1.0 - consensus.copied[0, 1:])
    is_guessing = consensus.quality[1:] == 0.0
    scale = MAX_WEIGHT / max(relative_weights.max(), NO_DIVISOR)
    weights = np.rint(relative_weights * scale).astype(np.int64)
    is_copied = (consensus.copied >= 0.5) & ~np.eye(len(consensus.copied), dtype=bool)
    return PeerWeights(
        weights=weights,
        prior=_prior(codes, weights, consensus),
        copies=int(np.count_nonzero(is_copied[1:].any(axis=1) & ~is_guessing)),
        guessing=int(np.count_nonzero(is_guessing)),
    )


def _prior(codes: IntArray, weights: IntArray, consensus: _Consensus) -> tuple[int, int]:
    """Return the numerator and denominator that are added to those of each row's share.

    The denominator decreases with the number of different models.
    """
    total_weight = int(weights.sum())
    if not total_weight:
        return 0, 1
    effective_models = total_weight**2 / float(weights @ consensus.copied[1:, 1:] @ weights)
    n_classes = _class_count(codes)
    # Many clones of the evaluated model and one other model are not more certain than two models. Accurate
    # models agree often too. Therefore one model is added, and the maximum increases with the number of
    # classes, since fewer errors coincide.
    n_different = _different_models(consensus.nearness[1:, 1:], weights > 0)
    effective_models = min(effective_models, (1.0 + n_different) * n_classes / 2.0)
    peer_codes = codes[:, 1:]
    agreements = (peer_codes == codes[:, :1]).sum(axis=0) @ weights
    mean_share = float(agreements / ((peer_codes >= 0).sum(axis=0) @ weights))
    denominator = max(1, round(MAX_WEIGHT * PRIOR_STRENGTH / n_classes * total_weight / effective_models**2))
    return round(denominator * mean_share), denominator


def _different_models(nearness: FloatArray, has_weight: AnyArray) -> float:
    """Return the number of models with a positive weight, a mask (J,); near models (J, J) count as one."""
    return float(np.sum(1.0 / nearness[np.ix_(has_weight, has_weight)].sum(axis=1)))


def estimate_accuracies(codes: IntArray, n_items: int = MAX_ITEMS) -> tuple[FloatArray, FloatArray]:
    """Return the accuracy of each model (k,) and its share of the votes (k,), from agreement alone.

    They are estimated from the first `n_items` rows of codes (N, k), as those of independent models with the
    same mean agreement. The probability of an answer is the share of the votes for it: `answer_shares`.
    """
    consensus = _consensus(_renumber(codes[:n_items]))
    quality = consensus.quality
    # Copies count as one model. The kappa of two independent models is the product of their chance-corrected
    # accuracies, so that quality is a model's corrected accuracy times the mean of these.
    mean_weights = np.where(quality > 0.0, 1.0 / consensus.copied.sum(axis=1), 0.0)
    mean_quality = float(mean_weights @ quality / max(mean_weights.sum(), NO_DIVISOR))
    corrected_accuracies = np.minimum(quality / math.sqrt(max(mean_quality, NO_DIVISOR)), 1.0)
    n_classes = _class_count(codes)
    accuracies = np.minimum((1.0 + (n_classes - 1.0) * corrected_accuracies) / n_classes, _MAX_ACCURACY)
    weights = consensus.weights
    if not np.any(weights):
        weights = np.ones(len(weights))
    return accuracies, weights / weights.sum()


def answer_shares(codes: IntArray, shares: FloatArray) -> FloatArray:
    """Return, for each answer in codes (N, k), the total share of the models that give it to the same item.

    `shares` (k,) are those of the models, with the sum 1.
    """
    # The codes are −1 (missing) to the maximum.
    n_answers = int(codes.max()) + 2
    if n_answers > codes.shape[1]:
        return np.column_stack([(codes == column[:, None]) @ shares for column in codes.T])
    # Answers are fewer than models: the comparison with each possible answer is faster than that of models.
    shares_by_answer = np.column_stack(
        [(codes == answer).astype(np.float64) @ shares for answer in range(-1, n_answers - 1)]
    )
    return np.take_along_axis(shares_by_answer, codes + 1, axis=1)


def _renumber(codes: IntArray) -> IntArray:
    """Return codes numbered by first occurrence, so that they do not depend on the engine."""
    _, first_positions, indices = np.unique(codes, return_index=True, return_inverse=True)
    has_missing = codes.min() < 0
    # The smallest code, −1 for missing answers, is not changed.
    order = np.argsort(first_positions[1:] if has_missing else first_positions)
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.arange(len(order))
    if has_missing:
        numbers = np.concatenate([[-1], numbers])
    return np.asarray(numbers[indices.reshape(codes.shape)])


def _class_count(codes: IntArray) -> float:
    """Return the number of plausible answers to an item, 2 to `MAX_CLASSES`."""
    return float(np.clip(codes.max() + 1, 2, MAX_CLASSES))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Consensus:
    """Agreement of m models.

    Parameters
    ----------
    quality : float (m,)
        Pooled kappa with the models that are not near; 0 if it is not above chance.
    nearness : float (m, m)
        1 for pairs that agree as often as copies, 0 for others, with a linear transition.
    copied : float (m, m)
        1 for near pairs that agree more often than their qualities explain, 0 for others, with a linear
        transition.
    """

    quality: FloatArray
    nearness: FloatArray
    copied: FloatArray

    @property
    def weights(self) -> FloatArray:
        """Weight (m,) of the answers of each model; copies share one weight."""
        return np.asarray(self.quality**WEIGHT_EXPONENT / self.copied.sum(axis=1))


def _consensus(codes: IntArray) -> _Consensus:
    """Return the agreement of models from their answers (n, m)."""
    agreement, n_common_items = _agreements(codes)
    chance = _chance_agreements(codes)
    uniform_chance = 1.0 / _class_count(codes)
    nearness = _ramp((agreement - uniform_chance) / (1.0 - uniform_chance), NEARNESS_RANGE)
    # Constant models are not evidence about other models. Models that guess are evidence, since clones of a
    # guessing model agree only with each other.
    is_varied = np.diag(chance) < CONSTANT_AGREEMENT
    pairs = np.ix_(is_varied, is_varied)
    quality = np.zeros(len(agreement))
    quality[is_varied] = _qualities(agreement[pairs], chance[pairs], n_common_items[pairs], nearness[pairs])
    relative_quality = quality / max(quality.max(initial=0.0), NO_DIVISOR)
    kappa = np.divide(
        agreement - chance, 1.0 - chance, out=np.ones_like(agreement), where=chance < _MAX_CHANCE
    )
    copied = nearness * _ramp(kappa - np.outer(relative_quality, relative_quality), EXCESS_RANGE)
    np.fill_diagonal(copied, 1.0)
    return _Consensus(quality=quality, nearness=nearness, copied=copied)


def _ramp(values: FloatArray, ends: tuple[float, float]) -> FloatArray:
    """Return 0 up to the first end, 1 from the second and linear between them, 1 on the diagonal (m, m)."""
    ramp = np.clip((values - ends[0]) / (ends[1] - ends[0]), 0.0, 1.0)
    np.fill_diagonal(ramp, 1.0)
    return np.asarray(ramp)


def _qualities(
    agreement: FloatArray, chance: FloatArray, n_common_items: FloatArray, nearness: FloatArray
) -> FloatArray:
    """Return the kappa (m,) of each model with the models that are not near it, 0 if it is not above chance.

    Models that are near each other count once. A model that is near all others is compared with all of them.
    The arguments (m, m) are those of pairs of models.
    """
    has_items = n_common_items > 0
    pair_weights = (1.0 - nearness) / nearness.sum(axis=1) * has_items
    is_near_all = ~np.any(pair_weights, axis=1)
    pair_weights[is_near_all] = has_items[is_near_all]
    np.fill_diagonal(pair_weights, 0.0)
    max_excess = np.maximum((pair_weights * (1.0 - chance)).sum(axis=1), NO_DIVISOR)
    quality = (pair_weights * (agreement - chance)).sum(axis=1) / max_excess
    # The other models agree where they are correct, so that these agreements are correlated. The standard
    # error of a mean is at most the mean of the standard errors.
    pair_errors = np.sqrt(chance * (1.0 - chance) / np.maximum(n_common_items, 1.0))
    max_errors = (pair_weights * pair_errors).sum(axis=1) / max_excess
    return np.asarray(np.where(quality > _MIN_STANDARD_ERRORS * max_errors, quality, 0.0))


def _agreements(codes: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the share of equal answers and the number of common items of pairs of models, each (m, m)."""
    # Numbers of items are exact in single precision.
    is_present = (codes >= 0).astype(np.float32)
    n_common_items = (is_present.T @ is_present).astype(np.float64)
    model_codes = np.ascontiguousarray(codes.T.astype(np.int32))
    n_equal = np.array(
        [np.count_nonzero((model_codes == column) & (column >= 0), axis=1) for column in model_codes]
    )
    return n_equal / np.maximum(n_common_items, 1.0), n_common_items


def _chance_agreements(codes: IntArray) -> FloatArray:
    """Return the agreement by chance (m, m) from the frequencies of each model's answers."""
    item, model = np.nonzero(codes >= 0)
    entries = (np.ones(len(item)), (model, codes[item, model]))
    counts = scipy.sparse.csr_matrix(entries, shape=(codes.shape[1], int(codes.max()) + 1))
    frequencies = counts.multiply(1.0 / np.maximum(counts.sum(axis=1), 1.0)).tocsr()
    return np.asarray((frequencies @ frequencies.T).todense())
