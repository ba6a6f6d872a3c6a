"""Time and memory against units, labels, strata, estimands and models, as lines with slopes.

    python -m benchmarks.growth [--sizes 1e4,1e5,1e6,1e7,1e8] [--repeats 3] [--gather]

Arrays are measured here: a fresh process for each size plans for a mean, draws and estimates with its
interval, after a small run that loads what it imports, on as many threads as it finds. Tables are those of
benchmarks/tables.py, and what grows after the draw is that of benchmarks/after_draw.py, as they were last
measured. A slope is that of a line through the logarithms, 1 where time is proportional. With --gather
nothing is measured. Writes benchmarks/results/growth.json and growth.md; docs/figures.py draws them.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.helpers import circumstances
from benchmarks.main_job import measure
from benchmarks.tables import MEMORY, total

RESULTS = Path(__file__).parent / "results"
LINES = RESULTS / "growth.json"
BUDGET = 1_000

ARRAYS = """
import json, sys, time
import numpy as np
import stratal

def memory(name):
    status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
    return int(status[name].split()[0]) / 2**20

size, budget = int(sys.argv[1]), int(sys.argv[2])
random = np.random.default_rng(0)
proxy = np.sqrt(np.sqrt(random.random(size)))
few = stratal.Population.from_arrays(proxy=proxy[:5_000])
stratal.estimate(stratal.plan(few, 50).draw(seed=0), np.ones(50)).confidence_interval()
open("/proc/self/clear_refs", "w").write("5")  # the peak so far is forgotten
before, start, busy = memory("VmRSS"), time.perf_counter(), time.process_time()
population = stratal.Population.from_arrays(proxy=proxy)
sample = stratal.plan(population, budget).draw(seed=1)
right = (random.random(sample.size) < sample.proxies[:, 0]).astype(float)
stratal.estimate(sample, right).confidence_interval()
seconds, busy = time.perf_counter() - start, time.process_time() - busy
print(json.dumps({"seconds": seconds, "busy": busy, "memory": memory("VmHWM") - before}))
"""


def slope(x: list[float], y: list[float]) -> float:
    """Return the slope of a straight line through the logarithms.

    Examples
    --------
    >>> round(slope([1.0, 10.0, 100.0], [2.0, 20.0, 200.0]), 9)
    1.0
    """
    return float(np.polyfit(np.log(x), np.log(np.maximum(y, 1e-9)), 1)[0])


def of_arrays(sizes: list[int], repeats: int) -> dict[str, list[float]]:
    """Return seconds (the clock's and the processor's) and GiB of own memory at each size: the medians."""
    found: dict[str, list[float]] = {"N": [], "seconds": [], "busy": [], "memory": []}
    for size in sizes:
        runs = [measure(sys.executable, ARRAYS, size, min(BUDGET, size // 10)) for _ in range(repeats)]
        found["N"].append(size)
        for name in ("seconds", "busy", "memory"):
            found[name].append(statistics.median(run[name] for run in runs))
        print(size, {name: values[-1] for name, values in found.items()}, flush=True)
    return found


def of_tables(engine: str) -> dict[str, list[float]]:
    """Return seconds and peak memory in GiB of the tables that were measured with an engine."""
    cases = json.loads((RESULTS / "tables.json").read_text())
    found: dict[str, list[float]] = {"N": [], "seconds": [], "memory": []}
    for case in sorted(cases, key=lambda each: each["units"]):
        if case["engine"] == engine and case["ids"] == "integers":
            ours = [pair["stratal"] for pair in case["rounds"]]
            found["N"].append(case["units"])
            found["seconds"].append(statistics.median(map(total, ours)))
            found["memory"].append(statistics.median(each[MEMORY] for each in ours))
    return found


def after_the_draw() -> dict[str, dict[str, list[float]]]:
    """Return what grows after the draw: its sizes and milliseconds, as its own page has them."""
    text = (RESULTS / "after_draw.md").read_text()
    found = {}
    for what, cells in re.findall(r"^\| ([^|]+) \| (\d[^|]*: [^|]*) \| [-\d.]+ \|$", text, re.MULTILINE):
        pairs = [pair.split(": ") for pair in re.split(r", (?=[\d,]+: )", cells)]
        found[what] = {
            "at": [float(size.replace(",", "")) for size, _ in pairs],
            "milliseconds": [float(time) for _, time in pairs],
        }
    return found


def page(lines: dict[str, Any]) -> str:
    """Return the page of all lines."""
    rows = [
        "| what | N | time, s | time of the processor, s | memory, GiB | slope of time | from 10⁷ on |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, own in lines["units"].items():
        large = [row for row, size in enumerate(own["N"]) if size >= 1e7]
        late = {what: [own[what][row] for row in large] for what in ("N", "seconds")}
        cells = (
            ", ".join(f"{value:.0e}".replace("e+0", "e") for value in own["N"]),
            ", ".join(f"{value:.3g}" for value in own["seconds"]),
            ", ".join(f"{value:.3g}" for value in own.get("busy", ())),
            ", ".join(f"{value:.2g}" for value in own["memory"]),
            *(
                f"{slope(part['N'], part['seconds']):.2f}" if len(part["N"]) > 1 else ""
                for part in (own, late)
            ),
        )
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    after = ["| what grows | at | ms | slope |", "|---|---|---|---|"]
    for name, own in lines["after the draw"].items():
        at = ", ".join(f"{value:,.0f}" for value in own["at"])
        times = ", ".join(f"{value:g}" for value in own["milliseconds"])
        after.append(f"| {name} | {at} | {times} | {slope(own['at'], own['milliseconds']):.2f} |")
    return "\n".join(
        [
            "# Growth",
            "",
            f"`python -m benchmarks.growth`, {lines['measured']}",
            "",
            f"Time by the clock and memory of a plan for {BUDGET:,} labels, the draw and, of arrays, the",
            "estimate with its interval. The time of the processor, of all threads, depends less on other",
            "processes. Memory of arrays is what comes to the column that is given, that of",
            "tables the peak of the process. Medians of several runs.",
            "",
            *rows,
            "",
            "After the draw nothing has length N: milliseconds of one processor at N = 10⁵.",
            "",
            *after,
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="1e4,1e5,1e6,1e7,1e8")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--gather", action="store_true", help="measure nothing")
    options = parser.parse_args()
    lines = json.loads(LINES.read_text()) if options.gather else {"units": {}}
    if not options.gather:
        sizes = [int(float(text)) for text in options.sizes.split(",")]
        lines["units"]["arrays"] = of_arrays(sizes, options.repeats)
        lines["measured"] = circumstances()
    for engine, name in {"duckdb": "tables, DuckDB", "spark": "tables, Spark"}.items():
        lines["units"][name] = of_tables(engine)
    lines["after the draw"] = after_the_draw()
    LINES.write_text(json.dumps(lines, indent=1) + "\n")
    (RESULTS / "growth.md").write_text(page(lines))
    print(page(lines))


if __name__ == "__main__":
    main()
