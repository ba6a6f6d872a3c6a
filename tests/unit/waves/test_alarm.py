"""The alarm: e-values whose expectation is at most 1, in enumerated populations and in long series."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from tests.tiers import sized

import stratal
from stratal.errors import InputError
from stratal.waves.alarm import (
    Prediction,
    WaveOutcomes,
    fall_process,
    level_process,
    predict_outcomes,
    wave_log_e_values,
)
from stratal.waves.e_process import change_point_weight, log_e_process, smoothed_rates


def wave_of(outcomes, stratum=None, shares=(1.0,), name="w", scores=None, score_means=None, score_range=None):
    outcomes = np.asarray(outcomes, dtype=float)
    stratum = np.zeros(len(outcomes), dtype=int) if stratum is None else np.asarray(stratum)
    shares = np.asarray(shares, dtype=float)
    counts = np.bincount(stratum, minlength=len(shares))
    return WaveOutcomes(
        name=name,
        outcomes=outcomes,
        weights=(shares / counts)[stratum],
        stratum=stratum,
        shares=shares,
        draw=np.arange(len(outcomes)),
        scores=scores,
        score_means=score_means,
        score_range=score_range,
        exact=True,
    )


@pytest.mark.parametrize("seed", range(6))
def test_the_expected_e_value_is_at_most_one_over_all_stratified_samples(seed):
    rng = np.random.default_rng(seed)
    sizes, counts = (5, 4), (2, int(rng.integers(1, 3)))
    values = [rng.random(size) if seed % 2 else (rng.random(size) < 0.7).astype(float) for size in sizes]
    shares = np.array(sizes) / sum(sizes)
    level = np.concatenate(values).mean()
    prediction = Prediction(
        rates=rng.uniform(0.05, 0.95, 2), slope=0.0, variance_ratio=float(rng.uniform(0.1, 1))
    )
    e_values = []
    draws = [combinations(range(size), count) for size, count in zip(sizes, counts, strict=True)]
    for first, second in product(*map(list, draws)):
        outcomes = np.concatenate([values[0][list(first)], values[1][list(second)]])
        drawn = wave_of(outcomes, [0] * counts[0] + [1] * counts[1], shares)
        e_values.append(np.exp(wave_log_e_values(drawn, prediction, np.array([level])))[0])

    assert np.all(np.mean(e_values, axis=0) <= 1 + 1e-12)
    assert np.all(np.array(e_values) > 0)
    assert np.mean(e_values) > 0.6  # it is a bet, not a constant far below 1


def test_a_slope_on_the_score_keeps_the_expectation_and_raises_the_growth():
    rng = np.random.default_rng(3)
    score = rng.random(8)
    outcome = (score > 0.4).astype(float)
    slope = Prediction(rates=np.array([0.6]), slope=0.9, variance_ratio=0.3)
    flat = Prediction(rates=np.array([0.6]), slope=0.0, variance_ratio=1.0)

    def mean_and_growth(prediction, level):
        logs = []
        for drawn in combinations(range(8), 4):
            units = list(drawn)
            wave = wave_of(
                outcome[units],
                scores=score[units],
                score_means=np.array([score.mean()]),
                score_range=(0.0, score.mean(), 1.0),
            )
            logs.append(wave_log_e_values(wave, prediction, np.array([level]))[0])
        return np.exp(logs).mean(axis=0), np.mean(logs, axis=0)

    assert np.all(mean_and_growth(slope, outcome.mean())[0] <= 1 + 1e-12)
    better, worse = (mean_and_growth(p, outcome.mean() + 0.1)[1] for p in (slope, flat))
    assert np.all(better > worse)


def test_the_e_process_is_the_mixture_over_change_points():
    rng = np.random.default_rng(0)
    logs = rng.normal(0, 0.5, (7, 2))
    expected = []
    for t in range(1, 8):
        value = 1 - sum(change_point_weight(k) for k in range(1, t + 1))
        for k in range(1, t + 1):
            value += change_point_weight(k) * np.exp(logs[k - 1 : t].sum(axis=0)).mean()
        expected.append(value)

    assert np.exp(log_e_process(logs)) == pytest.approx(np.array(expected))
    late = sum(change_point_weight(k) for k in range(201, 200_001))
    assert late == pytest.approx(0.2, abs=3e-4)


def test_rates_are_predicted_from_earlier_waves_by_the_nearest_stratum():
    scores = np.array([0.1, 0.2, 0.8, 0.9])
    earlier = wave_of([0, 1, 1, 1], scores=scores, score_means=np.array([0.5]))
    means = np.array([0.15, 0.85])
    now = wave_of([1, 1], [0, 1], (0.5, 0.5), scores=np.array([0.0, 1.0]), score_means=means)
    prediction = predict_outcomes([earlier], now)

    assert prediction.rates == pytest.approx(
        smoothed_rates(np.array([1.0, 2.0]), np.array([2.0, 2.0]), np.array([0.75, 0.75]))
    )
    assert predict_outcomes([earlier], now).slope == 0


def test_labels_of_the_wave_do_not_change_its_prediction():
    earlier = wave_of([0, 1, 1, 1])
    one, other = (predict_outcomes([earlier], wave_of(z)) for z in ([1, 1, 1], [0, 0, 0]))
    assert one.rates == pytest.approx(other.rates)
    assert (one.slope, one.variance_ratio) == (other.slope, other.variance_ratio)


def test_false_alarms_stay_below_five_percent_and_a_jump_is_found():
    rng = np.random.default_rng(1)
    series, waves, n = sized(150, 600), 40, 50
    ever = [
        level_process([wave_of(rng.random(n) < 0.9) for _ in range(waves)], 0.9).max() >= 20
        for _ in range(series)
    ]
    assert np.mean(ever) <= 0.05

    rates = [0.95] * 10 + [0.8] * 15
    process = level_process([wave_of(rng.random(100) < rate) for rate in rates], 0.9)
    assert process[:10].max() < 1.5
    assert 10 <= np.flatnonzero(process >= 20)[0] <= 15


def test_a_fall_counts_the_error_of_the_reference():
    rng = np.random.default_rng(2)
    reference = [wave_of(rng.random(200) < 0.93) for _ in range(4)]
    fallen = [wave_of(rng.random(200) < 0.8) for _ in range(6)]
    steady = [wave_of(rng.random(200) < 0.92) for _ in range(6)]

    assert fall_process([*reference, *fallen], 4, 0.03).max() >= 20
    assert fall_process([*reference, *steady], 4, 0.03).max() < 2
    # Few labels in the reference: nothing is known to have fallen from.
    few = [wave_of(rng.random(5) < 0.93) for _ in range(1)]
    assert fall_process([*few, *fallen], 1, 0.03).max() < 20


def test_the_error_of_the_reference_does_not_cause_false_alarms():
    rng = np.random.default_rng(5)
    alarms = []
    for _ in range(sized(40, 300)):
        reference = [wave_of(rng.random(100) < 0.9)]
        later = [wave_of(rng.random(100) < 0.87) for _ in range(30)]
        alarms.append(fall_process([*reference, *later], 1, 0.03).max() >= 20)
    assert np.mean(alarms) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / len(alarms))


def drawn_wave(wave, rate, budget=100, seed=0):
    units = stratal.Population.from_arrays(ids=[f"w{wave}-{row}" for row in range(1000)])
    drawn = stratal.designs.SimpleRandom(budget=budget).draw(units, seed=7)
    right = np.random.default_rng((seed, wave)).random(drawn.size) < rate
    return drawn, right.astype(float)


@pytest.fixture(scope="module")
def falling():
    return [drawn_wave(wave, 0.94 if wave < 6 else 0.7) for wave in range(10)]


def test_the_verdict_is_in_the_first_line_and_in_json(falling):
    result = stratal.trend(falling, require=">=.9")
    alarm = result.to_dict()["alarms"][0]

    assert result.verdict == alarm["verdict"] == "ALARM"
    assert alarm["exact"]
    assert alarm["e_values"][alarm["waves"].index(alarm["wave"])] >= alarm["threshold"] == pytest.approx(20)
    assert str(result).startswith(f"Required value>=0.9: ALARM in {alarm['wave']} (")


def test_levels_that_must_not_be_exceeded_are_the_mirror_image(falling):
    errors = [(drawn, 1 - right) for drawn, right in falling]
    below = stratal.trend(falling, require=">=.9;fell<=.03").alarms
    above = stratal.trend(errors, require="<=.1;rose<=.03").alarms

    for one, other in zip(below, above, strict=True):
        assert one.e_values == pytest.approx(other.e_values)
        assert one.wave == other.wave
        assert one.threshold == pytest.approx(40)


def test_ratings_are_followed_on_their_scale(falling):
    ratings = [(drawn, 1 + 4 * right) for drawn, right in falling]
    result = stratal.trend(ratings, require=">=4.6", outcome="bounded", bounds=(1, 5))
    share = stratal.trend(falling, require=">=.9", outcome="bounded", bounds=(0, 1))

    assert result.alarms[0].e_values == pytest.approx(share.alarms[0].e_values)


def test_clusters_are_independent_draws_and_the_bound_is_marked_as_approximate():
    rng = np.random.default_rng(0)
    waves = []
    for wave in range(5):
        groups = {"document": [f"d{row // 5}" for row in range(1000)]}
        units = stratal.Population.from_arrays(ids=[f"w{wave}-{r}" for r in range(1000)], groups=groups)
        drawn = stratal.designs.ClusterSample(cluster="document", budget=20).draw(units, seed=7)
        level = {d: rng.random() < 0.9 for d in set(drawn.groups["document"].tolist())}
        waves.append((drawn, np.array([float(level[d]) for d in drawn.groups["document"].tolist()])))
    result = stratal.trend(waves, require=">=.9")

    assert not result.alarms[0].exact
    assert any("approximation" in note for note in result.notes)
    assert max(result.alarms[0].e_values) < 20


def test_requirements_that_no_alarm_follows_are_refused(falling):
    with pytest.raises(InputError, match="no wave has this group"):
        stratal.trend(falling[:2], require="value@de>=.9")
    for text in ("recall>=.9", "fell>=.03", "fell<=1", "fell@de<=.03"):
        with pytest.raises(InputError, match="cannot raise an alarm"):
            stratal.trend(falling[:2], require=text)
    with pytest.raises(InputError, match="never met"):
        stratal.trend(falling[:2], require=">=1.5")
    unbounded = [(drawn, np.arange(drawn.size) * 1.3 + wave) for wave, (drawn, _) in enumerate(falling[:2])]
    with pytest.raises(InputError, match="same bounds in every wave"):
        stratal.trend(unbounded, require=">=10")
    with pytest.raises(InputError, match="must be a number of waves"):
        stratal.trend(falling[:2], require="fell<=.03", reference=0)


def test_waves_of_the_reference_are_not_tested(falling):
    result = stratal.trend(falling[:3], require="fell<=.03")

    assert result.verdict == "UNDECIDED"
    assert not result.is_alarm
    assert str(result).startswith("Required fell<=0.03 since wave 1 to wave 3: UNDECIDED; no wave has been")
    both = stratal.trend(falling[:3], require="fell<=.03;>=.5")
    assert [alarm.verdict for alarm in both.alarms] == ["UNDECIDED", "NO ALARM"]
    assert both.verdict == "UNDECIDED"
    assert stratal.trend(falling[:5], require="fell<=.03").verdict == "NO ALARM"
    late = [*falling[:1], *falling[8:10]]
    assert stratal.trend(late, require="fell<=.03;>=.95").verdict == "ALARM"
    assert result.alarms[0].waves == ()
    assert any("part of the reference" in note for note in result.notes)


def panel_of(rates, seeds, ids=True, prefix="u"):
    """Return waves of the same items, drawn with these seeds."""
    waves = []
    for rate, seed in zip(rates, seeds, strict=True):
        names = {"ids": [f"{prefix}{row}" for row in range(400)]} if ids else {}
        units = stratal.Population.from_arrays(**names, proxy={"score": np.linspace(0.1, 0.9, 400)})
        drawn = stratal.designs.SimpleRandom(budget=50).draw(units, seed=seed)
        waves.append((drawn, (np.random.default_rng(seed).random(50) < rate).astype(float)))
    return waves


def test_a_panel_of_the_same_items_has_no_alarm():
    with pytest.raises(InputError, match="newly drawn items in each wave") as error:
        stratal.trend(panel_of([0.9, 0.9, 0.9], [7, 7, 7]), require=">=.8")
    assert "50 items are in wave 1 and in wave 2" in str(error.value)
    with pytest.raises(InputError, match="newly drawn items in each wave"):
        stratal.trend(panel_of([0.9, 0.9, 0.9], [7, 8, 7]), require="fell<=.1", reference=1)
    with pytest.raises(InputError, match="newly drawn items in each wave"):
        stratal.trend(panel_of([0.9, 0.9], [7, 7], ids=False), require=">=.8")


def test_items_drawn_again_by_chance_under_another_seed_have_an_alarm():
    waves = panel_of([0.9, 0.9, 0.9], [7, 8, 9])
    ids = [set(drawn.ids.tolist()) for drawn, _ in waves]
    assert ids[0] & ids[1]

    assert stratal.trend(waves, require=">=.8").verdict == "NO ALARM"


@pytest.mark.parametrize("name", ["id", "ticket"])
def test_items_of_a_table_that_occur_in_two_waves_were_selected_in_an_unknown_way(name):
    rows = {"week": [1] * 40 + [2] * 40, "label": [1, 1, 1, 0] * 20}
    panel = {**rows, name: [f"q{row}" for row in range(40)] * 2}
    with pytest.raises(InputError, match="newly drawn items in each wave"):
        stratal.trend(panel, wave="week", require=">=.5")
    assert stratal.trend(panel, wave="week").rows[1].estimate.is_paired

    new_items = {**rows, name: [f"q{row}" for row in range(80)]}
    assert stratal.trend(new_items, wave="week", require=">=.5").verdict == "NO ALARM"


def test_row_numbers_of_one_seed_are_assumed_to_be_other_items():
    rng = np.random.default_rng(0)
    waves = []
    for seed in (7, 7):
        units = stratal.Population.from_arrays(proxy={"score": rng.random(400)})
        drawn = stratal.designs.SimpleRandom(budget=50).draw(units, seed=seed)
        waves.append((drawn, np.array([1.0, 1, 1, 1, 0] * 10)))
    result = stratal.trend(waves, require=">=.5")

    assert any("same row numbers" in note for note in result.notes)


@pytest.mark.parametrize("seed", range(4))
def test_the_expected_e_value_of_a_group_is_at_most_one(seed):
    """Over all stratified samples, with a group whose size in each stratum is not used."""
    rng = np.random.default_rng(seed)
    sizes, counts = (5, 4), (2, 2)
    values = [(rng.random(size) < 0.7).astype(float) for size in sizes]
    members = [rng.random(size) < 0.6 for size in sizes]
    members[0][0] = True
    shares = np.array(sizes) / sum(sizes)
    level = np.concatenate(values)[np.concatenate(members)].mean()
    prediction = Prediction(rates=rng.uniform(0.05, 0.95, 2), slope=0.0, variance_ratio=0.5)
    e_values = []
    draws = [combinations(range(size), count) for size, count in zip(sizes, counts, strict=True)]
    for first, second in product(*map(list, draws)):
        outcomes = np.concatenate([values[0][list(first)], values[1][list(second)]])
        groups = np.concatenate([members[0][list(first)], members[1][list(second)]])
        drawn = wave_of(outcomes, [0] * counts[0] + [1] * counts[1], shares)
        drawn = replace(drawn, groups=np.where(groups, "de", "en"), group_shares={"de": 0.6})
        of_group = drawn.of_group("de", level)
        e_values.append(np.exp(wave_log_e_values(of_group, prediction, np.array([level])))[0])

    assert np.all(np.mean(e_values, axis=0) <= 1 + 1e-12)


def test_an_alarm_of_a_group_is_raised_where_only_that_group_fell():
    rng = np.random.default_rng(4)
    waves = []
    for wave in range(16):
        language = np.where(np.arange(1000) % 2 == 0, "de", "en")
        units = stratal.Population.from_arrays(
            ids=[f"w{wave}-{row}" for row in range(1000)], groups={"language": language}
        )
        drawn = stratal.designs.SimpleRandom(budget=120).draw(units, seed=7)
        rates = np.where((drawn.groups["language"] == "de") & (wave >= 6), 0.7, 0.94)
        waves.append((drawn, (rng.random(120) < rates).astype(float)))
    result = stratal.trend(waves, by="language", require="value@de>=.9;value@en>=.9")
    of_de, of_en = result.alarms

    assert (of_de.verdict, of_en.verdict) == ("ALARM", "NO ALARM")
    assert of_de.threshold == pytest.approx(40)
    assert of_de.exact
    errors = [(drawn, 1 - right) for drawn, right in waves]
    mirrored = stratal.trend(errors, by="language", require="value@de<=.1;value@en<=.1").alarms[0]
    assert mirrored.e_values == pytest.approx(of_de.e_values)


def test_false_alarms_of_a_group_stay_below_five_percent():
    rng = np.random.default_rng(6)
    series, waves, n = sized(100, 500), 40, 60
    ever = []
    for _ in range(series):
        drawn = []
        for _ in range(waves):
            groups = np.where(rng.random(n) < 0.3, "de", "en")
            outcomes = rng.random(n) < np.where(groups == "de", 0.9, 0.6)
            drawn.append(replace(wave_of(outcomes), groups=groups, group_shares={"de": 0.3}))
        process = level_process([wave.of_group("de", 0.9) for wave in drawn], 0.9)
        ever.append(process.max() >= 20)

    assert np.mean(ever) <= 0.05
