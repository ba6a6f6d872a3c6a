"""`select`: find the best of several models with labels of units on which they disagree."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from stratal.arrays import NO_DIVISOR, AnyArray, BoolArray, FloatArray, IntArray, has_entry
from stratal.designs.disagreements import (
    UNITS_FOR_ACCURACIES,
    DifferingUnits,
    Disagreements,
    ModelAnswers,
    units_and_answers,
)
from stratal.designs.extending import extend_sample, population_of
from stratal.designs.poisson import PoissonWeighting
from stratal.designs.sample import Sample
from stratal.errors import InputError, LabelError, suggest_names
from stratal.estimation.estimate import Estimate, linearised_estimate, undefined_estimate
from stratal.estimation.estimates import Estimates
from stratal.estimation.linearised import of_variable
from stratal.estimation.resolve import class_column, number_column, refuse_mismatched_models
from stratal.intervals.difference_betting import MIN_EXPECTED_DISTANCE, DifferenceInterval, DrawSteps
from stratal.labels.joined_labels import join_labels
from stratal.labels.missing_codes import refuse_missing_codes
from stratal.metrics.class_functions import CLASS_METRICS, METRICS, SIGNED, is_f_measure
from stratal.planning.model_elimination import (
    PREFERENCE,
    Outcomes,
    SelectionState,
    labels_to_decide,
    outcomes_of,
    update_state,
)
from stratal.population.population import Population, require_population
from stratal.protocols import JsonDict, JsonMapping
from stratal.proxy.agreement import estimate_accuracies
from stratal.question.tags import NO_SETS, is_set
from stratal.report.text import (
    POINTS,
    Page,
    PageDisplay,
    ReportTable,
    format_notes,
    json_dict,
    level_text,
    points_interval_text,
    points_text,
    width_text,
)
from stratal.strata.arguments import check_budget, whole_number

# The number of pairs grows with the square of the number of models. More models were not evaluated.
MAX_MODELS = 100

# Number of units of the first round, and of each later one as a share of the drawn units. A round is analysed
# when it is complete, so an eighth of the labels is not needed on average.
FIRST_ROUND = 50
LATER_ROUND_SHARE = 0.25

# Label of a preference for none of the models.
TIE = "tie"

# Metrics whose larger values are not better.
_NOT_CRITERIA = (
    "prevalence",
    "predicted_prevalence",
    "false_discovery_rate",
    "false_positive_rate",
    "false_negative_rate",
)

# Lead of the winner in the optimistic scenario, as a multiple of the indifference margin.
_OPTIMISTIC_LEAD = 4.0

# A note states the number of random labels that estimate the accuracy of a model with this half-width.
_HALF_WIDTH_OF_VALUE = 0.03

_WIDER_INTERVAL_NOTE = (
    "a model was eliminated by a bound against the model that led at the time. Its interval, which refers to "
    "the current leader and holds for all pairs simultaneously, is wider and may contain 0"
)


class Selection(PageDisplay):
    """A selection of the best model, with the units to label for it.

    `stratal.select` starts a selection, `resume` continues one from its sample, and `update` adds labels.

    Parameters
    ----------
    sample : Sample
        The sample of all rounds; the units of the last round are not labelled yet.
    truth : (n,)
        The label of each drawn unit as text; None if there is none.
    verdicts : float (n, k)
        Whether each model's answer to each drawn unit is right (1) or wrong (0); NaN without
        verdicts.
    answers : ModelAnswers, optional
        The answers of all models to all units, if they were already read.

    Examples
    --------
    >>> import stratal
    >>> truth = np.array(["cat", "dog"] * 100)
    >>> answers = {"good": truth, "bad": np.where(np.arange(200) % 5 == 0, "cow", truth)}
    >>> selection = stratal.select(stratal.Population.from_arrays(groups=answers), answers=["good", "bad"])
    >>> selection.done, selection.winner, selection.sample.size
    (False, None, 40)
    >>> selection = selection.update({unit: truth[unit] for unit in selection.sample.ids.tolist()})
    >>> selection.done, selection.winner, selection.survivors
    (True, 'good', ('good',))
    """

    def __init__(
        self,
        sample: Sample,
        truth: AnyArray | None = None,
        answers: ModelAnswers | None = None,
        verdicts: FloatArray | None = None,
    ) -> None:
        design = sample.design
        population = sample.population
        if not isinstance(design, Disagreements) or population is None:
            action = "Draw a first round with stratal.select, or stratal select FILE."
            raise InputError("this sample was not drawn to select a model", action=action)
        self.sample = sample
        self._design = design
        if truth is None:
            self.truth = np.full(sample.size, None, dtype=object)
        else:
            self.truth = truth
        no_verdict = np.full((sample.size, len(design.answers)), np.nan)
        self.verdicts: FloatArray = no_verdict if verdicts is None else verdicts
        self._units = answers or units_and_answers(population, design.answers, sample.seed)
        self._codes: IntArray = self._units.codes
        all_draws = self._units.draws(design)
        self._is_drawn = all_draws.drawn
        self._drawn_rows = all_draws.rows
        # The draws of rounds with labels.
        self._draws = all_draws
        if len(design.units) > 1 and not self._is_newest_round_labelled():
            # The units of a round that has no labels yet must not count as missing labels.
            self._draws = self._units.draws(design, -1)
        self._answers = self._units.candidates.drawn.groups
        self._state = SelectionState(design.leaders[-1], design.survivors[-1], design.rivals[-1])
        self._criterion_outcomes = self._outcomes()
        if self._criterion_outcomes is not None and self.labels:
            self._eliminate()

    def _eliminate(self) -> None:
        """Eliminate models until the state is stable: fewer survivors may have another leader."""
        if self._design.counts_agreements:
            correct_probabilities = None
        else:
            correct_probabilities = self._units.correct_probabilities
        assert self._criterion_outcomes is not None
        previous = None
        while previous != self._state:
            previous = self._state
            self._state = update_state(
                self._draws,
                self._differences_from,
                self._criterion_outcomes,
                previous,
                self._design,
                self._units.n_distinct_models,
                correct_probabilities,
            )

    def _differences_from(self, model: int) -> DifferingUnits:
        """Return the units on which other models differ from a model."""
        return self._units.differences(model, counts_agreements=self._design.counts_agreements)

    @classmethod
    def resume(cls, sample: Sample, population: Population | None = None) -> Self:
        """Return the selection of a sample that was written to a file, without its labels.

        Raises
        ------
        InputError
            For a sample of another design, and if the population is not that of the sample.
        """
        return cls(replace(sample, population=population_of(sample, population)))

    def update(self, labels: Any, additional: int | None = None) -> Self:
        """Return the selection with more labels, and with another round unless it is done.

        Parameters
        ----------
        labels : see `stratal.estimate`, or mapping of model to these
            True classes by id; those of earlier rounds may be included again. With the criterion
            "preference", the name of the preferred model's column, or "tie". A mapping whose keys are the
            models states for each model whether its own answers are right: 1 or 0, true or false, pass or
            fail. A drawn unit without a label counts against each model in every comparison: its most
            unfavourable outcome is assumed.
        additional : int, optional
            Number of units in the next round. Default: a quarter of the number of drawn units.

        Raises
        ------
        LabelError
            For ids that are not in this sample, labels that can never be an answer, a model whose answers
            match almost no label, and different verdicts on equal answers.
        """
        sample = self.sample
        truth = self.truth
        verdicts = self.verdicts
        if self._are_verdicts(labels):
            verdicts = self._with_verdicts(labels)
            sample = replace(sample, question=sample.question.refine(predicted=False))
        elif sample.question.compares is False:
            action = "Give a column of verdicts (right or wrong) for each model, as in the earlier rounds."
            raise LabelError("the labels of this selection must be verdicts on each model", action=action)
        else:
            truth = self._with_truth(labels)
        updated = type(self)(sample, truth, self._units, verdicts)
        round_size = default_round_size(sample.size)
        if additional is not None:
            round_size = whole_number("additional", additional)
        if updated.done:
            return updated
        n_units = min(round_size, updated._n_remaining())
        if n_units < 1:
            return updated
        larger_design = self._design.with_round(n_units, *updated._state)
        sample = extend_sample(sample, larger_design, population_of(sample, None))
        n_new = sample.size - len(truth)
        truth = np.concatenate([truth, np.full(n_new, None, dtype=object)])
        verdicts = np.concatenate([verdicts, np.full((n_new, verdicts.shape[1]), np.nan)])
        return type(self)(sample, truth, self._units, verdicts)

    def _are_verdicts(self, labels: object) -> bool:
        """Return whether labels are columns of verdicts by model; raise an error if a model has none."""
        names = set(self._design.answers)
        if not isinstance(labels, Mapping) or not names & {*labels}:
            return False
        missing = sorted(names - {*labels})
        if missing:
            raise LabelError(
                f"no column of verdicts (right or wrong) is given for {', '.join(map(repr, missing))}",
                allowed=f"one for each of {', '.join(self._design.answers)}",
                action="Give the verdicts on every model's answers.",
            )
        return True

    def _with_truth(self, labels: object) -> AnyArray:
        """Return the true class of each drawn unit (n,), updated with these labels."""
        design = self._design
        are_preferences = design.criterion == PREFERENCE
        columns = {name: self.sample.groups[name] for name in design.answers}
        names = np.array([*design.answers, TIE], dtype=object)
        if are_preferences:
            allowed = names
        else:
            allowed = np.concatenate([*columns.values()])
        joined = refuse_missing_codes(join_labels(self.sample, labels), "label", classes=allowed.tolist())
        classes = class_column(self.sample, joined, "labels", allowed)
        unknown = {*classes[has_entry(classes)].tolist()} - {*names}
        if are_preferences and unknown:
            raise InputError(
                "a preference must be the name of a model's column",
                given=repr(next(iter(unknown))),
                allowed=", ".join(names),
            )
        truth = np.where(has_entry(classes), classes, self.truth)
        rows = np.flatnonzero(has_entry(truth))
        if not are_preferences:
            drawn_answers = {name: column[rows] for name, column in columns.items()}
            all_answers = {name: self._answers[name] for name in design.answers}
            refuse_mismatched_models(truth[rows], drawn_answers, all_answers)
        return np.asarray(truth)

    def _with_verdicts(self, labels: Mapping[str, object]) -> FloatArray:
        """Return whether each model is right on each drawn unit (n, k), updated with these verdicts.

        A verdict holds for all models that give the same answer to the unit. If the verdict on some answer is
        missing, the unit counts as not labelled.
        """
        design = self._design
        sample = self.sample
        if design.criterion != "accuracy":
            action = "Give one column of labels, or select by accuracy."
            raise InputError(
                f"verdicts on each model's answers do not define {design.criterion!r}", action=action
            )
        columns = {
            name: refuse_missing_codes(join_labels(sample, labels[name], name), name)
            for name in design.answers
        }
        matrix = np.column_stack([number_column(sample, column, name) for name, column in columns.items()])
        is_invalid = ~np.isnan(matrix) & (matrix != 0) & (matrix != 1)
        if np.any(is_invalid):
            row, column = np.argwhere(is_invalid)[0]
            problem = f"the verdict on {design.answers[column]!r} for id {str(sample.ids[row])!r}"
            raise LabelError(problem, given=f"{matrix[row, column]:g}", allowed="right (1) or wrong (0)")
        codes = self._codes[self._drawn_rows]
        verdicts = self.verdicts.copy()
        for row in np.flatnonzero(~np.isnan(matrix).all(axis=1)).tolist():
            verdict_by_code: dict[int, float] = {}
            for column in np.flatnonzero(~np.isnan(matrix[row])).tolist():
                verdict = verdict_by_code.setdefault(int(codes[row, column]), float(matrix[row, column]))
                if verdict != matrix[row, column]:
                    raise LabelError(
                        f"id {str(sample.ids[row])!r} has two verdicts on one answer",
                        given=repr(str(sample.groups[design.answers[column]][row])),
                        action="Equal answers are right or wrong together; correct one of the verdicts.",
                    )
            row_verdicts = [verdict_by_code.get(int(code), np.nan) for code in codes[row]]
            if np.all(np.isfinite(row_verdicts)):
                verdicts[row] = row_verdicts
            else:
                verdicts[row] = np.nan
        return verdicts

    @property
    def _labelled(self) -> BoolArray:
        """Which drawn units (n,) have a label or verdicts."""
        return np.asarray(has_entry(self.truth) | ~np.isnan(self.verdicts[:, 0]))

    def _outcomes(self) -> Outcomes | None:
        """Return the outcomes of the drawn units from their labels or verdicts; see `outcomes_of`."""
        design = self._design
        rows = self._draws.rows
        draws = self._draws
        labels = self.truth[: len(rows)].tolist()
        weights = 1.0 / draws.probability
        if design.criterion == PREFERENCE:
            code_by_answer = {answer: code for code, answer in enumerate(design.answers)}
            pairs = zip(rows, labels, strict=True)
            preferred_codes = [
                self._codes[row, code_by_answer[label]] if label in code_by_answer else -1
                for row, label in pairs
            ]
            preferred = np.array(preferred_codes, np.int64)
            outcomes = outcomes_of("accuracy", None, self._codes, rows, preferred, weights)
            assert outcomes is not None
            values, largest_difference = outcomes
            is_tie = np.array([label == TIE for label in labels], dtype=bool)
            return np.where(is_tie[:, None], 0.0, values), largest_difference
        # Classes that no model answers get further numbers.
        class_codes = dict(self._units.code_by_answer)
        truth = [
            -1 if text in (None, TIE) else class_codes.setdefault(text, len(class_codes)) for text in labels
        ]
        class_code = None
        if design.positive is not None:
            class_code = class_codes.get(design.positive)
        outcomes = outcomes_of(
            design.criterion, class_code, self._codes, rows, np.array(truth, np.int64), weights
        )
        if outcomes is None:
            return None
        values, largest_difference = outcomes
        verdicts = self.verdicts[: len(rows)]
        has_verdicts = ~np.isnan(verdicts[:, :1])
        return np.where(has_verdicts, verdicts, values), largest_difference

    @property
    def models(self) -> tuple[str, ...]:
        """The columns of the models' answers (k,)."""
        return self._design.answers

    @property
    def labels(self) -> int:
        """Number of units with a label."""
        return int(self._labelled.sum())

    @property
    def decided(self) -> bool:
        """Whether no surviving model can be better than the leader by more than the indifference."""
        return not self._state.rivals

    @property
    def done(self) -> bool:
        """Whether labelling has ended: the winner is known, or the budget or the units are used up."""
        return self.decided or (self._is_newest_round_labelled() and self._n_remaining() == 0)

    def _is_newest_round_labelled(self) -> bool:
        """Return whether a unit of the newest round has a label."""
        in_newest_round = self.sample.round == self.sample.round.max(initial=1)
        return bool(self._labelled[in_newest_round].any())

    def _n_remaining(self) -> int:
        """Return how many units another round can have at most."""
        design = self._design
        # Units of size 0 are never drawn: the remaining models agree on them.
        n_undrawn = int(np.sum(design.sizes(self._codes, *self._state)[~self._is_drawn] > 0))
        if design.budget is None:
            return n_undrawn
        return min(n_undrawn, design.budget - self.sample.size)

    @property
    def leader(self) -> str:
        """The model with the best current estimate; before any label, by the agreement of the answers."""
        return self._design.answers[self._state.leader]

    @property
    def winner(self) -> str | None:
        """The model that is at most the indifference margin worse than the best; None before it is known."""
        if self.decided:
            return self.leader
        return None

    @property
    def survivors(self) -> tuple[str, ...]:
        """The models that can still be the best."""
        return tuple(self._design.answers[j] for j in self._state.survivors)

    @property
    def estimates(self) -> Estimates:
        """Each model's difference from the leader; intervals are simultaneous for all pairs and all looks.

        The value of a model is not estimated, because units on which all models agree are never labelled
        (`notes`).
        """
        outcomes = self._criterion_outcomes
        leader = self._state.leader
        rows = [
            self._difference(outcomes, j, leader) for j in range(len(self._design.answers)) if j != leader
        ]
        return Estimates.from_rows(self.sample, rows, "comparisons", remarks=self.notes[-1:])

    def _difference(self, outcomes: Outcomes | None, j: int, leader: int) -> Estimate:
        """Return the difference of model `j` from the leader, with its simultaneous interval."""
        draws = self._draws
        design = self._design
        differences = self._differences_from(leader)
        differs = differences.of_model(j)
        models = {"model": design.answers[j], "other": design.answers[leader]}
        is_labelled = self._labelled[: len(draws.rows)]
        weighting = PoissonWeighting(
            inclusion_probability=draws.probability[is_labelled], size=differences.size, fixed_size=True
        )
        if outcomes is None or not np.any(is_labelled):
            return replace(undefined_estimate(weighting, 0, None), label=models, null=0.0)
        values, largest_gain = outcomes
        gains = values[:, j] - values[:, leader]
        is_differing = differs[draws.rows[is_labelled]]
        weights = is_differing / draws.probability[is_labelled]
        mean_gain = float(weights @ gains[is_labelled]) / max(float(weights.sum()), NO_DIVISOR)
        # The mean over all units: without a difference of the answers, the gain is 0.
        value = mean_gain * float(differs.mean())
        # Only rounds with both models count: units on which an eliminated model differs are no longer drawn.
        has_both = [j in group and leader in group for group in design.survivors]
        is_used = np.repeat(has_both, design.units)[: len(draws.rows)]
        # The most unfavourable outcome is assumed for a drawn unit without a label.
        worst_gains = np.where(differs[draws.rows], largest_gain, 0.0)
        is_undrawn = differs.copy()
        is_undrawn[draws.rows[is_used]] = False
        # Signed metrics lie between −1 and 1, the others between 0 and 1.
        largest_difference = 2.0 if design.criterion in SIGNED else 1.0
        draw_steps = DrawSteps(
            inverse_probability=draws.inverse_probability[is_used],
            largest_inverse=draws.max_inverse_probability[is_used],
            size=differences.size,
        )
        interval = DifferenceInterval(
            value=value,
            bounds=(-largest_difference, largest_difference),
            gains=np.where(is_labelled, gains, worst_gains)[is_used, None],
            losses=np.where(is_labelled, -gains, worst_gains)[is_used, None],
            spread=draws.inverse_probability_sums(differences, np.array([j]))[is_used],
            draw_steps=draw_steps,
            min_distance=max(design.indifference, MIN_EXPECTED_DISTANCE),
            largest_gain=largest_gain,
            undrawn_total=largest_gain * float(is_undrawn.sum()),
            pairs=math.comb(len(design.answers), 2),
        )
        residuals = np.where(is_differing, gains[is_labelled] - mean_gain, 0.0)
        result = of_variable(value, residuals, weighting)
        return linearised_estimate(
            result, weighting, interval=interval, label=models, null=0.0, design=design.kind
        )

    @property
    def random_labels(self) -> float:
        """Approximate number of random labels that compare leader and closest rival as precisely."""
        differences = self._differences_from(self._state.leader)
        size = differences.size
        differing_shares = differences.counts / size
        spread = self._draws.inverse_probability_sums(differences, np.arange(len(differing_shares)))
        spread = spread[self._labelled[: len(self._draws.rows)]]
        differs = differing_shares > 0
        # N² Σ 1/spread is the information of the labels. n random labels of the N units have as much if
        # n / (N − n) is Σ 1/spread times the number of differing units.
        information = (1.0 / np.maximum(spread[:, differs], NO_DIVISOR)).sum(axis=0)
        odds = information * differing_shares[differs] * size
        return float(np.max(size * odds / (1.0 + odds), initial=0.0))

    @property
    def statement(self) -> str:
        """The conclusion about the leader in one sentence."""
        design = self._design
        state = self._state
        criterion_text = design.criterion + (f" of {design.positive!r}" if design.positive else "")
        level = f"{100 * design.confidence:g}%"
        size = f"{self.sample.population_size:,}"
        if self.decided:
            margin_text = f" by more than {self._indifference_text}"
            if len(state.survivors) == 1:
                margin_text = ""
            claim = f"no model is better{margin_text} ({criterion_text}, {size} units)"
            return f"{self.leader} wins: with {level} confidence {claim}."
        if not self.labels:
            units_text = f"{self.sample.size:,} units to label, out of {size}"
            lead_text = f"{self.leader} leads, according to agreement alone"
            return f"{len(design.answers)} models: {units_text}. {lead_text}."
        n_rivals = len(state.rivals)
        noun = "model" if n_rivals == 1 else "models"
        return (
            f"Not decided: {self.leader} leads, and {n_rivals} {noun} may be better by more than "
            f"{self._indifference_text} ({criterion_text}, {level} confidence, {size} units)."
        )

    @property
    def _indifference_text(self) -> str:
        """The indifference in words, such as `1 point`."""
        points = 100 * self._design.indifference
        if points == 1:
            return "1 point"
        return f"{points:g} points"

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on saved labels, missing labels, and quantities that are not estimated."""
        notes = []
        if self.labels:
            n_random = f"{self.random_labels:,.0f}"
            notes.append(f"for this comparison, the labels are as precise as about {n_random} random labels")
            # The newest round has no labels yet, unless labelling has ended.
            n_earlier = self.sample.size if self.done else sum(self._design.units[:-1])
            n_missing = int(np.sum(~self._labelled[:n_earlier]))
            if n_missing:
                notes.append(f"{n_missing} drawn units without a label count against every claim")
        if self._design.counts_agreements:
            notes.append("bounds of this metric are first-order approximations; those of accuracy are exact")
        else:
            notes.append(self._agreement_note)
        return tuple(notes)

    @property
    def _agreement_note(self) -> str:
        """The note on units that are not labelled, and on the labels for the accuracy of a model."""
        size = self.sample.population_size
        n_agreed = int(np.sum((self._codes == self._codes[:, :1]).all(axis=1)))
        # Labels of a binary outcome with the largest variance, ¼, for a 95 % interval of this half-width.
        n_labels = 0.25 * (1.959964 / _HALF_WIDTH_OF_VALUE) ** 2
        n_labels /= 1 + n_labels / size
        width = width_text(2 * _HALF_WIDTH_OF_VALUE, True)
        return (
            f"all models agree on {n_agreed:,} of {size:,} units, which are not labelled. Only the "
            f"differences between models are estimated. About {n_labels:,.0f} more random labels would also "
            f"give the value of a model, with an interval about {width} wide"
        )

    def to_dict(self) -> JsonDict:
        """Return a JSON-ready dict."""
        design = self._design
        models = self._model_rows()
        notes = list(self.notes)
        for row in models:
            _, high = row["confidence_interval"] or (None, None)
            if row["state"] == "out" and high is not None and high >= 0:
                notes.insert(0, _WIDER_INTERVAL_NOTE)
                break
        return json_dict(
            {
                "statement": self.statement,
                "winner": self.winner,
                "leader": self.leader,
                "done": self.done,
                "survivors": list(self.survivors),
                "labels": self.labels,
                "drawn": self.sample.size,
                "population_size": self.sample.population_size,
                "rounds": len(design.units),
                "random_labels": self.random_labels,
                "criterion": design.criterion,
                "confidence": design.confidence,
                "indifference": design.indifference,
                "models": models,
                "notes": notes,
            }
        )

    def _model_rows(self) -> list[JsonDict]:
        """Return a dict for each model: its state, and its difference from the leader with the interval."""
        differences = {
            row.label["model"]: (row.value, row.limits(self._design.confidence)) for row in self.estimates
        }
        rows = []
        for name in self.models:
            state = "out"
            if name == self.leader:
                state = "leads"
            elif name in self.survivors:
                state = "survives"
            value, limits = differences.get(name, (None, None))
            rows.append({"model": name, "state": state, "difference": value, "confidence_interval": limits})
        return rows

    def _page(self) -> Page:
        """Return the statement, the table of models with the best first, and the notes."""
        result = self.to_dict()

        def difference_entry(row: JsonMapping) -> str | None:
            if row["difference"] is None:
                return None
            return f"{points_text(row['difference'])}{POINTS}"

        def interval_entry(row: JsonMapping) -> str | None:
            if row["confidence_interval"] is None:
                return None
            return points_interval_text(row["confidence_interval"])

        order = {"leads": 0, "survives": 1, "out": 2}
        rows = sorted(result["models"], key=lambda row: (order[row["state"]], -(row["difference"] or 0.0)))
        cells = [[row["model"], row["state"], difference_entry(row), interval_entry(row)] for row in rows]
        table = ReportTable(
            title=f"{result['labels']:,} labels of {result['population_size']:,} units",
            header=("model", "", f"less {self.leader}", level_text(result["confidence"])),
            rows=cells,
        )
        tables = [table] if self.labels else []
        return Page(lines=[result["statement"]], tables=tables, notes=format_notes(result["notes"]))


def default_round_size(drawn: int) -> int:
    """Return the default number of units in the next round, given the number of drawn units."""
    return max(FIRST_ROUND, math.ceil(LATER_ROUND_SHARE * drawn))


def select(
    population: Population,
    answers: Sequence[str],
    confidence: float = 0.95,
    indifference: float = 0.01,
    budget: int | None = None,
    *,
    criterion: str = "accuracy",
    positive: str | None = None,
    additional: int | None = None,
    seed: int = 0,
) -> Selection:
    """Find the best of several models with few labels: label units on which their answers differ.

    Parameters
    ----------
    population : Population
    answers : sequence of str
        The group columns of the models' answers, 2 to 100 of them.
    confidence : float
        Probability that the difference between the best model and the winner is at most the indifference, for
        any number of interim analyses.
    indifference : float
        Largest accepted difference from the best model; 0 accepts only the best model or an equally good one.
    budget : int, optional
        Maximum number of labels; labelling may then end without a decision.
    criterion : str
        `accuracy`: labels are true classes. `preference`: labels are the name of the preferred model's
        column, or `tie`. Or a metric of classes: f1, balanced_accuracy, mcc, ….
    positive : str, optional
        The class of the metric; by default the average over classes.
    additional : int, optional
        Number of units in the first round. Default: 50.
    seed : int
        The same seed and ids draw the same units.

    Returns
    -------
    Selection
        Its `sample` contains the units to label; pass their labels to `update`.

    Raises
    ------
    InputError
        For a column that is not a group, fewer than two or more than 100 models, and options out of range.

    Notes
    -----
    docs/methods/selection.md describes the method and its evaluation.

    Examples
    --------
    >>> import stratal
    >>> answers = {"a": ["x", "y", "x", "x"], "b": ["x", "x", "x", "y"]}
    >>> selection = select(stratal.Population.from_arrays(groups=answers), answers=["a", "b"], seed=1)
    >>> sorted(selection.sample.ids.tolist()), selection.done
    ([1, 3], False)
    >>> selection.update({1: "y", 3: "x"}).winner
    'a'
    """
    population = require_population(population, "select")
    names = _checked_names(population, answers)
    if not 0.5 < confidence < 1:
        raise InputError("confidence is out of range", given=confidence, allowed="above 0.5, below 1")
    if not 0 <= indifference < 1:
        raise InputError("indifference is out of range", given=indifference, allowed="at least 0, below 1")
    if budget is not None:
        check_budget(budget, population.size)
    units = units_and_answers(population, names, seed)
    _check_criterion(criterion, names, units, has_tags=population.tags != NO_SETS)
    if positive is not None:
        _check_positive_class(positive, criterion, names, units)
    codes = units.codes
    leader = int(np.argmax(estimate_accuracies(codes, UNITS_FOR_ACCURACIES)[0]))
    models = tuple(range(len(names)))
    # Largest possible difference from the leader, times N.
    max_differences = units.differences(leader, counts_agreements=False).counts
    if criterion not in ("accuracy", PREFERENCE):
        # One different answer may change a metric of classes by up to 1.
        max_differences = len(codes) * (max_differences > 0)
    rivals = tuple(j for j in models if max_differences[j] > indifference * len(codes))
    state = SelectionState(leader, models, rivals)
    empty_design = Disagreements(
        answers=names,
        units=(),
        leaders=(),
        survivors=(),
        rivals=(),
        criterion=criterion,
        positive=positive,
        confidence=float(confidence),
        indifference=float(indifference),
        budget=budget,
    )
    # Without rivals, no unit needs a label.
    n_drawable = 0
    if rivals:
        n_drawable = int(np.sum(empty_design.sizes(codes, *state) > 0))
    if additional is None:
        round_size = FIRST_ROUND
    else:
        round_size = whole_number("additional", additional)
    design = empty_design.with_round(min(round_size, n_drawable, budget or n_drawable), *state)
    return Selection(design.draw(population, seed))


def _checked_names(population: Population, answers: str | Sequence[str]) -> tuple[str, ...]:
    """Return the columns of the models' answers; raise an error for an unknown column or their number."""
    names = tuple(dict.fromkeys([answers] if isinstance(answers, str) else answers))
    for name in names:
        population.require_group(name)
    if not 2 <= len(names) <= MAX_MODELS:
        raise InputError(
            "too few or too many models to select from", given=len(names), allowed=f"2 to {MAX_MODELS}"
        )
    return names


def _check_criterion(criterion: str, names: Sequence[str], units: ModelAnswers, *, has_tags: bool) -> None:
    """Raise an error for an unknown criterion, or one that the answers do not allow."""
    criteria = [PREFERENCE, *(name for name in METRICS if name not in _NOT_CRITERIA)]
    if criterion not in criteria and not is_f_measure(criterion):
        raise InputError(
            "no such criterion", given=repr(criterion), allowed=suggest_names(criterion, criteria)
        )
    if criterion == PREFERENCE and TIE in names:
        raise InputError(f"a column called {TIE!r} cannot be preferred: it means a tie", action="Rename it.")
    answers_are_sets = has_tags and is_set(str(units.candidates.drawn.groups[names[0]][0]))
    if answers_are_sets and criterion not in ("accuracy", PREFERENCE):
        raise InputError(
            "models that answer with sets of tags can only be selected by exact match",
            given=f"criterion {criterion!r}",
            allowed=f"accuracy, {PREFERENCE}",
        )


def _check_positive_class(positive: str, criterion: str, names: Sequence[str], units: ModelAnswers) -> None:
    """Raise an error for a class that the criterion does not use, or that no model answers."""
    if criterion not in CLASS_METRICS and not is_f_measure(criterion):
        raise InputError(
            f"criterion {criterion!r} does not refer to a single class", action="Leave positive= out."
        )
    classes = {*np.concatenate([units.candidates.drawn.groups[name] for name in names]).tolist()}
    if positive not in classes:
        allowed = suggest_names(positive, sorted(classes))
        raise InputError("no model answers with this class", given=repr(positive), allowed=allowed)


def expected_labels(
    population: Population,
    answers: Sequence[str],
    confidence: float = 0.95,
    indifference: float = 0.01,
    *,
    criterion: str = "accuracy",
    seed: int = 0,
) -> JsonDict:
    """Return how many labels `select` is expected to need.

    Returns
    -------
    dict
        `optimistic`: the models differ as much as their agreement suggests, but at least by four
        indifferences, and all rivals but the hardest are eliminated at once. `conservative`: all models are
        as good as the leader. `most`: the units on which the models disagree, or all units for a metric of
        classes.
    """
    first = select(population, answers, confidence, indifference, criterion=criterion, seed=seed)
    codes = first._codes
    leader = first._state.leader
    accuracies = estimate_accuracies(codes, UNITS_FOR_ACCURACIES)[0]
    counts_agreements = criterion not in ("accuracy", PREFERENCE)
    gaps = np.maximum(accuracies[leader] - accuracies, _OPTIMISTIC_LEAD * indifference)
    optimistic = labels_to_decide(
        codes, leader, gaps, confidence, indifference, counts_agreements=counts_agreements, hardest_only=True
    )
    no_gaps = np.zeros(len(gaps))
    conservative = labels_to_decide(
        codes, leader, no_gaps, confidence, indifference, counts_agreements=counts_agreements
    )
    n_disagreements = len(codes)
    if not counts_agreements:
        n_disagreements = int(np.sum((codes != codes[:, :1]).any(axis=1)))
    return {
        "models": len(set(answers)),
        "optimistic": math.ceil(optimistic),
        "conservative": math.ceil(conservative),
        "most": n_disagreements,
        "population_size": len(codes),
        "likely_leader": first.leader,
    }
