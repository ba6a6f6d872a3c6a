"""Estimands: the quantities that labels are planned for and used to estimate.

They are defined in `metrics`, `regression` and `estimation.means`.

Examples
--------
>>> from stratal.estimands import F1
>>> F1("match").text
'f1:match'
"""

# ruff: noqa: F403, F405
from stratal.metrics.kinds import *
from stratal.regression.estimands import *

__all__ = ["Estimand", *(kind.__name__ for kind in Estimand.registry.values() if kind.__name__ in globals())]
