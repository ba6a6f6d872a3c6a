"""All kinds of estimand, which enter themselves: imported when one is asked for that is not there."""

# ruff: noqa: F403
from stratal.estimation.comparison import *
from stratal.estimation.estimand import *
from stratal.estimation.estimands.classification import *
from stratal.estimation.estimands.functions import *
from stratal.estimation.estimands.judges import *
from stratal.estimation.estimands.losses import *
from stratal.estimation.estimands.means import *
from stratal.estimation.estimands.numbers import *
from stratal.estimation.estimands.ranking import *
from stratal.estimation.estimands.sets import *
