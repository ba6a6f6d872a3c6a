"""What every command prints with `--json`, as records, and the JSON Schemas that are made of them."""

from __future__ import annotations

from dataclasses import dataclass, is_dataclass
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from stratal.cli.draw import PlanFile
from stratal.errors import InputError, near_names
from stratal.estimation.estimate import StratumRow
from stratal.planning.plan import PlannedDesign
from stratal.report.estimates import TABLES
from stratal.study.exchange import ImportResult
from stratal.study.question import Question

Number = float | None
Interval = list[Number]
Text = str | UnsetType
"""Text that some objects lack; `UNSET` stands for a name that is not there."""
Whole = int | UnsetType


class PairAgreement(Struct, kw_only=True):
    """How far two annotators agree."""

    first: str
    second: str
    shared: int
    agreeing: Number
    kappa: Number
    classes: list[str]
    confusion: list[list[int]]


class Drift(Struct, kw_only=True):
    """Whether an annotator judges later items otherwise than earlier ones."""

    annotator: str
    what: str
    parts: list[float]
    p_value: Number


class Found(Struct, kw_only=True):
    """A value with its standard error and interval."""

    estimate: Number
    standard_error: Number
    confidence_interval: Interval | None


class Label(Struct, kw_only=True):
    """What an estimate that is not of the mean is of."""

    estimand: Text | None = UNSET
    judge: Text | None = UNSET
    metric: Text | None = UNSET
    class_: Text | None = field(name="class", default=UNSET)
    judged: Text | None = UNSET
    domain: Text | None = UNSET
    a: Text | None = UNSET
    b: Text | None = UNSET


class WinRate(Found, kw_only=True):
    """The share of wins, ties counting half."""

    ties: float


class Row(Label, kw_only=True):
    """One row of a table."""

    estimate: Number
    standard_error: Number
    confidence_interval: Interval | None
    outcome: Text = UNSET
    p_value: Number | UnsetType = UNSET
    more_labels: int | UnsetType | None = UNSET
    n: int
    ratio: Found | UnsetType | None = UNSET
    win_rate: WinRate | UnsetType = UNSET


class Place(Struct, kw_only=True):
    """One model's place among those compared."""

    rank: list[int] | None
    model: str
    mean: float
    confidence_interval: Interval | None
    to_best: Number
    to_best_interval: Interval | None


class LabelValue(Struct, kw_only=True):
    """What a raw value of the labels counts as: a number, a class, a range of numbers, or no answer."""

    column: str | UnsetType = UNSET
    value: str
    count: int
    meaning: float | str | list[float] | None


class Requirement(Struct, kw_only=True):
    """What was required of an interval, and the verdict."""

    required: str
    estimate: Number
    confidence_interval: Interval | None
    verdict: str
    more_labels: int | None


class DisagreementsFile(Struct, kw_only=True):
    """The items on which a judge and people differ."""

    file: str
    items: int


SEVERAL = [
    msgspec.defstruct(
        kind.title(),
        [
            (kind, list[Row]),
            ("confidence_level", float),
            ("notes", list[str]),
            ("leaderboard", list[Place] | UnsetType, UNSET),
            ("label_values", list[LabelValue] | UnsetType, UNSET),
            ("requirements", list[Requirement] | UnsetType, UNSET),
        ],
        namespace={"__doc__": "Several estimates, as a table only."},
    )
    for kind in TABLES
]
"""What is printed of several estimates, one record for each table."""


class Nonresponse(Struct, kw_only=True):
    """Units drawn and labelled."""

    drawn: int
    labelled: int
    rate: float
    worst_bounds: Interval | UnsetType | None = UNSET


class MoreLabels(Struct, kw_only=True):
    """The half-width that more labels would give."""

    labels: int
    half_width: float


class Estimate(Label, kw_only=True):
    """An estimate with all that is needed to judge it."""

    estimate: Number
    standard_error: Number
    confidence_interval: Interval | None
    degrees_of_freedom: Number
    confidence_level: Number
    interval_method: str | None
    n: int
    labels: Whole = UNSET
    population_size: int
    target: str
    design: str
    estimator: str
    outcome: str
    bounds: Interval | None
    lam: list[float]
    design_effect: Number
    effective_sample_size: Number
    effective_sample_size_interval: Interval | None
    random_labels_of_equal_width: Number
    relative_efficiency: Number
    nonresponse: Nonresponse
    label_values: list[LabelValue] | UnsetType = UNSET
    strata: list[StratumRow]
    notes: list[str]
    estimands: list[Row] | UnsetType = UNSET
    outcomes: list[Row] | UnsetType = UNSET
    metrics: list[Row] | UnsetType = UNSET
    comparisons: list[Row] | UnsetType = UNSET
    questions: list[Row] | UnsetType = UNSET
    domains: list[Row] | UnsetType = UNSET
    judge: list[Row] | UnsetType = UNSET  # type: ignore[assignment]
    judge_groups: list[Row] | UnsetType = UNSET
    disagreements: DisagreementsFile | UnsetType = UNSET
    warnings: list[str] | UnsetType = UNSET
    leaderboard: list[Place] | UnsetType = UNSET
    requirements: list[Requirement] | UnsetType = UNSET
    more_labels: list[MoreLabels] | UnsetType = UNSET


class LabelsOfPlan(Struct, kw_only=True):
    """Labels that the plan's expectations follow from."""

    used: int
    source: str
    mean: float
    proxy_mean: Number


class PlannedStratum(Struct, kw_only=True):
    """A stratum of a plan."""

    name: str
    size: int
    n: int
    proxy_mean: Number
    expected_standard_deviation: Number


class PlannedAllocation(Struct, kw_only=True):
    """What a budget is expected to give shared by one rule."""

    allocation: str
    optimistic_standard_error: float
    expected_standard_error: float
    conservative_standard_error: float
    relative_efficiency: float


class PlannedPart(Struct, kw_only=True):
    """What a plan expects of one of several estimands."""

    estimand: str
    labels: int
    expected_standard_error: float
    expected_half_width: float
    wanted_half_width: Number
    relative_efficiency: Number


class Plan(Struct, kw_only=True):
    """What a budget buys."""

    labels: LabelsOfPlan | UnsetType = UNSET
    population_size: int
    budget: int
    half_width: Number
    assume: str | None
    pilot: bool
    expected_half_width: Number
    half_width_range: Interval | None
    worst_half_width: Number
    worst_bounds: Interval | None
    detectable_difference: Number
    confidence_level: float
    looks: str | UnsetType = UNSET
    recommended: PlannedDesign
    allocation: str
    stratification: str
    designs: list[PlannedDesign]
    allocations: list[PlannedAllocation]
    strata: list[PlannedStratum]
    estimand: dict[str, Any] | UnsetType = UNSET
    estimands: list[PlannedPart] | UnsetType = UNSET
    assumptions: list[str]
    notes: list[str]


class Detected(Struct, kw_only=True):
    """Labels of a comparison by which a difference shows."""

    comparison: str
    labels: int


class Detection(Struct, kw_only=True):
    """Labels by which a difference shows, without a file."""

    detect: float
    power: float
    confidence_level: float
    population_size: int | None
    detections: list[Detected]


class Demo(Struct, kw_only=True):
    """The demonstration: plan, estimate and truth."""

    plan: Plan
    estimate: Estimate
    truth: float
    output: Text = UNSET


class FilledLabels(Struct, kw_only=True):
    """Labels of the demonstration that were filled in."""

    file: str
    labels: int


class JudgedModels(Struct, kw_only=True):
    """A long table with one row per unit and model."""

    column: str
    count: int
    first: str
    id: str | None


class Column(Struct, kw_only=True):
    """A column of a file."""

    name: str
    kind: str
    missing: int | None
    distinct: int | None
    minimum: Number
    maximum: Number
    mean: Number


class Proxy(Struct, kw_only=True):
    """A proxy as it was read."""

    name: str
    scaled: bool
    bounds: Interval | None
    mean: float
    bins: int
    quantiles: list[float]


class Inspection(Struct, kw_only=True):
    """What is in a file."""

    file: str
    rows: int
    columns: list[Column]
    softmax: Any
    models: JudgedModels | None
    notes: list[str]
    population_size: Whole = UNSET
    proxies: list[Proxy] | UnsetType = UNSET
    groups: dict[str, int] | UnsetType = UNSET


class ToolAnswers(Struct, kw_only=True):
    """Answers from an annotation tool."""

    file: str
    tool: str
    answers: int
    items: int
    skipped: int
    annotators: list[str]
    belongs_to: list[str]


class TableOfLabels(Struct, kw_only=True):
    """A table of labels of a known sample or study."""

    file: str
    rows: int
    answers: int
    belongs_to: list[str]
    id: str


class Folder(Struct, kw_only=True):
    """The folder of a study or a sample."""

    folder: str
    kind: str


class Logs(Struct, kw_only=True):
    """Logs of evaluation tools in a folder."""

    folder: str
    logs: dict[str, str]


class Needed(Struct, kw_only=True):
    """Labels that are still needed for a half-width."""

    wanted: float
    half_width: Number
    reached: bool
    additional: int
    expected_total: int
    estimand: Text = UNSET


class Drawn(Struct, kw_only=True):
    """What was drawn and written."""

    sample: str
    new: int
    to_label: Text = UNSET
    n: Whole = UNSET
    seed: Whole = UNSET
    population_size: Whole = UNSET
    round: Whole = UNSET
    design: Text = UNSET
    half_width: float | UnsetType = UNSET
    half_widths: list[float] | UnsetType = UNSET
    needed: Needed | UnsetType | None = UNSET


class Standing(Struct, kw_only=True):
    """A model in a selection, and its difference from the leader."""

    model: str
    state: str
    difference: Number
    confidence_interval: Interval | None


class Selection(Struct, kw_only=True):
    """How models stand, and what is to be labelled next."""

    statement: str
    winner: str | None
    leader: str
    done: bool
    survivors: list[str]
    labels: int
    drawn: int
    population_size: int
    rounds: int
    random_labels: float
    criterion: str
    confidence: float
    indifference: float
    models: list[Standing]
    notes: list[str]
    sample: Text = UNSET
    to_label: Text = UNSET
    new: Whole = UNSET


class ExpectedLabels(Struct, kw_only=True):
    """How many labels it takes to find the best of several models."""

    models: int
    optimistic: int
    conservative: int
    most: int
    population_size: int
    likely_leader: str


class Side(Struct, kw_only=True):
    """One of several estimators, side by side."""

    name: str
    estimate: Number
    confidence_interval: Interval | None
    what: str
    reported: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportStratum(StratumRow):
    """A stratum of a report."""

    drawn: int
    proxy_mean: Number


class Bias(Struct, kw_only=True):
    """Mean of outcome less proxy."""

    estimate: float
    confidence_interval: Interval


class CalibrationBin(Struct, kw_only=True):
    """Units of similar proxy."""

    from_: float = field(name="from")
    to: float
    proxy_mean: float
    n: int
    outcome_mean: Number
    confidence_interval: Interval | None


class ProxyCorrelation(Struct, kw_only=True):
    """How a proxy goes with the labels."""

    proxy: str
    correlation: Number


class Calibration(Struct, kw_only=True):
    """How the outcome follows the proxy."""

    proxy: str
    bias: Bias | None
    bins: list[CalibrationBin]
    correlations: list[ProxyCorrelation]
    left_open: Number


class Agreement(Struct, kw_only=True):
    """How far annotators agree."""

    annotators: list[str] | UnsetType = UNSET
    answers: Whole = UNSET
    units: Whole = UNSET
    shared: Whole = UNSET
    alpha: Number
    level: str
    variance: Number | UnsetType = UNSET
    agreed: Number | UnsetType = UNSET
    open: Whole = UNSET
    decided: Whole = UNSET
    note: Text = UNSET
    pairs: list[PairAgreement] | UnsetType = UNSET


class Span(Struct, kw_only=True):
    """An estimate between its worst and best cases."""

    estimate: Number
    lowest: float
    highest: float
    confidence_interval: Interval | None


class Version(Struct, kw_only=True):
    """What the labels tell of a new version of the model."""

    units: int
    labelled: int
    missing: int
    same: int
    changed: int
    blank: int
    known: int
    complete: bool
    confidence_level: float
    old: Span
    new: Span
    difference: Span
    needs_labels: list[str]
    needs_answers: list[str]


class Method(Struct, kw_only=True):
    """The method in words."""

    sentences: list[str]
    assumptions: list[str]
    references: list[str]


class Provenance(Struct, kw_only=True):
    """Where a report comes from."""

    written: str
    stratal: str
    drawn_with: str = field(name="drawn with stratal")
    design: str
    digest: str = field(name="sample's SHA-256")
    python: str = field(name="Python")
    numpy: str
    scipy: str
    seed: int
    commands: list[str]


class SecondLook(Struct, kw_only=True):
    """An item whose label another replaced."""

    id: str
    first: str
    now: str


class Report(Struct, kw_only=True):
    """What a report says."""

    kind: str
    title: str | None
    question: str | None
    quantity: str
    share: bool
    confidence_level: float
    estimate: Estimate
    side_by_side: list[Side]
    strata: list[ReportStratum]
    calibration: Calibration | None
    more_labels: list[MoreLabels]
    agreement: Agreement | None
    second_look: list[SecondLook] | None
    new_version: Version | None
    method: Method
    provenance: Provenance
    examples: list[dict[str, Any]]


class Reached(Struct, kw_only=True):
    """Labels at which a design reaches an error."""

    design: str
    estimator: str
    labels: Number
    labels_se: Number


class Simulated(Struct, kw_only=True):
    """The table of a simulation."""

    columns: list[str]
    rows: list[dict[str, Any]]
    labels_to_reach: list[Reached]
    written: list[str]


class NewStudy(Struct, kw_only=True):
    """A study that was made."""

    study: str
    n: int
    population_size: int
    seed: int
    answers: int
    design: str
    question: Question
    questions: list[Question]
    annotators: list[str]
    shown: list[str]
    pictures: dict[str, str]


class Served(Struct, kw_only=True):
    """Where the page is, with a link for each annotator."""

    study: str
    address: str
    owner: str
    links: dict[str, str]


class Extended(Struct, kw_only=True):
    """A round that was added."""

    study: str
    n: int
    new: int
    round: int
    enough: bool
    selection: Selection | UnsetType = UNSET


class Team(Struct, kw_only=True):
    """Who labels."""

    study: str
    annotators: list[str]
    adjudicators: list[str]
    set_aside: list[str]
    rubric_version: int


class Checked(Struct, kw_only=True):
    """Whether a study is sound."""

    study: str
    sound: bool
    problems: list[str]
    notes: list[str]
    items: int
    lines: int
    head: str


class RoundOfOne(Struct, kw_only=True):
    """What one annotator did in a round."""

    round: int
    submitted: int
    skipped: int


class Annotator(Struct, kw_only=True):
    """How far one annotator is."""

    annotator: str
    submitted: int
    skipped: int
    rounds: list[RoundOfOne]
    set_aside: bool
    seconds_per_item: Number
    first: str | None
    last: str | None


class Round(Struct, kw_only=True):
    """How far a round is."""

    round: int
    items: int
    labelled: int
    wanted: int
    answers: int


class Counts(Struct, kw_only=True):
    """Items by what became of them."""

    items: int
    labelled: int
    skipped: int
    open: int


class StratumCounts(Counts, kw_only=True):
    """Items of a stratum."""

    stratum: str


class OpenItems(Counts, kw_only=True):
    """Items of all strata, and of each."""

    strata: list[StratumCounts]


class Disagreements(Struct, kw_only=True):
    """Items on which annotators disagree."""

    open: int
    decided: int
    apart: int
    shared: int
    share: Number


class Flag(Struct, kw_only=True):
    """An item that is flagged."""

    item: str
    annotator: str
    note: str | None


class Pace(Struct, kw_only=True):
    """Median time per item, and what is left."""

    seconds_per_item: Number
    seconds_left: Number


class PlannedLook(Struct, kw_only=True):
    """The last planned look that is due."""

    look: int
    of: int
    estimate: Estimate


class Stop(Struct, kw_only=True):
    """When labelling may stop."""

    half_width: Number
    enough: bool
    half_width_now: Number
    more_labels: int | None


class AskedQuestion(Struct, kw_only=True):
    """What is known of one question, or of one of its choices."""

    outcome: str
    text: str
    estimate: Estimate | None
    anytime_interval: Interval | None
    agreement: Agreement | None
    drift: list[Drift]


class Status(Struct, kw_only=True):
    """How a study stands."""

    study: str
    folder: str
    question: str
    journal: str
    head: str
    rubric_version: int
    server: str | None
    annotators: list[Annotator]
    rounds: list[Round]
    nonresponse: OpenItems
    disagreements: Disagreements
    flags: list[Flag]
    notes_of_annotators: list[Flag]
    time: Pace
    agreement: Agreement | None
    drift: list[Drift]
    estimate: Estimate | None
    anytime_interval: Interval | None
    questions: list[AskedQuestion]
    requirements: list[Requirement] | UnsetType = UNSET
    planned_look: PlannedLook | UnsetType | None = UNSET
    stop: Stop
    notes: list[str]


class ExportedPage(Struct, kw_only=True):
    """A page in one file."""

    study: str
    annotator: str
    file: str
    bytes: int


class Exported(Struct, kw_only=True):
    """Items for another tool."""

    study: str
    to: str
    file: str
    items: int
    annotator: Text = UNSET


@dataclass(frozen=True, kw_only=True, eq=False)
class Imported(ImportResult):
    """Answers that were taken from another tool."""

    study: str
    file: str


class ImportedPage(Struct, kw_only=True):
    """Answers that were taken from a page in one file."""

    study: str
    file: str
    saved: int
    repeated: int
    applied: bool


class Schema(Struct, kw_only=True):
    """A JSON Schema."""

    dialect: str = field(name="$schema")
    id: str = field(name="$id")
    title: str


PRINTED: dict[str, tuple[type, ...]] = {
    "study backup": (Checked,),
    "study check": (Checked,),
    "demo": (Demo, FilledLabels),
    "doctor": (Inspection, ToolAnswers, TableOfLabels, Folder, Logs),
    "draw": (Drawn,),
    "estimate": (Estimate, *SEVERAL),
    "study export": (ExportedPage, Exported),
    "study extend": (Extended,),
    "study import": (Imported, ImportedPage),
    "study new": (NewStudy,),
    "study label": (Served,),
    "plan": (Plan, Detection, ExpectedLabels),
    "select": (Selection,),
    "report": (Report,),
    "schema": (Schema,),
    "simulate": (Simulated,),
    "study status": (Status,),
    "study team": (Team,),
}
"""What each command prints, by its name; objects may gain names later and lose none."""

WRITTEN: dict[str, tuple[type, ...]] = {"plan-file": (PlanFile,)}
"""Files that one command writes and another reads, by the name of their schema."""

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def command_schema(command: str, *, closed: bool = False) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of what a command prints with `--json`, or of a plan's file.

    Parameters
    ----------
    command : str
        Or `plan-file`.
    closed : bool
        Whether objects may have no other names than those given: for tests.

    Raises
    ------
    InputError
        For a command that there is not.

    Examples
    --------
    >>> command_schema("study extend")["$defs"]["Extended"]["properties"]["enough"]
    {'type': 'boolean'}
    """
    known = {**PRINTED, **WRITTEN}
    if command not in known:
        raise InputError(f"no such command: {command!r}", allowed=near_names(command, known))
    ways, parts = msgspec.json.schema_components(
        known[command], ref_template="#/$defs/{name}", schema_hook=lambda _: {"type": "string"}
    )
    for name, part in parts.items():
        part.pop("title", None)
        # The first sentence of a docstring; what follows is for Python.
        part["description"] = part.get("description", "").split("\n\n")[0]
        if is_dataclass(globals().get(name)):
            # Defaults of a dataclass are for Python; what is printed has every name.
            part["required"] = list(part["properties"])
            for kind in part["properties"].values():
                kind.pop("default", None)
        for kind in part["properties"].values():
            # The order of alternatives differs between versions of msgspec.
            kind.get("anyOf", []).sort(key=lambda way: way.get("type") == "null")
        if closed and command != "schema":
            part["additionalProperties"] = False
    return {
        "$schema": DIALECT,
        "$id": f"stratal-{command.replace(' ', '-')}.schema.json",
        "title": f"stratal {command} --json" if command in PRINTED else "plan.json",
        **(ways[0] if len(ways) == 1 else {"anyOf": list(ways)}),
        "$defs": parts,
    }
