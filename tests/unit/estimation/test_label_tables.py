"""Labels in a dataframe mean the same to every function that takes labels."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import stratal
from stratal.errors import InputError, StratalError

LABELS = [1, 1, 0, 1]
TABLES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "columns": dict,
    "index": lambda columns: pd.DataFrame(columns).set_index("id"),
}


@pytest.fixture(scope="module")
def sample():
    population = stratal.Population.from_arrays(ids=list("abcdef"), proxy=[0.9, 0.8, 0.3, 0.6, 0.7, 0.2])
    return stratal.designs.SimpleRandom(budget=4).draw(population, seed=7)


@pytest.mark.parametrize("kind", TABLES)
def test_every_function_takes_a_table(sample, kind):
    table = TABLES[kind]({"id": sample.ids.tolist()[::-1], "label": LABELS[::-1]})
    expected = stratal.estimate(sample, LABELS)

    assert stratal.estimate(sample, table).value == expected.value
    assert stratal.evaluate(sample, table).estimate.value == expected.value
    assert stratal.findings(sample, table).to_dict()["estimate"]["estimate"] == expected.value


def test_a_column_of_another_name_is_an_error_in_every_function(sample):
    table = pd.DataFrame({"id": sample.ids.tolist(), "outcome": LABELS})

    for ask in (stratal.estimate, stratal.evaluate):
        with pytest.raises(StratalError, match="no column 'label'"):
            ask(sample, table)


def test_two_columns_of_labels_are_an_error_in_every_function(sample):
    table = pd.DataFrame({"id": sample.ids.tolist(), "label": LABELS, "Label": LABELS})

    for ask in (stratal.estimate, stratal.evaluate):
        with pytest.raises(InputError, match="several columns may contain the labels"):
            ask(sample, table)
