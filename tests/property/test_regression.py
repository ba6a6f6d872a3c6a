"""Any sensible input gives a finite answer that obeys its symmetries, or one InputError."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tiers import sized

from stratal.designs import StratifiedWeighting
from stratal.errors import InputError
from stratal.regression.losses import ArrayUnlabelled
from stratal.regression.m_estimation import linear_regression, logistic_regression, mean_vector
from stratal.regression.quantiles import quantile

few = settings(max_examples=sized(8, 200), deadline=None)
seeds = st.integers(0, 2**32 - 1)
values = st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e-12, 1e9, 3.0])


def case(seed, n_strata=2, n_h=8, size_h=20, d=2):
    random = np.random.default_rng(seed)
    size = n_strata * size_h
    stratum = np.repeat(np.arange(n_strata), size_h)
    x = np.column_stack([np.ones(size), random.normal(size=(size, d - 1))])
    y = x @ random.normal(size=d) + random.normal(size=size)
    f = y + random.normal(size=size)
    rows = np.concatenate([h * size_h + random.permutation(size_h)[:n_h] for h in range(n_strata)])
    weighting = StratifiedWeighting(stratum=stratum[rows], sizes=np.full(n_strata, size_h))
    return x, y, f, stratum, rows, weighting


def fit(x, y, f, stratum, rows, weighting, model=linear_regression, **options):
    return model(
        x[rows],
        y[rows],
        weighting=weighting,
        proxy=f[rows],
        unlabelled=ArrayUnlabelled(features=x, proxy=f, stratum=stratum),
        **options,
    )


@few
@given(seeds, st.sampled_from(["classical", "ppi++", "stratppi"]))
def test_the_order_of_units_does_not_matter(seed, estimator):
    x, y, f, stratum, rows, weighting = case(seed)
    random = np.random.default_rng(seed)
    labelled, everyone = random.permutation(len(rows)), random.permutation(len(y))
    shuffled = linear_regression(
        x[rows][labelled],
        y[rows][labelled],
        proxy=f[rows][labelled],
        weighting=StratifiedWeighting(stratum=weighting.stratum[labelled], sizes=weighting.sizes),
        unlabelled=ArrayUnlabelled(features=x[everyone], proxy=f[everyone], stratum=stratum[everyone]),
        estimator=estimator,
    )

    expected = fit(x, y, f, stratum, rows, weighting, estimator=estimator)
    assert shuffled.values == pytest.approx(expected.values, rel=1e-7, abs=1e-9)
    assert shuffled.covariance == pytest.approx(expected.covariance, rel=1e-6, abs=1e-10)


@few
@given(seeds, st.floats(-5, 5), st.floats(0.1, 100))
def test_linear_regression_is_equivariant(seed, shift, scale):
    """Outcome y and proxy f on another scale, with a plane added: the coefficients follow, λ stays."""
    x, y, f, stratum, rows, weighting = case(seed)
    plane = x @ np.array([shift, -shift])

    before = fit(x, y, f, stratum, rows, weighting)
    after = fit(x, scale * y + plane, scale * f + plane, stratum, rows, weighting)

    assert after.lam == pytest.approx(before.lam, abs=1e-6)
    assert after.values == pytest.approx(scale * before.values + [shift, -shift], rel=1e-5, abs=1e-6 * scale)
    assert after.standard_errors == pytest.approx(scale * before.standard_errors, rel=1e-4)


@few
@given(seeds)
def test_logistic_regression_is_symmetric(seed):
    x, y, f, stratum, rows, weighting = case(seed, n_h=15)
    y, f = (y > 0).astype(float), 1 / (1 + np.exp(-f))
    try:
        before = fit(x, y, f, stratum, rows, weighting, logistic_regression)
    except InputError:
        return
    after = fit(x, 1 - y, 1 - f, stratum, rows, weighting, logistic_regression)

    assert after.values == pytest.approx(-before.values, rel=1e-6, abs=1e-8)
    assert after.covariance == pytest.approx(before.covariance, rel=1e-5, abs=1e-9)


@few
@given(seeds, st.floats(0, 1))
def test_a_mean_lies_on_the_line_between_its_parts(seed, lam):
    _, y, f, stratum, rows, weighting = case(seed)
    given_ = {
        "weighting": weighting,
        "proxy": f[rows],
        "unlabelled": ArrayUnlabelled(proxy=f, stratum=stratum),
    }

    ends = [mean_vector(y[rows], lam=end, **given_).values[0] for end in (0.0, 1.0)]
    middle = mean_vector(y[rows], lam=lam, **given_).values[0]

    assert middle == pytest.approx((1 - lam) * ends[0] + lam * ends[1], abs=1e-9)


@few
@given(
    st.lists(values, min_size=12, max_size=12),
    st.lists(values, min_size=30, max_size=30),
    st.sampled_from(["classical", "ppi++", "stratppi"]),
)
def test_odd_numbers_give_a_finite_mean_or_an_input_error(y, f, estimator):
    stratum = np.repeat([0, 1], 15)
    rows = np.concatenate([np.arange(6), 15 + np.arange(6)])
    f = np.array(f)
    weighting = StratifiedWeighting(stratum=stratum[rows], sizes=np.array([15, 15]))

    result = mean_vector(
        y,
        weighting=weighting,
        proxy=f[rows],
        unlabelled=ArrayUnlabelled(proxy=f, stratum=stratum),
        estimator=estimator,
    )

    assert np.isfinite(result.values[0])
    if result.standard_errors[0] == 0:
        with pytest.raises(InputError, match="would have width 0"):
            result.confidence_interval(0.95)
    else:
        assert np.all(np.isfinite(result.confidence_interval(0.95)))


@few
@given(
    st.lists(values, min_size=12, max_size=12),
    st.lists(values, min_size=30, max_size=30),
    st.sampled_from(["classical", "ppi++", "stratppi"]),
)
def test_odd_numbers_give_a_regression_or_an_input_error(y, f, estimator):
    stratum = np.repeat([0, 1], 15)
    rows = np.concatenate([np.arange(6), 15 + np.arange(6)])
    x = np.column_stack([np.ones(30), np.roll(f, 3)])
    weighting = StratifiedWeighting(stratum=stratum[rows], sizes=np.array([15, 15]))
    try:
        result = fit(x, np.resize(y, 30), np.array(f), stratum, rows, weighting, estimator=estimator)
    except InputError:
        return
    assert np.all(np.isfinite(result.values))
    assert np.all(np.isfinite(result.covariance))


@few
@given(seeds, st.floats(0.05, 0.95), st.floats(0, 1))
def test_a_quantile_commutes_with_increasing_maps(seed, q, lam):
    _, y, f, stratum, rows, weighting = case(seed)
    given_ = {"weighting": weighting, "lam": 0.0, "proxy": f[rows]}

    units, mapped_units = (ArrayUnlabelled(proxy=column, stratum=stratum) for column in (f, np.exp(f)))
    plain = quantile(y[rows], q, unlabelled=units, **given_).value
    mapped = quantile(np.exp(y[rows]), q, unlabelled=mapped_units, **(given_ | {"proxy": np.exp(f[rows])}))

    assert mapped.value == pytest.approx(np.exp(plain))


@few
@given(seeds, st.floats(0.1, 0.9))
def test_quantile_intervals_grow_with_the_level(seed, q):
    _, y, f, stratum, rows, weighting = case(seed)
    result = quantile(
        y[rows], q, weighting=weighting, proxy=f[rows], unlabelled=ArrayUnlabelled(proxy=f, stratum=stratum)
    )

    bounds = [result.confidence_interval(level) for level in (0.5, 0.8, 0.95, 0.99)]
    lows, highs = [b.low for b in bounds], [b.high for b in bounds]

    assert lows == sorted(lows, reverse=True)
    assert highs == sorted(highs)
