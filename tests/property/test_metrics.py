"""Whatever the labels: an estimate inside its bounds with an interval around it, or a clear word why not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tiers import sized

import stratal
from stratal.designs import PoissonWeighting, StratifiedWeighting, WithReplacementWeighting
from stratal.errors import InputError
from stratal.estimands import ClassReport
from stratal.estimation.domain_means import domain_mean
from stratal.estimation.estimate import difference_of
from stratal.estimation.estimates import Estimates
from stratal.estimation.outcome_means import estimate_mean
from stratal.metrics.class_functions import CLASS_METRICS, OVERALL_METRICS, SIGNED
from stratal.metrics.comparison import contrast_interval
from stratal.metrics.confusion import Confusion
from stratal.metrics.ranking import area_under_curve, average_precision, ranking_metric
from stratal.question.vocabulary import AVERAGES
from stratal.regression.quantiles import weighted_quantile_estimate


@st.composite
def designs(draw):
    """A weighting, and whether every unit is labelled."""
    counts = np.array(draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    n = int(counts.sum())
    if draw(st.booleans()):
        sizes = counts + np.array(
            draw(st.lists(st.integers(0, 500), min_size=len(counts), max_size=len(counts)))
        )
        stratum = np.repeat(np.arange(len(counts)), counts)
        return StratifiedWeighting(stratum=stratum, sizes=sizes), bool(np.all(sizes == counts)), n
    probability = np.array(draw(st.lists(st.floats(0.01, 0.9), min_size=n, max_size=n)))
    if draw(st.booleans()):
        return (
            PoissonWeighting(inclusion_probability=probability, size=float(np.sum(1 / probability))),
            False,
            n,
        )
    weights = 1 / probability
    return WithReplacementWeighting(design_weight=weights, size=float(weights.sum())), False, n


def check(found, lowest, highest, census):
    if not np.isfinite(found.value):
        # Nothing is known, and that is an interval where there are bounds.
        assert found.limits() in ([lowest, highest], None)
        return
    low, high = found.confidence_interval()
    assert lowest - 1e-12 <= low <= found.value + 1e-9
    assert found.value - 1e-9 <= high <= highest + 1e-12
    assert census or high > low
    wide = found.confidence_interval(0.99)
    assert wide.low <= low + 1e-9
    assert wide.high >= high - 1e-9
    assert 0 <= found.p_value(found.value) <= 1


@settings(max_examples=sized(10, 200), deadline=None)
@given(designs(), st.integers(1, 4), st.data())
def test_classification(design, n_classes, data):
    weighting, census, n = design
    codes = st.lists(st.integers(0, n_classes - 1), min_size=n, max_size=n)
    true, predicted = (np.array(data.draw(codes), np.int64) for _ in range(2))
    confusion = Confusion(true=true, predicted=predicted, n_classes=n_classes, weighting=weighting)

    for name in OVERALL_METRICS:
        check(confusion.metric(name), -1 if name in SIGNED else 0, 1, census)
    name = data.draw(st.sampled_from(CLASS_METRICS))
    for which in (0, *AVERAGES):
        check(confusion.metric(name, which), 0, 1, census)


@settings(max_examples=sized(10, 200), deadline=None)
@given(designs(), st.data())
def test_ranking_domains_and_quantiles(design, data):
    weighting, census, n = design
    score = np.array(data.draw(st.lists(st.integers(-3, 3), min_size=n, max_size=n)), float)
    positive = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))

    for statistic in (area_under_curve, average_precision):
        check(ranking_metric(statistic, score, positive, weighting), 0, 1, census)
    means = [
        domain_mean((score + 3) / 6, part, weighting, bounds=(0.0, 1.0)) for part in (positive, ~positive)
    ]
    for found in means:
        check(found, 0, 1, census)
    check(difference_of(*means[:2]), -1, 1, census)
    median = weighted_quantile_estimate(score, 0.5, weighting)
    low, high = median.confidence_interval()
    assert low <= median.value <= high


@settings(max_examples=sized(10, 200), deadline=None)
@given(designs(), st.data())
def test_comparisons_of_any_numbers(design, data):
    weighting, census, n = design
    numbers = st.one_of(st.floats(-1e12, 1e12), st.sampled_from([0.0, 1.0, 1e-300, 0.5]))
    contrasts = np.array(data.draw(st.lists(numbers, min_size=3 * n, max_size=3 * n))).reshape(n, 3)
    stratum = weighting.stratum if isinstance(weighting, StratifiedWeighting) else np.zeros(n, np.int64)

    def family(columns, **options):
        """The mean of each contrast, or None where one label leaves its error unknown."""
        found = []
        for column in columns.T:
            try:
                pair = estimate_mean(column, np.zeros((n, 0)), weighting, None, stratum=stratum, **options)
            except InputError:
                return None
            found.append(replace(pair, evidence=replace(pair.evidence, interval=contrast_interval(pair))))
        return Estimates(estimates=tuple(found), kind="comparisons", title="").simultaneous()

    for pair in family(contrasts, outcome="unbounded") or ():
        ends = pair.limits()
        if ends is not None and None not in ends:
            assert ends[0] <= pair.value <= ends[1]
            assert 0 <= pair.p_value(0.0) <= 1
    for pair in family(np.sign(contrasts), outcome="bounded", bounds=(-1.0, 1.0)):
        check(pair, -1, 1, census)


@settings(max_examples=sized(8, 200), deadline=None)
@given(st.lists(st.sampled_from([0.0, 1.0, None, float("nan"), float("inf"), "cat"]), min_size=8, max_size=8))
def test_any_labels_give_a_table_or_one_clear_error(values):
    population = stratal.Population.from_arrays(
        proxy=np.linspace(0.1, 0.9, 30), groups={"answer": ["0", "1", "cat"] * 10}, predicted="answer"
    )
    sample = stratal.designs.SimpleRandom(budget=8).draw(population, seed=1)
    labels = dict(zip(sample.ids.tolist(), values, strict=True))

    for call in (
        lambda: stratal.estimate(sample, labels, estimand=ClassReport()),
        lambda: stratal.estimate(sample, labels, estimand=["auc:1", "average_precision:1"]),
        lambda: stratal.estimate(sample, labels, by="answer"),
        lambda: stratal.compare(sample, {"a": labels, "b": [1, 0] * 4}),
    ):
        try:
            with np.errstate(all="raise", under="ignore"):
                table = call()
        except (InputError, stratal.StratalWarning):
            continue
        for row in table:
            ends = row.limits()
            assert ends is None or None not in ends
