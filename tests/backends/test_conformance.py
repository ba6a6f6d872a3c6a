"""Every source answers as arrays do: the same bins to the last bit, the same units for the same seed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.tiers import cells

import stratal
from stratal.designs.poisson import size_measure
from stratal.population import Population
from stratal.randomness import id_texts
from stratal.strata import Categories, Crossed, CutPoints, Everything, NearestCentre, Rule, stratify
from stratal.testing import check_engine, same_draw

from .sources import ENGINES, READERS, Rows, from_arrays

Reader = Callable[[Rows, Path], Population]

LEVELS = ("de", 'ein, "Wort"', "en", "日本")
RULES: dict[str, Rule] = {
    "everything": Everything(),
    "cuts": CutPoints(column="proxy", cuts=np.array([0.3, 0.5, 0.8])),
    "categories": Categories(column="language", levels=LEVELS, codes=np.array([0, 1, 2, 1])),
    "numbers": Categories(
        column="year", levels=tuple(str(year) for year in range(2000, 2020)), codes=np.arange(20) % 3
    ),
    "crossed": Crossed(
        categories=Categories(column="language", levels=LEVELS, codes=np.array([0, 1, 1, 2])),
        inner=tuple(CutPoints(column="proxy", cuts=np.array(cuts)) for cuts in ([], [0.5], [0.2, 0.9])),
    ),
    "crossed, otherwise": Crossed(
        categories=Categories(column="language", levels=LEVELS, codes=np.array([0, 1, 1, 0])),
        inner=(
            CutPoints(column="proxy", cuts=np.array([0.5])),
            CutPoints(column="judge", cuts=np.array([3.0])),
        ),
    ),
    "centres": NearestCentre(
        names=("proxy", "judge"),
        centres=np.array([[0.2, 1.5], [0.5, 3.1], [0.9, 4.7]]),
        scale=np.array([0.5, 2.0]),
    ),
}  # fmt: skip


SHORTLY = ("spark dataframe", "spark csv", "spark json lines")
"""What differs from another source in the reading alone, and takes long: the main job is tested."""

ALL = [
    *READERS,
    *(pytest.param(name, marks=[pytest.mark.filterwarnings("ignore")]) for name in ENGINES),
]
MOST = [param for param in ALL if isinstance(param, str) or param.values[0] not in SHORTLY]
OWN_PATHS = (
    "csv",
    "json lines",
    "arrow stream",
    "pandas",
    "ibis",
    "csv, queried",
    "postgres",
)
"""Sources in memory, in DuckDB and on a server with lines of their own; the others differ in the reading."""


def reader_called(name: str, request: pytest.FixtureRequest) -> Reader:
    if name in READERS:
        return READERS[name]
    engine, on_engine = ENGINES[name]
    return functools.partial(on_engine, request.getfixturevalue(engine))


@pytest.fixture(params=cells(MOST, OWN_PATHS))
def reader(request: pytest.FixtureRequest) -> Reader:
    return reader_called(request.param, request)


@pytest.fixture(params=cells(ALL, (*READERS, "postgres")))
def any_reader(request: pytest.FixtureRequest) -> Reader:
    return reader_called(request.param, request)


def mixed_rows(n: int = 3000, ids: np.ndarray | None = None) -> Rows:
    rng = np.random.default_rng(11)
    return Rows(
        ids=rng.permutation(10 * n)[:n] - n if ids is None else ids,
        proxies={"proxy": np.round(rng.beta(4, 1, n), 3), "judge": 1 + 4 * rng.random(n)},
        groups={"language": rng.choice(LEVELS, n), "year": rng.integers(2000, 2020, n)},
    )


def test_every_question_is_answered_as_from_arrays(reader: Reader, tmp_path: Path) -> None:
    rows = mixed_rows()
    expected, population = from_arrays(rows, tmp_path), reader(rows, tmp_path)

    assert population.id_name == "item_id"
    check_engine(population, expected, RULES.values())


def test_a_few_of_many_units_come_with_the_digest_in_one_pass(reader: Reader, tmp_path: Path) -> None:
    rows = mixed_rows(6000)
    expected, population = from_arrays(rows, tmp_path), reader(rows, tmp_path)
    for number, rule in enumerate(RULES.values()):
        counts = np.minimum(expected.summarise(rule).sizes, 2)[: rule.n_strata]
        same_draw(
            population.units_with_smallest_keys(rule, counts, number),
            expected.units_with_smallest_keys(rule, counts, number),
        )
        assert population.digest(number) == expected.digest(number)


@pytest.mark.parametrize("kind", cells(["text", "long digits", "odd text"], ("odd text",)))
def test_text_ids_are_kept_as_they_are(reader: Reader, tmp_path: Path, kind: str) -> None:
    n = 400
    make = {
        "text": lambda i: f"img_{i:04d}",
        "long digits": lambda i: f"{10**23 + i}",
        "odd text": lambda i: f' ünit {i}, "{i % 7}"',
    }[kind]
    rows = mixed_rows(n, np.array([make(i) for i in range(n)]))
    expected, population = from_arrays(rows, tmp_path), reader(rows, tmp_path)

    counts = np.minimum(9, expected.summarise(RULES["cuts"]).sizes)

    same_draw(
        population.units_with_smallest_keys(RULES["cuts"], counts, 3),
        expected.units_with_smallest_keys(RULES["cuts"], counts, 3),
    )


def test_a_larger_draw_contains_the_smaller(reader: Reader, tmp_path: Path) -> None:
    population = reader(mixed_rows(), tmp_path)
    small = population.units_with_smallest_keys(RULES["cuts"], np.full(4, 20), 5)
    large = population.units_with_smallest_keys(RULES["cuts"], np.array([20, 40, 60, 33]), 5)

    assert set(small.ids.tolist()) < set(large.ids.tolist())


def test_a_census_is_everybody(reader: Reader, tmp_path: Path) -> None:
    rows = mixed_rows(300)
    population = reader(rows, tmp_path)
    sizes = population.summarise(RULES["cuts"]).sizes

    assert set(id_texts(population.units_with_smallest_keys(RULES["cuts"], sizes, 5).ids)) == set(
        id_texts(rows.ids)
    )


def test_batches_cover_all_units_in_the_order_of_the_ids(reader: Reader, tmp_path: Path) -> None:
    rows = mixed_rows(2500)
    order = np.argsort(np.array(id_texts(rows.ids)))
    batches = list(reader(rows, tmp_path).batches(("proxy", "language"), size=1000))

    assert [len(batch["proxy"]) for batch in batches] == [1000, 1000, 500]
    np.testing.assert_array_equal(
        np.concatenate([batch["proxy"] for batch in batches]), rows.proxies["proxy"][order]
    )
    found = np.concatenate([batch["language"] for batch in batches])
    np.testing.assert_array_equal(found, rows.groups["language"][order])


def test_strata_are_the_same_from_every_source(reader: Reader, tmp_path: Path) -> None:
    rows = mixed_rows()
    expected, population = from_arrays(rows, tmp_path), reader(rows, tmp_path)
    for options in ({"n_strata": 5}, {"n_strata": 3, "by": "language"}, {"method": "category", "by": "year"}):
        assert stratify(population, **options) == stratify(expected, **options)


LARGE = 200_000


def _large(shape: str) -> Rows:
    rng = np.random.default_rng(23)
    beta = rng.beta(4, 1, LARGE)
    values = {
        "smooth": beta,
        "float32": beta.astype(np.float32),
        "few values": np.round(beta, 2),
        "one far value": np.append(beta[:-1], 1e9),
        "one bin": np.concatenate([5e8 + beta[:-2], [0.0, 1e9]]),
        "offset": 1e8 + beta,
        "signed zeros": np.where(beta < 0.7, np.where(beta < 0.5, 0.0, -0.0), beta),
        "tiny": beta * 1e-300,
        "constant": np.full(LARGE, 0.25),
    }[shape]
    assert isinstance(values, np.ndarray)
    second_moment = None
    if values.max() <= 1:
        second_moment = np.maximum(np.where(beta > 0.2, beta**2 + 0.01, 3.0), values.astype(np.float64) ** 2)
    return Rows(
        ids=np.arange(LARGE),
        proxies={"proxy": values},
        second_moment=second_moment,
        groups={"g": np.where(rng.random(LARGE) < 0.6, "much", rng.choice(["a", "b"], LARGE))},
        bounds=(-1.0, 2e9) if values.max() > 1 else None,
    )


SHAPES = (
    "smooth",
    "float32",
    "few values",
    "one far value",
    "one bin",
    "offset",
    "signed zeros",
    "tiny",
    "constant",
)


@pytest.mark.parametrize("shape", cells(SHAPES, ("float32", "one far value", "one bin", "signed zeros")))
def test_histograms_are_the_same_to_the_last_bit(shape: str, tmp_path: Path) -> None:
    rows = _large(shape)
    expected, population = from_arrays(rows, tmp_path), READERS["parquet"](rows, tmp_path)

    assert population.distribution() == expected.distribution()
    assert population.distributions("g") == expected.distributions("g")


@pytest.mark.parametrize("name", cells(ALL, ("csv", "arrow stream", "csv, queried")))
def test_large_sources_agree_with_arrays(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    if name in ("semicolons", "tsv.gz", "parquet parts", "capsule", *SHORTLY):
        pytest.skip("differs from another source in nothing that size matters to")
    rows = _large("smooth")
    expected, population = from_arrays(rows, tmp_path), reader_called(name, request)(rows, tmp_path)
    rule = CutPoints(column="proxy", cuts=np.array([0.5, 0.9]))

    assert population.distribution() == expected.distribution()
    same_draw(
        population.units_with_smallest_keys(rule, np.array([100, 3, 250]), 1),
        expected.units_with_smallest_keys(rule, np.array([100, 3, 250]), 1),
    )


def test_questions_of_other_designs_are_answered_alike(reader: Reader, tmp_path: Path) -> None:
    rows = mixed_rows()
    expected, population = from_arrays(rows, tmp_path), reader(rows, tmp_path)
    for name in ("equal", "judge", "sqrt-variance"):
        size = size_measure(expected, name, "proxy")
        assert size_measure(population, name, "proxy") == size
        found, wanted = (
            population.units_below_size_limit(size, 0.02, 7),
            expected.units_below_size_limit(size, 0.02, 7),
        )
        same_draw(found.drawn, wanted.drawn)
        np.testing.assert_array_equal(found.uniform, wanted.uniform)
        np.testing.assert_array_equal(found.size, wanted.size)
    ranks = np.array([0, 5, 17, 2999])
    same_draw(population.at_ranks("proxy", ranks, 7), expected.at_ranks("proxy", ranks, 7))
    same_draw(
        population.units_of_levels("language", ("de", "日本"), 7),
        expected.units_of_levels("language", ("de", "日本"), 7),
    )


def test_the_main_job_is_the_same(any_reader: Reader, tmp_path: Path) -> None:
    rows = mixed_rows()
    expected, population = from_arrays(rows, tmp_path), any_reader(rows, tmp_path)
    plans = [stratal.plan(each, budget=120) for each in (expected, population)]
    samples = [plan.draw(seed=7) for plan in plans]

    assert plans[0].strata == plans[1].strata
    assert plans[0].allocation == plans[1].allocation
    assert id_texts(samples[0].ids) == id_texts(samples[1].ids)
    values = np.random.default_rng(0).random(120) < samples[0].proxies[:, 0]
    estimates = [stratal.estimate(sample, values.astype(float)) for sample in samples]
    assert estimates[1].value == pytest.approx(estimates[0].value, rel=1e-12)
    assert estimates[1].standard_error == pytest.approx(estimates[0].standard_error, rel=1e-11)
