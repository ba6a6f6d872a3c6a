"""The papers' reproductions: loaders, populations, pages; each paper once, quickly."""

import json

import numpy as np
import pytest
from papers.claims import Number
from papers.files import prediction_files
from papers.gaussian import SCENARIOS, Scenario, run_scenario
from papers.libsvm import libsvm_predictions
from papers.scored import SHAPES, ScoreShape
from tests.tiers import SLOW

from papers import PAPERS, Page, reproduce
from stratal.errors import InputError


def write_predictions(directory, name, z, proxy):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"z": z, "proxy": proxy}), directory / f"{name}.parquet")


def judged(size, seed):
    rng = np.random.default_rng(seed)
    proxy = rng.beta(2, 2, size)
    return (rng.random(size) < proxy).astype(float), proxy


def page_of(directory):
    page = Page(title="A paper", directory=directory)
    page.claim(where="§1", says="a | b", found="c", numbers=[Number(value=2.0, high=np.float64(1.0))])
    page.add_table("T", ["n"], [[1]])
    page.write()
    return page


def test_page_is_written_with_claims_and_json(tmp_path):
    path = page_of(tmp_path / "out").directory / "page.md"

    assert "a \\| b" in path.read_text()
    assert (tmp_path / "out" / "t.csv").read_text().split() == ["n", "1"]
    assert "**no**" in path.read_text()
    assert json.loads((tmp_path / "out" / "numbers.json").read_text())["claims"][0]["agrees"] is False


def test_prediction_files_take_what_is_usable(tmp_path):
    z, proxy = judged(50, 1)
    write_predictions(tmp_path, "good", z, proxy)
    write_predictions(tmp_path, "rating", 5 * z, proxy)
    write_predictions(tmp_path, "wins", z * 0.5, proxy)
    found = {entry.name: entry for entry in prediction_files(tmp_path)}

    assert set(found) == {"good", "wins"}
    assert found["good"].binary
    assert found["wins"].win_rate
    with pytest.raises(InputError, match="no directory"):
        prediction_files(tmp_path / "missing")


@pytest.mark.parametrize(("name", "file"), [("news20", "news20.binary"), ("epsilon", "epsilon_normalized")])
def test_libsvm_files_are_read_and_trained_on(tmp_path, monkeypatch, name, file):
    datasets = pytest.importorskip("sklearn.datasets")
    from papers import libsvm

    rng = np.random.default_rng(2)
    features = rng.normal(size=(400, 5))
    labels = np.where(features[:, 0] + 0.5 * rng.normal(size=400) > 0, 1, -1)
    datasets.dump_svmlight_file(features, labels, str(tmp_path / file))
    monkeypatch.setitem(libsvm.TRAINING_SIZES, name, 100)
    found = libsvm_predictions(tmp_path, name)

    assert len(found.z) == 300
    assert found.truth > 0.75
    assert np.corrcoef(found.z, found.proxy)[0, 1] > 0.2
    assert np.all((found.proxy >= 0) & (found.proxy <= 1))


@pytest.mark.parametrize("name", SHAPES)
def test_simulated_populations_have_the_shape_that_was_asked_for(name):
    shape = SHAPES[name]
    found = shape.draw(name, 3)
    order = np.argsort(found.proxy)
    fine = np.array([part.mean() for part in np.array_split(found.z[order], 100)])
    explained = 1 - np.mean(fine * (1 - fine)) / (found.truth * (1 - found.truth))

    assert len(found.z) == shape.size
    assert found.truth == pytest.approx(shape.accuracy, abs=0.012)
    assert explained == pytest.approx(shape.explained, abs=0.06)


def test_score_shapes_may_be_small():
    assert len(ScoreShape(size=50, accuracy=0.8, explained=0.1).draw("a", 1).z) == 50


def test_known_lambda_gives_the_known_variance_of_figure_1():
    """Homogeneous strata: λ* = Cov/Var = 1/2, so Var = (1 − 1/2)/n + (1/4 · 2)/N to leading order."""
    n, trials = 400, 6000
    found = run_scenario(SCENARIOS["homogeneous"], (n,), trials=trials, seed=1)
    expected = np.sqrt(0.5 / n + 0.5 / 10_000)

    for arm in ("PPI++", "StratPPI proportional", "StratPPI optimal"):
        assert found[arm]["rmse"][0] == pytest.approx(expected, rel=4 / np.sqrt(2 * trials))
    assert found["classical"]["rmse"][0] == pytest.approx(1 / np.sqrt(n), rel=4 / np.sqrt(2 * trials))
    assert abs(found["classical"]["coverage"][0] - 0.9) < 4 * np.sqrt(0.09 / trials)


def test_optimal_shares_follow_the_residual_deviations():
    shares = Scenario(biases=(0.0, 0.0), noises=(0.5, 2.0)).optimal_shares

    assert shares[1] / shares[0] == pytest.approx(2.0)
    assert shares.sum() == pytest.approx(1.0)


@pytest.mark.slow
def test_stratppi_on_given_files(tmp_path):
    pytest.importorskip("matplotlib")
    data = tmp_path / "data"
    data.mkdir()
    write_predictions(data, "galaxies", *judged(600, 1))
    write_predictions(data, "other", *judged(300, 2))
    page = reproduce("stratppi", tmp_path / "out", data=data, quick=not SLOW)

    assert {claim.where for claim in page.claims} >= {"Fig. 1, left", "Fig. 2, Galaxy", "Prop. 1, §5.2"}
    assert (tmp_path / "out" / "figure_2_galaxies.png").exists()


def test_unknown_papers_and_directories_are_refused(tmp_path):
    assert PAPERS == ("fogliato", "kumar-raj", "stratppi", "open-questions")
    with pytest.raises(InputError, match="no such paper"):
        reproduce("neyman", tmp_path)
    with pytest.raises(InputError, match="no directory"):
        reproduce("stratppi", tmp_path, data=tmp_path / "missing")


def test_command_prints_what_it_wrote(tmp_path, monkeypatch):
    from click import testing
    from papers.reproduction import app

    monkeypatch.setattr("papers.reproduction.reproduce", lambda paper, target, **_: page_of(target))
    words = ["stratppi", "--quick", "--output", str(tmp_path / "out")]
    plain = testing.CliRunner().invoke(app, words, catch_exceptions=False)
    found = json.loads(testing.CliRunner().invoke(app, [*words, "--json"], catch_exceptions=False).stdout)

    assert plain.exit_code == 0
    assert "page.md" in plain.stdout
    assert {"title", "claims", "files"} == set(found)
    assert found["claims"][0]["agrees"] is False


def test_data_that_cannot_be_read_are_named(tmp_path):
    (tmp_path / "junk.parquet").write_text("junk")
    with pytest.raises(InputError, match=r"junk\.parquet: cannot be read as Parquet"):
        prediction_files(tmp_path)
    (tmp_path / "junk.parquet").unlink()
    write_predictions(tmp_path, "words", ["a", "b"], [0.1, 0.2])
    assert prediction_files(tmp_path) == []


def test_libsvm_files_that_cannot_be_used_are_named(tmp_path):
    pytest.importorskip("sklearn")
    (tmp_path / "news20.binary").write_text("hello world\n")
    with pytest.raises(InputError, match=r"news20\.binary: cannot be read as LIBSVM"):
        libsvm_predictions(tmp_path, "news20")
    (tmp_path / "news20.binary").write_text("1 1:0.5\n-1 1:0.25\n")
    with pytest.raises(InputError, match="too few items to train on"):
        libsvm_predictions(tmp_path, "news20")


def test_a_reproduction_that_fails_leaves_nothing(tmp_path):
    pytest.importorskip("matplotlib")
    data, output = tmp_path / "data", tmp_path / "output"
    data.mkdir()
    (data / "junk.parquet").write_text("junk")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        reproduce("stratppi", output, data=data, quick=not SLOW)
    (tmp_path / "file").write_text("kept")
    with pytest.raises(InputError, match="file: is not a directory"):
        reproduce("stratppi", tmp_path / "file" / "output", quick=not SLOW)
    with pytest.raises(InputError, match="the seed must be a whole number"):
        reproduce("stratppi", output, quick=True, seed=-1)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "file"]
