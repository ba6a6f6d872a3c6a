from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv
from tests.tiers import cells
from tests.work import calls

import stratal
from stratal.errors import InputError
from stratal.population import inspection
from stratal.population.declaration import Declaration
from stratal.population.inspection import (
    describe_columns,
    describe_proxies,
    likely_group_columns,
    suggested_options,
)
from stratal.report.pages import inspection_page


def test_columns_of_a_csv_file(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("key,score,note\na,0.5,x\nb,0.7,\nc,0.9,x\n")

    found = describe_columns(path)

    assert found["rows"] == 3
    key, score, note = found["columns"]
    assert (key["kind"], key["distinct"]) == ("text", 3)
    assert (score["kind"], score["minimum"], score["maximum"]) == ("number", 0.5, 0.9)
    assert (note["kind"], note["distinct"]) == ("text", 1)
    assert suggested_options(found, None, None) == ["--id", "key", "--proxy", "score"]


def test_a_column_without_a_name_is_shown_as_such_and_is_no_id(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text(",filename,score\n0,a.png,0.5\n1,b.png,0.7\n2,c.png,0.9\n")

    found = describe_columns(path)

    assert suggested_options(found, None, None) == ["--id", "filename", "--proxy", "score"]
    assert "(no name)" in str(inspection_page({"file": "p.csv", **found}))


def test_nothing_to_suggest_is_said(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("a,b\nx,y\nx,z\nx,z\n")

    assert suggested_options(describe_columns(path), None, None) == ["--id", "row"]


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_scores_that_are_nan_here_and_there_are_numbers_with_gaps(tmp_path, ending):
    path = tmp_path / f"p.{ending}"
    if ending == "jsonl":
        path.write_text(
            '{"id": "a", "judge": {"score": 0.5}}\n{"id": "b", "judge": {"score": NaN}}\n{"id": "c"}\n'
        )
    else:
        pq.write_table(pa.table({"id": ["a", "b", "c"], "judge.score": [0.5, float("nan"), None]}), path)

    found = describe_columns(path)

    score = next(row for row in found["columns"] if row["name"] == "judge.score")
    assert (score["kind"], score["missing"], score["distinct"]) == ("number", 2, 1)
    assert found["notes"] == []
    assert suggested_options(found, None, None) == [
        "--id",
        "id",
        "--proxy",
        "judge.score",
        "--missing",
        "own-stratum",
    ]


def test_a_missing_file(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        describe_columns(tmp_path / "p.csv")


def test_proxies_and_groups():
    population = stratal.Population.from_arrays(
        proxy={"p": [0.1, 0.5, 0.9], "margin": [-2.0, 0.0, 3.0]}, groups={"g": ["a", "b", "b"]}
    )
    found = describe_proxies(population)

    assert found["groups"] == {"g": 2}
    assert [(proxy["name"], proxy["scaled"]) for proxy in found["proxies"]] == [
        ("p", True),
        ("margin", False),
    ]
    assert found["proxies"][0]["quantiles"][0] == 0.1
    assert found["proxies"][0]["quantiles"][-1] == 0.9


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("score\n0.25\n0.5\n", ["--id", "row", "--proxy", "score"]),
        ("n,score\n11,0.25\n12,\n", ["--id", "n", "--proxy", "score", "--missing", "own-stratum"]),
        ("key,length,judge\na,17,87\nb,90,3\n", ["--id", "key", "--proxy", "judge"]),
        ("key,length\na,17\nb,90\n", ["--id", "key"]),
        ("text,score\ngood,0.25\nbad,0.5\n", ["--id", "row", "--proxy", "score"]),
        ("image,score\na.png,0.25\nb.png,0.5\n", ["--id", "image", "--proxy", "score"]),
        ("question_id,p_no,p_yes\na,0.2,0.8\nb,0.7,0.3\n", ["--id", "question_id", "--softmax", "p_*"]),
    ],
)
def test_what_is_suggested_fits_the_columns(tmp_path, text, expected):
    path = tmp_path / "p.csv"
    path.write_text(text)

    assert suggested_options(describe_columns(path), None, None) == expected


def mixed_table(columns):
    random = np.random.default_rng(0)
    values = [
        pa.array([0.5, float("nan"), None, -0.0]),
        pa.array([1, 2, None, 2]),
        pa.array(["1", "x", None, "nan"]),
        pa.array([True, False, None, True]),
        pa.array([[1], [2, 3], None, [1]]),
        pa.array(random.random(4)),
        pa.array([None] * 4, pa.float64()),
        pa.array([0.5, float("nan"), 0.25, 1.0]),
    ]
    return pa.table({f"c{number}": values[number % len(values)] for number in range(columns)})


def write_mixed(columns, path):
    if path.suffix == ".parquet":
        pq.write_table(mixed_table(columns), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in mixed_table(columns).to_pylist()))
    else:
        mixed_table(columns).to_pandas().to_csv(path, index=False)


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_columns_are_described_by_groups_and_through_ibis_alike(tmp_path, monkeypatch, ending):
    path = tmp_path / f"p'[1].{ending}"
    write_mixed(24, path)

    found = describe_columns(path)
    monkeypatch.setattr(inspection, "_MAX_QUERY_COLUMNS", 4)
    monkeypatch.setattr(inspection, "_MAX_JSON_VALUES", 1)
    monkeypatch.setattr("stratal.tables.source._MAX_LIST_LENGTH", 3)
    assert found == describe_columns(path)

    def through_ibis(rows, names, below):
        whole = inspection.open_table(path).read_columns(Declaration(id=names[0], shown=tuple(names)))
        return inspection._describe_source(whole.to_source(), names)

    monkeypatch.setattr(inspection, "_describe_rows", through_ibis)

    assert found == describe_columns(path)


def test_keys_of_json_lines_are_described_as_they_are_read(tmp_path):
    """Nested ones by their path; whole numbers, truth values and gaps are those of any other file."""
    path = tmp_path / "p.jsonl"
    path.write_text(
        '\ufeff{"id": "a~", "judge": {"score": 1.0, "a/b": null}, "right": true, "n": 1}\n'
        '{"id": "b", "judge": {"score": 0.5, "a/b": "x"}, "right": false, "n": 1.0}\n'
        '{"id": "c", "judge": null, "right": "True"}\n',
        encoding="utf-8",
    )

    rows = {row["name"]: row for row in describe_columns(path)["columns"]}

    kinds = {name: (row["kind"], row["missing"], row["distinct"]) for name, row in rows.items()}
    assert kinds == {
        "id": ("text", 0, 3),
        "judge": ("text", 1, 2),
        "right": ("number", 0, 2),
        "n": ("number", 1, 1),
        "judge.score": ("number", 1, 2),
        "judge.a/b": ("text", 2, 1),
    }
    assert (rows["judge.score"]["minimum"], rows["judge.score"]["maximum"]) == (0.5, 1.0)


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_twice_the_columns_are_twice_the_work(tmp_path, monkeypatch, ending):
    monkeypatch.setattr(inspection, "_MAX_QUERY_COLUMNS", 50)
    monkeypatch.setattr(inspection, "_MAX_JSON_VALUES", 1)
    paths = []
    for columns in (100, 400, 800):
        paths.append(tmp_path / f"p{columns}.{ending}")
        write_mixed(columns, paths[-1])
    describe_columns(paths[0])

    (_, some), (_, twice) = (calls(describe_columns, path) for path in paths[1:])

    assert twice < 2.3 * some


@pytest.mark.parametrize(
    ("ending", "write"), cells([("parquet", pq.write_table), ("csv", csv.write_csv)], fast=("parquet",))
)
def test_a_column_more_is_little_work_beside_its_values(tmp_path, ending, write):
    """Ibis makes an expression of each column at each step and parses each type: hundreds of calls a step."""
    work = []
    for columns in (1_100, 1_100, 3_100):
        path = tmp_path / f"p{columns}.{ending}"
        table = pa.table({f"c{number}": [f"{number}", "x"] for number in range(columns)})
        write(table, path)
        work.append(calls(describe_columns, path)[1])

    assert work[2] - work[1] < 2_000 * 400


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_to_look_into_a_file_neither_pandas_nor_the_functions_of_scipy_are_loaded(tmp_path, ending):
    """Each takes a fifth of a second: longer than the questions to a small file."""
    path = tmp_path / f"p.{ending}"
    if ending == "parquet":
        pq.write_table(pa.table({"id": ["a", "b"], "x": [0.5, 0.7], "y": [0.25, 0.75]}), path)
    else:
        rows = (
            '{"id": "a", "x": 0.5}\n{"id": "b", "x": 0.7}\n' if ending == "jsonl" else "id,x\na,0.5\nb,0.7\n"
        )
        path.write_text(rows)
    code = (
        "import sys; from stratal.population.inspection import describe_columns;"
        f"describe_columns({str(path)!r}); print(*{{'pandas', 'scipy.special'}} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == ""


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_very_many_columns_of_text_are_described_as_few_are(tmp_path, ending):
    columns = {
        f"c{at}": [f"{at}.5", ["x", None, "nan"][at % 3], "3"]
        for at in range(inspection._MAX_QUERY_COLUMNS + 3)
    }
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    lines = [json.dumps(row) for row in rows]
    if ending == "csv":
        lines = [",".join(columns), *(",".join(value or "" for value in row.values()) for row in rows)]
    (tmp_path / f"wide.{ending}").write_text("\n".join(lines))
    many = inspection.describe_columns(tmp_path / f"wide.{ending}")["columns"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inspection, "_MAX_TEXT_COLUMNS", 500)
        assert inspection.describe_columns(tmp_path / f"wide.{ending}")["columns"] == many
    assert [row["distinct"] for row in many[:3]] == [3, 2, 2]
    assert [row["missing"] for row in many[:2]] == [0, 1]


@pytest.mark.parametrize(
    ("header", "values", "proxies"),
    [
        ("id,judge,score2", (0.2, 0.9), "judge,score2"),
        ("id,judge,percent_score", (0.2, 90), "judge"),  # not from 0 to 1
        ("id,confidence,prob_cat", (0.2, 0.9), "confidence"),  # may be of a class
        ("id,judge,human_score", (0.2, 0.9), "judge"),  # labels
    ],
)
def test_further_scores_from_0_to_1_are_proposed_too(tmp_path, header, values, proxies):
    path = tmp_path / "rows.csv"
    rows = [f"u{row},{values[0]},{values[1] / (1 + row % 3)}" for row in range(8)]
    rows = [
        row.replace(f",{values[0]},", f",{values[0] / (1 + number % 4)},") for number, row in enumerate(rows)
    ]
    path.write_text("\n".join([header, *rows]) + "\n")

    options = suggested_options(describe_columns(path), None, None)

    assert options[options.index("--proxy") + 1] == proxies


def test_an_object_is_no_group(tmp_path):
    path = tmp_path / "p.jsonl"
    rows = [
        {"id": f"u{row}", "judge": {"score": row % 3}, "language": ("de", "en")[row % 2]} for row in range(60)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    assert likely_group_columns(describe_columns(path), []) == ["language"]
