from __future__ import annotations

import json

import numpy as np
import pytest

from stratal import proxy as proxies
from stratal.errors import BudgetError, InputError
from stratal.population import Population
from stratal.population.distribution import Distribution
from stratal.population.in_memory import ArrayPopulation
from stratal.strata import STRATIFICATION_METHODS, Strata, stratify
from stratal.strata.feature_clusters import fit_centres
from stratal.strata.optimal_boundaries import k_means_boundaries
from stratal.strata.strata import moments_of_bins

ONE_DIMENSIONAL = [name for name in STRATIFICATION_METHODS if name not in ("category", "features", "none")]


def population(n=600, seed=0, **more):
    rng = np.random.default_rng(seed)
    proxy = rng.beta(3, 1, n)
    return Population.from_arrays(
        proxy=proxy,
        groups={"language": rng.choice(["de", "en", "fr"], n, p=[0.6, 0.35, 0.05])},
        features={"length": proxy * 10 + rng.normal(size=n), "depth": rng.normal(1e6, 3, n)},
        **more,
    )


def check_against_units(strata, units):
    """Sizes and moments must be those of the units that the codes name."""
    (batch,) = units.batches(units.proxy_names)
    proxy = batch[units.proxy_names[0]]
    assert np.bincount(strata.codes, minlength=strata.n_strata).tolist() == strata.sizes.tolist()
    for h in range(strata.n_strata):
        inside = proxy[strata.codes == h]
        assert strata.proxy_means[h] == pytest.approx(inside.mean(), abs=1e-9)
        assert strata.proxy_variances[h] == pytest.approx(inside.var(), abs=1e-9)
        assert strata.conditional_variances[h] == pytest.approx(np.mean(inside * (1 - inside)), abs=1e-9)


class TestEveryMethod:
    @pytest.mark.parametrize("by", [None, "language"])
    @pytest.mark.parametrize("method", STRATIFICATION_METHODS)
    def test_partitions_the_population_and_knows_its_moments(self, method, by):
        if (method == "none" and by) or (method == "category" and by is None):
            return
        strata = stratify(population(), method, 4, by=by)

        assert strata.size == 600
        assert strata.method.startswith(method)
        check_against_units(strata, population())

    @pytest.mark.parametrize("by", [None, "language"])
    @pytest.mark.parametrize("method", [*ONE_DIMENSIONAL, "features"])
    def test_auto_leaves_every_stratum_its_draws(self, method, by):
        strata = stratify(population(), method, "auto", by=by, budget=40)

        assert np.minimum(2, strata.sizes).sum() <= 40
        assert "chosen for a budget of 40" in strata.notes[-1]

    @pytest.mark.parametrize("method", STRATIFICATION_METHODS)
    def test_survives_the_file(self, method):
        strata = stratify(population(), method, 3, by="language" if method == "category" else None)

        again = Strata.from_dict(json.loads(json.dumps(strata.to_dict())))

        assert again == strata
        assert population().codes(again.rule).tolist() == strata.codes.tolist()

    def test_outcomes_without_bounds_survive_the_file(self):
        units = Population.from_arrays(proxy=proxies.squared_regression_error([1.0, 2.0, 9.0, 10.0]))
        strata = stratify(units, "neyman", 2)

        again = Strata.from_dict(json.loads(json.dumps(strata.to_dict(), allow_nan=False)))

        assert again == strata
        assert again.bounds == (-np.inf, np.inf)

    @pytest.mark.parametrize("method", STRATIFICATION_METHODS)
    def test_a_constant_proxy_is_one_stratum(self, method):
        units = Population.from_arrays(
            proxy=np.full(20, 0.7), groups={"g": ["a"] * 20}, features={"x": np.zeros(20)}
        )

        strata = stratify(units, method, 10, by="g" if method == "category" else None)

        assert strata.sizes.tolist() == [20]
        if method in ONE_DIMENSIONAL:
            assert strata.notes == (
                "10 strata were requested and 1 formed: the proxy has only 1 distinct value.",
            )

    @pytest.mark.parametrize("method", [*ONE_DIMENSIONAL, "features"])
    def test_one_unit(self, method):
        strata = stratify(Population.from_arrays(proxy=[0.5], features={"x": [1.0]}), method)

        assert strata.sizes.tolist() == [1]

    @pytest.mark.parametrize("method", ONE_DIMENSIONAL)
    def test_row_order_is_irrelevant(self, method):
        proxy = np.random.default_rng(1).random(300)
        order = np.random.default_rng(2).permutation(300)

        straight = stratify(Population.from_arrays(proxy=proxy), method, 5)
        shuffled = stratify(Population.from_arrays(proxy=proxy[order]), method, 5)

        assert shuffled == straight
        assert shuffled.codes.tolist() == straight.codes[order].tolist()

    @pytest.mark.parametrize("method", [name for name in ONE_DIMENSIONAL if "neyman" not in name])
    def test_margins_order_without_a_scale(self, method):
        margin = np.random.default_rng(1).normal(size=300) * 5

        strata = stratify(Population.from_arrays(proxy=margin, scaled=False), method, 4)

        assert strata.n_strata == 4
        assert not strata.scaled
        assert strata.standard_deviations.tolist() == [1.0] * 4

    @pytest.mark.parametrize("method", ["k-means", "neyman", "equal-size", "cum-sqrt-f"])
    def test_histograms_give_the_sizes_of_the_codes(self, method):
        proxy = np.random.default_rng(3).beta(4, 1, 70_000)
        units = Population.from_arrays(proxy=proxy)

        strata = stratify(units, method, 10)

        assert not units.distribution().exact
        assert np.bincount(strata.codes, minlength=10).tolist() == strata.sizes.tolist()
        means = np.bincount(strata.codes, proxy) / strata.sizes
        assert strata.proxy_means == pytest.approx(means, abs=1e-8)


class TestNeyman:
    def test_beats_k_means_under_neyman_allocation_and_loses_under_proportional(self):
        k_means, neyman = (stratify(population(), method, 5) for method in ("k-means", "neyman"))

        def spread(s):
            return s.weights @ s.standard_deviations

        def variance(s):
            return s.weights @ s.standard_deviations**2

        assert spread(neyman) <= spread(k_means)
        assert variance(k_means) <= variance(neyman)

    @pytest.mark.parametrize("method", ["neyman", "robust-neyman"])
    @pytest.mark.parametrize("scaled", [None, True])
    def test_refuses_margins_and_outcomes_without_bounds(self, method, scaled):
        units = Population.from_arrays(proxy=[-3.0, 0.0, 8.0], scaled=scaled)

        with pytest.raises(InputError, match="variance of the outcome"):
            stratify(units, method, 2)


class TestCategories:
    def test_names_and_sizes(self):
        units = Population.from_arrays(proxy=[0.1, 0.2, 0.9], groups={"g": ["b", "a", "b"]})

        strata = stratify(units, "category", by="g")

        assert strata.names == ("g = a", "g = b")
        assert strata.sizes.tolist() == [1, 2]

    def test_without_a_proxy_the_spread_is_unknown(self):
        strata = stratify(Population.from_arrays(groups={"g": ["b", "a", "b"]}), "category", by="g")

        assert np.isnan(strata.proxy_means).all()
        assert strata.standard_deviations.tolist() == [1.0, 1.0]
        assert json.loads(json.dumps(strata.to_dict()))["proxy_means"] == [None, None]

    def test_ten_thousand_levels(self):
        rng = np.random.default_rng(0)
        levels = np.concatenate([np.arange(10_000), rng.integers(0, 10_000, 20_000)])
        units = Population.from_arrays(proxy=rng.random(30_000), groups={"g": levels})

        plain = stratify(units, "category", by="g")
        pooled = stratify(units, "category", "auto", by="g", budget=1000)
        crossed = stratify(units, "k-means", 2, by="g")

        assert plain.n_strata == 10_000
        assert 1 <= pooled.n_strata <= 500
        assert "were pooled" in pooled.notes[0]
        check = np.bincount(crossed.codes, minlength=crossed.n_strata)
        assert check.tolist() == crossed.sizes.tolist()

    @pytest.mark.parametrize("method", ["category", "k-means", "neyman"])
    def test_a_budget_pools_categories_too_small_for_their_draws(self, method):
        rng = np.random.default_rng(1)
        levels = np.where(rng.random(3000) < 0.9, 0, rng.integers(1, 200, 3000))
        units = Population.from_arrays(proxy=rng.random(3000), groups={"g": levels})

        strata = stratify(units, method, 3, by="g", budget=100)

        assert np.minimum(2, strata.sizes).sum() <= 100
        assert "were pooled" in strata.notes[0]
        assert strata.n_strata == (2 if method == "category" else 6)  # the pool is divided like a level
        check_against_units(strata, units)

    def test_a_pool_of_everything_is_cut_like_the_population(self):
        rng = np.random.default_rng(2)
        proxy = rng.random(2000)
        units = Population.from_arrays(proxy=proxy, groups={"g": np.arange(2000)})

        pooled = stratify(units, "k-means", 5, by="g", budget=50)
        plain = stratify(units, "k-means", 5)

        assert pooled.codes.tolist() == plain.codes.tolist()
        assert pooled.proxy_variances == pytest.approx(plain.proxy_variances)

    def test_each_level_has_cuts_of_its_own(self):
        units = Population.from_arrays(
            proxy=[0.0, 0.1, 0.5, 0.5, 0.9, 1.0], groups={"g": ["a", "a", "a", "b", "b", "b"]}
        )

        strata = stratify(units, "k-means", 2, by="g")

        assert strata.codes.tolist() == [0, 0, 1, 2, 3, 3]
        assert strata.names[0] == "g = a, proxy < 0.5"


class TestFeatures:
    def test_finds_clear_groups_whatever_their_scale(self):
        rng = np.random.default_rng(4)
        group = rng.integers(0, 3, 300)
        features = {"a": group + rng.normal(0, 0.01, 300), "b": 1e6 * group + rng.normal(0, 1e4, 300)}
        units = Population.from_arrays(proxy=rng.random(300), features=features)

        strata = stratify(units, "features", 3)

        assert len(set(zip(group.tolist(), strata.codes.tolist(), strict=True))) == 3

    def test_fewer_distinct_units_than_clusters(self):
        units = Population.from_arrays(proxy=[0.1, 0.2, 0.3, 0.4], features={"x": [1.0, 1.0, 2.0, 2.0]})

        strata = stratify(units, "features", 10)

        assert strata.sizes.tolist() == [2, 2]
        assert "10 strata were requested and 2 formed" in strata.notes[0]

    def test_a_feature_that_is_not_finite_is_named(self, monkeypatch):
        units = Population.from_arrays(proxy=[0.1, 0.2], features={"x": [1.0, 2.0]})
        monkeypatch.setattr(
            ArrayPopulation, "batches", lambda self, columns: iter([{"x": np.array([1.0, np.nan])}])
        )

        with pytest.raises(InputError, match="'x'"):
            stratify(units, "features", 2)

    def test_without_a_proxy_only_sizes_are_known(self):
        units = Population.from_arrays(
            groups={"g": ["a", "a", "a", "b"]}, features={"x": np.array([0.0, 0.1, 5.0, 5.0])}
        )

        strata = stratify(units, "features", 2)
        crossed = stratify(units, "features", 2, by="g")

        assert sorted(strata.sizes.tolist()) == [2, 2]
        assert sorted(crossed.sizes.tolist()) == [1, 1, 2]
        assert np.isnan(strata.proxy_means).all()

    def test_a_category_spread_over_many_batches_is_gathered(self, monkeypatch):
        units = population(2000)
        whole = stratify(units, "features", 3, by="language", features=["length"])
        batches = ArrayPopulation.batches
        monkeypatch.setattr(
            ArrayPopulation, "batches", lambda self, columns, size=0: batches(self, columns, 100)
        )

        pieces = stratify(units, "features", 3, by="language", features=["length"])

        assert pieces.codes.tolist() == whole.codes.tolist()

    def test_small_categories_are_clustered_as_if_each_were_read_alone(self):
        rng = np.random.default_rng(3)
        group, x = rng.choice(list("abcdefgh"), 1000), rng.normal(size=1000)
        units = Population.from_arrays(proxy=rng.random(1000), features={"x": x}, groups={"g": group})

        found = stratify(units, "features", 3, by="g").rule

        for level, rule in zip(found.categories.levels, found.inner, strict=True):
            alone = fit_centres(np.sort(x[group == level])[:, None], ("x",), 3)
            assert np.sort(rule.centres.ravel()).tolist() == np.sort(alone.centres.ravel()).tolist()

    def test_many_small_categories_are_read_in_one_pass(self, monkeypatch):
        passes, batches = [], ArrayPopulation.batches

        def counted(self, columns, size=262_144):
            passes.append(columns)
            return batches(self, columns, size)

        monkeypatch.setattr(ArrayPopulation, "batches", counted)
        generator = np.random.default_rng(3)
        units = Population.from_arrays(
            features={"x": generator.random(300)}, groups={"g": np.arange(300) % 30}
        )

        stratify(units, "features", 2, by="g")

        assert passes.count(("g", "x")) == 1  # to fit; sizes are counted

    def test_row_order_is_irrelevant_in_one_piece(self):
        rng = np.random.default_rng(8)
        proxy, x, y = rng.random(400), rng.normal(size=400), rng.normal(size=400)
        order = rng.permutation(400)

        straight = stratify(Population.from_arrays(proxy=proxy, features={"x": x, "y": y}), "features", 5)
        shuffled = stratify(
            Population.from_arrays(proxy=proxy[order], features={"x": x[order], "y": y[order]}), "features", 5
        )

        assert shuffled.rule == straight.rule
        assert shuffled.codes.tolist() == straight.codes[order].tolist()


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"method": "kmeans"}, "'k-means'"),
            ({"n_strata": 0}, "n_strata"),
            ({"n_strata": 2.5}, "n_strata"),
            ({"n_strata": True}, "n_strata"),
            ({"n_strata": "auto"}, "requires a budget"),
            ({"n_strata": "auto", "budget": 0}, "budget"),
            ({"minimum": 0}, "minimum"),
            ({"method": "category"}, "by="),
            ({"method": "none", "by": "language"}, "without a group column"),
            ({"by": "languge"}, "'language'"),
            ({"proxy": "score"}, "'proxy'"),
            ({"method": "features", "features": ["lenght"]}, "'length'"),
            ({"method": "features", "features": []}, "no feature column was named"),
        ],
    )
    def test_says_what_is_wrong(self, arguments, message):
        with pytest.raises(InputError, match=message):
            stratify(population(), **arguments)

    def test_no_proxy(self):
        with pytest.raises(InputError, match="no proxy"):
            stratify(Population.from_arrays(ids=["a", "b"]))

    def test_no_features(self):
        with pytest.raises(InputError, match="no feature columns"):
            stratify(Population.from_arrays(proxy=[0.1, 0.2]), "features")

    def test_budget_below_one_stratum(self):
        with pytest.raises(BudgetError):
            stratify(population(), n_strata="auto", budget=1)


class TestHardHistograms:
    """Populations too large for one bin per value, shaped to defeat a histogram."""

    SHAPES = {  # noqa: RUF012
        "one unit far away": lambda x: np.append(x, 1e6),
        "one unit far below": lambda x: np.append(x, -1e6),
        "all in one bin but two": lambda x: np.concatenate([0.5 + 1e-7 * x, [0.0, 1.0]]),
        "two lumps": lambda x: np.where(x < 0.3, 1e-9 * x, 1 - 1e-9 * x),
        "mostly one value": lambda x: np.where(x < 0.99, 1.0, x),
        "an offset": lambda x: x + 1e8,
    }

    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.parametrize("method", ["k-means", "equal-size", "cum-sqrt-f", "gaussian-mixture"])
    def test_sizes_are_those_of_the_codes(self, method, shape):
        proxy = self.SHAPES[shape](np.random.default_rng(1).random(70_000))

        strata = stratify(Population.from_arrays(proxy=proxy, scaled=False), method, 6)

        assert 1 <= strata.n_strata <= 6
        assert np.bincount(strata.codes, minlength=strata.n_strata).tolist() == strata.sizes.tolist()

    @pytest.mark.parametrize("shape", SHAPES)
    def test_k_means_is_near_the_optimum_of_the_units(self, shape):
        proxy = self.SHAPES[shape](np.random.default_rng(1).random(70_000))

        strata = stratify(Population.from_arrays(proxy=proxy, scaled=False), "k-means", 4)

        values, counts = np.unique(proxy, return_counts=True)
        exact = Distribution(values=values, counts=counts, cuts=values[1:])
        best = moments_of_bins(exact, k_means_boundaries(exact, 4)[-1])
        within = strata.sizes @ [proxy[strata.codes == h].var() for h in range(strata.n_strata)]
        assert within <= best.sizes @ best.proxy_variances * (1 + 1e-4) + 1e-9


@pytest.mark.parametrize("named", [False, True])
def test_embeddings_are_given_as_a_matrix(named):
    rng = np.random.default_rng(0)
    embeddings = rng.normal(0, 0.1, (90, 3)) + np.repeat(np.eye(3), 30, axis=0)

    units = Population.from_arrays(features={"e": embeddings} if named else embeddings)
    strata = stratify(units, "features", 3, standardise=False)

    assert units.feature_names == tuple(f"{'e' if named else 'feature'}_{column}" for column in range(3))
    assert sorted(strata.sizes.tolist()) == [30, 30, 30]
    assert len(set(strata.codes[:30].tolist())) == 1
