"""How wide a table may be, and how fine a category: the time of `doctor`, of `draw --by` and of `estimate`.

`python -m benchmarks.limits` writes benchmarks/results/limits.md; other numbers of columns and levels may be
given, as in `python -m benchmarks.limits 500,2000 1000,10000`, or "" for none: the page is written in pieces.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

RESULT = Path(__file__).parent / "results" / "limits.md"
ROWS, UNITS_PER_LEVEL, LABELS_PER_LEVEL = 1_000, 10, 5
COMMAND = [sys.executable, "-m", "stratal"]


def wide(columns: int) -> pa.Table:
    """Return a table of numbers and texts by turns."""
    random = np.random.default_rng(0)
    kinds = (
        lambda: random.random(ROWS),
        lambda: random.integers(0, 5, ROWS),
        lambda: random.choice(["a", "b", "c"], ROWS),
        lambda: 10 * random.random(ROWS),
    )
    return pa.table({f"c{number}": kinds[number % 4]() for number in range(columns)})


def fine(levels: int) -> pa.Table:
    """Return units of a category of many levels."""
    random = np.random.default_rng(0)
    units = levels * UNITS_PER_LEVEL
    level = np.array([f"k{number}" for number in random.integers(0, levels, units)])
    return pa.table({"id": np.arange(units), "score": random.random(units), "kind": level})


def seconds(*words: object) -> str:
    """Return the processor's time of a command, and the clock's, which a busy machine lengthens more."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([*COMMAND, *map(str, words)], check=True, stdout=subprocess.DEVNULL)
    after, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - start
    return f"{after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime:.1f} ({clock:.1f})"


def load() -> str:
    """Return the load of the machine."""
    return f"{os.getloadavg()[0]:.1f}"


def inspected(folder: Path, columns: int) -> str:
    """Return a line of the table of `doctor`."""
    table = wide(columns)
    parquet, text, lines = (folder / f"wide.{ending}" for ending in ("parquet", "csv", "jsonl"))
    pyarrow.parquet.write_table(table, parquet)
    pyarrow.csv.write_csv(table, text)
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    with lines.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(dict(zip(table.column_names, row, strict=True))) + "\n" for row in rows)
    taken = [seconds("doctor", path) for path in (parquet, text, lines)]
    return f"| {columns:,} | {' | '.join(taken)} | {load()} |"


def drawn(folder: Path, levels: int) -> str:
    """Return a line of the table of `draw`."""
    file, output = folder / "fine.parquet", folder / f"drawn_{levels}"
    pyarrow.parquet.write_table(fine(levels), file)
    budget = levels * LABELS_PER_LEVEL
    asked = ["--id", "id", "--proxy", "score", "--by", "kind", "--budget", budget, "--output", output]
    drawing, labels = seconds("draw", file, *asked), output / "to_label.csv"
    ids = [line.partition(",")[0] for line in labels.read_text(encoding="utf-8").splitlines()[1:]]
    answers = "".join(f"{unit},{number % 5 > 0:d}\n" for number, unit in enumerate(ids))
    labels.write_text(f"id,label\n{answers}", encoding="utf-8")
    estimating = seconds("estimate", output / "sample.parquet", labels, "--by", "kind")
    return f"| {levels:,} | {levels * UNITS_PER_LEVEL:,} | {budget:,} | {drawing} | {estimating} | {load()} |"


def with_earlier(lines: list[str], heading: str) -> list[str]:
    """Return a table's lines with those of the page that were measured earlier and not now, in order."""
    page = RESULT.read_text(encoding="utf-8") if RESULT.exists() else ""
    earlier = page.partition(heading)[2].partition("## ")[0].splitlines()
    numbered = {int(line.split("|")[1].replace(",", "")): line for line in earlier if line[2:3].isdigit()}
    numbered |= {int(line.split("|")[1].replace(",", "")): line for line in lines}
    return [numbered[number] for number in sorted(numbered)]


def main(columns: str = "500,2000,4000", levels: str = "1000,10000,100000") -> None:
    """Measure, and write the page; numbers that are not asked for keep their line."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(
            [inspected(folder, int(number)) for number in columns.split(",") if number],
            [drawn(folder, int(number)) for number in levels.split(",") if number],
        )


def write(wide_lines: list[str], fine_lines: list[str]) -> None:
    """Write the page."""
    inspecting, drawing = (
        f"## `stratal doctor`, {ROWS:,} rows",
        "## `stratal draw --by`, and `stratal estimate --by` with all labels",
    )
    lines = [
        "# Wide tables and fine categories",
        "",
        "`python -m benchmarks.limits`, in pieces: seconds of the processor for the whole command, its start"
        " included, and in brackets those by the clock; beside them the load of the machine (two cores) once"
        " they were measured, the command's own included: above 2, the clock tells of others too. A line"
        " without brackets is of an earlier measurement.",
        "",
        inspecting,
        "",
        "| columns | Parquet, s | CSV, s | JSON Lines, s | load |",
        "|---|---|---|---|---|",
        *with_earlier(wide_lines, inspecting),
        "",
        drawing,
        "",
        "| levels | units | labels | draw, s | estimate, s | load |",
        "|---|---|---|---|---|---|",
        *with_earlier(fine_lines, drawing),
    ]
    RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
