"""From the wheel to the first label saved: at most four commands, in an environment that has nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PREDICTIONS = "item_id,confidence,answer\n" + "".join(
    f"q{k},{0.5 + k / 200},It is {k}.\n" for k in range(100)
)
COMMANDS = (
    "pip install {wheel}[web]",
    "stratal draw predictions.csv --proxy confidence --show answer --budget 20 --output drawn",
    "stratal study new drawn --output audit --question Correct? --choices Pass,Fail --annotators ann",
    "stratal study label audit --port 0 --json",
)


@pytest.mark.slow
def test_four_commands_from_the_wheel_to_the_first_label(tmp_path):
    """Prints the seconds that each command took (`pytest -s`)."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(tmp_path),
        str(ROOT),
    ]
    subprocess.run(build, check=True, env=clean)
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    (tmp_path / "predictions.csv").write_text(PREDICTIONS)
    wheel = next(tmp_path.glob("*.whl"))
    programs = [command.format(wheel=wheel).split() for command in COMMANDS]
    start = time.perf_counter()
    for program, *words in programs[:-1]:
        subprocess.run([str(tmp_path / "venv/bin" / program), *words], check=True, cwd=tmp_path, env=clean)
        print(f"{program} {words[0]}: {time.perf_counter() - start:.0f} s since the start")
    program, *words = programs[-1]
    told = {"stdout": subprocess.PIPE, "text": True, "cwd": tmp_path, "env": clean}
    with subprocess.Popen([str(tmp_path / "venv/bin" / program), *words], **told) as server:
        text = ""
        while server.poll() is None and not text.endswith("}\n}\n"):
            text += server.stdout.readline()
        link = json.loads(text)["links"]["ann"]
        item = json.loads(urllib.request.urlopen(f"{link}api/state").read())["item"]["id"]
        body = {"action": "submit", "request": "first", "item": item, "value": "Pass"}
        sent = urllib.request.Request(
            f"{link}api/act", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        saved = json.loads(urllib.request.urlopen(sent).read())
        print(f"the first label: {time.perf_counter() - start:.0f} s since the start")
        server.terminate()

    assert saved["receipt"]["action"] == "submit"
    assert saved["progress"]["submitted"] == 1
    assert len(COMMANDS) <= 4
