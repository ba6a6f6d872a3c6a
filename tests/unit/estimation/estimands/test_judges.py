"""A judge against people: its rows, its sentence, and what its own mean is worth where labels were chosen."""

import json

import numpy as np
import pytest
from tests.e2e.pasted import write
from tests.tiers import sized

import stratal
from stratal.estimation.estimands.judges import JudgeReport, rogan_gladen
from stratal.report.estimates import judge_notes, judge_sentence


@pytest.fixture
def judged():
    rng = np.random.default_rng(11)
    fails = rng.random(4_000) < 0.15
    verdict = np.where(rng.random(4_000) < 0.85, fails, ~fails)
    words = np.array(["pass", "fail"])
    population = stratal.Population.from_arrays(
        proxy={"score": np.clip(0.8 - 0.5 * verdict + 0.1 * rng.normal(size=4_000), 0, 1)},
        groups={"verdict": words[verdict.astype(int)], "half": ["a", "b"] * 2_000},
    )
    return population, words[fails.astype(int)], verdict


def test_rows_are_those_of_each_estimand(judged):
    population, truth, _ = judged
    sample = stratal.plan(population, 200, by="verdict").draw(seed=1)
    found = stratal.estimate(sample, truth[sample.ids], estimand=JudgeReport("verdict"))
    asked = {"kappa": "kappa:verdict", "agreement": "agreement:verdict"}
    asked |= {name: f"{name}:fail,predicted=verdict" for name in ("recall", "false_discovery_rate")}

    for metric, text in asked.items():
        of = "fail" if "fail" in text else None
        alone = stratal.estimate(sample, truth[sample.ids], estimand=text)
        row = found.of(metric=metric, **{"class": of})
        assert row.value == pytest.approx(alone.value, abs=1e-12)
        assert [*row.confidence_interval()] == pytest.approx([*alone.confidence_interval()], abs=1e-12)


def test_scores_have_rows_of_scores(judged):
    population, truth, _ = judged
    sample = stratal.plan(population, 200, proxy="score").draw(seed=1)
    found = stratal.estimate(sample, (truth == "pass")[sample.ids], estimand="judge:score")

    metrics = ["pearson", "spearman", "icc", "bias", "calibration_error"]
    assert [row.label["metric"] for row in found] == metrics


def test_rogan_gladen_is_right_of_random_labels_and_wrong_of_chosen_ones(judged):
    """Where half of the labels are of failing verdicts, ours holds the truth and theirs is far off."""
    population, truth, verdict = judged
    true, draws = float(np.mean(truth == "fail")), sized(20, 200)
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
            found = stratal.estimate(sample, truth[sample.ids], estimand=JudgeReport("verdict"))
            values.append(found.of(metric="rogan_gladen", **{"class": "fail"}).value)
            low, high = found.of(metric="prevalence", **{"class": "fail"}).confidence_interval()
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
    assert judge_sentence(rows) == (
        "'v' agrees with people on 86.0% (81.0–91.0%), kappa 0.62 (0.57 to 0.67); it finds 71.0% "
        "(66.0–76.0%) of what they call 'fail', and calls 9.0% (4.0–14.0%) of the 'pass' so."
    )
    assert "20.0% (15.0–25.0%) by the labels; the judge alone says 30.0%" in judge_notes(rows)[0]
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
    found = json.loads(run_command(*words, "--by", "half", "--json").stdout)
    page = run_command("report", *words[1:], "--output", "r.md")

    assert done.status == 4
    assert "'verdict' agrees with people on" in done.stdout
    assert len(done.stdout.splitlines()) <= 15
    assert {row["metric"] for row in found["judge"]} >= {"agreement", "kappa", "recall", "rogan_gladen"}
    assert any("in 'b' 'verdict' agrees with people less than elsewhere" in note for note in found["notes"])
    assert not any("in 'a'" in note for note in found["notes"])
    assert page.status == 0
    assert "## Judge" in (tmp_path / "r.md").read_text()
    missing = run_command(*words[:-1], "nothing")
    assert "--judge: neither the sample nor the labels have a column 'nothing'" in missing.message
