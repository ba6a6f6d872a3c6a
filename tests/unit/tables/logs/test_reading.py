"""Other JSON files are not logs."""

from __future__ import annotations

import pytest

from stratal.tables.logs.reading import read_log_document, read_log_lines


@pytest.mark.parametrize("document", [[], {}, [{"id": 1}], {"results": []}, "text", 7, None, {"eval": 1}])
def test_other_documents_are_no_logs(document):
    assert read_log_document(document, "a") is None


def test_other_lines_are_no_logs():
    assert read_log_lines([], "a") is None
    assert read_log_lines([{"id": "x", "doc": "y"}], "a") is None
