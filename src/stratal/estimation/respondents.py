"""The labelled units of a sample in strata that all have labels, and the scale of their outcomes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from stratal.arrays import BoolArray, FloatArray, IntArray, Record, are_binary, code_count
from stratal.designs import StratifiedWeighting, Weighting
from stratal.designs.margins import unlabelled_level_notes
from stratal.designs.sample import Sample, require_column_name
from stratal.designs.stratum_moments import stratum_counts
from stratal.errors import InputError, LabelError, check_choice, finite_bounds, list_first, warn_caller
from stratal.estimation.estimate import Estimate, Nonresponse
from stratal.estimation.missing_labels import missing_label_notes, unrepresentative_notes
from stratal.estimation.nonresponse_notes import MAX_STRATA_NAMED, nonresponse_notes
from stratal.estimation.resolve import LabelOutcomes
from stratal.estimation.stratum_table import StratumTable
from stratal.intervals.outcomes import OutcomeKind
from stratal.population.column_names import MISSING_PROXY, OWN_STRATUM_GROUP
from stratal.population.expressions import Expression, implies
from stratal.population.rules import possible_levels
from stratal.population.summary import StratumSummary
from stratal.question.chosen_rows import ALL, MIN_RESPONSE_RATE
from stratal.randomness import id_text
from stratal.strata import Strata


def unlabelled_stratum_tests(sample: Sample) -> list[Expression]:
    """Return the tests of strata that got no labels because their influence is known.

    The units of such a stratum pass its test.
    """
    strata = sample.design.strata
    known_tests = () if strata is None else strata.known_influences
    return [test for h, test in enumerate(known_tests) if test is not None and sample.n_h[h] == 0]


def unneeded_strata(sample: Sample, strata: Strata, irrelevant: Expression | None) -> BoolArray:
    """Return whether each stratum (H,) got no labels by plan and needs none for the estimand.

    Parameters
    ----------
    sample : Sample
    strata : Strata
        The strata of the design of the sample.
    irrelevant : Expression, optional
        1 for the units whose contribution to the estimand is known without a label. Default: none.

    Raises
    ------
    InputError
        If the estimand needs labels in some of these strata.
    """
    is_unlabelled: BoolArray = strata.is_known & (sample.n_h == 0)
    for h in np.flatnonzero(is_unlabelled).tolist():
        test = strata.known_influences[h]
        if test is None or irrelevant is None or not implies(test, irrelevant):
            share = float(strata.weights[is_unlabelled].sum())
            requested = sample.question.estimand or {}
            raise InputError(
                f"this sample cannot be used for this estimate: stratum '{strata.names[h]}' got no label, "
                f"because no label is required there for {requested.get('kind', 'what it was drawn for')!r}",
                given=f"{share:.1%} of the units in such strata",
                action="Estimate what the sample was drawn for, or draw another sample for this estimate.",
            )
    return is_unlabelled


def default_target(sample: Sample, labelled: BoolArray) -> str:
    """Return the default target: the superpopulation if every unit is labelled, otherwise the population.

    If every unit is labelled, the mean of the population is known. The superpopulation is also the target of
    a table in which all rows were to be labelled, if only a few labels are missing. `labelled` (n,) is
    whether each drawn unit has a label.
    """
    is_census = sample.size == sample.population_size and bool(np.all(labelled))
    share = int(np.count_nonzero(labelled)) / sample.population_size
    is_incomplete_census = sample.question.chosen == ALL and share >= MIN_RESPONSE_RATE
    if is_census or is_incomplete_census:
        return "superpopulation"
    return "population"


def worst_bounds(
    sample: Sample, labelled: BoolArray, z: FloatArray, bounds: tuple[float, float] | None
) -> tuple[float, float] | None:
    """Return the weighted means if every missing label is at the lower bound, or at the upper bound.

    None if no label is missing, or the outcome has no bounds. These are worst-case bounds (Manski 1989),
    which require no assumption about the reason why labels are missing.

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
    lowest, highest = bounds
    low = np.full(sample.size, lowest, dtype=np.float64)
    high = np.full(sample.size, highest, dtype=np.float64)
    low[labelled] = z
    high[labelled] = z
    return float(weights @ low / weights.sum()), float(weights @ high / weights.sum())


# Note on a sample that was extended until its interval was narrow enough. The measured bias was 0.1 to 0.4
# standard errors in eight settings, at most 0.55 (docs/methods/adaptive.md).
_STOPPING_NOTE = (
    "the number of drawn units depended on the labels: units were added until the interval was ± {:g}. Such "
    "an estimate is biased towards agreement, by up to half a standard error (most of all if the proxy is "
    "overconfident)"
)


def unlabelled_strata_note(names: tuple[str, ...], sizes: IntArray, counts: IntArray) -> str:
    """Return a note on strata without labels that were merged with others, and on the assumption.

    `names` (H,), `sizes` N_h (H,) and `counts`, the numbers of labels (H,), are those of all strata.
    """
    empty = np.flatnonzero(counts == 0)
    share = f"{float(np.sum(sizes[empty]) / np.sum(sizes)):.1%} of the units"
    shown = list_first((names[h] for h in empty), MAX_STRATA_NAMED)
    consequence = f"{len(empty)} strata have no label ({share}): {shown} were merged with their neighbours"
    if len(empty) == 1:
        consequence = f"1 stratum has no label ({share}): {shown} was merged with its neighbour"
    return (
        f"{consequence}. The estimate assumes that units without labels are like those in neighbouring "
        "strata, and the interval does not allow for a difference"
    )


def merge_codes(counts: IntArray) -> IntArray:
    """Return new codes (H,): each stratum without labels has the code of the nearest stratum with labels.

    `counts` (H,) are the numbers of labels.
    """
    labelled_strata = np.flatnonzero(counts > 0)
    nearest = [int(labelled_strata[np.argmin(np.abs(labelled_strata - h))]) for h in range(len(counts))]
    return np.unique(nearest, return_inverse=True)[1].astype(np.int64)


# Maximum change of a stratum's share by rounding to whole units: invisible in percent with one decimal.
_SHARE_ROUNDING = 5e-4


def distribute_sizes(sizes: IntArray, empty: BoolArray) -> IntArray:
    """Return the sizes (H,) with the units of empty strata distributed among the others in proportion.

    A small number of units cannot be distributed in proportion. The total is then slightly larger, which
    makes the labelled share smaller and the variance larger.
    """
    remaining: IntArray = np.where(empty, 0, sizes)
    units = int(sizes.sum())
    labelled_units = int(remaining.sum())
    shares = remaining / labelled_units
    # With this multiple of the labelled strata, the shares are exact, so that the search ends there.
    multiple = -(-units // labelled_units)
    for total in range(units, labelled_units * multiple):
        rounded = np.round(shares * total).astype(np.int64)
        if np.max(np.abs(rounded / max(int(rounded.sum()), 1) - shares)) <= _SHARE_ROUNDING:
            return np.asarray(np.maximum(rounded, remaining))
    return np.asarray(remaining * multiple)


def _lacks_proxy(strata: Strata) -> BoolArray:
    """Return whether each stratum (H,) contains only units whose proxy is missing."""
    possible = possible_levels(strata.rule, OWN_STRATUM_GROUP, (MISSING_PROXY,))
    return possible[:, 0] & ~possible[:, 1]


def _missing_proxy_note(names: tuple[str, ...], sizes: IntArray, empty: BoolArray) -> str:
    """Return a note on the assumption about units without a proxy, none of which has a label."""
    share = float(np.sum(sizes[empty]) / np.sum(sizes))
    shown = list_first((names[h] for h in np.flatnonzero(empty)), MAX_STRATA_NAMED)
    return (
        f"no label in {shown} ({share:.1%} of the units): the estimate assumes that these units "
        "are like all others, and the interval does not allow for a difference"
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Respondents(Record):
    """The labelled units of a sample, with strata that all have labels.

    A stratum without a label is merged with its neighbour, which a note states.

    Parameters
    ----------
    stratum : int (m,)
    weighting : Weighting
    summary : StratumSummary
    names : tuple of str (H,)
    notes : tuple of str
    codes : int (strata of the design,), optional
        The new stratum of each stratum, if strata were merged.
    kept_strata : bool (strata of the design,), optional
        Whether each stratum is used, if some need no label. `codes` then refers to the used strata.
    share : float
        Share of the population in the used strata.
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
        """Return the labelled units of a sample.

        Parameters
        ----------
        sample : Sample
        labelled : bool (n,)
        irrelevant : Expression, optional
            1 for the units whose contribution to the estimand is known without a label. Strata of such units
            without labels are not used.

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
            retained = ~unneeded_strata(sample, strata, irrelevant)
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
        has_empty_strata = weighting.random_within_strata and not (counts > 0).all() and len(stratum) > 0
        respondents = cls(
            stratum=stratum,
            weighting=weighting,
            summary=summary,
            names=names,
            notes=_missing_label_notes(sample, labelled, has_empty_strata=has_empty_strata),
            kept_strata=retained,
            share=share,
        )
        if has_empty_strata:
            lacks_proxy = np.zeros(len(counts), dtype=bool)
            if isinstance(weighting, StratifiedWeighting) and strata is not None and retained is None:
                lacks_proxy = (counts == 0) & _lacks_proxy(strata)
            respondents = respondents._merge_empty_strata(counts, lacks_proxy)
        if sample.half_width is not None:
            note = _STOPPING_NOTE.format(sample.half_width)
            respondents = replace(respondents, notes=(*respondents.notes, note))
        return respondents

    def _merge_empty_strata(self, counts: IntArray, lacks_proxy: BoolArray) -> Respondents:
        """Return the units with each stratum without labels merged into a neighbour, with a warning.

        Units without a proxy (`lacks_proxy`, (H,)) have no neighbouring stratum. They are assumed to be like
        all others, and are distributed among the other strata. `counts` (H,) are the numbers of labels.
        """
        notes = self.notes
        weighting = self.weighting
        summary = self.summary
        if np.any(lacks_proxy):
            notes = (*notes, _missing_proxy_note(self.names, summary.sizes, lacks_proxy))
        if np.any(counts[~lacks_proxy] == 0):
            merged_counts = np.where(lacks_proxy, 1, counts)
            notes = (*notes, unlabelled_strata_note(self.names, summary.sizes, merged_counts))
        warn_caller(notes[-1])
        if isinstance(weighting, StratifiedWeighting) and np.any(lacks_proxy):
            sizes = distribute_sizes(summary.sizes, lacks_proxy)
            weighting = replace(weighting, sizes=sizes)
            summary = replace(summary, sizes=sizes)
        codes = merge_codes(counts)
        merged = [np.flatnonzero(codes == code) for code in range(code_count(codes))]
        return replace(
            self,
            stratum=codes[self.stratum],
            weighting=weighting.merge_strata(codes),
            summary=summary.merge_strata(codes),
            names=tuple(" + ".join(self.names[h] for h in members) for members in merged),
            notes=notes,
            codes=codes,
        )

    def complete(self, estimate: Estimate, sample: Sample, **more: Any) -> Estimate:
        """Return an estimate from these units with the fields that their sample determines, and others."""
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


def _missing_label_notes(sample: Sample, labelled: BoolArray, *, has_empty_strata: bool) -> tuple[str, ...]:
    """Return notes on missing labels of the drawn units (n,), and warn if they are not missing at random."""
    notes = tuple[str, ...]()
    by_proxy: tuple[str, ...] = ()
    if not np.all(labelled):
        notes = nonresponse_notes(sample, labelled, without_warning=has_empty_strata)
        by_proxy = missing_label_notes(sample, labelled)
    by_level = unlabelled_level_notes(sample, labelled)
    for note in (*by_proxy, *by_level):
        warn_caller(note)
    return (*by_level, *unrepresentative_notes(sample), *by_proxy, *notes)


def known_outcome(
    sample: Sample,
    z: FloatArray,
    outcome: OutcomeKind | None = None,
    bounds: tuple[float, float] | None = None,
    outcomes: LabelOutcomes | None = None,
    labelled: BoolArray | None = None,
) -> tuple[OutcomeKind | None, tuple[float, float] | None, tuple[str, ...]]:
    """Return the scale and the bounds of the outcome, and notes on them.

    The first source that has them is used: the arguments `outcome` and `bounds`, the words of the labels
    (`outcomes`), the sample's question. Otherwise, labels (m,) that are all 0 or 1 determine them, with a
    note. If the scale is None, `infer_outcome` determines it.
    """
    if outcome == "binary":
        return outcome, None, ()
    if bounds is not None or outcome == "unbounded":
        return outcome, bounds, ()
    if outcomes is not None and outcomes.bounds is not None:
        return outcome, outcomes.bounds, ()
    # `Any`, because the field has the type `str`. The question checked that it is a scale.
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
    is_binary = are_binary(z) and len(outside) > 0
    inferred_bounds = None if len(outside) else common_bounds
    # The mean of several answers of 0 and 1 is between these.
    are_averages = (
        inferred_bounds is None and not is_binary and outcomes is not None and outcomes.right_or_wrong
    )
    if are_averages:
        inferred_bounds = (0.0, 1.0)
    if outcome is not None:
        return outcome, inferred_bounds, ()
    if sample.question.outcome.scale is None and (is_binary or are_averages):
        return None, inferred_bounds, (_UNDECLARED_SCALE_NOTE,)
    if inferred_bounds is not None or common_bounds is None or is_binary:
        return None, inferred_bounds, ()
    note = (
        f"{len(outside)} of {len(z)} labels lie outside the proxy's bounds, {common_bounds[0]:g} to "
        f"{common_bounds[1]:g} (first: {outside[0]:g}), so the outcome is assumed to be unbounded; it is "
        "better to state its bounds (--bounds LOW,HIGH)"
    )
    return None, None, (note,)


_UNDECLARED_SCALE_NOTE = (
    "the outcome is taken as 0 or 1, since all labels are 0 or 1 and nothing else was declared; for "
    "counts or scores, give outcome='unbounded' (--outcome unbounded) or its bounds"
)


# Largest share of labels that are assumed to be typing errors. With a larger share, the scale is another one.
_MAX_TYPING_ERRORS = 0.05


def refuse_outside(
    z: FloatArray,
    sample: Sample,
    labelled: BoolArray | None,
    outcome: object,
    bounds: tuple[float, float] | None,
) -> None:
    """Raise an error for labels (m,) outside the allowed values, with the first such unit.

    `labelled` (n,) is whether each drawn unit has one of these labels; by default, all have.
    """
    n_outside = int(((z < 0) | (z > 1)).sum())
    # A few other numbers among labels of 0 and 1 are probably typing errors, such as 11.
    n_binary = int(np.sum((z == 0) | (z == 1))) if n_outside else 0
    has_typing_errors = n_binary >= 2 and 0 < n_outside <= max(1.0, _MAX_TYPING_ERRORS * len(z))
    if outcome == "binary":
        wrong = (z != 0) & (z != 1)
        allowed = "0 or 1"
    elif bounds is not None and outcome != "unbounded":
        bounds = finite_bounds(bounds)
        wrong = (z < bounds[0]) | (z > bounds[1])
        allowed = f"{bounds[0]:g} to {bounds[1]:g}"
    elif bounds is None and outcome is None and has_typing_errors and n_binary + n_outside == len(z):
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
