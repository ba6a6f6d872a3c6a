"""`PreviousWaves`: strata and an allocation that follow from labels of earlier waves, whose items are others.

The outcome of earlier waves is regressed on the score and on further columns, such as groups. The plan then
takes half as many strata of the score, and divides each into halves by the expected outcome. Labels move to
where outcomes are expected to vary, but each stratum keeps nearly what a plan without earlier waves gives it:
of n_h labels of that plan, each half gets at least n_h N_half / (1.1025 N_h). The variance is then at most
1.1025 times that of these strata without earlier waves, whatever the earlier labels show.

A recalibration of the score alone divides the items as the score does, and saves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from stratal.arrays import AnyArray, FloatArray, unit_scale
from stratal.designs.labelling_files import find_table_to_label, sample_file
from stratal.designs.sample import Sample
from stratal.errors import InputError
from stratal.estimation.entry_points import estimate
from stratal.labels.accepted_types import as_labels
from stratal.labels.joined_labels import join_labels
from stratal.labels.label_files import read_labels
from stratal.population.expressions import (
    Below,
    ByLevel,
    Cells,
    Constant,
    Expression,
    LogLoss,
    NumberColumn,
    logistic,
    total,
)
from stratal.population.influence import Influence
from stratal.population.population import Population
from stratal.population.rules import INFLUENCE, CutPoints
from stratal.proxy.calibration import PENALTY, fit_penalised
from stratal.strata import Allocation, Strata, allocate, stratify
from stratal.strata.feature_clusters import moments_by_rule

# The variance is at most so many times that of the plan without earlier waves: 1.05 times the standard error.
LARGEST_VARIANCE_RATIO = 1.05**2

# Half-lives of the weight of a label, in waves. The one that predicted later waves best is used.
HALF_LIVES = (1.0, 3.0, math.inf)

# Fewer labels do not determine the effects of groups.
_MIN_LABELS = 50

# Scores nearer to 0 or 1 count as this far away.
_LOGIT_MARGIN = 1e-3

# A graded outcome varies at least this share of what a binary one does.
_LEAST_SPREAD = 0.05

# Forms of an earlier wave, for messages.
_FORMS = "pairs (sample, labels), or folders that `draw` wrote, with the labels in their to_label.csv"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WaveLabels:
    """The labelled units of an earlier wave.

    Parameters
    ----------
    columns : mapping of name to (m,) array
        Proxies and groups.
    outcomes : float (m,)
        As shares of their range: between 0 and 1.
    """

    columns: Mapping[str, AnyArray]
    outcomes: FloatArray


@dataclass(frozen=True, kw_only=True)
class Term:
    """A formula of the regression, and the prior of its coefficient."""

    formula: Expression
    prior: float = 0.0
    penalty: float = PENALTY


@dataclass(frozen=True, kw_only=True, eq=False)
class PreviousWaves:
    """Labels of earlier waves.

    Parameters
    ----------
    waves : tuple of WaveLabels
        In their order in time; those without a label are left out.
    proxy : str
        The score that the plan divides by.
    bounds : (float, float)
        Of the proxy and the outcome.
    numbers, groups : tuple of str
        Further proxies and groups that the population and all waves have.
    """

    waves: tuple[WaveLabels, ...]
    proxy: str
    bounds: tuple[float, float]
    numbers: tuple[str, ...]
    groups: tuple[str, ...]

    @classmethod
    def read(cls, waves: Any, population: Population, proxy: str | None) -> PreviousWaves:
        """Return the labels of earlier waves, with the columns that the population has too.

        Raises
        ------
        InputError
            For another form of waves, waves without labels or without the proxy of the plan, and a proxy
            without bounds.
        """
        if isinstance(waves, str | Path) or not isinstance(waves, Sequence) or len(waves) == 0:
            raise InputError("previous= (--previous) must be a list of earlier waves", allowed=_FORMS)
        if not population.proxies:
            raise InputError(
                "earlier waves can only be used with a proxy",
                action="Name the column of the proxy: proxy= (--proxy COL).",
            )
        info = population.proxy_info(proxy)
        if info.bounds is None or not info.scaled:
            raise InputError(
                f"earlier waves require a proxy on the outcome's scale with known bounds; '{info.name}' is "
                "not such a proxy",
                action="State the bounds: bounds=(lowest, highest) (--bounds LOW,HIGH).",
            )
        pairs = [_sample_and_labels(wave) for wave in waves]
        samples = [sample for sample, _ in pairs]
        for number, sample in enumerate(samples, start=1):
            if info.name not in sample.proxy_names:
                raise InputError(
                    f"earlier wave {number} was drawn without the proxy '{info.name}'",
                    given=", ".join(sample.proxy_names) or "no proxy",
                    action="Leave out this wave, or plan with the proxy with which it was drawn.",
                )
        numbers = [name for name in population.proxy_names if name != info.name]
        labelled = [_wave_labels(sample, labels, info.bounds) for sample, labels in pairs]
        with_labels = tuple(wave for wave in labelled if wave is not None)
        if not with_labels:
            raise InputError(
                "no earlier wave has a label",
                action="Fill in the column label in the to_label.csv of a wave.",
            )
        return cls(
            waves=with_labels,
            proxy=info.name,
            bounds=info.bounds,
            numbers=tuple(name for name in numbers if all(name in sample.proxy_names for sample in samples)),
            groups=tuple(
                name for name in population.group_names if all(name in sample.groups for sample in samples)
            ),
        )

    @property
    def labels(self) -> int:
        """Number of labels in all waves."""
        return sum(len(wave.outcomes) for wave in self.waves)

    @property
    def is_sufficient(self) -> bool:
        """Whether there are further columns, and enough labels to determine their effects."""
        return bool(self.numbers or self.groups) and self.labels >= _MIN_LABELS

    @property
    def idle_note(self) -> str:
        """Return why the plan does not use the labels."""
        if not (self.numbers or self.groups):
            return (
                "Labels of earlier waves would only recalibrate the proxy, which saves no labels: name "
                "groups that all waves have (groups=, --groups)."
            )
        required = f"at least {_MIN_LABELS} are required"
        return f"{self.labels} labels of earlier waves are too few to be used ({required})."

    @property
    def note(self) -> str:
        """Return how the plan uses the labels."""
        if math.isfinite(self.half_life):
            age = f" (half the weight after {_waves_text(self.half_life)})"
        else:
            age = ""
        columns = ", ".join((self.proxy, *self.groups, *self.numbers))
        waves = _waves_text(len(self.waves), "earlier ")
        return (
            f"{self.labels:,} labels of {waves}{age} are used to divide and allocate the strata by "
            f"{columns}. They are not part of the estimate, and are expected to make it more precise. If "
            "they mislead, the standard error is at most about 5% larger."
        )

    def divided(
        self, population: Population, raw: Strata, allocation: Allocation
    ) -> tuple[Strata, Allocation] | None:
        """Return the halves of strata of the score, and their labels; None if the budget is too small.

        Parameters
        ----------
        population : Population
        raw : Strata
            Intervals of the proxy, or all units as one stratum.
        allocation : Allocation
            Of these strata.
        """
        cuts = raw.rule.cuts if isinstance(raw.rule, CutPoints) else np.empty(0)
        # Levels are sorted as text.
        cells = tuple(f"{number:03d}" for number in range(raw.n_strata))
        tests = tuple(Below(name=self.proxy, limit=float(cut)) for cut in cuts)
        share = self.expected_share
        low, high = self.bounds
        mean = low + (high - low) * share
        spread = ((high - low) ** 2 * self.spread) * share * (1.0 - share)
        influence = Influence(
            value=math.nan, mean=mean, square=mean * mean + spread, cells=Cells(names=cells, tests=tests)
        )
        recalibrated = stratify(population, "equal-size", 2, influence=influence)
        rule = recalibrated.rule
        parents = np.zeros(recalibrated.n_strata, dtype=np.int64)
        if raw.n_strata > 1:
            parents = np.array([int(name[:3]) for name in recalibrated.names])
        names = [
            f"{raw.names[parent]}, {name[name.index(INFLUENCE) :].replace(INFLUENCE, 'expected outcome')}"
            if INFLUENCE in name
            else raw.names[parent]
            for parent, name in zip(parents.tolist(), recalibrated.names, strict=True)
        ]
        moments = moments_by_rule(population, rule, self.proxy)
        strata = Strata.from_moments(
            replace(moments, scaled=raw.scaled, bounds=raw.bounds),
            rule,
            tuple(names),
            method=f"{raw.method}, halves by earlier waves",
            population=population,
        )
        proportional = allocation.n_h[parents] * strata.sizes / raw.sizes[parents]
        # With few labels, rounding up may leave none to move: the halves then have their shares.
        for least in (np.ceil(proportional / LARGEST_VARIANCE_RATIO), np.floor(proportional)):
            minimum = np.maximum(least, np.minimum(allocation.minimum[parents], strata.sizes)).astype(
                np.int64
            )
            if minimum.sum() <= allocation.budget:
                return strata, allocate(recalibrated, allocation.budget, "neyman", minimum)
        return None

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The formulas of the regression."""
        low, high = self.bounds
        share = (NumberColumn(name=self.proxy) - low) * (1.0 / (high - low))
        odds = LogLoss(parts=(1.0 - share,), least=_LOGIT_MARGIN) - LogLoss(
            parts=(share,), least=_LOGIT_MARGIN
        )
        terms = [Term(formula=Constant(value=1.0), penalty=0.0), Term(formula=odds, prior=1.0)]
        for name in self.numbers:
            values = np.concatenate([wave.columns[name] for wave in self.waves])
            if values.std() > 0:
                column = (NumberColumn(name=name) - float(values.mean())) * float(1.0 / values.std())
                terms.append(Term(formula=column))
        for name in self.groups:
            levels = np.unique(np.concatenate([wave.columns[name].astype(np.str_) for wave in self.waves]))
            terms += [
                Term(formula=ByLevel(name=name, levels=(level,), values=(1.0,))) for level in levels.tolist()
            ]
        return tuple(terms)

    @cached_property
    def designs(self) -> list[FloatArray]:
        """The matrix of the regression (m, k) of each wave."""
        return [
            np.stack(
                [
                    np.broadcast_to(term.formula.evaluate(wave.columns), wave.outcomes.shape)
                    for term in self.terms
                ],
                axis=1,
            )
            for wave in self.waves
        ]

    def fit(self, n_waves: int, half_life: float) -> FloatArray:
        """Return the coefficients (k,) from the first waves, whose labels lose weight with their age."""
        waves = self.waves[:n_waves]
        ages = np.arange(n_waves)[::-1]
        weights = np.concatenate(
            [
                np.full(len(wave.outcomes), 0.5 ** (age / half_life))
                for age, wave in zip(ages, waves, strict=True)
            ]
        )
        return fit_penalised(
            np.concatenate(self.designs[:n_waves]),
            np.concatenate([wave.outcomes for wave in waves]),
            weights,
            np.array([term.prior for term in self.terms]),
            np.array([term.penalty for term in self.terms]),
        )

    @cached_property
    def half_life(self) -> float:
        """The half-life with the smallest log loss of each wave's labels, predicted from the waves before."""
        losses = []
        for half_life in HALF_LIVES:
            loss = 0.0
            for wave_index in range(1, len(self.waves)):
                odds = self.designs[wave_index] @ self.fit(wave_index, half_life)
                loss += float(np.sum(np.logaddexp(0.0, odds) - self.waves[wave_index].outcomes * odds))
            losses.append(loss)
        # Without a later wave, and if several predict alike, the longest.
        return HALF_LIVES[len(losses) - 1 - int(np.argmin(losses[::-1]))]

    @cached_property
    def coefficients(self) -> FloatArray:
        """The coefficients (k,) from all waves."""
        return self.fit(len(self.waves), self.half_life)

    @property
    def expected_share(self) -> Expression:
        """The formula of the expected outcome, as a share of its range."""
        parts = [
            float(coefficient) * term.formula
            for coefficient, term in zip(self.coefficients, self.terms, strict=True)
        ]
        return logistic(total(parts))

    @cached_property
    def spread(self) -> float:
        """Variance of the outcome about its expectation, over that of a binary outcome; 1 if it is binary."""
        outcomes = np.concatenate([wave.outcomes for wave in self.waves])
        expected = expit(np.concatenate(self.designs) @ self.coefficients)
        largest = float(np.sum(expected * (1.0 - expected)))
        # Expected shares of 0 and 1 alone have no binary variance; the clip then decides.
        return float(np.clip(np.sum((outcomes - expected) ** 2) / max(largest, 1e-9), _LEAST_SPREAD, 1.0))


def _waves_text(number: float, kind: str = "") -> str:
    """Return a number of waves as text."""
    if number == 1:
        return f"1 {kind}wave"
    return f"{number:g} {kind}waves"


def _sample_and_labels(wave: Any) -> tuple[Sample, Any]:
    """Return the sample and the labels of an earlier wave."""
    if isinstance(wave, tuple | list) and len(wave) == 2 and isinstance(wave[0], Sample):
        return wave[0], wave[1]
    if not isinstance(wave, str | Path):
        raise InputError("an earlier wave has the wrong form", given=type(wave).__name__, allowed=_FORMS)
    file = sample_file(Path(wave))
    table = find_table_to_label(file.parent)
    if file == Path(wave) or table is None:
        raise InputError(f"{wave} cannot be read as a wave", allowed=_FORMS)
    sample = Sample.read(file)
    labels = read_labels(table, id_name=sample.question.id or "id", order=sample.ids.tolist())
    return sample, labels


def _wave_labels(sample: Sample, labels: Any, bounds: tuple[float, float]) -> WaveLabels | None:
    """Return the labelled units of a wave; None if it has none."""
    labels = as_labels(labels, sample)
    labelled = join_labels(sample, labels).labelled
    if not labelled.any():
        return None
    result = estimate(sample, labels, estimand="mean", estimator="horvitz-thompson")
    outcomes = unit_scale(result.evidence.z, bounds)
    if result.bounds is None or outcomes.min() < 0 or outcomes.max() > 1:
        raise InputError(
            "outcomes of an earlier wave are not on the scale of the proxy",
            given=f"{result.evidence.z.min():g} to {result.evidence.z.max():g}",
            allowed=f"{bounds[0]:g} to {bounds[1]:g}",
        )
    columns: dict[str, AnyArray] = {
        name: sample.proxies[labelled, column] for column, name in enumerate(sample.proxy_names)
    }
    columns |= {name: values[labelled] for name, values in sample.groups.items()}
    return WaveLabels(columns=columns, outcomes=outcomes)
