"""The same seed and ids give the same sample of every design, from arrays and from tables."""

import numpy as np
import pytest

import stratal
from stratal.errors import InputError

pa = pytest.importorskip("pyarrow")
SIZE = 3000


def both(size=SIZE, seed=0):
    rng = np.random.default_rng(seed)
    columns = {
        "id": np.array([f"unit-{i}" for i in range(size)]),
        "proxy": np.round(rng.beta(5, 1, size), 3),
        "length": rng.lognormal(0, 2, size),
        "chance": rng.uniform(1e-3, 0.2, size),
        "second": np.zeros(size),
        "topic": rng.integers(0, 90, size).astype(str),
    }
    columns["second"] = columns["proxy"] ** 2 + 0.1 * rng.random(size)
    order = rng.permutation(size)
    arrays = stratal.Population.from_arrays(
        proxy=columns["proxy"],
        ids=columns["id"],
        features={name: columns[name] for name in ("length", "chance")},
        groups={"topic": columns["topic"]},
    )
    table = stratal.Population.from_table(
        pa.table({name: values[order] for name, values in columns.items()}),
        proxy="proxy",
        features=("length", "chance"),
        groups="topic",
    )
    return arrays, table


DESIGNS = [
    stratal.designs.Poisson(probability=0.02),
    stratal.designs.Poisson(probability="chance"),
    stratal.designs.Poisson(budget=80, size="length"),
    stratal.designs.ProportionalToSize(budget=150),
    stratal.designs.ProportionalToSize(budget=150, size="length"),
    stratal.designs.ProportionalToSize(budget=SIZE - 1, size="length"),
    stratal.designs.ProportionalToSize(budget=1, size="length"),
    stratal.designs.Systematic(budget=70),
    stratal.designs.ClusterSample(cluster="topic", n_clusters=9),
    stratal.designs.ClusterSample(cluster="topic", budget=250),
]


@pytest.fixture(scope="module")
def populations():
    return both()


@pytest.mark.parametrize("design", DESIGNS, ids=repr)
def test_arrays_and_tables_give_the_same_sample(populations, design):
    arrays, table = populations
    left, right = design.draw(arrays, 7), design.draw(table, 7)

    assert left.size > 0
    np.testing.assert_array_equal(left.ids, right.ids)
    np.testing.assert_array_equal(left.inclusion_probability, right.inclusion_probability)
    np.testing.assert_array_equal(left.proxies, right.proxies)
    np.testing.assert_array_equal(left.groups["topic"], right.groups["topic"])
    assert left.design == right.design


def test_tables_refuse_what_arrays_refuse(populations):
    for units in populations:
        with pytest.raises(InputError, match="contains a probability above 1"):
            stratal.designs.Poisson(probability="length").draw(units, 1)
        with pytest.raises(InputError, match="contains categories"):
            stratal.designs.Poisson(budget=5, size="topic").draw(units, 1)
        with pytest.raises(InputError, match="no such column"):
            stratal.designs.Poisson(budget=5, size="lengths").draw(units, 1)


def test_a_next_round_of_a_table_is_that_of_arrays(populations):
    samples = []
    for units in populations:
        pilot = stratal.plan(units, budget=100).draw(seed=7)
        labels = {unit: float(not unit.endswith(("1", "3"))) for unit in pilot.ids.tolist()}
        samples.append(stratal.next_round(pilot, labels, additional=60))

    np.testing.assert_array_equal(samples[0].ids, samples[1].ids)
    np.testing.assert_array_equal(samples[0].n_h, samples[1].n_h)
    assert samples[0].round.tolist() == [1] * 100 + [2] * 60
