"""The status of a study as a plain dict (`study_status`), and the agreement of pairs of annotators.

Krippendorff's α for any number of annotators is `stratal.annotator_agreement`.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence
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
from stratal.protocols import JsonDict, Keywords
from stratal.report.verdicts import UNDECIDED
from stratal.study import items
from stratal.study.current_labels import current_labels
from stratal.study.database import Connection
from stratal.study.interim import estimate_course, estimate_study, expected_course, planned_look
from stratal.study.journal import head
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
    questions: list[JsonDict] = []
    notes: list[str] = []
    with warnings.catch_warnings(), study.verified() as connection:
        # Missing labels are expected, since labelling has not ended.
        warnings.simplefilter("ignore", StratalWarning)
        status = _labelling_progress(study, connection)
        answers = _shared_answers(connection)
        labelled = status["nonresponse"]["labelled"]
        answers_by_time = connection.all(
            "SELECT annotator, value FROM answer WHERE status = 'submitted' ORDER BY annotator, seq"
        )
        is_clock_late = items.clock_delay(connection, study.clock()) > items.CLOCK_TOLERANCE
        first_question: JsonDict = {}
        for name, (question, component) in form.columns.items():
            # Whether a question was asked is not an answer of an annotator.
            if component == ASKED and question.is_numeric:
                continue
            labels = current_labels(connection, form, str(study.folder), name, only_answered=True)
            shared = _answers_of_outcome(form, name, answers)
            annotator_agreement, agreement = _agreement(labels, shared, question)
            outcomes_by_time = [
                (annotator, form.outcome(name, value)) for annotator, value in answers_by_time
            ]
            drifts = _drift_by_annotator(shared, outcomes_by_time)
            interim, results, question_notes = _interim_results(study, labelled, confidence_level, name)
            results |= {"agreement": agreement, "drift": drifts}
            # The plan and the requirements concern the first question.
            if not questions:
                plan_status, refuted = _first_outcome_status(
                    study, interim, results["anytime_interval"], confidence_level, requirements
                )
                question_notes = [*refuted, *question_notes]
                first_question = results | plan_status
            if annotator_agreement is not None:
                question_notes = [*annotator_agreement.warnings, *question_notes]
            question_notes += _drift_notes(drifts)
            if len(form.columns) > 1:
                question_notes = [f"{name}: {note}" for note in question_notes]
            notes += question_notes
            questions.append({"outcome": name, "text": question.text, **results})
    stop = _stopping_status(study, labelled, questions[0]["anytime_interval"])
    if stop["enough"]:
        notes.append("the interval is as narrow as requested: labelling may stop")
    undisputed = status["decisions"]["without_disagreement"]
    if undisputed:
        items_text = list_first(map(repr, undisputed), _MAX_ITEMS_LISTED)
        problem = f"annotators do not differ (or no longer differ) on {len(undisputed)} items with a decision"
        notes.append(f"{problem}: {items_text}")
    if is_clock_late:
        notes.append("this computer's clock is behind the times of earlier labels")
    return {
        **status,
        **first_question,
        "questions": questions,
        "stop": stop,
        "notes": list(dict.fromkeys(notes)),
    }


def _labelling_progress(study: Study, connection: Connection) -> JsonDict:
    """Return the entries of the status that do not depend on outcomes."""
    question = study.form.first
    seconds = items.median_seconds(connection)
    missing_answers = connection.one("SELECT total - done FROM tally")[0]
    active_annotators = max(1, items.active_annotators(connection, study.clock()))
    if seconds is None:
        seconds_left = None
    else:
        seconds_left = seconds * missing_answers / active_annotators
    annotators = _rows_as_dicts(connection, _ANNOTATOR_QUERY)
    for row in annotators:
        row["set_aside"] = bool(row["set_aside"])
        row["seconds_per_item"] = items.median_seconds(connection, row["annotator"], limit=-1)
        row["rounds"] = _rows_as_dicts(connection, _ROUNDS_OF_ANNOTATOR_QUERY, row["annotator"])
    return {
        "study": study.id,
        "folder": str(study.folder),
        "question": question.text,
        "rubric_version": question.rubric_version,
        "journal": connection.one("PRAGMA journal_mode")[0],
        "head": head(connection),
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
        return _pairwise_agreement(_answers_of_outcome(form, name, _shared_answers(connection)), question)


def _rows_as_dicts(connection: Connection, query: str, *values: object) -> list[JsonDict]:
    """Return the rows of a query as dicts by column."""
    return [dict(row) for row in connection.all(query, *values)]


# Queries of the parts of the status.
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

# With more items, a note would be longer than a line.
_MAX_ITEMS_LISTED = 5


def _decisions(connection: Connection) -> JsonDict:
    """Return the number of decisions, in total and by person, and the decided items whose answers agree."""
    rows = connection.all(
        "SELECT id, journal.annotator AS who, apart FROM item JOIN journal ON seq = decision "
        "ORDER BY item.item"
    )
    return {
        "decided": len(rows),
        "by": dict(sorted(Counter(row["who"] for row in rows).items())),
        "without_disagreement": [row["id"] for row in rows if not row["apart"]],
    }


def _nonresponse(connection: Connection, names: tuple[str, ...]) -> JsonDict:
    """Return the numbers of labelled, only skipped, and open items, also by stratum."""
    strata = _rows_as_dicts(
        connection,
        "SELECT stratum, count(*) AS items, sum(labelled) AS labelled, "
        "sum(NOT labelled AND skips) AS skipped, sum(NOT labelled AND NOT skips) AS open "
        "FROM (SELECT stratum, answers > 0 OR decision IS NOT NULL AS labelled, EXISTS (SELECT 1 FROM answer "
        "JOIN annotator ON name = annotator WHERE answer.item = item.item AND status = 'skipped' "
        "AND aside = 0) AS skips FROM item) GROUP BY stratum ORDER BY stratum",
    )
    for row in strata:
        row["stratum"] = dict(enumerate(names)).get(row["stratum"], str(row["stratum"]))
    counts = ("items", "labelled", "skipped", "open")
    return {**{name: sum(row[name] for row in strata) for name in counts}, "strata": strata}


# Item, annotator and answer, in the order of the journal, for the items that several annotators labelled.
SharedAnswers = list[tuple[str, str, str]]


def _shared_answers(connection: Connection) -> SharedAnswers:
    """Return the answers to items that several annotators labelled."""
    rows = connection.all(
        "SELECT item.id, answer.annotator, answer.value FROM answer JOIN item USING (item) "
        "JOIN annotator ON name = answer.annotator "
        "WHERE answers > 1 AND status = 'submitted' AND aside = 0 ORDER BY seq"
    )
    return [tuple(row) for row in rows]


def _answers_of_outcome(form: Form, name: str, answers: SharedAnswers) -> SharedAnswers:
    """Return the answers for one outcome, for the items with several of them."""
    answers_of_outcome: SharedAnswers = []
    for item, annotator, answer in answers:
        value = form.answer_text(name, answer)
        if value is not None:
            answers_of_outcome.append((item, annotator, value))
    answer_counts = Counter(item for item, *_ in answers_of_outcome)
    return [answer for answer in answers_of_outcome if answer_counts[answer[0]] > 1]


def _agreement(
    labels: Labels, answers: SharedAnswers, question: StudyQuestion
) -> tuple[AnnotatorAgreement | None, JsonDict | None]:
    """Return the agreement of all annotators, and a plain dict of it that includes each pair."""
    if not answers:
        return None, None
    is_class = question.kind in (CLASSES, CHOICES, TAGS) and not question.is_numeric
    pairs = _pairwise_agreement(answers, question)
    try:
        agreement = measure_agreement(labels, classes=is_class)
        return agreement, {**({} if agreement is None else agreement.to_dict()), "pairs": pairs}
    except MissingExtraError as error:
        level = measurement_level(labels, classes=is_class)
        return None, {"alpha": None, "level": level, "note": str(error), "pairs": pairs}


def _pairwise_agreement(answers: SharedAnswers, question: StudyQuestion) -> list[JsonDict]:
    """Return the agreement of each pair of annotators with common items."""
    answers_by_annotator: dict[str, dict[str, str]] = {}
    for item, annotator, value in answers:
        answers_by_annotator.setdefault(annotator, {})[item] = value
    pairs = []
    for first, second in itertools.combinations(sorted(answers_by_annotator), 2):
        first_answers = answers_by_annotator[first]
        second_answers = answers_by_annotator[second]
        common_items = [item for item in first_answers if item in second_answers]
        if common_items:
            agreement = pair_agreement(
                [first_answers[item] for item in common_items],
                [second_answers[item] for item in common_items],
                scale=question.kind == SCALE,
            )
            pairs.append({"first": first, "second": second, **agreement})
    return pairs


def pair_agreement(first: Sequence[str], second: Sequence[str], *, scale: bool = False) -> JsonDict:
    """Return the agreement of two annotators, from the answers of each to the n items that both labelled.

    On a scale, κ weights disagreements by their squared distance. `kappa` is None if it is undefined: there
    is no common item, or both annotators always gave the same answer.
    """
    classes, codes = np.unique(np.array([first, second], dtype=object), return_inverse=True)
    table = np.zeros((len(classes), len(classes)), np.int64)
    np.add.at(table, tuple(codes.reshape(2, -1)), 1)
    return {
        "shared": len(first),
        "agreeing": float(np.trace(table) / len(first)) if first else None,
        "kappa": cohen_kappa(table, classes.astype(np.float64) if scale else None),
        "classes": classes.tolist(),
        "confusion": table.tolist(),
    }


def cohen_kappa(table: IntArray, numbers: FloatArray | None = None) -> float | None:
    """Return Cohen's κ of a confusion table (K, K), weighted by squared distance if `numbers` (K,) are given.

    Cohen (1960), and Cohen (1968) for the weighted form. None if agreement by chance is certain.
    """
    total = table.sum()
    if total == 0:
        return None
    if numbers is None:
        disagreement_weights = 1.0 - np.eye(len(table))
    else:
        disagreement_weights = (numbers[:, None] - numbers[None, :]) ** 2
    chance = np.outer(table.sum(axis=1), table.sum(axis=0)) / total
    expected = float(np.sum(disagreement_weights * chance))
    if expected == 0:
        return None
    # Without rounding, an agreement of 1 could be printed as .9999….
    return round(1.0 - float(np.sum(disagreement_weights * table)) / expected, 12)


def drift(values: Sequence[float]) -> JsonDict | None:
    """Return the change over time of an annotator's values (n,); None for fewer than two in each part.

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

    `outcomes` are pairs of annotator and outcome in the order of time.
    """
    same_answers = Counter((item, value) for item, _, value in answers)
    answer_counts = Counter(item for item, *_ in answers)
    agreements = defaultdict[str, list[float]](list)
    numeric_outcomes = defaultdict[str, list[float]](list)
    for item, annotator, value in answers:
        agreements[annotator].append((same_answers[item, value] - 1) / (answer_counts[item] - 1))
    for annotator, value in outcomes:
        if isinstance(value, float):
            numeric_outcomes[annotator].append(value)
    series = [(annotator, "agreement", values) for annotator, values in sorted(agreements.items())]
    series += [(annotator, "outcome", values) for annotator, values in numeric_outcomes.items()]
    drifts = []
    for annotator, quantity, values in series:
        drift_of_values = drift(values)
        if drift_of_values is not None:
            drifts.append({"annotator": annotator, "what": quantity, **drift_of_values})
    return drifts


def _value_requirement(text: str) -> Requirement:
    """Return a requirement of the estimate, refusing requirements of other quantities."""
    requirement = Requirement.parse(text)
    if requirement.name != "value":
        problem = f"'{requirement}': the status of a study contains only the estimate 'value'"
        allowed = "value>=X or value<=X"
        action = "For other requirements, use stratal estimate STUDY --require."
        raise InputError(problem, allowed=allowed, action=action)
    return requirement


def _stopping_status(study: Study, labelled: int, anytime: list[float] | None) -> JsonDict:
    """Return the requested and the current half-width, and the expected number of labels until the request.

    The half-width is assumed to be proportional to 1/√n.
    """
    requested_half_width = float(study.setting("half_width") or 0) or None
    if study.database.read_only:
        is_narrow_enough = study.setting("enough") == "yes"
    else:
        is_narrow_enough = update_stopping(study)
    if anytime is None:
        half_width = None
    else:
        half_width = (anytime[1] - anytime[0]) / 2
    if half_width is None or requested_half_width is None:
        more_labels = None
    else:
        more_labels = max(0, math.ceil(labelled * ((half_width / requested_half_width) ** 2 - 1)))
    return {
        "half_width": requested_half_width,
        "enough": is_narrow_enough,
        "half_width_now": half_width,
        "more_labels": more_labels,
    }


def _interim_results(
    study: Study, labelled: int, confidence_level: float, name: str
) -> tuple[Estimate | None, JsonDict, list[str]]:
    """Return the interim estimate, a dict with it and the anytime-valid interval, and notes."""
    results: JsonDict = {"estimate": None, "anytime_interval": None}
    if isinstance(study.sample().design, Disagreements):
        return (
            None,
            results,
            ["labels of this study only compare models: stratal study extend shows the comparison"],
        )
    if not labelled:
        return None, results, ["no item is labelled yet, so there is no estimate"]
    try:
        interim = estimate_study(study, name)
        quantity = _quantity_name(study, interim, name)
        results["estimate"] = interim.to_dict(confidence_level) | {"quantity": quantity}
    except StratalError as error:
        return None, results, [str(error)]
    try:
        results["anytime_interval"] = list(anytime_interval(study, confidence_level, name))
    except StratalError as error:
        return interim, results, [f"no anytime-valid interval: {error}"]
    return interim, results, []


def _quantity_name(study: Study, interim: Estimate, name: str) -> str:
    """Return the name of the estimated quantity, in the words of the annotators."""
    if interim.label:
        return interim.quantity
    return interim.quantity_in_words(join_labels(study.sample(), study.labels(name, as_text=True)).table())


# Result for a requirement as long as there is no estimate.
_UNDECIDED_REQUIREMENT = {
    "estimate": None,
    "confidence_interval": None,
    "verdict": UNDECIDED,
    "more_labels": None,
}


def _first_outcome_status(
    study: Study,
    interim: Estimate | None,
    anytime: list[float | None] | None,
    confidence_level: float,
    require: Sequence[Requirement],
) -> tuple[JsonDict, list[str]]:
    """Return entries of the first outcome's status, and notes.

    The entries are the verdicts on requirements, the course of the estimate and the planned interim analysis.
    The notes are the assumptions of the plan that the labels refute, and the reason if that analysis is
    missing.
    """
    entries: Keywords = {}
    if require:
        entries["requirements"] = [
            {**_UNDECIDED_REQUIREMENT, "required": str(requirement)}
            if interim is None
            else requirement.assess(interim, confidence_level, ends=anytime)
            for requirement in require
        ]
    notes: list[str]
    if interim is None:
        notes = []
    else:
        notes = list(interim.refuted)
        entries["course"] = {
            "so_far": estimate_course(study, confidence_level),
            "expected": expected_course(study, interim, confidence_level),
        }
    if interim is not None and study.sample().looks is not None:
        try:
            entries["planned_look"] = planned_look(study, confidence_level)
        except StratalError as error:
            notes.append(f"no planned look: {error}")
    return entries, notes
