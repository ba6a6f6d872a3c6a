"""Projects, observations, scores and annotation queues as Langfuse's public API documents them, in memory.

It needs no package: `langfuse_server.py` serves it and checks each answer with the models of Langfuse's own
client, and the tests of the fast tier call it without a network.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

MAX_PER_PAGE = 100
SCORE_FIELDS = {"details", "subject", "annotation"}
ANNOTATOR = "ann"

Json = dict[str, Any]


class ApiError(Exception):
    """An answer with another status than 200."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def now() -> str:
    return datetime.now(UTC).isoformat()


def listed(query: Mapping[str, str], name: str) -> set[str] | None:
    """Return the values of a parameter that lists several; None without it."""
    text = query.get(name)
    return None if text is None else set(text.split(","))


class Store:
    """The state of a server with one project."""

    def __init__(self, public_key: str = "pk-test", secret_key: str = "sk-test") -> None:
        self.keys = (public_key, secret_key)
        self.observations: list[Json] = []
        self.scores: dict[tuple[str, str], Json] = {}
        self.configs: list[Json] = []
        self.queues: list[Json] = []
        self.items: list[Json] = []
        # Scores that were written, but cannot be read yet.
        self.hidden_scores: set[tuple[str, str]] = set()
        self.has_delay = False

    def respond(self, method: str, path: str, query: Mapping[str, str], body: Any) -> Json:
        """Return the answer to a request."""
        parts = path.removeprefix("/api/public/").split("/")
        match method, parts:
            case "GET", ["projects"]:
                organization = {"id": "o", "name": "an organization"}
                project = {"id": "p", "name": "support", "organization": organization, "metadata": {}}
                return {"data": [project]}
            case "GET", ["v2", "observations"]:
                return self.list_observations(query)
            case "GET", ["v3", "scores"]:
                return self.list_scores(query)
            case "POST", ["scores"]:
                return self.create_scores(body)
            case "GET", ["score-configs"]:
                return numbered_page(self.configs, query)
            case "POST", ["score-configs"]:
                return self.create(self.configs, body, projectId="p", isArchived=False)
            case "GET", ["annotation-queues"]:
                return numbered_page(self.queues, query)
            case "POST", ["annotation-queues"]:
                return self.create_queue(body)
            case "GET", ["annotation-queues", queue_id, "items"]:
                items = [item for item in self.items if item["queueId"] == queue_id]
                return numbered_page(items, query)
            case "POST", ["annotation-queues", queue_id, "items"]:
                return self.create(self.items, {"status": "PENDING"} | body, queueId=queue_id)
            case "PATCH", ["annotation-queues", _, "items", item_id]:
                item = next(item for item in self.items if item["id"] == item_id)
                item |= body | {"updatedAt": now()}
                return item
        raise ApiError(404, f"{method} {path}")

    def create(self, entries: list[Json], body: Json, **more: Any) -> Json:
        """Append an entry with an id and times."""
        times = {"createdAt": now(), "updatedAt": now()}
        entries.append({"id": uuid.uuid4().hex, **times, **body, **more})
        return entries[-1]

    def create_queue(self, body: Json) -> Json:
        config_ids = {config["id"] for config in self.configs}
        if not body["scoreConfigIds"] or not set(body["scoreConfigIds"]) <= config_ids:
            raise ApiError(400, "unknown score configuration")
        return self.create(self.queues, {"description": None} | body)

    def list_observations(self, query: Mapping[str, str]) -> Json:
        """Return a page, newest first, with the requested groups of fields."""
        start = query.get("fromStartTime", "")
        end = query.get("toStartTime")
        entries = [
            entry
            for entry in reversed(self.observations)
            if moment(entry["startTime"]) >= moment(start or "1970-01-01T00:00Z")
            and (end is None or moment(entry["startTime"]) < moment(end))
            and ("isRootObservation" not in query or entry["parentObservationId"] is None)
        ]
        if "io" not in query.get("fields", ""):
            hidden = ("input", "output")
            entries = [{k: value for k, value in entry.items() if k not in hidden} for entry in entries]
        return cursor_page(entries, query)

    def list_scores(self, query: Mapping[str, str]) -> Json:
        """Return a page of scores by the filters that the API documents."""
        if not set(query.get("fields", "details").split(",")) <= SCORE_FIELDS:
            raise ApiError(400, "unknown fields")
        filters = {name: listed(query, name) for name in ("id", "name", "source", "dataType")}
        subjects = {"trace": listed(query, "traceId"), "session": listed(query, "sessionId")}
        entries = []
        for key, score in self.scores.items():
            subject = score["subject"]
            trace_or_session = subject.get("traceId", subject["id"])
            kind = "session" if subject["kind"] == "session" else "trace"
            is_hidden = key in self.hidden_scores
            is_match = all(values is None or score[name] in values for name, values in filters.items())
            requested = {name: ids for name, ids in subjects.items() if ids is not None}
            if requested:
                is_match = is_match and trace_or_session in requested.get(kind, set())
            if is_match and not is_hidden:
                entries.append(score)
        return cursor_page(entries, query)

    def create_scores(self, body: list[Json]) -> Json:
        """Create scores; one of the same id and timestamp is replaced."""
        errors = []
        for entry in body:
            kind = "session" if entry.get("sessionId") else "trace"
            subject: Json = {"kind": kind, "id": entry.get("sessionId") or entry.get("traceId")}
            if entry.get("observationId"):
                trace = {"traceId": entry["traceId"]}
                subject = {"kind": "observation", "id": entry["observationId"], **trace}
            source = entry.get("source", "API")
            data_type = entry.get("dataType", "NUMERIC")
            if isinstance(entry["value"], str) != (data_type in ("CATEGORICAL", "TEXT")):
                errors.append({"message": "the value is of another type"})
                continue
            if source == "ANNOTATION" and entry.get("configId") is None:
                errors.append({"message": "an annotation needs a score configuration"})
                continue
            identifier = entry.get("id") or uuid.uuid4().hex
            key = (identifier, entry.get("timestamp") or now())
            score = {
                "id": identifier,
                "projectId": "p",
                "name": entry["name"],
                "value": entry["value"],
                "dataType": data_type,
                "source": source,
                "timestamp": key[1],
                "environment": "default",
                "createdAt": now(),
                "updatedAt": now(),
                "comment": entry.get("comment"),
                "configId": entry.get("configId"),
                "authorUserId": ANNOTATOR if source == "ANNOTATION" else None,
                "queueId": entry.get("queueId"),
                "subject": subject,
            }
            self.scores[key] = score
            if self.has_delay:
                self.hidden_scores.add(key)
        if errors:
            return {"accepted": len(body) - len(errors), "rejected": len(errors), "errors": errors}
        return {"message": "Accepted"}

    def add_traces(self, number_of_traces: int, first: int = 0) -> None:
        """Add traces, each a root observation with a child; two of them start in the same second."""
        for number in range(first, first + number_of_traces):
            start = f"2026-03-02T00:{number // 120:02}:{number // 2 % 60:02}.123456+00:00"
            root = {
                "id": f"{number + 1:016x}",
                "traceId": f"{number + 1:032x}",
                "startTime": start,
                "endTime": start,
                "projectId": "p",
                "parentObservationId": None,
                "type": "CHAIN",
                "input": f"question {number}",
                "output": f'{{"text": "answer {number}"}}',
            }
            child = {"id": f"{number + 100_001:016x}", "parentObservationId": root["id"]}
            self.observations += [root, root | child]


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def page_size(query: Mapping[str, str]) -> int:
    size = int(query.get("limit", 50))
    if size > MAX_PER_PAGE:
        raise ApiError(400, "limit greater than 100")
    return size


def cursor_page(entries: list[Json], query: Mapping[str, str]) -> Json:
    """Return a page with the cursor of the next one."""
    size = page_size(query)
    start = int(query.get("cursor", 0))
    meta: Json = {"limit": size}
    if start + size < len(entries):
        meta["cursor"] = str(start + size)
    return {"data": entries[start : start + size], "meta": meta}


def numbered_page(entries: list[Json], query: Mapping[str, str]) -> Json:
    """Return a page with the number of pages."""
    size = page_size(query)
    number = int(query.get("page", 1))
    pages = -(-len(entries) // size)
    meta = {"page": number, "limit": size, "totalItems": len(entries), "totalPages": pages}
    return {"data": entries[(number - 1) * size : number * size], "meta": meta}
