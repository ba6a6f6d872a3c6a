"""Long tables of several models."""

from __future__ import annotations

import pytest

from stratal.population.inspection import describe_columns, suggested_options


def described(tmp_path, header, rows):
    path = tmp_path / "long.csv"
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return describe_columns(path)


@pytest.mark.parametrize("name", ["model", "Model", "system_name"])
def test_a_row_for_each_question_and_model_is_told(tmp_path, name):
    rows = [f"m{model},q{item},{(7 * item + model) % 10 / 10}" for model in range(3) for item in range(20)]

    found = described(tmp_path, f"{name},question,score", rows)

    assert found["models"] == {"column": name, "count": 3, "first": "m0", "id": "question"}
    assert f"'{name}' names 3 models" in found["notes"][-1]
    assert suggested_options(found, None, None) == ["--id", "question", "--proxy", "score"]


def test_without_a_column_that_stands_once_for_each_model_none_is_suggested(tmp_path):
    found = described(tmp_path, "model,score", [f"m{row % 2},{row % 7 / 10}" for row in range(20)])

    assert found["models"] == {"column": "model", "count": 2, "first": "m0", "id": None}


@pytest.mark.parametrize(
    ("header", "rows"),
    [
        ("model,score", [f"m,{row / 10}" for row in range(10)]),  # one model
        ("id,model,score", [f"u{row},m{row % 2},{row / 10}" for row in range(10)]),  # ids of each row
        ("model,score", [f"m{row},{row / 10}" for row in range(10)]),  # a model in each row
        ("model,score", ["m1,0.5", ",0.5", "m2,0.5", "m2,0.6"]),  # not named everywhere
        ("kind,score", [f"m{row % 2},{row / 10}" for row in range(10)]),
    ],
)
def test_other_tables_are_of_no_models(tmp_path, header, rows):
    assert described(tmp_path, header, rows)["models"] is None
