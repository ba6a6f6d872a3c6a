"""Run the tasks of a simulation in this process, in several processes (joblib) or on Spark."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, TypeVar

from stratal.errors import InputError, optional_import
from stratal.protocols import SparkSession

TaskType = TypeVar("TaskType")
TaskResult = TypeVar("TaskResult")


def check_workers(workers: object) -> None:
    """Raise `InputError` unless `workers` is a number of processes, None or a Spark session of a master."""
    module = type(workers).__module__
    is_number = isinstance(workers, int | None) and workers != 0 and not isinstance(workers, bool)
    # Spark Connect has no SparkContext, which distributes Python functions.
    is_spark = module.startswith("pyspark.") and ".connect." not in module
    if not (is_number or is_spark):
        raise InputError(
            "workers= cannot be read",
            given=workers,
            allowed="1 or more processes, -1 for all cores, None for the settings of joblib, or a Spark "
            "session of a Spark master (not Spark Connect)",
        )


def run_tasks(
    work: Callable[[TaskType], Iterator[TaskResult]], tasks: Sequence[TaskType], workers: object
) -> Iterator[TaskResult]:
    """Yield the results of `work` for all tasks; with several workers, in the order of completion."""
    if not isinstance(workers, int | None):
        # A SparkContext itself is also accepted.
        if isinstance(workers, SparkSession):
            context = workers.sparkContext
        else:
            context = workers
        yield from _run_on_spark(work, tasks, context)
        return
    if workers == 1 or not tasks:
        for task in tasks:
            yield from work(task)
        return
    with optional_import("joblib", extra="parallel"):
        from joblib import Parallel, delayed
    jobs = [delayed(_list_results)(work, task) for task in tasks]
    try:
        result_lists = Parallel(n_jobs=workers, return_as="generator_unordered")(jobs)
    except ValueError:
        # Some joblib back ends return only lists.
        result_lists = Parallel(n_jobs=workers)(jobs)
    for results in result_lists:
        yield from results


def _list_results(work: Callable[[TaskType], Iterator[TaskResult]], task: TaskType) -> list[TaskResult]:
    """Return the results of one task as a list, which can be sent between processes."""
    return list(work(task))


def _run_on_spark(
    work: Callable[[TaskType], Iterator[TaskResult]], tasks: Sequence[TaskType], context: Any
) -> Iterator[TaskResult]:
    """Yield the results of tasks in the order of completion, one Spark job per task.

    The remaining jobs are cancelled if the caller stops the iteration.
    """
    group = f"stratal-{uuid.uuid4().hex}"

    def run_job(task: TaskType) -> list[TaskResult]:
        context.setJobGroup(group, "stratal simulate", interruptOnCancel=True)
        return list(context.parallelize([task], 1).flatMap(work).collect())

    pool = ThreadPoolExecutor(max(1, min(len(tasks), int(context.defaultParallelism))))
    try:
        for job in as_completed([pool.submit(run_job, task) for task in tasks]):
            yield from job.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        context.cancelJobGroup(group)
