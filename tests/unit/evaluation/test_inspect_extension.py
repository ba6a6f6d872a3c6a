"""The extension of Inspect with a stand-in for the package: which samples get a score, and the metric."""

from __future__ import annotations

import asyncio
import math
import sys
from importlib import import_module
from types import ModuleType, SimpleNamespace

import pytest

import stratal
from stratal.errors import InputError

MODULE = "stratal.evaluation.inspect_extension"


class Score(SimpleNamespace):
    """A score of the package."""

    @classmethod
    def unscored(cls, reason):
        return cls(value=math.nan, reason=reason)


@pytest.fixture
def extension(monkeypatch):
    scorer_module = ModuleType("inspect_ai.scorer")
    scorer_module.Score = Score
    scorer_module.SampleScore = scorer_module.Target = SimpleNamespace
    scorer_module.metric = lambda function: function
    scorer_module.scorer = lambda metrics: lambda function: function
    solver_module = ModuleType("inspect_ai.solver")
    solver_module.TaskState = SimpleNamespace
    modules = {"inspect_ai": ModuleType("inspect_ai"), "inspect_ai.scorer": scorer_module}
    for name, module in (modules | {"inspect_ai.solver": solver_module}).items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    yield import_module(MODULE)
    del sys.modules[MODULE]


@pytest.fixture
def files(tmp_path):
    population = stratal.Population.from_arrays(
        proxy=[n / 40 for n in range(40)], ids=[f"q{n // 2}#{n % 2 + 1}" for n in range(40)]
    )
    sample = stratal.plan(population, 20).draw(seed=1)
    sample.write(tmp_path / "sample.parquet")
    rows = [f"{unit},{'Fail' if n % 3 == 0 else 'Pass'}\n" for n, unit in enumerate(sample.ids)]
    (tmp_path / "labels.csv").write_text("".join(["id,label\n", *rows]))
    return str(tmp_path / "sample.parquet"), str(tmp_path / "labels.csv")


def test_labels_are_scores_of_their_epochs_and_the_metric_is_the_estimate(extension, files):
    sample_file, labels = files
    score = extension.human_labels(sample_file, labels, {"Pass": 1, "Fail": 0})
    states = [SimpleNamespace(sample_id=f"q{n // 2}", epoch=n % 2 + 1) for n in range(40)]

    scores = [asyncio.run(score(state, None)) for state in states]

    labelled = [entry for entry in scores if not math.isnan(entry.value)]
    assert len(labelled) == 20
    assert {entry.value for entry in labelled} == {0, 1}
    assert {entry.reason for entry in scores if math.isnan(entry.value)} == {"not labelled"}
    metric = extension.stratal_estimate()([SimpleNamespace(score=entry) for entry in labelled])
    estimate = stratal.evaluate(sample_file, [labels], mapping={"Pass": 1, "Fail": 0}).estimate
    low, high = estimate.confidence_interval()
    assert metric["estimate"] == estimate.value
    assert (metric["estimate_low"], metric["estimate_high"]) == (low, high)
    assert metric["estimate_labels"] == 20


def test_labels_of_another_log_are_an_error(extension):
    with pytest.raises(InputError, match="no sample has a label"):
        extension.stratal_estimate()([])
