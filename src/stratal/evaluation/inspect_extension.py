"""Extension of Inspect by its entry point: labels of people as scores, with the estimate as their metric.

    stratal draw LOG.eval --budget 200 --output audit
    inspect score LOG.eval --scorer stratal/human_labels -S sample=audit/sample.parquet -S labels=labels.csv

The metric is the estimate for all samples of the log, by the design of the sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stratal.designs.sample import Sample
from stratal.errors import InputError, optional_import
from stratal.estimation.requirement import metrics_to_log
from stratal.evaluation.evaluation import evaluate
from stratal.labels.label_files import read_labels
from stratal.tables.logs.log import REPEAT_SEPARATOR

with optional_import("inspect_ai", extra="inspect"):
    from inspect_ai.scorer import SampleScore, Score, Target, metric, scorer
    from inspect_ai.solver import TaskState

NO_LABEL = "not labelled"


@metric  # type: ignore[untyped-decorator]
def stratal_estimate() -> Callable[[Sequence[SampleScore]], dict[str, float]]:
    """Return the metric: the estimate of the sample whose labels were scored, with its interval."""

    def compute_estimate(scores: Sequence[SampleScore]) -> dict[str, float]:
        if not scores:
            raise InputError("no sample has a label", action="Check that the labels belong to this log.")
        options = scores[0].score.metadata
        evaluation = evaluate(options["sample"], [options["labels"]], mapping=options["mapping"])
        return metrics_to_log(evaluation.estimate.to_dict())

    return compute_estimate


@scorer(metrics=[stratal_estimate()])  # type: ignore[untyped-decorator]
def human_labels(
    sample: str, labels: str, mapping: Mapping[str, float] | None = None
) -> Callable[[TaskState, Target], Any]:
    """Return the scorer: a label is the score of its sample, and other samples are unscored.

    Parameters
    ----------
    sample : str
        The sample that `stratal draw` wrote, such as audit/sample.parquet.
    labels : str
        File of labels.
    mapping : mapping of label to number, optional
        Values of labels, such as `{Pass: 1, Fail: 0}`.
    """
    id_name = Sample.read(sample).question.id
    table = read_labels(labels, id_name=id_name)
    label_numbers = mapping or {}
    repeated = next((unit for unit, count in Counter(table.ids).items() if count > 1), None)
    if repeated is not None:
        action = "Keep one label for each sample, such as the decision of an adjudicator."
        raise InputError(f"{labels}: several labels for one sample", given=repr(repeated), action=action)
    values = {
        str(unit): label_numbers.get(str(value), value)
        for unit, value in zip(table.ids, table.values, strict=True)
        if value is not None
    }
    options = {"sample": sample, "labels": labels, "mapping": mapping}

    async def score(state: TaskState, target: Target) -> Score:
        # A unit is one epoch of a sample; its number is part of the id if there are several.
        units = (f"{state.sample_id}{REPEAT_SEPARATOR}{state.epoch}", str(state.sample_id))
        value = next((values[unit] for unit in units if unit in values), None)
        if value is None:
            return Score.unscored(reason=NO_LABEL)
        return Score(value=value, metadata=options)

    return score
