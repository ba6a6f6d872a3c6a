"""The step of `action.yml`: run `stratal estimate`, and show its result in the job and the pull request.

The exit status is that of the command. All inputs are environment variables, so that no text of a workflow
becomes code. If the comment cannot be written, as with the read-only token of a fork, a warning says so.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

# GitHub's limit is 65,536 characters; the rest is reserved for the heading.
MAX_CHARACTERS = 60_000
COMMENTS_PER_PAGE = 100
TIMEOUT_SECONDS = 30
PASS = 0
HEADINGS = {PASS: "passed", 4: "failed", 5: "undecided"}


def run_stratal(inputs: Mapping[str, str]) -> tuple[int, str]:
    """Return the exit status and the Markdown text of the estimate; write the report if one is requested."""
    stratal = [sys.executable, "-m", "stratal"]
    words = shlex.split(inputs["FILES"]) + shlex.split(inputs["OPTIONS"]) + ["--require", inputs["REQUIRE"]]
    command = [*stratal, "estimate", *words, "--format", "markdown"]
    estimate = subprocess.run(command, capture_output=True, text=True, check=False)
    sys.stderr.write(estimate.stderr)
    if inputs["REPORT"]:
        subprocess.run([*stratal, "report", *words, "--output", inputs["REPORT"]], check=False)
    if estimate.stdout:
        text = estimate.stdout
    else:
        text = f"```text\n{estimate.stderr}\n```\n"
    return estimate.returncode, text


def comment_body(marker: str, name: str, status: int, text: str) -> str:
    """Return the comment, in which a text from the data mentions nobody."""
    heading = f"### {name}: {HEADINGS.get(status, 'error')}"
    silent_text = re.sub(r"(?<!\w)@(?=\w)", "@\u200b", text[:MAX_CHARACTERS])
    return f"{marker}\n{heading}\n\n{silent_text}"


def call_api(method: str, path: str, token: str, content: Any = None) -> Any:
    """Return the answer of GitHub's API."""
    url = os.environ.get("GITHUB_API_URL", "https://api.github.com")
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
    body = None if content is None else json.dumps(content).encode()
    request = Request(f"{url}{path}", data=body, headers=headers, method=method)
    with urlopen(request, timeout=TIMEOUT_SECONDS) as response:
        return json.load(response)


def find_comment(comments_path: str, marker: str, token: str) -> int | None:
    """Return the id of the comment that begins with the marker."""
    page = 1
    while True:
        path = f"{comments_path}?per_page={COMMENTS_PER_PAGE}&page={page}"
        comments = call_api("GET", path, token)
        for comment in comments:
            if comment["body"].startswith(marker):
                return int(comment["id"])
        if len(comments) < COMMENTS_PER_PAGE:
            return None
        page += 1


def write_comment(number: int, marker: str, body: str, token: str) -> None:
    """Create the comment of a pull request, or change the one that an earlier run created."""
    issues = f"/repos/{os.environ['GITHUB_REPOSITORY']}/issues"
    comments = f"{issues}/{number}/comments"
    comment = find_comment(comments, marker, token)
    if comment is None:
        call_api("POST", comments, token, {"body": body})
    else:
        call_api("PATCH", f"{issues}/comments/{comment}", token, {"body": body})


def pull_request_number() -> int | None:
    """Return the number of the pull request that started the workflow; None for another event."""
    event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    if "pull_request" not in event:
        return None
    return int(event["pull_request"]["number"])


def append_line(variable: str, text: str) -> None:
    """Append to a file of the job that GitHub names by an environment variable."""
    with Path(os.environ[variable]).open("a", encoding="utf-8") as stream:
        stream.write(f"{text}\n")


def main() -> int:
    """Run the gate, and return the exit status of the estimate."""
    inputs = os.environ
    status, text = run_stratal(inputs)
    marker = f"<!-- stratal gate: {inputs['NAME']} -->"
    body = comment_body(marker, inputs["NAME"], status, text)
    append_line("GITHUB_OUTPUT", f"status={status}")
    append_line("GITHUB_STEP_SUMMARY", body)
    number = pull_request_number()
    if number is not None and inputs["TOKEN"]:
        try:
            write_comment(number, marker, body, inputs["TOKEN"])
        except (URLError, TimeoutError) as error:
            print(f"::warning::The comment could not be written: {error}. The result is in the summary.")
    return status


if __name__ == "__main__":
    sys.exit(main())
