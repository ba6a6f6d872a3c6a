"""R survey 4.1: weights, strata and clusters together, and calibrated weights (`generate_survey.R`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stratal

EXPECTED = json.loads(Path(__file__).with_name("survey.json").read_text())


def table():
    i = np.arange(48)
    return {
        "unit": i,
        "st": [f"s{k % 3}" for k in i],
        "cl": [f"c{k // 3 % 5}" for k in i],
        "w": 5 + 7 * i % 11,
        "y": ((i * i + 3 * i) % 7 < 4) * 1,
        "v": (13 * i % 17) / 4,
        "a": [f"a{k * k % 3}" for k in i],
        "b": [f"b{k // 2 % 2}" for k in i],
        "x": (5 * i % 12) / 3,
    }


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("strata, clusters and weights", {"stratum": "st", "cluster": "cl"}),
        ("clusters and weights", {"cluster": "cl"}),
        ("strata and weights", {"stratum": "st"}),
        ("a lonely cluster", {"stratum": "st", "cluster": "lone"}),
    ],
)
@pytest.mark.parametrize("value", ["y", "v"])
def test_weights_strata_and_clusters(name, given, value):
    columns = table()
    columns["lone"] = ["c0" if s == "s2" else c for s, c in zip(columns["st"], columns["cl"], strict=True)]
    sample, labels = stratal.Sample.from_labelled(columns, value=value, id="unit", weight="w", **given)
    found = stratal.estimate(sample, labels)

    mean, error = EXPECTED[name][value]
    assert sample.design.kind == "given-weights"
    assert found.value == pytest.approx(mean, abs=1e-12)
    assert found.standard_error == pytest.approx(error, rel=1e-9)
    if name == "strata, clusters and weights":
        assert found.degrees_of_freedom == EXPECTED[name]["degf"]


def drawn(name):
    """The units as a simple random or a stratified sample of 480, or with strata, clusters and weights."""
    columns = table()
    if name.startswith("simple"):
        known: dict[str, Any] = {"population_size": 480}
    elif name.startswith("stratified"):
        known = {"stratum": "st", "sizes": {"s0": 100, "s1": 160, "s2": 220}}
    else:
        known = {"stratum": "st", "cluster": "cl", "weight": "w"}
    groups = ("a", "b", "x")
    return columns, lambda value: stratal.Sample.from_labelled(
        columns, value=value, id="unit", groups=groups, **known
    )


@pytest.mark.parametrize("name", [key for key in EXPECTED if "linear" in key or "raking" in key])
@pytest.mark.parametrize("value", ["y", "v"])
def test_calibrated_weights(name, value):
    sample, labels = drawn(name)[1](value)
    size = sample.population_size
    share = size / 480
    totals: dict[str, Any] = {"a": {"a0": 180 * share, "a1": 300 * share}}
    totals["b"] = {"b0": 260 * share, "b1": 220 * share}
    if "number" in name:
        totals["x"] = 900
    method = "raking" if "raking" in name else "regression"
    fitted = stratal.designs.fit_margins(sample, tuple(totals), totals=totals, method=method)
    found = stratal.estimate(fitted, labels)

    mean, error = EXPECTED[name][value]
    assert found.value == pytest.approx(mean, abs=1e-9)
    assert found.standard_error == pytest.approx(error, rel=1e-8)
