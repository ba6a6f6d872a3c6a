"""The `stratal` command: one file per subcommand, which parses, calls the library and prints."""

from stratal.cli.application import main

__all__ = ["main"]
