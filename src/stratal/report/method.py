"""The method of an estimate in words that can be cited: what was done, what it rests on, where it is from."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any


@cache
def methods() -> dict[str, Any]:
    """Return what `methods.toml` says: `sources`, and name → words and sources of other kinds."""
    return tomllib.loads(Path(__file__).with_name("methods.toml").read_text(encoding="utf-8"))


def described_method(
    estimate: Mapping[str, Any],
    drawn: Sequence[str] = (),
    assumption: str = "",
    allocation: str | None = None,
) -> dict[str, Any]:
    """Return sentences, assumptions and references of an estimate (`Estimate.to_dict`).

    Parameters
    ----------
    estimate : dict
    drawn : sequence of str
        What was drawn, and its sources: names in `methods.toml`, or as they are cited.
    assumption : str
        What else could fail under this design.
    allocation : str, optional
        How the labels were shared among the strata.

    Examples
    --------
    >>> found = described_method({"design": "simple-random", "estimator": "horvitz-thompson",
    ...     "outcome": "binary", "interval_method": "clopper-pearson", "confidence_level": 0.95, "n": 20,
    ...     "population_size": 100, "target": "population",
    ...     "nonresponse": {"drawn": 20, "labelled": 20, "rate": 0.0}},
    ...     ("a simple random sample without replacement", "cochran"))
    >>> found["sentences"][0]
    '20 of 100 units were labelled, drawn as a simple random sample without replacement.'
    """
    design, *sources = drawn or (f"a {estimate['design']} sample",)
    unknown = {"words": estimate["estimator"], "sources": []}
    mean = methods()["estimators"].get(estimate["estimator"], unknown)
    interval = methods()["intervals"].get(estimate["interval_method"], unknown | {"words": ""})
    shared = "" if allocation is None else f", its labels shared among the strata by the rule {allocation!r}"
    labelled = (estimate["nonresponse"] or {"labelled": estimate["n"]})["labelled"]
    entered = "" if estimate["n"] == labelled else f" The estimate rests on {estimate['n']:,} of them."
    sentences = [
        f"{labelled:,} of {estimate['population_size']:,} units were labelled, drawn as "
        f"{design}{shared}.{entered}",
        f"The estimate is {mean['words']}.",
    ]
    if interval["words"]:
        level = f"{100 * estimate['confidence_level']:g}%"
        sentences.append(f"Its {level} confidence interval is {interval['words']}.")
    neyman = ["neyman"] if allocation in ("neyman", "robust") else []
    cited = [*sources, *neyman, *mean["sources"], *interval["sources"]]
    return {
        "sentences": sentences,
        "assumptions": _assumptions(estimate, assumption),
        "references": [methods()["sources"].get(name, name) for name in dict.fromkeys(cited)],
    }


def _assumptions(estimate: Mapping[str, Any], assumption: str) -> list[str]:
    """Return what could fail."""
    found = [
        "The labels are right: what the annotators get wrong, the estimate takes for the truth.",
        "The units were drawn at random as described, and none was replaced by hand.",
    ]
    counts = estimate["nonresponse"]
    if counts is not None and counts["labelled"] < counts["drawn"]:
        found.append("Units without a label are like the labelled ones of their stratum.")
    if estimate["target"] == "population":
        found.append(
            f"The answer is about these {estimate['population_size']:,} units; nothing is claimed about "
            "units of another kind or time."
        )
    else:
        found.append("The units themselves are a random draw from the distribution that is asked about.")
    if estimate["outcome"] == "unbounded":
        found.append(
            "The mean of the labels is nearly normal: no outcome is so rare and large that none was seen."
        )
    if assumption:
        found.append(assumption)
    if estimate["estimator"] in ("ppi++", "stratppi"):
        found.append(
            "λ was fitted on the same labels; the loss of precision is counted, the small bias is not."
        )
    return found
