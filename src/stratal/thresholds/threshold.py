"""`threshold`: the units that can be accepted because their score is high enough, with a guarantee.

A fault is an error that the requirement limits, such as a wrong accepted answer (see `SetEvidence`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.designs.clusters import ClusterWeighting
from stratal.designs.extending import require_same_population
from stratal.designs.external_columns import ids_of
from stratal.designs.labelling_files import require_empty_folder
from stratal.designs.sample import Sample
from stratal.errors import InputError, LabelError, list_first, suggest_names
from stratal.estimation.entry_points import estimate
from stratal.estimation.estimand import as_estimand
from stratal.estimation.missing_labels import unrepresentative_notes
from stratal.estimation.resolve import group_column, number_column, with_group
from stratal.estimation.respondents import default_target
from stratal.evaluation.evaluation import PopulationReader
from stratal.evaluation.labelled_sample import LabelledSample, read_labelled_sample
from stratal.evaluation.labelled_table import LabelledTable
from stratal.evaluation.request import EvaluationRequest
from stratal.evaluation.sources import SourceForm, form_of
from stratal.intervals.interval import check_confidence_level
from stratal.intervals.outcomes import check_target
from stratal.metrics.calibration import Calibration
from stratal.metrics.ranking import only_proxy, scores_of_class
from stratal.metrics.threshold_goal import (
    ERROR,
    PRECISION,
    SetRequirement,
    ThresholdGoal,
    ThresholdOutcomes,
    threshold_outcomes,
)
from stratal.names import option_of
from stratal.planning.findings import KIND, Findings, provenance_of, selection_of
from stratal.population.population import UNIT_ID, Population
from stratal.population.rules import CutPoints, Everything
from stratal.protocols import JsonDict, JsonRows
from stratal.question.chosen_rows import UNKNOWN
from stratal.question.column_kinds import may_be_proxy
from stratal.report.document import describe_threshold_method
from stratal.report.notes import Note, unlabelled_text
from stratal.report.text import Page, PageDisplay, json_dict
from stratal.report.thresholds import threshold_page
from stratal.report.verdicts import FAIL, PASS, UNDECIDED
from stratal.tables.files import csv_line
from stratal.thresholds.curves import CURVES, Curve, curve_of
from stratal.thresholds.decision import Decision, decide
from stratal.thresholds.evidence import SetEvidence, set_evidence
from stratal.thresholds.sets import (
    CandidateSets,
    LabelledScores,
    ScoredPopulation,
    are_equal_weights,
    candidate_sets,
    codes_of_groups,
)

# If even this multiple of the labels accepts no set, no number of labels is stated.
_MAX_LABEL_FACTOR = 2.0**14
# Bisections of the interval that is left, whose upper end is twice the lower one: the stated number of labels
# is within 1.6% (1/2⁶) of the smallest.
_N_BISECTIONS = 6
# Simulated draws for each of these numbers of labels: the error of a local significance level is then a tenth
# of it.
_DRAWS_OF_FORECAST = 2_000
# Text values of a column that an error quotes.
_MAX_QUOTED_VALUES = 3

# Files that `--output` writes.
ACCEPTED_FILE = "accepted.csv"
REVIEW_FILE = "review.csv"
REPORT_FILE = "report.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedSet:
    """A candidate set, with the estimate of the required metric and the decision.

    Parameters
    ----------
    group : str, optional
    thresholds : tuple of float or None
        The smallest score of each column; None if every score is accepted.
    items : int, optional
        Units of the population in it; None if the population is not known.
    share : float
        Of the group's units.
    labels : int
        Labels in it.
    estimate, limit : float
        The required metric, and its one-sided limit at the level at which this set was tested.
    accepted : bool
        Whether the requirement holds for it, with the stated confidence for all sets together.
    """

    group: str | None
    thresholds: tuple[float | None, ...]
    items: int | None
    share: float
    labels: int
    estimate: float
    limit: float
    accepted: bool


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Threshold(PageDisplay):
    """The largest set (for recall the smallest) that satisfies a requirement, and all candidates.

    Parameters
    ----------
    requirement : SetRequirement
    scores : tuple of str
    by : str, optional
    target : str
        Whether the guarantee applies to these units (`population`) or to future units (`superpopulation`).
    confidence_level : float
    labels, population_size : int
    verdict : {"PASS", "FAIL", "UNDECIDED"}
        PASS if a set is accepted; FAIL if the labels show that no set satisfies the requirement; otherwise
        UNDECIDED.
    chosen : tuple of AcceptedSet
        The set to accept, for each group that has one.
    candidates : tuple of AcceptedSet
    curve : Curve, optional
        Metrics by threshold, for one score without groups.
    labels_needed : int, optional
        Approximate number of labels that are needed to accept a set if the rates stay the same.
    all_violated : bool
        Whether the labels show that every candidate set violates the requirement; smaller sets may not.
    notes : tuple of str
    scored : ScoredPopulation, optional
        Scores of all units; not written to files.
    evidence : LabelledSample, optional
        The sample and its labels, for a report; not written.
    """

    requirement: SetRequirement
    scores: tuple[str, ...]
    by: str | None
    target: str
    confidence_level: float
    labels: int
    population_size: int
    verdict: str
    chosen: tuple[AcceptedSet, ...]
    candidates: tuple[AcceptedSet, ...]
    curve: Curve | None
    labels_needed: int | None
    all_violated: bool
    notes: tuple[str, ...]
    scored: ScoredPopulation | None = None
    evidence: LabelledSample | None = None

    def to_dict(self) -> JsonDict:
        """Return a JSON-ready dict: what the command prints with `--json`."""
        curve = None
        if self.curve is not None:
            curve = self.curve.to_dict()
        return {
            "requirement": str(self.requirement),
            "verdict": self.verdict,
            "metric": self.requirement.metric,
            "required": self.requirement.limit,
            "class": self.requirement.positive,
            "scores": list(self.scores),
            "by": self.by,
            "target": self.target,
            "confidence_level": self.confidence_level,
            "labels": self.labels,
            "population_size": self.population_size,
            "chosen": [json_dict(asdict(row)) for row in self.chosen],
            "candidates": [json_dict(asdict(row)) for row in self.candidates],
            "curve": curve,
            "labels_needed": self.labels_needed,
            "all_violated": self.all_violated,
            "notes": [str(note) for note in self.notes],
        }

    def _page(self) -> Page:
        return threshold_page(self.to_dict())

    def write(self, folder: str | Path) -> dict[str, int]:
        """Write the ids of the units on each side, and a report; return the number of units in each file.

        Raises
        ------
        InputError
            If the population is not known, or the folder is not empty.
        """
        folder = Path(folder)
        require_empty_folder(folder)
        if self.scored is None:
            raise InputError(
                "the units of the population are not known",
                action="Give the file from which the sample was drawn: population= (--population FILE).",
            )
        folder.mkdir(parents=True, exist_ok=True)
        counts = [0, 0]
        with (
            open(folder / REVIEW_FILE, "w", encoding="utf-8", newline="") as review_stream,
            open(folder / ACCEPTED_FILE, "w", encoding="utf-8", newline="") as accepted_stream,
        ):
            streams = [review_stream, accepted_stream]
            for stream in streams:
                stream.write(csv_line(["id", *self.scores]))
            for unit, scores, is_accepted in self._decisions(self.scored):
                streams[is_accepted].write(csv_line([unit, *scores]))
                counts[is_accepted] += 1
        self.report().write(folder / REPORT_FILE)
        return {ACCEPTED_FILE: counts[True], REVIEW_FILE: counts[False]}

    def report(self, *, title: str | None = None, commands: Sequence[str] = ()) -> Findings:
        """Return the report: the accepted set, the curves, and the calibration of the scores.

        Parameters
        ----------
        title : str, optional
            The heading.
        commands : sequence of str
            Commands that reproduce the report.
        """
        assert self.evidence is not None
        sample = self.evidence.sample
        described = self.to_dict()
        method = describe_threshold_method(
            described,
            sample.design.report_description or (f"a {sample.design.kind} sample",),
            is_monotone=self.requirement.is_monotone,
            has_rounds_by_labels=bool(sample.design.allows_label_based_rounds),
            selection=selection_of(sample),
        )
        content = {
            "kind": KIND,
            "title": title or f"Which items satisfy {self.requirement}?",
            "question": None,
            "confidence_level": self.confidence_level,
            "threshold": described,
            "reliability": self._calibration(self.evidence),
            "method": method,
            "provenance": provenance_of(sample, commands),
        }
        return Findings(content=json_dict(content))

    def _calibration(self, labelled_sample: LabelledSample) -> JsonRows:
        """Return the rows on the calibration of the scores; none if the scores are not probabilities."""
        request = labelled_sample.request
        try:
            options = request.keywords("predicted", "combine", "target")
            estimand = Calibration(self.scores)
            result = estimate(labelled_sample.sample, labelled_sample.labels, estimand=estimand, **options)
        except (InputError, LabelError):
            # A score may be a rank without a scale, which has thresholds but no calibration.
            return []
        rows: JsonRows = result.to_dict(self.confidence_level)["calibration"]
        return rows

    def _decisions(self, scored: ScoredPopulation) -> Iterator[tuple[Any, list[float], bool]]:
        """Yield the id of every unit of the population, its scores, and whether it is accepted."""
        groups = tuple(row.group or "" for row in self.chosen)
        thresholds = [
            [-np.inf if value is None else value for value in accepted.thresholds] for accepted in self.chosen
        ]
        n_sets = len(self.chosen)
        sets = CandidateSets(
            # If no set is chosen, the shape is (0, S), which no unit satisfies.
            thresholds=np.reshape(thresholds, (n_sets, len(self.scores))),
            group=np.arange(n_sets),
            groups=groups or ("",),
        )
        columns = (UNIT_ID, *self.scores)
        if self.by:
            columns += (self.by,)
        for batch in scored.population.batches(columns):
            scores, group = scored.read(batch, sets)
            members = sets.members(scores, group)
            is_accepted: BoolArray = np.any(members, axis=1)
            yield from zip(batch[UNIT_ID].tolist(), scores.tolist(), is_accepted.tolist(), strict=True)


def threshold(
    sample: Any = None,
    labels: Any = None,
    require: str = "error<=.05",
    *,
    score: str | Sequence[str] | None = None,
    by: str | None = None,
    target: str | None = None,
    population: Any = None,
    confidence_level: float = 0.95,
    read_population: PopulationReader | None = None,
    **options: Any,
) -> Threshold:
    """Return the units that can be accepted by their score so that a requirement holds with confidence.

    For an error, a precision or a false positive rate, this is the largest valid set of units with the
    highest scores; for recall, the smallest. The probability that the requirement is violated for the
    accepted set is at most 1 − `confidence_level`, even if the score is uninformative. Error and precision
    are tested by step-down max-t over about 20 sets with weighted Clopper–Pearson limits. Recall and the
    false positive rate change in one direction with the threshold, and are tested in a fixed sequence.

    Parameters
    ----------
    sample, labels, read_population
        The arguments of `stratal.evaluate`: a sample and its labels, a study, or a table with labels.
    require : str
        `error<=.05`, `precision>=.9`, `recall>=.8` or `false_positive_rate<=.01`; for a class,
        `precision:spam>=.9`.
    score : str or two of them, optional
        The proxy, or another numeric column of the sample; by default the only proxy. With two scores, the
        accepted units reach a threshold for each score.
    by : str, optional
        Group column: a set is returned for each level, and the guarantee holds simultaneously for all of
        them.
    target : {"population", "superpopulation"}
        Whether the guarantee applies to these units or to future units from the same source.
    population : path or Population, optional
        Population from which the sample was drawn; required if the sample was read from a file. For a table
        it is optional: without it, shares are estimated.
    confidence_level : float
    **options
        `value`, `id`, `positive`, `mapping`, `combine`, `predicted`, `predicts`, and for a table also
        `proxy`, `chosen` and the other options that describe it, as in `stratal.evaluate`.

    Returns
    -------
    Threshold

    Raises
    ------
    InputError, LabelError
        For an unknown metric, a score that predicts another quantity, and a named class if labels are not
        classes.

    Examples
    --------
    >>> import stratal
    >>> score = np.linspace(0, 1, 2000)
    >>> population = stratal.Population.from_arrays(proxy={"confidence": score})
    >>> sample = stratal.designs.SimpleRandom(budget=400).draw(population, seed=7)
    >>> right = (sample.proxies[:, 0] > 0.3).astype(float)
    >>> result = stratal.threshold(sample, right, "error<=.05")
    >>> result.verdict, result.chosen[0].items
    ('PASS', 1355)
    """
    requirement = SetRequirement.parse(require)
    if target is not None:
        check_target(target)
    check_confidence_level(confidence_level)
    request = EvaluationRequest(by=by, confidence_level=confidence_level, **options)
    is_table = form_of(sample, labels) not in (SourceForm.SAMPLE, SourceForm.STUDY)
    if is_table:
        request = replace(request, population=population)
    labelled_sample = read_labelled_sample(request, sample, labels)
    named_scores = (score,) if isinstance(score, str) else tuple(score or ())
    sample = labelled_sample.sample
    table = labelled_sample.table
    score_names = named_scores or (_default_score(sample, table, requirement),)
    warnings: tuple[Note, ...] = ()
    if table is not None:
        _require_numeric_scores(table, score_names)
        sample = _add_scores(sample, labelled_sample, score_names)
        warnings = table.warnings
    if len(score_names) > 2:
        raise InputError("too many scores", given=", ".join(score_names), allowed="one score or two")
    if population is None and table is not None:
        population = _population_of_table(sample, labelled_sample, score_names, by)
    if population is None and sample.population is None:
        population = _read_unknown_population(sample, read_population, score_names, is_required=not is_table)
    scored_population = _scored_population(sample, population, score_names, by, is_drawn=not is_table)
    requirement = requirement.of_class(sample)
    outcomes = threshold_outcomes(
        sample, labelled_sample.labels, requirement, request.predicted, request.combine
    )
    result = _select_sets(
        sample,
        outcomes,
        scored_population,
        requirement,
        score_names=score_names,
        by=by,
        target=target,
        confidence_level=confidence_level,
        is_named=bool(named_scores),
        warnings=warnings,
    )
    return replace(result, evidence=replace(labelled_sample, sample=sample))


def _require_numeric_scores(table: LabelledTable, names: Sequence[str]) -> None:
    """Raise an error for scores of a table that are text, such as a judge's verdicts."""
    columns = table.recognition.columns
    for name in names:
        facts = columns.get(name)
        if facts is None or facts.is_number or facts.is_percentage or not facts.n_entries:
            continue
        scores = [column.name for column in columns.values() if may_be_proxy(column)]
        options = " or ".join(option_of("score", score) for score in scores)
        options = options or "score= (--score COLUMN)"
        action = f"Name a score: {options}."
        if facts.verdicts is not None:
            agreement = f"stratal estimate FILE --judge {quote(name)}"
            action += f" Whether the verdicts agree with the labels: `{agreement}`."
        examples = list_first(map(repr, sorted(facts.values or ())), _MAX_QUOTED_VALUES)
        raise InputError(
            f"{table.rows.table_name}: {name!r} contains words, but a threshold requires a score",
            given=examples or f"text in {name!r}",
            allowed="a number for every unit",
            action=action,
        )


def _add_scores(sample: Sample, labelled_sample: LabelledSample, names: Sequence[str]) -> Sample:
    """Return the sample with the scores of an external table that are not proxies of its design."""
    for name in names:
        if name not in (*sample.proxy_names, *sample.groups):
            sample = with_group(sample, name, labelled_sample.read_column(name))
    return sample


def _population_of_table(
    sample: Sample, labelled_sample: LabelledSample, scores: Sequence[str], by: str | None
) -> Population | None:
    """Return the population of an external table with a row for every unit; None for another table."""
    assert labelled_sample.table is not None
    rule = sample.design.rule or Everything()
    # Scores in percent are read as numbers from 0 to 1.
    columns = labelled_sample.table.rows.with_shares(scores)
    ids = ids_of(columns, labelled_sample.request.id)
    if sample.design.counts is None or len(ids) != sample.population_size:
        return None
    group_names = dict.fromkeys(name for name in (*rule.columns, by) if name and name not in scores)
    groups = {name: list(map(str, columns.values(name))) for name in group_names}
    proxies = {name: columns.numbers(name) for name in scores}
    return Population.from_arrays(proxy=proxies, groups=groups, ids=ids)


def _read_unknown_population(
    sample: Sample, read_population: PopulationReader | None, scores: Sequence[str], *, is_required: bool
) -> Any:
    """Return the population of a sample that was read from a file; None if it is unknown and not required."""
    population = None
    if read_population is not None:
        other_scores = tuple(name for name in scores if name not in sample.proxy_names)
        population = read_population(sample, other_scores)
    if population is None and is_required:
        raise InputError(
            "the population from which the sample was drawn is required",
            given="a sample that was read from a file",
            action="Give the file of the population: population= (--population FILE).",
        )
    return population


def _default_score(sample: Sample, table: LabelledTable | None, requirement: SetRequirement) -> str:
    """Return the name of the score: that of the table, the declared one of the class, or the only proxy."""
    if table is not None and table.score is not None:
        return table.score
    names = [entry.name for entry in sample.question.scores if entry.of_class is not None]
    if requirement.metric != ERROR and len(names) == 1:
        return names[0]
    return only_proxy(sample, "score= (--score COLUMN)")


def _scored_population(
    sample: Sample, source: Any, scores: Sequence[str], by: str | None, *, is_drawn: bool
) -> ScoredPopulation | None:
    """Return the population with scores, group and the columns of the strata; None if it is not known.

    `source` is the population or its file; by default it is the population that the sample was drawn from.
    """
    rule = sample.design.rule or Everything()
    population = sample.population if source is None else source
    if population is None:
        return None
    if not isinstance(population, Population):
        # The strata of a drawn sample are cuts of numbers, unless the column is one of its groups. Those of
        # an external table are always levels of a column.
        groups = [name for name in rule.columns if name in sample.groups]
        numeric_columns = list(scores)
        if is_drawn:
            numeric_columns += [name for name in rule.columns if name not in sample.groups]
        else:
            groups += [name for name in rule.columns if name not in scores]
        if by:
            groups.append(by)
        proxies = list(dict.fromkeys((*sample.proxy_names, *scores)))
        features = [name for name in dict.fromkeys(numeric_columns) if name not in proxies]
        population = Population.read(
            population,
            id=sample.question.id,
            proxy=proxies,
            groups=list(dict.fromkeys(groups)),
            features=features,
        )
    if is_drawn:
        population = require_same_population(sample, population)
    columns = (*population.proxy_names, *population.feature_names, *population.group_names)
    for name in scores:
        if name in population.group_names:
            raise InputError(
                f"score {name!r} is not numeric",
                given="a category",
                action="Draw the sample with this score as a numeric column (--proxy or --features).",
            )
    required_columns = (*scores, by) if by else scores
    for name in required_columns:
        if name not in columns:
            raise InputError(
                f"the population has no column {name!r}",
                allowed=suggest_names(name, columns),
                action="Draw with --proxy or --groups, so that the column is kept.",
            )
    return ScoredPopulation(population=population, rule=rule, scores=tuple(scores), by=by)


def _select_sets(
    sample: Sample,
    outcomes: ThresholdOutcomes,
    scored_population: ScoredPopulation | None,
    requirement: SetRequirement,
    *,
    score_names: tuple[str, ...],
    by: str | None,
    target: str | None,
    confidence_level: float,
    is_named: bool,
    warnings: tuple[Note, ...],
) -> Threshold:
    """Return the accepted sets for labelled outcomes.

    `is_named` is whether the user named the scores; `warnings` are those of the table's labels.
    """
    labelled = outcomes.labelled
    _require_random_choice(sample)
    _require_equal_probabilities(sample, labelled)
    question = sample.question.refine(target=target)
    target = question.target or default_target(sample, labelled)
    scores = np.column_stack(
        [_unit_scores(sample, name, requirement, is_named=is_named) for name in score_names]
    )
    if np.any(np.isnan(scores)):
        raise LabelError("a drawn unit has no score", allowed="a number for every unit")
    # The names of the groups, and the group of each drawn unit.
    groups, group = _unit_groups(sample, by)
    sets = _planned_sets(sample, score_names, by)
    if sets is None:
        determines_sets = _units_that_determine_sets(sample)
        sets = candidate_sets(scores[determines_sets], group[determines_sets], groups)
    labels = _labelled_scores(sample, outcomes, scored_population, scores, group, sets, target)
    evidence = set_evidence(requirement.metric, labels, sets)
    error = 1.0 - confidence_level
    decision = decide(requirement, evidence, sets, error)
    rows = _accepted_sets(requirement, evidence, labels, sets, decision)
    warnings = (*warnings, *unrepresentative_notes(sample))
    if warnings:
        # Nothing is guaranteed by labels that are not a random sample of the table.
        rows = tuple(replace(row, accepted=False) for row in rows)
    chosen = _best_set_by_group(requirement, rows)
    labels_needed = None
    if not chosen and not warnings:
        labels_needed = _estimate_labels_needed(requirement, evidence, sets, error, len(labels.outcomes))
    # No correction for several sets: all limits lie beyond the requirement with at most the probability that
    # a single one does.
    lower_limits = evidence.limits(error)[0]
    all_violated = not warnings and bool(np.all(lower_limits > requirement.max_fault_rate))
    if chosen:
        verdict = PASS
    elif all_violated and _are_all_sets_candidates(scored_population, sets, labels):
        verdict = FAIL
    else:
        verdict = UNDECIDED
    curve = None
    if len(score_names) == 1 and by is None:
        metrics = _curve_metrics(requirement, labels)
        curve = curve_of(labels, sets, sample.weighting(labelled), target, confidence_level, metrics)
    notes = _threshold_notes(sample, outcomes, requirement, labels, groups, chosen)
    return Threshold(
        requirement=requirement,
        scores=score_names,
        by=by,
        target=target,
        confidence_level=confidence_level,
        labels=len(labels.outcomes),
        population_size=sample.population_size,
        verdict=verdict,
        chosen=chosen,
        candidates=rows,
        curve=curve,
        labels_needed=labels_needed,
        all_violated=all_violated,
        notes=(*warnings, *notes),
        scored=scored_population,
    )


def _units_that_determine_sets(sample: Sample) -> BoolArray:
    """Return the drawn units (n,) whose scores determine the thresholds of the candidate sets.

    If labels determined the sizes of later rounds, these are the units of the first round: sets that depend
    on labels would lose the guarantee.
    """
    if sample.design.allows_label_based_rounds:
        return np.asarray(sample.round == 1)
    return np.ones(sample.size, dtype=bool)


def _unit_groups(sample: Sample, by: str | None) -> tuple[tuple[str, ...], IntArray]:
    """Return the names of the groups, and the index of each drawn unit's group (n,).

    Without `by`, all units are one group with an empty name.
    """
    if by is None:
        return ("",), np.zeros(sample.size, dtype=np.int64)
    values = group_column(sample, by)
    groups = tuple(sorted({str(value) for value in values.tolist()}))
    return groups, codes_of_groups(values, groups)


def _curve_metrics(requirement: SetRequirement, labels: LabelledScores) -> tuple[str, ...]:
    """Return the metrics that the labels show by threshold.

    With correct answers as the class, only precision, their share among the accepted answers, is a known
    metric. Recall and the false positive rate need labels in every stratum.
    """
    if requirement.metric == ERROR or not labels.has_all_strata:
        return (PRECISION,)
    return CURVES


def _are_all_sets_candidates(
    scored_population: ScoredPopulation | None, sets: CandidateSets, labels: LabelledScores
) -> bool:
    """Return whether every set that a threshold can give is a candidate; False if that is not known."""
    if scored_population is None or labels.sizes is None:
        return False
    return scored_population.has_no_other_set(sets, labels.sizes.sum(axis=0))


def _planned_sets(sample: Sample, score_names: tuple[str, ...], by: str | None) -> CandidateSets | None:
    """Return the sets at the cut points of a plan for a threshold; None for other samples and scores."""
    goal = as_estimand(sample.question.estimand)
    strata = sample.design.strata
    if not isinstance(goal, ThresholdGoal) or strata is None or by is not None:
        return None
    if not isinstance(strata.rule, CutPoints) or score_names != (strata.rule.column,):
        return None
    thresholds = strata.rule.cuts[::-1]
    # The set of all units is a candidate only if every stratum gets labels: a stratum whose outcome counts as
    # known gets none.
    if not np.any(strata.is_known):
        thresholds = np.append(thresholds, -np.inf)
    return CandidateSets(thresholds=thresholds[:, None], group=np.zeros(len(thresholds), dtype=np.int64))


def _require_random_choice(sample: Sample) -> None:
    """Raise an error for labels of rows that were not chosen at random."""
    if sample.question.chosen == UNKNOWN:
        raise InputError(
            "a guarantee requires labels of rows that were chosen at random",
            given=f"chosen={UNKNOWN!r} (--chosen {UNKNOWN})",
            action="Label a random sample: draw one with plan and draw.",
        )


def _require_equal_probabilities(sample: Sample, labelled: BoolArray) -> None:
    """Raise an error for unequal inclusion probabilities within a stratum, and clusters of unequal sizes.

    The limits depend only on drawn units. Units with small probabilities, or a cluster that is larger than
    all drawn ones, may contain most of the faults without a single one in the sample: with such designs, up
    to .9 of the accepted sets violated the requirement.
    """
    if sample.design.counts is not None:
        return
    weighting = sample.weighting(labelled)
    is_equal = are_equal_weights(weighting.weights)
    if isinstance(weighting, ClusterWeighting):
        is_equal = is_equal and weighting.are_sizes_equal
    elif weighting.unit_clusters is not None:
        is_equal = is_equal and bool(np.ptp(np.bincount(weighting.unit_clusters)) == 0)
    if not is_equal:
        raise InputError(
            "a threshold requires equal probabilities within strata, and clusters of equal size",
            given=f"design {sample.design.kind!r}",
            allowed="a simple random or stratified sample, or clusters of equal size",
            action="Draw such a sample: --design simple-random or stratified.",
        )


def _unit_scores(sample: Sample, name: str, requirement: SetRequirement, *, is_named: bool) -> FloatArray:
    """Return a score of the drawn units (n,); raise an error if it predicts another outcome."""
    role = sample.question.score(name)
    if requirement.metric != ERROR and requirement.positive is not None:
        naming = "score='{column}' (--score {column})"
        return scores_of_class(sample, requirement.positive, name if is_named else None, naming)
    if role is not None and role.of_class is not None and requirement.metric == ERROR:
        raise InputError(
            f"{name!r} is the probability of class {role.of_class!r}, not that an answer is right",
            given=f"{requirement}",
            allowed="a confidence, which is high if the answer is right",
            action="Name a column of confidences: score= (--score COL); or require "
            f"precision:{role.of_class}>=LIMIT.",
        )
    return number_column(sample, name, "score")


def _labelled_scores(
    sample: Sample,
    outcomes: ThresholdOutcomes,
    scored_population: ScoredPopulation | None,
    scores: FloatArray,
    group: IntArray,
    sets: CandidateSets,
    target: str,
) -> LabelledScores:
    """Return the labelled units with their strata and weights, and the population's sizes.

    `scores` (n, S) and `group` (n,) are those of the drawn units.
    """
    labelled = outcomes.labelled
    is_random_in_strata = sample.design.counts is not None
    weighting = sample.weighting(labelled)
    weights = weighting.weights
    counts = np.bincount(sample.stratum[labelled], minlength=len(sample.summary.sizes))
    has_all_strata = bool(np.all(counts[sample.summary.sizes > 0] > 0))
    sizes = None
    group_sizes = None
    if scored_population is not None:
        # Units of each stratum in each set (H, J) and in each group (H, G).
        sizes, group_sizes = scored_population.count(sets)
    if is_random_in_strata:
        stratum = sample.stratum[labelled]
        cluster = None
    else:
        stratum = np.zeros(len(outcomes.values), np.int64)
        cluster = weighting.unit_clusters
    return LabelledScores(
        outcomes=outcomes.values,
        scores=scores[labelled],
        group=group[labelled],
        stratum=stratum,
        weights=weights / weights.sum(),
        cluster=cluster,
        sizes=sizes,
        group_sizes=group_sizes,
        is_random_in_strata=is_random_in_strata,
        has_all_strata=has_all_strata,
        is_finite=target == "population",
    )


def _accepted_sets(
    requirement: SetRequirement,
    evidence: SetEvidence,
    labels: LabelledScores,
    sets: CandidateSets,
    decision: Decision,
) -> tuple[AcceptedSet, ...]:
    """Return each candidate set with its estimate, its limit and the decision."""
    inside = sets.members(labels.scores, labels.group)
    in_group = labels.group[:, None] == sets.group
    estimates = requirement.value(evidence.estimates)
    limits = requirement.value(evidence.limits(decision.local_levels)[1])
    group_weights = labels.weights @ in_group
    shares = labels.weights @ inside / np.where(group_weights > 0, group_weights, 1.0)
    items: list[int | None] = [None] * len(shares)
    if labels.sizes is not None and labels.group_sizes is not None:
        sizes = labels.sizes.sum(axis=0)
        shares = sizes / np.maximum(labels.group_sizes.sum(axis=0)[sets.group], 1)
        items = sizes.tolist()
    rows = []
    for j, thresholds in enumerate(sets.thresholds.tolist()):
        row = AcceptedSet(
            group=sets.groups[sets.group[j]] or None,
            thresholds=tuple(None if np.isinf(value) else value for value in thresholds),
            items=items[j],
            share=float(shares[j]),
            labels=int(inside[:, j].sum()),
            estimate=float(estimates[j]),
            limit=float(limits[j]),
            accepted=bool(decision.accepted[j]),
        )
        rows.append(row)
    return tuple(rows)


def _best_set_by_group(requirement: SetRequirement, rows: Sequence[AcceptedSet]) -> tuple[AcceptedSet, ...]:
    """Return the set to accept in each group: the largest accepted one, for recall the smallest."""
    best: dict[str | None, AcceptedSet] = {}
    for row in rows:
        if not row.accepted:
            continue
        previous = best.get(row.group)
        if previous is None or (row.share < previous.share) == requirement.seeks_smallest_set:
            best[row.group] = row
    return tuple(best.values())


def _estimate_labels_needed(
    requirement: SetRequirement, evidence: SetEvidence, sets: CandidateSets, error: float, labels: int
) -> int | None:
    """Return about how many labels, with the same shares in the strata, would make a set pass.

    The rates are assumed to stay. None if `_MAX_LABEL_FACTOR` times the labels is not enough.
    """

    def passes(factor: float) -> bool:
        decision = decide(requirement, evidence.scaled(factor), sets, error, _DRAWS_OF_FORECAST)
        return bool(decision.accepted.any())

    high = 2.0
    while not passes(high):
        high *= 2.0
        if high > _MAX_LABEL_FACTOR:
            return None
    low = high / 2.0
    for _ in range(_N_BISECTIONS):
        middle = 0.5 * (low + high)
        if passes(middle):
            high = middle
        else:
            low = middle
    return int(np.ceil(labels * high))


def _threshold_notes(
    sample: Sample,
    outcomes: ThresholdOutcomes,
    requirement: SetRequirement,
    labels: LabelledScores,
    groups: Sequence[str],
    chosen: Sequence[AcceptedSet],
) -> tuple[str, ...]:
    """Return notes on missing labels, on an unknown population and on groups without an accepted set."""
    notes = []
    n_labelled = int(outcomes.labelled.sum())
    if n_labelled < sample.size:
        notes.append(unlabelled_text(sample.size, n_labelled, "the guarantee assumes that labels are"))
    if labels.sizes is None:
        notes.append(
            "the population is not known: shares are estimated from the sample, and the guarantee holds "
            "only approximately if strata have different sampling fractions; to avoid this, give "
            "population= (--population FILE)"
        )
    if requirement.is_monotone and not labels.has_all_strata:
        notes.append(
            f"units in strata without a label count against {requirement}, which requires labels drawn at "
            f"random from all units; for_= (plan --for 'threshold:{requirement}') computes how many labels "
            "are required"
        )
    groups_with_set = {row.group or "" for row in chosen}
    groups_without_set = [repr(name) for name in groups if name not in groups_with_set]
    if chosen and groups_without_set:
        notes.append(f"no set is accepted in {', '.join(groups_without_set)}: review all of these units")
    return tuple(notes)
