"""How often labels are said to refute a plan that is right, and how often one that is wrong.

    python benchmarks/refuted_plans.py [--draws 1000]

Each row: the default plan of a proxy of 5,000 units, outcomes drawn from the truth that is named, and the
share of draws with each of the three notes (`stratal.estimation.notes`). A plan allows for log-odds off by
1.5 and a quarter to twice as steep, and without bounds for up to twice the deviation that was taken: a note
there is a false alarm.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import numpy as np
from scipy.special import expit, logit

import stratal
from stratal.arrays import FloatArray

RESULTS = Path(__file__).parent / "results" / "refuted_plans.md"
SEED, UNITS, BUDGETS = 20261121, 5000, (30, 100, 400)
KINDS = {"mean": "the mean is", "spread": "outcomes vary", "direction": "outcomes fall"}
HEADING = """# Notes on refuted plans

`python benchmarks/refuted_plans.py --draws {draws}`, {day}

Share of draws in which the labels contradict the plan, by the mean, the spread or the direction of
the outcomes, and by any. Truths in bold are wrong ones; in all other rows a note is a false alarm.

| proxy | truth | labels | design | mean | spread | direction | any |
|---|---|--:|---|--:|--:|--:|--:|
"""
Truth = Callable[[np.random.Generator], FloatArray]


def rates(proxy: FloatArray) -> Iterator[tuple[str, FloatArray]]:
    """Yield the chance of a right answer of each unit, the allowed ways first."""
    centre = logit(proxy.mean())
    away = logit(proxy) - centre
    yield "as the proxy says", proxy
    for offset, slope in ((-1.5, 1.0), (1.5, 1.0), (0.0, 0.25), (-1.5, 0.25), (1.5, 0.25), (0.0, 2.0)):
        yield f"log-odds {offset:+g}, {slope:g} times as steep", expit(centre + offset + slope * away)
    yield "**log-odds −3**", expit(centre - 3 + away)
    yield "**turned round**", 1 - proxy


def binary() -> Iterator[tuple[str, FloatArray, str, Truth]]:
    """Yield proxies of outcomes of 0 and 1, each with its truths."""
    generator = np.random.default_rng(SEED)
    proxies = {
        "beta(8, 1), mean .89": generator.beta(8, 1, UNITS),
        "beta(2, 1), mean .67": generator.beta(2, 1, UNITS),
        "beta(.3, 20), mean .015": generator.beta(0.3, 20, UNITS),
        "a judge of 0 and 1, mean .9": generator.random(UNITS) < 0.9,
    }
    for name, values in proxies.items():
        proxy = np.clip(values, 1e-4, 0.999)
        for truth, rate in rates(proxy):
            yield name, proxy, truth, zeros_and_ones(rate)


def unbounded() -> Iterator[tuple[str, FloatArray, str, Truth]]:
    """Yield a proxy without bounds, planned with a residual deviation of 1, and its truths."""
    proxy = 3 * np.random.default_rng(SEED).normal(size=UNITS)
    shapes: dict[str, Truth] = {
        "normal": lambda rng: rng.normal(size=UNITS),
        "t with 3": lambda rng: rng.standard_t(3, UNITS) / 3**0.5,
        "lognormal": lambda rng: (
            (np.exp(rng.normal(size=UNITS)) - math.exp(0.5)) / (math.e * (math.e - 1)) ** 0.5
        ),
    }
    for name, shape in shapes.items():
        for k in (1, 2, 3, 4):
            word = f"{k} times the deviation taken"
            told = word if k <= 2 else f"**{word}**"
            yield f"no bounds, {name}", proxy, told, about(proxy, k, shape)
        yield f"no bounds, {name}", proxy, "**turned round**", about(-proxy, 1, shape)


def zeros_and_ones(rate: FloatArray) -> Truth:
    """Return what draws outcomes of 0 and 1."""
    return lambda rng: (rng.random(UNITS) < rate).astype(float)


def about(centre: FloatArray, times: float, shape: Truth) -> Truth:
    """Return what draws outcomes about a centre."""
    return lambda rng: centre + times * shape(rng)


def measured(proxy: FloatArray, truth: Truth, budget: int, draws: int, design: str) -> list[float]:
    """Return the share of draws with each note, and with any."""
    bounded = bool(np.all((proxy >= 0) & (proxy <= 1)))
    given = {"bounds": (0, 1)} if bounded else {"scaled": True}
    population = stratal.Population.from_arrays(proxy=proxy, **given)
    plan = stratal.plan(population, budget, residual_sd=None if bounded else 1.0).using(design)
    generator, counts = np.random.default_rng(SEED), np.zeros(len(KINDS) + 1)
    for seed in range(draws):
        sample = plan.draw(seed)
        z = truth(generator)[np.array(sample.ids)]
        notes = stratal.estimate(sample, z).refuted
        said = [any(f": {words}" in note for note in notes) for words in KINDS.values()]
        counts += [*said, any(said)]
    return [float(count) / draws for count in counts]


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    draws = parser.parse_args().draws
    lines = []
    for cases, designs in ((binary(), ("stratified", "simple-random")), (unbounded(), ("stratified",))):
        for name, proxy, told, truth in cases:
            for design in designs:
                for budget in BUDGETS:
                    shares = measured(proxy, truth, budget, draws, design)
                    cells = [name, told, budget, design, *(f"{share:.3f}" for share in shares)]
                    lines.append("| " + " | ".join(map(str, cells)) + " |")
                    print(lines[-1], flush=True)
    heading = HEADING.format(draws=draws, day=date.today().isoformat())
    RESULTS.write_text(heading + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
