"""A new version on old labels: exact where labels are classes, bounds where a changed answer has no label."""

import numpy as np
import pytest

import stratal

ANSWERS = np.array(["cat", "dog", "cow"])


@pytest.fixture
def world():
    """1000 units, their true classes, the old model's answers (80 % right) and the new one's (90 %)."""
    rng = np.random.default_rng(5)
    true = rng.choice(ANSWERS, 1000)
    old = np.where(rng.random(1000) < 0.8, true, rng.choice(ANSWERS, 1000))
    new = np.where(rng.random(1000) < 0.9, true, rng.choice(ANSWERS, 1000))
    population = stratal.Population.from_arrays(
        proxy=rng.beta(4, 1, 1000), groups={"answer": old}, predicted="answer"
    )
    return stratal.plan(population, 200).draw(seed=7), true, old, new


def test_classes_judge_every_answer(world):
    sample, true, old, new = world
    labels = {unit: true[unit] for unit in sample.ids.tolist()}
    found = stratal.new_version(sample, labels, dict(enumerate(new)), predicted=True).to_dict()

    units = sample.ids
    outcomes = {"new": (new == true)[units].astype(float), "old": (old == true)[units].astype(float)}
    pair = stratal.compare(sample, outcomes)[0]
    assert found["complete"]
    assert found["needs_labels"] == []
    assert found["known"] == 200
    assert found["difference"]["estimate"] == pair.value
    assert found["difference"]["confidence_interval"] == pair.limits()
    assert found["old"]["estimate"] == stratal.estimate(sample, labels, predicted=True).value
    assert found["new"]["estimate"] == stratal.estimate(sample, outcomes["new"]).value
    assert found["changed"] == int(np.sum(old[units] != new[units]))


def test_judgements_hold_where_the_answer_is_the_same_and_bounds_hold_elsewhere(world):
    sample, true, old, new = world
    judged = {unit: float(true[unit] == old[unit]) for unit in sample.ids.tolist()}
    found = stratal.new_version(sample, judged, dict(enumerate(new))).to_dict()

    units = sample.ids
    changed = old[units] != new[units]
    assert found["needs_labels"] == [str(unit) for unit in units[changed]]
    assert not found["complete"]
    assert found["new"]["estimate"] is None
    truth = stratal.estimate(sample, (new == true)[units].astype(float))
    low, high = truth.confidence_interval()
    assert found["new"]["lowest"] <= truth.value <= found["new"]["highest"]
    ends = found["new"]["confidence_interval"]
    assert ends[0] <= low
    assert high <= ends[1]


def test_labels_of_the_changed_answers_complete_it(world):
    sample, true, old, new = world
    units = sample.ids.tolist()
    judged = {unit: float(true[unit] == old[unit]) for unit in units}
    anew = {unit: float(true[unit] == new[unit]) for unit in units if old[unit] != new[unit]}
    found = stratal.new_version(sample, judged, dict(enumerate(new)), new_labels=anew).to_dict()
    exact = stratal.new_version(
        sample, {unit: true[unit] for unit in units}, dict(enumerate(new)), predicted=True
    ).to_dict()

    assert found["complete"]
    assert found["new"] == exact["new"]
    assert found["difference"] == exact["difference"]


def test_some_labels_narrow_the_bounds(world):
    sample, true, old, new = world
    units = sample.ids.tolist()
    judged = {unit: float(true[unit] == old[unit]) for unit in units}
    changed = [unit for unit in units if old[unit] != new[unit]]
    some = {unit: float(true[unit] == new[unit]) for unit in changed[: len(changed) // 2]}
    none, half = (
        stratal.new_version(sample, judged, dict(enumerate(new)), new_labels=given).to_dict()
        for given in (None, some)
    )

    assert len(half["needs_labels"]) == len(none["needs_labels"]) - len(some)
    assert half["new"]["highest"] - half["new"]["lowest"] < none["new"]["highest"] - none["new"]["lowest"]


def test_a_blank_is_a_changed_answer(world):
    # It was dropped as nonresponse: a version that stays silent where the old one was wrong looked better.
    sample, true, old, _ = world
    units = sample.ids.tolist()
    silent = {unit: ("" if old[unit] != true[unit] else old[unit]) for unit in units[:150]}
    answers = {unit: old[unit] for unit in units} | silent
    labels = {unit: true[unit] for unit in units}
    found = stratal.new_version(sample, labels, answers, predicted=True).to_dict()
    judged = {unit: float(true[unit] == old[unit]) for unit in units}
    by_hand = stratal.new_version(sample, judged, answers).to_dict()

    blank = sum(answer == "" for answer in silent.values())
    assert blank > 10
    assert (found["complete"], found["blank"], found["changed"]) == (True, blank, blank)
    assert found["new"] == found["old"]
    assert found["difference"]["estimate"] == 0
    assert len(by_hand["needs_labels"]) == blank
    assert by_hand["new"]["lowest"] == by_hand["old"]["estimate"]
    for nothing in (None, float("nan"), " "):
        given = {unit: nothing if answer == "" else answer for unit, answer in answers.items()}
        assert stratal.new_version(sample, labels, given, predicted=True).to_dict() == found


def test_units_without_a_new_answer_are_between_worst_and_best(world):
    # They were nonresponse, so that the three figures stood on different units: "new .644", "complete" true.
    sample, true, _, new = world
    units = sample.ids.tolist()
    labels = {unit: true[unit] for unit in units}
    answers = {unit: new[unit] for unit in units[:150]}
    found = stratal.new_version(sample, labels, answers, predicted=True).to_dict()
    ends = [
        stratal.new_version(sample, labels, answers | given, predicted=True).to_dict()["new"]["estimate"]
        for given in (dict.fromkeys(units[150:], "nothing"), {unit: true[unit] for unit in units[150:]})
    ]

    assert (found["units"], found["missing"], found["known"], found["labelled"]) == (150, 50, 150, 200)
    assert (found["complete"], found["new"]["estimate"]) == (False, None)
    assert (found["needs_labels"], found["needs_answers"]) == ([], [str(unit) for unit in units[150:]])
    assert [found["new"]["lowest"], found["new"]["highest"]] == ends


def test_all_three_figures_rest_on_the_units_with_an_old_label(world):
    sample, true, old, new = world
    units = sample.ids.tolist()
    judged = {unit: float(true[unit] == old[unit]) for unit in units[:120]}
    anew = {unit: float(true[unit] == new[unit]) for unit in units}
    with pytest.warns(stratal.StratalWarning, match="80 of 200"):
        found = stratal.new_version(sample, judged, dict(enumerate(new)), new_labels=anew).to_dict()
    on_these = np.array([anew[unit] if unit in judged else np.nan for unit in units])
    with pytest.warns(stratal.StratalWarning, match="80 of 200"):
        expected = stratal.estimate(sample, on_these)

    assert (found["labelled"], found["known"], found["complete"]) == (120, 120, True)
    assert found["new"]["estimate"] == expected.value


def test_old_answers_that_are_not_known_are_no_blanks(world):
    sample, _, old, _ = world
    units = sample.ids.tolist()
    judged = dict.fromkeys(units, 1.0)
    known = {unit: old[unit] for unit in units[:190]}
    found = stratal.new_version(sample, judged, dict.fromkeys(units, ""), old_answers=known).to_dict()

    assert (found["same"], found["changed"]) == (0, 200)


def test_two_new_answers_of_one_unit_are_refused(world):
    sample, *_ = world
    judged = dict.fromkeys(sample.ids.tolist(), 1.0)
    first = str(sample.ids[0])
    twice = stratal.Labels(ids=(first, first), values=("cat", "dog"), annotators=("a", "b"))
    with pytest.raises(stratal.LabelError, match="several answers of the new version"):
        stratal.new_version(sample, judged, twice)


def test_only_means_are_compared(world):
    sample, true, _, new = world
    labels = {unit: true[unit] for unit in sample.ids.tolist()}
    with pytest.raises(stratal.InputError, match="compared only by its mean outcome"):
        stratal.new_version(sample, labels, dict(enumerate(new)), predicted=True, estimand="f1:cat")
    found = stratal.new_version(sample, labels, dict(enumerate(new)), estimand="accuracy").to_dict()
    assert found["old"]["estimate"] == stratal.estimate(sample, labels, predicted=True).value


def test_a_report_refuses_a_comparison_with_another_estimate(world):
    sample, true, old, new = world
    judged = {unit: float(true[unit] == old[unit]) for unit in sample.ids.tolist()}
    other = stratal.new_version(sample, judged, dict(enumerate(new)), estimator="horvitz-thompson")
    with pytest.raises(stratal.InputError, match="not compared with this report's estimate"):
        stratal.findings(sample, judged, new=other, estimator="difference")
    same = stratal.new_version(sample, judged, dict(enumerate(new)), lam=0.5)
    found = stratal.findings(sample, judged, new=same, lam=0.5).to_dict()
    assert found["new_version"]["old"]["estimate"] == found["estimate"]["estimate"]


def test_answers_of_other_units_alone_are_refused(world):
    sample, _, old, _ = world
    judged = dict.fromkeys(sample.ids.tolist(), 1.0)
    with pytest.raises(stratal.LabelError, match="the new version has no answer for any drawn unit"):
        stratal.new_version(sample, judged, {f"row {unit}": answer for unit, answer in enumerate(old)})


def test_an_option_that_it_has_not_is_refused(world):
    sample, _, old, _ = world
    judged = dict.fromkeys(sample.ids.tolist(), 1.0)
    with pytest.raises(stratal.InputError, match=r"does not accept lambda_= \(allowed: estimand, target"):
        stratal.new_version(sample, judged, dict(enumerate(old)), lambda_=1.0)


def test_unchanged_answers_change_nothing(world):
    sample, true, old, _ = world
    judged = {unit: float(true[unit] == old[unit]) for unit in sample.ids.tolist()}
    found = stratal.new_version(sample, judged, dict(enumerate(old))).to_dict()

    assert found["complete"]
    assert found["difference"]["estimate"] == 0
    assert found["new"] == found["old"]


def test_without_old_answers_and_without_bounds():
    population = stratal.Population.from_arrays(proxy=np.linspace(0, 9, 50), scaled=True)
    sample = stratal.designs.SimpleRandom(budget=10).draw(population, seed=7)
    answers = dict.fromkeys(range(50), "a")
    with pytest.raises(stratal.InputError, match="earlier answers of the model"):
        stratal.new_version(sample, np.arange(10.0), answers)
    with pytest.raises(stratal.InputError, match="outcomes have no bounds"):
        stratal.new_version(sample, np.arange(10.0), answers, old_answers=dict.fromkeys(range(50), "b"))


def test_it_prints_what_needs_labels(world):
    sample, true, old, new = world
    judged = {unit: float(true[unit] == old[unit]) for unit in sample.ids.tolist()}
    found = stratal.new_version(sample, judged, dict(enumerate(new)))

    assert "Need labels: " in str(found)
    page = stratal.findings(sample, judged, new=found)
    assert page.to_dict()["new_version"] == found.to_dict()
    from stratal.report.document import report_html

    assert "Need labels: " in report_html(page.to_dict())
