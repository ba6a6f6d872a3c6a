"""Spelling: no word of pages and docstrings is on codespell's list of usual mistakes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = "fpr,nd,fo,caf,sise"
"""An n-dimensional array's, a letter's and the examples' of a typing mistake."""


def test_no_word_is_misspelt():
    pytest.importorskip("codespell_lib")
    places = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "src", "benchmarks/results"]
    skipped = "*.svg,*.png,*.json,*.html,*.js,*.ipynb,__pycache__"
    words = [sys.executable, "-m", "codespell_lib", "--skip", skipped, "--ignore-words-list", NAMES, *places]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.stdout == ""
    assert done.returncode == 0
