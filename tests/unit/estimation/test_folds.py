from __future__ import annotations

import numpy as np
import pytest

import stratal
from stratal.designs import PoissonWeighting, StratifiedWeighting
from stratal.errors import InputError
from stratal.estimation.cross_fitting import (
    assign_folds,
    check_folds,
    combine_fits,
    cross_fit_lam,
    fold_shares,
    sampled_fractions,
)
from stratal.estimation.lam import SHRINKAGE_LABELS, LabelledProxies, fit_lam
from stratal.population.summary import StratumSummary

RNG = np.random.default_rng(3)
N_H = np.array([20, 12, 3])
SIZES = np.array([100, 60, 30])
STRATUM = np.repeat(np.arange(3), N_H)
PROXY = RNG.random(35)
Z = (RNG.random(35) < PROXY**2).astype(float)
WEIGHTING = StratifiedWeighting(stratum=STRATUM, sizes=SIZES)


def moments(means=0.5):
    return LabelledProxies(
        values=PROXY[:, None],
        stratum=STRATUM,
        summary=StratumSummary(
            sizes=SIZES, proxy_means=np.full((3, 1), means), proxy_covariances=np.full((3, 1, 1), 1 / 12)
        ),
    )


class TestFolds:
    def test_are_balanced_within_strata_and_altogether(self):
        folds = assign_folds(RNG.random(35), STRATUM, 5)

        assert np.bincount(folds).tolist() == [7] * 5
        for h in range(2):
            counts = np.bincount(folds[h == STRATUM], minlength=5)
            assert counts.max() - counts.min() <= 1

    def test_do_not_depend_on_the_order_of_rows(self):
        keys, order = RNG.random(35), RNG.permutation(35)

        assert np.array_equal(
            assign_folds(keys, STRATUM, 4)[order], assign_folds(keys[order], STRATUM[order], 4)
        )

    def test_of_clusters_do_not_depend_on_the_order_of_rows(self):
        keys, order = RNG.random(35), RNG.permutation(35)
        cluster = np.arange(35) // 5
        stratum = np.zeros(35, int)
        folds = assign_folds(keys, stratum, 4, cluster)

        assert np.array_equal(folds[order], assign_folds(keys[order], stratum, 4, cluster[order]))

    def test_keep_clusters_whole(self):
        cluster = np.array([2, 0, 1, 1, 2, 3, 0])
        folds = assign_folds(RNG.random(7), np.zeros(7, int), 2, cluster)

        for name in range(4):
            assert len(set(folds[cluster == name].tolist())) == 1
        assert set(folds.tolist()) == {0, 1}

    @pytest.mark.parametrize("n_folds", [1, 0, -3, 11, 2.5, True, "5"])
    def test_numbers_that_do_not_fit_are_refused(self, n_folds):
        with pytest.raises(InputError, match="number of folds"):
            check_folds(n_folds, 10)

    def test_shares_of_a_stratum_without_labels_are_the_whole_samples(self):
        shares = fold_shares(np.array([0, 0, 1]), np.array([0, 0, 0]), 2)

        assert shares[:, 1] == pytest.approx([2 / 3, 1 / 3])
        assert shares.sum(axis=0) == pytest.approx([1, 1])


class TestBlended:
    def test_is_the_own_fit_with_replacement_and_the_average_in_a_census(self):
        fitted, folds, stratum = RNG.random((4, 2)), np.array([0, 1, 0, 1]), np.zeros(4, int)
        shares = fold_shares(folds, stratum, 1)

        assert np.array_equal(
            fitted[np.arange(4), folds], combine_fits(fitted, folds, stratum, shares, np.array([0.0]))
        )
        assert fitted.mean(axis=1) == pytest.approx(
            combine_fits(fitted, folds, stratum, shares, np.array([1.0]))
        )

    def test_fractions_are_of_the_strata_or_of_all(self):
        poisson = PoissonWeighting(inclusion_probability=np.full(5, 0.5), size=20)
        again = StratifiedWeighting(stratum=STRATUM, sizes=SIZES, with_replacement=True)

        assert sampled_fractions(WEIGHTING, 3) == pytest.approx(N_H / SIZES)
        assert sampled_fractions(again, 3) == pytest.approx([0, 0, 0])
        assert sampled_fractions(poisson, 1) == pytest.approx([0.25])


class TestLam:
    @pytest.mark.parametrize("shrinkage", [None, SHRINKAGE_LABELS])
    def test_a_units_own_fold_does_not_move_its_lam(self, shrinkage):
        folds = assign_folds(RNG.random(35), STRATUM, 5)
        weighting = StratifiedWeighting(stratum=STRATUM, sizes=SIZES, with_replacement=True)
        other = np.where(folds == 2, 1 - Z, Z)
        chosen = fit_lam(Z, moments(), weighting)
        before = cross_fit_lam(chosen, Z, moments(), weighting, folds, shrinkage=shrinkage)[1]
        after = cross_fit_lam(chosen, other, moments(), weighting, folds, shrinkage=shrinkage)[1]

        assert np.array_equal(before[folds == 2], after[folds == 2])
        assert not np.allclose(before[folds != 2], after[folds != 2])

    def test_the_mean_is_that_of_the_units(self):
        folds = assign_folds(RNG.random(35), STRATUM, 5)
        chosen = fit_lam(Z, moments(), WEIGHTING)
        found, by_unit = cross_fit_lam(chosen, Z, moments(), WEIGHTING, folds, shrinkage=SHRINKAGE_LABELS)

        for h in range(3):
            assert by_unit[h == STRATUM].mean() == pytest.approx(found.lam[h, 0])

    def test_a_stratum_with_too_few_labels_takes_the_pooled_lam(self):
        folds = np.arange(35) % 3  # leaves two labels of the last stratum
        own = fit_lam(Z, moments(), WEIGHTING, SHRINKAGE_LABELS, folds != 0).lam
        pooled = fit_lam(Z, moments(), WEIGHTING, used=folds != 0).lam

        assert own[2] == pytest.approx(pooled[2])
        assert own[0] != pytest.approx(pooled[0])

    def test_general_weights_use_the_kept_units_alone(self):
        weighting = PoissonWeighting(inclusion_probability=RNG.uniform(0.2, 0.9, 35), size=70)
        proxy = LabelledProxies(
            values=PROXY[:, None],
            stratum=np.zeros(35, int),
            summary=StratumSummary(
                sizes=np.array([70]), proxy_means=np.array([[0.5]]), proxy_covariances=np.array([[[0.08]]])
            ),
        )
        kept = np.arange(35) % 5 != 0
        alone = PoissonWeighting(inclusion_probability=weighting.inclusion_probability[kept], size=70)
        fewer = LabelledProxies(values=proxy.values[kept], stratum=proxy.stratum[kept], summary=proxy.summary)

        assert fit_lam(Z, proxy, weighting, used=kept).lam == pytest.approx(
            fit_lam(Z[kept], fewer, alone).lam
        )


def drawn(design, n=400, seed=5):
    rng = np.random.default_rng(seed)
    proxy = rng.beta(2, 1, n)
    z = (rng.random(n) < proxy**2).astype(float)
    population = stratal.Population.from_arrays(
        proxy=proxy, groups={"document": np.repeat(np.arange(n // 5), 5).astype(str)}
    )
    sample = design.draw(population, seed)
    return sample, z[sample.ids], z


class TestEstimate:
    def test_says_so_and_differs_little_from_the_plain_fit(self):
        sample, labels, _ = drawn(stratal.designs.SimpleRandom(budget=100))
        plain = stratal.estimate(sample, labels, estimator="ppi++")
        estimate = stratal.estimate(sample, labels, estimator="ppi++", cross_fit=5)

        assert "λ was cross-fitted in 5 folds" in estimate.notes
        assert estimate.value != plain.value
        assert abs(estimate.value - plain.value) < 0.5 * plain.standard_error
        assert estimate == stratal.estimate(sample, labels, estimator="ppi++", cross_fit=5)

    @staticmethod
    def lam_of(z, x, spread, mean) -> float:
        """The formula of docs/methods/means.md: filled up, shrunk to a calibrated proxy, and as supported."""
        n, p = len(z), z.mean()
        joint = np.cov(z, x)
        explained = joint[0, 1] ** 2 / (joint[0, 0] * max(joint[1, 1], spread))
        slope = np.clip(((n - 1) * joint[0, 1] + 0.5) / ((n - 1) * joint[1, 1] + 0.5), 0.0, 1.0)
        joint[0, 1] += slope * max(spread - joint[1, 1], 0.0)
        fitted = joint[0, 1] / (((n - 1) * max(joint[1, 1], spread) + 2 * spread) / (n + 1))
        share, likely = (z.sum() + 0.5) / (n + 1), p - slope * (x.mean() - mean)
        calibrated = min(1.0, max(joint[0, 0], share * (1 - share), likely * (1 - likely)) / spread)
        informative = 4 * n * p * (1 - p)
        trust = informative**2 / (informative**2 + 20**2)
        against = min(1.0, (1 - explained) / (informative * explained)) ** 2
        supported = 1 - informative**4 / (informative**4 + 10**4) * against
        return float(supported * (trust * fitted + (1 - trust) * calibrated))

    def test_by_hand(self):
        sample, z, _ = drawn(stratal.designs.SimpleRandom(budget=40))
        estimate = stratal.estimate(sample, z, estimator="ppi++", cross_fit=2)
        x, mean = sample.proxies[:, 0], sample.summary.proxy_means[0, 0]
        spread = sample.summary.proxy_covariances[0, 0, 0] * 400 / 399
        half = np.argsort(np.argsort(_keys(sample))) % 2
        lam = np.array([self.lam_of(z[half != k], x[half != k], spread, mean) for k in (0, 1)])
        blend = 0.9 * lam[half] + 0.1 * lam.mean()

        assert estimate.value == pytest.approx(np.mean(z - blend * (x - mean)), abs=1e-12)
        assert estimate.standard_error**2 == pytest.approx(
            0.9 * np.var(z - blend * (x - mean), ddof=1) / 40, abs=1e-12
        )

    @pytest.mark.parametrize("folds", [2, 5, 100])
    def testFourStrata(self, folds):
        sample, labels, z = drawn(FourStrata(100))
        for estimator in ("ppi++", "stratppi"):
            estimate = stratal.estimate(sample, labels, estimator=estimator, cross_fit=folds)

            assert abs(estimate.value - z.mean()) < 4 * estimate.standard_error

    @pytest.mark.parametrize(
        "design",
        [
            stratal.designs.Poisson(budget=100, size="sqrt-variance"),
            stratal.designs.ProportionalToSize(budget=100),
            stratal.designs.Systematic(budget=100),
            stratal.designs.ClusterSample(cluster="document", n_clusters=30),
        ],
    )
    def test_other_designs(self, design):
        sample, labels, z = drawn(design)
        estimate = stratal.estimate(sample, labels, estimator="ppi++", cross_fit=5)
        plain = stratal.estimate(sample, labels, estimator="ppi++")

        assert estimate.value == pytest.approx(plain.value, abs=plain.standard_error)
        assert 0.7 < estimate.standard_error / plain.standard_error < 1.4
        assert abs(estimate.value - z.mean()) < 4 * estimate.standard_error

    @pytest.mark.parametrize("estimator", ["ppi++", "stratppi"])
    def test_a_census_is_exact(self, estimator):
        sample, labels, z = drawn(stratal.designs.SimpleRandom(budget=400))
        estimate = stratal.estimate(sample, labels, estimator=estimator, cross_fit=5, target="population")

        assert estimate.value == pytest.approx(z.mean(), abs=1e-12)
        assert estimate.standard_error == pytest.approx(0, abs=1e-12)

    def test_a_constant_proxy_leaves_the_mean(self):
        population = stratal.Population.from_arrays(proxy=np.full(50, 0.8))
        sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=1)
        estimate = stratal.estimate(sample, [1, 0] * 10, estimator="ppi++", cross_fit=4)

        assert estimate.value == 0.5

    def test_equal_labels_give_an_interval(self):
        sample, _, _ = drawn(stratal.designs.SimpleRandom(budget=30))
        estimate = stratal.estimate(sample, np.ones(30), estimator="ppi++", cross_fit=5)
        low, high = estimate.confidence_interval()

        assert estimate.value == pytest.approx(1, abs=0.01)
        assert low < estimate.value <= high <= 1

    def test_nothing_to_fit_is_said(self):
        sample, labels, _ = drawn(stratal.designs.SimpleRandom(budget=30))
        estimate = stratal.estimate(sample, labels, estimator="difference", cross_fit=5)

        assert estimate.value == stratal.estimate(sample, labels, estimator="difference").value
        assert any("nothing to cross-fit" in note for note in estimate.notes)

    def test_more_folds_than_labels_are_refused(self):
        sample, labels, _ = drawn(stratal.designs.SimpleRandom(budget=30))
        with pytest.raises(InputError, match="31 folds, 30 labels"):
            stratal.estimate(sample, labels, estimator="ppi++", cross_fit=31)

    def test_more_folds_than_clusters_are_refused(self):
        sample, labels, _ = drawn(stratal.designs.ClusterSample(cluster="document", n_clusters=4))
        with pytest.raises(InputError, match="5 folds, 4"):
            stratal.estimate(sample, labels, estimator="ppi++", cross_fit=5)


def _keys(sample):
    from stratal.randomness import id_texts, keys_of_ids

    return keys_of_ids(id_texts(sample.ids), sample.seed, "fold:")


class FourStrata:
    """Four strata on the proxy."""

    def __init__(self, budget):
        self.budget = budget

    def draw(self, population, seed):
        strata = stratal.strata.stratify(population, "k-means", 4)
        design = stratal.designs.Stratified(
            strata=strata, allocation=stratal.strata.allocate(strata, self.budget)
        )
        return design.draw(population, seed)
