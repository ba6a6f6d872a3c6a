"""Other models' answers as a proxy: what each model's agreement counts for."""

from __future__ import annotations

import numpy as np
import pytest

from stratal.errors import InputError
from stratal.proxy import agreement, peer_agreement
from stratal.proxy.agreement import (
    MAX_WEIGHT,
    PRIOR_STRENGTH,
    answer_codes,
    coded_answers,
    peer_weights,
)
from stratal.proxy.history import MAX_ITEMS, items_for_fit

SIZE, CLASSES = 2000, 4
ACCURACIES = np.array([0.75, 0.9, 0.8, 0.7, 0.6])
"""Of the evaluated model and four others."""


def answers(accuracies, seed=1, size=SIZE, classes=CLASSES):
    """Return the truth and answers (size, len(accuracies)) that err independently."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, size)
    wrong = (truth[:, None] + rng.integers(1, classes, (size, len(accuracies)))) % classes
    return truth, np.where(rng.random(wrong.shape) < accuracies, truth[:, None], wrong)


def clones(column, count, seed=2, changed=0.01):
    rng = np.random.default_rng(seed)
    copies = np.repeat(column[:, None], count, axis=1)
    return np.where(rng.random(copies.shape) < changed, rng.integers(0, CLASSES, copies.shape), copies)


def test_weights_are_fourth_powers_of_chance_corrected_agreement():
    _, codes = answers(ACCURACIES)

    # The kappa of two independent models is the product of their chance-corrected accuracies.
    corrected = (ACCURACIES * CLASSES - 1) / (CLASSES - 1)
    quality = corrected[1:] * (corrected.sum() - corrected[1:]) / 4

    result = peer_weights(codes)
    assert result.weights.max() == MAX_WEIGHT
    # 2,000 answers give a mean kappa to .015 or 5 %, and its fourth power to 20 %.
    assert np.allclose(result.weights / MAX_WEIGHT, (quality / quality.max()) ** 4, atol=0.1)
    assert (result.copies, result.guessing) == (0, 0)


def test_the_share_is_the_weight_of_those_that_answer_alike_mixed_with_the_mean():
    _, codes = answers(ACCURACIES)
    result = peer_weights(codes)

    weights = result.weights
    agreed = (codes[:, 1:] == codes[:, :1]) @ weights
    few = PRIOR_STRENGTH / CLASSES * weights.sum() / (weights.sum() ** 2 / (weights @ weights)) ** 2
    mean = agreed.mean() / weights.sum()

    expected = (agreed + few * mean) / (weights.sum() + few)
    assert np.allclose(result.shares(codes), expected, atol=2 / MAX_WEIGHT)


def test_fewer_models_are_less_certain():
    _, codes = answers([0.8] * 25)
    # Two models of accuracy .8 that err alike by chance agree in about two thirds of the items.
    for others, most in ((1, (1 + 1.5 * 0.66) / 2.5), (3, (3 + 0.66 / 2) / 3.5), (24, 1.0)):
        few = codes[:, : 1 + others]
        assert peer_weights(few).shares(few).max() == pytest.approx(most, abs=0.02)


def test_models_of_one_class_do_not_hide_that_similar_models_agree():
    _, codes = answers([0.97] * 9)
    constant = np.broadcast_to(np.arange(8) % CLASSES, (SIZE, 8))

    result = peer_weights(np.column_stack([codes, constant]))
    assert result.weights[:8].min() > 0.8 * MAX_WEIGHT
    assert result.guessing == 8


def test_equal_accurate_models_are_no_copies():
    """Models that make next to no errors are as near as clones, and agree with weak models as well."""
    truth, codes = answers([0.98] + [0.995] * 10 + [0.6] * 10)

    result = peer_weights(codes)
    assert result.copies == 0
    assert result.weights[:10].min() > 5 * result.weights[10:].max()

    # Forty clones of a weak model do not outvote them: they agree with each other as much.
    result = peer_weights(np.column_stack([codes, clones(codes[:, -1], 40, changed=0.04)]))
    assert result.copies == 41
    assert result.weights[:10].min() > 5 * result.weights[19:].sum() / 41
    shares = result.shares(np.column_stack([codes, clones(codes[:, -1], 40, changed=0.04)]))
    is_right = codes[:, 0] == truth
    assert shares[is_right].mean() > shares[~is_right].mean() + 0.5


def test_guessing_and_constant_models_count_nothing():
    _, codes = answers([*ACCURACIES, 1 / CLASSES, 1 / CLASSES])
    codes = np.column_stack([codes, np.zeros(SIZE, np.int64)])

    peers = peer_weights(codes)

    assert peers.weights[-3:].tolist() == [0, 0, 0]
    assert np.all(peers.weights[:-3] > 0)
    assert peers.guessing == 3


@pytest.mark.parametrize("seed", range(5))
def test_among_guessing_models_alone_none_counts(seed):
    _, codes = answers([0.9] + 20 * [1 / CLASSES], seed=seed)

    assert not peer_weights(codes).weights.any()
    with pytest.raises(InputError, match="no other model agrees with the rest more than by chance"):
        peer_agreement(codes[:, 0], codes[:, 1:])


def test_clones_weigh_together_as_one_model():
    _, codes = answers(ACCURACIES)
    alone = peer_weights(codes).weights
    peers = peer_weights(np.column_stack([codes, clones(codes[:, 4], 40)]))

    of_clones = peers.weights[3] + peers.weights[4:].sum()

    assert peers.copies == 41
    assert peers.weights[:3] / MAX_WEIGHT == pytest.approx(alone[:3] / MAX_WEIGHT, abs=0.1)
    assert of_clones / MAX_WEIGHT == pytest.approx(alone[3] / MAX_WEIGHT, abs=0.05)


def test_clones_of_the_evaluated_model_count_nothing():
    _, codes = answers(ACCURACIES)
    peers = peer_weights(np.column_stack([codes, clones(codes[:, 0], 30)]))

    assert not peers.weights[4:].any()
    assert peers.weights[:4] / MAX_WEIGHT == pytest.approx(peer_weights(codes).weights / MAX_WEIGHT, abs=0.1)


def test_the_names_of_answers_and_the_order_of_models_do_not_matter():
    _, codes = answers(ACCURACIES)
    texts = np.array(["d", "a", "c", "b"])[codes]
    order = [3, 0, 2, 1]

    plain = peer_agreement(codes[:, 0], codes[:, 1:]).values

    assert np.array_equal(peer_agreement(texts[:, 0], texts[:, 1:]).values, plain)
    named = {f"model {at}": texts[:, 1 + at].tolist() for at in order}
    assert np.allclose(peer_agreement(texts[:, 0].tolist(), named).values, plain, atol=2 / MAX_WEIGHT)


def test_a_missing_answer_counts_for_nothing():
    _, codes = answers(ACCURACIES)
    columns = {f"m{at}": codes[:, at].astype(object) for at in range(1, 5)}
    columns["m1"][:1000] = None
    for column in columns.values():
        column[-1] = np.nan

    values = peer_agreement(codes[:, 0], columns).values
    codes = answer_codes([codes[:, 0], *columns.values()])
    peers = peer_weights(codes)

    agreed = (codes[7, 2:] == codes[7, 0]) @ peers.weights[1:]
    one, all_of_them = peers.prior
    assert values[7] == (MAX_WEIGHT * agreed + one) / (MAX_WEIGHT * peers.weights[1:].sum() + all_of_them)
    # Nobody answered the last: the mean share.
    assert values[-1] == peers.prior[0] / peers.prior[1] == pytest.approx(values.mean(), abs=0.05)


def test_free_texts_need_no_classes():
    rng = np.random.default_rng(3)
    truth = np.arange(SIZE)
    right = rng.random((SIZE, 5)) < ACCURACIES
    # Wrong ones are one of three that an item suggests, or one that nobody else gives.
    likely = -1 - truth[:, None] * 10 - rng.integers(0, 3, (SIZE, 5))
    odd = 10**6 + np.arange(SIZE * 5).reshape(SIZE, 5)
    codes = np.where(right, truth[:, None], np.where(rng.random((SIZE, 5)) < 0.5, likely, odd))

    peers = peer_weights(answer_codes(codes.T))

    assert np.all(np.diff(peers.weights) < 0)
    share = peers.shares(answer_codes(codes.T))
    assert share[right[:, 0]].mean() > share[~right[:, 0]].mean() + 0.5


def test_the_items_that_weights_come_from_are_chosen_by_id():
    ids = [f"u{row}" for row in range(2 * MAX_ITEMS)]
    backwards = items_for_fit(len(ids), ids[::-1])

    assert len(backwards) == MAX_ITEMS
    assert {ids[::-1][row] for row in backwards} == {ids[row] for row in items_for_fit(len(ids), ids)}


def test_what_does_not_fit_is_refused():
    with pytest.raises(InputError, match=r"an answer of the evaluated model is missing \(at position 1\)"):
        peer_agreement(["a", None], {"m": ["a", "b"]})
    with pytest.raises(InputError, match=r"answers\[1\]"):
        peer_agreement(["a", "b"], {"m": ["a"]})
    with pytest.raises(InputError, match="there are no other models"):
        peer_agreement(["a", "b"], {})
    with pytest.raises(InputError, match="ids"):
        peer_agreement(["a", "b"], {"m": ["a", "b"]}, ids=["u"])


@pytest.mark.parametrize(
    ("kind", "one", "other", "third"),
    [("text", "The Eiffel Tower!", "eiffel  tower", "tower"), ("number", "1,250 in all", "= 1250.0", "12.5")],
)
def test_free_texts_of_arrays_are_compared_once_they_are_written_alike(kind, one, other, third):
    rng = np.random.default_rng(2)
    truth = rng.random((300, 1)) < 0.5
    right = rng.random((300, 6)) < 0.9
    answers = np.where(truth == right, np.where(rng.random((300, 6)) < 0.5, one, other), third)
    plain = np.where(truth == right, "a", "b")
    alike = peer_agreement(answers[:, 0], answers[:, 1:], alike=kind)
    np.testing.assert_array_equal(alike.values, peer_agreement(plain[:, 0], plain[:, 1:]).values)
    with pytest.raises(InputError, match="alike= value"):
        peer_agreement(answers[:, 0], answers[:, 1:], alike="words")


def test_answers_are_numbered_in_the_order_in_which_they_occur():
    codes, code_by_answer = coded_answers([["b", None, "a", "b"], ["c", "a", None, ""]])
    numbers, _ = coded_answers([[2.0, np.nan, 1.0, np.nan]])

    assert codes.tolist() == [[0, 2], [-1, 1], [1, -1], [0, code_by_answer[""]]]
    assert code_by_answer == {"b": 0, "a": 1, "c": 2, "": 3}
    assert numbers[:, 0].tolist() == [0, -1, 1, -1]


def test_shares_of_few_answers_are_those_of_each_model_compared():
    codes = np.random.default_rng(2).integers(-1, 3, (50, 9))
    shares = np.random.default_rng(3).dirichlet(np.ones(9))
    expected = [[shares[codes[row] == codes[row, model]].sum() for model in range(9)] for row in range(50)]
    few_models = agreement.answer_shares(codes[:, :2], shares[:2])

    np.testing.assert_allclose(agreement.answer_shares(codes, shares), expected, rtol=1e-12)
    np.testing.assert_allclose(
        few_models, [[shares[:2][row == answer].sum() for answer in row] for row in codes[:, :2]], rtol=1e-12
    )
