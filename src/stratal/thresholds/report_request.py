"""What a report contains: the accepted set of a score, other estimands, or both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from stratal.designs.labelling_files import sample_file
from stratal.designs.sample import Sample
from stratal.errors import InputError
from stratal.estimation.estimand import Listed, as_estimand
from stratal.evaluation.sources import SourceForm, form_of
from stratal.metrics.threshold_goal import ThresholdGoal


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRequest:
    """The accepted set and the other estimands of one estimand, which a report shows in separate sections.

    Parameters
    ----------
    goal : ThresholdGoal, optional
        The accepted set.
    estimand : str, optional
        The other estimands; None if the accepted set is all, or if nothing is requested.
    """

    goal: ThresholdGoal | None
    estimand: str | None

    @classmethod
    def of(cls, source: Any, labels: Any, estimand: str | None) -> Self:
        """Return the request for an estimand; by default for the one that the sample was planned for.

        Raises
        ------
        InputError
            For several accepted sets.
        """
        requested: Any = estimand
        if estimand is None and source is not None and form_of(source, labels) is SourceForm.SAMPLE:
            requested = Sample.read(sample_file(source)).question.estimand
        parsed = as_estimand(requested)
        estimands = parsed.estimands if isinstance(parsed, Listed) else (parsed,)
        goals = [entry for entry in estimands if isinstance(entry, ThresholdGoal)]
        if len(goals) > 1:
            given_text = "; ".join(goal.text for goal in goals)
            raise InputError(
                "a report has one accepted set",
                given=given_text,
                action="Write a separate report for each threshold.",
            )
        if not goals:
            return cls(goal=None, estimand=estimand)
        others = ";".join(entry.text for entry in estimands if entry is not goals[0])
        return cls(goal=goals[0], estimand=others or None)
