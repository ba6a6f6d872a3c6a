"""The status of a study as a plain dict (`study_status`), and the agreement of pairs of annotators.

Krippendorff's α for any number of annotators is `stratal.annotator_agreement`.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stratal.arrays import FloatArray, IntArray
from stratal.designs import Disagreements
from stratal.errors import InputError, MissingExtraError, StratalError, StratalWarning, list_first
from stratal.estimation.estimate import Estimate
from stratal.estimation.requirement import Requirement
from stratal.labels.annotators import AnnotatorAgreement, measure_agreement, measurement_level
from stratal.labels.joined_labels import join_labels
from stratal.labels.labels import Labels
from stratal.protocols import JsonDict
from stratal.report.verdicts import UNDECIDED
from stratal.study import items
from stratal.study.current_labels import current_labels
from stratal.study.database import Connection
from stratal.study.interim import estimate_course, estimate_study, expected_course, planned_look
from stratal.study.journal import journal_head
from stratal.study.question import ASKED, CHOICES, CLASSES, SCALE, TAGS, Form, StudyQuestion
from stratal.study.study import Study, anytime_interval, update_stopping

# Number of consecutive parts of an annotator's answers whose means are reported.
DRIFT_PARTS = 4

# p-value below which a drift is reported: smaller than .05, because each annotator has two tests.
DRIFT_SIGNIFICANCE_LEVEL = 0.01


def study_status(study: Study, *, confidence_level: float = 0.95, require: Sequence[str] = ()) -> JsonDict:
    """Return progress, agreement, times, nonresponse and the interim estimate of a study.

    Parameters
    ----------
    study : Study
    confidence_level : float
    require : sequence of str
        Requirements such as `"value>=.9"`. They are compared with the anytime-valid interval, if there is
        one, so that the status may be computed any number of times.

    Returns
    -------
    dict
        Plain numbers, text, lists and dicts.
    """
    form = study.form
    requirements = [_value_requirement(text) for text in require]
    # Whether a question was asked is an outcome of the form (with the component `ASKED`), but not an answer
    # of an annotator, so it has no status.
    names = [
        name
        for name, (question, component) in form.columns.items()
        if component != ASKED or not question.is_numeric
    ]
    with warnings.catch_warnings(), study.verified() as connection:
        # Missing labels are expected, since labelling has not ended.
        warnings.simplefilter("ignore", StratalWarning)
        progress = _labelling_progress(study, connection)
        label_count = progress["nonresponse"]["labelled"]
        answers = _StudyAnswers.read(connection)
        is_clock_late = items.clock_delay(connection, study.clock()) > items.CLOCK_TOLERANCE
        outcomes = [
            _outcome_status(study, connection, name, answers, label_count, confidence_level) for name in names
        ]
        # The plan and the requirements concern the first outcome.
        plan_status, plan_notes = _plan_status(study, outcomes[0], confidence_level, requirements)
    notes: list[str] = []
    for name, outcome in zip(names, outcomes, strict=True):
        outcome_notes = list(outcome.agreement_notes)
        if outcome is outcomes[0]:
            outcome_notes += plan_notes
        outcome_notes += [*outcome.estimate_notes, *_drift_notes(outcome.drifts)]
        if len(form.columns) > 1:
            outcome_notes = [f"{name}: {note}" for note in outcome_notes]
        notes += outcome_notes
    question_entries = [
        {"outcome": name, "text": form.columns[name][0].text, **outcome.entries()}
        for name, outcome in zip(names, outcomes, strict=True)
    ]
    stop = _stopping_status(study, label_count, outcomes[0].anytime_interval)
    notes += _study_notes(progress, is_narrow_enough=stop["enough"], is_clock_late=is_clock_late)
    return {
        **progress,
        **outcomes[0].entries(),
        **plan_status,
        "questions": question_entries,
        "stop": stop,
        "notes": list(dict.fromkeys(notes)),
    }


# With more items, a note would be longer than a line.
_MAX_ITEMS_LISTED = 5


def _study_notes(progress: JsonDict, *, is_narrow_enough: bool, is_clock_late: bool) -> list[str]:
    """Return the notes that do not concern a single outcome."""
    notes = []
    if is_narrow_enough:
        notes.append("the interval is as narrow as requested: labelling may stop")
    undisputed_items = progress["decisions"]["without_disagreement"]
    if undisputed_items:
        count = len(undisputed_items)
        items_text = list_first(map(repr, undisputed_items), _MAX_ITEMS_LISTED)
        problem = f"annotators do not differ (or no longer differ) on {count} items with a decision"
        notes.append(f"{problem}: {items_text}")
    if is_clock_late:
        notes.append("this computer's clock is behind the times of earlier labels")
    return notes


def _labelling_progress(study: Study, connection: Connection) -> JsonDict:
    """Return the entries of the status about people, items and times, which no outcome changes."""
    question = study.form.first
    seconds = items.median_seconds(connection)
    (missing_answers,) = connection.one("SELECT total - done FROM tally")
    # If nobody is working now, the time is that of one annotator.
    active_annotators = max(1, items.active_annotators(connection, study.clock()))
    seconds_left = None if seconds is None else seconds * missing_answers / active_annotators
    annotators = _rows_as_dicts(connection, _ANNOTATOR_QUERY)
    for row in annotators:
        row["set_aside"] = bool(row["set_aside"])
        row["seconds_per_item"] = items.median_seconds(connection, row["annotator"], limit=None)
        row["rounds"] = _rows_as_dicts(connection, _ROUNDS_OF_ANNOTATOR_QUERY, row["annotator"])
    return {
        "study": study.id,
        "folder": str(study.folder),
        "question": question.text,
        "rubric_version": question.rubric_version,
        "journal": connection.one("PRAGMA journal_mode")[0],
        "head": journal_head(connection),
        "annotators": annotators,
        "rounds": _rows_as_dicts(connection, _ROUND_QUERY),
        "nonresponse": _nonresponse(connection, study.sample().design.stratum_names),
        "disagreements": dict(connection.one(_DISAGREEMENT_QUERY)),
        "decisions": _decisions(connection),
        "flags": _rows_as_dicts(connection, _FLAG_QUERY),
        "notes_of_annotators": _rows_as_dicts(connection, _NOTE_QUERY),
        "time": {"seconds_per_item": seconds, "seconds_left": seconds_left},
    }


def _drift_notes(drifts: Sequence[JsonDict]) -> list[str]:
    """Return a note for each significant drift."""
    return [
        f"{entry['annotator']}: {entry['what']} changed over time "
        f"({', '.join(f'{part:.2f}' for part in entry['parts'])}; p = {entry['p_value']:.2g})"
        for entry in drifts
        if entry["p_value"] is not None and entry["p_value"] < DRIFT_SIGNIFICANCE_LEVEL
    ]


def pairwise_agreement(study: Study) -> list[JsonDict]:
    """Return the agreement of each pair of annotators on their common items, for the first outcome."""
    form = study.form
    name, (question, _) = next(iter(form.columns.items()))
    with study.verified() as connection:
        answers = _StudyAnswers.read(connection)
    return _agreement_of_pairs(_shared_answers(form, name, answers.shared), question)


def _rows_as_dicts(connection: Connection, query: str, *values: object) -> list[JsonDict]:
    """Return the rows of a query as dicts by column."""
    return [dict(row) for row in connection.all(query, *values)]


# Queries of entries of the status, with the keys as column names. `tables.sql` explains the other columns:
# `apart` marks items whose answers differ, and `copies` is the number of required answers.
_ANNOTATOR_QUERY = (
    "SELECT name AS annotator, submitted, skipped, aside AS set_aside, min(at) AS first, max(at) AS last "
    "FROM annotator LEFT JOIN journal ON annotator = name AND item IS NOT NULL WHERE role = 'annotator' "
    "GROUP BY name ORDER BY name"
)
_ROUNDS_OF_ANNOTATOR_QUERY = (
    "SELECT round, sum(status = 'submitted') AS submitted, sum(status = 'skipped') AS skipped "
    "FROM answer JOIN item USING (item) WHERE annotator = ? GROUP BY round ORDER BY round"
)
_ROUND_QUERY = (
    "SELECT round AS round, count(*) AS items, sum(answers > 0 OR decision IS NOT NULL) AS labelled, "
    "sum(copies) AS wanted, sum(min(answers, copies)) AS answers FROM item GROUP BY round ORDER BY round"
)
_DISAGREEMENT_QUERY = (
    "SELECT coalesce(sum(apart AND decision IS NULL), 0) AS open, count(decision) AS decided, "
    "coalesce(sum(apart), 0) AS apart, coalesce(sum(answers > 1), 0) AS shared, "
    "1.0 * sum(apart) / nullif(sum(answers > 1), 0) AS share FROM item"
)
_NOTE_QUERY = (
    "SELECT item.id AS item, annotator, note FROM journal JOIN item USING (item) WHERE note <> '' "
    "AND action <> 'flag' ORDER BY seq DESC LIMIT 50"
)
_FLAG_QUERY = (
    "SELECT item.id AS item, annotator, note FROM journal AS flag JOIN item USING (item) "
    "WHERE action = 'flag' AND NOT EXISTS (SELECT 1 FROM journal AS later WHERE later.item = flag.item "
    "AND later.annotator = flag.annotator AND later.seq > flag.seq AND later.action IN ('flag', 'unflag')) "
    "ORDER BY seq"
)


def _decisions(connection: Connection) -> JsonDict:
    """Return the number of decisions, in total and by person, and the decided items whose answers agree."""
    decisions = connection.all(
        "SELECT id, journal.annotator AS adjudicator, apart FROM item JOIN journal ON seq = decision "
        "ORDER BY item.item"
    )
    return {
        "decided": len(decisions),
        "by": dict(sorted(Counter(row["adjudicator"] for row in decisions).items())),
        "without_disagreement": [row["id"] for row in decisions if not row["apart"]],
    }


def _nonresponse(connection: Connection, stratum_names: tuple[str, ...]) -> JsonDict:
    """Return the numbers of labelled, skipped (but not labelled) and open items, in total and by stratum."""
    strata = _rows_as_dicts(
        connection,
        "SELECT stratum, count(*) AS items, sum(labelled) AS labelled, "
        "sum(NOT labelled AND skips) AS skipped, sum(NOT labelled AND NOT skips) AS open "
        "FROM (SELECT stratum, answers > 0 OR decision IS NOT NULL AS labelled, EXISTS (SELECT 1 FROM answer "
        "JOIN annotator ON name = annotator WHERE answer.item = item.item AND status = 'skipped' "
        "AND aside = 0) AS skips FROM item) GROUP BY stratum ORDER BY stratum",
    )
    for row in strata:
        # A design without strata has no names.
        if row["stratum"] < len(stratum_names):
            row["stratum"] = stratum_names[row["stratum"]]
        else:
            row["stratum"] = str(row["stratum"])
    totals = {name: sum(row[name] for row in strata) for name in ("items", "labelled", "skipped", "open")}
    return {**totals, "strata": strata}


# Item, annotator and answer, in the order of the journal, for the items that several annotators labelled.
SharedAnswers = list[tuple[str, str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _StudyAnswers:
    """The current answers to all questions, in their stored form.

    Parameters
    ----------
    shared : SharedAnswers
        Those to items that several annotators labelled, without annotators who are set aside.
    by_time : list of (str, str)
        Annotator and answer: of each annotator all answers in the order of time.
    """

    shared: SharedAnswers
    by_time: list[tuple[str, str]]

    @classmethod
    def read(cls, connection: Connection) -> _StudyAnswers:
        """Return the answers of a study."""
        shared = connection.all(
            "SELECT item.id, answer.annotator, answer.value FROM answer JOIN item USING (item) "
            "JOIN annotator ON name = answer.annotator "
            "WHERE answers > 1 AND status = 'submitted' AND aside = 0 ORDER BY seq"
        )
        by_time = connection.all(
            "SELECT annotator, value FROM answer WHERE status = 'submitted' ORDER BY annotator, seq"
        )
        return cls(shared=[tuple(row) for row in shared], by_time=[tuple(row) for row in by_time])


def _shared_answers(form: Form, name: str, answers: SharedAnswers) -> SharedAnswers:
    """Return the answers for one outcome as text, for the items with several of them, from stored answers."""
    shared_answers: SharedAnswers = []
    for item, annotator, stored in answers:
        text = form.answer_text(name, stored)
        if text is not None:
            shared_answers.append((item, annotator, text))
    # Of a conditional question, an item may have only one answer.
    answer_counts = Counter(item for item, *_ in shared_answers)
    return [answer for answer in shared_answers if answer_counts[answer[0]] > 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class _OutcomeStatus:
    """The status of one outcome, which `_outcome_status` computes.

    Parameters
    ----------
    interim : Estimate, optional
        The estimate from the current labels.
    estimate, agreement : dict, optional
        The estimate and the agreement of annotators as plain dicts.
    anytime_interval : [float, float], optional
    drifts : list of dict
        Change over time by annotator (`_drift_by_annotator`).
    agreement_notes, estimate_notes : list of str
    """

    interim: Estimate | None
    estimate: JsonDict | None
    anytime_interval: list[float] | None
    agreement: JsonDict | None
    drifts: list[JsonDict]
    agreement_notes: Sequence[str]
    estimate_notes: list[str]

    def entries(self) -> JsonDict:
        """Return the entries of the status."""
        return {
            "estimate": self.estimate,
            "anytime_interval": self.anytime_interval,
            "agreement": self.agreement,
            "drift": self.drifts,
        }


def _outcome_status(
    study: Study,
    connection: Connection,
    name: str,
    answers: _StudyAnswers,
    label_count: int,
    confidence_level: float,
) -> _OutcomeStatus:
    """Return the interim estimate, the agreement and the drift of one outcome."""
    form = study.form
    question, _ = form.columns[name]
    labels = current_labels(connection, form, str(study.folder), name, only_answered=True)
    shared_answers = _shared_answers(form, name, answers.shared)
    agreement, agreement_entry = _agreement(labels, shared_answers, question)
    outcomes_by_time = [(annotator, form.outcome(name, answer)) for annotator, answer in answers.by_time]
    interim, estimate_entry, interval, estimate_notes = _interim_results(
        study, name, label_count, confidence_level
    )
    return _OutcomeStatus(
        interim=interim,
        estimate=estimate_entry,
        anytime_interval=interval,
        agreement=agreement_entry,
        drifts=_drift_by_annotator(shared_answers, outcomes_by_time),
        agreement_notes=() if agreement is None else agreement.warnings,
        estimate_notes=estimate_notes,
    )


def _agreement(
    labels: Labels, answers: SharedAnswers, question: StudyQuestion
) -> tuple[AnnotatorAgreement | None, JsonDict | None]:
    """Return the agreement of all annotators, and a plain dict of it that includes each pair of them."""
    if not answers:
        return None, None
    is_class = question.kind in (CLASSES, CHOICES, TAGS) and not question.is_numeric
    pairs = _agreement_of_pairs(answers, question)
    try:
        agreement = measure_agreement(labels, classes=is_class)
        if agreement is None:
            return None, {"pairs": pairs}
        return agreement, {**agreement.to_dict(), "pairs": pairs}
    except MissingExtraError as error:
        level = measurement_level(labels, classes=is_class)
        return None, {"alpha": None, "level": level, "note": str(error), "pairs": pairs}


def _agreement_of_pairs(answers: SharedAnswers, question: StudyQuestion) -> list[JsonDict]:
    """Return the agreement of each pair of annotators with common items."""
    # Annotator → item → answer.
    answers_by_annotator: dict[str, dict[str, str]] = {}
    for item, annotator, text in answers:
        answers_by_annotator.setdefault(annotator, {})[item] = text
    pairs = []
    for first, second in itertools.combinations(sorted(answers_by_annotator), 2):
        first_answers = answers_by_annotator[first]
        second_answers = answers_by_annotator[second]
        common_items = [item for item in first_answers if item in second_answers]
        if common_items:
            agreement = pair_agreement(
                [first_answers[item] for item in common_items],
                [second_answers[item] for item in common_items],
                is_scale=question.kind == SCALE,
            )
            pairs.append({"first": first, "second": second, **agreement})
    return pairs


def pair_agreement(first: Sequence[str], second: Sequence[str], *, is_scale: bool = False) -> JsonDict:
    """Return the agreement of two annotators, from the answers (n,) of each to the items that both labelled.

    On a scale, κ weights disagreements by their squared distance. `kappa` is None if it is undefined: there
    is no common item, or both annotators always gave the same answer.
    """
    classes, codes = np.unique(np.array([first, second], dtype=object), return_inverse=True)
    table = np.zeros((len(classes), len(classes)), np.int64)
    np.add.at(table, tuple(codes.reshape(2, -1)), 1)
    agreeing_share = None
    if first:
        agreeing_share = float(np.trace(table) / len(first))
    scale_numbers = None
    if is_scale:
        scale_numbers = classes.astype(np.float64)
    return {
        "shared": len(first),
        "agreeing": agreeing_share,
        "kappa": cohen_kappa(table, scale_numbers),
        "classes": classes.tolist(),
        "confusion": table.tolist(),
    }


def cohen_kappa(table: IntArray, numbers: FloatArray | None = None) -> float | None:
    """Return Cohen's κ of a confusion table (K, K); None if agreement by chance is certain.

    With the numbers (K,) of the classes, disagreements are weighted by their squared distance. Cohen (1960),
    and Cohen (1968) for the weighted form.
    """
    total = table.sum()
    if total == 0:
        return None
    if numbers is None:
        disagreement_weights = 1.0 - np.eye(len(table))
    else:
        disagreement_weights = (numbers[:, None] - numbers[None, :]) ** 2
    table_by_chance = np.outer(table.sum(axis=1), table.sum(axis=0)) / total
    disagreement_by_chance = float(np.sum(disagreement_weights * table_by_chance))
    if disagreement_by_chance == 0:
        return None
    # Without rounding, an agreement of 1 could be printed as .9999….
    return round(1.0 - float(np.sum(disagreement_weights * table)) / disagreement_by_chance, 12)


def drift(values: Sequence[float]) -> JsonDict | None:
    """Return the change of an annotator's values (n,) over time; None for fewer than two in each part.

    Items are assigned in random order, so that consecutive parts differ only by chance, unless the annotator
    or the rubric changed. `parts` are the means of `DRIFT_PARTS` parts, and `p_value` is that of the
    Mann-Whitney test of the first against the second half; None if all values are equal.
    """
    if len(values) < 2 * DRIFT_PARTS:
        return None
    # `scipy.stats` takes longer to import than all else of a status.
    from scipy.stats import mannwhitneyu

    array = np.asarray(values, np.float64)
    first_half = array[: len(array) // 2]
    second_half = array[len(array) // 2 :]
    parts = [float(part.mean()) for part in np.array_split(array, DRIFT_PARTS)]
    p_value = None
    if not np.all(array == array[0]):
        p_value = float(mannwhitneyu(first_half, second_half).pvalue)
    return {"parts": parts, "p_value": p_value}


def _drift_by_annotator(answers: SharedAnswers, outcomes: Sequence[tuple[str, Any]]) -> list[JsonDict]:
    """Return the drift of each annotator's agreement with others and of the annotator's outcomes.

    `outcomes` are pairs of annotator and outcome in the order of time. The agreement of an answer is the
    share of the other answers to its item that are equal to it.
    """
    equal_counts = Counter((item, text) for item, _, text in answers)
    answer_counts = Counter(item for item, *_ in answers)
    agreements = defaultdict[str, list[float]](list)
    for item, annotator, text in answers:
        agreements[annotator].append((equal_counts[item, text] - 1) / (answer_counts[item] - 1))
    numeric_outcomes = defaultdict[str, list[float]](list)
    for annotator, outcome in outcomes:
        if isinstance(outcome, float):
            numeric_outcomes[annotator].append(outcome)
    series = [(annotator, "agreement", values) for annotator, values in sorted(agreements.items())]
    series += [(annotator, "outcome", values) for annotator, values in numeric_outcomes.items()]
    drifts = []
    for annotator, quantity, values in series:
        change = drift(values)
        if change is not None:
            drifts.append({"annotator": annotator, "what": quantity, **change})
    return drifts


def _value_requirement(text: str) -> Requirement:
    """Return the requirement in a text such as `value>=.9`; refuse requirements for other quantities."""
    requirement = Requirement.parse(text)
    if requirement.name != "value":
        problem = f"'{requirement}': the status of a study contains only the estimate 'value'"
        allowed = "value>=X or value<=X"
        action = "For other requirements, use stratal estimate STUDY --require."
        raise InputError(problem, allowed=allowed, action=action)
    return requirement


def _stopping_status(study: Study, label_count: int, interval: list[float] | None) -> JsonDict:
    """Return the requested half-width, that of the anytime-valid interval, and the number of missing labels.

    The half-width is assumed to be proportional to 1/√n.
    """
    half_width_text = study.setting("half_width")
    requested_half_width = float(half_width_text) if half_width_text else None
    # A study that is opened to read cannot store a new result.
    if study.database.read_only:
        is_narrow_enough = study.setting("enough") == "yes"
    else:
        is_narrow_enough = update_stopping(study)
    half_width = None
    if interval is not None:
        low, high = interval
        half_width = (high - low) / 2
    more_labels = None
    if half_width is not None and requested_half_width is not None:
        more_labels = max(0, math.ceil(label_count * ((half_width / requested_half_width) ** 2 - 1)))
    return {
        "half_width": requested_half_width,
        "enough": is_narrow_enough,
        "half_width_now": half_width,
        "more_labels": more_labels,
    }


def _interim_results(
    study: Study, name: str, label_count: int, confidence_level: float
) -> tuple[Estimate | None, JsonDict | None, list[float] | None, list[str]]:
    """Return the interim estimate of an outcome, a dict of it, the anytime-valid interval, and notes."""
    if isinstance(study.sample().design, Disagreements):
        note = "labels of this study only compare models: stratal study extend shows the comparison"
        return None, None, None, [note]
    if not label_count:
        return None, None, None, ["no item is labelled yet, so there is no estimate"]
    try:
        interim = estimate_study(study, name)
        quantity = _quantity_name(study, interim, name)
        estimate_entry = interim.to_dict(confidence_level) | {"quantity": quantity}
    except StratalError as error:
        return None, None, None, [str(error)]
    try:
        interval = list(anytime_interval(study, confidence_level, name))
    except StratalError as error:
        return interim, estimate_entry, None, [f"no anytime-valid interval: {error}"]
    return interim, estimate_entry, interval, []


def _quantity_name(study: Study, interim: Estimate, name: str) -> str:
    """Return the name of the estimated quantity, in the words of the annotators."""
    if interim.label:
        return interim.quantity
    return interim.quantity_in_words(join_labels(study.sample(), study.labels(name, as_text=True)).table())


# Entries of a requirement without an estimate.
_UNDECIDED_REQUIREMENT = {
    "estimate": None,
    "confidence_interval": None,
    "verdict": UNDECIDED,
    "more_labels": None,
}


def _plan_status(
    study: Study, outcome: _OutcomeStatus, confidence_level: float, requirements: Sequence[Requirement]
) -> tuple[JsonDict, list[str]]:
    """Return the entries about the requirements and the plan, which concern the first outcome, and notes.

    The entries are the verdicts on requirements, the course of the estimate and the planned interim analysis.
    The notes are the assumptions of the plan that the labels refute, and the reason if that analysis is
    missing.
    """
    interim = outcome.interim
    entries: JsonDict = {}
    if interim is None:
        if requirements:
            entries["requirements"] = [
                {**_UNDECIDED_REQUIREMENT, "required": str(requirement)} for requirement in requirements
            ]
        return entries, []
    if requirements:
        entries["requirements"] = [
            requirement.assess(interim, confidence_level, ends=outcome.anytime_interval)
            for requirement in requirements
        ]
    entries["course"] = {
        "so_far": estimate_course(study, confidence_level),
        "expected": expected_course(study, interim, confidence_level),
    }
    notes: list[str] = list(interim.refuted)
    if study.sample().looks is not None:
        try:
            entries["planned_look"] = planned_look(study, confidence_level)
        except StratalError as error:
            notes.append(f"no planned look: {error}")
    return entries, notes
