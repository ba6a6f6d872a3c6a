"""Workflows use pinned actions with read-only rights; the fast job needs no engine, another requires all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests import engines

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_actions_are_named_by_their_commit():
    paths = [*WORKFLOWS, ROOT / "action.yml"]
    used = [line for path in paths for line in re.findall(r"uses: (.*)", path.read_text())]

    assert used
    assert [line for line in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}  # v[\d.]+", line)] == []


def test_workflows_may_only_read_and_keep_no_credentials():
    for path in WORKFLOWS:
        text = path.read_text()
        assert text.count("permissions:") == text.count("\npermissions:\n  contents: read\n") == 1
        assert "write" not in text
        assert text.count("actions/checkout@") == text.count("persist-credentials: false")


def test_dependencies_are_audited_every_night():
    assert "make audit" in (ROOT / ".github" / "workflows" / "slow.yml").read_text()
    assert "pip-audit" in (ROOT / "Makefile").read_text()


def jobs_of(workflow):
    """Return the text of each job of a workflow by its name."""
    text = (ROOT / ".github" / "workflows" / workflow).read_text().split("\njobs:\n")[1]
    parts = re.split(r"^  ([\w-]+):\n", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_the_fast_job_needs_no_engine_and_another_job_requires_them():
    jobs = jobs_of("tests.yml")

    assert "STRATAL_ENGINES: skip" in jobs["fast"]
    assert ".ci/run" not in jobs["fast"]
    assert ".ci/run" in jobs["engines"]
    assert "STRATAL_ENGINES=required" in (ROOT / ".ci" / "run").read_text()


@pytest.mark.parametrize("require", [engines.require_spark, engines.postgres_programs])
def test_engines_can_be_skipped(require, monkeypatch):
    monkeypatch.setenv("STRATAL_ENGINES", "skip")

    with pytest.raises(pytest.skip.Exception):
        require()
