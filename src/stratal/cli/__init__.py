"""The `stratal` command: one file per subcommand, which parses, calls the library and prints."""

from __future__ import annotations


def main() -> None:
    """Run the command line, imported here so that Ctrl-C during the imports ends quietly too."""
    import gc

    from stratal.cli import stopping
    from stratal.cli.imports import needed_alone

    gc.set_threshold(50_000)  # Python's 700 look for cycles all through a start, for a twentieth of its time
    stopping.listen()
    needed_alone()
    try:
        from stratal.cli.application import main as run
    except BaseException:
        if not stopping.requested():
            raise
        stopping.leave()
    run()


__all__ = ["main"]
