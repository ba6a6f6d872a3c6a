from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.isotonic import IsotonicRegression

from stratal import proxy as proxies
from stratal.errors import InputError
from stratal.population import Population
from stratal.proxy import Proxy, calibrate, combine, cross_fit
from stratal.proxy import calibration as calibration_module
from stratal.strata import stratify


def rows(n=50, k=4, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(k), n)


class TestProxy:
    def test_enters_a_population_with_its_moments(self):
        f = rows(200)
        population = Population.from_arrays(proxy=proxies.squared_error(f))

        strata = stratify(population, "neyman", 3)

        given = proxies.squared_error(f)
        expected = [given.conditional_variances[strata.codes == h].mean() for h in range(3)]
        assert strata.conditional_variances == pytest.approx(expected, abs=1e-6)
        assert population.proxy_names == ("squared_error",)

    def test_binary_spread_follows_from_the_mean(self):
        assert Proxy(values=[0.5, 1.0]).conditional_variances.tolist() == [0.25, 0.0]

    def test_other_bounds(self):
        assert Proxy(values=[2.0], bounds=(1.0, 5.0)).conditional_variances.tolist() == [3.0]

    def test_a_margin_says_nothing_of_the_spread(self):
        margin = proxies.margin([2.0, -1.0])

        assert len(margin) == 2
        assert margin.conditional_variances.tolist() == [0.0, 0.0]

    @pytest.mark.parametrize(
        "value",
        [
            Proxy(values=[0.5]),
            calibrate([0.1, 0.9], [0, 1]),
            combine([[0.1], [0.9]], [0, 1]),
            cross_fit([0.1, 0.9, 0.2, 0.8], [0, 1, 0, 1], n_folds=2),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_nothing_equals_something_else(self, value):
        assert value == value
        assert value != "something else"

    def test_equality_is_by_value(self):
        assert Proxy(values=[0.5]) == Proxy(values=np.array([0.5]))
        assert Proxy(values=[0.5]) != Proxy(values=[0.6])

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            ({"values": [0.5, np.nan]}, "NaN"),
            ({"values": [0.5, 1.5]}, "position 1"),
            ({"values": [0.5], "second_moments": [0.1]}, "squared mean"),
            ({"values": [0.5], "second_moments": [0.3, 0.3]}, "one entry per unit"),
            ({"values": [5.0], "second_moments": [30.0], "scaled": False}, "scaled=False"),
        ],
    )
    def test_says_what_is_wrong(self, fields, message):
        with pytest.raises(InputError, match=message):
            Proxy(**fields)


class TestClassification:
    def test_accuracy_is_the_probability_of_the_prediction(self):
        f, p = rows(), rows(seed=1)

        assert proxies.accuracy(f).values == pytest.approx(f.max(axis=1))
        assert proxies.accuracy(f, surrogate=p).values == pytest.approx(p[np.arange(50), f.argmax(axis=1)])
        assert proxies.accuracy(f, predicted=np.zeros(50, int)).values == pytest.approx(f[:, 0])

    def test_a_vector_is_the_probability_of_class_one(self):
        assert proxies.accuracy([0.2, 0.7]).values == pytest.approx([0.8, 0.7])
        assert proxies.accuracy([0.2, 0.7], predicted=[True, True]).values == pytest.approx([0.2, 0.7])

    @pytest.mark.parametrize("surrogate", [None, rows(seed=1)])
    def test_expected_losses_from_the_definition(self, surrogate):
        f = rows()
        p = f if surrogate is None else surrogate
        for build, loss in (
            (proxies.squared_error, (1 - f) ** 2),
            (proxies.cross_entropy, -np.log(np.maximum(f, 1e-7))),
        ):
            proxy = build(f, surrogate=surrogate)

            assert proxy.values == pytest.approx(np.sum(p * loss, axis=1))
            assert proxy.second_moments == pytest.approx(np.sum(p * loss**2, axis=1))

    def test_moments_are_those_of_drawn_labels(self):
        rng = np.random.default_rng(5)
        f, p = rows(1), rows(1, seed=1)
        z = (1 - f[0, rng.choice(4, 40_000, p=p[0])]) ** 2

        proxy = proxies.squared_error(f, surrogate=p)

        assert proxy.values[0] == pytest.approx(z.mean(), abs=5 * z.std() / 200)
        assert proxy.second_moments[0] == pytest.approx((z**2).mean(), abs=5 * (z**2).std() / 200)

    def test_a_certain_miss_costs_the_floor(self):
        proxy = proxies.cross_entropy([[1.0, 0.0]], surrogate=[[0.0, 1.0]], floor=1e-3)

        assert proxy.values == pytest.approx(-np.log(1e-3))
        assert proxy.bounds == pytest.approx((0.0, -np.log(1e-3)))

    def test_float32_and_many_classes(self):
        f = rows(3000, 700).astype(np.float32)

        assert proxies.squared_error(f).values.dtype == np.float64
        assert proxies.accuracy(f).values.max() <= 1.0

    def test_margins_order(self):
        two, many = proxies.margin([-2.0, 0.5]), proxies.margin([[3.0, 1.0, 2.5]])

        assert two.values.tolist() == [2.0, 0.5]
        assert many.values.tolist() == [0.5]
        assert not two.scaled

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda: proxies.accuracy([[0.5, 0.6]]), "row 0 does not sum to one"),
            (
                lambda: proxies.accuracy([[0.5, 0.5], [-0.2, 1.2]]),
                "row 1 .*least -0.2; allowed: .* and no negative entry",
            ),
            (lambda: proxies.accuracy([[0.5, np.nan]]), "row 0 .*given: nan"),
            (lambda: proxies.accuracy([[1.0]]), "shape"),
            (lambda: proxies.accuracy([["a", "b"]]), "not numeric"),
            (lambda: proxies.accuracy(), "requires probabilities"),
            (lambda: proxies.accuracy(surrogate=rows()), "requires probabilities"),
            (lambda: proxies.accuracy(rows(), predicted=np.full(50, 4)), "0 to 3"),
            (lambda: proxies.accuracy(rows(), predicted=np.full(50, 0.5)), "class numbers"),
            (lambda: proxies.accuracy(rows(), predicted=[0]), "one class per unit"),
            (lambda: proxies.squared_error(rows(), surrogate=rows(k=3)), "two arrays"),
            (lambda: proxies.cross_entropy(rows(), floor=0.0), "floor"),
            (lambda: proxies.margin([[1.0]]), "shape"),
            (lambda: proxies.margin([np.inf]), "infinite"),
        ],
    )
    def test_says_what_is_wrong(self, call, message):
        with pytest.raises(InputError, match=message):
            call()


class TestRegression:
    @pytest.mark.parametrize(("bias", "sigma"), [(0.0, 1.0), (0.7, 0.5), (-3.0, 2.0), (100.0, 0.01)])
    def test_moments_by_integration(self, bias, sigma):
        arguments = {"variance": [sigma**2], "mean": [5.0 + bias], "prediction": [5.0]}
        absolute = proxies.absolute_regression_error(**arguments)
        squared = proxies.squared_regression_error(**arguments)

        def moment(power):
            def integrand(e):
                return abs(e) ** power * stats.norm.pdf(e, bias, sigma)

            low, high = bias - 12 * sigma, bias + 12 * sigma
            return integrate.quad(integrand, low, high, points=[min(max(0.0, low), high)])[0]

        assert absolute.values == pytest.approx(moment(1), rel=1e-7)
        assert absolute.second_moments == pytest.approx(moment(2), rel=1e-7)
        assert squared.values == pytest.approx(moment(2), rel=1e-7)
        assert squared.second_moments == pytest.approx(moment(4), rel=1e-7)

    def test_certainty_leaves_the_bias(self):
        proxy = proxies.absolute_regression_error([0.0, 0.0], mean=[1.0, 2.0], prediction=[1.0, 5.0])

        assert proxy.values.tolist() == [0.0, 3.0]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"variance": [-1.0]}, "negative at position 0"),
            ({"variance": [1.0], "mean": [0.0]}, "together"),
            ({"variance": [1.0], "mean": [0.0], "prediction": [0.0, 1.0]}, "one entry per unit"),
        ],
    )
    def test_says_what_is_wrong(self, arguments, message):
        with pytest.raises(InputError, match=message):
            proxies.squared_regression_error(**arguments)


class TestCalibration:
    def test_isotonic_agrees_with_scikit_learn_without_smoothing(self, monkeypatch):
        rng = np.random.default_rng(1)
        x = np.round(rng.random(300), 2)
        y, w = rng.random(300) < x**2, rng.uniform(0.5, 2, 300)
        monkeypatch.setattr(calibration_module, "SMOOTHING", 0.0)

        predictions = calibrate(x, y, weights=w).apply(np.linspace(0, 1, 50))

        peer = IsotonicRegression(out_of_bounds="clip").fit(x, y, sample_weight=w)
        assert predictions == pytest.approx(peer.predict(np.linspace(0, 1, 50)), abs=1e-9)

    @pytest.mark.parametrize("method", ["isotonic", "logistic"])
    def test_recovers_an_overconfident_score(self, method):
        rng = np.random.default_rng(2)
        truth = rng.uniform(0.05, 0.95, 20_000)
        score = truth**3 / (truth**3 + (1 - truth) ** 3)

        curve = calibrate(score, rng.random(20_000) < truth, method=method)

        assert np.abs(curve.apply(score) - truth).mean() < 0.02
        assert np.all(np.diff(curve.apply(np.sort(score))) >= -1e-12)

    @pytest.mark.parametrize("method", ["isotonic", "logistic"])
    @pytest.mark.parametrize("outcome", [0.0, 1.0])
    @pytest.mark.parametrize("score", [[0.1, 0.9] * 5, [0.5] * 10, [0.0, 1.0] * 5, [-40.0, 3.0] * 5])
    def test_labels_that_all_agree_leave_room_for_doubt(self, method, outcome, score):
        predictions = calibrate(score, [outcome] * 10, method=method).apply([*score, -1e6, 1e6])

        assert np.isfinite(predictions).all()
        assert np.all((predictions >= 0) & (predictions <= 1))
        if method == "logistic" and min(score) >= 0:
            assert 0 < predictions[0] < 1

    def test_logistic_maximises_its_objective(self):
        from scipy.optimize import minimize
        from scipy.special import logit

        rng = np.random.default_rng(3)
        x = rng.uniform(0.02, 0.98, 80)
        y = (rng.random(80) < x**2).astype(float)
        curve = calibrate(x, y, method="logistic")

        def loss(beta):
            eta = beta[0] + beta[1] * logit(x)
            return np.sum(np.logaddexp(0, eta) - y * eta) + 0.5 * (beta[0] ** 2 + (beta[1] - 1) ** 2)

        peer = minimize(loss, [0.0, 1.0], tol=1e-12).x
        assert [curve.intercept, curve.slope] == pytest.approx(peer, abs=1e-5)

    def test_ratings_get_a_residual_variance_within_their_bounds(self):
        rng = np.random.default_rng(4)
        x = rng.normal(size=500)
        y = np.clip(3 + x + rng.normal(0, 0.5, 500), 1, 5)

        proxy = calibrate(x, y, bounds=(1.0, 5.0)).proxy(x)

        assert proxy.bounds == (1.0, 5.0)
        assert np.median(proxy.conditional_variances) == pytest.approx(0.22, abs=0.05)

    def test_takes_and_makes_proxies(self):
        margin = proxies.margin(np.random.default_rng(5).normal(size=100))

        proxy = calibrate(margin, np.arange(100) % 3 > 0, method="logistic").proxy(margin)

        assert proxy.scaled
        assert proxy.second_moments is None

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (([0.5], [1]), "too few"),
            (([0.5, 0.6], [1, 2]), "outside their bounds"),
            (([0.5, 0.6], [1]), "one entry per unit"),
            (([0.5, np.inf], [1, 0]), "infinite"),
        ],
    )
    def test_says_what_is_wrong(self, arguments, message):
        with pytest.raises(InputError, match=message):
            calibrate(*arguments)
        with pytest.raises(InputError, match="isotonic"):
            calibrate([0.1, 0.2], [0, 1], method="spline")
        with pytest.raises(InputError, match="positive"):
            calibrate([0.1, 0.2], [0, 1], weights=[1, 0])


class TestCombination:
    def judges(self, n=2000):
        rng = np.random.default_rng(6)
        truth = rng.random(n)
        scores = truth[:, None] + rng.normal(0, [0.2, 0.4], (n, 2))
        return scores, (rng.random(n) < truth).astype(float), truth

    def test_beats_its_best_judge(self):
        scores, z, truth = self.judges()

        predictions = combine(scores[:1000], z[:1000]).apply(scores[1000:])

        best = calibrate(scores[:1000, 0], z[:1000]).apply(scores[1000:, 0])
        assert np.mean((predictions - truth[1000:]) ** 2) < np.mean((best - truth[1000:]) ** 2)

    def test_linear_is_least_squares(self, monkeypatch):
        from stratal.proxy import calibration as combination

        monkeypatch.setattr(combination, "RIDGE", 0.0)
        scores, z, _ = self.judges()
        w = np.random.default_rng(7).uniform(0.5, 2, len(z))
        design = np.column_stack([np.ones(len(z)), scores]) * np.sqrt(w)[:, None]

        found = combine(scores, z, weights=w).model

        expected = np.linalg.lstsq(design, z * np.sqrt(w), rcond=None)[0]
        assert [found.intercept, *found.coefficients] == pytest.approx(expected)

    def test_twins_and_constants_do_no_harm(self):
        scores, z, _ = self.judges()
        more = np.column_stack([scores, scores[:, 0], np.full(len(z), 7.0)])

        fit = combine(more, z)

        assert fit.model.coefficients[3] == 0.0
        assert fit.apply(more) == pytest.approx(combine(scores, z).apply(scores), abs=1e-3)

    def test_named_proxies(self):
        scores, z, _ = self.judges()
        named = {"a": Proxy(values=scores[:, 0], scaled=False), "b": scores[:, 1]}

        assert combine(named, z).proxy(named).values == pytest.approx(combine(scores, z).apply(scores))

    def test_says_what_is_wrong(self):
        scores, z, _ = self.judges(50)

        with pytest.raises(InputError, match="number of scores"):
            combine(scores, z).apply(scores[:, :1])
        with pytest.raises(InputError, match="unknown learner"):
            cross_fit(scores, z, method="isotonic")
        with pytest.raises(InputError, match="shape"):
            combine(scores[:, 0], z)


class TestCrossFit:
    def test_no_unit_sees_its_own_label(self):
        rng = np.random.default_rng(8)
        x = rng.random(60)
        y = (rng.random(60) < x).astype(float)
        fitted = cross_fit(x, y, method="isotonic")
        flipped = y.copy()
        flipped[17] = 1 - flipped[17]

        again = cross_fit(x, flipped, method="isotonic")

        own_fold = fitted.folds == fitted.folds[17]
        assert again.labelled_values[own_fold].tolist() == fitted.labelled_values[own_fold].tolist()
        assert again.labelled_values[~own_fold].tolist() != fitted.labelled_values[~own_fold].tolist()

    def test_fitting_on_the_same_labels_flatters_and_cross_fitting_does_not(self):
        rng = np.random.default_rng(9)
        x = rng.random((200, 40))
        y = (rng.random((200, 40)) < 0.5).astype(float)

        pairs = list(zip(x, y, strict=True))
        own = [np.cov(calibrate(a, b).apply(a), b)[0, 1] for a, b in pairs]
        crossed = [np.cov(cross_fit(a, b, method="isotonic").labelled_values, b)[0, 1] for a, b in pairs]

        assert np.mean(own) > 0.01
        assert np.mean(crossed) < 0.0

    def test_labelled_rows_get_their_own_values(self):
        rng = np.random.default_rng(10)
        scores = rng.random(100)
        drawn = rng.permutation(100)[:20]
        fitted = cross_fit(scores[drawn], rng.random(20) < 0.5)

        proxy = fitted.proxy(scores, labelled_rows=drawn)

        assert proxy.values[drawn].tolist() == fitted.labelled_values.tolist()
        rest = np.setdiff1d(np.arange(100), drawn)
        assert proxy.values[rest].tolist() == fitted.apply(scores)[rest].tolist()

    def test_several_judges(self):
        rng = np.random.default_rng(11)

        fitted = cross_fit(rng.random((30, 2)), rng.random(30), n_folds=3)

        assert fitted.proxy(rng.random((9, 2))).second_moments is not None
        assert fitted == fitted

    @pytest.mark.parametrize("n_folds", [1, 5])
    def test_says_what_is_wrong(self, n_folds):
        with pytest.raises(InputError, match="n_folds"):
            cross_fit([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1], n_folds=n_folds)
