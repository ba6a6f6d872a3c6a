"""A comparison as a leaderboard: means with intervals, differences to the best, ranks left open."""

from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.report.estimates import leaderboard_table

LONG_NAME = "gpt-large-with-a-very-long-name-2026-01-31-instruct-and-more"


@pytest.fixture(scope="module")
def table():
    generator = np.random.default_rng(3)
    population = stratal.Population.from_arrays(proxy=generator.beta(3, 1, 5000))
    sample = stratal.plan(population, 300).draw(seed=1)
    rates = {"small": 0.7, LONG_NAME: 0.9, "twin": 0.71}
    outcomes = {name: (generator.random(300) < rate).astype(float) for name, rate in rates.items()}
    return sample, outcomes, stratal.compare(sample, outcomes)


def test_the_rows_are_the_models_own_estimates_from_the_best(table):
    sample, outcomes, compared = table
    rows = compared.leaderboard()

    assert rows[0]["model"] == LONG_NAME
    assert [row["mean"] for row in rows] == sorted((row["mean"] for row in rows), reverse=True)
    for row in rows:
        own = stratal.estimate(sample, outcomes[row["model"]], estimator="horvitz-thompson")
        interval = own.confidence_interval(0.95)
        assert row["mean"] == pytest.approx(own.value, abs=1e-12)
        assert row["confidence_interval"] == pytest.approx([interval.low, interval.high], abs=1e-12)


def test_differences_to_the_best_are_those_of_the_pairs(table):
    _, _, compared = table
    best, *others = compared.leaderboard()

    assert best["to_best"] is None
    for row in others:
        both = {row["model"], best["model"]}
        (pair,) = [pair for pair in compared if set(pair.label.values()) == both]
        sign = 1 if pair.label["a"] == row["model"] else -1
        assert row["to_best"] == sign * pair.value
        assert sorted(map(abs, row["to_best_interval"])) == sorted(map(abs, pair.confidence_interval()))
        assert row["to_best_interval"][0] < row["to_best"] < row["to_best_interval"][1] < 0


def test_ranks_are_a_band_where_two_models_cannot_be_told_apart(table):
    _, _, compared = table
    ranks = {row["model"]: row["rank"] for row in compared.leaderboard()}

    assert ranks == {LONG_NAME: [1, 1], "small": [2, 3], "twin": [2, 3]}


def test_text_has_bars_and_whole_names(table):
    _, _, compared = table
    text = str(compared)

    assert text.startswith("Leaderboard")
    assert LONG_NAME in text
    assert text.count("●") == 3
    assert compared.to_dict()["leaderboard"][0]["model"] == LONG_NAME


def test_bars_stand_where_their_intervals_lie():
    rows = [
        {"rank": [1, 1], "model": "a", "mean": 0.9, "confidence_interval": [0.8, 1.0], "to_best": None,
         "to_best_interval": None},
        {"rank": [2, 2], "model": "b", "mean": 0.1, "confidence_interval": [0.0, 0.2], "to_best": -0.8,
         "to_best_interval": [-0.9, -0.7]},
    ]  # fmt: skip
    first, second = (row[4] for row in leaderboard_table(rows, 0.95, is_share=True).cells())

    assert len(first) == len(second)
    assert first.endswith("┤")
    assert second.startswith("├")
    assert second.index("┤") < first.index("├")


def test_against_one_reference_no_rank_is_claimed(table):
    sample, outcomes, _ = table
    rows = stratal.compare(sample, outcomes, reference="small").leaderboard()

    assert [row["rank"] for row in rows] == [None, None, None]
