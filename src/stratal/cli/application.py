"""The application: its subcommands and exit statuses. An error of the user is one message, with status 2."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from typing import Annotated, Any

import click
from msgspec import Struct

from stratal import __version__
from stratal.cli import interruption
from stratal.cli.command import COMMANDS, Command, argument, command
from stratal.cli.memory_errors import OUT_OF_MEMORY_MESSAGE, is_memory_error
from stratal.cli.output import (
    PRINTED_LINES,
    escape_control_characters,
    escape_unencodable,
    keywords_to_options,
    print_json,
)
from stratal.errors import StratalError, StratalWarning

# Exit status of Click if the reader of standard output has closed it.
_OUTPUT_CLOSED = 1

PLATFORM = ("read", "queue", "labels", "write")
STUDY = ("new", "label", "status", "extend", "team", "export", "import", "check", "backup")
# The module that declares each command, in the order of the help. A module is imported when it is needed.
COMMAND_FILES = {
    "doctor": "doctor",
    "plan": "plan",
    "draw": "draw",
    "estimate": "estimate",
    "threshold": "threshold",
    "trend": "trend",
    "select": "select",
    "report": "estimate",
    "demo": "simulate",
    "simulate": "simulate",
    **{f"study {name}": "study" for name in STUDY},
    **{f"platform {name}": "platform" for name in PLATFORM},
    "skill": "skill",
    "mcp": "mcp_server",
    "schema": "application",
}

# First words of commands with several words, and their help texts.
COMMAND_GROUPS = {
    "study": "Label the drawn items with several annotators.",
    "platform": "Read, queue and label units from a tracing platform.",
}


class _Commands(click.Group):
    """A group of commands: those with the same first word, or all. Each is imported when it is needed."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a subcommand. Ctrl-C and the options in errors are handled here, not by Click."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise SystemExit(interruption.INTERRUPTED_STATUS) from None
        except StratalError as error:
            if not error.is_command_message:
                # The message has keywords of Python.
                parameters = (entry for command in commands().values() for entry in command.params)
                options = {name for parameter in parameters for name in parameter.opts}
                error.args = (error.message(partial(keywords_to_options, options=options)),)
                error.is_command_message = True
            raise

    @property
    def prefix(self) -> str:
        """The common first word of the commands, with a blank."""
        if self.name in COMMAND_GROUPS:
            return f"{self.name} "
        return ""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the next word of each name, in the order of the help."""
        names = (name for name in COMMAND_FILES if name.startswith(self.prefix))
        return list(dict.fromkeys(name.removeprefix(self.prefix).split()[0] for name in names))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names; an error suggests a similar name."""
        name = args[0]
        names = self.list_commands(ctx)
        if name not in names and not name.startswith("-"):
            similar = get_close_matches(name, names, n=1)
            suggestion = f" Did you mean '{similar[0]}'?" if similar else ""
            raise click.UsageError(f"unknown command '{name}'.{suggestion}", ctx)
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command or a group of commands by name, or None."""
        if not self.prefix and cmd_name in COMMAND_GROUPS:
            return _Commands(cmd_name, help=COMMAND_GROUPS[cmd_name], context_settings=HELP_SETTINGS)
        name = self.prefix + cmd_name
        return commands(name).get(name)


def commands(*names: str) -> Mapping[str, Command]:
    """Return the commands with these names, or all, by name."""
    imported_commands = {}
    for name, module in COMMAND_FILES.items():
        if not names or name in names:
            # The import registers the command.
            import_module(f"stratal.cli.{module}")
            imported_commands[name] = COMMANDS[name]()
    return imported_commands


class SchemaOptions(Struct, frozen=True, kw_only=True):
    """The options of `schema`."""

    of: Annotated[
        list[str],
        argument(
            "COMMAND…",
            "A command, such as estimate or study status; or plan-file, for the file that `plan --output` "
            "writes.",
        ),
    ]


@command(SchemaOptions)
def schema(requested: SchemaOptions) -> None:
    """Print the JSON Schema of what a command prints with --json.

    Later versions may add names to objects, but never remove names. The output is JSON with or without
    --json.
    """
    from stratal.cli.printed import command_schema

    print_json(command_schema(" ".join(requested.of)))


# Settings of Click. Users expect `-h`, which many other commands have.
HELP_SETTINGS = {"help_option_names": ["-h", "--help"]}


@click.group(
    "stratal",
    cls=_Commands,
    help="How good is this model, when a human can only label a few hundred of its outputs?",
    context_settings=HELP_SETTINGS,
)
@click.version_option(__version__, message="stratal %(version)s", help="Print the version.")
def app() -> None:
    """Parse the options before a subcommand."""


def _print_error(message: str) -> None:
    """Print a message on standard error."""
    print(escape_control_characters(message), file=sys.stderr)


def _replace_closed_streams() -> None:
    """Write to the null device instead of a closed standard output or error, which is None in Python."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))


@contextmanager
def _collected_warnings() -> Iterator[None]:
    """Print the warnings of the library at the end, except those that the output contains as notes."""
    texts: list[str] = []

    def collect(message: Warning | str, category: type[Warning], *_: object) -> None:
        if issubclass(category, StratalWarning):
            texts.append(keywords_to_options(str(message)))

    warnings.showwarning = collect  # type: ignore[assignment]
    try:
        yield
    finally:
        for text in dict.fromkeys(texts):
            if not any(text in line for line in PRINTED_LINES):
                _print_error(f"Warning: {text}")


def main() -> None:
    """Run the command line; a `StratalError` becomes one message and exit status 2.

    A reader of the output that ends early (`| head`) is not an error: exit status 0. Ctrl-C prints one word,
    and the exit status is 130.
    """
    _replace_closed_streams()
    escape_unencodable(sys.stdout)
    # The exit status.
    status: object = 0
    is_output_incomplete = False
    try:
        with _collected_warnings():
            try:
                app()
            except SystemExit as exit_request:
                status = exit_request.code
        sys.stdout.flush()
    except (StratalError, OSError) as error:
        is_output_incomplete = isinstance(error, OSError)
        if isinstance(error, BrokenPipeError):
            status = status or _OUTPUT_CLOSED
        else:
            _print_error(f"Error: {error}")
            status = 2
    except BaseException as error:
        # Also KeyboardInterrupt and MemoryError, for which a traceback is no help.
        status = interruption.INTERRUPTED_STATUS
        if is_memory_error(error):
            _print_error(f"Error: {OUT_OF_MEMORY_MESSAGE}")
            status = 2
        elif not interruption.is_interrupted() and not isinstance(error, KeyboardInterrupt):
            raise
    if is_output_incomplete:
        # The rest of the output cannot be written. Python would try again at the exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if interruption.is_interrupted():
        status = interruption.INTERRUPTED_STATUS
    interruption.ignore_signals()
    if status == _OUTPUT_CLOSED:
        status = 0
    elif status == interruption.INTERRUPTED_STATUS:
        _print_error("Stopped.")
    sys.exit(status)  # type: ignore[arg-type]
