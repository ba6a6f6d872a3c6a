from __future__ import annotations

import csv
import json
import re
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from stratal.cli.application import app, main
from stratal.errors import StratalError

PLAN_KEYS = {"population_size", "budget", "recommended", "designs", "strata"}
ESTIMATE_KEYS = {
    "estimate", "standard_error", "confidence_interval", "confidence_level", "n", "population_size",
    "target", "design", "estimator", "interval_method", "design_effect", "effective_sample_size",
    "nonresponse", "strata",
}  # fmt: skip


def run(*words):
    """Return standard output; a mistake raises the error that the command would print."""
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=True)
    if isinstance(result.exception, StratalError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def command(*words):
    """Run the installed command as a user does."""
    return subprocess.run(
        [sys.executable, "-c", "from stratal.cli import main; main()", *map(str, words)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "data"
    run("demo", "--output", folder, "--json")
    return folder


def fill(to_label, labels, path):
    truth = {row["id"]: row["label"] for row in csv.DictReader(labels.read_text().splitlines())}
    rows = list(csv.DictReader(to_label.read_text().splitlines()))
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0].keys())
        writer.writeheader()
        writer.writerows({**row, "label": truth[row["id"]]} for row in rows)
    return path


def test_the_whole_trip(demo, tmp_path):
    file, output = demo / "predictions.parquet", tmp_path / "audit"
    planned = json.loads(run("plan", file, "--proxy", "confidence", "--budget", 100, "--json"))
    drawn = json.loads(
        run("draw", file, "--proxy", "confidence", "--budget", 100, "--seed", 7, "--output", output, "--json")
    )
    filled = fill(output / "to_label.csv", demo / "labels.csv", tmp_path / "filled.csv")
    result = json.loads(run("estimate", drawn["sample"], filled, "--json"))

    assert set(planned) >= PLAN_KEYS
    assert set(drawn) >= {"sample", "to_label", "n", "seed", "design"}
    assert set(result) >= ESTIMATE_KEYS
    assert (drawn["n"], drawn["seed"], drawn["design"]) == (100, 7, "stratified")
    assert result["n"] == 100
    assert result["confidence_interval"][0] < result["estimate"] < result["confidence_interval"][1]
    assert planned["strata"][0]["n"] == result["strata"][0]["n"]


def test_what_the_annotators_get_leads_nobody(demo, tmp_path):
    run("draw", demo / "predictions.parquet", "--proxy", "confidence", "--predicted", "predicted",
        "--budget", 50, "--output", tmp_path / "audit")  # fmt: skip

    rows = list(csv.DictReader((tmp_path / "audit" / "to_label.csv").read_text().splitlines()))
    assert list(rows[0]) == ["id", "label"]
    assert {row["label"] for row in rows} == {""}
    sample = pq.read_table(tmp_path / "audit" / "sample.parquet")
    assert "group.predicted" in sample.column_names
    strata = dict(zip(sample["id"].to_pylist(), sample["stratum"].to_pylist(), strict=True))
    order = [strata[row["id"]] for row in rows]
    assert order != sorted(order)


def test_classes_compared_with_the_models_answers(demo, tmp_path):
    file, output = demo / "predictions.parquet", tmp_path / "audit"
    run("draw", file, "--proxy", "confidence", "--predicted", "predicted", "--budget", 60, "--output", output)
    digits = {
        row["id"]: row["digit"] for row in csv.DictReader((demo / "labels.csv").read_text().splitlines())
    }
    right = {
        row["id"]: row["label"] for row in csv.DictReader((demo / "labels.csv").read_text().splitlines())
    }
    rows = list(csv.DictReader((output / "to_label.csv").read_text().splitlines()))
    for name, truth in (("classes", digits), ("outcomes", right)):
        lines = ["id,label", *(f"{row['id']},{truth[row['id']]}" for row in rows)]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")

    sample = output / "sample.parquet"
    classes = run("estimate", sample, tmp_path / "classes.csv", "--predicted", "predicted", "--json")
    outcomes = run("estimate", sample, tmp_path / "outcomes.csv", "--predicted", "none", "--json")

    assert json.loads(classes)["estimate"] == json.loads(outcomes)["estimate"]


def test_tables_name_the_next_command(demo, tmp_path):
    assert "stratal plan" in run("doctor", demo / "predictions.parquet")
    assert "stratal draw" in run(
        "plan", demo / "predictions.parquet", "--proxy", "confidence", "--budget", 99
    )
    drawn = run("draw", demo / "predictions.parquet", "--proxy", "confidence", "--budget", 99,
                "--output", tmp_path / "a")  # fmt: skip
    assert "stratal estimate" in drawn


def test_inspect_as_json(demo):
    found = json.loads(run("doctor", demo / "predictions.parquet", "--proxy", "confidence", "--json"))

    assert found["rows"] == 1497
    assert [column["name"] for column in found["columns"]] == ["id", "confidence", "predicted", "image"]
    assert found["proxies"][0]["scaled"] is True


def test_the_answer_is_shown_only_if_people_judge_whether_it_is_right(demo, tmp_path):
    columns = ("--proxy", "confidence", "--budget", "20", "--show", "image,predicted")
    words = ("draw", demo / "predictions.parquet", *columns, "--output", tmp_path / "out")
    refused = CliRunner().invoke(app, [*map(str, words), "--predicted", "predicted"])

    message = str(refused.exception)
    assert "'predicted' would influence the annotators" in message
    assert "leave 'predicted' out of --show" in message
    assert "leave out --predicted and state --predicts right: annotators then see the answer" in message
    assert not (tmp_path / "out").exists()
    assert "Drew 20" in run(*words, "--predicts", "right")
    assert (tmp_path / "out" / "to_label.csv").read_text().startswith("id,image,predicted,label\n")


def test_without_a_proxy_the_remedy_has_no_option_that_needs_one(demo, tmp_path):
    options = ("--budget", "20", "--predicted", "predicted", "--show", "predicted")
    words = ("draw", demo / "predictions.parquet", *options, "--output", tmp_path / "out")
    refused = CliRunner().invoke(app, [str(word) for word in words])

    assert "leave out --predicted: annotators then see the answer" in str(refused.exception)


def test_a_plan_to_judge_answers_states_what_the_labels_do_not_allow(demo):
    words = ("plan", demo / "predictions.parquet", "--proxy", "confidence", "--budget", "20")
    sentence = (
        "Precision, recall and F1 require labels that name the class: for these, plan with --predicted "
        "predicted"
    )

    assert sentence in " ".join(run(*words, "--predicts", "right").split())
    assert "Precision, recall" not in run(*words, "--predicted", "predicted")
    assert "Precision, recall" not in run(*words)


def test_a_draw_names_the_labelling_before_the_next_command(demo, tmp_path):
    columns = ("--proxy", "confidence", "--budget", "20")
    words = ("draw", demo / "predictions.parquet", *columns, "--output", tmp_path / "out")
    lines = run(*words).splitlines()

    assert lines[-3:-1] == [f"Label the items in {tmp_path / 'out' / 'to_label.csv'} first.", ""]
    assert lines[-1].startswith("Next: stratal estimate ")


def test_a_second_draw_with_groups_keeps_the_units_of_the_first(tmp_path):
    """The error of `--by` names the draw that keeps the labels valid."""
    table = tmp_path / "table.csv"
    rows = [f"{number},{number % 97 / 97},{'ns'[number % 2]}\n" for number in range(400)]
    table.write_text("id,confidence,region\n" + "".join(rows))
    words = ("draw", table, "--proxy", "confidence", "--predicts", "right", "--budget", 40, "--seed", 7)
    run(*words, "--output", tmp_path / "first")
    to_label = tmp_path / "first" / "to_label.csv"
    header, *units = to_label.read_text().splitlines()
    labels = tmp_path / "labels.csv"
    labels.write_text("\n".join([header, *(f"{unit}{place % 5 and 1}" for place, unit in enumerate(units))]))
    estimate = ("estimate", tmp_path / "first" / "sample.parquet", labels, "--by", "region")
    refused = CliRunner().invoke(app, [str(word) for word in estimate])

    message = str(refused.exception)
    assert "this draws the same units, so that the existing labels remain valid" in message
    option, seed = re.search(r"(--groups region)\)?, seed (\d+)", message).groups()
    assert seed == "7"
    run(*words, *option.split(), "--output", tmp_path / "second")
    assert (tmp_path / "second" / "to_label.csv").read_bytes() == to_label.read_bytes()
    assert "region" in run("estimate", tmp_path / "second" / "sample.parquet", labels, "--by", "region")


def test_missing_labels_are_stated_once(demo, tmp_path):
    columns = ("--proxy", "confidence", "--predicts", "right", "--budget", "40")
    run("draw", demo / "predictions.parquet", *columns, "--output", tmp_path / "out")
    labels = tmp_path / "out" / "to_label.csv"
    header, *units = labels.read_text().splitlines()
    answers = ("1", "", "0", "1")
    labels.write_text("\n".join([header, *(f"{unit}{answers[n % 4]}" for n, unit in enumerate(units))]))
    done = command("estimate", tmp_path / "out" / "sample.parquet", labels)

    assert (done.stdout + done.stderr).count("10 of 40 drawn units have no label (25.0%)") == 1
    assert re.search(
        r"the lowest possible outcome, the estimate without a proxy would be [\d.]+%;", done.stdout
    )


MISTAKES = [
    (["plan", "nowhere.parquet", "--proxy", "p", "--budget", "10"], "no such file"),
    (["plan", "FILE", "--proxy", "confidnce", "--budget", "10"], "'confidence'"),
    (["plan", "FILE", "--proxy", "confidence"], "either a budget or a half-width"),
    (["plan", "FILE", "--proxy", "confidence", "--budget", "2000"], "larger than the population"),
    (["plan", "FILE", "--proxy", "confidence", "--budget", "9", "--strata", "9"], "--minimum 1"),
    (["plan", "FILE", "--proxy", "confidence", "--budget", "99", "--stratify", "magic"], "k-means"),
    (["plan", "FILE", "--proxy", "confidence", "--budget", "99", "--allocation", "magic"], "robust"),
    (["draw", "FILE", "--proxy", "confidence", "--budget", "9", "--show", "label", "--output", "OUT"],
     "label"),
    (["draw", "FILE", "--proxy", "confidence", "--budget", "9", "--show", "confidence", "--output", "OUT"],
     "would influence the annotators"),
    (["draw", "FILE", "--proxy", "confidence", "--budget", "9", "--output", "FULL"], "not empty"),
    (["draw", "FILE", "--proxy", "confidence", "--budget", "9", "--seed", "-1", "--output", "OUT"], "seed"),
    (["estimate", "FILE", "FILE"], "neither a sample nor a study"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "message"), MISTAKES, ids=[message for _, message in MISTAKES])
def test_mistakes_are_named_and_nothing_is_written(demo, tmp_path, words, message):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "labels.csv").write_text("precious")
    places = {"FILE": demo / "predictions.parquet", "OUT": tmp_path / "out", "FULL": tmp_path / "full"}

    with pytest.raises(StratalError, match=message):
        run(*(places.get(word, word) for word in words))

    assert not (tmp_path / "out").exists()
    assert [entry.name for entry in tmp_path.iterdir()] == ["full"]
    assert (tmp_path / "full" / "labels.csv").read_text() == "precious"


def test_a_mistake_ends_with_status_2_and_one_message(demo):
    result = command("plan", demo / "predictions.parquet", "--proxy", "nope", "--budget", 10)

    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert "Traceback" not in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_json_is_one_object_and_nothing_else(demo):
    result = command("plan", demo / "predictions.parquet", "--proxy", "confidence", "--budget", 50, "--json")

    assert json.loads(result.stdout)["budget"] == 50
    assert result.stderr == ""


def test_the_interval_can_be_chosen(demo, tmp_path):
    run(
        "draw",
        demo / "predictions.parquet",
        "--proxy",
        "confidence",
        "--budget",
        80,
        "--output",
        tmp_path / "a",
    )
    filled = fill(tmp_path / "a" / "to_label.csv", demo / "labels.csv", tmp_path / "filled.csv")
    sample = tmp_path / "a" / "sample.parquet"
    widths = []
    for level in (0.8, 0.95):
        result = json.loads(
            run("estimate", sample, filled, "--confidence-level", level, "--interval", "t", "--json")
        )
        assert result["interval_method"] == "t"
        widths.append(result["confidence_interval"][1] - result["confidence_interval"][0])
    assert widths[0] < widths[1]


def test_a_second_round_extends_the_first(demo, tmp_path):
    file = demo / "predictions.parquet"
    run("draw", file, "--proxy", "confidence", "--budget", 50, "--seed", 3, "--output", tmp_path / "one")
    first = fill(tmp_path / "one" / "to_label.csv", demo / "labels.csv", tmp_path / "first.csv")
    sample = tmp_path / "one" / "sample.parquet"
    drawn = json.loads(
        run("draw", file, "--extend", sample, "--labels", first, "--additional", 40,
            "--output", tmp_path / "two", "--json")
    )  # fmt: skip
    second = fill(tmp_path / "two" / "to_label.csv", demo / "labels.csv", tmp_path / "second.csv")
    result = json.loads(run("estimate", drawn["sample"], first, second, "--json"))

    shown = run("draw", file, "--extend", sample, "--labels", first, "--additional", 40,
                "--output", tmp_path / "again")  # fmt: skip
    assert (drawn["n"], drawn["new"], drawn["round"], drawn["seed"]) == (90, 40, 2, 3)
    assert f"{first} " in shown.split("Next:")[1]
    assert result["n"] == 90
    assert result["nonresponse"]["rate"] == 0


@pytest.mark.parametrize("design", ["poisson", "proportional-to-size", "systematic", "simple-random"])
def test_other_designs_go_the_whole_trip(demo, tmp_path, design):
    run("draw", demo / "predictions.parquet", "--proxy", "confidence", "--budget", 60, "--seed", 3,
        "--design", design, "--output", tmp_path / "a")  # fmt: skip
    filled = fill(tmp_path / "a" / "to_label.csv", demo / "labels.csv", tmp_path / "filled.csv")
    result = json.loads(run("estimate", tmp_path / "a" / "sample.parquet", filled, "--json"))

    assert result["design"] == design
    assert 0.8 < result["confidence_interval"][0] < result["confidence_interval"][1] <= 1


def test_extending_needs_labels_and_a_number(demo, tmp_path):
    run(
        "draw",
        demo / "predictions.parquet",
        "--proxy",
        "confidence",
        "--budget",
        50,
        "--output",
        tmp_path / "a",
    )
    with pytest.raises(StratalError, match="--additional"):
        run("draw", demo / "predictions.parquet", "--extend", tmp_path / "a" / "sample.parquet",
            "--output", tmp_path / "b")  # fmt: skip


# ---- targets and samples from elsewhere


def classes_drawn(demo, folder):
    """Draw with the model's answers kept and return the sample and a file of true classes."""
    run("draw", demo / "predictions.parquet", "--proxy", "confidence", "--predicted", "predicted",
        "--budget", 120, "--seed", 5, "--output", folder)  # fmt: skip
    truth = {row["id"]: row for row in csv.DictReader((demo / "labels.csv").read_text().splitlines())}
    rows = csv.DictReader((folder / "to_label.csv").read_text().splitlines())
    lines = ["id,label,a,b,half"]
    for number, row in enumerate(rows):
        unit = truth[row["id"]]
        lines.append(f"{row['id']},{unit['digit']},{unit['label']},{number % 2},{'xy'[number % 2]}")
    path = folder.parent / "classes.csv"
    path.write_text("\n".join(lines) + "\n")
    return folder / "sample.parquet", path


def test_metrics_of_classes(demo, tmp_path):
    sample, labels = classes_drawn(demo, tmp_path / "audit")
    result = json.loads(
        run("estimate", sample, labels, "--value", "label", "--predicted", "predicted",
            "--metric", "accuracy,precision,recall,f1", "--class", "8", "--json")
    )  # fmt: skip

    rows = {row["metric"]: row for row in result["metrics"]}
    assert set(rows) == {"accuracy", "precision", "recall", "f1"}
    assert rows["precision"]["class"] == "8"
    assert rows["accuracy"]["estimate"] == pytest.approx(result["estimate"])
    assert set(rows["recall"]) >= {"metric", "class", "estimate", "standard_error", "confidence_interval"}
    shown = run("estimate", sample, labels, "--predicted", "predicted", "--metric", "f1", "--class", "8")
    assert "Metrics" in shown


def test_two_models_on_the_same_labels(demo, tmp_path):
    sample, labels = classes_drawn(demo, tmp_path / "audit")
    result = json.loads(run("estimate", sample, labels, "--compare", "a,b", "--json"))

    (row,) = result["comparisons"]
    assert (row["a"], row["b"]) == ("a", "b")
    assert result["notes"] == ["the estimate is for 'a', the first of the models compared"]
    assert row["confidence_interval"][0] < row["estimate"] < row["confidence_interval"][1]
    assert 0 <= row["p_value"] < 0.05


def test_domains(demo, tmp_path):
    run("draw", demo / "predictions.parquet", "--proxy", "confidence", "--groups", "predicted",
        "--budget", 100, "--output", tmp_path / "a")  # fmt: skip
    filled = fill(tmp_path / "a" / "to_label.csv", demo / "labels.csv", tmp_path / "filled.csv")
    result = json.loads(
        run("estimate", tmp_path / "a" / "sample.parquet", filled, "--by", "predicted", "--json")
    )

    assert [row["domain"] for row in result["domains"]] == [str(digit) for digit in range(10)]
    assert sum(row["n"] for row in result["domains"]) == 100


def test_a_sample_from_elsewhere(tmp_path):
    (tmp_path / "labels.csv").write_text("right,kind\n1,a\n0,a\n1,b\n1,b\n0,b\n")
    (tmp_path / "sizes.csv").write_text("stratum,size\na,10\nb,30\n")
    result = json.loads(
        run("estimate", tmp_path / "labels.csv", "--value", "right", "--chosen", "random-within:kind",
            "--sizes", tmp_path / "sizes.csv", "--json")
    )  # fmt: skip

    assert result["estimate"] == pytest.approx(0.25 * 0.5 + 0.75 * 2 / 3)
    assert result["population_size"] == 40
    with pytest.raises(StratalError, match="nothing to estimate from"):
        run("estimate", "--value", "right")


def test_comparing_models_leaves_the_label_column_alone(demo, tmp_path):
    sample, labels = classes_drawn(demo, tmp_path / "audit")
    given = ("estimate", sample, labels, "--predicted", "predicted", "--metric", "accuracy,recall", "--json")
    alone, beside = json.loads(run(*given)), json.loads(run(*given, "--compare", "a,b"))

    assert beside["estimate"] == alone["estimate"]
    assert beside["metrics"] == alone["metrics"]
    assert len(beside["comparisons"]) == 1


def test_models_are_compared_on_a_sample_from_elsewhere(tmp_path):
    rows = [f"{i % 4 > 0:d},{'ab'[i % 2]},{i % 5 > 0:d},{i % 3 > 0:d}" for i in range(60)]
    (tmp_path / "labels.csv").write_text("right,kind,large,small\n" + "\n".join(rows) + "\n")
    (tmp_path / "sizes.csv").write_text("stratum,size\na,100\nb,300\n")
    result = json.loads(
        run("estimate", tmp_path / "labels.csv", "--value", "right", "--chosen", "random-within:kind",
            "--sizes", tmp_path / "sizes.csv", "--compare", "large,small", "--json")
    )  # fmt: skip

    (row,) = result["comparisons"]
    assert row["n"] == 60
    assert row["estimate"] == pytest.approx(48 / 60 - 40 / 60)
    assert result["estimate"] == pytest.approx(0.25 * 0.5 + 0.75 * 1.0)


def test_a_class_that_no_unit_has_is_refused(demo, tmp_path):
    sample, labels = classes_drawn(demo, tmp_path / "audit")
    words = ("--predicted", "predicted", "--metric", "recall", "--class", "none")

    with pytest.raises(
        StratalError, match=r"class among the labels and answers \(given: 'none'; allowed: '0'"
    ):
        run("estimate", sample, labels, *words)


def test_the_target_reaches_every_table(demo, tmp_path):
    sample, labels = classes_drawn(demo, tmp_path / "audit")
    errors = {}
    for target in ("population", "superpopulation"):
        result = json.loads(
            run("estimate", sample, labels, "--predicted", "predicted", "--metric", "accuracy",
                "--compare", "a,b", "--by", "predicted", "--target", target, "--json")
        )  # fmt: skip
        errors[target] = [result[kind][0]["standard_error"] for kind in ("metrics", "comparisons", "domains")]

    for within, beyond in zip(errors["population"], errors["superpopulation"], strict=True):
        assert within <= beyond
    assert errors["population"] != errors["superpopulation"]


def test_no_name_is_broken_or_cut_in_a_table(capsys):
    from stratal.cli.output import print_table
    from stratal.report.text import ReportTable

    names = ["a-model-whose-name-is-longer-than-any-terminal-is-wide-" * 3, "b"]
    print_table(
        ReportTable(header=["model", "mean", "other"], rows=[[name, 0.5, "x" * 40] for name in names])
    )

    lines = capsys.readouterr().out.splitlines()
    assert any(names[0] in line for line in lines)
    assert not any("…" in line for line in lines)


@pytest.mark.parametrize(
    "words",
    [
        *[["study", name, "nowhere"] for name in ("status", "label", "check", "team")],
        ["estimate", "nowhere"],
        ["study", "extend", "nowhere", "--additional", "5"],
        ["study", "backup", "nowhere", "--output", "copy"],
        ["report", "nowhere", "--output", "report.html"],
        ["estimate", "nowhere", "labels.csv"],
        ["study", "export", "nowhere", "--output", "page.html"],
        ["study", "export", "nowhere", "--to", "label-studio", "--output", "tasks.json"],
        ["study", "import", "nowhere", "answers.csv"],
    ],
    ids=" ".join,
)
def test_a_study_that_does_not_exist_is_one_clear_error(words, tmp_path, monkeypatch, run_command):
    monkeypatch.chdir(tmp_path)
    done = run_command(*words)

    assert done.status != 0
    assert done.message.startswith("nowhere is n")
    assert "the folder that `stratal study new` created" in done.message
    assert not any(tmp_path.iterdir())


def test_errors_speak_of_options(tmp_path, monkeypatch, capsys):
    rows = "".join(f"{unit},{unit % 10 / 10},{'ab'[unit % 2]}\n" for unit in range(40))
    (tmp_path / "full.csv").write_text("id,score,part\n" + rows)
    monkeypatch.chdir(tmp_path)

    def run(*words):
        monkeypatch.setattr("sys.argv", ["stratal", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, capsys.readouterr().err

    drawn = ["--proxy", "score", "--groups", "part", "--budget", "10", "--output", "audit"]
    assert run("draw", "full.csv", *drawn)[0] == 0
    table = (tmp_path / "audit" / "to_label.csv").read_text().splitlines()
    (tmp_path / "labels.csv").write_text(
        "\n".join([table[0], *(line.rstrip(",") + ",1" for line in table[1:])]) + "\n"
    )
    status, message = run("estimate", "audit/sample.parquet", "labels.csv", "--by", "colour")
    assert status == 2
    assert "--groups" in message
    assert "groups=" not in message


@pytest.mark.parametrize(
    ("name", "suggestion"), [("estmate", " Did you mean 'estimate'?"), ("zzzz", ""), ("-q", "No such option")]
)
def test_a_misspelt_command_suggests_the_one_that_exists(name, suggestion):
    done = CliRunner().invoke(app, [name, "x"])

    assert done.exit_code == 2
    assert suggestion in done.stderr
    assert ("Did you mean" in done.stderr) == ("Did" in suggestion)
