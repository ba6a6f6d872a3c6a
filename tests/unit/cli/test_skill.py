"""What agents are told about the commands follows from the declared options."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from tests.e2e.test_gate import audit
from tests.environments import python_with, run_script

import stratal
from stratal.cli.application import commands
from stratal.cli.mcp_server import MCP_TOOLS, command_line, input_schema
from stratal.cli.skill import RULES, USES, skill_text

__all__ = ["audit"]

ROOT = Path(__file__).parents[3]


def sections():
    """The text of each command in the skill, by its name."""
    parts = re.split(r"^### stratal (.+)$", skill_text(), flags=re.MULTILINE)[1:]
    names = [" ".join(re.findall(r"\b[a-z]+\b", heading)) for heading in parts[::2]]
    return dict(zip(names, parts[1::2], strict=True))


def test_every_command_and_option_of_the_skill_exists():
    text_by_command = sections()

    assert list(text_by_command) == list(USES)
    for name, text in text_by_command.items():
        options = {word for entry in commands(name)[name].params for word in entry.opts}
        mentioned = re.findall(r"^- `(--[\w-]+)", text, flags=re.MULTILINE)
        assert mentioned, name
        assert set(mentioned) <= options, name
    every_option = {word for one in commands().values() for entry in one.params for word in entry.opts}
    assert {word.rstrip("-") for word in re.findall(r"--[a-z][a-z-]*", skill_text())} <= every_option


def test_the_rules_are_in_the_skill_and_in_llms_txt():
    index = (ROOT / "docs" / "llms.txt").read_text(encoding="utf-8")

    for rule in RULES:
        assert f"- {rule}\n" in skill_text()
        assert f"- {rule}\n" in index


def test_a_skill_is_replaced_and_the_file_of_somebody_else_is_kept(run_command, tmp_path):
    path = tmp_path / "skills" / "stratal" / "SKILL.md"

    for _ in range(2):
        assert run_command("skill", "--output", path.parent).status == 0
        assert path.read_text() == skill_text()
        path.write_text("---\nname: stratal\n---\nof an earlier version")
    path.write_text("my notes")
    assert "is kept" in run_command("skill", "--output", path.parent).message
    assert path.read_text() == "my notes"


def test_the_input_of_a_tool_has_the_types_of_the_options():
    schema = input_schema(commands("draw")["draw"])

    types = {name: entry["type"] for name, entry in schema["properties"].items()}
    assert [types[name] for name in ("budget", "same_rows", "proxy", "labels", "half_width")] == [
        *("integer", "boolean", "string", "array", "string")
    ]
    assert schema["required"] == ["output"]
    assert "format" not in input_schema(commands("estimate")["estimate"])["properties"]


def test_a_value_is_never_an_option():
    words = command_line("draw", {"file": "--json", "output": "-x", "margin": True, "remote": False})

    assert words == [
        *(sys.executable, "-m", "stratal", "draw", "--output=-x", "--margin", "--json", "--", "--json")
    ]


@pytest.mark.parametrize(("tool", "arguments"), [("simulate", {}), ("draw", {"files": "x"})])
def test_unknown_tools_and_arguments_are_refused(tool, arguments):
    with pytest.raises(stratal.InputError, match="no such"):
        command_line(tool, arguments)


@pytest.mark.slow
def test_a_client_of_the_sdk_calls_each_tool(audit):
    printed = run_script(python_with("mcp>=2.3"), ROOT / "tests/tools/mcp_client.py", cwd=audit)

    answers = json.loads(printed)
    assert answers["tools"] == list(MCP_TOOLS)
    *results, missing, unknown, hyphen, other = answers["answers"]
    assert [is_error for is_error, _, _ in results] == [False] * 5
    inspection, plan, draw, estimate, report = (structured for _, structured, _ in results)
    assert inspection["rows"] == plan["population_size"] == 1_000
    assert draw["n"] == 200
    assert estimate["requirements"][0]["verdict"] == "PASS"
    assert estimate["estimate"] == report["estimate"]["estimate"]
    for (is_error, structured, text), problem in (
        (missing, "no such file"),
        (unknown, "no such argument of estimate"),
        (hyphen, "--help"),
        (other, "no such tool"),
    ):
        assert is_error
        assert structured is None
        assert problem in text
