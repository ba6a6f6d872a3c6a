"""DeepEval: the test runs that it keeps in `DEEPEVAL_RESULTS_FOLDER` and in `.deepeval/` (as of 4.3).

A unit is a test case; of a conversation, each of the assistant's turns, all of one cluster, with the scores
of the whole conversation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stratal.errors import InputError
from stratal.tables.logs.log import NTH, Log, Row, distinguished, make_log, number_or_none, require_keys

TOOL = "DeepEval"
_CASES, _TALKS = "testCases", "conversationalTestCases"


def recognises(found: Any) -> bool:
    """Return whether a JSON document is one of this tool's.

    Examples
    --------
    >>> recognises({"testCases": [], "metricsScores": []}), recognises([{"id": 0}])
    (True, False)
    """
    run = _run(found)
    return isinstance(run, Mapping) and (_CASES in run or _TALKS in run) and "metricsScores" in run


def read(found: Mapping[str, Any], source: str) -> Log:
    """Return a log of the document.

    Raises
    ------
    InputError
        For a run without test cases, and for a test case that lacks what every one has.

    Examples
    --------
    >>> case = {"name": "q7", "input": "2 + 2?", "actualOutput": "4", "success": True,
    ...         "metricsData": [{"name": "Exact Match", "score": 1.0}]}
    >>> read({"testCases": [case], "metricsScores": []}, "run.json").columns["Exact Match"]
    [1.0]
    """
    run = _run(found)
    cases, talks = _listed(run, _CASES, source), _listed(run, _TALKS, source)
    if bool(cases) == bool(talks):
        raise InputError(
            f"{source}: holds {'test cases and conversations' if cases else 'no test case'}",
            allowed="test cases, or conversations",
            action="Run them apart." if cases else "Run `evaluate` with DEEPEVAL_RESULTS_FOLDER set.",
        )
    if cases:
        return make_log(TOOL, [_row(case, unit) for case, unit in _named(cases)])
    rows = [row for talk, unit in _named(talks) for row in _turns(talk, unit)]
    return make_log(TOOL, rows, cluster="conversation")


def _run(found: Any) -> Any:
    return found.get("testRunData", found) if isinstance(found, Mapping) else None


def _listed(run: Mapping[str, Any], name: str, source: str) -> list[Mapping[str, Any]]:
    cases = run.get(name) or []
    if not isinstance(cases, list) or not all(isinstance(case, Mapping) for case in cases):
        raise InputError(
            f"{source}: {name!r} is not a list of test cases", action="Take the file as DeepEval wrote it."
        )
    for number, case in enumerate(cases, start=1):
        needed = ("input", "actualOutput") if name == _CASES else ("turns",)
        require_keys(case, f"{source}, test case {number}", TOOL, needed)
        metrics = case.get("metricsData")
        if not isinstance(metrics, list) or not all(
            isinstance(entry, Mapping) and "name" in entry for entry in metrics
        ):
            raise InputError(f"{source}, test case {number}: has no metrics", action="Run it with a metric.")
    return list(cases)


def _named(cases: Sequence[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], str]]:
    names = distinguished(str(case.get("name") or f"case-{number}") for number, case in enumerate(cases))
    return list(zip(cases, names, strict=True))


def _scores(case: Mapping[str, Any]) -> dict[str, float | None]:
    scores = {str(entry["name"]): number_or_none(entry.get("score")) for entry in case["metricsData"]}
    return scores | {"success": number_or_none(case.get("success"))}


def _row(case: Mapping[str, Any], unit: str) -> Row:
    shared = {"input": case["input"], "target": case.get("expectedOutput")}
    shared |= {f"metadata.{name}": value for name, value in (case.get("metadata") or {}).items()}
    kept = {name: value for name, value in shared.items() if value is not None}
    return Row(unit=unit, shared=kept, own={"answer": case["actualOutput"]}, scores=_scores(case))


def _turns(talk: Mapping[str, Any], unit: str) -> list[Row]:
    said = [turn for turn in talk["turns"] if isinstance(turn, Mapping)]
    plain = [{"role": turn.get("role"), "content": turn.get("content")} for turn in said]
    return [
        Row(
            unit=f"{unit}{NTH}{number}",
            shared={
                "conversation": unit,
                "turn": number,
                "turns": plain[:place],
            },
            own={"answer": turn.get("content")},
            scores=_scores(talk),
        )
        for number, (place, turn) in enumerate(
            ((place, turn) for place, turn in enumerate(said) if turn.get("role") == "assistant"), start=1
        )
    ]
