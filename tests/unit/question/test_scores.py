"""What scores predict: how it is declared, and what a declaration contradicts."""

import numpy as np
import pytest

import stratal
from stratal.errors import InputError
from stratal.question.scores import Score, declared_scores

UNITS = 200


@pytest.fixture(scope="module")
def columns():
    draws = np.random.default_rng(5)
    chance = draws.uniform(size=UNITS)
    answer = np.where(chance > 0.5, "spam", "ham")
    return {
        "ids": [f"u{row}" for row in range(UNITS)],
        "proxy": {"p_spam": chance, "judge": 1.0 + np.floor(4.0 * chance)},
        "groups": {"answer": answer},
        "predicted": "answer",
    }


def drawn(columns, **options):
    population = stratal.Population.from_arrays(**{**columns, **options})
    return stratal.designs.SimpleRandom(budget=60).draw(population, seed=7)


@pytest.mark.parametrize(
    ("predicts", "meaning", "bounds"),
    [
        ("right", "the probability that the answer is right", (0.0, 1.0)),
        ("class:spam", "the probability of class 'spam'", (0.0, 1.0)),
        ("rating:-1..5", "a rating on [-1, 5]", (-1.0, 5.0)),
        ("outcome", "the label itself, as a number on the same scale", None),
        ("order", "only an order", None),
    ],
)
def test_meanings(predicts, meaning, bounds):
    score = Score(name="score", predicts=predicts)

    assert score.meaning == meaning
    assert score.bounds == bounds


def test_one_rating_has_one_spelling():
    assert Score(name="judge", predicts="rating:1.0..5").predicts == "rating:1..5"


@pytest.mark.parametrize(
    "predicts", ["", "class:", "rating", "rating:5..1", "rating:1", "prob", "rating:a..b", 3]
)
def test_other_meanings_are_refused(predicts):
    with pytest.raises(InputError, match="right, class:NAME, rating:LOW"):
        Score(name="score", predicts=predicts)


def test_one_text_is_for_the_only_proxy():
    assert declared_scores("order", ["a"])["a"].declared
    with pytest.raises(InputError, match="2 proxies"):
        declared_scores("order", ["a", "b"])
    with pytest.raises(InputError, match="'c', which is not a proxy"):
        declared_scores({"c": "order"}, ["a", "b"])


def test_a_population_infers_what_is_not_declared(columns):
    population = stratal.Population.from_arrays(**columns, predicts={"judge": "rating:1..5"})

    assert [(score.predicts, score.declared) for score in population.scores] == [
        ("right", False),
        ("rating:1..5", True),
    ]


@pytest.mark.parametrize(
    ("predicts", "words"),
    [
        ({"judge": "right"}, ("judge", "1 to 4", "right")),
        ({"judge": "rating:1..3"}, ("judge", "1 to 4", "rating:1..3")),
        ({"p_spam": "class:Spam"}, ("class 'Spam'", "'spam'", "answer")),
    ],
)
def test_a_declaration_that_contradicts_the_data_names_both(columns, predicts, words):
    """Probabilities outside [0, 1], ratings outside their bounds, and classes that do not occur."""
    with pytest.raises(InputError) as of_population:
        stratal.Population.from_arrays(**columns, predicts=predicts)
    sample = drawn(columns)
    labels = dict.fromkeys(sample.ids.tolist(), "spam")
    with pytest.raises(InputError) as of_estimate:
        stratal.estimate(sample, labels, predicts=predicts)

    for message in (str(of_population.value), str(of_estimate.value)):
        assert all(word in message for word in words)


def test_a_class_that_no_label_names_is_refused():
    population = stratal.Population.from_arrays(proxy=np.linspace(0.1, 0.9, 40))
    sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=7)
    labels = np.array(["yes", "no"] * 10)

    with pytest.raises(InputError, match="class 'toxic', which does not occur among the labels"):
        stratal.estimate(sample, labels, predicts="class:toxic")
    assert stratal.estimate(sample, labels, predicts="class:yes").value == 0.5


def test_a_later_declaration_that_contradicts_the_first_names_both(columns):
    sample = drawn(columns, predicts={"p_spam": "class:spam"})
    labels = dict.fromkeys(sample.ids.tolist(), "spam")

    for ask in (stratal.estimate, stratal.evaluate):
        with pytest.raises(InputError, match=r"p_spam=order.*p_spam=class:spam"):
            ask(sample, labels, predicts={"p_spam": "order"})
        ask(sample, labels, predicts={"p_spam": "class:spam"})
    with pytest.raises(InputError, match=r"p_spam=right.*p_spam=class:spam"):
        stratal.plan(sample.population, budget=20, predicts={"p_spam": "right"})


def test_an_order_and_a_scale_contradict_each_other(columns):
    with pytest.raises(InputError, match="scaled=False"):
        stratal.Population.from_arrays(**columns, scaled=False, predicts={"p_spam": "right"})


def test_the_declaration_is_stored(columns, tmp_path):
    sample = drawn(columns, predicts={"judge": "rating:1..5"})
    sample.write(tmp_path / "sample.parquet")
    stored = stratal.Sample.read(tmp_path / "sample.parquet").question.score("judge")

    assert stored == Score(name="judge", predicts="rating:1..5", declared=True)


def test_scores_on_another_scale_enter_only_through_a_fitted_lambda(columns):
    """An order, and the probability of a class where labels are compared with answers."""
    for predicts in ("order", "class:spam"):
        sample = drawn({**columns, "proxy": {"p": columns["proxy"]["p_spam"]}}, predicts=predicts)
        labels = dict(zip(sample.ids.tolist(), sample.groups["answer"].tolist(), strict=True))

        assert not sample.proxy_info[0].scaled
        with pytest.raises(InputError):
            stratal.estimate(sample, labels, estimator="difference")


def test_a_rating_is_on_the_scale_of_ratings(columns):
    proxy = columns["proxy"]["judge"]
    population = stratal.Population.from_arrays(proxy=proxy, predicts="rating:1..5")
    stated = stratal.Population.from_arrays(proxy=proxy, bounds=(1, 5))

    assert population.proxies == stated.proxies
    assert [score.predicts for score in stated.scores] == ["rating:1..5"]


def test_a_ranking_metric_takes_the_score_of_its_class(columns):
    sample = drawn(columns, predicts={"p_spam": "class:spam"})
    draws = np.random.default_rng(6)
    truth = np.where(draws.random(60) < sample.proxies[:, 0], "spam", "ham")

    auc = stratal.estimate(sample, truth, estimand="auc:spam")
    assert auc.value == stratal.estimate(sample, truth, estimand="auc:spam,score=p_spam").value
    # A score that is declared for another class is refused, even where the estimand names it.
    with pytest.raises(InputError, match=r"class 'spam' \(declared\)"):
        stratal.estimate(sample, truth, estimand="average_precision:ham,score=p_spam")


def test_a_calibration_error_is_of_probabilities(columns):
    sample = drawn(columns, predicts={"p_spam": "class:spam", "judge": "rating:1..5"})
    draws = np.random.default_rng(6)
    truth = np.where(draws.random(60) < sample.proxies[:, 0], "spam", "ham")

    with pytest.raises(InputError, match=r"a rating on \[1, 5\] \(declared\)"):
        stratal.estimate(sample, truth, estimand="calibration_error:judge")
    numbers = (truth == "spam").astype(float)
    plain = drawn({**columns, "groups": {}, "predicted": None})
    expected = stratal.estimate(plain, numbers, estimand="calibration_error:p_spam")
    found = stratal.estimate(sample, truth, estimand="calibration_error:p_spam")
    assert found.value == expected.value
    report = stratal.estimate(sample, truth, judge=["p_spam", "judge"])
    metrics = {(row["judge"], row["metric"]) for row in report.rows()}
    assert ("p_spam", "calibration_error") in metrics
    assert ("judge", "calibration_error") not in metrics
    assert not any(judge.startswith("mean") for judge, _ in metrics)


def test_a_plan_takes_the_probability_of_the_class_of_its_metric(columns):
    proxy = {"p_spam": columns["proxy"]["p_spam"]}
    declared = stratal.Population.from_arrays(**{**columns, "proxy": proxy}, predicts="class:spam")
    plain = stratal.Population.from_arrays(**{**columns, "proxy": proxy})

    by_declaration = stratal.plan(declared, budget=40, estimand="f1:spam")
    by_option = stratal.plan(plain, budget=40, estimand="f1:spam,probability=p_spam")
    assert by_declaration.allocation.n_h.tolist() == by_option.allocation.n_h.tolist()
    assert by_declaration.expected_half_width == by_option.expected_half_width


def test_a_plan_shows_what_is_inferred(columns):
    plan = stratal.plan(stratal.Population.from_arrays(**columns), budget=40)

    assert "p_spam predicts the probability that the answer is right (inferred)" in str(plan)
    assert plan.to_dict()["proxies"][1]["predicts"] == "order"


def test_a_misspelt_class_can_be_corrected_once_there_are_labels():
    population = stratal.Population.from_arrays(proxy=np.linspace(0.1, 0.9, 40), predicts="class:yess")
    sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=7)
    labels = np.array(["yes", "no"] * 10)

    for ask in (stratal.estimate, lambda *given, **more: stratal.evaluate(*given, **more).estimate):
        with pytest.raises(InputError, match="class 'yess', which does not occur among the labels"):
            ask(sample, labels)
        assert ask(sample, labels, predicts="order").value == 0.5
        # A class that occurs was declared on purpose.
        with pytest.raises(InputError, match=r"proxy=order.*proxy=class:yess"):
            ask(sample, np.array(["yess", "no"] * 10), predicts="order")


def test_an_unknown_class_of_a_ranking_metric_lists_the_classes(columns):
    sample = drawn(columns, predicts={"p_spam": "class:spam"})
    labels = dict(zip(sample.ids.tolist(), sample.groups["answer"].tolist(), strict=True))

    for name in ("Spam", "spamm"):
        with pytest.raises(InputError, match=rf"no class is called '{name}'.*'spam', 'ham'"):
            stratal.estimate(sample, labels, estimand=f"auc:{name}")


def test_a_few_values_outside_probabilities_are_named():
    values = np.append(np.linspace(0, 1, 60), 1.7)
    noted = stratal.Population.from_arrays(proxy=values)
    scores = stratal.Population.from_arrays(proxy=values * 10)
    declared = stratal.Population.from_arrays(proxy=values, predicts="order")

    assert "1 of 61 values of 'proxy' lies outside [0, 1] (such as 1.7)" in noted.notes[0]
    assert scores.notes == ()
    assert declared.notes == ()


def test_a_dataframe_of_labels_has_errors_of_its_own(columns):
    pandas = pytest.importorskip("pandas")
    sample = drawn(columns)
    frame = pandas.DataFrame({"id": sample.ids, "verdict_by_anna": 1.0})

    with pytest.raises(InputError, match="Rename the column") as refused:
        stratal.estimate(sample, frame)
    assert "value=" not in str(refused.value)


def test_comparisons_and_regressions_take_a_dataframe():
    pandas = pytest.importorskip("pandas")
    draws = np.random.default_rng(2)
    population = stratal.Population.from_arrays(proxy=draws.random(60), features={"x": draws.random(60)})
    sample = stratal.designs.SimpleRandom(budget=30).draw(population, seed=7)
    frame = pandas.DataFrame({"id": sample.ids, "a": draws.integers(0, 2, 30), "b": draws.integers(0, 2, 30)})
    columns = {name: dict(zip(sample.ids.tolist(), frame[name].tolist(), strict=True)) for name in "ab"}

    assert stratal.compare(sample, frame).rows() == stratal.compare(sample, columns).rows()
    labelled = frame.rename(columns={"a": "label"})[["id", "label"]]
    by_frame = stratal.regression.regress(sample, labelled, features="x")
    by_mapping = stratal.regression.regress(sample, columns["a"], features="x")
    assert [row.value for row in by_frame] == [row.value for row in by_mapping]
