"""A sample meets its population again: any change is refused, and no other form of the same rows."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stratal
from stratal.designs import ClusterSample, Poisson, ProportionalToSize, SimpleRandom, Systematic
from stratal.designs.extending import require_same_population
from stratal.errors import InputError
from stratal.randomness import id_texts

Columns = dict[str, list[Any]]


@dataclass(frozen=True, kw_only=True)
class Case:
    """Rows, what their columns are, and a sample of them that was written and read."""

    columns: Columns
    proxies: list[str]
    groups: list[str]
    features: list[str]
    shown: list[str]
    sample: stratal.Sample

    @property
    def drawn(self) -> set[str]:
        return set(id_texts(self.sample.ids))

    @property
    def keywords(self) -> dict[str, Any]:
        named = {"proxy": self.proxies, "groups": self.groups, "features": self.features, "show": self.shown}
        return {"id": "id", **named}


def random_case(seed: int, folder: Path) -> Case:
    """Return rows of random kinds, and a sample of a random design."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(30, 300))
    ids = {
        "numbers": lambda: rng.permutation(5 * n)[:n].tolist(),
        "padded": lambda: [f"{number:05d}" for number in rng.permutation(3 * n)[:n].tolist()],
        "words": lambda: [f"ünit {number}, {'x' * (number % 3)}" for number in range(n)],
        "long": lambda: [str(10**20 + 7 * number) for number in range(n)],
    }[str(rng.choice(["numbers", "padded", "words", "long"]))]()
    kinds: list[Callable[[], Any]] = [
        lambda: rng.random(n),
        lambda: np.round(rng.beta(5, 1, n), 2),
        lambda: 100 * rng.normal(size=n),
        lambda: rng.random(n).astype(np.float32).astype(np.float64),
        lambda: np.where(np.arange(n) == 3, 1e30, rng.random(n)),
    ]
    columns: Columns = {"id": ids}
    proxies = ["confidence", "judge"][: int(rng.integers(1, 3))]
    features = ["length"][: int(rng.integers(0, 2))]
    for name in (*proxies, *features):
        columns[name] = kinds[int(rng.integers(len(kinds)))]().tolist()
    groups = ["language", "year"][: int(rng.integers(0, 3))]
    columns |= {"language": rng.choice(["de", "en", "日本"], n).tolist()} if groups else {}
    columns |= {"year": rng.integers(2000, 2006, n).tolist()} if len(groups) > 1 else {}
    shown = ["text", "score"][: int(rng.integers(0, 3))]
    columns |= {"text": [f"text {k}, with a comma" for k in range(n)]} if shown else {}
    columns |= {"score": np.round(rng.random(n), 4).tolist()} if len(shown) > 1 else {}
    found = Case(columns=columns, proxies=proxies, groups=groups, features=features, shown=shown, sample=None)
    population, budget = READERS["arrays"](found, folder, rng), int(rng.integers(4, n // 3))
    designs: list[Callable[[], stratal.Sample]] = [
        lambda: SimpleRandom(budget=budget).draw(population, seed),
        lambda: stratal.plan(population, budget=budget, minimum=1).draw(seed),
        lambda: Poisson(probability=0.3).draw(population, seed),
        lambda: ProportionalToSize(budget=budget, size="equal").draw(population, seed),
        lambda: Systematic(budget=budget).draw(population, seed),
    ]
    if groups:
        designs.append(lambda: ClusterSample(cluster="language", n_clusters=2).draw(population, seed))
        designs.append(lambda: stratal.plan(population, budget=budget, minimum=1, by="language").draw(seed))
    sample = designs[int(rng.integers(len(designs)))]()
    path = sample.write(folder / f"sample.{'parquet' if rng.random() < 0.5 else 'csv'}")
    return Case(**{**vars(found), "sample": stratal.Sample.read(path)})


# ---- the same rows in another form


def shuffled(columns: Columns, rng: np.random.Generator) -> Columns:
    order = rng.permutation(len(columns["id"])).tolist()
    return {name: [values[row] for row in order] for name, values in columns.items()}


def as_arrays(case: Case, folder: Path, rng: np.random.Generator) -> stratal.Population:
    rows = shuffled(case.columns, rng)
    return stratal.Population.from_arrays(
        ids=rows["id"],
        proxy={name: rows[name] for name in case.proxies},
        groups={name: rows[name] for name in case.groups},
        features={name: rows[name] for name in case.features},
        show={name: rows[name] for name in case.shown},
    )


def as_csv(case: Case, folder: Path, rng: np.random.Generator) -> stratal.Population:
    rows = shuffled(case.columns, rng)
    with (folder / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(rows)
        writer.writerows(zip(*rows.values(), strict=True))
    return stratal.Population.read(folder / "rows.csv", **case.keywords)


def as_json_lines(case: Case, folder: Path, rng: np.random.Generator) -> stratal.Population:
    rows = shuffled(case.columns, rng)
    records = (dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True))
    (folder / "rows.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return stratal.Population.read(folder / "rows.jsonl", **case.keywords)


def as_parquet(case: Case, folder: Path, rng: np.random.Generator) -> stratal.Population:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(shuffled(case.columns, rng)), folder / "rows.parquet")
    return stratal.Population.read(folder / "rows.parquet", **case.keywords)


def as_pandas(case: Case, folder: Path, rng: np.random.Generator) -> stratal.Population:
    import pandas as pd

    return stratal.Population.from_table(pd.DataFrame(shuffled(case.columns, rng)), **case.keywords)


def as_polars(case: Case, folder: Path, rng: np.random.Generator) -> stratal.Population:
    import polars as pl

    return stratal.Population.from_table(pl.DataFrame(shuffled(case.columns, rng)), **case.keywords)


def as_own_table(case: Case, folder: Path, rng: np.random.Generator) -> stratal.Population:
    import ibis
    import pyarrow as pa

    connection = ibis.duckdb.connect()
    table = connection.create_table("rows", ibis.memtable(pa.table(shuffled(case.columns, rng))))
    return stratal.Population.from_table(table, **case.keywords)


READERS: dict[str, Callable[[Case, Path, np.random.Generator], stratal.Population]] = {
    "arrays": as_arrays, "csv": as_csv, "json lines": as_json_lines, "parquet": as_parquet,
    "pandas": as_pandas, "polars": as_polars, "own table": as_own_table,
}  # fmt: skip


# ---- changes


def two_that_differ(values: list[Any], rng: np.random.Generator) -> tuple[int, int]:
    """Return two rows with different values."""
    for one in rng.permutation(len(values)).tolist():
        others = [row for row, value in enumerate(values) if value != values[one]]
        if others:
            return one, int(rng.choice(others))
    raise AssertionError("all values are the same")


def change(case: Case, rng: np.random.Generator) -> tuple[str, Columns]:
    """Return what was changed, and the changed columns."""
    columns = {name: list(values) for name, values in case.columns.items()}
    n, drawn = len(columns["id"]), case.drawn
    told = [*case.proxies, *case.features, *case.groups]
    kinds = ["a unit fewer", "another id", "a unit more", "exchanged", "permuted", "replaced", "shifted"]
    kind = str(rng.choice([*kinds, *(["shown", "shown"] if case.shown else [])]))
    row = int(rng.integers(n))
    name = str(rng.choice(told))
    values = columns[name]
    if kind == "a unit fewer":
        return kind, {column: kept[:row] + kept[row + 1 :] for column, kept in columns.items()}
    if kind == "a unit more":
        fresh = 10**7 if isinstance(columns["id"][0], int) else "fresh"
        added = {column: [*kept, fresh if column == "id" else kept[0]] for column, kept in columns.items()}
        return kind, added
    if kind == "another id":
        columns["id"][row] = 10**7 if isinstance(columns["id"][0], int) else "fresh"
    elif kind == "exchanged":
        one, other = two_that_differ(values, rng)
        values[one], values[other] = values[other], values[one]
    elif kind == "permuted":
        one, other = two_that_differ(values, rng)
        order = rng.permutation(n).tolist()
        columns[name] = [values[at] for at in order]
        if columns[name] == case.columns[name]:
            columns[name][one], columns[name][other] = columns[name][other], columns[name][one]
    elif kind == "replaced":
        one, other = two_that_differ(values, rng)
        values[one] = values[other]
    elif kind == "shifted":
        name = str(rng.choice([*case.proxies, *case.features]))
        row = next(at for at in rng.permutation(n).tolist() if 0 < abs(columns[name][at]) < 1e29)
        columns[name][row] *= 1 + 1e-6
    else:
        name = str(rng.choice(case.shown))
        row = next(at for at in rng.permutation(n).tolist() if str(columns["id"][at]) in drawn)
        columns[name][row] = "other" if name == "text" else columns[name][row] + 0.5
    return f"{kind}: {name}", columns


def larger_design(sample: stratal.Sample) -> Any:
    """Return a design that extends the sample's, or None where it has none."""
    from stratal.errors import StratalError

    try:
        return sample.design.larger_design(sample, 2) if sample.size + 2 <= sample.population_size else None
    except StratalError:
        return None


def refused(case: Case, population: stratal.Population) -> None:
    """Require that the sample meets this population nowhere."""
    with pytest.raises(InputError, match="this is not the population from which the sample was drawn"):
        require_same_population(case.sample, population)
    design = larger_design(case.sample)
    if design is not None:
        with pytest.raises(InputError, match="this is not the population"):
            stratal.next_round(case.sample, design=design, population=population)


def changed_pair(seed: int, folder: Path) -> None:
    rng = np.random.default_rng([seed, 1])
    case = random_case(seed, folder)
    what, columns = change(case, rng)
    reader = str(rng.choice(list(READERS))) if rng.random() < 0.3 else "arrays"
    population = READERS[reader](Case(**{**vars(case), "columns": columns}), folder, rng)
    try:
        refused(case, population)
    except pytest.fail.Exception as failure:
        pytest.fail(f"seed {seed}, {reader}, {what}: {failure}")


def same_pair(seed: int, folder: Path) -> None:
    rng = np.random.default_rng([seed, 2])
    case = random_case(seed, folder)
    reader = list(READERS)[seed % len(READERS)]
    population = READERS[reader](case, folder, rng)
    try:
        assert require_same_population(case.sample, population) is population
    except InputError as error:
        pytest.fail(f"seed {seed}, {reader}: {error}")
    design = larger_design(case.sample)
    if design is not None and seed % 5 == 0:
        assert stratal.next_round(case.sample, design=design, population=population).size >= case.sample.size


def test_a_changed_population_is_refused(tmp_path):
    for seed in range(60):
        changed_pair(seed, tmp_path)


def test_the_same_population_in_another_form_is_taken(tmp_path):
    for seed in range(28):
        same_pair(seed, tmp_path)


@pytest.mark.slow
def test_none_of_1000_changed_populations_is_taken(tmp_path):
    for seed in range(1000, 2000):
        changed_pair(seed, tmp_path)


@pytest.mark.slow
def test_none_of_1000_unchanged_populations_is_refused(tmp_path):
    for seed in range(1000, 2000):
        same_pair(seed, tmp_path)
