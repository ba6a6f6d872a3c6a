from __future__ import annotations

import threading

import pytest

from stratal.arrays import checked_threads
from stratal.errors import InputError
from stratal.population import passes
from stratal.population.passes import PART, over, threads_to_use


def test_parts_cover_the_rows_once_in_order():
    parts = list(over(3 * PART + 5, lambda part: part))

    assert [part.start for part in parts] == [0, PART, 2 * PART, 3 * PART]
    assert parts[-1].stop == 3 * PART + 5
    assert list(over(0, lambda part: part)) == []


@pytest.mark.parametrize("threads", [1, 2, 3, 50])
def test_what_is_found_comes_in_the_order_of_the_rows(threads):
    assert list(over(9 * PART + 1, lambda part: part.start, threads)) == list(range(0, 9 * PART + 1, PART))


def test_work_is_done_on_several_threads_at_once():
    together = threading.Barrier(2)

    def meet(part):
        together.wait(timeout=30)
        return threading.get_ident()

    assert len(set(over(2 * PART, meet, 2))) == 2


def test_few_rows_start_no_thread():
    assert list(over(PART, lambda part: threading.get_ident(), 8)) == [threading.get_ident()]


def test_what_waits_to_be_put_together_does_not_grow_with_the_rows():
    begun = []
    found = over(100 * PART, begun.append, 2)

    next(found)

    assert len(begun) <= 2 * passes._AHEAD + 1


def test_an_error_in_a_part_is_the_callers():
    def fail(part):
        raise ZeroDivisionError(part.start)

    with pytest.raises(ZeroDivisionError):
        list(over(5 * PART, fail, 3))


@pytest.mark.parametrize(
    ("environment", "expected"), [("3", 3), ("4,2", 4), ("0", None), ("many", None), ("", None)]
)
def test_the_environment_says_how_many_unless_the_caller_does(monkeypatch, environment, expected):
    monkeypatch.setenv("OMP_NUM_THREADS", environment)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1, 2, 3, 4}, raising=False)

    assert threads_to_use() == (expected or 5)
    assert threads_to_use(2) == 2


@pytest.mark.parametrize("threads", [0, -1, True, 1.5, "2"])
def test_a_number_of_threads_counts_from_one(threads):
    with pytest.raises(InputError, match="threads counts from 1"):
        checked_threads(threads)
