"""Waves of items over time: levels, changes and their intervals, from every form of evidence."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.tiers import sized

import stratal
from stratal.errors import InputError
from stratal.waves.changes import change_between, correlation_between

RATES = (0.9, 0.92, 0.8)


def population(wave, size=1000, prefix=None, proxy=None):
    prefix = f"w{wave}" if prefix is None else prefix
    return stratal.Population.from_arrays(
        ids=[f"{prefix}-{row}" for row in range(size)],
        proxy=None if proxy is None else {"confidence": proxy},
        groups={"language": ["de", "en"] * (size // 2)},
    )


def sample(wave, budget=100, seed=7, **how):
    return stratal.designs.SimpleRandom(budget=budget).draw(population(wave, **how), seed=seed)


def labels(drawn, rate, seed=0):
    right = np.random.default_rng(seed).permutation(drawn.size) < round(rate * drawn.size)
    return right.astype(float)


@pytest.fixture(scope="module")
def waves():
    return [(sample(w), labels(sample(w), rate, w)) for w, rate in enumerate(RATES)]


def row(result, quantity, **label):
    return next(r for r in result.rows if r.quantity.startswith(quantity) and r.label == label)


def test_levels_are_those_of_estimate_and_changes_their_differences(waves):
    result = stratal.trend(waves)
    estimates = [stratal.estimate(*wave) for wave in waves]

    assert [wave.rows[()].value for wave in result.waves] == [e.value for e in estimates]
    assert row(result, "change since the previous").estimate.value == pytest.approx(0.8 - 0.92)
    assert row(result, "change since the first").reference == "wave 1"
    errors = [e.standard_error for e in estimates]
    assert row(result, "change since the previous").estimate.standard_error == pytest.approx(
        np.hypot(errors[2], errors[1])
    )


def test_intervals_hold_together_by_sidak_and_past_waves_keep_theirs(waves):
    result = stratal.trend(waves, by="language")

    assert len(result.rows) == 9
    assert result.row_level == pytest.approx(0.95 ** (1 / 9))
    latest = stratal.estimate(*waves[-1])
    assert row(result, "level").confidence_interval == pytest.approx(
        [*latest.confidence_interval(0.95 ** (1 / 9))]
    )
    described = result.to_dict()["waves"]
    for (drawn, values), wave in zip(waves, described, strict=True):
        own = [*stratal.estimate(drawn, values).confidence_interval()]
        assert wave["estimates"][0]["confidence_interval"] == pytest.approx(own)


def test_groups_have_their_own_changes(waves):
    result = stratal.trend(waves, by="language")
    tables = [stratal.estimate(*wave, by="language") for wave in waves]

    change = row(result, "change since the first", domain="de")
    assert change.estimate.value == pytest.approx(
        tables[2].of(domain="de").value - tables[0].of(domain="de").value
    )


def test_the_same_units_relabelled_have_the_error_of_paired_differences():
    drawn = sample(1)
    before = labels(drawn, 0.8, 1)
    after = np.where(np.arange(drawn.size) < 10, 1.0, before)
    result = stratal.trend([(drawn, before), (drawn, after)])

    paired = stratal.estimate(drawn, after - before, outcome="unbounded", estimator="horvitz-thompson")
    change = row(result, "change since the previous")
    assert change.estimate.standard_error == pytest.approx(paired.standard_error)
    assert change.to_dict()["same_items"]


def test_a_change_of_the_same_labelled_items_has_the_interval_of_paired_differences():
    """The interval ignored a positive correlation: it was twice as wide, and covered every time."""
    rng = np.random.default_rng(3)
    size, budget, draws = 2000, 200, sized(12, 400)
    cells = rng.choice(4, size, p=[0.882, 0.018, 0.018, 0.082])  # right in both, in one, in neither: .8
    before = np.isin(cells, [0, 1]).astype(float)
    after = np.isin(cells, [0, 2]).astype(float)
    assert np.corrcoef(before, after)[0, 1] == pytest.approx(0.8, abs=0.05)
    units = stratal.Population.from_arrays(ids=range(size))
    truth = after.mean() - before.mean()
    holds, widths, separate_widths = [], [], []
    for seed in range(draws):
        drawn = stratal.designs.SimpleRandom(budget=budget).draw(units, seed=seed)
        rows = drawn.ids.astype(int)
        shuffled = dict(zip(drawn.ids[::-1].tolist(), before[rows[::-1]], strict=True))
        result = stratal.trend([(drawn, shuffled), (drawn, after[rows])], outcome="binary")
        later, earlier = (wave.rows[()] for wave in result.waves[::-1])
        change = row(result, "change").estimate
        low, high = change.limits(0.95)
        separate = change_between(later, earlier, change.correlation).limits(0.95)
        holds.append(low <= truth <= high)
        widths.append(high - low)
        separate_widths.append(separate[1] - separate[0])

    assert np.mean(holds) >= 0.95 - 2.5 * np.sqrt(0.95 * 0.05 / draws)
    assert np.mean(widths) < 0.6 * np.mean(separate_widths)
    assert change.is_paired
    pair = {"after": after[rows], "before": before[rows]}
    single = stratal.compare(drawn, pair, simultaneous=False)[0]
    assert change.p_value == pytest.approx(single.p_value(0.0))
    assert [low, high] == pytest.approx([*single.confidence_interval()])
    assert any("difference for each item" in note for note in result.notes)


def test_waves_that_share_some_items_say_that_their_interval_is_conservative():
    rng = np.random.default_rng(1)
    outcome = (rng.random(400) < 0.8).astype(float)
    units = stratal.Population.from_arrays(ids=range(400))
    waves = []
    for budget in (80, 120):
        drawn = stratal.designs.SimpleRandom(budget=budget).draw(units, seed=7)
        waves.append((drawn, outcome[drawn.ids.astype(int)]))
    result = stratal.trend(waves)
    change = row(result, "change").estimate
    separate = change_between(result.waves[1].rows[()], result.waves[0].rows[()], 0.0)

    assert change.correlation > 0
    assert not change.is_paired
    assert change.limits(0.95) == pytest.approx(separate.limits(0.95))
    assert any("are conservative" in note for note in result.notes)


def test_a_new_version_of_the_model_is_two_waves_of_the_same_sample():
    drawn = stratal.designs.SimpleRandom(budget=60).draw(
        stratal.Population.from_arrays(
            ids=range(500), groups={"answer": ["a", "b"] * 250}, predicted="answer"
        ),
        seed=3,
    )
    truth = {unit: "a" if unit % 3 else "b" for unit in range(500)}
    words = {unit: truth[unit] for unit in drawn.ids.tolist()}
    new = {unit: "a" if unit % 5 else "b" for unit in range(500)}
    version = stratal.new_version(drawn, words, new, estimator="horvitz-thompson").to_dict()
    from stratal.metrics.new_version import NEW_ANSWER, with_new_answers

    old = stratal.evaluate(drawn, words, estimator="horvitz-thompson").estimate.value
    right = [float(new[unit] == truth[unit]) for unit in drawn.ids.tolist()]
    was_right = [
        float(a == truth[u]) for u, a in zip(drawn.ids.tolist(), drawn.groups["answer"], strict=True)
    ]
    result = stratal.trend(
        [(drawn, was_right), (drawn, right)], predicted="none", estimator="horvitz-thompson"
    )

    change = row(result, "change since the previous").estimate
    assert change.value == pytest.approx(version["difference"]["estimate"])
    assert result.waves[0].rows[()].value == pytest.approx(old)
    single = stratal.compare(drawn, {"new": np.array(right), "old": np.array(was_right)})[0]
    assert change.standard_error == pytest.approx(single.standard_error, rel=0.02)
    assert with_new_answers(drawn, new).question.answer == NEW_ANSWER


@pytest.mark.parametrize("budgets", [(40, 40), (30, 60)])
def test_permanent_random_numbers_give_the_covariance_of_two_draws(budgets):
    rng = np.random.default_rng(1)
    size = 200
    first = (rng.random(size) < 0.7).astype(float)
    second = np.where(rng.random(size) < 0.8, first, 1 - first)
    units = stratal.Population.from_arrays(ids=[f"u{row}" for row in range(size)])
    place = {f"u{row}": row for row in range(size)}
    values, covariances = [], []
    for seed in range(400):
        draws = [stratal.designs.SimpleRandom(budget=b).draw(units, seed=seed) for b in budgets]
        outcomes = [
            z[[place[unit] for unit in drawn.ids.tolist()]]
            for drawn, z in zip(draws, (first, second), strict=True)
        ]
        values.append([z.mean() for z in outcomes])
        if seed < sized(12, 60):
            result = stratal.trend(list(zip(draws, outcomes, strict=True)), outcome="binary")
            first_row, second_row = (wave.rows[()] for wave in result.waves)
            correlation = row(result, "change since the previous").estimate.correlation
            covariances.append(correlation * first_row.standard_error * second_row.standard_error)
    covariance = np.cov(first, second)[0, 1] * (1 / max(budgets) - 1 / size)

    assert np.mean(covariances) == pytest.approx(covariance, rel=0.25)
    assert np.cov(np.array(values).T)[0, 1] == pytest.approx(covariance, rel=0.25)


def test_independent_draws_of_the_same_items_have_no_covariance():
    rng = np.random.default_rng(2)
    outcome = (rng.random(300) < 0.7).astype(float)
    correlations = []
    for seed in range(sized(12, 60)):
        drawn = [sample(0, budget=100, seed=s, size=300) for s in (seed, seed + 1000)]
        pairs = [(d, outcome[[int(i.split("-")[1]) for i in d.ids.tolist()]]) for d in drawn]
        correlations.append(row(stratal.trend(pairs), "change since the previous").estimate.correlation)

    assert abs(np.mean(correlations)) < 4 * np.std(correlations) / np.sqrt(len(correlations))
    assert abs(np.mean(correlations)) < 0.3


def test_row_numbers_of_different_files_are_different_items():
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(2):
        units = stratal.Population.from_arrays(proxy={"confidence": rng.random(200)})
        draws.append(stratal.designs.SimpleRandom(budget=50).draw(units, seed=7))
    outcome = np.array([1.0, 0.0] * 25)
    assert draws[0].ids.tolist() == draws[1].ids.tolist()

    separate = stratal.trend([(draws[0], outcome), (draws[1], outcome)])
    same = stratal.trend([(draws[0], outcome), (draws[0], outcome)])

    assert row(separate, "change").estimate.correlation == 0
    assert row(same, "change").estimate.standard_error == 0


def test_a_wave_without_labels_counts_for_the_score_only():
    rng = np.random.default_rng(0)
    scores = [rng.random(1000), rng.random(1000), 0.5 * rng.random(1000)]
    draws = [sample(w, proxy=score) for w, score in enumerate(scores)]
    result = stratal.trend(
        [(draws[0], labels(draws[0], 0.9)), (draws[1], labels(draws[1], 0.8)), (draws[2], None)]
    )

    assert result.latest.name == "wave 2"
    described = result.to_dict()
    assert described["waves"][2]["labels"] == 0
    assert [entry["mean"] for entry in described["score"]] == pytest.approx([s.mean() for s in scores])
    shift = (scores[2].mean() - scores[1].mean()) / scores[1].std()
    assert described["score"][2]["shift_since_previous"] == pytest.approx(shift)
    assert "does not estimate quality" in str(result)


def test_a_table_gives_what_its_waves_give_one_by_one(tmp_path):
    rng = np.random.default_rng(4)
    lines = ["week,id,confidence,label,language"]
    tables = {}
    for week in (9, 10, 11):
        rows = []
        for item in range(200):
            label = ("pass" if rng.random() < 0.8 else "fail") if item < 50 else ""
            rows.append([f"{week}-{item}", round(float(rng.random()), 3), label, ("de", "en")[item % 2]])
        tables[week] = rows
    for week in (11, 9, 10):  # not in their order in time
        lines += [f"week {week},{','.join(map(str, entries))}" for entries in tables[week]]
    path = tmp_path / "labels.csv"
    path.write_text("\n".join(lines) + "\n")
    result = stratal.trend(path, wave="week", by="language")

    assert [wave.name for wave in result.waves] == ["week 9", "week 10", "week 11"]
    for week, wave in zip((9, 10, 11), result.waves, strict=True):
        columns = dict(
            zip(("id", "confidence", "label", "language"), zip(*tables[week], strict=True), strict=True)
        )
        single = stratal.evaluate({name: list(column) for name, column in columns.items()}, by="language")
        assert wave.rows[()].value == pytest.approx(single.estimate.value)
        assert wave.rows[()].standard_error == pytest.approx(single.estimate.standard_error)
        assert wave.rows[(("domain", "de"),)].value == pytest.approx(single.tables[-1].of(domain="de").value)


def test_waves_without_numbers_keep_the_order_of_the_rows():
    table = {"month": ["March"] * 30 + ["April"] * 30, "label": [1, 0, 1] * 20, "id": range(60)}
    result = stratal.trend(table, wave="month")

    assert [wave.name for wave in result.waves] == ["March", "April"]


def test_dates_whose_order_is_not_clear_are_refused():
    table = {"day": ["3/12/2026"] * 30 + ["4/11/2026"] * 30, "label": [1, 0, 1] * 20, "id": range(60)}
    with pytest.raises(InputError, match="the order of the waves is not clear"):
        stratal.trend(table, wave="day")


def test_a_fully_labelled_wave_makes_all_waves_about_future_items():
    table = {
        "week": [1] * 40 + [2] * 80,
        "label": [1, 0, 1, 1] * 10 + [1, 0, 1, 1] * 10 + [None] * 40,
        "id": [*range(120)],
    }
    result = stratal.trend(table, wave="week")

    assert {next(iter(wave.rows.values())).target for wave in result.waves} == {"superpopulation"}


def test_several_estimands_and_metrics_have_a_row_each(waves):
    pairs = [
        (drawn, {unit: "cat" if z else "dog" for unit, z in zip(drawn.ids.tolist(), values, strict=True)})
        for drawn, values in waves
    ]
    answered = []
    for w, (_, words) in enumerate(pairs):
        units = stratal.Population.from_arrays(
            ids=[f"w{w}-{r}" for r in range(1000)],
            groups={"answer": ["cat"] * 900 + ["dog"] * 100},
            predicted="answer",
        )
        answered.append((stratal.designs.SimpleRandom(budget=100).draw(units, seed=7), words))
    result = stratal.trend(answered, estimand="recall:cat;precision:cat")

    assert len(result.rows) == 6
    assert len({tuple(r.label.items()) for r in result.rows}) == 2


def test_what_is_no_trend_is_refused(waves):
    with pytest.raises(InputError, match="two waves or more"):
        stratal.trend(waves[:1])
    with pytest.raises(InputError, match="no wave has a label"):
        stratal.trend([(waves[0][0], None), (waves[1][0], None)])
    with pytest.raises(InputError, match="a wave must be a pair"):
        stratal.trend([waves[0], (*waves[1], 3)])
    with pytest.raises(InputError, match="two waves are called"):
        stratal.trend(["somewhere/week1", "somewhere/week1"])


def test_the_result_is_plain_short_and_drawn(waves, tmp_path):
    result = stratal.trend(waves, by="language")

    json.dumps(result.to_dict(), allow_nan=False)
    assert repr(result) == "Trend(3 waves, latest='wave 3')"
    page = result.write(tmp_path / "trend.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 3
    assert result.plot().get_title() == "3 waves"
    with pytest.raises(InputError, match="already exists"):
        result.write(tmp_path / "trend.html")
    with pytest.raises(InputError, match=r"ends in \.html"):
        result.write(tmp_path / "trend.pdf")


def test_change_and_covariance_are_symmetric(waves):
    result = stratal.trend([waves[0], (waves[0][0], labels(waves[0][0], 0.7, 9))])
    later, earlier = result.waves[::-1]

    assert correlation_between(later, earlier, ()) == pytest.approx(correlation_between(earlier, later, ()))
    forward = change_between(later.rows[()], earlier.rows[()], 0.0)
    backward = change_between(earlier.rows[()], later.rows[()], 0.0)
    assert forward.limits(0.95) == pytest.approx([-end for end in backward.limits(0.95)[::-1]])


def test_studies_are_waves_and_one_without_labels_waits(tmp_path):
    from stratal.study import StudyQuestion, create_study

    question = StudyQuestion.of_choices("Is it right?", ["Right", "Wrong"])
    for week in range(3):
        drawn = sample(week, budget=8)
        with create_study(tmp_path / f"week{week}", drawn, question, annotators=["ann"]) as study:
            for _ in range(8 if week < 2 else 0):
                item = study.next_item("ann")
                study.submit("ann", item.id, "Right" if int(item.id.split("-")[1]) % 3 else "Wrong")
    result = stratal.trend([tmp_path / f"week{week}" for week in range(3)])

    assert [wave.name for wave in result.waves] == ["week0", "week1", "week2"]
    assert result.latest.name == "week1"
    single = stratal.evaluate(tmp_path / "week1").estimate
    assert row(result, "level").estimate.value == single.value


@pytest.mark.filterwarnings("ignore::stratal.errors.StratalWarning")
def test_late_labels_change_their_wave_and_are_announced(waves):
    drawn, values = waves[-1]
    early = dict(zip(drawn.ids.tolist()[:60], values[:60], strict=True))
    before = stratal.trend([*waves[:-1], (drawn, early)])
    after = stratal.trend(waves)

    assert any("wave 3 (60 of 100)" in note for note in before.notes)
    assert not any("late labels" in note for note in after.notes)
    assert row(before, "level").estimate.n == 60


@pytest.fixture(scope="module")
def judged_weeks():
    rng = np.random.default_rng(1)
    is_right = rng.random(800) < 0.8
    verdict = np.where(rng.random(800) < 0.9, is_right, ~is_right)
    words = np.array(["no", "yes"])
    return {
        "id": [f"q{number}" for number in range(800)],
        "week": [1 + number % 2 for number in range(800)],
        "judge": words[verdict.astype(int)].tolist(),
        "human": np.where(rng.random(800) < 0.2, words[is_right.astype(int)], "").tolist(),
    }


def test_a_recognised_judge_adds_nothing_to_the_family(judged_weeks):
    """17 rows on the judge made the interval 36 % wider, and an alarm was refused."""
    result = stratal.trend(judged_weeks, wave="week", require=">=.5")

    assert [entry.label for entry in result.rows] == [{}, {}]
    assert result.verdict == "NO ALARM"
    assert result.latest.rows[()].design


def test_each_row_on_a_judge_has_its_own_name(judged_weeks):
    from stratal.report.trends import trend_page

    described = stratal.trend(judged_weeks, wave="week", judge="judge").to_dict()
    groups = trend_page(described).tables[1]
    names = [entries[0] for entries in groups.rows]
    labels = {json.dumps(key_of(entry)) for entry in described["rows"]}
    labels.discard("{}")  # of all items, which the first sentences give

    assert len(names) == len(set(names)) == len(labels)


def test_labels_of_whole_groups_are_clusters_in_every_wave():
    """Each wave decided for itself, so that waves with few groups had the intervals of single rows."""
    rng = np.random.default_rng(0)
    table = {"week": [], "question_id": [], "passage": [], "relevant": []}
    for week in (1, 2):
        for question in range(60):
            rate = rng.random()
            for rank in range(5):
                table["week"].append(week)
                table["question_id"].append(f"{week}-{question}")
                table["passage"].append(f"{week}-{question}-{rank}")
                is_labelled = question < (25, 8)[week - 1]
                table["relevant"].append(int(rng.random() < rate) if is_labelled else None)
    result = stratal.trend(table, wave="week")
    stated = stratal.trend(table, wave="week", cluster="question_id")

    assert [wave.sample.question.cluster for wave in result.waves] == ["question_id"] * 2
    for wave, same in zip(result.waves, stated.waves, strict=True):
        assert wave.rows[()].standard_error == pytest.approx(same.rows[()].standard_error)


def key_of(entry):
    numbers = ("quantity", "reference", "estimate", "standard_error", "confidence_interval", "p_value")
    return {name: value for name, value in entry.items() if name not in (*numbers, "same_items")}


def test_a_table_of_waves_may_have_a_column_for_each_annotator():
    rng = np.random.default_rng(5)
    ann, ben = (rng.integers(0, 2, 90).tolist() for _ in range(2))
    ben[1::3] = ["TODO"] * 30
    # The second wave has the labels of one annotator.
    weeks = ["1", "2", "3"] * 30
    table = {"id": [f"u{row}" for row in range(90)], "week": weeks, "ann": ann, "ben": ben}
    means = [a if b == "TODO" else (a + b) / 2 for a, b in zip(ann, ben, strict=True)]
    expected = stratal.trend({**table, "mean": means}, wave="week", value="mean", bounds=(0, 1))

    for value in ("ann,ben", ["ben", "ann"]):
        trend = stratal.trend(table, wave="week", value=value, mapping={"TODO": None})

        levels = [wave.rows[()].value for wave in trend.waves]
        assert levels == pytest.approx([wave.rows[()].value for wave in expected.waves])
