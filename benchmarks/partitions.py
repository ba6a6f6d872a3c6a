"""A distributed run, simulated: what each query costs in a partition, and how much moves between machines.

    python -m benchmarks.partitions [--rows 1000000] [--partitions 4,16,64] [--repeats 3]

A table is held in partitions, each in a DuckDB of its own with one thread, as if on a machine of its own. The
queries of a plan and a draw are asked of every partition, and their results are combined as an engine on many
machines combines them: partial sums, the ids of an exchange, the candidates of the draw. The program counts
the bytes that leave a partition, and compares the combined results with those of `stratal` on the whole
table: the draw must be the same units. From the seconds and the bytes follows the cost for 10¹⁰ rows.
Writes benchmarks/results/partitions.md.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from benchmarks.helpers import circumstances

import stratal
from stratal.arrays import FloatArray, IntArray
from stratal.designs import Sample
from stratal.population.distribution import BIN_COUNT

RESULTS = Path(__file__).parent / "results" / "partitions.md"
BUDGET = 1_000
SEED = 7
LARGE = 10**10
LARGE_PARTITIONS = 100
MACHINES, CORES = 16, 8
# Of the share of units that the draw needs: so much more are candidates, so that too few are very rare.
MARGIN = 1.5
QUERIES = ("minimum and maximum", "bins of the proxy", "duplicate ids", "sizes of the strata", "draw")
# Bytes of these results do not depend on the number of rows in a partition, but for rare bins and strata.
EXCHANGE = "duplicate ids"
CANDIDATES = "draw"


@dataclass(frozen=True, kw_only=True)
class DistributedTable:
    """Partitions of a table, and what their queries cost.

    Parameters
    ----------
    partitions : list of connection
        Each has a table `units` with `id` and `proxy`.
    seconds : dict
        Of each query, those of each partition.
    moved : dict
        Of each query, the bytes that left each partition.
    """

    partitions: list[Any]
    seconds: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in QUERIES})
    moved: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in QUERIES})

    @classmethod
    def of(cls, ids: IntArray, proxy: FloatArray, count: int) -> DistributedTable:
        """Return a table in `count` partitions of neighbouring rows."""
        partitions = []
        for rows in np.array_split(np.arange(len(ids)), count):
            connection = duckdb.connect(config={"threads": 1})
            part = pa.table({"id": ids[rows], "proxy": proxy[rows]})
            connection.register("part", part)
            connection.execute("CREATE TABLE units AS SELECT * FROM part")
            partitions.append(connection)
        return cls(partitions=partitions)

    def ask(self, name: str, query: str) -> list[pa.Table]:
        """Return the results of a query in each partition; each moves to where they are combined."""
        results = []
        for connection in self.partitions:
            before = time.perf_counter()
            result = connection.sql(query).to_arrow_table()
            self.seconds[name].append(time.perf_counter() - before)
            self.moved[name].append(result.nbytes)
            results.append(result)
        return results

    def extent(self) -> tuple[int, float, float]:
        """Return the number of rows, and the least and the largest proxy."""
        query = "SELECT count(*) AS n, min(proxy) AS low, max(proxy) AS high FROM units"
        parts = pa.concat_tables(self.ask("minimum and maximum", query))
        counts, lows, highs = (parts[name].to_numpy() for name in ("n", "low", "high"))
        return int(counts.sum()), float(lows.min()), float(highs.max())

    def bins(self, low: float, high: float) -> IntArray:
        """Return the number of units in each of the bins of a distribution."""
        position = f"least({BIN_COUNT - 1}, floor((proxy - {low!r}) / {high - low!r} * {BIN_COUNT}))"
        query = f"SELECT CAST({position} AS INTEGER) AS bin, count(*) AS n FROM units GROUP BY 1"
        counts = np.zeros(BIN_COUNT, dtype=np.int64)
        for part in self.ask("bins of the proxy", query):
            np.add.at(counts, part["bin"].to_numpy(), part["n"].to_numpy())
        return counts

    def duplicates(self) -> int:
        """Return the number of ids that occur twice: each machine gets the ids of its own remainder."""
        count = len(self.partitions)
        received: list[list[pa.ChunkedArray]] = [[] for _ in range(count)]
        for own, connection in enumerate(self.partitions):
            before = time.perf_counter()
            result = connection.sql(f"SELECT id, id % {count} AS machine FROM units").to_arrow_table()
            targets = result["machine"].to_numpy()
            moved = 0
            for machine in range(count):
                ids = result["id"].filter(pa.array(targets == machine))
                received[machine].append(ids)
                moved += 0 if machine == own else ids.nbytes
            self.seconds[EXCHANGE].append(time.perf_counter() - before)
            self.moved[EXCHANGE].append(moved)
        twice = 0
        for machine, chunks in enumerate(received):
            before = time.perf_counter()
            ids = np.concatenate([chunk.to_numpy() for chunk in chunks])
            twice += len(ids) - len(np.unique(ids))
            self.seconds[EXCHANGE][machine] += time.perf_counter() - before
        return twice

    def sizes(self, cuts: Sequence[float]) -> IntArray:
        """Return the number of units in each stratum between cuts of the proxy."""
        query = (
            f"SELECT {_stratum(cuts)} AS stratum, count(*) AS n, sum(proxy) AS total FROM units GROUP BY 1"
        )
        sizes = np.zeros(len(cuts) + 1, dtype=np.int64)
        for part in self.ask("sizes of the strata", query):
            np.add.at(sizes, part["stratum"].to_numpy(), part["n"].to_numpy())
        return sizes

    def draw(self, cuts: Sequence[float], sizes: IntArray, n_h: IntArray) -> IntArray:
        """Return the ids of the n_h smallest keys of each stratum."""
        limits = [
            f"{min(int(MARGIN * (n + 10) / size * 2**64), 2**64 - 1):016x}"
            for n, size in zip(n_h.tolist(), sizes.tolist(), strict=True)
        ]
        key = f"substr(md5(concat('{SEED}:', CAST(id AS VARCHAR))), 1, 16)"
        rows = f"(SELECT id, {_stratum(cuts)} AS stratum, {key} AS key FROM units)"
        query = f"SELECT id, stratum, key FROM {rows} WHERE key <= {list(limits)!r}[stratum + 1]"
        candidates = pa.concat_tables(self.ask(CANDIDATES, query))
        ids, stratum, keys = (
            candidates[name].to_numpy(zero_copy_only=False) for name in candidates.column_names
        )
        chosen = []
        for h, n in enumerate(n_h.tolist()):
            members = np.flatnonzero(stratum == h)
            if len(members) < n:
                raise SystemExit("too few candidates: raise MARGIN")
            chosen.append(ids[members[np.argsort(keys[members].astype(str), kind="stable")[:n]]])
        return np.concatenate(chosen).astype(np.int64)


def _stratum(cuts: Sequence[float]) -> str:
    """Return the SQL of a unit's stratum: the number of cuts that its proxy exceeds."""
    return " + ".join(f"CAST(proxy > {cut!r} AS INTEGER)" for cut in cuts) or "0"


def whole(ids: IntArray, proxy: FloatArray) -> tuple[Sample, list[float]]:
    """Return the draw of stratal from the whole table, and the cuts of its strata."""
    population = stratal.Population.from_arrays(ids=ids, proxy=proxy)
    plan = stratal.plan(population, BUDGET)
    codes = np.asarray(plan.strata.codes)
    highest = sorted(float(proxy[codes == h].max()) for h in range(len(plan.strata.sizes)))
    return plan.draw(seed=SEED), highest[:-1]


def distributed(ids: IntArray, proxy: FloatArray, count: int) -> DistributedTable:
    """Ask all queries of a table in partitions, and require the results of the whole table."""
    sample, cuts = whole(ids, proxy)
    # Strata in the order of the proxy.
    order = np.argsort(
        [proxy[np.isin(ids, sample.ids[sample.stratum == h])].max() for h in range(len(cuts) + 1)]
    )
    table = DistributedTable.of(ids, proxy, count)
    size, low, high = table.extent()
    counts = table.bins(low, high)
    sizes = table.sizes(cuts)
    drawn = table.draw(cuts, sizes, sample.n_h[order])
    assert size == len(ids) == counts.sum() == sizes.sum()
    assert table.duplicates() == 0
    assert sorted(drawn.tolist()) == sorted(sample.ids.tolist())
    return table


def generated(rows: int) -> tuple[IntArray, FloatArray]:
    """Return ids in a scattered order, and skewed proxies."""
    random = np.random.default_rng(SEED)
    return random.permutation(rows), np.sqrt(np.sqrt(random.random(rows)))


def measured(rows: int, counts: Sequence[int], repeats: int) -> dict[int, DistributedTable]:
    """Return the tables in each number of partitions, with the costs of the fastest of several runs."""
    ids, proxy = generated(rows)
    results = {}
    for count in counts:
        runs = [distributed(ids, proxy, count) for _ in range(repeats)]
        results[count] = min(runs, key=lambda table: sum(map(sum, table.seconds.values())))
        print(count, {name: sum(seconds) for name, seconds in results[count].seconds.items()}, flush=True)
    return results


def page(rows: int, tables: dict[int, DistributedTable], command: str) -> str:
    """Return the page."""
    counts = list(tables)
    lines = [
        "# A distributed run, simulated",
        "",
        f"`{command}`, {circumstances()}",
        "",
        f"A table of {rows:,} rows in partitions, each in a DuckDB of its own with one thread. The combined",
        f"results are those of the whole table, and the {BUDGET:,} drawn units are the same. Seconds are of",
        "all partitions one after the other: the processor time of the cluster. Bytes are those of the",
        "results that leave a partition, in Arrow's format, also of the machine that combines them.",
        "",
        "| query | " + " | ".join(f"{count} partitions: s | kB moved" for count in counts) + " |",
        "|---" * (1 + 2 * len(counts)) + "|",
    ]
    for name in QUERIES:
        cells = []
        for table in tables.values():
            cells += [f"{sum(table.seconds[name]):.3f}", f"{sum(table.moved[name]) / 1000:,.1f}"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *large_run(rows, tables), ""])


def large_run(rows: int, tables: dict[int, DistributedTable]) -> list[str]:
    """Return the table for 10¹⁰ rows: seconds grow with rows, bytes as the simulation shows."""
    fewest = tables[min(tables)]
    lines = [
        f"## {LARGE:,} rows in {LARGE_PARTITIONS} partitions",
        "",
        "Computed from the rows above, not measured: processor time is proportional to the rows; ids of the",
        "exchange are proportional to the rows too; the candidates of the draw depend on the budget alone;",
        "the other results are one row, one for each bin or one for each stratum from every partition.",
        "",
        f"| query | core hours | minutes on {MACHINES} machines of {CORES} cores | moved |",
        "|---|---|---|---|",
    ]
    total_hours = 0.0
    total_bytes = 0.0
    for name in QUERIES:
        hours = sum(fewest.seconds[name]) / rows * LARGE / 3600
        if name == EXCHANGE:
            # Of P partitions, a share of 1/P of the ids stays.
            share = (1 - 1 / LARGE_PARTITIONS) / (1 - 1 / len(fewest.partitions))
            moved = sum(fewest.moved[name]) / rows * LARGE * share
        elif name == CANDIDATES:
            moved = float(sum(fewest.moved[name]))
        else:
            moved = statistics.median(fewest.moved[name]) * LARGE_PARTITIONS
        total_hours += hours
        total_bytes += moved
        lines.append(f"| {name} | {hours:.2f} | {60 * hours / MACHINES / CORES:.2f} | {_amount(moved)} |")
    lines.append(
        f"| all | {total_hours:.2f} | {60 * total_hours / MACHINES / CORES:.2f} | {_amount(total_bytes)} |"
    )
    return lines


def _amount(size: float) -> str:
    """Return a number of bytes with its unit."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size / 1000:.3g} kB"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--partitions", default="4,16,64")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    counts = [int(text) for text in options.partitions.split(",")]
    command = (
        f"python -m benchmarks.partitions --rows {options.rows} --partitions {options.partitions} "
        f"--repeats {options.repeats}"
    )
    tables = measured(options.rows, counts, options.repeats)
    options.output.write_text(page(options.rows, tables, command), encoding="utf-8")


if __name__ == "__main__":
    main()
