"""A study's folder and the items of its sample's rounds."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from stratal.designs.handover import empty_folder
from stratal.designs.sample import Sample
from stratal.errors import InputError
from stratal.randomness import id_texts, keys_of_ids, shown_order
from stratal.report import plain
from stratal.study.database import DATABASE, Connection
from stratal.study.journal import append_round
from stratal.study.question import Question

MEDIA = "media"


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Yield a folder whose files are put into `folder`, new or empty, when the block ends without an error.

    Examples
    --------
    >>> place = Path(tempfile.mkdtemp()) / "new"
    >>> with new_folder(place) as partial:
    ...     _ = (partial / "note.txt").write_text("whole")
    >>> (place / "note.txt").read_text()
    'whole'
    """
    empty_folder(folder)
    there, partial = folder.is_dir(), None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(dir=folder if there else folder.parent, prefix=".new."))
        yield partial
        if there:
            # The database comes last: without it there is no study yet.
            for path in sorted(partial.iterdir(), key=lambda path: path.name == DATABASE):
                path.rename(folder / path.name)
        else:
            partial.rename(folder)
    except OSError as error:
        what = f"{folder}: cannot write here ({error.strerror or error})"
        raise InputError(what, action="Choose another folder.") from None
    finally:
        if partial is not None:
            shutil.rmtree(partial, ignore_errors=True)


def add_items(connection: Connection, folder: Path, sample: Sample, number: int) -> int:
    """Add the sample's round `number` to a study, its file beside the database; return how many items."""
    question = Question.from_dict(json.loads(connection.setting("question") or "{}"))
    share, copies = float(connection.setting("overlap") or 0), int(connection.setting("copies") or 1)
    path = sample.write(folder / f"sample-{number}.parquet")
    digest = digest_of(path)
    # In the order in which they are shown: random across strata.
    rows = [int(row) for row in shown_order(sample.ids, sample.seed) if sample.round[row] == number]
    texts, shown = id_texts(sample.ids), payloads(sample, question)
    several = overlapping([texts[row] for row in rows], sample.seed, share)
    people = [copies if wanted else 1 for wanted in several]
    start = connection.one("SELECT coalesce(max(item), 0) + 1 FROM item")[0]
    connection.execute("INSERT INTO round VALUES (?, ?, ?, ?)", (number, path.name, digest, len(rows)))
    connection.executemany(
        "INSERT INTO item (item, id, round, stratum, copies, payload, wanted) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            (place, texts[row], number, int(sample.stratum[row]), k, shown[row], k)
            for place, (row, k) in enumerate(zip(rows, people, strict=True), start=start)
        ),
    )
    connection.execute("UPDATE tally SET total = total + ?", (sum(people),))
    append_round(connection, number, path.name, digest)
    return len(rows)


def overlapping(texts: list[str], seed: int, share: float) -> list[bool]:
    """Return which items several people label: a share of them, at random, the same whenever it is asked.

    Examples
    --------
    >>> sum(overlapping(["a", "b", "c", "d"], 7, 0.5))
    2
    """
    keys = keys_of_ids(texts, seed, "overlap:")
    chosen = set(np.argsort(keys, kind="stable")[: math.ceil(share * len(texts))].tolist())
    return [place in chosen for place in range(len(texts))]


def payloads(sample: Sample, question: Question) -> list[str]:
    """Return what annotators see of each unit, as JSON; refuses what would lead them."""
    leading = {*sample.proxy_names, *([sample.predicted] if sample.predicted else [])} & set(sample.shown)
    if leading:
        allowed = "shown columns that are neither a proxy nor the model's answer"
        raise InputError(f"column '{min(leading)}' would lead the annotators", allowed=allowed)
    missing = [name for name in question.pair or () if name not in sample.shown]
    if missing:
        raise InputError(f"column '{missing[0]}' is not shown", action="Draw the sample with it (--show).")
    columns = {name: values.tolist() for name, values in sample.shown.items()}
    columns = columns or {sample.id_name: id_texts(sample.ids)}
    units = zip(*columns.values(), strict=True)
    # What is not a number is null, which every page can read.
    return [
        json.dumps(plain(dict(zip(columns, unit, strict=True))), ensure_ascii=False, default=str)
        for unit in units
    ]


def digest_of(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
