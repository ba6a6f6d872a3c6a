"""The same labels, whichever way they come, are one answer."""

from __future__ import annotations

import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.relations.world import DESIGNS, World, same

import stratal

# Units without a label, and weak proxies, are meant here.
pytestmark = pytest.mark.filterwarnings("ignore::stratal.StratalWarning")

WORLD = World.of(11)
SAMPLE = DESIGNS["planned"](WORLD.population(), 3)
ANSWERED = WORLD.labels(SAMPLE, WORLD.right, 0.85)
ALL = {unit: ANSWERED.get(unit) for unit in SAMPLE.ids.tolist()}
IN_ORDER = [ALL[unit] for unit in SAMPLE.ids.tolist()]

GIVEN = {
    "mapping": lambda: ANSWERED,
    "mapping with None": lambda: ALL,
    "mapping in another order": lambda: dict(sorted(ANSWERED.items(), reverse=True)),
    "list": lambda: IN_ORDER,
    "array": lambda: np.array(IN_ORDER, dtype=float),
    "masked array": lambda: np.ma.masked_invalid(np.array(IN_ORDER, dtype=float)),
    "series": lambda: pd.Series(ANSWERED),
    "nullable series": lambda: pd.Series(ALL, dtype="Int64"),
    "arrow": lambda: pa.array(IN_ORDER),
    "decimals": lambda: {unit: Decimal(int(value)) for unit, value in ANSWERED.items()},
    "missing of every kind": lambda: (
        ANSWERED
        | {
            unit: (None, float("nan"), pd.NA, pd.NaT, np.ma.masked, " ")[number % 6]
            for number, unit in enumerate(unit for unit, value in ALL.items() if value is None)
        }
    ),
    "NumPy scalars": lambda: {unit: np.float32(value) for unit, value in ANSWERED.items()},
    "truth values": lambda: {unit: bool(value) for unit, value in ANSWERED.items()},
    "texts": lambda: {unit: f" {value:g} " for unit, value in ANSWERED.items()},
    "words": lambda: {unit: "Pass" if value else "fail" for unit, value in ANSWERED.items()},
    "Labels": lambda: stratal.Labels(ids=tuple(ANSWERED), values=tuple(ANSWERED.values())),
}


@pytest.mark.parametrize("way", GIVEN)
def test_labels_given_in_any_way_are_the_same(way):
    same(stratal.estimate(SAMPLE, GIVEN[way]()), stratal.estimate(SAMPLE, ANSWERED))


def _frame() -> pd.DataFrame:
    return pd.DataFrame({"id": list(ALL), "label": IN_ORDER})


FILES = {
    "labels.csv": lambda path: _frame().to_csv(path, index=False),
    "semicolons.csv": lambda path: _frame().to_csv(path, index=False, sep=";"),
    "labels.csv.gz": lambda path: _frame().to_csv(path, index=False),
    "labels.parquet": lambda path: _frame().to_parquet(path),
    "labels.feather": lambda path: _frame().to_feather(path),
    "labels.jsonl": lambda path: path.write_text(
        "".join(json.dumps({"id": unit, "label": value}) + "\n" for unit, value in ALL.items())
    ),
    "labels.json": lambda path: _frame().to_json(path, orient="records"),
    "labels.xlsx": lambda path: _frame().to_excel(path, index=False),
    "shuffled.csv": lambda path: _frame().sample(frac=1, random_state=1).to_csv(path, index=False),
    "annotators.csv": lambda path: _frame().assign(annotator="ann").to_csv(path, index=False),
}


@pytest.mark.parametrize("name", FILES)
def test_labels_in_any_file_are_the_same(name, tmp_path):
    FILES[name](tmp_path / name)
    same(stratal.estimate(SAMPLE, stratal.read_labels(tmp_path / name)), stratal.estimate(SAMPLE, ANSWERED))


def test_a_table_of_two_models_is_wide_or_long(tmp_path):
    """One row per unit with a column for each model, or one row per unit and model."""
    from click.testing import CliRunner

    from stratal.cli.application import app

    SAMPLE.write(tmp_path / "sample.parquet")
    wide = pd.DataFrame({"id": list(ANSWERED), "a": list(ANSWERED.values())})
    rival = WORLD.labels(SAMPLE, WORLD.rival_right, 0.85)
    wide["b"] = wide["id"].map(rival)
    wide.to_csv(tmp_path / "wide.csv", index=False)
    long = wide.melt("id", ["a", "b"], "model", "label").sample(frac=1, random_state=1)
    long.to_csv(tmp_path / "long.csv", index=False)
    tables = []
    for words in (["wide.csv", "--compare", "a,b"], ["long.csv", "--model", "model", "--compare", "a,b"]):
        line = ["estimate", str(tmp_path / "sample.parquet"), str(tmp_path / words[0]), *words[1:], "--json"]
        result = CliRunner().invoke(app, line)
        assert result.exit_code == 0, result.output
        found = json.loads(result.stdout)
        tables.append([found["estimate"], found["comparisons"]])

    assert tables[0] == tables[1]
    (pair,) = stratal.compare(SAMPLE, {"a": ANSWERED, "b": rival})
    assert tables[0][1][0]["estimate"] == pytest.approx(pair.value)


@pytest.mark.parametrize("combine", ["mean", "majority"])
def test_the_order_of_annotators_does_not_matter(combine):
    rng = np.random.default_rng(5)
    rows = [
        (unit, who, float(rng.random() < 0.8))
        for unit in ANSWERED
        for who in ("ann", "bob", "eve")[: 1 + 2 * (int(unit[1:]) % 2)]
    ]
    found = []
    for order in (rows, rows[::-1], [rows[k] for k in rng.permutation(len(rows))]):
        ids, people, values = zip(*order, strict=True)
        found.append(
            stratal.estimate(
                SAMPLE, stratal.Labels(ids=ids, values=values, annotators=people), combine=combine
            )
        )
    same(found[0], found[1])
    same(found[0], found[2])


def test_several_annotators_who_agree_are_one():
    twice = stratal.Labels(
        ids=(*ANSWERED, *ANSWERED),
        values=(*ANSWERED.values(), *ANSWERED.values()),
        annotators=("ann",) * len(ANSWERED) + ("bob",) * len(ANSWERED),
    )
    same(stratal.estimate(SAMPLE, twice), stratal.estimate(SAMPLE, ANSWERED))
