"""Fuzzed calls: small populations, odd labels, every interval and estimand; finite and in order."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from tests.attack.damage import Findings, warned

import stratal
from stratal.errors import StratalError, StratalWarning
from stratal.estimands import ClassReport, MeanFunction, Quantile, RatioOfMeans
from stratal.intervals.interval import ALTERNATIVES
from stratal.intervals.methods import INTERVAL_METHOD_NAMES

ESTIMATORS = ("auto", "horvitz-thompson", "difference", "ppi++", "stratppi", "hajek", "post-stratified")
STRATIFIERS = ("k-means", "equal-size", "equal-width", "cum-sqrt-f", "weighted-mean", "neyman", "category")
RULES = ("proportional", "equal", "neyman", "robust", "optimal")
TEXTBOOK = ("t", "normal")
"""These warn where their width is 0, and keep it."""
LEVELS = (0.001, 0.5, 0.8, 0.95, 0.999)


@dataclass
class Caller:
    """Makes calls of one number and notes how they end."""

    rng: np.random.Generator
    number: int
    found: Findings

    def call(self, words: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a call gives, or None where it is refused; anything else is noted."""
        self.found.tries += 1
        try:
            return function(*arguments)
        except StratalError:
            self.found.refused += 1
        except Exception as error:
            self.found.tracebacks.append(f"number {self.number}: {words}: {error!r}"[:300])
        return None

    def wrong(self, words: str, what: Any) -> None:
        """Note an answer that cannot be right."""
        self.found.wrong.append(f"number {self.number}: {words}: {what}"[:300])

    def one(self, names: Any) -> Any:
        """Return one of several, by chance."""
        return names[int(self.rng.integers(len(names)))]


def population(rng: np.random.Generator) -> dict[str, Any]:
    """Return the columns of a small population: usual, constant, tied, huge and tiny proxies."""
    size = int(rng.integers(1, 60))
    proxy = rng.random(size).round(int(rng.integers(0, 4)))
    kind = int(rng.integers(12))
    if kind == 0:
        proxy = rng.normal(size=size) * 10.0 ** rng.integers(-320, 308)
    elif kind == 1:
        proxy = np.full(size, proxy[0])
    columns = {
        "proxy": {"p": proxy, "q": rng.random(size)},
        "groups": {"g": rng.choice(["a", "b", "c"], size), "answer": rng.choice(["x", "y"], size)},
        "features": {"f": rng.normal(size=size)},
        "predicted": "answer",
    }
    return columns if kind > 1 else columns | {"proxy": {"p": proxy}}


def drawn(caller: Caller) -> Any:
    """Return a sample of some design from a small population, or None where something was refused."""
    rng, call = caller.rng, caller.call
    columns = population(rng)
    units = call("from_arrays", lambda: stratal.Population.from_arrays(**columns))
    if units is None:
        return None
    budget, seed = int(rng.integers(1, units.size + 2)), int(rng.integers(2**63))
    kind = int(rng.integers(7))
    if kind == 0:
        rate = float(rng.uniform(0.05, 1))
        return call("poisson", lambda: stratal.designs.Poisson(probability=rate).draw(units, seed))
    if kind == 1:
        return call("simple random", lambda: stratal.designs.SimpleRandom(budget=budget).draw(units, seed))
    if kind == 2:
        sizes = rng.random(units.size) + 0.01
        design = stratal.designs.ProportionalToSize(budget=budget, size=sizes)
        return call("proportional to size", lambda: design.draw(units, seed))
    if kind == 3:
        made = call("plan", lambda: stratal.plan(units, budget=budget, proxy="p"))
        return made and call("plan.draw", lambda: made.draw(seed=seed))
    if kind == 4:
        return call("systematic", lambda: stratal.designs.Systematic(budget=budget).draw(units, seed))
    return _stratified(caller, units, budget, seed)


def _stratified(caller: Caller, units: Any, budget: int, seed: int) -> Any:
    method, rule = caller.one(STRATIFIERS), caller.one(RULES)
    wanted, least = int(caller.rng.integers(1, 5)), int(caller.rng.integers(0, 3))
    by = {"by": "g"} if method == "category" else {"proxy": "p", "n_strata": wanted}
    strata = caller.call("stratify", lambda: stratal.strata.stratify(units, method, **by))
    if strata is None:
        return None
    allocation = caller.call("allocate", lambda: stratal.strata.allocate(strata, budget, rule, minimum=least))
    if allocation is None:
        return None
    design = caller.call(
        "Stratified", lambda: stratal.designs.Stratified(strata=strata, allocation=allocation)
    )
    return design and caller.call("draw", lambda: design.draw(units, seed))


def answered(rng: np.random.Generator, n: int) -> tuple[np.ndarray, dict[str, Any]]:
    """Return labels of some kind (n,), NaN where nobody answered, and what is said of them."""
    kind = int(rng.integers(5))
    labels = [
        (rng.random(n) < 0.9).astype(float),
        np.full(n, float(rng.integers(2))),
        rng.random(n),
        rng.normal(size=n) * 10.0 ** rng.integers(-320, 308),
        rng.integers(1, 6, n).astype(float),
    ][kind]
    said: list[dict[str, Any]] = [{}, {}, {}, {"outcome": "unbounded"}, {"bounds": (1, 5)}]
    return np.where(rng.random(n) < rng.choice([0.0, 0.4, 0.9]), np.nan, labels), said[kind]


def _ratio(sample: Any, numerator: Any, denominator: Any) -> Any:
    labels = {"a": numerator, "b": denominator}
    return stratal.estimate(sample, labels, estimand=RatioOfMeans(["a", "b"]))


OTHERS: dict[str, Callable[[Any, Any, Any, np.random.Generator], Any]] = {
    "ratio": lambda sample, z, said, rng: _ratio(sample, z, rng.random(len(z))),
    "ratio of labels": lambda sample, z, said, rng: _ratio(sample, z, z),
    "ratio to zeros": lambda sample, z, said, rng: _ratio(sample, z, (z > 0) * 1.0),
    "quantile": lambda sample, z, said, rng: stratal.estimate(
        sample, z, estimand=Quantile(float(rng.random()))
    ),
    "domains": lambda sample, z, said, rng: stratal.estimate(sample, z, by="g", **said),
    "differences": lambda sample, z, said, rng: stratal.estimate(sample, z, by="g", **said).differences(),
    "metrics": lambda sample, z, said, rng: stratal.estimate(
        sample,
        np.where(np.isnan(z), None, np.where(z > 0, "x", "y")),
        estimand=ClassReport(("precision", "f1", "mcc")),
    ),
    "ranking": lambda sample, z, said, rng: stratal.estimate(
        sample,
        {"label": np.where(z > 0, "x", "y"), "score": rng.random(len(z))},
        estimand=["auc:x", "average_precision:x"],
    ),
    "compare": lambda sample, z, said, rng: stratal.compare(sample, {"a": z, "b": rng.permutation(z)}),
    "compare itself": lambda sample, z, said, rng: stratal.compare(sample, {"a": z, "b": z}),
    "smooth": lambda sample, z, said, rng: stratal.estimate(
        sample,
        {"a": z, "b": rng.random(len(z))},
        estimand=MeanFunction(lambda a, b: a / b, ["a", "b"]),
    ),
    "regress": lambda sample, z, said, rng: stratal.regress(sample, z, features="f"),
    "needed": lambda sample, z, said, rng: stratal.labels_needed(sample, z, float(rng.random()), **said),
    "next round": lambda sample, z, said, rng: stratal.next_round(sample, z, additional=3, **said),
    "post-stratified": lambda sample, z, said, rng: stratal.estimate(
        stratal.designs.post_stratify(sample, "g"), z, **said
    ),
    "calibrated": lambda sample, z, said, rng: stratal.estimate(sample, z, calibration="isotonic", **said),
    "superpopulation": lambda sample, z, said, rng: stratal.estimate(
        sample, z, target="superpopulation", **said
    ),
    "from arrays": lambda sample, z, said, rng: stratal.estimate_from(
        z[~np.isnan(z)], rng.random(int(np.sum(~np.isnan(z)))), rng.random(50), **said
    ),
}
"""Other calls on a sample and its labels (n,)."""


def fuzzed(tries: int, seed: int) -> Findings:
    """Make populations, samples, estimates, intervals and p-values, and look at every number."""
    rng, found = np.random.default_rng(seed), Findings()
    with warned():
        warnings.simplefilter("ignore", StratalWarning)
        while found.tries < tries:
            tried(int(rng.integers(2**31)), found)
    return found


def tried(number: int, found: Findings) -> None:
    """Make all calls of one number."""
    caller = Caller(np.random.default_rng(number), number, found)
    rng = caller.rng
    sample = drawn(caller)
    if sample is None:
        return
    labels, said = answered(rng, sample.size)
    estimator = caller.one(ESTIMATORS)
    result = caller.call(
        f"estimate {estimator}", lambda: stratal.estimate(sample, labels, estimator=estimator, **said)
    )
    if result is not None:
        _stopping_inputs(caller, result)
    for name in rng.choice(list(OTHERS), 3, replace=False):
        other = caller.call(name, OTHERS[name], sample, labels, said, rng)
        if other is not None:
            text = caller.call(f"str of {name}", str, other)
            _finite(caller, str(name), other, text)


def _stopping_inputs(caller: Caller, result: stratal.Estimate) -> None:
    """Ask an estimate for every interval, some p-values, its dict and its text."""
    numbers = (result.value, result.standard_error)
    if not np.all(np.isfinite(numbers)):
        caller.wrong("estimate", numbers)
    for method in INTERVAL_METHOD_NAMES:
        last: tuple[float, float] | None = None
        for level in LEVELS:
            alternative = caller.one(ALTERNATIVES) if level != 0.95 else "two-sided"
            words = f"{method} {level} {alternative}"
            interval = caller.call(words, result.confidence_interval, level, method, alternative)
            if interval is not None:
                _ordered(caller, words, result, interval)
                last = (interval.low, interval.high)
        if last is not None and caller.rng.random() < 0.15:
            null = float(caller.one([0.0, 0.5, *last, result.value]))
            p = caller.call(f"p {method}", result.p_value, null, method)
            if p is not None and not 0 <= p <= 1:
                caller.wrong(f"p {method} of {null}", p)
    _finite(caller, "to_dict", caller.call("to_dict", result.to_dict), caller.call("str", str, result))


def _ordered(caller: Caller, words: str, result: stratal.Estimate, interval: Any) -> None:
    low, high = interval
    ends = [end for end, side in ((low, "less"), (high, "greater")) if interval.alternative != side]
    may_miss = interval.alternative != "two-sided" and interval.confidence_level < 0.5
    if not (np.all(np.isfinite(ends)) and low <= high and (may_miss or low <= result.value <= high)):
        caller.wrong(words, (low, result.value, high))
    if low == high and interval.method not in TEXTBOOK and not result.evidence.census:
        caller.wrong(words, f"no width at {low}, some units are not labelled")
    bounds = result.bounds
    if bounds is not None and not bounds[0] <= low <= high <= bounds[1]:
        caller.wrong(words, (low, high, bounds))


def _finite(caller: Caller, words: str, given: Any, text: str | None) -> None:
    """Note a value, limit or standard error that is not a number, and a text that says nan."""
    missing = [name for name, number in _numbers(given) if math.isnan(number)]
    if missing:
        caller.wrong(words, f"NaN: {', '.join(missing)}")
        return
    if text is not None and "nan" in text.lower().replace("unanswered", "").split():
        caller.wrong(words, f"its text says nan: {text[:120]}")


def _numbers(given: Any) -> list[tuple[str, float]]:
    """Return the numbers of a result: its value, standard error and limits, of each row of a table."""
    if isinstance(given, tuple | stratal.Estimates):
        return [number for entry in given for number in _numbers(entry)]
    if isinstance(given, stratal.Estimate) and math.isnan(given.value):
        return []  # said to have no value, and why
    names = ["value", "standard_error", "low", "high", "estimate", "p_value"]
    if isinstance(given, stratal.Estimate) and given.limits() is None:
        names.remove("standard_error")  # labels of an outcome without bounds that all agree show none
    values = [(name, getattr(given, name, None)) for name in names]
    return [(name, float(value)) for name, value in values if isinstance(value, float | np.floating)]
