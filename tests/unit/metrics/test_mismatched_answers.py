"""Answers that match almost no label: refused where models are compared, a warning of one model."""

import json

import numpy as np
import pytest

import stratal
from stratal.errors import InputError, LabelError
from stratal.estimation.resolve import mismatches_by_model
from stratal.report.notes import NO_MATCH

SIZE = 300
DRAWS = np.random.default_rng(3)
CITIES = np.array([f"City{row}" for row in range(SIZE)], dtype=object)
ANSWERS = {
    "in_words": np.array([f"It is {city}." for city in CITIES], dtype=object),
    "with_points": np.where(DRAWS.random(SIZE) < 0.8, CITIES + ".", "City0."),
    "poor": np.where(DRAWS.random(SIZE) < 0.4, CITIES, "City0"),
}
RIGHT = {
    "in_words": np.ones(SIZE, dtype=int),
    "with_points": (ANSWERS["with_points"] == CITIES + ".").astype(int),
    "poor": (ANSWERS["poor"] == CITIES).astype(int),
}
WAYS = {
    "numbers": lambda value: int(value),
    "truth": lambda value: bool(value),
    "pass-fail": lambda value: "pass" if value else "fail",
}


@pytest.fixture(scope="module")
def cities():
    return stratal.Population.from_arrays(groups=ANSWERS)


def labels_of(sample, column=CITIES):
    return {unit: column[unit] for unit in sample.ids.tolist()}


def test_a_selection_refuses_models_that_match_no_label_and_lists_mismatches(cities):
    selection = stratal.select(cities, list(ANSWERS))
    with pytest.raises(LabelError) as refused:
        selection.update(labels_of(selection.sample))
    text = str(refused.value)
    first = selection.sample.ids.tolist()[0]
    assert "'in_words', 'with_points'" in text
    assert f"in_words: 'It is City{first}.' → 'City{first}' (1)" in text
    assert text.count("→") == 1 + 2 * 3
    assert "poor:" not in text
    assert "right (1) and wrong (0) for each model" in text


def test_the_mismatches_are_the_most_frequent_ones():
    labels = np.array(["a"] * 15 + ["b"] * 5 + ["c"] * 3 + ["d"] * 2, dtype=object)
    told = {"m": np.array([f"Class {label}" for label in labels], dtype=object)}
    assert mismatches_by_model(labels, told, told) == {
        "m": "'Class a' → 'a' (15), 'Class b' → 'b' (5), 'Class c' → 'c' (3)"
    }


@pytest.mark.parametrize("way", WAYS)
def test_verdicts_on_each_model_select_the_best(cities, way):
    selection = stratal.select(cities, list(ANSWERS))
    while not selection.done:
        verdicts = {
            model: {unit: WAYS[way](right[unit]) for unit in selection.sample.ids.tolist()}
            for model, right in RIGHT.items()
        }
        selection = selection.update(verdicts)
    assert selection.winner == "in_words"
    rows = {row.label["model"]: row.value for row in selection.estimates}
    # Every unit has answers that differ, and a prefix of a random order is labelled.
    drawn = selection.sample.ids[: selection.labels]
    for model, value in rows.items():
        assert value == pytest.approx(np.mean(RIGHT[model][drawn] - 1.0), abs=0.05)


def test_verdicts_give_what_true_classes_give():
    truth = DRAWS.choice(["a", "b", "c"], SIZE)
    columns = {
        name: np.where(DRAWS.random(SIZE) < share, truth, "a")
        for name, share in (("new", 0.9), ("old", 0.7), ("small", 0.5))
    }
    selection = stratal.select(stratal.Population.from_arrays(groups=columns), list(columns))
    by_class = selection.update(labels_of(selection.sample, truth))
    by_verdict = selection.update(
        {name: labels_of(selection.sample, column == truth) for name, column in columns.items()}
    )
    assert by_class.to_dict() == by_verdict.to_dict()


def test_one_verdict_is_enough_for_equal_answers():
    columns = {"new": ["a", "a", "b", "b"], "old": ["a", "b", "b", "a"], "same": ["a", "a", "b", "b"]}
    selection = stratal.select(stratal.Population.from_arrays(groups=columns), list(columns))
    given = {"new": {1: 1, 3: 1}, "old": {1: 0, 3: 0}, "same": {1: None, 3: None}}
    assert selection.update(given).labels == 2
    with pytest.raises(LabelError, match="id '1' has two verdicts on one answer"):
        selection.update(given | {"same": {1: 0}})


def test_verdicts_of_some_models_and_mixed_labels_are_refused(cities):
    selection = stratal.select(cities, list(ANSWERS))
    verdicts = {name: labels_of(selection.sample, right) for name, right in RIGHT.items()}
    with pytest.raises(LabelError, match=r"no column of verdicts \(right or wrong\) is given for 'poor'"):
        selection.update({name: verdicts[name] for name in ("in_words", "with_points")})
    with pytest.raises(LabelError, match="the verdict on 'poor'"):
        selection.update(verdicts | {"poor": dict.fromkeys(selection.sample.ids.tolist(), 0.5)})
    with pytest.raises(LabelError, match="verdicts on each model"):
        selection.update(verdicts).update(labels_of(selection.sample))
    of_metric = stratal.select(cities, list(ANSWERS), criterion="f1")
    with pytest.raises(InputError, match="do not define 'f1'"):
        of_metric.update({name: labels_of(of_metric.sample, right) for name, right in RIGHT.items()})


def test_a_classifier_that_is_wrong_wherever_models_differ_is_no_mismatch():
    truth = np.array(["cat", "dog"] * 100)
    columns = {"good": truth, "bad": np.where(np.arange(200) % 5 == 0, "cow", truth)}
    selection = stratal.select(stratal.Population.from_arrays(groups=columns), list(columns))
    assert selection.update(labels_of(selection.sample, truth)).winner == "good"


def test_a_free_text_model_that_is_wrong_wherever_models_differ_is_no_mismatch():
    wrong = np.arange(SIZE) % 4 == 0
    columns = {"good": CITIES, "bad": np.where(wrong, "no idea", CITIES)}
    selection = stratal.select(stratal.Population.from_arrays(groups=columns), list(columns))
    assert selection.update(labels_of(selection.sample)).winner == "good"


@pytest.mark.parametrize(
    "estimand", ["difference:in_words,poor", "win_rate:poor,in_words", "ratio:poor,in_words"]
)
def test_a_comparison_refuses_models_that_match_no_label(cities, estimand):
    sample = stratal.designs.SimpleRandom(budget=60).draw(cities, seed=1)
    with pytest.raises(LabelError, match="'in_words' match almost none of 60 labels"):
        stratal.estimate(sample, labels_of(sample), estimand=estimand)


def test_one_model_that_matches_no_label_is_a_warning_in_the_first_lines(cities):
    sample = stratal.designs.SimpleRandom(budget=60).draw(cities, seed=1)
    estimate = stratal.estimate(sample, labels_of(sample), predicted="in_words")
    warned = [note for note in estimate.notes if note.code == NO_MATCH]
    assert len(warned) == 1
    assert estimate.to_dict()["warnings"] == warned
    assert "match almost none of 60 labels" in str(estimate).splitlines()[1]
    other = stratal.estimate(sample, labels_of(sample), predicted="poor")
    assert "warnings" not in other.to_dict()


def test_the_command_takes_verdicts_and_refuses_a_mismatch(tmp_path, run_command):
    def write(name, header, rows):
        path = tmp_path / name
        lines = [",".join(header), *(",".join(map(str, row)) for row in rows)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    columns = [ANSWERS[name] for name in ANSWERS]
    rows = [(f"u{row}", *(column[row] for column in columns)) for row in range(SIZE)]
    answers = write("answers.csv", ["id", *ANSWERS], rows)
    first = tmp_path / "round1"
    assert run_command("select", answers, "--answers", ",".join(ANSWERS), "--output", first).status == 0
    units = [line.split(",")[0] for line in (first / "to_label.csv").read_text().splitlines()[1:]]
    numbers = [int(unit[1:]) for unit in units]

    truth = write("truth.csv", ["id", "label"], zip(units, CITIES[numbers], strict=True))
    refused = run_command("select", "--extend", first, "--labels", truth)
    assert refused.status
    assert "match almost none of 50 labels" in refused.message

    told = [RIGHT[name][numbers] for name in RIGHT]
    verdicts = write("verdicts.csv", ["id", *RIGHT, "label"], zip(units, *told, [""] * 50, strict=True))
    done = run_command("select", "--extend", first, "--labels", verdicts, "--json")
    assert done.status == 0
    assert json.loads(done.stdout)["leader"] == "in_words"


def test_models_are_compared_by_columns_of_verdicts_where_the_sample_keeps_their_answers(
    tmp_path, cities, run_command
):
    sample = stratal.designs.SimpleRandom(budget=60).draw(cities, seed=1)
    sample.write(tmp_path / "sample.parquet")
    rows = [f"{unit},{RIGHT['in_words'][unit]},{RIGHT['poor'][unit]}" for unit in sample.ids.tolist()]
    labels = tmp_path / "verdicts.csv"
    labels.write_text("\n".join(["id,in_words,poor", *rows]) + "\n", encoding="utf-8")
    words = ("--compare", "in_words,poor", "--same-rows", "--json")
    done = run_command("estimate", tmp_path / "sample.parquet", labels, *words)
    difference = json.loads(done.stdout)["comparisons"][0]["estimate"]
    assert difference == pytest.approx(np.mean(1 - RIGHT["poor"][sample.ids]))


def test_a_new_version_that_matches_no_label_is_a_warning(cities):
    sample = stratal.designs.SimpleRandom(budget=60).draw(cities, seed=1)
    old = {unit: ANSWERS["poor"][unit] for unit in range(SIZE)}
    new = {unit: ANSWERS["in_words"][unit] for unit in range(SIZE)}
    labels = labels_of(sample)
    compared = stratal.new_version(sample, labels, new, old_answers="poor", predicted="poor")
    assert "match almost none of 60 labels" in compared.to_dict()["warnings"][0]
    assert "match almost none of 60 labels" in str(compared).splitlines()[1]
    same = stratal.new_version(sample, labels, old, old_answers="poor", predicted="poor")
    assert "warnings" not in same.to_dict()
