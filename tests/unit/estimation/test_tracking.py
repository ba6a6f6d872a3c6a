"""An estimate in MLflow: by a stand-in everywhere, by MLflow itself where it is installed."""

from __future__ import annotations

import json
import sys

import pytest

import stratal
from stratal.errors import InputError, MissingExtraError


@pytest.fixture
def estimate():
    population = stratal.Population.from_arrays(proxy=[n / 100 for n in range(100)])
    sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=7)
    return stratal.estimate(sample, [1.0] * 15 + [0.0] * 5)


class Stub:
    """What of MLflow is used, and what was said to it."""

    def __init__(self):
        self.said = []

    def log_metrics(self, metrics):
        self.said.append(metrics)

    def log_dict(self, described, path):
        self.said.append((described, path))


def test_figures_are_metrics_and_all_of_it_is_a_file(estimate, monkeypatch):
    stub = Stub()
    monkeypatch.setitem(sys.modules, "mlflow", stub)

    metrics = stratal.log_to_mlflow(estimate, "accuracy", confidence_level=0.9)

    low, high = estimate.confidence_interval(0.9)
    assert (metrics["accuracy"], metrics["accuracy_low"], metrics["accuracy_high"]) == (
        estimate.value,
        low,
        high,
    )
    assert (metrics["accuracy_labels"], metrics["accuracy_standard_error"]) == (20, estimate.standard_error)
    assert stub.said == [metrics, (estimate.to_dict(0.9), "accuracy.json")]


def test_a_name_that_mlflow_does_not_take_is_refused(estimate):
    with pytest.raises(InputError, match="invalid metric name"):
        stratal.log_to_mlflow(estimate, "a/b!")


def test_without_mlflow_the_extra_is_named(estimate, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)

    with pytest.raises(MissingExtraError, match=r"stratal\[mlflow\]"):
        stratal.log_to_mlflow(estimate)


@pytest.mark.slow
def test_mlflow_itself_keeps_the_estimate(estimate, tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    mlflow.create_experiment("audit", artifact_location=str(tmp_path / "files"))
    mlflow.set_experiment("audit")
    with mlflow.start_run() as run:
        metrics = stratal.log_to_mlflow(estimate)

    kept = mlflow.get_run(run.info.run_id)
    assert kept.data.metrics == pytest.approx(metrics)
    (path,) = (tmp_path / "files").rglob("accuracy.json")
    assert json.loads(path.read_text())["n"] == 20
