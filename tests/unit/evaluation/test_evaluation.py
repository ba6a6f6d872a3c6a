"""`stratal.evaluate`: samples drawn here and tables from elsewhere take the same options and agree."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import stratal
from stratal.errors import InputError, MissingColumnError
from stratal.labels.labels import Labels

CLASSES = np.array(["cat", "dog", "eel"])
N = 400
LABELLED = 60


@pytest.fixture(scope="module")
def units():
    """Units with an answer, a verdict, two scores and the true class, as columns (N,)."""
    rng = np.random.default_rng(3)
    truth = rng.choice(CLASSES, N)
    confidence = rng.beta(5, 2, N).round(3)
    right = rng.random(N) < confidence
    other = np.roll(CLASSES, 1)[np.searchsorted(CLASSES, truth)]
    agrees = rng.random(N) < 0.85
    return {
        "id": np.array([f"u{row}" for row in range(N)]),
        "answer": np.where(right, truth, other),
        "confidence": confidence,
        "second": rng.random(N).round(3),
        "site": rng.choice(["north", "south"], N),
        "verdict": np.where(right == agrees, "pass", "fail"),
        "truth": truth,
        "right": right.astype(float),
        "right_b": (rng.random(N) < 0.7).astype(float),
    }


def sample_and_table(units, proxies=("confidence",), groups=("site", "verdict")):
    """Return a simple random sample, its labels by column, and the same as one table."""
    population = stratal.Population.from_arrays(
        proxy={name: units[name] for name in proxies},
        ids=units["id"],
        groups={name: units[name] for name in ("answer", *groups)},
        predicted="answer",
    )
    sample = stratal.designs.SimpleRandom(budget=LABELLED).draw(population, seed=0)
    rows = np.flatnonzero(np.isin(units["id"], sample.ids))
    labels = {name: units[name][rows] for name in ("id", "truth", "right", "right_b")}
    labelled = np.isin(np.arange(N), rows)
    table = dict(units)
    table["truth"] = np.where(labelled, units["truth"], None)
    for name in ("right", "right_b"):
        table[name] = np.where(labelled, units[name], np.nan)
    return sample, labels, table


REQUESTS = {
    "mean of numbers": {"value": "right", "predicted": "none"},
    "accuracy": {"value": "truth", "predicted": "answer"},
    "groups": {"value": "right", "predicted": "none", "by": "site"},
    "one class": {"value": "truth", "predicted": "answer", "estimand": "f1:cat"},
    "one class by group": {"value": "truth", "predicted": "answer", "estimand": "recall:cat", "by": "site"},
    "metrics": {"value": "truth", "predicted": "answer", "metric": ["recall"], "classes": ["dog"]},
    "models": {"value": "right", "compare": ["right", "right_b"]},
    "judge": {"value": "right", "predicted": "none", "judge": "verdict"},
    "judge by group": {"value": "right", "predicted": "none", "judge": "verdict", "by": "site"},
    "post-stratified": {"value": "right", "predicted": "none", "post_stratify": "site"},
    "margins": {"value": "right", "predicted": "none", "margins": "site,verdict"},
    "regression on margins": {"value": "right", "predicted": "none", "margins": "regression:site"},
    "calibrated": {"value": "right", "predicted": "none", "calibration": "isotonic"},
    "cross-fitted": {"value": "right", "predicted": "none", "cross_fit": 5},
    "of a superpopulation": {"value": "right", "predicted": "none", "target": "superpopulation"},
    "a requirement": {"value": "right", "predicted": "none", "require": "value>=.9"},
}


def flat(described, path=""):
    """Yield the entries of a result by their paths, without notes on where labels are from."""
    if isinstance(described, dict):
        for name, entry in described.items():
            if name not in ("notes", "label_values", "roles"):
                yield from flat(entry, f"{path}.{name}")
    elif isinstance(described, list | tuple):
        for place, entry in enumerate(described):
            yield from flat(entry, f"{path}.{place}")
    else:
        yield path, described


@pytest.mark.parametrize("question", REQUESTS)
def test_a_table_gives_what_the_drawn_sample_gives(units, question):
    options = REQUESTS[question]
    sample, labels, table = sample_and_table(units)
    drawn = stratal.evaluate(sample, labels, **options)
    others = {name: option for name, option in options.items() if name != "judge"}
    judge = options.get("judge", "none")

    from_table = stratal.evaluate(table, proxy="confidence", judge=judge, **others)

    expected = dict(flat(drawn.to_dict()))
    found = dict(flat(from_table.to_dict()))
    assert set(found) == set(expected)
    for path, entry in expected.items():
        # The interval of what labels are worth resamples rows in their order, which differs.
        tolerance = 0.05 if "effective_sample_size_interval" in path else 1e-9
        same = pytest.approx(entry, rel=tolerance) if isinstance(entry, float) else entry
        assert found[path] == same, path
    assert from_table.status == drawn.status


def test_several_proxies_of_a_table_are_those_of_the_sample(units):
    sample, labels, table = sample_and_table(units, ("confidence", "second"))
    options = {"value": "right", "predicted": "none"}
    drawn = stratal.evaluate(sample, labels, **options).estimate

    found = stratal.evaluate(table, proxy=["confidence", "second"], **options).estimate

    assert found.value == pytest.approx(drawn.value, rel=1e-9)
    assert found.standard_error == pytest.approx(drawn.standard_error, rel=1e-9)


def test_strata_of_a_table_are_given_by_a_column(units):
    _, _, table = sample_and_table(units)

    found = stratal.evaluate(
        table,
        proxy="confidence",
        chosen="random-within:site",
        value="right",
        predicted="none",
    ).estimate

    sizes = {row.name: row.size for row in found.strata}
    names, counts = np.unique(units["site"], return_counts=True)
    assert sizes == dict(zip(names.tolist(), counts.tolist(), strict=True))


def test_rows_without_ids_are_numbered_by_their_place(units):
    _, _, table = sample_and_table(units)
    without = {name: column for name, column in table.items() if name != "id"}
    options = {"proxy": "confidence", "value": "right", "compare": ["right", "right_b"]}

    found = stratal.evaluate(without, **options).tables[0]

    expected = stratal.evaluate(table, **options).tables[0]
    assert [row.value for row in found] == [row.value for row in expected]


def test_a_table_says_that_its_labels_are_taken_as_random(units):
    _, _, table = sample_and_table(units)

    found = stratal.evaluate(table, value="right", predicted="none")

    assert any(f"{LABELLED} rows with a label are taken" in note for note in found.to_dict()["notes"])


def test_a_result_can_be_pickled(units):
    sample, labels, _ = sample_and_table(units)

    found = stratal.evaluate(sample, labels, value="right", predicted="none", judge="verdict", by="site")

    assert len(pickle.dumps(found.estimate)) < 50_000
    assert pickle.loads(pickle.dumps(found.to_dict())) == found.to_dict()


def test_a_result_prints_its_answer_and_writes_a_report(units, tmp_path):
    sample, labels, _ = sample_and_table(units)
    found = stratal.evaluate(sample, labels, value="right", predicted="none", require="value>=.9")

    path = found.report(quantity="accuracy").write(tmp_path / "report.html")

    assert f"{100 * found.estimate.value:.1f}%" in str(found)
    assert "FAIL" in str(found)
    assert "Accuracy" in path.read_text()


def test_disagreements_need_a_judge(units, tmp_path):
    sample, labels, _ = sample_and_table(units)
    judged = stratal.evaluate(sample, labels, value="right", predicted="none", judge="verdict")
    alone = stratal.evaluate(sample, labels, value="right", predicted="none")

    assert judged.write_disagreements(tmp_path / "look.csv") > 0
    with pytest.raises(InputError, match="judge"):
        alone.write_disagreements(tmp_path / "other.csv")


@pytest.mark.parametrize(
    "options",
    [
        {"judge": "verdict", "estimand": "f1:cat"},
        {"answers": "answer"},
        {"failed_answers": "ignored"},
        {"value": "right", "failed_answers": "wrong"},
        {"value": "right", "population": "nowhere.csv"},
    ],
)
def test_invalid_options_are_refused(units, options):
    sample, labels, _ = sample_and_table(units)

    with pytest.raises(InputError):
        stratal.evaluate(sample, labels, **{"value": "truth", **options})


def test_a_missing_label_column_is_named_in_the_error(units):
    sample, labels, _ = sample_and_table(units)

    with pytest.raises(MissingColumnError) as error:
        stratal.evaluate(sample, labels, value="verdict_of_nobody")

    assert error.value.column == "verdict_of_nobody"


def test_nothing_to_estimate_from_names_what_can_be_given():
    with pytest.raises(InputError, match="nothing to estimate from"):
        stratal.evaluate()


def long_table(n_units=40, labelled=20):
    """Return a table with a row per unit and model, labels for the first units."""
    rows = [(f"u{unit}", model, unit) for unit in range(n_units) for model in ("A", "B")]
    return {
        "id": [unit for unit, _, _ in rows],
        "model": [model for _, model, _ in rows],
        "site": ["north" if number % 2 else "south" for _, _, number in rows],
        "label": [
            None if number >= labelled else float(model == "A" or number % 4 == 0)
            for _, model, number in rows
        ],
    }


def test_a_table_with_a_row_per_unit_and_model_compares_models():
    found = stratal.evaluate(long_table(), model="model", by="site")

    (difference,) = found.tables[0]
    assert found.estimate.value == 1.0
    assert difference.value == pytest.approx(0.75)
    assert found.estimate.population_size == 40


def test_two_rows_of_one_unit_and_model_are_refused():
    table = {name: [*column, column[0]] for name, column in long_table().items()}

    with pytest.raises(InputError, match="2 rows of model 'A'"):
        stratal.evaluate(table, model="model")


def test_a_table_without_any_label_is_refused(units):
    with pytest.raises(InputError, match="no row of column 'label' has a label"):
        stratal.evaluate({"id": units["id"], "confidence": units["confidence"], "label": [None] * N})


def test_groups_of_several_estimands_are_in_the_result(units):
    sample, labels, _ = sample_and_table(units)

    found = stratal.evaluate(sample, labels, value="truth", estimand=["accuracy", "f1:cat"], by="site")

    rows = found.to_dict()["estimands"]
    assert [row.get("domain") for row in rows] == [None, None, "north", "south", "north", "south"]


@pytest.mark.parametrize("id_name", ["item_id", None])
def test_a_second_column_of_labels_is_read_for_the_same_units(units, id_name):
    """With a population in a file of its own, rows without a label are left out, and rows keep their ids."""
    _, _, table = sample_and_table(units)
    names = ("confidence", "right", "right_b")
    table = {name: table[name] for name in names} | ({} if id_name is None else {id_name: table["id"]})
    others = {"confidence": units["confidence"]}
    if id_name is not None:
        others[id_name] = units["id"]

    found = stratal.evaluate(
        table,
        population=others,
        proxy="confidence",
        value="right",
        compare=["right", "right_b"],
        predicted="none",
    )

    labelled = np.isfinite(table["right"])
    expected = table["right"][labelled].mean() - table["right_b"][labelled].mean()
    (difference,) = found.tables[0]
    assert difference.value == pytest.approx(expected)


def test_a_mistyped_file_of_labels_is_named(units, tmp_path):
    sample, labels, _ = sample_and_table(units)
    file = tmp_path / "labels.csv"
    rows = zip(labels["id"], labels["right"], strict=True)
    file.write_text("id,right\n" + "".join(f"{unit},{label}\n" for unit, label in rows))

    with pytest.raises(InputError, match=r"nowhere\.csv"):
        stratal.evaluate(sample, [str(file), str(tmp_path / "nowhere.csv")], value="right")


def test_anything_but_a_sample_is_refused(units):
    with pytest.raises(InputError, match="already contains its labels"):
        stratal.evaluate(units, [1.0])
    with pytest.raises(InputError, match="takes a Sample"):
        stratal.evaluate(object(), [1.0])


@pytest.mark.filterwarnings("ignore::stratal.errors.StratalWarning")
def test_a_report_has_the_text_of_the_question_that_it_is_of(units, tmp_path):
    from stratal.study import StudyQuestion, create_study

    sample = sample_and_table(units)[0]
    sample = replace(sample, question=replace(sample.question, answer=None))
    first = replace(StudyQuestion.of_choices("Is it polite?", ["Yes", "No"]), name="polite")
    second = replace(StudyQuestion.of_choices("Is it correct?", ["Right", "Wrong"]), name="correct")
    with create_study(tmp_path / "study", sample, [first, second], annotators=["ann"]) as study:
        for _ in range(6):
            item = study.next_item("ann")
            study.submit("ann", item.id, {"polite": "Yes", "correct": "Right"})

    found = stratal.evaluate(tmp_path / "study", value="correct").report().to_dict()

    assert found["question"] == "Is it correct?"
    assert found["quantity"] == "accuracy"


def test_labels_of_every_kind_in_memory_are_read(units):
    sample, labels, table = sample_and_table(units)
    by_id = dict(zip(labels["id"].tolist(), labels["right"].tolist(), strict=True))
    other = dict(zip(labels["id"].tolist(), labels["right_b"].tolist(), strict=True))
    expected = stratal.evaluate(sample, labels, value="right", predicted=False).estimate.value
    from_table, read = stratal.Sample.from_labelled(table, value="right", proxy="confidence")

    assert stratal.evaluate(sample, by_id, predicted=False).estimate.value == expected
    assert stratal.evaluate(from_table, read).estimate.value == pytest.approx(expected)
    difference = stratal.evaluate(
        sample, {"right": by_id, "right_b": other}, estimand="difference:right,right_b"
    )
    assert difference.estimate.value == pytest.approx(np.mean(labels["right"] - labels["right_b"]), abs=0.05)


def test_answers_are_compared_as_declared(units):
    sample, labels, _ = sample_and_table(units)

    compared = stratal.evaluate(sample, labels, value="truth", predicted=True)

    assert compared.estimate.value == stratal.evaluate(sample, labels, value="truth").estimate.value


def test_a_difference_is_of_no_single_model(units):
    sample, labels, _ = sample_and_table(units)
    models = ["right", "right_b"]

    found = stratal.evaluate(sample, labels, estimand="difference:right,right_b", compare=models)

    assert not [note for note in found.to_dict()["notes"] if "the first of the models" in note]


@pytest.mark.parametrize(
    "given",
    [
        {"sample": True, "proxy": "confidence"},
        {"sample": True, "chosen": "random"},
        {"chosen": "random-within"},
        {"chosen": "by hand"},
        {"chosen": "all"},
        {"labels": True},
    ],
)
def test_evidence_that_contradicts_is_refused(units, given):
    sample, labels, table = sample_and_table(units)
    source = sample if "sample" in given else table
    answers = labels if {"sample", "labels"} & set(given) else None
    options = {name: given[name] for name in ("proxy", "chosen") if name in given}

    with pytest.raises(InputError):
        stratal.evaluate(source, answers, value="right", **options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A": ["pass"] * 80}, "is both a column and the name of a model"),
        ({"score": [n / 80 for n in range(80)]}, "differs between the rows of unit"),
    ],
)
def test_columns_of_a_long_table_that_mislead_are_refused(change, message):
    table = {**long_table(), **change}

    with pytest.raises(InputError, match=message):
        stratal.evaluate(table, model="model", proxy="score" if "score" in change else "none")


def test_an_unknown_model_of_a_long_table_is_named():
    with pytest.raises(InputError, match="unknown model 'C'"):
        stratal.evaluate(long_table(), model="model", compare=["A", "C"])


@pytest.mark.parametrize("word", ["NA", "nan", "-"])
def test_placeholders_of_empty_cells_need_to_be_named(units, word):
    _, _, table = sample_and_table(units)
    expected = stratal.evaluate(table, value="right", predicted=False)
    written = {**table, "right": [word if np.isnan(entry) else str(int(entry)) for entry in table["right"]]}

    found = stratal.evaluate(written, value="right", predicted=False, mapping={word: None})

    assert found.estimate.value == expected.estimate.value
    with pytest.raises(InputError, match="indicates that there is no answer"):
        stratal.evaluate(written, value="right", predicted=False)


def test_several_answers_of_a_unit_are_no_table(units):
    sample, labels, _ = sample_and_table(units)
    answers = {unit: [1, 0] for unit in labels["id"].tolist()}

    with pytest.raises(InputError, match="is a list"):
        stratal.evaluate(sample, answers)


def test_several_proxies_that_are_left_out_are_named(units):
    sample, labels, _ = sample_and_table(units, ("confidence", "second"))
    options = {"value": "right", "predicted": "none"}

    few = {name: values[:40] for name, values in labels.items()}

    with pytest.warns(stratal.StratalWarning):
        left_out = stratal.evaluate(sample, few, **options).to_dict()["notes"]
    first = stratal.evaluate(sample, labels, **options).to_dict()["notes"]
    used = stratal.evaluate(sample, labels, estimator="ppi++", **options).to_dict()["notes"]

    assert [note for note in left_out if "the 2 proxies are not used" in note]
    assert [note for note in first if "only the first 1 of 2 proxies are used" in note]
    assert not [note for note in used if "proxies are" in note]


def test_few_labels_of_a_random_sample_use_the_first_proxy(units):
    sample, labels, _ = sample_and_table(units, ("confidence", "second"))
    values = dict(zip(labels["id"], labels["right"], strict=True))

    estimate = stratal.estimate(sample, values)

    assert estimate.value == stratal.estimate(sample, values, proxy="confidence").value
    assert len(estimate.lam) == 1


@pytest.mark.parametrize("as_table", [False, True], ids=["sample", "table"])
def test_the_interval_that_is_asked_for_is_that_of_groups_verdicts_and_reports(units, as_table):
    sample, labels, table = sample_and_table(units)
    evidence = (table,) if as_table else (sample, labels)
    options = {"value": "right", "predicted": "none", "by": "site", "require": "value@north>=.9"}
    evaluation = stratal.evaluate(*evidence, **options, interval="normal")
    by_default = stratal.evaluate(*evidence, **options)

    north = evaluation.tables[-1].of(domain="north")
    ends = pytest.approx([*north.confidence_interval(0.95, "normal")])
    row, default_row = (result.to_dict()["domains"][0] for result in (evaluation, by_default))
    assert row["confidence_interval"] == ends
    assert default_row["confidence_interval"] != ends
    assert evaluation.verdicts[0]["confidence_interval"] == ends
    assert evaluation.report().to_dict()["estimate"]["domains"][0]["confidence_interval"] == ends
    with pytest.raises(InputError, match="available only for the mean of all units"):
        stratal.evaluate(*evidence, **options, interval="clopper-pearson")


def test_the_interval_of_a_report_is_that_of_its_groups(units):
    sample, labels, _ = sample_and_table(units)
    outcomes = dict(zip(labels["id"].tolist(), labels["right"].tolist(), strict=True))
    groups = stratal.estimate(sample, outcomes, by="site")
    content = stratal.findings(sample, outcomes, tables=[groups], interval="t").to_dict()

    found = [row["confidence_interval"] for row in content["estimate"]["domains"]]
    assert found == [pytest.approx([*row.confidence_interval(0.95, "t")]) for row in groups]


@pytest.mark.parametrize(("estimator", "corrected"), [("auto", True), ("horvitz-thompson", False)])
def test_each_group_names_its_estimator_and_a_report_describes_it(estimator, corrected):
    rng = np.random.default_rng(3)
    score = rng.beta(2, 1, 2000)
    outcomes = (rng.random(2000) < score).astype(float)
    language = np.where(rng.random(2000) < 0.5, "de", "en")
    population = stratal.Population.from_arrays(proxy=score, groups={"language": language})
    sample = stratal.plan(population, budget=120).draw(seed=1)
    labels = outcomes[sample.ids.astype(int)]
    evaluation = stratal.evaluate(sample, labels, by="language", estimator=estimator)

    described = evaluation.to_dict()
    assert described["estimator"] == "horvitz-thompson"
    for row in described["domains"]:
        assert row["estimator"] == ("ppi++" if corrected else "linearised")
        assert row["lam"] == [pytest.approx(0.6758, abs=1e-4)] * corrected
        assert row["interval_method"] == "clopper-pearson"
    sentences = " ".join(evaluation.report().to_dict()["method"]["sentences"])
    assert ("The estimate of a group is" in sentences) == corrected
    assert ("with λ = 0.6758" in sentences) == corrected
    assert ("Groups: corrected by the proxy (λ = 0.6758)" in str(evaluation)) == corrected
    # The λ is the one that the group's estimate has.
    if corrected:
        in_group = language == "de"
        member = in_group[sample.ids.astype(int)]
        weights = sample.weighting().weights[member]
        means = [
            weights @ values[sample.ids.astype(int)][member] / weights.sum() for values in (outcomes, score)
        ]
        row = next(row for row in described["domains"] if row["domain"] == "de")
        value = means[0] + row["lam"][0] * (score[in_group].mean() - means[1])
        assert row["estimate"] == pytest.approx(value)


def test_labels_keep_the_meaning_that_they_declare():
    ids = [f"u{number}" for number in range(100)]
    population = stratal.Population.from_arrays(ids=ids, proxy=[number / 100 for number in range(100)])
    sample = stratal.designs.SimpleRandom(budget=40).draw(population, seed=1)
    words = {unit: "good" if place % 4 else "poor" for place, unit in enumerate(sample.ids.tolist())}
    labels = Labels(ids=tuple(words), values=tuple(words.values()))

    for declared in ({"positive": "good"}, {"mapping": {"good": 1, "poor": 0}}):
        assert stratal.evaluate(sample, replace(labels, **declared)).estimate.value == pytest.approx(0.75)


@pytest.mark.filterwarnings("ignore:all labels are equal")
def test_intervals_of_labels_that_agree_are_printed_without_rounding_errors():
    """They were 99.99999999999999% to 100.0%, and the expected width 4.4e-15 points."""
    table = {"id": [str(number) for number in range(300)], "label": [*[1] * 100, *[None] * 200]}
    answer = str(stratal.evaluate(table, value="label", interval="t"))

    assert "100.0% (95% interval 100.0% to 100.0%)" in answer
    assert "about 0 points wide" in answer
    assert "e-1" not in answer


def many_classes(size=8):
    """Return a table with answers and labels of some classes, of which the last are the most frequent."""
    random = np.random.default_rng(0)
    classes = [f"class {number}" for number in range(size)]
    shares = np.arange(1, size + 1) / np.arange(1, size + 1).sum()
    labels = random.choice(classes, 300, p=shares)
    answers = np.where(random.random(300) < 0.8, labels, random.choice(classes, 300))
    table = {"id": [str(number) for number in range(300)], "answer": answers.tolist()}
    return {**table, "label": [*labels[:150].tolist(), *[None] * 150]}


def test_the_confusion_matrix_of_many_classes_has_the_most_frequent_ones():
    """It was empty, without a word."""
    table = many_classes()
    result = stratal.evaluate(table, value="label", predicted="answer", metric=["confusion"])
    (matrix,) = result.tables

    counts = Counter(label for label in table["label"] if label is not None)
    assert len(matrix) == 36
    assert {row.label["class"] for row in matrix} == {name for name, _ in counts.most_common(6)}
    cell = matrix.of(**{"class": "class 7", "answer": "class 7"})
    equal = [a == b == "class 7" for a, b in zip(table["answer"], table["label"], strict=True)]
    assert cell.value == pytest.approx(np.mean(equal[:150]))
    left_out = ", ".join(map(repr, sorted(name for name, _ in counts.most_common()[6:])))
    assert f"6 most frequent classes of the labels, without {left_out};" in str(result)

    options = {"value": "label", "predicted": "answer", "metric": ["confusion"]}
    (named,) = stratal.evaluate(table, classes=["class 0", "class 7"], **options).tables
    assert [row.label["class"] for row in named] == ["class 0", "class 0", "class 7", "class 7"]
    assert "most frequent" not in str(stratal.evaluate(many_classes(6), **options))
    # A class that is named twice is one class, which makes no matrix.
    repeated = stratal.evaluate(table, classes=["class 7", "class 7"], **options)
    assert len(repeated.tables[0]) == 36
    assert "name two or more" in str(repeated)


def test_answers_of_models_that_the_sample_stores_are_compared_with_labels_that_are_classes(tmp_path):
    draws = np.random.default_rng(4)
    truth = draws.choice(["cat", "dog"], 200)
    answers = {
        name: np.where(draws.random(200) < right, truth, "cow") for name, right in (("a", 0.9), ("b", 0.6))
    }
    population = stratal.Population.from_arrays(
        ids=[f"u{row}" for row in range(200)], groups={name: list(column) for name, column in answers.items()}
    )
    sample = stratal.designs.SimpleRandom(budget=80).draw(population, seed=2)
    rows = [int(unit[1:]) for unit in sample.ids.tolist()]
    file = tmp_path / "labels.csv"
    file.write_text("id,label\n" + "".join(f"u{row},{truth[row]}\n" for row in rows))

    found = stratal.evaluate(sample, file, compare=("a", "b")).to_dict()

    means = {row["model"]: row["mean"] for row in found["leaderboard"]}
    for name, column in answers.items():
        assert means[name] == pytest.approx(np.mean(column[rows] == truth[rows]))
        assert stratal.evaluate(sample, file, predicted=name).estimate.value == pytest.approx(means[name])
    with pytest.raises(InputError, match=r"no column 'c'.*columns of the sample with the models' answers"):
        stratal.evaluate(sample, file, compare=("a", "c"))
