"""Earlier models' results: the factor model finds what made them, and says what a new model's labels tell."""

import numpy as np
import pytest

from stratal.errors import InputError
from stratal.proxy import history
from stratal.proxy.history import FactorPosterior, History, fit_history, left_out_losses, sigmoid


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def results(rng, items, models, rank, spread=1.5):
    """Return results of models (N, M) and of a new one, its probabilities (N,) too."""
    factors = rng.normal(size=(items, rank)) * spread
    ability = rng.normal(size=models + 1)
    log_odds = rng.normal(size=(items, 1)) + ability + factors @ rng.normal(size=(rank, models + 1))
    right = rng.random(log_odds.shape) < sigmoid(log_odds)
    return right[:, :-1], right[:, -1].astype(float), sigmoid(log_odds[:, -1])


@pytest.mark.parametrize("rank", [0, 2])
def test_the_rank_is_chosen_by_left_out_models(rng, rank):
    past, _, _ = results(rng, 800, 100, rank)
    losses = left_out_losses(past.astype(np.int8), (0, 2, 8))
    assert min(losses, key=lambda one: losses[one]) == rank


def test_labels_of_a_new_model_tell_its_other_results(rng):
    past, z, truth = results(rng, 800, 60, 2)
    history = fit_history(past, rank=2)
    after = FactorPosterior.of(history.values[:100, 1:], z[:100]).predict(history.values[:, 1:])

    def loss(p):
        return float(np.mean((p[100:] - truth[100:]) ** 2))

    assert loss(after) < 0.5 * loss(history.values[:, 0])
    assert loss(after) < 0.02


def test_missing_results_are_neither_right_nor_wrong(rng):
    past, _, _ = results(rng, 400, 40, 1)
    holes = np.where(rng.random(past.shape) < 0.3, np.nan, past)
    whole, some = fit_history(past, rank=1), fit_history(holes, rank=1)
    assert np.corrcoef(whole.values[:, 0], some.values[:, 0])[0, 1] > 0.9
    nothing = np.vstack([holes, np.full((1, 40), np.nan)])
    alone = fit_history(nothing, rank=1).values[-1, 0]
    assert abs(alone - some.values[:, 0].mean()) < 0.1


def test_the_order_of_items_changes_nothing(rng):
    past, _, _ = results(rng, 300, 20, 1)
    ids, order = [f"q{at}" for at in range(300)], rng.permutation(300)
    one = fit_history(past, ids=ids, rank=1)
    other = fit_history(past[order], ids=np.array(ids)[order], rank=1)
    assert np.abs(one.values_of(ids) - other.values_of(ids)).max() <= 1e-4


def test_a_written_history_is_the_same(tmp_path, rng):
    history = fit_history(results(rng, 60, 8, 1)[0])
    back = History.read(history.write(tmp_path / "past.parquet"))
    assert back is not None
    np.testing.assert_array_equal(back.values, history.values)
    assert (back.models, dict(back.losses), back.rank) == (history.models, dict(history.losses), history.rank)


def test_an_unknown_item_is_taken_to_be_like_the_others(rng):
    history = fit_history(results(rng, 60, 8, 1)[0], rank=1)
    known, unknown = history.values_of([5]), history.values_of([999])
    np.testing.assert_array_equal(known[0], history.values[5])
    assert unknown[0, 0] == pytest.approx(history.values[:, 0].mean(), abs=1e-3)


@pytest.mark.parametrize(
    ("past", "words"),
    [
        (np.full((30, 5), 2), "neither correct nor wrong"),
        (np.full((30, 5), 0.5), "neither correct nor wrong"),
        (np.ones((30, 3), bool), "too few past results"),
        (np.ones((5, 10), bool), "too few past results"),
        (np.full((30, 5), "x", dtype=object), "neither correct nor wrong"),
        (np.ones(30), r"\(N, M\)"),
    ],
)
def test_what_is_no_history_is_refused(past, words):
    with pytest.raises(InputError, match=words):
        fit_history(past)


def test_results_that_all_agree_are_no_error():
    assert np.all(np.isfinite(fit_history(np.ones((30, 6), bool)).values))


def test_results_are_computed_with_in_batches_of_any_size(rng, monkeypatch):
    past = np.where(rng.random((400, 12)) < 0.2, np.nan, results(rng, 400, 12, 2)[0])
    found = []
    for cells in (12 * 7, 12 * 64, 12 * 400):
        monkeypatch.setattr(history, "_BATCH_RESULTS", cells)
        found.append(fit_history(past))
    for other in found[:2]:
        np.testing.assert_array_equal(other.values, found[2].values)
        assert other.rank == found[2].rank


def test_results_of_any_type_are_the_same_history(rng):
    whole = results(rng, 60, 6, 0)[0]
    held = [whole, whole.astype(np.int8), whole.astype(float), whole.astype(object), whole.tolist()]
    held.append(dict(enumerate(whole.T)))
    values = [fit_history(past, rank=1).values for past in held]
    for other in values[1:]:
        np.testing.assert_array_equal(other, values[0])


def test_columns_of_models_have_a_result_for_each_item():
    with pytest.raises(InputError, match="must have one entry per unit"):
        fit_history({"a": [1] * 30, "b": [0] * 29, "c": [1] * 30, "d": [1] * 30})
