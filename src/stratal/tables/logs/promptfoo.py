"""promptfoo: what `promptfoo eval --output out.json` writes (as of 0.121, results of version 3).

A unit is a test case; each prompt and provider has columns of its own. A test case is known by its variable
`id` or `item_id` where it has one, and otherwise by a hash of all its variables. With `--repeat` the repeats
of a test case are units of one cluster.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from stratal.errors import InputError
from stratal.tables.logs.log import ID_NAMES, NTH, Log, Row, make_log, number_or_none, require_keys, text_of

TOOL = "promptfoo"


def recognises(found: Any) -> bool:
    """Return whether a JSON document is one of this tool's.

    Examples
    --------
    >>> recognises({"evalId": "eval-1", "results": {"results": []}}), recognises([{"id": 0}])
    (True, False)
    """
    return isinstance(found, Mapping) and "evalId" in found and isinstance(found.get("results"), Mapping)


def read(found: Mapping[str, Any], source: str) -> Log:
    """Return a log of the document.

    Parameters
    ----------
    found : mapping
    source : str
        What it is called in errors.

    Raises
    ------
    InputError
        For a document without results, and for a result that lacks what every result has.

    Examples
    --------
    >>> result = {"testIdx": 0, "promptIdx": 0, "vars": {"id": "q7"}, "success": True, "score": 1,
    ...           "provider": {"id": "large"}, "prompt": {"raw": "2 + 2?"}, "response": {"output": "4"}}
    >>> read({"evalId": "eval-1", "results": {"results": [result]}}, "out.json").columns["score"]
    [1.0]
    """
    results = found["results"].get("results")
    if not isinstance(results, list) or not results:
        raise InputError(f"{source}: holds no results", action="Run `promptfoo eval --output out.json`.")
    for number, result in enumerate(results, start=1):
        _refuse_incomplete(result, f"{source}, result {number}")
    names = _variants(results)
    units, alike = _units(results), len({_prompt(result) for result in results}) == 1
    rows = []
    for result in sorted(results, key=lambda result: (result["testIdx"], result["promptIdx"])):
        test, repeat, unit = units[result["testIdx"]]
        rows.append(_row(result, (test, repeat, unit), names[result["promptIdx"]], alike))
    return make_log(TOOL, rows, variants="prompts and providers", cluster="test")


def _refuse_incomplete(result: Any, place: str) -> None:
    require_keys(result, place, TOOL, ("testIdx", "promptIdx", "vars", "score"))
    if not isinstance(result["vars"], Mapping) or not isinstance(result["testIdx"], int):
        raise InputError(
            f"{place}: its variables or its number have an unexpected type",
            action="Take the file that `promptfoo eval --output out.json` wrote.",
        )


def _variants(results: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Return the name of each prompt and provider: the provider's, with the prompt's where it has several."""
    providers: dict[int, str] = {}
    prompts: dict[int, str] = {}
    for result in results:
        provider = result.get("provider") or {}
        name = provider.get("label") or provider.get("id") if isinstance(provider, Mapping) else provider
        providers[result["promptIdx"]] = str(name or result["promptIdx"])
        prompts[result["promptIdx"]] = _prompt(result)
    if len(set(providers.values())) == len(providers):
        return providers
    order = {text: number for number, text in enumerate(dict.fromkeys(prompts.values()), start=1)}
    named = {index: f"{providers[index]}-prompt{order[prompts[index]]}" for index in providers}
    return named if len(set(named.values())) == len(named) else {i: f"{n}-{i}" for i, n in providers.items()}


def _prompt(result: Mapping[str, Any]) -> str:
    prompt = result.get("prompt")
    return str(prompt.get("label") or "") if isinstance(prompt, Mapping) else str(prompt or "")


def _units(results: Sequence[Mapping[str, Any]]) -> dict[int, tuple[str, int, str]]:
    """Return the test case, the repeat and the id of each numbered test."""
    by_number = {result["testIdx"]: result["vars"] for result in results}
    counts: dict[str, int] = {}
    places = []
    for number in sorted(by_number):
        test = _key(by_number[number])
        counts[test] = counts.get(test, 0) + 1
        places.append((number, test, counts[test]))
    repeated = max(counts.values()) > 1
    return {
        number: (test, repeat, f"{test}{NTH}{repeat}" if repeated else test)
        for number, test, repeat in places
    }


def _key(variables: Mapping[str, Any]) -> str:
    for name in ID_NAMES:
        if variables.get(name) not in (None, ""):
            return text_of(variables[name])
    text = json.dumps(variables, sort_keys=True, ensure_ascii=False)
    return hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:16]


def _row(result: Mapping[str, Any], place: tuple[str, int, str], variant: str, alike: bool) -> Row:
    test, repeat, unit = place
    prompt, response = result.get("prompt"), result.get("response")
    shared = {"test": test, "repeat": repeat}
    shared |= {f"vars.{name}": value for name, value in result["vars"].items()}
    requested = {"input": prompt.get("raw") if isinstance(prompt, Mapping) else prompt}
    answer = response.get("output") if isinstance(response, Mapping) else response
    named = result.get("namedScores")
    failed = answer is None and result.get("error")
    scores = {"score": None if failed else number_or_none(result["score"])}
    scores |= {str(name): number_or_none(value) for name, value in (named or {}).items() if name != "score"}
    if "success" in result:
        scores["success"] = None if failed else number_or_none(result["success"])
    own = {"answer": None if answer is None else text_of(answer)}
    shared, own = (shared | requested, own) if alike else (shared, requested | own)
    return Row(unit=unit, shared=shared, own=own, scores=scores, variant=variant)
