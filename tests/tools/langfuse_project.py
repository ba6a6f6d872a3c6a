"""What an application and reviewers do in Langfuse: `langfuse_project.py seed N`, `annotate`, `count`."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import httpx
from langfuse.api import CreateScoreRequest, LangfuseAPI

URL = os.environ["LANGFUSE_BASE_URL"]
KEYS = (os.environ["LANGFUSE_PUBLIC_KEY"], os.environ["LANGFUSE_SECRET_KEY"])
API = LangfuseAPI(base_url=URL, username=KEYS[0], password=KEYS[1])
PER_PAGE = 100


def seed(n: int) -> None:
    """Add traces with the score of a judge, which is right in eight of ten: of the trace, or of its root."""
    httpx.post(f"{URL}/traces/{n}", auth=KEYS, timeout=60).raise_for_status()
    scores = []
    for number in range(n):
        root = {} if number % 2 else {"observation_id": f"{number + 1:016x}"}
        value = 0.9 if number % 5 else 0.2
        trace_id = f"{number + 1:032x}"
        scores.append(CreateScoreRequest(name="judge", value=value, trace_id=trace_id, **root))
    API.scores.create(request=scores)


def queues() -> Any:
    return API.annotation_queues.list_queues().data


def items(queue: Any) -> list[Any]:
    return list(API.annotation_queues.list_queue_items(queue.id, limit=PER_PAGE).data)


def annotate() -> None:
    """Answer as ann: every seventh item is completed without a score, every tenth fails."""
    [queue] = queues()
    for number, item in enumerate(sorted(items(queue), key=lambda item: item.object_id)):
        if number % 7:
            answer = CreateScoreRequest(
                name=queue.name,
                value="Fail" if number % 10 == 0 else "Pass",
                trace_id=item.object_id,
                comment="clear",
                data_type="CATEGORICAL",
                source="ANNOTATION",
                config_id=queue.score_config_ids[0],
                queue_id=queue.id,
            )
            API.scores.create(request=[answer])
        API.annotation_queues.update_queue_item(queue.id, item.id, status="COMPLETED")


def scores() -> list[Any]:
    entries, cursor = [], None
    while True:
        page = API.scores.get_many(fields="subject", limit=PER_PAGE, cursor=cursor)
        entries += page.data
        cursor = page.meta.cursor
        if cursor is None:
            return entries


def count() -> None:
    """Print what the server has."""
    units = []
    cursor = None
    while cursor is not None or not units:
        page = API.observations.get_many(is_root_observation=True, limit=PER_PAGE, cursor=cursor)
        units += [root.trace_id for root in page.data]
        cursor = page.meta.cursor
    entries = scores()
    feedback = [
        [score.subject.id, score.name, score.value] for score in entries if score.data_type == "CATEGORICAL"
    ]
    figures: dict[str, dict[str, float]] = {}
    for score in entries:
        if score.subject.kind == "session":
            figures.setdefault(score.subject.id, {})[score.name] = score.value
    result = {
        "units": units,
        "queues": {queue.name: [item.object_id for item in items(queue)] for queue in queues()},
        "feedback": feedback,
        "figures": list(figures.values()),
    }
    print(json.dumps(result))


command, *arguments = sys.argv[1:]
{"seed": seed, "annotate": annotate, "count": count}[command](*map(int, arguments))
