"""The labelled units of a sample as estimators need them, and notes on the units without a label."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray, Record, code_count
from stratal.designs import StratifiedWeighting, Weighting
from stratal.designs.margins import unlabelled_level_notes
from stratal.designs.sample import Sample, require_column_name
from stratal.designs.stratum_moments import stratum_counts
from stratal.errors import InputError, LabelError, check_choice, finite_bounds, list_first, warn_caller
from stratal.estimation.estimate import Estimate, Nonresponse
from stratal.estimation.missing_labels import missing_label_notes, unrepresentative_notes
from stratal.estimation.nonresponse_notes import STRATA_NAMED, nonresponse_notes
from stratal.estimation.resolve import LabelOutcomes
from stratal.estimation.stratum_table import StratumTable
from stratal.intervals.evidence import OutcomeKind
from stratal.population.column_names import MISSING_PROXY, OWN_STRATUM_GROUP
from stratal.population.expressions import Expression, implies
from stratal.population.rules import possible_levels
from stratal.population.summary import StratumSummary
from stratal.question.chosen_rows import ALL, NEARLY_ALL
from stratal.randomness import id_text
from stratal.strata import Strata


def known_without_labels(sample: Sample) -> list[Expression]:
    """Return the formulas that are 1 in strata without labels, which the estimand does not need."""
    strata = sample.design.strata
    known_tests = () if strata is None else strata.known_influences
    return [one for h, one in enumerate(known_tests) if one is not None and sample.n_h[h] == 0]


def unlabelled_strata(sample: Sample, strata: Strata, irrelevant: Expression | None) -> BoolArray:
    """Return which strata (H,) got no labels by plan, after a check that the estimand needs none there.

    Parameters
    ----------
    sample : Sample
    strata : Strata
        The strata of its design.
    irrelevant : Expression, optional
        1 for the units whose part of the estimand is known without a label.

    Raises
    ------
    InputError
        If the estimand needs labels in some of these strata.
    """
    without: BoolArray = strata.is_known & (sample.n_h == 0)
    for h in np.flatnonzero(without).tolist():
        test = strata.known_influences[h]
        if test is None or not implies(test, irrelevant):
            share = float(strata.weights[without].sum())
            requested = sample.question.estimand or {}
            raise InputError(
                f"this sample cannot be used for this estimate: stratum '{strata.names[h]}' got no label, "
                f"because no label is required there for {requested.get('kind', 'what it was drawn for')!r}",
                given=f"{share:.1%} of the units in such strata",
                action="Estimate what the sample was drawn for, or draw another sample for this estimate.",
            )
    return without


def unstated_target(sample: Sample, labelled: BoolArray) -> str:
    """Return the target where none is stated: the superpopulation if every unit is labelled.

    The values of the units themselves are then known. The superpopulation is also the target of a table in
    which every row should have a label and a few labels are missing: a single missing label hardly changes
    the information on the superpopulation, and does not change the purpose of the labels.

    Parameters
    ----------
    sample : Sample
    labelled : bool (n,)
    """
    is_census = sample.size == sample.population_size and bool(np.all(labelled))
    share = int(np.count_nonzero(labelled)) / sample.population_size
    is_incomplete_census = sample.question.chosen == ALL and share >= NEARLY_ALL
    if is_census or is_incomplete_census:
        return "superpopulation"
    return "population"


def worst_bounds(
    sample: Sample, labelled: BoolArray, z: FloatArray, bounds: tuple[float, float] | None
) -> tuple[float, float] | None:
    """Return the weighted mean if every missing label is at the lower bound, and if at the upper.

    None if no label is missing, or the outcome has no bounds. These are worst-case bounds (Manski 1989):
    they depend neither on the proxy nor on an assumption about why labels are missing.

    Parameters
    ----------
    sample : Sample
    labelled : bool (n,)
    z : float (m,)
        Outcomes of the labelled units.
    bounds : (float, float), optional
    """
    if bounds is None or np.all(labelled):
        return None
    weights = sample.weighting(np.ones(sample.size, dtype=bool)).weights
    low, high = np.full((2, sample.size), np.reshape(bounds, (2, 1)), dtype=np.float64)
    low[labelled] = high[labelled] = z
    return float(weights @ low / weights.sum()), float(weights @ high / weights.sum())


# Note on a sample that grew until its interval was narrow enough. The bias was measured: .1 to .4 standard
# errors in eight cells, .55 at worst (docs/methods/adaptive.md).
_STOPPED = (
    "the number of drawn units depended on the labels: units were added until the interval was ± {:g}. Such "
    "an estimate is biased towards agreement, by up to half a standard error (most of all if the proxy is "
    "overconfident)"
)


def strata_without_answer(names: tuple[str, ...], sizes: IntArray, counts: IntArray) -> str:
    """Return a note on strata without labels, and on the assumption of an estimate that merges them.

    Parameters
    ----------
    names : tuple of str (H,)
    sizes, counts : int (H,)
        N_h, and labels of each stratum.
    """
    empty = np.flatnonzero(counts == 0)
    share = f"{float(np.sum(sizes[empty]) / np.sum(sizes)):.1%} of the units"
    shown = list_first((names[h] for h in empty), STRATA_NAMED)
    consequence = f"{len(empty)} strata have no label ({share}): {shown} were merged with their neighbours"
    if len(empty) == 1:
        consequence = f"1 stratum has no label ({share}): {shown} was merged with its neighbour"
    return (
        f"{consequence}. The estimate assumes that units without labels are like those in neighbouring "
        "strata, and the interval does not allow for a difference"
    )


def merge_empty(counts: IntArray) -> IntArray:
    """Return new codes (H,): each stratum without labels takes that of the nearest one with labels."""
    filled = np.flatnonzero(counts > 0)
    nearest = [int(filled[np.argmin(np.abs(filled - h))]) for h in range(len(counts))]
    return np.unique(nearest, return_inverse=True)[1].astype(np.int64)


# Maximum change of a stratum's share by rounding to whole units: it is not visible in percent with a decimal.
_SHARE_ROUNDING = 5e-4


def spread_sizes(sizes: IntArray, empty: BoolArray) -> IntArray:
    """Return the sizes (H,) with the units of empty strata distributed among the others in proportion.

    A small number of units cannot be distributed in proportion. The total is then slightly larger, which
    makes the labelled share smaller and the variance larger.
    """
    remaining: IntArray = np.where(empty, 0, sizes)
    units = int(sizes.sum())
    labelled_units = int(remaining.sum())
    shares = remaining / labelled_units
    # Exact for this multiple of the labelled strata, so that the search ends there.
    multiple = -(-units // labelled_units)
    for total in range(units, labelled_units * multiple):
        rounded = np.round(shares * total).astype(np.int64)
        if np.max(np.abs(rounded / max(int(rounded.sum()), 1) - shares)) <= _SHARE_ROUNDING:
            return np.asarray(np.maximum(rounded, remaining))
    return np.asarray(remaining * multiple)


def _has_no_proxy(strata: Strata) -> BoolArray:
    """Return which strata (H,) contain only units whose proxy is missing."""
    possible = possible_levels(strata.rule, OWN_STRATUM_GROUP, (MISSING_PROXY,))
    return possible[:, 0] & ~possible[:, 1]


def _spread_note(names: tuple[str, ...], sizes: IntArray, empty: BoolArray) -> str:
    """Return a note on the assumption about units without a proxy, none of which has a label."""
    share = float(np.sum(sizes[empty]) / np.sum(sizes))
    shown = list_first((names[h] for h in np.flatnonzero(empty)), STRATA_NAMED)
    return (
        f"no label in {shown} ({share:.1%} of the units): the estimate assumes that these units "
        "are like all others, and the interval does not allow for a difference"
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Respondents(Record):
    """The labelled units of a sample, with strata that all have labels, as estimators require.

    A stratum without a label is merged with its neighbour, which a note states.

    Parameters
    ----------
    stratum : int (m,)
    weighting : Weighting
    summary : StratumSummary
    names : tuple of str (H,)
    notes : tuple of str
    codes : int (strata of the design,), optional
        The merged stratum of each stratum, if strata were merged.
    kept_strata : bool (strata of the design,), optional
        The strata that were not left out, if some were; `codes` then refers to these.
    share : float
        Share of the population in these strata: below 1 if the others need no label.
    """

    stratum: IntArray
    weighting: Weighting
    summary: StratumSummary
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()
    codes: IntArray | None = None
    kept_strata: BoolArray | None = None
    share: float = 1.0

    @classmethod
    def of(cls, sample: Sample, labelled: BoolArray, irrelevant: Expression | None = None) -> Respondents:
        """Return the labelled units, strata without labels merged into a neighbour.

        Parameters
        ----------
        sample : Sample
        labelled : bool (n,)
        irrelevant : Expression, optional
            1 for the units whose part of the estimand is known without a label. Strata of such units that
            have no label are left out.

        Raises
        ------
        InputError
            If the sample has no labels in strata that the estimand needs.
        """
        stratum = sample.stratum[labelled]
        names = sample.design.stratum_names
        summary = sample.summary
        strata = sample.design.strata
        share = 1.0
        if strata is not None and strata.known_influences:
            retained = ~unlabelled_strata(sample, strata, irrelevant)
        else:
            retained = None
        weighting = sample.weighting(labelled)
        if retained is not None and not np.all(retained):
            stratum = (np.cumsum(retained) - 1)[stratum]
            summary = summary.select_strata(retained)
            names = tuple(name for name, keep in zip(names, retained, strict=True) if keep)
            weighting = StratifiedWeighting(
                stratum=stratum,
                sizes=summary.sizes,
                has_adaptive_allocation=weighting.has_adaptive_allocation,
            )
            share = summary.size / sample.summary.size
        counts = stratum_counts(stratum, len(summary.sizes))
        empty = weighting.random_within_strata and not (counts > 0).all() and len(stratum) > 0
        codes = None
        notes = tuple[str, ...]()
        if len(stratum) < sample.size:
            notes = nonresponse_notes(sample, labelled, by_stratum_alone=empty)
            by_proxy = missing_label_notes(sample, labelled)
            for note in by_proxy:
                warn_caller(note)
            notes = (*by_proxy, *notes)
        without_label = unlabelled_level_notes(sample, labelled)
        for note in without_label:
            warn_caller(note)
        notes = (*without_label, *unrepresentative_notes(sample), *notes)
        if empty:
            codes = merge_empty(counts)
            # Units without a proxy have no neighbouring stratum: they are assumed to be like all others.
            without_proxy = np.zeros(len(counts), dtype=bool)
            if isinstance(weighting, StratifiedWeighting) and strata is not None and retained is None:
                without_proxy = (counts == 0) & _has_no_proxy(strata)
            if np.any(without_proxy):
                notes = (*notes, _spread_note(names, summary.sizes, without_proxy))
            if np.any(counts[~without_proxy] == 0):
                merged_counts = np.where(without_proxy, 1, counts)
                notes = (*notes, strata_without_answer(names, summary.sizes, merged_counts))
            warn_caller(notes[-1])
            if isinstance(weighting, StratifiedWeighting) and np.any(without_proxy):
                sizes = spread_sizes(summary.sizes, without_proxy)
                weighting = replace(weighting, sizes=sizes)
                summary = replace(summary, sizes=sizes)
            merged = [np.flatnonzero(codes == code) for code in range(code_count(codes))]
            names = tuple(" + ".join(names[h] for h in members) for members in merged)
            stratum = codes[stratum]
            weighting = weighting.merge_strata(codes)
            summary = summary.merge_strata(codes)
        if sample.half_width is not None:
            notes = (*notes, _STOPPED.format(sample.half_width))
        return cls(
            stratum=stratum,
            weighting=weighting,
            summary=summary,
            names=names,
            notes=notes,
            codes=codes,
            kept_strata=retained,
            share=share,
        )

    def complete(self, estimate: Estimate, sample: Sample, **more: Any) -> Estimate:
        """Return an estimate from these units with the facts of their sample, and more fields."""
        sizes = self.summary.sizes
        table = estimate.stratum_table
        if table is not None:
            table = replace(table, names=self.names)
        elif len(self.names) == len(sizes) > 1:
            table = StratumTable(names=self.names, sizes=sizes, stratum=self.stratum)
        evidence = estimate.evidence
        reference_population = estimate.reference_population
        if self.share < 1.0 and evidence.linearised and reference_population is None:
            # A simple random sample would be drawn from all units, also those that need no label.
            reference_population = (evidence.outcome_variance / self.share, sample.population_size)
        return replace(
            estimate,
            reference_population=reference_population,
            population_size=sample.population_size,
            design=sample.design.kind,
            nonresponse=Nonresponse(drawn=sample.size, labelled=len(self.stratum)),
            stratum_table=table,
            remarks=(*self.notes, *estimate.remarks),
            **more,
        )


def known_outcome(
    sample: Sample,
    z: FloatArray,
    outcome: OutcomeKind | None = None,
    bounds: tuple[float, float] | None = None,
    outcomes: LabelOutcomes | None = None,
    labelled: BoolArray | None = None,
) -> tuple[OutcomeKind | None, tuple[float, float] | None, tuple[str, ...]]:
    """Return the scale and the bounds of the outcome, and notes on them.

    The first source that has them is used: the user's statement, the words of the labels, the sample's
    question. Otherwise labels that are all 0 or 1 determine them, with a note. If the scale is None,
    `infer_outcome` determines it.
    """
    if outcome == "binary":
        return outcome, None, ()
    if bounds is not None or outcome == "unbounded":
        return outcome, bounds, ()
    if outcomes is not None and outcomes.bounds is not None:
        return outcome, outcomes.bounds, ()
    # The question checked that the text is a scale; its type is `str`.
    scale: Any = sample.question.outcome.scale
    if outcome is None and scale not in (None, "binary", "bounded"):
        return scale, None, ()
    limits = sample.question.outcome.limits
    # Limits that equal the bounds of a proxy may have been derived from it, so that labels may exceed them.
    of_proxies = [info.bounds for info in sample.proxy_info if info.scaled]
    if limits is not None and limits not in of_proxies:
        refuse_outside(z, sample, labelled if outcomes is None else outcomes.labelled, None, limits)
        return outcome, limits, ()
    common_bounds = next((proxy_bounds for proxy_bounds in of_proxies if proxy_bounds is not None), None)
    if common_bounds is not None:
        outside = z[(z < common_bounds[0]) | (z > common_bounds[1])]
    else:
        outside = z
    are_binary = bool(np.all((z == 0) | (z == 1))) and len(outside) > 0
    inferred_bounds = None if len(outside) else common_bounds
    # The mean of several answers of 0 and 1 is between these.
    are_averages = (
        inferred_bounds is None and not are_binary and outcomes is not None and outcomes.right_or_wrong
    )
    if are_averages:
        inferred_bounds = (0.0, 1.0)
    if outcome is not None:
        return outcome, inferred_bounds, ()
    if sample.question.outcome.scale is None and (are_binary or are_averages):
        return None, inferred_bounds, (_UNDECLARED,)
    if inferred_bounds is not None or common_bounds is None or are_binary:
        return None, inferred_bounds, ()
    note = (
        f"{len(outside)} of {len(z)} labels lie outside the proxy's bounds, {common_bounds[0]:g} to "
        f"{common_bounds[1]:g} (first: {outside[0]:g}), so the outcome is assumed to be unbounded; it is "
        "better to state its bounds (--bounds LOW,HIGH)"
    )
    return None, None, (note,)


_UNDECLARED = (
    "the outcome is taken as 0 or 1, since all labels are 0 or 1 and nothing else was declared; for "
    "counts or scores, give outcome='unbounded' (--outcome unbounded) or its bounds"
)


# Largest share of labels that count as typing errors. A larger share shows another scale.
_MAX_TYPING_ERRORS = 0.05


def refuse_outside(
    z: FloatArray,
    sample: Sample,
    labelled: BoolArray | None,
    outcome: object,
    bounds: tuple[float, float] | None,
) -> None:
    """Raise an error for labels outside the allowed values; it names the first such unit.

    `labelled` are the drawn units that have these labels, by default all.
    """
    outside = int(((z < 0) | (z > 1)).sum())
    # A few other numbers among labels of 0 and 1 are probably typing errors, such as 11.
    binary = int(np.sum((z == 0) | (z == 1))) if outside else 0
    has_typing_errors = binary >= 2 and 0 < outside <= max(1.0, _MAX_TYPING_ERRORS * len(z))
    if outcome == "binary":
        wrong = (z != 0) & (z != 1)
        allowed = "0 or 1"
    elif bounds is not None and outcome != "unbounded":
        bounds = finite_bounds(bounds)
        wrong = (z < bounds[0]) | (z > bounds[1])
        allowed = f"{bounds[0]:g} to {bounds[1]:g}"
    elif bounds is None and outcome is None and has_typing_errors and binary + outside == len(z):
        wrong = (z < 0) | (z > 1)
        allowed = "0 or 1, like all the others; or any number with outcome='unbounded' (--outcome unbounded)"
    else:
        return
    count = int(np.sum(wrong))
    if count:
        first = int(np.argmax(wrong))
        if labelled is None:
            ids = sample.ids
        else:
            ids = sample.ids[labelled]
        raise LabelError(
            f"{count} label{'s lie' if count > 1 else ' lies'} outside the outcome's values "
            f"(first: {z[first]:g} of id {id_text(ids.tolist()[first])!r})",
            allowed=allowed,
        )


def proxy_columns(sample: Sample, proxy: str | None) -> list[int]:
    """Return the columns of the proxies to use: the named one, or those on the outcome's scale, or all."""
    if proxy is None:
        scaled = [number for number, info in enumerate(sample.proxy_info) if info.scaled]
        return scaled or list(range(len(sample.proxy_info)))
    check_choice("proxy", require_column_name(proxy, "proxy"), sample.proxy_names)
    return [sample.proxy_names.index(proxy)]
