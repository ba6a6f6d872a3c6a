from __future__ import annotations

import pandas as pd
import pytest

import stratal
from stratal.population.population import require_population


def test_a_population_passes():
    population = stratal.Population.from_arrays(proxy=[0.5])

    assert require_population(population, "plan") is population


def test_the_line_that_is_named_works(tmp_path):
    path = tmp_path / "p.csv"
    pd.DataFrame({"id": ["a", "b", "c"], "score": [0.1, 0.5, 0.9]}).to_csv(path, index=False)
    with pytest.raises(stratal.InputError) as raised:
        stratal.plan(path, 2)
    line = str(raised.value).split("Read the file first: ")[1].rstrip(".")

    population = eval(line.replace("'ID'", "'id'").replace("'PROXY'", "'score'"), {"stratal": stratal})

    assert stratal.plan(population, 2).population_size == 3
