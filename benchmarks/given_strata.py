"""Tables from elsewhere: groups named by the user, a judge on every unit, and labels of some.

    python -m benchmarks.given_strata [--draws 400] [--peer PYTHON] [--output FILE]

Three groups of 1,500 units with rates .4, .6 and .8, a judge that agrees with people in 88 % of the
units, and 100 labels at random in each group. `Sample.from_labelled` gets the table of labels, the
strata and the population; intervals are those of `auto` at 95 %, of the mean and of each group.
`--peer` is a Python 3.12 with glide-py 0.11 (or 0.10): its `StratifiedPPIMeanEstimator` gets the
same labels in the same run. Coverage is of the mean over the population for stratal, and of the
rate that the units were drawn with for the peer, which has no finite population.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import stratal
from stratal.arrays import AnyArray, FloatArray

OUTPUT = Path(__file__).resolve().parent / "results" / "given_strata.md"
GROUPS = ("code", "maths", "prose")
RATES = (0.4, 0.6, 0.8)
UNITS = 1500
LABELS = 100
ACCURACY = 0.88

PEER = """
import json, sys
import numpy as np
from importlib.metadata import version
import glide.estimators as estimators
name = "StratifiedPPIMeanEstimator"
data, found = np.load(sys.argv[1]), []
estimator = getattr(estimators, name)()
for y, x, rest, own, other in zip(data["y"], data["x"], data["rest"], data["own"], data["other"]):
    labels = np.concatenate([y, np.full(len(rest), np.nan)])
    proxies, groups = np.concatenate([x, rest]), np.concatenate([own, other])
    result = estimator.estimate(labels, proxies, groups, confidence_level=0.95)
    interval = result.confidence_interval
    found.append([float(interval.lower_bound), float(interval.upper_bound)])
print(json.dumps({"version": version("glide-py"), "ends": found}))
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draw:
    """Outcome, judge and group (N,) of a population, and the rows of the labelled units (n,)."""

    outcome: FloatArray
    judge: FloatArray
    group: AnyArray
    rows: AnyArray


def draw(seed: int) -> Draw:
    """Draw a population and its labelled units."""
    rng = np.random.default_rng(seed)
    group = np.repeat(GROUPS, UNITS)
    outcome = (rng.random(len(group)) < np.repeat(RATES, UNITS)).astype(np.float64)
    judge = np.where(rng.random(len(group)) < ACCURACY, outcome, 1.0 - outcome)
    rows = [rng.choice(np.flatnonzero(group == name), LABELS, replace=False) for name in GROUPS]
    return Draw(outcome=outcome, judge=judge, group=group, rows=np.concatenate(rows))


def ends(drawn: Draw) -> dict[str, list[tuple[float, float, float]]]:
    """Return low, high and true value of the mean, and of each group, with the judge and without."""
    table: dict[str, Any] = {"id": np.arange(len(drawn.group)), "group": drawn.group, "judge": drawn.judge}
    labelled = {name: values[drawn.rows] for name, values in table.items()}
    labelled["right"] = drawn.outcome[drawn.rows]
    sample, labels = stratal.Sample.from_labelled(
        labelled, value="right", stratum="group", proxy="judge", population=table
    )
    found: dict[str, list[tuple[float, float, float]]] = {}
    for way, estimator in (("auto", "auto"), ("labels alone", "horvitz-thompson")):
        mean = stratal.estimate(sample, labels, estimator=estimator).confidence_interval()
        found[f"mean, {way}"] = [(mean.low, mean.high, float(drawn.outcome.mean()))]
        rows = stratal.estimate(sample, labels, by="group", estimator=estimator)
        found[f"groups, {way}"] = []
        for row in rows:
            interval = row.confidence_interval()
            truth = float(drawn.outcome[drawn.group == row.label["domain"]].mean())
            found[f"groups, {way}"].append((interval.low, interval.high, truth))
    return found


def of_peer(python: str, draws: list[Draw]) -> tuple[str, FloatArray]:
    """Return the peer's version and its limits (R, 2) for the same labels."""
    codes = [np.searchsorted(GROUPS, drawn.group) for drawn in draws]
    others = [np.setdiff1d(np.arange(len(drawn.group)), drawn.rows) for drawn in draws]
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "draws.npz"
        np.savez(
            data,
            y=[drawn.outcome[drawn.rows] for drawn in draws],
            x=[drawn.judge[drawn.rows] for drawn in draws],
            rest=[drawn.judge[rows] for drawn, rows in zip(draws, others, strict=True)],
            own=[code[drawn.rows] for code, drawn in zip(codes, draws, strict=True)],
            other=[code[rows] for code, rows in zip(codes, others, strict=True)],
        )
        program = Path(folder) / "peer.py"
        program.write_text(PEER)
        made = subprocess.run([python, program, data], capture_output=True, text=True, check=True)
    answer = json.loads(made.stdout.strip().splitlines()[-1])
    return f"glide-py {answer['version']}, StratifiedPPI", np.array(answer["ends"])


def row(name: str, limits: FloatArray, truths: FloatArray, width: float) -> str:
    """Return a row of the table; `width` is that of the comparison, 0 for none."""
    held = (limits[:, 0] - 1e-9 <= truths) & (truths <= limits[:, 1] + 1e-9)
    own = float(np.mean(limits[:, 1] - limits[:, 0]))
    ratio = f"{own / width:.3f}" if width else "–"
    return f"| {name} | {own:.4f} | {held.mean():.3f} | {ratio} |"


def page(draws: int, peer: str | None, command: str) -> str:
    """Return the page of results."""
    start = time.time()
    populations = [draw(seed) for seed in range(draws)]
    made = [ends(drawn) for drawn in populations]
    compared, peer_row = 0.0, []
    if peer is not None:
        name, limits = of_peer(peer, populations)
        compared = float(np.mean(limits[:, 1] - limits[:, 0]))
        peer_row = [row(name, limits, np.full(draws, np.mean(RATES)), compared)]
    text = ["# Tables from elsewhere: named strata and groups with a judge", "", f"`{command}`", ""]
    text += ["| interval | mean width | coverage | width over the peer's |", "|---|---|---|---|"]
    for way in made[0]:
        rows = np.array([entry for found in made for entry in found[way]])
        text.append(row(way, rows[:, :2], rows[:, 2], compared if way.startswith("mean") else 0.0))
    text += peer_row
    without = "" if peer else " The peer was not measured in this run (`--peer`)."
    text += ["", f"{draws} draws, {time.time() - start:.0f} s.{without}"]
    return "\n".join(text) + "\n"


def main() -> None:
    """Run the benchmark and write its page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--peer", help="a Python 3.12 with glide-py")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    command = f"python -m benchmarks.given_strata --draws {args.draws}"
    args.output.write_text(page(args.draws, args.peer, command + (" --peer PYTHON" if args.peer else "")))
    print(args.output.read_text())


if __name__ == "__main__":
    main()
