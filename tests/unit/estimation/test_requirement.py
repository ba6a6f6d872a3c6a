"""A requirement is held against the whole interval; a test fails with the figures."""

import numpy as np
import pytest
from tests.tiers import sized

import stratal
from stratal.estimation.requirement import Requirement, assess_requirements, joint_verdict
from stratal.testing import assert_requirement


@pytest.fixture
def found():
    population = stratal.Population.from_arrays(proxy=np.full(400, 0.5), groups={"half": ["a", "b"] * 200})
    sample = stratal.designs.SimpleRandom(budget=100).draw(population, seed=7)
    return stratal.estimate(sample, [1.0] * 95 + [0.0] * 5)


def test_the_whole_interval_decides(found):
    low, high = found.confidence_interval()

    assert_requirement(found, f"value>={float(low)!r}", f"value<={float(high)!r}")
    with pytest.raises(stratal.errors.RequirementError, match="UNDECIDED"):
        assert_requirement(found, f"value>={float(np.nextafter(low, 1.0))!r}")
    with pytest.raises(AssertionError, match="UNDECIDED"):
        assert_requirement(found, f"value<={float(np.nextafter(high, 0.0))!r}")
    with pytest.raises(AssertionError, match="FAIL"):
        assert_requirement(found, f"value>={float(np.nextafter(high, 1.0))!r}")
    with pytest.raises(AssertionError, match="FAIL"):
        assert_requirement(found, f"value<={float(np.nextafter(low, 0.0))!r}")


def test_level_and_method_count(found):
    low, _ = found.confidence_interval(0.5)

    assert_requirement(found, f"value>={float(low)!r}", confidence_level=0.5)
    with pytest.raises(stratal.errors.RequirementError, match="99% interval"):
        assert_requirement(found, f"value>={float(low)!r}", confidence_level=0.99)
    wilson = found.confidence_interval(0.95, "wilson")
    assert_requirement(found, f"value>={float(wilson.low)!r}", method="wilson")


@pytest.mark.parametrize(
    ("ends", "verdicts"),
    [
        ([None, 1.0], ("UNDECIDED", "UNDECIDED")),
        ([None, 0.4], ("FAIL", "PASS")),
        ([0.6, None], ("PASS", "FAIL")),
        ([0.5, 0.5], ("PASS", "PASS")),
        (None, ("UNDECIDED", "UNDECIDED")),
    ],
)
def test_open_and_unknown_ends(ends, verdicts):
    assert tuple(Requirement("value", sign, 0.5).verdict(ends) for sign in (">=", "<=")) == verdicts


@pytest.mark.parametrize(
    "text",
    ["", "value", "value>.9", "value>=", "value=.9", "value>=high", "value>=nan", "value>=inf"],
)
def test_requirements_that_cannot_be(found, text):
    with pytest.raises(stratal.InputError, match="not a requirement"):
        assert_requirement(found, text)


def test_something_is_required_of_an_estimate(found):
    with pytest.raises(stratal.InputError, match="no requirement is given"):
        assert_requirement(found)
    with pytest.raises(stratal.InputError, match="takes an Estimate"):
        assert_requirement(None, "value>=.9")


@pytest.mark.parametrize(
    ("text", "fate"),
    [
        ("value<=5", "always"),
        ("value<=1", "always"),
        ("value>=0", "always"),
        ("value>=-3", "always"),
        ("value>=1.5", "never"),
        ("value<=-0.5", "never"),
        ("value>=90", "never"),
    ],
)
def test_a_requirement_can_be_met_and_missed(found, text, fate):
    with pytest.raises(stratal.InputError, match=f"{fate} met"):
        assert_requirement(found, text)


def test_the_bounds_of_a_requirement_are_the_outcomes():
    population = stratal.Population.from_arrays(proxy=np.full(400, 0.5))
    sample = stratal.designs.SimpleRandom(budget=60).draw(population, seed=7)
    ratings, errors = np.resize([1.0, 3.0, 5.0], 60), np.resize([-6.0, 3.5, 5.0], 60)

    assert_requirement(stratal.estimate(sample, ratings, bounds=(1, 5)), "value<=4.9")
    with pytest.raises(stratal.InputError, match="always met"):
        assert_requirement(stratal.estimate(sample, ratings, bounds=(1, 5)), "value>=1")
    assert_requirement(stratal.estimate(sample, errors, outcome="unbounded"), "value<=500")


def test_of_two_judges_the_names_to_choose_from_are_said():
    verdicts = np.array(["yes", "no"] * 200)
    population = stratal.Population.from_arrays(groups={"a": verdicts, "b": verdicts})
    sample = stratal.designs.SimpleRandom(budget=40).draw(population, seed=7)
    estimate = stratal.estimate(
        sample, sample.groups["a"], estimand=stratal.estimands.JudgeReport(["a", "b"])
    )
    with pytest.raises(stratal.InputError, match=r"'kappa' \(allowed: 'a:kappa', 'b:kappa'\)"):
        assert_requirement(estimate, "kappa>=.5")


def test_a_judges_figure_in_a_group_is_called_by_both():
    verdicts, languages = np.array(["yes", "no"] * 200), np.array(["fr", "fr", "de", "de"] * 100)
    population = stratal.Population.from_arrays(groups={"a": verdicts, "language": languages})
    sample = stratal.designs.SimpleRandom(budget=100).draw(population, seed=7)
    question = stratal.estimands.JudgeReport(["a"])
    estimate = stratal.estimate(sample, sample.groups["a"], estimand=question, by="language")

    assert_requirement(estimate, "kappa@fr>=.5", "agreement@de>=.5")


def test_rows_are_called_by_what_they_are_of():
    answers = np.array(["yes", "no"] * 200)
    population = stratal.Population.from_arrays(groups={"answer": answers}, predicted="answer")
    sample = stratal.designs.SimpleRandom(budget=100).draw(population, seed=7)
    truth = sample.groups["answer"].copy()
    truth[:10] = np.where(truth[:10] == "yes", "no", "yes")
    several = stratal.estimate(sample, truth, estimand=["recall:yes", "mcc", "accuracy"])
    classes = stratal.estimate(sample, truth, estimand=stratal.estimands.ClassReport(["recall", "mcc"]))
    groups = stratal.estimate(sample, [1.0] * 100, by="answer")

    for name in ("recall:yes", "recall", "mcc"):
        assert_requirement(several, f"{name}>=.5")
    assert_requirement(classes, "recall:no>=.5", "mcc>=.5")
    assert_requirement(groups, "value@yes>=.5")
    with pytest.raises(stratal.InputError, match=r"several estimates are called 'recall'.*recall:yes"):
        assert_requirement(classes, "recall>=.5")
    with pytest.raises(stratal.InputError, match="no estimate is called 'value'"):
        assert_requirement(classes, "value>=.5")
    alone = stratal.estimate(sample, truth, estimand="mcc")
    both = assess_requirements(alone, ["value>=.5", "recall:yes>=.999"], tables=[classes])
    assert [entry["verdict"] for entry in both] == ["PASS", "FAIL"]
    assert joint_verdict(both) == "FAIL"


def test_no_labels_decide_a_limit_that_is_the_estimate_itself(found):
    assert found.labels_to_exclude(found.value, found.limits()) is None


@pytest.mark.parametrize("target", ["population", "superpopulation"])
def test_so_many_labels_decide(target):
    """With so many labels, and the same share of right ones, the interval just leaves the limit."""
    population = stratal.Population.from_arrays(ids=range(20_000))
    few = stratal.designs.SimpleRandom(budget=200).draw(population, seed=7)
    now = stratal.estimate(few, np.arange(200) % 5 > 0, target=target)
    more = now.labels_to_exclude(0.78, now.limits())
    reached = stratal.designs.SimpleRandom(budget=200 + more).draw(population, seed=7)
    then = stratal.estimate(reached, np.arange(200 + more) % 5 > 0, target=target)

    # Clopper-Pearson's reach has a part of order 1/n, which a standard error has not.
    assert then.confidence_interval().low == pytest.approx(0.78, abs=0.15 * 0.02)


def test_a_superpopulation_is_not_decided_by_a_census():
    population = stratal.Population.from_arrays(ids=range(300))
    sample = stratal.designs.SimpleRandom(budget=200).draw(population, seed=7)
    labels = np.arange(200) % 5 > 0
    superpopulation = stratal.estimate(sample, labels, target="superpopulation")

    assert superpopulation.labels_to_exclude(0.78, superpopulation.limits()) is None
    finite = stratal.estimate(sample, labels)
    assert 0 < finite.labels_to_exclude(0.78, finite.limits()) <= 100


def test_undecided_is_right_in_half_of_the_draws_with_so_many_labels():
    """The rate is .8, the limit .75: the labels that are named decide it in about half of the draws."""
    rng, draws = np.random.default_rng(1), sized(25, 400)
    population = stratal.Population.from_arrays(ids=range(50_000))
    truth = rng.random(50_000) < 0.8
    n = 256  # .05 = 1.96 × sqrt(.16 / 246), and ten for Clopper-Pearson
    decided = 0
    for seed in range(draws):
        sample = stratal.designs.SimpleRandom(budget=n).draw(population, seed=seed)
        held = assess_requirements(stratal.estimate(sample, truth[sample.ids]), ["value>=.75"])[0]
        decided += held["verdict"] == "PASS"
    assert abs(decided / draws - 0.5) < 4 * np.sqrt(0.25 / draws)
