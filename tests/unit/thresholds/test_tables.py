"""Thresholds of a population whose rows stay in an engine: the same sample, set and files as in memory."""

from __future__ import annotations

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import stratal

N = 3000


def test_a_table_gives_the_same_sample_set_and_files_as_arrays(tmp_path):
    rng = np.random.default_rng(3)
    toxic = rng.random(N) < 0.1
    signal = 2.5 * (rng.normal(0, 1, N) + 2.5 * toxic)
    score = 1 / (1 + np.exp(-(np.log(0.1 / 0.9) + signal - 2.5**2 / 2)))
    pq.write_table(pa.table({"id": np.arange(N), "score": score}), tmp_path / "units.parquet")
    table = ibis.duckdb.connect().read_parquet(tmp_path / "units.parquet")
    populations = [
        stratal.Population.from_table(table, id="id", proxy="score", predicts="class:toxic"),
        stratal.Population.from_arrays(proxy={"score": score}, predicts="class:toxic", ids=np.arange(N)),
    ]
    results = []
    for place, population in enumerate(populations):
        sample = stratal.plan(population, 150, estimand="precision@threshold=.5,.8").draw(seed=2)
        labels = {unit: "toxic" if toxic[int(unit)] else "fine" for unit in sample.ids.tolist()}
        result = stratal.threshold(sample, labels, "precision>=.6", population=population)
        result.write(tmp_path / str(place))
        accepted = (tmp_path / str(place) / "accepted.csv").read_text().splitlines()[1:]
        results.append(
            (
                sorted(map(int, sample.ids.tolist())),
                result.verdict,
                [row.items for row in result.candidates],
                {int(line.split(",")[0]) for line in accepted},
            )
        )

    assert results[0] == results[1]
    assert len(results[0][3]) > 100
