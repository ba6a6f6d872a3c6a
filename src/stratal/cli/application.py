"""The application: its subcommands, and how a user's mistake ends (one message, exit status 2)."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Annotated

import typer
from rich.console import Console

from stratal import __version__
from stratal.cli import (
    backup,
    check,
    demo,
    doctor,
    draw,
    estimate,
    export,
    extend,
    init,
    inspect,
    label,
    plan,
    report,
    schema,
    simulate,
    status,
    stopping,
    take_in,
    team,
)
from stratal.cli.effects import CheckedCommand
from stratal.cli.memory import MESSAGE, out_of_memory
from stratal.cli.output import in_options, printable, visible
from stratal.errors import StratalError, StratalWarning

READER_LEFT = 1
"""Exit status with which Typer and Rich end when standard output has been closed."""

app = typer.Typer(
    name="stratal",
    help="How good is this model, when a human can only label a few hundred of its outputs?",
    no_args_is_help=True,
    add_completion=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (
    doctor.doctor,
    inspect.inspect,
    plan.plan,
    draw.draw,
    estimate.estimate,
    report.report,
    demo.demo,
    simulate.simulate,
    init.init,
    label.label,
    status.status,
    extend.extend,
    team.team,
    check.check,
    backup.backup,
    export.export,
    schema.schema,
):
    app.command(cls=CheckedCommand)(command)
app.command("import", cls=CheckedCommand)(take_in.take_in)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"stratal {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Take the options that stand before a subcommand."""


def _open_streams() -> None:
    """Let what is said go nowhere where the caller closed a stream (`>&-`)."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))


def _every_option() -> set[str]:
    """Return the options of all commands."""
    commands = getattr(typer.main.get_command(app), "commands", {}).values()
    return {name for command in commands for option in command.params for name in option.opts}


def main() -> None:
    """Run the command line; a `StratalError` becomes one message and exit status 2.

    A reader that leaves early (`| head`) is no mistake: exit status 0. Ctrl-C ends with one word and 130.

    Examples
    --------
    >>> callable(main)
    True
    """
    _open_streams()
    printable(sys.stdout)
    console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)

    def show(message: Warning | str, category: type[Warning], *_: object) -> None:
        if issubclass(category, StratalWarning):
            console.print(f"Warning: {visible(str(message))}")

    warnings.showwarning = show  # type: ignore[assignment]
    status: object = 0
    stuck = False
    try:
        try:
            app()
        except SystemExit as ended:
            status = ended.code
        sys.stdout.flush()
    except (StratalError, OSError) as error:
        status, stuck = READER_LEFT, isinstance(error, OSError)
        if not isinstance(error, BrokenPipeError):
            console.print(f"Error: {visible(in_options(str(error), _every_option()))}")
            status = 2
    except BaseException as error:
        status = stopping.INTERRUPTED
        if out_of_memory(error):
            console.print(f"Error: {MESSAGE}")
            status = 2
        elif not stopping.asked() and not isinstance(error, KeyboardInterrupt):
            raise
    if stuck:
        # What standard output still holds cannot be written; Python would try again while it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if stopping.asked():
        status = stopping.INTERRUPTED
    stopping.finish()
    if status == READER_LEFT:
        status = 0
    elif status == stopping.INTERRUPTED:
        console.print("Stopped.")
    sys.exit(status)  # type: ignore[arg-type]
