"""The output of every command with `--json`, as records, and their JSON Schemas.

Each record has the keys of one object. The docstrings of records are the descriptions in the schemas.
"""

from __future__ import annotations

from dataclasses import dataclass, is_dataclass
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from stratal.cli.plan_file import PlanFile
from stratal.errors import InputError, suggest_names
from stratal.estimation.stratum_table import StratumRow
from stratal.planning.plan import PlannedDesign, PlannedPart
from stratal.protocols import JsonDict
from stratal.report.estimates import TABLES
from stratal.study.import_export import ImportResult
from stratal.study.opening import Check
from stratal.study.question import StudyQuestion

Number = float | None
Interval = list[Number]
# Values of keys that some objects do not have; `UNSET` stands for a missing key.
Text = str | UnsetType
Whole = int | UnsetType
Object = dict[str, Any]
# Objects whose keys the schema does not list, such as a section of a report. They are those of a `to_dict`.
Objects = list[Object]


class NamedEstimate(Struct, kw_only=True):
    """A value with its standard error and interval, and the estimated quantity unless it is the mean."""

    estimate: Number
    standard_error: Number
    confidence_interval: Interval | None
    estimand: Text | None = UNSET
    judge: Text | None = UNSET
    metric: Text | None = UNSET
    class_: Text | None = field(name="class", default=UNSET)
    # The judge's verdict, for the share of units with this verdict and the label `class`.
    judged: Text | None = UNSET
    domain: Text | None = UNSET
    # Names of the two compared models, or other rows, of a difference.
    a: Text | None = UNSET
    b: Text | None = UNSET


class EstimateRow(NamedEstimate, kw_only=True):
    """One row of a table."""

    outcome: Text = UNSET
    share: bool
    p_value: Number | UnsetType = UNSET
    more_labels: int | UnsetType | None = UNSET
    n: int
    estimator: Text = UNSET
    lam: list[float] | UnsetType = UNSET
    interval_method: Text | None = UNSET
    ratio: Object | UnsetType | None = UNSET
    win_rate: Object | UnsetType = UNSET


class Required(Struct, kw_only=True):
    """A requirement of an interval, and the verdict."""

    required: str
    share: bool = False
    estimate: Number
    confidence_interval: Interval | None
    verdict: str
    more_labels: int | None
    reason: Text = UNSET


# Output for several estimates, one record for each kind of table.
SEVERAL = [
    msgspec.defstruct(
        kind.title(),
        [
            (kind, list[EstimateRow]),
            ("confidence_level", float),
            ("notes", list[str]),
            ("leaderboard", Objects | UnsetType, UNSET),
            ("label_values", Objects | UnsetType, UNSET),
            ("requirements", list[Required] | UnsetType, UNSET),
            ("roles", Object | UnsetType, UNSET),
        ],
        namespace={"__doc__": "Several estimates, as a table only."},
    )
    for kind in TABLES
]


class Estimated(NamedEstimate, kw_only=True):
    """An estimate with its interval, design, strata, notes and tables."""

    share: bool

    degrees_of_freedom: Number
    confidence_level: Number
    interval_method: str | None
    n: int
    labels: Whole = UNSET
    clusters: Whole = UNSET
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
    nonresponse: Object
    label_values: Objects | UnsetType = UNSET
    strata: list[StratumRow]
    notes: list[str]
    estimands: list[EstimateRow] | UnsetType = UNSET
    outcomes: list[EstimateRow] | UnsetType = UNSET
    metrics: list[EstimateRow] | UnsetType = UNSET
    calibration: list[EstimateRow] | UnsetType = UNSET
    comparisons: list[EstimateRow] | UnsetType = UNSET
    questions: list[EstimateRow] | UnsetType = UNSET
    domains: list[EstimateRow] | UnsetType = UNSET
    judge: list[EstimateRow] | UnsetType = UNSET  # type: ignore[assignment]
    judge_groups: list[EstimateRow] | UnsetType = UNSET
    disagreements: Object | UnsetType = UNSET
    warnings: list[str] | UnsetType = UNSET
    leaderboard: Objects | UnsetType = UNSET
    new_version: Object | UnsetType = UNSET
    requirements: list[Required] | UnsetType = UNSET
    unscored: Object | UnsetType = UNSET
    quantity: str | UnsetType = UNSET
    # The estimates from judge and labels, from the judge alone, and from the labels alone.
    judge_readings: Objects | UnsetType = UNSET
    # The numbers of labelled items, and of items on which a judge and annotators disagree.
    differing: Object | UnsetType = UNSET
    roles: Object | UnsetType = UNSET
    post_stratified: Object | UnsetType = UNSET
    more_labels: Objects | UnsetType = UNSET


class Planned(Struct, kw_only=True):
    """The precision of a budget."""

    labels: Object | UnsetType = UNSET
    population_size: int
    budget: int
    share: bool
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
    previous: str | UnsetType = UNSET
    recommended: PlannedDesign
    allocation: str
    stratification: str
    proxies: Objects | UnsetType = UNSET
    designs: list[PlannedDesign]
    allocations: Objects
    strata: Objects
    estimand: Object | UnsetType = UNSET
    estimands: list[PlannedPart] | UnsetType = UNSET
    assumptions: list[str]
    notes: list[str]


class Detection(Struct, kw_only=True):
    """The numbers of labels that detect a difference, without a file."""

    detect: float
    power: float
    confidence_level: float
    population_size: int | None
    detections: Objects


class Demo(Struct, kw_only=True):
    """The demonstration: plan, estimate and truth; or the file whose labels were filled in, and how many."""

    plan: Planned | UnsetType = UNSET
    estimate: Estimated | UnsetType = UNSET
    truth: float | UnsetType = UNSET
    output: Text = UNSET
    file: Text = UNSET
    labels: Whole = UNSET


class Recognised(Struct, kw_only=True):
    """The kind of a file or folder: predictions, an annotation tool's answers, labels, a study, or logs."""

    file: Text = UNSET
    rows: Whole = UNSET
    columns: Objects | UnsetType = UNSET
    # The columns of class probabilities: a pattern, or their names.
    softmax: Any = UNSET
    models: Object | UnsetType | None = UNSET
    notes: list[str] | UnsetType = UNSET
    population_size: Whole = UNSET
    proxies: Objects | UnsetType = UNSET
    suggested_proxy: Object | UnsetType = UNSET
    groups: dict[str, int] | UnsetType = UNSET
    tool: Text = UNSET
    answers: Whole = UNSET
    items: Whole = UNSET
    skipped: Whole = UNSET
    annotators: list[str] | UnsetType = UNSET
    belongs_to: list[str] | UnsetType = UNSET
    id: Text = UNSET
    folder: Text = UNSET
    kind: Text = UNSET
    logs: dict[str, str] | UnsetType = UNSET


class DrawnSample(Struct, kw_only=True):
    """The draw and its files."""

    sample: str
    new: int
    to_label: Text = UNSET
    n: Whole = UNSET
    seed: Whole = UNSET
    population_size: Whole = UNSET
    round: Whole = UNSET
    design: Text = UNSET
    clusters: Whole = UNSET
    budget: Whole = UNSET
    columns_to_fill: list[str] | UnsetType = UNSET
    label_hint: Text = UNSET
    label_format: Text = UNSET
    half_width: float | list[float] | UnsetType = UNSET
    pilot: Text = UNSET
    previous: Text = UNSET
    needed: Object | UnsetType | None = UNSET
    notes: list[str] | UnsetType = UNSET


class NewAnswers(Struct, kw_only=True):
    """The estimates for new answers if some of their outcomes are unknown."""

    new_version: Object
    requirements: list[Required]


class Selected(Struct, kw_only=True):
    """The state of a selection of models, and the files of the next round."""

    statement: str
    winner: str | None
    leader: str
    done: bool
    survivors: list[str]
    labels: int
    drawn: int
    population_size: int
    rounds: int
    # Number of random labels that would compare the leader and its closest rival as precisely.
    random_labels: float
    criterion: str
    confidence: float
    indifference: float
    models: Objects
    notes: list[str]
    sample: Text = UNSET
    to_label: Text = UNSET
    new: Whole = UNSET


class ThresholdFound(Struct, kw_only=True):
    """The accepted sets of a requirement, all candidates, and the curve."""

    requirement: str
    verdict: str
    metric: str
    required: float
    class_: str | None = field(name="class")
    scores: list[str]
    by: str | None
    target: str
    confidence_level: float
    labels: int
    population_size: int
    chosen: Objects
    candidates: Objects
    curve: Object | None
    labels_needed: int | None
    notes: list[str]
    files: dict[str, int] | UnsetType = UNSET


class TrendResult(Struct, kw_only=True):
    """The level of each wave, the changes to the latest one, and the alarms."""

    waves: Objects
    latest: str
    rows: Objects
    confidence_level: float
    # Confidence level of each interval, so that all hold simultaneously with `confidence_level`.
    row_level: float
    outcome: str
    share: bool
    score: Objects
    notes: list[str]
    pooled: Object | UnsetType = UNSET
    verdict: Text = UNSET
    alarms: Objects | UnsetType = UNSET


class ExpectedLabels(Struct, kw_only=True):
    """The expected number of labels that find the best of several models."""

    models: int
    optimistic: int
    conservative: int
    # The units on which the models disagree, or all units for a metric of classes.
    most: int
    population_size: int
    likely_leader: str


class UnitsRead(Struct, kw_only=True):
    """The units of a platform that are in the file."""

    file: str
    units: int
    new: int


class Queued(Struct, kw_only=True):
    """The queue of a sample, and the number of units that were added to it."""

    queue: str
    n: int
    new: int


class AnswersRead(Struct, kw_only=True):
    """The answers of a queue."""

    file: str
    labels: int
    skipped: int


class ResultsWritten(Struct, kw_only=True):
    """The labels on the platform, and the number of new ones."""

    queue: str
    labels: int
    new: int


class WrittenSkill(Struct, kw_only=True):
    """The path of the skill."""

    skill: str


class Report(Struct, kw_only=True):
    """The contents of a report. A report on an accepted set alone has no estimate."""

    kind: str
    title: str | None
    question: str | None
    quantity: str | UnsetType = UNSET
    share: bool | UnsetType = UNSET
    confidence_level: float
    estimate: Estimated | UnsetType = UNSET
    # The reported estimate and other estimates from the same labels.
    side_by_side: Objects | UnsetType = UNSET
    strata: Objects | UnsetType = UNSET
    calibration: Object | UnsetType | None = UNSET
    reliability: Objects | UnsetType = UNSET
    more_labels: Objects | UnsetType = UNSET
    agreement: Object | UnsetType | None = UNSET
    # The first and the current label of each unit whose label was replaced.
    second_look: Objects | UnsetType | None = UNSET
    new_version: Object | UnsetType | None = UNSET
    threshold: Object | None
    method: dict[str, list[str]]
    provenance: Object
    examples: Objects | UnsetType = UNSET


class Simulated(Struct, kw_only=True):
    """The table of a simulation."""

    columns: list[str]
    rows: Objects
    written: list[str]


class NewStudy(Struct, kw_only=True):
    """A study that was created."""

    study: str
    n: int
    population_size: int
    seed: int
    answers: int
    design: str
    question: StudyQuestion
    questions: list[StudyQuestion]
    annotators: list[str]
    shown: list[str]
    pictures: dict[str, str]


class Served(Struct, kw_only=True):
    """The address of the page, with a link for each annotator."""

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
    selection: Selected | UnsetType = UNSET


class Team(Struct, kw_only=True):
    """Names of the annotators."""

    study: str
    annotators: list[str]
    adjudicators: list[str]
    set_aside: list[str]
    rubric_version: int


class Checked(Check, frozen=True, kw_only=True):
    """The check of a study or of its copy."""

    study: str
    sound: bool


class Status(Struct, kw_only=True):
    """The progress, the agreement and the interim estimate of a study."""

    study: str
    folder: str
    question: str
    journal: str
    # The hash of the journal's last line.
    head: str
    rubric_version: int
    annotators: Objects
    rounds: Objects
    nonresponse: Object
    disagreements: Object
    decisions: Object
    flags: Objects
    notes_of_annotators: Objects
    time: Object
    agreement: Object | None
    drift: Objects
    estimate: Estimated | None
    anytime_interval: Interval | None
    questions: Objects
    requirements: list[Required] | UnsetType = UNSET
    planned_look: Object | UnsetType | None = UNSET
    # The intervals after increasing numbers of items, and the expected half-widths with further labels.
    course: Object | UnsetType = UNSET
    stop: Object
    notes: list[str]


class Exported(Struct, kw_only=True):
    """Items for another tool, or a page in one file."""

    study: str
    file: str
    to: Text = UNSET
    items: Whole = UNSET
    bytes: Whole = UNSET
    annotator: Text = UNSET


@dataclass(frozen=True, kw_only=True, eq=False)
class Imported(ImportResult):
    """Answers that were imported from another tool."""

    study: str
    file: str


class ImportedPage(Struct, kw_only=True):
    """Answers that were imported from a page in one file."""

    study: str
    file: str
    saved: int
    repeated: int
    new_answers: Object
    changed_answers: Object
    withdrawn_answers: Object
    applied: bool


# Command → its possible outputs. Later versions may add keys to an object, but not remove any.
PRINTED: dict[str, tuple[Any, ...]] = {
    "study backup": (Checked,),
    "study check": (Checked,),
    "demo": (Demo,),
    "doctor": (Recognised,),
    "draw": (DrawnSample,),
    "estimate": (Estimated, NewAnswers, *SEVERAL),
    "study export": (Exported,),
    "study extend": (Extended,),
    "study import": (Imported, ImportedPage),
    "study new": (NewStudy,),
    "study label": (Served,),
    "plan": (Planned, Detection, ExpectedLabels),
    "select": (Selected,),
    "threshold": (ThresholdFound,),
    "trend": (TrendResult,),
    "report": (Report,),
    "schema": (Object,),
    "mcp": (Object,),
    "platform read": (UnitsRead,),
    "platform queue": (Queued,),
    "platform labels": (AnswersRead,),
    "platform write": (ResultsWritten,),
    "skill": (WrittenSkill,),
    "simulate": (Simulated,),
    "study status": (Status,),
    "study team": (Team,),
}

# Name of a schema → file that one command writes and another reads.
WRITTEN: dict[str, tuple[type, ...]] = {"plan-file": (PlanFile,)}

# The version of JSON Schema that the schemas of the results use.
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def command_schema(command: str) -> JsonDict:
    """Return the JSON Schema (2020-12) of what a command prints with `--json`, or of a plan's file.

    Parameters
    ----------
    command : str
        Or `plan-file`.

    Raises
    ------
    InputError
        For an unknown command.
    """
    results = {**PRINTED, **WRITTEN}
    if command not in results:
        raise InputError(f"no such command: {command!r}", allowed=suggest_names(command, results))
    schemas, definitions = msgspec.json.schema_components(
        results[command], ref_template="#/$defs/{name}", schema_hook=lambda _: {"type": "string"}
    )
    for name, definition in definitions.items():
        definition.pop("title", None)
        # The first sentence of a docstring; the parameters are described in Python only.
        definition["description"] = definition.get("description", "").split("\n\n")[0]
        properties = definition["properties"].values()
        # The output contains every field of a dataclass, even those with a default in Python.
        if is_dataclass(globals().get(name)):
            definition["required"] = list(definition["properties"])
            for schema in properties:
                schema.pop("default", None)
        for schema in properties:
            # The order of alternatives differs between versions of msgspec.
            schema.get("anyOf", []).sort(key=lambda alternative: alternative.get("type") == "null")
    return {
        "$schema": DIALECT,
        "$id": f"stratal-{command.replace(' ', '-')}.schema.json",
        "title": f"stratal {command} --json" if command in PRINTED else "plan.json",
        **(schemas[0] if len(schemas) == 1 else {"anyOf": list(schemas)}),
        "$defs": definitions,
    }
