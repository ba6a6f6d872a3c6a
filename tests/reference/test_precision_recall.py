"""Accuracy, area, precision and recall when the strata are not the predicted classes (Stehman 2014)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import stratal
from stratal.estimands import ClassReport

VECTORS = Path(__file__).resolve().parents[3] / "shared" / "vectors"
pytestmark = pytest.mark.skipif(not VECTORS.exists(), reason="the published numbers are not here")


def test_published_accuracy_area_precision_and_recall():
    vector = json.loads((VECTORS / "precision_recall.json").read_text())
    given = vector["input"]
    columns = {name: given[name] for name in ("stratum", "predicted", "reference")}

    sample, labels = stratal.Sample.from_labelled(
        columns, value="reference", stratum="stratum", sizes=given["N_h"], predicted="predicted"
    )
    report = ClassReport(["accuracy", "prevalence", "precision", "recall"], average=[])
    table = stratal.estimate(sample, labels, estimand=report)

    for name, metric, level in (
        ("overall_accuracy", "accuracy", None), ("area_A", "prevalence", "A"), ("area_C", "prevalence", "C"),
        ("precision_B", "precision", "B"), ("recall_B", "recall", "B"),
    ):  # fmt: skip
        row = table.of(metric=metric, **{"class": level})
        found = [row.value, row.standard_error]
        assert vector["expected"][name] == pytest.approx(found, abs=vector["tolerance"])
