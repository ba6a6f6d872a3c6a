"""Write ppi_python_mean.json: means and 90 % intervals of ppi-python 0.2.3 (needs an environment with it)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np


def main() -> None:
    from ppi_py import ppi_mean_ci, ppi_mean_pointestimate

    rng = np.random.default_rng(20261120)
    cases = []
    for name, n, m, slope in (
        ("binary", 30, 200, 1.0),
        ("graded", 50, 120, 0.5),
        ("negative", 25, 100, -1.0),
    ):
        truth, noise = rng.random(n + m), rng.random(n + m)
        proxy = np.round(truth if slope > 0 else 1 - truth, 6)
        y = (noise < truth).astype(float) if name != "graded" else np.round(slope * truth + 0.3 * noise, 6)
        for lam in (None, 0.0, 0.4, 1.0):
            mean = ppi_mean_pointestimate(y[:n], proxy[:n], proxy[n:], lam=lam)
            interval = ppi_mean_ci(y[:n], proxy[:n], proxy[n:], alpha=0.1, lam=lam)
            cases.append(
                {
                    "name": f"{name}, λ {'fitted' if lam is None else lam}",
                    "y": y[:n].tolist(),
                    "proxy": proxy[:n].tolist(),
                    "unlabelled": proxy[n:].tolist(),
                    "lam": lam,
                    "mean": float(np.squeeze(mean)),
                    "interval_90": [float(np.squeeze(bound)) for bound in interval],
                }
            )
    text = json.dumps({"source": "ppi-python 0.2.3", "cases": cases}, indent=0)
    (Path(__file__).parent / "ppi_python_mean.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
