from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import stratal
from stratal.designs.margins import Margins
from stratal.errors import InputError, StratalWarning
from stratal.estimands import ClassReport
from stratal.report.notes import LABELS_BY_GROUP, has_code

N = 2000


RNG = np.random.default_rng(4)
TONGUE = RNG.choice(["de", "en", "fr"], N, p=[0.6, 0.3, 0.1])
KIND = np.where(RNG.random(N) < np.where(TONGUE == "de", 0.3, 0.7), "chat", "code")


@pytest.fixture(scope="module")
def population():
    return stratal.Population.from_arrays(
        proxy=RNG.random(N), ids=np.arange(N), groups={"tongue": TONGUE, "kind": KIND}
    )


@pytest.fixture(scope="module")
def designs(population):
    return {
        "simple random": stratal.designs.SimpleRandom(budget=150).draw(population, seed=1),
        "planned": stratal.plan(population, budget=150).draw(seed=2),
        "poisson": stratal.designs.Poisson(budget=150, size="sqrt-variance").draw(population, seed=3),
    }


@pytest.mark.parametrize("design", ["simple random", "planned", "poisson"])
@pytest.mark.parametrize("method", ["raking", "regression"])
def test_what_is_known_comes_out_exactly_and_without_error(designs, design, method):
    sample = designs[design]
    fitted = stratal.designs.fit_margins(sample, ["tongue", "kind", "proxy"], method=method)
    weighting = fitted.weighting()
    known = {
        "en": np.mean(TONGUE == "en"),
        "chat": np.mean(KIND == "chat"),
    }
    columns = np.column_stack(
        [sample.groups["tongue"] == "en", sample.groups["kind"] == "chat", sample.proxies[:, 0]]
    ).astype(float)
    assert weighting.mean(columns)[:2] == pytest.approx([known["en"], known["chat"]], abs=1e-9)
    assert weighting.mean(columns)[2] == pytest.approx(
        float(sample.summary.sizes @ sample.summary.proxy_means[:, 0] / N), abs=1e-8
    )
    assert np.diag(weighting.covariance(columns)) == pytest.approx(np.zeros(3), abs=1e-15)
    if method == "raking":
        assert np.all(weighting.weights > 0)


def test_one_group_of_a_simple_random_sample_is_post_stratification(designs):
    sample = designs["simple random"]
    y = (np.arange(sample.size) % 3 > 0) * 1.0
    fitted = stratal.estimate(stratal.designs.fit_margins(sample, "tongue"), y, estimator="hajek")
    usual = stratal.estimate(stratal.designs.post_stratify(sample, "tongue"), y, estimator="horvitz-thompson")
    assert fitted.value == pytest.approx(usual.value)
    assert fitted.standard_error == pytest.approx(usual.standard_error, rel=0.03)


def test_post_stratification_of_another_design_fits_its_weights(designs):
    planned = designs["planned"]
    again = stratal.designs.post_stratify(planned, "tongue")
    assert isinstance(again.design, Margins)
    share = float(again.weighting().weights[planned.groups["tongue"] == "fr"].sum())
    assert share == pytest.approx(np.mean(TONGUE == "fr"))


def test_margins_explain_what_follows_them(population, designs):
    """An outcome that follows the groups is estimated with less error, and the interval holds."""
    rng = np.random.default_rng(6)
    z = (rng.random(N) < np.where(TONGUE == "de", 0.95, np.where(TONGUE == "en", 0.5, 0.1))) * 1.0
    inside, errors, plain = 0, [], []
    for seed in range(200):
        sample = stratal.designs.SimpleRandom(budget=100).draw(population, seed=seed)
        fitted = stratal.designs.fit_margins(sample, ["tongue", "kind"])
        found = stratal.estimate(fitted, z[sample.ids], estimator="hajek")
        low, high = found.confidence_interval()
        inside += low <= z.mean() <= high
        errors.append(found.value - z.mean())
        plain.append(z[sample.ids].mean() - z.mean())
    assert np.std(errors) < 0.85 * np.std(plain)
    assert inside / 200 > 0.94 - 3 * np.sqrt(0.06 * 0.94 / 200)


def test_the_file_keeps_the_margins(designs, tmp_path):
    fitted = stratal.designs.fit_margins(designs["planned"], ["tongue", "kind"])
    fitted.write(tmp_path / "sample.parquet")
    again = stratal.Sample.read(tmp_path / "sample.parquet")
    assert again.design == fitted.design
    assert again.weighting().weights == pytest.approx(fitted.weighting().weights, abs=1e-15)


def test_metrics_know_how_often_a_class_is_predicted(designs):
    sample = stratal.designs.fit_margins(designs["planned"], "kind")
    truth = {int(unit): "chat" if unit % 3 else "code" for unit in sample.ids}
    report = ClassReport(["predicted_prevalence", "precision"], predicted="kind")
    row = stratal.estimate(sample, truth, estimand=report).of(
        metric="predicted_prevalence", **{"class": "chat"}
    )
    assert row.value == pytest.approx(np.mean(KIND == "chat"))
    assert row.standard_error == pytest.approx(0, abs=1e-9)


def test_a_level_without_a_label_is_left_to_the_others(designs):
    sample = designs["simple random"]
    fitted = stratal.designs.fit_margins(sample, ["tongue", "kind"])
    labels = {
        int(u): 1 for u, tongue in zip(sample.ids, sample.groups["tongue"], strict=True) if tongue != "fr"
    }
    with pytest.warns(StratalWarning, match=r"no unit with tongue = fr has a label \(\d"):
        estimate = stratal.estimate(fitted, labels)
    assert estimate.value == pytest.approx(1)
    assert has_code(estimate.notes, LABELS_BY_GROUP)


def test_totals_below_the_units_that_were_drawn_are_refused():
    table = {"right": [1, 0] * 20, "kind": ["chat"] * 30 + ["code"] * 10}
    sample, _ = stratal.Sample.from_labelled(table, value="right", groups=("kind",), population_size=100)
    with pytest.raises(InputError, match="level 'chat' of 'kind' has fewer units than were drawn"):
        stratal.designs.fit_margins(sample, "kind", totals={"kind": {"chat": 20, "code": 80}})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"margins": "colour"}, "the totals of margin 'colour' are unknown"),
        ({"method": "magic"}, "no such method"),
        ({"margins": ["kind", "kind"]}, "given once"),
        ({"margins": []}, "given once"),
        (
            {"totals": {"kind": {"chat": 1, "code": N - 1}}},
            "sizes of 'kind' differ from those of the population",
        ),
        ({"totals": {"kind": {"chat": N}}}, "sizes of 'kind' differ from those of the population"),
        ({"margins": "length", "totals": {"length": 5}}, "no column 'length'"),
        ({"totals": {"kind": 7}}, "'kind' is not numeric"),
    ],
)
def test_mistakes(population, designs, change, message):
    with pytest.raises(InputError, match=message):
        stratal.designs.fit_margins(designs["planned"], **{"margins": "kind", **change})
    with pytest.raises(InputError, match="was drawn"):
        stratal.designs.fit_margins(designs["planned"], "kind").design.draw(population, 1)


@pytest.mark.parametrize(
    ("totals", "message"),
    [
        ({"chat": 1, "code": 2}, "do not add up"),
        ({"chat": N}, "0 units of level 'code'"),
    ],
)
def test_totals_that_the_draw_did_not_count_fit_the_sample(designs, totals, message):
    bare = replace(designs["planned"], totals={})
    with pytest.raises(InputError, match=message):
        stratal.designs.fit_margins(bare, "kind", totals={"kind": totals})
    known = designs["planned"].totals["kind"]
    own = stratal.designs.fit_margins(designs["planned"], "kind", totals={"kind": dict(known)})
    assert own.design.means == stratal.designs.fit_margins(designs["planned"], "kind").design.means
