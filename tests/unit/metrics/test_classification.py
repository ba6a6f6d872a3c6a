"""Metrics of a classifier as estimands: influence before labels, estimate after them."""

from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.errors import InputError
from stratal.estimands import ClassReport, Estimand
from stratal.metrics.class_answers import PROBABILITY_WEIGHT, ClassProbabilities
from stratal.metrics.class_functions import Shares, metric_function

LEVELS = ("a", "b", "c")
METRICS = (
    "accuracy", "precision:a", "recall:b", "f1:a", "fbeta:a,beta=2", "specificity:a", "jaccard:c",
    "negative_predictive_value:a", "prevalence:b", "balanced_accuracy", "mcc", "average:f1",
    "average:precision,average=micro", "average:recall,average=weighted",
)  # fmt: skip


@pytest.fixture
def population():
    rng = np.random.default_rng(11)
    confidence = rng.beta(4, 2, 500)
    answer = rng.choice(LEVELS, 500, p=(0.5, 0.3, 0.2))
    return stratal.Population.from_arrays(
        proxy={"confidence": confidence}, groups={"answer": answer}, predicted="answer"
    )


def believed(population):
    """P(c | x) (N, 3) of every unit, written out without formulas."""
    columns = next(population.batches(("confidence", "answer")))
    own = np.array([LEVELS.index(answer) for answer in columns["answer"]])
    confidence, told = columns["confidence"], np.bincount(own, minlength=3) / len(own)
    shares = spread(own, confidence, told).mean(axis=0)
    return own, PROBABILITY_WEIGHT * spread(own, confidence, shares) + (1 - PROBABILITY_WEIGHT) * shares


def spread(own, confidence, shares):
    found = np.zeros((len(own), 3))
    for i, a in enumerate(own):
        for c in range(3):
            found[i, c] = confidence[i] if c == a else (1 - confidence[i]) * shares[c] / (1 - shares[a])
    return found


@pytest.mark.parametrize("text", METRICS)
def test_the_moments_are_those_of_all_classes_that_a_unit_may_be_of(population, text):
    estimand = Estimand.parse_text(text)
    own, chance = believed(population)
    units = np.arange(len(own))
    shares = Shares(
        hits=np.bincount(own, chance[units, own], minlength=3) / len(own),
        predicted=np.bincount(own, minlength=3) / len(own),
        true=chance.mean(axis=0),
        total=1.0,
    )
    which = LEVELS.index(estimand.of) if estimand.of in LEVELS else estimand.of
    value, slopes, _ = metric_function(estimand.name, which, 3)(shares)
    u = np.stack([slopes.per_unit(np.full(len(own), c), own) for c in range(3)], axis=1)

    influence = estimand.influence(population)
    mean, square, _ = influence.moments(population)

    assert influence.value == pytest.approx(value, rel=1e-6)
    # Shares that are worked out twice differ a little: those believed of what is left are of the first.
    np.testing.assert_allclose(mean, (chance * u).sum(axis=1), atol=2e-2)
    np.testing.assert_allclose(square, (chance * u**2).sum(axis=1), atol=6e-2)
    assert abs(mean.mean()) < 1e-6


def test_probabilities_of_a_class_are_taken_as_they_are():
    rng = np.random.default_rng(4)
    score = rng.random(400)
    population = stratal.Population.from_arrays(
        proxy={"score": score}, groups={"answer": np.where(score > 0.6, "yes", "no")}, predicted="answer"
    )
    beliefs = ClassProbabilities.of(population, None, ("yes",), "score")
    columns = next(population.batches(("score", "answer")))
    found = beliefs.of_class(np.array([0.0, 1.0])).evaluate(columns)

    np.testing.assert_allclose(
        found, PROBABILITY_WEIGHT * score + (1 - PROBABILITY_WEIGHT) * score.mean(), rtol=1e-6
    )


def labelled(population, text, budget=120):
    estimand = Estimand.parse_text(text)
    strata = stratal.strata.stratify(population, "neyman", 3, influence=estimand.influence(population))
    design = stratal.designs.Stratified(strata=strata, allocation=stratal.strata.allocate(strata, budget))
    sample = design.draw(population, seed=5)
    rng = np.random.default_rng(8)
    truth = np.where(rng.random(500) < 0.7, sample_answers(population), rng.choice(LEVELS, 500))
    return estimand, sample, {int(unit): str(truth[unit]) for unit in sample.ids}


def sample_answers(population):
    return next(population.batches(("answer",)))["answer"]


@pytest.mark.parametrize("text", METRICS)
def test_the_estimate_is_that_of_a_report(population, text):
    estimand, sample, labels = labelled(population, text)
    if text.startswith(("precision", "negative")):
        assert np.any(sample.n_h == 0)
        estimate = stratal.estimate(sample, labels, estimand=text)
        inside = sample.groups["answer"] == "a"
        expected = inside if text.startswith("precision") else ~inside
        assert estimate.n == sample.size == int(expected.sum())
        return
    average = [estimand.of] if estimand.of in ("micro", "macro", "weighted") else []
    report = stratal.estimate(sample, labels, estimand=ClassReport(estimand.name, average=average))
    row = report.of(metric=estimand.name, **{"class": estimand.of})

    estimate = stratal.estimate(sample, labels, estimand=text)

    assert estimate.value == pytest.approx(row.value, rel=1e-12)
    assert estimate.standard_error == pytest.approx(row.standard_error, rel=1e-12)
    np.testing.assert_allclose([*estimate.confidence_interval()], [*row.confidence_interval()], rtol=1e-9)


@pytest.mark.parametrize("text", METRICS)
def test_the_labelled_influence_carries_the_variance(population, text):
    estimand, sample, labels = labelled(population, text)
    found = estimand.labelled_influence(sample, labels)
    result = estimand.estimate(sample, labels)
    strata = sample.design.strata
    variance = 0.0
    for h in np.flatnonzero(sample.n_h):
        u = found.u[sample.stratum[found.labelled] == h]
        factor = strata.sizes[h] ** 2 * (1 - len(u) / strata.sizes[h]) / len(u)
        kept = strata.sizes[sample.n_h > 0].sum()
        variance += factor / kept**2 * np.var(u, ddof=1)

    assert np.sqrt(variance) == pytest.approx(result.standard_error, rel=1e-6)


def test_a_sample_for_a_precision_refuses_what_it_cannot_tell(population):
    _, sample, labels = labelled(population, "precision:a")

    assert np.isfinite(stratal.estimate(sample, labels, estimand="precision:a").value)
    with pytest.raises(InputError, match="this sample cannot be used for this estimate"):
        stratal.estimate(sample, labels, estimand="recall:a")
    with pytest.raises(InputError, match="this sample cannot be used for this estimate"):
        stratal.estimate(sample, labels, estimand=ClassReport(["accuracy", "recall"]))
    with pytest.raises(InputError, match="this sample cannot be used for this estimate"):
        stratal.estimate(sample, dict.fromkeys(labels, 1.0), predicted=False)


def test_answers_and_probabilities_that_are_not_there_are_named(population):
    with pytest.raises(InputError, match=r"no such column of probabilities.*'score'"):
        Estimand.parse_text("f1:a,probability=score").influence(population)
    without = stratal.Population.from_arrays(proxy=[0.5, 0.7])
    with pytest.raises(InputError, match="requires the model's answers"):
        Estimand.parse_text("f1:a").influence(without)


def test_answers_alone_will_do():
    population = stratal.Population.from_arrays(groups={"answer": list("aabbb") * 4}, predicted="answer")
    influence = Estimand.parse_text("f1:a").influence(population)
    _, square, cells = influence.moments(population)

    assert 0 < influence.value < 1
    assert set(cells) == {"answer a", "other answers"}
    assert np.all(square > 0)


@pytest.mark.parametrize("kind", sorted(set(Estimand.registry)))
def test_an_estimand_names_itself_where_an_argument_is_strange(kind):
    made = Estimand.class_of_kind(kind)
    names = "|".join(parent.__name__ for parent in made.__mro__)
    with pytest.raises(TypeError, match=rf"^({names})\.__init__\(\) got an unexpected keyword .*'colour'"):
        made(colour="red")


@pytest.mark.parametrize("by", [None, "answer"])
def test_accuracy_of_answers_that_come_with_the_labels_is_that_of_their_column(population, by):
    sample = stratal.designs.SimpleRandom(budget=60).draw(population, seed=1)
    labels = dict(zip(sample.ids.tolist(), list("abcabb") * 10, strict=True))
    answers = dict(zip(sample.ids.tolist(), sample.groups["answer"].tolist(), strict=True))
    given = {"label": labels, "predicted": answers}
    kept, came = (stratal.estimate(sample, way, estimand="accuracy", by=by) for way in (labels, given))

    assert came.to_dict() == kept.to_dict()


def test_accuracy_takes_the_majority_of_several_annotators(population):
    sample = stratal.designs.SimpleRandom(budget=60).draw(population, seed=1)
    ids = tuple(str(unit) for unit in sample.ids.tolist() for _ in range(3))
    labels = stratal.Labels(ids=ids, values=("a", "a", "b") * 60, annotators=("x", "y", "z") * 60)
    mean, majority = (
        stratal.estimate(sample, labels, estimand="accuracy", combine=combine)
        for combine in ("mean", "majority")
    )

    assert majority.value != mean.value
    assert majority.value == stratal.estimate(sample, ["a"] * 60, estimand="accuracy").value


def rare_class(positives, size=4_000):
    """Return a population with some expected units of the class, of which the score knows little."""
    random = np.random.default_rng(6)
    score = random.beta(2, 6, size)
    score *= positives / score.sum()
    answers = np.where(random.random(size) < 0.02, "match", "other")
    return stratal.Population.from_arrays(
        proxy={"probability": score}, groups={"answer": answers}, predicted="answer"
    )


@pytest.mark.parametrize("kind", ["recall", "false_negative_rate", "f1", "jaccard"])
def test_a_plan_warns_that_few_labels_are_of_a_rare_class(kind):
    """A plan for 16 expected positives of 4,000 items was accepted without a word."""
    plan = stratal.plan(rare_class(16), 100, estimand=f"{kind}:match,probability=probability")
    (note,) = (note for note in plan.notes if "expected to belong to the class" in note)
    sample = plan.draw(seed=1)
    shares = [sample.proxies[sample.stratum == h, 0].mean() for h in range(len(plan.strata.sizes))]
    expected = float(plan.allocation.n_h @ shares)

    number = float(note.split("Only about ")[1].split(" of ")[0])
    assert number == pytest.approx(expected, rel=0.35)
    assert "it is undefined" in note
    needed = int(note.split("plan about ")[1].split(" labels")[0].replace(",", ""))
    assert needed == pytest.approx(100 * 10 / number, rel=0.1)


def test_a_plan_does_not_warn_of_a_class_that_is_frequent_enough():
    for positives, text in (
        (1_000, "recall:match,probability=probability"),
        (16, "prevalence:match"),
        (16, "precision:match"),
    ):
        plan = stratal.plan(rare_class(positives), 100, estimand=text)
        assert "expected to belong to the class" not in " ".join(plan.notes)


def test_a_class_that_the_population_hardly_has_needs_no_more_labels():
    plan = stratal.plan(rare_class(3), 100, estimand="recall:match,probability=probability")

    assert "too rare in these units for more labels to suffice" in " ".join(plan.notes)


@pytest.mark.parametrize(("by_groups", "is_wider"), [(True, True), (False, False)])
def test_a_second_interval_for_moderately_unequal_weights_is_for_strata_of_groups(by_groups, is_wider):
    """In strata of scores it made the interval of recall up to 2.8 times as wide."""
    rng = np.random.default_rng(3)
    group = np.repeat(["a", "b"], [440, 3_560])
    classes = np.where(rng.random(4_000) < np.where(group == "a", 0.5, 0.02), "spam", "ham")
    scores = np.where(group == "a", 0.7, 0.1) + 0.2 * rng.random(4_000)
    answers = np.where(rng.random(4_000) < 0.95, classes, "ham")
    population = stratal.Population.from_arrays(
        proxy=scores, groups={"group": group, "answer": answers}, predicted="answer"
    )
    if by_groups:
        strata = stratal.strata.stratify(population, "category", by="group")
    else:
        strata = stratal.strata.stratify(population, "k-means", 2)
    counts = np.array([60, 60])
    allocation = stratal.strata.allocate(strata, 120, "equal", minimum=counts, maximum=counts)
    sample = stratal.designs.Stratified(strata=strata, allocation=allocation).draw(population, seed=1)

    estimate = stratal.estimate(sample, classes[sample.ids].tolist(), estimand="recall:spam")

    assert (" and " in estimate.confidence_interval().method) == is_wider
