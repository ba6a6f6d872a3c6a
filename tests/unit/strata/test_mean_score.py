"""Strata of the mean of several scores, and scores that do not belong in it."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stratal
from stratal.strata.mean_score import MeanScore, agreement_with_others, select_scores

N = 4_000
RNG = np.random.default_rng(5)
QUALITY = RNG.normal(size=N)
Z = (RNG.random(N) < 1 / (1 + np.exp(-2 * QUALITY))).astype(float)


def score(noise):
    return 1 / (1 + np.exp(-2 * (QUALITY + noise * RNG.normal(size=N))))


SCORES = {"judge": score(1.0), "second": score(1.0), "inverted": 1 - score(1.0), "useless": RNG.random(N)}


def population(*names, **more):
    proxies = {name: SCORES[name] for name in names} | more
    return stratal.Population.from_arrays(proxy=proxies, ids=np.arange(N))


def test_scores_that_agree_are_averaged():
    plan = stratal.plan(population("judge", "second"), 100)

    means = (SCORES["judge"] + SCORES["second"]) / 2
    assert "The strata are intervals of the mean of 'judge', 'second'." in plan.notes
    assert plan.strata.names[0].startswith("mean score < ")
    for code, mean in enumerate(plan.strata.proxy_means):
        assert means[plan.strata.codes == code].mean() == pytest.approx(mean, abs=1e-9)
    assert np.all(np.diff(plan.strata.proxy_means) > 0)


def test_the_mean_of_scores_is_more_precise_than_the_first():
    def variance(plan):
        deviations = [Z[plan.strata.codes == code].var() for code in range(plan.strata.n_strata)]
        return float(np.sum(plan.strata.weights**2 / plan.allocation.n_h * deviations))

    units = population("judge", "second")

    assert variance(stratal.plan(units, 200)) < 0.95 * variance(stratal.plan(units, 200, proxy="judge"))


@pytest.mark.parametrize(
    ("names", "selected", "left_out"),
    [
        (("judge", "second", "inverted"), ("judge", "second"), "'inverted'.*reverse the score"),
        (("inverted", "judge", "second"), ("judge", "second"), "'inverted'.*reverse the score"),
        (("judge", "inverted"), ("judge",), "'inverted'.*reverse the score"),
        (("judge", "useless"), ("judge",), r"'useless'.*is -?0\.0\d\.$"),
    ],
)
def test_scores_that_disagree_are_left_out_with_a_note(names, selected, left_out):
    selection = select_scores(population(*names), {})

    assert selection.names == selected
    assert [note for note in selection.notes if re.search(left_out, note)]


def test_scores_on_another_scale_are_left_out_with_a_note():
    plan = stratal.plan(population("judge", percent=100 * score(1.0)), 100)

    assert plan.strata.names[0].startswith("judge < ")
    assert "'percent' is not part of the strata: it is not on the scale of 'judge'." in plan.notes


def test_earlier_labels_show_which_score_is_inverted():
    labels = {int(unit): float(Z[unit]) for unit in range(150)}
    plan = stratal.plan(population("inverted", "judge"), 100, labels=labels)

    assert plan.strata.names[0].startswith("judge < ")
    assert any(
        "'inverted' is not part of the strata: its correlation with the earlier" in n for n in plan.notes
    )


@pytest.mark.parametrize("options", [{"proxy": "judge"}, {"method": "none"}])
def test_a_named_proxy_and_other_methods_have_no_mean(options):
    plan = stratal.plan(population("judge", "second"), 100, **options)

    assert not any("the mean of" in note for note in plan.notes)


def test_groups_are_divided_by_the_first_score():
    proxies = {name: SCORES[name] for name in ("judge", "second")}
    units = stratal.Population.from_arrays(proxy=proxies, groups={"language": np.arange(N) % 2})

    assert "judge" in stratal.plan(units, 100, by="language").strata.names[0]


def test_a_table_has_the_same_strata_and_sample(tmp_path):
    ibis = pytest.importorskip("ibis")
    columns = {"id": np.arange(N), "judge": SCORES["judge"], "second": SCORES["second"]}
    pq.write_table(pa.table(columns), tmp_path / "units.parquet")
    table = ibis.duckdb.connect().read_parquet(tmp_path / "units.parquet")
    stored = stratal.Population.from_table(table, id="id", proxy=["judge", "second"])

    plans = [stratal.plan(units, 100) for units in (population("judge", "second"), stored)]
    samples = [plan.draw(seed=3) for plan in plans]

    assert plans[0].strata.sizes.tolist() == plans[1].strata.sizes.tolist()
    assert sorted(samples[0].ids.tolist()) == sorted(samples[1].ids.tolist())


def test_a_sample_file_and_a_next_round_keep_the_strata(tmp_path):
    sample = stratal.plan(population("judge", "second"), 60).draw(seed=3)
    sample.write(tmp_path / "sample.parquet")
    labels = {int(unit): float(Z[unit]) for unit in sample.ids}

    stored = stratal.Sample.read(tmp_path / "sample.parquet")
    later = stratal.next_round(sample, labels, additional=40)

    assert stored.design.strata.rule == sample.design.strata.rule == later.design.strata.rule
    assert stratal.estimate(stored, labels).estimator == "ppi++"


def test_agreement_of_constant_and_equal_scores():
    constant = np.array([[1.0, 0.0], [0.0, 0.0]])

    assert agreement_with_others(constant).tolist() == [0.0, 0.0]
    assert agreement_with_others(np.ones((3, 3))).tolist() == [1.0, 1.0, 1.0]


def test_equal_scores_have_the_strata_of_one():
    units = population("judge")
    twice = population("judge", again=SCORES["judge"])
    mean = MeanScore(population=twice, names=("judge", "again"))

    for method in ("k-means", "robust-neyman"):
        alone = stratal.strata.stratify(units, method, 6)
        assert mean.strata(method, 6).codes.tolist() == alone.codes.tolist()
