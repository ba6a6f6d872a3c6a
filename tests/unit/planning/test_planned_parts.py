"""What a plan for several estimands says of each."""

from __future__ import annotations

import numpy as np
import pytest

import stratal


@pytest.fixture(scope="module")
def plan():
    rng = np.random.default_rng(4)
    population = stratal.Population.from_arrays(
        proxy=rng.beta(4, 2, 4000),
        groups={"part": rng.choice(["a", "b", "c"], 4000, p=(0.8, 0.15, 0.05))},
    )
    return stratal.plan(population, 240, estimand="mean@part", n_strata=4), population


def test_each_level_has_its_row_and_its_labels(plan):
    found, _ = plan
    levels = np.array([name.split(",")[0] for name in found.strata.names])

    assert [part.estimand for part in found.parts] == ["mean@part:a", "mean@part:b", "mean@part:c"]
    assert [part.labels for part in found.parts] == [
        found.allocation.n_h[levels == f"part {level}"].sum() for level in "abc"
    ]
    assert sum(part.labels for part in found.parts) == 240


def test_the_error_of_a_level_is_that_of_its_own_stratified_mean(plan):
    found, population = plan
    strata = found.strata
    codes, proxy = population.codes(strata.rule), next(population.batches(("proxy",)))["proxy"]
    for part in found.parts:
        own = [h for h in range(strata.n_strata) if strata.names[h].startswith(f"part {part.estimand[-1]},")]
        sizes = strata.sizes[own]
        squares = np.array([np.mean(proxy[codes == h] * (1 - proxy[codes == h])) for h in own])
        squares += [np.var(proxy[codes == h]) for h in own]
        factors = (sizes / sizes.sum()) ** 2 * (1 / found.allocation.n_h[own] - 1 / sizes)
        error = np.sqrt(np.sum(factors * squares * sizes / (sizes - 1)))

        assert part.expected_standard_error == pytest.approx(error, rel=1e-9)
        assert part.expected_half_width == pytest.approx(1.959964 * error, rel=1e-6)


def test_nothing_is_said_of_the_error_of_all_as_one(plan):
    found, _ = plan

    assert found.recommended.expected_standard_error is None
    assert found.expected_half_width is None
    assert "Expected 95% interval" not in str(found)
    assert "mean@part:b" in str(found)
    assert [row["estimand"] for row in found.to_dict()["estimands"]] == [p.estimand for p in found.parts]


def test_rows_of_wanted_half_widths_keep_them(plan):
    _, population = plan
    found = stratal.plan(population, half_width=[0.05, 0.08, 0.1], estimand="mean@part")

    assert [part.wanted_half_width for part in found.parts] == [0.05, 0.08, 0.1]
    for part in found.parts:
        assert part.expected_half_width <= part.wanted_half_width * (1 + 1e-9)
    assert sum(part.labels for part in found.parts) == found.budget


def test_a_plan_for_one_estimand_has_no_rows(plan):
    _, population = plan
    found = stratal.plan(population, 50, estimand="mean")

    assert found.parts == ()
    assert "estimands" not in found.to_dict()
