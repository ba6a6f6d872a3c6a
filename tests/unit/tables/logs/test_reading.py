"""Other JSON files are no logs."""

from __future__ import annotations

import pytest

from stratal.tables.logs import log_of_document, log_of_lines


@pytest.mark.parametrize("document", [[], {}, [{"id": 1}], {"results": []}, "text", 7, None, {"eval": 1}])
def test_other_documents_are_no_logs(document):
    assert log_of_document(document, "a") is None


def test_other_lines_are_no_logs():
    assert log_of_lines([], "a") is None
    assert log_of_lines([{"id": "x", "doc": "y"}], "a") is None
