"""The `stratal` command: one file per subcommand, which parses, calls the library and prints."""

from __future__ import annotations


def main() -> None:
    """Run the command line, imported here so that Ctrl-C during the imports ends quietly too."""
    from stratal.cli import stopping
    from stratal.cli.imports import pyarrow_alone

    stopping.listen()
    pyarrow_alone()
    try:
        from stratal.cli.application import main as run
    except BaseException:
        if not stopping.asked():
            raise
        stopping.leave()
    run()


__all__ = ["main"]
