"""`stratal inspect`: what is in a file, and which columns could serve as id and proxy."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from stratal.cli import options as o
from stratal.cli.output import print_json, print_next, print_page, print_text, progress
from stratal.cli.plan import new_folder
from stratal.cli.records import takes


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectOptions(o.Reading):
    """The options of `inspect`.

    Examples
    --------
    >>> from pathlib import Path
    >>> InspectOptions(file=Path("p.csv")).json
    False
    """

    json: o.Json = False


@takes(InspectOptions, without=("by", "show", "features", "predicted", "second_moment"))
def inspect(asked: InspectOptions) -> None:
    """Show the columns of a file; with --proxy, check it as a population and show the proxy's quantiles."""
    from stratal.population.inspection import describe_columns, describe_proxies, suggestion
    from stratal.report import inspection_page

    reading = o.part(o.Reading, asked)
    with progress("reading"):
        columns = describe_columns(asked.file, **asked.of_file)
        named = asked.proxy is not None or asked.groups is not None or asked.softmax is not None
        proxies = describe_proxies(reading.population()) if named else {}
    found = {"file": str(asked.file), **columns, **proxies}
    if asked.json:
        print_json(found)
        return
    print_page(inspection_page(found))
    if columns["rows"] == 0:
        print_text("", "There is a header and no row: nothing can be planned yet.")
        return
    suggested = suggestion(columns, asked.id, asked.proxy, asked.softmax)
    others = o.words(replace(reading, id=None, proxy=None, softmax=None))
    models = None if asked.id is not None else columns["models"]
    file = asked.file if models is None else _of_one_model(asked.file, models)
    rows = columns["rows"] if models is None else columns["rows"] // models["count"]
    known = [file, *suggested, *others, "--budget", min(300, rows)]
    cluster = columns.get("log", {}).get("cluster")
    if cluster is None:
        print_next("plan", *known)
        return
    together = ["--design", "clusters", "--cluster", cluster]
    print_next("draw", *known, *together, "--seed", 7, "--output", new_folder("audit"))


def _of_one_model(file: Path, models: dict[str, Any]) -> Path:
    """Print what keeps the rows of one model of a long table, and return the file that it writes."""
    from stratal.tables.readers import COPIED, copy_of_rows

    kept = Path("one_model.parquet" if file.suffix == ".parquet" else "one_model.csv")
    print_text(
        "",
        "Units to label are drawn by the rows of one model: keep those in a file of its own. To compare the",
        "models, have the answers of all of them to the drawn units labelled, one row for each answer;",
        f"`stratal estimate` tells them apart by --model {shlex.quote(models['column'])}.",
    )
    if COPIED & set(file.suffixes) and file.is_file():
        copied = copy_of_rows(str(file), models["column"], models["first"], str(kept))
        print_text("In Python:", f"  import duckdb; duckdb.sql({copied!r})")
    return kept
