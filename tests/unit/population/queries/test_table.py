"""The table population: what it asks of the engine, and how often."""

from __future__ import annotations

from typing import Any

import duckdb
import ibis
import numpy as np
import pyarrow as pa
import pytest

from stratal.errors import InputError
from stratal.population import Population
from stratal.population.queries.units import text_number_expression
from stratal.randomness import thresholds
from stratal.strata import Categories, CutPoints, Everything

N = 2000


def columns(**more: Any) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    return {"id": np.arange(N), "proxy": rng.random(N), "g": rng.choice(["a", "b", "c"], N), **more}


def population(**keywords: Any) -> Any:
    return Population.from_table(pa.table(columns()), proxy="proxy", groups=["g"], **keywords)


class Counted:
    """A source that counts its queries."""

    def __init__(self, source: Any) -> None:
        self._source, self.queries = source, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def run(self, expression: Any) -> Any:
        self.queries += 1
        return self._source.run(expression)


def counted(subject: Any) -> Counted:
    subject.source = Counted(subject.source)
    return subject.source  # type: ignore[no-any-return]


def test_each_question_is_one_query() -> None:
    subject = population()
    source = counted(subject)
    rule = CutPoints(column="proxy", cuts=np.array([0.5]))
    asked = []
    for question in (
        subject.distribution,
        subject.distribution,
        lambda: subject.levels("g"),
        lambda: subject.summarise(rule),
        lambda: subject.summarise(rule),
        lambda: subject.units_with_smallest_keys(rule, np.array([5, 9]), 7),
    ):
        before = source.queries
        question()
        asked.append(source.queries - before)

    assert asked == [1, 0, 1, 1, 0, 1]


def test_many_levels_are_few_queries() -> None:
    table = pa.table(columns(many=np.arange(N) // 2))
    subject: Any = Population.from_table(table, proxy="proxy", groups="many")
    source = counted(subject)
    found = subject.distributions("many")

    assert source.queries == 2
    assert len(found) == N // 2
    arrays = Population.from_arrays(proxy=columns()["proxy"], groups={"many": np.arange(N) // 2})
    assert found == arrays.distributions("many")


def test_many_categories_and_cuts_agree_with_arrays() -> None:
    rng = np.random.default_rng(8)
    table = pa.table(columns(many=np.arange(N) // 4))
    subject = Population.from_table(table, proxy="proxy", groups="many")
    arrays = Population.from_arrays(
        proxy=columns()["proxy"], groups={"many": np.arange(N) // 4}, ids=columns()["id"]
    )
    levels = tuple(sorted(str(level) for level in range(N // 4)))
    for rule in (
        Categories(column="many", levels=levels, codes=rng.integers(0, 50, len(levels))),
        CutPoints(column="proxy", cuts=np.sort(rng.random(300))),
    ):
        np.testing.assert_array_equal(subject.summarise(rule).sizes, arrays.summarise(rule).sizes)


def test_a_short_pass_is_repeated_wider(monkeypatch: pytest.MonkeyPatch) -> None:
    def narrow(counts: Any, sizes: Any, widening: int) -> Any:
        return thresholds(counts, sizes * 10**4, 0) if widening < 2 else thresholds(counts, sizes, 0)

    expected = population().units_with_smallest_keys(Everything(), np.array([30]), 7)
    monkeypatch.setattr("stratal.population.population.thresholds", narrow)
    subject = population()
    source = counted(subject)
    found = subject.units_with_smallest_keys(Everything(), np.array([30]), 7)

    assert found.ids.tolist() == expected.ids.tolist()
    # The first pass makes the digest too.
    assert source.queries == 3 + 1


def test_more_units_than_there_are() -> None:
    with pytest.raises(InputError, match="fewer units than are to be drawn"):
        population().units_with_smallest_keys(Everything(), np.array([N + 1]), 7)


def test_an_empty_stratum_has_size_zero() -> None:
    rule = CutPoints(column="proxy", cuts=np.array([0.5, 2.0]))
    assert population().summarise(rule).sizes[2] == 0
    assert len(population().units_with_smallest_keys(rule, np.array([2, 2, 0]), 7).ids) == 4


def test_a_category_that_the_strata_do_not_know() -> None:
    for levels in (("a", "b"), tuple("abdefghijklmnopqrstuvw")):
        rule = Categories(column="g", levels=levels, codes=np.arange(len(levels)))
        with pytest.raises(InputError, match="does not occur in the strata"):
            population().summarise(rule)


def test_without_a_proxy_a_simple_random_sample_is_possible() -> None:
    subject = Population.from_table(pa.table({"id": [3, 4, 5]}))
    assert subject.proxies == ()
    assert subject.summarise(Everything()).proxy_means.shape == (1, 0)
    assert subject.units_with_smallest_keys(Everything(), np.array([3]), 7).proxies.shape == (3, 0)
    with pytest.raises(InputError, match="no proxy"):
        subject.distribution()


def test_bounds_and_scales_are_as_for_arrays() -> None:
    table = pa.table({"id": [1, 2, 3], "margin": [-3.0, 2.0, 0.5], "rating": [1.0, 5.0, 4.0]})
    for options in ({}, {"bounds": (-5.0, 5.0)}, {"scaled": False}, {"scaled": True}):
        for name in ("margin", "rating"):
            arrays = Population.from_arrays(proxy={name: table[name].to_numpy()}, **options)
            subject = Population.from_table(table, proxy=name, **options)
            assert subject.proxies == arrays.proxies
            assert subject.distribution() == arrays.distribution()
    with pytest.raises(InputError, match="has values outside the bounds"):
        Population.from_table(table, proxy="margin", bounds=(0.0, 1.0))


def test_predicted_is_kept_as_a_group() -> None:
    subject = Population.from_table(pa.table(columns()), proxy="proxy", predicted="g")
    assert subject.group_names == ("g",)
    assert subject.roles.answer == "g"


def test_one_column_may_play_two_parts() -> None:
    table = pa.table({"id": [1, 2], "proxy": [0.0, 1.0]})
    subject = Population.from_table(table, proxy="proxy", groups="proxy", show="id")
    assert subject.levels("proxy") == {"0": 1, "1": 1}
    by_group = Categories(column="proxy", levels=("0", "1"), codes=np.array([1, 0]))
    assert subject.units_with_smallest_keys(by_group, np.array([1, 0]), 1).shown["id"].tolist() == [2]


def test_unknown_columns_in_batches_and_rules() -> None:
    with pytest.raises(InputError, match="no such column"):
        next(population().batches(("prxy",)))
    with pytest.raises(InputError, match="no such column"):
        population().summarise(CutPoints(column="prxy", cuts=np.array([0.5])))


@pytest.mark.parametrize("ids", [range(-500, 500), [f"i{number}" for number in range(1_000)]])
def test_a_duplicate_is_found_where_keys_are_told_apart_in_parts(
    monkeypatch: pytest.MonkeyPatch, ids: Any
) -> None:
    """Keys of one remainder at a time, whatever their sign."""
    monkeypatch.setattr("stratal.population.queries.units._MAX_KEYS_AT_ONCE", 300)
    proxy, own = np.linspace(0.0, 1.0, 1_000), list(ids)

    assert Population.from_table(pa.table({"id": own, "proxy": proxy}), id="id", proxy="proxy").size == 1_000
    own[7] = own[3]
    with pytest.raises(InputError, match=f"1 id is duplicated .first: '{own[3]}'"):
        Population.from_table(pa.table({"id": own, "proxy": proxy}), id="id", proxy="proxy")


def test_equal_hashes_of_different_ids_are_no_duplicates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "stratal.population.queries.units.duplicate_key", lambda backend, column: column.length()
    )
    names = pa.table({"id": ["aa", "bb", "c"], "proxy": [0.5, 0.5, 0.5]})
    assert Population.from_table(names, proxy="proxy").size == 3
    twice = pa.table({"id": ["aa", "bb", "aa"], "proxy": [0.5, 0.5, 0.5]})
    with pytest.raises(InputError, match=r"1 id is duplicated \(first: 'aa'\)"):
        Population.from_table(twice, proxy="proxy")


def test_a_rule_without_a_translation_says_so() -> None:
    from stratal.population.rules import Rule

    class Odd(Rule):
        __slots__ = ()
        kind = "odd, of a test"

    try:
        with pytest.raises(InputError, match="odd, of a test"):
            population().summarise(Odd())
    finally:
        Rule.registry.pop("odd, of a test")


def test_text_is_stripped_only_where_it_is_no_number():
    """DuckDB strips all values inside `coalesce`, which made every query on a CSV file six times as slow."""
    table = ibis.table({"score": "string"}, name="rows")
    query = ibis.to_sql(table.select(number=text_number_expression(table.score)), dialect="duckdb")
    connection = duckdb.connect()
    texts = "('0.5'), ('1_0'), (' True '), ('FALSE'), ('word'), ('1e-3')"
    connection.execute(f"CREATE TABLE rows AS SELECT * FROM (VALUES {texts}) AS t(score)")
    values = [value for (value,) in connection.execute(query).fetchall()]

    assert "COALESCE" not in query
    assert values == [0.5, None, 1.0, 0.0, None, 0.001]
