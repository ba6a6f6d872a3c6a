"""Results draw themselves: on the user's axes or on wide ones, every mark named, from the same figures."""

import subprocess
import sys

import numpy as np
import pytest

import stratal
from stratal.estimands import ClassReport
from stratal.report.figures import MIN_PIXELS

pytest.importorskip("matplotlib")


@pytest.fixture
def audit(population, truth):
    plan = stratal.plan(population, budget=100)
    sample = plan.draw(seed=7)
    return plan, sample, {unit: truth[unit] for unit in sample.ids.tolist()}


def results(audit):
    plan, sample, labels = audit
    others = {name: {u: (z + k) % 2 for u, z in labels.items()} for k, name in enumerate(("a", "b"))}
    pair = stratal.compare(sample, others, reference="a")
    said = {"label": {u: str(z) for u, z in labels.items()}, "predicted": dict.fromkeys(labels, "1.0")}
    classes = stratal.estimate(sample, said, estimand=ClassReport(["recall"]))
    return {
        "estimate": stratal.estimate(sample, labels),
        "plan": plan,
        "strata": plan.strata,
        "domains": stratal.estimate(sample, labels, by="language"),
        "comparison": pair,
        "metrics": classes,
        "differences": stratal.estimate(sample, labels, by="language").differences(),
    }


NAMES = ["estimate", "plan", "strata", "domains", "comparison", "metrics", "differences"]


@pytest.mark.parametrize("name", NAMES)
def test_every_result_draws_and_names_its_marks(audit, tmp_path, name):
    from matplotlib.image import imread

    ax = results(audit)[name].plot()

    assert ax.get_title()
    assert ax.get_xlabel()
    labels = ax.get_legend_handles_labels()[1]
    assert labels
    ax.figure.savefig(tmp_path / "plot.png")
    assert imread(tmp_path / "plot.png").shape[1] >= MIN_PIXELS


@pytest.mark.parametrize("name", NAMES)
def test_the_users_axes_are_taken(audit, name):
    from matplotlib.figure import Figure

    axes = Figure().subplots()

    assert results(audit)[name].plot(axes) is axes
    assert axes.get_title()


def test_what_is_drawn_is_what_is_said(audit):
    made = results(audit)["estimate"]
    ax = made.plot()
    (bars,) = ax.containers
    low, high = made.confidence_interval()

    segment = bars.lines[2][0].get_segments()[0]
    assert segment[:, 0] == pytest.approx([low, high])
    names = [tick.get_text() for tick in ax.get_yticklabels()]
    assert names[0] == "estimate"
    assert set(names[1:]) == {row.name for row in made.strata if row.mean is not None}


def test_a_plan_draws_shares(audit):
    ax = results(audit)["plan"].plot()

    for bars in ax.containers:
        assert sum(bar.get_width() for bar in bars) == pytest.approx(1.0)


def test_differences_are_drawn_around_nothing(audit):
    ax = results(audit)["differences"].plot()

    assert "0" in ax.get_legend_handles_labels()[1]
    assert any("−" in tick.get_text() for tick in ax.get_yticklabels())


def test_an_estimate_without_interval_is_drawn_too():
    population = stratal.Population.from_arrays(ids=np.arange(50))
    sample = stratal.designs.SimpleRandom(budget=5).draw(population, seed=7)
    ax = stratal.estimate(sample, [3.0] * 5, outcome="unbounded").plot()

    assert ax.get_legend_handles_labels()[1] == ["mean label of a stratum"]


def test_help_waits_for_no_arrays_and_no_templates():
    """What prints help imports the room of reports; that must cost nothing."""
    code = "import sys, stratal.cli.application; print(*{'numpy', 'jinja2', 'matplotlib'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == ""
