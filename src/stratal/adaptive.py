"""The former name of `stratal.planning`, whose rounds learn from the labels so far.

Examples
--------
>>> from stratal.adaptive import next_round
>>> next_round.__module__
'stratal.planning.rounds'
"""

from stratal.planning import *  # noqa: F403
from stratal.planning import __all__ as __all__
