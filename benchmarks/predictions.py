"""Real predictions whose outcomes are all known: files in the folder `shared` beside the project."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from stratal.arrays import FloatArray

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
BINARY = (
    "cifar10_vgg", "birds_resnet50", "galaxies", "forest", "nq301_llmjudge", "gsm8k_models",
    "imagenet_golden_crowd",
)  # fmt: skip
"""Files of outcomes 0 and 1."""

GRADED = ("pandalm_pairwise", "frank_factuality")
"""Files of outcomes between 0 and 1."""


def load(name: str, directory: Path = DATA) -> tuple[FloatArray, FloatArray]:
    """Return outcome and proxy (N,) of a file."""
    table = pq.read_table(directory / f"{name}.parquet", columns=["z", "proxy"])
    z, proxy = (table[column].to_numpy().astype(np.float64) for column in ("z", "proxy"))
    return z, proxy
