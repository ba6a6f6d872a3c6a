"""What does not fit in memory goes into a private folder, which ends with its process."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

from stratal.tables.spilling import lock_file, private_folder

HOLDS = "from stratal.tables.spilling import private_folder as f; print(f(), flush=True); input()"


def started(place: Path) -> tuple[subprocess.Popen, Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS],
        env={**os.environ, "TMPDIR": str(place)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    return process, Path(process.stdout.readline().strip())


def ended(process: subprocess.Popen, number: int | None = None) -> None:
    if number is not None:
        process.send_signal(number)
    process.communicate("\n" if number is None else None)


def test_the_folder_is_nobody_elses():
    assert stat.S_IMODE(private_folder().stat().st_mode) == 0o700


def test_the_folder_goes_with_its_process(tmp_path):
    process, folder = started(tmp_path)
    assert folder.is_dir()
    ended(process)

    assert not folder.exists()


def test_what_a_killed_process_left_goes_at_the_next_start_and_a_living_ones_stays(tmp_path):
    killed, left = started(tmp_path)
    living, kept = started(tmp_path)
    ended(killed, signal.SIGKILL)
    (left / "spilled.tmp").write_text("rows")
    assert left.is_dir()
    another, own = started(tmp_path)

    assert not left.exists()
    assert kept.is_dir()
    assert own.is_dir()
    ended(living)
    ended(another)


def test_a_lock_is_held_by_one(tmp_path):
    release = lock_file(tmp_path / "lock")

    assert lock_file(tmp_path / "lock") is None
    release()
    assert lock_file(tmp_path / "lock") is not None


def test_an_abrupt_end_can_take_the_folder_with_it(tmp_path):
    program = (
        "import os, threading\n"
        "from stratal.tables.spilling import private_folder, remove_all\n"
        "folder = private_folder()\n"
        "def spill():\n"
        "    for number in range(10**6):\n"
        "        try: (folder / str(number)).write_text('rows')\n"
        "        except OSError: return\n"
        "threading.Thread(target=spill, daemon=True).start()\n"
        "while not any(folder.iterdir()): pass\n"
        "remove_all()\n"
        "os._exit(7)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "TMPDIR": str(tmp_path)})

    assert done.returncode == 7
    assert os.listdir(tmp_path) == []
