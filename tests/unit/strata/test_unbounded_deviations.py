import numpy as np
import pytest
from tests.unit.strata.plain_rates import smoothed_standard_deviations

from stratal.designs.stratum_moments import sample_kurtoses
from stratal.errors import InputError
from stratal.strata.standard_deviations import unbounded_deviations

STRATA, LABELS = 10, 20
FLAT = np.ones(STRATA)


def smoothed(z, **options):
    """Return S_h of replicates of labels (R, H, n)."""
    off = z - z.mean(axis=-1, keepdims=True)
    second, fourth = (np.sum(off**power, axis=-1) for power in (2, 4))
    counts = np.full(second.shape, float(z.shape[-1]))
    return unbounded_deviations(
        counts,
        second,
        FLAT,
        kurtoses=sample_kurtoses(counts, second, fourth),
        **{"means": np.arange(10.0)} | options,
    )


def rare_counts(random, replicates=2000):
    shape = (replicates, STRATA, LABELS)
    return (random.random(shape) < 0.08) * (1.0 + random.poisson(3.0, shape))


def test_rare_counts_do_not_send_a_round_to_where_one_was_seen():
    """8 % not zero and a useless proxy: strata that showed nothing are not taken for settled."""
    rare = rare_counts(np.random.default_rng(1))
    found = smoothed(rare)
    as_normal = unbounded_deviations(np.full((2000, 10), 20.0), 20.0 * rare.var(axis=-1), FLAT)

    assert np.median(found.max(axis=1) / found.min(axis=1)) < 1.8
    assert np.median(as_normal.max(axis=1) / as_normal.min(axis=1)) > 2.0


def test_deviations_that_grow_with_the_proxy_are_found():
    true = np.exp(np.linspace(-1.5, 1.5, STRATA))
    z = np.random.default_rng(2).normal(size=(500, STRATA, 100)) * true[:, None]

    found = np.median(smoothed(z), axis=0)

    assert found == pytest.approx(true, rel=0.15)
    assert np.median(smoothed(-z), axis=0) == pytest.approx(found)


def test_a_single_stratum_that_differs_is_found_with_enough_labels():
    true = np.ones(STRATA)
    true[4] = 6.0
    z = np.random.default_rng(3).normal(size=(300, STRATA, 400)) * true[:, None]

    assert np.median(smoothed(z), axis=0) == pytest.approx(true, rel=0.2)


def test_the_order_is_all_that_is_taken_from_the_means():
    z = rare_counts(np.random.default_rng(4), 20)

    assert smoothed(z, means=np.arange(10.0) ** 3) == pytest.approx(smoothed(z))
    assert smoothed(z, means=np.full(10, 2.0)) == pytest.approx(smoothed(z, means=None))


@pytest.mark.parametrize("unit", [1e-100, 3.0, 1e100])
def test_a_change_of_unit_changes_nothing_else(unit):
    z = rare_counts(np.random.default_rng(5), 20)
    off = z - z.mean(axis=-1, keepdims=True)
    second = np.sum(off**2, axis=-1)
    kurtoses = sample_kurtoses(np.full(second.shape, 20.0), second, np.sum(off**4, axis=-1))
    told = {"means": np.arange(10.0), "kurtoses": kurtoses}
    counts = np.full(second.shape, 20.0)

    found = unbounded_deviations(counts, unit**2 * second, FLAT, **told)

    assert found == pytest.approx(unit * unbounded_deviations(counts, second, FLAT, **told))


def test_labels_that_all_agree_leave_the_proxys_shape():
    found = unbounded_deviations(np.full(2, 9.0), np.zeros(2), np.array([1.0, 4.0]), kurtoses=np.ones(2))

    assert 0 < found[0] < found[1]


def test_strata_without_labels_lie_on_the_line():
    counts, squares = np.array([50.0, 0.0, 50.0]), np.array([50.0, 0.0, 1250.0])

    found = unbounded_deviations(counts, squares, np.ones(3), means=np.arange(3.0))

    assert found[0] < found[1] < found[2]


def test_kurtoses_of_another_length_are_refused():
    with pytest.raises(InputError, match="kurtoses must have one entry per stratum"):
        smoothed_standard_deviations(
            [90, 90], [5, 5], [1, 1], [2, 2], kurtoses=[3.0], bounds=(-np.inf, np.inf)
        )
