"""Public functions with one argument of the wrong type: an answer or one message, never a traceback."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from tests.attack.damage import Findings

import stratal
from stratal.errors import StratalError
from stratal.estimands import ClassReport, Quantile, RatioOfMeans
from stratal.testing import assert_requirement

Call = tuple[Callable[..., Any], dict[str, Any]]
RATIO = RatioOfMeans(["a", "b"])


def _calls() -> tuple[list[Call], list[Any]]:
    """Return calls that work, and values of which most are not such argument."""
    rng = np.random.default_rng(0)
    groups = {"g": rng.choice(["a", "b"], 200), "answer": rng.choice(["x", "y"], 200)}
    units = stratal.Population.from_arrays(
        proxy={"p": rng.random(200)}, groups=groups, features={"f": rng.random(200)}, predicted="answer"
    )
    plan = stratal.plan(units, budget=60)
    sample, simple = plan.draw(seed=1), stratal.designs.SimpleRandom(budget=60).draw(units, seed=1)
    strata = stratal.strata.stratify(units, "k-means", n_strata=3)
    z = np.resize([1.0, 1.0, 0.0], 60)
    classes, found = np.where(z > 0, "x", "y"), stratal.estimate(sample, z)

    def required(estimate: Any, requirement: Any, confidence_level: Any = 0.95, method: Any = "auto") -> None:
        assert_requirement(estimate, requirement, confidence_level=confidence_level, method=method)

    calls: list[Call] = [
        (stratal.estimate, {"sample": sample, "labels": z}),
        (stratal.estimate, {"sample": sample, "labels": classes, "estimand": "f1:x"}),
        (stratal.designs.post_stratify, {"sample": simple, "by": "g"}),
        (stratal.designs.fit_margins, {"sample": sample, "margins": ["g"]}),
        (stratal.estimate, {"sample": sample, "labels": z, "by": "g"}),
        (stratal.estimate(sample, z, by="g").differences, {}),
        (stratal.estimate, {"sample": sample, "labels": classes, "estimand": "metrics"}),
        (ClassReport, {"metrics": ["f1"], "classes": ["x"]}),
        (stratal.compare, {"sample": sample, "outcomes": {"a": z, "b": 1 - z}}),
        (stratal.estimate, {"sample": sample, "labels": {"a": z, "b": z + 1}, "estimand": RATIO}),
        (Quantile, {"probability": 0.5}),
        (stratal.estimate, {"sample": sample, "labels": z, "estimand": Quantile(0.5)}),
        (stratal.estimate, {"sample": sample, "labels": z, "limits": (0, 1)}),
        (required, {"estimate": found, "requirement": "value>=.1"}),
        (stratal.plan, {"population": units, "budget": 50}),
        (stratal.next_round, {"sample": sample, "labels": z, "additional": 5}),
        (stratal.labels_needed, {"sample": sample, "labels": z, "half_width": 0.05}),
        (stratal.strata.stratify, {"population": units, "n_strata": 3}),
        (stratal.strata.allocate, {"strata": strata, "budget": 50}),
        (stratal.estimate_from, {"labels": z, "proxy_labelled": z / 2, "proxy_unlabelled": z}),
        (stratal.Population.from_arrays, {"proxy": [0.5, 0.6]}),
        (found.confidence_interval, {}),
        (found.p_value, {"null": 0.5}),
        (plan.draw, {"seed": 1}),
        (stratal.Labels, {"ids": ("a",), "values": (1,), "positive": "1", "mapping": {"n/a": None}}),
        (stratal.annotator_agreement, {"labels": stratal.Labels(ids=("a",), values=(1,), annotators=("x",))}),
    ]
    values: list[Any] = [
        *(
            None,
            (0, None),
            (None, 1),
            (0,),
            (0, 1, 2),
            [0, 1],
            "0,1",
            (1, 0),
            ("a", "b"),
            -1,
            0,
            2,
            0.5,
            True,
        ),
        *(float("nan"), float("inf"), 10**30, "", "nope", b"x", [], {}, {"g": 1}, {1: 2}, object(), strata),
        *(
            plan,
            units,
            sample,
            np.array([]),
            np.array([[0, 1.0]]),
            pd.DataFrame({"a": [1]}),
            pd.Series([1.0]),
        ),
        *(pd.NA, Decimal("0.5"), ["nope"], range(3), 1j, "g", os.fsdecode(b"\xff")),
    ]
    return calls, values


def mistyped(tries: int, seed: int) -> Findings:
    """Call public functions, each time with one argument that is something else.

    Python's own errors about a type are allowed; errors of NumPy's linear algebra, keys that are missing and
    failed assertions are not.
    """
    rng, found = np.random.default_rng(seed), Findings()
    calls, values = _calls()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while found.tries < tries:
            function, given = calls[int(rng.integers(len(calls)))]
            name = str(rng.choice(list(inspect.signature(function).parameters)))
            value = values[int(rng.integers(len(values)))]
            found.tries += 1
            try:
                function(**{**given, name: value})
            except StratalError:
                found.refused += 1
            except (TypeError, AttributeError, ValueError):
                found.refused += 1  # what Python says of an argument of a wrong type
            except Exception as error:
                called = getattr(function, "__qualname__", function)
                found.tracebacks.append(f"{called}({name}={value!r}): {error!r}"[:300])
    return found
