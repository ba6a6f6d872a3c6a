"""Workflows run code that cannot change under its name, with no more rights than they need."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_actions_are_named_by_their_commit():
    used = [line for path in WORKFLOWS for line in re.findall(r"uses: (.*)", path.read_text())]

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
