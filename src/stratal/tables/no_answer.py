"""Words for no answer, no verdict or no score: one vocabulary for all readers."""

from __future__ import annotations

import re

# Texts of an empty cell in columns of numbers.
EMPTY_CELL_TEXTS = ("", "na", "n/a", "nan", "null", "none")

# Texts that programs write for an empty cell in any column.
_PLACEHOLDERS = frozenset({*EMPTY_CELL_TEXTS, "nil", "?", "-", "--"} - {""})

# Texts that annotators write if they have no answer.
_NO_ANSWER = frozenset(
    {
        *_PLACEHOLDERS,
        *("??", "tbd", "idk", "skip", "skipped"),
        *("unsure", "not sure", "unclear", "unknown", "undecided", "don't know", "dont know"),
        *("cannot tell", "can't tell", "cannot say"),
    }
)

# How a missing verdict is written.
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

# Result of a failed formula in a spreadsheet: #DIV/0!, #N/A.
_SPREADSHEET_ERROR = re.compile(r"#([a-z/0]+[!?]|n/a)")

# lm-evaluation-harness writes [invalid] where its filter found no answer; alone, `invalid` is a class.
_BRACKETED = re.compile(r"[\[(<{](.*)[\])>}]")
_BRACKETED_ONLY = "invalid"


def is_placeholder(text: str) -> bool:
    """Return whether a text means an empty cell."""
    return text.strip().casefold() in _PLACEHOLDERS


def is_no_answer(text: str) -> bool:
    """Return whether a text means that there is no answer."""
    plain = text.strip().casefold()
    return plain in _NO_ANSWER or _SPREADSHEET_ERROR.fullmatch(plain) is not None


def is_no_verdict(text: str) -> bool:
    """Return whether a text means that a judge or a metric has no verdict: empty, no answer, or a failure."""
    plain = " ".join(re.sub(r"[_\-]+", " ", text.strip().casefold().rstrip(".!")).split())
    plain = plain.replace("seable", "sable")  # both spellings are usual
    bracketed = _BRACKETED.fullmatch(plain)
    if bracketed is not None:
        plain = bracketed[1].strip()
        if plain == _BRACKETED_ONLY:
            return True
    return not text.strip() or is_no_answer(text) or is_no_answer(plain) or plain in _NO_VERDICT
