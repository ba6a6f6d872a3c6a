"""JSON Schemas of what every command prints with `--json`; objects may gain names later and lose none."""

from __future__ import annotations

from typing import Any

from stratal.errors import InputError, near_names
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
    "label_value": {"value": "text", "count": "integer", "meaning": ANY},
    "several": tuple(
        {
            kind: ["row"],
            "leaderboard?": ["place"],
            "confidence_level": "number",
            "label_values?": ["label_value"],
            "notes": ["text"],
        }
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
        "label_values?": ["label_value"],
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


COMMANDS: dict[str, Any] = {
    "backup": "check",
    "check": "check",
    "demo": {
        "plan": "plan",
        "estimate": "estimate",
        "truth": "number",
        "equivalent_random_labels": "number?",
        "repeats": "integer",
        "output?": "text",
    },
    "doctor": (
        "inspection",
        {
            "file": "text",
            "tool": "text",
            **dict.fromkeys(("answers", "items", "skipped"), "integer"),
            "annotators": ["text"],
            "belongs_to": ["text"],
        },
        {"file": "text", "rows": "integer", "answers": "integer", "belongs_to": ["text"], "id": "text"},
        {"folder": "text", "kind": "text"},
        {"folder": "text", "logs": {"*": "text"}},
    ),
    "draw": {
        "sample": "text",
        "new": "integer",
        "to_label?": "text",
        **{f"{name}?": "integer" for name in ("n", "seed", "population_size", "round")},
        "design?": "text",
        "half_width?": "number",
        "half_widths?": ["number"],
        "needed?": "needed?",
    },
    "estimate": ("estimate", "several"),
    "export": (
        {"study": "text", "annotator": "text", "file": "text", "bytes": "integer"},
        {"study": "text", "to": "text", "file": "text", "items": "integer", "annotator?": "text"},
    ),
    "extend": {
        "study": "text",
        **dict.fromkeys(("n", "new", "round"), "integer"),
        "enough": "boolean",
    },
    "import": (
        {
            **dict.fromkeys(("study", "file", "tool"), "text"),
            **dict.fromkeys(("new", "changed", "skipped", "same", "repeated", "unmatched"), "integer"),
            "strangers": ["text"],
            "annotators": {"*": "integer"},
            "applied": "boolean",
            "notes": ["text"],
        },
        {"study": "text", "file": "text", "saved": "integer", "repeated": "integer", "applied": "boolean"},
    ),
    "init": {
        "study": "text",
        **dict.fromkeys(("n", "population_size", "seed", "answers"), "integer"),
        "design": "text",
        "question": {
            "text": "text",
            "kind": "text",
            "choices": [{"name": "text", "value": "number?", "key": "text"}],
            "scale": "interval?",
            "rubric": "text",
            "rubric_version": "integer",
        },
        "annotators": ["text"],
        "shown": ["text"],
    },
    "inspect": "inspection",
    "label": {"study": "text", "address": "text", "links": {"*": "text"}},
    "plan": "plan",
    "report": {
        "kind": "text",
        **dict.fromkeys(("title", "question"), "text?"),
        "quantity": "text",
        "share": "boolean",
        "confidence_level": "number",
        "estimate": "estimate",
        "side_by_side": [
            {
                "name": "text",
                "estimate": "number?",
                "confidence_interval": "interval?",
                "what": "text",
                "reported": "boolean",
            }
        ],
        "strata": [{**PARTS["stratum"], "drawn": "integer", "proxy_mean": "number?"}],
        "calibration": "calibration?",
        "more_labels": [{"labels": "integer", "half_width": "number"}],
        "agreement": "agreement?",
        "new_version": "version?",
        "method": {name: ["text"] for name in ("sentences", "assumptions", "references")},
        "provenance": "provenance",
        "examples": [{"*": ANY}],
    },
    "schema": {"$schema": "text", "$id": "text", "title": "text", "*": ANY},
    "simulate": {
        "columns": ["text"],
        "rows": [{"*": ANY}],
        "labels_to_reach": [
            {"design": "text", "estimator": "text", "labels": "number?", "labels_se": "number?"}
        ],
        "written": ["text"],
    },
    "status": {
        **dict.fromkeys(("study", "folder", "question", "journal", "head"), "text"),
        "rubric_version": "integer",
        "server": "text?",
        "annotators": [
            {
                "annotator": "text",
                **dict.fromkeys(("submitted", "skipped"), "integer"),
                "rounds": [dict.fromkeys(("round", "submitted", "skipped"), "integer")],
                "set_aside": "boolean",
                "seconds_per_item": "number?",
                **dict.fromkeys(("first", "last"), "text?"),
            }
        ],
        "rounds": [dict.fromkeys(("round", "items", "labelled", "wanted", "answers"), "integer")],
        "nonresponse": {
            **dict.fromkeys(("items", "labelled", "skipped", "open"), "integer"),
            "strata": [
                {
                    "stratum": "text",
                    **dict.fromkeys(("items", "labelled", "skipped", "open"), "integer"),
                }
            ],
        },
        "disagreements": dict.fromkeys(("open", "decided"), "integer"),
        "flags": [{"item": "text", "annotator": "text", "note": "text?"}],
        "time": dict.fromkeys(("seconds_per_item", "seconds_left"), "number?"),
        "agreement": "agreement?",
        "drift": [{"annotator": "text", "what": "text", "parts": ["number"], "p_value": "number?"}],
        "estimate": "estimate?",
        "anytime_interval": "interval?",
        "stop": {"half_width": "number?", "enough": "boolean"},
        "notes": ["text"],
    },
    "team": {
        "study": "text",
        **{name: ["text"] for name in ("annotators", "adjudicators", "set_aside")},
        "rubric_version": "integer",
    },
}
"""What each command prints, by its name."""


DIALECT = "https://json-schema.org/draft/2020-12/schema"

_PLAIN = {"text": "string", "number": "number", "integer": "integer", "boolean": "boolean"}


def command_schema(command: str, *, closed: bool = False) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of what a command prints with `--json`.

    Parameters
    ----------
    command : str
    closed : bool
        Whether objects may have no other names than those given: for tests.

    Raises
    ------
    InputError
        For a command that there is not.

    Examples
    --------
    >>> command_schema("extend")["properties"]["enough"]
    {'type': 'boolean'}
    """
    if command not in COMMANDS:
        raise InputError(f"no such command: {command!r}", allowed=near_names(command, COMMANDS))
    maker = _Maker(closed)
    made = maker.schema(COMMANDS[command])
    return {
        "$schema": DIALECT,
        "$id": f"stratal-{command}.schema.json",
        "title": f"stratal {command} --json",
        **made,
        **({"$defs": maker.definitions()} if maker.used else {}),
    }


class _Maker:
    """Turns the notation into schemas, and remembers which parts it needed."""

    def __init__(self, closed: bool) -> None:
        self.closed = closed
        self.used: dict[str, None] = {}

    def definitions(self) -> dict[str, Any]:
        """Return the schemas of the parts that were needed, and of those that these need."""
        found: dict[str, Any] = {}
        while set(self.used) - set(found):
            for name in list(self.used):
                if name not in found:
                    found[name] = self.schema(PARTS[name])
        return found

    def schema(self, kind: Any) -> dict[str, Any]:
        """Return the schema of a kind."""
        if isinstance(kind, list):
            return {"type": "array", "items": self.schema(kind[0])}
        if isinstance(kind, dict):
            return self._object(kind)
        if isinstance(kind, tuple):
            return {"anyOf": [self.schema(one) for one in kind]}
        name, null = kind.removesuffix("?"), kind.endswith("?")
        if name == ANY:
            return {}
        if name in _PLAIN:
            return {"type": [_PLAIN[name], "null"] if null else _PLAIN[name]}
        self.used[name] = None
        reference = {"$ref": f"#/$defs/{name}"}
        return {"anyOf": [reference, {"type": "null"}]} if null else reference

    def _object(self, names: dict[str, Any]) -> dict[str, Any]:
        given = {name: kind for name, kind in names.items() if name != "*"}
        made: dict[str, Any] = {"type": "object"}
        if given:
            made["properties"] = {name.removesuffix("?"): self.schema(kind) for name, kind in given.items()}
            made["required"] = [name for name in given if not name.endswith("?")]
        if "*" in names:
            made["additionalProperties"] = self.schema(names["*"])
        elif self.closed:
            made["additionalProperties"] = False
        return made
