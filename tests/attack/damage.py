"""Damaged files: whatever a reader accepts must be what was written."""

from __future__ import annotations

import gzip
import json
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import stratal
from stratal.errors import StratalError
from stratal.labels.label_files import read_labels

Reader = Callable[[Path], Any]


@dataclass
class Findings:
    """What an attack has found: how many tries, and what of them went wrong."""

    tries: int = 0
    refused: int = 0
    wrong: list[str] = field(default_factory=list)
    tracebacks: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        first = [*self.wrong[:3], *self.tracebacks[:3]]
        return (
            f"{self.tries:,} tries, {self.refused:,} refused, {len(self.wrong)} silently wrong, "
            f"{len(self.tracebacks)} tracebacks" + "".join(f"\n    {entry}" for entry in first)
        )

    def add(self, other: Findings) -> Findings:
        """Count another attack's findings in."""
        self.tries += other.tries
        self.refused += other.refused
        self.wrong += other.wrong
        self.tracebacks += other.tracebacks
        return self


def mutations(whole: bytes, rng: np.random.Generator) -> Iterator[tuple[str, bytes]]:
    """Yield damaged copies without end: cut, flipped, overwritten, doubled, left out, inserted."""
    kinds = ("cut", "flip", "byte", "zero", "double", "drop", "insert", "tail")
    while True:
        kind, place = str(rng.choice(kinds)), int(rng.integers(len(whole)))
        length = int(rng.integers(1, 1 + max(1, len(whole) // 8)))
        some = rng.bytes(int(rng.integers(1, 9)))
        head, rest = whole[:place], whole[place:]
        made = {
            "cut": head,
            "flip": head + bytes([rest[0] ^ 1 << int(rng.integers(8))]) + rest[1:],
            "byte": head + some[:1] + rest[1:],
            "zero": head + bytes(len(rest[:length])) + rest[length:],
            "double": head + rest[:length] + rest,
            "drop": head + rest[length:],
            "insert": head + some + rest,
            "tail": whole + some,
        }[kind]
        if made != whole:
            yield f"{kind} at {place} ({length})", made


@contextmanager
def warned() -> Iterator[None]:
    """Make every warning an error, but for the one of Ibis 12 itself on DuckDB 2."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "fetch_arrow_table", DeprecationWarning)
        yield


def attacked(path: Path, read: Reader, tries: int, rng: np.random.Generator) -> Findings:
    """Return what `read` makes of damaged copies of a file: refused, or equal to the whole one's answer."""
    whole, expected = path.read_bytes(), read(path)
    found, made = Findings(), mutations(whole, rng)
    for _ in range(tries):
        what, damaged = next(made)
        path.write_bytes(damaged)
        found.tries += 1
        try:
            with warned():
                answer = read(path)
        except StratalError:
            found.refused += 1
        except Exception as error:
            found.tracebacks.append(f"{path.name}: {what}: {error!r}"[:300])
        else:
            if answer != expected:
                found.wrong.append(f"{path.name}: {what}")
    path.write_bytes(whole)
    return found


def population() -> stratal.Population:
    """Return 80 units with all that a sample can hold."""
    numbers = np.arange(80)
    return stratal.Population.from_arrays(
        proxy={"p": (numbers * 7 % 80) / 80, "q": numbers * 1.5 - 3},
        ids=[f"ünit-{number}" for number in numbers],
        groups={"answer": np.where(numbers % 3, "cat", "dog")},
        show={
            "text": [f'"{number}",\n' for number in numbers],
            "more": [{"n": [k]} for k in numbers.tolist()],
        },
        predicted="answer",
    )


def sample_files(folder: Path) -> list[Path]:
    """Write samples of several designs in both formats; the file to damage of each."""
    units = population()
    designs = {
        "stratified": stratal.plan(units, budget=20).draw(seed=7),
        "random": stratal.designs.SimpleRandom(budget=12).draw(units, seed=3),
        "poisson": stratal.designs.Poisson(probability=0.3).draw(units, seed=5),
    }
    written = []
    for name, sample in designs.items():
        written.append(sample.write(folder / f"{name}.parquet"))
        table = sample.write(folder / f"{name}-table.csv")
        written += [table, sample.write(folder / f"{name}-text.csv").with_suffix(".json")]
    return written


def damaged_samples(tries: int, seed: int) -> Findings:
    """Damage sample files: Parquet, CSV, and the JSON beside a CSV."""
    rng, found = np.random.default_rng(seed), Findings()
    with tempfile.TemporaryDirectory() as place:
        paths = sample_files(Path(place))
        for path in paths:
            found.add(attacked(path, _read_sample, -(-tries // len(paths)), rng))
    return found


def studied(folder: Path) -> Path:
    """Make a study of two people with a skip, a change, disagreements, a decision and a second round."""
    from stratal.study import StudyQuestion, create_study
    from stratal.study.interim import extend_study

    units = population()
    sample = stratal.designs.SimpleRandom(budget=24).draw(units, seed=3)
    question = StudyQuestion.of_choices("Right?", ["Pass", "Fail"], rubric="Be strict.")
    place = folder / "study"
    with create_study(
        place, sample, question, annotators=["ann", "bob"], overlap=0.5, half_width=0.01, clock=lambda: 1e9
    ) as study:
        for number in range(2):
            for who in ("ann", "bob"):
                while (item := study.next_item(who)) is not None:
                    place_of = item.position + (who == "bob") * (item.position % 5 == 0)
                    study.submit(who, item.id, ("Pass", "Pass", "Fail")[place_of % 3], note=item.id)
            if number == 0:
                extend_study(study, 6, population=units, by_labels=False)
        first = study.history("ann")[-1].item
        study.submit("ann", first, "Fail")
        study.skip("bob", study.history("bob")[2].item)
        apart = study.disagreements()
        study.adjudicate("ann", apart[0].item.id, "Pass")
        study.database.close()
    return place


def _read_study(path: Path) -> Any:
    """Return all that the commands print of a study's answers."""
    from stratal.study import open_study, study_status
    from stratal.study.import_export import tool_question

    with open_study(path.parent, clock=lambda: 1e9) as study:
        labels, sample = study.labels(), study.sample()
        state = study_status(study)
        for name in ("stop", "folder", "time"):
            state.pop(name)
        tasks = study.tasks()
        report = stratal.findings(sample, labels).to_dict()
        page = study.reserve_for_page_file("ann", items=1)
        question = study.question
        return [
            repr(labels),
            state,
            repr(tasks),
            repr(tool_question(question)),
            report,
            question.to_dict(),
            repr(page),
        ]


def damaged_studies(tries: int, seed: int) -> Findings:
    """Flip one bit of a study's files: labels, state, report and exports are as they were, or refused."""
    import shutil

    rng, found = np.random.default_rng(seed), Findings()
    with tempfile.TemporaryDirectory() as place:
        whole = studied(Path(place))
        copy = Path(place) / "copy"
        for path in sorted(whole.iterdir()):
            if path.is_dir():
                continue
            share = 3 if path.suffix == ".sqlite" else 1
            content = path.read_bytes()
            expected = None
            for number in range(-1, tries * share // 6):
                shutil.rmtree(copy, ignore_errors=True)
                shutil.copytree(whole, copy)
                at, bit = int(rng.integers(len(content))), 1 << int(rng.integers(8))
                damaged = content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :]
                (copy / path.name).write_bytes(content if number < 0 else damaged)
                found.tries += 1
                try:
                    with warned():
                        answer = _read_study(copy / path.name)
                except StratalError:
                    found.refused += 1
                except Exception as error:
                    found.tracebacks.append(f"{path.name}: bit {bit} at {at}: {error!r}"[:300])
                else:
                    expected = expected or answer
                    if answer != expected:
                        found.wrong.append(f"{path.name}: bit {bit} at {at}")
    return found


def _read_sample(path: Path) -> stratal.Sample:
    return stratal.Sample.read(path.with_suffix(".csv") if path.suffix == ".json" else path)


def damaged_packed(tries: int, seed: int) -> Findings:
    """Damage packed text files of populations and of labels."""
    rng, found = np.random.default_rng(seed), Findings()
    rows = [f"u{number},0.{number:03d}" for number in range(200)]
    objects = [json.dumps({"id": f"u{number}", "proxy": number / 200}) for number in range(200)]
    with tempfile.TemporaryDirectory() as place:
        csv, lines = Path(place) / "rows.csv.gz", Path(place) / "rows.jsonl.gz"
        csv.write_bytes(gzip.compress("\n".join(["id,proxy", *rows]).encode()))
        lines.write_bytes(gzip.compress("\n".join(objects).encode()))
        for path in (csv, lines):
            found.add(attacked(path, _read_population, tries // 4, rng))
            found.add(attacked(path, _read_labels, tries // 4, rng))
    return found


def _read_population(path: Path) -> Any:
    units = stratal.Population.read(path, proxy="proxy")
    drawn = stratal.designs.SimpleRandom(budget=units.size).draw(units, seed=1)
    return [drawn.ids.tolist(), drawn.proxies.tolist()]


def _read_labels(path: Path) -> Any:
    return read_labels(path, value="proxy")


def damaged_texts(tries: int, seed: int) -> Findings:
    """Damage text and Parquet files, which hold no checksum: an answer or one refusal, never a traceback."""
    rng, found = np.random.default_rng(seed), Findings()
    numbers = np.arange(50)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "rows.csv").write_text("id,proxy\n" + "".join(f'"u{k}",0.{k}\n' for k in numbers))
        lines = [json.dumps({"id": f"u{k}", "proxy": k / 50}) for k in numbers.tolist()]
        (folder / "rows.jsonl").write_text("\n".join(lines))
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"id": numbers, "proxy": numbers / 50}), folder / "rows.parquet")
        paths = sorted(folder.iterdir())
        for path in paths:
            for read in (_read_population, _read_labels):
                found.add(attacked(path, read, -(-tries // 6), rng))
    found.wrong = []  # nothing tells a changed text from another one
    return found
