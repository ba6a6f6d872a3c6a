"""Closed-form intervals against SciPy, and the rules that every method keeps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from tests.tiers import cells

import stratal
from stratal.designs import ClusterWeighting, PoissonWeighting, StratifiedWeighting, WithReplacementWeighting
from stratal.designs.margins import CalibratedWeighting, fitted_ratios
from stratal.errors import InputError, LabelError, StratalWarning
from stratal.estimation.estimate import Estimate
from stratal.estimation.outcome_means import estimate_mean
from stratal.intervals import proportion
from stratal.intervals.interval import ConfidenceInterval, error_probabilities, p_value_by_inversion
from stratal.intervals.methods import INTERVAL_METHODS, METHODS_WITHOUT_BOUNDS, korn_graubard_trials
from stratal.intervals.proportion import student_t

COUNTS = [(0, 5), (1, 20), (18, 20), (20, 20), (7, 30), (250, 500)]

BOUNDED = tuple(name for name, kind in INTERVAL_METHODS.items() if not kind.reads_skewness)


def simple(z, size: int = 1000, **options) -> Estimate:
    z = np.asarray(z, dtype=float)
    stratum = np.zeros(len(z), dtype=np.int64)
    weighting = StratifiedWeighting(stratum=stratum, sizes=np.array([size]))
    return estimate_mean(
        z, np.zeros((len(z), 0)), weighting, None, stratum=stratum, design="simple-random", **options
    )


@pytest.mark.parametrize(("x", "n"), COUNTS)
@pytest.mark.parametrize("level", cells([0.8, 0.95, 0.99], fast=(0.8,)))
@pytest.mark.parametrize(("ours", "theirs"), [("clopper_pearson", "exact"), ("wilson", "wilson")])
@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_against_scipy(x, n, level, ours, theirs, alternative):
    expected = stats.binomtest(x, n, alternative=alternative).proportion_ci(level, method=theirs)
    low, high = getattr(proportion, ours)(x / n, n, confidence_level=level, alternative=alternative)

    assert [expected.low, expected.high] == pytest.approx([float(low), float(high)], abs=1e-10)


def test_student_t_against_scipy():
    y = np.array([0.3, 0.5, 0.9, 0.4])
    expected = stats.ttest_1samp(y, 0.0).confidence_interval(0.9)
    low, high = student_t(y.mean(), y.std(ddof=1) / 2, degrees_of_freedom=3, confidence_level=0.9)

    assert [expected.low, expected.high] == pytest.approx([float(low), float(high)], abs=1e-12)


@pytest.mark.parametrize("n", [5, 12, 20])
def test_blaker_is_exact_and_inside_clopper_pearson(n):
    p = np.linspace(0.001, 0.999, 400)
    x = np.arange(n + 1)
    low, high = proportion.blaker(x / n, n)
    wide_low, wide_high = proportion.clopper_pearson(x / n, n)
    chance = stats.binom.pmf(x[:, None], n, p)
    covered = np.sum(chance * ((low[:, None] <= p) & (p <= high[:, None])), axis=0)

    assert np.all(low >= wide_low - 1e-12)
    assert np.all(high <= wide_high + 1e-12)
    assert covered.min() >= 0.95 - 1e-6
    assert (high - low).sum() < 0.99 * (wide_high - wide_low).sum()


def test_a_simple_random_sample_gets_the_textbook_interval():
    z = np.r_[np.ones(45), np.zeros(5)]
    expected = stats.binomtest(45, 50).proportion_ci(0.95)
    low, high = simple(z, size=10**12).confidence_interval()

    assert [expected.low, expected.high] == pytest.approx([low, high], abs=1e-6)


def test_auto_is_named():
    assert simple([0, 1, 1]).confidence_interval().method == "clopper-pearson"
    assert simple([0.2, 3.0, 1.0]).confidence_interval().method == "skewness-corrected"
    assert simple([0.2, 3.0, 1.0], bounds=(0, 5)).confidence_interval().method == "clopper-pearson"


@pytest.mark.parametrize("method", [method for method in BOUNDED if method not in ("t", "normal")])
@pytest.mark.parametrize("z", [[1.0], [1, 1, 1, 1], [0, 0, 0], [1, 0], [1] * 19 + [0]], ids=str)
def test_every_method_stays_inside_with_some_width(method, z):
    """Peers: all-correct labels gave [1, 1], [0.919, 1.081], a crash."""
    estimate = simple(z)
    if method == "survey" and len(z) == 1:  # as in R, one label leaves no degree of freedom
        with pytest.raises(InputError):
            estimate.confidence_interval(method=method)
        return
    low, high = estimate.confidence_interval(method=method)

    assert 0 <= low <= estimate.value <= high <= 1
    assert high > low


@pytest.mark.parametrize(("method", "quantile"), [("normal", 1.959964), ("t", 2.022691)])
def test_a_method_that_is_named_is_the_textbooks(method, quantile):
    """Once 't' was 2.11 standard errors wide: a guard had been added to it."""
    estimate = simple([1] * 30 + [0] * 10)
    low, high = estimate.confidence_interval(method=method)

    assert (high - low) / 2 == pytest.approx(quantile * estimate.standard_error, rel=1e-6)


@pytest.mark.parametrize("method", ["t", "normal"])
def test_a_textbook_method_without_width_says_so(method):
    with pytest.warns(StratalWarning, match="width 0"):
        low, high = simple([1, 1, 1, 1]).confidence_interval(method=method)

    assert high - low < 1e-12


@pytest.mark.parametrize("method", BOUNDED)
def test_a_census_has_no_width(method):
    estimate = simple([1, 0, 1, 1], size=4)

    assert tuple(estimate.confidence_interval(method=method)) == (0.75, 0.75)
    assert estimate.standard_error == 0
    assert estimate.effective_sample_size == 4


@pytest.mark.parametrize("method", BOUNDED)
@pytest.mark.parametrize("alternative", ["less", "greater"])
def test_one_sided_intervals_are_one_sided(method, alternative):
    """Peers: a one-sided request returned a two-sided interval."""
    estimate = simple([1] * 30 + [0] * 10)
    one = estimate.confidence_interval(0.95, method, alternative)
    two = estimate.confidence_interval(0.9, method)

    if alternative == "less":
        assert one.low == 0
        assert one.high < 1
        assert one.high == pytest.approx(two.high, abs=0.02)
    else:
        assert one.high == 1
        assert one.low > 0
        assert one.low == pytest.approx(two.low, abs=0.02)


@pytest.mark.parametrize("method", [m for m in BOUNDED if m != "korn-graubard"])
def test_p_value_and_interval_agree(method):
    """Peers: an interval and a p-value contradicted each other at negative correlation."""
    estimate = simple([1] * 30 + [0] * 10)
    interval = estimate.confidence_interval(0.95, method)
    inside, outside = (interval.low + 1e-4, interval.low - 1e-4)

    assert estimate.p_value(inside, method) >= 0.05
    assert estimate.p_value(outside, method) <= 0.05
    assert estimate.p_value(estimate.value, method) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.filterwarnings("error")
def test_korn_graubard_has_a_p_value_of_the_estimate_itself():
    """The narrowest intervals ask for quantiles at one half, where both are 0."""
    population = stratal.Population.from_arrays(proxy=np.linspace(0, 1, 40))
    sample = stratal.designs.SimpleRandom(budget=5).draw(population, seed=3)
    estimate = stratal.estimate(sample, [2, 1, 5, 5, 3], bounds=(1, 5), estimator="horvitz-thompson")

    assert estimate.p_value(estimate.value, "korn-graubard") == 1
    assert 0 < estimate.p_value(4.0, "korn-graubard") < 1


def test_korn_graubard_in_strata_by_hand():
    """n* = p(1 − p)/v · (t_{n−1} / t_{n−H})² into Clopper & Pearson's interval (Korn & Graubard 1998)."""
    ones, n_h, sizes = np.array([8, 3]), np.array([10, 12]), np.array([500, 300])
    stratum = np.repeat([0, 1], n_h)
    z = np.concatenate([np.arange(n) < k for k, n in zip(ones, n_h, strict=True)]).astype(float)
    weighting = StratifiedWeighting(stratum=stratum, sizes=sizes)
    estimate = estimate_mean(z, np.zeros((22, 0)), weighting, None, stratum=stratum)
    shares, rates = sizes / 800, ones / n_h
    p = shares @ rates
    variance = np.sum(shares**2 * (1 - n_h / sizes) * rates * (1 - rates) / (n_h - 1))
    trials = p * (1 - p) / variance * (stats.t(21).ppf(0.975) / stats.t(20).ppf(0.975)) ** 2
    low = stats.beta(p * trials, trials - p * trials + 1).ppf(0.025)
    high = stats.beta(p * trials + 1, trials - p * trials).ppf(0.975)

    assert tuple(estimate.confidence_interval(method="korn-graubard")) == pytest.approx((low, high), abs=1e-9)


def test_p_value_of_student_t():
    z = [0.2, 3.0, 1.0, 0.7]
    expected = stats.ttest_1samp(z, 0.5, alternative="greater").pvalue

    assert expected == pytest.approx(simple(z, size=10**15).p_value(0.5, "t", "greater"), abs=1e-7)


def test_small_p_values_keep_their_precision():
    assert p_value_by_inversion(10.0, lambda level: (-20 * level, 20 * level)) == pytest.approx(0.5)
    assert p_value_by_inversion(0.0, lambda level: (1.0, 2.0)) == 0.0


def test_unbounded_labels_that_agree_are_refused():
    with pytest.raises(InputError, match="all labels agree"):
        simple([3.0, 3.0, 3.0]).confidence_interval()
    assert simple([3.0, 3.0], size=2).confidence_interval().width == 0


def test_one_label_without_bounds_is_refused():
    with pytest.raises(InputError, match="one label"):
        simple([3.0])


def test_bad_requests():
    estimate = simple([0, 1, 1])
    with pytest.raises(InputError, match="confidence_level"):
        estimate.confidence_interval(95)
    with pytest.raises(InputError, match="unknown kind of interval"):
        estimate.confidence_interval(method="wilsom")
    with pytest.raises(InputError, match="alternative"):
        estimate.confidence_interval(alternative="larger")
    with pytest.raises(InputError, match="requires an outcome with bounds"):
        simple([0.2, 3.0, 1.0]).confidence_interval(method="wilson")
    with pytest.raises(InputError):
        error_probabilities(1.0, "two-sided")


def test_labels_outside_the_bounds_are_refused():
    with pytest.raises(LabelError, match="lie outside"):
        simple([0, 2, 1], outcome="binary")
    with pytest.raises(LabelError, match="lie outside"):
        simple([0, 2, 1], bounds=(0, 1))
    with pytest.raises(InputError, match="lower first"):
        simple([0, 2, 1], bounds=(1, 0))
    with pytest.raises(InputError, match="requires bounds"):
        simple([0, 2, 1], outcome="bounded")


def test_interval_is_unpackable_and_contains():
    interval = ConfidenceInterval(low=0.2, high=0.4, confidence_level=0.9, method="t")
    low, high = interval

    assert (low, high) == (0.2, 0.4)
    assert interval.width == pytest.approx(0.2)
    assert 0.3 in interval
    assert 0.5 not in interval


def test_a_hypothetical_value_that_is_no_number_has_no_p_value():
    from stratal.intervals.interval import p_value_by_inversion

    with pytest.raises(InputError, match="not a number"):
        p_value_by_inversion(float("nan"), lambda level: (-level, level))


@pytest.mark.parametrize("method", ["korn-graubard", "clopper-pearson", "wilson", "logit", "blaker"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_labels_give_finite_bounds_or_a_refusal(method, n):
    import stratal

    population = stratal.Population.from_arrays(proxy=np.linspace(0, 1, 30))
    sample = stratal.designs.SimpleRandom(budget=n).draw(population, seed=1)
    for labels in ([0.0] * n, [1.0] * n, [0.5] * n, [1.0, 0.0, 0.25][:n]):
        try:
            low, high = stratal.estimate(sample, labels, bounds=(0, 1)).confidence_interval(method=method)
        except InputError:
            continue
        assert 0 <= low <= high <= 1


def _designs():
    """Labels of every kind of design, with what goes with them."""
    rng = np.random.default_rng(4)
    z, none = (rng.random(60) < 0.3) * 1.0, np.zeros(60, dtype=np.int64)
    simple_one = StratifiedWeighting(stratum=none, sizes=np.array([900]))
    strata = np.repeat([0, 1, 2], 20)
    x = np.column_stack([np.ones(60), rng.random(60)])
    return z, {
        "simple-random": (simple_one, none),
        "stratified": (StratifiedWeighting(stratum=strata, sizes=np.array([300, 400, 500])), strata),
        "poisson": (PoissonWeighting(inclusion_probability=rng.uniform(0.01, 0.4, 60), size=900), none),
        "clusters": (
            ClusterWeighting(
                cluster=np.repeat(np.arange(12), 5), drawn=np.arange(5, 17), clusters=90, size=900
            ),
            none,
        ),
        "margins": (
            CalibratedWeighting(
                base=simple_one,
                auxiliary=x,
                ratio=fitted_ratios(simple_one.weights, x, np.array([1.0, 0.6])),
            ),
            none,
        ),
    }


@pytest.mark.parametrize("method", [method for method in BOUNDED if method != "blaker"])
def test_each_end_of_an_interval_is_that_of_one_side_with_half_the_error(method):
    """Every method in BOUNDED but Blaker's, which shares its error between the sides as it pleases."""
    z, designs = _designs()
    for design, (weighting, stratum) in designs.items():
        if method.startswith("betting") and not weighting.random_within_strata:
            continue
        for estimator in ("horvitz-thompson", "hajek"):
            if estimator == "hajek" and weighting.random_within_strata:
                continue
            found = estimate_mean(
                z, np.zeros((60, 0)), weighting, None, stratum=stratum, design=design, estimator=estimator
            )
            low, high = found.confidence_interval(0.9, method=method)
            assert found.confidence_interval(0.95, method=method, alternative="greater").low == low
            assert found.confidence_interval(0.95, method=method, alternative="less").high == high


def test_each_end_without_bounds_is_that_of_one_side_too():
    z = np.random.default_rng(1).lognormal(size=40)
    for method in METHODS_WITHOUT_BOUNDS:
        found = simple(z)
        low, high = found.confidence_interval(0.9, method=method)
        assert found.confidence_interval(0.95, method=method, alternative="greater").low == low
        assert found.confidence_interval(0.95, method=method, alternative="less").high == high


def test_unequal_weights_leave_fewer_degrees_of_freedom():
    """Labels of which two weigh as much as all others tell less than Kish's number of equal ones."""
    z = np.tile([0.0, 1.0], 20)
    weights = np.r_[np.ones(38), 20.0, 20.0]
    unequal = WithReplacementWeighting(design_weight=weights, size=weights.sum())
    equal = WithReplacementWeighting(design_weight=np.ones(40), size=40)
    none = np.zeros(40, dtype=np.int64)

    def found(weighting):
        return estimate_mean(z, np.zeros((40, 0)), weighting, None, stratum=none, design="given-weights")

    low, high = found(unequal).confidence_interval()
    plain = proportion.clopper_pearson(0.5, found(unequal).evidence.trials)
    assert low < plain[0] < 0.5 < plain[1] < high
    assert found(unequal).evidence.satterthwaite_df < 5
    assert found(equal).evidence.satterthwaite_df == 39


def test_the_interval_reaches_for_clusters_that_the_sample_lacks():
    """The drawn clusters are small, large ones have more of the outcome: only the upper end moves."""
    sizes = np.tile([1, 1, 2, 2, 3, 3, 4, 8], 3)
    cluster = np.repeat(np.arange(24), sizes)
    z = (sizes[cluster] > 2) * 1.0
    z[-3:] = 0.0
    none = np.zeros(len(z), dtype=np.int64)
    options = {"stratum": none, "design": "clusters", "estimator": "hajek"}

    def found(size):
        weighting = ClusterWeighting(cluster=cluster, drawn=sizes, clusters=240, size=size)
        return estimate_mean(z, np.zeros((len(z), 0)), weighting, None, **options)

    as_drawn, larger = found(720), found(1440)
    assert as_drawn.evidence.mean_size_correction == pytest.approx(0, abs=1e-12)
    assert larger.evidence.mean_size_correction > 0.02
    assert larger.confidence_interval().high > as_drawn.confidence_interval().high + 0.02
    assert "varies with the size of its cluster" in " ".join(larger.notes)
    assert "the interval therefore reaches" not in " ".join(as_drawn.notes)


@pytest.mark.parametrize("outcome", ["binary", "unbounded"])
def test_known_squared_sizes_reach_for_the_largest_clusters(outcome):
    """The drawn clusters have the population's mean size, but not its largest ones: the upper end moves."""
    sizes = np.tile([1, 1, 2, 2, 3, 3, 4, 8], 3)
    cluster = np.repeat(np.arange(24), sizes)
    z = (sizes[cluster] > 2) * 1.0
    z[-3:] = 0.0
    none = np.zeros(len(z), dtype=np.int64)
    options = {"stratum": none, "design": "clusters", "estimator": "hajek", "outcome": outcome}

    def found(squared_sizes):
        weighting = ClusterWeighting(
            cluster=cluster, drawn=sizes, clusters=240, size=720, squared_sizes=squared_sizes
        )
        return estimate_mean(z, np.zeros((len(z), 0)), weighting, None, **options)

    lacking, as_drawn, larger = found(None), found(10 * int(sizes @ sizes)), found(20 * int(sizes @ sizes))
    limits = [estimate.confidence_interval() for estimate in (lacking, as_drawn, larger)]
    # The slope of units on sizes, by least squares, times the sizes by which the drawn ones fall short.
    slope = np.polyfit(sizes[cluster], z, 1)[0]
    assert larger.evidence.large_cluster_correction[0] == pytest.approx(slope * (sizes @ sizes) / sizes.sum())
    assert larger.evidence.large_cluster_correction[1] > 1
    assert limits[0] == limits[1]
    assert limits[2].low == limits[1].low
    # Beyond the shift itself the wider error, unless the bound is reached.
    assert limits[2].high > min(limits[1].high + larger.evidence.large_cluster_correction[0], 0.999)
    assert "if the population has far larger clusters" in " ".join(lacking.notes)
    assert "if the population has far larger clusters" not in " ".join(larger.notes)
    assert "the interval therefore reaches" in " ".join(larger.notes)


def test_korn_graubard_has_no_allowance_for_clusters_unlike_those_drawn():
    """As R's `svyciprop(method = "beta")`: Clopper-Pearson's limits at the effective sample size."""
    rng = np.random.default_rng(4)
    cluster = np.repeat(np.arange(400), 10)
    z = (rng.random(4000) < 0.91).astype(float)
    proxy = np.clip(0.3 * z + 0.7 * rng.random(4000), 0.0, 1.0)
    population = stratal.Population.from_arrays(proxy=proxy, groups={"talk": cluster.astype(str)})
    sample = stratal.designs.ClusterSample(cluster="talk", n_clusters=30).draw(population, seed=2)
    estimate = stratal.estimate(sample, z[sample.ids])
    trials = korn_graubard_trials(estimate.evidence, np.nan, 0.025)
    low, high = estimate.confidence_interval(method="korn-graubard")

    expected = proportion.clopper_pearson(estimate.value, trials, confidence_level=0.95)
    assert (low, high) == pytest.approx(np.ravel(expected), abs=1e-9)
    assert estimate.confidence_interval().low < low - 0.02
