"""Handing in the wrong thing gives one sentence that says what to write, never a bare error of Python's."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import stratal

FRAME = pd.DataFrame({"id": [f"u{i}" for i in range(60)], "confidence": np.linspace(0, 1, 60)})


@pytest.fixture
def world(tmp_path):
    population = stratal.Population.from_table(FRAME, proxy="confidence")
    sample = stratal.plan(population, 20).draw(seed=1)
    return {"p": population, "s": sample, "z": np.array([1.0] * 15 + [0.0] * 5), "plan": stratal.plan}


def _estimated(sample, labels):
    return stratal.estimate(sample, labels)


MISTAKES = {
    "plan(dataframe)": (lambda w: stratal.plan(FRAME, 20), "from_table"),
    "plan(path)": (lambda w: stratal.plan("p.csv", 20), r"Population\.read\('p\.csv'"),
    "plan(array)": (lambda w: stratal.plan(FRAME["confidence"].to_numpy(), 20), "from_arrays"),
    "plan(series)": (lambda w: stratal.plan(FRAME["confidence"], 20), "from_arrays"),
    "plan(mapping)": (lambda w: stratal.plan({"a": 0.5}, 20), "from_arrays"),
    "plan(sample)": (lambda w: stratal.plan(w["s"], 20), "takes a Population"),
    "plan(nothing)": (lambda w: stratal.plan(None, 20), "Population.read"),
    "stratify(dataframe)": (lambda w: stratal.strata.stratify(FRAME), "from_table"),
    "simulate(dataframe)": (
        lambda w: stratal.simulate(FRAME, w["z"], designs=["simple-random"], budgets=[5]),
        "from_table",
    ),
    "allocate(population)": (lambda w: stratal.strata.allocate(w["p"], 20), "allocate takes Strata"),
    "draw(dataframe)": (lambda w: stratal.designs.SimpleRandom(budget=5).draw(FRAME, 7), "from_table"),
    "draw(path)": (lambda w: stratal.designs.Systematic(budget=5).draw("p.csv", 7), "Population.read"),
    "opt_a1(dataframe)": (
        lambda w: stratal.planning.opt_a1(
            FRAME, stratal.strata.stratify(w["p"]), 30, lambda ids: ids, seed=1
        ),
        "from_table",
    ),
    "Stratified(dataframe)": (
        lambda w: stratal.designs.Stratified(strata=stratal.strata.stratify(w["p"]), allocation=FRAME),
        r"stratal\.strata\.allocate\(strata, budget\)",
    ),
    "estimate(population)": (
        lambda w: stratal.estimate(w["p"], w["z"]),
        r"plan\(population, budget=…\)\.draw",
    ),
    "estimate(plan)": (lambda w: _estimated(stratal.plan(w["p"], 20), w["z"]), r"\.draw\(seed=…\)"),
    "estimate(path)": (lambda w: _estimated("s.parquet", w["z"]), r"Sample\.read\('s\.parquet'\)"),
    "estimate(dataframe)": (lambda w: _estimated(FRAME, w["z"]), "from_labelled"),
    "estimate(labels, sample)": (lambda w: _estimated({"u1": 1}, w["s"]), "The sample comes first"),
    "estimate(sample, path)": (lambda w: stratal.estimate(w["s"], "l.csv"), r"read_labels\('l\.csv'\)"),
    "estimate(sample, column)": (lambda w: stratal.estimate(w["s"], w["z"][:, None]), r"labels\[:, 0\]"),
    "estimate(sample, matrix)": (
        lambda w: stratal.estimate(w["s"], np.column_stack([w["z"], w["z"]])),
        "stratal.compare",
    ),
    "estimate(sample, ragged)": (lambda w: stratal.estimate(w["s"], [[1, 0], [1]] * 10), r"shape \(20, -1\)"),
    "estimate(proxy=array)": (
        lambda w: stratal.estimate(w["s"], w["z"], proxy=w["z"]),
        "proxy must be the name of a column",
    ),
    "estimate(estimator=None)": (
        lambda w: stratal.estimate(w["s"], w["z"], estimator=None),
        "no such estimator",
    ),
    "compare(population)": (lambda w: stratal.compare(w["p"], {"a": w["z"], "b": w["z"]}), "takes a Sample"),
    "metrics(population)": (lambda w: stratal.estimate(w["p"], w["z"], estimand="metrics"), "takes a Sample"),
    "domains(population)": (lambda w: stratal.estimate(w["p"], w["z"], by="g"), "takes a Sample"),
    "quantile(population)": (
        lambda w: stratal.estimate(w["p"], w["z"], estimand="quantile:0.5"),
        "takes a Sample",
    ),
    "regress(population)": (lambda w: stratal.regress(w["p"], w["z"]), "takes a Sample"),
    "next_round(population)": (
        lambda w: stratal.next_round(w["p"], w["z"], additional=5),
        "next_round takes a Sample",
    ),
    "next_round(number)": (lambda w: stratal.next_round(w["s"], design=30), "allowed: Design"),
    "Poisson(array)": (lambda w: stratal.designs.Poisson(probability=np.full(60, 0.1)), "probability='x'"),
    "Poisson(list)": (lambda w: stratal.designs.Poisson(probability=[0.1] * 60), "probability='x'"),
    "Poisson(size=array)": (
        lambda w: stratal.designs.Poisson(budget=9, size=np.ones(60)).draw(w["p"], 7),
        "size='x'",
    ),
    "ProportionalToSize(size=array)": (
        lambda w: stratal.designs.ProportionalToSize(budget=9, size=np.ones(60)).draw(w["p"], 7),
        "size='x'",
    ),
    "Population.read(dataframe)": (lambda w: stratal.Population.read(FRAME), "from_table"),
    "Sample.read(dataframe)": (lambda w: stratal.Sample.read(FRAME), "takes a path"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_the_wrong_thing_gets_one_sentence_that_helps(world, name):
    call, remedy = MISTAKES[name]

    with pytest.raises(stratal.StratalError) as raised:
        call(world)

    assert re.search(remedy, str(raised.value)), str(raised.value)
    assert len(str(raised.value)) < 400


def test_the_remedy_for_an_array_of_probabilities_works():
    probabilities = np.linspace(0.1, 0.9, 60)
    population = stratal.Population.from_arrays(proxy=FRAME["confidence"], features={"x": probabilities})
    sample = stratal.designs.Poisson(probability="x").draw(population, seed=7)

    assert np.array_equal(sample.inclusion_probability, probabilities[sample.ids])


def test_a_dataframe_of_outcomes_is_compared_column_by_column(world):
    z = world["z"]
    frame = pd.DataFrame({"a": z, "b": 1 - z}, index=world["s"].ids)

    by_name = stratal.compare(world["s"], {"a": z, "b": 1 - z})
    assert stratal.compare(world["s"], frame).rows() == by_name.rows()
