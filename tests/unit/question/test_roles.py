"""The judges, the compared models and the target are declared at the draw and read by every later step."""

import ast
import json
from dataclasses import replace

import numpy as np
import pytest
from tests.architecture.structure import SOURCE

import stratal
from stratal.designs import derive_question
from stratal.errors import InputError
from stratal.question import Question


@pytest.fixture
def data():
    """Ids, a proxy, answers, verdicts and true classes of 300 units."""
    draws = np.random.default_rng(3)
    score = np.round(draws.random(300), 4)
    answer = draws.choice(["cat", "dog"], 300)
    other = np.where(answer == "cat", "dog", "cat")
    truth = np.where(draws.random(300) < score, answer, other)
    verdict = np.where(draws.random(300) < 0.8, truth, answer)
    second = np.where(draws.random(300) < 0.7, truth, answer)
    ids = [f"u{number}" for number in range(300)]
    return {"id": ids, "score": score, "answer": answer, "verdict": verdict, "second": second, "truth": truth}


@pytest.fixture
def sample(data):
    population = stratal.Population.from_arrays(
        ids=data["id"],
        proxy={"score": data["score"]},
        groups={name: data[name] for name in ("answer", "verdict", "second")},
        predicted="answer",
        judge="verdict",
    )
    return stratal.designs.SimpleRandom(budget=80).draw(population, seed=7)


@pytest.fixture
def labels(data, sample):
    truth = dict(zip(data["id"], data["truth"].tolist(), strict=True))
    return {unit: truth[unit] for unit in sample.ids.tolist()}


@pytest.fixture
def files(data, tmp_path, monkeypatch, run_command):
    """A drawn sample with a judge and a target, and its filled-in labels."""
    monkeypatch.chdir(tmp_path)
    names = [name for name in data if name != "truth"]
    rows = zip(*(data[name] for name in names), strict=True)
    lines = [",".join(map(str, row)) for row in rows]
    (tmp_path / "file.csv").write_text("\n".join([",".join(names), *lines]) + "\n")
    options = ["--proxy", "score", "--predicted", "answer", "--judge", "verdict", "--budget", "80"]
    run_command("plan", "file.csv", *options, "--target", "superpopulation", "--output", "plan.json")
    run_command("draw", "plan.json", "--output", "drawn")
    truth = dict(zip(data["id"], data["truth"].tolist(), strict=True))
    header, *drawn = (tmp_path / "drawn" / "to_label.csv").read_text().splitlines()
    filled = [f"{row.rstrip(',')},{truth[row.partition(',')[0]]}" for row in drawn]
    (tmp_path / "labels.csv").write_text("\n".join([header, *filled]) + "\n")
    return tmp_path


def test_roles_are_stored_with_the_sample(sample, tmp_path):
    sample.write(tmp_path / "sample.parquet")
    question = stratal.Sample.read(tmp_path / "sample.parquet").question

    assert question.answer == "answer"
    assert question.judges == ("verdict",)
    assert "verdict" in stratal.Sample.read(tmp_path / "sample.parquet").groups


def test_an_evaluation_reads_the_judge_of_the_sample(sample, labels):
    stored = stratal.evaluate(sample, labels)
    stated = stratal.evaluate(sample, labels, judge="verdict")

    assert [table.kind for table in stored.tables] == ["judge"]
    assert stored.tables[0].rows() == stated.tables[0].rows()


def test_a_later_judge_refines_and_another_one_contradicts(sample, labels):
    both = stratal.evaluate(sample, labels, judge=["verdict", "second"])

    assert both.sample.question.judges == ("verdict", "second")
    with pytest.raises(InputError, match=r"judge=.*given: second; allowed: verdict"):
        stratal.evaluate(sample, labels, judge="second")


def test_one_of_several_declared_judges_may_be_chosen(sample, labels):
    both = replace(sample, question=sample.question.refine(judges=["verdict", "second"]))

    chosen = stratal.evaluate(both, labels, judge="second")

    assert chosen.sample.question.judges == ("second",)


def test_the_table_to_label_has_a_column_for_each_compared_model(files, run_command):
    options = ["--proxy", "score", "--compare", "new,old", "--budget", "80"]
    drawn = json.loads(run_command("draw", "file.csv", *options, "--output", "compared", "--json").stdout)

    header = (files / "compared" / "to_label.csv").read_text().splitlines()[0]

    assert header == "id,new,old"
    assert drawn["columns_to_fill"] == ["new", "old"]


def test_an_estimand_of_its_own_leaves_the_stored_judge_out(sample, labels):
    assert stratal.evaluate(sample, labels, estimand="f1:cat").tables == ()


def test_every_entry_point_reads_the_stored_target(sample, labels):
    declared = replace(sample, question=sample.question.refine(target="superpopulation"))
    expected = stratal.estimate(sample, labels, target="superpopulation")

    for ask in (stratal.estimate, lambda *given, **more: stratal.evaluate(*given, **more).estimate):
        assert ask(declared, labels).standard_error == expected.standard_error
        with pytest.raises(InputError, match=r"target=.*given: population; allowed: superpopulation"):
            ask(declared, labels, target="population")


def test_commands_store_and_read_roles(files, run_command):
    planned = json.loads((files / "plan.json").read_text())["question"]
    evidence = ("drawn/sample.parquet", "labels.csv")
    stored = json.loads(run_command("estimate", *evidence, "--json").stdout)
    run_command("report", *evidence, "--output", "report.json")
    report = json.loads((files / "report.json").read_text())

    assert planned["judges"] == ["verdict"]
    assert planned["target"] == "superpopulation"
    assert stored["target"] == "superpopulation"
    assert {row["judge"] for row in stored["judge"]} == {"verdict"}
    assert {row["judge"] for row in report["estimate"]["judge"]} == {"verdict"}
    refused = run_command("estimate", "drawn/sample.parquet", "labels.csv", "--target", "population")
    assert "given: population; allowed: superpopulation" in refused.message


def test_a_draw_may_add_a_judge_to_its_plan(files, run_command):
    run_command("plan", "file.csv", "--proxy", "score", "--budget", "80", "--output", "plain.json")
    added = run_command("draw", "plain.json", "--judge", "second", "--output", "added")
    other = run_command("draw", "plan.json", "--judge", "second", "--output", "other")

    assert added.status == 0
    assert stratal.Sample.read(files / "added" / "sample.parquet").question.judges == ("second",)
    assert "--judge is set by the plan" in other.message


def test_a_verdict_is_not_shown(files, run_command):
    refused = run_command(
        "draw", "file.csv", "--judge", "verdict", "--show", "verdict", "--budget", "9", "--output", "shown"
    )

    assert "would influence the annotators" in refused.message


@pytest.mark.parametrize("shown", ["SCORE", "Answer", "Verdict", "score"])
def test_columns_that_lead_annotators_are_found_without_regard_to_case(files, run_command, shown):
    columns = {"proxy": "score", "predicted": "ANSWER", "judge": "verdict"}
    with pytest.raises(InputError, match="would influence the annotators"):
        stratal.Population.read("file.csv", **columns, show=["second", shown])

    options = ["--proxy", "score", "--predicted", "ANSWER", "--judge", "verdict", "--budget", "9"]
    of_file = run_command("draw", "file.csv", *options, "--show", shown, "--output", "shown")
    of_plan = run_command("draw", "plan.json", "--show", shown, "--output", "shown")

    for result in (of_file, of_plan):
        assert result.status != 0
        assert "would influence the annotators" in result.message
    assert not (files / "shown").exists()


def test_arrays_that_lead_annotators_are_not_shown(data):
    for name in ("score", "answer", "verdict"):
        with pytest.raises(InputError, match=f"'{name}' would influence the annotators"):
            stratal.Population.from_arrays(
                ids=data["id"],
                proxy={"score": data["score"]},
                groups={"answer": data["answer"], "verdict": data["verdict"]},
                predicted="answer",
                judge="verdict",
                show={name: data[name]},
            )


def test_probabilities_and_what_is_computed_of_them_are_not_shown(files):
    rows = [f"u{number},{number / 300},{1 - number / 300}" for number in range(300)]
    (files / "softmax.csv").write_text("\n".join(["id,p_cat,p_dog", *rows]) + "\n")
    for name in ("P_CAT", "confidence", "predicted_class"):
        for softmax in ("p_*", ["P_Cat", "P_Dog"]):
            with pytest.raises(InputError, match="would influence the annotators"):
                stratal.Population.read("softmax.csv", softmax=softmax, show=name)


def test_answers_of_other_models_and_second_moments_are_not_shown(files):
    peers = {"predicted": "answer", "answers": ["second"], "show": "SECOND"}
    moments = {"proxy": "score", "second_moment": "squared", "show": "Squared"}
    rows = [f"u{number},{number / 300},{number / 300}" for number in range(300)]
    (files / "moments.csv").write_text("\n".join(["id,score,squared", *rows]) + "\n")

    for path, keywords in (("file.csv", peers), ("moments.csv", moments)):
        with pytest.raises(InputError, match="would influence the annotators"):
            stratal.Population.read(path, **keywords)


def test_an_extension_names_the_column_that_it_must_not_show(files, run_command):
    evidence = ["--extend", "drawn/sample.parquet", "--labels", "labels.csv", "--additional", "5"]
    refused = run_command("draw", *evidence, "--show", "SCORE", "--output", "larger")

    assert "'score' would influence the annotators" in refused.message
    assert "leave 'SCORE' out of --show" in refused.message
    assert not (files / "larger").exists()


def test_compared_models_are_declared_before_labelling(sample):
    outcomes = {unit: float(number % 2) for number, unit in enumerate(sample.ids.tolist())}
    reverse = {unit: 1 - value for unit, value in outcomes.items()}
    question = Question(id="id", groups=sample.question.groups, models=("a", "b"))
    declared = replace(sample, question=question)

    result = stratal.evaluate(declared, {"a": outcomes, "b": reverse})
    assert [table.kind for table in result.tables] == ["comparisons"]


def test_a_question_without_the_new_fields_is_read():
    question = Question.from_dict({"id": "id", "answer": "answer", "groups": ["answer"]})

    assert question.judges == ()
    assert question.models == ()
    assert question.target is None
    assert Question.from_dict(question.to_dict()) == question


def test_an_unknown_target_is_refused():
    with pytest.raises(InputError, match=r"target.*universe"):
        Question(target="universe")


def test_other_models_answers_are_recorded(data):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({name: data[name] for name in ("id", "answer", "verdict")})
    population = stratal.Population.from_table(frame, predicted="answer", answers=["verdict"])

    assert derive_question(population, ("answer",), ()).other_answers == ("verdict",)


def names_in(path):
    """Return the names, attributes, keywords and texts in a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        for field in ("id", "attr", "arg", "value"):
            entry = getattr(node, field, None)
            if isinstance(entry, str):
                yield entry


def test_a_new_role_touches_three_files():
    """Populations, samples, plans and studies pass roles on without naming any of them."""
    passing = ["population", "designs", "tables", "cli", "evaluation"]
    files = [path for folder in passing for path in sorted((SOURCE / folder).rglob("*.py"))]
    naming = {str(path.relative_to(SOURCE)) for path in files if "judges" in {*names_in(path)}}
    options = {str(path.relative_to(SOURCE)) for path in files if "judge" in {*names_in(path)}}

    # The evaluation compares judges with labels; the other parts only pass them on.
    table = "evaluation/labelled_table.py"  # names the roles that a column is recognised by
    assert naming - {table} <= {"evaluation/labelled_sample.py", "evaluation/requested_tables.py"}
    assert options <= {
        "cli/options.py",
        "cli/draw.py",  # options of a table with labels
        "cli/estimate.py",  # when the option has an effect
        "cli/printed.py",  # a table of the JSON schema
        "population/inspection.py",  # a usual name of a proxy
        "evaluation/evaluation.py",
        "evaluation/labelled_sample.py",
        "evaluation/labelled_table.py",
        "evaluation/from_arrays.py",
        "evaluation/request.py",
        "evaluation/requested_tables.py",
    }


@pytest.mark.parametrize(
    ("proxies", "judges", "what"),
    [
        (["score"], ["grade"], "'grade' contains scores, not verdicts"),
        (["score", "grade"], ["grade", "verdict"], "scores cannot be declared together"),
    ],
)
def test_judges_that_no_label_can_be_compared_with_are_refused_before_labelling(data, proxies, judges, what):
    """After 150 labels the estimate said that labels and answers are measurements."""
    columns = {"score": data["score"], "grade": np.round(1 - data["score"] / 2, 3)}
    names = {"verdict": data["verdict"]}
    if "grade" not in proxies:
        names["grade"] = columns["grade"].astype(str)
    population = stratal.Population.from_arrays(
        ids=data["id"], proxy={name: columns[name] for name in proxies}, groups=names, judge=judges
    )
    with pytest.raises(InputError, match=what):
        stratal.designs.SimpleRandom(budget=80).draw(population, seed=7)
