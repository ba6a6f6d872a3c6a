"""Where cells are worked out: what is refused, and the order of what comes."""

from __future__ import annotations

import pytest

from stratal.errors import InputError
from stratal.simulation.workers import check_workers, run_tasks


@pytest.mark.parametrize("workers", [0, True, "2", [2]])
def test_workers_that_cannot_be_asked_are_refused(workers):
    with pytest.raises(InputError, match="workers= cannot be read"):
        check_workers(workers)


@pytest.mark.parametrize("workers", [1, 2, -1, None])
def test_numbers_of_processes_are_taken(workers):
    check_workers(workers)


def test_a_connect_session_is_refused_by_name():
    session = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(InputError, match="not Spark Connect"):
        check_workers(session)


def test_one_process_begins_the_next_task_when_it_is_asked_for():
    begun = []

    def work(task):
        begun.append(task)
        yield task * 10

    results = run_tasks(work, [1, 2, 3], 1)
    assert (next(results), begun) == (10, [1])
    assert (list(results), begun) == ([20, 30], [1, 2, 3])


def test_nothing_to_do_needs_no_back_end():
    assert list(run_tasks(iter, [], 4)) == []
