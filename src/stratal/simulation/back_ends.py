"""Where the cells of a simulation are worked out: here, in other processes by joblib, or on Spark."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, TypeVar

from stratal.errors import InputError, MissingExtraError

Task = TypeVar("Task")
Found = TypeVar("Found")


def check_workers(workers: Any) -> None:
    """Refuse what `completed` cannot ask.

    Raises
    ------
    InputError
        For 0, and for what is neither a number, None nor a Spark session.

    Examples
    --------
    >>> check_workers(0)
    Traceback (most recent call last):
    stratal.errors.InputError: workers= is not understood (given: 0; allowed: 1 or more...
    """
    module = type(workers).__module__
    if isinstance(workers, int | None) and workers != 0 and not isinstance(workers, bool):
        return
    if ".connect." in module:
        raise InputError(
            "Spark Connect runs none of our Python on its workers",
            allowed="a session of a master: SparkSession.builder.master('spark://host:7077')",
        )
    if not module.startswith("pyspark."):
        raise InputError(
            "workers= is not understood",
            given=workers,
            allowed="1 or more processes, -1 for all cores, None as joblib is configured, a Spark session",
        )


def completed(
    work: Callable[[Task], Iterator[Found]], tasks: Sequence[Task], workers: Any
) -> Iterator[Found]:
    """Yield what the tasks give: one process does them in order, several as they come.

    Parameters
    ----------
    work : callable
        Yields the results of one task.
    tasks : sequence
    workers : int, None or a Spark session
        As in `simulate`.

    Raises
    ------
    MissingExtraError
        Without joblib, where it is needed.

    Examples
    --------
    >>> list(completed(lambda task: iter([task, task + 1]), [1, 5], 1))
    [1, 2, 5, 6]
    """
    if not isinstance(workers, int | None):
        yield from _on_spark(work, tasks, getattr(workers, "sparkContext", workers))
    elif workers == 1 or not tasks:
        for task in tasks:
            yield from work(task)
    else:
        yield from _by_joblib(work, tasks, workers)


def _by_joblib(
    work: Callable[[Task], Iterator[Found]], tasks: Sequence[Task], workers: int | None
) -> Iterator[Found]:
    try:
        from joblib import Parallel, delayed
    except ImportError:
        raise MissingExtraError("joblib", extra="parallel") from None
    jobs = (delayed(_listed)(work, task) for task in tasks)
    try:
        results = Parallel(n_jobs=workers, return_as="generator_unordered")(jobs)
    except ValueError:  # a back end that only returns lists
        results = Parallel(n_jobs=workers)(delayed(_listed)(work, task) for task in tasks)
    for found in results:
        yield from found


def _listed(work: Callable[[Task], Iterator[Found]], task: Task) -> list[Found]:
    return list(work(task))


# ---- Spark


def _on_spark(
    work: Callable[[Task], Iterator[Found]], tasks: Sequence[Task], context: Any
) -> Iterator[Found]:
    """Yield what tasks give as they end, each a job; what is left is cancelled if nobody waits."""
    group = f"stratal-{uuid.uuid4().hex}"

    def one(task: Task) -> list[Found]:
        context.setJobGroup(group, "stratal simulate", interruptOnCancel=True)
        done: list[Found] = context.parallelize([task], 1).flatMap(work).collect()
        return done

    pool = ThreadPoolExecutor(max(1, min(len(tasks), int(context.defaultParallelism))))
    try:
        for done in as_completed([pool.submit(one, task) for task in tasks]):
            yield from done.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        context.cancelJobGroup(group)
