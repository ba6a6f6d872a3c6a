"""What tests of units say of each other."""

from __future__ import annotations

import numpy as np
import pytest

from stratal.population.expressions import Agree, ByLevel, as_level_test, combine_tests, implies

LEVEL = ByLevel(name="a", levels=("x",), values=(2.0,), otherwise=-1.0)
COLUMNS = {"g": np.array(list("uvwx")), "a": np.array(list("uuuu")), "b": np.array(list("uvuv"))}


def level_set(levels, others=False, name="g"):
    values = (float(not others),) * len(levels)
    return ByLevel(name=name, levels=tuple(levels), values=values, otherwise=float(others))


SETS = [level_set(levels, others) for levels in ("", "u", "uv", "vw") for others in (False, True)]


def test_agreeing_of_three_implies_agreeing_of_two_and_not_the_other_way():
    three, two = Agree(names=("a", "b", "c")), Agree(names=("b", "a"))

    assert implies(three, two)
    assert not implies(two, three)
    assert implies(LEVEL, LEVEL)
    assert not implies(LEVEL, two)


def passing(test):
    return set(COLUMNS["g"][test.evaluate(COLUMNS) > 0.5].tolist())


@pytest.mark.parametrize("first", SETS)
def test_sets_of_levels_are_what_their_tests_let_pass(first):
    """On a column that has every level that is named, and one more."""
    assert as_level_test(first) is first
    assert passing(first.complement) == set("uvwx") - passing(first)
    for second in SETS:
        both = passing(first) & passing(second)
        assert passing(combine_tests(first, second)) == both
        assert first.is_disjoint_from(second) == (not both)
        assert implies(first, second) == (passing(first) <= passing(second))


def test_a_test_of_several_things_implies_each():
    same, is_u = Agree(names=("a", "b")), ByLevel(name="g", levels=("u",), values=(1.0,))
    joint = combine_tests(same, is_u)

    assert implies(joint, same)
    assert implies(joint, is_u)
    assert not implies(same, joint)
    assert combine_tests(None, is_u) is combine_tests(is_u, None) is is_u
    np.testing.assert_array_equal(joint.evaluate(COLUMNS), [1, 0, 0, 0])


def test_columns_are_not_mixed_up():
    first, second = (level_set("u", name=name) for name in "gh")

    assert not first.is_disjoint_from(second)
    assert not implies(first, second)
    assert as_level_test(LEVEL) is None
