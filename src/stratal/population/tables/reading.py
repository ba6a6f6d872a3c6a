"""How a file is to be read: its format, where it is, and which engine reads it with what means."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stratal.arrays import Record
from stratal.errors import InputError
from stratal.population.passes import checked_threads
from stratal.population.tables.declaration import TableKeywords


class FileKeywords(TableKeywords, total=False):
    """The keywords of `Population.read` that a dataframe has no use for."""

    engine: str
    master: str | None
    threads: int | None
    memory: str | None


DUCKDB, SPARK = "duckdb", "spark"
ENGINES = (DUCKDB, SPARK)

_AMOUNT = re.compile(r"\d+(\.\d+)? ?(KB|MB|GB|TB|KiB|MiB|GiB|TiB)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReading(Record):
    """How `Population.read` is to read a file.

    Parameters
    ----------
    delimiter, format : str, optional
    directory, remote : bool
        As in `Population.read`.
    engine : {"duckdb", "spark"}
    master : str, optional
        Where Spark runs: `local[2]`, `spark://host:7077`, `yarn`.
    threads : int, optional
        How many DuckDB may use; all cores if left out.
    memory : str, optional
        How much DuckDB may hold before it spills to disk, such as `2GB`.

    Examples
    --------
    >>> FileReading(engine="duckdb", threads=2).threads
    2
    """

    delimiter: str | None = None
    format: str | None = None
    directory: bool = False
    remote: bool = False
    engine: str = DUCKDB
    master: str | None = None
    threads: int | None = None
    memory: str | None = None

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise InputError("no such engine", given=repr(self.engine), allowed=", ".join(ENGINES))
        if self.master is not None and self.engine != SPARK:
            raise InputError(
                "a master is where Spark runs",
                given=f"master {self.master!r} with engine {self.engine!r}",
                action="Add engine='spark' (--engine spark).",
            )
        for name in ("threads", "memory"):
            if getattr(self, name) is not None and self.engine == SPARK:
                raise InputError(
                    f"{name} is of DuckDB",
                    given=f"{name} with engine 'spark'",
                    action="Spark has its own: master='local[2]', or spark.executor.memory.",
                )
        if self.threads is not None:
            checked_threads(self.threads)
        if self.memory is not None and not _AMOUNT.fullmatch(self.memory):
            raise InputError(
                "memory is an amount with its unit", given=repr(self.memory), allowed="such as 500MB, 2GB"
            )
