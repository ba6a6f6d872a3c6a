"""Cohen's κ, confusion, and drift over time."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from tests.unit.study.conftest import answer_all

from stratal.report.pages import status_page
from stratal.study import StudyQuestion, study_status
from stratal.study.status import cohen_kappa, drift, pair_agreement


def test_kappa_of_cohens_own_example():
    """Cohen (1968), table 1, proportions of 200 diagnoses: κ = .492."""
    table = np.array([[88, 14, 18], [10, 40, 10], [2, 6, 12]])

    assert cohen_kappa(table) == pytest.approx(0.492, abs=5e-4)


@pytest.mark.parametrize("weights", [None, "quadratic"])
def test_kappa_equals_scikit_learns(weights):
    metrics = pytest.importorskip("sklearn.metrics")
    generator = np.random.default_rng(3)
    one = generator.integers(1, 6, 300)
    other = np.where(generator.random(300) < 0.6, one, generator.integers(1, 6, 300))

    agreement = pair_agreement([str(v) for v in one], [str(v) for v in other], is_scale=weights is not None)

    assert agreement["kappa"] == pytest.approx(
        metrics.cohen_kappa_score(one, other, weights=weights), abs=1e-12
    )


def test_kappa_is_undefined_where_chance_always_agrees():
    assert pair_agreement(["yes"] * 5, ["yes"] * 5)["kappa"] is None
    assert pair_agreement([], [])["kappa"] is None


def test_drift_keeps_its_level_where_there_is_none():
    generator = np.random.default_rng(5)
    p_values = [drift(generator.random(80) < 0.8)["p_value"] for _ in range(400)]

    assert np.mean(np.array(p_values) < 0.05) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)


def test_an_annotator_who_changes_is_mentioned(make_study):
    study = make_study(overlap=1.0)
    answer_all(study, "ann")
    answer_all(study, "bob", lambda item: "Pass" if item.position <= 20 else "Fail")

    status = study_status(study)

    (pair,) = status["agreement"]["pairs"]
    assert (pair["classes"], pair["confusion"]) == (["Fail", "Pass"], [[0, 0], [20, 20]])
    assert any("bob: agreement changed over time" in note for note in status["notes"])
    assert any("bob: outcome changed over time" in note for note in status["notes"])
    assert not any("ann: outcome" in note for note in status["notes"])


def test_perfect_agreement(make_study):
    study = make_study(overlap=1.0)
    for who in ("ann", "bob"):
        answer_all(study, who, lambda item: "Pass" if item.position % 2 else "Fail")

    found = study_status(study)["agreement"]

    assert found["alpha"] == 1.0
    assert found["pairs"][0]["kappa"] == 1.0
    assert found["shared"] == 40


def test_a_scale_weighs_disagreements_by_distance(make_study):
    study = make_study(question=StudyQuestion.of_scale("How helpful?", 1, 5), overlap=1.0)
    answer_all(study, "ann", lambda item: 1 + item.position % 5)
    answer_all(study, "bob", lambda item: min(5, 2 + item.position % 5))

    found = study_status(study)["agreement"]

    assert found["level"] == "interval"
    assert found["pairs"][0]["kappa"] > 0.7 > found["pairs"][0]["agreeing"]


def test_the_reason_for_a_missing_alpha_is_reported(make_study, monkeypatch):
    monkeypatch.setitem(sys.modules, "krippendorff", None)
    study = make_study(overlap=1.0)
    answer_all(study, "ann")
    answer_all(study, "bob", lambda item: "Pass" if item.position <= 20 else "Fail")

    notes = status_page(study_status(study)).notes

    assert any("agreement between the annotators: krippendorff is not installed" in note for note in notes)
