"""Formulas: the same columns for labels and population, errors in words."""

import numpy as np
import pytest

from stratal.designs import StratifiedWeighting
from stratal.errors import InputError, MissingExtraError
from stratal.population.population import Population
from stratal.population.rules import CutPoints
from stratal.regression.features import Formula, NumericFeatures
from stratal.regression.from_sample import unlabelled_of_population
from stratal.regression.losses import ArrayUnlabelled
from stratal.regression.m_estimation import linear_regression

pytest.importorskip("formulaic")


@pytest.fixture
def data():
    random = np.random.default_rng(1)
    return {
        "length": random.uniform(1, 5, 90),
        "language": np.tile(["de", "en", "fr"], 30),
        "proxy": random.uniform(size=90),
    }


def test_a_few_labels_get_all_the_columns(data):
    formula = Formula("length + language", data)
    few = {name: values[:2] for name, values in data.items()}

    assert formula.names == ("Intercept", "length", "language[T.en]", "language[T.fr]")
    assert formula.features(few).shape == (2, 4)


def test_transformations_and_interactions_work(data):
    formula = Formula("0 + log(length) + length:C(language)", data)

    assert formula.features(data)[:, 0] == pytest.approx(np.log(data["length"]))


def test_centring_remembers_the_population(data):
    formula = Formula("0 + center(length)", data)

    assert formula.features({"length": [3.0]})[0, 0] == pytest.approx(3.0 - data["length"].mean())


def test_dataframes_are_taken(data):
    pandas = pytest.importorskip("pandas")

    assert Formula("length", pandas.DataFrame(data)).features(data).shape == (90, 2)


@pytest.mark.parametrize(
    ("formula", "message"),
    [("y ~ length", "right-hand side"), ("lenght", "cannot be read"), ("length +* 2", "cannot be read")],
)
def test_bad_formulas_are_told(data, formula, message):
    with pytest.raises(InputError, match=message):
        Formula(formula, data)


def test_an_unseen_category_is_told(data):
    with pytest.raises(InputError, match="'it'"):
        Formula("language", data).features({"language": ["it"]})


def test_missing_values_are_told(data):
    with pytest.raises(InputError, match="missing"):
        Formula("length", {"length": [1.0, np.nan]})


def test_without_formulaic_the_extra_is_named(data, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "formulaic", None)
    with pytest.raises(MissingExtraError, match=r"stratal\[formula\]"):
        Formula("length", data)


def test_a_population_in_batches_gives_what_arrays_give(data, monkeypatch):
    monkeypatch.setattr("stratal.regression.from_sample._BATCH_ROWS", 17)
    population = Population.from_arrays(
        proxy=data["proxy"], features={"length": data["length"]}, groups={"language": data["language"]}
    )
    rule = CutPoints(column="proxy", cuts=np.array([0.5]))
    formula = Formula("length + language", data)
    stratum = rule.assign(data)
    rows = np.concatenate([np.flatnonzero(stratum == h)[:20] for h in range(2)])
    y = (data["proxy"] + data["length"])[rows]
    weighting = StratifiedWeighting(stratum=stratum[rows], sizes=np.bincount(stratum))
    units = unlabelled_of_population(population, "proxy", formula, rule)
    few = {name: values[rows] for name, values in data.items()}
    given = {"weighting": weighting, "proxy": data["proxy"][rows], "names": formula.names}

    read = linear_regression(formula.features(few), y, unlabelled=units, **given)
    held = linear_regression(
        formula.features(few),
        y,
        unlabelled=ArrayUnlabelled(features=formula.features(data), proxy=data["proxy"], stratum=stratum),
        **given,
    )

    assert read.values == pytest.approx(held.values)
    assert read.covariance == pytest.approx(held.covariance)
    assert "language[T.fr]" in str(read)


def test_plain_features_are_read(data):
    population = Population.from_arrays(
        proxy={"a": data["proxy"], "b": 1 - data["proxy"]}, features={"length": data["length"]}
    )

    block = next(unlabelled_of_population(population, "a", NumericFeatures(("length",), False)).blocks())
    assert block.features.shape == (90, 1)
