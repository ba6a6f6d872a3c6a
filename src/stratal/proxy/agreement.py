"""Agreement of other models' answers with a model's: a proxy of its accuracy that needs no label.

Models whose answers agree with many others beyond chance are taken to be accurate (Cohen's kappa, pooled over
the other models). Near copies that their accuracies do not explain share the weight of one model.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from stratal.arrays import AnyArray, FloatArray, IntArray, Record, array_of, is_null, same_length
from stratal.errors import InputError, refuse_unknown
from stratal.proxy.history import MOST_ITEMS, chosen_items
from stratal.proxy.proxy import Proxy

# What does not matter in a short text, by SQuAD's rule (Rajpurkar et al. 2016).
PUNCTUATION = r"[!-/:-@\[-`{-~]"
BLANKS = r"\s+"
ARTICLES = ("a", "an", "the")

# Ways to write answers alike before they are compared.
ALIKE = ("text", "number")

# The answer of a calculation, as evaluations of GSM8K read it; thousands have lost their commas.
LAST_NUMBER = r"(-?[0-9]+(?:\.[0-9]+)?)[^0-9]*$"

# The largest weight: whole numbers add up to the same share on every engine.
SCALE = 1_000

# Wrong answers of free text coincide on an item's few plausible ones, however many there are in all.
MOST_CLASSES = 10

# Two models may be copies if their agreement, corrected for uniform guessing, is at least the second value,
# and cannot be below the first. Clones with 4 % of their answers drawn at random agree to .92.
NEARNESS = (0.88, 0.91)

# A model always gives one class if two random answers of it are equal with at least this probability.
CONSTANT = 0.99

# Two accurate models are as near as copies. They are copies only if their kappa exceeds the product of their
# qualities by more than the first value, and in full from the second. Excesses of (0, .1) and (.05, .15) take
# models that were fitted to the items for copies of each other.
EXCESS = (0.1, 0.2)

# The weight is quality to this power: 3 is worse where some models are excellent, 6 on imbalanced classes.
POWER = 4

# Few models agree by chance and make the same errors, so that a share of 0 or 1 is not certain: to J models
# 6/(J K) are added that have the mean share. Wrong answers coincide the more often, the fewer the K classes:
# two models of two classes and clones were worth .97 of a random sample with 6, .96 with 4.
FEW_MODELS = 6

# A model counts only if its quality exceeds this many times an upper bound of its standard error.
_SIGNIFICANT = 2.0

# Estimated accuracies are at most as high, so that no model is certainly right.
_MOST_ACCURATE = 0.999


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PeerWeights(Record):
    """What each other model's agreement counts for.

    Parameters
    ----------
    weights : int (J,)
        From 0 to `SCALE`.
    prior : (int, int)
        What is added to `SCALE` times the weight of a row's agreements, and of its answers.
    copies : int
        Models whose answers are nearly another's, more than the accuracy of both explains.
    guessing : int
        Models that agree with the others no more than chance.
    """

    weights: IntArray
    prior: tuple[int, int]
    copies: int
    guessing: int

    def shares(self, codes: IntArray) -> FloatArray:
        """Return the share (N,) of weight that gives the first column's answer in each row of (N, 1 + J).

        A row in which no model that counts has an answer gets the mean share.
        """
        agreed = (codes[:, 1:] == codes[:, :1]) @ self.weights
        present = (codes[:, 1:] >= 0) @ self.weights
        return np.asarray((SCALE * agreed + self.prior[0]) / (SCALE * present + self.prior[1]))

    def note(self, name: str, predicted: str) -> str:
        """Return what was made of how many models."""
        used = int(np.count_nonzero(self.weights))
        if not used:
            return f"no other model agrees with {predicted!r} more than chance: {name!r} is not made"
        few = [f"{self.copies} nearly copies"] if self.copies else []
        few += [f"{self.guessing} no better than chance"] if self.guessing else []
        others = f" ({', '.join(few)})" if few else ""
        return (
            f"{name!r} is the weighted share of other models that answer as {predicted!r}: {used} of "
            f"{len(self.weights)} count{others}"
        )


def peer_agreement(
    predicted: Any, answers: Any, *, ids: Any = None, name: str = "peer_agreement", alike: str | None = None
) -> Proxy:
    """Return the proxy of accuracy that other models' answers give: the weighted share of equal answers.

    A model's weight is the fourth power of its chance-corrected agreement with the others. Copies share the
    weight of one model, and models that guess have none. No label is used.

    Parameters
    ----------
    predicted : array-like (N,)
        The evaluated model's answers.
    answers : mapping of name to array-like (N,), or array (N, J)
        Other models' answers to the same items; None or NaN where there is none.
    ids : array-like (N,), optional
        Ids of the items, by which those are chosen that the weights come from; by row if left out.
    name : str
        Name of the proxy.
    alike : {"text", "number"}, optional
        Compare free texts without case, punctuation, articles and extra blanks, or by the last number.

    Raises
    ------
    InputError
        For arrays that do not fit, a missing answer of the evaluated model, or if no other model agrees with
        the rest more than chance.

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
    given = [predicted, *columns]
    if alike is not None:
        refuse_unknown("way to write answers alike", alike, ALIKE)
        given = [[written_alike(one, alike) for one in array_of(column).tolist()] for column in given]
    codes = answer_codes(given)
    if np.any(codes[:, 0] < 0):
        where = f"at position {int(np.argmax(codes[:, 0] < 0))}"
        raise InputError(f"an answer of the evaluated model is missing ({where})", allowed="an answer each")
    found = peer_weights(codes[chosen_items(len(codes), ids)])
    if not np.any(found.weights):
        raise InputError(
            "no other model agrees with the rest more than chance",
            given=f"{len(columns)} models",
            allowed="at least one that answers as the others do where they are right",
            action="Check that answers are written alike, or use another proxy.",
        )
    return Proxy(values=found.shares(codes), name=name)


def written_alike(answer: Any, kind: str) -> Any:
    """Return an answer without what does not matter (`text`), or the last number in it (`number`).

    Examples
    --------
    >>> written_alike("The  Eiffel Tower!", "text"), written_alike("so 1,250 in all.", "number")
    ('eiffel tower', 1250.0)
    """
    if not isinstance(answer, str):
        return answer
    if kind == "number":
        found = re.search(LAST_NUMBER, answer.replace(",", ""))
        return float(found[1]) if found else None
    words = re.sub(BLANKS, " ", re.sub(PUNCTUATION, "", answer.lower())).split(" ")
    return " ".join(word for word in words if word not in (*ARTICLES, ""))


def answer_codes(columns: Iterable[Any]) -> IntArray:
    """Return answers (N, J) as numbers that are equal where the answers are, −1 where there is none.

    Examples
    --------
    >>> answer_codes([["a", "b"], ["b", None]]).tolist()
    [[0, 1], [1, -1]]
    """
    known: dict[Any, int] = {}
    found = {f"answers[{at}]": array_of(column).tolist() for at, column in enumerate(columns)}
    same_length(**{name: np.empty(len(entries)) for name, entries in found.items()})
    return np.array(
        [
            [-1 if is_null(one) or one != one else known.setdefault(one, len(known)) for one in entries]
            for entries in found.values()
        ],
        dtype=np.int64,
    ).T


def peer_weights(codes: IntArray) -> PeerWeights:
    """Return the weights of other models from answers to some items.

    Parameters
    ----------
    codes : int (n, 1 + J)
        Equal where answers are, −1 where there is none; the evaluated model's first.

    Examples
    --------
    >>> peer_weights(np.zeros((50, 3), np.int64)).weights
    array([0, 0])
    """
    if codes.shape[1] < 2:
        raise InputError("there are no other models", action="Name the columns of their answers: answers=….")
    consensus = _consensus(_renumbered(codes))
    weights = consensus.weights[1:] * (1.0 - consensus.copied[0, 1:])
    is_guessing = consensus.quality[1:] == 0.0
    whole = np.rint(weights * (SCALE / max(weights.max(), 1e-300))).astype(np.int64)
    is_copied = (consensus.copied >= 0.5) & ~np.eye(len(consensus.copied), dtype=bool)
    return PeerWeights(
        weights=whole,
        prior=_prior(codes, whole, consensus),
        copies=int(np.count_nonzero(is_copied[1:].any(axis=1) & ~is_guessing)),
        guessing=int(np.count_nonzero(is_guessing)),
    )


def _prior(codes: IntArray, weights: IntArray, consensus: _Consensus) -> tuple[int, int]:
    """Return the share that each row's share is mixed with, as a numerator and a denominator.

    The fewer different models there are, the larger is its weight.
    """
    total = int(weights.sum())
    if not total:
        return 0, 1
    effective = total**2 / float(weights @ consensus.copied[1:, 1:] @ weights)
    classes = _class_count(codes)
    # Many clones of the evaluated model and one other model are no more certain than two models. Accurate
    # models are near as well: one more is counted, and more with many classes, where few errors coincide.
    limit = (1.0 + _different_models(consensus.near[1:, 1:], weights > 0)) * classes / 2.0
    effective = min(effective, limit)
    others = codes[:, 1:]
    agreed = (others == codes[:, :1]).sum(axis=0) @ weights
    mean = float(agreed / ((others >= 0).sum(axis=0) @ weights))
    mixed = max(1, round(SCALE * FEW_MODELS / classes * total / effective**2))
    return round(mixed * mean), mixed


def _different_models(near: FloatArray, is_counted: AnyArray) -> float:
    """Return the number of models that count, with near ones (J, J) counted as one."""
    return float(np.sum(1.0 / near[np.ix_(is_counted, is_counted)].sum(axis=1)))


def likely_right(codes: IntArray, most: int = MOST_ITEMS) -> tuple[FloatArray, FloatArray]:
    """Return each model's accuracy (k,) and each answer's chance (N, k), estimated from agreement alone.

    The accuracy is that of independent models with the same mean agreement. The chance is the weighted share
    of the models that give the answer.

    Parameters
    ----------
    codes : int (N, k)
    most : int
        Rows from which accuracies are estimated: the first.

    Examples
    --------
    >>> truth, row = np.arange(300) % 3, np.arange(300)
    >>> answers = np.column_stack([(truth + (row % m == 0)) % 3 for m in (7, 5, 2)])
    >>> accuracies, chances = likely_right(answers)
    >>> accuracies.argsort(), bool(chances[answers[:, 2] != truth, 2].mean() < 0.5)
    (array([2, 1, 0]), True)
    """
    consensus = _consensus(_renumbered(codes[:most]))
    quality = consensus.quality
    weights = consensus.weights
    # Of independent models, the kappa of two is the product of their chance-corrected accuracies.
    votes = np.where(quality > 0.0, 1.0 / consensus.copied.sum(axis=1), 0.0)
    mean = float(votes @ quality / max(votes.sum(), 1e-300))
    corrected = np.minimum(quality / math.sqrt(max(mean, 1e-300)), 1.0)
    classes = _class_count(codes)
    accuracies = np.minimum((1.0 + (classes - 1.0) * corrected) / classes, _MOST_ACCURATE)
    weights = weights if np.any(weights) else np.ones(len(weights))
    shares = weights / weights.sum()
    return accuracies, np.column_stack([(codes == column[:, None]) @ shares for column in codes.T])


def _renumbered(codes: IntArray) -> IntArray:
    """Return codes in the order in which they first stand, which the order of an engine does not change."""
    _, first, found = np.unique(codes, return_index=True, return_inverse=True)
    missing = codes.min() < 0
    order = np.argsort(first[1:] if missing else first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    rank = np.concatenate([[-1], rank]) if missing else rank
    return np.asarray(rank[found.reshape(codes.shape)])


def _class_count(codes: IntArray) -> float:
    """Return the number of plausible answers to an item, 2 to `MOST_CLASSES`."""
    return float(np.clip(codes.max() + 1, 2, MOST_CLASSES))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Consensus:
    """Agreement of m models with each other.

    Parameters
    ----------
    quality : float (m,)
        Kappa with the models that are not near, pooled; 0 if it is not above chance.
    near : float (m, m)
        1 for pairs as near as copies, 0 for others, between them in part.
    copied : float (m, m)
        The same for pairs that are nearer than their qualities explain.
    """

    quality: FloatArray
    near: FloatArray
    copied: FloatArray

    @property
    def weights(self) -> FloatArray:
        """Weight (m,) of each model's answers; copies share one."""
        return np.asarray(self.quality**POWER / self.copied.sum(axis=1))


def _consensus(codes: IntArray) -> _Consensus:
    """Return how models agree, from their answers (n, m)."""
    equal, both = _agreements(codes)
    chance = _chance_agreements(codes)
    guessed = 1.0 / _class_count(codes)
    near = _ramp((equal - guessed) / (1.0 - guessed), NEARNESS)
    # Models that always give one class are no evidence about others. Models that guess are: clones of one of
    # them agree with each other alone.
    is_varied = np.diag(chance) < CONSTANT
    pairs = np.ix_(is_varied, is_varied)
    quality = np.zeros(len(equal))
    quality[is_varied] = _qualities(equal[pairs], chance[pairs], both[pairs], near[pairs])
    relative = quality / max(quality.max(initial=0.0), 1e-300)
    kappa = np.divide(equal - chance, 1.0 - chance, out=np.ones_like(equal), where=chance < 1.0 - 1e-9)
    copied = near * _ramp(kappa - np.outer(relative, relative), EXCESS)
    np.fill_diagonal(copied, 1.0)
    return _Consensus(quality=quality, near=near, copied=copied)


def _ramp(values: FloatArray, ends: tuple[float, float]) -> FloatArray:
    """Return 0 up to the first end, 1 from the second and linear between them, 1 on the diagonal (m, m)."""
    ramp = np.clip((values - ends[0]) / (ends[1] - ends[0]), 0.0, 1.0)
    np.fill_diagonal(ramp, 1.0)
    return np.asarray(ramp)


def _qualities(equal: FloatArray, chance: FloatArray, both: FloatArray, near: FloatArray) -> FloatArray:
    """Return each model's kappa (m,) with the models that are not near it, near ones counted once, or 0.

    A model that is near all others is compared with all of them.
    """
    apart = (1.0 - near) / near.sum(axis=1) * (both > 0)
    is_near_all = ~np.any(apart, axis=1)
    apart[is_near_all] = (both > 0)[is_near_all]
    np.fill_diagonal(apart, 0.0)
    possible = np.maximum((apart * (1.0 - chance)).sum(axis=1), 1e-300)
    quality = (apart * (equal - chance)).sum(axis=1) / possible
    # The others agree with each other where they are right, so that these agreements are correlated: the
    # standard error of a mean is at most the mean of the standard errors.
    errors = (apart * np.sqrt(chance * (1.0 - chance) / np.maximum(both, 1.0))).sum(axis=1) / possible
    return np.asarray(np.where(quality > _SIGNIFICANT * errors, quality, 0.0))


def _agreements(codes: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the share of equal answers (m, m) of each pair of models, and the items that both answered."""
    present = (codes >= 0).astype(np.float32)  # counts of items are exact in single precision
    both = (present.T @ present).astype(np.float64)
    narrow = np.ascontiguousarray(codes.T.astype(np.int32))
    equal = np.array([np.count_nonzero((narrow == column) & (column >= 0), axis=1) for column in narrow])
    return equal / np.maximum(both, 1.0), both


def _chance_agreements(codes: IntArray) -> FloatArray:
    """Return the agreement (m, m) that the frequencies of each pair's answers would give by chance."""
    item, model = np.nonzero(codes >= 0)
    entries = np.ones(len(item)), (model, codes[item, model])
    frequencies = scipy.sparse.csr_matrix(entries, shape=(codes.shape[1], int(codes.max()) + 1))
    frequencies = frequencies.multiply(1.0 / np.maximum(frequencies.sum(axis=1), 1.0)).tocsr()
    return np.asarray((frequencies @ frequencies.T).todense())
