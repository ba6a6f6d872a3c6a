from __future__ import annotations

import pytest

from stratal.errors import InputError
from stratal.population.in_memory import refuse_duplicates


def test_ids_that_differ_pass():
    refuse_duplicates(["1", "01", "a", "A"])


def test_a_single_repeat_is_one():
    with pytest.raises(InputError, match=r"1 id is duplicated \(first: 'a'\)"):
        refuse_duplicates(["a", "b", "a"])


def test_repeats_are_counted_and_the_first_is_named():
    with pytest.raises(InputError, match=r"3 ids are duplicated \(first: 'b'\)"):
        refuse_duplicates(["a", "b", "c", "b", "c", "b"])
