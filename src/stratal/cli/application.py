"""The application: its subcommands, and how a user's mistake ends (one message, exit status 2)."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping
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
from stratal.cli.output import SHOWN, in_options, print_json, printable, visible
from stratal.errors import StratalError, StratalWarning

# Exit status with which Click ends when standard output has been closed.
READER_LEFT = 1

PLATFORM = ("read", "queue", "labels", "write")
STUDY = ("new", "label", "status", "extend", "team", "export", "import", "check", "backup")
# The file that declares each command, in the order of the help; a file is loaded when it is needed.
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

# Commands of several words, by the first of these, and what they are about.
COMMAND_GROUPS = {
    "study": "Label the drawn items with several annotators.",
    "platform": "Read, queue and label units from a tracing platform.",
}


class _Commands(click.Group):
    """The commands whose names begin alike, each imported when it is needed."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a subcommand; Click would answer Ctrl-C with words of its own."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise SystemExit(interruption.INTERRUPTED) from None
        except StratalError as error:
            if not error.in_options:
                options = {name for one in commands().values() for entry in one.params for name in entry.opts}
                error.args = (error.message(partial(in_options, options=options)),)
                error.in_options = True
            raise

    @property
    def prefix(self) -> str:
        """The common beginning of the names."""
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
        """Return the command of the first argument; suggest a similar one if there is none of this name."""
        name = args[0]
        names = self.list_commands(ctx)
        if name not in names and not name.startswith("-"):
            similar = get_close_matches(name, names, n=1)
            suggestion = f" Did you mean '{similar[0]}'?" if similar else ""
            raise click.UsageError(f"unknown command '{name}'.{suggestion}", ctx)
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command or a group of commands, None for a name that none has."""
        if not self.prefix and cmd_name in COMMAND_GROUPS:
            return _Commands(cmd_name, help=COMMAND_GROUPS[cmd_name], context_settings=HELP)
        name = self.prefix + cmd_name
        return commands(name).get(name)


def commands(*names: str) -> Mapping[str, Command]:
    """Return commands by name: the named ones, or all."""
    loaded = {}
    for name, file in COMMAND_FILES.items():
        if not names or name in names:
            import_module(f"stratal.cli.{file}")
            loaded[name] = COMMANDS[name]()
    return loaded


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


# `-h` as well, because many commands have it.
HELP = {"help_option_names": ["-h", "--help"]}


@click.group(
    "stratal",
    cls=_Commands,
    help="How good is this model, when a human can only label a few hundred of its outputs?",
    context_settings=HELP,
)
@click.version_option(__version__, message="stratal %(version)s", help="Print the version.")
def app() -> None:
    """Take the options that precede a subcommand."""


def _say(message: str) -> None:
    print(visible(message), file=sys.stderr)


def main() -> None:
    """Run the command line; a `StratalError` becomes one message and exit status 2.

    A reader that leaves early (`| head`) is not a mistake: exit status 0. Ctrl-C ends with one word and 130.
    """
    for name in ("stdout", "stderr"):  # which are None where they were closed
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
    printable(sys.stdout)

    warned: list[str] = []

    def show(message: Warning | str, category: type[Warning], *_: object) -> None:
        if issubclass(category, StratalWarning):
            warned.append(in_options(str(message)))

    warnings.showwarning = show  # type: ignore[assignment]
    status: object = 0
    stuck = False
    try:
        try:
            app()
        except SystemExit as ended:
            status = ended.code
        finally:
            for text in dict.fromkeys(warned):
                if not any(text in line for line in SHOWN):  # as a note
                    _say(f"Warning: {text}")
        sys.stdout.flush()
    except (StratalError, OSError) as error:
        stuck = isinstance(error, OSError)
        if isinstance(error, BrokenPipeError):
            status = status or READER_LEFT
        else:
            _say(f"Error: {error}")
            status = 2
    except BaseException as error:
        # Also KeyboardInterrupt and MemoryError, for which a traceback is no help.
        status = interruption.INTERRUPTED
        if is_memory_error(error):
            _say(f"Error: {OUT_OF_MEMORY_MESSAGE}")
            status = 2
        elif not interruption.is_interrupted() and not isinstance(error, KeyboardInterrupt):
            raise
    if stuck:
        # What standard output still holds cannot be written; Python would try again while it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if interruption.is_interrupted():
        status = interruption.INTERRUPTED
    interruption.ignore_signals()
    if status == READER_LEFT:
        status = 0
    elif status == interruption.INTERRUPTED:
        _say("Stopped.")
    sys.exit(status)  # type: ignore[arg-type]
