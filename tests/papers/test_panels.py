from __future__ import annotations

import pytest
from papers.panels import Line, Panel, draw_lines, logarithmic_scale

from stratal.report.figures import MIN_PIXELS


@pytest.mark.parametrize(("panels", "columns"), [(1, 1), (1, 2), (2, 2), (6, 3)])
def test_figures_are_wide_enough_to_print(tmp_path, panels, columns):
    image = pytest.importorskip("matplotlib.image")
    panel = Panel(title="t", x_label="labels", y_label="error", lines=[Line(x=[1, 2], y=[3, 4], label="HT")])

    path = draw_lines([panel] * panels, tmp_path / "figure.png", columns=columns)

    assert image.imread(path).shape[1] >= MIN_PIXELS - 1


@pytest.mark.parametrize(
    ("numbers", "written"),
    [
        ([0.5, 1, 2, 1_000], {"0.5", "1", "2", "1000"}),
        ([0.5, 1, 2, 100_000], {"1", "10", "1000", "100000"}),
        ([10_000, 1e10], {"1e+04", "1e+10"}),
    ],
)
def test_numbers_of_a_logarithmic_scale_are_written_out(numbers, written):
    """Over more than four decades powers of ten alone have room; large ones are written as such."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure, ax = pyplot.subplots()
    ax.plot(numbers, [1] * len(numbers))

    logarithmic_scale(ax, "x")
    figure.canvas.draw()

    shown = {label.get_text() for label in ax.get_xticklabels()}
    assert written <= shown
    assert ("2" in shown) == ("2" in written)
    pyplot.close(figure)
