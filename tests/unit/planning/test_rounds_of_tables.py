"""A further round of a table that was labelled elsewhere."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from tests.e2e.pasted import next_line, run, write
from tests.tiers import sized

import stratal
from stratal.errors import InputError

ROWS = 600


def table_of(seed=0, *, labels=120, by_score=False):
    """Return a table with labels of random rows, or of those with a low score, and the outcomes of all."""
    rng = np.random.default_rng(seed)
    score = rng.beta(4, 1.5, ROWS).round(3)
    outcomes = (rng.random(ROWS) < score).astype(int)
    order = np.argsort(score + rng.normal(0, 0.05, ROWS)) if by_score else rng.permutation(ROWS)
    is_labelled = np.isin(np.arange(ROWS), order[:labels])
    table = {
        "id": [f"u{row}" for row in range(ROWS)],
        "confidence": score.tolist(),
        "site": [["north", "south"][row % 2] for row in range(ROWS)],
        "label": [int(y) if here else None for y, here in zip(outcomes, is_labelled, strict=True)],
    }
    return table, {f"u{row}": float(outcomes[row]) for row in range(ROWS)}


@pytest.mark.parametrize("chosen", ["random", "random-within:site"])
def test_labels_at_random_are_the_first_round(chosen):
    table, truth = table_of()
    pilot = stratal.evaluate(table, chosen=chosen)

    larger = pilot.next_round(additional=80)

    labelled = {unit for unit, label in zip(table["id"], table["label"], strict=True) if label is not None}
    assert set(larger.ids[larger.round == 1].tolist()) == labelled
    assert len(set(larger.ids.tolist())) == larger.size == 200
    assert np.all(larger.n_h >= np.bincount(larger.stratum[:120], minlength=len(larger.n_h)))
    estimate = stratal.estimate(larger, {unit: truth[unit] for unit in larger.ids.tolist()})
    assert np.mean(list(truth.values())) in estimate.confidence_interval(0.999)


def test_a_third_round_keeps_the_units_of_both():
    table, truth = table_of()
    larger = stratal.evaluate(table).next_round(additional=60)
    labels = {unit: truth[unit] for unit in larger.ids.tolist()}

    largest = stratal.next_round(larger, labels, additional=40)

    assert largest.ids[:180].tolist() == larger.ids.tolist()
    assert np.bincount(largest.round).tolist() == [0, 120, 60, 40]
    assert len(set(largest.ids.tolist())) == 220


def test_without_a_proxy_it_is_one_larger_simple_random_sample():
    table, _ = table_of()
    larger = stratal.evaluate(table, proxy="none").next_round(additional=60)

    assert (larger.design.kind, larger.size) == ("simple-random", 180)


@pytest.mark.filterwarnings("ignore::stratal.errors.StratalWarning")
def test_labels_of_unknown_choice_inform_the_allocation_and_not_the_estimate():
    table, truth = table_of(by_score=True)
    labelled = {unit for unit, label in zip(table["id"], table["label"], strict=True) if label is not None}

    new = stratal.evaluate(table, chosen="unknown").next_round(additional=100)

    assert new.size == 100
    assert set(new.round.tolist()) == {1}
    assert len(labelled & set(new.ids.tolist())) < 100
    assert new.question.chosen is None
    estimate = stratal.estimate(new, {unit: truth[unit] for unit in new.ids.tolist()})
    assert np.mean(list(truth.values())) in estimate.confidence_interval(0.999)


@pytest.mark.filterwarnings("ignore::stratal.errors.StratalWarning")
def test_labels_that_are_not_random_are_no_first_round():
    table, _ = table_of(by_score=True)

    with pytest.raises(InputError, match="not a random sample of the table"):
        stratal.evaluate(table).next_round(additional=100)


def test_clusters_have_no_next_round():
    table, _ = table_of()
    table["user"] = [f"user{row // 6}" for row in range(ROWS)]
    table["label"] = [row % 2 if row < 180 else None for row in range(ROWS)]

    with pytest.raises(InputError, match="a next round is not possible"):
        stratal.evaluate(table).next_round(additional=100)


@pytest.mark.filterwarnings("ignore::stratal.errors.StratalWarning")
def test_intervals_of_both_rounds_cover():
    draws = sized(60, 400)
    covered = 0
    errors = []
    for seed in range(draws):
        table, truth = table_of(seed, labels=80)
        larger = stratal.evaluate(table).next_round(additional=80)
        estimate = stratal.estimate(larger, {unit: truth[unit] for unit in larger.ids.tolist()})
        mean = np.mean(list(truth.values()))
        covered += mean in estimate.confidence_interval(0.95)
        errors.append(estimate.value - mean)
    # Three standard errors of a share of .95.
    assert covered / draws >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / draws)
    # A simple random sample of 160 has a standard error of .029.
    assert np.std(errors) < 0.029


def test_the_command_writes_the_labels_of_the_first_round(run_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table, truth = table_of()
    write("table.csv", list(table), zip(*table.values(), strict=True))

    printed = run_command(
        "draw", "--extend", "table.csv", "--additional", "50", "--show", "site", "--output", "more"
    )
    with open("more/to_label.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 50
    assert {row["site"] for row in rows} == {"north", "south"}
    write("more/to_label.csv", list(rows[0]), [[*list(row.values())[:-1], truth[row["id"]]] for row in rows])
    result = json.loads(run_command(*next_line(printed.stdout).split(), "--json").stdout)

    assert result["n"] == 170
    low, high = result["confidence_interval"]
    assert low <= np.mean(list(truth.values())) <= high


def test_the_sample_of_both_rounds_has_the_groups_that_were_named(run_command, tmp_path, monkeypatch):
    """The option was accepted, and the sample had no column of groups."""
    monkeypatch.chdir(tmp_path)
    table, truth = table_of()
    write("table.csv", list(table), zip(*table.values(), strict=True))
    (line,) = [
        line.removeprefix("To label N more rows: stratal ")
        for line in run_command("doctor", "table.csv").stdout.splitlines()
        if line.startswith("To label")
    ]

    run_command(*line.replace("N", "50").replace("DIR", "more").split(), "--seed", "5")
    with open("more/to_label.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    write("more/to_label.csv", list(rows[0]), [[*list(row.values())[:-1], truth[row["id"]]] for row in rows])
    estimate = ["estimate", "more/sample.parquet", "more/labels.csv", "more/to_label.csv", "--by", "site"]
    groups = json.loads(run_command(*estimate, "--json").stdout)["domains"]

    assert stratal.Sample.read("more/sample.parquet").seed == 5
    assert {row["domain"]: row["n"] > 50 for row in groups} == {"north": True, "south": True}
    refused = run_command(
        "draw", "--extend", "table.csv", "--additional", "9", "--groups", "town", "--output", "x"
    )
    assert "no column 'town'" in refused.message


def test_the_strata_of_a_further_round_have_new_and_earlier_units_apart(run_command, tmp_path, monkeypatch):
    """The column to label was the sum of both."""
    monkeypatch.chdir(tmp_path)
    table, _ = table_of()
    write("table.csv", list(table), zip(*table.values(), strict=True))
    printed = run_command("draw", "--extend", "table.csv", "--additional", "50", "--output", "more").stdout
    counts = [line.split()[-2:] for line in printed.splitlines() if line.startswith(" confidence")]

    assert sum(int(new) for new, _ in counts) == 50
    assert sum(int(earlier) for _, earlier in counts) == 120


def test_stored_groups_have_no_effect_on_a_sample():
    table, truth = table_of()
    sample = stratal.evaluate(table).next_round(additional=20)
    labels = {unit: truth[unit] for unit in sample.ids.tolist()}
    with pytest.raises(InputError, match="--groups would have no effect"):
        stratal.evaluate(sample, labels, groups=("site",))


def test_the_column_of_groups_is_one_name():
    table, _ = table_of()
    with pytest.raises(InputError, match="by must be the name of a column"):
        stratal.evaluate(table, by=("site",))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ([], "requires the number of rows to add"),
        (["--additional", "5", "--labels", "table.csv"], "a table already contains its"),
        (["--additional", "5", "--show", "confidence"], "would influence the annotators"),
        (["--additional", "5", "--show", "CONFIDENCE"], "would influence the annotators"),
        (["--additional", "5000"], "this number of units cannot be added"),
    ],
)
def test_what_a_round_of_a_table_refuses(run_command, tmp_path, monkeypatch, options, problem):
    monkeypatch.chdir(tmp_path)
    table, _ = table_of()
    write("table.csv", list(table), zip(*table.values(), strict=True))

    refused = run_command("draw", "--extend", "table.csv", *options, "--output", "more")

    assert problem in refused.message
    assert not (tmp_path / "more").exists()


def test_a_half_width_that_is_reached_draws_nothing(run_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table, _ = table_of()
    write("table.csv", list(table), zip(*table.values(), strict=True))

    printed = run_command("draw", "--extend", "table.csv", "--half-width", ".2", "--output", "more").stdout

    assert "No more labels: the interval is narrow enough" in printed
    assert not (tmp_path / "more").exists()


def test_a_new_sample_after_labels_of_whole_groups_is_of_single_units():
    rng = np.random.default_rng(7)
    question = np.repeat(np.arange(100), 5)
    score = rng.random(500).round(3)
    label = [
        int(rng.random() < value) if number < 30 else None
        for value, number in zip(score, question, strict=True)
    ]
    table = {
        "id": [f"r{row}" for row in range(500)],
        "question": [f"q{number}" for number in question],
        "score": score.tolist(),
        "label": label,
    }
    evaluation = stratal.evaluate(table, chosen="unknown")
    sample = evaluation.next_round(additional=60)

    assert evaluation.sample.question.cluster == "question"
    assert sample.question.cluster is None
    assert sample.design.kind == "stratified"


def test_the_sample_stores_what_labels_count_as(run_command, tmp_path, monkeypatch):
    """The option had to be repeated for the estimate."""
    monkeypatch.chdir(tmp_path)
    table, truth = table_of()
    words = {1: "good", 0: "bad", None: ""}
    table["label"] = [words[label] for label in table["label"]]
    write("table.csv", list(table), zip(*table.values(), strict=True))
    run_command(
        "draw", "--extend", "table.csv", "--additional", "50", "--positive", "good", "--output", "more"
    )
    with open("more/to_label.csv", newline="") as stream:
        ids = [row["id"] for row in csv.DictReader(stream)]
    write("more/to_label.csv", ["id", "label"], [[unit, words[int(truth[unit])]] for unit in ids])
    files = ["more/labels.csv", "more/to_label.csv"]
    result = json.loads(run_command("estimate", "more/sample.parquet", *files, "--json").stdout)

    low, high = result["confidence_interval"]
    assert low <= np.mean(list(truth.values())) <= high
    assert stratal.Sample.read("more/sample.parquet").question.outcome.positive == "good"


@pytest.mark.parametrize(
    "option", [("--missing", "own-stratum"), ("--delimiter", ","), ("--looks", "2"), ("--engine", "spark")]
)
def test_options_for_files_of_predictions_are_refused(run_command, tmp_path, monkeypatch, option):
    monkeypatch.chdir(tmp_path)
    table, _ = table_of()
    write("table.csv", list(table), zip(*table.values(), strict=True))
    refused = run_command("draw", "--extend", "table.csv", "--additional", "5", *option, "--output", "more")

    assert f"{option[0]} would have no effect" in refused.message
    assert not (tmp_path / "more").exists()


def fill(path):
    """Label every unit of a table to label."""
    with path.open(newline="") as stream:
        header, *rows = csv.reader(stream)
    position = header.index("label")
    for row, entries in enumerate(rows):
        entries[position] = str(row % 2)
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([header, *rows])


def test_a_further_round_of_a_table_of_several_annotators_can_be_estimated(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table, _ = table_of()
    first = table.pop("label")
    second = [1 - label if label is not None and row % 9 == 0 else label for row, label in enumerate(first)]
    columns = table | {"ann": first, "ben": second}
    write("tab.csv", [*columns], zip(*columns.values(), strict=True))

    line = next_line(run("draw --extend tab.csv --value ann,ben --additional 20 --output y6"))
    fill(tmp_path / "y6" / "to_label.csv")

    sample, *files = line.split()[1:4]
    evaluation = stratal.evaluate(sample, files)
    assert evaluation.sample.size == 140
    assert evaluation.labels.answered == 260
    assert {*evaluation.labels.annotators} == {"ann", "ben", ""}


@pytest.fixture
def labelled_sample(tmp_path, monkeypatch):
    """Draw a sample, and write labels of which the second column has a word for no answer."""
    monkeypatch.chdir(tmp_path)
    table, truth = table_of()
    write("pop.csv", ["id", "confidence"], zip(table["id"], table["confidence"], strict=True))
    run("draw pop.csv --proxy confidence --budget 40 --output a")
    ids = stratal.Sample.read("a/sample.parquet").ids.tolist()
    second = ["TODO" if row % 10 == 0 else row % 2 for row in range(len(ids))]
    answers = [[unit, int(truth[unit]), second[row]] for row, unit in enumerate(ids)]
    write("a/lab.csv", ["id", "ann", "ben"], answers)


@pytest.mark.parametrize(("value", "answers"), [("ann", 60), ("ben", 56), ("ann,ben", 96)])
def test_the_next_command_names_the_columns_of_labels(tmp_path, labelled_sample, value, answers):
    options = f"--labels a/lab.csv --value {value} --map TODO= --additional 20 --output b"
    line = next_line(run(f"draw pop.csv --extend a/sample.parquet {options}"))
    fill(tmp_path / "b" / "to_label.csv")

    assert line == f"estimate b/sample.parquet a/lab.csv b/to_label.csv --value {value}"
    run(line)
    evaluation = stratal.evaluate("b/sample.parquet", line.split()[2:4], value=value)
    assert sum(isinstance(entry, str) and entry != "TODO" for entry in evaluation.labels.values) == answers


def test_the_next_command_without_further_units_repeats_how_labels_are_read(labelled_sample):
    extending = "draw pop.csv --extend a/sample.parquet --labels a/lab.csv --half-width 0.4 --output b"
    line = next_line(run(f"{extending} --value ann,ben --map TODO="))

    assert line == "estimate a/sample.parquet a/lab.csv --value ann,ben --map TODO="
    assert "76 answers" in run(line)


def test_the_next_command_without_further_rows_repeats_how_the_table_is_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table, _ = table_of()
    first = table.pop("label")
    second = ["TODO" if label is not None and row % 7 == 0 else label for row, label in enumerate(first)]
    columns = table | {"ann": first, "ben": second}
    write("tab.csv", [*columns], zip(*columns.values(), strict=True))
    options = "--value ann,ben --map TODO= --proxy confidence --chosen random"

    line = next_line(run(f"draw --extend tab.csv {options} --half-width 0.4 --output y"))

    assert line.startswith("estimate tab.csv ")
    assert all(option in line for option in options.split(" --"))
    run(line)
