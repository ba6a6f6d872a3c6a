"""Helpers of the benchmarks: the data of real predictions, the head of a page, a table of latencies."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import scipy

from stratal.arrays import FloatArray

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
"""Real predictions whose outcomes are all known, in the folder `shared` next to the project."""

BINARY = (
    "cifar10_vgg", "birds_resnet50", "galaxies", "forest", "nq301_llmjudge", "gsm8k_models",
    "imagenet_golden_crowd",
)  # fmt: skip
"""Files of outcomes 0 and 1."""

GRADED = ("pandalm_pairwise", "frank_factuality")
"""Files of outcomes between 0 and 1."""

_START = time.time(), os.getloadavg()[0]


def load(name: str, directory: Path = DATA) -> tuple[FloatArray, FloatArray]:
    """Return outcome and proxy (N,) of a file."""
    table = pq.read_table(directory / f"{name}.parquet", columns=["z", "proxy"])
    outcome = table["z"].to_numpy().astype(np.float64)
    proxy = table["proxy"].to_numpy().astype(np.float64)
    return outcome, proxy


def circumstances() -> str:
    """Return date, versions, elapsed time since the program started, and load, for the head of a page."""
    start, load_at_start = _START
    return (
        f"{time.strftime('%Y-%m-%d')}, Python {platform.python_version()}, NumPy {np.__version__}, SciPy "
        f"{scipy.__version__}, {os.cpu_count()} cores; {time.time() - start:.0f} s, load of the machine "
        f"{load_at_start:.1f} before and {os.getloadavg()[0]:.1f} after."
    )


def latency_table(header: str, seconds: dict[str, list[float]]) -> list[str]:
    """Return the lines of a table of latencies, one row per kind of call."""
    columns = f"| {header} | calls | median, ms | 99th percentile, ms | longest, ms |"
    lines = [columns, "|---|---|---|---|---|"]
    for name, durations in seconds.items():
        ms = 1000 * np.array(durations)
        lines.append(
            f"| {name} | {len(ms)} | {np.median(ms):.1f} | {np.quantile(ms, 0.99):.1f} | {ms.max():.1f} |"
        )
    return lines
