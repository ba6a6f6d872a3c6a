"""`PreviousWaves`: strata and an allocation based on labels of earlier waves, which have other items.

The outcome of earlier waves is regressed on the score and on further columns, such as groups. The plan then
has half as many strata of the score, and divides each into two halves by the expected outcome. Neyman's rule
allocates the labels to the halves, with a lower limit: of the n_h labels of a stratum without earlier waves,
each half gets at least n_h N_half / (1.1025 N_h). So the variance is at most 1.1025 times that of these
strata without earlier waves, even if the earlier labels mislead.

Without further columns, the expected outcome orders the items like the score, and nothing is gained.
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
    sum_of,
)
from stratal.population.influence import Influence
from stratal.population.population import Population
from stratal.population.rules import INFLUENCE, CutPoints
from stratal.proxy.calibration import PENALTY, fit_penalised
from stratal.strata import Allocation, Strata, allocate, stratify
from stratal.strata.feature_clusters import moments_by_rule

# Largest ratio of the variance to that of the plan without earlier waves: 1.05 times its standard error.
LARGEST_VARIANCE_RATIO = 1.05**2

# Half-lives of the weight of a label, in waves. The one with the best predictions of later waves is used.
HALF_LIVES = (1.0, 3.0, math.inf)

# Fewer labels do not determine the effects of groups.
_MIN_LABELS = 50

# Scores nearer to 0 or 1 count as this far away, so that their log odds are finite.
_LOGIT_MARGIN = 1e-3

# Smallest assumed variance of a graded outcome, relative to that of a binary outcome with the same mean.
_MIN_RELATIVE_VARIANCE = 0.05

# Digits of the name of a cell.
_CELL_DIGITS = 3

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
        On the scale from 0 to 1.
    """

    columns: Mapping[str, AnyArray]
    outcomes: FloatArray


@dataclass(frozen=True, kw_only=True)
class RegressionTerm:
    """A regressor as a formula of columns, with the prior mean and the ridge penalty of its coefficient."""

    formula: Expression
    prior_mean: float = 0.0
    penalty: float = PENALTY


@dataclass(frozen=True, kw_only=True, eq=False)
class PreviousWaves:
    """Labels of earlier waves.

    Parameters
    ----------
    waves : tuple of WaveLabels
        In their order in time, without waves that have no label.
    proxy : str
        The score whose intervals are the strata of the plan.
    bounds : (float, float)
        Bounds of the proxy and the outcome.
    further_proxies, groups : tuple of str
        Columns that the population and all waves have.
    """

    waves: tuple[WaveLabels, ...]
    proxy: str
    bounds: tuple[float, float]
    further_proxies: tuple[str, ...]
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
        other_proxies = [name for name in population.proxy_names if name != info.name]
        further_proxies = [
            name for name in other_proxies if all(name in sample.proxy_names for sample in samples)
        ]
        groups = [name for name in population.group_names if all(name in sample.groups for sample in samples)]
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
            further_proxies=tuple(further_proxies),
            groups=tuple(groups),
        )

    @property
    def labels(self) -> int:
        """Number of labels in all waves."""
        return sum(len(wave.outcomes) for wave in self.waves)

    @property
    def is_sufficient(self) -> bool:
        """Whether there are further columns, and enough labels to determine their effects."""
        return bool(self.further_proxies or self.groups) and self.labels >= _MIN_LABELS

    @property
    def insufficient_note(self) -> str:
        """The reason why the plan does not use the labels."""
        if not (self.further_proxies or self.groups):
            return (
                "Labels of earlier waves would only recalibrate the proxy, which saves no labels: name "
                "groups that all waves have (groups=, --groups)."
            )
        required = f"at least {_MIN_LABELS} are required"
        return f"{self.labels} labels of earlier waves are too few to be used ({required})."

    @property
    def note(self) -> str:
        """The sentences on how the plan uses the labels."""
        if math.isfinite(self.half_life):
            weight_text = f" (half the weight after {_waves_text(self.half_life)})"
        else:
            weight_text = ""
        columns = ", ".join((self.proxy, *self.groups, *self.further_proxies))
        waves = _waves_text(len(self.waves), "earlier ")
        return (
            f"{self.labels:,} labels of {waves}{weight_text} are used to divide and allocate the strata by "
            f"{columns}. They are not part of the estimate, and are expected to make it more precise. If "
            "they mislead, the standard error is at most about 5% larger."
        )

    def divide(
        self, population: Population, undivided: Strata, allocation: Allocation
    ) -> tuple[Strata, Allocation] | None:
        """Divide each stratum of the score in two; None if the budget is too small for these halves.

        Parameters
        ----------
        population : Population
        undivided : Strata
            Intervals of the proxy, or all units as one stratum.
        allocation : Allocation
            Allocation of a plan without earlier waves to these strata.
        """
        halves = stratify(population, "equal-size", 2, influence=self._expected_outcome(undivided))
        # The stratum that each half comes from.
        parents = np.zeros(halves.n_strata, dtype=np.int64)
        if undivided.n_strata > 1:
            parents = np.array([int(name[:_CELL_DIGITS]) for name in halves.names])
        names = [
            _half_name(undivided.names[parent], name)
            for parent, name in zip(parents.tolist(), halves.names, strict=True)
        ]
        # The expected precision is that by the score alone.
        moments = moments_by_rule(population, halves.rule, self.proxy)
        strata = Strata.from_moments(
            replace(moments, scaled=undivided.scaled, bounds=undivided.bounds),
            halves.rule,
            tuple(names),
            method=f"{undivided.method}, halves by earlier waves",
            population=population,
        )
        proportional = allocation.n_h[parents] * strata.sizes / undivided.sizes[parents]
        lower = np.minimum(allocation.minimum[parents], strata.sizes)
        # With few labels, the sum of the limits may exceed the budget when rounded up.
        for limits in (np.ceil(proportional / LARGEST_VARIANCE_RATIO), np.floor(proportional)):
            minimum = np.maximum(limits, lower).astype(np.int64)
            if minimum.sum() <= allocation.budget:
                return strata, allocate(halves, allocation.budget, "neyman", minimum)
        return None

    def _expected_outcome(self, undivided: Strata) -> Influence:
        """Return the expected moments of the outcome, with a cell for each interval of the proxy."""
        cuts = undivided.rule.cuts if isinstance(undivided.rule, CutPoints) else np.empty(0)
        # Cells are sorted as text, so that numbers need leading zeros.
        cells = tuple(f"{number:0{_CELL_DIGITS}d}" for number in range(undivided.n_strata))
        tests = tuple(Below(name=self.proxy, limit=float(cut)) for cut in cuts)
        low, high = self.bounds
        share = self.expected_share
        mean = low + (high - low) * share
        variance = ((high - low) ** 2 * self.relative_variance) * share * (1.0 - share)
        return Influence(
            value=math.nan, mean=mean, square=mean * mean + variance, cells=Cells(names=cells, tests=tests)
        )

    @cached_property
    def terms(self) -> tuple[RegressionTerm, ...]:
        """The regressors (k,): a constant, the log odds of the proxy, further proxies, and each group."""
        low, high = self.bounds
        share = (NumberColumn(name=self.proxy) - low) * (1.0 / (high - low))
        log_odds = LogLoss(parts=(1.0 - share,), least=_LOGIT_MARGIN) - LogLoss(
            parts=(share,), least=_LOGIT_MARGIN
        )
        # A calibrated proxy has the coefficient 1, and all others are 0.
        terms = [
            RegressionTerm(formula=Constant(value=1.0), penalty=0.0),
            RegressionTerm(formula=log_odds, prior_mean=1.0),
        ]
        for name in self.further_proxies:
            values = np.concatenate([wave.columns[name] for wave in self.waves])
            if values.std() > 0:
                column = (NumberColumn(name=name) - float(values.mean())) * float(1.0 / values.std())
                terms.append(RegressionTerm(formula=column))
        for name in self.groups:
            levels = np.unique(np.concatenate([wave.columns[name].astype(np.str_) for wave in self.waves]))
            terms += [
                RegressionTerm(formula=ByLevel(name=name, levels=(level,), values=(1.0,)))
                for level in levels.tolist()
            ]
        return tuple(terms)

    @cached_property
    def design_matrices(self) -> list[FloatArray]:
        """The design matrix (m, k) of each wave."""
        matrices = []
        for wave in self.waves:
            regressors = [term.formula.evaluate(wave.columns) for term in self.terms]
            # The constant is one number.
            columns = [np.broadcast_to(regressor, wave.outcomes.shape) for regressor in regressors]
            matrices.append(np.stack(columns, axis=1))
        return matrices

    def fit(self, n_waves: int, half_life: float) -> FloatArray:
        """Return the coefficients (k,) from the first waves; a label's weight halves with each half-life."""
        outcomes = [wave.outcomes for wave in self.waves[:n_waves]]
        weight_of_waves = [0.5 ** (age / half_life) for age in reversed(range(n_waves))]
        weights = np.repeat(weight_of_waves, [len(each) for each in outcomes])
        return fit_penalised(
            np.concatenate(self.design_matrices[:n_waves]),
            np.concatenate(outcomes),
            weights,
            np.array([term.prior_mean for term in self.terms]),
            np.array([term.penalty for term in self.terms]),
        )

    @cached_property
    def half_life(self) -> float:
        """The half-life with the smallest log loss of each wave's labels, predicted from the waves before."""
        losses = []
        for half_life in HALF_LIVES:
            loss = 0.0
            for wave_index in range(1, len(self.waves)):
                log_odds = self.design_matrices[wave_index] @ self.fit(wave_index, half_life)
                outcomes = self.waves[wave_index].outcomes
                loss += float(np.sum(np.logaddexp(0.0, log_odds) - outcomes * log_odds))
            losses.append(loss)
        # The longest half-life with the smallest loss, also with a single wave.
        return HALF_LIVES[len(losses) - 1 - int(np.argmin(losses[::-1]))]

    @cached_property
    def coefficients(self) -> FloatArray:
        """The coefficients (k,) from all waves."""
        return self.fit(len(self.waves), self.half_life)

    @property
    def expected_share(self) -> Expression:
        """The formula of the expected outcome on the scale from 0 to 1."""
        products = [
            float(coefficient) * term.formula
            for coefficient, term in zip(self.coefficients, self.terms, strict=True)
        ]
        return logistic(sum_of(products))

    @cached_property
    def relative_variance(self) -> float:
        """Variance of the outcome about its expectation, over that of a binary outcome; 1 if it is binary."""
        outcomes = np.concatenate([wave.outcomes for wave in self.waves])
        expected = expit(np.concatenate(self.design_matrices) @ self.coefficients)
        square_sum = float(np.sum((outcomes - expected) ** 2))
        binary_square_sum = float(np.sum(expected * (1.0 - expected)))
        # The divisor is 0 if all expected outcomes are 0 or 1.
        ratio = square_sum / max(binary_square_sum, 1e-9)
        return float(np.clip(ratio, _MIN_RELATIVE_VARIANCE, 1.0))


def _half_name(parent: str, name: str) -> str:
    """Return the name of a half from those of its stratum and of its interval of the expected outcome."""
    if INFLUENCE not in name:
        # A stratum whose units have the same expected outcome is not divided.
        return parent
    interval = name[name.index(INFLUENCE) :].replace(INFLUENCE, "expected outcome")
    return f"{parent}, {interval}"


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
