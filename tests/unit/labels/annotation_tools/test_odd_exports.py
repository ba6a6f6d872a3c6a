"""Other layouts of annotation tools' exports: an answer, a skip, or an error that names the record."""

from __future__ import annotations

import json
from datetime import date, datetime

import numpy as np
import pytest

from stratal import read_labels
from stratal.errors import LabelError
from stratal.labels.label_files import read_tool_answers
from stratal.labels.labels import Labels


def annotation(choice="Pass", updated="2026-01-01T10:00:00Z", by=1, **more):
    result = [{"from_name": "verdict", "to_name": "t", "type": "choices", "value": {"choices": [choice]}}]
    found = {"id": 1, "completed_by": by, "result": result, "was_cancelled": False, "lead_time": 1.5}
    return found | {"created_at": updated, "updated_at": updated} | more


def task(data, *annotations, key="annotations"):
    return {"id": 1000, "data": data, key: list(annotations), "predictions": []}


@pytest.fixture
def read(tmp_path):
    """Return a function that reads a document as the labels of a sample."""

    def labels(document, name="export.json", id_name="id"):
        path = tmp_path / name
        lines = "".join(json.dumps(line) + "\n" for line in document) if name.endswith("jsonl") else None
        text = document if isinstance(document, str) else lines or json.dumps(document)
        path.write_text(text)
        return read_labels(path, id_name=id_name)

    return labels


@pytest.mark.parametrize(
    ("data", "id_name"),
    [
        ({"item_id": "q7", "text": "t"}, "id"),
        ({"id": "q7", "text": "t"}, "id"),
        ({"id": 3, "item_id": "q7"}, "id"),
        ({"key": "q7", "id": 3}, "key"),
        ({"key": "q7", "item_id": "other"}, "key"),
    ],
)
@pytest.mark.parametrize("key", ["annotations", "completions"])
def test_label_studio_tasks_have_the_id_in_their_data(read, data, id_name, key):
    labels = read([task(data, annotation(), key=key)], id_name=id_name)

    assert (labels.ids, labels.values) == (("q7",), ("Pass",))


@pytest.mark.parametrize(
    ("by", "name"), [(7, "7"), ({"id": 7, "email": "ann@example.org"}, "ann@example.org"), ({"id": 7}, "7")]
)
def test_annotators_of_exports_and_snapshots(read, by, name):
    assert read([task({"id": "q7"}, annotation(by=by))]).annotators == (name,)


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        ("2026-01-01T10:00:00Z", "2026-01-01T11:00:00+02:00", "Pass"),
        ("2026-01-01T10:00:00Z", "2026-01-01T09:30:00-01:00", "Fail"),
        ("2026-01-01T10:00:00.900Z", "2026-01-01T10:00:01Z", "Fail"),
        ("2026-01-01T10:00:00Z", "2026-01-01T10:00:00.5+00:00", "Fail"),
        ("2026-01-01T10:00:00", "2026-01-01T10:00:01Z", "Fail"),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_the_newest_annotation_counts_whatever_the_offset(read, first, second, kept, turned):
    both = [annotation("Pass", first), annotation("Fail", second)]

    assert read([task({"id": "q7"}, *(reversed(both) if turned else both))]).values == (kept,)


def test_times_that_are_none_decide_nothing(read):
    both = [annotation("Pass", "yesterday"), annotation("Fail", "today")]

    with pytest.raises(LabelError, match="item 'q7' has two answers"):
        read([task({"id": "q7"}, *both)])


def test_a_cancelled_annotation_is_a_skip_and_a_task_without_any_is_none(read):
    labels = read([task({"id": "q7"}, annotation(was_cancelled=True)), task({"id": "q8"})])

    assert (labels.ids, labels.values) == (("q7",), (None,))


ROW = {"id": 1, "annotator": 1, "annotation_id": 5, "lead_time": 2.5, "updated_at": "2026-01-01T10:00:00Z"}


def test_json_min_and_csv_of_label_studio_are_read_alike(read):
    entries = [
        {**ROW, "item_id": "q7", "verdict": "Fail", "updated_at": "2026-01-01T09:00:00Z"},
        {**ROW, "item_id": "q7", "verdict": "Pass"},
        {**ROW, "item_id": "q8", "verdict": "Fail"},
    ]
    rows = [list(entries[0]), *([str(value) for value in entry.values()] for entry in entries)]
    text = "\n".join(",".join(row) for row in rows)

    for document, name in ((entries, "min.json"), (text, "export.csv")):
        labels = read(document, name)
        assert (labels.ids, labels.values) == (("q7", "q8"), ("Pass", "Fail"))
        assert "leaves out skipped tasks" in labels.notes[0]


@pytest.mark.parametrize("name", ["min.json", "export.csv"])
def test_json_min_has_lost_an_id_of_the_data(read, name):
    entry = {**ROW, "verdict": "Pass"}
    csv = "\n".join([",".join(entry), ",".join(map(str, entry.values()))])

    with pytest.raises(
        LabelError, match=r"1 has no 'item_id', and its 'id' identifies the task, not the item"
    ):
        read([entry] if name == "min.json" else csv, name)


def test_json_min_has_the_id_in_another_column(read):
    assert read([{**ROW, "key": "q7", "verdict": "Pass"}], "min.json", "key").ids == ("q7",)


@pytest.mark.parametrize(
    ("record", "value"),
    [
        ({"id": "q7", "text": "t", "label": ["Pass"], "Comments": []}, "Pass"),
        ({"id": "q7", "text": "t", "labels": ["Pass"]}, "Pass"),
        ({"id": "q7", "label": [1]}, 1),
        ({"id": "q7", "label": []}, None),
        ({"id": "q7", "label": "Pass"}, "Pass"),
    ],
)
@pytest.mark.parametrize("name", ["export.jsonl", "export.json"])
def test_doccano_writes_a_label_in_a_list(read, record, value, name):
    labels = read([record], name)

    assert (labels.ids, labels.values) == (("q7",), (value,))


@pytest.mark.parametrize("label", [[[0, 4, "ORG"]], [{"label": 1}]])
def test_other_lists_of_doccano_are_refused_with_the_id(read, label):
    records = [{"id": "q6", "label": ["Pass"]}, {"id": "q7", "label": label}]

    with pytest.raises(LabelError, match="label of id 'q7' is a"):
        read(records, "export.jsonl")


@pytest.mark.parametrize(
    "moment", [datetime(2026, 1, 1, 10), date(2026, 1, 1), np.datetime64("2026-01-01T10", "ns")]
)
def test_a_time_is_no_label(moment):
    with pytest.raises(LabelError, match="the label of id 'q7' is a time"):
        Labels(ids=("q7",), values=(moment,))


def test_prodigy_has_the_id_in_meta_too(tmp_path):
    path = tmp_path / "answers.jsonl"
    line = {"text": "t", "meta": {"id": "q7"}, "answer": "accept", "accept": ["Pass"], "_task_hash": 1}
    path.write_text(json.dumps(line) + "\n")

    found = read_tool_answers(path)

    assert [(entry.id, entry.value) for entry in found.answers] == [("q7", "Pass")]
