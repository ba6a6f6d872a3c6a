"""The programs behind the pages of results: each page has one, and they measure what they say."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import numpy as np
import pytest
from benchmarks import promises
from benchmarks.coverage import sections
from benchmarks.promises import Case, known
from benchmarks.rounds import Pool, rounds
from benchmarks.run import programs

import stratal
from stratal.simulation.draws import Truth, Urns
from stratal.strata import stratify

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PAGES = sorted(path.stem for path in (BENCHMARKS / "results").glob("*.md"))
RUN = programs(argparse.Namespace(ssepy=None, ppi=None))
BY_HAND = {
    "adaptive_steps": "adaptive with an option",
    "attack": "make attack",
    "estimands": "oasis, in an environment of its own",
    "first_answer": "five peers, each in an environment of its own",
    "first_label": "a browser",
    "judge_peers": "two peers, each in an environment of its own",
    "judge_role": "three peers, each in an environment of its own",
    "peer_agreement_files": "peer_agreement with an option",
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

    found = rounds(pool, Urns(pool.truth, 50, rng), pilot, budget, 17, deviations)

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
