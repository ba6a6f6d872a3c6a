"""The index of a pandas object as the ids of the rows, wherever a dataframe enters."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import stratal
from stratal import Population
from stratal.errors import InputError

CLASSES = np.array(["cat", "dog"])


class Model:
    """A classifier whose confidence is the column `x`."""

    classes_ = CLASSES

    def predict_proba(self, rows):
        chance = np.asarray(rows["x"], dtype=float)
        return np.stack([chance, 1 - chance], axis=1)


def shuffled(size: int = 60) -> pd.DataFrame:
    frame = pd.DataFrame({"x": np.linspace(0.01, 0.99, size)})
    return frame.sample(frac=1.0, random_state=3)


def values_by_id(population: Population) -> dict[object, float]:
    sample = stratal.designs.SimpleRandom(budget=population.size).draw(population, seed=1)
    return dict(zip(sample.ids.tolist(), sample.proxies[:, 0].tolist(), strict=True))


def test_labels_of_a_shuffled_frame_join_their_own_rows():
    """Ids were 0 … N − 1 in the order of the rows, so that labels by index were those of other rows."""
    frame = shuffled()
    truth = pd.Series(np.where(frame["x"] > 0.5, "cat", "dog"), index=frame.index)

    population = Population.from_estimator(Model(), frame)
    sample = stratal.designs.SimpleRandom(budget=40).draw(population, seed=2)
    ids = sample.ids.tolist()

    assert stratal.estimate(sample, dict(zip(ids, truth.loc[ids], strict=True))).value == 1.0
    assert stratal.estimate(sample, truth.loc[ids]).value == 1.0


def test_every_way_that_a_frame_enters_takes_its_index():
    frame = shuffled(6)
    frame.index = pd.Index([f"q{row}" for row in frame.index], name="key")
    expected = frame["x"].to_dict()
    columns = {"proxy": frame["x"], "show": {"text": frame["x"].astype(str)}}

    populations = [
        Population.from_arrays(**columns),
        Population.from_arrays(proxy={"x": frame["x"]}, groups={"even": ["a", "b"] * 3}),
        Population.from_table(frame, proxy="x"),
        Population.from_table(frame.assign(kind="a"), proxy="x", id="key"),
        Population.from_table(frame.assign(item="a"), proxy="x", missing="own-stratum"),
    ]

    assert [values_by_id(population) for population in populations] == [expected] * 5
    assert {population.id_name for population in populations} == {"key"}
    labelled = frame.assign(right=1)
    sample, _ = stratal.Sample.from_labelled(labelled, value="right", population_size=10)
    assert sample.ids.tolist() == frame.index.tolist()


def test_past_results_are_found_by_their_index():
    rng = np.random.default_rng(0)
    ids = [f"q{row}" for row in range(30)]
    results = pd.DataFrame({name: (rng.random(30) < 0.6).astype(int) for name in "abcde"}, index=ids)
    population = Population.from_arrays(ids=ids, history=results)
    assert population.notes == Population.from_arrays(ids=ids, history=results.reset_index(names="id")).notes


@pytest.mark.parametrize("named", [{"id": "item"}, {"id": "row"}])
def test_a_named_column_takes_the_place_of_any_index(named):
    frame = pd.DataFrame({"item": ["a", "b"], "x": [0.1, 0.2]}, index=[5, 5])
    choices: dict[str, list[Any]] = {"item": ["a", "b"], "row": [0, 1]}
    ids = choices[named["id"]]
    assert values_by_id(Population.from_table(frame, proxy="x", **named)) == dict(
        zip(ids, [0.1, 0.2], strict=True)
    )
    assert values_by_id(Population.from_arrays(proxy=frame["x"], ids=ids)) == dict(
        zip(ids, [0.1, 0.2], strict=True)
    )


def test_row_numbers_in_order_without_a_name_are_no_index():
    frame = pd.DataFrame({"id": ["a", "b"], "x": [0.1, 0.2]})
    assert values_by_id(Population.from_table(frame, proxy="x")) == {"a": 0.1, "b": 0.2}
    assert Population.from_estimator(Model(), frame[["x"]]).numbered_by_row
    assert Population.from_arrays(proxy=frame["x"]).numbered_by_row


BAD_INDEXES = {
    "duplicates": ([7, 7], "duplicates .first: 7"),
    "levels": (pd.MultiIndex.from_tuples([("a", 1), ("b", 1)]), "several levels"),
}


@pytest.mark.parametrize("kind", BAD_INDEXES)
def test_an_index_that_identifies_no_row_is_refused(kind):
    index, message = BAD_INDEXES[kind]
    frame = pd.DataFrame({"x": [0.1, 0.2], "right": [1, 0]}, index=index)
    ways = [
        lambda: Population.from_table(frame, proxy="x"),
        lambda: Population.from_arrays(proxy=frame["x"]),
        lambda: Population.from_estimator(Model(), frame),
        lambda: stratal.Sample.from_labelled(frame, value="right", population_size=10),
    ]
    for way in ways:
        with pytest.raises(InputError, match=message):
            way()


def test_an_index_and_a_column_of_ids_need_a_choice():
    frame = pd.DataFrame({"id": ["a", "b"], "x": [0.1, 0.2], "right": [1, 0]}, index=[9, 4])
    ways = [
        lambda: Population.from_table(frame, proxy="x"),
        lambda: Population.from_estimator(Model(), frame),
        lambda: stratal.Sample.from_labelled(frame, value="right", population_size=10),
    ]
    for way in ways:
        with pytest.raises(InputError, match="index 'index' and the column 'id'"):
            way()
    assert values_by_id(Population.from_table(frame, proxy="x", id="id")) == {"a": 0.1, "b": 0.2}
    assert values_by_id(Population.from_table(frame, proxy="x", id="index")) == {9: 0.1, 4: 0.2}
    assert values_by_id(Population.from_estimator(Model(), frame, ids=frame["id"])).keys() == {"a", "b"}


def test_columns_of_different_indexes_are_refused():
    proxy = pd.Series([0.1, 0.2], index=["a", "b"])
    with pytest.raises(InputError, match="indexes of 'proxy' and 'groups=kind' differ"):
        Population.from_arrays(proxy=proxy, groups={"kind": pd.Series(["u", "v"], index=["b", "a"])})


def test_rows_count_from_0_in_files_as_in_arrays(tmp_path):
    (tmp_path / "p.csv").write_text("x\n0.1\n0.2\n")
    frame = pd.DataFrame({"x": [0.1, 0.2]})
    populations = [
        Population.read(tmp_path / "p.csv", id="row", proxy="x"),
        Population.read(tmp_path / "p.csv", id="row", proxy="x", missing="own-stratum"),
        Population.from_table(frame, id="row", proxy="x"),
        Population.from_arrays(proxy=frame["x"]),
    ]
    for population in populations:
        assert values_by_id(population) == {0: 0.1, 1: 0.2}
        assert population.row_base == 0


def test_a_sample_of_numbered_rows_is_extended_from_any_reading(tmp_path):
    (tmp_path / "p.csv").write_text("x\n" + "\n".join(f"{row / 50}" for row in range(50)))
    population = Population.read(tmp_path / "p.csv", id="row", proxy="x")
    sample = stratal.designs.SimpleRandom(budget=5).draw(population, seed=1)
    read = stratal.Sample.read(sample.write(tmp_path / "s.parquet"))
    assert read.question.row_base == 0
    again = Population.read(tmp_path / "p.csv", id="row", proxy="x", missing="own-stratum")
    assert stratal.next_round(read, additional=3, population=again).ids.tolist()[:5] == sample.ids.tolist()


def test_a_model_without_a_frame_is_as_before():
    model = SimpleNamespace(classes_=CLASSES, predict_proba=lambda rows: [[0.9, 0.1]] * 2)
    assert Population.from_estimator(model, [[1], [2]]).numbered_by_row
