"""Addresses: fetched only when asked, through fsspec, from a loopback server and from moto's S3."""

from __future__ import annotations

import functools
import http.server
import os
import threading
import warnings

import numpy as np
import pandas as pd
import pytest

import stratal
from stratal.errors import InputError
from stratal.population import Population
from stratal.population.inspection import describe_columns

FILES = ("rows.parquet", "rows.csv", "rows.jsonl")


@pytest.fixture
def folder(tmp_path):
    frame = pd.DataFrame(
        {"id": [f"u{n}" for n in range(50)], "proxy": np.linspace(0, 1, 50), "text": "…" * 50}
    )
    frame.to_parquet(tmp_path / "rows.parquet")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_json(tmp_path / "rows.jsonl", orient="records", lines=True)
    return tmp_path


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Print nothing."""


@pytest.fixture
def web(folder):
    pytest.importorskip("fsspec")
    pytest.importorskip("aiohttp")
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))
    )
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def same_as_here(folder, name, address):
    here = Population.read(folder / name, proxy="proxy")
    there = Population.read(address, proxy="proxy", remote=True)
    samples = [
        stratal.designs.SimpleRandom(budget=9).draw(population, seed=1) for population in (here, there)
    ]
    assert samples[0].ids.tolist() == samples[1].ids.tolist()
    assert samples[0].proxies.tolist() == samples[1].proxies.tolist()


@pytest.mark.parametrize("name", FILES)
def test_a_file_on_the_web_is_the_file_here(folder, web, name):
    same_as_here(folder, name, f"{web}/{name}")


@pytest.mark.parametrize("name", FILES)
def test_an_address_may_carry_a_query(folder, web, name):
    same_as_here(folder, name, f"{web}/{name}?token=1")


def test_inspection_reads_it_too(web):
    assert describe_columns(f"{web}/rows.csv", remote=True)["rows"] == 50


@pytest.mark.parametrize(
    "address", ["https://example.org/p.csv", "s3://bucket/p.parquet", "http:/example.org/p.csv"]
)
def test_nothing_is_fetched_unless_asked(address):
    with pytest.raises(InputError, match=r"remote files are read only on request\. Add remote=True, or"):
        Population.read(address, proxy="proxy")


@pytest.mark.parametrize("name", ["none.parquet", "none.csv"])
def test_what_is_not_there_is_one_sentence(web, name):
    with pytest.raises(InputError, match=rf"{name} cannot be fetched"):
        Population.read(f"{web}/{name}", proxy="proxy", remote=True)


def test_the_command_takes_an_address(folder, web, run_command):
    assert "--remote" in run_command("plan", f"{web}/rows.csv", "--proxy", "proxy", "--budget", 10).message

    done = run_command("plan", f"{web}/rows.csv", "--remote", "--proxy", "proxy", "--budget", 10)

    assert "Label 10 of 50 units" in done.stdout
    assert "--remote" in done.stdout.splitlines()[-1]


@pytest.mark.parametrize("name", FILES)
def test_a_file_in_s3_is_the_file_here(folder, name, monkeypatch):
    pytest.importorskip("s3fs")
    boto3 = pytest.importorskip("boto3")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0)
    server.start()
    _, port = server.get_host_and_port()
    for key, value in {
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
    }.items():
        monkeypatch.setenv(key, value)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the clients' own
            client = boto3.client("s3")
            client.create_bucket(Bucket="predictions")
            client.upload_file(str(folder / name), "predictions", name)
            same_as_here(folder, name, f"s3://predictions/{name}")
    finally:
        server.stop()


@pytest.mark.parametrize("command", ["doctor", "plan"])
def test_an_address_reaches_spark_with_both_its_slashes(command, monkeypatch, run_command):
    asked = []

    def read(path, reading):
        asked.append(os.fspath(path))
        raise InputError("no Spark here")

    monkeypatch.setattr("stratal.tables.readers.read_on_spark", read)
    budget = ["--budget", 10] if command == "plan" else []
    done = run_command(command, "hdfs://namenode:9000/data/p.parquet", "--engine", "spark", *budget)

    assert done.message == "no Spark here."
    assert asked == ["hdfs://namenode:9000/data/p.parquet"]


def test_an_address_of_another_kind_says_what_reads_it():
    with pytest.raises(InputError, match=r"only Spark reads.*engine=.spark"):
        stratal.Population.read("hdfs://namenode/p.parquet", proxy="proxy", remote=True)
