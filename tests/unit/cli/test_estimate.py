"""`stratal estimate`: an exit status of its own where an interval must lie somewhere, and learners."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.e2e.pasted import next_line, run, write

import stratal


@pytest.fixture
def audit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    population = stratal.Population.from_arrays(ids=range(400), proxy=np.full(400, 0.5))
    sample = stratal.designs.SimpleRandom(budget=100).draw(population, seed=7)
    sample.write("sample.parquet")
    write("labels.csv", ["id", "label"], [[unit, int(k >= 5)] for k, unit in enumerate(sample.ids.tolist())])
    return "estimate sample.parquet labels.csv"


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ("", 0),
        ("--require value>=.85", 0),
        ("--require value>=.9", 5),
        ("--require value>=.99", 4),
        ("--require value<=.99", 0),
        ("--require value<=.95", 5),
        ("--require value>=.85 --require value<=.5", 4),
        ("--require value>=.9 --confidence-level .5", 0),
    ],
)
def test_exit_statuses(audit, run_command, options, status):
    assert run_command(*audit.split(), *options.split()).status == status
    done = run_command(*audit.split(), *options.split(), "--json")
    assert done.status == status
    found = json.loads(done.stdout)
    assert ("requirements" in found) == bool("require" in options)
    verdicts = {0: "PASS", 4: "FAIL", 5: "UNDECIDED"}
    if "requirements" in found:
        assert found["requirements"][-1]["verdict"] == verdicts[status]


def test_markdown_has_the_verdicts_in_a_table_with_what_would_decide(audit, run_command):
    requirements = ["--require", "value>=.9;value>=.5"]
    done = run_command(*audit.split(), *requirements, "--format", "markdown")

    assert done.status == 5
    sentence, _, header, _, undecided, passed, *_ = done.stdout.splitlines()
    assert sentence.startswith("**")
    assert "95.0% (95% interval 89.8% to 98.0%)" in sentence
    assert header == "| verdict | required | estimate | 95% interval | to decide |"
    to_decide = "about 8 more labels would decide it if the estimate stays the same"
    assert undecided == f"| UNDECIDED | value\\>=0.9 | 95.0% | 89.8% to 98.0% | {to_decide} |"
    assert passed == "| PASS | value\\>=0.5 | 95.0% | 89.8% to 98.0% | – |"
    assert "Required" not in done.stdout
    assert "Next:" not in done.stdout


def test_text_of_the_data_is_no_markdown(audit, run_command):
    labels = Path("labels.csv").read_text().replace("label", "<img src=x>")
    Path("labels.csv").write_text(labels)
    done = run_command(*audit.split(), "--value", "<img src=x>", "--format", "markdown")

    assert done.status == 0
    assert "<img" not in done.stdout.replace("\\<img", "")


@pytest.mark.parametrize("options", ["--format html", "--format markdown --json"])
def test_other_formats_are_refused(audit, run_command, options):
    assert "format" in run_command(*audit.split(), *options.split()).message


def test_planned_looks_are_not_forgotten(audit, run_command):
    write("p.csv", ["id", "score"], [[f"u{k}", 0.5 + k / 1000] for k in range(400)])
    options = ["--proxy", "score", "--budget", 40, "--looks", 4, "--output", "looked"]
    drawn = run_command("draw", "p.csv", *options)
    assert drawn.stdout.endswith("estimate looked/sample.parquet looked/to_label.csv --look 1\n")
    sample = stratal.Sample.read("looked/sample.parquet")
    write("l.csv", ["id", "label"], [[unit, k % 2] for k, unit in enumerate(sample.ids.tolist())])
    words = ["estimate", "looked/sample.parquet", "l.csv"]
    assert "looks were planned (pocock:4)" in run_command(*words).stdout
    assert "looks were planned" not in run_command(*words, "--look", 4).stdout


def test_a_file_of_labels_is_read_once(audit, run_command, monkeypatch):
    from stratal.labels import label_files

    read_paths = []
    open_label_file = label_files._open_label_file

    def counted(path, *options):
        read_paths.append(path)
        return open_label_file(path, *options)

    monkeypatch.setattr(label_files, "_open_label_file", counted)

    assert run_command(*audit.split(), "--details").status == 0
    assert len(read_paths) == 1


def test_what_is_missing_is_named(audit, run_command, tmp_path):
    alone = run_command("estimate", "sample.parquet")
    assert "the labels are missing" in alone.message
    assert "Also give the file of the labels, after the sample: to_label.csv." in alone.message
    folder = run_command("estimate", str(tmp_path))
    assert "sample.parquet: the labels are missing" in folder.message
    assert run_command("estimate", str(tmp_path), "labels.csv").status == 0
    (tmp_path / "labels").mkdir()
    directory = run_command("estimate", "sample.parquet", "labels")
    assert "labels is a directory" in directory.message


def test_it_is_said_in_words(audit, run_command):
    done = run_command(*audit.split(), "--require", "value>=.9")

    said = (
        "Required value>=0.9: UNDECIDED; about 8 more labels would decide it if the estimate stays the same."
    )
    assert said in done.stdout


def test_a_mistake_keeps_its_own_status(audit, run_command):
    done = run_command("estimate", "nowhere.parquet", "labels.csv", "--require", "value>=.9")

    assert "no such file" in done.message


def test_the_report_comes_next_with_the_same_options(audit, tmp_path):
    line = next_line(run(f"{audit} --interval wilson --require value>=.5"))

    same = "--interval wilson --require 'value>=.5'"
    assert line == f"report sample.parquet labels.csv {same} --output report.html"
    run(line)
    assert "Required value&gt;=0.5: PASS." in (tmp_path / "report.html").read_text()


@pytest.fixture
def seconds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sample = stratal.designs.SimpleRandom(budget=40).draw(
        stratal.Population.from_arrays(ids=range(900)), seed=7
    )
    sample.write("sample.parquet")
    taken = [2.0, 90.0, *[1.0, 3.0] * 19]
    write("labels.csv", ["id", "label"], list(zip(sample.ids.tolist(), taken, strict=True)))
    return sample, taken


def test_the_mean_within_limits_is_the_librarys(seconds, run_command):
    sample, taken = seconds
    found = json.loads(
        run_command("estimate", "sample.parquet", "labels.csv", "--winsorise", "0,10", "--json").stdout
    )

    expected = stratal.estimate(sample, taken, limits=(0.0, 10.0))
    assert found["estimate"] == expected.value == 2.2
    assert found["confidence_interval"] == list(expected.confidence_interval())
    assert any("1 of 40 labels" in note for note in found["notes"])


def test_the_report_of_a_mean_within_limits_is_written(seconds, tmp_path):
    line = next_line(run("estimate sample.parquet labels.csv --winsorise 0,10"))
    assert "--winsorise 0,10" in line

    run(line)
    assert "Values outside 0 to 10 count as the limit" in (tmp_path / "report.html").read_text("utf-8")


@pytest.mark.parametrize("other", ["--bounds 0,10", "--target superpopulation", "--by day"])
def test_limits_are_for_the_plain_mean(seconds, run_command, other):
    done = run_command("estimate", "sample.parquet", "labels.csv", "--winsorise", "0,10", *other.split())

    assert "--winsorise would have no effect" in done.message


def test_words_are_those_of_the_help():
    from stratal.cli.command import command_words
    from stratal.cli.estimate import EvidenceOptions

    asked = EvidenceOptions(class_="3,8", id="key", value="right", predicted="answer", files=None)
    assert command_words(asked) == [
        "--predicted",
        "answer",
        "--value",
        "right",
        "--id",
        "key",
        "--class",
        "3,8",
    ]


@pytest.fixture
def judged(tmp_path, run_command):
    """A file with two judges and a metric, a sample drawn from it with one of them, and its labels."""
    rng = np.random.default_rng(3)
    a, b, c = rng.random((3, 600))
    z = (rng.random(600) < 1 / (1 + np.exp(-10 * ((a + b + c) / 3 - 0.5)))).astype(int)
    file, labels = tmp_path / "p.csv", tmp_path / "labels.csv"
    rows = [f"u{k},{a[k]:.4f},{b[k]:.4f},{c[k]:.4f}\n" for k in range(600)]
    file.write_text("id,judge_a,judge_b,f1\n" + "".join(rows))
    done = run_command("draw", file, "--proxy", "judge_a", "--budget", 120, "--output", tmp_path / "out")
    assert done.status == 0
    path = next((tmp_path / "out").glob("sample.*"))
    ids = stratal.Sample.read(path).ids.tolist()
    labels.write_text("id,label\n" + "".join(f"{unit},{z[int(unit[1:])]}\n" for unit in ids))
    return file, path, labels


def test_a_learner_from_columns_of_the_file(judged, run_command):
    pytest.importorskip("sklearn")
    file, path, labels = judged

    words = ("estimate", path, labels, "--population", file, "--calibration", "ridge")
    found = json.loads(run_command(*words, "--features", "judge_*,f1", "--json").stdout)

    population = stratal.Population.read(file, proxy="judge_a", features=["judge_b", "f1"])
    sample, known = stratal.Sample.read(path), stratal.read_labels(labels)
    again = stratal.estimate(sample, known, calibration="ridge", population=population)
    plain = stratal.estimate(sample, known)
    assert found["estimate"] == again.value
    assert "ridge learned from judge_a, judge_b, f1" in " ".join(found["notes"])
    assert again.standard_error < plain.standard_error


def test_features_without_a_learner_are_refused(judged, run_command):
    file, path, labels = judged

    words = ("estimate", path, labels, "--population", file, "--calibration", "isotonic")
    done = run_command(*words, "--features", "judge_*")

    assert done.status != 0
    assert "name a learner: gradient-boosting, history, logistic-regression, ridge" in done.message


def test_a_coefficient_reads_the_file_that_it_was_drawn_from(tmp_path, monkeypatch, run_command):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    rows = [[k, k / 300, rng.uniform()] for k in range(300)]
    write("units.csv", ["id", "length", "score"], rows)
    words = ("--proxy", "score", "--budget", "60", "--estimand", "coefficient:length")
    drawn = run_command("draw", "units.csv", *words, "--output", "audit")
    write("labels.csv", ["id", "label"], _labels("audit"))
    next_words = next_line(drawn.stdout).replace("audit/to_label.csv", "labels.csv")

    assert "--population" not in next_words
    found = json.loads(run_command(*next_words.split(), "--json").stdout)
    assert found["estimand"] == "coefficient:length"
    assert found["n"] == 60
    Path("audit/plan.json").unlink()
    alone = run_command("estimate", "audit/sample.parquet", "labels.csv")
    assert "--population FILE" in alone.message
    named = ("--population", "units.csv")
    assert json.loads(run_command(*next_words.split(), *named, "--json").stdout) == found
    idle = run_command(*next_words.split(), *named, "--estimand", "mean")
    assert "--population would have no effect" in idle.message


def _labels(folder):
    sample = stratal.Sample.read(f"{folder}/sample.parquet")
    return [[unit, int(int(unit) % 3 == 0)] for unit in sample.ids.tolist()]


def test_a_class_that_nobody_gave_is_undefined_and_no_error(tmp_path, monkeypatch, run_command):
    monkeypatch.chdir(tmp_path)
    answers = ["cat" if k % 3 else "dog" for k in range(200)]
    population = stratal.Population.from_arrays(
        ids=range(200), proxy=np.arange(200) / 200, groups={"answer": answers}, predicted="answer"
    )
    sample = stratal.plan(population, budget=60).draw(seed=7)
    sample.write("sample.parquet")
    write("labels.csv", ["id", "label"], [[unit, "cat"] for unit in sample.ids.tolist()])

    done = run_command("estimate", "sample.parquet", "labels.csv", "--estimand", "f1:zebra")

    assert done.status == 0
    assert "no labelled unit counts towards its denominator" in done.stdout


def test_a_requirement_without_its_limit_is_to_be_quoted(audit, run_command):
    assert "quotation marks" in run_command(*audit.split(), "--require", "value").message


def test_a_median_that_no_width_is_known_of_needs_no_population(tmp_path, monkeypatch, run_command):
    monkeypatch.chdir(tmp_path)
    write("labels.csv", ["id", "label"], [[f"u{k}", int(k % 2)] for k in range(240)])

    done = run_command("estimate", "labels.csv", "--population-size", 5000, "--estimand", "quantile:.5")

    assert done.status == 0
