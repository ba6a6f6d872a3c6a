"""Coverage of metrics planned with wrong scores, and of Matthews' correlation where strata mix answers.

`benchmarks/wrong_scores.py` has all cells; these are the worst of what was before, and the worst of now.
"""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.wrong_scores import KINDS, METRICS, Cell, limits, measured
from tests.tiers import cells, sized

from stratal.designs import StratifiedWeighting
from stratal.designs.stratified import stratified_factors
from stratal.estimation.estimate import correlation_from
from stratal.estimation.mover import directions, limits_on_ellipsoid
from stratal.metrics.class_functions import metric_function, two_class_metric
from stratal.metrics.confusion import Confusion

DRAWS = sized(60, 400)
LEAST = 0.94 - 3.5 * np.sqrt(0.94 * 0.06 / DRAWS)


@pytest.mark.parametrize("rounds", cells([1, 2], fast=(2,)))
@pytest.mark.parametrize("kind", cells(KINDS, fast=("inflated", "inverted", "smoothed")))
def test_wrong_scores_make_no_interval_wrong(kind, rounds):
    """Recall covered .10 to .65 with most of these, and .193 with inflated scores at 100 labels."""
    for plan in ("f1", "recall"):
        cell = Cell(kind=kind, rate=0.01, labels=100, rounds=rounds, plan=plan)
        found = measured(cell, DRAWS, seed=3)["metrics"]

        for name in METRICS:
            assert found[name]["coverage"] > LEAST, f"{plan}: {name} covers {found[name]['coverage']}"


def test_before_the_plans_word_was_taken_and_was_wrong():
    found = measured(Cell(kind="inverted", rate=0.01, labels=100, rounds=1, plan="recall"), DRAWS, seed=3)

    assert found["metrics"]["recall"]["before"] < 0.7
    assert found["metrics"]["recall"]["coverage"] > LEAST


def test_few_answers_in_a_large_population_do_not_lose_the_specificity():
    """Limits on whole units of 40 answers: .89 without the half unit that functions of shares allow."""
    cell = Cell(kind="calibrated", rate=0.002, labels=300, rounds=2, plan="f1")
    assert measured(cell, DRAWS, seed=5)["metrics"]["specificity"]["coverage"] > LEAST


@pytest.mark.parametrize("labels", cells([100, 1000], fast=(100,)))
def test_precision_of_few_labels_keeps_its_level(labels):
    """Calibrated scores, 1 % and 3 %: .931 was the worst where half of the flagged are labelled."""
    for rate in (0.01, 0.03):
        cell = Cell(kind="calibrated", rate=rate, labels=labels, rounds=1, plan="f1")
        assert measured(cell, DRAWS, seed=6)["metrics"]["precision"]["coverage"] > LEAST


MATTHEWS = two_class_metric(metric_function("mcc", None, 2), 2)


def cells_of(positive, answered, correlation):
    """Return the shares of hits, misses, false alarms and the rest."""
    spread = np.sqrt(positive * (1 - positive) * answered * (1 - answered))
    hits = positive * answered + correlation * spread
    return np.array([hits, positive - hits, answered - hits, 1 - positive - answered + hits])


def matthews_coverage(strata, sizes, counts, draws, rng):
    """Return the coverage of the library's rule over draws from strata of given cells (H, 4)."""
    population = np.stack([rng.multinomial(size, each) for size, each in zip(sizes, strata, strict=True)])
    whole = population.sum(axis=0) / sizes.sum()
    truth = float(MATTHEWS(whole[0], whole[1], whole[0] + whole[2]))
    seen = np.stack(
        [rng.multivariate_hypergeometric(each, n, draws) for each, n in zip(population, counts, strict=True)],
        axis=1,
    )
    found = matthews_ends(seen, counts, sizes)
    return np.mean([not np.isfinite(value) or low <= truth <= high for value, low, high in found])


def matthews_ends(seen, counts, sizes):
    """Return value and ends of each draw from cells that were seen (draws, H, 4)."""
    spread = np.broadcast_to(counts, seen.shape[:2])
    ends = [limits(seen[:, :, cell], spread, sizes, False) for cell in range(4)]
    factors, found = stratified_factors(counts, sizes), []
    for draw in range(len(seen)):
        centre = np.array([each[0][draw] for each in ends])
        largest = int(np.argmax(centre))
        others = [cell for cell in range(4) if cell != largest]

        def function(shares, largest=largest):
            rest = np.maximum(1 - shares.sum(axis=0), 0)
            every = np.insert(shares, largest, rest, axis=0) / (shares.sum(axis=0) + rest)
            return MATTHEWS(every[0], every[1], every[0] + every[2])

        low, high = (np.array([ends[cell][side][draw] for cell in others]) for side in (1, 2))
        shares = (seen[draw][:, others].T + centre[others][:, None]) / (counts + 1.0)
        covariance = np.diag(shares @ factors) - (shares * factors) @ shares.T
        around = directions(correlation_from(covariance))
        value = float(function(centre[others]))
        least, most = limits_on_ellipsoid(function, centre[others], low, high, around)
        found.append((value, float(least), float(most)))
    return found


@pytest.mark.parametrize(
    ("positive", "answered", "correlation", "labels"),
    [(0.05, 0.05, 0.0, 200), (0.05, 0.05, 0.5, 200), (0.02, 0.05, 0.2, 600), (0.5, 0.5, 0.0, 100)],
)
@pytest.mark.parametrize("mixed", [False, True])
def test_matthews_correlation_covers_where_strata_mix_answers(positive, answered, correlation, labels, mixed):
    """5 % of either and no hit drawn covered .44 before."""
    times = np.array([0.4, 1.2, 4.8]) if mixed else np.ones(1)
    strata = np.array([cells_of(min(positive * t, 0.7), min(answered * t, 0.7), correlation) for t in times])
    sizes = np.array([14_000, 4_000, 2_000]) if mixed else np.array([20_000])
    counts = np.array([labels * 4 // 10, labels * 3 // 10, labels * 3 // 10]) if mixed else np.array([labels])
    rng = np.random.default_rng(8)

    assert matthews_coverage(strata, sizes, counts, DRAWS, rng) > LEAST


def balanced_accuracies(draws):
    """Twenty classes, the rare ones hard, 200 labels of a simple random sample: values and intervals."""
    rng = np.random.default_rng(9)
    shares = 1 / np.arange(1, 21) ** 1.6
    shares /= shares.sum()
    true = rng.choice(20, 20_000, p=shares)
    right = rng.random(20_000) < np.linspace(0.95, 0.2, 20)[true]
    predicted = np.where(right, true, (true + 1) % 20)
    truth = np.mean([np.mean(right[true == k]) for k in range(20)])
    weighting = StratifiedWeighting(stratum=np.zeros(200, dtype=int), sizes=np.array([20_000]))
    found = []
    for _ in range(draws):
        rows = rng.choice(20_000, 200, replace=False)
        each = Confusion(true=true[rows], predicted=predicted[rows], n_classes=20, weighting=weighting)
        hits, labels = (np.bincount(true[rows], part, minlength=20) for part in (right[rows], None))
        seen = float(np.mean((hits / np.maximum(labels, 1))[labels > 0]))
        quantity = each.metric("balanced_accuracy")
        found.append((quantity.value, *quantity.confidence_interval(), seen))
    return truth, np.array(found)


def test_balanced_accuracy_of_twenty_classes_covers_and_is_less_biased():
    """The mean over the classes that were seen is .039 too high; what is left of that is a quarter."""
    draws = sized(150, 300)
    truth, found = balanced_accuracies(draws)
    defined = np.isfinite(found[:, 0])
    errors = found[defined][:, [0, 3]] - truth
    (now, before), noise = errors.mean(axis=0), errors.std(axis=0) / np.sqrt(len(errors))

    assert defined.mean() > 0.7
    assert before == pytest.approx(0.039, abs=3 * noise[1])
    assert before > 4 * noise[1]
    assert abs(now) < 0.25 * 0.039 + 2 * noise[0] < 0.03
    held = (found[:, 1] <= truth) & (truth <= found[:, 2])
    assert np.mean(held) > 0.94 - 3.5 * np.sqrt(0.94 * 0.06 / draws)
    assert np.mean(held[defined]) > 0.94 - 3.5 * np.sqrt(0.94 * 0.06 / len(errors))


def test_the_simulated_matthews_correlation_is_that_of_the_library():
    """`matthews_coverage` takes many draws at once by the library's parts; here it is the estimate itself."""
    for hits, misses, alarms in ((0, 10, 10), (7, 3, 5), (2, 8, 1)):
        cells = np.array([hits, misses, alarms, 200 - hits - misses - alarms])
        true = np.repeat([1, 1, 0, 0], cells)
        predicted = np.repeat([1, 0, 1, 0], cells)
        weighting = StratifiedWeighting(stratum=np.zeros(200, dtype=int), sizes=np.array([20_000]))
        found = Confusion(true=true, predicted=predicted, n_classes=2, weighting=weighting).metric("mcc")
        expected = matthews_ends(cells[None, None, :], np.array([200]), np.array([20_000]))
        assert tuple(found.confidence_interval()) == pytest.approx(expected[0][1:], abs=2e-3)
