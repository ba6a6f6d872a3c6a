"""A study of 10⁵ items and 10⁶ lines of journal: how long each thing that a page asks for takes.

`python -m benchmarks.study [items] [lines]` writes benchmarks/results/study.md.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from benchmarks.helpers import latency_table

import stratal
from stratal.study import Study, StudyQuestion, check_study, create_study, study_status
from stratal.study.journal import Action, Entry, append

RESULT = Path(__file__).parent / "results" / "study.md"
PEOPLE = ("ann", "bob", "carol", "dan")
ROUNDS = 500
"""Items that each of the four people does while the times are taken."""

COUNTS = """
INSERT INTO answer SELECT item, annotator, seq, status, value FROM current;
UPDATE item SET answers = (SELECT count(*) FROM answer WHERE answer.item = item.item
    AND status = 'submitted');
UPDATE item SET apart = (SELECT count(DISTINCT value) > 1 FROM answer WHERE answer.item = item.item
    AND status = 'submitted');
UPDATE item SET wanted = max(0, copies - answers);
UPDATE annotator SET submitted = (SELECT count(*) FROM answer WHERE annotator = name
    AND status = 'submitted'), skipped = (SELECT count(*) FROM answer WHERE annotator = name
    AND status = 'skipped');
UPDATE tally SET done = (SELECT sum(min(answers, copies)) FROM item),
    undecided = (SELECT sum(apart) FROM item);
INSERT INTO given SELECT item, annotator, 0, 0, 0, 0 FROM answer;
"""


def make(folder: Path, items: int, lines: int) -> Study:
    """Return a study with a journal as people would have written it: most items done, each changed often."""
    generator = np.random.default_rng(1)
    ids = [f"unit-{number}" for number in range(items)]
    population = stratal.Population.from_arrays(proxy=generator.random(items), ids=ids)
    sample = stratal.designs.SimpleRandom(budget=items).draw(population, seed=1)
    question = StudyQuestion.of_choices("Is the answer correct?", ["Pass", "Fail"])
    study = create_study(folder, sample, question, annotators=PEOPLE, overlap=0.2)
    done = int(items * 0.8)
    with study.database.write() as connection:
        known = [row["id"] for row in connection.execute("SELECT id FROM item ORDER BY item")]
        for number in range(lines):
            item = number % done
            person = PEOPLE[(item + (number // done) % 2) % len(PEOPLE)]
            action: Action = "skip" if generator.random() < 0.02 else "submit"
            value = None if action == "skip" else ("Pass" if generator.random() < 0.8 else "Fail")
            append(connection, Entry(
                annotator=person, action=action, item=item + 1, id=known[item], value=value, seconds=9.0
            ))  # fmt: skip
        for statement in COUNTS.split(";"):
            connection.execute(statement)
    return study


def timed(times: dict[str, list[float]], name: str, call: Callable[[], object]) -> object:
    """Call, and note how long it took."""
    start = time.perf_counter()
    result = call()
    times.setdefault(name, []).append(time.perf_counter() - start)
    return result


def work(study: Study, who: str, times: dict[str, list[float]]) -> None:
    """Do what one person's page does, again and again."""
    for number in range(ROUNDS):
        item = timed(times, "next item", lambda: study.next_item(who))
        assert item is not None
        value = "Pass" if number % 3 else "Fail"
        timed(times, "submit", lambda item=item, value=value: study.submit(who, item.id, value))  # type: ignore[misc]
        timed(times, "progress", lambda: study.progress(who))
        if number % 10 == 0:
            timed(times, "undo", lambda: study.undo(who))
            timed(times, "flag", lambda item=item: study.flag(who, item.id))  # type: ignore[misc]
            timed(times, "history", lambda: study.history(who))
            timed(times, "disagreements", lambda: study.disagreements(limit=20))
            timed(times, "look back", lambda item=item: study.item(who, item.id))  # type: ignore[misc]


def main(items: int = 100_000, lines: int = 1_000_000) -> None:
    """Make the study, take the times, write them down."""
    with tempfile.TemporaryDirectory() as place:
        start = time.perf_counter()
        study = make(Path(place) / "study", items, lines)
        made = time.perf_counter() - start
        alone: dict[str, list[float]] = {}
        work(study, PEOPLE[0], alone)
        parts: list[dict[str, list[float]]] = [{} for _ in PEOPLE]
        threads = [
            threading.Thread(target=work, args=(study, who, part))
            for who, part in zip(PEOPLE, parts, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        together = {name: [t for part in parts for t in part[name]] for name in parts[0]}
        whole: dict[str, list[float]] = {}
        found = timed(whole, "check", lambda: check_study(study))
        timed(whole, "status", lambda: study_status(study))
        size = (study.folder / "study.sqlite").stat().st_size / 1e6
        study.close()
    text = [
        "# A large study",
        f"`python -m benchmarks.study {items} {lines}`: {items:,} items, {lines:,} lines of journal, made in "
        f"{made:.0f} s, {size:.0f} MB; {os.cpu_count()} cores, every save on disk (`synchronous=FULL`). The "
        f"study is {'sound' if getattr(found, 'sound', False) else 'NOT SOUND'} at the end.",
        "## One person", *latency_table("what", alone),
        "## Four people at once", *latency_table("what", together),
        "## The whole study", *latency_table("what", whole),
    ]  # fmt: skip
    RESULT.write_text(
        "\n".join(f"\n{line}\n" if line.startswith("#") else line for line in text).strip() + "\n"
    )
    print(RESULT.read_text())


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
