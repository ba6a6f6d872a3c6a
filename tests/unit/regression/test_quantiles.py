"""Quantiles: exact, by brute force over every candidate; intervals are the values that the test keeps."""

import numpy as np
import pytest

from stratal.designs import PoissonWeighting, StratifiedWeighting
from stratal.errors import InputError
from stratal.regression.losses import ArrayUnlabelled, Block, Unlabelled
from stratal.regression.quantiles import quantile

SIZES = np.array([70, 130])


def data(seed=0, rounded=None, n_h=12):
    random = np.random.default_rng(seed)
    y = random.gamma(2.0, size=200)
    f = 0.8 * y + 0.4 * random.normal(size=200)
    if rounded is not None:
        y, f = y.round(rounded), f.round(rounded)
    stratum = np.repeat([0, 1], SIZES)
    rows = np.concatenate([random.permutation(70)[:n_h], 70 + random.permutation(130)[:n_h]])
    return y, f, stratum, rows


def fit(seed=0, q=0.5, rounded=None, **options):
    y, f, stratum, rows = data(seed, rounded)
    given = {
        "weighting": StratifiedWeighting(stratum=stratum[rows], sizes=SIZES),
        "proxy": f[rows],
        "unlabelled": ArrayUnlabelled(proxy=f, stratum=stratum),
    }
    return quantile(y[rows], q, **{**given, **options})


def rectified(t, seed, lam, rounded=None):
    """F at t, straight from its definition."""
    y, f, stratum, rows = data(seed, rounded)
    total = 0.0
    for h in range(2):
        own = rows[stratum[rows] == h]
        parts = np.mean(f[stratum == h] <= t), np.mean(y[own] <= t), np.mean(f[own] <= t)
        total += SIZES[h] / 200 * (lam[h] * parts[0] + parts[1] - lam[h] * parts[2])
    return total


def pinball(t, seed, lam, q):
    y, f, stratum, rows = data(seed)

    def loss(v):
        return np.mean((v - t) * (q - (v < t)))

    total = 0.0
    for h in range(2):
        own = rows[stratum[rows] == h]
        total += SIZES[h] / 200 * (lam[h] * loss(f[stratum == h]) + loss(y[own]) - lam[h] * loss(f[own]))
    return total


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("q", [0.1, 0.5, 0.8])
def test_it_is_the_least_loss_over_all_values(seed, q):
    y, f, _, rows = data(seed)
    candidates = np.concatenate([f, y[rows]])

    result = fit(seed, q, estimator="stratppi", shrinkage=0)

    losses = [pinball(t, seed, result.evidence.interval.lam, q) for t in candidates]
    assert pinball(result.value, seed, result.evidence.interval.lam, q) == pytest.approx(
        min(losses), abs=1e-12
    )


def test_without_a_proxy_it_is_the_weighted_sample_quantile():
    y = np.array([1.0, 2.0, 3.0, 4.0])
    weighting = StratifiedWeighting(stratum=np.array([0, 0, 1, 1]), sizes=np.array([30, 10]))

    assert quantile(y, 0.5, weighting=weighting).value == 2.0
    assert quantile(y, 0.75, weighting=weighting).value == 2.0
    assert quantile(y, 0.76, weighting=weighting).value == 3.0


def test_a_census_is_the_population_quantile():
    y, f, stratum, _ = data()
    everyone = StratifiedWeighting(stratum=stratum, sizes=SIZES)

    result = quantile(
        y, 0.5, weighting=everyone, proxy=f, unlabelled=ArrayUnlabelled(proxy=f, stratum=stratum), lam=0.5
    )

    assert result.value == np.sort(y)[99]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rounded", [None, 0])
@pytest.mark.parametrize("side", ["two-sided", "less", "greater"])
def test_the_interval_is_what_the_test_keeps(seed, rounded, side):
    y, f, _, rows = data(seed, rounded)
    result = fit(seed, 0.5, rounded)
    low, high = result.confidence_interval(0.9, alternative=side)
    candidates = np.unique(np.concatenate([f, y[rows]]))

    kept = [t for t in candidates if result.p_value(t, alternative=side) >= 0.1 - 1e-9]

    if side != "less":
        assert min(kept) == low
    if side != "greater":
        following = candidates[np.searchsorted(candidates, max(kept), side="right")]
        assert high == pytest.approx(following)
    assert low <= result.value <= high


def test_the_interval_is_exact_where_errors_are_interpolated():
    random = np.random.default_rng(8)
    y = random.gamma(2.0, size=4_000)
    f = y + 0.5 * random.normal(size=4_000)
    rows = random.permutation(4_000)[:400]
    weighting = StratifiedWeighting(stratum=np.zeros(400, int), sizes=np.array([4_000]))

    result = quantile(y[rows], 0.3, weighting=weighting, proxy=f[rows], unlabelled=ArrayUnlabelled(proxy=f))
    low, high = result.confidence_interval(0.95)

    assert result.p_value(low) >= 0.05 > result.p_value(np.nextafter(low, -np.inf))
    assert result.p_value(np.nextafter(high, -np.inf)) >= 0.05 > result.p_value(high)


def test_batches_give_what_arrays_give():
    _, f, stratum, _ = data()
    order = np.random.default_rng(1).permutation(200)

    def batches():
        for rows in np.array_split(order, 6):
            yield Block(features=np.empty((len(rows), 0)), proxy=f[rows], stratum=stratum[rows])

    whole = fit(estimator="stratppi")
    read = fit(
        estimator="stratppi",
        unlabelled=Unlabelled(batches, n_strata=2),
    )

    assert read.value == whole.value
    assert read.confidence_interval(0.9).low == pytest.approx(whole.confidence_interval(0.9).low)


def test_too_few_labels_for_a_side_leave_it_open():
    y = np.arange(10.0)
    weighting = StratifiedWeighting(stratum=np.zeros(10, int), sizes=np.array([1_000]))

    low, high = quantile(y, 0.98, weighting=weighting).confidence_interval(0.95)
    assert np.isinf(high)
    assert np.isfinite(low)
    low, high = quantile(y, 0.02, weighting=weighting).confidence_interval(0.95)
    assert np.isinf(low)
    assert quantile(y, 0.02, weighting=weighting).to_dict()["confidence_interval"][0] is None


def test_all_labels_equal_do_not_fail():
    weighting = StratifiedWeighting(stratum=np.zeros(20, int), sizes=np.array([1_000]))

    result = quantile(np.ones(20), 0.5, weighting=weighting)
    low, high = result.confidence_interval(0.95)

    assert (result.value, low, high) == (1.0, 1.0, 1.0)


def test_a_poisson_sample_is_divided_by_its_own_weights():
    y, f, _, rows = data()
    weighting = PoissonWeighting(inclusion_probability=np.full(24, 0.12), size=200)

    result = quantile(
        y[rows], 0.5, weighting=weighting, proxy=f[rows], unlabelled=ArrayUnlabelled(proxy=f), lam=0.0
    )

    assert result.value == np.sort(y[rows])[11]


def test_a_separate_sample_widens_the_interval():
    y, f, _, rows = data()
    weighting = StratifiedWeighting(stratum=np.zeros(24, int), sizes=np.array([1]), with_replacement=True)
    widths = []
    for copies in (1, 100):
        units = ArrayUnlabelled(proxy=np.tile(f, copies), separate=True)
        result = quantile(
            y[rows],
            0.5,
            weighting=weighting,
            proxy=f[rows],
            unlabelled=units,
            lam=1.0,
            target="superpopulation",
        )
        widths.append(result.standard_error)

    assert widths[0] > widths[1]


def test_it_prints():
    text = str(fit())

    assert text.startswith("Quantile of 0.5")
    assert "ppi++" in str(fit().summary())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lam": 1.5}, "out of range"),
        ({"lam": -0.1}, "out of range"),
        ({"estimator": "best"}, "no such estimator"),
        ({"proxy": None}, "given together"),
    ],
)
def test_bad_arguments_are_told(change, message):
    with pytest.raises(InputError, match=message):
        fit(**change)


@pytest.mark.parametrize("q", [0.0, 1.0, 50])
def test_a_probability_is_between_zero_and_one(q):
    with pytest.raises(InputError, match="probability is out of range"):
        fit(q=q)


def test_intervals_check_their_method():
    with pytest.raises(InputError, match="unknown kind of interval"):
        fit().confidence_interval(0.9, method="wald")


def test_the_superpopulation_is_less_certain():
    null = fit().value + 0.5

    assert fit(target="superpopulation").p_value(null) > fit().p_value(null)


def test_λ_without_a_proxy_is_told():
    weighting = StratifiedWeighting(stratum=np.zeros(9, int), sizes=np.array([90]))

    with pytest.raises(InputError, match="λ requires a proxy"):
        quantile(np.arange(9.0), 0.5, weighting=weighting, lam=0.5)


def test_a_weighted_separate_sample_counts_by_its_weights():
    y, f, _, rows = data()
    weighting = StratifiedWeighting(stratum=np.zeros(24, int), sizes=np.array([1]), with_replacement=True)
    repeats = np.arange(200) % 3 + 1
    given = {"weighting": weighting, "proxy": f[rows], "lam": 1.0, "target": "superpopulation"}

    weighted = quantile(
        y[rows], 0.4, unlabelled=ArrayUnlabelled(proxy=f, weights=repeats, separate=True), **given
    )
    repeated = quantile(
        y[rows], 0.4, unlabelled=ArrayUnlabelled(proxy=np.repeat(f, repeats), separate=True), **given
    )

    assert weighted.value == repeated.value
