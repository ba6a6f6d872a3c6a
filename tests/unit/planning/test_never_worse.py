"""What a round that goes where labels say never plans: what is expected to be wider or less precise."""

import numpy as np
import pytest
from tests.tiers import cells, sized

import stratal
from stratal.estimands import F1
from stratal.planning.interim_analysis import InterimAnalysis

KINDS = cells(["crowded", "inflated", "calibrated", "deflated", "inverted", "useless"], fast=("crowded",))


def pool(kind, size=8_000):
    """Return truth and score (N,) of a generated population with a rare class."""
    rng = np.random.default_rng(4)
    odds = rng.normal(-4.5, 2.2, size)
    truth = rng.random(size) < 1 / (1 + np.exp(-odds))
    steep, offset = {
        "crowded": (3, -2),
        "inflated": (1, 3.4),
        "calibrated": (1, 0),
        "deflated": (0.6, 0),
        "inverted": (-1, -3),
        "useless": (0, 0),
    }[kind]
    score = 1 / (1 + np.exp(-(steep * odds + offset)))
    return truth, rng.random(size) if kind == "useless" else score


def planned(kind, what):
    truth, score = pool(kind)
    answers = {"answer": np.where(score > 0.5, "m", "o")}
    population = stratal.Population.from_arrays(proxy={"score": score}, groups=answers, predicted="answer")
    if what == "f1":
        return population, F1("m", probability="score"), np.where(truth, "m", "o")
    return population, None, truth * 1.0


def f1_of(kind):
    truth, score = pool(kind)
    return 2 * np.sum(truth & (score > 0.5)) / (truth.sum() + np.sum(score > 0.5))


@pytest.mark.filterwarnings("ignore::stratal.errors.StratalWarning")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", ["mean", "f1"])
def test_no_round_is_expected_to_be_wider_or_less_precise_than_one_in_the_first_proportions(kind, what):
    population, estimand, labels = planned(kind, what)
    for seed in range(sized(2, 20)):
        pilot = stratal.plan(population, 150, estimand=estimand).draw(seed)
        seen = InterimAnalysis(pilot, labels[pilot.ids])
        chosen, first = seen.allocation(300), seen._mixed_allocation(300, 1.0)
        assert np.all(chosen >= pilot.n_h)
        assert chosen.sum() == 300
        errors = [
            np.sum(seen.strata.sizes**2 * seen.label_deviations[0] ** 2 / np.maximum(n_h, 1))
            for n_h in (chosen, first)
        ]
        assert errors[0] <= errors[1] * 1.03  # a finite population's correction apart
        widths = [
            seen._relative_widths(n_h[None], label_based=seen.follows_labels(n_h))[0]
            for n_h in (chosen, first)
        ]
        assert widths[0] <= widths[1] * (1 + 1e-9)


@pytest.mark.filterwarnings("ignore::stratal.errors.StratalWarning")
def test_a_round_in_the_first_proportions_is_none_that_follows_labels():
    population, _, labels = planned("crowded", "mean")
    pilot = stratal.plan(population, 150).draw(1)
    seen = InterimAnalysis(pilot, labels[pilot.ids])
    first = seen._mixed_allocation(300, 1.0)
    assert not seen.follows_labels(first)
    assert seen.follows_labels(seen._mixed_allocation(300, 0.0))
    known = dict(zip(pilot.ids.tolist(), labels[pilot.ids].tolist(), strict=True))
    larger = stratal.next_round(pilot, known, additional=150)
    assert larger.weighting().has_adaptive_allocation is seen.follows_labels(larger.n_h)
    further = stratal.next_round(pilot, known, half_width=0.01)
    assert further.weighting().has_adaptive_allocation


@pytest.mark.filterwarnings("ignore::stratal.errors.StratalWarning")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", ["mean", "f1"])
def test_two_rounds_are_as_narrow_as_one_and_hold(kind, what):
    population, estimand, labels = planned(kind, what)
    runs, truth = sized(20, 400), labels.mean() if what == "mean" else f1_of(kind)
    found = np.zeros((2, runs, 3))
    one, half = (stratal.plan(population, number, estimand=estimand) for number in (300, 150))
    for seed in range(runs):
        pilot = half.draw(seed)
        two = stratal.next_round(pilot, labels[pilot.ids], additional=150)
        for way, sample in enumerate((one.draw(seed), two)):
            made = stratal.estimate(sample, labels[sample.ids])
            low, high = made.confidence_interval()
            found[way, seed] = (made.value - truth) ** 2, high - low, low <= truth <= high
    error, width, held = found.mean(axis=1).T
    assert width[1] < 1.05 * width[0]
    assert error[1] < (1.03 + 4 / np.sqrt(runs)) * error[0]
    assert held[1] > 0.95 - 3.5 * np.sqrt(0.95 * 0.05 / runs)
