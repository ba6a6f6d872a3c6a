"""Call the tools of `stratal mcp` by the SDK's own client, and print what they return as JSON."""

from __future__ import annotations

import asyncio
import json
import sys

from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

CALLS = [
    ("doctor", {"file": "predictions.csv"}),
    ("plan", {"file": "predictions.csv", "proxy": "confidence", "budget": 200}),
    (
        "draw",
        {"file": "predictions.csv", "proxy": "confidence", "budget": 200, "seed": 2, "output": "drawn"},
    ),
    (
        "estimate",
        {
            "files": ["audit/sample.parquet", "audit/labels.csv"],
            "predicted": "answer",
            "require": "value>=.9",
        },
    ),
    (
        "report",
        {
            "files": ["audit/sample.parquet", "audit/labels.csv"],
            "predicted": "answer",
            "output": "report.html",
        },
    ),
    ("estimate", {"files": ["missing.csv"]}),
    ("estimate", {"file": "audit/labels.csv"}),
    ("doctor", {"file": "--help"}),
    ("simulate", {}),
]


async def main() -> None:
    server = StdioServerParameters(command=sys.executable, args=["-m", "stratal", "mcp"])
    async with (
        stdio_client(server) as (read_stream, write_stream),
        ClientSession(read_stream, write_stream) as session,
    ):
        await session.initialize()
        tools = (await session.list_tools()).tools
        results = [await session.call_tool(name, arguments) for name, arguments in CALLS]
    answers = [[result.is_error, result.structured_content, result.content[0].text] for result in results]
    print(json.dumps({"tools": [tool.name for tool in tools], "answers": answers}))


asyncio.run(main())
