"""Langfuse's client without the package and without a network: its calls go to a store in memory."""

from __future__ import annotations

import re
from datetime import datetime
from types import ModuleType, SimpleNamespace


class ApiError(Exception):
    """An error of the server, whose text contains the request."""


class CreateScoreBatchResults(SimpleNamespace):
    """The answer to scores of which some are rejected."""


def camel_case(name):
    return re.sub(r"_(\w)", lambda match: match[1].upper(), name)


def snake_case(name):
    return re.sub(r"[A-Z]", lambda match: f"_{match[0].lower()}", name)


def request_value(value):
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list):
        return [request_value(entry) for entry in value]
    return value


def request_of(values):
    return {camel_case(name): request_value(value) for name, value in values.items()}


def parsed(value):
    """Return JSON as the client returns it: objects with attributes, and times."""
    if isinstance(value, dict):
        fields = {snake_case(name): parsed(entry) for name, entry in value.items()}
        optional = dict.fromkeys(("cursor", "comment", "author_user_id", "input", "output", "end_time"))
        return SimpleNamespace(**optional | fields)
    if isinstance(value, list):
        return [parsed(entry) for entry in value]
    if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\dT", value):
        return datetime.fromisoformat(value)
    return value


class FakeClient:
    """The calls that the module uses, with the names and arguments of the client."""

    def __init__(self, store, base_url, username, password):
        self.store = store
        self.keys = (username, password)
        self.annotation_queues = self
        self.observations = SimpleNamespace(get_many=self.call("GET", "v2/observations"))
        self.projects = SimpleNamespace(get=self.call("GET", "projects"))
        self.score_configs = SimpleNamespace(
            get=self.call("GET", "score-configs"), create=self.call("POST", "score-configs")
        )
        self.scores = SimpleNamespace(get_many=self.call("GET", "v3/scores"), create=self.create_scores)
        self.list_queues = self.call("GET", "annotation-queues")
        self.create_queue = self.call("POST", "annotation-queues")

    def call(self, method, path):
        def send(**options):
            if self.keys != self.store.keys:
                raise ApiError(f"headers: {self.keys}")
            self.store.before_request()
            values = {name: value for name, value in request_of(options).items() if value is not None}
            if method == "GET":
                query = {name: str(value) for name, value in values.items()}
                return parsed(self.store.respond(method, f"/api/public/{path}", query, None))
            return parsed(self.store.respond(method, f"/api/public/{path}", {}, values))

        return send

    def list_queue_items(self, queue_id, **options):
        return self.call("GET", f"annotation-queues/{queue_id}/items")(**options)

    def create_queue_item(self, queue_id, **options):
        return self.call("POST", f"annotation-queues/{queue_id}/items")(**options)

    def create_scores(self, request):
        self.store.before_request()
        answer = self.store.respond("POST", "/api/public/scores", {}, request)
        return CreateScoreBatchResults(**answer) if "rejected" in answer else parsed(answer)


def fake_modules(store):
    """Return the modules of the package by name."""
    api = ModuleType("langfuse.api")
    api.ConfigCategory = dict
    api.CreateScoreBatchResults = CreateScoreBatchResults
    api.CreateScoreRequest = lambda **fields: request_of(fields)
    api.LangfuseAPI = lambda **options: FakeClient(store, **options)
    core = ModuleType("langfuse.api.core")
    core.ApiError = ApiError
    return {"langfuse": ModuleType("langfuse"), "langfuse.api": api, "langfuse.api.core": core}
