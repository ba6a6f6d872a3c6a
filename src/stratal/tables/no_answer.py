"""Words that say that there is no answer, no verdict or no score: one vocabulary for every reader."""

from __future__ import annotations

import re

# What programs write for an empty cell.
_PLACEHOLDERS = frozenset({"n/a", "na", "none", "null", "nil", "nan", "?", "-", "--"})

# What people write where they have no answer.
_NO_ANSWER = frozenset(
    {
        *_PLACEHOLDERS,
        *("??", "tbd", "idk", "skip", "skipped"),
        *("unsure", "not sure", "unclear", "unknown", "undecided", "don't know", "dont know"),
        *("cannot tell", "can't tell", "cannot say"),
    }
)

# What judges and metrics write in addition where they failed, or could not be read; spaces for `_` and `-`.
_NO_VERDICT = frozenset(
    {
        *("error", "errored", "exception", "timeout", "timed out", "missing", "empty", "undefined"),
        *("not parsable", "unparsable", "unparsed", "parse error"),
        *("parsing error", "parse failure", "parse failed", "parsing failed", "failed to parse"),
        *("could not parse", "cannot parse", "not parsed", "invalid response", "invalid output"),
        *("invalid format", "invalid json", "invalid verdict", "invalid answer"),
        *("no response", "no verdict", "no output", "no score", "no rating", "no decision", "no judgement"),
        *("no judgment", "not available", "not applicable", "not evaluated", "not scored", "not graded"),
        *("not rated", "not judged", "unscored", "ungraded", "unrated", "uncertain", "abstain", "abstained"),
        *("inconclusive", "undetermined", "indeterminate", "cannot determine", "cannot assess"),
        *("cannot be determined", "unable to determine", "unable to judge", "insufficient information"),
        *("judge error", "grader error", "api error", "evaluation error", "rate limit error"),
    }
)

# What a spreadsheet shows where a formula fails: #DIV/0!, #N/A.
_SPREADSHEET_ERROR = re.compile(r"#([a-z/0]+[!?]|n/a)")

# lm-evaluation-harness writes [invalid] where its filter found no answer; alone, `invalid` is a class.
_BRACKETED = re.compile(r"[\[(<{](.*)[\])>}]")
_BRACKETED_ONLY = "invalid"


def is_placeholder(text: str) -> bool:
    """Return whether a text is what programs write for an empty cell.

    Examples
    --------
    >>> is_placeholder("NA"), is_placeholder("unsure")
    (True, False)
    """
    return text.strip().casefold() in _PLACEHOLDERS


def is_no_answer(text: str) -> bool:
    """Return whether a text says that there is no answer.

    Examples
    --------
    >>> [is_no_answer(text) for text in ("N/A", "#DIV/0!", "no", "no answer")]
    [True, True, False, False]
    """
    plain = text.strip().casefold()
    return plain in _NO_ANSWER or _SPREADSHEET_ERROR.fullmatch(plain) is not None


def is_no_verdict(text: str) -> bool:
    """Return whether a text says that a judge or a metric gave no verdict: empty, no answer, or a failure.

    Examples
    --------
    >>> [is_no_verdict(text) for text in ("", "unknown", "NOT_PARSABLE", "[invalid]", "invalid", "fail")]
    [True, True, True, True, False, False]
    """
    plain = " ".join(re.sub(r"[_\-]+", " ", text.strip().casefold().rstrip(".!")).split())
    plain = plain.replace("seable", "sable")  # both spellings are usual
    bracketed = _BRACKETED.fullmatch(plain)
    if bracketed is not None:
        plain = bracketed[1].strip()
        if plain == _BRACKETED_ONLY:
            return True
    return not text.strip() or is_no_answer(text) or is_no_answer(plain) or plain in _NO_VERDICT
