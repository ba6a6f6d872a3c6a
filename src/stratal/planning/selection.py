"""Which of several models is best: labels where they disagree, until bounds say that one is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np

from stratal.arrays import AnyArray, BoolArray, FloatArray, IntArray
from stratal.designs.disagreements import Disagreements, PoissonDraw, sizes_of, units_and_answers
from stratal.designs.extending import extended, population_of
from stratal.designs.poisson import PoissonWeighting
from stratal.designs.sample import Sample
from stratal.errors import InputError, LabelError, names_mistyped, near_names
from stratal.estimation.estimate import Estimate, Estimates, linearised_estimate, undefined_estimate
from stratal.estimation.linearised import of_variable
from stratal.estimation.resolve import class_column, number_column, refuse_mismatched_models
from stratal.intervals.betting import (
    DOUBLINGS,
    SMALLEST_STEP,
    DifferenceInterval,
    DrawSteps,
    difference_capital,
)
from stratal.metrics.confusion import CLASS_METRICS, METRICS, SIGNED, Shares, is_f_measure, metric_function
from stratal.population.population import Population, require_population
from stratal.population.summary import Candidates
from stratal.proxy.agreement import estimate_accuracies
from stratal.question.tags import NO_SETS, is_set
from stratal.report.text import Page, PageDisplay, ReportTable, json_dict, noted
from stratal.strata.allocation import check_budget, whole_number

# Pairs and their bounds grow with the square; beyond this nothing was measured.
MOST_MODELS = 100

# Units of the first round, and of each later one as a share of those drawn: a round is looked at when it is
# whole, and labels after the decision are wasted, an eighth on average.
FIRST_ROUND = 50
LATER_ROUNDS = 0.25

PREFERENCE = "preference"
# The label of a column of preferences that names no model.
TIE = "tie"

# Metrics of which more is not better.
_NOT_BETTER = ("prevalence", "predicted_prevalence", "false_discovery_rate")

# Units from which the models' accuracies are guessed before there is a label.
_LIKELY_FROM = 1_024

# Indifferences by which an optimist expects the winner to be ahead.
_OPTIMISTIC = 4.0

# Half-width for which the price of the winner's own value is named.
_PROBE = 0.03

_WIDER = (
    "a model was eliminated by a bound against the model that led at the time; its interval, against the "
    "current leader and for all pairs together, is wider and may contain 0"
)


# Each unit's part of each model's criterion (n, k), of which that is the mean and NaN without a label; and
# the largest difference of two of them on one unit.
Outcomes = tuple[FloatArray, float]


def outcomes_of(
    criterion: str, which: int | None, codes: IntArray, rows: IntArray, truth: IntArray, weights: FloatArray
) -> Outcomes | None:
    """Return the outcomes of drawn units; None where the labels do not define the criterion yet.

    A share of right answers is a mean as it stands. A metric of classes is linearised where the labels put
    it: its slopes (k, K, K) say what a unit of each true class and answer adds.

    Parameters
    ----------
    criterion : str
    which : int, optional
        The class of a metric; the average over classes unless given.
    codes : int (N, k)
        All answers.
    rows, truth : int (n,)
        The units drawn, and their true classes, −1 without a label.
    weights : float (n,)
    """
    answers = codes[rows]
    is_labelled = truth >= 0
    if criterion in ("accuracy", PREFERENCE):
        return np.where(is_labelled[:, None], answers == truth[:, None], np.nan), 1.0
    if not np.any(is_labelled):
        return None
    levels = int(max(codes.max(), truth.max())) + 1
    macro = which is None and criterion not in ("accuracy", "balanced_accuracy", *SIGNED)
    function = metric_function(criterion, "macro" if macro else which, levels)
    share = weights[is_labelled] / weights[is_labelled].sum()
    tables = []
    for j in range(codes.shape[1]):
        labelled_shares = Shares.of(truth[is_labelled], answers[is_labelled, j], share, levels)
        # How often each class is answered is counted, not estimated.
        counted = np.bincount(codes[:, j], minlength=levels) / len(codes)
        point = replace(labelled_shares, predicted=counted, hits=np.minimum(labelled_shares.hits, counted))
        value, slopes, _ = function(point)
        if not np.isfinite(value):
            return None
        level = slopes.hits @ point.hits + slopes.predicted @ counted + slopes.true @ point.true
        table = slopes.true[:, None] + slopes.predicted + np.diag(slopes.hits) + (value - float(level))
        tables.append(table)
    every = np.stack(tables)  # (k, K, K): true, answered
    reach = float((every.max(axis=(0, 2)) - every.min(axis=(0, 2))).max())
    values = every[np.arange(codes.shape[1]), truth[:, None], answers]
    return np.where(is_labelled[:, None], values, np.nan), reach


class SelectionState(NamedTuple):
    """How models stand after a look at the labels.

    Parameters
    ----------
    leader : int
    survivors, rivals : tuple of int
        Models that can still be the best, and those that may be better than the leader by more than the
        indifference: when there is none, the leader is the winner.
    """

    leader: int
    survivors: tuple[int, ...]
    rivals: tuple[int, ...]


def update_state(
    clocks: PoissonDraw,
    codes: IntArray,
    outcomes: Outcomes,
    standing: SelectionState,
    design: Disagreements,
    distinct: int,
    chances: FloatArray,
) -> SelectionState:
    """Return how models stand after another look at answers (N, k) with `distinct` different columns.

    `chances` (N, k) are those that answers are right, as agreement suggests.

    A model is out once the bounds say that it is worse than the leader. Error is shared among the models from
    which the best has to be told, copies counted once: whichever it is, it is out with probability
    1 − confidence at most, and by the same bounds no winner is further below it than the indifference.
    """
    (values, reach), alive = outcomes, np.array(standing.survivors)
    is_labelled = ~np.isnan(values[:, 0])
    # Which model leads decides what is compared, never what is true, so that agreement may help to guess it.
    corrections = (values - chances[clocks.rows])[is_labelled][:, alive] / clocks.probability[
        is_labelled, None
    ]
    scores = chances[:, alive].sum(axis=0) + corrections.sum(axis=0)
    if np.any(is_labelled):
        leader = int(alive[np.argmax(scores)])
    else:
        leader = standing.leader
    others = alive[alive != leader]
    differs = codes[:, others] != codes[:, [leader]]
    counts = differs | design.everywhere
    gain = values[:, others] - values[:, [leader]]
    gain = np.where(is_labelled[:, None], gain, counts[clocks.rows] * reach)
    turns = DrawSteps(inverse=clocks.inverse, largest=clocks.largest, size=len(codes))
    shared: Any = {
        "step": max(design.indifference, SMALLEST_STEP),
        "reach": reach,
        "left": reach * counts[~clocks.drawn].sum(axis=0),
    }
    spread = clocks.spread(counts)
    limit = math.log(max(distinct - 1, 1) / (1.0 - design.confidence))
    settled = difference_capital(gain, spread, turns, design.indifference, **shared) >= limit
    certain = gain.sum(axis=0) + shared["left"] <= design.indifference * len(codes)
    settled |= certain  # at an indifference of 0 copies are never refuted, but no better
    out = settled & (difference_capital(gain, spread, turns, 0.0, **shared) >= limit)
    survivors = tuple(sorted([leader, *others[~out].tolist()]))
    return SelectionState(leader, survivors, tuple(others[~settled].tolist()))


def labels_to_decide(
    codes: IntArray,
    leader: int,
    gaps: FloatArray,
    confidence: float,
    indifference: float,
    *,
    everywhere: bool,
    alone: bool = False,
) -> float:
    """Return about how many labels decide, if the leader is ahead of each model by gaps (k,).

    The log capital grows by half the squared distance over a turn's variance, and turns become more precise
    as units are labelled out. `alone` takes the hardest rival as if the others were out at once.
    """
    every = np.arange(codes.shape[1])
    others = every[every != leader]
    counts = (codes[:, others] != codes[:, [leader]]) | everywhere
    sizes = sizes_of(codes, leader, every, others, everywhere=everywhere)
    inverse = np.divide(1.0, sizes, out=np.zeros(len(sizes)), where=sizes > 0)
    units: Any = np.maximum(counts.sum(axis=0) if alone else np.sum(sizes > 0), 1)
    variance = (units**2 if alone else sizes.sum() * (inverse @ counts)) / len(codes) ** 2
    needed = math.log(len(others) / (1.0 - confidence)) + math.log(DOUBLINGS)
    distance = np.maximum(gaps[others], 0.0) + max(indifference, SMALLEST_STEP)
    labels_needed = units * -np.expm1(-2.0 * needed * variance / distance**2 / units)
    return float(np.max(labels_needed[counts.any(axis=0)], initial=0.0))


class Selection(PageDisplay):
    """Models of which the best is sought, and the units to label for it.

    Made by `stratal.select`, or from a sample that it drew by `resume`; `update` returns the next one.

    Parameters
    ----------
    sample : Sample
        All rounds; the units of the last one wait for labels.
    truth : (n,)
        The label of each drawn unit as text, None where there is none.
    verdicts : float (n, k)
        Whether each model's answer to each drawn unit is right (1) or wrong (0); NaN without
        verdicts.
    units : optional
        All units and their answers as numbers, where they are known already.

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
        units: Any = None,
        verdicts: FloatArray | None = None,
    ) -> None:
        design = sample.design
        population = sample.population
        if not isinstance(design, Disagreements) or population is None:
            action = "Begin with stratal.select, or stratal select FILE."
            raise InputError("this sample was not drawn to select a model", action=action)
        self.sample = sample
        self._design = design
        if truth is None:
            self.truth = np.full(sample.size, None, dtype=object)
        else:
            self.truth = truth
        no_verdict = np.full((sample.size, len(design.answers)), np.nan)
        self.verdicts: FloatArray = no_verdict if verdicts is None else verdicts
        self._units = units or units_and_answers(population, design.answers, sample.seed)
        candidates: Candidates = self._units[0]
        self._codes: IntArray = self._units[1]
        # The units of a round that waits for labels say nothing yet, and count against nothing.
        waiting = len(design.units) > 1 and not self._newest_labelled()
        every = design.replay(self._codes, candidates.uniform)
        self._drawn = every.drawn
        self._drawn_rows = every.rows
        if waiting:
            self._clocks = design.replay(self._codes, candidates.uniform, -1)
        else:
            self._clocks = every
        self._answers = candidates.drawn.groups
        self._standing = SelectionState(design.leaders[-1], design.survivors[-1], design.rivals[-1])
        self._found = self._outcomes()
        if self._found is not None and self.labels:
            # Fewer survivors may be led by another model, from which more can be told.
            distinct = len({column.tobytes() for column in self._codes.T.copy()})
            chances = np.zeros(self._codes.shape)
            if not design.everywhere:
                chances = estimate_accuracies(self._codes, _LIKELY_FROM)[1]
            fixed_arguments = (self._clocks, self._codes, self._found)
            before = None
            while before != self._standing:
                before = self._standing
                self._standing = update_state(*fixed_arguments, before, design, distinct, chances)

    @classmethod
    def resume(cls, sample: Sample, population: Population | None = None) -> Self:
        """Return the selection of a sample that was written to a file, without its labels.

        Raises
        ------
        InputError
            For a sample of another design, and a population that is not the sample's.
        """
        return cls(replace(sample, population=population_of(sample, population)))

    @names_mistyped
    def update(self, labels: Any, additional: int | None = None) -> Self:
        """Return the selection with more labels, and with another round unless it is done.

        Parameters
        ----------
        labels : see `stratal.estimate`, or mapping of model to these
            True classes by id, those of earlier rounds again or not. With criterion "preference" the name of
            the preferred model's column, or "tie". A mapping whose keys are the models holds for each whether
            its own answers are right: 1 or 0, true or false, pass or fail. A drawn unit without a label
            counts against each claim.
        additional : int, optional
            Units of the next round; a quarter of those drawn unless given.

        Raises
        ------
        LabelError
            For ids that are not of this sample, labels that can never be an answer, a model whose answers
            match almost no label, and different verdicts on equal answers.
        """
        sample = self.sample
        truth = self.truth
        verdicts = self.verdicts
        if self._are_verdicts(labels):
            verdicts = self._with_verdicts(labels)
            sample = replace(sample, question=sample.question.refine(predicted=False))
        elif sample.question.compares is False:
            action = "Give a column of right and wrong for each model, as in the rounds before."
            raise LabelError("the labels of this selection are verdicts on each model", action=action)
        else:
            truth = self._with_truth(labels)
        updated = type(self)(sample, truth, self._units, verdicts)
        usual = usual_round(sample.size)
        if additional is None:
            round_size = usual
        else:
            round_size = whole_number("additional", additional)
        count = 0 if updated.done else min(round_size, updated._left())
        if count < 1:
            return updated
        larger = self._design.with_round(count, *updated._standing)
        sample = extended(sample, larger, population_of(sample, None))
        new = sample.size - len(truth)
        truth = np.concatenate([truth, np.full(new, None, dtype=object)])
        verdicts = np.concatenate([verdicts, np.full((new, verdicts.shape[1]), np.nan)])
        return type(self)(sample, truth, self._units, verdicts)

    def _are_verdicts(self, labels: Any) -> bool:
        """Return whether labels are columns of right and wrong, one for each model."""
        names = set(self._design.answers)
        if not isinstance(labels, Mapping) or not names & {*labels}:
            return False
        missing = sorted(names - {*labels})
        if missing:
            raise LabelError(
                f"no column of right and wrong is given for {', '.join(map(repr, missing))}",
                allowed=f"one for each of {', '.join(self._design.answers)}",
                action="Give the verdicts on every model's answers.",
            )
        return True

    def _with_truth(self, labels: Any) -> AnyArray:
        """Return the true class of each drawn unit (n,), with these labels."""
        design = self._design
        preferred = design.criterion == PREFERENCE
        columns = {name: self.sample.groups[name] for name in design.answers}
        names = np.array([*design.answers, TIE], dtype=object)
        if preferred:
            allowed = names
        else:
            allowed = np.concatenate([*columns.values()])
        classes = class_column(self.sample, labels, "labels", allowed)
        for label in {*classes[classes != None].tolist()} - {*names} if preferred else ():  # noqa: E711
            raise InputError(
                "a preference is the name of a model's column", given=repr(label), allowed=", ".join(names)
            )
        truth = np.where(classes == None, self.truth, classes)  # noqa: E711
        rows = np.flatnonzero(truth != None)  # noqa: E711
        if not preferred:
            drawn_answers = {name: column[rows] for name, column in columns.items()}
            everything = {name: self._answers[name] for name in design.answers}
            refuse_mismatched_models(truth[rows], drawn_answers, everything)
        return np.asarray(truth)

    def _with_verdicts(self, labels: Mapping[str, Any]) -> FloatArray:
        """Return whether each model is right on each drawn unit (n, k), with these verdicts.

        A verdict holds for all models that give the same answer to the unit. Units on which the verdict of
        some model is missing have none.
        """
        design = self._design
        sample = self.sample
        if design.criterion != "accuracy":
            action = "Give one column of labels, or select by accuracy."
            raise InputError(
                f"verdicts on each model's answers do not define {design.criterion!r}", action=action
            )
        matrix = np.column_stack([number_column(sample, labels[name], name) for name in design.answers])
        if np.any(~np.isnan(matrix) & (matrix != 0) & (matrix != 1)):
            row, column = np.argwhere(~np.isnan(matrix) & (matrix != 0) & (matrix != 1))[0]
            problem = f"the verdict on {design.answers[column]!r} for id {str(sample.ids[row])!r}"
            raise LabelError(problem, given=f"{matrix[row, column]:g}", allowed="right (1) or wrong (0)")
        codes = self._codes[self._drawn_rows]
        verdicts = self.verdicts.copy()
        for row in np.flatnonzero(~np.isnan(matrix).all(axis=1)).tolist():
            of_answer: dict[int, float] = {}
            for column in np.flatnonzero(~np.isnan(matrix[row])).tolist():
                verdict = of_answer.setdefault(int(codes[row, column]), float(matrix[row, column]))
                if verdict != matrix[row, column]:
                    raise LabelError(
                        f"id {str(sample.ids[row])!r} has two verdicts on one answer",
                        given=repr(str(sample.groups[design.answers[column]][row])),
                        action="Equal answers are right or wrong together; correct one of the verdicts.",
                    )
            row_verdicts = [of_answer.get(int(code), np.nan) for code in codes[row]]
            if np.all(np.isfinite(row_verdicts)):
                verdicts[row] = row_verdicts
            else:
                verdicts[row] = np.nan
        return verdicts

    @property
    def _labelled(self) -> BoolArray:
        """Which drawn units (n,) have a label or verdicts."""
        return np.asarray((self.truth != None) | ~np.isnan(self.verdicts[:, 0]))  # noqa: E711

    def _outcomes(self) -> Outcomes | None:
        design = self._design
        rows = self._clocks.rows
        clocks = self._clocks
        labels = self.truth[: len(rows)].tolist()
        weights = 1.0 / clocks.probability
        if design.criterion == PREFERENCE:
            place = {name: at for at, name in enumerate(design.answers)}
            pairs = zip(rows, labels, strict=True)
            preferred_codes = [
                self._codes[row, place[label]] if label in place else -1 for row, label in pairs
            ]
            outcomes = outcomes_of(
                "accuracy", None, self._codes, rows, np.array(preferred_codes, np.int64), weights
            )
            tied = np.array([label == TIE for label in labels], dtype=bool)
            return outcomes and (np.where(tied[:, None], 0.0, outcomes[0]), outcomes[1])
        number = {
            text: int(code)
            for name, codes in zip(design.answers, self._codes.T, strict=True)
            for text, code in zip(self._answers[name].tolist(), codes.tolist(), strict=True)
        }
        truth = [-1 if text in (None, TIE) else number.setdefault(text, len(number)) for text in labels]
        if design.positive is None:
            which = None
        else:
            which = number.get(design.positive)
        outcomes = outcomes_of(design.criterion, which, self._codes, rows, np.array(truth, np.int64), weights)
        verdicts = self.verdicts[: len(rows)]
        judged = ~np.isnan(verdicts[:, :1])
        if outcomes is None:
            return outcomes
        return (np.where(judged, verdicts, outcomes[0]), outcomes[1])

    @property
    def models(self) -> tuple[str, ...]:
        """The columns of the models' answers (k,)."""
        return self._design.answers

    @property
    def labels(self) -> int:
        """Units with a label."""
        return int(self._labelled.sum())

    @property
    def decided(self) -> bool:
        """Whether no surviving model can be better than the leader by more than the indifference."""
        return not self._standing.rivals

    @property
    def done(self) -> bool:
        """Whether nothing more is to be labelled: the winner is known, or budget or units are used up."""
        return self.decided or (self._newest_labelled() and self._left() == 0)

    def _newest_labelled(self) -> bool:
        """Return whether a unit of the newest round has a label."""
        newest = self.sample.round == self.sample.round.max(initial=1)
        return bool(self._labelled[newest].any())

    def _left(self) -> int:
        """Return how many units another round could have."""
        design = self._design
        open_units = int(np.sum(design.sizes(self._codes, *self._standing)[~self._drawn] > 0))
        if design.budget is None:
            return open_units
        return min(open_units, design.budget - self.sample.size)

    @property
    def leader(self) -> str:
        """The model that is ahead; before any label by how far the answers agree."""
        return self._design.answers[self._standing.leader]

    @property
    def winner(self) -> str | None:
        """The model that is known to be the best, or as good as the best up to the indifference."""
        return self.leader if self.decided else None

    @property
    def survivors(self) -> tuple[str, ...]:
        """The models that can still be the best."""
        return tuple(self._design.answers[j] for j in self._standing.survivors)

    @property
    def estimates(self) -> Estimates:
        """Each model's difference from the leader, with intervals for all pairs together and at every look.

        A model's own value is not estimated, since units on which all agree are never labelled (`notes`).
        """
        outcomes = self._found
        leader = self._standing.leader
        rows = [
            self._difference(outcomes, j, leader) for j in range(len(self._design.answers)) if j != leader
        ]
        return Estimates.from_rows(self.sample, rows, "comparisons", remarks=self.notes[-1:])

    def _difference(self, outcomes: Outcomes | None, j: int, leader: int) -> Estimate:
        clocks = self._clocks
        design = self._design
        codes = self._codes
        label = {"model": design.answers[j], "other": design.answers[leader]}
        counts = (codes[:, [j]] != codes[:, [leader]]) | design.everywhere
        is_labelled = self._labelled[: len(clocks.rows)]
        weighting = PoissonWeighting(
            inclusion_probability=clocks.probability[is_labelled], size=len(codes), fixed_size=True
        )
        if outcomes is None or not np.any(is_labelled):
            return replace(undefined_estimate(weighting, 0, None), label=label, null=0.0)
        values, reach = outcomes
        gain = values[:, j] - values[:, leader]
        differing = counts[clocks.rows[is_labelled], 0]
        weights = differing / clocks.probability[is_labelled]
        mean = float(weights @ gain[is_labelled]) / max(float(weights.sum()), 1e-300)
        value = mean * float(counts.mean())
        # A model that is out has no more turns: units on which it alone differs are no longer drawn.
        both = [j in group and leader in group for group in design.survivors]
        turn = np.repeat(both, design.units)[: len(clocks.rows)]
        missing = np.where(counts[clocks.rows, 0], reach, 0.0)
        ahead, behind = (np.where(is_labelled, way * gain, missing)[turn, None] for way in (1.0, -1.0))
        unseen = counts[:, 0].copy()
        unseen[clocks.rows[turn]] = False
        largest = 2.0 if design.criterion in SIGNED else 1.0
        interval = DifferenceInterval(
            value=value,
            bounds=(-largest, largest),
            ahead=ahead,
            behind=behind,
            spread=clocks.spread(counts)[turn],
            turns=DrawSteps(inverse=clocks.inverse[turn], largest=clocks.largest[turn], size=len(codes)),
            step=max(design.indifference, SMALLEST_STEP),
            reach=reach,
            left=reach * float(unseen.sum()),
            pairs=math.comb(len(design.answers), 2),
        )
        result = of_variable(value, np.where(differing, gain[is_labelled] - mean, 0.0), weighting)
        return linearised_estimate(
            result, weighting, interval=interval, label=label, null=0.0, design=design.kind
        )

    @property
    def random_labels(self) -> float:
        """About how many random labels tell the leader from its hardest rival as well as these do."""
        counts = (self._codes != self._codes[:, [self._standing.leader]]) | self._design.everywhere
        share = counts.mean(axis=0)
        size = len(counts)
        spread = self._clocks.spread(counts)[self._labelled[: len(self._clocks.rows)]]
        others = share > 0
        observed = (1.0 / np.maximum(spread[:, others], 1e-300)).sum(axis=0) * share[others] * size
        return float(np.max(size * observed / (1.0 + observed), initial=0.0))

    @property
    def statement(self) -> str:
        """What can be said of the leader, in words."""
        design = self._design
        standing = self._standing
        of = design.criterion + (f" of {design.positive!r}" if design.positive else "")
        level = f"{100 * design.confidence:g} %"
        size = f"{self.sample.population_size:,}"
        if self.decided:
            is_single = len(standing.survivors) == 1
            if is_single:
                better = ""
            else:
                better = f" by more than {design.indifference:g}"
            claim = f"no model is better{better} ({of}, {size} units)"
            return f"{self.leader} wins: with {level} confidence {claim}."
        rivals = len(standing.rivals)
        if not self.labels:
            new = f"{self.sample.size:,} units to label, out of {size}"
            return f"{len(design.answers)} models: {new}. {self.leader} leads by agreement alone."
        be = "model may" if rivals == 1 else "models may"
        return (
            f"Not decided: {self.leader} leads, and {rivals} {be} be better by more than "
            f"{design.indifference:g} ({of}, {level} confidence, {size} units)."
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What was saved, what is not estimated, and what was assumed."""
        size = self.sample.population_size
        labels = self.labels
        agreed = int(np.sum((self._codes == self._codes[:, :1]).all(axis=1)))
        probe_labels = 0.25 * (1.959964 / _PROBE) ** 2
        rounded = f"{self.random_labels:,.0f}"
        handed_out = size if self.done else sum(self._design.units[:-1])  # a new round has no labels yet
        if labels:
            missing = int(np.sum(~self._labelled[:handed_out]))
        else:
            missing = 0
        return (
            *([f"{labels:,} labels are worth about {rounded} random ones"] if labels else []),
            *([f"{missing} drawn units without a label count against every claim"] if missing else []),
            "bounds of this metric are of first order, those of accuracy exact"
            if self._design.everywhere
            else f"all models agree on {agreed:,} of {size:,} units, which are not labelled: differences are "
            f"estimated, no model's own value; about {probe_labels / (1 + probe_labels / size):,.0f} random "
            f"labels more would give one to ± {_PROBE:g}",
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dict."""
        design = self._design
        rows = {row.label["model"]: (row.value, row.limits(design.confidence)) for row in self.estimates}
        state = {True: "survives", False: "out"}
        ends = [rows[name][1] or [None] for name in rows if name not in self.survivors]
        crossing = any(end[-1] is not None and end[-1] >= 0 for end in ends)
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
                "models": [
                    {
                        "model": name,
                        "state": "leads" if name == self.leader else state[name in self.survivors],
                        "difference": rows[name][0] if name in rows else None,
                        "confidence_interval": rows[name][1] if name in rows else None,
                    }
                    for name in design.answers
                ],
                "notes": [*([_WIDER] if crossing else []), *self.notes],
            }
        )

    def _page(self) -> Page:
        result = self.to_dict()
        order = {"leads": 0, "survives": 1, "out": 2}
        rows = sorted(result["models"], key=lambda row: (order[row["state"]], -(row["difference"] or 0.0)))
        table = ReportTable(
            title=f"{result['labels']:,} labels of {result['population_size']:,} units",
            header=("model", "", f"less {self.leader}", f"{100 * result['confidence']:g} % interval"),
            rows=[list(row.values()) for row in rows],
        )
        tables = [table] if self.labels else []
        return Page(lines=[result["statement"]], tables=tables, notes=noted(result["notes"]))


def usual_round(drawn: int) -> int:
    """Return the units of a round after so many."""
    return max(FIRST_ROUND, math.ceil(LATER_ROUNDS * drawn))


@names_mistyped
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
    """Find the best of several models with few labels: only where their answers differ, until it is known.

    Parameters
    ----------
    population : Population
    answers : sequence of str
        The group columns of the models' answers, 2 to 100 of them.
    confidence : float
        Probability with which the winner is not further below the best than the indifference, however often
        labels are looked at.
    indifference : float
        How much worse than the best the winner may be; 0 asks for the best itself, or its equal.
    budget : int, optional
        Labels at most; labelling then may end undecided.
    criterion : str
        `accuracy`: labels are true classes. `preference`: labels are the column of the preferred model, or
        `tie`. Or a metric of classes: f1, balanced_accuracy, mcc, ….
    positive : str, optional
        The class of the metric; the average over classes unless given.
    additional : int, optional
        Units of the first round; 50 unless given.
    seed : int
        The same seed and ids draw the same units.

    Returns
    -------
    Selection
        Its `sample` holds the units to label; give their labels to `update`.

    Raises
    ------
    InputError
        For a column that is not a group, fewer than two or more than 100 models, and options out of range.

    Notes
    -----
    docs/methods/selection.md has the method and its evidence.

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
    names = tuple(dict.fromkeys([answers] if isinstance(answers, str) else answers))
    for name in names:
        population.require_group(name)
    if not 2 <= len(names) <= MOST_MODELS:
        raise InputError(
            "too few or too many models to select from", given=len(names), allowed=f"2 to {MOST_MODELS}"
        )
    if not 0.5 < confidence < 1:
        raise InputError("confidence is out of range", given=confidence, allowed="above 0.5, below 1")
    if not 0 <= indifference < 1:
        raise InputError("indifference is out of range", given=indifference, allowed="0 to 1, without 1")
    criteria = [PREFERENCE, *(name for name in METRICS if name not in _NOT_BETTER)]
    if criterion not in criteria and not is_f_measure(criterion):
        raise InputError("no such criterion", given=repr(criterion), allowed=near_names(criterion, criteria))
    if criterion == PREFERENCE and TIE in names:
        raise InputError(f"a column called {TIE!r} cannot be preferred: it means a tie", action="Rename it.")
    candidates, codes = units_and_answers(population, names, seed)
    of_sets = population.tags != NO_SETS and is_set(str(candidates.drawn.groups[names[0]][0]))
    if of_sets and criterion not in ("accuracy", PREFERENCE):
        raise InputError(
            "models that answer with sets of tags are selected by exact match",
            given=f"criterion {criterion!r}",
            allowed=f"accuracy, {PREFERENCE}",
        )
    if budget is not None:
        check_budget(budget, population.size)
    if positive is not None:
        classes = {*np.concatenate([candidates.drawn.groups[name] for name in names]).tolist()}
        if criterion not in CLASS_METRICS and not is_f_measure(criterion):
            raise InputError(f"criterion {criterion!r} is not of one class", action="Leave positive= out.")
        if positive not in classes:
            allowed = near_names(positive, sorted(classes))
            raise InputError("no model answers with this class", given=repr(positive), allowed=allowed)
    leader = int(np.argmax(estimate_accuracies(codes, _LIKELY_FROM)[0]))
    every = tuple(range(len(names)))
    apart = (codes != codes[:, [leader]]).sum(axis=0)
    if criterion not in ("accuracy", PREFERENCE):
        apart = len(codes) * (apart > 0)
    rivals = tuple(j for j in every if apart[j] > indifference * len(codes))
    standing = SelectionState(leader, every, rivals)
    plain = Disagreements(
        answers=names, units=(), leaders=(), survivors=(), rivals=(), criterion=criterion, positive=positive,
        confidence=float(confidence), indifference=float(indifference), budget=budget,
    )  # fmt: skip
    if not rivals:
        open_units = 0
    else:
        open_units = int(np.sum(plain.sizes(codes, *standing) > 0))
    if additional is None:
        first_round = FIRST_ROUND
    else:
        first_round = whole_number("additional", additional)
    design = plain.with_round(min(first_round, open_units, budget or open_units), *standing)
    return Selection(design.draw(population, seed))


def expected_labels(
    population: Population,
    answers: Sequence[str],
    confidence: float = 0.95,
    indifference: float = 0.01,
    *,
    criterion: str = "accuracy",
    seed: int = 0,
) -> dict[str, Any]:
    """Return how many labels `select` is expected to need, before there is any.

    Returns
    -------
    dict
        `optimistic`: the models are as far apart as their agreement suggests, by four indifferences at
        least, and all but the hardest are out at once. `conservative`: all are as good as the leader. `most`:
        the units on which they disagree.
    """
    first = select(population, answers, confidence, indifference, criterion=criterion, seed=seed)
    codes = first._codes
    leader = first._standing.leader
    agreed = estimate_accuracies(codes, _LIKELY_FROM)[0]
    everywhere = criterion not in ("accuracy", PREFERENCE)
    ahead = np.maximum(agreed[leader] - agreed, _OPTIMISTIC * indifference)
    thresholds: Any = (confidence, indifference)
    optimistic = labels_to_decide(codes, leader, ahead, *thresholds, everywhere=everywhere, alone=True)
    conservative = labels_to_decide(codes, leader, 0.0 * agreed, *thresholds, everywhere=everywhere)
    if everywhere:
        disagreements = len(codes)
    else:
        disagreements = int(np.sum((codes != codes[:, :1]).any(axis=1)))
    return {
        "models": len(set(answers)),
        "optimistic": math.ceil(optimistic),
        "conservative": math.ceil(conservative),
        "most": disagreements,
        "population_size": len(codes),
        "likely_leader": first.leader,
    }
