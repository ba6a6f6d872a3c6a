"""The outcome's kind is known before any label, and no label changes it."""

from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.errors import InputError, LabelError
from stratal.planning import estimated_deviations
from stratal.question import Outcome


def zeros_and_ones(sample):
    return {unit: float(unit % 3 == 0) for unit in sample.ids.tolist()}


@pytest.fixture
def counts():
    """A population of counts, its proxy on their scale and without bounds."""
    proxy = np.random.default_rng(0).gamma(1.0, 1.0, 400)
    return stratal.Population.from_arrays(proxy=proxy, scaled=True)


def test_counts_that_show_only_0_and_1_stay_unbounded(counts):
    sample = stratal.plan(counts, 30).draw(seed=1)
    estimate = stratal.estimate(sample, zeros_and_ones(sample))

    assert sample.question.outcome.scale == "unbounded"
    assert (estimate.outcome, estimate.bounds) == ("unbounded", None)
    assert estimate.confidence_interval().method == "skewness-corrected"


def test_the_kind_travels_in_the_file_and_through_rounds(counts, tmp_path):
    sample = stratal.plan(counts, 30).draw(seed=1)
    declared = sample.with_outcome("bounded", (0.0, 20.0))
    again = stratal.Sample.read(declared.write(tmp_path / "sample.parquet"))
    larger = stratal.next_round(declared, zeros_and_ones(declared), additional=10)

    assert again == declared
    stored = Outcome(scale="bounded", bounds=(0.0, 20.0))
    assert again.question.outcome == stored
    assert stratal.estimate(again, zeros_and_ones(again)).bounds == (0.0, 20.0)
    assert larger.question.outcome == stored
    with pytest.raises(LabelError, match="outside"):
        stratal.estimate(again, dict.fromkeys(again.ids.tolist(), 30.0))


def test_a_slip_of_the_finger_is_not_looked_for_among_counts(counts):
    sample = stratal.plan(counts, 30).draw(seed=1)
    labels = zeros_and_ones(sample) | {sample.ids.tolist()[0]: 11.0}

    assert stratal.estimate(sample, labels).outcome == "unbounded"


def test_rounds_do_not_take_counts_for_0_and_1(counts):
    strata = stratal.strata.stratify(counts, n_strata=2)
    z, h = np.array([0.0, 0.0, 1.0, 0.0, 1.0, 1.0]), np.array([0, 0, 0, 1, 1, 1])

    unbounded = estimated_deviations(strata, z, h)
    assert unbounded == pytest.approx(estimated_deviations(strata, z, h, bounds=(-np.inf, np.inf)))
    assert unbounded != pytest.approx(estimated_deviations(strata, z, h, bounds=(0.0, 1.0)))


def test_the_models_answers_make_it_binary_and_a_probability_bounds_it():
    answers = {"answer": ["cat", "dog"] * 20}
    asked = stratal.Population.from_arrays(groups=answers, predicted="answer")
    judged = stratal.Population.from_arrays(proxy=np.linspace(0.1, 0.9, 40))
    nothing = stratal.Population.from_arrays(ids=range(40))
    kinds = [
        stratal.designs.SimpleRandom(budget=10).draw(population, seed=1)
        for population in (asked, judged, nothing)
    ]

    assert [(sample.question.outcome.scale, sample.question.outcome.bounds) for sample in kinds] == [
        ("binary", None),
        ("bounded", (0.0, 1.0)),
        (None, None),
    ]
    said = stratal.estimate(kinds[2], zeros_and_ones(kinds[2]))
    assert said.outcome == "binary"
    assert any("outcome='unbounded'" in note for note in said.notes)
    assert not stratal.estimate(kinds[1], zeros_and_ones(kinds[1])).notes


@pytest.mark.parametrize(
    ("outcome", "bounds"),
    [("counts", None), ("bounded", None), ("binary", (0.0, 1.0)), ("bounded", (1.0, 0.0))],
)
def test_declarations_that_say_nothing_are_refused(counts, outcome, bounds):
    sample = stratal.plan(counts, 30).draw(seed=1)
    with pytest.raises(InputError):
        sample.with_outcome(outcome, bounds)


def test_several_annotators_zeros_and_ones_do_not_make_counts_binary(counts):
    """Words say what an answer can be; numbers do not, where the sample knows better."""
    sample = stratal.plan(counts, 30).draw(seed=1)
    nothing = stratal.designs.SimpleRandom(budget=30).draw(
        stratal.Population.from_arrays(ids=range(400)), seed=1
    )

    def answers(drawn, first, second):
        ids = [str(unit) for unit in drawn.ids.tolist()]
        people = ("a",) * len(ids) + ("b",) * len(ids)
        values = [first] * len(ids) + [second] * len(ids)
        return stratal.Labels(ids=(*ids, *ids), values=tuple(values), annotators=people)

    assert stratal.estimate(sample, answers(sample, 1, 0)).bounds is None
    assert stratal.estimate(sample, answers(sample, "Pass", "Fail")).bounds == (0.0, 1.0)
    assert stratal.estimate(nothing, answers(nothing, 1, 0)).bounds == (0.0, 1.0)


def test_a_label_outside_the_bounds_is_named_by_its_own_unit_where_others_have_no_label():
    population = stratal.Population.from_arrays(ids=["a", "b", "c", "d"])
    sample = stratal.designs.SimpleRandom(budget=3).draw(population, seed=7).with_outcome("bounded", (0, 5))
    first, second, third = sample.ids.tolist()

    with pytest.raises(stratal.LabelError, match=f"9 of id '{third}'"):
        stratal.estimate(sample, {first: None, second: 1.0, third: 9.0})
