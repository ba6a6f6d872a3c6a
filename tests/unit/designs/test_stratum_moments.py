from __future__ import annotations

import numpy as np

from stratal.designs.stratum_moments import stratum_means


def test_means_of_one_stratum_are_those_of_two_alike_to_the_bit():
    variables = np.random.default_rng(5).normal(size=(999, 3))
    nowhere = np.zeros(999, int)

    one, two = stratum_means(variables, nowhere, 1), stratum_means(variables, nowhere, 2)

    assert one[0].tolist() == two[0].tolist()
    assert stratum_means(np.ones((7, 2)), np.zeros(7, int), 1).tolist() == [[1.0, 1.0]]
