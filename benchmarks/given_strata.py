"""Tables from elsewhere: groups named by the user, a judge on every unit, and labels of some.

    python -m benchmarks.given_strata [--draws 400] [--cell-draws 4000] [--only PART] [--peer PYTHON]

Three groups of 1,500 units with rates .4, .6 and .8, a judge that agrees with people in 88 % of the
units, and 100 labels at random in each group. `Sample.from_labelled` gets the table of labels, the
strata and the population; intervals are those of `auto` at 95 %, of the mean and of each group.
`--peer` is a Python 3.12 with glide-py 0.11 (or 0.10): its `StratifiedPPIMeanEstimator` gets the
same labels in the same run. Coverage is of the mean over the population for stratal, and of the
rate that the units were drawn with for the peer, which has no finite population.

A second table compares `auto` with Student's t (Satterthwaite's degrees of freedom, `method="t"`) for one λ
within named strata of 1,500 units, by the kernels of `stratal.simulate`. Judges are right in 97, 88, 70, 50
or 12 % of the units, say yes to nearly all of them, or to all right and 40 % of the wrong ones.
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
from stratal.arrays import AnyArray, FloatArray, IntArray
from stratal.simulation.draws import StratumSums, Truth
from stratal.simulation.replicates import Settings, replicate_intervals, replicate_means

OUTPUT = Path(__file__).resolve().parent / "results" / "given_strata.md"
GROUPS = ("code", "maths", "prose")
RATES = (0.4, 0.6, 0.8)
UNITS = 1500
LABELS = 100
ACCURACY = 0.88

# Rates of the strata of each population, and how often each judge says yes to right and to wrong answers.
POPULATIONS = {
    "3 strata, .4 to .8": (0.4, 0.6, 0.8),
    "3 strata, .9": (0.9, 0.9, 0.9),
    "3 strata, .97": (0.97, 0.97, 0.97),
    "3 strata, .99": (0.99, 0.99, 0.99),
    "3 strata, .5 to .99": (0.5, 0.9, 0.99),
    "10 strata, .8": (0.8,) * 10,
}
JUDGES = {
    "97 %": (0.97, 0.03),
    "88 %": (0.88, 0.12),
    "70 %": (0.7, 0.3),
    "50 %": (0.5, 0.5),
    "12 %": (0.12, 0.88),
    "yes": (0.999, 0.97),
    "lenient": (1.0, 0.4),
}
STRATUM_LABELS = (20, 50, 100)
METHODS = ("auto", "t")
# Outcome and judge of the four kinds of units.
KIND_OUTCOMES = np.array([0.0, 0.0, 1.0, 1.0])
KIND_JUDGES = np.array([0.0, 1.0, 0.0, 1.0])

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


def kinds_of(rate: float, judge: tuple[float, float]) -> IntArray:
    """Return how many of a stratum's units are of each kind (4,): wrong and right, with either answer."""
    right, wrong = judge
    shares = np.array([(1 - rate) * (1 - wrong), (1 - rate) * wrong, rate * (1 - right), rate * right])
    units = np.floor(shares * UNITS + 1e-9).astype(np.int64)
    order = np.argsort(-(shares * UNITS - units), kind="stable")
    units[order[: UNITS - units.sum()]] += 1
    return units


def cell(
    rates: tuple[float, ...], judge: tuple[float, float], n_h: int, draws: int
) -> dict[str, tuple[float, float]]:
    """Return coverage and mean width of `auto` and of t, for one λ within strata of n_h labels."""
    rng = np.random.default_rng(0)
    units = np.stack([kinds_of(rate, judge) for rate in rates])
    n_strata = len(rates)
    outcome, proxy = (
        np.concatenate([np.repeat(values, row) for row in units]) for values in (KIND_OUTCOMES, KIND_JUDGES)
    )
    truth = Truth.of(outcome, proxy, np.repeat(np.arange(n_strata), UNITS), n_strata)
    counts = np.stack(
        [rng.multivariate_hypergeometric(row, n_h, size=draws, method="marginals") for row in units], axis=1
    )
    z = KIND_OUTCOMES - truth.centre
    x = KIND_JUDGES - truth.proxy_means[:, None]

    def total(of_outcome: int, of_judge: int) -> FloatArray:
        return np.asarray(np.einsum("rhk,hk->rh", counts, z**of_outcome * x**of_judge))

    powers = {"z": (1, 0), "zz": (2, 0), "p": (0, 1), "pp": (0, 2), "zp": (1, 1)}
    thirds = {"zzz": (3, 0), "zzp": (2, 1), "zpp": (1, 2), "ppp": (0, 3)}
    sums = StratumSums(
        counts=np.full((1, n_strata), float(n_h)),
        **{name: total(*orders) for name, orders in (powers | thirds).items()},
    )
    settings = Settings(
        estimators=("ppi++",), intervals=METHODS, budgets=(1,), replicates=draws, seed=0, bounds=(0.0, 1.0)
    )
    intervals = replicate_intervals(replicate_means(sums, truth, settings, "ppi++"))
    results = {}
    for method, (low, high) in intervals.items():
        held = (low - 1e-9 <= truth.value) & (truth.value <= high + 1e-9)
        results[method] = (float(held.mean()), float((high - low).mean()))
    return results


def student_lines(draws: int) -> list[str]:
    """Return the table of `auto` and Student's t."""
    lines = [
        "| strata | labels of each | least coverage of `auto` | of t | judge | width of t over `auto` |",
        "|---" * 6 + "|",
    ]
    for name, rates in POPULATIONS.items():
        for n_h in STRATUM_LABELS:
            cells = {judge: cell(rates, says, n_h, draws) for judge, says in JUDGES.items()}
            least = min(cells, key=lambda judge: cells[judge]["t"][0])
            of_auto = min(found["auto"][0] for found in cells.values())
            ratio = float(np.mean([found["t"][1] / found["auto"][1] for found in cells.values()]))
            lines.append(
                f"| {name} | {n_h} | {of_auto:.4f} | {cells[least]['t'][0]:.4f} | {least} | {ratio:.3f} |"
            )
    return lines


STUDENT = "## Student's t instead"


def peer_part(draws: int, peer: str | None) -> str:
    """Return the beginning of the page: widths and coverage next to the peer's."""
    start = time.time()
    populations = [draw(seed) for seed in range(draws)]
    made = [ends(drawn) for drawn in populations]
    compared = 0.0
    peer_row: list[str] = []
    if peer is not None:
        name, limits = of_peer(peer, populations)
        compared = float(np.mean(limits[:, 1] - limits[:, 0]))
        peer_row = [row(name, limits, np.full(draws, np.mean(RATES)), compared)]
    command = f"python -m benchmarks.given_strata --draws {draws}" + (" --peer PYTHON" if peer else "")
    text = ["# Tables from elsewhere: named strata and groups with a judge", "", f"`{command}`", ""]
    text += ["| interval | mean width | coverage | width over the peer's |", "|---|---|---|---|"]
    for way in made[0]:
        rows = np.array([entry for found in made for entry in found[way]])
        text.append(row(way, rows[:, :2], rows[:, 2], compared if way.startswith("mean") else 0.0))
    text += peer_row
    without = "" if peer else " The peer was not measured in this run (`--peer`)."
    text += ["", f"{draws} draws, {time.time() - start:.0f} s.{without}"]
    return "\n".join(text)


def student_part(draws: int) -> str:
    """Return the end of the page: Student's t next to `auto`."""
    text = [
        STUDENT,
        "",
        f"`python -m benchmarks.given_strata --only student --cell-draws {draws}`",
        "",
        "One λ within strata of 1,500 units. The least coverage over seven judges, the judge with the least "
        "coverage of t, and the mean ratio of widths. t is narrower, but it does not cover with few labels, "
        "rare errors or a judge that is nearly always right. One standard error of a coverage of .95 is "
        f"{np.sqrt(0.0475 / draws):.4f}.",
        "",
        *student_lines(draws),
    ]
    return "\n".join(text)


def main() -> None:
    """Run the benchmark and write its page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--cell-draws", type=int, default=4000)
    parser.add_argument("--only", choices=("peer", "student"), help="the rest of the page stays")
    parser.add_argument("--peer", help="a Python 3.12 with glide-py")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    stored, _, stored_student = args.output.read_text().partition(STUDENT) if args.only else ("", "", "")
    first = stored if args.only == "student" else peer_part(args.draws, args.peer)
    second = STUDENT + stored_student if args.only == "peer" else student_part(args.cell_draws)
    args.output.write_text(f"{first.strip()}\n\n{second.strip()}\n")
    print(args.output.read_text())


if __name__ == "__main__":
    main()
