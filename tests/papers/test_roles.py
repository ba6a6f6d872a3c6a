"""Predictions by role: one directory, one command, the first paper's table and figures."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from papers.files import prediction_files, write_scores
from papers.kumar_raj_runs import run_set
from papers.reproduction import app
from papers.roles import main, role_tasks, write_role
from papers.sources import case_of_task
from tests.tiers import sized

from papers import reproduce
from stratal.errors import InputError


def logits_of(rng, labels, skill, n_classes=3):
    """A tiny model: Gaussian scores, the true class ahead by `skill`."""
    return rng.normal(size=(len(labels), n_classes)) + skill * np.eye(n_classes)[labels]


def layout(directory, tasks, *, families=()):
    for number, task in enumerate(tasks):
        rng = np.random.default_rng(number)
        labels = rng.integers(0, 3, 600)
        for family in ("", *families):
            # The surrogate of the second task is the less accurate model: roles go by names alone.
            skills = (1.0, 2.0) if number != 1 else (2.0, 1.0)
            for role, skill in zip(("evaluated", "surrogate"), skills, strict=True):
                logits = logits_of(rng, labels, skill)
                embeddings = logits[:, :2] if role == "evaluated" and not family else None
                write_role(
                    directory, task, role + family, logits=logits, labels=labels, embeddings=embeddings
                )
    return directory


def test_one_command_gives_the_table_and_all_figures_of_the_authors_files(tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("sklearn")
    tasks = ["stl10", "mine", *sized((), ("CIFAR-10", "MNIST", "pcam"))]
    directory = layout(tmp_path / "in", tasks, families=sized(("@resnet",), ("@resnet", "@linear-probe")))
    printed = {
        "dataset": "STL-10",
        "srs_df": {"f": 0.75, "f*": 0.31, "f*c": 0.34},
        "ssrs_proportional_ht": {"emb": 0.95, "f": 0.71, "f*": 0.29, "f*c": 0.33},
        "ssrs_neyman_ht": {"f": 0.43, "f*": 0.19, "f*c": 0.23},
    }
    rows = [{**printed, "dataset": name} for name in ("STL-10", "CIFAR-10", "PCam", "SmallNorb (Azimuth)")]
    rows[3]["ssrs_neyman_ht"] = {"f": 0.99, "f*": 1.14, "f*c": 1.11}
    rows[3]["ssrs_proportional_ht"] = {"emb": 1.03, "f": 0.93, "f*": 0.98, "f*c": 1.05}
    (directory / "fogliato_table1.json").write_text(json.dumps({"rows": rows}))
    words = ["fogliato", "--predictions", str(directory), "--quick", "--output", str(tmp_path / "out")]
    found = CliRunner().invoke(app, words, catch_exceptions=False)

    assert found.exit_code == 0
    figures = {path.name for path in (tmp_path / "out").glob("*.png")}
    assert figures == {f"figure_{n}.png" for n in ("1", "2", "3_left", "3_right", "4", "5", "6")}
    claims = json.loads((tmp_path / "out" / "numbers.json").read_text())["claims"]
    assert {c["data"] for c in claims if c["where"].startswith("Table 1, ")} == {
        "stl10",
        *sized((), ("CIFAR-10", "pcam")),
    }
    assert next(c for c in claims if c["where"] == "Table 1, STL-10")["values"][3] != [0.95, 0]
    page = (tmp_path / "out" / "page.md").read_text()
    assert "predictions by role" in page
    assert all(f"| {task} |" in page for task in tasks)
    assert "digits" not in page


def test_roles_go_by_name_and_never_by_accuracy(tmp_path):
    first, second = role_tasks(layout(tmp_path, ["a", "b"], families=("@x",)), seed=0)
    right = {
        role: (model.population.argmax(axis=1) == second.labels).mean()
        for role, model in second.models.items()
    }

    assert right["evaluated"] > right["surrogate"] + 0.1
    assert second.judges == {"evaluated": "surrogate", "evaluated@x": "surrogate@x"}
    assert len(first.labels) == len(first.held_out_labels) == 300
    assert first.features.shape == (300, 2)
    (tmp_path / "a" / "surrogate@x.npz").unlink()
    assert role_tasks(tmp_path, seed=0)[0].judges["evaluated@x"] == "surrogate"


def test_what_is_missing_or_does_not_fit_is_named(tmp_path):
    with pytest.raises(InputError, match=r"holds no predictions.*TASK/evaluated\.npz"):
        role_tasks(tmp_path, seed=0)
    layout(tmp_path, ["a"])
    (tmp_path / "a" / "surrogate.npz").rename(tmp_path / "a" / "vit.npz")
    with pytest.raises(InputError, match=r"no file of the role surrogate.*evaluated\.npz, vit\.npz"):
        role_tasks(tmp_path, seed=0)
    layout(tmp_path, ["a"])
    with pytest.raises(InputError, match="files without a role"):
        role_tasks(tmp_path, seed=0)
    (tmp_path / "a" / "vit.npz").unlink()
    labels, logits = np.zeros(600, int), np.zeros((600, 3))
    write_role(tmp_path, "a", "surrogate", logits=logits, labels=labels)
    with pytest.raises(InputError, match=r"surrogate\.npz is of other rows or classes"):
        role_tasks(tmp_path, seed=0)
    (tmp_path / "a" / "surrogate.npz").write_text("nothing of the kind")
    with pytest.raises(InputError, match=r"surrogate\.npz: cannot be read as NumPy arrays"):
        role_tasks(tmp_path, seed=0)
    with pytest.raises(InputError, match="not an option of this paper"):
        reproduce("stratppi", tmp_path / "out", predictions=tmp_path)


def test_confidences_and_answers_are_enough_for_accuracy(tmp_path):
    """The same tasks with logits and with what is left of them: equal Table 1, and no Figure 4."""
    whole, left = layout(tmp_path / "logits", ["a"]), tmp_path / "confidence"
    arrays = {role: dict(np.load(whole / "a" / f"{role}.npz")) for role in ("evaluated", "surrogate")}
    chances = {role: np.exp(found["logits"]) for role, found in arrays.items()}
    chances = {role: p / p.sum(axis=1, keepdims=True) for role, p in chances.items()}
    answers, labels = chances["evaluated"].argmax(axis=1), arrays["evaluated"]["labels"]
    for role, p in chances.items():
        own = {"predicted": answers} if role == "evaluated" else {}
        write_role(left, "a", role, logits=p[np.arange(600), answers], labels=labels, **own)
    one, other = (
        case_of_task(role_tasks(place, seed=0)[0], "evaluated", "accuracy") for place in (whole, left)
    )

    assert np.array_equal(one.z, other.z)
    for source in ("f", "f*", "f*c"):
        assert other.proxies[source].values == pytest.approx(one.proxies[source].values)
    assert role_tasks(whole, seed=0)[0].has_probabilities("evaluated")
    assert not role_tasks(left, seed=0)[0].has_probabilities("evaluated")
    write_role(left, "a", "evaluated", logits=np.full(600, 0.5), labels=labels)
    with pytest.raises(InputError, match="a confidence and no answers"):
        role_tasks(left, seed=0)
    with pytest.raises(InputError, match="between 0 and 1"):
        write_role(left, "a", "surrogate", logits=np.full(600, 1.5), labels=labels)


def test_the_script_writes_the_other_papers_sets(tmp_path):
    rng = np.random.default_rng(1)
    scores = rng.random(900)
    outcomes = (rng.random(900) < scores).astype(float)
    outcomes[:20] = np.nan
    for name, array in (("scores", scores), ("outcomes", outcomes), ("right", outcomes[20:])):
        np.save(tmp_path / f"{name}.npy", array)
    words = [str(tmp_path / "data"), "judged", "scores", str(tmp_path / "scores.npy")]
    assert CliRunner().invoke(main, [*words, str(tmp_path / "outcomes.npy")]).exit_code == 0
    (found,) = prediction_files(tmp_path / "data")

    assert (found.name, int(found.labelled.sum())) == ("judged", 880)
    assert found.proxy == pytest.approx(scores)
    words[1] = "news20"
    assert CliRunner().invoke(main, [*words, str(tmp_path / "right.npy")]).exit_code == 1
    write_scores(tmp_path / "data", "epsilon", outcomes[20:], 5 * scores[20:])
    run = run_set("epsilon", tmp_path / "data", 2, 0, quick=True)
    assert (run.simulated, run.data, len(run.found.z), run.found.scaled) == (False, "epsilon", 880, False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"logits": np.zeros((3, 2))}, "one row of logits"),
        ({"logits": np.full((4, 2), np.nan)}, "not finite"),
        ({"labels": np.array([0, 1, 2, 0])}, "labels are no classes"),
        ({"labels": np.array([0.0, 1.0, 0.5, 0.0])}, "labels are no classes"),
        ({"embeddings": np.zeros((3, 2))}, "one row of logits"),
    ],
)
def test_predictions_that_cannot_be_are_not_written(tmp_path, change, message):
    with pytest.raises(InputError, match=message):
        write_role(
            tmp_path, "a", "evaluated", **{"logits": np.zeros((4, 2)), "labels": np.zeros(4, int), **change}
        )
    with pytest.raises(InputError, match="unknown role"):
        write_role(tmp_path, "a", "judge", logits=np.zeros((4, 2)), labels=np.zeros(4, int))
    assert list(tmp_path.iterdir()) == []


def test_the_script_writes_a_file_from_logits(tmp_path):
    logits = np.array([[2.0, 0.0], [0.0, 1.0]])
    for name, array in (("logits", logits), ("labels", np.array([0, 0]))):
        np.save(tmp_path / f"{name}.npy", array)
    files = [str(tmp_path / f"{name}.npy") for name in ("logits", "labels")]
    for role in ("evaluated", "surrogate"):
        assert CliRunner().invoke(main, [str(tmp_path), "a", role, *files]).exit_code == 0
    (task,) = role_tasks(tmp_path, seed=0)
    both = np.concatenate([task.models["evaluated"].held_out, task.models["evaluated"].population])

    assert sorted(both[:, 0]) == pytest.approx(sorted(1 / (1 + np.exp([-2.0, 1.0]))))
    assert CliRunner().invoke(main, [str(tmp_path), "a", "other", *files]).exit_code == 1
