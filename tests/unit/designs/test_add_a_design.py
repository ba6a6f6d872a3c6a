"""The design of the page "add a design" is one file, and all that takes a design takes it."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.tiers import cells

import stratal
import stratal.designs
from stratal.designs import Design
from stratal.report.document import describe_method

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "project" / "add-a-design.md").read_text()
CODE = re.search(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[1]


@pytest.fixture
def bernoulli(tmp_path, monkeypatch):
    (tmp_path / "bernoulli.py").write_text(CODE)
    monkeypatch.setattr(stratal.designs, "__path__", [*stratal.designs.__path__, str(tmp_path)])
    Design.registry.pop("bernoulli", None)  # as the page itself may have been run
    yield Design.class_of_kind("bernoulli")
    Design.registry.pop("bernoulli", None)
    sys.modules.pop("stratal.designs.bernoulli", None)


def test_one_file_is_drawn_written_read_extended_and_estimated(bernoulli, tmp_path):
    population = stratal.Population.from_arrays(proxy=np.linspace(0.1, 0.9, 400))
    sample = bernoulli(budget=80).draw(population, seed=7)
    path = sample.write(tmp_path / "sample.parquet")
    del Design.registry["bernoulli"]
    del sys.modules["stratal.designs.bernoulli"]

    again = stratal.Sample.read(path)

    assert again.design.to_dict() == {"kind": "bernoulli", "budget": 80}
    assert again.ids.tolist() == sample.ids.tolist()
    labels = (np.arange(sample.size) % 4 > 0).astype(float)
    found = stratal.estimate(again, labels)
    low, high = found.confidence_interval()
    assert 0.6 < low < found.value < high < 0.9
    larger = stratal.next_round(again, additional=40, population=population)
    assert set(sample.ids.tolist()) < set(larger.ids.tolist())
    said = describe_method(found.to_dict(), again.design.report_description)["sentences"][0]
    assert "a Bernoulli sample" in said


@pytest.mark.parametrize(
    "kind", ["no-such", "", "__init__", "os.path", "../sample", "sample.Sample", None, 7]
)
def test_nothing_else_is_looked_for_by_a_kind(kind):
    assert Design.class_of_kind(kind) is None


@pytest.mark.parametrize(
    "kind",
    cells(
        ["simple-random", "post-stratified", "proportional-to-size", "given-weights", "separate-samples"],
        fast=["simple-random", "post-stratified"],
    ),
)
def test_a_kind_is_found_in_a_new_process_if_its_module_has_another_name(kind):
    """Samples of these kinds could not be read: their modules were not imported any more."""
    code = f"from stratal.designs.sample import Design; print(Design.class_of_kind({kind!r}).kind)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == kind


def test_an_unknown_kind_is_refused_with_all_kinds_in_a_new_process():
    code = "from stratal.designs.sample import Design; Design.from_dict({'kind': 'no-such'})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    for kind in ("clusters", "post-stratified", "simple-random", "systematic"):
        assert kind in found.stderr


def test_over_all_samples_its_mean_and_its_variance_are_unbiased(bernoulli):
    """Of four units, each drawn with probability a half: 16 samples, equally likely."""
    z = np.array([0.0, 1.0, 1.0, 3.0])
    population = stratal.Population.from_arrays(ids=range(4))
    one = bernoulli(budget=2).draw(population, seed=1)
    values, variances = [], []
    for drawn in range(16):
        units = np.flatnonzero([drawn >> k & 1 for k in range(4)])
        sample = stratal.designs.Sample(
            ids=units,
            stratum=np.zeros(len(units), np.int64),
            inclusion_probability=np.full(len(units), 0.5),
            proxies=np.empty((len(units), 0)),
            proxy_info=(),
            summary=one.summary,
            design=one.design,
            seed=1,
        )
        weighting = sample.weighting() if len(units) else None
        values.append(0.0 if weighting is None else weighting.mean(z[units, None])[0])
        variances.append(0.0 if weighting is None else weighting.covariance(z[units, None])[0, 0])

    assert np.mean(values) == pytest.approx(z.mean())
    assert np.mean(variances) == pytest.approx(np.var(values))


def test_the_command_draws_it(tmp_path):
    (tmp_path / "bernoulli.py").write_text(CODE)
    (tmp_path / "p.csv").write_text("id,proxy\n" + "".join(f"{k},{k / 300}\n" for k in range(300)))
    script = (
        "import sys, stratal.designs; stratal.designs.__path__.append(sys.argv.pop(1));"
        "from stratal.cli.application import main; main()"
    )
    options = ["draw", "p.csv", "--design", "bernoulli", "--budget", "60", "--output", "audit"]
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "audit" / "to_label.csv").read_text().startswith("id,label")
