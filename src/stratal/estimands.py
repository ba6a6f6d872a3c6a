"""Estimands: the quantities that labels are planned for and estimate.

They live in `estimation.estimands`, but for those that later rooms add to them.

Examples
--------
>>> from stratal.estimands import F1
>>> F1("match").text
'f1:match'
"""

from stratal.estimation.estimands import *  # noqa: F403
from stratal.estimation.regression.from_sample import Coefficient as Coefficient
from stratal.estimation.regression.from_sample import Quantile as Quantile

__all__ = [name for name in dir() if name[0].isupper()]
