"""A judge against people: its rows, its sentence, and what its own mean is worth where labels were chosen."""

import json

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score
from tests.e2e.pasted import write
from tests.tiers import sized

import stratal
from stratal.errors import InputError
from stratal.estimation.resolve import with_group
from stratal.metrics.confusion import Confusion
from stratal.metrics.disagreement_review import write_disagreements
from stratal.metrics.judges import JudgeReport, rogan_gladen
from stratal.report.judges import judge_notes, judge_sentences


@pytest.fixture
def judged():
    rng = np.random.default_rng(11)
    fails = rng.random(4_000) < 0.15
    verdict = np.where(rng.random(4_000) < 0.85, fails, ~fails)
    words = np.array(["pass", "fail"])
    population = stratal.Population.from_arrays(
        ids=np.arange(4_000),
        proxy={"score": np.clip(0.8 - 0.5 * verdict + 0.1 * rng.normal(size=4_000), 0, 1)},
        groups={"verdict": words[verdict.astype(int)], "half": ["a", "b"] * 2_000},
    )
    return population, words[fails.astype(int)], verdict


def test_rows_are_those_of_each_estimand(judged):
    population, truth, _ = judged
    sample = stratal.plan(population, 200, by="verdict").draw(seed=1)
    estimate = stratal.estimate(sample, truth[sample.ids], estimand=JudgeReport("verdict"))
    asked = {"kappa": "kappa:verdict", "agreement": "agreement:verdict"}
    asked |= {name: f"{name}:fail,predicted=verdict" for name in ("recall", "false_discovery_rate")}

    for metric, text in asked.items():
        of = "fail" if "fail" in text else None
        alone = stratal.estimate(sample, truth[sample.ids], estimand=text)
        row = estimate.of(metric=metric, **{"class": of})
        assert row.value == pytest.approx(alone.value, abs=1e-12)
        assert [*row.confidence_interval()] == pytest.approx([*alone.confidence_interval()], abs=1e-12)


def test_scores_have_rows_of_scores(judged):
    population, truth, _ = judged
    sample = stratal.plan(population, 200, proxy="score").draw(seed=1)
    estimate = stratal.estimate(sample, (truth == "pass")[sample.ids], estimand="judge:score")

    metrics = ["pearson", "spearman", "icc", "bias", "calibration_error", "auc"]
    assert [row.label["metric"] for row in estimate] == metrics


def test_rogan_gladen_is_right_of_random_labels_and_wrong_of_chosen_ones(judged):
    """Where half of the labels are of failing verdicts, ours holds the truth and theirs is far off."""
    population, truth, verdict = judged
    true, draws = float(np.mean(truth == "fail")), sized(10, 200)
    designs = {
        "random": stratal.designs.SimpleRandom(budget=200),
        "chosen": stratal.plan(population, 200, by="verdict", allocation="equal").design,
    }
    means, held = {}, {}
    for name, design in designs.items():
        values = []
        held[name] = 0
        for seed in range(draws):
            sample = design.draw(population, seed=seed)
            estimate = stratal.estimate(sample, truth[sample.ids], estimand=JudgeReport("verdict"))
            values.append(estimate.of(metric="rogan_gladen", **{"class": "fail"}).value)
            low, high = estimate.of(metric="prevalence", **{"class": "fail"}).confidence_interval()
            held[name] += low <= true <= high
        means[name] = np.mean(values), np.std(values) / np.sqrt(draws)

    assert abs(means["random"][0] - true) < 4 * means["random"][1] + 0.01
    assert abs(means["chosen"][0] - true) > 4 * means["chosen"][1]
    assert all(count / draws > 0.95 - 3.5 * np.sqrt(0.95 * 0.05 / draws) for count in held.values())
    assert float(np.mean(verdict)) > true + 0.05  # what the judge alone would say


def test_rogan_gladen_needs_both_classes_and_a_judge_better_than_chance():
    yes, no = np.full(5, True), np.full(5, False)

    assert np.isnan(rogan_gladen(yes, yes, 0.5)[0])
    assert np.isnan(rogan_gladen(np.r_[yes, no], np.r_[no, yes], 0.5)[0])
    assert rogan_gladen(np.r_[yes, no], np.r_[yes, no], 0.3) == (0.3, 0.0)


def test_the_sentence_names_what_the_judge_finds_and_what_it_calls_so_wrongly():
    def row(metric, of, value):
        ends = [value - 0.05, value + 0.05]
        return {"judge": "v", "metric": metric, "class": of, "estimate": value, "confidence_interval": ends}

    rows = [
        row("agreement", None, 0.86),
        row("kappa", None, 0.62),
        *(row("recall", of, value) for of, value in (("fail", 0.71), ("pass", 0.91))),
        *(row("prevalence", of, value) for of, value in (("fail", 0.2), ("pass", 0.8))),
        *(row("predicted_prevalence", of, value) for of, value in (("fail", 0.3), ("pass", 0.7))),
        *(row("rogan_gladen", of, value) for of, value in (("fail", 0.25), ("pass", 0.75))),
    ]
    assert judge_sentences(rows) == [
        "'v' agrees with people on 86.0% (81.0% to 91.0%) of units, with a kappa of 0.62 (0.57 to 0.67); it "
        "catches 71.0% (66.0% to 76.0%) of the 'fail' (sensitivity), with false alarms on 9.0% (4.0% to "
        "14.0%) of the 'pass' (1 − specificity)."
    ]
    assert "20.0% (15.0% to 25.0%) by the labels. 'v' alone gives 30.0%" in judge_notes(rows)[0]
    assert judge_notes(rows[:2]) == []


def test_the_command_says_all_this(judged, tmp_path, monkeypatch, run_command):
    monkeypatch.chdir(tmp_path)
    population, truth, _ = judged
    sample = stratal.plan(population, 200, by="verdict").draw(seed=1)
    sample = stratal.designs.SimpleRandom(budget=400).draw(population, seed=1)
    sample.write("s.parquet")
    half = sample.groups["half"]
    said = np.where((half == "b") & (sample.ids % 3 > 0), "pass", truth[sample.ids])
    said = np.where((half == "b") & (sample.ids % 3 == 0), "fail", said)
    write("l.csv", ["id", "label"], [*zip(sample.ids.tolist(), said.tolist(), strict=True)])
    words = ["estimate", "s.parquet", "l.csv", "--positive", "pass", "--judge", "verdict"]
    done = run_command(*words, "--require", "kappa>=.99")
    result = json.loads(run_command(*words, "--by", "half", "--json").stdout)
    page = run_command("report", *words[1:], "--output", "r.md")

    assert done.status == 4
    assert "'verdict' agrees with people on" in done.stdout
    assert len(done.stdout.splitlines()) <= 15
    assert {row["metric"] for row in result["judge"]} >= {"agreement", "kappa", "recall", "rogan_gladen"}
    assert any("in 'b', agreement of 'verdict' is lower than elsewhere" in note for note in result["notes"])
    assert not any("in 'a'" in note for note in result["notes"])
    assert page.status == 0
    assert "## Judge" in (tmp_path / "r.md").read_text()
    missing = run_command(*words[:-1], "nothing")
    assert "--judge: neither the sample nor the labels have a column 'nothing'" in missing.message


@pytest.fixture
def crowd():
    """Return a population with three judges of three classes, a group in which the first fails, and truth."""
    rng = np.random.default_rng(4)
    truth, other = rng.choice(3, 3_000, p=[0.6, 0.3, 0.1]), rng.integers(0, 3, (3, 3_000))
    worse = rng.random(3_000) < 0.3
    right = rng.random((3, 3_000)) < np.where(worse, [[0.2], [0.7], [0.7]], [[0.9], [0.7], [0.7]])
    words = np.array(["good", "poor", "bad"])
    groups = {f"judge_{k}": words[np.where(right[k], truth, other[k])] for k in range(3)}
    population = stratal.Population.from_arrays(groups={**groups, "half": np.where(worse, "b", "a")})
    return population, words[truth]


def test_cells_of_the_table_with_people_are_the_samples_shares(crowd):
    population, truth = crowd
    sample = stratal.plan(population, 300, by="judge_0", allocation="equal").draw(seed=2)
    estimate = stratal.estimate(sample, truth[sample.ids], judge="judge_0")
    cells = [row for row in estimate if row.label["metric"] == "share"]
    weights = sample.weighting(np.ones(300, dtype=bool)).weights
    is_cell = (truth[sample.ids] == "bad") & (sample.groups["judge_0"] == "poor")

    assert len(cells) == 9
    assert sum(row.value for row in cells) == pytest.approx(1.0, abs=1e-12)
    found_cell = estimate.of(metric="share", judged="poor", **{"class": "bad"})
    assert found_cell.value == pytest.approx(weights @ is_cell / weights.sum(), abs=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_kappa_and_rates_of_a_group_are_those_of_its_units(crowd, classes):
    population, truth = crowd
    sample = stratal.designs.SimpleRandom(budget=300).draw(population, seed=2)
    said, judged = truth[sample.ids], sample.groups["judge_0"]
    if classes == 2:
        said, judged = (np.where(column == "bad", "bad", "good") for column in (said, judged))
        sample = with_group(sample, "judge_0", dict(zip(sample.ids.tolist(), judged, strict=True)))
    inside = sample.groups["half"] == "b"
    kappa = stratal.estimate(sample, said, estimand="kappa:judge_0", by="half")
    recall = stratal.estimate(sample, said, estimand="recall:bad,predicted=judge_0", by="half")
    of_b = kappa.of(domain="b")
    everyone = Confusion(
        true=np.unique(said, return_inverse=True)[1],
        predicted=np.searchsorted(np.unique(said), judged),
        n_classes=classes,
        weighting=sample.weighting(np.ones(300, dtype=bool)),
    )

    assert of_b.value == pytest.approx(cohen_kappa_score(said[inside], judged[inside]), abs=1e-9)
    assert of_b.n == inside.sum()
    assert recall.of(domain="b").value == pytest.approx(np.mean(judged[inside & (said == "bad")] == "bad"))
    # All units are a domain, whose kappa has the value and the linearised error of the kappa itself.
    whole = everyone.metric_in_domain(np.ones(300, dtype=bool), "kappa")
    assert whole.value == pytest.approx(everyone.metric("kappa").value, abs=1e-12)
    assert whole.standard_error == pytest.approx(everyone.metric("kappa").standard_error, rel=1e-9)


def test_a_group_whose_labels_all_agree_has_an_interval_and_an_error(crowd):
    population, truth = crowd
    sample = stratal.designs.SimpleRandom(budget=200).draw(population, seed=3)
    inside = sample.groups["half"] == "a"
    judged = np.where(inside, truth[sample.ids], sample.groups["judge_0"])
    sample = with_group(sample, "judge_0", dict(zip(sample.ids.tolist(), judged, strict=True)))
    row = stratal.estimate(sample, truth[sample.ids], estimand="kappa:judge_0", by="half").of(domain="a")

    assert row.value == pytest.approx(1.0)
    assert row.standard_error > 0
    assert row.confidence_interval().low < 0.99


def test_a_judge_that_is_worse_in_a_group_is_named_and_no_other_one(crowd):
    population, truth = crowd
    sample = stratal.designs.SimpleRandom(budget=600).draw(population, seed=5)
    question = JudgeReport(["judge_0", "judge_1"])
    estimate = stratal.estimate(sample, truth[sample.ids], estimand=question, by="half")
    warned = [note for note in estimate.notes if "is lower than elsewhere" in note]

    assert any("in 'b', agreement of 'judge_0'" in note for note in warned)
    assert not any("judge_1" in note or "in 'a'" in note for note in warned)


def test_several_judges_have_a_majority_and_a_consistency_and_a_best_proxy(crowd):
    population, truth = crowd
    sample = stratal.designs.SimpleRandom(budget=400).draw(population, seed=5)
    names = ["judge_0", "judge_1", "judge_2"]
    estimate = stratal.estimate(sample, truth[sample.ids], judge=names)
    answers = np.stack([sample.groups[name] for name in names])
    majority = [max(column, key=lambda word: (column == word).sum()) for column in answers.T]
    same = np.mean([answers[a] == answers[b] for a, b in ((0, 1), (0, 2), (1, 2))])

    agreed = estimate.of(judge="majority of 3", metric="agreement").value
    assert agreed == pytest.approx(np.mean(truth[sample.ids] == majority), abs=1e-12)
    assert estimate.of(metric="consistency").value == pytest.approx(same, abs=1e-12)
    lines = judge_sentences(estimate.rows())
    assert "1 more: --details" in lines[2]
    assert "Two judges agree with each other on" in lines[3]
    assert lines[4].startswith("Best proxy on these labels: 'majority of 3', correlation ")


def test_two_scores_have_their_mean(judged):
    _, truth, verdict = judged
    rng = np.random.default_rng(1)
    scores = {name: 0.7 - 0.4 * verdict + 0.3 * rng.random(4_000) for name in ("one", "two")}
    sample = stratal.designs.SimpleRandom(budget=200).draw(
        stratal.Population.from_arrays(proxy=scores), seed=1
    )
    right = (truth == "pass")[sample.ids].astype(float)
    estimate = stratal.estimate(sample, right, judge="one,two")
    mean = np.mean([scores[name][sample.ids] for name in scores], axis=0)

    row = estimate.of(judge="mean of 2", metric="pearson")
    assert row.value == pytest.approx(np.corrcoef(mean, right)[0, 1], abs=1e-9)


def test_a_judge_and_an_estimand_are_one_too_many(crowd):
    population, truth = crowd
    sample = stratal.designs.SimpleRandom(budget=50).draw(population, seed=5)
    with pytest.raises(stratal.InputError, match="a judge is a separate estimand"):
        stratal.estimate(sample, truth[sample.ids], judge="judge_0", estimand="kappa:judge_0")


def test_units_without_a_verdict_are_named(crowd):
    population, truth = crowd
    sample = stratal.designs.SimpleRandom(budget=60).draw(population, seed=5)
    some = {
        unit: said for k, (unit, said) in enumerate(zip(sample.ids, truth[sample.ids], strict=True)) if k % 6
    }
    estimate = stratal.estimate(with_group(sample, "late", some), truth[sample.ids], judge="late")

    assert any("10 of 60 drawn units have no verdict of 'late'" in note for note in estimate.notes)
    assert estimate.of(metric="agreement").value == pytest.approx(1.0)
    assert estimate.of(metric="no_verdict").value == pytest.approx(1 / 6)


WORDS = [
    "unknown",
    "error",
    "N/A",
    "NOT_PARSABLE",
    "[invalid]",
    "parse_error",
    "None",
    "#N/A",
    "",
    "not scored",
]


@pytest.fixture
def gaps(judged):
    """Verdicts of which every tenth is a word that says that there is none, in all units."""
    _, truth, verdict = judged
    verdicts = np.array(["pass", "fail"], dtype=object)[verdict.astype(int)]
    verdicts[::10] = np.resize(WORDS, 400)
    return truth, verdicts, np.arange(4_000) % 10 > 0


def test_units_without_a_verdict_are_compared_nowhere(gaps):
    truth, verdicts, given = gaps
    population = stratal.Population.from_arrays(groups={"verdict": verdicts.astype(str)})
    sample = stratal.designs.SimpleRandom(budget=4_000).draw(population, seed=1)
    labels = truth[sample.ids]

    estimate = stratal.estimate(sample, labels, judge="verdict")

    right = (truth == verdicts)[given]
    assert estimate.of(metric="agreement").value == pytest.approx(right.mean())
    assert estimate.of(metric="agreement").n == 3_600
    kappa = cohen_kappa_score(truth[given], verdicts[given].astype(str))
    assert estimate.of(metric="kappa").value == pytest.approx(kappa)
    failing = given & (truth == "fail")
    recall = (verdicts[failing] == "fail").mean()
    assert estimate.of(metric="recall", **{"class": "fail"}).value == pytest.approx(recall)
    assert estimate.of(metric="prevalence", **{"class": "fail"}).value == pytest.approx(
        (truth == "fail").mean()
    )
    assert {row.label["class"] for row in estimate} == {None, "pass", "fail"}
    assert any("400 of 4,000 drawn units have no verdict" in note for note in estimate.notes)
    for estimand, value in (("agreement:verdict", right.mean()), ("kappa:verdict", kappa)):
        assert stratal.estimate(sample, labels, estimand=estimand).value == pytest.approx(value)


def test_agreement_without_gaps_is_estimated_on_a_sample(gaps):
    truth, verdicts, given = gaps
    population = stratal.Population.from_arrays(groups={"verdict": verdicts.astype(str)})
    true_share = (truth == verdicts)[given].mean()
    covered = 0
    tries = sized(20, 200)
    for seed in range(tries):
        sample = stratal.designs.SimpleRandom(budget=200).draw(population, seed=seed)
        row = stratal.estimate(sample, truth[sample.ids], estimand="agreement:verdict")
        interval = row.confidence_interval()
        covered += interval.low <= true_share <= interval.high
    assert covered >= 0.95 * tries - 3 * np.sqrt(tries * 0.95 * 0.05)


def test_a_word_that_people_say_too_is_a_class():
    population = stratal.Population.from_arrays(groups={"verdict": ["error", "fine"] * 20})
    sample = stratal.designs.SimpleRandom(budget=40).draw(population, seed=1)

    estimate = stratal.estimate(sample, sample.groups["verdict"], judge="verdict")

    assert estimate.of(metric="agreement").n == 40


def test_a_judge_without_a_verdict_has_no_vote_and_is_no_disagreement(tmp_path):
    verdicts = {"a": ["pass"] * 4, "b": ["error"] * 4, "c": ["pass", "pass", "fail", "fail"]}
    population = stratal.Population.from_arrays(groups=verdicts)
    sample = stratal.designs.SimpleRandom(budget=4).draw(population, seed=1)
    labels = np.array(["pass", "pass", "fail", "pass"])[sample.ids]

    estimate = stratal.estimate(sample, labels, judge="a,c")
    assert estimate.of(metric="consistency").value == 0.5
    with pytest.raises(stratal.LabelError, match="'b' gave no verdict on any labelled unit"):
        stratal.estimate(sample, labels, judge="b")
    path = tmp_path / "again.csv"
    assert write_disagreements(sample, labels, ["a", "b"], path) == 1


def test_a_judge_with_many_classes_names_what_its_report_leaves_out():
    random = np.random.default_rng(2)
    words = np.array([f"class {number}" for number in range(8)])
    truth = words[random.integers(0, 8, 400)]
    verdicts = np.where(random.random(400) < 0.8, truth, words[random.integers(0, 8, 400)])
    population = stratal.Population.from_arrays(ids=np.arange(400), groups={"verdict": verdicts})
    sample = stratal.designs.SimpleRandom(budget=150).draw(population, seed=1)
    labels = truth[sample.ids]

    report = stratal.estimate(sample, labels, estimand=JudgeReport("verdict"))
    assert {row.label["metric"] for row in report} == {"agreement", "kappa", "mcc"}
    assert "left out, because there are 8 classes" in report.remarks[-1]

    some = stratal.estimate(sample, labels, estimand=JudgeReport("verdict", ["class 1", "class 2"]))
    assert some.of(**{"metric": "share", "class": "class 1", "judged": "class 2"}).n == 150
    assert len(some) == 3 + 4 * 2 + 4
    assert not some.remarks
    with pytest.raises(InputError, match="unknown class"):
        stratal.estimate(sample, labels, estimand=JudgeReport("verdict", ["class 9"]))
