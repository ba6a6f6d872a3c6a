"""The `stratal` command: one file per subcommand, which parses, calls the library and prints."""

from __future__ import annotations


def main() -> None:
    """Run the command line, imported here so that Ctrl-C during the imports ends quietly too.

    Examples
    --------
    >>> callable(main)
    True
    """
    import sys

    try:
        from stratal.cli.application import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()


__all__ = ["main"]
