"""The simulation engine: exactness against the library, reproducibility, resuming, errors."""

import itertools
from functools import partial

import numpy as np
import pytest
from tests.tiers import cells, sized

import stratal
from stratal.designs import StratifiedWeighting
from stratal.errors import BudgetError, InputError
from stratal.estimation.outcome_means import estimate_mean
from stratal.population.summary import StratumSummary
from stratal.simulation.draws import BinaryDraws, OrderedUnits, Truth, ordered_units
from stratal.simulation.engine import cell_key
from stratal.simulation.replicates import (
    INTERVALS,
    SIMULATED_ESTIMATORS,
    Settings,
    replicate_intervals,
    replicate_means,
)
from stratal.simulation.simulated_design import SimulatedDesign
from stratal.simulation.simulation_table import COLUMNS, SimulationTable

GUARDED = tuple(method for method in INTERVALS if method not in ("published", "skewness-corrected"))


REPLICATES = sized(2, 8)


def labelled_units(truth, n_h, replicates, seed):
    """Return (stratum, z, proxy) of each replicate that `OrderedUnits` draws with this seed."""
    rng = np.random.default_rng(seed)
    orders = [ordered_units(len(truth.outcomes[h]), int(n), replicates, rng) for h, n in enumerate(n_h)]
    for r in range(replicates):
        z = np.concatenate([truth.outcomes[h][orders[h][r]] for h in range(len(n_h))]) + truth.centre
        proxy = [truth.proxies[h][orders[h][r]] + truth.proxy_means[h] for h in range(len(n_h))]
        yield np.repeat(np.arange(len(n_h)), n_h), z, np.concatenate(proxy)


@pytest.mark.parametrize(
    ("target", "known"), [("population", True), ("superpopulation", True), ("superpopulation", False)]
)
@pytest.mark.parametrize("n_h", [[8, 2, 30, 12], [8, 1, 30, 12], [15]])
@pytest.mark.parametrize("graded", cells([False, True], fast=[True]))
def test_replicates_equal_the_library_one_by_one(target, known, n_h, graded):
    rng = np.random.default_rng(3)
    codes = rng.integers(0, len(n_h), 400)
    p = rng.random(400)
    z = p * rng.random(400) if graded else (rng.random(400) < p).astype(float)
    truth = Truth.of(z, p, codes, len(n_h))
    drawn = OrderedUnits(truth, np.array(n_h), REPLICATES, np.random.default_rng(5), third_powers=True)
    sums = drawn.sums(np.array(n_h))
    divided = truth.proxy_variances * (truth.sizes - 1) / truth.sizes
    summary = StratumSummary(
        sizes=truth.sizes, proxy_means=truth.proxy_means[:, None], proxy_covariances=divided[:, None, None]
    )
    for estimator in SIMULATED_ESTIMATORS[:5]:
        settings = Settings(
            estimators=SIMULATED_ESTIMATORS,
            intervals=GUARDED,
            budgets=(sum(n_h),),
            replicates=REPLICATES,
            seed=5,
            target=target,
            stratum_weights_known=known,
            bounds=(0.0, 1.0),
        )
        replicates = replicate_means(sums, truth, settings, estimator)
        ranges = replicate_intervals(replicates)
        for r, (stratum, labels, proxy) in enumerate(labelled_units(truth, n_h, REPLICATES, 5)):
            expected = estimate_mean(
                np.clip(labels, 0, 1) if graded else np.round(labels),
                proxy[:, None],
                StratifiedWeighting(stratum=stratum, sizes=truth.sizes),
                summary,
                stratum=stratum,
                estimator=estimator,
                target=target,
                bounds=(0, 1),
                stratum_weights_known=known,
            )

            near = {"rel": 1e-12, "abs": 1e-12}
            assert expected.value == pytest.approx(np.clip(replicates.value[r], 0, 1), **near)
            assert expected.standard_error**2 == pytest.approx(replicates.estimated_variances[r], **near)
            assert expected.degrees_of_freedom == pytest.approx(replicates.degrees_of_freedom[r], **near)
            for method in GUARDED:
                interval = expected.confidence_interval(method=method)
                assert interval.low == pytest.approx(ranges[method][0][r], **near)
                assert interval.high == pytest.approx(ranges[method][1][r], **near)


@pytest.mark.parametrize("n_h", [[8, 2, 30, 12], [8, 1, 30, 12], [15]])
def test_intervals_without_bounds_are_those_of_one_sample(n_h):
    """The skewness comes from sums of third powers, of residuals where λ is not 0."""
    rng = np.random.default_rng(11)
    codes = np.repeat(np.arange(len(n_h)), 60)
    p = rng.gamma(0.7, 2.0, len(codes))
    z = p * rng.lognormal(0.0, 1.0, len(codes)) - 1.0
    truth = Truth.of(z, p, codes, len(n_h))
    divided = truth.proxy_variances * (truth.sizes - 1) / truth.sizes
    summary = StratumSummary(
        sizes=truth.sizes, proxy_means=truth.proxy_means[:, None], proxy_covariances=divided[:, None, None]
    )
    sums = OrderedUnits(truth, np.array(n_h), 8, np.random.default_rng(5), third_powers=True).sums(
        np.array(n_h)
    )
    methods = ("auto", "skewness-corrected", "t", "normal")
    for estimator in ("horvitz-thompson", "difference", "ppi++", "stratppi"):
        settings = Settings(
            estimators=(estimator,), intervals=methods, budgets=(sum(n_h),), replicates=8, seed=5
        )
        replicates = replicate_means(sums, truth, settings, estimator)
        ranges = replicate_intervals(replicates)
        for r, (stratum, labels, proxy) in enumerate(labelled_units(truth, n_h, 8, 5)):
            expected = estimate_mean(
                labels,
                proxy[:, None],
                StratifiedWeighting(stratum=stratum, sizes=truth.sizes),
                summary,
                stratum=stratum,
                estimator=estimator,
                outcome="unbounded",
            )
            for method in methods:
                interval = expected.confidence_interval(method=method)
                near = [float(ranges[method][side][r]) for side in (0, 1)]
                assert [interval.low, interval.high] == pytest.approx(near, rel=1e-9, abs=1e-9)
        assert np.all(ranges["auto"][0] <= ranges["t"][0] + 1e-12)
        assert np.any(ranges["auto"][1] > ranges["t"][1] + 1e-6)


def test_published_estimator_is_the_libraries_without_shrinkage_or_lost_degrees():
    rng = np.random.default_rng(3)
    codes, p = rng.integers(0, 2, 300), rng.random(300)
    z = p + 0.1 * rng.standard_normal(300)
    truth = Truth.of(z, p, codes, 2)
    n_h = np.array([20, 25])
    sums = OrderedUnits(truth, n_h, 3, np.random.default_rng(5)).sums(n_h)
    settings = Settings(estimators=SIMULATED_ESTIMATORS, intervals=(), budgets=(45,), replicates=3, seed=5)
    replicates = replicate_means(sums, truth, settings, "published-stratppi")

    for r, (stratum, labels, proxy) in enumerate(labelled_units(truth, n_h, 3, 5)):
        value = variance = 0.0
        for h in range(2):
            y, f = labels[stratum == h], proxy[stratum == h]
            lam = np.cov(y, f)[0, 1] / truth.proxy_variances[h]
            value += truth.weights[h] * np.mean(y - lam * (f - truth.proxy_means[h]))
            left = (1 - n_h[h] / truth.sizes[h]) / n_h[h]
            variance += truth.weights[h] ** 2 * left * np.var(y - lam * f, ddof=1)
        assert replicates.value[r] == pytest.approx(value)
        assert replicates.estimated_variances[r] == pytest.approx(variance)


@pytest.mark.parametrize(("size", "n"), [(5, 2), (5, 4), (40, 2)])
def test_ordered_units_are_equally_likely_in_every_order(size, n):
    replicates = 40_000
    drawn = ordered_units(size, n, replicates, np.random.default_rng(1))
    kinds = len(list(itertools.permutations(range(size), n)))
    numbers = drawn @ size ** np.arange(n)
    counts = np.unique(numbers, return_counts=True)[1]
    expected = replicates / kinds
    chi_squared = ((counts - expected) ** 2).sum() / expected + (kinds - len(counts)) * expected

    assert np.all(np.sort(drawn, axis=1)[:, 1:] != np.sort(drawn, axis=1)[:, :-1])
    assert abs(chi_squared - (kinds - 1)) < 5 * np.sqrt(2 * (kinds - 1))


def test_urns_and_units_have_the_same_distribution():
    z = np.r_[np.ones(30), np.zeros(20), np.ones(5), np.zeros(45)]
    truth = Truth.of(z, None, np.repeat([0, 1], 50), 2)
    n_h, replicates = np.array([10, 20]), 40_000
    urns = BinaryDraws(truth, replicates, np.random.default_rng(1)).sums(n_h)
    units = OrderedUnits(truth, n_h, replicates, np.random.default_rng(2)).sums(n_h)
    exact = n_h * truth.variances * (1 - n_h / 50)

    for sums in (urns, units):
        good = sums.z + truth.centre * sums.counts
        error = np.sqrt(exact / replicates)
        assert np.all(np.abs(good.mean(axis=0) - n_h * truth.means) < 4.5 * error)
        assert good.var(axis=0) == pytest.approx(exact, rel=0.05)
        assert sums.zz == pytest.approx(good * (1 - truth.centre) ** 2 + (n_h - good) * truth.centre**2)


def test_urns_are_nested():
    truth = Truth.of(np.r_[np.ones(30), np.zeros(20)], None, np.zeros(50, dtype=int), 1)
    urns = BinaryDraws(truth, 1000, np.random.default_rng(1))
    first = urns.sums(np.array([10])).z + truth.centre * 10
    branch = urns.branch().sums(np.array([50]))
    second = urns.sums(np.array([15])).z + truth.centre * 15

    assert np.all((second - first >= -1e-9) & (second - first <= 5 + 1e-9))
    assert branch.z == pytest.approx(np.zeros((1000, 1)))


@pytest.fixture
def benchmark():
    rng = np.random.default_rng(11)
    proxy = rng.beta(4, 1, 2000)
    z = (rng.random(2000) < proxy).astype(float)
    return stratal.Population.from_arrays(proxy=proxy), z


DESIGNS = ["simple-random", "k-means:5:proportional", "k-means:5:robust", "k-means:5:two-round"]
LITERAL = ["equal-size:4:opt-a1:5", "equal-size:4:opt-a2:5:7"]


def run(benchmark, **options):
    settings = {"designs": DESIGNS, "budgets": [40, 80], "replicates": 300, "seed": 3} | options
    return stratal.simulate(*benchmark, **settings)


def test_same_seed_same_table_and_other_seed_another(benchmark):
    assert run(benchmark) == run(benchmark)
    assert run(benchmark) != run(benchmark, seed=4)


def test_a_design_does_not_depend_on_what_else_is_simulated(benchmark):
    alone = run(benchmark, designs=[DESIGNS[2]])

    assert run(benchmark).where(design=DESIGNS[2]) == alone


def test_number_of_workers_changes_nothing(benchmark):
    pytest.importorskip("joblib")
    serial = run(benchmark, designs=DESIGNS + LITERAL)

    assert run(benchmark, designs=DESIGNS + LITERAL, workers=2) == serial


def test_joblib_decides_where_to_run(benchmark):
    joblib = pytest.importorskip("joblib")
    with joblib.parallel_config(backend="threading", n_jobs=2):
        output = run(benchmark, workers=None)

    assert output == run(benchmark)


def test_errors_of_a_worker_arrive(benchmark):
    pytest.importorskip("joblib")
    with pytest.raises(BudgetError, match="below the pilot"):
        run(benchmark, designs=[*LITERAL, "k-means:3:equal"], budgets=[19], workers=2)


def test_superpopulation_adds_the_populations_own_variance(benchmark):
    z = benchmark[1]
    options = {"designs": ["simple-random"], "budgets": [200], "replicates": 4000}
    here = run(benchmark, **options)
    beyond = run(benchmark, target="superpopulation", **options)
    spread = z.var(ddof=1)

    assert here["estimated_variance"][0] == pytest.approx(spread * (1 / 200 - 1 / 2000), rel=0.01)
    assert beyond["estimated_variance"][0] == pytest.approx(spread / 200, rel=0.01)
    assert beyond["mvr"][0] == pytest.approx(1, rel=0.01)
    assert beyond["relative_efficiency"][0] == pytest.approx(1, abs=4 * beyond["relative_efficiency_se"][0])
    assert beyond["width"][0] > here["width"][0]


class KilledError(Exception):
    """Stands for a kill between two cells."""


def test_a_killed_run_resumes_to_the_same_table(benchmark, tmp_path):
    def stop(done, total):
        assert total == len(DESIGNS)
        if done == 2:
            raise KilledError

    store = tmp_path / "cells.parquet"
    with pytest.raises(KilledError):
        run(benchmark, store=store, progress=stop)
    seen = []
    resumed = run(benchmark, store=store, progress=lambda done, total: seen.append(done))

    assert seen == [2, 3, 4]
    assert resumed == run(benchmark)


def test_a_store_of_other_settings_is_not_mistaken(benchmark, tmp_path):
    store = tmp_path / "cells.parquet"
    run(benchmark, store=store, seed=9)

    assert run(benchmark, store=store) == run(benchmark)


def test_a_file_that_is_no_store_is_refused(benchmark, tmp_path):
    path = tmp_path / "table.parquet"
    run(benchmark).to_parquet(path)

    with pytest.raises(InputError, match="cells of a simulation"):
        run(benchmark, store=path)
    path.write_text("id,z\n")
    with pytest.raises(InputError, match="is not a Parquet file"):
        run(benchmark, store=path)


def test_key_changes_with_everything_a_cell_depends_on():
    settings = Settings(estimators=("difference",), intervals=(), budgets=(50,), replicates=9, seed=7)
    other = Settings(estimators=("difference",), intervals=(), budgets=(50, 60), replicates=9, seed=7)
    design = SimulatedDesign.parse("k-means:5:robust")
    keys = {
        cell_key("data", design, settings),
        cell_key("other", design, settings),
        cell_key("data", design, other),
        cell_key("data", SimulatedDesign.parse("k-means:5:neyman"), settings),
    }

    assert len(keys) == 4


def test_table_round_trips_through_parquet(benchmark, tmp_path):
    table = run(benchmark, estimators=["horvitz-thompson", "ppi++"], intervals=[])
    path = table.to_parquet(tmp_path / "table.parquet")

    assert SimulationTable.from_parquet(path) == table
    assert table.to_arrow().column_names == list(COLUMNS)
    assert table.to_dict()["rows"][0]["coverage"] is None
    assert "k-means:5:robust" in str(table)


def test_labels_to_reach_an_error_lie_between_the_budgets(benchmark):
    table = run(benchmark, designs=["simple-random"], budgets=[20, 80, 320], replicates=4000)
    budgets, maes = table["budget"], table["mae"]
    (found,) = table.labels_to_reach(float(maes[1]))
    (unreached,) = table.labels_to_reach(1e-6)

    assert found["labels"] == pytest.approx(80)
    assert 0 < found["labels_se"] < 8
    assert np.isnan(unreached["labels"])
    assert budgets.tolist() == [20, 80, 320]


def test_census_has_no_error(benchmark):
    table = run(benchmark, designs=["simple-random", "k-means:5:proportional"], budgets=[2000], replicates=5)

    assert table["mse"] == pytest.approx([0, 0], abs=1e-20)
    assert table["width"] == pytest.approx([0, 0], abs=1e-9)
    assert table["effective_sample_size"] == pytest.approx([2000, 2000])


def test_designs_without_strata_are_drawn_by_the_library(benchmark):
    designs = ["poisson", "poisson:equal", "proportional-to-size", "systematic"]
    replicates = sized(40, 150)
    table = run(
        benchmark, designs=designs, budgets=[60], replicates=replicates, estimators=["hajek", "difference"],
        intervals=["auto", "t"],
    )  # fmt: skip

    assert list(dict.fromkeys(table["design"])) == designs
    assert np.all(np.abs(table["bias"]) < 5 * table["bias_se"])
    assert np.all(table["coverage"] > 0.95 - 3.5 * np.sqrt(0.95 * 0.05 / replicates))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimators": ["published-ppi++"]}, "poisson supports no 'published'"),
        ({"intervals": ["published"]}, "poisson supports no 'published'"),
        ({"with_replacement": True}, "with_replacement=False"),
        ({"designs": ["poisson:a:b"]}, "cannot be read"),
    ],
)
def test_what_designs_without_strata_cannot_do_is_said(benchmark, options, message):
    with pytest.raises(InputError, match=message):
        run(benchmark, **({"designs": ["poisson"]} | options))


def test_designs_without_strata_refuse_ids_of_their_own(benchmark):
    ids = [f"u{i}" for i in range(2000)]
    population = stratal.Population.from_arrays(proxy=np.full(2000, 0.5), ids=ids)

    with pytest.raises(InputError, match="numbered by row"):
        run((population, benchmark[1]), designs=["systematic"])


def test_adaptive_designs_spend_the_budget(benchmark):
    population, z = benchmark
    from stratal.simulation.adaptive_allocation import adaptive_sums

    strata = stratal.strata.stratify(population, "equal-size", 4)
    truth = Truth.of(z, None, strata.codes, 4)
    for text in (*LITERAL, "k-means:4:two-round"):
        rng = np.random.default_rng(1)
        budgets = (30, 41, 100)
        found = adaptive_sums(
            SimulatedDesign.parse(text), strata, truth, budgets, partial(BinaryDraws, truth, 50, rng)
        )
        for budget, sums in zip(budgets, found, strict=True):
            assert np.all(sums.counts.sum(axis=1) == budget)
            assert np.all(sums.counts >= 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"designs": ["k-means:ten:robust"]}, "cannot be read"),
        ({"designs": ["k-means:5:robust:x"]}, "cannot be read"),
        ({"designs": ["k-mean:5:robust"]}, "no such stratification"),
        ({"designs": ["k-means:5:best"]}, "no such allocation"),
        ({"designs": ["k-means:5:opt-a1:1"]}, "two labels per stratum"),
        ({"designs": ["k-means:5:two-round:2"]}, "share of the budget"),
        ({"designs": []}, "at least one design"),
        ({"designs": ["simple-random"] * 2}, "none more than once"),
        ({"estimators": ["ppi"]}, "no such estimator"),
        ({"estimators": []}, "estimators= is empty"),
        ({"intervals": ["bootstrap"]}, "no such kind of interval"),
        ({"target": "world"}, "no such target"),
        ({"replicates": 1}, "replicates must be"),
        ({"confidence_level": 95}, "confidence_level"),
    ],
)
def test_wrong_settings_are_refused(benchmark, options, message):
    with pytest.raises(InputError, match=message):
        run(benchmark, **options)


@pytest.mark.parametrize(
    "options",
    [{"budgets": [3000]}, {"budgets": []}, {"budgets": [8]}, {"designs": LITERAL, "budgets": [19]}],
)
def test_budgets_that_cannot_be_are_refused(benchmark, options):
    with pytest.raises(BudgetError):
        run(benchmark, **options)


def test_outcomes_must_fit_the_population(benchmark):
    with pytest.raises(InputError, match="one outcome per unit"):
        run((benchmark[0], benchmark[1][:-1]))
    with pytest.raises(InputError, match="NaN"):
        run((benchmark[0], np.full(2000, np.nan)))


@pytest.mark.parametrize("seed", range(3))
def test_second_round_is_the_one_that_the_library_draws(benchmark, seed):
    from stratal.simulation.adaptive_allocation import pilot_counts, recalibrated_deviations
    from stratal.simulation.draws import StratumSums
    from stratal.strata.integer_allocation import AllocationBounds, optimal_integers

    population, z = benchmark
    strata = stratal.strata.stratify(population, "k-means", 6)
    design = SimulatedDesign.parse("k-means:6:two-round")
    allocation = stratal.strata.allocate(strata, 60, "proportional")
    first = stratal.designs.Stratified(strata=strata, allocation=allocation).draw(population, seed=seed)
    labels = z[first.ids]
    second = stratal.next_round(first, labels, additional=60, population=population)
    good = np.bincount(first.stratum, labels, minlength=6)[None]
    sums = StratumSums(counts=allocation.n_h[None].astype(float), z=good, zz=good)
    deviations = recalibrated_deviations(sums, 0.0, strata, binary=True)
    bounds = AllocationBounds.read(strata.sizes, allocation.n_h)
    counts = optimal_integers(strata.sizes * deviations, bounds, 120)

    assert pilot_counts(design, strata.sizes, 120).tolist() == allocation.n_h.tolist()
    assert counts[0].tolist() == np.bincount(second.stratum, minlength=6).tolist()


def test_one_design_estimator_or_interval_needs_no_list():
    population = stratal.Population.from_arrays(proxy=[0.2] * 30 + [0.9] * 30)
    asked = {"outcome": [0, 1] * 30, "budgets": [20], "replicates": 10, "seed": 1}
    one = stratal.simulate(population, designs="simple-random", estimators="hajek", intervals="t", **asked)
    listed = stratal.simulate(
        population, designs=["simple-random"], estimators=["hajek"], intervals=["t"], **asked
    )

    assert one.rows() == listed.rows()


def test_auto_is_the_estimator_that_estimate_takes(benchmark):
    """λ is fitted from 50 labels of a simple random sample on, and never in strata."""
    table = run(
        benchmark, designs=[DESIGNS[0], DESIGNS[1]], estimators=["auto", "horvitz-thompson", "ppi++"],
        replicates=20,
    )  # fmt: skip
    stood_for = {
        (row["design"], row["budget"]): [
            other["estimator"]
            for other in table.where(design=row["design"], budget=row["budget"]).rows()
            if other["mse"] == row["mse"] and other["estimator"] != "auto"
        ]
        for row in table.where(estimator="auto").rows()
    }

    assert list(stood_for.values()) == [["horvitz-thompson"], ["ppi++"]] + [["horvitz-thompson"]] * 2


def test_replicates_require_a_resolved_estimator(benchmark):
    """`auto` depends on the design, which replicates do not know."""
    settings = Settings(estimators=("auto",), intervals=(), budgets=(2,), replicates=1, seed=5)
    truth = Truth.of(np.array([0.0, 1.0]), np.array([0.2, 0.8]), np.zeros(2, np.int64), 1)
    sums = OrderedUnits(truth, np.array([2]), 1, np.random.default_rng(5)).sums(np.array([2]))

    with pytest.raises(stratal.InputError, match="auto"):
        replicate_means(sums, truth, settings, "auto")
    with pytest.raises(stratal.InputError, match=r"auto.*horvitz-thompson"):
        run(benchmark, designs=[DESIGNS[0]], estimators=["median"], replicates=20)
