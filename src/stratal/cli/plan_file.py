"""The file of a plan, which `plan --output` writes and `draw` reads."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct, structs

import stratal
from stratal.cli.draw_options import SharedDrawOptions
from stratal.cli.parsing import Widths, parse_path
from stratal.errors import InputError
from stratal.protocols import JsonDict, Keywords

if TYPE_CHECKING:
    from stratal import Population


class PlanFile(
    Struct, kw_only=True, tag_field="kind", tag="stratal-plan", omit_defaults=True, forbid_unknown_fields=True
):
    """The contents of a plan's file: how a sample is drawn from a file of predictions.

    Parameters
    ----------
    stratal : str
        The version that wrote the file.
    options : SharedDrawOptions
        Options that differ from their defaults. Paths are relative to the plan's folder.
    population : mapping
        Digest of the population. A draw from a file that has changed is an error.
    row_base : int, optional
        Number of the first row, if ids are row numbers.
    question : mapping, optional
        The roles of the columns, what each proxy predicts, and how labels become numbers. A draw with another
        question is an error.
    """

    stratal: str
    options: SharedDrawOptions
    population: JsonDict | None = None
    row_base: int | None = None
    question: JsonDict | None = None

    @classmethod
    def of(cls, options: SharedDrawOptions, population: Population | None) -> PlanFile:
        """Return the plan of options and of the population that was read with them."""
        if population is None:
            return cls(stratal=stratal.__version__, options=options)
        digest = population.digest(seed=0).to_dict()
        return cls(
            stratal=stratal.__version__,
            options=options,
            population=digest,
            row_base=population.row_base,
            question=planned_question(population, options),
        )

    @classmethod
    def read(cls, path: Path) -> PlanFile | None:
        """Return the plan in a file; None if the file is not a plan or does not exist."""
        if path.suffix.lower() != ".json" or not path.is_file():
            return None
        with path.open("rb") as stream:
            text = stream.read(_MAX_BYTES)
        if b'"stratal-plan"' not in text[:100]:
            return None
        try:
            plan = msgspec.json.decode(text, type=cls, dec_hook=lambda _, value: parse_path(value))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            action = "Write it again: stratal plan … --output."
            raise InputError(f"{path}: the plan is damaged ({error})", action=action) from None
        return structs.replace(plan, options=_with_paths_from(path.parent, plan.options))

    @classmethod
    def next_to(cls, sample: Path) -> PlanFile | None:
        """Return the plan of a sample from the sample's folder; None if there is none."""
        from stratal.designs.labelling_files import PLAN_NAME

        return cls.read(sample.parent / PLAN_NAME)

    def text(self, folder: Path) -> str:
        """Return the content of the plan's file, with paths relative to its folder."""
        paths: Keywords = {"file": self.options.file, "history": self.options.history}
        for name, path in paths.items():
            if path is not None and not _is_address(path):
                paths[name] = _relative_path(path, folder)
        if self.options.previous is not None:
            paths["previous"] = [Path(_relative_path(wave, folder)) for wave in self.options.previous]
        relative_plan = structs.replace(self, options=structs.replace(self.options, **paths))
        encoded = msgspec.json.encode(relative_plan, enc_hook=lambda value: Path(value).as_posix())
        return msgspec.json.format(encoded, indent=2).decode() + "\n"

    def require_unchanged(self, path: Path, population: Population) -> None:
        """Raise an error for a population that differs from the planned one."""
        from stratal.designs.extending import describe_differences
        from stratal.population.column_names import stored_row_base
        from stratal.population.digest import PopulationDigest

        if self.population is None:
            return
        # Ids that are row numbers may begin with 0 or 1.
        renumbered_population = population.with_row_base(stored_row_base(self.row_base, self.options.id))
        if self.question is not None:
            _refuse_other_question(path, self.question, planned_question(population, self.options))
        planned = PopulationDigest(**self.population)
        current = renumbered_population.digest(seed=0)
        differences = describe_differences(population.proxy_names, planned, current)
        if differences or planned.size != current.size:
            problem = f"{self.options.file} has changed since {path} was written"
            if differences:
                problem += f":{differences}"
            raise InputError(
                problem,
                given=f"{current.size:,} units",
                allowed=f"the {planned.size:,} units of the plan, unchanged",
                action="Restore the earlier file, or plan again.",
            )


def _is_address(path: str | Path) -> bool:
    """Return whether a path is an address, such as s3://bucket/file.parquet."""
    return "://" in str(path)


def _with_paths_from(folder: Path, options: SharedDrawOptions) -> SharedDrawOptions:
    """Return the options of a plan with paths that are relative to the current folder, not to the plan's."""
    changes: Keywords = {}
    if not _is_address(options.file):
        changes["file"] = folder / options.file
    if options.history is not None:
        changes["history"] = str(folder / options.history)
    if options.previous is not None:
        changes["previous"] = [folder / wave for wave in options.previous]
    if isinstance(options.half_width, tuple):
        changes["half_width"] = Widths(options.half_width)
    return structs.replace(options, **changes)


def _relative_path(path: str | Path, folder: Path) -> str:
    """Return a path relative to a folder, with `/` as the separator."""
    try:
        return Path(os.path.relpath(Path(path).resolve(), folder.resolve())).as_posix()
    except ValueError:  # on Windows, a path on another drive
        return Path(path).resolve().as_posix()


def planned_question(population: Population, options: SharedDrawOptions) -> JsonDict:
    """Return the question of a plan as a JSON-serializable dict."""
    from stratal.designs import derive_question
    from stratal.estimation import as_estimand

    question = derive_question(population, population.group_names, population.shown_names)
    question = options.with_declarations(question)
    if options.goal is not None:
        question = replace(question, estimand=as_estimand(options.goal).to_dict())
    return question.to_dict()


def _refuse_other_question(path: Path, planned: JsonDict, current: JsonDict) -> None:
    """Raise an error if columns have other roles than in the plan, such as a proxy on another scale.

    Other fields are not compared: a draw may keep and show more columns than the plan.
    """
    from stratal.question import ROLES

    # A draw may declare these fields if the plan did not.
    optional_fields = (*(role.field for role in ROLES if role.several), "models", "target")
    for name in ("id", "scores", "answer", "outcome", "estimand", *optional_fields):
        is_compared = name in planned or name not in optional_fields
        if is_compared and planned.get(name) != current.get(name):
            raise InputError(
                f"{path}: the roles of the columns in the plan and in the file differ ({name!r})",
                given=f"{current.get(name)} now",
                allowed=f"{planned.get(name)}, as planned",
                action="Restore the earlier file, or plan again.",
            )


# Maximum size of a plan: a larger JSON file is not read completely.
_MAX_BYTES = 2**20
