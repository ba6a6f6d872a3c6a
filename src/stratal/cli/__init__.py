"""The `stratal` command: one file per subcommand, which parses, calls the library and prints."""

from __future__ import annotations


def main() -> None:
    """Run the command line. It is imported here, so that Ctrl-C during the imports prints no traceback."""
    import atexit
    import gc

    from stratal.cli import interruption

    # The imports create about 100,000 objects. With Python's default of 700, they trigger many collections.
    gc.set_threshold(200_000)
    # The collection at the exit takes a sixth of the time of a command.
    atexit.register(gc.freeze)
    interruption.handle_signals()
    try:
        from stratal.cli.application import main as run
    except BaseException:
        # The imports are slow, so a signal often arrives here.
        if not interruption.is_interrupted():
            raise
        interruption.exit_at_once()
    run()
