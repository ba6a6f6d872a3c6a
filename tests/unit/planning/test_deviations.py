import numpy as np
import pytest

import stratal
from stratal.errors import InputError
from stratal.estimation.calibrated import CalibrationOptions
from stratal.planning.stratum_deviations import residual_deviations

pytest.importorskip("sklearn")


def world(n=3000, seed=1):
    """A judge whose middle third another judge settles: there the first leaves much open, both little."""
    rng = np.random.default_rng(seed)
    first, second = rng.random((2, n))
    middle = (first > 1 / 3) & (first < 2 / 3)
    z = np.where(middle, second > 0.5, rng.random(n) < first).astype(float)
    population = stratal.Population.from_arrays(proxy=first, features={"second": second})
    return population, z, middle


def pilot_of(population, z, budget=240):
    made = stratal.strata.stratify(population, "equal-width", 3)
    allocation = stratal.strata.allocate(made, budget, method="equal")
    pilot = stratal.designs.Stratified(strata=made, allocation=allocation).draw(population, seed=3)
    return pilot, z[pilot.ids]


def test_the_round_goes_where_the_learner_leaves_most_open():
    from sklearn.ensemble import RandomForestClassifier

    population, z, middle = world()
    pilot, labels = pilot_of(population, z)

    learner = RandomForestClassifier(50, min_samples_leaf=5)
    plain = stratal.next_round(pilot, labels, additional=240)
    learned = stratal.next_round(pilot, labels, additional=240, learner=learner, features=["proxy", "second"])

    assert middle[learned.ids].sum() < 0.75 * middle[plain.ids].sum()
    assert learned.size == plain.size == 480
    assert "RandomForestClassifier learned from proxy, second" in learned.design.allocation.notes[0]


def test_what_is_learned_is_told_in_the_file(tmp_path):
    population, z, _ = world()
    pilot, labels = pilot_of(population, z)

    larger = stratal.next_round(pilot, labels, additional=20, learner="ridge")
    larger.write(tmp_path / "s.parquet")

    assert (
        "ridge learned from proxy, second"
        in stratal.Sample.read(tmp_path / "s.parquet").design.allocation.notes[0]
    )


def test_deviations_are_those_of_residuals():
    population, z, _ = world(n=20_000)
    pilot, labels = pilot_of(population, z, budget=1200)

    how = CalibrationOptions(proxy_columns=[0], method="gradient-boosting")
    found, note = residual_deviations(pilot, np.ones(1200, dtype=bool), labels, how)

    estimate = stratal.estimate(pilot, labels, calibration="gradient-boosting")
    sizes = pilot.design.strata.sizes
    variance = float(np.sum((sizes / sizes.sum()) ** 2 * found**2 * (1 / 400 - 1 / sizes)))
    assert np.sqrt(variance) == pytest.approx(estimate.standard_error, rel=0.05)
    assert found[1] < 0.7 * found[0]
    assert note.endswith("used in 5 of 5 folds, based on the loss in the other folds")


def test_an_outcome_without_bounds():
    rng = np.random.default_rng(2)
    x = rng.random(2000)
    z = 100 * x + rng.normal(size=2000) * np.where(x > 0.5, 20.0, 1.0)
    population = stratal.Population.from_arrays(proxy=x, scaled=True, bounds=(0.0, 1.0))
    made = stratal.strata.stratify(population, "equal-width", 2)
    allocation = stratal.strata.allocate(made, 200, method="equal")
    pilot = stratal.designs.Stratified(strata=made, allocation=allocation).draw(population, seed=3)
    pilot = pilot.with_outcome("unbounded")

    larger = stratal.next_round(pilot, z[pilot.ids], additional=200, learner="ridge")

    assert larger.n_h[1] > 2 * larger.n_h[0]


def test_strata_that_nobody_answered_take_their_neighbours():
    population, z, _ = world()
    pilot, labels = pilot_of(population, z)
    labels = np.where(pilot.stratum == 1, np.nan, labels)

    with pytest.warns(stratal.StratalWarning):
        larger = stratal.next_round(pilot, labels, additional=60, learner="ridge")

    assert larger.size == 300


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"features": ["second"]}, "Name a learner"),
        ({"learner": "isotonic"}, "unknown learner"),
        ({"learner": "ridge", "features": ["third"]}, "no column 'third'"),
    ],
)
def test_mistakes(options, match):
    population, z, _ = world()
    pilot, labels = pilot_of(population, z)

    with pytest.raises(InputError, match=match):
        stratal.next_round(pilot, labels, additional=20, **options)


def test_a_learner_that_would_decide_nothing_is_refused():
    population, z, _ = world()
    pilot, labels = pilot_of(population, z)
    simple = stratal.designs.SimpleRandom(budget=50).draw(population, seed=1)

    with pytest.raises(InputError, match="a learner can only be used with strata"):
        stratal.next_round(simple, z[simple.ids], additional=10, learner="ridge")
    with pytest.raises(InputError, match="a learner can only be used with strata"):
        stratal.next_round(pilot, labels, half_width=0.02, learner="ridge")
