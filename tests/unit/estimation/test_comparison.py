from __future__ import annotations

import json

import numpy as np
import pytest

import stratal
from stratal.errors import InputError, LabelError, StratalWarning
from stratal.estimation.comparison import ranks
from stratal.estimation.paired import critical_values, paired_differences, rank_sets
from stratal.weighting import StratifiedWeighting


@pytest.fixture
def sample():
    rng = np.random.default_rng(1)
    population = stratal.Population.from_arrays(
        proxy={"one": rng.uniform(size=2000), "two": rng.uniform(size=2000)}
    )
    return stratal.SimpleRandom(budget=120).draw(population, seed=3)


def outcomes(sample, rates, seed=2):
    rng = np.random.default_rng(seed)
    return {f"m{j}": (rng.random(sample.size) < rate).astype(float) for j, rate in enumerate(rates)}


def test_two_models_are_a_paired_t_test(sample):
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(4)
    a, b = rng.normal(1, 1, sample.size), rng.normal(0.8, 1, sample.size)
    correction = np.sqrt(1 - sample.size / 2000)

    row = stratal.compare(sample, {"a": a, "b": b}).rows[0]

    test = stats.ttest_rel(a, b)
    assert row["difference"] == pytest.approx(np.mean(a - b))
    assert row["standard_error"] == pytest.approx(stats.sem(a - b) * correction)
    assert row["p_value"] == pytest.approx(2 * stats.t.sf(abs(test.statistic) / correction, 119), rel=1e-6)


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_p_values_agree_with_intervals(sample, alternative):
    found = outcomes(sample, [0.8, 0.7, 0.6, 0.75])
    for simultaneous in (True, False):
        for level in (0.8, 0.95, 0.99):
            table = stratal.compare(
                sample, found, alternative=alternative, simultaneous=simultaneous, confidence_level=level
            )
            for row in table:
                low, high = row["confidence_interval"]
                excluded = not (low <= 0 <= high)
                assert excluded == (row["p_value"] < 1 - level)


def test_one_sided_intervals_are_one_sided(sample):
    """ppi-python's default dropped the alternative and returned two-sided intervals."""
    found = outcomes(sample, [0.8, 0.6])
    rows = {
        alternative: stratal.compare(sample, found, alternative=alternative).rows[0]
        for alternative in ("two-sided", "less", "greater")
    }

    assert rows["greater"]["confidence_interval"][1] == 1.0
    assert rows["less"]["confidence_interval"][0] == -1.0
    assert rows["greater"]["confidence_interval"][0] > rows["two-sided"]["confidence_interval"][0]
    assert rows["two-sided"]["p_value"] == pytest.approx(2 * rows["greater"]["p_value"], rel=1e-6)


def test_models_that_never_differ_still_have_an_interval(sample):
    right = np.ones(sample.size)
    row = stratal.compare(sample, {"a": right, "b": right}).rows[0]
    low, high = row["confidence_interval"]

    assert row["difference"] == 0
    assert row["standard_error"] == 0
    assert -1 < low < 0 < high < 1
    assert row["p_value"] == 1
    assert row["win_rate"]["estimate"] == 0.5
    assert row["win_rate"]["ties"] == 1


def test_unbounded_outcomes_that_never_differ_are_refused_an_interval(sample):
    z = np.linspace(2, 5, sample.size)
    table = stratal.compare(sample, {"a": z, "b": z})

    assert table.rows[0]["confidence_interval"] is None
    assert "bounds" in table.notes[0]


def test_simultaneous_intervals_are_wider_and_reproducible(sample):
    found = outcomes(sample, [0.8, 0.7, 0.6])
    together, again, alone = (
        stratal.compare(sample, found, simultaneous=flag) for flag in (True, True, False)
    )

    assert together.rows == again.rows
    for wide, narrow in zip(together, alone, strict=True):
        width = np.diff(wide["confidence_interval"])
        assert width > np.diff(narrow["confidence_interval"])
        assert wide["p_value"] >= narrow["p_value"]
    bonferroni = 1 - 0.05 / 3
    widest = stratal.compare(sample, found, simultaneous=False, confidence_level=bonferroni)
    for wide, narrow in zip(widest, together, strict=True):
        assert np.diff(wide["confidence_interval"]) > 0.98 * np.diff(narrow["confidence_interval"])


def test_simultaneous_coverage():
    rng = np.random.default_rng(5)
    draws, inside = 150, 0
    for _ in range(draws):
        z = rng.normal(size=(60, 3)) * [1, 2, 1] + rng.normal(size=(60, 1))
        weighting = StratifiedWeighting(stratum=np.zeros(60, np.int64), sizes=np.array([10**6]))
        pairs = np.column_stack([z[:, 0] - z[:, 1], z[:, 0] - z[:, 2], z[:, 1] - z[:, 2]])
        found = paired_differences(pairs, weighting)
        low, high = found.intervals(critical_values(found, 0.9)[0])
        inside += bool(np.all((low <= 0) & (high >= 0)))

    error = np.sqrt(0.9 * 0.1 / draws)
    assert abs(inside / draws - 0.9) < 3.5 * error


def test_rank_sets_follow_the_intervals(sample):
    found = outcomes(sample, [0.95, 0.5, 0.52])
    table = stratal.compare(sample, found)

    assert ranks(table)["m0"] == [1, 1]
    assert ranks(table)["m1"][1] == 3
    assert any("rank" in note for note in table.notes)
    assert rank_sets(np.array([-1.0]), np.array([1.0]), [(0, 1)], 2) == [[1, 2], [1, 2]]


def test_a_reference_model_is_compared_with_all_others(sample):
    found = outcomes(sample, [0.8, 0.7, 0.6])
    table = stratal.compare(sample, found, reference="m1")

    assert [(row["a"], row["b"]) for row in table] == [("m0", "m1"), ("m2", "m1")]
    with pytest.raises(InputError, match="all pairs"):
        ranks(table)


def test_proxies_of_the_models_reduce_the_variance():
    rng = np.random.default_rng(6)
    size = 3000
    p, q = rng.uniform(size=size), rng.uniform(size=size)
    population = stratal.Population.from_arrays(proxy={"p": p, "q": q})
    sample = stratal.SimpleRandom(budget=200).draw(population, seed=1)
    z = {"a": p + rng.normal(0, 0.1, size), "b": q + rng.normal(0, 0.1, size)}
    z = {name: values[sample.ids] for name, values in z.items()}

    plain = stratal.compare(sample, z).rows[0]
    better = stratal.compare(sample, z, proxies={"a": "p", "b": "q"}).rows[0]
    assert better["standard_error"] < 0.6 * plain["standard_error"]


def test_labels_are_joined_by_id_and_incomplete_units_left_out(sample):
    found = outcomes(sample, [0.8, 0.6])
    by_id = {name: dict(zip(sample.ids.tolist(), z, strict=True)) for name, z in found.items()}
    assert stratal.compare(sample, found).rows == stratal.compare(sample, by_id).rows

    del by_id["m0"][int(sample.ids[0])]
    table = stratal.compare(sample, by_id)
    assert table.rows[0]["n"] == sample.size - 1
    assert "1 of 120 drawn units lack" in table.notes[-1]


def test_ratio_and_win_rate(sample):
    a, b = outcomes(sample, [0.9, 0.5]).values()
    row = stratal.compare(sample, {"a": a, "b": b}).rows[0]

    assert row["ratio"]["estimate"] == pytest.approx(a.mean() / b.mean())
    low, high = row["ratio"]["confidence_interval"]
    assert 1 < low < row["ratio"]["estimate"] < high
    assert row["win_rate"]["estimate"] == pytest.approx(np.mean((a > b) + 0.5 * (a == b)))


def test_refusals(sample):
    found = outcomes(sample, [0.8, 0.6])
    with pytest.raises(InputError, match="needs two models"):
        stratal.compare(sample, {"m0": found["m0"]})
    with pytest.raises(InputError, match="no such model: 'm9'"):
        stratal.compare(sample, found, reference="m9")
    with pytest.raises(InputError, match="no such proxy"):
        stratal.compare(sample, found, proxies={"m0": "three"})
    with pytest.raises(InputError, match="no such alternative"):
        stratal.compare(sample, found, alternative="bigger")
    with pytest.raises(LabelError, match="every model"):
        stratal.compare(sample, {"a": {int(sample.ids[0]): None}, "b": {}})


def test_one_label_is_enough_for_bounded_outcomes_and_says_so_for_others(sample):
    first = int(sample.ids[0])
    with pytest.warns(StratalWarning):
        bounded = stratal.compare(sample, {"a": {first: 1}, "b": {first: 0}}).rows[0]
    with pytest.warns(StratalWarning):
        other = stratal.compare(sample, {"a": {first: 3.7}, "b": {first: 0.2}}).rows[0]

    low, high = bounded["confidence_interval"]
    assert -1 <= low < high <= 1
    assert other["standard_error"] is None
    assert other["confidence_interval"] is None
    json.dumps([bounded, other], allow_nan=False)


def test_graded_outcomes_have_the_bounds_that_the_sample_knows():
    """Models that never differ on the labels may still differ elsewhere, by no more than the bounds allow."""
    population = stratal.Population.from_arrays(proxy=[3.0] * 400, bounds=(1.0, 5.0))
    sample = stratal.SimpleRandom(budget=20).draw(population, seed=1)
    ratings = [1.0, 2.5, 3.0, 4.0] * 5
    row = stratal.compare(sample, {"new": ratings, "old": ratings}).rows[0]
    told = stratal.compare(sample, {"new": ratings, "old": ratings}, bounds=(1.0, 5.0)).rows[0]

    low, high = row["confidence_interval"]
    assert -4.0 < low < 0.0 < high < 4.0
    assert row["confidence_interval"] == told["confidence_interval"]
    undeclared = stratal.compare(sample.with_outcome("unbounded"), {"new": ratings, "old": ratings}).rows[0]
    assert undeclared["confidence_interval"] is None


@pytest.mark.parametrize("alternative", ["two-sided", "less"])
def test_a_difference_beyond_all_doubt_has_the_smallest_p_value_of_all(sample, alternative):
    models = outcomes(sample, (0.05, 0.5, 0.6, 0.98))

    rows = stratal.compare(sample, models, alternative=alternative).rows

    p = {(row["a"], row["b"]): row["p_value"] for row in rows}
    assert p["m0", "m3"] == min(p.values()) < 1e-4
