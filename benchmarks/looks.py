"""Four planned looks: coverage of all intervals together, their width against one look, and labels saved.

    OMP_NUM_THREADS=1 python -m benchmarks.looks [--runs 300] [--output FILE]

A generated population of 20,000 units, 400 labels, looks at 100, 200, 300 and 400: a stratified mean, F1 and
the difference of two models, each planned for. "Together" is the share of runs in which all four intervals
hold the true value, "unadjusted" the same of intervals that know nothing of the others. Labelling stops at
the first look whose interval leaves out a value that is one, two or three expected half-widths of the last
look away; "labels" is the mean number then. "Rounds" are four rounds of 100, each where labels say.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import stratal
from stratal.estimands import F1, Difference

OUTPUT = Path(__file__).resolve().parent / "results" / "looks.md"
SIZE, BUDGET, LOOKS = 20_000, 400, 4
AWAY = (1.0, 2.0, 3.0)


def cases() -> Iterator[tuple[str, Any, Any, np.ndarray, float]]:
    """Yield name, population, estimand, labels (N,) and true value of each case."""
    rng = np.random.default_rng(0)
    score = rng.beta(5, 1, SIZE)
    right = (rng.random(SIZE) < score) * 1.0
    answered = rng.random(SIZE) < 0.3
    chance = np.where(answered, 0.75, 0.1)
    truth = rng.random(SIZE) < chance
    label, answer = (np.where(part, "m", "o") for part in (truth, answered))
    other = np.where(rng.random(SIZE) < 0.85, answer, np.where(rng.random(SIZE) < 0.5, "m", "o"))
    population = stratal.Population.from_arrays(
        proxy={"score": score, "chance": chance}, groups={"answer": answer, "new": other}, predicted="answer"
    )
    f1 = float(2 * np.sum(truth & answered) / (truth.sum() + answered.sum()))
    yield "stratified mean", population, None, right, float(right.mean())
    yield "F1", population, F1("m", probability="chance"), label, f1
    gap = float(np.mean(answer == label) - np.mean(other == label))
    yield "difference", population, Difference(("answer", "new")), label, gap


def run(
    population: Any, estimand: Any, labels: Any, boundary: str, seed: int, *, rounds: bool
) -> tuple[Any, Any]:
    """Return the intervals (4, 2) at the looks, and the same that know nothing of the others."""
    step = BUDGET // LOOKS
    looks = f"{boundary}:{LOOKS}"
    plan = stratal.plan(population, step if rounds else BUDGET, estimand=estimand, looks=looks)
    sample = plan.draw(seed)
    ends, plain = [], []
    for look in range(1, LOOKS + 1):
        ids = sample.ids[: look * step]
        found = stratal.estimate(
            sample, dict(zip(ids.tolist(), labels[ids].tolist(), strict=True)), look=look
        )
        ends.append([*found.confidence_interval()])
        plain.append([*found.at(None).confidence_interval()])
        if rounds and look < LOOKS:
            known = dict(zip(ids.tolist(), labels[ids].tolist(), strict=True))
            sample = stratal.next_round(sample, known, additional=step)
    return np.array(ends), np.array(plain)


def main() -> None:
    """Run the benchmark and write its page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    start = time.time()
    head = " | ".join(f"labels, {away:g} half-widths away" for away in AWAY)
    text = ["# Planned looks", "", f"`python -m benchmarks.looks --runs {args.runs}`", ""]
    text += [f"| estimand | boundary | together | unadjusted | last width over one look's | {head} |"]
    text += ["|---|---|---|---|---|" + "---|" * len(AWAY)]
    for name, population, estimand, labels, value in cases():
        for boundary, rounds in (("pocock", False), ("obrien-fleming", False), ("pocock", True)):
            found = [
                run(population, estimand, labels, boundary, seed, rounds=rounds) for seed in range(args.runs)
            ]
            ends, plain = (np.array(part) for part in zip(*found, strict=True))
            held, bare = (
                np.mean(np.all((part[..., 0] <= value) & (part[..., 1] >= value), axis=1))
                for part in (ends, plain)
            )
            last = ends[:, -1, 1] - ends[:, -1, 0]
            ratio = np.mean(last / (plain[:, -1, 1] - plain[:, -1, 0]))
            used = []
            for away in AWAY:
                limit = value - away * np.mean(last) / 2.0
                out = ends[..., 0] > limit
                looks = np.where(out.any(axis=1), out.argmax(axis=1) + 1, LOOKS)
                used.append(f"{np.mean(looks) * BUDGET / LOOKS:.0f}")
            row = f"{boundary}{', rounds' if rounds else ''}"
            text.append(f"| {name} | {row} | {held:.3f} | {bare:.3f} | {ratio:.3f} | {' | '.join(used)} |")
            print(text[-1], flush=True)
    error = np.sqrt(0.95 * 0.05 / args.runs)
    text += ["", f"Monte Carlo error of a coverage: {error:.3f}. {time.time() - start:.0f} s in all."]
    args.output.write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
