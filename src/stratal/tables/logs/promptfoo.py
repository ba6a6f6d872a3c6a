"""Logs of promptfoo: files of `promptfoo eval --output out.json` (as of 0.121, results of version 3).

A unit is a test case; each prompt and provider has its own columns. The id of a test case is its variable
`id` or `item_id`, or otherwise a hash of all its variables. With `--repeat`, the repeats of a test case are
units of one cluster.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from stratal.errors import InputError
from stratal.protocols import JsonDict, JsonMapping
from stratal.question.column_words import ID_NAMES
from stratal.tables.logs.log import (
    PROMPTFOO,
    REPEAT_SEPARATOR,
    Log,
    LogRow,
    is_empty_output,
    json_text,
    make_log,
    occurrence_numbers,
    read_rows,
    with_prefix,
)


def read_promptfoo(document: JsonMapping, source: str) -> Log:
    """Return the log of an output file of promptfoo; `source` names it in errors."""
    results = document["results"].get("results")
    if not results:
        raise InputError(f"{source} contains no results", action="Run `promptfoo eval --output out.json`.")
    if any("testIdx" not in result or "promptIdx" not in result for result in results):
        results = _number_results(results)
    test_ids = {result["testIdx"]: _test_id(result["vars"]) for result in results}
    test_ids = dict(sorted(test_ids.items()))
    repeats = dict(zip(test_ids, occurrence_numbers(test_ids.values()), strict=True))
    variant_names = _variant_names(results)
    have_one_prompt = len({_prompt_name(result) for result in results}) == 1

    def read_result(result: JsonMapping) -> LogRow:
        test = test_ids[result["testIdx"]]
        repeat = repeats[result["testIdx"]]
        prompt = result.get("prompt")
        response = result.get("response")
        unit_columns = {"test": test, "repeat": repeat, **with_prefix("vars", result["vars"])}
        prompt_column = {"input": prompt.get("raw") if isinstance(prompt, Mapping) else prompt}
        if isinstance(response, Mapping):
            answer = response.get("output")
            error = response.get("error")
        else:
            answer = response
            error = None
        variant_columns = {"answer": None if answer is None else json_text(answer)}
        # The prompt describes the unit, unless the variants are prompts.
        if have_one_prompt:
            unit_columns |= prompt_column
        else:
            variant_columns = prompt_column | variant_columns
        return LogRow(
            unit=f"{test}{REPEAT_SEPARATOR}{repeat}" if max(repeats.values()) > 1 else test,
            unit_columns=unit_columns,
            variant_columns=variant_columns,
            scores=_scores_of_result(result),
            variant=variant_names[result["promptIdx"]],
            failed=bool(error) or is_empty_output(answer),
        )

    rows = read_rows(PROMPTFOO, results, f"{source}, result", read_result)
    keys = [(result["testIdx"], result["promptIdx"]) for result in results]
    rows = [rows[index] for index in sorted(range(len(rows)), key=keys.__getitem__)]
    return make_log(PROMPTFOO, rows, variants="prompts and providers", cluster="test")


# `failureReason` of a result that no assertion could score (promptfoo's ResultFailureReason.ERROR).
_FAILED_WITH_ERROR = 2


def _scores_of_result(result: JsonMapping) -> JsonDict:
    """Return the scores of a result, None for those of an assertion whose grader failed.

    The score and the success of the whole test are then unknown, too, unless another assertion failed it.
    """
    scores = {"score": None} | (result.get("namedScores") or {}) | {"score": result["score"]}
    if "success" in result:
        scores["success"] = result["success"]
    if result.get("failureReason") == _FAILED_WITH_ERROR:
        return dict.fromkeys(scores)
    components = (result.get("gradingResult") or {}).get("componentResults") or []
    assertions = [component for component in components if component is not None]
    unscored_assertions = [
        assertion for assertion in assertions if (assertion.get("metadata") or {}).get("graderError")
    ]
    if not unscored_assertions:
        return scores
    metrics = {(assertion.get("assertion") or {}).get("metric") for assertion in unscored_assertions}
    unknown_scores = {"score", *(name for name in metrics if name)}
    has_other_failure = any(
        assertion.get("pass") is False for assertion in assertions if assertion not in unscored_assertions
    )
    if not has_other_failure:
        unknown_scores.add("success")
    return scores | dict.fromkeys(unknown_scores & set(scores))


def _number_results(results: Sequence[Mapping[str, object]]) -> list[JsonDict]:
    """Return results of version 2 with the numbers of their test and of their prompt, which they do not have.

    A second answer of the same prompt and provider to a test is a repeat.
    """
    prompts: dict[str, int] = {}
    tests: dict[tuple[str, int], int] = {}
    prompt_keys = [
        json.dumps([result.get("provider"), _prompt_name(result)], sort_keys=True) for result in results
    ]
    test_keys = [json.dumps(result["vars"], sort_keys=True) for result in results]
    repeats = occurrence_numbers(zip(prompt_keys, test_keys, strict=True))
    return [
        {
            **result,
            "promptIdx": prompts.setdefault(prompt, len(prompts)),
            "testIdx": tests.setdefault((test, repeat), len(tests)),
        }
        for result, prompt, test, repeat in zip(results, prompt_keys, test_keys, repeats, strict=True)
    ]


def _variant_names(results: Sequence[JsonMapping]) -> dict[int, str]:
    """Return the name of each prompt and provider: the provider, with the prompt if it has several."""
    prompts = {result["promptIdx"]: _prompt_name(result) for result in results}
    providers = {}
    for result in results:
        provider = result.get("provider") or {}
        if isinstance(provider, Mapping):
            name = provider.get("label") or provider.get("id")
        else:
            name = provider
        providers[result["promptIdx"]] = str(name or result["promptIdx"])
    order = {text: number for number, text in enumerate(dict.fromkeys(prompts.values()), start=1)}
    names_with_prompt = {index: f"{name}-prompt{order[prompts[index]]}" for index, name in providers.items()}
    names_with_number = {index: f"{name}-{index}" for index, name in providers.items()}
    return next(
        names
        for names in (providers, names_with_prompt, names_with_number)
        if len(set(names.values())) == len(names)
    )


def _prompt_name(result: Mapping[str, object]) -> str:
    """Return the label or the text of a result's prompt."""
    prompt = result.get("prompt")
    if isinstance(prompt, Mapping):
        return str(prompt.get("label") or "")
    return str(prompt or "")


def _test_id(variables: Mapping[str, object]) -> str:
    """Return the id of a test case from its variables."""
    for name in ID_NAMES:
        if variables.get(name) not in (None, ""):
            return json_text(variables[name])
    text = json.dumps(variables, sort_keys=True, ensure_ascii=False)
    return hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:16]
