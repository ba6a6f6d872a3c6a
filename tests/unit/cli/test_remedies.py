"""What the command says to do can be done as it is said, and in the command's own words."""

from __future__ import annotations

import contextlib
import csv
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.e2e.pasted import invoke, next_line, run, write

import stratal
from stratal.cli.application import main
from stratal.errors import InputError
from stratal.study import open_study

DRAW = "draw p.csv --proxy confidence --budget 40"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with predictions, and two draws of them: without and with the model's answers."""
    made = tmp_path_factory.mktemp("drawn")
    generator = np.random.default_rng(1)
    rows = [(f"u{k}", s, "cd"[k % 2], f"text {k}") for k, s in enumerate(generator.beta(3, 1, 300).round(3))]
    with contextlib.chdir(made):
        write("p.csv", ["id", "confidence", "answer", "text"], rows)
        run(f"{DRAW} --output A")
        run(f"{DRAW} --predicted answer --output B")
    return made


@pytest.fixture(autouse=True)
def drawn(folder, tmp_path, monkeypatch):
    """Work in a folder of its own with the same files."""
    monkeypatch.chdir(shutil.copytree(folder, tmp_path, dirs_exist_ok=True))


def label(folder, path, values):
    """Write labels of the drawn units: what is said of the first, the second, … and so on again."""
    rows = list(csv.DictReader(Path(folder, "to_label.csv").read_text().splitlines()))
    write(path, ["id", "label"], [(row["id"], values[k % len(values)]) for k, row in enumerate(rows)])


def said(line):
    """Return the message of a command that refuses."""
    done = invoke(line)
    assert done.exit_code, done.output
    return str(done.exception) + done.output


@pytest.mark.filterwarnings("ignore::stratal.errors.StratalWarning")
def test_labels_that_need_a_map_extend_and_plan(drawn):
    label("A", "l.csv", ["Pass", "Fail", "Pass", "unsure"])
    for line in ("plan p.csv --proxy confidence --budget 40 --labels l.csv",
                 "draw --extend A/sample.parquet --labels l.csv --additional 5 --output more",
                 "estimate A/sample.parquet l.csv"):  # fmt: skip
        assert "no answer: --map unsure=;" in said(line)
        run(f"{line} --map unsure=")


def test_commands_speak_of_options_and_python_of_keywords():
    run("plan p.csv --proxy confidence --budget 40")
    write("percent.csv", ["id", "score"], [(f"u{k}", k) for k in range(100)])
    text = run("plan percent.csv --proxy score --budget 20")
    assert "bounds=" not in text
    line = "plan p.csv --budget 20 --half-width 0.1"
    assert "allowed: one of --budget N and --half-width W" in said(line)
    with pytest.raises(InputError, match=r"one of budget= and half_width=\)"):
        stratal.plan(stratal.Population.read("p.csv", proxy="confidence"))


def test_a_column_that_is_nowhere_is_said_to_be_nowhere():
    label("A", "l.csv", ["c", "d"])
    message = said("estimate A/sample.parquet l.csv --predicted answer")
    assert "--predicted: neither the sample nor the labels have a column 'answer'" in message
    assert "drawn with --predicted" in message
    assert "columns of the sample: 'answer'" in said("estimate B/sample.parquet l.csv --predicted nosuch")


def test_one_label_and_the_models_answers_exclude_each_other():
    label("B", "l.csv", ["c", "d"])
    message = said("estimate B/sample.parquet l.csv --predicted answer --positive c")
    assert "--positive would have no effect" in message
    assert "--metric precision,recall --class" in message


def test_an_id_that_stands_twice_is_named_by_doctor():
    rows = list(csv.reader(Path("p.csv").read_text().splitlines()))
    write("twice.csv", rows[0], [*rows[1:-1], [rows[1][0], *rows[-1][1:]]])
    text = run("doctor twice.csv")
    assert "'id' has 1 duplicate value" in text
    assert "--id row" in text
    assert "Next:" not in text


def test_doctor_offers_what_works_and_says_what_does_not():
    label("B", "B/classes.csv", ["c", "d"])
    label("A", "A/odd.csv", ["Pass", "Fail", "unsure"])
    for name in ("B/classes.csv",):
        run(next_line(run(f"doctor {name}")))
    text = run("doctor A/odd.csv")
    assert "Next:" not in text
    assert "--map unsure=" in text


def test_doctor_names_the_sample_beside_the_file():
    label("B", "B/classes.csv", ["c", "d"])
    found = json.loads(run("doctor B/classes.csv --json"))
    assert found["belongs_to"] == ["B/sample.parquet"]


def test_percentages_next_to_other_numbers_are_to_be_written_alike():
    write("signs.csv", ["id", "score"], [(f"u{k}", f"{k / 3:.1f}" + "%" * (k % 2)) for k in range(100)])
    text = run("doctor signs.csv")
    assert "write all its entries as numbers of the same form" in " ".join(text.split())
    assert "pandas" not in text
    assert "Next:" not in text


def test_a_half_width_that_every_unit_is_needed_for():
    text = run("plan p.csv --proxy confidence --half-width 0.00001")
    assert "This half-width is reached only if all units are labelled." in text
    assert "--half-width 0.00001 " in next_line(text)
    run(next_line(text))


def test_a_folder_that_is_not_there_is_to_be_made():
    label("A", "l.csv", [1, 0])
    message = said("report A/sample.parquet l.csv --output nodir/r.html")
    assert "Create the folder nodir first." in message


@pytest.mark.parametrize(
    "more", ["--add z1,ann", "--add z1,z1", "--set-aside nobody --add z1", "--rubric no.md --add z1"]
)
def test_a_team_is_changed_wholly_or_not_at_all(more):
    run("study new A --output s --question Q --choices Pass,Fail --annotators ann")
    said(f"study team s {more}")
    with open_study(Path("s")) as study:
        assert study.annotators == ("ann",)


def test_one_problem_is_no_problems():
    run("study new A --output s --question Q --choices Pass,Fail --annotators ann")
    assert "1 problem (" in invoke(f"study check s --head {64 * '0'}").output


def test_a_number_inside_of_json_has_a_dotted_name():
    rows = [{"id": f"u{k}", "judge": {"score": k / 60, "why": "so"}} for k in range(60)]
    Path("n.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert "name the number: judge.score" in said("plan n.jsonl --proxy judge --budget 20")
    run("plan n.jsonl --proxy judge.score --budget 20")


def test_a_sample_of_select_goes_on_by_select():
    rows = [(f"u{k}", "cd"[k % 2], "cd"[k % 3 == 0]) for k in range(60)]
    write("m.csv", ["id", "answer_a", "answer_b"], rows)
    run("select m.csv --answers answer_a,answer_b --output r1")
    label("r1", "l.csv", ["c", "d"])
    assert "stratal select --extend" in said("estimate r1/sample.parquet l.csv")


def test_only_without_a_column_named_are_several_models_offered():
    label("A", "l.csv", [1, 0])
    line = "plan p.csv --proxy confidence --budget 20 --labels l.csv"
    assert "--compare" not in said(f"{line} --value verdict")


@pytest.mark.filterwarnings("default::stratal.errors.StratalWarning")
def test_a_warning_that_is_a_note_is_said_once(monkeypatch, capsys):
    write("few.csv", ["id", "score"], [(f"u{k}", (k / 40) ** 8) for k in range(40)])
    run("draw few.csv --proxy score --budget 20 --strata 6 --stratify equal-width --output F")
    sample = stratal.Sample.read("F/sample.parquet")
    ids = sample.ids[sample.stratum < sample.stratum.max()].tolist()
    write("l.csv", ["id", "label"], [(unit, k % 2) for k, unit in enumerate(ids)])
    monkeypatch.setattr("sys.argv", ["stratal", "estimate", "F/sample.parquet", "l.csv"])
    with pytest.raises(SystemExit):
        main()
    printed = capsys.readouterr()
    assert "was merged with its neighbour" in printed.out
    assert "was merged with its neighbour" not in printed.err


@pytest.mark.filterwarnings("ignore::stratal.errors.StratalWarning")
def test_a_number_beside_0_and_1_is_a_label_as_advised(drawn):
    label("A", "l.csv", ["1", "0", "1", "1", "0", "1", "1", "1", "1", "1", "99"])

    message = said("estimate A/sample.parquet l.csv")

    for option in ("--bounds=0,99", "--outcome unbounded --map 99=99", "--map 99="):
        for part in option.split(" --"):
            assert part in message
        assert invoke(f"estimate A/sample.parquet l.csv {option}").exit_code == 0


def test_missing_scores_of_a_simulation_are_not_to_become_a_stratum(drawn):
    rows = [(f"u{row}", "" if row == 3 else row / 100, row % 2) for row in range(100)]
    write("gaps.csv", ["id", "score", "outcome"], rows)
    options = "--proxy score --budget 40"

    assert "--missing own-stratum" in said(f"plan gaps.csv {options}")
    assert invoke(f"plan gaps.csv {options} --missing own-stratum").exit_code == 0
    message = said(f"simulate gaps.csv {options} --outcome outcome --replicates 20")
    assert "Drop or fill these units." in message
    assert "--missing" not in message


def test_the_advised_number_of_folds_is_possible(drawn):
    label("A", "l.csv", ["1", "0", "1"])

    assert "allowed: 2 to 40). Use 2 or more folds, such as 5." in said(
        "estimate A/sample.parquet l.csv --cross-fit 1"
    )
    assert "Use fewer folds" in said("estimate A/sample.parquet l.csv --cross-fit 41")
    assert invoke("estimate A/sample.parquet l.csv --cross-fit 5").exit_code == 0


def test_post_stratification_lists_only_columns_that_it_accepts(drawn):
    label("A", "a.csv", ["1", "0", "1"])
    label("B", "b.csv", ["c", "d", "c"])

    without_groups = said("estimate A/sample.parquet a.csv --post-stratify nope")
    assert "this sample contains none). Draw with --groups nope" in without_groups
    for column in ("nope", "confidence"):
        assert "allowed: 'answer')" in said(f"estimate B/sample.parquet b.csv --post-stratify {column}")
    assert invoke("estimate B/sample.parquet b.csv --post-stratify answer").exit_code == 0


@pytest.mark.parametrize(
    ("line", "listed", "suggestion"),
    [
        ("plan p.csv --proxy confidence --budget 40 --stratify k-mean",
         ["k-means", "none", "robust-neyman"], "Did you mean 'k-means'?"),
        ("plan p.csv --proxy confidence --budget 40 --allocation neymann",
         ["neyman", "proportional"], "Did you mean 'neyman'?"),
        ("plan p.csv --proxy confidenc --budget 40", ["confidence", "answer", "text"], ""),
        ("plan p.csv --proxy confidence --budget 40 --outcome binry",
         ["binary", "bounded", "unbounded"], "Did you mean 'binary'?"),
        ("plan p.csv --proxy confidence --budget 40 --target pop", ["population", "superpopulation"], ""),
        ("estimate p.csv --value answr", ["answer", "confidence", "text"], ""),
        ("estimate p.csv --value answer --chosen random-within:nope", ["answer", "confidence", "text"], ""),
    ],
)  # fmt: skip
def test_all_values_are_listed_and_the_nearest_is_suggested(drawn, line, listed, suggestion):
    message = said(line)

    allowed = message.partition("allowed: ")[2].partition(")")[0]
    assert [name for name in listed if f"'{name}'" not in allowed] == []
    assert suggestion in message


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("plan p.csv --proxy confidence --budget 0", ["given: 0", "allowed: 1 to 300", "such as 100"]),
        ("plan p.csv --proxy confidence --half-width 3",
         ["given: --half-width 3", "below 0.5", "For 3 percentage points write 0.03."]),
        ("plan p.csv --proxy confidence --half-width 0", ["--half-width must be a positive number"]),
        ("draw p.csv --budget 40 --design clusters --cluster answer --output new",
         ["given: a budget of 40 units; clusters of 150 on average", "a budget of at least 300 units"]),
        ("estimate p.csv --value answer --predicted answer --population-size 0",
         ["--population-size must be a whole number above 0", "given: 0"]),
    ],
)  # fmt: skip
def test_a_number_that_is_refused_is_named_with_its_limits(drawn, line, parts):
    message = said(line)

    assert [part for part in parts if part not in message] == []


def test_doctor_says_what_a_plan_is_for(drawn):
    shown = invoke("doctor A/plan.json").output

    assert "a plan to draw a sample from" in shown
    assert "for 40 labels" in shown
    assert "--show text" in next_line(shown)  # as the command that `plan` suggests
    run(next_line(shown))
    assert "text" in Path("audit/to_label.csv").read_text().splitlines()[0].split(",")


def test_widths_of_shares_and_of_their_differences_are_in_points(drawn):
    rows = [(f"u{row}", "xy"[row % 2], "xy"[(row % 2) ^ (row % 7 == 0)]) for row in range(400)]
    write("two.csv", ["id", "a", "b"], rows)
    planned = invoke("plan two.csv --estimand difference:a,b --detect .05").output
    run("draw two.csv --estimand difference:a,b --budget 40 --output two")
    label("two", "l.csv", ["x", "y", "x"])
    estimated = invoke("estimate two/sample.parquet l.csv --details").output

    assert re.search(
        r"difference of 5 points is detected with 80% power if the interval is \S+ "
        "points",
        planned,
    )
    assert re.search(r"Expected 95% interval: about \S+ points wide", planned)
    assert re.search(r"Difference of a, b \S+ points \(95% interval \S+ to \S+ points\)", estimated)
    assert re.search(r"Standard error \S+ points", estimated)


def test_percentages_that_are_declared_as_probabilities(drawn):
    write("percent.csv", ["id", "score"], [(f"u{row}", 40 + row % 60) for row in range(200)])
    line = "plan percent.csv --proxy score --budget 40"

    message = said(f"{line} --predicts right")

    assert "If these are percentages, divide them by 100." in message
    assert "only orders units: --predicts score=order." in message
    assert invoke(f"{line} --predicts score=order").exit_code == 0


def test_warnings_and_notes_have_the_names_of_options_only(drawn):
    """Both forms were printed: chosen= (--chosen), and proxy=['confidence', 'margin'] (--proxy …)."""
    scores = [(f"u{row}", 0.5 + row % 50 / 100, 0.9 - row % 7 / 10) for row in range(300)]
    rows = [(*score, "" if row % 30 == 0 else int(row % 9 > 0)) for row, score in enumerate(scores)]
    write("partly.csv", ["id", "confidence", "margin", "label"], rows)
    shown = invoke("estimate partly.csv").output
    markdown = invoke("estimate partly.csv --format markdown").output

    for answer in (shown, markdown):
        assert "how the labelled rows were chosen: --chosen." in answer
        assert "to use all scores: --proxy confidence,margin." in answer
        assert "= (--" not in answer
        assert "] (--" not in answer
