"""Extend a sample by a larger draw with the same seed; checks that populations and samples match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from stratal.arrays import AnyArray, IntArray, same_value, select_rows
from stratal.designs.sample import Design, Sample, make_sample
from stratal.errors import InputError, list_first
from stratal.population.column_names import stored_row_base
from stratal.population.digest import PopulationDigest
from stratal.population.drawn_units import DrawnUnits
from stratal.population.population import Population, require_population
from stratal.question.tags import SEPARATORS, is_set, read_set
from stratal.randomness import id_texts

# Maximum number of names in an error; the others are only counted, so that the message stays one sentence.
_MAX_NAMES = 3
# Longest value that an error quotes: one line.
_MAX_QUOTED_LENGTH = 80


def require_same_population(sample: Sample, population: Population) -> Population:
    """Return the population if the sample was drawn from it; row numbers have the base of the sample.

    The digest and the columns of the drawn units are compared. For a sample without a digest, its units and
    the sizes of its strata are compared.

    Raises
    ------
    InputError
        Names the difference: the number of units, ids, a proxy, a group, or a column that annotators see.
    """
    if population is sample.population:
        return population
    population = require_population(population, "population=")
    question = sample.question
    population = population.with_row_base(stored_row_base(question.row_base, question.id))
    missing_proxies = [name for name in sample.proxy_names if name not in population.proxy_names]
    if missing_proxies or population.size != sample.population_size:
        actual = f"{population.size} units"
        allowed = f"{sample.population_size} units"
        if missing_proxies:
            names = ", ".join(map(repr, missing_proxies))
            actual += f" without {names}"
            allowed += f" with {names}"
        raise other_population_error("", actual=actual, allowed=allowed)
    texts = id_texts(sample.ids)
    candidates = population.units_with_ids(texts)
    rows = rows_of(texts, candidates.ids)
    if -1 in rows:
        missing_unit = f"no unit {texts[rows.tolist().index(-1)]!r}"
        raise other_population_error(" ids differ", actual=missing_unit, allowed="the same ids")
    units = with_set_texts(candidates.only(rows), sample)
    check_equal_units(texts, unit_columns(units, population.proxy_names), unit_columns(sample))
    sample_digest = sample.population_digest()
    if sample_digest is None:
        _compare_strata(sample, population)
        return population
    population_digest = population.digest(sample.seed)
    differences = describe_differences(sample.proxy_names, sample_digest, population_digest)
    if differences:
        if sample_digest.ids != population_digest.ids:
            actual = "other ids"
        else:
            actual = "other values"
        raise other_population_error(differences, actual=f"{actual} among the units that were not drawn")
    return population


def with_set_texts(drawn: DrawnUnits, sample: Sample) -> DrawnUnits:
    """Return units of a population with the group columns that are sets in the sample as texts of sets."""
    outcome = sample.question.outcome
    if not outcome.holds_sets:
        return drawn
    # Sets in JSON need no separator.
    if outcome.tag_format in SEPARATORS:
        separator = outcome.tag_format
    else:
        separator = None
    groups = dict(drawn.groups)
    for name, cells in sample.groups.items():
        if name in groups and all(map(is_set, set(cells.tolist()))):
            texts = [read_set(cell, separator) or cell for cell in groups[name].tolist()]
            groups[name] = np.array(texts, dtype=np.str_)
    return replace(drawn, groups=groups)


def require_same_draw(earlier: Sample, later: Sample) -> None:
    """Raise an error if `later` does not contain all units of `earlier`, or has another population.

    Raises
    ------
    InputError
        If the later sample lacks a unit of the earlier one, if a value of a unit differs, or if the digests
        of their populations differ.
    """
    texts = id_texts(earlier.ids)
    rows = rows_of(texts, later.ids)
    n_missing = int(np.sum(rows < 0))
    if n_missing or earlier.seed != later.seed or earlier.population_size != later.population_size:
        raise InputError(
            "this sample does not extend the earlier one",
            given=f"seed {later.seed}, {later.population_size} units in all, {n_missing} drawn units missing",
            allowed=f"seed {earlier.seed}, {earlier.population_size} units, with all {earlier.size} drawn",
        )
    later_columns = select_rows(unit_columns(later), rows)
    check_equal_units(texts, later_columns, unit_columns(earlier))
    earlier_digest = earlier.population_digest()
    later_digest = later.population_digest()
    if earlier_digest is None or later_digest is None:
        return
    differences = describe_differences(earlier.proxy_names, earlier_digest, later_digest)
    if differences:
        raise other_population_error(differences, actual="another population in a later round")


def require_planned_population(sample: Sample, planned: Population) -> None:
    """Raise an error if a sample was drawn from another population than that of the plan, `planned`.

    Raises
    ------
    InputError
        Names the differences in the common columns.
    """
    # The same object: no digest is needed, which would read all rows again.
    if sample.population is planned:
        return
    drawn_digest = sample.population_digest()
    # Every draw of a plan has a digest; only external samples have none.
    assert drawn_digest is not None
    planned_digest = planned.digest(sample.seed)
    differences = describe_differences(sample.proxy_names, planned_digest, drawn_digest)
    if planned_digest.size != drawn_digest.size or differences:
        raise InputError(
            "this is not the population of the plan" + (f":{differences}" if differences else ""),
            given=f"{drawn_digest.size:,} units",
            allowed=f"the {planned_digest.size:,} units for which the plan was made",
            action="Give the unchanged population of the plan, or make a plan for this population.",
        )


def rows_of(texts: Sequence[str], ids: AnyArray) -> IntArray:
    """Return the position of each text (n,) among ids, −1 if it is not among them."""
    row_by_id = {text: row for row, text in enumerate(id_texts(ids))}
    return np.array([row_by_id.get(text, -1) for text in texts], dtype=np.int64)


def describe_differences(proxies: Sequence[str], digest: PopulationDigest, other: PopulationDigest) -> str:
    """Return the differences between the digests of two populations as text after a colon; empty if equal.

    `proxies` are the names of the proxies: other numeric columns are features.
    """
    if digest.ids != other.ids:
        return " ids differ"
    names = []
    for key in digest.different_columns(other):
        # The digest of a column has the key TYPE:NAME.
        column_type, _, name = key.partition(":")
        if column_type == "group":
            noun = "column"
        elif column_type == "second":
            noun = "second moment of proxy"
        elif name in proxies:
            noun = "proxy"
        else:
            noun = "feature"
        names.append(f"{noun} {name!r}")
    if not names:
        return ""
    if len(names) == 1:
        return f" {names[0]} differs"
    return f" {list_first(names, _MAX_NAMES)} differ"


def unit_columns(units: Any, proxy_names: Sequence[str] | None = None) -> dict[str, AnyArray]:
    """Return the stored columns (n,) of a `Sample` or of `DrawnUnits`, by their names in errors.

    Only a sample has the names of its proxies; for `DrawnUnits` they are given.
    """
    if proxy_names is None:
        names = units.proxy_names
    else:
        names = proxy_names
    columns = {f"shown column {name!r}": values for name, values in units.shown.items()}
    columns |= {f"column {name!r}": values for name, values in units.groups.items()}
    columns |= {f"proxy {name!r}": units.proxies[:, k] for k, name in enumerate(names)}
    return columns


def check_equal_units(
    texts: Sequence[str], read_columns: Mapping[str, AnyArray], stored_columns: Mapping[str, AnyArray]
) -> None:
    """Raise an error for a unit, with its id in `texts` (n,), with different values in two sources.

    Only the columns (n,) that both sources have are compared.
    """
    for name, values in stored_columns.items():
        if name not in read_columns:
            continue
        rows = zip(texts, read_columns[name].tolist(), values.tolist(), strict=True)
        for text, read_value, stored_value in rows:
            if not same_value(read_value, stored_value):
                raise other_population_error(
                    f" {name} of unit {text!r} differs",
                    actual=_short_text(read_value),
                    allowed=_short_text(stored_value),
                )


def other_population_error(difference: str, actual: str, allowed: str | None = None) -> InputError:
    """Return the error for a population that is not that of the sample.

    `difference` begins with a space, or is empty.
    """
    problem = "this is not the population from which the sample was drawn"
    if difference:
        problem += f":{difference}"
    return InputError(
        problem,
        given=actual,
        allowed=allowed,
        action="Give the unchanged population from which the sample was drawn.",
    )


def _compare_strata(sample: Sample, population: Population) -> None:
    """Compare the sizes of strata, if the population has the columns of the sample's rule."""
    rule = sample.design.rule
    stored_columns = (*population.proxy_names, *population.feature_names, *population.group_names)
    # A sample does not store all columns of its rule, so that the population may lack them too.
    if rule is None or any(name not in stored_columns for name in rule.columns):
        return
    sizes = population.summarise(rule).sizes
    stored_sizes = sample.summary.sizes
    if not np.array_equal(sizes, stored_sizes):
        raise other_population_error(
            " strata differ",
            actual=f"strata of {sizes.tolist()[:5]} units",
            allowed=f"strata of {stored_sizes.tolist()[:5]} units",
        )


def _short_text(value: object) -> str:
    """Return a value for an error, with at most `_MAX_QUOTED_LENGTH` characters."""
    text = repr(value)
    if len(text) <= _MAX_QUOTED_LENGTH:
        return text
    return f"{text[: _MAX_QUOTED_LENGTH - 1]}…"


def extend_sample(sample: Sample, design: Design, population: Population) -> Sample:
    """Return a larger draw with the same seed: first the earlier units in their order, then the new ones.

    Raises
    ------
    InputError
        If the design does not draw every unit of the sample, because it is not nested or is smaller.
    """
    texts = id_texts(sample.ids)
    # `chosen` states how the rows of an external sample were selected.
    if sample.question.chosen is None:
        larger = design.draw(population, sample.seed)
    else:
        larger = _add_random_units(sample, design, population)
    earlier_rows = rows_of(texts, larger.ids)
    if -1 in earlier_rows:
        raise InputError(
            f"unit '{texts[earlier_rows.tolist().index(-1)]}' of the sample is not part of the larger sample",
            given=f"design '{larger.design.kind}', {larger.size} units, seed {sample.seed}",
            allowed="a larger design of a kind that can be extended, and the unchanged population",
        )
    is_new = np.ones(larger.size, dtype=bool)
    is_new[earlier_rows] = False
    # Earlier units keep their rows, so that files and arrays of labels stay in order.
    order = np.concatenate([earlier_rows, np.flatnonzero(is_new)])
    missing_columns = [
        name for name in (*sample.groups, *sample.shown) if name not in {*larger.groups, *larger.shown}
    ]
    if missing_columns:
        raise InputError(
            f"the population lacks column {missing_columns[0]!r} of the sample",
            action="Name this column in groups= or show=, as when the sample was drawn.",
        )
    rounds = np.full(larger.size, last_round(sample) + 1)
    rounds[: sample.size] = sample.round
    return larger.of_rows(
        order, round=rounds, question=sample.question, half_width=sample.half_width, looks=sample.looks
    )


def _add_random_units(sample: Sample, design: Design, population: Population) -> Sample:
    """Return the units of an external sample with further random units, so that strata have n_h units.

    A draw of n_h units contains at least n_h minus m_h units that are not among the m_h units of the sample,
    and is in random order. The first of them are a simple random sample of all units that are not in the
    sample.
    """
    drawn_design, drawn, _, summary = design.select(population, sample.seed)
    counts = drawn_design.counts
    if counts is None:
        raise InputError(
            "a sample of rows that were labelled elsewhere can only be extended within strata",
            given=f"design {drawn_design.kind!r}",
            allowed="a simple random or stratified design",
        )
    is_other = rows_of(id_texts(drawn.ids), sample.ids) < 0
    positions = np.flatnonzero(is_other)
    stratum = drawn.stratum[positions]
    # The rank of each unit within its stratum, in the order of the draw.
    order = np.argsort(stratum, kind="stable")
    starts = np.searchsorted(stratum[order], np.arange(len(counts)))
    rank = np.empty(len(positions), dtype=np.int64)
    rank[order] = np.arange(len(positions)) - starts[stratum[order]]
    n_missing = counts - np.bincount(sample.stratum, minlength=len(counts))
    added = drawn.only(positions[rank < n_missing[stratum]])
    units = DrawnUnits(
        ids=np.concatenate([sample.ids, added.ids]),
        stratum=np.concatenate([sample.stratum, added.stratum]),
        proxies=np.concatenate([sample.proxies, added.proxies]),
        groups=_append_columns(sample.groups, added.groups),
        shown=_append_columns(sample.shown, added.shown),
    )
    if summary is None:
        sizes = np.array([population.size])
    else:
        sizes = summary.sizes
    probabilities = (counts / sizes)[units.stratum]
    return make_sample(drawn_design, population, sample.seed, units, probabilities, summary)


def _append_columns(columns: Mapping[str, AnyArray], added: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Return the columns that both have, with the added entries after the others."""
    return {name: np.concatenate([columns[name], added[name]]) for name in columns if name in added}


def population_of(sample: Sample, population: Population | None) -> Population:
    """Return the population for further draws: by default that of the sample, otherwise an equal one."""
    if population is None:
        population = sample.population
    if population is None:
        raise InputError(
            "this sample does not contain the population from which it was drawn",
            action="Give the population: population=.",
        )
    return require_same_population(sample, population)


def require_label_based_rounds(sample: Sample) -> None:
    """Raise an error for a sample whose design has no next round based on labels."""
    if not sample.design.allows_label_based_rounds:
        raise InputError(
            f"a sample of design '{sample.design.kind}' has no next round",
            action="If the design is nested, extend it without labels: next_round(sample, additional=…).",
        )


def last_round(sample: Sample) -> int:
    """Return the number of the sample's last round."""
    if sample.round is None or sample.size == 0:
        return 1
    return int(sample.round.max())
