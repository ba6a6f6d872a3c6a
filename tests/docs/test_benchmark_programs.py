"""The programs behind the pages of results: each page has one, and they measure what they say."""

from __future__ import annotations

import argparse
import re
import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from benchmarks import (
    cluster_groups,
    default_plans,
    earlier_waves,
    estimands,
    exact_cells,
    family_wise,
    given_strata,
    graded,
    graded_widths,
    over_time,
    partitions,
    plan_order,
    promises,
    regression,
    several_proxies,
    speed,
    thresholds,
    weak_proxies,
    widths,
)
from benchmarks.coverage import sections
from benchmarks.promises import Case, known
from benchmarks.rounds import Pool, rounds
from benchmarks.run import programs

import stratal
from stratal.simulation.draws import BinaryDraws, Truth
from stratal.strata import stratify

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PAGES = sorted(path.stem for path in (BENCHMARKS / "results").glob("*.md"))
RUN = programs(argparse.Namespace(ssepy=None, ppi=None))
BY_HAND = {
    "adaptive_steps": "adaptive with an option",
    "attack": "make attack",
    "default_plans": "two peers, each in an environment of its own",
    "estimands": "oasis, in an environment of its own",
    "first_answer": "five peers, each in an environment of its own",
    "first_answer_coverage": "four peers in one environment",
    "given_strata": "a peer, in an environment of its own",
    "judge_peers": "two peers, each in an environment of its own",
    "peer_agreement_files": "peer_agreement with an option",
    "promises_one_by_one": "promises with an option",
}
"""Pages that `make bench` does not write, and why."""


def test_a_page_names_programs_that_are_there():
    for page in PAGES:
        text = (BENCHMARKS / "results" / f"{page}.md").read_text()
        named = re.findall(r"benchmarks[./](?!results)(\w+)", text)

        assert named or page in BY_HAND, page
        assert [name for name in named if not (BENCHMARKS / f"{name}.py").exists()] == [], page


def test_all_pages_but_those_that_need_more_are_written_by_one_command():
    assert sorted([*RUN, *BY_HAND]) == PAGES


def test_a_page_of_the_documentation_cites_each_page_of_results():
    texts = [path.read_text() for path in (BENCHMARKS.parent / "docs").glob("**/*.md")]

    assert [page for page in PAGES if not any(f"results/{page}.md" in text for text in texts)] == []


def test_a_part_of_the_page_of_coverage_takes_the_place_of_the_same_part():
    old = sections("# Page\n\n### Means (10 draws)\n\n1\n\n### Every method: worst (10 draws)\n\n2\n")
    new = sections("\n### Means (20 draws, 2026-11-22)\n\n3\n")

    assert {**old, **new} == {
        "### Means": "### Means (20 draws, 2026-11-22)\n\n3\n",
        "### Every method": "### Every method: worst (10 draws)\n\n2\n",
    }


@pytest.mark.parametrize("deviations", ["recalibrated", "raw", "printed"])
@pytest.mark.parametrize("budget", [120, 640])
def test_rounds_end_at_the_budget_and_take_no_label_back(deviations, budget):
    rng = np.random.default_rng(3)
    proxy = np.repeat([0.3, 0.7, 0.97], [400, 250, 30])
    strata = stratify(stratal.Population.from_arrays(proxy=proxy), n_strata=3)
    z = (rng.random(len(proxy)) < proxy).astype(np.float64)
    pool = Pool(strata=strata, truth=Truth.of(z, None, np.asarray(strata.codes), 3))
    pilot = np.array([8, 8, 8])

    found = rounds(pool, BinaryDraws(pool.truth, 50, rng), pilot, budget, 17, deviations)

    assert found.shape == (50, 3)
    assert np.all(found.sum(axis=1) == budget)
    assert np.all((pilot <= found) & (found <= strata.sizes))
    assert len(np.unique(found, axis=0)) > 1  # they follow from the labels


def test_a_planner_that_knows_is_not_beaten_for_want_of_labels_where_nothing_is_wrong():
    """Two labels in each large stratum without errors kept its interval wide up to half of all units."""
    case = next(case for case in promises.generated() if case.name == "underconfident, p = 0.96")
    plan = stratal.plan(stratal.Population.from_arrays(proxy=case.proxy), half_width=0.03, pilot=True)

    assert isinstance(case, Case)
    assert known(plan, case.z, 0.03) < 200


def test_the_oracle_of_an_estimand_puts_labels_where_its_influence_varies():
    units = estimands.Pool("balanced", "f1", estimands.DATA)
    sample = estimands.oracle(units, 200)(1)
    assert sample.size == 200
    strata = units.plan(200).strata
    stratum, sizes = np.asarray(strata.codes), strata.sizes
    assert sample.design.strata.names == strata.names
    spread = np.sqrt([np.var(units.influence[stratum == h]) for h in range(len(sizes))])
    free = (sample.n_h > 2) & (sample.n_h < sizes)
    shares = sample.n_h[free] / (sizes * spread)[free]
    assert shares.max() < 1.5 * shares.min()  # in whole numbers, from 3 on


def test_the_summary_of_rounds_compares_squared_errors():
    summary, rng = estimands.Summary(), np.random.default_rng(1)
    rows = {way: np.column_stack([scale * rng.normal(size=400), np.ones(400), np.full(400, scale)])
            for way, scale in (("one round", 2.0), ("two rounds", 1.0), ("oracle", 1.0))}  # fmt: skip
    summary.add("cell", rows, rng.normal(size=400))
    found = {what: of["cell"] for what, of in summary.ratios.items()}
    assert found["two rounds, width over one round's"] == 0.5
    assert found["one round, error over the oracle's"] == pytest.approx(2.0, rel=0.15)
    assert found["one round, lower limit of that ratio"] < found["one round, squared error over OASIS's"]
    assert found["two rounds, lower limit of that ratio"] <= 1.0


def quick_run(module: ModuleType, options: str, output: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the page that a program writes with few draws."""
    monkeypatch.setattr(sys, "argv", [module.__name__, *options.split(), "--output", str(output)])
    module.main()
    return output.read_text(encoding="utf-8")


def stored_page(module: ModuleType) -> str:
    path: Path = module.RESULTS
    return path.read_text(encoding="utf-8")


def table_rows(text: str) -> list[tuple[str, ...]]:
    """Return the cells of the rows of all tables, headers included."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [tuple(cell.strip() for cell in line.strip("| ").split(" | ")) for line in lines]


def headings(text: str) -> list[str]:
    """Return the headings and the headers of tables."""
    lines = text.splitlines()
    headers = [line for line, after in pairwise(lines) if after.startswith("|---")]
    return [line for line in lines if line.startswith("#") or line in headers]


def test_a_quick_run_of_graded_outcomes_has_the_cells_of_the_page(tmp_path, monkeypatch):
    page = stored_page(graded)
    options = "--draws 4 --slice-draws 2 --stratified-draws 2 --most 4"
    quick = quick_run(graded, options, tmp_path / "page.md", monkeypatch)
    simulated = {row[:2] for row in table_rows(page) if row[0] == "uniform" or row[0][:4] in ("wins", "rati")}
    strata = {row[:3] for row in table_rows(page) if row[0] in ("2", "10", "25", "50")}
    values = {row[0] for row in table_rows(page)} & {"0, 0.9, 1", "0, 0.5, 1", "0, 0.1, 1", "1, 4, 5"}

    assert headings(quick) == headings(page)
    assert len(strata) == 16
    assert strata <= {row[:3] for row in table_rows(quick)}
    assert len(simulated) == 28
    assert simulated <= {row[:2] for row in table_rows(quick)}
    assert len(values) == 4
    assert values <= {row[0] for row in table_rows(quick)}
    assert min(float(row[2]) for row in table_rows(page) if row[0] in values) >= 0.94
    over_strata = [row for row in table_rows(page) if row[0] in graded.SLICE_COUNTS]
    assert len(over_strata) == 48
    assert min(float(row[3]) for row in over_strata) >= 0.94


def test_a_quick_run_of_six_models_has_the_cells_of_the_page(tmp_path, monkeypatch):
    page = stored_page(family_wise)
    quick = quick_run(family_wise, "--draws 2", tmp_path / "page.md", monkeypatch)

    assert headings(quick) == headings(page)
    assert [row[:3] for row in table_rows(quick)] == [row[:3] for row in table_rows(page)]
    assert max(float(row[3]) for row in table_rows(page)[1:]) <= 0.06


def test_a_quick_run_of_weak_proxies_has_the_cells_of_the_page(tmp_path, monkeypatch):
    page = stored_page(weak_proxies)
    quick = quick_run(weak_proxies, "--draws 4", tmp_path / "page.md", monkeypatch)
    weak = [row for row in table_rows(page)[1:] if row[0] != "---" and float(row[1]) <= 0.2]

    assert headings(quick) == headings(page)
    assert [row[:3] for row in table_rows(quick)] == [row[:3] for row in table_rows(page)]
    assert len(weak) == 36
    assert max(float(error) for row in weak for error in row[3].split(", ")) <= 1.02


def test_a_quick_run_of_three_proxies_has_the_cells_of_the_page(tmp_path, monkeypatch):
    page = stored_page(several_proxies)
    quick = quick_run(several_proxies, "--draws 2", tmp_path / "page.md", monkeypatch)

    rows = [row for row in table_rows(page) if row[0] != "rate"]
    simple_random = [row for row in rows if len(row) == 8]
    planned = [row for row in rows if len(row) == 7]

    assert headings(quick) == headings(page)
    assert [row[:3] for row in table_rows(quick)] == [row[:3] for row in table_rows(page)]
    assert min(float(row[4]) for row in simple_random) >= 0.94
    assert min(float(row[3]) for row in planned) >= 0.94
    assert max(float(row[5]) for row in planned) <= 1.05


def test_a_quick_run_of_widths_of_graded_outcomes_has_the_cells_of_the_page(tmp_path, monkeypatch):
    page = stored_page(graded_widths)
    quick = quick_run(graded_widths, "--draws 40 --parts 4", tmp_path / "page.md", monkeypatch)
    cells = [row for row in table_rows(page) if row[0].startswith(("wins", "ratings"))]
    guards = [float(row[2]) for row in table_rows(page) if row[0].endswith("that of the side")]

    assert headings(quick) == headings(page)
    assert [row[0] for row in table_rows(quick)] == [row[0] for row in table_rows(page)]
    assert len(cells) == 24
    assert min(float(row[1]) for row in cells) >= 0.94
    assert guards[0] >= 0.94
    assert max(guards[1:]) < 0.94


def test_students_t_does_not_cover_within_named_strata():
    """`auto` does: the reason why it is not t."""
    rows = [row for row in table_rows(given_strata.OUTPUT.read_text()) if row[0] in given_strata.POPULATIONS]
    held = given_strata.cell((0.97, 0.97, 0.97), given_strata.JUDGES["lenient"], 20, draws=200)

    assert len(rows) == 18
    assert min(float(row[2]) for row in rows) >= 0.94
    assert min(float(row[3]) for row in rows) < 0.5
    assert held["t"][0] < 0.7 < 0.94 < held["auto"][0]


def test_a_quick_run_of_groups_in_few_clusters_has_the_cells_of_the_page(tmp_path, monkeypatch):
    page = stored_page(cluster_groups)
    monkeypatch.setattr(cluster_groups, "DRAWN_CLUSTERS", (40,))
    quick = quick_run(cluster_groups, "--draws 1 --more 1", tmp_path / "page.md", monkeypatch)
    required = [row for row in table_rows(page)[1:] if row[2] in ("4", "10", "30")]

    assert headings(quick) == headings(page)
    assert [row[:3] for row in table_rows(quick)] == [row[:3] for row in table_rows(page)]
    assert len(required) == 42
    assert min(float(row[3].split()[0]) for row in required) >= 0.94


def test_a_quick_run_of_enumerated_cells_has_the_numbers_of_the_page(tmp_path, monkeypatch):
    page = stored_page(exact_cells)
    quick = quick_run(exact_cells, "--step 380 --sizes 5", tmp_path / "page.md", monkeypatch)
    differences = [row for row in table_rows(quick) if row[0] in ("simple random", "where models differ")]

    assert headings(quick) == headings(page)
    assert len(differences) == 2
    assert set(differences) <= set(table_rows(page))


def test_quick_cells_of_weeks_over_time_have_the_tables_of_the_page(monkeypatch):
    page = stored_page(over_time)
    quick_sizes = {"SCENARIOS": ("jump",), "HORIZON": 20, "CHANGES": (5,), "TARGETS": (0.8,)}
    for name, value in quick_sizes.items():
        monkeypatch.setattr(over_time, name, value)
    over_time.chart_limits.cache_clear()
    quick = over_time.alarm_part(20, (50,)) + over_time.coverage_part(40, (50,))
    over_time.chart_limits.cache_clear()
    alarms = page.partition("## False alarms")[2].partition("## Median")[0]
    shares = [float(row[2]) for row in table_rows(alarms)[1:]]
    coverages = [
        float(cell.split()[0])
        for row in table_rows(page.partition(over_time.COVERAGE)[2])[1:]
        for cell in row[2:]
    ]
    # The monitor of another package needs its own environment.
    own_tables = [line for line in headings(page) if line.startswith("|") and "glide" not in line]

    assert [line for line in headings(quick) if line.startswith("|")] == own_tables
    assert len(shares) == 4 * len(over_time.DESIGNS)
    assert max(shares) <= 0.05
    assert min(coverages) >= 0.94


def test_quick_cells_of_earlier_waves_have_the_tables_of_the_page(monkeypatch):
    page = stored_page(earlier_waves)
    every_plan = earlier_waves.PLANS
    monkeypatch.setattr(earlier_waves, "PLANS", ("stable",))
    monkeypatch.setattr(earlier_waves, "SAMPLES", 40)
    quick = earlier_waves.page(40, 1, (100,))
    rows = table_rows(page)
    errors = [float(row[2]) for row in rows if row[0] in every_plan]
    saved = [float(row[4].rstrip("%")) for row in rows if row[0] == "stable" and int(row[1]) > 50]
    limited = [float(row[2]) for row in rows if row[0] in earlier_waves.SERIES]

    assert headings(quick) == headings(page)
    assert max(errors) <= 1.05
    assert min(saved) > 5
    assert max(limited) <= 1.05


def test_quick_cells_of_thresholds_have_the_tables_of_the_page(monkeypatch):
    page = stored_page(thresholds)
    monkeypatch.setattr(thresholds, "LIMIT_DRAWS", 200)
    cells = [
        thresholds.Cell(metric="error", score="ties", rate=0.05, labels=400, design="two rounds"),
        thresholds.Cell(metric="error", score="noise", rate=0.3, labels=100, design="four groups"),
        thresholds.Cell(metric="recall", score="inverted", rate=0.3, labels=400, design="clusters"),
        thresholds.Cell(metric="efficiency", score="calibrated", rate=0.06, labels=400, design="random"),
        thresholds.Cell(metric="efficiency", score="calibrated", rate=0.06, labels=400, design="two rounds"),
        thresholds.Cell(metric="single limits", score="rare", rate=0.0, labels=100, design="equal"),
        thresholds.Cell(metric="bands", score="calibrated", rate=0.3, labels=100, design="random"),
    ]
    figures = {
        cell: thresholds.measure(cell, 40 if cell.metric in thresholds.METRICS else 4, 1) for cell in cells
    }
    quick = thresholds.page(figures, 40, 4)
    violations = [float(part) for part in re.findall(r"(\d\.\d{4}) \(\d\.\d\d\)", page)]

    assert headings(quick) == headings(page)
    assert len(violations) >= 36
    assert max(violations) <= 0.05
    assert all(figures[cell]["violations"] <= 0.3 for cell in cells[:5])
    assert figures[cells[0]]["accepting"] > 0


@pytest.mark.parametrize("design", ["random", "planned", "two rounds"])
def test_numbers_of_labels_accept_the_set_that_the_labels_accept(design):
    cell = thresholds.Cell(metric="error", score="calibrated", rate=0.3, labels=400, design=design)
    requirement = thresholds.SetRequirement(metric="error", limit=0.2)
    rng = np.random.default_rng(4)
    score = thresholds.pool(cell.score, cell.rate).score
    order = np.argsort(-score, kind="stable")
    places = []
    for _ in range(12):
        drawn = thresholds.draw(rng, cell, 0.2)
        labels = drawn.labels
        inside = drawn.sets.members(labels.scores, labels.group)
        wrong = 1 - labels.outcomes
        rows = labels.stratum[:, None] == np.arange(len(labels.sizes))
        counts = np.einsum("nh,nj->hj", rows.astype(int), inside.astype(int))
        faults = np.einsum("nh,nj->hj", rows * wrong[:, None], inside).round().astype(int)
        batch = thresholds.Batch(
            sizes=labels.sizes[None],
            counts=counts[None],
            faults=faults[None],
            wrong=drawn.outcomes[order][None] == 0,
        )
        (place,) = batch.accepted(0.2, is_finite=True)
        accepted = thresholds.accepted_place(requirement, drawn)
        places.append(place)
        assert place == (-1 if accepted is None else accepted)
        expected = thresholds.true_faults("error", drawn.members, drawn.outcomes)
        assert batch.true_faults()[0] == pytest.approx(expected)

    assert max(places) > 0


def test_a_quick_run_of_plans_in_order_has_the_rows_of_the_page(tmp_path, monkeypatch):
    page = stored_page(plan_order)
    quick = quick_run(plan_order, "--populations 8 --layouts 5 --draws 20", tmp_path / "page.md", monkeypatch)
    plans = [row for row in table_rows(page) if row[0] in plan_order.PROXIES]

    assert headings(quick) == headings(page)
    assert [row[0] for row in table_rows(quick)] == [row[0] for row in table_rows(page)]
    # Three plans of rare outcomes and one of F1 in 34 units, of 9,952: the page names them.
    assert sum(int(row[5]) for row in plans) <= 4
    assert max(float(row[6]) for row in plans) <= plan_order.MOST_WIDER
    assert max(float(row[7]) for row in plans) <= plan_order.MOST_WIDER


def test_partitions_give_the_draw_of_the_whole_table_and_move_little(tmp_path):
    """The program itself compares sizes and drawn ids with those of one table."""
    ids, proxy = partitions.generated(20_000)
    few, many = (partitions.distributed(ids, proxy, count) for count in (2, 8))
    page = partitions.page(20_000, {2: few, 8: many}, "python -m benchmarks.partitions")

    assert headings(page)[0] == headings(stored_page(partitions))[0]
    assert [row[0] for row in table_rows(page)][1:6] == list(partitions.QUERIES)
    # Ids are eight bytes; half of them, or seven of eight, go to another machine.
    assert sum(few.moved["duplicate ids"]) == pytest.approx(8 * 20_000 / 2, rel=0.05)
    assert sum(many.moved["duplicate ids"]) == pytest.approx(8 * 20_000 * 7 / 8, rel=0.05)
    assert sum(few.moved["draw"]) == pytest.approx(sum(many.moved["draw"]), rel=0.05)
    assert max(many.moved["sizes of the strata"]) < 1_000


@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_the_floor_of_a_regression_has_its_intervals(kind, monkeypatch):
    monkeypatch.setattr(regression, "REPEATS", 1)
    intervals = [
        np.array(side(kind, 4_000, 3)["interval"]) for side in (regression.own_case, regression.floor_case)
    ]
    (own_width, floor_width), (own_centre, floor_centre) = (
        [reduce(interval) for interval in intervals]
        for reduce in (lambda i: i[1] - i[0], lambda i: i.mean(axis=0))
    )

    # λ is not shrunk.
    np.testing.assert_allclose(floor_width, own_width, rtol=0.05)
    assert np.all(np.abs(floor_centre - own_centre) < 0.05 * own_width)


def test_a_quick_run_of_speeds_has_the_rows_of_the_page(tmp_path, monkeypatch):
    page = stored_page(speed)
    monkeypatch.setattr(speed, "RESULTS", tmp_path / "speed.md")
    monkeypatch.setattr(speed, "FIGURES", tmp_path / "speed.json")
    arguments = ["speed", "--rows", "pickle,several", "--repeats", "2", "--directory", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", arguments)
    speed.main()
    quick = (tmp_path / "speed.md").read_text(encoding="utf-8")
    rows = {(row[0], row[1]): row for row in table_rows(page)}
    selection = speed.selection_rows(
        speed.Setting(repeats=2, ssepy=None, ppi=None, folder=tmp_path), 4, 2_000
    )

    assert headings(quick) == headings(page)
    assert len(table_rows(quick)) == 4
    assert {(row[0], row[1]) for row in table_rows(quick)} <= set(rows)
    assert set(speed.stored()) == {"pickle", "several"}
    assert len(selection["round"].figures) == 2
    for row in table_rows(page)[1:]:
        low, median, high = (float(cell) for cell in row[2:5])
        assert low <= median <= high


@pytest.mark.parametrize(("at_least", "verdict"), [(True, "met"), (False, "**2 times off**")])
def test_a_row_of_speeds_is_met_by_its_median(at_least, verdict):
    row = speed.Row(what="x", unit="s", required=1.0, at_least=at_least, figures=[0.5, 2.0, 4.0])

    assert row.line() == f"| x | s | 0.5 | 2 | 4 | {'≥' if at_least else '≤'} 1 | {verdict} |"


def test_a_quick_run_of_widths_has_the_tables_of_the_page(tmp_path, monkeypatch):
    page = stored_page(widths)
    options = "--replicates 2 --cells ratings/+default+/300/+mae,useless+two+/300/+recall"
    quick = quick_run(widths, options, tmp_path / "page.md", monkeypatch)
    cells = {row[:4]: row for row in table_rows(page) if len(row) == 8 and row[3] == "300"}
    quick_cells = [row[:4] for row in table_rows(quick) if len(row) == 8 and row[3] == "300"]

    assert headings(quick) == headings(page)
    assert set(quick_cells) <= set(cells)
    assert len({row[2] for row in quick_cells}) == 3
    assert len({row[1] for row in cells.values()}) >= 8


@pytest.mark.usefixtures("shared")
def test_default_plans_are_no_less_precise_than_plans_of_k_means_strata():
    page = stored_page(default_plans)
    exact = {row[0]: row[1:] for row in table_rows(page) if len(row) == 1 + len(default_plans.BUDGETS)}
    several = [row for row in table_rows(page) if len(row) == 8 and row[0] in default_plans.SCORES]

    assert max(float(cell) for cell in exact["largest"]) <= 1.02
    # With 50 labels, the comparison with k-means strata gives up the gain.
    mean_at_50, *other_means = map(float, exact["geometric mean"])
    assert mean_at_50 < 1.0
    assert max(other_means) < 0.99
    assert {row[0] for row in several} == set(default_plans.SCORES)
    for name, budget in (("forest", 50), ("cifar10_vgg", 100)):
        column = default_plans.BUDGETS.index(budget)
        assert default_plans.exact_ratio(name, budget) == pytest.approx(float(exact[name][column]), abs=6e-4)
    ours, before = default_plans.compared("imagenet_golden_crowd", "several", 100, draws=40)
    assert ours.squared_error < before.squared_error * 1.5
    assert ours.width < before.width
