"""The page of a large study: how long its answers take, and what two clients that never rest can do to it.

`python -m benchmarks.page [items] [lines] [seconds]` writes benchmarks/results/page.md.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks.helpers import latency_table
from benchmarks.study import PEOPLE, make

from stratal.study import check_study, open_study

RESULT = Path(__file__).parent / "results" / "page.md"
TURNS = 300
"""Items that each person labels while the times are taken."""

MAIN = [sys.executable, "-c", "from stratal.cli import main; main()"]
COMMAND = [*MAIN, "study", "label", "--port", "0", "--json"]


class Client:
    """One person's page: one connection, the requests that the page makes."""

    def __init__(self, link: str, times: dict[str, list[float]]) -> None:
        parts = urlsplit(link)
        self.path, self.times, self.number = parts.path, times, 0
        self.connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=60)

    def ask(self, name: str, rest: str, body: Any = None) -> tuple[int, Any]:
        """Make one request; return status and answer."""
        start = time.perf_counter()
        headers = {"Content-Type": "application/json"} if body else {}
        sent = json.dumps(body) if body else None
        if self.connection.sock is None:
            self.connection.connect()
        self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection.request("POST" if body else "GET", self.path + rest, sent, headers)
        answer = self.connection.getresponse()
        text = answer.read()
        self.times.setdefault(name, []).append(time.perf_counter() - start)
        return answer.status, json.loads(text) if text[:1] == b"{" else text

    def act(self, action: str, **fields: Any) -> tuple[int, Any]:
        """Do one thing."""
        self.number += 1
        body = {"action": action, "request": f"{os.getpid()}-{id(self)}-{self.number}", **fields}
        return self.ask(action, "api/act", body)


@contextmanager
def server(folder: Path) -> Any:
    """Serve a study in a process of its own; gives what it printed: `links` and `owner`."""
    process = subprocess.Popen([*COMMAND, str(folder)], stdout=subprocess.PIPE, text=True)
    lines: list[str] = []
    assert process.stdout
    while process.poll() is None and (not lines or lines[-1] != "}\n"):
        lines.append(process.stdout.readline())
    try:
        yield json.loads("".join(lines))
    finally:
        process.terminate()
        process.wait()


def work(link: str, times: dict[str, list[float]], pause: float) -> None:
    """Do what one person does, pausing between items, so that no limit of the server is what is measured."""
    client = Client(link, times)
    client.ask("page", "")
    item = client.ask("state", "api/state")[1]["item"]
    for turn in range(TURNS):
        if item is None:
            return
        status, answer = client.act("submit", item=item["id"], value="Pass", seconds=3.0)
        assert status == 200, answer
        if turn % 10 == 0:
            client.ask("item", f"api/item?id={item['id']}")
            client.ask("trail", "api/trail")
            client.ask("disagreements", "api/disagreements")
            answer = client.act("undo")[1]
        item = answer["item"]
        time.sleep(pause)


def flood(link: str, seconds: float, said: Counter[int]) -> None:
    """Submit the same item again and again, as fast as it goes."""
    client = Client(link, {})
    item = client.ask("state", "api/state")[1]["item"]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        said[client.act("submit", item=item["id"], value="Pass")[0]] += 1


def watch(link: str, times: dict[str, list[float]], over: threading.Event) -> None:
    """Ask for the figures as the owner's page does."""
    client = Client(link, times)
    while not over.wait(3.0):
        client.ask("owner's figures", "api/status")


def together(calls: list[Any]) -> None:
    """Run calls at once, each in a thread."""
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def table(times: dict[str, list[float]]) -> str:
    """Return the times as a table."""
    return "\n".join(latency_table("request", times))


def main(items: int = 100_000, lines: int = 1_000_000, seconds: float = 60.0) -> None:
    """Measure, and write the page."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "study"
        make(folder, items, lines).close()
        one: dict[str, list[float]] = {}
        four: dict[str, list[float]] = {}
        with server(folder) as served:
            links = served["links"]
            work(links[PEOPLE[0]], one, 0.04)
            over = threading.Event()
            owner = threading.Thread(target=watch, args=(served["owner"], four, over))
            owner.start()
            together([lambda who=who: work(links[who], four, 0.25) for who in PEOPLE])
            over.set()
            owner.join()
        said: Counter[int] = Counter()
        beside: dict[str, list[float]] = {}
        with server(folder) as served:
            links = served["links"]
            others = [lambda who=who: flood(links[who], seconds, said) for who in PEOPLE[:2]]
            together([*others, lambda: work(links[PEOPLE[2]], beside, 0.25)])
        with open_study(folder) as study:
            sound = check_study(study).sound
    codes = ", ".join(f"{count:,} answered {status}" for status, count in sorted(said.items()))
    load = os.getloadavg()[1]
    total, shown = sum(said.values()), " ".join(map(str, (items, lines, int(seconds))))
    parts = [
        "# The page of a large study",
        f"`python -m benchmarks.page {shown}`: {items:,} items, {lines:,} lines of journal; server "
        f"and clients on the same {os.cpu_count()} cores, every save on disk; load of the machine at the "
        f"end {load:.1f}. The study is {'sound' if sound else 'NOT sound'} at the end.",
        f"## One person, 0.04 s between items\n\n{table(one)}",
        f"## Four people, 0.25 s between items, and the owner's page\n\n{table(four)}",
        f"## Two clients that submit as fast as they can, for {seconds:.0f} s",
        f"{total:,} requests, {total / seconds:,.0f} a second: {codes} (429: more than 50 a second of one "
        f"annotator). A third person meanwhile:\n\n{table(beside)}",
    ]
    RESULT.write_text("\n\n".join(parts) + "\n")
    print(RESULT.read_text())


if __name__ == "__main__":
    main(*(int(given) for given in sys.argv[1:]))
