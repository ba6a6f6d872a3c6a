"""How a study stands: `study_status`, one plain dict; and how far two annotators agree on what both labelled.

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
from stratal.errors import InputError, MissingExtraError, StratalError, StratalWarning
from stratal.estimation.estimate import Estimate
from stratal.estimation.requirement import Requirement
from stratal.labels.annotators import AnnotatorAgreement, measure_agreement, measurement_level
from stratal.labels.joined_labels import join_labels
from stratal.labels.labels import Labels
from stratal.protocols import JsonDict, Keywords
from stratal.report.verdicts import UNDECIDED
from stratal.study import items
from stratal.study.current_labels import present_labels
from stratal.study.database import Connection
from stratal.study.interim import estimate_course, estimate_study, expected_course, planned_look
from stratal.study.journal import head
from stratal.study.question import ASKED, CHOICES, CLASSES, SCALE, TAGS, Form, StudyQuestion
from stratal.study.study import Study, anytime_interval, update_stopping

# Parts of an annotator's work that drift compares.
PARTS = 4

# p-value below which a drift is mentioned: smaller than .05, because each annotator has two tests.
UNLIKELY = 0.01


def study_status(study: Study, *, confidence_level: float = 0.95, require: Sequence[str] = ()) -> JsonDict:
    """Return progress, agreement, times, nonresponse and the interim estimate of a study.

    Parameters
    ----------
    study : Study
    confidence_level : float
    require : sequence of str
        Such as `"value>=.9"`: held against the interval that holds at every moment, if there is one, so that
        one may look again and again.

    Returns
    -------
    dict
        Plain numbers, text, lists and dicts.
    """
    form = study.form
    requirements = [_of_value(text) for text in require]
    outcomes: list[JsonDict] = []
    notes: list[str] = []
    with warnings.catch_warnings(), study.verified() as connection:
        # Missing labels are expected, since labelling has not ended.
        warnings.simplefilter("ignore", StratalWarning)
        seconds = items.median_seconds(connection)
        wanted_yet = connection.one("SELECT total - done FROM tally")[0]
        working = max(1, items.active_annotators(connection, study.clock()))
        if seconds is None:
            seconds_left = None
        else:
            seconds_left = seconds * wanted_yet / working
        people = _dicts(connection, _PEOPLE)
        for row in people:
            row["set_aside"] = bool(row["set_aside"])
            row["seconds_per_item"] = items.median_seconds(connection, row["annotator"], limit=-1)
            row["rounds"] = _dicts(connection, _ROUNDS_OF, row["annotator"])
        described = {
            "study": study.id,
            "folder": str(study.folder),
            "question": form.first.text,
            "rubric_version": form.first.rubric_version,
            "journal": connection.one("PRAGMA journal_mode")[0],
            "head": head(connection),
            "annotators": people,
            "rounds": _dicts(connection, _ROUNDS),
            "nonresponse": _nonresponse(connection, study.sample().design.stratum_names),
            "disagreements": _dicts(connection, _DISAGREEMENTS)[0],
            "decisions": _decisions(connection),
            "flags": _dicts(connection, _FLAGS),
            "notes_of_annotators": _dicts(connection, _NOTES),
            "time": {"seconds_per_item": seconds, "seconds_left": seconds_left},
        }
        answers = _shared_answers(connection)
        labelled = described["nonresponse"]["labelled"]
        by_time = connection.all(
            "SELECT annotator, value FROM answer WHERE status = 'submitted' ORDER BY annotator, seq"
        )
        late = items.clock_delay(connection, study.clock()) > items.CLOCK_TOLERANCE
        first: dict[str, Any] = {}
        for name, (question, part) in form.columns.items():
            if part == ASKED and question.is_numeric:
                continue
            labels = present_labels(connection, form, str(study.folder), name, requested=True)
            shared = _of_outcome(form, name, answers)
            agreed, agreement = _agreement(labels, shared, question)
            drifts = _drifts(shared, [(who, form.outcome(name, value)) for who, value in by_time])
            interim, figures, reasons = _interim(study, labelled, confidence_level, name)
            # The plan was made for the first question.
            if not outcomes:
                first, refuted = _of_first(study, interim, figures, confidence_level, requirements)
                reasons = [*refuted, *reasons]
            reasons = [*(agreed.warnings if agreed is not None else ()), *reasons]
            reasons += [
                f"{entry['annotator']}: {entry['what']} changed over time "
                f"({', '.join(f'{part:.2f}' for part in entry['parts'])}; p = {entry['p_value']:.2g})"
                for entry in drifts
                if entry["p_value"] is not None and entry["p_value"] < UNLIKELY
            ]
            notes += reasons if len(form.columns) == 1 else [f"{name}: {reason}" for reason in reasons]
            figures |= {"agreement": agreement, "drift": drifts}
            outcomes.append({"outcome": name, "text": question.text, **figures})
            first = figures | first
    stop = _stop(study, labelled, outcomes[0]["anytime_interval"])
    if stop["enough"]:
        notes.append("the interval is as narrow as requested: labelling may stop")
    undisputed = described["decisions"]["without_disagreement"]
    if undisputed:
        named = ", ".join(map(repr, undisputed[:_FEW])) + (", …" if len(undisputed) > _FEW else "")
        problem = f"annotators do not differ (or no longer differ) on {len(undisputed)} items with a decision"
        notes.append(f"{problem}: {named}")
    if late:
        notes.append("this computer's clock is behind the times of earlier labels")
    return {**described, **first, "questions": outcomes, "stop": stop, "notes": list(dict.fromkeys(notes))}


def pairs_of(study: Study) -> list[JsonDict]:
    """Return how far each pair of annotators agrees on what both answered, by the first question."""
    form = study.form
    name, (question, _) = next(iter(form.columns.items()))
    with study.verified() as connection:
        return _pairs(_of_outcome(form, name, _shared_answers(connection)), question)


def _dicts(connection: Connection, query: str, *values: object) -> list[JsonDict]:
    return [dict(row) for row in connection.all(query, *values)]


# Queries of the parts of the status.
_PEOPLE = (
    "SELECT name AS annotator, submitted, skipped, aside AS set_aside, min(at) AS first, max(at) AS last "
    "FROM annotator LEFT JOIN journal ON annotator = name AND item IS NOT NULL WHERE role = 'annotator' "
    "GROUP BY name ORDER BY name"
)
_ROUNDS_OF = (
    "SELECT round, sum(status = 'submitted') AS submitted, sum(status = 'skipped') AS skipped "
    "FROM answer JOIN item USING (item) WHERE annotator = ? GROUP BY round ORDER BY round"
)
_ROUNDS = (
    "SELECT round AS round, count(*) AS items, sum(answers > 0 OR decision IS NOT NULL) AS labelled, "
    "sum(copies) AS wanted, sum(min(answers, copies)) AS answers FROM item GROUP BY round ORDER BY round"
)
_DISAGREEMENTS = (
    "SELECT coalesce(sum(apart AND decision IS NULL), 0) AS open, count(decision) AS decided, "
    "coalesce(sum(apart), 0) AS apart, coalesce(sum(answers > 1), 0) AS shared, "
    "1.0 * sum(apart) / nullif(sum(answers > 1), 0) AS share FROM item"
)
# With more items, a note would be longer than a line.
_FEW = 5


def _decisions(connection: Connection) -> JsonDict:
    """Return how many decisions there are, by whom, and the items whose answers do not differ."""
    rows = connection.all(
        "SELECT id, journal.annotator AS who, apart FROM item JOIN journal ON seq = decision "
        "ORDER BY item.item"
    )
    return {
        "decided": len(rows),
        "by": dict(sorted(Counter(row["who"] for row in rows).items())),
        "without_disagreement": [row["id"] for row in rows if not row["apart"]],
    }


_NOTES = (
    "SELECT item.id AS item, annotator, note FROM journal JOIN item USING (item) WHERE note <> '' "
    "AND action <> 'flag' ORDER BY seq DESC LIMIT 50"
)
_FLAGS = (
    "SELECT item.id AS item, annotator, note FROM journal AS flag JOIN item USING (item) "
    "WHERE action = 'flag' AND NOT EXISTS (SELECT 1 FROM journal AS later WHERE later.item = flag.item "
    "AND later.annotator = flag.annotator AND later.seq > flag.seq AND later.action IN ('flag', 'unflag')) "
    "ORDER BY seq"
)


def _nonresponse(connection: Connection, names: tuple[str, ...]) -> JsonDict:
    """Return the numbers of labelled, only skipped, and open items, also by stratum."""
    strata = _dicts(
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


# Item, annotator and answer in the journal's order, of items that several people labelled.
Shared = list[tuple[str, str, str]]


def _shared_answers(connection: Connection) -> Shared:
    rows = connection.all(
        "SELECT item.id, answer.annotator, answer.value FROM answer JOIN item USING (item) "
        "JOIN annotator ON name = answer.annotator "
        "WHERE answers > 1 AND status = 'submitted' AND aside = 0 ORDER BY seq"
    )
    return [tuple(row) for row in rows]


def _of_outcome(form: Form, name: str, answers: Shared) -> Shared:
    """Return the answers on one outcome, for the items with answers of several people."""
    answers_of_outcome: Shared = []
    for item, who, answer in answers:
        value = form.answer_text(name, answer)
        if value is not None:
            answers_of_outcome.append((item, who, value))
    people = Counter(item for item, *_ in answers_of_outcome)
    return [answer for answer in answers_of_outcome if people[answer[0]] > 1]


def _agreement(
    labels: Labels, answers: Shared, question: StudyQuestion
) -> tuple[AnnotatorAgreement | None, JsonDict | None]:
    """Return the agreement of the annotators, and a plain dict that also has each pair."""
    if not answers:
        return None, None
    classes = question.kind in (CLASSES, CHOICES, TAGS) and not question.is_numeric
    pairs = _pairs(answers, question)
    try:
        agreement = measure_agreement(labels, classes=classes)
        return agreement, {**({} if agreement is None else agreement.to_dict()), "pairs": pairs}
    except MissingExtraError as error:
        level = measurement_level(labels, classes=classes)
        return None, {"alpha": None, "level": level, "note": str(error), "pairs": pairs}


def _pairs(answers: Shared, question: StudyQuestion) -> list[JsonDict]:
    answers_by_person: dict[str, dict[str, str]] = {}
    for item, who, value in answers:
        answers_by_person.setdefault(who, {})[item] = value
    pairs = []
    for first, second in itertools.combinations(sorted(answers_by_person), 2):
        shared = [item for item in answers_by_person[first] if item in answers_by_person[second]]
        answers_of = [[answers_by_person[who][item] for item in shared] for who in (first, second)]
        if shared:
            agreed = pair_agreement(*answers_of, scale=question.kind == SCALE)
            pairs.append({"first": first, "second": second, **agreed})
    return pairs


def pair_agreement(first: Sequence[str], second: Sequence[str], *, scale: bool = False) -> JsonDict:
    """Return how far two annotators agree, by the answers of each to the items (n,) that both labelled.

    On a scale κ weighs disagreements by their squared distance. `kappa` is None where it is undefined: no
    item is shared, or both always gave the same answer.
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

    Cohen (1960), and (1968) for the weighted form. None where chance alone would always agree.
    """
    total = table.sum()
    if total == 0:
        return None
    if numbers is None:
        distances = 1.0 - np.eye(len(table))
    else:
        distances = (numbers[:, None] - numbers[None, :]) ** 2
    chance = np.outer(table.sum(axis=1), table.sum(axis=0)) / total
    expected = float(np.sum(distances * chance))
    if expected == 0:
        return None
    # Rounding errors would show an agreement of 1 as .9999….
    return round(1.0 - float(np.sum(distances * table)) / expected, 12)


def drift(values: Sequence[float]) -> JsonDict | None:
    """Return the change of values (n,) over an annotator's work; None with fewer than two in each part.

    Items come in random order, so that the parts of the work differ by chance alone, unless the person (or
    the rubric) changed. `p_value`: of the first half against the second (Mann-Whitney); None where all are
    the same.
    """
    if len(values) < 2 * PARTS:
        return None
    # `scipy.stats` takes longer to import than all else of a status.
    from scipy.stats import mannwhitneyu

    array = np.asarray(values, np.float64)
    first = array[: len(array) // 2]
    second = array[len(array) // 2 :]
    same = bool(np.all(array == array[0]))
    parts = [float(part.mean()) for part in np.array_split(array, PARTS)]
    return {"parts": parts, "p_value": None if same else float(mannwhitneyu(first, second).pvalue)}


def _drifts(answers: Shared, outcomes: Sequence[tuple[str, Any]]) -> list[JsonDict]:
    """Return how agreement with others and outcomes of each annotator changed over the work."""
    same_answers = Counter((item, value) for item, _, value in answers)
    people = Counter(item for item, *_ in answers)
    agreeing = defaultdict[str, list[float]](list)
    counted = defaultdict[str, list[float]](list)
    for item, who, value in answers:
        agreeing[who].append((same_answers[item, value] - 1) / (people[item] - 1))
    for who, value in outcomes:
        if isinstance(value, float):
            counted[who].append(value)
    work = [(who, "agreement", values) for who, values in sorted(agreeing.items())]
    work += [(who, "outcome", values) for who, values in counted.items()]
    drifts = [{"annotator": who, "what": quantity, **(drift(values) or {})} for who, quantity, values in work]
    return [entry for entry in drifts if "parts" in entry]


def _of_value(text: str) -> Requirement:
    """Return a requirement of the estimate, refusing those of anything else."""
    requirement = Requirement.parse(text)
    if requirement.name != "value":
        problem = f"'{requirement}': the status of a study contains only the estimate 'value'"
        allowed = "value>=X or value<=X"
        action = "For other requirements, use the estimate: stratal estimate STUDY --require."
        raise InputError(problem, allowed=allowed, action=action)
    return requirement


def _stop(study: Study, labelled: int, anytime: list[float] | None) -> JsonDict:
    """Return the half-width at which labelling ends, the one of now, and about how many labels are between.

    The interval narrows about as 1/√n.
    """
    requested_width = float(study.setting("half_width") or 0) or None
    if study.database.reading:
        enough = study.setting("enough") == "yes"
    else:
        enough = update_stopping(study)
    if anytime is None:
        current_width = None
    else:
        current_width = (anytime[1] - anytime[0]) / 2
    if current_width is None or requested_width is None:
        more_labels = None
    else:
        more_labels = max(0, math.ceil(labelled * ((current_width / requested_width) ** 2 - 1)))
    return {
        "half_width": requested_width,
        "enough": enough,
        "half_width_now": current_width,
        "more_labels": more_labels,
    }


def _interim(
    study: Study, labelled: int, confidence_level: float, name: str
) -> tuple[Estimate | None, JsonDict, list[str]]:
    """Return the estimate so far, it and the interval that holds at every moment, and why one is missing."""
    figures: JsonDict = {"estimate": None, "anytime_interval": None}
    if isinstance(study.sample().design, Disagreements):
        return (
            None,
            figures,
            ["labels of this study only compare models: stratal study extend shows the comparison"],
        )
    if not labelled:
        return None, figures, ["no item is labelled yet, so there is no estimate"]
    try:
        interim = estimate_study(study, name)
        quantity = _quantity(study, interim, name)
        figures["estimate"] = interim.to_dict(confidence_level) | {"quantity": quantity}
    except StratalError as error:
        return None, figures, [str(error)]
    try:
        figures["anytime_interval"] = list(anytime_interval(study, confidence_level, name))
    except StratalError as error:
        return interim, figures, [f"no anytime-valid interval: {error}"]
    return interim, figures, []


def _quantity(study: Study, interim: Estimate, name: str) -> str:
    """Return the name of what is estimated; the study stores numbers, and the annotators' words name it."""
    if interim.label:
        return interim.quantity
    return interim.quantity_in_words(join_labels(study.sample(), study.labels(name, words=True)).table())


# Verdict on a requirement as long as there is no estimate.
_OPEN_YET = {"estimate": None, "confidence_interval": None, "verdict": UNDECIDED, "more_labels": None}


def _of_first(
    study: Study,
    interim: Estimate | None,
    figures: JsonDict,
    confidence_level: float,
    require: Sequence[Requirement],
) -> tuple[JsonDict, list[str]]:
    """Return what is required and the planned look, and what speaks against the plan or hides that look."""
    additions: Keywords = {}
    if require:
        additions["requirements"] = [
            {**_OPEN_YET, "required": str(requirement)}
            if interim is None
            else requirement.held_against(interim, confidence_level, ends=figures["anytime_interval"])
            for requirement in require
        ]
    reasons: list[str]
    if interim is None:
        reasons = []
    else:
        reasons = list(interim.refuted)
        additions["course"] = {
            "so_far": estimate_course(study, confidence_level),
            "expected": expected_course(study, interim, confidence_level),
        }
    if interim is not None and study.sample().looks is not None:
        try:
            additions["planned_look"] = planned_look(study, confidence_level)
        except StratalError as error:
            reasons.append(f"no planned look: {error}")
    return additions, reasons
