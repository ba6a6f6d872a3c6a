"""Runs of stratal as children of one process that has imported everything, so that a start costs nothing.

Started as a program it answers lines of JSON, the arguments of `_answer`, with one line each: the statuses of
its runs, how many calls were counted, and what stood on standard error.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

EARLY = (
    "stratal.cli.application",
    "stratal.designs.labelling_files",
    "stratal.designs.sample_file",
    "duckdb",
    "ibis.backends.duckdb",
    "pyarrow.parquet",
    "pyarrow.csv",
    "scipy.optimize",
    "scipy.special",
    "stratal.planning.planner",
    "stratal.simulation.engine",
    "stratal.study",
    "sqlite3",
)
PYTHONS = ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.scandir", "shutil.rmtree")
"""Python's own calls at which a run can be killed, on every system."""

KERNELS = "write,pwrite64,fsync,fdatasync,rename,renameat2,mkdir,unlink,rmdir,ftruncate,link"
"""Calls of the kernel at which `strace` can kill it, those of libraries in C and C++ among them."""


@dataclass
class Run:
    """How runs ended: a status each (negative: the signal), the calls counted, what they complained of."""

    statuses: list[int]
    calls: int
    said: list[str]


class Nursery:
    """The process that forks them; ended when the block is left."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__], stdin=-1, stdout=-1, text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "COLUMNS": "200"},
        )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def run(
        self,
        *runs: list[str],
        call: int = 0,
        after: float | None = None,
        signal: int = signal.SIGKILL,
        traced: bool = False,
    ) -> Run:
        """Run all of them at once; stop each at a call, or after so many seconds."""
        asked = {"runs": runs, "call": call, "after": after, "number": signal, "traced": traced}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        return Run(**json.loads(self._process.stdout.readline()))


def traces() -> bool:
    """Return whether a run can be killed at a call of the kernel here."""
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True).returncode == 0


def _act(words: list[str], place: Path, call: int, gate: int) -> None:
    """Be the run: wait for the gate, then do it and note how many of Python's calls it took."""
    calls = 0

    def counted(event: str, arguments: object) -> None:
        nonlocal calls
        if event in PYTHONS and threading.current_thread() is threading.main_thread():
            calls += 1
            if calls == call:
                os.kill(os.getpid(), signal.SIGKILL)

    out = os.open(place / "said", os.O_WRONLY | os.O_CREAT)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(out, 2)
    sys.argv = ["stratal", *words]
    from stratal.cli import main

    status: Any = 0
    os.read(gate, 1)
    sys.addaudithook(counted)
    try:
        if words[0] == "handover":
            _handover(words)
        else:
            main()
    except SystemExit as ended:
        status = ended.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    told = calls
    (place / "modules").write_text("\n".join(sys.modules))
    (place / "calls").write_text(str(told))
    os._exit(int(status))


def _handover(words: list[str]) -> None:
    import stratal
    from stratal.designs.labelling_files import write_labelling_folder
    from stratal.errors import StratalError

    units = stratal.Population.from_arrays(
        proxy=[k / 300 for k in range(300)], ids=[f"u{k}" for k in range(300)]
    )
    sample = stratal.designs.SimpleRandom(budget=100).draw(units, seed=int(words[2]))
    try:
        write_labelling_folder(sample, Path(words[1]))
    except StratalError as error:
        sys.stderr.write(f"Error: {error}\n")
        raise SystemExit(2) from None


def _answer(runs: list[list[str]], call: int, after: float | None, number: int, traced: bool) -> Run:
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder) / str(one) for one in range(len(runs))]
        waiting, gate = os.pipe()
        children = []
        for words, place in zip(runs, places, strict=True):
            place.mkdir()
            child = os.fork()
            if not child:
                os.close(gate)
                _act(words, place, 0 if traced else call, waiting)
            children.append(child)
        os.close(waiting)
        tracers = [
            _traced(child, place, call) for child, place in zip(children, places, strict=True) if traced
        ]
        os.close(gate)
        if after is not None:
            time.sleep(after)
            for child in children:
                os.kill(child, number)
        statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        for tracer in tracers:
            tracer.communicate()
        counts = [place / ("trace" if traced else "calls") for place in places]
        texts = [path.read_text() if path.exists() else "" for path in counts]
        calls = max(text.count("\n") if traced else int(text or 0) for text in texts)
        _import_too(places)
        return Run(statuses, calls, [(place / "said").read_text(errors="replace") for place in places])


def _traced(child: int, place: Path, call: int) -> subprocess.Popen[str]:
    """Follow a run from outside, to kill it at that call of the kernel, or to list its calls (`call` 0)."""
    kill = ["-e", f"inject={KERNELS}:signal=SIGKILL:when={call}"] if call else []
    tracer = subprocess.Popen(
        ["strace", "-f", "-q", "-e", f"trace={KERNELS}", *kill, "-o", str(place / "trace"), "-p", str(child)],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    status = Path(f"/proc/{child}/status")
    while tracer.poll() is None and "TracerPid:\t0\n" in status.read_text():
        time.sleep(0.001)
    return tracer


def _import_too(places: list[Path]) -> None:
    """Import what the runs had to, so that the next ones need not, and are not killed while they do."""
    for path in (place / "modules" for place in places):
        for name in path.read_text().split() if path.exists() else ():
            if name not in sys.modules:
                with contextlib.suppress(Exception):
                    importlib.import_module(name)


def _serve() -> None:
    for name in EARLY:
        importlib.import_module(name)
    for line in sys.stdin:
        print(json.dumps(vars(_answer(**json.loads(line)))), flush=True)


if __name__ == "__main__":
    _serve()
