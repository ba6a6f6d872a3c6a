"""The flow: special cases that must collapse, both targets, every design, clear errors."""

import pickle

import numpy as np
import pytest

from stratal.designs import PoissonWeighting, StratifiedWeighting, WithReplacementWeighting
from stratal.errors import InputError
from stratal.regression.losses import (
    ArrayUnlabelled,
    Block,
    LinearLoss,
    Loss,
    Unlabelled,
    with_intercept,
)
from stratal.regression.m_estimation import (
    linear_regression,
    logistic_regression,
    m_estimate,
    mean_vector,
    poisson_regression,
)

SIZES = np.array([60, 90, 50])
MODELS = {"linear": linear_regression, "logistic": logistic_regression, "poisson": poisson_regression}


class Data:
    """A population of three strata, 10 labels in each."""

    def __init__(self, kind="linear", seed=0, n_h=10):
        random = np.random.default_rng(seed)
        self.stratum = np.repeat(np.arange(3), SIZES)
        x = random.normal(size=(200, 2)) + self.stratum[:, None] / 2
        self.x = with_intercept(x)
        eta = self.x @ [0.2, 0.5, -0.5]
        if kind == "linear":
            self.y = eta + random.normal(size=200)
            self.f = 0.8 * self.y + 0.4 * random.normal(size=200)
        elif kind == "logistic":
            self.y = (random.uniform(size=200) < 1 / (1 + np.exp(-eta))).astype(float)
            self.f = 0.15 + 0.7 * np.where(random.uniform(size=200) < 0.85, self.y, 1 - self.y)
        else:
            self.y = random.poisson(np.exp(eta)).astype(float)
            self.f = 0.5 + 0.6 * self.y
        starts = np.concatenate([[0], np.cumsum(SIZES)[:-1]])
        self.rows = np.concatenate(
            [start + random.permutation(size)[:n_h] for start, size in zip(starts, SIZES, strict=True)]
        )

    @property
    def labelled(self):
        return self.x[self.rows], self.y[self.rows]

    @property
    def weighting(self):
        return StratifiedWeighting(stratum=self.stratum[self.rows], sizes=SIZES)

    @property
    def units(self):
        return ArrayUnlabelled(features=self.x, proxy=self.f, stratum=self.stratum)

    def fit(self, model=linear_regression, **options):
        given = {"weighting": self.weighting, "proxy": self.f[self.rows], "unlabelled": self.units}
        return model(*self.labelled, **{**given, **options})


@pytest.mark.parametrize("kind", list(MODELS))
def test_a_census_has_no_error_whatever_λ(kind):
    data = Data(kind)
    everyone = StratifiedWeighting(stratum=data.stratum, sizes=SIZES)

    truth = MODELS[kind](data.x, data.y, weighting=everyone)
    powered = MODELS[kind](data.x, data.y, weighting=everyone, proxy=data.f, unlabelled=data.units, lam=0.7)

    assert powered.values == pytest.approx(truth.values, abs=1e-8)
    assert np.all(powered.standard_errors == 0)


@pytest.mark.parametrize("kind", list(MODELS))
def test_λ_of_zero_is_the_classical_estimate(kind):
    data = Data(kind)

    given = data.fit(MODELS[kind], lam=0.0)
    classical = data.fit(MODELS[kind], estimator="classical")

    assert given.values == pytest.approx(classical.values, abs=1e-9)
    assert given.covariance == pytest.approx(classical.covariance, abs=1e-10)


@pytest.mark.parametrize("kind", list(MODELS))
def test_a_perfect_proxy_at_λ_one_finds_the_truth_without_error(kind):
    data = Data(kind)
    truth = MODELS[kind](data.x, data.y, weighting=StratifiedWeighting(stratum=data.stratum, sizes=SIZES))
    units = ArrayUnlabelled(features=data.x, proxy=data.y, stratum=data.stratum)

    result = data.fit(MODELS[kind], proxy=data.y[data.rows], unlabelled=units, lam=1.0)

    assert result.values == pytest.approx(truth.values, abs=1e-8)
    assert result.standard_errors == pytest.approx(np.zeros(3), abs=1e-9)


@pytest.mark.parametrize("kind", list(MODELS))
def test_one_stratum_is_ppi_with_one_λ(kind):
    data = Data(kind)
    weighting = StratifiedWeighting(stratum=np.zeros(30, int), sizes=np.array([200]))
    units = ArrayUnlabelled(features=data.x, proxy=data.f)

    one = data.fit(MODELS[kind], weighting=weighting, unlabelled=units)
    many = data.fit(MODELS[kind], weighting=weighting, unlabelled=units, estimator="stratppi")

    assert many.lam == pytest.approx(one.lam)
    assert many.values == pytest.approx(one.values)
    assert many.covariance == pytest.approx(one.covariance, rel=0.05)


@pytest.mark.parametrize("estimator", ["ppi++", "stratppi"])
@pytest.mark.parametrize("kind", list(MODELS))
def test_batches_give_what_arrays_give(kind, estimator):
    data = Data(kind)
    order = np.random.default_rng(1).permutation(200)

    def batches():
        for rows in np.array_split(order, 7):
            yield Block(features=data.x[rows], proxy=data.f[rows], stratum=data.stratum[rows])

    whole = data.fit(MODELS[kind], estimator=estimator)
    read = data.fit(MODELS[kind], estimator=estimator, unlabelled=Unlabelled(batches, n_strata=3))

    assert read.values == pytest.approx(whole.values, abs=1e-9)
    assert read.covariance == pytest.approx(whole.covariance, abs=1e-10)
    assert read.lam == pytest.approx(whole.lam, abs=1e-9)


def test_λ_of_a_mean_in_one_stratum_is_the_closed_form():
    data = Data()
    y, f = data.y[data.rows], data.f[data.rows]
    weighting = StratifiedWeighting(stratum=np.zeros(30, int), sizes=np.array([200]))

    result = mean_vector(
        y, proxy=f, weighting=weighting, unlabelled=ArrayUnlabelled(proxy=data.f), shrinkage=0
    )

    λ = np.cov(y, f)[0, 1] / np.var(data.f, ddof=1)
    assert result.lam[0] == pytest.approx(λ)
    assert result.values[0] == pytest.approx(y.mean() + λ * (data.f.mean() - f.mean()))


def test_the_variance_of_a_mean_at_a_fixed_λ_is_the_closed_form():
    data = Data()
    y, f = data.y[data.rows], data.f[data.rows]
    stratum = data.stratum[data.rows]

    result = mean_vector(
        y,
        proxy=f,
        weighting=data.weighting,
        lam=[0.2, 0.5, 0.9],
        unlabelled=ArrayUnlabelled(proxy=data.f, stratum=data.stratum),
    )

    residual = y - np.array([0.2, 0.5, 0.9])[stratum] * f
    spreads = np.array([np.var(residual[stratum == h], ddof=1) for h in range(3)])
    expected = np.sum((SIZES / 200) ** 2 * (1 - 10 / SIZES) * spreads / 10)
    assert result.standard_errors[0] ** 2 == pytest.approx(expected)


def test_a_separate_sample_s_variance_is_that_of_the_paper():
    random = np.random.default_rng(3)
    y, stratum = random.normal(size=30), np.repeat([0, 1], 15)
    f, unlabelled = y + 0.3 * random.normal(size=30), random.normal(size=90)
    weighting = StratifiedWeighting(stratum=stratum, sizes=np.array([3, 7]))
    units = ArrayUnlabelled(proxy=unlabelled, stratum=np.repeat([0, 1], [40, 50]), separate=True)

    result = mean_vector(y, proxy=f, weighting=weighting, unlabelled=units, lam=0.6, target="superpopulation")

    expected = 0.0
    for h, (share, m) in enumerate([(0.3, 40), (0.7, 50)]):
        residual = (y - 0.6 * f)[stratum == h]
        own = unlabelled[np.repeat([0, 1], [40, 50]) == h]
        expected += share**2 * (np.var(residual, ddof=1) / 15 + 0.36 * np.var(own, ddof=1) / m)
    assert result.standard_errors[0] ** 2 == pytest.approx(expected)


def test_λ_in_the_papers_words_is_the_same_estimate():
    """Mean over unlabelled units only, with λ' = λ (N - n) / N."""
    data = Data()
    y, f = data.y[data.rows], data.f[data.rows]
    rest = np.delete(data.f, data.rows)
    weighting = StratifiedWeighting(stratum=np.zeros(30, int), sizes=np.array([200]))

    ours = mean_vector(y, proxy=f, weighting=weighting, unlabelled=ArrayUnlabelled(proxy=data.f), lam=0.8)
    theirs = mean_vector(
        y,
        proxy=f,
        weighting=weighting,
        lam=0.8 * 170 / 200,
        target="superpopulation",
        unlabelled=ArrayUnlabelled(proxy=rest, separate=True),
    )

    assert ours.values == pytest.approx(theirs.values)


def test_the_superpopulation_adds_the_population_s_own_variance():
    data = Data()
    population = data.fit(lam=0.5)
    known = data.fit(lam=0.5, target="superpopulation", stratum_weights_known=True)
    unknown = data.fit(lam=0.5, target="superpopulation")

    assert np.all(population.standard_errors < known.standard_errors)
    assert np.all(known.standard_errors <= unknown.standard_errors)


def test_poisson_sampling_and_supplied_weights_work():
    data = Data()
    weighting = PoissonWeighting(inclusion_probability=np.full(30, 0.15), size=200)
    units = ArrayUnlabelled(features=data.x, proxy=data.f)

    for chosen in (weighting, WithReplacementWeighting(design_weight=np.full(30, 200 / 30), size=200)):
        result = data.fit(weighting=chosen, unlabelled=units)
        assert 0 < result.lam[0] <= 1
        assert np.all(result.standard_errors > 0)


def test_a_poisson_sample_takes_a_separate_sample_into_account():
    data = Data()
    weighting = PoissonWeighting(inclusion_probability=np.full(30, 0.15), size=200)
    small, large = (
        ArrayUnlabelled(features=np.tile(data.x, (k, 1)), proxy=np.tile(data.f, k), separate=True)
        for k in (1, 50)
    )

    lam = [
        data.fit(weighting=weighting, unlabelled=u, target="superpopulation").lam[0] for u in (small, large)
    ]

    assert lam[0] < lam[1]


def test_strata_of_their_own_need_a_stratified_design():
    data = Data()
    weighting = PoissonWeighting(inclusion_probability=np.full(30, 0.15), size=200)

    with pytest.raises(InputError, match="requires a stratified sample"):
        data.fit(
            weighting=weighting,
            unlabelled=ArrayUnlabelled(features=data.x, proxy=data.f),
            estimator="stratppi",
        )


def test_λ_can_serve_one_coefficient():
    data = Data(seed=5)
    errors = {name: data.fit(minimise=name, correction="none").standard_errors for name in ("trace", 0, 1, 2)}

    for j in range(3):
        assert errors[j][j] <= errors["trace"][j] * 1.02


def test_a_contrast_vector_is_the_coefficient_that_it_picks():
    data = Data()

    assert data.fit(minimise="b", names=["a", "b", "c"]).lam == pytest.approx(data.fit(minimise=1).lam)


@pytest.mark.parametrize("hessian", ["rectified", "pooled"])
@pytest.mark.parametrize("correction", ["leverage", "none"])
def test_options_change_the_error_little(hessian, correction):
    data = Data()

    changed = data.fit(hessian=hessian, correction=correction).standard_errors

    assert changed == pytest.approx(data.fit().standard_errors, rel=0.4)


def test_two_fits_are_near_the_rectified_loss():
    data = Data()
    fits, loss = data.fit(form="fits", lam=0.7), data.fit(lam=0.7)

    assert fits.values == pytest.approx(loss.values, abs=0.3)
    assert not np.allclose(fits.values, loss.values)


def test_a_clipped_λ_is_said():
    data = Data()
    units = ArrayUnlabelled(features=data.x, proxy=-data.f, stratum=data.stratum)

    result = data.fit(proxy=-data.f[data.rows], unlabelled=units)

    assert np.all(result.lam == 0)
    assert "clipped" in result.notes[0]


def test_a_negative_correlation_helps_a_mean():
    data = Data()
    weighting = StratifiedWeighting(stratum=np.zeros(30, int), sizes=np.array([200]))

    result = mean_vector(
        data.y[data.rows],
        proxy=-data.f[data.rows],
        weighting=weighting,
        unlabelled=ArrayUnlabelled(proxy=-data.f),
    )
    classical = mean_vector(data.y[data.rows], weighting=weighting)

    assert result.lam[0] < 0
    assert result.standard_errors < classical.standard_errors


def test_a_constant_proxy_is_ignored():
    data = Data()
    units = ArrayUnlabelled(proxy=np.ones(200), stratum=data.stratum)

    result = mean_vector(
        data.y[data.rows], proxy=np.ones(30), weighting=data.weighting, unlabelled=units, estimator="stratppi"
    )

    assert np.all(result.lam == 0)
    assert np.isfinite(result.standard_errors[0])


def test_several_means_have_a_joint_covariance():
    data = Data()
    y = np.column_stack([data.y, data.y**2])[data.rows]

    result = mean_vector(y, weighting=data.weighting, names=["first", "second"])

    assert result.names == ("first", "second")
    assert result.covariance == pytest.approx(data.weighting.covariance(y))


class LogCosh(Loss):
    """A smooth relative of the absolute error."""

    name = "log-cosh"

    def n_parameters(self, features, outcome):
        return 1

    def gradients(self, theta, features, outcome):
        return np.tanh(theta[0] - outcome)[:, None]

    def hessian(self, theta, features, outcome, weights):
        return np.sum(weights / np.cosh(theta[0] - outcome) ** 2).reshape(1, 1)


def test_a_loss_of_one_s_own_is_minimised():
    data = Data()

    result = m_estimate(
        LogCosh(), data.y[data.rows], weighting=data.weighting, proxy=data.f[data.rows], unlabelled=data.units
    )

    at = result.values
    signs = np.tanh(at - data.y[data.rows]) - result.lam[0] * np.tanh(at - data.f[data.rows])
    total = data.weighting.weights @ signs + result.lam[0] * np.tanh(at - data.f).mean()
    assert total == pytest.approx(0.0, abs=1e-9)
    assert result.loss == "log-cosh"


# ---- errors


def test_collinear_features_are_named():
    data = Data()
    x = np.column_stack([data.x, data.x[:, 1] - 2 * data.x[:, 2]])[data.rows]

    with pytest.raises(InputError, match=r"collinear.*b, c, d"):
        linear_regression(x, data.y[data.rows], weighting=data.weighting, names=["a", "b", "c", "d"])


def test_a_feature_of_zeros_is_named():
    data = Data()
    x = np.column_stack([data.x, np.zeros(200)])[data.rows]

    with pytest.raises(InputError, match=r"collinear, or zero.*x3"):
        linear_regression(x, data.y[data.rows], weighting=data.weighting)


def test_separation_is_told():
    data = Data()
    y = (data.x[data.rows, 1] > 0.3).astype(float)

    with pytest.raises(InputError, match="separated by the features"):
        logistic_regression(data.x[data.rows], y, weighting=data.weighting)


def test_a_category_without_counts_is_separation_too():
    data = Data()
    group = (np.arange(30) % 2).astype(float)
    x = np.column_stack([np.ones(30), group])

    with pytest.raises(InputError, match="separated"):
        poisson_regression(x, 3 * (1 - group), weighting=data.weighting)


def test_counts_that_are_all_zero_have_no_logarithm():
    data = Data()

    with pytest.raises(InputError, match="separated"):
        poisson_regression(np.ones(30), np.zeros(30), weighting=data.weighting)


def test_separated_labels_can_be_rescued_by_the_proxies():
    """The proxies are not separated; λ between 0 and 1 keeps enough of the labels' loss to be bounded."""
    data = Data("logistic", seed=2)
    y = (data.x[data.rows, 1] > 0.3).astype(float)

    result = data.fit(logistic_regression, lam=1.0)
    assert np.all(np.isfinite(result.values))
    with pytest.raises(InputError, match="separated"):
        logistic_regression(data.x[data.rows], y, weighting=data.weighting)


def test_a_λ_outside_the_convex_range_is_told():
    data = Data()
    with pytest.raises(InputError, match="unbounded below"):
        data.fit(lam=-40.0)


def test_an_unbounded_rectified_loss_is_told():
    data = Data("logistic")
    with pytest.raises(InputError, match="rectified logistic loss has no minimum"):
        data.fit(logistic_regression, lam=60.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"estimator": "best"}, "no such estimator"),
        ({"target": "universe"}, "no such target"),
        ({"correction": "HC9"}, "no such correction"),
        ({"hessian": "mine"}, "no such hessian"),
        ({"form": "mine"}, "no such form"),
        ({"minimise": "slope"}, "no such coefficient"),
        ({"minimise": 9}, "no such coefficient"),
        ({"minimise": [1.0, 2.0]}, "no such coefficient"),
        ({"lam": [0.1, 0.2]}, "one number or one per stratum"),
        ({"names": ["a"]}, "one entry per coefficient"),
        ({"proxy": None}, "given together"),
        ({"proxy": np.ones((30, 2))}, "same shape"),
        ({"proxy": np.ones(29)}, "one entry per labelled unit"),
    ],
)
def test_bad_arguments_are_told(change, message):
    with pytest.raises(InputError, match=message):
        Data().fit(**change)


def test_populations_that_do_not_fit_are_told():
    data = Data()
    with pytest.raises(InputError, match="not the population of the design"):
        data.fit(unlabelled=ArrayUnlabelled(features=data.x, proxy=data.f))
    with pytest.raises(InputError, match="not the population of the design"):
        data.fit(unlabelled=ArrayUnlabelled(features=data.x[1:], proxy=data.f[1:], stratum=data.stratum[1:]))
    separate = ArrayUnlabelled(features=data.x, proxy=data.f, stratum=data.stratum, separate=True)
    with pytest.raises(InputError, match="cannot be used for a finite population"):
        data.fit(unlabelled=separate)
    with pytest.raises(InputError, match="different numbers of features"):
        data.fit(unlabelled=ArrayUnlabelled(features=data.x[:, :2], proxy=data.f, stratum=data.stratum))
    with pytest.raises(InputError, match="different numbers of features"):
        data.fit(unlabelled=ArrayUnlabelled(proxy=data.f, stratum=data.stratum))


def test_few_labels_are_told():
    data = Data()
    with pytest.raises(InputError, match="too few labels for this many coefficients"):
        linear_regression(
            data.x[:3],
            data.y[:3],
            weighting=StratifiedWeighting(stratum=np.zeros(3, int), sizes=np.array([9])),
        )
    with pytest.raises(InputError, match="stratum 1 has no label"):
        mean_vector(
            data.y[:4], weighting=StratifiedWeighting(stratum=np.zeros(4, int), sizes=np.array([60, 90]))
        )


def test_fits_are_for_linear_regression():
    with pytest.raises(InputError, match="for linear regression"):
        Data("logistic").fit(logistic_regression, form="fits")


def test_λ_without_a_proxy_is_told():
    data = Data()
    with pytest.raises(InputError, match="λ requires a proxy"):
        linear_regression(*data.labelled, weighting=data.weighting, lam=0.5)


def test_a_nonquadratic_quirk_is_an_input_error():
    class Wrong(LinearLoss):
        quadratic = False

        def hessian(self, theta, features, outcome, weights):
            return -super().hessian(theta, features, outcome, weights)

        def typical_curvature(self, outcome):
            return None

        def summed(self, theta, features, outcome, weights, *, curvature=True):
            return Loss.summed(self, theta, features, outcome, weights, curvature=curvature)

    data = Data()
    with pytest.raises(InputError, match="was not minimised"):
        m_estimate(Wrong(), data.y[data.rows], features=data.x[data.rows], weighting=data.weighting)


def test_a_λ_outside_the_convex_range_that_still_has_a_minimum_is_noted():
    random = np.random.default_rng(3)
    x = np.column_stack([np.ones(300), random.normal(size=300)])
    y = x[:, 1] + random.normal(size=300)
    weighting = StratifiedWeighting(stratum=np.zeros(60, int), sizes=np.array([300]))
    units = ArrayUnlabelled(features=x, proxy=y + 1)
    given = {"features": x[:60], "proxy": y[:60] + 1, "unlabelled": units, "weighting": weighting}

    assert m_estimate(LinearLoss(), y[:60], lam=1.0, **given).notes == ()
    assert "outside 0 to 1" in m_estimate(LinearLoss(), y[:60], lam=1.1, **given).notes[0]


def test_a_slope_that_few_labels_decide_says_so():
    """Log-normal features of a Poisson regression: coverage .43 to .78, one of .565, without a sign of it."""
    random = np.random.default_rng(3)
    x = np.r_[random.lognormal(0, 0.3, 399), 12.0]
    y = random.poisson(np.exp(0.3 * x - 0.5)) * 1.0
    weighting = StratifiedWeighting(stratum=np.zeros(400, int), sizes=np.array([6000]))
    few = poisson_regression(with_intercept(x[:, None]), y, weighting=weighting)
    straight = linear_regression(with_intercept(random.normal(size=(400, 1))), y, weighting=weighting)
    assert any("depends on about" in note and "highest leverage" in note for note in few.notes)
    assert straight.notes == ()
    y = random.poisson(0.8, 400) * 1.0
    other = poisson_regression(with_intercept(random.normal(size=(400, 1))), y, weighting=weighting)
    assert other.notes == ()


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("method", ["auto", "t", "normal"])
def test_limits_of_all_coefficients_are_those_of_each(kind, method):
    fit = Data(kind).fit(MODELS[kind])
    low, high = fit.confidence_interval(0.9, method)
    rows = [row.confidence_interval(0.9, method) for row in fit]
    assert low.tolist() == [row.low for row in rows]
    assert high.tolist() == [row.high for row in rows]
    above, infinite = fit.confidence_interval(0.9, method, alternative="greater")
    assert np.all(above > low)
    assert np.all(np.isinf(infinite))


def test_coefficients_are_a_sequence_of_the_same_estimates_and_can_be_pickled():
    fit = Data().fit()
    assert fit[0] is fit[0]
    assert len(fit) == len(fit[:]) == 3
    assert pickle.loads(pickle.dumps(fit)).to_dict() == fit.to_dict()
    with pytest.raises(InputError, match="unknown kind of interval"):
        fit.confidence_interval(method="wilsn")


def test_limits_that_hold_together_are_wider_than_each():
    fit = Data().fit()
    alone, together = fit.confidence_interval(), fit.simultaneous().confidence_interval()
    assert np.all(together[1] - together[0] > alone[1] - alone[0])
