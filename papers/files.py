"""Files of outcomes and judges' scores: Parquet with `z` and `proxy`, and sets as they are published.

`python -m papers.roles DIR NAME scores SCORES.npy OUTCOMES.npy` writes the first kind by `write_scores`. For
the third paper scores are a judge's, in [0, 1], and outcomes NaN where there is no label; for the second
one, in files called rcv1, epsilon and news20, a classifier's, and whether it is right.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from papers.loaders import Predictions, arrays_of
from stratal.arrays import AnyArray, FloatArray
from stratal.errors import InputError

JUDGE = "judge"
"""Column of a judge's score in [0, 1], for sets that are published without one."""

ARENA = ("gpt-4-1106-preview", "claude-2.1")
"""The two models whose win rate Fisch et al. (2024) estimate."""


def prediction_files(directory: Path | None) -> list[Predictions]:
    """Return every set of a directory: Parquet files of outcomes and proxies in [0, 1], and published sets.

    Rows without an outcome are kept, as unlabelled ones; rows without a proxy are not. Published sets are
    `ratings.csv` (AttributedQA), `*.tsv` (Seahorse), `*.csv` (Chatbot Arena) and `*.npz` (the examples of
    ppi_py); see docs/papers/data.md.

    Parameters
    ----------
    directory : path, optional
        Nothing is found without one.

    Raises
    ------
    InputError
        For a directory that does not exist, and files that cannot be read.

    Examples
    --------
    >>> prediction_files(None)
    []
    """
    if directory is None:
        return []
    if not directory.is_dir():
        raise InputError(f"{directory} is no directory", action="Give --data a directory of data files.")
    found = [read_scores(path) for path in sorted(directory.glob("*.parquet"))]
    for pattern, reader in _PUBLISHED.items():
        found += [reader(path) for path in sorted(directory.glob(pattern))]
    return [entry for entry in found if entry is not None and _usable(entry)]


def _usable(found: Predictions) -> bool:
    known = found.z[found.labelled]
    inside = [bool(values.min() >= 0 and values.max() <= 1) for values in (known, found.proxy) if len(values)]
    return len(inside) == 2 and all(inside)


def _made(name: str, z: FloatArray, proxy: FloatArray) -> Predictions:
    """Return the rows that have a proxy."""
    kept = np.isfinite(proxy)
    return Predictions(name=name, z=z[kept], proxy=proxy[kept])


def read_scores(path: Path) -> Predictions | None:
    """Return the set of a Parquet file; None where these are not columns of numbers."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if not {"z", "proxy"} <= set(pq.read_schema(path).names):
            return None
        table = pq.read_table(path, columns=["z", "proxy"])
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path}: cannot be read as Parquet ({error})") from None
    if not all(_numeric(column.type) for column in table.columns):
        return None
    z, proxy = (column.to_numpy().astype(np.float64) for column in table.columns)
    return _made(path.stem, z, proxy)


def _numeric(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _rows(path: Path, *, tabs: bool = False) -> Iterator[dict[str, str]]:
    csv.field_size_limit(sys.maxsize)
    try:
        with path.open(newline="", encoding="utf-8-sig") as opened:
            if tabs:
                yield from csv.DictReader(opened, delimiter="\t", quoting=csv.QUOTE_NONE)
            else:
                yield from csv.DictReader(opened)
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read as a table ({error})") from None


def _judged_rows(path: Path, needed: set[str], *, tabs: bool = False) -> Iterator[dict[str, str]]:
    """Yield the rows of a table with these columns, and a judge's; none of another table."""
    for row in _rows(path, tabs=tabs):
        if not needed <= set(row):
            return
        if JUDGE not in row:
            what = f"{path}: has no column '{JUDGE}'"
            raise InputError(what, action="Add the scores of a judge in [0, 1].")
        yield row


def _number(text: str | None, path: Path, column: str) -> float:
    try:
        return float(text) if text else float("nan")
    except ValueError:
        raise InputError(
            f"{path}: column '{column}' has a value that is no number", given=repr(text)
        ) from None


def _verdict(text: str | None) -> float:
    return {"y": 1.0, "yes": 1.0, "n": 0.0, "no": 0.0}.get((text or "").strip().lower(), float("nan"))


def attributed_qa(path: Path) -> Predictions:
    """Return the best retrieve-and-read system of AttributedQA's `ratings.csv`, unlabelled rows too.

    Outcome: `human_rating` (Y or N; most rows have none); proxy: `nli_score` of the entailment model.

    Raises
    ------
    InputError
        For a file without these columns.
    """
    systems: dict[str, list[tuple[float, float]]] = {}
    needed = {"system_name", "human_rating", "nli_score"}
    for row in _rows(path):
        if not needed <= set(row):
            raise InputError(f"{path}: is not AttributedQA's table", allowed=f"columns {sorted(needed)}")
        pair = _verdict(row["human_rating"]), _number(row["nli_score"], path, "nli_score")
        systems.setdefault(row["system_name"], []).append(pair)
    rated = {
        name: _made(f"attributed_qa ({name})", *np.array(pairs).T)
        for name, pairs in systems.items()
        if any(np.isfinite(z) for z, _ in pairs)
    }
    read = {name: found for name, found in rated.items() if name.upper().startswith("RTR")} or rated
    if not read:
        raise InputError(f"{path}: no row has a human rating")
    return max(read.values(), key=lambda found: found.truth)


def seahorse(path: Path) -> Predictions | None:
    """Return attribution (`question4`) of mT5-XXL's summaries in Seahorse's table, with a column `judge`.

    None for a table of something else. The scores of the published metric (seahorse-xxl-q4 of the same
    authors) are not in the file; whoever has run it adds them as `judge`.

    Raises
    ------
    InputError
        For Seahorse's table without a column `judge`.
    """
    pairs = [
        (_verdict(row["question4"]), _number(row[JUDGE], path, JUDGE))
        for row in _judged_rows(path, {"model", "question4"}, tabs=True)
        if row["model"] in ("mt5_xxl", "mt5-xxl")
    ]
    return _made(f"seahorse ({path.stem})", *np.array(pairs).T) if pairs else None


def chatbot_arena(path: Path, models: tuple[str, str] = ARENA) -> Predictions | None:
    """Return the wins of one model over another in Chatbot Arena's table, with a column `judge`.

    `winner_model_a`, `winner_model_b` and `winner_tie` are 0 or 1; rows where none is set have no label.
    `judge` is the score of `model_a`, turned round where the models stand the other way. None for another
    table.

    Raises
    ------
    InputError
        For Chatbot Arena's table without a column `judge`.
    """
    pairs = []
    needed = {"model_a", "model_b", "winner_model_a", "winner_model_b", "winner_tie"}
    for row in _judged_rows(path, needed):
        if {row["model_a"], row["model_b"]} != set(models):
            continue
        score = _number(row[JUDGE], path, JUDGE)
        shares = {"winner_model_a": 1.0, "winner_tie": 0.5, "winner_model_b": 0.0}
        won = next((v for name, v in shares.items() if _number(row[name], path, name) == 1), float("nan"))
        turned = row["model_a"] != models[0]
        pairs.append((1 - won, 1 - score) if turned else (won, score))
    return _made("chatbot_arena", *np.array(pairs).T) if pairs else None


def ppi_example(path: Path) -> Predictions | None:
    """Return an example set of ppi_py, arrays `Y` and `Yhat` of one length; None for other arrays."""
    arrays = arrays_of(path)
    if not {"Y", "Yhat"} <= set(arrays):
        return None
    try:
        z, proxy = (np.asarray(arrays[name], np.float64).ravel() for name in ("Y", "Yhat"))
    except (TypeError, ValueError):
        raise InputError(f"{path}: 'Y' or 'Yhat' holds something else than numbers") from None
    if len(z) != len(proxy):
        raise InputError(f"{path}: 'Y' and 'Yhat' differ in length", given=f"{len(z)} and {len(proxy)}")
    return _made(path.stem, z, proxy)


def _table(path: Path) -> Predictions | None:
    return attributed_qa(path) if path.name.startswith("ratings") else chatbot_arena(path)


_PUBLISHED: dict[str, Callable[[Path], Predictions | None]] = {
    "*.csv": _table,
    "*.tsv": seahorse,
    "*.npz": ppi_example,
}


def write_scores(directory: Path, name: str, z: AnyArray, proxy: AnyArray) -> Path:
    """Write outcomes (N,), NaN where there is no label, and scores (N,), and return the file.

    Raises
    ------
    InputError
        For arrays that do not fit, and scores that are not finite.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {"z": np.asarray(z, np.float64), "proxy": np.asarray(proxy, np.float64)}
    shapes = {column.shape for column in columns.values()}
    if len(shapes) > 1 or columns["z"].ndim != 1 or not np.all(np.isfinite(columns["proxy"])):
        raise InputError(f"{name}: outcomes and scores do not fit", given=str(shapes), allowed="(N,), finite")
    directory.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), directory / f"{name}.parquet")
    return directory / f"{name}.parquet"
