"""R survey 4.1: means of groups in few clusters, by the method `survey` (`generate_survey_groups.R`)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import stratal
from stratal.designs.clusters import ClusterWeighting
from stratal.estimation.domain_means import domain_mean

EXPECTED = json.loads(Path(__file__).with_name("survey_groups.json").read_text())
DESIGNS = {
    "weights, clusters": {"weight": "w", "cluster": "cl"},
    "unequal weights, clusters": {"weight": "wu", "cluster": "cl"},
    "weights, strata, clusters": {"weight": "w", "cluster": "cl", "stratum": "st"},
    "unequal weights, strata, clusters": {"weight": "wu", "cluster": "cl", "stratum": "st"},
    "unequal weights, uneven clusters": {"weight": "wu", "cluster": "uneven"},
    "unequal weights, units": {"weight": "wu"},
    "unequal weights, units in strata": {"weight": "wu", "stratum": "st"},
}


def table():
    i = np.arange(60)
    return {
        "unit": i,
        "cl": [f"c{k // 5}" for k in i],
        "uneven": [f"c{int(np.sqrt(2 * k))}" for k in i],
        "st": [f"s{k // 5 % 3}" for k in i],
        "w": np.full(60, 50),
        "wu": 5 + 7 * i % 11,
        "v": 10 + 13 * i % 17 / 4 + i // 5 % 4,
        "y": ((11 * i * i + 3 * i) % 13 < 7) * 1.0,
        "lang": ["da" if k in (0, 7) else "sv" if k in (2, 3, 9) else "en" for k in i // 5],
        "mixed": ["a" if k * 7 % 11 < 2 and k < 30 else "b" for k in i],
    }


def estimate_of(row):
    columns = table()
    if row["design"] == "whole clusters":
        weighting = ClusterWeighting(
            cluster=np.arange(60) // 5, drawn=np.full(12, 5), clusters=48, size=240, squared_sizes=1200
        )
        member = np.array(columns[row["group"]]) == row["level"]
        return domain_mean(np.asarray(columns[row["value"]], float), member, weighting)
    sample, labels = stratal.Sample.from_labelled(
        columns, value=row["value"], id="unit", groups=("lang", "mixed"), **DESIGNS[row["design"]]
    )
    found = stratal.estimate(sample, labels, by=row["group"], outcome="unbounded")
    return found.of(domain=row["level"])


@pytest.mark.parametrize("row", EXPECTED["rows"], ids=lambda row: " ".join(map(str, list(row.values())[:4])))
def test_the_method_survey_is_r_and_auto_is_never_narrower(row):
    found = estimate_of(row)
    interval = found.confidence_interval(method="survey")

    assert found.value == pytest.approx(row["mean"], rel=1e-12)
    assert found.evidence.design_standard_error == pytest.approx(row["se"], rel=1e-9)
    assert found.evidence.design_df == row["df"]
    assert [interval.low, interval.high] == pytest.approx([row["low"], row["high"]], rel=1e-8)
    assert interval.method == "survey"
    if "clusters" in row["design"]:
        low, high = found.confidence_interval()
        assert found.degrees_of_freedom <= row["df"]
        assert low <= interval.low + 1e-9
        assert high >= interval.high - 1e-9


def test_there_are_at_least_twelve_designs():
    assert len({(row["design"], row["group"], row["level"]) for row in EXPECTED["rows"]}) >= 12
