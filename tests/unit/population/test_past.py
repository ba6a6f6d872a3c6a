"""Earlier models' results in files: wide or long, in memory or by query, are one history."""

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stratal
from stratal.errors import InputError
from stratal.population import past_results
from stratal.population.past_results import as_history

N, M = 120, 8
IDS = [f"q{at}" for at in range(N)]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with predictions, and past results in three forms; one result is missing."""
    folder = tmp_path_factory.mktemp("past")
    rng = np.random.default_rng(3)
    hard = rng.normal(size=N)
    right = (rng.random((N, M)) < 1 / (1 + np.exp(hard[:, None] - rng.normal(size=M)))).astype(int)
    held = [[None if (row, at) == (5, 2) else int(right[row, at]) for row in range(N)] for at in range(M)]
    pq.write_table(pa.table({"id": IDS, **{f"m{at}": held[at] for at in range(M)}}), folder / "wide.parquet")
    lines = [
        f"{unit},{','.join('' if c[row] is None else str(c[row]) for c in held)}"
        for row, unit in enumerate(IDS)
    ]
    (folder / "wide.csv").write_text("\n".join([f"item_id,{','.join(f'm{at}' for at in range(M))}", *lines]))
    long = [
        f"{unit},m{at},{'pass' if held[at][row] else 'fail'}"
        for row, unit in enumerate(IDS)
        for at in range(M)
        if held[at][row] is not None
    ]
    (folder / "long.csv").write_text("\n".join(["id,model,result", *long]))
    (folder / "units.csv").write_text(
        "\n".join(["id,language", *(f"{u},{'de' if u[-1] in '02' else 'en'}" for u in IDS)])
    )
    return folder


def test_wide_and_long_files_are_the_same_history(files):
    found = [as_history(files / name) for name in ("wide.parquet", "wide.csv", "long.csv")]
    for other in found[1:]:
        np.testing.assert_array_equal(other.values_of(IDS), found[0].values_of(IDS))
        assert set(other.models) == {f"m{at}" for at in range(M)}


@pytest.mark.parametrize("kind", [pa.bool_(), pa.int8(), pa.float64(), pa.decimal128(5, 1), pa.string()])
def test_results_of_any_type_in_a_file_are_the_same_history(files, tmp_path, kind):
    table = pq.read_table(files / "wide.parquet")
    columns = [pa.array([None if e is None else e == 1 for e in c.to_pylist()]) for c in table.columns[1:]]
    cast = [
        column.cast(pa.int8()).cast(kind) if kind != pa.string() else column.cast(kind) for column in columns
    ]
    if pa.types.is_floating(kind):
        cast[2] = pa.array([np.nan if e is None else e for e in cast[2].to_pylist()])
    named = dict(zip(table.column_names[1:], cast, strict=True))
    pq.write_table(pa.table({"id": table["id"], **named}), tmp_path / "p.parquet")
    found, other = as_history(files / "wide.parquet"), as_history(tmp_path / "p.parquet")
    np.testing.assert_array_equal(found.values, other.values)


@pytest.mark.parametrize("name", ["wide.parquet", "wide.csv", "long.csv"])
def test_a_file_is_read_in_batches_of_any_size(files, monkeypatch, name):
    whole = as_history(files / name)
    monkeypatch.setattr(past_results, "_WIDE_BATCH_ROWS", 7)
    monkeypatch.setattr(past_results, "_LONG_BATCH_ROWS", 7)
    some = as_history(files / name)
    np.testing.assert_array_equal(whole.values, some.values)
    assert whole.ids.tolist() == some.ids.tolist()
    assert whole.models == some.models


def test_very_many_columns_of_text_fit_into_the_usual_memory(tmp_path):
    right = np.random.default_rng(0).random((60, 600)) < 0.6
    words = np.where(right, "Correct", "wrong")
    header = ",".join(["id", *(f"m{at}" for at in range(600))])
    rows = [",".join([f"q{at}", *row]) for at, row in enumerate(words.tolist())]
    (tmp_path / "past.csv").write_text("\n".join([header, *rows]))
    found = as_history(tmp_path / "past.csv")
    np.testing.assert_array_equal(found.values, as_history(right).values)


def test_a_population_is_the_same_in_memory_and_by_query(files):
    past = as_history(files / "wide.parquet")
    held = stratal.Population.read(files / "units.csv", history=past, groups="language")
    table = ibis.duckdb.connect().read_csv(files / "units.csv")
    queried = stratal.Population.from_table(table, history=files / "wide.parquet", groups="language")
    arrays = stratal.Population.from_arrays(ids=IDS, history=past, groups={"language": ["x"] * N})
    assert type(arrays) is not type(queried)
    assert held.digest(7) == queried.digest(7)
    assert arrays.digest(7).ids == held.digest(7).ids
    assert held.notes == queried.notes == arrays.notes

    def labels(sample):
        return [float(int(unit[1:]) % 3 > 0) for unit in sample.ids.tolist()]

    drawn, values = [], []
    for population in (arrays, queried):
        sample = stratal.plan(population, 20).draw(seed=7)
        assert sample.design.kind == "successive"
        sample = stratal.next_round(sample, labels(sample), additional=20)
        drawn.append(sample.ids.tolist())
        values.append(stratal.estimate(sample, labels(sample)))
    assert drawn[0] == drawn[1]
    assert values[0].value == pytest.approx(values[1].value, rel=1e-9)
    assert values[0].standard_error == pytest.approx(values[1].standard_error, rel=1e-6)


def test_items_without_past_results_are_kept_and_counted(files):
    some = as_history(
        {f"m{at}": np.arange(N) % (at + 2) > 0 for at in range(M)}, ids=[*IDS[:100], *range(20)]
    )
    population = stratal.Population.read(files / "units.csv", history=some)
    assert "20 of 120 items have no results" in population.notes[-1]


def test_a_history_of_other_items_is_refused(files):
    other = as_history({f"m{at}": np.arange(N) % (at + 2) > 0 for at in range(M)}, ids=[*range(N)])
    with pytest.raises(InputError, match="no item of the population has past results"):
        stratal.Population.read(files / "units.csv", history=other)


def test_another_history_is_another_population(files):
    one = stratal.Population.read(files / "units.csv", history=files / "wide.parquet")
    sample = stratal.plan(one, 20).draw(seed=7)
    flipped = {f"m{at}": (np.arange(N) + at) % 3 > 0 for at in range(M)}
    other = stratal.Population.read(files / "units.csv", history=as_history(flipped, ids=IDS))
    with pytest.raises(InputError, match="not the population"):
        stratal.next_round(sample, np.ones(20), additional=5, population=other)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,m1,m2\nq1,1,0\n", "contain no column of ids"),
        ("id,m1,m2\nq1,1,perhaps\n", "'m2' contains a value that is neither"),
        ("id,m1,m2\nq1,1,0\nq1,0,1\n", "occurs twice"),
        ("id,model,a,b\nq1,m,1,0\n", "column with the results is not recognised"),
        ("id,model,a\nq1,m,1\nq1,m,0\n", "two results for one item"),
        ("id,model,a\n,m,1\nq1,m,0\n", "has no id"),
        ("id,model,a\nq1,,1\nq2,m,0\n", "has no model"),
        ("id,m1,m2\nq1,1,0\n,1,0\n", "has no id"),
        ("id,m1,m2\nq1,1,0\n", "too few past results"),
    ],
)
def test_what_is_no_history_is_refused(tmp_path, text, words):
    (tmp_path / "past.csv").write_text(text)
    with pytest.raises(InputError, match=words):
        as_history(tmp_path / "past.csv")


def test_answers_of_the_same_models_would_reveal_the_truth(files, tmp_path):
    rows = "\n".join(f"{unit},a,b,c" for unit in IDS)
    (tmp_path / "units.csv").write_text(f"id,own,answer_m1,answer_m2\n{rows}")
    with pytest.raises(InputError, match="reveal which answers are right"):
        stratal.Population.read(
            tmp_path / "units.csv", predicted="own", answers="answer_*", history=files / "wide.parquet"
        )


def test_a_column_that_is_there_already_is_not_overwritten(files, tmp_path):
    (tmp_path / "units.csv").write_text("id,history\n" + "\n".join(f"{unit},0.5" for unit in IDS))
    with pytest.raises(InputError, match="already called 'history'"):
        stratal.Population.read(tmp_path / "units.csv", history=files / "wide.parquet")
