"""Read the file of an existing sample, plan or study again.

A plan or study may come from somebody else. An address or engine that it stores is used only if the command
line names it, too.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import structs

from stratal.cli.command import selected_fields
from stratal.cli.options import Reading
from stratal.cli.parsing import join_names, parse_path
from stratal.errors import InputError
from stratal.names import split_names
from stratal.protocols import Keywords

if TYPE_CHECKING:
    from stratal import Population, Sample
    from stratal.study import Study


def unknown_file_error(sample: Path) -> InputError:
    """Return the error for a sample whose file of predictions is unknown."""
    problem = f"{sample}: its folder has no plan.json, so the file of its predictions is unknown"
    return InputError(problem, action="Name that file: stratal draw FILE --extend SAMPLE ….")


def stored_reading_options(study: Study) -> Keywords:
    """Return the options with which a study's predictions were read; empty if they are unknown."""
    try:
        stored = json.loads(study.setting("reading") or "{}")
        options = {name: value for name, value in stored.items() if name in Reading.__struct_fields__}
        if options:
            msgspec.convert(options, Reading, dec_hook=lambda _, value: parse_path(value))
    except (msgspec.ValidationError, ValueError, AttributeError) as error:
        problem = f"{study.folder}: the record of how its predictions were read is damaged ({error})"
        raise InputError(problem, action="Name that file: --population FILE.") from None
    if options:
        return options | {"file": parse_path(options["file"])}
    return {}


def connection_words(reading: Reading) -> list[str]:
    """Return the options that the next command needs to open the same file: an address, or Spark."""
    from stratal.tables.untrusted import find_connections

    connections = find_connections(structs.asdict(reading))
    engine = connections.pop("engine", None)
    if engine is not None:
        return ["--engine", engine]
    if connections:
        return ["--remote"]
    return []


def value_words(value: str | None) -> list[str]:
    """Return the option that the next command needs to read the same column of existing labels.

    The file to label of a further round has the column `label` instead, which is read too.
    """
    return [] if value is None else ["--value", value]


def require_named_connections(stored: Reading, named: Reading | None) -> None:
    """Raise an error if a plan or study names a connection or Spark, and the command line does not.

    Otherwise the author of the plan or study could make this computer connect to another.

    Parameters
    ----------
    stored : Reading
        Options stored in the plan or study.
    named : Reading or None
        The options of the command line.
    """
    from stratal.tables.untrusted import find_connections

    connections = find_connections(structs.asdict(stored))
    engine = connections.pop("engine", None)
    if engine is not None and (named is None or named.engine != engine):
        problem = "the plan or study reads its file with another engine, which may be on another computer"
        raise InputError(problem, given=f"--engine {engine}", action=_ADD_OPTION_IF_TRUSTED)
    # Spark, once it is named, reads its own addresses.
    if connections and engine is None and not (named is not None and named.remote):
        problem = "the plan or study names a file that is not on this computer"
        address = f"{next(iter(connections.values()))} without --remote"
        raise InputError(problem, given=address, action=_ADD_OPTION_IF_TRUSTED)


# The next step after the refusal of a stored connection.
_ADD_OPTION_IF_TRUSTED = (
    "If you trust the source of the plan or study, add this option. Otherwise, give a file on this computer "
    "(--population FILE, if the command has this option)."
)


def read_population_again(reading: Reading, sample: Sample, named: Reading | None = None) -> Population:
    """Read the file of a sample again, with the columns that the sample stores.

    Connections are opened only if the options of the command line, `named`, contain them.
    """
    from stratal.question import ROLES

    require_named_connections(reading, named)
    requested_roles = selected_fields(reading, *(role.keyword for role in ROLES))
    roles = {}
    for role in ROLES:
        stored_columns = join_names(*role.columns(sample.question)) or None
        roles[role.keyword] = requested_roles[role.keyword] or stored_columns
    # The proxy of class probabilities has no column.
    stored_proxy = None if reading.softmax else ",".join(sample.proxy_names)
    complete_reading = structs.replace(
        reading,
        id=reading.id or sample.question.id,
        proxy=reading.proxy or stored_proxy,
        tags=reading.tags or sample.question.outcome.tag_format,
        predicts=reading.predicts or _declared_meanings(sample),
        groups=_with_stored_columns(reading.groups, sample.groups),
        show=_with_stored_columns(reading.show, sample.shown),
        **roles,
    )
    try:
        return complete_reading.with_columns_of(sample.question.estimand).population()
    except InputError as error:
        action = "Give the unchanged file from which the sample was drawn."
        new_columns = [name for name in split_names(reading.show) if name not in sample.shown]
        if new_columns:
            action += f" If the file is unchanged, leave {new_columns[0]!r} out of --show."
        raise InputError(
            f"the file of the sample cannot be read in the same way as when the sample was drawn: {error}",
            action=action,
        ) from error


def _with_stored_columns(option: str | None, stored: Collection[str]) -> str | None:
    """Return the columns of an option with those of the sample, which must be read to be compared.

    A pattern of the option may match a stored column already.
    """
    from stratal.population.column_names import match_patterns

    columns = split_names(option)
    matched_columns = match_patterns(columns, tuple(stored))
    return join_names(*columns, *(column for column in stored if column not in matched_columns)) or None


def _declared_meanings(sample: Sample) -> str | None:
    """Return the declared meanings of a sample's proxies, in the form of `--predicts`."""
    meanings = (f"{score.name}={score.predicts}" for score in sample.question.scores if score.declared)
    return ",".join(meanings) or None
