"""The steps of action.yml, run here against a server that behaves like GitHub's API."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from tests.e2e.test_gate import STATUSES, audit

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
TOKEN = "a token"
__all__ = ["audit"]


class FakeGitHub(BaseHTTPRequestHandler):
    """Comments of one pull request; only the right token may write."""

    def do_GET(self):
        query = parse_qs(urlsplit(self.path).query)
        size, page = int(query["per_page"][0]), int(query["page"][0])
        self.answer(200, self.server.comments[size * (page - 1) : size * page])

    def do_POST(self):
        assert self.path == "/repos/owner/name/issues/7/comments"
        identifier = 1000 + len(self.server.comments)
        self.change(lambda body: self.server.comments.append({"id": identifier, **body}))

    def do_PATCH(self):
        identifier = int(self.path.removeprefix("/repos/owner/name/issues/comments/"))
        comment = next(entry for entry in self.server.comments if entry["id"] == identifier)
        self.change(comment.update)

    def change(self, apply):
        content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            self.answer(403, {"message": "Resource not accessible by integration"})
            return
        self.server.writes += 1
        apply(content)
        self.answer(200, {})

    def answer(self, status, content):
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def github():
    server = ThreadingHTTPServer(("127.0.0.1", 0), FakeGitHub)
    # One of them quotes the marker of the gate, but is not its comment.
    quoted = "> <!-- stratal gate: stratal --> is what the gate writes"
    server.comments = [{"id": number, "body": quoted} for number in range(130)]
    server.writes = 0
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def run_step(github, audit, tmp_path):
    """Run a step of the action with inputs, as a runner does; return its exit status and output."""
    (tmp_path / "audit").symlink_to(audit / "audit")
    for version in STATUSES:
        (tmp_path / f"{version}.csv").symlink_to(audit / f"{version}.csv")
    programs = tmp_path / "programs"
    programs.mkdir()
    python = programs / "python"
    install = 'if [ "$2" = pip ]; then echo "$@"; exit; fi'
    python.write_text(f'#!/bin/bash\n{install}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)

    def run(step, event="pull_request", **inputs):
        values = {name: entry.get("default", "") for name, entry in ACTION["inputs"].items()}
        values |= {"files": "audit/sample.parquet audit/labels.csv", "require": "value>=.9", "token": TOKEN}
        values |= inputs
        variables = {
            name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda match: values[match[1]], text)
            for name, text in step["env"].items()
        }
        (tmp_path / "event.json").write_text(json.dumps({event: {"number": 7}}))
        context = {
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_API_URL": f"http://127.0.0.1:{github.server_port}",
            "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
            "GITHUB_OUTPUT": str(tmp_path / "output"),
            "GITHUB_REPOSITORY": "owner/name",
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
            "PATH": f"{programs}:{os.environ['PATH']}",
        }
        return subprocess.run(
            ["bash", "-e", "-c", step["run"]],
            cwd=tmp_path,
            env=os.environ | context | variables,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


# Labels that need no file: 480 of 500 answers are right.
COUNT = {"files": "480/500"}
INSTALL, GATE = (step for step in ACTION["runs"]["steps"] if "run" in step)


def own_comments(github):
    return [entry for entry in github.comments if entry["body"].startswith("<!-- stratal gate: stratal -->")]


def against(version):
    return f"--predicted answer --against {version}.csv"


def test_one_comment_follows_the_verdicts_of_good_and_broken_models(github, run_step, tmp_path):
    for version, heading, verdict in (
        ("better", "passed", "PASS"),
        ("always-refund", "failed", "FAIL"),
        ("four-fifths", "undecided", "UNDECIDED"),
    ):
        done = run_step(GATE, options=against(version))

        assert done.returncode == STATUSES[version]
        assert f"status={STATUSES[version]}\n" in (tmp_path / "output").read_text()
        [comment] = own_comments(github)
        assert comment["id"] == 1130
        assert f"### stratal: {heading}\n" in comment["body"]
        assert f"| {verdict} | value\\>=0.9 |" in comment["body"]
        assert comment["body"] in (tmp_path / "summary.md").read_text()
    assert github.writes == 3


def test_a_comment_of_a_passed_run_does_not_survive_an_error(github, run_step):
    assert run_step(GATE, **COUNT).returncode == 0
    done = run_step(GATE, files="@missing.csv")

    assert done.returncode == 2
    [comment] = own_comments(github)
    assert "### stratal: error\n" in comment["body"]
    assert "missing.csv" in comment["body"]
    assert "@missing" not in comment["body"]  # which would notify a user of that name
    assert "PASS" not in comment["body"]


def test_a_gate_without_a_requirement_is_an_error(github, run_step):
    assert run_step(GATE, **COUNT | {"require": ""}).returncode == 2


def test_gates_with_different_names_have_their_own_comments(github, run_step):
    run_step(GATE, **COUNT)
    run_step(GATE, **COUNT, name="second")

    assert len(github.comments) == 132
    assert len(own_comments(github)) == 1


def test_a_token_that_may_not_write_changes_no_verdict(github, run_step, tmp_path):
    done = run_step(GATE, **COUNT | {"require": "value>=.999", "token": "of a fork"})

    assert done.returncode == 4
    assert "::warning::The comment could not be written: HTTP Error 403" in done.stdout
    assert own_comments(github) == []
    assert "FAIL" in (tmp_path / "summary.md").read_text()


@pytest.mark.parametrize("changes", [{"event": "push"}, {"token": ""}])
def test_without_a_pull_request_or_a_token_nothing_is_written(changes, github, run_step):
    assert run_step(GATE, **COUNT, **changes).returncode == 0
    assert github.writes == 0


def test_a_report_is_written_too(run_step, tmp_path):
    assert run_step(GATE, **COUNT, report="report.html").returncode == 0
    assert "<html" in (tmp_path / "report.html").read_text()


def test_inputs_are_words_and_never_code(run_step, tmp_path):
    done = run_step(GATE, options="--predicted answer; touch hacked.txt $(touch hacked.txt)")

    assert done.returncode == 2
    assert not (tmp_path / "hacked.txt").exists()


def test_the_source_of_the_action_is_installed_unless_an_input_names_another(run_step):
    assert run_step(INSTALL).stdout == f"-m pip install --quiet {ROOT}\n"
    assert run_step(INSTALL, install="stratal[excel] == 1.0").stdout.endswith(" stratal[excel] == 1.0\n")


def test_scripts_contain_no_expression_of_the_workflow():
    assert [step["run"] for step in (INSTALL, GATE) if "${{" in step["run"]] == []
