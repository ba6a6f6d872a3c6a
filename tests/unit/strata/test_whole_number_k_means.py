"""k-means in whole numbers: no order of a sum and no last digit decides."""

import numpy as np

import stratal
from stratal.strata.feature_clusters import row_order
from stratal.strata.whole_number_k_means import coordinate_bits, whole_number_k_means


def test_last_digits_of_the_features_change_no_stratum():
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(800, 6))
    nudged = np.nextafter(rows, np.inf)
    codes = [
        stratal.strata.stratify(
            stratal.Population.from_arrays(features={f"x{k}": part[:, k] for k in range(6)}), "features", 7
        ).codes
        for part in (rows, nudged)
    ]

    assert np.array_equal(*codes)


def test_sums_of_the_largest_coordinates_are_exact():
    for n_rows, n_columns in ((262_144, 1_024), (5_000, 12), (2, 1)):
        bits = coordinate_bits(n_rows, n_columns)
        farthest = n_columns * (2 << bits) ** 2
        assert farthest <= 2**53
        assert n_rows * farthest <= 2**63


def test_the_order_of_rows_is_that_of_all_columns():
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 2, (500, 20)).astype(float)
    shuffled = rows[rng.permutation(500)]

    assert np.array_equal(rows[row_order(rows)], shuffled[row_order(shuffled)])
    assert np.array_equal(
        whole_number_k_means(rows[row_order(rows)], 4, 3),
        whole_number_k_means(shuffled[row_order(shuffled)], 4, 3),
    )
