from __future__ import annotations

import threading

import numpy as np
import pytest

import stratal
from stratal.arrays import checked_threads
from stratal.errors import InputError
from stratal.population import in_memory
from stratal.population import in_memory as passes
from stratal.population.distribution import BIN_COUNT, OFFSET_COUNT, Grid, MomentSteps, Span
from stratal.population.in_memory import (
    BATCH_UNITS,
    ArrayCounter,
    map_slices,
    refuse_duplicate_ids,
    threads_to_use,
)
from stratal.population.rules import CutPoints

N = 250_000
"""Several parts, the last of them short."""


def population(threads, ids=None):
    generator = np.random.default_rng(8)
    return stratal.Population.from_arrays(
        proxy={"judge": generator.beta(5, 1, N), "other": generator.normal(3, 1, N)},
        groups={"language": generator.choice(["de", "en", "fr"], N)},
        ids=ids,
        threads=threads,
    )


def drawn(threads, method, by=None):
    units = population(threads)
    strata = stratal.strata.stratify(units, method, 4, by=by)
    design = stratal.designs.Stratified(strata=strata, allocation=stratal.strata.allocate(strata, budget=500))
    return design.draw(units, seed=3)


@pytest.mark.parametrize(
    ("method", "by"), [("k-means", None), ("neyman", "language"), ("category", "language")]
)
def test_a_sample_is_the_same_to_the_bit_from_any_number_of_threads(method, by):
    alone = drawn(1, method, by)

    for threads in (2, 3):
        assert drawn(threads, method, by) == alone  # ids, strata, sizes, means and variances, all exactly


def test_one_stratum_is_the_same_to_the_bit_from_any_number_of_threads():
    alone, *others = (
        stratal.designs.SimpleRandom(budget=50).draw(population(threads), seed=3) for threads in (1, 2, 3)
    )

    assert all(other == alone for other in others)
    np.testing.assert_allclose(
        alone.summary.proxy_covariances[0],
        np.cov(np.stack([population(1).values[name] for name in ("judge", "other")]), ddof=0),
        rtol=1e-12,
    )


def test_poisson_samples_are_the_same_from_any_number_of_threads():
    design = stratal.designs.Poisson(size="judge", budget=200)

    assert design.draw(population(3), seed=5) == design.draw(population(1), seed=5)


def test_strata_of_a_draw_are_counted_once(monkeypatch):
    units = population(2)
    strata = stratal.strata.stratify(units, "k-means", 4)
    design = stratal.designs.Stratified(strata=strata, allocation=stratal.strata.allocate(strata, budget=50))

    passed, map_slices = [], in_memory.map_slices

    def counted(size, work, threads):
        passed.append(work.__qualname__.split(".")[-1])
        return map_slices(size, work, threads)

    monkeypatch.setattr(in_memory, "map_slices", counted)
    design.draw(units, seed=1)

    assert passed == ["assign", "sums_of_slice", "select_from_slice"]

    design.draw(units, seed=2)

    assert passed[3:] == ["select_from_slice"]


def test_a_plan_puts_no_unit_into_its_stratum(monkeypatch):
    units = population(1)
    monkeypatch.setattr(in_memory.ArrayPopulation, "codes", None)

    planned = stratal.plan(units, half_width=0.05)

    assert planned.strata.n_strata > 1
    monkeypatch.undo()
    assert np.bincount(planned.strata.codes).tolist() == planned.strata.sizes.tolist()


def test_levels_of_a_category_are_sorted_once(monkeypatch):
    units = stratal.Population.from_arrays(groups={"language": ["en", "de", "en"]}, proxy=[0.1, 0.5, 0.9])
    sorted_, unique = [], np.unique

    def counted(values, *given, **options):
        sorted_.append(np.asarray(values).dtype.kind)
        return unique(values, *given, **options)

    monkeypatch.setattr(np, "unique", counted)
    found = [units.levels("language"), units.levels("language")]
    found[0]["fr"] = 9  # the caller's own
    units.distributions("language")
    units.digest(1)

    assert found[1] == units.levels("language") == {"de": 1, "en": 2}
    assert sorted_.count("U") == 1


def test_another_rule_is_counted_anew():
    units = population(1)
    first = units.summarise(CutPoints(column="judge", cuts=np.array([0.5])))
    second = units.summarise(CutPoints(column="judge", cuts=np.array([0.7])))

    assert first.sizes.tolist() != second.sizes.tolist()
    assert first == units.summarise(CutPoints(column="judge", cuts=np.array([0.5])))


# ---- counting


VALUES = {
    "continuous": lambda generator: generator.beta(5, 1, N),
    "few values": lambda generator: generator.integers(0, 50, N) / 49,
    "two values late": lambda generator: np.append(np.full(N - 1, 0.25), 0.25 + 2**-40),
}


def counted_by_hand(values, grid):
    positions = [min(int((value - grid.low) * grid.scale), BIN_COUNT * OFFSET_COUNT - 1) for value in values]
    bins, offsets = np.divmod(positions, OFFSET_COUNT)
    counts, sums = np.zeros(BIN_COUNT, np.int64), np.zeros(BIN_COUNT, np.int64)
    np.add.at(counts, bins, 1)
    np.add.at(sums, bins, offsets)
    return counts, sums


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("span", [Span(), Span(0.2, 0.7)])
def test_a_histogram_is_the_same_from_any_number_of_threads_and_from_the_definition(kind, span):
    generator = np.random.default_rng(4)
    values, moments = VALUES[kind](generator), generator.random(N)
    grid, steps = Grid.over(0.0, 1.0), MomentSteps.over(float(moments.min()), float(moments.max()))

    found = [ArrayCounter(values, moments, threads).histogram(grid, span) for threads in (1, 2, 3)]

    inside = values[(values >= span.at_least) & (values < span.below)]
    counts, offsets = counted_by_hand(inside.tolist(), grid)
    for histogram in found:
        assert histogram.counts.tolist() == counts.tolist()
        assert histogram.offsets.tolist() == offsets.tolist()
        assert histogram.second_moments.tolist() == found[0].second_moments.tolist()
        assert int(histogram.second_moments.sum()) == int(
            steps.numbers(moments[(values >= span.at_least) & (values < span.below)]).sum()
        )
        assert (histogram.single_values is None) == (found[0].single_values is None)


@pytest.mark.parametrize(
    ("kind", "kept"), [("continuous", False), ("few values", True), ("two values late", False)]
)
def test_bins_of_one_value_each_are_known_however_late_a_second_comes(kind, kept):
    values = VALUES[kind](np.random.default_rng(4))
    grid = Grid.over(0.0, 1.0)

    for threads in (1, 3):
        atoms = ArrayCounter(values, None, threads).histogram(grid, Span()).single_values
        assert (atoms is not None) == kept
        if kept:
            assert atoms[~np.isnan(atoms)].tolist() == np.unique(values).tolist()


def test_ids_that_differ_pass():
    refuse_duplicate_ids(["1", "01", "a", "A"])


def test_a_single_repeat_is_one():
    with pytest.raises(InputError, match=r"1 id is duplicated \(first: 'a'\)"):
        refuse_duplicate_ids(["a", "b", "a"])


def test_repeats_are_counted_and_the_first_is_named():
    with pytest.raises(InputError, match=r"3 ids are duplicated \(first: 'b'\)"):
        refuse_duplicate_ids(["a", "b", "c", "b", "c", "b"])


def test_parts_cover_the_rows_once_in_order():
    parts = list(map_slices(3 * BATCH_UNITS + 5, lambda part: part))

    assert [part.start for part in parts] == [0, BATCH_UNITS, 2 * BATCH_UNITS, 3 * BATCH_UNITS]
    assert parts[-1].stop == 3 * BATCH_UNITS + 5
    assert list(map_slices(0, lambda part: part)) == []


@pytest.mark.parametrize("threads", [1, 2, 3, 50])
def test_what_is_found_comes_in_the_order_of_the_rows(threads):
    assert list(map_slices(9 * BATCH_UNITS + 1, lambda part: part.start, threads)) == list(
        range(0, 9 * BATCH_UNITS + 1, BATCH_UNITS)
    )


def test_work_is_done_on_several_threads_at_once():
    together = threading.Barrier(2)

    def meet(part):
        together.wait(timeout=30)
        return threading.get_ident()

    assert len(set(map_slices(2 * BATCH_UNITS, meet, 2))) == 2


def test_few_rows_start_no_thread():
    assert list(map_slices(BATCH_UNITS, lambda part: threading.get_ident(), 8)) == [threading.get_ident()]


def test_what_waits_to_be_put_together_does_not_grow_with_the_rows():
    begun = []
    found = map_slices(100 * BATCH_UNITS, begun.append, 2)

    next(found)

    assert len(begun) <= 2 * passes._SLICES_IN_ADVANCE + 1


def test_an_error_in_a_part_is_the_callers():
    def fail(part):
        raise ZeroDivisionError(part.start)

    with pytest.raises(ZeroDivisionError):
        list(map_slices(5 * BATCH_UNITS, fail, 3))


@pytest.mark.parametrize(
    ("environment", "expected"), [("3", 3), ("4,2", 4), ("0", None), ("many", None), ("", None)]
)
def test_the_environment_says_how_many_unless_the_caller_does(monkeypatch, environment, expected):
    monkeypatch.setenv("OMP_NUM_THREADS", environment)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1, 2, 3, 4}, raising=False)

    assert threads_to_use() == (expected or 5)
    assert threads_to_use(2) == 2
    # Few rows do not pay for threads that nobody asked for.
    assert threads_to_use(slices=16) == (expected or 1)
    assert threads_to_use(slices=500) == (expected or 3)
    assert threads_to_use(2, slices=16) == 2


@pytest.mark.parametrize("threads", [0, -1, True, 1.5, "2"])
def test_a_number_of_threads_counts_from_one(threads):
    with pytest.raises(InputError, match="threads must be a whole number above 0"):
        checked_threads(threads)


def test_another_thread_may_ask_for_other_strata_at_any_moment(monkeypatch):
    population = stratal.Population.from_arrays(proxy=np.linspace(0, 1, 30))
    two, three = (stratal.strata.stratify(population, "equal-size", n_strata=count).rule for count in (2, 3))
    other = two, population.codes(two)

    monkeypatch.setattr(
        type(population), "_stored_codes", property(lambda self: None, lambda self, kept: other)
    )
    assert np.bincount(population.codes(three)).tolist() == [10, 10, 10]
    answers = iter([(three, np.arange(30))])
    monkeypatch.setattr(type(population), "_stored_codes", property(lambda self: next(answers, other)))
    assert population.codes(three).tolist() == list(range(30))
