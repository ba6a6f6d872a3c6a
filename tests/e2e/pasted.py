"""What tests of printed commands share: a command is run as it was printed, and its "Next:" line is found."""

from __future__ import annotations

import csv
import shlex
from pathlib import Path

from click.testing import CliRunner

from stratal.cli.application import app


def invoke(line):
    """Run a command as it is typed, and return how it ended."""
    return CliRunner().invoke(app, shlex.split(line))


def run(line):
    """Run a command and return what it printed."""
    done = invoke(line)
    assert done.exit_code == 0, (line, done.output, done.exception)
    return done.stdout


def next_line(text):
    """Return the command after the word "Next:", without the program's name."""
    (found,) = [line for line in text.splitlines() if line.startswith("Next: stratal ")]
    return found.removeprefix("Next: stratal ")


def write(path, header, rows):
    """Write a CSV file."""
    with Path(path).open("w", newline="") as stream:
        csv.writer(stream).writerows([header, *rows])
