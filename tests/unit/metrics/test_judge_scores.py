"""A judge's scores and verdicts against people's: peers' numbers, jackknifed variances, guards, plans."""

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import cohen_kappa_score
from tests.tiers import sized

import stratal
from stratal.designs import StratifiedWeighting
from stratal.estimands import (
    Agreement,
    Bias,
    CalibrationError,
    FalseDiscoveryRate,
    IntraclassCorrelation,
    Kappa,
    PearsonCorrelation,
    SpearmanCorrelation,
    WeightedKappa,
)
from stratal.metrics import associations
from stratal.metrics.calibration_error import calibration_error
from stratal.metrics.confusion import Confusion


def psych_icc(x, y):
    """Return ICC2 and ICC3 of psych::ICC for two raters, from the mean squares (Shrout & Fleiss 1979)."""
    both, n = np.column_stack([x, y]), len(x)
    rows, columns, whole = both.mean(axis=1), both.mean(axis=0), both.mean()
    between = 2 * ((rows - whole) ** 2).sum() / (n - 1)
    judges = n * ((columns - whole) ** 2).sum()
    error = ((both - rows[:, None] - columns[None] + whole) ** 2).sum() / (n - 1)
    two = (between - error) / (between + error + 2 * (judges - error) / n)
    return two, (between - error) / (between + error), error


@pytest.fixture(params=["levels", "numbers"])
def pairs(request):
    rng = np.random.default_rng(3)
    if request.param == "numbers":
        x = rng.normal(size=150)
        return x, 0.7 * x + rng.normal(size=150) + 0.4
    x = rng.integers(1, 6, 150).astype(float)
    return x, np.clip(x + rng.integers(-1, 3, 150), 1, 5)


def simple(n, size=100_000):
    return StratifiedWeighting(stratum=np.zeros(n, dtype=int), sizes=np.array([size]))


@pytest.mark.parametrize(
    ("statistic", "peer"),
    [
        (associations.pearson, lambda x, y: pearsonr(x, y)[0]),
        (associations.spearman, lambda x, y: spearmanr(x, y)[0]),
    ],
)
def test_values_are_the_peers_and_errors_the_jackknifes(pairs, statistic, peer):
    x, y = pairs
    n, found = len(x), associations.association(statistic, x, y, simple(len(x)))
    without = [peer(np.delete(x, i), np.delete(y, i)) for i in range(n)]

    assert found.value == pytest.approx(peer(x, y), abs=1e-9)
    assert found.standard_error == pytest.approx(np.sqrt((n - 1) * np.var(without)), rel=0.05)


def test_agreement_of_scores_is_psychs_icc2_but_for_terms_of_order_one_over_n(pairs):
    """ICC2's mean squares divide by n − 1, and it takes the chance of n rows from the judges' difference."""
    x, y = pairs
    n, (two, _, error) = len(x), psych_icc(x, y)
    value = associations.intraclass(x, y, np.full(n, 1 / n))[0]
    above = 2 * np.cov(x, y)[0, 1]
    below = np.var(x, ddof=1) + np.var(y, ddof=1) + (x.mean() - y.mean()) ** 2

    assert two == pytest.approx(above / (below - 2 * error / n), abs=1e-9)
    assert value == pytest.approx(
        above * (n - 1) / n / (below - (np.var(x, ddof=1) + np.var(y, ddof=1)) / n), abs=1e-9
    )


def test_weighted_kappa_is_scikit_learns():
    rng = np.random.default_rng(5)
    x = rng.integers(1, 6, 120)
    y = np.clip(x + rng.integers(-1, 2, 120), 1, 5)
    found = associations.association(associations.intraclass, x.astype(float), y.astype(float), simple(120))
    without = [cohen_kappa_score(np.delete(x, i), np.delete(y, i), weights="quadratic") for i in range(120)]

    assert found.value == pytest.approx(cohen_kappa_score(x, y, weights="quadratic"), abs=1e-9)
    assert found.standard_error == pytest.approx(np.sqrt(119 * np.var(without)), rel=0.05)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_kappa_is_scikit_learns(classes):
    rng = np.random.default_rng(classes)
    true = rng.integers(0, classes, 150)
    judge = np.where(rng.random(150) < 0.6, true, rng.integers(0, classes, 150))
    found = Confusion(true=true, predicted=judge, n_classes=classes, weighting=simple(150)).metric("kappa")
    without = [cohen_kappa_score(np.delete(true, i), np.delete(judge, i)) for i in range(150)]

    assert found.value == pytest.approx(cohen_kappa_score(true, judge), abs=1e-9)
    assert found.standard_error == pytest.approx(np.sqrt(149 * np.var(without)), rel=0.05)


def test_kappas_of_two_classes_are_one():
    rng = np.random.default_rng(8)
    true, judge = rng.integers(0, 2, 90), rng.integers(0, 2, 90)
    plain = Confusion(true=true, predicted=judge, n_classes=2, weighting=simple(90)).metric("kappa").value

    weighted = associations.intraclass(judge * 1.0, true * 1.0, np.full(90, 1 / 90))[0]
    assert weighted == pytest.approx(plain, abs=1e-12)


def test_a_published_kappa():
    """Fleiss, Levin & Paik (2003), table 18.1: two raters, 100 patients, κ = .676, standard error .088."""
    cells = {(0, 0): 75, (0, 1): 1, (0, 2): 4, (1, 0): 5, (1, 1): 4, (1, 2): 1, (2, 2): 10}
    true, judge = (np.repeat([key[k] for key in cells], list(cells.values())) for k in (0, 1))
    weighting = simple(100, 10**9)
    found = Confusion(true=true, predicted=judge, n_classes=3, weighting=weighting).metric("kappa")

    assert found.value == pytest.approx(0.676, abs=0.0005)
    # Theirs divides by n, and not by n − 1.
    assert found.standard_error * np.sqrt(0.99) == pytest.approx(0.0877, abs=0.0005)


@pytest.mark.parametrize("statistic", [associations.pearson, associations.spearman, associations.intraclass])
def test_pairs_that_all_agree_leave_something_open_and_a_census_nothing(statistic):
    x = np.resize(np.arange(5.0), 40)
    drawn = associations.association(statistic, x, x, simple(40)).confidence_interval()
    every = associations.association(statistic, x, x, simple(40, 40)).confidence_interval()

    assert drawn.low < 0.98
    assert drawn.high == pytest.approx(1.0, abs=0.02)
    assert [*every] == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize("statistic", [associations.pearson, associations.spearman, associations.intraclass])
@pytest.mark.parametrize("pair", [(np.ones(9), np.arange(9.0)), (np.arange(9.0), np.full(9, 3.0))])
def test_scores_or_labels_that_do_not_differ_have_no_correlation(statistic, pair):
    estimate = associations.association(statistic, pair[0], pair[1], simple(9))

    assert np.isnan(estimate.value)
    assert [*estimate.confidence_interval()] == [-1.0, 1.0]


@pytest.mark.parametrize("statistic", [associations.pearson, associations.spearman, associations.intraclass])
def test_labels_of_all_units_leave_their_superpopulation_open(statistic):
    rng = np.random.default_rng(3)
    scores = rng.integers(1, 6, 100) * 1.0
    labels = np.clip(scores + rng.integers(-1, 2, 100), 1.0, 5.0)
    every = associations.association(statistic, scores, labels, simple(100, 100), "superpopulation")
    drawn = associations.association(statistic, scores, labels, simple(100, 10**9))

    assert every.standard_error == pytest.approx(drawn.standard_error, rel=0.03)
    assert [*every.confidence_interval()] == pytest.approx([*drawn.confidence_interval()], abs=0.01)


@pytest.fixture
def judged():
    rng = np.random.default_rng(2)
    chance = rng.random(3_000)
    truth = (rng.random(3_000) < chance).astype(int)
    verdict = np.where(rng.random(3_000) < 0.85, truth, 1 - truth)
    names = np.array(["fail", "pass"])
    population = stratal.Population.from_arrays(
        proxy={"score": chance}, groups={"judge": names[verdict]}, predicted="judge"
    )
    return population, truth, names[truth]


@pytest.mark.parametrize(
    "text",
    [
        "agreement:judge",
        "kappa:judge",
        "false_discovery_rate:fail,predicted=judge",
        "recall:fail,predicted=judge",
        "pearson:score",
        "spearman:score",
        "icc:score",
        "weighted_kappa:score",
        "bias:score",
        "calibration_error:score",
    ],
)
def test_each_is_planned_for_drawn_in_rounds_and_estimated(judged, text):
    population, numbers, names = judged
    of_score = text.endswith(":score")
    truth = numbers if of_score else names
    plan = stratal.plan(population, half_width=0.1, estimand=text)
    sample = stratal.plan(population, 120, estimand=text).draw(seed=3)
    estimate = stratal.estimate(sample, truth[sample.ids])
    more = stratal.next_round(sample, truth[sample.ids], additional=60)
    then = stratal.estimate(more, truth[more.ids])

    assert 10 < plan.budget < 3_000
    assert estimate.label == {"estimand": text}
    assert then.n > estimate.n or then.labels == 180
    everyone = stratal.designs.SimpleRandom(budget=3_000).draw(population, seed=1)
    value = stratal.estimate(everyone, truth[everyone.ids], estimand=text).value
    for each in (estimate, then):
        low, high = each.confidence_interval(0.999)
        assert low - 1e-9 <= value <= high + 1e-9


def test_each_has_a_text():
    made = [
        Agreement("judge"),
        Kappa("judge"),
        FalseDiscoveryRate("fail"),
        PearsonCorrelation("s"),
        SpearmanCorrelation("s"),
        IntraclassCorrelation("s"),
        WeightedKappa("s"),
        Bias("s"),
        CalibrationError(),
    ]
    for estimand in made:
        assert stratal.estimands.Estimand.parse_text(estimand.text) == estimand


def test_a_score_on_no_scale_cannot_be_planned_for():
    population = stratal.Population.from_arrays(proxy={"s": np.arange(90.0)})

    for text in ("pearson:s", "bias:s"):
        with pytest.raises(stratal.InputError, match="is not possible"):
            stratal.plan(population, 30, estimand=text)


@pytest.mark.parametrize(
    ("statistic", "rho"),
    [(associations.pearson, 0.0), (associations.spearman, 0.6), (associations.intraclass, 0.95)],
)
def test_intervals_of_scores_cover(statistic, rho):
    rng, draws = np.random.default_rng(4), sized(80, 2_000)
    base = rng.normal(size=20_000)
    other = rho * base + np.sqrt(1 - rho**2) * rng.normal(size=20_000)
    x, y = (np.digitize(part, [-1.5, -0.5, 0.5, 1.5]) * 1.0 for part in (base, other))
    true = statistic(x, y, np.full(20_000, 1 / 20_000))[0]
    held = 0
    for _ in range(draws):
        units = rng.choice(20_000, 80, replace=False)
        interval = associations.association(
            statistic, x[units], y[units], simple(80, 20_000)
        ).confidence_interval()
        held += interval.low <= true <= interval.high

    assert held / draws > 0.95 - 3.5 * np.sqrt(0.95 * 0.05 / draws)


@pytest.mark.parametrize("prevalence", [0.1, 0.5])
@pytest.mark.parametrize("right", [0.5, 0.95])
def test_intervals_of_kappa_cover_where_verdicts_are_strata(prevalence, right):
    rng, draws = np.random.default_rng(6), sized(40, 2_000)
    truth = (rng.random(10_000) < prevalence).astype(int)
    judge = np.where(rng.random(10_000) < right, truth, 1 - truth)
    if right == 0.5:
        judge = (rng.random(10_000) < prevalence).astype(int)
    true = cohen_kappa_score(truth, judge)
    sizes, sides = np.bincount(judge), [np.flatnonzero(judge == k) for k in (0, 1)]
    weighting = StratifiedWeighting(stratum=np.repeat([0, 1], 50), sizes=sizes)
    held = 0
    for _ in range(draws):
        units = np.concatenate([rng.choice(side, 50, replace=False) for side in sides])
        found = Confusion(true=truth[units], predicted=judge[units], n_classes=2, weighting=weighting)
        interval = found.metric("kappa").confidence_interval()
        held += interval.low <= true <= interval.high

    assert held / draws > 0.95 - 3.5 * np.sqrt(0.95 * 0.05 / draws)


def test_a_calibrated_judge_may_have_no_calibration_error():
    rng, draws, held = np.random.default_rng(9), sized(40, 1_000), 0
    chance = rng.random(20_000)
    truth = (rng.random(20_000) < chance).astype(float)
    true = calibration_error(chance, truth, simple(20_000, 20_000)).value
    for _ in range(draws):
        units = rng.choice(20_000, 100, replace=False)
        found = calibration_error(chance[units], truth[units], simple(100, 20_000))
        interval = found.confidence_interval()
        held += interval.low <= true <= interval.high

    assert held / draws > 0.95 - 3.5 * np.sqrt(0.95 * 0.05 / draws)


@pytest.mark.parametrize(
    ("estimand", "naming"),
    [
        ("spearman", "spearman:COLUMN"),
        ("bias", "bias:COLUMN"),
        ("calibration_error", "calibration_error:COLUMN"),
        ("mae", "mae:COLUMN"),
        ("auc", "auc:1,score=COLUMN"),
        ("average_precision", "average_precision:1,score=COLUMN"),
        ("precision@threshold=0.5", "precision@threshold=0.5,score=COLUMN"),
    ],
)
def test_the_error_on_several_scores_has_the_form_that_names_one(estimand, naming):
    scores = np.random.default_rng(4).random((60, 2))
    population = stratal.Population.from_arrays(proxy={"first": scores[:, 0], "second": scores[:, 1]})
    sample = stratal.designs.SimpleRandom(budget=40).draw(population, seed=7)
    labels = {unit: int(scores[int(unit), 0] > 0.4) for unit in sample.ids}

    with pytest.raises(stratal.InputError, match="several columns could be the score") as error:
        stratal.estimate(sample, labels, estimand=estimand)
    assert f"Name one: {naming}." in str(error.value)
    named = naming.replace("COLUMN", "first")
    assert np.isfinite(stratal.estimate(sample, labels, estimand=named).value)
