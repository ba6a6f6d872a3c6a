"""Texts that mean no answer, no verdict or no score, in tables of any kind."""

from __future__ import annotations

import re

# Texts of an empty cell in columns of numbers.
EMPTY_CELL_TEXTS = ("", "na", "n/a", "nan", "null", "none", "<na>")

# Texts that programs write for an empty cell in any column.
_PLACEHOLDERS = frozenset(
    {
        *("na", "n/a", "nan", "null", "none", "nil", "<na>", "?", "-", "--", "(blank)", "(empty)", "(none)"),
        *("unlabeled", "unlabelled", "not labeled", "not labelled", "no label", "to label", "todo", "to do"),
        *("unannotated", "not annotated", "not yet annotated", "not yet labeled", "not yet labelled"),
        *("unreviewed", "not reviewed", "not yet reviewed", "awaiting review", "awaiting label"),
    }
)

# Texts that annotators write if they have no answer.
_NO_ANSWER = frozenset(
    {
        *_PLACEHOLDERS,
        *("??", "tbd", "idk", "skip", "skipped"),
        *("unsure", "not sure", "unclear", "unknown", "undecided", "don't know", "dont know"),
        *("cannot tell", "can't tell", "cannot say"),
    }
)

# Text for a missing verdict in messages and tables.
NO_VERDICT = "no verdict"

# Further texts that judges and metrics write if they failed or cannot be parsed; `_` and `-` are spaces.
_NO_VERDICT = frozenset(
    {
        *("error", "errored", "exception", "timeout", "timed out", "missing", "empty", "undefined"),
        *("not parsable", "unparsable", "unparsed", "parse error"),
        *("parsing error", "parse failure", "parse failed", "parsing failed", "failed to parse"),
        *("could not parse", "cannot parse", "not parsed", "invalid response", "invalid output"),
        *("invalid format", "invalid json", "invalid verdict", "invalid answer"),
        *("no response", NO_VERDICT, "no output", "no score", "no rating", "no decision", "no judgement"),
        *("no judgment", "not available", "not applicable", "not evaluated", "not scored", "not graded"),
        *("not rated", "not judged", "unscored", "ungraded", "unrated", "uncertain", "abstain", "abstained"),
        *("inconclusive", "undetermined", "indeterminate", "cannot determine", "cannot assess"),
        *("cannot be determined", "unable to determine", "unable to judge", "insufficient information"),
        *("judge error", "grader error", "api error", "evaluation error", "rate limit error"),
    }
)

# Result of a failed formula in a spreadsheet, such as #DIV/0! and #N/A, in lower case.
_SPREADSHEET_ERROR = re.compile(r"#([a-z/0]+[!?]|n/a)")

# lm-evaluation-harness writes [invalid] where its filter found no answer; alone, `invalid` is a class.
_BRACKETED_TEXT = re.compile(r"[\[(<{](.*)[\])>}]")
_NO_VERDICT_IN_BRACKETS = "invalid"


def is_placeholder(text: str) -> bool:
    """Return whether a text means an empty cell."""
    return text.strip().casefold() in _PLACEHOLDERS


def is_no_answer(text: str) -> bool:
    """Return whether a text means that there is no answer."""
    normalised = text.strip().casefold()
    return normalised in _NO_ANSWER or _SPREADSHEET_ERROR.fullmatch(normalised) is not None


def is_no_verdict(text: str) -> bool:
    """Return whether a text means that a judge or a metric has no verdict: empty, no answer, or a failure."""
    normalised = " ".join(re.sub(r"[_\-]+", " ", text.strip().casefold().rstrip(".!")).split())
    normalised = normalised.replace("seable", "sable")  # both spellings are usual
    bracketed = _BRACKETED_TEXT.fullmatch(normalised)
    if bracketed is not None:
        normalised = bracketed[1].strip()
        if normalised == _NO_VERDICT_IN_BRACKETS:
            return True
    return not text.strip() or is_no_answer(text) or is_no_answer(normalised) or normalised in _NO_VERDICT
