from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.errors import InputError


def survey_table():
    return {
        "right": [1, 0, 1, 1, 0, 1, 1, 1],
        "region": ["n", "n", "n", "n", "s", "s", "s", "s"],
        "school": ["a", "a", "b", "b", "a", "a", "c", "c"],
        "weight": [3, 3, 2, 2, 5, 5, 4, 4],
    }


def test_strata_clusters_and_weights_survive_the_file(tmp_path):
    sample, labels = stratal.Sample.from_labelled(
        survey_table(), value="right", stratum="region", cluster="school", weight="weight"
    )
    found = stratal.estimate(sample, labels)
    sample.write(tmp_path / "sample.parquet")
    again = stratal.estimate(stratal.Sample.read(tmp_path / "sample.parquet"), labels)

    assert (again.value, again.standard_error) == (found.value, found.standard_error)
    assert found.degrees_of_freedom == 2  # four clusters (school a is one in either region), two strata


def test_who_did_not_answer_is_replaced_within_the_stratum():
    table = survey_table()
    table["right"] = [1, 0, 1, None, 0, 1, 1, 1]
    sample, _ = stratal.Sample.from_labelled(
        table, value="right", stratum="region", cluster="school", weight="weight"
    )
    weights = sample.weighting(np.array([value is not None for value in table["right"]])).weights
    assert weights.sum() == pytest.approx(1)
    assert weights[:3].sum() == pytest.approx(10 / 28)


def test_clusters_with_sizes_or_a_population_alone():
    known = {"value": "right", "cluster": "school"}
    by_region, labels = stratal.Sample.from_labelled(
        survey_table(), stratum="region", sizes={"n": 60, "s": 20}, **known
    )
    assert stratal.estimate(by_region, labels).value == pytest.approx(0.75 * 0.75 + 0.25 * 0.75)
    whole, labels = stratal.Sample.from_labelled(survey_table(), population_size=80, **known)
    assert stratal.estimate(whole, labels).value == pytest.approx(0.75)
    assert stratal.estimate(whole, labels).degrees_of_freedom == 2  # schools a, b and c


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mechanism": "poisson", "cluster": "school"}, "cannot have strata or clusters"),
        ({"mechanism": "poisson", "stratum": "region"}, "cannot have strata or clusters"),
        ({"cluster": "region", "stratum": "region"}, "clusters and strata must be in different columns"),
        ({"cluster": "school", "proxy": "weight"}, "a proxy can only be used"),
    ],
)
def test_what_weights_and_clusters_cannot_be_combined_with(change, message):
    with pytest.raises(InputError, match=message):
        stratal.Sample.from_labelled(survey_table(), value="right", weight="weight", **change)
