from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.estimation.respondents import unlabelled_strata_note


def test_a_whole_stratum_without_an_answer_is_named_with_what_is_assumed():
    kinds = ["chat"] * 60 + ["code"] * 30 + ["maths"] * 10
    population = stratal.Population.from_arrays(ids=range(100), groups={"kind": kinds})
    sample = stratal.plan(population, budget=30, method="category", by="kind").draw(seed=1)
    labels = {int(unit): 1 if unit < 90 else None for unit in sample.ids}

    said = r"1 stratum has no label \(10.0% of the units\): kind = maths was merged with its neighbour"
    with pytest.warns(stratal.StratalWarning, match=said):
        estimate = stratal.estimate(sample, labels)
    assert any(
        "assumes that units without labels are like those in neighbouring" in note for note in estimate.notes
    )


def test_many_empty_strata_are_counted():
    names = tuple("abcdefg")
    counts = np.array([3, 0, 0, 0, 0, 0, 4])
    said = unlabelled_strata_note(names, np.full(7, 10), counts)
    assert said.startswith("5 strata have no label (71.4% of the units): b, c, d and 2 more were merged with")


def test_a_fifth_without_labels_names_the_assumption_and_the_worst_case():
    """60 of 300 missing: the others stand for them, and what they may be is said."""
    population = stratal.Population.from_arrays(ids=range(3000), groups={"kind": ["a"] * 1000 + ["b"] * 2000})
    sample = stratal.plan(population, budget=300, by="kind").draw(seed=1)
    z = np.ones(300)
    z[::3] = 0.0
    labels = z.copy()
    labels[np.flatnonzero(np.arange(300) % 5 == 0)] = np.nan
    with pytest.warns(stratal.StratalWarning, match="missing at random within strata"):
        estimate = stratal.estimate(sample, labels)
    weights = np.where(sample.stratum == 0, 1000, 2000) / 3000 / np.bincount(sample.stratum)[sample.stratum]
    low, high = (weights @ np.where(np.isnan(labels), bound, labels) for bound in (0.0, 1.0))

    assert estimate.nonresponse.worst_bounds == pytest.approx((low, high))
    assert estimate.to_dict()["nonresponse"]["worst_bounds"] == pytest.approx([low, high])
    assert any("60 of 300 drawn units have no label (20.0%); the labelled" in note for note in estimate.notes)
    assert any("valid only if labels are missing at random within strata" in note for note in estimate.notes)
    assert f"would be {low:.1%}; with the highest possible outcome, {high:.1%}." in str(estimate)
    assert low < estimate.value < high


def test_no_worst_case_where_nothing_is_missing_or_there_are_no_bounds():
    population = stratal.Population.from_arrays(ids=range(300))
    sample = stratal.designs.SimpleRandom(budget=30).draw(population, seed=1)
    z = np.arange(30.0)

    assert stratal.estimate(sample, z % 2).nonresponse.worst_bounds is None
    z[3] = np.nan
    assert stratal.estimate(sample, z, outcome="unbounded").nonresponse.worst_bounds is None


@pytest.mark.parametrize("stratified", [True, False])
def test_a_sample_that_grew_until_it_was_narrow_says_so(stratified, tmp_path):
    """A loop to a half-width biases the value by up to .55 standard errors: the sample knows of it."""
    rng = np.random.default_rng(1)
    proxy = rng.beta(2, 1, 4000)
    z = (rng.random(4000) < proxy) * 1.0
    population = stratal.Population.from_arrays(proxy=proxy)
    first = (
        stratal.plan(population, budget=60).draw(seed=1)
        if stratified
        else stratal.designs.SimpleRandom(budget=60).draw(population, seed=1)
    )
    more = stratal.next_round(first, z[first.ids], half_width=0.05)
    plain = stratal.next_round(first, z[first.ids], additional=40)
    later = stratal.next_round(more, z[more.ids], additional=40)
    more.write(tmp_path / "more.parquet")
    read = stratal.Sample.read(tmp_path / "more.parquet")

    assert (first.half_width, more.half_width, plain.half_width, later.half_width) == (None, 0.05, None, 0.05)
    assert read.half_width == 0.05
    said = "the number of drawn units depended on the labels: units were added until the interval was ± 0.05"
    for sample, expected in ((more, True), (read, True), (later, True), (plain, False), (first, False)):
        assert any(said in note for note in stratal.estimate(sample, z[sample.ids]).notes) == expected


def test_units_without_a_proxy_and_without_a_label_are_like_all_others(tmp_path):
    path = tmp_path / "units.csv"
    scores = [0.0] * 4 + [1.0] * 26 + [""] * 10
    path.write_text("id,score\n" + "".join(f"u{k},{score}\n" for k, score in enumerate(scores)))
    population = stratal.Population.read(path, proxy="score", missing="own-stratum")
    sample = stratal.plan(population, 40).draw(seed=1)
    labels = {f"u{k}": score for k, score in enumerate(scores) if score != ""}

    with pytest.warns(stratal.StratalWarning, match=r"= missing \(25.0% of the units\)"):
        estimate = stratal.estimate(sample, labels)

    interval = estimate.confidence_interval()
    assert estimate.value == pytest.approx(26 / 30)
    assert interval.low < 26 / 30 < interval.high
