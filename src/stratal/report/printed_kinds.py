"""What every command prints with `--json`, in a short notation that `schemas` turns into JSON Schemas.

A kind is `"number"`, `"integer"`, `"text"`, `"boolean"` or the name of one of `PARTS`; `?` after it allows
null. `[kind]` is a list, a tuple any of several kinds, `{"*": kind}` an object with any names, and any other
dict an object whose names are given; a name that ends with `?` may be missing.
"""

from __future__ import annotations

from typing import Any

from stratal.report.printed_parts import ANY, PARTS

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
