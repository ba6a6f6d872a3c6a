"""Findings of groups: no table of more labels, which is of one estimate."""

import numpy as np

import stratal


def test_findings_of_groups_are_a_page():
    population = stratal.Population.from_arrays(
        proxy=np.linspace(0.01, 0.99, 50), groups={"g": np.array(["a", "b"] * 25)}
    )
    sample = stratal.plan(population, 20).draw(seed=1)
    found = stratal.findings(sample, {unit: at % 2 for at, unit in enumerate(sample.ids.tolist())}, by="g")

    assert found.content["more_labels"] == []
    assert "iframe" in found._repr_html_()
