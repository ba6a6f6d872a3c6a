"""Metrics of sets of tags: those of scikit-learn when every unit is labelled, however sets are written."""

import json
from dataclasses import replace

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn import metrics
from sklearn.preprocessing import MultiLabelBinarizer

import stratal
from stratal.errors import InputError, LabelError
from stratal.question import Outcome

N = 240
TAGS = ("billing", "login", "refund", "spam")


def write(rows, name):
    """Return sets as cells of one kind; order and repetitions differ from row to row."""
    if name == "lists":
        return rows
    if name == "json":
        return [json.dumps(row) for row in rows]
    return [name.join(row) or "[]" for row in rows]


@pytest.fixture(scope="module")
def table():
    draws = np.random.default_rng(5)
    true = [[tag for tag in TAGS if draws.random() < 0.35] for _ in range(N)]
    answer = [[tag for tag in TAGS if (draws.random() < 0.85) == (tag in row)] for row in true]
    for row in (*true, *answer):
        draws.shuffle(row)
        row.extend(row[:1])
    return {
        "true": true,
        "answer": answer,
        "proxy": draws.uniform(0.4, 1.0, N),
        "site": draws.choice(["north", "south"], N).tolist(),
    }


def sampled(table, form="lists", budget=N, **more):
    population = stratal.Population.from_arrays(
        ids=[f"u{row}" for row in range(N)],
        proxy=table["proxy"],
        groups={"answer": write(table["answer"], form), "site": table["site"]},
        predicted="answer",
        tags=form if form in ";|," else None,
        **more,
    )
    return stratal.designs.SimpleRandom(budget=budget).draw(population, seed=3)


def labelled(table, sample, form="lists"):
    cells = write(table["true"], form)
    return {unit: cells[int(unit[1:])] for unit in sample.ids.tolist()}


def indicators(table, rows=range(N)):
    binarizer = MultiLabelBinarizer(classes=TAGS)
    return [binarizer.fit_transform([table[name][row] for row in rows]) for name in ("true", "answer")]


def peers(true, answer):
    """Return each estimand's value by scikit-learn."""
    given = {"y_true": true, "y_pred": answer}
    values = {
        "accuracy": metrics.accuracy_score(**given),
        "mean_jaccard": metrics.jaccard_score(**given, average="samples", zero_division=1),
        "hamming_loss": metrics.hamming_loss(**given),
    }
    functions = {
        "precision": metrics.precision_score,
        "recall": metrics.recall_score,
        "f1": metrics.f1_score,
        "jaccard": metrics.jaccard_score,
    }
    for name, function in functions.items():
        for average in ("macro", "micro"):
            text = f"average:{name}" + (",average=micro" if average == "micro" else "")
            values[text] = function(**given, average=average)
        each = function(**given, average=None)
        values |= {f"{name}:{tag}": each[at] for at, tag in enumerate(TAGS)}
    return values


@pytest.mark.parametrize("form", ["lists", "json", ";", "|", ","])
def test_a_census_has_the_values_of_scikit_learn(table, form):
    sample = sampled(table, form)
    labels = labelled(table, sample, form)

    for text, value in peers(*indicators(table)).items():
        estimate = stratal.estimate(sample, labels, estimand=text, target="population")
        assert estimate.value == pytest.approx(value, abs=1e-12), text
        assert estimate.standard_error == pytest.approx(0.0, abs=1e-9), text


def test_groups_have_the_values_of_scikit_learn(table):
    sample = sampled(table)
    labels = labelled(table, sample)
    names = ("accuracy", "mean_jaccard", "f1:spam", "average:f1", "average:recall,average=micro")

    for text in names:
        rows = (
            stratal.estimate(sample, labels, estimand=text, by="site", estimator="horvitz-thompson")
            if (text in names[:2])
            else stratal.estimate(sample, labels, estimand=text, by="site")
        )
        for row in rows:
            members = [at for at in range(N) if table["site"][at] == row.label["domain"]]
            value = peers(*indicators(table, members))[text]
            assert row.value == pytest.approx(value, abs=1e-12), (text, row.label)


def test_a_table_of_metrics_has_a_row_for_each_tag_and_average(table):
    sample = sampled(table)
    rows = stratal.estimate(sample, labelled(table, sample), estimand="metrics")
    found = {(row.label["metric"], row.label["class"]): row.value for row in rows}
    expected = peers(*indicators(table))

    assert len(found) == 1 + 3 * (len(TAGS) + 1)
    assert found["accuracy", None] == pytest.approx(expected["accuracy"])
    assert found["f1", "spam"] == pytest.approx(expected["f1:spam"])
    assert found["recall", "macro"] == pytest.approx(expected["average:recall"])


def test_order_and_repetitions_of_tags_do_not_matter(table):
    sample = sampled(table)
    labels = labelled(table, sample)
    other = {unit: [*row[::-1], *row] for unit, row in labels.items()}

    for text in ("accuracy", "average:f1,average=micro", "kappa"):
        ours, theirs = (stratal.estimate(sample, given, estimand=text) for given in (labels, other))
        assert ours.to_dict() == theirs.to_dict()


def test_the_empty_set_is_a_label_and_a_missing_cell_is_none(table):
    sample = sampled(table, budget=100)
    labels = labelled(table, sample)
    first = sample.ids[0]

    assert stratal.estimate(sample, {**labels, first: []}, estimand="accuracy").n == 100
    assert stratal.estimate(sample, {**labels, first: "[]"}, estimand="mean_jaccard").n == 100
    assert stratal.estimate(sample, {**labels, first: None}, estimand="accuracy").n == 99
    # Lists of one tag at most are labels of tools that allow several, unless answers are sets.
    single = {unit: row[:1] for unit, row in labels.items()}
    assert stratal.estimate(sample, single, estimand="average:f1").n == 100


def test_two_empty_sets_are_alike():
    population = stratal.Population.from_arrays(groups={"answer": [[], ["a"], []]}, predicted="answer")
    sample = stratal.designs.SimpleRandom(budget=3).draw(population, seed=1)
    labels = {0: [], 1: ["a"], 2: ["a"]}

    assert stratal.estimate(sample, labels, estimand="mean_jaccard").value == pytest.approx(2 / 3)
    assert stratal.estimate(sample, labels, estimand="accuracy").value == pytest.approx(2 / 3)


def test_a_mixture_is_one_error_with_the_row(table):
    sample = sampled(table)
    labels = labelled(table, sample)
    third = sample.ids[2]

    with pytest.raises(LabelError, match=f"the label of id '{third}' is not a set of tags"):
        stratal.estimate(sample, {**labels, third: "spam"})
    answers = [*write(table["answer"][:-1], "json"), "spam"]
    population = stratal.Population.from_arrays(groups={"answer": answers}, predicted="answer")
    with pytest.raises(InputError, match=f"'answer' are sets of tags, but the answer of id '{N - 1}' is not"):
        stratal.designs.SimpleRandom(budget=N).draw(population, seed=1)


def test_answers_that_look_like_lists_can_be_declared_to_be_none():
    population = stratal.Population.from_arrays(
        groups={"answer": ["[1]", "no list", "[2]"]}, predicted="answer", tags="none"
    )
    sample = stratal.designs.SimpleRandom(budget=3).draw(population, seed=1)

    assert not sample.question.outcome.holds_sets
    assert stratal.estimate(sample, {0: "[1]", 1: "no list", 2: "[1]"}).value == pytest.approx(2 / 3)


def test_tags_that_differ_in_case_alone_are_refused(table):
    sample = sampled(table)
    labels = labelled(table, sample)
    first = sample.ids[0]

    with pytest.raises(LabelError, match="has the tag 'Spam', but the answers have 'spam'"):
        stratal.estimate(sample, {**labels, first: ["Spam"]})


def test_an_unknown_tag_is_an_error_with_the_list(table):
    sample = sampled(table)

    with pytest.raises(InputError, match=r"no answer or label has the tag 'spma' .allowed: .*spam"):
        stratal.estimate(sample, labelled(table, sample), estimand="f1:spma")


def test_labels_may_have_tags_that_no_answer_has(table):
    sample = sampled(table)
    labels = {**labelled(table, sample), sample.ids[0]: ["other"]}
    estimate = stratal.estimate(sample, labels, estimand="recall:other")

    assert estimate.value == 0
    assert "labels have a tag that no answer has: 'other'" in estimate.to_dict()["notes"]


def test_right_and_wrong_are_labels_of_sets_too(table):
    sample = sampled(table)
    right = {
        unit: int(set(row) == set(table["answer"][int(unit[1:])]))
        for unit, row in labelled(table, sample).items()
    }
    value = peers(*indicators(table))["accuracy"]

    assert stratal.estimate(sample, right).value == pytest.approx(value)
    assert stratal.estimate(sample, right, predicted=False).value == pytest.approx(value)
    with pytest.raises(LabelError, match="is not a set of tags"):
        stratal.estimate(sample, right, estimand="average:f1")


def test_balanced_accuracy_is_of_classes(table):
    sample = sampled(table)

    with pytest.raises(InputError, match="balanced accuracy requires classes"):
        stratal.estimate(sample, labelled(table, sample), estimand="balanced_accuracy")


def test_sets_can_only_be_compared_with_sets():
    population = stratal.Population.from_arrays(groups={"answer": ["a", "b"]}, predicted="answer")
    sample = stratal.designs.SimpleRandom(budget=2).draw(population, seed=1)

    with pytest.raises(LabelError, match="the label of id '0' is a list, and answers are not sets of tags"):
        stratal.estimate(sample, {0: ["a", "b"], 1: ["b"]})
    with pytest.raises(InputError, match="'mean_jaccard' compares sets of tags"):
        stratal.estimate(sample, {0: "a", 1: "b"}, estimand="mean_jaccard")


def test_a_sample_keeps_the_tags_in_its_file(table, tmp_path):
    sample = sampled(table, ";", budget=40)
    read = stratal.Sample.read(sample.write(tmp_path / "sample.parquet"))

    assert read.question.outcome.tags == TAGS
    assert read.question.outcome.tag_format == ";"
    assert read == sample


def test_answers_may_come_with_the_labels(table):
    population = stratal.Population.from_arrays(ids=[f"u{row}" for row in range(N)])
    sample = stratal.designs.SimpleRandom(budget=N).draw(population, seed=3)
    answers = {f"u{row}": given for row, given in enumerate(table["answer"])}
    both = {"label": labelled(table, sample), "predicted": answers}

    for text in ("accuracy", "average:f1,average=micro", "mean_jaccard"):
        value = stratal.estimate(sample, both, estimand=text).value
        assert value == pytest.approx(peers(*indicators(table))[text])


def test_a_table_on_a_connection_may_hold_lists(table):
    connection = duckdb.connect()
    frame = pa.table({"id": [f"u{row}" for row in range(N)], "answer": table["answer"]})
    connection.register("frame", frame)
    connection.execute("CREATE TABLE held AS SELECT * FROM frame")
    source = ibis.duckdb.from_connection(connection).table("held")
    population = stratal.Population.from_table(source, predicted="answer")
    sample = stratal.designs.SimpleRandom(budget=N).draw(population, seed=3)

    assert sample.question.outcome.tags == TAGS
    value = stratal.estimate(sample, labelled(table, sample), estimand="average:f1").value
    assert value == pytest.approx(peers(*indicators(table))["average:f1"])


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "pandas", "polars", "arrow"])
def test_sets_are_read_from_every_kind_of_table(table, tmp_path, kind):
    columns = {"id": [f"u{row}" for row in range(N)], "answer": table["answer"], "label": table["true"]}
    path = tmp_path / f"table.{kind}"
    if kind == "csv":
        pd.DataFrame(
            {**columns, "answer": write(table["answer"], "json"), "label": write(table["true"], "json")}
        ).to_csv(path, index=False)
    elif kind == "jsonl":
        pd.DataFrame(columns).to_json(path, orient="records", lines=True)
    else:
        pl.DataFrame(columns).write_parquet(path)
    frames = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}
    source = frames[kind](columns) if kind in frames else path
    make = stratal.Population.from_table if kind in frames else stratal.Population.read
    population = make(source, predicted="answer")
    sample = stratal.designs.SimpleRandom(budget=N).draw(population, seed=3)
    labels = labelled(table, sample) if kind in frames else stratal.read_labels(path)
    elsewhere, own = stratal.Sample.from_labelled(
        source, value="label", predicted="answer", population_size=N
    )

    value = peers(*indicators(table))["average:f1,average=micro"]
    for each, given in ((sample, labels), (elsewhere, own)):
        estimate = stratal.estimate(each, given, estimand="average:f1,average=micro")
        assert estimate.value == pytest.approx(value)


PLANNED = ("accuracy", "mean_jaccard", "f1:spam", "recall:login", "average:f1", "average:f1,average=micro")


@pytest.mark.parametrize("form", ["json", ";"])
def test_a_plan_expects_the_metrics_of_sets(table, form):
    population = stratal.Population.from_arrays(
        ids=[f"u{row}" for row in range(N)],
        proxy=table["proxy"],
        groups={"answer": write(table["answer"], form)},
        predicted="answer",
        tags=form if form == ";" else None,
    )
    for text in PLANNED:
        plan = stratal.plan(population, budget=80, estimand=text)
        assert 0 < plan.recommended.expected_standard_error < 0.2, text
        sample = plan.draw(seed=2)
        labels = labelled(table, sample, form)
        estimate = stratal.estimate(sample, labels)
        value = peers(*indicators(table))[text]
        assert abs(estimate.value - value) < 5 * estimate.standard_error, text
        more = stratal.next_round(sample, labels, additional=20)
        assert more.size == 100
        assert more.question.outcome.tags == TAGS
    with pytest.raises(InputError, match="no answer or label has the tag 'spma'"):
        stratal.plan(population, budget=80, estimand="f1:spma")


def test_models_that_answer_with_sets_are_compared_and_selected(table):
    draws = np.random.default_rng(2)
    worse = [[tag for tag in TAGS if (draws.random() < 0.6) == (tag in row)] for row in table["true"]]
    columns = {}
    for name, rows in {"good": table["answer"], "bad": worse}.items():
        columns[name] = [json.dumps(draws.permutation(row).tolist()) for row in rows]
    population = stratal.Population.from_arrays(ids=[f"u{row}" for row in range(N)], groups=columns)
    right = {
        name: np.mean([set(json.loads(a)) == set(b) for a, b in zip(cells, table["true"], strict=True)])
        for name, cells in columns.items()
    }
    sample = stratal.designs.SimpleRandom(budget=N).draw(population, seed=1)
    difference = stratal.estimate(
        sample, labelled(table, sample), estimand="difference:good,bad", target="population"
    )
    assert difference.value == pytest.approx(right["good"] - right["bad"])

    selection = stratal.select(population, ["good", "bad"], seed=1)
    while not selection.done:
        selection = selection.update(labelled(table, selection.sample))
    assert selection.winner == "good"
    with pytest.raises(InputError, match="sets of tags can only be selected by exact match"):
        stratal.select(population, ["good", "bad"], criterion="f1")


def test_annotators_agree_by_exact_set(table):
    sample = sampled(table, budget=30)
    rows = labelled(table, sample)
    ids = [unit for unit in sample.ids.tolist() for _ in range(2)]
    first = sample.ids[0]
    values = [row for unit in sample.ids.tolist() for row in (rows[unit], rows[unit][::-1])]
    labels = stratal.Labels(ids=tuple(ids), values=tuple(values), annotators=("ann", "bob") * 30)

    assert stratal.estimate(sample, labels, estimand="average:f1").n == 30
    values[1] = ["billing", "login", "refund", "spam"] if len(set(rows[first])) < 4 else []
    other = stratal.Labels(ids=tuple(ids), values=tuple(values), annotators=("ann", "bob") * 30)
    # A tie of two sets is not a label.
    assert stratal.estimate(sample, other, estimand="average:f1").n == 29


def test_a_judge_of_sets_agrees_by_exact_set(table):
    sample = sampled(table)
    report = stratal.estimate(sample, labelled(table, sample), estimand="agreement:answer")

    assert report.value == pytest.approx(peers(*indicators(table))["accuracy"])


def test_answers_of_a_new_version_are_sets_too(table, tmp_path, run_command):
    sample = sampled(table, "json")
    sample.write(tmp_path / "sample.parquet")
    cells = labelled(table, sample, "json")
    pd.DataFrame({"id": list(cells), "label": list(cells.values())}).to_csv(
        tmp_path / "labels.csv", index=False
    )
    new = [json.dumps(sorted(set(row))) for row in table["true"]]
    pd.DataFrame({"id": [f"u{row}" for row in range(N)], "answer": new}).to_csv(
        tmp_path / "new.csv", index=False
    )
    words = [
        "estimate",
        tmp_path / "sample.parquet",
        tmp_path / "labels.csv",
        "--against",
        tmp_path / "new.csv",
    ]
    done = run_command(*words, "--json")

    assert done.status == 0, done.message
    assert json.loads(done.stdout)["estimate"] == 1.0


def test_a_draw_states_how_to_write_tags_and_is_extended(table, tmp_path, run_command):
    answers = write(table["answer"], ";")
    path = tmp_path / "predictions.csv"
    pd.DataFrame({"id": [f"u{row}" for row in range(N)], "answer": answers, "proxy": table["proxy"]}).to_csv(
        path, index=False
    )
    options = ["--predicted", "answer", "--tags", ";", "--proxy", "proxy", "--budget", "60"]
    first = run_command("draw", path, *options, "--output", tmp_path / "audit")
    assert "with sets of tags such as billing;login, or [] for no tags)" in first.stdout
    header, *rows = (tmp_path / "audit" / "to_label.csv").read_text().splitlines()
    assert header == "id,label"
    true = write(table["true"], ";")
    lines = [f"{row.rstrip(',')},{true[int(row[1:-1])]}" for row in rows]
    (tmp_path / "labels.csv").write_text("\n".join([header, *lines]))
    again = [
        "--extend",
        tmp_path / "audit" / "sample.parquet",
        "--labels",
        tmp_path / "labels.csv",
        "--additional",
        "20",
    ]
    done = run_command("draw", *again, "--output", tmp_path / "round2")
    assert done.status == 0, done.message
    assert stratal.Sample.read(tmp_path / "round2" / "sample.parquet").question.outcome.tag_format == ";"


def test_an_older_sample_of_json_lists_is_read_as_one_of_sets(table, tmp_path):
    sample = sampled(table, "json", budget=40)
    outcome = Outcome(scale="binary")
    old = replace(sample, question=replace(sample.question, outcome=outcome))
    read = stratal.Sample.read(old.write(tmp_path / "sample.parquet"))

    assert read.question.outcome.holds_sets
    assert set(read.question.outcome.tags) <= set(TAGS)
