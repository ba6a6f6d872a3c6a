"""Labels for a difference: published numbers, the chance that it shows, and the command."""

import json

import numpy as np
import pytest
from statsmodels.stats.power import NormalIndPower
from tests.e2e.pasted import write
from tests.tiers import sized

import stratal
from stratal.designs import StratifiedWeighting
from stratal.metrics.confusion import Confusion
from stratal.planning.power import plan_to_detect, width_to_detect


def labels(found, word):
    (row,) = [row for row in found["detections"] if word in row["comparison"]]
    return row["labels"]


def test_paired_labels_are_connors():
    """Connor (1987), by hand for q = .1, D = .02: (1.95996 √.1 + .84162 √.0996)² / .0004."""
    found = plan_to_detect(0.02, rate=0.8, equal_answers=0.9)
    by_hand = (1.959964 * np.sqrt(0.1) + 0.841621 * np.sqrt(0.1 - 0.0004)) ** 2 / 0.0004

    assert labels(found, "both models") == np.ceil(by_hand)
    assert labels(found, "only where answers differ") == np.ceil(0.1 * by_hand)


def test_labels_of_two_samples_are_those_of_a_test_of_two_means():
    found = plan_to_detect(0.1, rate=0.8)
    deviation = np.sqrt((0.8 * 0.2 + 0.7 * 0.3) / 2)
    each = NormalIndPower().solve_power(0.1 / deviation, power=0.8, alpha=0.05)

    assert labels(found, "on its own items") == pytest.approx(2 * each, abs=2)


def test_the_variance_of_kappa_is_the_linearised_one():
    found = plan_to_detect(0.1, rate=0.8, equal_answers=0.9)
    true, judged = (np.repeat(column, [150, 10, 10, 30]) for column in ([1, 1, 0, 0], [1, 0, 1, 0]))
    weighting = StratifiedWeighting(stratum=np.zeros(200, dtype=int), sizes=np.array([10**9]))
    kappa = Confusion(true=true, predicted=judged, n_classes=2, weighting=weighting).metric("kappa")
    variance = kappa.standard_error**2 * 199

    assert f"kappa of {kappa.value:.2f}" in found["detections"][-1]["comparison"]
    assert labels(found, "kappa") == np.ceil(((1.959964 + 0.841621) / 0.1) ** 2 * variance)


def test_the_difference_shows_as_often_as_was_asked():
    """Pairs as the plan has them: McNemar's test with a normal quantile at the planned number of labels."""
    n, draws = labels(plan_to_detect(0.05, rate=0.8, equal_answers=0.8), "both models"), sized(2_000, 40_000)
    cells = np.random.default_rng(1).multinomial(n, [0.125, 0.075, 0.8], size=draws)
    shown = (cells[:, 0] - cells[:, 1]) / np.sqrt(cells[:, 0] + cells[:, 1]) > 1.959964

    assert np.mean(shown) == pytest.approx(0.8, abs=0.01 + 4 * np.sqrt(0.16 / draws))


def test_few_items_need_fewer_labels_and_never_more_than_all():
    many, few = (plan_to_detect(0.02, rate=0.8, equal_answers=0.9, population_size=n) for n in (None, 500))

    assert labels(few, "both models") < 500 < labels(many, "both models")
    assert labels(few, "only where") <= 50


def test_half_width_and_power_belong_together():
    z = width_to_detect(0.1, 0.5, 0.95)
    assert z == pytest.approx(0.1)
    assert width_to_detect(0.1, 0.9) < width_to_detect(0.1, 0.8) < 0.1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"detect": 2.0}, "detect must lie between 0 and 1 .*For 2% write 0.02"),
        ({"detect": 0.2, "equal_answers": 0.9}, "two models cannot differ by this amount"),
        ({"detect": 0.6, "rate": 0.5}, "two models cannot differ by this amount"),
        ({"detect": 0.1, "power": 80}, "power must lie"),
    ],
)
def test_what_cannot_be_is_refused(options, said):
    with pytest.raises(stratal.InputError, match=said):
        plan_to_detect(**options)


def test_the_command_plans_without_a_file_and_with_one(tmp_path, monkeypatch, run_command):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    a = rng.choice(["x", "y"], 2_000)
    b = np.where(rng.random(2_000) < 0.9, a, np.where(a == "x", "y", "x"))
    write("two.csv", ["id", "a", "b"], [*map(list, zip(range(2_000), a, b, strict=True))])
    words = ["plan", "--detect", ".02", "--rate", ".8", "--equal-answers", ".9"]
    found = json.loads(run_command(*words, "--json").stdout)
    page = run_command(*words).stdout
    of_file = ["plan", "two.csv", "--estimand", "difference:a,b"]
    plan = run_command(*of_file, "--detect", ".02")
    same = run_command(*of_file, "--half-width", "0.01399")

    assert labels(found, "both models") == 1960
    assert "both models on the same items" in page
    assert len(page.splitlines()) <= 15
    assert (
        "A difference of 2 points is detected with 80% power if the interval is 2.8 points "
        "wide." in plan.stdout
    )
    assert plan.stdout.split("Label ")[1] == same.stdout.split("Label ")[1]
    for wrong in (["--rate", ".8"], ["--equal-answers", ".9"]):
        assert "would have no effect" in run_command(*of_file, "--detect", ".02", *wrong).message
    assert "--detect" in run_command(*of_file, "--detect", ".02", "--budget", "5").message
    assert "--power" in run_command("plan", "two.csv", "--budget", "20", "--power", ".9").message
