"""The application: its subcommands, and how a user's mistake ends (one message, exit status 2)."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated

import typer
from rich.console import Console

from stratal import __version__
from stratal.cli import demo, draw, estimate, inspect, plan, simulate
from stratal.errors import StratalError, StratalWarning

app = typer.Typer(
    name="stratal",
    help="How good is this model, when a human can only label a few hundred of its outputs?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for command in (inspect.inspect, plan.plan, draw.draw, estimate.estimate, demo.demo, simulate.simulate):
    app.command()(command)


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


def main() -> None:
    """Run the command line; a `StratalError` becomes one message and exit status 2.

    Examples
    --------
    >>> callable(main)
    True
    """
    console = Console(stderr=True, soft_wrap=True, highlight=False)

    def show(message: Warning | str, category: type[Warning], *_: object) -> None:
        if issubclass(category, StratalWarning):
            console.print(f"Warning: {message}", markup=False)

    warnings.showwarning = show  # type: ignore[assignment]
    try:
        app()
    except StratalError as error:
        console.print(f"Error: {error}", markup=False)
        sys.exit(2)
    except KeyboardInterrupt:
        console.print("Stopped; nothing was written.", markup=False)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
