"""Random designs, labels and proxies: a finite answer inside the bounds, or one clear error."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tiers import sized

from stratal.designs import PoissonWeighting, StratifiedWeighting, Weighting
from stratal.errors import StratalError
from stratal.estimation.estimate import Estimate
from stratal.estimation.outcome_means import ESTIMATORS, estimate_mean
from stratal.intervals.methods import INTERVAL_METHODS
from stratal.population.summary import StratumSummary

FAST = settings(max_examples=sized(8, 200), deadline=None)
KINDS = ("random", "constant", "huge", "tiny", "shifted", "equal to z", "opposite", "nan", "infinite")


def proxies_of(kind: str, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    made = {
        "random": rng.random(len(z)),
        "constant": np.full(len(z), 0.3),
        "huge": rng.random(len(z)) * 1e150,
        "tiny": rng.random(len(z)) * 1e-150,
        "shifted": 1e8 + rng.random(len(z)),
        "equal to z": z.copy(),
        "opposite": 1 - z,
        "nan": np.where(rng.random(len(z)) < 0.5, np.nan, 0.5),
        "infinite": np.where(rng.random(len(z)) < 0.5, np.inf, 0.5),
    }
    return made[kind]


def outcomes_of(kind: str, size: int, rng: np.random.Generator) -> np.ndarray:
    made = {
        "binary": (rng.random(size) < 0.8).astype(float),
        "all right": np.ones(size),
        "all wrong": np.zeros(size),
        "graded": rng.random(size),
        "half": np.full(size, 0.5),
        "huge": rng.normal(size=size) * 1e100,
        "tiny": rng.normal(size=size) * 1e-100,
        "wide": rng.normal(size=size),
    }
    return made[kind]


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = np.array(draw(st.lists(st.integers(1, 12), min_size=1, max_size=4)))
    n_h = np.array([draw(st.integers(1, int(size))) for size in sizes])
    stratum = np.repeat(np.arange(len(sizes)), sizes)
    z = outcomes_of(
        draw(st.sampled_from(["binary", "all right", "all wrong", "graded", "half", "huge", "tiny", "wide"])),
        len(stratum), rng,
    )  # fmt: skip
    k = draw(st.integers(0, 2))
    columns = [proxies_of(draw(st.sampled_from(KINDS)), z, rng) for _ in range(k)]
    proxy = np.column_stack(columns) if columns else np.zeros((len(z), 0))
    units = np.concatenate([rng.permutation(np.flatnonzero(stratum == h))[:n] for h, n in enumerate(n_h)])
    return {"z": z, "proxy": proxy, "stratum": stratum, "sizes": sizes, "units": units, "rng": rng}


def estimate_of(problem, estimator: str, target: str, unequal: bool = False) -> Estimate:
    z, proxy, stratum, sizes, units = (problem[key] for key in ("z", "proxy", "stratum", "sizes", "units"))
    with np.errstate(all="ignore"):
        means = np.stack([proxy[stratum == h].mean(axis=0) for h in range(len(sizes))])
        spreads = np.stack(
            [np.atleast_2d(np.cov(proxy[stratum == h].T, ddof=0)) for h in range(len(sizes))]
        ) if proxy.shape[1] else np.zeros((len(sizes), 0, 0))  # fmt: skip
    summary = StratumSummary(sizes=sizes, proxy_means=means, proxy_covariances=spreads)
    weighting: Weighting = StratifiedWeighting(stratum=stratum[units], sizes=sizes)
    if unequal:
        chance = problem["rng"].uniform(0.05, 1.0, len(units))
        weighting = PoissonWeighting(inclusion_probability=chance, size=float(sizes.sum()))
    bounds = (0.0, 1.0) if np.all((z >= 0) & (z <= 1)) else None
    return estimate_mean(
        z[units], proxy[units], weighting, summary, stratum=stratum[units],
        estimator=estimator, target=target, bounds=bounds, design="stratified",
    )  # fmt: skip


@given(
    problem=problems(),
    estimator=st.sampled_from([*ESTIMATORS, "auto"]),
    target=st.sampled_from(["population", "superpopulation"]),
    method=st.sampled_from(
        ["auto", *(name for name, kind in INTERVAL_METHODS.items() if not kind.reads_skewness)]
    ),
    alternative=st.sampled_from(["two-sided", "less", "greater"]),
    level=st.sampled_from([0.5, 0.9, 0.95, 0.999]),
    unequal=st.booleans(),
)
@settings(max_examples=sized(20, 600), deadline=None)
@pytest.mark.filterwarnings("ignore::stratal.errors.StratalWarning")
def test_a_finite_answer_or_one_error(problem, estimator, target, method, alternative, level, unequal):
    try:
        estimate = estimate_of(problem, estimator, target, unequal)
        interval = estimate.confidence_interval(level, method, alternative)
        twin = estimate.to_dict(method=method)
    except StratalError:
        return

    assert np.isfinite(estimate.value)
    assert np.isfinite(estimate.standard_error)
    assert not np.isnan(interval.low)
    assert not np.isnan(interval.high)
    assert interval.low <= estimate.value <= interval.high
    assert str(estimate)
    assert twin["n"] == estimate.n
    if estimate.bounds is not None:
        assert estimate.bounds[0] <= interval.low
        assert interval.high <= estimate.bounds[1]
        assert interval.width > 0 or estimate.evidence.census


@given(problem=problems(), method=st.sampled_from(["auto", "t", "wilson", "logit", "betting"]))
@FAST
@pytest.mark.filterwarnings("ignore::stratal.errors.StratalWarning")
def test_intervals_are_nested_and_agree_with_the_p_value(problem, method):
    try:
        estimate = estimate_of(problem, "horvitz-thompson", "population")
        narrow, wide = (estimate.confidence_interval(level, method) for level in (0.8, 0.95))
    except StratalError:
        return

    assert wide.low <= narrow.low + 1e-12
    assert narrow.high <= wide.high + 1e-12
    if estimate.evidence.census or estimate.bounds is None:
        return
    for null in (0.05, 0.5, 0.8, 0.97):
        p = estimate.p_value(null, method)
        if abs(p - 0.05) > 1e-6:
            assert (null in wide) == (p > 0.05)


@given(problem=problems(), scale=st.sampled_from([1e-3, 7.0, 1e4]), shift=st.sampled_from([0.0, 1e3]))
@FAST
def test_a_change_of_units_changes_nothing_else(problem, scale, shift):
    z, stratum, sizes, units = (problem[key] for key in ("z", "stratum", "sizes", "units"))
    if not np.all((z >= 0) & (z <= 1)):
        return
    weighting = StratifiedWeighting(stratum=stratum[units], sizes=sizes)
    nothing = np.zeros((len(units), 0))
    plain, changed = (
        estimate_mean(
            values[units], nothing, weighting, None, stratum=stratum[units], outcome="bounded", bounds=bounds
        ).confidence_interval()
        for values, bounds in ((z, (0.0, 1.0)), (shift + scale * z, (shift, shift + scale)))
    )

    tolerance = 1e-6 * scale
    assert changed.low == pytest.approx(shift + scale * plain.low, abs=tolerance)
    assert changed.high == pytest.approx(shift + scale * plain.high, abs=tolerance)
