"""A platform in memory, with pages and failures on request."""

from __future__ import annotations

from dataclasses import dataclass, field

from stratal.tables.platforms.platform import PlatformAnswer, Unit


class ServerError(Exception):
    """An error of the server, whose text contains a secret."""

    error_code = "401"


ERRORS = (ServerError,)
SETTINGS = "FAKE_URL"


@dataclass
class FakeProject:
    """120 units in pages of 50; `fail_after` counts the calls of the server until it fails."""

    fail_after: int | None = None
    queues: dict = field(default_factory=dict)
    labels: dict = field(default_factory=dict)
    figures: dict = field(default_factory=dict)
    reads: list = field(default_factory=list)

    def call(self):
        if self.fail_after is not None:
            self.fail_after -= 1
            if self.fail_after < 0:
                raise KeyboardInterrupt

    def read_units(self, since, until):
        self.reads.append(since)
        units = [
            Unit(f"u{n}", 1_000 + n // 2, f"input {n}", f"answer {n}", {"judge": n / 120, "time": 3})
            for n in range(120)
        ]
        units = [unit for unit in units if since <= unit.time and (until is None or unit.time < until)]
        for start in range(0, len(units), 50):
            self.call()
            yield units[start : start + 50]

    def queue_units(self, name, ids, question, choices):
        queue = self.queues.setdefault(name, {"question": question, "choices": list(choices), "ids": []})
        missing = [unit for unit in ids if unit not in queue["ids"]]
        for unit in missing:
            self.call()
            queue["ids"].append(unit)
        return len(missing)

    def read_answers(self, name, ids):
        answers = [
            PlatformAnswer(unit, "Pass" if n % 10 else "Fail", "ann", 1_700_000_000_000 + n, "=note")
            for n, unit in enumerate(self.queues[name]["ids"])
        ]
        skipped = PlatformAnswer(answers[0].id, None, "bob", 1_700_000_000_000)
        return [skipped, *answers[1:], PlatformAnswer("of another sample", "Pass", "ann", 0)]

    def write_results(self, name, labels, figures):
        new = {unit: label for unit, label in labels.items() if self.labels.get(unit) != label}
        self.labels |= new
        self.figures |= figures
        return len(new)


PROJECT = FakeProject()


def open_project(project):
    return PROJECT
