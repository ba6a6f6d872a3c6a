"""A command's options are the fields of a record."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields
from typing import Annotated

import typer
from typer.testing import CliRunner

from stratal.cli.application import app
from stratal.cli.draw import SharedDrawOptions
from stratal.cli.options import Planning, Reading
from stratal.cli.records import takes


@dataclass(frozen=True, kw_only=True)
class Shared:
    size: Annotated[int, typer.Option("--size", "-s", help="How many.")] = 3
    json: bool = False


@dataclass(frozen=True, kw_only=True)
class Own(Shared):
    file: Annotated[str, typer.Argument(metavar="FILE")]
    hidden: str = "kept"


def names(command):
    return list(inspect.signature(command).parameters)


def test_the_function_gets_the_record_with_what_was_typed():
    seen = []
    small = typer.Typer()
    small.command()(takes(Own)(seen.append))

    assert CliRunner().invoke(small, ["there", "-s", "5"]).exit_code == 0
    assert seen == [Own(file="there", size=5)]


def test_left_out_fields_are_no_options_and_keep_their_defaults():
    seen = []
    command = takes(Own, without=("hidden",))(seen.append)

    command(file="there")

    assert names(command) == ["size", "file", "json"]
    assert seen[0].hidden == "kept"


def test_the_named_order_follows_what_is_not_named_and_json_is_last():
    assert names(takes(Own, order=("hidden", "size"))(print)) == ["file", "hidden", "size", "json"]


def test_what_is_shared_is_an_option_of_each_command_that_shares_it():
    commands = typer.main.get_command(app).commands
    options = {name: {entry.name for entry in command.params} for name, command in commands.items()}
    known = {kind: {entry.name for entry in fields(kind)} for kind in (Reading, Planning, SharedDrawOptions)}

    assert known[Reading] - options["inspect"] == {"by", "show", "features", "predicted", "second_moment"}
    assert known[Planning] - options["plan"] == {"show"}
    assert (
        known[SharedDrawOptions] - options["draw"] == known[SharedDrawOptions] - options["init"] == {"assume"}
    )
