"""λ where labels weigh differently: what weights explain leaves nothing, and large weights decide nothing."""

from __future__ import annotations

import numpy as np
import pytest
from tests.tiers import sized

import stratal
from stratal.designs import ClusterWeighting, PoissonWeighting, StratifiedWeighting, Weighting
from stratal.designs.margins import CalibratedWeighting, fitted_ratios
from stratal.designs.stratum_moments import StratumMoments
from stratal.estimation import cross_fitting, lam
from stratal.estimation.outcome_means import estimate_mean
from stratal.population.summary import StratumSummary

SIZE = 4000


def moments_of(outcome, proxies, *, cross=0.0, means=0.0, counts):
    """Moments of strata (H,) with one proxy."""
    shape = np.shape(counts)
    return StratumMoments(
        counts=counts,
        outcome_means=np.broadcast_to(means, shape),
        proxy_means=np.zeros((*shape, 1)),
        outcome_variances=np.broadcast_to(outcome, shape),
        cross_covariances=np.broadcast_to(cross, shape)[..., None],
        proxy_covariances=np.broadcast_to(proxies, shape)[..., None, None],
    )


def summary(q):
    return StratumSummary(sizes=[len(q)], proxy_means=[[q.mean()]], proxy_covariances=[[[q.var()]]])


def population(seed=0):
    rng = np.random.default_rng(seed)
    q = rng.beta(2, 2, SIZE)
    return (rng.random(SIZE) < q) * 1.0, q, rng


def of(z, q, weighting, rows, design, **options):
    return estimate_mean(
        z[rows],
        q[rows][:, None],
        weighting,
        summary(q),
        stratum=np.zeros(len(rows), dtype=np.int64),
        design=design,
        **options,
    )


@pytest.mark.parametrize("method", ["raking", "regression"])
@pytest.mark.parametrize("scale", [1.0, 1e-6])
def test_a_proxy_among_the_margins_has_no_lam(method, scale):
    """Its residuals are rounding, of which λ was made: 9.95e15, with the interval from 0 to 1."""
    z, q, rng = population()
    q = 0.5 + scale * (q - 0.5)
    for _ in range(20):
        rows = rng.choice(SIZE, 80, replace=False)
        base = StratifiedWeighting(stratum=np.zeros(80, dtype=np.int64), sizes=np.array([SIZE]))
        x = np.column_stack([np.ones(80), q[rows]])
        weighting = CalibratedWeighting(
            base=base,
            auxiliary=x,
            ratio=fitted_ratios(base.weights, x, np.array([1.0, q.mean()]), method),
        )
        found, plain = (of(z, q, weighting, rows, "margins", estimator=name) for name in ("auto", "hajek"))
        assert found.estimator == "ppi++"
        assert found.lam == ()
        assert found.value == pytest.approx(plain.value)
        assert found.confidence_interval().width == pytest.approx(plain.confidence_interval().width)


def test_margins_through_the_public_face():
    z, q, _ = population(3)
    units = stratal.Population.from_arrays(proxy=q)
    sample = stratal.designs.fit_margins(
        stratal.designs.SimpleRandom(budget=100).draw(units, seed=7), "proxy"
    )
    estimate = stratal.estimate(sample, z[sample.ids])
    low, high = estimate.confidence_interval()
    assert low < z.mean() < high
    assert high - low < 0.25
    assert any("weights fitted to the proxy" in note for note in estimate.notes)


@pytest.mark.parametrize("fixed", [True, False])
def test_an_inverted_score_is_as_good_as_the_score(fixed):
    z, q, rng = population(1)
    chance = np.clip(rng.lognormal(-4, 1, SIZE), 1e-4, 1)
    rows = np.flatnonzero(rng.random(SIZE) < chance)
    weighting = PoissonWeighting(inclusion_probability=chance[rows], size=SIZE, fixed_size=fixed)
    one, other = of(z, q, weighting, rows, "poisson"), of(z, 1 - q, weighting, rows, "poisson")
    assert other.lam[0] == pytest.approx(-one.lam[0])
    assert other.confidence_interval().low == pytest.approx(one.confidence_interval().low)
    assert other.confidence_interval().high == pytest.approx(one.confidence_interval().high)


def test_one_large_weight_does_not_decide_lam():
    """λ of least estimated variance passes through the unit with weight 400, which no score predicts."""
    rng = np.random.default_rng(5)
    q = rng.random(SIZE)
    z = q + 0.01 * rng.normal(size=SIZE)
    rows = np.arange(60)
    z[0], q[0] = 0.0, 0.6
    chance = np.r_[0.0025, np.full(SIZE - 1, 1.0)] * np.r_[1.0, np.full(SIZE - 1, 0.05)]
    weighting = PoissonWeighting(inclusion_probability=chance[rows], size=SIZE)
    found = of(z, q, weighting, rows, "poisson", estimator="ppi++", outcome="unbounded")
    assert 0.5 < found.lam[0] < 1.5


def test_few_labels_take_no_score_at_its_word():
    """λ = 1 below 30 labels: an inverted score moved the mean by its own spread, coverage .843."""
    z, q, rng = population(2)
    chance = np.full(SIZE, 6 / SIZE)
    rows = rng.choice(SIZE, 6, replace=False)
    weighting = PoissonWeighting(inclusion_probability=chance[rows], size=SIZE, fixed_size=True)
    assert of(z, 1 - q, weighting, rows, "proportional-to-size").estimator == "hajek"


def several(k, wrong, n=60):
    """Return k noisy scores of n labels, `wrong` of which are 0, and what is known of the population."""
    rng = np.random.default_rng(4)
    z = np.r_[np.zeros(wrong), np.ones(n - wrong)]
    proxies = np.clip(0.9 * z[:, None] + 0.2 * rng.normal(size=(n, k)), 0.0, 1.0)
    moments = StratumSummary(
        sizes=np.array([6000]),
        proxy_means=proxies.mean(axis=0)[None],
        proxy_covariances=np.cov(proxies.T, ddof=0).reshape(1, k, k),
    )
    weighting = StratifiedWeighting(stratum=np.zeros(n, dtype=np.int64), sizes=moments.sizes)
    return z, lam.LabelledProxies(values=proxies, stratum=weighting.stratum, summary=moments), weighting


@pytest.mark.parametrize("k", [2, 3, 6])
def test_informative_labels_limit_the_lam_of_several_proxies(k):
    """Labels that agree say nothing of λ: it is that of a calibrated mean of the proxies, in equal parts."""
    bounded = lam.LambdaPrior(bounds=(0.0, 1.0))
    few, many, none = (several(k, wrong) for wrong in (1, 30, 0))
    free = lam.LambdaPrior(scaled=False)
    fitted = [lam.fit_lam(z, q, weighting, prior=bounded).lam[0] for z, q, weighting in (few, many, none)]
    trusted = [lam.fit_lam(z, q, weighting, prior=free).lam[0] for z, q, weighting in (few, many)]

    assert np.ptp(fitted[2]) == pytest.approx(0)
    assert np.ptp(fitted[0]) < 0.02 * np.ptp(trusted[0])
    share = 60.0**2 / (60.0**2 + (20.0 * k) ** 2)
    assert np.ptp(fitted[1]) == pytest.approx(share * np.ptp(trusted[1]), rel=1e-6)


def test_a_duplicate_proxy_has_the_lam_of_one():
    z, moments, weighting = several(1, 2)
    twice = lam.LabelledProxies(
        values=np.repeat(moments.values, 2, axis=1),
        stratum=moments.stratum,
        summary=StratumSummary(
            sizes=moments.summary.sizes,
            proxy_means=np.repeat(moments.summary.proxy_means, 2, axis=1),
            proxy_covariances=np.full((1, 2, 2), moments.summary.proxy_covariances[0, 0, 0]),
        ),
    )
    published = lam.LambdaPrior(published=True)
    both, alone = (lam.fit_lam(z, case, weighting, prior=published).lam[0] for case in (twice, moments))

    assert both.sum() == pytest.approx(alone[0])
    assert both[0] == pytest.approx(both[1])


def test_clusters_are_fitted_by_their_totals_and_sizes():
    """Totals that a line of score and size gives exactly leave no error, whatever the sizes."""
    rng = np.random.default_rng(6)
    sizes = rng.integers(1, 20, 300)
    cluster = np.repeat(np.arange(300), sizes)
    q = rng.random(len(cluster))
    z = 0.3 + 0.5 * q
    chosen = np.sort(rng.choice(300, 25, replace=False))
    rows = np.flatnonzero(np.isin(cluster, chosen))
    weighting = ClusterWeighting(
        cluster=np.searchsorted(chosen, cluster[rows]), drawn=sizes[chosen], clusters=300, size=len(cluster)
    )
    found = of(z, q, weighting, rows, "clusters", outcome="unbounded")
    assert found.estimator == "ppi++"
    assert found.value == pytest.approx(z.mean(), abs=1e-9)


@pytest.mark.parametrize("design", ["poisson", "simple-random"])
def test_a_lam_of_zero_has_the_interval_of_none(design):
    """An inverted score clipped to λ = 0 is charged nothing."""
    z, q, rng = population(8)
    chance = np.clip(rng.lognormal(-4, 0.7, SIZE), 1e-4, 1)
    rows = np.flatnonzero(rng.random(SIZE) < chance)
    weighting: Weighting = PoissonWeighting(inclusion_probability=chance[rows], size=SIZE)
    plain = "hajek"
    if design == "simple-random":
        weighting = StratifiedWeighting(stratum=np.zeros(len(rows), dtype=np.int64), sizes=np.array([SIZE]))
        plain = "horvitz-thompson"
    clipped = of(z, 1 - q, weighting, rows, design, estimator="ppi++", clip=True)
    without = of(z, 1 - q, weighting, rows, design, estimator=plain)
    assert clipped.value == pytest.approx(without.value)
    assert clipped.standard_error == pytest.approx(without.standard_error)
    assert clipped.confidence_interval().width == pytest.approx(without.confidence_interval().width)


def test_a_stratum_s_own_share_grows_with_its_labels():
    assert lam.stratum_lam_share(np.array([1, 2, 12, 102]), 10.0) == pytest.approx([0, 0, 0.5, 100 / 110])
    assert lam.stratum_lam_share(np.array([1, 2, 3]), 0.0).tolist() == [0, 1, 1]


def test_the_pooled_lam_weighs_strata_and_keeps_replicates_apart():
    cross, proxies = np.array([[[0.1], [0.3]], [[0.4], [0.2]]]), np.full((2, 1, 1), 0.2)
    factors = np.array([[1.0, 3.0], [5.0, 0.0]])

    assert lam.pooled_lam(cross, proxies, factors).ravel() == pytest.approx([1.25, 2.0])


def test_strata_keep_what_chance_does_not_explain_of_their_differences():
    """Q = 100 (.25 + 0 + .25) / 1 = 50 with 2 degrees of freedom: 1 − (2 + √4) / 50."""
    n = np.full(3, 101)
    moments = moments_of(2.0, 1.0, cross=1.0, counts=n)
    away = np.array([[-0.5], [0.0], [0.5]])

    assert lam.significant_share(away, np.ones((1, 1)), moments) == pytest.approx([0.92])


def test_a_stratum_of_one_label_says_nothing_of_how_strata_differ():
    """Q = 100 × .25 with one degree of freedom, of the other two strata: 1 − (1 + √2) / 25."""
    n = np.array([101, 101, 1])
    moments = moments_of(2.0, 1.0, cross=1.0, counts=n)
    away = np.array([[-0.5], [0.0], [0.5]])
    kept = lam.significant_share(away, np.ones((1, 1)), moments)

    assert kept == pytest.approx([1 - (1 + 2**0.5) / 25])


def test_each_unit_takes_its_own_fold_s_fit_and_the_others_by_the_sampled_fraction():
    fitted = np.array([[[1.0, 2.0], [3.0, 6.0]], [[1.0, 2.0], [3.0, 6.0]], [[5.0, 0.0], [7.0, 8.0]]])
    shares, fractions = np.array([[0.25, 0.5], [0.75, 0.5]]), np.array([0.5, 0.1])
    found = cross_fitting.combine_fits(fitted, np.array([0, 1, 1]), np.array([0, 0, 1]), shares, fractions)

    # .5 · 1 + .5 (.25 · 1 + .75 · 3), and so on; the third unit is in a stratum of which a tenth is labelled.
    assert found == pytest.approx(np.array([[1.75, 3.5], [2.75, 5.5], [6.9, 7.6]]))


@pytest.mark.parametrize(("sign", "end"), [(1.0, 1.0), (-1.0, 0.0)])
def test_a_clipped_lam_is_within_zero_and_one_in_each_fold(sign, end):
    z, stratum = np.tile([0.0, 1.0, 1.0, 2.0], 10), np.zeros(40, int)
    proxy = lam.LabelledProxies(
        values=sign * z[:, None] / 4,
        stratum=stratum,
        summary=StratumSummary(
            sizes=np.array([400]),
            proxy_means=np.array([[sign * 0.25]]),
            proxy_covariances=np.array([[[0.03]]]),
        ),
    )
    weighting = StratifiedWeighting(stratum=stratum, sizes=np.array([400]))
    chosen, folds = lam.fit_lam(z, proxy, weighting), np.arange(40) // 20
    free, kept = (
        cross_fitting.cross_fit_lam(chosen, z, proxy, weighting, folds, clip=clip)[0].lam.item()
        for clip in (False, True)
    )

    assert not 0.0 <= free <= 1.0
    assert kept == end


def test_lam_does_not_depend_on_the_unit_of_the_outcome():
    z, q, rng = population()
    rows = rng.choice(SIZE, 40, replace=False)
    weighting = StratifiedWeighting(stratum=np.zeros(40, dtype=np.int64), sizes=np.array([SIZE]))
    one, other = (
        of(z * unit, q * unit, weighting, rows, "simple-random", estimator="ppi++", bounds=(0.0, unit))
        for unit in (1.0, 4.0)
    )

    assert other.lam == pytest.approx(one.lam)
    assert other.value == pytest.approx(4 * one.value)


def test_lam_does_not_depend_on_where_the_outcomes_zero_lies():
    def estimated(low):
        rng, bounds = np.random.default_rng(4), (low, low + 1.0)
        proxy = rng.beta(0.3, 2.7, 2000)
        z = low + (rng.random(2000) < proxy)
        units = stratal.Population.from_arrays(proxy=low + proxy, bounds=bounds)
        sample = stratal.designs.SimpleRandom(budget=120).draw(units, seed=3)
        return stratal.estimate(sample, z[sample.ids], estimator="ppi++", bounds=bounds)

    here, there = estimated(0.0), estimated(2.0)

    assert 0.5 < float(here.lam[0]) < 1.5
    assert there.lam == pytest.approx(here.lam)
    assert there.value - 2.0 == pytest.approx(here.value)


def test_a_proxy_that_the_labels_do_not_support_loses_its_lam():
    one = np.ones(1)

    def supported(cross: float, labels: int) -> float:
        moments = moments_of(0.25, 0.25, cross=cross, means=0.5, counts=np.array([labels]))
        return float(lam.LambdaEvidence.of(moments).supported_share(np.array([[4 * cross]]), one))

    # Correlations .1, .2 and .8: F = i r² / (1 − r²) is .5, 2.1 and 89 at 50 labels.
    assert supported(0.025, 50) == pytest.approx(0.0, abs=0.002)
    assert supported(0.05, 50) == pytest.approx(1.0 - (0.96 / (50 * 0.04)) ** 2, abs=0.002)
    assert supported(0.2, 50) == pytest.approx(1.0, abs=0.001)
    # A negative λ of a proxy that goes the other way is supported alike, and two labels say nothing against.
    assert supported(-0.2, 50) == supported(0.2, 50)
    assert supported(0.0, 2) == pytest.approx(1.0, abs=0.002)
    assert supported(0.0, 200) == pytest.approx(0.0, abs=0.001)


@pytest.mark.parametrize("rate", [0.5, 0.8, 0.95])
def test_a_proxy_that_says_nothing_costs_little(rate):
    rng = np.random.default_rng(round(100 * rate))
    z = (np.arange(20_000) < rate * 20_000).astype(float)
    judge = (rng.random(20_000) < rate).astype(float)
    table = stratal.simulate(
        stratal.Population.from_arrays(proxy=judge), z, designs=["simple-random"],
        estimators=("horvitz-thompson", "ppi++"), intervals=(), budgets=(50,), replicates=4000, seed=5,
    )  # fmt: skip
    errors = {row["estimator"]: row["mse"] for row in table.rows()}

    assert errors["ppi++"] <= 1.01**2 * errors["horvitz-thompson"]


def test_a_proxy_that_is_dropped_changes_no_interval():
    sizes = {"sizes": np.array([20_000]), "stratum": np.zeros(50, dtype=int)}
    z = (np.arange(50) >= 10).astype(float)
    proxy = np.tile([0.0, 1.0, 1.0, 0.0, 1.0], 10)
    sample = stratal.designs.StratifiedWeighting(**sizes)
    summary = StratumSummary(
        sizes=np.array([20_000]), proxy_means=np.array([[0.6]]), proxy_covariances=np.array([[[0.24]]])
    )
    plain, fitted = (
        estimate_mean(
            z, proxy[:, None], sample, summary, stratum=sizes["stratum"], estimator=name, outcome="binary"
        )
        for name in ("horvitz-thompson", "ppi++")
    )

    assert abs(np.cov(z, proxy)[0, 1]) < 1e-12
    assert tuple(fitted.confidence_interval()) == pytest.approx(tuple(plain.confidence_interval()), abs=2e-3)


def test_the_pull_to_a_calibrated_proxy_at_most_doubles_the_fitted_lam():
    """Few informative labels of a proxy that explains almost nothing: λ was .35 where .02 was fitted."""
    spread = lam.LambdaEvidence(
        moments=moments_of(0.05, 0.08, counts=np.array([10])),
        information=np.array(9.5),
        min_variance=np.array(0.05),
    )
    one, population = np.ones(1), np.array([[[0.08]]])
    pulled = spread.shrink(np.array([[0.02]]), population, one)
    assert pulled.ravel() == pytest.approx([0.04])
    # A fitted λ that explains much leaves room for the whole pull.
    strong = spread.shrink(np.array([[0.5]]), population, one).item()
    assert 0.5 < strong < 0.625
    assert spread.shrink(np.array([[0.0]]), population, one).item() == 0.0


def test_a_useless_proxy_hardly_widens_the_interval_of_a_rare_outcome():
    """At rate .95 with 100 labels and a uniform score the interval was 2.5 to 3 % wider than without."""
    rng = np.random.default_rng(1)
    outcome, score = (rng.random(20_000) < 0.95) * 1.0, rng.random(20_000)
    table = stratal.simulate(
        stratal.Population.from_arrays(proxy=score),
        outcome,
        designs=["simple-random"],
        estimators=("horvitz-thompson", "ppi++"),
        budgets=(100,),
        replicates=sized(400, 2000),
        seed=5,
    )
    width = {row["estimator"]: row["width"] for row in table.rows()}
    assert width["ppi++"] <= 1.015 * width["horvitz-thompson"]
