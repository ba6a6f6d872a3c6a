from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tests.tiers import sized

from stratal import proxy as proxies

SETTINGS = settings(max_examples=sized(8, 200), deadline=None)

weights = arrays.arrays(
    np.float64,
    st.tuples(st.integers(1, 20), st.integers(2, 6)),
    elements=st.sampled_from([0.0, 1e-9, 0.3, 1.0]),
)
scores = st.lists(st.floats(-1e6, 1e6, allow_nan=False), min_size=2, max_size=40)
shares = st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=40, max_size=40)


def normalised(matrix):
    matrix = np.where(matrix.sum(axis=1, keepdims=True) > 0, matrix, 1.0)
    return matrix / matrix.sum(axis=1, keepdims=True)


@SETTINGS
@given(weights)
def test_any_probabilities_make_proxies_with_possible_moments(matrix):
    f = normalised(matrix)

    for proxy in (proxies.accuracy(f), proxies.squared_error(f), proxies.cross_entropy(f)):
        low, high = proxy.bounds
        assert np.all((proxy.values >= low) & (proxy.values <= high))
        assert np.all(proxy.conditional_variances <= (proxy.values - low) * (high - proxy.values) + 1e-9)


@SETTINGS
@given(scores, shares, st.sampled_from(["isotonic", "logistic"]), st.sampled_from([(0.0, 1.0), (1.0, 5.0)]))
def test_any_labels_make_an_increasing_curve_within_bounds(score, share, method, bounds):
    low, high = bounds
    outcomes = low + (high - low) * np.array(share[: len(score)])

    curve = proxies.calibrate(score, outcomes, method=method, bounds=bounds)

    grid = np.linspace(-1e6, 1e6, 41)
    found = curve.proxy(np.sort(np.append(grid, score)))
    assert np.all((found.values >= low) & (found.values <= high))
    if method == "isotonic":
        assert np.all(np.diff(found.values) >= -1e-12)
    else:
        assert np.all(np.diff(found.values) * np.sign(curve.slope) >= -1e-12)


@SETTINGS
@given(
    st.integers(2, 30),
    st.integers(1, 4),
    st.integers(0, 10**6),
)
def test_any_judges_can_be_combined(n, k, seed):
    rng = np.random.default_rng(seed)
    judges = rng.choice([0.0, 1.0, 1e3], (n, k))

    found = proxies.combine(judges, rng.choice([0.0, 1.0], n)).proxy(judges)

    assert np.all((found.values >= 0.0) & (found.values <= 1.0))
