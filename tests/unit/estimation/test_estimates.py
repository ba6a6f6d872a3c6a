"""Several estimates as one table."""

from __future__ import annotations

import numpy as np
import pytest

import stratal

TEAMS = np.array(["R&D_1", "50% off"] * 30)


@pytest.fixture(scope="module")
def table():
    """The mean outcome of two teams whose names contain characters that LaTeX interprets."""
    population = stratal.Population.from_arrays(groups={"team": TEAMS})
    sample = stratal.plan(population, budget=40).draw(1)
    return stratal.estimate(sample, np.arange(40) % 4 > 0, by="team")


def test_a_table_in_latex_has_every_cell_of_the_table_that_is_printed(table):
    printed = table.table()
    lines = table.to_latex().splitlines()
    body = lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")]
    columns = next(line for line in lines if line.startswith(r"\begin{tabular}"))

    assert lines[lines.index(r"\toprule") + 1].count(" & ") == len(printed.header) - 1
    assert columns == rf"\begin{{tabular}}{{{'l' + 'r' * (len(printed.header) - 1)}}}"
    assert len(body) == len(table) == 2
    unescaped = [line.removesuffix(r" \\").replace(r"\%", "%").replace(r"\_", "_") for line in body]
    rows = [line.replace(r"\&", "and").split(" & ") for line in unescaped]
    assert rows == [[cell.replace("&", "and") for cell in row] for row in printed.cells()]


def test_a_table_in_latex_has_the_intervals_of_the_requested_level(table):
    header = table.to_latex(0.5).splitlines()[5]

    assert r"50\% interval" in header
    assert r"95\%" not in header


def test_differences_keep_the_method_of_the_intervals(table):
    """They had the default intervals, whichever were requested."""
    requested = table.with_interval("normal").differences()
    row = requested.rows()[0]

    assert requested.interval == "normal"
    width = np.ptp(row["confidence_interval"])
    assert width == pytest.approx(2 * 1.959964 * row["standard_error"], rel=1e-5)
    assert width != pytest.approx(np.ptp(table.differences().rows()[0]["confidence_interval"]), rel=1e-4)
    assert requested.p_values() == pytest.approx(table.differences().p_values(method="normal"))


def test_differences_name_a_method_that_they_do_not_have():
    population = stratal.Population.from_arrays(proxy=[0.5] * 90)
    sample = stratal.designs.SimpleRandom(budget=40).draw(population, 1)
    means = [stratal.estimate(sample, (np.arange(40) % step > 0).astype(float)) for step in (4, 3)]
    outcomes = stratal.estimation.estimates.Estimates.from_rows(sample, means, "outcomes")
    outcomes = outcomes.with_interval("wilson")

    differences = outcomes.differences()

    assert differences.interval == "auto"
    assert "'wilson' is not available for differences" in differences.remarks[-1]
