"""Tests and the examples of docstrings work in one temporary folder, which goes when they end."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# Tests start hundreds of processes, each of which would compile the package again, and their own asserts are
# rewritten each time, where Python keeps no compiled files.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_configure(config: pytest.Config) -> None:
    """Set the temporary folder of this process and of all that it starts; pytest's own stays."""
    if hasattr(config, "workerinput"):
        return
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    before, folder = tempfile.gettempdir(), Path(tempfile.mkdtemp(prefix="stratal-tests-"))
    folder.chmod(0o755)  # servers that tests start run as another user
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)

    def clean_up() -> None:
        os.environ["TMPDIR"] = tempfile.tempdir = before  # one process may run pytest several times
        shutil.rmtree(folder, ignore_errors=True)

    config.add_cleanup(clean_up)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each worker whole files, in the order of their names, and one of them all that needs Spark.

    So what a file prepares is prepared once. The marks of `--dist loadgroup` do nothing: pytest-xdist 3.8 writes
    them into an attribute of tests that pytest 9.2 does not read.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "spark" if "spark" in nodeid else nodeid.split("::", 1)[0]

    config.option.loadscopereorder = False  # the slow folders come first
    return ByFile(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for no garbage among thousands of tests, neither now nor later: a tenth of the time went there."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
