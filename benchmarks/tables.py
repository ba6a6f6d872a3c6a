"""Plan and draw from a Parquet table against the bare engine queries of the same run.

    python benchmarks/tables.py --units 1e5,1e6,1e7,1e8 --directory /tmp/tables
    python benchmarks/tables.py --units 1e9 --directory /tmp/tables --remove    # 14 GB, and as much to spill
    python benchmarks/tables.py --units 1e7 --engine spark --directory /tmp/tables

Each side runs in a process of its own, so that its peak memory is its own. The bare queries are the least
that anybody would ask: the proxy's extent, one binned group-by, duplicate ids, one scan for the MD5 keys.
Every case that was measured is kept in `results/tables.json`, from which the page is written.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "tables.md"
MEASURED = RESULTS.with_suffix(".json")
THREADS = 2
BUDGET = 1000
SEED = 7
CHUNK = 2_000_000
PART = 100_000_000
"""Rows of a file; what is larger is a directory of such parts."""

ID_STEP = 2_654_435_761
"""A prime: multiples of it modulo N visit every id once, far from in order."""

MEMORY = "peak memory"
PROCESSOR = "processor time"
"""Seconds of all threads of a side's process: other work on the machine changes it little."""

LOW, HIGH = 0.0, 1.0
SCALE = 2**30 / (HIGH - LOW)

Figures = dict[str, float]


# ---- the table


def table_path(directory: Path, units: int, text_ids: bool) -> Path:
    """Return the file, or the directory of parts, that has this many rows; written where it is not there."""
    name = f"units-{units}{'-text' if text_ids else ''}"
    if units <= PART:
        path = directory / f"{name}.parquet"
        generate((path, 0, units, units, text_ids))
        return path
    folder = directory / name
    folder.mkdir(exist_ok=True)
    parts = [
        (folder / f"part-{number:03}.parquet", start, min(units, start + PART), units, text_ids)
        for number, start in enumerate(range(0, units, PART))
    ]
    with Pool(THREADS) as pool:
        pool.map(generate, parts, chunksize=1)
    return folder


def generate(part: tuple[Path, int, int, int, bool]) -> None:
    """Write a part's ids, in a scattered order, and skewed proxies, in chunks; once."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path, start, stop, units, text_ids = part
    if path.exists():
        return
    rng = np.random.default_rng([SEED, start])
    schema = pa.schema([("id", pa.string() if text_ids else pa.int64()), ("proxy", pa.float64())])
    partial = path.with_suffix(".partial")
    with pq.ParquetWriter(partial, schema, use_dictionary=False) as writer:
        for first in range(start, stop, CHUNK):
            rows = np.arange(first, min(stop, first + CHUNK), dtype=np.int64)
            ids = rows * ID_STEP % units if units % ID_STEP else rows
            texts = np.char.add("item-", ids.astype(np.str_)) if text_ids else ids
            skewed = np.sqrt(np.sqrt(rng.random(len(rows))))  # Beta(4, 1)
            writer.write_table(
                pa.table({"id": texts, "proxy": skewed}, schema=schema), row_group_size=1 << 20
            )
    partial.rename(path)


# ---- both sides


def timed(steps: dict[str, Callable[[], Any]]) -> Figures:
    """Run the steps in order; return seconds by step."""
    seconds = {}
    used = time.process_time()
    for name, step in steps.items():
        start = time.perf_counter()
        step()
        seconds[name] = time.perf_counter() - start
    return seconds | {PROCESSOR: time.process_time() - used}


AT_ONCE = 200_000_000


def bare_duckdb(path: Path, directory: Path) -> Figures:
    """Run the bare queries with the settings that stratal gives to DuckDB."""
    import duckdb
    from pyarrow.parquet import ParquetFile

    from stratal.tables.engine import memory_limit

    connection = duckdb.connect(
        config={
            "threads": THREADS,
            "memory_limit": memory_limit(THREADS),
            "temp_directory": str(directory / "spill"),
        }
    )
    rows = f"read_parquet('{path / '*.parquet' if path.is_dir() else path}')"
    position = f"CAST(floor((proxy - {LOW}) * {SCALE}) AS BIGINT) >> 16"

    def ask(query: str) -> Callable[[], Any]:
        return lambda: connection.execute(query).fetchall()

    units = sum(
        ParquetFile(part).metadata.num_rows for part in ([path] if path.is_file() else path.iterdir())
    )
    return timed(_bare(ask, rows, position, "VARCHAR", -(-units // AT_ONCE))) | {MEMORY: own_peak()}


def bare_spark(path: Path, directory: Path) -> Figures:
    """Run the bare queries in a session as stratal opens them."""
    session = spark()
    session.sql("SELECT count(*) FROM range(200)").collect()
    session.read.parquet(f"file:{path}").createOrReplaceTempView("units")
    position = f"shiftright(CAST(floor((proxy - {LOW}) * {SCALE}) AS BIGINT), 16)"

    def ask(query: str) -> Callable[[], Any]:
        return lambda: session.sql(query).collect()

    return timed(_bare(ask, "units", position, "STRING")) | {MEMORY: spark_peak()}


def _bare(
    ask: Callable[[str], Callable[[], Any]], rows: str, position: str, text: str, parts: int = 1
) -> dict[str, Callable[[], Any]]:
    """Return the bare queries; in one part the ids of more than `AT_ONCE` rows do not fit the memory."""

    def duplicates() -> None:
        for part in range(parts):
            some = f" WHERE id % {parts} = {part}" if parts > 1 else ""
            twice = f"SELECT id FROM {rows}{some} GROUP BY id HAVING count(*) > 1"
            ask(f"SELECT count(*) FROM ({twice})")()

    return {
        "minimum, maximum": ask(f"SELECT count(*), min(proxy), max(proxy) FROM {rows}"),
        "binned group-by": ask(f"SELECT {position} AS bin, count(*) FROM {rows} GROUP BY 1"),
        "duplicate ids": duplicates,
        "MD5 keys": ask(
            f"SELECT count(*) FROM {rows} WHERE md5(concat('{SEED}:', CAST(id AS {text}))) <= '0000ffff'"
        ),
    }


def stratal_duckdb(path: Path, directory: Path) -> Figures:
    """Read and check, plan, draw."""
    import pyarrow as pa

    os.environ["TMPDIR"] = str(directory)
    warm_up(pa.table({"id": range(200), "proxy": np.linspace(0, 1, 200)}))
    return timed(_ours(path, threads=THREADS)) | {MEMORY: own_peak()}


def stratal_spark(path: Path, directory: Path) -> Figures:
    """Do the same on Spark, which is started before."""
    warm_up(spark().sql("SELECT id, id / 200 AS proxy FROM range(200)"))
    return timed(_ours(path, engine="spark")) | {MEMORY: spark_peak()}


def warm_up(table: Any) -> None:
    """Plan and draw from a table of 200 rows: what is loaded once in a process is not measured."""
    import stratal

    stratal.plan(stratal.Population.from_table(table, proxy="proxy"), 40).draw(seed=SEED)


def _ours(path: Path, **how: Any) -> dict[str, Callable[[], Any]]:
    import stratal
    from stratal.population import Population

    state: dict[str, Any] = {}

    def read() -> None:
        state["population"] = Population.read(path, proxy="proxy", directory=path.is_dir(), **how)

    def plan() -> None:
        state["plan"] = stratal.plan(state["population"], budget=BUDGET)

    def draw() -> None:
        assert state["plan"].draw(seed=SEED).size == BUDGET

    return {"read and check": read, "plan": plan, "draw": draw}


def own_peak() -> float:
    """Return this process's peak memory in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def spark() -> Any:
    """Start Spark in this process; return a session."""
    from stratal.tables.spark_files import session_at

    return session_at(f"local[{THREADS}]")


def spark_peak() -> float:
    """Return the peak memory of this process and of Spark's in GiB."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    status = Path(f"/proc/{gateway.proc.pid}/status").read_text()
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return own_peak() + int(peak.split()[1]) / 2**20


SIDES: dict[str, Callable[[Path, Path], Figures]] = {
    f"{name} {engine}": run
    for engine, runs in {
        "duckdb": {"bare": bare_duckdb, "stratal": stratal_duckdb},
        "spark": {"bare": bare_spark, "stratal": stratal_spark},
    }.items()
    for name, run in runs.items()
}


def in_process(side: str, path: Path, directory: Path) -> Figures:
    """Run one side in a fresh process and return its figures."""
    command = [sys.executable, __file__, "--side", side, "--file", str(path), "--directory", str(directory)]
    result = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    figures: Figures = json.loads(result.stdout.splitlines()[-1])
    return figures


# ---- the page


def total(figures: Figures) -> float:
    """Return the seconds of all steps."""
    return sum(value for name, value in figures.items() if name not in (MEMORY, PROCESSOR))


def ratio(pair: dict[str, Figures]) -> float:
    """Return stratal's seconds over the bare queries'."""
    return total(pair["stratal"]) / total(pair["bare"])


def processor_ratio(pair: dict[str, Figures]) -> str:
    """Return stratal's processor time over the bare queries'; nothing where it was not measured."""
    used = [pair[side].get(PROCESSOR) for side in ("stratal", "bare")]
    return "–" if None in used else f"{used[0] / used[1]:.2f}"  # type: ignore[operator]


def keep(case: dict[str, Any]) -> list[dict[str, Any]]:
    """Keep a case, in place of the same one measured before; return all."""
    kept = json.loads(MEASURED.read_text()) if MEASURED.exists() else []
    names = ("engine", "ids", "units")
    cases = [each for each in kept if any(each[name] != case[name] for name in names)] + [case]
    cases.sort(key=lambda each: [each[name] for name in names])
    MEASURED.parent.mkdir(exist_ok=True)
    MEASURED.write_text(json.dumps(cases, indent=1) + "\n")
    return cases


def page(cases: list[dict[str, Any]]) -> str:
    """Return the page: one line for each case, then its steps."""
    lines = [
        "# Tables: plan and draw",
        "",
        f"Reading and checking a Parquet table, planning {BUDGET} labels and drawing them, beside the bare",
        "queries of the same run on the same engine: the extent, one binned group-by, duplicate ids, a scan",
        f"for the MD5 keys. {THREADS} threads; of several rounds the median by ratio. At most 1.5 is asked.",
        "",
        "| engine | ids | N | bare, s | stratal, s | ratio | of processor time | s per 10⁶ rows | peak, GiB "
        "| bare peak, GiB |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for case in cases:
        pair = _median(case)
        bare, ours = pair["bare"], pair["stratal"]
        per_million = total(ours) / case["units"] * 1e6
        lines.append(
            f"| {case['engine']} | {case['ids']} | {_amount(case['units'])} | {total(bare):.1f} "
            f"| {total(ours):.1f} | {ratio(pair):.2f} | {processor_ratio(pair)} | {per_million:.2f} "
            f"| {ours[MEMORY]:.2f} | {bare[MEMORY]:.2f} |"
        )
    for case in cases:
        lines += ["", *_steps(case)]
    return "\n".join(lines) + "\n"


def _steps(case: dict[str, Any]) -> list[str]:
    """Return the lines on one case, with its command and how busy the machine was."""
    pair = _median(case)
    ratios = ", ".join(f"{value:.2f}" for value in sorted(map(ratio, case["rounds"])))
    return [
        f"## {case['engine']}, N = {_amount(case['units'])}, ids are {case['ids']}",
        "",
        f"`{case['command']}`, {case['date']}, {case['machine']}; ratio of each round: {ratios}. Load of the "
        f"machine's {case['cores']} cores before and after: {case['load'][0]:.1f}, {case['load'][1]:.1f}.",
        *filter(None, [case.get("note")]),
        "",
        "| side | step | seconds |",
        "|---|---|---|",
        *(
            f"| {side} | {name} | {value:.1f} |"
            for side in ("bare", "stratal")
            for name, value in pair[side].items()
            if name not in (MEMORY, PROCESSOR)
        ),
    ]


def _median(case: dict[str, Any]) -> dict[str, Figures]:
    rounds: list[dict[str, Figures]] = sorted(case["rounds"], key=ratio)
    return rounds[len(rounds) // 2]


def _amount(units: int) -> str:
    return f"{units:.0e}".replace("e+0", "e")


# ---- the program


def measure(units: int, options: argparse.Namespace) -> None:
    """Measure one case, and write the page anew."""
    path = table_path(options.directory, units, options.text_ids)
    before, rounds = os.getloadavg()[0], []
    for number in range(options.rounds):
        order = ("bare", "stratal") if number % 2 == 0 else ("stratal", "bare")
        rounds.append(
            {side: in_process(f"{side} {options.engine}", path, options.directory) for side in order}
        )
        print(json.dumps(rounds[-1]), flush=True)
    words = f"--units {_amount(units)} --rounds {options.rounds} --engine {options.engine}"
    words += " --text-ids" if options.text_ids else ""
    case = {
        "engine": options.engine,
        "ids": "text" if options.text_ids else "integers",
        "units": units,
        "command": f"python benchmarks/tables.py {words} --directory DIR",
        "date": time.strftime("%Y-%m-%d"),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "load": [before, os.getloadavg()[0]],
        "rounds": rounds,
    }
    RESULTS.write_text(page(keep(case)))
    if options.remove:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--units", default="1e8", help="numbers of rows: N,…")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--engine", choices=("duckdb", "spark"), default="duckdb")
    parser.add_argument("--text-ids", action="store_true")
    parser.add_argument("--directory", type=Path, required=True, help="where the table is written and kept")
    parser.add_argument("--remove", action="store_true", help="remove the table in the end")
    parser.add_argument("--side", choices=tuple(SIDES), help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side is not None:
        print(json.dumps(SIDES[options.side](options.file, options.directory)))
        return
    options.directory.mkdir(parents=True, exist_ok=True)
    for text in options.units.split(","):
        measure(int(float(text)), options)


if __name__ == "__main__":
    main()
