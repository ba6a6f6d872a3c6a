"""All samples and all allocations of tiny populations, for estimands other than the mean."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import stratal
from stratal.estimands import Estimand
from stratal.estimation.respondents import Respondents

NEW = np.array(list("aabbaabbab"))
OLD = np.array(list("abbabbaaab"))
TRUTH = np.array(list("aabababaaa"))
CHANCE = np.array([0.9, 0.8, 0.7, 0.6, 0.9, 0.3, 0.6, 0.2, 0.5, 0.95])
POPULATION = stratal.Population.from_arrays(
    proxy={"p": CHANCE}, groups={"new": NEW, "old": OLD}, predicted="new"
)


def strata_of(text, n_strata=2):
    return stratal.strata.stratify(
        POPULATION, "neyman", n_strata, influence=Estimand.parse_text(text).influence(POPULATION)
    )


def samples(strata, n_h):
    """All samples of the design, made from one that the design drew."""
    drawn = stratal.designs.Stratified(
        strata=strata, allocation=stratal.strata.allocate(strata, int(n_h.sum()), minimum=n_h)
    )
    members = [np.flatnonzero(strata.codes == h) for h in range(strata.n_strata)]
    ways = [itertools.combinations(rows, int(n)) for rows, n in zip(members, n_h, strict=True)]
    sample = drawn.draw(POPULATION, seed=1)
    for chosen in itertools.product(*ways):
        rows = np.concatenate([np.array(part, int) for part in chosen])
        yield rebuilt(sample, rows, strata)


def rebuilt(sample, rows, strata):
    import dataclasses

    n_h = np.bincount(strata.codes[rows], minlength=strata.n_strata)
    return dataclasses.replace(
        sample,
        ids=rows,
        stratum=strata.codes[rows],
        inclusion_probability=(n_h / strata.sizes)[strata.codes[rows]],
        proxies=CHANCE[rows, None],
        groups={"new": NEW[rows], "old": OLD[rows]},
        shown={},
        round=np.ones(len(rows), np.int64),
    )


@pytest.mark.parametrize("text", ["difference:new,old", "win_rate:new,old"])
def test_with_strata_that_need_no_label_value_and_variance_are_exactly_unbiased(text):
    strata = strata_of(text)
    n_h = np.where(strata.is_known, 0, np.minimum(2, strata.sizes))
    n_h[np.argmax(np.where(strata.is_known, 0, strata.sizes))] += 1
    right = [(answers == TRUTH).astype(float) for answers in (NEW, OLD)]
    z = right[0] - right[1] if text.startswith("difference") else (1 + right[0] - right[1]) / 2
    values, variances = [], []
    for sample in samples(strata, n_h):
        labels = dict(zip(sample.ids.tolist(), TRUTH[sample.ids].tolist(), strict=True))
        u = Estimand.parse_text(text).labelled_influence(sample, labels)
        frame = Respondents.of(sample, u.labelled, Estimand.parse_text(text).agreement)
        found = stratal.estimate(sample, labels, estimand=text)
        values.append(found.value)
        variances.append(float(frame.weighting.covariance(frame.share * u.u[:, None])[0, 0]))

    assert strata.is_known.any()
    assert np.mean(values) == pytest.approx(z.mean(), abs=1e-12)
    assert np.mean(variances) == pytest.approx(np.var(values), rel=1e-10)


def test_the_labels_of_a_precision_come_from_its_denominator_and_are_exactly_unbiased():
    strata = strata_of("precision:a", 1)
    n_h = np.where(strata.is_known, 0, 3)
    values = []
    for sample in samples(strata, n_h):
        labels = dict(zip(sample.ids.tolist(), TRUTH[sample.ids].tolist(), strict=True))
        values.append(stratal.estimate(sample, labels, estimand="precision:a").value)

    assert np.mean(values) == pytest.approx(np.mean(TRUTH[NEW == "a"] == "a"), abs=1e-12)


@pytest.mark.parametrize("text", ["difference:new,old", "f1:a", "recall:b", "ratio:new,old"])
@pytest.mark.parametrize("budget", [4, 5, 6])
def test_no_other_allocation_has_a_smaller_variance(text, budget):
    strata = strata_of(text)
    least = np.where(strata.is_known, 0, 1)
    most = np.where(strata.is_known, 0, strata.sizes)
    ranges = [range(low, high + 1) for low, high in zip(least, most, strict=True)]
    deviations = strata.standard_deviations

    def variance(n_h):
        used = ~strata.is_known
        return float(np.sum((strata.sizes * deviations)[used] ** 2 / np.asarray(n_h)[used]))

    best = min(variance(n_h) for n_h in itertools.product(*ranges) if sum(n_h) == budget)

    found = stratal.strata.allocate(strata, budget, "neyman", minimum=1).n_h

    assert variance(found) == pytest.approx(best, rel=1e-12)
