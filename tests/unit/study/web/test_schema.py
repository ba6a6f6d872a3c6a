"""The page holds to its description as OpenAPI, whatever is sent (schemathesis makes it up)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from starlette.responses import JSONResponse
from tests.tiers import sized

from stratal.study import StudyQuestion, check_study
from stratal.study.import_export import REQUIRED_FIELDS
from stratal.study.journal import MAX_ID_CHARACTERS, MAX_NOTE_CHARACTERS, MAX_REQUEST_CHARACTERS
from stratal.study.question import CLASSES, MAX_ANSWER_CHARACTERS
from stratal.study.web.content import question_view

schemathesis = pytest.importorskip("schemathesis")

_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["kind", "message"],
            "properties": {"kind": {"type": "string"}, "message": {"type": "string"}},
        }
    },
}
_REFUSALS = {
    400: "not understood", 404: "no such link or item", 408: "too slow", 409: "not allowed now",
    413: "too large", 415: "no JSON", 429: "too often", 503: "busy", 507: "the disk is full or fails",
}  # fmt: skip
_ITEM = {
    "type": ["object", "null"],
    "required": ["id", "position", "fields", "sides", "answer", "flagged"],
    "properties": {
        "id": {"type": "string"},
        "position": {"type": "integer"},
        "fields": {"type": "array"},
        "sides": {"type": "array"},
        "answer": {"type": ["object", "null"]},
        "flagged": {"type": "boolean"},
    },
}
_TOKEN = {"name": "token", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def schema(question: StudyQuestion) -> dict[str, Any]:
    """Return the OpenAPI description of the page of a study that asks this."""
    here = {"item": _ITEM, "progress": {"type": "object"}}
    id_ = _query("id", _text(MAX_ID_CHARACTERS), required=True)
    before = _query("before", {"type": "string", "pattern": "^[0-9]{1,17}$"})
    paths = {
        "state": _get({**here, "form": {"type": "object"}, "annotator": {"type": "string"}}),
        "item": _get({"item": _ITEM}, id_),
        "trail": _get({"answers": {"type": "array"}}, before),
        "disagreements": _get({"disagreements": {"type": "array"}}),
        "act": _post({**here, "receipt": {"type": "object"}}, action_schema(question)),
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "stratal label", "version": "1"},
        "paths": {f"/a/{{token}}/api/{name}": path for name, path in paths.items()},
    }


def action_schema(question: StudyQuestion) -> dict[str, Any]:
    """Return what an action looks like, one form for each."""
    view = question_view(question)
    free = {
        "type": "string",
        "minLength": 1,
        "maxLength": MAX_ANSWER_CHARACTERS[CLASSES],
        "pattern": "^[a-z]+$",
    }
    value = free if view["kind"] == CLASSES else {"enum": [choice["value"] for choice in view["choices"]]}
    texts = {
        "item": _text(MAX_ID_CHARACTERS),
        "note": _text(MAX_NOTE_CHARACTERS),
        "request": {**_text(MAX_REQUEST_CHARACTERS), "minLength": 1},
        "seconds": {"type": ["number", "null"]},
        "value": value,
    }
    forms = [
        {
            "type": "object",
            "required": ["action", "request", *needed],
            "additionalProperties": False,
            "properties": {**texts, "action": {"const": action}},
        }
        for action, needed in REQUIRED_FIELDS.items()
    ]
    return {"oneOf": forms}


def _text(longest: int) -> dict[str, Any]:
    return {"type": "string", "maxLength": longest, "pattern": "^[^\\x00]*$"}


def _answers(properties: dict[str, Any]) -> dict[str, Any]:
    good = {"type": "object", "required": list(properties), "properties": properties}
    refusals = {str(status): _answer(what, _ERROR) for status, what in _REFUSALS.items()}
    return {"200": _answer("done", good), **refusals}


def _answer(what: str, content: dict[str, Any]) -> dict[str, Any]:
    return {"description": what, "content": {"application/json": {"schema": content}}}


def _query(name: str, described: dict[str, Any], *, required: bool = False) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": required, "schema": described}


def _get(properties: dict[str, Any], *parameters: dict[str, Any]) -> dict[str, Any]:
    return {"parameters": [_TOKEN, *parameters], "get": {"responses": _answers(properties)}}


def _post(properties: dict[str, Any], sent: dict[str, Any]) -> dict[str, Any]:
    body = {"required": True, "content": {"application/json": {"schema": sent}}}
    return {"parameters": [_TOKEN], "post": {"requestBody": body, "responses": _answers(properties)}}


HERE = {"host": "127.0.0.1:8000"}
QUICK = settings(
    max_examples=sized(15, 40),
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["act", "disagreements", "item", "state", "trail"])
def test_every_answer_is_one_that_the_description_names(page, name):
    async def app(scope, receive, send):
        answer = JSONResponse(schema(page.study.question)) if scope["path"] == "/schema" else page.app
        await answer(scope, receive, send)

    described = schemathesis.openapi.from_asgi("/schema", app, headers=HERE)
    operation = described[f"/a/{{token}}/api/{name}"]["POST" if name == "act" else "GET"]
    seen = []

    @QUICK
    @given(case=operation.as_strategy())
    def hold(case):
        case.path_parameters = {"token": page.tokens["ann"]}
        answer = case.call(headers=HERE)
        seen.append(answer.status_code)
        case.validate_response(answer)

    hold()
    assert seen
    assert max(seen) < 500
    assert check_study(page.study).problems == ()
