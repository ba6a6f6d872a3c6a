"""A second look: which items are written, what replaces what, and what the report says of it."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.e2e.pasted import write

import stratal
from stratal.errors import LabelError
from stratal.metrics.disagreement_review import write_disagreements
from stratal.study.opening import open_study


@pytest.fixture
def judged(tmp_path, monkeypatch):
    """Return a sample of 40 units, with labels of which each fifth differs from the judge's verdict."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    verdicts = rng.choice(["pass", "fail"], 200, p=[0.7, 0.3])
    population = stratal.Population.from_arrays(
        ids=np.arange(200),
        proxy={"sure": rng.random(200).round(3)},
        groups={"verdict": verdicts, "other": np.where(rng.random(200) < 0.5, "pass", verdicts)},
        show={"text": [f"=answer {k}" for k in range(200)]},
    )
    sample = stratal.designs.SimpleRandom(budget=40).draw(population, seed=1)
    labels = sample.groups["verdict"].copy()
    labels[::5] = np.where(labels[::5] == "pass", "fail", "pass")
    sample.write("s.parquet")
    write("l.csv", ["id", "label"], [*zip(sample.ids.tolist(), labels.tolist(), strict=True)])
    return sample, labels


def filled(path, answers):
    """Fill in the last column of a file, and return its rows."""
    with open(path, newline="") as stream:
        head, *rows = csv.reader(stream)
    for row, answer in zip(rows, answers, strict=False):
        row[-1] = answer
    write(path, head, rows)
    return head, rows


def test_items_on_which_the_judge_differs_are_written_the_surest_first(judged):
    sample, labels = judged
    count = write_disagreements(sample, labels, ["verdict"], "again.csv")
    head, rows = filled("again.csv", [])
    by_id = dict(zip(map(str, sample.ids.tolist()), range(40), strict=True))
    sure = [sample.proxies[by_id[row[0]], 0] for row in rows]

    assert count == len(rows) == 8
    assert head == ["id", "text", "sure", "verdict", "differs_from", "first_label", "label"]
    assert all(row[3] != row[5] == labels[by_id[row[0]]] and row[6] == "" for row in rows)
    assert sure == sorted(sure, reverse=True)
    assert rows[0][1].startswith("'=")  # no spreadsheet runs it


def test_items_on_which_more_judges_differ_come_first(judged):
    sample, labels = judged
    write_disagreements(sample, labels, ["verdict", "other"], "again.csv")
    names = [row[-3] for row in filled("again.csv", [])[1]]

    assert names == sorted(names, key=lambda text: -len(text.split()))
    assert {"verdict other", "other"} <= {*names}


def test_scores_on_the_other_side_of_the_labels_are_looked_at_again(judged):
    sample, _ = judged
    labels = np.arange(40) % 2.0
    count = write_disagreements(sample, labels, ["sure"], "again.csv")

    assert count == np.sum(np.abs(labels - sample.proxies[:, 0]) > 0.5)


@pytest.mark.usefixtures("judged")
def test_answers_of_a_second_look_replace_the_first_and_keep_them(run_command):
    words = ["estimate", "s.parquet", "l.csv", "--positive", "pass", "--judge", "verdict"]
    done = run_command(*words, "--disagreements", "again.csv")
    not_yet = run_command(*words[:3], "again.csv", *words[3:])
    _, rows = filled("again.csv", [])
    # The first three labels were wrong, the next two right; nobody has looked at the others yet.
    filled("again.csv", [row[3] for row in rows[:3]] + [row[5] for row in rows[3:5]])
    labels = stratal.read_labels("l.csv", "again.csv")
    before, after = (
        json.loads(run_command(*words[:3], *more, *words[3:], "--json").stdout)
        for more in ([], ["again.csv"])
    )
    report = run_command("report", "s.parquet", "l.csv", "again.csv", *words[3:], "--output", "r.md")

    assert "Disagreements: 8 items in again.csv" in done.stdout
    assert not_yet.status == 0
    assert "review (again.csv): nothing is filled in yet" in not_yet.stdout
    assert len(labels.ids) == 40
    assert sorted(labels.replaced.ids) == sorted(row[0] for row in rows[:5])
    assert dict(zip(labels.ids, labels.values, strict=True))[rows[0][0]] == rows[0][3]
    agreed = [found["judge"][0]["estimate"] for found in (before, after)]
    assert agreed == pytest.approx([32 / 40, 35 / 40])
    assert any("the first label was wrong for 3 of 5" in note for note in after["notes"])
    assert report.status == 0
    text = Path("r.md").read_text(encoding="utf-8")
    assert "5 items were reviewed: the first label of 3 of 5 was wrong." in text
    assert f"| {rows[0][0]} | {rows[0][5]} | {rows[0][3]} |" in text


def test_a_second_look_replaces_all_annotators_of_an_item(judged):
    sample, labels = judged
    write_disagreements(sample, labels, ["verdict"], "again.csv")
    _, rows = filled("again.csv", [])
    filled("again.csv", [rows[0][3]])
    twice = [
        (unit, who, said) for unit, said in zip(sample.ids, labels, strict=True) for who in ("ann", "bo")
    ]
    write("two.csv", ["id", "annotator", "label"], [*map(list, twice)])
    found = stratal.read_labels("two.csv", "again.csv")

    assert len(found.ids) == 79
    assert found.replaced.annotators == ("ann", "bo")
    assert stratal.annotator_agreement(found).decided == 1


@pytest.mark.usefixtures("judged")
def test_labels_in_another_spelling_than_the_verdicts_are_mapped(run_command):
    head, rows = filled("l.csv", [])
    write(
        "L.csv", head, [[unit, "not sure" if k == 0 else said.title()] for k, (unit, said) in enumerate(rows)]
    )
    words = ["--judge", "verdict", "--map", "Fail=fail,Pass=pass,Not sure="]
    done = run_command("estimate", "s.parquet", "L.csv", *words, "--disagreements", "again.csv")
    assert "7 items" in done.stdout

    _, rows = filled("again.csv", ["Pass"] * 7)
    assert {row[-2] for row in rows} <= {"Pass", "Fail"}
    assert run_command("estimate", "s.parquet", "L.csv", "again.csv", *words).status == 0


@pytest.mark.usefixtures("judged")
def test_answers_of_a_study_in_another_spelling_are_mapped(run_command):
    asked = ["--question", "Right?", "--choices", "Pass,Fail", "--annotators", "ann"]
    assert run_command("study", "new", "s.parquet", "--output", "st", *asked).status == 0
    with open_study(Path("st")) as study:
        for number in range(40):
            study.submit("ann", study.next_item("ann").id, "Pass" if number % 3 else "Fail")
    words = ["estimate", "st", "--judge", "verdict"]
    assert "'verdict' agrees with people" in run_command(*words).stdout
    assert "'verdict' agrees with people" in run_command(*words, "--map", "Fail=fail,Pass=pass").stdout


def test_a_second_look_at_other_labels_is_refused(judged, run_command):
    sample, labels = judged
    write_disagreements(sample, labels, ["verdict"], "again.csv")
    _, rows = filled("again.csv", [])
    filled("again.csv", [rows[0][3]])
    write("other.csv", ["id", "label"], [[unit, "unsure"] for unit in sample.ids.tolist()])

    with pytest.raises(stratal.LabelError, match=f"the first label of '{rows[0][0]}' in the review differs"):
        stratal.read_labels("other.csv", "again.csv")
    with pytest.raises(stratal.InputError, match="is a review, but the labels that it reviews are not given"):
        stratal.read_labels("again.csv")
    done = run_command("estimate", "s.parquet", "l.csv", "--judge", "verdict", "--disagreements", "again.csv")
    assert "disagreements can only be written to a new file" in done.message
    assert "--judge" in run_command("estimate", "s.parquet", "l.csv", "--disagreements", "b.csv").message


def test_a_code_of_missing_labels_is_an_error_and_no_disagreement(judged):
    sample, _ = judged
    rights = [1, 0] * 20
    rights[3] = 99
    with pytest.raises(LabelError, match="99"):
        write_disagreements(sample, rights, ["sure"], "again.csv")

    assert not Path("again.csv").exists()


def test_a_code_that_is_a_verdict_is_a_label(judged):
    sample, _ = judged
    verdicts = np.array(["0", "1", "99", "1"] * 10, dtype=object)
    with_codes = replace(sample, groups={**sample.groups, "verdict": verdicts})
    labels = verdicts.copy()
    labels[0] = "1"

    assert write_disagreements(with_codes, labels, ["verdict"], "again.csv") == 1


def test_the_first_proxy_is_shown_as_it_is_if_another_one_is_reviewed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    by_two = stratal.Population.from_arrays(
        ids=np.arange(20), proxy={"sure": np.full(20, 0.5), "score": np.linspace(0.0, 1.0, 20)}
    )
    sample = stratal.designs.SimpleRandom(budget=20).draw(by_two, seed=1)
    write_disagreements(sample, [0.0, 1.0] * 10, ["score"], "again.csv")
    head, rows = filled("again.csv", [])

    assert {row[head.index("sure")] for row in rows} == {"0.5"}
