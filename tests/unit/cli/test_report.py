"""`stratal report`: the figures of `estimate --json`, files by their ending, studies, new versions."""

import contextlib
import json
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.e2e.pasted import run, write
from tests.tiers import cells

import stratal

JUDGED = ["report", "audit/sample.parquet", "judged.csv"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A drawn sample of 300 units with its labels, answers of two versions, and the true classes."""
    made = tmp_path_factory.mktemp("audited")
    with contextlib.chdir(made):
        draw_and_label()
    return made


@pytest.fixture
def audit(folder, tmp_path, monkeypatch):
    """Work in a folder of its own with the same files; return the sample."""
    monkeypatch.chdir(shutil.copytree(folder, tmp_path, dirs_exist_ok=True))
    return stratal.Sample.read("audit/sample.parquet")


def draw_and_label():
    rng = np.random.default_rng(3)
    true, ids = rng.choice(["cat", "dog"], 300), [f"unit-{k}" for k in range(300)]
    old, new = (np.where(rng.random(300) < share, true, "cow") for share in (0.8, 0.9))
    table = {
        "id": ids,
        "confidence": rng.beta(4, 1, 300),
        "answer": old,
        "language": rng.choice(["de", "en"], 300),
        "text": [f"<script>alert({k})</script>" for k in range(300)],
    }
    pyarrow.parquet.write_table(pa.table(table), "predictions.parquet")
    options = "--proxy confidence --predicted answer --groups language --show text --budget 80 --seed 7"
    run(f"draw predictions.parquet {options} --output audit")
    sample = stratal.Sample.read("audit/sample.parquet")
    place = {name: k for k, name in enumerate(ids)}
    drawn = sample.ids.tolist()
    write("classes.csv", ["id", "label"], [[unit, true[place[unit]]] for unit in drawn])
    judged = [[unit, int(true[place[unit]] == old[place[unit]])] for unit in drawn]
    write("judged.csv", ["id", "label"], judged)
    write("new.csv", ["id", "answer"], zip(ids, new, strict=True))


def figures(run_command, *words):
    done = run_command(*words, "--json")
    assert done.status == 0, done.message
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "options",
    [
        "classes.csv --predicted answer",
        "classes.csv --predicted answer --metric accuracy,f1 --by language",
        "judged.csv --estimator ppi++ --interval t --confidence-level 0.9",
        "judged.csv --target superpopulation",
    ],
)
def test_figures_are_those_of_estimate(audit, run_command, options):
    words = ["audit/sample.parquet", *options.split()]
    report = figures(run_command, "report", *words, "--output", "report.json")

    more = {"more_labels": report["more_labels"]}
    estimate = figures(run_command, "estimate", *words)
    assert report["quantity"] == estimate["quantity"]
    assert report["estimate"] | more == estimate
    with open("report.json") as stream:
        assert json.load(stream) == report


def test_every_figure_of_the_estimate_stands_in_the_page(audit, run_command, tmp_path):
    words = ["audit/sample.parquet", "classes.csv", "--predicted", "answer", "--by", "language"]
    found = figures(run_command, "estimate", *words)
    done = run_command("report", *words, "--output", "report.html")
    page = (tmp_path / "report.html").read_text()

    low, high = found["confidence_interval"]
    assert (
        f"Accuracy {100 * found['estimate']:.1f}% (95% interval {100 * low:.1f}% to {100 * high:.1f}%)"
        in page
    )
    for row in found["domains"]:
        assert f"{100 * row['estimate']:.1f}%" in page
    for row in found["strata"]:
        assert f"{100 * row['mean']:.1f}%" in page
        assert f"{100 * row['standard_deviation']:.1f} points" in page
    report = figures(run_command, "report", *words, "--output", "report.json")
    for row in report["calibration"]["bins"]:
        assert f"{100 * row['proxy_mean']:.1f}%" in page
        assert f"{100 * row['outcome_mean']:.1f}%" in page
    assert "Report: report.html" in done.stdout


def test_the_printed_commands_make_it_again(audit, run_command, tmp_path):
    words = ["audit/sample.parquet", "classes.csv", "--predicted", "answer", "--interval", "wilson"]
    first = figures(run_command, "report", *words, "--output", "report.json")
    drawn, estimate, again = first["provenance"]["commands"]

    assert (
        estimate == "stratal estimate audit/sample.parquet classes.csv --predicted answer --interval wilson"
    )
    run_command(*again.split()[1:])
    assert json.loads((tmp_path / "report.json").read_text())["estimate"] == first["estimate"]
    shutil.move("audit", "drawn-before")
    run_command(*drawn.split()[1:])
    assert stratal.Sample.read("audit/sample.parquet") == audit


@pytest.mark.filterwarnings("ignore::stratal.StratalWarning")
def test_a_report_of_later_rounds_prints_no_command_that_draws(audit, run_command):
    words = ("--labels", "classes.csv", "--additional", "10", "--output", "more")
    extended = run_command("draw", "--extend", "audit/sample.parquet", *words)
    assert extended.status == 0, extended.message
    written = figures(run_command, "report", "more/sample.parquet", "classes.csv", "--output", "report.json")

    assert [line.split()[1] for line in written["provenance"]["commands"]] == ["estimate", "report"]


def test_payload_is_there_only_when_asked_for(audit, run_command, tmp_path):
    words = ["report", "audit/sample.parquet", "judged.csv", "--output", "report.html"]
    run_command(*words)
    assert "alert(" not in (tmp_path / "report.html").read_text()
    run_command(*words, "--items", "20")
    page = (tmp_path / "report.html").read_text()
    assert "&lt;script&gt;alert(" in page
    assert "<script" not in page


def test_a_new_version(audit, run_command):
    words = [
        "report",
        "audit/sample.parquet",
        "judged.csv",
        "--against",
        "new.csv",
        "--output",
        "report.json",
    ]
    found = figures(run_command, *words)["new_version"]
    exact = figures(
        run_command,
        *["report", "audit/sample.parquet", "classes.csv", "--predicted", "answer", "--against", "new.csv"],
        *["--output", "report.json"],
    )["new_version"]

    assert not found["complete"]
    assert exact["complete"]
    assert found["new"]["lowest"] <= exact["new"]["estimate"] <= found["new"]["highest"]
    assert len(found["needs_labels"]) == found["changed"]


def test_labels_of_what_changed(audit, run_command):
    words = [
        "report",
        "audit/sample.parquet",
        "judged.csv",
        "--against",
        "new.csv",
        "--output",
        "report.json",
    ]
    missing = figures(run_command, *words)["new_version"]["needs_labels"]
    write("more.csv", ["id", "label"], [[unit, 1] for unit in missing])
    found = figures(run_command, *words, "--new-labels", "more.csv")["new_version"]

    assert found["complete"]
    assert found["difference"]["estimate"] > 0


@pytest.mark.parametrize("name", ["report.pdf", "predictions.parquet", "classes.csv"])
def test_nothing_else_is_written_over(audit, run_command, name):
    done = run_command("report", "audit/sample.parquet", "judged.csv", "--output", name)

    assert done.status != 0
    assert re.search("unknown kind of report|is not a report", done.message)


def test_a_file_that_is_no_report_stays(audit, run_command, tmp_path):
    (tmp_path / "notes.md").write_text("mine")
    done = run_command("report", "audit/sample.parquet", "judged.csv", "--output", "notes.md")

    assert "is not a report" in done.message
    assert (tmp_path / "notes.md").read_text() == "mine"


def test_options_of_a_new_version_need_one(audit, run_command):
    done = run_command("report", "audit/sample.parquet", "judged.csv", "--output", "r.md", "--answers", "x")

    assert "--answers would have no effect" in done.message


def test_a_study_brings_its_question_and_agreement(tmp_path, monkeypatch, run_command):
    from stratal.study import StudyQuestion, create_study

    monkeypatch.chdir(tmp_path)
    proxy = np.random.default_rng(0).beta(3, 1, 200)
    population = stratal.Population.from_arrays(proxy=proxy, ids=[f"unit-{k}" for k in range(200)])
    question = StudyQuestion.of_choices("Is it right?", ["Pass", "Fail"])
    sample = stratal.plan(population, 40).draw(seed=7)
    with create_study(tmp_path / "audit", sample, question, annotators=["ann", "bob"], overlap=0.5) as study:
        for name in ("ann", "bob"):
            while (item := study.next_item(name)) is not None:
                study.submit(name, item.id, "Pass" if int(item.id.split("-")[1]) % 4 else "Fail")
    found = figures(run_command, "report", "audit", "--output", "report.json")

    assert found["question"] == "Is it right?"
    assert found["quantity"] == "pass rate"
    assert found["agreement"]["alpha"] == 1.0
    assert found["agreement"]["pairs"][0]["kappa"] == 1.0
    more = {"more_labels": found["more_labels"], "quantity": "pass rate"}
    assert found["estimate"] | more == figures(run_command, "estimate", "audit")
    assert run_command("report", "audit", "--output", "report.html").status == 0


def test_a_sample_drawn_elsewhere(tmp_path, monkeypatch, run_command):
    monkeypatch.chdir(tmp_path)
    rows = [[k, k % 2, "de" if k < 20 else "en"] for k in range(40)]
    write("labelled.csv", ["id", "label", "language"], rows)
    write("sizes.csv", ["stratum", "size"], [["de", 100], ["en", 300]])
    words = ["labelled.csv", "--chosen", "random-within:language", "--sizes", "sizes.csv"]
    found = figures(run_command, "report", *words, "--output", "report.json")

    more = {"more_labels": found["more_labels"]}
    estimate = figures(run_command, "estimate", *words)
    found["estimate"]["notes"].remove(estimate.pop("roles")["sentence"])
    assert found["quantity"] == estimate["quantity"]
    assert found["estimate"] | more == estimate


def test_the_lines_of_the_pipeline_in_the_guide_work(audit, run_command, tmp_path):
    """docs/guide/machines.md: every `stratal` line of the GitHub Action, in its order."""
    page = Path(__file__).parents[3] / "docs" / "guide" / "machines.md"
    lines = re.findall(r"- run: (stratal [^&\n]+)", page.read_text())
    (tmp_path / "classes.csv").rename(tmp_path / "audit" / "labels.csv")
    (tmp_path / "new.csv").rename(tmp_path / "new_answers.csv")

    assert len(lines) == 3
    statuses = [run_command(*shlex.split(line)[1:]).status for line in lines]
    assert statuses[:2] == [0, 0]
    assert statuses[2] in (0, 4, 5)


def test_ratings_of_two_people_are_a_scale_and_models_are_named(audit, run_command):
    ids = audit.ids.tolist()
    rated = [
        [unit, who, 1 + (k + (who == "bob")) % 4] for k, unit in enumerate(ids) for who in ("ann", "bob")
    ]
    write("rated.csv", ["id", "annotator", "label"], rated)
    write("models.csv", ["id", "one", "two"], [[unit, k % 2, 1] for k, unit in enumerate(ids)])

    ratings = figures(run_command, "report", "audit/sample.parquet", "rated.csv", "--output", "r.json")
    compared = figures(
        *(run_command, "report", "audit/sample.parquet", "models.csv", "--compare", "one,two"),
        *("--quantity", "pass rate", "--output", "c.json"),
    )
    said = run_command("estimate", "audit/sample.parquet", "rated.csv")

    assert ratings["agreement"]["level"] == "interval"
    assert "alpha (interval)" in said.stdout
    assert compared["quantity"] == "pass rate of one"


@pytest.fixture
def team_study(tmp_path, monkeypatch):
    """A function that makes a study of classes: two rounds, two people who agree or not, skips, decisions."""
    from stratal.study import StudyQuestion, create_study
    from stratal.study.interim import extend_study

    monkeypatch.chdir(tmp_path)

    def make(agreeing=0.9, decided=3, estimand=None, kinds=("cat", "dog")):
        rng = np.random.default_rng(11)
        size = 800
        true, ids = rng.choice(["cat", "dog"], size, p=[0.2, 0.8]), [f"u{k}" for k in range(size)]
        answer = np.where(rng.random(size) < 0.85, true, np.where(true == "cat", "dog", "cat"))
        population = stratal.Population.from_arrays(
            proxy=rng.beta(5, 1, size), ids=ids, groups={"answer": answer}, predicted="answer"
        )
        chosen = {} if estimand is None else {"estimand": estimand}
        sample = stratal.plan(population, 60, **chosen).draw(seed=7)
        known = dict(zip(ids, true, strict=True))
        question = StudyQuestion.of_classes("Which animal?", kinds)
        with create_study("audit", sample, question, annotators=["ann", "bob"], overlap=0.6) as study:
            for number in range(2):
                for who in ("ann", "bob"):
                    while (item := study.next_item(who)) is not None:
                        if rng.random() < 0.05:
                            study.skip(who, item.id)
                            continue
                        right = who == "ann" or rng.random() < agreeing
                        other = "dog" if known[item.id] == "cat" else "cat"
                        study.submit(who, item.id, known[item.id] if right else other)
                if number == 0:
                    extend_study(study, 20, population=population, by_labels=False)
            for entry in study.disagreements()[:decided]:
                study.adjudicate("ann", entry.item.id, known[entry.item.id])
        return sample

    return make


def numbers_of(pattern, text):
    return {int(found.replace(",", "")) for found in re.findall(pattern, text)}


@pytest.mark.filterwarnings("ignore::stratal.StratalWarning")
@pytest.mark.parametrize("estimand", cells([None, "f1:cat", "recall:cat"], fast=(None, "f1:cat")))
def test_all_figures_of_a_report_come_from_one_estimate(team_study, run_command, tmp_path, estimand):
    # It had "300 labels" and "55 of 8,000 were labelled", two values of alpha, 117 and 54 answers.
    team_study(estimand=estimand)
    wanted = [] if estimand is None else ["--estimand", estimand]
    report = figures(run_command, "report", "audit", *wanted, "--output", "report.md")
    found = figures(run_command, "estimate", "audit", *wanted)
    state = figures(run_command, "study", "status", "audit")
    page = (tmp_path / "report.md").read_text()

    counts, agreed = report["estimate"]["nonresponse"], report["agreement"]
    assert report["estimate"]["estimate"] == found["estimate"]
    assert report["estimate"]["confidence_interval"] == found["confidence_interval"]
    assert state["estimate"]["estimate"] == found["estimate"]
    assert state["agreement"] == agreed
    assert (state["nonresponse"]["items"], state["nonresponse"]["labelled"]) == (
        counts["drawn"],
        counts["labelled"],
    )
    assert sum(row["n"] for row in report["strata"]) == counts["labelled"]
    assert numbers_of(r"\), (?:[\d,]+ of )?([\d,]+) labels", page) == {counts["labelled"]}
    assert numbers_of(r"([\d,]+) of 800 units were labelled", page) == {counts["labelled"]}
    assert numbers_of(r"([\d,]+) answers", page) == {agreed["answers"]}
    averaged = numbers_of(r"[Ff]or ([\d,]+) units, the mean of several answers is used", page)
    assert averaged in (set(), {agreed["shared"] - agreed["decided"]})
    alphas = {float(found) for found in re.findall(r"(?:alpha|α) \(nominal\):? (-?[\d.]+\d)", page)}
    assert alphas == {round(agreed["alpha"], 3)}
    assert (agreed["open"], agreed["decided"]) == (
        state["disagreements"]["open"],
        state["disagreements"]["decided"],
    )
    assert agreed["decided"] == 3


def test_agreement_is_not_made_better_by_decisions(team_study, run_command):
    import shutil

    team_study(agreeing=0.6, decided=0)
    before = figures(run_command, "study", "status", "audit")["agreement"]
    shutil.rmtree("audit")
    team_study(agreeing=0.6, decided=100)
    after = figures(run_command, "study", "status", "audit")["agreement"]

    assert before["alpha"] == after["alpha"]
    assert (after["open"], after["decided"]) == (0, before["open"])
    assert before["annotators"] == after["annotators"] == ["ann", "bob"]


def test_disagreement_is_warned_of_everywhere(team_study, run_command, tmp_path):
    team_study(agreeing=0.2, decided=0)
    report = figures(run_command, "report", "audit", "--output", "report.md")
    notes = {
        "report": report["estimate"]["notes"],
        "page": (tmp_path / "report.md").read_text().splitlines(),
        "estimate": figures(run_command, "estimate", "audit")["notes"],
        "status": figures(run_command, "study", "status", "audit")["notes"],
    }

    assert report["agreement"]["alpha"] < 0
    for where, lines in notes.items():
        for text in ("agree less than by chance", "different answers and no decision"):
            assert sum(text in line for line in lines) == 1, (where, text)


def test_agreement_that_is_good_is_not_warned_of(team_study, run_command):
    team_study(agreeing=1.0)
    notes = (
        figures(run_command, "estimate", "audit")["notes"]
        + figures(run_command, "study", "status", "audit")["notes"]
    )
    assert not any("less than by chance" in note or "no decision" in note for note in notes)


def test_the_half_width_of_now_is_that_of_the_answer(audit, run_command):
    words = ["audit/sample.parquet", "judged.csv", "--interval", "wilson"]
    report = figures(run_command, "report", *words, "--output", "report.json")
    low, high = report["estimate"]["confidence_interval"]
    assert report["more_labels"][0]["half_width"] == pytest.approx((high - low) / 2)


@pytest.mark.filterwarnings("ignore::stratal.StratalWarning")
def test_a_subset_of_the_answers_gives_one_count(audit, run_command, tmp_path):
    lines = Path("classes.csv").read_text().splitlines()
    Path("some.csv").write_text("\n".join(lines[:51]) + "\n")
    words = ["audit/sample.parquet", "some.csv", "--predicted", "answer", "--estimand", "f1:cat"]
    report = figures(run_command, "report", *words, "--output", "report.md")
    page = (tmp_path / "report.md").read_text()

    assert report["estimate"]["n"] < 50
    assert numbers_of(r"\), (?:[\d,]+ of )?([\d,]+) labels", page) == {50}
    assert numbers_of(r"([\d,]+) of 300 units were labelled", page) == {50}
    assert f"is based on {report['estimate']['n']} of them" in page


def test_the_heading_names_the_data_where_the_plan_does(tmp_path, monkeypatch, run_command):
    monkeypatch.chdir(tmp_path)
    run_command("demo", "--output", "demo")
    file = "demo/predictions.parquet"
    run_command("draw", file, "--proxy", "confidence", "--budget", "60", "--output", "audit")
    run_command("demo", "--label", "audit/to_label.csv")
    run_command("report", "audit/sample.parquet", "audit/to_label.csv", "--output", "report.html")
    assert "<h1>How good is the model on predictions.parquet?</h1>" in (tmp_path / "report.html").read_text()

    asked = ("--question", "Is the digit right?", "--output", "asked.html")
    run_command("report", "audit/sample.parquet", "audit/to_label.csv", *asked)
    assert "<h1>Is the digit right?</h1>" in (tmp_path / "asked.html").read_text()


def test_the_heading_names_a_table(tmp_path, monkeypatch, run_command):
    monkeypatch.chdir(tmp_path)
    rows = [f"u{row},{row % 9 / 10 + 0.1:.1f},{int(row % 7 > 0) if row < 60 else ''}" for row in range(300)]
    Path("tickets.csv").write_text("\n".join(["id,confidence,label", *rows]) + "\n")
    run_command("report", "tickets.csv", "--output", "report.html")
    assert "<h1>How good is the model on tickets.csv?</h1>" in Path("report.html").read_text()
    run_command("report", "tickets.csv", "--question", "Is the answer right?", "--output", "asked.html")
    assert "<h1>Is the answer right?</h1>" in Path("asked.html").read_text()
