"""`stratal draw`: choose the units to label."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import structs

import stratal
from stratal.cli.command import Option, argument, command, command_words, options_of, selected_fields
from stratal.cli.conditions import ValueCondition, Values, with_any, without_all
from stratal.cli.draw_options import DRAW_NEEDS, SharedDrawOptions
from stratal.cli.options import Reading, Text, Whole
from stratal.cli.output import Result, show_progress
from stratal.cli.parsing import parse_meanings, parse_pair, parse_path
from stratal.cli.plan_file import PlanFile
from stratal.cli.reading_again import (
    connection_words,
    read_population_again,
    require_named_connections,
    unknown_file_error,
    value_words,
)
from stratal.errors import InputError
from stratal.names import split_names
from stratal.protocols import JsonDict, Keywords

if TYPE_CHECKING:
    from stratal import Sample
    from stratal.designs.labelling_files import LabellingFolder
    from stratal.planning import RequiredSampleSize


def is_workbook(path: Path) -> bool:
    """Return whether a path has the suffix of a workbook."""
    return path.suffix.lower() == ".xlsx"


def _writes_workbook(values: Values) -> bool:
    """Return whether the output is a workbook."""
    return is_workbook(values["output"])


# Conditions under which options have an effect.
TO_WORKBOOK = ValueCondition("with --output NAME.xlsx", _writes_workbook)


class DrawOptions(SharedDrawOptions, frozen=True, kw_only=True):
    """The options of `draw`: how to draw, where to write, and how to extend an earlier sample.

    Parameters
    ----------
    extend : SAMPLE or TABLE
        Sample to extend; or a table with labels in some rows, which then form the first round.
    chosen : HOW, default random
        How the labelled rows of a table in --extend were chosen: random, random-within:COLUMN, or unknown
        (the labels then only inform the allocation of a new sample).
    labels : paths
        Existing labels of the sample in --extend; may be repeated.
    value : COL,…, default label
        Label column, or one per annotator, for --extend.
    same_rows : bool
        Accept labels that have row numbers as ids and no column sample_token.
    additional : int
        Number of units to add, for --extend.
    choices : ANSWER,…, default those of --map
        Answers that the workbook of --output accepts, such as Pass,Fail.
    """

    file: Annotated[Path, argument("FILE", "A plan, or a file of predictions.", parser=parse_path)] = None  # type: ignore[assignment]
    output: Annotated[
        Path,
        Option(
            "Directory to write to; it must be empty or must not exist yet. For NAME.xlsx, the directory "
            "NAME contains a workbook to label instead of to_label.csv."
        ),
    ]
    choices: Annotated[Text, Option(needs=(TO_WORKBOOK,))] = None
    extend: Path | None = None
    labels: Annotated[list[Path] | None, Option(needs=(with_any("extend"),))] = None
    value: Annotated[Text, Option(needs=(with_any("extend"),))] = None
    chosen: Annotated[Text, Option(needs=(with_any("extend"),))] = None
    same_rows: Annotated[bool, Option(needs=(with_any("extend"),))] = False
    additional: Annotated[Whole, Option(needs=(with_any("extend"),))] = None

    @property
    def folder(self) -> Path:
        """The directory to write to: the output, without the suffix of a workbook."""
        return self.output.with_suffix("") if self.is_workbook else self.output

    @property
    def is_workbook(self) -> bool:
        """Whether the table to label is a workbook."""
        return is_workbook(self.output)

    def workbook_choices(self, sample: Sample) -> tuple[str, ...] | None:
        """Return the answers that the workbook accepts; None if the table to label is a CSV file."""
        if not self.is_workbook:
            return None
        if self.choices:
            return split_names(self.choices)
        return tuple(sample.question.outcome.mapping or ())

    def with_plan(self, plan: PlanFile | None, *, extending: bool) -> DrawOptions:
        """Return the options with those of a plan; options of the command line come first.

        Raises
        ------
        InputError
            For an option that belongs to the plan and differs from it.
        """
        if plan is None:
            return self
        stored = plan.options
        # A further round may read the population from another file.
        if extending and self.file is not None:
            stored = structs.replace(stored, file=self.file, remote=self.remote)
        require_named_connections(options_of(Reading, stored), options_of(Reading, self))
        defaults = structs.asdict(SharedDrawOptions(file=Path()))
        planned = structs.asdict(plan.options)
        requested = structs.asdict(options_of(SharedDrawOptions, self))
        changes: Keywords = {"file": stored.file}
        del defaults["file"]
        for name, default in defaults.items():
            is_planned = planned[name] != default
            # The sample stores the options of its first round.
            is_stored = extending and name in _FIRST_ROUND.split()
            if is_planned and requested[name] == default and not is_stored:
                changes[name] = planned[name]
            elif requested[name] not in (default, planned[name]) and not extending:
                self._refuse_difference(name, is_planned=is_planned)
        # A number of units to add replaces the half-width of the plan.
        if extending and self.additional is not None:
            changes.pop("half_width", None)
        return structs.replace(self, **changes)

    def _refuse_difference(self, name: str, *, is_planned: bool) -> None:
        """Raise an error for an option that differs from the plan, unless it does not change the draw."""
        if not _may_differ(name, is_planned=is_planned):
            option_name = "--" + name.replace("_", "-")
            raise InputError(
                f"{option_name} is set by the plan",
                given=f"{option_name} with {self.file}",
                action="Omit the option, or plan again with it.",
            )


# Options of a first round, which the sample stores. A seed also belongs to the draw from a table with labels.
_FIRST_ROUND_DESIGN = (
    "budget design cluster residual_sd strata stratify by allocation minimum estimand for_ previous"
)
_FIRST_ROUND = f"{_FIRST_ROUND_DESIGN} seed"


def _draws_with_seed(values: Values) -> bool:
    """Return whether the draw uses the seed; for a further round of a sample, the sample stores it."""
    from stratal.evaluation import is_sample

    return values["extend"] is None or not is_sample(values["extend"])


FIRST_DRAW = ValueCondition("without --extend SAMPLE, which stores the seed", _draws_with_seed)

# Options that read a file of predictions, or that belong to a sample without labels. A table with labels is
# read as by `estimate`.
_FIELDS_WITHOUT_LABELLED_TABLE = (
    "compare looks same_rows margin delimiter softmax missing label answers history remote engine threads "
    "memory"
)


def _extends_no_table(values: Values) -> bool:
    """Return whether units are drawn from a file of predictions, and not from a table with labels."""
    from stratal.evaluation import is_sample

    return values["extend"] is None or is_sample(values["extend"])


WITHOUT_LABELLED_TABLE = ValueCondition("without --extend TABLE", _extends_no_table)

# Options of `estimate` for the labels of a sample, and for a table with labels in some rows.
_LABEL_OPTIONS = ("value", "positive", "map", "same_rows")
_TABLE_OPTIONS = (
    *("value", "positive", "map", "id", "proxy", "predicts", "predicted", "judge", "chosen", "bounds"),
    *("tags", "outcome", "confidence_level", "target"),
)

# Options that may differ from the plan: the shown and stored columns, and how the file is read.
_FREE_OPTIONS = "seed show groups threads memory engine"


def _may_differ(name: str, *, is_planned: bool) -> bool:
    """Return whether an option may differ from the plan."""
    from stratal.question import ROLES

    # Judges, compared models and the target change no draw.
    additions = (*(role.keyword for role in ROLES if role.several), "compare", "target")
    return name in _FREE_OPTIONS.split() or (not is_planned and name in additions)


@command(
    DrawOptions,
    without="assume",
    needs={
        _FIRST_ROUND_DESIGN: without_all("extend", reason="in a first round"),
        "seed": FIRST_DRAW,
        _FIELDS_WITHOUT_LABELLED_TABLE: WITHOUT_LABELLED_TABLE,
        **DRAW_NEEDS,
    },
)
def draw(requested: DrawOptions) -> Result:
    """Draw the units to label, from a plan or its options.

    Writes three files. sample.parquet is required for the estimate. to_label.csv has the ids, the columns of
    --show and an empty column `label`, in random order; it contains nothing that would influence annotators.
    plan.json records how the sample was drawn, for `study new` and for further rounds. With --output
    NAME.xlsx, the table to label is NAME/to_label.xlsx, in which a list restricts the labels to --choices.

    With --extend, --labels and --additional, it draws a further round of the same sample, allocated on the
    basis of the existing labels; to_label.csv then contains only the new units.

    If --extend is a table with labels in some rows, the units are drawn from the other rows. Labels of rows
    that were chosen at random form the first round, and are written to labels.csv.

    With --half-width, it draws a pilot. With --half-width, --extend and --labels, it draws as many units as
    are still needed; nothing is written once the interval is narrow enough.
    """
    from stratal.designs.labelling_files import require_empty_folder, write_labelling_folder
    from stratal.evaluation import is_sample
    from stratal.report.pages import draw_page

    require_empty_folder(requested.folder)
    needed = None
    further_entries: JsonDict = {}
    if requested.extend is not None and not is_sample(requested.extend):
        return _extend_table(requested, requested.extend)
    if requested.extend is None:
        requested, sample, further_entries = _draw_first_round(requested)
    else:
        requested, sample, needed = _draw_further_round(requested, requested.extend)
        if needed is not None and needed.additional == 0:
            return _nothing_to_draw(requested, needed)
    sample = replace(sample, question=requested.with_declarations(sample.question))
    plan_text = PlanFile.of(options_of(SharedDrawOptions, requested), None).text(requested.folder)
    choices = requested.workbook_choices(sample)
    written = write_labelling_folder(sample, requested.folder, plan_text, choices)
    described = _described_round(sample, written)
    described |= _described_clusters(sample, requested.budget)
    half_width = requested.half_width
    if half_width is not None:
        described |= {"half_width": half_width, "needed": None if needed is None else needed.to_dict()}
    described |= further_entries
    # With columns to show, no further ones are suggested.
    has_columns = requested.extend is not None or len(sample.shown) > 0
    content = () if has_columns else requested.content_columns
    page = [
        draw_page(described, _stratum_rows(sample), has_columns=has_columns, content=content),
        *_labelling_step(written),
    ]
    return Result(described, page, _next_command(requested, sample, written))


def _draw_first_round(requested: DrawOptions) -> tuple[DrawOptions, Sample, JsonDict]:
    """Return the options with those of the plan, the sample, and further entries of the result.

    These are the texts of `SharedDrawOptions.sample`, and the notes on reading a file of predictions.
    """
    source = requested.file
    plan = None if source is None else PlanFile.read(source)
    requested = requested.with_plan(plan, extending=False)
    if source is None:
        raise InputError("the source of the draw is missing", allowed="a plan, or a file of predictions")
    sample, texts = requested.sample()
    if sample.population is None:
        return requested, sample, {**texts}
    if plan is None:
        return requested, sample, {**texts, "notes": list(sample.population.notes)}
    # `stratal plan` printed the notes.
    plan.require_unchanged(source, sample.population)
    return requested, sample, {**texts}


def _next_command(requested: DrawOptions, sample: Sample, written: LabellingFolder) -> tuple[Any, ...]:
    """Return the words of the command that reads the labels of a drawn sample."""
    from stratal.estimation import as_estimand

    label_files = [*(requested.labels or []), written.to_label]
    column_words = value_words(requested.value)
    goal = as_estimand(sample.question.estimand)
    n_second_round = (requested.budget or 0) - sample.size
    # A first round of two: the rest of the budget is drawn in the second one.
    if requested.extend is None and goal.has_two_rounds and n_second_round > 0:
        round_words = ("--labels", written.to_label, "--additional", n_second_round)
        output_words = (*connection_words(requested), "--output", f"{requested.folder}-2")
        return ("draw", "--extend", written.sample, *round_words, *output_words)
    if not goal.is_estimated:
        require = goal.to_dict()["require"]
        return ("threshold", written.sample, *label_files, *column_words, "--require", require)
    if requested.half_width is None:
        look_words = () if sample.looks is None or requested.extend is not None else ("--look", 1)
        return ("estimate", written.sample, *label_files, *column_words, *look_words)
    # After a pilot, the labels determine how many units are still needed.
    label_words = [*(word for path in label_files for word in ("--labels", path)), *column_words]
    output_words = (*connection_words(requested), "--output", f"{requested.folder}-next")
    return ("draw", "--extend", written.sample, *label_words, *output_words)


def _labelling_step(written: LabellingFolder) -> list[str]:
    """Return the lines on what people do before the next command."""
    return ["", f"Label the items in {written.to_label} first."]


def _described_round(sample: Sample, written: LabellingFolder) -> JsonDict:
    """Return the entries of the result about the units, the written files and the columns to fill in."""
    from stratal.designs.labelling_files import columns_to_fill

    entries: JsonDict = {
        "sample": str(written.sample),
        "to_label": str(written.to_label),
        "n": sample.size,
        "seed": sample.seed,
        "design": sample.design.kind,
        "population_size": sample.population_size,
        "round": int(sample.round.max()),
        "new": written.n_to_label,
        "columns_to_fill": list(columns_to_fill(sample)),
        "label_hint": sample.question.label_hint(_drawn_classes(sample)),
    }
    label_format = sample.question.outcome.label_format
    if label_format is not None:
        entries["label_format"] = label_format
    return entries


def _described_clusters(sample: Sample, budget: int | None) -> JsonDict:
    """Return the entries about a sample of clusters: their number, and the budget, which they may exceed."""
    from stratal.designs import ClusterSample

    design = sample.design
    if not isinstance(design, ClusterSample):
        return {}
    entries: JsonDict = {"clusters": len(set(sample.groups[design.cluster].tolist()))}
    if budget is not None:
        entries["budget"] = budget
    return entries


def _drawn_classes(sample: Sample) -> list[str]:
    """Return the model's answers on the drawn units; those of all units would need another query."""
    answers = sample.groups.get(sample.question.answer or "")
    if answers is None:
        return []
    return sorted({str(answer) for answer in answers.tolist()} - {""})


def _extend_table(requested: DrawOptions, table: Path) -> Result:
    """Draw further rows of a table with labels in some rows, and write them with the sample of all rounds."""
    from stratal.designs.labelling_files import LABELS_NAME, write_labelling_folder
    from stratal.question.chosen_rows import UNKNOWN
    from stratal.report.pages import draw_page

    if requested.labels:
        raise InputError(
            "--labels applies only to a drawn sample; a table already contains its labels",
            given=f"--extend {table}",
            action="For a sample: --extend SAMPLE --labels FILE. To extend a table with labels in some "
            "rows, leave out --labels.",
        )
    if (requested.additional is None) == (requested.half_width is None):
        raise InputError(
            "--extend with a table requires the number of rows to add, or a half-width",
            allowed="--extend TABLE, with --additional N or --half-width W",
        )
    if requested.file is not None and requested.file != table:
        action = "Leave FILE out: the rows are drawn from the table."
        raise InputError(
            "--extend with a table draws from that table", given=str(requested.file), action=action
        )
    names = ("id", "value", "chosen", "confidence_level", "tags", "outcome", "target")
    options = selected_fields(requested, *names)
    with show_progress("reading and drawing"):
        evaluation = stratal.evaluate(
            table,
            proxy=split_names(requested.proxy),
            predicts=parse_meanings(requested.predicts),
            groups=split_names(requested.groups),
            bounds=parse_pair("--bounds", requested.bounds),
            **requested.role_keywords,
            **requested.label_values,
            **options,
        )
        additional = requested.additional
        half_width = requested.half_width
        if half_width is not None and evaluation.sample.question.chosen != UNKNOWN:
            level = requested.confidence_level
            needed = stratal.labels_needed(
                evaluation.sample, evaluation.labels, half_width, confidence_level=level
            )
            if needed.additional == 0:
                return _nothing_to_draw(requested, needed)
            additional = needed.additional
            half_width = None
        sample = evaluation.next_round(
            additional=additional,
            half_width=half_width,
            show=split_names(requested.show),
            seed=requested.seed,
        )
    sample = replace(sample, question=requested.with_declarations(sample.question))
    is_first_round = int(sample.round.max()) == 1
    labels = None if is_first_round else evaluation.labels
    choices = requested.workbook_choices(sample)
    written = write_labelling_folder(sample, requested.folder, None, choices, labels)
    described = _described_round(sample, written)
    page = [draw_page(described, _stratum_rows(sample), has_columns=True), *_labelling_step(written)]
    label_files = [written.to_label] if is_first_round else [requested.folder / LABELS_NAME, written.to_label]
    return Result(described, page, ("estimate", written.sample, *label_files))


def _nothing_to_draw(requested: DrawOptions, needed: RequiredSampleSize) -> Result:
    """Return the result if the target is reached, or no unit is left."""
    from stratal.cli.estimate import EvidenceOptions

    if needed.reached:
        reason = "the interval is narrow enough"
    elif needed.estimand:
        reason = "every relevant unit has been drawn"
    else:
        reason = "every unit has been drawn"
    extended = str(requested.extend)
    target = needed.target_half_width
    described = {"sample": extended, "new": 0, "half_width": target, "needed": needed.to_dict()}
    line = f"No more labels: {reason} (± {needed.half_width:.4g}, target ± {target:g})."
    files = [Path(extended), *(requested.labels or [])]
    # The sample stores the other options.
    options = selected_fields(requested, *(_LABEL_OPTIONS if requested.labels else _TABLE_OPTIONS))
    estimate_options = EvidenceOptions(files=files, **options)
    return Result(described, line, ("estimate", *command_words(estimate_options)))


def _stratum_rows(sample: Sample) -> list[list[Any]]:
    """Return name, size, new units and units of earlier rounds for each stratum; empty without names."""
    names = sample.design.stratum_names
    sizes = sample.summary.sizes.tolist()
    if len(names) != len(sizes):
        return []
    is_new = sample.round == sample.round.max()
    new_counts = Counter(sample.stratum[is_new].tolist())
    rows = []
    for h, (name, size, drawn_count) in enumerate(zip(names, sizes, sample.n_h.tolist(), strict=True)):
        rows.append([name, size, new_counts[h], drawn_count - new_counts[h]])
    return rows


def _draw_further_round(
    requested: DrawOptions, extend: Path
) -> tuple[DrawOptions, Sample, RequiredSampleSize | None]:
    """Return the options with those of the first round, the extended sample, and the size for a half-width.

    If no more units are needed, the sample is not extended.
    """
    requested = requested.with_plan(PlanFile.next_to(extend), extending=True)
    additional = requested.additional
    half_width = requested.half_width
    if requested.file is None:
        raise unknown_file_error(extend)
    if not requested.labels or (additional is None) == (half_width is None):
        problem = (
            "--extend requires the existing labels, and either the number of units to add or a half-width"
        )
        allowed = "--extend SAMPLE --labels FILE, with --additional N or --half-width W"
        raise InputError(problem, allowed=allowed)
    sample = stratal.Sample.read(extend)
    labels = stratal.read_labels(
        *requested.labels,
        id_name=sample.question.id,
        value=requested.value,
        same_rows=requested.same_rows,
        **requested.label_values,
    )
    options: Keywords = {"confidence_level": requested.confidence_level}
    if requested.predicted is not None:
        options["predicted"] = requested.predicted
    with show_progress("reading and drawing"):
        # `with_plan` has compared connections of the plan with the command line.
        reading = options_of(Reading, requested)
        options["population"] = read_population_again(reading, sample, reading)
        needed = None
        if half_width is not None:
            needed = stratal.labels_needed(sample, labels, half_width, **options)
            if needed.additional == 0:
                return requested, sample, needed
        extended_sample = stratal.next_round(
            sample, labels, additional=additional, half_width=half_width, **options
        )
    return requested, extended_sample, needed
