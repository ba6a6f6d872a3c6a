"""Whether a population is the one that a sample was drawn from, and what differs where it is not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stratal.arrays import AnyArray
from stratal.errors import InputError
from stratal.population.same_value import fewer_digits, same_value
from stratal.randomness import id_texts

if TYPE_CHECKING:
    from stratal.designs.sample import Sample
    from stratal.population.population import Population

_LISTED = 3


def require_same_population(sample: Sample, population: Population) -> Population:
    """Return the population if the sample was drawn from it.

    Its digest, and the columns of the drawn units, are compared with the sample's. A sample that was written
    before there were digests is compared by what it holds: its units and the sizes of its strata.

    Raises
    ------
    InputError
        Names what differs: the number of units, ids, a proxy, a group, a column that annotators see.

    Examples
    --------
    >>> import stratal
    >>> rows = {"ids": ["a", "b", "c"], "proxy": [0.1, 0.5, 0.9]}
    >>> sample = stratal.SimpleRandom(budget=1).draw(stratal.Population.from_arrays(**rows), seed=7)
    >>> exchanged = stratal.Population.from_arrays(ids=["a", "b", "c"], proxy=[0.5, 0.1, 0.9])
    >>> require_same_population(sample, exchanged)
    Traceback (most recent call last):
    stratal.errors.InputError: this is not the population that the sample was drawn from: proxy 'proxy' ...
    """
    if population is sample.population:
        return population
    lacking = [name for name in sample.proxy_names if name not in population.proxy_names]
    if lacking or population.size != sample.population_size:
        named = ", ".join(map(repr, lacking))
        raise not_drawn_from(
            "",
            given=f"{population.size} units" + (f" without {named}" if lacking else ""),
            allowed=f"{sample.population_size} units" + (f" with {named}" if lacking else ""),
        )
    known, texts = sample.population_digest(), id_texts(sample.ids)
    found = population.find(texts)
    place = {text: row for row, text in enumerate(id_texts(found.ids))}
    absent = [text for text in texts if text not in place]
    if absent:
        raise not_drawn_from(" ids differ", given=f"no unit {absent[0]!r}", allowed="the same ids")
    rows = np.array([place[text] for text in texts], dtype=np.int64)
    mine, theirs = unit_columns(sample), unit_columns(found.only(rows), population.proxy_names)
    refuse_other_units(texts, theirs, mine)
    if known is None:
        _compare_strata(sample, population)
        return population
    digest = population.digest(sample.seed)
    if digest.ids != known.ids:
        raise not_drawn_from(" ids differ", given="other ids among the units that were not drawn")
    differing = [_words(sample, name) for name in known.differing(digest)]
    if differing:
        more = f" and {len(differing) - _LISTED} more" if len(differing) > _LISTED else ""
        what = f" {', '.join(differing[:_LISTED])}{more} differ{'s' if len(differing) == 1 else ''}"
        raise not_drawn_from(what, given="other values among the units that were not drawn")
    return population


def require_same_draw(earlier: Sample, later: Sample) -> None:
    """Refuse a later sample whose units, or whose population, are not those of an earlier one.

    Raises
    ------
    InputError
        If a unit of the earlier sample is not in the later one, or anything that is known of it differs, or
        the digests of their populations do.

    Examples
    --------
    >>> import stratal
    >>> draw = stratal.SimpleRandom(budget=2).draw
    >>> first = draw(stratal.Population.from_arrays(proxy=[0.1, 0.5, 0.9]), seed=7)
    >>> require_same_draw(first, first)
    """
    texts = id_texts(earlier.ids)
    place = {text: row for row, text in enumerate(id_texts(later.ids))}
    lost = [text for text in texts if text not in place]
    if lost or earlier.seed != later.seed or earlier.population_size != later.population_size:
        raise InputError(
            "this sample does not extend the earlier one",
            given=f"seed {later.seed}, {later.population_size} units in all, {len(lost)} drawn units fewer",
            allowed=f"seed {earlier.seed}, {earlier.population_size} units, with all {earlier.size} drawn",
            action="Extend the earlier sample: stratal.extend or stratal.next_round.",
        )
    rows = np.array([place[text] for text in texts], dtype=np.int64)
    theirs = {name: values[rows] for name, values in unit_columns(later).items()}
    refuse_other_units(texts, theirs, unit_columns(earlier))
    known, digest = earlier.population_digest(), later.population_digest()
    if known is None or digest is None:
        return
    differing = [_words(earlier, name) for name in known.differing(digest)]
    if known.ids != digest.ids or differing:
        what = " ids differ" if known.ids != digest.ids else f" {', '.join(differing)} differ"
        raise not_drawn_from(what, given="another population in a later round")


def require_planned(sample: Sample, planned: Population) -> None:
    """Refuse a sample that was drawn from another population than the one that was planned for.

    Raises
    ------
    InputError
        Names what differs of the columns that both have.

    Examples
    --------
    >>> import stratal
    >>> plan = stratal.plan(stratal.Population.from_arrays(proxy=[0.1, 0.1, 0.9, 0.9]), budget=2, minimum=1)
    >>> plan.draw(seed=7, population=stratal.Population.from_arrays(proxy=[0.1, 0.9, 0.1, 0.9]))
    Traceback (most recent call last):
    stratal.errors.InputError: this is not the population that was planned for: proxy 'proxy' differs ...
    """
    if sample.population is planned:
        return
    drawn = sample.population_digest()
    assert drawn is not None  # every draw has one
    known = planned.digest(sample.seed)
    differing = [_words(sample, name) for name in known.differing(drawn)]
    if known.ids != drawn.ids:
        differing = ["ids", *differing]
    if known.size != drawn.size or differing:
        what = f": {', '.join(differing)} differ{'' if len(differing) > 1 else 's'}" if differing else ""
        raise InputError(
            "this is not the population that was planned for" + what,
            given=f"{drawn.size:,} units",
            allowed=f"{known.size:,} units, as they were when the plan was made",
            action="Give that one unchanged, or plan for this one.",
        )


def unit_columns(units: Any, proxy_names: Sequence[str] | None = None) -> dict[str, AnyArray]:
    """Return what is known of the units of a sample, or of drawn units: columns (n,) by what they are called.

    Examples
    --------
    >>> import stratal
    >>> population = stratal.Population.from_arrays(proxy=[0.1, 0.5, 0.9])
    >>> list(unit_columns(stratal.SimpleRandom(budget=1).draw(population, seed=7)))
    ["proxy 'proxy'"]
    """
    names = units.proxy_names if proxy_names is None else proxy_names
    proxies = {f"proxy {name!r}": units.proxies[:, k] for k, name in enumerate(names)}
    groups = {f"column {name!r}": values for name, values in units.groups.items()}
    return {**{f"shown column {name!r}": units.shown[name] for name in units.shown}, **groups, **proxies}


def refuse_other_units(
    texts: Sequence[str], given: Mapping[str, AnyArray], known: Mapping[str, AnyArray]
) -> None:
    """Refuse columns (n,) of drawn units that are not those that are known; only what both have is compared.

    Examples
    --------
    >>> refuse_other_units(["a"], {"column 'x'": np.array(["1"])}, {"column 'x'": np.array(["1.0"])})
    """
    for name, values in known.items():
        if name not in given:
            continue
        for text, told, own in zip(texts, given[name].tolist(), values.tolist(), strict=True):
            if not same_value(told, own):
                raise not_drawn_from(
                    f" {name} of unit {text!r} differs{fewer_digits(told, own)}",
                    given=_short(told),
                    allowed=_short(own),
                )


def not_drawn_from(what: str, given: str, allowed: str | None = None) -> InputError:
    """Return the error about a population that a sample was not drawn from.

    Examples
    --------
    >>> print(not_drawn_from(" ids differ", "no unit 'a'"))
    this is not the population that the sample was drawn from: ids differ (given: no unit 'a'). Give the ...
    """
    return InputError(
        "this is not the population that the sample was drawn from" + (f":{what}" if what else ""),
        given=given,
        allowed=allowed,
        action="Give the one that it was drawn from, unchanged.",
    )


def _compare_strata(sample: Sample, population: Population) -> None:
    """Compare the sizes of strata, and the strata of drawn units, where the sample's rule can be applied."""
    rule = sample.design.rule
    held = (*population.proxy_names, *population.feature_names, *population.group_names)
    if rule is None or any(name not in held for name in rule.columns):
        return
    sizes = population.summarise(rule).sizes
    if not np.array_equal(sizes, sample.summary.sizes):
        raise not_drawn_from(
            " strata differ",
            given=f"strata of {sizes.tolist()[:5]} units",
            allowed=f"strata of {sample.summary.sizes.tolist()[:5]} units",
        )


def _words(sample: Sample, column: str) -> str:
    """Return what an error calls a column of a digest."""
    kind, _, name = column.partition(":")
    if kind == "number":
        kind = "proxy" if name in sample.proxy_names else "feature"
    return f"{_KINDS.get(kind, kind)} {name!r}"


_KINDS = {"group": "column", "second": "second moment of proxy"}


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
