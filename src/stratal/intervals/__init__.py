"""From arrays of evidence to bounds and p-values: no module here knows a design or an estimator."""

from stratal.intervals.betting import betting_interval
from stratal.intervals.evidence import Evidence
from stratal.intervals.interval import ConfidenceInterval, p_value
from stratal.intervals.methods import METHODS, interval_of
from stratal.intervals.proportion import blaker, clopper_pearson, logit, student_t, wilson

__all__ = [
    "METHODS",
    "ConfidenceInterval",
    "Evidence",
    "betting_interval",
    "blaker",
    "clopper_pearson",
    "interval_of",
    "logit",
    "p_value",
    "student_t",
    "wilson",
]
