"""Roles of columns are recognised by name and content, or asked for; no column gets a wrong role."""

from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.errors import InputError, LabelError
from stratal.question.recognised_roles import StatedRoles
from stratal.question.recognition import recognise
from stratal.tables.column_facts import facts_of_table
from stratal.tables.small_table import SmallTable

ROWS = 120
LABELLED = 30

# What each kind of column holds: every entry of a row is drawn by a seed.
WORDS = {"pass": ("pass", "fail"), "yes": ("yes", "no"), "correct": ("correct", "incorrect")}


def columns_of(draws, kind):
    """Return the entries of a column, one for each row."""
    truth = draws.random(ROWS) < 0.7
    if kind in WORDS:
        return [WORDS[kind][0] if right else WORDS[kind][1] for right in truth]
    if kind == "binary":
        return truth.astype(int).tolist()
    if kind == "bool":
        return truth.tolist()
    if kind == "probability":
        return draws.random(ROWS).round(3).tolist()
    if kind == "rating":
        return draws.integers(1, 6, ROWS).tolist()
    if kind == "classes":
        return draws.choice(["cat", "dog", "bird"], ROWS).tolist()
    if kind == "codes":
        return draws.integers(0, 40, ROWS).tolist()
    if kind == "cost":
        return draws.gamma(2, 0.001, ROWS).round(6).tolist()
    if kind == "milliseconds":
        return draws.integers(90, 4000, ROWS).tolist()
    if kind == "dates":
        return [f"2026-03-{1 + row % 28:02d}T10:{row % 60:02d}:00Z" for row in range(ROWS)]
    if kind == "ids":
        return [f"tr-{row:05d}" for row in range(ROWS)]
    if kind == "numbers":
        return list(range(1, ROWS + 1))
    if kind == "bbox":
        return [f"[{row}, {row + 3}, 20, 30]" for row in range(ROWS)]
    if kind == "group":
        return [("de", "en", "fr")[row % 3] for row in range(ROWS)]
    if kind == "text":
        return [f"The answer to question {row} is given in the second paragraph." for row in range(ROWS)]
    raise ValueError(kind)


def table_of(header, seed=0):
    """Return a table whose columns are named; `kind?` has entries in some rows only."""
    draws = np.random.default_rng(seed)
    labelled = np.isin(np.arange(ROWS), draws.choice(ROWS, LABELLED, replace=False))
    table = {}
    for name, kind in header.items():
        entries = columns_of(draws, kind.rstrip("?"))
        if kind.endswith("?"):
            entries = [entry if here else None for entry, here in zip(entries, labelled, strict=True)]
        table[name] = entries
    return table


# Headers in the style of tools, the kind of each column, and the roles: label, answer, judges, proxy, models.
CASES = [
    # tracing platforms
    ({"trace_id": "ids", "timestamp": "dates", "latency_ms": "milliseconds", "total_cost": "cost",
      "verdict": "pass", "human": "pass?"}, {"value": "human", "judges": ("verdict",)}),
    ({"id": "ids", "start_time": "dates", "total_tokens": "milliseconds", "llm_judge": "binary",
      "human_label": "binary?"}, {"value": "human_label", "judges": ("llm_judge",)}),
    ({"span_id": "ids", "attributes.llm.cost": "cost", "evals.correctness.score": "probability",
      "annotation.correctness": "correct?"},
     {"value": "annotation.correctness", "proxy": "evals.correctness.score"}),
    ({"run_id": "ids", "latency": "cost", "feedback.judge": "probability", "feedback.human": "binary?"},
     {"value": "feedback.human", "judges": ("feedback.judge",)}),
    ({"traceId": "ids", "createdAt": "dates", "judgeScore": "probability", "goldLabel": "binary?"},
     {"value": "goldLabel", "judges": ("judgeScore",)}),
    ({"request_id": "ids", "duration_s": "cost", "price_usd": "cost", "grader": "yes",
      "expert_label": "yes?"}, {"value": "expert_label", "judges": ("grader",)}),
    # evaluation tools
    ({"sample_id": "ids", "epoch": "binary", "model_graded_qa_judge": "binary", "ground_truth": "binary?"},
     {"value": "ground_truth", "judges": ("model_graded_qa_judge",)}),
    ({"user_input": "text", "faithfulness": "probability", "human_faithfulness": "binary?"},
     {"value": "human_faithfulness", "proxy": "faithfulness"}),
    ({"question": "text", "faithfulness": "probability", "answer_relevancy": "probability",
      "human_faithfulness": "binary?"}, {"value": "human_faithfulness", "proxy": "faithfulness"}),
    ({"id": "ids", "faithfulness": "probability", "relevancy": "probability", "human": "binary?"},
     {"value": "human", "proxy": None}),
    ({"case": "ids", "GPT4 verdict": "correct", "Reviewer verdict": "correct?"},
     {"value": "Reviewer verdict", "judges": ("GPT4 verdict",)}),
    ({"id": "ids", "judge_a": "pass", "judge_b": "pass", "human": "pass?"},
     {"value": "human", "judges": ("judge_a", "judge_b")}),
    ({"id": "ids", "judge_verdict": "pass", "judge_reason": "text", "human_verdict": "pass?"},
     {"value": "human_verdict", "judges": ("judge_verdict",)}),
    ({"id": "ids", "autorater": "rating", "human_rating": "rating?"},
     {"value": "human_rating", "judges": ("autorater",)}),
    # classifiers and annotation tools
    ({"image": "ids", "prediction": "classes", "confidence": "probability", "label": "classes?"},
     {"value": "label", "answer": "prediction", "proxy": "confidence"}),
    ({"image_id": "ids", "bbox": "bbox", "category": "classes", "score": "probability", "gold": "classes?"},
     {"value": "gold", "answer": "category", "proxy": "score"}),
    ({"file_name": "ids", "pred": "codes", "prob": "probability", "label": "codes"},
     {"value": "label", "answer": "pred", "proxy": "prob"}),
    ({"id": "ids", "y_pred": "binary", "y_prob": "probability", "y_true": "binary?"},
     {"value": "y_true", "answer": "y_pred", "proxy": "y_prob"}),
    ({"text": "text", "predicted_label": "classes", "true_label": "classes?", "p_cat": "probability"},
     {"value": "true_label", "answer": "predicted_label", "proxy": "p_cat"}),
    ({"id": "ids", "label": "classes", "score": "probability", "human_label": "classes?"},
     {"value": "human_label", "answer": "label", "proxy": "score"}),
    ({"Unnamed: 0": "numbers", "filename": "ids", "output": "classes", "annotator": "group",
      "gold_label": "classes?"}, {"value": "gold_label", "answer": "output"}),
    ({"doc_id": "ids", "model_answer": "yes", "manual_check": "yes?"},
     {"value": "manual_check", "answer": "model_answer"}),
    # spreadsheets
    ({"No.": "numbers", "Ticket": "ids", "Status": "group", "Checked": "pass?"}, {"value": "Checked"}),
    ({"row": "numbers", "Judge": "yes", "Human": "yes?", "Comment": "text"},
     {"value": "Human", "judges": ("Judge",)}),
    ({"ID": "numbers", "Score": "probability", "Human review": "pass?", "Reviewed at": "dates"},
     {"value": "Human review", "proxy": "Score"}),
    ({"index": "numbers", "amount_eur": "cost", "age": "rating", "label": "binary?"}, {"value": "label"}),
    ({"uid": "ids", "position": "numbers", "rank": "rating", "relevance_judge": "rating",
      "gold": "rating?"}, {"value": "gold", "judges": ("relevance_judge",)}),
    ({"item": "ids", "label": "binary"}, {"value": "label", "proxy": None}),
    ({"segment": "ids", "COMET": "probability", "human_score": "rating?"},
     {"value": "human_score", "proxy": "COMET"}),
    ({"id": "ids", "confidence": "probability", "is_long": "binary", "human": "binary?"},
     {"value": "human", "proxy": "confidence", "judges": ()}),
    # leaderboards
    ({"question_id": "ids", "category": "group", "gpt-4o": "binary", "claude-3": "binary"},
     {"models": ("gpt-4o", "claude-3")}),
]  # fmt: skip

# Headers for which a role that is needed is not clear.
QUESTIONS = [
    ({"id": "ids", "rater_1": "pass?", "rater_2": "pass?"}, "value"),
    ({"id": "ids", "human": "pass?", "gold": "pass?", "judge": "pass"}, "value"),
    ({"id": "ids", "run_1": "binary", "run_2": "binary"}, "value"),
    ({"id": "ids", "answer_a": "classes", "answer_b": "classes", "label": "classes?"}, "predicted"),
    ({"id": "ids", "score": "probability", "latency_ms": "milliseconds"}, "value"),
    ({"id": "ids", "bucket": "codes", "label": "codes?"}, "predicted"),
    ({"text": "text", "label": "classes", "score": "probability"}, "value"),
    ({"id": "ids", "created": "dates", "cost": "cost"}, "value"),
]


def recognised(table):
    return recognise(facts_of_table(SmallTable.of(table, "table")))


@pytest.mark.parametrize(("header", "roles"), CASES, ids=[" ".join(header) for header, _ in CASES])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_roles_of_a_tools_columns_are_recognised(header, roles, seed):
    found = recognised(table_of(header, seed))

    expected = {"value": None, "answer": None, "judges": (), "models": (), **roles}
    if "proxy" not in roles:
        expected["proxy"] = next(iter(expected["judges"]), None)
    assert found.questions == ()
    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(("header", "role"), QUESTIONS, ids=[" ".join(header) for header, _ in QUESTIONS])
def test_a_role_that_is_not_clear_is_asked_for(header, role):
    table = table_of(header)
    (question,) = recognised(table).questions

    assert question.role == role
    with pytest.raises(InputError, match="State it"):
        stratal.evaluate(table)


@pytest.mark.parametrize("name", ["bbox", "created_at", "total_cost", "latency_ms", "segmentation"])
@pytest.mark.parametrize("kind", ["bbox", "dates", "cost", "milliseconds"])
def test_measurements_are_neither_ids_nor_proxies_nor_labels(name, kind):
    found = recognised({"other": ["a"] * ROWS, name: columns_of(np.random.default_rng(0), kind)})

    assert (found.id, found.proxy, found.value, found.judges) == (None, None, None, ())


def test_duplicate_ids_are_mentioned():
    table = table_of({"id": "ids", "score": "probability", "human": "binary?"})
    table["id"][7] = table["id"][3]

    found = recognised(table)

    assert found.id == "id"
    assert "has 1 duplicate value" in found.notes[0]


def test_what_is_stated_is_not_recognised_again():
    table = table_of({"id": "ids", "judge": "pass", "human": "pass?", "score": "probability"})
    facts = facts_of_table(SmallTable.of(table, "table"))

    found = recognise(facts, StatedRoles(value="human", judges=(), proxies=("score",)))

    assert (found.judges, found.proxy) == ((), "score")


def test_the_sentence_names_the_roles():
    table = table_of({"id": "ids", "verdict": "pass", "human": "pass?"})

    assert recognised(table).sentence() == "judge: `verdict` (pass/fail); labels: `human` in 30 of 120 rows"


@pytest.mark.parametrize("answers", [["True", "False"], [1.0, 0.0], ["1", "0"], ["TRUE", "FALSE"]])
def test_truth_values_are_classes_in_any_spelling(answers):
    """1 and True are one class: the share of ones of `y_true` was reported next to True and False."""
    draws = np.random.default_rng(0)
    truth = draws.integers(0, 2, ROWS)
    predicted = np.where(draws.random(ROWS) < 0.8, truth, 1 - truth)
    table = {"y_true": truth.tolist(), "y_pred": [answers[1 - number] for number in predicted]}

    assert stratal.evaluate(table).estimate.value == pytest.approx(np.mean(truth == predicted))
    with pytest.raises(InputError, match="may be classes, or mean wrong and right"):
        stratal.evaluate({"label": table["y_true"], "y_pred": table["y_pred"]})


def test_correct_may_be_the_correct_answer():
    draws = np.random.default_rng(0)
    table = {name: draws.choice(["yes", "no"], ROWS).tolist() for name in ("correct", "prediction")}

    with pytest.raises(InputError, match="the labels no and yes in 'correct' may be classes"):
        stratal.evaluate(table)


def test_true_classes_in_other_words_are_not_counted_as_numbers():
    draws = np.random.default_rng(0)
    table = {
        "y_true": draws.choice(["yes", "no"], ROWS).tolist(),
        "y_pred": draws.integers(0, 2, ROWS).tolist(),
    }

    with pytest.raises(LabelError, match="map each label to its class"):
        stratal.evaluate(table)
    mapping = {"yes": "1", "no": "0"}
    expected = np.mean(np.array(table["y_pred"]) == (np.array(table["y_true"]) == "yes"))
    assert stratal.evaluate(table, mapping=mapping).estimate.value == pytest.approx(expected)


@pytest.mark.parametrize(("word", "is_missing"), [("error", True), ("NOT_PARSABLE", True), ("maybe", False)])
def test_a_judge_with_other_verdicts_than_the_labels_is_compared_with_them(word, is_missing):
    """Such a judge was not used, without a note."""
    draws = np.random.default_rng(0)
    human = draws.choice(["pass", "fail"], ROWS)
    verdicts = np.where(draws.random(ROWS) < 0.7, human, draws.choice(["pass", "fail"], ROWS))
    failed = draws.random(ROWS) < 0.1
    judge = np.where(failed, word, verdicts)

    rows = stratal.evaluate({"human": human.tolist(), "judge": judge.tolist()}).to_dict()["judge"]

    agreement = next(row["estimate"] for row in rows if row["metric"] == "agreement")
    compared = ~failed if is_missing else np.ones(ROWS, dtype=bool)
    assert agreement == pytest.approx(np.mean((human == judge)[compared]))


def test_one_class_in_two_spellings_is_refused():
    """The labels 0 were compared with `0` alone, and not with `False`."""
    table = {"y_true": [0, 1, 0, 1] * 30, "y_pred": ["0", "True", "False", "True"] * 30}

    with pytest.raises(LabelError, match="'False' and '0', which are one class"):
        stratal.evaluate(table)


@pytest.mark.parametrize("write", ["{}.0", "{}.00", "{}"])
def test_whole_numbers_with_decimals_are_the_same_classes_in_text(write):
    """The mean of the classes was reported: a file has 1.0 for the 1 of a dataframe with empty cells."""
    draws = np.random.default_rng(0)
    truth = draws.integers(0, 4, ROWS)
    predicted = np.where(draws.random(ROWS) < 0.7, truth, draws.integers(0, 4, ROWS))
    table = {"y_true": truth.tolist(), "y_pred": [write.format(number) for number in predicted]}

    assert stratal.evaluate(table).estimate.value == pytest.approx(np.mean(truth == predicted))
    padded = table | {"y_pred": [f"{number:02d}" for number in predicted]}
    with pytest.raises(LabelError, match="no label occurs among the model's answers"):
        stratal.evaluate(padded)
