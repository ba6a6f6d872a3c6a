"""A server that stands in for Langfuse: `langfuse_server.py PORT SECONDS_PER_REQUEST`.

Each answer is validated by the models of Langfuse's own client. It is not Langfuse.
"""

from __future__ import annotations

import base64
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from langfuse.api.annotation_queues import (
    AnnotationQueue,
    AnnotationQueueItem,
    PaginatedAnnotationQueueItems,
    PaginatedAnnotationQueues,
)
from langfuse.api.commons import ScoreConfig
from langfuse.api.core.pydantic_utilities import parse_obj_as
from langfuse.api.observations import ObservationsV2Response
from langfuse.api.projects import Projects
from langfuse.api.score_configs import ScoreConfigs
from langfuse.api.scores import CreateScoresRequest, CreateScoresResponse, GetScoresV3Response
from langfuse_store import ApiError, Store

# Model of the answer by method and last part of the path.
MODELS: dict[tuple[str, str], Any] = {
    ("GET", "projects"): Projects,
    ("GET", "observations"): ObservationsV2Response,
    ("GET", "scores"): GetScoresV3Response,
    ("POST", "scores"): CreateScoresResponse,
    ("GET", "score-configs"): ScoreConfigs,
    ("POST", "score-configs"): ScoreConfig,
    ("GET", "annotation-queues"): PaginatedAnnotationQueues,
    ("POST", "annotation-queues"): AnnotationQueue,
    ("GET", "items"): PaginatedAnnotationQueueItems,
    ("POST", "items"): AnnotationQueueItem,
}
STORE = Store()
LOCK = threading.Lock()
PORT = int(sys.argv[1])
SECONDS_PER_REQUEST = float(sys.argv[2])


class Handler(BaseHTTPRequestHandler):
    """Requests with the keys of the project; `/traces/N` adds what an application sends by OpenTelemetry."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        time.sleep(SECONDS_PER_REQUEST)
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length) or "null")
        url = urlsplit(self.path)
        try:
            with LOCK:
                answer = self.respond(url.path, dict(parse_qsl(url.query)), body)
        except ApiError as failure:
            self.send(failure.status, {"message": str(failure)})
        else:
            self.send(200, answer)

    do_POST = do_PATCH = do_GET  # noqa: N815

    def respond(self, path: str, query: dict[str, str], body: Any) -> Any:
        if path == "/":
            return {}
        if (
            self.headers.get("Authorization")
            != f"Basic {base64.b64encode(':'.join(STORE.keys).encode()).decode()}"
        ):
            raise ApiError(401, "Invalid credentials")
        if path.startswith("/traces/"):
            return STORE.add_traces(int(path.rpartition("/")[2]))
        if (self.command, path) == ("POST", "/api/public/scores"):
            parse_obj_as(CreateScoresRequest, body)
        answer = STORE.respond(self.command, path, query, body)
        model = MODELS.get((self.command, path.rpartition("/")[2]), AnnotationQueueItem)
        parse_obj_as(model, answer)
        return answer

    def send(self, status: int, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
