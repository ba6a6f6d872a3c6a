"""The population of units that were labelled elsewhere: counted, the labelled ones known by their ids."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import stratal
from stratal.designs.external_options import ExternalOptions
from stratal.designs.other_units import other_units
from stratal.errors import InputError

SCORED = ExternalOptions(value="right", proxy="score")


@pytest.fixture
def whole():
    rng = np.random.default_rng(4)
    proxy = rng.beta(3, 1, 400).round(4)
    return pd.DataFrame(
        {
            "id": [f"{n:04d}" for n in range(400)],
            "score": proxy,
            "kind": rng.choice(["a", "b"], 400),
            "right": (rng.random(400) < proxy).astype(int),
        }
    )


@pytest.fixture
def drawn(whole):
    """A stratified sample drawn here, to compare with."""
    population = stratal.Population.from_table(whole, proxy="score", groups="kind")
    strata = stratal.strata.stratify(population, "category", by="kind")
    return stratal.designs.Stratified(strata=strata, allocation=stratal.strata.allocate(strata, 80)).draw(
        population, seed=1
    )


def labelled_rows(whole, drawn):
    return whole[whole["id"].isin(drawn.ids)].reset_index(drop=True)


@pytest.mark.parametrize("form", ["all", "others", "arrays"])
def test_a_sample_from_elsewhere_gives_the_estimate_of_the_one_drawn_here(whole, drawn, form):
    table = labelled_rows(whole, drawn)
    others = whole[~whole["id"].isin(drawn.ids)].reset_index(drop=True)
    answers = dict(zip(table["id"], table["right"], strict=True))
    expected = stratal.estimate(drawn, answers)
    population = {
        "all": whole,
        "others": others,
        "arrays": stratal.Population.from_arrays(
            proxy={"score": whole["score"]}, ids=whole["id"], groups={"kind": whole["kind"]}
        ),
    }[form]

    sample, labels = stratal.Sample.from_labelled(
        table, value="right", stratum="kind", proxy="score", population=population
    )
    found = stratal.estimate(sample, labels)

    assert found.value == pytest.approx(expected.value, abs=1e-12)
    assert found.standard_error == pytest.approx(expected.standard_error, rel=1e-9)
    assert list(found.confidence_interval()) == pytest.approx(list(expected.confidence_interval()))
    assert found.population_size == 400


@pytest.mark.parametrize("kind", ["csv", "parquet", "xlsx"])
def test_the_population_may_be_a_file(whole, drawn, tmp_path, kind):
    path = tmp_path / f"population.{kind}"
    getattr(whole, {"csv": "to_csv", "parquet": "to_parquet", "xlsx": "to_excel"}[kind])(path, index=False)
    table = labelled_rows(whole, drawn)

    sample, labels = stratal.Sample.from_labelled(table, value="right", proxy="score", population=path)

    assert sample.population_size == 400
    assert "including the 80 labelled units" in labels.notes[0]


def test_one_table_whose_labels_are_mostly_empty(whole, drawn):
    whole = whole.assign(right=whole["right"].where(whole["id"].isin(drawn.ids)))

    sample, labels = stratal.Sample.from_labelled(whole, value="right", stratum="kind", proxy="score")

    assert (sample.size, sample.population_size, labels.answered) == (80, 400, 80)
    (note,) = labels.notes
    assert "80 rows" in note
    assert "within each level of 'kind'" in note


def test_rows_without_ids_are_other_units(whole):
    sample, labels = stratal.Sample.from_labelled(
        {"right": [1, 0, 1], "score": [0.5, 0.4, 0.9]},
        value="right",
        proxy="score",
        population=whole[["score"]],
    )

    assert sample.population_size == 403
    assert "because there are no ids to compare" in labels.notes[0]


def test_a_population_without_a_proxy_says_how_many_units_there_are(whole, drawn):
    table = labelled_rows(whole, drawn)

    by_kind, _ = stratal.Sample.from_labelled(table, value="right", stratum="kind", population=whole)
    simple, _ = stratal.Sample.from_labelled(table, value="right", population=whole)

    assert by_kind.summary.sizes.tolist() == drawn.summary.sizes.tolist()
    assert simple.population_size == 400
    assert simple.design.kind == "simple-random"


def test_a_proxy_outside_0_and_1_has_no_bounds():
    rows = {"y": [3.0, 5.0, 4.0], "f": [3.5, 4.0, 4.5]}
    sample, _ = stratal.Sample.from_labelled(rows, value="y", proxy="f", population={"f": [1.0, 5.0, 2.0]})

    assert sample.proxy_info[0].bounds is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"population": {"score": [0.1]}, "population_size": 9, "proxy": "score"},
            "population and population_size are mutually exclusive",
        ),
        (
            {"population": {"score": [0.1]}, "proxy": "score", "proxy_moments": {}},
            "proxy_moments and population are mutually exclusive",
        ),
        ({"population": {"other": [0.1]}, "proxy": "score"}, "no such column: 'score'"),
        ({"proxy": "score"}, r"requires the units that have no label .*population="),
    ],
)
def test_what_cannot_be_counted_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        stratal.Sample.from_labelled({"right": [1, 0], "score": [0.5, 0.4]}, value="right", **options)


def test_a_population_of_labelled_units_alone_is_refused(whole):
    with pytest.raises(InputError, match="every unit of the population is labelled"):
        other_units(whole, SCORED, whole["id"].tolist())


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_moments_of_the_others_are_those_of_their_values(whole, offset):
    table = whole.assign(score=whole["score"] + offset)
    gone = table["id"].iloc[::7].tolist()
    rest = table[~table["id"].isin(gone)]["score"]

    found = other_units(table, SCORED, gone)

    mean, variance, count = found.strata["all"]
    assert count == len(rest)
    assert mean == pytest.approx(rest.mean(), rel=1e-12)
    assert variance == pytest.approx(rest.var(), rel=1e-4 if offset else 1e-10)


def pairs(size=6):
    return {
        "id": [f"{number:03d}" for number in range(size)],
        "score": [number / 10 for number in range(size)],
    }


def together(labelled, whole):
    rows = {"right": [1.0, 0.0, 1.0], **labelled}
    return stratal.Sample.from_labelled(rows, value="right", proxy="score", population=whole)


def test_a_unit_with_another_proxy_in_the_population_is_refused():
    """Two files with the same ids and other proxies gave .712 for .453."""
    sample, _ = together({"id": ["000", "001", "002"], "score": [0.0, 0.1, 0.2]}, pairs())
    assert sample.population_size == 6
    with pytest.raises(InputError, match=r"'score' of unit '001' is not the same in both files .given: 0.9 "):
        together({"id": ["000", "001", "002"], "score": [0.0, 0.9, 0.2]}, pairs())


def test_a_column_whose_name_differs_in_capitals_is_compared():
    whole = {"id": pairs()["id"], "Score": pairs()["score"]}
    with pytest.raises(InputError, match="of unit '001' is not the same in both files"):
        together({"id": ["000", "001", "002"], "score": [0.0, 0.9, 0.2]}, whole)


def test_a_unit_of_another_stratum_in_the_population_is_refused():
    whole = pairs() | {"kind": ["a", "b"] * 3}
    rows = {"id": ["000", "001", "002"], "right": [1, 0, 1], "kind": ["a", "a", "b"]}
    with pytest.raises(InputError, match="column 'kind' of unit '001' is not the same"):
        stratal.Sample.from_labelled(rows, value="right", stratum="kind", population=whole)


def test_a_population_with_some_of_the_labelled_units_is_refused(whole, drawn):
    """Once the labelled units that it lacks came on top: 007 and 7 then counted as two units, unseen."""
    table = labelled_rows(whole, drawn)
    some = pd.concat([whole[~whole["id"].isin(drawn.ids)], table.iloc[:5]], ignore_index=True)
    with pytest.raises(InputError, match=r"occur in the population .given: 5 of 80 labelled units"):
        stratal.Sample.from_labelled(table, value="right", stratum="kind", proxy="score", population=some)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["000", "001", "zzz"], "2 of 3 labelled units, but not 'zzz'"),
        (["1", "2", "3"], "0 of 3 labelled units, but not '1', which the population contains as '001'"),
        (["001.0", "002.0", "003.0"], "but not '001.0', which the population contains as '001'"),
    ],
)
def test_ids_that_match_only_in_part_are_refused(ids, message):
    with pytest.raises(InputError, match=f"occur in the population .given: .*{message}"):
        together({"id": ids, "score": [0.1, 0.2, 0.3]}, pairs())


def test_units_of_which_none_is_in_the_population_come_on_top():
    sample, labels = together({"id": ["a", "b", "c"], "score": [0.1, 0.2, 0.3]}, pairs())
    assert sample.population_size == 9
    assert "the labelled units are added" in labels.notes[0]


def test_a_32_bit_proxy_with_fewer_digits_is_refused_by_name():
    """As the draw refuses it: strata are cut at exact values."""
    whole = pairs() | {"score": [float(np.float32(number / 10)) for number in range(6)]}
    with pytest.raises(InputError, match=r"'score' of unit '001' is not the same"):
        together({"id": ["000", "001", "002"], "score": [0.0, 0.1, 0.2]}, whole)
