from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.estimation.nonresponse import merge_empty, strata_without_answer


def test_a_whole_stratum_without_an_answer_is_named_with_what_is_assumed():
    kinds = ["chat"] * 60 + ["code"] * 30 + ["maths"] * 10
    population = stratal.Population.from_arrays(ids=range(100), groups={"kind": kinds})
    sample = stratal.plan(population, budget=30, by="kind").draw(seed=1)
    labels = {int(unit): 1 if unit < 90 else None for unit in sample.ids}

    said = r"1 stratum has no label \(10.0% of the units\): kind = maths was merged with its neighbour"
    with pytest.warns(stratal.StratalWarning, match=said):
        found = stratal.estimate(sample, labels)
    assert any("takes units without labels to be like those beside them" in note for note in found.notes)


def test_many_empty_strata_are_counted():
    names = tuple("abcdefg")
    counts = np.array([3, 0, 0, 0, 0, 0, 4])
    said = strata_without_answer(names, np.full(7, 10), counts, merge_empty(counts))
    assert said.startswith("5 strata have no label (71.4% of the units): b was merged with its neighbour a, ")
    assert "and 2 more so" in said
