"""What is built on a population works on a table as on arrays: estimands, rounds, learners, regressions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.tiers import cells

import stratal
from stratal.population import Population
from stratal.randomness import id_texts

SIZE = 1200
RNG = np.random.default_rng(17)
SCORE = np.round(RNG.beta(4, 1, SIZE), 4)
LENGTH = RNG.normal(size=SIZE)
ANSWER = np.where(RNG.random(SIZE) < 0.2, "match", "other")
LANGUAGE = RNG.choice(["de", "en"], SIZE)
PEERS = {
    f"peer_{at}": np.where(np.random.default_rng(at).random(SIZE) < share, ANSWER, "none")
    for at, share in enumerate((0.95, 0.8, 0.7))
}
Z = (RNG.random(SIZE) < SCORE).astype(float)
KEYWORDS: dict[str, Any] = {
    "proxy": "score",
    "answers": list(PEERS),
    "features": ["length"],
    "groups": ["answer", "language"],
    "predicted": "answer",
    "bounds": (0, 1),
}


def in_memory() -> Population:
    return Population.from_arrays(
        ids=np.arange(SIZE),
        proxy={
            "peer_agreement": stratal.proxy.peer_agreement(ANSWER, PEERS, ids=np.arange(SIZE)),
            "score": SCORE,
        },
        features={"length": LENGTH},
        groups={"answer": ANSWER, "language": LANGUAGE},
        predicted="answer",
        bounds=(0, 1),
    )


def rows() -> pa.Table:
    columns = {"score": SCORE, "length": LENGTH, "answer": ANSWER, "language": LANGUAGE, **PEERS}
    return pa.table({"id": np.arange(SIZE), **columns}).take(np.random.default_rng(3).permutation(SIZE))


def with_duckdb(request: Any, folder: Path, keywords: dict[str, Any]) -> Population:
    pq.write_table(rows(), folder / "rows.parquet")
    return Population.read(folder / "rows.parquet", **keywords)


def with_postgres(request: Any, folder: Path, keywords: dict[str, Any]) -> Population:
    import ibis

    server = request.getfixturevalue("postgres")
    name = f"whole_product_of_{len(keywords)}"
    server.connect().create_table(name, ibis.memtable(rows()))
    return Population.from_table(server.connect(server.reader).table(name), **keywords)


def with_spark(request: Any, folder: Path, keywords: dict[str, Any]) -> Population:
    request.getfixturevalue("spark")
    pq.write_table(rows(), folder / "rows.parquet")
    return Population.read(folder / "rows.parquet", engine="spark", **keywords)


ENGINES = [with_duckdb, with_postgres, with_spark]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("engine", cells(ENGINES, fast=[with_duckdb]))
def test_a_history_gives_the_same_plan_rounds_and_estimate(
    request: Any, tmp_path: Path, engine: Callable[..., Population]
) -> None:
    known, table = _of_history_in_memory(), _of_history(engine(request, tmp_path, {"history": _history()[0]}))

    assert table[0] == known[0]
    np.testing.assert_allclose(table[1:], known[1:], rtol=1e-9)


@cache
def _history() -> tuple[Any, Any]:
    """Return what 20 models' results tell, and the results of the model that is evaluated."""
    chance = 1 / (1 + np.exp(LENGTH[:, None] - RNG.normal(size=21)))
    results = (np.random.default_rng(8).random((SIZE, 21)) < chance).astype(float)
    return stratal.proxy.fit_history(results[:, :20], ids=np.arange(SIZE)), results[:, 20]


@cache
def _of_history_in_memory() -> tuple[list[int], float, float]:
    return _of_history(Population.from_arrays(ids=np.arange(SIZE), history=_history()[0]))


def _of_history(population: Population) -> tuple[list[int], float, float]:
    """Return the units of two rounds, and the estimate of their labels."""
    outcome = _history()[1]
    first = stratal.plan(population, 60).draw(seed=1)
    labels = outcome[np.asarray(first.ids, np.int64)]
    second = stratal.next_round(first, labels, additional=60, population=population)
    answers = dict(zip(second.ids.tolist(), outcome[np.asarray(second.ids, np.int64)], strict=True))
    found = stratal.estimate(second, answers, population=population)
    return _ids(second), found.value, found.standard_error


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("engine", cells(ENGINES, fast=[with_duckdb, with_postgres]))
def test_all_that_is_built_on_a_population(
    request: Any, tmp_path: Path, engine: Callable[..., Population]
) -> None:
    known, table = _everything_in_memory(), _everything(engine(request, tmp_path, KEYWORDS))

    assert table.keys() == known.keys()
    for name, value in known.items():
        np.testing.assert_allclose(table[name], value, rtol=1e-9, err_msg=name)


@cache
def _everything_in_memory() -> dict[str, Any]:
    return _everything(in_memory())


def _everything(population: Population) -> dict[str, Any]:
    """Return the numbers of each job, and the sorted ids of what is drawn."""
    found: dict[str, Any] = {}
    for estimand in ("f1:match", "mean@language"):
        found[estimand] = _ids(stratal.plan(population, 60, estimand=estimand).draw(seed=1))
    clusters = stratal.strata.stratify(population, "features", 3)
    found["features"] = clusters.sizes
    sample = stratal.plan(population, 80).draw(seed=1)
    labels = Z[np.asarray(sample.ids, np.int64)]
    learned = {"learner": "ridge", "features": ["length"]}
    found["round"] = _ids(stratal.next_round(sample, labels, additional=30, population=population))
    found["learner"] = _ids(
        stratal.next_round(sample, labels, additional=30, population=population, **learned)
    )
    for calibration, used in (("isotonic", {"proxy": "peer_agreement"}), ("ridge", {"features": ["length"]})):
        made = stratal.estimate(sample, labels, population=population, calibration=calibration, **used)
        found[calibration] = [made.value, made.standard_error]
    fitted = stratal.regression.regress(sample, labels, features="length", population=population)
    found["regression"] = fitted.values
    return found


def _ids(sample: stratal.Sample) -> list[int]:
    return sorted(map(int, id_texts(sample.ids)))
