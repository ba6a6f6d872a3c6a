import numpy as np
import pytest
from tests.tiers import sized

import stratal
from stratal.errors import InputError
from stratal.estimation.calibrated import CalibrationUnits, features_of, learner_columns, select_fits

pytest.importorskip("sklearn")


def judged(seed=0, n=2000):
    """Three judges that see different things, none of them all; a feature that is only noise."""
    rng = np.random.default_rng(seed)
    a, b, c = rng.random((3, n))
    z = (rng.random(n) < 1 / (1 + np.exp(-8 * (a + b + c - 1.5)))).astype(float)
    judges = {"judge_a": a, "judge_b": b, "judge_c": c}
    return stratal.Population.from_arrays(proxy=judges, features={"noise": rng.random(n)}), z


def units_of(z, x, folds=5, column=0, stratum=None):
    n = len(z)
    return CalibrationUnits(
        features=x,
        z=z,
        weights=np.ones(n),
        stratum=np.zeros(n, int) if stratum is None else stratum,
        folds=np.arange(n) % folds,
        bounds=(0.0, 1.0),
        column=column,
    )


class TestChoice:
    def test_a_learner_that_helps_is_kept_and_one_of_noise_is_not(self):
        rng = np.random.default_rng(1)
        x = rng.random((400, 2))
        z = (rng.random(400) < x[:, 0]).astype(float)

        helpful = select_fits(units_of(z, x[:, ::-1]), "ridge")
        useless = select_fits(units_of(rng.random(400), x, column=None), "gradient-boosting")

        assert [fit.method for fit in helpful] == ["learner"] * 5
        assert [fit.method for fit in useless] == ["none"] * 5

    def test_where_one_judge_says_all_its_isotonic_calibration_is_kept(self):
        rng = np.random.default_rng(2)
        x = rng.random((300, 8))
        z = (rng.random(300) < np.where(x[:, 0] > 0.5, 0.95, 0.05)).astype(float)

        kinds = [fit.method for fit in select_fits(units_of(z, x), "ridge")]

        assert kinds == ["isotonic"] * 5

    def test_a_label_moves_neither_its_own_prediction_nor_the_choice(self):
        rng = np.random.default_rng(3)
        x = rng.random((60, 2))
        z = (rng.random(60) < x.mean(axis=1)).astype(float)
        before = select_fits(units_of(z, x), "ridge")
        changed = z.copy()
        changed[0::5] = 1 - changed[0::5]

        after = select_fits(units_of(changed, x), "ridge")

        assert before[0].method == after[0].method
        assert np.array_equal(before[0].apply(x), after[0].apply(x))
        assert not np.array_equal(before[1].apply(x), after[1].apply(x))

    def test_what_differs_between_strata_alone_is_no_help(self):
        rng = np.random.default_rng(4)
        stratum = np.arange(300) % 2
        x = np.column_stack([rng.random(300), stratum]).astype(float)
        z = (rng.random(300) < np.where(stratum == 1, 0.9, 0.1)).astype(float)

        within = select_fits(units_of(z, x, column=None, stratum=stratum), "ridge")
        across = select_fits(units_of(z, x, column=None), "ridge")

        assert [fit.method for fit in across] == ["learner"] * 5
        assert [fit.method for fit in within].count("learner") <= 3

    def test_two_folds_leave_nothing_to_choose_by(self):
        with pytest.raises(InputError, match="3 or more"):
            select_fits(units_of(np.array([0.0, 1, 0, 1]), np.ones((4, 1)), folds=2), "ridge")


class TestEstimate:
    def test_learning_from_three_judges_beats_the_best_one(self):
        population, z = judged()
        truth, rows = z.mean(), []
        draws = sized(20, 60)
        for seed in range(draws):
            sample = stratal.designs.SimpleRandom(budget=200).draw(population, seed=seed)
            labels = z[sample.ids]
            learned = stratal.estimate(
                sample, labels, calibration="logistic-regression", features=["judge_*"], proxy="judge_a"
            )
            alone = stratal.estimate(sample, labels, calibration="isotonic", proxy="judge_a")
            low, high = learned.confidence_interval()
            rows.append((learned.value - truth, alone.value - truth, low <= truth <= high))
        errors = np.array(rows)

        assert np.mean(errors[:, 0] ** 2) < 0.8 * np.mean(errors[:, 1] ** 2)
        assert errors[:, 2].mean() >= 0.95 - 2.5 * np.sqrt(0.95 * 0.05 / draws)  # .88 of 60 draws

    def test_says_what_was_learned_from_and_where_it_was_kept(self):
        population, z = judged()
        sample = stratal.designs.SimpleRandom(budget=100).draw(population, seed=1)

        estimate = stratal.estimate(sample, z[sample.ids], calibration="ridge", proxy="judge_a")

        note = next(note for note in estimate.notes if "learned" in note)
        assert note.startswith("ridge learned from judge_a, judge_b, judge_c, noise: used in 5 of 5 folds")
        assert estimate.estimator == "difference"

    def test_a_census_is_exact(self):
        population, z = judged(n=80)
        sample = stratal.designs.SimpleRandom(budget=80).draw(population, seed=1)

        estimate = stratal.estimate(
            sample, z[sample.ids], calibration="ridge", proxy="judge_a", target="population"
        )

        assert estimate.value == pytest.approx(z.mean(), abs=1e-12)
        assert estimate.standard_error == pytest.approx(0, abs=1e-12)

    def test_an_outcome_without_bounds_and_no_proxy_at_all(self):
        rng = np.random.default_rng(5)
        x = rng.normal(size=(3000, 2))
        z = 10 * x[:, 0] + rng.normal(size=3000)
        population = stratal.Population.from_arrays(features={"x": x})
        sample = stratal.designs.SimpleRandom(budget=100).draw(population, seed=1).with_outcome("unbounded")

        estimate = stratal.estimate(sample, z[sample.ids], calibration="ridge")
        plain = stratal.estimate(sample, z[sample.ids])

        assert estimate.standard_error < 0.2 * plain.standard_error
        assert abs(estimate.value - z.mean()) < 4 * estimate.standard_error

    def test_mistakes(self):
        population, z = judged()
        sample = stratal.designs.SimpleRandom(budget=50).draw(population, seed=1)
        labels = z[sample.ids]

        with pytest.raises(InputError, match="no column 'bert' to learn from"):
            stratal.estimate(sample, labels, calibration="ridge", features=["bert"])
        with pytest.raises(InputError, match="no features"):
            stratal.estimate(sample, labels, calibration="isotonic", features=["noise"], proxy="judge_a")
        with pytest.raises(InputError, match="or a scikit-learn estimator"):
            stratal.estimate(sample, labels, calibration="forest", proxy="judge_a")
        with pytest.raises(InputError, match="3 or more"):
            stratal.estimate(sample, labels, calibration="ridge", cross_fit=2)


class TestColumns:
    def test_all_proxies_and_features_unless_named(self):
        population, _ = judged()

        assert learner_columns(population, None) == ("judge_a", "judge_b", "judge_c", "noise")
        assert learner_columns(population, "judge_[ab]") == ("judge_a", "judge_b")

    @pytest.mark.parametrize("ids", ["text", "rows"])
    def test_features_are_looked_up_by_id(self, ids, tmp_path):
        n = 50
        x = np.arange(n) / n
        names = [f"u{k}" for k in range(n)] if ids == "text" else None
        population = stratal.Population.from_arrays(proxy=x, features={"twice": 2 * x}, ids=names)
        sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=3)

        found = features_of(sample, population, ("twice", "proxy"))

        assert found[:, 0] == pytest.approx(2 * sample.proxies[:, 0])
        assert found[:, 1].tolist() == sample.proxies[:, 0].tolist()

    def test_of_a_file_too(self, tmp_path):
        lines = [f"{k},{k / 40},{k % 7},{k % 3}" for k in range(40)]
        (tmp_path / "p.csv").write_text("\n".join(["id,proxy,judge_a,judge_b", *lines]))
        population = stratal.Population.read(tmp_path / "p.csv", proxy="proxy", features="judge_*")
        sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=3)

        found = features_of(sample, population, ("judge_a", "judge_b"))

        numbers = sample.ids.astype(int)
        assert population.feature_names == ("judge_a", "judge_b")
        assert found.tolist() == np.column_stack([numbers % 7, numbers % 3]).tolist()
        estimate = stratal.estimate(sample, [0.0, 1.0] * 10, calibration="ridge")
        assert estimate.n == 20
