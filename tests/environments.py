"""Environments with packages that the project does not depend on, for tests of the slow tier."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]


@cache
def python_with(*packages: str) -> Path:
    """Return the Python of an environment that has stratal and these packages, installed from PyPI.

    The environments are kept in the environment of the tests, or in the folder STRATAL_ENVIRONMENTS, so that
    they are installed once.
    """
    folder = Path(os.environ.get("STRATAL_ENVIRONMENTS", Path(sys.prefix) / "environments"))
    environment = folder / re.sub(r"[^\w.]+", "-", "-".join(packages))
    python = environment / "bin" / "python"
    ready = environment / "ready"
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "--editable", ROOT, *packages]
        subprocess.run([*map(str, install)], check=True)
        ready.touch()
    return python


def run_script(python: Path, *words: object, cwd: Path, **variables: str) -> str:
    """Return what a script prints; its error becomes part of the failure of the test."""
    done = subprocess.run(
        [str(python), *map(str, words)],
        cwd=cwd,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
