"""One server for a study, whatever became of the one before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import stratal
from stratal.study import StudyError


def test_a_second_server_is_refused_and_told_of_the_first(study):
    with study.serving("http://127.0.0.1:8000"):
        second = study.serving("http://127.0.0.1:8001")
        with pytest.raises(StudyError, match=r"another server.*127.0.0.1:8000") as caught, second:
            pass
        assert caught.value.kind == "served"
    with study.serving("http://127.0.0.1:8001"):
        pass


def test_a_killed_server_does_not_keep_the_study(study):
    code = (
        "import sys, time; from stratal.study import open_study\n"
        "with open_study(sys.argv[1]).serving('http://127.0.0.1:9'): print('up', flush=True); time.sleep(60)"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(stratal.__file__).parents[1])}
    first = subprocess.Popen(
        [sys.executable, "-c", code, str(study.folder)], stdout=subprocess.PIPE, text=True, env=env
    )
    assert first.stdout.readline() == "up\n"
    with pytest.raises(StudyError, match="another server"), study.serving("http://127.0.0.1:8"):
        pass
    first.kill()
    first.wait()
    first.stdout.close()

    with study.serving("http://127.0.0.1:8"):
        pass
