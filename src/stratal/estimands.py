"""Estimands: the quantities that labels are planned for and estimate; they live in `estimation.estimands`.

Examples
--------
>>> from stratal.estimands import F1
>>> F1("match").text
'f1:match'
"""

from stratal.estimation.estimands import *  # noqa: F403
from stratal.estimation.estimands import __all__ as __all__
