"""Precision, recall and related metrics, from true and predicted classes under any design.

The metrics are functions of weighted shares (`class_functions`). Their linearised variables are those of
ratios (Stehman 2014, eq. 23–28, where the strata need not be the predicted classes). Intervals are
Clopper–Pearson's on the effective number of trials (Korn & Graubard 1998). If all units of every stratum have
the same answer, intervals are computed from those of the hits and of the misses (`rates_interval`). If not,
those of Matthews' correlation and kappa of two classes are computed from three cells (`cells_interval`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from stratal.arrays import BoolArray, FloatArray, IntArray
from stratal.designs import Weighting
from stratal.designs.stratified import StratifiedWeighting
from stratal.errors import InputError
from stratal.estimation.domain_means import (
    adjust_for_few_clusters,
    domain_mean,
    estimate_without_interval,
    two_sum_interval,
)
from stratal.estimation.estimate import Estimate, correlation_from, linearised_estimate, undefined_estimate
from stratal.estimation.linearised import Linearised, of_variable
from stratal.estimation.mover import ShareFunctionInterval
from stratal.estimation.pooled_pseudo_labels import smooth_labels
from stratal.estimation.share_estimates import share_estimate, shares_above
from stratal.estimation.share_functions import FirstShare
from stratal.intervals.interval import Interval, two_sided_level
from stratal.intervals.interval_types import (
    BinomialInterval,
    OffsetInterval,
    OuterInterval,
    SumInterval,
    Term,
    UnseenClustersInterval,
)
from stratal.intervals.unseen_units import max_unseen_units
from stratal.metrics.class_functions import (
    METRIC_OF_OTHER_CLASS,
    METRICS_OF_OTHER_CLASSES,
    MIN_SHARE,
    RATES,
    SIGNED,
    Metric,
    Shares,
    is_averaged,
    is_mean_of_classes,
    linear_forms,
    metric_function,
    two_class_metric,
)
from stratal.metrics.class_shares import CountedAnswersInterval, RatesInStrata, cells_interval, rates_interval
from stratal.metrics.pseudo_label_variances import satterthwaite_of_groups, smoothed_variance
from stratal.whole_numbers import rounded_down


@dataclass(frozen=True, slots=True, kw_only=True)
class _AnswerStrata:
    """The strata whose units are all answered with a class, if no unit of the other strata is.

    Parameters
    ----------
    class_number : int
    answered_strata : bool (H,)
        Whether all units of a stratum are answered with the class.
    needs : (bool, bool)
        Whether a metric depends on hits, which are in these strata, and on misses, which are in the others.
    """

    class_number: int
    answered_strata: BoolArray
    needs: tuple[bool, bool]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Confusion:
    """True and predicted classes of the labelled units, with their weights.

    Parameters
    ----------
    true, predicted : int (n,)
        Class numbers, 0 … K − 1.
    n_classes : int
        K.
    weighting : Weighting
    possible : bool (H, K + 1), optional
        Which answers are possible in each stratum; the last column is for answers that are none of the
        classes. Default: all.
    answered_share : float, optional
        Share of the population's units that are answered with the second of two classes, if it is known.
    has_strata_of_groups : bool
        Whether the strata were formed by groups or stated, and not formed by scores.
    """

    true: IntArray
    predicted: IntArray
    n_classes: int
    weighting: Weighting
    possible: BoolArray | None = None
    answered_share: float | None = None
    has_strata_of_groups: bool = False

    def metric(
        self, name: str, class_or_average: int | str | None = None, target: str = "population"
    ) -> Estimate:
        """Return one metric.

        Parameters
        ----------
        name : str
            One of `METRICS`; `accuracy` is the share of hits.
        class_or_average : int or str, optional
            A class number, or one of `AVERAGES`; None for `OVERALL_METRICS`.
        target : {"population", "superpopulation"}

        Raises
        ------
        InputError
            For an unknown metric or average.
        """
        if class_or_average in ("macro", "micro") and name in METRIC_OF_OTHER_CLASS and self._are_two_classes:
            return self.metric(METRIC_OF_OTHER_CLASS[name], class_or_average, target)
        function = metric_function(name, class_or_average, self.n_classes)
        # Units in the denominator.
        counted = np.ones(len(self.true), dtype=bool)
        if isinstance(class_or_average, int):
            counted = self._form_per_unit(class_or_average, linear_forms(name)[1]) > 0
        shares = Shares.of(self.true, self.predicted, self.weighting.weights, self.n_classes)
        value, slopes, note = function(shares)
        n = int(counted.sum())
        bounds = _bounds_of(name)
        if not np.isfinite(value):
            estimate = self._macro_with_unseen_classes(name, class_or_average, target)
            return estimate or undefined_estimate(self.weighting, n, bounds, note, target=target)
        clusters = self.weighting.sampled_clusters(counted)
        if clusters is not None and isinstance(class_or_average, int) and name in RATES:
            # For clusters, a rate is the mean of a domain, whose interval allows for the number of clusters.
            all_units = np.ones(len(self.true), dtype=bool)
            return self.metric_in_domain(all_units, name, class_or_average, target)
        variable = slopes.per_unit(self.true, self.predicted)
        result = of_variable(value, variable, self.weighting, target, counted)
        if clusters is not None and clusters.degrees_of_freedom == 0.0:
            return estimate_without_interval(result, clusters, self.weighting, counted, bounds, target)
        interval, variance = self._interval_and_variance(
            name, class_or_average, function, target, result, slopes, counted
        )
        if clusters is not None:
            interval = UnseenClustersInterval(
                value=value,
                bounds=bounds,
                inner=interval,
                draws=clusters.effective_count,
                fraction=1.0 - clusters.undrawn_share,
            )
        reference_population = None
        if 0.0 < result.variance < variance:
            result = result.scaled(variance)
            # The additional variance is not that of labels, so that the variance of a random sample is
            # unknown.
            reference_population = np.nan, self.weighting.population_size
        return linearised_estimate(
            result,
            self.weighting,
            interval=interval,
            target=target,
            n=n,
            member=counted,
            standard_error=float(np.sqrt(max(variance, 0.0))),
            reference_population=reference_population,
        )

    def _interval_and_variance(
        self,
        name: str,
        class_or_average: int | str | None,
        function: Metric,
        target: str,
        result: Linearised,
        slopes: Shares,
        counted: BoolArray,
    ) -> tuple[Interval, float]:
        """Return the interval of a metric, and its variance, which is increased if labels are equal.

        `counted` (n,) are the units in the denominator.
        """
        bounds = _bounds_of(name)
        # The standard deviation of an estimate is at most half of the range between its bounds.
        largest_variance = ((bounds[1] - bounds[0]) / 2.0) ** 2
        variance = result.variance
        varies = np.isfinite(variance) and variance > 0
        share_interval = self._share_interval(name, class_or_average, function, target)
        if share_interval is None or not varies:
            smoothed, smoothed_error = self._interval_with_pseudo_labels(
                name, class_or_average, function, counted, result, target
            )
            # If all labels agree, their variance is 0; that of the smoothed labels allows for unseen errors.
            if not varies:
                variance = min(smoothed_error**2, largest_variance)
        elif is_averaged(name, class_or_average) and any(map(_has_equal_labels, share_interval.rates)):
            # As in `_variance_of_terms`: a share with equal labels adds nothing to the variance.
            length_below, length_above = share_interval.offsets(ONE_STANDARD_ERROR, "two-sided")
            variance = min(max(variance, ((length_below + length_above) / 2.0) ** 2), largest_variance)
        if share_interval is not None:
            share_interval = replace(share_interval, value=result.value, bounds=bounds)
            return self._limit_by_answer_share(name, function, share_interval, target), variance
        interval, second = self._trials_interval(
            name, class_or_average, target, result, slopes, counted, smoothed
        )
        if is_mean_of_classes(name, class_or_average) and isinstance(second, SumInterval):
            variance = max(variance, min(_variance_of_terms(second), largest_variance))
        if second is not None:
            interval = OuterInterval(value=result.value, bounds=bounds, first=interval, second=second)
        return interval, variance

    @property
    def _are_two_classes(self) -> bool:
        """Whether every unit is of one of two classes, and is answered with one of them."""
        return self.n_classes == 2 and max(self.true.max(initial=0), self.predicted.max(initial=0)) < 2

    def _trials_interval(
        self,
        name: str,
        class_or_average: int | str | None,
        target: str,
        result: Linearised,
        slopes: Shares,
        counted: BoolArray,
        smoothed: BinomialInterval,
    ) -> tuple[Interval, Interval | None]:
        """Return the interval on the metric's effective number of trials, and a second one or None.

        The interval of the metric is the outer one of both. The second one allows for what a number of trials
        does not describe: strata with unequal weights, or classes with few labels.
        """
        bounds = _bounds_of(name)
        value = result.value
        clusters = self.weighting.sampled_clusters(counted)
        is_f1_of_class = name == "f1" and isinstance(class_or_average, int)
        of_trials = smoothed
        if is_f1_of_class:
            # F1 = 2J / (1 + J), so that its limits are those of the Jaccard index J.
            index = self.metric("jaccard", class_or_average, target).evidence.interval
            if isinstance(index, OuterInterval):
                index = index.first
            if isinstance(index, BinomialInterval):
                of_trials = replace(index, value=value, bounds=bounds)
            of_trials = replace(of_trials, scale="dice")
        # The smallest classes dominate an average: its df are Satterthwaite's over the classes. The Jaccard
        # index has the df of its clusters.
        has_df = is_averaged(name, class_or_average) or (is_f1_of_class and clusters is not None)
        if not has_df:
            of_trials = replace(of_trials, degrees_of_freedom=np.inf)
        interval: Interval = of_trials
        if clusters is not None and not is_f1_of_class:
            # The factor corrects the variance, and the adjustment allows for clusters with equal labels.
            trials = of_trials.trials / self.weighting.few_clusters_factor(result.variable, counted)
            interval = adjust_for_few_clusters(replace(of_trials, trials=trials), clusters)
        if isinstance(class_or_average, int):
            min_share = MIN_KISH_SHARE
            has_second = name in RATES
            if self.has_strata_of_groups:
                min_share = MIN_KISH_SHARE_OF_GROUPS
                has_second |= clusters is None
            if not has_second or self.weighting.effective_draws >= min_share * self.weighting.draws:
                return interval, None
            # The trials are those of all strata together, which do not describe a large stratum with few
            # equal labels.
            second = self._interval_of_sums(name, class_or_average, counted, target)
            return interval, replace(second, bounds=bounds)
        if is_mean_of_classes(name, class_or_average):
            return interval, self._mean_over_classes(name, value, target)
        cells, is_one_share = self._interval_of_cells(slopes, value, target)
        # The micro-averaged Jaccard index a / (2 − a) is no linear function of its one share, the accuracy a.
        if cells is not None and is_one_share and name != "jaccard":
            return replace(cells, bounds=bounds), None
        return interval, cells

    def _interval_of_sums(
        self, name: str, class_number: int, counted: BoolArray, target: str
    ) -> ShareFunctionInterval:
        """Return the interval of a metric of one class from shares that have intervals of their own.

        A rate has two, of its numerator and of the other units in its denominator, `counted` (n,). An F
        measure depends on three: hits, misses and false alarms.
        """
        if name in RATES:
            numerator = self._form_per_unit(class_number, linear_forms(name)[0])
            return two_sum_interval(numerator, counted.astype(np.float64), self.weighting, target)
        function = two_class_metric(metric_function(name, class_number, self.n_classes), self.n_classes)
        assert function is not None, "an F measure of one class is a function of two classes"
        is_class = self.true == class_number
        return cells_interval(function, is_class, self.predicted == class_number, self.weighting, target)

    def of_whole_strata(self, member: BoolArray) -> Confusion | None:
        """Return the classes of a domain (n,) that is known to be whole strata, as a population of its own.

        None if the domain has strata with one label, or a design without strata.
        """
        weighting = self.weighting.complete_strata_weighting(member, is_whole_strata=True)
        if not isinstance(weighting, StratifiedWeighting):
            return None
        possible = self.possible
        if possible is not None:
            assert isinstance(self.weighting, StratifiedWeighting)
            possible = possible[np.unique(self.weighting.stratum[member])]
        return replace(
            self,
            true=self.true[member],
            predicted=self.predicted[member],
            weighting=weighting,
            possible=possible,
            answered_share=None,
        )

    def metric_in_domain(
        self,
        member: BoolArray,
        name: str,
        class_number: int | None = None,
        target: str = "population",
    ) -> Estimate:
        """Return a metric of the units of a domain (n,).

        Accuracy and rates are means over a domain, with its interval. F_β, and metrics of two classes, are
        functions of the domain's three rarest cells, each with the interval of a mean over the domain. Kappa
        of more classes is 1 minus the ratio of observed and chance disagreement; the interval of the observed
        disagreement is widened because that of chance is estimated too.

        Raises
        ------
        InputError
            For balanced accuracy and Matthews' correlation of more than two classes.
        """
        if name == "accuracy":
            is_right = (self.true == self.predicted).astype(np.float64)
            return domain_mean(is_right, member, self.weighting, bounds=(0.0, 1.0), target=target)
        if name in RATES:
            assert class_number is not None, "a rate needs a class"
            numerator, denominator = (self._form_per_unit(class_number, form) for form in linear_forms(name))
            counted = member & (denominator > 0)
            return domain_mean(numerator, counted, self.weighting, bounds=(0.0, 1.0), target=target)
        metric = metric_function(name, class_number, self.n_classes)
        two_class = two_class_metric(metric, self.n_classes)
        if two_class is None and name != "kappa":
            problem = f"{name} by group requires two classes"
            action = "Request kappa, or the recall of each class."
            raise InputError(problem, given=f"{self.n_classes} classes", action=action)
        shares = self.shares(member)
        if np.any(member):
            value, slopes, note = metric(shares)
        else:
            value = np.nan
            slopes = shares
            note = "no labelled unit"
        n = int(member.sum())
        bounds = _bounds_of(name)
        if not np.isfinite(value):
            return undefined_estimate(self.weighting, n, bounds, note, target=target)
        influence = member * slopes.per_unit(self.true, self.predicted)
        result = of_variable(value, influence, self.weighting, target, member)
        interval: Interval
        if two_class is not None:
            k = 1 if class_number is None else class_number
            is_class = self.true == k
            is_predicted = self.predicted == k
            interval = cells_interval(two_class, is_class, is_predicted, self.weighting, target, member)
            error = sum(interval.offsets(ONE_STANDARD_ERROR, "two-sided")) / 2.0
        else:
            interval, error = self._disagreement_interval(shares, member, result, target)
        # If all labels agree, the standard error is 0 or a rounding error.
        if result.standard_error > MIN_SHARE:
            error = result.standard_error
        return linearised_estimate(
            result,
            self.weighting,
            interval=replace(interval, value=value, bounds=bounds),
            target=target,
            n=n,
            standard_error=error,
        )

    def _disagreement_interval(
        self, shares: Shares, member: BoolArray, result: Linearised, target: str
    ) -> tuple[SumInterval, float]:
        """Return the interval of kappa from that of the observed disagreement, and its standard error.

        `shares` and `result` are those of the units of a domain (n,).
        """
        is_wrong = (self.true != self.predicted).astype(np.float64)
        disagreement = domain_mean(is_wrong, member, self.weighting, bounds=(0.0, 1.0), target=target)
        # The slope of kappa with respect to the observed disagreement, for a known one by chance.
        slope = 1.0 / (1.0 - float(shares.predicted @ shares.true) / shares.total**2)
        error = slope * disagreement.standard_error
        if error > 0:
            slope *= max(result.standard_error / error, 1.0)
        interval = SumInterval(
            value=result.value,
            terms=(disagreement,),
            coefficients=np.array([-slope]),
            correlation=np.eye(1),
        )
        return interval, error

    def shares(self, member: BoolArray) -> Shares:
        """Return the weighted shares of the units of a group (n,)."""
        weights = self.weighting.weights[member]
        return Shares.of(self.true[member], self.predicted[member], weights, self.n_classes)

    def _macro_with_unseen_classes(
        self, name: str, class_or_average: int | str | None, target: str
    ) -> Estimate | None:
        """Return a macro average if only a few classes have no label in the denominator, otherwise None."""
        if not is_mean_of_classes(name, class_or_average):
            return None
        if class_or_average is None:
            # The balanced accuracy.
            name = "recall"
        class_estimates = [self.metric(name, k, target) for k in range(self.n_classes)]
        return macro_with_unseen_classes(
            name, class_estimates, lambda classes: self.restricted(classes).metric(name, "macro", target)
        )

    def restricted(self, classes: list[int]) -> Confusion:
        """Return the confusion of some classes; all others are one class, which averages do not include."""
        # The number of each class among the retained ones; all others have the number len(classes).
        new_number = np.full(self.n_classes, len(classes), np.int64)
        new_number[classes] = np.arange(len(classes))
        possible = None
        if self.possible is not None:
            new_columns = np.append(new_number, len(classes))
            old_columns = [new_columns == k for k in range(len(classes) + 1)]
            possible = np.stack([self.possible[:, mask].any(axis=1) for mask in old_columns], axis=1)
        return replace(
            self,
            true=new_number[self.true],
            predicted=new_number[self.predicted],
            n_classes=len(classes),
            possible=possible,
            answered_share=None,
        )

    def _share(self, members: BoolArray, target: str = "population") -> Estimate:
        """Return the share of the units with a property, which the labelled units `members` (n,) have."""
        return share_estimate(members.astype(np.float64), self.weighting, target)

    def _share_interval(
        self, name: str, class_or_average: int | str | None, function: Metric, target: str
    ) -> ShareFunctionInterval | None:
        """Return a metric as a function of shares with intervals; None for more than two classes."""
        if name == "prevalence" and isinstance(class_or_average, int):
            share = self._share(self.true == class_or_average, target)
            return ShareFunctionInterval.of(FirstShare(), [share])
        two_class = two_class_metric(function, self.n_classes)
        if two_class is None:
            return None
        strata = self._answer_strata(name, class_or_average)
        if strata is not None:
            is_class = self.true == strata.class_number
            return rates_interval(
                two_class, is_class, strata.answered_strata, self.weighting, target, strata.needs
            )
        if name in SIGNED:
            return cells_interval(two_class, self.true == 1, self.predicted == 1, self.weighting, target)
        return None

    def _answer_strata(self, name: str, class_or_average: int | str | None) -> _AnswerStrata | None:
        """Return the strata with and without answers of a metric's class; None if strata mix answers."""
        # A metric of two classes is the same function of the hits and misses of either class.
        candidates = (class_or_average,) if isinstance(class_or_average, int) else (1, 0)
        # An average includes both classes: the precision of the other class depends on the misses.
        needs = _NEEDS.get(name if len(candidates) == 1 else "", (True, True))
        is_labelled = self.weighting.counts > 0
        for class_number in candidates:
            answered_strata = self._strata_of_answer(class_number)
            if answered_strata is None:
                continue
            has_labels = (np.any(is_labelled & answered_strata), np.any(is_labelled & ~answered_strata))
            if all(available or not needed for available, needed in zip(has_labels, needs, strict=True)):
                return _AnswerStrata(class_number=class_number, answered_strata=answered_strata, needs=needs)
        return None

    def rates_in_strata(self, name: str, class_or_average: int | str | None) -> RatesInStrata | None:
        """Return a metric of a class as a function of rates in strata.

        The interval is then that of `rates_interval` in every sample from these strata. None for other
        metrics, and if strata mix answers.
        """
        if not isinstance(class_or_average, int) or name in ("prevalence", "predicted_prevalence"):
            return None
        strata = self._answer_strata(name, class_or_average)
        metric = two_class_metric(metric_function(name, class_or_average, self.n_classes), self.n_classes)
        if strata is None or metric is None:
            return None
        return RatesInStrata(
            metric=metric,
            is_class=self.true == class_or_average,
            answered_strata=strata.answered_strata,
            needs=strata.needs,
        )

    def _limit_by_answer_share(
        self, name: str, function: Metric, interval: ShareFunctionInterval, target: str
    ) -> Interval:
        """Return an interval within the values that are possible with the known share of answers.

        Labels do not show how rare an answer is: if .3 % of the units had one of two answers, intervals of
        kappa from 300 labels would otherwise be 2.5 to 4 times as wide.
        """
        two_class = two_class_metric(function, self.n_classes)
        if name not in SIGNED or two_class is None or self.answered_share is None or target != "population":
            return interval
        rarer = int(self.answered_share < 0.5)
        is_class = self.true == rarer
        is_answered = self.predicted == rarer
        return CountedAnswersInterval(
            value=interval.value,
            bounds=interval.bounds,
            inner=interval,
            metric=two_class,
            hits=self._share(is_class & is_answered),
            false_alarms=self._share(~is_class & is_answered),
            misses=self._share(is_class & ~is_answered),
            answered=min(self.answered_share, 1.0 - self.answered_share),
        )

    def _interval_of_cells(
        self, slopes: Shares, value: float, target: str
    ) -> tuple[SumInterval | None, bool]:
        """Return the interval of a metric as a sum of shares of cells, and whether there is only one share.

        Effective trials are computed from the variance over all strata, which is too small if large strata
        have few labels without an error: averages by true share and Matthews' correlation then covered .11 to
        .65.
        """
        size = len(slopes.hits)
        weighting = self.weighting
        true, predicted = np.divmod(np.arange(size**2), size)
        cells = slopes.per_unit(true, predicted).reshape(size, size)
        is_possible = np.ones((len(weighting.counts), size), dtype=bool)
        if self.possible is not None and weighting.random_within_strata:
            is_possible = self.possible[:, :size]
        lowest = np.where(is_possible, cells.min(axis=0), np.inf).min(axis=1)
        highest = np.where(is_possible, cells.max(axis=0), -np.inf).max(axis=1)
        labelled_slopes = slopes.per_unit(self.true, self.predicted)
        interval = shares_above(labelled_slopes, lowest, highest, weighting, target)
        # Slopes that are equal in exact arithmetic may differ by rounding.
        is_one_share = len(np.unique(np.round(cells, 12))) <= 2
        if interval is not None:
            interval = replace(interval, value=value)
        return interval, is_one_share

    def _strata_of_answer(self, class_number: int) -> BoolArray | None:
        """Return the strata (H,) whose units are all answered with a class; None if strata mix answers."""
        if self.possible is None or not self.weighting.random_within_strata:
            return None
        rows = self._possible_in_strata(np.array([class_number, self.n_classes]), class_number)
        is_possible, is_other_possible = (np.asarray(row) for row in rows)
        if np.any((self.weighting.counts > 0) & is_possible & is_other_possible):
            return None
        return is_possible

    def unseen_note(self, class_number: int, class_name: str) -> str | None:
        """Return a note on how many units of a class may have other answers, if no label shows one.

        None if a label shows one, or if no upper limit follows from the design. If a stratum contains
        different answers, all of its labels count as labels of other answers.
        """
        weighting = self.weighting
        if not weighting.random_within_strata or np.any(
            (self.true == class_number) & (self.predicted != class_number)
        ):
            return None
        answered_strata = self._strata_of_answer(class_number)
        may_have_misses = weighting.counts > 0
        if answered_strata is not None:
            may_have_misses = may_have_misses & ~answered_strata
        if not np.any(may_have_misses):
            return None
        sizes = np.asarray(weighting.sizes)[may_have_misses]
        counts = weighting.counts[may_have_misses]
        units = int(sizes.sum())
        max_missed = rounded_down(max_unseen_units(sizes, counts))
        n_other_answers = np.sum(self.predicted != class_number)
        note = (
            f"none of the {n_other_answers:,} labelled units with other answers belongs to class "
            f"{class_name!r}, but up to {max_missed:,} of these {units:,} units may be in this class "
            "(97.5% confidence), so the interval is wide."
        )
        hits = float(weighting.weights @ ((self.true == class_number) & (self.predicted == class_number)))
        if hits <= 0:
            return note
        # The n with (1 − M/N)^n = .025, where M misses are a tenth of the class.
        misses = hits / weighting.total * weighting.population_size * _MISSED_SHARE / (1.0 - _MISSED_SHARE)
        labels_needed = min(-np.log(0.025) * units / misses, units)
        return (
            f"{note} To show that at most a tenth of the class is missed would require about "
            f"{labels_needed:,.0f} such labels, if all of them are of other classes"
        )

    def _possible_in_strata(self, answers: IntArray, class_number: int | None = None) -> BoolArray:
        """Return whether each answer is possible in each stratum (n, H).

        With `class_number`, only this class is distinguished from all other answers.
        """
        assert self.possible is not None
        table = self.possible
        if class_number is not None:
            others = np.asarray(np.delete(table, class_number, axis=1).any(axis=1))
            table = np.repeat(others[:, None], self.n_classes + 1, axis=1)
            table[:, class_number] = self.possible[:, class_number]
        return table[:, answers].T

    def _mean_over_classes(self, name: str, value: float, target: str) -> SumInterval:
        """Return a macro average as a sum of the metrics of the classes, with their correlation."""
        name = "recall" if name == "balanced_accuracy" else name
        variables = []
        terms = []
        true, predicted, shares = self._add_pseudo_labels(range(self.n_classes))
        weights = np.concatenate([self.weighting.weights, shares])
        all_shares = Shares.of(true, predicted, weights, self.n_classes + 1)
        for k in range(self.n_classes):
            _, slopes, _ = metric_function(name, k, self.n_classes)(all_shares)
            variables.append(weights * slopes.per_unit(true, predicted))
            terms.append(self.metric(name, k, target))
        return SumInterval(
            value=value,
            terms=tuple(terms),
            coefficients=np.full(self.n_classes, 1.0 / self.n_classes),
            correlation=correlation_from(np.array(variables) @ np.array(variables).T),
        )

    def _form_per_unit(self, class_number: int, form: tuple[float, ...]) -> FloatArray:
        """Return a linear form of one class's (hits, predicted, true, all) for each unit (n,)."""
        coefficients = np.zeros((self.n_classes + 1, 4))
        coefficients[class_number] = form
        return Shares.of_coefficients(coefficients).per_unit(self.true, self.predicted)

    def _add_pseudo_labels(
        self, classes: range | list[int], *, negative: bool = False
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """Return true and predicted classes (n + J,) of units and pseudo-labels, and the shares (J,).

        Each class gets half a label of right answers, and half a label of wrong ones. These confuse the class
        with a class that does not exist, whose number is K. The right answers of a metric of the other
        classes (`negative`) have the number K, too.
        """
        weights = self.weighting.weights
        no_class = self.n_classes
        true = []
        predicted = []
        shares = []
        for k in classes:
            is_true = self.true == k
            is_predicted = self.predicted == k
            if negative:
                counted = ~is_true | ~is_predicted
            else:
                counted = is_true | is_predicted
            if not np.any(counted):
                if len(classes) > 1:
                    continue
                # No label is of this class, but units without a label may be.
                counted = np.ones_like(counted)
            label_share = float(np.sum(weights[counted] ** 2) / np.sum(weights[counted]))
            right_class = no_class if negative else k
            true += [right_class, k, no_class]
            predicted += [right_class, no_class, k]
            shares += [label_share / 2, label_share / 4, label_share / 4]
        all_true = np.append(self.true, np.array(true, np.int64))
        all_predicted = np.append(self.predicted, np.array(predicted, np.int64))
        return all_true, all_predicted, np.array(shares)

    def _strata_of_labels(
        self, class_or_average: int | str | None, true: IntArray, predicted: IntArray
    ) -> BoolArray | None:
        """Return the strata in which each unit and pseudo-label is possible (n + J, H); None if in all.

        A wrong pseudo-label whose answer is not its class may have any other answer.
        """
        if self.possible is None or not self.weighting.random_within_strata:
            return None
        if isinstance(class_or_average, int):
            return self._possible_in_strata(predicted, class_or_average)
        possible = self._possible_in_strata(predicted)
        for j in range(len(self.true), len(true)):
            if predicted[j] == self.n_classes:
                possible[j] = np.delete(self.possible, true[j], axis=1).any(axis=1)
        return possible

    def _interval_with_pseudo_labels(
        self,
        name: str,
        class_or_average: int | str | None,
        function: Metric,
        counted: BoolArray,
        result: Linearised,
        target: str,
    ) -> tuple[BinomialInterval, float]:
        """Return the interval on the effective trials of labels and pseudo-labels, and its standard error.

        `counted` (n,) are the units in the denominator.
        """
        is_single_class = isinstance(class_or_average, int)
        indicator = counted.astype(np.float64)
        lowest, highest = _bounds_of(name)
        classes: range | list[int] = range(self.n_classes)
        if isinstance(class_or_average, int):
            classes = [class_or_average]
        negative = is_single_class and name in METRICS_OF_OTHER_CLASSES
        true, predicted, shares = self._add_pseudo_labels(classes, negative=negative)
        possible = self._strata_of_labels(class_or_average, true, predicted)
        smoothing = smooth_labels(self.weighting, shares, indicator if is_single_class else None, possible)
        weights = smoothing.weights
        value, slopes, _ = function(Shares.of(true, predicted, weights, self.n_classes + 1))
        variable = slopes.per_unit(true, predicted)
        n = len(self.true)
        design_variance = smoothing.variance(variable)
        factor = 1.0
        if is_single_class:
            # Pseudo-labels increase the denominator, which would make the variance too small.
            observed_weight = float(self.weighting.weights @ indicator)
            smoothed_weight = float(weights[:n] @ indicator) + float(weights[n:].sum())
            factor = max(smoothed_weight / observed_weight, 1.0) ** 2
        variance_for_trials, error = smoothed_variance(
            design_variance, variable, weights, result, self.weighting, target, factor
        )
        # The variance of a metric is compared with that of a binary outcome at its bounds with the same mean.
        highest_share = (value - lowest) / (highest - lowest)
        binary_variance = highest_share * (1.0 - highest_share) * (highest - lowest) ** 2
        trials = binary_variance / variance_for_trials if variance_for_trials > 0 else np.inf
        df = satterthwaite_of_groups(true, weights, variable)
        interval = BinomialInterval(
            value=result.value, bounds=(lowest, highest), trials=trials, degrees_of_freedom=df
        )
        return interval, error


def _bounds_of(name: str) -> tuple[float, float]:
    """Return the bounds of a metric."""
    if name in SIGNED:
        return (-1.0, 1.0)
    return (0.0, 1.0)


def macro_with_unseen_classes(
    name: str,
    class_estimates: Sequence[Estimate],
    average_over: Callable[[list[int]], Estimate],
    subject: str = "classes",
) -> Estimate | None:
    """Return a macro average if a few classes have no label in the denominator; None if more have none.

    The mean over the other classes is biased, because classes without labels are rare, and models are worse
    on rare classes. Their metric is therefore assumed to equal that of the classes with the fewest labels;
    the interval allows for any value from 0 to 1.

    Parameters
    ----------
    name : str
        The metric.
    class_estimates : sequence of Estimate (K,)
        The metric of each class.
    average_over : callable
        Returns the macro average over some of the classes.
    subject : str
        The noun for the classes in a note.
    """
    labelled_classes = [k for k, entry in enumerate(class_estimates) if np.isfinite(entry.value)]
    n_classes = len(class_estimates)
    missing = n_classes - len(labelled_classes)
    if not 0 < missing <= MAX_UNSEEN_SHARE * n_classes:
        return None
    fewest = min(class_estimates[k].n for k in labelled_classes)
    values_of_rarest = [class_estimates[k].value for k in labelled_classes if class_estimates[k].n == fewest]
    assumed = float(np.mean(values_of_rarest))
    labelled_mean = average_over(labelled_classes)
    share = len(labelled_classes) / n_classes
    value = share * labelled_mean.value + (1.0 - share) * assumed
    note = (
        f"{missing} of {n_classes} {subject} have no label in the denominator: their {name} is assumed to be "
        f"the same as for the {subject} with the fewest labels ({assumed:.3g}), and the interval allows for "
        "any value from 0 to 1"
    )
    interval = UnseenClassesInterval(value=value, bounds=(0.0, 1.0), labelled_mean=labelled_mean, share=share)
    # As if the metric of the other classes were uniformly distributed from 0 to 1.
    standard_error = np.hypot(share * labelled_mean.standard_error, (1.0 - share) / np.sqrt(12.0))
    return replace(
        labelled_mean,
        value=value,
        standard_error=float(standard_error),
        evidence=replace(labelled_mean.evidence, value=value, interval=interval),
        remarks=(*labelled_mean.remarks, note),
    )


# Error on each side of an interval whose half-width is one standard error.
ONE_STANDARD_ERROR = float(scipy.special.ndtr(-1.0))

# Share of missed units of a class for which a note states the number of labels that would exclude it.
_MISSED_SHARE = 0.1

# Maximum share of classes without labels in a mean over classes. With more, the interval is too wide to use.
MAX_UNSEEN_SHARE = 0.2

# Whether a metric of a class depends on its hits and on its misses, for those that need only one of them.
_NEEDS = {
    **dict.fromkeys(("precision", "false_discovery_rate"), (True, False)),
    "negative_predictive_value": (False, True),
}

# Effective share of the labels (Kish) below which the trials of a metric are not reliable. With half of the
# units in a stratum of 20 of 200 labels (a share of one third), intervals of rates covered .89 to .92.
MIN_KISH_SHARE = 0.5

# The same for strata of groups, of which nothing indicates the rate of errors. With 11 % of the units in a
# stratum of 40 of 140 labels (a share of .87), intervals of the negative predictive value covered .87, and
# with 100 of 200 labels (.62), those of the specificity .64, because the larger stratum may show no error.
# In strata of scores, where scores that lie were measured, recall would be 2.8 times as wide for nothing.
MIN_KISH_SHARE_OF_GROUPS = 0.9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnseenClassesInterval(OffsetInterval):
    """A mean over classes of which some have no label: their metric may be any value from 0 to 1.

    Parameters
    ----------
    labelled_mean : Estimate
        The mean over the classes with labels.
    share : float
        The share of these classes.
    """

    labelled_mean: Term
    share: float

    method = "mover"

    def offsets(self, error: float, alternative: str) -> tuple[float, float]:
        """Return the distances of the limits below and above the mean."""
        low, high = self.labelled_mean.confidence_interval(two_sided_level(error))
        lowest = self.share * low
        highest = self.share * high + 1.0 - self.share
        return self.value - lowest, highest - self.value


def _has_equal_labels(term: Term) -> bool:
    """Return whether all labels of an estimate are equal, so that its variance is 0."""
    return isinstance(term, Estimate) and not term.evidence.variance > 0


def _variance_of_terms(interval: SumInterval) -> float:
    """Return the variance of a sum of estimates if one of them has only equal labels, otherwise 0.

    Such a term has the variance of its trials with half a label more at each bound.
    """
    if not any(_has_equal_labels(term) for term in interval.terms):
        return 0.0
    errors = np.zeros(len(interval.terms))
    for k, term in enumerate(interval.terms):
        errors[k] = term.standard_error
        limits_of_term = term.evidence.interval
        if isinstance(limits_of_term, UnseenClustersInterval):
            limits_of_term = limits_of_term.inner
        if (
            _has_equal_labels(term)
            and isinstance(limits_of_term, BinomialInterval)
            and np.isfinite(limits_of_term.trials)
        ):
            trials = limits_of_term.trials + 1.0
            share = (limits_of_term.trials * term.value + 0.5) / trials
            errors[k] = max(errors[k], np.sqrt(share * (1.0 - share) / trials))
    errors *= interval.coefficients
    return max(float(errors @ interval.correlation @ errors), 0.0)
