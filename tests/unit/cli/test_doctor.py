"""`stratal doctor` recognises files of other tools and prints the exact next command."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyarrow import csv

import stratal
from stratal.cli.application import app
from stratal.errors import InputError
from stratal.study import StudyQuestion, create_study

TOOLS = Path(__file__).parents[2] / "tools"
IDS = ["007", 'a"b', "two\nlines", "köln", "=1+1"]
LOGS = [
    "lm-eval-0.4.13-capitals.jsonl",
    "inspect-0.3.285.json",
    "promptfoo-0.121.20.json",
    "deepeval-4.3.1.json",
]


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def sample():
    population = stratal.Population.from_arrays(proxy=[0.1, 0.2, 0.5, 0.8, 0.9], ids=IDS)
    return stratal.designs.SimpleRandom(budget=5).draw(population, seed=7)


def test_a_header_alone_gets_no_command_that_cannot_run(tmp_path):
    file = tmp_path / "header.csv"
    file.write_text("id,score\n")

    said = run("doctor", file)

    assert said.exit_code == 0
    assert "has a header but no rows" in said.output
    assert "Next:" not in said.output


@pytest.mark.parametrize("value", ['{"score": 0.5}', '["a"]', '[["a"], ["b"]]'])
def test_values_within_values_are_no_answers_and_break_nothing(tmp_path, value):
    file = tmp_path / "judged.jsonl"
    file.write_text("".join(f'{{"id": "q{n}", "score": 0.{n}, "judge": {value}}}\n' for n in range(1, 5)))

    said = run("doctor", file)

    assert said.exit_code == 0, said.exception
    assert f"plan {file} --id id --proxy score" in said.output


def next_line(text):
    return text.split("Next: stratal ")[1].strip()


@pytest.mark.parametrize("name", [*LOGS, "evaluate-0.4.6.json", "datasets-5.2.0/test"])
def test_the_command_after_a_log_runs_as_printed(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = run("doctor", TOOLS / name)
    assert said.exit_code == 0, said.exception
    words = shlex.split(next_line(said.output))

    done = run(*words)

    assert done.exit_code == 0, done.exception


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("label-studio-sdk-2.1.2.json", "Label Studio, 7 answers to 5 items by 1, 2 (1 skipped)"),
        ("label-studio-sdk-2.1.2-min.json", "Label Studio, 6 answers to 4 items"),
        ("argilla-2.8.0-list.json", "Argilla, 7 answers"),
        ("potato-2.12.1", "Potato, 6 answers to 4 items by ann, bob"),
    ],
)
def test_answers_are_recognised_and_their_study_is_found(name, title, sample, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    question = StudyQuestion.of_choices("Right?", ["Pass", "Fail"])
    create_study("audit", sample, question, annotators=["ann", "bob"]).close()

    said = run("doctor", TOOLS / name)

    assert title in said.output
    assert next_line(said.output) == f"study import audit {TOOLS / name} --dry-run"


def test_a_samples_labels_go_to_the_estimate(sample, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "audit").mkdir()
    sample.write(tmp_path / "audit" / "sample.parquet")
    (tmp_path / "labels.csv").write_text("item_id,label\n7,Pass\nköln,Fail\n")

    assert next_line(run("doctor", "labels.csv").output) == "estimate audit/sample.parquet labels.csv"
    found = json.loads(run("doctor", "labels.csv", "--json").output)
    assert (found["answers"], found["belongs_to"]) == (2, ["audit/sample.parquet"])


def test_answers_of_nowhere_say_what_to_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(TOOLS / "argilla-2.8.0-list.json", tmp_path / "labels.json")

    assert "stratal study import STUDY FILE --dry-run" in run("doctor", "labels.json").output


def test_damaged_exports_say_what_is_wrong(tmp_path):
    (tmp_path / "export.json").write_text('[{"id": 1, "data": {}, "annotations": []}]')

    assert "contains no answers" in str(run("doctor", tmp_path / "export.json").exception)


@pytest.mark.parametrize(
    ("rows", "command"),
    [
        ("id,proxy,label\na,0.5,1\nb,0.7,0\nc,.1,0\n", "--value label --id id --proxy proxy"),
        ("id,proxy,label\na,0.5,Pass\nb,0.7,Fail\nc,.1,\nd,.2,\n", "--value label --id id --proxy proxy"),
        ('id,relevant\na,"[1, 0]"\nb,"[0, 0]"\nc,\nd,"[1, 1]"\n', "--lists mean"),
    ],
)
def test_a_table_of_labels_from_elsewhere_gets_its_command(tmp_path, monkeypatch, rows, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text(rows)

    said = run("doctor", "rows.csv").output

    assert "labels: `label` in" in said or "`relevant` has a list of labels in each row" in said
    assert next_line(said) == f"estimate rows.csv {command}"
    assert run(*next_line(said).split()).exit_code == 0


@pytest.mark.parametrize("labels", ["cat\nb,0.7,dog", "\nb,0.7,"])
def test_predictions_with_classes_or_an_empty_column_stay_predictions(tmp_path, monkeypatch, labels):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text(f"id,proxy,label\na,0.5,{labels}\n")

    said = run("doctor", "rows.csv").output

    assert next_line(said).startswith("plan rows.csv --id id --proxy proxy")
    assert ("nothing is filled in yet" in said) == labels.startswith("\n")


@pytest.mark.parametrize(
    ("classes", "names"),
    [
        (("cat", "dog"), ("gold", "answer")),
        (("3", "8"), ("label", "prediction")),
        (("x", "y"), ("seen", "p")),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_classes_that_people_gave_to_some_are_compared_with_the_models(
    tmp_path, monkeypatch, classes, names, ending
):
    monkeypatch.chdir(tmp_path)
    human, predicted = names
    said = [classes[n % 3 == 0] if n % 4 == 1 else None for n in range(60)]
    rows = [{"id": f"u{n}", predicted: classes[n % 2], "score": n / 60, human: said[n]} for n in range(60)]
    table = pa.Table.from_pylist(rows)
    (pq.write_table if ending == "parquet" else csv.write_csv)(table, f"rows.{ending}")

    said = run("doctor", f"rows.{ending}").output

    assert f"labels: `{human}` in 15 of 60 rows" in said
    words = shlex.split(next_line(said))
    known = ["--value", human, "--id", "id", "--predicted", predicted, "--proxy", "score"]
    assert words == ["estimate", f"rows.{ending}", *known]
    right = [row[human] == row[predicted] for row in rows if row[human]]
    alone = run(*words, "--json", "--estimator", "horvitz-thompson")
    assert json.loads(alone.output)["estimate"] == pytest.approx(sum(right) / len(right))


@pytest.mark.parametrize("made", ["sample", "study"])
def test_labels_are_found_by_the_values_of_a_column_of_any_name(sample, tmp_path, monkeypatch, made):
    monkeypatch.chdir(tmp_path)
    if made == "sample":
        (tmp_path / "audit").mkdir()
        sample.write(tmp_path / "audit" / "sample.parquet")
    else:
        question = StudyQuestion.of_choices("Right?", ["Pass", "Fail"])
        create_study("audit", sample, question, annotators=["ann"]).close()
    (tmp_path / "tickets.csv").write_text("Ticket Nr.,label\n7,Pass\nköln,Fail\n")
    (tmp_path / "open.csv").write_text("Ticket Nr.,label\n7,\nköln,\n")

    said, unfilled = run("doctor", "tickets.csv").output, run("doctor", "open.csv").output
    words = shlex.split(next_line(said))

    at = words.index("--id")
    assert words[:at] in (
        ["estimate", "audit/sample.parquet", "tickets.csv"],
        ["study", "import", "audit", "tickets.csv"],
    )
    assert words[at + 1] == "Ticket Nr."
    assert run(*words).exit_code == 0
    assert "Nothing is filled in yet" in unfilled
    assert "Next:" not in unfilled
    assert "--id 'Ticket Nr.'" in unfilled
    assert json.loads(run("doctor", "tickets.csv", "--json").output)["id"] == "Ticket Nr."


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        (["id,model,label", *(f"{unit},{name},{n % 2}" for n, unit in enumerate("bcde") for name in "xyz")],
         ["--model", "model"]),
        (["id,x,y", *(f"{unit},{n % 2},1" for n, unit in enumerate("bcde"))], ["--compare", "x,y"]),
    ],
)  # fmt: skip
def test_judged_models_are_compared(tmp_path, monkeypatch, rows, options):
    monkeypatch.chdir(tmp_path)
    population = stratal.Population.from_arrays(proxy=[0.1, 0.2, 0.5, 0.8, 0.9], ids=list("abcde"))
    drawn = stratal.designs.SimpleRandom(budget=5).draw(population, seed=7)
    (tmp_path / "audit").mkdir()
    drawn.write(tmp_path / "audit" / "sample.parquet")
    (tmp_path / "board.csv").write_text("\n".join(rows) + "\n")

    words = shlex.split(next_line(run("doctor", "board.csv").output))

    assert words == ["estimate", "audit/sample.parquet", "board.csv", *options]
    assert "leaderboard" in run(*words, "--json").output


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        (["0,93", "0,94"], "its entries, such as '0,93', cannot be read as numbers; write them as numbers"),
        (
            ["93 %", "0.5"],
            "it contains '93 %' next to numbers such as '0.5'; write all its entries as numbers",
        ),
        (["93%", "50"], "it contains '93%' next to numbers such as '50'; write all its entries as numbers"),
    ],
)
def test_numbers_that_are_written_as_text_are_said_with_the_remedy(tmp_path, entries, reason):
    (tmp_path / "rows.csv").write_text(f'id,score,x\na,"{entries[0]}","0,1"\nb,"{entries[1]}","0,2"\n')

    said = " ".join(run("doctor", tmp_path / "rows.csv").output.split())

    assert f"'score' is not used, because {reason}" in said
    assert "'x' contains numbers with a decimal comma or a percent sign" in said
    assert "Write the numbers with a decimal point" in said


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_percentages_are_scores_and_the_next_command_reads_them(tmp_path, monkeypatch, suffix):
    monkeypatch.chdir(tmp_path)
    rows = [f"u{row},text {row},{row * 37 % 101}%" for row in range(300)]
    (tmp_path / "rows.csv").write_text("\n".join(["id,text,score", *rows]) + "\n")
    if suffix == "parquet":
        pd.read_csv("rows.csv").to_parquet("rows.parquet")

    said = run("doctor", f"rows.{suffix}").output

    assert "percent sign" not in said
    assert "percentage" in said
    words = shlex.split(next_line(said))
    assert words[words.index("--proxy") + 1] == "score"
    assert "'score' is written as percentages: '0%' is read as 0" in " ".join(run(*words).output.split())


PASSED = "\n".join(f"{n},0.{n % 9 + 1},{'Pass' if n % 4 else 'Fail'}" for n in range(40))


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("id,judge,human\n" + PASSED, "--value human --id id --judge judge"),
        ("id,judge,checked\n" + PASSED.replace("Pass", ""), "--value checked --id id --judge judge"),
    ],
    ids=["of some", "in one file"],
)  # fmt: skip
def test_samples_from_elsewhere_get_their_command_whatever_the_labels_are_called(
    tmp_path, monkeypatch, text, command
):
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text(text + "\n")

    line = next_line(run("doctor", "rows.csv").output)

    assert line == f"estimate rows.csv {command}"
    done = run(*shlex.split(line))
    assert done.exit_code == 0, done.exception


def test_labels_that_are_classes_are_compared_with_the_answers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("answers.csv").write_text(
        "\n".join(["image,score,answer", *(f"u{n},0.{n + 1},{('cat', 'dog')[n % 2]}" for n in range(8))])
        + "\n"
    )
    assert run(
        *("draw", "answers.csv", "--id", "image", "--proxy", "score", "--predicted", "answer"),
        *("--budget", "8", "--seed", 1, "--output", "audit"),
    ).exit_code == 0  # fmt: skip
    for labels, share in (("cat", 0.5), ("Pass", 1.0)):
        Path("labels.csv").write_text("image,label\n" + "".join(f"u{n},{labels}\n" for n in range(8)))
        words = shlex.split(next_line(run("doctor", "labels.csv").output))
        assert words == ["estimate", "audit/sample.parquet", "labels.csv", "--id", "image"]
        assert json.loads(run(*words, "--json").output)["estimate"] == share


def test_words_given_as_a_proxy_get_advice(tmp_path):
    (tmp_path / "rows.csv").write_text("id,verdict\na,pass\nb,fail\nc,pass\nd,pass\n")
    path = tmp_path / "rows.csv"

    error = str(run("plan", path, "--proxy", "verdict", "--budget", 2).exception)

    assert all(option in error for option in ("--by COL", "--predicted", "--map", "--positive"))
    assert run("plan", path, "--by", "verdict", "--budget", 2, "--minimum", 1).exit_code == 0


def test_a_folder_of_logs_is_listed_and_the_first_is_the_next(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out" / "model").mkdir(parents=True)
    for name in [*LOGS, "lm-eval-0.4.13-results.json", "inspect-0.3.285.eval", "argilla-2.8.0-list.json"]:
        shutil.copy(TOOLS / name, tmp_path / "out" / "model" / name)
    (tmp_path / "out" / "broken.json").write_text("{")
    (tmp_path / "out" / "rows.jsonl").write_text("[]\n")

    said = run("doctor", "out")

    assert "out: 5 logs of evaluation tools" in said.output
    assert next_line(said.output) == "doctor out/model/deepeval-4.3.1.json"
    found = json.loads(run("doctor", "out", "--json").output)["logs"]
    assert found["out/model/inspect-0.3.285.eval"] == "Inspect"
    assert len(found) == 5


def test_a_folder_that_stratal_made_says_what_it_is(sample, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    create_study(
        "study", sample, StudyQuestion.of_choices("Right?", ["Pass", "Fail"]), annotators=["ann"]
    ).close()
    (tmp_path / "audit").mkdir()
    sample.write(tmp_path / "audit" / "sample.parquet")
    (tmp_path / "audit" / "to_label.csv").write_text("id,label\n007,\n")

    for folder, command in (("study", "study status study"), ("audit", "doctor audit/to_label.csv")):
        assert next_line(run("doctor", folder).output) == command
        assert run(*command.split()).exit_code == 0
        assert json.loads(run("doctor", folder, "--json").output)["kind"] in ("study", "sample")
    assert "stratal estimate" in str(run("doctor", "audit/sample.parquet").exception)


def test_a_folder_without_logs_is_a_folder(tmp_path):
    assert "is a directory" in str(run("doctor", tmp_path).exception)


def test_labels_on_the_web_are_to_be_downloaded_first(sample, tmp_path):
    sample.write(tmp_path / "sample.parquet")

    assert "Download the file first" in str(
        run("estimate", tmp_path / "sample.parquet", "https://example.org/labels.csv").exception
    )


@pytest.mark.parametrize("name", ["long o'f.csv", "long.parquet"])
def test_the_models_of_a_long_table_are_compared(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    rows = "SELECT 'm' || (i % 4) AS model, 'q' || (i // 4) AS question, (i * 37 % 100) / 100 AS score"
    duckdb.sql(f"""COPY ({rows} FROM range(200) t(i)) TO '{name.replace("'", "''")}'""")

    words = shlex.split(next_line(run("doctor", name).output))
    assert words == ["estimate", name, "--value", "score", "--id", "question", "--model", "model"]
    assert "leaderboard" in run(*words, "--json").output


def test_a_parquet_file_of_too_many_cells_for_labels_is_not_read_row_by_row(tmp_path, monkeypatch):
    file = tmp_path / "wide.parquet"
    pq.write_table(pa.table({"id": IDS, "score": [0.1, 0.2, 0.3, 0.4, 0.5]}), file)
    read = []
    monkeypatch.setattr("stratal.tables.small_table.SmallTable.of", lambda *given: read.append(given))
    monkeypatch.setattr("stratal.cli.doctor._MAX_LABEL_FILE_CELLS", 9)

    said = run("doctor", file)

    assert not read
    assert f"plan {file} --id id --proxy score" in said.output


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_of_very_many_columns_is_refused_at_once(tmp_path, ending):
    """60,000 columns took an hour."""
    path, names = tmp_path / f"wide.{ending}", ["id", *(f"c{number}" for number in range(60_000))]
    if ending == "csv":
        path.write_text(",".join(names) + "\n" + ",".join(["1"] * len(names)) + "\n")
    else:
        pq.write_table(pa.table([pa.array([1])] * len(names), names=names), path)

    assert "has too many columns" in str(run("doctor", path).exception)


def test_every_column_that_may_hold_labels_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = ["id,confidence,rater_1,rater_2"]
    for row in range(40):
        labels = ("pass,fail" if row % 2 else "fail,fail") if row < 10 else ","
        lines.append(f"u{row},{row / 40},{labels}")
    Path("rows.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")

    printed = " ".join(run("doctor", "rows.csv").stdout.split())

    assert "several columns may contain the labels (given: 'rater_1', 'rater_2')" in printed
    assert "--value rater_2" in printed
    assert "Next:" not in printed


def test_a_model_answer_is_suggested_with_what_the_proxy_predicts(tmp_path, monkeypatch, run_command):
    monkeypatch.chdir(tmp_path)
    rows = [f"u{number},{number / 60:.3f},{'cat' if number % 2 else 'dog'}" for number in range(60)]
    (tmp_path / "file.csv").write_text("\n".join(["id,confidence,answer", *rows]) + "\n")

    plain = run_command("doctor", "file.csv")
    declared = run_command("doctor", "file.csv", "--predicts", "confidence=right")

    assert "plan file.csv --id id --proxy confidence --predicted answer" in plain.stdout
    assert declared.status == 0
    assert "--proxy confidence --predicted answer --predicts confidence=right" in declared.stdout


@pytest.mark.parametrize("content", [b'"a"b,label\n1,1\n2,0\n', b"id,label\n1,\xff\xfe1\n"])
@pytest.mark.parametrize(
    "words",
    [
        ["doctor", "bad.csv"],
        ["estimate", "bad.csv"],
        ["report", "bad.csv", "--output", "page.html"],
        ["threshold", "bad.csv", "--require", "error<=.1"],
    ],
)
def test_damaged_text_is_one_message(tmp_path, monkeypatch, content, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.csv").write_bytes(content)

    result = run(*words)

    assert result.exit_code != 0
    assert isinstance(result.exception, InputError)
    assert "bad.csv cannot be read" in str(result.exception)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv"]


def test_columns_with_few_categories_are_offered_as_groups(tmp_path):
    file = tmp_path / "table.csv"
    rows = [f"m{n},text {n},{n % 97 / 97},{('spam', 'ham')[n % 3 == 0]},{'nse'[n % 3]}\n" for n in range(300)]
    file.write_text("id,text,confidence,prediction,region\n" + "".join(rows))

    assert "add --groups region to the plan" in run("doctor", file).output
    assert "--groups" not in run("doctor", file, "--groups", "region").output.split("Next:")[0]


def test_columns_of_the_sample_are_not_offered_as_annotators(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    site = ["A", "B"] * 20
    predictions = pd.DataFrame({"id": range(40), "score": np.linspace(0.1, 0.9, 40), "site": site})
    predictions.to_csv("pop.csv", index=False)
    run("draw", "pop.csv", "--proxy", "score", "--show", "site", "--budget", "20", "--output", "audit")
    to_label = pd.read_csv("audit/to_label.csv").drop(columns="label")
    to_label.assign(ann=["yes", "no"] * 10, ben=["yes", "yes"] * 10).to_csv("audit/wide.csv", index=False)

    output = run("doctor", "audit/wide.csv").output

    assert "--value ann,ben" in output
    assert "site" not in output
