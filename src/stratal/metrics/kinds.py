"""All kinds of estimand but those of `regression`. The import of a class registers its kind."""

# ruff: noqa: F403
from stratal.estimation.estimand import *
from stratal.estimation.means import *
from stratal.metrics.associations import *
from stratal.metrics.at_threshold import *
from stratal.metrics.calibration import *
from stratal.metrics.calibration_error import *
from stratal.metrics.class_losses import *
from stratal.metrics.class_report import *
from stratal.metrics.classification import *
from stratal.metrics.comparison import *
from stratal.metrics.functions_of_means import *
from stratal.metrics.judges import *
from stratal.metrics.numeric_predictions import *
from stratal.metrics.ranking import *
from stratal.metrics.tag_sets import *
from stratal.metrics.threshold_goal import *
