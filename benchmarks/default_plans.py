"""Default plans on public predictions: robust cuts and the mean of scores, against k-means and two peers.

    OMP_NUM_THREADS=1 python -m benchmarks.default_plans [--draws 100] [--budgets 100 300] [--glide PYTHON]
        [--ssepy PYTHON]

The first table is exact: the variance of the default plan over that of ten or fewer k-means strata, with the
true S_h. The others draw samples. "Before" is a plan of k-means strata of the first score; it has the same
estimator. PYTHON is an interpreter with glide-py or ssepy: `glide-py` gets active sampling by √(p(1 − p)),
floored at .05, with its ASI estimator, and its Neyman allocation over ten k-means strata with StratPPI; of
ssepy the arm with the least error of five is shown. Writes benchmarks/results/default_plans.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from benchmarks.helpers import BINARY, DATA, GRADED, circumstances, load

import stratal
from stratal.arrays import FloatArray
from stratal.planning.plan import Plan
from stratal.strata import stratify
from stratal.strata.strata import expected_variance

RESULTS = Path(__file__).with_name("results") / "default_plans.md"
BUDGETS = (50, 100, 200, 400, 1_000)
DRAWN_BUDGETS = (100,)
# Samples above this share of the units are close to a census, where all designs agree.
MAX_SHARE = 0.7
SCORES = {
    "frank_factuality": ("proxy", "factcc", "feqa", "dae", "bertscore_p_art", "rouge1"),
    "gsm8k_models": ("proxy", "agree_strong"),
    "imagenet_golden_crowd": ("proxy", "crowd1", "crowd78"),
    "nq301_llmjudge": ("proxy", "bem", "davinci", "lexical"),
    "pandalm_pairwise": ("proxy", "gpt35", "pandalm7b"),
    "cifar10_vgg": ("proxy", "margin", "entropy"),
}

READ_PEER_INPUT = """
import json, signal, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
data = np.load(sys.argv[1])
proxy, z, strata, budgets = (data[name] for name in ("proxy", "z", "strata", "budgets"))
draws = int(sys.argv[2])
results = {}
"""

GLIDE = (
    READ_PEER_INPUT
    + """
from glide.estimators import ASIMeanEstimator, StratifiedPPIMeanEstimator
from glide.samplers import ActiveSampler, StratifiedSampler
def active(n, seed):
    uncertainty = np.maximum(np.sqrt(np.clip(proxy * (1 - proxy), 0, None)), 0.05)
    probabilities, drawn = ActiveSampler().sample(uncertainty, n, random_seed=seed)
    return ASIMeanEstimator().estimate(np.where(drawn == 1, z, np.nan), proxy, probabilities)
def stratified(n, seed):
    drawn = StratifiedSampler().sample(proxy, strata, n, random_seed=seed)
    return StratifiedPPIMeanEstimator().estimate(np.where(drawn == 1, z, np.nan), proxy, strata)
def stop(*_):
    raise ValueError("no allocation within the time limit")
signal.signal(signal.SIGALRM, stop)
for name, arm in {"ASI": active, "StratPPI": stratified}.items():
    for n in budgets.tolist():
        rows = []
        signal.alarm(5)
        for seed in range(draws):
            try:
                result = arm(n, seed)
            except ValueError:
                break
            interval = result.confidence_interval
            rows.append((float(result.mean - z.mean()), float(interval.width)))
        signal.alarm(0)
        results[f"{name} {n}"] = rows if len(rows) == draws else []
print(json.dumps(results))
"""
)

SSEPY = (
    READ_PEER_INPUT
    + """
import random
from sklearn.cluster import KMeans
from ssepy import ModelPerformanceEvaluator
random.seed(0); np.random.seed(0)
ARMS = [("", "df"), ("proportional", "ht"), ("proportional", "df"), ("neyman", "ht"), ("neyman", "df")]
for n in budgets.tolist():
    for rule, estimator in ARMS:
        evaluator = ModelPerformanceEvaluator(Yh=proxy, budget=n)
        rows = []
        try:
            if rule:
                n_strata = min(10, len(np.unique(proxy)))
                evaluator.stratify_data(KMeans(n_strata, n_init=1, random_state=0), X=proxy[:, None])
                evaluator.allocate_budget(rule)
            for _ in range(draws):
                drawn = evaluator.sample("ssrs" if rule else "srs")
                value = evaluator.compute_estimate(z[drawn], estimator=estimator)[0]
                rows.append((float(np.ravel(value)[0] - z.mean()), 0.0))
        except Exception:
            rows = []
        if len(rows) == draws and np.isfinite(rows).all():
            results[f"{rule or 'random'} {estimator} {n}"] = rows
print(json.dumps(results))
"""
)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Mean squared error, mean width and coverage of drawn estimates."""

    squared_error: float
    width: float
    coverage: float


def scores_of(name: str) -> dict[str, FloatArray]:
    """Return the scores (N,) of a file; a missing one is the mean of the others."""
    table = pq.read_table(DATA / f"{name}.parquet", columns=list(SCORES[name]))
    scores = {}
    for column in SCORES[name]:
        values = table[column].to_numpy().astype(np.float64)
        scores[column] = np.where(np.isnan(values), np.nanmean(values), values)
    return scores


def budgets_of(budgets: Sequence[int], size: int) -> list[int]:
    """Return the budgets that leave enough units unlabelled."""
    return [budget for budget in budgets if budget <= MAX_SHARE * size]


def exact_variance(plan: Plan, z: FloatArray, proxy: FloatArray) -> float:
    """Return the true variance of the planned estimate; of a simple random sample with the best fixed λ."""
    if plan.recommended.design != "stratified":
        unexplained = z.var() * (1.0 - np.corrcoef(z, proxy)[0, 1] ** 2)
        return float(unexplained * (1.0 / plan.budget - 1.0 / len(z)))
    codes = plan.strata.codes
    assert codes is not None
    variances = np.array([z[codes == code].var() for code in range(plan.strata.n_strata)])
    return float(expected_variance(plan.strata.sizes, plan.allocation.n_h, variances))


def exact_ratio(name: str, budget: int) -> float:
    """Return the variance of the default plan over that of k-means strata."""
    z, proxy = load(name)
    population = stratal.Population.from_arrays(proxy=proxy)
    plans = (stratal.plan(population, budget), stratal.plan(population, budget, method="k-means"))
    ours, k_means = (exact_variance(plan, z, proxy) for plan in plans)
    return ours / k_means


def measure(plan: Plan, z: FloatArray, draws: int) -> Measured:
    """Return what the estimates of drawn samples of a plan have."""
    truth = float(z.mean())
    rows = np.empty((draws, 3))
    for seed in range(draws):
        sample = plan.draw(seed=seed)
        with warnings.catch_warnings(action="ignore"):
            estimate = stratal.estimate(sample, z[sample.ids])
        low, high = estimate.confidence_interval()
        rows[seed] = (estimate.value - truth) ** 2, high - low, low <= truth <= high
    return Measured(
        **dict(zip(("squared_error", "width", "coverage"), rows.mean(axis=0).tolist(), strict=True))
    )


def compared(name: str, n_scores: str, budget: int, draws: int) -> tuple[Measured, Measured]:
    """Return the default plan and the one before, of one score or of several."""
    z, _ = load(name)
    scores = scores_of(name) if n_scores == "several" else {"proxy": load(name)[1]}
    with warnings.catch_warnings(action="ignore"):
        population = stratal.Population.from_arrays(proxy=scores)
        ours = stratal.plan(population, budget)
        before = stratal.plan(population, budget, method="k-means", proxy="proxy")
    return measure(ours, z, draws), measure(before, z, draws)


def peer_rows(
    program: str, python: str | None, name: str, options: argparse.Namespace
) -> dict[str, FloatArray]:
    """Return errors and widths (draws, 2) of a peer's arms and budgets; nothing without its interpreter."""
    if python is None:
        return {}
    z, proxy = load(name)
    strata = stratify(stratal.Population.from_arrays(proxy=proxy), "k-means", 10).codes
    assert strata is not None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.npz"
        np.savez(path, z=z, proxy=proxy, strata=strata, budgets=budgets_of(options.budgets, len(z)))
        command = [python, "-c", program, str(path), str(options.draws)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return {arm: np.array(rows) for arm, rows in json.loads(done.stdout).items() if rows}


def peer_cells(rows: dict[str, FloatArray], arm: str, budget: int, ours: Measured) -> list[str]:
    """Return a peer's squared error and width over ours; "–" where it gives no estimate."""
    drawn = rows.get(f"{arm} {budget}")
    if drawn is None:
        return ["–", "–"]
    error, width = float(np.mean(drawn[:, 0] ** 2)), float(drawn[:, 1].mean())
    return [f"{error / ours.squared_error:.2f}", f"{width / ours.width:.2f}"]


def best_of_ssepy(rows: dict[str, FloatArray], budget: int, ours: Measured) -> str:
    """Return the least squared error of ssepy's arms over ours."""
    errors = [float(np.mean(drawn[:, 0] ** 2)) for arm, drawn in rows.items() if arm.endswith(f" {budget}")]
    if not errors:
        return "–"
    return f"{min(errors) / ours.squared_error:.2f}"


def exact_table() -> list[str]:
    """Return the lines of the exact table."""
    lines = [f"| file | {' | '.join(f'n = {budget:,}' for budget in BUDGETS)} |", "|---" + "|--:" * 5 + "|"]
    ratios: dict[int, list[float]] = {budget: [] for budget in BUDGETS}
    for name in (*BINARY, *GRADED):
        allowed = budgets_of(BUDGETS, len(load(name)[0]))
        cells = []
        for budget in BUDGETS:
            if budget not in allowed:
                cells.append("–")
                continue
            ratios[budget].append(exact_ratio(name, budget))
            cells.append(f"{ratios[budget][-1]:.3f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    means = [f"{np.exp(np.mean(np.log(values))):.3f}" for values in ratios.values()]
    lines += [f"| geometric mean | {' | '.join(means)} |"]
    lines += [f"| largest | {' | '.join(f'{max(values):.3f}' for values in ratios.values())} |"]
    return lines


def one_score_lines(options: argparse.Namespace) -> list[str]:
    """Return the rows of one score."""
    lines = []
    for name in (*BINARY, *GRADED):
        glide = peer_rows(GLIDE, options.glide, name, options)
        ssepy = peer_rows(SSEPY, options.ssepy, name, options)
        for budget in budgets_of(options.budgets, len(load(name)[0])):
            ours, before = compared(name, "one", budget, options.draws)
            cells = [name, f"{budget:,}", f"{np.sqrt(ours.squared_error):.4f}", f"{ours.width:.4f}"]
            cells += [f"{ours.coverage:.3f}", f"{ours.squared_error / before.squared_error:.2f}"]
            cells += [f"{ours.width / before.width:.2f}"]
            cells += peer_cells(glide, "ASI", budget, ours) + peer_cells(glide, "StratPPI", budget, ours)
            cells += [best_of_ssepy(ssepy, budget, ours)]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def several_scores_lines(options: argparse.Namespace) -> list[str]:
    """Return the rows of several scores."""
    lines = []
    for name, columns in SCORES.items():
        for budget in budgets_of(options.budgets, len(load(name)[0])):
            ours, before = compared(name, "several", budget, options.draws)
            cells = [name, str(len(columns)), f"{budget:,}", f"{np.sqrt(ours.squared_error):.4f}"]
            cells += [f"{ours.width:.4f}", f"{ours.coverage:.3f}"]
            cells += [f"{ours.squared_error / before.squared_error:.2f}", f"{ours.width / before.width:.2f}"]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--budgets", type=int, nargs="+", default=DRAWN_BUDGETS, help="of drawn samples")
    parser.add_argument("--glide", help="a Python with glide-py")
    parser.add_argument("--ssepy", help="a Python with ssepy")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    exact_lines = exact_table()
    one_score = one_score_lines(options)
    several_scores = several_scores_lines(options)
    error = np.sqrt(2.0 / options.draws)
    page = [
        "# Default plans on public predictions",
        "",
        f"`python -m benchmarks.default_plans --draws {options.draws} --budgets "
        f"{' '.join(map(str, options.budgets))} --glide PYTHON --ssepy PYTHON`, "
        f"{circumstances()}",
        "",
        "The variance of the default plan of one score over that of k-means strata, exact:",
        "",
        *exact_lines,
        "",
        f"One score, {options.draws} draws; one standard error of a squared error is about {error:.0%}. "
        '"Before" is a plan of k-means strata. Ratios of peers are theirs over ours; of ssepy the best of '
        "five arms, which chance favours.",
        "",
        "| file | labels | error | width | coverage | error² / before | width / before | "
        "ASI: error² | ASI: width | StratPPI: error² | StratPPI: width | ssepy: error² |",
        "|---" + "|--:" * 11 + "|",
        *one_score,
        "",
        'Several scores: the default plan divides their mean; "before" divides the first score.',
        "",
        "| file | scores | labels | error | width | coverage | error² / before | width / before |",
        "|---" + "|--:" * 7 + "|",
        *several_scores,
    ]
    options.output.write_text("\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
