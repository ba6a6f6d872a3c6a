"""Environments with packages that the project does not depend on, for tests of the slow tier."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ENVIRONMENTS = Path(os.environ.get("STRATAL_ENVIRONMENTS", Path(sys.prefix) / "environments"))


@cache
def python_with(*packages: str) -> Path:
    """Return the Python of an environment that has stratal and these packages, installed from PyPI.

    The environments are kept in the environment of the tests, or in the folder STRATAL_ENVIRONMENTS, so that
    they are installed once.
    """
    environment = ENVIRONMENTS / re.sub(r"[^\w.]+", "-", "-".join(packages))
    python = environment / "bin" / "python"
    ready = environment / "ready"
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "--editable", ROOT, *packages]
        subprocess.run([*map(str, install)], check=True)
        ready.touch()
    return python


@cache
def node_program(package: str, version: str) -> Path:
    """Return the program of a package of npm, which is installed once; skip the test without npm."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    folder = ENVIRONMENTS / f"{package}-{version}"
    program = folder / "node_modules" / ".bin" / package
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        install = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", f"{package}@{version}"]
        subprocess.run(install, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return program


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
