"""`regress`: a sample and its labels give what the arrays give."""

import dataclasses
import pickle
import warnings

import numpy as np
import pytest

import stratal
from stratal.designs import StratifiedWeighting
from stratal.errors import InputError, LabelError
from stratal.regression import ArrayUnlabelled, linear_regression, mean_vector, quantile, regress
from stratal.regression.losses import LinearLoss, MeanLoss, with_intercept


def lines(column):
    return with_intercept(column[:, None])


@pytest.fixture(scope="module")
def world():
    random = np.random.default_rng(2)
    length = random.uniform(1, 9, 600).round(3)
    language = np.tile(["de", "en", "fr"], 200)
    p = np.clip(0.95 - 0.08 * length, 0.05, 0.95)
    y = (random.uniform(size=600) < p).astype(float)
    population = stratal.Population.from_arrays(
        proxy=p, features={"length": length}, groups={"language": language}
    )
    strata = stratal.strata.stratify(population, n_strata=3)
    allocation = stratal.strata.allocate(strata, 120)
    sample = stratal.designs.Stratified(strata=strata, allocation=allocation).draw(population, seed=3)
    return {"length": length, "language": language, "p": p, "y": y}, population, sample, strata


def test_a_fit_can_be_pickled(world):
    """A proxy off by 3 is moved: the fit kept the loss, and that a lambda which read the population."""
    table, _, sample, _ = world
    biased = stratal.Population.from_arrays(
        proxy={"p": table["p"], "off": table["p"] + 3.0}, features={"length": table["length"]}
    )
    drawn = stratal.plan(biased, budget=100, proxy="p").draw(seed=5)
    moved = regress(drawn, table["y"][drawn.ids], features="length", proxy="off")
    tuned = stratal.estimate(sample, table["length"][sample.ids], estimand="quantile:.5", estimator="ppi++")

    again = pickle.loads(pickle.dumps(moved))
    assert any("of the proxy's bias" in note for note in moved.notes)
    assert again.values == pytest.approx(moved.values)
    assert pickle.loads(pickle.dumps(tuned)).confidence_interval() == tuned.confidence_interval()


def test_it_is_the_array_function(world):
    table, _, sample, strata = world
    rows = sample.ids
    codes = strata.rule.assign({"proxy": table["p"]})

    ours = regress(sample, table["y"][rows], features=("length",))
    plain = linear_regression(
        lines(table["length"][rows]),
        table["y"][rows],
        weighting=sample.weighting(),
        proxy=table["p"][rows],
        unlabelled=ArrayUnlabelled(features=lines(table["length"]), proxy=table["p"], stratum=codes),
        names=["intercept", "length"],
    )

    assert isinstance(ours, stratal.Estimates)
    assert ours.names == plain.names
    assert ours.values == pytest.approx(plain.values)
    assert ours.covariance == pytest.approx(plain.covariance)


@pytest.mark.parametrize("family", ["linear", "logistic"])
def test_features_come_from_the_population_by_the_sample_s_ids(world, family, tmp_path):
    table, population, sample, _ = world
    labels = dict(zip(sample.ids.tolist(), table["y"][sample.ids], strict=True))
    told = regress(sample, labels, family=family, features="length")
    read = stratal.Sample.read(sample.write(tmp_path / "sample.parquet"))
    for found in (
        regress(sample, labels, family=family, features="length"),
        regress(read, labels, family=family, features="length", population=population),
    ):
        assert found.names == told.names
        assert np.array_equal(found.values, told.values)
        assert np.array_equal(found.covariance, told.covariance)
    with pytest.raises(InputError, match=r"no column 'length'.*population="):
        regress(read, labels, features="length", estimator="classical")


def test_units_of_a_table_are_matched_by_id(world, tmp_path):
    """Rows in another order than the sample's, ids of text."""
    table, _, _, _ = world
    pd = pytest.importorskip("pandas")
    order = np.random.default_rng(0).permutation(600)
    frame = pd.DataFrame({"id": [f"u{k}" for k in range(600)], **{k: table[k] for k in ("length", "p", "y")}})
    path = tmp_path / "units.parquet"
    frame.iloc[order].to_parquet(path)
    population = stratal.Population.read(path, id="id", proxy="p", features=("length",))
    sample = stratal.designs.SimpleRandom(budget=80).draw(population, seed=5)
    drawn = frame.set_index("id").loc[sample.ids]
    fit = regress(sample, drawn["y"], features="length")
    told = linear_regression(
        lines(drawn["length"].to_numpy()),
        drawn["y"].to_numpy(),
        weighting=sample.weighting(),
        proxy=drawn["p"].to_numpy(),
        unlabelled=ArrayUnlabelled(features=lines(table["length"]), proxy=table["p"]),
    )
    assert fit.values == pytest.approx(told.values)


def test_a_post_stratified_sample_keeps_its_groups(world):
    table, population, _, _ = world
    sample = stratal.designs.SimpleRandom(budget=150).draw(population, seed=5)
    grouped = stratal.designs.post_stratify(sample, "language")
    fit = regress(grouped, table["y"][sample.ids], features="length", estimator="stratppi")
    assert fit.lam.shape == (3,)
    codes = np.searchsorted(["de", "en", "fr"], table["language"])
    plain = linear_regression(
        lines(table["length"][sample.ids]),
        table["y"][sample.ids],
        weighting=StratifiedWeighting(stratum=codes[sample.ids], sizes=np.full(3, 200)),
        proxy=table["p"][sample.ids],
        unlabelled=ArrayUnlabelled(features=lines(table["length"]), proxy=table["p"], stratum=codes),
        estimator="stratppi",
    )
    assert fit.values == pytest.approx(plain.values)


def test_formulas_take_groups_from_the_sample(world):
    pytest.importorskip("formulaic")
    table, _, sample, _ = world
    rows = sample.ids

    result = regress(
        sample,
        table["y"][rows],
        family="logistic",
        formula="length + language",
        estimator="stratppi",
    )

    assert result.names == ("Intercept", "length", "language[T.en]", "language[T.fr]")
    assert result.values[1] < 0


def test_a_formula_without_the_population_is_classical(world):
    pytest.importorskip("formulaic")
    table, _, sample, _ = world
    alone = dataclasses.replace(sample, population=None)

    result = regress(alone, table["y"][sample.ids], formula="language", estimator="classical")

    assert result[0].estimator == "classical"


def test_means_and_quantiles_need_no_features(world):
    table, _, sample, strata = world
    rows, y = sample.ids, table["y"][sample.ids] + table["length"][sample.ids]
    units = ArrayUnlabelled(proxy=table["p"], stratum=strata.rule.assign({"proxy": table["p"]}))
    given = {"weighting": sample.weighting(), "proxy": table["p"][rows], "unlabelled": units}

    assert regress(sample, y, family=MeanLoss()).values == pytest.approx(mean_vector(y, **given).values)
    estimate = stratal.estimate(sample, y, estimand="quantile:.3", estimator="ppi++")
    assert estimate.value == quantile(y, 0.3, **given).value


def test_missing_labels_are_nonresponse(world):
    table, _, sample, _ = world
    labels = {int(unit): float(table["y"][unit]) for unit in sample.ids[10:]}

    result = regress(
        sample,
        labels,
        family=LinearLoss(),
        features=("length",),
    )

    assert result[0].n == 110


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"family": "probit"}, "no such family"),
        ({"features": ("lenght",)}, "no column 'lenght'"),
        ({"features": ("lenght",), "estimator": "classical"}, "no column 'lenght'"),
        ({"proxy": "judge"}, "no such proxy"),
        ({"features": (), "formula": "1 + age"}, "names no column"),
        ({"features": ()}, "linear regression requires features"),
        ({"formula": "length"}, "features= and formula= are mutually exclusive"),
        ({"features": ("language",)}, "'language' is not numeric"),
        ({"family": "mean", "features": ()}, r"no such family .given: 'mean'"),
        ({"lamda": 0.5}, "no such option: 'lamda'"),
        ({"family": LinearLoss}, "no such family"),
    ],
)
def test_bad_arguments_are_told(world, change, message):
    table, _, sample, _ = world
    given = {"features": ("length",)}
    with pytest.raises(InputError, match=message):
        regress(sample, table["y"][sample.ids], **{**given, **change})


def test_no_label_is_told(world):
    with pytest.raises(LabelError, match="no unit is labelled"):
        regress(world[2], {}, features="length")


def test_a_feature_that_is_not_finite_is_named(world):
    table, _, sample, _ = world
    length = table["length"][sample.ids].copy()
    length[3] = np.nan
    alone = dataclasses.replace(sample, population=None, shown={"length": length})
    with pytest.raises(InputError, match="feature 'length' holds 1 value that is NaN"):
        regress(alone, table["y"][sample.ids], features="length", estimator="classical")


def test_a_stratum_without_labels_is_merged_as_in_estimate(world):
    table, _, sample, strata = world
    answered = np.flatnonzero(sample.stratum != 1)
    labels = {sample.ids[i]: table["y"][sample.ids[i]] for i in answered}

    with warnings.catch_warnings(record=True, action="always") as caught:
        ours = regress(sample, labels, features="length")
    assert any("1 stratum has no label" in str(warning.message) for warning in caught)
    with (
        pytest.warns(stratal.StratalWarning),
        pytest.warns(stratal.StratalWarning, match="stratum has no label"),
    ):
        median = stratal.estimate(sample, labels, estimand="quantile:.5", estimator="ppi++")

    rows = sample.ids[answered]
    merged = np.array([0, 0, 1])
    plain = linear_regression(
        lines(table["length"][rows]),
        table["y"][rows],
        weighting=StratifiedWeighting(
            stratum=merged[sample.stratum[answered]], sizes=np.bincount(merged, strata.sizes).astype(int)
        ),
        proxy=table["p"][rows],
        unlabelled=ArrayUnlabelled(
            features=lines(table["length"]),
            proxy=table["p"],
            stratum=merged[strata.rule.assign({"proxy": table["p"]})],
        ),
        names=["intercept", "length"],
    )
    assert caught[0].filename == __file__
    assert ours.values == pytest.approx(plain.values)
    assert ours.covariance == pytest.approx(plain.covariance)
    assert any("merged" in note for note in ours.notes)
    assert median.n == len(rows)
