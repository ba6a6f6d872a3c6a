"""Plan, draw and estimate on every binary set, by the command and by Python: the same numbers."""

from __future__ import annotations

import csv
import json

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import stratal
from stratal.cli.application import app

BINARY_SETS = (
    "birds_resnet50", "cifar10_vgg", "forest", "galaxies", "gsm8k_models", "imagenet_golden_crowd",
    "nq301_llmjudge",
)  # fmt: skip


def run(*words):
    result = CliRunner().invoke(app, [*map(str, words), "--json"], catch_exceptions=False)
    assert result.exit_code == 0
    return json.loads(result.stdout)


@pytest.mark.parametrize("name", BINARY_SETS)
def test_the_command_and_python_agree(shared, tmp_path, name):
    file = shared / "data" / f"{name}.parquet"
    table = pq.read_table(file, columns=["id", "z"])
    truth = dict(zip(table["id"].to_pylist(), table["z"].to_pylist(), strict=True))

    options = ("--id", "id", "--proxy", "proxy", "--budget", 200)
    planned = run("plan", file, *options)
    drawn = run("draw", file, *options, "--seed", 7, "--output", tmp_path / "audit")
    rows = list(csv.DictReader((tmp_path / "audit" / "to_label.csv").read_text().splitlines()))
    lines = ["id,label", *(f"{json.dumps(row['id'])},{truth[row['id']]}" for row in rows)]
    (tmp_path / "labels.csv").write_text("\n".join(lines) + "\n")
    result = run("estimate", drawn["sample"], tmp_path / "labels.csv")
    for entry in ("more_labels", "quantity"):  # the command's own
        result.pop(entry)

    plan = stratal.plan(stratal.Population.read(file, id="id", proxy="proxy"), budget=200)
    sample = plan.draw(seed=7)
    estimate = stratal.estimate(sample, {unit: truth[unit] for unit in sample.ids.tolist()})

    assert plan.to_dict() == planned
    assert [row["id"] for row in rows] == sample.ids.tolist()
    described = estimate.to_dict()
    described.pop("quantity")
    assert described == result
    exact = sum(truth.values()) / len(truth)
    assert abs(estimate.value - exact) < 5 * estimate.standard_error


@pytest.mark.parametrize("name", BINARY_SETS)
def test_arrays_with_ids_give_the_same_sample_as_the_file(shared, name):
    file = shared / "data" / f"{name}.parquet"
    table = pq.read_table(file, columns=["id", "proxy"])
    arrays = stratal.Population.from_arrays(proxy=table["proxy"].to_numpy(), ids=table["id"].to_pylist())

    one = stratal.plan(arrays, budget=150).draw(seed=11)
    other = stratal.plan(stratal.Population.read(file, proxy="proxy"), budget=150).draw(seed=11)

    assert one.ids.tolist() == other.ids.tolist()
    assert one.stratum.tolist() == other.stratum.tolist()
    assert one.summary.proxy_means == pytest.approx(other.summary.proxy_means, rel=1e-12)
