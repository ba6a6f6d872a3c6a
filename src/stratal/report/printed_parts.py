"""What several commands print with `--json`, in the notation of `printed_kinds`."""

from __future__ import annotations

from typing import Any

from stratal.report.estimates import TABLES

ANY = "any"
_INTERVAL = ["number?"]

_FOUND = {"estimate": "number?", "standard_error": "number?", "confidence_interval": "interval?"}
_LABEL = {f"{name}?": "text?" for name in ("estimand", "metric", "class", "domain", "a", "b")}
"""What an estimate that is not of the mean is of."""
_TABLES = {f"{kind}?": ["row"] for kind in TABLES} | {"leaderboard?": ["place"]}
_EXPECTED = dict.fromkeys(
    (
        *("expected_standard_error", "hopeful_standard_error", "cautious_standard_error"),
        *("relative_efficiency", "worst_standard_error"),
    ),
    "number?",
)
_SPAN = {"estimate": "number?", "lowest": "number", "highest": "number", "confidence_interval": "interval?"}

PARTS: dict[str, Any] = {
    "interval": _INTERVAL,
    "nonresponse": {
        "drawn": "integer",
        "labelled": "integer",
        "rate": "number",
        "worst_bounds?": "interval?",
    },
    "stratum": {
        "name": "text",
        "size": "integer",
        "n": "integer",
        "mean": "number?",
        "standard_deviation": "number?",
        "weight": "number",
        "lam": ["number"],
    },
    "row": {
        **_LABEL,
        "outcome?": "text",
        **_FOUND,
        "p_value?": "number?",
        "n": "integer",
        "ratio?": "ratio?",
        "win_rate?": {**_FOUND, "ties": "number"},
    },
    "ratio": _FOUND,
    "place": {
        "rank": "ranks?",
        "model": "text",
        "mean": "number",
        "confidence_interval": "interval?",
        "to_best": "number?",
        "to_best_interval": "interval?",
    },
    "ranks": ["integer"],
    "several": tuple(
        {kind: ["row"], "leaderboard?": ["place"], "confidence_level": "number", "notes": ["text"]}
        for kind in TABLES
    ),
    "estimate": {
        **_LABEL,
        **_FOUND,
        "degrees_of_freedom": "number?",
        "confidence_level": "number?",
        "interval_method": "text?",
        "n": "integer",
        "labels?": "integer",
        "population_size": "integer",
        "target": "text",
        "design": "text",
        "estimator": "text",
        "outcome": "text",
        "bounds": "interval?",
        "lam": ["number"],
        "design_effect": "number?",
        "effective_sample_size": "number?",
        "effective_sample_size_interval": "interval?",
        "random_labels_of_equal_width": "number?",
        "relative_efficiency": "number?",
        "nonresponse": "nonresponse",
        "strata": ["stratum"],
        "notes": ["text"],
        **_TABLES,
        "requirement?": {"lower": "number?", "upper": "number?", "met": "boolean"},
    },
    "planned": {"design": "text", "estimator": "text", **_EXPECTED},
    "plan": {
        "labels?": {"used": "integer", "source": "text", "mean": "number", "proxy_mean": "number?"},
        "population_size": "integer",
        "budget": "integer",
        "half_width": "number?",
        "assume": "text?",
        "pilot": "boolean",
        "expected_half_width": "number?",
        "half_width_range": "interval?",
        "worst_half_width": "number?",
        "worst_bounds": "interval?",
        "detectable_difference": "number?",
        "confidence_level": "number",
        "recommended": "planned",
        "allocation": "text",
        "stratification": "text",
        "designs": ["planned"],
        "strata": [
            {
                "name": "text",
                "size": "integer",
                "n": "integer",
                "proxy_mean": "number?",
                "expected_standard_deviation": "number?",
            }
        ],
        "estimand?": {"*": ANY},
        "estimands?": [
            {
                "estimand": "text",
                "labels": "integer",
                **dict.fromkeys(("expected_standard_error", "expected_half_width"), "number"),
                **dict.fromkeys(("wanted_half_width", "relative_efficiency"), "number?"),
            }
        ],
        "assumptions": ["text"],
        "notes": ["text"],
    },
    "needed": {
        "wanted": "number",
        "half_width": "number?",
        "reached": "boolean",
        "additional": "integer",
        "expected_total": "integer",
        "estimand?": "text",
    },
    "judged_models": {"column": "text", "count": "integer", "first": "text", "id": "text?"},
    "inspection": {
        "file": "text",
        "rows": "integer",
        "columns": [
            {
                "name": "text",
                "kind": "text",
                "missing": "integer?",
                "distinct": "integer?",
                **dict.fromkeys(("minimum", "maximum", "mean"), "number?"),
            }
        ],
        "softmax": ANY,
        "models": "judged_models?",
        "notes": ["text"],
        "population_size?": "integer",
        "proxies?": [
            {
                "name": "text",
                "scaled": "boolean",
                "bounds": "interval?",
                "mean": "number",
                "bins": "integer",
                "quantiles": ["number"],
            }
        ],
        "groups?": {"*": "integer"},
    },
    "pair": {
        "first": "text",
        "second": "text",
        "shared": "integer",
        "agreeing": "number?",
        "kappa": "number?",
        "classes": ["text"],
        "confusion": [["integer"]],
    },
    "agreement": {
        "annotators?": ["text"],
        "answers?": "integer",
        "units?": "integer",
        "shared?": "integer",
        "alpha": "number?",
        "level": "text",
        "variance?": "number?",
        "agreed?": "number?",
        "open?": "integer",
        "decided?": "integer",
        "note?": "text",
        "pairs?": ["pair"],
    },
    "check": {
        "study": "text",
        "sound": "boolean",
        "problems": ["text"],
        "notes": ["text"],
        "items": "integer",
        "lines": "integer",
        "head": "text",
    },
    "bias": {"estimate": "number", "confidence_interval": "interval"},
    "calibration": {
        "proxy": "text",
        "bias": "bias?",
        "bins": [
            {
                **dict.fromkeys(("from", "to", "proxy_mean"), "number"),
                "n": "integer",
                "outcome_mean": "number?",
                "confidence_interval": "interval?",
            }
        ],
    },
    "version": {
        **dict.fromkeys(("units", "labelled", "missing", "same", "changed"), "integer"),
        **dict.fromkeys(("blank", "known"), "integer"),
        "complete": "boolean",
        "confidence_level": "number",
        **dict.fromkeys(("old", "new", "difference"), _SPAN),
        "needs_labels": ["text"],
        "needs_answers": ["text"],
    },
    "provenance": {
        **dict.fromkeys(("written", "stratal", "drawn with stratal", "design", "sample's SHA-256"), "text"),
        **dict.fromkeys(("Python", "numpy", "scipy"), "text"),
        "seed": "integer",
        "commands": ["text"],
    },
}
"""What several commands print."""
