from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

import stratal
from stratal.errors import InputError, StratalWarning
from stratal.estimation.calibrated import (
    CalibrationOptions,
    _rule,
    calibrated_estimator,
    calibrated_proxy,
    sample_folds,
)
from stratal.estimation.respondents import Respondents
from stratal.proxy import calibrate


def world(n=600, seed=5, **options):
    """An overconfident proxy: the outcome's chance is its square."""
    rng = np.random.default_rng(seed)
    proxy = rng.beta(2, 1, n)
    z = (rng.random(n) < proxy**2).astype(float)
    return stratal.Population.from_arrays(proxy=proxy, **options), proxy, z


def stratified(population, budget=120, seed=3, strata=4):
    made = stratal.strata.stratify(population, "k-means", strata)
    design = stratal.designs.Stratified(strata=made, allocation=stratal.strata.allocate(made, budget))
    return design.draw(population, seed)


class TestProxy:
    def test_by_hand(self):
        population, proxy, z = world()
        sample = stratal.designs.SimpleRandom(budget=60).draw(population, seed=3)
        everyone, labels = np.ones(60, bool), z[sample.ids]
        frame = Respondents.of(sample, everyone)
        folds = sample_folds(sample, everyone, frame, 2)
        how = CalibrationOptions(proxy_columns=[0], method="logistic", folds=folds, population=population)
        calibrated = calibrated_proxy(sample, everyone, frame, labels, how)
        curves = [
            calibrate(sample.proxies[folds != k, 0], labels[folds != k], method="logistic") for k in (0, 1)
        ]
        centred = np.array([c.apply(sample.proxies[:, 0]) - c.apply(proxy).mean() for c in curves])
        own = centred[folds, np.arange(60)]
        by_hand = np.mean(labels - (0.9 * own + 0.1 * centred.mean(axis=0)))

        assert tuple(fit.fitted for fit in calibrated.fits) == tuple(curves)
        assert calibrated.summary.proxy_covariances[0, 0, 0] == pytest.approx(
            np.mean([np.var(c.apply(proxy)) for c in curves])
        )
        result = stratal.estimate(sample, labels, estimator="difference", calibration="logistic", cross_fit=2)
        assert result.value == pytest.approx(by_hand, abs=1e-12)

    def test_a_label_does_not_move_its_own_curve(self):
        population, _, z = world()
        sample = stratal.designs.SimpleRandom(budget=60).draw(population, seed=3)
        everyone, labels = np.ones(60, bool), z[sample.ids]
        frame = Respondents.of(sample, everyone)
        folds = sample_folds(sample, everyone, frame, 5)
        how = CalibrationOptions(proxy_columns=[0], method="isotonic", folds=folds)
        before = calibrated_proxy(sample, everyone, frame, labels, how)
        labels = np.where(folds == 2, 1 - labels, labels)
        after = calibrated_proxy(sample, everyone, frame, labels, how)

        assert before.fits[2] == after.fits[2]
        assert before.fits[1] != after.fits[1]

    def test_a_table_gives_what_arrays_give(self, tmp_path):
        proxy = np.random.default_rng(0).random(300).round(2)
        z = (proxy > 0.4).astype(float)
        ids = [f"unit-{number}" for number in range(300)]
        file = tmp_path / "units.csv"
        file.write_text("id,proxy\n" + "".join(f"{i},{p}\n" for i, p in zip(ids, proxy, strict=True)))
        truth = dict(zip(ids, z, strict=True))
        table = stratal.Population.read(file, proxy="proxy")
        arrays = stratal.Population.from_arrays(proxy=proxy, ids=ids)
        results = [
            stratal.estimate(sample, {i: truth[i] for i in sample.ids.tolist()}, calibration="logistic")
            for sample in (stratified(table), stratified(arrays))
        ]

        assert results[0].value == pytest.approx(results[1].value, abs=1e-12)
        assert results[0].standard_error == pytest.approx(results[1].standard_error, abs=1e-12)


class TestEstimate:
    @pytest.mark.parametrize("method", ["isotonic", "logistic"])
    @pytest.mark.parametrize("estimator", ["difference", "ppi++", "stratppi"])
    def test_stratified(self, estimator, method):
        population, _, z = world()
        sample = stratified(population)
        estimate = stratal.estimate(sample, z[sample.ids], estimator=estimator, calibration=method)

        assert abs(estimate.value - z.mean()) < 4 * estimate.standard_error
        assert any(f"calibrated ({method}), cross-fitted in 5 folds" in note for note in estimate.notes)

    @pytest.mark.parametrize("estimator", ["difference", "ppi++"])
    def test_a_census_is_exact(self, estimator):
        population, _, z = world(n=200)
        for sample in (
            stratal.designs.SimpleRandom(budget=200).draw(population, seed=1),
            stratified(population, 200),
        ):
            options = {"estimator": estimator, "calibration": "isotonic", "target": "population"}
            estimate = stratal.estimate(sample, z[sample.ids], **options)

            assert estimate.value == pytest.approx(z.mean(), abs=1e-12)
            assert estimate.standard_error == pytest.approx(0, abs=1e-12)

    @pytest.mark.parametrize(
        "design",
        [stratal.designs.Poisson(budget=120, size="sqrt-variance"), stratal.designs.Systematic(budget=120)],
    )
    def test_other_designs(self, design):
        population, _, z = world()
        sample = design.draw(population, 4)
        estimate = stratal.estimate(sample, z[sample.ids], calibration="logistic")

        assert estimate.estimator == "difference"
        assert abs(estimate.value - z.mean()) < 4 * estimate.standard_error

    def test_a_constant_proxy_leaves_the_mean(self):
        population = stratal.Population.from_arrays(proxy=np.full(50, 0.8))
        sample = stratal.designs.SimpleRandom(budget=20).draw(population, seed=1)
        for method in ("isotonic", "logistic"):
            estimate = stratal.estimate(
                sample, [1, 0] * 10, estimator="difference", calibration=method, cross_fit=4
            )

            assert estimate.value == pytest.approx(0.5, abs=1e-12)

    def test_equal_labels_give_an_interval(self):
        population, _, _ = world()
        sample = stratal.designs.SimpleRandom(budget=60).draw(population, seed=1)
        for method in ("isotonic", "logistic"):
            estimate = stratal.estimate(sample, np.ones(60), calibration=method)
            low, high = estimate.confidence_interval()

            assert estimate.value == pytest.approx(1, abs=0.02)
            assert low < high <= 1

    def test_a_margin_is_put_on_a_scale(self):
        _, proxy, z = world()
        margins = stratal.Population.from_arrays(proxy=10 * proxy - 3)
        sample = stratal.designs.SimpleRandom(budget=40).draw(margins, seed=1)
        estimate = stratal.estimate(sample, z[sample.ids], calibration="isotonic")

        assert estimate.estimator == "difference"
        assert abs(estimate.value - z.mean()) < 4 * estimate.standard_error

    def test_strata_without_labels_are_merged(self):
        population, _, z = world()
        sample = stratified(population)
        labels = {
            unit: z[unit] for unit, h in zip(sample.ids.tolist(), sample.stratum.tolist(), strict=True) if h
        }
        with pytest.warns(StratalWarning):
            estimate = stratal.estimate(sample, labels, estimator="difference", calibration="logistic")

        assert len(estimate.strata) == 3
        assert abs(estimate.value - z.mean()) < 5 * estimate.standard_error

    def test_outcomes_between_other_bounds(self):
        population, proxy, _ = world()
        sample = stratal.designs.SimpleRandom(budget=100).draw(population, seed=1)
        z = 1 + 4 * proxy**2
        estimate = stratal.estimate(sample, z[sample.ids], calibration="isotonic", bounds=(1, 5))

        assert estimate.value == pytest.approx(z.mean(), abs=0.05)

    def test_a_sample_from_a_file_uses_the_population_argument(self, tmp_path):
        population, _, z = world()
        sample = stratal.designs.SimpleRandom(budget=60).draw(population, seed=1)
        labels = z[sample.ids]
        read = stratal.Sample.read(sample.write(tmp_path / "sample.csv"))

        with pytest.raises(InputError, match="requires the population"):
            stratal.estimate(read, labels, calibration="isotonic")
        assert stratal.estimate(
            read, labels, calibration="isotonic", population=population
        ) == stratal.estimate(sample, labels, calibration="isotonic")


class TestRefusals:
    def test_another_population(self):
        population, _, z = world()
        other, _, _ = world(n=500)
        sample = stratal.designs.SimpleRandom(budget=60).draw(population, seed=1)
        with pytest.raises(InputError, match="not the population"):
            stratal.estimate(sample, z[sample.ids], calibration="isotonic", population=other)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"calibration": "splines"}, "unknown calibration"),
            ({"calibration": "isotonic", "estimator": "horvitz-thompson"}, "uses no proxy"),
            ({"calibration": "isotonic", "outcome": "unbounded"}, "bounds"),
            ({"calibration": "isotonic", "cross_fit": 61}, "61 folds"),
            ({"calibration": "isotonic", "cross_fit": 1}, "1 folds"),
        ],
    )
    def test_what_does_not_fit(self, options, words):
        population, _, z = world()
        sample = stratal.designs.SimpleRandom(budget=60).draw(population, seed=1)
        with pytest.raises(InputError, match=words):
            stratal.estimate(sample, z[sample.ids], **options)

    def test_no_proxy_and_several(self):
        none = stratal.Population.from_arrays(ids=np.arange(20))
        two = stratal.Population.from_arrays(proxy={"a": np.linspace(0, 1, 20), "b": np.linspace(1, 0, 20)})
        for population in (none, two):
            sample = stratal.designs.SimpleRandom(budget=10).draw(population, seed=1)
            with pytest.raises(InputError, match="one proxy"):
                stratal.estimate(sample, [1, 0] * 5, calibration="isotonic")
        assert stratal.estimate(sample, [1, 0] * 5, calibration="logistic", proxy="b").n == 10

    def test_a_separate_unlabelled_sample(self):
        sample, labels = elsewhere(count=500)
        for options in ({"cross_fit": 2}, {"calibration": "logistic"}):
            with pytest.raises(InputError, match="separate unlabelled sample"):
                stratal.estimate(sample, labels, **options)

    def test_strata_that_the_population_does_not_know(self):
        sample, labels = elsewhere(count=40)
        proxy = {"p": np.tile([0.9, 0.2, 0.8, 0.6], 25)}
        bare = stratal.Population.from_arrays(proxy=proxy)
        with pytest.raises(InputError, match="no such column: 's'"):
            stratal.estimate(sample, labels, calibration="logistic", population=bare)
        whole = stratal.Population.from_arrays(proxy=proxy, groups={"s": np.tile(["a", "a", "b", "b"], 25)})
        assert stratal.estimate(sample, labels, calibration="logistic", population=whole).n == 20

    def test_strata_of_unknown_making(self):
        design = SimpleNamespace(kind="other", strata=None)
        sample = SimpleNamespace(design=design, summary=SimpleNamespace(sizes=np.array([5, 5])))
        with pytest.raises(InputError, match="not known"):
            _rule(sample)


def elsewhere(count):
    """Twenty units of two strata of fifty, drawn elsewhere."""
    table = {"z": [1, 0, 1, 1] * 5, "p": [0.9, 0.2, 0.8, 0.6] * 5, "s": ["a", "a", "b", "b"] * 5}
    rows = {"stratum": ["a", "b"], "mean": [0.55, 0.7], "variance": [0.1, 0.01], "count": [count] * 2}
    return stratal.Sample.from_labelled(
        table, value="z", proxy="p", stratum="s", sizes={"a": 50, "b": 50}, proxy_moments=rows
    )


def test_a_calibrated_proxy_needs_no_lam_unless_asked():
    assert calibrated_estimator("auto", has_lam=False) == "difference"
    assert calibrated_estimator("auto", has_lam=True) == "auto"
    assert calibrated_estimator("stratppi", has_lam=False) == "stratppi"


def test_from_the_command_line(tmp_path):
    from click.testing import CliRunner

    from stratal.cli.application import app

    def run(*words):
        result = CliRunner().invoke(app, [str(word) for word in words])
        assert result.exit_code == 0, result.output
        return result.stdout

    rng = np.random.default_rng(0)
    proxy, language = rng.beta(2, 1, 300), rng.choice(["de", "en"], 300)
    file, drawn, filled = tmp_path / "units.csv", tmp_path / "audit", tmp_path / "labels.csv"
    rows = [f"u{i},{p:.4f},{g}\n" for i, (p, g) in enumerate(zip(proxy, language, strict=True))]
    file.write_text("id,score,language\n" + "".join(rows))
    run("draw", file, "--proxy", "score", "--groups", "language", "--by", "language", "--budget", 60,
        "--output", drawn, "--json")  # fmt: skip
    sample = stratal.Sample.read(next(drawn.glob("sample.*")))
    chances = sample.proxies[:, 0] ** 2
    labels = {unit: int(rng.random() < p) for unit, p in zip(sample.ids.tolist(), chances, strict=True)}
    filled.write_text("id,label\n" + "".join(f"{unit},{label}\n" for unit, label in labels.items()))

    words = ("estimate", next(drawn.glob("sample.*")), filled, "--calibration", "logistic", "--population")
    found = json.loads(run(*words, file, "--cross-fit", 4, "--json"))
    population = stratal.Population.read(file, proxy="score", groups="language")
    again = stratal.estimate(sample, labels, calibration="logistic", cross_fit=4, population=population)

    assert found["estimate"] == again.value
    assert found["notes"] == list(again.notes)
