"""`stratal mcp`: a server in which each tool is a command with its declared options."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any, get_args, get_origin

from msgspec import NODEFAULT, Struct

from stratal import __version__
from stratal.cli.application import commands
from stratal.cli.command import Command, Option, command
from stratal.cli.estimate import STATUSES
from stratal.cli.skill import RULES
from stratal.errors import InputError, check_choice, optional_import
from stratal.protocols import Keywords

if TYPE_CHECKING:
    import mcp_types

# The commands that a client can call.
MCP_TOOLS = ("doctor", "plan", "draw", "estimate", "report")

# `format` has no effect with --json, which every tool uses.
HIDDEN_FIELDS = ("format",)

# Types of JSON Schema; all other options are text.
_JSON_TYPES: dict[Any, str] = {bool: "boolean", int: "integer", float: "number"}


class ServerOptions(Struct, frozen=True, kw_only=True):
    """The options of `mcp`, of which there are none."""


@command(ServerOptions)
def mcp(requested: ServerOptions) -> None:
    """Serve the commands as tools for an agent (MCP).

    A client of the Model Context Protocol starts this command and communicates with it over standard input
    and output. The tools are doctor, plan, draw, estimate and report. Files are read from and written to
    the server's current directory. Requires `pip install 'stratal[mcp]'`.
    """
    with optional_import("mcp", extra="mcp"):
        import anyio
        from mcp.server.lowlevel.server import Server
        from mcp.server.stdio import stdio_server

    server = Server(
        "stratal",
        version=__version__,
        instructions="\n".join(RULES),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )

    async def serve() -> None:
        async with stdio_server() as (read_stream, write_stream):
            await server.run(read_stream, write_stream, server.create_initialization_options())

    anyio.run(serve)


async def list_tools(context: object, params: object) -> mcp_types.ListToolsResult:
    """Return the commands as tools."""
    import mcp_types

    tools = [
        mcp_types.Tool(name=name, description=tool_command.help, input_schema=input_schema(tool_command))
        for name, tool_command in commands(*MCP_TOOLS).items()
    ]
    return mcp_types.ListToolsResult(tools=tools)


async def call_tool(context: object, params: mcp_types.CallToolRequestParams) -> mcp_types.CallToolResult:
    """Run a command in a process of its own, whose output cannot disturb the protocol."""
    import anyio
    import mcp_types

    structured = None
    try:
        words = command_line(params.name, params.arguments or {})
        process = await anyio.run_process(words, check=False, stdin=subprocess.DEVNULL)
        # FAIL and UNDECIDED are results.
        is_error = process.returncode not in STATUSES.values()
    except InputError as error:
        is_error = True
        text = str(error)
    else:
        text = (process.stderr if is_error else process.stdout).decode()
        if not is_error:
            structured = json.loads(text)
    content: list[Any] = [mcp_types.TextContent(text=text)]
    return mcp_types.CallToolResult(content=content, structured_content=structured, is_error=is_error)


def tool_options(tool_command: Command) -> dict[str, Option]:
    """Return the options of a tool by their name in its input."""
    return {
        entry.field.rstrip("_"): entry for entry in tool_command.options if entry.field not in HIDDEN_FIELDS
    }


def input_schema(tool_command: Command) -> dict[str, Any]:
    """Return the JSON Schema of the input of a tool."""
    options = tool_options(tool_command)
    properties = {name: _option_schema(option) for name, option in options.items()}
    required = [name for name, option in options.items() if option.default is NODEFAULT]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _option_schema(option: Option) -> dict[str, Any]:
    """Return the JSON Schema of an option. An option with a parser takes a text."""
    kinds = [option.kind]
    if type(None) in get_args(option.kind):
        kinds = list(get_args(option.kind))
    if get_origin(kinds[0]) is list:
        return {"type": "array", "items": {"type": "string"}, "description": option.help_text}
    json_type = "string"
    if option.parser is None:
        json_type = _JSON_TYPES.get(kinds[0], "string")
    return {"type": json_type, "description": option.help_text}


def command_line(name: str, arguments: Keywords) -> list[str]:
    """Return the command of a call. A value that begins with a hyphen is never an option."""
    check_choice("tool", name, MCP_TOOLS)
    options = tool_options(commands(name)[name])
    files = list[str]()
    words = list[str]()
    for field, value in arguments.items():
        check_choice(f"argument of {name}", field, options)
        option = options[field]
        values = value if isinstance(value, list) else [value]
        if option.is_positional:
            files += [str(entry) for entry in values]
        elif value is True:
            words.append(option.name)
        elif value not in (False, None):
            words += [f"{option.name}={entry}" for entry in values]
    return [sys.executable, "-m", "stratal", name, *words, "--json", "--", *files]
