"""What is brought together with a sample is compared with what the sample was drawn from."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.golden.make import population as golden_population

import stratal
from stratal.designs.extending import require_same_draw, require_same_population
from stratal.errors import InputError

GOLDEN = Path(__file__).parents[2] / "golden" / "0.1.0"
N = 400
RNG = np.random.default_rng(3)
ROWS: dict[str, Any] = {
    "ids": [f"u{number}" for number in range(N)],
    "proxy": {"confidence": RNG.random(N)},
    "groups": {"language": RNG.choice(["de", "en"], N), "answer": RNG.choice(["cat", "dog"], N)},
    "features": {"length": RNG.random(N) * 100},
    "show": {"text": [f"text {number}" for number in range(N)]},
    "predicted": "answer",
}


def population(**changed):
    return stratal.Population.from_arrays(**{**ROWS, **changed})


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    drawn = stratal.plan(population(), budget=60).draw(seed=7)
    return stratal.Sample.read(drawn.write(tmp_path_factory.mktemp("drawn") / "sample.parquet"))


def permuted(values):
    return np.random.default_rng(5).permutation(np.asarray(values, dtype=object)).tolist()


OTHERS = {
    "units": (lambda: {name: _shorter(value) for name, value in ROWS.items()}, "given: 399 units"),
    "ids": (lambda: {"ids": [f"v{number}" for number in range(N)]}, "ids differ .given: no unit 'u"),
    "proxy": (
        lambda: {"proxy": {"confidence": permuted(ROWS["proxy"]["confidence"])}},
        "proxy 'confidence' of unit 'u",
    ),
    "group": (
        lambda: {"groups": ROWS["groups"] | {"language": permuted(ROWS["groups"]["language"])}},
        "column 'language' of unit 'u",
    ),
    "feature": (
        lambda: {"features": {"length": permuted(ROWS["features"]["length"])}},
        "feature 'length' differs .given: other values among the units that were not drawn",
    ),
    "shown": (lambda: {"show": {"text": permuted(ROWS["show"]["text"])}}, "shown column 'text' of unit 'u"),
}


def _shorter(value):
    if isinstance(value, dict):
        return {name: column[1:] for name, column in value.items()}
    return value if isinstance(value, str) else value[1:]


@pytest.mark.parametrize("what", OTHERS)
def test_the_error_names_what_differs(sample, what):
    changed, message = OTHERS[what]
    with pytest.raises(InputError, match=f"not the population from which the sample was drawn.*{message}"):
        require_same_population(sample, population(**changed()))


@pytest.mark.parametrize("column", ["confidence", "language"])
def test_a_change_among_units_that_were_not_drawn_is_seen(sample, column):
    drawn = set(sample.ids.tolist())
    place = next(row for row, unit in enumerate(ROWS["ids"]) if unit not in drawn)
    proxies, groups = ROWS["proxy"]["confidence"].copy(), ROWS["groups"]["language"].copy()
    if column == "confidence":
        proxies[place] += 1e-9
    else:
        groups[place] = "en" if groups[place] == "de" else "de"
    changed = population(
        proxy={"confidence": proxies}, groups=ROWS["groups"] | {"language": groups}, predicted="answer"
    )
    with pytest.raises(InputError, match=f"{column}' differs .given: other values among"):
        require_same_population(sample, changed)


@pytest.mark.parametrize("what", OTHERS)
def test_every_way_that_takes_a_population_refuses_another(sample, what):
    other = population(**OTHERS[what][0]())
    labels = dict.fromkeys(sample.ids.tolist(), "cat") | {sample.ids[0]: "dog"}
    right = {unit: float(number % 3 > 0) for number, unit in enumerate(sample.ids.tolist())}
    ways = {
        "design": lambda: stratal.next_round(
            sample, design=stratal.designs.SimpleRandom(budget=90), population=other
        ),
        "next_round": lambda: stratal.next_round(
            sample, labels, additional=10, population=other, predicted=True
        ),
        "calibration": lambda: stratal.estimate(sample, right, calibration="isotonic", population=other),
        "regress": lambda: stratal.regress(sample, right, features="length", population=other),
        "estimand": lambda: stratal.estimate(sample, right, estimand="coefficient:length", population=other),
    }
    for name, way in ways.items():
        with pytest.raises(InputError, match="not the population from which the sample was drawn"):
            pytest.fail(f"{name} took it: {way()}")


def test_sizes_that_the_draw_did_not_count_are_refused(sample):
    known = sample.totals["language"]
    assert stratal.designs.post_stratify(sample, "language", dict(known)).design.kind == "margins"
    other = {"de": known["de"] - 5, "en": known["en"] + 5}
    with pytest.raises(InputError, match=r"sizes of 'language' differ from those of the population.*'de'"):
        stratal.designs.post_stratify(sample, "language", other)


def test_a_population_without_a_column_of_the_sample_extends_nothing(sample):
    with pytest.raises(InputError, match="lacks column 'text'"):
        stratal.next_round(
            sample,
            dict.fromkeys(sample.ids.tolist(), "cat"),
            additional=5,
            predicted=True,
            population=population(show={}),
        )


def test_a_digest_is_written_and_read(sample):
    assert sample.population_digest().to_dict() == population().digest(7).to_dict()
    assert set(sample.population_digest().columns) == {
        "number:confidence", "number:length", "group:language", "group:answer",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["stratified", "poisson", "proportional-to-size"])
def test_a_sample_of_before_is_compared_by_what_it_holds(name, tmp_path):
    old = stratal.Sample.read(shutil.copy(GOLDEN / f"{name}.parquet", tmp_path))
    whole = golden_population()
    assert old.population_digest() is None
    assert require_same_population(old, whole) is whole
    columns = {"groups": {"answer": np.where(np.arange(60) % 3, "cat", "dög")}, "predicted": "answer"}
    ids, proxy = [f"unit-{number}" for number in range(60)], (np.arange(60) * 7 % 60) / 60
    for changed in (
        {"ids": ids, "proxy": proxy[::-1], **columns},
        {"ids": [f"{unit}-" for unit in ids], "proxy": proxy, **columns},
        {"ids": ids, "proxy": proxy, "groups": {"answer": ["cat"] * 60}, "predicted": "answer"},
    ):
        with pytest.raises(InputError, match="not the population from which the sample was drawn"):
            require_same_population(old, stratal.Population.from_arrays(**changed))


def test_strata_of_other_sizes_give_a_sample_of_before_away(sample):
    old = replace(sample, digest=None)
    proxies, drawn = ROWS["proxy"]["confidence"].copy(), set(sample.ids.tolist())
    for row, unit in enumerate(ROWS["ids"]):
        if unit not in drawn:
            proxies[row] = 0.5
    with pytest.raises(InputError, match="strata differ"):
        require_same_population(old, population(proxy={"confidence": proxies}))


def test_a_later_round_of_another_population_is_no_later_round(sample):
    larger = stratal.next_round(
        sample,
        design=stratal.designs.Stratified(strata=sample.design.strata, allocation=sample.design.allocation),
        population=population(),
    )
    require_same_draw(sample, larger)
    other = replace(larger, groups={**larger.groups, "answer": larger.groups["answer"][::-1]})
    with pytest.raises(InputError, match="column 'answer' of unit"):
        require_same_draw(sample, other)
    with pytest.raises(InputError, match="another population in a later round"):
        require_same_draw(sample, replace(larger, digest=population().digest(8)))


def test_rows_that_changed_places_under_numbers_are_seen(tmp_path):
    proxies = ROWS["proxy"]["confidence"]
    drawn = stratal.designs.SimpleRandom(budget=20).draw(
        stratal.Population.from_arrays(proxy=proxies), seed=1
    )
    read = stratal.Sample.read(drawn.write(tmp_path / "sample.csv"))
    assert require_same_population(read, stratal.Population.from_arrays(proxy=proxies.copy()))
    with pytest.raises(InputError, match="proxy 'proxy' of unit"):
        require_same_population(read, stratal.Population.from_arrays(proxy=proxies[::-1]))


@pytest.mark.parametrize("what", ["units", "ids", "proxy", "group", "feature"])
@pytest.mark.parametrize("design", ["simple-random", "stratified"])
def test_a_plan_draws_from_no_other_population(what, design):
    plan = stratal.plan(population(), budget=60).using(None if design == "stratified" else design)
    assert plan.draw(seed=7, population=population()) == plan.draw(seed=7)
    with pytest.raises(InputError, match=r"not the population of the plan|from another population"):
        plan.draw(seed=7, population=population(**OTHERS[what][0]()))


def test_a_32_bit_proxy_with_fewer_digits_is_refused_by_name():
    short = [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9]
    full = [float(np.float32(value)) for value in short]
    sample = stratal.plan(stratal.Population.from_arrays(proxy=full), budget=6).draw(seed=7)
    with pytest.raises(InputError, match=r"differs"):
        require_same_population(sample, stratal.Population.from_arrays(proxy=short))
