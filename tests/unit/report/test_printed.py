"""What a notebook shows, and what is handed on to pandas."""

from __future__ import annotations

import numpy as np

import stratal


def world():
    population = stratal.Population.from_arrays(
        proxy=np.linspace(0.01, 0.99, 400), groups={"kind": ["<a>"] * 400}
    )
    plan = stratal.plan(population, 60)
    return plan, plan.draw(seed=1)


def test_plans_strata_and_samples_are_tables_in_a_notebook():
    plan, sample = world()

    for thing in (plan, plan.strata, sample):
        assert thing._repr_html_().startswith("<div class='stratal'>")
        assert "<table>" in thing._repr_html_()
    assert "… and 40 more: see" in sample._repr_html_()
    assert "&lt;a&gt;" in sample._repr_html_()


def test_they_become_dataframes():
    plan, sample = world()

    assert plan.to_pandas()["to_label"].sum() == 60
    assert plan.strata.to_pandas()["units"].sum() == 400
    frame = sample.to_pandas()
    assert frame["id"].tolist() == sample.ids.tolist()
    assert frame["proxy.proxy"].tolist() == sample.proxies[:, 0].tolist()
    assert set(frame["group.kind"]) == {"<a>"}
