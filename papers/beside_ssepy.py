"""Beside ssepy, the package of Fogliato et al. (2024): the same estimators on the same files.

    python -m papers.beside_ssepy --peer PYTHON --data DIR [--page docs/papers/ssepy.md]

PYTHON is an interpreter that has ssepy 0.1.1 (it needs NumPy below 2, hence one of its own).
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import click
import numpy as np

from papers.files import prediction_files
from papers.loaders import Predictions
from papers.page import markdown_table
from papers.project_pages import MARK
from papers.sources import simulated
from stratal.population.population import Population
from stratal.simulation import SimulatedDesign
from stratal.simulation.summaries import mean_and_error

FILES = ("birds_resnet50", "cifar10_vgg", "galaxies", "forest")
LABELS = 100

ARMS = {
    "SRS, DF": ("", "df"),
    "SSRS proportional, HT": ("proportional", "ht"),
    "SSRS proportional, DF": ("proportional", "df"),
    "SSRS Neyman, HT": ("neyman", "ht"),
}
"""Arm → allocation, none for a simple random sample, and estimator, as ssepy calls them."""

OURS = {"ht": "horvitz-thompson", "df": "difference"}

PEER = """
import json, random, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
from sklearn.cluster import KMeans
from ssepy import ModelPerformanceEvaluator
data = np.load(sys.argv[1])
proxy, z, n, replicates = data["proxy"], data["z"], int(sys.argv[2]), int(sys.argv[3])
random.seed(0); np.random.seed(0)
found = {}
for name, (rule, estimator) in json.loads(sys.argv[4]).items():
    evaluator = ModelPerformanceEvaluator(Yh=proxy, budget=n)
    errors = []
    if rule:
        evaluator.stratify_data(KMeans(10, n_init=10, random_state=0), X=proxy[:, None])
        evaluator.allocate_budget(rule)
    for _ in range(replicates):
        drawn = evaluator.sample("ssrs" if rule else "srs")
        value = evaluator.compute_estimate(z[drawn], estimator=estimator)[0]
        errors.append(float(np.ravel(value)[0] - z.mean()))
    found[name] = errors
print(json.dumps(found))
"""


def side_by_side(
    found: Predictions, peer: Path, replicates: int, seed: int
) -> dict[str, tuple[tuple[float, float], tuple[float, float]]]:
    """Return each arm's MSE over that of HT under SRS, ours and ssepy's, with Monte Carlo errors.

    Parameters
    ----------
    found : Predictions
    peer : path
        The interpreter that has ssepy.
    replicates : int
        Of ssepy; ours takes ten times as many.
    seed : int
    """
    random = (1 - LABELS / len(found.z)) / LABELS * found.z.var(ddof=1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(path, proxy=found.proxy, z=found.z)
        words = [str(peer), "-c", PEER, str(path), str(LABELS), str(replicates), json.dumps(ARMS)]
        theirs = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    result = {}
    for name, (rule, estimator) in ARMS.items():
        even = SimulatedDesign(stratification="k-means", n_strata=10, minimum=1)
        design = replace(even, allocation=rule) if rule else SimulatedDesign()
        population = Population.from_arrays(proxy=found.proxy)
        row = simulated(population, found.z, design, LABELS, 10 * replicates, seed, estimator=OURS[estimator])
        ours = row["mse"] / random, row["mse_se"] / random
        result[name] = ours, mean_and_error(np.array(theirs[name]) ** 2 / random)
    return result


@click.command()
@click.option("--peer", type=Path, required=True, help="Python interpreter that has ssepy 0.1.1.")
@click.option("--data", type=Path, required=True, help="Directory of files with columns z and proxy.")
@click.option("--page", type=Path, help="Page to write.")
@click.option("--replicates", default=1000)
@click.option("--seed", default=0)
def main(peer: Path, data: Path, page: Path | None, replicates: int, seed: int) -> None:
    """Write the table of relative errors, ours and ssepy's."""
    rows = []
    for found in prediction_files(data):
        if found.name not in FILES:
            continue
        for name, (ours, theirs) in side_by_side(found, peer, replicates, seed).items():
            noise = float(np.hypot(ours[1], theirs[1]))
            gap = (ours[0] - theirs[0]) / noise
            cells = [f"{v:.3f} ± {e:.3f}" for v, e in (ours, theirs)]
            rows.append([found.name, name, *cells, f"{gap:+.1f}", "yes" if abs(gap) < 3 else "**no**"])
    table = markdown_table(
        ["file", "arm", "stratal", "ssepy 0.1.1", "difference in errors", "within noise"], rows
    )
    words = (
        f"n = {LABELS}, ten k-means strata, {replicates:,} draws of ssepy and {10 * replicates:,} of ours; "
        "± is the Monte Carlo standard error."
    )
    text = f"{MARK}\n\n{words}\n\n{table}\n"
    if page is not None:
        head = page.read_text(encoding="utf-8").split(MARK)[0].rstrip()
        page.write_text(f"{head}\n\n{text}", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
