"""Tables with labels in some rows: how rows were chosen, verdicts on requirements, counts and logs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.tiers import sized

import stratal
from stratal.errors import InputError, LabelError, StratalWarning
from stratal.report.notes import LABELS_BY_ANSWER, has_code

TOOLS = Path(__file__).parents[2] / "tools"
ROWS = 1200


def table_of(seed=0, chosen=None):
    """A judge's score, labels of the rows that `chosen` makes likely, and their probabilities."""
    draws = np.random.default_rng(seed)
    score = draws.random(ROWS)
    right = draws.random(ROWS) < score
    chance = np.full(ROWS, 0.15) if chosen is None else chosen(score)
    labelled = draws.random(ROWS) < chance
    return {
        "id": [f"u{row}" for row in range(ROWS)],
        "judge_score": score.round(4),
        "site": ["north" if row % 3 else "south" for row in range(ROWS)],
        "pi": chance,
        "human": [
            ("pass" if z else "fail") if here else None for z, here in zip(right, labelled, strict=True)
        ],
    }, right.mean()


def where_low(score):
    return np.where(score < 0.4, 0.3, 0.05)


def test_the_judge_and_the_labels_of_a_table_need_no_option():
    table, truth = table_of()

    found = stratal.estimate_from(table)

    roles = found.to_dict()["roles"]
    assert (roles["label"], roles["judge"], roles["chosen"]) == ("human", ["judge_score"], "random")
    assert "judge: `judge_score`; labels: `human` in" in roles["sentence"]
    assert truth in found.estimate.confidence_interval(0.999)
    assert found.sample.question.chosen == "random"


@pytest.mark.filterwarnings("ignore::stratal.errors.StratalWarning")
def test_a_choice_by_the_score_is_warned_of_and_never_passes():
    table, truth = table_of(chosen=where_low)

    found = stratal.evaluate(table, require="value>=.01")
    printed = found.to_dict()

    assert found.status == "UNDECIDED"
    assert printed["requirements"][0]["reason"] == "the labelled rows are not a random sample of the table"
    assert truth in found.post_stratified.confidence_interval(0.999)
    assert "Weighted by quantiles of the proxy" in str(found)


@pytest.mark.filterwarnings("ignore::stratal.errors.StratalWarning")
@pytest.mark.parametrize("require", ["value>=.01", "value>=.99"])
def test_an_unknown_choice_decides_nothing(require):
    table, truth = table_of(chosen=where_low)

    found = stratal.evaluate(table, chosen="unknown", require=require)

    assert found.status == "UNDECIDED"
    assert truth in found.estimate.confidence_interval(0.999)


def test_an_unknown_choice_needs_a_proxy():
    table, _ = table_of()

    with pytest.raises(InputError, match="a proxy is required"):
        stratal.evaluate(table, chosen="unknown", judge="none", proxy="none")


def test_probabilities_give_hajeks_mean():
    table, _ = table_of(chosen=where_low)
    here = [row for row, label in enumerate(table["human"]) if label]
    z = np.array([table["human"][row] == "pass" for row in here], dtype=float)
    weight = 1.0 / table["pi"][here]

    found = stratal.evaluate(table, chosen="probability:pi", require="value>=.01")

    assert found.estimate.value == pytest.approx(np.sum(weight * z) / np.sum(weight))
    assert found.status == "PASS"
    with pytest.raises(InputError, match=r"not usable|above 1"):
        stratal.evaluate({**table, "pi": table["pi"] * 10}, chosen="probability:pi")


def test_a_level_without_labels_is_an_error():
    table, _ = table_of()
    table["human"] = [
        label if site == "north" else None for label, site in zip(table["human"], table["site"], strict=True)
    ]

    with pytest.raises(InputError, match="stratum 'south' has no labelled unit"):
        stratal.evaluate(table, chosen="random-within:site")


def test_all_rows_must_be_labelled_if_that_is_stated():
    table, _ = table_of()

    with pytest.raises(InputError, match="rows have no label"):
        stratal.evaluate(table, chosen="all")
    complete = {
        name: [1.0, 0.0, 1.0, 1.0] if name == "human" else list(column[:4]) for name, column in table.items()
    }
    found = stratal.evaluate(complete)
    assert (found.estimate.target, found.to_dict()["roles"]["chosen"]) == ("superpopulation", "all")


def test_a_judge_with_numbers_is_reported_in_the_words_of_the_labels():
    table, _ = table_of()
    table["judge"] = (table.pop("judge_score") > 0.5).astype(float)

    text = str(stratal.evaluate(table))

    assert "of the 'fail' (sensitivity)" in text or "of the 'pass' (sensitivity)" in text
    table["human"] = [None if label is None else int(label == "pass") for label in table["human"]]
    table["judge"] = [f"{verdict:.1f}" for verdict in table["judge"]]
    assert "'0.0'" not in str(stratal.evaluate(table))


def test_a_count_is_estimated_and_says_which_labels_would_decide():
    found = stratal.evaluate("47/50", require=">=.9")
    (verdict,) = found.to_dict()["requirements"]

    assert found.estimate.value == pytest.approx(0.94)
    assert (verdict["verdict"], verdict["required"]) == ("UNDECIDED", "value>=0.9")
    assert 100 < verdict["more_labels"] < 500
    for text in ("51/50", "0/0"):
        with pytest.raises(InputError):
            stratal.evaluate(text)


def test_logs_of_one_tool_are_compared(tmp_path):
    lines = [json.loads(line) for line in (TOOLS / "lm-eval-0.4.13-capitals.jsonl").read_text().splitlines()]
    for name, flipped in (("a", 0), ("b", 1)):
        for line in lines:
            line["exact_match"] = float((line["doc_id"] + flipped) % 2)
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]

    found = stratal.evaluate(paths, value="exact_match@strict-match").to_dict()

    assert {row["model"] for row in found["leaderboard"]} == {"a", "b"}
    with pytest.raises(InputError, match="several scores"):
        stratal.evaluate(paths)


def test_several_files_that_are_no_logs_name_the_forms(tmp_path):
    for name in ("x.csv", "y.csv"):
        (tmp_path / name).write_text("id,label\na,1\nb,0\n")

    with pytest.raises(InputError, match="logs of one evaluation tool"):
        stratal.evaluate([tmp_path / "x.csv", tmp_path / "y.csv"])


def test_metrics_have_the_names_of_other_fields():
    assert stratal.estimands.Estimand.parse_text("Sensitivity:cat").text == "recall:cat"
    assert stratal.estimands.Estimand.parse_text("ppv:cat").text == "precision:cat"


def test_answers_of_several_models_are_compared_with_labels_that_are_classes():
    generator = np.random.default_rng(4)
    truth = generator.choice(["refund", "billing", "tech"], 900)
    table = {"id": [f"q{number}" for number in range(900)]}
    for model, accuracy in {"gpt": 0.9, "claude": 0.85, "llama": 0.6}.items():
        wrong = np.where(truth == "refund", "billing", "refund")
        table[model] = np.where(generator.random(900) < accuracy, truth, wrong).tolist()
    is_labelled = generator.random(900) < 0.3
    table["label"] = np.where(is_labelled, truth, "").tolist()

    result = stratal.evaluate(table, compare=["gpt", "claude", "llama"])

    (comparison,) = (part for part in result.tables if isinstance(part, stratal.Comparisons))
    means = {str(row.label["model"]): row.value for row in comparison.means}
    assert set(means) == {"gpt", "claude", "llama"}
    for model, value in means.items():
        assert value == pytest.approx(np.mean(np.array(table[model])[is_labelled] == truth[is_labelled]))


def test_several_columns_of_answers_are_a_question_that_offers_a_comparison():
    table = {
        "id": [f"q{number}" for number in range(60)],
        "label": ["refund", "billing", ""] * 20,
        "gpt": ["refund", "billing"] * 30,
        "llama": ["billing", "refund"] * 30,
    }

    with pytest.raises(InputError, match=r"compare=\['gpt', 'llama'\]"):
        stratal.evaluate(table)


def answers_with_unsure_labels():
    """34 labels that equal the answers of `a`, and 6 that are not answer."""
    answers = ["refund", "billing"] * 20
    return {
        "id": [f"q{number}" for number in range(40)],
        "label": [*answers[:34], *["unsure"] * 6],
        "a": answers,
        "b": answers[::-1],
    }


def test_a_label_that_is_no_answer_is_not_a_wrong_answer_of_every_model():
    """Every model counted as wrong where the label was "unsure"."""
    with pytest.raises(LabelError, match="'unsure'"):
        stratal.evaluate(answers_with_unsure_labels(), value="label", compare=["a", "b"])

    mapped = stratal.evaluate(
        answers_with_unsure_labels(), value="label", compare=["a", "b"], mapping={"unsure": None}
    )

    assert mapped.estimate.value == 1.0
    assert mapped.estimate.n == 34


def test_a_list_that_is_none_of_paths_is_an_error():
    for source in ([], [1, 0, 1]):
        with pytest.raises(InputError, match="a list must contain paths"):
            stratal.evaluate(source)


@pytest.mark.parametrize("name", ["label", "human_label"])
def test_labels_0_and_1_beside_answers_are_a_question(name):
    """Labels that meant right and wrong were compared with the answers: .13 instead of .91."""
    table = {
        "id": [f"q{number}" for number in range(80)],
        "prediction": [str(number % 10) for number in range(80)],
        name: [("1" if number % 8 else "0") if number < 40 else "" for number in range(80)],
    }

    with pytest.raises(InputError, match="may be classes, or mean wrong and right"):
        stratal.evaluate(table)
    assert stratal.evaluate(table, predicted="none").estimate.value == pytest.approx(35 / 40)


def test_a_column_of_correctness_is_not_compared_with_answers():
    table = {
        "id": [f"q{number}" for number in range(80)],
        "prediction": [str(number % 2) for number in range(80)],
        "is_correct": ["1" if number % 8 else "0" for number in range(80)],
    }

    assert stratal.evaluate(table).estimate.value == pytest.approx(70 / 80)


def test_a_code_of_missing_labels_is_a_question():
    table = {"id": [str(number) for number in range(60)], "label": [*["1", "0"] * 28, *["-1"] * 4]}

    with pytest.raises(LabelError, match="-1"):
        stratal.evaluate(table)
    evaluation = stratal.evaluate(table, mapping={"-1": None})
    assert evaluation.estimate.value == 0.5
    # 4 rows have no label; they are no drawn units without an answer.
    assert (evaluation.estimate.n, evaluation.sample.size) == (56, 56)


@pytest.mark.parametrize(
    ("labels", "code"),
    [
        (["1", "4", "5", "99"], "99"),
        ([0.2, 0.8, 1.0, -9.0], "-9"),
        ([3, 10, 7, -1], "-1"),
        ([1, 2, 999], "999"),
    ],
)
def test_a_code_beside_ratings_is_a_question(labels, code):
    """The mean of ratings from 1 to 5 was 66.9."""
    table = {"id": [str(number) for number in range(120)], "rating": labels * (120 // len(labels))}

    with pytest.raises(LabelError, match=f"{code} in 'rating' may mean that a row has no label"):
        stratal.evaluate(table, value="rating")
    without_code = stratal.evaluate(table, value="rating", mapping={code: None})
    numbers = [float(label) for label in labels[:-1]] if code != "-1" else [3.0, 10.0, 7.0]
    assert without_code.estimate.value == pytest.approx(np.mean(numbers))
    # These rows are not labelled: they are no missing answers of drawn units.
    assert without_code.estimate.n == without_code.sample.size


@pytest.mark.parametrize(
    "labels", [[97, 98, 99], [60, 88, 99, 100], [-3, -1, 2], [1, 30, 99], [-1.0, -0.5, 1.0]]
)
def test_numbers_near_others_are_no_codes(labels):
    table = {"id": [str(number) for number in range(120)], "value": labels * (120 // len(labels))}

    assert stratal.evaluate(table, value="value").estimate.value == pytest.approx(np.mean(labels))


def test_probabilities_that_expect_other_numbers_of_labels_are_refused():
    table, _ = table_of()
    table["pi"] = [0.9] * ROWS

    with pytest.raises(InputError, match="inclusion probabilities"):
        stratal.evaluate(table, chosen="probability:pi")


def test_a_threshold_is_not_guaranteed_by_rows_that_are_not_random():
    table, _ = table_of(chosen=lambda score: np.where(score > 0.7, 0.4, 0.01))

    result = stratal.threshold(table, require="error<=.4", score="judge_score", predicted="none")

    assert result.verdict == "UNDECIDED"
    assert not result.chosen
    with pytest.raises(InputError, match="chosen at random"):
        stratal.threshold(table, require="error<=.4", score="judge_score", chosen="unknown")


def small_table(seed=0, rows=160, labelled=60):
    """Verdicts, answers and scores of rows, of which the first have a label."""
    draws = np.random.default_rng(seed)
    score = draws.random(rows)
    right = draws.random(rows) < score
    return {
        "id": [f"u{row}" for row in range(rows)],
        "confidence": score.round(3),
        "human": [("pass" if z else "fail") if row < labelled else None for row, z in enumerate(right)],
    }


def roles_of(table, **options):
    return stratal.evaluate(table, **options).to_dict()["roles"]


def test_every_keyword_of_the_signature_is_taken_or_refused_by_name():
    import inspect

    table = small_table()
    options = {
        "chosen": "random",
        "value": "human",
        "id": "id",
        "proxy": "confidence",
        "judge": "confidence",
        "positive": "pass",
        "mapping": {"pass": 1, "fail": 0},
        "require": "value>=.5",
        "by": None,
        "lam": 0.5,
        "clip": True,
        "stratum_weights_known": True,
        "groups_labelled": {},
        "confidence_level": 0.9,
        "limits": (0.0, 1.0),
    }
    keywords = inspect.signature(stratal.estimate_from).parameters
    assert options.keys() <= keywords.keys()
    for name, value in options.items():
        if name in ("lam", "clip", "stratum_weights_known", "groups_labelled"):
            with pytest.raises(InputError, match=f"{name}= has no effect with a table"):
                stratal.estimate_from(table, **{name: value})
        else:
            assert stratal.estimate_from(table, **{name: value}).estimate.n == 60
    with pytest.raises(InputError, match="chosen= has no effect with arrays"):
        stratal.estimate_from([1, 0, 1], [0.5, 0.2, 0.9], [0.1, 0.7], chosen="random")


def test_columns_that_are_not_used_are_named_with_their_option():
    table = small_table()
    table["prediction"] = ["cat" if row % 3 else "dog" for row in range(160)]
    table["risk_pct"] = table.pop("confidence") * 100

    notes = roles_of(table)["notes"]

    assert any("'prediction' is not used" in note and "--predicted prediction" in note for note in notes)
    assert any("'risk_pct' is not used" in note and "--proxy risk_pct" in note for note in notes)
    assert roles_of(table, proxy="risk_pct")["proxy"] == "risk_pct"


def test_a_column_called_proxy_is_the_proxy():
    table = small_table()
    table["proxy"] = table.pop("confidence")
    table["judge"] = ["pass" if value > 0.4 else "fail" for value in table["proxy"]]

    roles = roles_of(table)

    assert (roles["proxy"], roles["judge"]) == ("proxy", ["judge"])


def test_missing_verdicts_of_a_judge_are_left_out_of_the_agreement():
    table = small_table()
    table["judge"] = [
        ("pass" if value > 0.4 else "fail") if row % 4 else None
        for row, value in enumerate(table.pop("confidence"))
    ]
    found = stratal.evaluate(table)

    assert any("15 of 60 drawn units have no verdict of 'judge'" in note for note in found.to_dict()["notes"])
    table["judge_score"] = [0.5 if row % 4 else None for row in range(160)]
    with pytest.raises(InputError, match=r"no score in 40 of 160 rows.*judge='none'"):
        stratal.evaluate(table, judge="judge_score")


@pytest.mark.parametrize(
    ("labels", "options", "name"),
    [
        (("pass", "fail"), {}, "Pass rate"),
        (("correct", "incorrect"), {}, "Accuracy"),
        (("yes", "no"), {}, "Share of 'yes'"),
        (("harmful", "safe"), {"positive": "harmful"}, "Share of 'harmful'"),
        ((5, 3), {}, "Mean of `human`"),
        ((1, 0), {}, "Share of ones in `human`"),
    ],
)
def test_the_first_line_names_the_quantity(labels, options, name):
    table = small_table()
    table["human"] = [None if label is None else labels[label == "fail"] for label in table["human"]]

    assert str(stratal.evaluate(table, **options)).startswith(f"{name} ")


def test_labels_that_are_classes_give_an_accuracy_that_may_be_required():
    table = small_table()
    table["prediction"] = ["cat" if row % 3 else "dog" for row in range(160)]
    table["human"] = ["cat" if row % 2 else "dog" for row in range(60)] + [None] * 100
    found = stratal.evaluate(table, require="accuracy>=.01", metric=("precision", "recall", "f1"))

    assert str(found).startswith("Accuracy ")
    assert found.status == "PASS"
    # A requested table is printed in full up to twelve rows.
    assert str(found).count("\nf1") == 3


def test_a_judge_and_the_labels_are_side_by_side():
    draws = np.random.default_rng(4)
    right = draws.random(600) < 0.7
    verdicts = np.where(draws.random(600) < 0.8, right, 1.0).astype(int)
    table = {
        "id": list(range(600)),
        "judge": verdicts,
        "human": [("pass" if z else "fail") if row < 250 else None for row, z in enumerate(right)],
    }
    found = stratal.evaluate(table)
    printed = found.to_dict()
    rows = {row["name"]: row for row in printed["judge_readings"]}

    assert list(rows) == ["corrected", "judge only", "labels only"]
    assert rows["judge only"]["estimate"] == pytest.approx(np.mean(verdicts))
    assert rows["labels only"]["estimate"] == pytest.approx(np.mean(right[:250]))
    assert rows["corrected"]["estimate"] == found.estimate.value
    differing = int(np.sum(right[:250] != verdicts[:250].astype(bool)))
    assert printed["differing"] == {"items": differing, "labelled": 250}
    assert "'judge' alone is" in str(found)
    assert "too high" in str(found)
    assert "of the 'fail' (sensitivity)" in str(found)


def test_an_unknown_choice_states_its_assumption_and_no_other():
    printed = stratal.evaluate(small_table(), chosen="unknown").to_dict()

    assert "alike within each quantile" in printed["roles"]["sentence"]
    assert not any("random sample" in note for note in printed["notes"])


def test_a_misspelt_requirement_lists_names():
    with pytest.raises(InputError, match=r"'value', 'mean'.*Write an error of at most 0\.1 as 'value>=\.9'"):
        stratal.evaluate(small_table(), require="eror<=.1")


def test_verdicts_with_decimals_are_the_labels_without_them():
    """Each item of a judge with the verdicts 1.0 and 0.0 was counted as a disagreement."""
    rng = np.random.default_rng(0)
    labels = (rng.random(400) < 0.7).astype(int)
    judge = np.where(rng.random(400) < 0.9, labels, 1 - labels)
    table = {
        "id": [f"q{number}" for number in range(400)],
        "judge": [f"{verdict:.1f}" for verdict in judge],
        "label": [str(label) if number < 200 else "" for number, label in enumerate(labels)],
    }
    differing = int((labels != judge)[:200].sum())

    assert stratal.evaluate(table).to_dict()["differing"] == {"items": differing, "labelled": 200}


@pytest.mark.filterwarnings("ignore::stratal.errors.StratalWarning")
@pytest.mark.parametrize("is_independent", [True, False])
def test_verdicts_that_are_missing_only_without_a_label_do_not_correct_the_estimate(is_independent):
    """A judge that failed on what it would fail, and only in rows without a label: coverage was .43."""
    rng = np.random.default_rng(4)
    is_right = rng.random(1500) < 0.75
    verdict = np.where(rng.random(1500) < 0.88, is_right, ~is_right)
    is_labelled = np.arange(1500) % 10 == 0
    is_missing = rng.random(1500) < np.where(verdict, 0.05, 0.4)
    if not is_independent:
        is_missing &= ~is_labelled
    words = np.array(["fail", "pass"])
    judge = np.where(is_missing, "", words[verdict.astype(int)])
    table = {
        "id": [f"q{number}" for number in range(1500)],
        "judge": judge.tolist(),
        "human": np.where(is_labelled, words[is_right.astype(int)], "").tolist(),
    }

    result = stratal.evaluate(table)

    if is_independent:
        assert abs(result.estimate.value - is_right.mean()) < 0.08
    else:
        assert result.estimate.value == pytest.approx(is_right[is_labelled].mean())
        assert "0 of 150 labelled rows" in str(result)
        with pytest.raises(InputError, match=r"has a verdict in 'judge'.*0 of 150 labelled rows"):
            stratal.evaluate(table, proxy="judge")


def test_labels_of_a_drawn_sample_are_not_a_random_sample(tmp_path):
    """The labels of a stratified sample were averaged: .70 instead of .74."""
    generator = np.random.default_rng(2)
    score = generator.random(600)
    population = stratal.Population.from_arrays(
        proxy={"score": score}, ids=np.array([f"q{number}" for number in range(600)])
    )
    sample = stratal.plan(population, 60).draw(seed=1)
    sample.write(tmp_path / "sample.parquet")
    rows = [f"{unit},{number % 2}" for number, unit in enumerate(sample.ids.tolist())]
    file = tmp_path / "to_label.csv"
    file.write_text("\n".join(["id,label", *rows]) + "\n")

    with pytest.raises(InputError, match=r"drawn sample .*sample.parquet"):
        stratal.evaluate(file)
    assert stratal.evaluate(file, chosen="all").estimate.n == 60


@pytest.mark.parametrize("words", [("0", "1"), ("no", "yes")])
def test_no_judge_is_no_proxy_in_any_spelling(words):
    table, _ = table_of()
    rng = np.random.default_rng(5)
    verdicts = np.array(words)[(rng.random(ROWS) < 0.6).astype(int)]
    table = {name: entries for name, entries in table.items() if name != "judge_score"}
    table["judge"] = verdicts.tolist()

    assert stratal.evaluate(table, judge="none").sample.proxy_names == ()


def test_a_table_without_labels_is_for_a_plan():
    table = {"id": [f"q{number}" for number in range(50)], "proxy": np.linspace(0.1, 0.9, 50).tolist()}

    with pytest.raises(InputError, match=r"stratal plan FILE") as caught:
        stratal.evaluate(table)
    assert "'proxy' (--value" not in str(caught.value)


# ---- metrics of other fields


def answers_and_labels(*, labelled=400):
    rng = np.random.default_rng(3)
    probability = rng.random(1000).round(3)
    is_positive = rng.random(1000) < probability
    words = np.array(["neg", "pos"])
    labels = words[is_positive.astype(int)].tolist()
    return {
        "id": [f"q{number}" for number in range(1000)],
        "prediction": words[(probability > 0.4).astype(int)].tolist(),
        "label": [label if row < labelled else "" for row, label in enumerate(labels)],
        "p": probability.tolist(),
    }


def test_error_rates_are_one_less_recall_and_specificity():
    table = answers_and_labels()
    rows = {
        (row.label["metric"], row.label["class"]): row
        for row in stratal.evaluate(table, metric=["fpr", "fnr", "recall", "specificity"]).tables[0]
    }

    for rate, complement in (("false_positive_rate", "specificity"), ("false_negative_rate", "recall")):
        for of in ("neg", "pos", "macro"):
            expected = rows[complement, of]
            assert rows[rate, of].value == pytest.approx(1 - expected.value, abs=1e-12)
            limits = [1 - end for end in reversed(expected.limits(0.95))]
            assert rows[rate, of].limits(0.95) == pytest.approx(limits, abs=1e-9)


def test_a_confusion_matrix_of_all_rows_is_that_of_scikit_learn():
    sklearn_metrics = pytest.importorskip("sklearn.metrics")
    table = answers_and_labels(labelled=1000)
    result = stratal.evaluate(table, metric="confusion matrix", target="population")
    expected = sklearn_metrics.confusion_matrix(table["label"], table["prediction"]) / 1000

    assert [row.value for row in result.tables[0]] == pytest.approx(expected.ravel().tolist())


def test_the_brier_score_of_all_rows_is_the_mean_squared_error():
    table = answers_and_labels(labelled=1000)
    is_positive = np.array(table["label"]) == "pos"
    result = stratal.evaluate(table, metric="brier", positive="pos", target="population")

    squared_errors = (np.array(table["p"]) - is_positive) ** 2
    assert result.tables[0][0].value == pytest.approx(squared_errors.mean())
    with pytest.raises(InputError, match="allowed: 'confusion'"):
        stratal.evaluate(table, metric="confusions")
    without_answers = {name: column for name, column in table.items() if name != "prediction"}
    with pytest.raises(InputError, match="predicted="):
        stratal.evaluate(without_answers, value="label", metric="confusion", positive="pos")


# ---- rows that were labelled in groups


def passages(*, questions=200, labelled=50, ranks=5, missing=()):
    """Return five passages of each question; those of the first questions in an unknown order have labels."""
    rng = np.random.default_rng(11)
    order = rng.permutation(questions)
    quality = rng.normal(size=questions)
    table = {"question_id": [], "passage": [], "score": [], "relevant": []}
    for question in range(questions):
        for rank in range(5):
            is_relevant = rng.random() < 1 / (1 + np.exp(-2 * quality[question]))
            has_label = order[question] < labelled and rank < ranks
            has_label = has_label and len(table["passage"]) not in missing
            table["question_id"].append(f"q{question}")
            table["passage"].append(f"q{question}-{rank}")
            table["score"].append(round(float(rng.random()), 3))
            table["relevant"].append(int(is_relevant) if has_label else None)
    return table


def test_labels_of_whole_groups_are_a_sample_of_clusters():
    complete = passages(labelled=200)
    population = stratal.Population.from_arrays(
        ids=complete["passage"],
        proxy={"score": complete["score"]},
        groups={"question_id": complete["question_id"]},
    )
    drawn = stratal.designs.ClusterSample(cluster="question_id", n_clusters=50).draw(population, seed=1)
    label_of = dict(zip(complete["passage"], complete["relevant"], strict=True))
    expected = stratal.estimate(drawn, [label_of[unit] for unit in drawn.ids.tolist()])
    table = complete | {"relevant": [label_of[i] if i in set(drawn.ids) else None for i in label_of]}

    result = stratal.evaluate(table)

    assert result.sample.question.cluster == "question_id"
    assert "50 of 200 `question_id`" in result.to_dict()["roles"]["sentence"]
    assert result.estimate.value == pytest.approx(expected.value, abs=1e-12)
    assert result.estimate.limits(0.95) == pytest.approx(expected.limits(0.95), abs=1e-12)
    low, high = result.estimate.limits(0.95)
    single_low, single_high = stratal.evaluate(table, chosen="random").estimate.limits(0.95)
    assert high - low > 1.4 * (single_high - single_low)


def test_a_stated_cluster_needs_labels_in_whole_clusters():
    stated = stratal.evaluate(passages(), cluster="question_id")
    assert stated.estimate.limits(0.95) == stratal.evaluate(passages()).estimate.limits(0.95)

    with pytest.raises(InputError, match="two-stage"):
        stratal.evaluate(passages(labelled=30, ranks=3))
    with pytest.raises(InputError, match="some rows of the labelled clusters"):
        stratal.evaluate(passages(labelled=150, ranks=2), cluster="question_id")


def test_a_missing_label_of_a_cluster_is_nonresponse():
    table = passages()
    first = next(row for row, label in enumerate(table["relevant"]) if label is not None)
    result = stratal.evaluate(passages(missing=(first,)))

    assert result.estimate.nonresponse.drawn == 250
    assert result.estimate.labels == 249


def test_labels_in_some_weeks_are_no_random_sample():
    rng = np.random.default_rng(2)
    week = np.repeat(np.arange(10), 100)
    labels = (rng.random(1000) < 0.9 - 0.05 * week).astype(int)
    table = {
        "id": [f"a{row}" for row in range(1000)],
        "week": week.tolist(),
        "label": [int(label) if number < 3 else None for label, number in zip(labels, week, strict=True)],
    }
    result = stratal.evaluate(table, require=">=.7")

    assert result.verdicts[0]["verdict"] == "UNDECIDED"
    assert any("3 of 10 levels of 'week'" in note for note in result.estimate.notes)


@pytest.mark.parametrize(
    ("judge_scale", "label_scale", "has_reading"),
    [((1, 5), (0, 1), False), ((0, 100), (0, 1), False), ((0, 1), (0, 10), False), ((1, 5), (1, 5), True)],
)
def test_a_judge_on_another_scale_has_no_reading_of_its_own(judge_scale, label_scale, has_reading):
    """Ratings from 1 to 5 beside labels 0 and 1 were "judge only 309 %, 243 points too high"."""
    rng = np.random.default_rng(0)
    quality = rng.random(400)
    judge = judge_scale[0] + (judge_scale[1] - judge_scale[0]) * quality
    judge = judge.round(2) if judge_scale == (0, 1) else judge.round()
    noisy = np.clip(quality + rng.normal(0, 0.2, 400), 0, 1)
    labels = np.round(label_scale[0] + (label_scale[1] - label_scale[0]) * noisy)
    human = [int(label) if row % 3 == 0 else None for row, label in enumerate(labels)]
    table = {"id": [f"q{row}" for row in range(400)], "judge": judge.tolist(), "human": human}
    result = stratal.evaluate(table, judge=["judge"], proxy=["judge"])
    readings = {row["name"] for row in result.to_dict()["judge_readings"]}
    comparison = {row["name"] for row in result.report().to_dict()["side_by_side"]}

    assert {"corrected", "labels only"} <= readings
    assert ("judge only" in readings) == has_reading
    assert (" alone" in str(result)) == has_reading
    assert ("proxy alone" in comparison) == has_reading
    assert (result.report().to_dict().get("calibration") is not None) == has_reading


@pytest.mark.parametrize("words", [["yes"], ["pass", None], ["true"]])
def test_a_judge_with_one_verdict_does_not_correct_and_does_not_stop(words):
    """It stopped with "finite numbers"."""
    table = small_table()
    table = {"id": table["id"], "human": [1 if row % 4 else 0 for row in range(60)] + [None] * 100}
    table["judge"] = (words * 160)[:160]
    result = stratal.evaluate(table)
    alone = stratal.evaluate({"id": table["id"], "human": table["human"]})

    assert result.estimate.value == pytest.approx(alone.estimate.value)
    assert result.estimate.standard_error == pytest.approx(alone.estimate.standard_error)
    notes = result.to_dict()["roles"]["notes"]
    assert any(f"'judge' is '{words[0]}' in every row" in note for note in notes)
    stated = stratal.evaluate(table, proxy="judge")
    assert stated.estimate.value == pytest.approx(alone.estimate.value)
    str(result)


# ---- totals of margins


def survey():
    rng = np.random.default_rng(8)
    age = np.where(rng.random(400) < 0.7, "young", "old")
    return {
        "id": [f"r{row}" for row in range(400)],
        "age": age.tolist(),
        "satisfied": np.where(rng.random(400) < np.where(age == "old", 0.9, 0.5), 1, 0).tolist(),
    }


@pytest.mark.parametrize("is_file", [True, False])
def test_totals_of_margins_from_a_file_weight_a_survey(tmp_path, is_file):
    table = survey()
    file = tmp_path / "totals.csv"
    file.write_text("variable,level,total\nage,young,400\nage,old,600\n")
    margins = str(file) if is_file else {"age": {"young": 400, "old": 600}}

    result = stratal.evaluate(table, value="satisfied", margins=margins)

    satisfied = np.array(table["satisfied"])
    age = np.array(table["age"])
    expected = 0.4 * satisfied[age == "young"].mean() + 0.6 * satisfied[age == "old"].mean()
    assert result.estimate.value == pytest.approx(expected)
    assert result.sample.population_size == 1000


def test_totals_of_margins_are_units_of_one_population(tmp_path):
    table = survey() | {"sex": ["f", "m"] * 200}

    with pytest.raises(InputError, match="same population"):
        stratal.evaluate(
            table, value="satisfied", margins={"age": {"young": 400, "old": 600}, "sex": {"f": 500, "m": 400}}
        )
    with pytest.raises(InputError, match="numbers of units"):
        stratal.evaluate(table, value="satisfied", margins={"age": {"young": 0.4, "old": 0.6}})
    totals = tmp_path / "totals.csv"
    totals.write_text("level,total\nyoung,400\n")
    with pytest.raises(InputError, match="variable, level and total"):
        stratal.evaluate(table, value="satisfied", margins=str(totals))


@pytest.mark.parametrize(
    ("margins", "message"),
    [
        ({}, "names no column"),
        ({"age": {}}, "are shares"),
        ({"age": 5}, "cannot be read"),
        ({"age": [400, 600]}, "cannot be read"),
        (5, "cannot be read"),
        ({"age": {"young": "many", "old": 600}}, "not a number of units"),
        ({"age": {"young": -100, "old": 1100}}, "not a number of units"),
        ({"age": {"young": float("nan"), "old": 600}}, "not a number of units"),
        ("totals-of-last-year.csv", "no such file"),
        ({"age": {"young": 100, "old": 900}}, "fewer units than were drawn"),
        ({"age": {"young": 100, "old": 200}}, "a different population"),
    ],
)
def test_totals_that_cannot_be_meant_are_refused(margins, message):
    with pytest.raises(InputError, match=message):
        stratal.evaluate(survey(), value="satisfied", margins=margins)


def test_totals_of_a_larger_population_need_a_table_of_labelled_rows():
    table = survey()
    table["satisfied"] = [label if row % 4 == 0 else None for row, label in enumerate(table["satisfied"])]
    with pytest.raises(InputError, match="a different population"):
        stratal.evaluate(table, value="satisfied", margins={"age": {"young": 400, "old": 600}})


def test_a_level_that_no_labelled_row_has_leaves_a_requirement_undecided():
    margins = {"age": {"young": 400, "old": 600, "middle": 300}}
    with pytest.warns(StratalWarning, match="age = middle"):
        result = stratal.evaluate(survey(), value="satisfied", margins=margins, require=">=.5")

    assert result.verdicts[0]["verdict"] == "UNDECIDED"
    assert any("23.1% of the population" in note for note in result.estimate.notes)


def test_margins_and_groups_to_weight_by_are_stated_once():
    with pytest.raises(InputError, match="two options state how rows are weighted"):
        stratal.evaluate(
            survey(), value="satisfied", margins={"age": {"young": 400, "old": 600}}, post_stratify="age"
        )


def test_a_population_of_as_many_rows_keeps_the_proxy():
    table, _ = table_of()
    stated = stratal.evaluate(table, population_size=ROWS).estimate

    assert stated.limits(0.95) == stratal.evaluate(table).estimate.limits(0.95)


def test_a_threshold_is_not_guaranteed_by_labels_in_some_weeks():
    rng = np.random.default_rng(2)
    week = np.repeat(np.arange(10), 100)
    score = rng.random(1000).round(3)
    right = rng.random(1000) < score
    table = {
        "id": [f"a{row}" for row in range(1000)],
        "week": week.tolist(),
        "score": score.tolist(),
        "label": [int(value) if number < 3 else None for value, number in zip(right, week, strict=True)],
    }
    result = stratal.threshold(table, require="error<=.4")

    assert result.verdict == "UNDECIDED"
    assert any("levels of 'week'" in note for note in result.notes)


# ---- groups of groups, groups in an order, and groups within strata


def messages(rng, labelled_column, share, *, users=60):
    """Return four messages in each of up to eleven conversations of each user, labelled by whole levels."""
    columns = {"user": [], "conversation": [], "message": []}
    quality = []
    for user in range(users):
        level = rng.normal()
        for conversation in range(int(rng.integers(2, 12))):
            name = f"u{user}-c{conversation}"
            of_conversation = level + 0.3 * rng.normal()
            for message in range(4):
                columns["user"].append(f"u{user}")
                columns["conversation"].append(name)
                columns["message"].append(f"{name}-m{message}")
                quality.append(of_conversation)
    right = (rng.random(len(quality)) < 1 / (1 + np.exp(-1.5 * np.array(quality)))).astype(int)
    levels = list(dict.fromkeys(columns[labelled_column]))
    drawn = set(rng.choice(levels, int(share * len(levels)), replace=False))
    columns["right"] = [
        int(label) if level in drawn else None
        for label, level in zip(right, columns[labelled_column], strict=True)
    ]
    return columns, right.mean()


@pytest.mark.parametrize("column", ["user", "conversation"])
def test_the_level_that_was_drawn_is_recognised(column):
    table, _ = messages(np.random.default_rng(3), column, 0.3)
    result = stratal.evaluate(table)

    assert result.sample.question.cluster == column
    assert not [note for note in result.estimate.notes if "random sample of the table" in note]


def test_the_interval_of_users_covers():
    """Conversations as clusters covered in two thirds of the draws if users were drawn."""
    covers = []
    for seed in range(sized(40, 400)):
        table, value = messages(np.random.default_rng(100 + seed), "user", 0.3)
        result = stratal.evaluate(table)
        assert result.sample.question.cluster == "user"
        low, high = result.estimate.limits(0.95)
        covers.append(low <= value <= high)
    assert np.mean(covers) >= 0.9


def test_conversations_of_some_languages_are_not_a_random_sample():
    """A language has many conversations: labels in two of six are a warning beside the clusters."""
    table, _ = messages(np.random.default_rng(3), "conversation", 1.0)
    language = [int(user[1:]) % 6 for user in table["user"]]
    drawn = set(np.random.default_rng(8).permutation(sorted(set(table["conversation"])))[:150])
    has_label = [
        code < 2 and name in drawn for code, name in zip(language, table["conversation"], strict=True)
    ]
    table |= {
        "language": [f"language {code}" for code in language],
        "right": [label if has else None for label, has in zip(table["right"], has_label, strict=True)],
    }
    del table["user"]
    result = stratal.evaluate(table, require=">=.1")

    assert result.sample.question.cluster == "conversation"
    assert any("2 of 6 levels of 'language'" in note for note in result.estimate.notes)
    assert result.verdicts[0]["verdict"] == "UNDECIDED"


def days(labelled_days):
    rng = np.random.default_rng(2)
    day = np.repeat(np.arange(60), 20)
    right = (rng.random(1200) < 0.9 - 0.01 * day).astype(int)
    return {
        "id": [f"a{row}" for row in range(1200)],
        "date": [f"2026-{1 + number // 28:02d}-{1 + number % 28:02d}" for number in day],
        "right": [
            int(label) if number in labelled_days else None for label, number in zip(right, day, strict=True)
        ],
    }


def test_days_that_follow_each_other_are_not_a_random_sample():
    first = stratal.evaluate(days(range(20)), require=">=.1")
    spread = stratal.evaluate(days(range(0, 60, 3)), require=">=.1")

    assert first.sample.question.cluster == "date"
    assert first.verdicts[0]["verdict"] == "UNDECIDED"
    assert any("are consecutive" in note for note in first.estimate.notes)
    assert spread.verdicts[0]["verdict"] == "PASS"


def test_the_largest_groups_are_not_a_random_sample():
    table, _ = messages(np.random.default_rng(3), "user", 1.0)
    size = Counter(table["user"])
    largest = {user for user, _ in size.most_common(20)}
    table["right"] = [
        label if user in largest else None for user, label in zip(table["user"], table["right"], strict=True)
    ]
    result = stratal.evaluate(table, require=">=.1")

    assert result.verdicts[0]["verdict"] == "UNDECIDED"
    assert any("rows on average, and those without labels" in note for note in result.estimate.notes)


def test_rows_without_a_group_are_groups_of_one_row():
    table, _ = messages(np.random.default_rng(3), "user", 0.3)
    table["user"] = [None if row % 50 == 7 else user for row, user in enumerate(table["user"])]
    del table["conversation"]
    result = stratal.evaluate(table)

    assert result.sample.question.cluster == "user"


def test_groups_within_stated_strata_are_a_warning():
    table, _ = messages(np.random.default_rng(3), "conversation", 0.3)
    del table["user"]
    half = [len(name) % 2 for name in table["conversation"]]
    table["region"] = [f"region {code}" for code in half]
    result = stratal.evaluate(table, chosen="random-within:region", require=">=.1")

    assert result.verdicts[0]["verdict"] == "UNDECIDED"
    assert any("levels of 'conversation'" in note for note in result.estimate.notes)


@pytest.mark.parametrize("by_answer", [True, False])
def test_clusters_that_were_chosen_by_the_answers_are_no_random_sample(by_answer):
    rng = np.random.default_rng(9)
    question = np.repeat(np.arange(300), 4)
    answers = np.where(rng.random(1200) < np.repeat(rng.random(300), 4), "yes", "no")
    labels = np.where(rng.random(1200) < 0.9, answers, "no")
    shares = np.bincount(question, answers == "yes")
    order = np.argsort(-shares, kind="stable") if by_answer else rng.permutation(300)
    drawn = np.isin(question, order[:60])
    table = {
        "question": [f"q{number}" for number in question],
        "prediction": answers.tolist(),
        "label": [str(label) if is_drawn else None for label, is_drawn in zip(labels, drawn, strict=True)],
    }
    result = stratal.evaluate(table, require=">=.1")

    assert result.sample.question.cluster == "question"
    assert has_code(result.estimate.notes, LABELS_BY_ANSWER) == by_answer
    assert result.verdicts[0]["verdict"] == ("UNDECIDED" if by_answer else "PASS")
    assert not any("post_stratify" in note for note in result.estimate.notes)


def test_rows_chosen_in_an_unknown_way_are_clusters_if_they_were_labelled_in_groups():
    result = stratal.evaluate(passages(), chosen="unknown")
    stated = stratal.evaluate(passages(), chosen="unknown", cluster="question_id")

    assert result.sample.question.cluster == "question_id"
    assert result.estimate.limits(0.95) == stated.estimate.limits(0.95)
    sentence = result.to_dict()["roles"]["sentence"]
    assert "50 of 200 `question_id` (clusters), chosen in an unknown way" in sentence


@pytest.mark.parametrize("option", ["by", "post_stratify"])
def test_the_answers_may_also_be_the_groups(option):
    rng = np.random.default_rng(4)
    answers = rng.choice(["cat", "dog"], ROWS)
    labels = np.where(rng.random(ROWS) < 0.9, answers, "cat")
    table = {"id": list(range(ROWS)), "prediction": answers.tolist()}
    table["label"] = [label if row < 300 else None for row, label in enumerate(labels.tolist())]

    evaluation = stratal.evaluate(table, **{option: "prediction"})

    assert evaluation.request.predicted == "prediction"
    assert (answers == labels).mean() in evaluation.estimate.confidence_interval(0.999)


def test_a_score_with_gaps_is_a_note_unless_it_is_stated():
    """The estimate failed, because the recognised score had no value in some rows."""
    numbers = range(200)
    table = {
        "id": list(numbers),
        "score": [None if number % 20 == 0 else number / 200 for number in numbers],
        "human": [number % 3 % 2 if number % 2 else None for number in numbers],
    }

    evaluation = stratal.evaluate(table)
    assert evaluation.sample.proxy_names == ()
    assert any(
        "'score' is not used, because 10 of 200 rows" in note
        for note in evaluation.to_dict()["roles"]["notes"]
    )
    with pytest.raises(InputError, match="'score' holds 10 missing values"):
        stratal.evaluate(table, proxy="score")


@pytest.fixture
def nearly_labelled():
    """A table of 100 rows of which 3 have no label."""
    labels = [float(number % 5 > 1) for number in range(100)]
    labels[10] = labels[40] = labels[70] = np.nan
    return {"id": [f"q{number}" for number in range(100)], "label": labels}


def test_a_few_missing_labels_do_not_change_the_target(nearly_labelled):
    """One missing label of 100 made the interval twenty times narrower: that of these rows alone."""
    complete = {**nearly_labelled, "label": [float(number % 5 > 1) for number in range(100)]}

    whole = stratal.evaluate(complete, value="label").estimate.confidence_interval()
    evaluation = stratal.evaluate(nearly_labelled, value="label")
    low, high = evaluation.estimate.confidence_interval()
    assert evaluation.estimate.target == "superpopulation"
    assert high - low == pytest.approx(whole.high - whole.low, rel=0.03)
    text = str(evaluation)
    assert "97 of 100 units are labelled, and the interval is for the superpopulation" in text
    assert "every row was to be labelled, and 3 labels are taken as missing at random" in text
    assert "exact" not in text
    assert evaluation.to_dict()["roles"]["chosen"] == "all"


@pytest.mark.parametrize(
    "options",
    [{"chosen": "random"}, {"target": "population"}, {"population_size": 100}],
    ids=lambda options: next(iter(options)),
)
def test_the_rows_of_a_nearly_labelled_table_may_be_the_population(nearly_labelled, options):
    estimate = stratal.evaluate(nearly_labelled, value="label", **options).estimate

    low, high = estimate.confidence_interval()
    assert estimate.target == "population"
    assert high - low <= 0.03 + 1e-9


def test_models_and_metrics_of_a_nearly_labelled_table_have_its_target(nearly_labelled):
    table = {**nearly_labelled, "other": [float(number % 3 > 0) for number in range(100)]}

    compared = stratal.evaluate(table, compare=["label", "other"])
    difference = next(table for table in compared.tables if table.kind == "comparisons")[0]
    assert difference.target == "superpopulation"
    answers = {**nearly_labelled, "answer": ["1", "0"] * 50}
    metrics = stratal.evaluate(answers, value="label", predicted="answer", metric=["f1"])
    assert {row.target for table in metrics.tables for row in table} == {"superpopulation"}


def test_a_table_with_fewer_labels_remains_a_sample_of_its_rows(nearly_labelled):
    labels = [np.nan if number < 11 else number % 2 for number in range(100)]
    table = {**nearly_labelled, "label": labels}

    evaluation = stratal.evaluate(table, value="label")
    assert evaluation.estimate.target == "population"
    assert "taken as a random sample of all 100 rows" in str(evaluation)
    with pytest.raises(InputError, match="11 of 100 rows have no label"):
        stratal.evaluate(table, value="label", chosen="all")


def test_missing_labels_of_a_whole_group_are_clusters_that_were_not_drawn():
    table = {
        "id": [f"q{number}" for number in range(400)],
        "page": [f"p{number // 10}" for number in range(400)],
        "label": [np.nan if number < 20 else number % 2 for number in range(400)],
    }

    evaluation = stratal.evaluate(table, value="label")
    assert evaluation.request.cluster == "page"
    assert evaluation.to_dict()["roles"]["chosen"] == "random"
    assert evaluation.estimate.target == "population"


@pytest.mark.parametrize(
    ("missing", "chosen", "is_warned"),
    [
        (0, None, False),
        (8, None, True),
        (8, "all", True),
        (40, None, True),
        (8, "random", False),
        (90, None, False),
    ],
)
def test_rows_that_lack_a_label_are_always_a_warning(missing, chosen, is_warned):
    """Labels that were missing by what they were made an interval too optimistic, without a word."""
    size = 160
    random = np.random.default_rng(4)
    label: list[int | None] = random.integers(0, 2, size).tolist()
    label[:missing] = [None] * missing
    table = {"id": [str(number) for number in range(size)], "label": label}
    table["score"] = random.random(size).tolist()
    answer = str(stratal.evaluate(table, value="label", proxy=["score"], chosen=chosen))

    assert ("missing at random given `score`" in answer) == is_warned
    if is_warned:
        assert f"{missing:,} rows have no label" in answer
        assert f"off by up to {100 * missing / size:.2g}% of the outcome's range" in answer
    assert "taken as a random sample of all" not in answer or chosen == "random" or missing >= 40


def test_a_declared_sample_of_most_rows_keeps_the_population_as_its_target():
    """The documentation states it: the 90% rule is for tables that nobody declared to be a sample."""
    table = {"id": [str(number) for number in range(200)], "label": [0, 1] * 95 + [None] * 10}
    sample, labels = stratal.Sample.from_labelled(table, value="label")

    assert stratal.estimate(sample, labels).target == "population"
    assert stratal.evaluate(table, value="label").estimate.target == "superpopulation"


def judged_table(labels=("safe", "unsafe"), verdicts=("safe", "unsafe"), columns=("verdict",)):
    """A table with the verdicts of judges, and labels in a third of the rows."""
    draws = np.random.default_rng(3)
    is_good = draws.random(600) < 0.7
    is_labelled = draws.random(600) < 1 / 3
    table = {"id": [f"u{row}" for row in range(600)]}
    for column in columns:
        agrees = draws.random(600) < 0.85
        table[column] = [verdicts[int(z != right)] for z, right in zip(is_good, agrees, strict=True)]
    table["human"] = [
        labels[int(not z)] if here else None for z, here in zip(is_good, is_labelled, strict=True)
    ]
    return table


# The same table with words that the vocabularies contain.
KNOWN_WORDS = {"labels": ("pass", "fail"), "verdicts": ("pass", "fail")}
JUDGE_KEYS = ("judge", "metric", "class", "judged")


@pytest.mark.parametrize(
    ("labels", "verdicts", "options"),
    [
        (("safe", "unsafe"), ("safe", "unsafe"), {"positive": "safe"}),
        (("safe", "unsafe"), ("safe", "unsafe"), {"mapping": {"safe": 1, "unsafe": 0}}),
        (("1", "0"), ("safe", "unsafe"), {"mapping": {"safe": 1, "unsafe": 0}}),
        (("pass", "fail"), ("ok", "bad"), {"mapping": {"pass": 1, "fail": 0, "ok": 1, "bad": 0}}),
    ],
)
def test_a_judge_has_the_meaning_that_is_declared_for_labels(labels, verdicts, options):
    known = stratal.evaluate(judged_table(**KNOWN_WORDS), judge="verdict").to_dict()

    found = stratal.evaluate(judged_table(labels, verdicts), judge="verdict", **options).to_dict()

    assert found["estimate"] == pytest.approx(known["estimate"])
    assert found["confidence_interval"] == pytest.approx(known["confidence_interval"])
    agreement = [row["estimate"] for row in found["judge"] if row["metric"] in ("agreement", "kappa")]
    assert agreement == pytest.approx([row["estimate"] for row in known["judge"][:2]])
    assert not any("although the mapping" in note for note in found["notes"])


@pytest.mark.parametrize("labels", [("pass", "fail"), ("1", "0"), ("safe", "unsafe")])
def test_labels_in_other_words_than_the_verdicts_are_refused_with_a_mapping_that_works(labels):
    table = judged_table(labels, ("ok", "bad"))
    mapping = {labels[0]: 1, "ok": 1, labels[1]: 0, "bad": 0}

    with pytest.raises(LabelError, match=r"no label is a verdict of the judge 'verdict'") as raised:
        stratal.evaluate(table, judge="verdict", positive=None if labels[0] != "safe" else "safe")
    assert "'ok': 1" in str(raised.value).replace("'ok':1", "'ok': 1")
    assert stratal.evaluate(table, judge="verdict", mapping=mapping).estimate.value > 0.5


def test_words_of_a_judge_without_a_declared_meaning_are_the_error_of_the_labels():
    with pytest.raises(LabelError, match="positive="):
        stratal.evaluate(judged_table(), judge="verdict")


def test_judges_with_verdicts_and_with_scores_are_reported_together():
    table = judged_table(**KNOWN_WORDS)
    table["score"] = [0.8 if verdict == "pass" else 0.3 for verdict in table["verdict"]]

    both = stratal.evaluate(table, judge=("verdict", "score")).to_dict()["judge"]

    rows = {tuple(map(row.get, JUDGE_KEYS)): row["estimate"] for row in both}
    for judge in ("verdict", "score"):
        for row in stratal.evaluate(table, judge=judge, proxy=("verdict", "score")).to_dict()["judge"]:
            estimate = rows[tuple(map(row.get, JUDGE_KEYS))]
            assert estimate == pytest.approx(row["estimate"], abs=1e-6, nan_ok=True)


@pytest.mark.parametrize("word", ["unlabeled", "TODO", "Not labelled", "(blank)", "awaiting review"])
def test_a_word_for_a_row_to_label_is_refused_and_then_an_empty_cell(word):
    table = table_of()[0]
    with_words = {**table, "human": [word if label is None else label for label in table["human"]]}
    expected = stratal.evaluate(table).estimate

    with pytest.raises(LabelError, match=r"indicates that there is no answer.*mapping="):
        stratal.evaluate(with_words, value="human")
    found = stratal.evaluate(with_words, value="human", mapping={word: None})
    assert found.estimate.value == pytest.approx(expected.value)
    assert "taken as a random sample" in found.to_dict()["roles"]["sentence"]


def test_labels_that_mean_no_answer_are_not_counted_as_labels():
    table = {"id": list("abcdefghij"), "human": ["pass"] * 6 + ["fail"] * 2 + ["unsure"] * 2}

    sentence = stratal.evaluate(table, mapping={"unsure": None}).to_dict()["roles"]["sentence"]

    assert "2 labels are taken as missing at random" in sentence
    assert "every row has a label" not in sentence


def test_a_column_of_weights_that_is_not_used_is_named():
    table = {"id": list("abcdefgh"), "label": [1, 0] * 4, "weight": [1.5, 2, 3, 4, 1, 2, 5, 2.5]}

    unused = stratal.evaluate(table).to_dict()["roles"]["notes"]
    used = stratal.evaluate(table, weight="weight").to_dict()["roles"]["notes"]

    assert any("weight='weight' (--weight weight)" in note for note in unused)
    assert not any("weight" in note for note in used)


@pytest.mark.parametrize(
    "estimand", ["auc:cat,score=p", "average_precision:cat,score=p", "calibration:p", "quantile:.5"]
)
def test_an_estimand_of_scores_needs_no_column_of_answers(estimand):
    draws = np.random.default_rng(0)
    score = draws.random(200)
    is_cat = draws.random(200) < score
    table = {"id": [f"u{row}" for row in range(200)], "p": score}
    table["gold"] = [("cat" if z else "dog") if row < 90 else None for row, z in enumerate(is_cat)]
    options = {"estimand": estimand, "proxy": "p", "predicts": "class:cat"}
    if estimand.startswith("quantile"):
        table["gold"] = [z * 2.5 if row < 90 else None for row, z in enumerate(score.round(2))]
        options = {"estimand": estimand}
    with_answers = table | {"prediction": np.where(score > 0.5, "cat", "dog")}

    found, expected = (stratal.evaluate(rows, **options).estimate for rows in (with_answers, table))

    rows = zip(found, expected, strict=True) if estimand == "calibration:p" else [(found, expected)]
    assert all(one.value == pytest.approx(other.value, nan_ok=True) for one, other in rows)


def test_a_score_of_right_answers_is_no_score_of_a_class():
    texts = {"id": list("abcdef"), "prediction": list("xyxyxy"), "gold": list("xyxyyx")}
    table = {**texts, "confidence": [0.9, 0.8, 0.7, 0.9, 0.6, 0.5]}

    with pytest.raises(InputError, match=r"'confidence' is not a score of the class 'x'"):
        stratal.evaluate(table, estimand="auc:x")


def test_lists_of_tags_in_some_rows_are_labels_where_a_model_predicts_lists():
    predicted = [["a"], ["a", "b"], ["c"], ["b"], ["a"], ["c", "a"]] * 5
    gold = [tags if row % 2 else ["b"] for row, tags in enumerate(predicted)]
    labels = [tags if row < 12 else None for row, tags in enumerate(gold)]
    table = {"id": [f"u{row}" for row in range(30)], "predicted": predicted, "gold": labels}

    found = stratal.evaluate(table)

    assert found.to_dict()["roles"]["label"] == "gold"
    assert found.estimate.value == pytest.approx(np.mean([gold[row] == predicted[row] for row in range(12)]))


@pytest.mark.parametrize("words", [("1", "0"), ("pass", "fail")])
def test_the_columns_of_several_annotators_are_their_answers(words):
    table = judged_table(words, words, columns=("judge",))
    first = table.pop("human")
    second = [words[0] if row % 7 == 0 and label else label for row, label in enumerate(first)]
    wide = table | {"human_1": first, "human_2": second}

    with pytest.raises(InputError, match=r"several annotators: value='human_1,human_2'"):
        stratal.evaluate(wide)
    found = stratal.evaluate(wide, value="human_1,human_2")

    pairs = zip(first, second, strict=True)
    means = [None if a is None else ((a == words[0]) + (b == words[0])) / 2 for a, b in pairs]
    expected = stratal.evaluate(table | {"mean": means}, value="mean", bounds=(0, 1), judge="judge")
    assert found.estimate.value == pytest.approx(expected.estimate.value)
    assert found.to_dict()["roles"]["judge"] == ["judge"]
    assert "2 annotators" in " ".join(found.to_dict()["notes"])


def test_rows_of_several_annotators_are_to_be_columns():
    table = {"id": ["a", "a", "b", "b"], "annotator": ["x", "y"] * 2, "label": [1, 0, 1, 1]}

    with pytest.raises(LabelError, match=r"id='row'.*give each of them a column"):
        stratal.evaluate(table)


def test_judges_with_different_words_are_compared_by_the_same_mapping():
    table = judged_table(columns=("first",), labels=("safe", "unsafe"), verdicts=("safe", "unsafe"))
    table["second"] = ["OK" if verdict == "safe" else "BAD" for verdict in table["first"]]
    mapping = {"safe": 1, "unsafe": 0, "ok": 1, "bad": 0}

    rows = stratal.evaluate(table, judge=("first", "second"), mapping=mapping).to_dict()["judge"]

    agreement = {row["judge"]: row["estimate"] for row in rows if row["metric"] == "agreement"}
    assert agreement["first"] == pytest.approx(agreement["second"])
    assert agreement["first"] > 0.7


def test_an_estimand_of_answers_names_their_column_itself():
    population = stratal.Population.from_arrays(groups={"answer": ["x", "y"] * 20})
    sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=1)
    labels = dict.fromkeys(sample.ids.tolist(), "x")

    with pytest.raises(InputError, match="estimand='f1:x,predicted=answer'"):
        stratal.estimate(sample, labels, estimand="f1:x", predicted="answer")
    assert stratal.estimate(sample, labels, estimand="f1:x,predicted=answer").value > 0


def test_sizes_without_a_column_of_strata_are_told_how_to_name_it():
    table = {"id": list("abcd"), "kind": list("xxyy"), "label": [1, 0, 1, 1]}

    with pytest.raises(InputError, match="random-within:COLUMN"):
        stratal.evaluate(table, sizes={"kind": ["x", "y"], "size": [10, 20]})


def test_a_column_of_automatic_outcomes_next_to_labels_of_people_is_named():
    table = judged_table(("1", "0"), (1, 0), columns=("correct",))

    notes = stratal.evaluate(table).to_dict()["roles"]["notes"]

    assert any("'correct' is not used; if it is a judge: judge='correct'" in note for note in notes)
    assert stratal.evaluate(table, judge="correct").to_dict()["roles"]["judge"] == ["correct"]


def table_of_two_annotators(answers=("1", "0")):
    """Return a table of which each annotator labelled other rows, with a word where one had no answer."""
    table = judged_table(answers, answers, columns=("judge",))
    labels = table.pop("human")
    first = ["TODO" if label and row % 3 == 0 else label for row, label in enumerate(labels)]
    second = ["TODO" if label and row % 4 == 0 else label for row, label in enumerate(labels)]
    return table | {"ann": first, "ben": second, "site": ["A", "B"] * (len(labels) // 2)}, labels


@pytest.mark.parametrize("answers", [("1", "0"), ("pass", "fail")])
@pytest.mark.parametrize("value", ["ann,ben", "ben,ann", ["ann", "ben"]])
def test_a_row_is_labelled_if_one_of_several_annotators_has_an_answer(answers, value):
    table, labels = table_of_two_annotators(answers)
    truth = {**table, "label": [None if row % 12 == 0 else label for row, label in enumerate(labels)]}

    result = stratal.evaluate(table, value=value, mapping={"TODO": None}, judge="judge")

    expected = stratal.evaluate(truth, value="label", judge="judge")
    assert result.estimate.value == pytest.approx(expected.estimate.value)
    assert result.labels.answered > result.sample.size == expected.sample.size


def test_the_order_of_annotators_does_not_change_the_number_of_rows_without_an_answer():
    table, _ = table_of_two_annotators()
    for name in ("ann", "ben"):
        table[name] = ["unsure" if entry == "TODO" else entry for entry in table[name]]

    first, second = (
        stratal.evaluate(table, value=value, mapping={"unsure": None}, judge="judge")
        for value in ("ann,ben", "ben,ann")
    )

    assert first.estimate.value == pytest.approx(second.estimate.value)
    sentence = first.to_dict()["roles"]["sentence"]
    assert second.to_dict()["roles"]["sentence"].replace("ben,ann", "ann,ben") == sentence


def test_columns_of_annotators_are_checked_and_never_offered_as_a_column():
    table, _ = table_of_two_annotators()
    options = {"mapping": {"TODO": None}, "judge": "judge"}

    with pytest.raises(InputError, match="names the column 'ann' twice"):
        stratal.evaluate(table, value="ann,ann", **options)
    with pytest.raises(InputError, match="has no value in common with the other columns of labels"):
        stratal.evaluate(table, value="ann,site", **options)
    with pytest.raises(InputError, match="no column 'bne'"):
        stratal.evaluate(table, value="ann,bne", **options)
    with pytest.raises(InputError, match="value= names no column of labels"):
        stratal.evaluate(table, value=3, **options)
    with pytest.raises(InputError, match="'ben' cannot be both an annotator's and a judge's"):
        stratal.evaluate(table, value="ann,ben", judge="ben", mapping={"TODO": None})
    with pytest.raises(InputError, match="no column 'region'") as refusal:
        stratal.evaluate(table, value="ann,ben", by="region", **options)
    assert "'ann,ben'" not in str(refusal.value)


def test_the_advice_on_several_columns_can_be_followed():
    table, _ = table_of_two_annotators()

    with pytest.raises(InputError, match=r"give a list: \['judge', 'site'\]"):
        stratal.evaluate(table, value="ann", mapping={"TODO": None}, groups="judge,site")
    stratal.evaluate(table, value="ann", mapping={"TODO": None}, groups=["judge", "site"])


def test_columns_of_a_dataframe_with_one_name_are_not_chosen_silently():
    pandas = pytest.importorskip("pandas")
    table, _ = table_of()
    frame = pandas.DataFrame(table)
    other_scores = pandas.DataFrame({"judge_score": 1 - frame["judge_score"]})
    other_labels = pandas.DataFrame({"human": ["pass"] * ROWS})

    evaluation = stratal.evaluate(pandas.concat([frame, other_scores], axis=1))

    assert "2 columns are called 'judge_score' and are not used" in str(evaluation)
    with pytest.raises(InputError, match="2 columns are called 'human'"):
        stratal.evaluate(pandas.concat([frame, other_labels], axis=1))
    with pytest.raises(InputError, match="contains no row"):
        stratal.evaluate(frame.iloc[:0])
