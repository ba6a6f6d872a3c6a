"""How far other models' answers agree with a model's: a proxy of its accuracy that needs no label.

Each model's accuracy is estimated from all answers together (Dawid & Skene 1979, with one rate of error for
each model). Models that disagree much less than two independent models of their accuracies would are copies,
and those that agree no more than chance are guessing.
"""

from __future__ import annotations

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
PUNCTUATION, BLANKS, ARTICLES = r"[!-/:-@\[-`{-~]", r"\s+", ("a", "an", "the")

# Ways to write answers alike before they are compared.
ALIKE = ("text", "number")

# The answer of a calculation, as evaluations of GSM8K read it; thousands have lost their commas.
LAST_NUMBER = r"(-?[0-9]+(?:\.[0-9]+)?)[^0-9]*$"

# The largest weight: whole numbers add up to the same share on every engine.
SCALE = 1_000

# Wrong answers of free text coincide on an item's few plausible ones, however many there are in all.
MOST_CLASSES = 10

# Observed disagreement of two models over that of independent ones: below the first they are copies, above
# the second not at all, between them in part. It is .18 to .98 (median .69) for classifiers of one training
# set on breast cancer, .5 to .98 on digits, below .1 for clones; of .05, .1 and .2 the last does best.
COPIES, INDEPENDENT = 0.2, 0.4

# Few models agree by chance and err alike, so that a share of 0 or 1 is no certainty: to J equal models 3/J
# are added that have the mean share. Three other judges of a file (`nq301_llmjudge` of
# `benchmarks/results/peer_agreement_files.md`) were worth .91 to 1.43 random samples without it, .98 to 1.53
# with it; 24 models lose .6 %.
FEW_MODELS = 3

# Accuracies are estimated at most as high; before copies are known, agreement overstates them.
_MOST_ACCURATE, _AT_FIRST = 0.999, 0.95

# Of finding copies and accuracies in turn, and of expectation–maximisation at most within each.
_ROUNDS, _STEPS = 3, 50

# The chance that any of the models is taken as better than chance if all of them guess.
_ERROR = 0.01


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
        Models whose answers are nearly another's, or the evaluated model's.
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

    A model of estimated accuracy a among K answers weighs log²(a (K − 1) / (1 − a)), copies weigh together as
    much as one model, copies of the evaluated model and models that guess nothing. No label is used.

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
    columns = list(answers.values()) if isinstance(answers, Mapping) else list(np.asarray(answers).T)
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
    codes = _renumbered(codes)
    classes = float(np.clip(codes.max() + 1, 2, MOST_CLASSES))
    agreed, both = _agreements(codes)
    near, accuracies = _copies_and_accuracies(codes, agreed, classes)
    informed = _informed(codes, agreed, both, near)
    odds = np.log(accuracies * (classes - 1) / (1 - accuracies))
    of_own = near[0]
    weights = np.maximum(odds, 0.0) ** 2 * (1.0 - of_own) / np.maximum(near.sum(axis=1) - of_own, 1.0)
    weights = np.where(informed, weights, 0.0)[1:]
    whole = np.rint(weights * (SCALE / max(weights.max(), 1e-300))).astype(np.int64)
    nearly = (near >= 0.5) & ~np.eye(len(near), dtype=bool)
    return PeerWeights(
        weights=whole,
        prior=_prior(codes, whole),
        copies=int(np.count_nonzero(nearly[1:].any(axis=1) & informed[1:])),
        guessing=int(np.count_nonzero(~informed[1:])),
    )


def _prior(codes: IntArray, weights: IntArray) -> tuple[int, int]:
    """Return what each row's share is mixed with: the mean share, the less the more models there are."""
    total = int(weights.sum())
    if not total:
        return 0, 1
    effective = total**2 / float(weights @ weights)
    others = codes[:, 1:]
    mean = ((others == codes[:, :1]).sum(axis=0) @ weights) / ((others >= 0).sum(axis=0) @ weights)
    mixed = max(1, round(SCALE * FEW_MODELS * total / effective**2))
    return round(mixed * float(mean)), mixed


def likely_right(codes: IntArray, most: int = MOST_ITEMS) -> tuple[FloatArray, FloatArray]:
    """Return what agreement alone suggests: each model's accuracy (k,), and each answer's chance (N, k).

    The chance is the share of the models, by the squared log-odds of their accuracies, that give the answer.

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
    some = _renumbered(codes[:most])
    classes = float(np.clip(codes.max() + 1, 2, MOST_CLASSES))
    accuracies = _copies_and_accuracies(some, _agreements(some)[0], classes)[1]
    odds = np.maximum(np.log(accuracies * (classes - 1) / (1 - accuracies)), 0.0) ** 2
    odds = odds if np.any(odds) else np.ones(len(odds))
    chances = [(codes == own[:, None]) @ (odds / odds.sum()) for own in codes.T]
    return accuracies, np.column_stack(chances)


def _renumbered(codes: IntArray) -> IntArray:
    """Return codes in the order in which they first stand, which the order of an engine does not change."""
    _, first, found = np.unique(codes, return_index=True, return_inverse=True)
    missing = codes.min() < 0
    order = np.argsort(first[1:] if missing else first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    rank = np.concatenate([[-1], rank]) if missing else rank
    return np.asarray(rank[found.reshape(codes.shape)])


def _agreements(codes: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the share of equal answers (m, m) of each pair of models, and the items that both answered."""
    present = (codes >= 0).astype(np.float32)  # counts of items are exact in single precision
    both = (present.T @ present).astype(np.float64)
    narrow = np.ascontiguousarray(codes.T.astype(np.int32))
    equal = np.array([np.count_nonzero((narrow == own) & (own >= 0), axis=1) for own in narrow])
    return equal / np.maximum(both, 1.0), both


def _copies_and_accuracies(
    codes: IntArray, agreed: FloatArray, classes: float
) -> tuple[FloatArray, FloatArray]:
    """Return how near each pair of models is to being copies (m, m), 0 to 1, and the accuracies (m,)."""
    accuracies = np.full(codes.shape[1], 0.8)
    near = np.eye(codes.shape[1])
    for turn in range(_ROUNDS):
        a = np.minimum(accuracies, _MOST_ACCURATE if turn else _AT_FIRST)
        expected = 1.0 - np.outer(a, a) - np.outer(1.0 - a, 1.0 - a) / (classes - 1.0)
        ratio = (1.0 - agreed) / expected
        near = np.clip((INDEPENDENT - ratio) / (INDEPENDENT - COPIES), 0.0, 1.0)
        np.fill_diagonal(near, 1.0)
        accuracies = _accuracies(codes, 1.0 / near.sum(axis=1), classes)
    return near, accuracies


def _accuracies(codes: IntArray, counted: FloatArray, classes: float) -> FloatArray:
    """Return the accuracies (m,) of models by expectation–maximisation, each counted so far (m,)."""
    item, model = np.nonzero(codes >= 0)
    n, m = codes.shape
    given, cell = _given(codes, item, model)
    of_item = given // (codes.max() + 1)
    unnamed = np.maximum(classes - np.bincount(of_item, minlength=n), 0.0)
    answered = np.bincount(model, minlength=m)
    accuracies = np.full(m, 0.7)
    for _ in range(_STEPS):
        odds = counted * np.log(accuracies * (classes - 1.0) / (1.0 - accuracies))
        score = np.bincount(cell, odds[model], minlength=len(given))
        top = np.zeros(n)
        np.maximum.at(top, of_item, score)
        likely = np.exp(score - top[of_item])
        whole = np.bincount(of_item, likely, minlength=n) + unnamed * np.exp(-top)
        right = likely / whole[of_item]
        found = (np.bincount(model, right[cell], minlength=m) + 1.0) / (answered + 2.0)
        found = np.clip(found, 1.0 / classes, _MOST_ACCURATE)
        if np.abs(found - accuracies).max() < 1e-5:
            return found
        accuracies = found
    return accuracies


def _informed(codes: IntArray, agreed: FloatArray, both: FloatArray, near: FloatArray) -> AnyArray:
    """Return which models (m,) agree with the others, copies counted once, more than chance would."""
    item, model = np.nonzero(codes >= 0)
    entries = np.ones(len(item)), (model, codes[item, model])
    frequencies = scipy.sparse.csr_matrix(entries, shape=(codes.shape[1], int(codes.max()) + 1))
    frequencies = frequencies.multiply(1.0 / np.maximum(frequencies.sum(axis=1), 1.0)).tocsr()
    chance = np.asarray((frequencies @ frequencies.T).todense())
    counted = 1.0 / near.sum(axis=1)
    excess = ((1.0 - near) * counted * (both > 0) * (agreed - chance)).sum(axis=1)
    # How many give an item's answer varies by item, as models agree with each other where they are right.
    given, cell = _given(codes, item, model)
    votes = np.bincount(cell, counted[model], minlength=len(given))[cell]
    answered = np.maximum(np.bincount(model, minlength=len(near)), 1)
    mean = np.bincount(model, votes, minlength=len(near)) / answered
    squares = np.bincount(model, (votes - mean[model]) ** 2, minlength=len(near)) + 1.0
    limit = -scipy.special.ndtri(_ERROR / len(near))
    return np.asarray(excess > limit * np.sqrt(squares) / answered)


def _given(codes: IntArray, item: IntArray, model: IntArray) -> tuple[IntArray, IntArray]:
    """Return each answer that was given to an item as one number, and which of them each entry (q,) is."""
    return np.unique(item * (codes.max() + 1) + codes[item, model], return_inverse=True)
