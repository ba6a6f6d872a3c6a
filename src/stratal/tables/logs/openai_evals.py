"""Output items of a run of OpenAI's evaluations (client 3.3): the page of a list, or JSON Lines of items.

A unit is an item of the data source. Several runs have a column each.
"""

from __future__ import annotations

from collections.abc import Iterable

from stratal.protocols import JsonMapping
from stratal.tables.logs.log import OPENAI, Log, LogRow, is_empty_output, make_log, read_rows, with_prefix

# The keys of every output item.
ITEM_KEYS = {"datasource_item", "datasource_item_id", "results", "sample"}


def read_openai_page(document: JsonMapping, source: str) -> Log:
    """Return the log of a page of output items, as the API returns it."""
    return read_openai_items(document["data"], source)


def read_openai_items(items: Iterable[JsonMapping], source: str) -> Log:
    """Return the log of output items."""
    return make_log(OPENAI, read_rows(OPENAI, items, f"{source}, item", _item_row), variants="runs")


def _item_row(item: JsonMapping) -> LogRow:
    """Return the row of an output item; its graders are the scores."""
    sample = item["sample"]
    error = sample.get("error") or {}
    answer = "\n".join(message["content"] or "" for message in sample["output"])
    prompt = "\n".join(message["content"] for message in sample["input"])
    scores = {result["name"]: result.get("score", result["passed"]) for result in item["results"]}
    return LogRow(
        unit=str(item["datasource_item_id"]),
        unit_columns={"input": prompt} | with_prefix("item", item["datasource_item"]),
        variant_columns={"answer": answer},
        scores=scores,
        variant=str(item.get("run_id") or ""),
        failed=bool(error.get("message")) or is_empty_output(answer),
    )
