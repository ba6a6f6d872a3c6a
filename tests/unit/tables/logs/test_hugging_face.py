"""Hugging Face: files that `evaluate` and `datasets` wrote themselves, and damaged ones."""

from __future__ import annotations

import json
import shutil

import pytest

from stratal import Population
from stratal.errors import InputError


@pytest.fixture
def found(tools):
    return json.loads((tools / "evaluate-0.4.6.json").read_text())


def test_scores_per_prediction_are_units(tools):
    population = Population.read(tools / "evaluate-0.4.6.json", show="predictions")

    assert population.size == 3
    assert population.distribution().mean == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (lambda d: d.pop("exact_match"), "contains no score per unit"),
        (lambda d: d.update(exact_match=0.7), "contains no score per unit"),
        (lambda d: d.update(exact_match=[1.0]), "lists of different lengths"),
        (lambda d: d.update(exact_match=[1.0, "x", None]), "contains no score per unit"),
        (lambda d: d.update(exact_match=[None, "N/A", float("nan")]), "contains no score per unit"),
        (lambda d: d.update(exact_match=[], predictions=[]), "contains no score per unit"),
    ],
)
def test_damaged_files_end_in_one_error(found, changed, refusal, how, said):
    assert said in refusal(changed(found, how))


def test_a_saved_data_set_is_read(tools):
    population = Population.read(tools / "datasets-5.2.0" / "test", proxy="score", show="text")

    assert population.size == 3
    assert population.distribution().mean == pytest.approx(0.6)


def test_splits_are_to_be_chosen(tools):
    with pytest.raises(InputError, match=r"several splits \(given: test\).*Give one of the splits: .*test"):
        Population.read(tools / "datasets-5.2.0", proxy="score")


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "data-00000-of-00001.arrow").unlink(),
        lambda folder: (folder / "data-00000-of-00001.arrow").write_bytes(b"damaged"),
        lambda folder: (folder / "state.json").write_text("{"),
        lambda folder: (folder / "state.json").write_text("{}"),
        lambda folder: (folder / "state.json").write_text('{"_data_files": []}'),
    ],
)
def test_a_damaged_data_set_is_refused_by_name(tools, tmp_path, damage):
    shutil.copytree(tools / "datasets-5.2.0" / "test", tmp_path / "saved")
    damage(tmp_path / "saved")

    with pytest.raises(InputError, match="saved is not a complete data set"):
        Population.read(tmp_path / "saved", proxy="score")
