"""A command's options are the fields of a record."""

from __future__ import annotations

import subprocess
import sys
from typing import Annotated

from click.testing import CliRunner
from msgspec import Struct

from stratal.cli.application import commands
from stratal.cli.command import COMMANDS, MAX_OPTIONS_SHOWN, Option, argument, command
from stratal.cli.conditions import with_any
from stratal.cli.draw_options import SharedDrawOptions
from stratal.cli.options import Planning, Reading


class Shared(Struct, frozen=True, kw_only=True):
    count: Annotated[int, Option("How many.")] = 3


class Own(Shared, frozen=True, kw_only=True):
    file: Annotated[str, argument("FILE", "Which.")]
    hidden: Annotated[str, Option("Not on the command.")] = "kept"
    loud: Annotated[bool, Option("Louder.", needs=(with_any(count=("5",)),))] = False


def made(**how):
    seen = []
    command(Own, name="small", **how)(seen.append)
    return COMMANDS.pop("small")(), seen


def run(small, *words):
    return CliRunner().invoke(small, words)


def names(small):
    return [entry.name for entry in small.params]


def test_the_function_gets_the_record_with_what_was_typed():
    small, seen = made()

    assert run(small, "there", "--count", "5").exit_code == 0
    assert seen == [Own(file="there", count=5)]


def test_left_out_fields_are_no_options_and_keep_their_defaults():
    small, seen = made(without="hidden")

    assert run(small, "there").exit_code == 0
    assert names(small) == ["file", "count", "loud", "json", "help_all"]
    assert seen[0].hidden == "kept"


def test_an_option_without_effect_is_refused_in_the_words_of_its_declaration():
    small, seen = made()

    refused = str(run(small, "a", "--loud").exception)
    assert "--loud would have no effect (allowed: --loud with --count 5)" in refused
    assert run(small, "a", "--loud", "--count", "5").exit_code == 0
    assert [one.loud for one in seen] == [True]


def test_conditions_name_only_options_that_the_command_has():
    small, _ = made(needs={"hidden": with_any("absent", count=("5",))})

    assert "allowed: --hidden with --count 5)" in str(run(small, "a", "--hidden", "x").exception)


def test_every_help_shows_few_options_and_says_how_many_more_there_are():
    for name, one in commands().items():
        short, long = (run(one, word).output for word in ("--help", "--help-all"))
        listed = [line for line in short.split("\nOptions:")[1].splitlines() if line.startswith("  -")]
        assert len(listed) <= MAX_OPTIONS_SHOWN, name
        typed = {entry.opts[0] for entry in one.params if entry.opts[0].startswith("-")} - {"--help-all"}
        assert [option for option in typed if option not in long] == [], name
        left = len(typed) - len({line.split()[0].rstrip(",") for line in listed} & typed)
        assert (f"{left} more options: --help-all." in short) == (left > 0), name


def test_what_is_shared_is_an_option_of_each_command_that_shares_it():
    options = {name: set(names(one)) for name, one in commands().items()}
    known = {kind: set(kind.__struct_fields__) for kind in (Reading, Planning, SharedDrawOptions)}

    assert known[Reading] - options["doctor"] == {"by", "show", "features"}
    assert known[Planning] - options["plan"] == {"show"}
    assert known[SharedDrawOptions] - options["draw"] == {"assume"}


LATER = {
    *("--disagreements", "--detect", "--equal-answers", "--power"),  # a second look, a plan for a difference
    "--calibrate-by",  # calibration by domain
    *("--looks", "--look"),  # planned looks
    *("--select", "--indifference"),  # the best of several models
    "--history",  # earlier models' results
    *("--allow-images", "--submit-on-choice"),  # the labelling page
    "--label",  # labels of the demonstration
    "--failed-answers",  # answers of a log that failed
    "--tags",  # answers and labels that are sets
    "--score",  # thresholds
    *("--wave", "--reference", "--previous", "--max-change"),  # waves over time
    *("--sensitivity", "--specificity"),  # a plan from the error rates of a judge
    "--format",  # Markdown for comments on pull requests
    "--since",  # units of a platform
}
"""Options of capabilities that came after the limit was set, and that no other option can say."""


def test_there_are_at_most_a_hundred_options():
    typed = {name for one in commands().values() for entry in one.params for name in entry.opts}
    names = {name for name in typed if name.startswith("--")}
    assert len(names - LATER) <= 100
    assert names >= LATER


def test_the_helps_of_all_commands_load_no_numpy():
    code = (
        "import sys; from stratal.cli.application import commands; commands(); print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
