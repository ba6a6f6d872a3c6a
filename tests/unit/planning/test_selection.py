"""`select`: rounds, joins, copies, ties, preferences, metrics, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.tiers import sized

import stratal
from stratal.designs import Disagreements, Sample, SimpleRandom, disagreements
from stratal.designs.disagreements import SuccessiveDraws
from stratal.planning.selection import Selection, expected_labels

RNG = np.random.default_rng(5)
SIZE = 600
TRUTH = RNG.choice(["cat", "cow", "dog"], SIZE)


def answers(*accuracies: float, seed: int = 1) -> dict[str, Any]:
    """Return columns of answers that are right so often."""
    rng = np.random.default_rng(seed)
    wrong = np.where(TRUTH == "cat", "dog", "cat")
    return {f"m{j}": np.where(rng.random(SIZE) < a, TRUTH, wrong) for j, a in enumerate(accuracies)}


def population(columns: dict[str, Any], **more: Any) -> stratal.Population:
    return stratal.Population.from_arrays(groups=columns, **more)


def labels_of(selection: Selection, truth: Any = TRUTH) -> dict[int, Any]:
    return {unit: truth[unit] for unit in selection.sample.ids.tolist()}


def finish(selection: Selection, truth: Any = TRUTH) -> Selection:
    while not selection.done:
        before = selection.sample.ids.tolist()
        selection = selection.update(labels_of(selection, truth))
        assert selection.sample.ids.tolist()[: len(before)] == before
    return selection


def test_the_best_of_five_is_found_where_they_differ() -> None:
    columns = answers(0.95, 0.85, 0.8, 0.6, 0.4)
    selection = finish(stratal.select(population(columns), answers=list(columns)))
    assert selection.winner == "m0"
    assert "m4" not in selection.survivors
    drawn = selection.sample.ids
    assert np.all(np.any([columns[name][drawn] != columns["m0"][drawn] for name in columns], axis=0))
    assert selection.labels < SIZE / 2 < selection.random_labels * 2
    assert "with 95% confidence" in selection.statement


def test_labels_may_come_together_or_round_by_round() -> None:
    columns = answers(0.9, 0.87, 0.8)
    first = stratal.select(population(columns), answers=list(columns), seed=3)
    whole = first.update(labels_of(first)).update(labels_of(first.update(labels_of(first))))
    second = first.update(labels_of(first))
    new = second.sample.ids[second.sample.round == 2].tolist()
    assert second.update({unit: TRUTH[unit] for unit in new}).to_dict() == whole.to_dict()


def test_a_sample_on_disk_goes_on_as_one_in_memory(tmp_path: Any) -> None:
    columns = answers(0.9, 0.87, 0.8)
    units = population(columns, ids=[f"u{i}" for i in range(SIZE)])
    first = stratal.select(units, answers=list(columns), indifference=0.02, budget=300, seed=3)
    given = {f"u{i}": TRUTH[i] for i in range(SIZE) if f"u{i}" in set(first.sample.ids.tolist())}
    read = Sample.read(first.sample.write(tmp_path / "sample.parquet"))
    assert read.design == first.sample.design
    again = Selection.resume(read, units).update(given)
    assert again.sample == first.update(given).sample
    changed = {**columns, "m1": columns["m1"][::-1]}
    with pytest.raises(stratal.InputError, match="not the population"):
        Selection.resume(read, population(changed, ids=[f"u{i}" for i in range(SIZE)]))


def test_the_order_of_rows_and_of_models_changes_nothing() -> None:
    columns, order = answers(0.9, 0.87, 0.8), RNG.permutation(SIZE)
    ids = np.array([f"u{i}" for i in range(SIZE)])
    truth = dict(zip(ids.tolist(), TRUTH.tolist(), strict=True))
    plain = stratal.select(population(columns, ids=ids), answers=["m0", "m1", "m2"])
    mixed = stratal.select(
        population({name: column[order] for name, column in columns.items()}, ids=ids[order]),
        answers=["m2", "m0", "m1"],
    )
    assert plain.sample.ids.tolist() == mixed.sample.ids.tolist()
    plain, mixed = (one.update({u: truth[u] for u in one.sample.ids.tolist()}) for one in (plain, mixed))
    assert (plain.survivors, plain.leader) == (tuple(sorted(mixed.survivors)), mixed.leader)
    assert plain.sample.ids.tolist() == mixed.sample.ids.tolist()


def test_copies_win_together_and_cost_nothing() -> None:
    columns = answers(0.95, 0.8)
    copied = {**columns, **{f"copy{i}": columns["m0"] for i in range(5)}}
    alone = finish(stratal.select(population(columns), answers=list(columns)))
    found = finish(stratal.select(population(copied), answers=list(copied)))
    assert found.decided
    assert columns["m0"] is copied[found.winner or ""]
    assert set(found.survivors) == {"m0", *(f"copy{i}" for i in range(5))}
    assert found.labels == alone.labels
    equal = stratal.select(population({"a": TRUTH, "b": TRUTH}), answers=["a", "b"])
    assert equal.decided
    assert equal.sample.size == 0
    assert equal.survivors == ("a", "b")


def test_ties_are_known_once_they_are_labelled_out() -> None:
    truth = np.array(["x"] * 40)
    columns = {"a": np.array(["x", "y"] * 20), "b": np.array(["y", "x"] * 20)}
    found = finish(stratal.select(population(columns), answers=["a", "b"], indifference=0), truth)
    assert found.decided
    assert found.survivors == ("a", "b")
    assert found.labels == 40
    row = found.estimates[0]
    assert (row.value, *row.confidence_interval()) == (0.0, 0.0, 0.0)
    assert "0.0 points" in str(found)


def test_an_interval_holds_the_truth_and_shrinks_to_it() -> None:
    columns = answers(0.9, 0.84, 0.7)
    right = {name: float(np.mean(column == TRUTH)) for name, column in columns.items()}
    selection = stratal.select(population(columns), answers=list(columns), indifference=0, seed=2)
    widths = []
    while not selection.done:
        selection = selection.update(labels_of(selection))
        for row in selection.estimates:
            low, high = row.confidence_interval()
            assert (
                low - 1e-9 <= right[row.label["model"] or ""] - right[row.label["other"] or ""] <= high + 1e-9
            )
        widths.append(high - low)
    assert widths[-1] < widths[0]


def test_a_budget_ends_it_undecided() -> None:
    columns = answers(0.8, 0.8, 0.8)
    selection = finish(stratal.select(population(columns), answers=list(columns), budget=60))
    assert selection.done
    assert not selection.decided
    assert selection.winner is None
    assert selection.sample.size == 60
    assert "Not decided" in selection.statement


def test_units_without_a_label_count_against_every_claim() -> None:
    columns = answers(1.0, 0.5)
    first = stratal.select(population(columns), answers=list(columns), additional=40)
    given = labels_of(first)
    some = {unit: given[unit] if place > 20 else None for place, unit in enumerate(given)}
    assert first.update(given).decided
    fewer = first.update(some)
    assert fewer.labels == 19
    _low, high = fewer.estimates[0].confidence_interval()
    assert high >= first.update(given).estimates[0].confidence_interval().high
    assert finish(fewer).winner == "m0"


def test_preferences_name_a_model_or_a_tie() -> None:
    columns = {"a": [f"a{i}" for i in range(300)], "b": [f"b{i}" for i in range(300)]}
    preferred = np.where(np.arange(300) % 4 == 0, "b", np.where(np.arange(300) % 4 == 1, "tie", "a"))
    first = stratal.select(population(columns), answers=["a", "b"], criterion="preference")
    found = finish(first, preferred)
    assert found.winner == "a"
    assert found.estimates[0].value == pytest.approx(-0.25, abs=0.2)
    with pytest.raises(stratal.InputError, match="name of a model's column"):
        first.update({first.sample.ids.tolist()[0]: "c"})


@pytest.mark.parametrize("criterion", ["f1", "balanced_accuracy", "mcc", "kappa", "recall"])
def test_metrics_of_classes(criterion: str) -> None:
    columns = answers(0.97, 0.75, 0.5)
    first = stratal.select(population(columns), answers=list(columns), criterion=criterion, indifference=0.05)
    found = finish(first)
    assert found.winner == "m0"
    assert any("first-order" in note for note in found.notes)
    of_class = stratal.select(
        population(columns), answers=list(columns), criterion="f1", positive="cow", indifference=0.05
    )
    assert finish(of_class).winner == "m0"


def test_a_metric_of_all_labels_is_the_metric_itself() -> None:
    columns = answers(0.9, 0.7)
    first = stratal.select(
        population(columns), answers=list(columns), criterion="balanced_accuracy", additional=SIZE
    )
    row = first.update(labels_of(first)).estimates[0]
    recalls = {
        name: np.mean([np.mean(column[level == TRUTH] == level) for level in np.unique(TRUTH)])
        for name, column in columns.items()
    }
    assert row.value == pytest.approx(recalls[row.label["model"] or ""] - recalls[row.label["other"] or ""])


def test_a_hundred_models() -> None:
    models = sized(30, 100)
    columns = answers(*np.linspace(0.95, 0.5, models), seed=4)
    found = finish(stratal.select(population(columns), answers=list(columns), indifference=0.05))
    right = {name: np.mean(column == TRUTH) for name, column in columns.items()}
    assert right[found.winner or ""] >= max(right.values()) - 0.05
    assert len(found.to_dict()["models"]) == models
    assert "model" in str(found)


def test_what_is_expected_lies_between_the_extremes() -> None:
    columns = answers(0.9, 0.8, 0.7)
    found = expected_labels(population(columns), list(columns))
    assert found["optimistic"] <= found["conservative"] <= found["most"] <= SIZE
    needed = finish(stratal.select(population(columns), answers=list(columns))).labels
    assert needed <= found["most"]


def test_clocks_draw_by_size_and_keep_what_was_drawn() -> None:
    sizes = np.array([1.0, 2.0, 5.0])
    first = np.zeros(3)
    for seed in range(4000):
        clocks = SuccessiveDraws(np.random.default_rng(seed).random(3))
        clocks.draw(np.array([1.0, 1.0, 0.0]), 1)
        clocks.draw(sizes, 1)  # the clocks have run for a while, which they forget
        first[clocks.rows[1]] += clocks.rows[0] == 0
    share = first[1:] / first.sum()
    assert share[0] == pytest.approx(2 / 7, abs=4 * np.sqrt(2 / 7 * 5 / 7 / first.sum()))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"answers": ["m0"]}, "too few or too many models"),
        ({"answers": ["m0", "other"]}, "no such group column"),
        ({"confidence": 95}, "confidence is out of range"),
        ({"indifference": -0.1}, "indifference is out of range"),
        ({"criterion": "f1_score"}, "no such criterion"),
        ({"budget": 0.5}, "budget"),
        ({"budget": 0}, "budget"),
        ({"criterion": "prevalence"}, "no such criterion"),
        ({"criterion": "f1", "positive": "Katze"}, "no model answers with this class"),
        ({"positive": "cat"}, "does not refer to a single class"),
    ],
)
def test_what_it_refuses(options: dict[str, Any], message: str) -> None:
    columns = answers(0.9, 0.8)
    with pytest.raises(stratal.InputError, match=message):
        stratal.select(population(columns), **{"answers": list(columns), **options})


def test_other_samples_and_other_labels_are_refused() -> None:
    columns = answers(0.9, 0.8)
    units = population(columns)
    with pytest.raises(stratal.InputError, match="not drawn to select"):
        Selection(SimpleRandom(budget=5).draw(units, seed=1))
    first = stratal.select(units, answers=list(columns))
    with pytest.raises(stratal.errors.LabelError):
        first.update({10**6: "cat"})
    with pytest.raises(stratal.errors.LabelError):
        first.update(dict.fromkeys(first.sample.ids.tolist(), "Katze"))
    with pytest.raises(stratal.InputError, match="only distinguishes models"):
        stratal.estimate(first.sample, labels_of(first), predicted="m0")
    with pytest.raises(stratal.InputError, match="depend on the existing labels"):
        stratal.next_round(first.sample, additional=5)
    assert isinstance(first.sample.design, Disagreements)
    assert replace(first.sample.design, budget=9).budget == 9


def test_an_interval_wider_than_the_bound_that_left_a_model_out_is_explained() -> None:
    columns = answers(0.95, 0.93, 0.9, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5, 0.4)
    selection = finish(stratal.select(population(columns), answers=list(columns), indifference=0.02))
    models = {row["model"]: row for row in selection.to_dict()["models"]}
    assert any(row["state"] == "out" and row["confidence_interval"][1] > 0 for row in models.values())
    assert "eliminated by a bound against the model that led at the time" in str(selection)


def test_a_model_called_tie_cannot_be_preferred() -> None:
    columns = {"a": TRUTH, "tie": np.roll(TRUTH, 1)}
    with pytest.raises(stratal.errors.InputError, match="cannot be preferred"):
        stratal.select(population(columns), answers=list(columns), criterion="preference")


def test_all_rounds_read_the_answers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(6)
    truth = random.choice(["a", "b", "c"], 2_000)
    columns = {
        f"model{k}": np.where(random.random(2_000) < 0.7, truth, random.choice(["a", "b", "c"], 2_000))
        for k in range(4)
    }
    reads = []

    def counted(*arguments: Any) -> Any:
        reads.append(arguments)
        return read_answers(*arguments)

    read_answers = disagreements._read_answers
    monkeypatch.setattr(disagreements, "_read_answers", counted)
    selection = stratal.select(population(columns), answers=list(columns), indifference=0.0, seed=1)
    for _ in range(3):
        selection = selection.update(labels_of(selection, truth))

    assert selection.sample.size > 100
    assert len(reads) == 1


def test_codes_of_missing_labels_are_refused_as_classes_and_as_verdicts() -> None:
    """A label 99 that no model answers counted every model as wrong."""
    truth = RNG.integers(0, 3, SIZE).astype(str)
    columns = {f"m{j}": np.where(RNG.random(SIZE) < 0.8, truth, "0") for j in range(2)}
    first = stratal.select(population(columns), answers=list(columns), seed=3)
    labels = labels_of(first, truth)
    units = list(labels)

    with pytest.raises(stratal.errors.LabelError, match="99 in 'label' may mean that a row has no label"):
        first.update({**labels, units[0]: "99"})
    coded = stratal.Labels(ids=tuple(units), values=("99", *list(labels.values())[1:]), mapping={"99": None})
    assert first.update(coded).sample.size > first.sample.size
    verdicts = {name: {unit: int(columns[name][unit] == truth[unit]) for unit in units} for name in columns}
    verdicts["m0"][units[0]] = -1
    with pytest.raises(stratal.errors.LabelError, match="-1 in 'm0' may mean that a row has no label"):
        first.update(verdicts)
